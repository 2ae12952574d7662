// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues of a program that do not stop when they are switched off (the model's fault "run-on").
 * The card is behind an IOMMU and complains of each fetch from memory that was given back: so no
 * ring may go before the reset of its core has ended, or bus mastering is off.
 */
#include "guest_cards.h"

#define RING	64u
#define ROUNDS	5

static struct card *card;

static uint64_t host_alloc(int fd, uint64_t size)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = size, .flags = NEURON_NATIVE_ALLOC_HOST,
		.mem_type = NEURON_MEMALLOC_TYPE_NCDEV_HOST,
	};

	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "memory of a ring");
	return a.mem_handle;
}

/* A device that is open, with a queue of core 1. */
static int open_with_queue(void)
{
	struct neuron_ioctl_dma_queue_init q = {
		.eng_id = 16, .qid = 3, .tx_desc_count = RING, .rx_desc_count = RING,
	};
	int fd = open_card(card);

	q.tx_handle = host_alloc(fd, RING * 16);
	q.rx_handle = host_alloc(fd, RING * 16);
	CHECK(!call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q), "a queue starts");
	return fd;
}

static unsigned long quarantine(void)
{
	char dir[100];

	snprintf(dir, sizeof(dir), "/sys/devices/virtual/neuron_device/neuron%u/neuron_core1",
		 card->number);
	return strtoul(text_of(dir, "quarantine"), NULL, 10);
}

static bool bind_card(const char *how)
{
	char path[96];
	const char *at = strrchr(card->pci, '/') + 1;
	int fd;
	bool done;

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/neuron_pci/%s", how);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = write(fd, at, strlen(at)) == (ssize_t)strlen(at);
	close(fd);
	return done;
}

/* Return: queues that are off fetch descriptors. */
static bool running_on(void)
{
	unsigned long n = tell(card, "fetches");

	usleep(300000);
	return tell(card, "fetches") > n;
}

/*
 * What a queue has fetched is still under way for a moment when it is off.  Instructions may have
 * rung its doorbell, which the driver does not see.
 */
static void test_a_moment(void)
{
	struct neuron_ioctl_dma_queue_init q[ROUNDS];
	unsigned long had = tell(card, "complaints"), before = tell(card, "fetches");
	int fd = open_card(card), i;

	for (i = 0; i < ROUNDS; i++)
		q[i] = (struct neuron_ioctl_dma_queue_init){
			.eng_id = 16, .qid = 3, .tx_desc_count = RING, .rx_desc_count = RING,
			.tx_handle = host_alloc(fd, RING * 16),
			.rx_handle = host_alloc(fd, RING * 16),
		};
	tell(card, "run-on 8");
	CHECK(!call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q[0]), "a queue starts");
	for (i = 1; i < ROUNDS; i++) {
		CHECK(!call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q[i]), "with other rings");
		CHECK(!mem_free(fd, q[i - 1].tx_handle) && !mem_free(fd, q[i - 1].rx_handle),
		      "the former ones are freed");
		usleep(10000);
	}
	CHECK(tell(card, "fetches") > before, "it runs on for a moment each time");
	CHECK(tell(card, "complaints") == had, "its rings are there as long");
	close(fd);
	/* The reset of its core ends, which the rest begins with. */
	sleep(1);
}

int main(void)
{
	unsigned long before;
	int fd;

	find_cards();
	card = next_card(NULL);
	CHECK(card && load("hbm_limit=64"), "load");
	if (failed)
		return 1;
	test_a_moment();
	tell(card, "run-on 1");

	/* A process ends: its rings stay until the reset of the core has ended. */
	before = tell(card, "fetches");
	tell(card, "reset 500");
	close(open_with_queue());
	CHECK(running_on(), "a process has ended: its queue runs on");
	CHECK(quarantine() >= RING * 32, "its rings are held: %lu bytes", quarantine());
	sleep(1);
	CHECK(!running_on() && tell(card, "fetches") > before, "until the core is reset");
	CHECK(!quarantine(), "and are not held any more: %lu bytes", quarantine());

	/* The device is taken away while it is open. */
	fd = open_with_queue();
	before = tell(card, "fetches");
	CHECK(bind_card("unbind"), "the device is taken away");
	CHECK(tell(card, "fetches") > before, "its queue runs on when it is switched off");
	CHECK(!running_on(), "until bus mastering is off");
	close(fd);

	/* A core that does not reset, and then the device goes. */
	CHECK(bind_card("bind"), "the device comes back");
	tell(card, "reset never");
	close(open_with_queue());
	CHECK(running_on() && quarantine() >= RING * 32, "a core does not reset: its rings are held");
	CHECK(bind_card("unbind"), "the device is taken away");
	tell(card, "reset 20");
	CHECK(!running_on(), "and its queue stops");

	/* The machine goes off: the next kernel's memory is not written to. */
	CHECK(bind_card("bind"), "the device comes back");
	tell(card, "reset never");
	close(open_with_queue());
	CHECK(running_on(), "a queue runs on when the machine goes off");
	return failed != 0;
}

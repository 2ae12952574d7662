// SPDX-License-Identifier: GPL-2.0-only
/* neuron_pci on a card that does wrong: each fault ends in bounded time, and can be left. */
#include "guest_cards.h"

static struct card *card = &cards[2];

static bool there(void)
{
	char path[64];

	return !node(card, path, sizeof(path));
}

/* Load, and see in how many seconds that the device is there or not. */
static void try(const char *fault, const char *options, bool good, double min, double max)
{
	double start = seconds(), took;

	CHECK(load(options), "%s: load", fault);
	took = seconds() - start;
	CHECK(there() == good, "%s: the device is %sthere", fault, good ? "" : "not ");
	CHECK(took >= min && took < max, "%s: that took %.1f s", fault, took);
	CHECK(unload() && !there(), "%s: unload", fault);
}

/* 0: the reset of a core was asked for, and has ended well. */
static int reset_core(int fd, unsigned int core)
{
	struct neuron_ioctl_device_reset reset = { .nc_map = 1u << core };
	struct neuron_ioctl_device_ready ready = { .result = -1 };
	int err = call(fd, NEURON_IOCTL_NC_RESET, &reset);

	ready.request_id = reset.request_id;
	return err ?: call(fd, NEURON_IOCTL_NC_RESET_READY, &ready) ?: ready.result;
}

/* A core whose reset does not end fails in time, and can be reset once the card does it. */
static void test_core_reset(void)
{
	struct neuron_ioctl_semaphore s = { .nc_id = 1, .semaphore_index = 9, .value = 7 };
	double start, took;
	int fd;

	CHECK(load_trusted("reset_seconds=2"), "reset of a core: load");
	fd = open_card(card);
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s), "reset of a core: it works before");
	tell(card, "reset never");
	start = seconds();
	CHECK(reset_core(fd, 1), "reset of a core: it does not end");
	took = seconds() - start;
	CHECK(took >= 2 && took < 20, "reset of a core: that took %.1f s", took);
	CHECK(call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s), "reset of a core: it does not work");
	tell(card, "reset 20");
	usleep(300000);
	CHECK(!reset_core(fd, 1), "reset of a core: the next one ends");
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s), "reset of a core: it works again");
	close(fd);
	start = seconds();
	CHECK(unload(), "reset of a core: unload");
	CHECK(seconds() - start < 20, "reset of a core: that took %.1f s", seconds() - start);
}

/* Memory that cannot be cleared is not handed out, and the next request does better. */
static void test_clear(void)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = 1 << 20, .hbm = 2,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	double start, took;
	int fd;

	CHECK(load(""), "lost doorbells: load");
	fd = open_card(card);
	tell(card, "lost-doorbells 2");
	start = seconds();
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC, &a) == EIO, "lost doorbells: EIO");
	took = seconds() - start;
	CHECK(took >= 4 && took < 15, "lost doorbells: after %.1f s", took);
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "lost doorbells: the next request works");
	close(fd);
	CHECK(unload(), "lost doorbells: unload");
}

/*
 * A copy that is not heard of, or at which its engine stops, fails in time; the ring starts anew,
 * and the next copy works.
 */
static void test_copy(const char *fault, int want)
{
	struct neuron_ioctl_mem_buf_copy64 copy = { .size = 1 << 20, .copy_to_mem_handle = 1 };
	uint8_t *out = malloc(copy.size), *in = calloc(1, copy.size);
	double start, took;
	int fd, err;

	CHECK(load("hbm_limit=64"), "copy, %s: load", fault);
	fd = open_card(card);
	copy.mem_handle = alloc(fd, copy.size, 0, 0);
	memset(out, 0x6b, copy.size);
	copy.buffer = out;
	CHECK(!call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy), "copy, %s: it works before", fault);
	tell(card, fault);
	start = seconds();
	err = call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy);
	took = seconds() - start;
	CHECK(err == want && took < 45, "copy, %s: %d after %.1f s", fault, err, took);
	tell(card, "aborts 0");
	memset(out, 0x5c, copy.size);
	err = call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy);
	copy.copy_to_mem_handle = 0;
	copy.buffer = in;
	CHECK(!err && !call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy) &&
	      !memcmp(out, in, copy.size), "copy, %s: the next ones work", fault);
	free(out);
	free(in);
	close(fd);
	CHECK(unload(), "copy, %s: unload", fault);
}

/* A card that goes while it has a device, and another one comes. */
static void test_removal(void)
{
	struct neuron_ioctl_semaphore s = { .nc_id = 1, .semaphore_index = 9 };
	double start;
	int fd;

	CHECK(load_trusted(""), "removal: load");
	fd = open_card(card);
	CHECK(fd >= 0 && !call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s), "removal: a register is read");
	tell(card, "removed 1");
	start = seconds();
	CHECK(call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s), "removal: the next read fails");
	while (there() && seconds() - start < 10)
		usleep(10000);
	CHECK(!there(), "removal: the device is gone after %.1f s", seconds() - start);
	CHECK(call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s) && errno == ENODEV,
	      "removal: who has it open gets ENODEV");
	close(fd);
	CHECK(unload(), "removal: unload");
	tell(card, "removed 0");
	try("after removal", "", true, 0, 30);
}

int main(void)
{
	find_cards();
	CHECK(card->pci[0], "there is a %s", card->name);
	if (failed)
		return 1;
	tell(card, "dead 3000");
	try("firmware late", "", true, 2, 30);
	tell(card, "dead forever");
	try("no firmware", "firmware_seconds=1", false, 1, 10);
	tell(card, "dead 0");
	tell(card, "reset 2000");
	try("slow reset", "", true, 2, 40);
	tell(card, "reset never");
	try("endless reset", "reset_seconds=1", false, 1, 10);
	tell(card, "reset 20");
	tell(card, "not-ready 3");
	try("not ready for a moment", "", true, 0.6, 30);
	tell(card, "not-ready 1000");
	try("never ready", "", false, 1, 10);
	tell(card, "not-ready 0");
	tell(card, "removed 1");
	try("a card that is not there", "", false, 0, 10);
	tell(card, "removed 0");
	test_clear();
	test_copy("lost-doorbells 2", ETIMEDOUT);
	test_copy("aborts 1", EIO);
	test_core_reset();
	test_removal();
	return failed != 0;
}

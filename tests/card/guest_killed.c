// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cards whose process ends: while nothing happens, in a copy, and in the reset of a core.  Who
 * uses one gets an error in bounded time, the kernel's log says what happened, and the driver can
 * be unloaded.
 */
#include "guest_cards.h"

#define BYTES	(1u << 20)
/* A copy looks at the card only when its time is over. */
#define PATIENCE 60.0

static int semaphore(int fd)
{
	struct neuron_ioctl_semaphore s = { .nc_id = 1, .semaphore_index = 9 };

	return call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s);
}

static int idle(const struct card *c, int fd)
{
	(void)c;
	return semaphore(fd);
}

/* The second doorbell of some copy is one that nobody hears. */
static int in_a_copy(const struct card *c, int fd)
{
	uint64_t handle = alloc(fd, BYTES, 0, 0);
	struct neuron_ioctl_mem_buf_copy64 copy = {
		.mem_handle = handle, .buffer = malloc(BYTES), .size = BYTES,
	};
	int err, i;

	err = call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy);
	CHECK(!err, "%s: a copy before: %d", c->name, err);
	tell(c, "die 10");
	for (i = 0; !err && i < 1000; i++)
		err = call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy);
	free(copy.buffer);
	return err;
}

static int in_a_reset(const struct card *c, int fd)
{
	struct neuron_ioctl_device_reset reset = { .nc_map = 2 };
	struct neuron_ioctl_device_ready ready = { .result = -1 };
	int err;

	CHECK(!semaphore(fd), "%s: core 1 is in use", c->name);
	tell(c, "reset never");
	/* A driver that waits for the reset looks at it ten times a second. */
	tell(c, "die 60");
	err = call(fd, NEURON_IOCTL_NC_RESET, &reset);
	ready.request_id = reset.request_id;
	return err ?: call(fd, NEURON_IOCTL_NC_RESET_READY, &ready) ?: ready.result ? EIO : 0;
}

static void killed(const struct card *c, const char *when, const char *fault,
		   int (*use)(const struct card *c, int fd))
{
	double start = seconds();
	int fd = open_card(c), err;
	char path[64];

	CHECK(fd >= 0, "%s, %s: open", c->name, when);
	tell(c, fault);
	err = use(c, fd);
	CHECK(err == EIO || err == ENODEV || err == ETIMEDOUT, "%s, %s: errno %d", c->name, when,
	      err);
	while (!node(c, path, sizeof(path)) && seconds() - start < PATIENCE)
		usleep(10000);
	CHECK(node(c, path, sizeof(path)), "%s, %s: the device is gone after %.1f s", c->name, when,
	      seconds() - start);
	CHECK(semaphore(fd) == ENODEV, "%s, %s: and all that is open knows", c->name, when);
	CHECK(logged(c, "the card is gone"), "%s, %s: the log says so", c->name, when);
	close(fd);
}

int main(void)
{
	double start;

	find_cards();
	CHECK(cards[0].pci[0] && cards[1].pci[0] && cards[2].pci[0], "there are three");
	CHECK(load_trusted("hbm_limit=64"), "load");
	if (failed)
		return 1;
	killed(&cards[2], "idle", "die 1", idle);
	killed(&cards[0], "in a copy", "dead 0", in_a_copy);
	killed(&cards[1], "in a reset", "dead 0", in_a_reset);
	start = seconds();
	CHECK(unload(), "unload");
	CHECK(seconds() - start < 20, "that took %.1f s", seconds() - start);
	return failed != 0;
}

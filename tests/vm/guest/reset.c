// SPDX-License-Identifier: GPL-2.0-only
/*
 * Resets that take long, fail or never end: who waits for them, who does not, and what
 * the core may still touch meanwhile.  Nothing here depends on how long something takes:
 * what must not wait for a reset is done during one that never ends.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>

#include "plug.h"

#define RING	(64u << 10)
#define NQ	(16u << 10)

static int number;		/* of the device */

/* ---- the device ---- */

/* The next @count resets of a core take @msec. */
static void slow(const char *msec, const char *count)
{
	resets_take(number, msec, count);
}

static int opened(void)
{
	int fd = emu_open(number, O_RDWR);

	if (fd < 0)
		exit(1);
	return fd;
}

/* A device of its own for each test. @msec: limit of a reset */
static void plug(const char *msec)
{
	number = plug_device("slow", msec, "1");
}

static void unplug(void)
{
	unplug_device("slow");
}

static unsigned long long used(void)
{
	return emu_value(number, "neuron_core0/stats/memory_usage/device_mem/total");
}

/* ---- what a process does ---- */

static int take(int fd, uint32_t core)
{
	struct neuron_ioctl_semaphore s = { .nc_id = core, .semaphore_index = 1, .value = 7 };

	return call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s);
}

static int reset(int fd, uint32_t core)
{
	struct neuron_ioctl_device_reset r = { .nc_map = 1u << core };

	return call(fd, NEURON_IOCTL_NC_RESET, &r);
}

/* A queue with two rings and a notification queue in device memory: 144 KiB. */
static void make_queues(int fd)
{
	struct neuron_ioctl_notifications_init_v2 n = { .nq_type = NQ_TYPE_NOTIFY, .size = NQ };
	struct neuron_ioctl_dma_queue_init q = {
		.qid = 1, .tx_desc_count = 64, .rx_desc_count = 64,
		.tx_handle = alloc(fd, RING, 0, 0), .rx_handle = alloc(fd, RING, 0, 0),
	};

	CHECK(!call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q), "a DMA queue");
	CHECK(!call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &n), "a notification queue");
}

static pid_t start(void (*fn)(int fd))
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		failed = 0;
		fn(opened());
		fflush(stdout);
		_exit(failed);
	}
	return pid;
}

/* Not before it has asked: a core that is being cleared for it looks the same. */
static pid_t start_reset(void (*fn)(int fd), const char *what)
{
	static const char asked[] = "neuron_core0/stats/other_info/reset_req_count/total";
	unsigned long long before = emu_value(number, asked);
	pid_t pid = start(fn);

	CHECK(emu_comes_to(number, asked, before + 1) && emu_comes_to(number, "reset", 0), "%s", what);
	return pid;
}

static int ended(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void owner_dies(int fd)
{
	make_queues(fd);
	CHECK(used() == 2 * RING + NQ, "they are in use");
	alloc(fd, 1u << 20, 0, 0);
}

static void asks_for_reset(int fd)
{
	CHECK(!take(fd, 0), "take core 0");
	fflush(stdout);
	reset(fd, 0);
}

static void ends_gone(int fd)
{
	CHECK(!take(fd, 0), "take core 0");
	CHECK(reset(fd, 0) == ENODEV, "a reset that is waited for ends with ENODEV");
}

static void waits_for_core(int fd)
{
	CHECK(!take(fd, 0), "the next owner waits, and gets the core");
}

static void gets_eio(int fd)
{
	CHECK(take(fd, 0) == EIO, "K5: a new owner tries the reset again: EIO");
}

/* Core 0 is in a reset that does not end. What follows does not wait for it. */
static void is_not_held_up(int fd)
{
	struct neuron_ioctl_crwl_nc_map m = {
		.nc_count = 1, .start_nc_index = 1, .end_nc_index = 7,
	};
	struct neuron_ioctl_host_device_id_to_rid_map rid = { 0 };
	struct neuron_ioctl_resource_mmap_info r = {
		.block = NEURON_DM_BLOCK_TPB, .resource = NEURON_DM_RESOURCE_SBUF,
	};
	uint8_t ready = 9;
	void *map;

	CHECK(!take(fd, 1), "K6: another core can be used");
	/* A card's firmware does one reset at a time. */
	if (!is_card())
		CHECK(!reset(fd, 1), "K6: and reset");
	alloc(fd, 4096, 0, 1);
	CHECK(!call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &m), "K6: cores can be claimed");
	CHECK(!call(fd, NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP, &rid), "K6: devices can be listed");
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_READY, &ready) && !ready && !emu_value(number, "reset"),
	      "K6: the device says that it is in reset");
	CHECK(!call(fd, NEURON_IOCTL_RESOURCE_MMAP_INFO, &r), "its state buffer");
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, r.offset);
	CHECK(map == MAP_FAILED && errno == EBUSY, "K6: mmap() of its state buffer: EBUSY");
	CHECK(text_write(emu_file(number, "reset"), "1") == EBUSY, "a reset of the device: EBUSY");
}

/* ---- tests ---- */

static void test_quarantine(void)
{
	plug("300");
	slow(FOR_EVER, "2");
	CHECK(ended(start(owner_dies)), "K5: a process dies, and its core does not reset");
	CHECK(emu_comes_to(number, "reset", 2), "K5: the reset fails");
	CHECK(emu_value(number, "neuron_core0/quarantine") == 2 * RING + NQ,
	      "K5: what the core may touch is held: %llu",
	      emu_value(number, "neuron_core0/quarantine"));
	CHECK(used() == 2 * RING + NQ, "K5: and in use: %llu; the rest is free", used());
	CHECK(ended(start(gets_eio)), "K5: the second reset failed, too");
	CHECK(emu_value(number, "neuron_core0/quarantine") == 2 * RING + NQ,
	      "K5: it is still held");
	resets_end();
	CHECK(ended(start(waits_for_core)), "K5: when a reset works, the core can be used");
	CHECK(emu_comes_to(number, "neuron_core0/quarantine", 0) && !used(),
	      "K5: and nothing is held");
	CHECK(emu_comes_to(number, "reset", 1), "K5: the device is ready");
	unplug();
}

static void test_wedged_owner(void)
{
	int fd;

	plug("300");
	fd = opened();
	make_queues(fd);
	slow(FOR_EVER, "1");
	CHECK(reset(fd, 0) == EIO, "a reset that does not end in time: EIO");
	CHECK(emu_value(number, "neuron_core0/stats/other_info/reset_fail_count/total") == 1,
	      "is counted");
	CHECK(take(fd, 0) == EIO, "the owner cannot use the core");
	CHECK(emu_value(number, "neuron_core0/quarantine") == 2 * RING + NQ, "its queues are held");
	resets_end();
	CHECK(!reset(fd, 0) && !take(fd, 0), "after another reset it can");
	CHECK(!emu_value(number, "neuron_core0/quarantine"), "and nothing is held");
	make_queues(fd);
	close(fd);
	unplug();
}

static void test_nobody_waits(void)
{
	pid_t pid;

	plug(FOR_EVER);
	slow(FOR_EVER, "1");
	pid = start_reset(asks_for_reset, "K6: a reset that does not end");
	CHECK(ended(start(is_not_held_up)), "K6: others go on");
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid, "K6: who waits for it can be killed");
	CHECK(!emu_value(number, "reset"), "K6: all that during the reset");
	unplug();
}

static void test_end_of_wait(void)
{
	pid_t pid;

	plug("600000");
	slow("500", "1");
	CHECK(ended(start(owner_dies)), "a process dies without waiting for its core");
	CHECK(ended(start(waits_for_core)), "the core comes back");
	CHECK(!used() && !emu_value(number, "neuron_core0/quarantine"), "with all memory");
	slow("500", "8");
	CHECK(!text_write(emu_file(number, "reset"), "1"),
	      "the file waits for the reset of all cores");
	CHECK(emu_value(number, "reset") == 1, "they are ready");
	slow(FOR_EVER, "1");
	pid = start_reset(ends_gone, "a reset that does not end");
	CHECK(!emu_set("other", "live", "0"), "K9: another device goes");
	CHECK(!emu_value(number, "reset"), "K9: during the reset");
	unplug();
	CHECK(ended(pid), "and the waiter with the device");
}

int main(void)
{
	if (is_card())
		CHECK(!system("modprobe neuron_emu nr_devices=0"), "another kind of device");
	emu_add("other");
	test_quarantine();
	test_wedged_owner();
	test_nobody_waits();
	test_end_of_wait();
	rmdir(emu_path("other", ""));
	if (is_card())
		CHECK(!system("rmmod neuron_emu"), "which goes");
	return failed != 0;
}

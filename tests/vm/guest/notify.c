// SPDX-License-Identifier: GPL-2.0-only
/* Counters in sysfs: poll() wakes when they change; clearing does not corrupt them. */
#define _GNU_SOURCE
#include <ftw.h>
#include <poll.h>
#include <sys/mman.h>
#include <time.h>

#include "check.h"

#define MIB		(1ull << 20)
#define DELAY		SYSFS "info/notify_delay"
#define CORE(c, path)	SYSFS "neuron_core" #c "/stats/" path

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), err = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

/* The guide's way: read it once, poll it, read it again from the start. */
static uint64_t look(int fd)
{
	char buf[64] = "";

	if (lseek(fd, 0, SEEK_SET) || read(fd, buf, sizeof(buf) - 1) <= 0)
		CHECK(0, "read a counter");
	return strtoull(buf, NULL, 10);
}

static int watch(const char *path)
{
	int fd = open(path, O_RDONLY);

	look(fd);
	return fd;
}

static int woken(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLPRI | POLLERR };

	return poll(&p, 1, ms) == 1 && p.revents & POLLPRI;
}

static void test_memory(int fd)
{
	int total = watch(CORE(2, "memory_usage/device_mem/tensors/total"));
	int sum = watch(CORE(2, "memory_usage/device_mem/total"));
	int peak = watch(CORE(2, "memory_usage/device_mem/tensors/peak"));
	int other = watch(CORE(3, "memory_usage/device_mem/total"));
	uint64_t h = alloc(fd, MIB, 0, 2);

	CHECK(!woken(total, 300), "off: an allocation wakes nobody");
	CHECK(!put(DELAY, "0"), "on");
	look(total);
	look(sum);
	look(peak);
	CHECK(!woken(total, 300), "nothing happens, nobody wakes");
	mem_free(fd, h);
	CHECK(woken(total, 5000) && woken(sum, 5000), "a free wakes");
	CHECK(look(total) == 0 && look(sum) == 0 && !woken(total, 300), "once");
	h = alloc(fd, 3 * MIB, 0, 2);
	CHECK(woken(total, 5000) && woken(peak, 5000) && look(total) == 3 * MIB, "an allocation");
	look(peak);
	mem_free(fd, h);
	look(peak);
	CHECK(!put(CORE(2, "memory_usage/device_mem/tensors/peak"), "x") && woken(peak, 5000) &&
	      look(peak) == 0, "clearing");
	CHECK(!woken(other, 300), "another core's is quiet");
	close(total);
	close(sum);
	close(peak);
	close(other);
}

static void test_status(int fd)
{
	int total = watch(CORE(0, "status/success/total"));
	int present = watch(CORE(0, "status/success/present"));
	int other = watch(CORE(0, "status/timeout/total"));
	int resets = watch(CORE(1, "other_info/reset_req_count/total"));
	uint64_t base, was = look(resets);
	struct neuron_ioctl_device_reset reset = { .nc_map = 2 };
	struct neuron_ioctl_neuron_ds_info ds = { 0 };
	void *map;

	/* Earlier processes may have taken back what had been cleared. */
	CHECK(!put(CORE(0, "status/success/total"), "0"), "begin with 0");
	/* Which is a change if they had counted. */
	woken(total, 1000);
	base = look(total);
	CHECK(!call(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &ds), "a datastore");
	map = mmap(NULL, ds.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)ds.mmap_offset);
	if (map == MAP_FAILED) {
		CHECK(0, "map it");
		return;
	}
	look(present);
	CHECK(!woken(total, 500), "nothing happens, nobody wakes");
	NDS_NEURONCORE_COUNTERS(map, 0)[NDS_NC_COUNTER_INFER_COMPLETED] = 5;
	CHECK(woken(total, 5000) && woken(present, 5000) && look(total) == base + 5 &&
	      look(present) == 5, "a process counts: woken while it runs");
	look(total);
	CHECK(!woken(other, 300), "another counter is quiet");
	CHECK(!put(CORE(0, "status/success/total"), "0") && woken(total, 5000) &&
	      look(total) == 0, "clearing");
	NDS_NEURONCORE_COUNTERS(map, 0)[NDS_NC_COUNTER_INFER_COMPLETED] = 7;
	CHECK(woken(total, 5000) && look(total) == 2, "it counts on from 0");
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &reset) && woken(resets, 5000) &&
	      look(resets) == was + 1, "a reset");

	CHECK(!put(DELAY, "-1"), "off");
	usleep(300000);
	look(total);
	NDS_NEURONCORE_COUNTERS(map, 0)[NDS_NC_COUNTER_INFER_COMPLETED] = 8;
	CHECK(!woken(total, 500) && look(total) == 3, "nobody wakes");
	CHECK(put(DELAY, "1") == EINVAL && put(DELAY, "x") == EINVAL, "anything else: EINVAL");
	munmap(map, ds.size);
	CHECK(!call(fd, NEURON_IOCTL_RELEASE_NEURON_DS, &ds), "release");
	close(total);
	close(present);
	close(other);
	close(resets);
}

static int counters, wrong;
static void (*each)(const char *path);

static int visit(const char *path, const struct stat *st, int type)
{
	const char *name = strrchr(path, '/') + 1;

	(void)st;
	if (type == FTW_F && strstr(path, "/stats/") &&
	    (!strcmp(name, "total") || !strcmp(name, "present") || !strcmp(name, "peak"))) {
		counters++;
		each(path);
	}
	return 0;
}

static void clear(const char *path)
{
	wrong += put(path, "0") != 0;
}

/* In use now: what was allocated last, or nothing. */
static void sane(const char *path)
{
	int fd = open(path, O_RDONLY);

	wrong += look(fd) > 64 * MIB;
	close(fd);
}

static void is_zero(const char *path)
{
	int fd = open(path, O_RDONLY);

	wrong += strstr(path, "/memory_usage/") && !strcmp(strrchr(path, '/'), "/total") &&
		 look(fd);
	close(fd);
}

static int all(void (*fn)(const char *path))
{
	counters = wrong = 0;
	each = fn;
	if (ftw(SYSFS, visit, 16))
		return -1;
	return wrong;
}

/* Every counter is cleared while memory of every category is in use; then it goes. */
static void test_clear(int fd)
{
	uint64_t handles[NEURON_MEMALLOC_TYPE_MAX][8] = { 0 };
	uint32_t type, core;
	int bad = 0;

	for (type = 0; type < NEURON_MEMALLOC_TYPE_MAX; type++) {
		for (core = 0; core < 8; core++) {
			struct neuron_native_mem_alloc a = {
				.size = sizeof(a), .bytes = 4096 * (1 + type), .nc_id = core,
				.mem_type = type,
				.flags = type <= NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST ||
					 type == NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST ?
					 NEURON_NATIVE_ALLOC_HOST : 0,
			};

			bad += call(fd, NEURON_NATIVE_MEM_ALLOC, &a) != 0;
			handles[type][core] = a.mem_handle;
		}
	}
	CHECK(!bad, "memory of every category on every core");
	CHECK(!all(clear) && counters > 400, "vendor C18: all of %d counters are cleared", counters);
	CHECK(!all(sane), "vendor C18: none has wrapped");
	for (type = 0; type < NEURON_MEMALLOC_TYPE_MAX; type++)
		for (core = 0; core < 8; core++)
			bad += mem_free(fd, handles[type][core]) != 0;
	CHECK(!bad, "free all");
	CHECK(!all(sane), "vendor C18: none wraps when the memory goes");
	CHECK(!all(is_zero), "vendor C18: what is in use is right, that is nothing");
}

int main(void)
{
	int fd = open_node(O_RDWR);

	test_memory(fd);
	test_status(fd);
	test_clear(fd);
	close(fd);
	return failed != 0;
}

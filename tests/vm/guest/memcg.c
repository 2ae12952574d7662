// SPDX-License-Identifier: GPL-2.0-only
/* K11: which cgroup is charged for memory that the driver takes from the kernel. */
#include "../importer/importer.h"
#include "cgroup.h"

#define KIB	(1ull << 10)
#define MIB	(1ull << 20)
#define SHARED	(128 * MIB)
#define MAPS	64
#define STATS	3	/* seconds until the kernel has added everything up */

static struct neuron_native_geometry geo;

static void copies_first(void)
{
	static char data[4096];
	uint32_t i, bad = 0;
	int fd;

	CHECK(!join("first"), "a process of a group");
	fd = open_node(O_RDWR);
	for (i = 0; i < geo.nr_cores; i++) {
		struct neuron_ioctl_mem_buf_copy64 c = {
			.mem_handle = alloc(fd, 4096, 0, i), .buffer = data, .size = sizeof(data),
			.copy_to_mem_handle = 1,
		};

		bad += call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c) != 0;
	}
	CHECK(!bad, "it is the first to copy on each core");
}

static void test_K11_rings(void)
{
	struct neuron_native_core_stats s = { .size = sizeof(s) };
	int fd = open_node(O_RDWR), i;

	in_child(copies_first);
	CHECK(!call(fd, NEURON_NATIVE_CORE_STATS, &s) && s.host_bytes > 256 * KIB,
	      "the rings stay, the process is gone");
	sleep(STATS);
	/* The kernel frees what the process itself had in its own time. */
	for (i = 0; i < 1000 && charged("first") > geo.nr_cores * 128 * KIB; i++)
		usleep(10000);
	CHECK(i < 1000, "K11: its group is not charged for them: %llu KiB",
	      (unsigned long long)charged("first") / KIB);
	close(fd);
}

static int shared = -1;

static void maps(void)
{
	struct importer_map map = { 0 };
	int im[MAPS], i, bad = 0;
	uint64_t before, after;

	CHECK(!join("importer"), "a process of another group");
	for (i = 0; i < MAPS; i++) {
		im[i] = open("/dev/neuron_importer", O_RDWR | O_CLOEXEC);
		bad += im[i] < 0 || call(im[i], IMPORTER_ATTACH, &shared);
	}
	CHECK(!bad, "another device imports it %d times", MAPS);
	sleep(STATS);
	before = charged("importer");
	for (i = 0; i < MAPS; i++)
		bad += call(im[i], IMPORTER_MAP, &map) || map.bytes != SHARED;
	sleep(STATS);
	after = charged("importer");
	/* A table takes at least one page. */
	CHECK(!bad && after >= before + MAPS / 2 * 4 * KIB,
	      "K11: its group is charged for the tables: %llu KiB, %u pieces each",
	      (unsigned long long)(after - before) / KIB, map.entries);
	for (i = 0; i < MAPS; i++)
		close(im[i]);
}

static void test_K11_tables(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_ioctl_memset64 s = { .size = SHARED, .value = 5 };
	struct neuron_native_mem_export e = { .size = sizeof(e) };

	s.mem_handle = alloc(fd, SHARED, 0, 0);
	e.mem_handle = s.mem_handle;
	CHECK(!call(fd, NEURON_IOCTL_MEMSET64, &s) && !call(fd, NEURON_NATIVE_MEM_EXPORT, &e),
	      "memory that was written to is exported");
	shared = e.fd;
	in_child(maps);
	close(shared);
	close(fd);
}

int main(void)
{
	int fd;

	if (!has_controller("memory"))
		return 0;
	CHECK(!text_write(cg("", "cgroup.subtree_control"), "+memory") && !make("first") &&
	      !make("importer"), "two groups");
	fd = open_node(O_WRONLY);
	geo = geometry(fd);
	close(fd);
	CHECK(!system("modprobe neuron_importer"), "load another driver");
	test_K11_rings();
	test_K11_tables();
	CHECK(!system("rmmod neuron_importer"), "unload it");
	drop("first");
	drop("importer");
	return failed != 0;
}

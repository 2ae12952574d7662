// SPDX-License-Identifier: GPL-2.0-only
/* K11: which cgroup is charged for memory that the driver takes from the kernel. */
#include "../importer/importer.h"
#include "emu.h"

#define KIB	(1ull << 10)
#define MIB	(1ull << 20)
#define ROOT	"/sys/fs/cgroup/"
#define SHARED	(128 * MIB)
#define MAPS	64
#define STATS	3	/* seconds until the kernel has added everything up */

static struct neuron_native_geometry geo;

/* Bytes of kernel memory charged to a group. */
static uint64_t charged(const char *group)
{
	char path[96], line[128];
	unsigned long long bytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), ROOT "%s/memory.stat", group);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "kernel %llu", &bytes) == 1)
			break;
	if (f)
		fclose(f);
	return bytes;
}

static void join(const char *group)
{
	char path[96];

	snprintf(path, sizeof(path), ROOT "%s/cgroup.procs", group);
	CHECK(!text_write(path, "0"), "a process of the group %s", group);
}

static void copies_first(void)
{
	static char data[4096];
	uint32_t i, bad = 0;
	int fd;

	join("first");
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

	join("importer");
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

	mkdir(ROOT, 0755);
	if (mount("cgroup2", ROOT, "cgroup2", 0, NULL) && errno != EBUSY) {
		printf("ok - this kernel has no cgroups # SKIP\n");
		return 0;
	}
	if (text_write(ROOT "cgroup.subtree_control", "+memory") ||
	    mkdir(ROOT "first", 0755) || mkdir(ROOT "importer", 0755)) {
		printf("ok - this kernel has no cgroups of memory # SKIP\n");
		return 0;
	}
	fd = open_node(O_WRONLY);
	geo = geometry(fd);
	close(fd);
	CHECK(!system("modprobe neuron_importer"), "load another driver");
	test_K11_rings();
	test_K11_tables();
	CHECK(!system("rmmod neuron_importer"), "unload it");
	rmdir(ROOT "first");
	rmdir(ROOT "importer");
	return failed != 0;
}

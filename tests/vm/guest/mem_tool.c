// SPDX-License-Identifier: GPL-2.0-only
/* What neuron-mem says of processes, limits and refused allocations; the library's view of them. */
#define _GNU_SOURCE
#include <grp.h>
#include <sys/stat.h>

#include <neuron/neuron.h>

#include "check.h"

static char text[65536];

static int run(const char *command)
{
	FILE *p = popen(command, "r");
	size_t len = fread(text, 1, sizeof(text) - 1, p);

	text[len] = 0;
	return pclose(p);
}

static int says(const char *fmt, int pid)
{
	char want[256];

	snprintf(want, sizeof(want), fmt, pid);
	return strstr(text, want) != NULL;
}

/* As a user who may open the device, and as one who may not. */
static void others(void)
{
	gid_t gid = 4321;

	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(65534, 65534, 65534))
		CHECK(0, "another user");
	CHECK(!run("neuron-mem --failures 0") && says("\nFailures of other processes are not shown: that takes CAP_SYS_ADMIN", 0) &&
	      !says(": process %d wanted", getppid()), "what is not shown is said");
	CHECK(!run("neuron-ls") && says("No process that you may see uses them.\n", 0),
	      "a process that is not shown is not denied");
	CHECK(!run("neuron-top -n 1") && says("No process that you may see uses the devices.", 0),
	      "by neuron-top, either");
	CHECK(!run("neuron-mem map 0") && says("X  the driver and processes of other users 5.", 0) &&
	      !says("process %d ", getppid()), "a map without owners who are nobody's business");
}

static void outsider(void)
{
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		CHECK(0, "another group");
	CHECK(run("neuron-mem 0 2>&1") &&
	      says("/dev/neuron0 (root and members of the group \"4321\" may open it)", 0),
	      "one who may not open the device learns who may");
}

static void map(int pid)
{
	CHECK(!run("neuron-mem map 0") && says("neuron0 HBM 1: 24.000GB, used 5.", 0) &&
	      says("A  process %d (", pid) &&
	      says(") 5.000MB in 1 allocation for core 2: tensors 5.000MB\n", 0) &&
	      says("\n.  free", 0) && !strchr(text, '\033'), "the map names the holder, without colours");
	CHECK(!run("neuron-mem --json map 0") && says("\"schema_version\": 1,", 0) &&
	      says("\"emulated\": ", 0) && says("\"fragmentation_percent\": ", 0) &&
	      says("\"state\": \"reserved\"", 0), "as JSON");
	CHECK(!run("neuron-mem --json map 0 | tr -d ' \\n'") &&
	      says("\"bytes\":5242880,\"state\":\"owned\",\"pid\":%d,\"owner\":0,\"core\":2,\"category\":\"tensors\"}", pid),
	      "with the allocation");
	CHECK(!run("neuron-mem --svg /tmp/map.svg 0 && cat /tmp/map.svg") && says("<svg xmlns", 0) &&
	      says(">process %d: 5.000MB in 1 allocation for core 2", pid) && says("</svg>\n", 0),
	      "as a picture");
	CHECK(!run("neuron-mem --watch=0.1 -n 3 map 0 | grep -c '^neuron0 HBM 1: '") && says("3\n", 0),
	      "three times");
	CHECK(!run("neuron-mem --json --watch=0.1 -n 2 0 | grep -c '^\\[{.*}]$'") && says("2\n", 0),
	      "JSON, a line each time");
}

int main(void)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .hbm = 1, .nc = 2,
					.category = NEURON_MEM_TENSORS };
	struct neuron_mem_refusal list[NEURON_REFUSALS_MAX];
	struct neuron_mem_failure why = { 0 };
	struct neuron_device *d;
	struct neuron_mem *mem, *more;
	size_t n = NEURON_REFUSALS_MAX;
	uint64_t since = 0, bytes, used;
	int pid = getpid();
	struct stat node;

	CHECK(!neuron_device_open(0, &d), "open");
	CHECK(!neuron_mem_get_refusals(d, &since, list, &n), "refusals so far");
	CHECK(!neuron_mem_alloc(d, 5 << 20, &opts, &mem), "5 MiB");
	CHECK(!neuron_limit_set(d, NEURON_LIMIT_CORE, 2, 6 << 20) &&
	      !neuron_limit_get(d, NEURON_LIMIT_CORE, 2, &bytes, &used) && bytes == 6 << 20 &&
	      used == 5 << 20, "6 MiB for the core");
	CHECK(!neuron_limit_set(d, NEURON_LIMIT_DEFAULT, 0, 1 << 30), "1 GiB for processes");
	opts.failure = &why;
	CHECK(neuron_mem_alloc(d, 2 << 20, &opts, &more) == -ENOMEM &&
	      why.reason == NEURON_MEM_REASON_CAPPED, "2 MiB more are refused");
	n = NEURON_REFUSALS_MAX;
	CHECK(!neuron_mem_get_refusals(d, &since, list, &n) && n == 1 && list[0].pid == pid &&
	      list[0].limit == 6 << 20 && list[0].failure.bytes == 2 << 20 &&
	      list[0].processes[0].bytes == 5 << 20, "the driver remembers");

	CHECK(!run("neuron-mem 0"), "neuron-mem");
	CHECK(says("neuron0 process %d (", pid) && says("): HBM 1 5.000MB, host 0B\n", 0),
	      "shows the process");
	CHECK(says("neuron0 core 2 (HBM 1): device 5.000MB, host 0B, limit 6.000MB\n", 0),
	      "the limit of the core");
	CHECK(says("neuron0 limit of a process: 1.000GB\n", 0), "that of processes");
	CHECK(!says(": process %d wanted", pid), "no failures unless asked for");
	CHECK(!run("neuron-mem --failures 0") &&
	      says(": process %d wanted 2.000MB of HBM 1 for core 2 as tensors: capped\n", pid) &&
	      says("  limit 6.000MB (", 0), "then it does");
	CHECK(!run("neuron-mem --json --failures 0") && says("\"pid\": %d,", pid) &&
	      says("\"reason\": \"capped\"", 0) && says("\"limit\": 6291456", 0) &&
	      says("\"process_limit\": 1073741824", 0), "JSON");
	CHECK(!run("neuron-mem --failures 0") &&
	      says("  limit 6.000MB (/sys/devices/virtual/neuron_device/neuron0/neuron_core2/limits/memory), now charged 5.000MB, left 1.000MB\n", 0),
	      "which limit, what is charged, what is left");
	CHECK(!stat(NODE, &node) && !chown(NODE, 0, 4321) && !chmod(NODE, 0660), "a group");
	in_child(others);
	in_child(outsider);
	CHECK(!chown(NODE, node.st_uid, node.st_gid) && !chmod(NODE, node.st_mode), "as it was");
	map(pid);
	if (failed)
		printf("# %s\n", text);

	CHECK(!neuron_limit_set(d, NEURON_LIMIT_CORE, 2, NEURON_LIMIT_NONE) &&
	      !neuron_limit_set(d, NEURON_LIMIT_DEFAULT, 0, NEURON_LIMIT_NONE), "no limits");
	neuron_mem_free(mem);
	neuron_device_close(d);
	return failed != 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Datastores, and the counters in sysfs that come from them. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>

#include "check.h"

#define DS_SIZE		262144u
#define CORE(c, path)	SYSFS "neuron_core" #c "/stats/" path

static int up[2], down[2];

static uint64_t figure(const char *path)
{
	char buf[64] = "";
	int fd = open(path, O_RDONLY);

	if (fd < 0 || read(fd, buf, sizeof(buf) - 1) <= 0 || !strchr(buf, '\n'))
		CHECK(0, "read %s", path);
	close(fd);
	return strtoull(buf, NULL, 10);
}

static void clear(const char *path)
{
	int fd = open(path, O_WRONLY);

	CHECK(write(fd, "x", 1) == 1, "write to %s", strrchr(path, '/') + 1);
	close(fd);
}

static int acquire(int fd, pid_t pid, uint64_t *offset)
{
	struct neuron_ioctl_neuron_ds_info ds = { .pid = pid };
	int err = call(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &ds);

	*offset = ds.mmap_offset;
	return err ? err : ds.size == DS_SIZE ? 0 : -1;
}

static int release(int fd, pid_t pid)
{
	struct neuron_ioctl_neuron_ds_info ds = { .pid = pid };

	return call(fd, NEURON_IOCTL_RELEASE_NEURON_DS, &ds);
}

static void *map(int fd, uint64_t offset, int prot)
{
	return mmap(NULL, DS_SIZE, prot, MAP_SHARED, fd, (off_t)offset);
}

/* Publishes, tells so, and waits to be told how to end. */
static void publisher(void)
{
	int fd = open_node(O_RDWR);
	uint64_t offset;
	char *ds;
	char c = 'x';

	CHECK(!acquire(fd, 0, &offset), "a process gets its datastore");
	ds = map(fd, offset, PROT_READ | PROT_WRITE);
	if (ds == MAP_FAILED) {
		CHECK(0, "and maps it");
		return;
	}
	NDS_NEURONCORE_COUNTERS(ds, 0)[NDS_NC_COUNTER_INFER_COMPLETED] = 100;
	NDS_NEURONCORE_COUNTERS(ds, 3)[NDS_NC_COUNTER_MAC_COUNT] = 21;
	NDS_EXT_NEURONCORE_COUNTERS(ds, 2)[NDS_EXT_NC_COUNTER_HW_ERR_HBM_UE -
					   NDS_NC_COUNTER_COUNT] = 4;
	NDS_EXT_NEURONCORE_NC_DATA(ds, 3)[NDS_EXT_NC_COUNTER_HW_ERR_REPAIRABLE_HBM_UE] = 5;
	NDS_EXT_NEURONCORE_NC_DATA(ds, 0)[NDS_NC_COUNTER_INFER_FAILED_TO_QUEUE] = 6;
	/* Not a number at all: a value that would wrap the sum. */
	NDS_NEURONCORE_COUNTERS(ds, 1)[NDS_NC_COUNTER_ERR_GENERIC] = ~0ull;
	/* Vendor B7: asks for a directory of its own. */
	NDS_ND_COUNTERS(ds)[NDS_ND_COUNTER_DYNAMIC_SYSFS_METRIC_BITMAP] = ~0ull;
	fflush(stdout);
	if (write(up[1], &c, 1) != 1 || read(down[0], &c, 1) != 1)
		_exit(99);
	if (c == 'k')
		for (;;)
			pause();
	CHECK(!release(fd, 0), "vendor B7: release with a dynamic metric asked for");
	CHECK(NDS_NEURONCORE_COUNTERS(ds, 0)[NDS_NC_COUNTER_INFER_COMPLETED] == 100,
	      "the mapping stays when it is released");
	NDS_NEURONCORE_COUNTERS(ds, 0)[NDS_NC_COUNTER_INFER_COMPLETED] = 5555;
	fflush(stdout);
	c = failed ? 'n' : 'y';
	if (write(up[1], &c, 1) != 1 || read(down[0], &c, 1) != 1)
		_exit(99);
}

static pid_t start_publisher(void)
{
	pid_t pid;
	char c;

	if (pipe(up) || pipe(down))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		failed = 0;
		publisher();
		_exit(failed);
	}
	CHECK(read(up[0], &c, 1) == 1, "a process publishes");
	return pid;
}

static char *ds;	/* the datastore of this process */

static void clear_leftovers(void)
{
	clear(CORE(0, "status/success/total"));
	clear(CORE(1, "status/success/total"));
	clear(CORE(3, "status/success/total"));
	clear(CORE(3, "other_info/flop_count/total"));
	clear(CORE(4, "status/execute_failed_to_queue/total"));
	clear(CORE(4, "status/infer_failed_to_queue/total"));
}

static uint64_t own_datastore(int fd)
{
	uint64_t own, own2, before;

	before = figure(SYSFS "stats/memory_usage/host_mem/driver_memory/total");
	CHECK(acquire(fd, getpid() + 12345, &own) == ENOENT, "datastore of no process: ENOENT");
	CHECK(!acquire(fd, 0, &own) && !acquire(fd, getpid(), &own2) && own == own2,
	      "own datastore, twice the same");
	CHECK(figure(SYSFS "stats/memory_usage/host_mem/driver_memory/total") == before + DS_SIZE,
	      "it is accounted");
	ds = map(fd, own, PROT_READ | PROT_WRITE);
	CHECK(ds != MAP_FAILED && !ds[0] && !memcmp(ds, ds + 1, DS_SIZE - 1), "map it: zeros");
	munmap(ds, DS_SIZE);
	ds = map(fd, own, PROT_READ);
	CHECK(ds != MAP_FAILED && !mprotect(ds, DS_SIZE, PROT_READ | PROT_WRITE),
	      "map it for reading, and make it writable");
	NDS_NEURONCORE_COUNTERS(ds, 0)[NDS_NC_COUNTER_INFER_COMPLETED] = 7;
	NDS_NEURONCORE_COUNTERS(ds, 3)[NDS_NC_COUNTER_INFER_COMPLETED] = 8;
	CHECK(figure(CORE(0, "status/success/total")) == 7 &&
	      figure(CORE(0, "status/success/present")) == 7 &&
	      figure(CORE(3, "status/success/total")) == 8 &&
	      figure(CORE(1, "status/success/total")) == 0, "sysfs shows it live");
	return own;
}

static void sums_of_two(void)
{
	CHECK(figure(CORE(0, "status/success/total")) == 107, "sum of two processes");
	CHECK(figure(CORE(3, "other_info/flop_count/total")) == 42, "two operations for each MAC");
	CHECK(figure(CORE(2, "status/hw_hbm_ue_error/total")) == 4, "a further counter");
	CHECK(figure(CORE(7, "status/hw_repairable_hbm_ue_error/total")) == 5 &&
	      figure(CORE(4, "status/execute_failed_to_queue/total")) == 6 &&
	      figure(CORE(4, "status/infer_failed_to_queue/total")) == 6,
	      "cores 4 and up, both spellings");
	CHECK(figure(CORE(1, "status/generic_error/total")) == ~0ull, "any number is a number");
}

/* Return: the mapping. */
static char *map_of_another(int fd, pid_t pid, uint64_t own)
{
	uint64_t other;
	char *theirs;

	CHECK(!acquire(fd, pid, &other) && other != own, "its datastore can be found");
	CHECK(map(fd, other, PROT_READ | PROT_WRITE) == MAP_FAILED && errno == EPERM,
	      "vendor A14: somebody else's cannot be mapped for writing: EPERM");
	theirs = map(fd, other, PROT_READ);
	CHECK(theirs != MAP_FAILED &&
	      NDS_NEURONCORE_COUNTERS(theirs, 0)[NDS_NC_COUNTER_INFER_COMPLETED] == 100,
	      "but for reading");
	CHECK(mprotect(theirs, DS_SIZE, PROT_READ | PROT_WRITE) && errno == EACCES,
	      "vendor A13: and not be made writable: EACCES");
	CHECK(map(fd, other + DS_SIZE, PROT_READ) == MAP_FAILED, "nothing is behind it");
	CHECK(!release(fd, pid) && figure(CORE(0, "status/success/total")) == 107,
	      "releasing somebody else's does nothing");
	return theirs;
}

/* What a process left stays, what it writes after its release does not count. */
static void release_of_another(int fd, pid_t pid, char *theirs)
{
	uint64_t other;
	int status;
	char c = 'r';

	CHECK(write(down[1], &c, 1) == 1 && read(up[0], &c, 1) == 1 && c == 'y', "it releases");
	CHECK(figure(CORE(0, "status/success/total")) == 107, "its figures stay");
	CHECK(acquire(fd, pid, &other) == ENOENT, "the datastore does not");
	CHECK(write(down[1], &c, 1) == 1 && waitpid(pid, &status, 0) == pid &&
	      WIFEXITED(status) && !WEXITSTATUS(status), "and it ends well");
	CHECK(NDS_NEURONCORE_COUNTERS(theirs, 0)[NDS_NC_COUNTER_INFER_COMPLETED] == 5555,
	      "a mapping outlives its process");
	munmap(theirs, DS_SIZE);
}

static void death_of_another(void)
{
	pid_t pid = start_publisher();
	char c = 'k';

	CHECK(write(down[1], &c, 1) == 1 && !kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid,
	      "another one is killed");
	CHECK(figure(CORE(0, "status/success/total")) == 207, "its figures stay, too");
	CHECK(figure(CORE(1, "status/generic_error/total")) == ~0ull - 1, "a sum may wrap");
}

static void clearing(void)
{
	clear(CORE(0, "status/success/total"));
	CHECK(figure(CORE(0, "status/success/total")) == 0, "cleared");
	NDS_NEURONCORE_COUNTERS(ds, 0)[NDS_NC_COUNTER_INFER_COMPLETED] = 10;
	CHECK(figure(CORE(0, "status/success/total")) == 3, "and counts on");
	NDS_NEURONCORE_COUNTERS(ds, 0)[NDS_NC_COUNTER_INFER_COMPLETED] = 0;
	CHECK(figure(CORE(0, "status/success/total")) == 0, "never below 0");
	CHECK(figure(CORE(0, "status/success/present")) == 100, "what the last process left");
	clear(CORE(0, "status/success/present"));
	CHECK(figure(CORE(0, "status/success/present")) == 0, "cleared");
}

static void resets(int fd)
{
	uint64_t before = figure(CORE(2, "other_info/reset_req_count/total"));
	struct neuron_ioctl_device_reset reset = { .nc_map = 4 };

	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &reset) &&
	      figure(CORE(2, "other_info/reset_req_count/total")) == before + 1 &&
	      figure(CORE(2, "other_info/reset_fail_count/total")) == 0, "resets are counted");
}

int main(void)
{
	int fd = open_node(O_RDWR);
	uint64_t own;
	pid_t pid;

	clear_leftovers();
	own = own_datastore(fd);
	pid = start_publisher();
	sums_of_two();
	release_of_another(fd, pid, map_of_another(fd, pid, own));
	death_of_another();
	clearing();
	resets(fd);
	munmap(ds, DS_SIZE);
	close(fd);
	CHECK(figure(SYSFS "stats/memory_usage/host_mem/driver_memory/total") == 0,
	      "all memory is back");
	return failed != 0;
}

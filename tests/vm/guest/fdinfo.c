// SPDX-License-Identifier: GPL-2.0-only
/* /proc/PID/fdinfo: the sum over all processes is what a device memory has in use. */
#include "check.h"

#define MIB	(1ull << 20)

static char info[4096];

static void read_info(pid_t pid, int fd)
{
	char path[64];
	ssize_t len;
	int file;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	file = open(path, O_RDONLY);
	len = read(file, info, sizeof(info) - 1);
	info[len > 0 ? len : 0] = 0;
	close(file);
}

/* Bytes of a region; with @key "drm-client-id:" the number. -1: not there. */
static int64_t figure(const char *key)
{
	const char *p = strstr(info, key);
	unsigned long long n;
	char unit[8] = "";

	if (!p || sscanf(p + strlen(key), "%llu %7s", &n, unit) < 1)
		return -1;
	return strcmp(unit, "KiB") ? (int64_t)n : (int64_t)n << 10;
}

static int64_t region(const char *kind, int hbm)
{
	char key[64];

	snprintf(key, sizeof(key), "drm-%s-hbm%d:\t", kind, hbm);
	return figure(key);
}

int main(void)
{
	int fd = open_node(O_RDWR), fd2 = open_node(O_RDWR), wr = open_node(O_WRONLY), i;
	struct neuron_native_geometry geo = geometry(fd);
	struct neuron_ioctl_mem_alloc_v2_mem_type host = {
		.size = 3 * MIB, .host_memory = 1, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_HOST,
	};
	uint64_t sum[8] = { 0 }, handle;
	int64_t id, id2;
	int up[2], down[2];
	pid_t pid;
	char c = 0;

	read_info(getpid(), fd);
	CHECK(strstr(info, "drm-driver:\tneuron\n"), "driver");
	CHECK(strstr(info, "neuron-device:\t0\n"), "device");
	id = figure("drm-client-id:\t");
	CHECK(id > 0 && region("total", 0) == 0 && region("resident", 3) == 0 &&
	      region("total", geo.nr_hbms) == -1 && figure("drm-total-memory:\t") == 0,
	      "a client without memory");
	read_info(getpid(), fd2);
	CHECK(figure("drm-client-id:\t") == id, "all descriptors of a process are one client");
	read_info(getpid(), wr);
	CHECK(strstr(info, "drm-driver:\tneuron\n") && !strstr(info, "drm-client-id"),
	      "a write-only descriptor is no client");

	host.mem_handle = (__u64 *)&handle;
	CHECK(!call(fd, NEURON_IOCTL_MEM_ALLOC_V2MT, &host), "host memory");
	alloc(fd, 5 * MIB, 0, 0);
	alloc(fd, 3 * PAGE, 3, 0);
	if (pipe(up) || pipe(down))
		return 1;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int own = open_node(O_RDWR);

		failed = 0;
		alloc(own, MIB, 0, 1);
		alloc(own, 4096, 1, 1);
		c = failed ? 'n' : 'a' + own;
		if (write(up[1], &c, 1) != 1 || read(down[0], &c, 1) != 1)
			_exit(1);
		_exit(0);
	}
	CHECK(read(up[0], &c, 1) == 1 && c != 'n', "another process");

	read_info(getpid(), fd);
	CHECK(region("total", 0) == 5 * MIB && region("resident", 0) == 5 * MIB &&
	      region("total", 1) == 0 && region("total", 3) == 3 * (int64_t)PAGE &&
	      figure("drm-total-memory:\t") == 3 * MIB &&
	      figure("drm-resident-memory:\t") == 3 * MIB, "each HBM, and host memory");
	for (i = 0; i < (int)geo.nr_hbms; i++)
		sum[i] = region("total", i);
	read_info(pid, c - 'a');
	id2 = figure("drm-client-id:\t");
	CHECK(id2 > 0 && id2 != id, "another client");
	for (i = 0; i < (int)geo.nr_hbms; i++) {
		struct neuron_native_hbm_stats s = { .size = sizeof(s), .hbm = i };

		sum[i] += region("total", i);
		CHECK(!call(fd, NEURON_NATIVE_HBM_STATS, &s) && s.used == sum[i] + s.driver,
		      "HBM %d: the sum is what is in use", i);
	}
	/* What the child inherited is still its parent's. */
	read_info(pid, fd);
	CHECK(figure("drm-client-id:\t") == id, "an inherited descriptor shows its client");
	CHECK(write(down[1], &c, 1) == 1 && waitpid(pid, NULL, 0) == pid, "it ends");
	close(fd);
	close(fd2);
	close(wr);
	return failed != 0;
}

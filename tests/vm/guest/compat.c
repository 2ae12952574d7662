// SPDX-License-Identifier: GPL-2.0-only
/* Commands of the compatible door about devices, processes and the log. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/klog.h>

#include "check.h"
#include "device.h"

static struct neuron_native_geometry geo;
static int pipe_up[2], pipe_down[2];

/* Where a card is on the bus; a software device is nowhere. */
static unsigned int slot_of_device(void)
{
	char path[256] = "";
	unsigned int slot = 0;

	if (is_card() && readlink(DEVICE0 "device", path, sizeof(path) - 1) > 0)
		sscanf(strrchr(path, ':') + 1, "%x", &slot);
	return slot;
}

static void places(int fd)
{
	struct neuron_ioctl_device_bdf bdf = { 0 };
	struct neuron_ioctl_device_bdf_ext ext = { 0 };
	static struct neuron_ioctl_host_device_id_to_rid_map rid;
	struct {
		__u32 num;
		struct neuron_ioctl_nc_map_entry e[NEURON_NC_MAP_MAX_ENTRIES];
	} map = { 0 };
	struct neuron_ioctl_get_logical_to_physical_nc_map nc = {
		.map = (void *)&map, .max_map_entries = 128,
	};
	int i, bad = 0;

	CHECK(!call(fd, NEURON_IOCTL_DEVICE_BDF, &bdf) && bdf.slot == slot_of_device() && !bdf.func,
	      "BDF");
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_BDF_EXT, &ext) && ext.bus_number == bdf.bus_number &&
	      !ext.domain, "BDF of the device itself");
	ext.nd_index = 1;
	CHECK(call(fd, NEURON_IOCTL_DEVICE_BDF_EXT, &ext) == EINVAL, "of no device: EINVAL");
	memset(&rid, 0x5a, sizeof(rid));
	CHECK(!call(fd, NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP, &rid) && rid.count == 1 &&
	      !rid.host_did_to_rid_map[0] && rid.host_did_to_rid_map[1] == ~0u &&
	      rid.host_did_to_rid_map[63] == ~0u, "one routing id");
	CHECK(!call(fd, NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP, &nc) && map.num == 128,
	      "logical map");
	CHECK(map.e[0].device_nc_idx == 4 && map.e[7].device_nc_idx == 1 &&
	      map.e[8].device_id == 1 && map.e[8].device_nc_idx == 2 &&
	      map.e[127].device_id == 15 && map.e[127].device_nc_idx == 3, "its entries");
	for (i = 0; i < 16; i++) {
		int k, seen = 0;

		for (k = 0; k < 8; k++)
			seen |= 1 << map.e[i * 8 + k].device_nc_idx;
		bad += seen != 0xff;
	}
	CHECK(!bad, "each core of a device once");
	map.num = map.e[4].device_id = 77;
	nc.max_map_entries = 4;
	CHECK(!call(fd, NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP, &nc) && map.num == 4 &&
	      map.e[4].device_id == 77, "a short map");
	nc.max_map_entries = 129;
	CHECK(call(fd, NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP, &nc) == EINVAL,
	      "129 entries: EINVAL");
	nc.max_map_entries = 4;
	nc.mapping_version = 1;
	CHECK(call(fd, NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP, &nc) == EINVAL,
	      "another version: EINVAL");
}

static int log_has(const char *text)
{
	static char buf[1 << 20];
	int n = klogctl(3, buf, sizeof(buf) - 1);

	buf[n > 0 ? n : 0] = '\0';
	return !!strstr(buf, text);
}

static void log_lines(int fd)
{
	char text[600] = "hello \x1b[31mred\nNEURON_HW_ERR=TEST\n";
	struct neuron_ioctl_printk p = { .buffer = text, .size = strlen(text) + 1 };
	struct neuron_ioctl_nc_pid_state_dump dump = { .nc_id = 0 };
	struct neuron_ioctl_semaphore sem = { .nc_id = 0 };

	CHECK(!call(fd, NEURON_IOCTL_PRINTK, &p) && log_has("hello ?[31mred?NEURON_HW_ERR=TEST"),
	      "text in the kernel log, on one line, without escapes");
	memset(text, 'x', sizeof(text));
	CHECK(call(fd, NEURON_IOCTL_PRINTK, &p) == EBADMSG, "no 0 at the end: EBADMSG");
	p.size = 513;
	CHECK(call(fd, NEURON_IOCTL_PRINTK, &p) == EINVAL, "513 bytes: EINVAL");
	p.size = 8;
	p.buffer = (void *)8;
	CHECK(call(fd, NEURON_IOCTL_PRINTK, &p) == EFAULT, "bad buffer: EFAULT");

	CHECK(call(fd, NEURON_IOCTL_NC_PID_STATE_DUMP, &dump) == ENOENT,
	      "state of the owner of a free core: ENOENT");
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_READ, &sem) &&
	      !call(fd, NEURON_IOCTL_NC_PID_STATE_DUMP, &dump) && log_has("core 0: pid"),
	      "state of the owner of a core");
	dump.nc_id = ~0u;
	CHECK(call(fd, NEURON_IOCTL_NC_PID_STATE_DUMP, &dump) == ENOENT, "of no core: ENOENT");
}

/* Another process with memory, a core and a lock; until it is told to go. */
static pid_t other(void)
{
	pid_t pid;
	char c;

	if (pipe(pipe_up) || pipe(pipe_down))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct neuron_ioctl_semaphore sem = { .nc_id = 1 };
		struct neuron_ioctl_crwl crwl = { .nc_id = 1 };
		int fd = open_node(O_RDWR);

		memset(&crwl.uuid, 7, sizeof(crwl.uuid));
		c = !alloc(fd, 1 << 20, 0, 1) || call(fd, NEURON_IOCTL_SEMAPHORE_READ, &sem) ||
		    call(fd, NEURON_IOCTL_CRWL_WRITER_ENTER, &crwl);
		fflush(stdout);
		if (write(pipe_up[1], &c, 1) != 1 || read(pipe_down[0], &c, 1) != 1)
			_exit(1);
		_exit(0);
	}
	CHECK(read(pipe_up[0], &c, 1) == 1 && !c, "another process has memory, a core, a lock");
	return pid;
}

static void others_go(pid_t pid)
{
	CHECK(write(pipe_down[1], "x", 1) == 1 && waitpid(pid, NULL, 0) == pid, "it goes");
}

static struct {
	struct neuron_ioctl_get_apps_info h;
	struct neuron_app_info app[20];
} apps;

static int apps_info(int fd, unsigned int flags, unsigned int capacity)
{
	memset(&apps, 0x5a, sizeof(apps));
	apps.h.apps_info_flags = flags;
	apps.h.capacity = capacity;
	return call(fd, NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, &apps);
}

static int dump(int fd, uint32_t hbm, struct neuron_ioctl_mem_chunk_info *list, uint32_t room,
		uint32_t *count)
{
	struct neuron_ioctl_dump_mem_chunks d = {
		.hbm_index = hbm, .num_entries_in = room, .data = list, .num_entries_out = 12345,
	};
	int err = call(fd, NEURON_IOCTL_DUMP_MEM_CHUNKS, &d);

	*count = d.num_entries_out;
	return err;
}

/* With a descriptor of its own and no privileges. */
static void unprivileged(void)
{
	struct neuron_ioctl_mem_chunk_info list[16];
	int fd = open_node(O_RDWR);
	uint32_t n;

	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		CHECK(0, "give up privileges");
	CHECK(!dump(fd, 0, list, 16, &n) && !n, "somebody else's memory is not listed");
	alloc(fd, 2 * PAGE, 0, 3);
	CHECK(!dump(fd, 0, list, 16, &n) && n == 1 && list[0].size == 2 * PAGE,
	      "its own is");
}

static void processes(int fd)
{
	struct neuron_ioctl_mem_chunk_info list[64];
	struct neuron_ioctl_device_reset reset = { .nc_map = NEURON_NC_MAP_DEVICE };
	uint64_t handle[40];
	uint32_t n, i;
	uint8_t ready = 9;
	pid_t pid;
	int bad;

	CHECK(!dump(fd, 0, list, 64, &n) && !n, "no memory yet");
	pid = other();
	for (i = 0; i < 40; i++)
		handle[i] = alloc(fd, (i + 1) * PAGE, 0, 0);
	alloc(fd, PAGE, 1, 0);
	CHECK(!dump(fd, 0, list, 64, &n) && n == 41, "41 allocations, with privileges");
	for (i = 1, bad = 0; i < n; i++)
		bad += list[i].pa < list[i - 1].pa + list[i - 1].size ||
		       list[i].mem_type != NEURON_MEMALLOC_TYPE_TENSORS_DEVICE;
	CHECK(!bad, "in the order of addresses, none overlaps");
	memset(list, 0x5a, sizeof(list));
	CHECK(dump(fd, 0, list, 40, &n) == EAGAIN && n == 41 && list[40].size == 0x5a5a5a5a5a5a5a5a,
	      "room for 40: EAGAIN, the number, nothing behind");
	CHECK(dump(fd, 0, (void *)8, 40, &n) == EFAULT, "bad array: EFAULT");
	CHECK(!dump(fd, 1, list, 64, &n) && n == 1 && list[0].size == PAGE &&
	      list[0].pa >= geo.hbm[1].base && list[0].pa < geo.hbm[1].base + geo.hbm[1].size,
	      "another HBM");
	CHECK(dump(fd, geo.nr_hbms, list, 64, &n) == EINVAL, "no such HBM: EINVAL");
	in_child(unprivileged);

	CHECK(!apps_info(fd, APP_INFO_ALL, 20) && apps.h.size == 2, "two processes");
	CHECK(apps.app[0].pid == getpid() && apps.app[1].pid == pid, "which ones");
	CHECK(apps.app[0].device_mem_size == 40 * 41 / 2 * PAGE + PAGE &&
	      apps.app[1].device_mem_size == 1 << 20, "their memory");
	CHECK(!apps.app[0].nc_lock_map && apps.app[1].nc_lock_map == 2 &&
	      apps.app[1].uuid_data[1].value[31] == 7 && !apps.app[1].uuid_data[0].value[0],
	      "their locks");
	CHECK(apps.app[2].pid == 0x5a5a5a5a, "nothing behind");
	CHECK(!apps_info(fd, 0, 1) && apps.h.size == 1 && apps.app[0].pid == getpid() &&
	      !apps.app[0].device_mem_size && apps.app[1].pid == 0x5a5a5a5a, "room for one");
	CHECK(apps_info(fd, 0x10, 1) == EINVAL, "unknown flag: EINVAL");

	CHECK(call(fd, NEURON_IOCTL_DEVICE_RESET, NULL) == EBUSY &&
	      call(fd, NEURON_IOCTL_NC_RESET, &reset) == EBUSY,
	      "reset of a device that another process uses: EBUSY");
	others_go(pid);
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_RESET, NULL), "reset of the device");
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_READY, &ready) && ready == 1, "it is ready");
	ready = 9;
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_RESET_STATUS, &ready) && ready == 1, "and was reset");
	for (i = 0, bad = 0; i < 40; i++)
		bad += mem_free(fd, handle[i]);
	CHECK(!bad && !dump(fd, 0, list, 64, &n) && !n, "memory survives it until it is freed");
}

static void answers(int fd)
{
	char zero[512] = { 0 }, arg[512] = { 0 };
	static const unsigned long pods[] = {
		NEURON_IOCTL_POD_INFO, NEURON_IOCTL_POD_STATUS, NEURON_IOCTL_POD_STATUS_V2,
		NEURON_IOCTL_POD_CTRL, NEURON_IOCTL_POD_CTRL_V2, NEURON_IOCTL_DRIVER_INFO_SET,
	};
	size_t i;

	for (i = 0; i < sizeof(pods) / sizeof(pods[0]); i++)
		CHECK(call(fd, pods[i], arg) == EOPNOTSUPP && !memcmp(arg, zero, sizeof(arg)),
		      "command %d: EOPNOTSUPP, nothing written", (int)_IOC_NR(pods[i]));
	CHECK(call(fd, NEURON_IOCTL_DMA_QUIESCE_QUEUES, arg) == ENOTTY, "quiesce: ENOTTY");
	CHECK(call(fd, NEURON_IOCTL_NOTIFICATIONS_QUEUE_INFO, arg) == EPERM, "queue info: EPERM");
}

int main(void)
{
	int fd = open_node(O_RDWR);

	geo = geometry(fd);
	places(fd);
	log_lines(fd);
	processes(fd);
	answers(fd);
	close(fd);
	return failed != 0;
}

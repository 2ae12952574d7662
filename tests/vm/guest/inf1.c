// SPDX-License-Identifier: GPL-2.0-only
/* An inf1, where the driver copies on engines that belong to cores. */
#include <sys/mman.h>

#include "emu.h"

#define SHARED_ENGINE	2	/* the last one of core 0: its queue 15 is the driver's */

static int set_state(int fd, uint32_t engine, uint32_t state)
{
	struct neuron_ioctl_dma_eng_set_state s = { .eng_id = engine, .state = state };

	return call(fd, NEURON_IOCTL_DMA_ENG_SET_STATE, &s);
}

static int copy_to(int fd, uint64_t handle)
{
	static char page[4096];
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = page, .size = sizeof(page),
		.copy_to_mem_handle = 1,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

/* Memory of core 0 from before it has an owner; copies to it when told to. */
static pid_t copier(int number, int go)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		int fd = emu_open(number, O_RDWR), err = fd < 0;
		uint64_t handle = alloc(fd, 4096, 0, 0);
		char byte = 0;

		/* Tell the parent, and wait until it says to go on. */
		if (write(go, &byte, 1) != 1 || read(go, &byte, 1) != 1)
			_exit(2);
		_exit(err || copy_to(fd, handle));
	}
	return pid;
}

/* The owner of a core tries to stop what another process copies with. */
static void test_k8_copies_go_on(int number)
{
	int go[2], owner, status = -1;
	char byte = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go))
		exit(1);
	pid = copier(number, go[1]);
	CHECK(read(go[0], &byte, 1) == 1, "K8: another process has memory");
	owner = emu_open(number, O_RDWR);
	CHECK(owner >= 0 && !set_state(owner, SHARED_ENGINE, 2), "K8: own core 0");
	CHECK(set_state(owner, SHARED_ENGINE, 0) == EPERM, "K8: disable a shared engine: EPERM");
	CHECK(set_state(owner, SHARED_ENGINE, 3) == EPERM, "K8: abort a shared engine: EPERM");
	CHECK(!set_state(owner, 0, 0) && !set_state(owner, 0, 2), "K8: an engine of one's own");
	CHECK(write(go[0], &byte, 1) == 1 && waitpid(pid, &status, 0) == pid && !status,
	      "K8: the other process copies");
	close(owner);
}

/* Words are read from an address each, and written from one on. */
static void test_registers(int number)
{
	struct neuron_ioctl_device_info info;
	__u64 *addr = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t data[3] = { 1, 0, 1 }, got[3] = { 7, 7, 7 };
	struct neuron_ioctl_bar_rw rw = { .bar = 2, .data = data, .count = 3 };
	int fd = emu_open(number, O_RDWR);

	CHECK(!call(fd, NEURON_IOCTL_DEVICE_INFO, &info), "registers: where they are");
	/* Behind the only address is nothing. */
	munmap((char *)addr + 4096, 4096);
	rw.address = addr + 511;
	addr[511] = info.bar_address[1] + 0x2700000 + 4 * 3;
	CHECK(!call(fd, NEURON_IOCTL_BAR_WRITE, &rw), "registers: three events are written");
	for (int i = 0; i < 3; i++)
		addr[i] = addr[511] + 4 * i;
	rw.address = addr;
	rw.data = got;
	CHECK(!call(fd, NEURON_IOCTL_BAR_READ, &rw) && !memcmp(got, data, sizeof(got)),
	      "registers: and read (%u %u %u)", got[0], got[1], got[2]);
	addr[511] = info.bar_address[1] + 0x4000000 * 4 - 8;
	rw.address = addr + 511;
	CHECK(call(fd, NEURON_IOCTL_BAR_WRITE, &rw) == EINVAL, "registers: beyond the last core");
	munmap(addr, 4096);
	close(fd);
}

int main(void)
{
	int number = -1;

	if (emu_mkdir("inf1") || emu_set("inf1", "arch", "inf1") ||
	    emu_set("inf1", "hbm_size", "256") || emu_set("inf1", "live", "1") ||
	    sscanf(emu_get("inf1", "dev_name"), "neuron%d", &number) != 1) {
		printf("not ok - a device (errno %d)\n", errno);
		return 1;
	}
	test_k8_copies_go_on(number);
	test_registers(number);
	emu_del("inf1");
	return failed != 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* State buffers count in the memory that software devices may use. */
#include "check.h"
#include "device.h"
#include "neuron_isa.h"

int main(void)
{
	struct neuron_ioctl_device_info info;
	struct neuron_native_geometry geo;
	__u64 addr;
	uint32_t data = 1;
	struct neuron_ioctl_bar_rw rw = { .address = &addr, .data = &data, .count = 1 };
	char cmd[128];
	int fd;

	fd = open_node(O_RDWR);
	geo = geometry(fd);
	close(fd);
	/* Room for one of them, and some pages. */
	snprintf(cmd, sizeof(cmd), "rmmod neuron_emu && modprobe neuron_emu host_memory=%llu",
		 (unsigned long long)(geo.sbuf_size >> 20) + 4);
	CHECK(!system(cmd), "load with little memory");
	fd = open_node(O_RDWR);
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_INFO, &info), "device info");
	addr = info.bar_address[0] + info.bar_size[0] - geo.nr_cores * geo.tpb_size +
	       NEURON_ISA_SBUF_OFF;
	CHECK(!call(fd, NEURON_IOCTL_BAR_WRITE, &rw), "write to the state buffer of core 0");
	addr += geo.tpb_size;
	/* Writes to a device like a card are posted, and nobody is told. */
	CHECK(call(fd, NEURON_IOCTL_BAR_WRITE, &rw) == (is_silent() ? 0 : ENOMEM),
	      "of core 1: there is no room");
	data = 2;
	CHECK(!call(fd, NEURON_IOCTL_BAR_READ, &rw) && !data, "it was not written");
	data = 1;
	close(fd);
	fd = open_node(O_RDWR);
	CHECK(!call(fd, NEURON_IOCTL_BAR_WRITE, &rw), "when core 0 was reset, there is");
	close(fd);
	CHECK(!system("rmmod neuron_emu && modprobe neuron_emu"), "load for the tests that follow");
	return failed != 0;
}

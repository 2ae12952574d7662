// SPDX-License-Identifier: GPL-2.0-only
/* Windows of cores through registers and by DMA. */
#include "check.h"
#include "device.h"
#include "neuron_isa.h"

static struct neuron_native_geometry geo;
static struct neuron_ioctl_device_info info;
static uint64_t window;		/* of core 0 in BAR 0 */

static int bar(int fd, unsigned long cmd, uint32_t nr, uint64_t *addr, uint32_t *data,
	       uint32_t count)
{
	struct neuron_ioctl_bar_rw rw = {
		.bar = nr, .address = (void *)addr, .data = data, .count = count,
	};

	return call(fd, cmd, &rw);
}

static int program(int fd, uint64_t dst, void *buffer, uint64_t size, uint64_t offset)
{
	struct neuron_ioctl_program_engine_nc64 p = {
		.dst = dst, .buffer = buffer, .size = size, .offset = offset,
	};

	return call(fd, NEURON_IOCTL_PROGRAM_ENGINE_NC64, &p);
}

static int counters(int fd, uint64_t *addr, uint32_t *data, uint32_t count)
{
	struct neuron_ioctl_read_hw_counters c = {
		.address = (void *)addr, .data = data, .count = count,
	};

	return call(fd, NEURON_IOCTL_READ_HW_COUNTERS, &c);
}

static int owner(int fd, uint32_t core)
{
	struct neuron_native_core_stats s = { .size = sizeof(s), .nc_id = core };

	CHECK(!call(fd, NEURON_NATIVE_CORE_STATS, &s), "owner of core %u", core);
	return s.owner;
}

/* Registers of idle cores: looking takes nothing, a refused write neither. */
static void idle_cores(int fd)
{
	struct neuron_ioctl_semaphore sem = { .nc_id = 2 };
	uint64_t addr[2] = { window + geo.tpb_size, window + 2 * geo.tpb_size };
	uint64_t sems[2] = { addr[0] + NEURON_ISA_SEM_READ_OFF(3), addr[1] + NEURON_ISA_SEM_READ_OFF(3) };
	uint64_t dev[2] = { geo.tpb_base[1] + NEURON_ISA_SEM_READ_OFF(3),
			    geo.tpb_base[2] + NEURON_ISA_SEM_READ_OFF(3) };
	uint32_t data[2] = { 7, 7 };
	int ready[2], go[2];
	char c = 0;
	pid_t pid;

	CHECK(bar(fd, NEURON_IOCTL_BAR_READ, 0, addr, data, 2) == (is_checked() ? EPERM : 0),
	      "state buffers of idle cores: as a reset of the device leaves them");
	CHECK(!bar(fd, NEURON_IOCTL_BAR_READ, 0, sems, data, 2) && !data[0] && !data[1] &&
	      !owner(fd, 1) && !owner(fd, 2), "BAR_READ of idle cores does not take them");
	CHECK(!counters(fd, dev, data, 2) && !owner(fd, 1) && !owner(fd, 2),
	      "nor does READ_HW_COUNTERS");
	data[0] = 7;
	dev[1] = 0;
	CHECK(counters(fd, dev, data, 2) == EINVAL && data[0] == 7,
	      "a wrong address behind a good one: EINVAL, nothing is written");

	if (pipe(ready) || pipe(go))
		exit(1);
	pid = fork();
	if (!pid) {
		close(go[1]);
		_exit(call(open_node(O_RDWR), NEURON_IOCTL_SEMAPHORE_WRITE, &sem) ||
		      write(ready[1], &c, 1) != 1 || read(go[0], &c, 1) < 0);
	}
	CHECK(read(ready[0], &c, 1) == 1 && owner(fd, 2) == pid, "another process has core 2");
	CHECK(bar(fd, NEURON_IOCTL_BAR_WRITE, 0, addr, data, 2) == EBUSY && !owner(fd, 1),
	      "BAR_WRITE to cores 1 and 2: EBUSY, and core 1 is not taken");
	CHECK(bar(fd, NEURON_IOCTL_BAR_READ, 0, sems, data, 2) == EBUSY, "BAR_READ: EBUSY");
	close(go[1]);
	waitpid(pid, NULL, 0);
	CHECK(!bar(fd, NEURON_IOCTL_BAR_WRITE, 0, addr, data, 2) && owner(fd, 1) == getpid() &&
	      owner(fd, 2) == getpid(), "when it is gone, both are taken");
	close(ready[0]);
	close(ready[1]);
	close(go[0]);
}

static void somebody_else(void)
{
	int fd = open_node(O_RDWR);
	uint64_t addr = window + NEURON_ISA_SEM_READ_OFF(1), dev = geo.tpb_base[0];
	uint32_t data = 1;

	CHECK(bar(fd, NEURON_IOCTL_BAR_READ, 0, &addr, &data, 1) == EBUSY &&
	      bar(fd, NEURON_IOCTL_BAR_WRITE, 0, &addr, &data, 1) == EBUSY,
	      "registers of somebody else's core: EBUSY");
	CHECK(counters(fd, &dev, &data, 1) == EBUSY, "through device addresses: EBUSY");
	CHECK(program(fd, geo.tpb_base[0], &data, 4, 0) == EBUSY, "by DMA: EBUSY");
}

static uint64_t addr[8192];
static uint32_t data[8192];

static void registers(int fd)
{
	struct neuron_ioctl_semaphore sem = { .nc_id = 0, .semaphore_index = 1, .value = 77 };

	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &sem), "semaphore 1 = 77");
	addr[0] = window + NEURON_ISA_SEM_READ_OFF(1);
	addr[1] = window + 64;
	CHECK(!bar(fd, NEURON_IOCTL_BAR_READ, 0, addr, data, 2) && data[0] == 77 && !data[1],
	      "it can be read as a register");
	addr[0] = window + 128;
	data[0] = 5;
	data[1] = 0x12345678;
	CHECK(!bar(fd, NEURON_IOCTL_BAR_WRITE, 0, addr, data, 2), "write two registers");
	memset(data, 0, sizeof(data));
	CHECK(!bar(fd, NEURON_IOCTL_BAR_READ, 0, addr, data, 2) && data[0] == 5 &&
	      data[1] == 0x12345678, "and read them");
}

/* addr[0] is the register that has 5. */
static void wrong_registers(int fd)
{
	static const uint64_t wrong[] = {
		0, 8, 0xffff888000000000ull, 0xffffffff81000000ull, ~0ull, ~3ull, 1ull << 61,
	};
	uint32_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		addr[1] = wrong[i];
		data[0] = 6;
		CHECK(bar(fd, NEURON_IOCTL_BAR_READ, 0, addr, data, 2) == EINVAL &&
		      bar(fd, NEURON_IOCTL_BAR_WRITE, 0, addr, data, 2) == EINVAL &&
		      data[0] == 6, "vendor A1: register at %#llx: EINVAL",
		      (unsigned long long)wrong[i]);
	}
	CHECK(!bar(fd, NEURON_IOCTL_BAR_READ, 0, addr, data, 1) && data[0] == 5,
	      "vendor A24: one wrong address, and nothing is written");
	addr[0] = info.bar_address[0] + info.bar_size[0];
	CHECK(bar(fd, NEURON_IOCTL_BAR_WRITE, 0, addr, data, 1) == EINVAL,
	      "vendor A24: right behind the BAR: EINVAL");
	addr[0] = window + 2;
	CHECK(bar(fd, NEURON_IOCTL_BAR_WRITE, 0, addr, data, 1) == EINVAL,
	      "vendor A24: not aligned: EINVAL");
	addr[0] = window;
	CHECK(bar(fd, NEURON_IOCTL_BAR_READ, 2, addr, data, 1) == EINVAL &&
	      bar(fd, NEURON_IOCTL_BAR_READ, 256, addr, data, 1) == EINVAL &&
	      bar(fd, NEURON_IOCTL_BAR_READ, 1, addr, data, 1) == EINVAL,
	      "vendor A2: BAR 1, 2, 256: EINVAL");
}

static void wrong_arrays(int fd)
{
	CHECK(bar(fd, NEURON_IOCTL_BAR_READ, 0, addr, data, 0) == EINVAL &&
	      bar(fd, NEURON_IOCTL_BAR_READ, 0, addr, data, 101) == EINVAL &&
	      bar(fd, NEURON_IOCTL_BAR_READ, 0, addr, data, ~0u) == EINVAL,
	      "0, 101, 2^32 - 1 registers: EINVAL");
	CHECK(bar(fd, NEURON_IOCTL_BAR_READ, 0, (void *)8, data, 1) == EFAULT &&
	      bar(fd, NEURON_IOCTL_BAR_READ, 0, addr, (void *)8, 1) == EFAULT,
	      "bad arrays: EFAULT");
}

static void hw_counters(int fd)
{
	uint32_t i;

	for (i = 0; i < 8191; i++)
		addr[i] = geo.tpb_base[0] + NEURON_ISA_SEM_READ_OFF(1);
	CHECK(!counters(fd, addr, data, 8190) && data[0] == 77 && data[8189] == 77,
	      "8190 counters");
	CHECK(counters(fd, addr, data, 8191) == EINVAL && counters(fd, addr, data, ~0u) == EINVAL &&
	      counters(fd, addr, data, 0) == EINVAL, "vendor A6: 8191, 2^32 - 1, 0: EINVAL");
	addr[0] = geo.hbm[0].base;
	CHECK(counters(fd, addr, data, 1) == EINVAL, "device memory is no counter: EINVAL");
}

static void programs(int fd)
{
	static uint8_t in[300000], out[16];
	uint32_t i;

	for (i = 0; i < sizeof(in); i++)
		in[i] = i * 13 + (i >> 8);
	CHECK(!program(fd, geo.tpb_base[0], in, sizeof(in), 0), "300000 bytes into the window");
	addr[0] = window + 299996;
	CHECK(!bar(fd, NEURON_IOCTL_BAR_READ, 0, addr, (uint32_t *)out, 1) &&
	      !memcmp(out, in + 299996, 4), "they are there");
	CHECK(!program(fd, geo.tpb_base[0], in, 4, 128), "the offset counts for both sides");
	CHECK(program(fd, geo.hbm[0].base + (32 << 20), in, 64, 0) == EINVAL,
	      "vendor A11: device memory: EINVAL");
	CHECK(program(fd, geo.tpb_base[0] + geo.tpb_size - 32, in, 64, 0) == EINVAL,
	      "over the end of the window: EINVAL");
	CHECK(program(fd, geo.tpb_base[0], in, 64, 0ull - geo.tpb_base[0] - 16) == EINVAL ||
	      errno == EOVERFLOW, "around the end of the address space");
	CHECK(program(fd, geo.tpb_base[0], in, ~0ull, 0) == EOVERFLOW, "2^64 - 1 bytes: EOVERFLOW");
	CHECK(program(fd, geo.tpb_base[0], in, 0, 0) == EINVAL, "0 bytes: EINVAL");
	CHECK(program(fd, geo.tpb_base[0], (void *)8, 64, 0) == EFAULT, "bad buffer: EFAULT");
}

static void metrics(int fd)
{
	struct neuron_ioctl_post_metric metric = { .data = data, .data_size = 128 };

	CHECK(!call(fd, NEURON_IOCTL_POST_METRIC, &metric), "metric of 128 bytes");
	metric.data_size = 129;
	CHECK(call(fd, NEURON_IOCTL_POST_METRIC, &metric) == E2BIG, "of 129: E2BIG");
	metric.data_size = 0;
	CHECK(call(fd, NEURON_IOCTL_POST_METRIC, &metric) == EINVAL, "of 0: EINVAL");
	metric.data_size = 8;
	metric.data = (void *)8;
	CHECK(call(fd, NEURON_IOCTL_POST_METRIC, &metric) == EFAULT, "bad buffer: EFAULT");
}

int main(void)
{
	int fd = open_node(O_RDWR);

	geo = geometry(fd);
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_INFO, &info) && info.bar_size[0], "BAR 0 has a size");
	window = info.bar_address[0] + info.bar_size[0] - geo.nr_cores * geo.tpb_size;
	registers(fd);
	wrong_registers(fd);
	wrong_arrays(fd);
	hw_counters(fd);
	programs(fd);
	metrics(fd);
	in_child(somebody_else);
	if (geo.nr_cores > 2)
		idle_cores(fd);
	close(fd);
	return failed != 0;
}

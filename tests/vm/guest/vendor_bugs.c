// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that leak from, crash or hang the vendor's driver; each is named by its
 * row in tables 10.1 to 10.3 of the interface facts.
 */
#include "check.h"

static int all_zero(const void *p, size_t from, size_t to)
{
	const unsigned char *b = p;

	while (from < to && !b[from])
		from++;
	return from == to;
}

static void a20(int fd)
{
	struct neuron_ioctl_device_info info;
	struct neuron_ioctl_device_bdf bdf;
	struct neuron_ioctl_device_bdf_ext ext;
	struct {
		struct neuron_ioctl_get_apps_info h;
		struct neuron_app_info app;
	} apps;

	memset(&info, 0xff, sizeof(info));
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_INFO, &info) &&
	      all_zero(info.connected_devices, 4 * info.connected_device_count,
		       sizeof(info.connected_devices)), "vendor A20: DEVICE_INFO, unused part is 0");
	memset(&bdf, 0xff, sizeof(bdf));
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_BDF, &bdf) && all_zero(&bdf, 6, sizeof(bdf)),
	      "vendor A20: DEVICE_BDF, the bytes behind are 0");
	memset(&ext, 0xff, sizeof(ext));
	ext.nd_index = 0;
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_BDF_EXT, &ext) && all_zero(&ext, 14, sizeof(ext)),
	      "vendor A20: DEVICE_BDF_EXT, the bytes behind are 0");
	memset(&apps, 0xff, sizeof(apps));
	apps.h.apps_info_flags = APP_INFO_ALL;
	apps.h.capacity = 1;
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, &apps) && apps.h.size == 1 &&
	      all_zero(&apps.app, 5, offsetof(struct neuron_app_info, host_mem_size)),
	      "vendor A20: APPS_INFO, models that are not there are 0");
}

static void a21(int wr)
{
	struct neuron_ioctl_printk p = { .buffer = "", .size = 0 };
	int i, bad = 0;

	CHECK(call(wr, NEURON_IOCTL_PRINTK, &p) == EINVAL, "vendor A21: PRINTK of 0 bytes: EINVAL");
	p.size = 1;
	for (i = 0; i < 10000; i++)
		bad += call(wr, NEURON_IOCTL_PRINTK, &p) != 0;
	CHECK(!bad, "vendor A21: 10000 lines, most of them dropped");
}

static void b5(int wr)
{
	struct neuron_ioctl_device_bdf_ext ext = { 0 };
	static const unsigned int index[] = { 1, 63, 64, 65, 255, 256, 257, 1u << 31, ~0u };
	size_t i;

	for (i = 0; i < sizeof(index) / sizeof(index[0]); i++) {
		ext.nd_index = index[i];
		CHECK(call(wr, NEURON_IOCTL_DEVICE_BDF_EXT, &ext) == EINVAL,
		      "vendor B5: DEVICE_BDF_EXT of device %u: EINVAL", index[i]);
	}
}

static void foreign_core(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_ioctl_device_reset reset = { .nc_map = 1 };

	CHECK(call(fd, NEURON_IOCTL_NC_RESET, &reset) == EBUSY &&
	      call(fd, NEURON_IOCTL_DEVICE_RESET, NULL) == EBUSY,
	      "vendor A18: reset of somebody else's core or device: EBUSY");
}

static void a18(int fd)
{
	struct neuron_ioctl_semaphore sem = { .nc_id = 0, .semaphore_index = 2, .value = 5 };

	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &sem), "use core 0");
	in_child(foreign_core);
	sem.value = 0;
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_READ, &sem) && sem.value == 5,
	      "vendor A18: nothing happened to it");
}

static void c4(int wr)
{
	struct neuron_ioctl_nc_pid_state_dump dump = { .nc_id = 0 };
	int i, bad = 0;

	/* What is not given back is found when the module goes, or by the leak scan. */
	for (i = 0; i < 1000; i++)
		bad += call(wr, NEURON_IOCTL_NC_PID_STATE_DUMP, &dump) != 0;
	CHECK(!bad, "vendor C4: 1000 looks at a process");
}

static void c13(int fd)
{
	struct neuron_ioctl_crwl_nc_map m = { .nc_count = 0, .end_nc_index = 7 };

	CHECK(call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &m) == EINVAL,
	      "vendor C13: claim of no core: EINVAL");
	m.nc_count = 1;
	m.start_nc_index = m.end_nc_index = 5;
	CHECK(!call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &m) && m.bitmap == 0x20, "claim core 5");
	m.nc_count = 2;
	m.start_nc_index = 5;
	m.end_nc_index = 7;
	CHECK(!call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &m) && m.bitmap == 0xc0,
	      "vendor C13: the pair right behind it is found");
}

static void c14(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_ioctl_crwl_nc_map m = {
		.nc_count = 3, .start_nc_index = 5, .end_nc_index = 7,
	};

	CHECK(!call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &m),
	      "vendor C14: claims of a closed descriptor are gone");
}

static void c25(int fd)
{
	struct neuron_ioctl_crwl c = { .nc_id = 0 };

	CHECK(!call(fd, NEURON_IOCTL_CRWL_WRITER_ENTER, &c) &&
	      !call(fd, NEURON_IOCTL_CRWL_WRITER_DOWNGRADE, &c), "lock for a model");
	CHECK(call(fd, NEURON_IOCTL_CRWL_WRITER_ENTER, &c) == EALREADY, "again: EALREADY");
	CHECK(!call(fd, NEURON_IOCTL_CRWL_READER_ENTER, &c),
	      "vendor C25: EALREADY did not take the lock");
}

int main(void)
{
	int fd = open_node(O_RDWR), wr = open_node(O_WRONLY);

	a18(fd);
	a20(fd);
	a21(wr);
	b5(wr);
	c4(wr);
	c13(fd);
	c25(fd);
	close(fd);
	c14();
	close(wr);
	return failed != 0;
}

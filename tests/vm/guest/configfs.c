// SPDX-License-Identifier: GPL-2.0-only
/* Devices that are made and removed through configfs. */
#include <sys/klog.h>

#include "emu.h"

/* Is it in the kernel log? */
static int logged(const char *text)
{
	static char log[1 << 20];
	int n = klogctl(3, log, sizeof(log) - 1);

	log[n < 0 ? 0 : n] = 0;
	return strstr(log, text) != NULL;
}

static const char *sysfs(int number, const char *file)
{
	return text_read(emu_file(number, file));
}

static void test_defaults(void)
{
	CHECK(!emu_mkdir("a"), "mkdir");
	CHECK(emu_mkdir("a") == EEXIST, "the same again: EEXIST");
	CHECK(!strcmp(emu_get("a", "arch"), "trn2") && !strcmp(emu_get("a", "hbm_size"), "0") &&
	      !strcmp(emu_get("a", "index"), "-1") && !strcmp(emu_get("a", "neighbours"), "") &&
	      !strcmp(emu_get("a", "live"), "0") && !strcmp(emu_get("a", "dev_name"), "none"),
	      "what a device is like by default");
	CHECK(emu_set("a", "dev_name", "x") == EACCES || getuid() == 0, "dev_name is read only");
	CHECK(emu_set("a", "live", "0") == EPERM, "off again: EPERM");
}

static void test_refused(void)
{
	CHECK(emu_set("a", "arch", "tpu") == EINVAL, "unknown architecture: EINVAL");
	CHECK(logged("neuron_emu: a/arch: \"tpu\" is refused: no valid value (error -22)\n"),
	      "the kernel log says what was refused");
	CHECK(emu_set("a", "index", "64") == EINVAL, "number 64: EINVAL");
	CHECK(emu_set("a", "index", "-2") == EINVAL, "number -2: EINVAL");
	CHECK(emu_set("a", "serial", "xyz") == EINVAL, "serial number that is none: EINVAL");
	CHECK(emu_set("a", "neighbours", "1 2 3 4 5 6 7 8 9") == E2BIG, "9 neighbours: E2BIG");
	CHECK(emu_set("a", "neighbours", "64") == EINVAL, "neighbour 64: EINVAL");
	CHECK(!emu_set("a", "hbm_size", "1") && emu_set("a", "live", "1") == EINVAL,
	      "1 MiB of memory: EINVAL");
	CHECK(!emu_set("a", "hbm_size", "128") && !emu_set("a", "index", "0") &&
	      emu_set("a", "live", "1") == EBUSY, "a number in use: EBUSY");
	CHECK(!strcmp(emu_get("a", "live"), "0"), "nothing of it made a device");
}

static void test_flags(void)
{
	static const char *const names[] = { "card_like", "checks", "live" };
	static const char *const words[] = { "11", "1x", "2", "y", "on", "0x", "-1" };

	for (int i = 0; i < 3; i++)
		for (unsigned int k = 0; k < sizeof(words) / sizeof(*words); k++)
			CHECK(emu_set("a", names[i], words[k]) == EINVAL, "%s \"%s\": EINVAL", names[i],
			      words[k]);
	CHECK(!strcmp(emu_get("a", "card_like"), "0") && !strcmp(emu_get("a", "checks"), "1") &&
	      !strcmp(emu_get("a", "live"), "0"), "nothing changed");
	CHECK(!emu_set("a", "checks", "0x0") && !strcmp(emu_get("a", "checks"), "0") &&
	      !emu_set("a", "checks", "0x1") && !strcmp(emu_get("a", "checks"), "1"),
	      "0x1 is 1");
}

static void test_live(void)
{
	struct neuron_native_geometry geo;
	int fd, number = -1;

	CHECK(!emu_set("a", "arch", "trn1") && !emu_set("a", "index", "7") &&
	      !emu_set("a", "serial", "19fcda00f5ff6eb9") &&
	      !emu_set("a", "neighbours", "0, 3,5"), "set up a trn1");
	CHECK(!emu_set("a", "live", "1"), "on");
	CHECK(logged("neuron7: added: Trainium1, 2 cores, 256 MiB in 2 HBMs, emulated\n"),
	      "the kernel log says what was added");
	CHECK(sscanf(emu_get("a", "dev_name"), "neuron%d", &number) == 1 && number == 7,
	      "it is neuron7");
	CHECK(emu_set("a", "live", "1") == EPERM, "on again: EPERM");
	CHECK(emu_set("a", "arch", "trn2") == EBUSY && emu_set("a", "hbm_size", "0") == EBUSY &&
	      emu_set("a", "index", "1") == EBUSY && emu_set("a", "serial", "1") == EBUSY &&
	      emu_set("a", "neighbours", "1") == EBUSY, "nothing changes while it is on: EBUSY");
	CHECK(!strcmp(sysfs(7, "emulated"), "1"), "it says that it is no card");
	CHECK(!strcmp(sysfs(7, "info/architecture/device_name"), "Trainium1"), "name of the chip");
	CHECK(!strcmp(sysfs(7, "info/serial_number"), "19fcda00f5ff6eb9"), "serial number");
	CHECK(!strcmp(sysfs(7, "connected_devices"), "0, 3, 5"), "neighbours");
	fd = emu_open(7, O_RDWR);
	CHECK(fd >= 0, "open");
	geo = geometry(fd);
	CHECK(geo.nr_cores == 2 && geo.hbm[1].size == 128 << 20, "geometry");
	close(fd);
	CHECK(!emu_set("a", "live", "0") && !strcmp(emu_get("a", "dev_name"), "none"), "off");
	CHECK(emu_open(7, O_RDWR) < 0 && errno == ENOENT, "the node is gone");
	CHECK(logged("neuron7: removed: Trainium1, 2 cores, 256 MiB in 2 HBMs, emulated\n"),
	      "the kernel log says what was removed");
	CHECK(!emu_set("a", "live", "1"), "on");
	CHECK(!rmdir(emu_path("a", "")), "rmdir while it is on");
	CHECK(emu_open(7, O_RDWR) < 0 && errno == ENOENT, "removes the device");
}

static void test_serial(void)
{
	char serial[32];

	snprintf(serial, sizeof(serial), "%s", sysfs(0, "info/serial_number"));
	CHECK(!emu_mkdir("b") && !emu_set("b", "serial", serial) && emu_set("b", "live", "1") == EEXIST,
	      "the serial number of a device from the module's parameters: EEXIST");
	CHECK(!emu_set("b", "serial", "ffffffffffffffff") && !emu_set("b", "live", "1"), "a free one");
	CHECK(!emu_mkdir("c") && !emu_set("c", "serial", "ffffffffffffffff") &&
	      emu_set("c", "live", "1") == EEXIST, "not twice: EEXIST");
	CHECK(!emu_set("b", "live", "0") && !emu_set("c", "live", "1"), "when the first is gone");
	CHECK(!rmdir(emu_path("b", "")) && !rmdir(emu_path("c", "")), "rmdir");
}

static void test_card_like(void)
{
	CHECK(!emu_mkdir("b") && !emu_set("b", "card_like", "1") && !emu_set("b", "index", "59"),
	      "like a card");
	/* User Mode Linux has no DMA. */
	if (emu_set("b", "live", "1"))
		printf("ok - card_like # SKIP no DMA\n");
	else
		CHECK(logged("neuron59: added: Trainium2, 8 cores, 98304 MiB in 4 HBMs, emulated\n"),
		      "it is no PCI device");
	CHECK(!rmdir(emu_path("b", "")), "rmdir");
}

static void test_many(void)
{
	char name[16];
	int i, bad = 0;

	for (i = 0; i < 63; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		bad += emu_mkdir(name) || emu_set(name, "live", "1");
	}
	CHECK(!bad, "63 devices beside the first");
	CHECK(!emu_mkdir("more") && emu_set("more", "live", "1") == ENOSPC, "one more: ENOSPC");
	rmdir(emu_path("more", ""));
	for (i = 0; i < 63; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		bad += !!rmdir(emu_path(name, ""));
	}
	CHECK(!bad, "and gone");
}

int main(void)
{
	test_defaults();
	test_refused();
	test_flags();
	test_live();
	test_serial();
	test_card_like();
	test_many();
	return failed != 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Finding devices, with a udev that fails at will; and the system calls on devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <libudev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <neuron/neuron.h>

#include "src/device/sys.h"

/* ---- udev ------------------------------------------------------------------------------ */

struct udev_device {
	const char *name, *node, *path, *action, *cores;
};

/* What there is, in no order. */
static const struct udev_device present[] = {
	{ "neuron10", "/dev/neuron10", "/sys/devices/a/neuron10", NULL, "8" },
	{ "neuron2", NULL, NULL, NULL, NULL },
	{ "neuron", "/dev/neuron", "/sys/neuron", NULL, NULL },
	{ "neuron1x", NULL, "/sys/neuron1x", NULL, NULL },
	{ "neuron99999999", NULL, "/sys/neuron99999999", NULL, NULL },
	{ "other3", NULL, "/sys/other3", NULL, NULL },
};

#define NR_PRESENT (sizeof(present) / sizeof(present[0]))

static const struct udev_device events[] = {
	{ "neuron0", "/dev/neuron0", "/sys/neuron0", "add", "2" },
	{ "neuron-core", NULL, NULL, "add", NULL },
	{ "neuron0", "/dev/neuron0", "/sys/neuron0", "change", "2" },
	{ "neuron0", "/dev/neuron0", "/sys/neuron0", NULL, "2" },
	{ "neuron0", "/dev/neuron0", "/sys/neuron0", "remove", "2" },
};

static struct {
	unsigned int fail_at;	/* the n'th call that can fail does */
	int refs;		/* objects that were handed out */
	size_t nr_present, next_event, nr_events;
	int pipe[2];
} fake = { .nr_present = NR_PRESENT };

static bool fails(void)
{
	return fake.fail_at && !--fake.fail_at;
}

static void *hand_out(void *object)
{
	if (fails()) {
		errno = ENFILE;
		return NULL;
	}
	fake.refs++;
	return object;
}

static void *take_back(void *object)
{
	if (object)
		fake.refs--;
	return NULL;
}

void *__real_calloc(size_t n, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return fails() ? NULL : __real_reallocarray(p, n, size);
}

struct udev *udev_new(void)
{
	return hand_out(&fake);
}

struct udev *udev_unref(struct udev *udev)
{
	return take_back(udev);
}

struct udev_enumerate *udev_enumerate_new(struct udev *udev)
{
	(void)udev;
	return hand_out(&fake);
}

struct udev_enumerate *udev_enumerate_unref(struct udev_enumerate *e)
{
	return take_back(e);
}

int udev_enumerate_add_match_subsystem(struct udev_enumerate *e, const char *subsystem)
{
	(void)e;
	assert_string_equal(subsystem, "neuron_device");
	return fails() ? -EIO : 0;
}

int udev_enumerate_scan_devices(struct udev_enumerate *e)
{
	(void)e;
	return fails() ? -EIO : 0;
}

/* Entries are the devices themselves. */
struct udev_list_entry *udev_enumerate_get_list_entry(struct udev_enumerate *e)
{
	(void)e;
	return fake.nr_present ? (struct udev_list_entry *)(uintptr_t)present : NULL;
}

struct udev_list_entry *udev_list_entry_get_next(struct udev_list_entry *entry)
{
	const struct udev_device *next = (const struct udev_device *)entry + 1;

	return next < present + fake.nr_present ? (struct udev_list_entry *)(uintptr_t)next : NULL;
}

const char *udev_list_entry_get_name(struct udev_list_entry *entry)
{
	return ((const struct udev_device *)entry)->name;
}

struct udev_device *udev_device_new_from_syspath(struct udev *udev, const char *syspath)
{
	(void)udev;
	for (size_t i = 0; i < NR_PRESENT; i++)
		if (present[i].name == syspath)
			return hand_out((void *)(uintptr_t)&present[i]);
	fail();
	return NULL;
}

struct udev_device *udev_device_unref(struct udev_device *dev)
{
	return take_back(dev);
}

const char *udev_device_get_sysname(struct udev_device *dev)
{
	return dev->name;
}

const char *udev_device_get_devnode(struct udev_device *dev)
{
	return dev->node;
}

const char *udev_device_get_syspath(struct udev_device *dev)
{
	return dev->path;
}

const char *udev_device_get_action(struct udev_device *dev)
{
	return dev->action;
}

const char *udev_device_get_sysattr_value(struct udev_device *dev, const char *attr)
{
	if (!strcmp(attr, "core_count"))
		return dev->cores;
	return dev->cores && strstr(attr, "device_name") ?
	       "0123456789012345678901234567890123456789" : NULL;
}

struct udev_monitor *udev_monitor_new_from_netlink(struct udev *udev, const char *name)
{
	(void)udev;
	assert_true(!strcmp(name, "udev") || !strcmp(name, "kernel"));
	return hand_out(&fake);
}

struct udev_monitor *udev_monitor_unref(struct udev_monitor *monitor)
{
	return take_back(monitor);
}

int udev_monitor_filter_add_match_subsystem_devtype(struct udev_monitor *monitor,
						    const char *subsystem, const char *devtype)
{
	(void)monitor;
	assert_string_equal(subsystem, "neuron_device");
	assert_null(devtype);
	return fails() ? -EINVAL : 0;
}

int udev_monitor_enable_receiving(struct udev_monitor *monitor)
{
	(void)monitor;
	return fails() ? -EPERM : 0;
}

int udev_monitor_get_fd(struct udev_monitor *monitor)
{
	(void)monitor;
	return fake.pipe[0];
}

/* One for each byte in the pipe. */
struct udev_device *udev_monitor_receive_device(struct udev_monitor *monitor)
{
	char byte;

	(void)monitor;
	if (fake.next_event == fake.nr_events || read(fake.pipe[0], &byte, 1) != 1)
		return NULL;
	return hand_out((void *)(uintptr_t)&events[fake.next_event++]);
}

/* ---- tests ----------------------------------------------------------------------------- */

static void test_list(void **state)
{
	struct neuron_device_entry *list = NULL;
	size_t n = 77;

	(void)state;
	assert_int_equal(neuron_device_list(NULL, &n), -EINVAL);
	assert_int_equal(neuron_device_list(&list, NULL), -EINVAL);
	assert_int_equal(neuron_device_list(&list, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(list[0].index, 2);
	assert_string_equal(list[0].path, "/dev/neuron2");
	assert_string_equal(list[0].syspath, "");
	assert_int_equal(list[0].nr_cores, 0);
	assert_int_equal(list[1].index, 10);
	assert_string_equal(list[1].syspath, "/sys/devices/a/neuron10");
	assert_int_equal(list[1].nr_cores, 8);
	assert_string_equal(list[1].name, "0123456789012345678901234567890");
	assert_string_equal(list[1].arch, "");
	neuron_device_list_free(list);
	fake.nr_present = 0;
	assert_int_equal(neuron_device_list(&list, &n), 0);
	assert_null(list);
	assert_int_equal(n, 0);
	fake.nr_present = NR_PRESENT;
	assert_int_equal(fake.refs, 0);
}

/* Whatever fails, the outputs stay and nothing is kept. A device can go meanwhile. */
static void test_list_fails(void **state)
{
	unsigned int i, failures = 0, fewer = 0;

	(void)state;
	for (i = 1;; i++) {
		struct neuron_device_entry *list = (void *)1;
		size_t n = 77;
		int ret;

		fake.fail_at = i;
		ret = neuron_device_list(&list, &n);
		assert_int_equal(fake.refs, 0);
		if (fake.fail_at)
			neuron_device_list_free(list);
		if (fake.fail_at)
			break;
		if (ret) {
			assert_true(ret == -ENOMEM || ret == -EIO);
			assert_ptr_equal(list, (void *)1);
			assert_int_equal(n, 77);
			failures++;
		} else {
			fewer += n == 1;
			assert_in_range(n, 1, 2);
			neuron_device_list_free(list);
		}
	}
	fake.fail_at = 0;
	/* There is room for all of them at once. */
	assert_int_equal(failures, 4 + 1);
	assert_int_equal(fewer, 2);
}

static void test_monitor(void **state)
{
	struct neuron_monitor_event event;
	struct neuron_monitor *m = NULL;

	(void)state;
	assert_int_equal(pipe2(fake.pipe, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(neuron_monitor_open(NULL), -EINVAL);
	for (unsigned int i = 1; i <= 5; i++) {
		static const int errors[] = { -ENOMEM, -ENFILE, -ENFILE, -EINVAL, -EPERM };

		fake.fail_at = i;
		assert_int_equal(neuron_monitor_open(&m), errors[i - 1]);
		assert_null(m);
		assert_int_equal(fake.refs, 0);
	}
	assert_int_equal(neuron_monitor_open(&m), 0);
	assert_int_equal(neuron_monitor_fd(m), fake.pipe[0]);
	assert_int_equal(neuron_monitor_read(m, &event, 10), -ETIMEDOUT);
	fake.nr_events = sizeof(events) / sizeof(events[0]);
	assert_int_equal(write(fake.pipe[1], "12345", 5), 5);
	assert_int_equal(neuron_monitor_read(m, &event, 1000), 0);
	assert_int_equal(event.action, NEURON_DEVICE_ADDED);
	assert_int_equal(event.entry.index, 0);
	assert_int_equal(event.entry.nr_cores, 2);
	/* What is no device is passed over. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(neuron_monitor_read(m, &event, -1), 0);
		assert_int_equal(event.action, NEURON_DEVICE_CHANGED);
	}
	assert_int_equal(neuron_monitor_read(m, &event, 0), 0);
	assert_int_equal(event.action, NEURON_DEVICE_REMOVED);
	assert_int_equal(neuron_monitor_read(m, &event, 0), -ETIMEDOUT);
	neuron_monitor_close(m);
	neuron_monitor_close(NULL);
	assert_int_equal(fake.refs, 0);
	close(fake.pipe[0]);
	close(fake.pipe[1]);
}

static void test_sys(void **state)
{
	char path[] = "/tmp/neuron-sys-XXXXXX", *map;
	int fd = mkstemp(path), n = -1, other;
	uint64_t offset;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8192), 0);
	other = neuron_sys_open(path, O_RDWR);
	assert_true(other >= 0);
	assert_int_equal(fcntl(other, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	map = neuron_sys_mmap(other, 4096, 4096);
	assert_non_null(map);
	map[5] = 'x';
	assert_int_equal(pread(fd, path + 1, 1, 4096 + 5), 1);
	assert_int_equal(path[1], 'x');
	path[1] = 't';
	assert_int_equal(neuron_sys_mapping(other, map + 5, &offset), 0);
	assert_int_equal(offset, 4096 + 5);
	assert_int_equal(neuron_sys_mapping(other, map + 4095, &offset), 0);
	assert_int_equal(offset, 8191);
	assert_int_equal(neuron_sys_mapping(other, path, &offset), -EEXIST);
	assert_int_equal(neuron_sys_munmap(map, 4096), 0);
	assert_int_equal(neuron_sys_mapping(other, map, &offset), -ENOENT);
	assert_null(neuron_sys_mmap(other, 1, 4096));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(neuron_sys_ioctl(other, FIONREAD, &n), 0);
	assert_int_equal(n, 8192);
	assert_int_equal(neuron_sys_close(other), 0);
	assert_int_equal(neuron_sys_close(other), -1);
	assert_int_equal(neuron_sys_ioctl(other, FIONREAD, &n), -1);
	assert_int_equal(errno, EBADF);
	unlink(path);
	close(fd);
	assert_int_equal(neuron_sys_open(path, O_RDWR), -1);
	assert_int_equal(errno, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_list_fails),
		cmocka_unit_test(test_monitor),
		cmocka_unit_test(test_sys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

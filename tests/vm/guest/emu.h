/* SPDX-License-Identifier: GPL-2.0-only */
/* Software devices that a test makes, changes and removes. */
#ifndef EMU_TEST_H
#define EMU_TEST_H

#include <sys/mount.h>
#include <sys/stat.h>

#include "check.h"

#define EMU_DIR	"/sys/kernel/config/neuron_emu/"

/* 0 or the errno. */
static inline int text_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		err = errno;
	close(fd);
	return err;
}

/* The text without the newline; empty if it cannot be read. */
static inline const char *text_read(const char *path)
{
	static char text[8][512];
	static unsigned int next;
	char *buf = text[next++ % 8];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(text[0]) - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return buf;
}

static inline const char *emu_path(const char *name, const char *attr)
{
	static char path[4][256];
	static unsigned int next;
	char *buf = path[next++ % 4];

	snprintf(buf, sizeof(path[0]), EMU_DIR "%s%s%s", name, *attr ? "/" : "", attr);
	return buf;
}

static inline int emu_set(const char *name, const char *attr, const char *value)
{
	return text_write(emu_path(name, attr), value);
}

static inline const char *emu_get(const char *name, const char *attr)
{
	return text_read(emu_path(name, attr));
}

/* A directory for a device; 0 or the errno. */
static inline int emu_mkdir(const char *name)
{
	mount("configfs", "/sys/kernel/config", "configfs", 0, NULL);
	return mkdir(emu_path(name, ""), 0755) ? errno : 0;
}

/* A small live device of its own.  Returns its number. */
static inline int emu_add(const char *name)
{
	int number = -1;

	if (emu_mkdir(name) || emu_set(name, "hbm_size", "256") || emu_set(name, "live", "1") ||
	    sscanf(emu_get(name, "dev_name"), "neuron%d", &number) != 1) {
		printf("not ok - software device %s (errno %d)\n", name, errno);
		exit(1);
	}
	return number;
}

static inline void emu_del(const char *name)
{
	emu_set(name, "live", "0");
	CHECK(!rmdir(emu_path(name, "")), "rmdir %s", name);
}

/* A file of a device: in sysfs, and what injects faults. */
static inline const char *emu_file(int number, const char *name)
{
	static char path[4][192];
	static unsigned int next;
	char *buf = path[next++ % 4];

	snprintf(buf, sizeof(path[0]), "/sys/devices/virtual/neuron_device/neuron%d/%s", number,
		 name);
	return buf;
}

static inline const char *emu_knob(int number, const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/neuron_emu/neuron%d/%s", number, name);
	return path;
}

static inline unsigned long long emu_value(int number, const char *name)
{
	return strtoull(text_read(emu_file(number, name)), NULL, 10);
}

/* The device reports in its own time. */
static inline int emu_comes_to(int number, const char *name, unsigned long long want)
{
	int i;

	for (i = 0; i < 3000 && emu_value(number, name) != want; i++)
		usleep(10000);
	return emu_value(number, name) == want;
}

static inline int emu_open(int number, int flags)
{
	char node[32];

	snprintf(node, sizeof(node), "/dev/neuron%d", number);
	return open(node, flags | O_CLOEXEC);
}

#endif

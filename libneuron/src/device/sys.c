// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../common/maps.h"
#include "../../common/util.h"
#include "sys.h"

int neuron_sys_open(const char *path, int flags)
{
	return open(path, flags | O_CLOEXEC);
}

int neuron_sys_close(int fd)
{
	return close(fd);
}

int neuron_sys_ioctl(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg);
}

void *neuron_sys_mmap(int fd, uint64_t offset, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	return p == MAP_FAILED ? NULL : p;
}

int neuron_sys_munmap(void *address, size_t bytes)
{
	return munmap(address, bytes);
}

int neuron_sys_mapping(int fd, const void *address, uint64_t *offset)
{
	struct mapped m;
	struct stat st;
	int ret = maps_find("/proc/self/maps", (uintptr_t)address, &m);

	if (ret <= 0)
		return ret ?: -ENOENT;
	if (fstat(fd, &st) || st.st_dev != m.dev || st.st_ino != m.inode)
		return -EEXIST;
	*offset = m.offset;
	return 0;
}

size_t neuron_sys_read(const char *path, char *text, size_t size)
{
	return read_short(path, text, size);
}

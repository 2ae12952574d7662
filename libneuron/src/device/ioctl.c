// SPDX-License-Identifier: LGPL-2.1-or-later
/* How the library talks to the driver. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "sys.h"

int fd_ioctl(int fd, unsigned long cmd, void *arg)
{
	int ret;

	do {
		ret = neuron_sys_ioctl(fd, cmd, arg);
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return -errno;
	return ret > 0 ? -EIO : 0;
}

int device_ioctl(const struct neuron_device *device, unsigned long cmd, void *arg)
{
	return device_inherited(device) ? -EACCES : fd_ioctl(device->fd, cmd, arg);
}

bool device_line(const struct neuron_device *device, const char *file, char *text, size_t size)
{
	char path[80];

	snprintf(path, sizeof(path), "/sys/devices/virtual/neuron_device/neuron%u/%s", device->index,
		 file);
	if (!neuron_sys_read(path, text, size))
		return false;
	text[strcspn(text, "\n")] = '\0';
	return true;
}

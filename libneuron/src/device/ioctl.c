// SPDX-License-Identifier: LGPL-2.1-or-later
/* How the library talks to the driver. */
#include <errno.h>

#include "device.h"
#include "sys.h"

int device_ioctl(const struct neuron_device *device, unsigned long cmd, void *arg)
{
	int ret;

	if (device_inherited(device))
		return -EACCES;
	do {
		ret = neuron_sys_ioctl(device->fd, cmd, arg);
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return -errno;
	return ret > 0 ? -EIO : 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Eventfds that callers name. */
#include <linux/eventfd.h>

#include "eventfd.h"

/**
 * neuron_eventfd_get() - eventfd that a caller named
 * @fd: descriptor; -1: none
 * @out: the eventfd, to be put; or NULL
 *
 * Return: 0; -EBADF, -EINVAL no eventfd.
 */
int neuron_eventfd_get(int fd, struct eventfd_ctx **out)
{
	*out = NULL;
	if (fd == -1)
		return 0;
	if (fd < 0)
		return -EINVAL;
	*out = eventfd_ctx_fdget(fd);
	if (!IS_ERR(*out))
		return 0;
	fd = PTR_ERR(*out);
	*out = NULL;
	return fd;
}

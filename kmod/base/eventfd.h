/* SPDX-License-Identifier: GPL-2.0-only */
/* Eventfds that callers name. */
#ifndef NEURON_BASE_EVENTFD_H
#define NEURON_BASE_EVENTFD_H

#include <linux/types.h>

struct eventfd_ctx;

int neuron_eventfd_get(int fd, struct eventfd_ctx **out);

#endif

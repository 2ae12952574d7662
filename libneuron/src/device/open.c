// SPDX-License-Identifier: LGPL-2.1-or-later
/* Devices: opening, geometry, closing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datastore.h"
#include "device.h"
#include "mapping.h"
#include "symbols.h"
#include "sys.h"

_Static_assert(NEURON_MAX_HBMS == NEURON_NATIVE_MAX_HBMS, "limits of the driver");
_Static_assert(NEURON_MAX_CORES == NEURON_NATIVE_MAX_CORES, "limits of the driver");

static int read_geometry(struct neuron_device *device)
{
	struct neuron_native_geometry g = { .size = sizeof(g) };
	struct neuron_geometry *out = &device->geometry;
	int ret = device_ioctl(device, NEURON_NATIVE_GET_GEOMETRY, &g);

	if (ret)
		return ret;
	/* Everything below is used as an index or a divisor later. */
	if (!g.nr_cores || g.nr_cores > NEURON_MAX_CORES || !g.nr_hbms ||
	    g.nr_hbms > NEURON_MAX_HBMS || !g.engines_per_core || !g.nr_queues ||
	    (uint64_t)g.nr_cores * g.engines_per_core > g.nr_dma_engines)
		return -EPROTO;
	out->arch = g.arch;
	out->nr_cores = g.nr_cores;
	out->nr_hbms = g.nr_hbms;
	out->nr_dma_engines = g.nr_dma_engines;
	out->engines_per_core = g.engines_per_core;
	out->nr_queues = g.nr_queues;
	out->nr_semaphores = g.nr_semaphores;
	out->nr_events = g.nr_events;
	out->nr_topsp = g.nr_topsp;
	out->nr_nq_types = g.nr_nq_types;
	out->nr_nq_engines = g.nr_nq_engines;
	out->isa_version = g.isa_version;
	out->host_window = g.host_window;
	out->tpb_size = g.tpb_size;
	out->sbuf_size = g.sbuf_size;
	for (unsigned int i = 0; i < g.nr_hbms; i++) {
		out->hbm[i].base = g.hbm[i].base;
		out->hbm[i].size = g.hbm[i].size;
	}
	for (unsigned int i = 0; i < g.nr_cores; i++) {
		if (g.core_hbm[i] >= g.nr_hbms)
			return -EPROTO;
		out->tpb_base[i] = g.tpb_base[i];
		out->core_hbm[i] = g.core_hbm[i];
	}
	return 0;
}

/* Is what the environment can turn off with 0 on? */
static bool wanted(const char *name)
{
	const char *text = secure_getenv(name);

	return !text || strcmp(text, "0");
}

/* @observed: the number of a device that is only looked at, whose driver does not tell it then. */
static int open_fd(int fd, const unsigned int *observed, struct neuron_device **device)
{
	struct neuron_ioctl_host_device_id id = { .host_device_id = observed ? *observed : 0 };
	struct neuron_device *d;
	int ret;

	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->fd = fd;
	process_remember();
	d->pid = process_id();
	atomic_init(&d->refs, 1);
	ret = read_geometry(d);
	if (!ret && !observed)
		ret = device_ioctl(d, NEURON_IOCTL_HOST_DEVICE_ID, &id);
	if (ret) {
		free(d);
		return ret;
	}
	d->index = id.host_device_id;
	atomic_init(&d->compact, wanted("NEURON_COMPACT"));
	d->remember = wanted("NEURON_REMEMBER");
	pthread_mutex_init(&d->log_lock, NULL);
	pthread_mutex_init(&d->left_lock, NULL);
	pthread_mutex_init(&d->reserves_lock, NULL);
	pthread_mutex_init(&d->symbols_lock, NULL);
	pthread_mutex_init(&d->mappings_lock, NULL);
	pthread_mutex_init(&d->scratchpads_lock, NULL);
	pthread_mutex_init(&d->watches_lock, NULL);
	pthread_mutex_init(&d->copies_lock, NULL);
	*device = d;
	return 0;
}

NEURON_EXPORT int neuron_device_open_fd(int fd, struct neuron_device **device)
{
	return fd < 0 || !device ? -EINVAL : open_fd(fd, NULL, device);
}

static int open_node(unsigned int index, bool observe, struct neuron_device **device)
{
	char path[32];
	int fd, ret;

	if (!device)
		return -EINVAL;
	snprintf(path, sizeof(path), "/dev/neuron%u", index);
	do {
		fd = neuron_sys_open(path, observe ? O_WRONLY : O_RDWR);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return -errno;
	ret = open_fd(fd, observe ? &index : NULL, device);
	if (ret)
		neuron_sys_close(fd);
	return ret;
}

NEURON_EXPORT int neuron_device_open(unsigned int index, struct neuron_device **device)
{
	return open_node(index, false, device);
}

NEURON_EXPORT int neuron_device_observe(unsigned int index, struct neuron_device **device)
{
	return open_node(index, true, device);
}

void device_put(struct neuron_device *device)
{
	struct symbols *symbols;

	if (atomic_fetch_sub_explicit(&device->refs, 1, memory_order_acq_rel) != 1)
		return;
	device_forget_leftovers(device);
	stats_close(device);
	if (device->fd >= 0)
		neuron_sys_close(device->fd);
	/* In a child it may be one that a thread was making longer. */
	if (!device_inherited(device))
		free(device->log);
	while ((symbols = device->symbols)) {
		device->symbols = symbols->next;
		free(symbols);
	}
	mappings_free(device);
	pthread_mutex_destroy(&device->log_lock);
	pthread_mutex_destroy(&device->left_lock);
	pthread_mutex_destroy(&device->reserves_lock);
	pthread_mutex_destroy(&device->symbols_lock);
	pthread_mutex_destroy(&device->mappings_lock);
	pthread_mutex_destroy(&device->scratchpads_lock);
	pthread_mutex_destroy(&device->watches_lock);
	pthread_mutex_destroy(&device->copies_lock);
	free(device);
}

NEURON_EXPORT void neuron_device_close(struct neuron_device *device)
{
	if (device)
		device_put(device);
}

NEURON_EXPORT void neuron_device_abandon(struct neuron_device *device)
{
	if (!device_inherited(device) || device->fd < 0)
		return;
	neuron_sys_close(device->fd);
	device->fd = -1;
}

NEURON_EXPORT int neuron_device_fd(const struct neuron_device *device)
{
	return device->fd;
}

NEURON_EXPORT unsigned int neuron_device_index(const struct neuron_device *device)
{
	return device->index;
}

NEURON_EXPORT const struct neuron_geometry *
neuron_device_geometry(const struct neuron_device *device)
{
	return &device->geometry;
}

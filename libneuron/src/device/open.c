// SPDX-License-Identifier: LGPL-2.1-or-later
/* Devices: open, geometry, reset, statistics. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "stats.h"
#include "sys.h"

_Static_assert(NEURON_MAX_HBMS == NEURON_NATIVE_MAX_HBMS, "limits of the driver");
_Static_assert(NEURON_MAX_CORES == NEURON_NATIVE_MAX_CORES, "limits of the driver");
_Static_assert(NEURON_MAX_CATEGORIES == NEURON_NATIVE_MAX_CATEGORIES, "limits of the driver");
_Static_assert(NEURON_MAX_ORDERS == NEURON_NATIVE_MAX_ORDERS, "limits of the driver");

int do_ioctl(const struct neuron_device *device, unsigned long cmd, void *arg)
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

int opts_copy(void *ours, size_t our_size, const void *theirs)
{
	const unsigned char *bytes = theirs;
	size_t size;

	memset(ours, 0, our_size);
	if (!theirs)
		return 0;
	memcpy(&size, theirs, sizeof(size));
	if (size < sizeof(size))
		return -EINVAL;
	for (size_t i = our_size; i < size; i++)
		if (bytes[i])
			return -E2BIG;
	memcpy(ours, theirs, size < our_size ? size : our_size);
	return 0;
}

static int read_geometry(struct neuron_device *device)
{
	struct neuron_native_geometry g = { .size = sizeof(g) };
	struct neuron_geometry *out = &device->geometry;
	int ret = do_ioctl(device, NEURON_NATIVE_GET_GEOMETRY, &g);

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

NEURON_EXPORT int neuron_device_open_fd(int fd, struct neuron_device **device)
{
	struct neuron_ioctl_host_device_id id = { 0 };
	struct neuron_device *d;
	int ret;

	if (fd < 0 || !device)
		return -EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->fd = fd;
	d->pid = getpid();
	atomic_init(&d->refs, 1);
	ret = read_geometry(d);
	if (!ret)
		ret = do_ioctl(d, NEURON_IOCTL_HOST_DEVICE_ID, &id);
	if (ret) {
		free(d);
		return ret;
	}
	d->index = id.host_device_id;
	pthread_mutex_init(&d->log_lock, NULL);
	*device = d;
	return 0;
}

NEURON_EXPORT int neuron_device_open(unsigned int index, struct neuron_device **device)
{
	char path[32];
	int fd, ret;

	if (!device)
		return -EINVAL;
	snprintf(path, sizeof(path), "/dev/neuron%u", index);
	do {
		fd = neuron_sys_open(path, O_RDWR);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return -errno;
	ret = neuron_device_open_fd(fd, device);
	if (ret)
		neuron_sys_close(fd);
	return ret;
}

/* False: the driver still has it. */
static bool give_back(struct neuron_device *device, const struct leftover *what)
{
	struct neuron_ioctl_mem_get_extended_info e = { .mem_handle = what->handle };
	struct neuron_ioctl_mem_free f = { .mem_handle = what->handle };
	int ret = what->va ? do_ioctl(device, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &e) : 0;

	if (!ret && (!what->va || e.mmap_offset == what->mmap_offset))
		ret = do_ioctl(device, NEURON_IOCTL_MEM_FREE, &f);
	if (ret && ret != -ENOENT && ret != -EINVAL)
		return false;
	if (what->va)
		neuron_sys_munmap(what->va, what->mapped);
	return true;
}

static void keep(struct neuron_device *device, struct leftover *first, struct leftover *last)
{
	last->next = atomic_load(&device->left);
	while (!atomic_compare_exchange_weak(&device->left, &last->next, first))
		;
}

/*
 * What was kept before, up to one that the driver still refuses: with a device that is gone
 * it refuses all of them each time.
 */
static void give_back_again(struct neuron_device *device)
{
	struct leftover *left = atomic_exchange(&device->left, NULL), *first, *last;

	while (left && give_back(device, left)) {
		first = left->next;
		free(left);
		left = first;
	}
	if (!left)
		return;
	/* The next attempt begins with another one. */
	first = left->next ? left->next : left;
	for (last = left; last->next; last = last->next)
		;
	if (last != left)
		last->next = left;
	keep(device, first, left);
}

void device_give_back(struct neuron_device *device, const struct leftover *what)
{
	struct leftover *left;

	/* A child has nothing of it. */
	if (device_inherited(device))
		return;
	if (atomic_load_explicit(&device->left, memory_order_relaxed))
		give_back_again(device);
	if (give_back(device, what))
		return;
	/* Without host memory for it, it stays until the device is closed. */
	left = malloc(sizeof(*left));
	if (left) {
		*left = *what;
		keep(device, left, left);
	}
}

/* The last chance; then the driver takes everything. */
static void forget_leftovers(struct neuron_device *device)
{
	struct leftover *left = atomic_exchange(&device->left, NULL), *next;

	for (; left; left = next) {
		next = left->next;
		if (!device_inherited(device) && !give_back(device, left) && left->va)
			neuron_sys_munmap(left->va, left->mapped);
		free(left);
	}
}

void device_put(struct neuron_device *device)
{
	if (atomic_fetch_sub_explicit(&device->refs, 1, memory_order_acq_rel) != 1)
		return;
	forget_leftovers(device);
	stats_close(device);
	neuron_sys_close(device->fd);
	memlog_free(device->log);
	pthread_mutex_destroy(&device->log_lock);
	free(device);
}

NEURON_EXPORT void neuron_device_close(struct neuron_device *device)
{
	if (device)
		device_put(device);
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

NEURON_EXPORT int neuron_device_get_info(struct neuron_device *device,
					 struct neuron_device_info *info)
{
	struct neuron_ioctl_device_info di = { 0 };
	struct neuron_ioctl_compatible_version cv = { 0 };
	struct neuron_ioctl_device_driver_info dr = { .size = sizeof(dr) };
	struct neuron_device_info out = { 0 };
	int ret;

	if (!result_valid(info))
		return -EINVAL;
	ret = do_ioctl(device, NEURON_IOCTL_DEVICE_INFO, &di);
	if (!ret)
		ret = do_ioctl(device, NEURON_IOCTL_COMPATIBLE_VERSION, &cv);
	if (!ret)
		ret = do_ioctl(device, NEURON_IOCTL_DRIVER_INFO_GET, &dr);
	if (ret)
		return ret;
	if (di.connected_device_count > NEURON_IOCTL_MAX_CONNECTED_DEVICES)
		return -EPROTO;
	out.arch = di.architecture;
	out.revision = di.revision;
	out.nr_connected = di.connected_device_count;
	memcpy(out.connected, di.connected_devices, sizeof(out.connected));
	out.compat_min = cv.min;
	out.compat_max = cv.max;
	out.features = dr.feature_flags1;
	result_copy(info, &out, sizeof(out));
	return 0;
}

NEURON_EXPORT int neuron_device_set_reset_eventfd(struct neuron_device *device, uint32_t nc, int fd)
{
	struct neuron_native_reset_eventfd e = {
		.size = sizeof(e),
		.nc_id = nc,
		.eventfd = fd < 0 ? -1 : fd,
	};

	return do_ioctl(device, NEURON_NATIVE_RESET_EVENTFD, &e);
}

NEURON_EXPORT int neuron_device_reset(struct neuron_device *device, uint32_t nc_map)
{
	struct neuron_ioctl_device_reset reset = { .nc_map = nc_map };
	struct neuron_ioctl_device_ready ready = { 0 };
	int ret;

	if (!nc_map)
		return -EINVAL;
	ret = do_ioctl(device, NEURON_IOCTL_NC_RESET, &reset);
	if (ret)
		return ret;
	do {
		ready.request_id = reset.request_id;
		ready.result = 0;
		ret = do_ioctl(device, NEURON_IOCTL_NC_RESET_READY, &ready);
	} while (!ret && ready.result == -EINTR);
	if (ret)
		return ret;
	return ready.result ? -EIO : 0;
}

NEURON_EXPORT int neuron_hbm_get_stats(struct neuron_device *device, uint32_t hbm,
				       struct neuron_hbm_stats *stats)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s), .hbm = hbm };
	struct neuron_hbm_stats out = { 0 };
	int ret;

	if (!result_valid(stats))
		return -EINVAL;
	ret = do_ioctl(device, NEURON_NATIVE_HBM_STATS, &s);
	if (ret)
		return ret;
	out.total = s.total;
	out.used = s.used;
	out.reserved = s.reserved;
	out.free = s.free;
	out.largest_free = s.largest_free;
	out.high_water = s.high_water;
	out.nr_allocs = s.nr_allocs;
	out.own_process = s.own_process;
	out.driver = s.driver;
	out.metadata = s.metadata;
	out.fail_full = s.fail_full;
	out.fail_fragmented = s.fail_fragmented;
	out.fail_alignment = s.fail_alignment;
	out.fail_capped = s.fail_capped;
	for (unsigned int i = 0; i < NEURON_MAX_ORDERS; i++)
		out.free_by_order[i] = s.free_by_order[i];
	for (unsigned int i = 0; i < NEURON_MAX_CATEGORIES; i++)
		out.by_category[i] = s.by_category[i];
	for (unsigned int i = 0; i < NEURON_MAX_CORES; i++)
		out.by_core[i] = s.by_core[i];
	result_copy(stats, &out, sizeof(out));
	return 0;
}

NEURON_EXPORT int neuron_core_get_stats(struct neuron_device *device, uint32_t nc,
					struct neuron_core_stats *stats)
{
	struct neuron_native_core_stats s = { .size = sizeof(s), .nc_id = nc };
	struct neuron_core_stats out = { 0 };
	int ret;

	if (!result_valid(stats))
		return -EINVAL;
	ret = do_ioctl(device, NEURON_NATIVE_CORE_STATS, &s);
	if (ret)
		return ret;
	out.owner = s.owner;
	for (unsigned int i = 0; i < NEURON_MAX_CATEGORIES; i++)
		out.device_bytes[i] = s.device_bytes[i];
	out.host_bytes = s.host_bytes;
	result_copy(stats, &out, sizeof(out));
	return 0;
}

static int semaphore(struct neuron_device *device, unsigned long cmd, uint32_t nc,
		     uint32_t index, uint32_t *value)
{
	struct neuron_ioctl_semaphore s = {
		.nc_id = nc, .semaphore_index = index, .value = *value,
	};
	int ret = do_ioctl(device, cmd, &s);

	if (!ret)
		*value = s.value;
	return ret;
}

NEURON_EXPORT int neuron_semaphore_read(struct neuron_device *device, uint32_t nc,
					uint32_t index, uint32_t *value)
{
	uint32_t v = 0;
	int ret = semaphore(device, NEURON_IOCTL_SEMAPHORE_READ, nc, index, &v);

	if (!ret)
		*value = v;
	return ret;
}

NEURON_EXPORT int neuron_semaphore_set(struct neuron_device *device, uint32_t nc,
				       uint32_t index, uint32_t value)
{
	return semaphore(device, NEURON_IOCTL_SEMAPHORE_WRITE, nc, index, &value);
}

NEURON_EXPORT int neuron_semaphore_add(struct neuron_device *device, uint32_t nc,
				       uint32_t index, uint32_t value)
{
	return semaphore(device, NEURON_IOCTL_SEMAPHORE_INCREMENT, nc, index, &value);
}

NEURON_EXPORT int neuron_semaphore_subtract(struct neuron_device *device, uint32_t nc,
					    uint32_t index, uint32_t value)
{
	return semaphore(device, NEURON_IOCTL_SEMAPHORE_DECREMENT, nc, index, &value);
}

NEURON_EXPORT int neuron_event_read(struct neuron_device *device, uint32_t nc, uint32_t index,
				    uint32_t *value)
{
	struct neuron_ioctl_event e = { .nc_id = nc, .event_index = index };
	int ret = do_ioctl(device, NEURON_IOCTL_EVENT_GET, &e);

	if (!ret)
		*value = e.value;
	return ret;
}

NEURON_EXPORT int neuron_event_set(struct neuron_device *device, uint32_t nc, uint32_t index,
				   uint32_t value)
{
	struct neuron_ioctl_event e = { .nc_id = nc, .event_index = index, .value = value };

	return do_ioctl(device, NEURON_IOCTL_EVENT_SET, &e);
}

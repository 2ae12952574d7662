// SPDX-License-Identifier: LGPL-2.1-or-later
/* Claims on cores, in the table that all processes of a host share. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "opts.h"
#include "sys.h"

struct neuron_claim {
	int fd;				/* the claim goes with it */
	pid_t pid;			/* whose it is */
	uint32_t base;			/* first core of its device, from which the driver counts */
	uint32_t start;			/* from there */
	uint32_t count;
};

/* Claims count cores through consecutive devices that are all alike. */
static bool claims_fit(const struct neuron_device_entry *list, size_t nr)
{
	for (size_t i = 1; i < nr; i++)
		if (list[i].index != list[0].index + i || list[i].nr_cores != list[0].nr_cores)
			return false;
	return nr;
}

static uint32_t first_core(const struct neuron_ioctl_crwl_nc_map_ext *map)
{
	uint32_t i = 0;

	while (i < 511 && !(map->bitmap[i / 64] >> i % 64 & 1))
		i++;
	return i;
}

/* @count cores in a row between @first and @last. */
static int mark(int fd, struct neuron_ioctl_crwl_nc_map_ext *map, uint32_t count, uint32_t first,
		uint32_t last)
{
	*map = (struct neuron_ioctl_crwl_nc_map_ext){
		.nc_count = count,
		.start_nc_index = first,
		.end_nc_index = last,
	};
	return fd_ioctl(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, map);
}

/* @count cores in a row between @first and @last, from a multiple of o->align on. */
static int mark_aligned(int fd, struct neuron_ioctl_crwl_nc_map_ext *map,
			const struct neuron_claim_opts *o, uint32_t first, uint32_t last)
{
	uint32_t align = o->align ? o->align : 1;
	int ret;

	ret = mark(fd, map, o->count, first, last);
	if (ret || !(first_core(map) % align))
		return ret;
	/* Others may have taken an odd number of cores: look at each place that is aligned. */
	fd_ioctl(fd, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0, map);
	ret = -EBUSY;
	for (uint32_t at = (first + align - 1) / align * align;
	     at + o->count - 1 <= last && ret == -EBUSY; at += align)
		ret = mark(fd, map, o->count, at, at + o->count - 1);
	return ret;
}

bool device_core_claimed(struct neuron_device *device, uint32_t nc)
{
	/* Two in a row of one core are never found: this only asks. */
	struct neuron_ioctl_crwl_nc_map_ext map = {
		.nc_count = 2, .start_nc_index = nc, .end_nc_index = nc,
	};

	return device_ioctl(device, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, &map) == -EBUSY &&
	       !map.max_nc_available;
}

/* The node of a device; a control group or a container leaves a process some of them. */
static int open_node(const struct neuron_device_entry *entry)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/neuron%u", entry->index);
	return neuron_sys_open(path, O_WRONLY);
}

/*
 * From device *@at on, the next ones in a row that this process can open: the first of them,
 * opened, and in *@at the one behind them; -errno of the last try if there are none.
 */
static int next_run(const struct neuron_device_entry *list, size_t nr, size_t *at, size_t *first)
{
	int fd = -1, err = ENODEV, next;

	for (; *at < nr && fd < 0; ++*at) {
		fd = open_node(&list[*at]);
		if (fd < 0)
			err = errno;
	}
	if (fd < 0)
		return -err;
	*first = *at - 1;
	for (; *at < nr; ++*at) {
		next = open_node(&list[*at]);
		if (next < 0)
			break;
		neuron_sys_close(next);
	}
	return fd;
}

NEURON_EXPORT uint32_t neuron_usable_cores(const struct neuron_device_entry *list, size_t nr,
					   uint32_t *start)
{
	uint32_t most = 0, count, before;
	size_t first, at = 0;
	int fd;

	while ((fd = next_run(list, nr, &at, &first)) >= 0) {
		neuron_sys_close(fd);
		before = count = 0;
		for (size_t i = 0; i < at; i++)
			*(i < first ? &before : &count) += list[i].nr_cores;
		if (count <= most)
			continue;
		most = count;
		*start = before;
	}
	return most;
}

/*
 * Mark them through a device that can be opened, which is returned, and from whose first core,
 * *@base, the driver counts.  Cores that are named may be anywhere, because opening their device
 * says best what is wrong with it; others are looked for where the process can use them.
 */
static int mark_usable(const struct neuron_device_entry *list, size_t nr,
		       const struct neuron_claim_opts *o, struct neuron_ioctl_crwl_nc_map_ext *map,
		       uint32_t *base)
{
	size_t first, at = 0;
	int ret, fd = next_run(list, nr, &at, &first);

	while (fd >= 0) {
		uint32_t to = (uint32_t)at * list[0].nr_cores, from;

		*base = (uint32_t)first * list[0].nr_cores;
		from = *base > o->start ? *base : o->start;
		to = to < o->total ? to : o->total;
		if (o->exact && o->start < *base)
			ret = -ENOTTY;
		else if (o->exact)
			ret = mark(fd, map, o->count, o->start - *base,
				   o->start - *base + o->count - 1);
		else if (to < from || to - from < o->count)
			ret = -EBUSY;
		else
			ret = mark_aligned(fd, map, o, from - *base, to - *base - 1);
		if (!ret)
			return fd;
		neuron_sys_close(fd);
		fd = ret == -EBUSY && !o->exact ? next_run(list, nr, &at, &first) : ret;
		/* No other run: that the cores of the ones before are taken is the reason. */
		if (ret == -EBUSY && fd < 0)
			return ret;
	}
	return fd;
}

NEURON_EXPORT int neuron_claim_cores(const struct neuron_device_entry *list, size_t nr,
				     const struct neuron_claim_opts *opts,
				     struct neuron_claim **claim)
{
	struct neuron_ioctl_crwl_nc_map_ext map = { .nc_count = 0 };
	struct neuron_claim_opts o;
	struct neuron_claim *c;
	int ret = opts_copy(&o, sizeof(o), opts);

	if (ret)
		return ret;
	if (!claim || !o.count || o.count > o.total || o.start > o.total - o.count)
		return -EINVAL;
	*claim = NULL;
	if (!claims_fit(list, nr))
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->fd = mark_usable(list, nr, &o, &map, &c->base);
	if (c->fd < 0) {
		ret = c->fd;
		free(c);
		if (ret == -EBUSY && o.available)
			*o.available = map.max_nc_available;
		/* Without the table cores belong to whoever programs them first. */
		return ret == -ENOTTY || ret == -EINVAL ? 0 : ret;
	}
	c->pid = getpid();
	c->start = first_core(&map);
	c->count = o.count;
	*claim = c;
	return 0;
}

NEURON_EXPORT uint32_t neuron_claim_start(const struct neuron_claim *claim)
{
	return claim->base + claim->start;
}

NEURON_EXPORT void neuron_claim_release(struct neuron_claim *claim)
{
	struct neuron_ioctl_crwl_nc_map_ext map = { .nc_count = 0 };

	if (!claim)
		return;
	/* Closing the descriptor gives the claim back, too; this does it at once. */
	if (claim->pid == getpid()) {
		map.nc_count = claim->count;
		for (uint32_t i = claim->start; i < claim->start + claim->count; i++)
			map.bitmap[i / 64] |= 1ul << i % 64;
		fd_ioctl(claim->fd, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0, &map);
	}
	neuron_sys_close(claim->fd);
	free(claim);
}

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
	uint32_t start;
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

static int mark_aligned(int fd, struct neuron_ioctl_crwl_nc_map_ext *map,
			const struct neuron_claim_opts *o)
{
	uint32_t align = o->align ? o->align : 1;
	int ret;

	if (o->exact)
		return mark(fd, map, o->count, o->start, o->start + o->count - 1);
	ret = mark(fd, map, o->count, o->start, o->total - 1);
	if (ret || !(first_core(map) % align))
		return ret;
	/* Others may have taken an odd number of cores: look at each place that is aligned. */
	fd_ioctl(fd, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0, map);
	ret = -EBUSY;
	for (uint32_t at = 0; at <= o->total - o->count && ret == -EBUSY; at += align)
		ret = mark(fd, map, o->count, at, at + o->count - 1);
	return ret;
}

NEURON_EXPORT int neuron_claim_cores(const struct neuron_device_entry *list, size_t nr,
				     const struct neuron_claim_opts *opts,
				     struct neuron_claim **claim)
{
	struct neuron_ioctl_crwl_nc_map_ext map;
	struct neuron_claim_opts o;
	struct neuron_claim *c;
	char path[32];
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
	snprintf(path, sizeof(path), "/dev/neuron%u", list[0].index);
	c->fd = neuron_sys_open(path, O_WRONLY);
	if (c->fd < 0) {
		ret = -errno;
		free(c);
		return ret;
	}
	ret = mark_aligned(c->fd, &map, &o);
	if (ret) {
		neuron_sys_close(c->fd);
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
	return claim->start;
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

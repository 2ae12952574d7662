// SPDX-License-Identifier: LGPL-2.1-or-later
/* The last allocations of device memory that a program made, for when there is none left. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../common/lock.h"
#include "mem.h"

struct entry {
	struct timespec when;
	uint64_t address;	/* 0: it failed */
	uint64_t bytes;
	uint64_t align;
	uint8_t op;
	uint8_t hbm;
	uint8_t nc;
	uint8_t category;
	uint8_t reason;
};

struct memlog {
	size_t max;
	size_t room;		/* of @ring; grows up to @max, then the oldest ones go */
	uint64_t nr;		/* ever */
	struct entry ring[];
};

NEURON_EXPORT int neuron_device_log_memory(struct neuron_device *device, size_t entries)
{
	struct memlog *log = NULL, *old;

	if (entries > NEURON_MEMORY_LOG_MAX)
		return -EINVAL;
	if (entries) {
		log = calloc(1, sizeof(*log));
		if (!log)
			return -ENOMEM;
		log->max = entries;
	}
	pthread_mutex_lock(&device->log_lock);
	old = device->log;
	device->log = log;
	pthread_mutex_unlock(&device->log_lock);
	free(old);
	return 0;
}

/* What there is no host memory for is not logged. */
static struct entry *next_entry(struct neuron_device *device)
{
	struct memlog *log = device->log;

	if (!log)
		return NULL;
	if (log->nr == log->room && log->room < log->max) {
		size_t room = log->room ? log->room * 2 : 256;

		room = room < log->max ? room : log->max;
		log = realloc(log, sizeof(*log) + room * sizeof(log->ring[0]));
		if (!log)
			return NULL;
		log->room = room;
		device->log = log;
	}
	return &log->ring[log->nr++ % log->room];
}

void memlog_add(struct neuron_device *device, enum memlog_op op, const struct neuron_mem *mem,
		uint64_t bytes, uint64_t align, uint32_t reason)
{
	struct entry *e;

	if (category_host(mem->category) || device_inherited(device))
		return;
	GUARD(&device->log_lock);
	e = next_entry(device);
	if (e) {
		clock_gettime(CLOCK_REALTIME, &e->when);
		e->address = reason ? 0 : mem->address;
		e->bytes = bytes;
		e->align = align;
		e->op = (uint8_t)op;
		e->hbm = (uint8_t)mem->hbm;
		e->nc = (uint8_t)mem->nc;
		e->category = (uint8_t)mem->category;
		e->reason = (uint8_t)reason;
	}
}

/* A copy of what there is, the oldest first: allocations go on while it is written. */
static int copy_entries(struct neuron_device *device, struct entry **list, size_t *nr)
{
	const struct memlog *log;

	GUARD(&device->log_lock);
	log = device->log;
	*nr = log ? MIN(log->nr, log->room) : 0;
	*list = calloc(*nr + 1, sizeof(**list));
	for (size_t i = 0; *list && i < *nr; i++)
		(*list)[i] = log->ring[(log->nr - *nr + i) % log->room];
	return *list ? 0 : -ENOMEM;
}

static void write_entry(FILE *f, const struct neuron_device *device, const struct entry *e)
{
	static const char *const ops[] = { "alloc", "free", "grow", "shrink" };

	fprintf(f, "%lld.%09ld,%s,%u,%u,%u,%s,%llu,0x%llx,%llu,%s\n",
		(long long)e->when.tv_sec, e->when.tv_nsec, ops[e->op], device->index, e->hbm,
		e->nc, neuron_mem_category_name(e->category), (unsigned long long)e->bytes,
		(unsigned long long)e->address, (unsigned long long)e->align,
		e->reason ? neuron_mem_reason_name(e->reason) : "ok");
}

NEURON_EXPORT int neuron_device_write_memory_log(struct neuron_device *device, uint32_t hbm, int fd)
{
	struct entry *list;
	size_t nr;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), ret = 0;
	FILE *f = copy < 0 ? NULL : fdopen(copy, "w");

	if (!f) {
		ret = -errno;
		if (copy >= 0)
			close(copy);
		return ret;
	}
	ret = hbm < neuron_device_geometry(device)->nr_hbms ? copy_entries(device, &list, &nr) :
							      -EINVAL;
	if (ret) {
		fclose(f);
		return ret;
	}
	fputs("time,operation,device,hbm,nc,category,bytes,address,alignment,result\n", f);
	for (size_t i = 0; i < nr; i++)
		if (list[i].hbm == hbm)
			write_entry(f, device, &list[i]);
	free(list);
	if (ferror(f))
		ret = -EIO;
	if (fclose(f) && !ret)
		ret = -errno;
	return ret;
}

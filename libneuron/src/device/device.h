/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the device layer share. */
#ifndef NEURON_LIB_DEVICE_H
#define NEURON_LIB_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <neuron/neuron.h>

#include "../../../uapi/neuron_ioctl.h"
#include "../../../uapi/neuron_native.h"

#define NEURON_EXPORT __attribute__((visibility("default")))

struct neuron_device {
	int fd;
	pid_t pid;		/* that opened it */
	unsigned int index;
	atomic_uint refs;
	struct neuron_geometry geometry;
	pthread_mutex_t log_lock;	/* @log */
	struct memlog *log;
	_Atomic(struct leftover *) left;	/* what the driver did not take back yet */
	_Atomic(void *) datastore;	/* stats.c; NULL: nothing is counted */
	size_t datastore_size;
};

struct neuron_mem {
	struct neuron_device *device;
	uint64_t handle;
	uint64_t address;
	uint64_t mmap_offset;
	_Atomic uint64_t bytes;	/* asked for */
	pthread_mutex_t lock;	/* growing and mapping */
	_Atomic(void *) va;
	uint64_t mapped;	/* bytes at @va */
	uint64_t counted;	/* bytes, by stats.c */
	enum neuron_mem_category category;
	uint32_t hbm;
	uint32_t nc;
};

#define NEURON_PAGE 4096u

/* Host memory comes first, but for one. */
static inline bool category_host(enum neuron_mem_category category)
{
	return category < NEURON_MEM_OTHER || category == NEURON_MEM_HOST_RINGS;
}

enum memlog_op {
	MEMLOG_ALLOC,
	MEMLOG_FREE,
	MEMLOG_GROW,
	MEMLOG_SHRINK,
};

/* Host memory is not logged; without a log this does nothing.  @reason: enum
 * neuron_mem_reason of one that failed, 0 */
void memlog_add(struct neuron_device *device, enum memlog_op op, const struct neuron_mem *mem,
		uint64_t bytes, uint64_t align, uint32_t reason);
void memlog_free(struct memlog *log);

static inline uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

static inline struct neuron_device *device_get(struct neuron_device *device)
{
	atomic_fetch_add_explicit(&device->refs, 1, memory_order_relaxed);
	return device;
}

/*
 * In a child after fork(): its mappings are gone, the driver refuses it, locks may be
 * held by threads that it does not have.  All that is left to do is to free memory.
 */
static inline bool device_inherited(const struct neuron_device *device)
{
	return device->pid != getpid();
}

void device_put(struct neuron_device *device);

/* Memory to be given back to the driver. */
struct leftover {
	struct leftover *next;
	uint64_t handle;
	/*
	 * A notification queue's: mapped at @va, and the driver may have replaced it, so
	 * that its handle is gone or another's. What is mapped keeps its address, by
	 * which it is told apart. NULL: the handle is ours for certain.
	 */
	void *va;
	uint64_t mapped;
	uint64_t mmap_offset;
};

/*
 * Give memory back. What the driver refuses, for another reason than that it has no such
 * memory, is kept and tried again with the next memory that is given back, and when the
 * device is closed.
 */
void device_give_back(struct neuron_device *device, const struct leftover *what);

/*
 * Every ioctl of libneuron (libnrt has its own for claims, which need no device): again
 * if a signal interrupted it, and only then.  0 or -errno; what a driver says with a
 * positive result is -EIO.  -EACCES in a child of the process that opened the device.
 */
int do_ioctl(const struct neuron_device *device, unsigned long cmd, void *arg);

/*
 * Options of the caller's size in a structure of ours; the tail reads as 0.  -E2BIG if
 * the caller knows members that we do not and uses one.
 */
int opts_copy(void *ours, size_t our_size, const void *theirs);

/* A result of our layout to the caller's size. */
static inline void result_copy(void *theirs, const void *ours, size_t our_size)
{
	size_t size = *(size_t *)theirs;

	memcpy((char *)theirs + sizeof(size), (const char *)ours + sizeof(size),
	       (size < our_size ? size : our_size) - sizeof(size));
}

static inline bool result_valid(const void *theirs)
{
	return theirs && *(const size_t *)theirs >= sizeof(size_t);
}

#endif

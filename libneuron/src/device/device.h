/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An open device, and how it is asked for something. */
#ifndef NEURON_LIB_DEVICE_H
#define NEURON_LIB_DEVICE_H

#include <stdint.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <unistd.h>

#include <neuron/neuron.h>

#include "../../../uapi/neuron_ioctl.h"
#include "../../../uapi/neuron_native.h"
#include "../../common/util.h"
#include "process.h"

struct started_copy {
	struct neuron_mem *dst, *src;
};

struct neuron_device {
	int fd;
	pid_t pid;		/* that opened it */
	unsigned int index;
	atomic_uint refs;
	struct neuron_geometry geometry;
	pthread_mutex_t log_lock;	/* @log */
	struct memlog *log;		/* memory/log.c, one piece of memory; or NULL */
	pthread_mutex_t left_lock;	/* the list of them; its start is also read without it */
	_Atomic(struct leftover *) left;	/* what the driver did not take back yet */
	struct leftover *left_last;
	atomic_bool compact;	/* memory/alloc.c: move memory when a request is refused */
	_Atomic(void *) datastore;	/* datastore.c; NULL: nothing is counted */
	size_t datastore_size;
	pthread_mutex_t reserves_lock;	/* the list of them */
	struct reserve *reserves;
	pthread_mutex_t symbols_lock;	/* the list of them */
	struct symbols *symbols;	/* symbols.h */
	bool remember;		/* those of models that were unloaded, and mappings that ended */
	pthread_mutex_t mappings_lock;	/* both lists of them */
	struct mapping *mappings;	/* mapping.h */
	struct mapping *unmapped;	/* the oldest first; only their @next counts */
	size_t nr_unmapped;
	pthread_mutex_t scratchpads_lock;	/* the list of them; theirs are only tried */
	struct scratchpad *scratchpads;
	pthread_mutex_t watches_lock;	/* the list of them */
	struct reset_watch *watches;
	pthread_mutex_t copies_lock;	/* those that were started; their number is also read without it */
	struct started_copy copies[NEURON_MAX_CORES];	/* memory/started.c; NULL: none */
	atomic_uint nr_copies;
	struct {		/* as in struct neuron_offload_stats */
		_Atomic uint64_t now, out_bytes, in_bytes, out, in, wait_ns;
	} offload;
};

static inline struct neuron_device *device_get(struct neuron_device *device)
{
	atomic_fetch_add_explicit(&device->refs, 1, memory_order_relaxed);
	return device;
}

/* Memory, queues and cores each hold a reference. */
void device_put(struct neuron_device *device);

/* Has a process claimed a core of the device (claim.c)?  Which one is not told. */
bool device_core_claimed(struct neuron_device *device, uint32_t nc);

/*
 * In a child after fork(): its mappings are gone, the driver refuses it, locks may be
 * held by threads that it does not have.  All that is left to do is to free memory.
 */
static inline bool device_inherited(const struct neuron_device *device)
{
	return device->pid != process_id();
}

/*
 * Every ioctl: again if a signal interrupted it, and only then.  0 or -errno; what a driver
 * says with a positive result is -EIO.  That of a device is -EACCES in a child of the
 * process that opened it.
 */
int fd_ioctl(int fd, unsigned long cmd, void *arg);
int device_ioctl(const struct neuron_device *device, unsigned long cmd, void *arg);
/* The line of a file that the device has in sysfs, without its end.  False: it cannot be read. */
bool device_line(const struct neuron_device *device, const char *file, char *text, size_t size);

/* Who reserves memory of the device and may have some that is not used. */
struct reserve {
	struct reserve *prev, *next;
	uint32_t hbm;
	/* Return that to the driver, without waiting for a lock.  Was there any? */
	bool (*give_back)(struct reserve *reserve);
};

void device_add_reserve(struct neuron_device *device, struct reserve *reserve);
/* Afterwards it is not called any more. */
void device_remove_reserve(struct neuron_device *device, struct reserve *reserve);
/* The driver has refused an allocation: is it worth another try? */
bool device_reclaim(struct neuron_device *device, uint32_t hbm);

/* Of a core that is in use: a reset that anyone does through the device takes its queues away. */
struct reset_watch {
	struct reset_watch *next;
	uint32_t nc;
	int eventfd;		/* signalled then */
	atomic_bool reset;	/* set then */
};

void device_add_watch(struct neuron_device *device, struct reset_watch *watch);
void device_remove_watch(struct neuron_device *device, struct reset_watch *watch);

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
 * memory, is kept and tried again once with each call that follows, and when the device is
 * closed: one after the other, up to one that is refused again.
 */
void device_give_back(struct neuron_device *device, const struct leftover *what);
/* Several, up to NEURON_NATIVE_BULK_MAX, whose handles are ours for certain. */
void device_give_back_many(struct neuron_device *device, const uint64_t *handles, uint32_t n);
/* The device is about to be closed: try a last time; then the driver takes everything. */
void device_forget_leftovers(struct neuron_device *device);

#endif

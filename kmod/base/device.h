/* SPDX-License-Identifier: GPL-2.0-only */
/* A device. */
#ifndef NEURON_BASE_DEVICE_H
#define NEURON_BASE_DEVICE_H

#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/list.h>
#include <linux/maple_tree.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "../../uapi/neuron_ioctl.h"
#include "../../uapi/neuron_native.h"
#include "counter.h"
#include "fault.h"
#include "neuron_hw.h"

struct dentry;
struct inode;
struct kernfs_node;
struct neuron_client;
struct neuron_core;
struct neuron_engine;
struct neuron_failures;
struct neuron_hbm;
struct neuron_sysfs;

#define NEURON_MAX_DEVICES	64	/* uapi/FACTS.md 1 */
#define NEURON_MAX_CLIENTS	NEURON_MAX_PROCESS_PER_DEVICE
#define NEURON_NR_CATEGORIES	NEURON_MEMALLOC_TYPE_MAX
#define NEURON_NO_LIMIT		NEURON_NATIVE_LIMIT_NONE

#define NEURON_HEALTH_FILES	8

/**
 * struct neuron_health - what a device reports about itself
 * @pending: reports that @work has not seen, by event and core
 * @work: counts and tells of them
 * @hw_errors: uncorrected errors so far
 * @cleared: ECC counts when they were cleared
 * @heartbeat: when the device last answered, seconds since 1970
 * @files: sysfs files that show it; their pollers are woken at each report
 */
struct neuron_health {
	atomic_t pending[NEURON_NR_EVENTS][NEURON_HW_MAX_CORES];
	struct work_struct work;
	atomic64_t hw_errors;
	atomic64_t cleared[NEURON_NR_ECC];
	atomic64_t heartbeat;
	struct kernfs_node *files[NEURON_HEALTH_FILES];
};

/* What keeps the programs on a device apart: isolation.c. */
enum neuron_isolation {
	NEURON_ISOLATION_DEVICE,	/* the device checks each access */
	NEURON_ISOLATION_CHECKED,	/* the driver checks what programs tell it */
	NEURON_ISOLATION_TRUSTED,	/* nothing: root trusts them */
};

/**
 * struct neuron_device - a device
 * @dev: class device neuronN
 * @cdev: /dev/neuronN
 * @desc: the backend's description
 * @isolation: what keeps its programs apart
 * @isolation_told: the kernel log has a refusal
 * @domain: whose programs may have left something at work, NULL for nobody's; under
 *	    @clients_lock
 * @domain_pid: the last one of them that attached
 * @core_clear: make the state buffer of a core read as zero (dma/copy.c)
 * @geometry: copy, because the backend's may go before the last reference
 * @geo: the copy
 * @ops: guarded desc.ops: they fail when the device is gone
 * @inode: owns all mappings of the device
 * @clients_lock: @clients, @nr_clients
 * @clients: attached processes
 * @nr_clients: their number (READ_ONCE)
 * @gone: being removed: nothing starts any more; see base/hw.c
 * @dead: nothing runs any more
 * @gone_wait: woken when it goes
 * @users: calls into the device that are under way; see base/hw.c
 * @kclient: the driver's own memory
 * @hbm: by HBM
 * @core: by number
 * @engine: by number
 * @host_lock: one search for room in @host_pages at a time; DMA mappings of host chunks
 * @grow_lock: one chunk grows at a time
 * @exports_lock: @exports
 * @exports: dma-bufs of memory without pages
 * @host_pages: host chunks by page number of their device address; RCU lookup
 * @host_mem: host memory of the device
 * @host_category: the same by category
 * @health: what it reports about itself
 * @fail_alloc: allocations of device memory that are to fail
 * @process_limit: device memory that a process may hold, or NEURON_NO_LIMIT
 * @failures_lock: @failures_seq, the records of the device and of its clients
 * @failures_seq: number of the last refused allocation
 * @failures: record of allocations refused to processes that are gone
 * @sysfs: the tree
 * @sysfs_ready: it is complete; under neuron_devices_lock
 * @debugfs: directory of the device
 */
struct neuron_device {
	struct device dev;
	struct cdev cdev;
	struct neuron_device_desc desc;
	enum neuron_isolation isolation;
	bool isolation_told;
	const struct cred *domain;
	struct pid *domain_pid;
	int (*core_clear)(struct neuron_device *nd, u32 core);
	struct neuron_geometry geometry;
	const struct neuron_geometry *geo;
	const struct neuron_hw_ops *ops;
	struct inode *inode;
	struct mutex clients_lock;
	struct list_head clients;
	unsigned int nr_clients;
	bool gone;
	bool dead;
	wait_queue_head_t gone_wait;
	struct srcu_struct users;
	struct neuron_client *kclient;
	struct neuron_hbm *hbm;
	struct neuron_core *core;
	struct neuron_engine *engine;
	struct mutex host_lock;
	struct mutex grow_lock;
	struct mutex exports_lock;
	struct list_head exports;
	struct maple_tree host_pages;
	struct neuron_counter host_mem;
	struct neuron_counter host_category[NEURON_NR_CATEGORIES];
	struct neuron_health health;
	struct neuron_fault fail_alloc;
	u64 process_limit;
	spinlock_t failures_lock;
	u64 failures_seq;
	struct neuron_failures *failures;
	struct neuron_sysfs *sysfs;
	bool sysfs_ready;
	struct dentry *debugfs;
};

/* Every wait for the device must also end when this becomes true. */
static inline bool neuron_device_gone(const struct neuron_device *nd)
{
	return READ_ONCE(nd->gone);
}

/*
 * Is an index that user space chose below @count?  If so, it is clamped so that
 * speculation cannot use it beyond @count either.
 */
static inline bool neuron_index_valid(u32 *index, u32 count)
{
	if (*index >= count)
		return false;
	*index = array_index_nospec(*index, count);
	return true;
}

static inline u32 neuron_engine_core(struct neuron_device *nd, u32 eng)
{
	return eng / nd->geo->engines_per_core;
}

/* Offset of a core's state buffer for mmap(): in a row, wherever the windows are in the device. */
static inline u64 neuron_core_window(const struct neuron_device *nd, u32 core)
{
	return nd->geo->tpb_base[0] + core * nd->geo->tpb_size;
}

#endif

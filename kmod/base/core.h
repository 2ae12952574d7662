/* SPDX-License-Identifier: GPL-2.0-only */
/* NeuronCores, and who owns them. */
#ifndef NEURON_BASE_CORE_H
#define NEURON_BASE_CORE_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>

#include "crwl.h"
#include "device.h"

struct eventfd_ctx;
struct neuron_client;
struct neuron_copy;
struct neuron_nq;
struct pid;

/**
 * struct neuron_nds_counter - a counter that processes publish in their datastores
 * @ended: sum of what ended processes left behind
 * @last: what the process that ended last left behind
 * @cleared: part of the sum that a write to sysfs cleared
 */
struct neuron_nds_counter {
	u64 ended;
	u64 last;
	u64 cleared;
};

/**
 * struct neuron_core - a NeuronCore
 * @lock: @owner, @nq; with neuron_devices_lock: @claim, @claim_via, @claim_until
 * @owner: process that uses it; NULL = free.  Set and cleared under @lock
 * @claim: thread group that has claimed it, or NULL; see claim.c
 * @claim_via: client or file that the claim ends with
 * @claim_until: until then (jiffies64) the claim holds even if its process is not attached
 * @crwl: cooperative lock
 * @nq_lock: eventfds in @nq
 * @nq: notification queues in use, by type * 16 + engine; made on first use
 * @nds: published counters by NDS_NC_COUNTER_*, under clients_lock
 * @dirty: its reset failed, so it may hold what its last owner left
 * @reset_eventfd: signalled at resets; under @lock
 * @reset_failed: the last reset failed
 * @reset_req: resets that were requested
 * @reset_fail: resets that failed
 * @copy: copy ring; its own allocation
 * @device_bytes: bytes of device memory charged to it by all processes
 * @limit: limit of what the owner has charged or, without an owner, of @device_bytes; or
 *	   NEURON_NO_LIMIT
 * @host_mem: host memory charged to it
 * @device_mem: device memory charged to it
 * @category: device memory by category
 */
struct neuron_core {
	struct mutex lock;
	struct neuron_client *owner;
	struct pid *claim;
	const void *claim_via;
	u64 claim_until;
	struct neuron_crwl crwl;
	spinlock_t nq_lock;
	struct neuron_nq *nq[NEURON_HW_NR_NQ];
	struct neuron_nds_counter nds[NDS_EXT_NC_COUNTER_LAST];
	bool dirty;
	struct eventfd_ctx *reset_eventfd;
	bool reset_failed;
	atomic64_t reset_req;
	atomic64_t reset_fail;
	struct neuron_copy *copy;
	atomic64_t device_bytes;
	u64 limit;
	struct neuron_counter host_mem;
	struct neuron_counter device_mem;
	struct neuron_counter category[NEURON_NR_CATEGORIES];
};

void neuron_core_reset_eventfd(struct neuron_core *c, struct eventfd_ctx *eventfd);
int neuron_core_clean(struct neuron_device *nd, u32 core);
int neuron_core_check(struct neuron_core *core, const struct neuron_client *client);
int neuron_core_read(struct neuron_device *nd, u32 core, const struct neuron_client *client,
		     u32 off, u32 *val);
void neuron_core_take(struct neuron_device *nd, u32 core, struct neuron_client *client);
int neuron_cores_acquire(struct neuron_device *nd, unsigned long map,
			 struct neuron_client *client);
int neuron_core_acquire(struct neuron_device *nd, u32 core, struct neuron_client *client);
int neuron_core_try_reset(struct neuron_device *nd, u32 core);
int neuron_device_reset(struct neuron_device *nd);
void neuron_nds_add(struct neuron_device *nd, u32 core, u32 counter, u32 n);

#endif

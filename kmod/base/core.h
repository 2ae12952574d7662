/* SPDX-License-Identifier: GPL-2.0-only */
/* NeuronCores, and who owns them. */
#ifndef NEURON_BASE_CORE_H
#define NEURON_BASE_CORE_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "crwl.h"
#include "device.h"

struct eventfd_ctx;
struct neuron_client;
struct neuron_copy;
struct neuron_nq;
struct neuron_nq_poll;
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

/* core/RESET.md */
enum neuron_core_state {
	NEURON_CORE_READY,
	NEURON_CORE_RESETTING,
	NEURON_CORE_WEDGED,	/* a reset failed; it may make accesses for ever */
	NEURON_CORE_GONE,
};

/**
 * struct neuron_core - a NeuronCore
 * @nd: its device
 * @lock: @owner, @nq; with neuron_devices_lock: @claim, @claim_via, @claim_until
 * @owner: process that uses it; NULL = free.  Set and cleared under @lock
 * @reaches: cores that descriptors of its queues may name, if the driver checks them; by bit.
 *	     More than that until its next reset has ended
 * @dirty: its state buffer may hold what a program had there; written under @lock
 * @clearing: it is RESETTING only until that is cleared; under @lock
 * @claim: thread group that has claimed it, or NULL; see claim.c
 * @claim_via: client or file that the claim ends with
 * @claim_until: until then (jiffies64) the claim holds even if its process is not attached
 * @crwl: cooperative lock
 * @nq_lock: eventfds in @nq
 * @nq: notification queues in use, by type * 16 + engine; made on first use
 * @nq_poll: looks for new entries of a device that does not tell of them; made on first use
 * @nds: published counters by NDS_NC_COUNTER_*, under clients_lock
 * @state: written under @lock, and for GONE under @held_lock, too
 * @epoch: resets that were begun; under @lock
 * @ended: value of @epoch when the last one ended
 * @reset_err: how it ended
 * @requested: the reset under way was asked for; under @lock
 * @again: its owner went during a reset, so another one follows; under @lock
 * @reset_eventfd: signalled at resets; under @lock
 * @reset_req: resets that were requested
 * @reset_fail: those that failed
 * @reset_wait: woken when a reset ends
 * @reset_work: looks for its end; queued under @lock
 * @reset_until: when it is given up, in jiffies
 * @reset_pause: until the next look, in milliseconds
 * @held_lock: @held, @held_bytes, @held_named
 * @held: struct neuron_held that the hardware may still touch
 * @held_bytes: their memory
 * @held_named: other memory that they keep, once the core is WEDGED
 * @copy: copy ring; its own allocation
 * @device_bytes: bytes of device memory charged to it by all processes
 * @limit: limit of what the owner has charged or, without an owner, of @device_bytes; or
 *	   NEURON_NO_LIMIT
 * @host_mem: host memory charged to it
 * @device_mem: device memory charged to it
 * @category: device memory by category
 */
struct neuron_core {
	struct neuron_device *nd;
	struct mutex lock;
	struct neuron_client *owner;
	unsigned long reaches;
	bool dirty;
	bool clearing;
	struct pid *claim;
	const void *claim_via;
	u64 claim_until;
	struct neuron_crwl crwl;
	spinlock_t nq_lock;
	struct neuron_nq *nq[NEURON_HW_NR_NQ];
	struct neuron_nq_poll *nq_poll;
	struct neuron_nds_counter nds[NDS_EXT_NC_COUNTER_LAST];
	enum neuron_core_state state;
	u32 epoch;
	u32 ended;
	int reset_err;
	bool requested;
	bool again;
	struct eventfd_ctx *reset_eventfd;
	atomic64_t reset_req;
	atomic64_t reset_fail;
	wait_queue_head_t reset_wait;
	struct delayed_work reset_work;
	unsigned long reset_until;
	u32 reset_pause;
	spinlock_t held_lock;
	struct list_head held;
	u64 held_bytes;
	u64 held_named;
	struct neuron_copy *copy;
	atomic64_t device_bytes;
	u64 limit;
	struct neuron_counter host_mem;
	struct neuron_counter device_mem;
	struct neuron_counter category[NEURON_NR_CATEGORIES];
};

/* Can a core be used now?  Return: 0, or why not; for sure only under core->lock. */
static inline int neuron_core_usable(const struct neuron_core *c)
{
	switch (READ_ONCE(c->state)) {
	case NEURON_CORE_READY:
		return 0;
	case NEURON_CORE_RESETTING:
		return -EBUSY;
	case NEURON_CORE_WEDGED:
		return -EIO;
	default:
		return -ENODEV;
	}
}

/**
 * neuron_core_reaches() - may DMA of a process reach the state buffer of a core?
 * @c: core
 * @client: the process
 *
 * Where the driver checks descriptors, its owner may not before it is cleared, either: it
 * may have come first (neuron_core_acquire_now()).
 *
 * Context: any.
 * Return: 0; -EBUSY not yet; -EACCES it is not the owner.
 */
static inline int neuron_core_reaches(const struct neuron_core *c,
				      const struct neuron_client *client)
{
	/* Pairs with neuron_core_take(). */
	if (smp_load_acquire(&c->owner) != client)
		return -EACCES;
	return READ_ONCE(c->dirty) ? -EBUSY : 0;
}

void neuron_core_reset_eventfd(struct neuron_core *c, struct eventfd_ctx *eventfd);
int neuron_core_check(struct neuron_core *core, const struct neuron_client *client);
int neuron_core_read(struct neuron_device *nd, u32 core, const struct neuron_client *client,
		     u32 off, u32 *val);
int neuron_core_write(struct neuron_device *nd, u32 core, const struct neuron_client *client,
		      u32 off, u32 val);
void neuron_core_take(struct neuron_device *nd, u32 core, struct neuron_client *client);
bool neuron_cores_ready(struct neuron_device *nd);
int neuron_cores_settle(struct neuron_device *nd);
int neuron_cores_acquire(struct neuron_device *nd, unsigned long map,
			 struct neuron_client *client);
int neuron_core_acquire(struct neuron_device *nd, u32 core, struct neuron_client *client);
int neuron_core_acquire_now(struct neuron_device *nd, u32 core, struct neuron_client *client);
void neuron_cores_lock(struct neuron_device *nd, unsigned long map);
void neuron_cores_unlock(struct neuron_device *nd, unsigned long map);
int neuron_device_reset(struct neuron_device *nd);
void neuron_nds_add(struct neuron_device *nd, u32 core, u32 counter, u32 n);

#endif

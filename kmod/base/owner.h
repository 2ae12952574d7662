/* SPDX-License-Identifier: GPL-2.0-only */
/* Owners: the parts of a process among which it divides its memory. */
#ifndef NEURON_BASE_OWNER_H
#define NEURON_BASE_OWNER_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/rcupdate.h>

#include "../../uapi/neuron_native.h"
#include "neuron_hw.h"

struct neuron_client;
struct seq_file;

/* Time is counted in steps of 2^20 ns, about a millisecond: a sum of pages fits 64 bits. */
#define NEURON_OWNER_TICK_SHIFT	20

/**
 * struct neuron_owner_use - what an owner has of an HBM; under that hbm's lock
 * @bytes: now
 * @peak: most since @since
 * @low: least since @since
 * @page_ticks: sum of pages times ticks since @since, up to @tick
 * @tick: when it was added up
 * @since: when the figures started, ns
 * @allocs: allocations
 */
struct neuron_owner_use {
	u64 bytes;
	u64 peak;
	u64 low;
	u64 page_ticks;
	u64 tick;
	u64 since;
	u32 allocs;
};

/**
 * struct neuron_owner - a part of a process that holds memory
 * @ref: its number until that is released, and its chunks; not for the process itself
 * @client: the process, which outlives it
 * @id: number in client.owners; 0 = the process itself
 * @released: no more chunks are made for it; under the lock of client.owners, as is @label
 * @label: printable, ends with a 0
 * @host_bytes: bytes of host memory
 * @rcu: freeing
 * @use: by HBM
 */
struct neuron_owner {
	struct kref ref;
	struct neuron_client *client;
	u32 id;
	bool released;
	char label[NEURON_NATIVE_LABEL_MAX];
	atomic64_t host_bytes;
	struct rcu_head rcu;
	struct neuron_owner_use use[NEURON_HW_MAX_HBMS];
};

void neuron_owner_init(struct neuron_owner *owner, struct neuron_client *client);
struct neuron_owner *neuron_owner_get(struct neuron_client *client, u32 id);
void neuron_owner_free(struct kref *ref);
void neuron_owners_release(struct neuron_client *client);
void neuron_owners_show(struct seq_file *m, struct neuron_client *client, u32 nr_hbms);
void neuron_owner_show(const struct neuron_owner *owner, u32 hbm, u64 now,
		       struct neuron_native_owner_entry *out);

/*
 * The owners of a process, itself first.  @id: an unsigned long.  Under RCU or the lock of
 * client.owners.
 */
#define neuron_for_each_owner(client, id, owner)						\
	for ((id) = 0, (owner) = &(client)->owner; (owner);					\
	     (owner) = xa_find_after(&(client)->owners, &(id), ULONG_MAX, XA_PRESENT))

/**
 * neuron_owner_put_some() - chunks of an owner are gone
 * @owner: from neuron_owner_get(), the process itself, or NULL
 * @n: their number
 *
 * Context: any; a reference on its process is held.
 */
static inline void neuron_owner_put_some(struct neuron_owner *owner, u32 n)
{
	if (owner && owner->id && refcount_sub_and_test(n, &owner->ref.refcount))
		neuron_owner_free(&owner->ref);
}

/* The same of one chunk. */
static inline void neuron_owner_put(struct neuron_owner *owner)
{
	neuron_owner_put_some(owner, 1);
}

/**
 * neuron_owner_clear() - start the figures again
 * @use: the figures, under the lock of the HBM
 * @now: local_clock(), ns
 */
static inline void neuron_owner_clear(struct neuron_owner_use *use, u64 now)
{
	use->peak = use->bytes;
	use->low = use->bytes;
	use->page_ticks = 0;
	use->tick = now >> NEURON_OWNER_TICK_SHIFT;
	use->since = now;
}

/**
 * neuron_owner_count() - sum up the time that has passed
 * @use: the figures, under the lock of the HBM
 * @now: local_clock(), ns
 */
static inline void neuron_owner_count(struct neuron_owner_use *use, u64 now)
{
	u64 tick = now >> NEURON_OWNER_TICK_SHIFT;

	/* A clock that goes back takes away what it counted: sums wrap both ways. */
	use->page_ticks += (use->bytes >> PAGE_SHIFT) * (tick - use->tick);
	use->tick = tick;
}

/**
 * neuron_owner_charge() - an owner got memory of an HBM, or gave it back
 * @owner: the owner
 * @hbm: HBM number; its lock is held
 * @bytes: how much
 * @allocs: how many allocations more, or fewer
 * @add: it got them
 * @now: local_clock(), ns
 */
static inline void neuron_owner_charge(struct neuron_owner *owner, u32 hbm, u64 bytes, u32 allocs,
				       bool add, u64 now)
{
	struct neuron_owner_use *use = &owner->use[hbm];

	neuron_owner_count(use, now);
	if (add) {
		use->allocs += allocs;
		use->bytes += bytes;
		use->peak = max(use->peak, use->bytes);
	} else {
		use->allocs -= allocs;
		use->bytes -= bytes;
		use->low = min(use->low, use->bytes);
	}
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Chunks: allocations, their handles, addresses and users. */
#ifndef NEURON_MEM_CHUNK_H
#define NEURON_MEM_CHUNK_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>

#include "../compat/compat.h"
#include "buddy/buddy.h"

struct dma_resv;
struct dmem_cgroup_pool_state;
struct neuron_client;
struct neuron_device;
struct neuron_failure;
struct neuron_native_mem_bulk_entry;
struct neuron_owner;
struct page;
struct sg_table;

/* How a chunk is found by its address. */
enum neuron_handle_place {
	NEURON_PLACE_NONE,		/* it has no number */
	NEURON_PLACE_UNINDEXED,		/* in client.unindexed */
	NEURON_PLACE_TREE,		/* in client.by_addr */
};

/**
 * struct neuron_handle - what a process knows a chunk by
 * @chunk: the chunk; held, unless this is a part of it
 * @number: in client.handles; constant from there on, and stale once @place is none
 * @place: enum neuron_handle_place; under the lock of client.handles
 * @leaving: it is about to be taken away, with others; under the same lock
 * @node: in client.by_addr
 * @unindexed: in client.unindexed
 */
struct neuron_handle {
	struct neuron_chunk *chunk;
	u32 number;
	u8 place;
	bool leaving;
	/* Written when it comes into use. */
	union {
		struct rb_node node;
		struct list_head unindexed;
	};
};

/* What is special about a chunk. */
enum neuron_chunk_kind {
	NEURON_CHUNK_PLAIN,
	NEURON_CHUNK_DATASTORE,		/* other processes may map it to read */
	NEURON_CHUNK_PINNED,		/* pinned pages of a process, for one transfer */
	NEURON_CHUNK_PINNED_DIRTY,	/* same, and the device writes to them */
	NEURON_CHUNK_RING,		/* descriptors that the driver has checked */
	NEURON_CHUNK_PIECE,		/* free memory, taken to clear it or for a move */
};

/* Is a chunk being copied to another place? */
enum neuron_moving {
	NEURON_MOVING_NOT,
	NEURON_MOVING,
	NEURON_MOVING_IN_VAIN,		/* somebody came who may write, or it was freed */
};

/* The kinds of users of a chunk; mem/README.md has the rules. */
enum neuron_user {
	NEURON_USER_NONE,		/* a reader of its fields */
	NEURON_USER_MAPPING,		/* that is writable, or can be made so */
	NEURON_USER_EXPORT,
	NEURON_USER_IMPORT,		/* a handle of another allocation's memory */
	NEURON_USER_RING,		/* of a DMA queue, or a notification queue */
	NEURON_USER_TRANSFER,
	NEURON_USER_PEER,
	NEURON_USER_READER,		/* a mapping, or a side of a transfer, that only reads */
	NEURON_USER_PIN,		/* the process knows the address */
	NEURON_NR_USERS
};

/**
 * struct neuron_chunk - one allocation of device or host memory
 * @block: device memory: the allocator's block, first for
 *	   neuron_hbm_free_batch(); of movable memory as @addr
 * @pages: host memory: its pages
 * @dma: on a device with a parent: how the DMA API maps them; under device.host_lock, NULL
 *	 once the device is gone
 * @ref: see the top of chunk.c
 * @host: host memory, else device memory
 * @hbm: HBM number of device memory
 * @core: core charged
 * @category: mem_alloc_category_t charged
 * @kind: enum neuron_chunk_kind
 * @given: host memory: user space had pages of it, and may have kept them in a way that
 *	   does not count as a user
 * @movable: device memory: 0 it never moves, else 1 + n: to multiples of 2^n granules
 * @moving: enum neuron_moving; as @users
 * @users: by enum neuron_user - 1; under the lock of client.handles, as is becoming a ring
 * @size: bytes; changes under the lock of client.handles (and device.grow_lock), read
 *	  without
 * @addr: device address; of movable memory as @users, and constant while it has one
 * @client: process charged
 * @owner: part of it that is charged; NULL: the driver's
 * @dmem: device memory: cgroup charged
 * @dmem_extra: how often it was charged for growing; under device.grow_lock
 * @dmem_kept: bytes that stay charged until it is freed; under device.grow_lock
 * @own: the handle of the process that allocated it
 * @rcu: freeing of host memory, which is looked up under RCU
 * @ring: ring memory: what belongs to it; not set for other kinds
 * @resv: fences, once it was exported (sync.c); set once
 */
struct neuron_chunk {
	union {
		struct neuron_buddy_block block;
		struct {
			struct page **pages;
			struct sg_table *dma;
		};
	};
	struct kref ref;
	u8 host;
	u8 hbm;
	u8 core;
	u8 category;
	u8 kind;
	bool given;
	u8 movable;
	u8 moving;
	u32 users[NEURON_NR_USERS - 1];
	u64 size;
	u64 addr;
	struct neuron_client *client;
	struct neuron_owner *owner;
#ifdef NEURON_DMEM
	struct dmem_cgroup_pool_state *dmem;
	u32 dmem_extra;
	u64 dmem_kept;
#endif
	union {
		struct neuron_handle own;
		struct rcu_head rcu;
	};
	struct neuron_chunk_ring *ring;
	struct dma_resv *resv;
};

/**
 * struct neuron_chunk_ring - what belongs to ring memory
 * @node: in client.rings of the chunk's client, under the lock of its handles
 * @chunk: the memory, which outlives this
 * @release: the chunk is being freed
 */
struct neuron_chunk_ring {
	struct list_head node;
	struct neuron_chunk *chunk;
	void (*release)(struct neuron_chunk_ring *ring);
};

struct neuron_chunk_request {
	u64 size;
	u64 align;
	bool host;
	bool movable;
	u32 hbm;
	u32 core;
	u32 category;
	u32 owner;		/* number, 0 = the process itself */
	u32 placement;		/* NEURON_BUDDY_LOW, _HIGH, _EXACT or 0 */
	u64 at;			/* device address, with _EXACT */
};

int neuron_chunk_cache_init(void);
void neuron_chunk_cache_exit(void);
int neuron_chunk_alloc(struct neuron_client *client, const struct neuron_chunk_request *req,
		       struct neuron_chunk **out, struct neuron_failure *why);
int neuron_chunks_alloc(struct neuron_client *client, struct neuron_chunk_request *req,
			const struct neuron_native_mem_bulk_entry *entries, u32 n,
			struct neuron_chunk **chunks, u32 *failed, struct neuron_failure *why);
int neuron_chunk_user_pages(struct neuron_device *nd, u32 core, struct page **pages,
			    unsigned long n, bool dirty, struct neuron_chunk **out);
bool neuron_chunk_admit(struct neuron_chunk *chunk, enum neuron_user as);
int neuron_chunk_make_ring(struct neuron_chunk *chunk, struct neuron_chunk_ring *ring);
struct neuron_chunk_ring *neuron_chunk_find_ring(struct neuron_chunk *chunk);
void neuron_chunk_unuse(struct neuron_chunk *chunk, enum neuron_user as);
void neuron_chunk_put(struct neuron_chunk *chunk);
void neuron_chunks_free(struct neuron_client *client, struct neuron_chunk **chunks, u32 n);
int neuron_chunk_range(const struct neuron_chunk *chunk, u64 off, u64 len);

/* May memory get such a user?  Nobody but the driver writes to a ring. */
static inline bool neuron_chunk_admits(const struct neuron_chunk *chunk, enum neuron_user as)
{
	return likely(chunk->kind != NEURON_CHUNK_RING) || as == NEURON_USER_NONE ||
	       as == NEURON_USER_RING || as == NEURON_USER_READER;
}

/*
 * Under the lock of client.handles, or when the client is closed, where nothing is moved any
 * more: what is copied elsewhere is not to be used.
 */
static inline void neuron_chunk_spoil_move(struct neuron_chunk *chunk)
{
	if (unlikely(READ_ONCE(chunk->moving)))
		WRITE_ONCE(chunk->moving, NEURON_MOVING_IN_VAIN);
}

/* Count a user, under the same lock: what it may write, a move would not copy. */
static inline void neuron_chunk_count(struct neuron_chunk *chunk, enum neuron_user as)
{
	chunk->users[as - 1]++;
	if (as != NEURON_USER_READER)
		neuron_chunk_spoil_move(chunk);
}

static inline struct neuron_chunk *neuron_chunk_ref(struct neuron_chunk *chunk)
{
	kref_get(&chunk->ref);
	return chunk;
}

#endif

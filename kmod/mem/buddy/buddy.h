/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Allocator of contiguous device memory: one zone per HBM stack.
 *
 * A zone hands out one contiguous run of 4 KiB granules per request, with any
 * power-of-two alignment. Addresses and sizes at this interface are bytes,
 * relative to the start of the zone.
 *
 * Locking
 * -------
 * A zone has no lock of its own. Its owner keeps one spinlock per zone and
 * holds it around every function marked "Context: zone lock". Those functions
 * never sleep and never allocate memory. The others say what they need.
 *
 * Metadata comes from a reserve that neuron_buddy_prepare() fills outside the
 * lock; what is still missing under the lock is reported as -EAGAIN before
 * anything has changed. Every allocating call has therefore this shape:
 *
 *	do {
 *		err = neuron_buddy_prepare(zone);
 *		if (err)
 *			break;
 *		spin_lock(&lock);
 *		err = neuron_buddy_alloc(zone, &req, &block, &cause);
 *		spin_unlock(&lock);
 *	} while (err == -EAGAIN);
 *
 * -EAGAIN is rare: other threads used the reserve up between prepare and lock, or an empty frame
 * that was kept took from it.
 * Freeing needs no reserve, never allocates and never fails for a block that is live.
 */
#ifndef NEURON_MEM_BUDDY_H
#define NEURON_MEM_BUDDY_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include "shim.h"
#endif

/*
 * Of what every allocation and every free go through: such functions lie side by side, and what
 * lies in few pages takes few entries of the caches that know pages.
 */
#define __neuron_hot	__attribute__((__hot__))

/* One granule: the unit of every address and size. */
#define NEURON_BUDDY_GRANULE_SHIFT	12
#define NEURON_BUDDY_GRANULE		(1ULL << NEURON_BUDDY_GRANULE_SHIFT)

/* Largest zone: 2^31 granules. */
#define NEURON_BUDDY_MAX_SIZE		(1ULL << (31 + NEURON_BUDDY_GRANULE_SHIFT))

/* Orders of the statistics: order o means 2^o granules; 0 .. 31. */
#define NEURON_BUDDY_ORDERS		32

struct neuron_buddy;

/* Placement of an allocation; see struct neuron_buddy_request. */
#define NEURON_BUDDY_LOW	(1u << 0)	/* lowest fitting address among free extents */
#define NEURON_BUDDY_HIGH	(1u << 1)	/* highest one */
#define NEURON_BUDDY_EXACT	(1u << 2)	/* at request.addr or not at all */
#define NEURON_BUDDY_FLAGS	(NEURON_BUDDY_LOW | NEURON_BUDDY_HIGH | NEURON_BUDDY_EXACT)

/**
 * struct neuron_buddy_request - what to allocate
 * @size:  bytes, not 0; rounded up to the granule
 * @align: bytes, a power of two; 0 or anything below the granule means the granule
 * @addr:  with NEURON_BUDDY_EXACT the wanted address, granule aligned and
 *	   aligned to @align; otherwise ignored
 * @flags: at most one of NEURON_BUDDY_LOW, _HIGH, _EXACT; with 0 the zone chooses, which
 *	   fragments least. Requests of up to 512 KiB share frames; for these LOW and HIGH
 *	   choose where a new frame is taken, and are a preference only.
 */
struct neuron_buddy_request {
	u64 size;
	u64 align;
	u64 addr;
	u32 flags;
};

/**
 * struct neuron_buddy_block - a live allocation, kept by its owner
 * @addr:    first byte, relative to the zone
 * @size:    bytes, the request rounded up to the granule
 * @id:      number of the zone that made it: detects foreign blocks
 * @gen:     generation of this allocation: detects stale blocks
 * @cleared: the memory is known to be all zero
 *
 * The owner stores it and hands it back unchanged. 24 bytes.
 */
struct neuron_buddy_block {
	u64 addr;
	u64 size;
	u32 id;
	u32 gen : 31;
	u32 cleared : 1;
};

/* Why an allocation was refused. */
enum neuron_buddy_cause {
	NEURON_BUDDY_CAUSE_NONE,	/* was not refused, or -EINVAL / -EAGAIN */
	NEURON_BUDDY_CAUSE_FULL,	/* free bytes < size */
	NEURON_BUDDY_CAUSE_FRAGMENTED,	/* free bytes >= size, no run of that length */
	NEURON_BUDDY_CAUSE_ALIGNMENT,	/* such a run exists, but none has that alignment */
	NEURON_BUDDY_CAUSE_BUSY,	/* EXACT, reserve, grow: range is not free */
	NEURON_BUDDY_CAUSES
};

/* State of a range reported by neuron_buddy_walk(). */
enum neuron_buddy_state {
	NEURON_BUDDY_RANGE_FREE,
	NEURON_BUDDY_RANGE_USED,
	NEURON_BUDDY_RANGE_RESERVED,	/* permanent: carve-out, retired page */
};

/**
 * struct neuron_buddy_range - one range of the zone, for walking
 * @addr:  first byte
 * @size:  bytes
 * @state: enum neuron_buddy_state
 * @small: lies in a frame, which small allocations share
 */
struct neuron_buddy_range {
	u64 addr;
	u64 size;
	u8 state;
	u8 small;
};

/**
 * struct neuron_buddy_stats - snapshot of a zone; bytes unless said otherwise
 * @total:	 size of the zone
 * @used:	 allocated now
 * @reserved:	 permanent reservations; total = used + reserved + free
 * @free:	 free
 * @high_water:	 largest @used so far
 * @largest:	 longest free run: a request of this size and granule alignment
 *		 succeeds, no larger one does
 * @order_free:	 free bytes in free runs of 2^o up to 2^(o+1)-1 granules
 * @allocs:	 live allocations
 * @alloc_calls: allocations made so far
 * @free_calls:	 frees so far
 * @slow_calls:	 allocations that needed an exhaustive search
 * @bad_frees:	 frees refused (double, stale, foreign, malformed)
 * @failures:	 refusals so far, by enum neuron_buddy_cause
 * @frames:	 frames of up to 2 MiB in use for small allocations
 * @metadata:	 bytes of host memory that the zone uses for itself
 */
struct neuron_buddy_stats {
	u64 total;
	u64 used;
	u64 reserved;
	u64 free;
	u64 high_water;
	u64 largest;
	u64 order_free[NEURON_BUDDY_ORDERS];
	u64 allocs;
	u64 alloc_calls;
	u64 free_calls;
	u64 slow_calls;
	u64 bad_frees;
	u64 failures[NEURON_BUDDY_CAUSES];
	u64 frames;
	u64 metadata;
};

/**
 * neuron_buddy_create() - make a zone, all free and not known to be clear
 * @zone: set on success; destroy with neuron_buddy_destroy()
 * @size: bytes, a multiple of the granule, up to NEURON_BUDDY_MAX_SIZE
 *
 * Context: may sleep.
 * Return: 0, -EINVAL (size), -ENOMEM.
 */
int neuron_buddy_create(struct neuron_buddy **zone, u64 size);

/**
 * neuron_buddy_destroy() - release a zone; live allocations are forgotten
 * @zone: may be NULL
 *
 * Context: may sleep; nobody else uses the zone any more.
 */
void neuron_buddy_destroy(struct neuron_buddy *zone);

/**
 * neuron_buddy_prepare() - make sure that the next operation finds metadata
 * @zone: the zone
 *
 * Call before every alloc, reserve, grow and split. Costs two loads when the reserve
 * is full. Otherwise a few pages are allocated and put on a lock-free list
 * that the next caller under the zone lock takes over.
 *
 * Context: may sleep, without the zone lock; any number of callers.
 * Return: 0, -ENOMEM (the zone is unchanged).
 */
int neuron_buddy_prepare(struct neuron_buddy *zone);

/**
 * neuron_buddy_alloc() - allocate one contiguous run
 * @zone:  the zone
 * @req:   what is wanted
 * @block: set on success, untouched otherwise
 * @cause: says why the request was refused; NULL: it will be asked again, so a refusal is
 *	   not counted
 *
 * Refuses only if no free aligned run exists. (Bounded work makes one
 * exception, see "What is refused" in zone.h.)
 *
 * Context: zone lock.
 * Return: 0; -EINVAL malformed request; -ENOSPC refused, see @cause;
 *	   -EBUSY an EXACT range is not free; -EAGAIN call prepare again.
 */
int __neuron_hot neuron_buddy_alloc(struct neuron_buddy *zone,
				    const struct neuron_buddy_request *req,
				    struct neuron_buddy_block *block,
				    enum neuron_buddy_cause *cause);

/**
 * neuron_buddy_free() - give an allocation back
 * @zone:    the zone
 * @block:   as returned by alloc or grow
 * @cleared: the owner knows that all of it is zero
 *
 * Context: zone lock. Never allocates; never fails for a live block.
 * Return: 0; with the zone unchanged: -EINVAL malformed or of another zone;
 *	   -ENOENT nothing is allocated there (double free) or it does not
 *	   begin and end there; -ESTALE another allocation lives there now;
 *	   -EPERM a permanent reservation.
 */
int __neuron_hot neuron_buddy_free(struct neuron_buddy *zone,
				   const struct neuron_buddy_block *block, bool cleared);

/**
 * neuron_buddy_free_batch() - give several allocations back
 * @zone:    the zone
 * @blocks:  as returned by alloc or grow; best in the order of their addresses
 * @n:       their number, up to 64
 * @cleared: bit per block, as in neuron_buddy_free()
 *
 * The same as freeing one after the other, but cheaper where blocks are neighbours.
 *
 * Context: zone lock. Never allocates.
 * Return: 0, or what neuron_buddy_free() says about the first block it refuses;
 *	   the others are freed.
 */
int __neuron_hot neuron_buddy_free_batch(struct neuron_buddy *zone,
					 const struct neuron_buddy_block *const *blocks,
					 unsigned int n, u64 cleared);

/**
 * neuron_buddy_grow() - enlarge an allocation in place
 * @zone:     the zone
 * @block:    live allocation; @block->size and ->cleared are updated on success
 * @new_size: bytes, at least the present size; rounded up to the granule
 *
 * Context: zone lock, after prepare.
 * Return: 0; errors of free() for a bad block; -EINVAL @new_size;
 *	   -ENOSPC the memory behind it is not free; -EAGAIN.
 */
int neuron_buddy_grow(struct neuron_buddy *zone, struct neuron_buddy_block *block, u64 new_size);

/**
 * neuron_buddy_split() - split an allocation in place
 * @zone:     the zone
 * @block:    live allocation; @block->size is updated on success
 * @new_size: bytes that it keeps, not 0 and below the present size; rounded up
 *	      to the granule
 * @tail:     set on success: the rest, an allocation like any other, not known to be
 *	      clear
 *
 * Context: zone lock, after prepare.
 * Return: 0; errors of free() for a bad block; -EINVAL @new_size; -ENOSPC it shares a
 *	   frame with other small ones; -EAGAIN.
 */
int neuron_buddy_split(struct neuron_buddy *zone, struct neuron_buddy_block *block, u64 new_size,
		       struct neuron_buddy_block *tail);

/**
 * neuron_buddy_reserve() - take a range out of the zone for good
 * @zone: the zone
 * @addr: first byte, granule aligned
 * @size: bytes, a multiple of the granule
 *
 * For firmware carve-outs and retired pages. The whole range must be free or
 * already reserved; reserving twice is not an error.
 *
 * Context: zone lock, after prepare.
 * Return: 0, -EINVAL, -EBUSY part of it is allocated (nothing changes), -EAGAIN.
 */
int neuron_buddy_reserve(struct neuron_buddy *zone, u64 addr, u64 size);

/**
 * neuron_buddy_mark_clear() - declare all free memory to be zero
 * @zone: the zone
 *
 * For devices whose memory is known to be zero at start or after a scrub.
 *
 * Context: zone lock.
 */
void neuron_buddy_mark_clear(struct neuron_buddy *zone);

/**
 * neuron_buddy_query() - find the allocation that contains an address
 * @zone: the zone
 * @addr: any byte
 * @out:  set on success: @addr, @size and @id; @gen is 0 for what shares a frame, so @out
 *	  does for inspection, not for freeing
 *
 * Context: zone lock.
 * Return: 0, -EINVAL outside the zone, -ENOENT free or reserved.
 */
int neuron_buddy_query(struct neuron_buddy *zone, u64 addr, struct neuron_buddy_block *out);

/**
 * neuron_buddy_walk() - list the ranges of the zone, a few at a time
 * @zone:  the zone
 * @pos:   where to go on; 0 at first, then advanced past the listed ranges
 * @out:   array for @count ranges
 * @count: size of @out
 *
 * Ranges come in address order. The lock may be dropped between two calls. The list may
 * or may not show changes made meanwhile, but no address is listed twice.
 *
 * Context: zone lock.
 * Return: number of ranges filled in; 0 at the end of the zone.
 */
unsigned int neuron_buddy_walk(struct neuron_buddy *zone, u64 *pos,
			       struct neuron_buddy_range *out, unsigned int count);

/**
 * neuron_buddy_stats() - snapshot
 * @zone:  the zone
 * @stats: filled in
 *
 * Context: zone lock.
 */
void neuron_buddy_stats(struct neuron_buddy *zone, struct neuron_buddy_stats *stats);

/**
 * neuron_buddy_largest() - longest free run aligned to @align
 * @zone:  the zone
 * @align: bytes, a power of two
 *
 * Exact for alignments of one granule. For others a lower bound: a request of that size
 * and alignment succeeds, a slightly larger one may, too.
 *
 * Context: zone lock.
 * Return: bytes; 0 if there is none or @align is no power of two.
 */
u64 neuron_buddy_largest(struct neuron_buddy *zone, u64 align);

/* Single counters, readable at any time without a lock. Bytes. */
u64 neuron_buddy_total(const struct neuron_buddy *zone);
u64 neuron_buddy_used(const struct neuron_buddy *zone);
u64 neuron_buddy_free_bytes(const struct neuron_buddy *zone);

/**
 * neuron_buddy_check() - verify every invariant of the zone
 * @zone: the zone
 *
 * Walks all metadata: for tests and a debug knob, not for production paths.
 *
 * Context: zone lock.
 * Return: 0 or a positive number that names the violated rule (its line in
 *	   check.c).
 */
int neuron_buddy_check(struct neuron_buddy *zone);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Ring memory on a device that does not check addresses: RINGS.md. */
#ifndef NEURON_DMA_RING_H
#define NEURON_DMA_RING_H

#include <linux/mutex.h>
#include <linux/xarray.h>

#include "../mem/chunk.h"

struct neuron_client;
struct neuron_device;

/**
 * struct neuron_ring - ring memory whose descriptors the driver checks
 * @base: of its chunk
 * @write: held by who writes to the ring, for as long as a copy takes, and by who binds it
 * @lock: the rest, held for moments; @slot is written under the lock of the handles of its
 *	  client, too
 * @ready: it was cleared
 * @dir: side (enum neuron_dma_queue_type), fixed when it became a ring
 * @bound: uses by a queue that hardware may know of: two while it is set up again
 * @held: its queue is being stopped or reset, or could not be
 * @broken: a write failed, so nobody knows all that is in it
 * @eng: engine of the queue, if @bound
 * @q: its number
 * @cores: cores that its slots have named, by bit
 * @nr_slots: its length in descriptors
 * @open: sources: descriptors of the packet that was started and is not complete
 * @staged: how many of them name a core that its client does not own yet
 * @kept: chunks that slots have named, by page of their address, and that hardware may
 *	  still use; each is held
 * @slot: see ring.c
 * @writing: the first slot that is being written
 * @nr_writing: how many are
 */
struct neuron_ring {
	struct neuron_chunk_ring base;
	struct mutex write;	/* see above */
	struct mutex lock;	/* see above */
	bool ready;
	u8 dir;
	u32 bound;
	bool held;
	bool broken;
	u32 eng;
	u32 q;
	unsigned long cores;
	u32 nr_slots;
	u32 open;
	u32 staged;
	struct xarray kept;
	unsigned long *slot;
	u32 writing;
	u32 nr_writing;
};

int neuron_ring_possible(struct neuron_client *client, struct neuron_chunk *chunk, int dir);
int neuron_ring_make(struct neuron_client *client, struct neuron_chunk *chunk, int dir);
struct neuron_ring *neuron_ring_of(struct neuron_chunk *chunk);
int neuron_ring_write(struct neuron_client *client, u64 handle, const void __user *buf, u32 num,
		      u64 off, int dir);
int neuron_ring_bind(struct neuron_ring *ring, int dir, u32 length, u32 eng, u32 q);
void neuron_ring_start(struct neuron_ring *ring);
void neuron_ring_hold(struct neuron_ring *ring);
u64 neuron_ring_bytes(struct neuron_ring *ring, struct xarray *seen);
void neuron_ring_unbind(struct neuron_ring *ring);
void neuron_ring_lock(struct neuron_ring *ring);
void neuron_ring_unlock(struct neuron_ring *ring);
int neuron_ring_startable(struct neuron_ring *ring, u32 length, u32 from, u32 count);
void neuron_ring_forget(struct neuron_client *client, const struct neuron_chunk *chunk);

#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ring memory on a device that does not check addresses (RINGS.md).
 *
 * Nobody but this file writes to it: each descriptor is checked when it is copied in, and
 * its slot is a user of the memory that the descriptor names, until it is written again
 * and no queue has the ring, or the ring is freed.  Hardware only ever finds descriptors
 * that have passed, and zeros: those that have to wait for a core are staged while no
 * queue has the ring.
 */
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../../uapi/neuron_isa.h"
#include "../base/client.h"
#include "../base/core.h"
#include "../base/isolation.h"
#include "../mem/handle.h"
#include "../mem/host.h"
#include "../mem/space.h"
#include "copy.h"
#include "ring.h"

/*
 * What is known of a slot: 0 it is empty, else the chunk that it names or, with
 * NEURON_SLOT_WINDOW, the core whose window it names; and where it is in a packet.
 */
#define NEURON_SLOT_FIRST	BIT(0)
#define NEURON_SLOT_LAST	BIT(1)
#define NEURON_SLOT_WINDOW	BIT(2)
#define NEURON_SLOT_STAGED	BIT(3)		/* its client does not own the core yet */
#define NEURON_SLOT_CORE_SHIFT	4
#define NEURON_SLOT_FLAGS	7ul		/* bits of a pointer that are 0 */

/* Descriptors that are copied in at a time. */
#define NEURON_RING_BATCH	4096u
/* Slots that may name a chunk: its counts do not overflow. */
#define NEURON_RING_PINS_MAX	(1u << 30)

#define NEURON_DESC_CTRL	(NEURON_DESC_LEN_MASK | NEURON_DESC_RING_ID_MASK | \
				 NEURON_DESC_FIRST | NEURON_DESC_LAST | NEURON_DESC_INT | \
				 NEURON_DESC_BARRIER)

/**
 * struct neuron_ring_batch - descriptors on their way into a ring
 * @desc: the descriptors
 * @nr: their number, and entries of @slot
 * @slot: what they name; once they are in the ring, what its slots named before
 */
struct neuron_ring_batch {
	struct neuron_desc *desc;
	u32 nr;
	unsigned long slot[];
};

static struct neuron_chunk *neuron_slot_chunk(unsigned long slot)
{
	return slot & NEURON_SLOT_WINDOW ? NULL :
					   (struct neuron_chunk *)(slot & ~NEURON_SLOT_FLAGS);
}

static u32 neuron_slot_core(unsigned long slot)
{
	return slot >> NEURON_SLOT_CORE_SHIFT;
}

static bool neuron_slot_staged(unsigned long slot)
{
	return slot & NEURON_SLOT_WINDOW && slot & NEURON_SLOT_STAGED;
}

/* These slots name nothing any more. */
static void neuron_slots_put(unsigned long *slot, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		neuron_chunk_unuse(neuron_slot_chunk(slot[i]), NEURON_USER_RING);
		slot[i] = 0;
		if (i % NEURON_RING_BATCH == NEURON_RING_BATCH - 1)
			cond_resched();
	}
}

/* Hardware uses nothing any more that slots have named before. */
static void neuron_ring_let_go(struct neuron_ring *ring)
{
	struct xarray *handles = &ring->base.chunk->client->handles;
	struct neuron_chunk *chunk;
	unsigned long index;

	xa_for_each(&ring->kept, index, chunk) {
		/* Who finds it under this lock may take a reference. */
		xa_lock(handles);
		xa_erase(&ring->kept, index);
		xa_unlock(handles);
		neuron_chunk_unuse(chunk, NEURON_USER_RING);
	}
}

/*
 * The same, under ring.lock, if that is known: it is not after a write that failed, nor during one,
 * which may.
 */
static void neuron_ring_settle(struct neuron_ring *ring)
{
	if (!ring->broken && !ring->nr_writing)
		neuron_ring_let_go(ring);
}

/*
 * The head of a queue passes a descriptor when it was fetched, not when its copy is done.
 * And of a write that fails nobody knows what it has changed.  So what slots name is kept
 * before they are written.  Under ring->lock.
 */
static int neuron_ring_keep(struct neuron_ring *ring, const unsigned long *slot, u32 n)
{
	struct neuron_chunk *chunk, *last = NULL;
	u32 i;
	int err;

	for (i = 0; i < n; i++) {
		chunk = neuron_slot_chunk(slot[i]);
		if (!chunk || chunk == last)
			continue;
		last = chunk;
		err = xa_insert(&ring->kept, chunk->addr >> PAGE_SHIFT, chunk, GFP_KERNEL_ACCOUNT);
		if (!err)
			neuron_chunk_admit(neuron_chunk_ref(chunk), NEURON_USER_RING);
		else if (err != -EBUSY)
			return -ENOMEM;
	}
	return 0;
}

static void neuron_ring_release(struct neuron_chunk_ring *base)
{
	struct neuron_ring *ring = container_of(base, struct neuron_ring, base);

	neuron_slots_put(ring->slot, ring->nr_slots);
	neuron_ring_let_go(ring);
	kvfree(ring->slot);
	kfree(ring);
}

/* Under ring->lock. */
static int neuron_ring_clear(struct neuron_ring *ring, u64 off, u64 len)
{
	struct neuron_chunk *chunk = ring->base.chunk;

	return chunk->host ? neuron_chunk_fill_host(chunk, off, 0, len) :
			     neuron_dma_fill(chunk->client->nd, chunk->core, chunk->addr + off, 0,
					     len);
}

static int neuron_ring_refused(struct neuron_chunk *chunk, int err)
{
	if (err == -EBUSY)
		neuron_isolation_refused(chunk->client->nd,
					 "to make a ring of memory that can be written");
	return err;
}

/* @chunk becomes ring memory, unless it is.  Its contents are not cleared yet. */
static int neuron_ring_new(struct neuron_chunk *chunk, int dir)
{
	struct neuron_ring *ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	u64 slots = READ_ONCE(chunk->size) / NEURON_DESC_SIZE;
	int err = -ENOMEM;

	if (!ring)
		return -ENOMEM;
	mutex_init(&ring->write);
	mutex_init(&ring->lock);
	xa_init_flags(&ring->kept, XA_FLAGS_ACCOUNT);
	ring->base.release = neuron_ring_release;
	ring->dir = dir;
	ring->nr_slots = min_t(u64, slots, NEURON_RING_MAX);
	ring->slot = kvcalloc(ring->nr_slots, sizeof(*ring->slot), GFP_KERNEL_ACCOUNT);
	if (ring->slot)
		err = neuron_chunk_make_ring(chunk, &ring->base);
	if (!err)
		return 0;
	kvfree(ring->slot);
	kfree(ring);
	return err == -EEXIST ? 0 : neuron_ring_refused(chunk, err);
}

/**
 * neuron_ring_of() - the ring that a chunk is
 * @chunk: held by the caller
 *
 * Context: process.
 * Return: it stays as long as the chunk; NULL: the chunk is not ring memory.
 */
struct neuron_ring *neuron_ring_of(struct neuron_chunk *chunk)
{
	struct neuron_chunk_ring *base = neuron_chunk_find_ring(chunk);

	return base ? container_of(base, struct neuron_ring, base) : NULL;
}

/**
 * neuron_ring_possible() - could memory be a ring?
 * @client: caller
 * @chunk: the memory, held by the caller
 * @dir: side, enum neuron_dma_queue_type
 *
 * Nothing changes, so another thread can still make neuron_ring_make() fail.
 *
 * Context: process.
 * Return: 0; -EBUSY, -EINVAL as neuron_ring_make().
 */
int neuron_ring_possible(struct neuron_client *client, struct neuron_chunk *chunk, int dir)
{
	int err;

	if (chunk->client != client)
		return -EBUSY;
	err = neuron_chunk_make_ring(chunk, NULL);
	if (err != -EEXIST)
		return neuron_ring_refused(chunk, err);
	return neuron_ring_of(chunk)->dir == dir ? 0 : -EINVAL;
}

/**
 * neuron_ring_make() - memory is to be a ring
 * @client: caller
 * @chunk: the memory, held by the caller
 * @dir: side, enum neuron_dma_queue_type
 *
 * What was in the memory is lost, unless it is a ring already.
 *
 * Context: may sleep.
 * Return: 0; -EBUSY somebody else may write to the memory, or has allocated it; -EINVAL it
 *	   is a ring of the other side; -ENOMEM; -EIO, -ETIMEDOUT, -EINTR it could not be
 *	   cleared.
 */
int neuron_ring_make(struct neuron_client *client, struct neuron_chunk *chunk, int dir)
{
	struct neuron_ring *ring;
	int err = 0;

	/* An import may have gone since the look-up. */
	if (chunk->client != client)
		return -EBUSY;
	if (READ_ONCE(chunk->kind) != NEURON_CHUNK_RING)
		err = neuron_ring_new(chunk, dir);
	if (err)
		return err;
	ring = neuron_ring_of(chunk);
	if (mutex_lock_killable(&ring->write))
		return -EINTR;
	/* It may have become shorter before it was a ring. */
	if (!ring->ready && ring->nr_slots > chunk->size / NEURON_DESC_SIZE)
		ring->nr_slots = chunk->size / NEURON_DESC_SIZE;
	if (!ring->ready)
		err = neuron_ring_clear(ring, 0, chunk->size);
	ring->ready = !err;
	if (!err && ring->dir != dir)
		err = -EINVAL;
	mutex_unlock(&ring->write);
	return err;
}

/* Everything but the address. */
static bool neuron_desc_known(const struct neuron_device *nd, const struct neuron_desc *d, int dir)
{
	u32 meta = le32_to_cpu(d->meta);
	bool isa = nd->geo->isa_version;

	if (le32_to_cpu(d->ctrl) & ~NEURON_DESC_CTRL)
		return false;
	/* A destination of the software device has an operand there. */
	if (dir == NEURON_DMA_QUEUE_TYPE_RX)
		return isa || !meta;
	if (isa && (meta & NEURON_DESC_META_OP_MASK) == NEURON_ISA_DMA_COMPUTE)
		return true;
	return (meta & ~NEURON_DESC_META_WRITE_BARRIER) == NEURON_DESC_META_COPY;
}

/* May a slot of @ring name a part of the window of @core? */
static int neuron_slot_window(struct neuron_ring *ring, u32 core, u64 off, u64 len,
			      unsigned long *slot)
{
	struct neuron_client *client = ring->base.chunk->client;
	const struct neuron_core *c = &client->nd->core[core];
	int err;

	if (!neuron_isolation_window(client->nd, off, len))
		return -EACCES;
	*slot = NEURON_SLOT_WINDOW | (unsigned long)core << NEURON_SLOT_CORE_SHIFT;
	err = neuron_core_reaches(c, client);
	if (!err || ring->bound)
		return err;
	if (err == -EACCES && READ_ONCE(c->owner))
		return err;
	*slot |= NEURON_SLOT_STAGED;
	return 0;
}

/* May a slot of @ring name a chunk of which it is a user now? */
static int neuron_slot_may_name(struct neuron_ring *ring, struct neuron_chunk *chunk)
{
	struct neuron_client *client = ring->base.chunk->client;

	if (chunk->kind == NEURON_CHUNK_RING || chunk == ring->base.chunk)
		return -EACCES;
	if (READ_ONCE(chunk->users[NEURON_USER_RING - 1]) > NEURON_RING_PINS_MAX)
		return -ENOSPC;
	/* Who frees an import looks for users afterwards, and may have come before this one. */
	if (chunk->client != client && !neuron_chunk_handle(client, chunk))
		return -EACCES;
	return 0;
}

/* May a slot of @ring name what @d names?  If so, *@slot keeps it.  Under ring->lock. */
static int neuron_slot_check(struct neuron_ring *ring, const struct neuron_desc *d,
			     unsigned long *slot)
{
	struct neuron_client *client = ring->base.chunk->client;
	u32 ctrl = le32_to_cpu(d->ctrl), core;
	u64 addr = le64_to_cpu(d->addr), end;
	u32 len = ctrl & NEURON_DESC_LEN_MASK ?: NEURON_DESC_MAX_LEN;
	struct neuron_chunk *chunk;
	int err;

	*slot = 0;
	if (!d->ctrl && !d->meta && !d->addr)
		return 0;
	if (!neuron_desc_known(client->nd, d, ring->dir))
		return -EINVAL;
	if (check_add_overflow(addr, (u64)len - 1, &end))
		return -EACCES;
	chunk = neuron_chunk_find(client, addr, len, NEURON_USER_RING);
	if (chunk) {
		err = neuron_slot_may_name(ring, chunk);
		if (err) {
			neuron_chunk_unuse(chunk, NEURON_USER_RING);
			return err;
		}
		*slot = (unsigned long)chunk;
	} else {
		core = neuron_space_core(client->nd, addr, len);
		if (core == client->nd->geo->nr_cores)
			return -EACCES;
		err = neuron_slot_window(ring, core, addr - client->nd->geo->tpb_base[core], len,
					 slot);
		if (err)
			return err;
	}
	*slot |= (ctrl & NEURON_DESC_FIRST ? NEURON_SLOT_FIRST : 0) |
		 (ctrl & NEURON_DESC_LAST ? NEURON_SLOT_LAST : 0);
	return 0;
}

/* The core of the queue that has the ring may reach those that its slots name. */
static void neuron_ring_reach(struct neuron_ring *ring, unsigned long cores)
{
	struct neuron_device *nd = ring->base.chunk->client->nd;
	unsigned int k;

	ring->cores |= cores;
	if (!ring->bound)
		return;
	for_each_set_bit(k, &ring->cores, NEURON_HW_MAX_CORES)
		set_bit(k, &nd->core[neuron_engine_core(nd, ring->eng)].reaches);
}

/*
 * Hardware that fetches a descriptor while it changes may find a length and an address that
 * were never checked together.  Under ring->lock.  Return: 0 it does not fetch any of these
 * slots before the next doorbell; -EBUSY; -EIO, -ENODEV.
 */
static int neuron_ring_idle(const struct neuron_ring *ring, u32 first, u32 n)
{
	struct neuron_device *nd = ring->base.chunk->client->nd;
	u32 base = ring->dir == NEURON_DMA_QUEUE_TYPE_RX ? NEURON_DMA_RX(ring->q) :
							   NEURON_DMA_TX(ring->q);
	u32 head, tail;
	bool busy;
	int err;

	if (!ring->bound)
		return 0;
	if (ring->held)
		return -EBUSY;
	err = nd->ops->reg_read(nd, NEURON_BLOCK_DMA, ring->eng, base + NEURON_DMA_Q_HEAD,
				&head) ?:
	      nd->ops->reg_read(nd, NEURON_BLOCK_DMA, ring->eng, base + NEURON_DMA_Q_TAIL, &tail);
	if (err)
		return err;
	head &= NEURON_DMA_Q_INDEX_MASK;
	tail &= NEURON_DMA_Q_INDEX_MASK;
	if (head == tail)
		return 0;
	busy = head < tail ? first < tail && first + n > head : first < tail || first + n > head;
	return busy ? -EBUSY : 0;
}

/* What slots name, and what @b does, change places.  Under ring->lock. */
static void neuron_ring_swap(struct neuron_ring *ring, u32 first, struct neuron_ring_batch *b)
{
	struct neuron_client *client = ring->base.chunk->client;
	u32 i;

	xa_lock(&client->handles);
	for (i = 0; i < b->nr; i++) {
		ring->staged += neuron_slot_staged(b->slot[i]);
		ring->staged -= neuron_slot_staged(ring->slot[first + i]);
		swap(ring->slot[first + i], b->slot[i]);
	}
	xa_unlock(&client->handles);
}

/* Slots name what checked descriptors will.  Under ring->lock. */
static void neuron_ring_put_begin(struct neuron_ring *ring, u32 first, struct neuron_ring_batch *b)
{
	unsigned long cores = 0;
	u32 i;

	for (i = 0; i < b->nr; i++)
		if (b->slot[i] & NEURON_SLOT_WINDOW)
			__set_bit(neuron_slot_core(b->slot[i]), &cores);
	neuron_ring_reach(ring, cores);
	neuron_ring_swap(ring, first, b);
	ring->writing = first;
	ring->nr_writing = b->nr;
}

/*
 * Put them there.  Whatever hardware finds there meanwhile, the old ones or the new ones, what
 * they name is held.  Not under ring->lock: who resets a core waits for that.
 */
static int neuron_ring_put(struct neuron_ring *ring, u32 first, struct neuron_ring_batch *b)
{
	struct neuron_chunk *chunk = ring->base.chunk;
	u64 off = (u64)first * NEURON_DESC_SIZE;
	u32 bytes = b->nr * NEURON_DESC_SIZE;

	return chunk->host ? neuron_chunk_rw_host(chunk, off, b->desc, bytes, true) :
			     neuron_dma_write(chunk->client->nd, chunk->core, chunk->addr + off,
					      b->desc, bytes);
}

/* Under ring->lock.  @err: of neuron_ring_put() */
static void neuron_ring_put_end(struct neuron_ring *ring, u32 first, struct neuron_ring_batch *b,
				int err)
{
	ring->nr_writing = 0;
	if (err == -ENOMEM)
		/* There was no room to begin with it: nothing was written. */
		neuron_ring_swap(ring, first, b);
	else if (err)
		/* Nobody knows which descriptors are there now. */
		ring->broken = true;
}

/* Under ring->lock.  Return: 0 each descriptor may be in a slot of @ring. */
static int neuron_ring_check(struct neuron_ring *ring, struct neuron_ring_batch *b)
{
	struct neuron_device *nd = ring->base.chunk->client->nd;
	int err = 0;
	u32 i;

	for (i = 0; i < b->nr && !err; i++)
		err = neuron_slot_check(ring, &b->desc[i], &b->slot[i]);
	if (!err)
		return 0;
	if (err == -EINVAL)
		neuron_isolation_refused(nd, "to write a descriptor of a kind that is not known");
	else
		neuron_isolation_refused(nd, "to write a descriptor for what is not its own");
	/* The one that was refused names nothing. */
	neuron_slots_put(b->slot, i - 1);
	return err;
}

/* @nr descriptors of a process; the caller frees them with kvfree(). */
static struct neuron_ring_batch *neuron_ring_batch(u32 nr, const void __user *buf)
{
	struct neuron_ring_batch *b;

	b = kvmalloc(struct_size(b, slot, nr) + nr * NEURON_DESC_SIZE, GFP_KERNEL_ACCOUNT);
	if (!b)
		return ERR_PTR(-ENOMEM);
	b->nr = nr;
	b->desc = (struct neuron_desc *)&b->slot[nr];
	if (!copy_from_user(b->desc, buf, nr * NEURON_DESC_SIZE))
		return b;
	kvfree(b);
	return ERR_PTR(-EFAULT);
}

/* Memory loses its contents when it becomes a ring: not for descriptors that are refused. */
static int neuron_ring_try(struct neuron_chunk *chunk, int dir, u32 nr, const void __user *buf)
{
	struct neuron_ring ring = { .base.chunk = chunk, .dir = dir };
	struct neuron_ring_batch *b = neuron_ring_batch(nr, buf);
	int err;

	if (IS_ERR(b))
		return PTR_ERR(b);
	err = neuron_ring_check(&ring, b);
	if (!err)
		neuron_slots_put(b->slot, nr);
	kvfree(b);
	return err;
}

/* Copy descriptors in, all or none.  Under ring->write. */
static int neuron_ring_write_batch(struct neuron_ring *ring, u32 first, struct neuron_ring_batch *b)
{
	u32 replaced = 0;
	int err;

	mutex_lock(&ring->lock);
	err = neuron_ring_idle(ring, first, b->nr) ?:
	      neuron_ring_keep(ring, &ring->slot[first], b->nr) ?: neuron_ring_check(ring, b);
	if (!err) {
		neuron_ring_put_begin(ring, first, b);
		mutex_unlock(&ring->lock);
		err = neuron_ring_put(ring, first, b);
		mutex_lock(&ring->lock);
		neuron_ring_put_end(ring, first, b, err);
		replaced = b->nr;
	}
	if (!ring->bound)
		neuron_ring_settle(ring);
	mutex_unlock(&ring->lock);
	neuron_slots_put(b->slot, replaced);
	return err;
}

static int neuron_ring_copy_in(struct neuron_ring *ring, u32 first, u32 nr,
			       const void __user *buf)
{
	struct neuron_ring_batch *b = neuron_ring_batch(nr, buf);
	int err;

	if (IS_ERR(b))
		return PTR_ERR(b);
	err = mutex_lock_killable(&ring->write);
	if (!err) {
		err = neuron_ring_write_batch(ring, first, b);
		mutex_unlock(&ring->write);
	}
	kvfree(b);
	return err;
}

/**
 * neuron_ring_write() - check descriptors and copy them into a ring
 * @client: caller
 * @handle: its handle of the memory, which becomes a ring
 * @buf: the descriptors
 * @num: their number
 * @off: where the first one goes, bytes; a multiple of its size
 * @dir: side, enum neuron_dma_queue_type
 *
 * Context: may sleep.
 * Return: 0; as neuron_ring_make(); -EINVAL not inside of the ring, or a descriptor is
 *	   malformed; -EACCES it names what the process does not have; -ENOSPC too many name
 *	   the same memory; -EBUSY a queue has still to fetch what is there; -EFAULT.
 *	   Memory does not become a ring for a first batch of descriptors that is refused.
 *	   Batches before the refused one are in the ring.
 */
int neuron_ring_write(struct neuron_client *client, u64 handle, const void __user *buf, u32 num,
		      u64 off, int dir)
{
	struct neuron_chunk *chunk = neuron_chunk_get(client, handle);
	u64 first = off / NEURON_DESC_SIZE;
	struct neuron_ring *ring;
	u32 n;
	int err;

	if (!chunk)
		return -ENOENT;
	err = first + num > NEURON_RING_MAX ? -EINVAL :
	      neuron_chunk_range(chunk, off, (u64)num * NEURON_DESC_SIZE);
	if (!err && !neuron_ring_of(chunk))
		err = neuron_ring_possible(client, chunk, dir) ?:
		      neuron_ring_try(chunk, dir, min(num, NEURON_RING_BATCH), buf);
	if (!err)
		err = neuron_ring_make(client, chunk, dir);
	if (err)
		goto put;
	ring = neuron_ring_of(chunk);
	/* Its memory may have become shorter before, or longer since. */
	if (first + num > ring->nr_slots)
		err = -EINVAL;
	while (num && !err) {
		n = min(num, NEURON_RING_BATCH);
		err = neuron_ring_copy_in(ring, first, n, buf);
		buf += n * NEURON_DESC_SIZE;
		first += n;
		num -= n;
	}
put:
	neuron_chunk_put(chunk);
	return err;
}

/* May the client reach the cores that slots wait for?  Under ring->lock. */
static int neuron_ring_reaches(const struct neuron_ring *ring)
{
	const struct neuron_client *client = ring->base.chunk->client;
	const struct neuron_core *core = client->nd->core;
	int err = 0;
	u32 i;

	for (i = 0; i < ring->nr_slots && !err; i++)
		if (neuron_slot_staged(ring->slot[i]))
			err = neuron_core_reaches(&core[neuron_slot_core(ring->slot[i])], client);
	return err;
}

/**
 * neuron_ring_bind() - a queue is to work on a ring
 * @ring: held by the caller
 * @dir: side of the queue
 * @length: its descriptors
 * @eng: its engine, of a core that the ring's client owns
 * @q: its number
 *
 * From now on slots cannot wait for a core.
 *
 * Context: may sleep.
 * Return: 0; -EINVAL it is of the other side, or shorter; -EBUSY another queue has the ring,
 *	   or a slot names a core whose state buffer is still being cleared;
 *	   -EACCES a slot names a core that the client does not own; -EIO a write to it
 *	   failed; -EINTR.
 */
int neuron_ring_bind(struct neuron_ring *ring, int dir, u32 length, u32 eng, u32 q)
{
	struct neuron_client *client = ring->base.chunk->client;
	int err = 0;
	u32 i;

	/* What is being written may still have to wait for a core. */
	if (mutex_lock_killable(&ring->write))
		return -EINTR;
	mutex_lock(&ring->lock);
	/* Its memory may have become longer since it became a ring. */
	if (!ring->ready || ring->dir != dir || length > ring->nr_slots)
		err = -EINVAL;
	else if (ring->bound && (ring->eng != eng || ring->q != q || ring->held))
		err = -EBUSY;
	else if (ring->broken)
		err = -EIO;
	else if (ring->staged)
		err = neuron_ring_reaches(ring);
	if (err == -EACCES)
		neuron_isolation_refused(client->nd, "to start a ring that names other cores");
	if (err)
		goto unlock;
	for (i = 0; i < ring->nr_slots && ring->staged; i++) {
		if (neuron_slot_staged(ring->slot[i])) {
			WRITE_ONCE(ring->slot[i], ring->slot[i] & ~NEURON_SLOT_STAGED);
			ring->staged--;
		}
	}
	ring->bound++;
	ring->eng = eng;
	ring->q = q;
unlock:
	mutex_unlock(&ring->lock);
	mutex_unlock(&ring->write);
	return err;
}

/**
 * neuron_ring_start() - hardware is about to be told of a queue with a ring
 * @ring: bound; may be NULL
 *
 * Context: may sleep; the queue that had the ring before has stopped; a reset of the
 * queue's core either is over or holds the queue.
 */
void neuron_ring_start(struct neuron_ring *ring)
{
	if (!ring)
		return;
	mutex_lock(&ring->lock);
	ring->held = false;
	ring->open = 0;
	neuron_ring_reach(ring, 0);
	neuron_ring_settle(ring);
	mutex_unlock(&ring->lock);
}

/**
 * neuron_ring_hold() - a queue with a ring may go on, and cannot be asked how far it is
 * @ring: bound; may be NULL
 *
 * Context: may sleep.
 */
void neuron_ring_hold(struct neuron_ring *ring)
{
	if (!ring)
		return;
	mutex_lock(&ring->lock);
	ring->held = true;
	mutex_unlock(&ring->lock);
}

/* Return: bytes of @chunk, unless they were counted.  Without memory for @seen they never are. */
static u64 neuron_chunk_unseen(const struct neuron_chunk *chunk, struct xarray *seen)
{
	unsigned long index = (unsigned long)chunk / sizeof(*chunk);

	return xa_insert(seen, index, xa_mk_value(0), GFP_KERNEL) ? 0 : READ_ONCE(chunk->size);
}

/**
 * neuron_ring_bytes() - memory that stays because a ring names it, or did
 * @ring: held by the caller; may be NULL
 * @seen: chunks that were counted before; those of the ring are added
 *
 * Context: may sleep.
 * Return: bytes.
 */
u64 neuron_ring_bytes(struct neuron_ring *ring, struct xarray *seen)
{
	struct neuron_chunk *chunk, *last = NULL;
	unsigned long index;
	u64 bytes = 0;
	u32 i;

	if (!ring)
		return 0;
	mutex_lock(&ring->lock);
	for (i = 0; i < ring->nr_slots; i++) {
		chunk = neuron_slot_chunk(ring->slot[i]);
		if (chunk && chunk != last)
			bytes += neuron_chunk_unseen(chunk, seen);
		last = chunk;
		if (i % NEURON_RING_BATCH == NEURON_RING_BATCH - 1)
			cond_resched();
	}
	xa_for_each(&ring->kept, index, chunk)
		bytes += neuron_chunk_unseen(chunk, seen);
	mutex_unlock(&ring->lock);
	return bytes;
}

/**
 * neuron_ring_unbind() - hardware knows of a queue with a ring no more
 * @ring: may be NULL
 *
 * Context: may sleep.
 */
void neuron_ring_unbind(struct neuron_ring *ring)
{
	if (!ring)
		return;
	mutex_lock(&ring->lock);
	if (!--ring->bound) {
		ring->held = false;
		neuron_ring_settle(ring);
	}
	mutex_unlock(&ring->lock);
}

/*
 * Are sources packets that go on where the last ones that were started end?  Slots before
 * @from may have been written again since.  Under ring->lock.
 */
static bool neuron_ring_packets(struct neuron_ring *ring, u32 length, u32 from, u32 count)
{
	u32 n = ring->open, i;

	for (i = from; count--; i = i + 1 == length ? 0 : i + 1) {
		if (!(ring->slot[i] & NEURON_SLOT_FIRST) != !!n || ++n > NEURON_PACKET_MAX)
			return false;
		if (ring->slot[i] & NEURON_SLOT_LAST)
			n = 0;
	}
	ring->open = n;
	return true;
}

/**
 * neuron_ring_lock() - keep descriptors as they are until doorbells have rung
 * @ring: may be NULL; of the two of a queue, the sources first
 *
 * Context: may sleep.
 */
void neuron_ring_lock(struct neuron_ring *ring)
{
	if (ring)
		mutex_lock_nested(&ring->lock, ring->dir);
}

/**
 * neuron_ring_unlock() - end neuron_ring_lock()
 * @ring: may be NULL
 */
void neuron_ring_unlock(struct neuron_ring *ring)
{
	if (ring)
		mutex_unlock(&ring->lock);
}

/**
 * neuron_ring_startable() - may hardware be told to go on in a ring, as it will be?
 * @ring: bound, locked
 * @length: descriptors of the queue
 * @from: the next one, less than @length
 * @count: to be started; not more than @length, not 0
 *
 * Context: may sleep.
 * Return: 0; -EINVAL one is empty, or they are not packets; -EBUSY another thread is writing one;
 *	   -EIO a write to it failed.
 */
int neuron_ring_startable(struct neuron_ring *ring, u32 length, u32 from, u32 count)
{
	bool ok = true;
	u32 i, n;

	if (ring->broken)
		return -EIO;
	for (i = from, n = count; n-- && ok; i = i + 1 == length ? 0 : i + 1) {
		if (i - ring->writing < ring->nr_writing)
			return -EBUSY;
		ok = ring->slot[i];
	}
	if (ok && ring->dir == NEURON_DMA_QUEUE_TYPE_TX)
		ok = neuron_ring_packets(ring, length, from, count);
	if (!ok)
		neuron_isolation_refused(ring->base.chunk->client->nd,
					 "to start descriptors that are not whole packets");
	return ok ? 0 : -EINVAL;
}

/* The next ring of a process, with a reference on its chunk.  Puts @prev. */
static struct neuron_ring *neuron_ring_next(struct neuron_client *client,
					    struct neuron_ring *prev)
{
	struct list_head *node = prev ? &prev->base.node : &client->rings;
	struct neuron_ring *ring = NULL;

	xa_lock(&client->handles);
	while (!ring && (node = node->next) != &client->rings) {
		ring = list_entry(node, struct neuron_ring, base.node);
		/* It is being freed. */
		if (!kref_get_unless_zero(&ring->base.chunk->ref))
			ring = NULL;
	}
	xa_unlock(&client->handles);
	if (prev)
		neuron_chunk_put(prev->base.chunk);
	return ring;
}

/* Empty @n slots, unless that fails.  Under ring->write; no queue has the ring. */
static void neuron_ring_empty(struct neuron_ring *ring, u32 first, u32 n)
{
	struct neuron_client *client = ring->base.chunk->client;
	struct neuron_chunk *chunk;
	int err;
	u32 i;

	err = neuron_ring_clear(ring, (u64)first * NEURON_DESC_SIZE, (u64)n * NEURON_DESC_SIZE);
	if (err) {
		ring->broken |= err != -ENOMEM;
		return;
	}
	for (i = first; i < first + n; i++) {
		xa_lock(&client->handles);
		chunk = neuron_slot_chunk(ring->slot[i]);
		ring->slot[i] = 0;
		xa_unlock(&client->handles);
		neuron_chunk_unuse(chunk, NEURON_USER_RING);
		if (i % NEURON_RING_BATCH == 0)
			cond_resched();
	}
}

static void neuron_ring_forget_chunk(struct neuron_ring *ring, const struct neuron_chunk *chunk)
{
	bool bound;
	u32 i, n;

	/* Who is being killed frees its rings soon, and with them what they name. */
	if (mutex_lock_killable(&ring->write))
		return;
	mutex_lock(&ring->lock);
	bound = ring->bound;
	mutex_unlock(&ring->lock);
	for (i = 0; i < ring->nr_slots && !bound; i += max(n, 1u)) {
		n = 0;
		while (i + n < ring->nr_slots && neuron_slot_chunk(ring->slot[i + n]) == chunk)
			n++;
		if (n)
			neuron_ring_empty(ring, i, n);
		else if (i % NEURON_RING_BATCH == 0)
			cond_resched();
		if (fatal_signal_pending(current))
			break;
	}
	mutex_unlock(&ring->write);
}

/**
 * neuron_ring_forget() - a process has freed memory
 * @client: the process
 * @chunk: held by the caller, whose handle has gone
 *
 * Slots that name it are emptied if no queue has their ring.  The others keep the memory.
 *
 * Context: may sleep.
 */
void neuron_ring_forget(struct neuron_client *client, const struct neuron_chunk *chunk)
{
	struct neuron_chunk *again;
	struct neuron_ring *ring = NULL;

	if (!READ_ONCE(chunk->users[NEURON_USER_RING - 1]))
		return;
	/* The process may have another handle. */
	again = neuron_chunk_find(client, chunk->addr, 1, NEURON_USER_NONE);
	neuron_chunk_put(again);
	if (again == chunk)
		return;
	while ((ring = neuron_ring_next(client, ring)))
		neuron_ring_forget_chunk(ring, chunk);
}

/* Is a range of addresses in a chunk? */
static bool neuron_chunk_has(const struct neuron_chunk *chunk, u64 addr, u64 len)
{
	return chunk && addr >= chunk->addr && !neuron_chunk_range(chunk, addr - chunk->addr, len);
}

/*
 * What do slots of @ring name at @addr, or did while it was with its queue?  Return: NULL
 * nothing; a chunk; with @core less than the number of cores, the ring's own chunk stands
 * for its window.  Under the lock of the handles.
 */
static struct neuron_chunk *neuron_ring_named(struct neuron_ring *ring, u64 addr, u64 len, u32 core)
{
	struct neuron_chunk *chunk;
	unsigned long index;
	u32 i;

	if (core < NEURON_HW_MAX_CORES && ring->cores & BIT(core))
		return ring->base.chunk;
	for (i = 0; i < ring->nr_slots; i++) {
		chunk = neuron_slot_chunk(ring->slot[i]);
		if (neuron_chunk_has(chunk, addr, len))
			return chunk;
	}
	xa_for_each(&ring->kept, index, chunk)
		if (neuron_chunk_has(chunk, addr, len))
			return chunk;
	return NULL;
}

/**
 * neuron_ring_pin() - resolve an address that the driver has checked in a ring before
 * @space: space of the queue
 * @addr: device address
 * @len: bytes, not 0
 * @write: the device will write
 * @pin: filled in; put with neuron_pin_put()
 *
 * For a model of a device that does not check addresses, after neuron_space_pin() has
 * refused one: rings, and what they name, stay when the process has freed the memory or
 * has ended.  This takes long, with a spinlock held.
 *
 * Context: process, no spinlocks held.
 * Return: 0; -EACCES the driver should have refused it.
 */
int neuron_ring_pin(struct neuron_space *space, u64 addr, u64 len, bool write,
		    struct neuron_pin *pin)
{
	struct neuron_client *client = space->client, *owner;
	u32 core = neuron_space_core(client->nd, addr, len);
	struct neuron_chunk *found = NULL;
	struct neuron_ring *ring;

	xa_lock(&client->handles);
	list_for_each_entry(ring, &client->rings, base.node) {
		if (!write && neuron_chunk_has(ring->base.chunk, addr, len))
			found = ring->base.chunk;
		else
			found = neuron_ring_named(ring, addr, len, core);
		if (found && (core < client->nd->geo->nr_cores ||
			      kref_get_unless_zero(&found->ref)))
			break;
		found = NULL;
	}
	xa_unlock(&client->handles);
	if (!found)
		return -EACCES;
	if (core == client->nd->geo->nr_cores) {
		neuron_chunk_admit(found, NEURON_USER_READER);
		neuron_pin_chunk(pin, found, addr, len, NEURON_USER_READER);
		return 0;
	}
	/* Nobody else may have the core before all who reach it are reset. */
	owner = READ_ONCE(client->nd->core[core].owner);
	if (owner && owner != client)
		return -EACCES;
	neuron_pin_window(pin, client->nd, core, addr);
	return 0;
}
NEURON_EXPORT_SYMBOL(neuron_ring_pin);

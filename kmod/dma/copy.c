// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies between host and device on a ring that the driver owns, one per core
 * (uapi/FACTS.md 5).  A batch of descriptors ends with one that copies a marker
 * and asks for an interrupt, which wakes the waiter.  Of a device without interrupts the
 * waiter looks at the marker itself, and at nothing else as long as a copy may take: a
 * register takes a microsecond.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../../uapi/neuron_isa.h"
#include "../base/client.h"
#include "../base/core.h"
#include "../base/trace.h"
#include "../mem/chunk.h"
#include "../mem/failure.h"
#include "../mem/host.h"
#include "../mem/space.h"
#include "../mem/sync.h"
#include "copy.h"

#define NEURON_DRAIN_MSEC	10000u
#define NEURON_COPY_TIMEOUT	(30 * HZ)
/* To what a program chose, such as an instruction FIFO that its engine does not empty. */
#define NEURON_ALONE_TIMEOUT	HZ

/* Without interrupts: how long to look all the time, and the pauses after that. */
#define NEURON_POLL_SPIN_USEC	20
#define NEURON_POLL_MIN_USEC	10u
#define NEURON_POLL_MAX_USEC	1000u
/* So many pauses without an end are no progress: then the state of the queue is looked at. */
#define NEURON_POLL_LOOK	16u

/* Descriptors of one batch; other copies may use the ring between two batches. */
#define NEURON_COPY_DESCS	(NEURON_COPY_RING - NEURON_RING_UNUSED - 1)
#define NEURON_COPY_BATCH	((u64)NEURON_COPY_DESCS * NEURON_DESC_MAX_LEN)

/* A copy that its engine did not do for a reason that may be another's. */
#define NEURON_COPY_TRIES	3

/* In the marker page: source and destination of the device's copy. */
#define NEURON_MARKER_DST	0
/* A batch that was given up and still ends must not end a later one. */
#define NEURON_MARKER_SRC(seq)	(64 + 4 * ((seq) % 256))

/**
 * neuron_copy_new() - make the copy ring of a core, which is set up on first use
 *
 * Context: may sleep.
 * Return: to be freed with kfree() after neuron_copy_exit(); NULL without memory.
 */
struct neuron_copy *neuron_copy_new(void)
{
	struct neuron_copy *copy = kzalloc(sizeof(*copy), GFP_KERNEL);

	if (copy) {
		mutex_init(&copy->lock);
		init_waitqueue_head(&copy->wait);
		init_rwsem(&copy->users);
	}
	return copy;
}

static int neuron_copy_alloc(struct neuron_device *nd, u32 core, u64 size,
			     struct neuron_chunk **out)
{
	struct neuron_chunk_request req = {
		.size = size,
		.host = true,
		.core = core,
		.category = NEURON_MEMALLOC_TYPE_NCDEV_HOST,
	};
	struct neuron_failure why;

	return neuron_chunk_alloc(nd->kclient, &req, out, &why);
}

static int neuron_copy_start(struct neuron_device *nd, u32 core)
{
	struct neuron_copy *copy = nd->core[core].copy;
	u32 eng = nd->geo->copy_engine[core], q = nd->geo->copy_queue[core];
	const struct neuron_queue_setup setup = {
		.space = &nd->kclient->space,
		.addr = { copy->ring[0]->addr, copy->ring[1]->addr },
		.length = { NEURON_COPY_RING, NEURON_COPY_RING },
	};

	copy->next = 0;
	copy->ring_id = 1;
	return nd->ops->queue_start(nd, eng, q, &setup);
}

static void neuron_copy_stop(struct neuron_device *nd, u32 core)
{
	nd->ops->queue_stop(nd, nd->geo->copy_engine[core], nd->geo->copy_queue[core]);
}

static void neuron_copy_free(struct neuron_copy *copy)
{
	int i;

	for (i = 0; i < 2; i++) {
		neuron_chunk_put(copy->ring[i]);
		copy->ring[i] = NULL;
	}
	neuron_chunk_put(copy->marker);
	copy->marker = NULL;
}

/* Under copy->lock. */
static int neuron_copy_setup(struct neuron_device *nd, u32 core)
{
	struct neuron_copy *copy = nd->core[core].copy;
	int i, err = 0;

	if (copy->ready)
		return 0;
	for (i = 0; i < 2 && !err; i++)
		err = neuron_copy_alloc(nd, core, NEURON_COPY_RING * NEURON_DESC_SIZE,
					&copy->ring[i]);
	if (!err)
		err = neuron_copy_alloc(nd, core, PAGE_SIZE, &copy->marker);
	if (!err) {
		err = neuron_copy_start(nd, core);
		if (err)
			neuron_copy_stop(nd, core);
	}
	if (err) {
		neuron_copy_free(copy);
		return err;
	}
	copy->ready = true;
	return 0;
}

/**
 * neuron_copy_exit() - release the copy ring of a core, unless a process has the device
 * @nd: device
 * @core: core number
 *
 * Who attaches later finds the ring gone before its copies show themselves to others, and
 * makes it again (neuron_dma_begin()).
 *
 * Context: may sleep; no transfer is running.
 */
void neuron_copy_exit(struct neuron_device *nd, u32 core)
{
	struct neuron_copy *copy = nd->core[core].copy;

	mutex_lock(&copy->lock);
	if (copy->ready && !READ_ONCE(nd->nr_clients)) {
		neuron_copy_stop(nd, core);
		neuron_copy_free(copy);
		copy->ready = false;
	}
	neuron_chunk_put(xchg(&copy->bounce, NULL));
	mutex_unlock(&copy->lock);
}

/*
 * User memory is copied without the ring's lock: a process can make a page fault take as
 * long as it likes.  One buffer is kept for the next caller.
 */
static int neuron_bounce_take(struct neuron_device *nd, u32 core, struct neuron_chunk **out)
{
	*out = xchg(&nd->core[core].copy->bounce, NULL);
	return *out ? 0 : neuron_copy_alloc(nd, core, NEURON_COPY_BOUNCE, out);
}

static void neuron_bounce_give(struct neuron_device *nd, u32 core, struct neuron_chunk *bounce)
{
	if (cmpxchg(&nd->core[core].copy->bounce, NULL, bounce))
		neuron_chunk_put(bounce);
}

/* Start a transfer.  Return: 0 with the ring locked and ready. */
static int neuron_copy_begin(struct neuron_device *nd, u32 core)
{
	struct neuron_copy *copy = nd->core[core].copy;
	int err;

	if (mutex_lock_killable(&copy->lock))
		return -EINTR;
	err = neuron_copy_setup(nd, core);
	if (err)
		mutex_unlock(&copy->lock);
	return err;
}

static void neuron_copy_end(struct neuron_device *nd, u32 core)
{
	mutex_unlock(&nd->core[core].copy->lock);
}

/* Engines of cards serve several cores; what they share is the first one's. */
static struct rw_semaphore *neuron_engine_users(struct neuron_device *nd, u32 eng)
{
	u32 i;

	for (i = 0; nd->desc.polled && i < nd->geo->nr_cores; i++)
		if (nd->geo->copy_engine[i] == eng)
			return &nd->core[i].copy->users;
	return NULL;
}

/**
 * neuron_engine_enter() - copies of the driver are about to start on an engine
 * @nd: device
 * @eng: engine
 * @alone: they may stop the engine, so that nobody else's are to be on it
 *
 * For a device of which an error in one queue stops all queues of an engine (those that do
 * not interrupt); otherwise it does nothing.  Nobody stays longer than a copy may take, and
 * nothing in between may allocate memory or wait for a process, as copies that others wait
 * for (../mem/sync.c) are behind it.
 *
 * Context: may sleep, killable; to be followed by neuron_engine_leave().
 * Return: 0, -EINTR killed, -ENODEV the device is gone.
 */
int neuron_engine_enter(struct neuron_device *nd, u32 eng, bool alone)
{
	struct rw_semaphore *users = neuron_engine_users(nd, eng);

	if (!users)
		return 0;
	if (neuron_device_gone(nd))
		return -ENODEV;
	return alone ? down_write_killable(users) : down_read_killable(users);
}
NEURON_EXPORT_SYMBOL(neuron_engine_enter);

/**
 * neuron_engine_leave() - they have ended, and their queue is ready for others
 * @nd: device
 * @eng: engine
 * @alone: as before
 *
 * Context: may sleep.
 */
void neuron_engine_leave(struct neuron_device *nd, u32 eng, bool alone)
{
	struct rw_semaphore *users = neuron_engine_users(nd, eng);

	if (users && alone)
		up_write(users);
	else if (users)
		up_read(users);
}
NEURON_EXPORT_SYMBOL(neuron_engine_leave);

/**
 * neuron_copy_wake() - the device finished a batch of a copy ring, or stopped
 * @nd: device
 * @core: core number
 *
 * Context: process.
 */
void neuron_copy_wake(struct neuron_device *nd, u32 core)
{
	wake_up(&nd->core[core].copy->wait);
}

/* @barrier: what follows is written after this. */
static void neuron_copy_desc(struct neuron_copy *copy, u64 dst, u64 src, u32 len, u32 flags,
			     bool barrier)
{
	u32 ctrl = (len & NEURON_DESC_LEN_MASK) | flags |
		   copy->ring_id << NEURON_DESC_RING_ID_SHIFT;
	struct neuron_desc tx = {
		.ctrl = cpu_to_le32(ctrl | NEURON_DESC_FIRST | NEURON_DESC_LAST),
		.meta = cpu_to_le32(NEURON_DESC_META_COPY |
				    (barrier ? NEURON_DESC_META_WRITE_BARRIER : 0)),
		.addr = cpu_to_le64(src),
	};
	struct neuron_desc rx = {
		.ctrl = cpu_to_le32(ctrl),
		.addr = cpu_to_le64(dst),
	};
	u64 off = (u64)copy->next * NEURON_DESC_SIZE;

	neuron_chunk_rw_host(copy->ring[0], off, &tx, sizeof(tx), true);
	neuron_chunk_rw_host(copy->ring[1], off, &rx, sizeof(rx), true);
	if (++copy->next == NEURON_COPY_RING) {
		copy->next = 0;
		copy->ring_id = (copy->ring_id + 1) & 3;
	}
}

static bool neuron_copy_marked(const struct neuron_copy *copy)
{
	__le32 *marker = page_address(copy->marker->pages[0]) + NEURON_MARKER_DST;

	/* Pairs with the device's order of data before marker. */
	return le32_to_cpu(smp_load_acquire(marker)) == copy->seq;
}

static bool neuron_copy_aborted(struct neuron_device *nd, u32 eng, u32 q)
{
	u32 status;

	return !nd->ops->reg_read(nd, NEURON_BLOCK_DMA, eng,
				  NEURON_DMA_TX(q) + NEURON_DMA_Q_STATUS, &status) &&
	       status == NEURON_QUEUE_ABORTED;
}

static bool neuron_copy_done(struct neuron_device *nd, u32 core, int *err)
{
	u32 eng = nd->geo->copy_engine[core], q = nd->geo->copy_queue[core];

	if (neuron_copy_marked(nd->core[core].copy)) {
		*err = 0;
		return true;
	}
	*err = neuron_device_gone(nd) ? -ENODEV : neuron_copy_aborted(nd, eng, q) ? -EIO : 0;
	return *err;
}

/* Wait for an interrupt, or for a queue that stopped.  Return: an error, 0 = done. */
static int neuron_copy_wait(struct neuron_device *nd, u32 core, long timeout)
{
	struct neuron_copy *copy = nd->core[core].copy;
	int err = 0;
	long left;

	left = wait_event_killable_timeout(copy->wait, neuron_copy_done(nd, core, &err), timeout);
	return left > 0 ? err : left < 0 ? -EINTR : -ETIMEDOUT;
}

/* Same, for a device that does not interrupt. */
static int neuron_copy_poll(struct neuron_device *nd, u32 core, long timeout)
{
	u32 eng = nd->geo->copy_engine[core], q = nd->geo->copy_queue[core];
	struct neuron_copy *copy = nd->core[core].copy;
	ktime_t spin = ktime_add_us(ktime_get(), NEURON_POLL_SPIN_USEC);
	ktime_t end = ktime_add_ms(ktime_get(), jiffies_to_msecs(timeout));
	u32 pause = NEURON_POLL_MIN_USEC, looks = 0;

	while (!neuron_copy_marked(copy)) {
		ktime_t now = ktime_get();

		if (neuron_device_gone(nd))
			return -ENODEV;
		if (ktime_before(now, spin)) {
			cpu_relax();
			continue;
		}
		if (fatal_signal_pending(current))
			return -EINTR;
		if (ktime_after(now, end) || ++looks % NEURON_POLL_LOOK == 0) {
			bool aborted = neuron_copy_aborted(nd, eng, q);

			/* It ended before, or this thread has not run for long. */
			if (neuron_copy_marked(copy))
				break;
			if (aborted || ktime_after(now, end))
				return aborted ? -EIO : -ETIMEDOUT;
		}
		usleep_range(pause, 2 * pause);
		pause = min(2 * pause, NEURON_POLL_MAX_USEC);
	}
	trace_neuron_ring_done(nd->dev.id, core, eng, q, NEURON_QUEUE_ENABLED);
	return 0;
}

/*
 * A device that does not interrupt cannot be asked whether a queue that was switched off still
 * makes accesses.  So a batch that nobody wants any more gets time to end.
 */
static void neuron_copy_drain(struct neuron_device *nd, u32 core, long timeout)
{
	u32 eng = nd->geo->copy_engine[core], q = nd->geo->copy_queue[core];
	u32 i, ms = min(jiffies_to_msecs(timeout), NEURON_DRAIN_MSEC);
	const struct neuron_copy *copy = nd->core[core].copy;

	for (i = 1; i <= ms && !neuron_copy_marked(copy) && !READ_ONCE(nd->dead); i++) {
		if (i % NEURON_POLL_LOOK == 0 && neuron_copy_aborted(nd, eng, q))
			break;
		usleep_range(1000, 1100);
	}
}

/*
 * Under copy->lock: start what was queued and wait until it is done.  After an error the ring is
 * empty.  @repeats: neuron_copy_repeats().  Return: as neuron_dma_copy(); -EAGAIN its engine had
 * stopped before.
 */
static int neuron_copy_flush(struct neuron_device *nd, u32 core, u32 count, long timeout,
			     bool repeats)
{
	struct neuron_copy *copy = nd->core[core].copy;
	u32 eng = nd->geo->copy_engine[core], q = nd->geo->copy_queue[core];
	void *marker = page_address(copy->marker->pages[0]);
	bool polled = nd->desc.polled;
	bool started;
	int err;

	copy->seq++;
	*(__le32 *)(marker + NEURON_MARKER_SRC(copy->seq)) = cpu_to_le32(copy->seq);
	neuron_copy_desc(copy, copy->marker->addr + NEURON_MARKER_DST,
			 copy->marker->addr + NEURON_MARKER_SRC(copy->seq), sizeof(__le32),
			 polled ? 0 : NEURON_DESC_INT | NEURON_DESC_BARRIER, !polled);
	count++;

	/* Trace it before it can complete. */
	trace_neuron_ring_start(nd->dev.id, core, eng, q, count, count);
	/* Descriptors before doorbells. */
	wmb();
	/* If the engine has stopped already, nothing is begun; afterwards nobody would know. */
	err = polled && !repeats && neuron_copy_aborted(nd, eng, q) ? -EIO :
	      nd->ops->queue_ring(nd, eng, q, count);
	started = !err;
	if (started) {
		nd->ops->queue_poll(nd, eng, q);
		err = polled ? neuron_copy_poll(nd, core, timeout) :
			       neuron_copy_wait(nd, core, timeout);
	}
	if (err == -ETIMEDOUT)
		trace_neuron_fault(nd->dev.id, core, NEURON_FAULT_TIMEOUT, eng, q);
	if (err) {
		/* Its end costs others less than the end of its engine. */
		if (polled && err == -EINTR)
			neuron_copy_drain(nd, core, timeout);
		if (neuron_copy_marked(copy))
			neuron_copy_stop(nd, core);
		else
			nd->ops->queue_abort(nd, eng, q);
		if (neuron_copy_start(nd, core)) {
			neuron_copy_stop(nd, core);
			neuron_copy_free(copy);
			copy->ready = false;
		}
	}
	/* Nothing was started. */
	return err == -EIO && !started && copy->ready ? -EAGAIN : err;
}

/* Bytes at an address, which may be of a core: are they memory, not registers? */
static bool neuron_copy_memory(struct neuron_device *nd, u64 addr, u64 len)
{
	u32 core = neuron_space_core(nd, addr, 1);

	return core >= nd->geo->nr_cores ||
	       addr - nd->geo->tpb_base[core] + len <= nd->geo->sbuf_size;
}

/*
 * Under copy->lock.  One batch, so @len is at most NEURON_COPY_BATCH.  The source is @src_len
 * bytes, repeated if @len is more; then it is as long as a descriptor may be.
 */
static int neuron_copy_run(struct neuron_device *nd, u32 core, u64 dst, u64 src, u64 len,
			   u64 src_len)
{
	struct neuron_copy *copy = nd->core[core].copy;
	/* What is not memory is a place that a program chose, and may be an error of it. */
	bool alone = !neuron_copy_memory(nd, dst, len) || !neuron_copy_memory(nd, src, src_len);
	/* After an error that may be another's: does it do the same once more? */
	bool repeats = nd->desc.polled && !alone && (dst >= src + src_len || src >= dst + len);
	long timeout = alone ? NEURON_ALONE_TIMEOUT : NEURON_COPY_TIMEOUT;
	u32 eng = nd->geo->copy_engine[core], tries = 0, count, n;
	u64 pos;
	int err;

	err = neuron_engine_enter(nd, eng, alone);
	if (err)
		return err;
	do {
		for (pos = 0, count = 0; pos < len; pos += n, count++) {
			u64 off = pos % src_len;

			n = min3(len - pos, (u64)NEURON_DESC_MAX_LEN, src_len - off);
			/* A card never gets an interrupt bit, and the barrier with the data. */
			neuron_copy_desc(copy, dst + pos, src + off, n, 0,
					 pos + n == len && nd->desc.polled);
		}
		err = neuron_copy_flush(nd, core, count, timeout, repeats);
		if (err == -EIO && copy->ready && repeats)
			err = -EAGAIN;
	} while (err == -EAGAIN && ++tries < NEURON_COPY_TRIES);
	neuron_engine_leave(nd, eng, alone);
	return err == -EAGAIN ? -EIO : err;
}

/**
 * neuron_dma_copy() - copy between device addresses
 * @nd: device
 * @core: whose ring to use
 * @dst: device address
 * @src: device address; the caller holds both memories
 * @len: bytes, not 0
 *
 * Context: may sleep until the copy is done.
 * Return: 0; -EIO, -ETIMEDOUT, -EINTR, -ENOMEM.
 */
int neuron_dma_copy(struct neuron_device *nd, u32 core, u64 dst, u64 src, u64 len)
{
	int err = 0;

	while (len && !err) {
		u64 n = min_t(u64, len, NEURON_COPY_BATCH);

		err = neuron_copy_begin(nd, core);
		if (err)
			break;
		err = neuron_copy_run(nd, core, dst, src, n, n);
		neuron_copy_end(nd, core);
		dst += n;
		src += n;
		len -= n;
	}
	return err;
}

/**
 * neuron_dma_begin() - a copy between chunks begins, which others may see
 * @nd: device
 * @core: whose ring it will use
 * @src: where it reads; held by the caller, may be NULL
 * @dst: where it writes; held by the caller
 *
 * Context: may sleep.
 * Return: as neuron_sync_begin(), for neuron_sync_end(); also -EIO.
 */
struct dma_fence *neuron_dma_begin(struct neuron_device *nd, u32 core, struct neuron_chunk *src,
				   struct neuron_chunk *dst)
{
	int err;

	if (likely(!(src && READ_ONCE(src->resv)) && !READ_ONCE(dst->resv)))
		return NULL;
	/* There is memory for the ring before anybody waits for the copy. */
	err = neuron_copy_begin(nd, core);
	if (err)
		return ERR_PTR(err);
	neuron_copy_end(nd, core);
	return neuron_sync_begin(src, dst);
}

/**
 * neuron_dma_copy_chunks() - copy between chunks, in order with what other devices do with them
 * @nd: device
 * @core: whose ring to use
 * @dst: held by the caller
 * @dst_off: bytes from its start; the range was checked
 * @src: held by the caller
 * @src_off: bytes from its start; the range was checked
 * @len: bytes, not 0
 *
 * Context: may sleep until the copy is done.
 * Return: as neuron_dma_copy() and neuron_dma_begin().
 */
int neuron_dma_copy_chunks(struct neuron_device *nd, u32 core, struct neuron_chunk *dst,
			   u64 dst_off, struct neuron_chunk *src, u64 src_off, u64 len)
{
	struct dma_fence *fence = neuron_dma_begin(nd, core, src, dst);
	int err;

	if (IS_ERR(fence))
		return PTR_ERR(fence);
	err = neuron_dma_copy(nd, core, dst->addr + dst_off, src->addr + src_off, len);
	neuron_sync_end(fence, err);
	return err;
}

/* Bytes of user pages that are pinned at a time, and the length from which pinning pays. */
#define NEURON_LEND_BYTES	(2u << 20)
#define NEURON_LEND_MIN		(128u << 10)

/*
 * One transfer directly to or from pinned pages of the caller.  Behind an IOMMU, a card sees
 * any pages as one range; elsewhere only those of a huge page.
 */
static int neuron_copy_lent(struct neuron_device *nd, u32 core, u64 addr, unsigned long buf,
			    u32 len, bool to_device)
{
	u32 in = offset_in_page(buf);
	int n = DIV_ROUND_UP(in + len, PAGE_SIZE), got, err = -EFAULT;
	struct neuron_chunk *chunk;
	struct page **pages;

	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return -ENOMEM;
	got = pin_user_pages_fast(buf - in, n, to_device ? 0 : FOLL_WRITE, pages);
	if (got == n) {
		err = neuron_chunk_user_pages(nd, core, pages, n, !to_device, &chunk);
		if (!err) {
			err = to_device ? neuron_dma_copy(nd, core, addr, chunk->addr + in, len) :
					  neuron_dma_copy(nd, core, chunk->addr + in, addr, len);
			neuron_chunk_put(chunk);
			return err;
		}
	}
	if (got > 0)
		unpin_user_pages(pages, got);
	kvfree(pages);
	return err;
}

/*
 * A few bytes, by a device that can do it at once: no ring and no marker.  A trace shows rings.
 * Return: 1 it could not be done this way; else as neuron_dma_addr_user().
 */
static int neuron_copy_small(struct neuron_device *nd, u32 core, u64 addr, void __user *buf,
			     u32 len, bool to_device)
{
	u32 eng = nd->geo->copy_engine[core], q = nd->geo->copy_queue[core];
	struct neuron_chunk *bounce;
	void *data;
	int err;

	if (nd->desc.polled || trace_neuron_ring_start_enabled() ||
	    trace_neuron_ring_done_enabled())
		return 1;
	err = neuron_bounce_take(nd, core, &bounce);
	if (err)
		return err;
	data = page_address(bounce->pages[0]);
	err = to_device && copy_from_user(data, buf, len) ? -EFAULT : neuron_copy_begin(nd, core);
	if (!err) {
		err = !nd->ops->queue_rw(nd, eng, q, addr, data, len, to_device);
		neuron_copy_end(nd, core);
	}
	if (!err && !to_device && copy_to_user(buf, data, len))
		err = -EFAULT;
	neuron_bounce_give(nd, core, bounce);
	return err;
}

/**
 * neuron_dma_addr_user() - copy between user memory and a device address
 * @nd: device
 * @core: whose ring to use
 * @addr: device address; the range was checked and is held by the caller
 * @buf: user memory
 * @len: bytes, not 0
 * @to_device: direction
 *
 * Context: may sleep.
 * Return: 0; -EFAULT, -EIO, -ETIMEDOUT, -EINTR, -ENOMEM (a part may be done).
 */
int neuron_dma_addr_user(struct neuron_device *nd, u32 core, u64 addr, void __user *buf, u64 len,
			 bool to_device)
{
	struct neuron_chunk *bounce;
	u32 n;
	int err;

	if (len <= PAGE_SIZE) {
		err = neuron_copy_small(nd, core, addr, buf, len, to_device);
		if (err <= 0)
			return err;
	}
	while (len >= NEURON_LEND_MIN) {
		n = min_t(u64, len, NEURON_LEND_BYTES);
		err = neuron_copy_lent(nd, core, addr, (unsigned long)buf, n, to_device);
		/*
		 * The bounce buffer serves memory that cannot be pinned, such as memory
		 * without pages, or that the device cannot see as one range.
		 */
		if (err == -EFAULT || err == -ENOMEM)
			break;
		if (err)
			return err;
		addr += n;
		buf += n;
		len -= n;
	}
	if (!len)
		return 0;

	err = neuron_bounce_take(nd, core, &bounce);
	if (err)
		return err;
	while (len && !err) {
		n = min_t(u64, len, NEURON_COPY_BOUNCE);
		if (to_device)
			err = neuron_chunk_rw_user(bounce, 0, buf, n, true) ?:
			      neuron_dma_copy(nd, core, addr, bounce->addr, n);
		else
			err = neuron_dma_copy(nd, core, bounce->addr, addr, n) ?:
			      neuron_chunk_rw_user(bounce, 0, buf, n, false);
		addr += n;
		buf += n;
		len -= n;
	}
	neuron_bounce_give(nd, core, bounce);
	return err;
}

/**
 * neuron_dma_copy_user() - copy between user memory and a device chunk
 * @nd: device
 * @core: whose ring to use
 * @chunk: device memory; the range was checked
 * @off: bytes from its start
 * @buf: user memory
 * @len: bytes, not 0
 * @to_chunk: direction
 *
 * Context: may sleep.
 * Return: 0; -EFAULT, -EIO, -ETIMEDOUT, -EINTR, -ENOMEM (a part may be done).
 */
int neuron_dma_copy_user(struct neuron_device *nd, u32 core, struct neuron_chunk *chunk,
			 u64 off, void __user *buf, u64 len, bool to_chunk)
{
	return neuron_dma_addr_user(nd, core, chunk->addr + off, buf, len, to_chunk);
}

/**
 * neuron_dma_write() - copy kernel memory to a device address
 * @nd: device
 * @core: whose ring to use
 * @dst: device address; the caller holds the memory
 * @buf: kernel memory
 * @len: bytes, up to NEURON_COPY_BOUNCE
 *
 * Context: may sleep.
 * Return: 0; -EINVAL, -EIO, -ETIMEDOUT, -EINTR, -ENOMEM.
 */
int neuron_dma_write(struct neuron_device *nd, u32 core, u64 dst, const void *buf, u64 len)
{
	struct neuron_chunk *bounce;
	int err;

	if (!len || len > NEURON_COPY_BOUNCE)
		return -EINVAL;
	err = neuron_bounce_take(nd, core, &bounce);
	if (err)
		return err;
	neuron_chunk_rw_host(bounce, 0, (void *)buf, len, true);
	err = neuron_dma_copy(nd, core, dst, bounce->addr, len);
	neuron_bounce_give(nd, core, bounce);
	return err;
}

/* @chunk: to which @dst belongs, if other devices may have it; else NULL. */
static int neuron_fill(struct neuron_device *nd, u32 core, struct neuron_chunk *chunk, u64 dst,
		       u8 value, u64 len)
{
	u64 pattern = min_t(u64, len, NEURON_DESC_MAX_LEN);
	struct dma_fence *fence = NULL;
	struct neuron_chunk *bounce;
	int err;

	err = neuron_bounce_take(nd, core, &bounce);
	if (err)
		return err;
	err = neuron_chunk_fill_host(bounce, 0, value, pattern);
	if (!err && chunk) {
		fence = neuron_dma_begin(nd, core, NULL, chunk);
		err = PTR_ERR_OR_ZERO(fence);
	}
	while (len && !err) {
		u64 n = min_t(u64, len, NEURON_COPY_BATCH);

		err = neuron_copy_begin(nd, core);
		if (err)
			break;
		err = neuron_copy_run(nd, core, dst, bounce->addr, n, pattern);
		neuron_copy_end(nd, core);
		dst += n;
		len -= n;
	}
	if (!IS_ERR(fence))
		neuron_sync_end(fence, err);
	neuron_bounce_give(nd, core, bounce);
	return err;
}

/**
 * neuron_dma_fill() - set bytes at a device address
 * @nd: device
 * @core: whose ring to use
 * @dst: device address; the caller holds the memory
 * @value: byte
 * @len: bytes, not 0
 *
 * Context: may sleep.
 * Return: 0; -EIO, -ETIMEDOUT, -EINTR, -ENOMEM.
 */
int neuron_dma_fill(struct neuron_device *nd, u32 core, u64 dst, u8 value, u64 len)
{
	return neuron_fill(nd, core, NULL, dst, value, len);
}

/**
 * neuron_dma_fill_chunk() - set bytes of a chunk, in order with what other devices do with it
 * @nd: device
 * @core: whose ring to use
 * @dst: device memory; held by the caller
 * @off: bytes from its start; the range was checked
 * @value: byte
 * @len: bytes, not 0
 *
 * Context: may sleep.
 * Return: as neuron_dma_fill() and neuron_dma_begin().
 */
int neuron_dma_fill_chunk(struct neuron_device *nd, u32 core, struct neuron_chunk *dst, u64 off,
			  u8 value, u64 len)
{
	return neuron_fill(nd, core, dst, dst->addr + off, value, len);
}

/**
 * neuron_dma_core_clear() - make the state buffer of a core read as zero
 * @nd: device
 * @core: core number; it is RESETTING
 *
 * Context: may sleep.
 * Return: as neuron_dma_fill().
 */
int neuron_dma_core_clear(struct neuron_device *nd, u32 core)
{
	return neuron_dma_fill(nd, core, nd->geo->tpb_base[core], 0, nd->geo->sbuf_size);
}

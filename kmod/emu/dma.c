// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA engines: 16 queues each, every queue a ring of source (TX) and a ring of
 * destination (RX) descriptors in memory.
 *
 * One work item for each engine serves its queues in turns.  It runs when a
 * doorbell rang and sleeps when no queue has descriptors on both rings.  All
 * starts of work go through emu_dma_schedule(), or are done by the doorbell
 * itself if the device is to complete them inline.  Who waits may do the work, too.
 *
 * The ring id (phase) in bits 25:24 of a descriptor is not compared with the
 * phase of the ring: applications write a ring once and run it many times, so
 * their descriptors carry the id of the first pass only.  Nothing is lost by
 * it, since the doorbells count exactly how many descriptors are valid.
 */
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "../compat/compat.h"
#include "emu.h"

/* What a queue may do before the next one of the engine gets a turn. */
#define EMU_SLICE_DESCS		256
#define EMU_SLICE_BYTES		SZ_1M
/* Turns before the work item ends and queues itself again. */
#define EMU_DMA_TURNS		16

static void emu_dma_work(struct work_struct *work);

static enum hrtimer_restart emu_dma_timer(struct hrtimer *timer)
{
	struct emu_dma *dma = container_of(timer, struct emu_dma, timer);

	queue_work(dma->ed->wq, &dma->work);
	return HRTIMER_NORESTART;
}

/**
 * emu_dma_init() - prepare the DMA part of a device
 * @ed: device
 */
void emu_dma_init(struct emu_device *ed)
{
	mutex_init(&ed->dma_alloc);
}

/**
 * emu_dma_destroy() - remove the DMA engines
 * @ed: device; neuron_device_del() has stopped all queues, and the cores are gone
 */
void emu_dma_destroy(struct emu_device *ed)
{
	u32 i, q;

	for (i = 0; i < EMU_MAX_ENGINES; i++) {
		struct emu_dma *dma = ed->dma[i];

		if (!dma)
			continue;
		for (q = 0; q < NEURON_HW_QUEUES_PER_ENGINE; q++)
			WARN_ON(dma->q[q].space);
		hrtimer_cancel(&dma->timer);
		cancel_work_sync(&dma->work);
		ed->dma[i] = NULL;
		kfree(dma);
	}
}

/* The engine, or NULL if none of its queues was ever bound. */
static struct emu_dma *emu_dma_find(struct emu_device *ed, u32 eng)
{
	if (eng >= ed->geo.nr_dma_engines)
		return NULL;
	/* pairs with the release in emu_dma_get() */
	return smp_load_acquire(&ed->dma[eng]);
}

/* The engine, made if needed; NULL: no memory. */
static struct emu_dma *emu_dma_get(struct emu_device *ed, u32 eng)
{
	struct emu_dma *dma = emu_dma_find(ed, eng);

	if (dma)
		return dma;
	mutex_lock(&ed->dma_alloc);
	dma = ed->dma[eng];
	if (dma)
		goto out;
	dma = kzalloc(sizeof(*dma), GFP_KERNEL);
	if (!dma)
		goto out;
	dma->ed = ed;
	dma->index = eng;
	dma->state = NEURON_DMA_ENG_NORMAL;
	mutex_init(&dma->run);
	spin_lock_init(&dma->lock);
	INIT_WORK(&dma->work, emu_dma_work);
	hrtimer_setup(&dma->timer, emu_dma_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	/* pairs with the acquire in emu_dma_find() */
	smp_store_release(&ed->dma[eng], dma);
out:
	mutex_unlock(&ed->dma_alloc);
	return dma;
}

/* Serve the queues in @ready.  Caller holds dma->lock. */
static void emu_dma_schedule(struct emu_dma *dma)
{
	lockdep_assert_held(&dma->lock);
	if (!dma->ready)
		return;
	if (READ_ONCE(dma->ed->completion) != EMU_COMPLETE_TIMER)
		queue_work(dma->ed->wq, &dma->work);
	else if (!hrtimer_is_queued(&dma->timer))
		hrtimer_start(&dma->timer, ns_to_ktime(READ_ONCE(dma->ed->completion_nsec)),
			      HRTIMER_MODE_REL);
}

/* ---- rings ---- */

static void emu_ring_reset(struct emu_ring *r)
{
	r->head = 0;
	r->tail = 0;
	r->head_phase = 1;
	r->tail_phase = 1;
	r->pending = 0;
	r->busy = false;
	r->moved = 0;
	r->next = 0;
	r->fetched = 0;
}

/* Forget a compute packet that is not complete.  Caller holds emu_dma.run. */
static void emu_queue_drop_packet(struct emu_queue *q)
{
	emu_packet_free(q->packet);
	q->packet = NULL;
}

static void emu_queue_init(struct emu_queue *q, struct neuron_space *space)
{
	emu_queue_drop_packet(q);
	memset(q, 0, sizeof(*q));
	emu_ring_reset(&q->tx);
	emu_ring_reset(&q->rx);
	q->space = space;
}

static void emu_ring_step(const struct emu_ring *r, u32 *index, u32 *phase, u32 n)
{
	*index += n;
	if (*index >= r->len) {
		*index -= r->len;
		*phase = (*phase + 1) & 3;
	}
}

static bool emu_ring_takes(const struct emu_ring *r, u32 n)
{
	return n <= r->len - r->pending;
}

/* Caller holds the lock of the engine and has checked emu_ring_takes(). */
static void emu_ring_add(struct emu_ring *r, u32 n)
{
	emu_ring_step(r, &r->tail, &r->tail_phase, n);
	r->pending += n;
}

/* Is there a descriptor to work on? */
static bool emu_ring_has(const struct emu_ring *r)
{
	return r->busy || r->pending;
}

static bool emu_ring_enabled(const struct emu_ring *r)
{
	return r->len &&
	       (r->config & NEURON_DMA_Q_CONFIG_ENABLE) == NEURON_DMA_Q_CONFIG_ENABLE;
}

/* Caller holds the lock of the engine. */
static bool emu_queue_runnable(const struct emu_dma *dma, const struct emu_queue *q)
{
	return q->space && !q->aborted && !q->stopping &&
	       dma->state == NEURON_DMA_ENG_NORMAL &&
	       emu_ring_enabled(&q->tx) && emu_ring_enabled(&q->rx) &&
	       emu_ring_has(&q->tx) && emu_ring_has(&q->rx);
}

/* Something changed that may let the queue run.  Caller holds the lock. */
static void emu_queue_check(struct emu_dma *dma, u32 i)
{
	if (emu_queue_runnable(dma, &dma->q[i])) {
		dma->ready |= BIT(i);
		emu_dma_schedule(dma);
	}
}

/*
 * A doorbell rang.  Return: its caller does the work, when it has let go of
 * the lock.
 */
static bool emu_queue_ring(struct emu_dma *dma, u32 i)
{
	if (READ_ONCE(dma->ed->completion) != EMU_COMPLETE_INLINE) {
		emu_queue_check(dma, i);
		return false;
	}
	if (!emu_queue_runnable(dma, &dma->q[i]))
		return false;
	dma->ready |= BIT(i);
	return true;
}

/* ---- what a queue does ---- */

/* The core whose copies the driver makes on this queue; -1: it is no queue of the driver. */
static int emu_dma_copies(const struct emu_dma *dma, u32 i)
{
	const struct neuron_geometry *geo = &dma->ed->geo;
	int c;

	for (c = geo->nr_cores - 1; c >= 0; c--)
		if (geo->copy_engine[c] == dma->index && geo->copy_queue[c] == i)
			break;
	return c;
}

/* The core that an engine works for; the driver's own engines serve several. */
static u32 emu_dma_core(const struct emu_dma *dma, u32 i)
{
	u32 core = dma->index / dma->ed->geo.engines_per_core;

	return core < dma->ed->geo.nr_cores ? core : max(emu_dma_copies(dma, i), 0);
}

/*
 * May the owner of the engine's core see what the queue does?  The driver copies for
 * other processes, on inf1 with an engine of the core.
 */
static bool emu_queue_visible(const struct emu_dma *dma, u32 i)
{
	return dma->index / dma->ed->geo.engines_per_core < dma->ed->geo.nr_cores &&
	       emu_dma_copies(dma, i) < 0;
}

/*
 * Stop a queue: nothing more happens on it until it is reset.  The owner
 * learns it from the error queue of the core (not of the driver's copies), the
 * status register and neuron_dma_irq().
 */
static void emu_queue_abort(struct emu_dma *dma, u32 i, u32 code, u64 addr)
{
	struct emu_device *ed = dma->ed;
	u32 core = dma->index / ed->geo.engines_per_core;
	struct emu_queue *q = &dma->q[i];
	struct neuron_isa_notice n = {
		.id = cpu_to_le32(q->done),
		.engine = dma->index & 0xff,
		.kind = NEURON_ISA_NOTICE_DMA_ERROR,
		.code = code,
		.phase = i << 4,
		.data = cpu_to_le64(addr),
	};

	lockdep_assert_held(&dma->run);
	emu_queue_drop_packet(q);
	spin_lock(&dma->lock);
	q->aborted = true;
	dma->ready &= ~BIT(i);
	dma->stalled &= ~BIT(i);
	spin_unlock(&dma->lock);
	if (emu_queue_visible(dma, i))
		emu_nq_post(ed->core[core], EMU_NQ_ERROR * NEURON_HW_NQ_ENGINES, &n);
	neuron_dma_irq(ed->nd, dma->index, i);
}

static u32 emu_copy_error(int err)
{
	switch (err) {
	case -EACCES:
		return NEURON_ISA_ERR_DMA_ACCESS;
	case -EINVAL:
		return NEURON_ISA_ERR_DMA_DESC;
	case -ERANGE:
		return NEURON_ISA_ERR_SEMAPHORE;
	case -EBADMSG:
		return NEURON_ISA_ERR_MEM_UE;
	case -EUCLEAN:
		return NEURON_ISA_ERR_MEM_REPAIRABLE;
	default: /* the host is out of memory */
		return NEURON_ISA_ERR_ABORT;
	}
}

/*
 * *@reg: the access is to a register, not to memory.  Registers take exactly 4
 * bytes at a multiple of 4.
 */
static int emu_check_window(struct emu_device *ed, const struct neuron_pin *pin, u64 off,
			    u32 len, bool *reg)
{
	off += pin->off;
	*reg = pin->kind == NEURON_TARGET_CORE && !emu_core_is_sbuf(ed, off, len);
	if (!*reg)
		return 0;
	if (off < NEURON_ISA_EVENT_OFF(0) || off >= NEURON_ISA_FIFO_OFF(0))
		return -EACCES;
	return len == 4 && off % 4 == 0 ? 0 : -EINVAL;
}

/*
 * Copy between pinned ranges, any of which may be (in) a core window.
 * Return: bytes copied, fewer than asked for only into a FIFO; -EAGAIN the FIFO
 * is full; -EACCES, -EINVAL, -ERANGE, -ENOMEM.
 */
static int emu_copy(struct emu_device *ed, const struct neuron_pin *dst, u64 dst_off,
		    const struct neuron_pin *src, u64 src_off, u32 len)
{
	u64 woff = dst->off + dst_off;
	bool from_reg, to_reg;
	__le32 word;
	u32 val;
	int err;

	err = emu_check_window(ed, src, src_off, len, &from_reg);
	if (err)
		return err;
	if (dst->kind == NEURON_TARGET_CORE) {
		int e = emu_core_fifo_engine(woff, len);

		if (e >= 0) {
			if (from_reg || len % NEURON_ISA_INST_SIZE)
				return -EINVAL;
			return emu_core_fifo_write(ed->core[dst->index], e, src, src_off, len);
		}
	}
	err = emu_check_window(ed, dst, dst_off, len, &to_reg);
	if (err)
		return err;
	if (!from_reg && !to_reg)
		return emu_mem_copy(ed, dst, dst_off, src, src_off, len) ?: len;

	if (from_reg) {
		err = emu_core_reg_read(ed->core[src->index], src->off + src_off, &val);
		word = cpu_to_le32(val);
	} else {
		err = emu_mem_read(ed, src, src_off, &word, sizeof(word));
	}
	if (err)
		return err;
	if (to_reg)
		err = emu_core_reg_write(ed->core[dst->index], woff, le32_to_cpu(word));
	else
		err = emu_mem_write(ed, dst, dst_off, &word, sizeof(word));
	return err ?: len;
}

/* Copy, with the core windows kept as long as one of them is in use. */
static int emu_copy_locked(struct emu_device *ed, const struct neuron_pin *dst, u64 dst_off,
			   const struct neuron_pin *src, u64 src_off, u32 len)
{
	int ret;

	if (dst->kind != NEURON_TARGET_CORE && src->kind != NEURON_TARGET_CORE)
		return emu_copy(ed, dst, dst_off, src, src_off, len);
	down_read(&ed->window);
	ret = emu_copy(ed, dst, dst_off, src, src_off, len);
	up_read(&ed->window);
	return ret;
}

static u32 emu_desc_len(const struct neuron_desc *d)
{
	u32 len = le32_to_cpu(d->ctrl) & NEURON_DESC_LEN_MASK;

	return len ? len : NEURON_DESC_MAX_LEN;
}

/* Have descriptors of a ring at hand.  Return: 0, enum neuron_isa_error. */
static int emu_ring_load(struct emu_dma *dma, struct emu_queue *q, struct emu_ring *r,
			 struct neuron_desc *desc, u64 *bad)
{
	u64 addr = r->base + (u64)r->head * NEURON_DESC_SIZE;
	struct neuron_pin pin;
	u32 n;
	int err;

	if (r->next < r->fetched)
		return 0;
	spin_lock(&dma->lock);
	n = min3(r->pending, r->len - r->head, (u32)EMU_FETCH);
	spin_unlock(&dma->lock);
	*bad = addr;
	if (neuron_space_pin(q->space, addr, n * NEURON_DESC_SIZE, false, &pin))
		return NEURON_ISA_ERR_DMA_RING;
	err = pin.kind == NEURON_TARGET_CORE ? -EACCES :
	      emu_mem_read(dma->ed, &pin, 0, desc, n * NEURON_DESC_SIZE);
	neuron_pin_put(&pin);
	if (err)
		return NEURON_ISA_ERR_DMA_RING;
	r->next = 0;
	r->fetched = n;
	return 0;
}

/*
 * Take the next descriptor from the ring, unless one is under way.  The head
 * moves now, as the ring does not matter any more: the owner may write to it at
 * any time, and a descriptor that is partly done must not change.  It also
 * means that whoever sees what the descriptor wrote sees its place free.
 */
static int emu_ring_take(struct emu_dma *dma, struct emu_queue *q, struct emu_ring *r,
			 struct neuron_desc *desc, u64 *bad)
{
	int err;

	if (r->busy)
		return 0;
	err = emu_ring_load(dma, q, r, desc, bad);
	if (err)
		return err;
	r->cur = desc[r->next++];
	r->cur_addr = r->base + (u64)r->head * NEURON_DESC_SIZE;
	r->moved = 0;
	spin_lock(&dma->lock);
	r->busy = true;
	emu_ring_step(r, &r->head, &r->head_phase, 1);
	r->pending--;
	spin_unlock(&dma->lock);
	return 0;
}

/* The descriptor is complete. */
static void emu_ring_retire(struct emu_dma *dma, struct emu_ring *r)
{
	spin_lock(&dma->lock);
	r->busy = false;
	spin_unlock(&dma->lock);
}

/*
 * Move the bytes that the descriptors of both rings have in common.  Both
 * are checked with their whole length first.  Return: bytes moved, 0 if the
 * destination has no room now, -enum neuron_isa_error with *@bad set.
 */
static int emu_queue_copy(struct emu_dma *dma, u32 i, const struct neuron_desc *tx,
			  const struct neuron_desc *rx, u64 *bad)
{
	struct emu_queue *q = &dma->q[i];
	u64 src = le64_to_cpu(tx->addr), dst = le64_to_cpu(rx->addr);
	u32 left_tx = emu_desc_len(tx) - q->tx.moved;
	u32 left_rx = emu_desc_len(rx) - q->rx.moved;
	struct neuron_pin from, to;
	int ret;

	*bad = src;
	if (neuron_space_pin(q->space, src, emu_desc_len(tx), false, &from))
		return -NEURON_ISA_ERR_DMA_ACCESS;
	if (neuron_space_pin(q->space, dst, emu_desc_len(rx), true, &to)) {
		neuron_pin_put(&from);
		*bad = dst;
		return -NEURON_ISA_ERR_DMA_ACCESS;
	}
	ret = emu_mem_ecc(dma->ed, emu_dma_core(dma, i), &from) ?:
	      emu_copy_locked(dma->ed, &to, q->rx.moved, &from, q->tx.moved,
			      min(left_tx, left_rx));
	neuron_pin_put(&to);
	neuron_pin_put(&from);
	if (ret == -EAGAIN)
		return 0;
	if (ret < 0) {
		/* the window is to blame, and if both are one, the destination */
		if (to.kind == NEURON_TARGET_CORE && ret != -EBADMSG && ret != -EUCLEAN)
			*bad = dst;
		return -emu_copy_error(ret);
	}
	return ret;
}

/* A packet is complete. */
static void emu_queue_traced(struct emu_dma *dma, u32 i)
{
	struct emu_queue *q = &dma->q[i];

	emu_trace_dma_end(dma->ed, dma->index, i, q->began, q->first, q->bytes);
	q->began = 0;
}

/*
 * Copy: a packet is a stream of bytes, source descriptors from FIRST to LAST,
 * and as many destination descriptors as hold exactly the same number of bytes.
 * Return: bytes moved, 0 no room in a FIFO, -enum neuron_isa_error.
 */
static int emu_queue_step_copy(struct emu_dma *dma, u32 i, u64 *bad)
{
	struct emu_queue *q = &dma->q[i];
	const struct neuron_desc *tx = &q->tx.cur, *rx = &q->rx.cur;
	u32 tx_len = emu_desc_len(tx), rx_len = emu_desc_len(rx);
	bool irq = false;
	int ret;

	if (q->packet || (le32_to_cpu(tx->ctrl) & NEURON_DESC_LAST &&
			  tx_len - q->tx.moved < rx_len - q->rx.moved))
		return -NEURON_ISA_ERR_DMA_DESC;
	ret = emu_queue_copy(dma, i, tx, rx, bad);
	if (ret < 0)
		return ret;
	/*
	 * What was written is visible before what later descriptors write: all
	 * descriptors are ordered, with and without a barrier bit.
	 */
	smp_wmb();
	q->tx.moved += ret;
	q->rx.moved += ret;
	q->bytes += ret;
	if (q->tx.moved == tx_len) {
		q->in_packet = !(le32_to_cpu(tx->ctrl) & NEURON_DESC_LAST);
		q->done++;
		if (!q->in_packet)
			emu_queue_traced(dma, i);
		irq |= le32_to_cpu(tx->ctrl) & NEURON_DESC_INT;
		emu_ring_retire(dma, &q->tx);
	}
	if (q->rx.moved == rx_len) {
		irq |= le32_to_cpu(rx->ctrl) & NEURON_DESC_INT;
		emu_ring_retire(dma, &q->rx);
	}
	if (irq)
		neuron_dma_irq(dma->ed->nd, dma->index, i);
	return ret;
}

/*
 * Compute: collect a descriptor, and execute the packet with the last one.  The
 * last source stays busy until then, so that the queue is known to have work.
 * Return: bytes, -enum neuron_isa_error.
 */
static int emu_queue_step_compute(struct emu_dma *dma, u32 i, u64 *bad)
{
	struct emu_queue *q = &dma->q[i];
	const struct neuron_desc *tx = &q->tx.cur, *rx = &q->rx.cur;
	u32 ctrl = le32_to_cpu(tx->ctrl), len = emu_desc_len(tx);
	bool irq;
	int ret;

	if (!q->tx.moved) {
		if (ctrl & NEURON_DESC_FIRST)
			q->packet = emu_packet_new(le32_to_cpu(tx->meta));
		if (!q->packet)
			return q->in_packet ? -NEURON_ISA_ERR_DMA_DESC : -NEURON_ISA_ERR_ABORT;
		ret = emu_packet_source(q->packet, le32_to_cpu(tx->meta), le64_to_cpu(tx->addr),
					len, ctrl & NEURON_DESC_INT);
		if (ret)
			return -NEURON_ISA_ERR_DMA_DESC;
		q->tx.moved = len;
		q->in_packet = true;
	}
	/* The other ring started over. */
	if (!q->packet)
		return -NEURON_ISA_ERR_DMA_DESC;
	if (!(ctrl & NEURON_DESC_LAST)) {
		emu_ring_retire(dma, &q->tx);
		return len;
	}
	*bad = q->rx.cur_addr;
	len = emu_desc_len(rx);
	ret = emu_packet_dest(q->packet, le32_to_cpu(rx->meta), le64_to_cpu(rx->addr), len,
			      le32_to_cpu(rx->ctrl) & NEURON_DESC_INT);
	if (ret < 0)
		return -NEURON_ISA_ERR_DMA_DESC;
	if (ret) {
		ret = emu_packet_run(dma->ed, q->space, emu_dma_core(dma, i), q->packet, bad);
		if (ret)
			return -emu_copy_error(ret);
		/* as after a copy */
		smp_wmb();
		irq = emu_packet_irq(q->packet);
		q->done += emu_packet_sources(q->packet);
		q->bytes = emu_packet_result(q->packet);
		emu_queue_drop_packet(q);
		q->in_packet = false;
		emu_queue_traced(dma, i);
		emu_ring_retire(dma, &q->tx);
		emu_ring_retire(dma, &q->rx);
		if (irq)
			neuron_dma_irq(dma->ed->nd, dma->index, i);
		return len;
	}
	emu_ring_retire(dma, &q->rx);
	return len;
}

/*
 * Work on the descriptors of a queue.  Return: bytes, 0 no room in a FIFO,
 * negative: the queue was stopped.
 */
static int emu_queue_step(struct emu_dma *dma, u32 i)
{
	struct emu_queue *q = &dma->q[i];
	u64 bad = 0;
	int ret;

	ret = emu_ring_take(dma, q, &q->rx, dma->rx_desc, &bad) ?:
	      emu_ring_take(dma, q, &q->tx, dma->tx_desc, &bad);
	if (ret) {
		ret = -ret;
		goto abort;
	}
	bad = q->tx.cur_addr;
	if (emu_fault(dma->ed, EMU_FAULT_DMA_ABORT)) {
		neuron_device_report(dma->ed->nd, NEURON_EVENT_DMA_ABORT, emu_dma_core(dma, i));
		ret = -NEURON_ISA_ERR_ABORT;
		goto abort;
	}
	ret = -NEURON_ISA_ERR_DMA_DESC;
	if (!q->tx.moved &&
	    !!(le32_to_cpu(q->tx.cur.ctrl) & NEURON_DESC_FIRST) == q->in_packet)
		goto abort;
	/* Once, also if a full FIFO makes it wait. */
	if (!q->tx.moved && !q->in_packet && !q->began) {
		q->began = emu_trace_dma_begin(dma->ed, dma->index);
		if (q->began && !emu_queue_visible(dma, i))
			q->began = 0;
		q->first = q->done;
		q->bytes = 0;
	}
	switch (le32_to_cpu(q->tx.cur.meta) & NEURON_DESC_META_OP_MASK) {
	case NEURON_DESC_META_OP_COPY:
		ret = emu_queue_step_copy(dma, i, &bad);
		break;
	case NEURON_ISA_DMA_COMPUTE:
		ret = emu_queue_step_compute(dma, i, &bad);
		break;
	}
	if (ret >= 0)
		return ret;
abort:
	emu_queue_abort(dma, i, -ret, bad);
	return -EIO;
}

static bool emu_queue_can_run(struct emu_dma *dma, u32 i)
{
	bool can;

	spin_lock(&dma->lock);
	can = emu_queue_runnable(dma, &dma->q[i]);
	spin_unlock(&dma->lock);
	return can;
}

/*
 * Serve a queue for a while.  Return: there is more to do now.
 *
 * A queue whose FIFO is full is marked first and tries once more then: the
 * engine either sees the mark when it makes room, or has made room before.
 */
static bool emu_queue_serve(struct emu_dma *dma, u32 i)
{
	struct emu_queue *q = &dma->q[i];
	u32 bytes = 0, n;
	bool marked = false;
	int ret;

	/* what is in the buffers may be of another queue */
	q->tx.fetched = 0;
	q->tx.next = 0;
	q->rx.fetched = 0;
	q->rx.next = 0;
	for (n = 0; n < EMU_SLICE_DESCS && bytes < EMU_SLICE_BYTES; n++) {
		if (!emu_queue_can_run(dma, i))
			return false;
		ret = emu_queue_step(dma, i);
		if (ret < 0)
			return false;
		bytes += ret;
		if (ret)
			continue;
		if (marked)
			return false;
		marked = true;
		spin_lock(&dma->lock);
		dma->stalled |= BIT(i);
		spin_unlock(&dma->lock);
		set_bit(dma->index, dma->ed->stalled);
	}
	return emu_queue_can_run(dma, i);
}

/* The queue whose turn it is, -1 if none has work. */
static int emu_dma_next(struct emu_dma *dma)
{
	u32 n, i;

	spin_lock(&dma->lock);
	for (n = 1; n <= NEURON_HW_QUEUES_PER_ENGINE; n++) {
		i = (dma->last + n) % NEURON_HW_QUEUES_PER_ENGINE;
		if (!(dma->ready & BIT(i)))
			continue;
		dma->ready &= ~BIT(i);
		dma->last = i;
		spin_unlock(&dma->lock);
		return i;
	}
	spin_unlock(&dma->lock);
	return -1;
}

/* Return: there may be more to do. */
static bool emu_dma_turns(struct emu_dma *dma)
{
	bool more;
	int i, n;

	for (n = 0; n < EMU_DMA_TURNS; n++) {
		i = emu_dma_next(dma);
		if (i < 0)
			return false;
		mutex_lock(&dma->run);
		more = emu_queue_serve(dma, i);
		mutex_unlock(&dma->run);
		if (more) {
			spin_lock(&dma->lock);
			dma->ready |= BIT(i);
			spin_unlock(&dma->lock);
		}
		cond_resched();
	}
	return true;
}

static void emu_dma_serve(struct emu_dma *dma)
{
	bool more;

	emu_busy_begin(&dma->ed->busy);
	more = emu_dma_turns(dma);
	emu_busy_end(&dma->ed->busy);
	/* What began has had its latency. */
	if (more)
		queue_work(dma->ed->wq, &dma->work);
}

static void emu_dma_work(struct work_struct *work)
{
	emu_dma_serve(container_of(work, struct emu_dma, work));
}

/**
 * emu_dma_kick() - an instruction FIFO has room
 * @ed: device
 *
 * All queues that wait for room try again; it does not matter which FIFO it is.
 */
void emu_dma_kick(struct emu_device *ed)
{
	u32 i;

	for_each_set_bit(i, ed->stalled, EMU_MAX_ENGINES) {
		struct emu_dma *dma = emu_dma_find(ed, i);

		clear_bit(i, ed->stalled);
		if (!dma)
			continue;
		spin_lock(&dma->lock);
		dma->ready |= dma->stalled;
		dma->stalled = 0;
		emu_dma_schedule(dma);
		spin_unlock(&dma->lock);
	}
}

/**
 * emu_dma_trigger() - ring the doorbells of a queue for an engine of a core
 * @ed: device
 * @eng: DMA engine
 * @i: queue
 * @space: for whom the core acts
 * @tx: source descriptors to add
 * @rx: destination descriptors to add
 *
 * Return: false if the queue is not set up, is not bound to @space, or has no
 * room for that many descriptors; nothing was done then.
 */
bool emu_dma_trigger(struct emu_device *ed, u32 eng, u32 i, struct neuron_space *space,
		     u32 tx, u32 rx)
{
	struct emu_dma *dma = emu_dma_find(ed, eng);
	struct emu_queue *q;
	bool ok, now = false;

	if (!dma || i >= NEURON_HW_QUEUES_PER_ENGINE)
		return false;
	q = &dma->q[i];
	spin_lock(&dma->lock);
	ok = q->space == space && !q->stopping && !q->aborted && q->tx.len && q->rx.len &&
	     emu_ring_takes(&q->tx, tx) && emu_ring_takes(&q->rx, rx);
	if (ok) {
		emu_ring_add(&q->rx, rx);
		emu_ring_add(&q->tx, tx);
		now = emu_queue_ring(dma, i);
	}
	spin_unlock(&dma->lock);
	if (now)
		emu_dma_serve(dma);
	return ok;
}

/* ---- operations ---- */

/**
 * emu_dma_bind() - give a queue to @space
 * @ed: device
 * @eng: engine
 * @i: queue, stopped
 * @space: what it may touch
 *
 * Return: 0, -ENOMEM, -EINVAL no such queue, -EBUSY it was not stopped.
 */
int emu_dma_bind(struct emu_device *ed, u32 eng, u32 i, struct neuron_space *space)
{
	struct emu_queue *q;
	struct emu_dma *dma;
	int err = 0;

	if (eng >= ed->geo.nr_dma_engines || i >= NEURON_HW_QUEUES_PER_ENGINE)
		return -EINVAL;
	dma = emu_dma_get(ed, eng);
	if (!dma)
		return -ENOMEM;
	q = &dma->q[i];
	mutex_lock(&dma->run);
	spin_lock(&dma->lock);
	if (q->space)
		err = -EBUSY;
	else
		emu_queue_init(q, space);
	spin_unlock(&dma->lock);
	mutex_unlock(&dma->run);
	return err;
}

/**
 * emu_dma_stop() - stop and forget a queue
 * @ed: device
 * @eng: engine
 * @i: queue
 *
 * Waits for the descriptor being worked on, not for more: a paused queue is
 * not being worked on.
 */
void emu_dma_stop(struct emu_device *ed, u32 eng, u32 i)
{
	struct emu_dma *dma = emu_dma_find(ed, eng);
	struct emu_queue *q;

	if (!dma || i >= NEURON_HW_QUEUES_PER_ENGINE)
		return;
	q = &dma->q[i];
	spin_lock(&dma->lock);
	q->stopping = true;
	spin_unlock(&dma->lock);
	mutex_lock(&dma->run);
	spin_lock(&dma->lock);
	dma->ready &= ~BIT(i);
	dma->stalled &= ~BIT(i);
	emu_queue_init(q, NULL);
	spin_unlock(&dma->lock);
	mutex_unlock(&dma->run);
}

/**
 * emu_dma_poll() - do a piece of a queue's work in the place of the work item
 * @ed: device
 * @eng: engine
 * @i: queue
 *
 * Only a device that completes its work in a work item lets its waiters do it.
 * Work that a former call left undone goes back to the device when that is no
 * longer so, or when the waiter was killed: nobody will call again then.
 *
 * Context: may sleep.
 * Return: there is more, and nobody else does it.
 */
bool emu_dma_poll(struct emu_device *ed, u32 eng, u32 i)
{
	struct emu_dma *dma = emu_dma_find(ed, eng);
	bool more;

	if (!dma || i >= NEURON_HW_QUEUES_PER_ENGINE)
		return false;
	spin_lock(&dma->lock);
	/* Otherwise the work item was faster. */
	more = dma->ready & BIT(i);
	if (more && (READ_ONCE(ed->completion) != EMU_COMPLETE_WORKER ||
		     fatal_signal_pending(current))) {
		emu_dma_schedule(dma);
		more = false;
	}
	if (more)
		dma->ready &= ~BIT(i);
	spin_unlock(&dma->lock);
	if (!more)
		return false;
	emu_busy_begin(&ed->busy);
	mutex_lock(&dma->run);
	more = emu_queue_serve(dma, i);
	mutex_unlock(&dma->run);
	emu_busy_end(&ed->busy);
	if (more) {
		spin_lock(&dma->lock);
		dma->ready |= BIT(i);
		spin_unlock(&dma->lock);
	}
	return more;
}

/* ---- registers ---- */

/* Which queue and ring does @off belong to?  *@reg is the offset in its block. */
static bool emu_dma_decode(u32 off, u32 *i, bool *rx, u32 *reg)
{
	u32 base = NEURON_DMA_TX(0);

	*rx = off >= NEURON_DMA_RX(0);
	if (*rx)
		base = NEURON_DMA_RX(0);
	if (off < base)
		return false;
	*i = (off - base) / 0x1000;
	*reg = (off - base) % 0x1000;
	return *i < NEURON_HW_QUEUES_PER_ENGINE;
}

static u32 emu_pointer(u32 index, u32 phase)
{
	return index | phase << NEURON_DMA_Q_PHASE_SHIFT;
}

/**
 * emu_dma_reg_read() - read a register of a DMA engine
 * @ed: device
 * @eng: engine
 * @off: offset, a multiple of 4
 * @val: the result
 *
 * Registers of an engine that was never used read as after a reset.
 *
 * Return: 0, -EINVAL no such register.
 */
int emu_dma_reg_read(struct emu_device *ed, u32 eng, u32 off, u32 *val)
{
	struct emu_ring ring = { .head_phase = 1, .tail_phase = 1 };
	struct emu_dma *dma = emu_dma_find(ed, eng);
	const struct emu_ring *r = &ring;
	bool rx, aborted = false;
	u32 i, reg;
	int err = 0;

	if (eng >= ed->geo.nr_dma_engines)
		return -EINVAL;
	if (off == NEURON_DMA_COMMON) {
		*val = dma ? READ_ONCE(dma->state) : NEURON_DMA_ENG_NORMAL;
		return 0;
	}
	if (!emu_dma_decode(off, &i, &rx, &reg))
		return -EINVAL;
	if (dma) {
		spin_lock(&dma->lock);
		ring = rx ? dma->q[i].rx : dma->q[i].tx;
		aborted = dma->q[i].aborted;
		spin_unlock(&dma->lock);
	}
	switch (reg) {
	case NEURON_DMA_Q_CONFIG:
		*val = r->config;
		break;
	case NEURON_DMA_Q_STATUS:
		*val = aborted ? NEURON_QUEUE_ABORTED :
		       emu_ring_enabled(r) ? NEURON_QUEUE_ENABLED : NEURON_QUEUE_DISABLED;
		break;
	case NEURON_DMA_Q_BASE_LO:
		*val = lower_32_bits(r->base);
		break;
	case NEURON_DMA_Q_BASE_HI:
		*val = upper_32_bits(r->base);
		break;
	case NEURON_DMA_Q_LENGTH:
		*val = r->len;
		break;
	case NEURON_DMA_Q_HEAD:
	case NEURON_DMA_Q_CURRENT:
		*val = emu_pointer(r->head, r->head_phase);
		break;
	case NEURON_DMA_Q_TAIL:
		*val = emu_pointer(r->tail, r->tail_phase);
		break;
	case NEURON_DMA_Q_TAIL_INC:
	case NEURON_DMA_Q_COMPL_LO:
	case NEURON_DMA_Q_COMPL_HI:
	case NEURON_DMA_Q_COMPL_HEAD:
		*val = 0;
		break;
	default:
		if (reg != (rx ? NEURON_DMA_RX_SWRESET : NEURON_DMA_TX_SWRESET))
			err = -EINVAL;
		*val = 0;
	}
	return err;
}

/* Doorbell. */
static int emu_dma_ring(struct emu_dma *dma, u32 i, bool rx, u32 n)
{
	struct emu_queue *q = &dma->q[i];
	struct emu_ring *r = rx ? &q->rx : &q->tx;
	bool now = false;
	int err = 0;

	spin_lock(&dma->lock);
	if (!q->space || !r->len || !emu_ring_takes(r, n)) {
		err = -EINVAL;
	} else {
		emu_ring_add(r, n);
		now = emu_queue_ring(dma, i);
	}
	spin_unlock(&dma->lock);
	if (now)
		emu_dma_serve(dma);
	return err;
}

/*
 * State request of an engine: everything else than NORMAL pauses it, ABORT
 * stops the queues that are in use for good.
 */
static int emu_dma_set_state(struct emu_dma *dma, u32 state)
{
	u32 i;

	if (state != NEURON_DMA_ENG_DISABLE && state != NEURON_DMA_ENG_NORMAL &&
	    state != NEURON_DMA_ENG_ABORT)
		return -EINVAL;
	mutex_lock(&dma->run);
	spin_lock(&dma->lock);
	WRITE_ONCE(dma->state, state);
	for (i = 0; i < NEURON_HW_QUEUES_PER_ENGINE; i++)
		emu_queue_check(dma, i);
	spin_unlock(&dma->lock);
	for (i = 0; state == NEURON_DMA_ENG_ABORT && i < NEURON_HW_QUEUES_PER_ENGINE; i++) {
		struct emu_queue *q = &dma->q[i];

		if (q->space && !q->aborted &&
		    (emu_ring_enabled(&q->tx) || emu_ring_enabled(&q->rx)))
			emu_queue_abort(dma, i, NEURON_ISA_ERR_ABORT, 0);
	}
	mutex_unlock(&dma->run);
	return 0;
}

/* A ring of the queue starts over, and with it the packet that is being collected. */
static void emu_queue_restart(struct emu_queue *q, struct emu_ring *r)
{
	emu_ring_reset(r);
	emu_queue_drop_packet(q);
	q->in_packet = false;
	q->began = 0;
}

/* Registers that must not change while an enabled ring runs from them. */
static int emu_ring_program(struct emu_queue *q, struct emu_ring *r, u32 reg, u32 val)
{
	if (emu_ring_enabled(r))
		return -EINVAL;
	switch (reg) {
	case NEURON_DMA_Q_BASE_LO:
		if (val % NEURON_RING_ALIGN)
			return -EINVAL;
		r->base = (r->base & ~(u64)U32_MAX) | val;
		return 0;
	case NEURON_DMA_Q_BASE_HI:
		r->base = (r->base & U32_MAX) | (u64)val << 32;
		return 0;
	default: /* NEURON_DMA_Q_LENGTH */
		/* 0: there is no ring (yet) */
		if (val && (val < NEURON_RING_MIN || val > NEURON_RING_MAX || val % 16))
			return -EINVAL;
		emu_queue_restart(q, r);
		r->len = val;
		return 0;
	}
}

static int emu_queue_write(struct emu_dma *dma, u32 i, bool rx, u32 reg, u32 val)
{
	struct emu_queue *q = &dma->q[i];
	struct emu_ring *r = rx ? &q->rx : &q->tx;
	int err = 0;

	mutex_lock(&dma->run);
	spin_lock(&dma->lock);
	if (!q->space || q->stopping) {
		err = -EINVAL;
		goto out;
	}
	switch (reg) {
	case NEURON_DMA_Q_CONFIG:
		r->config = val;
		emu_queue_check(dma, i);
		break;
	case NEURON_DMA_Q_BASE_LO:
	case NEURON_DMA_Q_BASE_HI:
	case NEURON_DMA_Q_LENGTH:
		err = emu_ring_program(q, r, reg, val);
		break;
	case NEURON_DMA_Q_COMPL_LO:
	case NEURON_DMA_Q_COMPL_HI:
		/* there are no completion rings */
		err = val ? -EINVAL : 0;
		break;
	default:
		if (reg != (rx ? NEURON_DMA_RX_SWRESET : NEURON_DMA_TX_SWRESET)) {
			err = -EINVAL;
		} else if (val & NEURON_DMA_Q_SWRESET) {
			emu_queue_restart(q, r);
			q->aborted = false;
			if (!rx)
				q->done = 0;
		}
	}
out:
	spin_unlock(&dma->lock);
	mutex_unlock(&dma->run);
	return err;
}

/**
 * emu_dma_reg_write() - write a register of a DMA engine
 * @ed: device
 * @eng: engine
 * @off: offset, a multiple of 4
 * @val: value
 *
 * Doorbells return at once, unless completion is inline.  Other writes wait for
 * the turn of the queue that is being served, so what they change has taken effect.
 *
 * Return: 0, -ENOMEM, -EINVAL: no such register, queue not bound, value refused
 * (misaligned base, length out of range, doorbell beyond the ring), or a ring
 * is to be programmed while it is enabled.
 */
int emu_dma_reg_write(struct emu_device *ed, u32 eng, u32 off, u32 val)
{
	struct emu_dma *dma;
	u32 i, reg;
	bool rx;

	if (eng >= ed->geo.nr_dma_engines)
		return -EINVAL;
	if (off == NEURON_DMA_COMMON) {
		dma = emu_dma_get(ed, eng);
		return dma ? emu_dma_set_state(dma, val) : -ENOMEM;
	}
	dma = emu_dma_find(ed, eng);
	if (!dma || !emu_dma_decode(off, &i, &rx, &reg))
		return -EINVAL;
	if (reg == NEURON_DMA_Q_TAIL_INC)
		return emu_dma_ring(dma, i, rx, val);
	return emu_queue_write(dma, i, rx, reg, val);
}

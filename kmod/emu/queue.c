// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues of a DMA engine: a ring of source (TX) and a ring of destination (RX)
 * descriptors in memory, and the copies and packets that descriptors ask for.
 *
 * The ring id (phase) in bits 25:24 of a descriptor is not compared with the
 * phase of the ring: applications write a ring once and run it many times, so
 * their descriptors carry the id of the first pass only.  No check is lost, since the
 * doorbells count exactly how many descriptors are valid.
 */
#include <linux/sizes.h>
#include <linux/string.h>

#include "mem.h"
#include "notify.h"
#include "packet.h"
#include "queue.h"
#include "trace.h"
#include "window.h"

/* Work of a queue before the engine's next queue gets a turn. */
#define EMU_SLICE_DESCS		256
#define EMU_SLICE_BYTES		SZ_1M

static void emu_ring_reset(struct emu_ring *r)
{
	*r = (struct emu_ring){
		.base = r->base, .len = r->len, .config = r->config,
		.head_phase = 1, .tail_phase = 1,
	};
}

/* Forget a compute packet that is not complete.  Caller holds emu_dma.run. */
static void emu_queue_drop_packet(struct emu_queue *q)
{
	emu_packet_free(q->packet);
	q->packet = NULL;
}

/**
 * emu_queue_init() - bring a queue to its initial state
 * @q: queue; emu_dma.run and emu_dma.lock are held
 * @space: what it may touch, NULL: it is not bound
 */
void emu_queue_init(struct emu_queue *q, struct neuron_space *space)
{
	emu_queue_drop_packet(q);
	memset(q, 0, sizeof(*q));
	emu_ring_reset(&q->tx);
	emu_ring_reset(&q->rx);
	q->space = space;
}

/**
 * emu_queue_restart() - restart a ring, and drop the packet being collected
 * @q: queue; emu_dma.run and emu_dma.lock are held
 * @r: one of its rings
 */
void emu_queue_restart(struct emu_queue *q, struct emu_ring *r)
{
	emu_ring_reset(r);
	emu_queue_drop_packet(q);
	q->in_packet = false;
	q->began = 0;
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

static void emu_ring_add(struct emu_ring *r, u32 n)
{
	if (n)
		emu_ring_step(r, &r->tail, &r->tail_phase, n);
	r->pending += n;
}

/**
 * emu_queue_add() - the rings have more descriptors
 * @q: queue; emu_dma.lock is held
 * @tx: source descriptors
 * @rx: destination descriptors
 *
 * Return: false if there is no room for that many; then nothing was done.
 */
bool emu_queue_add(struct emu_queue *q, u32 tx, u32 rx)
{
	if (!emu_ring_takes(&q->tx, tx) || !emu_ring_takes(&q->rx, rx))
		return false;
	emu_ring_add(&q->rx, rx);
	emu_ring_add(&q->tx, tx);
	return true;
}

/* Is there a descriptor to work on? */
static bool emu_ring_has(const struct emu_ring *r)
{
	return r->busy || r->pending;
}

/**
 * emu_ring_enabled() - is a ring programmed and switched on?
 * @r: ring
 */
bool emu_ring_enabled(const struct emu_ring *r)
{
	return r->len &&
	       (r->config & NEURON_DMA_Q_CONFIG_ENABLE) == NEURON_DMA_Q_CONFIG_ENABLE;
}

static bool emu_queue_on(const struct emu_dma *dma, const struct emu_queue *q)
{
	return q->space && !q->aborted && !q->stopping &&
	       dma->state == NEURON_DMA_ENG_NORMAL &&
	       emu_ring_enabled(&q->tx) && emu_ring_enabled(&q->rx);
}

/**
 * emu_queue_runnable() - can a queue go on?
 * @dma: engine, locked
 * @q: its queue
 */
bool emu_queue_runnable(const struct emu_dma *dma, const struct emu_queue *q)
{
	return emu_queue_on(dma, q) && emu_ring_has(&q->tx) && emu_ring_has(&q->rx);
}

/* The core whose copies the driver makes on this queue; -1 if it is not the driver's. */
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
 * May the owner of the engine's core see what the queue does?  The driver's copies are
 * for other processes; on inf1 they use an engine of the core.
 */
static bool emu_queue_visible(const struct emu_dma *dma, u32 i)
{
	return dma->index / dma->ed->geo.engines_per_core < dma->ed->geo.nr_cores &&
	       emu_dma_copies(dma, i) < 0;
}

/* A card never interrupts. */
static void emu_queue_irq(struct emu_dma *dma, u32 i)
{
	if (!dma->ed->parent)
		neuron_dma_irq(dma->ed->nd, dma->index, i);
}

/**
 * emu_queue_abort() - stop a queue until it is reset
 * @dma: engine; emu_dma.run is held
 * @i: queue
 * @code: enum neuron_isa_error
 * @addr: device address that caused the error
 *
 * The owner learns of it from the core's error queue (except for the driver's copies),
 * the status register and neuron_dma_irq().
 */
void emu_queue_abort(struct emu_dma *dma, u32 i, u32 code, u64 addr)
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
		emu_nq_post(ed->notify[core], EMU_NQ(EMU_NQ_ERROR, 0), &n);
	emu_queue_irq(dma, i);
}

/**
 * emu_dma_abort() - stop all queues of an engine that are in use
 * @dma: engine; emu_dma.run is held
 */
void emu_dma_abort(struct emu_dma *dma)
{
	u32 i;

	for (i = 0; i < NEURON_HW_QUEUES_PER_ENGINE; i++) {
		struct emu_queue *q = &dma->q[i];

		if (q->space && !q->aborted &&
		    (emu_ring_enabled(&q->tx) || emu_ring_enabled(&q->rx)))
			emu_queue_abort(dma, i, NEURON_ISA_ERR_ABORT, 0);
	}
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

static u32 emu_desc_len(const struct neuron_desc *d)
{
	u32 len = le32_to_cpu(d->ctrl) & NEURON_DESC_LEN_MASK;

	return len ? len : NEURON_DESC_MAX_LEN;
}

/* Fetch descriptors of a ring, unless some are left.  Return: 0, enum neuron_isa_error. */
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
	if (emu_pin(dma->ed, q->space, addr, n * NEURON_DESC_SIZE, false, &pin))
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
 * Take the next descriptor from the ring, unless one is under way.  The head moves now,
 * because the ring is not read again: its owner may write to it at any time, and a
 * descriptor that is partly done must not change.  So a thread that sees what the
 * descriptor wrote also sees its place in the ring free.
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
	/* neuron.ko starts no slot that is empty, but instructions do. */
	if (!dma->ed->checks && !r->cur.ctrl && !r->cur.meta && !r->cur.addr)
		return NEURON_ISA_ERR_DMA_DESC;
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
	if (emu_pin(dma->ed, q->space, src, emu_desc_len(tx), false, &from))
		return -NEURON_ISA_ERR_DMA_ACCESS;
	if (emu_pin(dma->ed, q->space, dst, emu_desc_len(rx), true, &to)) {
		neuron_pin_put(&from);
		*bad = dst;
		return -NEURON_ISA_ERR_DMA_ACCESS;
	}
	ret = emu_mem_ecc(&dma->ed->faults, dma->ed->nd, emu_dma_core(dma, i), &from) ?:
	      emu_window_copy(dma->ed, q->space, &to, q->rx.moved, &from, q->tx.moved,
			      min(left_tx, left_rx));
	neuron_pin_put(&to);
	neuron_pin_put(&from);
	if (ret == -EAGAIN)
		return 0;
	if (ret < 0) {
		/* report the side that is a core window; the destination if both are */
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

	if (likely(!q->began))
		return;
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
	 * These writes are visible before those of descriptors that are done later, with and
	 * without a barrier bit.
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
		emu_queue_irq(dma, i);
	return ret;
}

/*
 * Compute: collect a descriptor; the last one executes the packet.  The last source stays
 * busy until then, so that the queue still counts as having work.
 * Return: bytes, -enum neuron_isa_error.
 */
static int emu_queue_step_compute(struct emu_dma *dma, u32 i, u64 *bad)
{
	struct emu_queue *q = &dma->q[i];
	const struct neuron_desc *tx = &q->tx.cur, *rx = &q->rx.cur;
	u32 ctrl = le32_to_cpu(tx->ctrl), len = emu_desc_len(tx);
	bool irq = false;
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
	/* The other ring was restarted. */
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
		irq = q->packet->irq;
		q->done += q->packet->nr_tx;
		q->bytes = q->packet->result;
		emu_queue_drop_packet(q);
		q->in_packet = false;
		emu_queue_traced(dma, i);
		emu_ring_retire(dma, &q->tx);
	}
	emu_ring_retire(dma, &q->rx);
	if (irq)
		emu_queue_irq(dma, i);
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
	if (emu_fault(&dma->ed->faults, EMU_FAULT_DMA_ABORT)) {
		neuron_device_report(dma->ed->nd, NEURON_EVENT_DMA_ABORT, emu_dma_core(dma, i));
		ret = -NEURON_ISA_ERR_ABORT;
		goto abort;
	}
	ret = -NEURON_ISA_ERR_DMA_DESC;
	if (!q->tx.moved &&
	    !!(le32_to_cpu(q->tx.cur.ctrl) & NEURON_DESC_FIRST) == q->in_packet)
		goto abort;
	/* Only once per packet, even if a full FIFO makes it wait. */
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

/* A packet of one descriptor on each side, which nobody is told of. */
static bool emu_desc_plain(const struct neuron_desc *tx, const struct neuron_desc *rx)
{
	const u32 flags = NEURON_DESC_FIRST | NEURON_DESC_LAST | NEURON_DESC_INT;

	return (le32_to_cpu(tx->ctrl) & flags) == (NEURON_DESC_FIRST | NEURON_DESC_LAST) &&
	       !(le32_to_cpu(rx->ctrl) & NEURON_DESC_INT) &&
	       (le32_to_cpu(tx->meta) & NEURON_DESC_META_OP_MASK) == NEURON_DESC_META_OP_COPY &&
	       emu_desc_len(tx) == emu_desc_len(rx);
}

/* How many of the descriptors that were fetched continue the first one, on both sides. */
static u32 emu_queue_joined(const struct emu_dma *dma, const struct emu_queue *q, u32 *bytes)
{
	const struct neuron_desc *tx = dma->tx_desc + q->tx.next, *rx = dma->rx_desc + q->rx.next;
	u32 max = min(q->tx.fetched - q->tx.next, q->rx.fetched - q->rx.next), n;
	u64 src = le64_to_cpu(tx->addr), dst = le64_to_cpu(rx->addr);

	*bytes = 0;
	for (n = 0; n < max && emu_desc_plain(tx, rx); n++, tx++, rx++) {
		if (le64_to_cpu(tx->addr) != src + *bytes || le64_to_cpu(rx->addr) != dst + *bytes)
			break;
		*bytes += emu_desc_len(tx);
	}
	return n;
}

static bool emu_pins_apart(const struct neuron_pin *a, const struct neuron_pin *b, u32 len)
{
	return a->kind != b->kind || a->index != b->index || a->pages != b->pages ||
	       a->off + len <= b->off || b->off + len <= a->off;
}

/* Memory, not registers and FIFOs, whose accesses have an order. */
static int emu_queue_join(struct emu_dma *dma, struct emu_queue *q, u32 bytes)
{
	u64 src = le64_to_cpu(dma->tx_desc[q->tx.next].addr);
	u64 dst = le64_to_cpu(dma->rx_desc[q->rx.next].addr);
	struct neuron_pin from, to;
	int err;

	err = emu_pin(dma->ed, q->space, src, bytes, false, &from);
	if (err)
		return err;
	err = emu_pin(dma->ed, q->space, dst, bytes, true, &to);
	if (!err) {
		if (from.kind == NEURON_TARGET_CORE || to.kind == NEURON_TARGET_CORE ||
		    !emu_pins_apart(&from, &to, bytes))
			err = -EINVAL;
		else
			err = emu_share_copy(&dma->share, &to, &from, bytes);
		neuron_pin_put(&to);
	}
	neuron_pin_put(&from);
	return err;
}

/* Have the next descriptors of both rings, at the beginning of a packet, been fetched? */
static bool emu_queue_load(struct emu_dma *dma, struct emu_queue *q)
{
	u64 bad;

	return !q->tx.busy && !q->rx.busy && !q->in_packet &&
	       !emu_ring_load(dma, q, &q->rx, dma->rx_desc, &bad) &&
	       !emu_ring_load(dma, q, &q->tx, dma->tx_desc, &bad);
}

static void emu_ring_skip(struct emu_ring *r, u32 n)
{
	emu_ring_step(r, &r->head, &r->head_phase, n);
	r->pending -= n;
	r->next += n;
}

/*
 * Descriptors of the driver that continue each other are one copy.  Only its marker, which
 * has the interrupt bit or does not continue anything, has to come after all of them.
 * Return: bytes; 0: nothing is done, or nothing that the descriptors one by one will not do
 * again, with the errors that they have.
 */
static u32 emu_queue_copy_joined(struct emu_dma *dma, u32 i)
{
	struct emu_queue *q = &dma->q[i];
	u32 n, bytes;

	if (emu_copy_faults(&dma->ed->faults) || !emu_queue_load(dma, q))
		return 0;
	n = emu_queue_joined(dma, q, &bytes);
	if (n < 2 || emu_queue_join(dma, q, bytes))
		return 0;
	/* As after a copy. */
	smp_wmb();
	q->done += n;
	spin_lock(&dma->lock);
	emu_ring_skip(&q->tx, n);
	emu_ring_skip(&q->rx, n);
	spin_unlock(&dma->lock);
	return bytes;
}

/* May a copy be done before or after its neighbours? */
static bool emu_queue_unordered(struct emu_dma *dma, struct emu_queue *q,
				const struct neuron_desc *tx, const struct neuron_desc *rx)
{
	struct neuron_pin to;
	bool ordered;

	if (!emu_desc_plain(tx, rx) ||
	    emu_pin(dma->ed, q->space, le64_to_cpu(rx->addr), emu_desc_len(rx), true, &to))
		return false;
	ordered = to.kind == NEURON_TARGET_CORE && emu_window_ordered(to.off);
	neuron_pin_put(&to);
	return !ordered;
}

/* What follows is written after this and all before. */
static bool emu_desc_barrier(const struct neuron_desc *tx)
{
	return le32_to_cpu(tx->ctrl) & NEURON_DESC_BARRIER ||
	       le32_to_cpu(tx->meta) & NEURON_DESC_META_WRITE_BARRIER;
}

/* Draw an order for the copies up to the next barrier.  Return: how many there are. */
static u32 emu_queue_draw_order(struct emu_dma *dma, struct emu_queue *q)
{
	struct neuron_desc *tx = dma->tx_desc + q->tx.next, *rx = dma->rx_desc + q->rx.next;
	u32 max = min3(q->tx.fetched - q->tx.next, q->rx.fetched - q->rx.next,
		       (u32)EMU_SHUFFLE_DESCS);
	u32 n = 0, i, k;

	while (n < max && emu_queue_unordered(dma, q, tx + n, rx + n))
		if (emu_desc_barrier(&tx[n++]))
			break;
	spin_lock(&dma->lock);
	for (i = n; i > 1; i--) {
		k = emu_shuffle_draw(&dma->shuffle, i);
		swap(tx[i - 1], tx[k]);
		swap(rx[i - 1], rx[k]);
	}
	spin_unlock(&dma->lock);
	return n;
}

/*
 * A queue that shuffles: all copies up to the next barrier, because those that are left would be
 * fetched again in the order of the ring.
 * Return: bytes; 0: none; negative: the queue was stopped.
 */
static int emu_queue_copy_shuffled(struct emu_dma *dma, u32 i)
{
	struct emu_queue *q = &dma->q[i];
	int bytes = 0, ret;
	u32 n;

	if (!emu_queue_load(dma, q))
		return 0;
	for (n = emu_queue_draw_order(dma, q); n; n--) {
		ret = emu_queue_step(dma, i);
		if (ret < 0)
			return ret;
		bytes += ret;
	}
	return bytes;
}

static bool emu_queue_can_run(struct emu_dma *dma, u32 i)
{
	bool can;

	spin_lock(&dma->lock);
	can = emu_queue_runnable(dma, &dma->q[i]);
	spin_unlock(&dma->lock);
	return can;
}

/**
 * emu_queue_rw() - read or write memory in place of a descriptor
 * @dma: engine; emu_dma.run is held
 * @i: queue
 * @addr: device address
 * @buf: kernel memory
 * @len: bytes, not 0
 * @write: to @addr
 *
 * Return: false: the queue is not idle, may meet a fault, or this is not (its) memory.
 */
bool emu_queue_rw(struct emu_dma *dma, u32 i, u64 addr, void *buf, u32 len, bool write)
{
	struct emu_device *ed = dma->ed;
	struct emu_queue *q = &dma->q[i];
	struct neuron_pin pin;
	int err = -EINVAL;
	bool idle;

	spin_lock(&dma->lock);
	idle = emu_queue_on(dma, q) && !emu_ring_has(&q->tx) && !emu_ring_has(&q->rx);
	spin_unlock(&dma->lock);
	if (!idle || emu_copy_faults(&ed->faults) ||
	    emu_pin(ed, q->space, addr, len, write, &pin))
		return false;
	if (pin.kind != NEURON_TARGET_CORE)
		err = write ? emu_mem_write(ed, &pin, 0, buf, len) :
			      emu_mem_read(ed, &pin, 0, buf, len);
	neuron_pin_put(&pin);
	return !err;
}

/**
 * emu_queue_serve() - serve a queue for a while
 * @dma: engine; emu_dma.run is held
 * @i: queue
 *
 * A queue whose FIFO is full is marked and then tries once more.  The engine either sees
 * the mark when it makes room, or made room before that attempt.
 *
 * Return: true if there is more to do now.
 */
bool emu_queue_serve(struct emu_dma *dma, u32 i)
{
	struct emu_queue *q = &dma->q[i];
	u32 bytes = 0, n;
	bool own = emu_dma_copies(dma, i) >= 0, marked = false;
	int ret;

	/* the buffers may hold descriptors of another queue */
	q->tx.fetched = 0;
	q->tx.next = 0;
	q->rx.fetched = 0;
	q->rx.next = 0;
	for (n = 0; n < EMU_SLICE_DESCS && bytes < EMU_SLICE_BYTES; n++) {
		if (!emu_queue_can_run(dma, i))
			return false;
		ret = READ_ONCE(dma->shuffle.on) ? emu_queue_copy_shuffled(dma, i) :
		      own ? emu_queue_copy_joined(dma, i) : 0;
		if (!ret)
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

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The window of a core: semaphores, events and instruction FIFOs, as registers and
 * as source and destination of DMA.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "engine.h"
#include "mem.h"
#include "trace.h"
#include "window.h"

/**
 * emu_window_init() - make the window of a core
 * @w: zeroed
 * @ed: device
 * @core: number of the core
 * @work: runs the engines of the core
 */
void emu_window_init(struct emu_window *w, struct emu_device *ed, u32 core, work_func_t work)
{
	w->ed = ed;
	w->core = core;
	mutex_init(&w->append);
	spin_lock_init(&w->lock);
	INIT_WORK(&w->work, work);
}

/**
 * emu_window_reset() - remove the engines with their FIFOs, clear semaphores and events
 * @w: window of a core that is being reset; emu_device.window_lock is held for writing
 * @broken: do not run the engines before the next reset
 */
void emu_window_reset(struct emu_window *w, bool broken)
{
	u32 e;

	for (e = 0; e < NEURON_ISA_NR_ENGINES; e++) {
		emu_engine_free(w->fifo[e].engine);
		kvfree(w->fifo[e].buf);
	}
	spin_lock(&w->lock);
	memset(w->fifo, 0, sizeof(w->fifo));
	memset(w->sem, 0, sizeof(w->sem));
	bitmap_zero(w->event, EMU_MAX_EVENTS);
	w->waiting = 0;
	w->resetting = false;
	w->broken = broken;
	spin_unlock(&w->lock);
}

/**
 * emu_window_wake() - run the engines, unless the core is being reset or broken
 * @w: window, locked
 *
 * Return: false in that case.
 */
bool emu_window_wake(struct emu_window *w)
{
	lockdep_assert_held(&w->lock);
	if (w->resetting || w->broken)
		return false;
	queue_work(w->ed->wq, &w->work);
	return true;
}

/* A semaphore or event was written to.  Caller holds w->lock. */
static void emu_window_signal(struct emu_window *w)
{
	if (w->waiting)
		emu_window_wake(w);
}

/* Is @off one of @nr registers that start at @first? */
static bool emu_reg_in(u64 off, u32 first, u32 nr, u32 *index)
{
	if (off < first || off - first >= 4 * nr || off % 4)
		return false;
	*index = (u32)(off - first) / 4;
	return true;
}

/* Caller holds w->lock.  Return: 0, -ERANGE the counter would wrap. */
static int emu_sem_change(struct emu_window *w, u32 i, u32 op, u32 val)
{
	u32 old = w->sem[i];

	if ((op == NEURON_ISA_POST_INC && val > U32_MAX - old) ||
	    (op == NEURON_ISA_POST_DEC && val > old))
		return -ERANGE;
	w->sem[i] = op == NEURON_ISA_POST_SET ? val :
		    op == NEURON_ISA_POST_INC ? old + val : old - val;
	return 0;
}

/**
 * emu_sem_post() - change a semaphore
 * @w: window
 * @i: semaphore
 * @op: NEURON_ISA_POST_SET, _INC or _DEC
 * @val: new value, or amount of the change
 * @by: engine that makes the change, or NEURON_ISA_BY_ACCESS
 *
 * Engines that wait for another engine try again in the next round, which comes because
 * that engine made progress.  Only an access has to wake them.
 *
 * Return: 0, -ERANGE the counter would wrap.
 */
int emu_sem_post(struct emu_window *w, u32 i, u32 op, u32 val, u32 by)
{
	struct emu_notify *nt = w->ed->notify[w->core];
	struct neuron_isa_notice change = { .kind = 0 };
	int err;

	spin_lock(&w->lock);
	err = emu_sem_change(w, i, op, val);
	if (!err) {
		if (by == NEURON_ISA_BY_ACCESS)
			emu_window_signal(w);
		emu_trace_sem_prepare(nt, i, w->sem[i], by, &change);
	}
	spin_unlock(&w->lock);
	emu_trace_sem_post(nt, &change);
	return err;
}

/**
 * emu_window_reg_read() - read a register of a core window
 * @w: window
 * @off: offset, a multiple of 4
 * @val: the result
 *
 * Return: 0, -EACCES no such register.
 */
int emu_window_reg_read(struct emu_window *w, u64 off, u32 *val)
{
	u32 i;

	if (emu_reg_in(off, NEURON_ISA_EVENT_OFF(0), w->ed->lim.nr_events, &i)) {
		spin_lock(&w->lock);
		*val = test_bit(i, w->event);
		spin_unlock(&w->lock);
		return 0;
	}
	if (emu_reg_in(off, NEURON_ISA_SEM_READ_OFF(0), w->ed->lim.nr_semaphores, &i)) {
		spin_lock(&w->lock);
		*val = w->sem[i];
		spin_unlock(&w->lock);
		return 0;
	}
	return -EACCES;
}

/**
 * emu_window_reg_write() - write a register of a core window
 * @w: window
 * @off: offset, a multiple of 4
 * @val: value
 *
 * Return: 0, -EACCES no such register, -ERANGE a semaphore would wrap.
 */
int emu_window_reg_write(struct emu_window *w, u64 off, u32 val)
{
	/* behind the block to read: set, increment, decrement */
	const u32 base = NEURON_ISA_SEM_READ_OFF(0) + w->ed->geo.sem_block;
	u32 i, op;

	if (emu_reg_in(off, NEURON_ISA_EVENT_OFF(0), w->ed->lim.nr_events, &i)) {
		spin_lock(&w->lock);
		__assign_bit(i, w->event, val & 1);
		emu_window_signal(w);
		spin_unlock(&w->lock);
		return 0;
	}
	for (op = NEURON_ISA_POST_SET; op <= NEURON_ISA_POST_DEC; op++)
		if (emu_reg_in(off, base + op * w->ed->geo.sem_block, w->ed->lim.nr_semaphores,
			       &i))
			return emu_sem_post(w, i, op, val, NEURON_ISA_BY_ACCESS);
	return -EACCES;
}

/* The engine whose FIFO contains a range of a core window; -EACCES if no FIFO does. */
static int emu_fifo_engine(u64 off, u64 len)
{
	u32 e;

	if (off < NEURON_ISA_FIFO_OFF(0) || off >= NEURON_ISA_FIFO_OFF(NEURON_ISA_NR_ENGINES))
		return -EACCES;
	e = (u32)(off - NEURON_ISA_FIFO_OFF(0)) / NEURON_ISA_FIFO_SIZE;
	if (len > NEURON_ISA_FIFO_OFF(e + 1) - off)
		return -EACCES;
	return (int)e;
}

/**
 * emu_window_ordered() - do writes to a place have an order of their own?
 * @off: offset in a core window
 *
 * Return: true if it is in a FIFO.
 */
bool emu_window_ordered(u64 off)
{
	return emu_fifo_engine(off, 1) >= 0;
}

/* At the first write.  Caller holds w->append.  Return: 0, -ENOMEM. */
static int emu_fifo_make(struct emu_window *w, u32 e)
{
	struct emu_engine *engine = emu_engine_new(w, e);

	if (!engine)
		return -ENOMEM;
	w->fifo[e].buf = kvmalloc(NEURON_ISA_FIFO_SIZE,
				  GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!w->fifo[e].buf) {
		emu_engine_free(engine);
		return -ENOMEM;
	}
	/* pairs with the acquire in emu_core_turn() */
	smp_store_release(&w->fifo[e].engine, engine);
	return 0;
}

/*
 * Append instructions: @len bytes at @src_off of the pin, a multiple of
 * NEURON_ISA_INST_SIZE, as many as there is room for.  Without room, the engine calls
 * emu_dma_kick() as soon as there is some.
 * Return: bytes taken; -EAGAIN no room, -ENOMEM, -EACCES source is not memory.
 */
static int emu_fifo_write(struct emu_window *w, u32 e, const struct neuron_pin *src,
			  u64 src_off, u32 len)
{
	struct emu_fifo *fifo = &w->fifo[e];
	u32 room, tail, part, pos;
	int err = 0;

	mutex_lock(&w->append);
	if (!fifo->buf)
		err = emu_fifo_make(w, e);
	if (err)
		goto out;
	spin_lock(&w->lock);
	tail = fifo->tail;
	room = NEURON_ISA_FIFO_SIZE - (tail - fifo->head);
	fifo->stalled |= !room;
	spin_unlock(&w->lock);
	if (!room) {
		err = -EAGAIN;
		goto out;
	}
	/* The engine does not look beyond the tail, and room does not shrink. */
	len = min(len, room);
	pos = tail % NEURON_ISA_FIFO_SIZE;
	part = min_t(u32, len, NEURON_ISA_FIFO_SIZE - pos);
	err = emu_mem_read(w->ed, src, src_off, fifo->buf + pos, part);
	if (!err && part < len)
		err = emu_mem_read(w->ed, src, src_off + part, fifo->buf, len - part);
	if (err)
		goto out;
	spin_lock(&w->lock);
	fifo->tail = tail + len;
	emu_window_wake(w);
	spin_unlock(&w->lock);
	err = len;
out:
	mutex_unlock(&w->append);
	return err;
}

/**
 * emu_fifo_peek() - the next instruction of an engine
 * @w: window
 * @e: engine
 * @inst: filled in
 *
 * Return: false if there is none.
 */
bool emu_fifo_peek(struct emu_window *w, u32 e, struct neuron_isa_inst *inst)
{
	struct emu_fifo *fifo = &w->fifo[e];
	u32 head;
	bool some;

	spin_lock(&w->lock);
	head = fifo->head;
	some = head != fifo->tail;
	spin_unlock(&w->lock);
	/* An instruction is never split: only whole ones are put in, and the size is a multiple. */
	if (some)
		memcpy(inst, fifo->buf + head % NEURON_ISA_FIFO_SIZE, sizeof(*inst));
	return some;
}

/**
 * emu_fifo_take() - make room in a FIFO
 * @w: window
 * @e: engine
 * @n: bytes that its engine has consumed
 * @most: DMA queues that wait for room are woken when no more bytes than that are left
 *
 * Return: true if the caller has to wake DMA queues with emu_dma_kick().
 */
bool emu_fifo_take(struct emu_window *w, u32 e, u32 n, u32 most)
{
	struct emu_fifo *fifo = &w->fifo[e];
	bool kick;

	spin_lock(&w->lock);
	fifo->head += n;
	kick = fifo->stalled && fifo->tail - fifo->head <= most;
	if (kick)
		fifo->stalled = false;
	spin_unlock(&w->lock);
	return kick;
}

/*
 * Sets *@reg if the access is to a register, not to memory.  Register accesses are 4
 * bytes at a multiple of 4.
 */
static int emu_check_window(struct emu_device *ed, const struct neuron_pin *pin, u64 off,
			    u32 len, bool *reg)
{
	off += pin->off;
	*reg = pin->kind == NEURON_TARGET_CORE && !emu_sbuf_has(ed, off, len);
	if (!*reg)
		return 0;
	if (off < NEURON_ISA_EVENT_OFF(0) || off >= NEURON_ISA_FIFO_OFF(0))
		return -EACCES;
	return len == 4 && off % 4 == 0 ? 0 : -EINVAL;
}

/* emu_window_copy() with the windows locked, if one is involved. */
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
		int e = emu_fifo_engine(woff, len);

		if (e >= 0) {
			if (from_reg || len % NEURON_ISA_INST_SIZE)
				return -EINVAL;
			return emu_fifo_write(ed->window[dst->index], e, src, src_off, len);
		}
	}
	err = emu_check_window(ed, dst, dst_off, len, &to_reg);
	if (err)
		return err;
	if (!from_reg && !to_reg)
		return emu_mem_copy(ed, dst, dst_off, src, src_off, len) ?: len;

	if (from_reg) {
		err = emu_window_reg_read(ed->window[src->index], src->off + src_off, &val);
		word = cpu_to_le32(val);
	} else {
		err = emu_mem_read(ed, src, src_off, &word, sizeof(word));
	}
	if (err)
		return err;
	if (to_reg)
		err = emu_window_reg_write(ed->window[dst->index], woff, le32_to_cpu(word));
	else
		err = emu_mem_write(ed, dst, dst_off, &word, sizeof(word));
	return err ?: len;
}

/**
 * emu_window_copy() - copy between pinned ranges, any of which may be in a core window
 * @ed: device
 * @space: for which both are pinned
 * @dst: destination
 * @dst_off: offset from the start of that pin
 * @src: source
 * @src_off: offset from the start of that pin
 * @len: bytes, all inside both
 *
 * Return: bytes copied, fewer than asked for only into a FIFO; -EAGAIN the FIFO
 * is full; -EACCES no such register or FIFO, or no longer the owner's; -EINVAL, -ERANGE a
 * semaphore would wrap, -ENOMEM.
 */
int emu_window_copy(struct emu_device *ed, struct neuron_space *space,
		    const struct neuron_pin *dst, u64 dst_off,
		    const struct neuron_pin *src, u64 src_off, u32 len)
{
	int ret;

	if (dst->kind != NEURON_TARGET_CORE && src->kind != NEURON_TARGET_CORE)
		return emu_copy(ed, dst, dst_off, src, src_off, len);
	down_read(&ed->window_lock);
	ret = emu_pin_check(ed, space, src, src_off, len, false) ?:
	      emu_pin_check(ed, space, dst, dst_off, len, true) ?:
	      emu_copy(ed, dst, dst_off, src, src_off, len);
	up_read(&ed->window_lock);
	return ret;
}

/**
 * emu_window_read() - read four bytes of a window through the CPU
 * @w: window
 * @off: offset, a multiple of 4
 * @val: the result
 *
 * The CPU sees a window as DMA does, except for the FIFOs.
 *
 * Return: 0, -EINVAL no such register.
 */
int emu_window_read(struct emu_window *w, u32 off, u32 *val)
{
	const u8 *sbuf;
	int err = 0;

	down_read(&w->ed->window_lock);
	if (emu_sbuf_has(w->ed, off, 4)) {
		sbuf = emu_sbuf_get(w->ed, w->core, false);
		*val = sbuf ? emu_get32(sbuf + off) : 0;
	} else {
		err = emu_window_reg_read(w, off, val);
	}
	up_read(&w->ed->window_lock);
	return err ? -EINVAL : 0;
}

/**
 * emu_window_write() - write four bytes of a window through the CPU
 * @w: window
 * @off: offset, a multiple of 4
 * @val: value
 *
 * Return: 0, -EINVAL no such register or a semaphore would wrap, -ENOMEM.
 */
int emu_window_write(struct emu_window *w, u32 off, u32 val)
{
	u8 *sbuf;
	int err = 0;

	down_read(&w->ed->window_lock);
	if (emu_sbuf_has(w->ed, off, 4)) {
		sbuf = emu_sbuf_get(w->ed, w->core, true);
		if (sbuf)
			emu_put32(sbuf + off, val);
		else
			err = -ENOMEM;
	} else if (emu_window_reg_write(w, off, val)) {
		err = -EINVAL;
	}
	up_read(&w->ed->window_lock);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The window of a core: semaphores, events and instruction FIFOs, as registers and
 * as source and destination of DMA.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "emu.h"

/* Run the engines.  Caller holds core->lock. */
void emu_core_wake(struct emu_core *core)
{
	lockdep_assert_held(&core->lock);
	if (!core->resetting && !core->broken)
		queue_work(core->ed->wq, &core->work);
}

/* A semaphore or event changed.  Caller holds core->lock. */
static void emu_core_signal(struct emu_core *core)
{
	if (core->waiting)
		emu_core_wake(core);
}

/* Is @off one of @nr registers that start at @first? */
static bool emu_reg_in(u64 off, u32 first, u32 nr, u32 *index)
{
	if (off < first || off - first >= 4 * nr || off % 4)
		return false;
	*index = (u32)(off - first) / 4;
	return true;
}

/* Caller holds core->lock.  Return: 0, -ERANGE the counter would wrap. */
int emu_sem_post(struct emu_core *core, u32 i, u32 op, u32 val)
{
	u32 old = core->sem[i];

	switch (op) {
	case NEURON_ISA_POST_SET:
		core->sem[i] = val;
		return 0;
	case NEURON_ISA_POST_INC:
		if (val > U32_MAX - old)
			return -ERANGE;
		core->sem[i] = old + val;
		return 0;
	default: /* NEURON_ISA_POST_DEC */
		if (val > old)
			return -ERANGE;
		core->sem[i] = old - val;
		return 0;
	}
}

/**
 * emu_core_reg_read() - read a register of a core window
 * @core: core
 * @off: offset, a multiple of 4
 * @val: the result
 *
 * Return: 0, -EACCES no such register.
 */
int emu_core_reg_read(struct emu_core *core, u64 off, u32 *val)
{
	u32 i;

	if (emu_reg_in(off, NEURON_ISA_EVENT_OFF(0), core->lim.nr_events, &i)) {
		spin_lock(&core->lock);
		*val = test_bit(i, core->event);
		spin_unlock(&core->lock);
		return 0;
	}
	if (emu_reg_in(off, NEURON_ISA_SEM_READ_OFF(0), core->lim.nr_semaphores, &i)) {
		spin_lock(&core->lock);
		*val = core->sem[i];
		spin_unlock(&core->lock);
		return 0;
	}
	return -EACCES;
}

/**
 * emu_core_reg_write() - write a register of a core window
 * @core: core
 * @off: offset, a multiple of 4
 * @val: value
 *
 * Return: 0, -EACCES no such register, -ERANGE a semaphore would wrap.
 */
int emu_core_reg_write(struct emu_core *core, u64 off, u32 val)
{
	/* behind the block to read: set, increment, decrement */
	const u32 base = NEURON_ISA_SEM_READ_OFF(0) + core->ed->geo.sem_block;
	struct neuron_isa_notice change = { .kind = 0 };
	u32 i, op;
	int err;

	if (emu_reg_in(off, NEURON_ISA_EVENT_OFF(0), core->lim.nr_events, &i)) {
		spin_lock(&core->lock);
		__assign_bit(i, core->event, val & 1);
		emu_core_signal(core);
		spin_unlock(&core->lock);
		return 0;
	}
	for (op = NEURON_ISA_POST_SET; op <= NEURON_ISA_POST_DEC; op++) {
		if (!emu_reg_in(off, base + op * core->ed->geo.sem_block,
				core->lim.nr_semaphores, &i))
			continue;
		spin_lock(&core->lock);
		err = emu_sem_post(core, i, op, val);
		if (!err) {
			emu_core_signal(core);
			emu_trace_sem_prepare(core, i, NEURON_ISA_BY_ACCESS, &change);
		}
		spin_unlock(&core->lock);
		emu_trace_sem_post(core, &change);
		return err;
	}
	return -EACCES;
}

/**
 * emu_core_fifo_engine() - whose instruction FIFO is this?
 * @off: offset in a core window
 * @len: bytes
 *
 * Return: enum neuron_isa_engine, or -EACCES if the range is not in one FIFO.
 */
int emu_core_fifo_engine(u64 off, u64 len)
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
 * emu_core_fifo_write() - append instructions
 * @core: core; emu_device.window is held
 * @e: engine
 * @src: where they are
 * @src_off: offset from the start of that pin
 * @len: bytes, a multiple of NEURON_ISA_INST_SIZE
 *
 * Takes as much as there is room for.  When there is none, emu_dma_kick() will
 * be called as soon as that changes.
 *
 * Return: bytes taken; -EAGAIN no room, -ENOMEM, -EACCES source is not memory.
 */
int emu_core_fifo_write(struct emu_core *core, u32 e, const struct neuron_pin *src,
			u64 src_off, u32 len)
{
	struct emu_fifo *fifo = &core->engine[e].fifo;
	u32 room, tail, part, pos;
	int err = 0;

	mutex_lock(&core->append);
	if (!fifo->buf) {
		fifo->buf = kvmalloc(NEURON_ISA_FIFO_SIZE,
				     GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
		if (!fifo->buf) {
			err = -ENOMEM;
			goto out;
		}
	}
	spin_lock(&core->lock);
	tail = fifo->tail;
	room = NEURON_ISA_FIFO_SIZE - (tail - fifo->head);
	fifo->stalled |= !room;
	spin_unlock(&core->lock);
	if (!room) {
		err = -EAGAIN;
		goto out;
	}
	/* The engine does not look beyond the tail, and room does not shrink. */
	len = min(len, room);
	pos = tail % NEURON_ISA_FIFO_SIZE;
	part = min_t(u32, len, NEURON_ISA_FIFO_SIZE - pos);
	err = emu_mem_read(core->ed, src, src_off, fifo->buf + pos, part);
	if (!err && part < len)
		err = emu_mem_read(core->ed, src, src_off + part, fifo->buf, len - part);
	if (err)
		goto out;
	spin_lock(&core->lock);
	fifo->tail = tail + len;
	emu_core_wake(core);
	spin_unlock(&core->lock);
	err = len;
out:
	mutex_unlock(&core->append);
	return err;
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
int emu_copy_locked(struct emu_device *ed, const struct neuron_pin *dst, u64 dst_off,
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

/* Core windows through registers: as DMA sees them, but for the FIFOs. */
int emu_window_read(struct emu_core *core, u32 off, u32 *val)
{
	const u8 *sbuf;
	int err = 0;

	down_read(&core->ed->window);
	if (emu_core_is_sbuf(core->ed, off, 4)) {
		sbuf = emu_core_sbuf(core, false);
		*val = sbuf ? emu_get32(sbuf + off) : 0;
	} else {
		err = emu_core_reg_read(core, off, val);
	}
	up_read(&core->ed->window);
	return err ? -EINVAL : 0;
}

int emu_window_write(struct emu_core *core, u32 off, u32 val)
{
	u8 *sbuf;
	int err = 0;

	down_read(&core->ed->window);
	if (emu_core_is_sbuf(core->ed, off, 4)) {
		sbuf = emu_core_sbuf(core, true);
		if (sbuf)
			emu_put32(sbuf + off, val);
		else
			err = -ENOMEM;
	} else if (emu_core_reg_write(core, off, val)) {
		err = -EINVAL;
	}
	up_read(&core->ed->window);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers of DMA engines, doorbells among them.
 */
#include <linux/kernel.h>

#include "dma.h"

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
		emu_dma_check(dma, i);
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
		emu_dma_check(dma, i);
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

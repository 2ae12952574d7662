// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notification queues of a core: registers and entries.
 */
#include <linux/string.h>

#include "mem.h"
#include "notify.h"

/**
 * emu_notify_init() - the notification queues of a core
 * @nt: zeroed
 * @ed: device
 * @core: number of the core
 */
void emu_notify_init(struct emu_notify *nt, struct emu_device *ed, u32 core)
{
	nt->ed = ed;
	nt->core = core;
	mutex_init(&nt->lock);
}

/**
 * emu_notify_reset() - switch all queues off
 * @nt: queues of a core
 */
void emu_notify_reset(struct emu_notify *nt)
{
	mutex_lock(&nt->lock);
	memset(nt->nq, 0, sizeof(nt->nq));
	mutex_unlock(&nt->lock);
}

static struct emu_nq *emu_nq_find(struct emu_notify *nt, u32 off, u32 *reg)
{
	u32 i;

	if (!neuron_nq_decode(off, &i, reg) ||
	    i / NEURON_HW_NQ_ENGINES >= nt->ed->geo.nr_nq_types ||
	    i % NEURON_HW_NQ_ENGINES >= nt->ed->geo.nr_nq_engines)
		return NULL;
	return &nt->nq[i];
}

/**
 * emu_nq_reg_read() - read a register of the notification queues
 * @nt: queues of a core
 * @off: offset, a multiple of 4
 * @val: the result
 *
 * Return: 0, -EINVAL no such register.
 */
int emu_nq_reg_read(struct emu_notify *nt, u32 off, u32 *val)
{
	u32 reg;
	struct emu_nq *nq = emu_nq_find(nt, off, &reg);
	int err = 0;

	if (!nq)
		return -EINVAL;
	mutex_lock(&nt->lock);
	switch (reg) {
	case NEURON_NQ_BASE_LO(0):
		*val = lower_32_bits(nq->new_base);
		break;
	case NEURON_NQ_BASE_HI(0):
		*val = upper_32_bits(nq->new_base);
		break;
	case NEURON_NQ_SIZE(0):
		*val = nq->size;
		break;
	case NEURON_NQ_HEAD(0):
		*val = nq->head;
		break;
	default:
		err = -EINVAL;
	}
	mutex_unlock(&nt->lock);
	return err;
}

/**
 * emu_nq_reg_write() - write a register of the notification queues
 * @nt: queues of a core
 * @off: offset, a multiple of 4
 * @val: value
 *
 * A new address takes effect with the next write of the size, which restarts the ring.
 * When a write of size 0 returns, the old ring is not touched any more.
 *
 * Return: 0, -EINVAL no such register, or address or size not a multiple of 16.
 */
int emu_nq_reg_write(struct emu_notify *nt, u32 off, u32 val)
{
	u32 reg;
	struct emu_nq *nq = emu_nq_find(nt, off, &reg);
	int err = 0;

	if (!nq)
		return -EINVAL;
	mutex_lock(&nt->lock);
	switch (reg) {
	case NEURON_NQ_BASE_LO(0):
		if (val % sizeof(struct neuron_isa_notice))
			err = -EINVAL;
		else
			nq->new_base = (nq->new_base & ~(u64)U32_MAX) | val;
		break;
	case NEURON_NQ_BASE_HI(0):
		nq->new_base = (nq->new_base & U32_MAX) | (u64)val << 32;
		break;
	case NEURON_NQ_SIZE(0):
		if (val % sizeof(struct neuron_isa_notice)) {
			err = -EINVAL;
			break;
		}
		nq->base = nq->new_base;
		nq->size = val;
		nq->head = 0;
		nq->phase = 1;
		nq->lost = 0;
		break;
	default:
		err = -EINVAL;
	}
	mutex_unlock(&nt->lock);
	return err;
}

/* Write an entry where the next one goes.  Caller holds nt->lock. */
static bool emu_nq_write(struct emu_notify *nt, struct emu_nq *q,
			 const struct neuron_isa_notice *n)
{
	struct neuron_isa_notice entry = *n;
	struct neuron_pin pin;
	bool posted;

	entry.phase = (entry.phase & ~1) | q->phase;
	if (neuron_device_pin(nt->ed->nd, q->base + q->head, sizeof(entry), true, &pin)) {
		q->size = 0;
		return false;
	}
	posted = !emu_mem_post(nt->ed, &pin, &entry);
	neuron_pin_put(&pin);
	return posted;
}

/**
 * emu_nq_post() - append to a notification queue
 * @nt: queues of a core
 * @nq: queue number, type * 16 + engine
 * @n: the entry; bit 0 of the phase is filled in here
 *
 * The entry is lost if the queue is off, if its memory is gone, or by an injected fault.
 */
void emu_nq_post(struct emu_notify *nt, u32 nq, const struct neuron_isa_notice *n)
{
	struct emu_nq *q = &nt->nq[nq];
	bool posted = false;

	mutex_lock(&nt->lock);
	if (q->size && !emu_fault(&nt->ed->faults, EMU_FAULT_LOST_NOTICE))
		posted = emu_nq_write(nt, q, n);
	if (posted) {
		q->head += sizeof(*n);
		if (q->head == q->size) {
			q->head = 0;
			q->phase ^= 1;
		}
	}
	mutex_unlock(&nt->lock);
	if (posted && !nt->ed->parent)
		neuron_nq_posted(nt->ed->nd, nt->core, nq);
}

/**
 * emu_nq_fill() - append to a queue that does not wrap
 * @nt: queues of a core
 * @nq: queue number
 * @n: entries, posted together or not at all
 * @count: how many
 *
 * Entries that do not fit are counted in the last entry of the queue, which is kept for
 * that.  An entry for which there was no host memory counts, too, and so do all after it.
 */
void emu_nq_fill(struct emu_notify *nt, u32 nq, const struct neuron_isa_notice *n, u32 count)
{
	struct emu_nq *q = &nt->nq[nq];
	struct neuron_isa_notice lost = { .kind = NEURON_ISA_NOTICE_LOST };
	bool posted = false;
	u32 head, i;

	mutex_lock(&nt->lock);
	if (!q->size)
		goto out;
	if (!q->lost && q->size - q->head > count * sizeof(*n)) {
		head = q->head;
		for (i = 0; i < count && emu_nq_write(nt, q, &n[i]); i++)
			q->head += sizeof(*n);
		posted = i == count;
		if (posted || !q->size)
			goto out;
		/* Writing allocates device memory, and that failed. */
		q->head = head;
	}
	/* No entry follows the first one that was lost: a trace has no holes. */
	q->lost += count;
	lost.id = cpu_to_le32(lower_32_bits(q->lost));
	lost.data = cpu_to_le64(q->lost);
	posted = emu_nq_write(nt, q, &lost);
out:
	mutex_unlock(&nt->lock);
	if (posted && !nt->ed->parent)
		neuron_nq_posted(nt->ed->nd, nt->core, nq);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notification queues of a core: registers and entries.
 */
#include <linux/slab.h>
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
 * emu_notify_destroy() - free the queues
 * @nt: queues of a core; nobody writes to them any more
 */
void emu_notify_destroy(struct emu_notify *nt)
{
	kfree(nt->nq);
	nt->nq = NULL;
}

/**
 * emu_notify_reset() - switch all queues off
 * @nt: queues of a core
 */
void emu_notify_reset(struct emu_notify *nt)
{
	mutex_lock(&nt->lock);
	if (nt->nq)
		memset(nt->nq, 0, NEURON_HW_NR_NQ * sizeof(*nt->nq));
	mutex_unlock(&nt->lock);
}

/* The queue and its register that are at @off. */
static bool emu_nq_find(const struct emu_notify *nt, u32 off, u32 *nq, u32 *reg)
{
	return neuron_nq_decode(off, nq, reg) &&
	       *nq / NEURON_HW_NQ_ENGINES < nt->ed->geo.nr_nq_types &&
	       *nq % NEURON_HW_NQ_ENGINES < nt->ed->geo.nr_nq_engines;
}

/* Most cores of most devices never have a queue.  Caller holds nt->lock. */
static struct emu_nq *emu_nq_make(struct emu_notify *nt)
{
	if (!nt->nq)
		/* emu_trace_on() looks without the lock */
		smp_store_release(&nt->nq, kcalloc(NEURON_HW_NR_NQ, sizeof(*nt->nq), GFP_KERNEL));
	return nt->nq;
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
	static const struct emu_nq unused;
	const struct emu_nq *nq;
	u32 i, reg;
	int err = 0;

	if (!emu_nq_find(nt, off, &i, &reg))
		return -EINVAL;
	mutex_lock(&nt->lock);
	nq = nt->nq ? &nt->nq[i] : &unused;
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
 * Return: 0, -EINVAL no such register, or address or size not a multiple of 16,
 * -ENOMEM the first queue of this core, and no memory for all of them.
 */
int emu_nq_reg_write(struct emu_notify *nt, u32 off, u32 val)
{
	struct emu_nq *nq;
	u32 i, reg;
	int err = 0;

	if (!emu_nq_find(nt, off, &i, &reg) ||
	    (reg != NEURON_NQ_BASE_LO(0) && reg != NEURON_NQ_BASE_HI(0) &&
	     reg != NEURON_NQ_SIZE(0)))
		return -EINVAL;
	if (reg != NEURON_NQ_BASE_HI(0) && val % sizeof(struct neuron_isa_notice))
		return -EINVAL;
	mutex_lock(&nt->lock);
	/* All registers of queues that nobody has set up are zero. */
	nq = val ? emu_nq_make(nt) : nt->nq;
	if (!nq) {
		err = val ? -ENOMEM : 0;
		goto out;
	}
	nq += i;
	switch (reg) {
	case NEURON_NQ_BASE_LO(0):
		nq->new_base = (nq->new_base & ~(u64)U32_MAX) | val;
		break;
	case NEURON_NQ_BASE_HI(0):
		nq->new_base = (nq->new_base & U32_MAX) | (u64)val << 32;
		break;
	case NEURON_NQ_SIZE(0):
		nq->base = nq->new_base;
		nq->size = val;
		nq->head = 0;
		nq->phase = 1;
		nq->lost = 0;
		break;
	}
out:
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
	struct emu_nq *q;
	bool posted = false;

	mutex_lock(&nt->lock);
	q = nt->nq ? &nt->nq[nq] : NULL;
	if (q && q->size && !emu_fault(&nt->ed->faults, EMU_FAULT_LOST_NOTICE))
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
	struct emu_nq *q;
	struct neuron_isa_notice lost = { .kind = NEURON_ISA_NOTICE_LOST };
	bool posted = false;
	u32 head, i;

	mutex_lock(&nt->lock);
	q = nt->nq ? &nt->nq[nq] : NULL;
	if (!q || !q->size)
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

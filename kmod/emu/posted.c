// SPDX-License-Identifier: GPL-2.0-only
/*
 * Register writes to a card are posted: who writes goes on, and the card has the value later.
 * They keep their order, and a read, which waits for its answer, comes after them.  So of
 * several writes it is the last that may be late; this holds one back until the next
 * operation of the driver, or for a tick.
 */
#include <linux/slab.h>

#include "emu.h"
#include "notify.h"
#include "posted.h"
#include "window.h"

static int emu_core_reg_write(struct emu_device *ed, enum neuron_block block, u32 index, u32 off,
			      u32 val)
{
	switch (block) {
	case NEURON_BLOCK_CORE:
		return emu_window_write(ed->window[index], off, val);
	case NEURON_BLOCK_CORE_NQ:
		return emu_nq_reg_write(ed->notify[index], off, val);
	default:
		return -EINVAL;
	}
}

/* What is refused is lost: a card has nobody to tell.  Caller holds the lock. */
static void emu_posted_apply(struct emu_posted *p)
{
	if (p->pending)
		emu_core_reg_write(p->ed, p->block, p->index, p->off, p->val);
	p->pending = false;
}

static void emu_posted_work(struct work_struct *work)
{
	emu_posted_land(container_of(work, struct emu_posted, work.work)->ed);
}

/**
 * emu_posted_new() - make a device whose register writes take effect late
 * @ed: device, with its workqueue
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM.
 */
int emu_posted_new(struct emu_device *ed)
{
	struct emu_posted *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	p->ed = ed;
	mutex_init(&p->lock);
	INIT_DELAYED_WORK(&p->work, emu_posted_work);
	p->delay = 1;
	ed->posted = p;
	return 0;
}

/**
 * emu_posted_free() - drop what is still on its way
 * @ed: device, which gets no more writes; one of any kind
 *
 * Context: may sleep.
 */
void emu_posted_free(struct emu_device *ed)
{
	if (!ed->posted)
		return;
	cancel_delayed_work_sync(&ed->posted->work);
	kfree(ed->posted);
	ed->posted = NULL;
}

/**
 * emu_posted_write() - write a register of a core, at once or later
 * @ed: device of any kind
 * @block: block of registers
 * @index: core, which exists
 * @off: offset, a multiple of 4
 * @val: value
 *
 * If later, the write before this one has taken effect when it returns.
 *
 * Context: may sleep.
 * Return: 0, -EINVAL no registers of a core; if at once, an error of the register.
 */
int emu_posted_write(struct emu_device *ed, enum neuron_block block, u32 index, u32 off, u32 val)
{
	struct emu_posted *p = ed->posted;

	if (!p || (block != NEURON_BLOCK_CORE && block != NEURON_BLOCK_CORE_NQ))
		return emu_core_reg_write(ed, block, index, off, val);
	mutex_lock(&p->lock);
	emu_posted_apply(p);
	p->block = block;
	p->index = index;
	p->off = off;
	p->val = val;
	p->pending = true;
	mutex_unlock(&p->lock);
	queue_delayed_work(ed->wq, &p->work, p->delay);
	return 0;
}

/**
 * emu_posted_land() - let the writes of before take effect
 * @ed: device of any kind
 *
 * Context: may sleep.
 */
void emu_posted_land(struct emu_device *ed)
{
	if (!ed->posted)
		return;
	mutex_lock(&ed->posted->lock);
	emu_posted_apply(ed->posted);
	mutex_unlock(&ed->posted->lock);
}

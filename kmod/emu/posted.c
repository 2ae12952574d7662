// SPDX-License-Identifier: GPL-2.0-only
/*
 * Register writes to a card are posted: who writes goes on, and the card has the value later.
 * They keep their order, and a read, which waits for its answer, comes after them.  So of
 * several writes it is the last that may be late; this holds one back until the next
 * operation of the driver, or for a tick.
 */
#include <linux/slab.h>

#include "core.h"
#include "emu.h"
#include "notify.h"
#include "posted.h"
#include "window.h"

/* What is refused is lost: a card has nobody to tell.  Caller holds the lock. */
static void emu_posted_apply(struct emu_device *ed)
{
	struct emu_posted *p = ed->posted;

	if (!p->pending)
		return;
	p->pending = false;
	if (p->block == NEURON_BLOCK_CORE)
		emu_window_write(ed->window[p->index], p->off, p->val);
	else
		emu_nq_reg_write(ed->notify[p->index], p->off, p->val);
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
 * emu_posted_write() - write a register, later
 * @ed: device
 * @block: NEURON_BLOCK_CORE or NEURON_BLOCK_CORE_NQ
 * @index: core, which exists
 * @off: offset, a multiple of 4
 * @val: value
 *
 * The write before this one has taken effect when it returns.
 *
 * Context: may sleep.
 */
void emu_posted_write(struct emu_device *ed, enum neuron_block block, u32 index, u32 off, u32 val)
{
	struct emu_posted *p = ed->posted;

	mutex_lock(&p->lock);
	emu_posted_apply(ed);
	p->block = block;
	p->index = index;
	p->off = off;
	p->val = val;
	p->pending = true;
	mutex_unlock(&p->lock);
	queue_delayed_work(ed->wq, &p->work, p->delay);
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
	emu_posted_apply(ed);
	mutex_unlock(&ed->posted->lock);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * NeuronCores: how they come, go and are reset.
 *
 * One work item runs the engines of a core in turns.  It sleeps when all of
 * them are blocked or out of instructions, and is queued by whatever can change
 * that: bytes in a FIFO, or a write to a semaphore or event.
 */
#include <linux/delay.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "emu.h"

/* Rounds of a core before others get a turn. */
#define EMU_CORE_ROUNDS		64

static void emu_core_work(struct work_struct *work);

/**
 * emu_core_init() - make the cores of a device
 * @ed: device; geometry and workqueue are there
 *
 * Return: 0, -ENOMEM; emu_core_destroy() is due in both cases.
 */
int emu_core_init(struct emu_device *ed)
{
	struct emu_core *core;
	u32 i;

	init_rwsem(&ed->window);
	for (i = 0; i < ed->geo.nr_cores; i++) {
		core = kzalloc(sizeof(*core), GFP_KERNEL);
		if (!core)
			return -ENOMEM;
		core->ed = ed;
		core->index = i;
		mutex_init(&core->reset);
		mutex_init(&core->append);
		mutex_init(&core->nq_lock);
		spin_lock_init(&core->lock);
		INIT_WORK(&core->work, emu_core_work);
		core->lim.sbuf_size = ed->geo.sbuf_size;
		core->lim.nr_semaphores = ed->geo.nr_semaphores;
		core->lim.nr_events = ed->geo.nr_events;
		core->lim.engines_per_core = ed->geo.engines_per_core;
		core->lim.nr_queues = NEURON_HW_QUEUES_PER_ENGINE;
		ed->core[i] = core;
	}
	return 0;
}

/**
 * emu_core_destroy() - remove the cores of a device
 * @ed: device; neuron_device_del() has stopped all DMA queues
 */
void emu_core_destroy(struct emu_device *ed)
{
	u32 i;

	for (i = 0; i < ed->geo.nr_cores; i++) {
		if (!ed->core[i])
			continue;
		emu_core_reset(ed->core[i]);
		kfree(ed->core[i]);
		ed->core[i] = NULL;
	}
}

/**
 * emu_core_bind() - the engines act for @space from now on
 * @core: core, reset
 * @space: NULL for nobody
 */
void emu_core_bind(struct emu_core *core, struct neuron_space *space)
{
	spin_lock(&core->lock);
	core->space = space;
	spin_unlock(&core->lock);
}

/**
 * emu_core_reset() - bring a core to its initial state
 * @core: core
 *
 * Returns when the engines have stopped and will not write to notification
 * queues any more.
 *
 * Return: 0; -EIO a fault that was asked for: the engines do not start before
 * the next reset.
 */
int emu_core_reset(struct emu_core *core)
{
	u8 *fifo[NEURON_ISA_NR_ENGINES], *sbuf;
	bool broken;
	u32 i;

	mutex_lock(&core->reset);
	if (emu_fault(core->ed, EMU_FAULT_RESET_SLOW))
		msleep(READ_ONCE(core->ed->reset_slow_msec));
	broken = emu_fault(core->ed, EMU_FAULT_RESET);
	spin_lock(&core->lock);
	core->resetting = true;
	spin_unlock(&core->lock);
	cancel_work_sync(&core->work);

	mutex_lock(&core->nq_lock);
	memset(core->nq, 0, sizeof(core->nq));
	mutex_unlock(&core->nq_lock);

	down_write(&core->ed->window);
	spin_lock(&core->lock);
	for (i = 0; i < NEURON_ISA_NR_ENGINES; i++) {
		fifo[i] = core->engine[i].fifo.buf;
		memset(&core->engine[i], 0, sizeof(core->engine[i]));
	}
	sbuf = core->sbuf;
	core->sbuf = NULL;
	memset(core->sem, 0, sizeof(core->sem));
	bitmap_zero(core->event, EMU_MAX_EVENTS);
	core->waiting = 0;
	core->resetting = false;
	core->broken = broken;
	spin_unlock(&core->lock);
	up_write(&core->ed->window);

	for (i = 0; i < NEURON_ISA_NR_ENGINES; i++)
		kvfree(fifo[i]);
	emu_sbuf_free(core, sbuf);
	/* the FIFOs have room now */
	emu_dma_kick(core->ed);
	mutex_unlock(&core->reset);
	return broken ? -EIO : 0;
}

static void emu_core_serve(struct emu_core *core)
{
	u32 round, e;

	for (round = 0; round < EMU_CORE_ROUNDS; round++) {
		bool progress = false;

		for (e = 0; e < NEURON_ISA_NR_ENGINES; e++)
			progress |= emu_engine_turn(core, e);
		if (!progress)
			return;
		if (READ_ONCE(core->resetting))
			return;
		cond_resched();
	}
	spin_lock(&core->lock);
	emu_core_wake(core);
	spin_unlock(&core->lock);
}

static void emu_core_work(struct work_struct *work)
{
	struct emu_core *core = container_of(work, struct emu_core, work);

	emu_busy_begin(&core->ed->busy);
	emu_core_serve(core);
	emu_busy_end(&core->ed->busy);
}

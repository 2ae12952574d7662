// SPDX-License-Identifier: GPL-2.0-only
/*
 * NeuronCores: creation, removal and reset.
 *
 * One work item runs the engines of a core in turns.  It sleeps when all of
 * them are blocked or out of instructions, and is queued by every event that can change
 * that: bytes in a FIFO, or a write to a semaphore or event.
 */
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "core.h"
#include "dma.h"
#include "mem.h"

/* Rounds of a core before others get a turn. */
#define EMU_CORE_ROUNDS		64
/* Instructions of an engine before others get a turn, and how long they may take. */
#define EMU_ENGINE_TURN		32
#define EMU_ENGINE_TURN_NS	NSEC_PER_MSEC

/* Return: the engine made progress. */
static bool emu_core_turn(struct emu_core *core, u32 e, u32 nr, u64 ns)
{
	/* pairs with the release in emu_fifo_make() */
	struct emu_engine *engine = smp_load_acquire(&core->window.fifo[e].engine);

	return engine && emu_engine_turn(engine, nr, ns);
}

/* All engines, one after the other.  Return: one of them made progress. */
static bool emu_core_round(struct emu_core *core)
{
	bool progress = false;
	u32 e;

	for (e = 0; e < NEURON_ISA_NR_ENGINES; e++)
		progress |= emu_core_turn(core, e, EMU_ENGINE_TURN, EMU_ENGINE_TURN_NS);
	return progress;
}

/*
 * One engine alone, drawn from those that can go on, for as many instructions as are drawn: how
 * long they take must not change the order.
 */
static bool emu_core_shuffled_round(struct emu_core *core)
{
	u32 first = emu_shuffle_draw(&core->shuffle, NEURON_ISA_NR_ENGINES);
	/* The number of engines is prime: each step leads to all of them. */
	u32 step = 1 + emu_shuffle_draw(&core->shuffle, NEURON_ISA_NR_ENGINES - 1);
	u32 nr = 1 + emu_shuffle_draw(&core->shuffle, EMU_ENGINE_TURN);
	u32 i;

	for (i = 0; i < NEURON_ISA_NR_ENGINES; i++)
		if (emu_core_turn(core, (first + i * step) % NEURON_ISA_NR_ENGINES, nr, U64_MAX))
			return true;
	return false;
}

/* Give the engines turns.  Return: there is more to do. */
static bool emu_core_serve(struct emu_core *core)
{
	u32 round;

	for (round = 0; round < EMU_CORE_ROUNDS; round++) {
		bool progress = core->shuffle.on ? emu_core_shuffled_round(core) :
						       emu_core_round(core);

		if (!progress || READ_ONCE(core->window.resetting))
			return false;
		cond_resched();
	}
	return true;
}

static void emu_core_work(struct work_struct *work)
{
	struct emu_core *core = container_of(work, struct emu_core, window.work);
	struct emu_window *w = &core->window;

	emu_busy_begin(&w->ed->busy);
	if (emu_core_serve(core)) {
		spin_lock(&w->lock);
		emu_window_wake(w);
		spin_unlock(&w->lock);
	} else if (READ_ONCE(w->late)) {
		WRITE_ONCE(w->late, false);
		emu_dma_core_idle(w->ed, w->core);
	}
	emu_busy_end(&w->ed->busy);
}

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

	init_rwsem(&ed->window_lock);
	ed->lim = (struct emu_isa_limits){
		.sbuf_size = ed->geo.sbuf_size,
		.nr_semaphores = ed->geo.nr_semaphores,
		.nr_events = ed->geo.nr_events,
		.engines_per_core = ed->geo.engines_per_core,
		.nr_queues = NEURON_HW_QUEUES_PER_ENGINE,
	};
	for (i = 0; i < ed->geo.nr_cores; i++) {
		core = kzalloc(sizeof(*core), GFP_KERNEL);
		if (!core)
			return -ENOMEM;
		mutex_init(&core->reset);
		emu_window_init(&core->window, ed, i, emu_core_work);
		emu_notify_init(&core->notify, ed, i);
		emu_shuffle_start(&core->shuffle, i);
		ed->window[i] = &core->window;
		ed->notify[i] = &core->notify;
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
		emu_notify_destroy(&ed->core[i]->notify);
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
	spin_lock(&core->window.lock);
	core->window.space = space;
	spin_unlock(&core->window.lock);
}

/**
 * emu_core_reset() - bring a core to its initial state
 * @core: core
 *
 * Returns when the engines have stopped and will not write to notification
 * queues any more.
 *
 * Return: 0; -EIO an injected fault: the engines do not start before the next reset.
 */
int emu_core_reset(struct emu_core *core)
{
	struct emu_window *w = &core->window;
	struct emu_device *ed = w->ed;
	bool broken;

	mutex_lock(&core->reset);
	broken = emu_fault(&ed->faults, EMU_FAULT_RESET);
	spin_lock(&w->lock);
	w->resetting = true;
	spin_unlock(&w->lock);
	cancel_work_sync(&w->work);

	emu_notify_reset(&core->notify);
	down_write(&ed->window_lock);
	emu_shuffle_start(&core->shuffle, w->core);
	/* Where the driver checks, it clears, too: a card may keep it until it goes. */
	if (ed->checks || !ed->added)
		emu_sbuf_free(ed, xchg(&ed->sbuf[w->core], NULL));
	emu_window_reset(w, broken);
	up_write(&ed->window_lock);
	/* the FIFOs have room now */
	emu_dma_kick(ed);
	emu_dma_core_idle(ed, w->core);
	mutex_unlock(&core->reset);
	return broken ? -EIO : 0;
}

/**
 * emu_core_reset_begin() - begin to reset cores and their DMA engines
 * @ed: device
 * @cores: bit by number
 *
 * With the fault reset_slow a core goes on with what it does until the time is over, and may
 * write to one that has been cleared.
 * neuron.ko calls this and emu_core_reset_poll() one after the other.
 *
 * Context: may sleep.
 */
void emu_core_reset_begin(struct emu_device *ed, unsigned long cores)
{
	struct emu_faults *f = &ed->faults;
	struct emu_core *core;
	u32 i;

	for_each_set_bit(i, &cores, ed->geo.nr_cores) {
		core = ed->core[i];
		core->reset_slow = emu_fault(f, EMU_FAULT_RESET_SLOW);
		if (core->reset_slow)
			core->reset_end = ktime_get_ns() +
					  READ_ONCE(f->reset_slow_msec) * 1000000ULL;
		else
			emu_dma_reset(ed, i);
	}
	/* Queues of one may write to another: all have stopped before one is cleared. */
	for_each_set_bit(i, &cores, ed->geo.nr_cores) {
		core = ed->core[i];
		if (!core->reset_slow)
			core->reset_err = emu_core_reset(core);
	}
}

/**
 * emu_core_reset_poll() - has the reset of a core ended?
 * @core: core
 *
 * Context: may sleep.
 * Return: 0; -EINPROGRESS; -EIO as emu_core_reset().
 */
int emu_core_reset_poll(struct emu_core *core)
{
	if (core->reset_slow) {
		if (ktime_get_ns() < core->reset_end)
			return -EINPROGRESS;
		core->reset_slow = false;
		emu_dma_reset(core->window.ed, core->window.core);
		core->reset_err = emu_core_reset(core);
	}
	return core->reset_err;
}

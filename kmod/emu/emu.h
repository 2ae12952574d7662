/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A software device: the structure that its parts share.  Each part has its own structure
 * in its own header; README.md in this folder describes how they work together.
 *
 * Locks, outermost first.  No function of neuron.ko is called with a spinlock held.
 *
 *   emu_posted.lock		mutex: a register write that takes effect late
 *   emu_core.reset		mutex: one reset of a core at a time
 *   emu_dma.run		mutex: the worker of a DMA engine while it serves a
 *				queue, and a caller that stops or programs one
 *   emu_device.window_lock	rwsem: read by DMA and register accesses to core
 *				windows, written when a reset takes their memory away
 *   emu_window.append		mutex: one writer to the instruction FIFOs at a time
 *   emu_notify.lock		mutex: registers and contents of notification queues
 *   emu_dma.lock		spinlock: ring pointers and which queues have work
 *   emu_window.lock		spinlock: semaphores, events, FIFO indices
 *
 * neuron_space_pin(), neuron_device_pin(), neuron_dma_irq() and
 * neuron_nq_posted() are called with emu_dma.run or emu_notify.lock held, or
 * from the worker of a core.  Therefore neuron.ko must not hold a lock that one
 * of them takes when it stops a queue, resets a core or writes a register.
 */
#ifndef EMU_H
#define EMU_H

#include <linux/bitmap.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/workqueue.h>

#include "../base/neuron_hw.h"
#include "busy.h"
#include "completion.h"
#include "exec.h"
#include "faults.h"
#include "hbm.h"

#define EMU_MAX_ENGINES		132	/* DMA engines of the largest device */

struct emu_core;
struct emu_dma;
struct emu_notify;
struct emu_posted;
struct emu_window;
struct platform_device;

/**
 * struct emu_device - a device
 * @nd: the device in neuron.ko; set before anything can run
 * @added: neuron.ko knows it
 * @number: its number in neuron.ko
 * @geo: geometry
 * @lim: limits of what instructions may refer to
 * @simd: how it computes; NULL: with integers
 * @wq: runs the work of its engines and cores
 * @hbm: device memories
 * @window_lock: held for reading while a core window is accessed
 * @sbuf: state buffers of the cores, made at the first write; a missing one reads as
 *	  zero.  It stays while @window_lock is held or its core is at work.
 * @notify: notification queues of the cores
 * @window: windows of the cores
 * @core: cores
 * @alloc: serialises the creation of @dma and @sbuf entries
 * @dma: DMA engines; an entry, once made, stays until the device goes
 * @stalled: DMA engines with queues that wait for room in a FIFO
 * @posted: register writes that take effect late; NULL: they do at once
 * @serial: serial number, which it alone has once it is there
 * @parent: makes DMA as a card does, see README.md; NULL: a plain software device
 * @checks: neuron.ko relies on it to check accesses
 * @missed: otherwise: accesses that neuron.ko should have refused, and it did
 * @completion: when DMA work is done (READ_ONCE)
 * @completion_nsec: latency of EMU_COMPLETE_TIMER (READ_ONCE)
 * @busy: when it was at work
 * @faults: pending faults, and ECC counters
 * @unplug_lock: @added, after the device was made
 * @unplug: pulls the device out
 * @debugfs: directory of the device
 */
struct emu_device {
	struct neuron_device *nd;
	bool added;
	u32 number;
	struct neuron_geometry geo;
	struct emu_isa_limits lim;
	const struct emu_simd *simd;
	struct workqueue_struct *wq;
	struct emu_hbm hbm[NEURON_HW_MAX_HBMS];
	struct rw_semaphore window_lock;
	u8 *sbuf[NEURON_HW_MAX_CORES];
	struct emu_notify *notify[NEURON_HW_MAX_CORES];
	struct emu_window *window[NEURON_HW_MAX_CORES];
	struct emu_core *core[NEURON_HW_MAX_CORES];
	struct mutex alloc;	/* see above */
	struct emu_dma *dma[EMU_MAX_ENGINES];
	DECLARE_BITMAP(stalled, EMU_MAX_ENGINES);
	struct emu_posted *posted;
	u64 serial;
	struct platform_device *parent;
	bool checks;
	u32 missed;
	enum emu_completion completion;
	u64 completion_nsec;
	struct emu_busy busy;
	struct emu_faults faults;
	struct mutex unplug_lock;	/* see above */
	struct work_struct unplug;
	struct dentry *debugfs;
};

/* Memory @i of the device; NULL if there is none. */
static inline struct emu_hbm *emu_hbm(struct emu_device *ed, u32 i)
{
	return i < ed->geo.nr_hbms ? &ed->hbm[i] : NULL;
}

#endif /* EMU_H */

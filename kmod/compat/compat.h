/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kernel differences, in one place: the code is written for the newest kernel,
 * older ones are made to look like it.  Each entry says since when it is not
 * needed.  Floor: 6.1.
 */
#ifndef NEURON_COMPAT_H
#define NEURON_COMPAT_H

#include <linux/version.h>
#include <linux/module.h>
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/eventfd.h>
#include <linux/hrtimer.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "neuron: Linux 6.1 or newer is needed"
#endif

/*
 * A local variable that CONFIG_INIT_STACK_ALL_ZERO need not clear, because its function writes
 * what anybody reads.  Compilers before gcc 12 do not clear any.
 */
#if __has_attribute(__uninitialized__)
#define NEURON_UNINIT	__attribute__((__uninitialized__))
#else
#define NEURON_UNINIT
#endif

/* 6.13: symbol namespaces became strings. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define NEURON_EXPORT_SYMBOL(sym)	EXPORT_SYMBOL_NS_GPL(sym, NEURON)
#define NEURON_IMPORT_NS()		MODULE_IMPORT_NS(NEURON)
#define NEURON_IMPORT_NS_DMA_BUF()	MODULE_IMPORT_NS(DMA_BUF)
#else
#define NEURON_EXPORT_SYMBOL(sym)	EXPORT_SYMBOL_NS_GPL(sym, "NEURON")
#define NEURON_IMPORT_NS()		MODULE_IMPORT_NS("NEURON")
#define NEURON_IMPORT_NS_DMA_BUF()	MODULE_IMPORT_NS("DMA_BUF")
#endif

/* 6.2: the plain names expect the reservation lock, the _unlocked ones take it. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define dma_buf_vmap_unlocked(buf, map)		dma_buf_vmap(buf, map)
#define dma_buf_vunmap_unlocked(buf, map)	dma_buf_vunmap(buf, map)
#endif

/* 6.3: vm_flags are changed through functions. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* 6.14 has the device-memory cgroup controller, 7.3 the calls that are used here. */
#if IS_ENABLED(CONFIG_CGROUP_DMEM) && LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0)
#define NEURON_DMEM	1
#endif

/* Kbuild looks for it: what moved, or goes for good, had another name. */
#ifdef NEURON_MOVE_NOTIFY
#define dma_buf_invalidate_mappings(buf)	dma_buf_move_notify(buf)
#define invalidate_mappings			move_notify
#endif

/* 6.13: hrtimer_init() and the function became one. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *timer),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

/* 6.8: eventfd_signal() lost its count. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define neuron_eventfd_signal(ctx)	eventfd_signal(ctx, 1)
#else
#define neuron_eventfd_signal(ctx)	eventfd_signal(ctx)
#endif

#endif

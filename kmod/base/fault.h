/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Faults on demand.  Each has a file in debugfs, inject_NAME: a number written there
 * makes that many of the next operations fail.  On kernels with fault injection a
 * directory fail_NAME has the usual attributes (probability, interval ...).
 */
#ifndef NEURON_FAULT_H
#define NEURON_FAULT_H

#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/fault-inject.h>

/**
 * struct neuron_fault - something that can be made to fail
 * @shots: how many of the next operations fail
 * @attr: fault injection of the kernel
 */
struct neuron_fault {
	atomic_t shots;
#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
	struct fault_attr attr;
#endif
};

/**
 * neuron_fault_hit() - is this operation to fail?
 * @f: the fault
 *
 * Context: any.
 */
static inline bool neuron_fault_hit(struct neuron_fault *f)
{
	if (unlikely(atomic_read(&f->shots) > 0) && atomic_dec_if_positive(&f->shots) >= 0)
		return true;
#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
	/* Without a probability, should_fail() must not count this for /proc/PID/fail-nth. */
	return READ_ONCE(f->attr.probability) && should_fail(&f->attr, 1);
#else
	return false;
#endif
}

/**
 * neuron_fault_armed() - may an operation be made to fail?
 * @f: the fault
 *
 * Context: any.
 */
static inline bool neuron_fault_armed(const struct neuron_fault *f)
{
#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
	if (READ_ONCE(f->attr.probability))
		return true;
#endif
	return atomic_read(&f->shots) > 0;
}

/**
 * neuron_fault_add() - make the files of a fault
 * @f: zeroed
 * @name: below 24 characters
 * @dir: where
 */
static inline void neuron_fault_add(struct neuron_fault *f, const char *name, struct dentry *dir)
{
	char file[32];

	snprintf(file, sizeof(file), "inject_%s", name);
	debugfs_create_atomic_t(file, 0600, dir, &f->shots);
#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
	f->attr = (struct fault_attr)FAULT_ATTR_INITIALIZER;
	/* The kernel log shows the consequences, not the fault. */
	f->attr.verbose = 0;
	snprintf(file, sizeof(file), "fail_%s", name);
	fault_create_debugfs_attr(file, dir, &f->attr);
#endif
}

#endif

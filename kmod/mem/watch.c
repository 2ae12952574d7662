// SPDX-License-Identifier: GPL-2.0-only
/*
 * A check for developers, parameter check_users: each mapping, export, ring, peer and
 * access of a device notes its range of device memory, independent of all references and
 * counts.  Memory that goes back to the allocator while a noted range covers it is a
 * WARN.
 */
#include <linux/interval_tree_generic.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "watch.h"

DEFINE_STATIC_KEY_FALSE(neuron_watching);

/**
 * struct neuron_watch - a range that has a user
 * @node: in neuron_hbm.watched
 * @hbm: HBM
 * @start: first byte, from the start of the HBM
 * @last: last byte
 * @subtree_last: for the tree
 * @as: kind of user
 */
struct neuron_watch {
	struct rb_node node;
	struct neuron_hbm *hbm;
	u64 start;
	u64 last;
	u64 subtree_last;
	enum neuron_user as;
};

#define NEURON_WATCH_START(w)	((w)->start)
#define NEURON_WATCH_LAST(w)	((w)->last)

INTERVAL_TREE_DEFINE(struct neuron_watch, node, u64, subtree_last, NEURON_WATCH_START,
		     NEURON_WATCH_LAST, static inline, neuron_watches)

/**
 * neuron_watch_range() - note a range of device memory
 * @hbm: HBM
 * @off: first byte, from the start of the HBM
 * @len: bytes, not 0
 * @as: kind of user
 *
 * Use neuron_watch() and neuron_watch_chunk().
 *
 * Context: may sleep.
 * Return: the range, ended with neuron_unwatch(); NULL without memory.
 */
struct neuron_watch *neuron_watch_range(struct neuron_hbm *hbm, u64 off, u64 len,
					enum neuron_user as)
{
	struct neuron_watch *w = kzalloc(sizeof(*w), GFP_KERNEL | __GFP_NOWARN);

	if (!w)
		return NULL;
	w->hbm = hbm;
	w->start = off;
	w->last = off + len - 1;
	w->as = as;
	spin_lock(&hbm->watch_lock);
	neuron_watches_insert(w, &hbm->watched);
	spin_unlock(&hbm->watch_lock);
	return w;
}

/**
 * neuron_watch_end() - the user of a range is gone
 * @w: from neuron_watch_range(), not NULL
 *
 * Context: process.
 */
void neuron_watch_end(struct neuron_watch *w)
{
	spin_lock(&w->hbm->watch_lock);
	neuron_watches_remove(w, &w->hbm->watched);
	spin_unlock(&w->hbm->watch_lock);
	kfree(w);
}

/**
 * neuron_watch_user() - does a range have a user?
 * @hbm: HBM
 * @off: first byte, from the start of the HBM
 * @len: bytes, not 0
 *
 * Context: process.
 * Return: NEURON_USER_NONE, or the kind of one of them.
 */
enum neuron_user neuron_watch_user(struct neuron_hbm *hbm, u64 off, u64 len)
{
	enum neuron_user as = NEURON_USER_NONE;
	struct neuron_watch *w;

	spin_lock(&hbm->watch_lock);
	w = neuron_watches_iter_first(&hbm->watched, off, off + len - 1);
	if (w)
		as = w->as;
	spin_unlock(&hbm->watch_lock);
	return as;
}

/**
 * neuron_watch_freed() - complain if memory that becomes free has a user
 * @hbm: HBM
 * @off: first byte, from the start of the HBM
 * @len: bytes, not 0
 *
 * Use neuron_watch_free().
 *
 * Context: process.
 */
void neuron_watch_freed(struct neuron_hbm *hbm, u64 off, u64 len)
{
	static const char * const who[NEURON_NR_USERS] = {
		[NEURON_USER_MAPPING] = "mapping",
		[NEURON_USER_EXPORT] = "dma-buf",
		[NEURON_USER_RING] = "ring",
		[NEURON_USER_TRANSFER] = "transfer",
		[NEURON_USER_PEER] = "peer",
	};
	enum neuron_user as = neuron_watch_user(hbm, off, len);

	WARN(as, "neuron: HBM %u: %#llx + %#llx is freed and part of a %s\n", hbm->index, off, len,
	     who[as]);
}

static int neuron_watch_set(const char *val, const struct kernel_param *kp)
{
	bool on;
	int err = kstrtobool(val, &on);

	if (!err && on)
		static_branch_enable(&neuron_watching);
	return err;
}

static int neuron_watch_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%c\n", static_key_enabled(&neuron_watching) ? 'Y' : 'N');
}

static const struct kernel_param_ops neuron_watch_ops = {
	.set = neuron_watch_set,
	.get = neuron_watch_get,
};

/* Set at load time only: later, existing users would be missing. */
module_param_cb(check_users, &neuron_watch_ops, NULL, 0444);
MODULE_PARM_DESC(check_users, "for developers: WARN when memory is freed that somebody still has (slow)");

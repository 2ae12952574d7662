// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs: neuron/neuronN/hbmM lists the ranges of a device memory, a line
 * each: first byte, bytes, state.  For tools and bug reports.
 *
 * The position in the file is an address.  The hbm's lock is taken for one
 * range at a time and never while a line goes to user space, so a slow reader delays
 * nobody.  The list may or may not show changes made meanwhile.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "debugfs.h"
#include "hbm.h"

static struct dentry *neuron_debugfs;

/**
 * struct neuron_walk - a reader
 * @hbm: what it reads
 * @range: the current range
 * @next: address behind it
 */
struct neuron_walk {
	struct neuron_hbm *hbm;
	struct neuron_buddy_range range;
	u64 next;
};

static void *neuron_walk_step(struct neuron_walk *walk, loff_t addr)
{
	unsigned int n;

	walk->next = addr;
	spin_lock(&walk->hbm->lock);
	n = neuron_buddy_walk(walk->hbm->buddy, &walk->next, &walk->range, 1);
	spin_unlock(&walk->hbm->lock);
	return n ? walk : NULL;
}

static void *neuron_walk_start(struct seq_file *m, loff_t *pos)
{
	return neuron_walk_step(m->private, *pos);
}

static void *neuron_walk_next(struct seq_file *m, void *v, loff_t *pos)
{
	struct neuron_walk *walk = m->private;

	*pos = walk->next;
	return neuron_walk_step(walk, *pos);
}

static void neuron_walk_stop(struct seq_file *m, void *v)
{
}

static int neuron_walk_show(struct seq_file *m, void *v)
{
	static const char * const states[] = {
		[NEURON_BUDDY_RANGE_FREE] = "free",
		[NEURON_BUDDY_RANGE_USED] = "used",
		[NEURON_BUDDY_RANGE_RESERVED] = "reserved",
	};
	struct neuron_walk *walk = v;

	seq_printf(m, "0x%llx %llu %s%s\n", walk->hbm->base + walk->range.addr,
		   walk->range.size, states[walk->range.state], walk->range.small ? " frame" : "");
	return 0;
}

static const struct seq_operations neuron_walk_ops = {
	.start = neuron_walk_start,
	.next = neuron_walk_next,
	.stop = neuron_walk_stop,
	.show = neuron_walk_show,
};

static int neuron_walk_open(struct inode *inode, struct file *file)
{
	struct neuron_hbm *hbm = inode->i_private;
	struct neuron_walk *walk;
	int err;

	err = neuron_hbm_ready(hbm);
	if (err)
		return err;
	walk = __seq_open_private(file, &neuron_walk_ops, sizeof(*walk));
	if (!walk)
		return -ENOMEM;
	walk->hbm = hbm;
	return 0;
}

static const struct file_operations neuron_walk_fops = {
	.owner = THIS_MODULE,
	.open = neuron_walk_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = seq_release_private,
};

/**
 * neuron_debugfs_add() - make the files of a device
 * @nd: device; its zones exist
 *
 * Context: may sleep.  Nothing depends on success.
 */
void neuron_debugfs_add(struct neuron_device *nd)
{
	char name[16];
	u32 i;

	nd->debugfs = debugfs_create_dir(dev_name(&nd->dev), neuron_debugfs);
	neuron_fault_add(&nd->fail_alloc, "mc_alloc", nd->debugfs);
	for (i = 0; i < nd->geo->nr_hbms; i++) {
		snprintf(name, sizeof(name), "hbm%u", i);
		debugfs_create_file(name, 0400, nd->debugfs, &nd->hbm[i], &neuron_walk_fops);
	}
}

/**
 * neuron_debugfs_del() - remove the files of a device
 * @nd: device
 *
 * Context: may sleep; waits for readers.
 */
void neuron_debugfs_del(struct neuron_device *nd)
{
	debugfs_remove_recursive(nd->debugfs);
}

void neuron_debugfs_init(void)
{
	neuron_debugfs = debugfs_create_dir("neuron", NULL);
}

void neuron_debugfs_exit(void)
{
	debugfs_remove_recursive(neuron_debugfs);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The debugfs directory of a software device, neuron_emu/neuronN: its faults, and
 * the other knobs.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "arithmetic.h"
#include "debugfs.h"

static struct dentry *emu_debugfs;

static int emu_completion_show(struct seq_file *m, void *v)
{
	struct emu_device *ed = m->private;

	seq_printf(m, "%s\n", emu_completion_names[READ_ONCE(ed->completion)]);
	return 0;
}

static int emu_completion_open(struct inode *inode, struct file *file)
{
	return single_open(file, emu_completion_show, inode->i_private);
}

static ssize_t emu_completion_write(struct file *file, const char __user *ubuf, size_t count,
				    loff_t *pos)
{
	struct emu_device *ed = file_inode(file)->i_private;
	char buf[16] = "";
	int c;

	if (count >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, ubuf, count))
		return -EFAULT;
	c = sysfs_match_string(emu_completion_names, buf);
	if (c < 0)
		return c;
	WRITE_ONCE(ed->completion, c);
	return count;
}

static const struct file_operations emu_completion_fops = {
	.owner = THIS_MODULE,
	.open = emu_completion_open,
	.read = seq_read,
	.write = emu_completion_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* Pull the device out.  A work item does it, because removal waits for users of this file. */
static ssize_t emu_remove_write(struct file *file, const char __user *ubuf, size_t count,
				loff_t *pos)
{
	struct emu_device *ed = file_inode(file)->i_private;

	schedule_work(&ed->unplug);
	return count;
}

static const struct file_operations emu_remove_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = emu_remove_write,
	.llseek = noop_llseek,
};

static int emu_arithmetic_show(struct seq_file *m, void *v)
{
	seq_printf(m, "%s\n", emu_arithmetic_name());
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(emu_arithmetic);

/**
 * emu_debugfs_add() - make the knobs of a device
 * @ed: device; neuron.ko knows it
 */
void emu_debugfs_add(struct emu_device *ed)
{
	char name[16];

	snprintf(name, sizeof(name), "neuron%u", ed->number);
	ed->debugfs = debugfs_create_dir(name, emu_debugfs);
	emu_faults_add(&ed->faults, ed->debugfs);
	debugfs_create_u32("reset_slow_msec", 0600, ed->debugfs, &ed->faults.reset_slow_msec);
	debugfs_create_file("completion", 0600, ed->debugfs, ed, &emu_completion_fops);
	debugfs_create_u64("completion_nsec", 0600, ed->debugfs, &ed->completion_nsec);
	debugfs_create_u32("missed", 0400, ed->debugfs, &ed->missed);
	debugfs_create_file("remove", 0200, ed->debugfs, ed, &emu_remove_fops);
}

/**
 * emu_debugfs_del() - remove the knobs of a device
 * @ed: device
 *
 * Context: may sleep; waits for processes that use them.
 */
void emu_debugfs_del(struct emu_device *ed)
{
	/* A second caller finds NULL here; unplug_lock or the work item makes it wait. */
	debugfs_remove_recursive(xchg(&ed->debugfs, NULL));
}

void emu_debugfs_init(void)
{
	emu_debugfs = debugfs_create_dir("neuron_emu", NULL);
	debugfs_create_file("arithmetic", 0400, emu_debugfs, NULL, &emu_arithmetic_fops);
}

void emu_debugfs_exit(void)
{
	debugfs_remove_recursive(emu_debugfs);
}

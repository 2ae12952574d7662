// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults of a software device, and the other knobs of its debugfs directory,
 * neuron_emu/neuronN.  README.md says what each fault does; here is when.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "emu.h"

static struct dentry *emu_debugfs;

static const char * const emu_fault_names[EMU_NR_FAULTS] = {
	[EMU_FAULT_DMA_ABORT] = "dma_abort",
	[EMU_FAULT_LOST_NOTICE] = "lost_notification",
	[EMU_FAULT_HANG] = "hang",
	[EMU_FAULT_RESET] = "reset",
	[EMU_FAULT_RESET_SLOW] = "reset_slow",
	[EMU_FAULT_MEM_CORRECTED] = "mem_ecc_corrected",
	[EMU_FAULT_MEM_UNCORRECTED] = "mem_ecc_uncorrected",
	[EMU_FAULT_MEM_REPAIRABLE] = "mem_ecc_repairable",
	[EMU_FAULT_SRAM_CORRECTED] = "sram_ecc_corrected",
	[EMU_FAULT_SRAM_UNCORRECTED] = "sram_ecc_uncorrected",
};

/**
 * emu_ecc() - an access may meet a bit that has flipped
 * @ed: device
 * @kind: one of the ECC faults
 * @core: core that the access is for
 *
 * Counted and reported if it does.
 *
 * Return: did it?
 */
bool emu_ecc(struct emu_device *ed, enum emu_fault_kind kind, u32 core)
{
	static const enum neuron_event events[EMU_NR_FAULTS] = {
		[EMU_FAULT_MEM_CORRECTED] = NEURON_EVENT_MEM_CORRECTED,
		[EMU_FAULT_MEM_UNCORRECTED] = NEURON_EVENT_MEM_UNCORRECTED,
		[EMU_FAULT_MEM_REPAIRABLE] = NEURON_EVENT_MEM_REPAIRABLE,
		[EMU_FAULT_SRAM_CORRECTED] = NEURON_EVENT_SRAM_CORRECTED,
		[EMU_FAULT_SRAM_UNCORRECTED] = NEURON_EVENT_SRAM_UNCORRECTED,
	};

	if (!emu_fault(ed, kind))
		return false;
	atomic64_inc(&ed->ecc[events[kind]]);
	neuron_device_report(ed->nd, events[kind], core);
	return true;
}

/**
 * emu_mem_ecc() - DMA reads a range: device memory may have flipped bits there
 * @ed: device
 * @core: core that the access is for
 * @from: what is read
 *
 * Return: 0, -EBADMSG uncorrectable, -EUCLEAN same, in memory that can be repaired.
 */
int emu_mem_ecc(struct emu_device *ed, u32 core, const struct neuron_pin *from)
{
	if (from->kind != NEURON_TARGET_HBM)
		return 0;
	emu_ecc(ed, EMU_FAULT_MEM_CORRECTED, core);
	if (emu_ecc(ed, EMU_FAULT_MEM_UNCORRECTED, core))
		return -EBADMSG;
	return emu_ecc(ed, EMU_FAULT_MEM_REPAIRABLE, core) ? -EUCLEAN : 0;
}

static const char * const emu_completions[] = {
	[EMU_COMPLETE_WORKER] = "worker",
	[EMU_COMPLETE_INLINE] = "inline",
	[EMU_COMPLETE_TIMER] = "timer",
};

/**
 * emu_find_completion() - way of completion of a name
 * @name: text, may end with a newline
 *
 * Return: enum emu_completion, -EINVAL.
 */
int emu_find_completion(const char *name)
{
	return sysfs_match_string(emu_completions, name);
}

/**
 * emu_completion_name() - name of a way of completion
 * @c: the way
 */
const char *emu_completion_name(enum emu_completion c)
{
	return emu_completions[c];
}

static int emu_completion_show(struct seq_file *m, void *v)
{
	struct emu_device *ed = m->private;

	seq_printf(m, "%s\n", emu_completion_name(READ_ONCE(ed->completion)));
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
	c = emu_find_completion(buf);
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

/* Pull the device out.  Not here: its own files go last. */
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

/**
 * emu_faults_add() - make the knobs of a device
 * @ed: device; neuron.ko knows it
 */
void emu_faults_add(struct emu_device *ed)
{
	char name[16];
	u32 i;

	snprintf(name, sizeof(name), "neuron%u", ed->number);
	ed->debugfs = debugfs_create_dir(name, emu_debugfs);
	for (i = 0; i < EMU_NR_FAULTS; i++)
		neuron_fault_add(&ed->fault[i], emu_fault_names[i], ed->debugfs);
	debugfs_create_u32("reset_slow_msec", 0600, ed->debugfs, &ed->reset_slow_msec);
	debugfs_create_file("completion", 0600, ed->debugfs, ed, &emu_completion_fops);
	debugfs_create_u64("completion_nsec", 0600, ed->debugfs, &ed->completion_nsec);
	debugfs_create_file("remove", 0200, ed->debugfs, ed, &emu_remove_fops);
}

/**
 * emu_faults_del() - remove the knobs of a device
 * @ed: device
 *
 * Context: may sleep; waits for who uses them.
 */
void emu_faults_del(struct emu_device *ed)
{
	/* Whoever comes second finds nothing, and waits for the first by other means. */
	debugfs_remove_recursive(xchg(&ed->debugfs, NULL));
}

void emu_faults_init(void)
{
	emu_debugfs = debugfs_create_dir("neuron_emu", NULL);
}

void emu_faults_exit(void)
{
	debugfs_remove_recursive(emu_debugfs);
}

// SPDX-License-Identifier: GPL-2.0-only
/* The character device. */
#include <linux/fs.h>
#include <linux/mount.h>
#include <linux/poll.h>
#include <linux/pseudo_fs.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "../base/claim.h"
#include "../base/client.h"
#include "../base/device.h"
#include "../base/owner.h"
#include "../mem/map.h"
#include "attach.h"
#include "file.h"
#include "ioctl.h"

#define NEURON_FS_MAGIC		0x4e45524e	/* "NERN" */

static struct vfsmount *neuron_mnt;
static int neuron_mnt_count;

static int neuron_fs_init(struct fs_context *fc)
{
	return init_pseudo(fc, NEURON_FS_MAGIC) ? 0 : -ENOMEM;
}

/* User space cannot mount it; the inodes of neuron_inode_get() live on it. */
static struct file_system_type neuron_fs = {
	.name = "neuron",
	.owner = THIS_MODULE,
	.init_fs_context = neuron_fs_init,
	.kill_sb = kill_anon_super,
};

/**
 * neuron_inode_get() - make the inode that owns all mappings of a device
 * @nd: device
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM.
 */
int neuron_inode_get(struct neuron_device *nd)
{
	struct inode *inode;
	int err;

	err = simple_pin_fs(&neuron_fs, &neuron_mnt, &neuron_mnt_count);
	if (err)
		return err;
	inode = alloc_anon_inode(neuron_mnt->mnt_sb);
	if (IS_ERR(inode)) {
		simple_release_fs(&neuron_mnt, &neuron_mnt_count);
		return PTR_ERR(inode);
	}
	nd->inode = inode;
	return 0;
}

/**
 * neuron_inode_put() - release what neuron_inode_get() made
 * @nd: device without open files; may have no inode
 *
 * Context: may sleep.
 */
void neuron_inode_put(struct neuron_device *nd)
{
	if (!nd->inode)
		return;
	iput(nd->inode);
	simple_release_fs(&neuron_mnt, &neuron_mnt_count);
}

static int neuron_open(struct inode *inode, struct file *file)
{
	struct neuron_device *nd = container_of(inode->i_cdev, struct neuron_device, cdev);
	struct neuron_file *nf;
	int err;

	if (neuron_device_gone(nd))
		return -ENODEV;
	nf = kzalloc(sizeof(*nf), GFP_KERNEL_ACCOUNT);
	if (!nf)
		return -ENOMEM;
	nf->nd = nd;
	/* Write-only means: look, do not attach (uapi/FACTS.md 2). */
	if (!(file->f_flags & O_WRONLY)) {
		err = neuron_client_attach(nd, &nf->client);
		if (err) {
			kfree(nf);
			return err;
		}
	}
	file->private_data = nf;
	/* A device may have several nodes, but its removal must find all mappings. */
	file->f_mapping = nd->inode->i_mapping;
	return 0;
}

/*
 * Runs at every close, also of a duplicate: only the death of the process
 * counts.  A child that inherited the descriptor must not keep the memory.
 */
static int neuron_flush(struct file *file, fl_owner_t id)
{
	struct neuron_file *nf = file->private_data;

	if (!(current->flags & PF_EXITING) || atomic_read(&current->signal->live))
		return 0;
	if (nf->client && nf->client->pid == task_tgid(current))
		neuron_client_exit(nf->client);
	if (nf->claims)
		neuron_claims_drop(nf, task_tgid(current));
	return 0;
}

static int neuron_release(struct inode *inode, struct file *file)
{
	struct neuron_file *nf = file->private_data;

	if (nf->client)
		neuron_client_detach(nf->client);
	if (nf->claims)
		neuron_claims_drop(nf, NULL);
	kfree(nf);
	return 0;
}

/**
 * neuron_poll() - poll() of /dev/neuronN
 * @file: open descriptor
 * @wait: table
 *
 * The only event is the end of the device.
 *
 * Return: EPOLLHUP and EPOLLERR when it is gone.
 */
static __poll_t neuron_poll(struct file *file, struct poll_table_struct *wait)
{
	struct neuron_file *nf = file->private_data;

	poll_wait(file, &nf->nd->gone_wait, wait);
	return neuron_device_gone(nf->nd) ? EPOLLHUP | EPOLLERR : 0;
}

#ifdef CONFIG_PROC_FS
/**
 * neuron_show_fdinfo() - /proc/PID/fdinfo: the memory that the process of a descriptor holds
 * @m: the file
 * @file: the descriptor
 *
 * All descriptors of a process show the same memory, and the same client id,
 * by which readers know not to count it twice.
 */
static void neuron_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct neuron_file *nf = file->private_data;
	const struct neuron_location *at = &nf->nd->desc.location;
	struct neuron_client *client = nf->client;
	u64 host, hbm;
	u32 i;

	seq_puts(m, "drm-driver:\tneuron\n");
	if (at->known)
		seq_printf(m, "drm-pdev:\t%04x:%02x:%02x.%u\n", at->domain, at->bus, at->slot,
			   at->func);
	seq_printf(m, "neuron-device:\t%u\n", neuron_device_index(nf->nd));
	if (!client)
		return;
	seq_printf(m, "drm-client-id:\t%llu\n", client->id);
	for (i = 0; i < nf->nd->geo->nr_hbms; i++) {
		hbm = READ_ONCE(client->hbm_bytes[i]) >> 10;
		seq_printf(m, "drm-total-hbm%u:\t%llu KiB\n", i, hbm);
		seq_printf(m, "drm-resident-hbm%u:\t%llu KiB\n", i, hbm);
	}
	neuron_owners_show(m, client, nf->nd->geo->nr_hbms);
	host = atomic64_read(&client->host_bytes) >> 10;
	seq_printf(m, "drm-total-memory:\t%llu KiB\n", host);
	seq_printf(m, "drm-resident-memory:\t%llu KiB\n", host);
}
#endif

const struct file_operations neuron_fops = {
	.owner = THIS_MODULE,
	.open = neuron_open,
	.flush = neuron_flush,
	.release = neuron_release,
	.unlocked_ioctl = neuron_ioctl,
	/* No .compat_ioctl: every command of a 32-bit program is ENOTTY (uapi/README.md). */
	.mmap = neuron_mmap,
	.poll = neuron_poll,
	.llseek = noop_llseek,
#ifdef CONFIG_PROC_FS
	.show_fdinfo = neuron_show_fdinfo,
#endif
};

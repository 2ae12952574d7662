// SPDX-License-Identifier: GPL-2.0-only
/* The character device. */
#include <linux/fs.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "neuron.h"

static int neuron_open(struct inode *inode, struct file *file)
{
	struct neuron_device *nd = container_of(inode->i_cdev, struct neuron_device, cdev);
	struct neuron_file *nf;
	int err;

	nf = kzalloc(sizeof(*nf), GFP_KERNEL_ACCOUNT);
	if (!nf)
		return -ENOMEM;
	nf->nd = nd;
	/* Write-only means: look, do not attach (uapi spec 1.2). */
	if (!(file->f_flags & O_WRONLY)) {
		err = neuron_client_attach(nd, &nf->client);
		if (err) {
			kfree(nf);
			return err;
		}
	}
	file->private_data = nf;
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

const struct file_operations neuron_fops = {
	.owner = THIS_MODULE,
	.open = neuron_open,
	.flush = neuron_flush,
	.release = neuron_release,
	.unlocked_ioctl = neuron_ioctl,
	.mmap = neuron_mmap,
	.llseek = noop_llseek,
};

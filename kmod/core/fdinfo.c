// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/PID/fdinfo of an open device: the memory that its process holds, with
 * the keys of Documentation/gpu/drm-usage-stats.rst, which tools know.
 */
#include <linux/seq_file.h>

#include "../base/neuron.h"

/**
 * neuron_show_fdinfo() - write the file
 * @m: the file
 * @file: the descriptor
 *
 * All descriptors of a process show the same memory, and the same client id,
 * by which readers know not to count it twice.
 */
void neuron_show_fdinfo(struct seq_file *m, struct file *file)
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
	host = atomic64_read(&client->host_bytes) >> 10;
	seq_printf(m, "drm-total-memory:\t%llu KiB\n", host);
	seq_printf(m, "drm-resident-memory:\t%llu KiB\n", host);
}

// SPDX-License-Identifier: GPL-2.0-only
/* DUMP_MEM_CHUNKS: the allocations of an HBM in the order of their addresses. */
#include <linux/capability.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/device.h"
#include "chunk.h"
#include "handle.h"

/**
 * struct neuron_dump_source - allocations of one process
 * @client: the process, with a reference
 * @next: its next allocation
 * @valid: @next is filled in
 */
struct neuron_dump_source {
	struct neuron_client *client;
	struct neuron_ioctl_mem_chunk_info next;
	bool valid;
};

static void neuron_dump_next(struct neuron_dump_source *s, u64 from, u64 end)
{
	s->valid = neuron_chunk_next(s->client, from, &s->next) && s->next.pa < end;
}

static int neuron_dump(struct neuron_dump_source *src, u32 n, u64 from, u64 end,
		       struct neuron_ioctl_mem_chunk_info __user *data, u32 room, u32 *count)
{
	struct neuron_dump_source *s;
	u32 i;

	for (i = 0; i < n; i++)
		neuron_dump_next(&src[i], from, end);
	for (;;) {
		s = NULL;
		for (i = 0; i < n; i++)
			if (src[i].valid && (!s || src[i].next.pa < s->next.pa))
				s = &src[i];
		if (!s || *count == U32_MAX)
			break;
		/* No lock is held: other threads may free and allocate meanwhile. */
		if (*count < room && copy_to_user(&data[*count], &s->next, sizeof(s->next)))
			return -EFAULT;
		++*count;
		neuron_dump_next(s, s->next.pa + 1, end);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return *count > room ? -EAGAIN : 0;
}

int neuron_do_dump_mem_chunks(struct neuron_call *call)
{
	struct neuron_dump_source src[NEURON_MAX_CLIENTS] = { };
	struct neuron_ioctl_dump_mem_chunks *a = call->arg;
	const struct neuron_hbm_geometry *hbm;
	struct neuron_device *nd = call->nd;
	struct neuron_client *client;
	bool all = capable(CAP_SYS_ADMIN);
	u32 n = 0, i;
	int err;

	if (!neuron_index_valid(&a->hbm_index, nd->geo->nr_hbms))
		return -EINVAL;
	hbm = &nd->geo->hbm[a->hbm_index];
	a->num_entries_out = 0;

	mutex_lock(&nd->clients_lock);
	list_for_each_entry(client, &nd->clients, node) {
		if (client != call->client && !all)
			continue;
		if (n == ARRAY_SIZE(src))
			break;
		kref_get(&client->ref);
		src[n++].client = client;
	}
	mutex_unlock(&nd->clients_lock);

	err = neuron_dump(src, n, hbm->base, hbm->base + hbm->size,
			  (struct neuron_ioctl_mem_chunk_info __user *)a->data,
			  a->num_entries_in, &a->num_entries_out);
	for (i = 0; i < n; i++)
		neuron_client_put(src[i].client);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Datastores: memory that a process maps and publishes its counters in (uapi/FACTS.md
 * 12).  sysfs shows the sums over all processes, live; the counts of ended processes are
 * added up.
 *
 * User space can write any number there.  The driver only adds and prints them.
 */
#include <linux/mm.h>
#include <linux/pid.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/core.h"
#include "chunk.h"
#include "datastore.h"
#include "failure.h"

#define NEURON_DS_SIZE		262144

static u64 neuron_ds_value(const struct neuron_chunk *ds, u32 core, u32 counter)
{
	u32 off;

	if (core >= NDS_MAX_NEURONCORE_COUNT)
		off = NDS_EXT_NEURONCORE_NC_DATA_START +
		      8 * ((core - NDS_MAX_NEURONCORE_COUNT) * NDS_EXT_NEURONCORE_NC_DATA_COUNT +
			   counter);
	else if (counter < NDS_NC_COUNTER_COUNT)
		off = NDS_NEURONCORE_COUNTERS_START +
		      8 * (core * NDS_NEURONCORE_COUNTERS_COUNT + counter);
	else
		off = NDS_EXT_NEURONCORE_COUNTERS_START +
		      8 * (core * NDS_EXT_NEURONCORE_COUNTERS_COUNT +
			   counter - NDS_NC_COUNTER_COUNT);
	return READ_ONCE(*(u64 *)(page_address(ds->pages[off >> PAGE_SHIFT]) +
				  offset_in_page(off)));
}

/* Under clients_lock. */
static u64 neuron_nds_live(struct neuron_device *nd, u32 core, u32 counter)
{
	struct neuron_client *client;
	u64 live = 0;

	list_for_each_entry(client, &nd->clients, node)
		if (client->datastore)
			live += neuron_ds_value(client->datastore, core, counter);
	return live;
}

/**
 * neuron_nds_read() - a published counter over all processes
 * @nd: device
 * @core: core number
 * @counter: NDS_NC_COUNTER_* or NDS_EXT_NC_COUNTER_*, below NDS_EXT_NC_COUNTER_LAST
 * @total: since it was cleared
 * @present: of running processes or, if that is 0, of the last one that ended
 *
 * Context: may sleep.
 */
void neuron_nds_read(struct neuron_device *nd, u32 core, u32 counter, u64 *total, u64 *present)
{
	struct neuron_nds_counter *t = &nd->core[core].nds[counter];
	u64 live, sum;

	mutex_lock(&nd->clients_lock);
	live = neuron_nds_live(nd, core, counter);
	sum = t->ended + live;
	/* A process can take back what it has published. */
	*total = sum > t->cleared ? sum - t->cleared : 0;
	*present = live ?: t->last;
	mutex_unlock(&nd->clients_lock);
}

/**
 * neuron_nds_clear() - start a published counter again from 0
 * @nd: device
 * @core: core number
 * @counter: as for neuron_nds_read()
 * @total: the sum, else what the last process left
 *
 * Context: may sleep.
 */
void neuron_nds_clear(struct neuron_device *nd, u32 core, u32 counter, bool total)
{
	struct neuron_nds_counter *t = &nd->core[core].nds[counter];

	mutex_lock(&nd->clients_lock);
	if (total)
		t->cleared = t->ended + neuron_nds_live(nd, core, counter);
	else
		t->last = 0;
	mutex_unlock(&nd->clients_lock);
}

/**
 * neuron_datastore_release() - add up what a process leaves, give the memory back
 * @client: the process; may have no datastore
 *
 * Context: may sleep.
 */
void neuron_datastore_release(struct neuron_client *client)
{
	struct neuron_device *nd = client->nd;
	struct neuron_chunk *ds;
	u32 core, i;

	mutex_lock(&nd->clients_lock);
	ds = client->datastore;
	client->datastore = NULL;
	for (core = 0; ds && core < nd->geo->nr_cores; core++) {
		for (i = 0; i < NDS_EXT_NC_COUNTER_LAST; i++) {
			struct neuron_nds_counter *t = &nd->core[core].nds[i];
			u64 value = neuron_ds_value(ds, core, i);

			t->ended += value;
			if (value)
				t->last = value;
		}
	}
	mutex_unlock(&nd->clients_lock);
	neuron_chunk_put(ds);
}

/**
 * neuron_datastore_find() - datastore at a device address
 * @nd: device
 * @addr: any address
 *
 * Return: its chunk with a reference for the caller, NULL if there is none.
 */
struct neuron_chunk *neuron_datastore_find(struct neuron_device *nd, u64 addr)
{
	struct neuron_chunk *chunk;

	if (!(addr & nd->geo->host_window))
		return NULL;
	rcu_read_lock();
	chunk = mtree_load(&nd->host_pages, (addr & ~nd->geo->host_window) >> PAGE_SHIFT);
	if (chunk && !kref_get_unless_zero(&chunk->ref))
		chunk = NULL;
	rcu_read_unlock();
	if (chunk && (READ_ONCE(chunk->kind) != NEURON_CHUNK_DATASTORE ||
		      addr - chunk->addr >= chunk->size)) {
		neuron_chunk_put(chunk);
		chunk = NULL;
	}
	return chunk;
}

static int neuron_datastore_make(struct neuron_client *client, struct neuron_chunk **out)
{
	struct neuron_chunk_request req = {
		.size = NEURON_DS_SIZE,
		.host = true,
		.category = NEURON_MEMALLOC_TYPE_NCDEV_HOST,
	};
	struct neuron_failure why;
	int err;

	err = neuron_chunk_alloc(client, &req, out, &why);
	if (!err)
		WRITE_ONCE((*out)->kind, NEURON_CHUNK_DATASTORE);
	return err;
}

static int neuron_datastore_own(struct neuron_client *client, u64 *addr)
{
	struct neuron_device *nd = client->nd;
	struct neuron_chunk *ds = NULL;
	int err;

	mutex_lock(&nd->clients_lock);
	if (!client->datastore) {
		mutex_unlock(&nd->clients_lock);
		err = neuron_datastore_make(client, &ds);
		if (err)
			return err;
		mutex_lock(&nd->clients_lock);
		/* Another thread may have made one meanwhile. */
		if (!client->datastore) {
			client->datastore = ds;
			ds = NULL;
		}
	}
	*addr = client->datastore->addr;
	mutex_unlock(&nd->clients_lock);
	neuron_chunk_put(ds);
	return 0;
}

static int neuron_datastore_of(struct neuron_device *nd, struct pid *pid, u64 *addr)
{
	struct neuron_client *client;
	int err = -ENOENT;

	mutex_lock(&nd->clients_lock);
	list_for_each_entry(client, &nd->clients, node) {
		if (client->pid == pid && client->datastore) {
			*addr = client->datastore->addr;
			err = 0;
			break;
		}
	}
	mutex_unlock(&nd->clients_lock);
	return err;
}

int neuron_do_acquire_neuron_ds(struct neuron_call *call)
{
	struct neuron_ioctl_neuron_ds_info *a = call->arg;
	struct pid *pid = a->pid ? find_get_pid(a->pid) : NULL;
	u64 addr;
	int err;

	if (!a->pid || pid == call->client->pid)
		err = neuron_datastore_own(call->client, &addr);
	else
		err = pid ? neuron_datastore_of(call->nd, pid, &addr) : -ENOENT;
	put_pid(pid);
	if (err)
		return err;
	a->mmap_offset = addr;
	a->size = NEURON_DS_SIZE;
	return 0;
}

/* Programs also release the datastore of another process, for which nothing is to be done. */
int neuron_do_release_neuron_ds(struct neuron_call *call)
{
	struct neuron_ioctl_neuron_ds_info *a = call->arg;

	if (!a->pid || a->pid == pid_vnr(call->client->pid))
		neuron_datastore_release(call->client);
	return 0;
}

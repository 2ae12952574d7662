// SPDX-License-Identifier: GPL-2.0-only
/*
 * HBM_SCRUB_START and HBM_SCRUB_WAIT: clear the free memory of an HBM, in the
 * background.
 *
 * Free memory is taken piece by piece, cleared and given back as clear.  Memory in use is
 * left alone; memory that is allocated meanwhile is cleared by the allocation.  An
 * allocation that fails while a piece is taken waits for that piece and tries again, so
 * that scrubbing never makes an allocation fail.
 */
#include <linux/completion.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/workqueue.h"
#include "chunk.h"
#include "hbm.h"
#include "scrub.h"

/* Size of a piece, which bounds how long an allocation may have to wait. */
#define NEURON_SCRUB_PIECE	(16ull << 20)
#define NEURON_SCRUB_RANGES	16

/**
 * struct neuron_scrub - an HBM being scrubbed for a process
 * @ref: held by the process, the work and waiters
 * @work: does it
 * @done: it is done
 * @nd: device
 * @hbm: HBM number
 * @core: core that the taken piece is charged to
 * @stop: the process has ended
 * @err: result
 */
struct neuron_scrub {
	struct kref ref;
	struct work_struct work;
	struct completion done;
	struct neuron_device *nd;
	u32 hbm;
	u32 core;
	bool stop;
	int err;
};

static void neuron_scrub_free(struct kref *ref)
{
	kfree(container_of(ref, struct neuron_scrub, ref));
}

static void neuron_scrub_put(struct neuron_scrub *scrub)
{
	kref_put(&scrub->ref, neuron_scrub_free);
}

/* Clear a range that was free a moment ago. */
static int neuron_scrub_piece(struct neuron_scrub *scrub, u64 addr, u64 size)
{
	struct neuron_device *nd = scrub->nd;
	struct neuron_hbm *hbm = &nd->hbm[scrub->hbm];
	struct neuron_chunk piece = {
		.hbm = scrub->hbm,
		.core = scrub->core,
		.category = NEURON_MEMALLOC_TYPE_NCDEV_DEVICE,
		.kind = NEURON_CHUNK_PIECE,
		.client = nd->kclient,
	};
	struct neuron_buddy_request req = {
		.size = size,
		.addr = addr,
		.flags = NEURON_BUDDY_EXACT,
	};
	int err;

	mutex_lock(&hbm->scrub_lock);
	err = neuron_hbm_take(hbm, &piece, &req, &piece.block, NULL);
	if (!err) {
		err = nd->ops->hbm_clear(nd, scrub->hbm, addr, size);
		neuron_hbm_give(hbm, &piece, &piece.block, size, !err);
	} else if (err == -EBUSY) {
		err = 0;
	}
	mutex_unlock(&hbm->scrub_lock);
	cond_resched();
	return err;
}

static void neuron_scrub_work(struct work_struct *work)
{
	struct neuron_scrub *scrub = container_of(work, struct neuron_scrub, work);
	struct neuron_hbm *hbm = &scrub->nd->hbm[scrub->hbm];
	struct neuron_buddy_range range[NEURON_SCRUB_RANGES];
	u64 pos = 0, off, len;
	unsigned int i, n;
	int err = 0;

	do {
		spin_lock(&hbm->lock);
		n = neuron_buddy_walk(hbm->buddy, &pos, range, NEURON_SCRUB_RANGES);
		spin_unlock(&hbm->lock);
		for (i = 0; i < n; i++) {
			if (range[i].state != NEURON_BUDDY_RANGE_FREE)
				continue;
			for (off = 0; !err && off < range[i].size; off += len) {
				len = min(range[i].size - off, NEURON_SCRUB_PIECE);
				err = READ_ONCE(scrub->stop) ? -EINTR :
				      neuron_scrub_piece(scrub, range[i].addr + off, len);
			}
		}
		/* Skipping memory in use does not sleep, so offer the CPU here. */
		cond_resched();
		if (!err && READ_ONCE(scrub->stop))
			err = -EINTR;
	} while (n && !err);

	scrub->err = err;
	WRITE_ONCE(hbm->scrub, NULL);
	complete_all(&scrub->done);
	neuron_scrub_put(scrub);
}

/**
 * neuron_scrub_exit() - end the scrubs of a process
 * @client: being torn down
 *
 * Context: may sleep, as long as it takes to clear a piece.
 */
void neuron_scrub_exit(struct neuron_client *client)
{
	struct neuron_scrub *scrub;
	u32 i;

	for (i = 0; i < NEURON_HW_MAX_HBMS; i++) {
		scrub = client->scrub[i];
		if (!scrub)
			continue;
		WRITE_ONCE(scrub->stop, true);
		wait_for_completion(&scrub->done);
		client->scrub[i] = NULL;
		neuron_scrub_put(scrub);
	}
}

int neuron_do_hbm_scrub_start(struct neuron_call *call)
{
	struct neuron_ioctl_hbm_scrub_start *a = call->arg;
	struct neuron_client *client = call->client;
	struct neuron_device *nd = call->nd;
	struct neuron_scrub *scrub;
	int err;

	if (!neuron_index_valid(&a->hbm_index, nd->geo->nr_hbms) ||
	    !neuron_index_valid(&a->nc_id, nd->geo->nr_cores))
		return -EINVAL;
	err = neuron_hbm_ready(&nd->hbm[a->hbm_index]);
	if (err)
		return err;
	scrub = kzalloc(sizeof(*scrub), GFP_KERNEL_ACCOUNT);
	if (!scrub)
		return -ENOMEM;
	kref_init(&scrub->ref);
	INIT_WORK(&scrub->work, neuron_scrub_work);
	init_completion(&scrub->done);
	scrub->nd = nd;
	scrub->hbm = a->hbm_index;
	scrub->core = a->nc_id;

	mutex_lock(&client->async_lock);
	if (client->scrub[a->hbm_index] || cmpxchg(&nd->hbm[a->hbm_index].scrub, NULL, scrub)) {
		err = -EBUSY;
	} else {
		client->scrub[a->hbm_index] = scrub;
		kref_get(&scrub->ref);
		neuron_queue_work(&scrub->work);
	}
	mutex_unlock(&client->async_lock);
	if (err)
		neuron_scrub_put(scrub);
	return err;
}

int neuron_do_hbm_scrub_wait(struct neuron_call *call)
{
	struct neuron_ioctl_hbm_scrub_wait *a = call->arg;
	struct neuron_client *client = call->client;
	struct neuron_scrub *scrub;
	int err;

	if (!neuron_index_valid(&a->hbm_index, call->nd->geo->nr_hbms))
		return -EINVAL;
	mutex_lock(&client->async_lock);
	scrub = client->scrub[a->hbm_index];
	if (scrub)
		kref_get(&scrub->ref);
	mutex_unlock(&client->async_lock);
	if (!scrub)
		return -EINVAL;

	err = wait_for_completion_interruptible(&scrub->done) ? -EINTR : scrub->err;
	if (err != -EINTR) {
		/* Another thread may have waited for it, too. */
		mutex_lock(&client->async_lock);
		if (client->scrub[a->hbm_index] == scrub) {
			client->scrub[a->hbm_index] = NULL;
			neuron_scrub_put(scrub);
		}
		mutex_unlock(&client->async_lock);
	}
	neuron_scrub_put(scrub);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who asks for the reset of cores: their owner, and the end of an ownership.  What the
 * hardware was told about for the owner is held until the reset has ended.
 */
#include <linux/eventfd.h>

#include "../base/client.h"
#include "../base/core.h"
#include "../base/reset.h"
#include "../dma/notify.h"
#include "../dma/queue.h"
#include "reset.h"

/* Hold the queues of a core, which belong to its owner.  Under core->lock. */
static void neuron_core_hold_queues(struct neuron_device *nd, u32 core)
{
	u32 i, first = core * nd->geo->engines_per_core;

	for (i = first; i < first + nd->geo->engines_per_core; i++)
		neuron_engine_hold(nd, i);
	neuron_nqs_hold(nd, core);
}

/**
 * neuron_cores_release() - end a process's ownership of all its cores
 * @client: the process; it starts nothing any more
 *
 * Its cores are reset, which may take longer than this function.
 *
 * Context: may sleep.
 */
void neuron_cores_release(struct neuron_client *client)
{
	struct neuron_device *nd = client->nd;
	unsigned long map = 0, begin = 0;
	u32 i;

	for (i = 0; i < nd->geo->nr_cores; i++)
		if (READ_ONCE(nd->core[i].owner) == client)
			__set_bit(i, &map);
	/* Together: none is free before all whose queues may reach it are being reset. */
	neuron_cores_lock(nd, map);
	for_each_set_bit(i, &map, NEURON_HW_MAX_CORES) {
		struct neuron_core *c = &nd->core[i];

		WRITE_ONCE(c->owner, NULL);
		WRITE_ONCE(c->dirty, true);
		if (neuron_core_reset_mark(c))
			__set_bit(i, &begin);
		else
			/* What the process did after that reset began may have come too late. */
			c->again = true;
		neuron_core_hold_queues(nd, i);
		neuron_core_reset_eventfd(c, NULL);
		neuron_crwl_reset(&c->crwl);
	}
	neuron_cores_unlock(nd, map);
	neuron_core_reset_run(nd, begin);
}

/**
 * neuron_cores_reset() - reset cores for their owner
 * @client: caller; owns the cores, or nobody does
 * @map: bit by core number; all of them exist
 *
 * Their DMA queues and notification queues are gone afterwards.
 *
 * Context: sleeps until the resets have ended.
 * Return: 0; -EBUSY another process owns or has claimed one; -EIO a reset failed; -ENODEV;
 *	   -EINTR.
 */
int neuron_cores_reset(struct neuron_client *client, unsigned long map)
{
	struct neuron_device *nd = client->nd;
	u32 epoch[NEURON_HW_MAX_CORES], i;
	unsigned long begin = 0;
	int err = 0, wait;

	/* All or nothing: check all cores before the first one is reset. */
	neuron_cores_lock(nd, map);
	for_each_set_bit(i, &map, NEURON_HW_MAX_CORES)
		err = err ?: neuron_core_check(&nd->core[i], client);
	for_each_set_bit(i, &map, NEURON_HW_MAX_CORES) {
		if (err)
			break;
		if (neuron_core_reset_request(&nd->core[i]))
			__set_bit(i, &begin);
		epoch[i] = nd->core[i].epoch;
		neuron_core_hold_queues(nd, i);
	}
	neuron_cores_unlock(nd, map);
	if (err)
		return err;
	neuron_core_reset_run(nd, begin);
	for_each_set_bit(i, &map, NEURON_HW_MAX_CORES) {
		wait = neuron_core_reset_wait(&nd->core[i], epoch[i]);
		err = err ?: wait;
	}
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Reset of a core for its owner, and the end of an ownership. */
#include <linux/eventfd.h>

#include "../base/client.h"
#include "../base/core.h"
#include "../compat/compat.h"
#include "../dma/notify.h"
#include "../dma/queue.h"
#include "reset.h"

/**
 * neuron_core_release() - end a process's ownership of a core
 * @nd: device
 * @core: core number
 * @client: the process; nothing happens if it is not the owner
 *
 * Context: may sleep.  When it returns, the core makes no access.
 */
void neuron_core_release(struct neuron_device *nd, u32 core, struct neuron_client *client)
{
	struct neuron_core *c = &nd->core[core];

	if (READ_ONCE(c->owner) != client)
		return;
	mutex_lock(&c->lock);
	if (c->owner == client) {
		if (neuron_core_clean(nd, core) && !neuron_device_gone(nd))
			dev_err(&nd->dev, "core %u does not reset\n", core);
		neuron_nqs_release(nd, core);
		neuron_core_reset_eventfd(c, NULL);
		neuron_crwl_reset(&c->crwl);
		nd->ops->core_bind(nd, core, NULL);
		WRITE_ONCE(c->owner, NULL);
	}
	mutex_unlock(&c->lock);
}

/**
 * neuron_core_reset() - reset a core for its owner
 * @nd: device
 * @core: core number
 * @client: caller; owns the core, or nobody does
 *
 * Its DMA queues and notification queues are gone afterwards.
 *
 * Context: may sleep.
 * Return: 0; -EINVAL; -EBUSY another process owns or has claimed it; -EIO reset failed.
 */
int neuron_core_reset(struct neuron_device *nd, u32 core, struct neuron_client *client)
{
	struct neuron_core *c;
	u32 eng, first;
	int err;

	if (!neuron_index_valid(&core, nd->geo->nr_cores))
		return -EINVAL;
	first = core * nd->geo->engines_per_core;
	c = &nd->core[core];
	mutex_lock(&c->lock);
	err = neuron_core_check(c, client);
	if (err)
		goto unlock;
	for (eng = first; eng < first + nd->geo->engines_per_core; eng++)
		neuron_engine_release(client, eng);
	err = neuron_core_try_reset(nd, core);
	if (!err) {
		neuron_nqs_release(nd, core);
		nd->ops->core_bind(nd, core, c->owner ? &client->space : NULL);
	}
	/* Signalled last, so that the listener finds a core that works. */
	if (c->reset_eventfd)
		neuron_eventfd_signal(c->reset_eventfd);
unlock:
	mutex_unlock(&c->lock);
	return err;
}

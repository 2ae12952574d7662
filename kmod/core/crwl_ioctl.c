// SPDX-License-Identifier: GPL-2.0-only
/* ioctls of the cooperative lock and of the handshake that initialises a core. */
#include <linux/sched.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/core.h"
#include "../base/trace.h"

#define NEURON_READER_TIMEOUT	HZ		/* uapi/FACTS.md 2 */
#define NEURON_WRITER_TIMEOUT	(4 * HZ)

static int neuron_crwl_change(struct neuron_client *client, const struct neuron_ioctl_crwl *a,
			      neuron_crwl_fn fn, long timeout)
{
	u32 nc = a->nc_id;

	if (!neuron_index_valid(&nc, client->nd->geo->nr_cores))
		return -EINVAL;
	return neuron_crwl(client, nc, &a->uuid, fn, timeout);
}

/* Make the caller a reader: an execution begins. */
static int neuron_crwl_exec(struct neuron_client *client, const struct neuron_ioctl_crwl *a,
			    neuron_crwl_fn fn, long timeout)
{
	int err = neuron_crwl_change(client, a, fn, timeout);

	if (!err)
		trace_neuron_exec_start(client->nd->dev.id, a->nc_id, task_tgid_nr(current));
	return err;
}

int neuron_do_crwl_reader_enter(struct neuron_call *call)
{
	return neuron_crwl_exec(call->client, call->arg, neuron_crwl_read, NEURON_READER_TIMEOUT);
}

int neuron_do_crwl_reader_exit(struct neuron_call *call)
{
	const struct neuron_ioctl_crwl *a = call->arg;
	int err = neuron_crwl_change(call->client, a, neuron_crwl_read_end, NEURON_READER_TIMEOUT);

	if (!err)
		trace_neuron_exec_finish(call->nd->dev.id, a->nc_id, task_tgid_nr(current));
	return err;
}

/* Only a process that could use a core may lock it. */
static int neuron_crwl_admit(struct neuron_client *client, u32 nc)
{
	struct neuron_core *core = &client->nd->core[nc];
	int err;

	mutex_lock(&core->lock);
	err = neuron_core_check(core, client);
	mutex_unlock(&core->lock);
	return err;
}

int neuron_do_crwl_writer_enter(struct neuron_call *call)
{
	struct neuron_ioctl_crwl *a = call->arg;
	int err;

	if (!neuron_index_valid(&a->nc_id, call->nd->geo->nr_cores))
		return -EINVAL;
	err = neuron_crwl_admit(call->client, a->nc_id) ?:
	      neuron_crwl(call->client, a->nc_id, &a->uuid, neuron_crwl_write,
			  NEURON_WRITER_TIMEOUT);
	/* Another process may have become the owner meanwhile. */
	if (!err) {
		err = neuron_crwl_admit(call->client, a->nc_id);
		if (err)
			neuron_crwl_drop(&call->nd->core[a->nc_id].crwl, call->client);
	}
	return err;
}

int neuron_do_crwl_writer_downgrade(struct neuron_call *call)
{
	return neuron_crwl_exec(call->client, call->arg, neuron_crwl_downgrade,
				NEURON_WRITER_TIMEOUT);
}

int neuron_do_cinit_set_state(struct neuron_call *call)
{
	struct neuron_ioctl_cinit_set *a = call->arg;

	if (!neuron_index_valid(&a->nc_id, call->nd->geo->nr_cores))
		return -E2BIG;
	if (a->state != NEURON_CINIT_STATE_STARTED && a->state != NEURON_CINIT_STATE_COMPLETED)
		return -EINVAL;
	return neuron_core_acquire(call->nd, a->nc_id, call->client) ?:
	       neuron_cinit(call->client, a->nc_id, a->state, &a->new_state);
}

/* Only the firmware of v1 starts models by itself (uapi/FACTS.md 2). */
int neuron_do_nc_model_started_count(struct neuron_call *call)
{
	struct neuron_ioctl_nc_model_started_count *a = call->arg;

	if (a->nc_id >= call->nd->geo->nr_cores)
		return -E2BIG;
	a->started_count = 0;
	return 0;
}

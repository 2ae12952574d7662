// SPDX-License-Identifier: GPL-2.0-only
/* ioctls that describe the device, and those of cores, semaphores and events. */
#include <linux/eventfd.h>
#include <linux/pid.h>
#include <linux/sched.h>

#include "../../uapi/neuron_isa.h"
#include "../base/call.h"
#include "../base/client.h"
#include "../base/core.h"
#include "../base/eventfd.h"
#include "reg_ioctl.h"
#include "reset.h"

int neuron_do_nop(struct neuron_call *call)
{
	return 0;
}

int neuron_do_device_info(struct neuron_call *call)
{
	struct neuron_ioctl_device_info *a = call->arg;
	const struct neuron_device_desc *desc = &call->nd->desc;
	u32 i;

	a->architecture = call->nd->geo->arch;
	a->revision = call->nd->geo->revision;
	a->connected_device_count = desc->nr_neighbours;
	for (i = 0; i < desc->nr_neighbours; i++)
		a->connected_devices[i] = desc->neighbours[i];
	for (i = 0; i < NEURON_MAX_BARS; i++)
		a->bar_address[i] = NEURON_BAR_COOKIE(i);
	a->bar_size[neuron_cores_bar_entry(call->nd)] = neuron_bar_size(call->nd);
	return 0;
}

int neuron_do_device_basic_info(struct neuron_call *call)
{
	struct neuron_ioctl_device_basic_info *a = call->arg;

	a->architecture = call->nd->geo->arch;
	a->revision = call->nd->geo->revision;
	return 0;
}

int neuron_do_driver_info_get(struct neuron_call *call)
{
	struct neuron_ioctl_device_driver_info *a = call->arg;

	a->architecture = call->nd->geo->arch;
	a->revision = call->nd->geo->revision;
	a->version = NEURON_DEVICE_DRIVER_INFO_VERSION0;
	a->size = sizeof(*a);
	/* Only features that work are announced. */
	a->feature_flags1 = NEURON_DRIVER_FEATURE_DMABUF |
			    NEURON_DRIVER_FEATURE_ASYNC_DMA |
			    NEURON_DRIVER_FEATURE_BATCH_DMAQ_INIT |
			    NEURON_DRIVER_FEATURE_BIG_CORE_MAPS |
			    NEURON_DRIVER_FEATURE_MEM_ALLOC_TYPE |
			    NEURON_DRIVER_FEATURE_HBM_SCRUB |
			    NEURON_DRIVER_FEATURE_MEM_ALLOC64;
	return 0;
}

int neuron_do_compatible_version(struct neuron_call *call)
{
	struct neuron_ioctl_compatible_version *a = call->arg;

	a->min = call->nd->geo->compat_min;
	a->max = call->nd->geo->compat_max;
	return 0;
}

int neuron_do_host_device_id(struct neuron_call *call)
{
	struct neuron_ioctl_host_device_id *a = call->arg;

	a->host_device_id = neuron_device_index(call->nd);
	return 0;
}

/* The process that has been attached longest; 0 if there is none. */
int neuron_do_device_app_pid(struct neuron_call *call)
{
	struct neuron_device *nd = call->nd;
	struct neuron_client *client;

	mutex_lock(&nd->clients_lock);
	client = list_first_entry_or_null(&nd->clients, struct neuron_client, node);
	*(s32 *)call->arg = client ? pid_vnr(client->pid) : 0;
	mutex_unlock(&nd->clients_lock);
	return 0;
}

static int neuron_reset_cores(struct neuron_client *client, u32 map)
{
	if (!map || map & ~GENMASK(client->nd->geo->nr_cores - 1, 0))
		return -EINVAL;
	return neuron_cores_reset(client, map);
}

/* The reset is done when this returns.  The token exists because callers wait with it. */
int neuron_do_nc_reset(struct neuron_call *call)
{
	struct neuron_ioctl_device_reset *a = call->arg;
	int err;

	err = neuron_reset_cores(call->client, a->nc_map == NEURON_NC_MAP_DEVICE ?
				     GENMASK(call->nd->geo->nr_cores - 1, 0) : a->nc_map);
	if (!err)
		a->request_id = pid_vnr(call->client->pid);
	return err;
}

int neuron_do_device_reset(struct neuron_call *call)
{
	return neuron_reset_cores(call->client, GENMASK(call->nd->geo->nr_cores - 1, 0));
}

/* DEVICE_READY and DEVICE_RESET_STATUS: no core is being reset or has failed to. */
int neuron_do_device_ready(struct neuron_call *call)
{
	u8 *ready = call->arg;
	u32 i;

	*ready = 1;
	for (i = 0; i < call->nd->geo->nr_cores; i++)
		if (READ_ONCE(call->nd->core[i].state) != NEURON_CORE_READY)
			*ready = 0;
	return 0;
}

int neuron_do_nc_reset_ready(struct neuron_call *call)
{
	struct neuron_ioctl_device_ready *a = call->arg;

	a->result = a->request_id == pid_vnr(call->client->pid) ? 0 : 1;
	return 0;
}

int neuron_do_native_reset_eventfd(struct neuron_call *call)
{
	struct neuron_native_reset_eventfd *a = call->arg;
	struct eventfd_ctx *eventfd;
	struct neuron_core *core;
	int err;

	if (a->flags || !neuron_index_valid(&a->nc_id, call->nd->geo->nr_cores))
		return -EINVAL;
	err = neuron_eventfd_get(a->eventfd, &eventfd);
	if (err)
		return err;
	core = &call->nd->core[a->nc_id];
	mutex_lock(&core->lock);
	if (core->owner == call->client)
		neuron_core_reset_eventfd(core, eventfd);
	else
		err = core->owner ? -EBUSY : -ENOENT;
	mutex_unlock(&core->lock);
	if (err && eventfd)
		eventfd_ctx_put(eventfd);
	return err;
}

/* Blocks of semaphore registers, in order. */
enum neuron_sem_block {
	NEURON_SEM_READ,
	NEURON_SEM_SET,
	NEURON_SEM_INC,
	NEURON_SEM_DEC,
};

static int neuron_semaphore(struct neuron_client *client, const struct neuron_ioctl_semaphore *a,
			    enum neuron_sem_block block, u32 *read)
{
	struct neuron_device *nd = client->nd;
	u32 index = a->semaphore_index, core = a->nc_id;
	u32 off;
	int err;

	if (!neuron_index_valid(&core, nd->geo->nr_cores))
		return -E2BIG;
	if (!neuron_index_valid(&index, nd->geo->nr_semaphores))
		return -EINVAL;
	err = neuron_core_acquire(nd, core, client);
	if (err)
		return err;
	off = NEURON_ISA_SEM_READ_OFF(index) + block * nd->geo->sem_block;
	if (read)
		return neuron_core_read(nd, core, client, off, read);
	return neuron_core_write(nd, core, client, off, a->value);
}

int neuron_do_semaphore_increment(struct neuron_call *call)
{
	return neuron_semaphore(call->client, call->arg, NEURON_SEM_INC, NULL);
}

int neuron_do_semaphore_decrement(struct neuron_call *call)
{
	return neuron_semaphore(call->client, call->arg, NEURON_SEM_DEC, NULL);
}

int neuron_do_semaphore_read(struct neuron_call *call)
{
	struct neuron_ioctl_semaphore *a = call->arg;

	return neuron_semaphore(call->client, a, NEURON_SEM_READ, &a->value);
}

int neuron_do_semaphore_write(struct neuron_call *call)
{
	return neuron_semaphore(call->client, call->arg, NEURON_SEM_SET, NULL);
}

static int neuron_event(struct neuron_client *client, struct neuron_ioctl_event *a, bool set)
{
	struct neuron_device *nd = client->nd;
	u32 off;
	int err;

	if (!neuron_index_valid(&a->nc_id, nd->geo->nr_cores))
		return -E2BIG;
	if (!neuron_index_valid(&a->event_index, nd->geo->nr_events))
		return -EINVAL;
	err = neuron_core_acquire(nd, a->nc_id, client);
	if (err)
		return err;
	off = NEURON_ISA_EVENT_OFF(a->event_index);
	if (set)
		return neuron_core_write(nd, a->nc_id, client, off, a->value);
	return neuron_core_read(nd, a->nc_id, client, off, &a->value);
}

int neuron_do_event_set(struct neuron_call *call)
{
	return neuron_event(call->client, call->arg, true);
}

int neuron_do_event_get(struct neuron_call *call)
{
	return neuron_event(call->client, call->arg, false);
}

int neuron_do_native_get_geometry(struct neuron_call *call)
{
	struct neuron_native_geometry *a = call->arg;
	const struct neuron_geometry *geo = call->nd->geo;
	u32 i;

	BUILD_BUG_ON(NEURON_HW_MAX_HBMS > NEURON_NATIVE_MAX_HBMS);
	if (a->__reserved)
		return -EINVAL;
	a->arch = geo->arch;
	a->nr_cores = geo->nr_cores;
	a->nr_hbms = geo->nr_hbms;
	a->nr_dma_engines = geo->nr_dma_engines;
	a->engines_per_core = geo->engines_per_core;
	a->nr_queues = NEURON_HW_QUEUES_PER_ENGINE;
	a->nr_semaphores = geo->nr_semaphores;
	a->nr_events = geo->nr_events;
	a->nr_topsp = geo->nr_topsp;
	a->nr_nq_types = geo->nr_nq_types;
	a->nr_nq_engines = geo->nr_nq_engines;
	a->isa_version = geo->isa_version;
	a->host_window = geo->host_window;
	a->tpb_size = geo->tpb_size;
	a->sbuf_size = geo->sbuf_size;
	for (i = 0; i < geo->nr_hbms; i++) {
		a->hbm[i].base = geo->hbm[i].base;
		a->hbm[i].size = geo->hbm[i].size;
	}
	for (i = 0; i < geo->nr_cores; i++) {
		a->tpb_base[i] = geo->tpb_base[i];
		/* HBM h lies next to cores h*n .. h*n+n-1 (uapi/FACTS.md 4). */
		a->core_hbm[i] = i * geo->nr_hbms / geo->nr_cores;
	}
	return 0;
}

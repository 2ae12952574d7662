// SPDX-License-Identifier: LGPL-2.1-or-later
/* Idle models to host memory, so that others fit (room.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/lock.h"
#include "../../common/util.h"
#include "../base/log.h"
#include "model.h"
#include "room.h"

/* Of device memories; two may share one. */
static pthread_mutex_t locks[64] = { [0 ... 63] = PTHREAD_MUTEX_INITIALIZER };

static void lock_memory(struct nrt_room *room)
{
	size_t memory = neuron_device_index(room->vnc->device) * NEURON_MAX_HBMS +
			neuron_device_geometry(room->vnc->device)->core_hbm[room->vnc->nc];

	room->lock = &locks[memory % ARRAY_SIZE(locks)];
	pthread_mutex_lock(room->lock);
}

void nrt_room_begin(struct nrt_room *room, const struct nrt_vnc *vnc)
{
	*room = (struct nrt_room){ .vnc = vnc };
	if (nrt_process.env.offload)
		lock_memory(room);
}

void nrt_room_end(struct nrt_room *room, int ret)
{
	if (room->lock)
		pthread_mutex_unlock(room->lock);
	/* It ended with something else than what was refused: a model is too large for any device. */
	if (ret && room->wanted)
		nrt_refused(room->vnc->device, &room->failure, NULL);
}

void nrt_room_forget(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(locks); i++)
		pthread_mutex_init(&locks[i], NULL);
}

/* It has memory there that it would give back. */
static bool candidate(const struct nrt_model *m, const struct nrt_room *room, uint32_t hbm)
{
	return m->vnc->device == room->vnc->device && !neuron_model_offloaded(m->model) &&
	       neuron_device_geometry(m->vnc->device)->core_hbm[m->vnc->nc] == hbm;
}

static uint64_t bytes_of(const struct nrt_model *m)
{
	struct neuron_model_usage u = { .size = sizeof(u) };

	if (neuron_model_get_usage(m->model, &u))
		return 0;
	return nrt_usage_bytes(&u) + neuron_core_scratchpad(m->vnc->core);
}

/*
 * Whether it is worth while: without a model, or with all of them gone, it would not fit either. A
 * scratchpad that several share counts several times.
 */
static bool could_fit(const struct nrt_room *room, const struct neuron_mem_failure *f)
{
	uint64_t bytes = f->free;
	size_t nr = 0;

	if (!nrt_process.env.offload || room->none_left || f->reason == NEURON_MEM_REASON_NONE ||
	    f->reason == NEURON_MEM_REASON_HOST)
		return false;
	GUARD(&nrt_process.lock);
	for (const struct nrt_model *m = nrt_process.models; m; m = m->next) {
		nr++;
		if (candidate(m, room, f->hbm))
			bytes += bytes_of(m);
	}
	/* Another process may take what they leave. */
	return bytes > f->free && f->bytes <= bytes && room->gone < nr;
}

void nrt_room_refused(void *data, const struct neuron_mem_failure *failure,
		      const struct neuron_report_model *loading)
{
	struct nrt_room *room = data;

	room->wanted = could_fit(room, failure);
	room->failure = *failure;
	/* Of 0 bytes nothing was refused: a model cannot come back as it was. */
	if (!room->wanted && failure->bytes)
		nrt_refused(room->vnc->device, failure, loading);
}

struct idle {
	struct nrt_model *model;	/* to be put */
	uint64_t used;			/* as it was when they were listed */
};

static int by_use(const void *a, const void *b)
{
	const struct idle *m = a, *n = b;

	return m->used < n->used ? -1 : m->used > n->used;
}

/* The models that could go, the one that was used longest ago first; to be freed. */
static struct idle *find(const struct nrt_room *room, size_t *nr)
{
	struct nrt_process *p = &nrt_process;
	struct nrt_model *m;
	struct idle *list;
	size_t n = 0;

	GUARD(&p->lock);
	for (m = p->models; m; m = m->next)
		n++;
	list = calloc(n + 1, sizeof(*list));
	*nr = 0;
	for (m = p->models; m && list; m = m->next)
		if (candidate(m, room, room->failure.hbm)) {
			m->refs++;
			list[(*nr)++] = (struct idle){ m, atomic_load(&m->used) };
		}
	if (list)
		qsort(list, *nr, sizeof(*list), by_use);
	return list;
}

/* In its turn. */
static bool offload(struct nrt_model *m)
{
	int ret = neuron_model_offload(m->model);

	if (ret && ret != -EALREADY)
		LOG_AS(NMGR, WARN, "nrt_offload", "%s stays on the device: %s",
		       neuron_model_name(m->model), strerror(-ret));
	else if (!ret)
		LOG_AS(NMGR, INFO, "nrt_offload", "%s is in host memory: %s are free for others",
		       neuron_model_name(m->model), SIZE_TEXT(neuron_model_offloaded(m->model)));
	/* Somebody else's request has made it go. */
	return !ret || ret == -EALREADY;
}

/* One that nobody runs, or else the first one, after its run. */
static bool offload_one(const struct idle *list, size_t nr)
{
	bool gone = false;

	for (size_t i = 0; i < nr && !gone; i++) {
		if (!turn_try(&list[i].model->turn))
			continue;
		gone = offload(list[i].model);
		turn_give(&list[i].model->turn);
	}
	if (gone || !nr)
		return gone;
	turn_take(&list[0].model->turn);
	gone = offload(list[0].model);
	turn_give(&list[0].model->turn);
	return gone;
}

bool nrt_room_made(struct nrt_room *room, int ret)
{
	struct idle *list;
	size_t nr;

	if (ret != -ENOMEM || !room->wanted)
		return false;
	room->wanted = false;
	if (!room->lock) {
		/* There may be room, from somebody who had the lock. */
		lock_memory(room);
		return true;
	}
	list = find(room, &nr);
	room->none_left = !offload_one(list, nr);
	room->gone++;
	for (size_t i = 0; i < nr; i++)
		nrt_model_put(list[i].model);
	free(list);
	return true;
}

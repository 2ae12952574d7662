/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Room for what the driver refuses: idle models go to host memory (NEURON_RT_OFFLOAD). */
#ifndef NRT_ROOM_H
#define NRT_ROOM_H

#include <pthread.h>

#include "../base/process.h"
#include "report.h"

/* Of one request; zeroed but for the core, or begun. */
struct nrt_room {
	const struct nrt_vnc *vnc;
	struct neuron_mem_failure failure;
	pthread_mutex_t *lock;	/* of the device memory, held */
	bool wanted;		/* @failure is not in the log: it may be no failure after all */
	bool none_left;
	size_t gone;		/* models that went for the request */
};

/*
 * Before a request that takes several pieces, and gives them back when it fails: a memory has one at a
 * time, so that one does not fail for what another holds for a moment. Who has a turn of a model must
 * not be here, because others wait for that inside.
 */
void nrt_room_begin(struct nrt_room *room, const struct nrt_vnc *vnc);
/* Behind the last try, which ended with @ret. */
void nrt_room_end(struct nrt_room *room, int ret);
/*
 * The driver has refused something. It is in the log, unless models could make room for it. As
 * struct neuron_model_opts.refused, @room is a struct nrt_room.
 */
void nrt_room_refused(void *room, const struct neuron_mem_failure *failure,
		      const struct neuron_report_model *loading);
/*
 * Whether the request, which ended with @ret, is to be tried once more: the model that was used
 * longest ago has gone, after its run if all are in one.
 */
bool nrt_room_made(struct nrt_room *room, int ret);
/* In a child of fork(). */
void nrt_room_forget(void);

#endif

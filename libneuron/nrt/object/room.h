/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Room for what the driver refuses: idle models go to host memory (NEURON_RT_OFFLOAD). */
#ifndef NRT_ROOM_H
#define NRT_ROOM_H

#include <pthread.h>

#include "report.h"

/* Of one request. */
struct nrt_room {
	struct neuron_device *device;
	struct neuron_mem_failure failure;
	pthread_mutex_t *lock;	/* of the device; NULL: models stay where they are */
	bool wanted;		/* @failure is not in the log: it may be no failure after all */
	bool none_left;
	size_t gone;		/* models that went for the request */
};

/*
 * Before the request, until nrt_room_end(). A device has one at a time, so that what one has made
 * room for is not another's. Locks of models are taken inside.
 */
void nrt_room_begin(struct nrt_room *room, struct neuron_device *device);
void nrt_room_end(struct nrt_room *room);
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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The one that passes messages on, in the process with rank 0. */
#ifndef NRT_HUB_H
#define NRT_HUB_H

#include <pthread.h>

#include "place.h"

extern pthread_mutex_t comm_lock;

/* Both under comm_lock; stopping lets go of it meanwhile. */
/* 0 or -errno, -EADDRINUSE somebody else has rank 0; a hub that runs has the place. */
int hub_start(struct comm_place *place, uint32_t count);
void hub_stop(void);
void hub_forget(void);

#endif

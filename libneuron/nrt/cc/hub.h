/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The place where the ranks of a job meet, and the one who passes messages on there, in
 * the process with rank 0.
 */
#ifndef NRT_HUB_H
#define NRT_HUB_H

#include <pthread.h>
#include <sys/un.h>

#include <nrt/nrt.h>

#include "message.h"
#include "world.h"

struct comm_place {
	int dir;
	char name[64];			/* in it: of the file with the secret */
	union world_address root;
	enum comm_reach {
		COMM_LOOPBACK,		/* nobody comes there from elsewhere */
		COMM_LOCAL,
		COMM_REMOTE,		/* not an address of this host */
	} reach;
};

NRT_STATUS comm_place_open(const char *func, struct comm_place *place);
void comm_place_close(struct comm_place *place);
void comm_place_address(const struct comm_place *place, struct sockaddr_un *address);
/* What the process with rank 0 has written there.  0 or -errno. */
int comm_place_secret(const struct comm_place *place, uint8_t key[COMM_KEY]);
/* As rank 0, with a new secret: a lock or -errno, -EADDRINUSE somebody else is there. */
int comm_place_take(const struct comm_place *place, uint8_t secret[COMM_KEY]);
void comm_place_leave(const struct comm_place *place, int lock);
int comm_place_host(const struct comm_place *place, uint8_t host[WORLD_HOST]);
int comm_random(uint8_t key[COMM_KEY]);

extern pthread_mutex_t comm_lock;

/*
 * Both under comm_lock; stopping lets go of it meanwhile.  0 or -errno, -EADDRINUSE
 * somebody else has rank 0; a hub that runs has the place.
 */
int hub_start(struct comm_place *place, uint32_t count);
void hub_stop(void);
/* Under comm_lock: those of its ranks that have not come. */
void hub_missing(bool missing[COMM_MAX_RANKS]);
void hub_forget(void);

#endif

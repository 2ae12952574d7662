/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The holes of a device memory on paper, to try out what would fit into them. */
#ifndef NEURON_LIB_ROOM_H
#define NEURON_LIB_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hole {
	uint64_t at, bytes;
};

struct room {
	struct hole *hole;		/* by address; no two touch */
	size_t count, max;
};

enum room_fit {
	ROOM_LOWEST,
	ROOM_HIGHEST,
	ROOM_TIGHTEST,			/* at the start of the shortest hole that is long enough */
};

/* In the order of addresses; what touches the hole before makes that longer.  0, -ENOMEM */
int room_add(struct room *room, uint64_t at, uint64_t bytes);
/*
 * Takes a piece in whole pages; @align: 0 or a power of two.  0, -ENOSPC there is none,
 * -ENOMEM
 */
int room_take(struct room *room, uint64_t bytes, uint64_t align, enum room_fit fit, uint64_t *at);
/* Takes just these bytes. */
int room_take_at(struct room *room, uint64_t at, uint64_t bytes);

#endif

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

/* An allocation that gives way to a request for which no hole is long enough. */
struct movable {
	uint64_t at, bytes, align;
};

struct room {
	struct hole *hole;		/* by address; no two touch */
	size_t count, max;
	struct movable *movable;	/* by address */
	size_t nr_movable, max_movable;
	uint64_t moved;			/* bytes of them, each time */
	bool still;			/* for a while none of them moves */
};

enum room_fit {
	ROOM_LOWEST,
	ROOM_HIGHEST,
	ROOM_TIGHTEST,			/* at the start of the shortest hole that is long enough */
	ROOM_TIGHTEST_END,		/* at its end */
};

/* In the order of addresses; what touches the hole before makes that longer.  0, -ENOMEM */
int room_add(struct room *room, uint64_t at, uint64_t bytes);
int room_add_movable(struct room *room, uint64_t at, uint64_t bytes, uint64_t align);
void room_free(struct room *room);
/* @to is empty.  0, -ENOMEM */
int room_copy(struct room *to, const struct room *from);
/*
 * Takes a piece in whole pages; @align: 0 or a power of two.  0, -ENOSPC there is none,
 * -ENOMEM
 */
int room_take(struct room *room, uint64_t bytes, uint64_t align, enum room_fit fit, uint64_t *at);
/* Takes just these bytes. */
int room_take_at(struct room *room, uint64_t at, uint64_t bytes);
/* Moves allocations, so that a piece fits or the longest hole becomes longer.  0, -ENOMEM */
int room_move(struct room *room, uint64_t bytes, uint64_t align);
/* As room_take(), but for a piece that finds no place allocations move. */
int room_ask(struct room *room, uint64_t bytes, uint64_t align, enum room_fit fit, uint64_t *at);
/* Its allocations move to where they are in @moved, a copy in which others did.  0, -ENOMEM */
int room_follow(struct room *room, const struct room *moved);

#endif

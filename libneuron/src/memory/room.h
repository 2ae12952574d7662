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

/* What the driver's choice of a place depends on besides (room_own.c). */
struct room_use;

struct room {
	struct hole memory;		/* all of it */
	struct hole *hole;		/* by address; no two touch */
	size_t count, max;
	struct movable *movable;	/* by address */
	size_t nr_movable, max_movable;
	uint64_t moved;			/* bytes of them, each time */
	bool still;			/* for a while none of them moves */
	struct room_use *use;		/* NULL: nobody asks for that */
};

enum room_fit {
	ROOM_LOWEST,
	ROOM_HIGHEST,
	ROOM_TIGHTEST,			/* at the start of the shortest hole that is long enough */
	ROOM_TIGHTEST_END,		/* at its end */
	ROOM_OWN,			/* the driver's choice, if the room keeps track: anywhere, */
	ROOM_OWN_LOW,			/* or near an end */
	ROOM_OWN_HIGH,
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
/* The same, behind so many that are in use. */
int room_grow(struct room *room, uint64_t at, uint64_t bytes, uint64_t more);
/* Where room_take() would; @even: a power of two, not below a page.  False: there is no place */
bool room_find(const struct room *room, uint64_t bytes, uint64_t even, enum room_fit fit,
	       uint64_t *at);
/* Keeps track of what is in use, from here on.  0, -ENOMEM */
int room_keep_use(struct room *room);
int room_copy_use(struct room *to, const struct room *from);
void room_free_use(struct room *room);
/* These bytes are in use, or an allocation that is in no frame is not any more. */
void room_count(struct room *room, uint64_t at, uint64_t bytes);
void room_uncount(struct room *room, uint64_t bytes);
/* As room_find() for one of the driver's choices.  0, -ENOSPC, -ENOMEM */
int room_find_own(struct room *room, uint64_t bytes, uint64_t even, enum room_fit fit,
		  uint64_t *at);
/* Moves allocations, so that a piece fits or the longest hole becomes longer.  0, -ENOMEM */
int room_move(struct room *room, uint64_t bytes, uint64_t align);
/* As room_take(), but for a piece that finds no place allocations move. */
int room_ask(struct room *room, uint64_t bytes, uint64_t align, enum room_fit fit, uint64_t *at);
/* Its allocations move to where they are in @moved, a copy in which others did.  0, -ENOMEM */
int room_follow(struct room *room, const struct room *moved);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A load on paper: what it asks for, and places for that in the holes of memories. */
#ifndef NEURON_LIB_ARRANGE_H
#define NEURON_LIB_ARRANGE_H

#include "../memory/held.h"
#include "steps.h"

struct variant;

/* A file, and the cores that it is for. */
struct attempt {
	const struct neuron_neff *neff;
	const struct neuron_geometry *g;
	size_t nr_parts;
	const struct scratchpad *pad[MAX_PARTS];
	/* What their cores have besides, taken first; for a device on which there is nothing else. */
	uint64_t microcode[MAX_PARTS];
	struct variant *variants;
	int error;			/* why nothing can be said, or 0 */
};

/* In which order pieces get their places, and where. */
struct way {
	enum room_fit fit;
	bool longest_first;
	bool dense;			/* as scratchpad_make_dense() */
	bool in_turn;			/* pages when a load asks for them, at no end of the memory */
};

#define NR_WAYS 9u
extern const struct way ways[NR_WAYS];

/* The cores are those of @pad.  Returns the memories that they use, a bit each. */
uint32_t attempt_init(struct attempt *a, const struct neuron_geometry *g,
		      const struct neuron_neff *neff,
		      const struct scratchpad *const pad[MAX_PARTS]);
void attempt_free(struct attempt *a);
/*
 * Takes a place for each piece from @room, the memories by number, and makes the scratchpads
 * longer; @pad: of each part.  After a failure both are half done; it means that there is no
 * place only if the attempt has no error.
 * @spots: the places, to be freed by the caller; NULL if nobody wants to know.
 */
bool attempt_place(struct attempt *a, struct room *room, struct pad *pad, const struct way *way,
		   struct spots *spots);
/* Bytes that it takes however the scratchpads are made, and in how many pieces. */
uint64_t attempt_least(struct attempt *a, uint64_t *pieces);

#endif

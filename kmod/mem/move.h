/* SPDX-License-Identifier: GPL-2.0-only */
/* A chunk that is being moved. */
#ifndef NEURON_MEM_MOVE_H
#define NEURON_MEM_MOVE_H

#include "chunk.h"

struct neuron_compact;
struct neuron_compact_move;
struct neuron_dump_source;
struct neuron_hbm;

/**
 * struct neuron_move - a chunk that is being moved
 * @hbm: where
 * @chunk: held
 * @piece: the memory that is not, or no longer, the chunk's
 */
struct neuron_move {
	struct neuron_hbm *hbm;
	struct neuron_chunk *chunk;
	struct neuron_chunk piece;
};

#define NEURON_MOVE_STAY	32	/* chunks that a compaction left where they are */

/**
 * struct neuron_move_view - what a compaction sees
 * @hbm: where
 * @src: the processes whose memory it moves
 * @nr: their number
 * @stay: addresses of chunks that could not be moved
 * @nr_stay: their number
 */
struct neuron_move_view {
	struct neuron_hbm *hbm;
	struct neuron_dump_source *src;
	u32 nr;
	u64 stay[NEURON_MOVE_STAY];
	u32 nr_stay;
};

void neuron_move_picture(const struct neuron_move_view *view, struct neuron_compact *c, u64 budget);
int neuron_move_begin(const struct neuron_move_view *view, const struct neuron_compact_move *plan,
		      struct neuron_move *move);
int neuron_move_end(struct neuron_move *move, int err);

/* Is it still worth while to copy? */
static inline bool neuron_move_wanted(const struct neuron_move *move)
{
	return READ_ONCE(move->chunk->moving) == NEURON_MOVING;
}

#endif

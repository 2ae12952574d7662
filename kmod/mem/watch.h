/* SPDX-License-Identifier: GPL-2.0-only */
/* A check for developers: the users of ranges of device memory. */
#ifndef NEURON_MEM_WATCH_H
#define NEURON_MEM_WATCH_H

#include <linux/jump_label.h>

#include "../base/client.h"
#include "chunk.h"
#include "hbm.h"

struct neuron_watch;

DECLARE_STATIC_KEY_FALSE(neuron_watching);
struct neuron_watch *neuron_watch_range(struct neuron_hbm *hbm, u64 off, u64 len,
					enum neuron_user as);
void neuron_watch_end(struct neuron_watch *w);
enum neuron_user neuron_watch_user(struct neuron_hbm *hbm, u64 off, u64 len);
void neuron_watch_freed(struct neuron_hbm *hbm, u64 off, u64 len);

/* @off: from the start of the HBM. */
static inline struct neuron_watch *neuron_watch(struct neuron_device *nd, u32 hbm, u64 off,
						u64 len, enum neuron_user as)
{
	return static_branch_unlikely(&neuron_watching) ?
	       neuron_watch_range(&nd->hbm[hbm], off, len, as) : NULL;
}

/* @off: from the start of the chunk. */
static inline struct neuron_watch *neuron_watch_chunk(const struct neuron_chunk *chunk, u64 off,
						      u64 len, enum neuron_user as)
{
	return chunk->host ? NULL :
	       neuron_watch(chunk->client->nd, chunk->hbm, chunk->block.addr + off, len, as);
}

static inline void neuron_unwatch(struct neuron_watch *w)
{
	if (static_branch_unlikely(&neuron_watching) && w)
		neuron_watch_end(w);
}

/* Memory goes back to the allocator. */
static inline void neuron_watch_free(struct neuron_hbm *hbm, u64 off, u64 len)
{
	if (static_branch_unlikely(&neuron_watching))
		neuron_watch_freed(hbm, off, len);
}

#endif

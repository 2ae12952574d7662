/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The scratchpad of a core, which its models share: one region, which can be empty, and
 * pages behind it.  In paged mode there are only pages; in contiguous mode there are pages
 * only when the region could not grow.
 *
 * Descriptors of loaded models point there: what there is never moves, and more is added
 * behind it.
 */
#ifndef NEURON_LIB_SCRATCHPAD_H
#define NEURON_LIB_SCRATCHPAD_H

#include "mem.h"

#define SCRATCHPAD_PAGE (512ull << 20)
/* By which the region grows. */
#define SCRATCHPAD_STEP (64ull << 20)
/* What the start of every piece is aligned to. */
#define SCRATCHPAD_ALIGN (1u << 20)

struct scratchpad_layout {
	uint64_t region;		/* bytes */
	uint64_t page;
};

/* Where a load has to take its memory, in the order in which it asks for it. */
struct spots {
	uint64_t *at;
	size_t count, max, next;
};

/* For what there is no room: it is not asked for. */
#define SPOT_NONE UINT64_MAX

static inline bool spots_next(struct spots *spots, struct neuron_mem_opts *opts)
{
	if (!spots)
		return true;
	opts->address = spots->next < spots->count ? spots->at[spots->next++] : SPOT_NONE;
	opts->flags = NEURON_MEM_F_AT;
	return opts->address != SPOT_NONE;
}

/* Part of a model, for as long as it is loaded. */
struct scratchpad_user {
	uint64_t need;
	uint32_t owner;			/* of the model's memory; 0: none of its own */
	struct scratchpad_user *next;
};

struct scratchpad {
	struct scratchpad *next;	/* of the device, its scratchpads_lock */
	struct neuron_device *device;	/* the core's, like all up to the lock */
	uint32_t nc;
	uint32_t hbm;
	uint64_t page;
	bool contiguous;
	pthread_mutex_t lock;		/* the rest; nothing but memory is taken under it */
	bool dense;			/* the next region need not be apart from those of other cores */
	struct neuron_mem *region;
	struct neuron_mem **pages;
	size_t nr_pages;
	struct scratchpad_user *users;
};

/* The rest of it is filled in; it is one of the device's from here on. */
void scratchpad_init(struct scratchpad *s);
void scratchpad_free(struct scratchpad *s);
/* What the start of a region is aligned to, so that regions of other cores can grow. */
uint64_t scratchpad_region_align(const struct scratchpad *s, const struct neuron_geometry *g,
				 bool dense);
/*
 * Room for a user, who counts from here on; *@layout is what there is now.  Pages that only
 * a failed call made go with the next user that leaves.  @spots: NULL, where it likes.
 */
int scratchpad_join(struct scratchpad *s, struct scratchpad_user *user, struct spots *spots,
		    struct scratchpad_layout *layout, struct neuron_mem_failure *failure);
/* Give back what nobody needs any more.  @user may be one that did not join. */
void scratchpad_leave(struct scratchpad *s, const struct scratchpad_user *user);
/* Whether the region would be elsewhere if it were dense, and only @user would have to move. */
bool scratchpad_could_move(struct scratchpad *s, const struct scratchpad_user *user);
/* Until it has no region any more. */
void scratchpad_make_dense(struct scratchpad *s);
/* Device address of a byte that there is memory for. */
uint64_t scratchpad_address(struct scratchpad *s, uint64_t offset);
uint64_t scratchpad_bytes(struct scratchpad *s);
/* Piece @i of its memory, the region first, at *@offset of the scratchpad; NULL: there is none. */
struct neuron_mem *scratchpad_piece(struct scratchpad *s, size_t i, uint64_t *offset);

/* Device memory document, "Shared scratchpad". */
static inline bool scratchpad_page_valid(uint64_t page)
{
	return page && !(page % SCRATCHPAD_PAGE) && page < 4ull << 30;
}

/* Pages for @need bytes; can be far more than there is memory for. */
static inline uint64_t scratchpad_pages(uint64_t need, uint64_t page)
{
	return need / page + (need % page != 0);
}

/* Whether a variable lies in one page (device memory document, "Shared scratchpad"). */
static inline bool scratchpad_fits(uint64_t offset, uint64_t bytes, uint64_t page)
{
	return bytes <= page && offset % page <= page - bytes;
}

/* Whether it lies in one piece of memory. */
static inline bool scratchpad_placed(const struct scratchpad_layout *layout, uint64_t offset,
				     uint64_t bytes)
{
	if (offset < layout->region)
		return bytes <= layout->region - offset;
	return scratchpad_fits(offset - layout->region, bytes, layout->page);
}

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who holds what of a device's memories at one moment, and what is free there when some of
 * them let go.  The driver refuses a request only if no hole is long enough, so holes are all
 * that has to be known of it.
 */
#ifndef NEURON_LIB_HELD_H
#define NEURON_LIB_HELD_H

#include "room.h"
#include "scratchpad.h"

/* Of those with most memory: a set of them is a word. */
#define HELD_OBJECTS 64u

/* The scratchpad of a core of this process. */
struct pad {
	const struct scratchpad *of;
	uint32_t hbm;
	uint64_t page;
	uint64_t region_at, region;	/* 0 bytes: none */
	size_t nr_pages, nr_users;
	uint64_t *page_at;
	struct pad_user {
		uint32_t owner;
		uint64_t need;
	} *user;
};

struct held {
	struct neuron_release_item object[HELD_OBJECTS];	/* most memory first */
	size_t count;
	struct {
		struct neuron_range *list;
		size_t count;
	} hbm[NEURON_MAX_HBMS];		/* those that were asked for */
	struct pad *pad;
	size_t nr_pads;
	bool empty;			/* as if nothing of it was allocated */
	bool moves;			/* rooms have what the driver would move for a request */
};

/*
 * @hbms: a bit each.  @without: an owner of this process whose memory counts as free, 0: none.
 * Free it also after an error.
 */
int held_read(struct held *held, struct neuron_device *device, uint32_t hbms, uint32_t without);
/* A device with nothing on it, of which @reserved bytes of each memory are never allocated. */
int held_new(struct held *held, const struct neuron_geometry *g, uint64_t reserved);
void held_free(struct held *held);
/* The holes of a memory without the objects of @gone, a bit each.  @room is empty. */
int held_room(const struct held *held, uint32_t hbm, uint64_t gone, struct room *room);
/* Whether an object of this process (@owner), or another process, is of @gone. */
bool held_gone(const struct held *held, uint64_t gone, int32_t pid, uint32_t owner);
/* What a scratchpad is then; NULL: it is not of this process, or has nothing there. */
const struct pad *held_pad(const struct held *held, const struct scratchpad *of, uint64_t gone,
			   struct pad *left);
/*
 * The smallest set with which @fits says so, which can be none at all; the one with the
 * fewest bytes of several.
 * @need: bytes that have to be free before it is worth to ask.  @steps: that it takes to ask,
 * for each range.
 * 0; -ENOENT there is none.
 */
int held_search(const struct held *held, uint64_t need, uint64_t steps,
		bool (*fits)(void *data, const struct held *held, uint64_t gone), void *data,
		struct neuron_release *release);

#endif

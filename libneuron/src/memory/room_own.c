// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Finding a place on paper (room.h): by address or length, or where the driver's allocator
 * puts what it may put anywhere.  Of that, requests of up to 512 KiB share frames, which are
 * taken at an end of the memory.  Longer ones go to the top if they are of the smallest sizes,
 * which make a sixteenth of what is in use, else where they leave little, or something useful.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/util.h"
#include "room.h"

#define GRANULE		4096u
#define SHARE_MAX	(512u << 10)	/* of a request, to share a frame */
#define FRAME		(2u << 20)
#define SMALLEST_PART	16u		/* of what is in use */
#define CLASSES		256u		/* of sizes, eight to an octave */

struct room_use {
	struct hole *frame;		/* by address */
	size_t nr_frames, max_frames;
	uint64_t in_frames;		/* granules in use there; and elsewhere, by size */
	uint32_t in_use[CLASSES];
};

/* Free bytes, in no frame or in one. */
struct piece {
	uint64_t at, bytes;
	size_t frame;			/* index + 1, or 0 */
};

struct walk {
	const struct room *room;
	const struct room_use *use;	/* NULL: holes are whole, whatever frames are in them */
	size_t hole, frame;
	uint64_t at;
};

/* The pieces of the holes by address; they end where frames do. */
static bool next_piece(struct walk *w, struct piece *p)
{
	const struct room_use *u = w->use;
	const struct room *r = w->room;
	uint64_t end;

	while (w->hole < r->count && r->hole[w->hole].at + r->hole[w->hole].bytes <= w->at)
		w->hole++;
	if (w->hole == r->count)
		return false;
	*p = (struct piece){ .at = MAX(w->at, r->hole[w->hole].at) };
	end = r->hole[w->hole].at + r->hole[w->hole].bytes;
	while (u && w->frame < u->nr_frames && u->frame[w->frame].at + u->frame[w->frame].bytes <= p->at)
		w->frame++;
	if (u && w->frame < u->nr_frames) {
		const struct hole *f = &u->frame[w->frame];

		p->frame = f->at <= p->at ? w->frame + 1 : 0;
		end = MIN(end, p->frame ? f->at + f->bytes : f->at);
	}
	p->bytes = end - p->at;
	w->at = end;
	return true;
}

static bool holds(const struct piece *p, uint64_t bytes, uint64_t even)
{
	uint64_t gap = round_up(p->at, even) - p->at;

	return p->bytes >= gap && p->bytes - gap >= bytes;
}

/* Outside of the frames of @use; *@length: of the piece that it is in. */
static bool find(const struct room *room, const struct room_use *use, uint64_t bytes, uint64_t even,
		 enum room_fit fit, uint64_t *at, uint64_t *length)
{
	bool tightest = fit == ROOM_TIGHTEST || fit == ROOM_TIGHTEST_END;
	bool end = fit == ROOM_HIGHEST || fit == ROOM_TIGHTEST_END;
	struct walk w = { .room = room, .use = use };
	struct piece p;

	*length = 0;
	while (next_piece(&w, &p) && !(fit == ROOM_LOWEST && *length)) {
		if (p.frame || !holds(&p, bytes, even) ||
		    (tightest && *length && p.bytes >= *length))
			continue;
		*length = p.bytes;
		*at = end ? (p.at + p.bytes - bytes) / even * even : round_up(p.at, even);
	}
	return *length;
}

bool room_find(const struct room *room, uint64_t bytes, uint64_t even, enum room_fit fit,
	       uint64_t *at)
{
	uint64_t length;

	return find(room, NULL, bytes, even, fit, at, &length);
}

static bool find_outside(const struct room *room, uint64_t bytes, uint64_t even, enum room_fit fit,
			 uint64_t *at, uint64_t *length)
{
	return find(room, room->use, bytes, even, fit, at, length);
}

/* In the frame whose longest run is the shortest one that will do, there in the tightest. */
static bool find_frame(const struct room *room, uint64_t bytes, uint64_t even, uint64_t *at)
{
	uint64_t best = UINT64_MAX, longest = 0, tightest = UINT64_MAX, place = 0;
	struct walk w = { .room = room, .use = room->use };
	struct piece p;
	size_t frame = 0;
	bool more;

	do {
		more = next_piece(&w, &p);
		if (!more || p.frame != frame) {
			if (tightest != UINT64_MAX && longest < best) {
				best = longest;
				*at = place;
			}
			longest = 0;
			tightest = UINT64_MAX;
			frame = more ? p.frame : 0;
		}
		if (!more || !frame)
			continue;
		longest = MAX(longest, p.bytes);
		if (p.bytes < tightest && holds(&p, bytes, even)) {
			tightest = p.bytes;
			place = round_up(p.at, even);
		}
	} while (more);
	return best != UINT64_MAX;
}

/* As long as so many of these as it has room for. */
static int new_frame(struct room *room, uint64_t bytes, uint64_t even, enum room_fit fit,
		     uint64_t *at)
{
	uint64_t stride = round_up(bytes, even), length = FRAME / stride * stride, of;
	struct room_use *u = room->use;
	size_t i;

	if (even > FRAME || !find_outside(room, length, even, fit == ROOM_OWN_LOW ? ROOM_LOWEST :
							      ROOM_HIGHEST, at, &of))
		return -ENOSPC;
	if (array_grow((void **)&u->frame, u->nr_frames, &u->max_frames, sizeof(*u->frame)))
		return -ENOMEM;
	for (i = u->nr_frames++; i && u->frame[i - 1].at > *at; i--)
		u->frame[i] = u->frame[i - 1];
	u->frame[i] = (struct hole){ *at, length };
	return 0;
}

static unsigned int class_of(uint64_t bytes)
{
	uint64_t n = bytes / GRANULE;
	unsigned int log = 63u - (unsigned int)__builtin_clzll(n | 1);

	return MIN(log << 3 | ((log < 3 ? n << (3 - log) : n >> (log - 3)) & 7), CLASSES - 1);
}

/* The size from which on a request is none of the smallest. */
static uint64_t smallest_end(const struct room_use *u)
{
	uint64_t sum = u->in_frames, all = sum;
	unsigned int class = 0;

	for (unsigned int i = 0; i < CLASSES; i++)
		all += u->in_use[i];
	while (all && sum + u->in_use[class] <= all / SMALLEST_PART)
		sum += u->in_use[class++];
	return ((8ull + (class & 7)) << (class >> 3) >> 3) * GRANULE;
}

static bool find_own(const struct room *room, uint64_t bytes, uint64_t even, uint64_t *at)
{
	uint64_t end = smallest_end(room->use), length, other;

	if (bytes < end)
		return find_outside(room, bytes, even, ROOM_HIGHEST, at, &length);
	if (!find_outside(room, bytes, even, ROOM_TIGHTEST, at, &length))
		return false;
	/* Tight, or it leaves as much as a request that is not small. */
	if (length > bytes + bytes / GRANULE * 3 / 10 * GRANULE &&
	    find_outside(room, bytes + end, even, ROOM_TIGHTEST, &other, &length))
		*at = other;
	return true;
}

int room_find_own(struct room *room, uint64_t bytes, uint64_t even, enum room_fit fit, uint64_t *at)
{
	uint64_t length;
	int ret;

	if (bytes <= SHARE_MAX) {
		ret = find_frame(room, bytes, even, at) ? 0 : new_frame(room, bytes, even, fit, at);
		if (ret != -ENOSPC)
			return ret;
		if (find_outside(room, bytes, even, fit == ROOM_OWN_HIGH ? ROOM_HIGHEST :
				 ROOM_TIGHTEST, at, &length))
			return 0;
	} else if (fit == ROOM_OWN ? find_own(room, bytes, even, at) :
		   find_outside(room, bytes, even, fit == ROOM_OWN_LOW ? ROOM_LOWEST : ROOM_HIGHEST,
				at, &length)) {
		return 0;
	}
	/* At last what is left in frames, and at their edges. */
	return find_frame(room, bytes, even, at) || room_find(room, bytes, even, ROOM_LOWEST, at) ?
	       0 : -ENOSPC;
}

/* A frame ends where something begins that is no part of it. */
static void shorten(struct hole *f, uint64_t at, uint64_t end)
{
	if (at > f->at)
		f->bytes = MIN(f->bytes, at - f->at);
	else
		*f = (struct hole){ MIN(end, f->at + f->bytes), f->bytes - MIN(end - f->at, f->bytes) };
}

void room_count(struct room *room, uint64_t at, uint64_t bytes)
{
	struct room_use *u = room->use;

	for (size_t i = 0; u && i < u->nr_frames; i++) {
		struct hole *f = &u->frame[i];

		if (at >= f->at + f->bytes || at + bytes <= f->at)
			continue;
		if (at >= f->at && at + bytes <= f->at + f->bytes) {
			u->in_frames += bytes / GRANULE;
			return;
		}
		shorten(f, at, at + bytes);
	}
	if (u)
		u->in_use[class_of(bytes)] += (uint32_t)(bytes / GRANULE);
}

void room_uncount(struct room *room, uint64_t bytes)
{
	if (room->use)
		room->use->in_use[class_of(bytes)] -= (uint32_t)(bytes / GRANULE);
}

int room_keep_use(struct room *room)
{
	room->use = calloc(1, sizeof(*room->use));
	return room->use ? 0 : -ENOMEM;
}

int room_copy_use(struct room *to, const struct room *from)
{
	const struct room_use *u = from->use;
	struct hole *frame = NULL;

	if (!u)
		return 0;
	if (u->nr_frames)
		frame = reallocarray(NULL, u->nr_frames, sizeof(*frame));
	if ((u->nr_frames && !frame) || room_keep_use(to)) {
		free(frame);
		return -ENOMEM;
	}
	*to->use = *u;
	to->use->frame = frame;
	to->use->max_frames = u->nr_frames;
	if (frame)
		memcpy(frame, u->frame, u->nr_frames * sizeof(*frame));
	return 0;
}

void room_free_use(struct room *room)
{
	if (room->use)
		free(room->use->frame);
	free(room->use);
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The events of a snapshot, played again on the allocator itself: what was refused has to be
 * refused again, for the same reason and with the same free bytes.
 */
#ifndef BENCH_REPLAY_H
#define BENCH_REPLAY_H

#include <inttypes.h>

#include "../../kmod/mem/buddy/all.h"
#include "../../libneuron/tools/snapshot.h"

struct replay {
	struct neuron_buddy *zone;
	u64 base;
	/* What is allocated, by address; as many as there are ranges at most. */
	struct neuron_buddy_block *live;
	size_t count, max;
	FILE *out;		/* what is said of each refusal; NULL: nothing */
	/* Refusals: the same again, different, limits, of other users. */
	size_t same, different, limits, unknown;
	size_t events;
};

static inline size_t replay_find(const struct replay *r, u64 addr)
{
	size_t low = 0, high = r->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->live[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* 0, or what the allocator says. */
static inline int replay_try(struct replay *r, const struct neuron_buddy_request *req,
			     struct neuron_buddy_block *block, enum neuron_buddy_cause *cause)
{
	int err;

	do {
		err = neuron_buddy_prepare(r->zone) ?:
		      neuron_buddy_alloc(r->zone, req, block, cause);
	} while (err == -EAGAIN);
	return err;
}

static inline int replay_place(struct replay *r, u64 addr, u64 bytes)
{
	struct neuron_buddy_request req = { .size = bytes, .addr = addr,
					    .flags = NEURON_BUDDY_EXACT };
	struct neuron_buddy_block block;
	size_t at = replay_find(r, addr);
	int err = replay_try(r, &req, &block, NULL);

	if (err)
		return err;
	if (array_grow((void **)&r->live, r->count, &r->max, sizeof(*r->live)))
		return -ENOMEM;
	memmove(r->live + at + 1, r->live + at, (r->count - at) * sizeof(*r->live));
	r->live[at] = block;
	r->count++;
	return 0;
}

/* The one that begins at @addr. */
static inline int replay_free(struct replay *r, u64 addr, u64 bytes)
{
	size_t at = replay_find(r, addr);
	int err;

	if (at == r->count || r->live[at].addr != addr || r->live[at].size != bytes)
		return -ENOENT;
	err = neuron_buddy_free(r->zone, &r->live[at], false);
	if (err)
		return err;
	r->count--;
	memmove(r->live + at, r->live + at + 1, (r->count - at) * sizeof(*r->live));
	return 0;
}

/* The one with the byte before @end gets @bytes longer, or shorter. */
static inline int replay_resize(struct replay *r, u64 end, u64 bytes, bool longer)
{
	size_t at = replay_find(r, end);
	u64 addr, size;

	if (!at || r->live[at - 1].addr + r->live[at - 1].size != end ||
	    (!longer && r->live[at - 1].size <= bytes))
		return -ENOENT;
	addr = r->live[at - 1].addr;
	size = r->live[at - 1].size;
	return replay_free(r, addr, size) ?:
	       replay_place(r, addr, longer ? size + bytes : size - bytes);
}

/* ---- refusals ------------------------------------------------------------------------ */

static inline void replay_say(struct replay *r, const struct neuron_event *e, const char *what)
{
	char size[32];

	if (r->out)
		fprintf(r->out, "event %" PRIu64 ": %s refused as %s: %s\n", e->seq,
			neuron_report_size(e->bytes, size, sizeof(size)),
			neuron_mem_reason_name(e->reason), what);
}

static inline enum neuron_mem_reason replay_reason(enum neuron_buddy_cause cause)
{
	switch (cause) {
	case NEURON_BUDDY_CAUSE_FULL: return NEURON_MEM_REASON_FULL;
	case NEURON_BUDDY_CAUSE_FRAGMENTED:
	case NEURON_BUDDY_CAUSE_BUSY: return NEURON_MEM_REASON_FRAGMENTED;
	case NEURON_BUDDY_CAUSE_ALIGNMENT: return NEURON_MEM_REASON_ALIGNMENT;
	default: return NEURON_MEM_REASON_NONE;
	}
}

/* Asks again.  Growing in place is asked for as the driver asks: exactly what follows. */
static inline int replay_refusal(struct replay *r, const struct neuron_event *e)
{
	bool at = e->flags & NEURON_MEM_F_AT;
	struct neuron_buddy_request req = {
		.size = e->bytes, .align = e->align,
		.addr = at ? e->address - r->base : 0,
		.flags = (at ? NEURON_BUDDY_EXACT : 0) |
			 (e->flags & NEURON_MEM_F_LOW ? NEURON_BUDDY_LOW : 0) |
			 (e->flags & NEURON_MEM_F_HIGH ? NEURON_BUDDY_HIGH : 0),
	};
	enum neuron_buddy_cause cause = NEURON_BUDDY_CAUSE_NONE;
	struct neuron_buddy_block block;
	u64 free = neuron_buddy_free_bytes(r->zone);
	char text[160];
	int err;

	if (!e->client) {
		r->unknown++;
		replay_say(r, e, "of another user, nothing is known of it");
		return 0;
	}
	if (e->reason == NEURON_MEM_REASON_CAPPED || e->reason == NEURON_MEM_REASON_HOST) {
		r->limits++;
		replay_say(r, e, "not replayable, as the allocator was not asked");
		return 0;
	}
	err = replay_try(r, &req, &block, &cause);
	if (!err) {
		r->different++;
		replay_say(r, e, "DIFFERENT, it is not refused now");
		return neuron_buddy_free(r->zone, &block, false);
	}
	if (err != -ENOSPC && !(at && (err == -EBUSY || err == -EINVAL)))
		return err;
	if (at)
		cause = e->bytes > free ? NEURON_BUDDY_CAUSE_FULL : NEURON_BUDDY_CAUSE_BUSY;
	if (replay_reason(cause) == e->reason && free == e->free) {
		r->same++;
		replay_say(r, e, "refused again, with the same free bytes");
		return 0;
	}
	r->different++;
	snprintf(text, sizeof(text), "DIFFERENT, %s now, with %" PRIu64 " bytes free, not %" PRIu64,
		 neuron_mem_reason_name(replay_reason(cause)), free, e->free);
	replay_say(r, e, text);
	return 0;
}

/* ---- all of it ----------------------------------------------------------------------- */

static inline int replay_event(struct replay *r, const struct neuron_event *e)
{
	u64 addr = e->address - r->base;

	switch (e->kind) {
	case NEURON_EVENT_ALLOC: return replay_place(r, addr, e->bytes);
	case NEURON_EVENT_FREE: return replay_free(r, addr, e->bytes);
	case NEURON_EVENT_GROW: return replay_resize(r, addr, e->bytes, true);
	case NEURON_EVENT_SHRINK: return replay_resize(r, addr + e->bytes, e->bytes, false);
	case NEURON_EVENT_REFUSE: return replay_refusal(r, e);
	case NEURON_EVENT_MOVE: return replay_free(r, e->free - r->base, e->bytes) ?:
				       replay_place(r, addr, e->bytes);
	default: return -EINVAL;
	}
}

/* What was there before the oldest event. */
static inline int replay_begin(struct replay *r, const struct history *h)
{
	int err = 0;

	for (size_t i = 0; i < h->count && !err; i++) {
		const struct neuron_range *range = &h->range[i];
		u64 addr = range->address - r->base;

		if (range->state == NEURON_RANGE_RESERVED)
			err = neuron_buddy_prepare(r->zone) ?:
			      neuron_buddy_reserve(r->zone, addr, range->bytes);
		else if (range->state != NEURON_RANGE_FREE)
			err = replay_place(r, addr, range->bytes);
	}
	return err;
}

/* After the last event, all has to be as the snapshot says. */
static inline bool replay_end(const struct replay *r, const struct neuron_range *range, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		if (range[i].state == NEURON_RANGE_FREE || range[i].state == NEURON_RANGE_RESERVED)
			continue;
		if (at == r->count || r->live[at].addr != range[i].address - r->base ||
		    r->live[at].size != range[i].bytes)
			return false;
		at++;
	}
	return at == r->count;
}

static inline int replay_run(struct replay *r, const struct snapshot_hbm *s, struct history *h)
{
	int err = neuron_buddy_create(&r->zone, s->stats.total);

	err = err ?: history_rewind(h, s->event, s->nr_events);
	if (err || h->wrong) {
		if (r->out && h->wrong)
			fprintf(r->out, "HBM %u: the events do not lead to what is there now\n",
				s->hbm);
		return err ?: -EINVAL;
	}
	err = replay_begin(r, h);
	for (size_t i = 0; i < s->nr_events && !err; i++, r->events++)
		err = replay_event(r, &s->event[i]);
	if (err && r->out)
		fprintf(r->out, "HBM %u: event %zu of %zu cannot be played: %s\n", s->hbm,
			r->events, s->nr_events, strerror(-err));
	if (!err && !replay_end(r, s->ranges.range, s->ranges.count)) {
		if (r->out)
			fprintf(r->out, "HBM %u: it ends otherwise\n", s->hbm);
		err = -EINVAL;
	}
	return err;
}

/* Plays the events of a memory.  0, whatever was refused; an error: they cannot be played. */
static inline int replay_hbm(struct replay *r, const struct snapshot_hbm *s)
{
	struct history h = { .count = s->ranges.count, .max = s->ranges.count };
	int err;

	if (!s->consistent) {
		if (r->out)
			fprintf(r->out, "HBM %u: the snapshot is not of one instant\n", s->hbm);
		return -EINVAL;
	}
	r->base = s->ranges.range[0].address;
	h.range = malloc(h.count * sizeof(*h.range));
	if (!h.range)
		return -ENOMEM;
	memcpy(h.range, s->ranges.range, h.count * sizeof(*h.range));
	err = replay_run(r, s, &h);
	neuron_buddy_destroy(r->zone);
	free(r->live);
	free(h.range);
	return err;
}

#endif

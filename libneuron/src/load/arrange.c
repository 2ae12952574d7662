// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A load that was refused, again on paper: the steps of load_apply_scratchpad() and
 * load_apply_memory(), with holes in the place of a device.  If there is a place for
 * everything, the load is told where; if there is not, who would have to go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../device/device.h"
#include "arrange.h"

/* What the parts ask for beside their scratchpads, which depends on how those are made. */
struct variant {
	struct variant *next;
	uint64_t region[MAX_PARTS];
	struct request {
		uint64_t bytes, align;
	} *request[MAX_PARTS];
	size_t count[MAX_PARTS];
};

/* ---- requests ---------------------------------------------------------------------- */

static int keep_requests(struct variant *v, size_t k, const struct loader *l)
{
	v->request[k] = calloc(l->nr_allocs + 1, sizeof(*v->request[k]));
	if (!v->request[k])
		return -ENOMEM;
	for (size_t i = 0; i < l->nr_allocs; i++)
		v->request[k][v->count[k]++] = (struct request){ l->allocs[i].bytes,
								 l->allocs[i].align };
	return 0;
}

static void variant_free(struct variant *v)
{
	for (size_t k = 0; k < MAX_PARTS; k++)
		free(v->request[k]);
	free(v);
}

static int plan_variant(const struct attempt *a, struct variant *v)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct loader l[MAX_PARTS] = { { .error = &error } };
	int ret = load_plan_parts(l, a->neff, a->g, &error);

	for (size_t k = 0; k < a->nr_parts && !ret; k++) {
		l[k].nc = a->pad[k]->nc;
		l[k].layout.region = v->region[k];
		l[k].layout.page = a->pad[k]->page;
		ret = load_plan_memory(&l[k]) ?: keep_requests(v, k, &l[k]);
	}
	load_free(l);
	for (size_t k = 0; k < MAX_PARTS; k++)
		if (l[k].model)
			model_free(l[k].model);
	return ret;
}

static const struct variant *find_variant(struct attempt *a, const uint64_t *region)
{
	struct variant *v;

	for (v = a->variants; v; v = v->next)
		if (!memcmp(v->region, region, sizeof(v->region)))
			return v;
	v = calloc(1, sizeof(*v));
	if (!v) {
		a->error = -ENOMEM;
		return NULL;
	}
	memcpy(v->region, region, sizeof(v->region));
	a->error = plan_variant(a, v);
	if (a->error) {
		variant_free(v);
		return NULL;
	}
	v->next = a->variants;
	a->variants = v;
	return v;
}

/* ---- places ------------------------------------------------------------------------ */

/* One after the other, until everything has a place. */
const struct way ways[NR_WAYS] = {
	{ ROOM_TIGHTEST, true, false, false }, { ROOM_TIGHTEST, false, false, false },
	{ ROOM_HIGHEST, true, false, false }, { ROOM_HIGHEST, false, false, false },
	{ ROOM_LOWEST, true, false, false }, { ROOM_LOWEST, false, false, false },
	{ ROOM_TIGHTEST, true, true, false }, { ROOM_HIGHEST, true, true, false },
	{ ROOM_HIGHEST, false, true, false },
};

/* What one of them has to find a place for, in the order in which a load asks for it. */
struct wanted {
	struct wish {
		uint32_t hbm;
		uint64_t bytes, align;
		size_t spot;		/* of struct spots */
	} *wish;
	size_t count, max;
	struct spots spots;
	bool failed;			/* no memory of the host */
};

static void add_spot(struct wanted *w, uint64_t at)
{
	if (array_grow((void **)&w->spots.at, w->spots.count, &w->spots.max, sizeof(*w->spots.at)))
		w->failed = true;
	else
		w->spots.at[w->spots.count++] = at;
}

static void add_wish(struct wanted *w, uint32_t hbm, uint64_t bytes, uint64_t align)
{
	if (array_grow((void **)&w->wish, w->count, &w->max, sizeof(*w->wish))) {
		w->failed = true;
		return;
	}
	w->wish[w->count++] = (struct wish){ hbm, bytes, align, w->spots.count };
	add_spot(w, SPOT_NONE);
}

static bool take(struct wanted *w, struct room *room, uint64_t bytes, uint64_t align,
		 enum room_fit fit, uint64_t *at)
{
	int ret = room_ask(room, bytes, align, fit, at);

	w->failed |= ret == -ENOMEM;
	return !ret;
}

/* Regions are where they grow best, so they come first. */
static bool place_region(const struct attempt *a, struct room *room, struct pad *p, uint64_t need,
			 const struct way *way, struct wanted *w)
{
	enum room_fit fit = way->in_turn ? ROOM_OWN_LOW : ROOM_LOWEST;
	uint64_t bytes = round_up(need, SCRATCHPAD_STEP), at = SPOT_NONE;

	if (p->region) {
		if (room_grow(room, p->region_at, p->region, bytes - p->region))
			return false;
	} else {
		if (!take(w, room, bytes, scratchpad_region_align(p->of, a->g, way->dense),
			  fit, &at) &&
		    !take(w, room, bytes, SCRATCHPAD_ALIGN, fit, &at))
			at = SPOT_NONE;
		add_spot(w, at);
		if (at == SPOT_NONE)
			return false;
		p->region_at = at;
	}
	p->region = bytes;
	return true;
}

/* As grow() of scratchpad.c. */
static bool want_scratchpad(const struct attempt *a, struct room *room, struct pad *p,
			    uint64_t need, const struct way *way, struct wanted *w)
{
	uint64_t hbm = a->g->hbm[p->hbm].size, pages, at;

	if (need <= p->region)
		return true;
	if (p->of->contiguous && !p->nr_pages && need <= hbm &&
	    place_region(a, room, p, need, way, w))
		return true;
	pages = scratchpad_pages(need - p->region, p->page);
	if (pages > hbm / p->page)
		return false;
	for (; p->nr_pages < pages && !w->failed; p->nr_pages++)
		/* They can be in the way of the region of the next part. */
		if (!way->in_turn)
			add_wish(w, p->hbm, p->page, SCRATCHPAD_ALIGN);
		else if (!take(w, room, p->page, SCRATCHPAD_ALIGN, ROOM_OWN, &at))
			return false;
	return true;
}

static bool want_all(struct attempt *a, struct room *room, struct pad *pad, const struct way *way,
		     struct wanted *w)
{
	uint64_t region[MAX_PARTS] = { 0 };
	const struct variant *v;

	for (size_t k = 0; k < a->nr_parts; k++) {
		if (!want_scratchpad(a, &room[pad[k].hbm], &pad[k],
				     a->neff->subgraphs[k].scratchpad, way, w))
			return false;
		region[k] = pad[k].region;
	}
	v = find_variant(a, region);
	for (size_t k = 0; v && k < a->nr_parts; k++)
		for (size_t i = 0; i < v->count[k]; i++)
			add_wish(w, pad[k].hbm, v->request[k][i].bytes, v->request[k][i].align);
	return v && !w->failed;
}

static int longest_first(const void *a, const void *b)
{
	const struct wish *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->spot > y->spot ? 1 : -1;
}

static bool place_all(struct room *room, struct wanted *w, const struct way *way)
{
	if (way->longest_first && w->count)
		qsort(w->wish, w->count, sizeof(*w->wish), longest_first);
	for (size_t i = 0; i < w->count; i++) {
		const struct wish *wish = &w->wish[i];

		if (!take(w, &room[wish->hbm], wish->bytes, wish->align, way->fit,
			  &w->spots.at[wish->spot]))
			return false;
	}
	return true;
}

bool attempt_place(struct attempt *a, struct room *room, struct pad *pad, const struct way *way,
		   struct spots *spots)
{
	struct wanted w = { .count = 0 };
	bool fits = want_all(a, room, pad, way, &w) && place_all(room, &w, way);

	if (w.failed)
		a->error = -ENOMEM;
	free(w.wish);
	if (fits && spots)
		*spots = w.spots;
	else
		free(w.spots.at);
	return fits;
}

static bool place_microcode(const struct attempt *a, struct room *room)
{
	uint64_t at;

	for (size_t k = 0; k < MAX_PARTS; k++)
		if (a->microcode[k] &&
		    room_take(&room[a->pad[k]->hbm], a->microcode[k], 0,
			      a->pad[k]->contiguous ? ROOM_HIGHEST : ROOM_TIGHTEST, &at))
			return false;
	return true;
}

/* @spots: filled in if it fits; NULL if nobody wants to know. */
static bool fits_one_way(struct attempt *a, const struct held *held, uint64_t gone,
			 const struct way *way, struct spots *spots)
{
	struct room room[NEURON_MAX_HBMS] = { { .count = 0 } };
	bool read[NEURON_MAX_HBMS] = { false }, fits = true;
	struct pad pad[MAX_PARTS];

	for (size_t k = 0; k < a->nr_parts && fits; k++)
		fits = held_pad(held, a->pad[k], gone, &pad[k]);
	/* A core without a part has its microcode, perhaps in another memory. */
	for (size_t k = 0; k < MAX_PARTS && a->pad[k] && fits; k++) {
		uint32_t hbm = a->pad[k]->hbm;

		fits = read[hbm] || !held_room(held, hbm, gone, &room[hbm]);
		read[hbm] = true;
	}
	fits = fits && place_microcode(a, room) && attempt_place(a, room, pad, way, spots);
	for (uint32_t i = 0; i < NEURON_MAX_HBMS; i++)
		room_free(&room[i]);
	return fits;
}

static bool fits_somehow(struct attempt *a, const struct held *held, uint64_t gone,
			 struct spots *spots)
{
	for (size_t i = 0; i < NR_WAYS; i++)
		if (fits_one_way(a, held, gone, &ways[i], spots))
			return true;
	return false;
}

static bool fits(void *data, const struct held *held, uint64_t gone)
{
	return fits_somehow(data, held, gone, NULL);
}

uint64_t attempt_least(struct attempt *a, uint64_t *pieces)
{
	uint64_t region[MAX_PARTS] = { UINT64_MAX, UINT64_MAX }, sum = 0;
	const struct variant *v = find_variant(a, region);

	*pieces = 1;
	for (size_t k = 0; v && k < a->nr_parts; k++) {
		*pieces += v->count[k];
		for (size_t i = 0; i < v->count[k]; i++)
			add_capped(&sum, v->request[k][i].bytes);
	}
	return sum;
}

uint32_t attempt_init(struct attempt *a, const struct neuron_geometry *g,
		      const struct neuron_neff *neff, const struct scratchpad *const pad[MAX_PARTS])
{
	uint32_t hbms = 0;

	*a = (struct attempt){ .neff = neff, .g = g, .nr_parts = neff->nr_subgraphs };
	for (size_t k = 0; k < MAX_PARTS && pad[k]; k++) {
		a->pad[k] = pad[k];
		hbms |= 1u << pad[k]->hbm;
	}
	return hbms;
}

void attempt_free(struct attempt *a)
{
	struct variant *next;

	for (struct variant *v = a->variants; v; v = next) {
		next = v->next;
		variant_free(v);
	}
}

int load_arrange(struct neuron_device *device, const struct neuron_neff *neff,
		 const struct scratchpad *const pad[MAX_PARTS], uint32_t owner,
		 struct spots *spots)
{
	struct attempt a;
	uint32_t hbms = attempt_init(&a, &device->geometry, neff, pad);
	struct held held;
	int ret = held_read(&held, device, hbms, owner);

	if (!ret && !fits_somehow(&a, &held, 0, spots))
		ret = -ENOSPC;
	held_free(&held);
	attempt_free(&a);
	return ret;
}

int load_release(struct neuron_device *device, const struct neuron_neff *neff,
		 const struct scratchpad *const pad[MAX_PARTS], struct neuron_release *release)
{
	struct attempt a;
	uint32_t hbms = attempt_init(&a, &device->geometry, neff, pad);
	uint64_t pieces, bytes = attempt_least(&a, &pieces);
	struct held held;
	int ret = held_read(&held, device, hbms, 0) ?:
		  held_search(&held, bytes, pieces * NR_WAYS, fits, &a, release);

	held_free(&held);
	attempt_free(&a);
	return ret;
}

bool load_too_large(struct neuron_device *device, const struct neuron_neff *neff,
		    const struct scratchpad *const pad[MAX_PARTS],
		    const uint64_t microcode[MAX_PARTS])
{
	struct attempt a;
	uint32_t hbms = attempt_init(&a, &device->geometry, neff, pad);
	struct held held;
	bool large;

	memcpy(a.microcode, microcode, sizeof(a.microcode));
	large = !held_read(&held, device, hbms, 0);
	held.empty = true;
	large = large && !fits_somehow(&a, &held, 0, NULL) && a.error != -ENOMEM;
	held_free(&held);
	attempt_free(&a);
	return large;
}

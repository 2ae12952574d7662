// SPDX-License-Identifier: LGPL-2.1-or-later
/* The scratchpad that the models of a core share (scratchpad.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/lock.h"
#include "scratchpad.h"

static uint64_t region_bytes(const struct scratchpad *s)
{
	return s->region ? neuron_mem_bytes(s->region) : 0;
}

void scratchpad_init(struct scratchpad *s)
{
	pthread_mutex_init(&s->lock, NULL);
	GUARD(&s->device->scratchpads_lock);
	s->next = s->device->scratchpads;
	s->device->scratchpads = s;
}

static void forget(struct scratchpad *s)
{
	GUARD(&s->device->scratchpads_lock);
	for (struct scratchpad **p = &s->device->scratchpads; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			break;
		}
}

/*
 * In contiguous mode everything else is taken from the top of the memory, and the
 * regions of cores that share it start apart, so that they can grow.
 */
uint64_t scratchpad_region_align(const struct scratchpad *s, const struct neuron_geometry *g,
				 bool dense)
{
	uint64_t share, align = SCRATCHPAD_ALIGN;
	uint32_t before = 0, others = 0;

	for (uint32_t i = 0; i < g->nr_cores; i++) {
		if (i == s->nc || g->core_hbm[i] != s->hbm)
			continue;
		before += i < s->nc;
		others++;
	}
	share = g->hbm[s->hbm].size / (others + 1);
	while (before && !dense && align <= share / 2)
		align *= 2;
	return align;
}

/* The region from nothing, or longer where it is. -ENOMEM: it cannot be. */
static int region_grow(struct scratchpad *s, uint64_t need, struct spots *spots)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.flags = NEURON_MEM_F_LOW,
		.hbm = s->hbm,
		.nc = s->nc,
		.category = NEURON_MEM_SCRATCHPAD_CONTIGUOUS,
		.align = scratchpad_region_align(s, &s->device->geometry, s->dense),
	};
	uint64_t bytes = round_up(need, SCRATCHPAD_STEP);
	int ret;

	if (s->region)
		return neuron_mem_grow(s->region, bytes, NULL);
	if (spots)
		opts.align = SCRATCHPAD_ALIGN;
	if (!spots_next(spots, &opts))
		return -ENOMEM;
	ret = neuron_mem_alloc(s->device, bytes, &opts, &s->region);
	if (ret != -ENOMEM || opts.align == SCRATCHPAD_ALIGN)
		return ret;
	opts.align = SCRATCHPAD_ALIGN;
	return neuron_mem_alloc(s->device, bytes, &opts, &s->region);
}

/* More pages behind those there are. */
static int pages_grow(struct scratchpad *s, uint64_t pages, struct spots *spots,
		      struct neuron_mem_opts *opts)
{
	struct neuron_mem **grown = calloc(pages, sizeof(*grown)), **before;

	if (!grown)
		return -ENOMEM;
	if (s->nr_pages)
		memcpy(grown, s->pages, s->nr_pages * sizeof(*grown));
	before = s->pages;
	/* As in TAKE_OUT(). */
	atomic_signal_fence(memory_order_seq_cst);
	s->pages = grown;
	atomic_signal_fence(memory_order_seq_cst);
	free(before);
	while (s->nr_pages < pages) {
		int ret = spots_next(spots, opts) ?
			  neuron_mem_alloc(s->device, s->page, opts, &s->pages[s->nr_pages]) :
			  -ENOMEM;

		if (ret)
			return ret;
		s->nr_pages++;
	}
	return 0;
}

/* Hopeless: ask for it in one piece, to get the figures and the log line. */
static int ask_too_much(struct scratchpad *s, uint64_t bytes, const struct neuron_mem_opts *opts)
{
	struct neuron_mem *mem;
	int ret = neuron_mem_alloc(s->device, bytes, opts, &mem);

	if (!ret)
		neuron_mem_free(mem);
	if (ret != -ENOMEM)
		*opts->failure = (struct neuron_mem_failure){
			.reason = NEURON_MEM_REASON_FULL,
			.category = NEURON_MEM_SCRATCHPAD,
			.hbm = s->hbm,
			.nc = s->nc,
			.bytes = bytes,
			.total = s->device->geometry.hbm[s->hbm].size,
		};
	return -ENOMEM;
}

static int grow(struct scratchpad *s, uint64_t need, struct spots *spots,
		struct neuron_mem_failure *failure)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.hbm = s->hbm,
		.nc = s->nc,
		.category = NEURON_MEM_SCRATCHPAD,
		.align = SCRATCHPAD_ALIGN,
		.failure = failure,
	};
	uint64_t hbm = s->device->geometry.hbm[s->hbm].size, pages;
	int ret;

	if (need <= region_bytes(s))
		return 0;
	if (s->contiguous && !s->nr_pages && need <= hbm) {
		ret = region_grow(s, need, spots);
		if (ret != -ENOMEM)
			return ret;
		/* Not in one piece: pages need not follow each other. */
	}
	need -= region_bytes(s);
	pages = scratchpad_pages(need, s->page);
	if (pages <= s->nr_pages)
		return 0;
	if (pages > hbm / s->page)
		return ask_too_much(s, need > UINT64_MAX - s->page ? need : pages * s->page, &opts);
	return pages_grow(s, pages, spots, &opts);
}

int scratchpad_join(struct scratchpad *s, struct scratchpad_user *user, struct spots *spots,
		    struct scratchpad_layout *layout, struct neuron_mem_failure *failure)
{
	int ret = 0;

	GUARD(&s->lock);
	if (user->need)
		ret = grow(s, user->need, spots, failure);
	if (user->need && !ret) {
		user->next = s->users;
		s->users = user;
	}
	*layout = (struct scratchpad_layout){ .region = region_bytes(s), .page = s->page };
	return ret;
}

/*
 * Pages from the end, then the end of the region; all of that when nobody uses the
 * scratchpad any more.  Where pages start depends on where the region ends, so that
 * stays as long as there are any.
 */
static void shrink(struct scratchpad *s)
{
	uint64_t need = 0, behind;

	for (const struct scratchpad_user *u = s->users; u; u = u->next)
		need = MAX(need, u->need);
	if (!need) {
		neuron_mem_free(TAKE_OUT(s->region));
		s->dense = false;
	}
	behind = need - MIN(need, region_bytes(s));
	while (s->nr_pages > scratchpad_pages(behind, s->page))
		neuron_mem_free(s->pages[--s->nr_pages]);
	if (s->nr_pages)
		return;
	free(TAKE_OUT(s->pages));
	/* A driver that cannot do it leaves it as long as it is. */
	if (s->region && round_up(need, SCRATCHPAD_STEP) < region_bytes(s))
		neuron_mem_shrink(s->region, round_up(need, SCRATCHPAD_STEP));
}

void scratchpad_leave(struct scratchpad *s, const struct scratchpad_user *user)
{
	GUARD(&s->lock);
	for (struct scratchpad_user **p = &s->users; *p; p = &(*p)->next)
		if (*p == user) {
			*p = user->next;
			break;
		}
	shrink(s);
}

bool scratchpad_could_move(struct scratchpad *s, const struct scratchpad_user *user)
{
	GUARD(&s->lock);
	return s->region && scratchpad_region_align(s, &s->device->geometry, s->dense) > SCRATCHPAD_ALIGN &&
	       s->users == user && !user->next;
}

void scratchpad_make_dense(struct scratchpad *s)
{
	GUARD(&s->lock);
	s->dense = !s->region;
}

uint64_t scratchpad_address(struct scratchpad *s, uint64_t offset)
{
	uint64_t region, address;

	GUARD(&s->lock);
	region = region_bytes(s);
	if (offset < region)
		address = neuron_mem_address(s->region) + offset;
	else
		address = neuron_mem_address(s->pages[(offset - region) / s->page]) +
			  (offset - region) % s->page;
	return address;
}

uint64_t scratchpad_bytes(struct scratchpad *s)
{
	GUARD(&s->lock);
	return region_bytes(s) + s->nr_pages * s->page;
}

struct neuron_mem *scratchpad_piece(struct scratchpad *s, size_t i, uint64_t *offset)
{
	GUARD(&s->lock);
	*offset = 0;
	if (s->region && !i)
		return s->region;
	i -= s->region != NULL;
	*offset = region_bytes(s) + i * s->page;
	return i < s->nr_pages ? s->pages[i] : NULL;
}

void scratchpad_free(struct scratchpad *s)
{
	/* A child may have got the lock held, and looks at no list. */
	if (!device_inherited(s->device))
		forget(s);
	while (s->nr_pages)
		neuron_mem_free(s->pages[--s->nr_pages]);
	free(s->pages);
	neuron_mem_free(s->region);
	pthread_mutex_destroy(&s->lock);
}

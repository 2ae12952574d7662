// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bounded model checking of the HBM allocator: every sequence of STEPS operations
 * with every argument, on a zone of LEN granules with frames of
 * 2^FRAME_ORDER_UNDER_PROOF granules. CBMC follows each path and proves:
 *
 *   - no access out of bounds or through a wild pointer, no undefined shift or
 *     overflow (CBMC's own checks);
 *   - an allocation lies in the zone, is aligned, and was free before;
 *   - a request is refused only if no free aligned run exists;
 *   - frees and grows do what they say, and a second free is refused;
 *   - afterwards: extents tile the zone, no two free neighbours, every free extent
 *     in exactly its bin, every granule accounted for (neuron_buddy_check()).
 *
 * The zone is put together here from typed objects, since CBMC follows those far
 * better than pages of bytes; neuron_buddy_create() itself is left to the tests.
 *
 * The same file as a program (-DENUMERATE) runs every path itself, under the
 * sanitizers: no proof about pointers, but far larger bounds.
 */
#ifdef ENUMERATE
#include <stdio.h>
#include <stdlib.h>
#define __CPROVER_assert(cond, text)					\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "not ok - %s\n", text);		\
			abort();					\
		}							\
	} while (0)
#endif

#define NEURON_BUDDY_FRAME_ORDER	FRAME_ORDER_UNDER_PROOF
#define NEURON_BUDDY_SMALL		SMALL_UNDER_PROOF
#define NEURON_BUDDY_BIN_ROWS		1u
#define NEURON_BUDDY_TREE_SHIFT		1
#define NEURON_BUDDY_CLASS_BITS		0
#ifdef BLIND		/* no frame is examined where an alignment exceeds the size */
#define NEURON_BUDDY_PROBE_FRAMES	0
#define NEURON_BUDDY_PROBE_FRAMES_MAX	0
#else
#define BLIND		0
#endif
#include "../../kmod/mem/buddy/all.h"

#define FRAMES	((LEN + FRAME_LEN - 1) / FRAME_LEN)
#define EXTENTS	(LEN + 6)

u32 nondet_u32(void);

static struct neuron_buddy zone;
static struct ext exts[EXTENTS];
/* A frame may be half as long as the longest. */
static struct frame frames[2 * FRAMES + 2];
static struct ext *map[FRAMES];
static u64 starts[1], clean[FRAMES], clean_cell[1], clean_mixed[1];
static struct obit obits[2];
static u32 longest0[8], longest1[4], longest2[2], longest3[2];
static u32 whole0[8], whole1[4], whole2[2], whole3[2];
static u32 joined0[8], joined1[4], joined2[2], joined3[2];

/* The model: who owns each granule; 0 is nobody. */
static u8 owner[LEN];
static struct neuron_buddy_block blocks[STEPS + 1];
static bool live[STEPS + 1];

static void tree_init(struct tree *t, u32 *l0, u32 *l1, u32 *l2, u32 *l3)
{
	u32 *levels[4] = { l0, l1, l2, l3 };
	u32 count = FRAMES, l = 0;

	for (;;) {
		t->level[l] = levels[l];
		t->count[l++] = count;
		if (count == 1)
			break;
		count = (count + 1) / 2;
	}
	t->levels = l;
}

static void zone_init(void)
{
	struct ext *e;
	u32 i;

	zone.len = LEN;
	zone.cells = FRAMES;
	zone.id = 1;
	zone.want = NEED_EXTENTS;
	zone.map = map;
	zone.starts = starts;
	zone.clean = clean;
	zone.clean_cell = clean_cell;
	zone.clean_mixed = clean_mixed;
	zone.obits = obits;
	zone.obit_shift = 31;
	obits[0].start = NONE;
	obits[1].start = NONE;
	tree_init(&zone.longest, longest0, longest1, longest2, longest3);
	tree_init(&zone.whole, whole0, whole1, whole2, whole3);
	tree_init(&zone.joined, joined0, joined1, joined2, joined3);
	for (i = 0; i < EXTENTS; i++)
		ext_put(&zone, &exts[i]);
	for (i = 0; i < 2 * FRAMES + 2; i++) {
		frames[i].e.embedded = true;
		ext_put(&zone, &frames[i].e);
	}
	e = ext_get(&zone);
	e->start = 0;
	e->len = LEN;
	e->prev = NULL;
	e->next = NULL;
	zone.first = e;
	map_add(&zone, e);
	bin_add(&zone, e);
	trees_update(&zone, 0);
	zone.st.total = (u64)LEN << SHIFT;
	zone.st.free = (u64)LEN << SHIFT;
}

#ifdef ENUMERATE
/* The choices of this path, and how many there were; the last one changes first. */
static u32 pick[64], picks[64], depth, known;

static u32 choose(u32 lo, u32 hi)
{
	if (depth == known) {
		pick[known] = 0;
		picks[known++] = hi - lo + 1;
	}
	return lo + pick[depth++];
}

static bool next_path(void)
{
	while (known && ++pick[known - 1] == picks[known - 1])
		known--;
	depth = 0;
	return known;
}
#else
/* Any value from @lo to @hi, a constant on each path: one path per value. */
static u32 choose(u32 lo, u32 hi)
{
	u32 v = nondet_u32(), i;

	for (i = lo; i < hi; i++) {
		if (v == i)
			return i;
	}
	return hi;
}
#endif

static bool has_run(u32 n, u32 k)
{
	u32 at, i;

	for (at = 0; at + n <= LEN; at += 1u << k) {
		for (i = 0; i < n && !owner[at + i]; i++)
			;
		if (i == n)
			return true;
	}
	return false;
}

static void step_alloc(u32 id)
{
	struct neuron_buddy_request req;
	u32 n = choose(1, LEN), k = choose(0, MAX_ALIGN), i;
	u32 flags = choose(0, 2);	/* none, LOW, HIGH */
	enum neuron_buddy_cause cause;
	int err;

	req.size = (u64)n << SHIFT;
	req.align = NEURON_BUDDY_GRANULE << k;
	req.addr = 0;
	req.flags = flags;
	err = neuron_buddy_alloc(&zone, &req, &blocks[id], &cause);
	if (err) {
		__CPROVER_assert(err == -ENOSPC, "refusals are -ENOSPC");
		__CPROVER_assert(!has_run(n, k) || (BLIND && 1u << k > n),
				 "refused only if no run exists");
		return;
	}
	__CPROVER_assert(blocks[id].size == req.size, "size as asked for");
	__CPROVER_assert(!(blocks[id].addr & (req.align - 1)), "aligned");
	__CPROVER_assert(blocks[id].addr >> SHIFT <= LEN - n, "inside the zone");
	for (i = 0; i < n; i++) {
		__CPROVER_assert(!owner[(blocks[id].addr >> SHIFT) + i], "was free");
		owner[(blocks[id].addr >> SHIFT) + i] = (u8)(id + 1);
	}
	live[id] = true;
}

static void step_free(u32 steps)
{
	u32 id = choose(0, steps - 1), i;

	if (!live[id])
		return;
	__CPROVER_assert(neuron_buddy_free(&zone, &blocks[id], false) == 0, "free succeeds");
	for (i = 0; i < LEN; i++) {
		if (owner[i] == id + 1)
			owner[i] = 0;
	}
	live[id] = false;
	__CPROVER_assert(neuron_buddy_free(&zone, &blocks[id], false) == -ENOENT,
			 "second free is refused");
}

static void step_grow(u32 steps)
{
	u32 id = choose(0, steps - 1), more = choose(1, LEN), end, i;
	bool room = true;
	int err;

	if (!live[id])
		return;
	end = (u32)((blocks[id].addr + blocks[id].size) >> SHIFT);
	for (i = end; i < end + more; i++)
		room = room && i < LEN && !owner[i];
	err = neuron_buddy_grow(&zone, &blocks[id], blocks[id].size + ((u64)more << SHIFT));
	__CPROVER_assert(err == 0 || err == -ENOSPC, "grows or refuses");
	if (err)
		return;
	__CPROVER_assert(room, "grows only into free memory");
	for (i = end; i < end + more; i++)
		owner[i] = (u8)(id + 1);
}

static void path(void)
{
	u32 i, step, used = 0;

	zone_init();
	for (step = 0; step < STEPS; step++) {
		u32 what = step ? choose(0, 2) : 0;

		if (what == 0)
			step_alloc(step);
		else if (what == 1)
			step_free(step);
		else
			step_grow(step);
	}
	for (i = 0; i < LEN; i++)
		used += !!owner[i];
	__CPROVER_assert(zone.st.used == (u64)used << SHIFT, "no granule lost");
	__CPROVER_assert(neuron_buddy_check(&zone) == 0, "all invariants hold");
}

#ifdef ENUMERATE
static void forget(void)
{
	memset(&zone, 0, sizeof(zone));
	memset(exts, 0, sizeof(exts));
	memset(frames, 0, sizeof(frames));
	memset(map, 0, sizeof(map));
	memset(clean, 0, sizeof(clean));
	memset(owner, 0, sizeof(owner));
	memset(live, 0, sizeof(live));
	starts[0] = 0;
	clean_cell[0] = 0;
	clean_mixed[0] = 0;
	memset(longest0, 0, sizeof(longest0));
	memset(longest1, 0, sizeof(longest1));
	memset(longest2, 0, sizeof(longest2));
	memset(longest3, 0, sizeof(longest3));
	memset(joined0, 0, sizeof(joined0));
	memset(joined1, 0, sizeof(joined1));
	memset(joined2, 0, sizeof(joined2));
	memset(joined3, 0, sizeof(joined3));
	memset(whole0, 0, sizeof(whole0));
	memset(whole1, 0, sizeof(whole1));
	memset(whole2, 0, sizeof(whole2));
	memset(whole3, 0, sizeof(whole3));
}

int main(void)
{
	unsigned long long paths = 0;

	do {
		forget();
		path();
		paths++;
	} while (next_path());
	printf("# %llu paths\n", paths);
	return 0;
}
#else
int main(void)
{
	path();
	return 0;
}
#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames: 2 MiB shared by small blocks, two bits per granule.
 */
#include "bits.h"
#include "extents.h"
#include "frames.h"
#include "pool.h"

/* First granule at or after @from that is free (@value false) or not. */
u32 frame_scan(const struct frame *fr, u32 from, bool value)
{
	u32 i = from >> 6;
	u64 x;

	if (from >= FRAME_BITS)
		return FRAME_BITS;
	x = value ? frame_used(fr, i) : ~frame_used(fr, i);
	x &= ~0ULL << (from & 63);
	while (!x) {
		if (++i == FRAME_WORDS)
			return FRAME_BITS;
		x = value ? frame_used(fr, i) : ~frame_used(fr, i);
	}
	return i * 64 + __ffs64(x);
}

/* Number of free granules directly below @from. */
u32 frame_free_below(const struct frame *fr, u32 from)
{
	u32 i = from >> 6;
	u64 x = from & 63 ? frame_used(fr, i) & ~(~0ULL << (from & 63)) : 0;

	while (!x) {
		if (!i)
			return from;
		x = frame_used(fr, --i);
	}
	return from - (i * 64 + log2_floor(x) + 1);
}

/*
 * Where all that is free in a frame is, if that is one run at one of its ends, as in a frame
 * that was only filled, or only emptied in the order in which it was filled.
 */
static __always_inline bool frame_end_run(const struct frame *fr, u32 *lo, u32 *hi)
{
	*lo = frame_lo(fr);
	*hi = frame_hi(fr);
	/* The edges of an empty frame are old ones. */
	if (!fr->live)
		return true;
	if (fr->tail == fr->free)
		*lo = *hi - fr->tail;
	else
		*hi = *lo + fr->head;
	return fr->tail == fr->free || fr->head == fr->free;
}

static void run_del(struct neuron_buddy *zone, struct frame *fr)
{
	struct ext *e = &fr->e;

	if (e->bnext)
		e->bnext->bprev = e->bprev;
	if (e->bprev) {
		e->bprev->bnext = e->bnext;
	} else {
		zone->run[fr->run] = e->bnext;
		if (!e->bnext)
			zone->run_map[fr->run >> 6] &= ~(1ULL << (fr->run & 63));
	}
}

static void run_add(struct neuron_buddy *zone, struct frame *fr, u32 run)
{
	struct ext *e = &fr->e;

	fr->run = run;
	e->bprev = NULL;
	e->bnext = zone->run[run];
	if (e->bnext)
		e->bnext->bprev = e;
	zone->run[run] = e;
	zone->run_map[run >> 6] |= 1ULL << (run & 63);
}

/* Smallest longest-run at or above @run that some frame has, or NONE. */
static inline u32 run_next(const struct neuron_buddy *zone, u32 run)
{
	u32 i = run >> 6;
	u64 x;

	if (run > FRAME_LEN)
		return NONE;
	x = zone->run_map[i] & (~0ULL << (run & 63));
	while (!x) {
		if (++i == FRAME_BITS / 64 + 1)
			return NONE;
		x = zone->run_map[i];
	}
	return i * 64 + __ffs64(x);
}

void frame_set_run(struct neuron_buddy *zone, struct frame *fr, u32 run)
{
	if (run != fr->run) {
		run_del(zone, fr);
		run_add(zone, fr, run);
	}
}

/*
 * The free edges of a frame changed, and with them the runs that cross its borders. Most
 * edges are part of no such run and cost nothing.
 */
static void frame_set_head(struct neuron_buddy *zone, struct frame *fr, u32 head)
{
	const struct ext *x = fr->e.prev;

	if (fr->head == head)
		return;
	fr->head = head;
	if (x && x->type == EXT_FREE)
		trees_update(zone, cell_of(x->start));
	else if (x && x->type == EXT_FRAME && to_frame(x)->tail)
		trees_update(zone, cell_of(fr->e.start));
}

static void __neuron_hot frame_set_tail(struct neuron_buddy *zone, struct frame *fr, u32 tail)
{
	const struct ext *x = fr->e.next;

	if (fr->tail == tail)
		return;
	fr->tail = tail;
	if (x && (x->type == EXT_FREE || (x->type == EXT_FRAME && to_frame(x)->head)))
		trees_update(zone, cell_of(x->start));
}

static void frame_set_edges(struct neuron_buddy *zone, struct frame *fr)
{
	u32 lo = frame_lo(fr), hi = frame_hi(fr);

	frame_set_head(zone, fr, min(frame_scan(fr, lo, true), hi) - lo);
	frame_set_tail(zone, fr, min(frame_free_below(fr, hi), fr->e.len));
}

/*
 * State of frame_fit(): the tightest run so far, and the longest of the others. Runs that
 * are far too short are skipped.
 */
struct fit_search {
	u32 n;
	u32 base;
	u32 mask;
	u32 best;
	u32 rest;
	bool passed;
};

/* The runs of at least @n set bits in @x; @n is not 0. */
static u64 runs_from(u64 x, u32 n)
{
	u32 have, step;
	u64 y = x;

	if (n > 64)
		return 0;
	/* A bit stays if a run of @have set bits begins there. */
	for (have = 1; have < n && y; have += step) {
		step = min(have, n - have);
		y &= y >> step;
	}
	for (have = 1; have < n && y; have += step) {
		step = min(have, n - have);
		y |= y << step;
	}
	return y;
}

/* Look at the free run [lo, hi). True once nothing better can come. */
static bool __neuron_hot fit_run(struct fit_search *s, struct fit *fit, u32 lo, u32 hi,
				 u32 longest)
{
	u32 off = ((s->base + lo + s->mask) & ~s->mask) - s->base;

	if (off < hi && hi - off >= s->n && hi - lo < s->best) {
		if (s->best != NONE)
			s->rest = max(s->rest, s->best);
		s->best = hi - lo;
		fit->off = off;
		fit->lo = lo;
		fit->hi = hi;
	} else {
		s->rest = max(s->rest, hi - lo);
	}
	/* An exact fit, and the frame's longest run was seen elsewhere or must exist elsewhere. */
	return s->best == s->n && (s->rest == longest || s->n < longest);
}

/* Among several runs. */
static noinline bool frame_fit_tightest(struct frame *fr, u32 n, u32 k, struct fit *fit)
{
	struct fit_search s = {
		.n = n,
		.base = frame_base(fr),
		.mask = (1u << k) - 1,
		.best = NONE,
	};
	u32 i, base, open = 0;
	u64 x, low;

	/* open: length of the run that reaches the end of the words seen so far */
	for (i = 0, base = 0; i < FRAME_WORDS; i++, base += 64) {
		u32 top;

		x = ~frame_used(fr, i);
		if (!~x) {
			open += 64;
			continue;
		}
		if (!x && !open)
			continue;
		if (open || x & 1) {
			u32 first = __ffs64(~x);

			if (fit_run(&s, fit, base - open, base + first, fr->run))
				goto found;
			x &= x + 1;
		}
		top = 64 - fls64(~x);
		open = top;
		if (top)
			x &= ~0ULL >> top;
		low = runs_from(x, n);
		s.passed |= low != x;
		x = low;
		while (x) {
			u32 lo = __ffs64(x), len = __ffs64(~(x >> lo));

			if (fit_run(&s, fit, base + lo, base + lo + len, fr->run))
				goto found;
			low = x & -x;
			x &= x + low;
		}
	}
	if (open)
		fit_run(&s, fit, base - open, base, fr->run);
	if (s.best == NONE)
		return false;
found:
	if (s.best < fr->run)
		s.rest = fr->run;
	s.rest = max(s.rest, fit->off - fit->lo);
	fit->rest = max(s.rest, fit->hi - fit->off - n);
	/* A skipped run has at least one granule and fewer than n. */
	if (s.passed && fit->rest < n - 1)
		fit->rest = n > 2 ? NONE : 1;
	return true;
}

/* The only run is [lo, hi). */
static __always_inline bool frame_fit_only(const struct frame *fr, u32 lo, u32 hi, u32 n, u32 k,
					   struct fit *fit)
{
	u32 base = frame_base(fr), mask = (1u << k) - 1;
	u32 off = ((base + lo + mask) & ~mask) - base;

	fit->off = off;
	fit->lo = lo;
	fit->hi = hi;
	if (off >= hi || hi - off < n)
		return false;
	fit->rest = max(off - lo, hi - off - n);
	return true;
}

/*
 * Tightest run of @fr for @n granules aligned to 2^k. Out of line, which compilers choose, an
 * allocation among a million takes twice as long.
 */
static __always_inline bool frame_fit(struct frame *fr, u32 n, u32 k, struct fit *fit)
{
	u32 lo, hi;

	if (fr->miss_n && n >= fr->miss_n && k >= fr->miss_k)
		return false;
	if (frame_end_run(fr, &lo, &hi) ? frame_fit_only(fr, lo, hi, n, k, fit) :
					  frame_fit_tightest(fr, n, k, fit))
		return true;
	fr->miss_n = n;
	fr->miss_k = k;
	return false;
}

/* The fit that describes the free range [off, off + n) of a frame. */
void frame_fit_at(struct frame *fr, u32 off, u32 n, struct fit *fit)
{
	fit->off = off;
	fit->lo = off - frame_free_below(fr, off);
	fit->hi = frame_scan(fr, off + n, true);
}

/* Write the generation into the later granules of a block, which has some. */
static void frame_put_tag(struct frame *fr, u32 off, u32 n, u32 gen)
{
	u32 bits = min(n - 1, TAG_BITS);
	u32 bit = (off + 1) & 63, word = (off + 1) >> 6;
	u64 mask, tag;

	mask = (1ULL << bits) - 1;
	tag = gen & mask;
	fr->b[word] = (fr->b[word] & ~(mask << bit)) | (tag << bit);
	if (bit + bits > 64) {
		mask >>= 64 - bit;
		tag >>= 64 - bit;
		fr->b[word + 1] = (fr->b[word + 1] & ~mask) | tag;
	}
}

/* Are the @n granules from @at on later granules of a block of generation @gen, its first ones? */
bool frame_has_later(const struct frame *fr, u32 at, u32 n, u32 gen)
{
	u32 bits = min(n, TAG_BITS), bit = at & 63, word = at >> 6;
	u64 tag = fr->b[word] >> bit;

	if (bit + bits > 64)
		tag |= fr->b[word + 1] << (64 - bit);
	return !((tag ^ gen) & ((1ULL << bits) - 1)) && bits_all(fr->a, at, n, true);
}

/* Make [off, off + n) of the frame one block. */
static void frame_mark(struct frame *fr, u32 off, u32 n, u32 gen)
{
	fr->b[off >> 6] |= 1ULL << (off & 63);
	if (n > 1) {
		bits_assign(fr->a, off + 1, n - 1, true);
		frame_put_tag(fr, off, n, gen);
	}
	fr->live++;
}

static void frame_clear(struct frame *fr, u32 off, u32 n)
{
	while (n) {
		u32 bit = off & 63, word = off >> 6;
		u32 take = min(n, 64 - bit);
		u64 mask = (~0ULL >> (64 - take)) << bit;

		fr->a[word] &= ~mask;
		fr->b[word] &= ~mask;
		off += take;
		n -= take;
	}
}

/* Length of the block that starts at @off: up to the next granule that does not belong to it. */
u32 frame_block_len(const struct frame *fr, u32 off)
{
	u32 i = (off + 1) >> 6;
	u64 x;

	if (off + 1 >= FRAME_BITS)
		return 1;
	x = ~fr->a[i] & (~0ULL << ((off + 1) & 63));
	while (!x) {
		if (++i == FRAME_WORDS)
			return FRAME_BITS - off;
		x = ~fr->a[i];
	}
	return i * 64 + __ffs64(x) - off;
}

/* First granule of the block that contains @off; @off is not free. */
u32 frame_block_start(const struct frame *fr, u32 off)
{
	u32 i = off >> 6;
	u64 x = ~fr->a[i] & (~0ULL >> (63 - (off & 63)));

	while (!x)
		x = ~fr->a[--i];
	return i * 64 + log2_floor(x);
}

void frame_take(struct neuron_buddy *zone, struct frame *fr, const struct fit *fit,
		       u32 n, u32 gen)
{
	if (fr == zone->empty)
		zone->empty = NULL;
	order_sub(zone, fit->hi - fit->lo);
	order_add(zone, fit->off - fit->lo);
	order_add(zone, fit->hi - fit->off - n);
	frame_mark(fr, fit->off, n, gen);
	fr->free -= n;
	frame_set_run(zone, fr, fit->rest);
	if (fit->lo == frame_lo(fr))
		frame_set_head(zone, fr, fit->off - fit->lo);
	if (fit->hi == frame_hi(fr))
		frame_set_tail(zone, fr, fit->hi - fit->off - n);
}

/* Longest free run, the slow way. */
u32 frame_longest(const struct frame *fr)
{
	u32 lo, hi, run = 0;

	for (lo = frame_scan(fr, 0, false); lo < FRAME_LEN; lo = frame_scan(fr, hi, false)) {
		hi = frame_scan(fr, lo, true);
		run = max(run, hi - lo);
	}
	return run;
}

/* Turn the used extent @e, of FRAME_LEN granules at most, into an empty frame. */
struct frame *frame_create(struct neuron_buddy *zone, struct ext *e)
{
	struct frame *fr = frame_get(zone);
	u32 i;

	ext_replace(zone, e, &fr->e);
	ext_put(zone, e);
	fr->e.type = EXT_FRAME;
	fr->lo = 0;
	fr->free = fr->e.len;
	for (i = 0; i < FRAME_WORDS; i++) {
		fr->a[i] = 0;
		fr->b[i] = 0;
	}
	bits_assign(fr->b, fr->e.len, FRAME_BITS - fr->e.len, true);
	fr->live = 0;
	fr->pins = 0;
	fr->miss_n = 0;
	fr->miss_k = 0;
	/* The first block sets the edges, because it changes both of them. */
	fr->head = 0;
	fr->tail = 0;
	run_add(zone, fr, fr->e.len);
	order_add(zone, fr->e.len);
	zone->st.frames++;
	return fr;
}

/* An empty frame becomes a free extent again. Allocates nothing. */
static void frame_destroy(struct neuron_buddy *zone, struct frame *fr)
{
	struct ext *e = &fr->e;

	run_del(zone, fr);
	order_sub(zone, e->len);
	zone->st.frames--;
	frame_set_head(zone, fr, 0);
	frame_set_tail(zone, fr, 0);
	/* With an empty pool the frame's own extent serves instead. */
	if (zone->pool_len) {
		e = ext_get(zone);
		ext_replace(zone, &fr->e, e);
		ext_put(zone, &fr->e);
	}
	ext_release(zone, e);
}

/* What the zone kept to be quick becomes what it stands for. May take one extent. */
void frame_settle(struct neuron_buddy *zone)
{
	struct frame *fr = zone->empty;

	zone->empty = NULL;
	if (fr)
		frame_destroy(zone, fr);
}

/* Free [off, off + n) of the frame, which is @blocks blocks. */
void frame_free(struct neuron_buddy *zone, struct frame *fr, u32 off, u32 n, u32 blocks)
{
	u32 below, above, lo, hi;

	if (frame_end_run(fr, &lo, &hi)) {
		below = hi == off ? hi - lo : 0;
		above = lo == off + n ? hi - lo : 0;
	} else {
		below = frame_free_below(fr, off);
		above = min(frame_scan(fr, off + n, true), FRAME_LEN) - (off + n);
	}
	frame_clear(fr, off, n);
	fr->free += n;
	fr->live -= blocks;
	fr->miss_n = 0;
	order_sub(zone, below);
	order_sub(zone, above);
	off -= below;
	n += below + above;
	order_add(zone, n);
	if (!fr->live && zone->empty) {
		frame_destroy(zone, fr);
		return;
	}
	if (n > fr->run)
		frame_set_run(zone, fr, n);
	/* Its edges, and so the trees, stay as they are: the next block may be the same. */
	if (!fr->live) {
		zone->empty = fr;
		return;
	}
	if (off == frame_lo(fr))
		frame_set_head(zone, fr, n);
	if (off + n == frame_hi(fr))
		frame_set_tail(zone, fr, n);
}

/*
 * Give the free edge of a frame back: @n granules at its low (@low) or high end
 * become a free extent. Needs one extent.
 */
void frame_trim(struct neuron_buddy *zone, struct frame *fr, bool low, u32 n)
{
	struct ext *e = ext_get(zone);
	u32 edge = low ? fr->head : fr->tail;

	order_sub(zone, edge);
	order_add(zone, edge - n);
	fr->free -= n;
	if (low) {
		bits_assign(fr->b, frame_lo(fr), n, true);
		e->start = fr->e.start;
		map_del(zone, &fr->e);
		fr->e.start += n;
		fr->e.len -= n;
		fr->lo += n;
		/* The new extent lies below the frame's own one. */
		e->prev = fr->e.prev;
		e->next = &fr->e;
		e->prev->next = e;
		fr->e.prev = e;
		map_add(zone, &fr->e);
		map_add(zone, e);
	} else {
		bits_assign(fr->b, frame_hi(fr) - n, n, true);
		fr->e.len -= n;
		e->start = ext_end(&fr->e);
		ext_link_after(zone, &fr->e, e);
	}
	e->len = n;
	frame_set_run(zone, fr, frame_longest(fr));
	frame_set_edges(zone, fr);
	ext_release(zone, e);
}

/* Enlarge a block of a frame by @more free granules behind it. */
void frame_grow(struct neuron_buddy *zone, struct frame *fr, u32 off, u32 n,
		       u32 more, u32 gen)
{
	u32 end = off + n;
	u32 room = frame_scan(fr, end, true) - end;

	order_sub(zone, room);
	order_add(zone, room - more);
	fr->free -= more;
	bits_assign(fr->a, end, more, true);
	frame_put_tag(fr, off, n + more, gen);
	frame_set_run(zone, fr, frame_longest(fr));
	frame_set_edges(zone, fr);
}

bool pin_covers(const struct neuron_buddy *zone, u32 start, u32 n)
{
	const struct ext *pin;

	for (pin = zone->pins; pin; pin = pin->bnext) {
		if (start < ext_end(pin) && pin->start < start + n)
			return true;
	}
	return false;
}

/* Reserve the free granules of [lo, hi) of a frame. One extent per free run. */
u32 frame_reserve(struct neuron_buddy *zone, struct frame *fr, u32 lo, u32 hi)
{
	u32 done = 0, end;

	for (lo = frame_scan(fr, lo, false); lo < hi; lo = frame_scan(fr, end, false)) {
		struct ext *pin = ext_get(zone);
		struct fit fit;

		end = min(frame_scan(fr, lo, true), hi);
		frame_fit_at(fr, lo, end - lo, &fit);
		fit.rest = fr->run;
		frame_take(zone, fr, &fit, end - lo, 0);
		fr->pins = 1;
		pin->type = EXT_PIN;
		pin->start = frame_base(fr) + lo;
		pin->len = end - lo;
		pin->bnext = zone->pins;
		zone->pins = pin;
		done += end - lo;
	}
	frame_set_run(zone, fr, frame_longest(fr));
	return done;
}

/*
 * Count the extents that reserving [lo, hi) of a frame takes. False if something
 * in there is allocated.
 */
bool frame_reservable(const struct neuron_buddy *zone, const struct frame *fr,
			     u32 lo, u32 hi, u32 *need)
{
	u32 base = frame_base(fr);

	while (lo < hi) {
		u32 next = min(frame_scan(fr, lo, true), hi);

		if (next > lo)
			++*need;
		for (lo = next; lo < hi; lo++) {
			if (!bit_test(fr->a, lo) && !bit_test(fr->b, lo))
				break;
			if (!pin_covers(zone, base + lo, 1))
				return false;
		}
	}
	return true;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The operations of a zone; see buddy.h.
 */
#include "bits.h"
#include "clear.h"
#include "extents.h"
#include "frames.h"
#include "generation.h"
#include "placement.h"
#include "pool.h"
#include "sizes.h"
#include "trees.h"

static void charge(struct neuron_buddy *zone, u32 n)
{
	u64 bytes = (u64)n << SHIFT;

	WRITE_ONCE(zone->st.used, zone->st.used + bytes);
	WRITE_ONCE(zone->st.free, zone->st.free - bytes);
	zone->st.high_water = max(zone->st.high_water, zone->st.used);
}

static void fill_block(struct neuron_buddy *zone, struct neuron_buddy_block *block,
		       u32 start, u32 n, u32 gen)
{
	block->addr = (u64)start << SHIFT;
	block->size = (u64)n << SHIFT;
	block->id = zone->id;
	block->gen = gen;
	block->cleared = clean_test(zone, start, n);
}

static void place_take(struct neuron_buddy *zone, struct place *p, u32 n,
		       struct neuron_buddy_block *block)
{
	u32 start = p->fr ? frame_base(p->fr) + p->fit.off : p->pos;
	u32 gen = gen_next(zone, start);

	if (p->fr) {
		if (p->fit.rest == NONE) {
			/* rest is not known: take the block first, then look for the longest run */
			p->fit.rest = p->fr->run;
			frame_take(zone, p->fr, &p->fit, n, gen);
			frame_set_run(zone, p->fr, frame_longest(p->fr));
		} else {
			frame_take(zone, p->fr, &p->fit, n, gen);
		}
	} else {
		ext_take(zone, p->e, p->pos, n)->gen = gen;
		sizes_add(zone, n);
	}
	charge(zone, n);
	zone->st.allocs++;
	zone->st.alloc_calls++;
	fill_block(zone, block, start, n, gen);
}

int neuron_buddy_alloc(struct neuron_buddy *zone, const struct neuron_buddy_request *req,
		       struct neuron_buddy_block *block, enum neuron_buddy_cause *cause)
{
	enum neuron_buddy_cause why = NEURON_BUDDY_CAUSE_NONE;
	u64 size = to_granules(req->size);
	bool exact = req->flags & NEURON_BUDDY_EXACT;
	struct place p;
	u32 n, k = 0;
	int err = 0;

	if (cause)
		*cause = why;
	if (!size || req->flags & ~NEURON_BUDDY_FLAGS || req->flags & (req->flags - 1))
		return -EINVAL;
	if (req->align > NEURON_BUDDY_GRANULE) {
		if (!is_power_of_2(req->align))
			return -EINVAL;
		/* Only address 0 is aligned to 2^31 granules and more. */
		k = min(log2_floor(req->align) - SHIFT, 31u);
	} else if (req->align && !is_power_of_2(req->align)) {
		return -EINVAL;
	}
	if (exact && (req->addr & (max_t(u64, req->align, NEURON_BUDDY_GRANULE) - 1) ||
		      to_granules(req->addr) >= zone->len ||
		      size > zone->len - to_granules(req->addr)))
		return -EINVAL;
	n = min_t(u64, size, zone->len);
	if (size <= zone->len) {
		place_settle(zone, n, k, req->flags);
		if (!reserve_ready(zone, NEED_EXTENTS))
			return -EAGAIN;
	}
	if (size > zone->len) {
		why = NEURON_BUDDY_CAUSE_FULL;
		err = -ENOSPC;
	} else if (exact) {
		err = place_exact(zone, (u32)(req->addr >> SHIFT), n, &p);
		if (err)
			why = NEURON_BUDDY_CAUSE_BUSY;
	} else if (!place_find(zone, n, k, req->flags, &p)) {
		why = refusal(zone, n, k);
		err = -ENOSPC;
	}
	if (!err)
		place_take(zone, &p, n, block);
	else if (cause)
		zone->st.failures[why]++;
	if (cause)
		*cause = why;
	return err;
}

/* Is @block what begins at @start, @off in the frame @fr, where some block begins? */
static __always_inline bool frame_block_is(const struct frame *fr, u32 start, u32 off,
					   const struct neuron_buddy_block *block,
					   const struct obit *o)
{
	u64 n = block->size >> SHIFT;

	return n << SHIFT == block->size && frame_is_block(fr, off, n, block->gen) &&
	       (o->start != start || o->gen != block->gen);
}

/* Does @block, which begins in the frame @fr, name a live allocation there? */
static __always_inline int frame_block_find(struct neuron_buddy *zone, const struct frame *fr,
					    const struct neuron_buddy_block *block)
{
	u32 start = (u32)(block->addr >> SHIFT), off = start - frame_base(fr);

	if (fr->pins && pin_covers(zone, start, 1))
		return -EPERM;
	if (bit_test(fr->a, off) || !bit_test(fr->b, off))
		return -ENOENT;
	return frame_block_is(fr, start, off, block, obit_of(zone, start)) ? 0 : -ESTALE;
}

/* Find the live allocation that @block names: for what frees it. */
static __always_inline int __block_find(struct neuron_buddy *zone,
					const struct neuron_buddy_block *block, struct ext **ext)
{
	u64 addr = block->addr, size = block->size;
	struct ext *e;
	u32 start;

	if (block->id != zone->id || (addr | size) & (NEURON_BUDDY_GRANULE - 1) || !size ||
	    addr >> SHIFT >= zone->len || size >> SHIFT > zone->len - (addr >> SHIFT))
		return -EINVAL;
	start = (u32)(addr >> SHIFT);
	e = ext_find(zone, start);
	*ext = e;
	if (e->type == EXT_RESERVED)
		return -EPERM;
	if (e->type == EXT_USED) {
		if (e->start != start)
			return -ENOENT;
		return e->len == size >> SHIFT && e->gen == block->gen ? 0 : -ESTALE;
	}
	return e->type == EXT_FRAME ? frame_block_find(zone, to_frame(e), block) : -ENOENT;
}

static int block_find(struct neuron_buddy *zone, const struct neuron_buddy_block *block,
		      struct ext **ext)
{
	return __block_find(zone, block, ext);
}

/*
 * How many of @n blocks follow each other from @start on, in the frame @fr, where a block ends?
 * They are as good as free, and @start is where the last one ends.
 */
static noinline u32 frame_neighbours(struct neuron_buddy *zone, const struct frame *fr,
				     const struct neuron_buddy_block *const *blocks, u32 n,
				     u32 *start)
{
	u32 base = frame_base(fr), at = *start, end = fr->pins ? 0 : ext_end(&fr->e), i;

	/* Behind a block no granule is a later one. */
	for (i = 0; i < n && at < end && bit_test(fr->b, at - base); i++) {
		const struct neuron_buddy_block *block = blocks[i];
		struct obit o = { .start = at, .gen = block->gen }, *last = obit_of(zone, at);
		u32 len = (u32)(block->size >> SHIFT);

		if (block->addr != (u64)at << SHIFT || block->id != zone->id ||
		    !frame_block_is(fr, at, at - base, block, last))
			break;
		*last = o;
		at += len;
	}
	*start = at;
	return i;
}

/* The first bit behind @i of @bits that is not like bit @i, or 64. */
static inline u32 next_other(u64 bits, u32 i)
{
	bits = (bits >> i & 1 ? ~bits : bits) >> i;
	return bits ? i + __ffs64(bits) : 64;
}

int neuron_buddy_free_batch(struct neuron_buddy *zone,
			    const struct neuron_buddy_block *const *blocks, unsigned int n,
			    u64 cleared)
{
	int err, ret = 0;
	struct ext *e;
	u32 i, j;

	for (i = 0; i < n; i = j) {
		bool clear = cleared >> i & 1;
		u32 start = (u32)(blocks[i]->addr >> SHIFT);
		u32 end = start + (u32)(blocks[i]->size >> SHIFT);
		u64 bytes;

		j = i + 1;
		err = __block_find(zone, blocks[i], &e);
		if (err) {
			zone->st.bad_frees++;
			ret = ret ? ret : err;
			continue;
		}
		/* Also of one that had an extent: a frame may cover its place later. */
		if (end - start <= FRAME_LEN)
			obit_add(zone, blocks[i]);
		/* Neighbours in the same frame are freed together. */
		if (e->type == EXT_FRAME && j < n)
			j += frame_neighbours(zone, to_frame(e), blocks + j,
					      min(n, next_other(cleared, i)) - j, &end);
		clean_set(zone, start, end - start, clear);
		bytes = (u64)(end - start) << SHIFT;
		WRITE_ONCE(zone->st.used, zone->st.used - bytes);
		WRITE_ONCE(zone->st.free, zone->st.free + bytes);
		zone->st.allocs -= j - i;
		zone->st.free_calls += j - i;
		if (e->type == EXT_FRAME) {
			frame_free(zone, to_frame(e), start - frame_base(to_frame(e)), end - start,
				   j - i);
		} else {
			sizes_sub(zone, e->len);
			ext_release(zone, e);
		}
	}
	return ret;
}

int neuron_buddy_free(struct neuron_buddy *zone, const struct neuron_buddy_block *block,
		      bool cleared)
{
	return neuron_buddy_free_batch(zone, &block, 1, cleared);
}

int neuron_buddy_grow(struct neuron_buddy *zone, struct neuron_buddy_block *block, u64 new_size)
{
	u64 size = to_granules(new_size);
	u32 start, n, more;
	struct ext *e, *next;
	bool cleared;
	int err;

	frame_settle(zone);
	err = block_find(zone, block, &e);
	if (err)
		return err;
	start = (u32)(block->addr >> SHIFT);
	n = (u32)(block->size >> SHIFT);
	if (size < n)
		return -EINVAL;
	if (size == n)
		return 0;
	if (!reserve_ready(zone, NEED_EXTENTS))
		return -EAGAIN;

	if (size > zone->len - start) {
		zone->st.failures[NEURON_BUDDY_CAUSE_BUSY]++;
		return -ENOSPC;
	}
	more = (u32)size - n;
	/* A block of a frame cannot leave it. */
	if (!range_free(zone, start + n, more) ||
	    (e->type == EXT_FRAME && start + (u32)size > ext_end(e))) {
		zone->st.failures[NEURON_BUDDY_CAUSE_BUSY]++;
		return -ENOSPC;
	}
	cleared = block->cleared && clean_test(zone, start + n, more);
	if (e->type == EXT_FRAME) {
		frame_grow(zone, to_frame(e), start - frame_base(to_frame(e)), n, more,
			   block->gen);
	} else {
		struct frame *fr;

		if (range_in_frame(zone, start + n, more, &fr)) {
			frame_trim(zone, fr, true, more);
			next = e->next;
		} else {
			next = range_to_extent(zone, start + n, more);
		}
		next = ext_take(zone, next, start + n, more);
		ext_unlink(zone, next);
		sizes_sub(zone, n);
		sizes_add(zone, n + more);
		e->len += more;
		ext_put(zone, next);
	}
	charge(zone, more);
	block->size = size << SHIFT;
	block->cleared = cleared;
	return 0;
}

int neuron_buddy_split(struct neuron_buddy *zone, struct neuron_buddy_block *block, u64 new_size,
		       struct neuron_buddy_block *tail)
{
	u64 size = to_granules(new_size);
	struct ext *e, *rest;
	u32 n;
	int err;

	err = block_find(zone, block, &e);
	if (err)
		return err;
	n = (u32)(block->size >> SHIFT);
	if (!size || size >= n)
		return -EINVAL;
	if (e->type == EXT_FRAME)
		return -ENOSPC;
	if (!reserve_ready(zone, NEED_EXTENTS))
		return -EAGAIN;

	rest = ext_get(zone);
	rest->type = EXT_USED;
	rest->start = e->start + (u32)size;
	rest->len = n - (u32)size;
	rest->gen = gen_next(zone, rest->start);
	e->len = (u32)size;
	ext_link_after(zone, e, rest);
	sizes_sub(zone, n);
	sizes_add(zone, e->len);
	sizes_add(zone, rest->len);
	zone->st.allocs++;
	zone->st.alloc_calls++;
	block->size = size << SHIFT;
	fill_block(zone, tail, rest->start, rest->len, rest->gen);
	tail->cleared = 0;
	return 0;
}

int neuron_buddy_reserve(struct neuron_buddy *zone, u64 addr, u64 size)
{
	u32 start, end, need = 0, done = 0;
	struct ext *e;

	if ((addr | size) & (NEURON_BUDDY_GRANULE - 1) || !size || addr >> SHIFT >= zone->len ||
	    size >> SHIFT > zone->len - (addr >> SHIFT))
		return -EINVAL;
	start = (u32)(addr >> SHIFT);
	end = start + (u32)(size >> SHIFT);

	frame_settle(zone);
	for (e = ext_find(zone, start); e && e->start < end; e = e->next) {
		u32 lo = max(start, e->start), hi = min(end, ext_end(e));
		bool busy = e->type == EXT_USED;

		if (e->type == EXT_FREE)
			need += 2;
		else if (e->type == EXT_FRAME)
			busy = !frame_reservable(zone, to_frame(e), lo - frame_base(to_frame(e)),
						 hi - frame_base(to_frame(e)), &need);
		if (busy) {
			zone->st.failures[NEURON_BUDDY_CAUSE_BUSY]++;
			return -EBUSY;
		}
	}
	if (!reserve_ready(zone, max(need, NEED_EXTENTS)))
		return -EAGAIN;

	for (e = ext_find(zone, start); e && e->start < end; e = e->next) {
		u32 lo = max(start, e->start), hi = min(end, ext_end(e));

		if (e->type == EXT_FREE) {
			e = ext_take(zone, e, lo, hi - lo);
			e->type = EXT_RESERVED;
			done += hi - lo;
		} else if (e->type == EXT_FRAME) {
			struct frame *fr = to_frame(e);

			done += frame_reserve(zone, fr, lo - frame_base(fr), hi - frame_base(fr));
		}
	}
	zone->st.reserved += (u64)done << SHIFT;
	WRITE_ONCE(zone->st.free, zone->st.free - ((u64)done << SHIFT));
	return 0;
}

void neuron_buddy_mark_clear(struct neuron_buddy *zone)
{
	/*
	 * A unit's bit describes its free granules only, so it may be set for all units.
	 * The free of a live allocation tells whether it leaves zeros behind.
	 */
	clean_set(zone, 0, zone->cells << FRAME_ORDER, true);
}

int neuron_buddy_query(struct neuron_buddy *zone, u64 addr, struct neuron_buddy_block *out)
{
	struct frame *fr;
	struct ext *e;
	u32 granule, off;

	if (addr >> SHIFT >= zone->len)
		return -EINVAL;
	granule = (u32)(addr >> SHIFT);
	e = ext_find(zone, granule);
	if (e->type == EXT_USED) {
		fill_block(zone, out, e->start, e->len, e->gen);
		out->cleared = 0;
		return 0;
	}
	if (e->type != EXT_FRAME)
		return -ENOENT;
	fr = to_frame(e);
	off = granule - frame_base(fr);
	if (!bit_test(fr->a, off) && !bit_test(fr->b, off))
		return -ENOENT;
	if (fr->pins && pin_covers(zone, granule, 1))
		return -ENOENT;
	off = frame_block_start(fr, off);
	fill_block(zone, out, frame_base(fr) + off, frame_block_len(fr, off), 0);
	out->cleared = 0;
	return 0;
}

unsigned int neuron_buddy_walk(struct neuron_buddy *zone, u64 *pos,
			       struct neuron_buddy_range *out, unsigned int count)
{
	unsigned int i;
	u64 at = to_granules(*pos);

	frame_settle(zone);
	for (i = 0; i < count && at < zone->len; i++) {
		struct ext *e = ext_find(zone, (u32)at);
		u32 end = ext_end(e);

		out[i].addr = at << SHIFT;
		out[i].small = e->type == EXT_FRAME;
		if (e->type == EXT_FREE) {
			out[i].state = NEURON_BUDDY_RANGE_FREE;
		} else if (e->type == EXT_USED) {
			out[i].state = NEURON_BUDDY_RANGE_USED;
		} else if (e->type == EXT_RESERVED) {
			out[i].state = NEURON_BUDDY_RANGE_RESERVED;
		} else {
			struct frame *fr = to_frame(e);
			u32 off = (u32)at - frame_base(fr);

			if (bit_test(fr->a, off) || bit_test(fr->b, off)) {
				u32 first = frame_block_start(fr, off);

				end = frame_base(fr) + first + frame_block_len(fr, first);
				out[i].state = fr->pins && pin_covers(zone, (u32)at, 1) ?
					       NEURON_BUDDY_RANGE_RESERVED :
					       NEURON_BUDDY_RANGE_USED;
			} else {
				end = min(frame_base(fr) + frame_scan(fr, off, true), end);
				out[i].state = NEURON_BUDDY_RANGE_FREE;
			}
		}
		out[i].size = (end - at) << SHIFT;
		at = end;
	}
	*pos = at << SHIFT;
	return i;
}

/* The longest free run, which may end or begin in a frame, but not lie in one. */
static u32 longest_outside(const struct neuron_buddy *zone)
{
	return max(tree_top(&zone->longest), tree_top(&zone->joined));
}

void neuron_buddy_stats(struct neuron_buddy *zone, struct neuron_buddy_stats *stats)
{
	frame_settle(zone);
	*stats = zone->st;
	stats->largest = (u64)max(longest_outside(zone), run_top(zone)) << SHIFT;
}

u64 neuron_buddy_largest(struct neuron_buddy *zone, u64 align)
{
	u64 mask, best, ext, run, whole;

	if (!is_power_of_2(align))
		return 0;
	frame_settle(zone);
	ext = longest_outside(zone);
	run = run_top(zone);
	whole = (u64)tree_top(&zone->whole) << FRAME_ORDER;
	align = max_t(u64, align >> SHIFT, 1);
	mask = align - 1;
	best = max(ext > mask ? ext - mask : 0, run > mask ? run - mask : 0);
	if (align <= FRAME_LEN)
		best = max(best, whole);
	else
		best = max(best, whole > align - FRAME_LEN ? whole - (align - FRAME_LEN) : 0);
	return best << SHIFT;
}

u64 neuron_buddy_total(const struct neuron_buddy *zone)
{
	return (u64)zone->len << SHIFT;
}

u64 neuron_buddy_used(const struct neuron_buddy *zone)
{
	return READ_ONCE(zone->st.used);
}

u64 neuron_buddy_free_bytes(const struct neuron_buddy *zone)
{
	return READ_ONCE(zone->st.free);
}

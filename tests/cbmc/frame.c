// SPDX-License-Identifier: GPL-2.0-only
/*
 * Model checking of what happens inside a frame: for every content of a frame of
 * 2^FRAME_ORDER_UNDER_PROOF granules and every argument. One proof at a time,
 * chosen with -D PROOF=name.
 */
#define NEURON_BUDDY_FRAME_ORDER	FRAME_ORDER_UNDER_PROOF
#ifndef TREE_SHIFT_UNDER_PROOF
#define TREE_SHIFT_UNDER_PROOF 2
#endif
#define NEURON_BUDDY_TREE_SHIFT		TREE_SHIFT_UNDER_PROOF
#include "../../kmod/mem/buddy/all.h"

#define CHECK(cond, text) __CPROVER_assert(cond, text)

u32 nondet_u32(void);
u64 nondet_u64(void);

static struct frame fr;

static bool is_free(u32 i)
{
	return i < FRAME_LEN && !(fr.a[0] >> i & 1) && !(fr.b[0] >> i & 1);
}

/* Any content; what is outside the frame looks like first granules. */
static void any_frame(void)
{
	u64 outside = FRAME_LEN == 64 ? 0 : ~0ULL << FRAME_LEN;

	fr.a[0] = nondet_u64() & ~outside;
	fr.b[0] = nondet_u64() | outside;
	fr.e.start = 0;
	fr.e.len = FRAME_LEN;
}

static u32 longest(void)
{
	u32 i, run = 0, best = 0;

	for (i = 0; i < FRAME_LEN; i++) {
		run = is_free(i) ? run + 1 : 0;
		best = max(best, run);
	}
	return best;
}

/* What is known of that content. */
static void known_frame(void)
{
	u32 i;

	fr.free = 0;
	for (i = 0; i < FRAME_LEN; i++)
		fr.free += is_free(i);
	fr.live = FRAME_LEN - fr.free;
	/* of an empty frame the edges are old ones */
	fr.head = nondet_u32();
	fr.tail = nondet_u32();
	if (fr.live) {
		fr.head = min(frame_scan(&fr, 0, true), FRAME_LEN);
		fr.tail = frame_free_below(&fr, FRAME_LEN);
	}
	fr.run = longest();
	fr.miss_n = 0;
}

/* frame_fit() finds a place if there is one: free, aligned, in the tightest run. */
static void proof_fit(void)
{
	u32 n = nondet_u32(), k = nondet_u32(), i, j, mask, tightest = NONE, lo = 0;
	struct fit fit;
	bool found;

	any_frame();
	/* a frame begins anywhere; alignments up to twice its size */
	fr.e.start = nondet_u32();
	__CPROVER_assume(fr.e.start < 2 * FRAME_LEN);
	__CPROVER_assume(n >= 1 && n <= FRAME_LEN && k <= FRAME_ORDER + 1);
	mask = (1u << k) - 1;
	known_frame();
	found = frame_fit(&fr, n, k, &fit);
	/* the slow way: every run, in order */
	for (i = 0; i <= FRAME_LEN; i++) {
		if (is_free(i))
			continue;
		j = ((fr.e.start + lo + mask) & ~mask) - fr.e.start;
		if (j < i && i - j >= n)
			tightest = min(tightest, i - lo);
		lo = i + 1;
	}
	CHECK(found == (tightest != NONE), "finds a place exactly if there is one");
	if (!found) {
		CHECK(fr.miss_n == n && fr.miss_k == k, "remembers the miss");
		return;
	}
	CHECK(!((fr.e.start + fit.off) & mask), "aligned");
	CHECK(fit.lo <= fit.off && fit.off + n <= fit.hi && fit.hi <= FRAME_LEN, "inside its run");
	CHECK(fit.hi - fit.lo == tightest, "the tightest run");
	for (i = 0; i < FRAME_LEN; i++)
		CHECK(i < fit.lo || i >= fit.hi || is_free(i), "the run is free");
	CHECK(!is_free(fit.hi) && (!fit.lo || !is_free(fit.lo - 1)), "the run is whole");
	/* take it, and look what is left */
	bits_assign(fr.b, fit.off, n, true);
	CHECK(fit.rest == longest() || (fit.rest == NONE && n > 2),
	      "knows the longest run that is left, or knows that it does not");
}

/* Blocks are written, measured, recognised by their tag, and erased. */
static void proof_block(void)
{
	u32 off = nondet_u32(), n = nondet_u32(), gen = nondet_u32(), other = nondet_u32(), in, i;
	u64 a, b, mask, len = nondet_u64();

	any_frame();
	__CPROVER_assume(off < FRAME_LEN && n >= 1 && n <= FRAME_LEN - off);
	__CPROVER_assume(gen <= GEN_MASK && other <= GEN_MASK);
	for (i = 0; i < FRAME_LEN; i++)
		__CPROVER_assume(i < off || i >= off + n || is_free(i));
	/* what follows is free or begins a block */
	__CPROVER_assume(off + n == FRAME_LEN || !(fr.a[0] >> (off + n) & 1));
	a = fr.a[0];
	b = fr.b[0];
	frame_mark(&fr, off, n, gen);
	CHECK(frame_block_len(&fr, off) == n, "has its length");
	in = nondet_u32();
	__CPROVER_assume(in >= off && in < off + n);
	CHECK(frame_block_start(&fr, in) == off, "each granule leads to the first");
	CHECK(!is_free(in), "is not free");
	CHECK(frame_is_block(&fr, off, len, gen) == (len == n),
	      "knows its generation, and its length from all others");
	mask = (1ULL << min(n - 1, TAG_BITS)) - 1;
	CHECK(frame_is_block(&fr, off, n, other) == !((gen ^ other) & mask),
	      "tells others by as many bits as it has");
	mask = (n == 64 ? ~0ULL : (1ULL << n) - 1) << off;
	CHECK(!((fr.a[0] ^ a) & ~mask) && !((fr.b[0] ^ b) & ~mask), "touches nothing else");
	bits_assign(fr.a, off, n, false);
	bits_assign(fr.b, off, n, false);
	CHECK(fr.a[0] == a && fr.b[0] == b, "leaves no trace");
}

static void proof_scan(void)
{
	u32 from = nondet_u32(), i, got;

	any_frame();
	__CPROVER_assume(from <= FRAME_LEN);
	got = frame_scan(&fr, from, false);
	for (i = 0; i < FRAME_LEN; i++)
		CHECK(i < from || i >= got || !is_free(i), "nothing free is skipped");
	CHECK(got >= FRAME_LEN || is_free(got), "stops at a free granule");
	got = frame_scan(&fr, from, true);
	for (i = 0; i < FRAME_LEN; i++)
		CHECK(i < from || i >= got || is_free(i), "nothing used is skipped");
	CHECK(got >= FRAME_LEN || !is_free(got), "stops at a used granule");
	got = frame_free_below(&fr, from);
	CHECK(got <= from, "not more than there is");
	for (i = 0; i < FRAME_LEN; i++)
		CHECK(i < from - got || i >= from || is_free(i), "all free below");
	CHECK(got == from || !is_free(from - got - 1), "and no more");
	CHECK(frame_longest(&fr) == longest(), "longest run");
}

/* Bins: in size order, exact below 32, at most 1/32 wide above. */
static void proof_bins(void)
{
	u32 x = nondet_u32(), y = nondet_u32(), rx, cx, ry, cy;

	__CPROVER_assume(x >= 1 && x <= y && y <= 1u << 31);
	bin_of(x, &rx, &cx);
	bin_of(y, &ry, &cy);
	CHECK(rx < 28 && cx < BIN_COLS, "inside the table");
	CHECK(rx < ry || (rx == ry && cx <= cy), "larger sizes in later bins");
	if (rx == ry && cx == cy)
		CHECK(y - x <= x / 32, "a bin is narrow");
}

/* Trees with any values in their leaves, two levels above them. */
#define LEAVES	6

static void proof_tree(void)
{
	static u32 leaf[8], mid[4], top[1];
	static struct tree t = { { leaf, mid, top }, { LEAVES, 2, 1 }, 3 };
	u32 i, at = nondet_u32(), value = nondet_u32(), need = nondet_u32(), got;

	for (i = 0; i < LEAVES; i++) {
		leaf[i] = nondet_u32();
		mid[i / TREE_FAN] = max(mid[i / TREE_FAN], leaf[i]);
		top[0] = max(top[0], leaf[i]);
	}
	__CPROVER_assume(at < LEAVES && need > 0);
	tree_set(&t, at, value);
	CHECK(leaf[at] == value, "is set");
	CHECK(mid[0] == max(max(leaf[0], leaf[1]), max(leaf[2], leaf[3])) &&
	      mid[1] == max(leaf[4], leaf[5]) && top[0] == max(mid[0], mid[1]),
	      "parents are the maxima of their children");
	got = tree_next(&t, at, need);
	for (i = 0; i < LEAVES; i++)
		CHECK(i < at || i >= got || leaf[i] < need, "nothing before it");
	CHECK(got == NONE || (got >= at && got < LEAVES && leaf[got] >= need), "is one");
	got = tree_prev(&t, at, need);
	for (i = 0; i < LEAVES; i++)
		CHECK(i >= at || (got != NONE && i <= got) || leaf[i] < need, "nothing after it");
	CHECK(got == NONE || (got < at && leaf[got] >= need), "is one");
}

/* What is known to be clear is never more than what was declared so. */
static void proof_clean(void)
{
	static struct neuron_buddy zone;
	static u64 word[2], all[1], mixed[1];
	u32 s1 = nondet_u32(), n1 = nondet_u32(), s2 = nondet_u32(), n2 = nondet_u32();
	u32 s3 = nondet_u32(), n3 = nondet_u32(), i;
	bool known;

	zone.clean = word;
	zone.clean_cell = all;
	zone.clean_mixed = mixed;
	zone.cells = 2;
	__CPROVER_assume(s1 < 2 * FRAME_LEN && n1 >= 1 && n1 <= 2 * FRAME_LEN - s1);
	__CPROVER_assume(s2 < 2 * FRAME_LEN && n2 >= 1 && n2 <= 2 * FRAME_LEN - s2);
	__CPROVER_assume(s3 < 2 * FRAME_LEN && n3 >= 1 && n3 <= 2 * FRAME_LEN - s3);
	clean_set(&zone, s1, n1, true);
	clean_set(&zone, s2, n2, false);
	known = clean_test(&zone, s3, n3);
	for (i = 0; i < 2 * FRAME_LEN; i++) {
		bool clear = i >= s1 && i < s1 + n1 && !(i >= s2 && i < s2 + n2);

		if (i >= s3 && i < s3 + n3 && !clear)
			CHECK(!known, "not known to be clear what is not");
	}
	/* below 64 granules every granule has its own bit: exact */
	for (i = 0; i < 2 * FRAME_LEN; i++)
		known = known || (i >= s3 && i < s3 + n3 &&
				  !(i >= s1 && i < s1 + n1 && !(i >= s2 && i < s2 + n2)));
	CHECK(known, "and nothing is forgotten");
}

int main(void)
{
	PROOF();
	return 0;
}

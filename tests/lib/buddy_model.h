/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The HBM allocator beside a model that cannot be wrong: one byte per granule.
 *
 * Every step runs one operation on both and compares everything that the
 * interface promises. Shared by the unit tests, the property test and the
 * fuzzing harness. A difference ends the program with the failed condition.
 *
 * The sources themselves are included, so that each program may choose its constants.
 */
#ifndef TESTS_BUDDY_MODEL_H
#define TESTS_BUDDY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int model_alloc_fail;	/* the n-th metadata allocation from now fails; 0: none */
static unsigned long model_alloc_calls;
static long model_alloc_live;	/* allocated and not freed */

static inline void *model_calloc(size_t n, size_t size)
{
	void *p;

	model_alloc_calls++;
	if (model_alloc_fail && !--model_alloc_fail)
		return NULL;
	p = calloc(n, size);
	model_alloc_live += !!p;
	return p;
}

static inline void model_cfree(void *p)
{
	model_alloc_live -= !!p;
	free(p);
}

#define NEURON_BUDDY_SHIM_ALLOC(n, size) model_calloc(n, size)
#define NEURON_BUDDY_SHIM_FREE(p) model_cfree(p)
#include "../../kmod/mem/buddy/all.h"

#define MODEL_ASSERT(cond)						\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: model: %s (step %llu)\n",	\
				__FILE__, __LINE__, #cond,		\
				(unsigned long long)model_step_no);	\
			abort();					\
		}							\
	} while (0)

static unsigned long long model_step_no;

/* State of a granule. */
#define G_FREE		0
#define G_USED		1
#define G_RESERVED	2
#define G_STATE		3
#define G_ZERO		4	/* what is there is zero */
#define G_FIRST		8	/* first granule of an allocation */

#define MODEL_STALE	64

struct model {
	struct neuron_buddy *zone;
	u32 len;			/* granules */
	u8 *g;
	struct neuron_buddy_block *live;
	u32 nr_live;
	u32 cap_live;
	u32 free;			/* granules */
	u32 reserved;
	struct neuron_buddy_block stale[MODEL_STALE];
	u32 nr_stale;
	u64 refused;
	u64 refused_wrongly;		/* small aligned requests only */
	bool allow_capped;		/* zone large enough for the probe cap */
	u64 bad_frees;
	u64 hidden;			/* stale frees nobody can tell */
	u64 failures[NEURON_BUDDY_CAUSES];
};

static void model_init(struct model *m, u32 granules)
{
	memset(m, 0, sizeof(*m));
	m->len = granules;
	m->free = granules;
	m->g = calloc(granules, 1);
	m->cap_live = 64;
	m->live = calloc(m->cap_live, sizeof(*m->live));
	MODEL_ASSERT(m->g && m->live);
	MODEL_ASSERT(neuron_buddy_create(&m->zone, (u64)granules << SHIFT) == 0);
	MODEL_ASSERT(neuron_buddy_check(m->zone) == 0);
}

static void model_exit(struct model *m)
{
	MODEL_ASSERT(neuron_buddy_check(m->zone) == 0);
	neuron_buddy_destroy(m->zone);
	free(m->g);
	free(m->live);
}

/* Does a free run of @n granules aligned to 2^k exist? */
static bool model_has_run(const struct model *m, u64 n, u32 k)
{
	u64 mask = (1ULL << k) - 1, lo, hi, p;

	for (lo = 0; lo < m->len; lo = hi + 1) {
		for (hi = lo; hi < m->len && (m->g[hi] & G_STATE) == G_FREE; hi++)
			;
		p = (lo + mask) & ~mask;
		if (p < hi && hi - p >= n)
			return true;
	}
	return false;
}

static bool model_all(const struct model *m, u64 start, u64 n, u8 mask, u8 value)
{
	u64 i;

	for (i = start; i < start + n; i++) {
		if ((m->g[i] & mask) != value)
			return false;
	}
	return true;
}

static void model_own(struct model *m, u64 start, u64 n)
{
	u64 i;

	for (i = start; i < start + n; i++)
		m->g[i] = (m->g[i] & G_ZERO) | G_USED;
	m->free -= n;
}

static void model_ready(struct model *m)
{
	MODEL_ASSERT(neuron_buddy_prepare(m->zone) == 0);
}

static long live_add(struct model *m, const struct neuron_buddy_block *b)
{
	if (m->nr_live == m->cap_live) {
		m->cap_live *= 2;
		m->live = realloc(m->live, m->cap_live * sizeof(*m->live));
		MODEL_ASSERT(m->live);
	}
	m->live[m->nr_live] = *b;
	return m->nr_live++;
}

/* Allocate; returns the index of the live block or -errno. */
static long model_alloc(struct model *m, u64 size, u64 align, u64 addr, u32 flags)
{
	struct neuron_buddy_request req = { .size = size, .align = align, .addr = addr,
					    .flags = flags };
	struct neuron_buddy_block b = { .addr = 1, .size = 2, .id = 3 };
	u64 n = (size + NEURON_BUDDY_GRANULE - 1) >> SHIFT;
	enum neuron_buddy_cause cause;
	u32 k = 0;
	int err;

	model_ready(m);
	err = neuron_buddy_alloc(m->zone, &req, &b, &cause);
	MODEL_ASSERT(err != -EAGAIN);
	while (k < 31 && (1ULL << (k + SHIFT)) < align)
		k++;
	if (err) {
		MODEL_ASSERT(b.addr == 1 && b.size == 2 && b.id == 3);
		if (err == -EINVAL) {
			MODEL_ASSERT(cause == NEURON_BUDDY_CAUSE_NONE);
			return err;
		}
		m->failures[cause]++;
		m->refused++;
		if (flags & NEURON_BUDDY_EXACT) {
			MODEL_ASSERT(err == -EBUSY && cause == NEURON_BUDDY_CAUSE_BUSY);
			MODEL_ASSERT(!model_all(m, addr >> SHIFT, n, G_STATE, G_FREE));
			return err;
		}
		MODEL_ASSERT(err == -ENOSPC);
		if (n > m->free) {
			MODEL_ASSERT(cause == NEURON_BUDDY_CAUSE_FULL);
			return err;
		}
		if (model_has_run(m, n, k)) {
			MODEL_ASSERT(m->allow_capped && n < 1u << k);
			m->refused_wrongly++;
			return err;
		}
		MODEL_ASSERT(cause == (model_has_run(m, n, 0) ?
				       NEURON_BUDDY_CAUSE_ALIGNMENT :
				       NEURON_BUDDY_CAUSE_FRAGMENTED));
		return err;
	}
	MODEL_ASSERT(cause == NEURON_BUDDY_CAUSE_NONE);
	MODEL_ASSERT(b.size == n << SHIFT);
	MODEL_ASSERT((b.addr & (NEURON_BUDDY_GRANULE - 1)) == 0);
	MODEL_ASSERT((b.addr & (max(align, 1ULL) - 1)) == 0);
	MODEL_ASSERT(b.addr >> SHIFT < m->len && n <= m->len - (b.addr >> SHIFT));
	MODEL_ASSERT(!(flags & NEURON_BUDDY_EXACT) || b.addr == addr);
	MODEL_ASSERT(model_all(m, b.addr >> SHIFT, n, G_STATE, G_FREE));
	if (b.cleared)
		MODEL_ASSERT(model_all(m, b.addr >> SHIFT, n, G_ZERO, G_ZERO));
	model_own(m, b.addr >> SHIFT, n);
	m->g[b.addr >> SHIFT] |= G_FIRST;
	return live_add(m, &b);
}

static void model_free(struct model *m, u32 i, bool cleared)
{
	struct neuron_buddy_block b = m->live[i];
	u64 start = b.addr >> SHIFT, n = b.size >> SHIFT, j;

	MODEL_ASSERT(neuron_buddy_free(m->zone, &b, cleared) == 0);
	for (j = start; j < start + n; j++)
		m->g[j] = cleared ? G_ZERO : 0;
	m->free += n;
	m->live[i] = m->live[--m->nr_live];
	m->stale[m->nr_stale++ % MODEL_STALE] = b;
}

/*
 * The documented limit of stale detection: a block of the same place and size
 * lives in a frame, the generation bits kept with it are equal, and the free
 * of the stale one is no longer remembered.
 */
static bool model_stale_hidden(const struct model *m, const struct neuron_buddy_block *b)
{
	u32 n = b->size >> SHIFT, start = b->addr >> SHIFT, i;
	u64 mask = (1ULL << min(n - 1, TAG_BITS)) - 1;
	const struct obit *o = obit_of(m->zone, start);

	if (n > FRAME_LEN || (o->start == start && o->gen == b->gen))
		return false;
	for (i = 0; i < m->nr_live; i++) {
		if (m->live[i].addr == b->addr)
			return m->live[i].size == b->size &&
			       !((m->live[i].gen ^ b->gen) & mask) &&
			       ext_find(m->zone, start)->type == EXT_FRAME;
	}
	return false;
}

/* A freed block must be refused. */
static void model_free_stale(struct model *m, u32 i)
{
	struct neuron_buddy_block b;
	u32 count = min(m->nr_stale, (u32)MODEL_STALE);
	int err;

	if (!count)
		return;
	b = m->stale[i % count];
	if (model_stale_hidden(m, &b)) {
		m->hidden++;
		return;
	}
	err = neuron_buddy_free(m->zone, &b, false);
	m->bad_frees++;
	MODEL_ASSERT(err == -ENOENT || err == -ESTALE || err == -EPERM);
	if ((m->g[b.addr >> SHIFT] & G_STATE) == G_FREE)
		MODEL_ASSERT(err == -ENOENT);
}

/* A live block with one thing wrong. */
static void model_free_wrong(struct model *m, u32 i, u32 how)
{
	struct neuron_buddy_block b;
	int err, want = 0;

	if (!m->nr_live)
		return;
	b = m->live[i % m->nr_live];
	switch (how % 6) {
	case 0:
		b.id++;
		want = -EINVAL;
		break;
	case 1:
		b.addr += 1;
		want = -EINVAL;
		break;
	case 2:
		b.size = 0;
		want = -EINVAL;
		break;
	case 3:
		b.addr = (u64)m->len << SHIFT;
		want = -EINVAL;
		break;
	case 4:
		b.size += NEURON_BUDDY_GRANULE;
		if (b.addr + b.size > (u64)m->len << SHIFT)
			want = -EINVAL;
		else
			want = -ESTALE;
		break;
	case 5:
		if (b.size == NEURON_BUDDY_GRANULE)
			return;
		b.addr += NEURON_BUDDY_GRANULE;
		b.size -= NEURON_BUDDY_GRANULE;
		want = -ENOENT;
		break;
	}
	err = neuron_buddy_free(m->zone, &b, true);
	m->bad_frees++;
	MODEL_ASSERT(err == want);
}

static void model_grow(struct model *m, u32 i, u64 more)
{
	struct neuron_buddy_block b = m->live[i], before = b;
	u64 start = b.addr >> SHIFT, n = b.size >> SHIFT;
	bool room = start + n + more <= m->len &&
		    model_all(m, start + n, more, G_STATE, G_FREE);
	bool leaves = false;
	int err;

	if (more) {
		struct ext *e = ext_find(m->zone, start);

		leaves = e->type == EXT_FRAME && start + n + more > ext_end(e);
	}
	model_ready(m);
	err = neuron_buddy_grow(m->zone, &b, (n + more) << SHIFT);
	if (!room || leaves) {
		MODEL_ASSERT(err == -ENOSPC);
		MODEL_ASSERT(b.addr == before.addr && b.size == before.size &&
			     b.cleared == before.cleared && b.gen == before.gen);
		m->failures[NEURON_BUDDY_CAUSE_BUSY]++;
		return;
	}
	MODEL_ASSERT(err == 0 && b.addr == before.addr && b.size == (n + more) << SHIFT);
	if (b.cleared && more)
		MODEL_ASSERT(model_all(m, start + n, more, G_ZERO, G_ZERO));
	MODEL_ASSERT(!b.cleared || before.cleared);
	model_own(m, start + n, more);
	m->live[i] = b;
	/* The block as it was is stale now. */
	if (more) {
		MODEL_ASSERT(neuron_buddy_free(m->zone, &before, true) == -ESTALE);
		m->bad_frees++;
	}
}

/* The block keeps @keep granules; the rest is one of its own. */
static void model_split(struct model *m, u32 i, u64 keep)
{
	struct neuron_buddy_block b = m->live[i], before = b, tail = { .addr = 1 };
	u64 start = b.addr >> SHIFT, n = b.size >> SHIFT;
	bool small = ext_find(m->zone, start)->type == EXT_FRAME;
	int err;

	model_ready(m);
	err = neuron_buddy_split(m->zone, &b, keep << SHIFT, &tail);
	if (!keep || keep >= n || small) {
		MODEL_ASSERT(err == (!keep || keep >= n ? -EINVAL : -ENOSPC));
		MODEL_ASSERT(b.size == before.size && tail.addr == 1);
		return;
	}
	MODEL_ASSERT(err == 0 && b.addr == before.addr && b.size == keep << SHIFT);
	MODEL_ASSERT(tail.addr == (start + keep) << SHIFT && tail.size == (n - keep) << SHIFT);
	MODEL_ASSERT(!tail.cleared);
	m->g[start + keep] |= G_FIRST;
	m->live[i] = b;
	live_add(m, &tail);
	MODEL_ASSERT(neuron_buddy_free(m->zone, &before, true) == -ESTALE);
	m->bad_frees++;
}

static int model_reserve(struct model *m, u64 start, u64 n)
{
	bool ok = true;
	u64 i;
	int err;

	for (i = start; i < start + n; i++)
		ok = ok && (m->g[i] & G_STATE) != G_USED;
	do {
		model_ready(m);
		err = neuron_buddy_reserve(m->zone, start << SHIFT, n << SHIFT);
	} while (err == -EAGAIN);
	MODEL_ASSERT(err == (ok ? 0 : -EBUSY));
	if (err) {
		m->failures[NEURON_BUDDY_CAUSE_BUSY]++;
		return err;
	}
	for (i = start; i < start + n; i++) {
		if ((m->g[i] & G_STATE) == G_FREE) {
			m->g[i] = G_RESERVED;
			m->free--;
			m->reserved++;
		}
	}
	return 0;
}

static void model_query(struct model *m, u64 granule)
{
	struct neuron_buddy_block b;
	int err = neuron_buddy_query(m->zone, (granule << SHIFT) + 17, &b);
	u64 start = granule, n;

	if ((m->g[granule] & G_STATE) != G_USED) {
		MODEL_ASSERT(err == -ENOENT);
		return;
	}
	MODEL_ASSERT(err == 0 && b.id == m->zone->id);
	while (!(m->g[start] & G_FIRST))
		start--;
	for (n = 1; start + n < m->len && (m->g[start + n] & (G_STATE | G_FIRST)) == G_USED; n++)
		;
	MODEL_ASSERT(b.addr == start << SHIFT && b.size == n << SHIFT);
}

/* Counters and the whole map, as a walk in steps of @count sees it. */
static void model_compare(struct model *m, unsigned int count)
{
	struct neuron_buddy_stats st;
	struct neuron_buddy_range r[8];
	u64 pos = 0, at = 0, run = 0, longest = 0, i;
	unsigned int got, j;

	neuron_buddy_stats(m->zone, &st);
	MODEL_ASSERT(st.total == (u64)m->len << SHIFT && st.total == neuron_buddy_total(m->zone));
	MODEL_ASSERT(st.free == (u64)m->free << SHIFT && st.free == neuron_buddy_free_bytes(m->zone));
	MODEL_ASSERT(st.reserved == (u64)m->reserved << SHIFT);
	MODEL_ASSERT(st.used == st.total - st.free - st.reserved);
	MODEL_ASSERT(st.used == neuron_buddy_used(m->zone));
	MODEL_ASSERT(st.allocs == m->nr_live && st.bad_frees == m->bad_frees);
	MODEL_ASSERT(st.alloc_calls - st.free_calls == st.allocs);
	for (j = 0; j < NEURON_BUDDY_CAUSES; j++)
		MODEL_ASSERT(st.failures[j] == m->failures[j]);
	MODEL_ASSERT(st.largest == neuron_buddy_largest(m->zone, 1));

	while ((got = neuron_buddy_walk(m->zone, &pos, r, 1 + count % 8))) {
		for (j = 0; j < got; j++) {
			MODEL_ASSERT(r[j].addr == at << SHIFT && r[j].size);
			MODEL_ASSERT(model_all(m, at, r[j].size >> SHIFT, G_STATE,
					       r[j].state));
			at += r[j].size >> SHIFT;
		}
		MODEL_ASSERT(pos == at << SHIFT);
	}
	MODEL_ASSERT(at == m->len);

	for (i = 0; i < m->len; i++) {
		run = (m->g[i] & G_STATE) == G_FREE ? run + 1 : 0;
		longest = max(longest, run);
	}
	MODEL_ASSERT(st.largest == longest << SHIFT);
}

/* What the zone says is the largest aligned run can be had; nothing above exists. */
static void model_try_largest(struct model *m, u32 k)
{
	u64 align = NEURON_BUDDY_GRANULE << k;
	u64 size = neuron_buddy_largest(m->zone, align);
	long i;

	if (!size)
		return;
	i = model_alloc(m, size, align, 0, 0);
	MODEL_ASSERT(i >= 0);
	model_free(m, i, false);
}

/* One operation chosen by five numbers. */
static void model_step(struct model *m, u32 op, u32 a, u32 b, u32 c, u32 d)
{
	u64 size, align, addr;
	u32 flags, log;

	model_step_no++;
	op %= 64;
	if (op < 30) {
		/* sizes from one granule to a good part of the zone */
		log = a % (log2_floor(m->len) + 1);
		size = (1ULL << log) + (b & ((1ULL << log) - 1));
		size = (size << SHIFT) - (c & 1 ? c & 0xfff : 0);
		align = d & 1 ? 0 : NEURON_BUDDY_GRANULE << (d >> 1) % (log2_floor(m->len) + 2);
		flags = 0;
		addr = 0;
		switch (c >> 12 & 7) {
		case 5:
			flags = NEURON_BUDDY_LOW;
			break;
		case 6:
			flags = NEURON_BUDDY_HIGH;
			break;
		case 7:
			flags = NEURON_BUDDY_EXACT;
			align = 0;
			addr = (u64)(d % m->len) << SHIFT;
			if ((size + NEURON_BUDDY_GRANULE - 1) >> SHIFT > m->len - d % m->len)
				size = NEURON_BUDDY_GRANULE;
			break;
		}
		model_alloc(m, size, align, addr, flags);
	} else if (op < 54) {
		if (m->nr_live)
			model_free(m, a % m->nr_live, b & 1);
	} else if (op < 56) {
		model_free_stale(m, a);
	} else if (op < 57) {
		model_free_wrong(m, a, b);
	} else if (op < 60) {
		if (m->nr_live && c % 4 == 3)
			model_split(m, a % m->nr_live, b % 700);
		else if (m->nr_live)
			model_grow(m, a % m->nr_live, b % (c & 1 ? 4 : 700));
	} else if (op < 61) {
		model_query(m, a % m->len);
	} else if (op < 62) {
		model_try_largest(m, a % 20);
	} else if (op < 63) {
		if (!(a & 63) && m->reserved < m->len / 8) {
			addr = b % m->len;
			model_reserve(m, addr, min((u64)(1 + c % 64), m->len - addr));
		} else if ((a & 63) == 1) {
			u32 i;

			neuron_buddy_mark_clear(m->zone);
			for (i = 0; i < m->len; i++)
				m->g[i] |= (m->g[i] & G_STATE) == G_FREE ? G_ZERO : 0;
		}
	} else if (!(a & 15)) {
		model_compare(m, b);
	}
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plans of kmod/mem/compact.c, carried out on one byte per granule and compared with a search
 * that knows nothing of it. For the host and for the kernel.
 */
#ifndef COMPACT_MODEL_H
#define COMPACT_MODEL_H

#include "../../kmod/mem/compact.h"

#define MODEL_LEN	512u
#define MODEL_RANGES	128u
#define MODEL_FREE	0
#define MODEL_FIXED	1		/* from 2 on: number of a movable range + 2 */

struct compact_model {
	u8 at[MODEL_LEN];
	u32 start[MODEL_RANGES], len[MODEL_RANGES], nr;
	u8 align[MODEL_RANGES];
	bool moved[MODEL_RANGES];
	u64 seed;
};

static inline u32 model_random(struct compact_model *m, u32 n)
{
	m->seed = m->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(((m->seed >> 33) * n) >> 31);
}

/* Ranges of up to @longest granules, of which @fixed per cent of those in use do not move. */
static inline void model_make(struct compact_model *m, struct neuron_compact *c, u32 longest,
			      u32 fixed)
{
	u32 pos = 0, len, i;

	m->nr = 0;
	neuron_compact_clear(c, ~0u);
	while (pos < MODEL_LEN) {
		u32 left = MODEL_LEN - pos;
		enum neuron_compact_state state = NEURON_COMPACT_FREE;
		u8 align = 0, what = MODEL_FREE;

		len = 1 + model_random(m, longest);
		len = len < left ? len : left;
		if (model_random(m, 100) < 60) {
			state = NEURON_COMPACT_FIXED;
			what = MODEL_FIXED;
			if (model_random(m, 100) >= fixed && m->nr < MODEL_RANGES) {
				while (align < 3 && !(pos >> align & 1) && model_random(m, 2))
					align++;
				state = NEURON_COMPACT_MOVABLE;
				what = (u8)(m->nr + 2);
				m->start[m->nr] = pos;
				m->len[m->nr] = len;
				m->align[m->nr] = align;
				m->moved[m->nr++] = false;
			}
		}
		neuron_compact_add(c, len, state, align);
		for (i = 0; i < len; i++)
			m->at[pos + i] = what;
		pos += len;
	}
}

/* The longest free run that begins aligned. */
static inline u32 model_largest(const struct compact_model *m, u8 align)
{
	u32 best = 0, pos, n;

	for (pos = 0; pos < MODEL_LEN; pos += 1u << align) {
		for (n = 0; pos + n < MODEL_LEN && m->at[pos + n] == MODEL_FREE; n++)
			;
		best = n > best ? n : best;
	}
	return best;
}

/* Carry a plan out.  Return: granules copied; ~0 it cannot be. */
static inline u32 model_run(struct compact_model *m, const struct neuron_compact *c)
{
	u32 i, j, k, copied = 0;

	for (i = 0; i < c->nr_moves; i++) {
		const struct neuron_compact_move *v = &c->move[i];

		for (k = 0; k < m->nr && (m->start[k] != v->from || m->moved[k]); k++)
			;
		if (k == m->nr || m->len[k] != v->len || m->align[k] != v->align ||
		    v->to & ((1u << v->align) - 1) || v->to > MODEL_LEN - v->len)
			return ~0u;
		for (j = 0; j < v->len; j++) {
			if (m->at[v->to + j] != MODEL_FREE)
				return ~0u;
			m->at[v->to + j] = (u8)(k + 2);
		}
		for (j = 0; j < v->len; j++)
			m->at[v->from + j] = MODEL_FREE;
		m->moved[k] = true;
		m->start[k] = v->to;
		copied += v->len;
	}
	return copied;
}

/* Does the longest that is in a window go to the tightest hole elsewhere, one after the other? */
static inline u32 model_window(const struct compact_model *from, struct compact_model *m, u32 at,
			       u32 want)
{
	u32 cost = 0, i, k, n, pos, best, tight, last;

	*m = *from;
	for (i = at; i < at + want; i++)
		if (m->at[i] == MODEL_FIXED)
			return ~0u;
	for (;;) {
		for (best = m->nr, k = 0; k < m->nr; k++)
			if (!m->moved[k] && m->start[k] < at + want &&
			    m->start[k] + m->len[k] > at &&
			    (best == m->nr || m->len[k] > m->len[best]))
				best = k;
		if (best == m->nr)
			return cost;
		/* Holes end at the window; what has left it is not used again. */
		for (tight = ~0u, n = 0, pos = 0; pos < MODEL_LEN; pos += n) {
			u32 lo, mask = (1u << m->align[best]) - 1;

			for (n = 0; pos + n < MODEL_LEN && m->at[pos + n] == MODEL_FREE &&
			     (pos + n < at || pos + n >= at + want); n++)
				;
			lo = (pos + mask) & ~mask;
			if (n && lo + m->len[best] <= pos + n && (tight == ~0u || n < last)) {
				tight = m->len[best] <= 128 ?
					(pos + n - m->len[best]) & ~mask : lo;
				last = n;
			}
			n += !n;
		}
		if (tight == ~0u)
			return ~0u;
		for (i = 0; i < m->len[best]; i++)
			m->at[tight + i] = MODEL_FIXED;
		m->moved[best] = true;
		cost += m->len[best];
	}
}

/* The least that has to be copied, for windows that begin or end with a range. */
static inline u32 model_cheapest(const struct compact_model *m, struct compact_model *scratch,
				 u32 want, u8 align)
{
	u32 pos, cost, best = ~0u, mask = (1u << align) - 1;

	for (pos = 0; pos < MODEL_LEN; pos++) {
		u32 up = (pos + mask) & ~mask, down = (pos - want) & ~mask;

		if (pos && m->at[pos] == m->at[pos - 1] && pos != MODEL_LEN)
			continue;
		if (up + want <= MODEL_LEN) {
			cost = model_window(m, scratch, up, want);
			best = cost < best ? cost : best;
		}
		if (pos >= want) {
			cost = model_window(m, scratch, down, want);
			best = cost < best ? cost : best;
		}
	}
	return best;
}

/* One random memory, and what is planned for it.  Return: 0, or the line that found a fault. */
static inline int compact_model_step(struct compact_model *m, struct compact_model *scratch,
				     struct neuron_compact *c)
{
	u32 longest = 2 + model_random(m, 40), fixed = model_random(m, 3) * 30;
	u32 want, largest, copied, cheapest, free = 0, i;
	u8 align = (u8)model_random(m, 4);

	model_make(m, c, longest, fixed);
	for (i = 0; i < MODEL_LEN; i++)
		free += m->at[i] == MODEL_FREE;
	want = model_random(m, 5) ? 1 + model_random(m, free + 8) : 0;
	largest = model_largest(m, align);
	if (neuron_compact_largest(c, align) != largest)
		return __LINE__;
	cheapest = want && want > largest && want <= free ?
		   model_cheapest(m, scratch, want, align) : ~0u;
	if (!neuron_compact_plan(c, want, align)) {
		/* There was room, or there is nothing to be done. */
		return cheapest != ~0u ? __LINE__ : 0;
	}
	copied = model_run(m, c);
	if (copied == ~0u || copied != c->cost)
		return __LINE__;
	if (cheapest != ~0u && copied > cheapest)
		return __LINE__;
	if (model_largest(m, align) <= largest)
		return __LINE__;
	if (cheapest != ~0u && model_largest(m, align) < want)
		return __LINE__;
	return 0;
}

#endif

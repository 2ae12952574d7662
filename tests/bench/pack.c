// SPDX-License-Identifier: GPL-2.0-only
/*
 * How tightly allocators pack: what the sizes of other programs do to them. One line of
 * JSON for each peer and cell, with the sums over its seeds. Peers meet the same requests:
 * sizes and victims are drawn from streams of their own.
 */
#include "bench.h"
#include "trace.h"

#define PERCENT_ONE	995	/* per mille of what could be placed: fill-one */
#define PATIENCE_NS	60000000000ULL	/* a churn that takes longer ends its test for that peer */

static struct bench_block *block;	/* by slot */
static u32 *slot;			/* heap of the live ones, then the unused ones */
static u64 *due;			/* by slot: when it goes */
static u32 nr, max_blocks;
static u64 bytes;

/* --- what is live: a heap by due time --------------------------------------- */

static void heap_swap(u32 i, u32 j)
{
	u32 s = slot[i];

	slot[i] = slot[j];
	slot[j] = s;
}

static void heap_up(u32 i)
{
	while (i && due[slot[i]] < due[slot[(i - 1) / 2]]) {
		heap_swap(i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

static void heap_down(u32 i)
{
	for (;;) {
		u32 c = 2 * i + 1;

		if (c >= nr)
			return;
		if (c + 1 < nr && due[slot[c + 1]] < due[slot[c]])
			c++;
		if (due[slot[i]] <= due[slot[c]])
			return;
		heap_swap(i, c);
		i = c;
	}
}

static int take(const struct bench_peer *p, void *zone, u64 size, u64 align, u64 when)
{
	u32 s = slot[nr];
	int err;

	if (nr == max_blocks)
		return -1;
	block[s].size = size;
	err = p->alloc(zone, size, align, &block[s]);
	if (err)
		return err;
	due[s] = when;
	bytes += size;
	heap_up(nr++);
	return 0;
}

static void give(const struct bench_peer *p, void *zone, u32 i)
{
	u32 s = slot[i];

	bytes -= block[s].size;
	p->free(zone, &block[s]);
	heap_swap(i, --nr);
	if (i < nr) {
		heap_up(i);
		heap_down(i);
	}
}

static void *begin(const struct bench_peer *p, u64 size)
{
	u32 i;

	nr = 0;
	bytes = 0;
	for (i = 0; i < max_blocks; i++)
		slot[i] = i;
	return p->create(size);
}

static void end(const struct bench_peer *p, void *zone)
{
	while (nr)
		give(p, zone, nr - 1);
	p->destroy(zone);
}

static void line(const struct bench_peer *p, const char *test, const char *trace, u32 occ)
{
	bench_print("{\"peer\":\"%s\",\"test\":\"%s\",\"trace\":\"%s\",\"occupancy\":%u", p->name,
		    test, trace, occ);
}

/* --- one size --------------------------------------------------------------- */

/* Fill, exchange @pairs, fill again: the lower of both, per mille of what could be. */
static u32 fill_one(const struct bench_peer *p, u64 size, u64 align, u64 zone_size, u32 pairs)
{
	u64 most = zone_size / size * size, low;
	void *zone = begin(p, zone_size);
	struct rng r;
	u32 i;

	if (!zone)
		return 0;
	while (!take(p, zone, size, align, 0))
		;
	low = bytes;
	rng_seed(&r, size >> 12);
	for (i = 0; i < pairs && nr; i++) {
		give(p, zone, rng_below(&r, nr));
		/* A few more leave now and then, and come back. */
		if (!(i & 15) && nr)
			give(p, zone, rng_below(&r, nr));
		take(p, zone, size, align, 0);
	}
	while (!take(p, zone, size, align, 0))
		;
	low = min(low, bytes);
	end(p, zone);
	return (u32)(low * 1000 / most);
}

/*
 * Every @stride-th multiple of 4 KiB up to 8 MiB, each with every alignment that it is a
 * multiple of; above a sample. One line, with the worst; and the sizes below the goal.
 */
static void fill_all(const struct bench_peer *p, u32 stride, u32 pairs)
{
	u32 n, k, permille, worst = 1000, below = 0, runs = 0, worst_n = 0, worst_k = 0;
	char where[40];

	for (n = 1; n <= 64 * 1024; n += n < 2048 ? stride : n / 7 + stride) {
		/* 65,536 objects or so, in a zone of 256 MiB to 16 GiB */
		u64 size = (u64)n << 12, zone = size << 16;

		zone = zone < 256 * MIB ? 256 * MIB : zone > 16 * GIB ? 16 * GIB : zone;
		for (k = 0; k < 32 && !(n & ((1u << k) - 1)); k++) {
			permille = fill_one(p, size, (4 * KIB) << k, zone, pairs);
			runs++;
			below += permille < PERCENT_ONE;
			if (permille < worst) {
				worst = permille;
				worst_n = n;
				worst_k = k;
			}
			/* Only with its own alignment, and none, where there are many. */
			if (!k && stride > 1)
				k = (u32)__builtin_ctz(n) ? (u32)__builtin_ctz(n) - 1 : 0;
			cond_resched();
		}
	}
	snprintf(where, sizeof(where), "%uk@%uk", worst_n * 4, 4u << worst_k);
	line(p, "fill-one", where, 100);
	bench_print(",\"runs\":%u,\"below\":%u,\"worst_permille\":%u,\"pairs\":%u}\n", runs, below,
		    worst, pairs);
}

/* --- churn ------------------------------------------------------------------ */

enum shape_of_sizes { FIXED, UNIFORM, LOG_UNIFORM, POW2_NOISE, SHAPES };
enum life { RANDOM, GENERATIONS, STACK, GROUPS, LIVES };

struct component {
	enum shape_of_sizes shape;
	u32 weight;
	u64 low, high;		/* granules */
};

struct mix {
	struct component c[4];
	u32 nr, weights;
	enum life life;
	u32 group;		/* requests that go together */
	u64 zone;
	u32 expect;		/* live blocks, or so */
};

/* Uniform in [lo, hi]. */
static u64 between(struct rng *r, u64 lo, u64 hi)
{
	return lo + (((rng_next(r) >> 32) * (hi - lo + 1)) >> 32);
}

/* Uniform in the logarithm in [lo, hi]: granules. */
static u64 log_between(struct rng *r, u64 lo, u64 hi)
{
	u32 octaves = 1;
	u64 n;

	while (lo << octaves < hi)
		octaves++;
	do {
		n = log_uniform(r, lo << 12, octaves) >> 12;
	} while (n > hi);
	return n;
}

static u64 mix_size(const struct mix *m, struct rng *r)
{
	const struct component *c = m->c;
	u32 w = rng_below(r, m->weights);
	u64 n;

	while (w >= c->weight)
		w -= c++->weight;
	switch (c->shape) {
	case FIXED:
		n = c->low;
		break;
	case UNIFORM:
		n = between(r, c->low, c->high);
		break;
	case LOG_UNIFORM:
		n = log_between(r, c->low, c->high);
		break;
	default:
		/* A power of two, a little more or less */
		n = 1ULL << (63 - __builtin_clzll(log_between(r, c->low, c->high)));
		if (rng_below(r, 2))
			n += between(r, 0, n / 8);
		else
			n -= between(r, 0, n / 8);
	}
	return n << 12;
}

/* A zone that holds some ten thousands of what is drawn, and many of the largest. */
static void mix_measure(struct mix *m, u64 seed)
{
	u64 sum = 0, most = 0, size;
	struct rng r;
	u32 i;

	rng_seed(&r, seed);
	for (i = 0; i < 1024; i++) {
		size = mix_size(m, &r);
		sum += size;
		most = max(most, size);
	}
	sum /= 1024;
	m->zone = max(sum * 24576, most * 32);
	m->zone = m->zone < 64 * MIB ? 64 * MIB : m->zone > 24 * GIB ? 24 * GIB : m->zone;
	m->zone &= ~(2 * MIB - 1);
	m->expect = (u32)(m->zone / sum);
}

static void mix_draw(struct mix *m, u64 draw, u32 number)
{
	struct rng r;
	u32 i;

	rng_seed(&r, draw * 1000003 + number);
	do {
		m->nr = 1 + rng_below(&r, 4);
		m->weights = 0;
		for (i = 0; i < m->nr; i++) {
			struct component *c = &m->c[i];

			c->shape = rng_below(&r, SHAPES);
			c->weight = 1 + rng_below(&r, 16);
			m->weights += c->weight;
			/* 4 KiB .. 512 MiB, up to 64 times as much, 1 GiB at most */
			c->low = log_between(&r, 1, 128 * 1024);
			c->high = c->low * (1 + rng_below(&r, 64));
			c->high = min(c->high, (u64)256 * 1024);
		}
		m->life = rng_below(&r, LIVES);
		m->group = 2 + rng_below(&r, 63);
		mix_measure(m, draw + number);
		/* Neither half a million of them, nor a dozen. */
	} while (m->expect > 500000 || m->expect < 24);
}

/* When what is allocated as number @now will go. */
static u64 mix_due(const struct mix *m, struct rng *r, u64 now, u64 *group_due)
{
	u64 base = 1ULL << 40;

	switch (m->life) {
	case GENERATIONS:
		/* Four of five die young. */
		if (rng_below(r, 5))
			return base + now + rng_below(r, m->expect / 8 + 1);
		return base + now + rng_below(r, 8 * m->expect);
	case STACK:
		/* Last in, first out, give or take. */
		return base - now + rng_below(r, m->expect / 8 + 1);
	case GROUPS:
		if (!(now % m->group))
			*group_due = base + now + rng_below(r, 2 * m->expect);
		return *group_due;
	default:
		return base;
	}
}

/* @size: refused of @attempts are added up. */
static bool churn(const struct bench_peer *p, const struct mix *m, u32 occ, u32 seed,
		  u64 *attempts, u64 *refused)
{
	u64 limit = m->zone / 100 * occ, size, now, group = 0, count = 0, todo = ~0ULL;
	u64 started = bench_cycles();
	struct rng sizes, victims, lives;
	void *zone = begin(p, m->zone);
	bool late = false;

	if (!zone)
		return false;
	rng_seed(&sizes, seed);
	rng_seed(&victims, seed + 1000);
	rng_seed(&lives, seed + 2000);
	for (now = 0; count < todo && !late; now++) {
		size = mix_size(m, &sizes);
		/* Filling up does not count, nor does the first half after it. */
		if (todo == ~0ULL && bytes + size > limit)
			todo = 20000 + nr;
		while (bytes + size > limit && nr)
			give(p, zone, m->life == RANDOM ? rng_below(&victims, nr) : 0);
		if (take(p, zone, size, 4 * KIB, mix_due(m, &lives, now, &group)) &&
		    count > todo / 2 && todo != ~0ULL)
			++*refused;
		if (todo != ~0ULL && count++ > todo / 2)
			++*attempts;
		if (!(now & 255)) {
			cond_resched();
			late = bench_cycles_to_ns(bench_cycles() - started) > PATIENCE_NS;
		}
	}
	end(p, zone);
	return !late;
}

/* False if @p is to be spared the rest of the test, which the results say. */
static bool cell(const struct bench_peer *p, const struct mix *m, const char *test,
		 const char *name, u32 occ, u32 seeds)
{
	u64 attempts = 0, refused = 0;
	u32 s;

	for (s = 0; s < seeds; s++) {
		if (!churn(p, m, occ, s, &attempts, &refused)) {
			line(p, test, name, occ);
			bench_print(",\"left\":1}\n");
			return false;
		}
	}
	line(p, test, name, occ);
	bench_print(",\"seeds\":%u,\"attempts\":%llu,\"refused\":%llu}\n", seeds,
		    (unsigned long long)attempts, (unsigned long long)refused);
	return true;
}

static void one_component(struct mix *m, u64 low, u64 high, u64 seed)
{
	memset(m, 0, sizeof(*m));
	m->c[0] = (struct component){ LOG_UNIFORM, 1, low, high };
	m->nr = 1;
	m->weights = 1;
	mix_measure(m, seed);
}

/* [s, 2s] for s = 4 KiB .. 512 MiB in steps of the square root of 2. */
static void bands(const struct bench_peer *p, u32 step, u32 seeds)
{
	static const u32 occupancy[] = { 85, 90, 93 };
	struct mix m;
	char name[24];
	u32 i, o;

	for (i = 0; i <= 34; i += step) {
		u64 s = 1ULL << i / 2;

		if (i & 1)
			s = (s * 181 + 64) / 128;
		one_component(&m, s, 2 * s, i);
		snprintf(name, sizeof(name), "%lluk", (unsigned long long)s * 4);
		for (o = 0; o < 3; o++) {
			if (!cell(p, &m, "bands", name, occupancy[o], seeds))
				return;
		}
	}
}

static void mixes(const struct bench_peer *p, u32 n, u32 seeds, u64 draw)
{
	struct mix m;
	char name[32];
	u32 i;

	for (i = 0; i < n; i++) {
		mix_draw(&m, draw, i);
		snprintf(name, sizeof(name), "draw %llu.%u", (unsigned long long)draw, i);
		if (!cell(p, &m, "mixes", name, 85, seeds) || !cell(p, &m, "mixes", name, 90, seeds))
			return;
	}
}

static void huge(const struct bench_peer *p, u32 seeds)
{
	static const struct {
		const char *name;
		u64 low, high;
	} band[] = {
		{ "1m-1g", MIB, GIB }, { "1m-2g", MIB, 2 * GIB }, { "16m-1g", 16 * MIB, GIB },
	};
	struct mix m;
	u32 i;

	for (i = 0; i < 3; i++) {
		one_component(&m, band[i].low >> 12, band[i].high >> 12, i);
		m.zone = 24 * GIB;
		if (!cell(p, &m, "huge", band[i].name, 85, seeds))
			return;
	}
}

static bool start(struct bench_block *blocks, u32 max)
{
	block = blocks;
	max_blocks = max;
	slot = bench_alloc_mem(max * sizeof(*slot));
	due = bench_alloc_mem(max * sizeof(*due));
	return slot && due;
}

static void stop(void)
{
	bench_free_mem(due);
	bench_free_mem(slot);
}

static bool wanted(const char *name, const char *list)
{
	return !*list || strstr(list, name);
}

void bench_pack(const struct bench_peer *p, const struct bench_options *o,
		struct bench_block *blocks, u32 max)
{
	u32 seeds = o->quick ? 4 : 16;

	if (start(blocks, max)) {
		if (wanted("fill-one", o->tests))
			fill_all(p, o->quick ? 7 : 1, o->quick ? 20000 : 200000);
		if (wanted("bands", o->tests))
			bands(p, o->quick ? 2 : 1, seeds);
		if (wanted("mixes", o->tests))
			mixes(p, o->quick ? 40 : 200, seeds, o->draw);
		if (wanted("huge", o->tests))
			huge(p, seeds);
	}
	stop();
}

#define TWIN_STEPS	20000
#define TWIN_ZONE	(256 * MIB)

bool bench_twins(const struct bench_peer *a, const struct bench_peer *b,
		 struct bench_block *blocks, u32 max)
{
	void *x = a->create(TWIN_ZONE), *y = b->create(TWIN_ZONE);
	bool same = x && y, err;
	u32 i, n = 0, victim;
	struct rng r;

	rng_seed(&r, 1);
	for (i = 0; same && i < TWIN_STEPS && n + 2 < max; i++) {
		if (n && rng_below(&r, 100) < (i / 1000 % 2 ? 55 : 45)) {
			victim = rng_below(&r, n / 2) * 2;
			a->free(x, &blocks[victim]);
			b->free(y, &blocks[victim + 1]);
			n -= 2;
			blocks[victim] = blocks[n];
			blocks[victim + 1] = blocks[n + 1];
			continue;
		}
		blocks[n].size = log_uniform(&r, 4 * KIB, 12);
		blocks[n + 1].size = blocks[n].size;
		err = a->alloc(x, blocks[n].size, 4 * KIB, &blocks[n]);
		same = err == !!b->alloc(y, blocks[n].size, 4 * KIB, &blocks[n + 1]);
		if (!same || err)
			continue;
		/* genalloc's addresses begin high */
		same = (u32)(blocks[n].priv[0] >> 12) == (u32)(blocks[n + 1].priv[0] >> 12);
		n += 2;
	}
	for (i = 0; i < n; i += 2) {
		a->free(x, &blocks[i]);
		b->free(y, &blocks[i + 1]);
	}
	if (x)
		a->destroy(x);
	if (y)
		b->destroy(y);
	return same;
}

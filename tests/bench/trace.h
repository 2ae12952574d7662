/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sizes that machine learning asks for: integer arithmetic only, so that the
 * kernel and the host draw exactly the same numbers.
 */
#ifndef TESTS_BENCH_TRACE_H
#define TESTS_BENCH_TRACE_H

#include "bench.h"

#define KIB	(1ULL << 10)
#define MIB	(1ULL << 20)
#define GIB	(1ULL << 30)

struct rng {
	u64 s;
};

static inline u64 rng_next(struct rng *r)
{
	/* xorshift64* */
	r->s ^= r->s >> 12;
	r->s ^= r->s << 25;
	r->s ^= r->s >> 27;
	return r->s * 0x2545f4914f6cdd1dULL;
}

static inline void rng_seed(struct rng *r, u64 seed)
{
	r->s = (seed + 1) * 0x9e3779b97f4a7c15ULL;
	rng_next(r);
}

/* Uniform in [0, n). */
static inline u32 rng_below(struct rng *r, u32 n)
{
	return (u32)(((rng_next(r) >> 32) * n) >> 32);
}

/* 2^(1/2), 2^(1/4), ... as 32.32 fixed point. */
static inline u64 exp2_frac(u32 frac16)
{
	static const u64 root[16] = {
		6074001000ULL, 5107605667ULL, 4683695048ULL, 4485121744ULL,
		4389014833ULL, 4341736423ULL, 4318288544ULL, 4306612134ULL,
		4300785774ULL, 4297875550ULL, 4296421177ULL, 4295694175ULL,
		4295330720ULL, 4295149004ULL, 4295058149ULL, 4295012722ULL,
	};
	u64 x = 1ULL << 32;
	u32 i;

	for (i = 0; i < 16; i++) {
		if (frac16 & (0x8000u >> i))
			x = (x * (root[i] >> 16)) >> 16;
	}
	return x;
}

/* Uniform in the logarithm between @lo and @lo * 2^octaves, granule sized. */
static inline u64 log_uniform(struct rng *r, u64 lo, u32 octaves)
{
	u32 x = rng_below(r, octaves << 16);
	u64 size = ((lo >> 12) * exp2_frac(x & 0xffff)) >> 4;	/* 44.28 */

	size = (size << (x >> 16)) >> 28;
	return (size ? size : 1) << 12;
}

/* 50 % 4..64 KiB, 25 % ..4 MiB, 22 % ..128 MiB, 3 % ..1.5 GiB. */
static inline u64 size_ml_mix(struct rng *r)
{
	u32 p = rng_below(r, 100);
	u64 size;

	if (p < 50)
		return log_uniform(r, 4 * KIB, 4);
	if (p < 75)
		return log_uniform(r, 64 * KIB, 6);
	if (p < 97)
		return log_uniform(r, 4 * MIB, 5);
	do {
		size = log_uniform(r, 128 * MIB, 4);
	} while (size > 1536 * MIB);
	return size;
}

static inline u64 size_log_uniform(struct rng *r)
{
	return log_uniform(r, 4 * KIB, 16);
}

static inline u64 size_pow2(struct rng *r)
{
	return (4 * KIB) << rng_below(r, 17);
}

static inline u64 size_small(struct rng *r)
{
	return log_uniform(r, 4 * KIB, 4);
}

static inline u64 size_medium(struct rng *r)
{
	return log_uniform(r, 4 * KIB, 12);
}

static inline u64 size_large(struct rng *r)
{
	return log_uniform(r, MIB, 8);
}

static inline u64 align_none(u64 size)
{
	(void)size;
	return 4 * KIB;
}

static inline u64 align_2m(u64 size)
{
	return size >= 2 * MIB ? 2 * MIB : 4 * KIB;
}

/*
 * One HBM of a trn1 held at 85 %: random victims leave before a request would go
 * beyond. Then only requests, until one is refused. bench.c does it with each
 * allocator, guest/driver.c through the driver.
 */
#define CAPPED_REQUESTS	20000
#define CAPPED_PERCENT	85
#define CAPPED_SEEDS	8
#define CAPPED_ZONE	(16 * GIB)
#define CAPPED_RESERVED	(16 * MIB)

static inline u64 capped_size(struct rng *r)
{
	return log_uniform(r, 64 * KIB, 12);
}

/* Refused requests; how full the zone was at the first, and at the last, of them. */
struct capped_run {
	u32 refused, first, filled;	/* the latter two: 1/1000 */
};

/* Request number @i was refused while @bytes of @zone were in use. */
static inline void capped_refused(struct capped_run *run, u32 i, u64 bytes, u64 zone)
{
	u32 permille = (u32)(bytes * 1000 / zone);

	if (i >= CAPPED_REQUESTS)
		run->filled = permille;
	else if (!run->refused++)
		run->first = permille;
}

/*
 * Public shapes of decoder models: layers, hidden size, width of keys and
 * values, feed-forward size, vocabulary, experts (0: dense), shards.
 */
struct shape {
	const char *name;
	u32 layers, hidden, kv, ffn, vocab, experts, shards;
};

static const struct shape shapes[] = {
	{ "1b",		16,  2048,  512,  8192, 128256, 0,  1 },
	{ "3b",		28,  3072, 1024,  8192, 128256, 0,  2 },
	{ "7b",		32,  4096, 4096, 11008,  32000, 0,  4 },
	{ "8b",		32,  4096, 1024, 14336, 128256, 0,  4 },
	{ "13b",	40,  5120, 5120, 13824,  32000, 0,  8 },
	{ "14b",	48,  5120, 1024, 13824, 152064, 0,  8 },
	{ "8x7b",	32,  4096, 1024, 14336,  32000, 8,  8 },
	{ "32b",	64,  5120, 1024, 27648, 152064, 0,  8 },
	{ "70b",	80,  8192, 1024, 28672, 128256, 0, 32 },
};

#define NR_SHAPES	(sizeof(shapes) / sizeof(shapes[0]))

/* Most allocations of one model. */
#define MODEL_TENSORS	4096

/* Sizes that one core allocates for a shape: bf16, tensor parallel. Returns their number. */
static inline u32 shape_sizes(const struct shape *s, struct rng *r, u64 *size)
{
	u64 h = s->hidden, tp = s->shards;
	u32 n = 0, l, i, ctx = 2048u << rng_below(r, 3);

#define TENSOR(elems)	(size[n++] = (((u64)(elems) * 2 + 4095) & ~4095ULL))
	TENSOR((u64)s->vocab * h / tp);			/* embedding */
	TENSOR((u64)s->vocab * h / tp);			/* output head */
	TENSOR(h);					/* last norm */
	for (l = 0; l < s->layers; l++) {
		u32 experts = s->experts ? s->experts : 1;

		TENSOR(h);				/* two norms */
		TENSOR(h);
		TENSOR(h * h / tp);			/* query, output */
		TENSOR(h * h / tp);
		TENSOR(h * s->kv / tp);			/* key, value */
		TENSOR(h * s->kv / tp);
		for (i = 0; i < experts; i++) {		/* gate, up, down */
			TENSOR(h * s->ffn / tp);
			TENSOR(h * s->ffn / tp);
			TENSOR(h * s->ffn / tp);
		}
		TENSOR((u64)ctx * s->kv / tp);		/* caches of keys and values */
		TENSOR((u64)ctx * s->kv / tp);
	}
	/* descriptor rings, instruction buffers, scratchpad */
	for (i = 0; i < 16; i++)
		size[n++] = 16 * KIB << rng_below(r, 4);
	for (i = 0; i < 5; i++)
		size[n++] = (256 * KIB << rng_below(r, 4)) + rng_below(r, 64) * 4 * KIB;
	size[n++] = 64 * MIB + rng_below(r, 64) * 4 * MIB;
#undef TENSOR
	return n;
}

#endif

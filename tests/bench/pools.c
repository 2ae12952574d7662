// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the pools of libneuron cost, on the host, with the driver of the unit tests: blocks
 * beside malloc() in turns, recorded operations (traces/), blocks of tokens.
 *
 * usage: pools OPERATIONS TRACE...	one line of JSON for each figure
 */
#include <inttypes.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_driver.h"

#define ROUNDS		15u	/* of which the best counts */
#define BATCH		256u
#define TRACE_IDS	65536u
#define LAG		32u	/* operations until work is known to be done */

#define must(what) do { \
	if (!(what)) { \
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
		exit(1); \
	} \
} while (0)

static struct neuron_device *device;
static uint64_t rng = 88172645463325252ull;

static uint64_t rnd(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

static double now(void)
{
	return (double)fake_now();
}

static double least(double a, double b)
{
	return a && a < b ? a : b;
}

/* ---- hits, beside malloc ----------------------------------------------------------- */

struct hits {
	double alloc, free;	/* ns each */
};

static void *pool_take(void *pool, size_t bytes)
{
	struct neuron_mem_block *block;

	must(!neuron_mem_pool_alloc(pool, bytes, 0, &block, NULL));
	return block;
}

static void pool_give(void *block)
{
	must(!neuron_mem_block_free(block, 0));
}

static void *malloc_take(void *unused, size_t bytes)
{
	(void)unused;
	return malloc(bytes);
}

/* Sizes of 512 bytes to 64 KiB; the victims of each batch are drawn from all that live. */
static struct hits hits_round(void **live, unsigned int nr, void *pool,
			      void *(*take)(void *, size_t), void (*give)(void *), uint64_t seed)
{
	static unsigned int victim[BATCH];
	static size_t bytes[BATCH];
	const unsigned int rounds = 200;
	struct hits sum = { 0 };

	rng = seed;
	for (unsigned int i = 0; i < rounds; i++) {
		double t;

		for (unsigned int k = 0; k < BATCH; k++) {
			void *swap;
			unsigned int at = k + (unsigned int)rnd(nr - k);

			/* No one twice. */
			swap = live[k];
			live[k] = live[at];
			live[at] = swap;
			victim[k] = k;
			bytes[k] = 512u << rnd(8) | (rnd(2) ? 4096 : 0);
		}
		t = now();
		for (unsigned int k = 0; k < BATCH; k++)
			give(live[victim[k]]);
		sum.free += now() - t;
		t = now();
		for (unsigned int k = 0; k < BATCH; k++)
			live[victim[k]] = take(pool, bytes[k]);
		sum.alloc += now() - t;
	}
	return (struct hits){ sum.alloc / rounds / BATCH, sum.free / rounds / BATCH };
}

static void hits(unsigned int nr)
{
	const struct neuron_mem_pool_opts opts = { .size = sizeof(opts), .init = 8ull << 30 };
	void **ours = calloc(nr, sizeof(*ours)), **theirs = calloc(nr, sizeof(*theirs));
	struct neuron_mem_pool *pool;
	struct hits a = { 0 }, b = { 0 };
	unsigned int calls;

	must(!neuron_mem_pool_open(device, &opts, &pool));
	for (unsigned int i = 0; i < nr; i++) {
		ours[i] = pool_take(pool, 512u << rnd(8));
		theirs[i] = malloc(512u << rnd(8));
	}
	calls = fake.calls;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct hits x = hits_round(ours, nr, pool, pool_take, pool_give, 7 + i);
		struct hits y = hits_round(theirs, nr, NULL, malloc_take, free, 7 + i);

		a = (struct hits){ least(a.alloc, x.alloc), least(a.free, x.free) };
		b = (struct hits){ least(b.alloc, y.alloc), least(b.free, y.free) };
	}
	printf("{\"work\":\"hits\",\"live\":%u,\"alloc\":%.1f,\"free\":%.1f,\"malloc\":%.1f,"
	       "\"malloc_free\":%.1f,\"calls\":%u}\n", nr, a.alloc, a.free, b.alloc, b.free,
	       fake.calls - calls);
	for (unsigned int i = 0; i < nr; i++) {
		pool_give(ours[i]);
		free(theirs[i]);
	}
	neuron_mem_pool_close(pool);
	free(ours);
	free(theirs);
}

/* Blocks that have a segment each: what is freed is allocated again. */
static void long_hits(void)
{
	const struct neuron_mem_pool_opts opts = { .size = sizeof(opts) };
	struct neuron_mem_pool *pool;
	struct hits best = { 0 };
	unsigned int calls = 0;
	void *live[2 * BATCH];

	must(!neuron_mem_pool_open(device, &opts, &pool));
	for (unsigned int i = 0; i < 2 * BATCH; i++)
		live[i] = pool_take(pool, (2 + i * 7 % 14) << 20);
	for (unsigned int round = 0; round < 200 * ROUNDS; round++) {
		size_t bytes[BATCH];
		double t;

		for (unsigned int k = 0; k < BATCH; k++) {
			unsigned int at = k + (unsigned int)rnd(2 * BATCH - k);
			void *swap = live[k];

			live[k] = live[at];
			live[at] = swap;
			bytes[k] = neuron_mem_block_bytes(live[k]);
		}
		calls -= fake.calls;
		t = now();
		for (unsigned int k = 0; k < BATCH; k++)
			pool_give(live[k]);
		best.free = least(best.free, (now() - t) / BATCH);
		t = now();
		for (unsigned int k = 0; k < BATCH; k++)
			live[k] = pool_take(pool, bytes[k]);
		best.alloc = least(best.alloc, (now() - t) / BATCH);
		calls += fake.calls;
	}
	printf("{\"work\":\"long\",\"live\":%u,\"alloc\":%.1f,\"free\":%.1f,\"calls\":%u}\n",
	       2 * BATCH, best.alloc, best.free, calls);
	for (unsigned int i = 0; i < 2 * BATCH; i++)
		pool_give(live[i]);
	neuron_mem_pool_close(pool);
}

/* ---- recorded operations ----------------------------------------------------------- */

struct play {
	struct neuron_mem_pool *pool;
	struct neuron_mem_block **block;
	uint64_t operations, refused, refused_then, placed_then;
	double ns, least;	/* of this pass; an operation of the quickest pass */
};

static void play_free(struct play *p, unsigned int id)
{
	double t = now();

	/* What was refused is not there. */
	if (!p->block[id])
		return;
	must(!neuron_mem_block_free(p->block[id], 0));
	p->block[id] = NULL;
	p->ns += now() - t;
	p->operations++;
}

static void play_alloc(struct play *p, unsigned int id, uint64_t kib)
{
	double t = now();

	if (neuron_mem_pool_alloc(p->pool, kib << 10, 0, &p->block[id], NULL)) {
		p->block[id] = NULL;
		p->refused++;
	}
	p->ns += now() - t;
	p->operations++;
}

static void play_line(struct play *p, const char *line)
{
	unsigned int id, last;
	uint64_t kib, point;

	if (sscanf(line, "a %u %" SCNu64, &id, &kib) == 2) {
		must(id < TRACE_IDS && !p->block[id]);
		play_alloc(p, id, kib);
	} else if (sscanf(line, "r %" SCNu64, &kib) == 1) {
		struct neuron_mem_block *block;

		p->refused_then++;
		if (!neuron_mem_pool_alloc(p->pool, kib << 10, 0, &block, NULL)) {
			must(!neuron_mem_block_free(block, 0));
			p->placed_then++;
		}
		p->operations++;
	} else if (line[0] == 'f') {
		int n = sscanf(line, "f %u %u", &id, &last);

		must(n >= 1 && id < TRACE_IDS);
		if (n == 1)
			last = id;
		for (unsigned int i = id + 1; i-- > last;)
			play_free(p, i);
	}
	/* Each operation comes with work, which is done some time later. */
	point = neuron_mem_pool_submit(p->pool, 0);
	if (point > LAG)
		must(!neuron_mem_pool_complete(p->pool, 0, point - LAG));
}

/* Half of what lives goes: how much of what is unused then does trim return? */
static void trim_figures(struct play *p, struct neuron_mem_pool_stats *all)
{
	struct neuron_mem_pool_stats s = { .size = sizeof(s) };
	uint64_t returned, unused;

	for (unsigned int i = 0; i < TRACE_IDS; i++)
		if (p->block[i] && rnd(2))
			play_free(p, i);
	must(!neuron_mem_pool_complete(p->pool, 0, neuron_mem_pool_submit(p->pool, 0)));
	must(!neuron_mem_pool_get_stats(p->pool, &s));
	neuron_mem_pool_trim(p->pool, 0, &returned);
	printf(",\"half_unused\":%" PRIu64 ",\"half_split\":%" PRIu64 ",\"half_returned\":%" PRIu64,
	       s.inactive_bytes, s.inactive_split_bytes, returned);
	for (unsigned int i = 0; i < TRACE_IDS; i++)
		if (p->block[i])
			play_free(p, i);
	must(!neuron_mem_pool_complete(p->pool, 0, neuron_mem_pool_submit(p->pool, 0)));
	must(!neuron_mem_pool_get_stats(p->pool, all));
	unused = all->inactive_bytes;
	neuron_mem_pool_trim(p->pool, 0, &returned);
	printf(",\"all_unused\":%" PRIu64 ",\"all_returned\":%" PRIu64, unused, returned);
}

/* Nothing is under way. */
static int waited(void *data, uint32_t queue, uint64_t point)
{
	(void)data;
	(void)queue;
	(void)point;
	return 0;
}

static void recorded(const char *path, uint64_t operations, uint64_t increase)
{
	const struct neuron_mem_pool_opts opts = {
		.size = sizeof(opts), .init = increase, .increase = increase, .wait = waited,
	};
	struct play p = { .block = calloc(TRACE_IDS, sizeof(*p.block)) };
	struct neuron_mem_pool_stats s = { .size = sizeof(s) };
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	FILE *f = fopen(path, "r");
	unsigned int calls = fake.calls;
	double ratio;
	char line[256];

	must(f && p.block && !neuron_mem_pool_open(device, &opts, &p.pool));
	while (p.operations < operations) {
		uint64_t before = p.operations;

		p.ns = 0;
		rewind(f);
		while (fgets(line, sizeof(line), f) && p.operations < operations)
			play_line(&p, line);
		p.least = least(p.least, p.ns / (double)(p.operations - before));
		/* The next one begins with an empty device, and the pool that this one has left. */
		for (unsigned int i = 0; p.operations < operations && i < TRACE_IDS; i++)
			play_free(&p, i);
	}
	fclose(f);
	must(!neuron_mem_pool_get_stats(p.pool, &s));
	ratio = (double)s.reserved_bytes.peak / (double)s.allocated_bytes.peak;
	calls = fake.calls - calls;
	printf("{\"work\":\"recorded\",\"trace\":\"%.*s\",\"increase\":%" PRIu64
	       ",\"operations\":%" PRIu64 ",\"peak\":%" PRIu64
	       ",\"reserved\":%" PRIu64 ",\"ratio\":%.4f,\"refused\":%" PRIu64
	       ",\"refused_then\":%" PRIu64
	       ",\"placed_then\":%" PRIu64 ",\"calls\":%u,\"ns\":%.1f",
	       (int)strcspn(name, "."), name, increase, p.operations, s.allocated_bytes.peak,
	       s.reserved_bytes.peak, ratio, p.refused, p.refused_then, p.placed_then,
	       calls, p.least);
	trim_figures(&p, &s);
	printf("}\n");
	neuron_mem_pool_close(p.pool);
	free(p.block);
}

/* ---- blocks of tokens -------------------------------------------------------------- */

static void tokens(void)
{
	const struct neuron_kv_opts opts = {
		.size = sizeof(opts), .token_bytes = 65536, .max_tokens = 4096 * 64,
	};
	const unsigned int nr = 64, each = 64;
	struct neuron_kv_seq *seq[64];
	struct neuron_kv_pool *pool;
	double append = 0, drop = 0, t;

	must(!neuron_kv_pool_open(device, &opts, &pool));
	for (unsigned int round = 0; round < 20 * ROUNDS; round++) {
		for (unsigned int i = 0; i < nr; i++)
			must(!neuron_kv_seq_open(pool, 0, &seq[i]));
		t = now();
		for (unsigned int k = 0; k < each; k++)
			for (unsigned int i = 0; i < nr; i++)
				must(!neuron_kv_seq_append(seq[i], 64));
		append = least(append, (now() - t) / (nr * each));
		t = now();
		for (unsigned int i = 0; i < nr; i++)
			must(!neuron_kv_seq_truncate(seq[i], 0));
		drop = least(drop, (now() - t) / (nr * each));
		for (unsigned int i = 0; i < nr; i++)
			neuron_kv_seq_close(seq[i]);
	}
	printf("{\"work\":\"tokens\",\"append\":%.1f,\"free\":%.1f}\n", append, drop);
	neuron_kv_pool_close(pool);
}

int main(int argc, char **argv)
{
	static const unsigned int live[] = { 256, 4096, 65536 };

	must(argc > 2);
	/* Neither side asks the kernel. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	must(!neuron_device_open(0, &device));
	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		hits(live[i]);
	long_hits();
	tokens();
	for (int i = 2; i < argc; i++) {
		/* The default, and short ones. */
		recorded(argv[i], strtoull(argv[1], NULL, 10), 2ull << 30);
		recorded(argv[i], strtoull(argv[1], NULL, 10), 64ull << 20);
		recorded(argv[i], strtoull(argv[1], NULL, 10), 1ull << 20);
	}
	neuron_device_close(device);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Benchmark of allocators of contiguous device memory: the tests. Each prints
 * one line of JSON per peer, trace, occupancy and seed; report.py makes tables
 * and plots of them.
 */
#include "bench.h"
#include "trace.h"

#define ZONE		(24 * GIB)
#define CHURN		30000		/* allocations; the second half counts */
#define MAX_LIVE	1200000
#define LAT_MAX		400000
#define LOADS		400		/* model loads; the second half counts */
/* Identical runs; each call counts as its best. */
#ifndef REPS
#define REPS		3
#endif
#define MAX_MODELS	256
#define SLOW_US		1000000		/* runs that take longer are not repeated */
#define SIEGE_US	(600ULL * 1000000)
#define LONG_US		60000000	/* fills that take longer are cut short */

static struct bench_block *live;
static u32 nr_live;
static u64 live_bytes;

/* Latencies of one kind of call, in cycles. */
struct lat {
	u32 *v;
	u32 n;
};

static struct lat lat_alloc, lat_free;
static u32 rep;			/* 0 .. REPS - 1 */
static u64 overhead;		/* cycles of an empty measurement */

static int bench_cmp_u32(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/*
 * Runs are deterministic: call number n does the same work in each repetition,
 * so the smallest of its times is what the allocator needs, and the rest is what
 * else happened on the machine. The maximum over all calls stays honest.
 */
static void lat_add(struct lat *l, u64 cycles)
{
	u32 v;

	if (l->n == LAT_MAX)
		return;
	cycles = cycles > overhead ? cycles - overhead : 0;
	v = cycles > 0xffffffff ? 0xffffffff : (u32)cycles;
	if (rep && l->v[l->n] < v)
		v = l->v[l->n];
	l->v[l->n++] = v;
}

static void lat_print(const char *name, struct lat *l)
{
	u64 sum = 0;
	u32 i, n = l->n;

	if (!n) {
		bench_print(",\"%s\":null", name);
		return;
	}
	for (i = 0; i < n; i++)
		sum += l->v[i];
	bench_sort_u32(l->v, n);
	bench_print(",\"%s\":{\"mean\":%llu,\"p50\":%llu,\"p99\":%llu,\"p999\":%llu,\"max\":%llu}",
		    name, (unsigned long long)bench_cycles_to_ns(sum / n),
		    (unsigned long long)bench_cycles_to_ns(l->v[n / 2]),
		    (unsigned long long)bench_cycles_to_ns(l->v[n - 1 - n / 100]),
		    (unsigned long long)bench_cycles_to_ns(l->v[n - 1 - n / 1000]),
		    (unsigned long long)bench_cycles_to_ns(l->v[n - 1]));
}

static u64 us_since(u64 t)
{
	return bench_cycles_to_ns(bench_cycles() - t) / 1000;
}

static int take(const struct bench_peer *p, void *zone, u64 size, u64 align, bool measure)
{
	struct bench_block *b = &live[nr_live];
	u64 t;
	int err;

	if (nr_live == MAX_LIVE)
		return -1;
	b->size = size;
	bench_settle();
	t = bench_cycles();
	err = p->alloc(zone, size, align, b);
	t = bench_cycles() - t;
	if (measure)
		lat_add(&lat_alloc, t);
	if (err)
		return err;
	nr_live++;
	live_bytes += size;
	return 0;
}

/* What all calls took together, each as its best: microseconds. */
static u64 lat_total_us(const struct lat *l)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < l->n; i++)
		sum += l->v[i];
	return bench_cycles_to_ns(sum) / 1000;
}

static void move(const struct bench_peer *p, u32 to, u32 from)
{
	live[to] = live[from];
	if (p->moved)
		p->moved(&live[to]);
}

static void give(const struct bench_peer *p, void *zone, u32 i, bool measure)
{
	u64 t;

	live_bytes -= live[i].size;
	bench_settle();
	t = bench_cycles();
	p->free(zone, &live[i]);
	t = bench_cycles() - t;
	if (measure)
		lat_add(&lat_free, t);
	if (i != --nr_live)
		move(p, i, nr_live);
}

static void begin(void)
{
	nr_live = 0;
	live_bytes = 0;
	lat_alloc.n = 0;
	lat_free.n = 0;
}

static void end(const struct bench_peer *p, void *zone)
{
	while (nr_live)
		give(p, zone, nr_live - 1, false);
	p->destroy(zone);
}

static void head(const struct bench_peer *p, const char *test, const char *trace, u32 occ,
		 u32 seed)
{
	bench_print("{\"peer\":\"%s\",\"test\":\"%s\",\"trace\":\"%s\",\"occupancy\":%u,\"seed\":%u",
		    p->name, test, trace, occ, seed);
}

static void tail(const struct bench_peer *p, void *zone)
{
	if (p->copied)
		bench_print(",\"copied\":%llu", (unsigned long long)p->copied(zone));
	bench_print(",\"metadata_per_gib\":%llu}\n",
		    (unsigned long long)(p->metadata(zone) / (ZONE / GIB)));
}

struct trace {
	const char *name;
	u64 (*size)(struct rng *r);
	u64 (*align)(u64 size);
};

static const struct trace traces[] = {
	{ "ml-mix", size_ml_mix, align_none },
	{ "log-uniform", size_log_uniform, align_none },
	{ "pow2", size_pow2, align_none },
	{ "ml-mix-2m-aligned", size_ml_mix, align_2m },
	{ "4k-16m", size_medium, align_none },
	{ "4k-64k", size_small, align_none },
};

#define NR_TRACES	(sizeof(traces) / sizeof(traces[0]))

/*
 * Hold the zone at @occ percent: before every allocation random victims leave
 * until it would fit by its size. A refusal is then pure fragmentation.
 */
static bool churn(const struct bench_peer *p, const struct trace *t, u32 occ, u32 seed)
{
	void *zone = p->create(ZONE);
	u64 limit = ZONE / 100 * occ, size;
	u32 i, refused = 0, counted = 0, peak = 0;
	bool full = false, measure, last;
	u64 began = bench_cycles();
	struct rng r;

	if (!zone)
		return true;
	begin();
	rng_seed(&r, seed);
	for (i = 0; i < CHURN;) {
		/* Filling up does not count, but small sizes need it to be done. */
		size = t->size(&r);
		if (live_bytes + size > limit)
			full = true;
		measure = full && i >= CHURN / 2;
		while (live_bytes + size > limit && nr_live)
			give(p, zone, rng_below(&r, nr_live), measure);
		if (take(p, zone, size, t->align(size), measure) && measure)
			refused++;
		counted += measure;
		if (full || nr_live < 2000)
			i++;
		if (nr_live > peak)
			peak = nr_live;
		if (!(i & 255))
			cond_resched();
	}
	last = rep == REPS - 1 || us_since(began) > SLOW_US;
	if (!last)
		goto out;
	head(p, "churn", t->name, occ, seed);
	lat_print("alloc", &lat_alloc);
	lat_print("free", &lat_free);
	bench_print(",\"live\":%u,\"attempts\":%u,\"refused\":%u", peak, counted, refused);
	tail(p, zone);
out:
	end(p, zone);
	return last;
}

/* Churn at 85 %, then only allocate: how full is the zone at the first refusal? */
static void first_failure(const struct bench_peer *p, const char *name, u64 lo, u32 octaves,
			  u32 seed)
{
	void *zone = p->create(ZONE);
	u64 limit = ZONE / 100 * 85, size;
	struct rng r;
	u32 i;

	rep = 0;
	if (!zone)
		return;
	begin();
	rng_seed(&r, seed);
	for (i = 0; i < CHURN / 2; i++) {
		size = log_uniform(&r, lo, octaves);
		while (live_bytes + size > limit && nr_live)
			give(p, zone, rng_below(&r, nr_live), false);
		take(p, zone, size, 4 * KIB, false);
		if (!(i & 255))
			cond_resched();
	}
	do {
		size = log_uniform(&r, lo, octaves);
	} while (!take(p, zone, size, 4 * KIB, false));
	head(p, "first-failure", name, 85, seed);
	bench_print(",\"used_permille\":%llu", (unsigned long long)(live_bytes * 1000 / ZONE));
	tail(p, zone);
	end(p, zone);
}

/* What guest/driver.c does through the driver (trace.h); scattered pieces never fail. */
static void capped_churn(const struct bench_peer *p, u32 seed)
{
	struct bench_block firmware = { .size = CAPPED_RESERVED };
	u64 zone_size = CAPPED_ZONE - CAPPED_RESERVED, size;
	u64 limit = zone_size / 100 * CAPPED_PERCENT;
	void *zone = p->create(CAPPED_ZONE);
	struct capped_run run = { 0 };
	struct rng r;
	u32 i;

	rep = 0;
	if (!zone)
		return;
	begin();
	rng_seed(&r, seed);
	if (p->alloc(zone, CAPPED_RESERVED, 4 * KIB, &firmware))
		goto out;
	for (i = 0; !run.filled; i++) {
		size = capped_size(&r);
		while (i < CAPPED_REQUESTS && live_bytes + size > limit)
			give(p, zone, rng_below(&r, nr_live), false);
		if (take(p, zone, size, 4 * KIB, false))
			capped_refused(&run, i, live_bytes, zone_size);
		if (!(i & 255))
			cond_resched();
	}
	head(p, "capped", "64k-256m", CAPPED_PERCENT, seed);
	bench_print(",\"attempts\":%u,\"refused\":%u,\"first_permille\":%u,\"filled_permille\":%u",
		    CAPPED_REQUESTS, run.refused, run.first, run.filled);
	tail(p, zone);
	p->free(zone, &firmware);
out:
	end(p, zone);
}

static u32 model_first[MAX_MODELS], model_count[MAX_MODELS], nr_models;

/* Free model @j. The blocks of a model stay together: close the gap. */
static void unload(const struct bench_peer *p, void *zone, u32 j, bool measure)
{
	u32 first = model_first[j], n = model_count[j], i;
	u64 t;

	for (i = first; i < first + n; i++) {
		live_bytes -= live[i].size;
		t = bench_cycles();
		p->free(zone, &live[i]);
		t = bench_cycles() - t;
		if (measure)
			lat_add(&lat_free, t);
	}
	for (i = first + n; i < nr_live; i++)
		move(p, i - n, i);
	nr_live -= n;
	nr_models--;
	for (i = j; i < nr_models; i++) {
		model_first[i] = model_first[i + 1] - n;
		model_count[i] = model_count[i + 1];
	}
}

/* Models come and go; a tensor that finds no place forces another model out. */
static bool models(const struct bench_peer *p, u32 occ, u32 seed)
{
	static u64 sizes[MODEL_TENSORS];
	void *zone = p->create(ZONE);
	u64 limit = ZONE / 100 * occ, total;
	u32 i, n, load, loads = 0, forced = 0, failed = 0, refused = 0;
	u64 began = bench_cycles();
	struct rng r;
	bool last;

	if (!zone)
		return true;
	begin();
	nr_models = 0;
	rng_seed(&r, seed);
	for (load = 0; load < LOADS; load++) {
		bool measure = load >= LOADS / 2;

		n = shape_sizes(&shapes[rng_below(&r, NR_SHAPES)], &r, sizes);
		for (total = 0, i = 0; i < n; i++)
			total += sizes[i];
		while (live_bytes + total > limit && nr_models)
			unload(p, zone, rng_below(&r, nr_models), measure);
		loads += measure;
		for (i = 0; i < n; i++) {
			while (take(p, zone, sizes[i], 4 * KIB, measure)) {
				refused += measure;
				if (!nr_models)
					goto give_up;
				/* the part that is loaded is the last in live[] */
				unload(p, zone, rng_below(&r, nr_models), measure);
				forced += measure;
			}
		}
		goto loaded;
give_up:
		failed += measure;
loaded:
		model_count[nr_models] = i;
		model_first[nr_models] = nr_live - i;
		nr_models++;
		cond_resched();
	}
	last = rep == REPS - 1 || us_since(began) > SLOW_US;
	if (!last)
		goto out;
	head(p, "models", "models", occ, seed);
	lat_print("alloc", &lat_alloc);
	lat_print("free", &lat_free);
	bench_print(",\"live\":%u,\"loads\":%u,\"forced\":%u,\"refused\":%u,\"failed\":%u",
		    nr_live, loads, forced, refused, failed);
	tail(p, zone);
out:
	end(p, zone);
	return last;
}

/* Fill 4 GiB with 8 KiB objects at 64 KiB alignment: alignment needs an index. */
/* Seconds of work are not repeated. Returns true when the result is final. */
static bool aligned_fill(const struct bench_peer *p)
{
	void *zone = p->create(4 * GIB);
	u32 i, n = 4 * GIB / (64 * KIB);
	u64 began = bench_cycles();
	bool last;

	if (!zone)
		return true;
	begin();
	for (i = 0; i < n; i++) {
		if (take(p, zone, 8 * KIB, 64 * KIB, true) || us_since(began) > LONG_US)
			break;
		if (!(i & 255))
			cond_resched();
	}
	last = rep == REPS - 1 || us_since(began) > SLOW_US;
	if (last) {
		head(p, "aligned-fill", "8k@64k", 0, 0);
		bench_print(",\"us\":%llu,\"done\":%u,\"wanted\":%u}\n",
			    (unsigned long long)lat_total_us(&lat_alloc), i, n);
	}
	end(p, zone);
	return last;
}

/*
 * After the GPU buddy's own fragmentation test: fill as above, free every other
 * object, and then time (1) filling up with 64 KiB blocks at 64 KiB alignment
 * until refused and (2) freeing everything in reverse order of allocation. An
 * allocator that needs more than a minute to fill goes on with what it has got.
 */
static bool checkerboard(const struct bench_peer *p)
{
	void *zone = p->create(4 * GIB);
	u32 i, n = 4 * GIB / (64 * KIB), done = 0, filled;
	u64 began = bench_cycles();
	bool last;

	if (!zone)
		return true;
	begin();
	for (i = 0; i < n; i++) {
		if (take(p, zone, 8 * KIB, 64 * KIB, false) || us_since(began) > LONG_US)
			break;
		if (!(i & 255))
			cond_resched();
	}
	filled = i;
	for (i = 1; i < nr_live; i += 2)
		p->free(zone, &live[i]);
	for (i = 1; 2 * i < nr_live; i++)
		move(p, i, 2 * i);
	nr_live = i;
	for (; done < n && us_since(began) < 2 * LONG_US &&
	       !take(p, zone, 64 * KIB, 64 * KIB, true); done++) {
		if (!(done & 255))
			cond_resched();
	}
	while (nr_live)
		give(p, zone, nr_live - 1, true);
	last = rep == REPS - 1 || us_since(began) > SLOW_US;
	if (last) {
		head(p, "checkerboard", "64k-refill", 0, 0);
		bench_print(",\"refill_us\":%llu,\"reverse_us\":%llu,\"done\":%u,\"wanted\":%u,\"filled\":%u}\n",
			    (unsigned long long)lat_total_us(&lat_alloc),
			    (unsigned long long)lat_total_us(&lat_free), done, n / 2, filled);
	}
	end(p, zone);
	return last;
}

/* A million blocks of 4 KiB; then one goes and one comes, in any order. */
static bool million(const struct bench_peer *p)
{
	void *zone = p->create(ZONE);
	u64 began = bench_cycles();
	struct rng r;
	bool last;
	u32 i;

	if (!zone)
		return true;
	begin();
	rng_seed(&r, 1);
	while (nr_live < 1000000 && !take(p, zone, 4 * KIB, 4 * KIB, false)) {
		if (!(nr_live & 255))
			cond_resched();
	}
	for (i = 0; i < LAT_MAX; i++) {
		give(p, zone, rng_below(&r, nr_live), true);
		take(p, zone, 4 * KIB, 4 * KIB, true);
		if (!(i & 255))
			cond_resched();
	}
	last = rep == REPS - 1 || us_since(began) > 10 * SLOW_US;
	if (last) {
		head(p, "million", "4k", 0, 1);
		lat_print("alloc", &lat_alloc);
		lat_print("free", &lat_free);
		tail(p, zone);
	}
	end(p, zone);
	return last;
}

/* Time to make a zone, and what it costs while it is empty. */
static bool creation(const struct bench_peer *p)
{
	bool last;
	static u64 best;
	u64 t = bench_cycles();
	void *zone = p->create(ZONE);

	t = us_since(t);
	if (!zone)
		return true;
	last = rep == REPS - 1 || t > SLOW_US;
	best = rep ? min(best, t) : t;
	if (last) {
		head(p, "create", "none", 0, 0);
		bench_print(",\"us\":%llu", (unsigned long long)best);
		tail(p, zone);
	}
	p->destroy(zone);
	return last;
}

/*
 * States made to hurt, then requests that hardly anything fits: the zone is filled with
 * objects of @lo bytes and up, of which every other one leaves.
 */
static void storm_run(const struct bench_peer *p, void *zone, u64 lo, u32 octaves, u32 seed)
{
	struct rng r;
	u32 i, n;

	begin();
	rng_seed(&r, seed);
	while (!take(p, zone, log_uniform(&r, lo, octaves), 4 * KIB, false))
		cond_resched();
	n = nr_live;
	for (i = 0; i < n / 2; i++)
		give(p, zone, i, true);		/* the last one moves to i and stays */
	for (i = 0; i < 4000; i++) {
		u64 size = log_uniform(&r, lo, octaves + 3);
		u64 align = (4 * KIB) << rng_below(&r, 14);

		take(p, zone, size, align, true);
		/* make the allocator forget what it learned */
		for (n = 0; n < 2 && nr_live > 1000; n++)
			give(p, zone, rng_below(&r, nr_live), true);
		if (!(i & 63))
			cond_resched();
	}
}

/* The longest that one call holds the zone's lock. */
static bool storm(const struct bench_peer *p, const char *objects, u64 lo, u32 octaves)
{
	void *zone = p->create(ZONE);
	u64 began = bench_cycles();
	bool last;

	if (!zone)
		return true;
	storm_run(p, zone, lo, octaves, 1);
	last = rep == REPS - 1 || us_since(began) > 20 * SLOW_US;
	if (last) {
		head(p, "storm", objects, 0, 1);
		lat_print("alloc", &lat_alloc);
		lat_print("free", &lat_free);
		tail(p, zone);
	}
	end(p, zone);
	return last;
}

static u32 lat_max(const struct lat *l)
{
	u32 i, worst = 0;

	for (i = 0; i < l->n; i++)
		worst = max(worst, l->v[i]);
	return worst;
}

/*
 * Ten minutes of storms, each from other objects; every one three times, so that what
 * else happens on the machine is not counted.
 */
static void siege(const struct bench_peer *p)
{
	u64 began = bench_cycles(), calls = 0;
	u32 seed, alloc = 0, released = 0;
	void *zone = NULL;

	for (seed = 1; us_since(began) < SIEGE_US; seed++) {
		for (rep = 0; rep < REPS; rep++) {
			zone = p->create(ZONE);
			if (!zone)
				return;
			storm_run(p, zone, (4 * KIB) << seed % 11, 2 + seed % 5, seed);
			if (rep == REPS - 1) {
				alloc = max(alloc, lat_max(&lat_alloc));
				released = max(released, lat_max(&lat_free));
				calls += lat_alloc.n + lat_free.n;
			}
			end(p, zone);
		}
	}
	head(p, "siege", "storms", 0, seed - 1);
	bench_print(",\"calls\":%llu,\"alloc_max\":%llu,\"free_max\":%llu}\n",
		    (unsigned long long)calls, (unsigned long long)bench_cycles_to_ns(alloc),
		    (unsigned long long)bench_cycles_to_ns(released));
}

/* One step of a recorded trace; @size 0: block @id goes, else it comes. Bytes. */
struct event {
	u64 size, align;
	u32 id;
};

#define NOBODY	~0u	/* was refused when it was recorded */

/* A recorded trace; the format is in traces/README.md. */
struct recording {
	char name[32];
	struct event *event;
	u32 nr, allocs;
	u32 refused;		/* when it was recorded; not in allocs */
	u32 ids;		/* block numbers in use are below */
	u64 zone, reserved;	/* bytes */
	u64 peak;		/* most bytes that are live at a time */
	u32 peak_live;		/* most blocks */
};

#define MAX_RECORDINGS	16
#define NEEDS_STEPS	40
#define MAX_EVENTS	1000000

static struct recording recordings[MAX_RECORDINGS];
static u32 nr_recordings;

/* Take @text apart. live[] serves as memory of what is live. */
static bool recording_parse(struct recording *r, char *text)
{
	unsigned long long zone, reserved, kib, align;
	u64 bytes = 0;
	u32 id, last, alive = 0;
	char *line;
	int n;

	line = strsep(&text, "\n");
	if (!line || strcmp(line, "neuron-trace 1"))
		return false;
	while ((line = strsep(&text, "\n"))) {
		if (!*line || *line == '#')
			continue;
		if (!r->zone) {
			if (sscanf(line, "zone %llu %llu", &zone, &reserved) != 2 ||
			    reserved >= zone)
				return false;
			r->zone = zone * KIB;
			r->reserved = reserved * KIB;
			continue;
		}
		n = sscanf(line, "a %u %llu %llu", &id, &kib, &align);
		if (n >= 2) {
			if (id >= MAX_LIVE - 1 || live[id].size || !kib || r->nr == MAX_EVENTS)
				return false;
			live[id].size = kib * KIB;
			r->event[r->nr++] = (struct event){
				kib * KIB, n > 2 ? align * KIB : 4 * KIB, id,
			};
			bytes += kib * KIB;
			r->peak = bytes > r->peak ? bytes : r->peak;
			r->ids = id >= r->ids ? id + 1 : r->ids;
			r->peak_live = ++alive > r->peak_live ? alive : r->peak_live;
			r->allocs++;
			continue;
		}
		if (sscanf(line, "r %llu", &kib) == 1 && kib && r->nr < MAX_EVENTS) {
			r->event[r->nr++] = (struct event){ kib * KIB, 4 * KIB, NOBODY };
			r->refused++;
			continue;
		}
		n = sscanf(line, "f %u %u", &id, &last);
		if (n < 1 || id >= MAX_LIVE - 1)
			return false;
		if (n == 1)
			last = id;
		for (; id + 1 > last; id--) {
			if (!live[id].size || r->nr == MAX_EVENTS)
				return false;
			bytes -= live[id].size;
			live[id].size = 0;
			alive--;
			r->event[r->nr++] = (struct event){ .id = id };
			if (!id)
				break;
		}
	}
	return r->nr && r->peak <= r->zone - r->reserved;
}

static bool recording_add(const char *path)
{
	struct recording *r = &recordings[nr_recordings];
	const char *name = strrchr(path, '/');
	char *text = bench_read(path), *dot;
	bool good = false;

	if (!text || nr_recordings == MAX_RECORDINGS)
		goto out;
	memset(live, 0, MAX_LIVE * sizeof(*live));
	snprintf(r->name, sizeof(r->name), "%s", name ? name + 1 : path);
	dot = strrchr(r->name, '.');
	if (dot)
		*dot = 0;
	r->event = bench_alloc_mem(MAX_EVENTS * sizeof(*r->event));
	good = r->event && recording_parse(r, text);
	nr_recordings++;
out:
	bench_free_mem(text);
	return good;
}

/*
 * Play a recording once; what is refused is left out. @broken: how often the
 * allocator found its books wrong, looked at every @every steps.
 * Returns how many requests were refused, those included that were refused when
 * it was recorded.
 */
static u32 play(const struct bench_peer *p, void *zone, const struct recording *r, bool measure,
		u64 *metadata, u32 every, u32 *broken)
{
	u32 i, refused = 0, alive = 0;
	u64 t;
	int err;

	for (i = 0; i < r->ids; i++)
		live[i].size = 0;
	begin();
	for (i = 0; i < r->nr; i++) {
		const struct event *e = &r->event[i];
		struct bench_block *b = &live[e->id == NOBODY ? MAX_LIVE - 1 : e->id];

		if (e->id == NOBODY) {
			/* Found a place here: nobody would keep it. */
			b->size = e->size;
			if (p->alloc(zone, e->size, e->align, b))
				refused++;
			else
				p->free(zone, b);
			b->size = 0;
		} else if (e->size) {
			b->size = e->size;
			t = bench_cycles();
			err = p->alloc(zone, e->size, e->align, b);
			t = bench_cycles() - t;
			if (measure)
				lat_add(&lat_alloc, t);
			if (err) {
				b->size = 0;
				refused++;
			} else if (++alive == r->peak_live && metadata) {
				*metadata = p->metadata(zone);
			}
		} else if (b->size) {
			t = bench_cycles();
			p->free(zone, b);
			t = bench_cycles() - t;
			if (measure)
				lat_add(&lat_free, t);
			b->size = 0;
			alive--;
		}
		if (every && !(i % every) && p->check && p->check(zone))
			++*broken;
		if (!(i & 255))
			cond_resched();
	}
	for (i = 0; i < r->ids; i++) {
		if (live[i].size)
			p->free(zone, &live[i]);
	}
	if (every && p->check && p->check(zone))
		++*broken;
	return refused;
}

/* Zone of @size bytes with the part that firmware keeps, or as much as it has. */
static u32 play_in(const struct bench_peer *p, const struct recording *r, u64 size, bool measure,
		   u64 *metadata, u32 every, u32 *broken)
{
	struct bench_block firmware = { .size = r->reserved };
	u32 refused = r->allocs + r->refused;
	void *zone = p->create(size);

	if (!zone)
		return refused;
	if (!r->reserved || !p->alloc(zone, r->reserved, 4 * KIB, &firmware)) {
		refused = play(p, zone, r, measure, metadata, every, broken);
		if (r->reserved)
			p->free(zone, &firmware);
	}
	p->destroy(zone);
	return refused;
}

/*
 * A recorded trace in the zone it was recorded in, and the smallest zone in which no
 * more is refused than when it was recorded: in steps of half a percent of what is live at most.
 */
static void recorded(const struct bench_peer *p, const struct recording *r)
{
	u32 refused = 0, broken = 0, step;
	u64 metadata = 0, began, size;

	for (rep = 0; rep < REPS; rep++) {
		began = bench_cycles();
		refused = play_in(p, r, r->zone, true, &metadata, 0, NULL);
		if (us_since(began) > SLOW_US)
			break;
	}
	head(p, "recorded", r->name, 0, 0);
	lat_print("alloc", &lat_alloc);
	lat_print("free", &lat_free);
	if (p->check)
		play_in(p, r, r->zone, false, NULL, 64, &broken);
	bench_print(",\"attempts\":%u,\"refused\":%u,\"refused_then\":%u,\"broken\":%u,\"live\":%u,\"peak_mib\":%llu",
		    r->allocs + r->refused, refused, r->refused, broken, r->peak_live, (unsigned long long)(r->peak / MIB));
	for (step = 0; step < NEEDS_STEPS; step++) {
		size = (r->peak + r->peak / 200 * step + r->reserved + 4 * MIB - 1) &
		       ~(4 * MIB - 1);
		if (play_in(p, r, size, false, NULL, 0, NULL) <= r->refused)
			break;
	}
	bench_print(",\"needs_permille\":%u,\"metadata_per_gib\":%llu}\n", 1000 + 5 * step,
		    (unsigned long long)(metadata / (r->zone / GIB)));
}

static bool wanted(const char *name, const char *list)
{
	return !*list || strstr(list, name);
}

/* @name is one of the words of @list: first-fit is part of another name. */
static bool named(const char *name, const char *list)
{
	size_t n = strlen(name);
	const char *at;

	for (at = strstr(list, name); at; at = strstr(at + 1, name)) {
		if ((at == list || at[-1] == ',' || at[-1] == ' ') &&
		    (!at[n] || at[n] == ',' || at[n] == ' '))
			return true;
	}
	return !*list;
}

static void run_peer(const struct bench_peer *p, const struct bench_options *opt)
{
	const char *tests = opt->tests;
	u32 seeds = opt->seeds;
	static const u32 occupancy[] = { 50, 80, 85, 90, 95 };
	static const u32 resident[] = { 80, 85, 90, 95, 97 };
	u32 t, o, s;

	if (p->copied) {
		/* Where requests are refused most; the time of what is copied is missing. */
		rep = REPS - 1;
		for (s = 0; s < seeds && wanted("ml-mix", tests); s++)
			churn(p, &traces[0], 90, s);
		return;
	}
	if (!p->scattered && !p->slow)
		bench_pack(p, opt, live, MAX_LIVE);
	if (p->only_packing)
		return;
	for (t = 0; t < NR_TRACES; t++) {
		for (o = 0; o < 5; o++) {
			/* a million live objects once is enough */
			bool small = traces[t].size == size_small;

			if (!wanted(traces[t].name, tests) || (small && occupancy[o] != 80))
				continue;
			for (s = 0; s < (small ? 1 : seeds); s++) {
				for (rep = 0; !churn(p, &traces[t], occupancy[o], s); rep++)
					;
			}
		}
	}
	/* a single event per run: many runs */
	for (s = 0; s < 8 * seeds && wanted("first-failure", tests); s++) {
		first_failure(p, "64k-256m", 64 * KIB, 12, s);
		first_failure(p, "1m-2g", MIB, 11, s);
	}
	for (s = 0; s < CAPPED_SEEDS && wanted("capped", tests); s++)
		capped_churn(p, s);
	for (o = 0; o < 5 && wanted("models", tests); o++) {
		for (s = 0; s < seeds; s++) {
			for (rep = 0; !models(p, resident[o], s); rep++)
				;
		}
	}
	for (t = 0; t < nr_recordings && wanted("recorded", tests); t++)
		recorded(p, &recordings[t]);
	for (rep = 0; wanted("aligned-fill", tests) && !aligned_fill(p); rep++)
		;
	for (rep = 0; wanted("checkerboard", tests) && !checkerboard(p); rep++)
		;
	for (rep = 0; wanted("storm", tests) && !storm(p, "4k-64k", 4 * KIB, 4); rep++)
		;
	for (rep = 0; wanted("storm", tests) && !storm(p, "768k-12m", 768 * KIB, 4); rep++)
		;
	for (rep = 0; wanted("million", tests) && !p->slow && !million(p); rep++)
		;
	for (rep = 0; wanted("create", tests) && !creation(p); rep++)
		;
	/* Only if it is asked for: it takes ten minutes. */
	if (*tests && wanted("siege", tests))
		siege(p);
}

/* Peers that stand for others: are they the same? */
static void twins(void)
{
	const struct bench_peer *const *p, *const *q;
	static const char *const pair[][2] = {
		{ "first-fit", "genalloc-first-fit" }, { "best-fit", "genalloc-best-fit" },
	};
	u32 i;

	for (i = 0; i < 2; i++) {
		for (p = bench_peers; *p; p++) {
			for (q = bench_peers; *q; q++) {
				if (strcmp((*p)->name, pair[i][0]) || strcmp((*q)->name, pair[i][1]))
					continue;
				head(*p, "twin", (*q)->name, 0, 0);
				bench_print(",\"same\":%u}\n",
					    bench_twins(*p, *q, live, MAX_LIVE));
			}
		}
	}
}

int bench_run(const struct bench_options *o)
{
	const struct bench_peer *const *p;
	char *traces = o->recorded;
	u64 t, best = ~0ULL;
	const char *path;
	u32 i;
	int err = -1;

	for (i = 0; i < 1000; i++) {
		t = bench_cycles();
		t = bench_cycles() - t;
		best = min(best, t);
	}
	overhead = best;
	live = bench_alloc_mem(MAX_LIVE * sizeof(*live));
	lat_alloc.v = bench_alloc_mem(LAT_MAX * sizeof(u32));
	lat_free.v = bench_alloc_mem(LAT_MAX * sizeof(u32));
	if (live && lat_alloc.v && lat_free.v) {
		err = 0;
		while (!err && traces && *traces) {
			path = strsep(&traces, ",");
			if (!recording_add(path)) {
				bench_complain("%s: not a recorded trace", path);
				err = -1;
			}
		}
		for (p = bench_peers; *p && !err; p++) {
			if (named((*p)->name, o->peers))
				run_peer(*p, o);
		}
		if (!err && wanted("twin", o->tests))
			twins();
	}
	while (nr_recordings)
		bench_free_mem(recordings[--nr_recordings].event);
	bench_free_mem(lat_free.v);
	bench_free_mem(lat_alloc.v);
	bench_free_mem(live);
	return err;
}

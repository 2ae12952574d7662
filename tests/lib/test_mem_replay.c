// SPDX-License-Identifier: GPL-2.0-only
/*
 * Snapshots and replays: a driver that is made of the allocator and a recorder here, and does
 * things between two calls of the library if a test wants that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <sys/stat.h>

#include "../bench/replay.h"
#include "src/memory/snapshot.h"
#include "tools/file.h"

#define BASE	(1ull << 40)
#define TOTAL	(64ull << 20)
#define KEPT	300		/* events */
#define LIVE	2000

static struct {
	struct neuron_buddy *zone;
	struct neuron_buddy_block live[LIVE];
	size_t count;
	struct neuron_event event[KEPT];
	uint64_t seq;
	size_t refused[NEURON_MEM_REASON_HOST + 1];	/* of those that are kept */
	/* What happens between two calls for ranges, and at one for figures. */
	unsigned int busy_ranges, busy_figures;
} drv;

static uint64_t seed;

static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

/* ---- a driver ------------------------------------------------------------------------ */

static void record(enum neuron_event_kind kind, uint64_t addr, uint64_t bytes,
		   const struct neuron_buddy_request *req, enum neuron_mem_reason reason)
{
	struct neuron_event *e = &drv.event[++drv.seq % KEPT];

	*e = (struct neuron_event){
		.seq = drv.seq, .time = drv.seq * 1000, .kind = kind, .bytes = bytes,
		.address = addr == UINT64_MAX ? 0 : BASE + addr, .reason = reason, .client = 7,
		.align = req ? req->align : 0, .pid = 42, .owner = 5,
		.category = NEURON_MEM_TENSORS,
	};
	if (kind != NEURON_EVENT_REFUSE)
		return;
	e->free = neuron_buddy_free_bytes(drv.zone);
	e->flags = req->flags & NEURON_BUDDY_LOW ? NEURON_MEM_F_LOW :
		   req->flags & NEURON_BUDDY_HIGH ? NEURON_MEM_F_HIGH :
		   req->flags & NEURON_BUDDY_EXACT ? NEURON_MEM_F_AT : 0;
}

static int ask(const struct neuron_buddy_request *req, struct neuron_buddy_block *block,
	       enum neuron_buddy_cause *cause)
{
	int err;

	do {
		assert_int_equal(neuron_buddy_prepare(drv.zone), 0);
		err = neuron_buddy_alloc(drv.zone, req, block, cause);
	} while (err == -EAGAIN);
	return err;
}

static void take(uint64_t bytes, uint64_t align, uint32_t flags)
{
	struct neuron_buddy_request req = { .size = bytes, .align = align, .flags = flags };
	enum neuron_buddy_cause cause;
	struct neuron_buddy_block block;

	if (drv.count == LIVE)
		return;
	if (!ask(&req, &block, &cause)) {
		drv.live[drv.count++] = block;
		record(NEURON_EVENT_ALLOC, block.addr, block.size, &req, 0);
	} else {
		record(NEURON_EVENT_REFUSE, UINT64_MAX, bytes, &req,
		       cause == NEURON_BUDDY_CAUSE_FULL ? NEURON_MEM_REASON_FULL :
		       cause == NEURON_BUDDY_CAUSE_ALIGNMENT ? NEURON_MEM_REASON_ALIGNMENT :
							       NEURON_MEM_REASON_FRAGMENTED);
	}
}

static void give(size_t i)
{
	record(NEURON_EVENT_FREE, drv.live[i].addr, drv.live[i].size, NULL, 0);
	assert_int_equal(neuron_buddy_free(drv.zone, &drv.live[i], false), 0);
	drv.live[i] = drv.live[--drv.count];
}

static void grow(size_t i, uint64_t bytes)
{
	struct neuron_buddy_block *b = &drv.live[i], tail;
	struct neuron_buddy_request req = { .size = bytes, .addr = b->addr + b->size,
					    .flags = NEURON_BUDDY_EXACT };

	if (ask(&req, &tail, NULL)) {
		record(NEURON_EVENT_REFUSE, req.addr, bytes, &req,
		       bytes > neuron_buddy_free_bytes(drv.zone) ? NEURON_MEM_REASON_FULL :
								   NEURON_MEM_REASON_FRAGMENTED);
		return;
	}
	record(NEURON_EVENT_GROW, tail.addr, bytes, &req, 0);
	assert_int_equal(neuron_buddy_free(drv.zone, &tail, true), 0);
	assert_int_equal(neuron_buddy_prepare(drv.zone), 0);
	if (neuron_buddy_grow(drv.zone, b, b->size + bytes))
		record(NEURON_EVENT_SHRINK, tail.addr, bytes, NULL, 0);
}

static void shrink(size_t i)
{
	struct neuron_buddy_block *b = &drv.live[i], tail;

	if (b->size < 2 << 20)
		return;
	assert_int_equal(neuron_buddy_prepare(drv.zone), 0);
	assert_int_equal(neuron_buddy_split(drv.zone, b, b->size / 2 / NEURON_PAGE * NEURON_PAGE,
					    &tail), 0);
	record(NEURON_EVENT_SHRINK, tail.addr, tail.size, NULL, 0);
	assert_int_equal(neuron_buddy_free(drv.zone, &tail, false), 0);
}

/* To another place, as the driver moves memory. */
static void move(size_t i)
{
	struct neuron_buddy_request req = { .size = drv.live[i].size, .flags = NEURON_BUDDY_LOW };
	struct neuron_buddy_block block;
	uint64_t from = drv.live[i].addr;

	if (ask(&req, &block, NULL))
		return;
	assert_int_equal(neuron_buddy_free(drv.zone, &drv.live[i], false), 0);
	drv.live[i] = block;
	record(NEURON_EVENT_MOVE, block.addr, block.size, NULL, 0);
	drv.event[drv.seq % KEPT].free = BASE + from;
}

/* Large ones when there are few, so that all of it is in use most of the time. */
static void step(void)
{
	uint64_t bytes = (1 + draw(draw(4) ? 64 : 1500)) * 4096ull;
	uint32_t what = draw(20);

	if (!draw(50))
		bytes *= 40;
	if (what < 9 || !drv.count)
		take(bytes, draw(4) ? 0 : 4096ull << draw(13), draw(3));
	else if (what < 16)
		give(draw((uint32_t)drv.count));
	else if (what < 17)
		move(draw((uint32_t)drv.count));
	else if (what < 19)
		grow(draw((uint32_t)drv.count), (1 + draw(300)) * 4096ull);
	else
		shrink(draw((uint32_t)drv.count));
}

static void meanwhile(unsigned int steps)
{
	while (steps--)
		step();
}

/* ---- what the library asks it -------------------------------------------------------- */

const struct neuron_geometry *neuron_device_geometry(const struct neuron_device *device)
{
	static const struct neuron_geometry g = { .nr_hbms = 1 };

	(void)device;
	return &g;
}

unsigned int neuron_device_index(const struct neuron_device *device)
{
	(void)device;
	return 3;
}

int neuron_hbm_get_stats(struct neuron_device *device, uint32_t hbm, struct neuron_hbm_stats *s)
{
	struct neuron_buddy_stats b;

	(void)device;
	(void)hbm;
	meanwhile(drv.busy_figures);
	neuron_buddy_stats(drv.zone, &b);
	*s = (struct neuron_hbm_stats){
		.size = sizeof(*s), .total = b.total, .used = b.used, .free = b.free,
		.reserved = b.reserved, .largest_free = b.largest, .nr_allocs = b.allocs,
	};
	return 0;
}

int neuron_hbm_get_owners(struct neuron_device *device, uint32_t hbm, uint32_t flags,
			  struct neuron_owners *owners)
{
	(void)device;
	(void)hbm;
	(void)flags;
	owners->count = 1;
	owners->used = neuron_buddy_used(drv.zone);
	owners->list = calloc(1, sizeof(*owners->list));
	owners->list[0] = (struct neuron_owner){ .pid = getpid(), .label = "all of it",
						 .bytes = owners->used };
	return 0;
}

int neuron_hbm_get_events(struct neuron_device *device, uint32_t hbm, uint64_t *since,
			  struct neuron_event **list, size_t *n)
{
	uint64_t from = drv.seq > KEPT ? drv.seq - KEPT : 0;

	(void)device;
	(void)hbm;
	*list = calloc(KEPT, sizeof(**list));
	*n = 0;
	for (from = from > *since ? from : *since; from < drv.seq; from++)
		(*list)[(*n)++] = drv.event[(from + 1) % KEPT];
	*since = drv.seq;
	return 0;
}

/* A few at a time, as the driver drops its lock between two of them. */
/* It names who it was asked for. */
int neuron_mem_release(struct neuron_device *device, const struct neuron_mem_failure *failure,
		       struct neuron_release *release)
{
	(void)device;
	release->count = 1;
	release->item[0] = (struct neuron_release_item){ .pid = 7, .bytes = failure->bytes };
	return 0;
}

const char *neuron_release_text(const struct neuron_release *release, char *text, size_t size)
{
	snprintf(text, size, "%d: %u", release->item[0].pid, (unsigned int)release->item[0].bytes);
	return text;
}

int neuron_hbm_get_ranges(struct neuron_device *device, uint32_t hbm, struct neuron_range **list,
			  size_t *n)
{
	struct neuron_buddy_range r;
	uint64_t pos = 0;

	(void)device;
	(void)hbm;
	*list = calloc(TOTAL / 4096, sizeof(**list));
	for (*n = 0; neuron_buddy_walk(drv.zone, &pos, &r, 1); ++*n) {
		(*list)[*n] = (struct neuron_range){
			.address = BASE + r.addr, .bytes = r.size,
			.state = r.state == NEURON_BUDDY_RANGE_RESERVED ? NEURON_RANGE_RESERVED :
				 r.state == NEURON_BUDDY_RANGE_USED ? NEURON_RANGE_USED :
								      NEURON_RANGE_FREE,
		};
		if (!(*n % 40))
			meanwhile(drv.busy_ranges);
	}
	return 0;
}

/* ---- tests --------------------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	memset(&drv, 0, sizeof(drv));
	assert_int_equal(neuron_buddy_create(&drv.zone, TOTAL), 0);
	assert_int_equal(neuron_buddy_prepare(drv.zone), 0);
	assert_int_equal(neuron_buddy_reserve(drv.zone, 0, 1 << 20), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	neuron_buddy_destroy(drv.zone);
	return 0;
}

static void snapshot(struct snapshot *s)
{
	char *json;

	assert_int_equal(neuron_mem_snapshot(NULL, 0, &json), 0);
	assert_int_equal(snapshot_parse(json, strlen(json), s), 0);
	free(json);
	assert_int_equal(s->device, 3);
	assert_int_equal(s->count, 1);
	assert_true(s->list[0].consistent);
	assert_true(s->list[0].stats.used == s->list[0].owner[0].figures.bytes);
}

/* Replays it, and counts the refusals by hand. */
static struct replay replayed(const struct snapshot *s, int want)
{
	struct replay r = { 0 };
	size_t refused = 0;

	for (size_t i = 0; i < s->list[0].nr_events; i++)
		refused += s->list[0].event[i].kind == NEURON_EVENT_REFUSE;
	assert_int_equal(replay_hbm(&r, &s->list[0]), want);
	if (!want)
		assert_int_equal(r.same + r.different + r.limits + r.unknown, refused);
	return r;
}

/* Whatever happened: the same refusals. */
static void test_histories(void **state)
{
	size_t same = 0, reasons[NEURON_MEM_REASON_HOST + 1] = { 0 };

	(void)state;
	for (unsigned int round = 0; round < 80; round++) {
		unsigned int steps;
		struct snapshot s;
		struct replay r;

		seed = round;
		steps = 100 + draw(3000);
		for (unsigned int i = 0; i < steps; i++)
			step();
		snapshot(&s);
		r = replayed(&s, 0);
		assert_int_equal(r.different, 0);
		assert_int_equal(r.events, s.list[0].nr_events);
		same += r.same;
		for (size_t i = 0; i < s.list[0].nr_events; i++)
			reasons[s.list[0].event[i].reason]++;
		snapshot_free(&s);
		teardown(NULL);
		setup(NULL);
	}
	/* All three kinds, and not a few. */
	assert_true(same > 500);
	assert_true(reasons[NEURON_MEM_REASON_FULL] > 50);
	assert_true(reasons[NEURON_MEM_REASON_FRAGMENTED] > 50);
	assert_true(reasons[NEURON_MEM_REASON_ALIGNMENT] > 50);
}

/* The driver does other things while the ranges are read: they are taken back. */
static void test_meanwhile(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 20; round++) {
		struct snapshot s;
		uint64_t used = 0, owned = 0;

		seed = round;
		for (unsigned int i = 0; i < 1000; i++)
			step();
		drv.busy_ranges = 3;
		snapshot(&s);
		drv.busy_ranges = 0;
		assert_true(drv.seq > s.list[0].seq);
		for (size_t i = 0; i < s.list[0].ranges.count; i++) {
			const struct neuron_range *r = &s.list[0].ranges.range[i];

			if (r->state % 2)
				used += r->bytes;
			if (r->state != NEURON_RANGE_OWNED)
				continue;
			/* One that was freed meanwhile is its owner's again. */
			assert_true(r->pid == 42 && r->owner == 5);
			owned++;
		}
		assert_true(used == s.list[0].stats.used && owned);
		assert_int_equal(replayed(&s, 0).different, 0);
		snapshot_free(&s);
		teardown(NULL);
		setup(NULL);
	}
}

/* Figures that change at each look are never of one instant: that is said. */
static void test_too_busy(void **state)
{
	struct snapshot s;
	char *json;

	(void)state;
	for (unsigned int i = 0; i < 1000; i++)
		step();
	drv.busy_figures = 3;
	assert_int_equal(neuron_mem_snapshot(NULL, 0, &json), 0);
	assert_int_equal(snapshot_parse(json, strlen(json), &s), 0);
	free(json);
	assert_false(s.list[0].consistent);
	replayed(&s, -EINVAL);
	snapshot_free(&s);
}

/* A recorded refusal that the allocator would not give is found. */
static void test_differs(void **state)
{
	struct snapshot s;
	struct neuron_event *e = NULL;

	(void)state;
	take(40 << 20, 0, 0);
	take(30 << 20, 0, 0);
	take(1 << 20, 0, 0);
	snapshot(&s);
	e = &s.list[0].event[1];
	assert_int_equal(e->kind, NEURON_EVENT_REFUSE);
	assert_int_equal(replayed(&s, 0).same, 1);
	e->free -= 4096;
	assert_int_equal(replayed(&s, 0).different, 1);
	e->free += 4096;
	e->reason = NEURON_MEM_REASON_FRAGMENTED;
	assert_int_equal(replayed(&s, 0).different, 1);
	e->bytes = 4 << 20;
	assert_int_equal(replayed(&s, 0).different, 1);
	e->reason = NEURON_MEM_REASON_CAPPED;
	assert_int_equal(replayed(&s, 0).limits, 1);
	e->client = 0;
	assert_int_equal(replayed(&s, 0).unknown, 1);
	/* Events that do not fit what is there. */
	s.list[0].event[0].address += 4096;
	replayed(&s, -EINVAL);
	snapshot_free(&s);
}

static void test_nonsense(void **state)
{
	static const char *const texts[] = {
		"", "{}", "[1]", "{\"kind\": \"memory snapshot\", \"schema_version\": 2}",
		"{\"kind\": \"memory snapshot\", \"schema_version\": 1, \"hbms\": [{}]}",
		"{\"kind\": \"memory snapshot\", \"schema_version\": 1, \"hbms\": [{\"total\": 8192,"
		" \"ranges\": [{\"address\": 0, \"bytes\": 4096}]}]}",
		"{\"kind\": \"memory snapshot\", \"schema_version\": 1, \"hbms\": [{\"total\": 8192,"
		" \"ranges\": [{\"address\": 0, \"bytes\": 4096}, {\"address\": 8192, \"bytes\": 4096}]}]}",
	};
	struct snapshot s;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(snapshot_parse(texts[i], strlen(texts[i]), &s), -EINVAL);
}

/* A file for each of the first refusals, for nobody else's eyes. */
static void test_dump(void **state)
{
	const struct neuron_mem_failure full = { .reason = NEURON_MEM_REASON_FULL, .bytes = 4096 };
	const struct neuron_mem_failure host = { .reason = NEURON_MEM_REASON_HOST };
	char dir[] = "/tmp/neuron-dump-XXXXXX", pattern[64];
	struct snapshot s;
	struct stat st;
	size_t size;
	glob_t found;
	char *text;

	(void)state;
	take(40 << 20, 0, 0);
	take(30 << 20, 0, 0);
	unsetenv("NEURON_MEMORY_DUMP");
	mem_dump(NULL, &full);
	assert_non_null(mkdtemp(dir));
	snprintf(pattern, sizeof(pattern), "%s/neuron-memory-*.json", dir);
	setenv("NEURON_MEMORY_DUMP", dir, 1);
	mem_dump(NULL, &host);
	assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
	for (int i = 0; i < 20; i++)
		mem_dump(NULL, &full);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 8);
	assert_int_equal(stat(found.gl_pathv[0], &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	text = read_whole(found.gl_pathv[0], &size, 1);
	assert_non_null(strstr(text, "\"fits_without\":\"7: 4096\""));
	assert_int_equal(snapshot_parse(text, size, &s), 0);
	assert_int_equal(replayed(&s, 0).same, 1);
	snapshot_free(&s);
	free(text);
	for (size_t i = 0; i < found.gl_pathc; i++)
		unlink(found.gl_pathv[i]);
	globfree(&found);
	assert_int_equal(rmdir(dir), 0);
	unsetenv("NEURON_MEMORY_DUMP");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_histories), TEST(test_meanwhile), TEST(test_too_busy),
		TEST(test_differs), TEST(test_nonsense), TEST(test_dump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only
/* Records of refusals without the rest of neuron.ko: what they say, who sees and holds them. */
#include <kunit/test.h>
#include <linux/capability.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../../kmod/base/client.h"
#include "../../kmod/base/device.h"

#define NR	7u	/* processes */
#define SHOWN	64u	/* room for a caller */

static struct {
	struct neuron_device nd;
	struct neuron_client client[NR];
	int refs[NR];			/* of the processes; struct pid is not looked into */
	int allocs;			/* objects that are not freed */
	bool nomem, admin, fault, late;
	u32 caller;
	u32 lines;			/* in the kernel log */
	char line[640];
	struct neuron_native_failure shown[SHOWN];
} state;

static struct pid *failure_pid(u32 i)
{
	return (struct pid *)&state.refs[i];
}

static int failure_nr(struct pid *pid)
{
	return pid ? 100 + ((int *)pid - state.refs) : 0;
}

static struct pid *failure_get_pid(struct pid *pid)
{
	if (pid)
		++*(int *)pid;
	return pid;
}

static void failure_put_pid(struct pid *pid)
{
	if (pid)
		--*(int *)pid;
}

static void *failure_alloc(size_t size, gfp_t gfp)
{
	void *p = state.nomem ? NULL : kzalloc(size, gfp);

	state.allocs += !!p;
	return p;
}

static void failure_free(const void *p)
{
	state.allocs -= !!p;
	kfree(p);
}

static unsigned long failure_copy(void *to, const void *from, unsigned long n);

#undef kzalloc
#undef kmalloc
#undef dev_warn
#define kzalloc				failure_alloc
#define kmalloc				failure_alloc
#define kfree				failure_free
#define get_pid				failure_get_pid
#define put_pid				failure_put_pid
#define pid_nr				failure_nr
#define pid_vnr				failure_nr
#define capable(cap)			((void)(cap), state.admin)
#define task_tgid(task)			((void)(task), failure_pid(state.caller))
#define copy_to_user(to, from, n)	failure_copy((void __force *)(to), from, n)
#define dev_warn(dev, format...)						\
	((void)(dev), state.lines++, (void)snprintf(state.line, sizeof(state.line), format))

#include "../../kmod/mem/failure.c"

/* Process i is refused @bytes of HBM 1, or of host memory. */
static void refuse(u32 i, u64 bytes, bool host)
{
	struct neuron_chunk_request req = {
		.size = bytes, .host = host, .hbm = 1, .core = 3, .align = 64,
		.category = host ? NEURON_MEMALLOC_TYPE_TENSORS_HOST :
				   NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	struct neuron_failure why = {
		.reason = host ? NEURON_NATIVE_REASON_HOST : NEURON_NATIVE_REASON_FULL,
		.limit = NEURON_NO_LIMIT,
	};

	neuron_failure_record(&state.client[i], &req, &why);
}

static unsigned long failure_copy(void *to, const void *from, unsigned long n)
{
	/* Another process is refused memory while a caller reads. */
	if (state.late)
		refuse(1, 1, false);
	if (state.fault)
		return n;
	memcpy(to, from, n);
	return 0;
}

static struct neuron_native_failures ask(u64 since, u32 room)
{
	return (struct neuron_native_failures){
		.count = room, .since = since, .entries = (uintptr_t)state.shown,
		.entry_size = sizeof(state.shown[0]),
	};
}

static int call(struct neuron_native_failures *a)
{
	struct neuron_call call = { .nd = &state.nd, .arg = a };

	memset(state.shown, 0xee, sizeof(state.shown));
	return neuron_do_native_failures(&call);
}

/* Expect the refusals @first up to @first + @n, and where the next call begins. */
static void expect(struct kunit *test, u64 since, u32 room, u64 first, u32 n, u64 last)
{
	struct neuron_native_failures a = ask(since, room);
	u32 i;

	KUNIT_EXPECT_EQ(test, call(&a), 0);
	KUNIT_EXPECT_EQ(test, a.count, n);
	KUNIT_EXPECT_EQ(test, a.last, last);
	for (i = 0; i < min(n, SHOWN); i++)
		KUNIT_EXPECT_EQ(test, state.shown[i].seq, first + i);
}

static int failure_init(struct kunit *test)
{
	u32 i;

	memset(&state, 0, sizeof(state));
	mutex_init(&state.nd.clients_lock);
	spin_lock_init(&state.nd.failures_lock);
	INIT_LIST_HEAD(&state.nd.clients);
	for (i = 0; i < NR; i++) {
		state.client[i].nd = &state.nd;
		state.client[i].pid = failure_pid(i);
		list_add_tail(&state.client[i].node, &state.nd.clients);
	}
	state.admin = true;
	return neuron_failures_init(&state.nd);
}

static void failure_exit(struct kunit *test)
{
	u32 i;

	for (i = 0; i < NR; i++)
		neuron_failures_exit(state.client[i].failures);
	neuron_failures_exit(state.nd.failures);
	neuron_failures_exit(NULL);
	for (i = 0; i < NR; i++)
		KUNIT_EXPECT_EQ(test, state.refs[i], 0);
	KUNIT_EXPECT_EQ(test, state.allocs, 0);
}

/* What was asked for and what there was, each in its field. */
static void failure_fields(struct kunit *test)
{
	struct neuron_chunk_request req = {
		.size = 5000, .align = 64, .hbm = 1, .core = 3,
		.category = NEURON_MEMALLOC_TYPE_CODE_DEVICE,
	};
	struct neuron_failure why = {
		.reason = NEURON_NATIVE_REASON_CAPPED, .total = 9000, .free = 4000,
		.largest_free = 3000, .largest_aligned = 2000, .limit = 8000,
	};
	struct neuron_native_failure want = {
		.size = sizeof(want), .seq = 1, .pid = 102, .reason = why.reason, .hbm = 1,
		.nc_id = 3, .mem_type = req.category, .bytes = 5000, .align = 64, .total = 9000,
		.free = 4000, .largest_free = 3000, .largest_aligned = 2000, .limit = 8000,
	};
	struct neuron_native_failure *got = &state.shown[0];
	u64 before = ktime_get_real_ns();

	neuron_failure_record(&state.client[2], &req, &why);
	expect(test, 0, 1, 1, 1, 1);
	KUNIT_EXPECT_GE(test, got->time, before);
	KUNIT_EXPECT_LE(test, got->time, ktime_get_real_ns());
	want.time = got->time;
	KUNIT_EXPECT_EQ(test, memcmp(got, &want, sizeof(want)), 0);

	/* Host memory is of no HBM; a category of the other kind is not charged. */
	req.host = true;
	neuron_failure_record(&state.client[2], &req, &why);
	expect(test, 1, 1, 2, 1, 2);
	want.seq = 2;
	want.time = got->time;
	want.flags = NEURON_NATIVE_ALLOC_HOST;
	want.hbm = 0;
	want.mem_type = NEURON_MEMALLOC_TYPE_UNKNOWN_HOST;
	KUNIT_EXPECT_EQ(test, memcmp(got, &want, sizeof(want)), 0);
}

/* The three that hold most, largest first; among equals the one that is found first. */
static void failure_top(struct kunit *test)
{
	static const u64 held[2][NR] = { { 5, 70, 0, 30, 90, 70, 20 }, { 0, 0, 8, 0, 0, 9, 0 } };
	static const u64 used[NEURON_NR_CATEGORIES] = {
		[1] = 10, [4] = 300, [5] = 200, [6] = 300, [9] = 250,
		[NEURON_NR_CATEGORIES - 1] = 260,
	};
	static const struct {
		u32 pid[3];
		u64 bytes[3];
	} rows[2] = { { { 104, 101, 105 }, { 90, 70, 70 } }, { { 105, 102, 0 }, { 9, 8, 0 } } };
	static const u32 types[3] = { 4, 6, NEURON_NR_CATEGORIES - 1 };
	struct neuron_failure why = { .limit = NEURON_NO_LIMIT };
	u32 host, i;

	memcpy(why.used, used, sizeof(used));
	for (i = 0; i < NR; i++) {
		state.client[i].hbm_bytes[1] = held[0][i];
		state.client[i].hbm_bytes[0] = 1000 * i;
		atomic64_set(&state.client[i].host_bytes, held[1][i]);
	}
	for (host = 0; host < 2; host++) {
		struct neuron_chunk_request req = { .hbm = 1, .host = host };
		struct neuron_native_failure *got = &state.shown[0];

		neuron_failure_record(&state.client[0], &req, &why);
		expect(test, host, 1, host + 1, 1, host + 1);
		for (i = 0; i < 3; i++) {
			KUNIT_EXPECT_EQ(test, got->category[i].mem_type, types[i]);
			KUNIT_EXPECT_EQ(test, got->category[i].bytes, used[types[i]]);
			KUNIT_EXPECT_EQ(test, (u32)got->process[i].pid, rows[host].pid[i]);
			KUNIT_EXPECT_EQ(test, got->process[i].bytes, rows[host].bytes[i]);
		}
	}
	/* The caller of both, and a place among those that hold most. */
	KUNIT_EXPECT_EQ(test, state.refs[0], 2);
	KUNIT_EXPECT_EQ(test, state.refs[5], 2);
	KUNIT_EXPECT_EQ(test, state.refs[6], 0);
}

#define DEVICE_LINE	"neuron:mc_alloc: device mempool [1:0] total 9000 occupied 5000 "	\
			"needed 500 available 4000 align 64 largest 3000 largest aligned 2000 "
#define HOST_LINE	"neuron:mc_alloc: host memory: needed 500 "

static void failure_log(struct kunit *test)
{
	static const struct {
		u64 limit;
		enum neuron_native_reason reason;
		bool host;
		const char *line;
	} rows[] = {
		{ NEURON_NO_LIMIT, NEURON_NATIVE_REASON_FULL, false, DEVICE_LINE
		  "cap none for nc 3 category tensors pid 102: full; "
		  "categories: model_code 80, tensors 7; processes: 101 70, 100 5\n" },
		{ 8000, NEURON_NATIVE_REASON_CAPPED, false, DEVICE_LINE
		  "cap 8000 for nc 3 category tensors pid 102: capped; "
		  "categories: model_code 80, tensors 7; processes: 101 70, 100 5\n" },
		{ NEURON_NO_LIMIT, NEURON_NATIVE_REASON_CAPPED, false, DEVICE_LINE
		  "cap cgroup for nc 3 category tensors pid 102: capped; "
		  "categories: model_code 80, tensors 7; processes: 101 70, 100 5\n" },
		{ NEURON_NO_LIMIT, NEURON_NATIVE_REASON_HOST, false, HOST_LINE
		  "cap none for nc 3 category tensors pid 102: no host memory; "
		  "processes: 101 70, 100 5\n" },
		{ 8000, NEURON_NATIVE_REASON_CAPPED, true, HOST_LINE
		  "cap 8000 for nc 3 category uncategorized pid 102: capped; "
		  "processes: 106 60\n" },
	};
	struct neuron_failure why = {
		.total = 9000, .free = 4000, .largest_free = 3000, .largest_aligned = 2000,
		.used = { [NEURON_MEMALLOC_TYPE_CODE_DEVICE] = 80,
			  [NEURON_MEMALLOC_TYPE_TENSORS_DEVICE] = 7 },
	};
	u32 i;

	state.client[0].hbm_bytes[1] = 5;
	state.client[1].hbm_bytes[1] = 70;
	atomic64_set(&state.client[6].host_bytes, 60);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct neuron_chunk_request req = {
			.size = 500, .align = 64, .hbm = 1, .core = 3, .host = rows[i].host,
			.category = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
		};

		why.reason = rows[i].reason;
		why.limit = rows[i].limit;
		neuron_failure_record(&state.client[2], &req, &why);
		KUNIT_EXPECT_EQ(test, state.lines, i + 1);
		KUNIT_EXPECT_STREQ(test, state.line, rows[i].line);
	}
}

/* A process that is refused all the time leaves the log to the others; its record goes on. */
static void failure_log_share(struct kunit *test)
{
	u32 i;

	for (i = 0; i < DEFAULT_RATELIMIT_BURST + 2; i++)
		refuse(0, 1, false);
	KUNIT_EXPECT_EQ(test, state.lines, (u32)DEFAULT_RATELIMIT_BURST);
	refuse(1, 1, false);
	KUNIT_EXPECT_EQ(test, state.lines, DEFAULT_RATELIMIT_BURST + 1u);
	expect(test, 0, SHOWN, 1, DEFAULT_RATELIMIT_BURST + 3, DEFAULT_RATELIMIT_BURST + 3);
}

/* A record is of the last 16 of a process; a caller has as many as it has room for. */
static void failure_last(struct kunit *test)
{
	static const struct {
		u64 since;
		u32 room;
		u64 first;
		u32 n;
		u64 last;
	} one[] = {
		{ 0, SHOWN, 5, 16, 20 }, { 0, 16, 5, 16, 20 }, { 0, 3, 5, 3, 7 },
		{ 0, 0, 0, 0, 0 }, { 1, SHOWN, 5, 16, 20 }, { 7, 3, 8, 3, 10 },
		{ 19, 2, 20, 1, 20 }, { 20, 2, 0, 0, 20 }, { 99, 2, 0, 0, 99 },
	}, three[] = {
		{ 0, SHOWN, 5, 48, 52 }, { 0, 48, 5, 48, 52 }, { 0, 47, 6, 47, 52 },
		{ 0, 20, 33, 20, 52 }, { 0, 3, 37, 3, 39 }, { 30, SHOWN, 31, 22, 52 },
	};
	u32 i;

	for (i = 0; i < 20; i++)
		refuse(3, 1 + i, false);
	KUNIT_EXPECT_EQ(test, state.refs[3], 16);
	for (i = 0; i < ARRAY_SIZE(one); i++)
		expect(test, one[i].since, one[i].room, one[i].first, one[i].n, one[i].last);
	for (i = 0; i < 32; i++)
		refuse(i % 2, 1, false);
	for (i = 0; i < ARRAY_SIZE(three); i++)
		expect(test, three[i].since, three[i].room, three[i].first, three[i].n,
		       three[i].last);
	KUNIT_EXPECT_EQ(test, state.refs[0], 16);
	KUNIT_EXPECT_EQ(test, state.refs[1], 16);
}

static void failure_own(struct kunit *test)
{
	struct neuron_native_failures a = ask(0, SHOWN);
	u32 i;

	for (i = 0; i < 6; i++)
		refuse(i % 3, 1, i % 2);
	state.admin = false;
	state.caller = 2;
	KUNIT_EXPECT_EQ(test, call(&a), 0);
	KUNIT_EXPECT_EQ(test, a.count, 2u);
	KUNIT_EXPECT_EQ(test, a.last, 6ULL);
	KUNIT_EXPECT_EQ(test, state.shown[0].seq, 3ULL);
	KUNIT_EXPECT_EQ(test, state.shown[1].seq, 6ULL);
	state.caller = 5;
	expect(test, 0, SHOWN, 0, 0, 6);
}

/* New refusals are left to the next call, which could go on for ever otherwise. */
static void failure_meanwhile(struct kunit *test)
{
	refuse(0, 1, false);
	refuse(0, 1, false);
	state.late = true;
	expect(test, 0, SHOWN, 1, 2, 2);
	state.late = false;
	expect(test, 2, SHOWN, 3, 2, 4);
}

/* Of a process that has gone the device keeps the last four, and 16 in all. */
static void failure_buried(struct kunit *test)
{
	u32 i, k;

	neuron_failures_bury(&state.client[6]);
	for (i = 0; i < 5; i++) {
		for (k = 0; k < 6; k++)
			refuse(i, 1, false);
		neuron_failures_bury(&state.client[i]);
		KUNIT_EXPECT_NULL(test, state.client[i].failures);
		KUNIT_EXPECT_EQ(test, state.refs[i], 4);
		KUNIT_EXPECT_EQ(test, state.allocs, 1);
	}
	KUNIT_EXPECT_EQ(test, state.refs[0], 0);
	for (i = 1; i < 5; i++) {
		KUNIT_EXPECT_EQ(test, state.refs[i], 4);
		expect(test, i * 6, 4, i * 6 + 3, 4, i * 6 + 6);
	}
	KUNIT_EXPECT_EQ(test, state.shown[0].pid, 104);
	/* One refusal of its own pushes out one of the oldest process. */
	refuse(5, 1, false);
	neuron_failures_bury(&state.client[5]);
	KUNIT_EXPECT_EQ(test, state.refs[1], 3);
	expect(test, 7, 3, 10, 3, 12);
}

/* Without memory for its own, a process has a part of the device's record. */
static void failure_no_memory(struct kunit *test)
{
	struct neuron_native_failures a = ask(0, SHOWN);
	static struct neuron_device nd;

	state.nomem = true;
	KUNIT_EXPECT_EQ(test, neuron_failures_init(&nd), -ENOMEM);
	refuse(0, 1, false);
	KUNIT_EXPECT_NULL(test, state.client[0].failures);
	KUNIT_EXPECT_EQ(test, call(&a), -ENOMEM);
	state.nomem = false;
	expect(test, 0, SHOWN, 1, 1, 1);
	refuse(0, 1, false);
	KUNIT_EXPECT_NOT_NULL(test, state.client[0].failures);
	KUNIT_EXPECT_EQ(test, state.allocs, 2);
	expect(test, 0, SHOWN, 1, 2, 2);
}

static void failure_arguments(struct kunit *test)
{
	struct neuron_native_failures bad[] = { ask(0, 1), ask(0, 1), ask(0, 1), ask(0, 1) };
	u32 i;

	refuse(0, 1, false);
	bad[0].__reserved = 1;
	bad[1].last = 1;
	bad[2].entry_size--;
	bad[3].entry_size++;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ(test, call(&bad[i]), -EINVAL);
	refuse(0, 1, false);
	state.fault = true;
	bad[0] = ask(0, SHOWN);
	KUNIT_EXPECT_EQ(test, call(&bad[0]), -EFAULT);
	/* It ended with the first one. */
	KUNIT_EXPECT_EQ(test, bad[0].count, 1u);
	KUNIT_EXPECT_EQ(test, state.refs[0], 2);
}

static struct kunit_case failure_cases[] = {
	KUNIT_CASE(failure_fields),
	KUNIT_CASE(failure_top),
	KUNIT_CASE(failure_log),
	KUNIT_CASE(failure_log_share),
	KUNIT_CASE(failure_last),
	KUNIT_CASE(failure_own),
	KUNIT_CASE(failure_meanwhile),
	KUNIT_CASE(failure_buried),
	KUNIT_CASE(failure_no_memory),
	KUNIT_CASE(failure_arguments),
	{}
};

static struct kunit_suite failure_suite = {
	.name = "neuron_failures",
	.init = failure_init,
	.exit = failure_exit,
	.test_cases = failure_cases,
};

kunit_test_suite(failure_suite);

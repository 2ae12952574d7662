// SPDX-License-Identifier: GPL-2.0-only
/* Profiles: what is in the file, what the buffers take, and every call that can fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_driver.h"
#include "test_neffs.h"
#include "trace_check.h"

#define KIB 1024ull
#define SP (2 + NEURON_ISA_ENGINE_SP)		/* threads of a core in the file */

/* make_list_neff(): prologue, four transfers with their waits, an event, the end. */
#define LIST_INSTS 11u
#define LIST_BYTES (1024u + 1024 + 1024 + 256 + 1024)
#define LIST_WORDS (5u * 4)			/* for four semaphores and an event */
#define LIST_FETCH (LIST_INSTS * 64)

/* Small buffers, so that a test takes no time: what they are for each core. */
#define SMALL_MEMORY ((6 + FAKE_ENGINES + 3) * 64 * KIB)

static const struct neuron_profile_opts small = {
	.size = sizeof(small),
	.bytes = { 64 * KIB, 64 * KIB, 64 * KIB, 64 * KIB, 64 * KIB },
};

struct fixture {
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_model *model;
	struct neuron_mem *x, *y;
	uint8_t bytes[1024];
};

static int setup_cores(void **state, uint32_t lnc)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };
	struct neuron_core_opts core = { .size = sizeof(core), .lnc = lnc };
	struct fixture *f = calloc(1, sizeof(*f));
	struct neff_bytes n = make_list_neff();

	fake.nr_devices = 1;
	fake.arch = 3;
	*state = f;
	assert_int_equal(neuron_device_open(0, &f->device), 0);
	assert_int_equal(neuron_core_open(f->device, 2, &core, &f->core), 0);
	assert_int_equal(neuron_model_load(f->core, n.data, n.size, NULL, &f->model), 0);
	free(n.data);
	assert_int_equal(neuron_mem_alloc(f->device, 1024, &opts, &f->x), 0);
	assert_int_equal(neuron_mem_alloc(f->device, 1024, &opts, &f->y), 0);
	for (size_t i = 0; i < sizeof(f->bytes); i++)
		f->bytes[i] = (uint8_t)(i * 7);
	assert_int_equal(neuron_mem_write(f->x, 0, f->bytes, 1024), 0);
	return 0;
}

static int setup(void **state)
{
	return setup_cores(state, 1);
}

static int setup_pair(void **state)
{
	return setup_cores(state, 2);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fake.fail_at = 0;
	neuron_mem_free(f->x);
	neuron_mem_free(f->y);
	neuron_model_unload(f->model);
	neuron_core_close(f->core);
	neuron_device_close(f->device);
	free(f);
	return fake_used() || fake.mapped;
}

static int run_only(struct fixture *f, struct neuron_model *m)
{
	const struct neuron_io io[] = { { "x", f->x, 0, 1024 }, { "y", f->y, 0, 1024 } };

	return neuron_model_run(m, io, 2, 1000, NULL);
}

static int run(struct fixture *f, struct neuron_model *m)
{
	uint8_t got[1024], want[1024];
	int ret = run_only(f, m);

	if (ret)
		return ret;
	list_expected(f->bytes, want);
	assert_int_equal(neuron_mem_read(f->y, 0, got, 1024), 0);
	assert_memory_equal(got, want, 1024);
	return 0;
}

/* The file as a text. */
static char *file_of(struct neuron_profile *p)
{
	FILE *f = tmpfile();
	char *text;
	long size;

	assert_non_null(f);
	assert_int_equal(neuron_profile_write(p, fileno(f)), 0);
	size = lseek(fileno(f), 0, SEEK_END);
	text = calloc(1, (size_t)size + 1);
	assert_int_equal(pread(fileno(f), text, (size_t)size, 0), size);
	fclose(f);
	return text;
}

static struct trace_sum *check_file(struct neuron_profile *p)
{
	char *text = file_of(p);
	struct trace_sum *s;

	if (!trace_check(text, &s))
		fail_msg("%s", text);
	free(text);
	return s;
}

static struct neuron_profile_stats stats_of(struct neuron_profile *p)
{
	struct neuron_profile_stats s = { .size = sizeof(s) };

	assert_int_equal(neuron_profile_get_stats(p, &s), 0);
	return s;
}

static uint64_t profiler_bytes(void)
{
	return fake.dev[0].by_category[NEURON_MEM_NOTIFICATION];
}

static void test_file(void **state)
{
	struct fixture *f = *state;
	struct neuron_profile_stats st;
	struct neuron_profile *p;
	struct trace_sum *s;
	uint64_t used = fake_used();
	char *text;

	assert_int_equal(run(f, f->model), 0);
	assert_int_equal(neuron_profile_start(f->core, &small, &p), 0);
	assert_int_equal(profiler_bytes(), SMALL_MEMORY);
	assert_int_equal(stats_of(p).memory, SMALL_MEMORY);
	assert_int_equal(fake_used(), used + SMALL_MEMORY);
	for (int i = 0; i < 3; i++)
		assert_int_equal(run(f, f->model), 0);
	assert_int_equal(neuron_profile_stop(p), 0);
	assert_int_equal(neuron_profile_stop(p), -EALREADY);
	assert_int_equal(fake_used(), used);
	/* After the end nothing is recorded any more. */
	assert_int_equal(run(f, f->model), 0);
	s = check_file(p);
	assert_int_equal(s->runs, 3);
	assert_int_equal(s->instructions, 3 * LIST_INSTS);
	assert_true(trace_once(s, 0, 3, SP, LIST_INSTS));
	assert_int_equal(s->fetched, 3 * LIST_FETCH);
	assert_int_equal(s->bytes, 3 * (LIST_BYTES + LIST_WORDS + LIST_FETCH));
	/* Up and down again, for each transfer. */
	assert_int_equal(s->semaphores, 3 * 8);
	assert_int_equal(s->lost, 0);
	assert_int_equal(s->unfinished, 0);
	st = stats_of(p);
	assert_int_equal(st.runs, s->runs);
	assert_int_equal(st.instructions, s->instructions);
	assert_int_equal(st.packets, s->packets);
	assert_int_equal(st.bytes, s->bytes);
	assert_int_equal(st.semaphores, s->semaphores);
	assert_int_equal(st.memory, 0);
	free(s);
	/* Names of the NEFF, and of what there is. */
	text = file_of(p);
	for (size_t i = 0; i < 9; i++) {
		static const char *const names[] = {
			"\"ND 0 NC 2\"", "\"SP\"", "\"DMA engine 5 queue 0\"", "\"qIn 4\"",
			"\"DMA_TRIGGER qSpill 9\"", "\"qSpill 2\"", "\"fetch SP\"",
			"\"semaphore 12\"", "\"list\"",
		};

		if (!strstr(text, names[i]))
			fail_msg("no %s in %s", names[i], text);
	}
	free(text);
	neuron_profile_close(p);
}

/* The model may be gone when the file is written; another one is not in it. */
static void test_one_model(void **state)
{
	struct fixture *f = *state;
	struct neff_bytes n = make_list_neff();
	struct neuron_profile_opts opts = small;
	struct neuron_model *other;
	struct neuron_profile *p, *second;
	struct trace_sum *s;

	assert_int_equal(neuron_model_load(f->core, n.data, n.size, NULL, &other), 0);
	free(n.data);
	opts.model = other;
	assert_int_equal(neuron_profile_start(f->core, &opts, &p), 0);
	assert_int_equal(neuron_profile_start(f->core, &small, &second), -EBUSY);
	assert_int_equal(profiler_bytes(), SMALL_MEMORY);
	assert_int_equal(run(f, f->model), 0);
	assert_int_equal(run(f, other), 0);
	assert_int_equal(run(f, f->model), 0);
	assert_int_equal(run(f, other), 0);
	neuron_model_unload(other);
	assert_int_equal(neuron_profile_stop(p), 0);
	s = check_file(p);
	assert_int_equal(s->runs, 2);
	assert_int_equal(s->instructions, 2 * LIST_INSTS);
	assert_true(trace_once(s, 1, 1, SP, LIST_INSTS));
	assert_true(trace_once(s, 2, 1, SP, 0));
	assert_true(trace_once(s, 3, 1, SP, LIST_INSTS));
	assert_int_equal(s->bytes, 2 * (LIST_BYTES + LIST_WORDS + LIST_FETCH));
	assert_int_equal(s->semaphores, 2 * 8);
	free(s);
	neuron_profile_close(p);
}

/* Written while it is on; and only the last run. */
static void test_continuous(void **state)
{
	struct fixture *f = *state;
	struct neuron_profile_opts opts = small;
	struct neuron_profile *p;
	struct trace_sum *s;

	assert_int_equal(neuron_profile_start(f->core, &opts, &p), 0);
	s = check_file(p);
	assert_int_equal(s->runs + s->instructions + s->packets, 0);
	free(s);
	for (unsigned int i = 1; i < 4; i++) {
		assert_int_equal(run(f, f->model), 0);
		s = check_file(p);
		assert_int_equal(s->runs, i);
		assert_true(trace_once(s, 0, i, SP, LIST_INSTS));
		free(s);
		assert_int_equal(profiler_bytes(), SMALL_MEMORY);
	}
	neuron_profile_close(p);
	assert_int_equal(profiler_bytes(), 0);

	opts.last_only = 1;
	assert_int_equal(neuron_profile_start(f->core, &opts, &p), 0);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(run(f, f->model), 0);
	for (unsigned int i = 0; i < 2; i++) {
		s = check_file(p);
		assert_int_equal(s->runs, 1);
		assert_int_equal(s->instructions, LIST_INSTS);
		assert_true(trace_once(s, 4, 1, SP, LIST_INSTS));
		free(s);
	}
	assert_int_equal(run(f, f->model), 0);
	s = check_file(p);
	assert_int_equal(s->runs, 1);
	assert_true(trace_once(s, 5, 1, SP, LIST_INSTS));
	free(s);
	neuron_profile_close(p);
}

/* Buffers that are too small lose the end, and say how much. */
static void test_lost(void **state)
{
	struct fixture *f = *state;
	struct neuron_profile_opts opts = small;
	struct neuron_profile *p;
	struct trace_sum *s;
	const unsigned int runs = 20;

	opts.bytes[NEURON_PROFILE_EVENT] = 4096;
	assert_int_equal(neuron_profile_start(f->core, &opts, &p), 0);
	for (unsigned int i = 0; i < runs; i++)
		assert_int_equal(run(f, f->model), 0);
	assert_int_equal(neuron_profile_stop(p), 0);
	s = check_file(p);
	/* 255 entries: 127 instructions and the begin of one more */
	assert_int_equal(s->instructions, 128);
	assert_int_equal(s->unfinished, 1);
	assert_int_equal(s->lost, runs * LIST_INSTS * 2 - 255);
	assert_int_equal(s->packets / runs, stats_of(p).packets / runs);
	assert_int_equal(s->bytes, runs * (LIST_BYTES + LIST_WORDS + LIST_FETCH));
	free(s);
	neuron_profile_close(p);
}

/* A run that fails: the reset behind it keeps what there is, and the next goes on. */
static void test_failed_run(void **state)
{
	struct fixture *f = *state;
	struct neuron_profile *p;
	struct trace_sum *s;
	char *text;

	assert_int_equal(neuron_profile_start(f->core, &small, &p), 0);
	assert_int_equal(run(f, f->model), 0);
	fake.dma_error = NEURON_ISA_ERR_ABORT;
	assert_int_equal(run(f, f->model), -EIO);
	assert_int_equal(run(f, f->model), 0);
	assert_int_equal(neuron_profile_stop(p), 0);
	s = check_file(p);
	assert_int_equal(s->runs, 3);
	assert_true(trace_once(s, 0, 1, SP, LIST_INSTS));
	assert_true(trace_once(s, 2, 1, SP, LIST_INSTS));
	free(s);
	text = file_of(p);
	assert_non_null(strstr(text, "\"result\":-5"));
	free(text);
	neuron_profile_close(p);
}

/* Both cores of a logical one. */
static void test_pair(void **state)
{
	struct fixture *f = *state;
	struct neuron_profile *p;
	struct trace_sum *s;
	char *text;

	assert_int_equal(neuron_profile_start(f->core, &small, &p), 0);
	assert_int_equal(profiler_bytes(), 2 * SMALL_MEMORY);
	assert_int_equal(run(f, f->model), 0);
	assert_int_equal(neuron_profile_stop(p), 0);
	assert_int_equal(profiler_bytes(), 0);
	s = check_file(p);
	assert_int_equal(s->instructions, LIST_INSTS);
	free(s);
	text = file_of(p);
	assert_non_null(strstr(text, "\"ND 0 NC 3\""));
	free(text);
	neuron_profile_close(p);
}

static void test_sizes(void **state)
{
	struct fixture *f = *state;
	const struct neuron_geometry *g = neuron_device_geometry(f->device);
	struct neuron_profile_opts opts = { .size = sizeof(opts) };
	struct neuron_plan_opts plan = { .size = sizeof(plan), .lnc = 2 };
	struct neuron_report_core core = { .nc = 0 };
	struct neuron_report r = { .size = sizeof(r), .cores = &core, .nr_cores = 1 };
	uint64_t row[NEURON_REPORT_NR_COLUMNS];
	struct neuron_profile *p;

	/* About 2 GB in all; more where a core has more DMA engines. */
	assert_int_equal(neuron_profile_memory(g, NULL), (6 * 128 + 16 * 64 + 3 * 64) * KIB * KIB);
	assert_int_equal(neuron_profile_memory(g, &small), SMALL_MEMORY);
	opts.bytes[NEURON_PROFILE_DMA] = 512 * KIB * KIB;
	assert_int_equal(neuron_profile_memory(g, &opts),
			 (6 * 128 + 16 * 512 + 3 * 64) * KIB * KIB);
	for (size_t i = 0; i < 4; i++) {
		static const uint64_t bad[] = { 2048, 4097, 3 * 4096, 1ull << 31 };

		opts.bytes[NEURON_PROFILE_DMA] = bad[i];
		assert_int_equal(neuron_profile_memory(g, &opts), 0);
		assert_int_equal(neuron_profile_start(f->core, &opts, &p), -EINVAL);
	}
	assert_int_equal(neuron_profile_start(f->core, &small, NULL), -EINVAL);
	opts = small;
	opts.model = f->model;
	opts.size = 4;
	assert_int_equal(neuron_profile_start(f->core, &opts, &p), -EINVAL);

	/* In a plan, and in the column of the report. */
	plan.profile = SMALL_MEMORY;
	neuron_plan_sum(NULL, 0, &plan, 0, &core);
	neuron_report_row(&r, NULL, row);
	assert_int_equal(row[NEURON_REPORT_PROFILER], 2 * SMALL_MEMORY);
	assert_int_equal(row[NEURON_REPORT_TOTAL], 2 * SMALL_MEMORY);
}

static void test_no_memory(void **state)
{
	struct fixture *f = *state;
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_mem_opts opts = {
		.size = sizeof(opts), .hbm = 1, .category = NEURON_MEM_TENSORS,
	};
	struct neuron_profile_opts popts = small;
	struct neuron_mem *mem;
	struct neuron_profile *p;
	uint64_t used;

	/* Core 2 is at memory 1; leave room for three buffers. */
	assert_int_equal(neuron_mem_alloc(f->device, FAKE_HBM_SIZE - fake.dev[0].used[1] -
					  3 * 64 * KIB, &opts, &mem), 0);
	used = fake_used();
	popts.failure = &failure;
	assert_int_equal(neuron_profile_start(f->core, &popts, &p), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_FULL);
	assert_int_equal(failure.category, NEURON_MEM_NOTIFICATION);
	assert_int_equal(failure.bytes, 64 * KIB);
	assert_int_equal(failure.hbm, 1);
	assert_int_equal(fake_used(), used);
	/* The core works on. */
	assert_int_equal(run(f, f->model), 0);
	neuron_mem_free(mem);
}

/* Let each call fail in turn: start, run, write, stop. Nothing may stay allocated. */
static void test_calls_fail(void **state)
{
	struct fixture *f = *state;
	uint64_t used = fake_used();
	unsigned int n, failed = 0;
	bool clean = false;

	assert_int_equal(run(f, f->model), 0);
	for (n = 1; n < 400 && !clean; n++) {
		FILE *file = tmpfile();
		struct neuron_profile *p;
		int ret;

		fake_fail(n, 0, EIO);
		ret = neuron_profile_start(f->core, &small, &p);
		if (ret) {
			assert_int_equal(ret, -EIO);
		} else {
			ret = run_only(f, f->model);
			if (!ret)
				ret = neuron_profile_write(p, fileno(file));
			neuron_profile_stop(p);
			neuron_profile_close(p);
		}
		failed += ret != 0;
		clean = fake.fail_at > 0;
		fake.fail_at = 0;
		fclose(file);
		/* Whatever failed, a reset and a run work; it may have been the last reset. */
		assert_int_equal(neuron_core_reset(f->core), 0);
		if (fake_used() != used)
			fail_msg("call %u: %llu bytes stay", n,
				 (unsigned long long)(fake_used() - used));
		assert_int_equal(run(f, f->model), 0);
	}
	assert_true(clean);
	assert_true(failed > 50);
}

static void test_descriptor(void **state)
{
	struct fixture *f = *state;
	struct neuron_profile_stats s = { .size = sizeof(s) };
	struct neuron_profile *p;
	int full = open("/dev/full", O_WRONLY);

	assert_int_equal(neuron_profile_start(f->core, &small, &p), 0);
	assert_int_equal(run(f, f->model), 0);
	assert_int_equal(neuron_profile_write(p, -1), -EBADF);
	assert_true(neuron_profile_write(p, full) < 0);
	s.size = 0;
	assert_int_equal(neuron_profile_get_stats(p, &s), -EINVAL);
	close(full);
	neuron_profile_close(p);
	neuron_profile_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_model, setup, teardown),
		cmocka_unit_test_setup_teardown(test_continuous, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pair, setup_pair, teardown),
		cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_calls_fail, setup, teardown),
		cmocka_unit_test_setup_teardown(test_descriptor, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

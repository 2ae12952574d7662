// SPDX-License-Identifier: GPL-2.0-only
/* Profiles: what is in the file, what the buffers take, and every call that can fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <sys/stat.h>

#include "fake_driver.h"
#include "src/run/core.h"
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

/* More kinds of buffers must not move what follows. */
_Static_assert(offsetof(struct neuron_profile_opts, model) ==
	       sizeof(size_t) + NEURON_PROFILE_MAX_KINDS * sizeof(uint64_t), "options moved");

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
	return fake_used() || fake.mapped || fake.left_bytes || fake.left_handles;
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
	/* Each transfer raises a semaphore and lowers it again. */
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

/* Only what can be printed of the model's name gets into the file. */
static void test_name(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *other;
	struct neuron_profile *p;
	struct neff_bytes n;
	char *text;

	neff_name = "a b~\x1f\x7f\xe4!";
	n = make_list_neff();
	neff_name = "list";
	assert_int_equal(neuron_model_load(f->core, n.data, n.size, NULL, &other), 0);
	free(n.data);
	assert_int_equal(neuron_profile_start(f->core, &small, &p), 0);
	assert_int_equal(run(f, other), 0);
	assert_int_equal(neuron_profile_stop(p), 0);
	text = file_of(p);
	assert_non_null(strstr(text, "\"a b~\?\?\?!\""));
	free(text);
	neuron_profile_close(p);
	neuron_model_unload(other);
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

/* The reset after a failed run keeps the entries so far, and the next run is recorded. */
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
	/* Places of kinds that are not there yet. */
	opts = small;
	opts.bytes[NEURON_PROFILE_MAX_KINDS - 1] = 4096;
	assert_int_equal(neuron_profile_memory(g, &opts), 0);
	assert_int_equal(neuron_profile_start(f->core, &opts, &p), -EINVAL);
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
	/* Of a program that was built when a plan knew nothing of profiles. */
	plan.size = offsetof(struct neuron_plan_opts, profile);
	neuron_plan_sum(NULL, 0, &plan, 0, &core);
	neuron_report_row(&r, NULL, row);
	assert_int_equal(row[NEURON_REPORT_PROFILER], 0);
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
			/* What went wrong in between is not the writer's to tell. */
			if (neuron_profile_stop(p) && !ret)
				ret = -EIO;
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

/* Whatever the reset before a run is for: only the last run stays. */
static void test_last_only(void **state)
{
	struct fixture *f = *state;
	const struct neuron_io bad[] = { { "x", f->x, 0, 1024 }, { "y", f->y, 0, 1000 } };
	struct neuron_profile_opts opts = small;
	struct neuron_profile *p;

	opts.last_only = 1;
	assert_int_equal(neuron_profile_start(f->core, &opts, &p), 0);
	/* As a model that leaves semaphores behind: each run begins with a reset. */
	f->model->dirty = true;
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(run(f, f->model), 0);
		assert_int_equal(stats_of(p).runs, 1);
	}
	f->model->dirty = false;
	assert_int_equal(run(f, f->model), 0);
	/* A refused run is not counted. */
	assert_int_equal(neuron_model_run(f->model, bad, 2, 1000, NULL), -EINVAL);
	assert_int_equal(neuron_model_run(f->model, bad, 1, 1000, NULL), -EINVAL);
	assert_int_equal(neuron_profile_stop(p), 0);
	assert_int_equal(stats_of(p).runs, 1);
	assert_int_equal(stats_of(p).instructions, LIST_INSTS);
	neuron_profile_close(p);
}

struct other_thread {
	struct fixture *f;
	struct neuron_profile *p;
	struct neuron_profile_opts opts;
	int fd, ret;
};

static void *write_thread(void *arg)
{
	struct other_thread *t = arg;

	t->ret = neuron_profile_write(t->p, t->fd);
	close(t->fd);
	return NULL;
}

static void *run_thread(void *arg)
{
	struct other_thread *t = arg;

	t->ret = run_only(t->f, t->f->model);
	return NULL;
}

/* Descriptors of a file that a program started now would get. */
static unsigned int inherited(int fd)
{
	struct stat want, is;
	unsigned int n = 0;

	assert_int_equal(fstat(fd, &want), 0);
	for (int i = 3; i < 256; i++)
		n += !fstat(i, &is) && is.st_ino == want.st_ino && is.st_dev == want.st_dev &&
		     !(fcntl(i, F_GETFD) & FD_CLOEXEC);
	return n;
}

/* The reader of the file first runs a model on the core. */
static void test_pipe(void **state)
{
	struct other_thread writer = { .f = *state }, runner = { .f = *state };
	struct fixture *f = *state;
	struct pollfd pfd = { .events = POLLIN };
	struct timespec until;
	pthread_t write_id, run_id;
	char buf[4096];
	ssize_t n, sum = 0;
	unsigned int left;
	int fds[2], late;

	assert_int_equal(neuron_profile_start(f->core, &small, &writer.p), 0);
	assert_int_equal(run(f, f->model), 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	/* Less than the file. */
	assert_true(fcntl(fds[1], F_SETPIPE_SZ, 4096) > 0);
	writer.fd = fds[1];
	assert_int_equal(pthread_create(&write_id, NULL, write_thread, &writer), 0);
	pfd.fd = fds[0];
	assert_int_equal(poll(&pfd, 1, 60000), 1);
	left = inherited(fds[0]);
	assert_int_equal(pthread_create(&run_id, NULL, run_thread, &runner), 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	late = pthread_timedjoin_np(run_id, NULL, &until);
	while ((n = read(fds[0], buf, sizeof(buf))) > 0)
		sum += n;
	if (late)
		assert_int_equal(pthread_join(run_id, NULL), 0);
	assert_int_equal(pthread_join(write_id, NULL), 0);
	close(fds[0]);
	assert_int_equal(late, 0);
	assert_int_equal(left, 0);
	assert_int_equal(writer.ret, 0);
	assert_int_equal(runner.ret, 0);
	assert_true(sum > 2 * 4096);
	assert_int_equal(neuron_profile_stop(writer.p), 0);
	assert_int_equal(stats_of(writer.p).runs, 2);
	neuron_profile_close(writer.p);
}

/* Buffers that cannot be made again: the entries so far can be written, and runs go on. */
static void test_error_passes(void **state)
{
	struct fixture *f = *state;
	struct neuron_profile *p;
	struct trace_sum *s;

	assert_int_equal(neuron_profile_start(f->core, &small, &p), 0);
	assert_int_equal(run(f, f->model), 0);
	fake_fail(1, _IOC_NR(NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2), ENOMEM);
	s = check_file(p);
	assert_int_equal(fake.fail_at, 0);
	assert_true(trace_once(s, 0, 1, SP, LIST_INSTS));
	free(s);
	assert_int_equal(stats_of(p).memory, 0);
	assert_int_equal(stats_of(p).error, -ENOMEM);
	assert_int_equal(neuron_core_reset(f->core), 0);
	assert_int_equal(stats_of(p).memory, SMALL_MEMORY);
	assert_int_equal(run(f, f->model), 0);
	assert_int_equal(neuron_profile_stop(p), -ENOMEM);
	s = check_file(p);
	assert_true(trace_once(s, 0, 2, SP, LIST_INSTS));
	free(s);
	neuron_profile_close(p);
}

/* Entries that could not be read are missing in the file, and the writer returns the error. */
static void test_L16_write_tells(void **state)
{
	struct fixture *f = *state;
	struct neuron_profile *p;
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(neuron_profile_start(f->core, &small, &p), 0);
	assert_int_equal(run(f, f->model), 0);
	fake_fail(1, _IOC_NR(NEURON_IOCTL_MEM_BUF_COPY64), EIO);
	assert_int_equal(neuron_profile_write(p, fileno(file)), -EIO);
	assert_int_equal(fake.fail_at, 0);
	assert_true(ftell(file) > 0 || lseek(fileno(file), 0, SEEK_END) > 0);
	assert_int_equal(run(f, f->model), 0);
	assert_int_equal(neuron_profile_stop(p), -EIO);
	/* The error stays. */
	assert_int_equal(neuron_profile_write(p, fileno(file)), -EIO);
	neuron_profile_close(p);
	fclose(file);
}

/* A run for which there are no buffers is not recorded. */
static void test_L16_run_without_buffers(void **state)
{
	struct fixture *f = *state;
	struct neuron_profile *p;
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(neuron_profile_start(f->core, &small, &p), 0);
	assert_int_equal(run(f, f->model), 0);
	/* The fourth buffer fails: those before it are there. */
	fake_fail(4, _IOC_NR(NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2), ENOMEM);
	assert_int_equal(neuron_profile_write(p, fileno(file)), 0);
	assert_int_equal(run(f, f->model), 0);
	assert_int_equal(neuron_profile_write(p, fileno(file)), -ENOMEM);
	neuron_profile_close(p);
	fclose(file);
}

/* Without the reset the driver keeps the buffers: it is tried again. */
static void test_L16_stop_fails(void **state)
{
	struct fixture *f = *state;
	struct neuron_profile *p;

	for (int way = 0; way < 3; way++) {
		assert_int_equal(neuron_profile_start(f->core, &small, &p), 0);
		assert_int_equal(run(f, f->model), 0);
		fake_fail(1, _IOC_NR(NEURON_IOCTL_NC_RESET), EIO);
		fake.sticky = way == 2;
		assert_int_equal(neuron_profile_stop(p), -EIO);
		assert_true(profiler_bytes() > 0);
		if (way == 0)
			assert_int_equal(run(f, f->model), 0);
		else
			neuron_profile_close(p);
		fake.fail_at = 0;
		if (way == 2) {
			assert_true(profiler_bytes() > 0);
			assert_int_equal(run(f, f->model), 0);
		}
		assert_int_equal(profiler_bytes(), 0);
		if (way == 0)
			neuron_profile_close(p);
	}
}

/* A service that never stops it. */
static void test_limits(void **state)
{
	const struct neuron_isa_notice n = { .kind = NEURON_ISA_NOTICE_SEMAPHORE };
	struct fixture *f = *state;
	struct neuron_profile_stats st;
	struct neuron_profile *p;
	struct trace_sum *s;

	assert_int_equal(neuron_profile_start(f->core, &small, &p), 0);
	for (unsigned int i = 0; i < 40; i++)
		assert_int_equal(run(f, f->model), 0);
	assert_int_equal(neuron_core_reset(f->core), 0);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(run(f, f->model), 0);
	assert_int_equal(neuron_profile_stop(p), 0);
	st = stats_of(p);
	s = check_file(p);
	/* The last place is for all the others. */
	assert_int_equal(s->runs, 31);
	assert_int_equal(s->instructions, 31 * LIST_INSTS);
	assert_true(trace_once(s, 0, 31, SP, LIST_INSTS));
	assert_int_equal(s->bytes, 31 * (LIST_BYTES + LIST_WORDS + LIST_FETCH));
	assert_int_equal(s->semaphores, 31 * 8);
	assert_int_equal(s->lost, 40 - 31 + 5);
	assert_int_equal(st.instructions, s->instructions);
	assert_int_equal(st.lost, s->lost);
	free(s);
	neuron_profile_close(p);

	assert_int_equal(neuron_profile_start(f->core, &small, &p), 0);
	assert_int_equal(run(f, f->model), 0);
	for (unsigned int i = 0; i < 3000; i++)
		fake_trace(&fake.dev[0], 2, NQ_TYPE_EVENT, 0, n);
	assert_int_equal(neuron_profile_stop(p), 0);
	st = stats_of(p);
	assert_int_equal(st.instructions, LIST_INSTS);
	assert_int_equal(st.instructions + st.packets + st.semaphores, 2048);
	assert_true(st.lost >= 3000 + LIST_INSTS + 8 - 2048);
	neuron_profile_close(p);
}

/* The process may have written to a buffer itself, with a queue of the core. */
static void test_hostile(void **state)
{
	struct neuron_isa_notice n = { .kind = NEURON_ISA_NOTICE_BEGIN, .engine = 4 };
	struct fixture *f = *state;
	struct neuron_profile *p;

	assert_int_equal(neuron_profile_start(f->core, &small, &p), 0);
	assert_int_equal(run(f, f->model), 0);
	fake_trace(&fake.dev[0], 2, NQ_TYPE_TRACE, 4, n);
	n.kind = NEURON_ISA_NOTICE_SEMAPHORE;
	for (unsigned int i = 0; i < 1500; i++)
		fake_trace(&fake.dev[0], 2, NQ_TYPE_TRACE, 4, n);
	n.kind = NEURON_ISA_NOTICE_END;
	fake_trace(&fake.dev[0], 2, NQ_TYPE_TRACE, 4, n);
	assert_int_equal(neuron_profile_stop(p), 0);
	assert_int_equal(stats_of(p).instructions, LIST_INSTS + 1);
	assert_int_equal(stats_of(p).semaphores, 1500 + 8);
	neuron_profile_close(p);
}

static void *start_thread(void *arg)
{
	struct other_thread *t = arg;

	t->ret = neuron_profile_start(t->f->core, &t->opts, &t->p);
	return NULL;
}

/* Where the caller wants to read why the start failed is not used by other calls. */
static void test_failure_is_of_start(void **state)
{
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct other_thread t = { .f = *state, .opts = small };
	struct fixture *f = *state;
	pthread_t id;
	int ret;

	/* The second part has to wait; meanwhile a reset of the first finds no memory. */
	t.opts.failure = &failure;
	turn_take(&f->core->peer->turn);
	assert_int_equal(pthread_create(&id, NULL, start_thread, &t), 0);
	for (int i = 0; i < 6000; i++) {
		turn_take(&f->core->turn);
		if (f->core->profile)
			break;
		turn_give(&f->core->turn);
		usleep(10000);
	}
	assert_non_null(f->core->profile);
	fake_fail(1, _IOC_NR(NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2), ENOMEM);
	ret = core_reset_locked(f->core);
	turn_give(&f->core->turn);
	turn_give(&f->core->peer->turn);
	assert_int_equal(pthread_join(id, NULL), 0);
	assert_int_equal(ret, 0);
	assert_int_equal(t.ret, 0);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_NONE);
	assert_int_equal(failure.bytes, 0);
	neuron_profile_close(t.p);
}

/* Buffers are memory of the core in its counter of what has none of its own. */
static void test_counted(void **state)
{
	struct fixture *f = *state;
	uint64_t before = fake_stat(0, 2, NDS_NC_COUNTER_MEM_USAGE_MISC_DEVICE);
	struct neuron_profile *p;

	assert_int_equal(neuron_profile_start(f->core, &small, &p), 0);
	assert_int_equal(fake_stat(0, 2, NDS_NC_COUNTER_MEM_USAGE_MISC_DEVICE),
			 before + SMALL_MEMORY);
	neuron_profile_close(p);
	assert_int_equal(fake_stat(0, 2, NDS_NC_COUNTER_MEM_USAGE_MISC_DEVICE), before);
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
		cmocka_unit_test_setup_teardown(test_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_model, setup, teardown),
		cmocka_unit_test_setup_teardown(test_continuous, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pair, setup_pair, teardown),
		cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_calls_fail, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last_only, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pipe, setup, teardown),
		cmocka_unit_test_setup_teardown(test_error_passes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L16_write_tells, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L16_run_without_buffers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L16_stop_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failure_is_of_start, setup_pair, teardown),
		cmocka_unit_test_setup_teardown(test_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_descriptor, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Models and memory in host memory: they come back to the same results wherever they come back
 * to, with every allocation and every call of the driver failing in turn, and nothing stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);

/* The driver's own memory is never short. */
#define malloc __real_malloc
#define calloc __real_calloc
#include "fake_driver.h"
#undef malloc
#undef calloc
#include "test_neffs.h"

#include "src/run/offload.h"

#define MIB (1ull << 20)

/* The n'th allocation from now fails; 0: none. */
static atomic_uint fail_alloc;

static bool alloc_fails(void)
{
	unsigned int n = atomic_load(&fail_alloc);

	if (!n)
		return false;
	atomic_store(&fail_alloc, n - 1);
	return n == 1;
}

void *__wrap_malloc(size_t n)
{
	return alloc_fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return alloc_fails() ? NULL : __real_calloc(n, size);
}

struct fixture {
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_mem *x, *y;
	struct neuron_io io[2];
	uint8_t in[1024];
};

static bool contiguous;

static int setup(void **state)
{
	struct neuron_core_opts opts = { .size = sizeof(opts), .contiguous = contiguous };
	struct neuron_mem_opts mem = {
		.size = sizeof(mem), .nc = 0, .category = NEURON_MEM_TENSORS,
		.flags = NEURON_MEM_F_MOVABLE,
	};
	struct fixture *f = calloc(1, sizeof(*f));

	if (neuron_device_open(0, &f->device) ||
	    neuron_core_open(f->device, 0, &opts, &f->core) ||
	    neuron_mem_alloc(f->device, 3 * MIB, &mem, &f->x) ||
	    neuron_mem_alloc(f->device, 5000, &mem, &f->y))
		return -1;
	for (size_t i = 0; i < sizeof(f->in); i++)
		f->in[i] = (uint8_t)(i * 31 + i / 256);
	neuron_mem_write(f->x, 0, f->in, sizeof(f->in));
	f->io[0] = (struct neuron_io){ "x", f->x, 0, sizeof(f->in) };
	f->io[1] = (struct neuron_io){ "y", f->y, 0, sizeof(f->in) };
	*state = f;
	return 0;
}

static int setup_contiguous(void **state)
{
	contiguous = true;
	return setup(state);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct neuron_offload_stats s = { .size = sizeof(s) };

	fail_alloc = 0;
	fake.fail_at = 0;
	fake.stuck = false;
	fake.reason = NEURON_NATIVE_REASON_NONE;
	fake.no_growing = false;
	contiguous = false;
	neuron_mem_free(f->x);
	neuron_mem_free(f->y);
	neuron_device_get_offload_stats(f->device, &s);
	neuron_core_close(f->core);
	neuron_device_close(f->device);
	free(f);
	return s.offloaded || fake_used() || fake.mapped || fake.dev[0].opens || fake.left_bytes ||
	       fake.left_handles;
}

static struct neuron_model *load(struct neuron_core *core, struct neff_bytes neff)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &error };
	struct neuron_model *m = NULL;
	int ret = neuron_model_load(core, neff.data, neff.size, &opts, &m);

	free(neff.data);
	if (ret)
		fail_msg("%d: %s", ret, error.text);
	return m;
}

/* A run of what make_list_neff() makes, with the result that it must have. */
static void run_list(struct fixture *f, struct neuron_model *m)
{
	struct neuron_run_result r = { .size = sizeof(r) };
	uint8_t want[1024], got[1024];

	list_expected(f->in, want);
	assert_int_equal(neuron_mem_set(f->y, 0, 0xee, sizeof(got)), 0);
	if (neuron_model_run(m, f->io, 2, 1000, &r))
		fail_msg("%s", r.text);
	assert_int_equal(neuron_mem_read(f->y, 0, got, sizeof(got)), 0);
	assert_memory_equal(got, want, sizeof(got));
}

static struct neuron_offload_stats stats_of(struct fixture *f)
{
	struct neuron_offload_stats s = { .size = sizeof(s) };

	assert_int_equal(neuron_device_get_offload_stats(f->device, &s), 0);
	return s;
}

/* The only allocation of a category. */
static struct neuron_mem *mem_of(struct neuron_model *m, enum neuron_mem_category category)
{
	for (size_t i = 0; i < m->nr_mems; i++)
		if (m->mems[i]->category == category)
			return m->mems[i];
	fail_msg("no memory of category %d", category);
	return NULL;
}

/* ---- models ------------------------------------------------------------------------ */

/* All of it goes, comes back elsewhere, and has the contents that it had. */
static void test_model(void **state)
{
	struct fixture *f = *state;
	uint64_t before = fake_used(), loaded, scratchpad, tmp;
	struct neuron_model *m = load(f->core, make_list_neff());
	struct neuron_mem *private = mem_of(m, NEURON_MEM_SCRATCHPAD_PRIVATE);
	struct neuron_offload_stats s;
	char kept[100], got[100];

	run_list(f, m);
	memset(kept, 0x5a, sizeof(kept));
	/* Behind the rows of t, where no run writes. */
	assert_int_equal(neuron_mem_write(private, 8000, kept, sizeof(kept)), 0);
	tmp = neuron_mem_address(private);
	loaded = fake_used();
	scratchpad = neuron_core_scratchpad(f->core);
	assert_int_equal(neuron_model_offload(m), 0);
	assert_int_equal(fake_used(), before);
	s = stats_of(f);
	assert_int_equal(s.offloaded, loaded - before - scratchpad);
	assert_true(s.offloaded && s.offloaded == s.moved_out && s.offloads == 1 && !s.onloads);
	assert_int_equal(neuron_model_offloaded(m), s.offloaded);
	assert_int_equal(neuron_model_offload(m), -EALREADY);
	for (int i = 0; i < 3; i++) {
		run_list(f, m);
		assert_int_equal(fake_used(), loaded);
		assert_int_equal(neuron_model_offloaded(m), 0);
	}
	assert_int_not_equal(neuron_mem_address(private), tmp);
	assert_int_equal(neuron_mem_read(private, 8000, got, sizeof(got)), 0);
	assert_memory_equal(got, kept, sizeof(got));
	s = stats_of(f);
	assert_true(!s.offloaded && s.moved_in == s.moved_out && s.onloads == 1 && s.waited_ns);
	/* And again, by a call. */
	assert_int_equal(neuron_model_offload(m), 0);
	assert_int_equal(neuron_model_onload(m, NULL), 0);
	assert_int_equal(neuron_model_onload(m, NULL), 0);
	assert_int_equal(fake_used(), loaded);
	run_list(f, m);
	neuron_model_unload(m);
	assert_int_equal(fake_used(), before);
}

/* Tables of addresses, and the names of addresses. */
static void test_addresses(void **state)
{
	struct fixture *f = *state;
	struct neuron_location l = { .size = sizeof(l) };
	struct neuron_model *m = load(f->core, make_list_neff());
	uint64_t k, t, was, table[2], pointer;

	run_list(f, m);
	was = neuron_mem_address(mem_of(m, NEURON_MEM_CONSTANTS));
	assert_int_equal(neuron_model_offload(m), 0);
	assert_int_equal(neuron_address_resolve(f->device, was, 0, &l), 0);
	assert_int_equal(l.freed, 1);
	run_list(f, m);
	k = neuron_mem_address(mem_of(m, NEURON_MEM_CONSTANTS));
	t = neuron_mem_address(mem_of(m, NEURON_MEM_SCRATCHPAD_PRIVATE));
	assert_int_not_equal(k, was);
	assert_int_equal(neuron_address_resolve(f->device, k + 5, 0, &l), 0);
	assert_int_equal(l.freed, 0);
	assert_string_equal(l.variable, "k");
	assert_int_equal(l.offset, 5);
	/* A pointer to x, behind the numbers to add to semaphores; then t and k. */
	assert_int_equal(neuron_mem_read(mem_of(m, NEURON_MEM_MISC), 64, &pointer, 8), 0);
	assert_int_equal(neuron_mem_read(mem_of(m, NEURON_MEM_MISC), 128, table, 16), 0);
	assert_int_equal(le64toh(pointer), m->io[0].address);
	assert_int_equal(le64toh(table[0]), t);
	assert_int_equal(le64toh(table[1]), k);
	neuron_model_unload(m);
}

/* Models for logical cores of two, whose halves share nothing. */
static void test_pair(void **state)
{
	struct neuron_core_opts opts = { .size = sizeof(opts), .lnc = 2 };
	struct neuron_mem_opts mem = { .size = sizeof(mem), .nc = 2, .category = NEURON_MEM_TENSORS };
	struct fixture *f = *state;
	struct neuron_io io[3] = { { "x", f->x, 0, 1024 }, { "a", NULL, 0, 1024 },
				   { "b", NULL, 0, 1024 } };
	struct neuron_core *core;
	struct neuron_model *m;
	uint64_t before;
	uint8_t got[1024];

	assert_int_equal(neuron_core_open(f->device, 2, &opts, &core), 0);
	assert_int_equal(neuron_mem_alloc(f->device, 1024, &mem, &io[1].mem), 0);
	assert_int_equal(neuron_mem_alloc(f->device, 1024, &mem, &io[2].mem), 0);
	before = fake_used();
	m = load(core, make_pair_neff("1024"));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(neuron_mem_set(io[1].mem, 0, 0, 1024), 0);
		assert_int_equal(neuron_mem_set(io[2].mem, 0, 0, 1024), 0);
		assert_int_equal(neuron_model_run(m, io, 3, 1000, NULL), 0);
		for (int k = 1; k < 3; k++) {
			assert_int_equal(neuron_mem_read(io[k].mem, 0, got, 1024), 0);
			assert_memory_equal(got, f->in, 1024);
		}
		assert_int_equal(neuron_model_offload(m), 0);
		assert_int_equal(fake_used(), before);
	}
	/* Freed as it is. */
	neuron_model_unload(m);
	neuron_mem_free(io[1].mem);
	neuron_mem_free(io[2].mem);
	neuron_core_close(core);
}

/* Each call of the driver and each allocation fails once, on the way out and on the way back. */
static void test_faults(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m = load(f->core, make_list_neff());
	struct neuron_mem_failure why;
	uint64_t loaded, away;
	unsigned int n, errors[4] = { 0 };
	int ret;

	run_list(f, m);
	loaded = fake_used();
	for (int kind = 0; kind < 4; kind++) {
		bool back = kind >= 2, host = kind % 2;

		for (n = 1, ret = -1; ret; n++) {
			if (back && !neuron_model_offloaded(m))
				assert_int_equal(neuron_model_offload(m), 0);
			away = fake_used();
			if (host)
				fail_alloc = n;
			else
				fake_fail(n, 0, EIO);
			why = (struct neuron_mem_failure){ .reason = NEURON_MEM_REASON_NONE };
			ret = back ? neuron_model_onload(m, &why) : neuron_model_offload(m);
			fail_alloc = 0;
			fake.fail_at = 0;
			if (!ret)
				break;
			errors[kind]++;
			/* Device memory of others would not help. */
			assert_int_equal(why.reason, back && host ? NEURON_MEM_REASON_HOST :
								    NEURON_MEM_REASON_NONE);
			assert_int_equal(ret, host ? -ENOMEM : -EIO);
			assert_int_equal(fake_used(), back ? away : loaded);
			if (back)
				assert_int_not_equal(neuron_model_offloaded(m), 0);
			run_list(f, m);
			assert_int_equal(fake_used(), loaded);
		}
		if (!back)
			run_list(f, m);
	}
	print_message("# failures: out %u and %u, back %u and %u\n", errors[0], errors[1],
		      errors[2], errors[3]);
	for (int kind = 0; kind < 4; kind++)
		assert_true(errors[kind] > 3);
	neuron_model_unload(m);
}

/* Somebody else has the device memory: the run says so, and a later one succeeds. */
static void test_no_room(void **state)
{
	struct fixture *f = *state;
	struct neuron_mem_failure why = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_run_result r = { .size = sizeof(r) };
	struct neuron_model *m = load(f->core, make_list_neff());

	assert_int_equal(neuron_model_offload(m), 0);
	fake.reason = NEURON_NATIVE_REASON_FULL;
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, &r), -ENOMEM);
	assert_non_null(strstr(r.text, "full"));
	assert_int_equal(neuron_model_onload(m, &why), -ENOMEM);
	assert_int_equal(why.reason, NEURON_MEM_REASON_FULL);
	/* The thread that finds no room leaves it to the run. */
	assert_int_equal(neuron_model_prefetch(m), 0);
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, &r), -ENOMEM);
	fake.reason = NEURON_NATIVE_REASON_NONE;
	run_list(f, m);
	neuron_model_unload(m);
}

static void *run_stuck(void *arg)
{
	struct fixture *f = ((void **)arg)[0];
	struct neuron_model *m = ((void **)arg)[1];

	return (void *)(intptr_t)neuron_model_run(m, f->io, 2, 60000, NULL);
}

/* What stood still goes on. */
static void fake_go_on(void)
{
	fake_enter();
	fake.stuck = false;
	for (unsigned int q = 0; q < FAKE_QUEUES; q++)
		for (unsigned int e = 0; e < FAKE_ENGINES; e++)
			fake_run_queue(&fake.dev[0], e, q);
	fake_run_core(&fake.dev[0], 0);
	fake_leave();
}

/* A model that runs stays; others on its core can go, when the run is over. */
static void test_in_flight(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m = load(f->core, make_list_neff());
	void *args[2] = { f, m }, *ret;
	unsigned int starts = fake.starts;
	pthread_t thread;

	fake.stuck = true;
	assert_int_equal(pthread_create(&thread, NULL, run_stuck, args), 0);
	fake_wait_start(starts);
	assert_int_equal(neuron_model_offload(m), -EBUSY);
	assert_int_equal(neuron_model_prefetch(m), -EBUSY);
	assert_int_equal(neuron_mem_offload(f->x), -EBUSY);
	fake_go_on();
	assert_int_equal(pthread_join(thread, &ret), 0);
	assert_null(ret);
	assert_int_equal(neuron_model_offload(m), 0);
	run_list(f, m);
	neuron_model_unload(m);
}

struct taker {
	struct neuron_model *model;
	bool had;
};

static void *take_model(void *arg)
{
	struct taker *t = arg;

	if (!model_enter(t->model, NULL)) {
		t->had = true;
		model_leave(t->model);
	}
	return NULL;
}

/* Who runs one again and again lets others run it; many times, so that luck is no help. */
static void test_turns(void **state)
{
	struct fixture *f = *state;
	struct taker t = { .model = load(f->core, make_list_neff()) };
	pthread_t thread;

	for (int i = 0; i < 200; i++) {
		t.had = false;
		assert_int_equal(model_enter(t.model, NULL), 0);
		assert_int_equal(pthread_create(&thread, NULL, take_model, &t), 0);
		while (!model_awaited(t.model))
			sched_yield();
		assert_int_equal(neuron_model_offload(t.model), -EBUSY);
		model_leave(t.model);
		assert_int_equal(model_enter(t.model, NULL), 0);
		assert_true(t.had);
		model_leave(t.model);
		pthread_join(thread, NULL);
		assert_false(model_awaited(t.model));
	}
	run_list(f, t.model);
	neuron_model_unload(t.model);
}

/* One is brought back while another one runs, again and again. */
static void test_prefetch(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m[2] = { load(f->core, make_list_neff()), load(f->core, make_list_neff()) };

	for (int i = 0; i < 50; i++) {
		struct neuron_model *now = m[i % 2], *next = m[(i + 1) % 2];

		assert_int_equal(neuron_model_prefetch(next), 0);
		run_list(f, now);
		assert_int_equal(neuron_model_offload(now), 0);
	}
	assert_int_equal(neuron_model_prefetch(m[0]), 0);
	assert_int_equal(neuron_model_prefetch(m[0]), 0);
	assert_int_equal(neuron_model_prefetch(m[1]), 0);
	/* One waits for the thread, the other one is unloaded under it. */
	assert_int_equal(neuron_model_onload(m[0], NULL), 0);
	assert_int_equal(neuron_model_prefetch(m[0]), 0);
	neuron_model_unload(m[1]);
	run_list(f, m[0]);
	neuron_model_unload(m[0]);
}

#define VIRTUAL(off, bytes) \
	"{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {\"q\": {\"type\": \"data\"}}," \
	" \"var\": {\"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 1024}," \
	" \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 1024}," \
	" \"v\": {\"type\": \"virtual\", \"var_id\": 3, \"size\": " bytes "," \
	" \"backing_variable_off\": " off "}}}"

/* x to y through the end of a variable in the shared scratchpad. */
static struct neuron_model *load_virtual(struct fixture *f, const char *def, uint64_t bytes)
{
	char sp[1024];
	const struct neff_file file = { "sg00/SP.json", sp, 0 };

	snprintf(sp, sizeof(sp), "{\"dma\": ["
		 "{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"op\": \"copy\", \"from\": \"x\","
		 " \"to\": \"v\", \"to_off\": %llu, \"from_sizes\": [1024], \"from_steps\": [1],"
		 " \"to_sizes\": [1024], \"to_steps\": [1]}]},"
		 "{\"id\": 2, \"queue\": \"q\", \"desc\": [{\"op\": \"copy\", \"from\": \"v\","
		 " \"from_off\": %llu, \"to\": \"y\", \"from_sizes\": [1024], \"from_steps\": [1],"
		 " \"to_sizes\": [1024], \"to_steps\": [1]}]}]}",
		 (unsigned long long)bytes - 1024, (unsigned long long)bytes - 1024);
	return load(f->core, make_neff("virtual", def, &file, 1));
}

static void run_copy(struct fixture *f, struct neuron_model *m)
{
	uint8_t got[1024];

	assert_int_equal(neuron_mem_set(f->y, 0, 0, sizeof(got)), 0);
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, NULL), 0);
	assert_int_equal(neuron_mem_read(f->y, 0, got, sizeof(got)), 0);
	assert_memory_equal(got, f->in, sizeof(got));
}

/* The scratchpad goes with the last model, and is elsewhere when one comes back. */
static void test_scratchpad(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *a = load_virtual(f, VIRTUAL("0", "1048576"), MIB);
	struct neuron_model *b = load_virtual(f, VIRTUAL("1048576", "1073741824"), 1024 * MIB);
	uint64_t all = neuron_core_scratchpad(f->core), start = scratchpad_address(&f->core->scratchpad, 0);

	run_copy(f, a);
	run_copy(f, b);
	assert_int_equal(neuron_model_offload(b), 0);
	assert_true(neuron_core_scratchpad(f->core) < all);
	run_copy(f, a);
	assert_int_equal(neuron_model_offload(a), 0);
	assert_int_equal(neuron_core_scratchpad(f->core), 0);
	run_copy(f, b);
	assert_int_not_equal(scratchpad_address(&f->core->scratchpad, 0), start);
	run_copy(f, a);
	assert_int_equal(neuron_core_scratchpad(f->core), all);
	neuron_model_unload(a);
	neuron_model_unload(b);
}

/* Of three pages only one is to be had: it is not kept for nobody. */
static void test_pages(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m = load_virtual(f, VIRTUAL("1073741824", "1048576"), MIB);
	uint64_t all = neuron_core_scratchpad(f->core);

	assert_int_equal(all, 3 * 512ull * MIB);
	assert_int_equal(neuron_model_offload(m), 0);
	fake_fail(2, _IOC_NR(NEURON_NATIVE_MEM_ALLOC), ENOMEM);
	assert_int_equal(neuron_model_onload(m, NULL), -ENOMEM);
	assert_int_equal(neuron_core_scratchpad(f->core), 0);
	run_copy(f, m);
	assert_int_equal(neuron_core_scratchpad(f->core), all);
	neuron_model_unload(m);
}

/* Other models have made the scratchpad such that a variable would be in two pieces. */
static void test_layout(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *b = load_virtual(f, VIRTUAL("33554432", "134217728"), 128 * MIB), *a;

	run_copy(f, b);
	assert_int_equal(neuron_model_offload(b), 0);
	a = load_virtual(f, VIRTUAL("0", "1048576"), MIB);
	run_copy(f, a);
	fake.no_growing = true;
	assert_int_equal(neuron_model_run(b, f->io, 2, 1000, NULL), -ENOMEM);
	run_copy(f, a);
	assert_int_not_equal(neuron_model_offloaded(b), 0);
	neuron_model_unload(a);
	run_copy(f, b);
	neuron_model_unload(b);
}

/* A child has nothing of it, and frees what it knows. */
static void test_fork(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m = load(f->core, make_list_neff());
	int status;
	pid_t pid;

	assert_int_equal(neuron_model_offload(m), 0);
	assert_int_equal(neuron_mem_offload(f->x), 0);
	pid = fork();
	if (!pid) {
		unsigned int calls = fake.calls;
		bool ok = neuron_model_run(m, f->io, 2, 1000, NULL) == -EACCES &&
			  neuron_model_offload(m) == -EACCES && neuron_model_onload(m, NULL) == -EACCES &&
			  neuron_model_prefetch(m) == -EACCES && neuron_mem_offload(f->y) == -EACCES &&
			  neuron_mem_onload(f->x, NULL) == -EACCES &&
			  neuron_mem_read(f->x, 0, f->in, 1) == -EACCES;

		neuron_model_unload(m);
		neuron_mem_free(f->x);
		_exit(ok && fake.calls == calls ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	run_list(f, m);
	neuron_model_unload(m);
}

/* ---- memory ------------------------------------------------------------------------ */

static void test_mem(void **state)
{
	struct fixture *f = *state;
	uint64_t before = fake_used(), bytes = neuron_mem_bytes(f->x);
	uint8_t *want = malloc(bytes), *got = malloc(bytes);
	struct neuron_mem_info info = { .size = sizeof(info) };

	for (uint64_t i = 0; i < bytes; i++)
		want[i] = i / MIB == 1 ? 0 : (uint8_t)(i * 7 + i / 4096);
	assert_int_equal(neuron_mem_write(f->x, 0, want, bytes), 0);
	assert_int_equal(neuron_mem_offload(f->x), 0);
	assert_int_equal(fake_used(), before - bytes);
	assert_int_equal(stats_of(f).offloaded, bytes);
	assert_int_equal(neuron_mem_offload(f->x), -EALREADY);
	/* Out of range: it stays where it is. */
	assert_int_equal(neuron_mem_read(f->x, bytes, got, 1), -EINVAL);
	assert_int_equal(fake_used(), before - bytes);
	assert_int_equal(neuron_mem_read(f->x, 0, got, bytes), 0);
	assert_memory_equal(got, want, bytes);
	assert_int_equal(fake_used(), before);
	/* Whatever uses it brings it back. */
	for (int i = 0; i < 6; i++) {
		void *va;

		assert_int_equal(neuron_mem_offload(f->x), 0);
		switch (i) {
		case 0: assert_int_equal(neuron_mem_write(f->x, 0, want, 1), 0); break;
		case 1: assert_int_equal(neuron_mem_set(f->x, 0, want[0], 1), 0); break;
		case 2: assert_int_equal(neuron_mem_copy(f->y, 0, f->x, 0, 16), 0); break;
		case 3: assert_int_equal(neuron_mem_get_info(f->x, &info), 0); break;
		case 4: assert_int_equal(neuron_mem_grow(f->x, bytes + 4096, NULL), 0); break;
		case 5: assert_int_equal(neuron_mem_map(f->x, &va), 0); break;
		}
		assert_int_equal(neuron_mem_onload(f->x, NULL), 0);
		assert_int_equal(neuron_mem_read(f->x, 0, got, bytes), 0);
		assert_memory_equal(got, want, bytes);
	}
	assert_int_equal(neuron_mem_offload(f->x), -EADDRINUSE);
	free(want);
	free(got);
}

/* The figures are what the device has more: whole pages. */
static void test_mem_pages(void **state)
{
	struct neuron_mem_opts o = {
		.size = sizeof(o), .category = NEURON_MEM_TENSORS, .flags = NEURON_MEM_F_MOVABLE,
	};
	struct fixture *f = *state;
	uint64_t before = fake_used();

	for (int i = 0; i < 2; i++) {
		struct neuron_mem *mem;

		assert_int_equal(neuron_mem_alloc(f->device, 4097, &o, &mem), 0);
		assert_int_equal(neuron_mem_offload(mem), 0);
		assert_int_equal(fake_used(), before);
		assert_int_equal(stats_of(f).offloaded, 8192);
		if (i) {
			assert_int_equal(neuron_mem_onload(mem, NULL), 0);
			assert_int_equal(stats_of(f).moved_in, 8192);
		}
		neuron_mem_free(mem);
		assert_int_equal(stats_of(f).offloaded, 0);
	}
	assert_int_equal(stats_of(f).moved_out, 2 * 8192);
}

/* A core has one started copy at a time. It is ended for its own pair, and before one is freed. */
static void test_started_copies(void **state)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS };
	struct fixture *f = *state;
	struct neuron_mem *a, *b;

	assert_int_equal(neuron_mem_alloc(f->device, 8192, &o, &a), 0);
	assert_int_equal(neuron_mem_alloc(f->device, 8192, &o, &b), 0);
	assert_int_equal(neuron_mem_copy_finish(f->x, f->y), -EINVAL);
	assert_int_equal(neuron_mem_copy_start(a, 0, b, 0, 16, -1), 0);
	assert_int_equal(neuron_mem_copy_finish(f->x, f->y), -EINVAL);
	assert_int_equal(neuron_mem_copy_finish(b, a), -EINVAL);
	assert_int_equal(neuron_mem_copy_finish(a, f->y), -EINVAL);
	assert_int_equal(neuron_mem_offload(f->x), 0);
	assert_int_equal(neuron_mem_copy_finish(a, b), 0);
	assert_int_equal(neuron_mem_copy_finish(a, b), -EINVAL);
	for (int i = 0; i < 2; i++) {
		struct neuron_mem *gone = i ? b : a;

		assert_int_equal(neuron_mem_copy_start(i ? gone : f->x, 0, i ? f->x : gone, 0, 16, -1), 0);
		assert_int_equal(neuron_mem_offload(f->x), -EBUSY);
		neuron_mem_free(gone);
		assert_int_equal(neuron_mem_offload(f->x), 0);
	}
}

/* What is not idle stays, each for a reason of its own. */
static void test_mem_refused(void **state)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS };
	struct fixture *f = *state;
	struct neuron_mem *fixed;
	int fd;

	assert_int_equal(neuron_mem_alloc(f->device, 8192, &o, &fixed), 0);
	assert_int_equal(neuron_mem_offload(fixed), -EOPNOTSUPP);
	neuron_mem_free(fixed);
	assert_int_equal(neuron_mem_pin(f->x, NULL), 0);
	assert_int_equal(neuron_mem_offload(f->x), -EBUSY);
	assert_int_equal(neuron_mem_unpin(f->x), 0);
	assert_int_equal(neuron_mem_copy_start(f->x, 0, f->y, 0, 16, -1), 0);
	assert_int_equal(neuron_mem_offload(f->x), -EBUSY);
	assert_int_equal(neuron_mem_offload(f->y), -EBUSY);
	assert_int_equal(neuron_mem_copy_finish(f->x, f->y), 0);
	/* The driver knows of a ring. */
	fake_fail(1, _IOC_NR(NEURON_NATIVE_MEM_GROW), EBUSY);
	assert_int_equal(neuron_mem_offload(f->x), -EBUSY);
	assert_int_equal(neuron_mem_offload(f->x), 0);
	assert_int_equal(neuron_mem_export(f->x, 0, &fd), 0);
	close(fd);
	assert_int_equal(neuron_mem_offload(f->x), -EPERM);
	assert_int_equal(stats_of(f).offloaded, 0);
}

/* Each call and each allocation fails once: it stays where it is, with its contents. */
static void test_mem_faults(void **state)
{
	struct fixture *f = *state;
	uint8_t got[1024];
	uint64_t before = fake_used();
	unsigned int errors = 0;
	int ret;

	for (int kind = 0; kind < 4; kind++) {
		bool back = kind >= 2, host = kind % 2;

		for (unsigned int n = 1; ; n++) {
			if (back && fake_used() == before)
				assert_int_equal(neuron_mem_offload(f->x), 0);
			if (host)
				fail_alloc = n;
			else
				fake_fail(n, 0, EIO);
			ret = back ? neuron_mem_onload(f->x, NULL) : neuron_mem_offload(f->x);
			fail_alloc = 0;
			fake.fail_at = 0;
			if (!ret)
				break;
			errors++;
			assert_int_equal(ret, host ? -ENOMEM : -EIO);
			assert_int_equal(fake_used() == before, !back);
			assert_int_equal(neuron_mem_read(f->x, 0, got, sizeof(got)), 0);
			assert_memory_equal(got, f->in, sizeof(got));
		}
		assert_int_equal(neuron_mem_onload(f->x, NULL), 0);
	}
	assert_true(errors > 6);
}

/* Inputs and outputs of a run. */
static void test_mem_of_run(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m = load(f->core, make_list_neff());

	for (int i = 0; i < 3; i++) {
		run_list(f, m);
		assert_int_equal(neuron_mem_offload(f->x), 0);
		assert_int_equal(neuron_mem_offload(f->y), 0);
		assert_int_equal(neuron_model_offload(m), 0);
	}
	neuron_model_unload(m);
	/* Freed in host memory, by teardown. */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_model),
		TEST(test_addresses),
		TEST(test_pair),
		TEST(test_faults),
		TEST(test_no_room),
		TEST(test_in_flight),
		TEST(test_turns),
		TEST(test_prefetch),
		TEST(test_scratchpad),
		TEST(test_pages),
		cmocka_unit_test_setup_teardown(test_layout, setup_contiguous, teardown),
		TEST(test_fork),
		TEST(test_mem),
		TEST(test_mem_pages),
		TEST(test_started_copies),
		TEST(test_mem_refused),
		TEST(test_mem_faults),
		TEST(test_mem_of_run),
	};

	return cmocka_run_group_tests_name("offloading", tests, NULL, NULL);
}

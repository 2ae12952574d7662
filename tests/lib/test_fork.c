// SPDX-License-Identifier: GPL-2.0-only
/*
 * A child can free its handles, whatever a thread of its parent was doing when it was forked.
 * Here that is after each time that the library has freed something.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/wait.h>

void __real_free(void *p);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
void __wrap_free(void *p);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

/* Those of the driver are not the library's. */
#define free __real_free
#define realloc __real_realloc
#include "fake_driver.h"
#undef free
#undef realloc
#include "test_neffs.h"

#include "src/run/core.h"
#include "src/memory/kv.h"
#include "src/memory/pool.h"

#define MIB (1ull << 20)

static struct neuron_device *device;
static struct neuron_core *core;
static struct neuron_model *model, *other;
static struct neuron_profile *profile;
static struct neuron_mem *x, *y;
static struct neuron_mem_pool *pool;
static struct neuron_mem_block *block[2];
static struct neuron_kv_pool *kv;
static struct neuron_kv_seq *seq;

static bool contiguous;		/* the scratchpad */
static bool forking;
static unsigned int children, died;

static void free_handles(void)
{
	/* Their owners wait for them, but in a child. */
	assert_int_equal(neuron_mem_block_free(block[0], 0), 0);
	neuron_mem_pool_close(pool);
	assert_int_equal(neuron_mem_block_free(block[1], 0), 0);
	neuron_kv_pool_close(kv);
	neuron_kv_seq_close(seq);
	neuron_profile_close(profile);
	neuron_model_unload(model);
	neuron_model_unload(other);
	neuron_mem_free(x);
	neuron_mem_free(y);
	neuron_core_close(core);
	neuron_device_close(device);
}

static void fork_child(void)
{
	int status;
	pid_t pid;

	if (!forking)
		return;
	forking = false;
	pid = fork();
	if (!pid) {
		/* What it has to say is said by how it ends. */
		alarm(10);
		free_handles();
		_exit(0);
	}
	children++;
	died += waitpid(pid, &status, 0) != pid || status;
	forking = true;
}

void __wrap_free(void *p)
{
	__real_free(p);
	if (p)
		fork_child();
}

void *__wrap_realloc(void *p, size_t n)
{
	void *q = __real_realloc(p, n);

	if (p)
		fork_child();
	return q;
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	void *q = __real_reallocarray(p, n, size);

	if (p)
		fork_child();
	return q;
}

static int start(void **state)
{
	struct neuron_core_opts opts = { .size = sizeof(opts), .contiguous = contiguous };
	struct neuron_mem_opts mem = {
		.size = sizeof(mem), .nc = 0, .category = NEURON_MEM_TENSORS,
		.flags = NEURON_MEM_F_MOVABLE,
	};

	(void)state;
	children = died = 0;
	return neuron_device_open(0, &device) || neuron_core_open(device, 0, &opts, &core) ||
	       neuron_mem_alloc(device, 3 * MIB, &mem, &x) ||
	       neuron_mem_alloc(device, 5000, &mem, &y);
}

static int start_contiguous(void **state)
{
	contiguous = true;
	return start(state);
}

static int end(void **state)
{
	(void)state;
	forking = false;
	free_handles();
	profile = NULL;
	model = other = NULL;
	pool = NULL;
	block[0] = block[1] = NULL;
	kv = NULL;
	seq = NULL;
	contiguous = false;
	return fake_used() || fake.mapped || fake.dev[0].opens;
}

static struct neuron_model *load(struct neff_bytes neff)
{
	struct neuron_model *m = NULL;

	assert_int_equal(neuron_model_load(core, neff.data, neff.size, NULL, &m), 0);
	free(neff.data);
	return m;
}

#define VIRTUAL(off) \
	"{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {\"q\": {\"type\": \"data\"}}," \
	" \"var\": {\"v\": {\"type\": \"virtual\", \"var_id\": 1, \"size\": 1048576," \
	" \"backing_variable_off\": " off "}}}"

/* A model with a variable in the shared scratchpad. */
static struct neuron_model *load_virtual(const char *definition)
{
	const struct neff_file file = { "sg00/SP.json", "{\"dma\": []}", 0 };

	return load(make_neff("virtual", definition, &file, 1));
}

static void run_model(void)
{
	struct neuron_io io[] = { { "x", x, 0, 1024 }, { "y", y, 0, 1024 } };

	assert_int_equal(neuron_model_run(model, io, 2, 1000, NULL), 0);
}

/* At least @some of them, and all went well. */
static void check_children(unsigned int some)
{
	forking = false;
	assert_in_range(children, some, 10000);
	assert_int_equal(died, 0);
}

static void test_offload(void **state)
{
	(void)state;
	model = load(make_list_neff());
	run_model();
	forking = true;
	assert_int_equal(neuron_model_offload(model), 0);
	assert_int_equal(neuron_mem_offload(x), 0);
	check_children(5);
}

static void test_onload(void **state)
{
	(void)state;
	model = load(make_list_neff());
	run_model();
	assert_int_equal(neuron_model_offload(model), 0);
	assert_int_equal(neuron_mem_offload(x), 0);
	forking = true;
	assert_int_equal(neuron_model_onload(model, NULL), 0);
	assert_int_equal(neuron_mem_onload(x, NULL), 0);
	check_children(10);
}

/* It becomes longer and shorter again, and is gone when no model needs it. */
static void test_scratchpad(void **state)
{
	(void)state;
	model = load_virtual(VIRTUAL("1073741824"));
	other = load_virtual(VIRTUAL("0"));
	forking = true;
	assert_int_equal(neuron_model_offload(model), 0);
	assert_int_equal(neuron_model_onload(model, NULL), 0);
	assert_int_equal(neuron_model_offload(other), 0);
	assert_int_equal(neuron_model_offload(model), 0);
	check_children(10);
}

/* The core was reset by others, and gets other notification queues. */
static void test_reset(void **state)
{
	(void)state;
	model = load(make_list_neff());
	run_model();
	assert_int_equal(neuron_device_reset(device, 1), 0);
	forking = true;
	run_model();
	check_children(2);
}

/* Lists become longer: what is logged, and what a profile has of runs. */
static void test_lists(void **state)
{
	struct neuron_profile_opts opts = { .size = sizeof(opts) };

	(void)state;
	assert_int_equal(neuron_device_log_memory(device, 1000), 0);
	model = load(make_list_neff());
	assert_int_equal(neuron_profile_start(core, &opts, &profile), 0);
	run_model();
	forking = true;
	for (int i = 0; i < 40; i++)
		run_model();
	for (int i = 0; i < 300; i++)
		assert_int_equal(neuron_mem_shrink(x, 3 * MIB), 0);
	check_children(1);
}

static void open_pools(void)
{
	struct neuron_mem_pool_opts opts = { .size = sizeof(opts), .init = MIB };
	struct neuron_kv_opts kv_opts = {
		.size = sizeof(kv_opts), .max_tokens = 1024, .block_tokens = 16,
		.token_bytes = 256,
	};

	assert_int_equal(neuron_mem_pool_open(device, &opts, &pool), 0);
	assert_int_equal(neuron_mem_pool_alloc(pool, 4096, 0, &block[0], NULL), 0);
	assert_int_equal(neuron_mem_pool_alloc(pool, 4096, 0, &block[1], NULL), 0);
	assert_int_equal(neuron_kv_pool_open(device, &kv_opts, &kv), 0);
	assert_int_equal(neuron_kv_seq_open(kv, 50, &seq), 0);
	assert_int_equal(neuron_kv_seq_append(seq, 100), 0);
}

/* Threads that the child does not have are inside. */
static void test_locked_pools(void **state)
{
	pthread_mutex_t *locks[] = { NULL, NULL, &device->reserves_lock };

	(void)state;
	open_pools();
	locks[0] = &pool->lock;
	locks[1] = &kv->lock;
	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(locks[i]);
		forking = true;
		fork_child();
		forking = false;
		pthread_mutex_unlock(locks[i]);
	}
	check_children(3);
}

/* A sequence gets longer tables. */
static void test_growing_sequence(void **state)
{
	(void)state;
	open_pools();
	forking = true;
	assert_int_equal(neuron_kv_seq_append(seq, 700), 0);
	check_children(2);
}

static void test_no_pool_in_a_child(void **state)
{
	struct neuron_mem_pool *none;
	int status;
	pid_t pid;

	(void)state;
	pthread_mutex_lock(&device->reserves_lock);
	pid = fork();
	if (!pid) {
		alarm(10);
		_exit(neuron_mem_pool_open(device, NULL, &none) != -EACCES);
	}
	pthread_mutex_unlock(&device->reserves_lock);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
	const struct CMUnitTest tests[] = {
		TEST(test_offload),
		TEST(test_onload),
		TEST(test_scratchpad),
		cmocka_unit_test_setup_teardown(test_scratchpad, start_contiguous, end),
		TEST(test_reset),
		TEST(test_lists),
		TEST(test_locked_pools),
		TEST(test_growing_sequence),
		TEST(test_no_pool_in_a_child),
	};

	return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}

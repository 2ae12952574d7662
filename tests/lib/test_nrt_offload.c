// SPDX-License-Identifier: GPL-2.0-only
/* NEURON_RT_OFFLOAD: idle models make room for what does not fit, and come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nrt/nrt.h>

#include "fake_driver.h"
#include "nrt/object/model.h"
#include "test_neffs.h"

#define NR_MODELS	3

/* The memory of core 0 but for what a model takes alone: one fits, two do not. */
struct full {
	nrt_tensor_t *filler;
	uint64_t left;
	struct neff_bytes neff;
	nrt_model_t *model[NR_MODELS];
	uint64_t bytes;		/* of a model alone */
};

static uint64_t free_bytes(uint64_t *largest)
{
	struct neuron_hbm_stats s = { .size = sizeof(s) };

	assert_int_equal(neuron_hbm_get_stats(nrt_process.vncs[0].device, 0, &s), 0);
	if (largest)
		*largest = s.largest_free;
	return s.free;
}

static int setup(void **state)
{
	struct full *f = calloc(1, sizeof(*f));

	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	fake.nr_devices = 1;
	f->neff = make_list_neff();
	*state = f;
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS;
}

static int setup_off(void **state)
{
	unsetenv("NEURON_RT_OFFLOAD");
	return setup(state);
}

static int setup_on(void **state)
{
	setenv("NEURON_RT_OFFLOAD", "1", 1);
	return setup(state);
}

static int teardown(void **state)
{
	struct full *f = *state;

	nrt_tensor_free(&f->filler);
	nrt_close();
	free(f->neff.data);
	free(f);
	return fake_used() || fake.mapped;
}

static NRT_STATUS load(struct full *f, int i)
{
	return nrt_load(f->neff.data, f->neff.size, 0, -1, &f->model[i]);
}

static bool offloaded(const struct full *f, int i)
{
	return neuron_model_offloaded(((const struct nrt_model *)f->model[i])->model);
}

/* Model 0, and so much else that another one does not fit beside it. */
static void fill(struct full *f)
{
	uint64_t before, largest;

	/* The scratchpad, which they share, stays. */
	assert_int_equal(load(f, 0), NRT_SUCCESS);
	before = free_bytes(NULL);
	assert_int_equal(load(f, 1), NRT_SUCCESS);
	f->bytes = before - free_bytes(NULL);
	assert_true(f->bytes > 4096);
	assert_int_equal(nrt_unload(f->model[1]), NRT_SUCCESS);
	free_bytes(&largest);
	f->left = free_bytes(NULL) - largest;
	assert_true(f->left < f->bytes);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, largest, "filler",
					     &f->filler), NRT_SUCCESS);
}

static nrt_tensor_t *host_tensor(void)
{
	nrt_tensor_t *t = NULL;

	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, 1024, NULL, &t),
			 NRT_SUCCESS);
	return t;
}

/* Returns what the execution did; the result is that of the model. */
static NRT_STATUS run(nrt_model_t *m, uint8_t seed)
{
	nrt_tensor_t *x = host_tensor(), *y = host_tensor();
	nrt_tensor_set_t *in = NULL, *out = NULL;
	uint8_t data[1024], want[1024], got[1024];
	NRT_STATUS status;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + seed);
	list_expected(data, want);
	assert_int_equal(nrt_tensor_write(x, data, 0, sizeof(data)), NRT_SUCCESS);
	assert_int_equal(nrt_allocate_tensor_set(&in), NRT_SUCCESS);
	assert_int_equal(nrt_allocate_tensor_set(&out), NRT_SUCCESS);
	assert_int_equal(nrt_add_tensor_to_tensor_set(in, "x", x), NRT_SUCCESS);
	assert_int_equal(nrt_add_tensor_to_tensor_set(out, "y", y), NRT_SUCCESS);
	status = nrt_execute(m, in, out);
	assert_int_equal(nrt_tensor_read(y, got, 0, sizeof(got)), NRT_SUCCESS);
	if (status == NRT_SUCCESS)
		assert_memory_equal(got, want, sizeof(got));
	nrt_destroy_tensor_set(&in);
	nrt_destroy_tensor_set(&out);
	nrt_tensor_free(&x);
	nrt_tensor_free(&y);
	return status;
}

static void test_off(void **state)
{
	struct full *f = *state;

	fill(f);
	assert_int_equal(load(f, 1), NRT_RESOURCE);
	assert_false(offloaded(f, 0));
	assert_int_equal(run(f->model[0], 1), NRT_SUCCESS);
}

/* The one that was used longest ago goes, by a load, an execution, an allocation. */
static void test_oldest(void **state)
{
	struct full *f = *state;
	nrt_tensor_t *t = NULL;

	fill(f);
	nrt_tensor_free(&f->filler);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0,
					     free_bytes(NULL) - f->left - f->bytes, "filler",
					     &f->filler), NRT_SUCCESS);
	assert_int_equal(load(f, 1), NRT_SUCCESS);
	assert_false(offloaded(f, 0));
	assert_int_equal(run(f->model[0], 2), NRT_SUCCESS);
	assert_int_equal(load(f, 2), NRT_SUCCESS);
	assert_true(!offloaded(f, 0) && offloaded(f, 1) && !offloaded(f, 2));
	assert_int_equal(run(f->model[1], 3), NRT_SUCCESS);
	assert_true(offloaded(f, 0) && !offloaded(f, 1) && !offloaded(f, 2));
	assert_int_equal(run(f->model[0], 4), NRT_SUCCESS);
	assert_true(!offloaded(f, 0) && !offloaded(f, 1) && offloaded(f, 2));
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, f->left + 4096, NULL, &t),
			 NRT_SUCCESS);
	assert_true(!offloaded(f, 0) && offloaded(f, 1));
	nrt_tensor_free(&t);
	for (int i = 0; i < NR_MODELS; i++)
		assert_int_equal(run(f->model[i], (uint8_t)i), NRT_SUCCESS);
}

/* What cannot fit drives nothing out, and is told as ever. */
static void test_hopeless(void **state)
{
	struct full *f = *state;
	nrt_tensor_t *t = NULL;

	fill(f);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 20ull << 30, NULL, &t),
			 NRT_RESOURCE);
	assert_null(t);
	assert_false(offloaded(f, 0));
}

#define ROUNDS		200

static void *run_often(void *model)
{
	for (int i = 0; i < ROUNDS; i++)
		if (run(model, (uint8_t)i) != NRT_SUCCESS)
			return model;
	return NULL;
}

/* Threads whose models do not fit together wait for each other, and none fails. */
static void test_threads(void **state)
{
	struct full *f = *state;
	pthread_t thread[NR_MODELS];
	void *failed;

	fill(f);
	for (int i = 1; i < NR_MODELS; i++)
		assert_int_equal(load(f, i), NRT_SUCCESS);
	for (int i = 0; i < NR_MODELS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run_often, f->model[i]), 0);
	for (int i = 0; i < NR_MODELS; i++) {
		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
	}
}

static void *load_second(void *state)
{
	return load(state, 1) == NRT_SUCCESS ? NULL : state;
}

/* Who waits for the end of a run keeps nobody from other memory of the device. */
static void test_waiting(void **state)
{
	struct full *f = *state;
	struct nrt_model *running;
	nrt_tensor_t *t = NULL;
	pthread_t thread;
	void *failed;

	fill(f);
	running = (struct nrt_model *)f->model[0];
	turn_take(&running->turn);
	assert_int_equal(pthread_create(&thread, NULL, load_second, f), 0);
	/* It lists the models that could go, and waits for the only one. */
	while (!turn_awaited(&running->turn))
		usleep(100);
	alarm(60);
	assert_int_equal(nrt_load(f->neff.data, f->neff.size, 3, -1, &f->model[2]), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 3, 4096, NULL, &t),
			 NRT_SUCCESS);
	alarm(0);
	turn_give(&running->turn);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	assert_true(offloaded(f, 0) && !offloaded(f, 1));
	nrt_tensor_free(&t);
}

static void test_bad_value(void **state)
{
	(void)state;
	nrt_close();
	setenv("NEURON_RT_OFFLOAD", "all", 1);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_off, setup_off, teardown),
		cmocka_unit_test_setup_teardown(test_oldest, setup_on, teardown),
		cmocka_unit_test_setup_teardown(test_hopeless, setup_on, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup_on, teardown),
		cmocka_unit_test_setup_teardown(test_waiting, setup_on, teardown),
		cmocka_unit_test_setup_teardown(test_bad_value, setup_on, teardown),
	};

	return cmocka_run_group_tests_name("offload, nrt", tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only
/* What the library counts in the datastore: each outcome in its counter, and once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>

#include <nrt/nrt_async.h>

#include "fake_driver.h"
#include "test_neffs.h"

#define NC 2u

struct fixture {
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_mem *x, *y;
	struct neuron_io io[2];
};

static uint64_t stat_of(unsigned int counter)
{
	return fake_stat(0, NC, counter);
}

/* Status counters of all cores together. */
static uint64_t statuses(void)
{
	uint64_t sum = 0;

	for (uint32_t nc = 0; nc < FAKE_CORES; nc++) {
		for (unsigned int i = NDS_NC_COUNTER_INFER_COMPLETED; i <= NDS_NC_COUNTER_ERR_RT; i++)
			sum += fake_stat(0, nc, i);
		for (unsigned int i = NDS_NC_COUNTER_GENERIC_FAIL;
		     i <= NDS_NC_COUNTER_ERR_UNSUPPORTED_NEFF_VERSION; i++)
			sum += fake_stat(0, nc, i);
		for (unsigned int i = NDS_NC_COUNTER_OOB; i < NDS_EXT_NC_COUNTER_LAST; i++)
			sum += fake_stat(0, nc, i);
	}
	return sum;
}

/* One more in @counter (0: in none), and nowhere else. */
static void expect(unsigned int counter, uint64_t before, uint64_t before_all)
{
	if (counter)
		assert_int_equal(stat_of(counter), before + 1);
	assert_int_equal(statuses(), before_all + !!counter);
}

static int setup(void **state)
{
	static struct fixture f;

	fake.nr_devices = 1;
	if (neuron_device_open(0, &f.device) || neuron_core_open(f.device, NC, NULL, &f.core) ||
	    neuron_mem_alloc(f.device, 100000, NULL, &f.x) ||
	    neuron_mem_alloc(f.device, 100000, NULL, &f.y))
		return -1;
	f.io[0] = (struct neuron_io){ "x", f.x, 0, 100000 };
	f.io[1] = (struct neuron_io){ "y", f.y, 0, 100000 };
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fake.fail_at = 0;
	fake.stuck = false;
	fake.map_fails = false;
	neuron_mem_free(f->x);
	neuron_mem_free(f->y);
	neuron_core_close(f->core);
	neuron_device_close(f->device);
	return fake_used() || fake.mapped || fake.dev[0].opens;
}

static int load(struct fixture *f, struct neff_bytes n, struct neuron_model **m)
{
	int ret = neuron_model_load(f->core, n.data, n.size, NULL, m);

	free(n.data);
	return ret;
}

static void test_runs(void **state)
{
	static const struct {
		int code;
		unsigned int counter;
	} stops[] = {
		{ NEURON_ISA_ERR_DMA_ACCESS, NDS_NC_COUNTER_OOB },
		{ NEURON_ISA_ERR_DMA_DESC, NDS_EXT_NC_COUNTER_HW_ERR_DMA_ABORT },
		{ NEURON_ISA_ERR_DMA_RING, NDS_EXT_NC_COUNTER_HW_ERR_DMA_ABORT },
		{ NEURON_ISA_ERR_SEMAPHORE, NDS_EXT_NC_COUNTER_ERR_SW_SEMAPHORE_ERROR },
		{ NEURON_ISA_ERR_ILLEGAL, NDS_NC_COUNTER_INFER_COMPLETED_WITH_ERR },
		{ NEURON_ISA_ERR_MEM_UE, NDS_EXT_NC_COUNTER_HW_ERR_HBM_UE },
		{ NEURON_ISA_ERR_MEM_REPAIRABLE, NDS_EXT_NC_COUNTER_HW_ERR_REPAIRABLE_HBM_UE },
		{ NEURON_ISA_ERR_SRAM_UE, NDS_EXT_NC_COUNTER_HW_ERR_NC_UE },
		{ NEURON_ISA_ERR_ABORT, NDS_EXT_NC_COUNTER_HW_ERR_DMA_ABORT },
	};
	struct fixture *f = *state;
	struct neuron_model *m;
	uint64_t n, all, time;

	assert_memory_equal(fake.dev[0].ds, "nds0", 4);
	assert_int_equal(load(f, make_list_neff(), &m), 0);
	assert_int_equal(stat_of(NDS_NC_COUNTER_MODEL_LOAD_COUNT), 1);
	assert_int_equal(statuses(), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(neuron_model_run(m, f->io, 2, 1000, NULL), 0);
	assert_int_equal(stat_of(NDS_NC_COUNTER_INFER_COMPLETED), 3);
	assert_int_equal(stat_of(NDS_NC_COUNTER_INFERENCE_COUNT), 3);
	assert_int_equal(statuses(), 3);
	assert_in_range(stat_of(NDS_NC_COUNTER_LATENCY_DEVICE), 0,
			stat_of(NDS_NC_COUNTER_LATENCY_TOTAL));
	assert_in_range(stat_of(NDS_NC_COUNTER_LATENCY_DEVICE), 0,
			stat_of(NDS_NC_COUNTER_TIME_IN_USE));

	/* Refused before it began. */
	f->io[0].bytes = 1;
	n = stat_of(NDS_NC_COUNTER_INFER_INCORRECT_INPUT);
	all = statuses();
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, NULL), -EINVAL);
	expect(NDS_NC_COUNTER_INFER_INCORRECT_INPUT, n, all);
	assert_int_equal(stat_of(NDS_NC_COUNTER_INFERENCE_COUNT), 3);
	f->io[0].bytes = 100000;

	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		n = stat_of(stops[i].counter);
		all = statuses();
		fake.dma_error = stops[i].code;
		assert_int_equal(neuron_model_run(m, f->io, 2, 1000, NULL), -EIO);
		expect(stops[i].counter, n, all);
		assert_int_equal(stat_of(NDS_NC_COUNTER_INFERENCE_COUNT), 4 + i);
	}

	all = statuses();
	time = stat_of(NDS_NC_COUNTER_TIME_IN_USE);
	fake.stuck = true;
	assert_int_equal(neuron_model_run(m, f->io, 2, 20, NULL), -ETIMEDOUT);
	fake.stuck = false;
	expect(NDS_NC_COUNTER_INFER_TIMED_OUT, 0, all);
	assert_true(stat_of(NDS_NC_COUNTER_TIME_IN_USE) >= time + 20000);

	/* Calls that the driver refuses. */
	all = statuses();
	fake_fail(1, _IOC_NR(NEURON_IOCTL_DMA_QUEUE_INIT_BATCH), ENODEV);
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, NULL), -ENODEV);
	expect(NDS_NC_COUNTER_ERR_HW, 0, all);
	fake_fail(1, _IOC_NR(NEURON_IOCTL_DMA_QUEUE_INIT_BATCH), EIO);
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, NULL), -EIO);
	expect(NDS_NC_COUNTER_ERR_HW, 1, all + 1);
	fake_fail(1, _IOC_NR(NEURON_IOCTL_DMA_QUEUE_INIT_BATCH), EBUSY);
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, NULL), -EBUSY);
	expect(NDS_NC_COUNTER_GENERIC_FAIL, 0, all + 2);
	neuron_model_unload(m);
}

/* One load that fails, in one counter. */
static void refused(struct fixture *f, struct neff_bytes n, int ret, unsigned int counter)
{
	uint64_t before = stat_of(counter), all = statuses();
	struct neuron_model *m;

	assert_int_equal(load(f, n, &m), ret);
	expect(counter, before, all);
}

static void test_loads(void **state)
{
	struct neff_bytes n = make_list_neff();
	struct fixture *f = *state;
	uint8_t vendor[4096];
	struct neuron_model *m;
	uint64_t all;

	((uint8_t *)n.data)[24] = 99;	/* version */
	refused(f, n, -EOPNOTSUPP, NDS_NC_COUNTER_ERR_UNSUPPORTED_NEFF_VERSION);
	n = make_list_neff();
	((uint8_t *)n.data)[8] = 1;	/* size of the header */
	refused(f, n, -EINVAL, NDS_NC_COUNTER_ERR_INVALID);
	fake.reason = NEURON_NATIVE_REASON_FULL;
	refused(f, make_list_neff(), -ENOMEM, NDS_NC_COUNTER_ERR_RESOURCE);
	fake.reason = NEURON_NATIVE_REASON_NONE;
	fake_fail(1, _IOC_NR(NEURON_NATIVE_MEM_ALLOC), ENODEV);
	refused(f, make_list_neff(), -ENODEV, NDS_NC_COUNTER_ERR_HW);
	fake_fail(1, _IOC_NR(NEURON_NATIVE_MEM_ALLOC), EBUSY);
	refused(f, make_list_neff(), -EBUSY, NDS_NC_COUNTER_GENERIC_FAIL);
	assert_int_equal(stat_of(NDS_NC_COUNTER_MODEL_LOAD_COUNT), 0);

	/* Loaded, and never run. */
	memset(vendor, 0xa5, sizeof(vendor));
	assert_int_equal(load(f, make_program_neff(vendor, sizeof(vendor)), &m), 0);
	all = statuses();
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, NULL), -EOPNOTSUPP);
	expect(NDS_NC_COUNTER_ERR_UNSUPPORTED_NEFF_VERSION, 1, all);
	assert_int_equal(stat_of(NDS_NC_COUNTER_INFERENCE_COUNT), 0);
	neuron_model_unload(m);
}

static void test_memory(void **state)
{
	uint64_t tensors = stat_of(NDS_NC_COUNTER_MEM_USAGE_TENSORS_DEVICE);
	struct neuron_mem_opts o = { .size = sizeof(o), .nc = NC, .category = NEURON_MEM_TENSORS };
	struct neuron_model_usage u = { .size = sizeof(u) };
	const __u64 *nd = NDS_ND_COUNTERS(fake.dev[0].ds);
	struct fixture *f = *state;
	struct neuron_mem *mem;
	struct neuron_model *m;

	assert_int_equal(neuron_mem_alloc(f->device, 5000, &o, &mem), 0);
	assert_int_equal(stat_of(NDS_NC_COUNTER_MEM_USAGE_TENSORS_DEVICE), tensors + 8192);
	assert_int_equal(neuron_mem_grow(mem, 20000, NULL), 0);
	assert_int_equal(stat_of(NDS_NC_COUNTER_MEM_USAGE_TENSORS_DEVICE), tensors + 20480);
	neuron_mem_free(mem);
	assert_int_equal(stat_of(NDS_NC_COUNTER_MEM_USAGE_TENSORS_DEVICE), tensors);
	o.flags = NEURON_MEM_F_HOST;
	for (int i = 0; i < 4; i++) {
		static const struct {
			enum neuron_mem_category category;
			unsigned int counter;
		} host[] = {
			{ NEURON_MEM_HOST_TENSORS, NDS_ND_COUNTER_MEM_USAGE_TENSORS_HOST },
			{ NEURON_MEM_HOST_CODE, NDS_ND_COUNTER_MEM_USAGE_CODE_HOST },
			{ NEURON_MEM_HOST_CONSTANTS, NDS_ND_COUNTER_MEM_USAGE_CONSTANTS_HOST },
			{ NEURON_MEM_HOST_RINGS, NDS_ND_COUNTER_MEM_USAGE_MISC_HOST },
		};

		o.category = host[i].category;
		assert_int_equal(neuron_mem_alloc(f->device, 1, &o, &mem), 0);
		assert_int_equal(nd[host[i].counter], 4096);
		neuron_mem_free(mem);
		assert_int_equal(nd[host[i].counter], 0);
	}

	/* A model by its categories, to the byte. */
	assert_int_equal(load(f, make_list_neff(), &m), 0);
	assert_int_equal(neuron_model_get_usage(m, &u), 0);
	assert_int_equal(stat_of(NDS_NC_COUNTER_MEM_USAGE_CODE_DEVICE), u.code);
	assert_int_equal(stat_of(NDS_NC_COUNTER_MEM_USAGE_CONSTANTS_DEVICE), u.constants);
	assert_int_equal(stat_of(NDS_NC_COUNTER_MEM_USAGE_SCRATCHPAD_DEVICE),
			 u.scratchpad + neuron_core_scratchpad(f->core));
	assert_int_equal(stat_of(NDS_NC_COUNTER_MEM_USAGE_MISC_DEVICE),
			 u.runtime + u.rings_io + u.rings_spill + u.rings_runtime);
	neuron_model_unload(m);
	for (unsigned int i = NDS_NC_COUNTER_MEM_USAGE_CODE_DEVICE;
	     i <= NDS_NC_COUNTER_MEM_USAGE_MISC_DEVICE; i++)
		assert_int_equal(stat_of(i), i == NDS_NC_COUNTER_MEM_USAGE_TENSORS_DEVICE ? tensors : 0);
}

/* Another handle of the device counts in the same place; without a datastore all works. */
static void test_handles(void **state)
{
	struct fixture *f = *state;
	struct neuron_device *other;
	struct neuron_core *core;
	struct neuron_model *m;
	unsigned int mapped = fake.mapped;
	pid_t pid;
	int status;

	assert_int_equal(neuron_device_open(0, &other), 0);
	assert_int_equal(neuron_core_open(other, 0, NULL, &core), 0);
	assert_int_equal(fake.mapped, mapped + 3);	/* and two notification queues */
	neuron_core_count(core, NEURON_CORE_QUEUE_FULL);
	neuron_core_count(f->core, NEURON_CORE_BAD_INPUT);
	assert_int_equal(fake_stat(0, 0, NDS_NC_COUNTER_INFER_FAILED_TO_QUEUE), 1);
	assert_int_equal(stat_of(NDS_NC_COUNTER_INFER_INCORRECT_INPUT), 1);
	neuron_core_close(core);
	neuron_device_close(other);
	assert_int_equal(fake.mapped, mapped);

	/* A child has no mapping, and does not touch its parent's. */
	pid = fork();
	if (!pid) {
		neuron_core_count(f->core, NEURON_CORE_BAD_INPUT);
		neuron_mem_free(f->x);
		neuron_core_close(f->core);
		_exit(stat_of(NDS_NC_COUNTER_INFER_INCORRECT_INPUT) != 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);

	teardown(state);
	for (int i = 0; i < 2; i++) {
		if (i)
			fake.map_fails = true;
		else
			fake_fail(1, _IOC_NR(NEURON_IOCTL_ACQUIRE_NEURON_DS), ENOMEM);
		assert_int_equal(neuron_device_open(0, &other), 0);
		/* The notification queues are mapped, too. */
		assert_int_equal(neuron_core_open(other, NC, NULL, &core), i ? -ENOMEM : 0);
		assert_int_equal(fake.fail_at, 0);
		if (!i) {
			f->core = core;
			assert_int_equal(load(f, make_list_neff(), &m), 0);
			neuron_model_unload(m);
			neuron_core_count(core, NEURON_CORE_BAD_INPUT);
			neuron_core_close(core);
		}
		for (size_t k = 0; k < FAKE_DS_SIZE / 8; k++)
			assert_int_equal(fake.dev[0].ds[k], 0);
		neuron_device_close(other);
	}
	fake.map_fails = false;
	assert_int_equal(setup(state), 0);
}

/* What only the runtime interface knows. */
static void test_nrt(void **state)
{
	struct neff_bytes n = make_list_neff();
	nrt_tensor_set_t *in, *out;
	nrt_tensor_t *t[2];
	nrta_seq_t seq;
	nrt_model_t *m;
	bool done = false;

	teardown(state);
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "1", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	assert_int_equal(nrt_load(n.data, n.size, NC, -1, &m), NRT_SUCCESS);
	assert_int_equal(nrt_allocate_tensor_set(&in), NRT_SUCCESS);
	assert_int_equal(nrt_allocate_tensor_set(&out), NRT_SUCCESS);
	assert_int_equal(nrt_execute(m, in, out), NRT_INVALID);
	assert_int_equal(stat_of(NDS_NC_COUNTER_INFER_INCORRECT_INPUT), 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, NC, 1024, NULL,
						     &t[i]),
				 NRT_SUCCESS);
		assert_int_equal(nrt_add_tensor_to_tensor_set(i ? out : in, i ? "y" : "x", t[i]),
				 NRT_SUCCESS);
	}
	fake.stuck = true;
	assert_int_equal(nrta_execute_schedule(m, in, out, 0, NULL, &seq), NRT_SUCCESS);
	assert_int_equal(nrta_execute_schedule(m, in, out, 0, NULL, NULL), NRT_QUEUE_FULL);
	assert_int_equal(stat_of(NDS_NC_COUNTER_INFER_FAILED_TO_QUEUE), 1);
	for (int i = 0; i < 6000 && !done; i++, usleep(10000))
		assert_int_equal(nrta_is_completed(seq, &done), NRT_SUCCESS);
	assert_true(done);
	fake.stuck = false;
	assert_int_equal(stat_of(NDS_NC_COUNTER_INFER_TIMED_OUT), 1);
	nrt_destroy_tensor_set(&in);
	nrt_destroy_tensor_set(&out);
	nrt_tensor_free(&t[0]);
	nrt_tensor_free(&t[1]);
	nrt_close();
	free(n.data);
	assert_int_equal(setup(state), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_loads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_handles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nrt, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only
/* Computing with device memory: operations and types, long operands, and every refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_driver.h"

#define OPERAND 65536u		/* bytes between the operands of a test */

static struct neuron_device *device;
static struct neuron_core *core;
static struct neuron_mem *mem;
static uint64_t rng = 88172645463325252ull;

static uint64_t rnd(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

static int setup(void **state)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };

	(void)state;
	return neuron_device_open(0, &device) || neuron_core_open(device, 0, NULL, &core) ||
	       neuron_mem_alloc(device, 17 * OPERAND, &opts, &mem);
}

static int teardown(void **state)
{
	(void)state;
	fake.fail_at = 0;
	fake.stuck = false;
	fake.dma_error = 0;
	neuron_mem_free(mem);
	neuron_core_close(core);
	neuron_device_close(device);
	return fake_used() || fake.mapped || fake.dev[0].opens;
}

struct job {
	struct neuron_operand src[NEURON_COMPUTE_MAX_SOURCES + 1];
	struct neuron_compute c;
	uint8_t later[8];	/* members of a later version */
};

/* Sources one behind the other, the result behind the last place for one. */
static void job_make(struct job *j, enum neuron_compute_op op, size_t nr, uint64_t elements)
{
	memset(j, 0, sizeof(*j));
	for (size_t i = 0; i < nr; i++)
		j->src[i] = (struct neuron_operand){ mem, i * OPERAND, NEURON_ISA_DT_FP32 };
	j->c = (struct neuron_compute){
		.size = sizeof(j->c),
		.op = op,
		.scale = 1.5f,
		.elements = elements,
		.dst = { mem, 16 * OPERAND, NEURON_ISA_DT_FP32 },
		.src = j->src,
		.nr_src = nr,
	};
}

static void check(const struct job *j)
{
	static uint8_t bytes[16 * OPERAND], want[OPERAND], got[OPERAND];
	uint8_t types[NEURON_COMPUTE_MAX_SOURCES], *src[NEURON_COMPUTE_MAX_SOURCES];
	size_t size = j->c.elements * ref_dtype_size((uint8_t)j->c.dst.dtype);
	bool fma = j->c.op == NEURON_COMPUTE_FMA;
	uint32_t scale;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rnd();
	assert_int_equal(neuron_mem_write(mem, 0, bytes, sizeof(bytes)), 0);
	for (size_t i = 0; i < j->c.nr_src; i++) {
		types[i] = (uint8_t)j->src[i].dtype;
		src[i] = bytes + j->src[i].offset;
	}
	memcpy(&scale, &j->c.scale, sizeof(scale));
	ref_compute(want, (uint8_t)j->c.op, (uint8_t)j->c.dst.dtype, src, types,
		    (uint32_t)j->c.nr_src, fma ? NEURON_ISA_DMA_ARG_FP32 : 0, fma ? scale : 0,
		    j->c.elements);
	assert_int_equal(neuron_core_compute(core, &j->c, -1), 0);
	assert_int_equal(neuron_mem_read(mem, 16 * OPERAND, got, size), 0);
	assert_memory_equal(got, want, size);
}

static void test_operations(void **state)
{
	struct job j;

	(void)state;
	for (uint32_t op = NEURON_COMPUTE_CAST; op <= NEURON_COMPUTE_MAX; op++)
		for (uint32_t i = 0; i < 40; i++) {
			size_t nr = op == NEURON_COMPUTE_CAST ? 1 : 1 + rnd() % 16;

			job_make(&j, op, nr, 1 + rnd() % 8000);
			for (size_t k = 0; k < nr; k++)
				j.src[k].dtype = 1 + rnd() % 15;
			j.c.dst.dtype = 1 + rnd() % 15;
			check(&j);
		}
}

/* More packets than a ring holds. */
static void test_long(void **state)
{
	const uint64_t elements = 1100000;
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };
	struct neuron_mem *from, *to;
	unsigned int before;
	uint64_t *got;
	uint8_t *data;
	struct job j;

	(void)state;
	data = malloc(elements + 16);
	got = malloc(elements * 8);
	for (size_t i = 0; i < elements + 16; i++)
		data[i] = (uint8_t)rnd();
	assert_int_equal(neuron_mem_alloc(device, elements + 16, &opts, &from), 0);
	assert_int_equal(neuron_mem_alloc(device, elements * 8, &opts, &to), 0);
	assert_int_equal(neuron_mem_write(from, 0, data, elements + 16), 0);
	job_make(&j, NEURON_COMPUTE_ADD, 16, elements);
	for (size_t i = 0; i < 16; i++)
		j.src[i] = (struct neuron_operand){ from, i, NEURON_ISA_DT_UINT8 };
	j.c.dst = (struct neuron_operand){ to, 0, NEURON_ISA_DT_UINT64 };
	before = fake.starts;
	assert_int_equal(neuron_core_compute(core, &j.c, 60000), 0);
	assert_int_equal(fake.starts - before, 2);
	assert_int_equal(neuron_mem_read(to, 0, got, elements * 8), 0);
	for (size_t i = 0; i < elements; i++) {
		uint64_t sum = 0;

		for (size_t k = 0; k < 16; k++)
			sum += data[i + k];
		if (got[i] != sum)
			fail_msg("element %zu", i);
	}
	/* Over one of its sources. */
	j.src[0] = j.c.dst;
	j.c.nr_src = 1;
	j.c.op = NEURON_COMPUTE_MAX;
	assert_int_equal(neuron_core_compute(core, &j.c, 60000), 0);
	neuron_mem_free(from);
	neuron_mem_free(to);
	free(data);
	free(got);
}

static void test_arguments(void **state)
{
	struct neuron_device *other;
	struct neuron_mem *far;
	struct job j;

	(void)state;
#define REFUSED(change, ret) do {					\
	job_make(&j, NEURON_COMPUTE_ADD, 2, 100);			\
	change;								\
	assert_int_equal(neuron_core_compute(core, &j.c, -1), ret);	\
} while (0)
	REFUSED(j.c.op = 5, -EINVAL);
	REFUSED(j.c.op = (enum neuron_compute_op)-1, -EINVAL);
	REFUSED(j.c.op = NEURON_COMPUTE_CAST, -EINVAL);
	REFUSED(j.c.nr_src = 0, -EINVAL);
	REFUSED(j.c.nr_src = 17, -EINVAL);
	REFUSED(j.c.src = NULL, -EINVAL);
	REFUSED(j.c.elements = 0, -EINVAL);
	REFUSED(j.c.elements = 1ull << 62, -EINVAL);
	REFUSED(j.c.elements = 1ull << 32, -EINVAL);
	REFUSED(j.c.dst.dtype = 0, -EINVAL);
	REFUSED(j.c.dst.dtype = 16, -EINVAL);
	REFUSED(j.src[1].dtype = 99, -EINVAL);
	REFUSED(j.src[1].mem = NULL, -EINVAL);
	REFUSED(j.c.dst.mem = NULL, -EINVAL);
	REFUSED(j.c.dst.offset = 17 * OPERAND - 399, -EINVAL);
	REFUSED(j.src[1].offset = UINT64_MAX, -EINVAL);
	REFUSED(j.c.size = 3, -EINVAL);
	REFUSED(j.c.size += sizeof(j.later), 0);
	REFUSED((j.c.size += sizeof(j.later), j.later[7] = 1), -E2BIG);
	REFUSED(j.c.dst.offset = 17 * OPERAND - 400, 0);
	assert_int_equal(neuron_core_compute(core, NULL, -1), -EINVAL);
	fake.nr_devices = 2;
	assert_int_equal(neuron_device_open(1, &other), 0);
	assert_int_equal(neuron_mem_alloc(other, 4096, NULL, &far), 0);
	REFUSED(j.src[0].mem = far, -EINVAL);
	neuron_mem_free(far);
	neuron_device_close(other);
	fake.nr_devices = 1;
#undef REFUSED
}

static void test_failures(void **state)
{
	unsigned int calls, resets;
	struct job j;

	(void)state;
	/* Whatever the driver refuses the first time, the next one works. */
	for (unsigned int n = 1; ; n++) {
		int ret;

		teardown(NULL);
		assert_int_equal(setup(NULL), 0);
		job_make(&j, NEURON_COMPUTE_ADD, 2, 100);
		fake_fail(n, 0, ENOSPC);
		calls = fake.calls;
		ret = neuron_core_compute(core, &j.c, -1);
		calls = fake.calls - calls;
		if (fake.fail_at) {
			fake.fail_at = 0;
			assert_int_equal(ret, 0);
			assert_true(n > 6);
			break;
		}
		assert_int_equal(ret, -ENOSPC);
		check(&j);
	}
	/* A queue that stops, and one that never ends. */
	resets = fake.dev[0].core[0].resets;
	fake.dma_error = NEURON_ISA_ERR_DMA_ACCESS;
	assert_int_equal(neuron_core_compute(core, &j.c, 60000), -EIO);
	check(&j);
	assert_int_equal(fake.dev[0].core[0].resets, resets + 1);
	fake.stuck = true;
	assert_int_equal(neuron_core_compute(core, &j.c, 20), -ETIMEDOUT);
	assert_null(fake.dev[0].queue[0][15].ring[0]);
	fake.stuck = false;
	check(&j);
	teardown(NULL);
	assert_int_equal(setup(NULL), 0);
	fake.map_fails = true;
	job_make(&j, NEURON_COMPUTE_ADD, 2, 100);
	assert_int_equal(neuron_core_compute(core, &j.c, -1), -ENOMEM);
	fake.map_fails = false;
	check(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_operations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_arguments, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

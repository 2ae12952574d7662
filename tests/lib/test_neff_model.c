// SPDX-License-Identifier: GPL-2.0-only
/*
 * The committed digit classifiers, executed on the host by the very code that
 * executes instructions in the software device, must give the bits of the
 * plain host implementation.  What a device adds (rings, FIFOs, threads) is
 * replaced by a small interpreter of semaphores and DMA entries that follows
 * libneuron/docs/loading.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "heldout.h"
#include "host_ref.h"
#include "neff_machine.h"

#define NR_RUNS		6

static void *read_whole(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	void *data;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	*size = (size_t)ftell(f);
	rewind(f);
	data = malloc(*size);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, *size, f), *size);
	fclose(f);
	return data;
}

static void check_model(const char *path)
{
	struct neuron_neff_error e = { .size = sizeof(e) };
	struct neuron_neff_opts o = { .size = sizeof(o), .verify_hash = true, .error = &e };
	static struct host_model host;
	const struct neuron_neff_var *x, *y;
	struct machine m;
	uint8_t *input, *output;
	struct neuron_neff *neff = NULL;
	size_t size, nr, batch, right = 0, total = 0;
	uint8_t *images;
	void *bytes;

	bytes = read_whole(path, &size);
	if (neuron_neff_open(bytes, size, &o, &neff))
		fail_msg("%s", e.text);
	free(bytes);
	assert_true(neff->executable);
	assert_int_equal(neff->nr_subgraphs, 1);
	assert_int_equal(host_model_init(&host, neff), 0);
	machine_init(&m, neff);
	input = machine_io(&m, "x");
	output = machine_io(&m, "y");
	x = neuron_neff_find_var(m.sg, "x");
	y = neuron_neff_find_var(m.sg, "y");
	assert_non_null(x);
	assert_non_null(y);
	assert_int_equal(x->ndim, 2);
	assert_int_equal(x->dtype, NEURON_NEFF_DT_UINT8);
	assert_int_equal(x->shape[1], HELDOUT_PIXELS);
	assert_int_equal(y->ndim, 2);
	assert_int_equal(y->dtype, host.int8 ? NEURON_NEFF_DT_INT32 : NEURON_NEFF_DT_FLOAT32);
	assert_int_equal(y->shape[0], x->shape[0]);
	batch = x->shape[0];

	images = heldout_read(MODELS "/mnist-heldout.npy.gz", &nr);
	assert_non_null(images);
	assert_int_equal(nr, 2000);
	for (size_t r = 0; r < NR_RUNS; r++) {
		const uint8_t *rows = images + r * batch * HELDOUT_ROW;

		for (size_t i = 0; i < batch; i++)
			memcpy(input + i * HELDOUT_PIXELS, rows + i * HELDOUT_ROW,
			       HELDOUT_PIXELS);
		machine_run(&m);
		for (size_t i = 0; i < batch; i++) {
			uint32_t want[HOST_CLASSES];
			const uint8_t *got = output + i * sizeof(want);

			host_model_run(&host, rows + i * HELDOUT_ROW, want);
			assert_memory_equal(got, want, sizeof(want));
			right += host_model_class(&host, want) ==
				 rows[i * HELDOUT_ROW + HELDOUT_PIXELS];
			total++;
		}
	}
	assert_true(right * 100 >= total * 95);
	machine_free(&m);
	free(images);
	neuron_neff_close(neff);
}

static void test_bf16(void **state)
{
	(void)state;
	check_model(MODELS "/mnist-bf16.neff");
}

static void test_int8(void **state)
{
	(void)state;
	check_model(MODELS "/mnist-int8.neff");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bf16),
		cmocka_unit_test(test_int8),
	};

	return cmocka_run_group_tests_name("the digit classifiers on the host", tests, NULL, NULL);
}

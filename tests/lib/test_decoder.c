// SPDX-License-Identifier: GPL-2.0-only
/*
 * The text decoder on a device whose instructions are executed by the code of the software
 * device: sequences join and leave, share blocks and are evicted, and every logit has the bits
 * that the plain host implementation gets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_driver.h"
#include "decoder.h"

static struct neuron_device *device;
static struct neuron_core *core;
static struct neuron_model *model;
static struct decoder_weights weights;

static int setup(void **state)
{
	struct neuron_core_opts co = { .size = sizeof(co) };
	struct neuron_neff_opts no = { .size = sizeof(no), .verify_hash = true };
	struct neuron_neff *neff;
	static char bytes[1 << 20];
	FILE *f = fopen(MODELS "/decoder.neff", "rb");
	size_t size;

	(void)state;
	assert_non_null(f);
	size = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	assert_int_equal(neuron_neff_open(bytes, size, &no, &neff), 0);
	assert_int_equal(decoder_ref_init(&weights, neff), 0);
	neuron_neff_close(neff);
	return neuron_device_open(0, &device) ?: neuron_core_open(device, 1, &co, &core) ?:
	       neuron_model_load(core, bytes, size, NULL, &model);
}

static int teardown(void **state)
{
	(void)state;
	neuron_model_unload(model);
	neuron_core_close(core);
	neuron_device_close(device);
	return fake.left_bytes || fake.left_handles || fake.dev[0].opens;
}

static struct decoder_result write_text(const struct decoder_job *job)
{
	struct decoder_result r;
	const char *what;
	int ret = decoder_write(core, model, &weights, job, &r, &what);

	if (ret)
		fail_msg("%s: %s", what, strerror(-ret));
	print_message("# %s\n# %s\n# %s\n", r.text[0], r.text[1], r.text[2]);
	print_message("# %u tokens, %u runs, shared %u, evictions %u, onboards %u\n",
		      (unsigned int)r.written, (unsigned int)r.runs, (unsigned int)r.shared,
		      (unsigned int)r.kv.evictions, (unsigned int)r.kv.onboards);
	assert_int_equal(r.identical, r.written);
	return r;
}

/* Twice: with enough memory and with a third of it. */
static void test_memory(void **state)
{
	struct decoder_job job = { .sequences = 20, .together = 14, .tokens = 40 };
	struct decoder_result all, third;

	(void)state;
	all = write_text(&job);
	assert_int_equal(all.kv.evictions, 0);
	assert_int_equal(all.postponed, 0);
	assert_true(all.shared >= 3);
	assert_true(all.kv.copies_on_write >= job.sequences);
	job.blocks = all.kv.allocated_blocks.peak / 3;
	third = write_text(&job);
	assert_int_equal(third.kv.blocks, job.blocks);
	assert_true(third.kv.evictions > 20);
	assert_true(third.kv.onboards > 20);
	assert_int_equal(third.written, all.written);
	assert_int_equal(third.digest, all.digest);
	assert_memory_equal(third.text, all.text, sizeof(all.text));
}

/* Alone, with others in the other slots, and to the end of the context. */
static void test_batch(void **state)
{
	const struct decoder_job alone = { .sequences = 1, .together = 1, .tokens = 67 };
	struct decoder_job more = { .sequences = 4, .together = 4, .tokens = 67 };
	struct decoder_result one, four;

	(void)state;
	one = write_text(&alone);
	four = write_text(&more);
	assert_string_equal(one.text[0], four.text[0]);
	assert_string_not_equal(four.text[0], four.text[1]);
	assert_true(four.runs < 2 * one.runs);
}

/* Nothing stays behind, wherever it ends. */
static void test_no_room(void **state)
{
	struct decoder_job job = { .sequences = 4, .together = 4, .tokens = 40, .blocks = 4 };
	struct decoder_result r;
	const char *what;

	(void)state;
	assert_int_equal(decoder_write(core, model, &weights, &job, &r, &what), -ENOBUFS);
	assert_string_equal(what, "no room for one sequence");
	job.tokens = 68;
	assert_int_equal(decoder_write(core, model, &weights, &job, &r, &what), -EINVAL);
	assert_string_equal(what, "number of tokens");
	job.tokens = 0;
	assert_int_equal(decoder_write(core, model, &weights, &job, &r, &what), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
	};

	return cmocka_run_group_tests_name("the text decoder", tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host memory of a load: a plan says what the library takes at least and what the model keeps,
 * and little more is what it takes at most.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <malloc.h>

#include <cmocka.h>

#include "fake_driver.h"
#include "test_neffs.h"

#define MIB	(1ull << 20)
/* Descriptions of variables and transfers, and what else has nothing to do with their sizes. */
#define LITTLE	MIB

static size_t now, peak;

void *counted_realloc(void *p, size_t n, size_t size);
void *counted_calloc(size_t n, size_t size);
void counted_free(void *p);

static void count(const void *p)
{
	now += malloc_usable_size((void *)(uintptr_t)p);
	peak = now > peak ? now : peak;
}

void *counted_realloc(void *p, size_t n, size_t size)
{
	size_t was = malloc_usable_size(p);
	void *out = reallocarray(p, n, size);

	if (out) {
		now -= was;
		count(out);
	}
	return out;
}

void *counted_calloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	count(p);
	return p;
}

void counted_free(void *p)
{
	now -= malloc_usable_size(p);
	free(p);
}

/* A constant of @large bytes, some of 100 KiB, and @descriptors of a byte each between others. */
static struct neff_bytes make_file(size_t large, unsigned int small, unsigned int descriptors,
				   bool to_output)
{
	char *def, *dma, names[64][24];
	struct neff_file files[66];
	uint8_t *data = malloc(large);
	size_t size, nr = 0;
	struct neff_bytes out;
	uint32_t x = 1;
	FILE *f;

	for (size_t i = 0; i < large; i++)
		data[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
	f = open_memstream(&def, &size);
	fprintf(f, "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {\"q\": {\"type\": \"data\"}},"
		   " \"var\": {\"a\": {\"type\": \"tmp-buf\", \"var_id\": 1, \"size\": %u},"
		   " \"b\": {\"type\": \"%s\", \"var_id\": 2, \"size\": %u},"
		   " \"k\": {\"type\": \"file\", \"var_id\": 3, \"size\": %zu, \"file_name\": \"k\"}",
		2 * descriptors, to_output ? "output" : "tmp-buf", 2 * descriptors, large);
	files[nr++] = (struct neff_file){ "sg00/k", (const char *)data, large };
	for (unsigned int i = 0; i < small; i++) {
		fprintf(f, ", \"k%u\": {\"type\": \"file\", \"var_id\": %u, \"size\": 102400, \"file_name\": \"k%u\"}",
			i, 4 + i, i);
		snprintf(names[i], sizeof(names[i]), "sg00/k%u", i);
		files[nr++] = (struct neff_file){ names[i], (const char *)data + i, 102400 };
	}
	fputs("}}", f);
	assert_int_equal(fclose(f), 0);
	assert_true(asprintf(&dma, "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"from\": \"a\","
			     " \"to\": \"b\", \"from_sizes\": [1, %u], \"from_steps\": [1, 2],"
			     " \"to_sizes\": [1, %u], \"to_steps\": [1, 2]}]}]}", descriptors,
			     descriptors) > 0);
	files[nr++] = (struct neff_file){ "sg00/SP.json", dma, 0 };
	out = make_neff("staging", def, files, nr);
	free(def);
	free(dma);
	free(data);
	return out;
}

struct took {
	size_t peak, kept;
	struct neuron_plan plan;
};

static struct took load(struct neff_bytes file)
{
	struct took took = { .plan.size = sizeof(took.plan) };
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_model *model;
	size_t before;

	assert_int_equal(neuron_device_open(0, &device), 0);
	assert_int_equal(neuron_core_open(device, 0, NULL, &core), 0);
	assert_int_equal(neuron_model_plan(neuron_device_geometry(device), file.data, file.size, NULL,
					   &took.plan), 0);
	before = peak = now;
	assert_int_equal(neuron_model_load(core, file.data, file.size, NULL, &model), 0);
	took.peak = peak - before;
	took.kept = now - before;
	print_message("# plan: %llu, of which %llu stay; it takes %zu, and keeps %zu\n",
		      (unsigned long long)took.plan.host_peak,
		      (unsigned long long)took.plan.host_kept, took.peak, took.kept);
	assert_true(took.plan.host_peak <= took.peak && took.plan.host_kept <= took.kept);
	neuron_model_unload(model);
	neuron_core_close(core);
	neuron_device_close(device);
	free(file.data);
	return took;
}

/* What is planned, and little more. */
static void assert_little_more(struct took took, uint64_t least)
{
	assert_true(took.plan.host_peak >= least && took.plan.host_peak < least + LITTLE);
	assert_true(took.peak < took.plan.host_peak + LITTLE);
	assert_true(took.kept < took.plan.host_kept + LITTLE);
}

static void test_constants(void **unused)
{
	(void)unused;
	neff_plain = false;
	assert_little_more(load(make_file(6 * MIB, 0, 10, false)), 6 * MIB);
}

/* They are joined in memory of their own while they are there. */
static void test_joined_constants(void **unused)
{
	(void)unused;
	neff_plain = false;
	assert_little_more(load(make_file(2 * MIB, 60, 10, false)), 2 * MIB + 2 * 60 * 102400);
}

static void test_plain_archive(void **unused)
{
	(void)unused;
	neff_plain = true;
	assert_little_more(load(make_file(6 * MIB, 0, 10, false)), 0);
	assert_little_more(load(make_file(2 * MIB, 60, 10, false)), 60 * 102400);
	neff_plain = false;
}

/* All of them at a time, beside the constants; what is joined is gone then. */
static void test_descriptors(void **unused)
{
	(void)unused;
	assert_little_more(load(make_file(2 * MIB, 5, 300000, false)),
			   2 * MIB + 5 * 102400 + 2 * 16 * 300000);
}

/* They are written again for other tensors; which ones, the plan does not count. */
static void test_descriptors_of_outputs(void **unused)
{
	struct took took;

	(void)unused;
	took = load(make_file(2 * MIB, 0, 100000, true));
	assert_in_range(took.plan.host_kept, 2 * 16 * 100000, 2 * 16 * 100000 + 4096);
	assert_in_range(took.plan.host_peak, took.plan.host_kept + 2 * MIB,
			took.plan.host_kept + 3 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_joined_constants),
		cmocka_unit_test(test_plain_archive),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_descriptors_of_outputs),
	};

	return cmocka_run_group_tests_name("staging", tests, NULL, NULL);
}

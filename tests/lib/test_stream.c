// SPDX-License-Identifier: GPL-2.0-only
/*
 * Models whose weights are larger than the state buffer, and constants that stay in it: packed by
 * neuron-pack, run on a device whose instructions are executed by the code of the software
 * device, compared with plain loops; and what is really copied.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

/* In a child; what it leaves allocated when it gives up is not of interest. */
#define main	pack_main
#define exit	_exit
#define pack	pack_state
#define options	pack_options
#include "../../libneuron/tools/neuron-pack.c"
#undef main
#undef exit
#undef pack
#undef options

#define FAKE_SBUF (24u << 20)
#include "fake_driver.h"

#define MIB_OF(n) ((size_t)(n) << 20)

static char dir[] = "/tmp/neuron-stream-XXXXXX";
static struct neuron_device *device;
static struct neuron_core *core;

static char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static uint32_t draw(void)
{
	static uint32_t seed = 1;

	seed = seed * 1664525 + 1013904223;
	return seed >> 16;
}

static float from_bf16(uint16_t u)
{
	uint32_t bits = (uint32_t)u << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* A small number that has no neighbours of its own in most sums. */
static uint16_t draw_bf16(void)
{
	return (uint16_t)(0x3c00 + draw() % 0x180) | (uint16_t)(draw() % 2 << 15);
}

static void *make_matrix(const char *name, bool bf16, uint32_t rows, uint32_t cols)
{
	size_t n = (size_t)rows * cols, size = n * (bf16 ? 2 : 1);
	char header[128];
	uint8_t *data = malloc(size);
	FILE *f = fopen(path_of(name), "wb");
	int length;

	assert_non_null(f);
	assert_non_null(data);
	for (size_t i = 0; i < n; i++) {
		uint16_t value = bf16 ? draw_bf16() : (uint16_t)draw();

		memcpy(data + i * (bf16 ? 2 : 1), &value, bf16 ? 2 : 1);
	}
	length = snprintf(header, sizeof(header),
			  "{'descr': '%s', 'fortran_order': False, 'shape': (%u, %u), }",
			  bf16 ? "<V2" : "|i1", rows, cols);
	fprintf(f, "\x93NUMPY\x01%c%c%c%-117s\n", 0, 118, 0, header);
	assert_true(length < 118);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
	return data;
}

/* Packed and loaded; @tensors and @layers as in neuron-pack(1), @sbuf bytes at most. */
static struct neuron_model *load(struct neuron_core *on, const char *tensors, const char *layers,
				 const char *sbuf)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &error };
	char in[128], out[128];
	struct neuron_model *model;
	size_t size;
	void *bytes;
	int status;
	FILE *f;
	pid_t pid;

	strcpy(in, path_of("d.json"));
	strcpy(out, path_of("d.neff"));
	f = fopen(in, "w");
	assert_non_null(f);
	fprintf(f, "{\"format\": \"neuron-pack-1\", \"name\": \"t\", \"tensors\": {%s}, \"layers\": [%s]}",
		tensors, layers);
	fclose(f);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		char *argv[] = {
			"neuron-pack", "-u", "-s", (char *)(uintptr_t)sbuf, "-o", out, in, NULL,
		};

		_exit(pack_main(7, argv));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	bytes = read_whole(out, &size, EXIT_FAILURE);
	if (neuron_model_load(on, bytes, size, &opts, &model))
		fail_msg("%s", error.text);
	free(bytes);
	unlink(out);
	return model;
}

/* Run it; bytes that DMA wrote into the state buffer. */
static uint64_t run(struct neuron_model *m, const void *x, size_t nx, void *y, size_t ny)
{
	struct neuron_mem_opts mem = { .size = sizeof(mem), .category = NEURON_MEM_TENSORS };
	struct neuron_run_result r = { .size = sizeof(r) };
	struct neuron_mem *in, *out;
	struct neuron_io io[2];
	uint64_t before = fake.sbuf_bytes;

	assert_int_equal(neuron_mem_alloc(device, nx, &mem, &in), 0);
	assert_int_equal(neuron_mem_alloc(device, ny, &mem, &out), 0);
	assert_int_equal(neuron_mem_write(in, 0, x, nx), 0);
	io[0] = (struct neuron_io){ "x", in, 0, nx };
	io[1] = (struct neuron_io){ "y", out, 0, ny };
	if (neuron_model_run(m, io, 2, 100000, &r))
		fail_msg("%s", r.text);
	assert_int_equal(neuron_mem_read(out, 0, y, ny), 0);
	neuron_mem_free(in);
	neuron_mem_free(out);
	return fake.sbuf_bytes - before;
}

static int setup(void **state)
{
	(void)state;
	return neuron_device_open(0, &device) ?: neuron_core_open(device, 1, NULL, &core);
}

static int teardown(void **state)
{
	(void)state;
	neuron_core_close(core);
	neuron_device_close(device);
	return fake.left_bytes || fake.left_handles || fake.dev[0].opens;
}

static int make_dir(void **state)
{
	(void)state;
	return !mkdtemp(dir);
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* y = x W, 64 MiB of weights: 8192 x 8192 in int8. */
static void test_large_int8(void **state)
{
	enum { N = 8192 };
	static int32_t y[N], want[N];
	static int8_t x[N];
	int8_t *w = make_matrix("w.npy", false, N, N);
	struct neuron_model *m;

	(void)state;
	m = load(core, "\"x\": {\"kind\": \"input\", \"dtype\": \"int8\", \"shape\": [1, 8192]},"
		 "\"w\": {\"kind\": \"constant\", \"file\": \"w.npy\"},"
		 "\"y\": {\"kind\": \"output\", \"dtype\": \"int32\", \"shape\": [1, 8192]}",
		 "{\"op\": \"matmul\", \"in\": \"x\", \"weights\": \"w\", \"out\": \"y\"}", "25165824");
	for (int i = 0; i < N; i++)
		x[i] = (int8_t)draw();
	for (size_t k = 0; k < N; k++)
		for (size_t j = 0; j < N; j++)
			want[j] += x[k] * w[k * N + j];
	/* All of it comes each time. */
	assert_int_equal(run(m, x, sizeof(x), y, sizeof(y)), MIB_OF(64) + N);
	assert_memory_equal(y, want, sizeof(y));
	assert_int_equal(run(m, x, sizeof(x), y, sizeof(y)), MIB_OF(64) + N);
	assert_memory_equal(y, want, sizeof(y));
	neuron_model_unload(m);
	free(w);
}

/* The same in bfloat16, 4096 x 8192, where the order of sums shows; rounded once more. */
static void test_large_bf16(void **state)
{
	enum { K = 4096, N = 8192 };
	static uint16_t x[K], y[N], want[N];
	static float sum[N];
	uint16_t *w = make_matrix("w.npy", true, K, N);
	struct neuron_model *m;

	(void)state;
	m = load(core, "\"x\": {\"kind\": \"input\", \"dtype\": \"bfloat16\", \"shape\": [1, 4096]},"
		 "\"w\": {\"kind\": \"constant\", \"file\": \"w.npy\"},"
		 "\"y\": {\"kind\": \"output\", \"dtype\": \"bfloat16\", \"shape\": [1, 8192]}",
		 "{\"op\": \"matmul\", \"in\": \"x\", \"weights\": \"w\", \"out\": \"y\"}", "25165824");
	for (int i = 0; i < K; i++)
		x[i] = draw_bf16();
	for (size_t k = 0; k < K; k++)
		for (size_t j = 0; j < N; j++)
			sum[j] += from_bf16(x[k]) * from_bf16(w[k * N + j]);
	for (size_t j = 0; j < N; j++)
		want[j] = to_bf16(sum[j]);
	assert_int_equal(run(m, x, sizeof(x), y, sizeof(y)), MIB_OF(64) + sizeof(x));
	assert_memory_equal(y, want, sizeof(y));
	neuron_model_unload(m);
	free(w);
}

/* 50 layers whose weights are three matrices, by turns; *@tensors and *@layers are allocated. */
static void describe_layers(bool bf16, char **tensors, char **layers)
{
	size_t size;
	FILE *t = open_memstream(tensors, &size), *l;

	fprintf(t, "\"x\": {\"kind\": \"input\", \"dtype\": \"%s\", \"shape\": [1, 2048]},"
		"\"y\": {\"kind\": \"output\", \"dtype\": \"%s\", \"shape\": [1, 2048]}",
		bf16 ? "bfloat16" : "int8", bf16 ? "bfloat16" : "int8");
	l = open_memstream(layers, &size);
	for (int i = 0; i < 50; i++) {
		char in[16], out[16];

		snprintf(in, sizeof(in), i ? "h%d" : "x", i);
		snprintf(out, sizeof(out), i < 49 ? "h%d" : "y", i + 1);
		fprintf(t, ",\"w%d\": {\"kind\": \"constant\", \"file\": \"w%d.npy\"}", i, i % 3);
		fprintf(l, "%s{\"op\": \"%s\", \"in\": \"%s\", \"weights\": \"w%d\", \"out\": \"%s%d\"%s},",
			i ? "," : "", "dense", in, i, "s", i,
			bf16 ? ", \"activation\": \"tanh\", \"dtype\": \"bfloat16\"" : "");
		if (bf16)
			fprintf(l, "{\"op\": \"identity\", \"in\": \"s%d\", \"out\": \"%s\","
				" \"dtype\": \"bfloat16\"}", i, out);
		else
			fprintf(l, "{\"op\": \"requantise\", \"in\": \"s%d\", \"scale\": 0.0005,"
				" \"out\": \"%s\"}", i, out);
	}
	fclose(t);
	fclose(l);
}

/* 50 layers of 4 MiB in int8: what fits stays, the others come each time. */
static void test_many_int8(void **state)
{
	enum { N = 2048 };
	static int8_t x[N], y[N], h[N];
	static int32_t sum[N];
	int8_t *w[3];
	char *tensors, *layers;
	struct neuron_model *m;
	uint64_t first, second;

	(void)state;
	for (int i = 0; i < 3; i++) {
		char name[16];

		snprintf(name, sizeof(name), "w%d.npy", i);
		w[i] = make_matrix(name, false, N, N);
	}
	describe_layers(false, &tensors, &layers);
	m = load(core, tensors, layers, "25165824");
	for (int i = 0; i < N; i++)
		h[i] = x[i] = (int8_t)draw();
	for (int layer = 0; layer < 50; layer++) {
		memset(sum, 0, sizeof(sum));
		for (size_t k = 0; k < N; k++)
			for (size_t j = 0; j < N; j++)
				sum[j] += h[k] * w[layer % 3][k * N + j];
		for (int j = 0; j < N; j++) {
			float f = rintf((float)sum[j] * 0.0005f);

			h[j] = f > 127 ? 127 : f < -128 ? -128 : (int8_t)f;
		}
	}
	first = run(m, x, sizeof(x), y, sizeof(y));
	assert_memory_equal(y, h, sizeof(y));
	second = run(m, x, sizeof(x), y, sizeof(y));
	assert_memory_equal(y, h, sizeof(y));
	assert_int_equal(first, 50 * MIB_OF(4) + N);
	/* 24 MiB have room for four beside two pieces of 2 MiB and what is in between. */
	assert_int_equal(second, 46 * MIB_OF(4) + N);
	neuron_model_unload(m);
	free(tensors);
	free(layers);
	for (int i = 0; i < 3; i++)
		free(w[i]);
}

/* A model whose constants fit: x + c. */
static struct neuron_model *load_small(struct neuron_core *on, uint16_t **c, const char *name)
{
	char tensors[256];

	*c = make_matrix(name, true, 16, 1024);
	snprintf(tensors, sizeof(tensors),
		 "\"x\": {\"kind\": \"input\", \"dtype\": \"bfloat16\", \"shape\": [16, 1024]},"
		 "\"c\": {\"kind\": \"constant\", \"file\": \"%s\"},"
		 "\"y\": {\"kind\": \"output\", \"dtype\": \"bfloat16\", \"shape\": [16, 1024]}", name);
	return load(on, tensors, "{\"op\": \"add\", \"in\": [\"x\", \"c\"], \"out\": \"y\"}", "25165824");
}

#define SMALL 16384

enum copied { KEPT, COPIED, EITHER };

/* Right, with or without a copy of the constants. */
static void run_small(struct neuron_model *m, const uint16_t *c, enum copied copied,
		      const char *when)
{
	static uint16_t x[SMALL], y[SMALL];
	uint64_t bytes;

	for (int i = 0; i < SMALL; i++)
		x[i] = draw_bf16();
	bytes = run(m, x, sizeof(x), y, sizeof(y));
	for (int i = 0; i < SMALL; i++)
		if (y[i] != to_bf16(from_bf16(x[i]) + from_bf16(c[i])))
			fail_msg("%s: element %d is wrong", when, i);
	if (copied != EITHER && bytes != (copied == COPIED ? 2 : 1) * sizeof(x))
		fail_msg("%s: %llu bytes", when, (unsigned long long)bytes);
}

static void test_stays(void **state)
{
	struct neuron_core_opts opts = { .size = sizeof(opts), .no_reset = true };
	struct neuron_model *a, *b, *c;
	struct neuron_core *second;
	uint16_t *of_a, *of_b, *of_c;

	(void)state;
	a = load_small(core, &of_a, "a.npy");
	b = load_small(core, &of_b, "b.npy");
	run_small(a, of_a, COPIED, "first run");
	run_small(a, of_a, KEPT, "second run");
	run_small(a, of_a, KEPT, "third run");
	run_small(b, of_b, COPIED, "another model");
	run_small(b, of_b, KEPT, "the other model again");
	run_small(a, of_a, COPIED, "behind another model");
	run_small(a, of_a, KEPT, "again");
	assert_int_equal(neuron_core_reset(core), 0);
	run_small(a, of_a, COPIED, "behind a reset");
	run_small(a, of_a, KEPT, "again");
	/* One that this core's structure does not know of, as when a process was gone. */
	fake_reset(&fake.dev[0], 1);
	neuron_core_close(core);
	neuron_model_unload(b);
	assert_int_equal(neuron_core_open(device, 1, &opts, &core), 0);
	b = load_small(core, &of_c, "b.npy");
	free(of_b);
	of_b = of_c;
	neuron_model_unload(a);
	free(of_a);
	a = load_small(core, &of_a, "a.npy");
	run_small(a, of_a, COPIED, "a reset unseen");
	run_small(a, of_a, KEPT, "again");
	/* Another structure for the same core. */
	assert_int_equal(neuron_core_open(device, 1, &opts, &second), 0);
	c = load_small(second, &of_c, "c.npy");
	run_small(c, of_c, COPIED, "by the other structure");
	neuron_model_unload(c);
	neuron_core_close(second);
	/* The notification queues are the other's. */
	assert_int_equal(neuron_core_reset(core), 0);
	run_small(a, of_a, COPIED, "behind the other structure");
	neuron_model_unload(a);
	free(of_c);
	a = load_small(core, &of_c, "a.npy");
	run_small(a, of_c, COPIED, "loaded again");
	neuron_model_unload(a);
	neuron_model_unload(b);
	free(of_a);
	free(of_b);
	free(of_c);
}

/* Whatever fails on the way from one form of the program to the other, what follows is right. */
static void test_fails(void **state)
{
	struct neuron_mem_opts mem = { .size = sizeof(mem), .category = NEURON_MEM_TENSORS };
	struct neuron_run_result r = { .size = sizeof(r) };
	uint16_t *of_a, *of_b;
	struct neuron_model *a, *b;
	struct neuron_mem *x;
	struct neuron_io io[2];
	unsigned int failures = 0;

	(void)state;
	a = load_small(core, &of_a, "a.npy");
	b = load_small(core, &of_b, "b.npy");
	assert_int_equal(neuron_mem_alloc(device, 4 * SMALL, &mem, &x), 0);
	io[0] = (struct neuron_io){ "x", x, 0, 2 * SMALL };
	io[1] = (struct neuron_io){ "y", x, 2 * SMALL, 2 * SMALL };
	/* Of a run that copies, then of one that does not. */
	for (int second = 0; second < 2; second++) {
		bool failed = true;

		for (unsigned int n = 1; failed; n++) {
			run_small(b, of_b, EITHER, "another model");
			if (second)
				run_small(a, of_a, COPIED, "before");
			fake_fail(n, 0, EIO);
			neuron_model_run(a, io, 2, 1000, &r);
			failed = fake.failed;
			fake_fail(0, 0, 0);
			failures += failed;
			run_small(a, of_a, EITHER, "behind a failure");
		}
	}
	assert_true(failures > 10);
	neuron_mem_free(x);
	neuron_model_unload(a);
	neuron_model_unload(b);
	free(of_a);
	free(of_b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_int8, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_bf16, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_int8, setup, teardown),
	};

	return cmocka_run_group_tests_name("large weights", tests, make_dir, remove_dir);
}

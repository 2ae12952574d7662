// SPDX-License-Identifier: GPL-2.0-only
/*
 * neuron-pack: what each layer computes, checked by executing the packed
 * program, and what a wrong description gets.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

#include "neff_machine.h"

static char dir[] = "/tmp/neff-pack-XXXXXX";
/* What may be used of the state buffer, and how often weights were brought in pieces. */
static const char *sbuf = "1048576";
static unsigned int pieces;

static void put_file(const char *name, const void *data, size_t size)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	fclose(f);
}

static void put_npy(const char *name, const char *descr, unsigned int rows, unsigned int cols,
		    const void *data, size_t size)
{
	char buf[4096];
	int n = snprintf(buf + 10, 200, "{'descr': '%s', 'fortran_order': False, "
			 "'shape': (%u, %u), }\n", descr, rows, cols);

	memcpy(buf, "\x93NUMPY\x01\x00", 8);
	buf[8] = (char)n;
	buf[9] = 0;
	assert_true((size_t)n + 10 + size <= sizeof(buf));
	memcpy(buf + 10 + n, data, size);
	put_file(name, buf, (size_t)n + 10 + size);
}

/* Run neuron-pack on a description; its exit status, its complaint in @text. */
static int run_pack(const char *description, char *text, size_t room)
{
	char in[128], out[128];
	int fds[2], status;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	put_file("d.json", description, strlen(description));
	snprintf(in, sizeof(in), "%s/d.json", dir);
	snprintf(out, sizeof(out), "%s/out.neff", dir);
	unlink(out);
	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		char *argv[] = {
			"neuron-pack", "-s", (char *)(uintptr_t)sbuf, "-o", out, in, NULL,
		};

		dup2(fds[1], 2);
		_exit(pack_main(6, argv));
	}
	close(fds[1]);
	while (used < room - 1 && (n = read(fds[0], text + used, room - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static struct neuron_neff *packed(const char *description)
{
	struct neuron_neff_error e = { .size = sizeof(e) };
	struct neuron_neff_opts o = { .size = sizeof(o), .verify_hash = true, .error = &e };
	static uint8_t bytes[1 << 16];
	struct neuron_neff *neff;
	char text[1024], out[128];
	size_t n;
	FILE *f;

	if (run_pack(description, text, sizeof(text)))
		fail_msg("%s", text);
	snprintf(out, sizeof(out), "%s/out.neff", dir);
	f = fopen(out, "rb");
	assert_non_null(f);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	if (neuron_neff_open(bytes, n, &o, &neff))
		fail_msg("%s", e.text);
	return neff;
}

/* A model with input x of 4 x 6 floats and output y. */
static void run_layers(const char *tensors, const char *layers, const float *x, void *y,
		       size_t size)
{
	struct neuron_neff *neff;
	struct machine m;
	char *text;

	assert_true(asprintf(&text, "{\"format\": \"neuron-pack-1\", \"name\": \"t\", \"tensors\": {"
			     "\"x\": {\"kind\": \"input\", \"shape\": [4, 6]},%s}, \"layers\": [%s]}",
			     tensors, layers) > 0);
	neff = packed(text);
	free(text);
	machine_init(&m, neff);
	memcpy(machine_io(&m, "x"), x, 24 * sizeof(float));
	machine_run(&m);
	memcpy(y, machine_io(&m, "y"), size);
	/* And again, in other orders: no run may spoil the next, and the order is nothing. */
	for (int i = 0; i < 50; i++) {
		memset(machine_io(&m, "y"), 0, size);
		machine_run(&m);
		assert_memory_equal(machine_io(&m, "y"), y, size);
	}
	pieces = m.pieces;
	machine_free(&m);
	neuron_neff_close(neff);
}

static void fill(float *x)
{
	for (int i = 0; i < 24; i++)
		x[i] = (float)((i * 37) % 23 - 11) / 8;
}

static void test_dense(void **state)
{
	float x[24], w[18], b[3] = { 0.5f, -1, 2 }, y[12], t[18];

	(void)state;
	fill(x);
	for (int i = 0; i < 18; i++)
		w[i] = (float)(i % 7 - 3) / 4;
	for (int i = 0; i < 6; i++)
		for (int j = 0; j < 3; j++)
			t[j * 6 + i] = w[i * 3 + j];
	put_npy("w.npy", "<f4", 6, 3, w, sizeof(w));
	put_npy("t.npy", "<f4", 3, 6, t, sizeof(t));
	put_npy("b.npy", "<f4", 1, 3, b, sizeof(b));
	for (int variant = 0; variant < 2; variant++) {
		run_layers(variant ?
			   "\"w\": {\"kind\": \"constant\", \"file\": \"t.npy\"},"
			   "\"b\": {\"kind\": \"constant\", \"file\": \"b.npy\"},"
			   "\"y\": {\"kind\": \"output\", \"shape\": [4, 3]}" :
			   "\"w\": {\"kind\": \"constant\", \"file\": \"w.npy\"},"
			   "\"b\": {\"kind\": \"constant\", \"file\": \"b.npy\"},"
			   "\"y\": {\"kind\": \"output\", \"shape\": [2, 2, 3]}",
			   variant ?
			   "{\"op\": \"dense\", \"in\": \"x\", \"weights\": \"w\", \"bias\": \"b\","
			   " \"transposed\": true, \"activation\": \"relu\", \"out\": \"y\"}" :
			   "{\"op\": \"matmul\", \"in\": \"x\", \"weights\": \"w\", \"out\": \"h\"},"
			   "{\"op\": \"add\", \"in\": [\"h\", \"b\"], \"out\": \"s\"},"
			   "{\"op\": \"relu\", \"in\": \"s\", \"out\": \"y\"}", x, y, sizeof(y));
		for (int i = 0; i < 4; i++)
			for (int j = 0; j < 3; j++) {
				float acc = 0;

				for (int k = 0; k < 6; k++)
					acc += x[i * 6 + k] * w[k * 3 + j];
				acc += b[j];
				assert_true(y[i * 3 + j] == (acc > 0 ? acc : 0));
			}
	}
}

/* Weights that do not fit, both ways round, for the sums and for what is done with them. */
static void test_streams(void **state)
{
	/* Room for pieces, and for nothing but constants that are needed for a while. */
	static const struct {
		const char *sbuf;
		bool streams;
	} room[] = { { "2304", true }, { "2048", false } };
	static const struct {
		const char *tensors, *layers;
	} cases[] = {
		{ "\"w\": {\"kind\": \"constant\", \"file\": \"sw.npy\"},",
		  "{\"op\": \"dense\", \"in\": \"x\", \"weights\": \"w\", \"bias\": \"b\","
		  " \"activation\": \"relu\", \"out\": \"h\"}," },
		{ "\"w\": {\"kind\": \"constant\", \"file\": \"st.npy\"},",
		  "{\"op\": \"dense\", \"in\": \"x\", \"weights\": \"w\", \"bias\": \"b\","
		  " \"transposed\": true, \"activation\": \"relu\", \"out\": \"h\"}," },
	};
	float x[24], w[192], t[192], v[128], b[32], y[16];

	(void)state;
	fill(x);
	for (int i = 0; i < 6; i++)
		for (int j = 0; j < 32; j++)
			t[j * 6 + i] = w[i * 32 + j] = (float)((i * 32 + j) * 29 % 41 - 20) / 16;
	for (int i = 0; i < 128; i++)
		v[i] = (float)(i * 31 % 19 - 9) / 8;
	for (int j = 0; j < 32; j++)
		b[j] = (float)(j % 5 - 2);
	put_npy("sw.npy", "<f4", 6, 32, w, sizeof(w));
	put_npy("st.npy", "<f4", 32, 6, t, sizeof(t));
	put_npy("sv.npy", "<f4", 32, 4, v, sizeof(v));
	put_npy("sb.npy", "<f4", 1, 32, b, sizeof(b));
	for (size_t c = 0; c < 2; c++) {
		char *tensors, *layers;

		assert_true(asprintf(&tensors, "%s \"v\": {\"kind\": \"constant\", \"file\":"
				     " \"sv.npy\"}, \"b\": {\"kind\": \"constant\", \"file\":"
				     " \"sb.npy\"}, \"y\": {\"kind\": \"output\", \"dtype\":"
				     " \"float32\", \"shape\": [4, 4]}", cases[c].tensors) > 0);
		assert_true(asprintf(&layers, "%s {\"op\": \"matmul\", \"in\": \"h\","
				     " \"weights\": \"v\", \"out\": \"y\"}", cases[c].layers) > 0);
		sbuf = "1048576";
		run_layers(tensors, layers, x, y, sizeof(y));
		assert_int_equal(pieces, 0);
		for (int i = 0; i < 4; i++)
			for (int j = 0; j < 4; j++) {
				float sum = 0;

				for (int k = 0; k < 32; k++) {
					float h = 0;

					for (int n = 0; n < 6; n++)
						h += x[i * 6 + n] * w[n * 32 + k];
					h += b[k];
					sum += (h > 0 ? h : 0) * v[k * 4 + j];
				}
				assert_true(y[i * 4 + j] == sum);
			}
		for (size_t k = 0; k < ARRAY_SIZE(room); k++) {
			float again[16];

			sbuf = room[k].sbuf;
			run_layers(tensors, layers, x, again, sizeof(again));
			assert_int_equal(pieces > 0, room[k].streams);
			assert_memory_equal(again, y, sizeof(y));
		}
		free(tensors);
		free(layers);
	}
	sbuf = "1048576";
}

static void test_elementwise(void **state)
{
	float x[24], y[24], col[4] = { 1, -2, 0.25f, 3 }, row[6] = { 1, 2, 3, -1, 0, 5 };

	(void)state;
	fill(x);
	put_npy("c.npy", "<f4", 4, 1, col, sizeof(col));
	put_npy("r.npy", "<f4", 1, 6, row, sizeof(row));
	run_layers("\"c\": {\"kind\": \"constant\", \"file\": \"c.npy\"},"
		   "\"r\": {\"kind\": \"constant\", \"file\": \"r.npy\"},"
		   "\"y\": {\"kind\": \"output\", \"shape\": [4, 6]}",
		   "{\"op\": \"mul\", \"in\": [\"x\", \"c\"], \"out\": \"a\"},"
		   "{\"op\": \"sub\", \"in\": [\"a\", \"r\"], \"out\": \"b\"},"
		   "{\"op\": \"max\", \"in\": [\"b\", \"x\"], \"out\": \"d\"},"
		   "{\"op\": \"min\", \"in\": \"d\", \"value\": 1.25, \"out\": \"e\"},"
		   "{\"op\": \"add\", \"in\": [\"e\", \"a\"], \"out\": \"y\"}", x, y, sizeof(y));
	for (int i = 0; i < 24; i++) {
		float a = x[i] * col[i / 6], d = a - row[i % 6];

		d = d > x[i] ? d : x[i];
		d = d < 1.25f ? d : 1.25f;
		assert_true(y[i] == d + a);
	}
}

static void test_activation(void **state)
{
	float x[24], y[24];

	(void)state;
	fill(x);
	run_layers("\"y\": {\"kind\": \"output\", \"shape\": [24]}",
		   "{\"op\": \"sigmoid\", \"in\": \"x\", \"out\": \"a\"},"
		   "{\"op\": \"tanh\", \"in\": \"a\", \"out\": \"b\"},"
		   "{\"op\": \"exp\", \"in\": \"b\", \"out\": \"c\"},"
		   "{\"op\": \"reshape\", \"in\": \"c\", \"shape\": [1, 24], \"out\": \"d\"},"
		   "{\"op\": \"identity\", \"in\": \"d\", \"out\": \"y\"}", x, y, sizeof(y));
	for (int i = 0; i < 24; i++) {
		double want = exp(tanh(1 / (1 + exp(-(double)x[i]))));

		assert_true(fabs(y[i] - want) < 1e-6);
	}
}

static void test_reduce_and_pool(void **state)
{
	float x[24], sums[4], y[8];

	(void)state;
	fill(x);
	run_layers("\"y\": {\"kind\": \"output\", \"shape\": [4]}",
		   "{\"op\": \"reduce\", \"reduce\": \"add\", \"in\": \"x\", \"out\": \"y\"}", x, sums,
		   sizeof(sums));
	for (int i = 0; i < 4; i++) {
		float acc = x[i * 6];

		for (int k = 1; k < 6; k++)
			acc += x[i * 6 + k];
		assert_true(sums[i] == acc);
	}
	/* Each row is an image of 3 x 2, windows of 3 x 1. */
	run_layers("\"y\": {\"kind\": \"output\", \"shape\": [4, 2]}",
		   "{\"op\": \"pool\", \"reduce\": \"max\", \"image\": [3, 2], \"window\": [3, 1],"
		   " \"in\": \"x\", \"out\": \"y\"}", x, y, sizeof(y));
	for (int i = 0; i < 4; i++)
		for (int c = 0; c < 2; c++) {
			const float *p = x + i * 6 + c;
			float best = p[0] > p[2] ? p[0] : p[2];

			assert_true(y[i * 2 + c] == (best > p[4] ? best : p[4]));
		}
	/* Images of 2 x 3, windows of 1 x 3: no second pass. */
	run_layers("\"y\": {\"kind\": \"output\", \"shape\": [4, 2]}",
		   "{\"op\": \"pool\", \"reduce\": \"min\", \"image\": [2, 3], \"window\": [1, 3],"
		   " \"in\": \"x\", \"out\": \"y\"}", x, y, sizeof(y));
	for (int i = 0; i < 8; i++) {
		const float *p = x + i * 3;
		float best = p[0] < p[1] ? p[0] : p[1];

		assert_true(y[i] == (best < p[2] ? best : p[2]));
	}
}

static void test_quantised(void **state)
{
	float x[24], scale[6] = { 10, 20, 30, 40, 50, 60 };
	int8_t w[12], q[24];
	int32_t y[8], b[2] = { 100, -7 };

	(void)state;
	fill(x);
	for (int i = 0; i < 12; i++)
		w[i] = (int8_t)(i * 21 - 120);
	put_npy("w8.npy", "|i1", 6, 2, w, sizeof(w));
	put_npy("b32.npy", "<i4", 1, 2, b, sizeof(b));
	put_npy("s.npy", "<f4", 1, 6, scale, sizeof(scale));
	run_layers("\"w\": {\"kind\": \"constant\", \"file\": \"w8.npy\"},"
		   "\"b\": {\"kind\": \"constant\", \"file\": \"b32.npy\"},"
		   "\"s\": {\"kind\": \"constant\", \"file\": \"s.npy\"},"
		   "\"y\": {\"kind\": \"output\", \"dtype\": \"int32\", \"shape\": [4, 2]}",
		   "{\"op\": \"requantise\", \"in\": \"x\", \"scale\": \"s\", \"out\": \"q\"},"
		   "{\"op\": \"dense\", \"in\": \"q\", \"weights\": \"w\", \"bias\": \"b\","
		   " \"out\": \"y\"}", x, y, sizeof(y));
	for (int i = 0; i < 24; i++) {
		float f = rintf(x[i] * scale[i % 6]);

		q[i] = f > 127 ? 127 : f < -128 ? -128 : (int8_t)f;
	}
	for (int i = 0; i < 8; i++) {
		int32_t acc = b[i % 2];

		for (int k = 0; k < 6; k++)
			acc += q[i / 2 * 6 + k] * w[k * 2 + i % 2];
		assert_int_equal(y[i], acc);
	}
	/* With relu and one scale for all; int8 to int16 saturates nothing. */
	int16_t y16[24];

	run_layers("\"y\": {\"kind\": \"output\", \"dtype\": \"int16\", \"shape\": [4, 6]}",
		   "{\"op\": \"requantise\", \"in\": \"x\", \"scale\": 100, \"relu\": true,"
		   " \"out\": \"q\"}, {\"op\": \"cast\", \"in\": \"q\", \"out\": \"y\"}", x, y16,
		   sizeof(y16));
	for (int i = 0; i < 24; i++) {
		float f = x[i] > 0 ? rintf(x[i] * 100) : 0;

		assert_int_equal(y16[i], f > 127 ? 127 : (int)f);
	}
}

static void test_members(void **state)
{
	struct neuron_neff *neff = packed(
		"{\"format\": \"neuron-pack-1\", \"name\": \"copy\","
		" \"header\": {\"version_major\": 2, \"pkg_version\": 1, \"tpb_per_node\": [4, 0, 255]},"
		" \"members\": {"
		"  \"kelf-0.json\": {\"text\": \"{\\\"graphs\\\": [{\\\"definition\\\":"
		" \\\"g/def.json\\\"}]}\"},"
		"  \"g/def.json\": {\"json\": {\"pe\": \"PE0.json\", \"pe_instr\": \"PE0.bin\","
		"   \"dma_queue\": {\"q\": {\"type\": \"data\"}}, \"var\": {"
		"    \"w\": {\"type\": \"file\", \"var_id\": 0, \"size\": 16, \"file_name\": \"w\"},"
		"    \"z\": {\"type\": \"file\", \"var_id\": 1, \"size\": 16, \"file_name\": \"z\"},"
		"    \"t\": {\"type\": \"tmp-buf\", \"var_id\": 2, \"size\": 16}}}},"
		"  \"g/PE0.json\": {\"json\": {\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": ["
		"   {\"from\": \"w\", \"to\": \"t\", \"to_steps\": [1], \"to_sizes\": [4]}]}]}},"
		"  \"g/PE0.bin\": {\"hex\": \"\"}, \"g/w\": {\"hex\": \"00fFA5"
		"0102030405060708090a0b0c0d\"}, \"g/z\": {\"zeros\": 16}, \"n\": {\"json\": 5}}}");
	const struct neuron_neff_var *w = neuron_neff_find_var(&neff->subgraphs[0], "w");

	(void)state;
	assert_int_equal(neff->header.version_major, 2);
	assert_int_equal(neff->header.pkg_version, 1);
	assert_int_equal(neuron_neff_cores(neff, 0), 4);
	assert_int_equal(neuron_neff_cores(neff, 2), 255);
	assert_int_equal(neff->header.tpb_per_node[1], 0);
	assert_int_equal(neff->header.tpb_per_node[3], 0);
	assert_int_equal(w->data_size, 16);
	assert_memory_equal(w->data, "\x00\xff\xa5\x01\x02", 5);
	assert_int_equal(neuron_neff_find_var(&neff->subgraphs[0], "z")->data_size, 16);
	assert_int_equal(neff->subgraphs[0].engines[NEURON_NEFF_PE].nr_dma, 1);
	neuron_neff_close(neff);
}

#define HEAD	"{\"format\": \"neuron-pack-1\", \"name\": \"t\", "
#define XY	"\"tensors\": {\"x\": {\"kind\": \"input\", \"shape\": [4, 6]}, " \
		"\"y\": {\"kind\": \"output\", \"shape\": [4, 6]}}, "

#define KELF(n, from, to, bytes) \
	"\"kelf-" n ".json\": {\"json\": {\"graphs\": [{\"definition\": \"k" n "/def.json\"}]}}," \
	"\"k" n "/def.json\": {\"json\": {\"sp\": \"SP.json\", \"dma_queue\": {\"q\": {\"type\":" \
	" \"data\"}}, \"var\": {\"" from "\": {\"type\": \"input\", \"var_id\": 0, \"size\": 16}," \
	" \"" to "\": {\"type\": \"output\", \"var_id\": 1, \"size\": 16}}}}," \
	"\"k" n "/SP.json\": {\"json\": {\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{" \
	"\"from\": \"" from "\", \"to\": \"" to "\", \"to_steps\": [1], \"to_sizes\": [" bytes "]}]}]}},"
#define NODE(n, from, to) \
	"{\"name\": \"n" n "\", \"kelf\": " n ", \"inputs\": [\"" from "\"], \"outputs\": [\"" to "\"]}"
/* A network of three nodes, without the program of the last. */
#define NET(bytes) \
	"\"members\": {" KELF("0", "x", "a", "16") KELF("1", "a", "b", bytes) \
	"\"neff.json\": {\"json\": {\"format\": \"neuron-pack-1\", \"edges\": [" \
	"{\"name\": \"x\", \"bytes\": 16, \"use\": \"input\"}, {\"name\": \"a\", \"bytes\": 16}," \
	"{\"name\": \"b\", \"bytes\": 16}, {\"name\": \"y\", \"bytes\": 16, \"use\": \"output\"}]," \
	"\"nodes\": [" NODE("0", "x", "a") "," NODE("1", "a", "b") "," NODE("2", "b", "y") "]}}}}"

/* A model that adds a number to elements of a type. */
#define I(dtype, value) \
	"\"tensors\": {\"x\": {\"kind\": \"input\", \"shape\": [2], \"dtype\": \"" dtype "\"}, " \
	"\"y\": {\"kind\": \"output\", \"shape\": [2], \"dtype\": \"" dtype "\"}}, " \
	"\"layers\": [{\"op\": \"add\", \"in\": \"x\", \"value\": " value ", \"out\": \"y\"}]}"

/* The least and the most of a type are values of it. */
static void test_immediates(void **state)
{
	static const char *const cases[] = {
		HEAD I("int8", "-128"), HEAD I("int8", "127"), HEAD I("uint8", "255"),
		HEAD I("int16", "-32768"), HEAD I("uint16", "65535"),
		HEAD I("int32", "-2147483648"), HEAD I("int32", "2147483647"),
		HEAD I("uint32", "4294967295"), HEAD I("float32", "-3.4e38"),
		HEAD I("bfloat16", "3.3e38"), HEAD I("float16", "-65519"),
	};
	static const struct {
		double value;
		uint32_t bits;
	} halves[] = {
		{ 0, 0 }, { 1, 0x3c00 }, { -0.1, 0xae66 }, { 65504, 0x7bff }, { 65519.9, 0x7bff },
		/* To even, and to the nearer one by less than a float tells. */
		{ 1 + 0x1p-11, 0x3c00 }, { 1 + 0x3p-11, 0x3c02 }, { 1 + 0x1p-11 + 0x1p-40, 0x3c01 },
		/* Denormals, and what rounds to the first that is none. */
		{ 0x1p-24, 1 }, { 0x1p-25, 0 }, { -0x3p-26, 0x8001 }, { 0x3p-25, 2 },
		{ 0x1p-14 - 0x1p-26, 0x400 }, { 0x1p-14, 0x400 }, { 1e-300, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		neuron_neff_close(packed(cases[i]));
	for (size_t i = 0; i < ARRAY_SIZE(halves); i++)
		assert_int_equal(immediate("", NEURON_NEFF_DT_FLOAT16, halves[i].value),
				 halves[i].bits);
}

static void test_float16(void **state)
{
	float x[24], y[24];

	(void)state;
	fill(x);
	run_layers("\"y\": {\"kind\": \"output\", \"shape\": [4, 6]}",
		   "{\"op\": \"cast\", \"in\": \"x\", \"dtype\": \"float16\", \"out\": \"h\"},"
		   "{\"op\": \"add\", \"in\": \"h\", \"value\": -0.375, \"out\": \"a\"},"
		   "{\"op\": \"cast\", \"in\": \"a\", \"dtype\": \"float32\", \"out\": \"y\"}",
		   x, y, sizeof(y));
	for (int i = 0; i < 24; i++)
		assert_true(y[i] == x[i] - 0.375f);
}

static void test_sbuf(void **state)
{
	static const char *const wrong[] = {
		"4294967360", "18446744073709551680", "33554433", "-1", " 64", "0", "64k", "",
	};
	const char *before = sbuf;
	char text[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		sbuf = wrong[i];
		assert_int_equal(run_pack("", text, sizeof(text)), 64);
		assert_non_null(strstr(text, "is not a number from 1 to 33554432"));
	}
	sbuf = before;
}

struct refusal {
	const char *text;
	const char *what;
};

static void check_refusals(const struct refusal *cases, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		char text[1024], out[128];
		struct stat st;
		int status = run_pack(cases[i].text, text, sizeof(text));

		if (status != 1 || !strstr(text, cases[i].what))
			fail_msg("case %zu: status %d, \"%s\" should contain \"%s\"", i, status, text,
				 cases[i].what);
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
		snprintf(out, sizeof(out), "%s/out.neff", dir);
		assert_int_not_equal(stat(out, &st), 0);
	}
}

/* A layer with a key that it does not have. */
#define LAYER(op, more, key) \
	{ HEAD XY "\"layers\": [{\"op\": \"" op "\", \"in\": \"x\", \"out\": \"y\", " more "}]}", \
	  "d.json:1: layers[0]: unknown key " key "\n" }

static void test_unknown_keys(void **state)
{
	static const struct refusal cases[] = {
		{ HEAD "\"x\": 1}", "description: unknown key x" },
		{ HEAD XY "\"layers\": [], \"members\": {}}", "description: unknown key tensors" },
		{ HEAD "\"header\": {\"version\": 1}, " XY "\"layers\": []}",
		  "header: unknown key version" },
		{ HEAD "\"tensors\": {\"x\": {\"kind\": \"input\", \"type\": \"int8\", \"shape\": [1]}}}",
		  "tensors.x: unknown key type" },
		{ HEAD "\"tensors\": {\"x\": {\"kind\": \"constant\", \"shape\": [1]}}}",
		  "tensors.x: unknown key shape" },
		LAYER("relu", "\"value\": 1", "value"),
		LAYER("cast", "\"type\": \"int8\"", "type"),
		LAYER("add", "\"scale\": 2", "scale"),
		LAYER("dense", "\"weights\": \"x\", \"activaton\": \"relu\"", "activaton"),
		LAYER("reduce", "\"reduce\": \"add\", \"window\": 2", "window"),
		LAYER("pool", "\"reduce\": \"add\", \"stride\": 2", "stride"),
		LAYER("requantise", "\"scale\": 1, \"Relu\": true", "Relu"),
		LAYER("reshape", "\"shape\": [24], \"dtype\": \"int8\"", "dtype"),
	};

	(void)state;
	check_refusals(cases, ARRAY_SIZE(cases));
}

static void test_refused(void **state)
{
	static const struct refusal cases[] = {
		{ "{", "d.json:1: " },
		{ "[]", "not a JSON object" },
		{ "{\"name\": \"t\"}", "format is missing" },
		{ "{\"format\": \"x\"}", "format is not neuron-pack-1" },
		{ "{\"format\": \"neuron-pack-1\"}", "name is missing" },
		{ HEAD "\"layers\": []}", "tensors is missing" },
		{ HEAD "\"tensors\": 5}", "tensors has the wrong type" },
		{ HEAD "\"tensors\": {\"x\": {\"kind\": \"input\"}}}", "tensors.x: shape is missing" },
		{ HEAD "\"tensors\": {\"x\": {\"kind\": \"input\", \"shape\": [0]}}}",
		  "a dimension is not a positive number" },
		{ HEAD "\"tensors\": {\"x\": {\"kind\": \"input\", \"shape\": [2147483647,"
		  " 2147483647, 2147483647]}}}", "too large" },
		{ HEAD "\"tensors\": {\"x\": {\"kind\": \"input\", \"shape\": [1],"
		  " \"dtype\": \"int64\"}}}", "cannot work on elements of type int64" },
		{ HEAD "\"tensors\": {\"x\": {\"kind\": \"constant\", \"file\": \"none.npy\"}}}",
		  "none.npy: No such file" },
		{ HEAD "\"tensors\": {\"x\": {\"kind\": \"constant\", \"file\": \"d.json\"}}}",
		  "d.json: not a .npy file" },
		{ HEAD "\"tensors\": {\"a/b\": {\"kind\": \"input\", \"shape\": [1]}}}",
		  "not a name for a tensor" },
		{ HEAD "\"header\": {\"lnc_size\": 2}, " XY "\"layers\": []}",
		  "header.lnc_size is 2; layers make a program for 1 core" },
		{ HEAD XY "\"layers\": []}", "no layer makes the output y" },
		{ HEAD XY "\"layers\": [{\"op\": \"fly\"}]}", "d.json:1: layers[0]: unknown op fly" },
		{ HEAD XY "\"layers\": [{\"op\": \"relu\", \"in\": \"z\", \"out\": \"y\"}]}",
		  "tensor z is not defined" },
		{ HEAD XY "\"layers\": [{\"op\": \"relu\", \"in\": \"x\", \"out\": \"x\"}]}",
		  "tensor x has a value already" },
		{ HEAD XY "\"layers\": [{\"op\": \"reduce\", \"reduce\": \"add\", \"in\": \"x\","
		  " \"out\": \"y\"}]}", "4 x 1 elements, y is declared with 4 x 6" },
		{ HEAD XY "\"layers\": [{\"op\": \"dense\", \"in\": \"x\", \"weights\": \"x\","
		  " \"out\": \"y\"}]}", "x has 6 columns, the weights take 4" },
		{ HEAD XY "\"layers\": [{\"op\": \"pool\", \"in\": \"x\", \"image\": [2, 2],"
		  " \"window\": [2, 2], \"reduce\": \"add\", \"out\": \"y\"}]}", "no 2 x 2 images" },
		{ HEAD XY "\"layers\": [{\"op\": \"cast\", \"in\": \"x\", \"out\": \"i\","
		  " \"dtype\": \"int8\"}, {\"op\": \"add\", \"in\": [\"x\", \"i\"], \"out\": \"y\"}]}",
		  "x is float32, i is int8" },
		{ HEAD XY "\"layers\": [{\"op\": \"cast\", \"in\": \"x\", \"out\": \"i\","
		  " \"dtype\": \"int8\"}, {\"op\": \"add\", \"in\": \"i\", \"value\": 0.5,"
		  " \"out\": \"y\"}]}", "0.5 is not a value of type int8" },
		{ HEAD I("int8", "128"), "128 is not a value of type int8" },
		{ HEAD I("int8", "-129"), "-129 is not a value of type int8" },
		{ HEAD I("uint8", "-1"), "-1 is not a value of type uint8" },
		{ HEAD I("uint16", "65536"), "65536 is not a value of type uint16" },
		{ HEAD I("uint32", "4294967296"), "4.29497e+09 is not a value of type uint32" },
		{ HEAD I("float32", "1e39"), "1e+39 is not a value of type float32" },
		{ HEAD I("float16", "65520"), "65520 is not a value of type float16" },
		{ HEAD I("float16", "-1e9"), "-1e+09 is not a value of type float16" },
		{ HEAD I("bfloat16", "3.4e38"), "3.4e+38 is not a value of type bfloat16" },
		{ HEAD "\"tensors\": {\"x\": {\"kind\": \"input\", \"shape\": [4, 6]},"
		  " \"y\": {\"kind\": \"output\", \"shape\": [4, 6]}, \"w\": {\"kind\": \"constant\","
		  " \"file\": \"e.npy\"}}, \"layers\": [{\"op\": \"dense\", \"in\": \"x\","
		  " \"weights\": \"w\", \"out\": \"y\"}]}", "tensors.w: e.npy has no elements" },
		{ HEAD "\"tensors\": {\"x\": {\"kind\": \"input\", \"shape\": [3000, 3000]},"
		  "\"y\": {\"kind\": \"output\", \"shape\": [9000000]}}, \"layers\": [{\"op\": \"relu\","
		  " \"in\": \"x\", \"out\": \"y\"}]}", "does not fit into the state buffer" },
		{ HEAD "\"members\": {\"x\": {\"hex\": \"123\"}}}", "not a hexadecimal string" },
		{ HEAD "\"members\": {\"x\": {}}}", "not an object with one of" },
		{ HEAD "\"members\": {\"../x\": {\"text\": \"\"}}}", "member ../x: Invalid argument" },
		{ HEAD "\"members\": {\"x\": {\"text\": \"\"}}}",
		  "not a valid NEFF: kelf-0.json: missing" },
		{ HEAD "\"header\": {\"tpb_per_node\": 4}, \"members\": {}}",
		  "header: tpb_per_node has the wrong type" },
		{ HEAD "\"header\": {\"tpb_per_node\": [1, 256]}, \"members\": {}}",
		  "header.tpb_per_node[1] is not a number in 0..255" },
		{ HEAD "\"header\": {\"tpb_per_node\": [1, -1]}, \"members\": {}}",
		  "header.tpb_per_node[1] is not a number in 0..255" },
		{ HEAD "\"header\": {\"tpb_per_node\": [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
		  "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]},"
		  " \"members\": {}}", "header.tpb_per_node has 65 entries, more than 64" },
		{ HEAD "\"members\": {}}", "not a valid NEFF: archive: no members" },
		{ HEAD NET("1024"), "not a valid NEFF: k1/SP.json: dma[0].desc[0]" },
		{ HEAD NET("4"), "not a valid NEFF: kelf-2.json: missing" },
	};

	(void)state;
	put_npy("e.npy", "<f4", 6, 0, "", 0);
	check_refusals(cases, ARRAY_SIZE(cases));
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const names[] = {
		"d.json", "out.neff", "w.npy", "t.npy", "b.npy", "c.npy", "r.npy", "w8.npy",
		"b32.npy", "s.npy", "sw.npy", "st.npy", "sv.npy", "sb.npy", "e.npy"
	};
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dense),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_elementwise),
		cmocka_unit_test(test_activation),
		cmocka_unit_test(test_reduce_and_pool),
		cmocka_unit_test(test_quantised),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_immediates),
		cmocka_unit_test(test_float16),
		cmocka_unit_test(test_sbuf),
		cmocka_unit_test(test_unknown_keys),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("neuron-pack", tests, setup, teardown);
}

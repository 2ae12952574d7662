// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packed models: weights larger than the state buffer that they may use come in pieces while
 * the engine computes, and constants that fit stay there, until another model, another process
 * or a reset has the core.  What was copied is seen in the rings.
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include <neuron/neuron.h>

#include "nrt_guest.h"

#define WIDE	2048
#define FEW	4096

static struct neuron_device *device;
static struct neuron_core *core;
static int8_t weights[WIDE * WIDE], constant[2][FEW];

static void put_matrix(const char *name, const int8_t *data, unsigned int rows, unsigned int cols)
{
	char header[119], dict[119];
	FILE *f = fopen(name, "w");

	snprintf(dict, sizeof(dict),
		 "{'descr': '|i1', 'fortran_order': False, 'shape': (%u, %u), }", rows, cols);
	snprintf(header, sizeof(header), "%-117.117s\n", dict);
	CHECK(f && fwrite("\x93NUMPY\x01\0\x76\0", 1, 10, f) == 10 && fwrite(header, 1, 118, f) == 118 &&
	      fwrite(data, 1, rows * cols, f) == rows * cols && !fclose(f), "%s", name);
}

/* Packed by neuron-pack, which may use @sbuf bytes. */
static struct neuron_model *load(const char *tensors, const char *layers, unsigned int sbuf)
{
	static char bytes[WIDE * WIDE + (1 << 20)];
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &error };
	struct neuron_model *model = NULL;
	char command[64];
	size_t size;
	FILE *f = fopen("s.json", "w");

	fprintf(f, "{\"format\": \"neuron-pack-1\", \"name\": \"s\", \"tensors\": {%s}, \"layers\": [%s]}",
		tensors, layers);
	fclose(f);
	snprintf(command, sizeof(command), "neuron-pack -u -s %u -o s.neff s.json", sbuf);
	CHECK(!system(command), "%s", command);
	f = fopen("s.neff", "r");
	size = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
	CHECK(f && !fclose(f) && !neuron_model_load(core, bytes, size, &opts, &model), "load: %s",
	      error.text);
	return model;
}

static struct neuron_model *load_small(unsigned int which)
{
	char tensors[256];

	snprintf(tensors, sizeof(tensors),
		 "\"x\": {\"kind\": \"input\", \"dtype\": \"int8\", \"shape\": [1, %u]},"
		 "\"c\": {\"kind\": \"constant\", \"file\": \"c%u.npy\"},"
		 "\"y\": {\"kind\": \"output\", \"dtype\": \"int8\", \"shape\": [1, %u]}", FEW, which, FEW);
	return load(tensors, "{\"op\": \"max\", \"in\": [\"x\", \"c\"], \"out\": \"y\"}", 1 << 20);
}

/* Descriptors that the queues of the core did in the last run. */
static unsigned int descriptors(void)
{
	const struct neuron_geometry *g = neuron_device_geometry(device);
	struct neuron_queue_state s = { .size = sizeof(s) };
	unsigned int sum = 0;

	for (uint32_t e = 0; e < g->engines_per_core; e++)
		for (uint32_t q = 0; q < g->nr_queues; q++)
			if (!neuron_queue_get_state(device, e, q, &s))
				sum += s.tx.head;
	return sum;
}

static bool run(struct neuron_model *m, const void *x, size_t nx, void *y, size_t ny)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };
	struct neuron_run_result r = { .size = sizeof(r) };
	struct neuron_mem *in, *out;
	struct neuron_io io[2];
	bool good;

	if (neuron_mem_alloc(device, nx, &opts, &in) || neuron_mem_alloc(device, ny, &opts, &out))
		return false;
	io[0] = (struct neuron_io){ "x", in, 0, nx };
	io[1] = (struct neuron_io){ "y", out, 0, ny };
	good = !neuron_mem_write(in, 0, x, nx) && !neuron_model_run(m, io, 2, 600000, &r) &&
	       !neuron_mem_read(out, 0, y, ny);
	if (!good)
		printf("# %s\n", r.text);
	neuron_mem_free(in);
	neuron_mem_free(out);
	return good;
}

/* Right; how many descriptors it took. */
static unsigned int run_small(struct neuron_model *m, unsigned int which, const char *when)
{
	static int8_t x[FEW], y[FEW];
	unsigned int wrong = 0, n = 0;
	bool ran;

	for (int i = 0; i < FEW; i++)
		x[i] = (int8_t)rand();
	ran = run(m, x, FEW, y, FEW);
	if (ran)
		n = descriptors();
	for (int i = 0; i < FEW; i++)
		wrong += y[i] != (x[i] > constant[which][i] ? x[i] : constant[which][i]);
	CHECK(ran && !wrong, "%s: %u wrong, %u descriptors", when, wrong, n);
	return n;
}

static void streams(void)
{
	static int32_t y[WIDE], want[WIDE];
	static int8_t x[WIDE];
	struct neuron_model *m;

	m = load("\"x\": {\"kind\": \"input\", \"dtype\": \"int8\", \"shape\": [1, 2048]},"
		 "\"w\": {\"kind\": \"constant\", \"file\": \"w.npy\"},"
		 "\"y\": {\"kind\": \"output\", \"dtype\": \"int32\", \"shape\": [1, 2048]}",
		 "{\"op\": \"matmul\", \"in\": \"x\", \"weights\": \"w\", \"out\": \"y\"}", 1 << 20);
	for (int i = 0; i < WIDE; i++)
		x[i] = (int8_t)rand();
	for (int k = 0; k < WIDE; k++)
		for (int j = 0; j < WIDE; j++)
			want[j] += x[k] * weights[k * WIDE + j];
	for (int i = 0; i < 2; i++) {
		CHECK(run(m, x, sizeof(x), y, sizeof(y)), "4 MiB of weights in 1 MiB");
		CHECK(!memcmp(y, want, sizeof(y)), "every bit");
	}
	neuron_model_unload(m);
}

static void stays(void)
{
	struct neuron_model *a = load_small(0), *b = load_small(1);
	unsigned int copied = run_small(a, 0, "first run"), kept;

	kept = run_small(a, 0, "second run");
	/* The constant, and its word for the semaphore. */
	CHECK(copied - kept == 2, "%u descriptors less", copied - kept);
	CHECK(run_small(a, 0, "third run") == kept, "as many");
	CHECK(run_small(b, 1, "another model") == copied, "it has to be copied");
	CHECK(run_small(a, 0, "behind another model") == copied, "copied");
	CHECK(run_small(a, 0, "again") == kept, "not copied");
	CHECK(!neuron_device_reset(device, 1) && !neuron_core_reset(core), "resets");
	CHECK(run_small(a, 0, "behind a reset") == copied, "copied");
	CHECK(!neuron_device_reset(device, 1), "a reset that the core is not asked for");
	CHECK(run_small(a, 0, "behind that") == copied, "copied");
	neuron_model_unload(a);
	CHECK(run_small(b, 1, "one that was there before") == copied, "copied");
	a = load_small(0);
	CHECK(run_small(a, 0, "loaded again") == copied, "copied");
	neuron_model_unload(a);
	neuron_model_unload(b);
}

static bool begin(void)
{
	CHECK(!neuron_device_open(0, &device) && !neuron_core_open(device, 0, NULL, &core),
	      "device, core");
	return !failed;
}

static void end(void)
{
	neuron_core_close(core);
	neuron_device_close(device);
}

/* What it leaves in the state buffer must be of no use to the next. */
static int other_process(void)
{
	struct neuron_model *m;

	if (!begin())
		return 1;
	m = load_small(1);
	run_small(m, 1, "another process");
	run_small(m, 1, "another process again");
	_exit(failed != 0);
}

int main(void)
{
	char dir[] = "/tmp/stream-XXXXXX";
	int status = -1;
	pid_t pid;

	CHECK(mkdtemp(dir) && !chdir(dir), "a directory");
	for (size_t i = 0; i < sizeof(weights); i++)
		weights[i] = (int8_t)rand();
	put_matrix("w.npy", weights, WIDE, WIDE);
	for (unsigned int c = 0; c < 2; c++) {
		for (int i = 0; i < FEW; i++)
			constant[c][i] = (int8_t)rand();
		put_matrix(c ? "c1.npy" : "c0.npy", constant[c], 1, FEW);
	}
	for (int i = 0; i < 2; i++) {
		pid = fork();
		if (!pid)
			return other_process();
		CHECK(waitpid(pid, &status, 0) == pid && !status, "a process that ends with the core");
	}
	if (!begin())
		return 1;
	stays();
	streams();
	end();
	CHECK(!chdir("/") && !system("rm -r /tmp/stream-*"), "cleaned");
	return failed != 0;
}

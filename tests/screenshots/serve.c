// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the pictures show at work: a server that runs a model, holds weights in the HBM of its core,
 * and in all HBMs keys and values of sequences, of which there are now more and now fewer.
 *
 * usage: serve MODEL.neff DEVICE CORE WEIGHTS KV	(MB of device memory)
 */
#define _GNU_SOURCE
#include <time.h>

#include <neuron/neuron.h>

#include "../../libneuron/examples/example.h"

#define MB		(1ull << 20)
#define SHARD		(512 * MB)	/* of the weights */
#define SEQUENCES	64
#define STEP		0.25		/* seconds, at least */
#define WAVE		160u		/* steps from few sequences to many, and back */
#define LONG		(4096 * MB)	/* keys and values of what is asked for now and then */
#define LONG_STEPS	70u

static struct {
	struct neuron_device *device;
	struct neuron_model *model;
	struct neuron_io io[16];
	size_t nr_io;
	uint32_t hbm, nr_hbms, nc, kv, batch;
	struct neuron_mem *seq[SEQUENCES];
	uint64_t limit, held;
	unsigned int drawn;
} serve;

/* The same order each time. */
static unsigned int draw(unsigned int below)
{
	serve.drawn = serve.drawn * 1664525 + 1013904223;
	return (serve.drawn >> 16) % below;
}

static struct neuron_mem *get(uint64_t bytes, enum neuron_mem_category category, uint32_t owner,
			      uint32_t hbm)
{
	const struct neuron_mem_opts opts = {
		.size = sizeof(opts), .hbm = hbm, .nc = serve.nc, .category = category, .owner = owner,
	};
	struct neuron_mem *mem;

	return neuron_mem_alloc(serve.device, bytes, &opts, &mem) ? NULL : mem;
}

static void load(const char *path)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &error };
	struct file neff = map_file(path);
	struct neuron_core *core;

	check(neuron_core_open(serve.device, serve.nc, NULL, &core), "core");
	if (neuron_model_load(core, neff.bytes, neff.size, &opts, &serve.model))
		errx(1, "%s: %s", path, error.text);
	serve.nr_io = neuron_model_tensor_count(serve.model);
	if (serve.nr_io > 16)
		errx(1, "%s: %zu tensors", path, serve.nr_io);
	for (size_t i = 0; i < serve.nr_io; i++) {
		struct neuron_tensor_info info = { .size = sizeof(info) };

		check(neuron_model_tensor_info(serve.model, i, &info), "tensor");
		serve.io[i].name = info.name;
		serve.io[i].bytes = info.bytes;
		serve.io[i].mem = get(info.bytes, NEURON_MEM_TENSORS, serve.batch, serve.hbm);
		if (!serve.io[i].mem)
			errx(1, "%s: no memory", info.name);
	}
}

static void end_sequence(unsigned int which)
{
	if (!serve.seq[which])
		return;
	serve.held -= neuron_mem_bytes(serve.seq[which]);
	neuron_mem_free(serve.seq[which]);
	serve.seq[which] = NULL;
}

/* A new sequence takes the place of an older one; others go until there is room. */
static void new_sequence(uint64_t limit)
{
	uint64_t bytes = (1 + draw(8)) * 64 * MB;
	unsigned int place = draw(SEQUENCES);

	end_sequence(place);
	while (serve.held + bytes > limit)
		end_sequence(draw(SEQUENCES));
	serve.seq[place] = get(bytes, NEURON_MEM_TENSORS, serve.kv, draw(serve.nr_hbms));
	if (serve.seq[place])
		serve.held += bytes;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void step(unsigned int number)
{
	struct neuron_run_result result = { .size = sizeof(result) };
	struct neuron_mem *mem = get((2 + draw(6)) * 32 * MB, NEURON_MEM_SCRATCHPAD_PRIVATE,
				     serve.batch, serve.hbm);
	unsigned int wave = (number + 40 * serve.nc) % WAVE;
	double end = now() + STEP;

	if (wave > WAVE / 2)
		wave = WAVE - wave;
	do {
		if (neuron_model_run(serve.model, serve.io, serve.nr_io, 60000, &result))
			errx(1, "%s", result.text);
	} while (now() < end);
	neuron_mem_free(mem);
	new_sequence(serve.limit / 2 + serve.limit / 2 * wave / (WAVE / 2));
	/* It may be refused, and then waits for a better time. */
	if (number % LONG_STEPS == LONG_STEPS - 1)
		neuron_mem_free(get(LONG, NEURON_MEM_TENSORS, serve.kv, serve.hbm));
}

int main(int argc, char **argv)
{
	const struct neuron_geometry *geometry;
	uint32_t weights;

	if (argc != 6)
		errx(2, "usage: serve MODEL.neff DEVICE CORE WEIGHTS KV");
	check(neuron_device_open((uint32_t)atoi(argv[2]), &serve.device), "device");
	geometry = neuron_device_geometry(serve.device);
	serve.nc = (uint32_t)atoi(argv[3]);
	serve.drawn = serve.nc;
	serve.hbm = geometry->core_hbm[serve.nc];
	serve.nr_hbms = geometry->nr_hbms;
	serve.limit = strtoull(argv[5], NULL, 10) * MB;
	check(neuron_owner_create(serve.device, "weights", &weights), "owner");
	check(neuron_owner_create(serve.device, "kv-cache", &serve.kv), "owner");
	check(neuron_owner_create(serve.device, "batch", &serve.batch), "owner");
	load(argv[1]);
	for (uint64_t left = strtoull(argv[4], NULL, 10) * MB; left >= SHARD; left -= SHARD)
		if (!get(SHARD, NEURON_MEM_CONSTANTS, weights, serve.hbm))
			errx(1, "weights: no memory");
	for (unsigned int i = 0;; i++)
		step(i);
}

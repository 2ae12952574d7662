// SPDX-License-Identifier: GPL-2.0-only
/*
 * What it costs to keep idle state in host memory: much of it, and the half of a decoder's
 * weights that does not run. One JSON object per line; ../nrt.py makes the table.
 *
 * usage: offload [quick]
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <neuron/neuron.h>

#define DECODER		"/usr/share/neuron/models/decoder.neff"
#define MIB		(UINT64_C(1) << 20)
#define PIECE		(512 * MIB)
/* What is not zero of a piece: the host, an emulated machine, has no 22 GB twice. */
#define WRITTEN		(4 * MIB)
#define PIECES		44
#define MAX_IO		64
#define TIMEOUT_MS	60000

static struct neuron_device *device;
static bool quick;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void must(const char *what, int ret)
{
	if (!ret)
		return;
	printf("not ok - %s: %s\n", what, strerror(-ret));
	exit(1);
}

static uint64_t held(void)
{
	struct neuron_hbm_stats s = { .size = sizeof(s) };
	uint64_t sum = 0;

	for (uint32_t i = 0; !neuron_hbm_get_stats(device, i, &s); i++)
		sum += s.own_process;
	return sum;
}

/* ---- idle state --------------------------------------------------------------------- */

static void fill(uint32_t *buf, uint32_t seed)
{
	for (size_t i = 0; i < WRITTEN / sizeof(*buf); i++)
		buf[i] = (uint32_t)i * 2654435761u + seed;
}

/* In the middle of a piece. */
static void work_idle(void)
{
	static struct neuron_mem *mem[PIECES];
	static uint32_t want[WRITTEN / 4], got[WRITTEN / 4];
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS,
				     .flags = NEURON_MEM_F_MOVABLE };
	uint32_t n = quick ? 4 : PIECES;
	uint64_t before = held(), full, left, out, back;

	for (uint32_t i = 0; i < n; i++) {
		o.nc = i & 1;
		o.hbm = i & 1;
		fill(want, i);
		must("idle state", neuron_mem_alloc(device, PIECE, &o, &mem[i]));
		must("write", neuron_mem_write(mem[i], PIECE / 2, want, WRITTEN));
	}
	full = held() - before;
	out = now();
	for (uint32_t i = 0; i < n; i++)
		must("offload", neuron_mem_offload(mem[i]));
	out = now() - out;
	left = held() - before;
	back = now();
	for (uint32_t i = 0; i < n; i++)
		must("onload", neuron_mem_onload(mem[i], NULL));
	back = now() - back;
	for (uint32_t i = 0; i < n; i++) {
		fill(want, i);
		must("read", neuron_mem_read(mem[i], PIECE / 2, got, WRITTEN));
		must("contents", memcmp(want, got, WRITTEN) ? -EIO : 0);
		neuron_mem_free(mem[i]);
	}
	printf("{\"work\":\"idle\",\"bytes\":%" PRIu64 ",\"written\":%" PRIu64 ",\"left\":%" PRIu64
	       ",\"out\":%" PRIu64 ",\"back\":%" PRIu64 "}\n",
	       full, (uint64_t)n * WRITTEN, left, out, back);
}

/* ---- a decoder in halves ------------------------------------------------------------- */

struct half {
	struct neuron_model *model;
	struct neuron_mem *mem;
	struct neuron_io io[MAX_IO];
	size_t nr_io;
};

static void half_load(struct neuron_core *core, const void *neff, size_t size, struct half *h)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS };
	uint64_t bytes = 0;

	must(DECODER, neuron_model_load(core, neff, size, NULL, &h->model));
	h->nr_io = neuron_model_tensor_count(h->model);
	must("tensors", h->nr_io > MAX_IO ? -E2BIG : 0);
	for (size_t i = 0; i < h->nr_io; i++) {
		struct neuron_tensor_info t = { .size = sizeof(t) };

		must("tensor", neuron_model_tensor_info(h->model, i, &t));
		h->io[i] = (struct neuron_io){ t.name, NULL, bytes, t.bytes };
		bytes += (t.bytes + 4095) & ~4095ull;
	}
	must("tensors", neuron_mem_alloc(device, bytes, &o, &h->mem));
	for (size_t i = 0; i < h->nr_io; i++)
		h->io[i].mem = h->mem;
}

static void half_run(struct half *h)
{
	must("run", neuron_model_run(h->model, h->io, h->nr_io, TIMEOUT_MS, NULL));
}

/* A step: both halves run, one after the other.  @offload: only the one that runs is there. */
static uint64_t step(struct half h[2], bool offload)
{
	uint64_t t = now();

	for (int i = 0; i < 2; i++) {
		if (offload)
			must("prefetch", neuron_model_prefetch(h[!i].model));
		half_run(&h[i]);
		if (offload)
			must("offload", neuron_model_offload(h[i].model));
	}
	return now() - t;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void work_halves(void)
{
	static uint8_t neff[1 << 20];
	FILE *f = fopen(DECODER, "rb");
	size_t size = f ? fread(neff, 1, sizeof(neff), f) : 0;
	uint64_t there = UINT64_MAX, away = UINT64_MAX, both, one;
	struct neuron_core *core;
	struct half h[2];

	must(DECODER, size ? 0 : -ENOENT);
	fclose(f);
	must("core", neuron_core_open(device, 0, NULL, &core));
	for (int i = 0; i < 2; i++)
		half_load(core, neff, size, &h[i]);
	both = held();
	must("offload", neuron_model_offload(h[1].model));
	one = held();
	must("onload", neuron_model_onload(h[1].model, NULL));
	/* In turns, so that what else the machine does meets both. */
	for (int round = 0; round < (quick ? 1 : 9); round++) {
		for (int i = 0; i < (quick ? 2 : 10); i++)
			there = least(there, step(h, false));
		must("offload", neuron_model_offload(h[1].model));
		for (int i = 0; i < (quick ? 2 : 10); i++)
			away = least(away, step(h, true));
		must("onload", neuron_model_onload(h[0].model, NULL));
		must("onload", neuron_model_onload(h[1].model, NULL));
	}
	printf("{\"work\":\"halves\",\"both\":%" PRIu64 ",\"one\":%" PRIu64 ",\"there\":%" PRIu64
	       ",\"away\":%" PRIu64 "}\n", both, one, there, away);
	for (int i = 0; i < 2; i++) {
		neuron_model_unload(h[i].model);
		neuron_mem_free(h[i].mem);
	}
	neuron_core_close(core);
}

int main(int argc, char **argv)
{
	quick = argc > 1 && !strcmp(argv[1], "quick");
	must("/dev/neuron0", neuron_device_open(0, &device));
	work_idle();
	work_halves();
	neuron_device_close(device);
	printf("ok - measured\n");
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * neuron-demo's text: a decoder writes several texts at once, with their keys and values in a
 * paged pool, first with as much memory as they want, then with a third of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder.h"
#include "demo.h"

/* More texts than slots, begun at different times. */
static const struct decoder_job texts = { .sequences = 10, .together = 8, .tokens = 32 };

struct session {
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_model *model;
	struct decoder_weights weights;
};

static bool done(int ret, const char *what)
{
	return !ret || report(false, "%s: %s", what, strerror(-ret));
}

/* Bytes of device memory that this process holds. */
static uint64_t held(struct neuron_device *device)
{
	struct neuron_hbm_stats s = { .size = sizeof(s) };
	uint64_t sum = 0;

	for (uint32_t i = 0; !neuron_hbm_get_stats(device, i, &s); i++)
		sum += s.own_process;
	return sum;
}

static bool load(struct session *s, const char *dir, uint32_t nc, uint64_t *before)
{
	struct neuron_core_opts co = { .size = sizeof(co) };
	struct neuron_neff_opts no = { .size = sizeof(no) };
	struct neuron_neff *neff = NULL;
	char path[4096];
	size_t size;
	void *bytes;
	bool good;

	snprintf(path, sizeof(path), "%s/decoder.neff", dir);
	bytes = demo_read_file(path, &size);
	good = bytes && done(neuron_neff_open(bytes, size, &no, &neff), "decoder.neff") &&
	       done(decoder_ref_init(&s->weights, neff), "decoder.neff") &&
	       done(neuron_core_open(s->device, nc, &co, &s->core), "neuron_core_open");
	neuron_neff_close(neff);
	if (good) {
		*before = held(s->device);
		good = done(neuron_model_load(s->core, bytes, size, NULL, &s->model),
			    "neuron_model_load");
	}
	free(bytes);
	return good;
}

static bool write_texts(struct session *s, const struct decoder_job *job, struct decoder_result *r)
{
	const char *what;
	int ret = decoder_write(s->core, s->model, &s->weights, job, r, &what);

	if (ret)
		return report(false, "%s: %s", what, strerror(-ret));
	printf("# %.1f tokens per second (%" PRIu64 " tokens of %u texts in %" PRIu64 " runs, %.2f s)\n",
	       (double)r->written / r->seconds, r->written, job->sequences, r->runs, r->seconds);
	printf("# KV blocks of %u tokens: %" PRIu64 " in the pool, %" PRIu64 " used at most, %"
	       PRIu64 " shared at most; %" PRIu64 " copies on write\n", r->kv.block_tokens,
	       r->kv.blocks, r->kv.allocated_blocks.peak, r->shared, r->kv.copies_on_write);
	printf("# evictions %" PRIu64 ", onboards %" PRIu64 ", %" PRIu64 " waited for room\n",
	       r->kv.evictions, r->kv.onboards, r->postponed);
	fflush(stdout);
	return report(r->identical == r->written,
		      "the logits of %" PRIu64 " of %" PRIu64
		      " tokens identical bit for bit to the host", r->identical, r->written);
}

static bool write_twice(struct session *s)
{
	struct decoder_job job = texts;
	struct decoder_result all, third;

	printf("# with enough memory\n");
	if (!write_texts(s, &job, &all))
		return false;
	for (unsigned int i = 0; i < DECODER_TEXTS; i++)
		printf("#   %s\n", all.text[i]);
	job.blocks = all.kv.allocated_blocks.peak / 3;
	printf("# with a third of it\n");
	if (!write_texts(s, &job, &third))
		return false;
	report(!all.kv.evictions && all.shared, "with enough memory blocks are shared, none evicted");
	report(third.kv.evictions && third.kv.onboards && third.kv.blocks == job.blocks,
	       "with a third of it they take turns on the device");
	return report(third.digest == all.digest && third.written == all.written &&
		      !memcmp(third.text, all.text, sizeof(all.text)),
		      "the same logits and texts both times");
}

bool demo_decoder(const char *dir, uint32_t device, uint32_t nc)
{
	struct session s = { NULL };
	uint64_t before = 0;
	bool good;

	printf("# --- decoder\n");
	good = done(neuron_device_open(device, &s.device), "neuron_device_open") &&
	       load(&s, dir, nc, &before) && write_twice(&s);
	neuron_model_unload(s.model);
	if (good)
		report(held(s.device) == before, "memory is back where it was after unload");
	neuron_core_close(s.core);
	neuron_device_close(s.device);
	return good;
}

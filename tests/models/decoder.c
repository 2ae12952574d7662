// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writing text on a device: sequences share the beginning, take turns in the slots of the
 * program, and have their keys and values in a pool of blocks. Those whose turn is over may be
 * evicted to host memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decoder.h"

#define PROMPT		"This program is free software: you can redistribute it and/or"
#define TURN		8u	/* tokens */
#define TIMEOUT_MS	60000
#define BLOCK_BYTES	(DECODER_BLOCK_TOKENS * DECODER_TOKEN_BYTES)

/* Memory of the program's own, by offset. */
#define NOTHING		0u	/* a block for places without one */
#define STEP		BLOCK_BYTES
#define LOGITS		(STEP + 256u)
#define UNUSED		(LOGITS + DECODER_SLOTS * DECODER_VOCABULARY * 4u)
#define WORDS_BYTES	(UNUSED + DECODER_SLOTS * DECODER_TOKEN_BYTES)

struct sequence {
	struct sequence *next;		/* in the queue */
	struct neuron_kv_seq *kv;
	struct decoder_past past;
	uint32_t number, token, left, turn;
	uint64_t random;
};

struct writer {
	struct neuron_model *model;
	const struct decoder_weights *weights;
	const struct decoder_job *job;
	struct decoder_result *result;
	const char **what;
	struct neuron_kv_pool *pool;
	struct neuron_mem *words;
	struct sequence *slot[DECODER_SLOTS];
	struct sequence *first, **last;		/* those that wait for a slot */
	float after_prompt[DECODER_VOCABULARY];
	uint32_t begun, open;
};

static int failed(struct writer *w, int error, const char *what)
{
	*w->what = what;
	return error;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void wait_for_slot(struct writer *w, struct sequence *s)
{
	s->next = NULL;
	*w->last = s;
	w->last = &s->next;
}

/* What follows, by the logits. */
static void choose(struct writer *w, struct sequence *s, const float *logits)
{
	s->token = decoder_ref_choose(logits, &s->random);
	if (s->number && s->number <= DECODER_TEXTS)
		w->result->text[s->number - 1][s->past.tokens] = (char)(' ' + s->token);
}

static struct sequence *next_in_queue(struct writer *w)
{
	struct sequence *s = w->first;

	if (s)
		w->first = s->next;
	if (!w->first)
		w->last = &w->first;
	return s;
}

static void drop(struct sequence *s)
{
	if (s)
		neuron_kv_seq_close(s->kv);
	free(s);
}

/* Where the blocks of a slot are, and the place of its token, which the sequence has room for. */
static int bind_slot(struct writer *w, unsigned int slot, struct neuron_io *blocks,
		     struct neuron_io *token)
{
	struct sequence *s = w->slot[slot];
	int ret = 0;

	*token = (struct neuron_io){ .mem = w->words,
				     .offset = UNUSED + slot * DECODER_TOKEN_BYTES };
	if (s)
		ret = neuron_kv_seq_locate(s->kv, s->past.tokens, &token->mem, &token->offset,
					   NULL);
	token->bytes = DECODER_TOKEN_BYTES;
	for (uint32_t i = 0; i < DECODER_BLOCKS && !ret; i++) {
		blocks[i] = (struct neuron_io){ .mem = w->words, .offset = NOTHING };
		if (s && i * DECODER_BLOCK_TOKENS <= s->past.tokens)
			ret = neuron_kv_seq_locate(s->kv, i * DECODER_BLOCK_TOKENS, &blocks[i].mem,
						   &blocks[i].offset, NULL);
		blocks[i].bytes = BLOCK_BYTES;
	}
	return ret;
}

/* A token of each slot. */
static int run(struct writer *w, float logits[DECODER_SLOTS][DECODER_VOCABULARY])
{
	enum { BLOCK0 = 1, TOKEN0 = BLOCK0 + DECODER_SLOTS * DECODER_BLOCKS,
	       OUTPUT = TOKEN0 + DECODER_SLOTS, NR_IO };
	struct neuron_run_result why = { .size = sizeof(why) };
	static char names[NR_IO][16];
	struct neuron_io io[NR_IO] = { 0 };
	uint32_t step[2][DECODER_SLOTS] = { 0 };
	int ret = 0;

	io[0] = (struct neuron_io){ .mem = w->words, .offset = STEP, .bytes = sizeof(step) };
	io[OUTPUT] = (struct neuron_io){ .mem = w->words, .offset = LOGITS,
					 .bytes = UNUSED - LOGITS };
	strcpy(names[0], "step");
	strcpy(names[OUTPUT], "logits");
	for (unsigned int i = 0; i < DECODER_SLOTS && !ret; i++) {
		struct neuron_io *blocks = &io[BLOCK0 + i * DECODER_BLOCKS];

		ret = bind_slot(w, i, blocks, &io[TOKEN0 + i]);
		for (unsigned int b = 0; b < DECODER_BLOCKS; b++)
			snprintf(names[BLOCK0 + i * DECODER_BLOCKS + b], sizeof(names[0]),
				 "block%u.%u", i, b);
		snprintf(names[TOKEN0 + i], sizeof(names[0]), "token%u", i);
		if (!w->slot[i])
			continue;
		step[0][i] = w->slot[i]->token;
		step[1][i] = w->slot[i]->past.tokens;
	}
	for (unsigned int i = 0; i < NR_IO; i++)
		io[i].name = names[i];
	w->result->runs++;
	return ret ?: neuron_mem_write(w->words, STEP, step, sizeof(step)) ?:
	       neuron_model_run(w->model, io, NR_IO, TIMEOUT_MS, &why) ?:
	       neuron_mem_read(w->words, LOGITS, logits, UNUSED - LOGITS);
}

/* Whether the host gets the same logits of a token. */
static void check(struct writer *w, struct sequence *s, const float *logits)
{
	struct decoder_result *r = w->result;
	float want[DECODER_VOCABULARY];
	uint64_t hash = s->number * 131071ull + s->past.tokens;
	double start = now();
	uint32_t bits;

	decoder_ref_step(w->weights, &s->past, s->token, want);
	r->written++;
	r->identical += !memcmp(want, logits, sizeof(want));
	for (unsigned int i = 0; i < DECODER_VOCABULARY; i++) {
		memcpy(&bits, &logits[i], sizeof(bits));
		hash = (hash ^ bits) * 1099511628211ull;
	}
	r->digest += hash;
	choose(w, s, logits);
	r->seconds -= now() - start;
}

/* The common beginning: one sequence, one token after the other. */
static int write_prompt(struct writer *w, struct sequence *s)
{
	float logits[DECODER_SLOTS][DECODER_VOCABULARY];
	int ret = neuron_kv_seq_open(w->pool, NEURON_KV_MAX_PRIORITY, &s->kv);

	w->slot[0] = s;
	for (const char *c = PROMPT; *c && !ret; c++) {
		s->token = (uint32_t)(*c - ' ');
		ret = neuron_kv_seq_append(s->kv, 1) ?: run(w, logits);
		if (!ret)
			check(w, s, logits[0]);
	}
	if (!ret)
		memcpy(w->after_prompt, logits[0], sizeof(w->after_prompt));
	w->slot[0] = NULL;
	return ret;
}

/* Sequences begin with what the prompt has, and go on in their own ways. */
static int begin(struct writer *w, const struct sequence *prompt)
{
	struct sequence *s = malloc(sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	memcpy(s, prompt, sizeof(*s));
	s->kv = NULL;
	s->number = ++w->begun;
	s->random = s->number * 0x9e3779b97f4a7c15ull;
	s->left = w->job->tokens - s->number * 5 % (w->job->tokens / 2 + 1);
	s->turn = TURN;
	if (s->number <= DECODER_TEXTS)
		strcpy(w->result->text[s->number - 1], PROMPT);
	choose(w, s, w->after_prompt);
	ret = neuron_kv_seq_fork(prompt->kv, prompt->past.tokens, 0, &s->kv) ?:
	      neuron_kv_seq_unpin(s->kv);
	if (ret) {
		drop(s);
		return ret;
	}
	w->open++;
	wait_for_slot(w, s);
	return 0;
}

/* Free slots get who waits, as long as there is room in device memory. */
static int fill_slots(struct writer *w)
{
	unsigned int busy = 0;

	for (unsigned int i = 0; i < DECODER_SLOTS; i++) {
		bool pinned = w->slot[i];
		struct sequence *s = pinned ? w->slot[i] : next_in_queue(w);
		int ret = s ? 0 : -ENOENT;

		w->slot[i] = NULL;
		if (s && !pinned)
			ret = neuron_kv_seq_pin(s->kv);
		if (!ret) {
			ret = neuron_kv_seq_append(s->kv, 1);
			if (ret)
				neuron_kv_seq_unpin(s->kv);
		}
		if (!ret) {
			w->slot[i] = s;
			busy++;
		} else if (s) {
			wait_for_slot(w, s);
			w->result->postponed++;
			if (ret != -ENOBUFS)
				return failed(w, ret, "keys and values");
		}
	}
	return busy ? 0 : failed(w, -ENOBUFS, "no room for one sequence");
}

/* After a run: who is complete leaves, who had a turn makes room for the next. */
static int empty_slot(struct writer *w, unsigned int i)
{
	struct sequence *s = w->slot[i];

	if (!--s->left) {
		w->slot[i] = NULL;
		w->open--;
		drop(s);
	} else if (!--s->turn) {
		w->slot[i] = NULL;
		s->turn = TURN;
		wait_for_slot(w, s);
		return neuron_kv_seq_unpin(s->kv);
	}
	return 0;
}

static int write_all(struct writer *w, struct sequence *prompt)
{
	float logits[DECODER_SLOTS][DECODER_VOCABULARY];
	struct neuron_kv_stats *kv = &w->result->kv;
	int ret = write_prompt(w, prompt);

	while (!ret && (w->open || w->begun < w->job->sequences)) {
		while (!ret && w->open < w->job->together && w->begun < w->job->sequences)
			ret = begin(w, prompt);
		ret = ret ?: fill_slots(w) ?: run(w, logits) ?:
		      neuron_kv_pool_get_stats(w->pool, kv);
		for (unsigned int i = 0; i < DECODER_SLOTS && !ret; i++) {
			if (!w->slot[i])
				continue;
			check(w, w->slot[i], logits[i]);
			ret = empty_slot(w, i);
		}
		if (w->result->shared < kv->shared_blocks)
			w->result->shared = kv->shared_blocks;
	}
	return ret;
}

static int open_memory(struct writer *w, struct neuron_core *core)
{
	const struct neuron_mem_opts words = {
		.size = sizeof(words), .nc = neuron_core_index(core),
		.category = NEURON_MEM_TENSORS,
	};
	const uint64_t most = (w->job->together + 1) * DECODER_BLOCKS;
	const struct neuron_kv_opts kv = {
		.size = sizeof(kv), .nc = neuron_core_index(core),
		.block_tokens = DECODER_BLOCK_TOKENS, .token_bytes = DECODER_TOKEN_BYTES,
		.max_tokens = (w->job->blocks ? w->job->blocks : most) * DECODER_BLOCK_TOKENS,
		.host_bytes = w->job->blocks ? most * BLOCK_BYTES : 0,
		.max_seq_tokens = DECODER_CONTEXT,
	};
	static const char zero[BLOCK_BYTES];
	struct neuron_device *device = neuron_core_device(core);

	return neuron_mem_alloc(device, WORDS_BYTES, &words, &w->words) ?:
	       neuron_mem_write(w->words, NOTHING, zero, sizeof(zero)) ?:
	       neuron_kv_pool_open(device, &kv, &w->pool);
}

int decoder_write(struct neuron_core *core, struct neuron_model *model,
		  const struct decoder_weights *weights, const struct decoder_job *job,
		  struct decoder_result *result, const char **what)
{
	struct writer w = { .model = model, .weights = weights, .job = job, .result = result,
			    .what = what, .last = &w.first };
	struct sequence *prompt = calloc(1, sizeof(*prompt)), *s;
	int ret = prompt ? 0 : -ENOMEM;

	*what = "text";
	if (!job->tokens || sizeof(PROMPT) - 1 + job->tokens > DECODER_CONTEXT)
		ret = failed(&w, -EINVAL, "number of tokens");
	memset(result, 0, sizeof(*result));
	result->kv.size = sizeof(result->kv);
	result->seconds = -now();
	ret = ret ?: open_memory(&w, core) ?: write_all(&w, prompt);
	result->seconds += now();
	while ((s = next_in_queue(&w)))
		drop(s);
	for (unsigned int i = 0; i < DECODER_SLOTS; i++)
		drop(w.slot[i]);
	drop(prompt);
	neuron_kv_pool_close(w.pool);
	neuron_mem_free(w.words);
	return ret;
}

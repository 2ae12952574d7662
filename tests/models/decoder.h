/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small transformer that writes text, a character at a time: several sequences at once on the
 * device (decoder.c), with keys and values in a pool of blocks, and one at a time in ordinary C
 * on the host (decoder_ref.c). The numbers are those of decoder_pack.py.
 */
#ifndef DECODER_H
#define DECODER_H

#include <stddef.h>
#include <stdint.h>

#include <neuron/neuron.h>

#define DECODER_SLOTS		4	/* sequences in a run */
#define DECODER_BLOCKS		8	/* of a sequence */
#define DECODER_BLOCK_TOKENS	16
#define DECODER_LAYERS		2
#define DECODER_HEADS		4
#define DECODER_WIDTH		64
#define DECODER_HIDDEN		256
#define DECODER_VOCABULARY	96	/* ASCII from the blank on */
#define DECODER_TEXTS		3	/* that are kept */
#define DECODER_CONTEXT		(DECODER_BLOCKS * DECODER_BLOCK_TOKENS)
#define DECODER_TOKEN_BYTES	(DECODER_LAYERS * 2 * DECODER_WIDTH * 2)	/* bf16 */

/* Weights, as in the file; bf16. */
struct decoder_weights {
	uint16_t embedding[DECODER_VOCABULARY][DECODER_WIDTH];
	uint16_t position[DECODER_CONTEXT][DECODER_WIDTH];
	struct {
		uint16_t q[DECODER_WIDTH][DECODER_WIDTH];
		uint16_t kv[DECODER_WIDTH][2 * DECODER_WIDTH];
		uint16_t o[DECODER_WIDTH][DECODER_WIDTH];
		uint16_t up[DECODER_WIDTH][DECODER_HIDDEN];
		uint16_t down[DECODER_HIDDEN][DECODER_WIDTH];
	} layer[DECODER_LAYERS];
};

/* What the host knows of a sequence: keys, then values, of each token and layer. */
struct decoder_past {
	uint32_t tokens;
	float kv[DECODER_CONTEXT][DECODER_LAYERS][2 * DECODER_WIDTH];
};

/* The weights of a NEFF; -EINVAL: it is another model. */
int decoder_ref_init(struct decoder_weights *w, const struct neuron_neff *neff);

/* One more token of a sequence, and the logits of the next. */
void decoder_ref_step(const struct decoder_weights *w, struct decoder_past *past, uint32_t token,
		      float *logits);

/* A token drawn by its logits; the likelier ones more often than their logits say. */
uint32_t decoder_ref_choose(const float *logits, uint64_t *random);

/**
 * struct decoder_job - text to be written
 * @sequences: their number
 * @together: how many are begun and not complete at a time
 * @tokens: that each of them writes; some write less
 * @blocks: of device memory for keys and values; 0: as many as are needed at most
 */
struct decoder_job {
	uint32_t sequences, together, tokens;
	uint64_t blocks;
};

/**
 * struct decoder_result - what came of it
 * @written: tokens that were written, with those of the prompt
 * @identical: of these, those whose logits have the bits that the host gets
 * @runs: of the program
 * @shared: blocks that sequences shared, the most at a time
 * @postponed: sequences that had to wait for room
 * @seconds: of all but the host's computation
 * @digest: of all logits, whatever their order in time
 * @kv: of the pool at the end
 * @text: of the sequences that were begun first, with the prompt
 */
struct decoder_result {
	uint64_t written, identical, runs, shared, postponed;
	double seconds;
	uint64_t digest;
	struct neuron_kv_stats kv;
	char text[DECODER_TEXTS][DECODER_CONTEXT + 2];
};

/* Write text; 0, or a negative error number, of which @what says more. */
int decoder_write(struct neuron_core *core, struct neuron_model *model,
		  const struct decoder_weights *w, const struct decoder_job *job,
		  struct decoder_result *result, const char **what);

#endif /* DECODER_H */

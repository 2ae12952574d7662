// SPDX-License-Identifier: GPL-2.0-only
/* The text decoder in ordinary C on the host, bit for bit what the device computes. */
#include <errno.h>
#include <string.h>

#include "decoder.h"
#include "host_ref.h"
#include "exact_float.h"
#include "../lib/fp_ref.h"

#define HEAD	(DECODER_WIDTH / DECODER_HEADS)

int decoder_ref_init(struct decoder_weights *w, const struct neuron_neff *neff)
{
	const struct neuron_neff_var *v = neuron_neff_find_var(&neff->subgraphs[0], "weights");

	/* What follows them is the device's. */
	if (!v || v->type != NEURON_NEFF_VAR_FILE || v->data_size < sizeof(*w))
		return -EINVAL;
	memcpy(w, v->data, sizeof(*w));
	return 0;
}

/* out = a w, in the order of the rows of w. */
static void product(const float *a, const uint16_t *w, size_t k, size_t n, float *out)
{
	memset(out, 0, n * sizeof(*out));
	for (size_t i = 0; i < k; i++)
		for (size_t j = 0; j < n; j++)
			out[j] += a[i] * from_bf16(w[i * n + j]);
}

/* As product(), rounded to bf16. */
static void narrow_product(const float *a, const uint16_t *w, size_t k, size_t n, float *out)
{
	product(a, w, k, n, out);
	for (size_t j = 0; j < n; j++)
		out[j] = round_bf16(out[j]);
}

static void add_product(const float *a, const uint16_t *w, size_t k, float *x)
{
	float out[DECODER_WIDTH];

	product(a, w, k, DECODER_WIDTH, out);
	for (size_t j = 0; j < DECODER_WIDTH; j++)
		x[j] += out[j];
}

/* Divided by the root of the mean square. */
static void norm(const float *x, float *out)
{
	float sum = x[0] * x[0];

	for (size_t j = 1; j < DECODER_WIDTH; j++)
		sum += x[j] * x[j];
	sum = ref_rsqrt(sum * (1.0f / DECODER_WIDTH) + 1e-5f);
	for (size_t j = 0; j < DECODER_WIDTH; j++)
		out[j] = round_bf16(x[j] * sum);
}

/* What a head takes from the tokens up to this one. The device gives the others a weight of 0. */
static void attend(const struct decoder_past *past, size_t layer, size_t head, const float *q,
		   float *out)
{
	float score[DECODER_CONTEXT], max = 0, sum = 0;
	size_t at = head * HEAD;

	for (size_t i = 0; i <= past->tokens; i++) {
		const float *k = past->kv[i][layer] + at;

		score[i] = 0;
		for (size_t j = 0; j < HEAD; j++)
			score[i] += q[at + j] * k[j];
		max = score[i] > max ? score[i] : max;
	}
	for (size_t i = 0; i <= past->tokens; i++) {
		score[i] = ref_exp(score[i] - max);
		sum += score[i];
	}
	sum = ref_reciprocal(sum);
	memset(out + at, 0, HEAD * sizeof(*out));
	for (size_t i = 0; i <= past->tokens; i++) {
		const float *v = past->kv[i][layer] + DECODER_WIDTH + at;
		float p = round_bf16(score[i] * sum);

		for (size_t j = 0; j < HEAD; j++)
			out[at + j] += p * v[j];
	}
	for (size_t j = 0; j < HEAD; j++)
		out[at + j] = round_bf16(out[at + j]);
}

void decoder_ref_step(const struct decoder_weights *w, struct decoder_past *past, uint32_t token,
		      float *logits)
{
	float x[DECODER_WIDTH], h[DECODER_WIDTH], q[DECODER_WIDTH], o[DECODER_WIDTH];
	float up[DECODER_HIDDEN];

	for (size_t j = 0; j < DECODER_WIDTH; j++)
		x[j] = from_bf16(w->embedding[token][j]) + from_bf16(w->position[past->tokens][j]);
	for (size_t i = 0; i < DECODER_LAYERS; i++) {
		norm(x, h);
		narrow_product(h, w->layer[i].q[0], DECODER_WIDTH, DECODER_WIDTH, q);
		narrow_product(h, w->layer[i].kv[0], DECODER_WIDTH, 2 * DECODER_WIDTH,
			       past->kv[past->tokens][i]);
		for (size_t head = 0; head < DECODER_HEADS; head++)
			attend(past, i, head, q, o);
		add_product(o, w->layer[i].o[0], DECODER_WIDTH, x);
		norm(x, h);
		product(h, w->layer[i].up[0], DECODER_WIDTH, DECODER_HIDDEN, up);
		for (size_t j = 0; j < DECODER_HIDDEN; j++)
			up[j] = round_bf16(up[j] > 0 ? up[j] : 0);
		add_product(up, w->layer[i].down[0], DECODER_HIDDEN, x);
	}
	norm(x, h);
	for (size_t c = 0; c < DECODER_VOCABULARY; c++) {
		logits[c] = 0;
		for (size_t j = 0; j < DECODER_WIDTH; j++)
			logits[c] += h[j] * from_bf16(w->embedding[c][j]);
	}
	past->tokens++;
}

uint32_t decoder_ref_choose(const float *logits, uint64_t *random)
{
	float max = logits[0], sum = 0, p[DECODER_VOCABULARY];
	uint32_t c;

	for (c = 1; c < DECODER_VOCABULARY; c++)
		max = logits[c] > max ? logits[c] : max;
	for (c = 0; c < DECODER_VOCABULARY; c++) {
		p[c] = ref_exp((logits[c] - max) * 1.4f);
		sum += p[c];
	}
	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	sum *= (float)(*random >> 40) * 0x1p-24f;
	for (c = 0; c < DECODER_VOCABULARY - 1 && sum >= p[c]; c++)
		sum -= p[c];
	return c;
}

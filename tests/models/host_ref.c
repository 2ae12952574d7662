// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <math.h>
#include <string.h>

#include "host_ref.h"
#include "exact_float.h"

/* Nearest int8, ties to even, saturating. */
static int8_t round_int8(float f)
{
	f = rintf(f);
	return f > 127 ? 127 : f < -128 ? -128 : (int8_t)f;
}

static const struct neuron_neff_var *constant(const struct neuron_neff *neff, const char *name,
					      enum neuron_neff_dtype dtype, size_t n)
{
	const struct neuron_neff_var *v = neuron_neff_find_var(&neff->subgraphs[0], name);

	if (!v || v->type != NEURON_NEFF_VAR_FILE || v->dtype != dtype ||
	    v->data_size != n * neuron_neff_dtype_size(dtype))
		return NULL;
	return v;
}

static int get(const struct neuron_neff *neff, const char *name, enum neuron_neff_dtype dtype,
	       size_t n, void *out)
{
	const struct neuron_neff_var *v = constant(neff, name, dtype, n);

	if (!v)
		return -EINVAL;
	memcpy(out, v->data, v->data_size);
	return 0;
}

static int get_bf16(const struct neuron_neff *neff, const char *name, size_t n, float *out)
{
	const struct neuron_neff_var *v = constant(neff, name, NEURON_NEFF_DT_BFLOAT16, n);
	uint16_t bits;

	if (!v)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		memcpy(&bits, (const char *)v->data + 2 * i, 2);
		out[i] = from_bf16(bits);
	}
	return 0;
}

int host_model_init(struct host_model *m, const struct neuron_neff *neff)
{
	const enum neuron_neff_dtype f32 = NEURON_NEFF_DT_FLOAT32;
	const struct neuron_neff_var *w1 = neuron_neff_find_var(&neff->subgraphs[0], "w1");
	size_t h;

	memset(m, 0, sizeof(*m));
	if (!w1 || w1->ndim != 2 || w1->shape[0] != HOST_POOLED ||
	    w1->shape[1] > HOST_MAX_HIDDEN)
		return -EINVAL;
	m->int8 = w1->dtype == NEURON_NEFF_DT_INT8;
	m->hidden = h = w1->shape[1];
	if (!m->int8)
		return get_bf16(neff, "w1", HOST_POOLED * h, m->w1) ||
		       get_bf16(neff, "w2", h * HOST_CLASSES, m->w2) ||
		       get(neff, "b1", f32, h, m->b1) ||
		       get(neff, "b2", f32, HOST_CLASSES, m->b2) ? -EINVAL : 0;
	return get(neff, "w1", NEURON_NEFF_DT_INT8, HOST_POOLED * h, m->w1i) ||
	       get(neff, "w2", NEURON_NEFF_DT_INT8, h * HOST_CLASSES, m->w2i) ||
	       get(neff, "b1", NEURON_NEFF_DT_INT32, h, m->b1i) ||
	       get(neff, "b2", NEURON_NEFF_DT_INT32, HOST_CLASSES, m->b2i) ||
	       get(neff, "sx", f32, HOST_POOLED, m->sx) ||
	       get(neff, "s1", f32, h, m->s1) ? -EINVAL : 0;
}

/* Sums of 2x2 pixels. */
static void pool(const uint8_t *image, int *out)
{
	for (int y = 0; y < 14; y++)
		for (int x = 0; x < 14; x++) {
			const uint8_t *p = image + 56 * y + 2 * x;

			out[14 * y + x] = p[0] + p[1] + p[28] + p[29];
		}
}

/* c = a b, products added in order of k; both roundings to float. */
static void product(const float *a, const float *b, float *c, size_t k, size_t n)
{
	memset(c, 0, n * sizeof(*c));
	for (size_t i = 0; i < k; i++)
		for (size_t j = 0; j < n; j++)
			c[j] += a[i] * b[i * n + j];
}

static void product_int8(const int8_t *a, const int8_t *b, int32_t *c, size_t k, size_t n)
{
	memset(c, 0, n * sizeof(*c));
	for (size_t i = 0; i < k; i++)
		for (size_t j = 0; j < n; j++)
			c[j] += a[i] * b[i * n + j];
}

static void run_bf16(const struct host_model *m, const int *sums, float *out)
{
	float x[HOST_POOLED], h[HOST_MAX_HIDDEN];

	for (int i = 0; i < HOST_POOLED; i++)
		x[i] = round_bf16((float)sums[i]);
	product(x, m->w1, h, HOST_POOLED, m->hidden);
	for (size_t j = 0; j < m->hidden; j++) {
		h[j] += m->b1[j];
		h[j] = round_bf16(h[j] > 0 ? h[j] : 0);
	}
	product(h, m->w2, out, m->hidden, HOST_CLASSES);
	for (size_t j = 0; j < HOST_CLASSES; j++)
		out[j] += m->b2[j];
}

static void run_int8(const struct host_model *m, const int *sums, int32_t *out)
{
	int8_t x[HOST_POOLED], a[HOST_MAX_HIDDEN];
	int32_t h[HOST_MAX_HIDDEN];

	for (int i = 0; i < HOST_POOLED; i++)
		x[i] = round_int8((float)sums[i] * m->sx[i]);
	product_int8(x, m->w1i, h, HOST_POOLED, m->hidden);
	for (size_t j = 0; j < m->hidden; j++) {
		float f = (float)(h[j] + m->b1i[j]);

		a[j] = round_int8((f > 0 ? f : 0) * m->s1[j]);
	}
	product_int8(a, m->w2i, out, m->hidden, HOST_CLASSES);
	for (size_t j = 0; j < HOST_CLASSES; j++)
		out[j] += m->b2i[j];
}

void host_model_run(const struct host_model *m, const uint8_t *image, void *out)
{
	int sums[HOST_POOLED];

	pool(image, sums);
	if (m->int8)
		run_int8(m, sums, out);
	else
		run_bf16(m, sums, out);
}

int host_model_class(const struct host_model *m, const void *out)
{
	const float *f = out;
	const int32_t *i = out;
	int best = 0;

	for (int j = 1; j < HOST_CLASSES; j++)
		if (m->int8 ? i[j] > i[best] : f[j] > f[best])
			best = j;
	return best;
}

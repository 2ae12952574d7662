/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The digit classifier in ordinary C on the host, bit for bit what the device
 * computes (order of operations: kmod/emu/ISA.md).  Only the constants come
 * from the NEFF; nothing here knows the instruction set.
 *
 * Compile with -ffp-contract=off and without -ffast-math.
 */
#ifndef HOST_REF_H
#define HOST_REF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <neuron/neff.h>

#define HOST_PIXELS	784
#define HOST_POOLED	196
#define HOST_CLASSES	10
#define HOST_MAX_HIDDEN	256

static inline float from_bf16(uint16_t v)
{
	uint32_t u = (uint32_t)v << 16;
	float f;

	memcpy(&f, &u, 4);
	return f;
}

/* Nearest bfloat16, ties to even, of a finite number. */
static inline float round_bf16(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	u += 0x7fff + (u >> 16 & 1);
	u &= 0xffff0000;
	memcpy(&f, &u, 4);
	return f;
}

/**
 * struct host_model - constants of a variant, as float or int
 * @int8: which of the two variants; its outputs are int32, the other's float
 * @hidden: units of the hidden layer
 */
struct host_model {
	int int8;
	size_t hidden;
	float w1[HOST_POOLED * HOST_MAX_HIDDEN], b1[HOST_MAX_HIDDEN];
	float w2[HOST_MAX_HIDDEN * HOST_CLASSES], b2[HOST_CLASSES];
	int8_t w1i[HOST_POOLED * HOST_MAX_HIDDEN], w2i[HOST_MAX_HIDDEN * HOST_CLASSES];
	int32_t b1i[HOST_MAX_HIDDEN], b2i[HOST_CLASSES];
	float sx[HOST_POOLED], s1[HOST_MAX_HIDDEN];
};

/* Take the constants of a parsed NEFF; 0, or -EINVAL if it is another model. */
int host_model_init(struct host_model *m, const struct neuron_neff *neff);

/* Outputs of one image: 10 float or int32. */
void host_model_run(const struct host_model *m, const uint8_t *image, void *out);

/* Index of the largest of 10 outputs, the first one if there are several. */
int host_model_class(const struct host_model *m, const void *out);

#endif /* HOST_REF_H */

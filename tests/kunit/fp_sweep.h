/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A fixed sequence of operands and a fingerprint of the results, integers
 * only; include it after fp.h.  test_fp.c computes the fingerprint with the FPU;
 * the KUnit test, which has none, has to get the same from the integer routines
 * in the kernel.
 */
#ifndef FP_SWEEP_H
#define FP_SWEEP_H

#define FP_SWEEP_STEPS	20000u
#define FP_SWEEP_SUM	0x8076b9a1u

/* xorshift, period 2^64 - 1 */
static inline __u64 fp_sweep_next(__u64 *state)
{
	__u64 x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x;
}

/*
 * A number with interesting parts more often than chance would have it:
 * exponents 0, 255 and near 127, fractions with few bits or long runs.
 */
static inline __u32 fp_sweep_operand(__u64 *state)
{
	__u64 r = fp_sweep_next(state);
	__u32 x = (__u32)r;

	switch ((r >> 32) & 7) {
	case 0:			/* subnormal or zero */
		x &= 0x807fffff;
		break;
	case 1:			/* near 1: sums and products meet */
		x = (x & 0x87ffffff) | 0x38000000;
		break;
	case 2:			/* few bits: exact results and ties */
		x &= 0xfff80001;
		break;
	case 3:			/* runs of ones: carries */
		x |= 0x007ffff0;
		break;
	case 4:
		if (!((r >> 35) & 7))
			x |= 0x7f800000;	/* infinite or NaN */
		if (!((r >> 38) & 7))
			x &= 0xff800000;
		break;
	}
	if (!((r >> 41) & 31))
		x &= 0x80000000;
	return x;
}

static inline __u32 fp_sweep_add(__u32 sum, __u32 x)
{
	/* FNV-1a, a word at a time */
	return (sum ^ x) * 16777619u;
}

/* One multiply-accumulate. */
static inline __u32 fp_sweep_mac(__u32 acc, __u32 a, __u32 b)
{
	__u8 bytes[4];

	emu_put32(bytes, b);
	emu_f32_vmac(&acc, a, bytes, 0, 1);
	return acc;
}

#endif /* FP_SWEEP_H */

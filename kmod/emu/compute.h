/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arithmetic of the compute operations of DMA, ISA.md section 11.
 *
 * Pure functions without locks or memory allocation: any context will do.
 */
#ifndef EMU_COMPUTE_H
#define EMU_COMPUTE_H

#include "fp.h"

/* Elements worked on at a time. */
#define EMU_COMPUTE_STEP	64u

/**
 * enum emu_form - the form in which elements are worked on
 * @EMU_FORM_FLOAT: fp32, its bits in the low half
 * @EMU_FORM_SINT: int64
 * @EMU_FORM_UINT: uint64
 */
enum emu_form {
	EMU_FORM_FLOAT,
	EMU_FORM_SINT,
	EMU_FORM_UINT,
};

/**
 * struct emu_compute - what a packet computes
 * @op: enum neuron_isa_dma_op
 * @arg_type: enum neuron_isa_dma_arg
 * @dst_dtype: element type of the result
 * @nr_src: sources, 1 to NEURON_ISA_DMA_MAX_SOURCES
 * @src_dtype: their element types
 * @arg: the argument
 */
struct emu_compute {
	u8 op;
	u8 arg_type;
	u8 dst_dtype;
	u8 nr_src;
	u8 src_dtype[NEURON_ISA_DMA_MAX_SOURCES];
	u32 arg;
};

/**
 * struct emu_lane - a step of work: up to EMU_COMPUTE_STEP elements
 * @raw: elements of a source, as they are in memory
 * @v: the same as numbers
 * @acc: result of the sources so far
 */
struct emu_lane {
	u8 raw[8 * EMU_COMPUTE_STEP];
	u64 v[EMU_COMPUTE_STEP];
	u64 acc[EMU_COMPUTE_STEP];
};

u32 emu_dma_dtype_size(u8 dtype);
int emu_compute_check(const struct emu_compute *c);
void emu_compute_source(const struct emu_compute *c, struct emu_lane *lane, u32 src, u32 n);
void emu_compute_result(const struct emu_compute *c, struct emu_lane *lane, void *dst, u32 n);
int emu_transpose_shape(const struct emu_compute *c, u32 bytes, u32 *rows, u32 *cols, u32 *size);
void emu_transpose(void *dst, const void *src, u32 rows, u32 cols, u32 size);

#endif /* EMU_COMPUTE_H */

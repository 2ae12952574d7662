/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arithmetic of the software device on the vector registers of the processor: the same
 * bits as fp.c makes with integers.
 *
 * simd_code.h is the code, written once in the vector types of the compiler.  Each file
 * simd_*.c compiles it for one instruction set, with compiler flags of its own, and has
 * one struct emu_simd.  Its functions are called between emu_fpu_begin() and
 * emu_fpu_end() only; they call nothing outside of their file and touch nothing but
 * what their argument points to.
 */
#ifndef EMU_SIMD_H
#define EMU_SIMD_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include "shim.h"
#endif

/* A piece of a matrix product: columns, rows, and units of k worked on at a time. */
#define EMU_TILE_COLS	64u
#define EMU_TILE_ROWS	128u
#define EMU_TILE_UNITS	256u

/* Rows of a that are packed together; the most that one of the kernels takes. */
#define EMU_TILE_PACKED	8u

/**
 * struct emu_tile_memory - memory for a matrix product under way
 * @acc: sums
 * @b: elements of b as fp32, or pairs of int8 as pairs of int16, in the order of use
 * @a: the same of some rows of a
 */
struct emu_tile_memory {
	u32 acc[EMU_TILE_ROWS * EMU_TILE_COLS];
	u32 b[EMU_TILE_UNITS * EMU_TILE_COLS];
	u32 a[EMU_TILE_PACKED * EMU_TILE_UNITS];
} __aligned(64);

/**
 * struct emu_tile - add a part of k to some rows and columns of a matrix product
 * @mem: memory of the product; @mem->acc has the sums of the rows, from the first of
 *	 these on, @mem->b is kept from one call to the next
 * @a: first element of the first row
 * @b: first element of the first row of this part, or of the first column if @trans
 * @c: first element of the result
 * @a_stride: bytes from row to row
 * @b_stride: bytes from row to row of b as it is stored
 * @c_stride: bytes from row to row
 * @row: first row of @mem->acc
 * @rows: rows, at most EMU_TILE_ROWS - @row
 * @cols: columns, at most EMU_TILE_COLS
 * @k: elements, at most EMU_TILE_UNITS, or twice as many of int8
 * @src: type of a and b
 * @dst: type of c
 * @trans: b is stored by columns
 * @pack: @mem->b does not have this part of b yet
 * @load: the sums begin with what is in c
 * @store: the sums are complete: write them to c
 */
struct emu_tile {
	struct emu_tile_memory *mem;
	const u8 *a, *b;
	u8 *c;
	size_t a_stride, b_stride, c_stride;
	u32 row, rows, cols, k;
	u8 src, dst;
	bool trans, pack, load, store;
};

/**
 * struct emu_row - elementwise work on contiguous elements
 * @opcode: NEURON_ISA_OP_TENSOR, _ACTIVATE, _REDUCE, _CAST or _GATHER (the same as _CAST)
 * @op: operation or function
 * @src: type of the sources; no uint32
 * @dst: type of the result; no uint32
 * @first: REDUCE: @value is not set yet
 * @d: result; REDUCE has none
 * @a: source
 * @b: second source of TENSOR; NULL: @value for all elements
 * @value: as @b says; REDUCE: the result so far
 * @n: elements
 */
struct emu_row {
	u8 opcode, op, src, dst;
	bool first;
	u8 *d;
	const u8 *a, *b;
	u32 value;
	u32 n;
};

/**
 * struct emu_simd - arithmetic for one instruction set
 * @name: its name
 * @tile: matrix products
 * @row: elementwise work; @d may be the place of a source
 * @section: multiply-accumulates that take about EMU_SIMD_SECTION_US, as measured
 */
struct emu_simd {
	const char *name;
	void (*tile)(const struct emu_tile *t);
	void (*row)(struct emu_row *r);
	u32 section;
};

/*
 * How long the processor is kept from others, and the multiply-accumulates of an element; one of
 * REDUCE waits for the one before.
 */
#define EMU_SIMD_SECTION_US	100u
#define EMU_SIMD_ELEMENT	32u
#define EMU_SIMD_CHAINED	256u

/* Before it is measured: a slow processor's. */
#define EMU_SIMD_SECTION	(1u << 17)

extern struct emu_simd emu_simd_avx2, emu_simd_avx512;

#endif /* EMU_SIMD_H */

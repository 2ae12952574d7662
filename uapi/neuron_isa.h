/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Instruction set, core window layout and notification format of the software
 * Neuron device (neuron_emu).
 *
 * The vendor's instruction encoding is not public.  This one belongs to the
 * software device only; the semantics of every instruction, bit for bit, are
 * described in kmod/emu/ISA.md.  All fields are little endian.
 */
#ifndef _UAPI_NEURON_ISA_H
#define _UAPI_NEURON_ISA_H

#include <linux/types.h>

#define NEURON_ISA_VERSION	1u
#define NEURON_ISA_INST_SIZE	64u

/* Second byte of every instruction, which identifies this instruction set. */
#define NEURON_ISA_MAGIC	0x4eu
/* Signature in the prologue that starts every instruction binary ("NISA"). */
#define NEURON_ISA_SIGNATURE	0x4153494eu

/* Engines of a core.  Also the engine_index of their notification queues. */
enum neuron_isa_engine {
	NEURON_ISA_ENGINE_PE	= 0,
	NEURON_ISA_ENGINE_ACT	= 1,
	NEURON_ISA_ENGINE_POOL	= 2,
	NEURON_ISA_ENGINE_DVE	= 3,
	NEURON_ISA_ENGINE_SP	= 4,
	NEURON_ISA_NR_ENGINES	= 5
};

/*
 * Offsets inside the window of a core (uapi/FACTS.md 6 for events, semaphores and
 * the state buffer; the instruction FIFOs are the software device's own).
 * A DMA write to a register here acts like a register write.
 */
#define NEURON_ISA_SBUF_OFF		0x0000000u
#define NEURON_ISA_EVENT_OFF(i)		(0x2700000u + 4u * (i))
/* Architecture v1 has these blocks 0x100 bytes apart instead of 0x400. */
#define NEURON_ISA_SEM_READ_OFF(i)	(0x2701000u + 4u * (i))
#define NEURON_ISA_SEM_SET_OFF(i)	(0x2701400u + 4u * (i))
#define NEURON_ISA_SEM_INC_OFF(i)	(0x2701800u + 4u * (i))
#define NEURON_ISA_SEM_DEC_OFF(i)	(0x2701c00u + 4u * (i))
/* Any write inside the window appends to the FIFO; multiples of 64 bytes. */
#define NEURON_ISA_FIFO_OFF(e)		(0x2800000u + 0x10000u * (e))
#define NEURON_ISA_FIFO_SIZE		0x10000u

enum neuron_isa_opcode {
	NEURON_ISA_OP_NOP	= 0x00,
	NEURON_ISA_OP_PROLOGUE	= 0x01,	/* first of a program: signature, version */

	NEURON_ISA_OP_SEM_WAIT	= 0x10,
	NEURON_ISA_OP_SEM_POST	= 0x11,
	NEURON_ISA_OP_EVENT_WAIT = 0x12,
	NEURON_ISA_OP_EVENT_SET	= 0x13,
	NEURON_ISA_OP_DMA_TRIGGER = 0x14,	/* ring a queue's doorbells */
	NEURON_ISA_OP_NOTIFY	= 0x15,

	NEURON_ISA_OP_MATMUL	= 0x20,	/* PE */
	NEURON_ISA_OP_TENSOR	= 0x21,	/* elementwise, two operands */
	NEURON_ISA_OP_ACTIVATE	= 0x22,	/* elementwise function of one operand */
	NEURON_ISA_OP_REDUCE	= 0x23,	/* along a row */
	NEURON_ISA_OP_CAST	= 0x24,	/* copy with conversion */
	NEURON_ISA_OP_MEMSET	= 0x25,
	NEURON_ISA_OP_GATHER	= 0x26	/* rows of a table, by their numbers */
};

/* SEM_WAIT .op */
enum { NEURON_ISA_WAIT_EQ = 0, NEURON_ISA_WAIT_GE = 1 };
/* SEM_WAIT .flags: subtract the value when the condition holds */
#define NEURON_ISA_F_CONSUME		0x01u
/* SEM_POST .op */
enum { NEURON_ISA_POST_SET = 0, NEURON_ISA_POST_INC = 1, NEURON_ISA_POST_DEC = 2 };

/* MATMUL .flags */
#define NEURON_ISA_F_ACCUMULATE		0x01u	/* c += a x b instead of c = a x b */
#define NEURON_ISA_F_B_TRANSPOSED	0x02u	/* b is stored as n rows of k */

/* TENSOR .op; REDUCE .op but for SELECT */
enum neuron_isa_alu {
	NEURON_ISA_ALU_ADD	= 0,
	NEURON_ISA_ALU_SUB	= 1,
	NEURON_ISA_ALU_MUL	= 2,
	NEURON_ISA_ALU_MAX	= 3,
	NEURON_ISA_ALU_MIN	= 4,
	NEURON_ISA_ALU_SELECT	= 5	/* src0 where src1 is not 0, else 0 */
};
/* TENSOR .flags */
#define NEURON_ISA_F_IMMEDIATE		0x01u	/* src1 is the field imm */
#define NEURON_ISA_F_SRC1_COLUMN	0x02u	/* src1 is one element a row */

/* ACTIVATE .op */
enum neuron_isa_act {
	NEURON_ISA_ACT_IDENTITY	= 0,
	NEURON_ISA_ACT_RELU	= 1,
	NEURON_ISA_ACT_SIGMOID	= 2,
	NEURON_ISA_ACT_TANH	= 3,
	NEURON_ISA_ACT_EXP	= 4,
	NEURON_ISA_ACT_RECIPROCAL = 5,
	NEURON_ISA_ACT_RSQRT	= 6	/* of the square root */
};

/* Element types; the values are those of nrt_dtype_t. */
enum neuron_isa_dtype {
	NEURON_ISA_DT_INT8	= 0x2,
	NEURON_ISA_DT_UINT8	= 0x3,
	NEURON_ISA_DT_INT16	= 0x4,
	NEURON_ISA_DT_UINT16	= 0x5,
	NEURON_ISA_DT_BF16	= 0x6,
	NEURON_ISA_DT_FP16	= 0x7,
	NEURON_ISA_DT_INT32	= 0x8,
	NEURON_ISA_DT_UINT32	= 0x9,
	NEURON_ISA_DT_FP32	= 0xa,
	NEURON_ISA_DT_FP8_E3	= 0xd,	/* 3 exponent, 4 fraction bits */
	NEURON_ISA_DT_FP8_E4	= 0xe,	/* 4 exponent, 3 fraction bits */
	NEURON_ISA_DT_FP8_E5	= 0xf,	/* 5 exponent, 2 fraction bits */
	/* compute operations of DMA only */
	NEURON_ISA_DT_UINT64	= 0x1,
	NEURON_ISA_DT_FP32R	= 0xb,	/* the bits of fp32 */
	NEURON_ISA_DT_INT64	= 0xc
};

/*
 * Compute operations of DMA (kmod/emu/ISA.md section 11): word 1 of a source
 * descriptor is NEURON_ISA_DMA_COMPUTE | NEURON_ISA_DMA_OP() | ..., word 1 of the
 * first destination descriptor the argument.
 */
#define NEURON_ISA_DMA_COMPUTE		(3u << 23)
#define NEURON_ISA_DMA_OP(op)		((__u32)(op) << 20)
#define NEURON_ISA_DMA_ARG(type)	((__u32)(type) << 8)
#define NEURON_ISA_DMA_DST(dtype)	((__u32)(dtype) << 4)
#define NEURON_ISA_DMA_SRC(dtype)	((__u32)(dtype))
/* The argument of a transpose: rows of the source, bytes of an element. */
#define NEURON_ISA_DMA_TRANSPOSED(rows, size)	((__u32)(rows) | (__u32)(size) << 24)

#define NEURON_ISA_DMA_MAX_SOURCES	16u
#define NEURON_ISA_DMA_MAX_DESCS	64u	/* of a packet, in each ring */
#define NEURON_ISA_DMA_MAX_BYTES	65536u	/* of a result */
#define NEURON_ISA_DMA_MAX_ELEMENT	16u	/* bytes, transpose */

enum neuron_isa_dma_op {
	NEURON_ISA_DMA_CAST	= 0,
	NEURON_ISA_DMA_ADD	= 1,
	NEURON_ISA_DMA_FMA	= 2,	/* sum of the sources, each times the argument */
	NEURON_ISA_DMA_MIN	= 3,
	NEURON_ISA_DMA_MAX	= 4,
	NEURON_ISA_DMA_TRANSPOSE = 5
};

/* Type of the argument: fma takes FP32, min and max any, the others NONE. */
enum neuron_isa_dma_arg {
	NEURON_ISA_DMA_ARG_NONE	= 0,
	NEURON_ISA_DMA_ARG_FP32	= 1,
	NEURON_ISA_DMA_ARG_INT32 = 2,
	NEURON_ISA_DMA_ARG_UINT32 = 3
};

/**
 * struct neuron_isa_inst - one instruction, 64 bytes
 * @opcode: enum neuron_isa_opcode
 * @magic: NEURON_ISA_MAGIC
 * @op: sub-operation, depends on the opcode
 * @flags: NEURON_ISA_F_*, depends on the opcode; unknown bits are an error
 * @src_dtype: element type of the sources (enum neuron_isa_dtype)
 * @dst_dtype: element type of the destination
 * @reserved: must be 0
 * @u: operands; addresses are byte offsets in the state buffer, strides are
 *     bytes between the starts of two rows (0 repeats the row), elements of a
 *     row are contiguous; bytes that a form does not use must be 0, so each form is as
 *     long as the union: what an initialiser does not name is 0 for any compiler then
 */
struct neuron_isa_inst {
	__u8 opcode;
	__u8 magic;
	__u8 op;
	__u8 flags;
	__u8 src_dtype;
	__u8 dst_dtype;
	__le16 reserved;
	union {
		struct {
			__le32 signature;
			__le16 version;
			__le16 engine;	/* enum neuron_isa_engine that executes it */
			__u8 unused[48];
		} prologue;
		struct {
			__le32 index;
			__le32 value;
			__u8 unused[48];
		} sem;			/* SEM_*, EVENT_* */
		struct {
			__le16 engine;	/* 0 = first DMA engine of this core */
			__le16 queue;
			__le32 tx_count;	/* descriptors, as in a tail register */
			__le32 rx_count;
			__u8 unused[44];
		} dma;
		struct {
			__le32 id;
			__le32 reserved;
			__le64 data;
			__u8 unused[40];
		} notify;
		struct {
			__le32 a, b, c;	/* a: m x k, b: k x n, c: m x n */
			__le32 a_stride, b_stride, c_stride;
			__le32 m, n, k;
			__u8 unused[20];
		} matmul;
		struct {
			__le32 src0, src1, dst;
			__le32 src0_stride, src1_stride, dst_stride;
			__le32 rows, cols;
			/*
			 * bits of one element of src_dtype (MEMSET: dst_dtype);
			 * GATHER: rows of src0
			 */
			__le32 imm;
			__u8 unused[20];
		} tensor;		/* TENSOR, ACTIVATE, REDUCE, CAST, MEMSET, GATHER */
		__u8 bytes[56];
	} u;
};

/* Kinds of notification queue entries. */
enum neuron_isa_notice_kind {
	/* NOTIFY instruction; goes to queue type NQ_TYPE_NOTIFY */
	NEURON_ISA_NOTICE_NOTIFY	= 1,
	/* engine or DMA queue stopped; NQ_TYPE_ERROR, engine_index 0 */
	NEURON_ISA_NOTICE_ERROR		= 2,
	NEURON_ISA_NOTICE_DMA_ERROR	= 3,
	/* an instruction; NQ_TYPE_TRACE, engine_index = engine */
	NEURON_ISA_NOTICE_BEGIN		= 4,
	NEURON_ISA_NOTICE_END		= 5,
	/* a packet of descriptors; NQ_TYPE_TRACE_DMA, engine_index = DMA engine of the core */
	NEURON_ISA_NOTICE_DMA_BEGIN	= 6,
	NEURON_ISA_NOTICE_DMA_END	= 7,
	/* a semaphore changed; NQ_TYPE_EVENT, engine_index 0 */
	NEURON_ISA_NOTICE_SEMAPHORE	= 8,
	/* last entry of a trace that is full */
	NEURON_ISA_NOTICE_LOST		= 9
};

/* The semaphore was changed by a write by DMA or from the host, not by an engine. */
#define NEURON_ISA_BY_ACCESS		0xffu

enum neuron_isa_error {
	NEURON_ISA_ERR_NONE		= 0,
	NEURON_ISA_ERR_ILLEGAL		= 1,	/* unknown opcode, magic, field or combination */
	NEURON_ISA_ERR_ENGINE		= 2,	/* not an instruction of this engine */
	NEURON_ISA_ERR_BOUNDS		= 3,	/* operand outside the state buffer */
	NEURON_ISA_ERR_INDEX		= 4,	/* semaphore, event, queue number */
	NEURON_ISA_ERR_SEMAPHORE	= 5,	/* counter would wrap */
	/* DMA trigger: not this owner's queue, too many descriptors */
	NEURON_ISA_ERR_QUEUE		= 6,
	/* descriptor points to memory the owner may not touch */
	NEURON_ISA_ERR_DMA_ACCESS	= 7,
	/* malformed descriptor, or lengths of tx and rx differ */
	NEURON_ISA_ERR_DMA_DESC		= 8,
	NEURON_ISA_ERR_DMA_RING		= 9,	/* ring memory gone */
	NEURON_ISA_ERR_ABORT		= 10,	/* stopped by software or an injected fault */
	NEURON_ISA_ERR_MEM_UE		= 11,	/* uncorrectable ECC error of device memory */
	NEURON_ISA_ERR_MEM_REPAIRABLE	= 12,	/* same, a reset of the device repairs it */
	NEURON_ISA_ERR_SRAM_UE		= 13	/* uncorrectable ECC error of the state buffer */
};

/**
 * struct neuron_isa_notice - one entry of a notification queue, 16 bytes
 * @id: NOTIFY: the instruction's id; errors, BEGIN, END and DMA_BEGIN: instructions or
 *      source descriptors done since start; DMA_END: bytes written; SEMAPHORE: the new
 *      value; LOST: as @data, low 32 bits
 * @engine: enum neuron_isa_engine; DMA: DMA engine number, low 8 bits; SEMAPHORE: the
 *          engine that changed it or NEURON_ISA_BY_ACCESS
 * @kind: enum neuron_isa_notice_kind
 * @code: enum neuron_isa_error; NOTIFY: 0; BEGIN, END: opcode; SEMAPHORE: its number
 * @phase: bit 0 = 1 on the first pass through the ring, then it alternates; bits
 *         7:4 = DMA queue number for DMA.  Written last.
 * @data: NOTIFY: the instruction's data; errors: opcode or device address; traces:
 *        time, nanoseconds of CLOCK_MONOTONIC; LOST: entries that did not fit
 *
 * The device writes entries in order and wraps at the end of the buffer; the phase bit
 * tells the reader that an entry is new.  Traces do not wrap.
 */
struct neuron_isa_notice {
	__le32 id;
	__u8 engine;
	__u8 kind;
	__u8 code;
	__u8 phase;
	__le64 data;
};

#endif /* _UAPI_NEURON_ISA_H */

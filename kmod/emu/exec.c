// SPDX-License-Identifier: GPL-2.0-only
/*
 * Instructions of the software device: one check for all of them, and the
 * execution of those that compute on the state buffer.  ISA.md describes what
 * they do; the control instructions are carried out by the engine itself.
 */
#include "exec.h"

static_assert(sizeof(struct neuron_isa_inst) == NEURON_ISA_INST_SIZE,
	      "size of an instruction");

#define ENGINE_BIT(e)	(1u << NEURON_ISA_ENGINE_##e)
#define ALL_ENGINES	((1u << NEURON_ISA_NR_ENGINES) - 1)

/* Rules by opcode that do not depend on the operands. */
struct emu_op_rule {
	u8 opcode;
	u8 engines;	/* bit mask of those that may execute it */
	u8 flags;	/* known bits */
	u8 max_op;	/* largest sub-operation */
	u8 operands;	/* bytes of the operand union in use */
	bool src, dst;	/* has a source, a destination type */
};

static const struct emu_op_rule emu_op_rules[] = {
	{ NEURON_ISA_OP_NOP, ALL_ENGINES, .operands = 0 },
	{ NEURON_ISA_OP_PROLOGUE, ALL_ENGINES, .operands = 8 },
	{ NEURON_ISA_OP_SEM_WAIT, ALL_ENGINES, NEURON_ISA_F_CONSUME, NEURON_ISA_WAIT_GE,
	  .operands = 8 },
	{ NEURON_ISA_OP_SEM_POST, ALL_ENGINES, 0, NEURON_ISA_POST_DEC, .operands = 8 },
	{ NEURON_ISA_OP_EVENT_WAIT, ALL_ENGINES, NEURON_ISA_F_CONSUME, 0, .operands = 8 },
	{ NEURON_ISA_OP_EVENT_SET, ALL_ENGINES, .operands = 8 },
	{ NEURON_ISA_OP_DMA_TRIGGER, ALL_ENGINES, .operands = 12 },
	{ NEURON_ISA_OP_NOTIFY, ALL_ENGINES, .operands = 16 },
	{ NEURON_ISA_OP_MATMUL, ENGINE_BIT(PE),
	  NEURON_ISA_F_ACCUMULATE | NEURON_ISA_F_B_TRANSPOSED, 0, 36, true, true },
	{ NEURON_ISA_OP_TENSOR, ENGINE_BIT(POOL) | ENGINE_BIT(DVE),
	  NEURON_ISA_F_IMMEDIATE | NEURON_ISA_F_SRC1_COLUMN, NEURON_ISA_ALU_SELECT, 36,
	  true, true },
	{ NEURON_ISA_OP_ACTIVATE, ENGINE_BIT(ACT), 0, NEURON_ISA_ACT_RSQRT, 36, true, true },
	{ NEURON_ISA_OP_REDUCE, ENGINE_BIT(POOL) | ENGINE_BIT(DVE), 0, NEURON_ISA_ALU_MIN, 36,
	  true, true },
	{ NEURON_ISA_OP_CAST, ENGINE_BIT(ACT) | ENGINE_BIT(POOL) | ENGINE_BIT(DVE), 0, 0, 36,
	  true, true },
	{ NEURON_ISA_OP_MEMSET, ENGINE_BIT(ACT) | ENGINE_BIT(POOL) | ENGINE_BIT(DVE), 0, 0, 36,
	  false, true },
	{ NEURON_ISA_OP_GATHER, ENGINE_BIT(POOL) | ENGINE_BIT(DVE), 0, 0, 36, true, true },
};

static const struct emu_op_rule *emu_op_find(u8 opcode)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(emu_op_rules); i++)
		if (emu_op_rules[i].opcode == opcode)
			return &emu_op_rules[i];
	return NULL;
}

/* Check the header and the unused bytes. */
static int emu_check_form(const struct neuron_isa_inst *inst, u32 engine)
{
	const struct emu_op_rule *rule;
	size_t i;

	if (inst->magic != NEURON_ISA_MAGIC)
		return NEURON_ISA_ERR_ILLEGAL;
	rule = emu_op_find(inst->opcode);
	if (!rule)
		return NEURON_ISA_ERR_ILLEGAL;
	if (engine >= NEURON_ISA_NR_ENGINES || !(rule->engines >> engine & 1))
		return NEURON_ISA_ERR_ENGINE;
	if (inst->reserved || inst->flags & ~rule->flags || inst->op > rule->max_op)
		return NEURON_ISA_ERR_ILLEGAL;
	if (rule->src ? !emu_dtype_size(inst->src_dtype) : inst->src_dtype)
		return NEURON_ISA_ERR_ILLEGAL;
	if (rule->dst ? !emu_dtype_size(inst->dst_dtype) : inst->dst_dtype)
		return NEURON_ISA_ERR_ILLEGAL;
	for (i = rule->operands; i < sizeof(inst->u.bytes); i++)
		if (inst->u.bytes[i])
			return NEURON_ISA_ERR_ILLEGAL;
	return NEURON_ISA_ERR_NONE;
}

/*
 * Describe an operand and check that it lies in the buffer.  Nothing wraps:
 * once a row is known to fit, all terms of the sum are below 2^64 together.
 */
static int emu_operand_init(struct emu_operand *o, u8 dtype, u32 off, u32 stride, u32 rows,
			    u32 cols, u32 size)
{
	u64 len = (u64)cols * emu_dtype_size(dtype);

	if (len > size)
		return NEURON_ISA_ERR_BOUNDS;
	if ((u64)(rows - 1) * stride + len + off > size)
		return NEURON_ISA_ERR_BOUNDS;
	o->off = off;
	o->stride = rows > 1 ? stride : 0;
	o->rows = rows;
	o->len = (u32)len;
	o->dtype = dtype;
	o->esize = (u8)emu_dtype_size(dtype);
	return NEURON_ISA_ERR_NONE;
}

static u64 emu_operand_end(const struct emu_operand *o)
{
	return (u64)o->off + (u64)(o->rows - 1) * o->stride + o->len;
}

/*
 * May two operands share bytes?  Exact for the cases that matter: operands that lie
 * apart, or side by side in rows of the same stride (columns of one matrix).
 */
static bool emu_operand_overlap(const struct emu_operand *x, const struct emu_operand *y)
{
	u32 dist;

	if (x->off >= emu_operand_end(y) || y->off >= emu_operand_end(x))
		return false;
	if (x->stride != y->stride || !x->stride)
		return true;
	if (y->off >= x->off)
		dist = (y->off - x->off) % x->stride;
	else
		dist = (x->stride - (x->off - y->off) % x->stride) % x->stride;
	return dist < x->len || (u64)dist + y->len > x->stride;
}

/*
 * Element by element in place: every element is read before it is written.
 * Both have as many columns, so rows of one length have elements of one size.
 */
static bool emu_operand_same(const struct emu_operand *x, const struct emu_operand *y)
{
	return x->off == y->off && x->stride == y->stride && x->len == y->len;
}

/* A destination's own rows must not overlap. */
static bool emu_operand_writable(const struct emu_operand *o)
{
	return o->rows == 1 || o->stride >= o->len;
}

static bool emu_matmul_types(u8 src, u8 dst)
{
	switch (src) {
	case NEURON_ISA_DT_FP32:
		return dst == NEURON_ISA_DT_FP32;
	case NEURON_ISA_DT_BF16:
	case NEURON_ISA_DT_FP16:
		return dst == NEURON_ISA_DT_FP32 || dst == src;
	case NEURON_ISA_DT_INT8:
		return dst == NEURON_ISA_DT_INT32;
	default:
		return false;
	}
}

static int emu_matmul_init(struct emu_exec *x, const struct neuron_isa_inst *inst, u32 size)
{
	u32 m = le32_to_cpu(inst->u.matmul.m);
	u32 n = le32_to_cpu(inst->u.matmul.n);
	u32 k = le32_to_cpu(inst->u.matmul.k);
	bool trans = inst->flags & NEURON_ISA_F_B_TRANSPOSED;
	int err;

	if (!emu_matmul_types(inst->src_dtype, inst->dst_dtype))
		return NEURON_ISA_ERR_ILLEGAL;
	if (!m || !n || !k)
		return NEURON_ISA_ERR_ILLEGAL;
	err = emu_operand_init(&x->a, inst->src_dtype, le32_to_cpu(inst->u.matmul.a),
			       le32_to_cpu(inst->u.matmul.a_stride), m, k, size);
	if (err)
		return err;
	err = emu_operand_init(&x->b, inst->src_dtype, le32_to_cpu(inst->u.matmul.b),
			       le32_to_cpu(inst->u.matmul.b_stride), trans ? n : k, trans ? k : n,
			       size);
	if (err)
		return err;
	err = emu_operand_init(&x->d, inst->dst_dtype, le32_to_cpu(inst->u.matmul.c),
			       le32_to_cpu(inst->u.matmul.c_stride), m, n, size);
	if (err)
		return err;
	if (!emu_operand_writable(&x->d) || emu_operand_overlap(&x->d, &x->a) ||
	    emu_operand_overlap(&x->d, &x->b))
		return NEURON_ISA_ERR_ILLEGAL;
	x->rows = m;
	x->cols = n;
	x->depth = k;
	return NEURON_ISA_ERR_NONE;
}

/* The immediate is one element; bits above it would be silently ignored. */
static bool emu_imm_fits(u32 imm, u8 dtype)
{
	u32 size = emu_dtype_size(dtype);

	return size == 4 || !(imm >> 8 * size);
}

static int emu_tensor_init(struct emu_exec *x, const struct neuron_isa_inst *inst, u32 size)
{
	u32 rows = le32_to_cpu(inst->u.tensor.rows);
	u32 cols = le32_to_cpu(inst->u.tensor.cols);
	u32 imm = le32_to_cpu(inst->u.tensor.imm);
	bool has_src0 = inst->opcode != NEURON_ISA_OP_MEMSET;
	bool has_imm = inst->opcode == NEURON_ISA_OP_MEMSET;
	bool gather = inst->opcode == NEURON_ISA_OP_GATHER;
	bool has_src1 = gather, column = gather;
	int err;

	if (inst->opcode == NEURON_ISA_OP_TENSOR) {
		has_imm = inst->flags & NEURON_ISA_F_IMMEDIATE;
		has_src1 = !has_imm;
		column = inst->flags & NEURON_ISA_F_SRC1_COLUMN;
		if (has_imm && column)
			return NEURON_ISA_ERR_ILLEGAL;
	}
	if (!rows || !cols || (gather && !imm))
		return NEURON_ISA_ERR_ILLEGAL;
	if (!has_src0 && (inst->u.tensor.src0 || inst->u.tensor.src0_stride))
		return NEURON_ISA_ERR_ILLEGAL;
	if (!has_src1 && (inst->u.tensor.src1 || inst->u.tensor.src1_stride))
		return NEURON_ISA_ERR_ILLEGAL;
	if (has_imm ? !emu_imm_fits(imm, has_src0 ? inst->src_dtype : inst->dst_dtype) :
		      imm && !gather)
		return NEURON_ISA_ERR_ILLEGAL;

	err = emu_operand_init(&x->d, inst->dst_dtype, le32_to_cpu(inst->u.tensor.dst),
			       le32_to_cpu(inst->u.tensor.dst_stride), rows,
			       inst->opcode == NEURON_ISA_OP_REDUCE ? 1 : cols, size);
	if (err)
		return err;
	if (has_src0) {
		err = emu_operand_init(&x->a, inst->src_dtype, le32_to_cpu(inst->u.tensor.src0),
				       le32_to_cpu(inst->u.tensor.src0_stride),
				       gather ? imm : rows, cols, size);
		if (err)
			return err;
	}
	if (has_src1) {
		err = emu_operand_init(&x->b, gather ? NEURON_ISA_DT_UINT32 : inst->src_dtype,
				       le32_to_cpu(inst->u.tensor.src1),
				       le32_to_cpu(inst->u.tensor.src1_stride), rows,
				       column ? 1 : cols, size);
		if (err)
			return err;
	}

	if (!emu_operand_writable(&x->d))
		return NEURON_ISA_ERR_ILLEGAL;
	if (has_src0 && emu_operand_overlap(&x->d, &x->a) &&
	    (gather || inst->opcode == NEURON_ISA_OP_REDUCE || !emu_operand_same(&x->d, &x->a)))
		return NEURON_ISA_ERR_ILLEGAL;
	if (has_src1 && emu_operand_overlap(&x->d, &x->b) &&
	    (column || !emu_operand_same(&x->d, &x->b)))
		return NEURON_ISA_ERR_ILLEGAL;
	x->rows = rows;
	x->cols = cols;
	x->imm = imm;
	return NEURON_ISA_ERR_NONE;
}

/**
 * emu_isa_is_compute() - is this an instruction for emu_exec_start()?
 * @inst: the instruction
 *
 * Return: true for MATMUL, TENSOR, ACTIVATE, REDUCE, CAST, MEMSET and GATHER.
 */
bool emu_isa_is_compute(const struct neuron_isa_inst *inst)
{
	return inst->opcode >= NEURON_ISA_OP_MATMUL && inst->opcode <= NEURON_ISA_OP_GATHER;
}

/* Check a compute instruction and decode it into @x. */
static int emu_compute_init(struct emu_exec *x, const struct neuron_isa_inst *inst, u32 engine,
			    u32 size)
{
	int err = emu_check_form(inst, engine);

	if (err)
		return err;
	if (!emu_isa_is_compute(inst))
		return NEURON_ISA_ERR_ILLEGAL;
	x->opcode = inst->opcode;
	x->op = inst->op;
	x->flags = inst->flags;
	x->cls = emu_dtype_class(inst->src_dtype);
	x->row = 0;
	x->col = 0;
	x->k = 0;
	if (inst->opcode == NEURON_ISA_OP_MATMUL)
		return emu_matmul_init(x, inst, size);
	return emu_tensor_init(x, inst, size);
}

/**
 * emu_isa_check() - check an instruction completely
 * @inst: the instruction, a private copy: it must not change under the check
 * @engine: engine that is to execute it
 * @lim: limits of the core
 *
 * Covers everything that can be known before execution: form, permitted
 * engine, ranges of numbers, bounds and overlap of operands.  What depends on
 * the state of the core (a semaphore that would wrap, a queue that is not set
 * up or of another owner) is checked by the engine.
 *
 * The order of checks, hence which error wins: magic and opcode, engine, the
 * form and its unused bytes, numbers, bounds, overlap.
 *
 * Return: 0 or enum neuron_isa_error.
 */
int emu_isa_check(const struct neuron_isa_inst *inst, enum neuron_isa_engine engine,
		  const struct emu_isa_limits *lim)
{
	u32 index = le32_to_cpu(inst->u.sem.index);
	u32 value = le32_to_cpu(inst->u.sem.value);
	struct emu_exec x;
	int err;

	if (emu_isa_is_compute(inst))
		return emu_compute_init(&x, inst, engine, lim->sbuf_size);
	err = emu_check_form(inst, engine);
	if (err)
		return err;
	switch (inst->opcode) {
	case NEURON_ISA_OP_PROLOGUE:
		if (le32_to_cpu(inst->u.prologue.signature) != NEURON_ISA_SIGNATURE ||
		    le16_to_cpu(inst->u.prologue.version) != NEURON_ISA_VERSION)
			return NEURON_ISA_ERR_ILLEGAL;
		if (le16_to_cpu(inst->u.prologue.engine) != engine)
			return NEURON_ISA_ERR_ENGINE;
		break;
	case NEURON_ISA_OP_SEM_WAIT:
	case NEURON_ISA_OP_SEM_POST:
		if (index >= lim->nr_semaphores)
			return NEURON_ISA_ERR_INDEX;
		break;
	case NEURON_ISA_OP_EVENT_WAIT:
	case NEURON_ISA_OP_EVENT_SET:
		/* An event is one bit; only a set one can be consumed. */
		if (value > 1 || (inst->flags & NEURON_ISA_F_CONSUME && !value))
			return NEURON_ISA_ERR_ILLEGAL;
		if (index >= lim->nr_events)
			return NEURON_ISA_ERR_INDEX;
		break;
	case NEURON_ISA_OP_DMA_TRIGGER:
		if (le16_to_cpu(inst->u.dma.engine) >= lim->engines_per_core ||
		    le16_to_cpu(inst->u.dma.queue) >= lim->nr_queues)
			return NEURON_ISA_ERR_INDEX;
		break;
	case NEURON_ISA_OP_NOTIFY:
		if (inst->u.notify.reserved)
			return NEURON_ISA_ERR_ILLEGAL;
		break;
	}
	return NEURON_ISA_ERR_NONE;
}

/*
 * Is this done on vector registers?  They have no uint32, and what only moves bytes is done
 * without them.
 */
static bool emu_simd_does(const struct emu_exec *x)
{
	switch (x->opcode) {
	case NEURON_ISA_OP_MATMUL:
		return x->part;
	case NEURON_ISA_OP_CAST:
	case NEURON_ISA_OP_GATHER:
		if (x->a.dtype == x->d.dtype)
			return false;
		fallthrough;
	case NEURON_ISA_OP_TENSOR:
	case NEURON_ISA_OP_ACTIVATE:
	case NEURON_ISA_OP_REDUCE:
		return x->simd && x->cls != EMU_CLASS_UINT &&
		       emu_dtype_class(x->d.dtype) != EMU_CLASS_UINT;
	default:
		return false;
	}
}

static void emu_matmul_init_simd(struct emu_exec *x, const struct emu_sbuf *sb)
{
	x->part = sb->part;
	x->part->busy = false;
	x->part->next = 0;
	x->part->mm = (struct emu_matmul){
		.simd = sb->simd,
		.base = x->base,
		.a = x->a,
		.b = x->b,
		.d = x->d,
		.rows = x->rows,
		.cols = x->cols,
		.depth = x->depth,
		.trans = x->flags & NEURON_ISA_F_B_TRANSPOSED,
		.accumulate = x->flags & NEURON_ISA_F_ACCUMULATE,
	};
	emu_matmul_plan(&x->part->mm, sb->workers);
}

/**
 * emu_exec_start() - begin a compute instruction
 * @x: state of the execution; need not be cleared
 * @inst: the instruction, not needed any more afterwards
 * @engine: engine that executes it
 * @sb: state buffer, has to stay until the instruction is done or given up
 *
 * Checks everything and touches nothing in the buffer.
 *
 * Return: 0 or enum neuron_isa_error.
 */
int emu_exec_start(struct emu_exec *x, const struct neuron_isa_inst *inst,
		   enum neuron_isa_engine engine, const struct emu_sbuf *sb)
{
	int err;

	x->base = sb->base;
	err = emu_compute_init(x, inst, engine, sb->size);
	if (err)
		return err;
	x->simd = sb->simd;
	x->part = NULL;
	if (x->opcode == NEURON_ISA_OP_MATMUL && sb->simd && sb->part)
		emu_matmul_init_simd(x, sb);
	return 0;
}

/**
 * emu_exec_matmul() - the matrix product that is being executed
 * @x: started
 *
 * Return: the product, divided into tasks; NULL: it is something else, or done with integers.
 */
const struct emu_matmul *emu_exec_matmul(const struct emu_exec *x)
{
	return x->opcode == NEURON_ISA_OP_MATMUL && x->part ? &x->part->mm : NULL;
}

/** emu_exec_budget() - a budget for emu_exec_step() that takes about a millisecond */
u32 emu_exec_budget(const struct emu_exec *x)
{
	if (!emu_simd_does(x))
		return EMU_EXEC_BUDGET;
	return min_t(u64, (u64)x->simd->section * (1000 / EMU_SIMD_SECTION_US), U32_MAX);
}

static u8 *emu_at(const struct emu_exec *x, const struct emu_operand *o, u32 row, u32 byte)
{
	return x->base + o->off + (size_t)row * o->stride + byte;
}

/* The present place in the first source. */
static u8 *emu_source(const struct emu_exec *x)
{
	u32 row = x->row;

	/* An index that others change meanwhile is another row of the table: loaded once. */
	if (x->opcode == NEURON_ISA_OP_GATHER) {
		row = emu_get32(emu_at(x, &x->b, row, 0));
		OPTIMIZER_HIDE_VAR(row);
		row = min_t(u32, row, x->imm - 1);
	}
	return emu_at(x, &x->a, row, x->col * x->a.esize);
}

/* Done with columns up to @col of the row; returns true at the end. */
static bool emu_advance(struct emu_exec *x, u32 now)
{
	x->col += now;
	if (x->col < x->cols)
		return false;
	x->col = 0;
	x->row++;
	return x->row == x->rows;
}

/* Multiply-accumulate @ks steps of k into the current block of columns. */
static void emu_matmul_block(struct emu_exec *x, u32 now, u32 ks)
{
	bool trans = x->flags & NEURON_ISA_F_B_TRANSPOSED;
	u32 es = x->a.esize, j, k;
	const u8 *a = emu_at(x, &x->a, x->row, x->k * es);

	if (trans) {
		for (j = 0; j < now; j++) {
			const u8 *b = emu_at(x, &x->b, x->col + j, x->k * es);
			u32 acc = x->acc[j];

			switch (x->a.dtype) {
			case NEURON_ISA_DT_FP32:
				acc = emu_f32_dot(acc, a, b, es, ks);
				break;
			case NEURON_ISA_DT_BF16:
				acc = emu_bf16_dot(acc, a, b, es, ks);
				break;
			case NEURON_ISA_DT_FP16:
				acc = emu_f16_dot(acc, a, b, es, ks);
				break;
			case NEURON_ISA_DT_INT8:
				acc = emu_s8_dot(acc, a, b, es, ks);
				break;
			}
			x->acc[j] = acc;
		}
		return;
	}
	for (k = 0; k < ks; k++, a += es) {
		const u8 *b = emu_at(x, &x->b, x->k + k, x->col * es);

		switch (x->a.dtype) {
		case NEURON_ISA_DT_FP32:
			emu_f32_vmac(x->acc, emu_get32(a), b, es, now);
			break;
		case NEURON_ISA_DT_BF16:
			emu_bf16_vmac(x->acc, emu_get16(a), b, es, now);
			break;
		case NEURON_ISA_DT_FP16:
			emu_f16_vmac(x->acc, emu_get16(a), b, es, now);
			break;
		case NEURON_ISA_DT_INT8:
			emu_s8_vmac(x->acc, (s8)*a, b, es, now);
			break;
		}
	}
}

/* A matrix product on vector registers, by one worker. */
static bool emu_matmul_simd_step(struct emu_exec *x, u32 *work)
{
	struct emu_part *part = x->part;

	if (!part->busy)
		emu_part_take(part, &part->mm, part->next++);
	*work = emu_part_step(part, &part->mm);
	return !part->busy && part->next == part->mm.tasks;
}

/* One slice of a matrix product; *work is its amount of work. */
static bool emu_matmul_step(struct emu_exec *x, u32 budget, u32 *work)
{
	u32 now = min_t(u32, x->cols - x->col, EMU_EXEC_BLOCK);
	u32 ks = min_t(u32, x->depth - x->k, max_t(u32, budget / now, 1));
	u8 *dst = emu_at(x, &x->d, x->row, x->col * x->d.esize);

	if (!x->k) {
		if (x->flags & NEURON_ISA_F_ACCUMULATE)
			emu_elems_load(x->acc, dst, x->d.dtype, now);
		else
			memset(x->acc, 0, now * sizeof(x->acc[0]));
	}
	emu_matmul_block(x, now, ks);
	*work = ks * now;
	x->k += ks;
	if (x->k < x->depth)
		return false;
	emu_elems_store(dst, x->d.dtype, x->acc, x->cls, now);
	x->k = 0;
	return emu_advance(x, now);
}

static void emu_fill(u32 *v, u32 value, u32 n)
{
	while (n--)
		*v++ = value;
}

/* As much of a row as a section of the FPU takes; *work is in multiply-accumulates. */
static bool emu_row_step(struct emu_exec *x, u32 *work)
{
	bool reduce = x->opcode == NEURON_ISA_OP_REDUCE, done;
	u32 macs = reduce ? EMU_SIMD_CHAINED : EMU_SIMD_ELEMENT;
	u32 most = max_t(u32, x->simd->section / macs, EMU_EXEC_BLOCK);
	u32 now = min_t(u32, x->cols - x->col, most);
	struct emu_row r = {
		.opcode = x->opcode,
		.op = x->op,
		.src = x->a.dtype,
		.dst = x->d.dtype,
		.first = !x->col,
		.d = emu_at(x, &x->d, x->row, x->col * x->d.esize),
		.a = emu_source(x),
		.value = x->acc[0],
		.n = now,
	};
	__le32 imm = cpu_to_le32(x->imm);

	if (x->opcode == NEURON_ISA_OP_TENSOR) {
		if (x->flags & NEURON_ISA_F_IMMEDIATE)
			emu_elems_load(&r.value, &imm, x->a.dtype, 1);
		else if (x->flags & NEURON_ISA_F_SRC1_COLUMN)
			emu_elems_load(&r.value, emu_at(x, &x->b, x->row, 0), x->b.dtype, 1);
		else
			r.b = emu_at(x, &x->b, x->row, x->col * x->b.esize);
	}
	emu_fpu_begin();
	x->simd->row(&r);
	emu_fpu_end();
	x->acc[0] = r.value;
	*work = min_t(u32, now + 1, U32_MAX / macs) * macs;
	done = emu_advance(x, now);
	if (reduce && !x->col)
		emu_elems_store(emu_at(x, &x->d, done ? x->rows - 1 : x->row - 1, 0), x->d.dtype,
				x->acc, x->cls, 1);
	return done;
}

/* One block of an elementwise instruction. */
static bool emu_tensor_step(struct emu_exec *x, u32 *work)
{
	u32 now = min_t(u32, x->cols - x->col, EMU_EXEC_BLOCK);
	u8 *dst = emu_at(x, &x->d, x->row, x->col * x->d.esize);
	u8 *a = emu_source(x);
	enum emu_class cls = x->cls;
	u32 v[EMU_EXEC_BLOCK];

	emu_elems_load(v, a, x->a.dtype, now);
	switch (x->opcode) {
	case NEURON_ISA_OP_TENSOR:
		if (x->flags & NEURON_ISA_F_IMMEDIATE) {
			__le32 imm = cpu_to_le32(x->imm);

			emu_elems_load(x->acc, &imm, x->a.dtype, 1);
			emu_fill(x->acc, x->acc[0], now);
		} else if (x->flags & NEURON_ISA_F_SRC1_COLUMN) {
			emu_elems_load(x->acc, emu_at(x, &x->b, x->row, 0), x->b.dtype, 1);
			emu_fill(x->acc, x->acc[0], now);
		} else {
			emu_elems_load(x->acc, emu_at(x, &x->b, x->row, x->col * x->b.esize),
				       x->b.dtype, now);
		}
		emu_elems_alu(v, v, x->acc, cls, x->op, now);
		break;
	case NEURON_ISA_OP_ACTIVATE:
		emu_elems_convert(v, EMU_CLASS_FLOAT, cls, now);
		cls = EMU_CLASS_FLOAT;
		emu_elems_act(v, x->op, now);
		break;
	}
	emu_elems_store(dst, x->d.dtype, v, cls, now);
	*work = now;
	return emu_advance(x, now);
}

static bool emu_reduce_step(struct emu_exec *x, u32 *work)
{
	u32 now = min_t(u32, x->cols - x->col, EMU_EXEC_BLOCK);
	u32 v[EMU_EXEC_BLOCK], row = x->row;
	bool done;

	emu_elems_load(v, emu_at(x, &x->a, row, x->col * x->a.esize), x->a.dtype, now);
	if (x->col)
		x->acc[0] = emu_elems_fold(x->acc[0], v, x->cls, x->op, now);
	else
		x->acc[0] = emu_elems_fold(v[0], v + 1, x->cls, x->op, now - 1);
	*work = now;
	done = emu_advance(x, now);
	if (!x->col)
		emu_elems_store(emu_at(x, &x->d, row, 0), x->d.dtype, x->acc, x->cls, 1);
	return done;
}

/* CAST and GATHER to the same type move bytes, MEMSET makes them: no arithmetic. */
static bool emu_move_step(struct emu_exec *x, u32 *work)
{
	u32 now = min_t(u32, x->cols - x->col, 64 * EMU_EXEC_BLOCK), i;
	u8 *dst = emu_at(x, &x->d, x->row, x->col * x->d.esize);

	if (x->opcode != NEURON_ISA_OP_MEMSET) {
		memmove(dst, emu_source(x), (size_t)now * x->d.esize);
	} else if (x->d.esize == 1 || !x->imm) {
		memset(dst, (int)x->imm, (size_t)now * x->d.esize);
	} else if (x->d.esize == 2) {
		for (i = 0; i < now; i++)
			emu_put16(dst + 2 * i, (u16)x->imm);
	} else {
		for (i = 0; i < now; i++)
			emu_put32(dst + 4 * i, x->imm);
	}
	*work = now / 16 + 1;
	return emu_advance(x, now);
}

static bool emu_simd_step(struct emu_exec *x, u32 *work)
{
	return x->opcode == NEURON_ISA_OP_MATMUL ? emu_matmul_simd_step(x, work) :
						   emu_row_step(x, work);
}

static bool emu_integer_step(struct emu_exec *x, u32 budget, u32 *work)
{
	switch (x->opcode) {
	case NEURON_ISA_OP_MATMUL:
		return emu_matmul_step(x, budget, work);
	case NEURON_ISA_OP_REDUCE:
		return emu_reduce_step(x, work);
	case NEURON_ISA_OP_CAST:
	case NEURON_ISA_OP_GATHER:
		if (x->a.dtype == x->d.dtype)
			return emu_move_step(x, work);
		fallthrough;
	case NEURON_ISA_OP_TENSOR:
	case NEURON_ISA_OP_ACTIVATE:
		return emu_tensor_step(x, work);
	default: /* NEURON_ISA_OP_MEMSET */
		return emu_move_step(x, work);
	}
}

/**
 * emu_exec_step() - go on with an instruction
 * @x: started with emu_exec_start()
 * @budget: about how many multiply-accumulates or elements to do, see
 *          EMU_EXEC_BUDGET; at least one block of EMU_EXEC_BLOCK is done
 *
 * The bits that come out do not depend on the budgets.
 *
 * Return: 0 when the instruction is done, -EAGAIN if there is more to do; in that case
 * the caller may abandon it, which leaves the destination partly written.
 */
int emu_exec_step(struct emu_exec *x, u32 budget)
{
	u32 work;
	bool done;

	do {
		if (emu_simd_does(x))
			done = emu_simd_step(x, &work);
		else
			done = emu_integer_step(x, budget, &work);
		if (done)
			return 0;
		budget -= min_t(u32, budget, work);
	} while (budget);
	return -EAGAIN;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compute operations of DMA: packets that compute on their sources instead of copying
 * them (ISA.md section 11).
 *
 * Descriptors are checked and collected until their packet is complete.  Then all
 * addresses are pinned, as for a copy, all sources are read into a result buffer, and the
 * result is written.  So a refused packet touches nothing, and a destination may overlap
 * the sources in any way.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "mem.h"
#include "packet.h"

/* Word 1 of a source descriptor; all other bits are 0. */
#define META_SRC	0xfu
#define META_TYPES	0x3ffu		/* of source, destination and argument */
#define META_OP_SHIFT	20
#define META_OP		(7u << META_OP_SHIFT)
#define META_ALL	(NEURON_DESC_META_OP_MASK | META_OP | META_TYPES | \
			 NEURON_DESC_META_WRITE_BARRIER)

static u32 emu_packet_op(const struct emu_packet *p)
{
	return (p->meta & META_OP) >> META_OP_SHIFT;
}

/* A buffer for data.  Without memory the queue stops; the OOM killer does not run. */
static void *emu_packet_buffer(u32 bytes)
{
	return kvmalloc(bytes, GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
}

/**
 * emu_packet_new() - start a compute packet
 * @meta: word 1 of its first source descriptor
 *
 * Return: the packet, NULL: no memory.
 */
struct emu_packet *emu_packet_new(u32 meta)
{
	struct emu_packet *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (p)
		p->meta = meta & ~META_SRC;
	return p;
}

/**
 * emu_packet_free() - free a compute packet
 * @p: packet, may be NULL; nothing is pinned between two calls
 */
void emu_packet_free(struct emu_packet *p)
{
	kfree(p);
}

/**
 * emu_packet_source() - add a source descriptor
 * @p: packet
 * @meta: word 1
 * @addr: device address
 * @len: bytes
 * @irq: report completion
 *
 * Return: 0, -EINVAL it is malformed or does not belong to this packet.
 */
int emu_packet_source(struct emu_packet *p, u32 meta, u64 addr, u32 len, bool irq)
{
	u32 size;

	/* The first destination has fixed the length of the result. */
	if ((meta & ~META_SRC) != p->meta || p->nr_tx == NEURON_ISA_DMA_MAX_DESCS || p->nr_rx ||
	    meta & ~META_ALL)
		return -EINVAL;
	if (emu_packet_op(p) == NEURON_ISA_DMA_TRANSPOSE) {
		if (meta & META_TYPES || len > NEURON_ISA_DMA_MAX_BYTES - p->count)
			return -EINVAL;
		p->count += len;
	} else {
		p->c.op = emu_packet_op(p);
		p->c.arg_type = (meta >> 8) & 3;
		p->c.dst_dtype = (meta >> 4) & 0xf;
		if (p->nr_tx == NEURON_ISA_DMA_MAX_SOURCES)
			return -EINVAL;
		p->c.src_dtype[p->nr_tx] = meta & META_SRC;
		p->c.nr_src = p->nr_tx + 1;
		if (emu_compute_check(&p->c))
			return -EINVAL;
		size = emu_dma_dtype_size(meta & META_SRC);
		if (len % size || (p->nr_tx && len / size != p->count))
			return -EINVAL;
		p->count = len / size;
	}
	p->tx[p->nr_tx++] = (struct emu_extent){ .addr = addr, .len = len };
	p->irq |= irq;
	return 0;
}

/* The first destination descriptor has the argument, and with it all sizes are known. */
static int emu_packet_argument(struct emu_packet *p, u32 arg)
{
	u32 rows, cols, size;

	p->c.arg = arg;
	if (emu_packet_op(p) == NEURON_ISA_DMA_TRANSPOSE) {
		p->result = p->count;
		return emu_transpose_shape(&p->c, p->count, &rows, &cols, &size);
	}
	p->result = p->count * emu_dma_dtype_size(p->c.dst_dtype);
	if (p->result > NEURON_ISA_DMA_MAX_BYTES)
		return -EINVAL;
	return arg && p->c.arg_type == NEURON_ISA_DMA_ARG_NONE ? -EINVAL : 0;
}

/**
 * emu_packet_dest() - add a destination descriptor
 * @p: packet with all its sources
 * @arg: word 1
 * @addr: device address
 * @len: bytes
 * @irq: report completion
 *
 * Return: 1 the packet is complete, 0 more is needed, -EINVAL it is malformed
 * or the lengths do not match.
 */
int emu_packet_dest(struct emu_packet *p, u32 arg, u64 addr, u32 len, bool irq)
{
	if (p->nr_rx == NEURON_ISA_DMA_MAX_DESCS)
		return -EINVAL;
	if (p->nr_rx ? arg : emu_packet_argument(p, arg))
		return -EINVAL;
	if (len > p->result - p->room)
		return -EINVAL;
	p->rx[p->nr_rx++] = (struct emu_extent){ .addr = addr, .len = len };
	p->room += len;
	p->irq |= irq;
	return p->room == p->result;
}

static void emu_extents_put(struct emu_extent *op, u32 n)
{
	while (n--)
		neuron_pin_put(&op[n].pin);
}

/* Pin all of them, or none; registers and FIFOs cannot be operands. */
static int emu_extents_pin(struct emu_device *ed, struct neuron_space *space,
			   struct emu_extent *op, u32 n, bool write, u64 *bad)
{
	u32 i;

	for (i = 0; i < n; i++) {
		*bad = op[i].addr;
		if (emu_pin(ed, space, op[i].addr, op[i].len, write, &op[i].pin))
			break;
		if (op[i].pin.kind == NEURON_TARGET_CORE &&
		    !emu_sbuf_has(ed, op[i].pin.off, op[i].len)) {
			neuron_pin_put(&op[i].pin);
			break;
		}
	}
	if (i == n)
		return 0;
	emu_extents_put(op, i);
	return -EACCES;
}

/* With the windows locked: as emu_pin_check(), for all of them. */
static int emu_extents_check(struct emu_device *ed, struct neuron_space *space,
			     const struct emu_extent *op, u32 n, bool write, u64 *bad)
{
	int err = 0;

	for (; n && !err; n--, op++) {
		*bad = op->addr;
		err = emu_pin_check(ed, space, &op->pin, 0, op->len, write);
	}
	return err;
}

static int emu_packet_elements(struct emu_device *ed, struct emu_packet *p, u8 *out)
{
	u32 size, at, n, i;
	int err;

	for (at = 0; at < p->count; at += n) {
		n = min(p->count - at, EMU_COMPUTE_STEP);
		for (i = 0; i < p->nr_tx; i++) {
			size = emu_dma_dtype_size(p->c.src_dtype[i]);
			err = emu_mem_read(ed, &p->tx[i].pin, at * size, p->lane.raw, n * size);
			if (err)
				return err;
			emu_compute_source(&p->c, &p->lane, i, n);
		}
		size = emu_dma_dtype_size(p->c.dst_dtype);
		emu_compute_result(&p->c, &p->lane, out + at * size, n);
		if (at % (64 * EMU_COMPUTE_STEP) == 0)
			cond_resched();
	}
	return 0;
}

static int emu_packet_transpose(struct emu_device *ed, struct emu_packet *p, u8 *out)
{
	u32 rows, cols, size, at = 0, i;
	u8 *in;
	int err;

	err = emu_transpose_shape(&p->c, p->count, &rows, &cols, &size);
	if (err)
		return err;
	in = emu_packet_buffer(p->count);
	if (!in)
		return -ENOMEM;
	for (i = 0; i < p->nr_tx && !err; i++) {
		err = emu_mem_read(ed, &p->tx[i].pin, 0, in + at, p->tx[i].len);
		at += p->tx[i].len;
	}
	if (!err)
		emu_transpose(out, in, rows, cols, size);
	kvfree(in);
	return err;
}

/**
 * emu_packet_run() - execute a complete packet
 * @ed: device
 * @space: space of the queue
 * @core: core that the packet is for
 * @p: packet
 * @bad: set to an address that cannot be accessed or read, if any
 *
 * Return: 0; -EACCES; -EBADMSG, -EUCLEAN as emu_mem_ecc(); -ENOMEM part of the
 * result may have been written.
 */
int emu_packet_run(struct emu_device *ed, struct neuron_space *space, u32 core,
		   struct emu_packet *p, u64 *bad)
{
	u32 at = 0, i;
	u8 *out;
	int err;

	err = emu_extents_pin(ed, space, p->tx, p->nr_tx, false, bad);
	if (err)
		return err;
	err = emu_extents_pin(ed, space, p->rx, p->nr_rx, true, bad);
	if (err)
		goto put_tx;
	for (i = 0; i < p->nr_tx && !err; i++) {
		*bad = p->tx[i].addr;
		err = emu_mem_ecc(&ed->faults, ed->nd, core, &p->tx[i].pin);
	}
	if (err)
		goto put_rx;
	out = emu_packet_buffer(p->result);
	if (!out) {
		err = -ENOMEM;
		goto put_rx;
	}
	down_read(&ed->window_lock);
	err = emu_extents_check(ed, space, p->tx, p->nr_tx, false, bad) ?:
	      emu_extents_check(ed, space, p->rx, p->nr_rx, true, bad);
	if (err)
		goto unlock;
	if (emu_packet_op(p) == NEURON_ISA_DMA_TRANSPOSE)
		err = emu_packet_transpose(ed, p, out);
	else
		err = emu_packet_elements(ed, p, out);
	for (i = 0; i < p->nr_rx && !err; i++) {
		err = emu_mem_write(ed, &p->rx[i].pin, 0, out + at, p->rx[i].len);
		at += p->rx[i].len;
	}
unlock:
	up_read(&ed->window_lock);
	kvfree(out);
put_rx:
	emu_extents_put(p->rx, p->nr_rx);
put_tx:
	emu_extents_put(p->tx, p->nr_tx);
	return err;
}

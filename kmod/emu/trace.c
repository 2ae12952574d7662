// SPDX-License-Identifier: GPL-2.0-only
/*
 * Traces: notification queue entries for instructions, DMA packets and changes of
 * semaphores (ISA.md section 9).
 *
 * A queue that is not set up costs one read of its size.  A full queue stays as it is:
 * its last entry counts the entries that did not fit, and nobody waits.
 */
#include <linux/ktime.h>

#include "trace.h"

static bool emu_trace_on(const struct emu_notify *nt, u32 nq)
{
	const struct emu_nq *q = READ_ONCE(nt->nq);

	/* A change of the queue meanwhile is noticed under the lock. */
	return q && data_race(q[nq].size);
}

/**
 * emu_trace_inst() - an engine begins or completes an instruction
 * @nt: notification queues of the core
 * @e: engine
 * @kind: NEURON_ISA_NOTICE_BEGIN or NEURON_ISA_NOTICE_END
 * @id: instructions that the engine completed before
 * @opcode: of the instruction
 *
 * Context: the worker of the core, no spinlocks held.
 */
void emu_trace_inst(struct emu_notify *nt, u32 e, enum neuron_isa_notice_kind kind, u32 id,
		    u8 opcode)
{
	const u32 nq = EMU_NQ(EMU_NQ_TRACE, e);
	struct neuron_isa_notice n = {
		.id = cpu_to_le32(id),
		.engine = e,
		.kind = kind,
		.code = opcode,
	};

	if (!emu_trace_on(nt, nq))
		return;
	n.data = cpu_to_le64(ktime_get_ns());
	emu_nq_fill(nt, nq, &n, 1);
}

/**
 * emu_trace_sem_prepare() - note a change of a semaphore
 * @nt: notification queues of the core
 * @i: semaphore
 * @val: its new value
 * @by: engine that changed it, NEURON_ISA_BY_ACCESS
 * @n: for emu_trace_sem_post()
 *
 * Context: under the lock of the semaphore, so that times are in the order of the changes.
 */
void emu_trace_sem_prepare(struct emu_notify *nt, u32 i, u32 val, u32 by,
			   struct neuron_isa_notice *n)
{
	n->kind = 0;
	if (!emu_trace_on(nt, EMU_NQ(EMU_NQ_EVENT, 0)))
		return;
	*n = (struct neuron_isa_notice){
		.id = cpu_to_le32(val),
		.engine = by,
		.kind = NEURON_ISA_NOTICE_SEMAPHORE,
		.code = i,
		.data = cpu_to_le64(ktime_get_ns()),
	};
}

/**
 * emu_trace_sem_post() - post what emu_trace_sem_prepare() noted
 * @nt: notification queues of the core
 * @n: the note
 *
 * Context: process, no spinlocks held.
 */
void emu_trace_sem_post(struct emu_notify *nt, const struct neuron_isa_notice *n)
{
	if (n->kind)
		emu_nq_fill(nt, EMU_NQ(EMU_NQ_EVENT, 0), n, 1);
}

/* The notification queues of a DMA engine's core; *@nq is the queue to use.  NULL: no core. */
static struct emu_notify *emu_trace_dma_nq(struct emu_device *ed, u32 eng, u32 *nq)
{
	u32 core = eng / ed->geo.engines_per_core, i = eng % ed->geo.engines_per_core;

	if (core >= ed->geo.nr_cores || i >= NEURON_HW_NQ_ENGINES)
		return NULL;
	*nq = EMU_NQ(EMU_NQ_TRACE_DMA, i);
	return ed->notify[core];
}

/**
 * emu_trace_dma_begin() - a packet is taken from a ring
 * @ed: device
 * @eng: DMA engine
 *
 * Return: the time, for emu_trace_dma_end(); 0 if there is no trace.
 */
u64 emu_trace_dma_begin(struct emu_device *ed, u32 eng)
{
	u32 nq;
	struct emu_notify *nt = emu_trace_dma_nq(ed, eng, &nq);

	return nt && emu_trace_on(nt, nq) ? ktime_get_ns() : 0;
}

/**
 * emu_trace_dma_end() - a packet is complete
 * @ed: device
 * @eng: DMA engine
 * @q: queue
 * @began: when it was taken
 * @first: source descriptors completed before it
 * @bytes: bytes written
 *
 * Context: process, no spinlocks held.
 */
void emu_trace_dma_end(struct emu_device *ed, u32 eng, u32 q, u64 began, u32 first, u32 bytes)
{
	u32 nq;
	struct emu_notify *nt = emu_trace_dma_nq(ed, eng, &nq);
	struct neuron_isa_notice n[2] = {
		{
			.id = cpu_to_le32(first),
			.engine = eng & 0xff,
			.kind = NEURON_ISA_NOTICE_DMA_BEGIN,
			.phase = q << 4,
			.data = cpu_to_le64(began),
		}, {
			.id = cpu_to_le32(bytes),
			.engine = eng & 0xff,
			.kind = NEURON_ISA_NOTICE_DMA_END,
			.phase = q << 4,
		},
	};

	if (!began || !nt)
		return;
	n[1].data = cpu_to_le64(ktime_get_ns());
	emu_nq_fill(nt, nq, n, ARRAY_SIZE(n));
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Traces: what engines and DMA queues do, and how semaphores change, as entries of
 * notification queues (ISA.md section 9).
 *
 * A queue that is not set up costs one look at its size.  One that is full stays as it
 * is: its last entry counts what did not fit, and nobody waits.
 */
#include <linux/ktime.h>

#include "emu.h"

static u32 emu_trace_nq(u32 type, u32 engine)
{
	return type * NEURON_HW_NQ_ENGINES + engine;
}

static bool emu_trace_on(const struct emu_core *core, u32 nq)
{
	/* A queue that comes or goes meanwhile is found out under the lock. */
	return data_race(core->nq[nq].size);
}

/**
 * emu_trace_inst() - an engine begins or completes an instruction
 * @core: core
 * @e: engine; its current instruction is the one
 * @kind: NEURON_ISA_NOTICE_BEGIN or NEURON_ISA_NOTICE_END
 *
 * Context: the worker of the core, no spinlocks held.
 */
void emu_trace_inst(struct emu_core *core, u32 e, enum neuron_isa_notice_kind kind)
{
	const u32 nq = emu_trace_nq(EMU_NQ_TRACE, e);
	const struct emu_engine *eng = &core->engine[e];
	struct neuron_isa_notice n = {
		.id = cpu_to_le32(eng->done),
		.engine = e,
		.kind = kind,
		.code = eng->inst.opcode,
	};

	if (!emu_trace_on(core, nq))
		return;
	n.data = cpu_to_le64(ktime_get_ns());
	emu_nq_fill(core, nq, &n, 1);
}

/**
 * emu_trace_sem_prepare() - note a change of a semaphore
 * @core: core; its lock is held, so that times are in the order of the changes
 * @i: semaphore, changed
 * @by: engine that changed it, NEURON_ISA_BY_ACCESS
 * @n: for emu_trace_sem_post()
 */
void emu_trace_sem_prepare(struct emu_core *core, u32 i, u32 by, struct neuron_isa_notice *n)
{
	lockdep_assert_held(&core->lock);
	n->kind = 0;
	if (!emu_trace_on(core, emu_trace_nq(EMU_NQ_EVENT, 0)))
		return;
	*n = (struct neuron_isa_notice){
		.id = cpu_to_le32(core->sem[i]),
		.engine = by,
		.kind = NEURON_ISA_NOTICE_SEMAPHORE,
		.code = i,
		.data = cpu_to_le64(ktime_get_ns()),
	};
}

/**
 * emu_trace_sem_post() - post what emu_trace_sem_prepare() noted
 * @core: core
 * @n: the note
 *
 * Context: process, no spinlocks held.
 */
void emu_trace_sem_post(struct emu_core *core, const struct neuron_isa_notice *n)
{
	if (n->kind)
		emu_nq_fill(core, emu_trace_nq(EMU_NQ_EVENT, 0), n, 1);
}

/* The core and the notification queue of a DMA engine; NULL: it belongs to no core. */
static struct emu_core *emu_trace_dma_core(struct emu_device *ed, u32 eng, u32 *nq)
{
	u32 core = eng / ed->geo.engines_per_core, i = eng % ed->geo.engines_per_core;

	if (core >= ed->geo.nr_cores || i >= NEURON_HW_NQ_ENGINES)
		return NULL;
	*nq = emu_trace_nq(EMU_NQ_TRACE_DMA, i);
	return ed->core[core];
}

/**
 * emu_trace_dma_begin() - a packet is taken from a ring
 * @ed: device
 * @eng: DMA engine
 *
 * Return: the time, for emu_trace_dma_end(); 0: there is no trace.
 */
u64 emu_trace_dma_begin(struct emu_device *ed, u32 eng)
{
	u32 nq;
	struct emu_core *core = emu_trace_dma_core(ed, eng, &nq);

	return core && emu_trace_on(core, nq) ? ktime_get_ns() : 0;
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
	struct emu_core *core = emu_trace_dma_core(ed, eng, &nq);
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

	if (!began || !core)
		return;
	n[1].data = cpu_to_le64(ktime_get_ns());
	emu_nq_fill(core, nq, n, ARRAY_SIZE(n));
}

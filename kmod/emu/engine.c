// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engines of a core execute the instructions of uapi/neuron_isa.h.  ISA.md defines
 * the instructions.  This file executes the control instructions and calls exec.c for
 * those that compute.
 */
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/sched.h>

#include "dma.h"
#include "engine.h"
#include "mem.h"
#include "notify.h"
#include "trace.h"

/* Results of an instruction besides 0 (done) and enum neuron_isa_error. */
#define EMU_BLOCKED		(-1)	/* waits for a semaphore or event */
#define EMU_MORE		(-2)	/* not complete, wants another turn */

static struct emu_notify *emu_engine_nq(struct emu_engine *eng)
{
	return eng->window->ed->notify[eng->window->core];
}

static int emu_engine_wait(struct emu_engine *eng, const struct neuron_isa_inst *inst)
{
	u32 i = le32_to_cpu(inst->u.sem.index), val = le32_to_cpu(inst->u.sem.value);
	bool consume = inst->flags & NEURON_ISA_F_CONSUME, go;
	struct neuron_isa_notice change = { .kind = 0 };
	struct emu_window *w = eng->window;

	spin_lock(&w->lock);
	if (inst->opcode == NEURON_ISA_OP_EVENT_WAIT) {
		go = test_bit(i, w->event) == val;
		if (go && consume)
			__clear_bit(i, w->event);
	} else {
		go = inst->op == NEURON_ISA_WAIT_EQ ? w->sem[i] == val : w->sem[i] >= val;
		if (go && consume) {
			w->sem[i] -= val;
			emu_trace_sem_prepare(emu_engine_nq(eng), i, w->sem[i], eng->index,
					      &change);
		}
	}
	if (go)
		w->waiting &= ~BIT(eng->index);
	else
		w->waiting |= BIT(eng->index);
	spin_unlock(&w->lock);
	emu_trace_sem_post(emu_engine_nq(eng), &change);
	return go ? 0 : EMU_BLOCKED;
}

static int emu_engine_post(struct emu_engine *eng, const struct neuron_isa_inst *inst)
{
	u32 i = le32_to_cpu(inst->u.sem.index), val = le32_to_cpu(inst->u.sem.value);
	struct emu_window *w = eng->window;

	if (inst->opcode != NEURON_ISA_OP_EVENT_SET)
		return emu_sem_post(w, i, inst->op, val, eng->index) ?
		       NEURON_ISA_ERR_SEMAPHORE : 0;
	spin_lock(&w->lock);
	__assign_bit(i, w->event, val);
	spin_unlock(&w->lock);
	return 0;
}

static int emu_engine_trigger(struct emu_engine *eng, const struct neuron_isa_inst *inst)
{
	struct emu_window *w = eng->window;
	u32 dma = w->core * w->ed->lim.engines_per_core + le16_to_cpu(inst->u.dma.engine);
	struct neuron_space *space;

	spin_lock(&w->lock);
	space = w->space;
	spin_unlock(&w->lock);
	if (!space || !emu_dma_trigger(w->ed, dma, le16_to_cpu(inst->u.dma.queue), space,
				       le32_to_cpu(inst->u.dma.tx_count),
				       le32_to_cpu(inst->u.dma.rx_count)))
		return NEURON_ISA_ERR_QUEUE;
	return 0;
}

static void emu_engine_notify(struct emu_engine *eng, const struct neuron_isa_inst *inst)
{
	struct neuron_isa_notice n = {
		.id = inst->u.notify.id,
		.engine = eng->index,
		.kind = NEURON_ISA_NOTICE_NOTIFY,
		.data = inst->u.notify.data,
	};

	emu_nq_post(emu_engine_nq(eng), EMU_NQ(EMU_NQ_NOTIFY, eng->index), &n);
}

/* Begin a compute instruction.  Return: 0 or enum neuron_isa_error. */
static int emu_engine_begin(struct emu_engine *eng)
{
	struct emu_device *ed = eng->window->ed;
	u32 core = eng->window->core;
	struct emu_sbuf sb = {
		.base = emu_sbuf_get(ed, core, true),
		.size = ed->lim.sbuf_size,
		.simd = ed->simd,
	};
	int err;

	if (!sb.base)
		return NEURON_ISA_ERR_ABORT;
	emu_ecc(&ed->faults, EMU_FAULT_SRAM_CORRECTED, ed->nd, core);
	if (emu_ecc(&ed->faults, EMU_FAULT_SRAM_UNCORRECTED, ed->nd, core))
		return NEURON_ISA_ERR_SRAM_UE;
	/* Without memory for the vector registers' way it is done with integers. */
	if (sb.simd && eng->inst.opcode == NEURON_ISA_OP_MATMUL && !eng->rows)
		eng->rows = emu_rows_new(ed->wq, num_online_cpus());
	if (eng->rows) {
		sb.part = emu_rows_part(eng->rows);
		sb.workers = emu_rows_workers(eng->rows);
	}
	err = emu_exec_start(&eng->exec, &eng->inst, eng->index, &sb);
	if (!err && emu_exec_matmul(&eng->exec))
		emu_rows_start(eng->rows, emu_exec_matmul(&eng->exec));
	return err;
}

static int emu_engine_compute(struct emu_engine *eng)
{
	int err;
	bool done;

	if (!eng->computing) {
		err = emu_engine_begin(eng);
		if (err)
			return err;
		eng->computing = true;
	}
	if (emu_exec_matmul(&eng->exec))
		done = emu_rows_step(eng->rows);
	else
		done = !emu_exec_step(&eng->exec, emu_exec_budget(&eng->exec));
	if (!done)
		return EMU_MORE;
	eng->computing = false;
	return 0;
}

/* Execute the current instruction, or as much of it as fits into a turn. */
static int emu_engine_execute(struct emu_engine *eng)
{
	const struct neuron_isa_inst *inst = &eng->inst;

	if (emu_isa_is_compute(inst))
		return emu_engine_compute(eng);
	switch (inst->opcode) {
	case NEURON_ISA_OP_SEM_WAIT:
	case NEURON_ISA_OP_EVENT_WAIT:
		return emu_engine_wait(eng, inst);
	case NEURON_ISA_OP_SEM_POST:
	case NEURON_ISA_OP_EVENT_SET:
		return emu_engine_post(eng, inst);
	case NEURON_ISA_OP_DMA_TRIGGER:
		return emu_engine_trigger(eng, inst);
	case NEURON_ISA_OP_NOTIFY:
		emu_engine_notify(eng, inst);
		return 0;
	case NEURON_ISA_OP_PROLOGUE:
	case NEURON_ISA_OP_NOP:
		return 0;
	default:
		return NEURON_ISA_ERR_ILLEGAL;
	}
}

static void emu_engine_trace(struct emu_engine *eng, enum neuron_isa_notice_kind kind)
{
	emu_trace_inst(emu_engine_nq(eng), eng->index, kind, eng->done, eng->inst.opcode);
}

/* Get the next instruction.  Return: 0, EMU_BLOCKED, enum neuron_isa_error. */
static int emu_engine_fetch(struct emu_engine *eng)
{
	int err;

	if (!emu_fifo_peek(eng->window, eng->index, &eng->inst))
		return EMU_BLOCKED;
	err = emu_isa_check(&eng->inst, eng->index, &eng->window->ed->lim);
	if (err)
		return err;
	if (eng->inst.opcode == NEURON_ISA_OP_PROLOGUE)
		eng->started = true;
	if (!eng->started)
		return NEURON_ISA_ERR_ILLEGAL;
	eng->loaded = true;
	emu_engine_trace(eng, NEURON_ISA_NOTICE_BEGIN);
	return 0;
}

static void emu_engine_fail(struct emu_engine *eng, u32 code)
{
	struct neuron_isa_notice n = {
		.id = cpu_to_le32(eng->done),
		.engine = eng->index,
		.kind = NEURON_ISA_NOTICE_ERROR,
		.code = code,
		.data = cpu_to_le64(eng->inst.opcode),
	};

	eng->failed = true;
	emu_nq_post(emu_engine_nq(eng), EMU_NQ(EMU_NQ_ERROR, 0), &n);
}

/* The current instruction is complete. */
static void emu_engine_retire(struct emu_engine *eng)
{
	eng->loaded = false;
	eng->done++;
	/* Waiting writers are woken only when there is room for more than one instruction. */
	if (emu_fifo_take(eng->window, eng->index, NEURON_ISA_INST_SIZE,
			  NEURON_ISA_FIFO_SIZE / 2))
		emu_dma_kick(eng->window->ed);
}

/*
 * The engine cannot go on.  DMA queues that wait for room in its FIFO may use the little
 * room there is, because the data that the engine needs may come later in the same ring.
 */
static void emu_engine_idle(struct emu_engine *eng)
{
	if (emu_fifo_take(eng->window, eng->index, 0, NEURON_ISA_FIFO_SIZE - 1))
		emu_dma_kick(eng->window->ed);
}

/* Do others wait for the end of a turn?  Instructions that compute take that long. */
static bool emu_engine_over(struct emu_engine *eng, u64 start, u64 ns)
{
	cond_resched();
	return READ_ONCE(eng->window->resetting) || ktime_get_ns() - start >= ns;
}

/**
 * emu_engine_turn() - let an engine execute a few instructions
 * @eng: engine
 * @nr: how many at most
 * @ns: how long it goes on with further ones, from the first one that computes
 *
 * Context: emu_window.work, may sleep.
 * Return: true if the engine made progress.
 */
bool emu_engine_turn(struct emu_engine *eng, u32 nr, u64 ns)
{
	bool progress = false;
	u64 start = 0;
	int ret = 0;
	u32 i;

	if (eng->failed)
		return false;
	for (i = 0; i < nr; i++) {
		if (!eng->loaded)
			ret = emu_engine_fetch(eng);
		/* A hanging engine reports nothing. */
		if (!ret && emu_fault(&eng->window->ed->faults, EMU_FAULT_HANG)) {
			eng->failed = true;
			return progress;
		}
		if (!ret && !start && emu_isa_is_compute(&eng->inst))
			start = ktime_get_ns();
		if (!ret)
			ret = emu_engine_execute(eng);
		if (ret)
			break;
		emu_engine_trace(eng, NEURON_ISA_NOTICE_END);
		emu_engine_retire(eng);
		progress = true;
		if (start && emu_engine_over(eng, start, ns))
			break;
	}
	if (ret == EMU_MORE)
		return true;
	if (ret > 0)
		emu_engine_fail(eng, ret);
	if (ret)
		emu_engine_idle(eng);
	return progress;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engines of a core execute the instructions of uapi/neuron_isa.h.  ISA.md says
 * what the instructions mean; this file does the control instructions and calls
 * exec.c for those that compute.
 */
#include <linux/string.h>

#include "emu.h"

/* Instructions of an engine before others get a turn. */
#define EMU_ENGINE_TURN		32

/* Results of an instruction besides 0 (done) and enum neuron_isa_error. */
#define EMU_BLOCKED		(-1)	/* waits for a semaphore or event */
#define EMU_MORE		(-2)	/* not complete, wants another turn */

static int emu_engine_wait(struct emu_core *core, u32 e, const struct neuron_isa_inst *inst)
{
	u32 i = le32_to_cpu(inst->u.sem.index), val = le32_to_cpu(inst->u.sem.value);
	bool consume = inst->flags & NEURON_ISA_F_CONSUME, go;
	struct neuron_isa_notice change = { .kind = 0 };

	spin_lock(&core->lock);
	if (inst->opcode == NEURON_ISA_OP_EVENT_WAIT) {
		go = test_bit(i, core->event) == val;
		if (go && consume)
			__clear_bit(i, core->event);
	} else {
		go = inst->op == NEURON_ISA_WAIT_EQ ? core->sem[i] == val : core->sem[i] >= val;
		if (go && consume) {
			core->sem[i] -= val;
			emu_trace_sem_prepare(core, i, e, &change);
		}
	}
	if (go)
		core->waiting &= ~BIT(e);
	else
		core->waiting |= BIT(e);
	spin_unlock(&core->lock);
	emu_trace_sem_post(core, &change);
	return go ? 0 : EMU_BLOCKED;
}

/*
 * Engines that wait for this are looked at in the next round, which comes
 * because this engine made progress: no need to queue the work.
 */
static int emu_engine_post(struct emu_core *core, u32 e, const struct neuron_isa_inst *inst)
{
	u32 i = le32_to_cpu(inst->u.sem.index), val = le32_to_cpu(inst->u.sem.value);
	struct neuron_isa_notice change = { .kind = 0 };
	int err = 0;

	spin_lock(&core->lock);
	if (inst->opcode == NEURON_ISA_OP_EVENT_SET) {
		__assign_bit(i, core->event, val);
	} else {
		err = emu_sem_post(core, i, inst->op, val);
		if (!err)
			emu_trace_sem_prepare(core, i, e, &change);
	}
	spin_unlock(&core->lock);
	emu_trace_sem_post(core, &change);
	return err ? NEURON_ISA_ERR_SEMAPHORE : 0;
}

static int emu_engine_trigger(struct emu_core *core, const struct neuron_isa_inst *inst)
{
	u32 eng = core->index * core->lim.engines_per_core + le16_to_cpu(inst->u.dma.engine);
	struct neuron_space *space;

	spin_lock(&core->lock);
	space = core->space;
	spin_unlock(&core->lock);
	if (!space || !emu_dma_trigger(core->ed, eng, le16_to_cpu(inst->u.dma.queue), space,
				       le32_to_cpu(inst->u.dma.tx_count),
				       le32_to_cpu(inst->u.dma.rx_count)))
		return NEURON_ISA_ERR_QUEUE;
	return 0;
}

static void emu_engine_notify(struct emu_core *core, u32 e, const struct neuron_isa_inst *inst)
{
	struct neuron_isa_notice n = {
		.id = inst->u.notify.id,
		.engine = e,
		.kind = NEURON_ISA_NOTICE_NOTIFY,
		.data = inst->u.notify.data,
	};

	emu_nq_post(core, EMU_NQ_NOTIFY * NEURON_HW_NQ_ENGINES + e, &n);
}

static int emu_engine_compute(struct emu_core *core, u32 e)
{
	struct emu_engine *eng = &core->engine[e];
	int err;

	if (!eng->computing) {
		struct emu_sbuf sb = {
			.base = emu_core_sbuf(core, true),
			.size = core->lim.sbuf_size,
		};

		if (!sb.base)
			return NEURON_ISA_ERR_ABORT;
		emu_ecc(core->ed, EMU_FAULT_SRAM_CORRECTED, core->index);
		if (emu_ecc(core->ed, EMU_FAULT_SRAM_UNCORRECTED, core->index))
			return NEURON_ISA_ERR_SRAM_UE;
		err = emu_exec_start(&eng->exec, &eng->inst, e, &sb);
		if (err)
			return err;
		eng->computing = true;
	}
	if (emu_exec_step(&eng->exec, EMU_EXEC_BUDGET))
		return EMU_MORE;
	eng->computing = false;
	return 0;
}

/* Do the current instruction, or what fits into a turn. */
static int emu_engine_execute(struct emu_core *core, u32 e)
{
	struct emu_engine *eng = &core->engine[e];
	const struct neuron_isa_inst *inst = &eng->inst;

	if (emu_isa_is_compute(inst))
		return emu_engine_compute(core, e);
	switch (inst->opcode) {
	case NEURON_ISA_OP_SEM_WAIT:
	case NEURON_ISA_OP_EVENT_WAIT:
		return emu_engine_wait(core, e, inst);
	case NEURON_ISA_OP_SEM_POST:
	case NEURON_ISA_OP_EVENT_SET:
		return emu_engine_post(core, e, inst);
	case NEURON_ISA_OP_DMA_TRIGGER:
		return emu_engine_trigger(core, inst);
	case NEURON_ISA_OP_NOTIFY:
		emu_engine_notify(core, e, inst);
		return 0;
	case NEURON_ISA_OP_PROLOGUE:
	case NEURON_ISA_OP_NOP:
		return 0;
	default:
		return NEURON_ISA_ERR_ILLEGAL;
	}
}

/* Get the next instruction.  Return: 0, EMU_BLOCKED, enum neuron_isa_error. */
static int emu_engine_fetch(struct emu_core *core, u32 e)
{
	struct emu_engine *eng = &core->engine[e];
	u32 head;
	int err;

	spin_lock(&core->lock);
	head = eng->fifo.head;
	err = head == eng->fifo.tail ? EMU_BLOCKED : 0;
	spin_unlock(&core->lock);
	if (err)
		return err;
	/* Whole instructions only, and the size is a multiple: never split. */
	memcpy(&eng->inst, eng->fifo.buf + head % NEURON_ISA_FIFO_SIZE, sizeof(eng->inst));
	err = emu_isa_check(&eng->inst, e, &core->lim);
	if (err)
		return err;
	if (eng->inst.opcode == NEURON_ISA_OP_PROLOGUE)
		eng->started = true;
	if (!eng->started)
		return NEURON_ISA_ERR_ILLEGAL;
	eng->loaded = true;
	emu_trace_inst(core, e, NEURON_ISA_NOTICE_BEGIN);
	return 0;
}

static void emu_engine_fail(struct emu_core *core, u32 e, u32 code)
{
	struct emu_engine *eng = &core->engine[e];
	struct neuron_isa_notice n = {
		.id = cpu_to_le32(eng->done),
		.engine = e,
		.kind = NEURON_ISA_NOTICE_ERROR,
		.code = code,
		.data = cpu_to_le64(eng->inst.opcode),
	};

	eng->failed = true;
	emu_nq_post(core, EMU_NQ_ERROR * NEURON_HW_NQ_ENGINES, &n);
}

/* The current instruction is complete: make room in the FIFO. */
static void emu_engine_retire(struct emu_core *core, struct emu_engine *eng)
{
	struct emu_fifo *fifo = &eng->fifo;
	bool kick;

	eng->loaded = false;
	eng->done++;
	spin_lock(&core->lock);
	fifo->head += NEURON_ISA_INST_SIZE;
	/* Writers that wait are woken for more than one instruction's room. */
	kick = fifo->stalled && fifo->tail - fifo->head <= NEURON_ISA_FIFO_SIZE / 2;
	if (kick)
		fifo->stalled = false;
	spin_unlock(&core->lock);
	if (kick)
		emu_dma_kick(core->ed);
}

/*
 * The engine cannot go on: whoever waits for room may use what there is now,
 * since what the engine needs may come from behind it in the same ring.
 */
static void emu_engine_idle(struct emu_core *core, struct emu_engine *eng)
{
	struct emu_fifo *fifo = &eng->fifo;
	bool kick;

	spin_lock(&core->lock);
	kick = fifo->stalled && fifo->tail - fifo->head < NEURON_ISA_FIFO_SIZE;
	if (kick)
		fifo->stalled = false;
	spin_unlock(&core->lock);
	if (kick)
		emu_dma_kick(core->ed);
}

/* Give an engine a turn.  Return: did anything happen? */
bool emu_engine_turn(struct emu_core *core, u32 e)
{
	struct emu_engine *eng = &core->engine[e];
	bool progress = false;
	int i, ret = 0;

	if (eng->failed)
		return false;
	for (i = 0; i < EMU_ENGINE_TURN; i++) {
		if (!eng->loaded)
			ret = emu_engine_fetch(core, e);
		/* An engine that hangs says nothing. */
		if (!ret && emu_fault(core->ed, EMU_FAULT_HANG)) {
			eng->failed = true;
			return progress;
		}
		if (!ret)
			ret = emu_engine_execute(core, e);
		if (ret)
			break;
		emu_trace_inst(core, e, NEURON_ISA_NOTICE_END);
		emu_engine_retire(core, eng);
		progress = true;
	}
	if (ret == EMU_MORE)
		return true;
	if (ret > 0)
		emu_engine_fail(core, e, ret);
	if (ret)
		emu_engine_idle(core, eng);
	return progress;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * NeuronCores: state buffer, semaphores, events, notification queues, and five
 * engines that execute the instructions of uapi/neuron_isa.h.  ISA.md says what
 * the instructions mean; this file does the control instructions and calls
 * exec.c for those that compute.
 *
 * One work item runs the engines of a core in turns.  It sleeps when all of
 * them are blocked or out of instructions, and is queued by whatever can change
 * that: bytes in a FIFO, or a write to a semaphore or event.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "emu.h"

/* Instructions of an engine, and rounds of a core, before others get a turn. */
#define EMU_ENGINE_TURN		32
#define EMU_CORE_ROUNDS		64

/* Results of an instruction besides 0 (done) and enum neuron_isa_error. */
#define EMU_BLOCKED		(-1)	/* waits for a semaphore or event */
#define EMU_MORE		(-2)	/* not complete, wants another turn */

static void emu_core_work(struct work_struct *work);

/**
 * emu_core_init() - make the cores of a device
 * @ed: device; geometry and workqueue are there
 *
 * Return: 0, -ENOMEM; emu_core_destroy() is due in both cases.
 */
int emu_core_init(struct emu_device *ed)
{
	struct emu_core *core;
	u32 i;

	init_rwsem(&ed->window);
	for (i = 0; i < ed->geo.nr_cores; i++) {
		core = kzalloc(sizeof(*core), GFP_KERNEL);
		if (!core)
			return -ENOMEM;
		core->ed = ed;
		core->index = i;
		mutex_init(&core->reset);
		mutex_init(&core->append);
		mutex_init(&core->nq_lock);
		spin_lock_init(&core->lock);
		INIT_WORK(&core->work, emu_core_work);
		core->lim.sbuf_size = ed->geo.sbuf_size;
		core->lim.nr_semaphores = ed->geo.nr_semaphores;
		core->lim.nr_events = ed->geo.nr_events;
		core->lim.engines_per_core = ed->geo.engines_per_core;
		core->lim.nr_queues = NEURON_HW_QUEUES_PER_ENGINE;
		ed->core[i] = core;
	}
	return 0;
}

/**
 * emu_core_destroy() - remove the cores of a device
 * @ed: device; neuron_device_del() has stopped all DMA queues
 */
void emu_core_destroy(struct emu_device *ed)
{
	u32 i;

	for (i = 0; i < ed->geo.nr_cores; i++) {
		if (!ed->core[i])
			continue;
		emu_core_reset(ed->core[i]);
		kfree(ed->core[i]);
		ed->core[i] = NULL;
	}
}

/* Run the engines.  Caller holds core->lock. */
static void emu_core_wake(struct emu_core *core)
{
	lockdep_assert_held(&core->lock);
	if (!core->resetting && !core->broken)
		queue_work(core->ed->wq, &core->work);
}

/* A semaphore or event changed.  Caller holds core->lock. */
static void emu_core_signal(struct emu_core *core)
{
	if (core->waiting)
		emu_core_wake(core);
}

/**
 * emu_core_bind() - the engines act for @space from now on
 * @core: core, reset
 * @space: NULL for nobody
 */
void emu_core_bind(struct emu_core *core, struct neuron_space *space)
{
	spin_lock(&core->lock);
	core->space = space;
	spin_unlock(&core->lock);
}

static void emu_sbuf_free(struct emu_core *core, u8 *sbuf)
{
	if (sbuf)
		emu_pages_uncharge(PFN_UP(core->lim.sbuf_size));
	kvfree(sbuf);
}

/**
 * emu_core_reset() - bring a core to its initial state
 * @core: core
 *
 * Returns when the engines have stopped and will not write to notification
 * queues any more.
 *
 * Return: 0; -EIO a fault that was asked for: the engines do not start before
 * the next reset.
 */
int emu_core_reset(struct emu_core *core)
{
	u8 *fifo[NEURON_ISA_NR_ENGINES], *sbuf;
	bool broken;
	u32 i;

	mutex_lock(&core->reset);
	if (emu_fault(core->ed, EMU_FAULT_RESET_SLOW))
		msleep(READ_ONCE(core->ed->reset_slow_msec));
	broken = emu_fault(core->ed, EMU_FAULT_RESET);
	spin_lock(&core->lock);
	core->resetting = true;
	spin_unlock(&core->lock);
	cancel_work_sync(&core->work);

	mutex_lock(&core->nq_lock);
	memset(core->nq, 0, sizeof(core->nq));
	mutex_unlock(&core->nq_lock);

	down_write(&core->ed->window);
	spin_lock(&core->lock);
	for (i = 0; i < NEURON_ISA_NR_ENGINES; i++) {
		fifo[i] = core->engine[i].fifo.buf;
		memset(&core->engine[i], 0, sizeof(core->engine[i]));
	}
	sbuf = core->sbuf;
	core->sbuf = NULL;
	memset(core->sem, 0, sizeof(core->sem));
	bitmap_zero(core->event, EMU_MAX_EVENTS);
	core->waiting = 0;
	core->resetting = false;
	core->broken = broken;
	spin_unlock(&core->lock);
	up_write(&core->ed->window);

	for (i = 0; i < NEURON_ISA_NR_ENGINES; i++)
		kvfree(fifo[i]);
	emu_sbuf_free(core, sbuf);
	/* the FIFOs have room now */
	emu_dma_kick(core->ed);
	mutex_unlock(&core->reset);
	return broken ? -EIO : 0;
}

/* ---- core window ---- */

/**
 * emu_core_is_sbuf() - does a range of a core window lie in the state buffer?
 * @ed: device
 * @off: first byte
 * @len: bytes
 */
bool emu_core_is_sbuf(struct emu_device *ed, u64 off, u64 len)
{
	off -= NEURON_ISA_SBUF_OFF;
	return len <= ed->geo.sbuf_size && off <= ed->geo.sbuf_size - len;
}

/**
 * emu_core_sbuf() - state buffer of a core
 * @core: core; emu_device.window is held, or it is the work of the core
 * @alloc: make it if it is not there
 *
 * Return: the buffer; NULL: nothing was written yet, or no memory.
 */
u8 *emu_core_sbuf(struct emu_core *core, bool alloc)
{
	u8 *sbuf = READ_ONCE(core->sbuf), *old;

	if (sbuf || !alloc)
		return sbuf;
	if (!emu_pages_charge(PFN_UP(core->lim.sbuf_size)))
		return NULL;
	/* Somebody who uses the device must not cost others their lives. */
	sbuf = kvzalloc(core->lim.sbuf_size, GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!sbuf) {
		emu_pages_uncharge(PFN_UP(core->lim.sbuf_size));
		return NULL;
	}
	old = cmpxchg(&core->sbuf, NULL, sbuf);
	if (old) {
		emu_sbuf_free(core, sbuf);
		return old;
	}
	return sbuf;
}

/* Is @off one of @nr registers that start at @first? */
static bool emu_reg_in(u64 off, u32 first, u32 nr, u32 *index)
{
	if (off < first || off - first >= 4 * nr || off % 4)
		return false;
	*index = (u32)(off - first) / 4;
	return true;
}

/* Caller holds core->lock.  Return: 0, -ERANGE the counter would wrap. */
static int emu_sem_post(struct emu_core *core, u32 i, u32 op, u32 val)
{
	u32 old = core->sem[i];

	switch (op) {
	case NEURON_ISA_POST_SET:
		core->sem[i] = val;
		return 0;
	case NEURON_ISA_POST_INC:
		if (val > U32_MAX - old)
			return -ERANGE;
		core->sem[i] = old + val;
		return 0;
	default: /* NEURON_ISA_POST_DEC */
		if (val > old)
			return -ERANGE;
		core->sem[i] = old - val;
		return 0;
	}
}

/**
 * emu_core_reg_read() - read a register of a core window
 * @core: core
 * @off: offset, a multiple of 4
 * @val: the result
 *
 * Return: 0, -EACCES no such register.
 */
int emu_core_reg_read(struct emu_core *core, u64 off, u32 *val)
{
	u32 i;

	if (emu_reg_in(off, NEURON_ISA_EVENT_OFF(0), core->lim.nr_events, &i)) {
		spin_lock(&core->lock);
		*val = test_bit(i, core->event);
		spin_unlock(&core->lock);
		return 0;
	}
	if (emu_reg_in(off, NEURON_ISA_SEM_READ_OFF(0), core->lim.nr_semaphores, &i)) {
		spin_lock(&core->lock);
		*val = core->sem[i];
		spin_unlock(&core->lock);
		return 0;
	}
	return -EACCES;
}

/**
 * emu_core_reg_write() - write a register of a core window
 * @core: core
 * @off: offset, a multiple of 4
 * @val: value
 *
 * Return: 0, -EACCES no such register, -ERANGE a semaphore would wrap.
 */
int emu_core_reg_write(struct emu_core *core, u64 off, u32 val)
{
	/* behind the block to read: set, increment, decrement */
	const u32 base = NEURON_ISA_SEM_READ_OFF(0) + core->ed->geo.sem_block;
	struct neuron_isa_notice change = { .kind = 0 };
	u32 i, op;
	int err;

	if (emu_reg_in(off, NEURON_ISA_EVENT_OFF(0), core->lim.nr_events, &i)) {
		spin_lock(&core->lock);
		__assign_bit(i, core->event, val & 1);
		emu_core_signal(core);
		spin_unlock(&core->lock);
		return 0;
	}
	for (op = NEURON_ISA_POST_SET; op <= NEURON_ISA_POST_DEC; op++) {
		if (!emu_reg_in(off, base + op * core->ed->geo.sem_block,
				core->lim.nr_semaphores, &i))
			continue;
		spin_lock(&core->lock);
		err = emu_sem_post(core, i, op, val);
		if (!err) {
			emu_core_signal(core);
			emu_trace_sem_prepare(core, i, NEURON_ISA_BY_ACCESS, &change);
		}
		spin_unlock(&core->lock);
		emu_trace_sem_post(core, &change);
		return err;
	}
	return -EACCES;
}

/**
 * emu_core_fifo_engine() - whose instruction FIFO is this?
 * @off: offset in a core window
 * @len: bytes
 *
 * Return: enum neuron_isa_engine, or -EACCES if the range is not in one FIFO.
 */
int emu_core_fifo_engine(u64 off, u64 len)
{
	u32 e;

	if (off < NEURON_ISA_FIFO_OFF(0) || off >= NEURON_ISA_FIFO_OFF(NEURON_ISA_NR_ENGINES))
		return -EACCES;
	e = (u32)(off - NEURON_ISA_FIFO_OFF(0)) / NEURON_ISA_FIFO_SIZE;
	if (len > NEURON_ISA_FIFO_OFF(e + 1) - off)
		return -EACCES;
	return (int)e;
}

/**
 * emu_core_fifo_write() - append instructions
 * @core: core; emu_device.window is held
 * @e: engine
 * @src: where they are
 * @src_off: offset from the start of that pin
 * @len: bytes, a multiple of NEURON_ISA_INST_SIZE
 *
 * Takes as much as there is room for.  When there is none, emu_dma_kick() will
 * be called as soon as that changes.
 *
 * Return: bytes taken; -EAGAIN no room, -ENOMEM, -EACCES source is not memory.
 */
int emu_core_fifo_write(struct emu_core *core, u32 e, const struct neuron_pin *src,
			u64 src_off, u32 len)
{
	struct emu_fifo *fifo = &core->engine[e].fifo;
	u32 room, tail, part, pos;
	int err = 0;

	mutex_lock(&core->append);
	if (!fifo->buf) {
		fifo->buf = kvmalloc(NEURON_ISA_FIFO_SIZE,
				     GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
		if (!fifo->buf) {
			err = -ENOMEM;
			goto out;
		}
	}
	spin_lock(&core->lock);
	tail = fifo->tail;
	room = NEURON_ISA_FIFO_SIZE - (tail - fifo->head);
	fifo->stalled |= !room;
	spin_unlock(&core->lock);
	if (!room) {
		err = -EAGAIN;
		goto out;
	}
	/* The engine does not look beyond the tail, and room does not shrink. */
	len = min(len, room);
	pos = tail % NEURON_ISA_FIFO_SIZE;
	part = min_t(u32, len, NEURON_ISA_FIFO_SIZE - pos);
	err = emu_mem_read(core->ed, src, src_off, fifo->buf + pos, part);
	if (!err && part < len)
		err = emu_mem_read(core->ed, src, src_off + part, fifo->buf, len - part);
	if (err)
		goto out;
	spin_lock(&core->lock);
	fifo->tail = tail + len;
	emu_core_wake(core);
	spin_unlock(&core->lock);
	err = len;
out:
	mutex_unlock(&core->append);
	return err;
}

/* ---- notification queues ---- */

static struct emu_nq *emu_nq_find(struct emu_core *core, u32 off, u32 *reg)
{
	u32 i;

	if (off < NEURON_NQ_BASE_LO(0))
		return NULL;
	i = (off - NEURON_NQ_BASE_LO(0)) / 0x28;
	if (i >= NEURON_HW_NR_NQ || i / NEURON_HW_NQ_ENGINES >= core->ed->geo.nr_nq_types ||
	    i % NEURON_HW_NQ_ENGINES >= core->ed->geo.nr_nq_engines)
		return NULL;
	*reg = off - 0x28 * i;
	return &core->nq[i];
}

/**
 * emu_nq_reg_read() - read a register of the notification queues
 * @core: core
 * @off: offset, a multiple of 4
 * @val: the result
 *
 * Return: 0, -EINVAL no such register.
 */
int emu_nq_reg_read(struct emu_core *core, u32 off, u32 *val)
{
	u32 reg;
	struct emu_nq *nq = emu_nq_find(core, off, &reg);
	int err = 0;

	if (!nq)
		return -EINVAL;
	mutex_lock(&core->nq_lock);
	switch (reg) {
	case NEURON_NQ_BASE_LO(0):
		*val = lower_32_bits(nq->new_base);
		break;
	case NEURON_NQ_BASE_HI(0):
		*val = upper_32_bits(nq->new_base);
		break;
	case NEURON_NQ_SIZE(0):
		*val = nq->size;
		break;
	case NEURON_NQ_HEAD(0):
		*val = nq->head;
		break;
	default:
		err = -EINVAL;
	}
	mutex_unlock(&core->nq_lock);
	return err;
}

/**
 * emu_nq_reg_write() - write a register of the notification queues
 * @core: core
 * @off: offset, a multiple of 4
 * @val: value
 *
 * A new address takes effect with the next write of the size, which starts the
 * ring anew.  When a write of size 0 returns, the old ring is not touched any
 * more.
 *
 * Return: 0, -EINVAL no such register, or address or size not a multiple of 16.
 */
int emu_nq_reg_write(struct emu_core *core, u32 off, u32 val)
{
	u32 reg;
	struct emu_nq *nq = emu_nq_find(core, off, &reg);
	int err = 0;

	if (!nq)
		return -EINVAL;
	mutex_lock(&core->nq_lock);
	switch (reg) {
	case NEURON_NQ_BASE_LO(0):
		if (val % sizeof(struct neuron_isa_notice))
			err = -EINVAL;
		else
			nq->new_base = (nq->new_base & ~(u64)U32_MAX) | val;
		break;
	case NEURON_NQ_BASE_HI(0):
		nq->new_base = (nq->new_base & U32_MAX) | (u64)val << 32;
		break;
	case NEURON_NQ_SIZE(0):
		if (val % sizeof(struct neuron_isa_notice)) {
			err = -EINVAL;
			break;
		}
		nq->base = nq->new_base;
		nq->size = val;
		nq->head = 0;
		nq->phase = 1;
		nq->lost = 0;
		break;
	default:
		err = -EINVAL;
	}
	mutex_unlock(&core->nq_lock);
	return err;
}

/* Write an entry where the next one goes.  Caller holds core->nq_lock. */
static bool emu_nq_write(struct emu_core *core, struct emu_nq *q,
			 const struct neuron_isa_notice *n)
{
	struct neuron_isa_notice entry = *n;
	struct neuron_pin pin;
	bool posted;

	entry.phase = (entry.phase & ~1) | q->phase;
	if (neuron_device_pin(core->ed->nd, q->base + q->head, sizeof(entry), true, &pin)) {
		q->size = 0;
		return false;
	}
	posted = !emu_mem_post(core->ed, &pin, &entry);
	neuron_pin_put(&pin);
	return posted;
}

/**
 * emu_nq_post() - append to a notification queue
 * @core: core
 * @nq: queue number, type * 16 + engine
 * @n: the entry; bit 0 of the phase is filled in here
 *
 * The entry is lost if the queue is off, its memory is gone, or it is to be.
 */
void emu_nq_post(struct emu_core *core, u32 nq, const struct neuron_isa_notice *n)
{
	struct emu_nq *q = &core->nq[nq];
	bool posted = false;

	mutex_lock(&core->nq_lock);
	if (q->size && !emu_fault(core->ed, EMU_FAULT_LOST_NOTICE))
		posted = emu_nq_write(core, q, n);
	if (posted) {
		q->head += sizeof(*n);
		if (q->head == q->size) {
			q->head = 0;
			q->phase ^= 1;
		}
	}
	mutex_unlock(&core->nq_lock);
	if (posted)
		neuron_nq_posted(core->ed->nd, core->index, nq);
}

/**
 * emu_nq_fill() - append to a queue that is written through once
 * @core: core
 * @nq: queue number
 * @n: entries, posted together or not at all
 * @count: how many
 *
 * What does not fit is counted in the last entry of the queue, which is kept for that; so
 * is, from then on, what there was no host memory for.
 */
void emu_nq_fill(struct emu_core *core, u32 nq, const struct neuron_isa_notice *n, u32 count)
{
	struct emu_nq *q = &core->nq[nq];
	struct neuron_isa_notice lost = { .kind = NEURON_ISA_NOTICE_LOST };
	bool posted = false;
	u32 head, i;

	mutex_lock(&core->nq_lock);
	if (!q->size)
		goto out;
	if (!q->lost && q->size - q->head > count * sizeof(*n)) {
		head = q->head;
		for (i = 0; i < count && emu_nq_write(core, q, &n[i]); i++)
			q->head += sizeof(*n);
		posted = i == count;
		if (posted || !q->size)
			goto out;
		/* Device memory is made when it is written, and there was none. */
		q->head = head;
	}
	/* Nothing comes behind the first one that was lost: a trace has no holes. */
	q->lost += count;
	lost.id = cpu_to_le32(lower_32_bits(q->lost));
	lost.data = cpu_to_le64(q->lost);
	posted = emu_nq_write(core, q, &lost);
out:
	mutex_unlock(&core->nq_lock);
	if (posted)
		neuron_nq_posted(core->ed->nd, core->index, nq);
}

/* ---- engines ---- */

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
static bool emu_engine_turn(struct emu_core *core, u32 e)
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

static void emu_core_serve(struct emu_core *core)
{
	u32 round, e;

	for (round = 0; round < EMU_CORE_ROUNDS; round++) {
		bool progress = false;

		for (e = 0; e < NEURON_ISA_NR_ENGINES; e++)
			progress |= emu_engine_turn(core, e);
		if (!progress)
			return;
		if (READ_ONCE(core->resetting))
			return;
		cond_resched();
	}
	spin_lock(&core->lock);
	emu_core_wake(core);
	spin_unlock(&core->lock);
}

static void emu_core_work(struct work_struct *work)
{
	struct emu_core *core = container_of(work, struct emu_core, work);

	emu_busy_begin(&core->ed->busy);
	emu_core_serve(core);
	emu_busy_end(&core->ed->busy);
}

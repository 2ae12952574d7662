// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA engines as a driver sees them. Registers are checked here, for order and value; the
 * rings and the bytes are the device code's (kmod/emu).
 */
#include "card.h"

#define RING_BASE_LO	0x28
#define RING_BASE_HI	0x2c
#define RING_LENGTH	0x30
#define RING_ID_SHIFT	24

/* Engine state (0x200, 0x20200): four fields, each 0 idle, 1 normal, 2 abort. */
#define STATE_READ	0x200
#define STATE_CHANGE	0x204
#define STATE_NORMAL	0x1111
#define STATE_ABORT	0x2222

static u32 *card_register(struct card *card, const struct card_place *at)
{
	struct card_engine *e = &card->engine[at->index];

	switch (at->block) {
	case CARD_APP:
		return &e->app[at->off / 4];
	case CARD_USER:
		return &e->user[at->off / 4];
	default:
		return &e->regs[at->off / 4];
	}
}

static const char *card_block_name(enum card_block block)
{
	return block == CARD_APP ? "application block of engine" :
	       block == CARD_USER ? "user-interrupt block of engine" : "engine";
}

/* Does a descriptor with another ring id than expected stop the engine? */
static bool card_ring_id_matters(const struct card *card, u32 engine)
{
	return card->gen == 2 || engine >= 128;
}

static u32 card_queue_block(u32 q, bool rx)
{
	return rx ? NEURON_DMA_RX(q) : NEURON_DMA_TX(q);
}

static const char *card_side_name(bool rx)
{
	return rx ? "RX queue" : "TX queue";
}

static void card_engine_abort(struct card *card, u32 engine)
{
	smp_store_release(&card->engine[engine].aborted, true);
	emu_dma_reg_write(&card->ed, engine, NEURON_DMA_COMMON, NEURON_DMA_ENG_ABORT);
}

/* A write while the engine is being started: only the next step will do. */
static void card_start_step(struct card *card, const struct card_place *at, u32 val)
{
	struct card_engine *e = &card->engine[at->index];
	struct card_step steps[CARD_MAX_STEPS], *s = &steps[e->step];
	struct card_place from = { CARD_ENGINE, at->index, 0 };
	u32 want, *reg = card_register(card, at);

	e->nr_steps = card_engine_steps(card, at->index, e->again, steps);
	from.off = s->from;
	want = s->from ? *card_register(card, &from) :
	       s->rmw ? (*reg & ~s->clear) | s->value : s->value;
	if (s->block != at->block || s->off != at->off || val != want)
		card_complain(card, "start of engine %u, step %u: %#x to %u+%#x, not %#x to %u+%#x",
			      at->index, e->step, val, at->block, at->off, want, s->block, s->off);
	else if (s->rmw && e->read != reg)
		card_complain(card, "start of engine %u, step %u: %#x was not read before",
			      at->index, e->step, at->off);
	else
		e->step++;
	e->read = NULL;
	*reg = val;
}

static bool card_engine_started(const struct card_engine *e)
{
	return e->nr_steps && e->step == e->nr_steps;
}

/* The device code learns of a queue when its first ring is started. */
static void card_queue_bind(struct card *card, u32 engine, u32 q)
{
	/* The rings come with writes of their registers. */
	const struct neuron_queue_setup setup = { .space = (struct neuron_space *)card };
	struct card_engine *e = &card->engine[engine];

	if (!(e->bound & BIT(q)) && !emu_dma_bind(&card->ed, engine, q, &setup))
		e->bound |= BIT(q);
}

static void card_queue_start(struct card *card, u32 engine, u32 q, bool rx, u32 reg, u32 val)
{
	struct card_engine *e = &card->engine[engine];
	struct card_side *side = &e->side[q][rx];
	const struct card_step *steps;
	u32 nr = card_queue_steps(rx, &steps);

	if (reg == steps[0].off && val == steps[0].value)
		side->step = 0;
	if (side->step == nr || reg != steps[side->step].off ||
	    (!steps[side->step].rmw && val != steps[side->step].value)) {
		card_complain(card, "start of %s %u of engine %u, step %u: %#x written to %#x",
			      card_side_name(rx), q, engine, side->step, val, reg);
		return;
	}
	if (side->on)
		card_run_on_off(card, engine, q, rx);
	side->on = ++side->step == nr;
	if (reg == RING_BASE_LO)
		side->base = (side->base & ~(u64)U32_MAX) | val;
	else if (reg == RING_BASE_HI)
		side->base = (side->base & U32_MAX) | (u64)val << 32;
	else if (reg == RING_LENGTH)
		side->len = val;
	side->tail = 0;
	side->phase = 1;
	card_queue_bind(card, engine, q);
	/* What the device code does not know is only remembered. */
	if (reg == 0x74 || reg == 0xa0 || reg == 0x54)
		return;
	if (emu_dma_reg_write(&card->ed, engine, card_queue_block(q, rx) + reg, val))
		card_complain(card, "%s %u of engine %u: %#x refused for %#x",
			      card_side_name(rx), q, engine, val, reg);
	e->used |= side->on;
}

/* Do the descriptors that a doorbell announces have the ring id that is expected? */
static void card_check_phase(struct card *card, u32 engine, u32 q, bool rx, u32 n)
{
	struct card_side *side = &card->engine[engine].side[q][rx];
	struct neuron_desc desc;
	u32 id;

	for (; n; n--) {
		if (card_memory_read(card, side->base + (u64)side->tail * sizeof(desc), &desc,
				     sizeof(desc))) {
			card_complain(card, "%s %u of engine %u: no ring at %#llx",
				      card_side_name(rx), q, engine, side->base);
			return;
		}
		id = le32_to_cpu(desc.ctrl) >> RING_ID_SHIFT & 3;
		if (id != side->phase && card_ring_id_matters(card, engine)) {
			card_complain(card, "%s %u of engine %u: slot %u has ring id %u, not %u",
				      card_side_name(rx), q, engine, side->tail, id,
				      side->phase);
			card_engine_abort(card, engine);
			return;
		}
		if (++side->tail == side->len) {
			side->tail = 0;
			side->phase = (side->phase + 1) & 3;
		}
	}
}

static void card_doorbell(struct card *card, u32 engine, u32 q, bool rx, u32 n)
{
	struct card_side *side = &card->engine[engine].side[q][rx];

	card->stats.doorbells++;
	if (!side->on || n > side->len) {
		card_complain(card, "doorbell of %s %u of engine %u: %u, but it is %s, %u long",
			      card_side_name(rx), q, engine, n, side->on ? "on" : "off",
			      side->len);
		return;
	}
	if (card->faults.lost_doorbells) {
		card->faults.lost_doorbells--;
		return;
	}
	card->stats.descriptors += n;
	card_check_phase(card, engine, q, rx, n);
	if (emu_dma_reg_write(&card->ed, engine,
			      card_queue_block(q, rx) + NEURON_DMA_Q_TAIL_INC, n))
		card_complain(card, "doorbell of %s %u of engine %u: no room for %u descriptors",
			      card_side_name(rx), q, engine, n);
}

static u32 card_state(const struct card_engine *e)
{
	return smp_load_acquire(&e->aborted) ? STATE_ABORT : e->used ? STATE_NORMAL : 0;
}

static void card_change_state(struct card *card, u32 engine, u32 val)
{
	static const u8 states[] = {
		[1] = NEURON_DMA_ENG_NORMAL,
		[2] = NEURON_DMA_ENG_DISABLE,
		[4] = NEURON_DMA_ENG_ABORT,
	};
	struct card_engine *e = &card->engine[engine];

	if (val >= ARRAY_SIZE(states) || !states[val] != (val == 2)) {
		card_complain(card, "engine %u: no state %u", engine, val);
		return;
	}
	e->former = card_state(e);
	e->slow = card->faults.slow_state;
	/* Before its queues stop: it is what was asked for. */
	if (val == 4)
		smp_store_release(&e->aborted, true);
	emu_dma_reg_write(&card->ed, engine, NEURON_DMA_COMMON, states[val]);
	if (val != 4)
		smp_store_release(&e->aborted, false);
}

/**
 * card_udma_write() - a write to a DMA engine or one of its other blocks
 * @card: the card
 * @at: CARD_ENGINE, CARD_APP, CARD_USER
 * @val: value
 */
void card_udma_write(struct card *card, const struct card_place *at, u32 val)
{
	struct card_engine *e = &card->engine[at->index];
	u32 q, reg;
	bool rx;

	if (!card_engine_started(e)) {
		card_start_step(card, at, val);
		return;
	}
	*card_register(card, at) = val;
	/* A user's request goes to both directions; the first one does the work. */
	if (at->block == CARD_ENGINE && at->off == STATE_CHANGE)
		card_change_state(card, at->index, val);
	else if (at->block == CARD_ENGINE && at->off == 0x20000 + STATE_CHANGE)
		return;
	else if (at->block != CARD_ENGINE || !neuron_dma_decode(at->off, &q, &rx, &reg))
		card_complain(card, "%s %u: %#x written to %#x after its start",
			      card_block_name(at->block), at->index, val, at->off);
	else if (reg == NEURON_DMA_Q_TAIL_INC)
		card_doorbell(card, at->index, q, rx, val);
	else
		card_queue_start(card, at->index, q, rx, reg, val);
}

/**
 * card_udma_read() - a read of a DMA engine or one of its other blocks
 * @card: the card
 * @at: CARD_ENGINE, CARD_APP, CARD_USER
 *
 * Return: the value.
 */
u32 card_udma_read(struct card *card, const struct card_place *at)
{
	struct card_engine *e = &card->engine[at->index];
	u32 q, reg, val = 0;
	bool rx;

	e->read = card_register(card, at);
	if (at->block == CARD_ENGINE && (at->off == STATE_READ || at->off == 0x20000 + STATE_READ)) {
		if (!e->slow)
			return card_state(e);
		e->slow--;
		return e->former;
	}
	if (at->block == CARD_ENGINE && neuron_dma_decode(at->off, &q, &rx, &reg) &&
	    (reg == NEURON_DMA_Q_HEAD || reg == NEURON_DMA_Q_TAIL ||
	     reg == NEURON_DMA_Q_CURRENT)) {
		emu_dma_reg_read(&card->ed, at->index, at->off, &val);
		return val;
	}
	return *card_register(card, at);
}

/**
 * card_engines_reset() - bring engines to the state after a reset
 * @card: the card
 * @cores: of these cores, bit mask
 * @device: the whole device is reset: the engines for the host, too
 *
 * Their queues are off, their registers have the values after a reset, and they have to be
 * started again.  The value that tells a second start from the first was recorded for a
 * driver that had started the engine itself: after a reset of the device it is another
 * driver, or the same one that has forgotten it.
 */
void card_engines_reset(struct card *card, u64 cores, bool device)
{
	const struct neuron_geometry *geo = &card->ed.geo;
	struct card_engine *e;
	u32 i, q;

	for (i = 0; i < geo->nr_dma_engines; i++) {
		u32 core = i / geo->engines_per_core;

		e = &card->engine[i];
		if (core < geo->nr_cores ? !(cores & BIT(core)) : !device)
			continue;
		for (q = 0; q < CARD_QUEUES; q++)
			if (e->bound & BIT(q))
				emu_dma_stop(&card->ed, i, q);
		memset(e->regs, 0, CARD_ENGINE_LEN);
		memset(e->app, 0, sizeof(e->app));
		memset(e->user, 0, sizeof(e->user));
		memset(e->side, 0, sizeof(e->side));
		for (q = 0; q < CARD_QUEUES; q++) {
			e->regs[(NEURON_DMA_TX(q) + 0x20) / 4] = 0x3000000;
			e->regs[(NEURON_DMA_RX(q) + 0x20) / 4] = 0x3000000;
		}
		e->again = !device && (card_engine_started(e) || e->again);
		e->step = 0;
		e->nr_steps = 0;
		e->bound = 0;
		e->used = false;
		e->slow = 0;
		smp_store_release(&e->aborted, false);
		emu_dma_reg_write(&card->ed, i, NEURON_DMA_COMMON, NEURON_DMA_ENG_NORMAL);
	}
}

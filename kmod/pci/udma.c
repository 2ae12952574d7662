// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA engines of a card: how an engine and a queue are started, doorbells, stop, state.
 *
 * What most values of an engine's start mean is not known, so all of them are written, in
 * the order in which they were recorded (README.md).
 */
#include <linux/delay.h>
#include <linux/iopoll.h>

#include "udma.h"

#define NPCI_QUEUE_OFF		0x3000000u
#define NPCI_QUEUE_ON		(NPCI_QUEUE_OFF | NEURON_DMA_Q_CONFIG_ENABLE)
#define NPCI_TX_RATE_MASK	0x74		/* barriers work only with 3 */
#define NPCI_TX_COMPLETION	0xa0
#define NPCI_RX_COMPLETION	0x54

#define NPCI_TX_STATE		0x200
#define NPCI_TX_CHANGE		0x204
#define NPCI_RX_STATE		0x20200
#define NPCI_RX_CHANGE		0x20204
/* Each of the four fields of a state: 0 idle, 1 normal, 2 abort. */
#define NPCI_STATE_NORMAL	0x1111u
#define NPCI_STATE_ABORT	0x2222u
/* What is written to change it. */
#define NPCI_CHANGE_NORMAL	1u
#define NPCI_CHANGE_DISABLE	2u
#define NPCI_CHANGE_ABORT	4u

/* Stopping a queue waits so long for it to become idle, in us. */
#define NPCI_IDLE_US		10000
/* The same for an engine for the host, in ms: who does not wait has to give the card up. */
#define NPCI_HOST_IDLE_MS	1000
/* And so long for an engine to do a change of its state, in us. */
#define NPCI_CHANGE_US		100000

/* The steps that are the same for all generations. */
const struct npci_step npci_start_common[] = {
	{ NPCI_FIELD, 0x3b460, 0, BIT(0) },
	/* Errors that stop the engine, first of TX, then of RX. */
	{ NPCI_ENGINE, 0x3a028, 0x28 },
	{ NPCI_ENGINE, 0x380e8, 0x28 },
	{ NPCI_ENGINE, 0x3a030, 0xf0000000 },
	{ NPCI_ENGINE, 0x3a0b0, 0xffffffc0 },
	{ NPCI_ENGINE, 0x3a018, 0xf0000000 },
	{ NPCI_ENGINE, 0x3a098, 0xffffffc0 },
	{ NPCI_ENGINE, 0x380d8, 0xfffffaff },
	{ NPCI_ENGINE, 0x3a068, 0x28 },
	{ NPCI_ENGINE, 0x380e8, 0x28 },
	{ NPCI_ENGINE, 0x3a070, 0x10f8 },
	{ NPCI_ENGINE, 0x3a0b0, 0xfffff03f },
	{ NPCI_ENGINE, 0x3a058, 0x10f8 },
	{ NPCI_ENGINE, 0x3a098, 0xfffff03f },
	{ NPCI_ENGINE, 0x380d8, 0xfffff9ff },
	/* A completion is 4 words. */
	{ NPCI_ENGINE, 0x20380, 0x1004 },
	/* At most 65 descriptors in a packet. */
	{ NPCI_ENGINE, 0x304, 0x10041 },
	{ NPCI_ENGINE, 0x308, 0x4181 },
	{ NPCI_ENGINE, 0x20308, 0x4181 },
	{ NPCI_ENGINE, 0x11c, 0x10008 },
	{ NPCI_ENGINE, 0x2011c, 0x10008 },
	/* Reads and writes may be reordered; events of the engine are on. */
	{ NPCI_APP, 0x1c, 1 },
	{ NPCI_APP, 0x20, 1 },
	{ NPCI_APP, 0x00, 1 },
	{ NPCI_END },
};

static void npci_step(struct npci_card *card, struct npci_engine *e, const struct npci_step *s)
{
	u32 q, k;

	switch (s->kind) {
	case NPCI_ENGINE:
		npci_write(e->regs + s->off, s->val);
		break;
	case NPCI_QUEUES:
		for (q = 0; q < NEURON_HW_QUEUES_PER_ENGINE; q++)
			npci_write(e->regs + s->off + 0x40 * q, s->val);
		break;
	case NPCI_SELECTORS:
		for (q = 0; q < NEURON_HW_QUEUES_PER_ENGINE; q++)
			for (k = 0; k < 3; k++)
				npci_write(e->regs + s->off + 0x40 * q + 4 * k, s->val);
		break;
	case NPCI_FIELD:
		npci_write(e->regs + s->off,
			   (npci_read(card, e->regs + s->off) & ~s->mask) | s->val);
		break;
	case NPCI_APP:
		npci_write(e->app + s->off, s->val);
		break;
	case NPCI_END:
		break;
	}
}

/* An engine that was reset.  From the second time on its queues keep bits 25:24. */
static void npci_engine_start(struct npci_card *card, u32 eng)
{
	struct npci_engine *e = &card->engine[eng];
	const struct npci_step *const *list, *s;
	u32 config = NEURON_DMA_Q_CONFIG_ENABLE, q;

	if (e->started)
		config |= NPCI_QUEUE_OFF;
	if (card->gen->start_first)
		card->gen->start_first(card, eng);
	for (q = 0; q < NEURON_HW_QUEUES_PER_ENGINE; q++) {
		npci_write(e->regs + NEURON_DMA_TX(q) + NEURON_DMA_Q_CONFIG, config);
		npci_write(e->regs + NEURON_DMA_RX(q) + NEURON_DMA_Q_CONFIG, config);
	}
	for (list = card->gen->start; *list; list++)
		for (s = *list; s->kind != NPCI_END; s++)
			npci_step(card, e, s);
	card->gen->start_last(card, eng);
	memset(e->length, 0, sizeof(e->length));
	e->lost = 0;
	e->started = true;
	e->paused = false;
}

/**
 * npci_udma_init() - prepare the engines of a card
 * @card: the card
 */
void npci_udma_init(struct npci_card *card)
{
	u32 i;

	for (i = 0; i < NPCI_MAX_ENGINES; i++)
		mutex_init(&card->engine[i].lock);
}

/**
 * npci_engines_start() - start the engines of cores after a reset
 * @card: the card
 * @cores: cores that were reset
 * @host: the engines for the host were reset, too
 *
 * Context: may sleep; nothing uses these engines.
 */
void npci_engines_start(struct npci_card *card, unsigned long cores, bool host)
{
	const struct neuron_geometry *geo = &card->geo;
	unsigned long c;
	u32 i;

	for_each_set_bit(c, &cores, geo->nr_cores) {
		for (i = 0; i < geo->engines_per_core; i++)
			npci_engine_start(card, c * geo->engines_per_core + i);
		/* The cores of a pair share one. */
		if (host && (!c || geo->copy_engine[c] != geo->copy_engine[c - 1]))
			npci_engine_start(card, geo->copy_engine[c]);
		cond_resched();
	}
}

static void npci_ring_off(void __iomem *regs, bool rx)
{
	if (!rx)
		npci_write(regs + NPCI_TX_RATE_MASK, 3);
	npci_write(regs + NEURON_DMA_Q_CONFIG, NPCI_QUEUE_OFF);
	npci_write(regs + (rx ? NEURON_DMA_RX_SWRESET : NEURON_DMA_TX_SWRESET),
		   NEURON_DMA_Q_SWRESET);
}

static void __iomem *npci_ring(struct npci_engine *e, u32 q, bool rx)
{
	return e->regs + (rx ? NEURON_DMA_RX(q) : NEURON_DMA_TX(q));
}

static void npci_rings_off(struct npci_engine *e, u32 q)
{
	int rx;

	for (rx = 0; rx < 2; rx++)
		if (e->length[q][rx])
			npci_ring_off(npci_ring(e, q, rx), rx);
}

/* Head and tail are at 0 afterwards, and the first ring id is 1. */
static void npci_ring_start(void __iomem *regs, bool rx, u64 addr, u32 length)
{
	npci_ring_off(regs, rx);
	npci_write(regs + NEURON_DMA_Q_BASE_LO, lower_32_bits(addr));
	npci_write(regs + NEURON_DMA_Q_BASE_HI, upper_32_bits(addr));
	npci_write(regs + NEURON_DMA_Q_LENGTH, length);
	npci_write(regs + (rx ? NPCI_RX_COMPLETION : NPCI_TX_COMPLETION), 0);
	npci_write(regs + NEURON_DMA_Q_CONFIG, NPCI_QUEUE_ON);
}

/**
 * npci_queue_start() - set up a queue
 * @card: the card
 * @eng: engine, started
 * @q: queue, off
 * @addr: device addresses of its rings, TX and RX; 0: none
 * @length: descriptors of each
 *
 * Context: may sleep; the caller serialises calls for one queue.
 * Return: 0, -EINVAL, -EIO the engine is not started, or the card is gone.
 */
int npci_queue_start(struct npci_card *card, u32 eng, u32 q, const u64 *addr, const u32 *length)
{
	struct npci_engine *e;
	int rx;

	if (eng >= card->geo.nr_dma_engines || q >= NEURON_HW_QUEUES_PER_ENGINE)
		return -EINVAL;
	e = &card->engine[eng];
	if (!e->started || npci_gone(card))
		return -EIO;
	mutex_lock(&e->lock);
	clear_bit(q, &e->lost);
	for (rx = 0; rx < 2; rx++) {
		if (!addr[rx])
			continue;
		npci_ring_start(npci_ring(e, q, rx), rx, addr[rx], length[rx]);
		e->length[q][rx] = length[rx];
	}
	mutex_unlock(&e->lock);
	return 0;
}

static bool npci_ring_idle(struct npci_card *card, struct npci_engine *e, u32 q, bool rx)
{
	void __iomem *regs = npci_ring(e, q, rx);

	return !e->length[q][rx] ||
	       npci_read(card, regs + NEURON_DMA_Q_HEAD) ==
	       npci_read(card, regs + NEURON_DMA_Q_TAIL);
}

static bool npci_queue_on(struct npci_engine *e, u32 q)
{
	return e->length[q][0] || e->length[q][1];
}

/*
 * Give a queue a moment to fetch all descriptors, and switch it off.  Return: it has fetched all;
 * destinations that nothing was sent to are only forgotten.
 */
static bool npci_queue_off(struct npci_card *card, struct npci_engine *e, u32 q)
{
	bool tx = false, idle = false;
	int us;

	for (us = 0; us < NPCI_IDLE_US && !idle && !READ_ONCE(card->gone); us += 500) {
		tx = npci_ring_idle(card, e, q, false);
		idle = tx && npci_ring_idle(card, e, q, true);
		if (!idle)
			usleep_range(500, 600);
	}
	npci_rings_off(e, q);
	return tx;
}

/**
 * npci_queue_stop() - switch a queue off
 * @card: the card
 * @eng: engine
 * @q: queue; nothing happens if it is off
 *
 * How to know that a queue makes no access any more is not known: its head passes
 * descriptors when they are fetched.  It gets a moment to fetch all; then it is switched
 * off, and there is a pause for the copies that are under way.  Nothing tells that there are
 * none: instructions ring doorbells, too, and the tail is 0 again after a ring was done whole.
 *
 * Context: may sleep.
 * Return: 0; -EIO it was not idle, or its engine is paused, or the card is gone but may
 * still master the bus: it may make accesses until its core is reset.
 */
int npci_queue_stop(struct npci_card *card, u32 eng, u32 q)
{
	struct npci_engine *e;
	bool fetched;

	if (eng >= card->geo.nr_dma_engines || q >= NEURON_HW_QUEUES_PER_ENGINE)
		return 0;
	e = &card->engine[eng];
	if (!npci_queue_on(e, q))
		return 0;
	fetched = npci_queue_off(card, e, q);
	/* The writes have arrived when this read returns. */
	npci_read(card, e->regs + NPCI_TX_STATE);
	/* For the copies, as the vendor's driver makes a pause. */
	if (!READ_ONCE(card->gone))
		usleep_range(NPCI_IDLE_US, 2 * NPCI_IDLE_US);
	/* Only now, so that nobody who finds it off goes on earlier. */
	e->length[q][0] = 0;
	e->length[q][1] = 0;
	return READ_ONCE(card->gone) || READ_ONCE(e->paused) || !fetched ? -EIO : 0;
}

/**
 * npci_queues_stop() - switch all queues off, before bus mastering is
 * @card: the card
 *
 * Nothing is waited for: copies that are under way reach no memory of the host after that, and
 * memory of the card is nobody's.
 *
 * Context: may sleep.
 */
void npci_queues_stop(struct npci_card *card)
{
	struct npci_engine *e;
	u32 i, q;

	for (i = 0; i < card->geo.nr_dma_engines; i++) {
		e = &card->engine[i];
		/* Who stops one of its queues now must not believe that it was idle. */
		WRITE_ONCE(e->paused, true);
		for (q = 0; q < NEURON_HW_QUEUES_PER_ENGINE; q++)
			npci_rings_off(e, q);
	}
}

static enum neuron_dma_eng_hw_state npci_engine_state(struct npci_card *card,
						      struct npci_engine *e)
{
	u32 state = npci_read(card, e->regs + NPCI_TX_STATE) |
		    npci_read(card, e->regs + NPCI_RX_STATE);

	if (state & NPCI_STATE_ABORT)
		return NEURON_DMA_ENG_ABORT;
	return state & NPCI_STATE_NORMAL ? NEURON_DMA_ENG_NORMAL : NEURON_DMA_ENG_IDLE;
}

static int npci_engine_change(struct npci_engine *e, u32 state)
{
	u32 val;

	switch (state) {
	case NEURON_DMA_ENG_NORMAL:
		val = NPCI_CHANGE_NORMAL;
		break;
	case NEURON_DMA_ENG_DISABLE:
		val = NPCI_CHANGE_DISABLE;
		break;
	case NEURON_DMA_ENG_ABORT:
		val = NPCI_CHANGE_ABORT;
		break;
	default:
		return -EINVAL;
	}
	e->paused = state != NEURON_DMA_ENG_NORMAL;
	npci_write(e->regs + NPCI_TX_CHANGE, val);
	npci_write(e->regs + NPCI_RX_CHANGE, val);
	return 0;
}

/* In how many of its directions has an engine stopped? */
static int npci_engine_stopped(struct npci_card *card, struct npci_engine *e)
{
	return !!(npci_read(card, e->regs + NPCI_TX_STATE) & NPCI_STATE_ABORT) +
	       !!(npci_read(card, e->regs + NPCI_RX_STATE) & NPCI_STATE_ABORT);
}

/*
 * An engine that was told to abort, or to be normal again, does not do so at once: wait for it.
 * Under the engine's lock.  Return: it has, in both directions.
 */
static bool npci_engine_aborts(struct npci_card *card, struct npci_engine *e, bool yes)
{
	int stopped, want = yes ? 2 : 0;

	read_poll_timeout(npci_engine_stopped, stopped, stopped == want || READ_ONCE(card->gone),
			  100, NPCI_CHANGE_US, false, card, e);
	return stopped == want && !READ_ONCE(card->gone);
}

/*
 * An engine for the host that has stopped with an error makes no accesses.  All its queues are
 * off before it goes on, because one that has fetched its descriptors may not have done them:
 * the owners find them aborted, and start them again.
 * Under the engine's lock.  Return: it is ready for that.
 */
static bool npci_engine_revive(struct npci_card *card, u32 eng)
{
	struct npci_engine *e = &card->engine[eng];
	u32 q;

	for (q = 0; q < NEURON_HW_QUEUES_PER_ENGINE; q++) {
		if (!npci_queue_on(e, q))
			continue;
		set_bit(q, &e->lost);
		npci_rings_off(e, q);
	}
	dev_err_ratelimited(&card->pdev->dev,
			    "engine %u has stopped with an error, and is started again\n", eng);
	npci_engine_change(e, NEURON_DMA_ENG_NORMAL);
	return npci_engine_aborts(card, e, false);
}

static void npci_host_queue_wait(struct npci_card *card, u32 eng, u32 q)
{
	struct npci_engine *e = &card->engine[eng];
	u32 ms;

	for (ms = 0; ms < NPCI_HOST_IDLE_MS && !READ_ONCE(card->gone); ms++) {
		if ((npci_ring_idle(card, e, q, false) && npci_ring_idle(card, e, q, true)) ||
		    npci_engine_state(card, e) == NEURON_DMA_ENG_ABORT)
			return;
		usleep_range(1000, 1100);
	}
}

/* Under the engine's lock.  Return: the queue is off, and makes no access. */
static bool npci_host_queue_off(struct npci_card *card, u32 eng, u32 q, bool done)
{
	struct npci_engine *e = &card->engine[eng];

	/* Lost: it is off since the engine was started again. */
	if (test_bit(q, &e->lost) || !npci_queue_on(e, q))
		return true;
	if (done) {
		npci_host_queue_wait(card, eng, q);
		if (!npci_engine_stopped(card, e) && !npci_queue_stop(card, eng, q))
			return true;
	}
	if (READ_ONCE(card->gone))
		return false;
	if (npci_engine_stopped(card, e) != 2)
		npci_engine_change(e, NEURON_DMA_ENG_ABORT);
	return npci_engine_aborts(card, e, true) && npci_engine_revive(card, eng);
}

/**
 * npci_host_queue_stop() - switch a queue of an engine for the host off
 * @card: the card
 * @eng: engine
 * @q: queue
 * @done: all that it was told to do is known to have ended
 *
 * No reset ends what such an engine does, and its head says nothing of what was fetched.  So if
 * its queue is not done, or does not stop, and that is not because the engine has, the engine is
 * told to abort: copies of others on it fail, and are started again.  If it does not do that
 * either, the card is given up and makes no access any more.
 *
 * Context: may sleep.
 */
void npci_host_queue_stop(struct npci_card *card, u32 eng, u32 q, bool done)
{
	struct npci_engine *e = &card->engine[eng];
	bool off;

	mutex_lock(&e->lock);
	off = npci_host_queue_off(card, eng, q, done);
	memset(e->length[q], 0, sizeof(e->length[q]));
	mutex_unlock(&e->lock);
	if (off)
		return;
	npci_master_off(card);
	if (xchg(&card->gone, true))
		return;
	dev_err(&card->pdev->dev, "the card is given up: queue %u of engine %u does not stop\n",
		q, eng);
	schedule_work(&card->unplug);
}

/**
 * npci_engines_off() - switch the queues of cores off that are about to be reset
 * @card: the card
 * @cores: the cores
 *
 * Nothing is waited for: the reset is what ends their accesses.  Their engines must not be
 * touched from then on, until they are started again.
 *
 * Context: any.
 */
void npci_engines_off(struct npci_card *card, unsigned long cores)
{
	u32 n = card->geo.engines_per_core, i, q;

	for (i = 0; i < n * card->geo.nr_cores; i++) {
		struct npci_engine *e = &card->engine[i];

		if (!(cores & BIT(i / n)))
			continue;
		for (q = 0; q < NEURON_HW_QUEUES_PER_ENGINE; q++) {
			npci_rings_off(e, q);
			memset(e->length[q], 0, sizeof(e->length[q]));
		}
	}
}

/**
 * npci_queue_aborted() - has an engine stopped with an error since a queue was started?
 * @card: the card
 * @eng: engine
 * @q: queue
 *
 * Context: any.
 */
bool npci_queue_aborted(struct npci_card *card, u32 eng, u32 q)
{
	struct npci_engine *e = &card->engine[eng];

	return test_bit(q, &e->lost) ||
	       (npci_queue_on(e, q) && npci_engine_state(card, e) == NEURON_DMA_ENG_ABORT);
}

/**
 * npci_dma_read() - read a register of an engine
 * @card: the card
 * @eng: engine
 * @off: offset, a multiple of 4; NEURON_DMA_COMMON stands for the state of the engine
 * @val: the result
 *
 * What the status register of a queue says is not known; the state of its engine is shown.
 *
 * Context: any.
 * Return: 0, -EINVAL no such register, -EIO the card is gone.
 */
int npci_dma_read(struct npci_card *card, u32 eng, u32 off, u32 *val)
{
	struct npci_engine *e;
	u32 q, reg;
	bool rx;

	if (eng >= card->geo.nr_dma_engines)
		return -EINVAL;
	e = &card->engine[eng];
	if (off == NEURON_DMA_COMMON) {
		*val = npci_engine_state(card, e);
		return READ_ONCE(card->gone) ? -EIO : 0;
	}
	if (!neuron_dma_decode(off, &q, &rx, &reg))
		return -EINVAL;
	switch (reg) {
	case NEURON_DMA_Q_STATUS:
		*val = NEURON_QUEUE_DISABLED;
		if (test_bit(q, &e->lost) || e->length[q][rx])
			*val = npci_queue_aborted(card, eng, q) ? NEURON_QUEUE_ABORTED :
								  NEURON_QUEUE_ENABLED;
		break;
	case NEURON_DMA_Q_BASE_LO:
	case NEURON_DMA_Q_BASE_HI:
	case NEURON_DMA_Q_LENGTH:
	case NEURON_DMA_Q_HEAD:
	case NEURON_DMA_Q_TAIL:
	case NEURON_DMA_Q_CURRENT:
		*val = npci_read(card, npci_ring(e, q, rx) + reg);
		break;
	case NEURON_DMA_Q_COMPL_LO:
	case NEURON_DMA_Q_COMPL_HI:
	case NEURON_DMA_Q_COMPL_HEAD:
		/* There are no completion rings. */
		*val = 0;
		break;
	default:
		return -EINVAL;
	}
	return READ_ONCE(card->gone) ? -EIO : 0;
}

/**
 * npci_dma_write() - change the state of an engine, or ring a doorbell
 * @card: the card
 * @eng: engine
 * @off: NEURON_DMA_COMMON, or NEURON_DMA_Q_TAIL_INC of a side of a queue
 * @val: value
 *
 * Context: any.
 * Return: 0, -EINVAL no such register or value, -EIO the engine is not started, or has stopped
 *	   with an error since the queue was.
 */
int npci_dma_write(struct npci_card *card, u32 eng, u32 off, u32 val)
{
	struct npci_engine *e;
	u32 q, reg;
	bool rx;

	if (eng >= card->geo.nr_dma_engines)
		return -EINVAL;
	e = &card->engine[eng];
	if (!e->started || npci_gone(card))
		return -EIO;
	if (off == NEURON_DMA_COMMON)
		return npci_engine_change(e, val);
	if (!neuron_dma_decode(off, &q, &rx, &reg) || reg != NEURON_DMA_Q_TAIL_INC)
		return -EINVAL;
	if (test_bit(q, &e->lost))
		return -EIO;
	if (val >= e->length[q][rx])
		return -EINVAL;
	npci_write(npci_ring(e, q, rx) + reg, val);
	return 0;
}

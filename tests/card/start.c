// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a driver starts a DMA engine and a queue: registers, values and order as they were
 * recorded (README.md). What most of the values mean is not known, so a driver has to
 * make all of these writes, and the model accepts nothing else.
 */
#include "card.h"

struct card_steps {
	struct card_step *step;
	u32 nr;
};

static void add(struct card_steps *s, enum card_block block, u32 off, u32 value)
{
	s->step[s->nr++] = (struct card_step){ .block = block, .off = off, .value = value };
}

/* The register is read, bits are changed, and it is written. */
static void change(struct card_steps *s, enum card_block block, u32 off, u32 set, u32 clear)
{
	s->step[s->nr++] = (struct card_step){
		.block = block, .off = off, .value = set, .clear = clear, .rmw = true,
	};
}

/* The value of another register of the engine is written. */
static void same(struct card_steps *s, u32 off, u32 from)
{
	s->step[s->nr++] = (struct card_step){ .block = CARD_ENGINE, .off = off, .from = from };
}

/* Steps 2 to 29 but for what is done for each queue. */
struct card_value {
	u32 off;
	u32 value;
};

static void add_all(struct card_steps *s, const struct card_value *v)
{
	for (; v->off; v++)
		add(s, CARD_ENGINE, v->off, v->value);
}

static const struct card_value interrupts[] = {
	{ 0x3a028, 0x28 }, { 0x380e8, 0x28 },
	{ 0x3a030, 0xf0000000 }, { 0x3a0b0, 0xffffffc0 },
	{ 0x3a018, 0xf0000000 }, { 0x3a098, 0xffffffc0 },
	{ 0x380d8, 0xfffffaff },
	{ 0x3a068, 0x28 }, { 0x380e8, 0x28 },
	{ 0x3a070, 0x10f8 }, { 0x3a0b0, 0xfffff03f },
	{ 0x3a058, 0x10f8 }, { 0x3a098, 0xfffff03f },
	{ 0x380d8, 0xfffff9ff },
	{ 0x20380, 0x1004 },
	{ 0x304, 0x10041 },			/* 65 descriptors in a packet */
	{ 0x308, 0x4181 }, { 0x20308, 0x4181 },
	{ 0x11c, 0x10008 }, { 0x2011c, 0x10008 },
	{ }
};

/* v2: errors on the bus stop the engine. */
static void add_axi_errors(struct card_steps *s)
{
	static const u8 words[] = { 1, 2, 3, 9, 10, 11 };
	static const u32 groups[] = { 0x3ad00, 0x3ae00, 0x3af00, 0x3b000, 0x3b100, 0x3b200 };
	u32 i, k;

	for (i = 0; i < 6; i++)
		for (k = 0; k < ARRAY_SIZE(words); k++)
			add(s, CARD_ENGINE, 0x3a900 + 0x40 * i + 4 * words[k], 0xf);
	for (i = 0; i < 6; i++) {
		for (k = 0; k < CARD_QUEUES; k++) {
			add(s, CARD_ENGINE, 0x3ab00 + 8 * i, 8 * k + 7);
			add(s, CARD_ENGINE, 0x3ab04 + 8 * i, 0x10);
		}
	}
	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		add(s, CARD_ENGINE, groups[i] + 0x28, 0x28);
		add(s, CARD_ENGINE, groups[i] + 0x30, 0);
		add(s, CARD_ENGINE, groups[i] + 0x18, 0);
	}
	add(s, CARD_ENGINE, 0x3a300, 0xffffffff);
}

/* v3 and v4: descriptors with another ring id do not stop the engine. */
static void add_ring_ids_ignored(struct card_steps *s)
{
	change(s, CARD_ENGINE, 0x3a010, BIT(17), 0);
	same(s, 0x3a030, 0x3a010);
	change(s, CARD_ENGINE, 0x3a050, BIT(11), 0);
	same(s, 0x3a070, 0x3a050);
	change(s, CARD_USER, 0x90, BIT(11), 0);
	change(s, CARD_USER, 0xd0, BIT(2), 0);
	change(s, CARD_ENGINE, 0x20c, BIT(17), 0);
	change(s, CARD_ENGINE, 0x2020c, BIT(11), 0);
}

/* v2: which engines of a group of 16 a broadcast goes to, and which of them are the last. */
static void add_broadcast(struct card_steps *s, u32 e)
{
	u32 mask = 0xffff, i;

	for (i = 1; i <= e; i++)
		mask &= ~BIT(16 - i);
	add(s, CARD_APP, 0x100, mask);
	add(s, CARD_APP, 0x104, e == 0 || e == 3 || e == 6 || e == 9 || e == 15 ? 0xffff : 0);
}

/**
 * card_engine_steps() - how an engine is started
 * @card: the card
 * @engine: its number
 * @again: it was started before, and its core reset
 * @steps: CARD_MAX_STEPS entries, filled in
 *
 * Return: number of steps.
 */
u32 card_engine_steps(const struct card *card, u32 engine, bool again, struct card_step *steps)
{
	struct card_steps s = { .step = steps };
	bool v2 = card->gen == 2;
	u32 q;

	if (v2 && engine < 32)
		add_broadcast(&s, engine % 16);
	for (q = 0; q < CARD_QUEUES; q++) {
		add(&s, CARD_ENGINE, NEURON_DMA_TX(q) + 0x20, again ? 0x3030000 : 0x30000);
		add(&s, CARD_ENGINE, NEURON_DMA_RX(q) + 0x20, again ? 0x3030000 : 0x30000);
	}
	add(&s, CARD_ENGINE, 0x310, v2 ? 0x1000400 : 0x10008f8);
	add(&s, CARD_ENGINE, 0x124, v2 ? 0x86f : 0x20808080);
	add(&s, CARD_ENGINE, 0x3a300, 100000000);
	add(&s, CARD_ENGINE, 0x408, 0);
	add(&s, CARD_ENGINE, 0x254, 0x10fffff);
	add(&s, CARD_ENGINE, 0x258, 0x102);
	for (q = 0; q < CARD_QUEUES; q++)
		add(&s, CARD_ENGINE, 0x3c400 + 0x40 * q, 0xffffffff);
	add(&s, CARD_ENGINE, 0x118, 0x10008);
	add(&s, CARD_ENGINE, 0x2038c, 0);
	for (q = 0; q < CARD_QUEUES; q++) {
		add(&s, CARD_ENGINE, 0x3c404 + 0x40 * q, 0xffffffff);
		add(&s, CARD_ENGINE, 0x3c408 + 0x40 * q, 0xffffffff);
		add(&s, CARD_ENGINE, 0x3c40c + 0x40 * q, 0xffffffff);
	}
	add(&s, CARD_ENGINE, 0x20124, v2 ? 0x400008 : 0x400080);
	add(&s, CARD_ENGINE, 0x20128, 0x40804080);
	if (card->gen == 4)
		change(&s, CARD_ENGINE, 0x2012c, 256, 0x3ff);
	change(&s, CARD_ENGINE, 0x3b460, 0, 1);
	add_all(&s, interrupts);
	add(&s, CARD_APP, 0x1c, 1);
	add(&s, CARD_APP, 0x20, 1);
	add(&s, CARD_APP, 0x0, 1);
	if (v2)
		add_axi_errors(&s);
	else
		add(&s, CARD_APP, 0x800, 0x26);
	if (!v2 && engine < 128)
		add_ring_ids_ignored(&s);
	return s.nr;
}

/* Any value of these registers will do: ring base and length. */
static const struct card_step tx_steps[] = {
	{ .off = 0x74, .value = 3 },
	{ .off = 0x20, .value = 0x3000000 },
	{ .off = 0xb0, .value = 0x100 },
	{ .off = 0x28, .rmw = true },
	{ .off = 0x2c, .rmw = true },
	{ .off = 0x30, .rmw = true },
	{ .off = 0xa0, .value = 0 },
	{ .off = 0x20, .value = 0x3030000 },
};

static const struct card_step rx_steps[] = {
	{ .off = 0x20, .value = 0x3000000 },
	{ .off = 0x64, .value = 0x100 },
	{ .off = 0x28, .rmw = true },
	{ .off = 0x2c, .rmw = true },
	{ .off = 0x30, .rmw = true },
	{ .off = 0x54, .value = 0 },
	{ .off = 0x20, .value = 0x3030000 },
};

/**
 * card_queue_steps() - how one direction of a queue is started
 * @rx: destinations, else sources
 * @steps: set to them; offsets are those in the queue's block, and @rmw means any value
 *
 * Return: number of steps.
 */
u32 card_queue_steps(bool rx, const struct card_step **steps)
{
	*steps = rx ? rx_steps : tx_steps;
	return rx ? ARRAY_SIZE(rx_steps) : ARRAY_SIZE(tx_steps);
}

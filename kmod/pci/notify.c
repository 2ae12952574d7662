// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notification queues of a card's cores.  neuron.ko knows a queue for each type and engine;
 * a card has one for each engine (npci_nq_slot()).
 */
#include "notify.h"

/*
 * The slot of a queue is the engine alone: that is what was seen to be written.  Code of
 * the vendor that reads head registers assumes type * 16 + engine.  Only this function
 * knows.
 */
static u32 npci_nq_slot(u32 nq)
{
	return nq % NEURON_HW_NQ_ENGINES;
}

/**
 * npci_nq_init() - prepare the notification queues of all cores
 * @card: the card
 */
void npci_nq_init(struct npci_card *card)
{
	u32 i;

	for (i = 0; i < NEURON_HW_MAX_CORES; i++)
		mutex_init(&card->core[i].lock);
}

/*
 * Under core->lock.  The order is the recorded one, but for a slot that is on, of whatever queue:
 * it is off before its base changes, or the card could write to an address that is half new.
 */
static void npci_nq_set(struct npci_card *card, struct npci_core *core, u32 slot, u64 addr,
			u32 size)
{
	if (core->slot[slot].on) {
		npci_write(core->notify + NEURON_NQ_SIZE(slot), 0);
		/* The write has arrived when this read returns. */
		npci_read(card, core->notify + NEURON_NQ_SIZE(slot));
	}
	npci_write(core->notify + NEURON_NQ_BASE_HI(slot), upper_32_bits(addr));
	npci_write(core->notify + NEURON_NQ_BASE_LO(slot), lower_32_bits(addr));
	npci_write(core->notify + NEURON_NQ_SIZE(slot), size);
}

/**
 * npci_nqs_off() - switch the notification queues of a core off
 * @card: the card
 * @core: core
 *
 * Context: may sleep.
 * Return: how many were on.
 */
int npci_nqs_off(struct npci_card *card, u32 core)
{
	struct npci_core *c = &card->core[core];
	int n = 0;
	u32 i;

	mutex_lock(&c->lock);
	for (i = 0; i < NEURON_HW_NQ_ENGINES; i++) {
		if (!c->slot[i].on)
			continue;
		npci_nq_set(card, c, i, 0, 0);
		c->slot[i].on = false;
		n++;
	}
	mutex_unlock(&c->lock);
	return n;
}

/**
 * npci_nq_read() - read a register of a notification queue
 * @card: the card
 * @core: core
 * @off: register as neuron.ko knows it
 * @val: the result
 *
 * Context: may sleep.
 * Return: 0, -EINVAL no such register, -EIO the card is gone.
 */
int npci_nq_read(struct npci_card *card, u32 core, u32 off, u32 *val)
{
	struct npci_core *c = &card->core[core];
	struct npci_nq *slot;
	u32 nq, reg;
	int err = 0;

	if (!neuron_nq_decode(off, &nq, &reg))
		return -EINVAL;
	slot = &c->slot[npci_nq_slot(nq)];
	mutex_lock(&c->lock);
	*val = 0;
	switch (reg) {
	case NEURON_NQ_BASE_LO(0):
		*val = lower_32_bits(c->base[nq]);
		break;
	case NEURON_NQ_BASE_HI(0):
		*val = upper_32_bits(c->base[nq]);
		break;
	case NEURON_NQ_SIZE(0):
	case NEURON_NQ_HEAD(0):
		if (slot->on && slot->nq == nq)
			*val = npci_read(card, c->notify + reg +
					 npci_nq_slot(nq) * NEURON_NQ_STRIDE);
		break;
	default:
		err = -EINVAL;
	}
	mutex_unlock(&c->lock);
	return READ_ONCE(card->gone) ? -EIO : err;
}

/**
 * npci_nq_write() - write a register of a notification queue
 * @card: the card
 * @core: core
 * @off: register as neuron.ko knows it
 * @val: value
 *
 * The card hears of a queue when its size is written: 0 switches it off.  A queue that gets
 * a slot which another one has takes it over, and switches that one off before.
 *
 * Context: may sleep.
 * Return: 0, -EINVAL no such register, -EIO the card is gone.
 */
int npci_nq_write(struct npci_card *card, u32 core, u32 off, u32 val)
{
	struct npci_core *c = &card->core[core];
	struct npci_nq *slot;
	u32 nq, reg;
	int err = 0;

	if (!neuron_nq_decode(off, &nq, &reg))
		return -EINVAL;
	if (npci_gone(card))
		return -EIO;
	slot = &c->slot[npci_nq_slot(nq)];
	mutex_lock(&c->lock);
	switch (reg) {
	case NEURON_NQ_BASE_LO(0):
		c->base[nq] = (c->base[nq] & ~(u64)U32_MAX) | val;
		break;
	case NEURON_NQ_BASE_HI(0):
		c->base[nq] = (c->base[nq] & U32_MAX) | (u64)val << 32;
		break;
	case NEURON_NQ_SIZE(0):
		if (val || (slot->on && slot->nq == nq)) {
			npci_nq_set(card, c, npci_nq_slot(nq), val ? c->base[nq] : 0, val);
			slot->on = val;
			slot->nq = nq;
		}
		break;
	default:
		err = -EINVAL;
	}
	mutex_unlock(&c->lock);
	return err;
}

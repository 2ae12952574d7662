// SPDX-License-Identifier: GPL-2.0-only
/* The firmware of a card: identity, reset, counters of ECC errors, power. */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/moduleparam.h>
#include <linux/sched/signal.h>
#include <linux/timekeeping.h>

#include "firmware.h"
#include "notify.h"
#include "udma.h"

#define NPCI_RESET_DEVICE	1
#define NPCI_RESET_CORES	2
/* Pause between two looks at a reset, and how often the card may be not ready after it. */
#define NPCI_RESET_MSEC		100
#define NPCI_NOT_READY_MAX	5
/* A reset that takes longer is asked for again. */
#define NPCI_DEVICE_AGAIN	30
#define NPCI_CORES_AGAIN	10
/*
 * Words with ECC errors.  From this version of the firmware's interface on, those of HBMs do not
 * count corrected ones, but how many of the others can be repaired.
 */
#define NPCI_ECC_UNCORRECTED	0xffffu
#define NPCI_ECC_CORRECTED	0xffff0000u
#define NPCI_ECC_REPAIRABLE	0x0fff0000u
#define NPCI_ECC_SPLIT		6
/* Sampling ends so long after the last reader. */
#define NPCI_POWER_SECONDS	120

static unsigned int firmware_seconds = 40;
module_param(firmware_seconds, uint, 0644);
MODULE_PARM_DESC(firmware_seconds, "how long a card's firmware may take to answer (default 40)");

static unsigned int reset_seconds;
module_param(reset_seconds, uint, 0644);
MODULE_PARM_DESC(reset_seconds,
		 "how long a reset may take (default 0: 120 or 480, by the kind of card)");

/**
 * npci_misc_read() - read a word of misc RAM
 * @card: the card
 * @off: offset
 *
 * Return: the word; NPCI_DEAD if the firmware does not answer, all ones if the card is gone.
 */
u32 npci_misc_read(struct npci_card *card, u32 off)
{
	return npci_read(card, card->misc + off);
}

/**
 * npci_misc_write() - write a word of misc RAM
 * @card: the card
 * @off: offset
 * @val: the word
 */
void npci_misc_write(struct npci_card *card, u32 off, u32 val)
{
	npci_write(card->misc + off, val);
}

/**
 * npci_pause() - a pause in a wait for the card
 * @card: the card
 * @msec: its length
 *
 * Context: may sleep, killable.
 * Return: 0; -EINTR killed; -ENODEV the card is gone.
 */
int npci_pause(struct npci_card *card, u32 msec)
{
	msleep(msec);
	if (npci_gone(card))
		return -ENODEV;
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/**
 * npci_routing_id() - wait for the firmware, and learn the position of the card in its host
 * @card: the card
 * @id: the position
 *
 * Context: may sleep, killable.
 * Return: 0; -ETIMEDOUT no answer; -EINVAL a senseless one; -ENODEV gone; -EINTR.
 */
int npci_routing_id(struct npci_card *card, u32 *id)
{
	unsigned long end = jiffies + firmware_seconds * HZ;
	u32 pause = 1;
	int err;

	for (;;) {
		*id = npci_misc_read(card, NPCI_MISC_ROUTING_ID);
		if (*id != NPCI_DEAD)
			break;
		if (time_after(jiffies, end)) {
			dev_err(&card->pdev->dev, "the firmware has not answered for %u s\n",
				firmware_seconds);
			return -ETIMEDOUT;
		}
		err = npci_pause(card, pause);
		if (err)
			return err;
		pause = min(2 * pause, 100u);
	}
	if (npci_gone(card))
		return -ENODEV;
	if (*id >= 64) {
		dev_err(&card->pdev->dev, "routing id %#x is not below 64\n", *id);
		return -EINVAL;
	}
	return 0;
}

/**
 * npci_device_number() - the number of a device in its host
 * @card: the card
 * @id: its routing id
 */
u32 npci_device_number(const struct npci_card *card, u32 id)
{
	const u8 *numbers = card->kind->numbers;

	return numbers ? (id & ~15u) | numbers[id & 15] : id;
}

/**
 * npci_serial() - the serial number of a card
 * @card: the card
 */
u64 npci_serial(struct npci_card *card)
{
	return (u64)npci_misc_read(card, NPCI_MISC_SERIAL_HI) << 32 |
	       npci_misc_read(card, NPCI_MISC_SERIAL_LO);
}

/* ---- reset ------------------------------------------------------------------------- */

/* @cores: 0 stands for the whole device. */
static void npci_reset_ask(struct npci_card *card, unsigned long cores)
{
	if (cores)
		npci_misc_write(card, NPCI_MISC_RESET_MAP, card->gen->reset_map(cores));
	npci_misc_write(card, NPCI_MISC_RESET, cores ? NPCI_RESET_CORES : NPCI_RESET_DEVICE);
	npci_misc_write(card, NPCI_MISC_DOORBELL, 1);
	card->reset.asked = jiffies;
}

static void npci_reset_start(struct npci_card *card, unsigned long cores)
{
	struct npci_reset *r = &card->reset;

	r->not_ready = 0;
	r->started = jiffies;
	r->next = jiffies + msecs_to_jiffies(NPCI_RESET_MSEC);
	npci_reset_ask(card, cores);
}

static int npci_reset_error(struct npci_card *card, unsigned long cores, const char *what)
{
	if (npci_gone(card))
		return -EIO;
	if (cores)
		dev_err(&card->pdev->dev, "the reset of cores %#lx %s\n", cores, what);
	else
		dev_err(&card->pdev->dev, "the reset of the device %s\n", what);
	return -EIO;
}

/* Has the reset under way ended?  Return: 0, -EINPROGRESS, -EIO. */
static int npci_reset_look(struct npci_card *card, unsigned long cores)
{
	u32 limit = READ_ONCE(reset_seconds) ?: card->gen->reset_seconds;
	u32 again = cores ? NPCI_CORES_AGAIN : NPCI_DEVICE_AGAIN;
	struct npci_reset *r = &card->reset;

	if (time_before(jiffies, r->next))
		return -EINPROGRESS;
	r->next = jiffies + msecs_to_jiffies(NPCI_RESET_MSEC);
	/* Once the request reads 0, only the status is looked at. */
	if (r->not_ready || !npci_misc_read(card, NPCI_MISC_RESET)) {
		if (!(npci_misc_read(card, NPCI_MISC_STATUS) & NPCI_MISC_NOT_READY))
			return 0;
		if (++r->not_ready == NPCI_NOT_READY_MAX)
			return npci_reset_error(card, cores, "ended, but the card is not ready");
		r->next = jiffies + msecs_to_jiffies(r->not_ready * NPCI_RESET_MSEC);
		return -EINPROGRESS;
	}
	if (npci_gone(card))
		return -EIO;
	if (time_after(jiffies, r->started + limit * HZ))
		return npci_reset_error(card, cores, "has not ended in time");
	if (time_after(jiffies, r->asked + again * HZ))
		npci_reset_ask(card, cores);
	return -EINPROGRESS;
}

/**
 * npci_reset_device() - reset the whole device, and wait for the end
 * @card: the card; nothing uses it yet
 *
 * Context: may sleep, killable.
 * Return: 0; -EIO no end, or not ready after it; -ENODEV gone; -EINTR.
 */
int npci_reset_device(struct npci_card *card)
{
	int err, ret;

	npci_reset_start(card, 0);
	do {
		err = npci_pause(card, NPCI_RESET_MSEC) ?: npci_reset_look(card, 0);
	} while (err == -EINPROGRESS);
	ret = npci_gone(card) ? -ENODEV : err;
	return ret;
}

/* Go on with what was asked for.  Under reset.lock. */
static void npci_reset_step(struct npci_card *card)
{
	struct npci_reset *r = &card->reset;
	int err;

	if (r->active) {
		err = npci_reset_look(card, r->active);
		if (err == -EINPROGRESS)
			return;
		if (err)
			r->failed |= r->active;
		else
			npci_engines_start(card, r->active, false);
		r->active = 0;
	}
	if (r->wanted && !npci_gone(card)) {
		r->active = r->wanted;
		r->wanted = 0;
		npci_reset_start(card, r->active);
	}
}

/**
 * npci_reset_begin() - ask for the reset of cores
 * @card: the card
 * @cores: the cores; their queues are off
 *
 * The firmware does one reset at a time, so it may have to wait for another one to end.
 *
 * Context: may sleep.
 * Return: 0, -EIO the card is gone.
 */
int npci_reset_begin(struct npci_card *card, unsigned long cores)
{
	struct npci_reset *r = &card->reset;
	unsigned long c;
	int off = 0;

	npci_engines_off(card, cores);
	for_each_set_bit(c, &cores, card->geo.nr_cores)
		off += npci_nqs_off(card, c);
	if (off)
		usleep_range(1000, 1100);
	mutex_lock(&r->lock);
	r->failed &= ~cores;
	r->wanted |= cores;
	npci_reset_step(card);
	mutex_unlock(&r->lock);
	return npci_gone(card) ? -EIO : 0;
}

/**
 * npci_reset_poll() - has the reset of cores ended?
 * @card: the card
 * @cores: the cores; those of one npci_reset_begin()
 *
 * Starts their engines when it has.
 *
 * Context: may sleep.
 * Return: 0, -EINPROGRESS, -EIO.
 */
int npci_reset_poll(struct npci_card *card, unsigned long cores)
{
	struct npci_reset *r = &card->reset;
	int err;

	/* The removal of the device ends it, with an error of its own. */
	if (READ_ONCE(card->stopping))
		return -EINPROGRESS;
	mutex_lock(&r->lock);
	npci_reset_step(card);
	if (npci_gone(card) || r->failed & cores)
		err = -EIO;
	else
		err = (r->wanted | r->active) & cores ? -EINPROGRESS : 0;
	mutex_unlock(&r->lock);
	return err;
}

/* ---- counters of errors, power ----------------------------------------------------- */

/* A word that the firmware does not have counts nothing.  @mask: the counter's bits of it. */
static int npci_ecc_word(struct npci_card *card, u32 off, u32 mask, u64 *count)
{
	u32 val = npci_misc_read(card, off);

	if (READ_ONCE(card->gone))
		return -EIO;
	if (val != NPCI_DEAD)
		*count += (val & mask) >> __ffs(mask);
	return 0;
}

/* Return: bits of the words of HBMs that count @event; 0: nothing does. */
static u32 npci_ecc_mask(struct npci_card *card, enum neuron_event event)
{
	enum neuron_event shown;
	u32 version = npci_misc_read(card, NPCI_MISC_VERSION), state = 0;
	bool split = version >= NPCI_ECC_SPLIT && version != NPCI_DEAD;

	if (event == NEURON_EVENT_MEM_CORRECTED)
		return split ? 0 : NPCI_ECC_CORRECTED;
	if (split && event == NEURON_EVENT_MEM_REPAIRABLE)
		return NPCI_ECC_REPAIRABLE;
	/* 0: nothing to repair, 1: the next reset repairs it, 2: it could not be. */
	if (card->gen->repair_hides)
		state = npci_misc_read(card, NPCI_MISC_REPAIR) & 3;
	shown = state == 1 ? NEURON_EVENT_MEM_REPAIRABLE : NEURON_EVENT_MEM_UNCORRECTED;
	return event != shown || state == 3 ? 0 : NPCI_ECC_UNCORRECTED;
}

/**
 * npci_ecc_count() - ECC errors since the card was switched on
 * @card: the card
 * @event: which ones
 * @count: the result
 *
 * Context: may sleep.
 * Return: 0, -EIO the card is gone, -EINVAL.
 */
int npci_ecc_count(struct npci_card *card, enum neuron_event event, u64 *count)
{
	u32 mask, i;
	int err = 0;

	*count = 0;
	switch (event) {
	case NEURON_EVENT_SRAM_CORRECTED:
		return npci_ecc_word(card, NPCI_MISC_ECC_SRAM, NPCI_ECC_CORRECTED, count);
	case NEURON_EVENT_SRAM_UNCORRECTED:
		return npci_ecc_word(card, NPCI_MISC_ECC_SRAM, NPCI_ECC_UNCORRECTED, count);
	case NEURON_EVENT_MEM_CORRECTED:
	case NEURON_EVENT_MEM_UNCORRECTED:
	case NEURON_EVENT_MEM_REPAIRABLE:
		mask = npci_ecc_mask(card, event);
		break;
	default:
		return -EINVAL;
	}
	for (i = 0; mask && i < card->geo.nr_hbms && !err; i++)
		err = npci_ecc_word(card, NPCI_MISC_ECC_HBM(i), mask, count);
	return err ?: READ_ONCE(card->gone) ? -EIO : 0;
}

/* The mean of the dice.  Under power.lock.  Return: 0, -ENODATA, -EIO. */
static int npci_power_sample(struct npci_card *card)
{
	struct npci_power *p = &card->power;
	u32 version = npci_misc_read(card, NPCI_MISC_VERSION), sum = 0, val, i;

	if (READ_ONCE(card->gone))
		return -EIO;
	if (version < 3 || version == NPCI_DEAD)
		return -ENODATA;
	for (i = 0; i < card->gen->power_words; i++) {
		val = npci_misc_read(card, NPCI_MISC_POWER(i));
		if (val == NPCI_DEAD || (val & 0xffff) > NEURON_POWER_MAX)
			return -ENODATA;
		sum += val & 0xffff;
	}
	p->sample[p->count++ % NPCI_POWER_SAMPLES] = sum / card->gen->power_words;
	p->time = ktime_get_real_seconds();
	return 0;
}

static void npci_power_work(struct work_struct *work)
{
	struct npci_power *p = container_of(work, struct npci_power, work.work);
	struct npci_card *card = container_of(p, struct npci_card, power);

	mutex_lock(&p->lock);
	npci_power_sample(card);
	if (!npci_gone(card) && time_before(jiffies, p->asked + NPCI_POWER_SECONDS * HZ))
		schedule_delayed_work(&p->work, HZ);
	else
		p->count = 0;
	mutex_unlock(&p->lock);
}

/**
 * npci_power_read() - power drawn in the last minute
 * @card: the card
 * @power: the result
 *
 * The first call takes a sample; from then on one is taken every second, until nobody has
 * called for some time.
 *
 * Context: may sleep.
 * Return: 0, -ENODATA the card has none, -EIO.
 */
int npci_power_read(struct npci_card *card, struct neuron_power *power)
{
	struct npci_power *p = &card->power;
	u32 n, i, sum = 0;
	int err = 0;

	mutex_lock(&p->lock);
	p->asked = jiffies;
	if (!p->count)
		err = npci_power_sample(card);
	if (err)
		goto unlock;
	if (!npci_gone(card))
		schedule_delayed_work(&p->work, HZ);
	n = min_t(u64, p->count, NPCI_POWER_SAMPLES);
	power->time = p->time;
	power->now = p->sample[(p->count - 1) % NPCI_POWER_SAMPLES];
	power->min = NEURON_POWER_MAX;
	power->max = 0;
	for (i = 0; i < n; i++) {
		power->min = min(power->min, p->sample[i]);
		power->max = max(power->max, p->sample[i]);
		sum += p->sample[i];
	}
	power->avg = sum / n;
unlock:
	mutex_unlock(&p->lock);
	return err;
}

/**
 * npci_firmware_init() - prepare what needs the firmware
 * @card: the card
 */
void npci_firmware_init(struct npci_card *card)
{
	mutex_init(&card->reset.lock);
	mutex_init(&card->power.lock);
	INIT_DEFERRABLE_WORK(&card->power.work, npci_power_work);
}

/**
 * npci_firmware_exit() - end what runs by itself
 * @card: the card; npci_gone(), and its operations are not called any more
 */
void npci_firmware_exit(struct npci_card *card)
{
	cancel_delayed_work_sync(&card->power.work);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * How busy a device is: the share of each second in which at least one of its
 * engines was at work.  It stands for the power that a card would draw.
 *
 * An engine accounts the time when it begins or ends work; there is no timer.  A second
 * without an entry was idle.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/sched/clock.h>

#include "busy.h"

#define EMU_BUSY_WINDOW		60	/* seconds that figures are about (uapi/FACTS.md 9) */

/*
 * Under @b->lock.  Other clocks are an access to hardware on some machines, twice in each copy.
 * This one may differ a little between processors: time does not go back for that.
 */
static u64 emu_busy_now(struct emu_busy *b)
{
	b->now = max(b->now, local_clock());
	return b->now;
}

/* Under @b->lock: work went on from @b->since until @now. */
static void emu_busy_account(struct emu_busy *b, u64 now)
{
	while (b->since < now) {
		u64 sec = div_u64(b->since, NSEC_PER_SEC);
		u64 end = min(now, (sec + 1) * NSEC_PER_SEC);
		u32 i = sec % EMU_BUSY_SLOTS;

		if (b->sec[i] != sec) {
			b->sec[i] = sec;
			b->busy[i] = 0;
		}
		b->busy[i] += end - b->since;
		b->since = end;
	}
}

/**
 * emu_busy_init() - nothing has happened so far
 * @b: account
 */
void emu_busy_init(struct emu_busy *b)
{
	spin_lock_init(&b->lock);
	b->first = div_u64(emu_busy_now(b), NSEC_PER_SEC) + 1;
}

/**
 * emu_busy_begin() - an engine starts to work
 * @b: account
 */
void emu_busy_begin(struct emu_busy *b)
{
	spin_lock(&b->lock);
	if (!b->active++)
		b->since = emu_busy_now(b);
	spin_unlock(&b->lock);
}

/**
 * emu_busy_end() - an engine stops working
 * @b: account
 */
void emu_busy_end(struct emu_busy *b)
{
	spin_lock(&b->lock);
	if (!--b->active)
		emu_busy_account(b, emu_busy_now(b));
	spin_unlock(&b->lock);
}

/**
 * emu_busy_read() - figures of the last minute
 * @b: account
 * @p: filled in, if a whole second has passed
 *
 * Return: 0, -ENODATA.
 */
int emu_busy_read(struct emu_busy *b, struct neuron_power *p)
{
	u64 now, sec, n, i, sum = 0;

	spin_lock(&b->lock);
	now = emu_busy_now(b);
	if (b->active)
		emu_busy_account(b, now);
	sec = div_u64(now, NSEC_PER_SEC);
	n = sec > b->first ? min_t(u64, sec - b->first, EMU_BUSY_WINDOW) : 0;
	p->min = NEURON_POWER_MAX;
	p->max = 0;
	for (i = sec - n; i < sec; i++) {
		u32 slot = i % EMU_BUSY_SLOTS;
		u64 busy = b->sec[slot] == i ? b->busy[slot] : 0;

		p->now = div_u64(busy * NEURON_POWER_MAX, NSEC_PER_SEC);
		p->min = min(p->min, p->now);
		p->max = max(p->max, p->now);
		sum += p->now;
	}
	spin_unlock(&b->lock);
	if (!n)
		return -ENODATA;
	p->avg = div64_u64(sum, n);
	p->time = ktime_get_real_seconds();
	return 0;
}

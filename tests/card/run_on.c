// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues that do not stop when they are switched off: they go on fetching descriptors of their
 * ring from host memory, until the reset of their core has ended or the card may not master the
 * bus any more, or for a moment, as if descriptors were under way that were fetched before. A
 * driver that gives the ring back earlier gets a complaint.
 */
#include "card.h"

#define FETCH_US	1000

/* Under run_on_lock: a side of a queue fetches once more, or never again. */
static void card_run_on_fetch(struct card *card, u32 engine, u32 q, u32 rx)
{
	u64 *addr = &card->run_on[engine][q][rx];

	if (*addr && (ktime_get_ns() >= card->run_on_until[engine][q][rx] ||
		      !card_memory_fetch(card, *addr)))
		*addr = 0;
}

static void *card_run_on_thread(void *arg)
{
	struct card *card = arg;
	u32 i, q, rx;

	while (!READ_ONCE(card->run_on_stop)) {
		usleep(FETCH_US);
		pthread_mutex_lock(&card->run_on_lock);
		for (i = 0; i < EMU_MAX_ENGINES; i++)
			for (q = 0; q < CARD_QUEUES; q++)
				for (rx = 0; rx < 2; rx++)
					card_run_on_fetch(card, i, q, rx);
		pthread_mutex_unlock(&card->run_on_lock);
	}
	return NULL;
}

/**
 * card_run_on() - from now on queues of cores that are switched off do not stop, or they do
 * @card: the card
 * @ms: 0: they stop; 1: they do not, until the reset; more: after so many ms
 *
 * Return: 0, -errno.
 */
int card_run_on(struct card *card, u32 ms)
{
	int err = 0;

	if (ms && !card->run_on_thread)
		err = -pthread_create(&card->run_on_thread, NULL, card_run_on_thread, card);
	pthread_mutex_lock(&card->run_on_lock);
	card->faults.run_on = err ? 0 : ms;
	if (!ms)
		memset(card->run_on, 0, sizeof(card->run_on));
	pthread_mutex_unlock(&card->run_on_lock);
	return err;
}

/**
 * card_run_on_off() - a side of a queue that was on is switched off
 * @card: the card
 * @engine: its engine
 * @q: queue
 * @rx: side
 */
void card_run_on_off(struct card *card, u32 engine, u32 q, bool rx)
{
	const struct neuron_geometry *geo = &card->ed.geo;

	pthread_mutex_lock(&card->run_on_lock);
	if (card->faults.run_on && engine < geo->nr_cores * geo->engines_per_core) {
		card->run_on[engine][q][rx] = card->engine[engine].side[q][rx].base;
		card->run_on_until[engine][q][rx] = card->faults.run_on == 1 ? U64_MAX :
			ktime_get_ns() + card->faults.run_on * 1000000ULL;
	}
	pthread_mutex_unlock(&card->run_on_lock);
}

/**
 * card_run_on_reset() - a reset has ended
 * @card: the card
 * @cores: of these cores
 */
void card_run_on_reset(struct card *card, u64 cores)
{
	u32 i, n = card->ed.geo.engines_per_core;

	pthread_mutex_lock(&card->run_on_lock);
	for (i = 0; i < n * card->ed.geo.nr_cores; i++)
		if (cores & BIT(i / n))
			memset(card->run_on[i], 0, sizeof(card->run_on[i]));
	pthread_mutex_unlock(&card->run_on_lock);
}

/**
 * card_run_on_check() - the machine is off, or starts anew
 * @card: the card
 *
 * Its next kernel uses all of its memory.
 */
void card_run_on_check(struct card *card)
{
	u32 i, q, rx, n = 0;

	pthread_mutex_lock(&card->run_on_lock);
	for (i = 0; i < EMU_MAX_ENGINES; i++)
		for (q = 0; q < CARD_QUEUES; q++)
			for (rx = 0; rx < 2; rx++)
				n += !!card->run_on[i][q][rx];
	memset(card->run_on, 0, sizeof(card->run_on));
	pthread_mutex_unlock(&card->run_on_lock);
	if (n && card->command & BIT(2))
		card_complain(card, "the machine has gone with bus mastering on, and %u queues run", n);
}

/**
 * card_run_on_exit() - no queue runs on any more
 * @card: the card, which goes
 */
void card_run_on_exit(struct card *card)
{
	WRITE_ONCE(card->run_on_stop, true);
	if (card->run_on_thread)
		pthread_join(card->run_on_thread, NULL);
	pthread_mutex_destroy(&card->run_on_lock);
}

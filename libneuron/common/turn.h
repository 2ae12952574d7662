/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A mutex that is held for long, and often taken again at once: a mutex of POSIX goes to
 * whoever asks first after it is released, which is the thread that has just had it, while those
 * that wait are still waking up.  Here that is so only until the first of them has waited for
 * TURN_PATIENCE_US; then the others line up behind it.  So short turns in a row cost no switch of
 * threads, and nobody waits for much more than one turn of each of the others.
 */
#ifndef NEURON_TURN_H
#define NEURON_TURN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "wait.h"

#define TURN_PATIENCE_US	1000

struct turn {
	pthread_mutex_t lock;	/* whose turn it is */
	pthread_mutex_t next;	/* who is the first to wait for it */
	_Atomic uint64_t since;	/* when, microseconds; 0: nobody does */
};

static inline void turn_init(struct turn *turn)
{
	pthread_mutex_init(&turn->lock, NULL);
	pthread_mutex_init(&turn->next, NULL);
	atomic_init(&turn->since, 0);
}

static inline void turn_destroy(struct turn *turn)
{
	pthread_mutex_destroy(&turn->next);
	pthread_mutex_destroy(&turn->lock);
}

/* Has somebody waited for long, @at from then on? */
static inline bool waited_long(const _Atomic uint64_t *at)
{
	uint64_t since = atomic_load_explicit(at, memory_order_relaxed);

	return since && now_us() - since > TURN_PATIENCE_US;
}

static inline bool turn_awaited(struct turn *turn)
{
	return waited_long(&turn->since);
}

/* Only if nobody has it, or has waited long enough for it. */
static inline bool turn_try(struct turn *turn)
{
	return !turn_awaited(turn) && !pthread_mutex_trylock(&turn->lock);
}

static inline void turn_take(struct turn *turn)
{
	if (turn_try(turn))
		return;
	pthread_mutex_lock(&turn->next);
	atomic_store_explicit(&turn->since, now_us(), memory_order_relaxed);
	pthread_mutex_lock(&turn->lock);
	atomic_store_explicit(&turn->since, 0, memory_order_relaxed);
	pthread_mutex_unlock(&turn->next);
}

static inline void turn_give(struct turn *turn)
{
	pthread_mutex_unlock(&turn->lock);
}

static inline struct turn *turn_taken(struct turn *turn)
{
	turn_take(turn);
	return turn;
}

static inline void turn_over(struct turn *const *turn)
{
	turn_give(*turn);
}

/* For the rest of a block, behind the declarations. */
#define TURN(of) \
	struct turn *turn_ __attribute__((cleanup(turn_over), unused)) = turn_taken(of)

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A mutex for the rest of a block. */
#ifndef NEURON_LOCK_H
#define NEURON_LOCK_H

#include <pthread.h>

static inline pthread_mutex_t *lock_take(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void lock_release(pthread_mutex_t *const *mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* Behind the declarations. */
#define GUARD(mutex) \
	pthread_mutex_t *guarded_ __attribute__((cleanup(lock_release), unused)) = lock_take(mutex)

#endif

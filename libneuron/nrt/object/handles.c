// SPDX-License-Identifier: LGPL-2.1-or-later
/* Handles that are live, as trees of tsearch() (handles.h). */
#include <pthread.h>
#include <search.h>
#include <stdint.h>

#include "../../common/lock.h"
#include "handles.h"

static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;
static void *live[NRT_HANDLES_NR];

/* Its complement, so that a leak checker does not find what was lost through the tree. */
static void *key_of(const void *handle)
{
	return (void *)~(uintptr_t)handle;
}

static int by_address(const void *a, const void *b)
{
	return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

bool nrt_handle_add(enum nrt_handles kind, const void *handle)
{
	GUARD(&handles_lock);
	return tsearch(key_of(handle), &live[kind], by_address);
}

bool nrt_handle_remove(enum nrt_handles kind, const void *handle)
{
	GUARD(&handles_lock);
	return tdelete(key_of(handle), &live[kind], by_address);
}

bool nrt_handle_live(enum nrt_handles kind, const void *handle)
{
	GUARD(&handles_lock);
	return tfind(key_of(handle), &live[kind], by_address);
}

void nrt_handles_lock(void)
{
	pthread_mutex_lock(&handles_lock);
}

void nrt_handles_unlock(void)
{
	pthread_mutex_unlock(&handles_lock);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads of the library in a program that has handlers of its own. */
#ifndef NEURON_THREAD_H
#define NEURON_THREAD_H

#include <pthread.h>
#include <signal.h>

/*
 * 0 or -errno.  The program's signals are not for this thread, but for those that a fault
 * of the thread itself raises: blocked, they would end the process past its handler.
 */
static inline int thread_start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	sigset_t others, old;
	int ret;

	sigfillset(&others);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&others, faults[i]);
	pthread_sigmask(SIG_BLOCK, &others, &old);
	ret = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -ret;
}

/* Threads that do the same, until there are @max; *nr run, also after an error. 0 or -errno. */
static inline int threads_start(pthread_t *threads, unsigned int *nr, unsigned int max,
				void *(*fn)(void *))
{
	int ret = 0;

	while (!ret && *nr < max) {
		ret = thread_start(&threads[*nr], fn, NULL);
		if (!ret)
			++*nr;
	}
	return ret;
}

static inline void threads_join(pthread_t *threads, unsigned int *nr)
{
	while (*nr)
		pthread_join(threads[--*nr], NULL);
}

#endif

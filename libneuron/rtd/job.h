/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Slow work, and the threads that do it.
 *
 * The threads serve clients in turns, and have one to spare whatever a client asks for. What
 * waits for requests of a model waits there (model.h), and not in a thread.
 */
#ifndef NEURON_RTD_JOB_H
#define NEURON_RTD_JOB_H

#include <stdbool.h>
#include <sys/queue.h>

/* The jobs of a client. */
struct turn;

struct job {
	void (*run)(struct job *job);	/* may free it */
	struct turn *turn;		/* NULL: work of the daemon itself */
	TAILQ_ENTRY(job) link;
	TAILQ_ENTRY(job) changes;	/* of a model */
};

TAILQ_HEAD(job_list, job);

/* NULL: there is no memory. */
struct turn *turn_new(void);
/* Freed after its last job. */
void turn_drop(struct turn *turn);

/* Starts the threads. 0 or -errno. */
int jobs_start(void);
/* From here on job_add_first() refuses. */
void jobs_close(void);
/* Ends the threads after all that was added, with what that adds. */
void jobs_stop(void);

/* Somebody else must not have a reference to it, nor its turn be dropped before. */
void job_add(struct job *job);
/* The same for what has just arrived. False: it is too late. */
bool job_add_first(struct job *job);

#endif

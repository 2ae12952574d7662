// SPDX-License-Identifier: LGPL-2.1-or-later
#include <pthread.h>
#include <stdlib.h>

#include "../common/lock.h"
#include "../common/thread.h"
#include "job.h"

/* A load can take minutes. A client that has as many as it may leaves threads for others. */
#define NR_THREADS 6u
#define MAX_OF_CLIENT 2u

struct turn {
	unsigned int refs;
	struct job_list jobs;
	unsigned int working;		/* threads */
	bool listed;
	TAILQ_ENTRY(turn) link;
};

static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;	/* everything here */
static pthread_cond_t jobs_changed = PTHREAD_COND_INITIALIZER;
/* Those that have a job which a thread may take. */
static TAILQ_HEAD(turn_list, turn) turns = TAILQ_HEAD_INITIALIZER(turns);
static struct turn own = { .refs = 1, .jobs = TAILQ_HEAD_INITIALIZER(own.jobs) };
static bool closed, stopping;
static pthread_t threads[NR_THREADS];
static unsigned int nr_threads;

struct turn *turn_new(void)
{
	struct turn *turn = calloc(1, sizeof(*turn));

	if (turn) {
		turn->refs = 1;
		TAILQ_INIT(&turn->jobs);
	}
	return turn;
}

static void drop(struct turn *turn)
{
	if (!--turn->refs)
		free(turn);
}

void turn_drop(struct turn *turn)
{
	GUARD(&jobs_lock);
	drop(turn);
}

static void list(struct turn *turn)
{
	if (turn->listed || TAILQ_EMPTY(&turn->jobs) || turn->working == MAX_OF_CLIENT)
		return;
	turn->listed = true;
	TAILQ_INSERT_TAIL(&turns, turn, link);
	pthread_cond_signal(&jobs_changed);
}

static void add(struct job *job)
{
	struct turn *turn = job->turn ? job->turn : &own;

	turn->refs++;
	TAILQ_INSERT_TAIL(&turn->jobs, job, link);
	list(turn);
}

void job_add(struct job *job)
{
	GUARD(&jobs_lock);
	add(job);
}

bool job_add_first(struct job *job)
{
	GUARD(&jobs_lock);
	if (!closed)
		add(job);
	return !closed;
}

/* Of the client that has waited longest. NULL: there is nothing to be done any more. */
static struct job *next_job(struct turn **turn)
{
	struct job *job;

	GUARD(&jobs_lock);
	while (!(*turn = TAILQ_FIRST(&turns))) {
		if (stopping)
			return NULL;
		pthread_cond_wait(&jobs_changed, &jobs_lock);
	}
	TAILQ_REMOVE(&turns, *turn, link);
	(*turn)->listed = false;
	job = TAILQ_FIRST(&(*turn)->jobs);
	TAILQ_REMOVE(&(*turn)->jobs, job, link);
	(*turn)->working++;
	list(*turn);
	return job;
}

static void *work(void *arg)
{
	struct turn *turn;
	struct job *job;

	(void)arg;
	while ((job = next_job(&turn))) {
		job->run(job);
		GUARD(&jobs_lock);
		turn->working--;
		list(turn);
		drop(turn);
	}
	return NULL;
}

int jobs_start(void)
{
	return threads_start(threads, &nr_threads, NR_THREADS, work);
}

void jobs_close(void)
{
	GUARD(&jobs_lock);
	closed = true;
}

void jobs_stop(void)
{
	pthread_mutex_lock(&jobs_lock);
	stopping = true;
	pthread_cond_broadcast(&jobs_changed);
	pthread_mutex_unlock(&jobs_lock);
	threads_join(threads, &nr_threads);
}

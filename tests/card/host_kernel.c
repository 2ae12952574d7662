// SPDX-License-Identifier: GPL-2.0-only
/* Workqueues on the host: one thread each, in the order in which work was queued. */
#include "host_kernel.h"

/**
 * struct workqueue_struct - a thread and what it has to do
 * @lock: guards all of it, and the fields of its work
 * @changed: there is work, or one item is done
 * @thread: does the work
 * @first: work to do
 * @running: what it is doing now
 * @stop: end when there is no work left
 */
struct workqueue_struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct work_struct *first;
	struct work_struct *running;
	bool stop;
};

static void *workqueue_run(void *arg)
{
	struct workqueue_struct *wq = arg;
	struct work_struct *work;

	pthread_mutex_lock(&wq->lock);
	for (;;) {
		while (!wq->first && !wq->stop)
			pthread_cond_wait(&wq->changed, &wq->lock);
		work = wq->first;
		if (!work)
			break;
		wq->first = work->next;
		work->queued = false;
		wq->running = work;
		pthread_mutex_unlock(&wq->lock);
		work->func(work);
		pthread_mutex_lock(&wq->lock);
		wq->running = NULL;
		pthread_cond_broadcast(&wq->changed);
	}
	pthread_mutex_unlock(&wq->lock);
	return NULL;
}

/* A workqueue; NULL without memory or threads. */
struct workqueue_struct *card_workqueue_new(void)
{
	struct workqueue_struct *wq = calloc(1, sizeof(*wq));

	if (!wq)
		return NULL;
	pthread_mutex_init(&wq->lock, NULL);
	pthread_cond_init(&wq->changed, NULL);
	if (pthread_create(&wq->thread, NULL, workqueue_run, wq)) {
		free(wq);
		return NULL;
	}
	return wq;
}

void destroy_workqueue(struct workqueue_struct *wq)
{
	pthread_mutex_lock(&wq->lock);
	wq->stop = true;
	pthread_cond_broadcast(&wq->changed);
	pthread_mutex_unlock(&wq->lock);
	pthread_join(wq->thread, NULL);
	pthread_cond_destroy(&wq->changed);
	pthread_mutex_destroy(&wq->lock);
	free(wq);
}

/* As in the kernel, work that runs can be queued again, work that is queued cannot. */
bool queue_work(struct workqueue_struct *wq, struct work_struct *work)
{
	struct work_struct **end = &wq->first;
	bool queued;

	pthread_mutex_lock(&wq->lock);
	queued = !work->queued;
	if (queued) {
		while (*end)
			end = &(*end)->next;
		*end = work;
		work->next = NULL;
		work->queued = true;
		work->wq = wq;
		pthread_cond_broadcast(&wq->changed);
	}
	pthread_mutex_unlock(&wq->lock);
	return queued;
}

/* Take work out of its queue, and wait for it if it runs. */
bool cancel_work_sync(struct work_struct *work)
{
	struct workqueue_struct *wq = work->wq;
	struct work_struct **at;
	bool queued;

	if (!wq)
		return false;
	pthread_mutex_lock(&wq->lock);
	queued = work->queued;
	if (queued) {
		for (at = &wq->first; *at != work; at = &(*at)->next)
			;
		*at = work->next;
		work->queued = false;
	}
	while (wq->running == work)
		pthread_cond_wait(&wq->changed, &wq->lock);
	pthread_mutex_unlock(&wq->lock);
	return queued;
}

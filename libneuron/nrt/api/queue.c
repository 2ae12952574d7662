// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Queues of requests: a thread per queue in use does them in order, and who waits for them
 * is told.  What a request is, its ops know (queue.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../common/lock.h"
#include "../../common/thread.h"
#include "../../common/wait.h"
#include "queue.h"

#define TENSOR_DEPTH 1024u		/* requests of a queue that wait */
#define NR_QUEUES 6u			/* of a core: 2 + 1 + 3 */

/* Who wants to know of one request. */
struct watch {
	struct watch *next;
	uint64_t number;
	int fd;
};

struct queue {
	pthread_mutex_t lock;		/* everything below */
	pthread_cond_t work;		/* there is some, or stop */
	pthread_cond_t progress;	/* a request is complete */
	pthread_t thread;
	bool started;
	bool stop;
	bool dead;			/* the device is gone */
	uint32_t depth;
	struct nrt_job *jobs;		/* by number modulo depth */
	uint64_t scheduled;		/* number of the last one */
	uint64_t completed;
	uint64_t given_up;		/* the first that stop has kept from being done, or 0 */
	struct watch *watches;
	int fd;				/* told of all, or -1 */
};

static struct {
	pthread_mutex_t lock;		/* everything below; outside of queue.lock */
	struct queue *queues;		/* NR_QUEUES for each core */
	uint32_t nr;
	bool closing;
} async = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const uint8_t queues_of[NRTA_XU_TYPE_NUM] = { 2, 1, 3 };
static const uint8_t first_of[NRTA_XU_TYPE_NUM] = { 0, 2, 3 };

/* Under async.lock, after nrt_enter(). */
static NRT_STATUS table_get(void)
{
	uint32_t nr = nrt_process.nr_vncs * NR_QUEUES;

	if (async.closing)
		return NRT_CLOSED;
	if (async.queues)
		return NRT_SUCCESS;
	async.queues = calloc(nr, sizeof(*async.queues));
	if (!async.queues)
		return NRT_RESOURCE;
	for (uint32_t i = 0; i < nr; i++) {
		struct queue *q = &async.queues[i];

		pthread_mutex_init(&q->lock, NULL);
		pthread_cond_init(&q->work, NULL);
		pthread_cond_init(&q->progress, NULL);
		q->depth = i % NR_QUEUES == first_of[NRTA_XU_COMPUTE] ? nrt_process.exec_depth :
									TENSOR_DEPTH;
		q->fd = -1;
	}
	async.nr = nr;
	return NRT_SUCCESS;
}

static nrta_seq_t seq_of(uint32_t index, uint64_t number)
{
	return (uint64_t)(index + 1) << NRTA_SEQ_NUM_BITS | number;
}

static NRT_STATUS find_queue(int64_t vnc, nrta_xu_t xu, int queue, uint32_t *index)
{
	if (vnc < 0 || vnc >= nrt_process.nr_vncs || (int)xu < 0 || xu >= NRTA_XU_TYPE_NUM ||
	    queue < 0 || queue >= queues_of[xu])
		return NRT_INVALID;
	*index = (uint32_t)vnc * NR_QUEUES + first_of[xu] + (uint32_t)queue;
	GUARD(&async.lock);
	return table_get();
}

/* The queue of an id, and the number, if it can exist. */
static struct queue *queue_of_seq(nrta_seq_t seq, uint64_t *number)
{
	uint64_t index = NRTA_SEQ_GET_XU_ID(seq);
	struct queue *q = NULL;

	*number = NRTA_SEQ_GET_SEQ_NUM(seq);
	GUARD(&async.lock);
	if (async.queues && index >= 1 && index <= async.nr && *number)
		q = &async.queues[index - 1];
	return q;
}

/* Under q->lock. */
static void complete(struct queue *q)
{
	uint64_t number = ++q->completed;

	for (struct watch **at = &q->watches; *at;) {
		struct watch *w = *at;

		if (w->number > number) {
			at = &w->next;
			continue;
		}
		tell_eventfd(w->fd);
		close(w->fd);
		*at = w->next;
		free(w);
	}
	if (q->fd >= 0)
		tell_eventfd(q->fd);
	pthread_cond_broadcast(&q->progress);
}

static void *worker(void *arg)
{
	struct queue *q = arg;

	nrt_set_worker(true);
	pthread_mutex_lock(&q->lock);
	for (;;) {
		uint64_t number = q->completed + 1;
		bool cancel;
		NRT_STATUS status;
		struct nrt_job job;

		if (q->completed == q->scheduled) {
			if (q->stop)
				break;
			pthread_cond_wait(&q->work, &q->lock);
			continue;
		}
		job = q->jobs[number % q->depth];
		cancel = q->stop;
		if (cancel && !q->given_up)
			q->given_up = number;
		pthread_mutex_unlock(&q->lock);

		status = cancel ? NRT_CLOSED : job.ops->run(&job);
		if (job.ret)
			__atomic_store_n(job.ret, status, __ATOMIC_RELEASE);
		if (job.ops->done)
			job.ops->done(&job, number, status);
		job.ops->drop(&job);

		pthread_mutex_lock(&q->lock);
		if (status == NRT_HW_ERROR)
			q->dead = true;
		complete(q);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

/* Under q->lock; 0 or -errno. */
static int start_worker(struct queue *q)
{
	const struct nrt_env *env = &nrt_process.env;
	int ret;

	if (q->started)
		return 0;
	if (!q->jobs)
		q->jobs = calloc(q->depth, sizeof(*q->jobs));
	if (!q->jobs)
		return -ENOMEM;
	ret = thread_start(&q->thread, worker, q);
	q->started = !ret;
	/* Processors that are not there: wherever it runs is better than not at all. */
	if (!ret && env->has_cpus)
		pthread_setaffinity_np(q->thread, sizeof(env->cpus), &env->cpus);
	return ret;
}

/* Executions that did not get in are in the statistics of their core. */
static NRT_STATUS queue_full(uint32_t index)
{
	if (index % NR_QUEUES == first_of[NRTA_XU_COMPUTE])
		neuron_core_count(nrt_process.vncs[index / NR_QUEUES].core, NEURON_CORE_QUEUE_FULL);
	return NRT_QUEUE_FULL;
}

/* Takes what @job holds, unless it fails. */
static NRT_STATUS schedule(uint32_t index, const struct nrt_job *job, bool wait, nrta_seq_t *seq)
{
	struct queue *q = &async.queues[index];

	GUARD(&q->lock);
	while (wait && !q->stop && q->scheduled - q->completed >= q->depth && !nrt_on_worker())
		pthread_cond_wait(&q->progress, &q->lock);
	if (q->stop)
		return NRT_CLOSED;
	if (q->dead)
		return NRT_EXEC_UNIT_UNRECOVERABLE;
	if (q->scheduled - q->completed >= q->depth)
		return queue_full(index);
	if (start_worker(q))
		return NRT_RESOURCE;
	q->jobs[++q->scheduled % q->depth] = *job;
	/* Before the worker can be done with it. */
	if (seq)
		*seq = seq_of(index, q->scheduled);
	pthread_cond_signal(&q->work);
	return NRT_SUCCESS;
}

NRT_STATUS nrt_queue_submit(int64_t vnc, nrta_xu_t xu, int queue, const struct nrt_job *job,
			    bool wait, nrta_seq_t *seq)
{
	uint32_t index;

	return find_queue(vnc, xu, queue, &index) ?: schedule(index, job, wait, seq);
}

void nrt_queues_stop(void)
{
	/* From here on no table is made. */
	pthread_mutex_lock(&async.lock);
	async.closing = true;
	pthread_mutex_unlock(&async.lock);
	for (uint32_t i = 0; i < async.nr; i++) {
		struct queue *q = &async.queues[i];
		bool join;

		pthread_mutex_lock(&q->lock);
		q->stop = true;
		join = q->started;
		q->started = false;
		pthread_cond_broadcast(&q->work);
		pthread_cond_broadcast(&q->progress);
		pthread_mutex_unlock(&q->lock);
		if (join)
			pthread_join(q->thread, NULL);
	}
}

void nrt_queues_close(void)
{
	for (uint32_t i = 0; i < async.nr; i++) {
		struct queue *q = &async.queues[i];

		while (q->watches) {
			struct watch *w = q->watches;

			q->watches = w->next;
			close(w->fd);
			free(w);
		}
		if (q->fd >= 0)
			close(q->fd);
		free(q->jobs);
		pthread_cond_destroy(&q->work);
		pthread_cond_destroy(&q->progress);
		pthread_mutex_destroy(&q->lock);
	}
	free(async.queues);
	async.queues = NULL;
	async.nr = 0;
	async.closing = false;
}

void nrt_queues_forget(void)
{
	nrt_set_worker(false);
	pthread_mutex_init(&async.lock, NULL);
	async.queues = NULL;
	async.nr = 0;
	async.closing = false;
}

NEURON_EXPORT NRT_STATUS nrta_is_completed(nrta_seq_t seq, bool *is_completed)
{
	struct queue *q;
	uint64_t number;

	NRT_ENTER();
	q = queue_of_seq(seq, &number);
	if (!q || !is_completed)
		return NRT_INVALID;
	GUARD(&q->lock);
	if (number > q->scheduled)
		return NRT_INVALID;
	*is_completed = number <= q->completed;
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrta_get_sequence(uint32_t lnc, nrta_xu_t xu, int queue, nrta_seq_t *seq)
{
	NRT_STATUS status;
	uint32_t index;

	NRT_ENTER();
	status = seq ? find_queue(lnc, xu, queue, &index) : NRT_INVALID;
	if (status != NRT_SUCCESS)
		return status;
	GUARD(&async.queues[index].lock);
	*seq = seq_of(index, async.queues[index].completed);
	return NRT_SUCCESS;
}

/* -1, or a duplicate of @fd. */
static NRT_STATUS keep(int fd, int *out)
{
	*out = -1;
	if (fd < -1)
		return NRT_INVALID;
	if (fd == -1)
		return NRT_SUCCESS;
	*out = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (*out >= 0)
		return NRT_SUCCESS;
	return errno == EBADF ? NRT_INVALID : NRT_RESOURCE;
}

/* Under q->lock; takes @fd. */
static NRT_STATUS watch(struct queue *q, uint64_t number, int fd)
{
	struct watch **at = &q->watches, *w;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	w = *at;
	if (w) {
		close(w->fd);
		*at = w->next;
	}
	if (fd < 0 || number <= q->completed) {
		free(w);
		if (fd >= 0) {
			tell_eventfd(fd);
			close(fd);
		}
		return NRT_SUCCESS;
	}
	w = w ? w : malloc(sizeof(*w));
	if (!w) {
		close(fd);
		return NRT_RESOURCE;
	}
	*w = (struct watch){ .next = q->watches, .number = number, .fd = fd };
	q->watches = w;
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrta_event_register_seq_id_completion(nrta_seq_t seq, int fd)
{
	NRT_STATUS status;
	struct queue *q;
	uint64_t number;
	int own;

	NRT_ENTER();
	q = queue_of_seq(seq, &number);
	status = q ? keep(fd, &own) : NRT_INVALID;
	if (status != NRT_SUCCESS)
		return status;
	GUARD(&q->lock);
	if (number <= q->scheduled)
		return watch(q, number, own);
	if (own >= 0)
		close(own);
	return NRT_INVALID;
}

NEURON_EXPORT NRT_STATUS nrta_event_register_xu_completion(int lnc, nrta_xu_t xu, int queue, int fd)
{
	NRT_STATUS status;
	struct queue *q;
	uint32_t index;
	int own;

	NRT_ENTER();
	status = find_queue(lnc, xu, queue, &index) ?: keep(fd, &own);
	if (status != NRT_SUCCESS)
		return status;
	q = &async.queues[index];
	GUARD(&q->lock);
	if (q->fd >= 0)
		close(q->fd);
	q->fd = own;
	return NRT_SUCCESS;
}

/* Those that are queued when it is called. */
NEURON_EXPORT NRT_STATUS nrt_async_drain_queued_execs(int32_t vnc)
{
	NRT_STATUS status;
	struct queue *q;
	uint32_t index;
	uint64_t last;

	NRT_ENTER();
	status = nrt_on_worker() ? NRT_INVALID : find_queue(vnc, NRTA_XU_COMPUTE, 0, &index);
	if (status != NRT_SUCCESS)
		return status;
	q = &async.queues[index];
	GUARD(&q->lock);
	last = q->scheduled;
	while (q->completed < last)
		pthread_cond_wait(&q->progress, &q->lock);
	return q->given_up && q->given_up <= last ? NRT_CLOSED : NRT_SUCCESS;
}

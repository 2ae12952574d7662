// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "../common/lock.h"
#include "../common/thread.h"
#include "../common/util.h"
#include "../common/wait.h"
#include "infer.h"
#include "request.h"

/* Enough to read outputs of one model while those of another are read. */
#define NR_THREADS 2u
#define STOP 0			/* no model has this number */

static pthread_t threads[NR_THREADS];
static unsigned int nr_threads;
static int epoll_fd = -1, timer_fd = -1, stop_fd = -1;
static TAILQ_HEAD(posted_list, request) posted = TAILQ_HEAD_INITIALIZER(posted);

/* ---- the end of a request ---------------------------------------------------------------- */

static void forget_posted(struct request *r)
{
	TAILQ_REMOVE(&posted, r, posted);
	request_free(r);
}

/*
 * It has no slot any more. Answers who waits; what is posted stays until somebody does, but
 * without the model, which would otherwise be unloaded only when everybody has taken results.
 */
static void finish(struct request *r)
{
	struct call *call;

	request_pack(r);
	pthread_mutex_lock(&rtd_lock);
	if (r->result.status)
		r->model->failed++;
	else
		r->model->done++;
	request_settle(r);
	r->done = true;
	call = r->call;
	if (!call && (r->client->gone || r->unwanted))
		forget_posted(r);
	else if (call && r->id)
		TAILQ_REMOVE(&posted, r, posted);
	pthread_mutex_unlock(&rtd_lock);
	if (!call)
		return;
	request_answer(r);
	GUARD(&rtd_lock);
	request_free(r);
}

static void fail(struct request *r, int error, const char *text)
{
	r->result = (struct neuron_net_result){ .status = error, .nr_errors = 1 };
	snprintf(r->result.errors[0], sizeof(r->result.errors[0]), "%s",
		 text ? text : strerror(-error));
}

/* Whoever holds the slot gives it to the next that waits: returned, with the slot. */
static struct request *pass_slot(struct model *m, struct slot *slot)
{
	struct request *next;

	GUARD(&rtd_lock);
	next = TAILQ_FIRST(&m->waiting);
	if (!next) {
		model_free_slot(m, slot);
		return NULL;
	}
	TAILQ_REMOVE(&m->waiting, next, link);
	m->nr_waiting--;
	next->slot = slot;
	return next;
}

/* In the order of the network, which is why the lock is held. */
static int submit(struct request *r)
{
	struct model *m = r->model;
	int ret;

	GUARD(&rtd_lock);
	/* What its client had queued is cancelled already. */
	if (r->client->gone)
		return -ECANCELED;
	ret = neuron_net_submit(m->net, r->slot->io, m->nr_tensors, &r->cookie);
	if (!ret) {
		TAILQ_INSERT_TAIL(&m->under_way, r, link);
		m->nr_under_way++;
	}
	return ret;
}

/* From a request that has a slot to one that is under way; one that fails is followed. */
static void launch(struct request *r)
{
	while (r) {
		struct model *m = r->model;
		struct slot *slot = r->slot;
		int ret = request_write(r) ?: submit(r);
		struct request *next;

		if (!ret)
			return;
		fail(r, ret, NULL);
		r->slot = NULL;
		/* The model stays until the request is finished. */
		next = pass_slot(m, slot);
		finish(r);
		r = next;
	}
}

/* The first of the network, if it has ended. */
static struct request *take_ended(struct model *m)
{
	struct request *r;
	int ret;

	GUARD(&rtd_lock);
	r = TAILQ_FIRST(&m->under_way);
	if (!r)
		return NULL;
	r->result.size = sizeof(r->result);
	ret = neuron_net_wait(m->net, r->cookie, 0, &r->result);
	if (ret == -ETIMEDOUT)
		return NULL;
	if (ret)
		fail(r, ret, NULL);
	TAILQ_REMOVE(&m->under_way, r, link);
	m->nr_under_way--;
	return r;
}

static void look_after(struct model *m)
{
	struct request *r;

	while ((r = take_ended(m))) {
		struct slot *slot = r->slot;
		int ret = r->result.status ? 0 : request_read(r);

		if (ret)
			fail(r, ret, NULL);
		r->slot = NULL;
		launch(pass_slot(m, slot));
		finish(r);
	}
}

static int watch(int operation, struct model *m)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLONESHOT, .data.u64 = m->id };

	return epoll_ctl(epoll_fd, operation, m->eventfd, &e) ? -errno : 0;
}

static struct model *hold_model(uint64_t id)
{
	struct model *m;

	GUARD(&rtd_lock);
	m = model_by_id(id);
	if (m)
		m->refs++;
	return m;
}

static void *run(void *arg)
{
	struct epoll_event e;

	(void)arg;
	for (;;) {
		struct model *m;
		uint64_t count;

		if (epoll_wait(epoll_fd, &e, 1, -1) < 1)
			continue;
		if (e.data.u64 == STOP)
			return NULL;
		m = hold_model(e.data.u64);
		if (!m)
			continue;
		/* Before it is looked at: what ends later makes it readable again. */
		if (read(m->eventfd, &count, sizeof(count)) == sizeof(count))
			look_after(m);
		watch(EPOLL_CTL_MOD, m);
		model_put(m);
	}
}

int infer_add_model(struct model *model)
{
	return watch(EPOLL_CTL_ADD, model);
}

int infer_start(void)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = STOP };

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	stop_fd = eventfd(0, EFD_CLOEXEC);
	if (epoll_fd < 0 || timer_fd < 0 || stop_fd < 0)
		return -errno;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, stop_fd, &e))
		return -errno;
	return threads_start(threads, &nr_threads, NR_THREADS, run);
}

/* ---- calls ------------------------------------------------------------------------------- */

/*
 * A slot now, or later in the order of arrival. 0: now, 1: later, -EAGAIN: too many wait,
 * -ESHUTDOWN: it was stopped since the message was checked.
 */
static int take_slot(struct request *r, bool may_wait)
{
	struct model *m = r->model;

	GUARD(&rtd_lock);
	if (!m->running || r->client->gone)
		return -ESHUTDOWN;
	r->slot = model_take_slot(m);
	if (r->slot)
		return 0;
	if (!may_wait || m->nr_waiting == MODEL_MAX_WAITING)
		return -EAGAIN;
	TAILQ_INSERT_TAIL(&m->waiting, r, link);
	m->nr_waiting++;
	return 1;
}

static void refuse(struct request *r, int error, const char *text)
{
	call_fail_errno(r->call, error, text);
	GUARD(&rtd_lock);
	request_free(r);
}

void infer_run(struct call *call)
{
	struct request *r = request_new(call, (const Rtd__InferRequest *)call->message);
	int ret;

	if (!r)
		return;
	ret = take_slot(r, true);
	if (!ret)
		launch(r);
	else if (ret < 0)
		refuse(r, ret, ret == -EAGAIN ? "too many requests wait for the model" : "");
}

/* Its number, 0: the client has too many. */
static uint64_t enter_posted(struct request *r)
{
	GUARD(&rtd_lock);
	if (r->client->nr_posted == CLIENT_MAX_POSTED)
		return 0;
	r->client->nr_posted++;
	r->id = new_id();
	TAILQ_INSERT_TAIL(&posted, r, posted);
	return r->id;
}

void infer_post(struct call *call)
{
	Rtd__Handle handle = RTD__HANDLE__INIT;
	struct request *r = request_new(call, (const Rtd__InferRequest *)call->message);
	int ret;

	if (!r)
		return;
	ret = take_slot(r, false);
	if (ret) {
		refuse(r, ret, ret == -EAGAIN ? "the queue of the model is full" : "");
		return;
	}
	handle.id = enter_posted(r);
	if (!handle.id) {
		struct request *next = pass_slot(r->model, r->slot);

		refuse(r, -EDQUOT, "too many results were not waited for");
		launch(next);
		return;
	}
	/* Inputs are copied before launch() returns, so the answer may end the call. */
	r->call = NULL;
	r->held = call->held;
	call->held = 0;
	launch(r);
	call_reply_made(call, handle.id, &handle.base);
}

void infer_undo(struct client *client, uint64_t id)
{
	struct request *r;

	GUARD(&rtd_lock);
	TAILQ_FOREACH(r, &posted, posted)
		if (r->id == id && r->client == client)
			break;
	if (!r)
		return;
	r->unwanted = true;
	if (r->done)
		forget_posted(r);
	else
		neuron_net_cancel(r->model->net, r->cookie);
}

/* The waiting of a client has ended, not the request. */
static struct call *take_waiter(struct request *r)
{
	struct call *call = r->call;

	r->call = NULL;
	r->until = 0;
	return call;
}

static void on_cancelled(struct call *call)
{
	struct request *r;

	pthread_mutex_lock(&rtd_lock);
	/* It may only be about to wait, and would take the result where nobody reads it. */
	call->gone = true;
	TAILQ_FOREACH(r, &posted, posted)
		if (r->call == call)
			break;
	if (r)
		take_waiter(r);
	pthread_mutex_unlock(&rtd_lock);
	if (r)
		call_fail(call, GRPC_STATUS_CANCELLED, "given up");
}

static void set_timer(uint64_t until)
{
	struct itimerspec t = {
		.it_value = { (time_t)(until / 1000000000), (long)(until % 1000000000) },
	};

	timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
}

/* The earliest of all who wait; 0: none. */
static uint64_t earliest(void)
{
	const struct request *r;
	uint64_t first = 0;

	TAILQ_FOREACH(r, &posted, posted)
		if (r->until && (!first || r->until < first))
			first = r->until;
	return first;
}

/* 0: it is done, and taken; 1: it will be answered later. */
static int join(struct call *call, const Rtd__WaitRequest *w, struct request **request)
{
	struct request *r;

	GUARD(&rtd_lock);
	if (call->gone)
		return -ECANCELED;
	TAILQ_FOREACH(r, &posted, posted)
		if (r->id == w->request && r->client == call->client)
			break;
	if (!r)
		return -ENOENT;
	if (r->call)
		return -EBUSY;
	if (!r->done && !w->timeout_ms)
		return -ETIMEDOUT;
	r->call = call;
	*request = r;
	if (r->done) {
		TAILQ_REMOVE(&posted, r, posted);
		return 0;
	}
	r->until = now_ns() + w->timeout_ms * 1000000ull;
	set_timer(earliest());
	return 1;
}

void infer_wait(struct call *call)
{
	const Rtd__WaitRequest *w = (const Rtd__WaitRequest *)call->message;
	struct request *r;
	int ret;

	/* Before it may be answered by another thread. */
	if (w->timeout_ms)
		call_watch(call, on_cancelled);
	ret = join(call, w, &r);
	if (ret < 0) {
		call_fail_errno(call, ret, ret == -ENOENT ? "there is no such request" :
				ret == -EBUSY ? "another call waits for it" :
				ret == -ECANCELED ? "given up" : "it is not done");
	} else if (!ret) {
		request_answer(r);
		GUARD(&rtd_lock);
		request_free(r);
	}
}

void infer_expire(void)
{
	uint64_t now = now_ns(), count;
	struct request *r;

	if (read(timer_fd, &count, sizeof(count)) != sizeof(count))
		return;
	do {
		struct call *call = NULL;

		pthread_mutex_lock(&rtd_lock);
		TAILQ_FOREACH(r, &posted, posted)
			if (r->until && r->until <= now)
				break;
		if (r)
			call = take_waiter(r);
		else
			set_timer(earliest());
		pthread_mutex_unlock(&rtd_lock);
		if (call)
			call_fail_errno(call, -ETIMEDOUT, "it is not done");
	} while (r);
}

int infer_timer(void)
{
	return timer_fd;
}

void infer_refuse(struct model *model, const struct client *client, int error, const char *why)
{
	struct request *r;

	do {
		pthread_mutex_lock(&rtd_lock);
		TAILQ_FOREACH(r, &model->waiting, link)
			if (!client || r->client == client)
				break;
		if (r) {
			TAILQ_REMOVE(&model->waiting, r, link);
			model->nr_waiting--;
		}
		pthread_mutex_unlock(&rtd_lock);
		if (r)
			refuse(r, error, why);
	} while (r);
}

void infer_drop(struct model *model, const struct client *client)
{
	const struct request *r;

	infer_refuse(model, client, -ECANCELED, "the client or the model's owner has ended");
	GUARD(&rtd_lock);
	TAILQ_FOREACH(r, &model->under_way, link)
		if (!client || r->client == client)
			neuron_net_cancel(model->net, r->cookie);
}

/* The list is not in the order of numbers: a load that takes longer is published later. */
static struct model *next_model(uint64_t after)
{
	struct model *m, *next = NULL;

	GUARD(&rtd_lock);
	TAILQ_FOREACH(m, &models, link)
		if (m->id > after && (!next || m->id < next->id))
			next = m;
	if (next)
		next->refs++;
	return next;
}

void infer_forget(struct client *client)
{
	struct request *r, *next;
	struct model *m;
	uint64_t id = 0;

	while ((m = next_model(id))) {
		id = m->id;
		infer_drop(m, client);
		model_put(m);
	}
	GUARD(&rtd_lock);
	for (r = TAILQ_FIRST(&posted); r; r = next) {
		next = TAILQ_NEXT(r, posted);
		/* One that is still under way, or has a call, ends by itself. */
		if (r->client == client && r->done && !r->call)
			forget_posted(r);
	}
}

void infer_stop(void)
{
	/* Nobody reads it: every thread finds it. */
	eventfd_write(stop_fd, 1);
	threads_join(threads, &nr_threads);
	close(epoll_fd);
	close(timer_fd);
	close(stop_fd);
}

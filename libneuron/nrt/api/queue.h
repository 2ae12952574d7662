/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Queues of requests. */
#ifndef NRT_QUEUE_H
#define NRT_QUEUE_H

#include <nrt/nrt_async.h>

#include "../base/process.h"

struct nrt_job;

struct nrt_job_ops {
	NRT_STATUS (*run)(const struct nrt_job *job);
	/* When it has ended, or NULL. */
	void (*done)(const struct nrt_job *job, uint64_t number, NRT_STATUS status);
	void (*drop)(const struct nrt_job *job);
};

/* A request.  It holds what it needs, so that nothing the caller frees matters to it. */
struct nrt_job {
	const struct nrt_job_ops *ops;
	NRT_STATUS *ret;		/* set at the end, or NULL */
	/* Of the ops: */
	nrt_tensor_t *src, *dst;
	void *buf;
	uint64_t src_offset, dst_offset, size;
	struct nrt_model *model;
	struct nrt_set *in, *out;
	struct nrt_cc_context *collective;
	uint32_t queue;			/* of a collective */
};

/*
 * After nrt_enter().  Takes what @job holds, unless it fails.  @wait: for room, if the
 * calling thread is no worker.
 */
NRT_STATUS nrt_queue_submit(int64_t vnc, nrta_xu_t xu, int queue, const struct nrt_job *job,
			    bool wait, nrta_seq_t *seq);
/*
 * What has begun is finished, the rest ends with NRT_CLOSED.  Before the life lock is
 * taken for writing: a function that is called back may use the runtime.
 */
void nrt_queues_stop(void);
/* Under the life lock for writing, all threads have ended. */
void nrt_queues_close(void);
/* In a child: the threads are the parent's, and what they hold; this one is no worker. */
void nrt_queues_forget(void);

#endif

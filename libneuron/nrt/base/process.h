/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The state of the process, and who may come in. */
#ifndef NRT_PROCESS_H
#define NRT_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>

#include <neuron/neuron.h>
#include <nrt/nrt.h>

#include "../../common/util.h"
#include "env.h"

#define NRT_MAX_INFLIGHT 63u		/* uapi/FACTS.md 11 */

/*
 * The life of the runtime: UNINITIALIZED, READY after nrt_init(), CLOSING from the first
 * moment of nrt_close() on, CLOSED, READY again.  nrt_init() and nrt_close() exclude each
 * other for as long as they take.
 *
 * A call that needs the runtime is between nrt_enter() and nrt_leave(), with the life
 * lock held for reading.  nrt_enter() looks at the state before it waits for the lock: as
 * soon as the runtime is CLOSING, calls are turned away, and threads that go on calling
 * do not keep nrt_close() from the lock, which it takes for writing to wait for those
 * who are inside.
 *
 * Threads of queues, the workers, do not hold the life lock: nrt_close() ends them before
 * it takes it.  So the functions that they call back may use the runtime, to its last
 * moment, but nothing there may wait for a worker, which could be this one, or one that
 * waits for this one: nrt_close() does nothing, draining a queue is NRT_INVALID, a full
 * one NRT_QUEUE_FULL, and waiting for an output ends when the runtime is CLOSING.
 *
 * A child of fork() starts with UNINITIALIZED, and closes what it inherited of devices and
 * of the claim on cores.  It has to know all of it: descriptors are opened and closed under
 * the process lock, together with the lists that name them, and fork() takes that lock.
 * Locks that fork() does not take are made anew in the child, and what they protect is
 * forgotten.
 */
enum nrt_state {
	NRT_STATE_UNINITIALIZED = 0,
	NRT_STATE_READY,
	NRT_STATE_CLOSING,
	NRT_STATE_CLOSED,
};

/* A logical core of this process. */
struct nrt_vnc {
	struct neuron_device *device;
	struct neuron_core *core;
	uint32_t nc;		/* first physical core */
	uint32_t index;		/* logical core of the device */
	uint32_t nr_models;	/* process lock */
};

struct nrt_process {
	pthread_rwlock_t life;
	_Atomic(enum nrt_state) state;
	struct neuron_device **devices;		/* these and the claim change under the lock */
	size_t nr_devices;
	struct nrt_vnc *vncs;
	uint32_t nr_vncs;
	struct neuron_claim *claim;	/* on the cores, or NULL */
	int timeout_ms;		/* of an execution, -1 none */
	bool verify_hash;
	uint64_t max_unpacked;	/* bytes of an archive, 0 default */
	bool short_constants;
	bool map_hbm;
	bool contiguous;	/* scratchpad */
	bool oom_table;
	size_t memlog;		/* entries */
	uint32_t lnc;		/* physical cores of a logical one */
	bool implicit_async;	/* nrt_execute() queues once a callback is registered */
	uint32_t exec_depth;	/* executions of a core that may wait */
	struct nrt_env env;
	_Atomic uint32_t inits;	/* so far: who waits outside of life sees a new one by it */

	pthread_mutex_t lock;	/* the lists; libneuron/README.md has the order */
	struct nrt_model *models;
	struct nrt_storage *storages;
	uint32_t next_id;
	_Atomic uint64_t executions;	/* so far */
};

extern struct nrt_process nrt_process;

/* NRT_SUCCESS and the runtime stays until nrt_leave(), or why not. */
NRT_STATUS nrt_enter(void);
/* NRT_SUCCESS if it is READY; for those who wait, and do not stay inside meanwhile. */
NRT_STATUS nrt_ready(void);
void nrt_leave(void);

static inline void nrt_leave_entered(const NRT_STATUS *entered)
{
	if (*entered == NRT_SUCCESS)
		nrt_leave();
}

/* Behind the declarations: the runtime stays until the function returns, or it returns why not. */
#define NRT_ENTER() \
	NRT_STATUS entered_ __attribute__((cleanup(nrt_leave_entered))) = nrt_enter(); \
	if (entered_ != NRT_SUCCESS) \
		return entered_

/* The calling thread is one of a queue, in a function that it calls back. */
bool nrt_on_worker(void);
void nrt_set_worker(bool on);
NRT_STATUS nrt_vnc_get(int64_t vnc, struct nrt_vnc **out);

/* For a 0 or -errno of libneuron. */
NRT_STATUS nrt_status_of(int ret);

#endif

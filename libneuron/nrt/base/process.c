// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who may come in (process.h). */
#include "process.h"

struct nrt_process nrt_process = {
	.life = PTHREAD_RWLOCK_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static _Thread_local bool on_worker;

bool nrt_on_worker(void)
{
	return on_worker;
}

void nrt_set_worker(bool on)
{
	on_worker = on;
}

NRT_STATUS nrt_ready(void)
{
	switch (atomic_load(&nrt_process.state)) {
	case NRT_STATE_READY: return NRT_SUCCESS;
	case NRT_STATE_UNINITIALIZED: return NRT_UNINITIALIZED;
	default: return NRT_CLOSED;
	}
}

static NRT_STATUS may_enter(void)
{
	if (atomic_load(&nrt_process.state) == NRT_STATE_CLOSING && on_worker)
		return NRT_SUCCESS;
	return nrt_ready();
}

NRT_STATUS nrt_enter(void)
{
	NRT_STATUS status = may_enter();

	if (status != NRT_SUCCESS)
		return status;
	pthread_rwlock_rdlock(&nrt_process.life);
	status = may_enter();
	if (status != NRT_SUCCESS)
		pthread_rwlock_unlock(&nrt_process.life);
	return status;
}

void nrt_leave(void)
{
	pthread_rwlock_unlock(&nrt_process.life);
}

NRT_STATUS nrt_vnc_get(int64_t vnc, struct nrt_vnc **out)
{
	if (vnc < 0 || vnc >= nrt_process.nr_vncs)
		return NRT_INVALID;
	*out = &nrt_process.vncs[vnc];
	return NRT_SUCCESS;
}

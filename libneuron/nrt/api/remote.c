// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sending tensors to other hosts: that is not there, and every function says so. */
#include <nrt/nrt_async_sendrecv.h>

#include "../base/log.h"
#include "../base/process.h"

/* Whatever these functions are given, they say the same. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* One line for each call: who wonders why finds out where. */
static NRT_STATUS nothing(const char *func, NRT_STATUS status)
{
	NRT_ENTER();
	LOG_AS(ENC, ERROR, func, "tensors are not sent from rank to rank: see nrta_cc_schedule()");
	return status;
}

static NRT_STATUS limit(int *number)
{
	if (!number)
		return NRT_INVALID;
	*number = 0;
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_async_sendrecv_get_max_num_communicators_per_lnc(int *num)
{
	return limit(num);
}

NEURON_EXPORT NRT_STATUS nrt_async_sendrecv_get_max_num_pending_request(int *num)
{
	return limit(num);
}

NEURON_EXPORT NRT_STATUS nrt_async_sendrecv_init(int lnc)
{
	return nothing(__func__, NRT_FAILURE);
}

NEURON_EXPORT NRT_STATUS nrt_async_sendrecv_close(int lnc)
{
	return nothing(__func__, NRT_FAILURE);
}

NEURON_EXPORT NRT_STATUS nrt_async_sendrecv_flush(int lnc)
{
	return nothing(__func__, NRT_FAILURE);
}

/* The limit is 0 communicators. */
static NRT_STATUS no_communicator(const char *func, const char *peer_ip,
				  nrt_async_sendrecv_comm_t **comm)
{
	return nothing(func, peer_ip && comm ? NRT_RESOURCE : NRT_INVALID);
}

NEURON_EXPORT NRT_STATUS nrt_async_sendrecv_connect(const char *peer_ip, int peer_lnc, int lnc,
						    nrt_async_sendrecv_comm_t **comm)
{
	return no_communicator(__func__, peer_ip, comm);
}

NEURON_EXPORT NRT_STATUS nrt_async_sendrecv_accept(const char *peer_ip, int peer_lnc, int lnc,
						   nrt_async_sendrecv_comm_t **comm)
{
	return no_communicator(__func__, peer_ip, comm);
}

/* Whatever these get is no handle. */
NEURON_EXPORT NRT_STATUS nrt_async_sendrecv_test_comm(nrt_async_sendrecv_comm_t *comm, bool *done)
{
	return nothing(__func__, NRT_INVALID_HANDLE);
}

NEURON_EXPORT NRT_STATUS nrt_async_sendrecv_send_tensor(nrt_tensor_t *tensor, size_t offset,
							size_t length, nrt_async_sendrecv_comm_t *comm,
							nrt_async_sendrecv_request_t **request)
{
	return nothing(__func__, NRT_INVALID_HANDLE);
}

NEURON_EXPORT NRT_STATUS nrt_async_sendrecv_recv_tensor(nrt_tensor_t *tensor, size_t offset,
							size_t length, nrt_async_sendrecv_comm_t *comm,
							nrt_async_sendrecv_request_t **request)
{
	return nothing(__func__, NRT_INVALID_HANDLE);
}

NEURON_EXPORT NRT_STATUS nrt_async_sendrecv_test_request(nrt_async_sendrecv_request_t *request,
							 bool *done, size_t *size)
{
	return nothing(__func__, NRT_INVALID_HANDLE);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * @file nrt_async_sendrecv.h Tensors to and from other hosts.
 *
 * This library has no network: 0 communicators and 0 pending requests are possible, and
 * every function but those that tell so fails, with a line in the log (component ENC).
 */
#ifndef NRT_NRT_ASYNC_SENDRECV_H
#define NRT_NRT_ASYNC_SENDRECV_H

#include "nrt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nrt_async_sendrecv_comm nrt_async_sendrecv_comm_t;
typedef struct nrt_async_sendrecv_request nrt_async_sendrecv_request_t;

/** @brief 0; callable at any time. @return NRT_SUCCESS, NRT_INVALID for NULL */
NRT_STATUS nrt_async_sendrecv_get_max_num_communicators_per_lnc(int *num);
NRT_STATUS nrt_async_sendrecv_get_max_num_pending_request(int *num);

/** @return NRT_FAILURE */
NRT_STATUS nrt_async_sendrecv_init(int lnc);
NRT_STATUS nrt_async_sendrecv_close(int lnc);
NRT_STATUS nrt_async_sendrecv_flush(int lnc);

/** @return NRT_RESOURCE more communicators than there can be, NRT_INVALID */
NRT_STATUS nrt_async_sendrecv_connect(const char *peer_ip, int peer_lnc, int lnc,
				      nrt_async_sendrecv_comm_t **comm);
NRT_STATUS nrt_async_sendrecv_accept(const char *peer_ip, int peer_lnc, int lnc,
				     nrt_async_sendrecv_comm_t **comm);

/** @return NRT_INVALID_HANDLE */
NRT_STATUS nrt_async_sendrecv_test_comm(nrt_async_sendrecv_comm_t *comm, bool *done);
NRT_STATUS nrt_async_sendrecv_send_tensor(nrt_tensor_t *tensor, size_t offset, size_t length,
					  nrt_async_sendrecv_comm_t *comm,
					  nrt_async_sendrecv_request_t **request);
NRT_STATUS nrt_async_sendrecv_recv_tensor(nrt_tensor_t *tensor, size_t offset, size_t length,
					  nrt_async_sendrecv_comm_t *comm,
					  nrt_async_sendrecv_request_t **request);
NRT_STATUS nrt_async_sendrecv_test_request(nrt_async_sendrecv_request_t *request, bool *done,
					   size_t *size);

#ifdef __cplusplus
}
#endif

#endif

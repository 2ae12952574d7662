// SPDX-License-Identifier: LGPL-2.1-or-later
/* Debug streams: no program here shows a tensor, and connecting says so. */
#include <nrt/ndebug_stream.h>

#include "../base/log.h"
#include "../base/process.h"

NEURON_EXPORT NRT_STATUS nrt_debug_client_connect(int logical_nc_idx, int *stream_fd)
{
	struct nrt_vnc *v;

	NRT_ENTER();
	if (!stream_fd || nrt_vnc_get(logical_nc_idx, &v) != NRT_SUCCESS)
		return NRT_INVALID;
	LOG(NRT, ERROR, "core %d: no instruction of its programs shows a tensor", logical_nc_idx);
	return NRT_FAILURE;
}

NEURON_EXPORT void nrt_debug_client_connect_close(int stream_fd)
{
	(void)stream_fd;
}

/* Whatever this gets is no stream. */
NEURON_EXPORT NRT_STATUS nrt_debug_client_read_one_event(int stream_fd,
							 ndebug_stream_event_header_t *header,
							 void **payload)
{
	(void)stream_fd;
	(void)header;
	(void)payload;
	NRT_ENTER();
	return NRT_INVALID;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory of tensors for other devices, by its address for the CPU. */
#include <errno.h>

#include "../../../uapi/neuron_ioctl.h"
#include "internal.h"
#include "../../src/device/sys.h"

#define NRT_PAGE	4096u

NRT_EXPORT NRT_STATUS nrt_get_dmabuf_fd_v2(uint64_t va, uint64_t size, int *fd, uint64_t *offset)
{
	int32_t out = -1;
	struct neuron_ioctl_dmabuf_fd d = {
		.va = va - va % NRT_PAGE, .size = size + va % NRT_PAGE, .fd = &out,
	};
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	if (!fd || !offset || !size || d.size < size) {
		status = NRT_INVALID;
	} else if (neuron_sys_ioctl(neuron_device_fd(nrt_process.devices[0]),
				    NEURON_IOCTL_DMABUF_FD, &d)) {
		/* NRT_RESOURCE would be taken for the end; else there are other ways. */
		status = errno == EINVAL || errno == EOVERFLOW ? NRT_INVALID : NRT_FAILURE;
	} else {
		*fd = out;
		*offset = va % NRT_PAGE;
	}
	nrt_leave();
	return status;
}

NRT_EXPORT NRT_STATUS nrt_get_dmabuf_fd(uint64_t va, uint64_t size, int *fd)
{
	uint64_t offset;

	/* The caller would not know where its bytes begin. */
	if (va % NRT_PAGE)
		return NRT_INVALID;
	return nrt_get_dmabuf_fd_v2(va, size, fd, &offset);
}

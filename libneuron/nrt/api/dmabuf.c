// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory of tensors for other devices, by its address for the CPU. */
#include <errno.h>

#include "../base/process.h"

NEURON_EXPORT NRT_STATUS nrt_get_dmabuf_fd_v2(uint64_t va, uint64_t size, int *fd, uint64_t *offset)
{
	uint64_t before = va % host_page();
	NRT_STATUS status = NRT_SUCCESS;
	int ret;

	NRT_ENTER();
	if (!fd || !offset || !size || size > UINT64_MAX - before) {
		status = NRT_INVALID;
	} else {
		ret = neuron_mem_export_range(nrt_process.devices[0], va - before, size + before, fd);
		/* NRT_RESOURCE would be taken for the end; else there are other ways. */
		if (ret)
			status = ret == -EINVAL || ret == -EOVERFLOW ? NRT_INVALID : NRT_FAILURE;
		else
			*offset = before;
	}
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_get_dmabuf_fd(uint64_t va, uint64_t size, int *fd)
{
	uint64_t offset;

	/* The caller would not know where its bytes begin: as if there were none. */
	return nrt_get_dmabuf_fd_v2(va, va % host_page() ? 0 : size, fd, &offset);
}

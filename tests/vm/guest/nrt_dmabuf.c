// SPDX-License-Identifier: GPL-2.0-only
/* Tensors as dma-bufs through libnrt. */
#include <sys/mman.h>

#include <nrt/nrt.h>

#include "check.h"

#define SIZE	(256u << 10)

static void exported(nrt_tensor_placement_t placement, const char *what)
{
	static uint8_t data[SIZE];
	nrt_tensor_t *tensor = NULL;
	uint64_t va, offset = 9;
	uint8_t *p;
	int fd = -1;
	uint32_t i;

	for (i = 0; i < SIZE; i++)
		data[i] = i * 5 + placement;
	CHECK(nrt_tensor_allocate(placement, 0, SIZE, "t", &tensor) == NRT_SUCCESS &&
	      nrt_tensor_write(tensor, data, 0, SIZE) == NRT_SUCCESS, "%s: tensor", what);
	va = (uintptr_t)nrt_tensor_get_va(tensor);
	CHECK(va, "%s: its address", what);
	CHECK(nrt_get_dmabuf_fd(va, SIZE, &fd) == NRT_SUCCESS && fd >= 0, "%s: export", what);
	p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED && !memcmp(p, data, SIZE), "%s: what was written", what);
	munmap(p, SIZE);
	close(fd);
	fd = -1;
	CHECK(nrt_get_dmabuf_fd(va + 1, 1, &fd) == NRT_INVALID && nrt_get_dmabuf_fd(va, 0, &fd) ==
	      NRT_INVALID && nrt_get_dmabuf_fd(va, SIZE + 1, &fd) == NRT_INVALID &&
	      nrt_get_dmabuf_fd(va, ~0ull, &fd) == NRT_INVALID &&
	      nrt_get_dmabuf_fd(va, SIZE, NULL) == NRT_INVALID && fd == -1, "%s: bad requests", what);
	CHECK(nrt_get_dmabuf_fd_v2(va + PAGE + 100, 5, &fd, &offset) == NRT_SUCCESS && offset == 100,
	      "%s: from any address", what);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED && !memcmp(p + offset, data + PAGE + 100, 5), "%s: those bytes", what);
	nrt_tensor_free(&tensor);
	CHECK(!memcmp(p, data + PAGE, PAGE), "%s: they outlive the tensor", what);
	munmap(p, PAGE);
	close(fd);
}

int main(void)
{
	int fd = -1;

	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	CHECK(nrt_get_dmabuf_fd(PAGE, PAGE, &fd) != NRT_SUCCESS, "not before nrt_init()");
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS, "nrt_init()");
	exported(NRT_TENSOR_PLACEMENT_DEVICE, "device");
	exported(NRT_TENSOR_PLACEMENT_HOST, "host");
	CHECK(nrt_get_dmabuf_fd((uintptr_t)&fd / PAGE * PAGE, PAGE, &fd) == NRT_INVALID,
	      "memory of the process");
	nrt_close();
	return failed != 0;
}

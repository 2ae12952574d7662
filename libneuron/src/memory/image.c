// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Images of device memory, a piece at a time. What is zero takes no host memory and is not
 * written back, because new device memory reads as zero.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

#define PIECE (1ull << 20)

struct mem_image {
	uint64_t bytes;
	uint64_t nr;
	void *piece[];		/* NULL: zero */
};

static uint64_t piece_bytes(const struct mem_image *image, uint64_t i)
{
	return MIN(PIECE, image->bytes - i * PIECE);
}

int mem_transfer(struct neuron_mem *mem, uint64_t offset, void *buffer, uint64_t bytes, bool to_mem)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = mem->handle,
		.buffer = buffer,
		.size = bytes,
		.offset = offset,
		.copy_to_mem_handle = to_mem,
	};

	return bytes ? device_ioctl(mem->device, NEURON_IOCTL_MEM_BUF_COPY64, &c) : 0;
}

static bool is_zero(const char *bytes, uint64_t n)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, n - 1);
}

int mem_image_take(struct neuron_mem *mem, struct mem_image **image)
{
	uint64_t bytes = mem->bytes, nr = (bytes + PIECE - 1) / PIECE;
	struct mem_image *m = calloc(1, sizeof(*m) + nr * sizeof(m->piece[0]));
	char *staging = malloc(MIN(bytes, PIECE));
	int ret = m && staging ? 0 : -ENOMEM;

	if (m)
		m->bytes = bytes;
	for (uint64_t i = 0; i < nr && !ret; i++) {
		uint64_t n = piece_bytes(m, i);

		ret = mem_transfer(mem, i * PIECE, staging, n, false);
		if (!ret && !is_zero(staging, n)) {
			m->piece[i] = malloc(n);
			ret = m->piece[i] ? 0 : -ENOMEM;
			if (!ret)
				memcpy(m->piece[i], staging, n);
		}
		m->nr = i + 1;
	}
	free(staging);
	if (ret) {
		mem_image_free(m);
		return ret;
	}
	*image = m;
	return 0;
}

int mem_image_put(const struct mem_image *image, struct neuron_mem *mem)
{
	int ret = 0;

	for (uint64_t i = 0; i < image->nr && !ret; i++)
		if (image->piece[i])
			ret = mem_transfer(mem, i * PIECE, image->piece[i],
					   piece_bytes(image, i), true);
	return ret;
}

void mem_image_free(struct mem_image *image)
{
	if (!image)
		return;
	for (uint64_t i = 0; i < image->nr; i++)
		free(image->piece[i]);
	free(image);
}

void offload_count_out(struct neuron_device *device, uint64_t bytes)
{
	atomic_fetch_add(&device->offload.now, bytes);
	atomic_fetch_add(&device->offload.out_bytes, bytes);
	atomic_fetch_add(&device->offload.out, 1);
}

void offload_count_in(struct neuron_device *device, uint64_t bytes)
{
	atomic_fetch_sub(&device->offload.now, bytes);
	atomic_fetch_add(&device->offload.in_bytes, bytes);
	atomic_fetch_add(&device->offload.in, 1);
}

void offload_count_gone(struct neuron_device *device, uint64_t bytes)
{
	atomic_fetch_sub(&device->offload.now, bytes);
}

void offload_count_wait(struct neuron_device *device, uint64_t nanoseconds)
{
	atomic_fetch_add(&device->offload.wait_ns, nanoseconds);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An allocation: device memory, or host memory that the device reaches. */
#ifndef NEURON_LIB_MEM_H
#define NEURON_LIB_MEM_H

#include "../device/device.h"

struct neuron_mem {
	struct neuron_device *device;
	uint64_t handle;
	_Atomic uint64_t address;	/* of movable memory: 0 but while it is pinned */
	uint64_t mmap_offset;
	bool movable;
	unsigned int pins;	/* of movable memory; the driver knows of one */
	_Atomic uint64_t bytes;	/* asked for */
	pthread_mutex_t lock;	/* growing, mapping and pinning */
	_Atomic(void *) va;
	uint64_t mapped;	/* bytes at @va */
	uint64_t counted;	/* bytes, by count.c */
	enum neuron_mem_category category;
	uint32_t hbm;
	uint32_t nc;
	uint32_t flags;		/* as it was asked for, like the next two: to ask again */
	uint32_t owner;
	uint64_t align;
	struct mem_image *image;	/* of movable memory that is not on the device; NULL: it is */
	unsigned int uses;	/* of movable memory: copies from or to it that go on */
	bool exported;		/* others may have it */
};

static inline bool mem_in_range(const struct neuron_mem *mem, uint64_t offset, uint64_t bytes)
{
	return offset <= mem->bytes && bytes <= mem->bytes - offset;
}

/* Host memory comes first, but for one. */
static inline bool category_host(enum neuron_mem_category category)
{
	return category < NEURON_MEM_OTHER || category == NEURON_MEM_HOST_RINGS;
}

/*
 * The allocation that a call of the driver has made besides others, as notification queues
 * do: @handle and @mmap_offset are the driver's, bytes, category, hbm and nc are filled in.
 * From here on it is one like any other.
 */
void mem_adopt(struct neuron_mem *mem, struct neuron_device *device, uint64_t handle,
	       uint64_t mmap_offset, uint64_t align);

/*
 * Take the memory of @mem from the device, or get it some again. What becomes of its contents is
 * the caller's affair, and that nobody uses it; on error nothing changes.
 */
void mem_give_up(struct neuron_mem *mem);
int mem_get_again(struct neuron_mem *mem, struct neuron_mem_failure *failure);

/* @mem has so many bytes now; under its lock, or when nobody else knows it. */
void mem_count(struct neuron_mem *mem, uint64_t bytes);

enum memlog_op {
	MEMLOG_ALLOC,
	MEMLOG_FREE,
	MEMLOG_GROW,
	MEMLOG_SHRINK,
};

/* Host memory is not logged; without a log this does nothing.  @reason: enum
 * neuron_mem_reason of one that failed, 0 */
void memlog_add(struct neuron_device *device, enum memlog_op op, const struct neuron_mem *mem,
		uint64_t bytes, uint64_t align, uint32_t reason);

/* Word 0 of a DMA descriptor (uapi/FACTS.md 5). */
#define DESC_RING_ID_1		(1u << 24)
#define DESC_FIRST		(1u << 26)
#define DESC_LAST		(1u << 27)
#define DESC_BARRIER		(1u << 30)	/* v1 */
/* Word 1 of the source's. */
#define META_WRITE_BARRIER	(1u << 26)

#endif

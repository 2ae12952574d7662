/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An allocation: device memory, or host memory that the device reaches. */
#ifndef NEURON_LIB_MEM_H
#define NEURON_LIB_MEM_H

#include "../device/device.h"

struct neuron_mem {
	struct neuron_device *device;
	uint64_t handle;
	_Atomic uint64_t address;	/* of movable memory: 0 but while it is pinned; without
					   memory: where it is to be, or 0 */
	uint64_t mmap_offset;
	bool movable;
	unsigned int pins;	/* of movable memory; the driver knows of one */
	_Atomic uint64_t bytes;	/* asked for */
	pthread_mutex_t lock;	/* growing, mapping and pinning */
	_Atomic(void *) va;
	uint64_t mapped;	/* bytes at @va */
	struct mapping *mapping;	/* that the device knows of @va */
	uint64_t counted;	/* bytes, by count.c */
	enum neuron_mem_category category;
	uint32_t hbm;
	uint32_t nc;
	uint32_t flags;		/* as it is asked for, like the next two */
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

/* What it takes of the device: whole pages. */
static inline uint64_t mem_pages(const struct neuron_mem *mem)
{
	return round_up(mem->bytes, host_page());
}

/* Host memory comes first, but for one. */
static inline bool category_host(enum neuron_mem_category category)
{
	return category < NEURON_MEM_OTHER || category == NEURON_MEM_HOST_RINGS;
}

/* What is to have memory, or NULL; mem_drop() is for what has none. */
struct neuron_mem *mem_new(struct neuron_device *device, uint64_t bytes,
			   const struct neuron_mem_opts *opts);
void mem_drop(struct neuron_mem *mem);

/* There was no host memory, as @failure is told if it is not NULL: -ENOMEM. */
int mem_no_host(uint64_t bytes, struct neuron_mem_failure *failure);

/*
 * Memory for several, of one device, that have none: as if each were asked for in turn, in as
 * few calls as the driver has for it. @nr: those that have it; on error the next one has not,
 * and @failure, which may be NULL, is about it.
 */
int mem_obtain(struct neuron_mem *const *mem, size_t n, size_t *nr,
	       struct neuron_mem_failure *failure);
/*
 * For as many of them, from the first one on, as there is memory now: none is made free for them,
 * and a refusal is told to nobody.
 */
size_t mem_obtain_free(struct neuron_mem *const *mem, size_t n);

/*
 * The memory of @mem is one that a call of the driver has made, maybe besides others, as
 * notification queues do. From here on it is one like any other.
 */
void mem_adopt(struct neuron_mem *mem, uint64_t handle, uint64_t address, uint64_t mmap_offset);

/*
 * Take the memory of several, of one device, from it, the last one first; mem_obtain() gets them
 * some again. What becomes of its contents is the caller's affair, and that nobody uses it.
 */
void mem_give_up(struct neuron_mem *const *mem, size_t n);
/* neuron_mem_free() of several, of one device. */
void mem_free_all(struct neuron_mem *const *mem, size_t n);

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

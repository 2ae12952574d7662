/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tensors: views of storage. */
#ifndef NRT_TENSOR_H
#define NRT_TENSOR_H

#include "storage.h"

struct nrt_tensor {
	char *name;
	struct nrt_storage *storage;	/* NULL: empty */
	uint64_t offset;
	uint64_t size;
	struct nrt_completions *completions;
};

/* It is one, and was not freed. */
bool nrt_tensor_valid(const nrt_tensor_t *tensor);

/* Not empty, and not left over from before nrt_close(). */
static inline bool nrt_tensor_stored(const nrt_tensor_t *tensor)
{
	return tensor->storage && (tensor->storage->mem || tensor->storage->user);
}

NRT_STATUS nrt_tensor_check(const char *func, const nrt_tensor_t *t, uint64_t offset,
			    uint64_t size);
NRT_STATUS nrt_tensor_transfer(const char *func, const nrt_tensor_t *t, void *buf,
			       uint64_t offset, uint64_t size, bool write);
NRT_STATUS nrt_tensor_move(const char *func, const nrt_tensor_t *src, uint64_t src_offset,
			   nrt_tensor_t *dst, uint64_t dst_offset, uint64_t size);
/* Another one of the same storage; NULL: no memory. */
nrt_tensor_t *nrt_tensor_hold(const nrt_tensor_t *t);
void nrt_tensor_drop(nrt_tensor_t *t);
/* An execution has written to it. */
void nrt_tensor_written(nrt_tensor_t *t);
/* In a child: another thread of the parent may have had the lock. */
void nrt_completions_forget(void);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What tensors are views of. */
#ifndef NRT_STORAGE_H
#define NRT_STORAGE_H

#include "../base/process.h"

enum nrt_storage_kind {
	NRT_STORAGE_DEVICE,
	NRT_STORAGE_HOST,	/* memory of the driver that the device reaches */
	NRT_STORAGE_USER,	/* plain memory of the process */
};

struct nrt_storage {
	atomic_uint refs;
	enum nrt_storage_kind kind;
	struct neuron_device *device;	/* not USER; NULL after nrt_close() */
	struct neuron_mem *mem;		/* not USER; NULL after nrt_close() */
	_Atomic(void *) va;		/* that the program was told, not USER */
	void *user;
	bool owned;			/* free @user */
	uint64_t size;
	uint32_t hbm;
	uint32_t vnc;
	struct nrt_storage *next, **pprev;	/* process lock */
};

/* A reference, and none yet.  NULL: no memory. */
struct nrt_storage *nrt_storage_new(enum nrt_storage_kind kind, uint64_t size);
/* Of memory that is no tensor's, at @va for others of this process; takes @mem.  NULL: no memory. */
struct nrt_storage *nrt_storage_of(enum nrt_storage_kind kind, struct neuron_device *device,
				   struct neuron_mem *mem, void *va);
/* Takes another reference; NULL is allowed. */
struct nrt_storage *nrt_storage_get(struct nrt_storage *s);
/* Allocates memory for a core, and logs the report if there is none.  0 or -errno. */
int nrt_core_alloc(const struct nrt_vnc *vnc, enum neuron_mem_category category, uint32_t flags,
		   uint64_t bytes, struct neuron_mem **mem);
/* A virtual tensor gets zeroed memory of the process. */
NRT_STATUS nrt_storage_alloc(struct nrt_vnc *vnc, nrt_tensor_placement_t placement, size_t size,
			     struct nrt_storage **out);
/* What has these bytes at an address that the program was told, to be put; NULL: none. */
struct nrt_storage *nrt_storage_at(const void *va, uint64_t size);
void nrt_storage_put(struct nrt_storage *s);
/* Give all memory back; tensors stay, without storage. */
void nrt_storages_close(void);
/* The same in a child, where the memory is the parent's. */
void nrt_storages_forget(void);

#endif

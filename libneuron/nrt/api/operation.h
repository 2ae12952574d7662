/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An operation, and what those who do it within a host and between hosts both need. */
#ifndef NRT_OPERATION_H
#define NRT_OPERATION_H

#include <nrt/nrt_async.h>

#include "../base/process.h"
#include "../cc/comm.h"
#include "../object/tensor.h"

struct nrt_cc_context {
	struct nrt_cc_context *next;	/* contexts_lock */
	uint32_t vnc;
	uint32_t rank;			/* in @ranks */
	uint32_t nr;
	uint32_t ranks[WORLD_MAX_RANKS];
	nrt_dtype_t dtype;
	nrt_op_type_t op;
	nrt_cc_op_type_t cc_op;
	bool across;			/* not all on this host */
	bool through_host;		/* not all of this host on one device */
	size_t nr_tensors;
	nrt_tensor_t **in;
	nrt_tensor_t **out;
};

/* The kinds of exchanges: those who mean different things must not meet. */
enum kind {
	KIND_BARRIER = 1,
	KIND_ALL_GATHER,
	KIND_OPERATION,
	KIND_DONE,
	KIND_UNLIKE,
};

struct params {
	uint32_t kind;
	uint32_t dtype;
	uint32_t op;
	uint32_t cc_op;
	uint64_t size;
	uint32_t index;
	uint32_t nr_tensors;
};

_Static_assert(sizeof(struct params) <= COMM_DATA, "fits");

/* What every exchange has. */
#define EXCHANGE(func_, nr_, params_) \
	.func = (func_), .nr = (nr_), .params = &(params_), .params_size = sizeof(params_)

/* Where the input of a rank is, or what was made of several. */
struct source {
	struct neuron_mem *mem;
	uint64_t offset;
	nrt_dtype_t dtype;
	bool own;			/* to be freed */
};

/* Memory of the host for others, which is to be sealed; -1: none. */
int cc_make_memfd(void);
/* It can be handed out. */
bool cc_seal(int fd);
/* What another process says is one: reading can neither wait nor fault. */
bool cc_sealed(int fd, uint64_t size);
bool cc_read_all(int fd, char *bytes, size_t size);

uint32_t cc_element_size(nrt_dtype_t dtype);
/*
 * The type of what some of the ranks are together. For a sum that is fp32 if the operation's type
 * does not reach as far: a part of the ranks may have a sum that the type cannot hold, although
 * that of all fits.
 */
nrt_dtype_t cc_partial_type(const struct nrt_cc_context *c);
struct params cc_params_of(const struct nrt_cc_context *c, enum kind kind, size_t i);
bool cc_overlap(const nrt_tensor_t *a, const nrt_tensor_t *b);
/* On the core's device.  0 or -errno. */
int cc_alloc_staging(const struct nrt_cc_context *c, uint64_t bytes, struct neuron_mem **mem);
/* Our input as others can have it: -1 and the reason. */
int cc_offer(const struct nrt_cc_context *c, const nrt_tensor_t *t, NRT_STATUS *status);
/* The input of another rank, from what it offers. */
NRT_STATUS cc_fetch(const struct nrt_cc_context *c, int fd, uint64_t offset, uint64_t size,
		    struct source *s);
void cc_put_sources(struct source *sources, uint32_t nr);
/* @elements of @nr sources, from element @at of each on, into @to, in its type. */
NRT_STATUS cc_reduce(const struct nrt_cc_context *c, const struct source *sources, uint32_t nr,
		     uint64_t at, uint64_t elements, const struct source *to);

#endif

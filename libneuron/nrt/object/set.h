/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sets of tensors by name. */
#ifndef NRT_SET_H
#define NRT_SET_H

#include "tensor.h"

struct nrt_set_entry {
	char *name;
	nrt_tensor_t *tensor;
};

struct nrt_set {
	size_t nr;
	size_t max;
	struct nrt_set_entry *entries;
};

/* NULL: it is none, or was destroyed. */
struct nrt_set *nrt_set_of(const nrt_tensor_set_t *set);
/* By name; @hint is where it probably is. NULL: none. */
nrt_tensor_t *nrt_set_find(const struct nrt_set *set, const char *name, size_t hint);
/* A copy that holds its tensors. */
bool nrt_set_hold(const struct nrt_set *set, struct nrt_set **out);
void nrt_set_drop(struct nrt_set *set);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Categories of memory, and the counters by category. */
#ifndef NEURON_MEM_ACCOUNT_H
#define NEURON_MEM_ACCOUNT_H

#include <linux/types.h>

struct neuron_chunk;

u32 neuron_category(u32 type, bool host);
const char *neuron_category_name(u32 type);
void neuron_account(struct neuron_chunk *chunk, u64 bytes, u64 last, bool add);

#endif

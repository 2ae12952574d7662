/* SPDX-License-Identifier: GPL-2.0-only */
/* Why memory was refused, and the record of it. */
#ifndef NEURON_MEM_FAILURE_H
#define NEURON_MEM_FAILURE_H

#include <linux/types.h>

#include "../base/device.h"

struct neuron_chunk_request;
struct neuron_client;
struct neuron_failures;

/**
 * struct neuron_failure - why memory was refused; bytes
 * @reason: the cause
 * @total: of the HBM, like what follows; all 0 for host memory
 * @free: same
 * @largest_free: longest free run
 * @largest_aligned: longest free run with the requested alignment
 * @limit: the limit that was reached, or NEURON_NO_LIMIT
 * @used: by category
 */
struct neuron_failure {
	enum neuron_native_reason reason;
	u64 total;
	u64 free;
	u64 largest_free;
	u64 largest_aligned;
	u64 limit;
	u64 used[NEURON_NR_CATEGORIES];
};

/* Nothing was refused yet.  Field by field: memset() of so few bytes takes longer. */
static inline void neuron_failure_none(struct neuron_failure *why)
{
	why->reason = NEURON_NATIVE_REASON_NONE;
	why->total = 0;
	why->free = 0;
	why->largest_free = 0;
	why->largest_aligned = 0;
	why->limit = NEURON_NO_LIMIT;
	/* neuron_hbm_explain() fills the rest in. */
}

int neuron_failures_init(struct neuron_device *nd);
void neuron_failures_exit(struct neuron_failures *f);
void neuron_failures_bury(struct neuron_client *client);
void neuron_failure_record(struct neuron_client *client, const struct neuron_chunk_request *req,
			   const struct neuron_failure *why);

#endif

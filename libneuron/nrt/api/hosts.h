/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Collective operations of ranks that are on several hosts. */
#ifndef NRT_HOSTS_H
#define NRT_HOSTS_H

#include "operation.h"

/* Tensor @i of an operation. */
NRT_STATUS hosts_run(const struct nrt_cc_context *c, uint32_t channel, size_t i);
/*
 * All @count ranks meet, and get @size bytes of each; 0: they only meet.  NRT_COLL_PENDING:
 * all of them are on this host.
 */
NRT_STATUS hosts_gather(const char *func, uint32_t vnc, uint32_t count, enum kind kind,
			uint32_t size, const void *in, void *out);

#endif

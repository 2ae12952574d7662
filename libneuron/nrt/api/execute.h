/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Running models. */
#ifndef NRT_EXECUTE_H
#define NRT_EXECUTE_H

#include "../object/model.h"
#include "../object/set.h"

/* Under the life lock, or in a thread that ends before the runtime does. */
NRT_STATUS nrt_model_execute(struct nrt_model *m, const struct nrt_set *in,
			     const struct nrt_set *out, int repeat_count);
/* Takes the reference to @model.  @implicit: the registered function is told. */
NRT_STATUS nrt_async_execute(struct nrt_model *model, const struct nrt_set *in,
			     const struct nrt_set *out, int queue, bool implicit, NRT_STATUS *ret,
			     uint64_t *seq);
/* At nrt_close(), when all queues have ended; in a child. */
void nrt_execute_close(void);
void nrt_execute_forget(void);

#endif

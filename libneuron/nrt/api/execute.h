/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Running models. */
#ifndef NRT_EXECUTE_H
#define NRT_EXECUTE_H

#include "../object/model.h"
#include "../object/set.h"

/* Takes the reference to @model.  @implicit: the registered function is told. */
NRT_STATUS nrt_async_execute(struct nrt_model *model, const struct nrt_set *in,
			     const struct nrt_set *out, int queue, bool implicit, NRT_STATUS *ret,
			     uint64_t *seq);
/* At nrt_close(), when all queues have ended; in a child. */
void nrt_execute_close(void);
void nrt_execute_forget(void);

/* The device ended an execution with @status: keep what the environment asks for. */
void nrt_execution_failed(struct nrt_model *m, const struct nrt_set *in, NRT_STATUS status);
void nrt_failure_forget(void);

/* NRT_EXEC_COMPLETED_WITH_NUM_ERR and a line in the log: there is a NaN in an output. */
NRT_STATUS nrt_numeric_check(const struct nrt_model *m, const struct nrt_set *out);

#endif

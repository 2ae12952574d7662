/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is done about the result of an execution. */
#ifndef NRT_FAILURE_H
#define NRT_FAILURE_H

#include "../object/model.h"
#include "../object/set.h"

/* The device ended an execution with @status: keep what the environment asks for. */
void nrt_execution_failed(struct nrt_model *m, const struct nrt_set *in, NRT_STATUS status);
void nrt_failure_forget(void);

#endif

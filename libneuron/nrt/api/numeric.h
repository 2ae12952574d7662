/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looking for NaN in outputs. */
#ifndef NRT_NUMERIC_H
#define NRT_NUMERIC_H

#include "../object/model.h"
#include "../object/set.h"

/* NRT_EXEC_COMPLETED_WITH_NUM_ERR and a line in the log: there is a NaN in an output. */
NRT_STATUS nrt_numeric_check(const struct nrt_model *m, const struct nrt_set *out);

#endif

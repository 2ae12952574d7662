/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The memory report when an allocation fails. */
#ifndef NRT_REPORT_H
#define NRT_REPORT_H

#include <neuron/neuron.h>

/*
 * The lines of an allocation that failed, and the report; not under the process lock. A
 * neuron_refused_fn of a device, while what was taken so far is there.
 * @loading: a model that has some of its memory already, on the core of the failure; or NULL.
 */
void nrt_refused(void *device, const struct neuron_mem_failure *failure,
		 const struct neuron_report_model *loading);

#endif

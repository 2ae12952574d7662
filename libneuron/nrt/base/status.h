/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What libneuron returns, as the runtime says it. */
#ifndef NRT_BASE_STATUS_H
#define NRT_BASE_STATUS_H

#include <nrt/nrt.h>

/* For a 0 or -errno of libneuron. */
NRT_STATUS nrt_status_of(int ret);

#endif

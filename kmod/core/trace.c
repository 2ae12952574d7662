// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints of neuron.ko. */
#include "../base/neuron_hw.h"
#include "../mem/chunk.h"

#define CREATE_TRACE_POINTS
#include "../base/trace.h"

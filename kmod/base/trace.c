// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints of neuron.ko. */
#include "neuron.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

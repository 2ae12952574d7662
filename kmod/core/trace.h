/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints of system "neuron".  The names and fields are an interface:
 * tests/bench records allocation traces with them.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM neuron

#if !defined(NEURON_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define NEURON_TRACE_H

#include <linux/tracepoint.h>

#include "neuron.h"

DECLARE_EVENT_CLASS(neuron_chunk,
	TP_PROTO(u32 dev, const struct neuron_chunk *chunk, u64 align, u32 reason),
	TP_ARGS(dev, chunk, align, reason),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u8, host)
		__field(u8, hbm)
		__field(u8, core)
		__field(u8, category)
		__field(u64, addr)
		__field(u64, size)
		__field(u64, align)
		__field(u32, reason)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->host = chunk->host;
		__entry->hbm = chunk->hbm;
		__entry->core = chunk->core;
		__entry->category = chunk->category;
		__entry->addr = chunk->addr;
		__entry->size = chunk->size;
		__entry->align = align;
		__entry->reason = reason;
	),
	TP_printk("nd=%u host=%u hbm=%u nc=%u category=%u addr=%#llx size=%llu align=%llu reason=%u",
		  __entry->dev, __entry->host, __entry->hbm, __entry->core, __entry->category,
		  __entry->addr, __entry->size, __entry->align, __entry->reason)
);

/* A chunk was allocated. */
DEFINE_EVENT(neuron_chunk, neuron_alloc,
	TP_PROTO(u32 dev, const struct neuron_chunk *chunk, u64 align, u32 reason),
	TP_ARGS(dev, chunk, align, reason)
);

/* An allocation was refused; reason is enum neuron_native_reason. */
DEFINE_EVENT(neuron_chunk, neuron_alloc_fail,
	TP_PROTO(u32 dev, const struct neuron_chunk *chunk, u64 align, u32 reason),
	TP_ARGS(dev, chunk, align, reason)
);

/* The last user of a chunk is gone, its memory goes back. */
DEFINE_EVENT(neuron_chunk, neuron_free,
	TP_PROTO(u32 dev, const struct neuron_chunk *chunk, u64 align, u32 reason),
	TP_ARGS(dev, chunk, align, reason)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH core
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

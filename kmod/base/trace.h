/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints of system "neuron".  The names and fields are an interface, which
 * sysfs-docs/neuron-trace describes; tests/bench records allocation traces with
 * them.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM neuron

#if !defined(NEURON_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define NEURON_TRACE_H

#include <linux/tracepoint.h>

struct neuron_chunk;

#ifndef NEURON_TRACE_FAULTS
#define NEURON_TRACE_FAULTS
enum neuron_trace_fault {
	NEURON_FAULT_DMA = 1,		/* a queue stopped */
	NEURON_FAULT_TIMEOUT = 2,	/* a copy of the driver did not end in time */
	NEURON_FAULT_NOTICE = 3,	/* the device wrote to an error notification queue */
	NEURON_FAULT_EVENT = 16,	/* and enum neuron_event: the device reported it */
};
#endif

/* Of mem_alloc_category_t; numbers, because programs that read a trace know no enum of ours. */
#define neuron_trace_category(number) __print_symbolic(number,				\
	{ 0, "uncategorized" }, { 1, "dma_buffers" }, { 2, "tensors" },			\
	{ 3, "constants" }, { 4, "application_memory" }, { 5, "driver_memory" },	\
	{ 6, "notifications" }, { 7, "uncategorized" }, { 8, "model_code" },		\
	{ 9, "tensors" }, { 10, "constants" }, { 11, "model_shared_scratchpad" },	\
	{ 12, "runtime_memory" }, { 13, "driver_memory" }, { 14, "collectives" },	\
	{ 15, "nonshared_scratchpad" }, { 16, "notifications" }, { 17, "dma_rings" },	\
	{ 18, "dma_rings" }, { 19, "contiguous_scratchpad" })

/* Of enum neuron_native_reason. */
#define neuron_trace_reason(number) __print_symbolic(number,				\
	{ 0, "none" }, { 1, "full" }, { 2, "fragmented" }, { 3, "alignment" },		\
	{ 4, "capped" }, { 5, "host" })

/* Of enum NQ_TYPE. */
#define neuron_trace_nq_type(number) __print_symbolic(number,				\
	{ 0, "trace" }, { 1, "notify" }, { 2, "event" }, { 3, "error" },		\
	{ 4, "trace_dma" }, { 5, "throttle" })

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
	TP_printk("nd=%u host=%u hbm=%u nc=%u category=%s addr=%#llx size=%llu align=%llu reason=%s",
		  __entry->dev, __entry->host, __entry->hbm, __entry->core,
		  neuron_trace_category(__entry->category),
		  __entry->addr, __entry->size, __entry->align,
		  neuron_trace_reason(__entry->reason))
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

/* A chunk was moved or, with an error, it stays where it was. */
TRACE_EVENT(neuron_move,
	TP_PROTO(u32 dev, const struct neuron_chunk *chunk, u64 from, u64 to, int err),
	TP_ARGS(dev, chunk, from, to, err),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u8, hbm)
		__field(u8, core)
		__field(u8, category)
		__field(u64, from)
		__field(u64, to)
		__field(u64, size)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->hbm = chunk->hbm;
		__entry->core = chunk->core;
		__entry->category = chunk->category;
		__entry->from = from;
		__entry->to = to;
		__entry->size = chunk->size;
		__entry->err = err;
	),
	TP_printk("nd=%u hbm=%u nc=%u category=%s from=%#llx to=%#llx size=%llu err=%d",
		  __entry->dev, __entry->hbm, __entry->core,
		  neuron_trace_category(__entry->category),
		  __entry->from, __entry->to, __entry->size, __entry->err)
);

DECLARE_EVENT_CLASS(neuron_ring,
	TP_PROTO(u32 dev, u32 core, u32 eng, u32 queue, u32 tx, u32 rx),
	TP_ARGS(dev, core, eng, queue, tx, rx),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, core)
		__field(u32, eng)
		__field(u32, queue)
		__field(u32, tx)
		__field(u32, rx)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->core = core;
		__entry->eng = eng;
		__entry->queue = queue;
		__entry->tx = tx;
		__entry->rx = rx;
	),
	TP_printk("nd=%u nc=%u eng=%u queue=%u tx=%u rx=%u",
		  __entry->dev, __entry->core, __entry->eng, __entry->queue, __entry->tx,
		  __entry->rx)
);

/* Descriptors were given to a queue. */
DEFINE_EVENT(neuron_ring, neuron_ring_start,
	TP_PROTO(u32 dev, u32 core, u32 eng, u32 queue, u32 tx, u32 rx),
	TP_ARGS(dev, core, eng, queue, tx, rx)
);

/* The program acknowledged that many descriptors (DMA_ACK_COMPLETED). */
DEFINE_EVENT(neuron_ring, neuron_ring_ack,
	TP_PROTO(u32 dev, u32 core, u32 eng, u32 queue, u32 tx, u32 rx),
	TP_ARGS(dev, core, eng, queue, tx, rx)
);

/* A descriptor with the interrupt bit completed, or the queue stopped. */
TRACE_EVENT(neuron_ring_done,
	TP_PROTO(u32 dev, u32 core, u32 eng, u32 queue, u32 status),
	TP_ARGS(dev, core, eng, queue, status),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, core)
		__field(u32, eng)
		__field(u32, queue)
		__field(u32, status)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->core = core;
		__entry->eng = eng;
		__entry->queue = queue;
		__entry->status = status;
	),
	TP_printk("nd=%u nc=%u eng=%u queue=%u status=%s",
		  __entry->dev, __entry->core, __entry->eng, __entry->queue,
		  __print_symbolic(__entry->status, { NEURON_QUEUE_DISABLED, "disabled" },
				   { NEURON_QUEUE_ENABLED, "enabled" },
				   { NEURON_QUEUE_ABORTED, "aborted" }))
);

DECLARE_EVENT_CLASS(neuron_exec,
	TP_PROTO(u32 dev, u32 core, u32 tgid),
	TP_ARGS(dev, core, tgid),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, core)
		__field(u32, tgid)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->core = core;
		__entry->tgid = tgid;
	),
	TP_printk("nd=%u nc=%u tgid=%u", __entry->dev, __entry->core, __entry->tgid)
);

/* A program announced an execution: it entered the core's lock as a reader. */
DEFINE_EVENT(neuron_exec, neuron_exec_start,
	TP_PROTO(u32 dev, u32 core, u32 tgid),
	TP_ARGS(dev, core, tgid)
);

/* The execution ended: the program left the core's lock. */
DEFINE_EVENT(neuron_exec, neuron_exec_finish,
	TP_PROTO(u32 dev, u32 core, u32 tgid),
	TP_ARGS(dev, core, tgid)
);

/* The device appended to a notification queue: a run ended, or failed. */
TRACE_EVENT(neuron_notify,
	TP_PROTO(u32 dev, u32 core, u32 type, u32 engine),
	TP_ARGS(dev, core, type, engine),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, core)
		__field(u32, type)
		__field(u32, engine)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->core = core;
		__entry->type = type;
		__entry->engine = engine;
	),
	TP_printk("nd=%u nc=%u type=%s engine=%u", __entry->dev, __entry->core,
		  neuron_trace_nq_type(__entry->type), __entry->engine)
);

/* A core was reset: for a new owner, at the end of the last one, or on request. */
TRACE_EVENT(neuron_reset,
	TP_PROTO(u32 dev, u32 core, int err),
	TP_ARGS(dev, core, err),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, core)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->core = core;
		__entry->err = err;
	),
	TP_printk("nd=%u nc=%u err=%d", __entry->dev, __entry->core, __entry->err)
);

/* Something went wrong in the device; fields that do not apply are 0. */
TRACE_EVENT(neuron_fault,
	TP_PROTO(u32 dev, u32 core, u32 kind, u32 eng, u32 queue),
	TP_ARGS(dev, core, kind, eng, queue),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, core)
		__field(u32, kind)
		__field(u32, eng)
		__field(u32, queue)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->core = core;
		__entry->kind = kind;
		__entry->eng = eng;
		__entry->queue = queue;
	),
	TP_printk("nd=%u nc=%u kind=%s eng=%u queue=%u", __entry->dev, __entry->core,
		  __print_symbolic(__entry->kind, { NEURON_FAULT_DMA, "dma" },
				   { NEURON_FAULT_TIMEOUT, "timeout" },
				   { NEURON_FAULT_NOTICE, "notice" },
				   { NEURON_FAULT_EVENT + NEURON_EVENT_MEM_CORRECTED,
				     "mem_corrected" },
				   { NEURON_FAULT_EVENT + NEURON_EVENT_MEM_UNCORRECTED,
				     "mem_uncorrected" },
				   { NEURON_FAULT_EVENT + NEURON_EVENT_MEM_REPAIRABLE,
				     "mem_repairable" },
				   { NEURON_FAULT_EVENT + NEURON_EVENT_SRAM_CORRECTED,
				     "sram_corrected" },
				   { NEURON_FAULT_EVENT + NEURON_EVENT_SRAM_UNCORRECTED,
				     "sram_uncorrected" },
				   { NEURON_FAULT_EVENT + NEURON_EVENT_DMA_ABORT, "engine" }),
		  __entry->eng, __entry->queue)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH base
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

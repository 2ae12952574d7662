// SPDX-License-Identifier: LGPL-2.1-or-later
/* Computing with device memory. */
#include <errno.h>

#include "../../common/util.h"
#include "../device/opts.h"
#include <neuron/neff.h>
#include "compute_queue.h"
#include "core.h"

_Static_assert(NEURON_COMPUTE_MAX_SOURCES == NEURON_ISA_DMA_MAX_SOURCES &&
	       NEURON_COMPUTE_MAX_SOURCES == NEURON_NEFF_MAX_SOURCES, "sources of a packet");

/* For the first computation; most programs have none. */
static int make_queue(struct neuron_core *core)
{
	const struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.flags = core->contiguous ? NEURON_MEM_F_HIGH : 0,
		.hbm = core->hbm,
		.nc = core->nc,
	};

	struct compute_queue *queue;
	int ret = compute_queue_new(core->device, &opts, &queue);

	/* Reports look without the lock. */
	if (!ret)
		__atomic_store_n(&core->compute, queue, __ATOMIC_RELAXED);
	return ret;
}

NEURON_EXPORT uint64_t neuron_core_compute_rings(const struct neuron_core *core)
{
	return __atomic_load_n(&core->compute, __ATOMIC_RELAXED) ? COMPUTE_RINGS : 0;
}

static int run(struct neuron_core *core, struct transfer *t, int timeout_ms)
{
	int ret = core->compute ? 0 : make_queue(core);

	if (ret)
		return ret;
	ret = compute_queue_run(core->compute, t, timeout_ms);
	if (ret) {
		/* What it said of its end is not the next run's. */
		if (compute_queue_stop(core->compute))
			core->held = true;
		core->broken = true;
	}
	return ret;
}

static int check_operand(const struct neuron_core *core, const struct neuron_operand *o,
			 uint64_t elements, struct span *span)
{
	uint32_t size = neuron_neff_dtype_size(o->dtype);
	uint64_t bytes;

	if (!size || !o->mem || o->mem->device != core->device ||
	    __builtin_mul_overflow(elements, size, &bytes) || !bytes ||
	    o->offset > o->mem->bytes || bytes > o->mem->bytes - o->offset ||
	    !neuron_mem_address(o->mem))	/* it is movable, and not pinned */
		return -EINVAL;
	*span = (struct span){
		.base = neuron_mem_address(o->mem) + o->offset,
		.ndim = 1,
		.size = { bytes },
		.step = { 1 },
	};
	return 0;
}

NEURON_EXPORT int neuron_core_compute(struct neuron_core *core,
				      const struct neuron_compute *compute, int timeout_ms)
{
	static const enum neuron_neff_op ops[] = {
		[NEURON_COMPUTE_CAST] = NEURON_NEFF_OP_CAST,
		[NEURON_COMPUTE_ADD] = NEURON_NEFF_OP_ADD,
		[NEURON_COMPUTE_FMA] = NEURON_NEFF_OP_FMA,
		[NEURON_COMPUTE_MIN] = NEURON_NEFF_OP_MIN,
		[NEURON_COMPUTE_MAX] = NEURON_NEFF_OP_MAX,
	};
	struct neuron_neff_side from[NEURON_COMPUTE_MAX_SOURCES] = { 0 };
	struct span src[NEURON_COMPUTE_MAX_SOURCES], dst;
	struct neuron_neff_desc desc = { .from = from };
	struct neuron_compute o;
	struct transfer t;
	int ret = opts_copy(&o, sizeof(o), compute);

	if (ret)
		return ret;
	if (device_inherited(core->device))
		return -EACCES;
	if ((size_t)o.op >= ARRAY_SIZE(ops) || !o.src || !o.nr_src ||
	    o.nr_src > (o.op == NEURON_COMPUTE_CAST ? 1 : NEURON_COMPUTE_MAX_SOURCES))
		return -EINVAL;
	desc.op = ops[o.op];
	desc.nr_from = o.nr_src;
	desc.to.dtype = o.dst.dtype;
	desc.scale_dtype = NEURON_NEFF_DT_FLOAT32;
	desc.scale = (double)o.scale;
	ret = check_operand(core, &o.dst, o.elements, &dst);
	for (size_t i = 0; i < o.nr_src && !ret; i++) {
		from[i].dtype = o.src[i].dtype;
		ret = check_operand(core, &o.src[i], o.elements, &src[i]);
	}
	if (ret)
		return ret;
	if (transfer_start(&t, &desc, &dst, src))
		return -EINVAL;

	/* A run of a model can end with a reset, which stops all queues of the core. */
	TURN(&core->turn);
	if (core->broken)
		ret = core_reset_locked(core);
	return ret ?: run(core, &t, timeout_ms);
}

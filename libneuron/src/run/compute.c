// SPDX-License-Identifier: LGPL-2.1-or-later
/* Computing with device memory: a DMA queue of a core that the host drives. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "model.h"
#include "../isa/transfer.h"
#include "../../common/wait.h"

/* By convention for collectives (uapi/FACTS.md 5); models have those below. */
#define QUEUE 15u
#define SLOTS 2048u
/* Of a queue, uapi/FACTS.md 5. */
#define ENABLED 2u
#define MAX_DESCS (SLOTS - NEURON_RING_UNUSED_SLOTS)
/* The last packet copies a number from one word to the other. */
#define FROM_WORD 0u
#define TO_WORD 16u

struct core_compute {
	struct neuron_queue_setup setup;
	struct neuron_mem *words;	/* host memory */
	uint32_t *va;
	uint32_t number;
	uint32_t nr[2];
	struct neuron_descriptor desc[2][SLOTS];
};

_Static_assert(NEURON_COMPUTE_MAX_SOURCES == NEURON_ISA_DMA_MAX_SOURCES &&
	       NEURON_COMPUTE_MAX_SOURCES == NEURON_NEFF_MAX_SOURCES, "sources of a packet");

void core_compute_free(struct neuron_core *core)
{
	struct core_compute *c = core->compute;

	if (!c)
		return;
	if (c->setup.tx && !device_inherited(core->device) &&
	    neuron_queue_release(core->device, c->setup.engine, c->setup.queue))
		core->held = true;
	neuron_mem_free(c->setup.tx);
	neuron_mem_free(c->setup.rx);
	neuron_mem_free(c->words);
	free(c);
	core->compute = NULL;
}

static int make_memory(struct neuron_core *core, struct core_compute *c)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.flags = core->contiguous ? NEURON_MEM_F_HIGH : 0,
		.hbm = core->hbm,
		.nc = core->nc,
		.category = NEURON_MEM_RINGS,
	};
	uint64_t bytes = SLOTS * sizeof(struct neuron_descriptor);
	void *va;
	int ret = neuron_mem_alloc(core->device, bytes, &opts, &c->setup.tx);

	if (!ret)
		ret = neuron_mem_alloc(core->device, bytes, &opts, &c->setup.rx);
	opts.flags = NEURON_MEM_F_HOST;
	opts.category = NEURON_MEM_HOST_RINGS;
	if (!ret)
		ret = neuron_mem_alloc(core->device, NEURON_PAGE, &opts, &c->words);
	if (!ret)
		ret = neuron_mem_map(c->words, &va);
	if (!ret)
		c->va = va;
	return ret;
}

/* For the first computation; most programs have none. */
static int make(struct neuron_core *core)
{
	const struct neuron_geometry *g = &core->device->geometry;
	struct core_compute *c;
	int ret;

	if (g->nr_queues <= QUEUE || !g->isa_version)
		return -EOPNOTSUPP;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->setup.engine = core->nc * g->engines_per_core;
	c->setup.queue = QUEUE;
	c->setup.tx_slots = SLOTS;
	c->setup.rx_slots = SLOTS;
	core->compute = c;
	ret = make_memory(core, c);
	if (ret)
		core_compute_free(core);
	return ret;
}

static int wait_done(struct neuron_core *core, const struct deadline *deadline)
{
	struct neuron_queue_state s = { .size = sizeof(s) };
	struct core_compute *c = core->compute;
	useconds_t us = 10;
	int ret;

	while (__atomic_load_n(&c->va[TO_WORD], __ATOMIC_ACQUIRE) != c->number) {
		if (!deadline_left(deadline))
			return -ETIMEDOUT;
		if (us < 1000) {
			us *= 2;
		} else {
			ret = neuron_queue_get_state(core->device, c->setup.engine, QUEUE, &s);
			if (ret)
				return ret;
			if (s.tx.sw_status != ENABLED)
				return -EIO;
		}
		usleep(us);
	}
	return 0;
}

/* What was gathered, and the number behind it. */
static int run_batch(struct neuron_core *core, const struct deadline *deadline)
{
	struct core_compute *c = core->compute;
	uint64_t words = neuron_mem_address(c->words);
	int ret;

	c->va[FROM_WORD] = ++c->number;
	neuron_descriptor_copy(&c->desc[NEURON_RING_TX][c->nr[NEURON_RING_TX]++],
			       &c->desc[NEURON_RING_RX][c->nr[NEURON_RING_RX]++],
			       words + TO_WORD * sizeof(uint32_t),
			       words + FROM_WORD * sizeof(uint32_t), sizeof(uint32_t), true);
	/* Starts at the first slot again. */
	ret = neuron_queue_init(core->device, &c->setup, 1);
	if (!ret)
		ret = neuron_queue_write(core->device, c->setup.tx, NEURON_RING_TX, 0,
					 c->desc[NEURON_RING_TX], c->nr[NEURON_RING_TX]);
	if (!ret)
		ret = neuron_queue_write(core->device, c->setup.rx, NEURON_RING_RX, 0,
					 c->desc[NEURON_RING_RX], c->nr[NEURON_RING_RX]);
	if (!ret)
		ret = neuron_queue_start(core->device, c->setup.engine, QUEUE,
					 c->nr[NEURON_RING_TX], c->nr[NEURON_RING_RX]);
	if (!ret)
		ret = wait_done(core, deadline);
	c->nr[NEURON_RING_TX] = 0;
	c->nr[NEURON_RING_RX] = 0;
	return ret;
}

static void add_parts(struct core_compute *c, enum neuron_ring_side side,
		      const struct transfer_part *parts, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		transfer_descriptor(&c->desc[side][c->nr[side]++], &parts[i],
				    side == NEURON_RING_TX && !i,
				    side == NEURON_RING_TX && i == nr - 1);
}

static int run(struct neuron_core *core, struct transfer *t, int timeout_ms)
{
	struct deadline deadline = deadline_in(timeout_ms);
	struct core_compute *c = core->compute;
	struct transfer_packet packet;
	int ret = 0;

	while (!ret && transfer_next(t, &packet)) {
		/* One place is the number's. */
		if (c->nr[NEURON_RING_TX] + packet.nr_tx >= MAX_DESCS ||
		    c->nr[NEURON_RING_RX] + packet.nr_rx >= MAX_DESCS)
			ret = run_batch(core, &deadline);
		add_parts(c, NEURON_RING_TX, packet.tx, packet.nr_tx);
		add_parts(c, NEURON_RING_RX, packet.rx, packet.nr_rx);
	}
	if (!ret)
		ret = run_batch(core, &deadline);
	if (ret) {
		c->nr[NEURON_RING_TX] = 0;
		c->nr[NEURON_RING_RX] = 0;
		/* It must not write any more; what it said of its end is not the next run's. */
		if (neuron_queue_release(core->device, c->setup.engine, QUEUE))
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
	    o->offset > o->mem->bytes || bytes > o->mem->bytes - o->offset)
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
	if ((size_t)o.op >= sizeof(ops) / sizeof(ops[0]) || !o.src || !o.nr_src ||
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
	pthread_mutex_lock(&core->lock);
	if (core->broken)
		ret = core_reset_locked(core);
	if (!ret && !core->compute)
		ret = make(core);
	if (!ret)
		ret = run(core, &t, timeout_ms);
	pthread_mutex_unlock(&core->lock);
	return ret;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* A DMA queue that the host drives (compute_queue.h). */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../common/wait.h"
#include "compute_queue.h"

/* By convention for collectives (uapi/FACTS.md 5); models have those below. */
#define QUEUE 15u
/* Of a queue, uapi/FACTS.md 5. */
#define ENABLED 2u
#define MAX_DESCS (COMPUTE_SLOTS - NEURON_RING_UNUSED_SLOTS)
/* The last packet copies a number from one word to the other. */
#define FROM_WORD 0u
#define TO_WORD 16u

struct compute_queue {
	struct neuron_device *device;	/* the core keeps it */
	struct neuron_queue_setup setup;
	struct neuron_mem *words;	/* host memory */
	uint32_t *va;
	uint32_t number;
	uint32_t nr[2];
	struct neuron_descriptor desc[2][COMPUTE_SLOTS];
};

bool compute_queue_stop(struct compute_queue *c)
{
	c->nr[NEURON_RING_TX] = 0;
	c->nr[NEURON_RING_RX] = 0;
	return neuron_queue_release(c->device, c->setup.engine, c->setup.queue);
}

bool compute_queue_free(struct compute_queue *c)
{
	bool held;

	if (!c)
		return false;
	held = c->setup.tx && !device_inherited(c->device) && compute_queue_stop(c);
	neuron_mem_free(c->setup.tx);
	neuron_mem_free(c->setup.rx);
	neuron_mem_free(c->words);
	free(c);
	return held;
}

static int make_memory(struct compute_queue *c, const struct neuron_mem_opts *where)
{
	struct neuron_mem_opts opts = *where;
	uint64_t bytes = COMPUTE_SLOTS * sizeof(struct neuron_descriptor);
	void *va;
	int ret;

	opts.category = NEURON_MEM_RINGS;
	ret = neuron_mem_alloc(c->device, bytes, &opts, &c->setup.tx) ?:
	      neuron_mem_alloc(c->device, bytes, &opts, &c->setup.rx);
	if (ret)
		return ret;
	opts.flags = NEURON_MEM_F_HOST;
	opts.category = NEURON_MEM_HOST_RINGS;
	ret = neuron_mem_alloc(c->device, NEURON_PAGE, &opts, &c->words) ?:
	      neuron_mem_map(c->words, &va);
	if (!ret)
		c->va = va;
	return ret;
}

int compute_queue_new(struct neuron_device *device, const struct neuron_mem_opts *mem,
		      struct compute_queue **queue)
{
	const struct neuron_geometry *g = &device->geometry;
	struct compute_queue *c;
	int ret;

	if (g->nr_queues <= QUEUE || !g->isa_version)
		return -EOPNOTSUPP;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->device = device;
	c->setup.engine = mem->nc * g->engines_per_core;
	c->setup.queue = QUEUE;
	c->setup.tx_slots = COMPUTE_SLOTS;
	c->setup.rx_slots = COMPUTE_SLOTS;
	ret = make_memory(c, mem);
	if (ret) {
		compute_queue_free(c);
		return ret;
	}
	*queue = c;
	return 0;
}

static int wait_done(struct compute_queue *c, const struct deadline *deadline)
{
	struct neuron_queue_state s = { .size = sizeof(s) };
	useconds_t us = 10;
	int ret;

	while (__atomic_load_n(&c->va[TO_WORD], __ATOMIC_ACQUIRE) != c->number) {
		if (!deadline_left(deadline))
			return -ETIMEDOUT;
		if (us < 1000) {
			us *= 2;
		} else {
			ret = neuron_queue_get_state(c->device, c->setup.engine, QUEUE, &s);
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
static int run_batch(struct compute_queue *c, const struct deadline *deadline)
{
	uint64_t words = neuron_mem_address(c->words);
	int ret;

	c->va[FROM_WORD] = ++c->number;
	neuron_descriptor_copy(&c->desc[NEURON_RING_TX][c->nr[NEURON_RING_TX]++],
			       &c->desc[NEURON_RING_RX][c->nr[NEURON_RING_RX]++],
			       words + TO_WORD * sizeof(uint32_t),
			       words + FROM_WORD * sizeof(uint32_t), sizeof(uint32_t), true);
	/* Starts at the first slot again. */
	ret = neuron_queue_init(c->device, &c->setup, 1) ?:
	      neuron_queue_write(c->device, c->setup.tx, NEURON_RING_TX, 0,
				 c->desc[NEURON_RING_TX], c->nr[NEURON_RING_TX]) ?:
	      neuron_queue_write(c->device, c->setup.rx, NEURON_RING_RX, 0,
				 c->desc[NEURON_RING_RX], c->nr[NEURON_RING_RX]) ?:
	      neuron_queue_start(c->device, c->setup.engine, QUEUE, c->nr[NEURON_RING_TX],
				 c->nr[NEURON_RING_RX]);
	if (ret)
		return ret;
	c->nr[NEURON_RING_TX] = 0;
	c->nr[NEURON_RING_RX] = 0;
	return wait_done(c, deadline);
}

static void add_parts(struct compute_queue *c, enum neuron_ring_side side,
		      const struct transfer_part *parts, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		transfer_descriptor(&c->desc[side][c->nr[side]++], &parts[i],
				    side == NEURON_RING_TX && !i,
				    side == NEURON_RING_TX && i == nr - 1);
}

int compute_queue_run(struct compute_queue *c, struct transfer *t, int timeout_ms)
{
	struct deadline deadline = deadline_in(timeout_ms);
	struct transfer_packet packet;
	int ret;

	while (transfer_next(t, &packet)) {
		/* One place is the number's. */
		if (c->nr[NEURON_RING_TX] + packet.nr_tx >= MAX_DESCS ||
		    c->nr[NEURON_RING_RX] + packet.nr_rx >= MAX_DESCS) {
			ret = run_batch(c, &deadline);
			if (ret)
				return ret;
		}
		add_parts(c, NEURON_RING_TX, packet.tx, packet.nr_tx);
		add_parts(c, NEURON_RING_RX, packet.rx, packet.nr_rx);
	}
	return run_batch(c, &deadline);
}

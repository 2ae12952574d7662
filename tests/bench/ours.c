// SPDX-License-Identifier: GPL-2.0-only
/* The project's allocator as a participant of the benchmark. */
#include "bench.h"
#include "../../kmod/mem/buddy/all.h"

static void *ours_create(u64 size)
{
	struct neuron_buddy *zone;

	return neuron_buddy_create(&zone, size) ? NULL : zone;
}

static void ours_destroy(void *zone)
{
	neuron_buddy_destroy(zone);
}

/* Timed with the allocation: it is part of every call. */
static int ours_alloc(void *zone, u64 size, u64 align, struct bench_block *block)
{
	struct neuron_buddy_request req = { .size = size, .align = align };
	int err;

	do {
		err = neuron_buddy_prepare(zone);
		if (err)
			return err;
		err = neuron_buddy_alloc(zone, &req, (struct neuron_buddy_block *)block->priv,
					 NULL);
	} while (err == -EAGAIN);
	return err;
}

static void ours_free(void *zone, struct bench_block *block)
{
	neuron_buddy_free(zone, (struct neuron_buddy_block *)block->priv, false);
}

static u64 ours_metadata(void *zone)
{
	return ((struct neuron_buddy *)zone)->st.metadata;
}

static int ours_check(void *zone)
{
	return neuron_buddy_check(zone);
}

const struct bench_peer bench_ours = {
	.name = "neuron_buddy",
	.create = ours_create,
	.destroy = ours_destroy,
	.alloc = ours_alloc,
	.free = ours_free,
	.metadata = ours_metadata,
	.check = ours_check,
};

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Cores: notification queues, reset, and the scratchpad that their models share. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "model.h"
#include "../device/stats.h"

struct neuron_core *core_get(struct neuron_core *core)
{
	atomic_fetch_add_explicit(&core->refs, 1, memory_order_relaxed);
	return core;
}

static void close_queues(struct neuron_core *core)
{
	/* After a reset the driver has forgotten them; then this does nothing. */
	if (core->notify)
		neuron_nq_set_eventfd(core->notify, -1);
	if (core->error)
		neuron_nq_set_eventfd(core->error, -1);
	neuron_nq_close(core->notify);
	neuron_nq_close(core->error);
	core->notify = NULL;
	core->error = NULL;
}

void core_put(struct neuron_core *core)
{
	if (atomic_fetch_sub_explicit(&core->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (core->peer)
		core_put(core->peer);
	core_compute_free(core);
	close_queues(core);
	/* Its last chance before the device is closed; nobody hears of it. */
	if (core->held && !device_inherited(core->device))
		neuron_device_reset(core->device, 1u << core->nc);
	if (core->eventfd >= 0)
		close(core->eventfd);
	while (core->nr_pages)
		neuron_mem_free(core->pages[--core->nr_pages]);
	neuron_mem_free(core->region);
	neuron_mem_free(core->microcode);
	pthread_mutex_destroy(&core->lock);
	free(core->pages);
	free(core->owner);
	device_put(core->device);
	free(core);
}

static int open_queue(struct neuron_core *core, enum neuron_nq_type type, uint32_t engine,
		      struct neuron_nq **nq)
{
	struct neuron_nq_opts opts = {
		.size = sizeof(opts),
		.nc = core->nc,
		.type = type,
		.engine = engine,
		.bytes = NQ_BYTES,
	};
	int ret = neuron_nq_open(core->device, &opts, nq);

	return ret ? ret : neuron_nq_set_eventfd(*nq, core->eventfd);
}

/* A reset switches notification queues off; the new ones start empty. */
static int open_queues(struct neuron_core *core)
{
	int ret;

	close_queues(core);
	ret = open_queue(core, NEURON_NQ_NOTIFY, NEURON_ISA_ENGINE_SP, &core->notify);
	if (!ret)
		ret = open_queue(core, NEURON_NQ_ERROR, 0, &core->error);
	if (ret)
		close_queues(core);
	return ret;
}

int core_reset_locked(struct neuron_core *core)
{
	int ret;

	core->broken = true;
	core_release_queues(core, NULL);
	ret = neuron_device_reset(core->device, 1u << core->nc);
	if (!ret)
		core->held = false;
	profile_reset(core, !ret);
	if (!ret)
		ret = open_queues(core);
	core->broken = ret != 0;
	return ret;
}

void core_take_back(struct neuron_core *core)
{
	pthread_mutex_lock(&core->lock);
	if (core->held)
		core_reset_locked(core);
	pthread_mutex_unlock(&core->lock);
}

NEURON_EXPORT int neuron_core_reset(struct neuron_core *core)
{
	int ret;

	if (device_inherited(core->device))
		return -EACCES;
	pthread_mutex_lock(&core->lock);
	ret = core_reset_locked(core);
	if (core->peer && !ret)
		ret = neuron_core_reset(core->peer);
	pthread_mutex_unlock(&core->lock);
	return ret;
}

/*
 * The driver makes the copy ring of a core for the first copy.  Do one, so that
 * what a model costs is what memory counters grow by when it is loaded.
 */
static int first_copy(struct neuron_core *core, struct neuron_mem_failure *failure)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.hbm = core->hbm,
		.nc = core->nc,
		.category = NEURON_MEM_MISC,
		.failure = failure,
	};
	struct neuron_mem *mem;
	uint32_t word = 0;
	int ret = neuron_mem_alloc(core->device, NEURON_PAGE, &opts, &mem);

	if (ret)
		return ret;
	ret = neuron_mem_write(mem, 0, &word, sizeof(word));
	neuron_mem_free(mem);
	return ret;
}

/* Not written: what is in there is the vendor's, and only the space counts. */
static int take_microcode(struct neuron_core *core, uint64_t bytes,
			  struct neuron_mem_failure *failure)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.flags = core->contiguous ? NEURON_MEM_F_HIGH : 0,
		.hbm = core->hbm,
		.nc = core->nc,
		.category = NEURON_MEM_CODE,
		.failure = failure,
	};

	return neuron_mem_alloc(core->device, bytes, &opts, &core->microcode);
}

NEURON_EXPORT int neuron_core_open(struct neuron_device *device, uint32_t nc,
				   const struct neuron_core_opts *opts,
				   struct neuron_core **core)
{
	const struct neuron_geometry *g = &device->geometry;
	struct neuron_core_opts o;
	struct neuron_core *c;
	int ret;

	ret = opts_copy(&o, sizeof(o), opts);
	if (ret)
		return ret;
	if (!o.scratchpad_page)
		o.scratchpad_page = SCRATCHPAD_PAGE;
	if (!core || nc >= g->nr_cores || o.lnc > 2 ||
	    (o.lnc == 2 && (nc % 2 || nc + 1 >= g->nr_cores)) ||
	    !scratchpad_page_valid(o.scratchpad_page))
		return -EINVAL;
	if (core_slots(g) <= NR_ENGINES)
		return -EOPNOTSUPP;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->device = device_get(device);
	stats_open(device);
	c->nc = nc;
	c->hbm = g->core_hbm[nc];
	c->nr_slots = core_slots(g);
	c->page = o.scratchpad_page;
	c->contiguous = o.contiguous;
	atomic_init(&c->refs, 1);
	pthread_mutex_init(&c->lock, NULL);
	c->owner = calloc(c->nr_slots, sizeof(*c->owner));
	c->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!c->owner)
		ret = -ENOMEM;
	else if (c->eventfd < 0)
		ret = -errno;
	else if (o.no_reset)
		ret = open_queues(c);
	else
		ret = core_reset_locked(c);
	if (!ret)
		ret = first_copy(c, o.failure);
	if (!ret && o.microcode)
		ret = take_microcode(c, o.microcode, o.failure);
	if (!ret && o.lnc == 2) {
		o.lnc = 1;
		o.refused = NULL;
		ret = neuron_core_open(device, nc + 1, &o, &c->peer);
	}
	if (ret) {
		if (ret == -ENOMEM && o.refused && o.failure &&
		    o.failure->reason != NEURON_MEM_REASON_NONE)
			o.refused(o.refused_data, o.failure, NULL);
		core_put(c);
		return ret;
	}
	*core = c;
	return 0;
}

NEURON_EXPORT void neuron_core_close(struct neuron_core *core)
{
	if (core)
		core_put(core);
}

NEURON_EXPORT struct neuron_device *neuron_core_device(const struct neuron_core *core)
{
	return core->device;
}

NEURON_EXPORT uint32_t neuron_core_index(const struct neuron_core *core)
{
	return core->nc;
}

void core_release_queues(struct neuron_core *core, const struct neuron_model *model)
{
	const struct neuron_geometry *g = &core->device->geometry;

	for (uint32_t slot = 0; slot < core->nr_slots; slot++) {
		if (!core->owner[slot] || (model && core->owner[slot] != model))
			continue;
		if (neuron_queue_release(core->device,
					 core->nc * g->engines_per_core + slot_engine(g, slot),
					 slot_queue(g, slot)))
			core->held = true;
		core->owner[slot] = NULL;
	}
}

NEURON_EXPORT void neuron_core_count(struct neuron_core *core, enum neuron_core_event event)
{
	static const unsigned int counters[] = {
		[NEURON_CORE_QUEUE_FULL] = NDS_NC_COUNTER_INFER_FAILED_TO_QUEUE,
		[NEURON_CORE_BAD_INPUT] = NDS_NC_COUNTER_INFER_INCORRECT_INPUT,
		[NEURON_CORE_NUMERICAL] = NDS_NC_COUNTER_INFER_COMPLETED_WITH_NUM_ERR,
	};

	if ((unsigned int)event < sizeof(counters) / sizeof(counters[0]))
		stats_add(core->device, core->nc, counters[event], 1);
}

/* ---- scratchpad -------------------------------------------------------------------- */

static uint64_t region_bytes(const struct neuron_core *core)
{
	return core->region ? neuron_mem_bytes(core->region) : 0;
}

/*
 * In contiguous mode everything else is taken from the top of the memory, and the
 * regions of cores that share it start apart, so that they can grow.
 */
static uint64_t region_align(const struct neuron_core *core)
{
	const struct neuron_geometry *g = &core->device->geometry;
	uint64_t share, align = SCRATCHPAD_ALIGN;
	uint32_t before = 0, others = 0;

	for (uint32_t i = 0; i < g->nr_cores; i++) {
		if (i == core->nc || g->core_hbm[i] != core->hbm)
			continue;
		before += i < core->nc;
		others++;
	}
	share = g->hbm[core->hbm].size / (others + 1);
	while (before && align <= share / 2)
		align *= 2;
	return align;
}

/* The region from nothing, or longer where it is. -ENOMEM: it cannot be. */
static int region_grow(struct neuron_core *core, uint64_t need)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.flags = NEURON_MEM_F_LOW,
		.hbm = core->hbm,
		.nc = core->nc,
		.category = NEURON_MEM_SCRATCHPAD_CONTIGUOUS,
		.align = region_align(core),
	};
	uint64_t bytes = round_up(need, SCRATCHPAD_STEP);
	int ret;

	if (core->region)
		return neuron_mem_grow(core->region, bytes, NULL);
	ret = neuron_mem_alloc(core->device, bytes, &opts, &core->region);
	if (ret != -ENOMEM || opts.align == SCRATCHPAD_ALIGN)
		return ret;
	opts.align = SCRATCHPAD_ALIGN;
	return neuron_mem_alloc(core->device, bytes, &opts, &core->region);
}

/*
 * Pages and the region are where the descriptors of loaded models point to: they never
 * move, and more is added behind them.
 */
int core_scratchpad_grow(struct neuron_core *core, uint64_t need,
			 struct neuron_mem_failure *failure)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.hbm = core->hbm,
		.nc = core->nc,
		.category = NEURON_MEM_SCRATCHPAD,
		.align = SCRATCHPAD_ALIGN,
		.failure = failure,
	};
	uint64_t hbm = core->device->geometry.hbm[core->hbm].size;
	struct neuron_mem **grown;
	uint64_t pages;
	int ret = 0;

	if (need <= region_bytes(core))
		return 0;
	if (core->contiguous && !core->nr_pages && need <= hbm) {
		ret = region_grow(core, need);
		if (ret != -ENOMEM)
			return ret;
		/* Not in one piece: pages need not follow each other. */
	}
	need -= region_bytes(core);
	pages = scratchpad_pages(need, core->page);
	if (pages <= core->nr_pages)
		return 0;
	if (pages > hbm / core->page) {
		/* Hopeless: ask for it in one piece, to get the figures and the log line. */
		struct neuron_mem *mem;
		uint64_t bytes = need > UINT64_MAX - core->page ? need : pages * core->page;

		ret = neuron_mem_alloc(core->device, bytes, &opts, &mem);
		if (!ret)
			neuron_mem_free(mem);
		if (ret != -ENOMEM)
			*failure = (struct neuron_mem_failure){
				.reason = NEURON_MEM_REASON_FULL,
				.category = NEURON_MEM_SCRATCHPAD,
				.hbm = core->hbm,
				.nc = core->nc,
				.bytes = bytes,
				.total = hbm,
			};
		return -ENOMEM;
	}
	grown = realloc(core->pages, pages * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	core->pages = grown;
	ret = 0;
	while (core->nr_pages < pages && !ret) {
		ret = neuron_mem_alloc(core->device, core->page, &opts,
				       &core->pages[core->nr_pages]);
		if (!ret)
			core->nr_pages++;
	}
	/* Pages that nobody uses go with the model that failed to load. */
	return ret;
}

/*
 * Pages from the end, then the end of the region; all of that when nobody uses the
 * scratchpad any more.  Where pages start depends on where the region ends, so that
 * stays as long as there are any.
 */
void core_scratchpad_shrink(struct neuron_core *core)
{
	uint64_t need = 0, behind;

	for (const struct neuron_model *m = core->models; m; m = m->next)
		if (m->usage.shared_scratchpad > need)
			need = m->usage.shared_scratchpad;
	if (!need) {
		neuron_mem_free(core->region);
		core->region = NULL;
	}
	behind = need - (need < region_bytes(core) ? need : region_bytes(core));
	while (core->nr_pages > scratchpad_pages(behind, core->page))
		neuron_mem_free(core->pages[--core->nr_pages]);
	if (core->nr_pages)
		return;
	free(core->pages);
	core->pages = NULL;
	/* A driver that cannot do it leaves it as long as it is. */
	if (core->region && round_up(need, SCRATCHPAD_STEP) < region_bytes(core))
		neuron_mem_shrink(core->region, round_up(need, SCRATCHPAD_STEP));
}

struct scratchpad_layout core_scratchpad_layout(const struct neuron_core *core)
{
	return (struct scratchpad_layout){ .region = region_bytes(core), .page = core->page };
}

uint64_t core_scratchpad_address(const struct neuron_core *core, uint64_t offset)
{
	uint64_t region = region_bytes(core);

	if (offset < region)
		return neuron_mem_address(core->region) + offset;
	offset -= region;
	return neuron_mem_address(core->pages[offset / core->page]) + offset % core->page;
}

NEURON_EXPORT uint64_t neuron_core_scratchpad(struct neuron_core *core)
{
	uint64_t bytes;

	pthread_mutex_lock(&core->lock);
	bytes = region_bytes(core) + core->nr_pages * core->page;
	if (core->peer)
		bytes += neuron_core_scratchpad(core->peer);
	pthread_mutex_unlock(&core->lock);
	return bytes;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Cores: opening, reset, and the queues that belong to them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../device/datastore.h"
#include "../device/opts.h"
#include "../device/slots.h"
#include "../isa/program.h"
#include "compute_queue.h"
#include "core.h"

const struct neuron_io *find_io(const struct neuron_io *io, size_t nr, size_t hint,
				const char *name)
{
	if (hint < nr && io[hint].name && !strcmp(io[hint].name, name))
		return &io[hint];
	for (size_t i = 0; i < nr; i++)
		if (io[i].name && !strcmp(io[i].name, name))
			return &io[i];
	return NULL;
}

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
	neuron_nq_close(TAKE_OUT(core->notify));
	neuron_nq_close(TAKE_OUT(core->error));
}

void core_put(struct neuron_core *core)
{
	if (atomic_fetch_sub_explicit(&core->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (core->peer)
		core_put(core->peer);
	if (compute_queue_free(core->compute))
		core->held = true;
	close_queues(core);
	/* Its last chance before the device is closed; nobody hears of it. */
	if (core->held && !device_inherited(core->device))
		neuron_device_reset(core->device, 1u << core->nc);
	/* In a child the lock may be a thread's that is not there. */
	if (!device_inherited(core->device))
		device_remove_watch(core->device, &core->watch);
	if (core->watch.eventfd >= 0)
		close(core->watch.eventfd);
	scratchpad_free(&core->scratchpad);
	neuron_mem_free(core->microcode);
	turn_destroy(&core->turn);
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

	return neuron_nq_open(core->device, &opts, nq) ?:
	       neuron_nq_set_eventfd(*nq, core->watch.eventfd);
}

/* A reset switches notification queues off; the new ones start empty. */
static int open_queues(struct neuron_core *core)
{
	int ret;

	/* First: what comes from here on takes the new ones away. */
	atomic_store(&core->watch.reset, false);
	close_queues(core);
	ret = open_queue(core, NEURON_NQ_NOTIFY, NEURON_ISA_ENGINE_SP, &core->notify) ?:
	      open_queue(core, NEURON_NQ_ERROR, 0, &core->error);
	if (ret)
		close_queues(core);
	return ret;
}

#define WIPE_BYTES	(1u << 20)

/* Not every device's reset clears the state buffer. */
static int core_wipe(struct neuron_core *core)
{
	const struct neuron_geometry *g = &core->device->geometry;
	struct neuron_ioctl_program_engine_nc64 p = { .nc_id = core->nc };
	int ret = 0;

	if (!core->foreign)
		return 0;
	p.buffer = calloc(1, WIPE_BYTES);
	if (!p.buffer)
		return -ENOMEM;
	for (uint64_t at = 0; at < g->sbuf_size && !ret; at += p.size) {
		p.dst = g->tpb_base[core->nc] + at;
		p.size = MIN(g->sbuf_size - at, WIPE_BYTES);
		ret = device_ioctl(core->device, NEURON_IOCTL_PROGRAM_ENGINE_NC64, &p);
	}
	free(p.buffer);
	core->foreign = ret != 0;
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
	if (core->profile)
		core->recorder->reset(core->profile, !ret);
	ret = ret ?: core_wipe(core) ?: open_queues(core);
	core->broken = ret != 0;
	return ret;
}

void core_take_back(struct neuron_core *core)
{
	TURN(&core->turn);
	if (core->held)
		core_reset_locked(core);
}

NEURON_EXPORT int neuron_core_reset(struct neuron_core *core)
{
	if (device_inherited(core->device))
		return -EACCES;
	TURN(&core->turn);
	return core_reset_locked(core) ?: core->peer ? neuron_core_reset(core->peer) : 0;
}

int core_alloc(const struct neuron_core *core, enum neuron_mem_category category, uint32_t flags,
	       uint64_t bytes, struct neuron_mem_failure *failure, struct neuron_mem **mem)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.flags = flags,
		.hbm = core->hbm,
		.nc = core->nc,
		.category = category,
		.failure = failure,
	};

	return neuron_mem_alloc(core->device, bytes, &opts, mem);
}

/*
 * The driver makes the copy ring of a core for the first copy.  Do one, so that
 * what a model costs is what memory counters grow by when it is loaded.
 */
static int first_copy(struct neuron_core *core, struct neuron_mem_failure *failure)
{
	struct neuron_mem *mem;
	uint32_t word = 0;
	int ret = core_alloc(core, NEURON_MEM_MISC, 0, NEURON_PAGE, failure, &mem);

	if (ret)
		return ret;
	ret = neuron_mem_write(mem, 0, &word, sizeof(word));
	neuron_mem_free(mem);
	return ret;
}

NEURON_EXPORT int neuron_core_open(struct neuron_device *device, uint32_t nc,
				   const struct neuron_core_opts *opts,
				   struct neuron_core **core)
{
	const struct neuron_geometry *g = &device->geometry;
	struct neuron_core_opts o;
	struct neuron_core *c;
	int ret = opts_copy(&o, sizeof(o), opts);

	if (ret)
		return ret;
	if (!o.scratchpad_page)
		o.scratchpad_page = SCRATCHPAD_PAGE;
	if (!core || nc >= g->nr_cores || o.lnc > 2 || o.contiguous > 1 ||
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
	c->contiguous = o.contiguous;
	c->scratchpad = (struct scratchpad){
		.device = device,
		.nc = nc,
		.hbm = c->hbm,
		.page = o.scratchpad_page,
		.contiguous = o.contiguous,
	};
	scratchpad_init(&c->scratchpad);
	atomic_init(&c->refs, 1);
	turn_init(&c->turn);
	c->owner = calloc(c->nr_slots, sizeof(*c->owner));
	c->watch.nc = nc;
	c->watch.eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	device_add_watch(device, &c->watch);
	if (!c->owner)
		ret = -ENOMEM;
	else if (c->watch.eventfd < 0)
		ret = -errno;
	else if (o.no_reset)
		ret = open_queues(c);
	else
		ret = core_reset_locked(c);
	ret = ret ?: first_copy(c, o.failure);
	/* Not written: what is in there is the vendor's, and only the space counts. */
	if (!ret && o.microcode)
		ret = core_alloc(c, NEURON_MEM_CODE, c->contiguous ? NEURON_MEM_F_HIGH : 0,
				 o.microcode, o.failure, &c->microcode);
	if (!ret && o.lnc == 2) {
		struct neuron_core_opts second = o;

		second.lnc = 1;
		second.refused = NULL;
		ret = neuron_core_open(device, nc + 1, &second, &c->peer);
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

	if ((unsigned int)event < ARRAY_SIZE(counters))
		stats_add(core->device, core->nc, counters[event], 1);
}

NEURON_EXPORT uint64_t neuron_core_scratchpad(struct neuron_core *core)
{
	return scratchpad_bytes(&core->scratchpad) +
	       (core->peer ? neuron_core_scratchpad(core->peer) : 0);
}

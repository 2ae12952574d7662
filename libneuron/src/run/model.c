// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Models on cores: loading and unloading.  A NEFF for logical cores of two has a subgraph
 * for each of them; the first one is the model that callers see, the other is its peer.
 */
#include <errno.h>
#include <string.h>

#include "../../common/wait.h"
#include "../device/datastore.h"
#include "../device/opts.h"
#include "../load/loader.h"
#include "../load/steps.h"
#include "../memory/resolve.h"
#include "core.h"
#include "offload.h"
#include "pretend.h"

static unsigned int load_counter(int ret)
{
	switch (ret) {
	case 0: return NDS_NC_COUNTER_MODEL_LOAD_COUNT;
	case -EINVAL: return NDS_NC_COUNTER_ERR_INVALID;
	case -ENOMEM:
	case -EFBIG:
	case -E2BIG: return NDS_NC_COUNTER_ERR_RESOURCE;
	case -EOPNOTSUPP: return NDS_NC_COUNTER_ERR_UNSUPPORTED_NEFF_VERSION;
	case -EIO:
	case -ENODEV: return NDS_NC_COUNTER_ERR_HW;
	default: return NDS_NC_COUNTER_GENERIC_FAIL;
	}
}

/* A model was loaded, or why not, in the statistics. */
static void count_load(const struct neuron_core *core, int ret)
{
	stats_add(core->device, core->nc, load_counter(ret), 1);
}

/* One for all parts, which come and go together. */
static uint32_t owner_of(const struct neuron_model *m)
{
	uint32_t owner;

	return neuron_owner_create(m->core->device, m->name, &owner) ? 0 : owner;
}

static int load_parts(struct loader *l, struct neuron_core *core, const struct neuron_neff *neff,
		      struct stopwatch *watch, struct spots *spots, struct neuron_error *error)
{
	struct neuron_core *cores[MAX_PARTS] = { core, core->peer };
	int ret = load_plan_parts(l, neff, &core->device->geometry, error);

	load_lap(watch, &watch->stats.plan_ns);
	for (size_t k = 0; k < neff->nr_subgraphs && !ret; k++) {
		l[k].scratchpad = &cores[k]->scratchpad;
		l[k].watch = watch;
		l[k].spots = spots;
		l[k].nc = cores[k]->nc;
		l[k].model->core = core_get(cores[k]);
		/* An owner makes memory easier to explain; a model loads without one, too. */
		l[k].model->owner = k ? l[0].model->owner : owner_of(l[0].model);
		l[k].model->scratchpad.owner = l[k].model->owner;
		/* It could be what there is no room for. */
		core_take_back(cores[k]);
		ret = load_apply_scratchpad(&l[k]);
		load_lap(watch, &watch->stats.memory_ns);
		ret = ret ?: load_plan_memory(&l[k]);
		load_lap(watch, &watch->stats.plan_ns);
	}
	for (size_t k = 0; k < neff->nr_subgraphs && !ret; k++)
		ret = load_apply_memory(&l[k]);
	load_lap(watch, &watch->stats.memory_ns);
	/* All of it is there: from here on the device is touched. */
	for (size_t k = 0; k < neff->nr_subgraphs && !ret; k++)
		ret = load_apply(&l[k]) ?: load_symbols(&l[k]);
	return ret ?: load_join_tensors(l, l[0].model);
}

/* While it still has what it got. */
static void tell_refusal(struct loader *l, const struct neuron_model_opts *o)
{
	struct neuron_report_model so_far = {
		.name = l[0].model->name, .usage.size = sizeof(so_far.usage),
	};

	for (size_t k = 0; k < MAX_PARTS; k++)
		if (l[k].model)
			load_account(&l[k], true);
	neuron_model_get_usage(l[0].model, &so_far.usage);
	o->refused(o->refused_data, &l->error->memory, &so_far);
}

/* To load again. */
static void give_all_back(struct loader *l)
{
	const struct loader asked = { .error = l->error, .max_descriptors = l->max_descriptors };
	struct neuron_error *error = l->error;

	neuron_model_unload(l[0].model);
	load_free(l);
	memset(l, 0, MAX_PARTS * sizeof(*l));
	l[0] = asked;
	error->kind = NEURON_ERROR_NONE;
	error->text[0] = '\0';
	memset(&error->memory, 0, sizeof(error->memory));
}

/*
 * The scratchpads of cores that share a memory start far apart, so that they can grow; what
 * is long then may fit nowhere.  If only this model has to move, everything is given back to
 * start over without that.
 */
static bool start_over(struct loader *l, struct neuron_core *core)
{
	struct neuron_core *cores[MAX_PARTS] = { core, core->peer };
	bool moves[MAX_PARTS] = { false };

	if (l->error->memory.reason != NEURON_MEM_REASON_FRAGMENTED)
		return false;
	for (size_t k = 0; k < MAX_PARTS && l[k].scratchpad; k++)
		moves[k] = scratchpad_could_move(l[k].scratchpad, &l[k].model->scratchpad);
	if (!moves[0] && !moves[1])
		return false;
	give_all_back(l);
	for (size_t k = 0; k < MAX_PARTS; k++)
		if (moves[k])
			scratchpad_make_dense(&cores[k]->scratchpad);
	return true;
}

static void pads_of(const struct neuron_core *core, const struct scratchpad *pad[MAX_PARTS])
{
	pad[0] = &core->scratchpad;
	pad[1] = core->peer ? &core->peer->scratchpad : NULL;
}

/* Whether they would not fit beside the microcode of their cores on an empty device. */
static bool too_large(const struct neuron_core *core, const struct neuron_neff *neff)
{
	const struct neuron_core *cores[MAX_PARTS] = { core, core->peer };
	const struct scratchpad *pad[MAX_PARTS];
	uint64_t microcode[MAX_PARTS] = { 0 };

	pads_of(core, pad);
	for (size_t k = 0; k < MAX_PARTS; k++)
		if (cores[k] && cores[k]->microcode)
			microcode[k] = neuron_mem_bytes(cores[k]->microcode);
	return load_too_large(core->device, neff, pad, microcode);
}

/* There are two answers to a refusal: less has to be loaded, or something smaller. */
static int name_refusal(struct neuron_error *e, const struct neuron_core *core,
			const struct neuron_neff *neff, int ret)
{
	struct neuron_error was = *e;
	bool large;

	/* An allocation of 2^62 bytes is no request that a driver answers. */
	if (ret != -ENOMEM && (ret != -EINVAL || e->kind != NEURON_ERROR_DEVICE))
		return ret;
	large = too_large(core, neff);
	if (ret == -EINVAL && !large)
		return ret;
	snprintf(e->text, sizeof(e->text), "does not fit %s: %.480s", large ? "the device" : "now",
		 was.text);
	e->kind = large ? NEURON_ERROR_TOO_LARGE : NEURON_ERROR_MEMORY;
	return large ? -EFBIG : -ENOMEM;
}

static bool was_refused(const struct neuron_error *e)
{
	return e->memory.reason != NEURON_MEM_REASON_NONE &&
	       e->memory.reason != NEURON_MEM_REASON_HOST;
}

/* Was memory refused because of what others have, or because of where it is? */
static bool was_crowded(const struct neuron_error *e)
{
	return was_refused(e) && e->memory.reason != NEURON_MEM_REASON_CAPPED;
}

/* When nothing is left of it. */
static void tell_release(struct neuron_error *e, const struct neuron_core *core,
			 const struct neuron_neff *neff)
{
	const struct scratchpad *pad[MAX_PARTS];
	size_t n = strlen(e->text);
	char text[256];

	pads_of(core, pad);
	e->release.size = sizeof(e->release);
	if (load_release(core->device, neff, pad, &e->release))
		return;
	snprintf(e->text + n, sizeof(e->text) - n, "; it would fit without %s",
		 neuron_release_text(&e->release, text, sizeof(text)));
}

/*
 * As the driver places it; if that is refused, with scratchpads elsewhere; at last, where it
 * fits on paper.
 */
static int load_somehow(struct loader *l, struct neuron_core *core, const struct neuron_neff *neff,
			struct stopwatch *watch)
{
	struct neuron_error *error = l->error;
	const struct scratchpad *pad[MAX_PARTS];
	struct spots spots = { .count = 0 };
	int ret = load_parts(l, core, neff, watch, NULL, error);

	if (ret == -ENOMEM && start_over(l, core))
		ret = load_parts(l, core, neff, watch, NULL, error);
	if (ret != -ENOMEM || !was_crowded(error))
		return ret;
	pads_of(core, pad);
	if (!load_arrange(core->device, neff, pad, l[0].model->owner, &spots)) {
		give_all_back(l);
		ret = load_parts(l, core, neff, watch, &spots, error);
		free(spots.at);
	}
	return ret;
}

/*
 * @bytes of a file, or one that was opened already: *@neff is closed unless it came from the
 * caller.
 */
static int load(struct neuron_core *core, const void *bytes, size_t size, struct neuron_neff *neff,
		const struct neuron_model_opts *o, struct neuron_model **model)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct loader l[MAX_PARTS] = {
		{ .error = &error, .max_descriptors = o->max_descriptors },
	};
	struct stopwatch watch = { .on = result_valid(o->stats) };
	struct neuron_load_stats *stats = &watch.stats;
	uint32_t lnc = core->peer ? 2 : 1;
	uint64_t began = 0;
	int ret = 0;

	if (watch.on)
		watch.last = began = now_ns();
	if (bytes)
		ret = load_open_neff(l, bytes, size, o, false, &neff, watch.on ? &watch.last : NULL);
	if (!ret && o->whole)
		ret = load_check_whole(l, neff, o->node);
	if (!ret)
		ret = load_check_cores(l, neff, o->node, lnc, o->cores ? o->cores : lnc);
	if (!ret) {
		stats->archive_ns = watch.last - began;
		load_lap(&watch, &stats->json_ns);
		ret = load_somehow(l, core, neff, &watch);
		if (ret && o->refused && error.memory.reason != NEURON_MEM_REASON_NONE)
			tell_refusal(l, o);
		if (ret && (was_refused(&error) || ret == -EINVAL))
			ret = name_refusal(&error, core, neff, ret);
	}
	if (!ret) {
		ret = pretend_setup(l[0].model, o->pretend);
		if (ret)
			error_note(&error, ret, "pretend: %s", ret == -EPERM ?
				   "this is not a software device" : strerror(-ret));
	}
	if (!ret && residence_new(l[0].model))
		ret = error_no_memory(&error);
	load_free(l);
	if (ret) {
		count_load(core, ret);
		neuron_model_unload(l[0].model);
		if (ret == -ENOMEM && was_crowded(&error))
			tell_release(&error, core, neff);
	}
	if (bytes)
		neuron_neff_close(neff);
	if (ret)
		return error_tell(o->error, &error, ret);
	for (const struct neuron_model *m = l[0].model; m; m = m->peer)
		count_load(m->core, 0);
	if (watch.on) {
		stats->total_ns = now_ns() - began;
		result_copy(o->stats, stats, sizeof(*stats));
	}
	*model = l[0].model;
	return 0;
}

int model_load_opened(struct neuron_core *core, struct neuron_neff *neff,
		      const struct neuron_model_opts *opts, struct neuron_model **model)
{
	return load(core, NULL, 0, neff, opts, model);
}

NEURON_EXPORT int neuron_model_load(struct neuron_core *core, const void *bytes, size_t size,
				    const struct neuron_model_opts *opts,
				    struct neuron_model **model)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts o;
	int ret = opts_copy(&o, sizeof(o), opts);

	if (ret)
		return ret;
	if (!model || !bytes || (unsigned int)o.pretend > NEURON_PRETEND_HASH)
		return error_tell(o.error, &error, -EINVAL);
	if (device_inherited(core->device))
		return error_tell(o.error, &error, -EACCES);
	return load(core, bytes, size, NULL, &o, model);
}

static void leave_core(struct neuron_core *core, const struct neuron_model *model)
{
	bool held;

	TURN(&core->turn);
	held = core->held;
	core_release_queues(core, model);
	/* One that was held before would make every model wait for a core that is stuck. */
	if (core->held && !held)
		core_reset_locked(core);
	scratchpad_leave(&core->scratchpad, &model->scratchpad);
}

NEURON_EXPORT void neuron_model_unload(struct neuron_model *model)
{
	struct symbols *symbols;
	struct neuron_core *core;

	if (!model)
		return;
	residence_end(model);
	/* It was one owner. */
	if (model->peer)
		model->peer->owner = 0;
	neuron_model_unload(model->peer);
	core = model->core;
	/* A part that loading did not get to has none. */
	if (core && !device_inherited(core->device))
		leave_core(core, model);
	if (model->owner)
		neuron_owner_release(core->device, model->owner);
	symbols = model->symbols;
	model_free(model);
	/* When what was there is free. */
	if (core && !device_inherited(core->device))
		symbols_retire(core->device, symbols);
	if (core)
		core_put(core);
}

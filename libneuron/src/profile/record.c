// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Profiles of a core: buffers in device memory that the device writes its traces to
 * (kmod/emu/ISA.md section 9), and what is in them, joined with the runs that it is
 * about.
 *
 * The buffers are notification queues.  The driver keeps those until the core is
 * reset, and only behind a reset it is certain that nothing is written to them any
 * more: so a reset is when they are read, given back, and made anew.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/wait.h"
#include "../device/opts.h"
#include "../memory/mem.h"
#include "part.h"

/* Entries read at once. */
#define PIECE 4096u

/* ---- buffers ----------------------------------------------------------------------- */

/* The call for a queue does not say why there was no memory; the counters do. */
static void explain(const struct neuron_core *core, uint64_t bytes,
		    struct neuron_mem_failure *failure)
{
	struct neuron_hbm_stats s = { .size = sizeof(s) };

	if (!failure)
		return;
	*failure = (struct neuron_mem_failure){
		.category = NEURON_MEM_NOTIFICATION,
		.hbm = core->hbm,
		.nc = core->nc,
		.bytes = bytes,
	};
	if (neuron_hbm_get_stats(core->device, core->hbm, &s))
		return;
	failure->total = s.total;
	failure->free = s.free;
	failure->largest_free = failure->largest_aligned = s.largest_free;
	failure->reason = s.free < bytes ? NEURON_MEM_REASON_FULL :
			  s.largest_free < bytes ? NEURON_MEM_REASON_FRAGMENTED :
			  NEURON_MEM_REASON_CAPPED;
}

static int open_queue(struct neuron_core *core, struct profile_buffer *b)
{
	struct neuron_ioctl_notifications_init_with_realloc_v2 init = {
		.nq_dev_id = core->nc,
		.nq_dev_type = NQ_DEVICE_TYPE_NEURON_CORE,
		.nq_type = b->type,
		.engine_index = b->engine,
		.size = (uint32_t)b->bytes,
		.dram_channel = core->hbm,
		.force_alloc_mem = 1,
	};
	const struct neuron_mem_opts opts = {
		.category = NEURON_MEM_NOTIFICATION, .hbm = core->hbm, .nc = core->nc,
	};
	struct neuron_mem *m = mem_new(core->device, b->bytes, &opts);
	int ret;

	if (!m)
		return -ENOMEM;
	ret = device_ioctl(core->device, NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &init);
	if (ret) {
		mem_drop(m);
		return ret;
	}
	mem_adopt(m, init.mem_handle, 0, init.mmap_offset);
	b->mem = m;
	return 0;
}

static int open_buffer(struct neuron_core *core, struct profile_buffer *b,
		       struct neuron_mem_failure *failure)
{
	int ret;

	if (b->type == PROFILE_NO_QUEUE)
		return core_alloc(core, NEURON_MEM_NOTIFICATION, 0, b->bytes, failure, &b->mem);
	ret = open_queue(core, b);
	if (ret == -ENOMEM)
		explain(core, b->bytes, failure);
	return ret;
}

static void free_buffers(struct profile_part *p)
{
	while (p->nr_buffers)
		neuron_mem_free(p->buffers[--p->nr_buffers].mem);
	p->complete = false;
}

static int open_buffers(struct profile_part *p)
{
	struct profile_buffer list[PROFILE_MAX_BUFFERS];
	size_t nr = profile_list(&p->core->device->geometry, &p->profile->opts, list);
	int ret = 0;

	for (size_t i = 0; i < nr && !ret; i++) {
		ret = open_buffer(p->core, &list[i], p->failure);
		if (!ret)
			p->buffers[p->nr_buffers++] = list[i];
	}
	p->complete = !ret;
	return ret;
}

/* ---- collecting -------------------------------------------------------------------- */

#define BY_TIME NR_ENGINES

/*
 * The last run of this epoch that @at is not before: a time, or the number of an engine's
 * instruction, as what it does late belongs to the run that gave it the program.
 */
static uint32_t run_of(const struct profile_part *p, uint32_t engine, uint64_t at)
{
	size_t low = p->epoch, high = p->nr_runs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct profile_run *r = &p->runs[mid];

		if ((engine == BY_TIME ? r->begin : r->first[engine]) <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low > p->epoch ? (uint32_t)(low - 1) : PROFILE_NO_RUN;
}

/* The file shows nothing of a run that is not wanted, or where there was none. */
static bool wanted(const struct profile_part *p, uint32_t run)
{
	return run != PROFILE_NO_RUN && p->runs[run].labels;
}

/* Adds an item, unless there are too many; @open tells where, for its end. */
static int add_item(struct profile_part *p, const struct neuron_isa_notice *n,
		    enum profile_type type, uint32_t run, uint32_t where, uint32_t id, size_t *open)
{
	int ret;

	if (p->nr_items >= PROFILE_MAX_ITEMS) {
		p->lost++;
		return 0;
	}
	ret = array_grow((void **)&p->items, p->nr_items, &p->max_items, sizeof(*p->items));
	if (ret)
		return ret;
	*open = p->nr_items;
	p->items[p->nr_items++] = (struct profile_item){
		.type = type,
		.begin = le64toh(n->data),
		.end = le64toh(n->data),
		.run = run,
		.where = where,
		.id = id,
		.code = n->code,
		.unfinished = type == PROFILE_INSTRUCTION,
	};
	return 0;
}

/* The notice says that the item that is @open has ended. */
static void end_item(struct profile_part *p, const struct neuron_isa_notice *n, size_t *open)
{
	if (*open != PROFILE_NO_ITEM) {
		struct profile_item *item = &p->items[*open];

		item->end = le64toh(n->data);
		item->unfinished = false;
		if (n->kind == NEURON_ISA_NOTICE_DMA_END)
			item->bytes = le32toh(n->id);
	}
	*open = PROFILE_NO_ITEM;
}

static int take_instruction(struct profile_part *p, const struct neuron_isa_notice *n,
			    size_t *open)
{
	uint32_t id = le32toh(n->id), run = run_of(p, n->engine, id);

	*open = PROFILE_NO_ITEM;
	return wanted(p, run) ? add_item(p, n, PROFILE_INSTRUCTION, run, n->engine,
					 id - p->runs[run].first[n->engine], open) : 0;
}

static int take_packet(struct profile_part *p, const struct neuron_isa_notice *n, uint32_t engine,
		       size_t *open)
{
	uint32_t slot = engine + p->core->device->geometry.engines_per_core * (n->phase >> 4);
	uint32_t run = run_of(p, BY_TIME, le64toh(n->data));

	*open = PROFILE_NO_ITEM;
	/* Queues of the core that are not the model's are left out. */
	return wanted(p, run) && find_ring(p->runs[run].labels, slot) >= 0 ?
	       add_item(p, n, PROFILE_PACKET, run, slot, le32toh(n->id), open) : 0;
}

static int take_semaphore(struct profile_part *p, const struct neuron_isa_notice *n)
{
	uint32_t run = run_of(p, BY_TIME, le64toh(n->data));
	size_t open;

	return wanted(p, run) ?
	       add_item(p, n, PROFILE_SEMAPHORE, run, n->code, le32toh(n->id), &open) : 0;
}

static int take(struct profile_part *p, const struct profile_buffer *b,
		const struct neuron_isa_notice *n, size_t *open)
{
	switch (n->kind) {
	case NEURON_ISA_NOTICE_BEGIN:
		return n->engine < NR_ENGINES ? take_instruction(p, n, open) : 0;
	case NEURON_ISA_NOTICE_DMA_BEGIN:
		return take_packet(p, n, b->engine, open);
	case NEURON_ISA_NOTICE_END:
		if (n->engine < NR_ENGINES)
			end_item(p, n, open);
		return 0;
	case NEURON_ISA_NOTICE_DMA_END:
		end_item(p, n, open);
		return 0;
	case NEURON_ISA_NOTICE_SEMAPHORE:
		return take_semaphore(p, n);
	case NEURON_ISA_NOTICE_LOST:
		p->lost += le64toh(n->data);
		return 0;
	default:
		return 0;
	}
}

/* Entries are there up to the first one without the phase of the first pass. */
static int read_buffer(struct profile_part *p, const struct profile_buffer *b,
		       struct neuron_isa_notice *piece)
{
	/* An index: the process can write what it likes between the two entries of an item. */
	size_t open = PROFILE_NO_ITEM;
	int ret;

	for (uint64_t off = 0; off < b->bytes; off += PIECE * sizeof(*piece)) {
		uint64_t left = (b->bytes - off) / sizeof(*piece);
		size_t nr = left < PIECE ? left : PIECE;

		ret = neuron_mem_read(b->mem, off, piece, nr * sizeof(*piece));
		for (size_t i = 0; i < nr && !ret; i++) {
			if (!(piece[i].phase & 1))
				return 0;
			ret = take(p, b, &piece[i], &open);
		}
		if (ret)
			return ret;
	}
	return 0;
}

static int collect(struct profile_part *p)
{
	struct neuron_isa_notice *piece = calloc(PIECE, sizeof(*piece));
	int ret = piece ? 0 : -ENOMEM;

	for (size_t i = 0; i < p->nr_buffers && !ret; i++)
		if (p->buffers[i].type != PROFILE_NO_QUEUE)
			ret = read_buffer(p, &p->buffers[i], piece);
	free(piece);
	return ret;
}

static void forget(struct profile_part *p)
{
	while (p->nr_runs)
		labels_put(p->runs[--p->nr_runs].labels);
	p->nr_items = 0;
	p->lost = 0;
	p->missing = 0;
	p->discard = false;
}

/* ---- what running a model tells ---------------------------------------------------- */

static bool starts_over(struct profile_part *p)
{
	if (!p->profile->opts.last_only || !p->nr_runs)
		return false;
	p->discard = true;
	return true;
}

static void after_reset(struct profile_part *p, bool works)
{
	int ret = collect(p);

	if (ret && !p->missing)
		p->missing = ret;
	/* Without the reset the driver keeps the queues, and their memory with them. */
	if (!works && p->nr_buffers)
		p->core->held = true;
	free_buffers(p);
	if (p->discard)
		forget(p);
	p->epoch = p->nr_runs;
	memset(p->next, 0, sizeof(p->next));
	if (!ret && works && !p->stopping)
		ret = open_buffers(p);
	if (ret && !p->error)
		p->error = ret;
}

static void run_begin(struct profile_part *p, const struct neuron_model *model)
{
	struct labels *const *only;
	struct profile_run *r;

	if (!model->labels)
		return;
	if (!p->complete && !p->missing)
		p->missing = p->error;
	if (p->nr_runs >= PROFILE_MAX_RUNS) {
		p->lost++;
		return;
	}
	if (array_grow((void **)&p->runs, p->nr_runs, &p->max_runs, sizeof(*p->runs))) {
		p->error = p->error ?: -ENOMEM;
		p->missing = p->missing ?: -ENOMEM;
		return;
	}
	only = p->profile->wanted;
	r = &p->runs[p->nr_runs++];
	*r = (struct profile_run){ .begin = now_ns(), .number = p->number++ };
	/* The last one stands for all that follow, so that what they do is not another's. */
	if (p->nr_runs == PROFILE_MAX_RUNS)
		p->lost++;
	else if (!only[0] || only[0] == model->labels || only[1] == model->labels)
		r->labels = labels_get(model->labels);
	memcpy(r->first, p->next, sizeof(r->first));
	for (uint32_t e = 0; e < NR_ENGINES; e++)
		p->next[e] += model->labels->nr_inst[e];
	p->running = true;
}

static void run_end(struct profile_part *p, int ret)
{
	if (!p->running)
		return;
	p->running = false;
	p->runs[p->nr_runs - 1].end = now_ns();
	p->runs[p->nr_runs - 1].ret = ret;
}

static const struct recorder_ops recorder = {
	.starts_over = starts_over,
	.reset = after_reset,
	.run_begin = run_begin,
	.run_end = run_end,
};

/* ---- for callers ------------------------------------------------------------------- */

static int start_part(struct profile_part *p, struct neuron_mem_failure *failure)
{
	int ret;

	TURN(&p->core->turn);
	if (p->core->profile)
		return -EBUSY;
	p->core->profile = p;
	p->core->recorder = &recorder;
	p->failure = failure;
	/* Makes the buffers, too. */
	ret = core_reset_locked(p->core);
	/* It is the caller's: resets from now on, of any thread, must not use it. */
	p->failure = NULL;
	return ret ?: p->error;
}

/* -EALREADY: it was not on. */
static int stop_part(struct profile_part *p)
{
	int ret;

	TURN(&p->core->turn);
	if (p->core->profile != p)
		return -EALREADY;
	p->stopping = true;
	ret = core_reset_locked(p->core);
	p->core->profile = NULL;
	return ret ?: p->error;
}

static void free_profile(struct neuron_profile *profile)
{
	for (size_t i = 0; i < profile->nr_parts; i++) {
		struct profile_part *p = &profile->parts[i];

		forget(p);
		free(p->runs);
		free(p->items);
		core_put(p->core);
	}
	labels_put(profile->wanted[0]);
	labels_put(profile->wanted[1]);
	free(profile);
}

NEURON_EXPORT int neuron_profile_start(struct neuron_core *core,
				       const struct neuron_profile_opts *opts,
				       struct neuron_profile **profile)
{
	struct neuron_profile_opts o;
	struct neuron_profile *p;
	int ret = opts_copy(&o, sizeof(o), opts) ?: profile_sizes(&o);

	if (ret)
		return ret;
	if (!profile || (o.model && o.model->core != core))
		return -EINVAL;
	if (device_inherited(core->device))
		return -EACCES;
	if (o.model && neuron_model_obstacle(o.model))
		return -EOPNOTSUPP;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->opts = o;
	/* They are the caller's for this call only. */
	p->opts.failure = NULL;
	p->opts.refused = NULL;
	p->opts.model = NULL;
	if (o.model) {
		p->wanted[0] = labels_get(o.model->labels);
		p->wanted[1] = o.model->peer ? labels_get(o.model->peer->labels) : NULL;
	}
	for (struct neuron_core *c = core; c; c = c->peer) {
		struct profile_part *part = &p->parts[p->nr_parts++];

		part->profile = p;
		part->core = core_get(c);
	}
	for (size_t i = 0; i < p->nr_parts && !ret; i++)
		ret = start_part(&p->parts[i], o.failure);
	if (ret) {
		if (ret == -ENOMEM && o.refused && o.failure &&
		    o.failure->reason != NEURON_MEM_REASON_NONE)
			o.refused(o.refused_data, o.failure, NULL);
		for (size_t i = 0; i < p->nr_parts; i++)
			stop_part(&p->parts[i]);
		free_profile(p);
		return ret;
	}
	*profile = p;
	return 0;
}

NEURON_EXPORT int neuron_profile_stop(struct neuron_profile *profile)
{
	int ret = 0;

	if (device_inherited(profile->parts[0].core->device))
		return -EACCES;
	for (size_t i = 0; i < profile->nr_parts; i++) {
		int r = stop_part(&profile->parts[i]);

		ret = ret ? ret : r;
	}
	return ret;
}

NEURON_EXPORT void neuron_profile_close(struct neuron_profile *profile)
{
	if (!profile)
		return;
	if (device_inherited(profile->parts[0].core->device)) {
		/* In a child the core is the parent's, and a list may be one that was growing. */
		for (size_t i = 0; i < profile->nr_parts; i++) {
			free_buffers(&profile->parts[i]);
			profile->parts[i].nr_runs = 0;
			profile->parts[i].runs = NULL;
			profile->parts[i].items = NULL;
		}
	} else {
		neuron_profile_stop(profile);
		for (size_t i = 0; i < profile->nr_parts; i++)
			core_take_back(profile->parts[i].core);
	}
	free_profile(profile);
}

/* What the device has written so far: only a reset can tell. */
static int catch_up(struct neuron_profile *profile)
{
	int ret = 0;

	for (size_t i = 0; i < profile->nr_parts && !ret; i++) {
		struct profile_part *p = &profile->parts[i];

		if (p->core->profile == p)
			ret = core_reset_locked(p->core);
	}
	return ret;
}

static void lock_parts(struct neuron_profile *profile)
{
	for (size_t i = 0; i < profile->nr_parts; i++)
		turn_take(&profile->parts[i].core->turn);
}

static void unlock_parts(struct neuron_profile *profile)
{
	for (size_t i = 0; i < profile->nr_parts; i++)
		turn_give(&profile->parts[i].core->turn);
}

/* What was collected, and nothing else. */
static struct neuron_profile *copy_profile(const struct neuron_profile *profile)
{
	struct neuron_profile *copy = calloc(1, sizeof(*copy));

	for (size_t i = 0; copy && i < profile->nr_parts; i++) {
		const struct profile_part *p = &profile->parts[i];
		struct profile_part *c = &copy->parts[copy->nr_parts++];

		c->core = core_get(p->core);
		c->runs = calloc(p->nr_runs + 1, sizeof(*c->runs));
		c->items = calloc(p->nr_items + 1, sizeof(*c->items));
		if (!c->runs || !c->items) {
			free_profile(copy);
			return NULL;
		}
		for (; c->nr_runs < p->nr_runs; c->nr_runs++) {
			c->runs[c->nr_runs] = p->runs[c->nr_runs];
			labels_get(c->runs[c->nr_runs].labels);
		}
		for (; c->nr_items < p->nr_items; c->nr_items++)
			c->items[c->nr_items] = p->items[c->nr_items];
		c->lost = p->lost;
	}
	return copy;
}

NEURON_EXPORT int neuron_profile_write(struct neuron_profile *profile, int fd)
{
	struct neuron_profile *copy = NULL;
	int ret, missing = 0;

	if (device_inherited(profile->parts[0].core->device))
		return -EACCES;
	lock_parts(profile);
	ret = catch_up(profile);
	if (!ret) {
		copy = copy_profile(profile);
		ret = copy ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < profile->nr_parts && !missing; i++)
		missing = profile->parts[i].missing;
	unlock_parts(profile);
	if (ret)
		return ret;
	/* Whoever reads it may take its time, or run a model on the core first. */
	ret = profile_write(copy, fd);
	free_profile(copy);
	return ret ? ret : missing;
}

NEURON_EXPORT int neuron_profile_get_stats(struct neuron_profile *profile,
					   struct neuron_profile_stats *stats)
{
	struct neuron_profile_stats out = { 0 };

	if (!result_valid(stats))
		return -EINVAL;
	if (device_inherited(profile->parts[0].core->device))
		return -EACCES;
	lock_parts(profile);
	for (size_t i = 0; i < profile->nr_parts; i++) {
		const struct profile_part *p = &profile->parts[i];

		out.runs += p->nr_runs;
		out.lost += p->lost;
		out.error = out.error ? out.error : p->error;
		for (size_t k = 0; k < p->nr_items; k++) {
			const struct profile_item *item = &p->items[k];

			out.instructions += item->type == PROFILE_INSTRUCTION;
			out.packets += item->type == PROFILE_PACKET;
			out.semaphores += item->type == PROFILE_SEMAPHORE;
			out.bytes += item->bytes;
		}
		for (size_t k = 0; k < p->nr_buffers; k++)
			out.memory += round_up(p->buffers[k].bytes, host_page());
	}
	unlock_parts(profile);
	result_copy(stats, &out, sizeof(out));
	return 0;
}

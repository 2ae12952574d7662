// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Whether models fit a device as it is now, or an empty one, on paper: processes that have nothing
 * there yet, one after the other, open cores, load models and allocate their inputs and outputs.  A
 * load tries what load_somehow() tries, and for each request the driver moves what may move.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../device/cgroup.h"
#include "../device/device.h"
#include "../device/opts.h"
#include "../isa/transfer.h"
#include "cargo.h"

/* The holes of all memories, and the scratchpads of all cores. */
struct scene {
	struct room room[NEURON_MAX_HBMS];
	struct pad pad[NEURON_MAX_CORES];
};

/* ---- places ------------------------------------------------------------------------ */

static void scene_free(struct scene *s)
{
	for (uint32_t i = 0; i < NEURON_MAX_HBMS; i++)
		room_free(&s->room[i]);
	memset(s, 0, sizeof(*s));
}

static bool scene_copy(struct cargo *c, struct scene *to, const struct scene *from)
{
	*to = *from;
	for (uint32_t i = 0; i < NEURON_MAX_HBMS; i++)
		to->room[i] = (struct room){ .count = 0 };
	for (uint32_t i = 0; i < NEURON_MAX_HBMS; i++)
		if (room_copy(&to->room[i], &from->room[i])) {
			c->error = -ENOMEM;
			scene_free(to);
			return false;
		}
	return true;
}

/* What moved for an attempt that failed stays where it is. */
static bool scene_follow(struct cargo *c, struct scene *s, const struct scene *tried)
{
	for (uint32_t i = 0; i < NEURON_MAX_HBMS; i++)
		if (tried->room[i].moved != s->room[i].moved &&
		    room_follow(&s->room[i], &tried->room[i])) {
			c->error = -ENOMEM;
			return false;
		}
	return true;
}

/* Places in the holes are asked for by address: nothing moves for them. */
static void scene_hold(struct scene *s, bool still)
{
	for (uint32_t i = 0; i < NEURON_MAX_HBMS; i++)
		s->room[i].still = still;
}

static bool scene_read(struct cargo *c, const struct held *held, uint64_t gone,
		       struct scene *s)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t nc = 0; nc < c->g->nr_cores; nc++)
		s->pad[nc] = (struct pad){ .of = &c->core[nc].pad, .hbm = c->core[nc].pad.hbm,
					   .page = c->core[nc].pad.page };
	for (uint32_t i = 0; i < NEURON_MAX_HBMS; i++)
		if (c->hbms >> i & 1 && (room_keep_use(&s->room[i]) ||
					 held_room(held, i, gone, &s->room[i]))) {
			c->error = -ENOMEM;
			scene_free(s);
			return false;
		}
	return true;
}

/* Memory that is asked for by itself, as the runtime does. */
static bool place_one(struct cargo *c, struct scene *s, uint32_t nc, uint64_t bytes)
{
	uint32_t hbm = c->g->core_hbm[nc];
	uint64_t at;
	int ret = bytes ? room_ask(&s->room[hbm], bytes, 0, c->own, &at) : 0;

	c->stuck = hbm;
	if (ret == -ENOMEM)
		c->error = ret;
	return !ret;
}

/* What opening its core takes: for a moment a page, then microcode. */
static bool place_core(struct cargo *c, struct scene *s, uint32_t nc)
{
	c->stuck = c->g->core_hbm[nc];
	return s->room[c->stuck].count && place_one(c, s, nc, c->microcode);
}

/* The driver's own choice comes first, then the same with scratchpads close together. */
static bool place_node(struct cargo *c, struct scene *s, struct cargo_node *n)
{
	const struct way own[] = { { c->own, false, false, true }, { c->own, false, true, true } };

	c->stuck = c->g->core_hbm[n->nc];
	for (size_t i = 0; i < 2 + NR_WAYS; i++) {
		struct scene next;

		if (!scene_copy(c, &next, s))
			return false;
		scene_hold(&next, i >= 2);
		if (attempt_place(&n->attempt, next.room, &next.pad[n->nc],
				  i < 2 ? &own[i] : &ways[i - 2], NULL)) {
			scene_hold(&next, false);
			scene_free(s);
			*s = next;
			return true;
		}
		if (!n->attempt.error && !scene_follow(c, s, &next))
			n->attempt.error = c->error;
		scene_free(&next);
		if (n->attempt.error) {
			c->error = n->attempt.error;
			return false;
		}
	}
	return false;
}

/* Where a network puts them, that is at no end of the memory. */
static bool place_edges(struct cargo *c, struct scene *s, const struct cargo_file *f)
{
	enum room_fit own = c->own;
	bool fits = true;

	c->own = own == ROOM_OWN_HIGH ? ROOM_OWN : own;
	for (size_t request = 0; request <= f->neff->nr_nodes && fits; request++)
		for (size_t i = 0; i < f->nr_edges && fits; i++)
			fits = place_one(c, s, f->nc, f->edge[i]);
	c->own = own;
	return fits;
}

static bool place_file(struct cargo *c, struct scene *s, struct cargo_file *f)
{
	for (size_t i = 0; i < f->nr_nodes; i++)
		if (!place_node(c, s, &f->node[i]))
			return false;
	return place_edges(c, s, f);
}

static bool place_tensors(struct cargo *c, struct scene *s, const struct cargo_file *f)
{
	uint64_t longest = f->plan.io_longest;
	bool fits = true;

	/* What takes nothing would never be too much. */
	if (!longest)
		return true;
	for (uint64_t set = 0; set < c->o.io_sets && fits; set++)
		if (c->o.io_single)
			fits = place_one(c, s, f->nc, longest);
		else
			for (size_t i = 0; i < f->nr_tensors && fits; i++)
				fits = place_one(c, s, f->nc, f->tensor[i]);
	return fits;
}

/* Another process keeps its cores until it is gone. */
static bool cores_are_free(const struct cargo *c, const struct held *held, uint64_t gone)
{
	for (uint32_t nc = 0; nc < c->g->nr_cores; nc++)
		if (c->core[nc].used && (c->core[nc].claimed || (c->core[nc].owner &&
		    !held_gone(held, gone, c->core[nc].owner, NEURON_RELEASE_PROCESS))))
			return false;
	return true;
}

/* Nothing moves for notification queues, and in no mode they go to an end of the memory. */
static bool place_profile(struct cargo *c, struct scene *s, uint32_t nc)
{
	enum room_fit fit = c->own == ROOM_OWN_HIGH ? ROOM_OWN : c->own;
	struct room *room = &s->room[c->g->core_hbm[nc]];
	uint64_t at;
	int ret = 0;

	c->stuck = c->g->core_hbm[nc];
	for (size_t i = 0; i < c->nr_buffers && !ret; i++)
		ret = c->buffer[i].type == PROFILE_NO_QUEUE ?
		      room_ask(room, c->buffer[i].bytes, 0, fit, &at) :
		      room_take(room, c->buffer[i].bytes, 0, fit, &at);
	if (ret == -ENOMEM)
		c->error = ret;
	return !ret;
}

/* The rings of the first operation, then staging: copies of inputs, here in one piece. */
static bool place_collectives(struct cargo *c, struct scene *s, uint32_t nc)
{
	uint64_t ring = c->o.computes ? COMPUTE_RINGS / 2 : 0;

	return place_one(c, s, nc, ring) && place_one(c, s, nc, ring) &&
	       place_one(c, s, nc, c->o.collectives);
}

/* All that one process does. */
static bool place_process(struct cargo *c, struct scene *s, uint64_t process)
{
	bool fits = true;

	for (uint32_t nc = 0; nc < c->g->nr_cores && fits; nc++)
		if (c->core[nc].opened && c->core[nc].process == process)
			fits = place_core(c, s, nc);
	for (size_t i = 0; i < c->nr && fits; i++) {
		struct cargo_file *f = &c->file[c->order[i]];

		if (f->process == process)
			fits = place_file(c, s, f) && (!c->o.io_each || place_tensors(c, s, f));
	}
	for (size_t i = 0; i < c->nr && fits && !c->o.io_each; i++)
		if (c->file[c->order[i]].process == process)
			fits = place_tensors(c, s, &c->file[c->order[i]]);
	for (uint32_t nc = 0; nc < c->g->nr_cores && fits; nc++)
		if (c->core[nc].used && c->core[nc].process == process)
			fits = place_profile(c, s, nc);
	for (uint32_t nc = 0; nc < c->g->nr_cores && fits; nc++)
		if (c->core[nc].used && c->core[nc].process == process && !(nc % c->o.lnc))
			fits = place_collectives(c, s, nc);
	return fits;
}

/* Is the file at @i of the order the first one of its process? */
static bool begins_process(const struct cargo *c, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (c->file[c->order[k]].process == c->file[c->order[i]].process)
			return false;
	return true;
}

static bool fits_with(struct cargo *c, const struct held *held, uint64_t gone, enum room_fit own)
{
	struct scene s;
	bool fits = held->empty || cores_are_free(c, held, gone);

	if (!fits || !scene_read(c, held, gone, &s))
		return false;
	c->own = own;
	for (size_t i = 0; i < c->nr && fits; i++)
		if (begins_process(c, i))
			fits = place_process(c, &s, c->file[c->order[i]].process);
	c->moved = 0;
	for (uint32_t i = 0; i < NEURON_MAX_HBMS; i++)
		c->moved += s.room[i].moved;
	scene_free(&s);
	return fits;
}

/* Where the driver would put it, but for what the frames of those who are there leave. */
static bool fits_likely(struct cargo *c, const struct held *held, uint64_t gone)
{
	return fits_with(c, held, gone, c->o.contiguous ? ROOM_OWN_HIGH : ROOM_OWN);
}

/*
 * What is named is to be enough, but of a set that leaves hardly a byte free it depends on the
 * driver's choice, which is not known to the byte where others are: so it has to be enough with any.
 */
static bool fits_surely(void *data, const struct held *held, uint64_t gone)
{
	return fits_likely(data, held, gone) && fits_with(data, held, gone, ROOM_HIGHEST) &&
	       fits_with(data, held, gone, ROOM_TIGHTEST) &&
	       fits_with(data, held, gone, ROOM_LOWEST);
}

/* ---- the answer -------------------------------------------------------------------- */

static uint64_t need_of_hbm(const struct cargo *c, uint32_t hbm)
{
	uint64_t sum = 0;

	for (uint32_t nc = 0; nc < c->g->nr_cores; nc++)
		if (c->g->core_hbm[nc] == hbm)
			add_capped(&sum, c->core[nc].need);
	return sum;
}

/* Returns the bytes that can be allocated of it at all. */
static uint64_t look_at(const struct cargo *c, const struct held *held, uint32_t hbm,
			struct neuron_fit *out)
{
	uint64_t all = 0;

	out->hbm = hbm;
	out->need = need_of_hbm(c, hbm);
	out->free = 0;
	out->largest_free = 0;
	for (size_t i = 0; i < held->hbm[hbm].count; i++) {
		const struct neuron_range *r = &held->hbm[hbm].list[i];

		if (r->state != NEURON_RANGE_RESERVED)
			all += r->bytes;
		if (r->state != NEURON_RANGE_FREE)
			continue;
		out->free += r->bytes;
		out->largest_free = MAX(out->largest_free, r->bytes);
	}
	return all;
}

static bool is_too_large(const struct cargo *c, const struct held *held, struct neuron_fit *out)
{
	for (uint32_t i = 0; i < c->g->nr_hbms; i++) {
		struct neuron_fit seen = *out;
		uint64_t all = c->hbms >> i & 1 ? look_at(c, held, i, &seen) : UINT64_MAX;

		if (all >= seen.need)
			continue;
		*out = seen;
		snprintf(out->text, sizeof(out->text), "does not fit the device: HBM %u has %s, %s are needed",
			 i, SIZE_TEXT(all), SIZE_TEXT(out->need));
		return true;
	}
	return false;
}

/* What the process with the most of them needs. */
static uint64_t need_of_process(const struct cargo *c)
{
	uint64_t most = 0;

	for (size_t i = 0; i < c->nr; i++) {
		uint64_t sum = 0;

		for (uint32_t nc = 0; nc < c->g->nr_cores; nc++)
			if (c->core[nc].process == c->file[i].process)
				add_capped(&sum, c->core[nc].need);
		most = MAX(most, sum);
	}
	return most;
}

/* A new process has the limit that the device has for those without one of their own. */
static int read_limit(const struct cargo *c, uint32_t nc, uint64_t *need, uint64_t *limit,
		      uint64_t *used)
{
	*used = 0;
	if (nc < c->g->nr_cores) {
		*need = c->core[nc].need;
		return neuron_limit_get(c->device, NEURON_LIMIT_CORE, (int32_t)nc, limit, used);
	}
	*need = need_of_process(c);
	return neuron_limit_get(c->device, NEURON_LIMIT_DEFAULT, 0, limit, NULL);
}

static void cap(struct neuron_fit *out, uint64_t need, uint64_t limit, uint64_t used)
{
	out->reason = NEURON_MEM_REASON_CAPPED;
	out->need = need;
	out->limit = limit;
	out->limit_used = used;
	out->free = limit - MIN(used, limit);
	out->largest_free = out->free;
}

/* Of each core, at last of a process. */
static int check_limits(const struct cargo *c, struct neuron_fit *out)
{
	uint64_t need, limit, used;

	for (uint32_t nc = 0; nc <= c->g->nr_cores; nc++) {
		bool process = nc == c->g->nr_cores;
		char core[32];
		int ret;

		if (!process && !c->core[nc].used)
			continue;
		ret = read_limit(c, nc, &need, &limit, &used);
		if (ret)
			return ret;
		if (limit == NEURON_LIMIT_NONE || (used <= limit && need <= limit - used))
			continue;
		snprintf(core, sizeof(core), "core %u", nc);
		cap(out, need, limit, used);
		out->nc = process ? UINT32_MAX : nc;
		snprintf(out->text, sizeof(out->text),
			 "is not allowed: the limit of %s leaves %s of %s, %s are needed",
			 process ? "a process" : core,
			 SIZE_TEXT(out->free), SIZE_TEXT(limit), SIZE_TEXT(need));
		return 0;
	}
	return 0;
}

/* Does the driver check what is written into rings, so that it has to know what is in them? */
static bool driver_checks(const struct neuron_device *device)
{
	char text[16];

	return device_line(device, "isolation", text, sizeof(text)) && !strcmp(text, "checked");
}

/* The driver's tables of what rings name: where it checks them, 8 bytes for a slot of 16. */
static uint64_t ring_tables(const struct neuron_plan *plan)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < plan->nr_parts; k++) {
		const struct neuron_model_usage *u = &plan->parts[k];

		add_capped(&sum, u->rings_io / 2);
		add_capped(&sum, u->rings_spill / 2);
		add_capped(&sum, u->rings_runtime / 2);
	}
	return sum;
}

/*
 * Host memory that is taken to load and run them, at least: by the driver, with its notification
 * queues, and by the @library.  That needs most of it for a file before the driver has the tables
 * of all its rings.
 */
static uint64_t need_of_host(const struct cargo *c, bool library)
{
	bool checks = driver_checks(c->device);
	uint64_t held = 0, most = 0;

	for (uint32_t nc = 0; nc < c->g->nr_cores; nc++)
		add_capped(&held, c->core[nc].opened ? 2 * round_up(NQ_BYTES, host_page()) : 0);
	for (size_t i = 0; i < c->nr; i++) {
		const struct cargo_file *f = &c->file[c->order[i]];
		const struct neuron_plan *plan = &f->plan;
		uint64_t loading = held;

		add_capped(&loading, library ? plan->host_peak : 0);
		most = MAX(most, loading);
		add_capped(&held, library ? plan->host_kept : 0);
		for (size_t k = 0; k < f->nr_nodes; k++)
			add_capped(&held, checks ? ring_tables(&f->node[k].plan) : 0);
	}
	return MAX(most, held);
}

static bool cgroup_caps(const struct cgroup_limit *l, uint64_t need, struct neuron_fit *out)
{
	if (!l->path[0] || (l->used <= l->bytes && need <= l->bytes - l->used))
		return false;
	cap(out, need, l->bytes, l->used);
	memcpy(out->cgroup, l->path, sizeof(out->cgroup));
	return true;
}

/* All processes are of the group of this one. */
static void check_cgroups(const struct cargo *c, struct neuron_fit *out)
{
	struct cgroup_limits l;

	cgroup_limits(neuron_device_index(c->device), c->hbms, &l);
	for (uint32_t i = 0; i < c->g->nr_hbms; i++) {
		if (!(c->hbms >> i & 1) || !cgroup_caps(&l.hbm[i], need_of_hbm(c, i), out))
			continue;
		out->hbm = i;
		snprintf(out->text, sizeof(out->text),
			 "is not allowed: the cgroup %s allows %s of HBM %u, %s are used, %s are needed",
			 out->cgroup, SIZE_TEXT(out->limit), i, SIZE_TEXT(out->limit_used),
			 SIZE_TEXT(out->need));
		return;
	}
	if (cgroup_caps(&l.host, need_of_host(c, !l.swap), out))
		snprintf(out->text, sizeof(out->text),
			 "is not allowed: memory.max of the cgroup %s allows %s of host memory, at least %s are used, the driver%s needs %s, %s too much",
			 out->cgroup, SIZE_TEXT(out->limit), SIZE_TEXT(out->limit_used),
			 l.swap ? "" : " with the library", SIZE_TEXT(out->need),
			 SIZE_TEXT(out->need - out->free));
}

/* Which core is taken, or which memory is too full or too fragmented. */
static void explain(const struct cargo *c, const struct held *held, struct neuron_fit *out)
{
	for (uint32_t nc = 0; nc < c->g->nr_cores; nc++) {
		if (!c->core[nc].used || !(c->core[nc].owner || c->core[nc].claimed))
			continue;
		out->nc = nc;
		out->pid = c->core[nc].owner > 0 ? c->core[nc].owner : 0;
		if (c->core[nc].claimed)
			snprintf(out->text, sizeof(out->text),
				 "does not fit now: another process has claimed core %u", nc);
		else if (!out->pid)
			snprintf(out->text, sizeof(out->text),
				 "does not fit now: core %u is of a process outside", nc);
		else
			snprintf(out->text, sizeof(out->text),
				 "does not fit now: core %u is of process %d", nc, out->pid);
		return;
	}
	for (uint32_t i = 0; i < c->g->nr_hbms; i++) {
		if (!(c->hbms >> i & 1))
			continue;
		look_at(c, held, i, out);
		if (out->need <= out->free)
			continue;
		out->reason = NEURON_MEM_REASON_FULL;
		snprintf(out->text, sizeof(out->text),
			 "does not fit now: HBM %u has %s free, %s are needed", i,
			 SIZE_TEXT(out->free), SIZE_TEXT(out->need));
		return;
	}
	look_at(c, held, c->stuck, out);
	out->reason = NEURON_MEM_REASON_FRAGMENTED;
	snprintf(out->text, sizeof(out->text),
		 "does not fit now: HBM %u has %s free, but no more than %s in one piece, %s are needed",
		 out->hbm, SIZE_TEXT(out->free), SIZE_TEXT(out->largest_free), SIZE_TEXT(out->need));
}

/* The driver tells whose memory it is to root and to the same user. */
static bool is_hidden(int32_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return geteuid() && (stat(path, &st) || st.st_uid != geteuid());
}

/* Who has a core goes as a whole, also if it has nothing of these memories, or what is hidden. */
static void add_owners(const struct cargo *c, struct held *held)
{
	for (uint32_t nc = 0; nc < c->g->nr_cores; nc++) {
		int32_t pid = c->core[nc].used ? c->core[nc].owner : 0;

		if (pid <= 0 || held->count == HELD_OBJECTS ||
		    held_gone(held, UINT64_MAX, pid, NEURON_RELEASE_PROCESS))
			continue;
		held->object[held->count++] = (struct neuron_release_item){
			.pid = pid, .owner = NEURON_RELEASE_PROCESS,
			.bytes = is_hidden(pid) ? NEURON_RELEASE_UNKNOWN : 0,
		};
	}
}

static int by_bytes(const void *a, const void *b, void *data)
{
	struct cargo_file *file = data;
	uint64_t pieces, x = cargo_least(&file[*(const uint32_t *)a], &pieces);
	uint64_t y = cargo_least(&file[*(const uint32_t *)b], &pieces);

	return x < y ? 1 : x > y ? -1 : 0;
}

static void swap(uint32_t *list, size_t a, size_t b)
{
	uint32_t was = list[a];

	list[a] = list[b];
	list[b] = was;
}

/* Heap's permutations, from the longest file first; of more files than six not all. */
static bool find_order(struct cargo *c, const struct held *held)
{
	uint32_t turn[NEURON_FIT_ORDER] = { 0 };
	unsigned int tries = 720;

	qsort_r(c->order, c->nr, sizeof(*c->order), by_bytes, c->file);
	for (size_t i = 0; i < c->nr && tries && !c->error;) {
		if (!i) {
			if (fits_surely(c, held, 0))
				return true;
			tries--;
			i = 1;
		}
		if (turn[i] == i) {
			turn[i++] = 0;
			continue;
		}
		swap(c->order, i % 2 ? turn[i] : 0, i);
		turn[i]++;
		i = 0;
	}
	return false;
}

static void name_order(struct cargo *c, const struct held *held, struct neuron_fit *out)
{
	size_t at = strlen(out->text);

	if (out->reason != NEURON_MEM_REASON_FRAGMENTED || c->nr < 2 || c->nr > NEURON_FIT_ORDER)
		return;
	if (find_order(c, held)) {
		out->nr_order = (uint32_t)c->nr;
		memcpy(out->order, c->order, c->nr * sizeof(*c->order));
		snprintf(out->text + at, sizeof(out->text) - at, "; it would fit in another order");
	}
	for (uint32_t i = 0; i < c->nr; i++)
		c->order[i] = i;
}

/* What it takes longer to ask for a place if there is something to move for it. */
static uint64_t count_movable(const struct held *held)
{
	uint64_t n = 0;

	for (uint32_t hbm = 0; hbm < NEURON_MAX_HBMS && held->moves; hbm++)
		for (size_t i = 0; i < held->hbm[hbm].count; i++)
			n += held->hbm[hbm].list[i].movable != 0;
	return n;
}

static void name_release(struct cargo *c, const struct held *held, struct neuron_fit *out)
{
	uint64_t need = 0, pieces = 1 + count_movable(held), n;
	char text[256];
	size_t at = strlen(out->text);

	for (uint32_t nc = 0; nc < c->g->nr_cores; nc++)
		add_capped(&need, c->core[nc].need);
	for (size_t i = 0; i < c->nr; i++) {
		cargo_least(&c->file[i], &n);
		pieces += n + c->file[i].nr_tensors * c->o.io_sets + c->nr_buffers * c->o.lnc +
			  c->file[i].nr_edges * (c->file[i].neff->nr_nodes + 1);
	}
	out->release.size = sizeof(out->release);
	if (held_search(held, need, pieces * (NR_WAYS + 1) * 4, fits_surely, c, &out->release))
		return;
	snprintf(out->text + at, sizeof(out->text) - at, "; it would fit without %s",
		 neuron_release_text(&out->release, text, sizeof(text)));
}

/* The sum is not all: what is in one piece, and what is aligned, parts the memory. */
static bool is_parted(struct cargo *c, struct held *held, struct neuron_fit *out)
{
	bool was = held->empty, parted;
	uint64_t all;

	held->empty = true;
	parted = !fits_likely(c, held, 0) && !c->error;
	if (parted) {
		all = look_at(c, held, c->stuck, out);
		out->reason = NEURON_MEM_REASON_FRAGMENTED;
		snprintf(out->text, sizeof(out->text),
			 "does not fit the device: HBM %u has %s, %s are needed, but some of that finds no place",
			 out->hbm, SIZE_TEXT(all), SIZE_TEXT(out->need));
		name_order(c, held, out);
	}
	held->empty = was;
	return parted;
}

static int judge(struct cargo *c, struct held *held, struct neuron_fit *out)
{
	int ret;

	out->verdict = NEURON_FIT_NEVER;
	if (is_too_large(c, held, out) || is_parted(c, held, out) || c->error)
		return c->error;
	out->verdict = NEURON_FIT_NOT_NOW;
	ret = c->device ? check_limits(c, out) : 0;
	if (!ret && !out->reason && c->device)
		check_cgroups(c, out);
	if (ret || out->reason)
		return ret;
	add_owners(c, held);
	if (held->empty || fits_likely(c, held, 0)) {
		out->verdict = NEURON_FIT_NOW;
		out->moved = held->empty ? 0 : c->moved;
		if (out->moved)
			snprintf(out->text, sizeof(out->text), "fits now if %s that others hold can be moved then",
				 SIZE_TEXT(out->moved));
		else
			snprintf(out->text, sizeof(out->text), held->empty ? "fits" : "fits now");
		return 0;
	}
	explain(c, held, out);
	name_order(c, held, out);
	name_release(c, held, out);
	return c->error;
}

static int list_buffers(struct cargo *c)
{
	struct neuron_profile_opts sizes;

	if (!c->o.profile)
		return 0;
	if (!c->o.buffers || opts_copy(&sizes, sizeof(sizes), c->o.buffers) ||
	    profile_sizes(&sizes) || c->o.profile != neuron_profile_memory(c->g, c->o.buffers))
		return -EINVAL;
	c->nr_buffers = profile_list(c->g, &sizes, c->buffer);
	return 0;
}

static int find_fit(struct cargo *c, const struct neuron_fit_file *files, size_t nr,
		    const struct neuron_plan_opts *opts, uint64_t reserved, struct neuron_fit *fit)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_fit out = { .hbm = UINT32_MAX, .nc = UINT32_MAX };
	struct held held = { .count = 0 };
	int ret = opts_copy(&c->o, sizeof(c->o), opts);

	if (ret)
		return ret;
	if (!c->o.lnc)
		c->o.lnc = 1;
	if (!c->o.scratchpad_page)
		c->o.scratchpad_page = SCRATCHPAD_PAGE;
	if (!nr || !result_valid(files) || !result_valid(fit) || list_buffers(c) ||
	    c->o.lnc > MAX_PARTS || !scratchpad_page_valid(c->o.scratchpad_page))
		return -EINVAL;
	ret = cargo_open(c, files, nr, &error);
	if (!ret)
		ret = c->device ? held_read(&held, c->device, c->hbms, 0) :
				  held_new(&held, c->g, reserved);
	held.moves = c->device && atomic_load(&c->device->compact);
	ret = ret ?: judge(c, &held, &out);
	held_free(&held);
	cargo_close(c);
	if (!ret)
		result_copy(fit, &out, sizeof(out));
	else if (result_valid(c->o.error))
		result_copy(c->o.error, &error, sizeof(error));
	return ret;
}

NEURON_EXPORT int neuron_models_fit(struct neuron_device *device,
				    const struct neuron_fit_file *files, size_t nr,
				    const struct neuron_plan_opts *opts, uint64_t microcode,
				    struct neuron_fit *fit)
{
	struct cargo c = { .device = device, .microcode = microcode };

	if (!device)
		return -EINVAL;
	c.g = neuron_device_geometry(device);
	return find_fit(&c, files, nr, opts, 0, fit);
}

NEURON_EXPORT int neuron_models_fit_empty(const struct neuron_geometry *geometry,
					  uint64_t reserved, const struct neuron_fit_file *files,
					  size_t nr, const struct neuron_plan_opts *opts,
					  uint64_t microcode, struct neuron_fit *fit)
{
	struct cargo c = { .g = geometry, .microcode = microcode };

	return geometry ? find_fit(&c, files, nr, opts, reserved, fit) : -EINVAL;
}

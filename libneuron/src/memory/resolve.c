// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Whose an address is, or was: variables of the models of this process, which it remembers
 * after they were unloaded, then what the driver knows of its memory and its last events.  A
 * pointer of the process is first looked up in what it has mapped, or had.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/history.h"
#include "../../common/lock.h"
#include "../../common/maps.h"
#include "../../common/wait.h"
#include "../device/mapping.h"
#include "../device/opts.h"
#include "../device/sys.h"
#include "resolve.h"

/* Of models that are not loaded any more. */
#define KEPT_MODELS	64u
#define KEPT_BYTES	(4ull << 20)

/* ---- models of this process -------------------------------------------------------- */

struct symbols *symbols_add(struct neuron_device *device, uint32_t nc, const struct symbol *symbol,
			    size_t count, const char *names, size_t size)
{
	size_t all = sizeof(struct symbols) + count * sizeof(*symbol) + size;
	struct symbols *s = malloc(all);

	if (!s)
		return NULL;
	*s = (struct symbols){ .nc = nc, .size = all, .count = count,
			       .names = (char *)&s->list[count] };
	memcpy(s->list, symbol, count * sizeof(*symbol));
	memcpy(&s->list[count], names, size);
	GUARD(&device->symbols_lock);
	s->next = device->symbols;
	device->symbols = s;
	return s;
}

/* Where the one that was freed first is linked, if there are too many of them. */
static struct symbols **oldest(struct neuron_device *device)
{
	struct symbols **old = NULL;
	size_t nr = 0, bytes = 0;

	for (struct symbols **p = &device->symbols; *p; p = &(*p)->next) {
		if (!(*p)->freed)
			continue;
		nr++;
		bytes += (*p)->size;
		if (!old || (*p)->freed < (*old)->freed)
			old = p;
	}
	return nr > (device->remember ? KEPT_MODELS : 0) || (nr > 1 && bytes > KEPT_BYTES) ? old : NULL;
}

void symbols_retire(struct neuron_device *device, struct symbols *symbols)
{
	struct symbols **old, *gone;

	if (!symbols)
		return;
	GUARD(&device->symbols_lock);
	symbols->freed = now_ns();
	while ((old = oldest(device))) {
		gone = *old;
		*old = gone->next;
		free(gone);
	}
}

/* Variables of a scratchpad can share bytes: the first one is told, and how many others. */
static const struct symbol *find_symbol(const struct symbols *s, uint64_t address,
					uint32_t *others)
{
	const struct symbol *found = NULL;

	*others = 0;
	for (size_t i = 0; i < s->count; i++) {
		if (address - s->list[i].address >= s->list[i].bytes)
			continue;
		if (found)
			++*others;
		else
			found = &s->list[i];
	}
	return found;
}

/*
 * The variable that is there, or with @freed the one that was there last, if it was freed after
 * @since.  Return: when it was freed; 0: it was not, or there is none.
 */
static uint64_t name_variable(struct neuron_device *device, uint64_t address, bool freed,
			      uint64_t since, struct neuron_location *out)
{
	const struct symbol *found = NULL;
	const struct symbols *in = NULL;
	uint32_t others;

	GUARD(&device->symbols_lock);
	for (const struct symbols *s = device->symbols; s; s = s->next) {
		const struct symbol *v;

		if (!!s->freed != freed || (freed ? s->freed <= since : found != NULL))
			continue;
		v = find_symbol(s, address, &others);
		if (!v)
			continue;
		found = v;
		in = s;
		since = s->freed;
		out->others = others;
	}
	if (!found)
		return 0;
	snprintf(out->model, sizeof(out->model), "%s", in->names);
	snprintf(out->variable, sizeof(out->variable), "%s", in->names + found->name);
	out->offset = address - found->address;
	out->variable_bytes = found->bytes;
	out->nc = in->nc;
	return in->freed;
}

/* ---- what the driver knows --------------------------------------------------------- */

static bool covers(const struct neuron_event *e, uint64_t address, bool freed, uint64_t *start)
{
	switch (e->kind) {
	case NEURON_EVENT_ALLOC:
	case NEURON_EVENT_GROW:
		*start = e->address;
		return !freed && address - *start < e->bytes;
	case NEURON_EVENT_FREE:
	case NEURON_EVENT_SHRINK:
		*start = e->address;
		return freed && address - *start < e->bytes;
	case NEURON_EVENT_MOVE:
		*start = freed ? e->free : e->address;
		return address - *start < e->bytes;
	default:
		return false;
	}
}

static void name_owner(struct neuron_device *device, struct neuron_location *out)
{
	struct neuron_owners all = { .size = sizeof(all) };
	/* Host memory is of all of them. */
	uint32_t hbm = out->hbm == UINT32_MAX ? 0 : out->hbm;

	if (neuron_hbm_get_owners(device, hbm, 0, &all))
		return;
	for (size_t i = 0; i < all.count; i++)
		if (all.list[i].pid == out->pid && all.list[i].id == out->owner)
			memcpy(out->label, all.list[i].label, sizeof(out->label));
	free(all.list);
}

/* The last event that gave or took the address, which the driver may have forgotten. */
static uint64_t last_event(struct neuron_device *device, uint64_t address,
			   struct neuron_location *out)
{
	struct neuron_event *list;
	uint64_t since = 0, start, time = 0;
	size_t n;

	if (neuron_hbm_get_events(device, out->hbm, &since, &list, &n))
		return 0;
	while (n-- && !time) {
		const struct neuron_event *e = &list[n];

		if (!covers(e, address, out->freed, &start))
			continue;
		time = e->time;
		out->owner = e->owner;
		if (!out->freed)
			continue;
		out->address = start;
		out->bytes = e->bytes;
		out->pid = e->pid;
		out->nc = e->nc;
		out->category = e->category;
	}
	free(list);
	return time;
}

static int read_range(struct neuron_device *device, uint64_t address, struct neuron_location *out)
{
	struct history h = { 0 };
	int ret = neuron_hbm_get_ranges(device, out->hbm, &h.range, &h.count);
	size_t at = ret ? 0 : history_find(&h, address);

	if (!ret && at < h.count && address >= h.range[at].address) {
		const struct neuron_range *r = &h.range[at];

		out->state = r->state;
		out->address = r->address;
		out->bytes = r->bytes;
		out->pid = r->pid;
		out->category = r->category;
		out->nc = r->nc;
	}
	free(h.range);
	return ret;
}

/* ---- both -------------------------------------------------------------------------- */

static uint32_t find_hbm(const struct neuron_geometry *g, uint64_t address)
{
	for (uint32_t i = 0; i < g->nr_hbms; i++)
		if (address - g->hbm[i].base < g->hbm[i].size)
			return i;
	return UINT32_MAX;
}

/* "tensors of process 12 (kv-cache)" and the offset; the size of the text so far. */
static int allocation_text(const struct neuron_location *l, uint64_t address, char *text,
			   size_t size)
{
	unsigned long long offset = address - l->address;
	const char *category = neuron_mem_category_name(l->category);

	if (!l->pid)
		return snprintf(text, size, "memory of a process that has ended, or is another user's");
	if (!*l->label)
		return snprintf(text, size, "%s of process %d + %llu", category, l->pid, offset);
	return snprintf(text, size, "%s of process %d (%s) + %llu", category, l->pid, l->label,
			offset);
}

/* Whose state buffer and registers are there. */
static uint32_t find_core(const struct neuron_geometry *g, uint64_t address)
{
	for (uint32_t i = 0; i < g->nr_cores; i++)
		if (address - g->tpb_base[i] < g->tpb_size)
			return i;
	return UINT32_MAX;
}

static void core_text(const struct neuron_location *l, uint64_t address,
		      const struct neuron_geometry *g, char *text, size_t size)
{
	uint64_t offset = address - g->tpb_base[l->nc];

	if (offset < g->sbuf_size)
		snprintf(text, size, "state buffer of core %u + %llu", l->nc,
			 (unsigned long long)offset);
	else
		snprintf(text, size, "core %u + %llu, behind its state buffer", l->nc,
			 (unsigned long long)offset);
}

static void describe(struct neuron_location *l, uint64_t address,
		     const struct neuron_geometry *g, const char *before)
{
	char *text = l->text, age[48] = "";
	size_t room = sizeof(l->text), at = 0;

	if (l->freed_ns)
		snprintf(age, sizeof(age), ", freed %.3f s ago", (double)l->freed_ns / 1e9);
	if (l->freed)
		at = (size_t)snprintf(text, room, "%s, before: ", before);
	if (*l->variable) {
		at += (size_t)snprintf(text + at, room - at, "%.60s + %llu", l->variable,
				       (unsigned long long)l->offset);
		if (l->others)
			at += (size_t)snprintf(text + at, room - at, " (or one of %u others)",
					       l->others);
		snprintf(text + at, room - at, " of model %.60s%s", l->model, age);
	} else if (l->pid || l->freed_ns) {
		at += (size_t)allocation_text(l, address, text + at, room - at);
		snprintf(text + at, room - at, "%s", age);
	} else if (l->hbm == UINT32_MAX && l->nc != UINT32_MAX) {
		core_text(l, address, g, text, room);
	} else if (l->hbm == UINT32_MAX) {
		snprintf(text, room, "%s", g->host_window && (address & g->host_window) ?
			 "host memory" : "no device memory");
	} else {
		static const char *const states[] = {
			[NEURON_RANGE_FREE] = "free memory",
			[NEURON_RANGE_USED] = "memory of the driver, or of another user",
			[NEURON_RANGE_RESERVED] = "reserved memory",
			[NEURON_RANGE_OWNED] = "memory of a process",
		};

		snprintf(text, room, "%s", states[l->state]);
	}
}

/* Who had it last; nothing but the state and the hole remains if nobody knows. */
static void resolve_freed(struct neuron_device *device, uint64_t address,
			  struct neuron_location *out)
{
	struct neuron_location l = { .hbm = out->hbm, .state = out->state, .freed = 1,
				     .nc = UINT32_MAX };
	uint64_t time = l.hbm == UINT32_MAX ? 0 : last_event(device, address, &l);
	uint64_t since = time, slack, unloaded;

	/*
	 * Somebody else may have had the memory since a model had it.  What this process freed
	 * just then was the model's: the clock of events has the tick of some kernels, and is not
	 * slewed with CLOCK_MONOTONIC, by 500 parts in a million.
	 */
	if (time && l.pid == getpid()) {
		slack = 20000000 + (uint64_t)((int64_t)(now_ns() - time) / 2000);
		since -= slack < since ? slack : since;
	}
	unloaded = name_variable(device, address, true, since, &l);
	if (unloaded) {
		l.pid = getpid();
		time = unloaded;
	}
	if (!time)
		return;
	l.freed_ns = now_ns() - time;
	*out = l;
}

NEURON_EXPORT int neuron_address_resolve(struct neuron_device *device, uint64_t address,
					 uint32_t flags, struct neuron_location *location)
{
	struct neuron_location out = { .nc = UINT32_MAX };
	int ret = 0;

	if (!result_valid(location) || flags & ~NEURON_RESOLVE_FREED)
		return -EINVAL;
	if (device_inherited(device))
		return -EACCES;
	out.hbm = find_hbm(&device->geometry, address);
	if (out.hbm != UINT32_MAX)
		ret = read_range(device, address, &out);
	if (ret)
		return ret;
	if (out.hbm == UINT32_MAX)
		out.nc = find_core(&device->geometry, address);
	if (!(flags & NEURON_RESOLVE_FREED))
		name_variable(device, address, false, 0, &out);
	if (flags & NEURON_RESOLVE_FREED || (!*out.variable && out.state == NEURON_RANGE_FREE))
		resolve_freed(device, address, &out);
	else if (out.hbm != UINT32_MAX)
		last_event(device, address, &out);
	if (out.pid)
		name_owner(device, &out);
	describe(&out, address, &device->geometry, "free memory");
	result_copy(location, &out, sizeof(out));
	return 0;
}

/* ---- pointers ---------------------------------------------------------------------- */

/* What the process knows of it by itself: of host memory, and of a device that is gone. */
static void tell_mapping(struct neuron_device *device, const struct mapping *m, uint64_t address,
			 struct neuron_location *out)
{
	struct neuron_location now = { .hbm = find_hbm(&device->geometry, address) };

	if (m->freed && now.hbm != UINT32_MAX)
		read_range(device, address, &now);
	*out = (struct neuron_location){
		.state = m->freed ? now.state : NEURON_RANGE_OWNED, .freed = m->freed != 0,
		.hbm = now.hbm, .nc = m->nc, .pid = getpid(), .owner = m->owner,
		.category = m->category, .address = m->address, .bytes = m->bytes,
		.freed_ns = m->freed ? now_ns() - m->freed : 0,
	};
	name_owner(device, out);
	describe(out, address, &device->geometry, "unmapped memory");
}

/* Is something mapped at @pointer?  0: memory, at *@address of the device; -errno. */
static int find_mapping(struct neuron_device *device, const void *pointer, uint64_t *address,
			struct mapping *m)
{
	int ret;

	m->mapped = 0;
	if (mapping_find(device, pointer, false, m)) {
		*address = m->address + ((uintptr_t)pointer - m->va);
		return 0;
	}
	/* The program may have mapped it itself.  What is there now is no memory of before. */
	ret = neuron_sys_mapping(device->fd, pointer, address);
	if (!ret)
		*address = maps_address(&device->geometry, *address);
	if (ret == -ENOENT && mapping_find(device, pointer, true, m)) {
		*address = m->address + ((uintptr_t)pointer - m->va);
		return 0;
	}
	return ret == -EEXIST ? -ENOENT : ret;
}

NEURON_EXPORT int neuron_pointer_resolve(struct neuron_device *device, const void *pointer,
					 struct neuron_location *location)
{
	struct neuron_location out = { .size = sizeof(out) };
	struct mapping m;
	uint64_t address;
	int ret;

	if (!result_valid(location))
		return -EINVAL;
	if (device_inherited(device))
		return -EACCES;
	ret = find_mapping(device, pointer, &address, &m);
	if (ret)
		return ret;
	if (!m.mapped || (!m.freed && find_hbm(&device->geometry, address) != UINT32_MAX))
		ret = neuron_address_resolve(device, address, 0, &out);
	else
		tell_mapping(device, &m, address, &out);
	if (ret && m.mapped) {
		tell_mapping(device, &m, address, &out);
		if (ret == -ENODEV)
			strncat(out.text, "; the device is gone",
				sizeof(out.text) - strlen(out.text) - 1);
		ret = 0;
	}
	if (!ret)
		result_copy(location, &out, sizeof(out));
	return ret;
}

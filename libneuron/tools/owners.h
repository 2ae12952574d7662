/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* neuron-mem owners: who has how much, what changed, who never gives anything back. */
#ifndef TOOLS_OWNERS_H
#define TOOLS_OWNERS_H

#include <error.h>
#include <inttypes.h>

#include <jansson.h>

#include "file.h"
#include "groups.h"
#include "leaks.h"
#include "map.h"
#include "processes.h"
#include "table.h"

/* The owners of an HBM, most memory first. */
struct owners {
	unsigned int device, hbm;
	struct neuron_owners all;
	/* Of a snapshot. */
	struct owner_groups groups;
	bool grouped, consistent;
};

static inline int owners_by_bytes(const void *a, const void *b)
{
	const struct neuron_owner *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->pid != y->pid ? x->pid - y->pid : (int)x->id - (int)y->id;
}

static inline int owners_read(struct neuron_device *device, uint32_t hbm, struct owners *o)
{
	int ret;

	*o = (struct owners){ .device = neuron_device_index(device), .hbm = hbm,
			      .all = { .size = sizeof(o->all) } };
	ret = neuron_hbm_get_owners(device, hbm, 0, &o->all);
	if (!ret)
		qsort(o->all.list, o->all.count, sizeof(*o->all.list), owners_by_bytes);
	return ret;
}

/* The same of a snapshot, with groups. */
static inline int owners_of_snapshot(unsigned int device, const struct snapshot_hbm *h,
				     struct owners *o)
{
	*o = (struct owners){
		.device = device, .hbm = h->hbm, .grouped = true, .consistent = h->consistent,
		.all = { .used = h->stats.used, .driver = h->stats.driver, .count = h->nr_owners,
			 .list = calloc(h->nr_owners + 1, sizeof(*o->all.list)) },
	};
	if (!o->all.list)
		return -ENOMEM;
	for (size_t i = 0; i < h->nr_owners; i++)
		o->all.list[i] = h->owner[i].figures;
	qsort(o->all.list, o->all.count, sizeof(*o->all.list), owners_by_bytes);
	return groups_read(&h->ranges, &o->groups);
}

static inline void owners_free(struct owners *o)
{
	free(o->all.list);
	free(o->groups.list);
}

/* What another process is called; this one has nothing. */
static inline const char *owner_process(int pid)
{
	static char name[32];

	read_words("/proc", pid, "comm", name, sizeof(name));
	return name;
}

/* Bytes times seconds by seconds; of less than a step of the clock, what there is now. */
static inline uint64_t owner_mean(const struct neuron_owner *o)
{
	if (o->time < 1ull << 22)
		return o->bytes;
	return (uint64_t)((double)o->byte_seconds / ((double)o->time / 1e9));
}

static inline bool owner_has(const struct neuron_owner *o)
{
	return o->bytes || o->peak || o->allocs || o->host_bytes;
}

static inline struct libscols_table *owners_table(void)
{
	return table("PID\tPROCESS\tOWNER\tLABEL\tDEVICE\tHBM\tBYTES\tPEAK\tSTEADY\tMEAN\tALLOCS\tHOST",
		     "rlrlrrrrrrrr");
}

/* Lines below that of the owner: only what they add up to is in its columns. */
static inline void groups_rows(struct libscols_table *t, const struct owners *o,
			       const struct neuron_owner *owner, const struct map_style *style)
{
	const struct owner_group *g;

	for (size_t at = 0; (g = groups_next(&o->groups, owner, &at));)
		row(t, " \t \t \t  %s, core %u\t \t \t%s\t \t \t \t%" PRIu64 "\t ",
		    neuron_mem_category_name(g->category), g->nc, map_size(style, g->bytes),
		    g->allocs);
}

static inline void owners_rows(struct libscols_table *t, const struct owners *o,
			       const struct map_style *style)
{
	for (size_t i = 0; i < o->all.count; i++) {
		const struct neuron_owner *n = &o->all.list[i];

		if (!owner_has(n))
			continue;
		row(t, "%d\t%s\t%u\t%s\t%u\t%u\t%s\t%s\t%s\t%s\t%" PRIu64 "\t%s", n->pid,
		    owner_process(n->pid), n->id, n->label, o->device, o->hbm,
		    map_size(style, n->bytes), map_size(style, n->peak),
		    map_size(style, n->steady), map_size(style, owner_mean(n)), n->allocs,
		    map_size(style, n->host_bytes));
		groups_rows(t, o, n, style);
	}
}

static inline json_t *groups_json(const struct owners *o, const struct neuron_owner *owner)
{
	json_t *list = json_array();
	const struct owner_group *g;

	for (size_t at = 0; (g = groups_next(&o->groups, owner, &at));)
		json_array_append_new(list, json_pack(
			"{s:i, s:s, s:I, s:I}", "core", (int)g->nc, "category",
			neuron_mem_category_name(g->category), "bytes", INT(g->bytes),
			"allocations", INT(g->allocs)));
	return list;
}

static inline json_t *owners_json(const struct owners *o)
{
	json_t *list = json_array(), *all;

	for (size_t i = 0; i < o->all.count; i++) {
		const struct neuron_owner *n = &o->all.list[i];
		json_t *one;

		if (!owner_has(n))
			continue;
		one = json_pack("{s:i, s:s, s:i, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I}",
				"pid", n->pid, "name", owner_process(n->pid), "owner", (int)n->id,
				"label", n->label, "released",
				!!(n->flags & NEURON_OWNER_RELEASED), "bytes", INT(n->bytes),
				"peak", INT(n->peak), "steady", INT(n->steady),
				"mean", INT(owner_mean(n)), "allocations", INT(n->allocs),
				"host", INT(n->host_bytes));
		if (o->grouped)
			json_object_set_new(one, "groups", groups_json(o, n));
		json_array_append_new(list, one);
	}
	all = json_pack("{s:i, s:i, s:i, s:I, s:I, s:o}", "schema_version", 1, "device",
			(int)o->device, "hbm", (int)o->hbm, "used", INT(o->all.used), "driver",
			INT(o->all.driver), "owners", list);
	if (o->grouped)
		json_object_set_new(all, "consistent", json_boolean(o->consistent));
	return all;
}

/* ---- differences --------------------------------------------------------------------- */

static inline void leak_names(FILE *f, const struct leak *l)
{
	fprintf(f, "neuron%u HBM %u process %d (%s)", l->device, l->hbm, l->now.pid,
		owner_process(l->now.pid));
	if (l->now.id)
		fprintf(f, " owner %u \"%s\"", l->now.id, l->now.label);
}

static inline bool leak_changed(const struct leak *l)
{
	return l->seen ? (l->fresh ? l->now.bytes : l->now.bytes != l->before) : l->now.bytes;
}

/* Since the picture before; the first one has none. */
static inline void leaks_text(const struct leaks *all, const struct map_style *style, bool first,
			      FILE *f)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct leak *l = &all->list[i];
		uint64_t before = l->fresh ? 0 : l->seen ? l->before : l->now.bytes;
		uint64_t now = l->seen ? l->now.bytes : 0, rate = l->seen ? leak_rate(l) : 0;

		if (!first && leak_changed(l)) {
			leak_names(f, l);
			fprintf(f, ": %s -> %s, %s%s\n", map_size(style, before),
				map_size(style, now), now > before ? "+" : "-",
				map_size(style, now > before ? now - before : before - now));
		}
		if (!rate)
			continue;
		fputs("suspect: ", f);
		leak_names(f, l);
		if (l->falls)
			fprintf(f, " keeps more and more, about %s a step of %" PRIu64 ", now %s\n",
				map_size(style, rate), l->steps, map_size(style, now));
		else
			fprintf(f, " rose in %" PRIu64 " of %" PRIu64 " steps and never fell, %s a step, now %s\n",
				l->rises, l->steps, map_size(style, rate), map_size(style, now));
	}
}

static inline json_t *leak_json(const struct leak *l)
{
	return json_pack("{s:i, s:i, s:i, s:s, s:i, s:s}", "device", (int)l->device, "hbm",
			 (int)l->hbm, "pid", l->now.pid, "name", owner_process(l->now.pid),
			 "owner", (int)l->now.id, "label", l->now.label);
}

static inline json_t *leaks_json(const struct leaks *all, bool first)
{
	json_t *changes = json_array(), *suspects = json_array();

	for (size_t i = 0; i < all->count; i++) {
		const struct leak *l = &all->list[i];
		uint64_t rate = l->seen ? leak_rate(l) : 0;
		json_t *o;

		if (!first && leak_changed(l)) {
			o = leak_json(l);
			json_object_set_new(o, "before", json_integer(
				l->fresh ? 0 : INT(l->seen ? l->before : l->now.bytes)));
			json_object_set_new(o, "bytes", json_integer(l->seen ? INT(l->now.bytes) : 0));
			json_array_append_new(changes, o);
		}
		if (!rate)
			continue;
		o = leak_json(l);
		json_object_set_new(o, "bytes_per_step", json_integer(INT(rate)));
		json_object_set_new(o, "steps", json_integer(INT(l->steps)));
		json_object_set_new(o, "bytes", json_integer(INT(l->now.bytes)));
		json_array_append_new(suspects, o);
	}
	return json_pack("{s:i, s:o, s:o}", "schema_version", 1, "changes", changes, "suspects",
			 suspects);
}

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Snapshots of device memory, as neuron_mem_snapshot() writes them. */
#ifndef TOOLS_SNAPSHOT_H
#define TOOLS_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <neuron/neuron.h>

#include "../common/history.h"
#include "../common/snapshot_words.h"

struct snapshot_owner {
	struct neuron_owner figures;
	char name[32];		/* of the process */
};

struct snapshot_hbm {
	uint32_t hbm;
	bool consistent;
	uint64_t seq;
	struct neuron_hbm_stats stats;	/* total, used, reserved, free, largest_free, high_water */
	struct history ranges;
	struct snapshot_owner *owner;
	size_t nr_owners;
	struct neuron_event *event;
	size_t nr_events;
};

struct snapshot {
	unsigned int device;
	int64_t time;
	struct snapshot_hbm *list;
	size_t count;
};

static inline void snapshot_free(struct snapshot *s)
{
	for (size_t i = 0; i < s->count; i++) {
		free(s->list[i].ranges.range);
		free(s->list[i].owner);
		free(s->list[i].event);
	}
	free(s->list);
	memset(s, 0, sizeof(*s));
}

/* A number that is there and not negative, else 0. */
static inline uint64_t snapshot_number(const json_t *o, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(o, key));

	return value > 0 ? (uint64_t)value : 0;
}

static inline const char *snapshot_text(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

/* The place of a name in a list, or 0. */
static inline unsigned int snapshot_word(const char *text, const char *const *words, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (words[i] && !strcmp(words[i], text))
			return i;
	return 0;
}

/* Of device memory: some of the host's have the same names. */
static inline enum neuron_mem_category snapshot_category(const char *name)
{
	for (int i = NEURON_MEM_OTHER; i < NEURON_MEM_NR_CATEGORIES; i++)
		if (i != NEURON_MEM_HOST_RINGS &&
		    !strcmp(neuron_mem_category_name((enum neuron_mem_category)i), name))
			return (enum neuron_mem_category)i;
	return NEURON_MEM_OTHER;
}

static inline struct neuron_range snapshot_range(const json_t *o)
{
	return (struct neuron_range){
		.address = snapshot_number(o, "address"),
		.bytes = snapshot_number(o, "bytes"),
		.state = snapshot_word(snapshot_text(o, "state"), range_states,
					     ARRAY_SIZE(range_states)),
		.pid = (int32_t)snapshot_number(o, "pid"),
		.owner = (uint32_t)snapshot_number(o, "owner"),
		.nc = (uint32_t)snapshot_number(o, "core"),
		.category = snapshot_category(snapshot_text(o, "category")),
	};
}

static inline struct neuron_event snapshot_event(const json_t *o)
{
	static const char *const places[] = { "", "low", "high", "at" };
	static const uint32_t flags[] = { 0, NEURON_MEM_F_LOW, NEURON_MEM_F_HIGH,
					  NEURON_MEM_F_AT };
	struct neuron_event e = {
		.seq = snapshot_number(o, "seq"),
		.time = snapshot_number(o, "time_ns"),
		.address = snapshot_number(o, "address"),
		.bytes = snapshot_number(o, "bytes"),
		.align = snapshot_number(o, "align"),
		.free = snapshot_number(o, json_object_get(o, "from") ? "from" : "free"),
		.kind = snapshot_word(snapshot_text(o, "kind"), event_kinds,
				      ARRAY_SIZE(event_kinds)),
		.flags = flags[snapshot_word(snapshot_text(o, "place"), places, 4)],
		.client = (uint32_t)snapshot_number(o, "client"),
		.pid = (int32_t)snapshot_number(o, "pid"),
		.owner = (uint32_t)snapshot_number(o, "owner"),
		.nc = (uint32_t)snapshot_number(o, "core"),
		.category = snapshot_category(snapshot_text(o, "category")),
	};

	for (int r = NEURON_MEM_REASON_NONE; r <= NEURON_MEM_REASON_HOST; r++)
		if (!strcmp(neuron_mem_reason_name((enum neuron_mem_reason)r),
			    snapshot_text(o, "reason")))
			e.reason = (enum neuron_mem_reason)r;
	return e;
}

static inline struct snapshot_owner snapshot_owner(const json_t *o)
{
	struct snapshot_owner out = { .figures = {
		.id = (uint32_t)snapshot_number(o, "owner"),
		.flags = json_is_true(json_object_get(o, "released")) ? NEURON_OWNER_RELEASED : 0,
		.pid = (int32_t)snapshot_number(o, "pid"),
		.bytes = snapshot_number(o, "bytes"),
		.peak = snapshot_number(o, "peak"),
		.steady = snapshot_number(o, "steady"),
		.byte_seconds = snapshot_number(o, "byte_seconds"),
		.time = snapshot_number(o, "time_ns"),
		.allocs = snapshot_number(o, "allocations"),
		.host_bytes = snapshot_number(o, "host_bytes"),
	} };

	snprintf(out.figures.label, sizeof(out.figures.label), "%s", snapshot_text(o, "label"));
	snprintf(out.name, sizeof(out.name), "%s", snapshot_text(o, "name"));
	return out;
}

/* Ranges have to follow each other, so that they can be looked up by address. */
static inline bool snapshot_valid(const struct snapshot_hbm *h)
{
	const struct history *r = &h->ranges;
	uint64_t sum = 0;

	for (size_t i = 0; i < r->count; i++) {
		if (!r->range[i].bytes || (r->range[i].address | r->range[i].bytes) % NEURON_PAGE ||
		    r->range[i].address != r->range[0].address + sum ||
		    r->range[i].bytes > h->stats.total - sum)
			return false;
		sum += r->range[i].bytes;
	}
	return r->count && sum == h->stats.total;
}

static inline int snapshot_read_hbm(const json_t *o, struct snapshot_hbm *h)
{
	json_t *categories = json_object_get(o, "categories");
	const json_t *ranges = json_object_get(o, "ranges");
	const json_t *events = json_object_get(o, "events");
	const json_t *owners = json_object_get(o, "owners");

	h->hbm = (uint32_t)snapshot_number(o, "hbm");
	h->consistent = json_is_true(json_object_get(o, "consistent"));
	h->seq = snapshot_number(o, "seq");
	h->stats.total = snapshot_number(o, "total");
	h->stats.used = snapshot_number(o, "used");
	h->stats.reserved = snapshot_number(o, "reserved");
	h->stats.free = snapshot_number(o, "free");
	h->stats.largest_free = snapshot_number(o, "largest_free");
	h->stats.high_water = snapshot_number(o, "high_water");
	h->stats.driver = snapshot_number(o, "driver");
	for (void *i = json_object_iter(categories); i; i = json_object_iter_next(categories, i)) {
		const char *name = json_object_iter_key(i);

		h->stats.by_category[snapshot_category(name)] = snapshot_number(categories, name);
	}
	h->ranges.max = h->ranges.count = json_array_size(ranges);
	h->nr_events = json_array_size(events);
	h->nr_owners = json_array_size(owners);
	h->ranges.range = calloc(h->ranges.count + 1, sizeof(*h->ranges.range));
	h->event = calloc(h->nr_events + 1, sizeof(*h->event));
	h->owner = calloc(h->nr_owners + 1, sizeof(*h->owner));
	if (!h->ranges.range || !h->event || !h->owner)
		return -ENOMEM;
	for (size_t i = 0; i < h->ranges.count; i++)
		h->ranges.range[i] = snapshot_range(json_array_get(ranges, i));
	for (size_t i = 0; i < h->nr_events; i++)
		h->event[i] = snapshot_event(json_array_get(events, i));
	for (size_t i = 0; i < h->nr_owners; i++)
		h->owner[i] = snapshot_owner(json_array_get(owners, i));
	return snapshot_valid(h) ? 0 : -EINVAL;
}

/* 0, -EINVAL: this is no snapshot; -ENOMEM. */
static inline int snapshot_parse(const char *text, size_t size, struct snapshot *s)
{
	json_t *all = json_loadb(text, size, 0, NULL);
	const json_t *hbms = json_object_get(all, "hbms");
	int ret = 0;

	memset(s, 0, sizeof(*s));
	if (strcmp(snapshot_text(all, "kind"), "memory snapshot") ||
	    snapshot_number(all, "schema_version") != 1)
		ret = -EINVAL;
	s->device = (unsigned int)snapshot_number(all, "device");
	s->time = (int64_t)snapshot_number(all, "time");
	s->list = calloc(json_array_size(hbms) + 1, sizeof(*s->list));
	if (!s->list)
		ret = -ENOMEM;
	for (size_t i = 0; i < json_array_size(hbms) && !ret; i++)
		ret = snapshot_read_hbm(json_array_get(hbms, i), &s->list[s->count++]);
	json_decref(all);
	if (ret)
		snapshot_free(s);
	return ret;
}

#endif

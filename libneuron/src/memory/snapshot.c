// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A snapshot of device memory as JSON: what is where, whose it is and what happened last,
 * all of the same instant, so that the events can be taken back and played again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "../../common/history.h"
#include "../../common/snapshot_words.h"
#include "../device/device.h"
#include "snapshot.h"

#define WHOLE_TRIES	8	/* of everything */
#define FIGURE_TRIES	100	/* of the figures alone, which takes two calls */

struct picture {
	struct neuron_hbm_stats stats;
	struct neuron_owners owners;
	struct neuron_event *event;
	size_t nr_events;
	uint64_t seq;		/* of the last event */
	struct history ranges;
	size_t rolled_back;	/* events by which the ranges were too late */
	bool consistent;
};

static void picture_free(struct picture *p)
{
	free(p->owners.list);
	free(p->event);
	free(p->ranges.range);
	memset(p, 0, sizeof(*p));
}

/* Events since the last ones; how many there were. */
static int read_events(struct neuron_device *device, uint32_t hbm, struct picture *p, size_t *count)
{
	struct neuron_event *more, *all;
	size_t n;
	int ret = neuron_hbm_get_events(device, hbm, &p->seq, &more, &n);

	if (ret)
		return ret;
	*count = n;
	if (!p->nr_events || (n && more[0].seq != p->event[p->nr_events - 1].seq + 1)) {
		/* The first ones, or some between were lost. */
		free(p->event);
		p->event = more;
		p->nr_events = n;
		return 0;
	}
	all = reallocarray(p->event, p->nr_events + n, sizeof(*all));
	if (all) {
		memcpy(all + p->nr_events, more, n * sizeof(*all));
		p->event = all;
		p->nr_events += n;
	}
	free(more);
	return all ? 0 : -ENOMEM;
}

/* Figures of the instant after the last of the events. */
static int read_figures(struct neuron_device *device, uint32_t hbm, struct picture *p)
{
	size_t late = 1;
	int ret = 0;

	for (int i = 0; i < FIGURE_TRIES && !ret && late; i++) {
		free(p->owners.list);
		p->owners = (struct neuron_owners){ .size = sizeof(p->owners) };
		p->stats.size = sizeof(p->stats);
		ret = neuron_hbm_get_stats(device, hbm, &p->stats) ?:
		      neuron_hbm_get_owners(device, hbm, 0, &p->owners) ?:
		      read_events(device, hbm, p, &late);
	}
	p->consistent = !late;
	return ret;
}

/* The ranges take some time to read: what happened meanwhile is taken back. */
static int roll_back(struct neuron_device *device, uint32_t hbm, struct picture *p)
{
	struct neuron_event *late;
	uint64_t since = p->seq;
	size_t n;
	int ret = neuron_hbm_get_events(device, hbm, &since, &late, &n);

	if (ret)
		return ret;
	if (n && late[0].seq != p->seq + 1)
		p->consistent = false;
	p->rolled_back = n;
	ret = history_rewind(&p->ranges, late, n);
	p->ranges.wrong = 0;
	free(late);
	return ret;
}

static int read_picture(struct neuron_device *device, uint32_t hbm, struct picture *p)
{
	size_t n;
	int ret;

	for (int i = 0;; i++) {
		memset(p, 0, sizeof(*p));
		ret = read_events(device, hbm, p, &n) ?: read_figures(device, hbm, p) ?:
		      neuron_hbm_get_ranges(device, hbm, &p->ranges.range, &p->ranges.count);
		p->ranges.max = p->ranges.count;
		ret = ret ?: roll_back(device, hbm, p);
		if (!ret && ((p->consistent && !p->rolled_back) || i == WHOLE_TRIES - 1))
			return 0;
		picture_free(p);
		if (ret)
			return ret;
	}
}

/* ---- JSON ---------------------------------------------------------------------------- */

/* A process may call itself anything: what is not printable becomes a question mark. */
static const char *process_name(int pid, char *name, size_t size)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	read_short(path, name, size);
	name[strcspn(name, "\n")] = 0;
	for (char *c = name; *c; c++)
		*c = *c < ' ' || *c > '~' ? '?' : *c;
	return name;
}

static json_t *owners_json(const struct neuron_owners *owners)
{
	json_t *list = json_array();
	char name[32];

	for (size_t i = 0; i < owners->count; i++) {
		const struct neuron_owner *o = &owners->list[i];

		json_array_append_new(list, json_pack(
			"{s:i, s:s, s:i, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			"pid", o->pid, "name", process_name(o->pid, name, sizeof(name)),
			"owner", (int)o->id, "label", o->label,
			"released", !!(o->flags & NEURON_OWNER_RELEASED), "bytes", INT(o->bytes),
			"peak", INT(o->peak), "steady", INT(o->steady),
			"byte_seconds", INT(o->byte_seconds), "time_ns", INT(o->time),
			"allocations", INT(o->allocs), "host_bytes", INT(o->host_bytes)));
	}
	return list;
}

static json_t *event_json(const struct neuron_event *e)
{
	const char *kind = e->kind < ARRAY_SIZE(event_kinds) ? event_kinds[e->kind] : NULL;
	json_t *o = json_pack("{s:I, s:I, s:s, s:I, s:I, s:I}", "seq", INT(e->seq),
			      "time_ns", INT(e->time), "kind", kind ? kind : "unknown",
			      "address", INT(e->address), "bytes", INT(e->bytes),
			      "align", INT(e->align));

	if (e->flags & (NEURON_MEM_F_LOW | NEURON_MEM_F_HIGH | NEURON_MEM_F_AT))
		json_object_set_new(o, "place", json_string(e->flags & NEURON_MEM_F_LOW ? "low" :
							    e->flags & NEURON_MEM_F_HIGH ? "high" :
							    "at"));
	if (e->kind == NEURON_EVENT_MOVE)
		json_object_set_new(o, "from", json_integer(INT(e->free)));
	if (e->kind == NEURON_EVENT_REFUSE)
		json_object_update_new(o, json_pack("{s:s, s:I}", "reason",
						    neuron_mem_reason_name(e->reason), "free",
						    INT(e->free)));
	/* Of other users it is not known. */
	if (e->client)
		json_object_update_new(o, json_pack(
			"{s:i, s:i, s:i, s:i, s:s}", "client", (int)e->client, "pid", e->pid,
			"owner", (int)e->owner, "core", (int)e->nc, "category",
			neuron_mem_category_name(e->category)));
	return o;
}

/* Two categories have the same name: both are what the scratchpad of a core uses. */
static json_t *categories_json(const uint64_t *bytes)
{
	json_t *o = json_object();

	for (uint32_t c = 0; c < NEURON_MEM_NR_CATEGORIES; c++)
		if (bytes[c]) {
			const char *name = neuron_mem_category_name(c);

			json_object_set_new(o, name, json_integer(
				json_integer_value(json_object_get(o, name)) + INT(bytes[c])));
		}
	return o;
}

static json_t *picture_json(const struct picture *p, uint32_t hbm)
{
	const struct neuron_hbm_stats *s = &p->stats;
	json_t *events = json_array();

	for (size_t i = 0; i < p->nr_events; i++)
		json_array_append_new(events, event_json(&p->event[i]));
	return json_pack(
		"{s:i, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:{s:I, s:I, s:I, s:I}, s:o, s:o, s:o}",
		"hbm", (int)hbm, "consistent", (int)p->consistent, "seq", INT(p->seq),
		"rolled_back", INT(p->rolled_back), "total", INT(s->total), "used", INT(s->used),
		"reserved", INT(s->reserved), "free", INT(s->free),
		"largest_free", INT(s->largest_free), "high_water", INT(s->high_water),
		"allocations", INT(s->nr_allocs), "driver", INT(s->driver),
		"categories", categories_json(s->by_category),
		"refused", "full", INT(s->fail_full), "fragmented", INT(s->fail_fragmented),
		"alignment", INT(s->fail_alignment), "capped", INT(s->fail_capped),
		"owners", owners_json(&p->owners), "ranges",
		ranges_json(p->ranges.range, p->ranges.count, "used"),
		"events", events);
}

/* Of one memory, or with -1 of all. */
static int take_snapshot(struct neuron_device *device, int32_t hbm, json_t **all)
{
	uint32_t nr = neuron_device_geometry(device)->nr_hbms;
	uint32_t from = hbm < 0 ? 0 : (uint32_t)hbm, to = hbm < 0 ? nr : from + 1;
	int ret = hbm >= -1 && to <= nr ? 0 : -EINVAL;
	json_t *list;

	if (ret)
		return ret;
	list = json_array();
	for (uint32_t i = from; i < to && !ret; i++) {
		struct picture p;

		ret = read_picture(device, i, &p);
		if (ret)
			break;
		if (json_array_append_new(list, picture_json(&p, i)))
			ret = -ENOMEM;
		picture_free(&p);
	}
	if (ret) {
		json_decref(list);
		return ret;
	}
	*all = json_pack("{s:i, s:s, s:s, s:I, s:i, s:o}", "schema_version", 1,
			 "kind", "memory snapshot", "version", NEURON_VERSION,
			 "time", INT(time(NULL)), "device", (int)neuron_device_index(device),
			 "hbms", list);
	return *all ? 0 : -ENOMEM;
}

static int write_snapshot(json_t *all, char **json)
{
	*json = json_dumps(all, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(all);
	return *json ? 0 : -ENOMEM;
}

NEURON_EXPORT int neuron_mem_snapshot(struct neuron_device *device, int32_t hbm, char **json)
{
	json_t *all;

	return (json ? take_snapshot(device, hbm, &all) : -EINVAL) ?: write_snapshot(all, json);
}

int mem_snapshot_refused(struct neuron_device *device, const struct neuron_mem_failure *failure,
			 char **json)
{
	struct neuron_release release = { .size = sizeof(release) };
	json_t *all, *refused;
	char text[256];
	int ret = take_snapshot(device, (int32_t)failure->hbm, &all);

	if (ret)
		return ret;
	refused = json_pack("{s:i, s:I, s:I, s:s}", "hbm", (int)failure->hbm, "bytes",
			    INT(failure->bytes), "align", INT(failure->align), "reason",
			    neuron_mem_reason_name(failure->reason));
	if (failure->reason != NEURON_MEM_REASON_CAPPED &&
	    !neuron_mem_release(device, failure, &release))
		json_object_set_new(refused, "fits_without", json_string(
			neuron_release_text(&release, text, sizeof(text))));
	json_object_set_new(all, "refused", refused);
	return write_snapshot(all, json);
}

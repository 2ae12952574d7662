/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of neuron-mem that are made of a snapshot: itself, a page, a timeline. */
#ifndef TOOLS_PAGES_H
#define TOOLS_PAGES_H

#include <error.h>
#include <fcntl.h>

#include "../common/access.h"
#include "file.h"
#include "map_svg.h"
#include "owners.h"
#include "snapshot.h"
#include "timeline.h"

/* A snapshot of all memories of a device, to be freed. */
static inline char *pages_take(unsigned int index, size_t *size)
{
	struct neuron_device *device;
	char *json;
	int ret = neuron_device_observe(index, &device);

	if (ret)
		error(1, -ret, "/dev/neuron%u%s", index,
		      access_hint(index, ret, (char[ACCESS_ROOM]){ 0 }));
	ret = neuron_mem_snapshot(device, -1, &json);
	if (ret)
		error(1, -ret, "/dev/neuron%u: snapshot", index);
	neuron_device_close(device);
	*size = strlen(json);
	return json;
}

/* ---- a page -------------------------------------------------------------------------- */

static inline void page_text(FILE *f, const char *text)
{
	fputs("<td>", f);
	svg_put(f, text);
	fputs("</td>", f);
}

static inline void page_size(FILE *f, uint64_t bytes)
{
	fprintf(f, "<td class=n title=\"%" PRIu64 "\">%s</td>", bytes,
		bytes ? SIZE_TEXT(bytes) : "0");
}

static inline void page_owners(FILE *f, const struct snapshot_hbm *h)
{
	fputs("<table><tr><th>pid<th>process<th>owner<th>label<th>bytes<th>peak<th>steady<th>mean"
	      "<th>allocations<th>host</tr>\n", f);
	for (size_t i = 0; i < h->nr_owners; i++) {
		const struct neuron_owner *o = &h->owner[i].figures;

		if (!owner_has(o))
			continue;
		fprintf(f, "<tr><td class=n>%d</td>", o->pid);
		page_text(f, h->owner[i].name);
		fprintf(f, "<td class=n>%u</td>", o->id);
		page_text(f, o->label);
		page_size(f, o->bytes);
		page_size(f, o->peak);
		page_size(f, o->steady);
		page_size(f, owner_mean(o));
		fprintf(f, "<td class=n>%" PRIu64 "</td>", o->allocs);
		page_size(f, o->host_bytes);
		fputs("</tr>\n", f);
	}
	fputs("</table>\n", f);
}

/* The last one first: that is what one looks for. */
static inline void page_events(FILE *f, const struct snapshot_hbm *h)
{
	static const char *const kinds[] = {
		"", "allocated", "freed", "grown by", "cut by", "refused", "moved",
	};

	fprintf(f, "<details%s><summary>%zu events</summary><table><tr><th>number<th>seconds<th>what"
		"<th>bytes<th>address<th>aligned to<th>reason<th>free<th>pid<th>owner<th>core"
		"<th>category</tr>\n", h->nr_events > 50 ? "" : " open", h->nr_events);
	for (size_t i = h->nr_events; i--;) {
		const struct neuron_event *e = &h->event[i];
		bool refused = e->kind == NEURON_EVENT_REFUSE;

		fprintf(f, "<tr%s><td class=n>%" PRIu64 "</td><td class=n>%.6f</td><td>%s</td>",
			refused ? " class=bad" : "", e->seq, (double)e->time / 1e9,
			e->kind < ARRAY_SIZE(kinds) ? kinds[e->kind] : "");
		page_size(f, e->bytes);
		fprintf(f, "<td class=n>0x%" PRIx64 "</td>", e->address);
		page_size(f, e->align);
		page_text(f, refused ? neuron_mem_reason_name(e->reason) : "");
		page_text(f, refused ? SIZE_TEXT(e->free) : "");
		fprintf(f, "<td class=n>%d</td><td class=n>%u</td><td class=n>%u</td>", e->pid,
			e->owner, e->nc);
		page_text(f, e->client ? neuron_mem_category_name(e->category) : "");
		fputs("</tr>\n", f);
	}
	fputs("</table></details>\n", f);
}

static inline void page_map(FILE *f, const struct snapshot *s, struct snapshot_hbm *h)
{
	struct processes all = { calloc(h->nr_owners + 1, sizeof(*all.list)), 0 };
	struct map map = { .device = s->device, .hbm = h->hbm, .stats = h->stats,
			   .range = h->ranges.range };

	if (!all.list)
		error(1, ENOMEM, "page");
	for (size_t i = 0; i < h->nr_owners; i++)
		if (!h->owner[i].figures.id) {
			struct process *p = &all.list[all.count++];

			*p = (struct process){ .device = s->device, .pid = h->owner[i].figures.pid };
			snprintf(p->name, sizeof(p->name), "%s", h->owner[i].name);
			snprintf(p->command, sizeof(p->command), "%s", h->owner[i].name);
		}
	map.count = map_join_holes(h->ranges.range, h->ranges.count);
	map_add_up(&map, &all);
	if (svg_write(f, &map, 1))
		error(1, errno, "page");
	free(all.list);
}

static inline void page_write(FILE *f, const struct snapshot *s)
{
	char when[32];
	time_t seconds = (time_t)s->time;
	struct tm tm;

	/* No year has room for what a file may say. */
	if (!localtime_r(&seconds, &tm) || !strftime(when, sizeof(when), "%F %T %z", &tm))
		snprintf(when, sizeof(when), "@%" PRId64, s->time);
	fprintf(f, "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8>"
		"<meta name=color-scheme content=\"light dark\"><title>Memory of neuron%u</title>\n"
		"<style>body{font:14px sans-serif;margin:2em;background:#fff;color:#222}"
		"table{border-collapse:collapse;font-size:13px}td,th{padding:2px 10px;text-align:left;"
		"border-bottom:1px solid #ddd}.n{text-align:right;font-variant-numeric:tabular-nums}"
		".bad{background:#fbe3e1}svg{max-width:100%%;height:auto}"
		"@media(prefers-color-scheme:dark){body{background:#16191f;color:#ddd}"
		"td,th{border-color:#343a45}.bad{background:#4d2323}}</style>\n"
		"<h1>Memory of neuron%u</h1><p>%s</p>\n", s->device, s->device, when);
	for (size_t i = 0; i < s->count; i++) {
		struct snapshot_hbm *h = &s->list[i];
		struct snapshot one = { .device = s->device, .list = h, .count = 1 };

		fprintf(f, "<h2>HBM %u</h2>\n", h->hbm);
		if (!h->consistent)
			fputs("<p>It changed all the time: this is not of one instant.</p>\n", f);
		page_map(f, s, h);
		if (h->nr_events)
			timeline_svg(&one, f);
		page_owners(f, h);
		page_events(f, h);
	}
	fputs("</html>\n", f);
}

enum pages_kind { PAGES_SNAPSHOT, PAGES_HTML, PAGES_TIMELINE };

/* What was asked for, of a snapshot. */
static inline void pages_write(const char *path, const char *json, size_t size,
			       enum pages_kind kind)
{
	const char *suffix = strrchr(path, '.');
	bool trace = suffix && !strcmp(suffix, ".json");
	struct snapshot s;
	size_t length;
	char *text;
	FILE *f;
	int ret = snapshot_parse(json, size, &s);

	if (ret)
		error(1, ret == -ENOMEM ? ENOMEM : 0, "this is no memory snapshot");
	f = open_memstream(&text, &length);
	if (!f)
		error(1, errno, "%s", path);
	if (kind == PAGES_SNAPSHOT)
		fwrite(json, 1, size, f);
	else if (kind == PAGES_HTML)
		page_write(f, &s);
	else if (!trace)
		timeline_svg(&s, f);
	else if (timeline_trace(&s, f))
		error(1, errno, "%s", path);
	if (fclose(f))
		error(1, errno, "%s", path);
	/* It names processes and what they do: nobody else needs to read it. */
	write_named(path, text, length, 0600);
	free(text);
	snapshot_free(&s);
}

#endif

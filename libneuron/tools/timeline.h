/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bytes in use over the last events of a snapshot, by category, with what was refused. */
#ifndef TOOLS_TIMELINE_H
#define TOOLS_TIMELINE_H

#include "file.h"
#include "map_svg.h"
#include "snapshot.h"

#define LINE_HEIGHT	220

/* Bytes of each category after each event; row 0 is before the first one. */
struct timeline {
	const struct snapshot_hbm *hbm;
	int64_t (*bytes)[NEURON_MEM_NR_CATEGORIES];
	int64_t most;
};

static inline int64_t timeline_change(const struct neuron_event *e)
{
	switch (e->kind) {
	case NEURON_EVENT_ALLOC:
	case NEURON_EVENT_GROW: return (int64_t)e->bytes;
	case NEURON_EVENT_FREE:
	case NEURON_EVENT_SHRINK: return -(int64_t)e->bytes;
	default: return 0;
	}
}

/* What is there now is known: the events are taken back one after the other. */
static inline struct timeline timeline_of(const struct snapshot_hbm *hbm)
{
	struct timeline t = { .hbm = hbm };
	size_t n = hbm->nr_events;

	t.bytes = calloc(n + 1, sizeof(*t.bytes));
	if (!t.bytes)
		error(1, ENOMEM, "timeline");
	for (int c = 0; c < NEURON_MEM_NR_CATEGORIES; c++)
		t.bytes[n][c] = (int64_t)hbm->stats.by_category[c];
	for (size_t i = n; i--;) {
		memcpy(t.bytes[i], t.bytes[i + 1], sizeof(t.bytes[i]));
		t.bytes[i][hbm->event[i].category] -= timeline_change(&hbm->event[i]);
	}
	for (size_t i = 0; i <= n; i++) {
		int64_t sum = 0;

		for (int c = 0; c < NEURON_MEM_NR_CATEGORIES; c++) {
			/* Of other users the category is not told. */
			t.bytes[i][c] = t.bytes[i][c] < 0 ? 0 : t.bytes[i][c];
			sum += t.bytes[i][c];
		}
		t.most = sum > t.most ? sum : t.most;
	}
	return t;
}

static inline double timeline_x(const struct timeline *t, size_t i)
{
	const struct neuron_event *e = t->hbm->event;
	double span = (double)(e[t->hbm->nr_events - 1].time - e[0].time);

	return SVG_LEFT + (span > 0 ? (double)(e[i].time - e[0].time) / span : 0) * SVG_STRIP;
}

static inline double timeline_y(const struct timeline *t, size_t i, int categories)
{
	int64_t sum = 0;

	for (int c = 0; c < categories; c++)
		sum += t->bytes[i][c];
	return LINE_HEIGHT - (t->most ? (double)sum / (double)t->most : 0) * (LINE_HEIGHT - 10);
}

/* A category on top of those before it, in steps. */
static inline void timeline_area(const struct timeline *t, FILE *f, int category)
{
	size_t n = t->hbm->nr_events;

	fprintf(f, "<path fill=\"%s\" d=\"M%d %.1f", svg_category_colour((unsigned int)category),
		SVG_LEFT, timeline_y(t, 0, category + 1));
	for (size_t i = 0; i < n; i++)
		fprintf(f, "H%.1fV%.1f", timeline_x(t, i), timeline_y(t, i + 1, category + 1));
	fprintf(f, "H%dV%.1f", SVG_LEFT + SVG_STRIP, timeline_y(t, n, category));
	for (size_t i = n; i--;)
		fprintf(f, "H%.1fV%.1f", timeline_x(t, i), timeline_y(t, i, category));
	fprintf(f, "H%dZ\"><title>%s</title></path>\n", SVG_LEFT,
		neuron_mem_category_name((enum neuron_mem_category)category));
}

static inline void timeline_refusals(const struct timeline *t, FILE *f)
{
	for (size_t i = 0; i < t->hbm->nr_events; i++) {
		const struct neuron_event *e = &t->hbm->event[i];

		if (e->kind != NEURON_EVENT_REFUSE)
			continue;
		fprintf(f, "<path stroke=\"#c00\" stroke-width=\"1.5\" d=\"M%.1f 0V%d\"><title>%s refused: %s, %s free</title></path>\n",
			timeline_x(t, i), LINE_HEIGHT, SIZE_TEXT(e->bytes),
			neuron_mem_reason_name(e->reason), SIZE_TEXT(e->free));
	}
}

static inline void timeline_legend(const struct timeline *t, FILE *f)
{
	double x = SVG_LEFT, y = LINE_HEIGHT + 12;

	for (int c = 0; c < NEURON_MEM_NR_CATEGORIES; c++) {
		const char *name = neuron_mem_category_name((enum neuron_mem_category)c);
		bool any = false;

		for (size_t i = 0; i <= t->hbm->nr_events && !any; i++)
			any = t->bytes[i][c] > 0;
		if (!any)
			continue;
		if (x + 40 + (double)strlen(name) * SVG_LETTER > SVG_WIDTH) {
			x = SVG_LEFT;
			y += SVG_LEGEND;
		}
		fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"13\" height=\"13\" fill=\"%s\"/><text x=\"%.1f\" y=\"%.1f\">%s</text>\n",
			x, y, svg_category_colour((unsigned int)c), x + 20, y + 11, name);
		x += 40 + (double)strlen(name) * SVG_LETTER;
	}
}

static inline void timeline_panel(const struct snapshot *s, size_t at, FILE *f, double y)
{
	struct timeline t = timeline_of(&s->list[at]);
	const struct neuron_event *e = t.hbm->event;
	size_t n = t.hbm->nr_events;

	fprintf(f, "<g transform=\"translate(0 %.0f)\"><text class=\"title\" x=\"20\" y=\"24\">neuron%u HBM %u</text>",
		y, s->device, t.hbm->hbm);
	if (!n) {
		fprintf(f, "<text x=\"%d\" y=\"24\">no events</text></g>\n", SVG_LEFT + 65);
		free(t.bytes);
		return;
	}
	fprintf(f, "<text x=\"%d\" y=\"24\">%zu events in %.6f seconds, at most %s in use; red: refused</text>\n<g transform=\"translate(0 40)\">",
		SVG_LEFT + 65, n, (double)(e[n - 1].time - e[0].time) / 1e9,
		SIZE_TEXT((uint64_t)t.most));
	for (int c = 0; c < NEURON_MEM_NR_CATEGORIES; c++)
		timeline_area(&t, f, c);
	timeline_refusals(&t, f);
	fprintf(f, "<rect class=\"frame\" x=\"%d\" y=\"0\" width=\"%d\" height=\"%d\"/>\n",
		SVG_LEFT, SVG_STRIP, LINE_HEIGHT);
	timeline_legend(&t, f);
	fputs("</g></g>\n", f);
	free(t.bytes);
}

static inline void timeline_svg(const struct snapshot *s, FILE *f)
{
	double y = 0;
	double height = 20;

	for (size_t i = 0; i < s->count; i++)
		height += s->list[i].nr_events ? LINE_HEIGHT + 100 : 40;
	svg_begin(f, height);
	for (size_t i = 0; i < s->count; i++) {
		timeline_panel(s, i, f, y);
		y += s->list[i].nr_events ? LINE_HEIGHT + 100 : 40;
	}
	fputs("</svg>\n", f);
}

/* ---- for ui.perfetto.dev ------------------------------------------------------------- */

static inline void timeline_trace_hbm(const struct snapshot_hbm *hbm, json_t *list)
{
	struct timeline t = timeline_of(hbm);
	char name[64];

	for (size_t i = 0; i < hbm->nr_events; i++) {
		const struct neuron_event *e = &hbm->event[i];
		json_t *bytes = json_object();

		for (int c = 0; c < NEURON_MEM_NR_CATEGORIES; c++) {
			const char *category = neuron_mem_category_name((enum neuron_mem_category)c);

			if (c == (int)e->category || t.bytes[i + 1][c])
				json_object_set_new(bytes, category, json_integer(
					json_integer_value(json_object_get(bytes, category)) +
					t.bytes[i + 1][c]));
		}
		snprintf(name, sizeof(name), "HBM %u", hbm->hbm);
		json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:f, s:o}", "ph", "C",
						      "name", name, "pid", 1, "ts",
						      (double)e->time / 1e3, "args", bytes));
		if (e->kind != NEURON_EVENT_REFUSE)
			continue;
		snprintf(name, sizeof(name), "refused: %s", neuron_mem_reason_name(e->reason));
		json_array_append_new(list, json_pack(
			"{s:s, s:s, s:s, s:i, s:i, s:f, s:{s:I, s:I}}", "ph", "i", "s", "g",
			"name", name, "pid", 1, "tid", (int)hbm->hbm, "ts", (double)e->time / 1e3,
			"args", "bytes", INT(e->bytes), "free", INT(e->free)));
	}
	free(t.bytes);
}

static inline int timeline_trace(const struct snapshot *s, FILE *f)
{
	json_t *list = json_array(), *all;
	int bad;

	for (size_t i = 0; i < s->count; i++)
		timeline_trace_hbm(&s->list[i], list);
	all = json_pack("{s:o}", "traceEvents", list);
	bad = !all || json_dumpf(all, f, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(all);
	return bad ? -1 : 0;
}

#endif

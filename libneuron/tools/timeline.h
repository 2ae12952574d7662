/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bytes in use over the last events of a snapshot, by category, with what was refused. */
#ifndef TOOLS_TIMELINE_H
#define TOOLS_TIMELINE_H

#include "file.h"
#include "map_svg.h"
#include "snapshot.h"

#define LINE_HEIGHT	220
#define LINE_PANEL	(LINE_HEIGHT + 120)

/* From x on, the bytes of a row are drawn. */
struct timeline_point {
	int x;
	size_t row;
};

/* Bytes of each category after each event; row 0 is before the first one. */
struct timeline {
	const struct snapshot_hbm *hbm;
	int64_t (*bytes)[NEURON_MEM_NR_CATEGORIES];
	int64_t most;
	struct timeline_point *point;
	size_t nr_points;
};

/* A file may say anything: what is too much is the most that there can be. */
static inline int64_t timeline_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

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

static inline int64_t timeline_sum(const struct timeline *t, size_t row, int categories)
{
	int64_t sum = 0;

	for (int c = 0; c < categories; c++)
		sum = timeline_add(sum, t->bytes[row][c]);
	return sum;
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
		t.bytes[i][hbm->event[i].category] =
			timeline_add(t.bytes[i][hbm->event[i].category],
				     -timeline_change(&hbm->event[i]));
	}
	for (size_t i = 0; i <= n; i++) {
		int64_t sum;

		/* Of other users the category is not told. */
		for (int c = 0; c < NEURON_MEM_NR_CATEGORIES; c++)
			t.bytes[i][c] = t.bytes[i][c] < 0 ? 0 : t.bytes[i][c];
		sum = timeline_sum(&t, i, NEURON_MEM_NR_CATEGORIES);
		t.most = sum > t.most ? sum : t.most;
	}
	return t;
}

/* Nanoseconds from the first event to another one; none if that was earlier. */
static inline double timeline_time(const struct timeline *t, size_t i)
{
	const struct neuron_event *e = t->hbm->event;

	return e[i].time > e[0].time ? (double)(e[i].time - e[0].time) : 0;
}

static inline double timeline_x(const struct timeline *t, size_t i)
{
	double span = timeline_time(t, t->hbm->nr_events - 1), time = timeline_time(t, i);

	return SVG_LEFT + (time < span ? time / span : span > 0) * SVG_STRIP;
}

static inline double timeline_y(const struct timeline *t, int64_t bytes)
{
	return LINE_HEIGHT - (t->most ? (double)bytes / (double)t->most : 0) * (LINE_HEIGHT - 10);
}

/*
 * Of the events that share a column of the picture, that with the most in use is drawn in it, and
 * the last one behind it, up to the next column that has any.
 */
static inline void timeline_points(struct timeline *t)
{
	size_t n = t->hbm->nr_events, last;

	t->point = calloc(2 * n + 1, sizeof(*t->point));
	if (!t->point)
		error(1, ENOMEM, "timeline");
	for (size_t i = 0; i < n; i = last + 1) {
		int x = (int)timeline_x(t, i);
		size_t most = i + 1;

		for (last = i; last + 1 < n && (int)timeline_x(t, last + 1) == x; last++)
			if (timeline_sum(t, last + 2, NEURON_MEM_NR_CATEGORIES) >
			    timeline_sum(t, most, NEURON_MEM_NR_CATEGORIES))
				most = last + 2;
		t->point[t->nr_points++] = (struct timeline_point){ x, most };
		if (most != last + 1 && (last + 1 == n || (int)timeline_x(t, last + 1) > x + 1))
			t->point[t->nr_points++] = (struct timeline_point){ x + 1, last + 1 };
	}
}

static inline bool timeline_has(const struct timeline *t, int category)
{
	for (size_t i = 0; i <= t->hbm->nr_events; i++)
		if (t->bytes[i][category] > 0)
			return true;
	return false;
}

/* A category with those below it, in steps; theirs are drawn over it later. */
static inline void timeline_area(const struct timeline *t, FILE *f, int category)
{
	char text[16], before[16];

	snprintf(before, sizeof(before), "%.1f", timeline_y(t, timeline_sum(t, 0, category + 1)));
	fprintf(f, "<path fill=\"%s\" d=\"M%d %dV%s", svg_category_colour((unsigned int)category),
		SVG_LEFT, LINE_HEIGHT, before);
	for (size_t i = 0; i < t->nr_points; i++) {
		const struct timeline_point *p = &t->point[i];

		snprintf(text, sizeof(text), "%.1f",
			 timeline_y(t, timeline_sum(t, p->row, category + 1)));
		if (!strcmp(text, before))
			continue;
		fprintf(f, "H%dV%s", p->x, text);
		strcpy(before, text);
	}
	fprintf(f, "H%dV%dZ\"><title>%s</title></path>\n", SVG_LEFT + SVG_STRIP, LINE_HEIGHT,
		neuron_mem_category_name((enum neuron_mem_category)category));
}

/* Up to 5 round sizes at the left, and up to 10 round times below. */
static inline void timeline_scales(const struct timeline *t, FILE *f)
{
	double span = timeline_time(t, t->hbm->nr_events - 1) / 1e9, step = 1e-9;
	int64_t bytes = NEURON_PAGE;

	while (t->most / bytes > 4)
		bytes *= 2;
	for (int64_t i = 0; i <= t->most / bytes; i++) {
		int64_t at = i * bytes;
		double y = timeline_y(t, at);

		if (at)
			fprintf(f, "<path class=\"grid\" d=\"M%d %.1fh%d\"/>", SVG_LEFT, y, SVG_STRIP);
		fprintf(f, "<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			SVG_LEFT - 8, y + 4, at ? SIZE_TEXT((uint64_t)at) : "0");
	}
	for (int i = 0; span / step > 10; i++)
		step *= i % 3 == 1 ? 2.5 : 2;
	for (int i = 0; span > 0 && i * step <= span; i++) {
		double x = SVG_LEFT + i * step / span * SVG_STRIP;

		fprintf(f, "<path class=\"tick\" d=\"M%.1f %dv5\"/><text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g s</text>\n",
			x, LINE_HEIGHT, x, LINE_HEIGHT + 17, i * step);
	}
}

/* Returns how many there are. */
static inline size_t timeline_refusals(const struct timeline *t, FILE *f)
{
	size_t n = 0;

	for (size_t i = 0; i < t->hbm->nr_events; i++) {
		const struct neuron_event *e = &t->hbm->event[i];

		if (e->kind != NEURON_EVENT_REFUSE)
			continue;
		fprintf(f, "<path class=\"refused\" d=\"M%.1f 0V%d\"><title>%s refused: %s, %s free</title></path>\n",
			timeline_x(t, i), LINE_HEIGHT, SIZE_TEXT(e->bytes),
			neuron_mem_reason_name(e->reason), SIZE_TEXT(e->free));
		n++;
	}
	return n;
}

static inline void timeline_legend(const struct timeline *t, FILE *f)
{
	double x = SVG_LEFT, y = LINE_HEIGHT + 28;

	for (int c = 0; c < NEURON_MEM_NR_CATEGORIES; c++) {
		const char *name = neuron_mem_category_name((enum neuron_mem_category)c);

		if (!timeline_has(t, c))
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
	size_t n = t.hbm->nr_events, refused;
	double span;

	fprintf(f, "<g transform=\"translate(0 %.0f)\"><text class=\"title\" x=\"20\" y=\"24\">neuron%u HBM %u</text>",
		y, s->device, t.hbm->hbm);
	if (!n) {
		fprintf(f, "<text x=\"%d\" y=\"24\">no events</text></g>\n", SVG_LEFT + 65);
		free(t.bytes);
		return;
	}
	span = timeline_time(&t, n - 1) / 1e9;
	timeline_points(&t);
	fputs("<g transform=\"translate(0 40)\">", f);
	for (int c = NEURON_MEM_NR_CATEGORIES; c--;)
		if (timeline_has(&t, c))
			timeline_area(&t, f, c);
	timeline_scales(&t, f);
	refused = timeline_refusals(&t, f);
	fprintf(f, "<rect class=\"frame\" x=\"%d\" y=\"0\" width=\"%d\" height=\"%d\"/>\n",
		SVG_LEFT, SVG_STRIP, LINE_HEIGHT);
	timeline_legend(&t, f);
	fprintf(f, "</g><text x=\"%d\" y=\"24\">%zu events in %.*f seconds, at most %s in use",
		SVG_LEFT + 65, n, span < 1 ? 6 : span < 100 ? 3 : 1, span,
		SIZE_TEXT((uint64_t)t.most));
	if (refused)
		fprintf(f, "; <tspan class=\"refused\">red</tspan>: %zu request%s refused", refused,
			refused == 1 ? "" : "s");
	fputs("</text></g>\n", f);
	free(t.point);
	free(t.bytes);
}

static inline void timeline_svg(const struct snapshot *s, FILE *f)
{
	double y = 0;
	double height = 20;

	for (size_t i = 0; i < s->count; i++)
		height += s->list[i].nr_events ? LINE_PANEL : 40;
	svg_begin(f, height);
	for (size_t i = 0; i < s->count; i++) {
		timeline_panel(s, i, f, y);
		y += s->list[i].nr_events ? LINE_PANEL : 40;
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
				json_object_set_new(bytes, category, json_integer(timeline_add(
					json_integer_value(json_object_get(bytes, category)),
					t.bytes[i + 1][c])));
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

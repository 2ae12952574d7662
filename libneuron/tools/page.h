/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pages of neuron-top, for a terminal or as text: cells with a style, numbers, bars. */
#ifndef TOOLS_PAGE_H
#define TOOLS_PAGE_H

#include <error.h>
#include <langinfo.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../common/util.h"
#include "sysfs.h"

#define MAX_COLS 400
#define MIN_BAR 8		/* without its brackets */
#define NAME_COLS 23		/* left of the bars */
#define VALUE_COLS 38		/* right of them */
#define FULL 9			/* of a bar: a stroke that leaves room to the line above */
#define HISTORY_COLS 20		/* in the lines of devices, where there is room */

/* Of a cell: 0 is plain, 1 + i a category. */
enum style { PLAIN, HEAD = NR_CATEGORIES + 1, USED, ALERT, DIM, CURSOR };

struct line {
	char text[MAX_COLS + 1];	/* 1 to 8: the height of a stroke; FULL */
	unsigned char style[MAX_COLS];
	int len;
	struct device *device;		/* that it is about, or NULL */
};

struct page {
	struct line *line;
	size_t count, max;
	int cols;
};

/* As many as a line has, of a screen that has more. */
static inline int page_cols(int cols)
{
	return cols < MAX_COLS ? cols : MAX_COLS;
}

static inline struct line *add_line(struct page *page, struct device *d)
{
	struct line *line;

	if (array_grow((void **)&page->line, page->count, &page->max, sizeof(*line)))
		error(1, ENOMEM, "screen");
	line = &page->line[page->count++];
	memset(line, 0, sizeof(*line));
	line->device = d;
	return line;
}

static inline void put_cell(const struct page *page, struct line *line, unsigned int style, char c)
{
	if (line->len >= page->cols)
		return;
	line->style[line->len] = (unsigned char)style;
	line->text[line->len++] = c;
}

static inline void __attribute__((format(printf, 4, 5)))
put(const struct page *page, struct line *line, unsigned int style, const char *fmt, ...)
{
	char text[MAX_COLS + 1];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (const char *c = text; *c; c++)
		put_cell(page, line, style, *c >= ' ' && *c <= '~' ? *c : '?');
}

static inline void pad(const struct page *page, struct line *line, unsigned int style, int col)
{
	while (line->len < col && line->len < page->cols)
		put_cell(page, line, style, ' ');
}

/* At most 5 characters, with the units of @step, 1000 or 1024; "-" if it is unknown. */
static inline const char *scaled(double value, unsigned int step)
{
	static char text[16][16];
	static unsigned int next;
	char *out = text[next++ % 16];
	unsigned int unit = 0;

	if (isnan(value))
		return "-";
	for (; value >= (step == 1024 ? 1023.5 : 999.5) && unit < 6; unit++)
		value /= step;
	if (unit || value != floor(value))
		snprintf(out, sizeof(text[0]), value < 99.95 ? "%.1f%.1s" : "%.0f%.1s", value,
			 (step == 1024 ? "\0KMGTPE" : "\0kMGTPE") + unit);
	else
		snprintf(out, sizeof(text[0]), "%.0f", value);
	return out;
}

static inline const char *size(uint64_t bytes)
{
	return scaled(bytes == UNKNOWN ? NAN : (double)bytes, 1024);
}

static inline const char *rate(double per_second)
{
	return scaled(per_second, 1000);
}

static inline const char *percent(double share)
{
	static char text[4][16];
	static unsigned int next;
	char *out = text[next++ % 4];

	if (isnan(share))
		return "-";
	snprintf(out, sizeof(text[0]), "%.0f%%", share * 100);
	return out;
}

static inline bool has_history(const struct page *page)
{
	return page->cols >= NAME_COLS + VALUE_COLS + HISTORY_COLS + 30;
}

/* Of the bars, without brackets. */
static inline int bar_cols(const struct page *page)
{
	int room = page->cols - NAME_COLS - VALUE_COLS - 2;

	if (has_history(page))
		room -= HISTORY_COLS + 1;
	return room < MIN_BAR ? MIN_BAR : room;
}

/* Anything that is more than nothing has a cell. */
static inline int bar_cells(uint64_t value, uint64_t total, int cols)
{
	double share = total ? (double)value / (double)total : 0;
	int cells = (int)(share * cols + 0.5);

	if (!value || value == UNKNOWN)
		return 0;
	return cells < 1 ? 1 : cells > cols ? cols : cells;
}

static inline void put_bar(const struct page *page, struct line *line, uint64_t used,
			   uint64_t total)
{
	int cols = bar_cols(page);
	int cells = bar_cells(used, total == UNKNOWN ? 0 : total, cols);

	put_cell(page, line, DIM, '[');
	for (int i = 0; i < cols; i++)
		put_cell(page, line, i < cells ? USED : DIM, i < cells ? FULL : '.');
	put_cell(page, line, DIM, ']');
}

/* The memory of a core, one letter for each category: together as long as the bar of their sum. */
static inline void put_stack(const struct page *page, struct line *line, const struct core *c,
			     uint64_t total)
{
	int cols = bar_cols(page), cells, put = 0;
	uint64_t sum = 0, before = 0;

	for (size_t i = 0; i < NR_CATEGORIES; i++)
		add_known(&sum, c->category[i].now);
	cells = bar_cells(sum, total, cols);
	put_cell(page, line, DIM, '[');
	for (size_t i = 0; i < NR_CATEGORIES; i++) {
		add_known(&before, c->category[i].now);
		for (; sum && put < (int)((double)before / (double)sum * cells + 0.5); put++)
			put_cell(page, line, (unsigned int)i + 1, categories[i].letter);
	}
	for (; put < cols; put++)
		put_cell(page, line, DIM, '.');
	put_cell(page, line, DIM, ']');
}

static inline void put_history(const struct page *page, struct line *line, const struct history *h,
			       uint64_t total, int cols)
{
	for (int i = cols - 1; i >= 0; i--) {
		int height = bar_cells(i < HISTORY ? history_at(h, (unsigned int)i) : 0, total, 8);

		put_cell(page, line, height ? USED : DIM, height ? (char)height : ' ');
	}
}

/* A stroke of a height from 1 to 8, or FULL; plain where the terminal has no others. */
static inline const char *stroke(int height)
{
	static const char *const strokes[2][FULL] = {
		{ ".", ".", ":", "-", "=", "+", "*", "#", "#" },
		{ "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█", "▆" },
	};

	return strokes[!strcmp(nl_langinfo(CODESET), "UTF-8")][height - 1];
}

static inline void print_line(const struct line *line)
{
	int len = line->len;

	while (len && line->text[len - 1] == ' ')
		len--;
	for (int i = 0; i < len; i++)
		if (line->text[i] <= FULL)
			fputs(stroke(line->text[i]), stdout);
		else
			putchar(line->text[i]);
	putchar('\n');
}

#endif

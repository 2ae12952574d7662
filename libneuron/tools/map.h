/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Maps of device memory: who holds what, and where the holes are.  As text and as JSON. */
#ifndef TOOLS_MAP_H
#define TOOLS_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <neuron/neuron.h>

#include "../common/snapshot_words.h"
#include "../common/util.h"
#include "file.h"
#include "processes.h"

#define MAX_HOLDERS	17	/* processes of a device, and one for those outside the pid namespace */

/* What a piece of a map belongs to: a holder, or one of these. */
enum { OWNER_UNTOLD = MAX_HOLDERS, OWNER_RESERVED, OWNER_FREE, NR_OWNERS };

struct holder {
	int pid;		/* 0: outside of the pid namespace */
	const struct process *process;	/* NULL: not known */
	uint64_t bytes;
	uint64_t allocations;
	uint64_t category[NEURON_MEM_NR_CATEGORIES];
	uint32_t cores;		/* that it is charged to, a bit each */
};

struct map {
	unsigned int device, hbm;
	struct neuron_hbm_stats stats;
	const struct neuron_range *range;	/* adjacent holes are one */
	size_t count;
	struct holder holder[MAX_HOLDERS];	/* most memory first */
	size_t nr_holders;
	uint64_t bytes[NR_OWNERS];
	uint64_t used;
	uint64_t holes;
};

/* How text is printed. */
struct map_style {
	int cols;
	int rows;		/* of cells, at most */
	bool colour;
	bool plain;		/* bytes, without units */
};

static inline const char *map_size(const struct map_style *style, uint64_t bytes)
{
	static char text[8][32];
	static unsigned int next;
	char *out = text[next++ % 8];

	if (!style->plain && bytes >= 1024)
		return neuron_report_size(bytes, out, sizeof(text[0]));
	snprintf(out, sizeof(text[0]), style->plain ? "%" PRIu64 : "%" PRIu64 "B", bytes);
	return out;
}

/* ---- counting ------------------------------------------------------------------------ */

/* Joins holes that follow each other.  Returns how many ranges are left. */
static inline size_t map_join_holes(struct neuron_range *range, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (n && range[i].state == NEURON_RANGE_FREE &&
		    range[n - 1].state == NEURON_RANGE_FREE)
			range[n - 1].bytes += range[i].bytes;
		else
			range[n++] = range[i];
	return n;
}

static inline size_t map_holder(const struct map *map, int pid)
{
	size_t i = 0;

	while (i < map->nr_holders && map->holder[i].pid != pid)
		i++;
	return i < MAX_HOLDERS ? i : MAX_HOLDERS - 1;
}

static inline unsigned int map_owner(const struct map *map, const struct neuron_range *r)
{
	switch (r->state) {
	case NEURON_RANGE_FREE: return OWNER_FREE;
	case NEURON_RANGE_RESERVED: return OWNER_RESERVED;
	case NEURON_RANGE_OWNED: return (unsigned int)map_holder(map, r->pid);
	default: return OWNER_UNTOLD;
	}
}

static inline int map_by_bytes(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : x->pid - y->pid;
}

/* @map->range, count, device, hbm and stats are set. */
static inline void map_add_up(struct map *map, const struct processes *all)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct neuron_range *r = &map->range[i];
		struct holder *h;

		if (r->state != NEURON_RANGE_OWNED)
			continue;
		h = &map->holder[map_holder(map, r->pid)];
		if (h == &map->holder[map->nr_holders])
			map->nr_holders++;
		h->pid = r->pid;
		h->bytes += r->bytes;
		h->allocations++;
		h->cores |= 1u << (r->nc & 31);
		if (r->category < NEURON_MEM_NR_CATEGORIES)
			h->category[r->category] += r->bytes;
	}
	qsort(map->holder, map->nr_holders, sizeof(map->holder[0]), map_by_bytes);
	for (size_t i = 0; i < map->nr_holders; i++)
		for (size_t p = 0; p < all->count; p++)
			if (all->list[p].device == map->device &&
			    all->list[p].pid == map->holder[i].pid)
				map->holder[i].process = &all->list[p];
	for (size_t i = 0; i < map->count; i++) {
		map->bytes[map_owner(map, &map->range[i])] += map->range[i].bytes;
		map->holes += map->range[i].state == NEURON_RANGE_FREE;
	}
	map->used = map->stats.total - map->bytes[OWNER_FREE] - map->bytes[OWNER_RESERVED];
}

/* The longest request that fits; a list of another moment may have no hole that long. */
static inline uint64_t map_largest(const struct map *map)
{
	uint64_t free = map->bytes[OWNER_FREE];

	return map->stats.largest_free < free ? map->stats.largest_free : free;
}

/* Share of the free memory that no single request can get, in percent. */
static inline double map_fragmentation(const struct map *map)
{
	uint64_t free = map->bytes[OWNER_FREE];

	return free ? 100.0 * (double)(free - map_largest(map)) / (double)free : 0;
}

/* Nothing but one allocation between two holes, which would make one that is longer. */
struct map_wall {
	const struct neuron_range *range;	/* NULL: none makes it longer than it is */
	uint64_t hole;
};

static inline struct map_wall map_find_wall(const struct map *map)
{
	struct map_wall best = { NULL, map_largest(map) };

	for (size_t i = 1; i + 1 < map->count; i++) {
		const struct neuron_range *r = &map->range[i];
		uint64_t hole = r[-1].bytes + r->bytes + r[1].bytes;

		if (r->state == NEURON_RANGE_OWNED && r[-1].state == NEURON_RANGE_FREE &&
		    r[1].state == NEURON_RANGE_FREE && hole > best.hole)
			best = (struct map_wall){ r, hole };
	}
	return best;
}

/* ---- text ---------------------------------------------------------------------------- */

static inline const char *map_colour(unsigned int owner)
{
	static const unsigned char of_holders[] = { 33, 208, 35, 197, 141, 37, 220, 170, 107, 173 };
	static char text[4][24];
	static unsigned int next;
	char *out = text[next++ % 4];

	if (owner == OWNER_FREE)
		return "\033[2m";
	if (owner >= MAX_HOLDERS)
		snprintf(out, sizeof(text[0]), "\033[30;48;5;%dm", owner == OWNER_UNTOLD ? 250 : 242);
	else
		snprintf(out, sizeof(text[0]), "\033[30;48;5;%dm",
			 of_holders[owner % ARRAY_SIZE(of_holders)]);
	return out;
}

/* Large: the whole cell is in use; small: a part of it. */
static inline char map_letter(unsigned int owner, bool whole)
{
	if (owner == OWNER_FREE)
		return '.';
	if (owner == OWNER_RESERVED)
		return '#';
	if (owner == OWNER_UNTOLD)
		return whole ? 'X' : 'x';
	return (char)((whole ? 'A' : 'a') + (int)owner);
}

/* Who has most of a piece that is not free, and whether nothing of it is free. */
struct map_cell {
	unsigned int owner;
	bool whole;
	bool alone;	/* nobody else has any of it */
};

/* @at: the first range that ends behind @from; moves on to that of @to. */
static inline struct map_cell map_look(const struct map *map, size_t *at, uint64_t from,
				       uint64_t to)
{
	uint64_t bytes[NR_OWNERS] = { 0 };
	struct map_cell cell = { .owner = OWNER_FREE };

	while (*at < map->count) {
		const struct neuron_range *r = &map->range[*at];
		uint64_t begin = r->address > from ? r->address : from;
		uint64_t end = r->address + r->bytes < to ? r->address + r->bytes : to;

		if (begin < end)
			bytes[map_owner(map, r)] += end - begin;
		if (r->address + r->bytes > to)
			break;
		++*at;
	}
	for (unsigned int i = 0; i < OWNER_FREE; i++)
		if (bytes[i] && (cell.owner == OWNER_FREE || bytes[i] > bytes[cell.owner]))
			cell.owner = i;
	cell.whole = !bytes[OWNER_FREE];
	cell.alone = bytes[cell.owner] == to - from;
	return cell;
}

/* A line of cells, or several lines that all have the same. */
struct map_line {
	uint64_t from, to;	/* addresses */
	size_t lines;
	struct map_cell whole;	/* of one line and more that belong to one owner */
};

/*
 * The lines of a map whose cells have @cell bytes: at most @max in @line.  Equal ones, from three
 * on, are one.  Returns their number.
 */
static inline size_t map_lines(const struct map *map, uint64_t cell, int cells,
			       struct map_line *line, size_t max)
{
	uint64_t from = map->range[0].address, end = from + map->stats.total, to;
	size_t at = 0, n = 0;

	for (; from < end && n < max; from = to) {
		struct map_cell whole;

		to = from + cell * (uint64_t)cells < end ? from + cell * (uint64_t)cells : end;
		whole = map_look(map, &at, from, to);
		if (n > 1 && whole.alone && line[n - 1].whole.alone && line[n - 2].whole.alone &&
		    whole.owner == line[n - 1].whole.owner &&
		    whole.owner == line[n - 2].whole.owner) {
			/* The first two become one, so that two equal lines stay two. */
			line[n - 2].to = to;
			line[n - 2].lines += line[n - 1].lines + 1;
			n--;
			continue;
		}
		if (n && line[n - 1].lines > 1 && whole.alone &&
		    whole.owner == line[n - 1].whole.owner) {
			line[n - 1].to = to;
			line[n - 1].lines++;
			continue;
		}
		line[n++] = (struct map_line){ from, to, 1, whole };
	}
	return from < end ? max + 1 : n;
}

/* Cells of a line: a power of two, or three quarters of one, so that lines begin at even places. */
static inline int map_cells(const struct map_style *style)
{
	int room = style->cols - 14, cells = 16;

	while (cells * 2 <= room)
		cells *= 2;
	return cells * 3 / 2 <= room ? cells * 3 / 2 : cells;
}

static inline void map_put(const struct map_style *style, FILE *f, unsigned int owner, bool whole,
			   unsigned int *last)
{
	if (style->colour && owner != *last)
		fprintf(f, "\033[0m%s", map_colour(owner));
	*last = owner;
	fputc(map_letter(owner, whole), f);
}

static inline void map_put_line(const struct map *map, const struct map_style *style, FILE *f,
				const struct map_line *line, uint64_t cell)
{
	uint64_t base = map->range[0].address;
	unsigned int last = NR_OWNERS;
	size_t at = 0;

	fprintf(f, "%12s  ", map_size(style, line->from - base));
	if (line->lines > 1) {
		map_put(style, f, line->whole.owner, true, &last);
		fprintf(f, "%s and so on, %s\n", style->colour ? "\033[0m" : "",
			map_size(style, line->to - line->from));
		return;
	}
	while (at < map->count && map->range[at].address + map->range[at].bytes <= line->from)
		at++;
	for (uint64_t from = line->from; from < line->to; from += cell) {
		uint64_t to = from + cell < line->to ? from + cell : line->to;
		struct map_cell c = map_look(map, &at, from, to);

		map_put(style, f, c.owner, c.whole, &last);
	}
	fprintf(f, "%s\n", style->colour ? "\033[0m" : "");
}

/* The smallest cells with which the map fits into @style->rows. */
static inline void map_put_cells(const struct map *map, const struct map_style *style, FILE *f)
{
	size_t max = (size_t)style->rows;
	struct map_line *lines = calloc(max, sizeof(*lines));
	int cells = map_cells(style);
	uint64_t cell = NEURON_PAGE;
	size_t n;

	if (!lines)
		error(1, ENOMEM, "map");
	while (cell * (uint64_t)cells * max < map->stats.total)
		cell *= 2;
	while (cell > NEURON_PAGE && map_lines(map, cell / 2, cells, lines, max) <= max)
		cell /= 2;
	n = map_lines(map, cell, cells, lines, max);
	fprintf(f, "%12s  a character is %s\n", "", map_size(style, cell));
	for (size_t i = 0; i < n; i++)
		map_put_line(map, style, f, &lines[i], cell);
	free(lines);
}

static inline void map_put_sample(const struct map_style *style, FILE *f, unsigned int owner)
{
	unsigned int last = NR_OWNERS;

	map_put(style, f, owner, true, &last);
	fprintf(f, "%s  ", style->colour ? "\033[0m" : "");
}

static inline const char *map_cores(uint32_t cores)
{
	static char text[128];
	int32_t owner[NEURON_MAX_CORES];

	for (unsigned int i = 0; i < NEURON_MAX_CORES; i++)
		owner[i] = (int32_t)(cores >> i & 1);
	snprintf(text, sizeof(text), "core%s %s", cores & (cores - 1) ? "s" : "",
		 owned_cores(owner, NEURON_MAX_CORES, 1));
	return text;
}

static inline void map_put_holder(const struct map *map, const struct map_style *style, FILE *f,
				  unsigned int i)
{
	const struct holder *h = &map->holder[i];
	const char *sep = ": ";

	map_put_sample(style, f, i);
	if (h->pid)
		fprintf(f, "process %d", h->pid);
	else
		fputs("a process outside of this pid namespace", f);
	if (h->process)
		fprintf(f, " (%s)", h->process->name);
	fprintf(f, " %s in %" PRIu64 " allocation%s for %s", map_size(style, h->bytes),
		h->allocations, h->allocations == 1 ? "" : "s", map_cores(h->cores));
	for (int c = 0; c < NEURON_MEM_NR_CATEGORIES; c++)
		if (h->category[c]) {
			fprintf(f, "%s%s %s", sep, neuron_mem_category_name(c),
				map_size(style, h->category[c]));
			sep = ", ";
		}
	fputc('\n', f);
}

/* The driver's memory, and what is not told. */
static inline const char *map_untold(const struct map *map)
{
	if (map->bytes[OWNER_UNTOLD] <= map->stats.driver)
		return "the driver";
	return !sees_all() ? "the driver and processes of other users" :
			   "the driver, and what is still mapped, exported or in a ring after it was freed";
}

static inline void map_put_fragmentation(const struct map *map, const struct map_style *style,
					 FILE *f)
{
	uint64_t free = map->bytes[OWNER_FREE], largest = map_largest(map);
	struct map_wall wall = map_find_wall(map);

	if (!free) {
		fputs("Full.\n", f);
		return;
	}
	if (largest == free) {
		fprintf(f, "Not fragmented: one request can have all of the %s that are free.\n",
			map_size(style, free));
		return;
	}
	fprintf(f, "%s fragmented: %.1f%%. One request can have up to %s of the %s that are free, which are in %" PRIu64 " holes.\n",
		map_fragmentation(map) < 5 ? "Hardly" : "Clearly", map_fragmentation(map),
		map_size(style, largest), map_size(style, free),
		map->holes);
	/* Below that it is not worth anything. */
	if (wall.range && map_fragmentation(map) >= 5)
		fprintf(f, "Without the %s of process %d (%s) at %s the largest hole would have %s.\n",
			map_size(style, wall.range->bytes), wall.range->pid,
			neuron_mem_category_name(wall.range->category),
			map_size(style, wall.range->address - map->range[0].address),
			map_size(style, wall.hole));
}

static inline void map_text(const struct map *map, const struct map_style *style, FILE *f)
{
	fprintf(f, "neuron%u HBM %u: %s, used %s, free %s, largest hole %s\n", map->device,
		map->hbm, map_size(style, map->stats.total), map_size(style, map->used),
		map_size(style, map->bytes[OWNER_FREE]), map_size(style, map_largest(map)));
	if (!map->used)
		return;
	fputc('\n', f);
	map_put_cells(map, style, f);
	fputc('\n', f);
	for (unsigned int i = 0; i < map->nr_holders; i++)
		map_put_holder(map, style, f, i);
	if (map->bytes[OWNER_UNTOLD]) {
		map_put_sample(style, f, OWNER_UNTOLD);
		fprintf(f, "%s %s\n", map_untold(map), map_size(style, map->bytes[OWNER_UNTOLD]));
	}
	if (map->bytes[OWNER_RESERVED]) {
		map_put_sample(style, f, OWNER_RESERVED);
		fprintf(f, "reserved %s\n", map_size(style, map->bytes[OWNER_RESERVED]));
	}
	map_put_sample(style, f, OWNER_FREE);
	fputs("free; a small letter: a part of it is free\n", f);
	map_put_fragmentation(map, style, f);
}

/* Bytes that change the colour, at the beginning of a text. */
static inline int map_escape(const char *text, int len)
{
	const char *end = len > 0 && *text == '\033' ? memchr(text, 'm', (size_t)len) : NULL;

	return end ? (int)(end - text) + 1 : 0;
}

/* Columns of the word at the beginning of a text. */
static inline int map_word(const char *text, int len)
{
	int cols = 0;

	for (int i = 0; i < len && text[i] != ' ';) {
		int escape = map_escape(text + i, len - i);

		cols += !escape;
		i += escape ? escape : 1;
	}
	return cols;
}

/* Prints a line, which breaks at spaces where @cols end; how many lines it took. */
static inline int map_wrap(FILE *f, const char *line, int len, int cols)
{
	int lines = 1, col = 0;

	for (int i = 0; i < len; i++) {
		int escape = map_escape(line + i, len - i);

		if (escape) {
			fwrite(line + i, 1, (size_t)escape, f);
			i += escape - 1;
			continue;
		}
		if (line[i] == ' ' && col > 8 &&
		    col + 1 + map_word(line + i + 1, len - i - 1) > cols) {
			fputs("\n    ", f);
			col = 4;
			lines++;
			continue;
		}
		fputc(line[i], f);
		col++;
	}
	fputc('\n', f);
	return lines;
}

/* ---- JSON ---------------------------------------------------------------------------- */

static inline json_t *map_ranges_json(const struct map *map)
{
	return ranges_json(map->range, map->count, "unknown");
}

#endif

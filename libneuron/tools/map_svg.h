/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps of device memory as a picture.  For each memory a strip to scale, and one in which long
 * holes are cut short, so that what is in use can be seen: above who holds it, below for what.
 */
#ifndef TOOLS_MAP_SVG_H
#define TOOLS_MAP_SVG_H

#include "map.h"

#define SVG_WIDTH	1200
#define SVG_LEFT	110	/* of the strips; names are left of it */
#define SVG_STRIP	(SVG_WIDTH - SVG_LEFT - 30)
#define SVG_LEGEND	20	/* a line of it */
#define SVG_LETTER	6.6	/* width of one */
#define SVG_FINE	200	/* up to so many pieces each one is wide enough to be seen */

/* Pieces of the strip: ranges that follow each other and look the same. */
struct svg_piece {
	uint64_t address, bytes;
	size_t count;		/* allocations */
	unsigned int owner;
	unsigned int category;
	int pid;
	uint32_t cores;
	double weight;		/* length in the strip that is not to scale */
	bool cut;
};

struct svg_pieces {
	struct svg_piece *list;
	size_t count, max;
	double weight;
};

/* A process has the same colour in all maps that a program draws; the first ones differ. */
static inline const char *svg_process_colour(int pid)
{
	static const char *const colours[] = {
		"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#9c6fb0", "#17a2a8", "#edc948",
		"#d37295", "#8c6d4f", "#7fb069",
	};
	static int seen[MAX_HOLDERS * NEURON_MAX_HBMS];
	static size_t n;
	size_t i = 0;

	while (i < n && seen[i] != pid)
		i++;
	if (i == n && n < ARRAY_SIZE(seen))
		seen[n++] = pid;
	return colours[i % ARRAY_SIZE(colours)];
}

static inline const char *svg_owner_colour(const struct map *map, unsigned int owner)
{
	if (owner == OWNER_FREE)
		return "url(#hole)";
	if (owner >= MAX_HOLDERS)
		return owner == OWNER_UNTOLD ? "#9aa0a6" : "#5f6368";
	return svg_process_colour(map->holder[owner].pid);
}

static inline const char *svg_category_colour(unsigned int category)
{
	static const char *const colours[NEURON_MEM_NR_CATEGORIES] = {
		[NEURON_MEM_OTHER] = "#d9d9d9",
		[NEURON_MEM_CODE] = "#fdb462",
		[NEURON_MEM_TENSORS] = "#80b1d3",
		[NEURON_MEM_CONSTANTS] = "#b3de69",
		[NEURON_MEM_SCRATCHPAD] = "#bebada",
		[NEURON_MEM_SCRATCHPAD_CONTIGUOUS] = "#bebada",
		[NEURON_MEM_SCRATCHPAD_PRIVATE] = "#d7b5d8",
		[NEURON_MEM_MISC] = "#ffed6f",
		[NEURON_MEM_DRIVER] = "#9aa0a6",
		[NEURON_MEM_COLLECTIVES] = "#fccde5",
		[NEURON_MEM_NOTIFICATION] = "#8dd3c7",
		[NEURON_MEM_RINGS] = "#fb8072",
	};

	return category < NEURON_MEM_NR_CATEGORIES && colours[category] ? colours[category] :
									 "#d9d9d9";
}

/* Names come from processes: what XML reads as its own is replaced. */
static inline void svg_put(FILE *f, const char *text)
{
	for (; *text; text++)
		switch (*text) {
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '&': fputs("&amp;", f); break;
		case '"': fputs("&quot;", f); break;
		default: fputc(*text >= ' ' && *text <= '~' ? *text : '?', f);
		}
}

/*
 * Text that ends, or is cut, before @width is over; nothing where that is too little.  If it begins
 * with a number, that is enough.
 */
static inline void svg_label(FILE *f, double x, double y, double width, const char *class,
			     const char *text)
{
	int room = (int)((width - 6) / SVG_LETTER), len = (int)strlen(text);
	int least = 6;
	char shown[64];

	if (room < len && *text >= '0' && *text <= '9') {
		len = (int)strcspn(text, " ");
		least = len;
	}
	if (room < 3 || (room < len && room < least))
		return;
	snprintf(shown, sizeof(shown), "%.*s%s", room < len ? room - 2 : len, text,
		 room < len ? ".." : "");
	fprintf(f, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", class,
		x + width / 2, y);
	svg_put(f, shown);
	fputs("</text>\n", f);
}

/* ---- pieces -------------------------------------------------------------------------- */

static inline bool svg_same(const struct svg_piece *p, unsigned int owner,
			    const struct neuron_range *r)
{
	return p->owner == owner &&
	       (owner >= MAX_HOLDERS || (p->pid == r->pid && p->category == (unsigned int)r->category));
}

/* How far holes are drawn, so that together they take less room than what is not free. */
static inline uint64_t svg_longest_hole(const struct svg_pieces *all, uint64_t in_use)
{
	uint64_t longest = UINT64_MAX / 2, sum;

	do {
		longest /= 2;
		sum = 0;
		for (size_t i = 0; i < all->count; i++)
			if (all->list[i].owner == OWNER_FREE)
				sum += all->list[i].bytes < longest ? all->list[i].bytes : longest;
	} while (sum > in_use / 2 && longest > NEURON_PAGE);
	return longest;
}

static inline void svg_weigh(struct svg_pieces *all, uint64_t in_use)
{
	uint64_t longest = svg_longest_hole(all, in_use);
	double sum = 0;

	for (size_t i = 0; i < all->count; i++) {
		struct svg_piece *p = &all->list[i];

		p->cut = in_use && (p->owner == OWNER_FREE ? p->bytes > longest :
				    p->owner == OWNER_RESERVED && p->bytes > in_use / 8);
		p->weight = (double)(!p->cut ? p->bytes : p->owner == OWNER_FREE ? longest :
				     in_use / 8);
		sum += p->weight;
	}
	for (size_t i = 0; i < all->count; i++) {
		struct svg_piece *p = &all->list[i];
		double least = all->count > SVG_FINE ? 0 : sum / 320;

		/* A cut must be seen, and so must its length. */
		least = p->cut && p->owner == OWNER_FREE && all->count <= 12 ? sum / 9 : least;
		p->weight = p->weight < least ? least : p->weight;
		all->weight += p->weight;
	}
}

static inline struct svg_pieces svg_pieces(const struct map *map)
{
	struct svg_pieces all = { 0 };

	for (size_t i = 0; i < map->count; i++) {
		const struct neuron_range *r = &map->range[i];
		unsigned int owner = map_owner(map, r);
		struct svg_piece *p = all.count ? &all.list[all.count - 1] : NULL;

		if (!p || !svg_same(p, owner, r)) {
			if (array_grow((void **)&all.list, all.count, &all.max, sizeof(*p)))
				error(1, ENOMEM, "picture");
			p = &all.list[all.count++];
			*p = (struct svg_piece){ .address = r->address, .owner = owner,
						 .category = r->category, .pid = r->pid };
		}
		p->bytes += r->bytes;
		p->cores |= 1u << (r->nc & 31);
		p->count++;
	}
	svg_weigh(&all, map->used);
	return all;
}

/* What a pointer over it shows. */
static inline void svg_title(const struct map *map, FILE *f, const struct svg_piece *p)
{
	uint64_t base = map->range[0].address;

	fputs("<title>", f);
	if (p->owner < MAX_HOLDERS) {
		const struct holder *h = &map->holder[p->owner];

		fprintf(f, "process %d ", p->pid);
		if (h->process)
			svg_put(f, h->process->command);
		fprintf(f, "\n%s, %s, %zu allocation%s\n",
			neuron_mem_category_name((enum neuron_mem_category)p->category),
			map_cores(p->cores), p->count, p->count == 1 ? "" : "s");
	} else {
		fprintf(f, "%s\n", p->owner == OWNER_FREE ? "free" : p->owner == OWNER_RESERVED ?
			"reserved" : map_untold(map));
	}
	fprintf(f, "%s from %s (0x%" PRIx64 ")</title>", SIZE_TEXT(p->bytes),
		SIZE_TEXT(p->address - base), p->address);
}

static inline void svg_rect(const struct map *map, FILE *f, const struct svg_piece *p, double x,
			    double y, double width, double height, const char *colour)
{
	fprintf(f, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"%s>", x, y,
		width < 0.3 ? 0.3 : width, height, colour,
		width > 3 ? " class=\"piece\"" : "");
	svg_title(map, f, p);
	fputs("</rect>\n", f);
}

/* ---- strips -------------------------------------------------------------------------- */

static inline void svg_name(FILE *f, double y, const char *name)
{
	fprintf(f, "<text class=\"name\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
		SVG_LEFT - 10, y, name);
}

static inline void svg_to_scale(const struct map *map, FILE *f, const struct svg_pieces *all,
				double y)
{
	uint64_t base = map->range[0].address;

	svg_name(f, y + 12, "to scale");
	for (size_t i = 0; i < all->count; i++) {
		const struct svg_piece *p = &all->list[i];
		double scale = (double)SVG_STRIP / (double)map->stats.total;

		svg_rect(map, f, p, SVG_LEFT + (double)(p->address - base) * scale, y,
			 (double)p->bytes * scale, 16, svg_owner_colour(map, p->owner));
	}
	fprintf(f, "<rect class=\"frame\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"16\"/>\n", SVG_LEFT,
		y, SVG_STRIP);
}

/* Two strokes across a hole that is longer than drawn. */
static inline void svg_cut(FILE *f, double x, double y, double width, double height)
{
	double at = x + 7 < x + width ? x + 7 : x;

	for (int i = 0; i < 2; i++, at += 5)
		fprintf(f, "<path class=\"cut\" d=\"M%.1f %.1fl-6 %.1f\"/>\n", at, y - 4,
			height + 8);
}

static inline void svg_close_up_piece(const struct map *map, FILE *f, const struct svg_piece *p,
				      double x, double y, double width)
{
	char text[64];

	if (p->owner == OWNER_FREE) {
		svg_rect(map, f, p, x, y, width, 56, svg_owner_colour(map, p->owner));
		snprintf(text, sizeof(text), "%s free", SIZE_TEXT(p->bytes));
		svg_label(f, x + (p->cut ? 10 : 0), y + 32, width - (p->cut ? 10 : 0), "hole", text);
		if (p->cut)
			svg_cut(f, x, y, width, 56);
		return;
	}
	svg_rect(map, f, p, x, y, width, 28, svg_owner_colour(map, p->owner));
	if (p->owner < MAX_HOLDERS) {
		const struct holder *h = &map->holder[p->owner];

		svg_rect(map, f, p, x, y + 28, width, 28, svg_category_colour(p->category));
		snprintf(text, sizeof(text), "%d %s", p->pid, h->process ? h->process->name : "");
		svg_label(f, x, y + 18, width, "who", text);
		svg_label(f, x, y + 46, width, "what",
			  neuron_mem_category_name((enum neuron_mem_category)p->category));
		return;
	}
	svg_rect(map, f, p, x, y + 28, width, 28,
		 p->owner == OWNER_UNTOLD ? "#d9d9d9" : svg_owner_colour(map, p->owner));
	svg_label(f, x, y + 18, width, p->owner == OWNER_RESERVED ? "light" : "who",
		  p->owner == OWNER_RESERVED ? "reserved" : "driver");
	if (p->cut)
		svg_cut(f, x, y, width, 56);
}

/* Who and what, with long holes cut short; the addresses at which something begins. */
static inline void svg_close_up(const struct map *map, FILE *f, const struct svg_pieces *all,
				double y)
{
	uint64_t base = map->range[0].address;
	double x = SVG_LEFT, free_from = 0;

	svg_name(f, y + 18, "who");
	svg_name(f, y + 46, "for what");
	for (size_t i = 0; i < all->count; i++) {
		const struct svg_piece *p = &all->list[i];
		double width = p->weight / all->weight * SVG_STRIP;

		svg_close_up_piece(map, f, p, x, y, width);
		if (x >= free_from) {
			fprintf(f, "<path class=\"tick\" d=\"M%.1f %.1fv5\"/><text class=\"tick\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
				x, y + 56, x < SVG_WIDTH - 54 ? x : SVG_WIDTH - 54, y + 71,
				p->address > base ? SIZE_TEXT(p->address - base) : "0");
			free_from = x + 76;
		}
		x += width;
	}
	fprintf(f, "<rect class=\"frame\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"56\"/>\n", SVG_LEFT,
		y, SVG_STRIP);
}

/* Of what is free: the part that one request can have, and the rest. */
static inline void svg_free(const struct map *map, FILE *f, double y)
{
	uint64_t free = map->bytes[OWNER_FREE], largest = map_largest(map);
	double width = free ? (double)largest / (double)free * SVG_STRIP : 0;
	char text[128];

	svg_name(f, y + 13, "free");
	fprintf(f, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"18\" fill=\"#2e7d4f\"/>\n",
		SVG_LEFT, y, width);
	snprintf(text, sizeof(text), "one request can have %s", SIZE_TEXT(largest));
	svg_label(f, SVG_LEFT, y + 13, width, "light", text);
	if (free > largest) {
		fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"18\" fill=\"#e8b4b0\"/>\n",
			SVG_LEFT + width, y, SVG_STRIP - width);
		snprintf(text, sizeof(text), "%s in other holes", SIZE_TEXT(free - largest));
		svg_label(f, SVG_LEFT + width, y + 13, SVG_STRIP - width, "what", text);
	}
	fprintf(f, "<rect class=\"frame\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"18\"/>\n", SVG_LEFT,
		y, SVG_STRIP);
}

/* ---- the picture --------------------------------------------------------------------- */

/* What the lower half of the strip has, in one line. */
static inline double svg_categories(const struct map *map, FILE *f, double y)
{
	double x = SVG_LEFT;

	for (int c = 0; c < NEURON_MEM_NR_CATEGORIES; c++) {
		const char *name = neuron_mem_category_name(c);
		uint64_t bytes = 0;
		char text[64];

		for (size_t i = 0; i < map->nr_holders; i++)
			bytes += map->holder[i].category[c];
		if (!bytes)
			continue;
		snprintf(text, sizeof(text), "%s %s", name, SIZE_TEXT(bytes));
		if (x > SVG_LEFT && x + 40 + (double)strlen(text) * SVG_LETTER > SVG_WIDTH) {
			x = SVG_LEFT;
			y += SVG_LEGEND;
		}
		fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"13\" height=\"13\" fill=\"%s\"/><text x=\"%.1f\" y=\"%.1f\">%s</text>\n",
			x, y, svg_category_colour((unsigned int)c), x + 20, y + 11, text);
		x += 40 + (double)strlen(text) * SVG_LETTER;
	}
	return x > SVG_LEFT ? y + SVG_LEGEND : y;
}

static inline double svg_legend(const struct map *map, FILE *f, double y)
{
	static const char line[] =
		"<rect x=\"%d\" y=\"%.1f\" width=\"13\" height=\"13\" fill=\"%s\"/><text x=\"%d\" y=\"%.1f\">";

	for (unsigned int i = 0; i < map->nr_holders; i++, y += SVG_LEGEND) {
		const struct holder *h = &map->holder[i];
		char command[100];

		fprintf(f, line, SVG_LEFT, y, svg_owner_colour(map, i), SVG_LEFT + 20, y + 11);
		fprintf(f, "process %d: %s in %" PRIu64 " allocation%s for %s  ", h->pid,
			SIZE_TEXT(h->bytes), h->allocations, h->allocations == 1 ? "" : "s",
			map_cores(h->cores));
		snprintf(command, sizeof(command), "%.99s", h->process ? h->process->command : "");
		fputs("<tspan class=\"dim\">", f);
		svg_put(f, command);
		fputs("</tspan></text>\n", f);
	}
	if (map->bytes[OWNER_UNTOLD]) {
		fprintf(f, line, SVG_LEFT, y, svg_owner_colour(map, OWNER_UNTOLD), SVG_LEFT + 20, y + 11);
		fprintf(f, "%s: %s</text>\n", map_untold(map),
			SIZE_TEXT(map->bytes[OWNER_UNTOLD]));
		y += SVG_LEGEND;
	}
	return svg_categories(map, f, y);
}

static inline double svg_panel(const struct map *map, FILE *f, double y)
{
	struct svg_pieces all = svg_pieces(map);

	fprintf(f, "<text class=\"title\" x=\"20\" y=\"%.1f\">neuron%u HBM %u</text>", y + 24,
		map->device, map->hbm);
	fprintf(f, "<text x=\"%d\" y=\"%.1f\">%s: <tspan class=\"strong\">%s used</tspan>, %s free in %" PRIu64 " hole%s, %s reserved; fragmentation %.1f%%</text>\n",
		SVG_LEFT + 65, y + 24, SIZE_TEXT(map->stats.total), SIZE_TEXT(map->used),
		SIZE_TEXT(map->bytes[OWNER_FREE]), map->holes, map->holes == 1 ? "" : "s",
		SIZE_TEXT(map->bytes[OWNER_RESERVED]), map_fragmentation(map));
	svg_to_scale(map, f, &all, y + 40);
	svg_close_up(map, f, &all, y + 70);
	svg_free(map, f, y + 154);
	free(all.list);
	return svg_legend(map, f, y + 188) + 24;
}

/* An HBM of which nothing is used is one line. */
static inline double svg_empty(const struct map *map, FILE *f, double y)
{
	fprintf(f, "<text class=\"title\" x=\"20\" y=\"%.1f\">neuron%u HBM %u</text><text x=\"%d\" y=\"%.1f\">%s: nothing is used</text>\n",
		y + 24, map->device, map->hbm, SVG_LEFT + 65, y + 24, SIZE_TEXT(map->stats.total));
	return y + 36;
}

/* Of any picture: its size, and what its classes look like, in the dark too. */
static inline void svg_begin(FILE *f, double height)
{
	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\">\n",
		SVG_WIDTH, height, SVG_WIDTH, height);
	fputs("<style>text{font:12px sans-serif;fill:#222}.title{font-size:16px;font-weight:bold}"
	      ".strong{font-weight:bold}.name,.tick,.dim{fill:#666}text.tick{font-size:10px}"
	      ".who,.what,.hole,.light{font-size:11px}.who,.what{fill:#111}.hole{fill:#555}.light{fill:#fff}"
	      ".frame{fill:none;stroke:#888}.cut{stroke:#777;stroke-width:1.5}"
	      "path.tick{stroke:#888}.piece{stroke:#fff;stroke-width:.6}.ground{fill:#fff}"
	      ".grid{stroke:#666;stroke-opacity:.4}path.refused{stroke:#d00;stroke-width:1.5}"
	      "tspan.refused{fill:#d00;font-weight:bold}.gap{fill:#f4f4f4}.stroke{stroke:#ddd;stroke-width:2}\n"
	      "@media(prefers-color-scheme:dark){text{fill:#ddd}.name,.tick,.dim{fill:#999}"
	      ".who,.what{fill:#111}.hole{fill:#aaa}.cut{stroke:#bbb}tspan.refused{fill:#f66}.piece{stroke:#16191f}"
	      ".ground{fill:#16191f}.gap{fill:#22262e}.stroke{stroke:#343a45}}</style>\n"
	      "<defs><pattern id=\"hole\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" "
	      "patternTransform=\"rotate(45)\"><rect class=\"gap\" width=\"8\" height=\"8\"/>"
	      "<path class=\"stroke\" d=\"M0 0v8\"/></pattern></defs>\n"
	      "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n", f);
}

/* All maps below each other.  The height is known at the end, so the picture is made first. */
static inline int svg_write(FILE *out, const struct map *maps, size_t n)
{
	double y = 8;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return -1;
	for (size_t i = 0; i < n; i++)
		y = maps[i].used ? svg_panel(&maps[i], f, y) : svg_empty(&maps[i], f, y);
	if (fclose(f)) {
		free(text);
		return -1;
	}
	svg_begin(out, y + 8);
	fputs(text, out);
	fputs("</svg>\n", out);
	free(text);
	return ferror(out) ? -1 : 0;
}

#endif

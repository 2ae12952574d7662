// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The memory report: a table whose layout existing tools know, and a line in plain
 * words.  Pure arithmetic and text.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <neuron/neuron.h>

#include "../../common/util.h"
#include "../device/opts.h"

static const struct {
	const char *top, *bottom;
	unsigned int width;
	bool model;		/* a model has it; else its row says n/a */
	const char *name;	/* in running text */
} columns[NEURON_REPORT_NR_COLUMNS] = {
	[NEURON_REPORT_TOTAL] = { "", "TOTAL", 10, true, "everything" },
	[NEURON_REPORT_CODE] = { "Model", "Code", 10, true, "model code" },
	[NEURON_REPORT_CONSTANTS] = { "Model", "Constants", 10, true, "model constants" },
	[NEURON_REPORT_TENSORS] = { "", "Tensors", 10, false, "tensors" },
	[NEURON_REPORT_SHARED_SCRATCHPAD] = {
		"Shared", "Scratchpad", 10, false, "shared scratchpad"
	},
	[NEURON_REPORT_SCRATCHPAD] = { "", "Scratchpad", 10, true, "scratchpad" },
	[NEURON_REPORT_RUNTIME] = { "", "Runtime", 10, true, "runtime" },
	[NEURON_REPORT_RINGS_IO] = { "DMA Rings", "IO", 10, true, "dma rings io" },
	[NEURON_REPORT_RINGS_SPILL] = { "DMA Rings", "Spill", 10, true, "dma rings spill" },
	[NEURON_REPORT_RINGS_COLLECTIVES] = {
		"DMA Rings", "Collectives", 11, true, "dma rings collectives"
	},
	[NEURON_REPORT_RINGS_RUNTIME] = { "DMA Rings", "Runtime", 10, true, "dma rings runtime" },
	[NEURON_REPORT_COLLECTIVES] = { "", "Collectives", 11, true, "collectives" },
	[NEURON_REPORT_XT_CC] = { "", "XT CC", 10, false, "xt cc" },
	[NEURON_REPORT_PROFILER] = { "Profiler", "Buffers", 10, false, "profiler buffers" },
};

static enum neuron_report_column column_of(enum neuron_mem_category category)
{
	switch (category) {
	case NEURON_MEM_CODE: return NEURON_REPORT_CODE;
	case NEURON_MEM_HOST_TENSORS:
	case NEURON_MEM_TENSORS: return NEURON_REPORT_TENSORS;
	case NEURON_MEM_CONSTANTS: return NEURON_REPORT_CONSTANTS;
	case NEURON_MEM_SCRATCHPAD:
	case NEURON_MEM_SCRATCHPAD_CONTIGUOUS: return NEURON_REPORT_SHARED_SCRATCHPAD;
	case NEURON_MEM_SCRATCHPAD_PRIVATE: return NEURON_REPORT_SCRATCHPAD;
	case NEURON_MEM_COLLECTIVES: return NEURON_REPORT_COLLECTIVES;
	/* Those of running models are in host memory. */
	case NEURON_MEM_NOTIFICATION: return NEURON_REPORT_PROFILER;
	case NEURON_MEM_HOST_RINGS:
	case NEURON_MEM_RINGS: return NEURON_REPORT_RINGS_RUNTIME;
	default: return NEURON_REPORT_RUNTIME;
	}
}

static void add_up(uint64_t row[NEURON_REPORT_NR_COLUMNS])
{
	row[NEURON_REPORT_TOTAL] = 0;
	for (int i = NEURON_REPORT_TOTAL + 1; i < NEURON_REPORT_NR_COLUMNS; i++)
		add_capped(&row[NEURON_REPORT_TOTAL], row[i]);
}

NEURON_EXPORT void neuron_report_model_row(const struct neuron_report_model *model,
					   uint64_t row[NEURON_REPORT_NR_COLUMNS])
{
	const struct neuron_model_usage *u = &model->usage;

	memset(row, 0, NEURON_REPORT_NR_COLUMNS * sizeof(row[0]));
	row[NEURON_REPORT_CODE] = u->code;
	row[NEURON_REPORT_CONSTANTS] = u->constants;
	row[NEURON_REPORT_SCRATCHPAD] = u->scratchpad;
	row[NEURON_REPORT_RUNTIME] = u->runtime;
	row[NEURON_REPORT_RINGS_IO] = u->rings_io;
	row[NEURON_REPORT_RINGS_SPILL] = u->rings_spill;
	row[NEURON_REPORT_RINGS_COLLECTIVES] = u->rings_collectives;
	row[NEURON_REPORT_RINGS_RUNTIME] = u->rings_runtime;
	row[NEURON_REPORT_COLLECTIVES] = u->collectives;
	add_up(row);
}

/* The driver knows how much is in rings, the models what those are for. */
static void core_row(const struct neuron_report_core *core, uint64_t row[NEURON_REPORT_NR_COLUMNS])
{
	static const enum neuron_report_column rings[] = {
		NEURON_REPORT_RINGS_IO, NEURON_REPORT_RINGS_SPILL, NEURON_REPORT_RINGS_COLLECTIVES,
	};
	uint64_t model[NEURON_REPORT_NR_COLUMNS], *rest = &row[NEURON_REPORT_RINGS_RUNTIME];

	memset(row, 0, NEURON_REPORT_NR_COLUMNS * sizeof(row[0]));
	for (unsigned int i = 0; i < NEURON_MAX_CATEGORIES; i++)
		add_capped(&row[column_of(i)], core->device_bytes[i]);
	row[NEURON_REPORT_RINGS_COLLECTIVES] = MIN(core->rings_collectives, *rest);
	*rest -= row[NEURON_REPORT_RINGS_COLLECTIVES];
	for (size_t m = 0; m < core->nr_models; m++) {
		neuron_report_model_row(&core->models[m], model);
		for (size_t k = 0; k < sizeof(rings) / sizeof(rings[0]); k++) {
			uint64_t bytes = model[rings[k]] < *rest ? model[rings[k]] : *rest;

			row[rings[k]] += bytes;
			*rest -= bytes;
		}
	}
	add_up(row);
}

NEURON_EXPORT void neuron_report_row(const struct neuron_report *report,
				     const struct neuron_report_core *core,
				     uint64_t row[NEURON_REPORT_NR_COLUMNS])
{
	uint64_t one[NEURON_REPORT_NR_COLUMNS];

	if (core) {
		core_row(core, row);
		return;
	}
	memset(row, 0, NEURON_REPORT_NR_COLUMNS * sizeof(row[0]));
	for (size_t i = 0; i < report->nr_cores; i++) {
		core_row(&report->cores[i], one);
		for (int k = 0; k < NEURON_REPORT_NR_COLUMNS; k++)
			add_capped(&row[k], one[k]);
	}
}

NEURON_EXPORT const char *neuron_report_size(uint64_t bytes, char *text, size_t size)
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB", "PB", "EB" };
	double value = (double)bytes;
	unsigned int unit = 0;

	while (value >= 1024 && unit < 6) {
		value /= 1024;
		unit++;
	}
	snprintf(text, size, "%.3f%s", value, units[unit]);
	return text;
}

/* ---- table ------------------------------------------------------------------------- */

static void cell(FILE *f, const char *text, unsigned int width)
{
	unsigned int n = (unsigned int)strlen(text);
	unsigned int left = n < width ? (width - n) / 2 : 0;

	fprintf(f, "%*s%-*s|", (int)left, "", (int)(width - left), text);
}

static void header(FILE *f, int width, bool bottom)
{
	fprintf(f, "%*s|", width, "");
	for (int i = 0; i < NEURON_REPORT_NR_COLUMNS; i++)
		cell(f, bottom ? columns[i].bottom : columns[i].top, columns[i].width);
	fputc('\n', f);
}

static void line(FILE *f, int width, const char *name,
		 const uint64_t row[NEURON_REPORT_NR_COLUMNS], bool model)
{
	fprintf(f, "%-*s|", width, name);
	for (int i = 0; i < NEURON_REPORT_NR_COLUMNS; i++)
		cell(f, model && !columns[i].model ? "n/a" : SIZE_TEXT(row[i]), columns[i].width);
	fputc('\n', f);
}

/* A name comes from a file: one line, nothing that a terminal obeys. */
static void mapping(FILE *f, const struct neuron_report_model *m)
{
	fprintf(f, "%u: \"", m->id);
	for (const char *c = m->name; *c; c++)
		fputc((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c, f);
	fputs("\"\n", f);
}

/* What is set aside on a core for microcode, if this process knows: code that no model has. */
static uint64_t microcode(const struct neuron_report_core *c)
{
	uint64_t code = c->device_bytes[NEURON_MEM_CODE], models = 0;

	if (!c->nr_models && c->owner && c->owner != getpid())
		return 0;
	for (size_t m = 0; m < c->nr_models; m++)
		add_capped(&models, c->models[m].usage.code);
	return code > models ? code - models : 0;
}

/* The whole memory, to the byte. */
static void balance(FILE *f, const struct neuron_report *r, uint64_t held)
{
	fprintf(f, "\n%s are %s in these rows, %s free and %s reserved (%llu = %llu + %llu + %llu bytes)\n",
		SIZE_TEXT(r->total), SIZE_TEXT(held), SIZE_TEXT(r->free), SIZE_TEXT(r->reserved),
		(unsigned long long)r->total, (unsigned long long)held,
		(unsigned long long)r->free, (unsigned long long)r->reserved);
}

static void put_microcode(FILE *f, const struct neuron_report *r)
{
	uint64_t code = 0;

	for (size_t i = 0; i < r->nr_cores; i++)
		add_capped(&code, microcode(&r->cores[i]));
	if (code)
		fprintf(f, "%s%s of the code are set aside for microcode (NEURON_RT_MICROCODE_MB)\n",
			r->total ? "" : "\n", SIZE_TEXT(code));
}

static void table(FILE *f, const struct neuron_report *r,
		  const struct neuron_mem_failure *none __attribute__((unused)))
{
	uint64_t held, row[NEURON_REPORT_NR_COLUMNS];
	char name[64];
	int width = 14;
	bool any = false;

	for (size_t i = 0; i < r->nr_cores; i++)
		for (size_t m = 0; m < r->cores[i].nr_models; m++) {
			int n = snprintf(name, sizeof(name), "  \\_NEFF %u ",
					 r->cores[i].models[m].id);

			width = n > width ? n : width;
		}
	header(f, width, false);
	header(f, width, true);
	snprintf(name, sizeof(name), "ND %u HBM %u", r->device, r->hbm);
	neuron_report_row(r, NULL, row);
	held = row[NEURON_REPORT_TOTAL];
	line(f, width, name, row, false);
	for (size_t i = 0; i < r->nr_cores; i++) {
		const struct neuron_report_core *c = &r->cores[i];

		snprintf(name, sizeof(name), "\\_NC %u", c->nc);
		core_row(c, row);
		line(f, width, name, row, false);
		for (size_t m = 0; m < c->nr_models; m++) {
			snprintf(name, sizeof(name), "  \\_NEFF %u", c->models[m].id);
			neuron_report_model_row(&c->models[m], row);
			line(f, width, name, row, true);
			any = true;
		}
	}
	if (r->total)
		balance(f, r, held);
	put_microcode(f, r);
	if (!any)
		return;
	fputs("\nNEFF id to name mapping:\n", f);
	for (size_t i = 0; i < r->nr_cores; i++)
		for (size_t m = 0; m < r->cores[i].nr_models; m++)
			mapping(f, &r->cores[i].models[m]);
}

/*
 * What @write makes of a report, in memory to be freed.  The caller's report may be shorter
 * than ours.
 */
static int make_text(const struct neuron_report *report, const struct neuron_mem_failure *fail,
		     void (*write)(FILE *f, const struct neuron_report *r,
				   const struct neuron_mem_failure *fail), char **text)
{
	struct neuron_report r;
	char *out = NULL;
	size_t size;
	FILE *f;
	bool bad;
	int ret = report && text ? opts_copy(&r, sizeof(r), report) : -EINVAL;

	if (ret)
		return ret;
	f = open_memstream(&out, &size);
	if (!f)
		return -ENOMEM;
	write(f, &r, fail);
	bad = ferror(f);
	if (fclose(f) || bad || !out) {
		free(out);
		return -ENOMEM;
	}
	*text = out;
	return 0;
}

NEURON_EXPORT int neuron_report_table(const struct neuron_report *report, char **text)
{
	return make_text(report, NULL, table, text);
}

/* ---- in plain words ---------------------------------------------------------------- */

/* The largest column of a row, TOTAL aside. */
static enum neuron_report_column largest(const uint64_t row[NEURON_REPORT_NR_COLUMNS])
{
	enum neuron_report_column best = NEURON_REPORT_CODE;

	for (int i = NEURON_REPORT_CODE; i < NEURON_REPORT_NR_COLUMNS; i++)
		if (row[i] > row[best])
			best = (enum neuron_report_column)i;
	return best;
}

static void capped(FILE *f, const struct neuron_report *r, const struct neuron_mem_failure *fail)
{
	fputs("is not to be used further by ", f);
	if (!r->limit_path) {
		fputs("this process: a limit that is neither its own nor the core's is reached (a control group's)",
		      f);
		return;
	}
	if (r->limit_core)
		fprintf(f, "NC %u: its limit", fail->nc);
	else
		fputs("this process: its limit", f);
	fprintf(f, " of %s has %s charged and %s left (%s)",
		SIZE_TEXT(r->limit), SIZE_TEXT(r->limit_used),
		SIZE_TEXT(r->limit > r->limit_used ? r->limit - r->limit_used : 0), r->limit_path);
}

static void what(FILE *f, const struct neuron_report *r, const struct neuron_mem_failure *fail)
{
	const char *left = SIZE_TEXT(fail->free), *total = SIZE_TEXT(fail->total);
	const char *run = SIZE_TEXT(fail->largest_free);

	switch (fail->reason) {
	case NEURON_MEM_REASON_FULL:
		fprintf(f, "is full: %s of %s are free", left, total);
		break;
	case NEURON_MEM_REASON_FRAGMENTED:
		fprintf(f, "is fragmented: %s of %s are free, but the longest piece has %s", left,
			total, run);
		break;
	case NEURON_MEM_REASON_ALIGNMENT:
		fprintf(f, "has no piece that starts where it must: %s of %s are free, the longest piece has %s, the longest one from a multiple of %s has %s",
			left, total, run, SIZE_TEXT(fail->align),
			SIZE_TEXT(fail->largest_aligned));
		break;
	case NEURON_MEM_REASON_CAPPED:
		capped(f, r, fail);
		fprintf(f, ", %s of %s are free", left, total);
		break;
	case NEURON_MEM_REASON_HOST:
	case NEURON_MEM_REASON_NONE:
		fputs("is not to blame: the host is out of memory", f);
		break;
	}
}

static void holders(FILE *f, const struct neuron_report *r)
{
	uint64_t row[NEURON_REPORT_NR_COLUMNS];
	const char *sep = "; held by";

	for (size_t i = 0; i < r->nr_cores; i++) {
		const struct neuron_report_core *c = &r->cores[i];
		enum neuron_report_column most;

		core_row(c, row);
		if (!row[NEURON_REPORT_TOTAL])
			continue;
		most = largest(row);
		fprintf(f, "%s NC %u", sep, c->nc);
		if (c->owner == NEURON_OWNER_OUTSIDE)
			fputs(" (a process outside)", f);
		else if (c->owner)
			fprintf(f, " (%s %d)", c->owner == getpid() ? "this process," : "process",
				c->owner);
		fprintf(f, " %s, most of it %s (%s)", SIZE_TEXT(row[NEURON_REPORT_TOTAL]),
			most == NEURON_REPORT_CODE && microcode(c) == row[most] ? "set aside for microcode" :
			columns[most].name, SIZE_TEXT(row[most]));
		sep = " and";
	}
}

/* To have less of what there is most of. */
static void advise_less(FILE *f, const struct neuron_report *r, const char *sep,
			enum neuron_report_column most)
{
	uint64_t reserve = 0, code = 0;

	for (size_t i = 0; i < r->nr_cores; i++) {
		add_capped(&reserve, microcode(&r->cores[i]));
		add_capped(&code, r->cores[i].device_bytes[NEURON_MEM_CODE]);
	}
	if (most == NEURON_REPORT_TENSORS)
		fprintf(f, "%s to free tensors, or smaller batches", sep);
	else if (most == NEURON_REPORT_SHARED_SCRATCHPAD)
		fprintf(f, "%s %smodels that need less scratchpad", sep,
			r->contiguous ? "" : "NEURON_RT_CONTIGUOUS_SCRATCHPAD=1, or ");
	else if (most == NEURON_REPORT_CODE && reserve && reserve == code)
		fprintf(f, "%s to set less aside for microcode (NEURON_RT_MICROCODE_MB)", sep);
	else
		fprintf(f, "%s to unload models, or smaller ones", sep);
}

static void advice(FILE *f, const struct neuron_report *r, const struct neuron_mem_failure *fail)
{
	uint64_t row[NEURON_REPORT_NR_COLUMNS];
	const char *sep = "; try";

	neuron_report_row(r, NULL, row);
	if (fail->reason == NEURON_MEM_REASON_CAPPED) {
		fprintf(f, "%s a higher limit, or fewer tensors and models ", sep);
		if (r->limit_core)
			fprintf(f, "on NC %u", fail->nc);
		else
			fputs("in this process", f);
		sep = ", or";
	} else if (fail->reason == NEURON_MEM_REASON_FRAGMENTED ||
		   fail->reason == NEURON_MEM_REASON_ALIGNMENT) {
		fprintf(f, "%s to load models and allocate large tensors first, before small ones",
			sep);
		sep = ", or";
		if (fail->align > host_page())
			fprintf(f, "%s a smaller alignment", sep);
	}
	/* Pages are what a scratchpad in one piece does not have. */
	if (!r->contiguous && row[NEURON_REPORT_SCRATCHPAD] > row[NEURON_REPORT_TOTAL] / 10) {
		fprintf(f, "%s another NEURON_SCRATCHPAD_PAGE_SIZE (\"neuron-preflight --pages\" proposes one)",
			sep);
		sep = ", or";
	}
	advise_less(f, r, sep, largest(row));
	if (r->lnc == 1 && r->nr_cores > 1 && fail->reason != NEURON_MEM_REASON_CAPPED) {
		fprintf(f, ", or to put less on");
		for (size_t i = 0, n = 0; i < r->nr_cores; i++)
			if (r->cores[i].nc != fail->nc)
				fprintf(f, "%s NC %u", n++ ? " and" : "", r->cores[i].nc);
		fprintf(f, ", which shares this memory with NC %u (NEURON_LOGICAL_NC_CONFIG=2 makes one core of them)",
			fail->nc);
	}
}

/* The longest allocation that would have succeeded; false: what is left of a limit is not known. */
static bool would_fit(const struct neuron_report *r, const struct neuron_mem_failure *fail,
		      uint64_t *bytes)
{
	*bytes = fail->align > host_page() ? fail->largest_aligned : fail->largest_free;
	if (fail->reason != NEURON_MEM_REASON_CAPPED)
		return true;
	if (!r->limit_path)
		return false;
	if (r->limit <= r->limit_used)
		*bytes = 0;
	else if (r->limit - r->limit_used < *bytes)
		*bytes = (r->limit - r->limit_used) & ~(host_page() - 1);
	return true;
}

static void reason(FILE *f, const struct neuron_report *r, const struct neuron_mem_failure *fail)
{
	uint64_t fits;

	fprintf(f, "No room for %s of %s: HBM %u of ND %u ", SIZE_TEXT(fail->bytes),
		columns[column_of(fail->category)].name, r->hbm, r->device);
	what(f, r, fail);
	if (fail->reason == NEURON_MEM_REASON_HOST || fail->reason == NEURON_MEM_REASON_NONE)
		return;
	holders(f, r);
	if (would_fit(r, fail, &fits))
		fprintf(f, "; up to %s would fit", SIZE_TEXT(fits));
	advice(f, r, fail);
}

NEURON_EXPORT int neuron_report_reason(const struct neuron_report *report,
				       const struct neuron_mem_failure *failure, char **text)
{
	return failure ? make_text(report, failure, reason, text) : -EINVAL;
}

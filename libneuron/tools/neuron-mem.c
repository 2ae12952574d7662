// SPDX-License-Identifier: LGPL-2.1-or-later
/* neuron-mem: where the memory of Neuron devices went. */
#include <argp.h>
#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <neuron/neuron.h>

#include "../common/access.h"
#include "file.h"
#include "map.h"
#include "map_svg.h"
#include "options.h"
#include "owners.h"
#include "pages.h"
#include "processes.h"
#include "resolve.h"

#define USAGE	2	/* exit status of a wrong option; 1: a device cannot be read */

enum command { SHOW, MAP, OWNERS, RESOLVE, SNAPSHOT, TIMELINE };

static struct {
	enum command command;
	const char *file;	/* of a snapshot or timeline */
	const char *from;	/* a snapshot, in place of the device */
	bool has_address;
	uint64_t address;	/* to resolve */
	int pid;		/* of which process it is; 0: of the device */
	bool html;
	bool diff;
	bool groups;		/* of owners */
	bool json;
	bool failures;
	bool map;
	const char *svg;
	double watch;		/* seconds between two pictures; 0: one picture */
	unsigned long count;	/* pictures; 0: no end */
	long device;
	struct map_style style;
} options = { .device = -1, .style = { .rows = 12 } };

TOOL_VERSION("neuron-mem");

static double parse_seconds(const char *arg, struct argp_state *state)
{
	char *end;
	double value = strtod(arg, &end);

	if (!*arg || *end || !(value >= 0.1 && value <= 3600))
		argp_error(state, "--watch is from 0.1 to 3600, not \"%s\"", arg);
	return value;
}

static void parse_address(const char *arg, struct argp_state *state)
{
	char *end;

	errno = 0;
	options.address = strtoull(arg, &end, 0);
	if (errno || *end || *arg < '0' || *arg > '9')
		argp_error(state, "\"%s\" is no address", arg);
	options.has_address = true;
}

/* A command, the file that it writes, the number of a device. */
static void parse_word(const char *arg, struct argp_state *state)
{
	static const char *const commands[] = {
		[MAP] = "map", [OWNERS] = "owners", [RESOLVE] = "resolve",
		[SNAPSHOT] = "snapshot", [TIMELINE] = "timeline",
	};

	for (unsigned int i = MAP; i < ARRAY_SIZE(commands) && !state->arg_num; i++)
		if (!strcmp(arg, commands[i])) {
			options.command = i;
			options.map |= i == MAP;
			return;
		}
	if (options.command >= SNAPSHOT && !options.file)
		options.file = arg;
	else if (options.command == RESOLVE && !options.has_address)
		parse_address(arg, state);
	else if (options.device >= 0 || strspn(arg, "0123456789") != strlen(arg) ||
		 strlen(arg) > 6 || !*arg)
		argp_error(state, "\"%s\" is neither a command nor the number of a device", arg);
	else
		options.device = atol(arg);
}

/* What a timeline is written as is told by the name. */
static bool timeline_name(const char *file)
{
	const char *suffix = strrchr(file, '.');

	return !strcmp(file, "-") || (suffix && (!strcmp(suffix, ".svg") || !strcmp(suffix, ".json")));
}

static void parse_end(struct argp_state *state)
{
	if (options.diff && options.command != OWNERS)
		argp_error(state, "--diff is for \"owners\"");
	if (options.groups && (options.command != OWNERS || options.diff))
		argp_error(state, "--groups is for \"owners\" without --diff");
	if (options.html && options.command != SNAPSHOT)
		argp_error(state, "--html is for \"snapshot\"");
	if (options.from && options.command < SNAPSHOT)
		argp_error(state, "--from is for \"snapshot\" and \"timeline\"");
	if (options.from && options.device >= 0)
		argp_error(state, "the device is that of the file");
	if (options.command >= SNAPSHOT && !options.file)
		argp_error(state, "the name of the file is missing");
	if (options.command == TIMELINE && !timeline_name(options.file))
		argp_error(state, "the name of a timeline ends in .svg or .json, or is -");
	if (options.command == RESOLVE && !options.has_address)
		argp_error(state, "the address is missing");
	if (options.pid && options.command != RESOLVE)
		argp_error(state, "--pid is for \"resolve\"");
	if (options.pid && options.device >= 0)
		argp_error(state, "the device is that which the process has mapped");
	if (options.command >= RESOLVE && options.watch > 0)
		argp_error(state, "--watch is for the other commands");
	if (options.command >= OWNERS && (options.svg || options.failures))
		argp_error(state, "--svg and --failures are for the other commands");
	if (options.diff && options.watch <= 0)
		options.watch = 2;
	if (options.count && options.watch <= 0)
		argp_error(state, "--iterations is for --watch");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'j': options.json = true; return 0;
	case 'b': options.style.plain = true; return 0;
	case 'f': options.failures = true; return 0;
	case 'd': options.diff = true; return 0;
	case 'g': options.groups = true; return 0;
	case 'p': options.pid = (int)number(arg, 1, INT32_MAX, state); return 0;
	case 'F': options.from = arg; return 0;
	case 'H': options.html = true; return 0;
	case 's':
		options.svg = arg;
		options.map = true;
		return 0;
	case 'w': options.watch = arg ? parse_seconds(arg, state) : 2; return 0;
	case 'n': options.count = number(arg, 1, 1000000000, state); return 0;
	case 'r': options.style.rows = (int)number(arg, 4, 1000, state); return 0;
	case ARGP_KEY_ARG:
		parse_word(arg, state);
		return 0;
	case ARGP_KEY_END:
		parse_end(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option argp_options[] = {
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ "bytes", 'b', NULL, 0, "Print plain bytes instead of KB, MB and GB", 0 },
	{ "failures", 'f', NULL, 0, "Also print the last allocations that were refused", 0 },
	{ "watch", 'w', "SECONDS", OPTION_ARG_OPTIONAL, "Again every 2 or so many seconds", 0 },
	{ "iterations", 'n', "COUNT", 0, "End --watch after so many times", 0 },
	{ "rows", 'r', "COUNT", 0, "Lines of a map, at most (12)", 0 },
	{ "svg", 's', "FILE", 0, "Write the map as a picture to FILE, - is the standard output", 0 },
	{ "diff", 'd', NULL, 0, "Of owners: what changed since the last time, and who may leak", 0 },
	{ "groups", 'g', NULL, 0, "Of owners: what they have by category and core, too", 0 },
	{ "pid", 'p', "PID", 0, "Resolve an address of a process, as in a SIGBUS", 0 },
	{ "html", 'H', NULL, 0, "Write a snapshot as a page", 0 },
	{ "from", 'F', "SNAPSHOT", 0, "Take a snapshot that was written before, and no device", 0 },
	{ 0 },
};

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.args_doc = "[map] [DEVICE]\nowners [DEVICE]\nresolve ADDRESS [DEVICE]\nsnapshot FILE [DEVICE]\ntimeline FILE [DEVICE]",
	.doc = "Show the memory of all Neuron devices, or of one: by HBM, core and category, with "
	       "what is free and the longest free run.\vWith \"map\": which process holds what of "
	       "each HBM, where the holes are, and whether the memory is fragmented.  With "
	       "\"owners\": the parts of processes that hold it.  With \"resolve\": whose an "
	       "address is, as in the error of a DMA queue, and whose it was; --pid: as in a SIGBUS.  "
	       "With \"snapshot\": all of that and what happened last, into a file.  With "
	       "\"timeline\": the bytes in use over the last events as a picture (.svg) or for "
	       "ui.perfetto.dev (.json).",
};

static FILE *out;		/* what becomes the text of a picture */

static const char *size_text(uint64_t bytes)
{
	return map_size(&options.style, bytes);
}

static struct processes processes;

struct device {
	unsigned int index;
	bool emulated;
	const struct neuron_geometry *g;
	struct neuron_hbm_stats hbm[NEURON_MAX_HBMS];
	struct neuron_core_stats core[NEURON_MAX_CORES];
	uint64_t core_limit[NEURON_MAX_CORES];
	uint64_t core_charged[NEURON_MAX_CORES];
	uint64_t process_limit;
	struct neuron_mem_refusal refusals[NEURON_REFUSALS_MAX];
	size_t nr_refusals;
	bool releasable[NEURON_REFUSALS_MAX];	/* of each of them: who would have to go */
	struct neuron_release releases[NEURON_REFUSALS_MAX];
};

/* The maps of all devices, for the picture; their ranges live as long. */
static struct {
	struct map *list;
	size_t count, max;
} maps;

static int read_map(struct neuron_device *handle, struct device *d, uint32_t hbm)
{
	struct neuron_range *range;
	struct map *map;
	size_t count;
	int ret = neuron_hbm_get_ranges(handle, hbm, &range, &count);

	if (ret)
		return ret;
	if (array_grow((void **)&maps.list, maps.count, &maps.max, sizeof(*map)))
		error(1, ENOMEM, "map");
	map = &maps.list[maps.count++];
	*map = (struct map){ .device = d->index, .hbm = hbm, .stats = d->hbm[hbm], .range = range,
			     .count = map_join_holes(range, count) };
	map_add_up(map, &processes);
	return 0;
}

/* Those of a device, or NULL if there are none. */
static const struct map *find_map(const struct device *d, uint32_t hbm)
{
	for (size_t i = 0; i < maps.count; i++)
		if (maps.list[i].device == d->index && maps.list[i].hbm == hbm)
			return &maps.list[i];
	return NULL;
}

static void forget_maps(void)
{
	for (size_t i = 0; i < maps.count; i++)
		free((void *)maps.list[i].range);
	free(maps.list);
	memset(&maps, 0, sizeof(maps));
}

static bool is_emulated(unsigned int index)
{
	char path[96], text[8];

	snprintf(path, sizeof(path), "/sys/devices/virtual/neuron_device/neuron%u/emulated", index);
	return read_short(path, text, sizeof(text)) && *text == '1';
}

/* What the caller may know of; nothing that a limit refused. */
static void find_releases(struct neuron_device *handle, struct device *d)
{
	for (size_t i = 0; i < d->nr_refusals; i++) {
		const struct neuron_mem_refusal *r = &d->refusals[i];

		d->releases[i].size = sizeof(d->releases[i]);
		/* Not of a fixed place: there was room elsewhere, and others have to go. */
		d->releasable[i] = !r->host && r->failure.reason != NEURON_MEM_REASON_CAPPED &&
				   (r->failure.reason != NEURON_MEM_REASON_FRAGMENTED ||
				    r->failure.largest_free < r->failure.bytes) &&
				   r->failure.reason != NEURON_MEM_REASON_HOST &&
				   !neuron_mem_release(handle, &r->failure, &d->releases[i]);
	}
}

static int read_device(struct neuron_device *handle, struct device *d)
{
	int ret = 0;

	d->index = neuron_device_index(handle);
	d->emulated = is_emulated(d->index);
	d->g = neuron_device_geometry(handle);
	for (uint32_t i = 0; i < d->g->nr_hbms && !ret; i++) {
		d->hbm[i].size = sizeof(d->hbm[i]);
		ret = neuron_hbm_get_stats(handle, i, &d->hbm[i]);
		if (!ret && options.map)
			ret = read_map(handle, d, i);
	}
	for (uint32_t i = 0; i < d->g->nr_cores && !ret; i++) {
		d->core[i].size = sizeof(d->core[i]);
		ret = neuron_core_get_stats(handle, i, &d->core[i]) ?:
		      neuron_limit_get(handle, NEURON_LIMIT_CORE, (int32_t)i, &d->core_limit[i],
				       &d->core_charged[i]);
	}
	ret = ret ?: neuron_limit_get(handle, NEURON_LIMIT_DEFAULT, 0, &d->process_limit, NULL);
	if (!ret && options.failures) {
		uint64_t since = 0;

		d->nr_refusals = NEURON_REFUSALS_MAX;
		ret = neuron_mem_get_refusals(handle, &since, d->refusals, &d->nr_refusals);
		if (!ret)
			find_releases(handle, d);
	}
	return ret;
}

static void print_category(enum neuron_mem_category category, uint64_t bytes)
{
	if (bytes)
		fprintf(out, "  %-24s %12s\n", neuron_mem_category_name(category), size_text(bytes));
}

/* Which limit it was: the driver tells its value, and asks the process's before the core's. */
static void print_limit(const struct device *d, const struct neuron_mem_refusal *r)
{
	static const char dir[] = "/sys/devices/virtual/neuron_device/neuron";
	uint32_t nc = r->failure.nc;

	if (r->limit == NEURON_LIMIT_NONE) {
		fputs("  limit of a control group\n", out);
		return;
	}
	fprintf(out, "  limit %s", size_text(r->limit));
	if (r->host)
		fprintf(out, " (%s%u/limits/process_host_memory, or limits/host_memory)", dir, d->index);
	else if (r->limit == d->process_limit)
		fprintf(out, " (%s%u/limits/process_memory)", dir, d->index);
	else if (nc < d->g->nr_cores && r->limit == d->core_limit[nc])
		fprintf(out, " (%s%u/neuron_core%u/limits/memory), now charged %s, left %s", dir,
			d->index, nc, size_text(d->core_charged[nc]),
			size_text(d->core_charged[nc] < r->limit ?
				  r->limit - d->core_charged[nc] : 0));
	else
		fputs(", of that process alone, or changed since then", out);
	fputc('\n', out);
}

static void print_release(const struct neuron_release *release)
{
	char text[256];

	if (release->count)
		fprintf(out, "  now it would fit without %s\n",
			neuron_release_text(release, text, sizeof(text)));
	else
		fprintf(out, "  now it would fit\n");
}

static void print_refusal(const struct device *d, const struct neuron_mem_refusal *r)
{
	const struct neuron_mem_failure *f = &r->failure;
	time_t seconds = (time_t)(r->time / 1000000000);
	struct tm tm;
	char when[32];

	strftime(when, sizeof(when), "%F %T", localtime_r(&seconds, &tm));
	fprintf(out, "neuron%u refused %" PRIu64 ", %s: process %d wanted %s of ", d->index, r->number,
	       when, r->pid, size_text(f->bytes));
	if (r->host)
		fprintf(out, "host memory");
	else
		fprintf(out, "HBM %u", f->hbm);
	fprintf(out, " for core %u as %s: %s\n", f->nc, neuron_mem_category_name(f->category),
	       neuron_mem_reason_name(f->reason));
	if (!r->host && f->total) {
		fprintf(out, "  %s, free %s, longest free run %s", size_text(f->total),
		       size_text(f->free), size_text(f->largest_free));
		if (f->align)
			fprintf(out, ", aligned to %s %s", size_text(f->align),
			       size_text(f->largest_aligned));
		fputc('\n', out);
	}
	if (f->reason == NEURON_MEM_REASON_CAPPED)
		print_limit(d, r);
	for (int i = 0; i < NEURON_REFUSAL_TOP && r->categories[i].bytes; i++)
		print_category(r->categories[i].category, r->categories[i].bytes);
	for (int i = 0; i < NEURON_REFUSAL_TOP && r->processes[i].bytes; i++)
		fprintf(out, "  process %-16d %12s\n", r->processes[i].pid,
		       size_text(r->processes[i].bytes));
	if (d->releasable[r - d->refusals])
		print_release(&d->releases[r - d->refusals]);
}

static void print_process(const struct process *p)
{
	fprintf(out, "neuron%u process %d (%s):", p->device, p->pid, p->name);
	for (unsigned int h = 0; h < NEURON_MAX_HBMS; h++)
		if (p->hbm[h])
			fprintf(out, " HBM %u %s,", h, size_text(p->hbm[h]));
	fprintf(out, " host %s\n", size_text(p->host_bytes));
}

static void print_map(const struct device *d)
{
	for (uint32_t h = 0; h < d->g->nr_hbms; h++) {
		const struct map *map = find_map(d, h);

		if (h && (map->used || find_map(d, h - 1)->used))
			fputc('\n', out);
		map_text(map, &options.style, out);
	}
}

static void print_text(const struct device *d)
{
	for (uint32_t h = 0; h < d->g->nr_hbms; h++) {
		const struct neuron_hbm_stats *s = &d->hbm[h];

		fprintf(out, "neuron%u HBM %u: %s, used %s in %llu allocations, reserved %s, free %s, "
		       "longest free run %s, most used %s\n",
		       d->index, h, size_text(s->total), size_text(s->used),
		       (unsigned long long)s->nr_allocs, size_text(s->reserved),
		       size_text(s->free), size_text(s->largest_free), size_text(s->high_water));
		for (uint32_t c = 0; c < NEURON_MAX_CATEGORIES; c++)
			print_category(c, s->by_category[c]);
		if (s->fail_full + s->fail_fragmented + s->fail_alignment + s->fail_capped)
			fprintf(out, "  refused: full %" PRIu64 ", fragmented %" PRIu64
			       ", alignment %" PRIu64 ", capped %" PRIu64 "\n", s->fail_full,
			       s->fail_fragmented, s->fail_alignment, s->fail_capped);
	}
	for (uint32_t i = 0; i < d->g->nr_cores; i++) {
		const struct neuron_core_stats *s = &d->core[i];
		uint64_t sum = 0;

		for (uint32_t c = 0; c < NEURON_MAX_CATEGORIES; c++)
			sum += s->device_bytes[c];
		if (!sum && !s->host_bytes && !s->owner && d->core_limit[i] == NEURON_LIMIT_NONE)
			continue;
		fprintf(out, "neuron%u core %u (HBM %u): device %s, host %s", d->index, i,
		       d->g->core_hbm[i], size_text(sum), size_text(s->host_bytes));
		if (s->owner == NEURON_OWNER_OUTSIDE)
			fprintf(out, ", a process outside");
		else if (s->owner)
			fprintf(out, ", process %d", s->owner);
		if (d->core_limit[i] != NEURON_LIMIT_NONE)
			fprintf(out, ", limit %s", size_text(d->core_limit[i]));
		fputc('\n', out);
		for (uint32_t c = 0; c < NEURON_MAX_CATEGORIES; c++)
			print_category(c, s->device_bytes[c]);
	}
	if (d->process_limit != NEURON_LIMIT_NONE)
		fprintf(out, "neuron%u limit of a process: %s\n", d->index, size_text(d->process_limit));
	for (size_t i = 0; i < processes.count; i++)
		if (processes.list[i].device == d->index && processes.list[i].client)
			print_process(&processes.list[i]);
	for (size_t i = 0; i < d->nr_refusals; i++)
		print_refusal(d, &d->refusals[i]);
}

/* Two categories have the same name: both are what the scratchpad of a core uses. */
static json_t *categories(const uint64_t *bytes)
{
	json_t *o = json_object();

	for (uint32_t c = 0; c < NEURON_MAX_CATEGORIES; c++)
		if (bytes[c]) {
			const char *name = neuron_mem_category_name(c);

			json_object_set_new(o, name, json_integer(
				json_integer_value(json_object_get(o, name)) + INT(bytes[c])));
		}
	return o;
}

/* No limit is null. */
static json_t *limit_json(uint64_t limit)
{
	return limit == NEURON_LIMIT_NONE ? json_null() : json_integer(INT(limit));
}

static json_t *process_json(const struct device *d, const struct process *p)
{
	json_t *hbm = json_array();

	for (uint32_t h = 0; h < d->g->nr_hbms; h++)
		json_array_append_new(hbm, json_integer(INT(p->hbm[h])));
	return json_pack("{s:i, s:s, s:o, s:I}", "pid", p->pid, "name", p->name, "hbms", hbm,
			 "host", INT(p->host_bytes));
}

static json_t *refusal_json(const struct neuron_mem_refusal *r)
{
	const struct neuron_mem_failure *f = &r->failure;
	json_t *categories = json_array(), *holders = json_array();

	for (int i = 0; i < NEURON_REFUSAL_TOP && r->categories[i].bytes; i++)
		json_array_append_new(categories, json_pack(
			"{s:s, s:I}", "category", neuron_mem_category_name(r->categories[i].category),
			"bytes", INT(r->categories[i].bytes)));
	for (int i = 0; i < NEURON_REFUSAL_TOP && r->processes[i].bytes; i++)
		json_array_append_new(holders, json_pack(
			"{s:i, s:I}", "pid", r->processes[i].pid,
			"bytes", INT(r->processes[i].bytes)));
	return json_pack(
		"{s:I, s:I, s:i, s:s, s:b, s:i, s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}",
		"number", INT(r->number), "time_ns", INT(r->time), "pid", r->pid,
		"reason", neuron_mem_reason_name(f->reason), "host", (int)r->host,
		"hbm", (int)f->hbm, "core", (int)f->nc,
		"category", neuron_mem_category_name(f->category), "bytes", INT(f->bytes),
		"align", INT(f->align), "total", INT(f->total), "free", INT(f->free),
		"largest_free", INT(f->largest_free), "largest_aligned", INT(f->largest_aligned),
		"limit", limit_json(r->limit),
		"categories", categories, "processes", holders);
}

static json_t *to_json(const struct device *d)
{
	json_t *hbms = json_array(), *cores = json_array(), *procs = json_array(), *o;

	for (uint32_t h = 0; h < d->g->nr_hbms; h++) {
		const struct neuron_hbm_stats *s = &d->hbm[h];
		const struct map *map = find_map(d, h);
		json_t *one = json_pack(
			"{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:{s:I, s:I, s:I, s:I}}",
			"hbm", h, "total", INT(s->total), "used", INT(s->used),
			"reserved", INT(s->reserved), "free", INT(s->free),
			"largest_free", INT(s->largest_free), "high_water", INT(s->high_water),
			"allocations", INT(s->nr_allocs),
			"categories", categories(s->by_category),
			"refused", "full", INT(s->fail_full), "fragmented", INT(s->fail_fragmented),
			"alignment", INT(s->fail_alignment), "capped", INT(s->fail_capped));

		if (map)
			json_object_update_new(one, json_pack(
				"{s:f, s:o}", "fragmentation_percent", map_fragmentation(map),
				"ranges", map_ranges_json(map)));
		json_array_append_new(hbms, one);
	}
	for (uint32_t i = 0; i < d->g->nr_cores; i++)
		json_array_append_new(cores, json_pack(
			"{s:i, s:i, s:i, s:I, s:o, s:o}", "core", i, "hbm", (int)d->g->core_hbm[i],
			"owner", (int)d->core[i].owner, "host", INT(d->core[i].host_bytes),
			"limit", limit_json(d->core_limit[i]),
			"categories", categories(d->core[i].device_bytes)));
	for (size_t i = 0; i < processes.count; i++)
		if (processes.list[i].device == d->index && processes.list[i].client)
			json_array_append_new(procs, process_json(d, &processes.list[i]));
	o = json_pack("{s:i, s:i, s:b, s:o, s:o, s:o, s:o}", "schema_version", 1, "device",
		      (int)d->index, "emulated", (int)d->emulated, "hbms", hbms, "cores", cores,
		      "process_limit", limit_json(d->process_limit), "processes", procs);
	if (options.failures) {
		json_t *list = json_array();

		for (size_t i = 0; i < d->nr_refusals; i++)
			json_array_append_new(list, refusal_json(&d->refusals[i]));
		json_object_set_new(o, "failures", list);
	}
	return o;
}

static struct libscols_table *owner_rows;
static struct leaks leaks;

/* Into the list, or the table. */
static void show_owners(struct owners *o, json_t *list)
{
	if (list)
		json_array_append_new(list, owners_json(o));
	else
		owners_rows(owner_rows, o, &options.style);
	owners_free(o);
}

/* All of it of one instant, so that groups add up to what their owners have. */
static int read_groups(struct neuron_device *handle, json_t *list)
{
	struct snapshot s = { 0 };
	struct owners o;
	char *json;
	int ret = neuron_mem_snapshot(handle, -1, &json);

	if (ret)
		return ret;
	ret = snapshot_parse(json, strlen(json), &s);
	free(json);
	for (size_t i = 0; i < s.count && !ret; i++) {
		ret = owners_of_snapshot(s.device, &s.list[i], &o);
		if (ret)
			break;
		if (!o.consistent)
			error(0, 0, "/dev/neuron%u: HBM %u changes all the time: this is not of one instant",
			      o.device, o.hbm);
		show_owners(&o, list);
	}
	snapshot_free(&s);
	return ret;
}

/* For the table, the list, or the differences. */
static int read_owners(struct neuron_device *handle, json_t *list)
{
	uint32_t nr = neuron_device_geometry(handle)->nr_hbms;
	struct owners o;
	int ret = 0;

	if (options.groups)
		return read_groups(handle, list);
	for (uint32_t h = 0; h < nr && !ret; h++) {
		ret = owners_read(handle, h, &o);
		if (ret)
			break;
		for (size_t i = 0; i < o.all.count && options.diff && !ret; i++)
			ret = leak_add(&leaks, o.device, h, &o.all.list[i]);
		if (options.diff)
			owners_free(&o);
		else
			show_owners(&o, list);
	}
	return ret;
}

static int open_device(unsigned int index, struct neuron_device **handle)
{
	int ret = neuron_device_observe(index, handle);

	if (ret)
		error(0, -ret, "/dev/neuron%u%s", index,
		      access_hint(index, ret, (char[ACCESS_ROOM]){ 0 }));
	return ret;
}

static int resolve(void)
{
	unsigned int index = options.device < 0 ? 0 : (unsigned int)options.device;
	struct neuron_device *handle;
	uint64_t address = options.address;
	int ret;

	if (options.pid)
		address = resolve_process(options.pid, options.address, &index);
	ret = open_device(index, &handle);
	if (options.pid && !ret)
		address = maps_address(neuron_device_geometry(handle), address);
	if (options.pid && !options.json)
		printf("0x%" PRIx64 " of process %d: 0x%" PRIx64 " of neuron%u\n", options.address,
		       options.pid, address, index);
	if (ret)
		return 1;
	ret = resolve_show(handle, address, options.json);
	if (ret)
		error(0, -ret, "/dev/neuron%u: memory", index);
	neuron_device_close(handle);
	end_output(1);
	return ret != 0;
}

static int show(unsigned int index, json_t *list)
{
	struct neuron_device *handle;
	struct device d = { 0 };
	int ret = open_device(index, &handle);

	if (ret)
		return 1;
	ret = options.command == OWNERS ? read_owners(handle, list) : read_device(handle, &d);
	if (ret == -ENOTTY && options.command == OWNERS)
		error(0, 0, "/dev/neuron%u: its driver knows no owners", index);
	else if (ret)
		error(0, -ret, "/dev/neuron%u: statistics", index);
	else if (options.command == OWNERS)
		;
	else if (list)
		ret = json_array_append_new(list, to_json(&d));
	else if (options.map)
		print_map(&d);
	else
		print_text(&d);
	neuron_device_close(handle);
	return ret != 0;
}

static int show_all(json_t *list)
{
	struct neuron_device_entry *entries = NULL;
	size_t n = 0;
	int ret;

	if (find_processes("/proc", &processes))
		error(1, ENOMEM, "processes");
	if (options.device >= 0)
		return show((unsigned int)options.device, list);
	ret = neuron_device_list(&entries, &n);
	if (ret)
		error(1, -ret, "looking for devices");
	if (!n)
		error(options.watch > 0 || list ? 0 : 1, 0, NO_DEVICE);
	for (size_t i = 0; i < n; i++) {
		if (i && !list && options.map)
			fputc('\n', out);
		ret |= show(entries[i].index, list);
	}
	neuron_device_list_free(entries);
	return ret || !n;
}

/* ---- output -------------------------------------------------------------------------- */

static bool to_terminal;
static int window_rows;

/* The window, or what COLUMNS says; 80 columns elsewhere. */
static void measure(void)
{
	const char *columns = getenv("COLUMNS"), *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	struct winsize window = { 0 };

	to_terminal = isatty(STDOUT_FILENO);
	if (to_terminal)
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
	options.style.cols = window.ws_col ? window.ws_col : columns ? atoi(columns) : 80;
	if (options.style.cols < 40 || options.style.cols > 1000)
		options.style.cols = 80;
	window_rows = window.ws_row;
	options.style.colour = to_terminal && !(no_colour && *no_colour) && term &&
			       strcmp(term, "dumb") != 0;
}

/* What fits into the window, if that shows nothing else. */
static void print_screen(const char *text)
{
	int left = window_rows ? window_rows - 1 : INT32_MAX;
	const char *end;

	for (; *text; text = end + 1) {
		end = strchr(text, '\n');
		if (options.watch > 0 && to_terminal && left < 3 && strchr(end + 1, '\n')) {
			puts("(More in a larger window, or of one device alone.)");
			return;
		}
		left -= map_wrap(stdout, text, (int)(end - text),
				 to_terminal ? options.style.cols : INT32_MAX);
	}
}

static void write_svg(void)
{
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	if (!f || svg_write(f, maps.list, maps.count) || fclose(f))
		error(1, errno, "%s", options.svg);
	write_named(options.svg, text, size, 0);
	free(text);
}

static void clear_screen(void)
{
	if (options.watch > 0 && to_terminal && !options.diff)
		fputs("\033[H\033[J", stdout);
}

/* What the last two pictures of owners differ in. */
static void differences(json_t *list)
{
	static bool again;

	if (list)
		json_array_append_new(list, leaks_json(&leaks, !again));
	else
		leaks_text(&leaks, &options.style, !again, out);
	again = true;
}

/* All there is to show, once. */
static int picture(void)
{
	json_t *list = options.json ? json_array() : NULL;
	char *text = NULL;
	size_t size;
	int ret;

	measure();
	leaks_begin(&leaks);
	if (options.command == OWNERS && !list && !options.diff)
		owner_rows = owners_table();
	out = open_memstream(&text, &size);
	if (!out)
		error(1, errno, "output");
	ret = show_all(list);
	if (!list && options.failures && !sees_all())
		fputs("Failures of other processes are not shown: that takes CAP_SYS_ADMIN (root).\n",
		      out);
	if (options.diff)
		differences(list);
	if (fclose(out))
		error(1, ENOMEM, "output");
	if (owner_rows) {
		/* Its columns are those of the terminal. */
		clear_screen();
		print_table(owner_rows);
		if (!sees_all())
			puts("What other processes have is not shown: that takes CAP_SYS_ADMIN (root).");
		owner_rows = NULL;
	} else if (options.svg) {
		write_svg();
		json_decref(list);
	} else if (list && options.watch > 0) {
		json_dumpf(list, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
		putchar('\n');
		json_decref(list);
	} else if (list) {
		print_json(list, 1);
	} else {
		clear_screen();
		print_screen(text);
	}
	free(text);
	forget_maps();
	free(processes.list);
	memset(&processes, 0, sizeof(processes));
	end_output(1);
	return ret;
}

/* A snapshot or a timeline, of the device or of a file. */
static int write_pages(void)
{
	size_t size;
	char *json = options.from ? read_whole(options.from, &size, 1) :
		     pages_take(options.device < 0 ? 0 : (unsigned int)options.device, &size);

	pages_write(options.file, json, size, options.command == TIMELINE ? PAGES_TIMELINE :
		    options.html ? PAGES_HTML : PAGES_SNAPSHOT);
	free(json);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long n = 0;
	int ret;

	argp_err_exit_status = USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (options.command >= SNAPSHOT)
		return write_pages();
	if (options.command == RESOLVE)
		return resolve();
	for (;;) {
		ret = picture();
		if (options.watch <= 0 || ++n == options.count)
			return ret;
		if (!options.json && !to_terminal)
			putchar('\n');
		usleep((useconds_t)(options.watch * 1e6));
	}
}

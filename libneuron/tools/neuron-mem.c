// SPDX-License-Identifier: LGPL-2.1-or-later
/* neuron-mem: where the memory of Neuron devices went. */
#include <argp.h>
#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include <neuron/neuron.h>

#include "file.h"
#include "processes.h"

static struct {
	bool json;
	bool bytes;
	bool failures;
	long device;
} options = { .device = -1 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	char *end;

	switch (key) {
	case 'j': options.json = true; return 0;
	case 'b': options.bytes = true; return 0;
	case 'f': options.failures = true; return 0;
	case ARGP_KEY_ARG:
		options.device = strtol(arg, &end, 10);
		if (state->arg_num || !*arg || *end || options.device < 0)
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option argp_options[] = {
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ "bytes", 'b', NULL, 0, "Print plain bytes instead of KB, MB and GB", 0 },
	{ "failures", 'f', NULL, 0, "Also print the last allocations that were refused", 0 },
	{ 0 },
};

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.args_doc = "[DEVICE]",
	.doc = "Show the memory of all Neuron devices, or of one: by HBM, core and category, with "
	       "what is free and the longest free run.",
};

static const char *size_text(uint64_t bytes)
{
	static char text[8][32];
	static unsigned int next;
	char *out = text[next++ % 8];

	if (!options.bytes && bytes >= 1024)
		return neuron_report_size(bytes, out, sizeof(text[0]));
	snprintf(out, sizeof(text[0]), options.bytes ? "%" PRIu64 : "%" PRIu64 "B", bytes);
	return out;
}

static struct processes processes;

struct device {
	unsigned int index;
	const struct neuron_geometry *g;
	struct neuron_hbm_stats hbm[NEURON_MAX_HBMS];
	struct neuron_core_stats core[NEURON_MAX_CORES];
	uint64_t core_limit[NEURON_MAX_CORES];
	uint64_t process_limit;
	struct neuron_mem_refusal refusals[NEURON_REFUSALS_MAX];
	size_t nr_refusals;
};

static int read_device(struct neuron_device *handle, struct device *d)
{
	int ret = 0;

	d->index = neuron_device_index(handle);
	d->g = neuron_device_geometry(handle);
	for (uint32_t i = 0; i < d->g->nr_hbms && !ret; i++) {
		d->hbm[i].size = sizeof(d->hbm[i]);
		ret = neuron_hbm_get_stats(handle, i, &d->hbm[i]);
	}
	for (uint32_t i = 0; i < d->g->nr_cores && !ret; i++) {
		d->core[i].size = sizeof(d->core[i]);
		ret = neuron_core_get_stats(handle, i, &d->core[i]) ?:
		      neuron_limit_get(handle, NEURON_LIMIT_CORE, (int32_t)i, &d->core_limit[i],
				       NULL);
	}
	ret = ret ?: neuron_limit_get(handle, NEURON_LIMIT_DEFAULT, 0, &d->process_limit, NULL);
	if (!ret && options.failures) {
		uint64_t since = 0;

		d->nr_refusals = NEURON_REFUSALS_MAX;
		ret = neuron_mem_get_refusals(handle, &since, d->refusals, &d->nr_refusals);
	}
	return ret;
}

static void print_category(enum neuron_mem_category category, uint64_t bytes)
{
	if (bytes)
		printf("  %-24s %12s\n", neuron_mem_category_name(category), size_text(bytes));
}

static void print_refusal(const struct device *d, const struct neuron_mem_refusal *r)
{
	const struct neuron_mem_failure *f = &r->failure;
	time_t seconds = (time_t)(r->time / 1000000000);
	struct tm tm;
	char when[32];

	strftime(when, sizeof(when), "%F %T", localtime_r(&seconds, &tm));
	printf("neuron%u refused %" PRIu64 ", %s: process %d wanted %s of ", d->index, r->number,
	       when, r->pid, size_text(f->bytes));
	if (r->host)
		printf("host memory");
	else
		printf("HBM %u", f->hbm);
	printf(" for core %u as %s: %s\n", f->nc, neuron_mem_category_name(f->category),
	       neuron_mem_reason_name(f->reason));
	if (!r->host && f->total) {
		printf("  %s, free %s, longest free run %s", size_text(f->total),
		       size_text(f->free), size_text(f->largest_free));
		if (f->align)
			printf(", aligned to %s %s", size_text(f->align),
			       size_text(f->largest_aligned));
		if (r->limit != NEURON_LIMIT_NONE)
			printf(", limit %s", size_text(r->limit));
		putchar('\n');
	}
	for (int i = 0; i < NEURON_REFUSAL_TOP && r->categories[i].bytes; i++)
		print_category(r->categories[i].category, r->categories[i].bytes);
	for (int i = 0; i < NEURON_REFUSAL_TOP && r->processes[i].bytes; i++)
		printf("  process %-16d %12s\n", r->processes[i].pid,
		       size_text(r->processes[i].bytes));
}

static void print_process(const struct process *p)
{
	printf("neuron%u process %d (%s):", p->device, p->pid, p->name);
	for (unsigned int h = 0; h < NEURON_MAX_HBMS; h++)
		if (p->hbm[h])
			printf(" HBM %u %s,", h, size_text(p->hbm[h]));
	printf(" host %s\n", size_text(p->host_bytes));
}

static void print_text(const struct device *d)
{
	for (uint32_t h = 0; h < d->g->nr_hbms; h++) {
		const struct neuron_hbm_stats *s = &d->hbm[h];

		printf("neuron%u HBM %u: %s, used %s in %llu allocations, reserved %s, free %s, "
		       "longest free run %s, most used %s\n",
		       d->index, h, size_text(s->total), size_text(s->used),
		       (unsigned long long)s->nr_allocs, size_text(s->reserved),
		       size_text(s->free), size_text(s->largest_free), size_text(s->high_water));
		for (uint32_t c = 0; c < NEURON_MAX_CATEGORIES; c++)
			print_category(c, s->by_category[c]);
		if (s->fail_full + s->fail_fragmented + s->fail_alignment + s->fail_capped)
			printf("  refused: full %" PRIu64 ", fragmented %" PRIu64
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
		printf("neuron%u core %u (HBM %u): device %s, host %s", d->index, i,
		       d->g->core_hbm[i], size_text(sum), size_text(s->host_bytes));
		if (s->owner)
			printf(", process %d", s->owner);
		if (d->core_limit[i] != NEURON_LIMIT_NONE)
			printf(", limit %s", size_text(d->core_limit[i]));
		putchar('\n');
		for (uint32_t c = 0; c < NEURON_MAX_CATEGORIES; c++)
			print_category(c, s->device_bytes[c]);
	}
	if (d->process_limit != NEURON_LIMIT_NONE)
		printf("neuron%u limit of a process: %s\n", d->index, size_text(d->process_limit));
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

		json_array_append_new(hbms, json_pack(
			"{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:{s:I, s:I, s:I, s:I}}",
			"hbm", h, "total", INT(s->total), "used", INT(s->used),
			"reserved", INT(s->reserved), "free", INT(s->free),
			"largest_free", INT(s->largest_free), "high_water", INT(s->high_water),
			"allocations", INT(s->nr_allocs),
			"categories", categories(s->by_category),
			"refused", "full", INT(s->fail_full), "fragmented", INT(s->fail_fragmented),
			"alignment", INT(s->fail_alignment), "capped", INT(s->fail_capped)));
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
	o = json_pack("{s:i, s:o, s:o, s:o, s:o}", "device", (int)d->index, "hbms", hbms,
		      "cores", cores, "process_limit", limit_json(d->process_limit),
		      "processes", procs);
	if (options.failures) {
		json_t *list = json_array();

		for (size_t i = 0; i < d->nr_refusals; i++)
			json_array_append_new(list, refusal_json(&d->refusals[i]));
		json_object_set_new(o, "failures", list);
	}
	return o;
}

static int show(unsigned int index, json_t *out)
{
	struct neuron_device *handle;
	struct device d = { 0 };
	int ret = neuron_device_open(index, &handle);

	if (ret) {
		error(0, -ret, "/dev/neuron%u", index);
		return 1;
	}
	ret = read_device(handle, &d);
	if (ret)
		error(0, -ret, "/dev/neuron%u: statistics", index);
	else if (out)
		ret = json_array_append_new(out, to_json(&d));
	else
		print_text(&d);
	neuron_device_close(handle);
	return ret != 0;
}

int main(int argc, char **argv)
{
	struct neuron_device_entry *list = NULL;
	json_t *out = NULL;
	size_t n = 0;
	int ret = 0;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (find_processes("/proc", &processes))
		error(1, ENOMEM, "processes");
	if (options.json)
		out = json_array();
	if (options.device >= 0) {
		ret = show((unsigned int)options.device, out);
	} else {
		ret = neuron_device_list(&list, &n);
		if (ret)
			error(1, -ret, "looking for devices");
		if (!n)
			error(1, 0, "no Neuron device");
		for (size_t i = 0; i < n; i++)
			ret |= show(list[i].index, out);
		neuron_device_list_free(list);
	}
	free(processes.list);
	if (out)
		print_json(out);
	return ret;
}

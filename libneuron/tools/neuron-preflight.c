// SPDX-License-Identifier: LGPL-2.1-or-later
/* neuron-preflight: what NEFFs would take of a device, without one or of one as it is. */
#include <argp.h>
#include <errno.h>
#include <error.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <neuron/neuron.h>

#include "../common/access.h"
#include "collective.h"
#include "options.h"
#include "placed.h"

TOOL_VERSION("neuron-preflight");

#define NOT_NOW 3		/* exit status; 1 is "does not fit the device" */

static struct {
	const char *instance;
	bool json;
	bool pages;
	bool profile;
	unsigned long io_sets;
	bool io_single;
	bool io_each;
	bool separate;
	struct collective collective;
	struct neuron_profile_opts buffers;
	bool diff;
	uint64_t budget;	/* 0: none */
	bool now;
	bool device;		/* its number was given */
	unsigned int number;
} options = { .io_sets = 1 };

static struct neuron_geometry geometry;
static uint32_t nr_devices = 1;
static struct neuron_device *device;		/* with --now, else NULL */
static struct neuron_hbm_stats hbm_now[NEURON_MAX_HBMS];	/* of the device */
static uint64_t room[NEURON_MAX_HBMS];	/* bytes that can be allocated */
/* Of memories that the sum would fit, but some of it finds no place. */
static const struct neuron_fit *parted[NEURON_MAX_DEVICES][NEURON_MAX_HBMS];
static struct neuron_placement placement = { .size = sizeof(placement) };

static uint32_t cores_per_device(void)
{
	return geometry.nr_cores / placement.lnc;
}

static uint32_t device_of(const struct placed *p)
{
	return (uint32_t)p->core / cores_per_device();
}

static void inputs_outputs(const char *arg, struct argp_state *state)
{
	options.io_single = !strcmp(arg, "single");
	options.io_sets = 1;
	if (!strcmp(arg, "none"))
		options.io_sets = 0;
	else if (*arg == 'x')
		options.io_sets = number(arg + 1, 1, 1000000, state);
	else if (strcmp(arg, "count") && !options.io_single)
		argp_error(state, "%s is not count, single, none or xN", arg);
}

static void check_options(struct argp_state *state)
{
	if (options.diff && (nr_placed != 2 || placed[0].core || placed[1].core))
		argp_error(state, "--diff compares two files");
	if (options.budget && !options.diff)
		argp_error(state, "--budget is for --diff");
	if (options.now && (options.diff || options.pages))
		argp_error(state, "--now goes with neither --diff nor --pages");
	if (options.now && options.instance)
		argp_error(state, "--now takes a device that is there, --instance one that is not");
	if (options.device && !options.now)
		argp_error(state, "--device is for --now");
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'i': options.instance = arg; return 0;
	case 'l': set_variable("NEURON_LOGICAL_NC_CONFIG", arg, FAILURE); return 0;
	case 'p': set_variable("NEURON_SCRATCHPAD_PAGE_SIZE", arg, FAILURE); return 0;
	case 'c': set_variable("NEURON_RT_CONTIGUOUS_SCRATCHPAD", arg ? arg : "1", FAILURE); return 0;
	case 'm': set_variable("NEURON_RT_MICROCODE_MB", arg, FAILURE); return 0;
	case 'o': inputs_outputs(arg, state); return 0;
	case 'e': options.io_each = true; return 0;
	case 's': options.separate = true; return 0;
	case 'C': collective_read(&options.collective, arg, state); return 0;
	case 'j': options.json = true; return 0;
	case 'P': options.pages = true; return 0;
	case 'd': options.diff = true; return 0;
	case 'B': options.budget = size_of(arg, state); return 0;
	case 'n': options.now = true; return 0;
	case 'D':
		options.number = (unsigned int)number(arg, 0, NEURON_MAX_DEVICES - 1, state);
		options.device = true;
		return 0;
	case 'r': options.profile = true; return 0;
	case 'b':
		if (profile_buffer(arg, &options.buffers))
			argp_error(state, "%s " PROFILE_BUFFER_HELP, arg);
		options.profile = true;
		return 0;
	case ARGP_KEY_ARG: place(arg, state); return 0;
	case ARGP_KEY_END:
		if (!nr_placed)
			argp_usage(state);
		check_options(state);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static uint32_t core_of(const struct placed *p, const struct neuron_plan *plan)
{
	return (uint32_t)p->core % cores_per_device() + plan->first / placement.lnc;
}

static void plan_file(struct placed *p, const struct neuron_plan_opts *opts)
{
	size_t size;
	void *bytes = read_whole(p->path, &size, FAILURE);
	int ret;

	if (!p->plan)
		p->plan = calloc(NEURON_NEFF_MAX_NODES, sizeof(*p->plan));
	if (!p->plan)
		error(FAILURE, ENOMEM, "%s", p->path);
	p->plan->size = sizeof(*p->plan);
	p->nr_plans = NEURON_NEFF_MAX_NODES;
	ret = neuron_net_plan(&geometry, bytes, size, opts, p->plan, &p->nr_plans);
	if (ret)
		error(FAILURE, opts->error->text[0] ? 0 : -ret, "%s: %s", p->path, opts->error->text);
	if (options.pages || options.diff) {
		free(bytes);
	} else {
		p->bytes = bytes;
		p->size = size;
	}
}

/* From its first core on, which has the first node; each node has cores of its own. */
static void check_cores(const struct placed *p)
{
	const struct neuron_plan *last = &p->plan[p->nr_plans - 1];
	uint32_t per = cores_per_device(), want = last->first + last->cores;
	uint32_t left = (per - (uint32_t)p->core % per) * placement.lnc;

	if (want > left)
		error(FAILURE, 0, "%s: made for %u cores, %s has %u from core %lu on", p->path, want,
		      options.instance, left, p->core);
}

static bool is_on(const struct placed *p, uint32_t dev, uint32_t nc)
{
	bool on = false;

	for (size_t k = 0; k < p->nr_plans && device_of(p) == dev; k++)
		on |= core_of(p, &p->plan[k]) == nc;
	return on;
}

/* A core is of one process, which is that of the file's first core. */
static void check_processes(void)
{
	for (size_t i = 0; i < nr_placed; i++)
		for (size_t k = 1; k < placed[i].nr_plans; k++)
			for (size_t n = 0; n < nr_placed; n++)
				if (placed[n].core != placed[i].core &&
				    is_on(&placed[n], device_of(&placed[i]),
					  core_of(&placed[i], &placed[i].plan[k])))
					error(FAILURE, 0, "%s has a node on core %u of %s, which --separate gives to another process",
					      placed[i].path, core_of(&placed[i], &placed[i].plan[k]),
					      placed[n].path);
}

static void plan_all(const struct neuron_plan_opts *common)
{
	struct neuron_error e = { .size = sizeof(e) };
	struct neuron_plan_opts opts = *common;
	uint32_t per = cores_per_device(), id = 1001;

	opts.error = &e;
	for (size_t i = 0; i < nr_placed; i++) {
		struct placed *p = &placed[i], *first = &placed[p->first];

		if (p->core >= (uint64_t)per * nr_devices)
			error(FAILURE, 0, "%s: %s has no core %lu", p->path, options.instance, p->core);
		if (p == first)
			plan_file(p, &opts);
		p->plan = first->plan;
		p->nr_plans = first->nr_plans;
		p->bytes = first->bytes;
		p->size = first->size;
		p->id = id;
		id += (uint32_t)p->nr_plans;
		check_cores(p);
	}
	if (options.separate)
		check_processes();
}

static size_t count_plans(void)
{
	size_t nr = 0;

	for (size_t i = 0; i < nr_placed; i++)
		nr += placed[i].nr_plans;
	return nr;
}

/* What a node of a file takes, as the report wants it. */
static struct neuron_report_model model_of(size_t file, size_t node)
{
	const struct neuron_plan *plan = &placed[file].plan[node];
	struct neuron_report_model m = { .id = (uint32_t)(placed[file].id + node), .name = plan->name };
	uint64_t *sum = (uint64_t *)&m.usage;

	for (uint32_t k = 0; k < plan->nr_parts; k++) {
		const uint64_t *part = (const uint64_t *)&plan->parts[k];

		/* All members behind the size are numbers of the same type. */
		for (size_t n = 1; n < sizeof(m.usage) / sizeof(*sum); n++)
			sum[n] += part[n];
	}
	return m;
}

/* The cores of an HBM that have something; their plans one behind the other in @plans. */
static size_t gather(uint32_t dev, uint32_t hbm, const struct neuron_plan_opts *opts,
		     struct neuron_report_core *cores, struct neuron_report_model *models,
		     struct neuron_plan *plans, bool *used)
{
	uint64_t microcode = neuron_placement_microcode(&placement, &geometry);
	struct neuron_plan_opts bare = *opts;
	size_t nr = 0, m = 0;

	/* Nothing runs on a core without a file. */
	bare.profile = 0;
	bare.collectives = bare.computes = 0;
	*used = false;
	for (uint32_t nc = 0; nc < cores_per_device(); nc++) {
		struct neuron_report_core *c = &cores[nr];
		size_t first = m;

		if (geometry.core_hbm[nc * opts->lnc] != hbm)
			continue;
		*c = (struct neuron_report_core){ .nc = nc, .models = models + m };
		for (size_t i = 0; i < nr_placed; i++)
			for (size_t k = 0; k < placed[i].nr_plans && device_of(&placed[i]) == dev; k++) {
				if (core_of(&placed[i], &placed[i].plan[k]) != nc)
					continue;
				plans[m] = placed[i].plan[k];
				models[m++] = model_of(i, k);
			}
		c->nr_models = m - first;
		*used |= c->nr_models != 0;
		/* Cores of a device in use may be another process's. */
		if (neuron_plan_sum(plans + first, c->nr_models, c->nr_models ? opts : &bare,
				    c->nr_models || !(device || options.separate) ?
				    microcode : 0, c))
			error(FAILURE, E2BIG, "what core %u has to hold", nc);
		nr++;
	}
	return nr;
}

/* As the fields of struct neuron_model_usage are called. */
static const char *const names[NEURON_REPORT_NR_COLUMNS] = {
	[NEURON_REPORT_TOTAL] = "total",
	[NEURON_REPORT_CODE] = "code",
	[NEURON_REPORT_CONSTANTS] = "constants",
	[NEURON_REPORT_TENSORS] = "tensors",
	[NEURON_REPORT_SHARED_SCRATCHPAD] = "shared_scratchpad",
	[NEURON_REPORT_SCRATCHPAD] = "scratchpad",
	[NEURON_REPORT_RUNTIME] = "runtime",
	[NEURON_REPORT_RINGS_IO] = "rings_io",
	[NEURON_REPORT_RINGS_SPILL] = "rings_spill",
	[NEURON_REPORT_RINGS_COLLECTIVES] = "rings_collectives",
	[NEURON_REPORT_RINGS_RUNTIME] = "rings_runtime",
	[NEURON_REPORT_COLLECTIVES] = "collectives",
	[NEURON_REPORT_XT_CC] = "xt_cc",
	[NEURON_REPORT_PROFILER] = "profiler",
};

/* A row by these names; of zeros nothing. */
static json_t *row_json(const uint64_t row[NEURON_REPORT_NR_COLUMNS])
{
	json_t *o = json_object();

	for (int i = 0; i < NEURON_REPORT_NR_COLUMNS; i++)
		if (row[i] || i == NEURON_REPORT_TOTAL)
			json_object_set_new(o, names[i], json_integer(INT(row[i])));
	return o;
}

/* Every node of a file has a number from 1001 on. */
static const struct placed *placed_of(uint32_t id)
{
	const struct placed *p = placed;

	while (id - p->id >= p->nr_plans)
		p++;
	return p;
}

static json_t *core_json(const struct neuron_report *r, const struct neuron_report_core *c)
{
	uint64_t row[NEURON_REPORT_NR_COLUMNS];
	json_t *files = json_array();

	for (size_t m = 0; m < c->nr_models; m++) {
		const struct placed *p = placed_of(c->models[m].id);
		const struct neuron_plan *plan = &p->plan[c->models[m].id - p->id];
		json_t *obstacles = json_array();

		for (uint32_t k = 0; k < plan->nr_obstacles; k++)
			json_array_append_new(obstacles, json_string(plan->obstacles[k]));
		neuron_report_model_row(&c->models[m], row);
		json_array_append_new(files, json_pack("{s:s, s:s, s:o, s:{s:I, s:I}, s:o}", "file",
						       p->path, "name", plan->name, "memory",
						       row_json(row), "host", "peak",
						       INT(plan->host_peak), "kept",
						       INT(plan->host_kept), "obstacles",
						       obstacles));
	}
	neuron_report_row(r, c, row);
	return json_pack("{s:i, s:o, s:o}", "core", (int)c->nc, "memory", row_json(row), "files",
			 files);
}

static json_t *hbm_json(const struct neuron_report *r, uint32_t dev,
			const uint64_t row[NEURON_REPORT_NR_COLUMNS])
{
	const struct neuron_hbm_stats *now = &hbm_now[r->hbm];
	json_t *cores = json_array(), *out;

	for (size_t i = 0; i < r->nr_cores; i++)
		json_array_append_new(cores, core_json(r, &r->cores[i]));
	out = json_pack("{s:i, s:i, s:b, s:I, s:o, s:o}", "device", (int)r->device, "hbm",
			(int)r->hbm, "fits", row[NEURON_REPORT_TOTAL] <= room[r->hbm] &&
			!parted[dev][r->hbm], "room", INT(room[r->hbm]), "memory", row_json(row),
			"cores", cores);
	if (parted[dev][r->hbm])
		json_object_set_new(out, "order", order_json(parted[dev][r->hbm]));
	if (device)
		json_object_update_new(out, json_pack("{s:I, s:I}", "free", INT(now->free),
						      "largest_free", INT(now->largest_free)));
	return out;
}

static void print_hbm(const struct neuron_report *r, uint32_t dev,
		      const uint64_t row[NEURON_REPORT_NR_COLUMNS])
{
	uint64_t all = room[r->hbm], total = row[NEURON_REPORT_TOTAL];
	const struct neuron_fit *fit = parted[dev][r->hbm];
	const struct neuron_hbm_stats *now = &hbm_now[r->hbm];
	char *text;

	if (neuron_report_table(r, &text))
		error(FAILURE, ENOMEM, "report");
	printf("%s\nHBM %u: ", text, r->hbm);
	free(text);
	if (total > all)
		printf("does not fit the device, %s too much for %s\n", SIZE_TEXT(total - all),
		       SIZE_TEXT(all));
	else if (fit)
		printf("does not fit the device, some of it finds no place with %s of %s to spare%s\n",
		       SIZE_TEXT(all - total), SIZE_TEXT(all),
		       fit->nr_order ? "; it would fit in another order" : "");
	else
		printf("fits, %s of %s stay free%s\n", SIZE_TEXT(all - total), SIZE_TEXT(all),
		       device ? " when nothing else is there" : "");
	if (fit && !device)
		print_order("HBM ", r->hbm, fit);
	if (device)
		printf("HBM %u: %s are free now, %s of them in one piece\n", r->hbm,
		       SIZE_TEXT(now->free), SIZE_TEXT(now->largest_free));
	putchar('\n');
}

/* The first device whose cores have the same files: what is to be said of it is the same. */
static uint32_t first_alike(uint32_t dev)
{
	uint32_t per = cores_per_device(), other;

	for (other = 0; other < dev; other++) {
		size_t i = 0, k = 0;

		for (;; i++, k++) {
			while (i < nr_placed && device_of(&placed[i]) != dev)
				i++;
			while (k < nr_placed && device_of(&placed[k]) != other)
				k++;
			if (i == nr_placed || k == nr_placed ||
			    strcmp(placed[i].path, placed[k].path) ||
			    placed[i].core % per != placed[k].core % per)
				break;
		}
		if (i == nr_placed && k == nr_placed)
			break;
	}
	return other;
}

static bool has_files(uint32_t dev)
{
	for (size_t i = 0; i < nr_placed; i++)
		if (device_of(&placed[i]) == dev)
			return true;
	return false;
}

/* Of an instance: which devices the next tables are of. */
static void print_devices(uint32_t dev)
{
	uint32_t n = 0;

	printf("neuron%u", dev);
	for (uint32_t other = dev + 1; other < nr_devices; other++)
		if (first_alike(other) == dev) {
			printf(" %u", other);
			n++;
		}
	puts(n ? ", each:" : ":");
}

/* What all files together take. */
struct sum {
	uint64_t row[NEURON_REPORT_NR_COLUMNS];
	uint64_t missing;	/* on all memories together */
	uint32_t devices;	/* in use */
	uint32_t too_small;	/* of these */
};

static void print_sum(const struct sum *sum)
{
	const char *before = "";

	printf("%u devices, %zu files: %s (", sum->devices, nr_placed,
	       SIZE_TEXT(sum->row[NEURON_REPORT_TOTAL]));
	for (int i = 1; i < NEURON_REPORT_NR_COLUMNS; i++)
		if (sum->row[i]) {
			printf("%s%s %s", before, names[i], SIZE_TEXT(sum->row[i]));
			before = ", ";
		}
	if (sum->missing)
		printf("), which do not fit %u of them: %s too much\n", sum->too_small,
		       SIZE_TEXT(sum->missing));
	else if (sum->too_small)
		printf("), which do not fit %u of them: some finds no place\n", sum->too_small);
	else
		puts("), which fit");
}

static bool is_in(const struct placed *p, uint32_t hbm)
{
	bool in = false;

	for (size_t k = 0; k < p->nr_plans; k++)
		in |= geometry.core_hbm[core_of(p, &p->plan[k]) * placement.lnc] == hbm;
	return in;
}

/*
 * Whether files fit: those with something in one memory of a type, or all of a device as it is.
 */
static struct neuron_fit ask(const struct neuron_plan_opts *opts, uint32_t dev, uint32_t hbm)
{
	uint64_t microcode = neuron_placement_microcode(&placement, &geometry);
	struct neuron_fit_file *files = calloc(nr_placed, sizeof(*files));
	struct neuron_error e = { .size = sizeof(e) };
	struct neuron_fit fit = { .size = sizeof(fit) };
	uint32_t *asked = calloc(nr_placed, sizeof(*asked));
	struct neuron_plan_opts o = *opts;
	size_t nr = 0;
	int ret;

	if (!files || !asked)
		error(FAILURE, ENOMEM, "preflight");
	o.error = &e;
	for (uint32_t i = 0; i < nr_placed; i++) {
		uint32_t nc = (uint32_t)placed[i].core % cores_per_device() * o.lnc;

		if (device_of(&placed[i]) != dev || (!device && !is_in(&placed[i], hbm)))
			continue;
		asked[nr] = i;
		files[nr++] = (struct neuron_fit_file){
			.size = sizeof(*files), .bytes = placed[i].bytes,
			.length = placed[i].size, .plan = placed[i].plan,
			.nr_plans = placed[i].nr_plans, .nc = nc,
			.process = options.separate ? nc : 0,
		};
	}
	ret = device ? neuron_models_fit(device, files, nr, &o, microcode, &fit) :
		       neuron_models_fit_empty(&geometry, geometry.hbm[hbm].size - room[hbm], files,
					       nr, &o, microcode, &fit);
	if (ret)
		error(FAILURE, e.text[0] ? 0 : -ret, "%s: %s", options.instance,
		      e.text[0] ? e.text : "what is free");
	for (uint32_t i = 0; i < fit.nr_order; i++)
		fit.order[i] = asked[fit.order[i]];
	free(asked);
	free(files);
	return fit;
}

/* Are memories parted whose sums fit?  That of a network can be another one than @hbm. */
static void place_all(const struct neuron_plan_opts *opts, uint32_t dev, uint32_t hbm)
{
	uint32_t other = first_alike(dev);
	struct neuron_fit *fit;

	if (other != dev)
		parted[dev][hbm] = parted[other][hbm];
	if (options.pages || other != dev)
		return;
	fit = malloc(sizeof(*fit));
	if (!fit)
		error(FAILURE, ENOMEM, "preflight");
	*fit = ask(opts, dev, hbm);
	if (fit->verdict == NEURON_FIT_NEVER && (fit->reason || fit->hbm == hbm))
		parted[dev][fit->hbm] = fit;
	else
		free(fit);
}

/* Of all cores of a memory. */
struct table {
	struct neuron_report_core cores[NEURON_MAX_CORES];
	struct neuron_report_model *models;
	struct neuron_plan *plans;
	struct neuron_report report;
	uint64_t row[NEURON_REPORT_NR_COLUMNS];
};

/* False: nothing is on it. */
static bool make_table(struct table *t, uint32_t dev, uint32_t hbm,
		       const struct neuron_plan_opts *opts)
{
	bool used;

	t->report = (struct neuron_report){
		.size = sizeof(t->report), .device = device ? options.number : dev, .hbm = hbm,
		.lnc = (uint32_t)opts->lnc, .cores = t->cores,
	};
	t->report.nr_cores = gather(dev, hbm, opts, t->cores, t->models, t->plans, &used);
	neuron_report_row(&t->report, NULL, t->row);
	return used;
}

/* Adds a device to @sum; prints a table of each memory in use, or adds to @list. */
static void examine_device(uint32_t dev, const struct neuron_plan_opts *opts, bool print,
			   json_t *list, struct sum *sum)
{
	struct table t = {
		.models = calloc(count_plans(), sizeof(*t.models)),
		.plans = calloc(count_plans(), sizeof(*t.plans)),
	};
	uint64_t before = sum->missing;
	bool bad = false;

	if (!t.models || !t.plans)
		error(FAILURE, ENOMEM, "preflight");
	/* All of them first: a network can be in several. */
	for (uint32_t hbm = 0; hbm < geometry.nr_hbms && !device; hbm++)
		if (make_table(&t, dev, hbm, opts) && t.row[NEURON_REPORT_TOTAL] <= room[hbm])
			place_all(opts, dev, hbm);
	for (uint32_t hbm = 0; hbm < geometry.nr_hbms; hbm++) {
		if (!make_table(&t, dev, hbm, opts))
			continue;
		for (int i = 0; i < NEURON_REPORT_NR_COLUMNS; i++)
			add_capped(&sum->row[i], t.row[i]);
		if (t.row[NEURON_REPORT_TOTAL] > room[hbm])
			add_capped(&sum->missing, t.row[NEURON_REPORT_TOTAL] - room[hbm]);
		bad |= parted[dev][hbm] != NULL;
		if (list)
			json_array_append_new(list, hbm_json(&t.report, dev, t.row));
		else if (print)
			print_hbm(&t.report, dev, t.row);
	}
	sum->devices++;
	sum->too_small += bad || sum->missing > before;
	free(t.models);
	free(t.plans);
}

/* All devices; prints, or adds to @list. */
static struct sum examine(const struct neuron_plan_opts *opts, bool print, json_t *list)
{
	struct sum sum = { 0 };

	for (uint32_t dev = 0; dev < nr_devices; dev++) {
		bool show = print && !list && first_alike(dev) == dev;

		if (!has_files(dev))
			continue;
		if (show && nr_devices > 1)
			print_devices(dev);
		examine_device(dev, opts, show, list, &sum);
	}
	if (!print || list)
		return sum;
	for (size_t i = 0; i < nr_placed; i++)
		if (placed[i].first == i)
			printf("%s: loading takes at least %s of host memory, %s of it stay\n",
			       placed[i].path, SIZE_TEXT(placed[i].plan->host_peak),
			       SIZE_TEXT(placed[i].plan->host_kept));
	for (size_t i = 0; i < nr_placed; i++)
		for (uint32_t k = 0; k < placed[i].plan->nr_obstacles && placed[i].first == i; k++)
			printf("%s: cannot run here because of %s\n", placed[i].path,
			       placed[i].plan->obstacles[k]);
	if (sum.devices > 1)
		print_sum(&sum);
	return sum;
}

/* What both kinds of JSON begin with. */
static json_t *document(void)
{
	return json_pack("{s:i, s:s, s:I}", "schema_version", 1, "instance", options.instance,
			 "logical_neuroncore_config", INT(placement.lnc));
}

/* Only what takes less than doing nothing. */
static void advise(const uint64_t *totals, size_t best, bool equal)
{
	if (equal) {
		puts("all of them take the same: the page size makes no difference");
		return;
	}
	if (placement.contiguous) {
		if (totals[best] < totals[0])
			printf("NEURON_SCRATCHPAD_PAGE_SIZE=%zu takes the least, with NEURON_RT_CONTIGUOUS_SCRATCHPAD=0\n",
			       best * 512);
		else
			printf("the default, none, takes the least\n");
		return;
	}
	if (totals[best] < totals[1])
		printf("NEURON_SCRATCHPAD_PAGE_SIZE=%zu takes the least of all pages", best * 512);
	else
		printf("the default, 512, takes the least of all pages");
	printf("%s\n", totals[0] < totals[best] ?
	       "; none, which is NEURON_RT_CONTIGUOUS_SCRATCHPAD=1, takes less" : "");
}

/* What each page takes; of equals the smallest one is the best. */
static int propose(struct neuron_plan_opts *opts)
{
	json_t *list = options.json ? json_array() : NULL, *out;
	uint64_t totals[8];
	bool equal = true;
	size_t best = 1;

	if (!list)
		printf("%6s %12s\n", "page", "memory");
	for (size_t i = 0; i < 8; i++) {
		opts->contiguous = !i;
		opts->scratchpad_page = i * 512 * MIB;
		plan_all(opts);
		totals[i] = examine(opts, false, NULL).row[NEURON_REPORT_TOTAL];
		if (list)
			json_array_append_new(list, json_pack("{s:o, s:I}", "page_mib", i ?
							      json_integer(INT(i * 512)) : json_null(),
							      "memory", INT(totals[i])));
		else if (i)
			printf("%6zu %12s\n", i * 512, SIZE_TEXT(totals[i]));
		else
			printf("%6s %12s\n", "none", SIZE_TEXT(totals[i]));
		if (i && totals[i] < totals[best])
			best = i;
		equal &= totals[i] == totals[0];
	}
	if (list) {
		out = document();
		json_object_set_new(out, "pages", list);
		print_json(out, FAILURE);
		return 0;
	}
	putchar('\n');
	advise(totals, best, equal);
	return 0;
}

/* What a file alone takes of its cores, by category; without what is set aside there anyhow. */
static void row_of(size_t file, const struct neuron_plan_opts *opts,
		   uint64_t row[NEURON_REPORT_NR_COLUMNS])
{
	const struct placed *p = &placed[file];

	memset(row, 0, NEURON_REPORT_NR_COLUMNS * sizeof(*row));
	for (size_t k = 0; k < p->nr_plans; k++) {
		struct neuron_report_model model = model_of(file, k);
		struct neuron_report_core core = { .models = &model, .nr_models = 1 };
		uint64_t part[NEURON_REPORT_NR_COLUMNS];

		if (neuron_plan_sum(&p->plan[k], 1, opts, 0, &core))
			error(FAILURE, E2BIG, "%s", p->path);
		neuron_report_row(NULL, &core, part);
		for (int i = 0; i < NEURON_REPORT_NR_COLUMNS; i++)
			add_capped(&row[i], part[i]);
	}
}

static const char *change_text(uint64_t old, uint64_t new, char *text, size_t size)
{
	snprintf(text, size, "%s%s", new > old ? "+" : new < old ? "-" : "",
		 SIZE_TEXT(new > old ? new - old : old - new));
	return text;
}

static json_t *change_json(const uint64_t *old, const uint64_t *new)
{
	json_t *o = json_object();

	for (int i = 0; i < NEURON_REPORT_NR_COLUMNS; i++)
		if (old[i] != new[i] || i == NEURON_REPORT_TOTAL)
			json_object_set_new(o, names[i], json_integer(INT(new[i]) - INT(old[i])));
	return o;
}

/* What a new file takes more or less than an old one; 1 if it is over the budget. */
static int diff(const struct neuron_plan_opts *opts)
{
	uint64_t old[NEURON_REPORT_NR_COLUMNS], new[NEURON_REPORT_NR_COLUMNS];
	uint64_t total;
	bool over;

	plan_all(opts);
	row_of(0, opts, old);
	row_of(1, opts, new);
	total = new[NEURON_REPORT_TOTAL];
	over = options.budget && total > options.budget;
	if (options.json) {
		json_t *out = document();

		json_object_update_new(out, json_pack("{s:o, s:o, s:o, s:o, s:b}", "old", row_json(old),
						      "new", row_json(new), "change",
						      change_json(old, new), "budget",
						      options.budget ? json_integer(INT(options.budget)) :
								       json_null(),
						      "within_budget", !over));
		print_json(out, FAILURE);
		return over;
	}
	printf("%-18s %12s %12s %13s\n", "", "old", "new", "change");
	for (int n = 1; n <= NEURON_REPORT_NR_COLUMNS; n++) {
		int i = n % NEURON_REPORT_NR_COLUMNS;	/* the total comes last */

		if (old[i] || new[i] || !i)
			printf("%-18s %12s %12s %13s\n", names[i], SIZE_TEXT(old[i]),
			       SIZE_TEXT(new[i]), change_text(old[i], new[i], (char[40]){ 0 }, 40));
	}
	if (over)
		printf("%s over the budget of %s\n", SIZE_TEXT(total - options.budget),
		       SIZE_TEXT(options.budget));
	return over;
}

/* ---- a device as it is ------------------------------------------------------------- */

static void open_device(void)
{
	struct neuron_device_entry *list = NULL;
	size_t n = 0;
	int ret = neuron_device_observe(options.number, &device);

	if (ret)
		error(FAILURE, -ret, "/dev/neuron%u%s", options.number,
		      access_hint(options.number, ret, (char[ACCESS_ROOM]){ 0 }));
	geometry = *neuron_device_geometry(device);
	for (uint32_t i = 0; i < geometry.nr_hbms; i++) {
		hbm_now[i].size = sizeof(hbm_now[i]);
		ret = neuron_hbm_get_stats(device, i, &hbm_now[i]);
		if (ret)
			error(FAILURE, -ret, "/dev/neuron%u", options.number);
		room[i] = hbm_now[i].total - hbm_now[i].reserved;
	}
	options.instance = "the device";
	if (neuron_device_list(&list, &n))
		return;
	for (size_t i = 0; i < n; i++)
		if (list[i].index == options.number && list[i].instance[0])
			options.instance = strdup(list[i].instance) ?: options.instance;
	neuron_device_list_free(list);
}

/* "48xlarge", "xlarge": new ones may come, so it is only the form. */
static bool is_size(const char *text)
{
	return !strcasecmp(text + (*text != '0' ? strspn(text, "0123456789") : 0), "xlarge");
}

static void open_instance(void)
{
	uint64_t reserved;
	const char *dot;

	if (!options.instance)
		options.instance = "trn2";
	dot = strchr(options.instance, '.');
	if ((dot && !is_size(dot + 1)) || neuron_instance_geometry(options.instance, &geometry, &reserved))
		error(FAILURE, 0, "%s: no such instance type", options.instance);
	nr_devices = neuron_instance_devices(options.instance);
	for (uint32_t i = 0; i < geometry.nr_hbms; i++)
		room[i] = geometry.hbm[i].size - reserved;
}

static void print_now(const struct neuron_fit *fit)
{
	printf("neuron%u: %s\n", options.number, fit->text);
	print_order("neuron", options.number, fit);
}

static json_t *limit_json(const struct neuron_fit *fit)
{
	if (fit->reason != NEURON_MEM_REASON_CAPPED)
		return json_null();
	return json_pack("{s:I, s:I, s:o}", "bytes", INT(fit->limit), "used", INT(fit->limit_used),
			 "cgroup", fit->cgroup[0] ? json_string(fit->cgroup) : json_null());
}

static json_t *now_json(const struct neuron_fit *fit)
{
	bool taken = fit->nc != UINT32_MAX && fit->reason == NEURON_MEM_REASON_NONE;
	const char *reason = taken ? "taken" : neuron_mem_reason_name(fit->reason);

	return json_pack("{s:i, s:b, s:s, s:s, s:o, s:o, s:i, s:I, s:I, s:I, s:o, s:o, s:I, s:o}", "device",
			 (int)options.number, "fits", fit->verdict == NEURON_FIT_NOW, "reason",
			 reason, "text", fit->text, "hbm", number_json(fit->hbm), "core",
			 number_json(fit->nc), "pid", (int)fit->pid, "need", INT(fit->need), "free",
			 INT(fit->free), "largest_free", INT(fit->largest_free), "release",
			 release_json(&fit->release), "order", order_json(fit), "moved",
			 INT(fit->moved), "limit", limit_json(fit));
}

/* Tables, or JSON; the exit status. */
static int report(const struct neuron_plan_opts *opts)
{
	json_t *hbms = options.json ? json_array() : NULL, *out;
	struct neuron_fit fit = { .verdict = NEURON_FIT_NOW };
	struct sum sum;

	plan_all(opts);
	if (device) {
		fit = ask(opts, 0, 0);
		if (fit.verdict == NEURON_FIT_NEVER && fit.reason)
			parted[0][fit.hbm] = &fit;
	}
	sum = examine(opts, true, hbms);
	if (hbms) {
		out = document();
		json_object_update_new(out, json_pack("{s:b, s:i, s:o, s:o}", "fits", !sum.too_small,
						      "devices", (int)sum.devices, "memory",
						      row_json(sum.row), "hbms", hbms));
		if (device)
			json_object_set_new(out, "now", now_json(&fit));
		print_json(out, FAILURE);
	} else if (device) {
		print_now(&fit);
	}
	neuron_device_close(device);
	if (sum.too_small || fit.verdict == NEURON_FIT_NEVER)
		return 1;
	return fit.verdict == NEURON_FIT_NOT_NOW ? NOT_NOW : 0;
}

int main(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{ "instance", 'i', "TYPE", 0, "trn1, inf2, trn2, trn3, with or without a size (trn2)", 0 },
		{ "lnc", 'l', "N", 0, "Physical cores of a logical one (2 on trn2 and trn3, else 1)", 0 },
		{ "page", 'p', "MIB", 0, "Pages of a scratchpad that is made of pages (512)", 0 },
		{ "contiguous", 'c', "0", OPTION_ARG_OPTIONAL, "Scratchpad in one piece, or with 0 in pages (as the runtime does)", 0 },
		{ "microcode", 'm', "MIB", 0, "Set aside on each physical core (96)", 0 },
		{ "io", 'o', "HOW", 0, "Inputs and outputs of a file: count (the default), single (one tensor as long as the longest), xN (N times), none", 0 },
		{ "io-each", 'e', NULL, 0, "Those of a file are allocated before the next file is loaded, not at last", 0 },
		{ "separate", 's', NULL, 0, "The files of each core are those of a process of its own, one after the other", 0 },
		{ "collectives", 'C', "MIB", 0, "Staging of collective operations, on each logical core that has a file (0), or OPERATION:SIZE:RANKS[:TYPE][:in-place] of one", 0 },
		{ "pages", 'P', NULL, 0, "Compare page sizes, and propose one", 0 },
		{ "diff", 'd', NULL, 0, "Compare what two files take, an old one and a new one", 0 },
		{ "budget", 'B', "SIZE", 0, "With --diff: fail if the new one takes more than this, as 12G", 0 },
		{ "now", 'n', NULL, 0, "Of a device that is there: whether they fit it as it is now, too", 0 },
		{ "device", 'D', "N", 0, "With --now: its number (0)", 0 },
		{ "json", 'j', NULL, 0, "Print JSON", 0 },
		{ "profile", 'r', NULL, 0, "With the buffers of a profile on each core that has a file", 0 },
		{ "profile-buffer", 'b', "KIND=MIB", 0, "Same, with this size of one kind of buffers", 0 },
		{ 0 }
	};
	static const struct argp argp = {
		opts, option, "FILE[@CORE[-LAST]]...",
		"Say what NEFF files take of device memory, and whether it is enough. Without @CORE a file goes to core 0, with @CORE-LAST to each of these.",
		NULL, NULL, NULL
	};
	struct neuron_plan_opts plan = { .size = sizeof(plan) };
	int ret;

	argp_err_exit_status = FAILURE;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (options.now)
		open_device();
	else
		open_instance();
	read_environment(&geometry, FAILURE, &placement, &options.buffers);
	read_file_settings(&plan);
	plan.lnc = placement.lnc;
	plan.io_sets = options.io_sets;
	plan.io_single = options.io_single;
	plan.io_each = options.io_each;
	collective_plan(&options.collective, cores_per_device(), &plan);
	options.buffers.size = sizeof(options.buffers);
	if (options.profile) {
		plan.profile = neuron_profile_memory(&geometry, &options.buffers);
		plan.buffers = &options.buffers;
	}
	if (!options.pages) {
		plan.contiguous = placement.contiguous;
		plan.scratchpad_page = placement.page;
	}
	ret = options.pages ? propose(&plan) : options.diff ? diff(&plan) : report(&plan);
	end_output(FAILURE);
	return ret;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* neuron-preflight: what NEFFs would take of a device, without one. */
#include <argp.h>
#include <errno.h>
#include <error.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <neuron/neuron.h>

#include "file.h"
#include "options.h"

#define FAILURE 2	/* 1 is "does not fit" */

static struct {
	const char *instance;
	bool pages;
	bool profile;
	unsigned long io_sets;
	bool io_single;
	unsigned long collectives;
	struct neuron_profile_opts buffers;
} options = { .instance = "trn2", .io_sets = 1 };

/* A file on a logical core of the device. */
struct placed {
	char *path;
	unsigned long core;
	struct neuron_plan plan;
};

static struct placed *placed;
static size_t nr_placed;

static struct neuron_geometry geometry;
static uint64_t reserved;
static struct neuron_placement placement = { .size = sizeof(placement) };

/* FILE or FILE@CORE; a name may contain an @ itself. */
static void place(char *arg, struct argp_state *state)
{
	char *at = strrchr(arg, '@');

	placed = realloc(placed, (nr_placed + 1) * sizeof(*placed));
	if (!placed)
		error(FAILURE, ENOMEM, "%s", arg);
	memset(&placed[nr_placed], 0, sizeof(*placed));
	placed[nr_placed].path = arg;
	if (at && at[1] && at[1 + strspn(at + 1, "0123456789")] == '\0') {
		*at = '\0';
		placed[nr_placed].core = number(at + 1, 0, NEURON_MAX_CORES - 1, state);
	}
	nr_placed++;
}

static void inputs_outputs(const char *arg, struct argp_state *state)
{
	options.io_single = !strcmp(arg, "single");
	options.io_sets = 1;
	if (!strcmp(arg, "none"))
		options.io_sets = 0;
	else if (*arg == 'x')
		options.io_sets = number(arg + 1, 0, 1000000, state);
	else if (strcmp(arg, "count") && !options.io_single)
		argp_error(state, "%s is not count, single, none or xN", arg);
}

/* Options stand for variables of the runtime, so that both read the same. */
static void variable(const char *name, const char *value)
{
	if (setenv(name, value, 1))
		error(FAILURE, errno, "%s", name);
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'i': options.instance = arg; return 0;
	case 'l': variable("NEURON_LOGICAL_NC_CONFIG", arg); return 0;
	case 'p': variable("NEURON_SCRATCHPAD_PAGE_SIZE", arg); return 0;
	case 'c': variable("NEURON_RT_CONTIGUOUS_SCRATCHPAD", arg ? arg : "1"); return 0;
	case 'm': variable("NEURON_RT_MICROCODE_MB", arg); return 0;
	case 'o': inputs_outputs(arg, state); return 0;
	case 'C': options.collectives = number(arg, 0, 1ul << 30, state); return 0;
	case 'P': options.pages = true; return 0;
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
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static void plan_all(const struct neuron_plan_opts *common)
{
	struct neuron_error e = { .size = sizeof(e) };
	struct neuron_plan_opts opts = *common;
	int ret;

	opts.error = &e;
	for (size_t i = 0; i < nr_placed; i++) {
		struct placed *p = &placed[i];
		size_t size;
		void *bytes = read_whole(p->path, &size, FAILURE);

		if (p->core >= geometry.nr_cores / placement.lnc)
			error(FAILURE, 0, "%s: %s has no core %lu", p->path, options.instance, p->core);
		p->plan.size = sizeof(p->plan);
		ret = neuron_model_plan(&geometry, bytes, size, &opts, &p->plan);
		if (ret)
			error(FAILURE, e.text[0] ? 0 : -ret, "%s: %s", p->path, e.text);
		if (p->core * common->lnc + p->plan.cores > geometry.nr_cores)
			error(FAILURE, 0, "%s: made for %u cores, %s has %u from core %lu on",
			      p->path, p->plan.cores, options.instance,
			      (unsigned int)(geometry.nr_cores - p->core * common->lnc), p->core);
		free(bytes);
	}
}

/* The cores of an HBM that have something; their plans one behind the other in @plans. */
static size_t gather(uint32_t hbm, const struct neuron_plan_opts *opts,
		     struct neuron_report_core *cores, struct neuron_report_model *models,
		     struct neuron_plan *plans, bool *used)
{
	struct neuron_plan_opts bare = *opts;
	size_t nr = 0, m = 0;

	/* Nothing runs on a core without a file. */
	bare.profile = 0;
	bare.collectives = 0;
	*used = false;
	for (uint32_t nc = 0; nc < geometry.nr_cores / opts->lnc; nc++) {
		struct neuron_report_core *c = &cores[nr];
		size_t first = m;

		if (geometry.core_hbm[nc * opts->lnc] != hbm)
			continue;
		*c = (struct neuron_report_core){ .nc = nc, .models = models + m };
		for (size_t i = 0; i < nr_placed; i++) {
			if (placed[i].core != nc)
				continue;
			plans[m] = placed[i].plan;
			models[m] = (struct neuron_report_model){
				.id = (uint32_t)(1001 + i),
				.name = placed[i].plan.name,
			};
			for (uint32_t k = 0; k < placed[i].plan.nr_parts; k++) {
				const uint64_t *part = (const uint64_t *)&placed[i].plan.parts[k];
				uint64_t *sum = (uint64_t *)&models[m].usage;

				/* All members behind the size are numbers of the same type. */
				for (size_t n = 1; n < sizeof(models[m].usage) / sizeof(*sum); n++)
					sum[n] += part[n];
			}
			m++;
		}
		c->nr_models = m - first;
		*used |= c->nr_models != 0;
		if (neuron_plan_sum(plans + first, c->nr_models, c->nr_models ? opts : &bare,
				    neuron_placement_microcode(&placement, &geometry), c))
			error(FAILURE, E2BIG, "what core %u has to hold", nc);
		nr++;
	}
	return nr;
}

/* Bytes missing on all memories together; prints a table for each in use if @print. */
static uint64_t examine(const struct neuron_plan_opts *opts, bool print, uint64_t *total)
{
	struct neuron_report_core cores[NEURON_MAX_CORES];
	struct neuron_report_model *models = calloc(nr_placed, sizeof(*models));
	struct neuron_plan *plans = calloc(nr_placed, sizeof(*plans));
	uint64_t missing = 0;

	if (!models || !plans)
		error(FAILURE, ENOMEM, "preflight");
	*total = 0;
	for (uint32_t hbm = 0; hbm < geometry.nr_hbms; hbm++) {
		struct neuron_report r = { .size = sizeof(r), .hbm = hbm, .lnc = (uint32_t)opts->lnc,
					   .cores = cores };
		uint64_t row[NEURON_REPORT_NR_COLUMNS], room = geometry.hbm[hbm].size - reserved;
		char *text;
		bool used;

		r.nr_cores = gather(hbm, opts, cores, models, plans, &used);
		if (!used)
			continue;
		neuron_report_row(&r, NULL, row);
		add_capped(total, row[NEURON_REPORT_TOTAL]);
		if (row[NEURON_REPORT_TOTAL] > room)
			add_capped(&missing, row[NEURON_REPORT_TOTAL] - room);
		if (!print)
			continue;
		if (neuron_report_table(&r, &text))
			error(FAILURE, ENOMEM, "report");
		printf("%s\nHBM %u: ", text, hbm);
		free(text);
		if (row[NEURON_REPORT_TOTAL] > room)
			printf("does not fit, %s too much for %s\n\n",
			       SIZE_TEXT(row[NEURON_REPORT_TOTAL] - room), SIZE_TEXT(room));
		else
			printf("fits, %s of %s stay free\n\n",
			       SIZE_TEXT(room - row[NEURON_REPORT_TOTAL]), SIZE_TEXT(room));
	}
	for (size_t i = 0; i < nr_placed && print; i++)
		for (uint32_t k = 0; k < placed[i].plan.nr_obstacles; k++)
			printf("%s: cannot run here because of %s\n", placed[i].path,
			       placed[i].plan.obstacles[k]);
	free(models);
	free(plans);
	return missing;
}

/* Only what takes less than doing nothing. */
static void advise(const uint64_t *totals, size_t best)
{
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
	uint64_t totals[8];
	size_t best = 1;

	printf("%6s %12s\n", "page", "memory");
	for (size_t i = 0; i < 8; i++) {
		opts->contiguous = !i;
		opts->scratchpad_page = i * 512 * MIB;
		plan_all(opts);
		examine(opts, false, &totals[i]);
		if (i)
			printf("%6zu", i * 512);
		else
			printf("%6s", "none");
		printf(" %12s\n", SIZE_TEXT(totals[i]));
		if (i && totals[i] < totals[best])
			best = i;
	}
	putchar('\n');
	advise(totals, best);
	return 0;
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
		{ "collectives", 'C', "MIB", 0, "Staging of collective operations, on each physical core that has a file (0)", 0 },
		{ "pages", 'P', NULL, 0, "Compare page sizes, and propose one", 0 },
		{ "profile", 'r', NULL, 0, "With the buffers of a profile on each core that has a file", 0 },
		{ "profile-buffer", 'b', "KIND=MIB", 0, "Same, with this size of one kind of buffers", 0 },
		{ 0 }
	};
	static const struct argp argp = {
		opts, option, "FILE[@CORE]...",
		"Say what NEFF files take of device memory, and whether it is enough. Without @CORE a file goes to core 0.",
		NULL, NULL, NULL
	};
	struct neuron_plan_opts plan = { .size = sizeof(plan) };
	uint64_t total;

	argp_err_exit_status = FAILURE;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (neuron_instance_geometry(options.instance, &geometry, &reserved))
		error(FAILURE, 0, "%s: no such instance type", options.instance);
	read_environment(&geometry, FAILURE, &placement, &options.buffers);
	plan.lnc = placement.lnc;
	plan.io_sets = options.io_sets;
	plan.io_single = options.io_single;
	plan.collectives = options.collectives * MIB;
	options.buffers.size = sizeof(options.buffers);
	if (options.profile)
		plan.profile = neuron_profile_memory(&geometry, &options.buffers);
	if (options.pages)
		return propose(&plan);
	plan.contiguous = placement.contiguous;
	plan.scratchpad_page = placement.page;
	plan_all(&plan);
	return examine(&plan, true, &total) ? 1 : 0;
}

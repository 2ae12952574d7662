/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files of neuron-preflight, and the cores that they are for. */
#ifndef NEURON_TOOLS_PLACED_H
#define NEURON_TOOLS_PLACED_H

#include <argp.h>
#include <error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <neuron/neuron.h>

#include "file.h"
#include "options.h"

#define FAILURE 2		/* exit status */

#define MAX_CORE (NEURON_MAX_DEVICES * NEURON_MAX_CORES - 1)

/* A file on a logical core; those of an instance are counted on from device to device. */
struct placed {
	char *path;
	unsigned long core;
	size_t first;		/* rank of the same argument that has the plan */
	struct neuron_plan *plan;	/* of each node; what is of the whole file is in the first */
	size_t nr_plans;
	uint32_t id;		/* of the first node in tables; others follow */
	void *bytes;		/* of reports */
	size_t size;
};

static struct placed *placed;
static size_t nr_placed;

/* FILE, FILE@CORE or FILE@FIRST-LAST; a name may contain an @ itself. */
static void place(char *arg, struct argp_state *state)
{
	char *at = strrchr(arg, '@'), *dash;
	unsigned long core = 0, last = 0;
	size_t first = nr_placed;

	if (at && access(arg, F_OK)) {
		*at = '\0';
		if (!access(arg, F_OK) && !names_cores(at + 1))
			argp_error(state, "%s@%s: \"%s\" is not the number of a core", arg, at + 1, at + 1);
		*at = '@';
	}
	if (at && names_cores(at + 1)) {
		*at = '\0';
		dash = strchr(at + 1, '-');
		if (dash)
			*dash = '\0';
		core = number(at + 1, 0, MAX_CORE, state);
		last = dash ? number(dash + 1, core, MAX_CORE, state) : core;
	}
	placed = reallocarray(placed, nr_placed + last - core + 1, sizeof(*placed));
	if (!placed)
		error(FAILURE, ENOMEM, "%s", arg);
	for (; core <= last; core++)
		placed[nr_placed++] = (struct placed){ .path = arg, .core = core, .first = first };
}

static bool flag_of(const char *name)
{
	const char *text = env_text(name);
	int truth = text ? env_truth(text) : 0;

	if (truth < 0)
		error(FAILURE, 0, "%s=%s is not 1 or 0", name, text);
	return truth;
}

/* What the runtime takes for a file that can be loaded. */
static void read_file_settings(struct neuron_plan_opts *opts)
{
	const char *text = env_text("NEURON_RT_NEFF_MAX_UNPACKED_MB");
	unsigned long n = 0;

	if (text && !env_number(text, 1ul << 30, &n))
		error(FAILURE, 0, "NEURON_RT_NEFF_MAX_UNPACKED_MB=%s is not a number of megabytes", text);
	opts->max_unpacked = (uint64_t)n << 20;
	opts->short_constants = flag_of("NEURON_RT_NEFF_SHORT_CONSTANTS");
	opts->verify_hash = flag_of("NEURON_RT_VALIDATE_HASH");
}

/* Files in an order in which they fit; none: empty. */
static json_t *order_json(const struct neuron_fit *fit)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < fit->nr_order; i++)
		json_array_append_new(list, json_string(placed[fit->order[i]].path));
	return list;
}

static void print_order(const char *what, uint32_t nr, const struct neuron_fit *fit)
{
	if (!fit->nr_order)
		return;
	printf("%s%u: that order:", what, nr);
	for (uint32_t i = 0; i < fit->nr_order; i++)
		printf(" %s@%lu", placed[fit->order[i]].path, placed[fit->order[i]].core);
	putchar('\n');
}

#endif

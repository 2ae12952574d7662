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
	struct neuron_plan plan;
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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What tools take from the command line and the environment. */
#ifndef NEURON_TOOLS_OPTIONS_H
#define NEURON_TOOLS_OPTIONS_H

#include <argp.h>
#include <errno.h>
#include <error.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <neuron/neuron.h>

#include "../common/env.h"
#include "../common/util.h"

/* What argp looks for in the program. */
#define TOOL_VERSION(name) \
	__attribute__((visibility("default"))) const char *argp_program_version = \
		name " " NEURON_VERSION

/* The rest of a parser for options that nothing follows. */
static inline error_t nothing_follows(int key, const char *arg, const struct argp_state *state)
{
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	argp_error(state, "there is nothing to be named: \"%s\"", arg);
	return EINVAL;
}

/* Physical cores of a logical one: asked for, set for programs, or the device's default. */
static inline unsigned int logical_core(const char *instance, unsigned int nr_cores,
					unsigned int n)
{
	struct neuron_placement placement = { .size = sizeof(placement) };
	struct neuron_geometry g;
	bool pairs = !neuron_instance_geometry(instance, &g, NULL) && g.arch >= 3;

	/* What else may be wrong in there does not matter here. */
	neuron_placement_read(pairs, &placement);
	if (!n)
		n = placement.lnc;
	if (!n)
		n = pairs ? 2 : 1;
	return nr_cores % n ? 1 : n;
}

/* KIND=MIB, kinds as in NEURON_RT_PROFILE_BUF_<KIND>_MB; 0 or -EINVAL. */
static inline int profile_buffer(const char *arg, struct neuron_profile_opts *opts)
{
	static const char *const kinds[NEURON_PROFILE_NR_BUFFERS] = {
		[NEURON_PROFILE_EVENT] = "EVENT",
		[NEURON_PROFILE_DMA] = "DMA",
		[NEURON_PROFILE_THROTTLE] = "THROTTLE",
		[NEURON_PROFILE_CC_CORE_INSTRUCTION] = "CC_CORE_INSTRUCTION",
		[NEURON_PROFILE_CC_CORE_EVENT] = "CC_CORE_EVENT",
	};
	size_t len = strcspn(arg, "=");
	unsigned long mib;

	if (arg[len] != '=' || !env_number(arg + len + 1, 1024, &mib) || !mib || mib & (mib - 1))
		return -EINVAL;
	for (int i = 0; i < NEURON_PROFILE_NR_BUFFERS; i++)
		if (strlen(kinds[i]) == len && !strncasecmp(arg, kinds[i], len)) {
			opts->bytes[i] = (uint64_t)mib << 20;
			return 0;
		}
	return -EINVAL;
}

static inline unsigned long number(const char *text, unsigned long min, unsigned long max,
				   struct argp_state *state)
{
	unsigned long n = 0;

	if (!env_number(text, max, &n) || n < min)
		argp_error(state, "%s is not a number from %lu to %lu", text, min, max);
	return n;
}

/* Options stand for variables of the runtime, so that both read the same. */
static inline void set_variable(const char *name, const char *value, int status)
{
	if (setenv(name, value, 1))
		error(status, errno, "%s", name);
}

/* As libnrt does; what makes no sense ends the program with @status. */
static inline void read_environment(const struct neuron_geometry *g, int status,
				    struct neuron_placement *placement,
				    struct neuron_profile_opts *buffers)
{
	struct neuron_profile_opts sizes = { .size = sizeof(sizes) };
	const char *name;
	int ret = neuron_placement_read(g->nr_cores > g->nr_hbms, placement);

	if (placement->variable)
		error(ret ? status : 0, 0, "%s=%s %s", placement->variable,
		      getenv(placement->variable), placement->text);
	if (neuron_profile_read(&sizes, &name))
		error(status, 0, "%s=%s is not a number from 1 to 1024", name, getenv(name));
	for (int i = 0; i < NEURON_PROFILE_NR_BUFFERS; i++)
		if (!buffers->bytes[i])
			buffers->bytes[i] = sizes.bytes[i];
}

#define PROFILE_BUFFER_HELP \
	"is not KIND=MIB, with EVENT, DMA, THROTTLE, CC_CORE_INSTRUCTION or CC_CORE_EVENT and a power of two up to 1024"

/* "12G": bytes, with a binary unit. */
static inline uint64_t size_of(const char *arg, struct argp_state *state)
{
	static const char units[] = "KMGT";
	const char *unit;
	uint64_t size;
	char *end;

	errno = 0;
	size = strtoull(arg, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (errno || end == arg || *arg == '-' || (*end && (!unit || end[1])) || !size ||
	    (unit && size > UINT64_MAX >> (10 * (unit - units + 1))))
		argp_error(state, "%s is not a size, as 12G", arg);
	return unit ? size << (10 * (unit - units + 1)) : size;
}

/* "3", or "0-63" */
static inline bool names_cores(const char *text)
{
	static const char digits[] = "0123456789";
	size_t n = strspn(text, digits), more;

	if (n && text[n] == '-') {
		more = strspn(text + n + 1, digits);
		n = more ? n + 1 + more : 0;
	}
	return n && !text[n];
}

#endif

// SPDX-License-Identifier: LGPL-2.1-or-later
/* What each instance type and its devices are made of, for planning without one. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "device.h"

#define GIB (1ull << 30)

/* uapi/FACTS.md 4, 5 and 10 */
static const struct {
	const char *name;
	uint32_t arch, nr_cores, nr_hbms;
	uint64_t hbm, sbuf;
} types[] = {
	{ "inf2", 2, 2, 2, 16 * GIB, 24 * MIB },
	{ "trn1n", 2, 2, 2, 16 * GIB, 24 * MIB },
	{ "trn1", 2, 2, 2, 16 * GIB, 24 * MIB },
	{ "trn2u", 3, 8, 4, 24 * GIB, 28 * MIB },
	{ "trn2", 3, 8, 4, 24 * GIB, 28 * MIB },
	{ "trn3", 4, 8, 4, 36 * GIB, 32 * MIB },
};

/* The firmware's share of each memory. */
#define RESERVED (16 * MIB)

NEURON_EXPORT int neuron_instance_geometry(const char *instance, struct neuron_geometry *geometry,
					   uint64_t *reserved)
{
	struct neuron_geometry g = { 0 };
	size_t i, n = instance ? strcspn(instance, ".") : 0;

	if (!instance || !geometry)
		return -EINVAL;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strlen(types[i].name) == n && !strncasecmp(types[i].name, instance, n))
			break;
	if (i == sizeof(types) / sizeof(types[0]))
		return -ENOENT;
	g.arch = types[i].arch;
	g.nr_cores = types[i].nr_cores;
	g.nr_hbms = types[i].nr_hbms;
	g.engines_per_core = 16;
	g.nr_dma_engines = g.nr_cores * g.engines_per_core;
	g.nr_queues = 16;
	g.nr_semaphores = 256;
	g.nr_events = 256;
	g.nr_nq_types = g.arch == 2 ? 6 : 5;
	g.nr_nq_engines = 16;
	g.isa_version = 1;
	g.sbuf_size = types[i].sbuf;
	for (uint32_t k = 0; k < g.nr_hbms; k++)
		g.hbm[k].size = types[i].hbm;
	for (uint32_t k = 0; k < g.nr_cores; k++)
		g.core_hbm[k] = (uint8_t)(k * g.nr_hbms / g.nr_cores);
	*geometry = g;
	if (reserved)
		*reserved = RESERVED;
	return 0;
}

/* Sizes with more than one device, of the types that have it. */
static const struct {
	const char *name;
	uint32_t nr;
} sizes[] = {
	{ "inf2.24xlarge", 6 },
	{ "inf2.48xlarge", 12 },
	{ "trn1.32xlarge", 16 },
	{ "trn1n.32xlarge", 16 },
	{ "trn2.48xlarge", 16 },
	{ "trn2u.48xlarge", 16 },
};

NEURON_EXPORT uint32_t neuron_instance_devices(const char *instance)
{
	for (size_t i = 0; instance && i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (!strcasecmp(instance, sizes[i].name))
			return sizes[i].nr;
	return 1;
}

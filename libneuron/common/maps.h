/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is mapped at an address of a process. */
#ifndef NEURON_MAPS_H
#define NEURON_MAPS_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <neuron/neuron.h>

struct mapped {
	uint64_t offset;	/* of the address in the file */
	dev_t dev;		/* of the file, as stat() has it */
	ino_t inode;
	char path[64];		/* as the process that looks sees it; "" anonymous memory */
};

/*
 * The device address of what is mapped with @offset: that is it, but for state buffers, which
 * mappings have in a row, wherever they are in the device.
 */
static inline uint64_t maps_address(const struct neuron_geometry *g, uint64_t offset)
{
	uint64_t in = offset - g->tpb_base[0];

	if (!g->tpb_size || in / g->tpb_size >= g->nr_cores)
		return offset;
	return g->tpb_base[in / g->tpb_size] + in % g->tpb_size;
}

static inline bool maps_line(const char *line, uint64_t address, struct mapped *out)
{
	uint64_t start, end, offset, inode;
	unsigned int major, minor;
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %x:%x %" SCNu64 " %n", &start, &end,
		   &offset, &major, &minor, &inode, &path) < 6 ||
	    address < start || address >= end)
		return false;
	*out = (struct mapped){ .offset = offset + (address - start), .dev = makedev(major, minor),
				.inode = (ino_t)inode };
	snprintf(out->path, sizeof(out->path), "%.*s", (int)strcspn(line + path, "\n"), line + path);
	return true;
}

/* @maps: such as "/proc/self/maps".  1; 0: nothing is mapped there; -errno of the file. */
static inline int maps_find(const char *maps, uint64_t address, struct mapped *out)
{
	FILE *f = fopen(maps, "re");
	int ret = f ? 0 : -errno;
	char line[4400];

	while (f && !ret && fgets(line, sizeof(line), f))
		ret = maps_line(line, address, out);
	if (f)
		fclose(f);
	return ret;
}

#endif

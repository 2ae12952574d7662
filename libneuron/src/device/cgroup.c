// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The device-memory controller of control groups (cgroup.h), which charges memory to the group
 * of the process that allocates it.  In a namespace, what is above its root is not to be seen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup.h"
#include "sys.h"

#define ROOM	(256u << 10)	/* for a file, with a line for each mount, or for each memory */

struct group {
	char *text;		/* of the file that is read */
	char mount[256], path[256];
};

/* Where the hierarchy is mounted, and from which of its groups on: a container may have a part. */
static bool find_mount(struct group *g, char *root, size_t size)
{
	char *next = g->text, *line;

	neuron_sys_read("/proc/self/mountinfo", g->text, ROOM);
	while ((line = strsep(&next, "\n"))) {
		char from[256], at[256];

		if (!strstr(line, " - cgroup2 ") ||
		    sscanf(line, "%*s %*s %*s %255s %255s", from, at) != 2)
			continue;
		snprintf(root, size, "%s", strcmp(from, "/") ? from : "");
		snprintf(g->mount, sizeof(g->mount), "%s", at);
		return true;
	}
	return false;
}

/* Its path below the mount; "" is the group that is mounted. */
static bool find_path(struct group *g, const char *root)
{
	char *next = g->text, *line;
	size_t skip = strlen(root);

	neuron_sys_read("/proc/self/cgroup", g->text, ROOM);
	while ((line = strsep(&next, "\n"))) {
		if (strncmp(line, "0::/", 4))
			continue;
		line += 3;
		/* A process outside of its namespace or mount has a group that is not there. */
		if (!strncmp(line, "/..", 3) || strncmp(line, root, skip) ||
		    (line[skip] && line[skip] != '/'))
			return false;
		line += skip;
		return (size_t)snprintf(g->path, sizeof(g->path), "%s",
					strcmp(line, "/") ? line : "") < sizeof(g->path);
	}
	return false;
}

/* The number of a memory in a file of the group.  False: none, or no limit. */
static bool read_number(struct group *g, const char *file, const char *region, uint64_t *value)
{
	char path[600], *next = g->text, *line, *end;
	size_t length = strlen(region);

	snprintf(path, sizeof(path), "%s%s/%s", g->mount, g->path, file);
	neuron_sys_read(path, g->text, ROOM);
	while ((line = strsep(&next, "\n"))) {
		if (strncmp(line, region, length) || line[length] != ' ')
			continue;
		*value = strtoull(line + length + 1, &end, 10);
		return end > line + length + 1;
	}
	return false;
}

static bool find_limit(struct group *g, const char *region, struct cgroup_limit *limit)
{
	uint64_t bytes, used, least = UINT64_MAX;

	for (char *last;; *last = '\0') {
		if (read_number(g, "dmem.max", region, &bytes)) {
			if (!read_number(g, "dmem.current", region, &used))
				used = 0;
			if (bytes - (used < bytes ? used : bytes) < least) {
				least = bytes - (used < bytes ? used : bytes);
				limit->bytes = bytes;
				limit->used = used;
				snprintf(limit->path, sizeof(limit->path), "%s",
					 g->path[0] ? g->path : "/");
			}
		}
		last = strrchr(g->path, '/');
		if (!last)
			return least != UINT64_MAX;
	}
}

bool cgroup_limit(unsigned int device, uint32_t hbm, struct cgroup_limit *limit)
{
	struct group g = { .text = malloc(ROOM) };
	char root[256], region[64];
	bool found;

	snprintf(region, sizeof(region), "neuron/neuron%u/hbm%u", device, hbm);
	found = g.text && find_mount(&g, root, sizeof(root)) && find_path(&g, root) &&
		find_limit(&g, region, limit);
	free(g.text);
	return found;
}

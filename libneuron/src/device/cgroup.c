// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The controllers of device memory and of host memory of control groups (cgroup.h), which charge
 * memory to the group of the process that allocates it.  In a namespace, what is above its root is
 * not to be seen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/util.h"
#include "cgroup.h"
#include "sys.h"

#define ROOM	(256u << 10)	/* for a file, with a line for each mount, or for each memory */

struct group {
	char *text;		/* of the file that is read */
	char mount[256], path[256];
	bool swap;		/* there is some that is free */
	uint64_t own;		/* bytes of this process that are in no file */
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

static void read_file(struct group *g, const char *file)
{
	char path[600];

	snprintf(path, sizeof(path), "%s%s/%s", g->mount, g->path, file);
	neuron_sys_read(path, g->text, ROOM);
}

/* Of a line that begins with this, in the file that was read.  False: none, or no limit. */
static bool find_number(const struct group *g, const char *name, uint64_t *value)
{
	const char *line = g->text;
	size_t length = strlen(name);
	char *end;

	while (strncmp(line, name, length)) {
		line = strchr(line, '\n');
		if (!line)
			return false;
		line++;
	}
	*value = strtoull(line + length, &end, 10);
	return end > line + length;
}

static uint64_t number_of(const struct group *g, const char *name)
{
	uint64_t value;

	return find_number(g, name, &value) ? value : 0;
}

static bool find_region(const struct group *g, unsigned int device, uint32_t hbm, uint64_t *value)
{
	char region[64];

	snprintf(region, sizeof(region), "neuron/neuron%u/hbm%u ", device, hbm);
	return find_number(g, region, value);
}

static void keep_least(struct cgroup_limit *l, const struct group *g, uint64_t bytes, uint64_t used)
{
	uint64_t left = bytes - MIN(used, bytes);

	if (l->path[0] && l->bytes - MIN(l->used, l->bytes) <= left)
		return;
	l->bytes = bytes;
	l->used = used;
	snprintf(l->path, sizeof(l->path), "%s", g->path[0] ? g->path : "/");
}

/* What one group says of all device memories. */
static void read_hbms(struct group *g, unsigned int device, uint32_t hbms,
		      struct cgroup_limit *limits)
{
	uint64_t bytes[NEURON_MAX_HBMS], used;
	uint32_t limited = 0;

	read_file(g, "dmem.max");
	for (uint32_t i = 0; i < NEURON_MAX_HBMS; i++)
		if (hbms >> i & 1 && find_region(g, device, i, &bytes[i]))
			limited |= 1u << i;
	if (!limited)
		return;
	read_file(g, "dmem.current");
	for (uint32_t i = 0; i < NEURON_MAX_HBMS; i++) {
		if (!(limited >> i & 1))
			continue;
		if (!find_region(g, device, i, &used))
			used = 0;
		keep_least(&limits[i], g, bytes[i], used);
	}
}

/*
 * Of host memory.  What is in use is what the kernel cannot take away: files are read again, and
 * other memory is swapped if there is somewhere to.
 */
static void read_host(struct group *g, struct cgroup_limit *limit)
{
	uint64_t bytes, used, own;

	read_file(g, "memory.max");
	if (!find_number(g, "", &bytes))
		return;
	read_file(g, "memory.stat");
	used = number_of(g, "kernel ");
	used -= MIN(used, number_of(g, "slab_reclaimable "));
	if (!g->swap) {
		own = number_of(g, "anon ");
		used += own - MIN(own, g->own) + number_of(g, "shmem ");
	}
	keep_least(limit, g, bytes, used);
}

static void read_own(struct group *g)
{
	neuron_sys_read("/proc/meminfo", g->text, ROOM);
	g->swap = number_of(g, "SwapFree:");
	neuron_sys_read("/proc/self/status", g->text, ROOM);
	g->own = number_of(g, "RssAnon:") << 10;
}

void cgroup_limits(unsigned int device, uint32_t hbms, struct cgroup_limits *limits)
{
	struct group g = { .text = malloc(ROOM) };
	char root[256], *last = g.path;
	bool found = g.text && find_mount(&g, root, sizeof(root)) && find_path(&g, root);

	memset(limits, 0, sizeof(*limits));
	if (found)
		read_own(&g);
	limits->swap = g.swap;
	/* Its own, then those above. */
	while (found && last) {
		read_hbms(&g, device, hbms, limits->hbm);
		read_host(&g, &limits->host);
		last = strrchr(g.path, '/');
		if (last)
			*last = '\0';
	}
	free(g.text);
}

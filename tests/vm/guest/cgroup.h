/* SPDX-License-Identifier: GPL-2.0-only */
/* Control groups and the device-memory controller. */
#ifndef CGROUP_TEST_H
#define CGROUP_TEST_H

#include "emu.h"

#define ROOT	"/sys/fs/cgroup/"

/* A file of a group; the root of all is "". */
static inline const char *cg(const char *group, const char *file)
{
	static char path[4][128];
	static unsigned int next;
	char *buf = path[next++ % 4];

	snprintf(buf, sizeof(path[0]), ROOT "%s%s%s", group, *group ? "/" : "", file);
	return buf;
}

/* If not, it says so. */
static inline int has_controller(const char *name)
{
	char list[256], word[32];

	mkdir(ROOT, 0755);
	mount("cgroup2", ROOT, "cgroup2", 0, NULL);
	snprintf(list, sizeof(list), " %s ", text_read(ROOT "cgroup.controllers"));
	snprintf(word, sizeof(word), " %s ", name);
	if (strstr(list, word))
		return 1;
	printf("ok - this kernel has no controller %s # SKIP\n", name);
	return 0;
}

static inline int set_max(const char *group, unsigned int hbm, const char *max)
{
	char line[64];

	snprintf(line, sizeof(line), "neuron/neuron0/hbm%u %s", hbm, max);
	return text_write(cg(group, "dmem.max"), line);
}

static inline int join(const char *group)
{
	return text_write(cg(group, "cgroup.procs"), "0");
}

static inline int make(const char *group)
{
	return mkdir(cg(group, ""), 0755) ? errno : 0;
}

/* Bytes of kernel memory charged to a group. */
static inline uint64_t charged(const char *group)
{
	char line[128];
	unsigned long long bytes = 0;
	FILE *f = fopen(cg(group, "memory.stat"), "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "kernel %llu", &bytes) == 1)
			break;
	if (f)
		fclose(f);
	return bytes;
}

/* The last process in it may not be gone altogether. */
static inline int drop(const char *group)
{
	int i;

	for (i = 0; i < 1000 && rmdir(cg(group, "")) && errno == EBUSY; i++)
		usleep(10000);
	return access(cg(group, ""), F_OK) ? 0 : EBUSY;
}

#endif

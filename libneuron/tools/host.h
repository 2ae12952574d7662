/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the host does: processors, memory, and what a process takes of both. */
#ifndef TOOLS_HOST_H
#define TOOLS_HOST_H

#include <ctype.h>
#include <error.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/util.h"

/* As in /proc/stat, in ticks. */
#define NR_CPU_TIMES 8
static const char *const cpu_times[NR_CPU_TIMES - 1] = {
	"user", "nice", "system", "idle", "io_wait", "irq", "soft_irq",
};

struct cpu {
	bool seen;
	uint64_t time[NR_CPU_TIMES];	/* the last is stolen by others */
};

struct cpus {
	struct cpu *list;	/* 0: all of them; 1 is number 0 */
	size_t max;
	uint64_t switches;
};

struct process_use {
	int pid;
	uint64_t user, system;		/* ticks */
	uint64_t started;		/* ticks; another one has the number of one that ended */
	uint64_t memory;		/* bytes that are in memory */
};

/* The line "cpu ..." or "cpu0 ..."; others are not for this. */
static inline void cpus_line(struct cpus *c, const char *line)
{
	struct cpu cpu = { .seen = true };
	unsigned int number;
	size_t at = 0;
	int used;

	if (isdigit((unsigned char)line[3]))
		at = strtoul(line + 3, NULL, 10) + 1;
	for (line += strcspn(line, " "), number = 0; number < NR_CPU_TIMES; number++) {
		if (sscanf(line, "%" SCNu64 "%n", &cpu.time[number], &used) != 1)
			return;
		line += used;
	}
	if (at >= c->max) {
		c->list = reallocarray(c->list, at + 1, sizeof(*c->list));
		if (!c->list)
			error(1, ENOMEM, "processors");
		memset(c->list + c->max, 0, (at + 1 - c->max) * sizeof(*c->list));
		c->max = at + 1;
	}
	c->list[at] = cpu;
}

static inline void cpus_read(struct cpus *c)
{
	FILE *f = fopen("proc/stat", "re");
	char *line = NULL;
	size_t room = 0;

	for (size_t i = 0; i < c->max; i++)
		c->list[i].seen = false;
	while (f && getline(&line, &room, f) > 0)
		if (!strncmp(line, "cpu", 3))
			cpus_line(c, line);
		else
			sscanf(line, "ctxt %" SCNu64, &c->switches);
	free(line);
	if (f)
		fclose(f);
}

/* Takes the place of @to. */
static inline void cpus_copy(struct cpus *to, const struct cpus *from)
{
	to->list = reallocarray(to->list, from->max + 1, sizeof(*to->list));
	if (!to->list)
		error(1, ENOMEM, "processors");
	if (from->max)
		memcpy(to->list, from->list, from->max * sizeof(*to->list));
	to->max = from->max;
	to->switches = from->switches;
}

/* Bytes behind a key of /proc/meminfo, 0 if it is not there. */
static inline uint64_t meminfo(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	uint64_t kib = 0;

	if (at)
		sscanf(at + strlen(key), ": %" SCNu64, &kib);
	return kib << 10;
}

/* Returns whether the process is there. */
static inline bool process_use(int pid, struct process_use *use)
{
	char path[32], text[1024];
	const char *at;

	*use = (struct process_use){ .pid = pid };
	snprintf(path, sizeof(path), "proc/%d/stat", pid);
	read_short(path, text, sizeof(text));
	/* A name may have spaces and parentheses. */
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			  " %*d %*d %*d %*d %*d %*d %" SCNu64 " %*u %" SCNu64,
			  &use->user, &use->system, &use->started, &use->memory) != 4)
		return false;
	use->memory *= (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

#endif

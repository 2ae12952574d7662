/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a profile has recorded, of each physical core. */
#ifndef NEURON_LIB_PART_H
#define NEURON_LIB_PART_H

#include "../load/profile.h"
#include "../run/core.h"

#define PROFILE_NO_RUN UINT32_MAX
#define PROFILE_NO_ITEM SIZE_MAX

/*
 * Of each physical core: 3 GiB of items, more than full buffers of the default sizes hold,
 * and 56 MiB of runs.  A process that leaves a profile on must not grow for ever.
 */
#ifndef PROFILE_MAX_ITEMS
#define PROFILE_MAX_ITEMS (1u << 26)
#define PROFILE_MAX_RUNS (1u << 20)
#endif

/* One execution of a model on the core. */
struct profile_run {
	uint64_t begin, end;		/* ns of CLOCK_MONOTONIC; @end 0: not over */
	struct labels *labels;		/* NULL: of a model that is not wanted */
	uint32_t number;		/* of the runs on this core, from 0 */
	uint32_t first[NR_ENGINES];	/* instruction of each engine, since its reset */
	int ret;
};

enum profile_type {
	PROFILE_INSTRUCTION,
	PROFILE_PACKET,
	PROFILE_SEMAPHORE,
};

struct profile_item {
	uint64_t begin, end;		/* ns */
	uint32_t run;			/* index of one that is wanted */
	uint32_t where;			/* engine; slot of the queue; semaphore */
	uint32_t id;			/* instruction of the program; descriptor; new value */
	uint32_t bytes;
	uint8_t type;			/* enum profile_type */
	uint8_t code;			/* opcode */
	bool unfinished;
};

/* A physical core; all of it in a turn of the core. */
struct profile_part {
	struct neuron_profile *profile;
	struct neuron_core *core;
	struct profile_buffer buffers[PROFILE_MAX_BUFFERS];
	size_t nr_buffers;
	struct profile_run *runs;
	size_t nr_runs;
	size_t max_runs;
	size_t epoch;			/* first run since the last reset */
	uint32_t number;		/* of the next run */
	uint32_t next[NR_ENGINES];	/* instruction of each engine that it begins with */
	struct profile_item *items;
	size_t nr_items;
	size_t max_items;
	uint64_t lost;
	int error;			/* first thing that went wrong meanwhile */
	int missing;			/* first thing for which there is less than was run */
	bool complete;			/* all buffers are there */
	struct neuron_mem_failure *failure;	/* of who starts the profile, until it is on */
	bool running;			/* the last run is not over */
	bool stopping;
	bool discard;			/* forget what there is at the next reset */
};

struct neuron_profile {
	struct neuron_profile_opts opts;
	struct labels *wanted[2];	/* of the only model that is of interest, or NULL */
	struct profile_part parts[2];
	size_t nr_parts;
};

/* The ring of a model that a queue has; -1: none. */
int find_ring(const struct labels *l, uint32_t slot);
/* One file of all parts, which nobody changes meanwhile. */
int profile_write(const struct neuron_profile *profile, int fd);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is to be loaded on paper: files, the processes that they are of, and their cores. */
#ifndef NEURON_LIB_CARGO_H
#define NEURON_LIB_CARGO_H

#include "arrange.h"
#include "profile.h"

/* A program on its cores. */
struct cargo_node {
	uint32_t nc;
	struct neuron_plan plan;
	struct neuron_neff *neff;	/* that of the file, or one of its nodes */
	struct attempt attempt;
};

/* A model, or a network of several nodes. */
struct cargo_file {
	uint32_t nc;
	uint64_t process;
	struct neuron_plan plan;	/* the first one */
	struct neuron_neff *neff;
	struct cargo_node *node;
	size_t nr_nodes;
	bool network;			/* edges are its tensors */
	uint64_t *tensor;		/* bytes of each input and output */
	size_t nr_tensors, max_tensors;
	uint64_t *edge;			/* bytes of each edge between nodes, in device memory */
	size_t nr_edges, max_edges;
};

/* All that is to be loaded. */
struct cargo {
	struct neuron_device *device;		/* NULL: there is none */
	const struct neuron_geometry *g;
	struct neuron_plan_opts o;
	uint64_t microcode;
	struct profile_buffer buffer[PROFILE_MAX_BUFFERS];	/* of each core with a file */
	size_t nr_buffers;
	struct cargo_file *file;
	uint32_t *order;			/* in which the files are loaded */
	size_t nr;
	size_t nr_nodes;			/* of all files */
	bool processes;				/* more than one */
	uint32_t hbms;				/* that are used, a bit each */
	struct {
		bool opened;
		bool used;			/* has a file */
		uint64_t process;		/* that opens it */
		int32_t owner;			/* another process, 0, or NEURON_OWNER_OUTSIDE */
		bool claimed;			/* by another one, which is not told */
		uint64_t need;			/* bytes charged to it */
		struct scratchpad pad;		/* as the process makes it, with nothing in it */
	} core[NEURON_MAX_CORES];
	enum room_fit own;			/* where the driver puts all but scratchpads */
	uint64_t moved;				/* bytes that moved for it at last */
	uint32_t stuck;				/* memory in which there was no place at last */
	int error;				/* why there was none, or 0: because of what is there */
};

/* From what the caller has; @c->g, @c->o and what is above them are there. */
int cargo_open(struct cargo *c, const struct neuron_fit_file *files, size_t nr,
	       struct neuron_error *error);
void cargo_close(struct cargo *c);
/* Bytes that the programs of a file take at least, and in how many pieces. */
uint64_t cargo_least(struct cargo_file *f, uint64_t *pieces);

#endif

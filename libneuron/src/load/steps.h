/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way of a NEFF onto the cores that it is for, step by step: to the end for loading,
 * without the steps that need a device for a preflight, so that it cannot say anything
 * else than what loading does.  The first part has the error, which is of both.
 */
#ifndef NEURON_LIB_STEPS_H
#define NEURON_LIB_STEPS_H

#include "loader.h"

/* Cores of a logical one, each with a subgraph of the file. */
#define MAX_PARTS 2u

/* @keep: for load_open_node() */
int load_open_neff(struct loader *l, const void *bytes, size_t size,
		   const struct neuron_model_opts *o, bool keep, struct neuron_neff **neff,
		   uint64_t *unpacked);
/* The program of another node, or @file itself: to be closed if it is not that. */
int load_open_node(struct loader *l, struct neuron_neff *file,
		   const struct neuron_model_opts *o, struct neuron_neff **neff);
/* Entry @i of the caller's, which may be shorter. */
struct neuron_plan load_plan_at(const struct neuron_plan *plans, size_t i);
/* Is @node, on a core, all of a file?  The others would not be run. */
int load_check_whole(struct loader *l, const struct neuron_neff *neff, uint32_t node);
/* @lnc: physical cores of the logical one; @cores: that the caller has for it. */
int load_check_cores(struct loader *l, const struct neuron_neff *neff, uint32_t node,
		     uint32_t lnc, uint32_t cores);
/* What both parts need to know of the file: programs, and semaphores of each other. */
int load_plan_parts(struct loader *l, const struct neuron_neff *neff,
		    const struct neuron_geometry *g, struct neuron_error *error);
/* The rest of a part, when it is known which parts of the scratchpad there are in one piece. */
int load_plan_memory(struct loader *l);
/* What is in the memory, when all parts have theirs. */
int load_apply(struct loader *l);
/*
 * A load onto the cores of @pad was refused: is there room for it all the same, if it is
 * placed otherwise?  What it has, which is the memory of @owner, counts as free.
 * 0, and @spots, to be freed by the caller; -ENOSPC, -ENOMEM
 */
int load_arrange(struct neuron_device *device, const struct neuron_neff *neff,
		 const struct scratchpad *const pad[MAX_PARTS], uint32_t owner,
		 struct spots *spots);
/*
 * After a load onto the cores of @pad was refused and rolled back: without whom it would fit.
 * 0, -ENOENT nobody is to blame, -ENOMEM
 */
int load_release(struct neuron_device *device, const struct neuron_neff *neff,
		 const struct scratchpad *const pad[MAX_PARTS], struct neuron_release *release);
/* Whether it would be refused beside @microcode of its cores on a device with nothing else. */
bool load_too_large(struct neuron_device *device, const struct neuron_neff *neff,
		    const struct scratchpad *const pad[MAX_PARTS],
		    const uint64_t microcode[MAX_PARTS]);
/* Inputs and outputs by name; both parts may have the same one. */
int load_join_tensors(struct loader *l, struct neuron_model *m);
/* Of all parts, but for their models. */
void load_free(struct loader *l);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Core groups, and networks of several nodes with a queue of requests.
 *
 * Each node is a stage with a thread; in shared mode one thread does all of them for a
 * request before it takes the next.  Requests go through the stages in order, so a
 * stage needs to know only how many it has done.
 *
 * A tensor is in one place.  A stage on another device works on a copy in memory of that
 * device, which is made before it runs, or after it for an output.
 */
#ifndef NEURON_LIB_NET_H
#define NEURON_LIB_NET_H

#include "core.h"

struct neuron_pool {
	atomic_uint refs;
	pthread_mutex_t lock;		/* everything below, and networks of its groups */
	size_t nr;
	struct neuron_core **cores;
	struct neuron_group **owner;	/* by core, NULL free */
	bool isolated;			/* a group finds nothing of the one before */
};

/* In a child the lock may be a thread's that is not there; it is alone, and only frees. */
static inline void pool_lock(struct neuron_pool *pool)
{
	if (!device_inherited(pool->cores[0]->device))
		pthread_mutex_lock(&pool->lock);
}

static inline void pool_unlock(struct neuron_pool *pool)
{
	if (!device_inherited(pool->cores[0]->device))
		pthread_mutex_unlock(&pool->lock);
}

struct neuron_group {
	struct neuron_pool *pool;
	size_t nr_nets;			/* pool->lock */
	struct neuron_net *running;	/* pool->lock */
	size_t nr;
	struct neuron_core *cores[];	/* the pool's */
};

struct stage {
	struct neuron_net *net;
	const struct neuron_neff_node *node;
	struct neuron_model *model;	/* NULL: on the host */
	struct neuron_host_op op;
	void *object;			/* dlopen() */
	int object_fd;			/* its name while it is loaded, or -1 */
	void **params;			/* copies of the operation's, by number */
	uint32_t cores;			/* physical ones that it is made for */
	uint32_t *inputs, *outputs;	/* edges */
	size_t copies;			/* where slot.copies of its tensors start */
	void *bounce;			/* if the group has several devices */
	uint64_t done;			/* net->lock: requests */
	uint64_t runs, failed;		/* same, like the times in ns */
	uint64_t busy, longest;
	pthread_t thread;
};

/* A tensor of one request. */
struct slot_edge {
	struct neuron_mem *mem;		/* our own, or the caller's */
	uint64_t offset;
	void *va;			/* where the host needs it */
};

enum slot_state { SLOT_FREE, SLOT_QUEUED, SLOT_DONE };

struct slot {
	enum slot_state state;		/* net->lock */
	struct slot_edge *edges;
	struct neuron_mem **copies;	/* by stage and tensor, NULL not needed so far */
	struct neuron_io *io;		/* for one stage */
	struct neuron_host_tensor *host;
	struct neuron_net_result result;
};

struct neuron_net {
	struct neuron_group *group;
	bool implicit;
	enum neuron_net_mode mode;
	int timeout_ms;
	struct neuron_neff *neff;
	struct neuron_neff_node single;	/* of a NEFF that is no network */
	struct neuron_neff_edge *edges;
	size_t nr_edges;
	bool own_edges;
	size_t nr_io;
	uint32_t *io_edges;
	struct neuron_tensor_info *info;
	struct stage *stages;
	size_t nr_stages;
	size_t nr_copies;		/* tensors of all stages */
	size_t nr_threads;

	pthread_mutex_t lock;
	pthread_cond_t progress;
	uint32_t depth;
	struct slot *slots;		/* by request modulo depth */
	uint64_t submitted;		/* requests */
	uint64_t started;		/* same, by the first stage */
	bool running;
	bool quit;
	int eventfd;
};

static inline size_t stage_tensors(const struct stage *stage)
{
	return stage->node->nr_inputs + stage->node->nr_outputs;
}

static inline uint32_t stage_edge(const struct stage *stage, size_t i)
{
	return i < stage->node->nr_inputs ? stage->inputs[i] :
					    stage->outputs[i - stage->node->nr_inputs];
}

/* The first core of the group on a device. */
const struct neuron_core *core_on(const struct neuron_group *group,
				  const struct neuron_device *device);

/* Where a stage finds a tensor that is not the edge itself: the copy on its device, or NULL. */
struct neuron_mem **find_copy(const struct stage *stage, struct slot *slot, size_t i);
bool used_on_host(const struct neuron_net *net, uint32_t edge);
/* Memory for the copies of all edges that have a place, which is where they are now. */
int make_copies(struct neuron_net *net, struct slot *slot, struct neuron_error *error);
int make_slots(struct neuron_net *net, struct neuron_error *error);
void free_slots(struct neuron_net *net);

int make_bounce(struct neuron_net *net);
int start_threads(struct neuron_net *net);

/* Cores of the group for a node; each of them can be a pair. */
size_t group_cores(const struct stage *s, const struct neuron_core *core);
int load_stages(struct neuron_net *net, const struct neuron_net_opts *o,
		struct neuron_error *error);
void free_stages(struct neuron_net *net);

#endif

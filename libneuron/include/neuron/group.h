/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** @file group.h
 * @brief Core groups, and networks of several nodes with a queue of requests.
 */
#ifndef NEURON_GROUP_H
#define NEURON_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <neuron/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup group Core groups and networks
 *
 * A pool has the cores that a program uses. Groups take cores from it; a core is in one
 * group of its pool at most, but two pools may have it. Networks are loaded on a group. One network of a group runs at a time;
 * networks of different groups run in parallel. A network has one or more nodes, on cores
 * or on the host (docs/loading.md), in a file that has a program for a core, and a queue of requests. @{ */

struct neuron_pool;
struct neuron_group;
struct neuron_net;

/** @brief Make a pool; it holds the cores until neuron_pool_close(). @return 0, -EINVAL
 * none or one twice, -ENOMEM */
int neuron_pool_open(struct neuron_core *const *cores, size_t nr, struct neuron_pool **pool);
/** @brief Drop the handle; the pool is freed with its last group. */
void neuron_pool_close(struct neuron_pool *pool);
/** @brief Cores that are in no group. */
size_t neuron_pool_free(struct neuron_pool *pool);
/**
 * @brief Groups that are destroyed from now on leave no data to the next ones: the first run on a
 * core that was in one starts with a reset, and clears its state buffer. For programs whose groups
 * are of different users.
 */
void neuron_pool_isolate(struct neuron_pool *pool);

/**
 * @brief Take cores from a pool. @return 0, -EINVAL none, or more than the pool has, -EBUSY too
 * few are free, -ENOMEM
 */
int neuron_group_create(struct neuron_pool *pool, size_t nr, struct neuron_group **group);
/** @brief Give the cores back. @return 0, -EBUSY networks are loaded */
int neuron_group_destroy(struct neuron_group *group);

/** @brief A tensor of an operation on the host. */
struct neuron_host_tensor {
	const char *name;
	void *data;
	uint64_t bytes;
};

/**
 * @brief An operation on the host; called from threads of the library, for different
 * requests at the same time if it occurs in several networks. Behind its inputs, @c in has
 * the parameters that the file has for the node; all requests share them, and the operation
 * must not write to them.
 * @return 0, or a negative errno value with which the request fails
 */
typedef int (*neuron_host_fn)(void *context, const struct neuron_host_tensor *in, size_t nr_in,
			      const struct neuron_host_tensor *out, size_t nr_out);

struct neuron_host_op {
	const char *name;
	neuron_host_fn fn;
	void *context;		/**< may be NULL, unlike the others */
};

struct neuron_net_opts {
	size_t size;
	struct neuron_group *group;	/**< NULL: a group of its own, and start it */
	uint32_t depth;			/**< requests in flight, up to 1024; 0: nodes + 1 */
	const struct neuron_host_op *ops;	/**< copied */
	size_t nr_ops;
	/** Run shared objects of the NEFF in this process: only for trusted files. */
	bool load_objects;
	bool verify_hash;
	struct neuron_error *error;	/**< filled in on error, may be NULL */
	int timeout_ms;			/**< of one execution; 0: 30 s, negative: none */
	uint64_t max_unpacked;		/**< as in neuron_model_opts */
	bool short_constants;		/**< same */
	uint64_t max_descriptors;	/**< same, and of all nodes together */
};

/** @brief How a network uses its cores. */
enum neuron_net_mode {
	NEURON_NET_NORMAL = 0,	/**< a core for each node: requests are pipelined */
	NEURON_NET_SHARED = 1,	/**< nodes share a core: one request at a time */
};

#define NEURON_NET_MAX_ERRORS 8u

/** @brief Result of a request. */
struct neuron_net_result {
	size_t size;
	int status;		/**< 0 or the negative errno value of the first error */
	uint32_t nr_errors;
	char errors[NEURON_NET_MAX_ERRORS][256];	/**< its errors, the cause first */
};

/**
 * @brief Load a network on a group: in normal mode if it has a core for each node, else in
 * shared mode.
 *
 * Without a group it takes as many free cores as it has nodes, and the network is running
 * when this returns. @return as neuron_model_load(); -EBUSY not enough free cores; -ERANGE
 * more than the pool has, or the group; -ENOENT
 * an operation of the host is not among @c ops; -EPERM it is in a shared object and @c
 * load_objects is not set
 */
int neuron_net_load(struct neuron_pool *pool, const void *bytes, size_t size,
		    const struct neuron_net_opts *opts, struct neuron_net **net);
/** @brief Finish queued requests and free everything, also their results; NULL is allowed. */
void neuron_net_unload(struct neuron_net *net);
enum neuron_net_mode neuron_net_mode(const struct neuron_net *net);
/** @brief First core of its group: inputs and outputs are best next to it. */
struct neuron_core *neuron_net_core(const struct neuron_net *net);
/** @brief Accept requests. @return 0, -EALREADY, -EBUSY another network of the group runs */
int neuron_net_start(struct neuron_net *net);
/** @brief Finish queued requests, accept no more. @return 0, -EALREADY */
int neuron_net_stop(struct neuron_net *net);

size_t neuron_net_tensor_count(const struct neuron_net *net);
/** @brief Input or output @p index; the strings belong to the network. @return 0, -EINVAL */
int neuron_net_tensor_info(const struct neuron_net *net, size_t index,
			   struct neuron_tensor_info *info);

/**
 * @brief Queue a request.
 *
 * Inputs and outputs are used where they are, without copies; they must stay until
 * neuron_net_wait() has returned. Those of host nodes must be memory that can be mapped.
 * They may be on any device of the group; a node on another device works on a copy. @param
 * cookie names the request @return 0, -EINVAL a tensor is missing, too small or elsewhere,
 * -EAGAIN the queue is full: as many requests as its depth are under way or were not waited
 * for, -ESHUTDOWN not running, -EACCES, -ENOMEM
 */
int neuron_net_submit(struct neuron_net *net, const struct neuron_io *io, size_t nr_io,
		      uint64_t *cookie);
/**
 * @brief Wait for a request, and take its result.
 * @return 0 it is done, see @p result; -ETIMEDOUT it is not done yet; -ENOENT no such
 * request
 */
int neuron_net_wait(struct neuron_net *net, uint64_t cookie, int timeout_ms,
		    struct neuron_net_result *result);
/**
 * @brief End a request that has not begun: it is done with -ECANCELED when it is its turn, and
 * neuron_net_wait() takes that result. @return 0, also if it was cancelled before; -EBUSY it has
 * begun, or is done; -ENOENT no such request; -EACCES
 */
int neuron_net_cancel(struct neuron_net *net, uint64_t cookie);
/** @brief What a node of a network has done. */
struct neuron_node_stats {
	size_t size;
	const char *name;	/**< belongs to the network */
	const struct neuron_core *core;	/**< its first one; NULL: it runs on the host */
	uint64_t runs;		/**< that are over, with those that failed */
	uint64_t failed;
	uint64_t busy_ns;	/**< of all runs, with the copies between devices */
	uint64_t longest_ns;	/**< of one run */
	struct neuron_model_usage usage;	/**< device memory of its program */
};

/** @brief Nodes of a network; 1 for a NEFF that is none. */
size_t neuron_net_node_count(const struct neuron_net *net);
/** @brief What node @p index has done since the network was loaded. @return 0, -EINVAL */
int neuron_net_node_stats(struct neuron_net *net, size_t index, struct neuron_node_stats *stats);
/** @brief Queue a request and wait for it. @return the status of the request, see @p result */
int neuron_net_infer(struct neuron_net *net, const struct neuron_io *io, size_t nr_io,
		     struct neuron_net_result *result);
/** @brief Add 1 to an eventfd at the end of each request; -1: none. A duplicate is kept. */
int neuron_net_set_eventfd(struct neuron_net *net, int fd);

/** @} */

#ifdef __cplusplus
}
#endif

#endif

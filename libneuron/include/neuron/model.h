/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** @file model.h
 * @brief Cores, the models that run on them, and computing with device memory.
 */
#ifndef NEURON_MODEL_H
#define NEURON_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <neuron/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup model Cores and models
 * @{ */

struct neuron_core;
struct neuron_model;
struct neuron_report_model;

/** @brief Memory of a model by use, in bytes as the driver accounts them. */
struct neuron_model_usage {
	size_t size;
	uint64_t code;
	uint64_t constants;
	uint64_t scratchpad;		/**< private to the model */
	uint64_t runtime;
	uint64_t rings_io;		/**< descriptors from or to inputs or outputs */
	uint64_t rings_spill;		/**< descriptors between other variables */
	uint64_t rings_runtime;		/**< instruction fetch */
	uint64_t shared_scratchpad;	/**< its share of the scratchpad of its core */
	uint64_t descriptors;		/**< in all rings */
	uint64_t rings_collectives;
	uint64_t collectives;
};

/** @brief Coarse reason why loading failed. */
enum neuron_error_kind {
	NEURON_ERROR_NONE = 0,
	NEURON_ERROR_NEFF_INVALID,	/**< the file is broken */
	NEURON_ERROR_NEFF_UNSUPPORTED,	/**< unknown version or feature */
	NEURON_ERROR_MEMORY,		/**< it does not fit now, in device or host memory; see @c memory */
	NEURON_ERROR_LIMIT,		/**< too many queues, semaphores or descriptors */
	NEURON_ERROR_DEVICE,		/**< the driver refused something */
	NEURON_ERROR_CORES,		/**< it is made for more cores */
	NEURON_ERROR_TOO_LARGE,		/**< it does not fit the device, even if that were empty */
};

/** @brief An error and its place, in one line without a newline. */
struct neuron_error {
	size_t size;
	enum neuron_error_kind kind;
	char text[512];
	struct neuron_mem_failure memory;
	char name[257];			/**< name in the header of the NEFF, or "" */
	/** With NEURON_ERROR_MEMORY: the smallest set without which it would fit; count 0: none. */
	struct neuron_release release;
};

/**
 * @brief Called when device memory ran out, before the memory taken so far is freed.
 * @param failure the reason @param model name and memory so far of the model that was
 * being loaded, or NULL
 */
typedef void (*neuron_refused_fn)(void *data, const struct neuron_mem_failure *failure,
				  const struct neuron_report_model *model);

struct neuron_core_opts {
	size_t size;
	uint64_t scratchpad_page;	/**< bytes, multiple of 512 MiB below 4 GiB; 0 = 512 MiB */
	bool no_reset;			/**< the core was reset just before */
	uint64_t microcode;		/**< bytes to set aside on the core's memory, as code */
	uint64_t contiguous;		/**< 1: scratchpad in one piece as long as that can grow */
	struct neuron_mem_failure *failure;	/**< filled in with -ENOMEM, may be NULL */
	uint64_t lnc;			/**< physical cores of the core, 1 or 2; 0 = 1 */
	neuron_refused_fn refused;	/**< may be NULL; needs @c failure */
	void *refused_data;
};

/**
 * @brief What the outputs of a pretended run are. A pretended run takes as long as it
 * takes the memory of such a device to be read once by the model.
 */
enum neuron_pretend {
	NEURON_PRETEND_NONE = 0,	/**< there is none: the run is refused */
	NEURON_PRETEND_ZERO = 1,	/**< zero */
	/** The input of the same number, from the first one on again; zero behind its end. */
	NEURON_PRETEND_COPY = 2,
	NEURON_PRETEND_HASH = 3,	/**< the same for the same inputs, finite numbers */
};

struct neuron_model_opts {
	size_t size;
	bool verify_hash;		/**< compare the archive with the hash of the header */
	struct neuron_error *error;	/**< filled in on error, may be NULL */
	/** Number of the node to load, for a network of several; neuron_net_load() loads all. */
	uint32_t node;
	struct neuron_load_stats *stats;	/**< filled in on success, may be NULL */
	neuron_refused_fn refused;	/**< may be NULL */
	void *refused_data;
	uint64_t max_unpacked;		/**< bytes that the archive may unpack to; 0: 16 GiB */
	/** Zero the bytes that a constant's file does not cover; else such a file is refused. */
	bool short_constants;
	uint32_t cores;			/**< physical cores set aside for it; 0: those of the core */
	/** Runs of a model that cannot be run pretend to; software devices only. */
	enum neuron_pretend pretend;
	/** Descriptors that its part on a core may have: what it takes of the host; 0: 2^26. */
	uint64_t max_descriptors;
	/** 1: refuse a network that is not just this node on a core: nobody would run the others. */
	uint64_t whole;
};

/** @brief Time of the steps of a load, in nanoseconds; only measured if the caller passes this. */
struct neuron_load_stats {
	size_t size;
	uint64_t total_ns;
	uint64_t archive_ns;		/**< header, hash, unpacking */
	uint64_t json_ns;		/**< descriptions parsed and checked */
	uint64_t plan_ns;		/**< programs scanned, memory planned */
	uint64_t memory_ns;		/**< device memory allocated, including the scratchpad */
	uint64_t copy_ns;		/**< constants, programs and tables to the device */
	uint64_t rings_ns;		/**< descriptors made, checked and written */
	uint64_t copy_bytes;		/**< constants, programs and tables */
	uint64_t descriptors;		/**< made, on both sides of rings */
};

enum neuron_tensor_usage {
	NEURON_TENSOR_INPUT = 0,
	NEURON_TENSOR_OUTPUT = 1,
};

/** @brief An input or output; the strings belong to the model. */
struct neuron_tensor_info {
	size_t size;
	const char *name;
	enum neuron_tensor_usage usage;
	uint64_t bytes;
	uint32_t dtype;		/**< nrt_dtype_t */
	uint32_t ndim;		/**< 0: a dimension does not fit 32 bits, see @c bytes */
	uint32_t shape[8];
};

/** @brief Binds memory to an input or output for one run. */
struct neuron_io {
	const char *name;
	struct neuron_mem *mem;		/**< on the same device, or a device of the network */
	uint64_t offset;
	uint64_t bytes;			/**< at least the size of the tensor */
};

enum neuron_run_status {
	NEURON_RUN_DONE = 0,
	NEURON_RUN_TIMEOUT,		/**< no notification in time */
	NEURON_RUN_ENGINE_ERROR,	/**< an engine stopped, see @c notice */
	NEURON_RUN_DMA_ERROR,		/**< a DMA queue stopped, see @c notice */
};

/** @brief What kind of error stopped an engine or a DMA queue. */
enum neuron_run_fault {
	NEURON_FAULT_PROGRAM = 0,	/**< of the program, or none */
	NEURON_FAULT_BOUNDS,		/**< access outside of a memory */
	NEURON_FAULT_SEMAPHORE,
	NEURON_FAULT_DMA,		/**< a DMA queue or its descriptors */
	NEURON_FAULT_MEMORY,		/**< uncorrectable error of device memory */
	NEURON_FAULT_MEMORY_REPAIRABLE,
	NEURON_FAULT_SRAM,		/**< uncorrectable error of the state buffer */
};

struct neuron_run_result {
	size_t size;
	enum neuron_run_status status;
	struct neuron_notice notice;	/**< of the error */
	char text[256];			/**< the error in one line */
	enum neuron_run_fault fault;
};

/**
 * @brief Take a core for loading and running models: reset it, make its notification queues.
 *
 * A logical core of two (opts.lnc) is core @p nc, which is even, and the next one.
 * @return 0, -EBUSY another process owns it, -EINVAL no such core, -EOPNOTSUPP no
 * instruction set that this library knows
 */
int neuron_core_open(struct neuron_device *device, uint32_t nc,
		     const struct neuron_core_opts *opts, struct neuron_core **core);
/** @brief Drop the handle; the core is released when its last model is unloaded. */
void neuron_core_close(struct neuron_core *core);
struct neuron_device *neuron_core_device(const struct neuron_core *core);
uint32_t neuron_core_index(const struct neuron_core *core);
/** @brief Bytes of the shared scratchpad of the core now. */
uint64_t neuron_core_scratchpad(struct neuron_core *core);
/** @brief Events of a core that only the caller of the library knows. */
enum neuron_core_event {
	NEURON_CORE_QUEUE_FULL = 0,	/**< a request found the caller's queue full */
	NEURON_CORE_BAD_INPUT = 1,	/**< the caller refused the input of a request */
	NEURON_CORE_NUMERICAL = 2,	/**< the output of a run is not a number */
};

/**
 * @brief Count an event in the statistics of a core, which the driver shows in sysfs
 * (stats/status). Loads and runs are counted without that.
 */
void neuron_core_count(struct neuron_core *core, enum neuron_core_event event);
/** @brief Reset the core; loaded models stay loaded and can run again. */
int neuron_core_reset(struct neuron_core *core);

/**
 * @brief Load a NEFF: parse it, place it in device memory, build its rings.
 * @param bytes	the file, not used after the call returns
 * @return 0, -EINVAL bad NEFF, -EOPNOTSUPP unknown version or feature, or @c whole and there
 * are more nodes, -ENOMEM it does not fit now, -EFBIG it does not fit the device, even if that were empty, -E2BIG a limit of the
 * device or of @p opts, -ERANGE it is made for more cores, -EPERM it should pretend to run on
 * a card; @c opts->error has details. Nothing is written before all memory is there, and
 * nothing stays allocated on error.
 */
int neuron_model_load(struct neuron_core *core, const void *bytes, size_t size,
		      const struct neuron_model_opts *opts, struct neuron_model **model);
/** @brief Wait for a run in progress, then free everything. NULL is allowed. */
void neuron_model_unload(struct neuron_model *model);
/** @brief Name in the header of the NEFF. */
const char *neuron_model_name(const struct neuron_model *model);
/** @brief UUID in the header of the NEFF, 32 hexadecimal digits. */
const char *neuron_model_uuid(const struct neuron_model *model);
size_t neuron_model_tensor_count(const struct neuron_model *model);
/** @brief Input or output @p index, in the order of the NEFF. @return 0, -EINVAL */
int neuron_model_tensor_info(const struct neuron_model *model, size_t index,
			     struct neuron_tensor_info *info);
int neuron_model_get_usage(const struct neuron_model *model, struct neuron_model_usage *usage);
/** @brief The first reason that the model cannot be run, NULL if it can. */
const char *neuron_model_obstacle(const struct neuron_model *model);
#define NEURON_MAX_OBSTACLES 8u
/** @brief All reasons (the first NEURON_MAX_OBSTACLES) from 0 on; NULL after the last. */
const char *neuron_model_obstacles(const struct neuron_model *model, size_t index);
/** @brief Whether runs of the model are pretended: it cannot be run, and the caller asked. */
bool neuron_model_pretends(const struct neuron_model *model);
/**
 * @brief What the software device says that runs should pretend, for libraries whose caller
 * did not say (its module's parameter @c pretend).
 * @return 0, -ENOENT it is not a software device, -EINVAL its file is not understood
 */
int neuron_device_pretend(const struct neuron_device *device, enum neuron_pretend *pretend);
/**
 * @brief Run the model once; blocks until it is done or @p timeout_ms have passed.
 *
 * One model of a core runs at a time; callers queue. After an error or timeout
 * the core is reset, so that the next run starts clean.
 * @param io	every input and output of the model, in any order; others are ignored
 * @return 0, -EINVAL an input or output is missing, too small or elsewhere,
 * -EOPNOTSUPP see neuron_model_obstacle(), -ETIMEDOUT, -EIO an engine or a DMA
 * queue stopped (@p result), -ENODEV, -ENOMEM it was offloaded and cannot come back
 */
int neuron_model_run(struct neuron_model *model, const struct neuron_io *io, size_t nr_io,
		     int timeout_ms, struct neuron_run_result *result);

/** @} @defgroup compute Computing with device memory
 *
 * DMA engines of the software device can convert and combine elements that they copy. @{ */

#define NEURON_COMPUTE_MAX_SOURCES 16u

enum neuron_compute_op {
	NEURON_COMPUTE_CAST = 0,	/**< one source, in the type of the result */
	NEURON_COMPUTE_ADD = 1,		/**< sum, in fp32 for all types */
	NEURON_COMPUTE_FMA = 2,		/**< sum of the sources, each times @c scale */
	NEURON_COMPUTE_MIN = 3,
	NEURON_COMPUTE_MAX = 4,
};

/** @brief Contiguous elements, in memory of the core's device or of the host. */
struct neuron_operand {
	struct neuron_mem *mem;
	uint64_t offset;
	uint32_t dtype;			/**< as in neuron_tensor_info */
};

struct neuron_compute {
	size_t size;			/**< sizeof(struct neuron_compute) */
	enum neuron_compute_op op;
	float scale;
	uint64_t elements;		/**< of each operand */
	struct neuron_operand dst;
	const struct neuron_operand *src;
	size_t nr_src;			/**< 1 to NEURON_COMPUTE_MAX_SOURCES; cast: 1 */
};

/**
 * @brief Compute element by element and wait for the result.
 *
 * Waits for a run in progress on the core, and runs wait for it. The result may lie exactly
 * over a source of the same element size; over sources in other ways it is undefined.
 * The first call on a core takes 68 KiB of memory for rings, which are freed with the
 * core. @return 0, -EINVAL unknown type or operation, operand elsewhere, beyond its
 * memory or in memory that may move and is not pinned, -ETIMEDOUT, -EIO the queue stopped, -EOPNOTSUPP the device cannot, -ENOMEM,
 * -ENODEV
 */
int neuron_core_compute(struct neuron_core *core, const struct neuron_compute *compute,
			int timeout_ms);
/** @brief Device memory of those rings; 0 before the first call. */
uint64_t neuron_core_compute_rings(const struct neuron_core *core);

/** @} */

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** @file report.h
 * @brief Reports of memory by user, and the memory that models would take.
 */
#ifndef NEURON_REPORT_H
#define NEURON_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <neuron/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup report Memory report and preflight
 * @{ */

/** @brief Columns of the report. */
enum neuron_report_column {
	NEURON_REPORT_TOTAL = 0,	/**< sum of the others */
	NEURON_REPORT_CODE,
	NEURON_REPORT_CONSTANTS,
	NEURON_REPORT_TENSORS,
	NEURON_REPORT_SHARED_SCRATCHPAD,
	NEURON_REPORT_SCRATCHPAD,	/**< private to models */
	NEURON_REPORT_RUNTIME,
	NEURON_REPORT_RINGS_IO,
	NEURON_REPORT_RINGS_SPILL,
	NEURON_REPORT_RINGS_COLLECTIVES,
	NEURON_REPORT_RINGS_RUNTIME,	/**< and rings of no known model */
	NEURON_REPORT_COLLECTIVES,
	NEURON_REPORT_XT_CC,
	NEURON_REPORT_PROFILER,
	NEURON_REPORT_NR_COLUMNS,
};

struct neuron_report_model {
	uint32_t id;
	const char *name;
	struct neuron_model_usage usage;
};

/** @brief Memory charged to a logical core, and the known models on it. */
struct neuron_report_core {
	uint32_t nc;			/**< logical core of the device */
	int32_t owner;			/**< as in struct neuron_core_stats */
	uint64_t device_bytes[NEURON_MAX_CATEGORIES];	/**< as in neuron_core_stats */
	const struct neuron_report_model *models;
	size_t nr_models;
	uint64_t rings_collectives;	/**< of the bytes of rings, those of no model */
};

/** @brief One device memory and the cores that use it. */
struct neuron_report {
	size_t size;
	uint32_t device;		/**< number */
	uint32_t hbm;
	uint32_t lnc;			/**< physical cores of a logical one */
	const struct neuron_report_core *cores;
	size_t nr_cores;
	uint64_t total;			/**< bytes of the memory; 0: the next figures are unknown */
	uint64_t free;
	uint64_t reserved;		/**< never handed out */
	uint64_t contiguous;		/**< 1: the scratchpad is in one piece */
	const char *limit_path;		/**< file of the limit that refused it, or NULL */
	uint64_t limit;
	uint64_t limit_used;		/**< of that */
	uint64_t limit_core;		/**< 1: limit of the core, else of the process */
};

/** @brief The figures of a row: of core @p core, or of all of them if it is NULL. */
void neuron_report_row(const struct neuron_report *report, const struct neuron_report_core *core,
		       uint64_t row[NEURON_REPORT_NR_COLUMNS]);
/** @brief The figures of the row of a model. */
void neuron_report_model_row(const struct neuron_report_model *model,
			     uint64_t row[NEURON_REPORT_NR_COLUMNS]);
/**
 * @brief The table as the runtime prints it, and the names of the models.
 * @param text	lines with a newline each, to be freed with free()
 * @return 0, -ENOMEM
 */
int neuron_report_table(const struct neuron_report *report, char **text);
/**
 * @brief The reason for a failed allocation, the holders of the memory, and advice.
 * @param text one line without a newline, to be freed with free() @return 0, -ENOMEM
 */
int neuron_report_reason(const struct neuron_report *report,
			 const struct neuron_mem_failure *failure, char **text);
/** @brief "1.500GB": three decimals, binary multiples. @return @p text */
const char *neuron_report_size(uint64_t bytes, char *text, size_t size);

#define NEURON_MICROCODE_DEFAULT UINT64_MAX

/** @brief Placement of models by the runtime: its defaults and the environment's settings. */
struct neuron_placement {
	size_t size;
	uint32_t lnc;			/**< as in neuron_core_opts, like the next two */
	bool contiguous;
	uint64_t page;
	uint64_t microcode;		/**< requested, or NEURON_MICROCODE_DEFAULT */
	const char *variable;		/**< variable that is wrong or has no effect, or NULL */
	const char *text;		/**< the problem with it */
};

/**
 * @brief Read NEURON_LOGICAL_NC_CONFIG, NEURON_RT_CONTIGUOUS_SCRATCHPAD,
 * NEURON_SCRATCHPAD_PAGE_SIZE and NEURON_RT_MICROCODE_MB as libnrt does.
 * @param pairs	the device has pairs of cores that share a memory
 * @return 0, -EINVAL the value of @c variable makes no sense
 */
int neuron_placement_read(bool pairs, struct neuron_placement *placement);
/**
 * @brief Bytes to set aside on each core of a device for microcode: the requested number,
 * or 96 MiB, but no more than a sixteenth of a memory.  @p placement may be NULL.
 */
uint64_t neuron_placement_microcode(const struct neuron_placement *placement,
				    const struct neuron_geometry *geometry);

struct neuron_profile_opts;

/** @brief Assumed set-up of a host. */
struct neuron_plan_opts {
	size_t size;
	uint64_t scratchpad_page;	/**< as in neuron_core_opts */
	uint64_t contiguous;		/**< same */
	uint32_t lnc;			/**< physical cores of a logical one, 1 or 2; 0 = 1 */
	uint32_t node;			/**< as in neuron_model_opts; not of neuron_net_plan() */
	struct neuron_error *error;	/**< filled in on error, may be NULL */
	uint64_t profile;		/**< neuron_profile_memory(); 0: the core is not profiled */
	uint64_t io_sets;		/**< copies of inputs and outputs; 0: not counted */
	uint64_t io_single;		/**< 1: each copy is one tensor, as long as the longest */
	uint64_t collectives;		/**< neuron_collective_staging(), of a logical core */
	uint64_t max_unpacked;		/**< as in neuron_model_opts */
	bool short_constants;		/**< same */
	uint64_t computes;		/**< 1: with the rings of neuron_core_compute() */
	uint64_t io_each;		/**< 1: inputs and outputs of a file come before the next file */
	bool verify_hash;		/**< as in neuron_model_opts, of the plans */
	/** For neuron_models_fit() with @c profile: the sizes that it is the sum of. */
	const struct neuron_profile_opts *buffers;
};

/** @brief Memory that a NEFF takes of each physical core of a logical one. */
struct neuron_plan {
	size_t size;
	uint32_t nr_parts;
	struct neuron_model_usage parts[2];
	char name[257];
	uint64_t io;			/**< inputs and outputs, once, in whole pages */
	uint64_t io_longest;		/**< the longest of them */
	uint32_t cores;			/**< physical cores that its header asks for, at least 1 */
	uint32_t nr_obstacles;		/**< reasons that it cannot be run */
	char obstacles[NEURON_MAX_OBSTACLES][256];
	/**
	 * Host memory that neuron_model_load() takes at least, beside the file: what that unpacks
	 * to, copies of programs, and what is joined or made for the device before it is written
	 * there. The loaded model keeps @c host_kept of it.
	 */
	uint64_t host_peak;
	uint64_t host_kept;
	uint32_t node;			/**< whose program it is, as in neuron_model_opts */
	uint32_t first;			/**< its first physical core, from that of the network on */
	uint64_t edges;			/**< device memory between nodes, of all requests, in whole pages */
};

/**
 * @brief Memory that loading a NEFF would allocate, to the byte; needs no device.
 *
 * Of a network of several nodes this is the plan of one of them, and what neuron_model_load()
 * would do. @return as neuron_model_load()
 */
int neuron_model_plan(const struct neuron_geometry *geometry, const void *bytes, size_t size,
		      const struct neuron_plan_opts *opts, struct neuron_plan *plan);
/**
 * @brief Same of all nodes of a network, as neuron_net_load() without a group and with the
 * default depth puts them: each on cores of its own, one behind the other.
 *
 * Operations of the host are taken for granted. A NEFF that is one program for a core has the plan
 * of neuron_model_plan().
 * @param plans	one for each node on a core, at least one; the size of the first is that of all.
 * What is not of a node, is of the network and with the first one: inputs and outputs, @c edges,
 * @c host_peak and @c host_kept
 * @param nr	entries of @p plans, at most NEURON_NEFF_MAX_NODES are needed; set to those in use
 * @return as neuron_net_load(), -ENOSPC there are more nodes
 */
int neuron_net_plan(const struct neuron_geometry *geometry, const void *bytes, size_t size,
		    const struct neuron_plan_opts *opts, struct neuron_plan *plans, size_t *nr);
/**
 * @brief Memory of several models together on a logical core, as the driver would count
 * it.  @param microcode bytes on each physical core @param core @c device_bytes and
 * @c rings_collectives are filled in @return 0, -E2BIG more than 2^64 bytes
 */
int neuron_plan_sum(const struct neuron_plan *plans, size_t nr_plans,
		    const struct neuron_plan_opts *opts, uint64_t microcode,
		    struct neuron_report_core *core);

/** @brief Bytes of fp32 sums that a rank has at a time, see neuron_collective.sums. */
#define NEURON_COLLECTIVE_SUMS (1u << 20)

/** @brief A collective operation among ranks of one host, as nrta_cc_schedule() does it. */
struct neuron_collective {
	size_t size;
	uint64_t in;			/**< bytes of the input of a rank */
	uint64_t out;			/**< bytes of its output */
	uint32_t ranks;
	bool devices;			/**< they are on several devices */
	bool in_place;			/**< input and output overlap */
	/**
	 * Bytes of the output if it were fp32, of a sum of integers, fp16 or fp8; 0: of anything else.
	 * With more than NEURON_COMPUTE_MAX_SOURCES ranks there are sums of a part of them.
	 */
	uint64_t sums;
};

/**
 * @brief Device memory that each rank takes while an operation runs, beside input and output: on
 * several devices the inputs of all others, its output if that is not to overwrite an input
 * that others read, and up to NEURON_COLLECTIVE_SUMS of sums of a part of the ranks.
 */
uint64_t neuron_collective_staging(const struct neuron_collective *operation);

/** @brief A NEFF that is to be loaded. */
struct neuron_fit_file {
	size_t size;
	const void *bytes;		/**< not used after the call returns */
	size_t length;			/**< bytes of it */
	/** By neuron_model_plan() or neuron_net_plan() for this device, same options. */
	const struct neuron_plan *plan;
	uint32_t nc;			/**< first physical core of its logical one */
	uint64_t process;		/**< any number: files with the same one are of one process */
	size_t nr_plans;		/**< by neuron_net_plan(): entries of @c plan; else 0 */
};

/** @brief Do models fit a device? */
enum neuron_fit_verdict {
	NEURON_FIT_NOW = 0,		/**< they do */
	NEURON_FIT_NOT_NOW = 1,		/**< not as it is now, but if it were empty */
	NEURON_FIT_NEVER = 2,		/**< not even then */
};

#define NEURON_FIT_ORDER 16u

/** @brief Whether models fit a device, and why not. */
struct neuron_fit {
	size_t size;
	enum neuron_fit_verdict verdict;
	/**
	 * Not now: FULL, FRAGMENTED, CAPPED (a limit); NONE: another process has a core, or has
	 * claimed it.
	 * Never: FRAGMENTED, the sum would fit but has no place; else NONE.
	 */
	enum neuron_mem_reason reason;
	uint32_t hbm;			/**< that is too short, too full or limited; UINT32_MAX: none */
	uint32_t nc;			/**< that is taken or has the limit; UINT32_MAX: none */
	int32_t pid;			/**< process that has the core; 0: not known, or none has */
	uint64_t need;			/**< bytes that the models take of @c hbm, or of the limit */
	uint64_t free;			/**< bytes free there */
	uint64_t largest_free;		/**< longest free run */
	/** Not now: the smallest set without which they would fit; count 0: none. */
	struct neuron_release release;
	char text[512];			/**< all of this in one line */
	/** An order of loading in which they would fit, by index; 0 entries: none. */
	uint32_t nr_order;
	uint32_t order[NEURON_FIT_ORDER];
	/** Now: bytes that others hold and that loading moves; it is refused if they are in use then. */
	uint64_t moved;
	/**
	 * CAPPED: the limit, and what counts for it now; the cgroup, or "": of @c nc or a process.
	 * With a cgroup and no @c hbm it is its memory.max.
	 */
	uint64_t limit;
	uint64_t limit_used;
	char cgroup[256];
};

/**
 * @brief Would processes that have nothing on a device yet find room there for models, as it is
 * now? Nothing is allocated: this looks at what is free, who holds the rest, who has the cores,
 * and at the limits of cores, of processes and of the caller's cgroup, for device memory and for
 * the host memory that the driver takes.
 *
 * One process after the other, in the order of their first files, opens the cores of its files,
 * loads these in their order, then allocates inputs and outputs, buffers of a profile and staging
 * of collectives as @p opts says. What a load places anew when the driver refuses it, this does, too, and it counts
 * on what the driver then moves (neuron_hbm_compact()). Of 2 to 16 files that do not fit because
 * memory is fragmented, it tries other orders, up to 720 of them, beginning with the longest first.
 * @param opts	those of the plans
 * @param microcode	bytes set aside on each core of a file
 * @return 0, -EINVAL, -ENOMEM, -errno of the driver; for a file as neuron_model_load()
 */
int neuron_models_fit(struct neuron_device *device, const struct neuron_fit_file *files, size_t nr,
		      const struct neuron_plan_opts *opts, uint64_t microcode,
		      struct neuron_fit *fit);

/**
 * @brief Same of a device with nothing on it; needs none. If there is one process, it opens all
 * cores. The verdict is NEURON_FIT_NOW or NEURON_FIT_NEVER.
 * @param reserved	bytes of each device memory that are never allocated
 */
int neuron_models_fit_empty(const struct neuron_geometry *geometry, uint64_t reserved,
			    const struct neuron_fit_file *files, size_t nr,
			    const struct neuron_plan_opts *opts, uint64_t microcode,
			    struct neuron_fit *fit);

/** @brief Bytes of a shared scratchpad of which models need up to @p need. @param opts may be
 * NULL */
uint64_t neuron_plan_scratchpad(const struct neuron_plan_opts *opts, uint64_t need);

/** @} */

#ifdef __cplusplus
}
#endif

#endif

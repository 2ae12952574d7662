/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * NEFF container: reader and writer.
 *
 * A NEFF is a 1024-byte header followed by a tar archive (gzip or plain) with
 * JSON descriptions, constants and one instruction binary per engine.  The reader checks
 * everything it reads, so that its result can be placed and run without another check of
 * offsets, sizes or names.  It only does not know the limits of the device (state buffer,
 * memory, number of semaphores and queues beyond the architectural ones).
 *
 * Nothing here touches a device, prints, or keeps global state.  An object may
 * be used from several threads as long as nobody closes it.
 */
#ifndef NEURON_NEFF_H
#define NEURON_NEFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NEURON_NEFF_HEADER_SIZE		1024u
#define NEURON_NEFF_MAX_QUEUES		16u	/* hardware queues of a queue set */
#define NEURON_NEFF_MAX_SEMAPHORES	256u	/* of a core, trn1 and later */
#define NEURON_NEFF_MAX_EVENTS		256u
#define NEURON_NEFF_MAX_DIMS		4u	/* of one side of a transfer */
#define NEURON_NEFF_MAX_SOURCES		16u	/* of a compute transfer */
#define NEURON_NEFF_MAX_SHAPE		8u	/* dimensions of a tensor */
/* A state buffer variable without a size may use this much (window of a core). */
#define NEURON_NEFF_SBUF_WINDOW		0x2000000u

/* Reasons to refuse a NEFF; the second column is the natural nrt_* status. */
enum neuron_neff_class {
	NEURON_NEFF_OK = 0,		/* NRT_SUCCESS */
	NEURON_NEFF_INVALID,		/* NRT_INVALID; -EINVAL */
	NEURON_NEFF_UNSUPPORTED,	/* NRT_UNSUPPORTED_NEFF_VERSION; -EOPNOTSUPP */
	NEURON_NEFF_RESOURCE,		/* NRT_RESOURCE; -ENOMEM, or -E2BIG for a limit */
};

/**
 * struct neuron_neff_error - an error and its place
 * @size: sizeof(struct neuron_neff_error)
 * @kind: coarse reason
 * @text: one line without a newline: "<where>: <what>", where being
 *        "header", "archive", a member name, or "member: JSON path", as in
 *        "sg00/def.json: var.w0.alignment: 3 is not a power of two".
 *        Non-printable bytes of the file are replaced.
 * @name: name of the model, "" if opening failed before that
 */
struct neuron_neff_error {
	size_t size;
	enum neuron_neff_class kind;
	char text[512];
	char name[257];
};

/**
 * struct neuron_neff_opts - how to open; zero is the default of each member
 * @size: sizeof(struct neuron_neff_opts)
 * @verify_hash: compare the payload with the hash of the header
 * @max_members: archive members, default 65536
 * @max_total: unpacked bytes of all members, default 16 GiB; only referenced members take
 *             memory.  Of an archive that has to be unpacked several times, four times as many
 * @max_json: bytes of one JSON member, default 256 MiB
 * @max_values: values in one JSON member, default 8 Mi; a value takes about 100
 *              bytes of memory while the member is parsed
 * @error: filled in when opening fails, may be NULL
 * @node: of a network of several nodes, the N of kelf-N.json to parse
 * @borrow: point into the file where it is not compressed; it must then stay as long
 *          as the object
 * @unpacked: set to the time (CLOCK_MONOTONIC, ns) at which the archive was read;
 *            may be NULL
 * @keep: keep all members for neuron_neff_open_node(); the file must then stay
 *        until neuron_neff_forget()
 * @short_constants: the file of a constant may be shorter than the variable
 */
struct neuron_neff_opts {
	size_t size;
	bool verify_hash;
	uint32_t max_members;
	uint64_t max_total;
	uint64_t max_json;
	uint32_t max_values;
	struct neuron_neff_error *error;
	uint32_t node;
	bool borrow;
	uint64_t *unpacked;
	bool keep;
	bool short_constants;
};

/* Header in host byte order; texts are NUL terminated. */
struct neuron_neff_header {
	size_t size;			/* sizeof(struct neuron_neff_header) */
	uint64_t pkg_version;		/* 1 = SHA-256, 2 = MD5 */
	uint64_t header_size;
	uint64_t data_size;
	uint64_t version_major;
	uint64_t version_minor;
	char build_version[129];
	uint32_t num_tpb;
	uint8_t hash[32];
	uint8_t uuid[16];
	char name[257];
	uint32_t requested_tpb_count;
	uint8_t tpb_per_node[64];
	uint64_t feature_bits;
	uint32_t lnc_size;		/* 1 or 2; 0 in the file reads as 1 */
};

/* Same numbers as enum neuron_isa_engine. */
enum neuron_neff_engine_id {
	NEURON_NEFF_PE = 0,
	NEURON_NEFF_ACT = 1,
	NEURON_NEFF_POOL = 2,
	NEURON_NEFF_DVE = 3,
	NEURON_NEFF_SP = 4,
	NEURON_NEFF_NR_ENGINES = 5,
};

enum neuron_neff_code {
	NEURON_NEFF_CODE_NONE = 0,	/* no binary, or an empty one */
	NEURON_NEFF_CODE_NISA,		/* starts with the prologue of neuron_isa.h */
	NEURON_NEFF_CODE_VENDOR,	/* anything else: loads, cannot be executed */
};

enum neuron_neff_var_type {
	NEURON_NEFF_VAR_STATE_BUFFER = 0,	/* on-chip; at @backing_off of the SBUF */
	NEURON_NEFF_VAR_INPUT,
	NEURON_NEFF_VAR_OUTPUT,
	NEURON_NEFF_VAR_FILE,
	NEURON_NEFF_VAR_TMP_BUF,
	NEURON_NEFF_VAR_VIRTUAL,
	NEURON_NEFF_VAR_POINTER,
	NEURON_NEFF_VAR_DGE_TABLE,
	NEURON_NEFF_NR_VAR_TYPES,
};

enum neuron_neff_fabric {
	NEURON_NEFF_FABRIC_MAIN = 0,
	NEURON_NEFF_FABRIC_ALT,
};

enum neuron_neff_queue_type {
	NEURON_NEFF_QUEUE_IN = 0,
	NEURON_NEFF_QUEUE_OUT,
	NEURON_NEFF_QUEUE_DATA,
	NEURON_NEFF_QUEUE_EMBEDDING_UPDATE,
	NEURON_NEFF_QUEUE_DYNAMIC,
	NEURON_NEFF_QUEUE_UNKNOWN,	/* an obstacle */
};

enum neuron_neff_op {
	NEURON_NEFF_OP_COPY = 0,
	NEURON_NEFF_OP_CAST,
	NEURON_NEFF_OP_FMA,
	NEURON_NEFF_OP_ADD,
	NEURON_NEFF_OP_MIN,
	NEURON_NEFF_OP_MAX,
	NEURON_NEFF_OP_TRANSPOSE,
	NEURON_NEFF_OP_UNKNOWN,		/* unknown, or a side has an unknown type */
};

/* Element types: the values of nrt_dtype_t. */
enum neuron_neff_dtype {
	NEURON_NEFF_DT_UNKNOWN = 0x0,
	NEURON_NEFF_DT_UINT64 = 0x1,
	NEURON_NEFF_DT_INT8 = 0x2,
	NEURON_NEFF_DT_UINT8 = 0x3,
	NEURON_NEFF_DT_INT16 = 0x4,
	NEURON_NEFF_DT_UINT16 = 0x5,
	NEURON_NEFF_DT_BFLOAT16 = 0x6,
	NEURON_NEFF_DT_FLOAT16 = 0x7,
	NEURON_NEFF_DT_INT32 = 0x8,
	NEURON_NEFF_DT_UINT32 = 0x9,
	NEURON_NEFF_DT_FLOAT32 = 0xa,
	NEURON_NEFF_DT_FP32R = 0xb,
	NEURON_NEFF_DT_INT64 = 0xc,
	NEURON_NEFF_DT_FP8_E3 = 0xd,
	NEURON_NEFF_DT_FP8_E4 = 0xe,
	NEURON_NEFF_DT_FP8_E5 = 0xf,
};

#define NEURON_NEFF_MAX_AREAS	64u

/**
 * struct neuron_neff_area - variables that share scratch memory
 * @name: backing_buf
 * @need: bytes, where the last of its variables ends
 * @base: where it starts in the scratchpad of the subgraph
 */
struct neuron_neff_area {
	const char *name;
	uint64_t need;
	uint64_t base;
};

/**
 * struct neuron_neff_var - one variable of a subgraph
 * @name: unique in the subgraph
 * @type: where it lives
 * @var_id: unique in the subgraph
 * @size: bytes; @backing_off + @size does not overflow
 * @alignment: of the device address; 0 or a power of two
 * @fabric: fabric path
 * @backing_off: virtual: offset in its scratch area; state-buffer: offset in
 *               the state buffer (own extension, 0 in other NEFFs)
 * @backing_buf: virtual: name of the scratch area, default "main"
 * @area: virtual: that area
 * @referenced: pointer: the variable whose device address it holds
 * @list: dge-table: variables whose device addresses it holds, in order
 * @nr_list: entries of @list
 * @file_name: file: archive member below the subgraph's directory
 * @data: file: initial contents (payload of a .npy, otherwise the raw file)
 * @data_size: bytes at @data, <= @size; the rest of the variable is zero
 * @dtype: input, output, .npy constants: element type, default uint8
 * @ndim: input, output, .npy constants: dimensions, default 1
 * @shape: elements per dimension, default { size }
 */
struct neuron_neff_var {
	const char *name;
	enum neuron_neff_var_type type;
	uint32_t var_id;
	uint64_t size;
	uint64_t alignment;
	enum neuron_neff_fabric fabric;
	uint64_t backing_off;
	const char *backing_buf;
	const struct neuron_neff_area *area;
	const struct neuron_neff_var *referenced;
	const struct neuron_neff_var **list;
	size_t nr_list;
	const char *file_name;
	const void *data;
	size_t data_size;
	enum neuron_neff_dtype dtype;
	uint32_t ndim;
	uint64_t shape[NEURON_NEFF_MAX_SHAPE];
};

/**
 * struct neuron_neff_queue - a queue set
 * @name: unique in the subgraph
 * @type: use
 * @num_queues: hardware queues, 1..16
 * @owner: engine that triggers it (enum neuron_neff_engine_id), -1 if not given
 * @pinned: Inf1 only
 * @instances: names of ring sets that can be swapped at run time
 * @nr_instances: entries of @instances
 * @semaphores: completion semaphores (semaphore_set, or the single semaphore)
 * @nr_semaphores: entries of @semaphores
 * @fabric: fabric path
 * @resident: its transfers bring constants that the program leaves as they are
 */
struct neuron_neff_queue {
	const char *name;
	enum neuron_neff_queue_type type;
	uint32_t num_queues;
	int owner;
	bool pinned;
	const char **instances;
	size_t nr_instances;
	const uint32_t *semaphores;
	size_t nr_semaphores;
	enum neuron_neff_fabric fabric;
	bool resident;
};

/**
 * struct neuron_neff_side - one side of a transfer
 * @var: variable
 * @off: byte offset in it
 * @ndim: 1..4; @size and @step are innermost first
 * @size: @size[0] in bytes, the others counts; none is 0
 * @step: bytes between neighbours; may be 0 (repeat) on a source.  @step[0] is 1 if
 *        the innermost elements are contiguous, else bytes between two of them
 * @dtype: element type; @size[0] is a multiple of its size
 * @bytes: product of @size; every byte addressed is inside @var
 */
struct neuron_neff_side {
	const struct neuron_neff_var *var;
	uint64_t off;
	uint32_t ndim;
	uint64_t size[NEURON_NEFF_MAX_DIMS];
	uint64_t step[NEURON_NEFF_MAX_DIMS];
	enum neuron_neff_dtype dtype;
	uint64_t bytes;
};

/**
 * struct neuron_neff_desc - one transfer
 * @op: operation.  copy: byte counts of both sides are equal; the others:
 *      element counts are equal; unknown: the sides need not agree
 * @to: destination
 * @from: sources; more than one for compute operations only
 * @nr_from: 1..16
 * @scale_dtype: fma
 * @scale: fma, default 1.0
 * @constant_dtype: min, max; UNKNOWN = none given
 * @constant: min, max
 * @num_tiling_dimensions: as in the file, 0 if absent
 * @transpose_shape: transpose: elements, as in the file
 * @transpose_element_size: transpose: bytes
 */
struct neuron_neff_desc {
	enum neuron_neff_op op;
	struct neuron_neff_side to;
	struct neuron_neff_side *from;
	size_t nr_from;
	enum neuron_neff_dtype scale_dtype;
	double scale;
	enum neuron_neff_dtype constant_dtype;
	double constant;
	uint32_t num_tiling_dimensions;
	uint64_t transpose_shape[4];
	uint32_t transpose_element_size;
};

/**
 * struct neuron_neff_dma - a DMA trigger of an engine
 * @id: number in DMA_TRIGGER; unique among the entries of the engine, or an obstacle
 * @queue: its queue set (the one that has the instance if an instance is named)
 * @instance: index in @queue->instances, -1 none
 * @function_start: name of the function that starts here, or NULL
 * @section_start: section_start_desc
 * @event: event to set when done, -1 none
 * @semaphore: semaphore to increment when done, -1 none
 * @remote_semaphores: semaphores of the other core (LNC 2)
 * @nr_remote_semaphores: entries
 * @desc: transfers, in order
 * @nr_desc: entries, at least 1
 */
struct neuron_neff_dma {
	uint32_t id;
	const struct neuron_neff_queue *queue;
	int instance;
	const char *function_start;
	bool section_start;
	int event;
	int semaphore;
	const uint32_t *remote_semaphores;
	size_t nr_remote_semaphores;
	struct neuron_neff_desc *desc;
	size_t nr_desc;
};

/* A named blob: a DVE or activation table. */
struct neuron_neff_blob {
	const char *name;
	const void *data;
	size_t size;
};

/**
 * struct neuron_neff_engine - programs and tables of one engine
 * @json_name: member name below the subgraph, NULL if the engine is not used
 * @code_name: member name of the instruction binary, NULL if there is none
 * @code: instructions
 * @code_size: bytes; NISA: a multiple of 64, at least 64
 * @code_kind: instruction set of the code
 * @dma: DMA triggers in program order
 * @nr_dma: entries
 * @dma_by_id: the same, sorted by id
 * @act_sets: activation_function_sets
 * @nr_act_sets: entries
 * @tables: DVE tables, three per set (control, datapath, opcode)
 * @nr_tables: entries
 */
struct neuron_neff_engine {
	const char *json_name;
	const char *code_name;
	const void *code;
	size_t code_size;
	enum neuron_neff_code code_kind;
	struct neuron_neff_dma *dma;
	size_t nr_dma;
	const struct neuron_neff_dma **dma_by_id;
	const char **act_sets;
	size_t nr_act_sets;
	struct neuron_neff_blob *tables;
	size_t nr_tables;
};

/**
 * struct neuron_neff_subgraph - the part of a NEFF that one physical core runs
 * @name: name in the list of graphs
 * @dir: directory of its members, "sg00"
 * @definition: member that describes it, "sg00/def.json"
 * @engines: indexed by enum neuron_neff_engine_id
 * @vars: variables in file order
 * @nr_vars: entries
 * @vars_by_name: the same, sorted by name
 * @areas: scratch areas of virtual variables
 * @nr_areas: entries
 * @scratchpad: bytes of all areas together
 * @queues: queue sets in file order
 * @nr_queues: entries
 */
struct neuron_neff_subgraph {
	const char *name;
	const char *dir;
	const char *definition;
	struct neuron_neff_engine engines[NEURON_NEFF_NR_ENGINES];
	struct neuron_neff_var *vars;
	size_t nr_vars;
	const struct neuron_neff_var **vars_by_name;
	struct neuron_neff_area *areas;
	size_t nr_areas;
	uint64_t scratchpad;
	struct neuron_neff_queue *queues;
	size_t nr_queues;
};

#define NEURON_NEFF_MAX_NODES	64u
#define NEURON_NEFF_MAX_EDGES	1024u
#define NEURON_NEFF_MAX_PARAMS	1024u	/* of a node */
#define NEURON_NEFF_MAX_OBSTACLES	8u

enum neuron_neff_edge_use {
	NEURON_NEFF_EDGE_INTERNAL,
	NEURON_NEFF_EDGE_INPUT,		/* of the network */
	NEURON_NEFF_EDGE_OUTPUT,
};

/* A tensor between nodes, or into or out of the network. */
struct neuron_neff_edge {
	const char *name;
	enum neuron_neff_edge_use use;
	uint64_t bytes;
};

/**
 * struct neuron_neff_node - a part of a network
 * @name: for messages
 * @cpu: it runs on the host; else kelf-@kelf.json runs on a core
 * @kelf: see @cpu
 * @op: name of the operation, of a CPU node
 * @object_name: member with a shared object that has the operation, or NULL
 * @object: its contents
 * @object_size: its bytes
 * @params: parameters of the operation: members, of .npy files only the elements
 * @nr_params: entries
 * @inputs: edges; an accelerator node has inputs of the same names
 * @nr_inputs: entries
 * @outputs: same for outputs
 * @nr_outputs: entries
 */
struct neuron_neff_node {
	const char *name;
	bool cpu;
	uint32_t kelf;
	const char *op;
	const char *object_name;
	const void *object;
	size_t object_size;
	struct neuron_neff_blob *params;
	size_t nr_params;
	const char **inputs;
	size_t nr_inputs;
	const char **outputs;
	size_t nr_outputs;
};

/**
 * struct neuron_neff - a parsed NEFF; everything reachable from it belongs to it
 * @header: header fields
 * @graph_version: "version" of kelf-0.json, "" if absent
 * @subgraphs: one per physical core, at most two
 * @nr_subgraphs: entries
 * @executable: no subgraph has vendor instructions, and there are no obstacles
 * @obstacles: reasons that it cannot be run, in the form of error texts; it can still be
 *	placed
 * @nr_obstacles: entries; the file can have more
 * @nodes: of a network of several nodes, in the order in which they run; else NULL
 * @nr_nodes: entries
 * @edges: its tensors
 * @nr_edges: entries
 */
struct neuron_neff {
	struct neuron_neff_header header;
	const char *graph_version;
	struct neuron_neff_subgraph *subgraphs;
	size_t nr_subgraphs;
	bool executable;
	const char *obstacles[NEURON_NEFF_MAX_OBSTACLES];
	size_t nr_obstacles;
	struct neuron_neff_node *nodes;
	size_t nr_nodes;
	struct neuron_neff_edge *edges;
	size_t nr_edges;
};

/**
 * neuron_neff_open() - parse and check a NEFF
 * @bytes: the file; not used after the call returns
 * @size: bytes at @bytes
 * @opts: options, may be NULL
 * @out: the parsed NEFF, to be closed with neuron_neff_close(); untouched on error
 *
 * Return: 0; -EINVAL (invalid), -EOPNOTSUPP (version or feature this reader
 * does not know), -ENOMEM, -E2BIG (a limit of @opts).  @opts->error has details.
 */
int neuron_neff_open(const void *bytes, size_t size, const struct neuron_neff_opts *opts,
		     struct neuron_neff **out);

/**
 * neuron_neff_open_node() - another node of a file that was opened with @keep
 * @file: the file, to be closed after @out
 * @opts: as for neuron_neff_open(), without @verify_hash
 * @out: the node, to be closed with neuron_neff_close()
 *
 * The archive is unpacked again only for what no other node has wanted.  Return: as neuron_neff_open().
 */
int neuron_neff_open_node(struct neuron_neff *file, const struct neuron_neff_opts *opts,
			  struct neuron_neff **out);

/**
 * neuron_neff_forget() - free the members that @keep kept
 *
 * Constants, programs, tables, shared objects and parameters go with them.
 */
void neuron_neff_forget(struct neuron_neff *neff);

/** neuron_neff_close() - free a parsed NEFF; NULL is allowed */
void neuron_neff_close(struct neuron_neff *neff);

/** neuron_neff_find_var() - variable of a subgraph by name, NULL if none */
const struct neuron_neff_var *
neuron_neff_find_var(const struct neuron_neff_subgraph *sg, const char *name);

/** neuron_neff_find_dma() - entry @id of an engine, NULL if none */
const struct neuron_neff_dma *
neuron_neff_find_dma(const struct neuron_neff_engine *engine, uint32_t id);

/** neuron_neff_dtype_size() - bytes of an element, 0 for an unknown type */
uint32_t neuron_neff_dtype_size(enum neuron_neff_dtype dtype);

/** neuron_neff_cores() - physical cores that the header asks for, for a node; at least 1 */
uint32_t neuron_neff_cores(const struct neuron_neff *neff, uint32_t node);

/** neuron_neff_side_run() - contiguous bytes of the innermost dimension of a side */
static inline uint64_t neuron_neff_side_run(const struct neuron_neff_side *side)
{
	return side->step[0] == 1 ? side->size[0] : neuron_neff_dtype_size(side->dtype);
}

/** neuron_neff_dtype_name() - name as in an engine JSON, "unknown" for an unknown type */
const char *neuron_neff_dtype_name(enum neuron_neff_dtype dtype);

/** neuron_neff_dtype_parse() - type by its name in an engine JSON, UNKNOWN if none */
enum neuron_neff_dtype neuron_neff_dtype_parse(const char *name);

/** neuron_neff_var_type_name() - name as in def.json */
const char *neuron_neff_var_type_name(enum neuron_neff_var_type type);

/**
 * struct neuron_neff_npy - an array in a file of numpy
 * @data: its elements, in the file
 * @size: their bytes
 * @dtype: of an element
 * @ndim: 0: not representable
 * @shape: elements per dimension
 */
struct neuron_neff_npy {
	const void *data;
	size_t size;
	enum neuron_neff_dtype dtype;
	uint32_t ndim;
	uint32_t shape[NEURON_NEFF_MAX_SHAPE];
};

/**
 * neuron_neff_npy() - parse a .npy file
 * @name: for messages
 * @data: the file, which @npy then points into
 * @size: its bytes
 * @error: filled in on error, may be NULL
 * @npy: result
 *
 * Return: 0, -EINVAL, -EOPNOTSUPP.
 */
int neuron_neff_npy(const char *name, const void *data, size_t size,
		    struct neuron_neff_error *error, struct neuron_neff_npy *npy);

/**
 * neuron_neff_unpack() - call a function for each member of a NEFF's archive
 * @bytes: the file; its header is not checked
 * @size: bytes at @bytes
 * @error: filled in on error, may be NULL
 * @member: called for each member, sorted by name, when all are unpacked; @data is valid
 *          until it returns.  Names are relative, without "." and ".." components.
 * @context: for @member
 *
 * Return: as neuron_neff_open().
 */
int neuron_neff_unpack(const void *bytes, size_t size, struct neuron_neff_error *error,
		       void (*member)(void *context, const char *name, const void *data,
				      size_t size),
		       void *context);

/*
 * Writer.  Members may be added in any order; the archive has them sorted by
 * name, *.json first, with fixed times and owners, so that equal contents give
 * equal bytes.
 */
struct neuron_neff_writer;

/** neuron_neff_writer_new() - start an empty NEFF; NULL without memory */
struct neuron_neff_writer *neuron_neff_writer_new(void);

/** neuron_neff_writer_free() - free it; NULL is allowed */
void neuron_neff_writer_free(struct neuron_neff_writer *w);

/**
 * neuron_neff_writer_add() - add a member
 * @w: writer
 * @name: path in the archive in ASCII, relative, without "." and ".." components
 * @data: contents, copied
 * @size: bytes
 *
 * Return: 0, -EINVAL (bad name), -EEXIST (name used already), -ENOMEM.
 */
int neuron_neff_writer_add(struct neuron_neff_writer *w, const char *name, const void *data,
			   size_t size);

/**
 * neuron_neff_writer_finish() - build the file
 * @w: writer; can be finished again after adding more
 * @header: fields to use; pkg_version 1 or 2 chooses the hash, 0 means 2;
 *          header_size, data_size and hash are computed
 * @gzip: compress the archive
 * @bytes: malloc()ed result
 * @size: its bytes
 *
 * Return: 0, -EINVAL, -ENOMEM, -EIO (archive library failed).
 */
int neuron_neff_writer_finish(struct neuron_neff_writer *w,
			      const struct neuron_neff_header *header, bool gzip,
			      void **bytes, size_t *size);

/**
 * neuron_neff_printable() - replace all but printable ASCII by '?'
 * @text: changed in place
 *
 * Names come from the file: keep them from breaking or forging a log line.
 */
void neuron_neff_printable(char *text);

#ifdef __cplusplus
}
#endif

#endif /* NEURON_NEFF_H */

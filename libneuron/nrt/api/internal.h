/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of libnrt share: the state of the process, and its log. */
#ifndef NRT_INTERNAL_H
#define NRT_INTERNAL_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

#include <neuron/neuron.h>
#include <nrt/nrt.h>
#include <nrt/nrt_experimental.h>

#define NRT_EXPORT __attribute__((visibility("default")))

/* Structures that programs were compiled with. */
#define LAYOUT(type, member, off) \
	_Static_assert(offsetof(type, member) == (off), #type "." #member)
#define SIZE(type, bytes) \
	_Static_assert(sizeof(type) == (bytes), #type)

/* ---- log --------------------------------------------------------------------------- */

enum log_level {
	LOG_QUIET = 0,
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG,
	LOG_TRACE,
};

enum log_comp {
	LOG_TDRV,
	LOG_NMGR,
	LOG_NRT,
	LOG_ENC,	/* collectives */
	LOG_HAL,	/* what depends on the device */
	LOG_NR_COMPS,
};

/* Levels from the environment; at nrt_init(). */
void nrt_log_configure(void);
bool nrt_log_enabled(enum log_comp comp, enum log_level level);
/* In place: no line break, nothing that a terminal obeys. */
void nrt_log_printable(char *text);
/* Only a break in @fmt begins another line: a name that a caller gave cannot forge one. */
void nrt_log(enum log_comp comp, enum log_level level, const char *func, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#define LOG(comp, level, ...) \
	nrt_log(LOG_##comp, LOG_##level, __func__, __VA_ARGS__)
/* With the function name that existing log parsers look for. */
#define LOG_AS(comp, level, func, ...) \
	nrt_log(LOG_##comp, LOG_##level, func, __VA_ARGS__)

/* The lines of an allocation that failed, and the report; not under the process lock. */
void nrt_log_memory(struct neuron_device *device, const struct neuron_mem_failure *failure);
/*
 * The same as a neuron_refused_fn of a device, while what was taken so far is there.
 * @loading: a model that has some of its memory already, on the core of the failure; or NULL.
 */
void nrt_refused(void *device, const struct neuron_mem_failure *failure,
		 const struct neuron_report_model *loading);

/* ---- process state ----------------------------------------------------------------- */

/*
 * The life of the runtime: UNINITIALIZED, READY after nrt_init(), CLOSING from the first
 * moment of nrt_close() on, CLOSED, READY again.  nrt_init() and nrt_close() exclude each
 * other for as long as they take.
 *
 * A call that needs the runtime is between nrt_enter() and nrt_leave(), with the life
 * lock held for reading.  nrt_enter() looks at the state before it waits for the lock: as
 * soon as the runtime is CLOSING, calls are turned away, and threads that go on calling
 * do not keep nrt_close() from the lock, which it takes for writing to wait for those
 * who are inside.
 *
 * Threads of queues, the workers, do not hold the life lock: nrt_close() ends them before
 * it takes it.  So the functions that they call back may use the runtime, to its last
 * moment, but nothing there may wait for a worker, which could be this one, or one that
 * waits for this one: nrt_close() does nothing, draining a queue is NRT_INVALID, a full
 * one NRT_QUEUE_FULL, and waiting for an output ends when the runtime is CLOSING.
 *
 * A child of fork() starts with UNINITIALIZED, and closes what it inherited of devices and
 * of the claim on cores.  It has to know all of it: descriptors are opened and closed under
 * the process lock, together with the lists that name them, and fork() takes that lock.
 * Locks that fork() does not take are made anew in the child, and what they protect is
 * forgotten.
 */
enum nrt_state {
	NRT_STATE_UNINITIALIZED = 0,
	NRT_STATE_READY,
	NRT_STATE_CLOSING,
	NRT_STATE_CLOSED,
};

/* A logical core of this process. */
struct nrt_vnc {
	struct neuron_device *device;
	struct neuron_core *core;
	uint32_t nc;		/* first physical core */
	uint32_t index;		/* logical core of the device */
	uint32_t nr_models;	/* process lock */
};

/* The variables that are not about cores and memory (libnrt(7)). */
struct nrt_env {
	bool keep_cores;		/* open them without a reset */
	bool find_nan;			/* in outputs */
	NRT_STATUS dump_inputs_on;	/* of this status; NRT_SUCCESS never */
	bool has_cpus;
	cpu_set_t cpus;			/* for threads of queues */
	char *core_dump_dir;		/* "" and */
	char *core_dump_s3;		/* "": none */
};

#define NRT_CORE_DUMP_DIRECTORY "/tmp/neuron-core-dump/dt-%d-cid-%c"

/*
 * *@value stays if the variable is not set, or empty.  false: what it says makes no sense,
 * which is in the log, and nothing changed.
 */
/* 1, true, yes or on, 0, false, no or off, in any case. */
bool nrt_env_flag(const char *name, bool *value);
/* From @min to @max; @what that is, for the log. */
bool nrt_env_value(const char *name, unsigned long min, unsigned long max, const char *what,
		   unsigned long *value);
/* A number from 0 to @max at @text; moves @end behind it. */
bool nrt_env_parse(const char *text, const char **end, unsigned long max, unsigned long *value);
/* The first of a list of "n" and "a-b" up to @max; *@text: the rest, NULL: that was all. */
bool nrt_env_range(const char **text, unsigned long max, unsigned long *first,
		   unsigned long *last);
/* A copy of @text in the place of *@at, which stays if there is no memory. */
bool nrt_text_replace(char **at, const char *text);
/* NRT_INVALID with a line in the log. */
NRT_STATUS nrt_env_read(struct nrt_env *env);
void nrt_env_free(struct nrt_env *env);
/* In a child: another thread of the parent may be freeing it. */
void nrt_env_forget(struct nrt_env *env);

struct nrt_process {
	pthread_rwlock_t life;
	_Atomic(enum nrt_state) state;
	struct neuron_device **devices;		/* these and the claim change under the lock */
	size_t nr_devices;
	struct nrt_vnc *vncs;
	uint32_t nr_vncs;
	int claim_fd;		/* holds the claim on the cores, -1 none */
	uint32_t claim_start;
	uint32_t claim_count;
	int timeout_ms;		/* of an execution, -1 none */
	bool verify_hash;
	uint64_t max_unpacked;	/* bytes of an archive, 0 default */
	bool short_constants;
	bool map_hbm;
	bool contiguous;	/* scratchpad */
	bool oom_table;
	size_t memlog;		/* entries */
	uint32_t lnc;		/* physical cores of a logical one */
	bool implicit_async;	/* nrt_execute() queues once a callback is registered */
	uint32_t exec_depth;	/* executions of a core that may wait */
	struct nrt_env env;

	pthread_mutex_t lock;	/* the lists; outside of all others but the life lock */
	struct nrt_model *models;
	struct nrt_storage *storages;
	uint32_t next_id;
};

extern struct nrt_process nrt_process;

/* NRT_SUCCESS and the runtime stays until nrt_leave(), or why not. */
NRT_STATUS nrt_enter(void);
/* NRT_SUCCESS if it is READY; for those who wait, and do not stay inside meanwhile. */
NRT_STATUS nrt_ready(void);
void nrt_leave(void);
/* Status for a 0 or -errno of libneuron. */
NRT_STATUS nrt_status_of(int ret);
NRT_STATUS nrt_vnc_get(int64_t vnc, struct nrt_vnc **out);

/* ---- tensors ----------------------------------------------------------------------- */

enum nrt_storage_kind {
	NRT_STORAGE_DEVICE,
	NRT_STORAGE_HOST,	/* memory of the driver that the device reaches */
	NRT_STORAGE_USER,	/* plain memory of the process */
};

struct nrt_storage {
	atomic_uint refs;
	enum nrt_storage_kind kind;
	struct neuron_device *device;	/* not USER; NULL after nrt_close() */
	struct neuron_mem *mem;		/* not USER; NULL after nrt_close() */
	_Atomic(void *) va;		/* that the program was told, not USER */
	void *user;
	bool owned;			/* free @user */
	uint64_t size;
	uint32_t hbm;
	uint32_t vnc;
	struct nrt_storage *next, **pprev;	/* process lock */
};

struct nrt_tensor {
	char *name;
	struct nrt_storage *storage;	/* NULL: empty */
	uint64_t offset;
	uint64_t size;
	struct nrt_completions *completions;
};

struct nrt_set_entry {
	char *name;
	nrt_tensor_t *tensor;
};

struct nrt_set {
	size_t nr;
	size_t max;
	struct nrt_set_entry *entries;
};

/* It is one, and was not freed. */
bool nrt_tensor_valid(const nrt_tensor_t *tensor);

/* Not empty, and not left over from before nrt_close(). */
static inline bool nrt_tensor_stored(const nrt_tensor_t *tensor)
{
	return tensor->storage && (tensor->storage->mem || tensor->storage->user);
}

/* NULL: it is none, or was destroyed. */
struct nrt_set *nrt_set_of(const nrt_tensor_set_t *set);
/* By name; @hint is where it probably is. NULL: none. */
nrt_tensor_t *nrt_set_find(const struct nrt_set *set, const char *name, size_t hint);
NRT_STATUS nrt_tensor_check(const char *func, const nrt_tensor_t *t, uint64_t offset,
			    uint64_t size);
NRT_STATUS nrt_tensor_transfer(const char *func, const nrt_tensor_t *t, void *buf,
			       uint64_t offset, uint64_t size, bool write);
NRT_STATUS nrt_tensor_move(const char *func, const nrt_tensor_t *src, uint64_t src_offset,
			   nrt_tensor_t *dst, uint64_t dst_offset, uint64_t size);
/* What has these bytes at an address that the program was told, to be put; NULL: none. */
struct nrt_storage *nrt_storage_at(const void *va, uint64_t size);
void nrt_storage_put(struct nrt_storage *s);
nrt_tensor_t *nrt_tensor_hold(const nrt_tensor_t *t);
void nrt_tensor_drop(nrt_tensor_t *t);
/* An execution has written to it. */
void nrt_tensor_written(nrt_tensor_t *t);
/* In a child: another thread of the parent may have had the lock. */
void nrt_completions_forget(void);
/* Before and after fork(). */
void nrt_handles_lock(void);
void nrt_handles_unlock(void);
bool nrt_set_hold(const struct nrt_set *set, struct nrt_set **out);
void nrt_set_drop(struct nrt_set *set);
/* Give all memory back; tensors stay, without storage. */
void nrt_storages_close(void);
/* The same in a child, where the memory is the parent's. */
void nrt_storages_forget(void);

/* ---- models ------------------------------------------------------------------------ */

/* Host memory that the device reaches, in place of a buffer of the caller. */
struct nrt_stage {
	struct neuron_mem *mem;
	void *va;
};

struct nrt_model {
	struct neuron_model *model;
	struct nrt_vnc *vnc;
	uint32_t vnc_index;
	uint32_t id;
	uint32_t refs;			/* process lock; the list has one */
	pthread_mutex_t lock;		/* running: @stages, @io */
	size_t nr_io;
	struct neuron_tensor_info *info;
	struct nrt_stage *stages;
	struct neuron_io *io;
	struct nrt_model *next;		/* process lock */
};

void nrt_models_close(void);
uint32_t nrt_emptiest_vnc(void);
struct nrt_model *nrt_model_get(const struct nrt_model *handle);
void nrt_model_put(struct nrt_model *m);
NRT_STATUS nrt_model_execute(struct nrt_model *m, const struct nrt_set *in,
			     const struct nrt_set *out, int repeat_count);

/* The device ended an execution with @status: keep what the environment asks for. */
void nrt_execution_failed(struct nrt_model *m, const struct nrt_set *in, NRT_STATUS status);
void nrt_failure_forget(void);
/* NRT_EXEC_COMPLETED_WITH_NUM_ERR and a line in the log: there is a NaN in an output. */
NRT_STATUS nrt_numeric_check(const struct nrt_model *m, const struct nrt_set *out);

/* ---- trace ------------------------------------------------------------------------- */

enum nrt_trace_type {
	NRT_TRACE_LOAD,
	NRT_TRACE_UNLOAD,
	NRT_TRACE_EXECUTE,
	NRT_TRACE_TENSOR_ALLOCATE,
	NRT_TRACE_TENSOR_READ,
	NRT_TRACE_TENSOR_WRITE,
	NRT_TRACE_TENSOR_COPY,
	NRT_TRACE_NR_TYPES,
};

struct nrt_sys_trace_config;

/* The time, or 0 while there is no trace; then nrt_trace_end() does nothing. */
uint64_t nrt_trace_begin(void);
void nrt_trace_end(uint64_t began, enum nrt_trace_type type, uint32_t vnc, NRT_STATUS status,
		   uint64_t bytes, const char *name);
void nrt_trace_close(void);
/* A list of those of @names whose bit is set, to be freed. */
NRT_STATUS nrt_names_list(const char *const *names, unsigned int nr, uint32_t bits,
			  const char ***list, size_t *count);
void nrt_trace_forget(void);
/*
 * Start and stop under the life lock; then write what was not fetched, and close @fd,
 * which may be the -errno of opening @name.
 */
NRT_STATUS nrt_trace_on(const struct nrt_sys_trace_config *config);
NRT_STATUS nrt_trace_off(void);
NRT_STATUS nrt_trace_write(int fd, const char *name);

/* ---- queued requests --------------------------------------------------------------- */

#define NRT_MAX_INFLIGHT 63u		/* uapi/FACTS.md 11 */

/* The calling thread is one of a queue, in a function that it calls back. */
bool nrt_on_worker(void);
bool nrt_async_implicit(void);
NRT_STATUS nrt_async_execute(struct nrt_model *model, const struct nrt_set *in,
			     const struct nrt_set *out, int queue, bool implicit, NRT_STATUS *ret,
			     uint64_t *seq);
/* Only if it is queued it is the queue's. */
NRT_STATUS nrt_async_collective(struct nrt_cc_context *c, uint32_t vnc, int queue,
				NRT_STATUS *ret, uint64_t *seq);
void nrt_async_stop(void);
void nrt_async_close(void);
void nrt_async_forget(void);

/* ---- collectives ------------------------------------------------------------------- */

/* In a thread that ends before the runtime does. */
NRT_STATUS nrt_cc_run(const struct nrt_cc_context *c, uint32_t queue);
/* NULL is allowed. */
void nrt_cc_free(struct nrt_cc_context *c);
/* Under the life lock for writing. */
void nrt_cc_close(void);
void nrt_cc_forget(void);

#endif

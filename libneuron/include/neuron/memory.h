/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** @file memory.h
 * @brief Memory of devices, and the DMA queues that move it.
 */
#ifndef NEURON_MEMORY_H
#define NEURON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <neuron/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup memory Memory
 * @{ */

struct neuron_mem;

/** @brief Purpose of memory; the numbers are those of mem_alloc_category_t. */
enum neuron_mem_category {
	NEURON_MEM_HOST_OTHER = 0,
	NEURON_MEM_HOST_CODE = 1,
	NEURON_MEM_HOST_TENSORS = 2,
	NEURON_MEM_HOST_CONSTANTS = 3,
	NEURON_MEM_HOST_MISC = 4,
	NEURON_MEM_HOST_DRIVER = 5,
	NEURON_MEM_HOST_NOTIFICATION = 6,
	NEURON_MEM_OTHER = 7,
	NEURON_MEM_CODE = 8,
	NEURON_MEM_TENSORS = 9,
	NEURON_MEM_CONSTANTS = 10,
	NEURON_MEM_SCRATCHPAD = 11,		/**< shared by the models of a core */
	NEURON_MEM_MISC = 12,			/**< "runtime" */
	NEURON_MEM_DRIVER = 13,
	NEURON_MEM_COLLECTIVES = 14,
	NEURON_MEM_SCRATCHPAD_PRIVATE = 15,
	NEURON_MEM_NOTIFICATION = 16,
	NEURON_MEM_HOST_RINGS = 17,
	NEURON_MEM_RINGS = 18,
	NEURON_MEM_SCRATCHPAD_CONTIGUOUS = 19,
	NEURON_MEM_NR_CATEGORIES = 20,
};

/** @brief Why an allocation failed. */
enum neuron_mem_reason {
	NEURON_MEM_REASON_NONE = 0,
	NEURON_MEM_REASON_FULL = 1,		/**< fewer bytes free than requested */
	NEURON_MEM_REASON_FRAGMENTED = 2,	/**< enough free, but no run that long */
	NEURON_MEM_REASON_ALIGNMENT = 3,	/**< a run that long, but none aligned */
	NEURON_MEM_REASON_CAPPED = 4,		/**< a limit was reached */
	NEURON_MEM_REASON_HOST = 5,		/**< host memory ran out */
};

/** @brief The figures at the moment an allocation failed. */
struct neuron_mem_failure {
	enum neuron_mem_reason reason;	/**< NONE if memory was not the cause */
	enum neuron_mem_category category;
	uint32_t hbm;
	uint32_t nc;
	uint64_t bytes;			/**< requested */
	uint64_t align;
	uint64_t total;			/**< of the device memory */
	uint64_t free;
	uint64_t largest_free;		/**< longest free run */
	uint64_t largest_aligned;	/**< longest free run that starts at @c align */
};

/* struct neuron_mem_opts.flags */
#define NEURON_MEM_F_HOST	0x1u	/**< host memory that the device can reach */
#define NEURON_MEM_F_LOW	0x2u	/**< prefer low addresses */
#define NEURON_MEM_F_HIGH	0x4u	/**< prefer high addresses */
#define NEURON_MEM_F_MOVABLE	0x8u	/**< device memory without an address, but while pinned */
#define NEURON_MEM_F_AT		0x10u	/**< device memory at an address, or none */

struct neuron_mem_opts {
	size_t size;
	uint32_t flags;
	uint32_t hbm;				/**< device memory, ignored for host memory */
	uint32_t nc;				/**< core that is charged */
	enum neuron_mem_category category;	/**< must fit host or device */
	uint64_t align;				/**< 0 or a power of two */
	struct neuron_mem_failure *failure;	/**< filled in with -ENOMEM, may be NULL */
	uint32_t owner;				/**< of neuron_owner_create(), 0: the process */
	uint64_t address;			/**< with #NEURON_MEM_F_AT: device address */
};

struct neuron_mem_info {
	size_t size;
	uint64_t address;	/**< device address */
	uint64_t bytes;		/**< rounded up to whole pages */
	uint64_t mmap_offset;
	uint32_t host;		/**< 1 host memory */
	uint64_t pid;		/**< process that allocated it */
};

/** @brief What neuron_hbm_compact() did. */
struct neuron_compaction {
	size_t size;
	uint64_t moves;		/**< allocations moved */
	uint64_t bytes;		/**< their bytes */
	uint64_t largest;	/**< longest free run that starts at the alignment */
};

/**
 * @brief Allocate memory. Device memory reads as zero.
 * @param opts	NULL: device memory 0, core 0, category "other"
 * @return 0, -ENOMEM (see @c failure), -EINVAL, -EOVERFLOW, -ENOENT (@c owner)
 */
int neuron_mem_alloc(struct neuron_device *device, uint64_t bytes,
		     const struct neuron_mem_opts *opts, struct neuron_mem **mem);
/**
 * @brief Free memory and its mappings by neuron_mem_map(). NULL is allowed. Rings and
 * transfers that still use it keep it in the driver until they end.
 */
void neuron_mem_free(struct neuron_mem *mem);
/** @brief Device address. Movable memory has one while it is pinned, else 0. */
uint64_t neuron_mem_address(const struct neuron_mem *mem);
/**
 * @brief Keep movable memory where it is, until neuron_mem_unpin() was called as often. Other
 * memory stays anyway. @param address may be NULL @return 0
 */
int neuron_mem_pin(struct neuron_mem *mem, uint64_t *address);
/** @return 0, -EINVAL it is movable and not pinned */
int neuron_mem_unpin(struct neuron_mem *mem);
/**
 * @brief Move movable memory that nobody uses, so that a request fits. @param bytes of the
 * request; 0: as long a free run as possible @param align of the request, 0 or a power of two
 * @param budget bytes to copy at most, 0: any number @param result may be NULL @return 0, also
 * if it does not fit; -EINVAL, -EIO, -ETIMEDOUT
 */
int neuron_hbm_compact(struct neuron_device *device, uint32_t hbm, uint64_t bytes, uint64_t align,
		       uint64_t budget, struct neuron_compaction *result);
/**
 * @brief Is memory to be moved when a request is refused although so much is free? It is, unless
 * the environment has NEURON_COMPACT=0 when the device is opened.
 */
void neuron_device_set_compact(struct neuron_device *device, bool on);
/** @brief Bytes that were requested. */
uint64_t neuron_mem_bytes(const struct neuron_mem *mem);
/** @brief Handle for the ioctl interface. */
uint64_t neuron_mem_handle(const struct neuron_mem *mem);
int neuron_mem_get_info(struct neuron_mem *mem, struct neuron_mem_info *info);
/** @brief Copy from memory to a buffer; blocks until done. @return 0, -EINVAL out of range */
int neuron_mem_read(struct neuron_mem *mem, uint64_t offset, void *buffer, uint64_t bytes);
int neuron_mem_write(struct neuron_mem *mem, uint64_t offset, const void *buffer,
		     uint64_t bytes);
/** @brief Copy between two allocations of a device; blocks until done. */
int neuron_mem_copy(struct neuron_mem *dst, uint64_t dst_offset, struct neuron_mem *src,
		    uint64_t src_offset, uint64_t bytes);
/**
 * @brief Start a copy like neuron_mem_copy(); one at a time for each core that memory is
 * charged to. @param eventfd signalled when it is done; negative: none @return 0,
 * -EINVAL, -EBUSY the previous copy was not finished
 */
int neuron_mem_copy_start(struct neuron_mem *dst, uint64_t dst_offset, struct neuron_mem *src,
			  uint64_t src_offset, uint64_t bytes, int eventfd);
/**
 * @brief Wait for the started copy, which neuron_mem_free() of one of them does, too.
 * @return its result; -EINVAL none was started with this pair
 */
int neuron_mem_copy_finish(struct neuron_mem *dst, struct neuron_mem *src);
int neuron_mem_set(struct neuron_mem *mem, uint64_t offset, int value, uint64_t bytes);
/** @brief Map all of it; the same address each time, valid until it is freed. */
int neuron_mem_map(struct neuron_mem *mem, void **address);
/**
 * @brief Make device memory longer in place; the added bytes read as zero. @param bytes
 * new length, not below the present one @param failure filled in with -ENOMEM except for
 * category, hbm and nc; may be NULL @return 0, -ENOMEM the memory behind it is not free,
 * -EINVAL, -EBUSY it is mapped
 */
int neuron_mem_grow(struct neuron_mem *mem, uint64_t bytes, struct neuron_mem_failure *failure);
/**
 * @brief Make device memory shorter in place; the remaining bytes do not change. @param
 * bytes new length, not 0 and not above the present one @return 0, -EINVAL, -EBUSY it is
 * mapped, exported, in a ring or a transfer, -EOPNOTSUPP it was allocated with no more than
 * 1 MiB, or the driver cannot
 */
int neuron_mem_shrink(struct neuron_mem *mem, uint64_t bytes);

#define NEURON_MEM_EXPORT_RDONLY	0x1u	/**< the descriptor gives no write access */

/**
 * @brief Make a dma-buf of all of it, for other devices and other processes.
 *
 * The dma-buf keeps the memory even after it was freed and the process has ended. @param
 * flags NEURON_MEM_EXPORT_* @param fd to be closed by the caller @return 0, -EINVAL,
 * -EMFILE, -ENOMEM
 */
int neuron_mem_export(struct neuron_mem *mem, uint32_t flags, int *fd);
/**
 * @brief Make a dma-buf of a part of the memory that is mapped in this process.
 * @param address address of the mapping; whole pages, like @p bytes @param fd to be closed
 * by the caller @return 0, -EINVAL the range is not in a mapping of the driver,
 * -EOVERFLOW, -EMFILE, -ENOMEM
 */
int neuron_mem_export_range(struct neuron_device *device, uint64_t address, uint64_t bytes,
			    int *fd);
/**
 * @brief Memory from a dma-buf that a process has made with neuron_mem_export(). It stays
 * charged to that process; the descriptor may be closed.
 * @return 0, -EINVAL no such dma-buf, or a dma-buf of a part, -EXDEV of another device,
 *	   -EPERM read-only, -EBADF, -ENOMEM
 */
int neuron_mem_import(struct neuron_device *device, int fd, struct neuron_mem **mem);

/** @brief One consistent picture of a device memory. */
struct neuron_hbm_stats {
	size_t size;
	uint64_t total;			/**< including reserved bytes */
	uint64_t used;			/**< = sum of by_category = sum of by_core */
	uint64_t reserved;		/**< never allocated */
	uint64_t free;			/**< total - used - reserved */
	uint64_t largest_free;		/**< longest free run */
	uint64_t high_water;		/**< highest @c used */
	uint64_t nr_allocs;
	uint64_t own_process;		/**< bytes that the calling process holds */
	uint64_t driver;		/**< bytes that the driver holds */
	uint64_t metadata;		/**< host memory that the allocator uses */
	uint64_t fail_full;		/**< requests refused, by reason */
	uint64_t fail_fragmented;
	uint64_t fail_alignment;
	uint64_t fail_capped;
	uint64_t free_by_order[NEURON_MAX_ORDERS];
	uint64_t by_category[NEURON_MAX_CATEGORIES];
	uint64_t by_core[NEURON_MAX_CORES];
	uint64_t moves;			/**< allocations moved by neuron_hbm_compact() */
	uint64_t moved_bytes;
	uint64_t move_failures;		/**< given up: somebody came, or the copy failed */
};

/** Owner of a core: a process outside of the pid name space of the caller. */
#define NEURON_OWNER_OUTSIDE (-1)

/** @brief Memory charged to one core. */
struct neuron_core_stats {
	size_t size;
	int32_t owner;			/**< process that holds the core, 0 if none, NEURON_OWNER_OUTSIDE */
	uint64_t device_bytes[NEURON_MAX_CATEGORIES];
	uint64_t host_bytes;
};

int neuron_hbm_get_stats(struct neuron_device *device, uint32_t hbm,
			 struct neuron_hbm_stats *stats);
int neuron_core_get_stats(struct neuron_device *device, uint32_t nc,
			  struct neuron_core_stats *stats);

enum neuron_range_state {
	NEURON_RANGE_FREE = 0,		/**< a hole */
	NEURON_RANGE_USED = 1,		/**< the driver's, or the owner is not told */
	NEURON_RANGE_RESERVED = 2,	/**< never allocated */
	NEURON_RANGE_OWNED = 3,		/**< an allocation of a process */
};

/** @brief A hole of a device memory, or an allocation. */
struct neuron_range {
	uint64_t address;		/**< device address */
	uint64_t bytes;
	enum neuron_range_state state;
	int32_t pid;			/**< this and the rest: only of OWNED */
	uint32_t nc;			/**< core that is charged */
	enum neuron_mem_category category;
	uint32_t owner;			/**< of neuron_owner_create(), 0: the process itself */
	/**
	 * log2 of the alignment of its place, if neuron_hbm_compact() would move it now; else 0,
	 * as from drivers that do not tell
	 */
	uint32_t movable;
};

/**
 * @brief What is where in a device memory, in the order of addresses, without gaps.  Owners
 * are those of the caller's user, with CAP_SYS_ADMIN all.
 * @param list	to be freed with free() @param n its length
 * @return 0, -EINVAL, -ENOMEM
 */
int neuron_hbm_get_ranges(struct neuron_device *device, uint32_t hbm,
			  struct neuron_range **list, size_t *n);

#define NEURON_LABEL_MAX	16	/**< bytes of an owner's name with its closing 0 */
#define NEURON_OWNERS_MAX	256	/**< that a process may have on a device */

/**
 * @brief Make an owner: a part of the process that allocations are charged to.  Models have
 * one each, with the name of their file.
 * @param label	printable ASCII; what else there is becomes '?', what is too long is cut
 * @param owner	its number, for neuron_mem_opts.owner
 * @return 0, -EINVAL (no label), -ENOSPC (#NEURON_OWNERS_MAX exist), -ENOMEM, -ENOTTY (a
 * driver that has no owners)
 */
int neuron_owner_create(struct neuron_device *device, const char *label, uint32_t *owner);
/**
 * @brief Rename an owner, or with number 0 the process itself.
 * @return 0, -EINVAL, -ENOENT
 */
int neuron_owner_rename(struct neuron_device *device, uint32_t owner, const char *label);
/**
 * @brief No more memory for an owner. What it has stays charged to it until it is freed.
 * @return 0, -ENOENT
 */
int neuron_owner_release(struct neuron_device *device, uint32_t owner);

#define NEURON_OWNER_RELEASED	0x1u	/**< it gets no more memory */

/** @brief What an owner has of a device memory. */
struct neuron_owner {
	uint32_t id;			/**< 0: the process itself */
	uint32_t flags;			/**< NEURON_OWNER_RELEASED */
	int32_t pid;
	uint32_t reserved;
	char label[NEURON_LABEL_MAX];
	uint64_t bytes;			/**< now */
	uint64_t peak;			/**< most since the figures started */
	uint64_t steady;		/**< least since then */
	uint64_t byte_seconds;		/**< sum of bytes times seconds since then */
	uint64_t time;			/**< nanoseconds since then */
	uint64_t allocs;		/**< allocations now */
	uint64_t host_bytes;		/**< host memory now, of the whole device */
};

/** @brief All of a device memory, at the same instant. */
struct neuron_owners {
	size_t size;
	uint64_t used;			/**< allocated bytes */
	uint64_t driver;		/**< those that the driver holds */
	size_t count;
	struct neuron_owner *list;	/**< by process; to be freed with free() */
};

#define NEURON_OWNERS_CLEAR	0x1u	/**< then start the figures of this process again */

/**
 * @brief Who has how much of a device memory: owners of the caller's user, with CAP_SYS_ADMIN
 * all.  Then their bytes and those of the driver are @c used, unless memory that a process
 * exported has outlived it.
 * @param flags	#NEURON_OWNERS_CLEAR or 0
 * @return 0, -EINVAL, -ENOMEM, -EACCES (to start them again in a child)
 */
int neuron_hbm_get_owners(struct neuron_device *device, uint32_t hbm, uint32_t flags,
			  struct neuron_owners *owners);

#define NEURON_RELEASE_ITEMS	8u		/**< that are told of a set */
#define NEURON_RELEASE_PROCESS	UINT32_MAX	/**< all that a process has */
/** Bytes of a process of another user, whose memory the caller may not see. */
#define NEURON_RELEASE_UNKNOWN	UINT64_MAX

/** @brief Something that holds memory and could let go of it. */
struct neuron_release_item {
	int32_t pid;
	/**
	 * Of this process: number of an owner, which may be a model's, or 0, its tensors
	 * without one.  Of others #NEURON_RELEASE_PROCESS.
	 */
	uint32_t owner;
	char label[NEURON_LABEL_MAX];	/**< of the owner, or of the process */
	uint64_t bytes;			/**< or #NEURON_RELEASE_UNKNOWN */
};

/** @brief What would have to be released. */
struct neuron_release {
	size_t size;
	uint32_t count;
	uint32_t smallest;		/**< 1: no set of fewer will do; 0: too many to try all */
	uint64_t bytes;			/**< of all of them, or #NEURON_RELEASE_UNKNOWN */
	struct neuron_release_item item[NEURON_RELEASE_ITEMS];	/**< the first of @c count */
};

/**
 * @brief Of what holds memory and is the caller's to release (owners and tensors of this
 * process, other processes of its user, with CAP_SYS_ADMIN all), the smallest set without
 * which a request that was refused would fit.  Looks at the device as it is now; if it fits
 * by now, the set is empty.
 * @param failure	hbm, bytes and align count
 * @return 0, -ENOENT (it would not even fit without all of them), -EINVAL, -ENOMEM
 */
int neuron_mem_release(struct neuron_device *device, const struct neuron_mem_failure *failure,
		       struct neuron_release *release);
/** @brief "mlp, owner 2 (1.500GB) and process 77 (3.000GB)". @return @p text */
const char *neuron_release_text(const struct neuron_release *release, char *text, size_t size);

enum neuron_event_kind {
	NEURON_EVENT_ALLOC = 1,
	NEURON_EVENT_FREE = 2,
	NEURON_EVENT_GROW = 3,		/**< address, bytes: what was added */
	NEURON_EVENT_SHRINK = 4,	/**< what was taken away */
	NEURON_EVENT_REFUSE = 5,	/**< address: 0, or where it should have grown */
	NEURON_EVENT_MOVE = 6,		/**< address: where it is now */
};

/** @brief Something that happened to device memory. */
struct neuron_event {
	uint64_t seq;			/**< 1, 2, ... for each device memory */
	uint64_t time;			/**< CLOCK_MONOTONIC, nanoseconds */
	uint64_t address;
	uint64_t bytes;
	uint64_t align;			/**< asked for */
	uint64_t free;			/**< refused: free bytes then; moved: address before */
	enum neuron_event_kind kind;
	uint32_t flags;			/**< NEURON_MEM_F_LOW, _HIGH, _AT or 0, asked for */
	enum neuron_mem_reason reason;	/**< refused: why */
	uint32_t client;		/**< number of the process; from here on 0 if unknown */
	int32_t pid;			/**< 0: it has ended, or is the driver */
	uint32_t owner;
	uint32_t nc;			/**< core that is charged */
	enum neuron_mem_category category;
};

/**
 * @brief The last things that happened to a device memory, which the driver records all the
 * time, up to some thousand.  Who it was is told of processes of the caller's user, with
 * CAP_SYS_ADMIN of all.
 * @param since	only later ones than this number, 0: all; set to that of the last one
 * @param list	the oldest first; to be freed with free() @param n its length
 * @return 0, -EINVAL, -ENOMEM
 */
int neuron_hbm_get_events(struct neuron_device *device, uint32_t hbm, uint64_t *since,
			  struct neuron_event **list, size_t *n);

#define NEURON_RESOLVE_FREED	0x1u	/**< who had it before, also if it is in use */

/** @brief Whose an address of a device is, or was. */
struct neuron_location {
	size_t size;
	enum neuron_range_state state;	/**< of the memory now; FREE for what is no device memory */
	uint32_t freed;			/**< 1: the rest is what was there before it was freed */
	uint32_t hbm;			/**< UINT32_MAX: it is not in a device memory */
	uint32_t nc;			/**< core that is charged; UINT32_MAX: unknown */
	int32_t pid;			/**< 0: unknown */
	uint32_t owner;			/**< number of its owner */
	char label[NEURON_LABEL_MAX];	/**< of the owner, if that still exists */
	enum neuron_mem_category category;
	uint64_t address;		/**< where the allocation or the hole begins, if known */
	uint64_t bytes;			/**< its length */
	uint64_t freed_ns;		/**< nanoseconds since it was freed */
	char model[257];		/**< of this process, "" if it is of none */
	char variable[257];		/**< of the model; also a program or a ring */
	uint64_t offset;		/**< in the variable */
	uint64_t variable_bytes;	/**< its length */
	uint32_t others;		/**< variables of the model that share the byte */
	char text[256];			/**< all of this in one line */
};

/**
 * @brief Find out whose an address is, as in the error of a DMA queue: the variable of a model
 * that this process has loaded, or else the allocation; if it is free, who had it last, of the
 * last models that this process unloaded and what the driver recorded.
 * @param flags #NEURON_RESOLVE_FREED or 0
 * @return 0, also if nothing is known; -EINVAL, -ENOMEM
 */
int neuron_address_resolve(struct neuron_device *device, uint64_t address, uint32_t flags,
			   struct neuron_location *location);

/**
 * @brief The same of a pointer of this process into a mapping of device or host memory, as in a
 * SIGBUS or SIGSEGV: of memory that neuron_mem_map() mapped, also when it was freed since or the
 * device is gone, and of what the program mapped itself.  A handler of the signal may call it if
 * the fault was the program's own access, and not in a function of the C library that is not
 * reentrant.
 * @param location	@c address and @c bytes are those of the memory on the device
 * @return 0; -ENOENT: it is not, and was not lately, in a mapping of this device; -EINVAL, -EACCES
 * (in a child of the process that opened it), -ENODEV, -ENOMEM
 */
int neuron_pointer_resolve(struct neuron_device *device, const void *pointer,
			   struct neuron_location *location);

/**
 * @brief What is where in device memory, whose it is, and what happened to it last, as JSON of
 * one instant.  @c neuron-mem(1) describes it.  If the variable NEURON_MEMORY_DUMP names a
 * directory, neuron_mem_alloc() and neuron_mem_grow() leave one there when they are refused.
 * @param hbm	number of a device memory, -1: all, each of an instant of its own
 * @param json	to be freed with free()
 * @return 0, -EINVAL, -ENOMEM, -ENOTTY (the driver does not record what happens)
 */
int neuron_mem_snapshot(struct neuron_device *device, int32_t hbm, char **json);

#define NEURON_LIMIT_NONE	UINT64_MAX

/** @brief Subject of a limit of device memory, which counts all HBMs of the device. */
enum neuron_limit_kind {
	NEURON_LIMIT_CORE = 0,		/**< memory charged to a core */
	NEURON_LIMIT_PROCESS = 1,	/**< memory that a process holds */
	NEURON_LIMIT_DEFAULT = 2,	/**< same, of processes without a limit of their own */
};

/**
 * @brief Read a limit.
 * @param index	core, or process (0: the caller); 0 for the default
 * @param bytes	the limit in force, or NEURON_LIMIT_NONE; may be NULL
 * @param used	bytes charged now; may be NULL
 * @return 0, -EINVAL, -ENOENT the process has not opened the device
 */
int neuron_limit_get(struct neuron_device *device, enum neuron_limit_kind kind, int32_t index,
		     uint64_t *bytes, uint64_t *used);
/**
 * @brief Set a limit.
 *
 * Takes CAP_SYS_ADMIN, except that a process may lower its own. Memory in use stays;
 * allocations fail with -ENOMEM (CAPPED) until enough of it is freed. The limit of a
 * process ends when it closes the device. @param bytes or NEURON_LIMIT_NONE; for a
 * process: the default again @return 0, -EINVAL, -ENOENT, -EPERM
 */
int neuron_limit_set(struct neuron_device *device, enum neuron_limit_kind kind, int32_t index,
		     uint64_t bytes);

#define NEURON_REFUSALS_MAX	16	/* that the driver remembers */
#define NEURON_REFUSAL_TOP	3

/** @brief An allocation that the driver refused. */
struct neuron_mem_refusal {
	uint64_t number;		/**< counted from 1 */
	uint64_t time;			/**< CLOCK_REALTIME, nanoseconds */
	int32_t pid;			/**< process; 0 outside this pid namespace */
	bool host;			/**< for host memory */
	uint64_t limit;			/**< limit that was reached, or NEURON_LIMIT_NONE */
	struct neuron_mem_failure failure;
	struct {
		enum neuron_mem_category category;
		uint64_t bytes;
	} categories[NEURON_REFUSAL_TOP];	/**< that held most, most first */
	struct {
		int32_t pid;
		uint64_t bytes;
	} processes[NEURON_REFUSAL_TOP];	/**< that held most, most first */
};

/**
 * @brief Get the last allocations that were refused: the caller's own, or with
 *	  CAP_SYS_ADMIN all; the oldest first. @param since report only later ones than
 *	  this number; set to the value for the next call @param list room for *n @param n
 *	  set to the number stored @return 0, -EINVAL, -EFAULT, -ENOMEM
 */
int neuron_mem_get_refusals(struct neuron_device *device, uint64_t *since,
			    struct neuron_mem_refusal *list, size_t *n);

/** @brief Name of a category as in sysfs ("model_code"), "unknown" for an unknown one. */
const char *neuron_mem_category_name(enum neuron_mem_category category);
/** @brief Reason in one word: "full", "fragmented", "alignment", "capped", "host", "none". */
const char *neuron_mem_reason_name(enum neuron_mem_reason reason);

/** Most entries of a memory log; its CSV file has up to 4 MB. */
#define NEURON_MEMORY_LOG_MAX	32768u

/**
 * @brief Remember the last @p entries (de)allocations of device memory through this handle,
 * from now on; 0 stops. @return 0, -ENOMEM, -EINVAL more than NEURON_MEMORY_LOG_MAX
 */
int neuron_device_log_memory(struct neuron_device *device, size_t entries);
/**
 * @brief Write the log of a device memory to a descriptor, as CSV: time, operation (alloc,
 * free, grow, shrink), device, hbm, nc, category, bytes, address (0x0 if it failed),
 * alignment, result ("ok" or a reason). @return 0, -EINVAL there is no such memory, -errno
 */
int neuron_device_write_memory_log(struct neuron_device *device, uint32_t hbm, int fd);

/** @} @defgroup queue DMA queues
 * @{ */

#define NEURON_DESC_MAX_BYTES	65536u
#define NEURON_RING_MIN_SLOTS	32u
#define NEURON_RING_MAX_SLOTS	16777200u
#define NEURON_RING_UNUSED_SLOTS 16u

/** @brief DMA descriptor, little endian as in memory (16 bytes). */
struct neuron_descriptor {
	uint32_t control;
	uint32_t meta;
	uint64_t address;
};

enum neuron_ring_side {
	NEURON_RING_TX = 0,	/**< sources */
	NEURON_RING_RX = 1,	/**< destinations */
};

struct neuron_queue_setup {
	uint32_t engine;
	uint32_t queue;
	struct neuron_mem *tx;		/**< at least tx_slots descriptors, or NULL */
	struct neuron_mem *rx;
	uint32_t tx_slots;		/**< multiple of 16, see neuron_ring_slots() */
	uint32_t rx_slots;
};

/** @brief State of one side of a queue. */
struct neuron_queue_side {
	uint32_t hw_status;
	uint32_t sw_status;	/**< 1 disabled, 2 enabled, 3 aborted */
	uint64_t base;		/**< device address of the ring */
	uint32_t slots;
	uint32_t head;		/**< index fetched next */
	uint32_t tail;		/**< index added next */
};

struct neuron_queue_state {
	size_t size;
	struct neuron_queue_side tx;
	struct neuron_queue_side rx;
};

/**
 * @brief Slots of a ring that takes @p descriptors at a time: 16 stay unused, the
 * number is a multiple of 16 and at least 32.
 * @return slots, 0 if no ring is that long
 */
uint32_t neuron_ring_slots(uint64_t descriptors);
/**
 * @brief Descriptor pair that copies @p bytes (1..65536) from @p src to @p dst.
 *
 * Has ring id 1, which is valid between neuron_queue_init() and the first wrap. @param
 * barrier what later descriptors write comes after what this one and those before wrote
 */
void neuron_descriptor_copy(struct neuron_descriptor *tx, struct neuron_descriptor *rx,
			    uint64_t dst, uint64_t src, uint32_t bytes, bool barrier);
/**
 * @brief Point queues at rings and start from their first slot. The caller owns the queues
 * until neuron_queue_release(), and the driver keeps the rings as long. @return 0; on
 * error queues before the bad one may have been set up
 */
int neuron_queue_init(struct neuron_device *device, const struct neuron_queue_setup *setup,
		      size_t count);
/** @brief Check descriptors and copy them into a ring, from slot @p first. */
int neuron_queue_write(struct neuron_device *device, struct neuron_mem *ring,
		       enum neuron_ring_side side, uint32_t first,
		       const struct neuron_descriptor *descriptors, uint32_t count);
/**
 * @brief Tell the engine that descriptors were added. @return 0, -ENOENT the queue was not set
 * up, -ENOSPC no room for so many now, -EINVAL never in this ring
 */
int neuron_queue_start(struct neuron_device *device, uint32_t engine, uint32_t queue,
		       uint32_t tx_count, uint32_t rx_count);
/** @brief Tell the driver that descriptors were seen to be complete. */
int neuron_queue_ack(struct neuron_device *device, uint32_t engine, uint32_t queue,
		     uint32_t count);
int neuron_queue_get_state(struct neuron_device *device, uint32_t engine, uint32_t queue,
			   struct neuron_queue_state *state);
int neuron_queue_release(struct neuron_device *device, uint32_t engine, uint32_t queue);

/** @} */

#ifdef __cplusplus
}
#endif

#endif

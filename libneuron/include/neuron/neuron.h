/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * @file neuron.h
 * @brief Neuron devices: memory, rings, notifications, and models that run on them.
 *
 * Conventions
 *  - Functions that can fail return 0 or a negative errno value and leave their
 *    outputs untouched on error. They never print and never end the program.
 *  - Handles are opaque. An object made from another one (memory of a device, a
 *    model on a core) keeps it alive; the order of freeing does not matter.
 *  - Sizes and addresses are in bytes. "Device address" is an address as the
 *    device's DMA engines see it.
 *  - Option and result structures start with @c size, set by the caller to
 *    sizeof(the structure); members added later at the end read as 0, and
 *    results beyond @c size are not written. Options may be NULL for defaults.
 *  - Functions that sleep take a timeout or say so. A negative timeout waits for ever.
 *  - There is no global state. Objects may be used from several threads, except
 *    that freeing one must not race with any other use of it. In a child after
 *    fork() they can only be freed.
 *
 * Errors common to all functions that talk to the driver: -ENODEV the device is
 * gone, -EBUSY the core or queue belongs to another process, -EACCES the process
 * is not the one that opened the device, -ENOMEM, -EINVAL.
 */
#ifndef NEURON_NEURON_H
#define NEURON_NEURON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup device Devices
 * @{ */

struct neuron_device;
struct neuron_monitor;

#define NEURON_MAX_HBMS 8u
#define NEURON_MAX_CORES 16u
#define NEURON_MAX_CATEGORIES 32u
#define NEURON_MAX_ORDERS 32u

/** @brief A device found on this host. */
struct neuron_device_entry {
	unsigned int index;	/**< N of /dev/neuronN */
	unsigned int nr_cores;	/**< physical cores, 0 unknown */
	char path[64];		/**< device node */
	char syspath[192];	/**< directory in sysfs */
	char arch[16];		/**< sysfs architecture/arch_type, "" unknown */
	char instance[16];	/**< sysfs architecture/instance_type, "" unknown */
	char name[32];		/**< sysfs architecture/device_name, "" unknown */
};

/** @brief What a device is made of; constant while it exists. */
struct neuron_geometry {
	uint32_t arch;			/**< 1 inf1, 2 trn1 and inf2, 3 trn2, 4 trn3 */
	uint32_t nr_cores;		/**< physical NeuronCores */
	uint32_t nr_hbms;		/**< device memories */
	uint32_t nr_dma_engines;	/**< DMA engines, kernel-owned ones included */
	uint32_t engines_per_core;	/**< engines of core c start at c * engines_per_core */
	uint32_t nr_queues;		/**< queues of a DMA engine */
	uint32_t nr_semaphores;		/**< per core */
	uint32_t nr_events;		/**< per core */
	uint32_t nr_topsp;		/**< collective sequencers */
	uint32_t nr_nq_types;		/**< notification queue types of a core */
	uint32_t nr_nq_engines;		/**< notification queues of a type */
	uint32_t isa_version;		/**< instruction set of neuron_isa.h, 0 the vendor's */
	uint64_t host_window;		/**< bit set in device addresses of host memory */
	uint64_t tpb_size;		/**< window of a core */
	uint64_t sbuf_size;		/**< state buffer of a core */
	struct {
		uint64_t base;		/**< device address */
		uint64_t size;
	} hbm[NEURON_MAX_HBMS];
	uint64_t tpb_base[NEURON_MAX_CORES];	/**< device address of each core's window */
	uint8_t core_hbm[NEURON_MAX_CORES];	/**< device memory next to each core */
};

/** @brief What the driver says about a device and itself. */
struct neuron_device_info {
	size_t size;
	uint32_t arch;
	uint32_t revision;
	uint32_t nr_connected;
	uint32_t connected[8];		/**< numbers of the devices it is linked to */
	uint32_t compat_min;		/**< runtime interface versions the driver serves */
	uint32_t compat_max;
	uint64_t features;		/**< NEURON_DRIVER_FEATURE_* of the uapi header */
};

/** @brief What happened to a device. */
enum neuron_monitor_action {
	NEURON_DEVICE_ADDED = 1,
	NEURON_DEVICE_REMOVED = 2,
	NEURON_DEVICE_CHANGED = 3,
};

struct neuron_monitor_event {
	enum neuron_monitor_action action;
	struct neuron_device_entry entry;
};

/**
 * @brief List the devices of this host, by number.
 * @param list	result, to be freed with neuron_device_list_free(); NULL if there are none
 * @param count	entries of @p list
 * @return 0, -ENOMEM, or the error of libudev
 */
int neuron_device_list(struct neuron_device_entry **list, size_t *count);
void neuron_device_list_free(struct neuron_device_entry *list);

/** @brief Watch devices come and go. @return 0, -ENOMEM, -errno of the netlink socket */
int neuron_monitor_open(struct neuron_monitor **monitor);
void neuron_monitor_close(struct neuron_monitor *monitor);
/** @brief File descriptor that becomes readable when there is an event. */
int neuron_monitor_fd(const struct neuron_monitor *monitor);
/** @brief Wait for an event. @return 0, -ETIMEDOUT */
int neuron_monitor_read(struct neuron_monitor *monitor, struct neuron_monitor_event *event,
			int timeout_ms);

/** @brief Open /dev/neuronN for reading and writing. @return 0, -ENOENT, -EACCES, -EBUSY, ... */
int neuron_device_open(unsigned int index, struct neuron_device **device);
/** @brief Same from a descriptor, which belongs to the device afterwards (not on error). */
int neuron_device_open_fd(int fd, struct neuron_device **device);
/** @brief Drop the handle; the device is closed when its memory, queues and cores are gone too. */
void neuron_device_close(struct neuron_device *device);
int neuron_device_fd(const struct neuron_device *device);
/** @brief Number of the device on this host. */
unsigned int neuron_device_index(const struct neuron_device *device);
/** @brief Geometry; valid as long as the device, read only. */
const struct neuron_geometry *neuron_device_geometry(const struct neuron_device *device);
int neuron_device_get_info(struct neuron_device *device, struct neuron_device_info *info);
/**
 * @brief Reset cores and wait until they are ready (blocks for as long as that takes).
 *
 * Engines stop, FIFOs, state buffer, semaphores and events are cleared, the
 * notification queues of the cores are gone afterwards.
 * @param nc_map	bit per core
 * @return 0, -EBUSY, -EIO the reset failed
 */
int neuron_device_reset(struct neuron_device *device, uint32_t nc_map);
/**
 * @brief Signal an eventfd after each reset of a core that this process uses.
 * @param fd	an eventfd; negative: no longer
 * @return 0, -ENOENT nobody uses the core, -EBUSY another process does
 */
int neuron_device_set_reset_eventfd(struct neuron_device *device, uint32_t nc, int fd);

/** @} @defgroup memory Memory
 * @{ */

struct neuron_mem;

/** @brief What memory is for; the numbers are those of mem_alloc_category_t. */
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
	NEURON_MEM_REASON_FULL = 1,		/**< less free than asked for */
	NEURON_MEM_REASON_FRAGMENTED = 2,	/**< enough free, but no run that long */
	NEURON_MEM_REASON_ALIGNMENT = 3,	/**< a run that long, but none aligned */
	NEURON_MEM_REASON_CAPPED = 4,		/**< a limit was reached */
	NEURON_MEM_REASON_HOST = 5,		/**< the kernel ran out of its own memory */
};

/** @brief The figures at the moment an allocation failed. */
struct neuron_mem_failure {
	enum neuron_mem_reason reason;	/**< NONE if nothing failed for want of memory */
	enum neuron_mem_category category;
	uint32_t hbm;
	uint32_t nc;
	uint64_t bytes;			/**< asked for */
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

struct neuron_mem_opts {
	size_t size;
	uint32_t flags;
	uint32_t hbm;				/**< device memory, ignored for host memory */
	uint32_t nc;				/**< core that is charged */
	enum neuron_mem_category category;	/**< must fit host or device */
	uint64_t align;				/**< 0 or a power of two */
	struct neuron_mem_failure *failure;	/**< filled in with -ENOMEM, may be NULL */
};

struct neuron_mem_info {
	size_t size;
	uint64_t address;	/**< device address */
	uint64_t bytes;		/**< rounded up to whole pages */
	uint64_t mmap_offset;
	uint32_t host;		/**< 1 host memory */
	uint64_t pid;		/**< process that allocated it */
};

/**
 * @brief Allocate memory. Device memory reads as zero.
 * @param opts	NULL: device memory 0, core 0, category "other"
 * @return 0, -ENOMEM (see @c failure), -EINVAL, -EOVERFLOW
 */
int neuron_mem_alloc(struct neuron_device *device, uint64_t bytes,
		     const struct neuron_mem_opts *opts, struct neuron_mem **mem);
/**
 * @brief Give memory back; mappings made with neuron_mem_map() go too. NULL is allowed.
 *
 * Rings and transfers that still use it keep it in the driver until they end.
 */
void neuron_mem_free(struct neuron_mem *mem);
uint64_t neuron_mem_address(const struct neuron_mem *mem);
/** @brief Bytes asked for. */
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
 * @brief Start such a copy; one at a time for each core that memory is charged to.
 * @param eventfd	signalled when it is done; negative: none
 * @return 0, -EINVAL, -EBUSY the one before was not finished
 */
int neuron_mem_copy_start(struct neuron_mem *dst, uint64_t dst_offset, struct neuron_mem *src,
			  uint64_t src_offset, uint64_t bytes, int eventfd);
/** @brief Wait for it. @return its result; -EINVAL none was started */
int neuron_mem_copy_finish(struct neuron_mem *dst, struct neuron_mem *src);
int neuron_mem_set(struct neuron_mem *mem, uint64_t offset, int value, uint64_t bytes);
/** @brief Map all of it; the same address each time, valid until it is freed. */
int neuron_mem_map(struct neuron_mem *mem, void **address);
/**
 * @brief Make device memory longer where it is; what is added reads as zero.
 * @param bytes	new length, not below the present one
 * @param failure	filled in with -ENOMEM but for category, hbm and nc; may be NULL
 * @return 0, -ENOMEM the memory behind it is not free, -EINVAL, -EBUSY it is mapped
 */
int neuron_mem_grow(struct neuron_mem *mem, uint64_t bytes, struct neuron_mem_failure *failure);
/**
 * @brief Make device memory shorter where it is; what is left does not change.
 * @param bytes	new length, not 0 and not above the present one
 * @return 0, -EINVAL, -EBUSY it is mapped, exported, in a ring or a transfer, -EOPNOTSUPP it
 *	   was allocated with no more than 1 MiB, or the driver cannot
 */
int neuron_mem_shrink(struct neuron_mem *mem, uint64_t bytes);

#define NEURON_MEM_EXPORT_RDONLY	0x1u	/**< a descriptor that cannot be written through */

/**
 * @brief Make a dma-buf of all of it, for other devices and other processes.
 *
 * The dma-buf keeps the memory, also after it was freed and the process has ended.
 * @param flags	NEURON_MEM_EXPORT_*
 * @param fd	to be closed by the caller
 * @return 0, -EINVAL, -EMFILE, -ENOMEM
 */
int neuron_mem_export(struct neuron_mem *mem, uint32_t flags, int *fd);
/**
 * @brief Memory from a dma-buf that a process has made with neuron_mem_export(). It stays
 * charged to that process; the descriptor may be closed.
 * @return 0, -EINVAL no such dma-buf or only of a part, -EXDEV of another device,
 *	   -EPERM read-only, -EBADF, -ENOMEM
 */
int neuron_mem_import(struct neuron_device *device, int fd, struct neuron_mem **mem);

/** @brief One consistent picture of a device memory. */
struct neuron_hbm_stats {
	size_t size;
	uint64_t total;			/**< reserved bytes included */
	uint64_t used;			/**< = sum of by_category = sum of by_core */
	uint64_t reserved;		/**< never handed out */
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
};

/** @brief Memory charged to one core. */
struct neuron_core_stats {
	size_t size;
	int32_t owner;			/**< process that holds the core, 0 if none */
	uint64_t device_bytes[NEURON_MAX_CATEGORIES];
	uint64_t host_bytes;
};

int neuron_hbm_get_stats(struct neuron_device *device, uint32_t hbm,
			 struct neuron_hbm_stats *stats);
int neuron_core_get_stats(struct neuron_device *device, uint32_t nc,
			  struct neuron_core_stats *stats);

#define NEURON_LIMIT_NONE	UINT64_MAX

/** @brief What a limit of device memory is for; it is over all HBMs of the device. */
enum neuron_limit_kind {
	NEURON_LIMIT_CORE = 0,		/**< what is charged to a core */
	NEURON_LIMIT_PROCESS = 1,	/**< what a process holds */
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
 * Takes CAP_SYS_ADMIN, except that a process may lower its own. What is in use stays;
 * allocations fail with -ENOMEM (CAPPED) until enough is back. The limit of a process
 * ends when it closes the device.
 * @param bytes	or NEURON_LIMIT_NONE; for a process: the default again
 * @return 0, -EINVAL, -ENOENT, -EPERM
 */
int neuron_limit_set(struct neuron_device *device, enum neuron_limit_kind kind, int32_t index,
		     uint64_t bytes);

#define NEURON_REFUSALS_MAX	16	/* that the driver remembers */
#define NEURON_REFUSAL_TOP	3

/** @brief An allocation that the driver refused. */
struct neuron_mem_refusal {
	uint64_t number;		/**< counted from 1 */
	uint64_t time;			/**< CLOCK_REALTIME, nanoseconds */
	int32_t pid;			/**< who asked; 0 outside this pid namespace */
	bool host;			/**< for host memory */
	uint64_t limit;			/**< that was reached, or NEURON_LIMIT_NONE */
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
 * @brief Get the last allocations that were refused: the caller's own, with
 *	  CAP_SYS_ADMIN all; the oldest first.
 * @param since	only later ones than this number; set to where to go on
 * @param list	room for *n
 * @param n	set to the number stored
 * @return 0, -EFAULT, -ENOMEM
 */
int neuron_mem_get_refusals(struct neuron_device *device, uint64_t *since,
			    struct neuron_mem_refusal *list, size_t *n);

/** @brief Name of a category as in sysfs ("model_code"), "unknown" for an unknown one. */
const char *neuron_mem_category_name(enum neuron_mem_category category);
/** @brief Reason in one word: "full", "fragmented", "alignment", "capped", "host", "none". */
const char *neuron_mem_reason_name(enum neuron_mem_reason reason);

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
 * Ring id 1, the one that is valid between neuron_queue_init() and the first wrap.
 * @param barrier	everything before is written before this is
 */
void neuron_descriptor_copy(struct neuron_descriptor *tx, struct neuron_descriptor *rx,
			    uint64_t dst, uint64_t src, uint32_t bytes, bool barrier);
/**
 * @brief Point queues at rings and start from their first slot. The caller owns them until
 * neuron_queue_release(); the rings stay in the driver as long.
 * @return 0; on error queues before the bad one may have been set up
 */
int neuron_queue_init(struct neuron_device *device, const struct neuron_queue_setup *setup,
		      size_t count);
/** @brief Check descriptors and copy them into a ring, from slot @p first. */
int neuron_queue_write(struct neuron_device *device, struct neuron_mem *ring,
		       enum neuron_ring_side side, uint32_t first,
		       const struct neuron_descriptor *descriptors, uint32_t count);
/** @brief Tell the engine that descriptors were added. */
int neuron_queue_start(struct neuron_device *device, uint32_t engine, uint32_t queue,
		       uint32_t tx_count, uint32_t rx_count);
/** @brief Tell the driver that descriptors were seen to be complete. */
int neuron_queue_ack(struct neuron_device *device, uint32_t engine, uint32_t queue,
		     uint32_t count);
int neuron_queue_get_state(struct neuron_device *device, uint32_t engine, uint32_t queue,
			   struct neuron_queue_state *state);
int neuron_queue_release(struct neuron_device *device, uint32_t engine, uint32_t queue);

/** @} @defgroup notify Notification queues, semaphores, events
 * @{ */

struct neuron_nq;

enum neuron_nq_type {
	NEURON_NQ_TRACE = 0,
	NEURON_NQ_NOTIFY = 1,
	NEURON_NQ_EVENT = 2,
	NEURON_NQ_ERROR = 3,
	NEURON_NQ_TRACE_DMA = 4,
	NEURON_NQ_THROTTLE = 5,
};

/** @brief An entry, host byte order; see struct neuron_isa_notice of neuron_isa.h. */
struct neuron_notice {
	uint32_t id;
	uint8_t engine;
	uint8_t kind;	/**< 1 notify, 2 engine stopped, 3 DMA queue stopped */
	uint8_t code;	/**< enum neuron_isa_error */
	uint8_t queue;	/**< DMA queue of a DMA error */
	uint64_t data;
};

struct neuron_nq_opts {
	size_t size;
	uint32_t nc;
	enum neuron_nq_type type;
	uint32_t engine;
	uint32_t bytes;		/**< of the queue, a power of two; 0 = 16384 */
};

/**
 * @brief Make a notification queue in host memory, empty; an existing one is replaced.
 * @return 0, -EINVAL, -ENOMEM, -EBUSY
 */
int neuron_nq_open(struct neuron_device *device, const struct neuron_nq_opts *opts,
		   struct neuron_nq **nq);
/** @brief Give it back; NULL is allowed. What the device still reports is lost. */
void neuron_nq_close(struct neuron_nq *nq);
/**
 * @brief Have an eventfd signalled after an entry was written; -1 stops that.
 *
 * Replaces the one that neuron_nq_wait() uses.
 */
int neuron_nq_set_eventfd(struct neuron_nq *nq, int fd);
/** @brief Take the next entry without waiting. @return 0, -EAGAIN there is none */
int neuron_nq_read(struct neuron_nq *nq, struct neuron_notice *notice);
/** @brief Take the next entry, sleeping until there is one. @return 0, -ETIMEDOUT */
int neuron_nq_wait(struct neuron_nq *nq, struct neuron_notice *notice, int timeout_ms);

int neuron_semaphore_read(struct neuron_device *device, uint32_t nc, uint32_t index,
			  uint32_t *value);
int neuron_semaphore_set(struct neuron_device *device, uint32_t nc, uint32_t index,
			 uint32_t value);
int neuron_semaphore_add(struct neuron_device *device, uint32_t nc, uint32_t index,
			 uint32_t value);
int neuron_semaphore_subtract(struct neuron_device *device, uint32_t nc, uint32_t index,
			      uint32_t value);
int neuron_event_read(struct neuron_device *device, uint32_t nc, uint32_t index,
		      uint32_t *value);
int neuron_event_set(struct neuron_device *device, uint32_t nc, uint32_t index,
		     uint32_t value);

/** @} @defgroup model Cores and models
 * @{ */

struct neuron_core;
struct neuron_model;

/** @brief Coarse reason why loading failed. */
enum neuron_error_kind {
	NEURON_ERROR_NONE = 0,
	NEURON_ERROR_NEFF_INVALID,	/**< the file is broken */
	NEURON_ERROR_NEFF_UNSUPPORTED,	/**< version or feature nobody here knows */
	NEURON_ERROR_MEMORY,		/**< device or host memory, see @c memory */
	NEURON_ERROR_LIMIT,		/**< more queues, semaphores, descriptors than there are */
	NEURON_ERROR_DEVICE,		/**< the driver refused something */
	NEURON_ERROR_CORES,		/**< it is made for more cores */
};

/** @brief What went wrong and where, in one line without a newline. */
struct neuron_error {
	size_t size;
	enum neuron_error_kind kind;
	char text[512];
	struct neuron_mem_failure memory;
	char name[257];			/**< in the header of the NEFF, "" it has none */
};

struct neuron_report_model;

/**
 * @brief Called when device memory ran out, before what was taken so far is given back.
 * @param failure	why
 * @param model	name and memory so far of the model that was being loaded, or NULL
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

struct neuron_model_opts {
	size_t size;
	bool verify_hash;		/**< compare the archive with the hash of the header */
	struct neuron_error *error;	/**< filled in on error, may be NULL */
	uint32_t node;			/**< of a network of several nodes: which to load */
	struct neuron_load_stats *stats;	/**< filled in on success, may be NULL */
	neuron_refused_fn refused;	/**< may be NULL */
	void *refused_data;
	uint64_t max_unpacked;		/**< bytes that the archive may unpack to; 0: 16 GiB */
	/** Zero what a constant's file does not cover; else such a file is refused. */
	bool short_constants;
	uint32_t cores;			/**< physical cores set aside for it; 0: those of the core */
};

/** @brief Where the time of a load went, in nanoseconds; not measured for who does not ask. */
struct neuron_load_stats {
	size_t size;
	uint64_t total_ns;
	uint64_t archive_ns;		/**< header, hash, unpacking */
	uint64_t json_ns;		/**< descriptions parsed and checked */
	uint64_t plan_ns;		/**< programs looked through, places decided */
	uint64_t memory_ns;		/**< device memory taken, the scratchpad included */
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
	uint32_t ndim;		/**< 0: dimensions of 32 bits cannot say it, see @c bytes */
	uint32_t shape[8];
};

/** @brief Where the memory of a model went, in bytes as the driver accounts them. */
struct neuron_model_usage {
	size_t size;
	uint64_t code;
	uint64_t constants;
	uint64_t scratchpad;		/**< private to the model */
	uint64_t runtime;
	uint64_t rings_io;		/**< descriptors from or to inputs or outputs */
	uint64_t rings_spill;		/**< descriptors between other variables */
	uint64_t rings_runtime;		/**< instruction fetch */
	uint64_t shared_scratchpad;	/**< what it needs of the scratchpad of its core */
	uint64_t descriptors;		/**< in all rings */
	uint64_t rings_collectives;
	uint64_t collectives;
};

/** @brief Binds memory to an input or output for one run. */
struct neuron_io {
	const char *name;
	struct neuron_mem *mem;		/**< of the same device, for a network of one of its */
	uint64_t offset;
	uint64_t bytes;			/**< at least the size of the tensor */
};

enum neuron_run_status {
	NEURON_RUN_DONE = 0,
	NEURON_RUN_TIMEOUT,		/**< no notification in time */
	NEURON_RUN_ENGINE_ERROR,	/**< an engine stopped, see @c notice */
	NEURON_RUN_DMA_ERROR,		/**< a DMA queue stopped, see @c notice */
};

struct neuron_run_result {
	size_t size;
	enum neuron_run_status status;
	struct neuron_notice notice;	/**< of the error */
	char text[256];			/**< the error in one line */
};

/**
 * @brief Take a core for loading and running models: reset it, make its notification queues.
 *
 * A logical core of two (opts.lnc) is core @p nc, which is even, and the next one.
 * @return 0, -EBUSY another process has it, -EINVAL no such core, -EOPNOTSUPP no
 * instruction set that this library knows
 */
int neuron_core_open(struct neuron_device *device, uint32_t nc,
		     const struct neuron_core_opts *opts, struct neuron_core **core);
/** @brief Drop the handle; the core goes when its last model is unloaded. */
void neuron_core_close(struct neuron_core *core);
struct neuron_device *neuron_core_device(const struct neuron_core *core);
uint32_t neuron_core_index(const struct neuron_core *core);
/** @brief Bytes of the shared scratchpad of the core now. */
uint64_t neuron_core_scratchpad(struct neuron_core *core);
/** @brief What a caller of the library knows about a core, and the library does not. */
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
 * @return 0, -EINVAL bad NEFF, -EOPNOTSUPP unknown version or feature, -ENOMEM,
 * -E2BIG a limit of the device or of @p opts, -ERANGE it is made for more cores;
 * @c opts->error says more. Nothing stays allocated on error.
 */
int neuron_model_load(struct neuron_core *core, const void *bytes, size_t size,
		      const struct neuron_model_opts *opts, struct neuron_model **model);
/** @brief Wait for a run in progress, then give everything back. NULL is allowed. */
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
/** @brief Why the model cannot be run, NULL if it can. */
const char *neuron_model_obstacle(const struct neuron_model *model);
#define NEURON_MAX_OBSTACLES 8u
/** @brief All reasons (the first NEURON_MAX_OBSTACLES) from 0 on; NULL behind the last. */
const char *neuron_model_obstacles(const struct neuron_model *model, size_t index);
/**
 * @brief Run the model once; blocks until it is done or @p timeout_ms have passed.
 *
 * One model of a core runs at a time; callers queue. After an error or timeout
 * the core is reset, so that the next run starts clean.
 * @param io	every input and output of the model, in any order; others are ignored
 * @return 0, -EINVAL an input or output is missing, too small or elsewhere,
 * -EOPNOTSUPP see neuron_model_obstacle(), -ETIMEDOUT, -EIO an engine or a DMA
 * queue stopped (@p result), -ENODEV
 */
int neuron_model_run(struct neuron_model *model, const struct neuron_io *io, size_t nr_io,
		     int timeout_ms, struct neuron_run_result *result);

/** @} @defgroup compute Computing with device memory
 *
 * DMA engines of the software device can convert and combine elements on their way.
 * @{ */

#define NEURON_COMPUTE_MAX_SOURCES 16u

enum neuron_compute_op {
	NEURON_COMPUTE_CAST = 0,	/**< one source, in the type of the result */
	NEURON_COMPUTE_ADD = 1,		/**< sum, in fp32 whatever the types are */
	NEURON_COMPUTE_FMA = 2,		/**< sum of the sources, each times @c scale */
	NEURON_COMPUTE_MIN = 3,
	NEURON_COMPUTE_MAX = 4,
};

/** @brief Elements that follow each other, in memory of the core's device or of the host. */
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
 * @brief Compute element by element and wait for it.
 *
 * Waits for a run in progress on the core, and runs wait for it. The result may lie exactly
 * over a source of the same element size; over sources in other ways it is undefined.
 * The first call on a core takes 68 KiB of memory for rings, which go with the core.
 * @return 0, -EINVAL unknown type or operation, operand elsewhere or beyond its memory,
 * -ETIMEDOUT, -EIO the queue stopped, -EOPNOTSUPP the device cannot, -ENOMEM, -ENODEV
 */
int neuron_core_compute(struct neuron_core *core, const struct neuron_compute *compute,
			int timeout_ms);

/** @} @defgroup profile Profiles
 *
 * While a core is profiled, the device writes down when its engines begin and end each
 * instruction, when its DMA queues begin and end each packet, and when its semaphores
 * change. It does so in buffers in device memory, category "notifications".
 * @{ */

#define NEURON_PROFILE_MAX_KINDS 8

struct neuron_profile;

/** @brief Kinds of buffers; each can have a size of its own. */
enum neuron_profile_buffer {
	NEURON_PROFILE_EVENT = 0,	/**< instructions, one for each engine; semaphores, one */
	NEURON_PROFILE_DMA,		/**< packets, one for each DMA engine of the core */
	NEURON_PROFILE_THROTTLE,	/**< one; nothing is written to it on software devices */
	NEURON_PROFILE_CC_CORE_INSTRUCTION,	/**< same */
	NEURON_PROFILE_CC_CORE_EVENT,	/**< same */
	NEURON_PROFILE_NR_BUFFERS,
};

struct neuron_profile_opts {
	size_t size;
	/** Bytes of each buffer, a power of two from 4096 to 2^30; 0: 128 MiB for EVENT, else
	 * 64 MiB, which is 1984 MiB in all for each physical core of a trn2. There is room for
	 * kinds to come: 0 */
	uint64_t bytes[NEURON_PROFILE_MAX_KINDS];
	struct neuron_model *model;	/**< only runs of this model on the core; NULL: of all */
	uint64_t last_only;		/**< 1: forget what was before when a run begins */
	struct neuron_mem_failure *failure;	/**< filled in with -ENOMEM, may be NULL */
	neuron_refused_fn refused;	/**< may be NULL; needs @c failure */
	void *refused_data;
};

/** @brief What was collected of the runs that are wanted; see neuron_profile_write() for when. */
struct neuron_profile_stats {
	size_t size;
	uint64_t runs;
	uint64_t instructions;
	uint64_t packets;
	uint64_t bytes;			/**< written by the packets */
	uint64_t semaphores;		/**< changes of semaphores */
	uint64_t lost;			/**< entries that did not fit into a buffer; and what was
					 * beyond the limits of neuron_profile(3) */
	uint64_t memory;		/**< bytes of the buffers now */
	int64_t error;			/**< first thing that went wrong since the start, or 0 */
};

/**
 * @brief Start: make the buffers, and reset the core. Models stay loaded.
 * @return 0, -EBUSY the core is being profiled, -ENOMEM, -EINVAL a size, or the model is
 * not on the core; -EOPNOTSUPP the model cannot be run
 */
int neuron_profile_start(struct neuron_core *core, const struct neuron_profile_opts *opts,
			 struct neuron_profile **profile);
/**
 * @brief Stop: collect what is in the buffers, give them back. Resets the core.
 *
 * Without the reset the driver keeps the memory of the buffers. It is tried again by
 * neuron_profile_close(), by whatever next loads or runs a model on the core or starts a
 * profile of it, and when the core is closed.
 * @return 0, -EALREADY, or what went wrong since the start
 */
int neuron_profile_stop(struct neuron_profile *profile);
/**
 * @brief Write what was collected, in the Trace Event format (see neuron_profile(3)).
 *
 * Buffers are read when the core is reset. While the profile is on, this does so; after
 * neuron_profile_stop() it may be called as often as wanted. Runs do not wait for @p fd.
 * @param fd	written to from its present position
 * @return 0, -errno of the descriptor, -ENOMEM, or why the reset failed; or, with the file
 * written, why something that was run is missing in it
 */
int neuron_profile_write(struct neuron_profile *profile, int fd);
int neuron_profile_get_stats(struct neuron_profile *profile, struct neuron_profile_stats *stats);
/** @brief Stop it if it is on, and forget everything. NULL is allowed. */
void neuron_profile_close(struct neuron_profile *profile);
/**
 * @brief Take the sizes of buffers that the environment asks for, NEURON_RT_PROFILE_BUF_*_MB,
 * rounded up to a power of two; the others stay.
 * @return 0, -EINVAL @p variable is not a number from 1 to 1024
 */
int neuron_profile_read(struct neuron_profile_opts *opts, const char **variable);
/** @brief Bytes of device memory that a profile takes for each physical core; 0: -EINVAL. */
uint64_t neuron_profile_memory(const struct neuron_geometry *geometry,
			       const struct neuron_profile_opts *opts);

/** @} @defgroup group Core groups and networks
 *
 * A pool has the cores that a program uses. Groups take cores from it; a core is in
 * one group at most. Networks are loaded on a group, of which one at a time runs;
 * networks of different groups run in parallel. A network has one or more nodes, on
 * cores or on the host (docs/loading.md), and a queue of requests.
 * @{ */

struct neuron_pool;
struct neuron_group;
struct neuron_net;

/** @brief Make a pool; it holds the cores until neuron_pool_close(). @return 0, -EINVAL
 * none or one twice, -ENOMEM */
int neuron_pool_open(struct neuron_core *const *cores, size_t nr, struct neuron_pool **pool);
/** @brief Drop the handle; the pool goes with its last group. */
void neuron_pool_close(struct neuron_pool *pool);
/** @brief Cores that are in no group. */
size_t neuron_pool_free(struct neuron_pool *pool);

/** @brief Take cores from a pool. @return 0, -EINVAL, -EBUSY not so many are free, -ENOMEM */
int neuron_group_create(struct neuron_pool *pool, size_t nr, struct neuron_group **group);
/** @brief Give them back. @return 0, -EBUSY networks are loaded */
int neuron_group_destroy(struct neuron_group *group);

/** @brief A tensor of an operation on the host. */
struct neuron_host_tensor {
	const char *name;
	void *data;
	uint64_t bytes;
};

/**
 * @brief An operation on the host; called from threads of the library, for different
 * requests at the same time if it occurs in several networks.
 * @return 0, or a negative errno value with which the request fails
 */
typedef int (*neuron_host_fn)(void *context, const struct neuron_host_tensor *in, size_t nr_in,
			      const struct neuron_host_tensor *out, size_t nr_out);

struct neuron_host_op {
	const char *name;
	neuron_host_fn fn;
	void *context;
};

struct neuron_net_opts {
	size_t size;
	struct neuron_group *group;	/**< NULL: a group of its own, and start it */
	uint32_t depth;			/**< requests in flight, up to 1024; 0: nodes + 1 */
	const struct neuron_host_op *ops;	/**< copied */
	size_t nr_ops;
	/** Run shared objects of the NEFF in this process: only for files that are trusted. */
	bool load_objects;
	bool verify_hash;
	struct neuron_error *error;	/**< filled in on error, may be NULL */
	int timeout_ms;			/**< of one execution; 0: 30 s, negative: none */
	uint64_t max_unpacked;		/**< as in neuron_model_opts */
	bool short_constants;		/**< same */
};

/** @brief How a network uses its cores. */
enum neuron_net_mode {
	NEURON_NET_NORMAL = 0,	/**< a core for each node: requests are pipelined */
	NEURON_NET_SHARED = 1,	/**< nodes share a core: one request at a time */
};

#define NEURON_NET_MAX_ERRORS 8u

/** @brief How a request ended. */
struct neuron_net_result {
	size_t size;
	int status;		/**< 0 or the negative errno value of the first error */
	uint32_t nr_errors;
	char errors[NEURON_NET_MAX_ERRORS][256];	/**< what led to it, the cause first */
};

/**
 * @brief Load a network on a group: in normal mode if it has a core for each node, else in
 * shared mode.
 *
 * Without a group it takes as many free cores as it has nodes, and is running when
 * this returns.
 * @return as neuron_model_load(); -EBUSY not enough free cores; -ENOENT an operation of the
 * host is not among @c ops; -EPERM it is in a shared object and @c load_objects is not set
 */
int neuron_net_load(struct neuron_pool *pool, const void *bytes, size_t size,
		    const struct neuron_net_opts *opts, struct neuron_net **net);
/** @brief Stop it and give everything back, requests included; NULL is allowed. */
void neuron_net_unload(struct neuron_net *net);
enum neuron_net_mode neuron_net_mode(const struct neuron_net *net);
/** @brief Accept requests. @return 0, -EALREADY, -EBUSY another network of the group runs */
int neuron_net_start(struct neuron_net *net);
/** @brief Finish what is queued, accept no more. @return 0, -EALREADY */
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
 * They are of any device of the group; a node on another device works on a copy.
 * @param cookie names the request
 * @return 0, -EINVAL a tensor is missing, too small or elsewhere, -EAGAIN the queue is full:
 * as many requests as its depth are under way or were not waited for, -ESHUTDOWN not
 * running, -EACCES, -ENOMEM
 */
int neuron_net_submit(struct neuron_net *net, const struct neuron_io *io, size_t nr_io,
		      uint64_t *cookie);
/**
 * @brief Wait for a request, and take its result.
 * @return 0 it is done, see @p result; -ETIMEDOUT it is not yet; -ENOENT no such request
 */
int neuron_net_wait(struct neuron_net *net, uint64_t cookie, int timeout_ms,
		    struct neuron_net_result *result);
/** @brief Both. @return that of the request, see @p result */
int neuron_net_infer(struct neuron_net *net, const struct neuron_io *io, size_t nr_io,
		     struct neuron_net_result *result);
/** @brief Add 1 to an eventfd at the end of each request; -1: none. A duplicate is kept. */
int neuron_net_set_eventfd(struct neuron_net *net, int fd);

/** @} @defgroup report Memory report and preflight
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
	NEURON_REPORT_RINGS_RUNTIME,	/**< and rings that no known model has */
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

/** @brief What is charged to a logical core, and the models on it that are known. */
struct neuron_report_core {
	uint32_t nc;			/**< logical core of the device */
	int32_t owner;			/**< process that holds it, 0 none */
	uint64_t device_bytes[NEURON_MAX_CATEGORIES];	/**< as in neuron_core_stats */
	const struct neuron_report_model *models;
	size_t nr_models;
};

/** @brief One device memory and the cores that use it. */
struct neuron_report {
	size_t size;
	uint32_t device;		/**< number */
	uint32_t hbm;
	uint32_t lnc;			/**< physical cores of a logical one */
	const struct neuron_report_core *cores;
	size_t nr_cores;
	uint64_t total;			/**< of the memory, then; 0: what follows is not known */
	uint64_t free;
	uint64_t reserved;		/**< never handed out */
	uint64_t contiguous;		/**< 1: the scratchpad is in one piece */
	const char *limit_path;		/**< where the limit is set that refused it, or NULL */
	uint64_t limit;
	uint64_t limit_used;		/**< of that */
	uint64_t limit_core;		/**< 1: it is that of the core, else the process's */
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
 * @brief Why an allocation failed, who holds the memory, what would fit, what to try.
 * @param text	one line without a newline, to be freed with free()
 * @return 0, -ENOMEM
 */
int neuron_report_reason(const struct neuron_report *report,
			 const struct neuron_mem_failure *failure, char **text);
/** Entries that a memory log can have; written they are up to 4 MB. */
#define NEURON_MEMORY_LOG_MAX	32768u

/**
 * @brief Remember the last @p entries (de)allocations of device memory through this handle,
 * from now on; 0 stops. @return 0, -ENOMEM, -EINVAL more than NEURON_MEMORY_LOG_MAX
 */
int neuron_device_log_memory(struct neuron_device *device, size_t entries);
/**
 * @brief Write what is remembered of a device memory to a descriptor, as CSV: time, operation
 * (alloc, free, grow, shrink), device, hbm, nc, category, bytes, address (0x0 if it failed),
 * alignment, result ("ok" or a reason).
 * @return 0, -errno
 */
int neuron_device_write_memory_log(struct neuron_device *device, uint32_t hbm, int fd);
/** @brief "1.500GB": three decimals, binary multiples. @return @p text */
const char *neuron_report_size(uint64_t bytes, char *text, size_t size);

#define NEURON_MICROCODE_DEFAULT UINT64_MAX

/** @brief Where the runtime puts models: its defaults, and what the environment says. */
struct neuron_placement {
	size_t size;
	uint32_t lnc;			/**< as in neuron_core_opts, like the next two */
	bool contiguous;
	uint64_t page;
	uint64_t microcode;		/**< asked for, or NEURON_MICROCODE_DEFAULT */
	const char *variable;		/**< that is wrong, or has no effect; or NULL */
	const char *text;		/**< what is the matter with it */
};

/**
 * @brief Read NEURON_LOGICAL_NC_CONFIG, NEURON_RT_CONTIGUOUS_SCRATCHPAD,
 * NEURON_SCRATCHPAD_PAGE_SIZE and NEURON_RT_MICROCODE_MB as libnrt does.
 * @param pairs	the device has pairs of cores that share a memory
 * @return 0, -EINVAL the value of @c variable makes no sense
 */
int neuron_placement_read(bool pairs, struct neuron_placement *placement);
/**
 * @brief Bytes to set aside on each core of a device for microcode: what was asked for, or
 * 96 MiB, but no more than a sixteenth of a memory. @p placement may be NULL.
 */
uint64_t neuron_placement_microcode(const struct neuron_placement *placement,
				    const struct neuron_geometry *geometry);

/** @brief How a host would be set up. */
struct neuron_plan_opts {
	size_t size;
	uint64_t scratchpad_page;	/**< as in neuron_core_opts */
	uint64_t contiguous;		/**< same */
	uint32_t lnc;			/**< physical cores of a logical one, 1 or 2; 0 = 1 */
	uint32_t node;			/**< as in neuron_model_opts */
	struct neuron_error *error;	/**< filled in on error, may be NULL */
	uint64_t profile;		/**< neuron_profile_memory(); 0: the core is not profiled */
	uint64_t io_sets;		/**< how often inputs and outputs are there; 0: not counted */
	uint64_t io_single;		/**< 1: each time one tensor, as long as the longest */
	uint64_t collectives;		/**< staging of collective operations, bytes */
	uint64_t max_unpacked;		/**< as in neuron_model_opts */
	bool short_constants;		/**< same */
};

/** @brief What a NEFF takes of each physical core of a logical one. */
struct neuron_plan {
	size_t size;
	uint32_t nr_parts;
	struct neuron_model_usage parts[2];
	char name[257];
	uint64_t io;			/**< inputs and outputs, once, in whole pages */
	uint64_t io_longest;		/**< the longest of them */
	uint32_t cores;			/**< physical ones that its header asks for, at least 1 */
	uint32_t nr_obstacles;		/**< why it cannot be run */
	char obstacles[NEURON_MAX_OBSTACLES][256];
};

/**
 * @brief What a device of a type is made of, without one.
 * @param instance	"trn1.32xlarge", "inf2.48xlarge", "trn2", ...; the size may be missing
 * @param reserved	bytes of each device memory that are never handed out; may be NULL
 * @return 0, -ENOENT there is no such type
 */
int neuron_instance_geometry(const char *instance, struct neuron_geometry *geometry,
			     uint64_t *reserved);
/**
 * @brief What loading a NEFF would allocate, to the byte; nothing of it needs a device.
 * @return as neuron_model_load()
 */
int neuron_model_plan(const struct neuron_geometry *geometry, const void *bytes, size_t size,
		      const struct neuron_plan_opts *opts, struct neuron_plan *plan);
/**
 * @brief What models take together on a logical core, as the driver would count it.
 * @param microcode	bytes on each physical core
 * @param core	@c device_bytes is filled in
 * @return 0, -E2BIG more than 2^64 bytes
 */
int neuron_plan_sum(const struct neuron_plan *plans, size_t nr_plans,
		    const struct neuron_plan_opts *opts, uint64_t microcode,
		    struct neuron_report_core *core);
/** @brief Bytes of a shared scratchpad of which models need up to @p need. */
uint64_t neuron_plan_scratchpad(const struct neuron_plan_opts *opts, uint64_t need);

/** @} */

#ifdef __cplusplus
}
#endif

#endif

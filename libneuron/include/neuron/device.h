/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** @file device.h
 * @brief Devices: find, open, claim and reset them, and read their notifications.
 */
#ifndef NEURON_DEVICE_H
#define NEURON_DEVICE_H

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

#define NEURON_MAX_DEVICES 64u
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

/** @brief Cores, memories and engines of a device; constant while it exists. */
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

/** @brief Properties of a device and of its driver. */
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

/** @brief Events of a device. */
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

/** @brief Watch for added and removed devices. @return 0, -ENOMEM, -errno of the netlink socket */
int neuron_monitor_open(struct neuron_monitor **monitor);
void neuron_monitor_close(struct neuron_monitor *monitor);
/** @brief File descriptor that becomes readable when there is an event. */
int neuron_monitor_fd(const struct neuron_monitor *monitor);
/** @brief Wait for an event. @return 0, -ETIMEDOUT */
int neuron_monitor_read(struct neuron_monitor *monitor, struct neuron_monitor_event *event,
			int timeout_ms);

/** @brief Open /dev/neuronN for reading and writing. @return 0, -ENOENT, -EACCES, -EBUSY, ... */
int neuron_device_open(unsigned int index, struct neuron_device **device);
/**
 * @brief Open /dev/neuronN to look at it only.
 *
 * The process does not count as one that has the device: it needs no place among the 16, can
 * look at a device that another user has, and keeps nobody out. It may ask how memory is used
 * and by whom (statistics, ranges, owners, events, refusals, limits, snapshots, the owner of an
 * address, whether models fit); what would use the device is -EACCES.
 * @param device	to be freed with neuron_device_close()
 * @return 0, -ENOENT, -EACCES, ...
 */
int neuron_device_observe(unsigned int index, struct neuron_device **device);
/** @brief As neuron_device_open() for an open descriptor, which belongs to the device afterwards (not on error). */
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
 * notification queues of the cores are gone afterwards. A core that was opened through
 * @p device gets new ones before its next run; a run under way ends with -EIO.
 * @param nc_map	bit per core
 * @return 0, -EBUSY, -EIO the reset failed
 */
int neuron_device_reset(struct neuron_device *device, uint32_t nc_map);
/**
 * @brief Signal an eventfd after each reset of a core that this process uses.
 * @param fd an eventfd; negative: none @return 0, -ENOENT no process uses the core,
 * -EBUSY another process does
 */
int neuron_device_set_reset_eventfd(struct neuron_device *device, uint32_t nc, int fd);
/** Room for a PCI address as text, "0000:00:1e.0". */
#define NEURON_BDF_SIZE 16u
/** @brief PCI address of a device. @return 0, -errno of the driver */
int neuron_device_bdf(struct neuron_device *device, char bdf[NEURON_BDF_SIZE]);
/**
 * @brief Routing ids of the devices of this host, by device number; UINT32_MAX for numbers
 * that no device has.
 * @param nr	entries of @p ids that are set
 */
int neuron_device_routing_ids(struct neuron_device *device, uint32_t ids[NEURON_MAX_DEVICES],
			      uint32_t *nr);
/**
 * @brief In a child after fork(): close the descriptor, so that the child does not keep the
 * device and its cores when the parent is gone. The handle can only be freed afterwards.
 */
void neuron_device_abandon(struct neuron_device *device);
/**
 * @brief Geometry of a type of device; needs no device. @param instance "trn1.32xlarge",
 * "inf2.48xlarge", "trn2", ...; the size may be missing @param reserved bytes of each device
 * memory that are never allocated; may be NULL @return 0, -ENOENT there is no such type
 */
int neuron_instance_geometry(const char *instance, struct neuron_geometry *geometry,
			     uint64_t *reserved);
/** @brief Devices of an instance: 1 for a type without a size, or one that is not known. */
uint32_t neuron_instance_devices(const char *instance);

/**
 * @brief Cores of the longest run of devices that this process may open: a control group, a
 * container or permissions may leave it some of those of the host. @param list all devices of
 * the host, with their numbers of cores @param start set to the first core of the run, counted
 * through all devices; not changed without one @return their number, 0: it may open none
 */
uint32_t neuron_usable_cores(const struct neuron_device_entry *list, size_t nr, uint32_t *start);

struct neuron_claim;

struct neuron_claim_opts {
	size_t size;
	uint32_t start;		/**< first possible core, counted through all devices */
	uint32_t count;
	uint32_t total;		/**< cores of all devices */
	bool exact;		/**< from @c start on; else any @c count in a row */
	uint32_t align;		/**< of the first core; 0: 1 */
	uint32_t *available;	/**< set with -EBUSY: longest run of free cores; may be NULL */
};

/**
 * @brief Claim cores in the table that all processes of the host share.
 *
 * A claim keeps the cores from other claims, but not from processes that do not claim. It
 * ends with neuron_claim_release(), or with the process. @param list all devices of the
 * host, with their numbers of cores @param claim NULL if there is no such table, because
 * the driver has none or the devices are not alike; a core then belongs to the first
 * process that programs it @return 0, -EBUSY other processes have claimed them, -EINVAL,
 * -ENOMEM, -errno of opening the device
 */
int neuron_claim_cores(const struct neuron_device_entry *list, size_t nr,
		       const struct neuron_claim_opts *opts, struct neuron_claim **claim);
/** @brief First core of a claim, counted through all devices. */
uint32_t neuron_claim_start(const struct neuron_claim *claim);
/** @brief End a claim; NULL is allowed. In a child after fork() the claim stays the parent's. */
void neuron_claim_release(struct neuron_claim *claim);

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
/** @brief Free a queue; NULL is allowed. Later reports of the device are lost. */
void neuron_nq_close(struct neuron_nq *nq);
/**
 * @brief Have an eventfd signalled after an entry was written; -1 stops that.
 *
 * Replaces the eventfd that neuron_nq_wait() uses.
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

/** @} */

#ifdef __cplusplus
}
#endif

#endif

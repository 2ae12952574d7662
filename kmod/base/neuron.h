/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of neuron.ko share.
 *
 * Objects and who keeps them
 *   device	one per card; kept by its open files and by whoever added it.  It
 *		can go at any time (base/hw.c); what the others hold is then
 *		host memory only
 *   client	one per process and device; kept by its files and its chunks
 *   chunk	one allocation; kept by its handles, mappings, rings, notification
 *		queues, running transfers and exports; the last one gives the
 *		memory back
 *
 * Locks, outermost first
 *   neuron_devices_lock (mutex)	device by number, claims of cores
 *   device.clients_lock (mutex)	attach and detach
 *   device.grow_lock (mutex)	growing of chunks
 *   core.lock (mutex)		owner and notification queues of a core; several in
 *				the order of their numbers
 *   engine.lock (mutex)		queues of a DMA engine
 *   client.async_lock (mutex)	tokens of copies under way; not held while waiting
 *   copy.lock (mutex)		the kernel's copy ring of a core
 *   export.lock (mutex)	who has mapped a dma-buf
 *   device.host_lock (mutex)	room in the device's view of host memory
 *   zone.scrub_lock (mutex)	memory is out for being scrubbed
 *   neuron_processes_lock (mutex)	processes, base/client.c; nothing under it
 *   client.handles (its spinlock)	handles and addresses of a client's chunks
 *   zone.lock (spinlock)	allocator and accounting of one HBM
 *   device.failures_lock (spinlock)	records of refused allocations
 *   core.nq_lock (spinlock)	eventfds
 *   crwl.lock (spinlock)	cooperative lock of a core
 *   neuron_peer_lock (spinlock)	peers of a mapping, mem/peer.c
 *   zone.watch_lock (spinlock)	mem/watch.c
 * Page faults take core.lock, and mmap() waits for teardown: no access to user memory
 * under any of them.
 * The spinlocks are leaves: none is held while taking another one, except that
 * an eventfd is signalled under core.nq_lock, and that a chunk is cut under
 * client.handles and zone.lock (mem/grow.c).
 */
#ifndef NEURON_H
#define NEURON_H

#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/maple_tree.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/static_key.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../../uapi/neuron_ioctl.h"
#include "../../uapi/neuron_native.h"
#include "../compat/compat.h"
#include "../mem/buddy/buddy.h"
#include "fault.h"
#include "neuron_hw.h"

#define NEURON_MAX_DEVICES	64	/* uapi/FACTS.md 1 */
#define NEURON_MAX_CLIENTS	NEURON_MAX_PROCESS_PER_DEVICE
#define NEURON_NR_CATEGORIES	NEURON_MEMALLOC_TYPE_MAX
#define NEURON_NO_LIMIT		NEURON_NATIVE_LIMIT_NONE

struct neuron_device;

/**
 * struct neuron_counter - one memory counter as sysfs shows it; bytes
 * @total: now in use
 * @present: size of the last change
 * @peak: highest @total
 * @dir: its directory in sysfs, or NULL
 */
struct neuron_counter {
	atomic64_t total;
	atomic64_t present;
	atomic64_t peak;
	struct kobject *dir;
};

/* info/notify_delay: 0 = tell pollers of changes; one switch for all devices. */
DECLARE_STATIC_KEY_FALSE(neuron_notify);
void neuron_counter_tell(struct neuron_counter *c);
void neuron_counter_change(struct neuron_device *nd, struct neuron_counter *c, u64 bytes,
			   u64 last, bool add);

#define NEURON_ASYNC_TOKENS	2	/* uapi/FACTS.md 3 */

struct neuron_async;
struct neuron_client;
struct neuron_device;
struct neuron_scrub;
struct neuron_watch;

/**
 * struct neuron_space - what a process may reach by DMA
 * @client: whose memory and cores these are
 */
struct neuron_space {
	struct neuron_client *client;
};

/**
 * struct neuron_process - a process that has devices open
 * @ref: its clients
 * @node: in the list of them
 * @pid: its thread group
 * @host_bytes: bytes of host memory charged, for the limit
 */
struct neuron_process {
	struct kref ref;
	struct list_head node;
	struct pid *pid;
	atomic64_t host_bytes;
};

/**
 * struct neuron_client - a process that has a device open
 * @ref: files and chunks
 * @nd: the device
 * @pid: its thread group; identifies it
 * @process: what it has of all devices; NULL: the driver
 * @death: in the wait queue of @pid, from attach to teardown
 * @reap: looks after @death, with a reference on the client, whether the process is gone
 * @id: number that no other client has
 * @space: what its queues may touch
 * @node: in device.clients, under clients_lock; read under RCU, too
 * @rcu: freeing
 * @nr_files: open files, under clients_lock
 * @dead: teardown has begun, under clients_lock
 * @done: teardown has ended
 * @kernel: the driver itself; reaches everything
 * @claims: it may have claimed cores
 * @async_lock: @async, @scrub
 * @async: copies under way and results, by core and token - 1
 * @scrub: HBMs that it scrubs
 * @datastore: memory that it publishes counters in, under clients_lock
 * @handles: chunk by handle; its lock is that of what follows up to @closed
 * @spare: in it, a handle that is reserved for the next chunk; 0 = none
 * @chunks: allocated by it, by device address
 * @fresh: the same, those that are not in @chunks yet; the newest first
 * @nr_fresh: their number
 * @imports: allocated elsewhere, by device address
 * @closed: what has a handle is in neither of the three any more
 * @hbm_bytes: bytes held of each HBM; under that zone's lock
 * @device_bytes: bytes of device memory charged, for the limits
 * @core_bytes: the same by core
 * @limit: of @device_bytes, set by the administrator; NEURON_NO_LIMIT = the
 *	   device's default
 * @own_limit: same, set by the process itself, under clients_lock
 * @host_bytes: bytes of host memory held
 * @failures: record of refused allocations, NULL: none; under device.failures_lock
 */
struct neuron_client {
	struct kref ref;
	struct neuron_device *nd;
	struct pid *pid;
	struct neuron_process *process;
	wait_queue_entry_t death;
	struct work_struct reap;
	u64 id;
	struct neuron_space space;
	struct list_head node;
	struct rcu_head rcu;
	unsigned int nr_files;
	bool dead;
	struct completion done;
	bool kernel;
	bool claims;
	struct mutex async_lock;
	struct neuron_async *async[NEURON_HW_MAX_CORES][NEURON_ASYNC_TOKENS];
	struct neuron_scrub *scrub[NEURON_HW_MAX_HBMS];
	struct neuron_chunk *datastore;
	struct xarray handles;
	u32 spare;
	u32 nr_fresh;
	struct rb_root chunks;
	struct list_head fresh;
	struct rb_root imports;
	bool closed;
	u64 hbm_bytes[NEURON_HW_MAX_HBMS];
	atomic64_t device_bytes;
	atomic64_t core_bytes[NEURON_HW_MAX_CORES];
	u64 limit;
	u64 own_limit;
	atomic64_t host_bytes;
	struct neuron_failures *failures;
};

/* How a chunk is found by its address. */
enum neuron_chunk_place {
	NEURON_PLACE_NONE,		/* it has no handle */
	NEURON_PLACE_FRESH,		/* in client.fresh */
	NEURON_PLACE_TREE,		/* in client.chunks */
};

/* What is special about a chunk. */
enum neuron_chunk_kind {
	NEURON_CHUNK_PLAIN,
	NEURON_CHUNK_DATASTORE,		/* other processes may map it for reading */
	NEURON_CHUNK_LENT,		/* pinned pages of a process, for one transfer */
	NEURON_CHUNK_LENT_DIRTY,	/* same, and the device writes to them */
};

/* What a chunk is used for; the rules are in mem/README.md. */
enum neuron_user {
	NEURON_USER_NONE,		/* somebody looks */
	NEURON_USER_MAPPING,
	NEURON_USER_EXPORT,
	NEURON_USER_IMPORT,		/* a handle of another allocation's memory */
	NEURON_USER_RING,		/* of a DMA queue, or a notification queue */
	NEURON_USER_TRANSFER,
	NEURON_USER_PEER,
	NEURON_NR_USERS
};

/**
 * struct neuron_chunk - one allocation of device or host memory
 * @ref: see the top of this file
 * @host: host memory, else device memory
 * @hbm: HBM number of device memory
 * @core: core charged
 * @category: mem_alloc_category_t charged
 * @handle: number in client.handles, 0 = none
 * @kind: enum neuron_chunk_kind
 * @place: enum neuron_chunk_place; under the lock of client.handles
 * @users: by enum neuron_user; under the lock of client.handles
 * @size: bytes; changes under the lock of client.handles (and device.grow_lock), read
 *	  without
 * @addr: device address
 * @client: process charged
 * @node: in client.chunks
 * @fresh: in client.fresh
 * @rcu: freeing of host memory, which is looked up under RCU
 * @block: device memory: what the allocator knows
 * @dmem: device memory: cgroup charged
 * @dmem_extra: how often it was charged for growing; under device.grow_lock
 * @dmem_kept: bytes that stay charged until it is freed; under device.grow_lock
 * @pages: host memory: its pages
 */
struct neuron_chunk {
	struct kref ref;
	u8 host;
	u8 hbm;
	u8 core;
	u8 category;
	u32 handle;
	u8 kind;
	u8 place;
	u32 users[NEURON_NR_USERS];
	u64 size;
	u64 addr;
	struct neuron_client *client;
	union {
		struct rb_node node;
		struct list_head fresh;
		struct rcu_head rcu;
	};
	union {
		struct neuron_buddy_block block;
		struct page **pages;
	};
#ifdef NEURON_DMEM
	struct dmem_cgroup_pool_state *dmem;
	u32 dmem_extra;
	u64 dmem_kept;
#endif
};

/**
 * struct neuron_zone - one HBM
 * @lock: @buddy, @used, @fail_capped and client.hbm_bytes[index]
 * @seq: written under @lock around every change, for readers without it
 * @nd: the device
 * @buddy: the allocator; NULL until somebody wants memory
 * @base: device address
 * @index: HBM number
 * @used: bytes by core and category
 * @driver: bytes of @used that the driver holds
 * @fail_capped: requests refused by a limit
 * @scrub_lock: memory is out for being scrubbed
 * @scrub: who scrubs it, NULL = nobody; not dereferenced
 * @watch_lock: @watched
 * @watched: who was given which range, mem/watch.c
 * @dmem: the HBM as the device-memory cgroup controller knows it
 */
struct neuron_zone {
	spinlock_t lock;
	seqcount_spinlock_t seq;
	struct neuron_device *nd;
	struct neuron_buddy *buddy;
	u64 base;
	u32 index;
	u64 used[NEURON_HW_MAX_CORES][NEURON_NR_CATEGORIES];
	u64 driver;
	u64 fail_capped;
	struct mutex scrub_lock;
	struct neuron_scrub *scrub;
	spinlock_t watch_lock;
	struct rb_root_cached watched;
#ifdef NEURON_DMEM
	struct dmem_cgroup_region *dmem;
#endif
} ____cacheline_aligned_in_smp;

/**
 * struct neuron_queue - a DMA queue pair in use
 * @client: owner
 * @ring: ring memory by direction (enum neuron_dma_queue_type), may be NULL
 * @watch: of @ring, for mem/watch.c
 * @length: descriptors by direction
 * @completed: software completion index by direction
 */
struct neuron_queue {
	struct neuron_client *client;
	struct neuron_chunk *ring[2];
	struct neuron_watch *watch[2];
	u32 length[2];
	u32 completed[2];
};

/**
 * struct neuron_engine - a DMA engine
 * @lock: @queue
 * @queue: queues in use
 */
struct neuron_engine {
	struct mutex lock;
	struct neuron_queue *queue[NEURON_HW_QUEUES_PER_ENGINE];
};

/**
 * struct neuron_nq - a notification queue in use
 * @chunk: its buffer
 * @watch: of @chunk, for mem/watch.c
 * @eventfd: who is told of new entries, under core.nq_lock
 */
struct neuron_nq {
	struct neuron_chunk *chunk;
	struct neuron_watch *watch;
	struct eventfd_ctx *eventfd;
};

#define NEURON_COPY_BOUNCE	(256u << 10)
#define NEURON_COPY_RING	1024u

/**
 * struct neuron_copy - the kernel's copy ring of a core, made on first use
 * @lock: everything but @bounce
 * @ready: the rest is set up
 * @ring: TX and RX ring
 * @bounce: spare buffer between user memory and the device; taken with xchg()
 * @marker: page with the completion marker
 * @next: index of the next descriptor
 * @ring_id: phase that goes with it
 * @seq: value of the last marker
 * @wait: woken by neuron_dma_irq()
 */
struct neuron_copy {
	struct mutex lock;
	bool ready;
	struct neuron_chunk *ring[2];
	struct neuron_chunk *bounce;
	struct neuron_chunk *marker;
	u32 next;
	u32 ring_id;
	u32 seq;
	wait_queue_head_t wait;
};

/**
 * struct neuron_tally - a counter that processes publish in their datastores
 * @ended: sum of what processes left that are gone
 * @last: what the last one of them left
 * @cleared: what of the sum a write to sysfs made disappear
 */
struct neuron_tally {
	u64 ended;
	u64 last;
	u64 cleared;
};

/**
 * struct neuron_crwl - what cooperating processes agree on about a core
 * @lock: the rest
 * @wait: woken at every change
 * @owner: process that loaded the model, NULL = none; gives it up before it goes
 * @uuid: the model
 * @writer: the owner is loading it
 * @readers: executions that the owner has under way
 * @cinit: is the core initialised, enum neuron_cinit_state
 * @starter: thread that initialises it, NULL = none
 */
struct neuron_crwl {
	spinlock_t lock;
	wait_queue_head_t wait;
	const struct neuron_client *owner;
	struct neuron_uuid uuid;
	bool writer;
	u32 readers;
	u32 cinit;
	struct pid *starter;
};

/**
 * struct neuron_core - a NeuronCore
 * @lock: @owner, @nq; with neuron_devices_lock: @claim, @claim_via, @claim_until
 * @owner: process that uses it; NULL = free.  Set and cleared under @lock
 * @claim: thread group that has claimed it, or NULL; see crwl.c
 * @claim_via: client or file whose end is the end of the claim
 * @claim_until: until then (jiffies64) the claim holds although its process is not attached
 * @crwl: cooperative lock
 * @nq_lock: eventfds in @nq
 * @nq: notification queues in use, by type * 16 + engine; made on first use
 * @tally: published counters by NDS_NC_COUNTER_*, under clients_lock
 * @dirty: it did not reset and may hold what its last owner left
 * @reset_eventfd: who is told of resets; under @lock
 * @reset_failed: the last reset did
 * @reset_req: resets that were asked for
 * @reset_fail: resets that failed
 * @copy: copy ring
 * @device_bytes: bytes of device memory charged, by whomever
 * @limit: of what the owner has charged, or of @device_bytes while there is none;
 *	   or NEURON_NO_LIMIT
 * @host_mem: host memory charged to it
 * @device_mem: device memory charged to it
 * @category: device memory by category
 */
struct neuron_core {
	struct mutex lock;
	struct neuron_client *owner;
	struct pid *claim;
	const void *claim_via;
	u64 claim_until;
	struct neuron_crwl crwl;
	spinlock_t nq_lock;
	struct neuron_nq *nq[NEURON_HW_NR_NQ];
	struct neuron_tally tally[NDS_EXT_NC_COUNTER_LAST];
	bool dirty;
	struct eventfd_ctx *reset_eventfd;
	bool reset_failed;
	atomic64_t reset_req;
	atomic64_t reset_fail;
	struct neuron_copy copy;
	atomic64_t device_bytes;
	u64 limit;
	struct neuron_counter host_mem;
	struct neuron_counter device_mem;
	struct neuron_counter category[NEURON_NR_CATEGORIES];
};

struct neuron_sysfs;
struct neuron_failures;

#define NEURON_HEALTH_FILES	8

#define NEURON_HEALTH_FILES	8

/**
 * struct neuron_health - what a device reports about itself
 * @pending: reports that @work has not seen, by event and core
 * @work: counts and tells of them
 * @hw_errors: uncorrected errors so far
 * @cleared: ECC counts when they were cleared
 * @heartbeat: when the device last answered, seconds since 1970
 * @files: those in sysfs that show it, told of each report
 */
struct neuron_health {
	atomic_t pending[NEURON_NR_EVENTS][NEURON_HW_MAX_CORES];
	struct work_struct work;
	atomic64_t hw_errors;
	atomic64_t cleared[NEURON_NR_ECC];
	atomic64_t heartbeat;
	struct kernfs_node *files[NEURON_HEALTH_FILES];
};

/**
 * struct neuron_device - a device
 * @dev: class device neuronN
 * @cdev: /dev/neuronN
 * @desc: what the backend said
 * @geometry: copy, because the backend's may go before the last reference
 * @geo: the copy
 * @ops: guarded desc.ops: they fail when the device is gone
 * @inode: owns all mappings of the device
 * @clients_lock: @clients, @nr_clients
 * @clients: attached processes
 * @nr_clients: their number
 * @gone: being removed: nothing starts any more; see base/hw.c
 * @dead: nothing runs any more
 * @gone_wait: woken when it goes
 * @kclient: the driver's own memory
 * @zone: by HBM
 * @core: by number
 * @engine: by number
 * @host_lock: one search for room in @host_pages at a time
 * @grow_lock: one chunk grows at a time
 * @host_pages: host chunks by page number of their device address; RCU lookup
 * @host_category: host memory by category
 * @health: what it reports about itself
 * @fail_alloc: allocations of device memory that are to fail
 * @process_limit: device memory that a process may hold, or NEURON_NO_LIMIT
 * @failures_lock: @failures_seq, the records of the device and of its clients
 * @failures_seq: number of the last refused allocation
 * @failures: record of allocations refused to processes that are gone
 * @sysfs: the tree
 * @sysfs_ready: it is complete; under neuron_devices_lock
 * @debugfs: directory of the device
 */
struct neuron_device {
	struct device dev;
	struct cdev cdev;
	struct neuron_device_desc desc;
	struct neuron_geometry geometry;
	const struct neuron_geometry *geo;
	const struct neuron_hw_ops *ops;
	struct inode *inode;
	struct mutex clients_lock;
	struct list_head clients;
	unsigned int nr_clients;
	bool gone;
	bool dead;
	wait_queue_head_t gone_wait;
	struct neuron_client *kclient;
	struct neuron_zone *zone;
	struct neuron_core *core;
	struct neuron_engine *engine;
	struct mutex host_lock;
	struct mutex grow_lock;
	struct maple_tree host_pages;
	struct neuron_counter host_category[NEURON_NR_CATEGORIES];
	struct neuron_health health;
	struct neuron_fault fail_alloc;
	u64 process_limit;
	spinlock_t failures_lock;
	u64 failures_seq;
	struct neuron_failures *failures;
	struct neuron_sysfs *sysfs;
	bool sysfs_ready;
	struct dentry *debugfs;
};

/**
 * struct neuron_file - an open descriptor
 * @nd: the device
 * @client: the process that opened it; NULL if opened write-only
 * @claims: cores may have been claimed through it
 */
struct neuron_file {
	struct neuron_device *nd;
	struct neuron_client *client;
	bool claims;
};

/* base/devices.c */
extern struct class neuron_class;
int neuron_devices_init(void);
void neuron_devices_exit(void);
int neuron_minor_get(int wanted);
void neuron_minor_put(int minor);
dev_t neuron_devt(int minor);

/* core/file.c */
extern const struct file_operations neuron_fops;
int neuron_inode_get(struct neuron_device *nd);
void neuron_inode_put(struct neuron_device *nd);

/* base/hw.c */
extern const struct neuron_hw_ops neuron_hw_ops;

/* Whoever waits for something that the device does waits for this, too. */
static inline bool neuron_device_gone(const struct neuron_device *nd)
{
	return READ_ONCE(nd->gone);
}

bool neuron_device_enter(struct neuron_device *nd, int *idx);
void neuron_device_exit(int idx);
void neuron_hw_synchronize(void);

/*
 * Base of the register addresses that user space forms.  Any value will do as
 * long as base + offset comes back; it must not be a kernel address.
 */
#define NEURON_BAR_COOKIE(i)	((u64)((i) + 1) << 60)

/*
 * Is an index that user space chose below @count?  If so, nothing else is
 * fetched with it, not even by speculation.
 */
static inline bool neuron_index_valid(u32 *index, u32 count)
{
	if (*index >= count)
		return false;
	*index = array_index_nospec(*index, count);
	return true;
}

/* base/devices.c */
static inline u32 neuron_engine_core(struct neuron_device *nd, u32 eng)
{
	return eng / nd->geo->engines_per_core;
}

/* Where mmap() finds the state buffer of a core: all in a row, wherever they are in the device. */
static inline u64 neuron_core_window(const struct neuron_device *nd, u32 core)
{
	return nd->geo->tpb_base[0] + core * nd->geo->tpb_size;
}

extern struct mutex neuron_devices_lock;
struct neuron_device *neuron_device_lookup(u32 index);
void neuron_device_set(u32 index, struct neuron_device *nd);
int neuron_devices_reap(void);
bool neuron_queue_is_kernel(struct neuron_device *nd, u32 eng, u32 q, u32 *core);

/* base/client.c */
struct neuron_client *neuron_client_new(struct neuron_device *nd, struct pid *pid);
void neuron_client_put(struct neuron_client *client);
void neuron_client_put_some(struct neuron_client *client, u32 n);
int neuron_client_attach(struct neuron_device *nd, struct neuron_client **client);
void neuron_client_detach(struct neuron_client *client);
void neuron_client_exit(struct neuron_client *client);
bool neuron_process_alive(struct pid *pid);
bool neuron_process_attached(struct neuron_device *nd, const struct pid *pid);
int neuron_clients_reap(struct neuron_device *nd);
void neuron_client_reap_later(struct neuron_client *client);
int neuron_clients_init(void);
bool neuron_file_allowed(const struct neuron_file *nf);
void neuron_clients_destroy(void);
void neuron_core_reset_eventfd(struct neuron_core *c, struct eventfd_ctx *eventfd);
int neuron_core_clean(struct neuron_device *nd, u32 core);
int neuron_core_check(struct neuron_core *core, const struct neuron_client *client);
int neuron_core_read(struct neuron_device *nd, u32 core, const struct neuron_client *client,
		     u32 off, u32 *val);
void neuron_core_take(struct neuron_device *nd, u32 core, struct neuron_client *client);
int neuron_cores_acquire(struct neuron_device *nd, unsigned long map,
			 struct neuron_client *client);
int neuron_core_acquire(struct neuron_device *nd, u32 core, struct neuron_client *client);
void neuron_core_release(struct neuron_device *nd, u32 core, struct neuron_client *client);
int neuron_core_reset(struct neuron_device *nd, u32 core, struct neuron_client *client);

/* base/health.c */
void neuron_health_init(struct neuron_device *nd);
void neuron_health_exit(struct neuron_device *nd);
u64 neuron_health_ecc(struct neuron_device *nd, enum neuron_event event);
void neuron_health_clear(struct neuron_device *nd, enum neuron_event event);
int neuron_health_power(struct neuron_device *nd, struct neuron_power *power);
int neuron_device_reset(struct neuron_device *nd);

/* base/crwl.c */
void neuron_crwl_init(struct neuron_crwl *crwl);
void neuron_crwl_reset(struct neuron_crwl *crwl);
void neuron_crwl_evict(struct neuron_crwl *crwl, const struct pid *pid);
void neuron_crwl_exit(struct neuron_client *client);
void neuron_crwl_drop(struct neuron_crwl *crwl, const struct neuron_client *client);
int neuron_cinit(struct neuron_client *client, u32 nc, u32 state, u32 *out);

/* One attempt; -EAGAIN: wait for a change. */
typedef int (*neuron_crwl_fn)(struct neuron_crwl *crwl, const struct neuron_client *client,
			      const struct neuron_uuid *uuid);
int neuron_crwl(struct neuron_client *client, u32 nc, const struct neuron_uuid *uuid,
		neuron_crwl_fn fn, long timeout);
int neuron_crwl_read(struct neuron_crwl *crwl, const struct neuron_client *client,
		     const struct neuron_uuid *uuid);
int neuron_crwl_write(struct neuron_crwl *crwl, const struct neuron_client *client,
		      const struct neuron_uuid *uuid);
int neuron_crwl_read_end(struct neuron_crwl *crwl, const struct neuron_client *client,
			 const struct neuron_uuid *uuid);
int neuron_crwl_downgrade(struct neuron_crwl *crwl, const struct neuron_client *client,
			  const struct neuron_uuid *uuid);
bool neuron_core_reserved(struct neuron_device *nd, struct neuron_core *core,
			  const struct pid *pid);
void neuron_claims_drop(const void *via, const struct pid *pid);
void neuron_claims_drop_device(struct neuron_device *nd);

/* mem/datastore.c */
void neuron_datastore_release(struct neuron_client *client);
struct neuron_chunk *neuron_datastore_find(struct neuron_device *nd, u64 addr);
void neuron_tally_read(struct neuron_device *nd, u32 core, u32 counter, u64 *total, u64 *present);
void neuron_tally_clear(struct neuron_device *nd, u32 core, u32 counter, bool total);
void neuron_tally_add(struct neuron_device *nd, u32 core, u32 counter, u32 n);
int neuron_ioctl_acquire_ds(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_release_ds(struct neuron_file *nf, void *arg, void __user *uarg);

/* core/ioctl.c */
int neuron_ioctl_init(void);
long neuron_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

/* mem/hbm.c */

/**
 * struct neuron_failure - why memory was refused; bytes
 * @reason: the cause
 * @total: of the HBM, like what follows; all 0 for host memory
 * @free: same
 * @largest_free: longest free run
 * @largest_aligned: longest free run that is aligned as wanted
 * @limit: the limit that was reached, or NEURON_NO_LIMIT
 * @used: by category
 */
struct neuron_failure {
	enum neuron_native_reason reason;
	u64 total;
	u64 free;
	u64 largest_free;
	u64 largest_aligned;
	u64 limit;
	u64 used[NEURON_NR_CATEGORIES];
};

#define NEURON_FREE_BATCH	64	/* chunks freed at a time, at most */

int neuron_zone_init(struct neuron_device *nd, u32 hbm);
int neuron_zone_ready(struct neuron_zone *zone);
void neuron_zone_figures(struct neuron_zone *zone, struct neuron_buddy_stats *bs);
u64 neuron_zone_largest(struct neuron_zone *zone, u64 align);
void neuron_zone_exit(struct neuron_zone *zone);
int neuron_zone_alloc(struct neuron_device *nd, struct neuron_chunk *chunk, u64 align,
		      u32 flags, struct neuron_failure *why);
void neuron_zone_free(struct neuron_device *nd, struct neuron_chunk *chunk);
void neuron_zone_free_batch(struct neuron_device *nd, struct neuron_chunk **chunks, u32 n);
void neuron_zone_charge(struct neuron_zone *zone, struct neuron_chunk *chunk, u64 bytes, bool add);
int neuron_zone_capped(struct neuron_zone *zone, u64 align, int err, struct neuron_failure *why);
void neuron_zone_explain(struct neuron_zone *zone, u64 align, enum neuron_buddy_cause cause,
			 struct neuron_failure *why);
int neuron_zone_take(struct neuron_zone *zone, struct neuron_chunk *piece, u64 addr);
void neuron_zone_give(struct neuron_zone *zone, struct neuron_chunk *chunk, bool clear);
void neuron_zone_stats(struct neuron_zone *zone, struct neuron_client *client,
		       struct neuron_native_hbm_stats *stats);

/* mem/dmem.c */
#ifdef NEURON_DMEM
int neuron_dmem_init(struct neuron_device *nd, struct neuron_zone *zone, u64 size);
void neuron_dmem_exit(struct neuron_zone *zone);
int neuron_dmem_charge(struct neuron_zone *zone, struct neuron_chunk *chunk);
int neuron_dmem_grow(struct neuron_zone *zone, struct neuron_chunk *chunk, u64 more);
void neuron_dmem_shrink(struct neuron_chunk *chunk, u64 more);
void neuron_dmem_cut(struct neuron_chunk *chunk, u64 less);
void neuron_dmem_uncharge(struct neuron_chunk *chunk);
#else
static inline int neuron_dmem_init(struct neuron_device *nd, struct neuron_zone *zone, u64 size)
{
	return 0;
}

static inline void neuron_dmem_exit(struct neuron_zone *zone)
{
}

static inline int neuron_dmem_charge(struct neuron_zone *zone, struct neuron_chunk *chunk)
{
	return 0;
}

static inline int neuron_dmem_grow(struct neuron_zone *zone, struct neuron_chunk *chunk, u64 more)
{
	return 0;
}

static inline void neuron_dmem_shrink(struct neuron_chunk *chunk, u64 more)
{
}

static inline void neuron_dmem_cut(struct neuron_chunk *chunk, u64 less)
{
}

static inline void neuron_dmem_uncharge(struct neuron_chunk *chunk)
{
}
#endif

/* mem/chunk.c */
struct neuron_chunk_request {
	u64 size;
	u64 align;
	bool host;
	u32 hbm;
	u32 core;
	u32 category;
	u32 placement;		/* NEURON_BUDDY_LOW, _HIGH or 0 */
};

int neuron_chunk_cache_init(void);
void neuron_chunk_cache_exit(void);
int neuron_chunk_alloc(struct neuron_client *client, const struct neuron_chunk_request *req,
		       struct neuron_chunk **out, struct neuron_failure *why);
int neuron_chunk_lend(struct neuron_device *nd, u32 core, struct page **pages, unsigned long n,
		      bool dirty, struct neuron_chunk **out);
int neuron_chunk_publish(struct neuron_chunk *chunk, u32 *out);
int neuron_chunk_import(struct neuron_client *client, struct neuron_chunk *chunk, u32 *out);
void neuron_chunk_revoke(struct neuron_chunk *chunk);
int neuron_chunk_unpublish(struct neuron_client *client, u64 handle);
void neuron_chunk_unpublish_all(struct neuron_client *client);
void neuron_chunks_settle(struct neuron_client *client);
struct neuron_chunk *neuron_chunk_use(struct neuron_client *client, u64 handle,
				      enum neuron_user as);
struct neuron_chunk *neuron_chunk_find(struct neuron_client *client, u64 addr, u64 len,
				       enum neuron_user as);
void neuron_chunk_admit(struct neuron_chunk *chunk, enum neuron_user as);
void neuron_chunk_unuse(struct neuron_chunk *chunk, enum neuron_user as);
u32 neuron_chunk_handle(struct neuron_client *client, struct neuron_chunk *chunk);
void neuron_chunk_put(struct neuron_chunk *chunk);
int neuron_chunk_range(const struct neuron_chunk *chunk, u64 off, u64 len);
int neuron_chunk_rw_host(struct neuron_chunk *chunk, u64 off, void *buf, u64 len, bool write);
int neuron_chunk_rw_user(struct neuron_chunk *chunk, u64 off, void __user *buf, u64 len,
			 bool write);
int neuron_chunk_fill_host(struct neuron_chunk *chunk, u64 off, u8 value, u64 len);

static inline struct neuron_chunk *neuron_chunk_ref(struct neuron_chunk *chunk)
{
	kref_get(&chunk->ref);
	return chunk;
}

/* For those who only look at it: it may get shorter at any time. */
static inline struct neuron_chunk *neuron_chunk_get(struct neuron_client *client, u64 handle)
{
	return neuron_chunk_use(client, handle, NEURON_USER_NONE);
}

/* mem/watch.c */
DECLARE_STATIC_KEY_FALSE(neuron_watching);
struct neuron_watch *neuron_watch_range(struct neuron_zone *zone, u64 off, u64 len,
					enum neuron_user as);
void neuron_watch_end(struct neuron_watch *w);
enum neuron_user neuron_watch_user(struct neuron_zone *zone, u64 off, u64 len);
void neuron_watch_freed(struct neuron_zone *zone, u64 off, u64 len);

/* @off: from the start of the HBM. */
static inline struct neuron_watch *neuron_watch(struct neuron_device *nd, u32 hbm, u64 off,
						u64 len, enum neuron_user as)
{
	return static_branch_unlikely(&neuron_watching) ?
	       neuron_watch_range(&nd->zone[hbm], off, len, as) : NULL;
}

/* @off: from the start of the chunk. */
static inline struct neuron_watch *neuron_watch_chunk(const struct neuron_chunk *chunk, u64 off,
						      u64 len, enum neuron_user as)
{
	return chunk->host ? NULL :
	       neuron_watch(chunk->client->nd, chunk->hbm, chunk->block.addr + off, len, as);
}

static inline void neuron_unwatch(struct neuron_watch *w)
{
	if (static_branch_unlikely(&neuron_watching) && w)
		neuron_watch_end(w);
}

/* Memory goes back to the allocator. */
static inline void neuron_watch_free(struct neuron_zone *zone, u64 off, u64 len)
{
	if (static_branch_unlikely(&neuron_watching))
		neuron_watch_freed(zone, off, len);
}

/* mem/account.c */
u32 neuron_category(u32 type, bool host);
const char *neuron_category_name(u32 type);
void neuron_account(struct neuron_chunk *chunk, u64 bytes, u64 last, bool add);

/* mem/failure.c */
int neuron_failures_init(struct neuron_device *nd);
void neuron_failures_exit(struct neuron_failures *f);
void neuron_failures_bury(struct neuron_client *client);
void neuron_failure_record(struct neuron_client *client, const struct neuron_chunk_request *req,
			   const struct neuron_failure *why);
int neuron_native_failures_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

/* mem/limit.c */
bool neuron_limit_charge(struct neuron_chunk *chunk, u64 bytes, u64 *limit);
void neuron_limit_uncharge(struct neuron_chunk *chunk, u64 bytes);
int neuron_limit_core(const struct neuron_client *client, u32 core);
u64 neuron_host_limit(bool process);
bool neuron_limit_charge_host(struct neuron_client *client, u64 bytes, u64 *limit);
void neuron_limit_uncharge_host(struct neuron_client *client, u64 bytes);
int neuron_native_limit_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

/* mem/debugfs.c */
void neuron_debugfs_init(void);
void neuron_debugfs_exit(void);
void neuron_debugfs_add(struct neuron_device *nd);
void neuron_debugfs_del(struct neuron_device *nd);

/**
 * struct neuron_mapping - a chunk in the address space of a process
 * @ref: areas, and who looks at it
 * @areas: pieces that are mapped
 * @chunk: held
 * @watch: of @chunk, for mem/watch.c
 * @peers: drivers that know the memory; mem/peer.c
 * @revoke: told when no piece is mapped any more; NULL: nobody needs to be
 */
struct neuron_mapping {
	struct kref ref;
	atomic_t areas;
	struct neuron_chunk *chunk;
	struct neuron_watch *watch;
	struct list_head peers;
	void (*revoke)(struct neuron_mapping *mapping);
};

/* mem/map.c */
int neuron_mmap(struct file *file, struct vm_area_struct *vma);
struct neuron_mapping *neuron_mapping_get(u64 va, u64 len, u64 *off, bool *write);
void neuron_mapping_put(struct neuron_mapping *mapping);

/* mem/resource.c */
int neuron_resource_mmap(struct neuron_file *nf, struct vm_area_struct *vma);
int neuron_ioctl_resource_mmap_info_fn(struct neuron_file *nf, void *arg, void __user *uarg);

/* mem/dmabuf.c */
int neuron_chunk_page(struct neuron_chunk *chunk, u64 off, struct page **page);
int neuron_ioctl_dmabuf_fd_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_mem_export_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_mem_import_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);
void neuron_native_mem_import_undo(struct neuron_file *nf, void *arg);

/* dma/copy.c */
void neuron_copy_init(struct neuron_copy *copy);
void neuron_copy_exit(struct neuron_device *nd, u32 core);
int neuron_dma_copy(struct neuron_device *nd, u32 core, u64 dst, u64 src, u64 len);
int neuron_dma_copy_user(struct neuron_device *nd, u32 core, struct neuron_chunk *chunk,
			 u64 off, void __user *buf, u64 len, bool to_chunk);
int neuron_dma_addr_user(struct neuron_device *nd, u32 core, u64 addr, void __user *buf, u64 len,
			 bool to_device);
int neuron_dma_write(struct neuron_device *nd, u32 core, u64 dst, const void *buf, u64 len);
int neuron_dma_fill(struct neuron_device *nd, u32 core, u64 dst, u8 value, u64 len);
void neuron_copy_wake(struct neuron_device *nd, u32 core);

/* mem/scrub.c */
void neuron_scrub_exit(struct neuron_client *client);
int neuron_ioctl_hbm_scrub_start_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_hbm_scrub_wait_fn(struct neuron_file *nf, void *arg, void __user *uarg);

/* base/workqueue.c */
int neuron_workqueue_init(void);
void neuron_queue_work(struct work_struct *work);
void neuron_workqueue_exit(void);

/* dma/async.c */
void neuron_async_exit(struct neuron_client *client);
int neuron_ioctl_mem_copy_async(struct neuron_file *nf, void *arg, void __user *uarg);
void neuron_mem_copy_async_undo(struct neuron_file *nf, void *arg);
void neuron_mem_copy_async64_undo(struct neuron_file *nf, void *arg);
int neuron_ioctl_mem_copy_async64(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_copy_async_wait(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_copy_eventfd_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

/* dma/queue.c */
bool neuron_engine_is_kernel(struct neuron_device *nd, u32 eng);
int neuron_queue_init(struct neuron_client *client, const struct neuron_ioctl_dma_queue_init *arg);
void neuron_queue_drop(struct neuron_device *nd, u32 eng, u32 q);
void neuron_queues_release(struct neuron_client *client);
void neuron_engine_release(struct neuron_client *client, u32 eng);

/* base/eventfd.c */
int neuron_eventfd_get(int fd, struct eventfd_ctx **out);

/* dma/notify.c */
void neuron_nqs_release(struct neuron_device *nd, u32 core);
void neuron_nqs_wake(struct neuron_device *nd, u32 core);

/* sysfs/tree.c */
void neuron_sysfs_init(void);
int neuron_sysfs_add(struct neuron_device *nd);
void neuron_sysfs_del(struct neuron_device *nd);

/* An ioctl handler: @arg is the kernel copy of the argument. */
typedef int (*neuron_ioctl_fn)(struct neuron_file *nf, void *arg, void __user *uarg);

/* core/mem_ioctl.c */
int neuron_ioctl_mem_alloc(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_alloc_v2(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_alloc_v2mt(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_free(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_copy(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_copy64(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_buf_copy(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_buf_copy64(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_memset(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_memset64(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_get_pa(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_get_info(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_get_extended_info(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_mc_get_info(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_mc_get_info_v2(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_mem_alloc_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);
void neuron_native_mem_alloc_undo(struct neuron_file *nf, void *arg);
int neuron_native_mem_grow_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_hbm_stats_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_core_stats_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

/* dma/dma_ioctl.c */
int neuron_ioctl_dma_eng_init(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_eng_set_state(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_eng_get_state(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_queue_init(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_queue_init_batch(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_queue_release(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_queue_copy_start(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_ack_completed(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_queue_get_state(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_copy_descriptors(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_copy_descriptors64(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_descriptor_copyout(struct neuron_file *nf, void *arg, void __user *uarg);

/* dma/notify.c */
int neuron_ioctl_nq_init_v1(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nq_init_v2(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nq_init_realloc_v2(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_nq_eventfd_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

/* core/core_ioctl.c */
int neuron_ioctl_device_info_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_device_basic_info_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_driver_info(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_compatible_version_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_host_device_id_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_app_pid(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nop(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nc_reset(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nc_reset_ready(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_semaphore_increment(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_semaphore_decrement(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_semaphore_read(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_semaphore_write(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_event_set(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_event_get(struct neuron_file *nf, void *arg, void __user *uarg);

int neuron_native_reset_eventfd_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

/* base/crwl.c */
int neuron_ioctl_crwl_reader_enter(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_crwl_reader_exit(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_crwl_writer_enter(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_crwl_writer_downgrade(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nc_range_mark(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nc_range_mark_ext(struct neuron_file *nf, void *arg, void __user *uarg);
void neuron_nc_range_mark_undo(struct neuron_file *nf, void *arg);
void neuron_nc_range_mark_ext_undo(struct neuron_file *nf, void *arg);
int neuron_ioctl_nc_range_unmark(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nc_range_unmark_ext(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_cinit(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_model_started_count(struct neuron_file *nf, void *arg, void __user *uarg);

/* core/device_ioctl.c */
int neuron_ioctl_device_bdf_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_device_bdf_ext_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_rid_map(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_logical_map(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_printk_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_apps_info(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_pid_state_dump(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_enotty(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_eperm(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_eopnotsupp(struct neuron_file *nf, void *arg, void __user *uarg);

/* core/reg_ioctl.c */
u32 neuron_cores_bar_entry(struct neuron_device *nd);
u64 neuron_bar_size(struct neuron_device *nd);
int neuron_ioctl_bar_read(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_bar_write(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_read_hw_counters_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_post_metric_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_program_engine_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_program_engine_nc_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_program_engine_nc64_fn(struct neuron_file *nf, void *arg, void __user *uarg);

/* mem/dump.c */
int neuron_ioctl_dump_mem_chunks_fn(struct neuron_file *nf, void *arg, void __user *uarg);

/* core/core_ioctl.c */
int neuron_ioctl_device_reset_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_device_ready_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_geometry_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

#endif

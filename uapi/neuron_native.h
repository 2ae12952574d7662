/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The native door of neuron.ko: commands that the compatible interface (neuron_ioctl.h)
 * lacks.
 *
 * Every structure starts with @size, the size the caller knows.  A shorter
 * structure than the kernel's is accepted down to the first published size; a
 * longer one is accepted if the unknown tail is zero (-E2BIG otherwise).
 * Reserved fields must be 0 (-EINVAL).  Results beyond @size are not written.
 *
 * errno: ENOTTY unknown command; EFAULT bad pointer; E2BIG unknown tail;
 * EINVAL bad value or reserved field; ENOENT bad handle; EOVERFLOW arithmetic;
 * EACCES the caller is not the process that opened the device, or opened it
 * write-only; EBUSY held by another process; ENOMEM, with a reason if the structure has a
 * field for it; ENODEV device gone.
 */
#ifndef _UAPI_NEURON_NATIVE_H
#define _UAPI_NEURON_NATIVE_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define NEURON_NATIVE_BASE	'N'

#define NEURON_NATIVE_GET_GEOMETRY	_IO(NEURON_NATIVE_BASE, 192)
#define NEURON_NATIVE_MEM_ALLOC		_IO(NEURON_NATIVE_BASE, 193)
#define NEURON_NATIVE_NQ_EVENTFD	_IO(NEURON_NATIVE_BASE, 194)
#define NEURON_NATIVE_HBM_STATS		_IO(NEURON_NATIVE_BASE, 195)
#define NEURON_NATIVE_CORE_STATS	_IO(NEURON_NATIVE_BASE, 196)
#define NEURON_NATIVE_MEM_EXPORT	_IO(NEURON_NATIVE_BASE, 197)
#define NEURON_NATIVE_MEM_IMPORT	_IO(NEURON_NATIVE_BASE, 198)
#define NEURON_NATIVE_FAILURES		_IO(NEURON_NATIVE_BASE, 199)
#define NEURON_NATIVE_LIMIT		_IO(NEURON_NATIVE_BASE, 200)
#define NEURON_NATIVE_MEM_GROW		_IO(NEURON_NATIVE_BASE, 201)
#define NEURON_NATIVE_COPY_EVENTFD	_IO(NEURON_NATIVE_BASE, 203)
#define NEURON_NATIVE_RESET_EVENTFD	_IO(NEURON_NATIVE_BASE, 204)
#define NEURON_NATIVE_HBM_RANGES	_IO(NEURON_NATIVE_BASE, 205)
#define NEURON_NATIVE_OWNER		_IO(NEURON_NATIVE_BASE, 206)
#define NEURON_NATIVE_OWNERS		_IO(NEURON_NATIVE_BASE, 207)
#define NEURON_NATIVE_MEM_PIN		_IO(NEURON_NATIVE_BASE, 208)
#define NEURON_NATIVE_MEM_UNPIN		_IO(NEURON_NATIVE_BASE, 209)
#define NEURON_NATIVE_MEM_COMPACT	_IO(NEURON_NATIVE_BASE, 210)
#define NEURON_NATIVE_EVENTS		_IO(NEURON_NATIVE_BASE, 211)
#define NEURON_NATIVE_MEM_ALLOC_BULK	_IO(NEURON_NATIVE_BASE, 212)
#define NEURON_NATIVE_MEM_FREE_BULK	_IO(NEURON_NATIVE_BASE, 213)

#define NEURON_NATIVE_MAX_HBMS		8
#define NEURON_NATIVE_MAX_CORES		16
#define NEURON_NATIVE_MAX_CATEGORIES	32
#define NEURON_NATIVE_MAX_ORDERS	32

/**
 * struct neuron_native_geometry - cores, memories and engines of a device
 * @size: in
 * @arch: as in DEVICE_BASIC_INFO
 * @nr_cores: physical NeuronCores
 * @nr_hbms: device memories
 * @nr_dma_engines: DMA engines of the device
 * @engines_per_core: DMA engines of core c start at c * engines_per_core
 * @nr_queues: queues of a DMA engine
 * @nr_semaphores: per core
 * @nr_events: per core
 * @nr_topsp: collective sequencers
 * @nr_nq_types: notification queue types of a core
 * @nr_nq_engines: notification queues of a type
 * @isa_version: instruction set of uapi/neuron_isa.h, 0 = the vendor's
 * @__reserved: 0
 * @host_window: bit set in the device address of host memory
 * @tpb_size: bytes of the window of a core
 * @sbuf_size: bytes of the state buffer of a core
 * @hbm: device address and bytes of each device memory
 * @tpb_base: device address of the window of each core
 * @core_hbm: the device memory next to each core
 */
struct neuron_native_geometry {
	__u32 size;
	__u32 arch;
	__u32 nr_cores;
	__u32 nr_hbms;
	__u32 nr_dma_engines;
	__u32 engines_per_core;
	__u32 nr_queues;
	__u32 nr_semaphores;
	__u32 nr_events;
	__u32 nr_topsp;
	__u32 nr_nq_types;
	__u32 nr_nq_engines;
	__u32 isa_version;
	__u32 __reserved;
	__u64 host_window;
	__u64 tpb_size;
	__u64 sbuf_size;
	struct {
		__u64 base;
		__u64 size;
	} hbm[NEURON_NATIVE_MAX_HBMS];
	__u64 tpb_base[NEURON_NATIVE_MAX_CORES];
	__u8 core_hbm[NEURON_NATIVE_MAX_CORES];
};

/* struct neuron_native_mem_alloc.flags */
#define NEURON_NATIVE_ALLOC_HOST	0x1u	/* host memory; @hbm must be 0 */
#define NEURON_NATIVE_ALLOC_LOW		0x2u	/* prefer low addresses */
#define NEURON_NATIVE_ALLOC_HIGH	0x4u	/* prefer high addresses */
#define NEURON_NATIVE_ALLOC_MOVABLE	0x8u	/* device memory that MEM_COMPACT may move */
#define NEURON_NATIVE_ALLOC_AT		0x10u	/* device memory at @pa, or none */

/* Why an allocation failed. */
enum neuron_native_reason {
	NEURON_NATIVE_REASON_NONE	= 0,
	NEURON_NATIVE_REASON_FULL	= 1,	/* fewer bytes free than requested */
	NEURON_NATIVE_REASON_FRAGMENTED	= 2,	/* enough free, but no run that long */
	NEURON_NATIVE_REASON_ALIGNMENT	= 3,	/* such runs exist, but none is aligned */
	NEURON_NATIVE_REASON_CAPPED	= 4,	/* a limit was reached */
	NEURON_NATIVE_REASON_HOST	= 5	/* not enough host memory */
};

/**
 * struct neuron_native_mem_alloc - allocate a chunk; on failure tells the reason
 * @size: in
 * @flags: in, NEURON_NATIVE_ALLOC_*
 * @bytes: in, rounded up to whole pages
 * @align: in, 0 or a power of two; of movable memory at most 8 TiB
 * @hbm: in, device memory number
 * @nc_id: in, core to charge
 * @mem_type: in, mem_alloc_category_t; must fit host or device
 * @__reserved: 0
 * @mem_handle: out
 * @pa: out, device address; 0 of movable memory: see struct neuron_native_mem_pin.  In with
 *      NEURON_NATIVE_ALLOC_AT: a multiple of the page size and of @align
 * @mmap_offset: out, the same
 * @reason: out, enum neuron_native_reason; valid with -ENOMEM too
 * @__reserved2: 0
 * @total: out with -ENOMEM: bytes of the device memory
 * @free: out with -ENOMEM: free bytes
 * @largest_free: out with -ENOMEM: longest free run, bytes
 * @largest_aligned: out with -ENOMEM: longest free run that starts at @align
 * @limit: out with -ENOMEM: the limit that was reached, else NEURON_NATIVE_LIMIT_NONE
 * @owner: in, number of an owner (-ENOENT: there is none), 0 = the process itself
 * @__reserved3: 0
 */
struct neuron_native_mem_alloc {
	__u32 size;
	__u32 flags;
	__u64 bytes;
	__u64 align;
	__u32 hbm;
	__u32 nc_id;
	__u32 mem_type;
	__u32 __reserved;
	__u64 mem_handle;
	__u64 pa;
	__u64 mmap_offset;
	__u32 reason;
	__u32 __reserved2;
	__u64 total;
	__u64 free;
	__u64 largest_free;
	__u64 largest_aligned;
	__u64 limit;
	__u32 owner;
	__u32 __reserved3;
};

/**
 * struct neuron_native_nq_eventfd - set the eventfd of a notification queue
 * @size: in
 * @flags: 0
 * @nq_dev_id: in, core
 * @nq_dev_type: in, enum NQ_DEVICE_TYPE
 * @nq_type: in, enum NQ_TYPE
 * @engine_index: in
 * @eventfd: in, an eventfd; -1 removes it.  It is signalled after an entry was
 *           written, once for any number of entries
 * @__reserved: 0
 */
struct neuron_native_nq_eventfd {
	__u32 size;
	__u32 flags;
	__u32 nq_dev_id;
	__u32 nq_dev_type;
	__u32 nq_type;
	__u32 engine_index;
	__s32 eventfd;
	__u32 __reserved;
};

/**
 * struct neuron_native_hbm_stats - one consistent picture of a device memory
 * @size: in
 * @hbm: in
 * @total: bytes, including reserved ones
 * @used: allocated bytes = sum of @by_category = sum of @by_core
 * @reserved: bytes never handed out (carve-out, retired)
 * @free: @total - @used - @reserved
 * @largest_free: longest free run
 * @high_water: highest @used
 * @nr_allocs: live allocations
 * @own_process: bytes of @used that the calling process holds
 * @driver: bytes of @used that the driver holds
 * @metadata: host memory the allocator uses for this device memory
 * @fail_full: requests refused, by enum neuron_native_reason
 * @fail_fragmented: same
 * @fail_alignment: same
 * @fail_capped: same
 * @free_by_order: free bytes in runs of 2^i..2^(i+1)-1 times 4096 bytes
 * @by_category: used bytes by mem_alloc_category_t
 * @by_core: used bytes by the core charged
 * @moves: allocations that MEM_COMPACT moved so far
 * @moved_bytes: their bytes
 * @move_failures: moves that were given up: somebody came, or the copy failed
 */
struct neuron_native_hbm_stats {
	__u32 size;
	__u32 hbm;
	__u64 total;
	__u64 used;
	__u64 reserved;
	__u64 free;
	__u64 largest_free;
	__u64 high_water;
	__u64 nr_allocs;
	__u64 own_process;
	__u64 driver;
	__u64 metadata;
	__u64 fail_full;
	__u64 fail_fragmented;
	__u64 fail_alignment;
	__u64 fail_capped;
	__u64 free_by_order[NEURON_NATIVE_MAX_ORDERS];
	__u64 by_category[NEURON_NATIVE_MAX_CATEGORIES];
	__u64 by_core[NEURON_NATIVE_MAX_CORES];
	__u64 moves;
	__u64 moved_bytes;
	__u64 move_failures;
};

/* struct neuron_native_core_stats.owner: a process that has no pid in the caller's namespace */
#define NEURON_NATIVE_OWNER_OUTSIDE	(-1)

/**
 * struct neuron_native_core_stats - memory charged to one core
 * @size: in
 * @nc_id: in
 * @owner: pid (in the caller's namespace) of the process that holds the core, 0 if none,
 *	NEURON_NATIVE_OWNER_OUTSIDE
 * @__reserved: 0
 * @device_bytes: device memory by mem_alloc_category_t
 * @host_bytes: host memory
 */
struct neuron_native_core_stats {
	__u32 size;
	__u32 nc_id;
	__s32 owner;
	__u32 __reserved;
	__u64 device_bytes[NEURON_NATIVE_MAX_CATEGORIES];
	__u64 host_bytes;
};

/* struct neuron_native_mem_export.flags */
#define NEURON_NATIVE_EXPORT_RDONLY	0x1u	/* the descriptor gives no write access */

/**
 * struct neuron_native_mem_export - make a dma-buf of a chunk
 * @size: in
 * @flags: in, NEURON_NATIVE_EXPORT_*
 * @mem_handle: in
 * @offset: in, where it begins in the chunk; whole pages
 * @bytes: in, whole pages; 0 = up to the end of the chunk
 * @fd: out, the descriptor, with O_CLOEXEC
 * @__reserved: 0
 *
 * The dma-buf keeps the memory even after its handle and its process are gone.  The
 * memory stays charged to that process.
 */
struct neuron_native_mem_export {
	__u32 size;
	__u32 flags;
	__u64 mem_handle;
	__u64 offset;
	__u64 bytes;
	__s32 fd;
	__u32 __reserved;
};

/**
 * struct neuron_native_mem_import - get a handle of exported memory
 * @size: in
 * @flags: 0
 * @fd: in, a dma-buf of all of a chunk of this device, open for writing
 * @__reserved: 0
 * @mem_handle: out, to be freed like that of an allocation
 * @pa: out, device address
 * @mmap_offset: out
 * @bytes: out
 * @host: out, 1 host memory
 *
 * The process can use the memory as if it had allocated it.
 */
struct neuron_native_mem_import {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 __reserved;
	__u64 mem_handle;
	__u64 pa;
	__u64 mmap_offset;
	__u64 bytes;
	__u64 host;
};

/* struct neuron_native_mem_grow.flags */
#define NEURON_NATIVE_GROW_SHRINK	(1u << 0)	/* make it shorter */

/**
 * struct neuron_native_mem_grow - make an allocation longer or shorter in place
 * @size: in
 * @flags: NEURON_NATIVE_GROW_SHRINK or 0
 * @mem_handle: in, device memory
 * @bytes: in, new length, not below the present one, or with the flag not above it and
 *	not 0; out, rounded up to whole pages
 * @reason: in 0; out, enum neuron_native_reason; valid with -ENOMEM too
 * @__reserved: 0
 * @total: out with -ENOMEM: bytes of the device memory
 * @free: out with -ENOMEM: free bytes
 * @largest_free: out with -ENOMEM: longest free run, bytes
 *
 * The address and the old contents stay; added memory reads as zero.  Mappings, rings,
 * transfers and exports keep the length they were made with.  An imported chunk does not
 * grow while the imported handle exists, nor through that handle (-EBUSY).  The handle
 * must not be freed meanwhile (-ENOENT).  A chunk that is mapped, used by a ring or
 * transfer, exported or imported does not shrink (-EBUSY).  Neither does a chunk that was
 * made with up to 1 MiB and so shares 2 MiB with others (-EOPNOTSUPP).
 */
struct neuron_native_mem_grow {
	__u32 size;
	__u32 flags;
	__u64 mem_handle;
	__u64 bytes;
	__u32 reason;
	__u32 __reserved;
	__u64 total;
	__u64 free;
	__u64 largest_free;
};

#define NEURON_NATIVE_FAILURES_MAX	16	/* kept of a process, and of all ended ones */
#define NEURON_NATIVE_FAILURE_TOP	3

/**
 * struct neuron_native_failure - an allocation that was refused
 * @size: out, bytes of this entry
 * @flags: NEURON_NATIVE_ALLOC_HOST for host memory
 * @seq: number; the first of a device is 1
 * @time: CLOCK_REALTIME, nanoseconds
 * @pid: the process, in the caller's pid namespace; 0 if it is not in that
 * @reason: enum neuron_native_reason
 * @hbm: device memory
 * @nc_id: core to charge
 * @mem_type: mem_alloc_category_t to charge
 * @__reserved: 0
 * @bytes: length of the request
 * @align: alignment of the request
 * @total: bytes of the device memory; this and the next are 0 for host memory
 * @free: free bytes
 * @largest_free: longest free run
 * @largest_aligned: longest free run that starts at @align
 * @limit: the limit that was reached, else NEURON_NATIVE_LIMIT_NONE; also if the limit is
 *         that of a cgroup
 * @category: the categories that held most of the device memory, largest first
 * @process: the processes that held most of it, or of host memory, largest first; pid as
 *           in @pid, 0 bytes = unused entry
 */
struct neuron_native_failure {
	__u32 size;
	__u32 flags;
	__u64 seq;
	__u64 time;
	__s32 pid;
	__u32 reason;
	__u32 hbm;
	__u32 nc_id;
	__u32 mem_type;
	__u32 __reserved;
	__u64 bytes;
	__u64 align;
	__u64 total;
	__u64 free;
	__u64 largest_free;
	__u64 largest_aligned;
	__u64 limit;
	struct {
		__u32 mem_type;
		__u32 __reserved;
		__u64 bytes;
	} category[NEURON_NATIVE_FAILURE_TOP];
	struct {
		__s32 pid;
		__u32 __reserved;
		__u64 bytes;
	} process[NEURON_NATIVE_FAILURE_TOP];
};

/**
 * struct neuron_native_failures - the last allocations that were refused, MEM_GROW left out
 * @size: in
 * @count: in, entries that fit into @entries; out, entries stored
 * @since: in, report only later ones than this number; 0 = the last
 *	   NEURON_NATIVE_FAILURES_MAX, or the last @count if that is more
 * @last: in 0; out, number of the last one considered: @since of the next call
 * @entries: in, where to store them, the oldest first
 * @entry_size: in, sizeof(struct neuron_native_failure)
 * @__reserved: 0
 *
 * Reports refusals of the calling process.  With CAP_SYS_ADMIN it reports those of all
 * processes that have the device open, and the last ones of ended processes: up to 17 *
 * NEURON_NATIVE_FAILURES_MAX.
 */
struct neuron_native_failures {
	__u32 size;
	__u32 count;
	__u64 since;
	__u64 last;
	__u64 entries;
	__u32 entry_size;
	__u32 __reserved;
};

#define NEURON_NATIVE_LIMIT_NONE	0xffffffffffffffffULL

/* struct neuron_native_limit.flags */
#define NEURON_NATIVE_LIMIT_SET		0x1u	/* set the limit, else only report it */

/* struct neuron_native_limit.what */
enum neuron_native_limit_what {
	NEURON_NATIVE_LIMIT_CORE	= 0,	/* memory charged to a core */
	NEURON_NATIVE_LIMIT_PROCESS	= 1,	/* memory that a process holds */
	NEURON_NATIVE_LIMIT_DEFAULT	= 2	/* same, without a limit of its own */
};

/**
 * struct neuron_native_limit - limit of device memory, over all HBMs of the device
 * @size: in
 * @flags: in, NEURON_NATIVE_LIMIT_*
 * @what: in, enum neuron_native_limit_what
 * @index: in, core number; or process in the caller's pid namespace, 0 = the caller; 0
 *         for the default
 * @bytes: in with _SET, else 0: the limit, or NEURON_NATIVE_LIMIT_NONE. out: the limit in
 *         force
 * @used: in 0; out, bytes charged now, except for the default
 *
 * CAP_SYS_ADMIN sets any limit; a process may lower its own (EPERM).  A limit below the
 * bytes in use takes nothing away.  The limit of a process ends when the process closes
 * the device; NEURON_NATIVE_LIMIT_NONE puts it under the default again.
 */
struct neuron_native_limit {
	__u32 size;
	__u32 flags;
	__u32 what;
	__s32 index;
	__u64 bytes;
	__u64 used;
};

/**
 * struct neuron_native_copy_eventfd - set the eventfd of an asynchronous copy
 * @size: in
 * @flags: 0
 * @src_mem_handle: in, as for MEM_COPY_ASYNC_WAIT
 * @dst_mem_handle: in, same
 * @token: in, same
 * @eventfd: in, an eventfd; -1 removes it.  It is signalled once, when the copy is done,
 *           or now if it is done already.  MEM_COPY_ASYNC_WAIT then returns the result
 *           without waiting
 */
struct neuron_native_copy_eventfd {
	__u32 size;
	__u32 flags;
	__u64 src_mem_handle;
	__u64 dst_mem_handle;
	__u32 token;
	__s32 eventfd;
};

/**
 * struct neuron_native_reset_eventfd - set the eventfd for resets of a core
 * @size: in
 * @flags: 0
 * @nc_id: in, core that the caller owns
 * @eventfd: in, an eventfd; -1 removes it.  It is signalled after each NC_RESET or
 *           DEVICE_RESET of the core, even a failed one, and when the device is removed.
 *           It stays until the caller gives the core up
 */
struct neuron_native_reset_eventfd {
	__u32 size;
	__u32 flags;
	__u32 nc_id;
	__s32 eventfd;
};

/* What a range of device memory is. */
enum neuron_native_range_state {
	NEURON_NATIVE_RANGE_FREE	= 0,	/* a hole */
	NEURON_NATIVE_RANGE_USED	= 1,	/* the owner is not told: see below */
	NEURON_NATIVE_RANGE_RESERVED	= 2,	/* never handed out */
	NEURON_NATIVE_RANGE_OWNED	= 3	/* an allocation of @pid */
};

/**
 * struct neuron_native_range - a hole or an allocation
 * @address: device address
 * @bytes: length
 * @state: enum neuron_native_range_state
 * @pid: owner, in the caller's pid namespace; 0 outside of it. This and the rest: 0 unless
 *       owned
 * @nc_id: core charged
 * @mem_type: mem_alloc_category_t
 * @owner: part of the process that is charged, 0 = the process itself
 * @movable: log2 of the alignment of its place, if MEM_COMPACT of the caller would move it now;
 *           else 0, as from drivers that do not tell
 */
struct neuron_native_range {
	__u64 address;
	__u64 bytes;
	__u32 state;
	__s32 pid;
	__u32 nc_id;
	__u32 mem_type;
	__u32 owner;
	__u32 movable;
};

/**
 * struct neuron_native_hbm_ranges - what is where in a device memory, by address
 * @size: in
 * @hbm: in, device memory number
 * @from: in, 0, or @from of the call before; out, address behind the last range stored
 * @entries: in, where to store struct neuron_native_range
 * @entry_size: in, sizeof(struct neuron_native_range), or 32: without @owner
 * @count: in, entries that fit there; out, entries stored: fewer at the end of the memory
 *
 * Holes are shown to everybody, owners are those of the caller's user, or with
 * CAP_SYS_ADMIN all.  The driver's own memory has no owner, nor has memory that was freed
 * and is still used by a mapping, ring, transfer or export.  Ranges that change meanwhile
 * may be shown before or after the change; none is shown twice.
 */
struct neuron_native_hbm_ranges {
	__u32 size;
	__u32 hbm;
	__u64 from;
	__u64 entries;
	__u32 entry_size;
	__u32 count;
};

#define NEURON_NATIVE_LABEL_MAX		16	/* with the closing 0 */
#define NEURON_NATIVE_OWNERS_MAX	256	/* of a process on a device */

/* struct neuron_native_owner.flags */
#define NEURON_NATIVE_OWNER_RELEASE	0x1u	/* no more allocations for this owner */
#define NEURON_NATIVE_OWNER_RENAME	0x2u	/* another label, also for the process itself */

/**
 * struct neuron_native_owner - make, rename or release an owner of memory
 * @size: in
 * @flags: in, 0: make one; else one of NEURON_NATIVE_OWNER_*
 * @owner: in, its number; 0 to make one; out, same
 * @__reserved: 0
 * @label: in, printable ASCII and a closing 0, then 0 only; all 0 to release
 *
 * A process divides its memory of a device among owners, to know later which part of it
 * holds how much.  A number names nothing in other processes or devices, and is used again
 * only after all other numbers up to 65535.  Memory of a released owner stays charged to
 * it; its figures end with its last allocation.  -ENOSPC: NEURON_NATIVE_OWNERS_MAX exist;
 * -ENOENT: no such owner.
 */
struct neuron_native_owner {
	__u32 size;
	__u32 flags;
	__u32 owner;
	__u32 __reserved;
	char label[NEURON_NATIVE_LABEL_MAX];
};

/* struct neuron_native_owners.flags */
#define NEURON_NATIVE_OWNERS_CLEAR	0x1u	/* start the caller's figures again */

/* struct neuron_native_owner_entry.flags */
#define NEURON_NATIVE_OWNER_RELEASED	0x1u

/**
 * struct neuron_native_owner_entry - what an owner has of a device memory
 * @owner: number; 0 = the process itself
 * @flags: NEURON_NATIVE_OWNER_RELEASED
 * @pid: the process, in the caller's pid namespace, 0 outside of it
 * @__reserved: 0
 * @label: see struct neuron_native_owner
 * @bytes: now
 * @peak: most since the figures started
 * @steady: least since then
 * @byte_seconds: sum of bytes times seconds since then, with steps of 2^20 nanoseconds
 * @time: nanoseconds since then
 * @allocs: allocations now
 * @host_bytes: host memory now, of the whole device
 */
struct neuron_native_owner_entry {
	__u32 owner;
	__u32 flags;
	__s32 pid;
	__u32 __reserved;
	char label[NEURON_NATIVE_LABEL_MAX];
	__u64 bytes;
	__u64 peak;
	__u64 steady;
	__u64 byte_seconds;
	__u64 time;
	__u64 allocs;
	__u64 host_bytes;
};

/**
 * struct neuron_native_owners - who has how much of a device memory, at one instant
 * @size: in
 * @flags: in, NEURON_NATIVE_OWNERS_CLEAR or 0
 * @hbm: in, device memory number
 * @entry_size: in, sizeof(struct neuron_native_owner_entry)
 * @entries: in, where to store them, by process
 * @count: in, entries that fit there; out, entries stored
 * @total: in 0; out, entries there are for the caller; more than @count: some are missing
 * @used: in 0; out, allocated bytes of the device memory
 * @driver: in 0; out, bytes of @used that the driver holds
 *
 * Shows owners of the caller's user, or with CAP_SYS_ADMIN all.  Of memory that outlives
 * its process (an export) no owner is shown; without such memory, @driver and the bytes of
 * all owners are @used.  The figures start when the owner is made, or at the last
 * NEURON_NATIVE_OWNERS_CLEAR, which shows them as they were before.  To clear them is for the
 * process that opened the descriptor; -EACCES else.
 */
struct neuron_native_owners {
	__u32 size;
	__u32 flags;
	__u32 hbm;
	__u32 entry_size;
	__u64 entries;
	__u32 count;
	__u32 total;
	__u64 used;
	__u64 driver;
};

/* What happened to memory. */
enum neuron_native_event_kind {
	NEURON_NATIVE_EVENT_ALLOC	= 1,
	NEURON_NATIVE_EVENT_FREE	= 2,
	NEURON_NATIVE_EVENT_GROW	= 3,	/* @address, @bytes: what was added */
	NEURON_NATIVE_EVENT_SHRINK	= 4,	/* what was taken away */
	NEURON_NATIVE_EVENT_REFUSE	= 5,	/* @address: 0, or where it should have grown */
	NEURON_NATIVE_EVENT_MOVE	= 6	/* @address: where it is now */
};

/**
 * struct neuron_native_event - something that happened to device memory
 * @seq: number; the first of a device memory is 1
 * @time: CLOCK_MONOTONIC, nanoseconds, as the scheduler's clock has counted since
 * @address: device address
 * @bytes: length
 * @align: alignment asked for, bytes
 * @free: refused: free bytes then; moved: device address before
 * @kind: enum neuron_native_event_kind
 * @flags: NEURON_NATIVE_ALLOC_LOW, _HIGH, _AT (also when memory grows in place) or 0, as asked for
 * @reason: refused: enum neuron_native_reason
 * @client: number of the process, not used again until the machine restarts; like what
 *          follows 0 if the caller may not know it. The driver has the one of the device
 * @pid: the process, in the caller's pid namespace; 0 outside of it, or if it has ended
 * @owner: owner charged
 * @nc_id: core charged
 * @mem_type: mem_alloc_category_t charged
 */
struct neuron_native_event {
	__u64 seq;
	__u64 time;
	__u64 address;
	__u64 bytes;
	__u64 align;
	__u64 free;
	__u32 kind;
	__u32 flags;
	__u32 reason;
	__u32 client;
	__s32 pid;
	__u32 owner;
	__u32 nc_id;
	__u32 mem_type;
};

/**
 * struct neuron_native_events - the last things that happened to a device memory
 * @size: in
 * @hbm: in, device memory number
 * @since: in, 0, or @last of the call before: show only later ones
 * @last: in 0; out, number of the last one that was looked at
 * @entries: in, where to store them, the oldest first
 * @entry_size: in, sizeof(struct neuron_native_event)
 * @count: in, entries that fit there; out, entries stored: the first ones after @since that
 *	   are still known
 *
 * Always recorded, in a fixed amount of memory: some thousand events are known.  Those of
 * the caller's user, or with CAP_SYS_ADMIN all, tell who it was.
 */
struct neuron_native_events {
	__u32 size;
	__u32 hbm;
	__u64 since;
	__u64 last;
	__u64 entries;
	__u32 entry_size;
	__u32 count;
};

#define NEURON_NATIVE_BULK_MAX		1024

/**
 * struct neuron_native_mem_bulk_entry - one chunk of several
 * @bytes: in, rounded up to whole pages
 * @align: in, 0 or a power of two; of movable memory at most 8 TiB
 * @mem_handle: out
 * @pa: out, device address, and offset for mmap(); 0 of movable memory
 */
struct neuron_native_mem_bulk_entry {
	__u64 bytes;
	__u64 align;
	__u64 mem_handle;
	__u64 pa;
};

/**
 * struct neuron_native_mem_alloc_bulk - allocate several chunks, all of them or none
 * @size: in
 * @flags: in, NEURON_NATIVE_ALLOC_*
 * @hbm: in, device memory number
 * @nc_id: in, core to charge
 * @mem_type: in, mem_alloc_category_t; must fit host or device
 * @owner: in, number of an owner (-ENOENT: there is none), 0 = the process itself
 * @count: in, chunks, 1 to NEURON_NATIVE_BULK_MAX
 * @entry_size: in, sizeof(struct neuron_native_mem_bulk_entry), else EINVAL
 * @entries: in, pointer to them; written on success only
 * @failed: out with -ENOMEM: index of the entry that was refused
 * @reason: out, and what follows: as in struct neuron_native_mem_alloc, of that moment
 * @total: see there
 * @free: see there
 * @largest_free: see there
 * @largest_aligned: see there
 * @limit: see there
 */
struct neuron_native_mem_alloc_bulk {
	__u32 size;
	__u32 flags;
	__u32 hbm;
	__u32 nc_id;
	__u32 mem_type;
	__u32 owner;
	__u32 count;
	__u32 entry_size;
	__u64 entries;
	__u32 failed;
	__u32 reason;
	__u64 total;
	__u64 free;
	__u64 largest_free;
	__u64 largest_aligned;
	__u64 limit;
};

/**
 * struct neuron_native_mem_free_bulk - free several handles
 * @size: in
 * @flags: 0
 * @count: in, handles, 1 to NEURON_NATIVE_BULK_MAX
 * @__reserved: 0
 * @handles: in, pointer to handles (__u64)
 *
 * If one of them is none (ENOENT) or is there twice (EINVAL), none is freed.  A handle that
 * another thread of the process frees meanwhile counts as freed.
 */
struct neuron_native_mem_free_bulk {
	__u32 size;
	__u32 flags;
	__u32 count;
	__u32 __reserved;
	__u64 handles;
};

/**
 * struct neuron_native_mem_pin - keep movable memory where it is
 * @size: in
 * @flags: 0
 * @mem_handle: in
 * @pa: out, device address
 * @mmap_offset: out
 *
 * The address is valid until MEM_UNPIN was called as often as this, or the handle is freed.
 * Without a pin, movable memory is found by its handle only: not by mmap(), nor in a ring or a
 * descriptor, and MEM_GET_PA fails with EOPNOTSUPP.  Copies, fills, exports and mappings that
 * were made keep it where it is as long as they last, and so does a queue that has its ring there;
 * on a device whose descriptors the driver checks it does not become a ring (EBUSY).  The process
 * that allocated it pins it (EPERM): an imported handle keeps it where it is, anyway.
 */
struct neuron_native_mem_pin {
	__u32 size;
	__u32 flags;
	__u64 mem_handle;
	__u64 pa;
	__u64 mmap_offset;
};

/**
 * struct neuron_native_mem_unpin - let memory move again
 * @size: in
 * @flags: 0
 * @mem_handle: in; EINVAL: it is not pinned
 */
struct neuron_native_mem_unpin {
	__u32 size;
	__u32 flags;
	__u64 mem_handle;
};

/**
 * struct neuron_native_mem_compact - move memory, so that a request fits
 * @size: in
 * @flags: 0
 * @hbm: in, device memory number
 * @__reserved: 0
 * @bytes: in, the request; 0 = make the longest free run as long as possible
 * @align: in, alignment of the request, 0 or a power of two
 * @budget: in, bytes to copy at most; 0 = any number
 * @moves: in 0; out, allocations that were moved
 * @moved_bytes: in 0; out, their bytes
 * @largest: in 0; out, longest free run that starts at @align
 *
 * Moves movable memory that nobody uses: of processes of the caller's user, or with
 * CAP_SYS_ADMIN of all.  Contents stay.  The result is in @largest: there may be nothing that
 * helps, memory that is given back meanwhile goes to whoever asks first, and a signal ends it
 * early.  EIO, ETIMEDOUT: a copy failed, that memory stays where it was.
 */
struct neuron_native_mem_compact {
	__u32 size;
	__u32 flags;
	__u32 hbm;
	__u32 __reserved;
	__u64 bytes;
	__u64 align;
	__u64 budget;
	__u64 moves;
	__u64 moved_bytes;
	__u64 largest;
};

#endif /* _UAPI_NEURON_NATIVE_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The boundary between neuron.ko and a device, card or software.
 *
 * neuron.ko knows a device as a geometry, a table of operations and nothing
 * else.  The device knows neuron.ko through the functions declared at the end.
 *
 * The device does what hardware does: it decodes register writes, fetches
 * 16-byte descriptors from rings in memory, moves data, counts semaphores and
 * appends to notification queues.  The space bound to the queue translates and checks the
 * addresses that it meets there, as an IOMMU would.
 */
#ifndef NEURON_HW_H
#define NEURON_HW_H

#include <linux/types.h>

struct attribute_group;
struct device;
struct module;
struct page;
struct neuron_watch;
struct neuron_chunk;
struct neuron_device;
struct neuron_space;

#define NEURON_HW_MAX_CORES		8	/* uapi/FACTS.md 1 */
#define NEURON_HW_MAX_HBMS		4
#define NEURON_HW_METRIC_BYTES		128	/* uapi/FACTS.md 2 */
#define NEURON_HW_MAX_NEIGHBOURS	8
#define NEURON_HW_QUEUES_PER_ENGINE	16
#define NEURON_HW_NQ_TYPES		6
#define NEURON_HW_NQ_ENGINES		16
#define NEURON_HW_NR_NQ			(NEURON_HW_NQ_TYPES * NEURON_HW_NQ_ENGINES)
/* Bytes of a core's window that programs map as state buffer (uapi/FACTS.md 7). */
#define NEURON_RESOURCE_SBUF		0x2000000u

/* Value of DEVICE_BASIC_INFO.architecture. */
enum neuron_arch {
	NEURON_ARCH_V1 = 1,
	NEURON_ARCH_V2 = 2,
	NEURON_ARCH_V3 = 3,
	NEURON_ARCH_V4 = 4,
};

/* Register blocks; an operation names block, instance and byte offset. */
enum neuron_block {
	NEURON_BLOCK_CORE,	/* window of a core: state buffer, events, semaphores, FIFOs */
	NEURON_BLOCK_CORE_NQ,	/* its notification queue registers, below */
	NEURON_BLOCK_DMA,	/* a DMA engine, below */
};

/* Notification queue i = type * 16 + engine (uapi/FACTS.md 6). */
#define NEURON_NQ_STRIDE	0x28
#define NEURON_NQ_BASE_LO(i)	(0x100 + NEURON_NQ_STRIDE * (i))
#define NEURON_NQ_BASE_HI(i)	(0x104 + NEURON_NQ_STRIDE * (i))
#define NEURON_NQ_SIZE(i)	(0x108 + NEURON_NQ_STRIDE * (i))	/* bytes; 0 = off */
#define NEURON_NQ_HEAD(i)	(0x10c + NEURON_NQ_STRIDE * (i))	/* read only: bytes */

/* Which queue does register @off belong to?  *@reg is the same register of queue 0. */
static inline bool neuron_nq_decode(u32 off, u32 *nq, u32 *reg)
{
	if (off < NEURON_NQ_BASE_LO(0) || off >= NEURON_NQ_BASE_LO(NEURON_HW_NR_NQ))
		return false;
	*nq = (off - NEURON_NQ_BASE_LO(0)) / NEURON_NQ_STRIDE;
	*reg = off - *nq * NEURON_NQ_STRIDE;
	return true;
}

/* DMA engine registers (uapi/FACTS.md 5). */
#define NEURON_DMA_Q_STRIDE	0x1000
#define NEURON_DMA_TX(q)	(0x1000 + NEURON_DMA_Q_STRIDE * (q))
#define NEURON_DMA_RX(q)	(0x21000 + NEURON_DMA_Q_STRIDE * (q))
#define NEURON_DMA_COMMON	0x38000			/* state request of the engine */
#define NEURON_DMA_Q_CONFIG	0x20
#define NEURON_DMA_Q_CONFIG_PREFETCH	(1u << 16)
#define NEURON_DMA_Q_CONFIG_SCHEDULE	(1u << 17)
#define NEURON_DMA_Q_CONFIG_ENABLE	(NEURON_DMA_Q_CONFIG_PREFETCH | \
					 NEURON_DMA_Q_CONFIG_SCHEDULE)
#define NEURON_DMA_Q_STATUS	0x24
#define NEURON_DMA_Q_BASE_LO	0x28
#define NEURON_DMA_Q_BASE_HI	0x2c
#define NEURON_DMA_Q_LENGTH	0x30			/* descriptors */
#define NEURON_DMA_Q_HEAD	0x34			/* index; phase in bits 31:30 */
#define NEURON_DMA_Q_TAIL_INC	0x38
#define NEURON_DMA_Q_TAIL	0x3c
#define NEURON_DMA_Q_CURRENT	0x40
#define NEURON_DMA_Q_COMPL_LO	0x44
#define NEURON_DMA_Q_COMPL_HI	0x48
#define NEURON_DMA_Q_COMPL_HEAD	0x4c
#define NEURON_DMA_TX_SWRESET	0xb0
#define NEURON_DMA_RX_SWRESET	0x64
#define NEURON_DMA_Q_SWRESET	(1u << 8)
#define NEURON_DMA_Q_INDEX_MASK	0xffffffu
#define NEURON_DMA_Q_PHASE_SHIFT	30

/* Which queue and side does register @off belong to?  *@reg is its offset in the block. */
static inline bool neuron_dma_decode(u32 off, u32 *q, bool *rx, u32 *reg)
{
	*rx = off >= NEURON_DMA_RX(0);
	if (off < NEURON_DMA_TX(0))
		return false;
	off -= *rx ? NEURON_DMA_RX(0) : NEURON_DMA_TX(0);
	*q = off / NEURON_DMA_Q_STRIDE;
	*reg = off % NEURON_DMA_Q_STRIDE;
	return *q < NEURON_HW_QUEUES_PER_ENGINE;
}

/* NEURON_DMA_Q_STATUS; same values as neuron_dma_queue_state.sw_status. */
enum neuron_queue_status {
	NEURON_QUEUE_DISABLED = 1,
	NEURON_QUEUE_ENABLED = 2,
	NEURON_QUEUE_ABORTED = 3,
};

/* NEURON_DMA_COMMON; same values as neuron_dma_eng_state. */
enum neuron_dma_eng_hw_state {
	NEURON_DMA_ENG_DISABLE = 0,
	NEURON_DMA_ENG_IDLE = 1,
	NEURON_DMA_ENG_NORMAL = 2,
	NEURON_DMA_ENG_ABORT = 3,
	NEURON_DMA_ENG_RESET = 4,
};

/* Descriptor words (uapi/FACTS.md 5). */
#define NEURON_DESC_SIZE	16
struct neuron_desc {
	__le32 ctrl;
	__le32 meta;
	__le64 addr;
};
#define NEURON_DESC_LEN_MASK	0xffffu		/* 0 means 65536 */
#define NEURON_DESC_MAX_LEN	65536u
#define NEURON_DESC_RING_ID_SHIFT 24
#define NEURON_DESC_RING_ID_MASK (3u << 24)
#define NEURON_DESC_FIRST	(1u << 26)
#define NEURON_DESC_LAST	(1u << 27)
#define NEURON_DESC_INT		(1u << 28)
#define NEURON_DESC_BARRIER	(1u << 30)
#define NEURON_DESC_META_COPY	0x01080003u
#define NEURON_DESC_META_WRITE_BARRIER (1u << 26)
#define NEURON_DESC_META_OP_SHIFT 23
#define NEURON_DESC_META_OP_MASK (7u << 23)
#define NEURON_DESC_META_OP_COPY (2u << 23)
#define NEURON_RING_MIN		32u
#define NEURON_RING_MAX		16777200u
#define NEURON_RING_UNUSED	16u		/* slots that stay empty */
#define NEURON_RING_ALIGN	256u
#define NEURON_PACKET_MAX	65u	/* descriptors, as cards are set up (../pci/udma.c) */

/**
 * struct neuron_hbm_geometry - one device memory
 * @base: device address
 * @size: bytes
 * @reserved: bytes at its start that firmware keeps (uapi/FACTS.md 4)
 */
struct neuron_hbm_geometry {
	u64 base;
	u64 size;
	u64 reserved;
};

/**
 * struct neuron_geometry - what a device is made of; constant while it lives
 * @arch: value that user space sees
 * @revision: PCI revision or what stands for it
 * @nd_arch_type: text of info/architecture/arch_type, e.g. "NDv3"
 * @nc_arch_type: same of a core, e.g. "NCv3"
 * @instance_type: e.g. "Trn2"
 * @device_name: e.g. "Trainium2"
 * @nr_cores: physical cores
 * @nr_hbms: entries of @hbm
 * @hbm: device memories
 * @nr_dma_engines: engines, those for host copies included
 * @engines_per_core: engines c*n .. c*n+n-1 belong to core c
 * @nr_semaphores: per core
 * @sem_block: bytes between two blocks of semaphore registers: read, set,
 *	       increment, decrement
 * @nr_events: per core
 * @nr_topsp: collective sequencers
 * @nr_nq_types: notification queue types of a core
 * @nr_nq_engines: queues of a type
 * @copy_engine: for each core the engine of its kernel-owned copy ring
 * @copy_queue: and the queue
 * @host_window: bit set in device addresses of host memory
 * @tpb_base: device address of each core's window
 * @tpb_size: its length
 * @sbuf_size: bytes of a state buffer
 * @isa_version: instruction set of uapi/neuron_isa.h, 0 = the vendor's
 * @reset_msec: a reset of a core that takes longer has failed; 0: the device says so itself
 * @hbm_clear_at_start: device memory reads as zero when the device appears
 * @hbm_io: the CPU sees device memory and core windows as memory of a bus, such as a BAR:
 *	    there are no struct pages behind the frames of hbm_pfn and core_pfn, and user
 *	    space maps them write-combined (the back end has reserved the BAR for that, with
 *	    arch_io_reserve_memtype_wc())
 * @compat_min: lowest runtime interface version (COMPATIBLE_VERSION)
 * @compat_max: highest
 */
struct neuron_geometry {
	enum neuron_arch arch;
	u32 revision;
	const char *nd_arch_type;
	const char *nc_arch_type;
	const char *instance_type;
	const char *device_name;
	u32 nr_cores;
	u32 nr_hbms;
	struct neuron_hbm_geometry hbm[NEURON_HW_MAX_HBMS];
	u32 nr_dma_engines;
	u32 engines_per_core;
	u32 nr_semaphores;
	u32 sem_block;
	u32 nr_events;
	u32 nr_topsp;
	u32 nr_nq_types;
	u32 nr_nq_engines;
	u8 copy_engine[NEURON_HW_MAX_CORES];
	u8 copy_queue[NEURON_HW_MAX_CORES];
	u64 host_window;
	u64 tpb_base[NEURON_HW_MAX_CORES];
	u64 tpb_size;
	u64 sbuf_size;
	u32 isa_version;
	u32 reset_msec;
	bool hbm_clear_at_start;
	bool hbm_io;
	u32 compat_min;
	u32 compat_max;
};

/* Events that a device reports.  The ECC events come first; the device also counts them. */
enum neuron_event {
	NEURON_EVENT_MEM_CORRECTED,	/* ECC of device memory, corrected */
	NEURON_EVENT_MEM_UNCORRECTED,	/* not corrected */
	NEURON_EVENT_MEM_REPAIRABLE,	/* not corrected; a reset of the device repairs it */
	NEURON_EVENT_SRAM_CORRECTED,	/* ECC of memory in the cores */
	NEURON_EVENT_SRAM_UNCORRECTED,
	NEURON_EVENT_DMA_ABORT,		/* a DMA engine failed, through no fault of its user */
	NEURON_NR_EVENTS,
	NEURON_NR_ECC = NEURON_EVENT_DMA_ABORT,
};

#define NEURON_POWER_MAX	10000u

/**
 * struct neuron_power - power drawn, where NEURON_POWER_MAX is the most
 * @time: when it was sampled last, seconds since 1970
 * @now: last sample
 * @min: lowest of the last minute
 * @max: highest
 * @avg: mean
 */
struct neuron_power {
	u64 time;
	u32 now;
	u32 min;
	u32 max;
	u32 avg;
};

/**
 * struct neuron_queue_setup - what a queue pair works on
 * @space: what its descriptors may name
 * @addr: device addresses of its rings, TX and RX; 0: no ring, that side stays off
 * @length: descriptors of each ring
 */
struct neuron_queue_setup {
	struct neuron_space *space;
	u64 addr[2];
	u32 length[2];
};

/**
 * struct neuron_hw_ops - what a device can do
 *
 * All operations may sleep and may be called concurrently, except where noted.
 * A device is never called again once neuron_device_del() has returned, which
 * does not wait for processes: it stops what they do.
 */
struct neuron_hw_ops {
	/** @owner: module that cannot be unloaded while the device is open */
	struct module *owner;

	/**
	 * @reg_read: read a 32-bit register.  @off is aligned to 4.  Must not
	 * sleep for NEURON_DMA_Q_STATUS, which is read while waiting.
	 * Return: 0, -EINVAL no such register, -EIO.
	 */
	int (*reg_read)(struct neuron_device *nd, enum neuron_block block, u32 index,
			u32 off, u32 *val);

	/**
	 * @reg_write: write a 32-bit register; doorbells are register writes
	 * and must not block for the work they start.
	 * Return: 0, -EINVAL no such register or value, -EIO, -ENOMEM.
	 */
	int (*reg_write)(struct neuron_device *nd, enum neuron_block block, u32 index,
			 u32 off, u32 val);

	/**
	 * @queue_start: set up the stopped queue pair (@eng, @q), which waits for
	 * doorbells from now on and may only touch what @setup->space allows.
	 * The space stays valid until queue_stop, which also ends a failed start.
	 * Return: 0, -EINVAL, -ENOMEM, -EIO.
	 */
	int (*queue_start)(struct neuron_device *nd, u32 eng, u32 q,
			   const struct neuron_queue_setup *setup);

	/**
	 * @queue_stop: stop and forget the queue pair.
	 * Return: 0, the device makes no further access on its behalf and holds no pin;
	 * -EIO, it may do so until its core is reset.
	 */
	int (*queue_stop)(struct neuron_device *nd, u32 eng, u32 q);

	/**
	 * @queue_abort: stop and forget a queue pair of the driver's own copies that has not done
	 * what its doorbells asked for.  The device makes no further access on its behalf; others
	 * on its engine may find theirs aborted.  Optional: queue_stop does it.
	 */
	void (*queue_abort)(struct neuron_device *nd, u32 eng, u32 q);

	/**
	 * @queue_ring: ring both doorbells of the queue pair, each for @count descriptors.  The
	 * caller calls queue_poll next, so that a device whose work is done by CPUs need not
	 * wake one.  Optional: registers are written otherwise.
	 */
	int (*queue_ring)(struct neuron_device *nd, u32 eng, u32 q, u32 count);

	/**
	 * @queue_poll: the caller is about to sleep until the queue pair has done
	 * what its doorbells asked for.  A device whose work is done by CPUs does a piece
	 * of it here, which saves a wake-up; it does nothing when a fatal signal is
	 * pending.  Optional.
	 *
	 * Return: true if there is more, which is only done if the caller calls again.
	 */
	bool (*queue_poll)(struct neuron_device *nd, u32 eng, u32 q);

	/**
	 * @queue_rw: read or write @addr at once, as a descriptor of the queue pair would, which
	 * was started and has nothing to do.  For a device whose work is done by CPUs.
	 * Optional.
	 *
	 * Return: false, @addr was not accessed, or in part: descriptors will do it, or tell why
	 * it cannot be done.
	 */
	bool (*queue_rw)(struct neuron_device *nd, u32 eng, u32 q, u64 addr, void *buf, u32 len,
			 bool write);

	/**
	 * @core_bind: the engines of @core act for @space from now on (DMA
	 * triggers only reach queues bound to the same space).  NULL: for no space.
	 * Called while the core is reset.  Optional.
	 */
	void (*core_bind)(struct neuron_device *nd, u32 core, struct neuron_space *space);

	/**
	 * @core_reset_begin: begin to reset @cores (bit by number), whether or not an
	 * earlier reset of theirs has ended: stop their engines and the queues of their
	 * DMA engines, except those of the driver's copies, drop their FIFOs, clear state
	 * buffers, semaphores and events, switch their notification queues off.  Returns
	 * at once, without waiting for hardware.  A reset of other cores may be under way;
	 * a device that can do only one at a time begins with the next one in its polls.
	 * Return: 0, -EIO.
	 */
	int (*core_reset_begin)(struct neuron_device *nd, unsigned long cores);

	/**
	 * @core_reset_poll: has the reset of @cores ended?  The driver has a limit of its
	 * own, neuron_geometry.reset_msec.
	 * Return: 0, the cores make no access of before any more, and work; -EINPROGRESS;
	 * -EIO, they may make accesses, and are not usable before another reset.
	 */
	int (*core_reset_poll)(struct neuron_device *nd, unsigned long cores);

	/**
	 * @flush: when it returns, register writes of before have taken effect, and what
	 * the device wrote to memory before them has arrived.  Optional.
	 */
	void (*flush)(struct neuron_device *nd);

	/**
	 * @stop: the device is being removed.  When it returns, the device makes no access
	 * any more, whatever state its cores and queues are in.
	 */
	void (*stop)(struct neuron_device *nd);

	/**
	 * @hbm_release: memory at @off (from the start of @hbm, whole pages)
	 * is no longer used.  Optional.
	 * Return: true if it reads as zero from now on.
	 */
	bool (*hbm_release)(struct neuron_device *nd, u32 hbm, u64 off, u64 len);

	/** @hbm_clear: make the range read as zero.  Return: 0, -EIO, -ENOMEM. */
	int (*hbm_clear)(struct neuron_device *nd, u32 hbm, u64 off, u64 len);

	/**
	 * @hbm_pfn: page frame through which the CPU sees the page at @off.
	 * Stays valid until the range is released or the device deleted.
	 * Return: 0, -ENOMEM, -ENXIO not visible to the CPU.
	 */
	int (*hbm_pfn)(struct neuron_device *nd, u32 hbm, u64 off, unsigned long *pfn);

	/**
	 * @peer_dma: can @peer, another device, do DMA to device memory at its physical
	 * address?  The frames of one HBM follow each other and have no struct pages then.
	 * Optional: none can.
	 * Return: 0, -EOPNOTSUPP.
	 */
	int (*peer_dma)(struct neuron_device *nd, struct device *peer);

	/**
	 * @core_pfn: page frame through which the CPU sees the page at @off in
	 * the window of @core.  Stays valid until the core is reset.  Optional.
	 * Return: 0, -ENOMEM, -ENXIO not visible to the CPU.
	 */
	int (*core_pfn)(struct neuron_device *nd, u32 core, u64 off, unsigned long *pfn);

	/**
	 * @ecc_count: ECC events of a kind since the device was switched on.
	 * Optional.  Return: 0, -EIO.
	 */
	int (*ecc_count)(struct neuron_device *nd, enum neuron_event event, u64 *count);

	/**
	 * @power: power drawn in the last minute.  Optional.
	 * Return: 0, -ENODATA no sample yet, -EIO.
	 */
	int (*power)(struct neuron_device *nd, struct neuron_power *power);

	/**
	 * @metric: pass NEURON_HW_METRIC_BYTES that a program wants to be known to the
	 * device's firmware.  Killable.  Optional: they are dropped.
	 * Return: 0, -ETIMEDOUT, -EIO refused, -EBUSY, -ENOMEM, -ENODEV, -EINTR.
	 */
	int (*metric)(struct neuron_device *nd, const u32 *words);
};

/**
 * struct neuron_location - where a device is plugged in
 * @known: the rest is filled in; else the device's number stands for all of it
 * @domain: PCI domain
 * @bus: PCI bus
 * @slot: PCI device
 * @func: PCI function
 * @rid: routing id, the position among the devices of the host
 */
struct neuron_location {
	bool known;
	u32 domain;
	u32 bus;
	u8 slot;
	u8 func;
	u32 rid;
};

/**
 * struct neuron_device_desc - a device to add
 * @geometry: copied
 * @ops: must stay valid while the device exists
 * @groups: additional sysfs attributes of the device, may be NULL
 * @priv: for the device's own use
 * @parent: device that makes the DMA, with its DMA mask set, no larger than the host window,
 *	    and the largest segment size; it must stay until neuron_device_del() returns.  A
 *	    device address of host memory is its DMA address | geometry.host_window, and a
 *	    chunk is one range of them; neuronN has a link "device" to it.  NULL: addresses
 *	    of host memory mean nothing outside of neuron_device_pin()
 * @polled: the device never calls neuron_dma_irq() and neuron_nq_posted(): those who wait for
 *	    it look for themselves
 * @isolates: it checks each access of a queue against the queue's space; else the driver
 *	      checks descriptors (../dma/RINGS.md), unless root trusts programs
 * @index: wanted device number or -1 for the first free one
 * @serial: serial number
 * @location: where it is plugged in
 * @nr_neighbours: entries of @neighbours
 * @neighbours: device numbers that this one is linked to
 */
struct neuron_device_desc {
	const struct neuron_geometry *geometry;
	const struct neuron_hw_ops *ops;
	const struct attribute_group **groups;
	void *priv;
	struct device *parent;
	bool polled;
	bool isolates;
	int index;
	u64 serial;
	struct neuron_location location;
	u32 nr_neighbours;
	u32 neighbours[NEURON_HW_MAX_NEIGHBOURS];
};

/* What a device address refers to. */
enum neuron_target {
	NEURON_TARGET_HBM,
	NEURON_TARGET_HOST,
	NEURON_TARGET_CORE,
};

/**
 * struct neuron_pin - a checked range of device addresses, held for access
 * @kind: what the range is in
 * @index: HBM or core number
 * @off: offset from the start of the HBM, of the host buffer, of the core window
 * @pages: host buffer: its pages, from its start
 * @chunk: reference that keeps the memory; NULL for core windows
 * @counted: what the chunk counts it as, enum neuron_user
 * @watch: the range as noted by mem/watch.c
 */
struct neuron_pin {
	enum neuron_target kind;
	u32 index;
	u64 off;
	struct page **pages;
	struct neuron_chunk *chunk;
	u8 counted;
	struct neuron_watch *watch;
};

struct neuron_device *neuron_device_add(const struct neuron_device_desc *desc);
void neuron_device_del(struct neuron_device *nd);
void *neuron_device_priv(struct neuron_device *nd);
u32 neuron_device_index(struct neuron_device *nd);

int neuron_space_pin(struct neuron_space *space, u64 addr, u64 len, bool write,
		     struct neuron_pin *pin);
int neuron_device_pin(struct neuron_device *nd, u64 addr, u64 len, bool write,
		      struct neuron_pin *pin);
void neuron_pin_put(struct neuron_pin *pin);
int neuron_ring_pin(struct neuron_space *space, u64 addr, u64 len, bool write,
		    struct neuron_pin *pin);

void neuron_dma_irq(struct neuron_device *nd, u32 eng, u32 q);
int neuron_engine_enter(struct neuron_device *nd, u32 eng, bool alone);
void neuron_engine_leave(struct neuron_device *nd, u32 eng, bool alone);
void neuron_nq_posted(struct neuron_device *nd, u32 core, u32 nq);
void neuron_device_report(struct neuron_device *nd, enum neuron_event event, u32 core);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The software device: what its parts share.  README.md in this folder tells
 * how they work together.
 *
 * Locks, outermost first.  Nothing of neuron.ko is called with a spinlock held.
 *
 *   emu_core.reset	mutex: one reset of a core at a time
 *   emu_dma.run	mutex: the worker of a DMA engine while it serves a queue,
 *			and whoever stops or programs one
 *   emu_device.window	rwsem: read by DMA and register accesses to core windows,
 *			written when a reset takes their memory away
 *   emu_core.append	mutex: one writer to the instruction FIFOs at a time
 *   emu_core.nq_lock	mutex: registers and contents of notification queues
 *   emu_core.lock	spinlock: semaphores, events, FIFO indices, engine states
 *   emu_dma.lock	spinlock: ring pointers and which queues have work
 *
 * neuron_space_pin(), neuron_device_pin(), neuron_dma_irq() and
 * neuron_nq_posted() are called with emu_dma.run or emu_core.nq_lock held, or
 * from the worker of a core.  Therefore neuron.ko must not hold a lock that one
 * of them takes when it stops a queue, resets a core or writes a register.
 */
#ifndef EMU_H
#define EMU_H

#include <linux/bitmap.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../base/fault.h"
#include "../base/neuron_hw.h"
#include "exec.h"

#define EMU_MAX_DEVICES		64	/* uapi/FACTS.md 1 */
#define EMU_COMPLETION_NSEC	10000	/* latency unless told otherwise */
#define EMU_MAX_ENGINES		132	/* DMA engines of the largest device */
#define EMU_MAX_SEMAPHORES	256
#define EMU_MAX_EVENTS		256

/* Notification queue types (uapi/FACTS.md 3). */
#define EMU_NQ_TRACE		0
#define EMU_NQ_NOTIFY		1
#define EMU_NQ_EVENT		2
#define EMU_NQ_ERROR		3
#define EMU_NQ_TRACE_DMA	4

struct emu_arch;
struct emu_device;
struct emu_packet;

/* How DMA work is done that a doorbell starts. */
enum emu_completion {
	EMU_COMPLETE_WORKER,	/* in a work item */
	EMU_COMPLETE_INLINE,	/* before the doorbell returns */
	EMU_COMPLETE_TIMER,	/* in a work item, after a latency */
};

/* What can be made to fail.  faults.c has the names. */
enum emu_fault_kind {
	EMU_FAULT_DMA_ABORT,
	EMU_FAULT_LOST_NOTICE,
	EMU_FAULT_HANG,
	EMU_FAULT_RESET,
	EMU_FAULT_RESET_SLOW,
	EMU_FAULT_MEM_CORRECTED,
	EMU_FAULT_MEM_UNCORRECTED,
	EMU_FAULT_MEM_REPAIRABLE,
	EMU_FAULT_SRAM_CORRECTED,
	EMU_FAULT_SRAM_UNCORRECTED,
	EMU_NR_FAULTS
};

#define EMU_BUSY_SLOTS		64

/**
 * struct emu_busy - when a device was at work
 * @lock: the rest
 * @active: engines at work
 * @since: what was before is accounted; nanoseconds
 * @first: first whole second of the device
 * @sec: which second an entry is about
 * @busy: nanoseconds of it
 */
struct emu_busy {
	spinlock_t lock;	/* the rest */
	u32 active;
	u64 since;
	u64 first;
	u64 sec[EMU_BUSY_SLOTS];
	u64 busy[EMU_BUSY_SLOTS];
};

/**
 * struct emu_config - what a device is to be like
 * @arch: kind of device
 * @hbm_size: bytes of each device memory, 0 = the real size
 * @index: number, -1 = the first free one
 * @serial: serial number
 * @location: where it is plugged in, if known
 * @nr_neighbours: entries of @neighbours
 * @neighbours: numbers of the devices that it is linked to
 * @completion: when DMA work is done
 * @completion_nsec: latency of EMU_COMPLETE_TIMER
 */
struct emu_config {
	const struct emu_arch *arch;
	u64 hbm_size;
	int index;
	u64 serial;
	struct neuron_location location;
	u32 nr_neighbours;
	u32 neighbours[NEURON_HW_MAX_NEIGHBOURS];
	enum emu_completion completion;
	u64 completion_nsec;
};

/**
 * struct emu_hbm - one sparse device memory
 * @pages: pages that were written to, by offset / PAGE_SIZE
 * @size: bytes
 */
struct emu_hbm {
	struct xarray pages;
	u64 size;
};

/* Descriptors fetched from a ring at a time. */
#define EMU_FETCH		32

/**
 * struct emu_ring - one direction of a queue
 * @base: device address (run; written also under lock)
 * @len: descriptors, 0 = not programmed (run; written also under lock)
 * @config: configuration register (run; written also under lock)
 * @head: index of the next descriptor to take (run; written under lock)
 * @head_phase: ring id of @head (same)
 * @tail: index that the next doorbell starts at (lock)
 * @tail_phase: ring id of @tail (lock)
 * @pending: descriptors between head and tail (lock)
 * @busy: @cur was taken and is not complete (run; written under lock)
 * @moved: bytes of @cur that are done (run)
 * @cur: descriptor being worked on (run)
 * @cur_addr: where it was (run)
 * @next: first unused entry of the fetched descriptors (run)
 * @fetched: number of fetched descriptors (run)
 */
struct emu_ring {
	u64 base;
	u32 len;
	u32 config;
	u32 head;
	u32 head_phase;
	u32 tail;
	u32 tail_phase;
	u32 pending;
	bool busy;
	u32 moved;
	struct neuron_desc cur;
	u64 cur_addr;
	u32 next;
	u32 fetched;
};

/**
 * struct emu_queue - a queue pair of a DMA engine
 * @space: what it may touch, NULL = not bound (run; written also under lock)
 * @tx: source descriptors
 * @rx: destination descriptors
 * @in_packet: the next source descriptor continues a packet (run)
 * @packet: compute packet whose descriptors are being collected, or NULL (run)
 * @aborted: stopped by an error (run; written also under lock)
 * @stopping: somebody waits for the queue to be left alone (READ_ONCE)
 * @done: source descriptors completed since start (run)
 * @began: when the current packet was taken, 0 = it is not traced (run)
 * @first: @done at that time (run)
 * @bytes: bytes of that packet that were written (run)
 */
struct emu_queue {
	struct neuron_space *space;
	struct emu_ring tx, rx;
	bool in_packet;
	struct emu_packet *packet;
	bool aborted;
	bool stopping;
	u32 done;
	u64 began;
	u32 first;
	u32 bytes;
};

/**
 * struct emu_dma - a DMA engine; made when its first queue is bound
 * @ed: device
 * @index: engine number
 * @run: held while a queue is being served, stopped or programmed
 * @lock: ring pointers, @ready, @stalled, @last
 * @work: serves the queues in @ready
 * @timer: queues @work after a latency
 * @state: enum neuron_dma_eng_hw_state (run; written also under lock)
 * @ready: queues whose doorbells rang
 * @stalled: queues that wait for room in an instruction FIFO
 * @last: queue served last
 * @tx_desc: descriptors fetched for the queue being served (run)
 * @rx_desc: same
 * @q: queues
 */
struct emu_dma {
	struct emu_device *ed;
	u32 index;
	struct mutex run;	/* see the head of this file */
	spinlock_t lock;	/* see the head of this file */
	struct work_struct work;
	struct hrtimer timer;
	u32 state;
	u16 ready;
	u16 stalled;
	u8 last;
	struct neuron_desc tx_desc[EMU_FETCH];
	struct neuron_desc rx_desc[EMU_FETCH];
	struct emu_queue q[NEURON_HW_QUEUES_PER_ENGINE];
};

/**
 * struct emu_fifo - instruction FIFO
 * @buf: NEURON_ISA_FIFO_SIZE bytes, made at the first write
 * @head: bytes ever taken out, modulo 2^32 (emu_core.lock)
 * @tail: bytes ever put in, modulo 2^32 (emu_core.lock)
 * @stalled: somebody waits for room (emu_core.lock)
 */
struct emu_fifo {
	u8 *buf;
	u32 head;
	u32 tail;
	bool stalled;
};

/**
 * struct emu_engine - one of the engines of a core
 * @fifo: its instructions
 * @inst: the current one (worker)
 * @loaded: @inst is valid and checked (worker)
 * @computing: @exec is in the middle of @inst (worker)
 * @started: it has seen a prologue (worker)
 * @failed: stopped by an error until reset (worker)
 * @done: instructions completed since start (worker)
 * @exec: state of a compute instruction (worker)
 *
 * "Worker": only emu_core.work touches it, or a reset that has cancelled it.
 */
struct emu_engine {
	struct emu_fifo fifo;
	struct neuron_isa_inst inst;
	bool loaded;
	bool computing;
	bool started;
	bool failed;
	u32 done;
	struct emu_exec exec;
};

/**
 * struct emu_nq - a notification queue
 * @new_base: address registers; count from the next write of the size
 * @base: device address in use
 * @size: bytes, 0 = off
 * @head: byte offset of the next entry
 * @phase: phase bit of the next entry
 * @lost: entries of a trace that did not fit
 */
struct emu_nq {
	u64 new_base;
	u64 base;
	u32 size;
	u32 head;
	u8 phase;
	u64 lost;
};

/**
 * struct emu_core - a NeuronCore
 * @ed: device
 * @index: core number
 * @reset: one reset at a time
 * @append: one writer to the FIFOs at a time
 * @nq_lock: notification queues
 * @lock: semaphores, events, FIFO indices, @waiting, @resetting, @space
 * @work: runs the engines
 * @lim: what instructions may refer to
 * @space: for whom the core acts, NULL = nobody
 * @resetting: do not start @work
 * @broken: same, because the last reset failed
 * @waiting: engines blocked on a semaphore or event, bit mask
 * @sbuf: state buffer, made at the first write; reads as zero before.  Stays
 *        while emu_device.window is held or @work runs.
 * @sem: semaphores
 * @event: events
 * @engine: engines
 * @nq: notification queues
 */
struct emu_core {
	struct emu_device *ed;
	u32 index;
	struct mutex reset;	/* see the head of this file */
	struct mutex append;	/* see the head of this file */
	struct mutex nq_lock;	/* see the head of this file */
	spinlock_t lock;	/* see the head of this file */
	struct work_struct work;
	struct emu_isa_limits lim;
	struct neuron_space *space;
	bool resetting;
	bool broken;
	u8 waiting;
	u8 *sbuf;
	u32 sem[EMU_MAX_SEMAPHORES];
	DECLARE_BITMAP(event, EMU_MAX_EVENTS);
	struct emu_engine engine[NEURON_ISA_NR_ENGINES];
	struct emu_nq nq[NEURON_HW_NR_NQ];
};

/**
 * struct emu_device - a device
 * @nd: what neuron.ko knows it as; set before anything can run
 * @added: neuron.ko knows it
 * @number: its number there
 * @geo: geometry
 * @wq: where the work of its engines and cores runs
 * @hbm: device memories
 * @nr_pages: pages in all of @hbm
 * @window: held for reading while a core window is accessed
 * @dma_alloc: makes @dma entries one at a time
 * @dma: DMA engines; entries appear, and go only with the device
 * @stalled: engines with queues that wait for room in a FIFO
 * @core: cores
 * @completion: when DMA work is done (READ_ONCE)
 * @completion_nsec: latency of EMU_COMPLETE_TIMER (READ_ONCE)
 * @busy: when it was at work
 * @fault: what is to fail
 * @reset_slow_msec: how long a slow reset takes
 * @ecc: ECC events so far, by enum neuron_event
 * @unplug_lock: @added, after the device was made
 * @unplug: pulls the device out
 * @debugfs: directory of the device
 */
struct emu_device {
	struct neuron_device *nd;
	bool added;
	u32 number;
	struct neuron_geometry geo;
	struct workqueue_struct *wq;
	struct emu_hbm hbm[NEURON_HW_MAX_HBMS];
	atomic_long_t nr_pages;
	struct rw_semaphore window;
	struct mutex dma_alloc;	/* see above */
	struct emu_dma *dma[EMU_MAX_ENGINES];
	DECLARE_BITMAP(stalled, EMU_MAX_ENGINES);
	struct emu_core *core[NEURON_HW_MAX_CORES];
	enum emu_completion completion;
	u64 completion_nsec;
	struct emu_busy busy;
	struct neuron_fault fault[EMU_NR_FAULTS];
	u32 reset_slow_msec;
	atomic64_t ecc[NEURON_NR_ECC];
	struct mutex unplug_lock;	/* see above */
	struct work_struct unplug;
	struct dentry *debugfs;
};

static inline bool emu_fault(struct emu_device *ed, enum emu_fault_kind kind)
{
	return neuron_fault_hit(&ed->fault[kind]);
}

/* faults.c */
bool emu_ecc(struct emu_device *ed, enum emu_fault_kind kind, u32 core);
int emu_mem_ecc(struct emu_device *ed, u32 core, const struct neuron_pin *from);
void emu_faults_add(struct emu_device *ed, struct dentry *dir);

/* completion.c */
int emu_find_completion(const char *name);
const char *emu_completion_name(enum emu_completion c);

/* debugfs.c */
void emu_debugfs_add(struct emu_device *ed);
void emu_debugfs_del(struct emu_device *ed);
void emu_debugfs_init(void);
void emu_debugfs_exit(void);

/* busy.c */
void emu_busy_init(struct emu_busy *b);
void emu_busy_begin(struct emu_busy *b);
void emu_busy_end(struct emu_busy *b);
int emu_busy_read(struct emu_busy *b, struct neuron_power *p);

/* arch.c */
#define EMU_MIN_HBM_MIB		64	/* the reserved part and something to use */

/**
 * struct emu_arch - a kind of device
 * @name: value of the parameter arch
 * @geo: geometry
 * @links: neighbours on a host with 16 of them; NULL: inf1, chains of 4 and 16,
 *         and inf2, a ring of 12 or a chain of 6
 */
struct emu_arch {
	const char *name;
	struct neuron_geometry geo;
	const u8 (*links)[4];
};

/* device.c */
/* "EMU", then a number: serial numbers of devices that were given none. */
#define EMU_SERIAL(i)		(0x454d550000000000ULL | (i))

const struct emu_arch *emu_find_arch(const char *name);
const char *emu_arch_name(const struct emu_arch *a);
bool emu_hbm_size_valid(const struct emu_arch *a, u64 mib);
struct emu_device *emu_device_new(const struct emu_config *cfg);
void emu_device_free(struct emu_device *ed);

/* presets.c: whole instances */
struct emu_slot;

/**
 * struct emu_preset - an instance type
 * @name: as users know it
 * @arch: kind of its devices
 * @nr_devices: how many it has
 * @slots: where each of them is plugged in; NULL: not published
 */
struct emu_preset {
	const char *name;
	const char *arch;
	u32 nr_devices;
	const struct emu_slot *slots;
};

const struct emu_preset *emu_find_preset(const char *name);
struct neuron_location emu_preset_location(const struct emu_preset *p, u32 i);

/* configfs.c */
#if IS_REACHABLE(CONFIG_CONFIGFS_FS)
int emu_configfs_init(void);
void emu_configfs_exit(void);
#else
static inline int emu_configfs_init(void)
{
	return 0;
}

static inline void emu_configfs_exit(void)
{
}
#endif

/* hbm.c: device memory, and copies between whatever can be pinned */
extern atomic_long_t emu_total_pages;
extern unsigned long emu_max_pages;
bool emu_pages_charge(long n);
void emu_pages_uncharge(long n);

void emu_hbm_init(struct emu_device *ed);
void emu_hbm_destroy(struct emu_device *ed);
int emu_hbm_zero(struct emu_device *ed, u32 hbm, u64 off, u64 len, bool drop);
int emu_hbm_frame(struct emu_device *ed, u32 hbm, u64 off, unsigned long *pfn);
int emu_mem_read(struct emu_device *ed, const struct neuron_pin *pin, u64 off,
		 void *buf, u32 len);
int emu_mem_write(struct emu_device *ed, const struct neuron_pin *pin, u64 off,
		  const void *buf, u32 len);
int emu_mem_copy(struct emu_device *ed, const struct neuron_pin *dst, u64 dst_off,
		 const struct neuron_pin *src, u64 src_off, u32 len);
int emu_mem_post(struct emu_device *ed, const struct neuron_pin *pin,
		 const struct neuron_isa_notice *n);

/* dma.c */
void emu_dma_init(struct emu_device *ed);
void emu_dma_destroy(struct emu_device *ed);
int emu_dma_bind(struct emu_device *ed, u32 eng, u32 q, struct neuron_space *space);
void emu_dma_stop(struct emu_device *ed, u32 eng, u32 q);
bool emu_dma_poll(struct emu_device *ed, u32 eng, u32 q);
int emu_dma_reg_read(struct emu_device *ed, u32 eng, u32 off, u32 *val);
int emu_dma_reg_write(struct emu_device *ed, u32 eng, u32 off, u32 val);
bool emu_dma_trigger(struct emu_device *ed, u32 eng, u32 q, struct neuron_space *space,
		     u32 tx, u32 rx);
void emu_dma_kick(struct emu_device *ed);

/* packet.c: compute packets */
struct emu_packet *emu_packet_new(u32 meta);
void emu_packet_free(struct emu_packet *p);
int emu_packet_source(struct emu_packet *p, u32 meta, u64 addr, u32 len, bool irq);
int emu_packet_dest(struct emu_packet *p, u32 arg, u64 addr, u32 len, bool irq);
u32 emu_packet_sources(const struct emu_packet *p);
bool emu_packet_irq(const struct emu_packet *p);
u32 emu_packet_result(const struct emu_packet *p);
int emu_packet_run(struct emu_device *ed, struct neuron_space *space, u32 core,
		   struct emu_packet *p, u64 *bad);

/* core.c */
int emu_core_init(struct emu_device *ed);
void emu_core_destroy(struct emu_device *ed);
void emu_core_bind(struct emu_core *core, struct neuron_space *space);
int emu_core_reset(struct emu_core *core);
bool emu_core_is_sbuf(struct emu_device *ed, u64 off, u64 len);
u8 *emu_core_sbuf(struct emu_core *core, bool alloc);
int emu_core_reg_read(struct emu_core *core, u64 off, u32 *val);
int emu_core_reg_write(struct emu_core *core, u64 off, u32 val);
int emu_core_fifo_engine(u64 off, u64 len);
int emu_core_fifo_write(struct emu_core *core, u32 engine, const struct neuron_pin *src,
			u64 src_off, u32 len);
int emu_nq_reg_read(struct emu_core *core, u32 off, u32 *val);
int emu_nq_reg_write(struct emu_core *core, u32 off, u32 val);
void emu_nq_post(struct emu_core *core, u32 nq, const struct neuron_isa_notice *n);
void emu_nq_fill(struct emu_core *core, u32 nq, const struct neuron_isa_notice *n, u32 count);

/* trace.c */
void emu_trace_inst(struct emu_core *core, u32 e, enum neuron_isa_notice_kind kind);
void emu_trace_sem_prepare(struct emu_core *core, u32 i, u32 by, struct neuron_isa_notice *n);
void emu_trace_sem_post(struct emu_core *core, const struct neuron_isa_notice *n);
u64 emu_trace_dma_begin(struct emu_device *ed, u32 eng);
void emu_trace_dma_end(struct emu_device *ed, u32 eng, u32 q, u64 began, u32 first, u32 bytes);

/* arch.c */
u32 emu_neighbours(const struct emu_arch *a, u32 i, u32 n, u32 *list);

/* dma.c */
struct emu_dma *emu_dma_find(struct emu_device *ed, u32 eng);
struct emu_dma *emu_dma_get(struct emu_device *ed, u32 eng);
void emu_dma_serve(struct emu_dma *dma);
void emu_queue_check(struct emu_dma *dma, u32 i);
bool emu_queue_ring(struct emu_dma *dma, u32 i);

/* engine.c */
bool emu_engine_turn(struct emu_core *core, u32 e);

/* hbm.c */
struct page *emu_hbm_page(struct emu_device *ed, u32 hbm, u64 off);
struct page *emu_pages_alloc(unsigned int order);
unsigned int emu_pages_store(struct emu_device *ed, u32 hbm, unsigned long index,
			     struct page *page, unsigned int n);

/* queue.c */
void emu_queue_abort(struct emu_dma *dma, u32 i, u32 code, u64 addr);
void emu_queue_init(struct emu_queue *q, struct neuron_space *space);
void emu_queue_restart(struct emu_queue *q, struct emu_ring *r);
bool emu_queue_runnable(const struct emu_dma *dma, const struct emu_queue *q);
bool emu_queue_serve(struct emu_dma *dma, u32 i);
void emu_ring_add(struct emu_ring *r, u32 n);
bool emu_ring_enabled(const struct emu_ring *r);
bool emu_ring_takes(const struct emu_ring *r, u32 n);

/* sbuf.c */
void emu_sbuf_free(struct emu_core *core, u8 *sbuf);

/* window.c */
int emu_copy_locked(struct emu_device *ed, const struct neuron_pin *dst, u64 dst_off,
		    const struct neuron_pin *src, u64 src_off, u32 len);
void emu_core_wake(struct emu_core *core);
int emu_sem_post(struct emu_core *core, u32 i, u32 op, u32 val);
int emu_window_read(struct emu_core *core, u32 off, u32 *val);
int emu_window_write(struct emu_core *core, u32 off, u32 val);

#endif /* EMU_H */

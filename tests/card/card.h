/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A Neuron card at the level of its registers: what a driver reads and writes in its BARs,
 * and what the card reads and writes in host memory. Facts and their confidence:
 * README.md.
 *
 * The model is strict. An access that no table knows, or in another order than the tables
 * have, is a complaint: it is recorded, printed, and makes the test fail that caused it.
 */
#ifndef CARD_H
#define CARD_H

#include "host_kernel.h"

#include "../../kmod/emu/core.h"
#include "../../kmod/emu/dma.h"

#define CARD_ENGINE_LEN		0x40000u	/* registers of a DMA engine */
#define CARD_BLOCK_LEN		0x1000u		/* of every other block but core windows */
#define CARD_QUEUES		NEURON_HW_QUEUES_PER_ENGINE
#define CARD_DEAD		0xdeadbeefu	/* what is read while firmware does not answer */

enum card_kind { CARD_TRN1, CARD_INF2, CARD_TRN2, CARD_TRN3, CARD_NR_KINDS };

/* Blocks of registers in BAR0. */
enum card_block {
	CARD_NOTHING,
	CARD_ENGINE,		/* DMA engine */
	CARD_APP,		/* its application block */
	CARD_ENGINE_NQ,		/* its notification block */
	CARD_USER,		/* its user-interrupt block */
	CARD_CORE,		/* window of a core */
	CARD_CORE_NQ,		/* notification block of a core */
	CARD_TOPSP,		/* window of a collective sequencer */
	CARD_TOPSP_NQ,
	CARD_MISC,		/* misc RAM: the firmware */
};

/**
 * struct card_place - where in the card an offset of BAR0 is
 * @block: kind of block
 * @index: engine, core or sequencer
 * @off: offset in the block
 */
struct card_place {
	enum card_block block;
	u32 index;
	u32 off;
};

/**
 * struct card_step - a write that a driver has to make
 * @block: CARD_ENGINE, CARD_APP or CARD_USER
 * @off: register
 * @value: value of a plain write; else bits to be set
 * @clear: bits to be cleared; together with @value: the register is read first
 * @from: the value is that of this register, 0: no
 * @rmw: read, change, write
 */
struct card_step {
	u8 block;
	bool rmw;
	u32 off;
	u32 value;
	u32 clear;
	u32 from;
};

#define CARD_MAX_STEPS	400

/**
 * struct card_side - one direction of a queue
 * @step: next step of the queue's start
 * @on: it was started
 * @base: device address of its ring
 * @len: descriptors
 * @tail: index of the next descriptor to be announced
 * @phase: ring id expected there
 */
struct card_side {
	u32 step;
	bool on;
	u64 base;
	u32 len;
	u32 tail;
	u32 phase;
};

/**
 * struct card_engine - registers of a DMA engine
 * @regs: what was written
 * @app: application block
 * @user: user-interrupt block
 * @step: next step of the engine's start
 * @nr_steps: steps of that start
 * @read: register that was read last, since the last write
 * @again: it was started since the reset of the device
 * @aborted: it has stopped with an error
 * @former: the state before the last change of it that was asked for
 * @slow: so many reads of the state show that one
 * @used: one of its queues was switched on
 * @bound: queues that the device code knows, bit mask
 * @side: queues, TX and RX
 */
struct card_engine {
	u32 *regs;
	u32 app[CARD_BLOCK_LEN / 4];
	u32 user[CARD_BLOCK_LEN / 4];
	u32 step;
	u32 nr_steps;
	const u32 *read;
	bool again;
	bool aborted;
	u32 former;
	u32 slow;
	bool used;
	u16 bound;
	struct card_side side[CARD_QUEUES][2];
};

/*
 * Host memory that the card may reach has addresses below this: that of a small machine, or what
 * an IOMMU gives out first.
 */
#define CARD_HOST_LEN		(16ULL << 30)

/* What the card may do with a page of it. */
enum card_page {
	CARD_PAGE_NONE,
	CARD_PAGE_READ,
	CARD_PAGE_WRITE,	/* and read */
};

/* How a mailbox request goes wrong. */
enum card_mailbox_fault {
	CARD_MAILBOX_GOOD,
	CARD_MAILBOX_SILENT,
	CARD_MAILBOX_SEQUENCE,	/* the answer has another sequence number */
	CARD_MAILBOX_FAILED,	/* error 1 */
	CARD_MAILBOX_UNKNOWN,	/* error 2 */
	CARD_MAILBOX_CHECKSUM,	/* that of the answer is wrong; second form of v4 */
	CARD_MAILBOX_LOST,	/* the next one is forgotten; second form */
};

/**
 * struct card_faults - what the card does wrong, set through the control socket
 * @dead_until: firmware does not answer before this time (ktime_get_ns()); U64_MAX: never
 * @reset_ms: how long a reset takes; U32_MAX: for ever
 * @not_ready: so many reads of the status after a reset have the bit "not ready"
 * @lost_doorbells: so many doorbells do nothing
 * @slow_state: so many reads of an engine's state after a change that was asked for show the
 *		former one
 * @aborts: queues stop because they are made to, which is no complaint
 * @die: the card's process ends at the so manieth access of a register; 0: it does not
 * @mailbox: what becomes of requests
 * @nowhere: a descriptor for an address where nothing is stops its queue, which is no complaint
 * @leftover: queues of a former driver run, and would write to the machine's memory; the reset
 *	      of the device ends that
 * @programs: queues of programs stop at what their descriptors say, and registers of cores are
 *	      read that nobody knows, which are no complaints
 * @run_on: queues of cores that are switched off go on fetching descriptors; 1: until their
 *	    reset; more: so many ms
 * @removed: all reads are ones, writes do nothing
 */
struct card_faults {
	u64 dead_until;
	u32 reset_ms;
	u32 not_ready;
	u32 lost_doorbells;
	u32 slow_state;
	bool aborts;
	u32 die;
	enum card_mailbox_fault mailbox;
	bool nowhere;
	bool leftover;
	bool programs;
	u32 run_on;
	bool removed;
};

/**
 * struct card_stats - what happened
 * @reads: of registers
 * @writes: to registers
 * @polls: reads of the register that was read last
 * @doorbells: rung
 * @descriptors: announced by doorbells, both sides
 * @device_resets: asked for
 * @core_resets: same
 * @metrics: messages with a metric that were answered well
 * @fetches: of descriptors by queues that are off
 * @complaints: recorded
 */
struct card_stats {
	u64 reads;
	u64 writes;
	u64 polls;
	u64 doorbells;
	u64 descriptors;
	u64 device_resets;
	u64 core_resets;
	u64 metrics;
	u64 fetches;
	u64 complaints;
};

/**
 * struct card_config - what card to make
 * @kind: which one
 * @routing_id: its position in the machine
 * @serial: serial number
 * @dirty_mib: so much at the start of each HBM is filled with a pattern
 * @bar0_mib: length of BAR 0; 0: what holds everything
 * @bar4_mib: same of BAR 4; CARD_NO_BAR: there is none
 */
struct card_config {
	enum card_kind kind;
	u32 routing_id;
	u64 serial;
	u32 dirty_mib;
	u32 bar0_mib;
	u32 bar4_mib;
};

#define CARD_NO_BAR	UINT32_MAX

/* Where a metric is in misc RAM, and its length. */
#define CARD_METRIC	0x100
#define CARD_METRIC_LEN	0x80



/**
 * struct card - a card
 * @ed: its DMA engines and cores, from the sources of the software device
 * @kind: which one
 * @gen: 2, 3, 4
 * @bar0_len: bytes of the register BAR
 * @hbm_stride: distance of the HBMs in BAR4
 * @bar4_len: bytes of device memory
 * @bar4_shown: those that the memory BAR shows; 0: there is no such BAR
 * @bar4_fd: its memory
 * @bar4: same, mapped
 * @sbuf: state buffers
 * @engine: DMA engines
 * @misc: misc RAM
 * @command: command register of the PCI function
 * @reset_at: the reset under way ends at this time (ktime_get_ns()), 0: there is none
 * @last: offset that was read last
 * @faults: what goes wrong
 * @stats: what happened
 * @lock: @stats.complaints, @complaint
 * @complaint: the first ones
 * @run_on: rings of queues that are off and fetch descriptors, by engine, queue, side; 0: none
 * @run_on_until: and when they stop by themselves (ktime_get_ns())
 * @run_on_lock: @run_on, @run_on_until
 * @run_on_thread: which fetches; 0: there is none
 * @run_on_stop: it ends
 * @host_lock: @host, @page; held for reading while the card is at host memory
 * @host: host memory, by address, where @page says that it is there
 * @page: enum card_page of each page
 */
struct card {
	struct emu_device ed;
	enum card_kind kind;
	u32 gen;
	u64 bar0_len;
	u64 hbm_stride;
	u64 bar4_len;
	u64 bar4_shown;
	int bar4_fd;
	u8 *bar4;
	u8 *sbuf[NEURON_HW_MAX_CORES];
	struct card_engine engine[EMU_MAX_ENGINES];
	u32 misc[CARD_BLOCK_LEN / 4];
	u16 command;
	u64 reset_at;
	u64 last;
	struct card_faults faults;
	struct card_stats stats;
	pthread_mutex_t lock;
	char complaint[32][128];
	u64 run_on[EMU_MAX_ENGINES][CARD_QUEUES][2];
	u64 run_on_until[EMU_MAX_ENGINES][CARD_QUEUES][2];
	pthread_mutex_t run_on_lock;
	pthread_t run_on_thread;
	bool run_on_stop;
	pthread_rwlock_t host_lock;
	u8 *host;
	u8 *page;
};

/* card.c */
struct card *card_new(const struct card_config *cfg);
void card_free(struct card *card);
enum card_kind card_kind_find(const char *name);
u64 card_read(struct card *card, u64 off, u32 size);
void card_write(struct card *card, u64 off, u32 size, u64 val);
void card_complain(struct card *card, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* map.c */
struct card_place card_place(const struct card *card, u64 off);
u64 card_offset(const struct card *card, enum card_block block, u32 index);

/* start.c */
u32 card_engine_steps(const struct card *card, u32 engine, bool again, struct card_step *steps);
u32 card_queue_steps(bool rx, const struct card_step **steps);

/* udma.c */
void card_engines_reset(struct card *card, u64 cores, bool device);
u32 card_udma_read(struct card *card, const struct card_place *at);
void card_udma_write(struct card *card, const struct card_place *at, u32 val);

/* firmware.c */
u64 card_reset_end(const struct card *card);
u32 card_firmware_read(struct card *card, u32 off);
void card_firmware_write(struct card *card, u32 off, u32 val);

/* memory.c */
int card_memory_init(struct card *card, u32 dirty_mib);
void card_memory_exit(struct card *card);
int card_range_add(struct card *card, u64 addr, u64 len, int fd, u64 offset, bool write);
void card_range_del(struct card *card, u64 addr, u64 len);
u32 card_core_at(const struct card *card, u64 addr, u64 len);
int card_memory_read(struct card *card, u64 addr, void *buf, u32 len);
int card_memory_write(struct card *card, u64 addr, const void *buf, u32 len);
bool card_memory_fetch(struct card *card, u64 addr);

/* run_on.c */
int card_run_on(struct card *card, u32 ms);
void card_run_on_off(struct card *card, u32 engine, u32 q, bool rx);
void card_run_on_reset(struct card *card, u64 cores);
void card_run_on_check(struct card *card);
void card_run_on_exit(struct card *card);

/* control.c */
int card_control(struct card *card, char *line, FILE *out);

#endif

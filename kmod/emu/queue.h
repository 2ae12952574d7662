/* SPDX-License-Identifier: GPL-2.0-only */
/* DMA engines and their queues: rings of descriptors, and the work on them. */
#ifndef EMU_QUEUE_H
#define EMU_QUEUE_H

#include <linux/hrtimer.h>

#include "share.h"
#include "shuffle.h"

struct emu_packet;

/* Descriptors fetched from a ring at a time. */
#define EMU_FETCH		32
/* Copies that are done in another order. */
#define EMU_SHUFFLE_DESCS	16

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
 * @cur_addr: its address in the ring (run)
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
 * @stopping: emu_dma_stop() waits for the worker to leave the queue (READ_ONCE)
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
 * @lock: ring pointers, @ready, @late, @stalled, @last
 * @work: serves the queues in @ready
 * @timer: queues @work after a latency
 * @state: enum neuron_dma_eng_hw_state (run; written also under lock)
 * @ready: queues whose doorbells rang
 * @late: queues whose doorbells rang, which wait until the core can do nothing else
 * @stalled: queues that wait for room in an instruction FIFO
 * @last: queue served last
 * @shuffle: order of the queues, and of their work and the core's (lock)
 * @tx_desc: descriptors fetched for the queue being served (run)
 * @rx_desc: same
 * @share: a long copy of the driver (run)
 * @q: queues
 */
struct emu_dma {
	struct emu_device *ed;
	u32 index;
	struct mutex run;	/* see emu.h */
	spinlock_t lock;	/* see emu.h */
	struct work_struct work;
	struct hrtimer timer;
	u32 state;
	u16 ready;
	u16 late;
	u16 stalled;
	u8 last;
	struct emu_shuffle shuffle;
	struct neuron_desc tx_desc[EMU_FETCH];
	struct neuron_desc rx_desc[EMU_FETCH];
	struct emu_share share;
	struct emu_queue q[NEURON_HW_QUEUES_PER_ENGINE];
};

bool emu_ring_enabled(const struct emu_ring *r);
void emu_queue_init(struct emu_queue *q, struct neuron_space *space);
void emu_queue_restart(struct emu_queue *q, struct emu_ring *r);
bool emu_queue_add(struct emu_queue *q, u32 tx, u32 rx);
bool emu_queue_runnable(const struct emu_dma *dma, const struct emu_queue *q);
bool emu_queue_rw(struct emu_dma *dma, u32 i, u64 addr, void *buf, u32 len, bool write);
bool emu_queue_serve(struct emu_dma *dma, u32 i);
void emu_queue_abort(struct emu_dma *dma, u32 i, u32 code, u64 addr);
void emu_dma_abort(struct emu_dma *dma);

#endif /* EMU_QUEUE_H */

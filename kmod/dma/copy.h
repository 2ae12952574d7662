/* SPDX-License-Identifier: GPL-2.0-only */
/* Copies on the driver's own rings. */
#ifndef NEURON_DMA_COPY_H
#define NEURON_DMA_COPY_H

#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/wait.h>

struct dma_fence;
struct neuron_chunk;
struct neuron_device;

#define NEURON_COPY_BOUNCE	(256u << 10)
#define NEURON_COPY_RING	1024u

/**
 * struct neuron_copy - the kernel's copy ring of a core, made on first use
 * @lock: everything but @bounce and @users
 * @ready: the rest is set up
 * @ring: TX and RX ring
 * @bounce: spare buffer between user memory and the device; taken with xchg()
 * @marker: page with the completion marker
 * @next: index of the next descriptor
 * @ring_id: phase of @next
 * @seq: value of the last marker
 * @wait: woken by neuron_dma_irq()
 * @users: of the first core with this engine: neuron_engine_enter()
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
	struct rw_semaphore users;
};

struct neuron_copy *neuron_copy_new(void);
void neuron_copy_exit(struct neuron_device *nd, u32 core);
int neuron_dma_copy(struct neuron_device *nd, u32 core, u64 dst, u64 src, u64 len);
struct dma_fence *neuron_dma_begin(struct neuron_device *nd, u32 core, struct neuron_chunk *src,
				   struct neuron_chunk *dst);
int neuron_dma_copy_chunks(struct neuron_device *nd, u32 core, struct neuron_chunk *dst,
			   u64 dst_off, struct neuron_chunk *src, u64 src_off, u64 len);
int neuron_dma_fill_chunk(struct neuron_device *nd, u32 core, struct neuron_chunk *dst, u64 off,
			  u8 value, u64 len);
int neuron_dma_copy_user(struct neuron_device *nd, u32 core, struct neuron_chunk *chunk,
			 u64 off, void __user *buf, u64 len, bool to_chunk);
int neuron_dma_addr_user(struct neuron_device *nd, u32 core, u64 addr, void __user *buf, u64 len,
			 bool to_device);
int neuron_dma_write(struct neuron_device *nd, u32 core, u64 dst, const void *buf, u64 len);
int neuron_dma_fill(struct neuron_device *nd, u32 core, u64 dst, u8 value, u64 len);
int neuron_dma_core_clear(struct neuron_device *nd, u32 core);
void neuron_copy_wake(struct neuron_device *nd, u32 core);

#endif

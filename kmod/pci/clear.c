// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clearing of a card's HBMs, which hold whatever they held before.  Each HBM has a queue for
 * it on an engine for the host, beside those of copies: zeros are copied to it, and behind them
 * a marker to host memory.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/jiffies.h>
#include <linux/sched/signal.h>

#include "clear.h"
#include "udma.h"

/* The engines for the host come last, as many as there are HBMs; copies use queues 0 and 1. */
#define NPCI_CLEAR_QUEUE	2
#define NPCI_CLEAR_RING		512u
#define NPCI_CLEAR_BATCH	256u
#define NPCI_CLEAR_TIMEOUT	(5 * HZ)
#define NPCI_CLEAR_MARKERS	256u
/* So many pauses without an end are no progress: then the state of the engine is looked at. */
#define NPCI_CLEAR_LOOK		16u
#define NPCI_CLEAR_TRIES	3

/**
 * struct npci_clear_mem - host memory that clearing uses
 * @ring: descriptors, TX and RX
 * @zeros: source
 * @from: what markers are copied from; a batch that was given up must not end a later one
 * @to: and where to
 */
struct npci_clear_mem {
	struct neuron_desc ring[2][NPCI_CLEAR_RING];
	u8 zeros[NEURON_DESC_MAX_LEN];
	__le32 from[NPCI_CLEAR_MARKERS] __aligned(64);
	__le32 to __aligned(64);
};

static u32 npci_clear_engine(struct npci_card *card, u32 hbm)
{
	return card->geo.nr_cores * card->geo.engines_per_core + hbm;
}

#define npci_clear_addr(card, c, member) \
	(((c)->dma + offsetof(struct npci_clear_mem, member)) | (card)->geo.host_window)

/* Under clear->lock. */
static int npci_clear_start(struct npci_card *card, u32 hbm)
{
	const u32 length[2] = { NPCI_CLEAR_RING, NPCI_CLEAR_RING };
	struct npci_clear *c = &card->clear[hbm];
	u64 addr[2];

	if (c->ring_id)
		return 0;
	addr[0] = npci_clear_addr(card, c, ring[0]);
	addr[1] = npci_clear_addr(card, c, ring[1]);
	c->next = 0;
	c->ring_id = 1;
	return npci_queue_start(card, npci_clear_engine(card, hbm), NPCI_CLEAR_QUEUE, addr, length);
}

static void npci_clear_desc(struct npci_clear *c, u64 dst, u64 src, u32 len, bool last)
{
	u32 ctrl = (len & NEURON_DESC_LEN_MASK) | c->ring_id << NEURON_DESC_RING_ID_SHIFT;
	u32 meta = NEURON_DESC_META_COPY | (last ? NEURON_DESC_META_WRITE_BARRIER : 0);

	c->mem->ring[0][c->next] = (struct neuron_desc){
		.ctrl = cpu_to_le32(ctrl | NEURON_DESC_FIRST | NEURON_DESC_LAST),
		.meta = cpu_to_le32(meta),
		.addr = cpu_to_le64(src),
	};
	c->mem->ring[1][c->next] = (struct neuron_desc){
		.ctrl = cpu_to_le32(ctrl),
		.addr = cpu_to_le64(dst),
	};
	if (++c->next == NPCI_CLEAR_RING) {
		c->next = 0;
		c->ring_id = (c->ring_id + 1) & 3;
	}
}

/* The first looks are close to each other: a batch takes less than a millisecond. */
static int npci_clear_wait(struct npci_card *card, u32 eng, struct npci_clear *c)
{
	unsigned long end = jiffies + NPCI_CLEAR_TIMEOUT;
	u32 us = 20, looks = 0;

	while (le32_to_cpu(READ_ONCE(c->mem->to)) != c->seq) {
		/* A killed caller waits, too: the batch writes to memory that others get next. */
		if (npci_gone(card))
			return -EIO;
		if (++looks % NPCI_CLEAR_LOOK == 0 &&
		    npci_queue_aborted(card, eng, NPCI_CLEAR_QUEUE))
			return -EIO;
		if (time_after(jiffies, end)) {
			dev_err(&card->pdev->dev, "clearing of device memory has not ended in time\n");
			return -ETIMEDOUT;
		}
		usleep_range(us, 2 * us);
		us = min(2 * us, 2000u);
	}
	return 0;
}

/* Under clear->lock.  @count descriptors are in the ring: start them, and wait. */
static int npci_clear_flush(struct npci_card *card, u32 hbm, u32 count)
{
	u32 eng = npci_clear_engine(card, hbm);
	struct npci_clear *c = &card->clear[hbm];
	u32 slot;
	int err;

	slot = ++c->seq % NPCI_CLEAR_MARKERS;
	c->mem->from[slot] = cpu_to_le32(c->seq);
	npci_clear_desc(c, npci_clear_addr(card, c, to), npci_clear_addr(card, c, from[slot]),
			sizeof(__le32), false);
	count++;
	/* Descriptors before doorbells. */
	wmb();
	err = npci_dma_write(card, eng, NEURON_DMA_RX(NPCI_CLEAR_QUEUE) + NEURON_DMA_Q_TAIL_INC,
			     count) ?:
	      npci_dma_write(card, eng, NEURON_DMA_TX(NPCI_CLEAR_QUEUE) + NEURON_DMA_Q_TAIL_INC,
			     count);
	return err ?: npci_clear_wait(card, eng, c);
}

/* Under clear->lock.  A batch at most, which takes the queue off if it fails. */
static int npci_clear_batch(struct npci_card *card, u32 hbm, u64 dst, u64 end)
{
	struct npci_clear *c = &card->clear[hbm];
	u32 count = 0, n;
	int err;

	err = npci_clear_start(card, hbm);
	for (; !err && dst < end; dst += n) {
		n = min_t(u64, end - dst, NEURON_DESC_MAX_LEN);
		npci_clear_desc(c, dst, npci_clear_addr(card, c, zeros), n, dst + n == end);
		count++;
	}
	err = err ?: npci_clear_flush(card, hbm, count);
	if (!err)
		return 0;
	npci_host_queue_stop(card, npci_clear_engine(card, hbm), NPCI_CLEAR_QUEUE, false);
	/* The next time starts with an empty ring. */
	c->ring_id = 0;
	return err;
}

/**
 * npci_hbm_clear() - make device memory read as zero
 * @nd: the card's device
 * @hbm: HBM
 * @off: from its start
 * @len: bytes
 *
 * Context: may sleep, killable.
 * Return: 0, -EIO, -ENOMEM, -EINTR.
 */
int npci_hbm_clear(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	struct npci_card *card = neuron_device_priv(nd);
	u64 dst = card->geo.hbm[hbm].base + off, end = dst + len, next;
	u32 eng = npci_clear_engine(card, hbm), tries;
	struct npci_clear *c = &card->clear[hbm];
	int err = 0;

	if (mutex_lock_killable(&c->lock))
		return -EINTR;
	if (!c->mem)
		c->mem = dma_alloc_coherent(&card->pdev->dev, sizeof(*c->mem), &c->dma,
					    GFP_KERNEL);
	if (!c->mem)
		err = -ENOMEM;
	for (; dst < end && !err; dst = next) {
		next = min(end, dst + NPCI_CLEAR_BATCH * (u64)NEURON_DESC_MAX_LEN);
		err = neuron_engine_enter(nd, eng, false);
		if (err)
			break;
		tries = 0;
		/* What has stopped the engine may be a copy of somebody else. */
		do
			err = npci_clear_batch(card, hbm, dst, next);
		while (err == -EIO && ++tries < NPCI_CLEAR_TRIES);
		neuron_engine_leave(nd, eng, false);
		if (!err && next < end && fatal_signal_pending(current))
			err = -EINTR;
	}
	mutex_unlock(&c->lock);
	return err == -ETIMEDOUT ? -EIO : err;
}

/**
 * npci_clear_init() - prepare the clearing of HBMs
 * @card: the card
 */
void npci_clear_init(struct npci_card *card)
{
	u32 i;

	for (i = 0; i < NEURON_HW_MAX_HBMS; i++)
		mutex_init(&card->clear[i].lock);
}

/**
 * npci_clear_exit() - give the memory back
 * @card: the card; it does not master the bus any more
 */
void npci_clear_exit(struct npci_card *card)
{
	u32 i;

	for (i = 0; i < NEURON_HW_MAX_HBMS; i++)
		if (card->clear[i].mem)
			dma_free_coherent(&card->pdev->dev, sizeof(*card->clear[i].mem),
					  card->clear[i].mem, card->clear[i].dma);
}

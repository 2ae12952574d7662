/* SPDX-License-Identifier: GPL-2.0-only */
/* A card on the PCI bus: what there is of it, and access to its registers. */
#ifndef NPCI_CARD_H
#define NPCI_CARD_H

#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/workqueue.h>

#include "../base/neuron_hw.h"

#define NPCI_MAX_ENGINES	132
#define NPCI_MAX_WINDOWS	16
/* What a word of the firmware reads as while the firmware does not answer. */
#define NPCI_DEAD		0xdeadbeefu

/**
 * struct npci_window - registers that are mapped as one piece
 * @base: offset in BAR 0
 * @size: bytes
 */
struct npci_window {
	u64 base;
	u32 size;
};

/**
 * struct npci_place - where the blocks of a DMA engine are, as offsets in BAR 0
 * @regs: the engine
 * @app: its application block
 * @user: its user-interrupt block, 0: none
 */
struct npci_place {
	u64 regs;
	u64 app;
	u64 user;
};

struct npci_card;
struct npci_engine;

/**
 * struct npci_gen - what differs between generations of cards; README.md has the origins
 * @windows: registers in use, the last entry is empty
 * @misc: misc RAM, offset in BAR 0
 * @core: window of core 0; the other cores' windows follow it
 * @hbm_stride: distance of the HBMs in BAR 4
 * @needs_hbm_bar: a card without BAR 4 is broken
 * @reset_seconds: the longest that a reset may take
 * @power_words: words with power samples, one for each die
 * @mailbox_in_ram: from this version of its interface on, the firmware gets messages in misc RAM
 * @repair_hides: what counts as an uncorrected error of HBM depends on the state of its repair
 * @place: where an engine is
 * @core_nq: offset in BAR 0 of a core's notification block
 * @reset_map: what the firmware has to reset for a set of cores
 * @start: lists of steps that start an engine, in order; the last entry is NULL
 * @start_first: what comes before them, may be NULL
 * @start_last: what comes after them
 */
struct npci_gen {
	const struct npci_window *windows;
	u64 misc;
	u64 core;
	u64 hbm_stride;
	bool needs_hbm_bar;
	u32 reset_seconds;
	u32 power_words;
	u32 mailbox_in_ram;
	bool repair_hides;
	struct npci_place (*place)(u32 engine);
	u64 (*core_nq)(u32 core);
	u32 (*reset_map)(unsigned long cores);
	const struct npci_step *const *start;
	void (*start_first)(struct npci_card *card, u32 engine);
	void (*start_last)(struct npci_card *card, u32 engine);
};

/**
 * struct npci_kind - a kind of card
 * @gen: generation
 * @geo: geometry of its devices; the revision is filled in
 * @numbers: device number by routing id, for each block of 16; NULL: the routing id
 * @neighbours: device numbers that device @number of @n is linked to
 */
struct npci_kind {
	const struct npci_gen *gen;
	struct neuron_geometry geo;
	const u8 *numbers;
	u32 (*neighbours)(u32 number, u32 n, u32 *list);
};

extern const struct npci_kind npci_trn1, npci_inf2, npci_trn2, npci_trn3;

/**
 * struct npci_engine - a DMA engine
 * @regs: its registers
 * @app: its application block
 * @user: its user-interrupt block, may be NULL
 * @started: it was started since the driver has the card
 * @paused: it was disabled or aborted, by a program or by the driver
 * @lock: of an engine for the host: queues are started, and stopped after an error, one at a time
 * @lost: queues that were switched off when it stopped with an error, done or not, bit mask
 * @length: descriptors of the rings of each queue, TX and RX; 0: that side is off
 */
struct npci_engine {
	void __iomem *regs;
	void __iomem *app;
	void __iomem *user;
	bool started;
	bool paused;
	struct mutex lock;
	unsigned long lost;
	u32 length[NEURON_HW_QUEUES_PER_ENGINE][2];
};

/**
 * struct npci_nq - a slot of a notification block
 * @on: the card writes to a queue
 * @nq: which of the core's queues has it
 */
struct npci_nq {
	bool on;
	u32 nq;
};

/**
 * struct npci_core - a core
 * @window: its window
 * @notify: its notification block
 * @lock: of its notification queues
 * @base: address of each queue, as written so far
 * @slot: what the notification block has
 */
struct npci_core {
	void __iomem *window;
	void __iomem *notify;
	struct mutex lock;
	u64 base[NEURON_HW_NR_NQ];
	struct npci_nq slot[NEURON_HW_NQ_ENGINES];
};

/**
 * struct npci_reset - resets of cores; the firmware does one at a time
 * @lock: the rest
 * @wanted: cores that wait for the reset under way to end
 * @active: cores that are being reset
 * @failed: cores whose last reset failed
 * @started: when the reset under way began, in jiffies
 * @asked: when the firmware was last asked for it
 * @next: not to be looked at before
 * @not_ready: times that the card was not ready after it
 */
struct npci_reset {
	struct mutex lock;
	unsigned long wanted;
	unsigned long active;
	unsigned long failed;
	unsigned long started;
	unsigned long asked;
	unsigned long next;
	u32 not_ready;
};

#define NPCI_POWER_SAMPLES	60

/**
 * struct npci_power - power drawn, sampled once a second while somebody asks for it
 * @lock: the rest
 * @work: takes a sample
 * @asked: when somebody asked last, in jiffies
 * @time: when the last sample was taken, seconds since 1970
 * @sample: samples
 * @count: how many were taken
 */
struct npci_power {
	struct mutex lock;
	struct delayed_work work;
	unsigned long asked;
	u64 time;
	u32 sample[NPCI_POWER_SAMPLES];
	u64 count;
};

/**
 * struct npci_clear - what clears an HBM
 * @lock: the rest
 * @mem: rings, a source of zeros and the marker; NULL: not set up
 * @dma: DMA address of @mem
 * @next: index of the next descriptor
 * @ring_id: phase of @next; 0: the queue is off
 * @seq: value of the last marker
 */
struct npci_clear {
	struct mutex lock;
	struct npci_clear_mem *mem;
	dma_addr_t dma;
	u32 next;
	u32 ring_id;
	u32 seq;
};

/**
 * struct npci_mailbox - messages to the firmware, one at a time
 * @busy: somebody uses the rest
 * @wait: for the others
 * @in_ram: they are in misc RAM, not in host memory
 * @mem: a request, and behind it an answer; NULL: none was sent yet that needs it
 * @dma: DMA address of @mem
 * @sequence: number of the last request
 */
struct npci_mailbox {
	bool busy;
	wait_queue_head_t wait;
	bool in_ram;
	void *mem;
	dma_addr_t dma;
	u8 sequence;
};

/**
 * struct npci_card - a card
 * @pdev: PCI function
 * @kind: what card
 * @gen: its generation
 * @geo: its geometry
 * @map: windows that are mapped
 * @misc: misc RAM
 * @bar4: bus address of HBM 0, 0: the processor does not see the HBMs
 * @gone: it does not answer any more
 * @stopping: it is being removed: waits end
 * @unplug: removes the device of a card that is gone
 * @lock: @added
 * @added: @nd is there
 * @nd: the device
 * @reset: resets of cores
 * @power: power drawn
 * @mailbox: messages to the firmware
 * @clear: by HBM
 * @core: cores
 * @engine: DMA engines
 */
struct npci_card {
	struct pci_dev *pdev;
	const struct npci_kind *kind;
	const struct npci_gen *gen;
	struct neuron_geometry geo;
	void __iomem *map[NPCI_MAX_WINDOWS];
	void __iomem *misc;
	u64 bar4;
	bool gone;
	bool stopping;
	struct work_struct unplug;
	struct mutex lock;
	bool added;
	struct neuron_device *nd;
	struct npci_reset reset;
	struct npci_power power;
	struct npci_mailbox mailbox;
	struct npci_clear clear[NEURON_HW_MAX_HBMS];
	struct npci_core core[NEURON_HW_MAX_CORES];
	struct npci_engine engine[NPCI_MAX_ENGINES];
};

/* In misc RAM: the position of the card in its host, never all ones. */
#define NPCI_MISC_ROUTING_ID	0x24

u32 npci_flush(struct npci_card *card);
void npci_all_ones(struct npci_card *card);
void npci_master_off(struct npci_card *card);

/* Every wait for the card must also end when this becomes true. */
static inline bool npci_gone(const struct npci_card *card)
{
	return READ_ONCE(card->gone) || READ_ONCE(card->stopping);
}

/* All registers are read here, so that a card that is gone is noticed wherever it shows. */
static inline u32 npci_read(struct npci_card *card, const void __iomem *reg)
{
	u32 val = readl(reg);

	if (unlikely(val == U32_MAX))
		npci_all_ones(card);
	return val;
}

/* Orders the write after earlier ones to memory that the card reads. */
static inline void npci_write(void __iomem *reg, u32 val)
{
	writel(val, reg);
}

#endif

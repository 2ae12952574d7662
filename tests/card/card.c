// SPDX-License-Identifier: GPL-2.0-only
/* A card as a whole: which one it is, accesses to its registers, complaints. */
#include <stdarg.h>

#include "card.h"

#include "../../kmod/emu/arch.h"
#include "../../kmod/emu/mem.h"

static const struct {
	const char *name;
	u32 gen;
	u64 bar0_len;
	u64 hbm_stride;
} card_kinds[CARD_NR_KINDS] = {
	/* Lengths of BARs are not published: these are the shortest that hold everything. */
	[CARD_TRN1] = { "trn1", 2, 1ULL << 30, 16ULL << 30 },
	[CARD_INF2] = { "inf2", 2, 1ULL << 30, 16ULL << 30 },
	[CARD_TRN2] = { "trn2", 3, 4ULL << 30, 64ULL << 30 },
	[CARD_TRN3] = { "trn3", 4, 4ULL << 30, 64ULL << 30 },
};

/**
 * card_kind_find() - a kind by its name
 * @name: trn1, inf2, trn2, trn3
 *
 * Return: the kind; CARD_NR_KINDS: there is none.
 */
enum card_kind card_kind_find(const char *name)
{
	u32 i;

	for (i = 0; i < CARD_NR_KINDS && strcmp(card_kinds[i].name, name); i++)
		;
	return i;
}

/**
 * card_complain() - record that something was done which a card does not allow
 * @card: the card
 * @format: as of printf()
 */
void card_complain(struct card *card, const char *format, ...)
{
	char text[sizeof(card->complaint[0])];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "neuron-card: complaint: %s\n", text);
	pthread_mutex_lock(&card->lock);
	if (card->stats.complaints < ARRAY_SIZE(card->complaint))
		memcpy(card->complaint[card->stats.complaints], text, sizeof(text));
	/* Also read without the lock. */
	smp_store_release(&card->stats.complaints, card->stats.complaints + 1);
	pthread_mutex_unlock(&card->lock);
}

static void card_identity(struct card *card, const struct card_config *cfg)
{
	/* 3: the first form of the mailbox, and power; 7: the second form */
	card->misc[0x00 / 4] = card->gen == 4 ? 7 : 3;
	card->misc[0x24 / 4] = cfg->routing_id;
	card->misc[0x38 / 4] = lower_32_bits(cfg->serial);
	card->misc[0x3c / 4] = upper_32_bits(cfg->serial);
	card->misc[0x54 / 4] = 1 << 16;
	card->misc[0x58 / 4] = 1 << 16;
}

/**
 * card_new() - make a card
 * @cfg: what card
 *
 * It is as after power on: no engine is started, bus mastering is off.
 *
 * Return: the card; NULL without memory, with errno set.
 */
struct card *card_new(const struct card_config *cfg)
{
	struct card *card = calloc(1, sizeof(*card));
	struct emu_device *ed;
	u32 i;
	int err;

	if (!card)
		return NULL;
	card->bar4_fd = -1;
	card->kind = cfg->kind;
	card->gen = card_kinds[cfg->kind].gen;
	card->bar0_len = cfg->bar0_mib ? (u64)cfg->bar0_mib << 20 : card_kinds[cfg->kind].bar0_len;
	card->hbm_stride = card_kinds[cfg->kind].hbm_stride;
	card->faults.reset_ms = 20;
	card->last = U64_MAX;
	pthread_mutex_init(&card->lock, NULL);
	pthread_mutex_init(&card->run_on_lock, NULL);

	ed = &card->ed;
	ed->geo = emu_find_arch(card_kinds[cfg->kind].name)->geo;
	ed->nd = (struct neuron_device *)card;
	ed->completion = EMU_COMPLETE_WORKER;
	card->bar4_len = card->hbm_stride * ed->geo.nr_hbms;
	card->bar4_shown = cfg->bar4_mib == CARD_NO_BAR ? 0 :
			   cfg->bar4_mib ? min((u64)cfg->bar4_mib << 20, card->bar4_len) :
					   card->bar4_len;
	emu_busy_init(&ed->busy);
	emu_dma_init(ed);
	ed->wq = card_workqueue_new();
	err = ed->wq ? emu_core_init(ed) : -ENOMEM;
	for (i = 0; i < ed->geo.nr_dma_engines && !err; i++) {
		card->engine[i].regs = calloc(1, CARD_ENGINE_LEN);
		err = card->engine[i].regs ? 0 : -ENOMEM;
	}
	err = err ?: card_memory_init(card, cfg->dirty_mib);
	if (err) {
		card_free(card);
		errno = -err;
		return NULL;
	}
	card_identity(card, cfg);
	card_engines_reset(card, BIT(ed->geo.nr_cores) - 1, true);
	return card;
}

/**
 * card_free() - remove a card
 * @card: from card_new(); may be NULL
 */
void card_free(struct card *card)
{
	u32 i, q;

	if (!card)
		return;
	card_run_on_exit(card);
	for (i = 0; i < EMU_MAX_ENGINES; i++)
		for (q = 0; q < CARD_QUEUES; q++)
			if (card->engine[i].bound & BIT(q))
				emu_dma_stop(&card->ed, i, q);
	emu_core_destroy(&card->ed);
	emu_dma_destroy(&card->ed);
	if (card->ed.wq)
		destroy_workqueue(card->ed.wq);
	card_memory_exit(card);
	for (i = 0; i < EMU_MAX_ENGINES; i++)
		free(card->engine[i].regs);
	pthread_mutex_destroy(&card->lock);
	free(card);
}

/* The base of a queue that is on must not change: half of it would be new for a moment. */
static void card_nq_check(struct card *card, const struct card_place *at)
{
	u32 nq, reg, size;

	if (neuron_nq_decode(at->off, &nq, &reg) &&
	    (reg == NEURON_NQ_BASE_LO(0) || reg == NEURON_NQ_BASE_HI(0)) &&
	    !emu_nq_reg_read(card->ed.notify[at->index], NEURON_NQ_SIZE(nq), &size) && size)
		card_complain(card, "notification queue %u of core %u: its base changes while it is on",
			      nq, at->index);
}

/* A notification block: slot i is that of engine i, whatever the type of the queue. */
static u32 card_nq_access(struct card *card, const struct card_place *at, bool write, u32 val)
{
	struct emu_notify *nt = card->ed.notify[at->index];
	int err;

	if (write)
		card_nq_check(card, at);
	err = write ? emu_nq_reg_write(nt, at->off, val) : emu_nq_reg_read(nt, at->off, &val);
	if (err || at->off >= NEURON_NQ_BASE_LO(NEURON_HW_NQ_ENGINES))
		card_complain(card, "notification block of core %u: %#x, %#x %s", at->index,
			      at->off, val, write ? "written" : "read");
	return val;
}

/* Is it a register of a semaphore that is written? */
static bool card_semaphore(const struct card *card, u32 off)
{
	u32 i = off - NEURON_ISA_SEM_SET_OFF(0), block = card->ed.geo.sem_block;

	return i < 3 * block && i % block < 4 * card->ed.geo.nr_semaphores;
}

static u32 card_window_access(struct card *card, const struct card_place *at, bool write, u32 val)
{
	struct emu_window *w = card->ed.window[at->index];
	int err = write ? emu_window_write(w, at->off, val) : emu_window_read(w, at->off, &val);

	/* A semaphore would wrap: that is the business of the program that counts with it. */
	if (err && write && card_semaphore(card, at->off))
		return 0;
	/* Programs may look at all registers of their cores. */
	if (err && !write && READ_ONCE(card->faults.programs))
		return 0;
	if (err)
		card_complain(card, "window of core %u: %#x, %#x %s", at->index, at->off, val,
			      write ? "written" : "read");
	return err ? 0 : val;
}

/* What the model has no registers for: nobody may count on them. */
static u32 card_unknown(struct card *card, u64 off, bool write, u32 val)
{
	if (write)
		card_complain(card, "%#x written to BAR0 + %#llx, where nothing is known", val,
			      off);
	else
		card_complain(card, "BAR0 + %#llx read, where nothing is known", off);
	return 0;
}

/* A place in a state buffer; NULL: it is none. That is memory: registers are what has a length. */
static u8 *card_sbuf(struct card *card, u64 off, u32 size)
{
	struct card_place at = card_place(card, off);

	return at.block == CARD_CORE && size <= sizeof(u64) &&
	       emu_sbuf_has(&card->ed, at.off, size) ? card->sbuf[at.index] + at.off : NULL;
}

static bool card_access_bad(struct card *card, u64 off, u32 size, bool write)
{
	if (size == 4 && off % 4 == 0 && off < card->bar0_len)
		return false;
	card_complain(card, "%s of %u bytes at BAR0 + %#llx", write ? "write" : "read", size, off);
	return true;
}

/**
 * card_read() - a read of BAR0
 * @card: the card
 * @off: offset
 * @size: bytes, up to 8
 *
 * Return: the value; all ones from a removed card.
 */
u64 card_read(struct card *card, u64 off, u32 size)
{
	struct card_place at;
	u64 val = 0;
	u8 *sbuf;

	card->stats.reads++;
	card->stats.polls += off == card->last;
	card->last = off;
	if (card->faults.removed)
		return U64_MAX;
	sbuf = card_sbuf(card, off, size);
	if (sbuf) {
		memcpy(&val, sbuf, size);
		return val;
	}
	if (card_access_bad(card, off, size, false))
		return U64_MAX;
	at = card_place(card, off);
	switch (at.block) {
	case CARD_ENGINE:
	case CARD_APP:
	case CARD_USER:
		return card_udma_read(card, &at);
	case CARD_MISC:
		return card_firmware_read(card, at.off);
	case CARD_CORE:
		return card_window_access(card, &at, false, 0);
	case CARD_CORE_NQ:
		return card_nq_access(card, &at, false, 0);
	default:
		return card_unknown(card, off, false, 0);
	}
}

/**
 * card_write() - a write to BAR0
 * @card: the card
 * @off: offset
 * @size: bytes, up to 8
 * @val: value
 */
void card_write(struct card *card, u64 off, u32 size, u64 val)
{
	struct card_place at;
	u8 *sbuf;

	card->stats.writes++;
	card->last = U64_MAX;
	if (card->faults.removed)
		return;
	sbuf = card_sbuf(card, off, size);
	if (sbuf) {
		memcpy(sbuf, &val, size);
		return;
	}
	if (card_access_bad(card, off, size, true))
		return;
	at = card_place(card, off);
	switch (at.block) {
	case CARD_ENGINE:
	case CARD_APP:
	case CARD_USER:
		card_udma_write(card, &at, val);
		break;
	case CARD_MISC:
		card_firmware_write(card, at.off, val);
		break;
	case CARD_CORE:
		card_window_access(card, &at, true, val);
		break;
	case CARD_CORE_NQ:
		card_nq_access(card, &at, true, val);
		break;
	default:
		card_unknown(card, off, true, val);
	}
}

/* ---- what the device code reports ---- */

/* Is it one of the queues that the driver copies with? */
static bool card_copies(const struct card *card, u32 eng, u32 q)
{
	const struct neuron_geometry *geo = &card->ed.geo;
	u32 i;

	for (i = 0; i < geo->nr_cores; i++)
		if (eng == geo->copy_engine[i] && q == geo->copy_queue[i])
			return true;
	return false;
}

/* Programs choose the places in cores that the driver copies to for them, and what is copied. */
static bool card_copies_to_core(const struct card *card, u32 eng, u32 q)
{
	u64 to = le64_to_cpu(card->ed.dma[eng]->q[q].rx.cur.addr);

	return card_core_at(card, to, 1) < card->ed.geo.nr_cores;
}

/* Is it the driver, not a program, that is to blame for a queue that has stopped? */
static bool card_driver_stopped(const struct card *card, u32 eng, u32 q)
{
	return card_copies(card, eng, q) && !card_copies_to_core(card, eng, q);
}

/*
 * A card has no interrupt. An abort shows here, because nobody else tells; with the queue its
 * engine stops, that is all others of it, too.
 */
void neuron_dma_irq(struct neuron_device *nd, u32 eng, u32 q)
{
	struct card *card = (struct card *)nd;
	u32 status;

	if (!smp_load_acquire(&card->engine[eng].aborted) &&
	    !emu_dma_reg_read(&card->ed, eng, NEURON_DMA_TX(q) + NEURON_DMA_Q_STATUS, &status) &&
	    status == NEURON_QUEUE_ABORTED) {
		smp_store_release(&card->engine[eng].aborted, true);
		if (!READ_ONCE(card->faults.aborts) && !READ_ONCE(card->faults.nowhere) &&
		    (card_driver_stopped(card, eng, q) || !READ_ONCE(card->faults.programs)))
			card_complain(card, "queue %u of engine %u stopped with an error", q, eng);
		WRITE_ONCE(card->ed.dma[eng]->state, NEURON_DMA_ENG_ABORT);
		emu_dma_abort(card->ed.dma[eng]);
	}
}

void neuron_nq_posted(struct neuron_device *nd, u32 core, u32 nq)
{
	(void)nd;
	(void)core;
	(void)nq;
}

/* Counters of ECC errors are in misc RAM: corrected in the upper half, the others in the lower. */
void neuron_device_report(struct neuron_device *nd, enum neuron_event event, u32 core)
{
	struct card *card = (struct card *)nd;
	bool sram = event == NEURON_EVENT_SRAM_CORRECTED || event == NEURON_EVENT_SRAM_UNCORRECTED;
	bool corrected = event == NEURON_EVENT_MEM_CORRECTED ||
			 event == NEURON_EVENT_SRAM_CORRECTED;

	(void)core;
	if (event < NEURON_NR_ECC)
		card->misc[(sram ? 0x40 : 0x44) / 4] += corrected ? 0x10000 : 1;
}

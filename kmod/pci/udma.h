/* SPDX-License-Identifier: GPL-2.0-only */
/* DMA engines of a card. */
#ifndef NPCI_UDMA_H
#define NPCI_UDMA_H

#include "card.h"

/* How a register of an engine's start is written. */
enum npci_step_kind {
	NPCI_END,
	NPCI_ENGINE,		/* a value to the engine */
	NPCI_QUEUES,		/* a value for each of its queues, 0x40 apart */
	NPCI_SELECTORS,		/* same, to three registers of each queue */
	NPCI_FIELD,		/* read; a field gets a value; written */
	NPCI_APP,		/* a value to its application block */
};

/**
 * struct npci_step - a step of an engine's start
 * @kind: how
 * @off: register
 * @val: value
 * @mask: bits of the field
 */
struct npci_step {
	enum npci_step_kind kind;
	u32 off;
	u32 val;
	u32 mask;
};

extern const struct npci_step npci_start_common[];

void npci_udma_init(struct npci_card *card);
void npci_engines_start(struct npci_card *card, unsigned long cores, bool host);
void npci_engines_off(struct npci_card *card, unsigned long cores);
int npci_queue_start(struct npci_card *card, u32 eng, u32 q, const u64 *addr, const u32 *length);
int npci_queue_stop(struct npci_card *card, u32 eng, u32 q);
void npci_queues_stop(struct npci_card *card);
bool npci_queue_aborted(struct npci_card *card, u32 eng, u32 q);
void npci_host_queue_stop(struct npci_card *card, u32 eng, u32 q, bool done);
int npci_dma_read(struct npci_card *card, u32 eng, u32 off, u32 *val);
int npci_dma_write(struct npci_card *card, u32 eng, u32 off, u32 val);

#endif

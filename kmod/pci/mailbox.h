/* SPDX-License-Identifier: GPL-2.0-only */
/* Messages to the firmware of a card. */
#ifndef NPCI_MAILBOX_H
#define NPCI_MAILBOX_H

#include "card.h"

#define NPCI_METRIC_WORDS	(NEURON_HW_METRIC_BYTES / 4)

void npci_mailbox_init(struct npci_card *card);
int npci_metric(struct npci_card *card, const u32 *words);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Notification queues of a card's cores. */
#ifndef NPCI_NOTIFY_H
#define NPCI_NOTIFY_H

#include "card.h"

void npci_nq_init(struct npci_card *card);
int npci_nqs_off(struct npci_card *card, u32 core);
int npci_nq_read(struct npci_card *card, u32 core, u32 off, u32 *val);
int npci_nq_write(struct npci_card *card, u32 core, u32 off, u32 val);

#endif

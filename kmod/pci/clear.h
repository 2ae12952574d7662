/* SPDX-License-Identifier: GPL-2.0-only */
/* Clearing of a card's HBMs. */
#ifndef NPCI_CLEAR_H
#define NPCI_CLEAR_H

#include "card.h"

void npci_clear_init(struct npci_card *card);
void npci_clear_exit(struct npci_card *card);
int npci_hbm_clear(struct neuron_device *nd, u32 hbm, u64 off, u64 len);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* The firmware of a card, behind its misc RAM. */
#ifndef NPCI_FIRMWARE_H
#define NPCI_FIRMWARE_H

#include "card.h"

#define NPCI_MISC_VERSION	0x00
#define NPCI_MISC_SERIAL_LO	0x38
#define NPCI_MISC_SERIAL_HI	0x3c
#define NPCI_MISC_ECC_SRAM	0x40
#define NPCI_MISC_ECC_HBM(i)	(0x44 + 4 * (i))
#define NPCI_MISC_POWER(die)	(0x54 + 4 * (die))
#define NPCI_MISC_REPAIR	0x64
#define NPCI_MISC_RESET_MAP	0x1d8
#define NPCI_MISC_RESET		0x1ec
#define NPCI_MISC_DOORBELL	0x800
#define NPCI_MISC_STATUS	0x808
#define NPCI_MISC_NOT_READY	BIT(3)

void npci_firmware_init(struct npci_card *card);
void npci_firmware_exit(struct npci_card *card);
u32 npci_misc_read(struct npci_card *card, u32 off);
void npci_misc_write(struct npci_card *card, u32 off, u32 val);
int npci_pause(struct npci_card *card, u32 msec);
int npci_routing_id(struct npci_card *card, u32 *id);
u32 npci_device_number(const struct npci_card *card, u32 id);
u64 npci_serial(struct npci_card *card);
int npci_reset_device(struct npci_card *card);
int npci_reset_begin(struct npci_card *card, unsigned long cores);
int npci_reset_poll(struct npci_card *card, unsigned long cores);
int npci_ecc_count(struct npci_card *card, enum neuron_event event, u64 *count);
int npci_power_read(struct npci_card *card, struct neuron_power *power);

#endif

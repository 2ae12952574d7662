/* SPDX-License-Identifier: GPL-2.0-only */
/* The card as a PCI function of a virtual machine, served through vfio-user. */
#ifndef CARD_VFU_H
#define CARD_VFU_H

#include "card.h"

#define VFU_CONFIG_LEN		256
/*
 * What no card has: a line for the control of the card (control.c) is written here, and its
 * answer read, by a test in the machine.
 */
#define VFU_CONTROL		0xc0
#define VFU_CONTROL_LEN		(VFU_CONFIG_LEN - VFU_CONTROL)
#define VFU_MAX_MESSAGE		(1 << 20)

/**
 * struct vfu - a PCI function
 * @card: what is behind it
 * @config: configuration space
 * @line: for the control, as far as it was written
 * @fd: connection to the virtual machine
 * @body: of the message being handled
 */
struct vfu {
	struct card *card;
	u8 config[VFU_CONFIG_LEN];
	char line[VFU_CONTROL_LEN + 1];
	int fd;
	u8 *body;
};

int vfu_init(struct vfu *v, struct card *card, int fd);
void vfu_exit(struct vfu *v);
int vfu_message(struct vfu *v);

#endif

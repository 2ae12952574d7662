/* SPDX-License-Identifier: GPL-2.0-only */
/* The card as a PCI function of a virtual machine, served through vfio-user. */
#ifndef CARD_VFU_H
#define CARD_VFU_H

#include "card.h"

#define VFU_CONFIG_LEN		256
#define VFU_MAX_MESSAGE		(1 << 20)

/**
 * struct vfu - a PCI function
 * @card: what is behind it
 * @config: configuration space
 * @fd: connection to the virtual machine
 * @body: of the message being handled
 */
struct vfu {
	struct card *card;
	u8 config[VFU_CONFIG_LEN];
	int fd;
	u8 *body;
};

int vfu_init(struct vfu *v, struct card *card, int fd);
void vfu_exit(struct vfu *v);
int vfu_message(struct vfu *v);

#endif

// SPDX-License-Identifier: GPL-2.0-only
/* A card that is gone: what all other files need to know. */
#include <linux/pci.h>

#include "card.h"

/**
 * npci_flush() - wait until all register writes have arrived
 * @card: the card
 *
 * Context: any.
 * Return: the value of the routing id, the register that is read; U32_MAX if the card is
 *	   gone.
 */
u32 npci_flush(struct npci_card *card)
{
	return readl(card->misc + NPCI_MISC_ROUTING_ID);
}

/**
 * npci_all_ones() - a register read as all ones, as those of a missing card do
 * @card: the card
 *
 * Some registers may have that value; the routing id never does.
 *
 * Context: any.
 */
void npci_all_ones(struct npci_card *card)
{
	if (npci_flush(card) != U32_MAX || READ_ONCE(card->gone))
		return;
	WRITE_ONCE(card->gone, true);
	dev_err(&card->pdev->dev, "the card is gone: its registers read as all ones\n");
	schedule_work(&card->unplug);
}

/**
 * npci_master_off() - end all accesses of a card to host memory
 * @card: the card
 *
 * None is under way when this returns.
 *
 * Context: any.
 */
void npci_master_off(struct npci_card *card)
{
	u16 command;

	pci_clear_master(card->pdev);
	pci_read_config_word(card->pdev, PCI_COMMAND, &command);
	npci_flush(card);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages to the firmware of a card, in the first form: a request and an answer in host
 * memory.  The only message is a metric: 128 bytes in misc RAM, which the firmware passes on.
 */
#include <linux/dma-mapping.h>
#include <linux/jiffies.h>

#include "../compat/crc.h"
#include "firmware.h"
#include "mailbox.h"

#define NPCI_MISC_METRIC	0x100
#define NPCI_MISC_REQUEST_HI	0x1f0
#define NPCI_MISC_REQUEST_LO	0x1f4
#define NPCI_MISC_ANSWER_HI	0x1f8
#define NPCI_MISC_ANSWER_LO	0x1fc

#define NPCI_MAILBOX_METRIC	2
/* Of a request, and of an answer: the card may write 65535 bytes. */
#define NPCI_MAILBOX_LEN	65536
/* A request that is not answered is made again. */
#define NPCI_MAILBOX_TRIES	3
#define NPCI_MAILBOX_MSEC	1000

struct npci_request {
	u8 sequence;		/* never 0 */
	u8 command;
	__le16 size;		/* of all of it */
	__le32 crc;		/* CRC-32C of all of it, computed with 0 here */
};

struct npci_answer {
	u8 sequence;		/* that of the request; written last */
	u8 error;
	__le16 size;
};

/**
 * npci_mailbox_init() - prepare the mailbox of a card
 * @card: the card
 */
void npci_mailbox_init(struct npci_card *card)
{
	init_waitqueue_head(&card->mailbox.wait);
}

/*
 * Ring, unless a reset is under way: the firmware would take the doorbell for its.  Return:
 * 0, -EBUSY.
 */
static int npci_mailbox_ring(struct npci_card *card)
{
	u64 request = card->mailbox.dma | card->geo.host_window;
	u64 answer = request + NPCI_MAILBOX_LEN;
	int err = -EBUSY;

	mutex_lock(&card->reset.lock);
	if (!card->reset.active) {
		npci_misc_write(card, NPCI_MISC_REQUEST_LO, lower_32_bits(request));
		npci_misc_write(card, NPCI_MISC_REQUEST_HI, upper_32_bits(request));
		npci_misc_write(card, NPCI_MISC_ANSWER_LO, lower_32_bits(answer));
		npci_misc_write(card, NPCI_MISC_ANSWER_HI, upper_32_bits(answer));
		npci_misc_write(card, NPCI_MISC_DOORBELL, 1);
		err = 0;
	}
	mutex_unlock(&card->reset.lock);
	return err;
}

/* Return: 0; -ETIMEDOUT no answer; -EIO the firmware refuses it; as npci_pause(). */
static int npci_mailbox_try(struct npci_card *card, u8 command)
{
	unsigned long end = jiffies + msecs_to_jiffies(NPCI_MAILBOX_MSEC);
	struct npci_request *request = card->mailbox.mem;
	struct npci_answer *answer = card->mailbox.mem + NPCI_MAILBOX_LEN;
	u8 sequence = ++card->mailbox.sequence ?: ++card->mailbox.sequence;
	int err;

	*request = (struct npci_request){
		.sequence = sequence, .command = command, .size = cpu_to_le16(sizeof(*request)),
	};
	request->crc = cpu_to_le32(~neuron_crc32c(request, sizeof(*request)));
	WRITE_ONCE(answer->sequence, 0);
	err = npci_mailbox_ring(card);
	while (READ_ONCE(answer->sequence) != sequence) {
		/* What was not asked is not answered. */
		if (time_after(jiffies, end))
			return err ?: -ETIMEDOUT;
		err = npci_pause(card, 1) ?: err ? npci_mailbox_ring(card) : 0;
		if (err && err != -EBUSY)
			return err;
	}
	dma_rmb();
	return answer->error ? -EIO : 0;
}

static int npci_mailbox_send(struct npci_card *card, const u32 *words, u32 n)
{
	struct device *dev = &card->pdev->dev;
	int err = -ETIMEDOUT, i;

	/* Given back after the card cannot master the bus any more. */
	if (!card->mailbox.mem)
		card->mailbox.mem = dmam_alloc_coherent(dev, 2 * NPCI_MAILBOX_LEN,
							&card->mailbox.dma, GFP_KERNEL);
	if (!card->mailbox.mem)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		npci_misc_write(card, NPCI_MISC_METRIC + 4 * i, words[i]);
	for (i = 0; i < NPCI_MAILBOX_TRIES && (err == -ETIMEDOUT || err == -EBUSY); i++)
		err = npci_mailbox_try(card, NPCI_MAILBOX_METRIC);
	if (err == -ETIMEDOUT || err == -EIO)
		dev_warn_ratelimited(dev, "the firmware %s a metric\n",
				     err == -EIO ? "refuses" : "does not answer to");
	return err;
}

/**
 * npci_metric() - pass a metric on to the firmware
 * @card: the card
 * @words: the metric, NPCI_METRIC_WORDS words
 *
 * One at a time; others wait for it.
 *
 * Context: may sleep, killable.
 * Return: 0; -ETIMEDOUT no answer in 3 s; -EIO the firmware refuses it; -EBUSY the card is
 *	   being reset; -ENOMEM; -ENODEV gone; -EINTR.
 */
int npci_metric(struct npci_card *card, const u32 *words)
{
	struct npci_mailbox *m = &card->mailbox;
	int err;

	if (wait_event_killable(m->wait, npci_gone(card) || !xchg(&m->busy, true)))
		return -EINTR;
	if (npci_gone(card))
		err = -ENODEV;
	else
		err = npci_mailbox_send(card, words, NPCI_METRIC_WORDS);
	/* Pairs with the exchange of the next one, which takes the buffer over. */
	smp_store_release(&m->busy, false);
	wake_up(&m->wait);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages to the firmware of a card.  The only one is a metric: 128 bytes in misc RAM, which the
 * firmware passes on.  In the first form request and answer are in host memory; firmware of
 * a later interface has them in misc RAM, too, and the metric is the data of the request.
 */
#include <linux/dma-mapping.h>
#include <linux/jiffies.h>

#include "../compat/crc.h"
#include "firmware.h"
#include "mailbox.h"

#define NPCI_MISC_ANNOUNCE	0xf0
#define NPCI_MISC_METRIC	0x100
/* First form: where request and answer are. */
#define NPCI_MISC_REQUEST_HI	0x1f0
#define NPCI_MISC_REQUEST_LO	0x1f4
#define NPCI_MISC_ANSWER_HI	0x1f8
#define NPCI_MISC_ANSWER_LO	0x1fc
/* Second form: the header of the request, and then that of the answer. */
#define NPCI_MISC_HEADER	0x1f0
#define NPCI_MISC_CRC		0x1f4

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
	__le32 data[NPCI_METRIC_WORDS];	/* not in the first form */
};

#define NPCI_REQUEST_HEAD	offsetof(struct npci_request, data)

struct npci_answer {
	u8 sequence;		/* that of the request; in host memory it is written last */
	u8 error;
	__le16 size;
	__le32 crc;		/* second form, if the size says that it is there */
};

/**
 * npci_mailbox_init() - prepare the mailbox of a card
 * @card: the card
 */
void npci_mailbox_init(struct npci_card *card)
{
	init_waitqueue_head(&card->mailbox.wait);
}

/* Where the firmware finds a request in host memory, and puts its answer. */
static void npci_mailbox_places(struct npci_card *card)
{
	u64 request = card->mailbox.dma | card->geo.host_window;
	u64 answer = request + NPCI_MAILBOX_LEN;

	npci_misc_write(card, NPCI_MISC_REQUEST_LO, lower_32_bits(request));
	npci_misc_write(card, NPCI_MISC_REQUEST_HI, upper_32_bits(request));
	npci_misc_write(card, NPCI_MISC_ANSWER_LO, lower_32_bits(answer));
	npci_misc_write(card, NPCI_MISC_ANSWER_HI, upper_32_bits(answer));
}

/* The same for the second form: the data is there already. */
static void npci_mailbox_header(struct npci_card *card, const struct npci_request *request)
{
	npci_misc_write(card, NPCI_MISC_HEADER, le32_to_cpup((__force __le32 *)request));
	npci_misc_write(card, NPCI_MISC_CRC, le32_to_cpu(request->crc));
	npci_misc_write(card, NPCI_MISC_ANSWER_HI, 0);
	npci_misc_write(card, NPCI_MISC_ANSWER_LO, 0);
	npci_misc_write(card, NPCI_MISC_ANNOUNCE, 1);
}

/*
 * Ring, unless a reset is under way: the firmware would take the doorbell for its.  Return:
 * 0, -EBUSY.
 */
static int npci_mailbox_ring(struct npci_card *card, const struct npci_request *request)
{
	int err = -EBUSY;

	mutex_lock(&card->reset.lock);
	if (!card->reset.active) {
		if (card->mailbox.in_ram)
			npci_mailbox_header(card, request);
		else
			npci_mailbox_places(card);
		npci_misc_write(card, NPCI_MISC_DOORBELL, 1);
		err = 0;
	}
	mutex_unlock(&card->reset.lock);
	return err;
}

/* Return: is there an answer to a request that was rung for?  Then it is read. */
static bool npci_mailbox_answered(struct npci_card *card, u8 sequence, struct npci_answer *answer)
{
	const struct npci_answer *mem = card->mailbox.mem + NPCI_MAILBOX_LEN;

	if (card->mailbox.in_ram) {
		/* The firmware takes the doorbell back when it has answered. */
		if (npci_misc_read(card, NPCI_MISC_DOORBELL))
			return false;
		*(__le32 *)answer = cpu_to_le32(npci_misc_read(card, NPCI_MISC_HEADER));
		answer->crc = cpu_to_le32(npci_misc_read(card, NPCI_MISC_CRC));
		return true;
	}
	if (READ_ONCE(mem->sequence) != sequence)
		return false;
	dma_rmb();
	*answer = *mem;
	return true;
}

/* Return: 0; -ETIMEDOUT it is the answer to another request, or none; -EBADMSG; -EIO. */
static int npci_mailbox_result(struct npci_card *card, const struct npci_request *request,
			       struct npci_answer answer)
{
	u32 crc = le32_to_cpu(answer.crc);

	if (answer.sequence != request->sequence)
		return -ETIMEDOUT;
	/* A reset takes the doorbell back, too: what is there then is still the request. */
	if (card->mailbox.in_ram && answer.error == request->command &&
	    answer.size == request->size)
		return -ETIMEDOUT;
	/* Some firmware has a checksum in its header. */
	if (card->mailbox.in_ram && le16_to_cpu(answer.size) == sizeof(answer)) {
		answer.crc = 0;
		if (crc != ~neuron_crc32c(&answer, sizeof(answer)))
			return -EBADMSG;
	}
	return answer.error ? -EIO : 0;
}

/*
 * Return: 0; -ETIMEDOUT no answer to this request; -EBADMSG a garbled one; -EIO the firmware
 * refuses it; as npci_pause().
 */
static int npci_mailbox_try(struct npci_card *card, struct npci_request *request)
{
	unsigned long end = jiffies + msecs_to_jiffies(NPCI_MAILBOX_MSEC);
	u8 sequence = ++card->mailbox.sequence ?: ++card->mailbox.sequence;
	struct npci_answer answer, *mem = card->mailbox.mem + NPCI_MAILBOX_LEN;
	int err;

	request->sequence = sequence;
	request->crc = 0;
	request->crc = cpu_to_le32(~neuron_crc32c(request, le16_to_cpu(request->size)));
	if (!card->mailbox.in_ram) {
		memcpy(card->mailbox.mem, request, NPCI_REQUEST_HEAD);
		WRITE_ONCE(mem->sequence, 0);
	}
	err = npci_mailbox_ring(card, request);
	/* What was not asked is not answered. */
	while (err || !npci_mailbox_answered(card, sequence, &answer)) {
		if (time_after(jiffies, end))
			return err ?: -ETIMEDOUT;
		err = npci_pause(card, 1) ?: err ? npci_mailbox_ring(card, request) : 0;
		if (err && err != -EBUSY)
			return err;
	}
	return npci_mailbox_result(card, request, answer);
}

static const char *npci_mailbox_error(int err)
{
	switch (err) {
	case -ETIMEDOUT:
		return "does not answer to";
	case -EBADMSG:
		return "garbles its answer to";
	case -EIO:
		return "refuses";
	default:
		return NULL;
	}
}

/* Which form the firmware has, and what that needs.  Return: 0, -ENOMEM. */
static int npci_mailbox_prepare(struct npci_card *card)
{
	u32 version = npci_misc_read(card, NPCI_MISC_VERSION);

	card->mailbox.in_ram = version >= card->gen->mailbox_in_ram && version != NPCI_DEAD;
	/* Given back after the card cannot master the bus any more. */
	if (!card->mailbox.in_ram && !card->mailbox.mem)
		card->mailbox.mem = dmam_alloc_coherent(&card->pdev->dev, 2 * NPCI_MAILBOX_LEN,
							&card->mailbox.dma, GFP_KERNEL);
	return card->mailbox.in_ram || card->mailbox.mem ? 0 : -ENOMEM;
}

static int npci_mailbox_send(struct npci_card *card, const u32 *words)
{
	struct npci_request request = { .command = NPCI_MAILBOX_METRIC };
	int err = npci_mailbox_prepare(card), i;

	if (err)
		return err;
	request.size = cpu_to_le16(card->mailbox.in_ram ? sizeof(request) : NPCI_REQUEST_HEAD);
	for (i = 0; i < NPCI_METRIC_WORDS; i++) {
		request.data[i] = cpu_to_le32(words[i]);
		npci_misc_write(card, NPCI_MISC_METRIC + 4 * i, words[i]);
	}
	i = 0;
	do {
		err = npci_mailbox_try(card, &request);
	} while (++i < NPCI_MAILBOX_TRIES &&
		 (err == -ETIMEDOUT || err == -EBUSY || err == -EBADMSG));
	if (npci_mailbox_error(err))
		dev_warn_ratelimited(&card->pdev->dev, "the firmware %s a metric\n",
				     npci_mailbox_error(err));
	return err == -EBADMSG ? -EIO : err;
}

/**
 * npci_metric() - pass a metric on to the firmware
 * @card: the card
 * @words: the metric, NPCI_METRIC_WORDS words
 *
 * One at a time; others wait for it.
 *
 * Context: may sleep, killable.
 * Return: 0; -ETIMEDOUT no answer in 3 s; -EIO the firmware refuses it, or answers with a wrong
 *	   checksum; -EBUSY the card is being reset; -ENOMEM; -ENODEV gone; -EINTR.
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
		err = npci_mailbox_send(card, words);
	/* Pairs with the exchange of the next one, which takes the buffer over. */
	smp_store_release(&m->busy, false);
	wake_up(&m->wait);
	return err;
}

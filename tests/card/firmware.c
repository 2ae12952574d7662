// SPDX-License-Identifier: GPL-2.0-only
/*
 * The firmware of a card behind its misc RAM: identity, reset, mailbox, counters of ECC errors
 * and power (README.md, "Misc RAM").
 */
#include "card.h"

#define MISC_VERSION		0x00
#define MISC_ROUTING_ID		0x24
#define MISC_SERIAL_LO		0x38
#define MISC_SERIAL_HI		0x3c
#define MISC_ANNOUNCE		0xf0
#define MISC_RESET_MAP		0x1d8
#define MISC_RESET		0x1ec
#define MISC_REQUEST_HI		0x1f0
#define MISC_REQUEST_LO		0x1f4
#define MISC_RESPONSE_HI	0x1f8
#define MISC_RESPONSE_LO	0x1fc
#define MISC_DOORBELL		0x800
#define MISC_STATUS		0x808
#define MISC_STATUS_NOT_READY	BIT(3)

#define RESET_DEVICE		1
#define RESET_CORES		2

/* Second form: the header of a message, then that of its answer. */
#define MISC_HEADER		0x1f0
#define MISC_CRC		0x1f4
#define MISC_FIRST_SECOND	6	/* interface of the firmware that has it */

#define MAILBOX_READ		1
#define MAILBOX_METRIC		2
#define MAILBOX_MAX_REGISTERS	100

struct mailbox_request {
	u8 sequence;
	u8 command;
	__le16 size;		/* of all of it */
	__le32 crc;		/* computed with this field 0 */
};

struct mailbox_response {
	u8 sequence;
	u8 error;
	__le16 size;		/* of all of it */
	__le32 crc;		/* second form of v4 only */
};

#define RESPONSE_SHORT	offsetof(struct mailbox_response, crc)

/* CRC-32C (Castagnoli), bit by bit: requests are rare. */
static u32 crc32c(const u8 *p, size_t n)
{
	u32 crc = ~0u;
	int i;

	while (n--) {
		crc ^= *p++;
		for (i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

/* Cores that a reset map means; all other bits are fixed by them. */
static u64 card_reset_cores(struct card *card)
{
	u32 map = card->misc[MISC_RESET_MAP / 4], want = 0, c;
	u64 cores = card->gen == 2 ? map & 3 : map & 0xff;

	for (c = 0; c < card->ed.geo.nr_cores; c++)
		if (cores & BIT(c))
			want |= card->gen == 2 ? BIT(c) | 7u << (8 + 3 * c) : 0x10101u << c;
	if (!cores || map != want)
		card_complain(card, "reset map %#x, which is of cores %#llx and would be %#x", map,
			      cores, want);
	return cores;
}

/**
 * card_reset_end() - when a reset that begins now ends
 * @card: the card
 */
u64 card_reset_end(const struct card *card)
{
	return card->faults.reset_ms == U32_MAX ? U64_MAX :
	       ktime_get_ns() + card->faults.reset_ms * 1000000ULL;
}

static void card_reset_begin(struct card *card, u32 what)
{
	const struct neuron_geometry *geo = &card->ed.geo;
	u64 cores = what == RESET_DEVICE ? BIT(geo->nr_cores) - 1 : card_reset_cores(card);
	u32 c;

	if (what == RESET_DEVICE)
		card->stats.device_resets++;
	else
		card->stats.core_resets++;
	card_engines_reset(card, cores, what == RESET_DEVICE);
	for (c = 0; c < geo->nr_cores; c++) {
		if (!(cores & BIT(c)))
			continue;
		emu_core_reset(card->ed.core[c]);
		emu_core_bind(card->ed.core[c], (struct neuron_space *)card);
	}
	card->reset_at = card_reset_end(card);
}

/* Does the reset under way go on? */
static bool card_resetting(struct card *card)
{
	u32 mask = card->gen == 2 ? 3 : 0xff;

	if (card->reset_at && ktime_get_ns() >= card->reset_at) {
		card->reset_at = 0;
		if (card->misc[MISC_RESET / 4] == RESET_DEVICE)
			card->faults.leftover = false;
		else
			mask &= card->misc[MISC_RESET_MAP / 4];
		card_run_on_reset(card, mask);
		card->misc[MISC_RESET / 4] = 0;
	}
	return card->reset_at;
}

/* Registers are addressed as the card sees them: engine registers and misc RAM. */
static u32 card_mailbox_register(struct card *card, u64 addr)
{
	u64 base = card->gen == 2 ? 0xfffc0000000ULL : 0x8000000000ULL;

	return card_read(card, addr - base, 4);
}

static u8 card_mailbox_run(struct card *card, const struct mailbox_request *req, const u8 *data,
			   u32 len, u32 *answer, u32 *nr)
{
	u64 addr;
	u32 i;

	*nr = 0;
	switch (req->command) {
	case MAILBOX_READ:
		if (len % sizeof(addr) || len / sizeof(addr) > MAILBOX_MAX_REGISTERS)
			return 1;
		for (i = 0; i < len / sizeof(addr); i++) {
			memcpy(&addr, data + i * sizeof(addr), sizeof(addr));
			answer[i] = cpu_to_le32(card_mailbox_register(card, le64_to_cpu(addr)));
		}
		*nr = i;
		return 0;
	case MAILBOX_METRIC:
		card->stats.metrics += card->faults.mailbox == CARD_MAILBOX_GOOD;
		return 0;
	default:
		return 2;
	}
}

/* What the answer says, if it is @error without a fault. */
static u8 card_mailbox_error(const struct card *card, u8 error)
{
	switch (card->faults.mailbox) {
	case CARD_MAILBOX_FAILED:
		return 1;
	case CARD_MAILBOX_UNKNOWN:
		return 2;
	default:
		return error;
	}
}

/* The first form of the mailbox: request and answer are in host memory. */
static void card_mailbox(struct card *card)
{
	u64 from = (u64)card->misc[MISC_REQUEST_HI / 4] << 32 | card->misc[MISC_REQUEST_LO / 4];
	u64 to = (u64)card->misc[MISC_RESPONSE_HI / 4] << 32 | card->misc[MISC_RESPONSE_LO / 4];
	struct mailbox_request req;
	struct { u8 sequence, error; __le16 size; u32 data[MAILBOX_MAX_REGISTERS]; } out = { };
	u8 buf[0x10000];
	u32 crc, size, nr;

	if (card_memory_read(card, from, &req, sizeof(req))) {
		card_complain(card, "mailbox: no request at %#llx", from);
		return;
	}
	size = le16_to_cpu(req.size);
	if (size < sizeof(req) || card_memory_read(card, from, buf, size)) {
		card_complain(card, "mailbox: request of %u bytes at %#llx", size, from);
		return;
	}
	memset(buf + offsetof(struct mailbox_request, crc), 0, sizeof(req.crc));
	crc = crc32c(buf, size);
	if (crc != le32_to_cpu(req.crc) || !req.sequence) {
		card_complain(card, "mailbox: checksum %#x, not %#x; sequence %u",
			      le32_to_cpu(req.crc), crc, req.sequence);
		return;
	}
	if (card->faults.mailbox == CARD_MAILBOX_SILENT)
		return;
	out.error = card_mailbox_error(card, card_mailbox_run(card, &req, buf + sizeof(req),
							       size - sizeof(req), out.data, &nr));
	size = RESPONSE_SHORT + nr * sizeof(out.data[0]);
	out.size = cpu_to_le16(size);
	if (card_memory_write(card, to, &out, size)) {
		card_complain(card, "mailbox: no room for an answer at %#llx", to);
		return;
	}
	/* The sequence number comes last: it says that the answer is there. */
	out.sequence = req.sequence + (card->faults.mailbox == CARD_MAILBOX_SEQUENCE);
	card_memory_write(card, to, &out.sequence, 1);
}

/* Does a message in misc RAM fit together?  Its checksum is computed with 0 in its place. */
static bool card_message_good(struct card *card, u8 *buf, struct mailbox_request *req)
{
	u32 len = sizeof(*req) + CARD_METRIC_LEN, size, crc;

	memcpy(buf, &card->misc[MISC_HEADER / 4], sizeof(*req));
	memcpy(buf + sizeof(*req), &card->misc[CARD_METRIC / 4], CARD_METRIC_LEN);
	memcpy(req, buf, sizeof(*req));
	memset(buf + offsetof(struct mailbox_request, crc), 0, sizeof(req->crc));
	size = le16_to_cpu(req->size);
	crc = crc32c(buf, min(size, len));
	if (card->misc[0] >= MISC_FIRST_SECOND && size >= sizeof(*req) && size <= len &&
	    req->sequence && crc == le32_to_cpu(req->crc) &&
	    !card->misc[MISC_RESPONSE_HI / 4] && !card->misc[MISC_RESPONSE_LO / 4])
		return true;
	card_complain(card, "message: interface %u, sequence %u, %u bytes, checksum %#x, not %#x",
		      card->misc[0], req->sequence, size, le32_to_cpu(req->crc), crc);
	return false;
}

/* The second form of the mailbox: all of it is in misc RAM. */
static void card_message(struct card *card)
{
	u8 buf[sizeof(struct mailbox_request) + CARD_METRIC_LEN];
	struct { struct mailbox_response head; u32 data[MAILBOX_MAX_REGISTERS]; } out = { };
	struct mailbox_request req;
	u32 nr, head = card->gen == 4 ? sizeof(out.head) : RESPONSE_SHORT;

	card->misc[MISC_DOORBELL / 4] = 1;
	if (!card_message_good(card, buf, &req) || card->faults.mailbox == CARD_MAILBOX_SILENT)
		return;
	/* As after a reset: all but the doorbell is as it was written. */
	if (card->faults.mailbox == CARD_MAILBOX_LOST) {
		card->faults.mailbox = CARD_MAILBOX_GOOD;
		card->misc[MISC_DOORBELL / 4] = 0;
		return;
	}
	out.head.error = card_mailbox_error(card,
		card_mailbox_run(card, &req, buf + sizeof(req),
				 le16_to_cpu(req.size) - sizeof(req), out.data, &nr));
	nr = min(nr, CARD_METRIC_LEN / 4u);
	out.head.size = cpu_to_le16(head + nr * sizeof(out.data[0]));
	out.head.sequence = req.sequence + (card->faults.mailbox == CARD_MAILBOX_SEQUENCE);
	if (card->gen == 4)
		out.head.crc = cpu_to_le32(crc32c((u8 *)&out, le16_to_cpu(out.head.size)) ^
					   (card->faults.mailbox == CARD_MAILBOX_CHECKSUM));
	memcpy(&card->misc[MISC_HEADER / 4], &out.head, sizeof(out.head));
	memcpy(&card->misc[CARD_METRIC / 4], out.data, nr * sizeof(out.data[0]));
	card->misc[MISC_ANNOUNCE / 4] = 0;
	card->misc[MISC_DOORBELL / 4] = 0;
}

/**
 * card_firmware_read() - a read of misc RAM
 * @card: the card
 * @off: offset in it
 *
 * Return: the value.
 */
u32 card_firmware_read(struct card *card, u32 off)
{
	if (card->faults.dead_until > ktime_get_ns())
		return CARD_DEAD;
	if (off == MISC_RESET)
		card_resetting(card);
	if (off == MISC_STATUS && card->faults.not_ready) {
		card->faults.not_ready--;
		return MISC_STATUS_NOT_READY;
	}
	return card->misc[off / 4];
}

/**
 * card_firmware_write() - a write to misc RAM
 * @card: the card
 * @off: offset in it
 * @val: value
 */
void card_firmware_write(struct card *card, u32 off, u32 val)
{
	switch (off) {
	case MISC_RESET:
		/* What never ends is asked for again by a driver that has given up. */
		if (card_resetting(card) && card->reset_at != U64_MAX)
			card_complain(card, "reset %u asked for during a reset", val);
		fallthrough;
	case MISC_ANNOUNCE:
	case MISC_RESET_MAP:
	case MISC_REQUEST_HI:
	case MISC_REQUEST_LO:
	case MISC_RESPONSE_HI:
	case MISC_RESPONSE_LO:
		card->misc[off / 4] = val;
		break;
	case MISC_DOORBELL:
		if (card->faults.dead_until > ktime_get_ns())
			break;
		if (val != 1)
			card_complain(card, "firmware: doorbell %u", val);
		else if (!card->misc[MISC_RESET / 4] && card->misc[MISC_ANNOUNCE / 4])
			card_message(card);
		else if (!card->misc[MISC_RESET / 4])
			card_mailbox(card);
		else if (card->misc[MISC_RESET / 4] > RESET_CORES)
			card_complain(card, "firmware: reset %u", card->misc[MISC_RESET / 4]);
		else
			card_reset_begin(card, card->misc[MISC_RESET / 4]);
		break;
	default:
		if (off >= CARD_METRIC && off < CARD_METRIC + CARD_METRIC_LEN)
			card->misc[off / 4] = val;
		else
			card_complain(card, "%#x written to %#x of misc RAM", val, off);
	}
}

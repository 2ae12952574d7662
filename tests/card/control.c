// SPDX-License-Identifier: GPL-2.0-only
/* Lines of text that tell what a card did, and make it do something wrong. */
#include "card.h"

static int parse_number(const char *text, u32 *val)
{
	char *end;
	unsigned long v;

	if (!text)
		return -EINVAL;
	if (!strcmp(text, "never") || !strcmp(text, "forever")) {
		*val = U32_MAX;
		return 0;
	}
	errno = 0;
	v = strtoul(text, &end, 0);
	if (*end || end == text || errno || v >= U32_MAX)
		return -EINVAL;
	*val = v;
	return 0;
}

/* "dead MS|forever": no answer from the firmware. */
static int fault_dead(struct card *card, u32 ms)
{
	card->faults.dead_until = ms == U32_MAX ? U64_MAX : ktime_get_ns() + ms * 1000000ULL;
	return 0;
}

static int fault_reset(struct card *card, u32 ms)
{
	card->faults.reset_ms = ms;
	/* One that is under way ends then, too. */
	if (card->reset_at)
		card->reset_at = card_reset_end(card);
	return 0;
}

static int fault_not_ready(struct card *card, u32 n)
{
	card->faults.not_ready = n;
	return 0;
}

static int fault_doorbells(struct card *card, u32 n)
{
	card->faults.lost_doorbells = n;
	return 0;
}

static int fault_slow_state(struct card *card, u32 n)
{
	card->faults.slow_state = n;
	return 0;
}

static int fault_mailbox(struct card *card, u32 how)
{
	if (how > CARD_MAILBOX_LOST)
		return -EINVAL;
	card->faults.mailbox = how;
	return 0;
}

/* Of the firmware's interface: from 7 on the mailbox has its second form. */
static int set_version(struct card *card, u32 version)
{
	card->misc[0] = version;
	return 0;
}

static int fault_aborts(struct card *card, u32 n)
{
	WRITE_ONCE(card->faults.aborts, n);
	atomic_set(&card->ed.faults.fault[EMU_FAULT_DMA_ABORT].shots, n);
	return 0;
}

static int fault_die(struct card *card, u32 n)
{
	card->faults.die = n;
	return 0;
}

/* An engine that meets one stops. */
static int fault_ecc(struct card *card, u32 n)
{
	WRITE_ONCE(card->faults.aborts, n);
	atomic_set(&card->ed.faults.fault[EMU_FAULT_MEM_UNCORRECTED].shots, n);
	return 0;
}

/* The counters of HBM 0. */
static int set_ecc_word(struct card *card, u32 val)
{
	card->misc[0x44 / 4] = val;
	return 0;
}

static int set_repair(struct card *card, u32 state)
{
	card->misc[0x64 / 4] = state;
	return 0;
}

static int set_routing_id(struct card *card, u32 id)
{
	card->misc[0x24 / 4] = id;
	return 0;
}

static int fault_nowhere(struct card *card, u32 yes)
{
	WRITE_ONCE(card->faults.nowhere, yes);
	return 0;
}

static int fault_leftover(struct card *card, u32 yes)
{
	card->faults.leftover = yes;
	return 0;
}

static int fault_programs(struct card *card, u32 yes)
{
	WRITE_ONCE(card->faults.programs, yes);
	return 0;
}

static int fault_run_on(struct card *card, u32 ms)
{
	return card_run_on(card, ms);
}

static int fault_removed(struct card *card, u32 yes)
{
	card->faults.removed = yes;
	return 0;
}

static const struct {
	const char *name;
	int (*set)(struct card *card, u32 val);
} faults[] = {
	{ "dead", fault_dead },			/* ms, or "forever" */
	{ "reset", fault_reset },		/* ms that a reset takes, or "never" */
	{ "not-ready", fault_not_ready },	/* reads of the status */
	{ "lost-doorbells", fault_doorbells },	/* how many */
	{ "slow-state", fault_slow_state },	/* reads of the state of an engine */
	{ "mailbox", fault_mailbox },		/* enum card_mailbox_fault */
	{ "aborts", fault_aborts },		/* descriptors that stop their queue */
	{ "die", fault_die },			/* at which access of a register */
	{ "ecc", fault_ecc },			/* uncorrected errors of HBM */
	{ "version", set_version },		/* of the firmware's interface */
	{ "ecc-word", set_ecc_word },
	{ "repair", set_repair },		/* of HBM */
	{ "routing-id", set_routing_id },
	{ "nowhere", fault_nowhere },		/* 1: addresses where nothing is are no complaint */
	{ "leftover", fault_leftover },		/* 1: queues run, until the device is reset */
	{ "programs", fault_programs },		/* 1: their queues may stop with an error */
	{ "run-on", fault_run_on },		/* 1: queues that are off fetch; more: ms */
	{ "removed", fault_removed },		/* 1: gone */
};

static void show_stats(struct card *card, FILE *out)
{
	const struct card_stats *s = &card->stats;
	u64 i;

	fprintf(out, "reads %llu\nwrites %llu\npolls %llu\ndoorbells %llu\ndescriptors %llu\n"
		"device-resets %llu\ncore-resets %llu\n",
		s->reads, s->writes, s->polls, s->doorbells, s->descriptors, s->device_resets,
		s->core_resets);
	pthread_mutex_lock(&card->lock);
	fprintf(out, "complaints %llu\n", s->complaints);
	for (i = 0; i < min(s->complaints, (u64)ARRAY_SIZE(card->complaint)); i++)
		fprintf(out, "complaint %s\n", card->complaint[i]);
	pthread_mutex_unlock(&card->lock);
}

/**
 * card_control() - do what a line of text says
 * @card: the card
 * @line: "stats", "accesses", "reads", "complaints", "resets", "metrics", "fetches",
 *	  "metric WORD", or the name of a fault and a number; changed
 * @out: the answer goes here
 *
 * Return: 0, -EINVAL it says nothing that is known.
 */
int card_control(struct card *card, char *line, FILE *out)
{
	char *save, *name = strtok_r(line, " \t\r\n", &save);
	char *arg = strtok_r(NULL, " \t\r\n", &save);
	u32 i, val;

	if (!name)
		return -EINVAL;
	if (!strcmp(name, "stats")) {
		show_stats(card, out);
		return 0;
	}
	if (!strcmp(name, "accesses")) {
		fprintf(out, "%llu\n", card->stats.reads + card->stats.writes);
		return 0;
	}
	if (!strcmp(name, "reads")) {
		fprintf(out, "%llu\n", card->stats.reads);
		return 0;
	}
	if (!strcmp(name, "complaints")) {
		fprintf(out, "%llu\n", smp_load_acquire(&card->stats.complaints));
		return 0;
	}
	if (!strcmp(name, "resets")) {
		fprintf(out, "%llu\n", card->stats.device_resets + card->stats.core_resets);
		return 0;
	}
	if (!strcmp(name, "metrics")) {
		fprintf(out, "%llu\n", card->stats.metrics);
		return 0;
	}
	if (!strcmp(name, "fetches")) {
		fprintf(out, "%llu\n", READ_ONCE(card->stats.fetches));
		return 0;
	}
	if (!strcmp(name, "metric")) {
		if (parse_number(arg, &val) || val >= CARD_METRIC_LEN / 4)
			return -EINVAL;
		fprintf(out, "%u\n", card->misc[CARD_METRIC / 4 + val]);
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(faults); i++)
		if (!strcmp(faults[i].name, name))
			return parse_number(arg, &val) ?: faults[i].set(card, val);
	return -EINVAL;
}

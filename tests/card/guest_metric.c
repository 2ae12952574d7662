// SPDX-License-Identifier: GPL-2.0-only
/*
 * Metrics reach the firmware of a card through either form of its mailbox; one that does not
 * answer, refuses, or answers with nonsense is no more than an error.
 */
#include "guest_cards.h"

#define GOOD	{ "mailbox 0", 0, 1 }

static const struct row {
	const char *fault;
	int err;
	double max;
} silent[] = {
	GOOD, { "mailbox 1", ETIMEDOUT, 6 }, { "mailbox 2", ETIMEDOUT, 6 }, { "mailbox 3", EIO, 1 },
	{ "mailbox 4", EIO, 1 }, GOOD,
}, garbled[] = {
	GOOD, { "mailbox 5", EIO, 1 }, GOOD,
}, lost[] = {
	/* Made again, and answered. */
	{ "mailbox 6", 0, 1 }, GOOD,
};

static void post(const struct card *card, int fd, const struct row *rows, unsigned int n)
{
	uint8_t data[128] __attribute__((aligned(4)));
	struct neuron_ioctl_post_metric m = { .data = (void *)data, .data_size = 127 };
	unsigned long had = tell(card, "metrics");
	double start, took;
	unsigned int i;
	int err;

	for (i = 0; i < sizeof(data); i++)
		data[i] = i;
	for (i = 0; i < n; i++) {
		tell(card, rows[i].fault);
		start = seconds();
		err = call(fd, NEURON_IOCTL_POST_METRIC, &m);
		took = seconds() - start;
		CHECK(err == rows[i].err && took < rows[i].max, "metric, %s: %d in %.1f s",
		      rows[i].fault, err, took);
	}
	CHECK(tell(card, "metrics") == had + 2, "the card got two");
	CHECK(tell(card, "metric 0") == 0x03020100 && tell(card, "metric 31") == 0x007e7d7c,
	      "their bytes, and zeros behind them");
	m.data_size = 129;
	CHECK(call(fd, NEURON_IOCTL_POST_METRIC, &m) == E2BIG, "one that is too long");
}

int main(void)
{
	struct card *card;
	int fd;

	find_cards();
	card = next_card(NULL);
	CHECK(card && load(""), "load");
	if (failed)
		return 1;
	fd = open_card(card);
	printf("# in host memory\n");
	tell(card, "version 3");
	post(card, fd, silent, sizeof(silent) / sizeof(silent[0]));
	printf("# in misc RAM\n");
	tell(card, "version 7");
	post(card, fd, silent, sizeof(silent) / sizeof(silent[0]));
	post(card, fd, lost, sizeof(lost) / sizeof(lost[0]));
	/* Only there an answer has a checksum. */
	if (!strcmp(card->name, "trn3"))
		post(card, fd, garbled, sizeof(garbled) / sizeof(garbled[0]));
	close(fd);
	CHECK(unload(), "unload");
	return failed != 0;
}

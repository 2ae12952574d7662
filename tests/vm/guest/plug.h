/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device whose resets a test makes slow: the card, if the machine has one, or else a
 * software device of its own.
 */
#ifndef PLUG_TEST_H
#define PLUG_TEST_H

#include "../../card/guest_cards.h"
#include "device.h"
#include "emu.h"

#define FOR_EVER	"3600000"	/* ms */
#define NPCI_DRIVER	"/sys/bus/pci/drivers/neuron_pci/"

static struct card *plugged_card;	/* NULL: a software device */

static inline int plug_limit(const char *ms)
{
	char seconds[16];

	snprintf(seconds, sizeof(seconds), "%d", (atoi(ms) + 999) / 1000);
	return text_write("/sys/module/neuron_pci/parameters/reset_seconds", seconds);
}

/* @ms: limit of a reset; @checks: the software device has none if "0".  Return: its number. */
static inline int plug_device(const char *name, const char *ms, const char *checks)
{
	int number = -1;

	if (!plugged_card && is_card()) {
		find_cards();
		plugged_card = next_card(NULL);
	}
	if (plugged_card) {
		CHECK(!plug_limit(ms), "limit of a reset: %s ms", ms);
		return plugged_card->number;
	}
	if (emu_mkdir(name) || emu_set(name, "hbm_size", "256") || emu_set(name, "checks", checks) ||
	    emu_set(name, "reset_msec", ms) || emu_set(name, "live", "1") ||
	    sscanf(emu_get(name, "dev_name"), "neuron%d", &number) != 1)
		exit(1);
	return number;
}

/* The next @count resets of a core take @ms; a card's do until resets_end(). */
static inline void resets_take(int number, const char *ms, const char *count)
{
	char line[32];

	if (plugged_card) {
		snprintf(line, sizeof(line), "reset %s", strcmp(ms, FOR_EVER) ? ms : "never");
		tell(plugged_card, line);
		return;
	}
	CHECK(!text_write(emu_knob(number, "reset_slow_msec"), ms) &&
	      !text_write(emu_knob(number, "inject_reset_slow"), count),
	      "%s reset(s) take %s ms", count, ms);
}

/* A reset that is under way ends, and the next ones are good. */
static inline void resets_end(void)
{
	if (!plugged_card)
		return;
	tell(plugged_card, "reset 20");
	usleep(200000);
}

static inline void unplug_device(const char *name)
{
	const char *at;

	if (!plugged_card) {
		CHECK(!emu_set(name, "live", "0"), "the device can be removed");
		rmdir(emu_path(name, ""));
		return;
	}
	at = strrchr(plugged_card->pci, '/') + 1;
	CHECK(!text_write(NPCI_DRIVER "unbind", at), "the card can be removed");
	resets_end();
	CHECK(!plug_limit("0") && !text_write(NPCI_DRIVER "bind", at), "and comes again");
}

#endif

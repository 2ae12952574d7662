// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whole instances (uapi/FACTS.md 10): their devices and, as far as published, the places
 * of these on the PCI bus.  The links follow from the kind and number of the devices.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "presets.h"

/**
 * struct emu_slot - place of a device on the PCI bus, domain and function 0
 * @bus: PCI bus
 * @dev: PCI device
 * @rid: routing id
 */
struct emu_slot {
	u8 bus;
	u8 dev;
	u8 rid;
};

/* The user guide of neuron-ls has the buses; routing ids: uapi/FACTS.md 6. */
static const struct emu_slot emu_slots_trn2[16] = {
	{ 0xcc, 0, 0 }, { 0xb5, 0, 8 }, { 0xb6, 0, 9 }, { 0xcb, 0, 1 },
	{ 0x6f, 0, 2 }, { 0x58, 0, 10 }, { 0x59, 0, 11 }, { 0x6e, 0, 3 },
	{ 0x9b, 0, 6 }, { 0x84, 0, 14 }, { 0x85, 0, 15 }, { 0x9a, 0, 7 },
	{ 0xf8, 0, 4 }, { 0xe1, 0, 12 }, { 0xe2, 0, 13 }, { 0xf7, 0, 5 },
};

static const struct emu_preset emu_presets[] = {
	{ "inf1.xlarge", "inf1", 1 },
	{ "inf1.2xlarge", "inf1", 1 },
	{ "inf1.6xlarge", "inf1", 4 },
	{ "inf1.24xlarge", "inf1", 16 },
	{ "inf2.xlarge", "inf2", 1 },
	{ "inf2.8xlarge", "inf2", 1 },
	{ "inf2.24xlarge", "inf2", 6 },
	{ "inf2.48xlarge", "inf2", 12 },
	{ "trn1.2xlarge", "trn1", 1 },
	{ "trn1.32xlarge", "trn1", 16 },
	{ "trn2.48xlarge", "trn2", 16, emu_slots_trn2 },
};

/**
 * emu_find_preset() - find an instance type by its name
 * @name: text, may end with a newline
 *
 * Return: the instance, NULL: unknown.
 */
const struct emu_preset *emu_find_preset(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(emu_presets); i++)
		if (sysfs_streq(name, emu_presets[i].name))
			return &emu_presets[i];
	return NULL;
}

/**
 * emu_preset_location() - where a device of an instance is plugged in
 * @p: instance
 * @i: device, below @p->nr_devices
 *
 * Return: the place; @known is false if it is not published.
 */
struct neuron_location emu_preset_location(const struct emu_preset *p, u32 i)
{
	struct neuron_location at = { .known = p->slots };

	if (p->slots) {
		at.bus = p->slots[i].bus;
		at.slot = p->slots[i].dev;
		at.rid = p->slots[i].rid;
	}
	return at;
}

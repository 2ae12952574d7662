// SPDX-License-Identifier: GPL-2.0-only
/* neuron_pci on cards of all kinds: probe, what sysfs shows, memory, copies, unloading. */
#include "guest_cards.h"

/* How often the module is loaded, unless "card.loads=N" of the kernel's command line says it. */
#define LOADS		3

/* Neither the copy queues are started, nor is anything else but the serial number read. */
static unsigned int accesses_of_probe(const struct card *c)
{
	return c->recorded - 15 * c->cores + 2;
}

static void test_probe(const struct card *c, unsigned long before)
{
	unsigned long n = tell(c, "accesses") - before;
	char path[64];

	CHECK(!node(c, path, sizeof(path)), "%s is %s", c->name, path);
	CHECK(n == accesses_of_probe(c), "%s: %lu accesses until it was ready, expected %u",
	      c->name, n, accesses_of_probe(c));
}

static void test_sysfs(const struct card *c)
{
	char dir[100], bdf[16];

	snprintf(dir, sizeof(dir), "/sys/devices/virtual/neuron_device/neuron%u", c->number);
	CHECK(strtoul(text_of(dir, "core_count"), NULL, 0) == c->cores, "%s: core_count", c->name);
	CHECK(!strcmp(text_of(dir, "info/serial_number"), "1122334455667788"),
	      "%s: serial number %s", c->name, text_of(dir, "info/serial_number"));
	snprintf(bdf, sizeof(bdf), "%s", strrchr(c->pci, '/') + 1);
	CHECK(strlen(bdf) == 12, "%s is at %s", c->name, bdf);
}

static unsigned int loads(void)
{
	const char *line = text_of("/proc", "cmdline"), *p = strstr(line, "card.loads=");

	return p ? strtoul(p + strlen("card.loads="), NULL, 10) : LOADS;
}

int main(void)
{
	unsigned long before[NR_CARDS];
	unsigned int cycle, n = loads();
	struct card *c;

	find_cards();
	for (cycle = 0; cycle < n && !failed; cycle++) {
		for (c = next_card(NULL); c; c = next_card(c))
			before[c - cards] = tell(c, "accesses");
		CHECK(load("hbm_limit=256"), "load, time %u", cycle + 1);
		for (c = next_card(NULL); c; c = next_card(c)) {
			test_probe(c, before[c - cards]);
			test_sysfs(c);
		}
		CHECK(unload(), "unload, time %u", cycle + 1);
	}
	return failed != 0;
}

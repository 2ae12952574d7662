/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of neuron_pci share: the cards of the virtual machine, found by their PCI
 * ids, and the control of each (control.c), which is reached through configuration space.
 */
#ifndef GUEST_CARDS_H
#define GUEST_CARDS_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "../vm/guest/check.h"

#define CONTROL		0xc0
#define CONTROL_LEN	64

/**
 * struct card - a card of the machine
 * @name: kind
 * @id: PCI device id
 * @cores: how many cores it has
 * @hbms: and how many HBMs
 * @recorded: accesses until it was ready that the vendor's driver made
 * @numbers: device number by routing id; the cards of a machine have them in this order
 * @number: device number
 * @pci: directory in sysfs; empty: the machine has no such card
 */
struct card {
	const char *name;
	unsigned int id, cores, hbms, recorded, numbers[4], number;
	char pci[300];
};

static struct card cards[] = {
	{ "trn1", 0x7164, 2, 2, 12951, { 0, 4, 1, 5 }, 0, "" },
	{ "inf2", 0x7264, 2, 2, 12951, { 0, 1, 2, 3 }, 0, "" },
	{ "trn2", 0x7364, 8, 4, 19341, { 0, 3, 4, 7 }, 0, "" },
	{ "trn3", 0x7564, 8, 4, 19605, { 0, 3, 4, 7 }, 0, "" },
};

#define NR_CARDS	(sizeof(cards) / sizeof(cards[0]))

/* The first line of a file. */
static inline const char *text_of(const char *dir, const char *name)
{
	static char text[2048];
	char file[600];
	ssize_t n;
	int fd;

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	if (fd >= 0)
		close(fd);
	return text;
}

static inline bool find_card(struct card *c)
{
	DIR *d = opendir("/sys/bus/pci/devices");
	struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d))) {
		snprintf(c->pci, sizeof(c->pci), "/sys/bus/pci/devices/%.200s", e->d_name);
		found = strtoul(text_of(c->pci, "vendor"), NULL, 0) == 0x1d0f &&
			strtoul(text_of(c->pci, "device"), NULL, 0) == c->id;
	}
	closedir(d);
	if (!found)
		c->pci[0] = 0;
	return found;
}

/* All cards of the machine, which has at least one. */
static inline void find_cards(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < NR_CARDS; i++) {
		if (!find_card(&cards[i]))
			continue;
		cards[i].number = cards[i].numbers[n++];
		printf("# %s at %s\n", cards[i].name, cards[i].pci);
	}
	CHECK(n, "there are %u cards", n);
}

static inline struct card *next_card(struct card *c)
{
	for (c = c ? c + 1 : cards; c < cards + NR_CARDS; c++)
		if (c->pci[0])
			return c;
	return NULL;
}

/* Have a line done by a card's control.  Return: the number of its answer, 0 without one. */
static inline unsigned long tell(const struct card *c, const char *line)
{
	char file[400], text[CONTROL_LEN + 1] = "";
	int fd;

	snprintf(file, sizeof(file), "%s/config", c->pci);
	fd = open(file, O_RDWR | O_CLOEXEC);
	snprintf(text, sizeof(text), "%s\n", line);
	if (fd < 0 || pwrite(fd, text, strlen(text), CONTROL) != (ssize_t)strlen(text) ||
	    pread(fd, text, CONTROL_LEN, CONTROL) != CONTROL_LEN || !strstr(text, "ok"))
		CHECK(0, "%s: control refuses \"%s\": %s", c->name, line, text);
	close(fd);
	return strtoul(text, NULL, 10);
}

/* Does the kernel's log have a line of the driver about a card? */
static inline bool logged(const struct card *c, const char *text)
{
	char command[500];

	snprintf(command, sizeof(command), "dmesg | grep -q 'neuron_pci %s: %s'",
		 strrchr(c->pci, '/') + 1, text);
	return !system(command);
}

static inline int node(const struct card *c, char *path, size_t len)
{
	struct stat st;

	snprintf(path, len, "/dev/neuron%u", c->number);
	return stat(path, &st);
}

static inline int open_card(const struct card *c)
{
	char path[32];

	node(c, path, sizeof(path));
	return open(path, O_RDWR | O_CLOEXEC);
}

static inline double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static inline bool load(const char *options)
{
	char command[200];

	snprintf(command, sizeof(command), "modprobe neuron_pci %s", options);
	return !system(command);
}

/* Programs get cores: root trusts them. */
static inline bool load_trusted(const char *options)
{
	return !system("modprobe neuron isolation=trusted") && load(options);
}

static inline bool unload(void)
{
	return !system("modprobe -r neuron_pci");
}

#endif

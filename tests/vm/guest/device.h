/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What neuron0 is: a test asks where a card does something else than the software device
 * (../../../kmod/pci/README.md lists it).
 */
#ifndef DEVICE_TEST_H
#define DEVICE_TEST_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Its memory is had in pages of the kernel: up to 64 KiB on arm64. */
#define PAGE	((uint64_t)sysconf(_SC_PAGESIZE))

#define DEVICE0	"/sys/class/neuron_device/neuron0/"

/* A card on the PCI bus. */
static inline int is_card(void)
{
	return !access(DEVICE0 "device/vendor", F_OK);
}

/* The CPU sees device memory, but there are no pages that another driver could use. */
static inline int has_no_pages(void)
{
	return !access(DEVICE0 "device", F_OK);
}

/* A card, or a device like one: it never tells, so the driver looks; register writes are posted. */
static inline int is_silent(void)
{
	return has_no_pages();
}

/* Until the cores of processes that are gone are reset, which is at once but on a card. */
static inline void device_settles(void)
{
	char state = 0;
	int i, fd;

	for (i = 0; i < 1000 && is_card() && state != '1'; i++, usleep(10000)) {
		fd = open(DEVICE0 "reset", O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, &state, 1) != 1)
			state = 0;
		close(fd);
	}
}

/* Who checks what descriptors name: device, checked (the driver) or trusted (nobody). */
static inline int is_isolation(const char *want)
{
	char mode[16] = "";
	int fd = open(DEVICE0 "isolation", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, mode, sizeof(mode) - 1) <= 0)
		mode[0] = 0;
	close(fd);
	mode[strcspn(mode, "\n")] = 0;
	return !strcmp(mode, want);
}

/* The driver checks descriptors when they are written; the device fetches what it finds. */
static inline int is_checked(void)
{
	return is_isolation("checked");
}

/* Unload the module of the device, or load it again: there is another device then. 0: done. */
static inline int device_unload(int card)
{
	return system(card ? "rmmod neuron_pci 2>/dev/null" : "rmmod neuron_emu 2>/dev/null");
}

static inline int device_load(int card)
{
	return system(card ? "modprobe neuron_pci model_isa=1" : "modprobe neuron_emu");
}

#endif

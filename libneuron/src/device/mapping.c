// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which memory a pointer of the process is into (mapping.h). */
#include <stdlib.h>

#include "../../common/lock.h"
#include "../../common/wait.h"
#include "device.h"
#include "mapping.h"

#define KEPT_MAPPINGS	64u	/* that are unmapped */

struct mapping *mapping_add(struct neuron_device *device, const struct mapping *mapping)
{
	struct mapping *m = malloc(sizeof(*m));

	if (!m)
		return NULL;
	*m = *mapping;
	GUARD(&device->mappings_lock);
	m->prev = NULL;
	m->next = device->mappings;
	if (m->next)
		m->next->prev = m;
	device->mappings = m;
	return m;
}

static void forget_oldest(struct neuron_device *device)
{
	struct mapping *m = device->unmapped;

	device->unmapped = m->next;
	device->nr_unmapped--;
	free(m);
}

void mapping_retire(struct neuron_device *device, struct mapping *mapping)
{
	struct mapping **end = &device->unmapped;

	GUARD(&device->mappings_lock);
	*(mapping->prev ? &mapping->prev->next : &device->mappings) = mapping->next;
	if (mapping->next)
		mapping->next->prev = mapping->prev;
	mapping->next = NULL;
	mapping->freed = now_ns();
	while (*end)
		end = &(*end)->next;
	*end = mapping;
	device->nr_unmapped++;
	while (device->nr_unmapped > (device->remember ? KEPT_MAPPINGS : 0))
		forget_oldest(device);
}

bool mapping_find(struct neuron_device *device, const void *pointer, bool freed,
		  struct mapping *out)
{
	bool found = false;

	GUARD(&device->mappings_lock);
	/* The last one in the list of those that are unmapped is the latest. */
	for (const struct mapping *m = freed ? device->unmapped : device->mappings; m; m = m->next)
		if ((uintptr_t)pointer - m->va < m->mapped) {
			*out = *m;
			found = true;
		}
	return found;
}

void mappings_free(struct neuron_device *device)
{
	struct mapping *m;

	/* A child that inherited the device unmaps nothing. */
	while ((m = device->mappings)) {
		device->mappings = m->next;
		free(m);
	}
	while (device->unmapped)
		forget_oldest(device);
}

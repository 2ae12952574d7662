// SPDX-License-Identifier: LGPL-2.1-or-later
/* Statistics of the process in the datastores of its devices (datastore.h). */
#include <string.h>

#include "datastore.h"
#include "sys.h"

/* Layout version of the header: the first one. */
#define DS_VERSION 0

void stats_open(struct neuron_device *device)
{
	struct neuron_ioctl_neuron_ds_info ds = { 0 };
	struct nds_header *fresh;
	void *none = NULL;

	if (atomic_load(&device->datastore) || device_ioctl(device, NEURON_IOCTL_ACQUIRE_NEURON_DS, &ds))
		return;
	fresh = neuron_sys_mmap(device->fd, ds.mmap_offset, ds.size);
	if (!fresh)
		return;
	memcpy(fresh->signature, "nds0", sizeof(fresh->signature));
	fresh->version = DS_VERSION;
	device->datastore_size = ds.size;
	/* Another thread may have been faster. */
	if (!atomic_compare_exchange_strong(&device->datastore, &none, (void *)fresh))
		neuron_sys_munmap(fresh, ds.size);
}

void stats_close(struct neuron_device *device)
{
	void *ds = atomic_load(&device->datastore);

	/* A child did not inherit the mapping. */
	if (ds && !device_inherited(device))
		neuron_sys_munmap(ds, device->datastore_size);
}

/* NULL if nothing is counted. */
static uint64_t *counter_of(const struct neuron_device *device, uint32_t nc, unsigned int counter)
{
	void *ds = atomic_load(&device->datastore);

	if (!ds || device_inherited(device))
		return NULL;
	if (nc >= NDS_MAX_NEURONCORE_COUNT)
		return (uint64_t *)NDS_EXT_NEURONCORE_NC_DATA(ds, nc - NDS_MAX_NEURONCORE_COUNT) +
		       counter;
	if (counter < NDS_NC_COUNTER_COUNT)
		return (uint64_t *)NDS_NEURONCORE_COUNTERS(ds, nc) + counter;
	return (uint64_t *)NDS_EXT_NEURONCORE_COUNTERS(ds, nc) + counter - NDS_NC_COUNTER_COUNT;
}

/* Other threads, and other handles of the device, count in the same place. */
static void add(uint64_t *at, uint64_t n)
{
	if (at)
		__atomic_fetch_add(at, n, __ATOMIC_RELAXED);
}

void stats_add(const struct neuron_device *device, uint32_t nc, unsigned int counter, uint64_t n)
{
	add(counter_of(device, nc, counter), n);
}

void stats_add_host(const struct neuron_device *device, unsigned int counter, uint64_t n)
{
	void *ds = atomic_load(&device->datastore);

	if (ds && !device_inherited(device))
		add((uint64_t *)NDS_ND_COUNTERS(ds) + counter, n);
}

void stats_set(const struct neuron_device *device, uint32_t nc, unsigned int counter, uint64_t n)
{
	uint64_t *at = counter_of(device, nc, counter);

	if (at)
		__atomic_store_n(at, n, __ATOMIC_RELAXED);
}

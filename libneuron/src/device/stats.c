// SPDX-License-Identifier: LGPL-2.1-or-later
/* Statistics of the process in the datastores of its devices (stats.h). */
#include <errno.h>
#include <time.h>

#include "stats.h"
#include "sys.h"

/* Layout version of the header: the first one. */
#define DS_VERSION 0

void stats_open(struct neuron_device *device)
{
	struct neuron_ioctl_neuron_ds_info ds = { 0 };
	struct nds_header *fresh;
	void *none = NULL;

	if (atomic_load(&device->datastore) || do_ioctl(device, NEURON_IOCTL_ACQUIRE_NEURON_DS, &ds))
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

void stats_set(const struct neuron_device *device, uint32_t nc, unsigned int counter, uint64_t n)
{
	uint64_t *at = counter_of(device, nc, counter);

	if (at)
		__atomic_store_n(at, n, __ATOMIC_RELAXED);
}

static unsigned int host_counter(enum neuron_mem_category category)
{
	switch (category) {
	case NEURON_MEM_HOST_CODE: return NDS_ND_COUNTER_MEM_USAGE_CODE_HOST;
	case NEURON_MEM_HOST_TENSORS: return NDS_ND_COUNTER_MEM_USAGE_TENSORS_HOST;
	case NEURON_MEM_HOST_CONSTANTS: return NDS_ND_COUNTER_MEM_USAGE_CONSTANTS_HOST;
	default: return NDS_ND_COUNTER_MEM_USAGE_MISC_HOST;
	}
}

static unsigned int device_counter(enum neuron_mem_category category)
{
	switch (category) {
	case NEURON_MEM_CODE: return NDS_NC_COUNTER_MEM_USAGE_CODE_DEVICE;
	case NEURON_MEM_TENSORS: return NDS_NC_COUNTER_MEM_USAGE_TENSORS_DEVICE;
	case NEURON_MEM_CONSTANTS: return NDS_NC_COUNTER_MEM_USAGE_CONSTANTS_DEVICE;
	case NEURON_MEM_SCRATCHPAD:
	case NEURON_MEM_SCRATCHPAD_PRIVATE:
	case NEURON_MEM_SCRATCHPAD_CONTIGUOUS: return NDS_NC_COUNTER_MEM_USAGE_SCRATCHPAD_DEVICE;
	default: return NDS_NC_COUNTER_MEM_USAGE_MISC_DEVICE;
	}
}

void stats_memory(struct neuron_mem *mem, uint64_t bytes)
{
	const struct neuron_device *device = mem->device;
	void *ds = atomic_load(&device->datastore);
	uint64_t before = mem->counted;

	if (!ds || device_inherited(device))
		return;
	mem->counted = round_up(bytes, NEURON_PAGE);
	/* Modulo 2^64: also less. */
	if (category_host(mem->category))
		add((uint64_t *)NDS_ND_COUNTERS(ds) + host_counter(mem->category),
		    mem->counted - before);
	else
		stats_add(device, mem->nc, device_counter(mem->category), mem->counted - before);
}

void stats_load(const struct neuron_device *device, uint32_t nc, int ret)
{
	unsigned int counter;

	switch (ret) {
	case 0:
		counter = NDS_NC_COUNTER_MODEL_LOAD_COUNT;
		break;
	case -EINVAL:
		counter = NDS_NC_COUNTER_ERR_INVALID;
		break;
	case -ENOMEM:
	case -E2BIG:
		counter = NDS_NC_COUNTER_ERR_RESOURCE;
		break;
	case -EOPNOTSUPP:
		counter = NDS_NC_COUNTER_ERR_UNSUPPORTED_NEFF_VERSION;
		break;
	case -EIO:
	case -ENODEV:
		counter = NDS_NC_COUNTER_ERR_HW;
		break;
	default:
		counter = NDS_NC_COUNTER_GENERIC_FAIL;
		break;
	}
	stats_add(device, nc, counter, 1);
}

uint64_t stats_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>
#include <syslog.h>

#include "../common/access.h"
#include "../common/util.h"
#include "config.h"
#include "cores.h"

#define MAX_CORES (NEURON_MAX_DEVICES * NEURON_MAX_CORES)

static struct neuron_device_entry *list;
static size_t nr_list;
static struct neuron_device *devices[NEURON_MAX_DEVICES];	/* by place in the list */
static struct neuron_core *cores[MAX_CORES];
static unsigned int nr_cores;
static struct neuron_claim *claim;
static struct neuron_pool *pool;

static bool is_wanted(struct neuron_device *device)
{
	char bdf[NEURON_BDF_SIZE] = "";

	if (!config.nr_devices)
		return true;
	if (neuron_device_bdf(device, bdf))
		return false;
	for (unsigned int i = 0; i < config.nr_devices; i++)
		if (!strcmp(bdf, config.devices[i]))
			return true;
	return false;
}

/* Opens all devices, and closes those that are not wanted. 0 or -errno. */
static int open_devices(void)
{
	unsigned int found = 0;

	for (size_t i = 0; i < nr_list; i++) {
		int ret = neuron_device_open(list[i].index, &devices[i]);

		if (ret) {
			syslog(LOG_ERR, "neuron%u: %s", list[i].index, strerror(-ret));
			return ret;
		}
		list[i].nr_cores = neuron_device_geometry(devices[i])->nr_cores;
		if (is_wanted(devices[i])) {
			found++;
		} else {
			neuron_device_close(devices[i]);
			devices[i] = NULL;
		}
	}
	if (found < config.nr_devices)
		syslog(LOG_ERR, "%u of the devices that were named are not there",
		       config.nr_devices - found);
	else if (!found)
		syslog(LOG_ERR, NO_DEVICE);
	return found && found >= config.nr_devices ? 0 : -ENODEV;
}

/* The range of cores of this daemon, counted through all devices. 0 or -errno. */
static int find_range(uint32_t *first, uint32_t *last, uint32_t *total)
{
	uint32_t served = 0;
	bool started = false;

	*total = 0;
	for (size_t i = 0; i < nr_list; i++) {
		if (devices[i]) {
			if (started && *last + 1 != *total) {
				syslog(LOG_ERR, "the devices are not next to each other");
				return -EINVAL;
			}
			if (!started)
				*first = *total;
			started = true;
			*last = *total + list[i].nr_cores - 1;
			served += list[i].nr_cores;
		}
		*total += list[i].nr_cores;
	}
	if (!config.some_cores)
		return 0;
	if (config.last_core >= served) {
		syslog(LOG_ERR, "there is no core %u", config.last_core);
		return -EINVAL;
	}
	*last = *first + config.last_core;
	*first += config.first_core;
	if (*first % config.lnc || (*last + 1) % config.lnc) {
		syslog(LOG_ERR, "with lnc = 2, cores begin with an even number and end with an odd one");
		return -EINVAL;
	}
	return 0;
}

static int claim_range(uint32_t first, uint32_t last, uint32_t total)
{
	const struct neuron_claim_opts opts = {
		.size = sizeof(opts),
		.start = first,
		.count = last - first + 1,
		.total = total,
		.exact = true,
	};
	int ret = neuron_claim_cores(list, nr_list, &opts, &claim);

	if (ret)
		syslog(LOG_ERR, "cores %u to %u: %s", first, last,
		       ret == -EBUSY ? "another process has claimed them" : strerror(-ret));
	return ret;
}

static int open_cores(uint32_t first, uint32_t last)
{
	const struct neuron_core_opts opts = { .size = sizeof(opts), .lnc = config.lnc };
	uint32_t start = 0;
	int ret;

	for (size_t i = 0; i < nr_list; start += list[i++].nr_cores) {
		for (uint32_t nc = 0; nc < list[i].nr_cores; nc += config.lnc) {
			if (start + nc < first || start + nc + config.lnc - 1 > last)
				continue;
			ret = neuron_core_open(devices[i], nc, &opts, &cores[nr_cores]);
			if (ret) {
				syslog(LOG_ERR, "neuron%u, core %u: %s", list[i].index, nc,
				       strerror(-ret));
				return ret;
			}
			nr_cores++;
		}
	}
	ret = neuron_pool_open(cores, nr_cores, &pool);

	/* To the driver all clients are one process, so it clears nothing between them. */
	if (!ret)
		neuron_pool_isolate(pool);
	return ret;
}

int cores_open(void)
{
	uint32_t first = 0, last = 0, total = 0;
	int ret = neuron_device_list(&list, &nr_list);

	if (ret || nr_list > NEURON_MAX_DEVICES) {
		syslog(LOG_ERR, "devices: %s", strerror(ret ? -ret : E2BIG));
		return ret ?: -E2BIG;
	}
	ret = open_devices() ?: find_range(&first, &last, &total) ?:
	      claim_range(first, last, total) ?: open_cores(first, last);
	if (ret)
		return ret;
	syslog(LOG_NOTICE, "serving %u cores, from core %u on", nr_cores, first);
	return 0;
}

void cores_close(void)
{
	if (pool)
		neuron_pool_close(pool);
	for (unsigned int i = 0; i < nr_cores; i++)
		neuron_core_close(cores[i]);
	for (size_t i = 0; i < nr_list; i++)
		if (devices[i])
			neuron_device_close(devices[i]);
	neuron_claim_release(claim);
	neuron_device_list_free(list);
}

struct neuron_pool *cores_pool(void)
{
	return pool;
}

unsigned int cores_count(void)
{
	return nr_cores;
}

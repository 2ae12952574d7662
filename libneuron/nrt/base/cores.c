// SPDX-License-Identifier: LGPL-2.1-or-later
/* Cores of this host, and those that the environment asks for. */
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "../../common/lock.h"
#include "cores.h"
#include "process.h"

bool nrt_parse_cores(const char *text, uint32_t *start, uint32_t *count)
{
	unsigned long first, last, next = 0;
	bool any = false;

	while (text) {
		if (!nrt_env_range(&text, UINT16_MAX, &first, &last) || (any && first != next))
			return false;
		if (!any)
			*start = (uint32_t)first;
		any = true;
		next = last + 1;
	}
	*count = (uint32_t)next - *start;
	return true;
}

bool nrt_has_pairs(const struct neuron_device_entry *entry)
{
	return !strncasecmp(entry->instance, "Trn2", 4) || !strncasecmp(entry->instance, "Trn3", 4);
}

/* Cores of a device that sysfs does not tell; 0 if it cannot be used. */
static int ask_cores(struct neuron_device_entry *entry)
{
	struct neuron_device *device;
	int ret;

	GUARD(&nrt_process.lock);
	ret = neuron_device_open(entry->index, &device);
	if (!ret) {
		entry->nr_cores = neuron_device_geometry(device)->nr_cores;
		neuron_device_close(device);
	}
	return ret == -ENOMEM ? ret : 0;
}

int nrt_count_cores(uint32_t *total, struct neuron_device_entry **list, size_t *nr)
{
	int ret = neuron_device_list(list, nr);

	*total = 0;
	for (size_t i = 0; !ret && i < *nr; i++) {
		if (!(*list)[i].nr_cores)
			ret = ask_cores(&(*list)[i]);
		*total += (*list)[i].nr_cores;
	}
	return ret;
}

uint32_t nrt_usable_cores(const struct neuron_device_entry *list, size_t nr, uint32_t lnc,
			  uint32_t *start)
{
	uint32_t first = 0, count;

	GUARD(&nrt_process.lock);
	count = neuron_usable_cores(list, nr, &first);
	*start = first / lnc;
	return count / lnc;
}

/* Logical cores of the host, and those of them that this process may open. */
static NRT_STATUS count_logical(uint32_t *total, uint32_t *usable)
{
	struct neuron_placement placement = { .size = sizeof(placement) };
	struct neuron_device_entry *list = NULL;
	NRT_STATUS status = NRT_FAILURE;
	uint32_t start;
	size_t nr;

	if (!nrt_count_cores(total, &list, &nr)) {
		/* What else is wrong in there does not matter here. */
		neuron_placement_read(nr && nrt_has_pairs(&list[0]), &placement);
		status = placement.lnc ? NRT_SUCCESS : NRT_INVALID;
	}
	if (status == NRT_SUCCESS)
		*total /= placement.lnc;
	if (status == NRT_SUCCESS && usable)
		*usable = nrt_usable_cores(list, nr, placement.lnc, &start) ?: *total;
	neuron_device_list_free(list);
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_get_total_vnc_count(uint32_t *vnc_count)
{
	uint32_t total;
	NRT_STATUS status = vnc_count ? count_logical(&total, NULL) : NRT_INVALID;

	if (status == NRT_SUCCESS)
		*vnc_count = total;
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_get_total_nc_count(uint32_t *nc_count)
{
	return nrt_get_total_vnc_count(nc_count);
}

/* After nrt_init() what was claimed, before it what would be. */
NEURON_EXPORT NRT_STATUS nrt_get_visible_vnc_count(uint32_t *vnc_count)
{
	uint32_t total, usable, start, count;
	NRT_STATUS status;
	const char *cores;
	unsigned long n = 0;

	if (!vnc_count)
		return NRT_INVALID;
	if (nrt_enter() == NRT_SUCCESS) {
		*vnc_count = nrt_process.nr_vncs;
		nrt_leave();
		return NRT_SUCCESS;
	}
	cores = getenv("NEURON_RT_VISIBLE_CORES");
	if (cores && !*cores)
		cores = NULL;
	status = count_logical(&total, cores ? NULL : &usable);
	if (status != NRT_SUCCESS)
		return status;
	if (cores) {
		if (!nrt_parse_cores(cores, &start, &count) || start >= total || count > total - start)
			return NRT_INVALID;
		*vnc_count = count;
		return NRT_SUCCESS;
	}
	if (!nrt_env_value("NEURON_RT_NUM_CORES", 0, total, "a number of cores of this host", &n))
		return NRT_INVALID;
	*vnc_count = n ? (uint32_t)n : usable;
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_get_visible_nc_count(uint32_t *nc_count)
{
	return nrt_get_visible_vnc_count(nc_count);
}

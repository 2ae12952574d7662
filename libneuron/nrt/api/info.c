// SPDX-License-Identifier: LGPL-2.1-or-later
/* Version, instance and memory figures. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <nrt/nrt_experimental.h>

#include "../base/process.h"

#ifndef NEURON_VERSION
#error NEURON_VERSION comes from the Makefile
#endif

NEURON_EXPORT NRT_STATUS nrt_get_version(nrt_version_t *ver, size_t size)
{
	nrt_version_t v = { .rt_major = NRT_MAJOR_VERSION, .rt_minor = NRT_MINOR_VERSION };

	if (!ver || !size)
		return NRT_INVALID;
	snprintf(v.rt_detail, sizeof(v.rt_detail), "open Neuron runtime %s", NEURON_VERSION);
	memcpy(ver, &v, size < sizeof(v) ? size : sizeof(v));
	return NRT_SUCCESS;
}

/* Families, and the sizes that they come in by number of devices. */
static const struct {
	const char *name;
	uint32_t family;
	struct {
		size_t devices;
		uint32_t size;
	} sizes[3];
} families[] = {
	{ "Inf1", NRT_INSTANCE_INF1, { { 1, NRT_INSTANCE_SIZE_2XL }, { 4, NRT_INSTANCE_SIZE_6XL },
				       { 16, NRT_INSTANCE_SIZE_24XL } } },
	{ "Inf2", NRT_INSTANCE_INF2, { { 1, NRT_INSTANCE_SIZE_8XL }, { 6, NRT_INSTANCE_SIZE_24XL },
				       { 12, NRT_INSTANCE_SIZE_48XL } } },
	{ "Inf2e", NRT_INSTANCE_INF2E, { { 0 } } },
	{ "Trn1", NRT_INSTANCE_TRN1, { { 1, NRT_INSTANCE_SIZE_2XL },
				       { 16, NRT_INSTANCE_SIZE_32XL } } },
	{ "Trn1n", NRT_INSTANCE_TRN1N, { { 16, NRT_INSTANCE_SIZE_32XL } } },
	{ "Trn2", NRT_INSTANCE_TRN2, { { 1, NRT_INSTANCE_SIZE_3XL },
				       { 16, NRT_INSTANCE_SIZE_48XL } } },
	{ "Trn2n", NRT_INSTANCE_TRN2N, { { 0 } } },
	{ "Trn2p", NRT_INSTANCE_TRN2P, { { 0 } } },
	{ "Trn2u", NRT_INSTANCE_TRN2U, { { 16, NRT_INSTANCE_SIZE_48XL } } },
	{ "Trn3", NRT_INSTANCE_TRN3, { { 16, NRT_INSTANCE_SIZE_48XL } } },
};

static void classify(const char *instance, size_t devices, nrt_instance_info_t *info)
{
	info->family = NRT_INSTANCE_UNKNOWN;
	info->size = NRT_INSTANCE_SIZE_UNKNOWN;
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		if (strcasecmp(instance, families[i].name))
			continue;
		info->family = families[i].family;
		for (size_t k = 0; k < ARRAY_SIZE(families[i].sizes); k++)
			if (families[i].sizes[k].devices == devices)
				info->size = families[i].sizes[k].size;
	}
}

NEURON_EXPORT NRT_STATUS nrt_get_instance_info(nrt_instance_info_t *info, size_t instance_info_len)
{
	nrt_instance_info_t ours = { 0 };
	struct neuron_device_entry *list = NULL;
	size_t nr;

	if (!info || !instance_info_len)
		return NRT_INVALID;
	if (neuron_device_list(&list, &nr) || !nr)
		return NRT_FAILURE;
	classify(list[0].instance, nr, &ours);
	snprintf(ours.arch_name, sizeof(ours.arch_name), "%s", list[0].instance);
	for (char *c = ours.arch_name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	snprintf(ours.device_revision, sizeof(ours.device_revision), "%.7s", list[0].arch);
	neuron_device_list_free(list);
	memcpy(info, &ours, instance_info_len < sizeof(ours) ? instance_info_len : sizeof(ours));
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_get_vnc_memory_stats(uint32_t vnc, nrt_vnc_memory_stats_t *stats,
						  size_t size_in, size_t *size_out)
{
	struct neuron_core_stats core = { .size = sizeof(core) };
	struct neuron_hbm_stats hbm = { .size = sizeof(hbm) };
	nrt_vnc_memory_stats_t ours = { 0 };
	struct nrt_vnc *v;
	size_t size = size_in < sizeof(ours) ? size_in : sizeof(ours);
	int ret = 0;

	NRT_ENTER();
	if (nrt_vnc_get(vnc, &v) != NRT_SUCCESS || !stats)
		return NRT_INVALID;
	for (uint32_t nc = v->nc; nc < v->nc + nrt_process.lnc && !ret; nc++) {
		ret = neuron_core_get_stats(v->device, nc, &core);
		for (size_t i = 0; i < NEURON_MAX_CATEGORIES && !ret; i++)
			ours.bytes_used += core.device_bytes[i];
	}
	ret = ret ?: neuron_hbm_get_stats(v->device,
					  neuron_device_geometry(v->device)->core_hbm[v->nc], &hbm);
	if (ret)
		return nrt_status_of(ret);
	ours.bytes_limit = hbm.total - hbm.reserved;
	memcpy(stats, &ours, size);
	if (size_out)
		*size_out = size;
	return NRT_SUCCESS;
}

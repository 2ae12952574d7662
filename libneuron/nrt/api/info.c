// SPDX-License-Identifier: LGPL-2.1-or-later
/* Version, instance, memory figures, names; and the layouts that programs rely on. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <nrt/nrt_experimental.h>

#include "../base/layout.h"
#include "../base/process.h"

#ifndef NEURON_VERSION
#error NEURON_VERSION comes from the Makefile
#endif

/* uapi/FACTS.md 11, measured on x86-64 */
SIZE(nrt_instance_info_t, 32);
LAYOUT(nrt_instance_info_t, arch_name, 8);
LAYOUT(nrt_instance_info_t, device_revision, 24);
SIZE(nrt_version_t, 224);
LAYOUT(nrt_version_t, rt_detail, 32);
LAYOUT(nrt_version_t, git_hash, 160);
SIZE(nrt_tensor_info_t, 296);
LAYOUT(nrt_tensor_info_t, usage, 256);
LAYOUT(nrt_tensor_info_t, size, 264);
LAYOUT(nrt_tensor_info_t, dtype, 272);
LAYOUT(nrt_tensor_info_t, shape, 280);
LAYOUT(nrt_tensor_info_t, ndim, 288);
LAYOUT(nrt_tensor_info_array_t, tensor_array, 8);
SIZE(nrt_tensor_batch_op_t, 24);
SIZE(nrt_tensor_batch_t, 24);
LAYOUT(nrt_tensor_batch_t, num_ops, 16);
SIZE(nrt_tensor_device_allocation_info_t, 24);
LAYOUT(nrt_tensor_device_allocation_info_t, hbm_index, 16);
SIZE(nrt_vnc_memory_stats_t, 16);
SIZE(nrt_model_info_t, 4);
SIZE(NRT_STATUS, 4);

NEURON_EXPORT NRT_STATUS nrt_get_version(nrt_version_t *ver, size_t size)
{
	nrt_version_t v = { .rt_major = NRT_MAJOR_VERSION, .rt_minor = NRT_MINOR_VERSION };

	if (!ver || !size)
		return NRT_INVALID;
	snprintf(v.rt_detail, sizeof(v.rt_detail), "open Neuron runtime %s", NEURON_VERSION);
	memcpy(ver, &v, size < sizeof(v) ? size : sizeof(v));
	return NRT_SUCCESS;
}

static uint32_t family_of(const char *instance)
{
	static const struct {
		const char *name;
		uint32_t family;
	} families[] = {
		{ "Inf1", NRT_INSTANCE_INF1 },	 { "Trn1", NRT_INSTANCE_TRN1 },
		{ "Trn1n", NRT_INSTANCE_TRN1N }, { "Inf2", NRT_INSTANCE_INF2 },
		{ "Inf2e", NRT_INSTANCE_INF2E }, { "Trn2", NRT_INSTANCE_TRN2 },
		{ "Trn2n", NRT_INSTANCE_TRN2N }, { "Trn2p", NRT_INSTANCE_TRN2P },
		{ "Trn2u", NRT_INSTANCE_TRN2U }, { "Trn3", NRT_INSTANCE_TRN3 },
	};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (!strcasecmp(instance, families[i].name))
			return families[i].family;
	return NRT_INSTANCE_UNKNOWN;
}

/* Sizes that a family comes in, by number of devices. */
static uint32_t size_of(uint32_t family, size_t devices)
{
	static const struct {
		uint32_t family;
		size_t devices;
		uint32_t size;
	} sizes[] = {
		{ NRT_INSTANCE_INF1, 1, NRT_INSTANCE_SIZE_2XL },
		{ NRT_INSTANCE_INF1, 4, NRT_INSTANCE_SIZE_6XL },
		{ NRT_INSTANCE_INF1, 16, NRT_INSTANCE_SIZE_24XL },
		{ NRT_INSTANCE_TRN1, 1, NRT_INSTANCE_SIZE_2XL },
		{ NRT_INSTANCE_TRN1, 16, NRT_INSTANCE_SIZE_32XL },
		{ NRT_INSTANCE_TRN1N, 16, NRT_INSTANCE_SIZE_32XL },
		{ NRT_INSTANCE_INF2, 1, NRT_INSTANCE_SIZE_8XL },
		{ NRT_INSTANCE_INF2, 6, NRT_INSTANCE_SIZE_24XL },
		{ NRT_INSTANCE_INF2, 12, NRT_INSTANCE_SIZE_48XL },
		{ NRT_INSTANCE_TRN2, 1, NRT_INSTANCE_SIZE_3XL },
		{ NRT_INSTANCE_TRN2, 16, NRT_INSTANCE_SIZE_48XL },
		{ NRT_INSTANCE_TRN2U, 16, NRT_INSTANCE_SIZE_48XL },
		{ NRT_INSTANCE_TRN3, 16, NRT_INSTANCE_SIZE_48XL },
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i].family == family && sizes[i].devices == devices)
			return sizes[i].size;
	return NRT_INSTANCE_SIZE_UNKNOWN;
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
	ours.family = family_of(list[0].instance);
	ours.size = size_of(ours.family, nr);
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

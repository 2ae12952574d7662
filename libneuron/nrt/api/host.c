// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where the devices of a host are, what is near them, and their memory by its address. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nrt/nrt_experimental.h>

#include "../../common/lock.h"
#include "../base/log.h"
#include "../object/storage.h"

#ifndef NRT_PCI_DEVICES
#define NRT_PCI_DEVICES "/sys/bus/pci/devices"
#endif

NEURON_EXPORT NRT_STATUS nrt_host_device_id_get(int neuron_dev, uint32_t *host_device_id)
{
	struct neuron_device *device;
	int ret;

	NRT_ENTER();
	GUARD(&nrt_process.lock);
	ret = neuron_dev < 0 || !host_device_id ? -EINVAL :
	      neuron_device_open((unsigned int)neuron_dev, &device);
	if (!ret) {
		*host_device_id = neuron_device_index(device);
		neuron_device_close(device);
	}
	if (!ret)
		return NRT_SUCCESS;
	LOG(NRT, ERROR, "nd%d: %s", neuron_dev, strerror(-ret));
	return NRT_INVALID;
}

NEURON_EXPORT NRT_STATUS nrt_host_device_id_rid_map_get(uint32_t *count,
							uint32_t *host_did_to_rid_map)
{
	uint32_t ids[NEURON_MAX_DEVICES], nr;
	NRT_STATUS status = NRT_SUCCESS;

	NRT_ENTER();
	if (!count || (*count && !host_did_to_rid_map))
		return NRT_INVALID;
	if (neuron_device_routing_ids(nrt_process.devices[0], ids, &nr))
		return NRT_FAILURE;
	if (*count < nr)
		status = NRT_RESOURCE;
	else
		memcpy(host_did_to_rid_map, ids, nr * sizeof(*ids));
	*count = nr;
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_get_hbm_mmap_va(int device_id, int hbm_idx, void **addr, size_t *size)
{
	const struct neuron_geometry *g = NULL;

	NRT_ENTER();
	for (size_t i = 0; i < nrt_process.nr_devices; i++)
		if (device_id >= 0 &&
		    neuron_device_index(nrt_process.devices[i]) == (unsigned int)device_id)
			g = neuron_device_geometry(nrt_process.devices[i]);
	if (!g || hbm_idx < 0 || !addr || !size)
		return NRT_INVALID;
	if ((uint32_t)hbm_idx >= g->nr_hbms)
		return NRT_INVALID_HANDLE;
	LOG(HAL, ERROR, "nd%d hbm%d: the driver maps tensors, not whole memories", device_id, hbm_idx);
	return NRT_INVALID;
}

/* ---- network adapters -------------------------------------------------------------- */

/* A hexadecimal number in a file of a PCI device; -1: none. */
static long read_id(const char *device, const char *name)
{
	char path[PATH_MAX + 32], text[32];
	unsigned long id;

	snprintf(path, sizeof(path), "%s/%s", device, name);
	read_short(path, text, sizeof(text));
	return sscanf(text, "%lx", &id) == 1 ? (long)id : -1;
}

/* The Elastic Fabric Adapter's numbers, as in the kernel's efa driver. */
static bool is_efa(const char *device)
{
	long id = read_id(device, "device");

	return read_id(device, "vendor") == 0x1d0f && id >= 0xefa0 && id <= 0xefaf;
}

/* Where the bus path of a PCI device leads; false: there is none. */
static bool pci_path(const char *bdf, char *path)
{
	char link[sizeof(NRT_PCI_DEVICES) + NAME_MAX + 1];

	snprintf(link, sizeof(link), "%s/%.*s", NRT_PCI_DEVICES, NAME_MAX, bdf);
	return realpath(link, path);
}

/* Bridges that both paths go through. */
static size_t shared_bridges(const char *a, const char *b)
{
	size_t n = 0;

	for (; *a && *a == *b; a++, b++)
		n += *a == '/';
	return n;
}

/* Behind the same bridges as the device, the lowest address of several. */
static bool nearest_efa(const char *device, char *bdf, size_t size)
{
	char ours[PATH_MAX], path[PATH_MAX];
	struct dirent **list;
	size_t best = 0, n;
	int nr;

	if (!pci_path(device, ours))
		return false;
	nr = scandir(NRT_PCI_DEVICES, &list, NULL, alphasort);
	for (int i = 0; i < nr; i++) {
		if (list[i]->d_name[0] != '.' && pci_path(list[i]->d_name, path) &&
		    is_efa(path)) {
			n = shared_bridges(ours, path);
			if (n > best) {
				best = n;
				snprintf(bdf, size, "%s", list[i]->d_name);
			}
		}
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
	return best;
}

NEURON_EXPORT NRT_STATUS nrt_get_attached_efa_bdf(const void *va, char *bdf, size_t *len)
{
	char device[NEURON_BDF_SIZE], found[NAME_MAX + 1];
	struct nrt_storage *s = NULL;
	unsigned int nd;
	int ret;

	NRT_ENTER();
	if (va && bdf && len)
		s = nrt_storage_at(va, 1);
	if (!s)
		return NRT_INVALID;
	nd = neuron_device_index(s->device);
	ret = neuron_device_bdf(s->device, device);
	nrt_storage_put(s);
	if (ret)
		return NRT_FAILURE;
	if (!nearest_efa(device, found, sizeof(found))) {
		LOG(HAL, ERROR, "nd%u at %s: no network adapter near it", nd, device);
		return NRT_FAILURE;
	}
	if (*len <= strlen(found)) {
		*len = strlen(found) + 1;
		return NRT_RESOURCE;
	}
	strcpy(bdf, found);
	*len = strlen(found);
	return NRT_SUCCESS;
}

/* ---- memory, microcode, plugins ------------------------------------------------------ */

NEURON_EXPORT NRT_STATUS nrt_memcpy_to_device(void *dest, const void *src, size_t size)
{
	struct nrt_storage *s = NULL;

	NRT_ENTER();
	if (dest && (src || !size))
		s = nrt_storage_at(dest, size);
	if (!s)
		return NRT_INVALID;
	if (size)
		memmove(dest, src, size);
	nrt_storage_put(s);
	return NRT_SUCCESS;
}

static bool image_valid(const nrt_ucode_img *image)
{
	return image->bin && image->size;
}

NEURON_EXPORT NRT_STATUS nrt_set_pool_eng_ucode(const nrt_ucode_info *ucode_info)
{
	if (!ucode_info || !image_valid(&ucode_info->iram) || !image_valid(&ucode_info->dram))
		return NRT_INVALID;
	if (nrt_enter() == NRT_SUCCESS) {
		LOG(HAL, ERROR, "only before nrt_init()");
		nrt_leave();
	} else {
		LOG(HAL, ERROR, "the Pool engine has no microcode that can be replaced");
	}
	return NRT_FAILURE;
}

NEURON_EXPORT void *nrt_get_libnccl_net(int *err, char *msg, size_t msg_len)
{
	if (err)
		*err = NRT_FAILURE;
	if (msg && msg_len)
		snprintf(msg, msg_len, "no network plugin: libnrt talks to other hosts itself");
	return NULL;
}

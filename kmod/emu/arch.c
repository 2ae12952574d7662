// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kinds of devices: their geometries, and the links between devices of a kind.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "../../uapi/neuron_isa.h"
#include "arch.h"

/* uapi/FACTS.md 4, 5, 6 and 10 */
#define EMU_GEOMETRY_COMMON						\
	.nr_semaphores = 256,						\
	.sem_block = 0x400,						\
	.nr_events = 256,						\
	.nr_nq_engines = 16,						\
	.tpb_size = 0x4000000,						\
	.isa_version = NEURON_ISA_VERSION,				\
	.hbm_clear_at_start = true,					\
	.engines_per_core = 16

#define EMU_GEOMETRY_V2							\
	EMU_GEOMETRY_COMMON,						\
	.nr_cores = 2,							\
	.nr_hbms = 2,							\
	.hbm = {							\
		{ 0x0, 16ULL << 30, 16 << 20 },				\
		{ 0x1000000000, 16ULL << 30, 16 << 20 },		\
	},								\
	.nr_dma_engines = 34,						\
	.nr_topsp = 6,							\
	.nr_nq_types = 6,						\
	.copy_engine = { 32, 33 },					\
	.copy_queue = { 0, 0 },						\
	.host_window = 1ULL << 44,					\
	.tpb_base = { 0xfffc0000000, 0xfffc4000000 },			\
	.sbuf_size = 24 << 20,						\
	.reset_msec = 120000,						\
	.compat_min = 5,						\
	.compat_max = 7

#define EMU_GEOMETRY_V3(hbm_gib, sbuf_mib)				\
	EMU_GEOMETRY_COMMON,						\
	.nr_cores = 8,							\
	.nr_hbms = 4,							\
	.hbm = {							\
		{ 0x0, (hbm_gib) << 30, 16 << 20 },			\
		{ 0x4000000000, (hbm_gib) << 30, 16 << 20 },		\
		{ 0x800000000000, (hbm_gib) << 30, 16 << 20 },		\
		{ 0x804000000000, (hbm_gib) << 30, 16 << 20 },		\
	},								\
	.nr_dma_engines = 132,						\
	.nr_topsp = 16,							\
	.nr_nq_types = 5,						\
	.copy_engine = { 128, 128, 129, 129, 130, 130, 131, 131 },	\
	.copy_queue = { 0, 1, 0, 1, 0, 1, 0, 1 },			\
	.host_window = 1ULL << 46,					\
	.tpb_base = {							\
		0x2000000000, 0x3000000000,				\
		0x6000000000, 0x7000000000,				\
		0x802000000000, 0x803000000000,				\
		0x806000000000, 0x807000000000,				\
	},								\
	.sbuf_size = (sbuf_mib) << 20,					\
	.reset_msec = 480000,						\
	.compat_min = 10,						\
	.compat_max = 11

/* Devices linked to devices 0 to 15 of a full host (uapi/FACTS.md 6). */
static const u8 emu_links_trn1[16][4] = {
	{ 12, 3, 4, 1 }, { 13, 0, 5, 2 }, { 14, 1, 6, 3 }, { 15, 2, 7, 0 },
	{ 0, 7, 8, 5 }, { 1, 4, 9, 6 }, { 2, 5, 10, 7 }, { 3, 6, 11, 4 },
	{ 4, 11, 12, 9 }, { 5, 8, 13, 10 }, { 6, 9, 14, 11 }, { 7, 10, 15, 8 },
	{ 8, 15, 0, 13 }, { 9, 12, 1, 14 }, { 10, 13, 2, 15 }, { 11, 14, 3, 12 },
};

static const u8 emu_links_trn2[16][4] = {
	{ 12, 1, 3, 4 }, { 0, 13, 5, 2 }, { 14, 3, 1, 6 }, { 2, 15, 7, 0 },
	{ 8, 5, 7, 0 }, { 4, 9, 1, 6 }, { 10, 7, 5, 2 }, { 6, 11, 3, 4 },
	{ 4, 9, 11, 12 }, { 8, 5, 13, 10 }, { 6, 11, 9, 14 }, { 10, 7, 15, 8 },
	{ 0, 13, 15, 8 }, { 12, 1, 9, 14 }, { 2, 15, 13, 10 }, { 14, 3, 11, 12 },
};

static const struct emu_arch emu_archs[] = {
	{
		/* The size of the state buffer is not published: that of v2 is used. */
		.name = "inf1",
		.geo = {
			.arch = NEURON_ARCH_V1,
			.nd_arch_type = "NDv1",
			.nc_arch_type = "NCv1",
			.instance_type = "Inf1",
			.device_name = "Inferentia",
			.nr_cores = 4,
			.nr_hbms = 2,
			.hbm = {
				{ 0x0, 4ULL << 30, 0 },
				{ 0x1000000000, 4ULL << 30, 0 },
			},
			.nr_dma_engines = 12,
			.engines_per_core = 3,
			.reset_msec = 120000,
			.nr_semaphores = 32,
			.sem_block = 0x100,
			.nr_events = 256,
			.nr_nq_types = 4,
			.nr_nq_engines = 4,
			.copy_engine = { 2, 5, 8, 11 },
			.copy_queue = { 15, 15, 15, 15 },
			.host_window = 1ULL << 46,
			.tpb_base = {
				0xfffc0000000, 0xfffc4000000,
				0xfffc8000000, 0xfffcc000000,
			},
			.tpb_size = 0x4000000,
			.sbuf_size = 24 << 20,
			.isa_version = NEURON_ISA_VERSION,
			.hbm_clear_at_start = true,
			.compat_min = 2,
			.compat_max = 7,
		},
	}, {
		.name = "trn1",
		.geo = {
			.arch = NEURON_ARCH_V2,
			.nd_arch_type = "NDv2",
			.nc_arch_type = "NCv2",
			.instance_type = "Trn1",
			.device_name = "Trainium1",
			EMU_GEOMETRY_V2,
		},
		.links = emu_links_trn1,
	}, {
		.name = "inf2",
		.geo = {
			.arch = NEURON_ARCH_V2,
			.nd_arch_type = "NDv3",
			.nc_arch_type = "NCv2",
			.instance_type = "Inf2",
			.device_name = "Inferentia2",
			EMU_GEOMETRY_V2,
		},
	}, {
		.name = "trn2",
		.geo = {
			.arch = NEURON_ARCH_V3,
			.nd_arch_type = "NDv3",
			.nc_arch_type = "NCv3",
			.instance_type = "Trn2",
			.device_name = "Trainium2",
			EMU_GEOMETRY_V3(24ULL, 28),
		},
		.links = emu_links_trn2,
	}, {
		/*
		 * Sizes are published (uapi/FACTS.md 10); addresses, topology and
		 * versions are not: those of trn2 are used.
		 */
		.name = "trn3",
		.geo = {
			.arch = NEURON_ARCH_V4,
			.nd_arch_type = "NDv4",
			.nc_arch_type = "NCv4",
			.instance_type = "Trn3",
			.device_name = "Trainium3",
			EMU_GEOMETRY_V3(36ULL, 32),
		},
		.links = emu_links_trn2,
	},
};

/* Neighbours of device @i of @n.  Return: how many there are. */
u32 emu_neighbours(const struct emu_arch *a, u32 i, u32 n, u32 *list)
{
	u32 k;

	if (a->links) {
		if (n % 16)
			return 0;
		for (k = 0; k < 4; k++)
			list[k] = (i & ~15u) | a->links[i & 15][k];
		return 4;
	}
	if (a->geo.arch == NEURON_ARCH_V1) {
		/* the neighbour towards the end of the chain comes first */
		k = 0;
		if ((n == 4 || n == 16) && i + 1 < n)
			list[k++] = i + 1;
		if ((n == 4 || n == 16) && i > 0)
			list[k++] = i - 1;
		return k;
	}
	if (n == 12) {
		list[0] = (i + 11) % 12;
		list[1] = (i + 1) % 12;
		return 2;
	}
	if (n != 6)
		return 0;
	k = 0;
	if (i > 0)
		list[k++] = i - 1;
	if (i < 5)
		list[k++] = i + 1;
	return k;
}

/**
 * emu_find_arch() - find a kind of device by its name
 * @name: text, may end with a newline
 *
 * Return: the kind, NULL: unknown.
 */
const struct emu_arch *emu_find_arch(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(emu_archs); i++)
		if (sysfs_streq(name, emu_archs[i].name))
			return &emu_archs[i];
	return NULL;
}

/**
 * emu_hbm_size_valid() - can its device memories have that size?
 * @a: kind
 * @mib: MiB of each of them; 0 stands for the real size
 */
bool emu_hbm_size_valid(const struct emu_arch *a, u64 mib)
{
	return !mib || (mib >= EMU_MIN_HBM_MIB && mib <= a->geo.hbm[0].size >> 20);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trainium2 (v3) and Trainium3 (v4): places, values of an engine's start, devices of a host.
 * Two I/O dice, four groups of 32 engines, and two engines for the host on each die.
 */
#include "udma.h"

#define NPCI_DIE_V3(d)		(0x40000000ULL * (d))
#define NPCI_GROUP_V3(s)	(0x80000000ULL + 0x10000000ULL * (s))
/* In a group; the groups of a die are not alike. */
#define NPCI_ENGINES_V3(s)	(NPCI_GROUP_V3(s) + ((s) % 2 ? 0x4000000 : 0x2000000))
#define NPCI_USERS_V3(s)	(NPCI_GROUP_V3(s) + ((s) % 2 ? 0xc400000 : 0xc000000))
#define NPCI_GROUP_ENGINES	32u
#define NPCI_CORE_ENGINES	128u

static const struct npci_window npci_windows_v3[] = {
	/* Of each die: notification blocks, engines for the host, misc RAM (die 0). */
	{ NPCI_DIE_V3(0) + 0x6000000, 0xc85000 },
	{ NPCI_DIE_V3(1) + 0x6000000, 0xc85000 },
	{ NPCI_ENGINES_V3(0), NPCI_GROUP_ENGINES * 0x100000 },
	{ NPCI_ENGINES_V3(1), NPCI_GROUP_ENGINES * 0x100000 },
	{ NPCI_ENGINES_V3(2), NPCI_GROUP_ENGINES * 0x100000 },
	{ NPCI_ENGINES_V3(3), NPCI_GROUP_ENGINES * 0x100000 },
	{ NPCI_USERS_V3(0), NPCI_GROUP_ENGINES * 0x20000 },
	{ NPCI_USERS_V3(1), NPCI_GROUP_ENGINES * 0x20000 },
	{ NPCI_USERS_V3(2), NPCI_GROUP_ENGINES * 0x20000 },
	{ NPCI_USERS_V3(3), NPCI_GROUP_ENGINES * 0x20000 },
	{ 0xd0000000, 8 * 0x4000000 },		/* cores */
	{ }
};

static struct npci_place npci_place_v3(u32 e)
{
	u32 s = e / NPCI_GROUP_ENGINES, k = e % NPCI_GROUP_ENGINES;
	struct npci_place at = { };

	if (e < NPCI_CORE_ENGINES) {
		at.regs = NPCI_ENGINES_V3(s) + 0x100000 * k;
		at.user = NPCI_USERS_V3(s) + 0x20000 * k;
	} else {
		e -= NPCI_CORE_ENGINES;
		at.regs = NPCI_DIE_V3(e / 2) + 0x6800000 + 0x100000 * (e % 2);
	}
	at.app = at.regs + 0x40000;
	return at;
}

static u64 npci_core_nq_v3(u32 core)
{
	return NPCI_DIE_V3(core / 4) + 0x6001000 + 0x400000 * (core / 2 % 2) +
	       0x180000 * (core % 2);
}

/* Cores, engine groups (one for each core), groups of sequencers (same). */
static u32 npci_reset_map_v3(unsigned long cores)
{
	return cores | cores << 8 | cores << 16;
}

static const struct npci_step npci_start_v3[] = {
	{ NPCI_ENGINE, 0x310, 0x10008f8 },
	{ NPCI_ENGINE, 0x124, 0x20808080 },
	{ NPCI_ENGINE, 0x3a300, 0x05f5e100 },
	{ NPCI_ENGINE, 0x408, 0 },
	{ NPCI_ENGINE, 0x254, 0x10fffff },
	{ NPCI_ENGINE, 0x258, 0x102 },
	{ NPCI_QUEUES, 0x3c400, 0xffffffff },
	{ NPCI_ENGINE, 0x118, 0x10008 },
	{ NPCI_ENGINE, 0x2038c, 0 },
	{ NPCI_SELECTORS, 0x3c404, 0xffffffff },
	{ NPCI_ENGINE, 0x20124, 0x400080 },
	{ NPCI_ENGINE, 0x20128, 0x40804080 },
	{ NPCI_END },
};

static const struct npci_step npci_start_v4[] = {
	{ NPCI_FIELD, 0x2012c, 256, 0x3ff },
	{ NPCI_END },
};

static const struct npci_step npci_start_v3_last[] = {
	{ NPCI_APP, 0x800, 0x26 },
	{ NPCI_END },
};

static const struct npci_step *const npci_starts_v3[] = {
	npci_start_v3, npci_start_common, npci_start_v3_last, NULL,
};

static const struct npci_step *const npci_starts_v4[] = {
	npci_start_v3, npci_start_v4, npci_start_common, npci_start_v3_last, NULL,
};

static u32 npci_set_bits(struct npci_card *card, void __iomem *reg, u32 bits)
{
	u32 val = npci_read(card, reg) | bits;

	npci_write(reg, val);
	return val;
}

/* A descriptor with another ring id than expected does not stop an engine of a core. */
static void npci_ring_ids_v3(struct npci_card *card, u32 eng)
{
	struct npci_engine *e = &card->engine[eng];

	if (eng >= NPCI_CORE_ENGINES)
		return;
	npci_write(e->regs + 0x3a030, npci_set_bits(card, e->regs + 0x3a010, BIT(17)));
	npci_write(e->regs + 0x3a070, npci_set_bits(card, e->regs + 0x3a050, BIT(11)));
	npci_set_bits(card, e->user + 0x90, BIT(11));
	npci_set_bits(card, e->user + 0xd0, BIT(2));
	npci_set_bits(card, e->regs + 0x20c, BIT(17));
	npci_set_bits(card, e->regs + 0x2020c, BIT(11));
}

#define NPCI_GEN_V3(starts, in_ram) {					\
	.windows = npci_windows_v3,					\
	.misc = 0x6c84000,						\
	.core = 0xd0000000,						\
	.hbm_stride = 64ULL << 30,					\
	.reset_seconds = 480,						\
	.power_words = 2,						\
	.mailbox_in_ram = (in_ram),					\
	.repair_hides = true,						\
	.place = npci_place_v3,						\
	.core_nq = npci_core_nq_v3,					\
	.reset_map = npci_reset_map_v3,					\
	.start = (starts),						\
	.start_last = npci_ring_ids_v3,					\
}

static const struct npci_gen npci_gen_v3 = NPCI_GEN_V3(npci_starts_v3, 7);
static const struct npci_gen npci_gen_v4 = NPCI_GEN_V3(npci_starts_v4, 6);

#define NPCI_GEOMETRY_V3(hbm_size)					\
	.nr_cores = 8,							\
	.nr_hbms = 4,							\
	.hbm = {							\
		{ 0x0, hbm_size, 16 << 20 },				\
		{ 0x4000000000, hbm_size, 16 << 20 },			\
		{ 0x800000000000, hbm_size, 16 << 20 },			\
		{ 0x804000000000, hbm_size, 16 << 20 },			\
	},								\
	.nr_dma_engines = 132,						\
	.engines_per_core = 16,						\
	.nr_semaphores = 256,						\
	.sem_block = 0x400,						\
	.nr_events = 256,						\
	.nr_topsp = 16,							\
	.nr_nq_types = 5,						\
	.nr_nq_engines = 16,						\
	.copy_engine = { 128, 128, 129, 129, 130, 130, 131, 131 },	\
	.copy_queue = { 0, 1, 0, 1, 0, 1, 0, 1 },			\
	.host_window = BIT_ULL(46),					\
	.tpb_base = {							\
		0x2000000000, 0x3000000000,				\
		0x6000000000, 0x7000000000,				\
		0x802000000000, 0x803000000000,				\
		0x806000000000, 0x807000000000,				\
	},								\
	.tpb_size = 0x4000000,						\
	.compat_min = 10,						\
	.compat_max = 11

/* By routing id. */
static const u8 npci_numbers_trn2[16] = {
	0, 3, 4, 7, 12, 15, 8, 11, 1, 2, 5, 6, 13, 14, 9, 10,
};

/* Devices that are linked to each of 16. */
static u32 npci_neighbours_trn2(u32 number, u32 n, u32 *list)
{
	static const u8 links[16][4] = {
		{ 12, 1, 3, 4 }, { 0, 13, 5, 2 }, { 14, 3, 1, 6 }, { 2, 15, 7, 0 },
		{ 8, 5, 7, 0 }, { 4, 9, 1, 6 }, { 10, 7, 5, 2 }, { 6, 11, 3, 4 },
		{ 4, 9, 11, 12 }, { 8, 5, 13, 10 }, { 6, 11, 9, 14 }, { 10, 7, 15, 8 },
		{ 0, 13, 15, 8 }, { 12, 1, 9, 14 }, { 2, 15, 13, 10 }, { 14, 3, 11, 12 },
	};
	u32 k;

	if (n % 16)
		return 0;
	for (k = 0; k < 4; k++)
		list[k] = (number & ~15u) | links[number & 15][k];
	return k;
}

const struct npci_kind npci_trn2 = {
	.gen = &npci_gen_v3,
	.geo = {
		NPCI_GEOMETRY_V3(24ULL << 30),
		.arch = NEURON_ARCH_V3,
		.nd_arch_type = "NDv3",
		.nc_arch_type = "NCv3",
		.instance_type = "Trn2",
		.device_name = "Trainium2",
		.sbuf_size = 28 << 20,
	},
	.numbers = npci_numbers_trn2,
	.neighbours = npci_neighbours_trn2,
};

const struct npci_kind npci_trn3 = {
	.gen = &npci_gen_v4,
	.geo = {
		NPCI_GEOMETRY_V3(36ULL << 30),
		.arch = NEURON_ARCH_V4,
		.nd_arch_type = "NDv4",
		.nc_arch_type = "NCv4",
		.instance_type = "Trn3",
		.device_name = "Trainium3",
		.sbuf_size = 32 << 20,
	},
	.numbers = npci_numbers_trn2,
	.neighbours = npci_neighbours_trn2,
};

// SPDX-License-Identifier: GPL-2.0-only
/* Trainium1 and Inferentia2: places, values of an engine's start, devices of a host. */
#include "udma.h"

static const struct npci_window npci_windows_v2[] = {
	{ 0x0, 2 * 0x4000000 },			/* cores */
	{ 0x30000000, 0xfa1000 },		/* engines, notification blocks, misc RAM */
	{ }
};

static struct npci_place npci_place_v2(u32 e)
{
	if (e == 32)
		return (struct npci_place){ 0x30600000, 0x30640000 };
	if (e == 33)
		return (struct npci_place){ 0x30d00000, 0x30d40000 };
	if (e < 16)
		return (struct npci_place){ 0x30000000 + 0x40000 * e, 0x30400000 + 0x7000 * e };
	e -= 16;
	return (struct npci_place){ 0x30700000 + 0x40000 * e, 0x30b00000 + 0x7000 * e };
}

static u64 npci_core_nq_v2(u32 core)
{
	return core ? 0x30c35000 : 0x30535000;
}

/* A core, and its three collective sequencers. */
static u32 npci_reset_map_v2(unsigned long cores)
{
	unsigned long c;
	u32 map = 0;

	for_each_set_bit(c, &cores, 2)
		map |= BIT(c) | GENMASK(2, 0) << (8 + 3 * c);
	return map;
}

static const struct npci_step npci_start_v2[] = {
	{ NPCI_ENGINE, 0x310, 0x1000400 },
	{ NPCI_ENGINE, 0x124, 0x0000086f },
	{ NPCI_ENGINE, 0x3a300, 0x05f5e100 },
	{ NPCI_ENGINE, 0x408, 0 },
	{ NPCI_ENGINE, 0x254, 0x10fffff },
	{ NPCI_ENGINE, 0x258, 0x102 },
	{ NPCI_QUEUES, 0x3c400, 0xffffffff },
	{ NPCI_ENGINE, 0x118, 0x10008 },
	{ NPCI_ENGINE, 0x2038c, 0 },
	{ NPCI_SELECTORS, 0x3c404, 0xffffffff },
	{ NPCI_ENGINE, 0x20124, 0x400008 },
	{ NPCI_ENGINE, 0x20128, 0x40804080 },
	{ NPCI_END },
};

static const struct npci_step *const npci_starts_v2[] = {
	npci_start_v2, npci_start_common, NULL,
};

/* Which engines of a group of 16 a broadcast goes to, and which of them are the last ones. */
static void npci_broadcast_v2(struct npci_card *card, u32 eng)
{
	const u32 last = BIT(0) | BIT(3) | BIT(6) | BIT(9) | BIT(15);
	struct npci_engine *e = &card->engine[eng];
	u32 i = eng % 16;

	if (eng >= 32)
		return;
	/* Of 16 bits, the upper @i are clear. */
	npci_write(e->app + 0x100, 0xffff >> i);
	npci_write(e->app + 0x104, last & BIT(i) ? 0xffff : 0);
}

/* Errors on the bus inside the card stop the engine. */
static void npci_axi_errors_v2(struct npci_card *card, u32 eng)
{
	static const u32 groups[] = { 0x3ad00, 0x3ae00, 0x3af00, 0x3b000, 0x3b100, 0x3b200 };
	static const u8 words[] = { 1, 2, 3, 9, 10, 11 };
	void __iomem *regs = card->engine[eng].regs;
	u32 i, k;

	for (i = 0; i < 6; i++)
		for (k = 0; k < ARRAY_SIZE(words); k++)
			npci_write(regs + 0x3a900 + 0x40 * i + 4 * words[k], 0xf);
	for (i = 0; i < 6; i++) {
		for (k = 0; k < NEURON_HW_QUEUES_PER_ENGINE; k++) {
			npci_write(regs + 0x3ab00 + 8 * i, 8 * k + 7);
			npci_write(regs + 0x3ab04 + 8 * i, 0x10);
		}
	}
	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		npci_write(regs + groups[i] + 0x28, 0x28);
		npci_write(regs + groups[i] + 0x30, 0);
		npci_write(regs + groups[i] + 0x18, 0);
	}
	npci_write(regs + 0x3a300, 0xffffffff);
}

static const struct npci_gen npci_gen_v2 = {
	.windows = npci_windows_v2,
	.misc = 0x30fa0000,
	.core = 0,
	.hbm_stride = 16ULL << 30,
	.needs_hbm_bar = true,
	.reset_seconds = 120,
	.power_words = 1,
	.mailbox_in_ram = 7,
	.place = npci_place_v2,
	.core_nq = npci_core_nq_v2,
	.reset_map = npci_reset_map_v2,
	.start = npci_starts_v2,
	.start_first = npci_broadcast_v2,
	.start_last = npci_axi_errors_v2,
};

#define NPCI_GEOMETRY_V2						\
	.arch = NEURON_ARCH_V2,						\
	.nc_arch_type = "NCv2",						\
	.nr_cores = 2,							\
	.nr_hbms = 2,							\
	.hbm = {							\
		{ 0x0, 16ULL << 30, 16 << 20 },				\
		{ 0x1000000000, 16ULL << 30, 16 << 20 },		\
	},								\
	.nr_dma_engines = 34,						\
	.engines_per_core = 16,						\
	.nr_semaphores = 256,						\
	.sem_block = 0x400,						\
	.nr_events = 256,						\
	.nr_topsp = 6,							\
	.nr_nq_types = 6,						\
	.nr_nq_engines = 16,						\
	.copy_engine = { 32, 33 },					\
	.copy_queue = { 0, 0 },						\
	.host_window = BIT_ULL(44),					\
	.tpb_base = { 0xfffc0000000, 0xfffc4000000 },			\
	.tpb_size = 0x4000000,						\
	.sbuf_size = 24 << 20,						\
	.compat_min = 5,						\
	.compat_max = 7

/* Of 16 devices in a torus of 4 x 4. */
static u32 npci_neighbours_trn1(u32 number, u32 n, u32 *list)
{
	u32 block = number & ~15u, row = number & 12, column = number & 3;

	if (n % 16)
		return 0;
	list[0] = block | ((row + 12) & 12) | column;
	list[1] = block | row | ((column + 3) & 3);
	list[2] = block | ((row + 4) & 12) | column;
	list[3] = block | row | ((column + 1) & 3);
	return 4;
}

/* 12 devices are a ring, 6 a chain. */
static u32 npci_neighbours_inf2(u32 number, u32 n, u32 *list)
{
	u32 k = 0;

	if (n != 12 && n != 6)
		return 0;
	if (n == 12 || number > 0)
		list[k++] = (number + n - 1) % n;
	if (n == 12 || number < 5)
		list[k++] = (number + 1) % n;
	return k;
}

static const u8 npci_numbers_trn1[16] = {
	0, 4, 1, 5, 3, 7, 2, 6, 12, 8, 13, 9, 15, 11, 14, 10,
};

const struct npci_kind npci_trn1 = {
	.gen = &npci_gen_v2,
	.geo = {
		NPCI_GEOMETRY_V2,
		.nd_arch_type = "NDv2",
		.instance_type = "Trn1",
		.device_name = "Trainium1",
	},
	.numbers = npci_numbers_trn1,
	.neighbours = npci_neighbours_trn1,
};

const struct npci_kind npci_inf2 = {
	.gen = &npci_gen_v2,
	.geo = {
		NPCI_GEOMETRY_V2,
		.nd_arch_type = "NDv3",
		.instance_type = "Inf2",
		.device_name = "Inferentia2",
	},
	.neighbours = npci_neighbours_inf2,
};

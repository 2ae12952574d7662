// SPDX-License-Identifier: GPL-2.0-only
/* Where the blocks of registers are in BAR0, by generation (README.md). */
#include "card.h"

/**
 * struct card_row - blocks of a kind at equal distances
 * @block: kind
 * @first: number of the first one
 * @count: how many
 * @base: offset of the first one in BAR0
 * @stride: distance
 */
struct card_row {
	enum card_block block;
	u32 first;
	u32 count;
	u64 base;
	u64 stride;
};

static const struct card_row card_rows_v2[] = {
	{ CARD_CORE, 0, 2, 0x0, 0x4000000 },
	{ CARD_TOPSP, 0, 6, 0x10000000, 0x400000 },
	{ CARD_ENGINE, 0, 16, 0x30000000, 0x40000 },
	{ CARD_APP, 0, 16, 0x30400000, 0x7000 },
	{ CARD_ENGINE_NQ, 0, 16, 0x30401000, 0x7000 },
	{ CARD_CORE_NQ, 0, 1, 0x30535000, 0 },
	{ CARD_ENGINE, 32, 1, 0x30600000, 0 },
	{ CARD_APP, 32, 1, 0x30640000, 0 },
	{ CARD_ENGINE_NQ, 32, 1, 0x30641000, 0 },
	{ CARD_ENGINE, 16, 16, 0x30700000, 0x40000 },
	{ CARD_APP, 16, 16, 0x30b00000, 0x7000 },
	{ CARD_ENGINE_NQ, 16, 16, 0x30b01000, 0x7000 },
	{ CARD_CORE_NQ, 1, 1, 0x30c35000, 0 },
	{ CARD_ENGINE, 33, 1, 0x30d00000, 0 },
	{ CARD_APP, 33, 1, 0x30d40000, 0 },
	{ CARD_ENGINE_NQ, 33, 1, 0x30d41000, 0 },
	{ CARD_TOPSP_NQ, 0, 6, 0x30e04000, 0x40000 },
	{ CARD_MISC, 0, 1, 0x30fa0000, 0 },
	{ }
};

/* Engine group @s: 32 engines, each with its other blocks. */
#define CARD_GROUP_V3(s, engines, users)						\
	{ CARD_ENGINE, 32 * (s), 32, 0x80000000 + 0x10000000ULL * (s) + (engines), 0x100000 },	\
	{ CARD_APP, 32 * (s), 32, 0x80040000 + 0x10000000ULL * (s) + (engines), 0x100000 },	\
	{ CARD_ENGINE_NQ, 32 * (s), 32, 0x80041000 + 0x10000000ULL * (s) + (engines), 0x100000 }, \
	{ CARD_USER, 32 * (s), 32, 0x80000000 + 0x10000000ULL * (s) + (users), 0x20000 }

/* I/O die @d: two engines for the host, notification blocks of four cores and eight sequencers. */
#define CARD_DIE_V3(d)									\
	{ CARD_CORE_NQ, 4 * (d), 2, 0x6001000 + 0x40000000ULL * (d), 0x180000 },	\
	{ CARD_CORE_NQ, 4 * (d) + 2, 2, 0x6401000 + 0x40000000ULL * (d), 0x180000 },	\
	{ CARD_ENGINE, 128 + 2 * (d), 2, 0x6800000 + 0x40000000ULL * (d), 0x100000 },	\
	{ CARD_APP, 128 + 2 * (d), 2, 0x6840000 + 0x40000000ULL * (d), 0x100000 },	\
	{ CARD_ENGINE_NQ, 128 + 2 * (d), 2, 0x6841000 + 0x40000000ULL * (d), 0x100000 },	\
	{ CARD_TOPSP_NQ, 8 * (d), 8, 0x6a00000 + 0x40000000ULL * (d), 0x40000 }

static const struct card_row card_rows_v3[] = {
	CARD_DIE_V3(0),
	{ CARD_MISC, 0, 1, 0x6c84000, 0 },
	CARD_DIE_V3(1),
	CARD_GROUP_V3(0, 0x2000000, 0xc000000),
	CARD_GROUP_V3(1, 0x4000000, 0xc400000),
	CARD_GROUP_V3(2, 0x2000000, 0xc000000),
	CARD_GROUP_V3(3, 0x4000000, 0xc400000),
	{ CARD_CORE, 0, 8, 0xd0000000, 0x4000000 },
	{ CARD_TOPSP, 0, 10, 0xf0000000, 0x400000 },
	{ CARD_TOPSP, 10, 10, 0xf2800000, 0x400000 },
	{ }
};

static const struct card_row *card_rows(const struct card *card)
{
	return card->gen == 2 ? card_rows_v2 : card_rows_v3;
}

static u64 card_block_len(enum card_block block)
{
	switch (block) {
	case CARD_CORE:
		return 0x4000000;
	case CARD_TOPSP:
		return 0x400000;
	case CARD_ENGINE:
		return CARD_ENGINE_LEN;
	default:
		return CARD_BLOCK_LEN;
	}
}

/**
 * card_place() - find a register
 * @card: the card
 * @off: offset in BAR0
 *
 * Return: the block and the offset in it; CARD_NOTHING if nothing is there.
 */
struct card_place card_place(const struct card *card, u64 off)
{
	const struct card_row *r;
	u64 i, at;

	for (r = card_rows(card); r->block; r++) {
		if (off < r->base)
			continue;
		i = r->stride ? (off - r->base) / r->stride : 0;
		at = off - r->base - i * r->stride;
		if (i < r->count && at < card_block_len(r->block))
			return (struct card_place){ r->block, r->first + i, at };
	}
	return (struct card_place){ CARD_NOTHING, 0, 0 };
}

/**
 * card_offset() - where a block is
 * @card: the card
 * @block: kind
 * @index: number
 *
 * Return: its offset in BAR0; U64_MAX if there is none.
 */
u64 card_offset(const struct card *card, enum card_block block, u32 index)
{
	const struct card_row *r;

	for (r = card_rows(card); r->block; r++)
		if (r->block == block && index >= r->first && index - r->first < r->count)
			return r->base + (index - r->first) * r->stride;
	return U64_MAX;
}

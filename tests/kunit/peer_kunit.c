// SPDX-License-Identifier: GPL-2.0-only
/* Drivers that learn where memory is, without the rest of neuron.ko: what each of them holds. */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "../../kmod/base/client.h"
#include "../../kmod/base/device.h"
#include "../../kmod/base/hw.h"
#include "../../kmod/mem/dmabuf.h"
#include "../../kmod/mem/map.h"
#include "../../kmod/mem/neuron_p2p.h"
#include "../../kmod/mem/watch.h"

#define VA	0x40000000ULL
#define PHYS	0x80000000ULL
#define PAGES	32u
#define LARGE	SZ_256M

/* How the frames of the memory lie: in a row, two pages and a hole, one page beside the row. */
enum peer_mode { PEER_ROW, PEER_PAIRS, PEER_BESIDE };

static struct {
	struct neuron_device nd[2];
	struct neuron_client client[2];
	struct neuron_chunk chunk[2];
	struct neuron_mapping mapping[2];
	u32 at;				/* mapping of the caller's addresses */
	u64 off;
	enum peer_mode mode;
	u64 phys;
	bool readonly, no_pages, gone, nomem, signal, unmap;
	u64 fails_at;
	u32 frames;
	/* What is held. */
	int inside, watches, allocs, pages;
	int page[PAGES];		/* from frame PHYS on */
	u64 watched;			/* offset of the last watch */
	/* Callbacks: their number, what the last one was told, what it does. */
	u32 told;
	void *data;
	struct neuron_p2p_va_info *own;	/* it unregisters this */
	struct task_struct *other;	/* it starts another thread, which unregisters that */
	struct neuron_p2p_va_info *others;
	int frees;			/* when the callback was about to return */
	bool goes;			/* it starts another thread, in which the device goes */
	bool went, went_early;
} state;

static struct neuron_mapping *peer_mapping_get(u64 va, u64 len, u64 *off, bool *write)
{
	struct neuron_mapping *mapping = &state.mapping[state.at];

	if (va < VA)
		return ERR_PTR(-EINVAL);
	kref_get(&mapping->ref);
	*off = state.off;
	*write = !state.readonly;
	return mapping;
}

static void peer_mapping_put(struct neuron_mapping *mapping)
{
	refcount_dec(&mapping->ref.refcount);
}

static bool peer_has_pages(const struct neuron_chunk *chunk)
{
	return !state.no_pages;
}

static int peer_frame(struct neuron_chunk *chunk, u64 off, unsigned long *pfn)
{
	u64 page = (off - state.off) >> PAGE_SHIFT;

	state.frames++;
	if (!state.inside || (state.fails_at && state.frames == state.fails_at))
		return -ENXIO;
	if (state.mode == PEER_PAIRS)
		page += page / 2;
	else if (state.mode == PEER_BESIDE)
		page += !page ? PAGES - 1 : 0;
	*pfn = PHYS_PFN(state.phys) + page;
	return 0;
}

static bool peer_enter(struct neuron_device *nd, int *idx)
{
	state.inside += !state.gone;
	return !state.gone;
}

static void peer_exit(struct neuron_device *nd, int idx)
{
	state.inside--;
}

static u32 peer_index(struct neuron_device *nd)
{
	return nd - state.nd + 7;
}

static bool peer_admit(struct neuron_chunk *chunk, enum neuron_user as)
{
	chunk->users[as - 1]++;
	/* The process unmaps the memory meanwhile. */
	if (state.unmap)
		atomic_set(&state.mapping[0].areas, 0);
	return true;
}

static void peer_unuse(struct neuron_chunk *chunk, enum neuron_user as)
{
	chunk->users[as - 1]--;
	refcount_dec(&chunk->ref.refcount);
}

static struct neuron_watch *peer_watch(struct neuron_chunk *chunk, u64 off, u64 len,
				       enum neuron_user as)
{
	state.watches += as == NEURON_USER_PEER && len;
	state.watched = off;
	return (struct neuron_watch *)&state.watches;
}

static void peer_unwatch(struct neuron_watch *w)
{
	state.watches -= w == (struct neuron_watch *)&state.watches;
}

static void peer_page(unsigned long pfn, int n)
{
	state.pages += n;
	if (pfn - PHYS_PFN(PHYS) < PAGES)
		state.page[pfn - PHYS_PFN(PHYS)] += n;
}

static void *peer_alloc(size_t size, gfp_t gfp)
{
	void *p = state.nomem ? NULL : kzalloc(size, gfp);

	state.allocs += !!p;
	return p;
}

static void peer_free(void *p)
{
	state.allocs -= !!p;
	kfree(p);
}

#undef EXPORT_SYMBOL_GPL
#undef kvzalloc
#undef pfn_to_page
#undef get_page
#undef put_page
#define EXPORT_SYMBOL_GPL(symbol)	static_assert(__same_type(symbol, symbol))
#define neuron_mapping_get		peer_mapping_get
#define neuron_mapping_put		peer_mapping_put
#define neuron_chunk_has_pages		peer_has_pages
#define neuron_chunk_frame		peer_frame
#define neuron_device_enter		peer_enter
#define neuron_device_exit		peer_exit
#define neuron_device_index		peer_index
#define neuron_chunk_admit		peer_admit
#define neuron_chunk_unuse		peer_unuse
#define neuron_watch_chunk		peer_watch
#define neuron_unwatch			peer_unwatch
/* The frames need not exist: a page stands for its number, and is not looked at. */
#define pfn_to_page(pfn)		((struct page *)((pfn) * sizeof(struct page)))
#define get_page(p)			peer_page((uintptr_t)(p) / sizeof(struct page), 1)
#define put_page(p)			peer_page((uintptr_t)(p) / sizeof(struct page), -1)
#define kvzalloc			peer_alloc
#define kvfree				peer_free
#define fatal_signal_pending(task)	((void)(task), state.signal)

#include "../../kmod/mem/peer.c"

static int peer_other(void *unused)
{
	neuron_p2p_unregister_va(state.others);
	return 0;
}

static int peer_goes(void *arg)
{
	neuron_peers_revoke(&state.nd[0]);
	WRITE_ONCE(state.went, true);
	return 0;
}

static void peer_callback(void *data)
{
	state.told++;
	state.data = data;
	/* A peer may still use the memory. */
	state.frees = state.allocs;
	if (state.own)
		neuron_p2p_unregister_va(state.own);
	if (state.others) {
		state.other = kthread_run(peer_other, NULL, "peer_other");
		msleep(50);
	}
	if (state.goes) {
		state.other = kthread_run(peer_goes, NULL, "peer_goes");
		msleep(50);
		state.went_early = READ_ONCE(state.went);
	}
	if (state.own || state.others)
		state.frees -= state.allocs;
}

static int peer_init(struct kunit *test)
{
	u32 i;

	memset(&state, 0, sizeof(state));
	state.phys = PHYS;
	state.off = SZ_64K;
	for (i = 0; i < 2; i++) {
		state.client[i].nd = &state.nd[i];
		state.chunk[i].client = &state.client[i];
		kref_init(&state.chunk[i].ref);
		state.mapping[i].chunk = &state.chunk[i];
		kref_init(&state.mapping[i].ref);
		atomic_set(&state.mapping[i].areas, 1);
		INIT_LIST_HEAD(&state.mapping[i].peers);
	}
	return 0;
}

/* Nobody holds anything; the mappings may still be mapped. */
static void expect_nothing(struct kunit *test)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, kref_read(&state.chunk[i].ref), 1u);
		KUNIT_EXPECT_EQ(test, kref_read(&state.mapping[i].ref), 1u);
		KUNIT_EXPECT_EQ(test, state.chunk[i].users[NEURON_USER_PEER - 1], 0u);
		KUNIT_EXPECT_TRUE(test, list_empty(&state.mapping[i].peers));
	}
	KUNIT_EXPECT_TRUE(test, list_empty(&neuron_peers_io));
	KUNIT_EXPECT_EQ(test, state.inside, 0);
	KUNIT_EXPECT_EQ(test, state.watches, 0);
	KUNIT_EXPECT_EQ(test, state.pages, 0);
	for (i = 0; i < PAGES; i++)
		KUNIT_EXPECT_EQ(test, state.page[i], 0);
	KUNIT_EXPECT_EQ(test, state.allocs, 0);
}

static void peer_finish(struct kunit *test)
{
	expect_nothing(test);
}

static int learn(u64 va, u64 len, struct neuron_p2p_va_info **info, void *data)
{
	state.frames = 0;
	return neuron_p2p_register_va(va, len, info, peer_callback, data);
}

/* As the last piece of a mapping is unmapped. */
static void unmap(u32 i)
{
	atomic_set(&state.mapping[i].areas, 0);
	if (state.mapping[i].revoke)
		state.mapping[i].revoke(&state.mapping[i]);
}

/* What a peer is told, and what it holds until it is done. */
static void peer_held(struct kunit *test)
{
	struct neuron_p2p_va_info *info = NULL;
	u32 i;

	state.at = 1;
	KUNIT_ASSERT_EQ(test, learn(VA + PAGE_SIZE, 5 * PAGE_SIZE, &info, NULL), 0);
	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_EXPECT_EQ(test, info->virtual_address, VA + PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, info->size, 5 * (u64)PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, info->shift_page_size, (u32)PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, info->device_index, 8u);
	KUNIT_EXPECT_EQ(test, info->entries, 1u);
	KUNIT_EXPECT_EQ(test, info->page_info[0].physical_address, PHYS);
	KUNIT_EXPECT_EQ(test, info->page_info[0].page_count, 5u);
	KUNIT_EXPECT_EQ(test, kref_read(&state.chunk[1].ref), 2u);
	KUNIT_EXPECT_EQ(test, state.chunk[1].users[NEURON_USER_PEER - 1], 1u);
	KUNIT_EXPECT_EQ(test, kref_read(&state.mapping[1].ref), 1u);
	KUNIT_EXPECT_EQ(test, state.watches, 1);
	KUNIT_EXPECT_EQ(test, state.watched, (u64)SZ_64K);
	KUNIT_EXPECT_EQ(test, state.inside, 0);
	for (i = 0; i < PAGES; i++)
		KUNIT_EXPECT_EQ(test, state.page[i], i < 5 ? 1 : 0);
	KUNIT_EXPECT_EQ(test, neuron_p2p_unregister_va(info), 0);
	KUNIT_EXPECT_EQ(test, neuron_p2p_unregister_va(NULL), -EINVAL);
	expect_nothing(test);
	unmap(1);
	KUNIT_EXPECT_EQ(test, state.told, 0u);
}

static void peer_runs(struct kunit *test)
{
	static const struct {
		enum peer_mode mode;
		u32 pages, entries;
		struct neuron_p2p_page_info run[3];
	} rows[] = {
		{ PEER_ROW, 1, 1, { { PHYS, 1 } } },
		{ PEER_PAIRS, 5, 3, { { PHYS, 2 }, { PHYS + 3 * PAGE_SIZE, 2 },
				      { PHYS + 6 * PAGE_SIZE, 1 } } },
		{ PEER_BESIDE, 3, 2, { { PHYS + 31 * PAGE_SIZE, 1 }, { PHYS + PAGE_SIZE, 2 } } },
	};
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct neuron_p2p_va_info *info = NULL;

		state.mode = rows[i].mode;
		KUNIT_ASSERT_EQ(test, learn(VA, rows[i].pages * PAGE_SIZE, &info, NULL), 0);
		KUNIT_ASSERT_EQ(test, info->entries, rows[i].entries);
		for (k = 0; k < info->entries; k++) {
			KUNIT_EXPECT_EQ(test, info->page_info[k].physical_address,
					rows[i].run[k].physical_address);
			KUNIT_EXPECT_EQ(test, info->page_info[k].page_count,
					rows[i].run[k].page_count);
		}
		KUNIT_EXPECT_EQ(test, state.pages, (int)rows[i].pages);
		KUNIT_EXPECT_EQ(test, neuron_p2p_unregister_va(info), 0);
		expect_nothing(test);
	}
}

/* Large memory is told in pages of 2 MiB, if all that is told is of such pages. */
static void peer_large(struct kunit *test)
{
	static const struct {
		enum peer_mode mode;
		u64 va, len, phys;
		u32 shift;
	} rows[] = {
		{ PEER_ROW, VA, LARGE, PHYS, 21 },
		{ PEER_ROW, VA, LARGE + SZ_2M, PHYS, 21 },
		{ PEER_ROW, VA, LARGE - SZ_2M, PHYS, PAGE_SHIFT },
		{ PEER_ROW, VA + PAGE_SIZE, LARGE, PHYS, PAGE_SHIFT },
		{ PEER_ROW, VA, LARGE + PAGE_SIZE, PHYS, PAGE_SHIFT },
		{ PEER_ROW, VA, LARGE, PHYS + PAGE_SIZE, PAGE_SHIFT },
		{ PEER_BESIDE, VA, LARGE, PHYS, PAGE_SHIFT },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct neuron_p2p_va_info *info = NULL;

		state.mode = rows[i].mode;
		state.phys = rows[i].phys;
		KUNIT_ASSERT_EQ(test, learn(rows[i].va, rows[i].len, &info, NULL), 0);
		KUNIT_EXPECT_EQ(test, info->shift_page_size, rows[i].shift);
		KUNIT_EXPECT_EQ(test, info->entries, rows[i].mode == PEER_ROW ? 1u : 2u);
		if (info->entries == 1)
			KUNIT_EXPECT_EQ(test, info->page_info[0].page_count,
					(u32)(rows[i].len >> rows[i].shift));
		KUNIT_EXPECT_EQ(test, state.pages, (int)(rows[i].len >> PAGE_SHIFT));
		KUNIT_EXPECT_EQ(test, neuron_p2p_unregister_va(info), 0);
		expect_nothing(test);
	}
}

static void peer_refused(struct kunit *test)
{
	struct neuron_p2p_va_info *info = NULL;
	u32 k;

	KUNIT_EXPECT_EQ(test, learn(VA, PAGE_SIZE, NULL, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, neuron_p2p_register_va(VA, PAGE_SIZE, &info, NULL, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, learn(VA + 1, PAGE_SIZE, &info, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, learn(VA, 0, &info, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, learn(VA, PAGE_SIZE + 1, &info, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, learn(VA - PAGE_SIZE, PAGE_SIZE, &info, NULL), -EINVAL);
	state.readonly = true;
	KUNIT_EXPECT_EQ(test, learn(VA, PAGE_SIZE, &info, NULL), -EPERM);
	state.readonly = false;
	state.gone = true;
	KUNIT_EXPECT_EQ(test, learn(VA, PAGE_SIZE, &info, NULL), -ENODEV);
	state.gone = false;
	state.nomem = true;
	KUNIT_EXPECT_EQ(test, learn(VA, PAGE_SIZE, &info, NULL), -ENOMEM);
	state.nomem = false;
	state.signal = true;
	KUNIT_EXPECT_EQ(test, learn(VA, PAGE_SIZE, &info, NULL), -EINTR);
	state.signal = false;
	/* A frame is not found when runs are counted, when they are noted. */
	for (k = 1; k <= 6; k++) {
		state.fails_at = k;
		KUNIT_EXPECT_EQ(test, learn(VA, 3 * PAGE_SIZE, &info, NULL), -ENXIO);
		expect_nothing(test);
	}
	state.fails_at = 0;
	/* The last piece is unmapped while it is registered. */
	state.unmap = true;
	for (k = 0; k < 2; k++) {
		state.no_pages = k;
		KUNIT_EXPECT_EQ(test, learn(VA, PAGE_SIZE, &info, NULL), -EINVAL);
		expect_nothing(test);
	}
	KUNIT_EXPECT_NULL(test, info);
	KUNIT_EXPECT_EQ(test, state.told, 0u);
}

/* Each peer of a mapping is told once when it ends, those of others are not. */
static void peer_revoked(struct kunit *test)
{
	struct neuron_p2p_va_info *info[3] = { };
	u32 i;

	for (i = 0; i < 3; i++) {
		state.at = i / 2;
		KUNIT_ASSERT_EQ(test, learn(VA, 2 * PAGE_SIZE, &info[i], &info[i]), 0);
	}
	unmap(0);
	KUNIT_EXPECT_EQ(test, state.told, 2u);
	KUNIT_EXPECT_PTR_EQ(test, state.data, (void *)&info[0]);
	/* The memory is given back, what the peers were told is still there. */
	KUNIT_EXPECT_EQ(test, state.allocs, 3);
	KUNIT_EXPECT_EQ(test, state.pages, 2);
	KUNIT_EXPECT_EQ(test, state.watches, 1);
	KUNIT_EXPECT_EQ(test, kref_read(&state.chunk[0].ref), 1u);
	KUNIT_EXPECT_EQ(test, kref_read(&state.chunk[1].ref), 2u);
	unmap(0);
	neuron_peers_revoke(&state.nd[1]);
	KUNIT_EXPECT_EQ(test, state.told, 2u);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, neuron_p2p_unregister_va(info[i]), 0);
}

/* Memory without pages is given back before its device goes. */
static void peer_device_goes(struct kunit *test)
{
	struct neuron_p2p_va_info *info[3] = { };
	u32 i;

	state.no_pages = true;
	for (i = 0; i < 3; i++) {
		state.at = i % 2;
		KUNIT_ASSERT_EQ(test, learn(VA, PAGE_SIZE, &info[i], &info[i]), 0);
	}
	KUNIT_EXPECT_EQ(test, state.pages, 0);
	neuron_peers_revoke(&state.nd[1]);
	KUNIT_EXPECT_EQ(test, state.told, 1u);
	KUNIT_EXPECT_PTR_EQ(test, state.data, (void *)&info[1]);
	KUNIT_EXPECT_EQ(test, neuron_p2p_unregister_va(info[0]), 0);
	neuron_peers_revoke(&state.nd[0]);
	KUNIT_EXPECT_EQ(test, state.told, 2u);
	KUNIT_EXPECT_PTR_EQ(test, state.data, (void *)&info[2]);
	/* The process unmaps later. */
	unmap(0);
	KUNIT_EXPECT_EQ(test, state.told, 2u);
	KUNIT_EXPECT_EQ(test, neuron_p2p_unregister_va(info[1]), 0);
	KUNIT_EXPECT_EQ(test, neuron_p2p_unregister_va(info[2]), 0);
}

/* A callback ends its own registration: this does not wait for itself, and frees it later. */
static void peer_orphan(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, learn(VA, PAGE_SIZE, &state.own, NULL), 0);
	unmap(0);
	KUNIT_EXPECT_EQ(test, state.told, 1u);
	KUNIT_EXPECT_EQ(test, state.frees, 0);
}

/* Another thread ends a registration while its callback runs: it waits. */
static void peer_waits(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, learn(VA, PAGE_SIZE, &state.others, NULL), 0);
	unmap(0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(state.other));
	msleep(50);
	KUNIT_EXPECT_EQ(test, state.told, 1u);
	KUNIT_EXPECT_EQ(test, state.frees, 0);
}

/* A device does not go while another thread tells a peer, even if that unregisters. */
static void peer_device_waits(struct kunit *test)
{
	struct neuron_p2p_va_info *info = NULL;
	u32 i, k;

	state.no_pages = true;
	state.goes = true;
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, learn(VA, PAGE_SIZE, i ? &state.own : &info, NULL), 0);
		state.went = false;
		unmap(0);
		KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(state.other));
		for (k = 0; k < 100 && !READ_ONCE(state.went); k++)
			msleep(20);
		KUNIT_EXPECT_TRUE(test, state.went);
		KUNIT_EXPECT_FALSE(test, state.went_early);
		KUNIT_EXPECT_EQ(test, state.told, i + 1);
		atomic_set(&state.mapping[0].areas, 1);
	}
	KUNIT_EXPECT_EQ(test, neuron_p2p_unregister_va(info), 0);
}

static struct kunit_case peer_cases[] = {
	KUNIT_CASE(peer_held),
	KUNIT_CASE(peer_runs),
	KUNIT_CASE(peer_large),
	KUNIT_CASE(peer_refused),
	KUNIT_CASE(peer_revoked),
	KUNIT_CASE(peer_device_goes),
	KUNIT_CASE(peer_orphan),
	KUNIT_CASE(peer_waits),
	KUNIT_CASE(peer_device_waits),
	{}
};

static struct kunit_suite peer_suite = {
	.name = "neuron_peers",
	.init = peer_init,
	.exit = peer_finish,
	.test_cases = peer_cases,
};

kunit_test_suite(peer_suite);

// SPDX-License-Identifier: GPL-2.0-only
/* Host memory of a device with a parent: what the DMA API gives, and what is refused. */
#include <kunit/test.h>
#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/module.h>

#define neuron_device_enter		host_device_enter
#define neuron_device_exit		host_device_exit
#define neuron_limit_charge_host	host_charge
#define neuron_limit_uncharge_host	host_uncharge

#include "../../kmod/base/client.h"
#include "../../kmod/base/device.h"
#include "../../kmod/base/hw.h"
#include "../../kmod/mem/failure.h"
#include "../../kmod/mem/host.h"
#include "../../kmod/mem/limit.h"

#define WINDOW		BIT_ULL(44)
#define DMA_BASE	0x123450000ULL

/* How the pages of a table are mapped: one behind the other, with a hole, not at all. */
enum host_mode { HOST_ROW, HOST_HOLE, HOST_FAILS };

static struct {
	struct device parent;
	struct neuron_geometry geo;
	struct neuron_device nd;
	struct neuron_client client;
	enum host_mode mode;
	u64 base;
	unsigned long boundary;
	bool sync, gone, capped;
	/* What is held: all 0 in the end. */
	int pages, mapped, inside;
	u64 charged;
	int unpinned;
	u32 largest;		/* order */
} host;

bool host_device_enter(struct neuron_device *nd, int *idx)
{
	host.inside += !host.gone;
	return !host.gone;
}

void host_device_exit(struct neuron_device *nd, int idx)
{
	host.inside--;
}

bool host_charge(struct neuron_client *client, u64 bytes, u64 *limit)
{
	host.charged += host.capped ? 0 : bytes;
	return !host.capped;
}

void host_uncharge(struct neuron_client *client, u64 bytes)
{
	host.charged -= bytes;
}

static struct page *host_take(gfp_t gfp, unsigned int order)
{
	struct page *page = alloc_pages(gfp, order);

	host.pages += page ? 1 << order : 0;
	host.largest = max(host.largest, order);
	return page;
}

static void host_give(struct page *page)
{
	/* Nobody but the chunk has it. */
	host.pages -= page_ref_count(page);
	__free_page(page);
}

static int host_map(struct device *dev, struct sg_table *table, enum dma_data_direction dir,
		    unsigned long attrs)
{
	u64 addr = host.base;
	struct scatterlist *sg;
	unsigned int i;

	if (host.mode == HOST_FAILS || !host.inside)
		return -EIO;
	for_each_sgtable_sg(table, sg, i) {
		sg_dma_address(sg) = addr;
		sg_dma_len(sg) = sg->length;
		addr += sg->length + (host.mode == HOST_HOLE ? PAGE_SIZE : 0);
	}
	table->nents = table->orig_nents;
	host.mapped++;
	return 0;
}

static void host_unmap(struct device *dev, struct sg_table *table, enum dma_data_direction dir,
		       unsigned long attrs)
{
	host.mapped--;
}

static void host_unpin(struct page **pages, unsigned long n, bool dirty)
{
	host.unpinned += n;
}

#undef alloc_pages
#undef __free_page
#define alloc_pages(gfp, order)			host_take(gfp, order)
#define __free_page(page)			host_give(page)
#define dma_map_sgtable				host_map
#define dma_unmap_sgtable			host_unmap
#define dma_get_merge_boundary(dev)		((void)(dev), host.boundary)
#define dma_need_sync(dev, addr)		((void)(dev), (void)(addr), host.sync)
#define unpin_user_pages_dirty_lock		host_unpin

#include "../../kmod/mem/host.c"

static int host_init(struct kunit *test)
{
	memset(&host, 0, sizeof(host));
	host.base = DMA_BASE;
	host.geo.host_window = WINDOW;
	host.nd.geo = &host.geo;
	host.nd.desc.parent = &host.parent;
	host.client.nd = &host.nd;
	mutex_init(&host.nd.host_lock);
	mt_init_flags(&host.nd.host_pages, MT_FLAGS_ALLOC_RANGE | MT_FLAGS_USE_RCU);
	return 0;
}

static void host_exit(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, host.pages, 0);
	KUNIT_EXPECT_EQ(test, host.mapped, 0);
	KUNIT_EXPECT_EQ(test, host.inside, 0);
	KUNIT_EXPECT_EQ(test, host.charged, 0ULL);
	KUNIT_EXPECT_TRUE(test, mtree_empty(&host.nd.host_pages));
	mtree_destroy(&host.nd.host_pages);
}

static int host_alloc(struct neuron_chunk *chunk, u32 pages)
{
	struct neuron_failure why;

	memset(chunk, 0, sizeof(*chunk));
	chunk->host = true;
	chunk->client = &host.client;
	chunk->size = (u64)pages << PAGE_SHIFT;
	return neuron_host_alloc(&host.nd, chunk, &why);
}

static void host_free(struct neuron_chunk *chunk)
{
	neuron_host_free(&host.nd, chunk);
	host_uncharge(&host.client, chunk->size);
}

/* Without an IOMMU that joins pages they are neighbours, and each can be held by itself. */
static void host_one_block(struct kunit *test)
{
	static const u32 sizes[] = { 1, 2, 3, 5, 16, 33 };
	struct neuron_chunk chunk;
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		KUNIT_ASSERT_EQ(test, host_alloc(&chunk, sizes[i]), 0);
		KUNIT_EXPECT_EQ(test, host.pages, (int)sizes[i]);
		KUNIT_EXPECT_EQ(test, chunk.addr, WINDOW | DMA_BASE);
		for (k = 0; k < sizes[i]; k++) {
			KUNIT_EXPECT_EQ(test, page_to_pfn(chunk.pages[k]),
					page_to_pfn(chunk.pages[0]) + k);
			KUNIT_EXPECT_EQ(test, page_ref_count(chunk.pages[k]), 1);
			KUNIT_EXPECT_PTR_EQ(test, &chunk, (struct neuron_chunk *)
					    mtree_load(&host.nd.host_pages,
						       (DMA_BASE >> PAGE_SHIFT) + k));
		}
		KUNIT_EXPECT_NULL(test, mtree_load(&host.nd.host_pages,
						   (DMA_BASE >> PAGE_SHIFT) + k));
		host_free(&chunk);
	}
	KUNIT_EXPECT_EQ(test, host.largest, 6U);
}

static void host_joined(struct kunit *test)
{
	struct neuron_chunk chunk;

	host.boundary = PAGE_SIZE - 1;
	/* Only asked of a device that sees the memory as it is. */
	host.sync = true;
	KUNIT_ASSERT_EQ(test, host_alloc(&chunk, 37), 0);
	KUNIT_EXPECT_EQ(test, host.largest, 0U);
	KUNIT_EXPECT_EQ(test, chunk.addr, WINDOW | DMA_BASE);
	host_free(&chunk);
	/* It joins what is larger than a page only. */
	host.boundary = 16 * PAGE_SIZE - 1;
	host.sync = false;
	KUNIT_ASSERT_EQ(test, host_alloc(&chunk, 37), 0);
	KUNIT_EXPECT_EQ(test, host.largest, 6U);
	host_free(&chunk);
}

static void host_refused(struct kunit *test)
{
	struct neuron_chunk chunk, other;

	host.mode = HOST_FAILS;
	KUNIT_EXPECT_EQ(test, host_alloc(&chunk, 4), -ENOMEM);
	host.mode = HOST_ROW;
	host.base = WINDOW - 3 * PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, host_alloc(&chunk, 4), -EIO);
	KUNIT_ASSERT_EQ(test, host_alloc(&chunk, 3), 0);
	host_free(&chunk);
	host.base = WINDOW;
	KUNIT_EXPECT_EQ(test, host_alloc(&chunk, 1), -EIO);
	host.base = DMA_BASE;
	host.sync = true;
	KUNIT_EXPECT_EQ(test, host_alloc(&chunk, 1), -EIO);
	host.sync = false;
	host.capped = true;
	KUNIT_EXPECT_EQ(test, host_alloc(&chunk, 1), -ENOMEM);
	host.capped = false;
	/* An address that is in use. */
	KUNIT_ASSERT_EQ(test, host_alloc(&other, 2), 0);
	host.base += PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, host_alloc(&chunk, 1), -ENOMEM);
	KUNIT_EXPECT_EQ(test, host.mapped, 1);
	host_free(&other);
}

/* Pages of a process that are no range of the device go back as they were. */
static void host_user_pages(struct kunit *test)
{
	struct page **pages = kvmalloc_array(3, sizeof(*pages), GFP_KERNEL);
	struct page *block = host_take(GFP_KERNEL, 2);
	struct neuron_chunk chunk = {
		.host = true, .kind = NEURON_CHUNK_PINNED, .client = &host.client,
		.size = 2 * PAGE_SIZE,
	};

	KUNIT_ASSERT_NOT_NULL(test, pages);
	KUNIT_ASSERT_NOT_NULL(test, block);
	chunk.pages = pages;
	pages[0] = block;
	pages[1] = block + 2;
	KUNIT_EXPECT_EQ(test, neuron_host_map(&host.nd, &chunk), -ENOMEM);
	KUNIT_EXPECT_EQ(test, host.mapped, 0);
	/* An IOMMU could join them, but does not. */
	host.boundary = PAGE_SIZE - 1;
	host.mode = HOST_HOLE;
	KUNIT_EXPECT_EQ(test, neuron_host_map(&host.nd, &chunk), -ENOMEM);
	KUNIT_EXPECT_EQ(test, host.mapped, 0);
	host.mode = HOST_ROW;
	KUNIT_EXPECT_EQ(test, neuron_host_map(&host.nd, &chunk), 0);
	KUNIT_EXPECT_EQ(test, host.mapped, 1);
	neuron_host_free(&host.nd, &chunk);
	KUNIT_EXPECT_EQ(test, host.unpinned, 2);
	__free_pages(block, 2);
	host.pages -= 4;
}

/* The device goes: its view ends, the memory does not. */
static void host_detached(struct kunit *test)
{
	static struct neuron_chunk a, b, c;	/* too large for the stack */

	KUNIT_ASSERT_EQ(test, host_alloc(&a, 3), 0);
	host.base += 16 * PAGE_SIZE;
	KUNIT_ASSERT_EQ(test, host_alloc(&b, 1), 0);
	KUNIT_EXPECT_EQ(test, host.mapped, 2);
	host.gone = true;
	neuron_host_detach(&host.nd);
	KUNIT_EXPECT_EQ(test, host.mapped, 0);
	KUNIT_EXPECT_EQ(test, host.pages, 4);
	host.base += 16 * PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, host_alloc(&c, 1), -ENODEV);
	host_free(&a);
	host_free(&b);
}

/* A software device chooses the addresses itself, whatever the pages. */
static void host_without_parent(struct kunit *test)
{
	struct neuron_chunk a, b;

	host.nd.desc.parent = NULL;
	host.mode = HOST_FAILS;
	KUNIT_ASSERT_EQ(test, host_alloc(&a, 3), 0);
	KUNIT_ASSERT_EQ(test, host_alloc(&b, 1), 0);
	KUNIT_EXPECT_EQ(test, host.largest, 0U);
	KUNIT_EXPECT_EQ(test, a.addr, WINDOW | PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, b.addr, WINDOW | 4 * PAGE_SIZE);
	neuron_host_detach(&host.nd);
	host_free(&a);
	host_free(&b);
}

static struct kunit_case host_cases[] = {
	KUNIT_CASE(host_one_block),
	KUNIT_CASE(host_joined),
	KUNIT_CASE(host_refused),
	KUNIT_CASE(host_user_pages),
	KUNIT_CASE(host_detached),
	KUNIT_CASE(host_without_parent),
	{}
};

static struct kunit_suite host_suite = {
	.name = "neuron_host",
	.init = host_init,
	.exit = host_exit,
	.test_cases = host_cases,
};
kunit_test_suite(host_suite);

MODULE_LICENSE("GPL");

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's allocators as participants of the benchmark. Each is used in the
 * way that suits it best: the GPU buddy is asked for contiguous blocks as drivers
 * do it, and for scattered ones, which it is made for; genalloc with its two
 * general algorithms; drm_mm in the mode that fragments least.
 */
#undef CONFIG_DEBUG_LIST
#include <linux/gpu_buddy.h>
#include <linux/genalloc.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <drm/drm_mm.h>
#include "bench.h"

/* Other names than the kernel's own copies, see Kbuild. */
int bench_gpu_buddy_module_init(void);
void bench_gpu_buddy_module_exit(void);

/* --- GPU buddy ------------------------------------------------------------- */

struct gpu_block {
	struct list_head list;
};

static void *gpu_create(u64 size)
{
	struct gpu_buddy *mm = kzalloc(sizeof(*mm), GFP_KERNEL);

	if (mm && gpu_buddy_init(mm, size, SZ_4K)) {
		kfree(mm);
		return NULL;
	}
	return mm;
}

static void gpu_destroy(void *zone)
{
	gpu_buddy_fini(zone);
	kfree(zone);
}

/*
 * Contiguous requests get the size they ask for. The alignment that a driver
 * wants is given as the minimum block size, of which the size must be a
 * multiple; then it is trimmed, as drivers do.
 */
static int gpu_alloc(struct gpu_buddy *mm, u64 size, u64 align, struct bench_block *block,
		     unsigned long flags)
{
	struct gpu_block *b = (struct gpu_block *)block->priv;
	u64 rounded = ALIGN(size, align);
	int err;

	INIT_LIST_HEAD(&b->list);
	err = gpu_buddy_alloc_blocks(mm, 0, mm->size, rounded, align, &b->list, flags);
	if (!err && rounded != size && flags & GPU_BUDDY_CONTIGUOUS_ALLOCATION)
		gpu_buddy_block_trim(mm, NULL, size, &b->list);
	return err;
}

static int gpu_alloc_contiguous(void *zone, u64 size, u64 align, struct bench_block *block)
{
	return gpu_alloc(zone, size, align, block, GPU_BUDDY_CONTIGUOUS_ALLOCATION);
}

static int gpu_alloc_scattered(void *zone, u64 size, u64 align, struct bench_block *block)
{
	return gpu_alloc(zone, size, align, block, 0);
}

static void gpu_free(void *zone, struct bench_block *block)
{
	struct gpu_block *b = (struct gpu_block *)block->priv;

	gpu_buddy_free_list(zone, &b->list, 0);
}

/* The list head moves with the block: link its neighbours to the new place. */
static void gpu_moved(struct bench_block *block)
{
	struct gpu_block *b = (struct gpu_block *)block->priv;

	b->list.next->prev = &b->list;
	b->list.prev->next = &b->list;
}

static u64 gpu_nodes(struct gpu_buddy_block *block)
{
	struct gpu_buddy_block *up;
	u64 n = 0;

	/* Walk without recursion: down to the left, then up and right. */
	for (up = block->parent; block && block != up; ) {
		n++;
		if (gpu_buddy_block_is_split(block)) {
			block = block->left;
			continue;
		}
		while (block->parent != up && block->parent && block == block->parent->right)
			block = block->parent;
		if (block->parent == up || !block->parent)
			break;
		block = block->parent->right;
	}
	return n;
}

static u64 gpu_metadata(void *zone)
{
	struct gpu_buddy *mm = zone;
	u64 n = 0;
	unsigned int i;

	for (i = 0; i < mm->n_roots; i++)
		n += gpu_nodes(mm->roots[i]);
	return sizeof(*mm) + n * sizeof(struct gpu_buddy_block);
}

static const struct bench_peer gpu_contiguous = {
	.name = "gpu_buddy-contiguous",
	.create = gpu_create,
	.destroy = gpu_destroy,
	.alloc = gpu_alloc_contiguous,
	.free = gpu_free,
	.moved = gpu_moved,
	.metadata = gpu_metadata,
};

static const struct bench_peer gpu_scattered = {
	.name = "gpu_buddy-scattered",
	.create = gpu_create,
	.destroy = gpu_destroy,
	.alloc = gpu_alloc_scattered,
	.free = gpu_free,
	.moved = gpu_moved,
	.metadata = gpu_metadata,
	.scattered = true,
};

/* --- genalloc -------------------------------------------------------------- */

/* Address 0 means failure: the chunk starts high. */
#define GEN_BASE	(1UL << 40)

static void *gen_create(u64 size, genpool_algo_t algo)
{
	struct gen_pool *pool = gen_pool_create(12, -1);

	if (!pool)
		return NULL;
	gen_pool_set_algo(pool, algo, NULL);
	if (gen_pool_add(pool, GEN_BASE, size, -1)) {
		gen_pool_destroy(pool);
		return NULL;
	}
	return pool;
}

static void *gen_create_first(u64 size)
{
	return gen_create(size, gen_pool_first_fit);
}

static void *gen_create_best(u64 size)
{
	return gen_create(size, gen_pool_best_fit);
}

static void gen_destroy(void *zone)
{
	gen_pool_destroy(zone);
}

static int gen_alloc(void *zone, u64 size, u64 align, struct bench_block *block)
{
	struct genpool_data_align data = { .align = (int)align };

	/* Only the aligned variant of first fit knows alignments. */
	block->priv[0] = align > SZ_4K ?
		gen_pool_alloc_algo(zone, size, gen_pool_first_fit_align, &data) :
		gen_pool_alloc(zone, size);
	return block->priv[0] ? 0 : -ENOSPC;
}

static void gen_free(void *zone, struct bench_block *block)
{
	gen_pool_free(zone, block->priv[0], block->size);
}

static u64 gen_metadata(void *zone)
{
	return sizeof(struct gen_pool) + sizeof(struct gen_pool_chunk) +
	       BITS_TO_LONGS(gen_pool_size(zone) >> 12) * sizeof(long);
}

static const struct bench_peer gen_first = {
	.name = "genalloc-first-fit",
	.create = gen_create_first,
	.destroy = gen_destroy,
	.alloc = gen_alloc,
	.free = gen_free,
	.metadata = gen_metadata,
	.slow = true,
};

static const struct bench_peer gen_best = {
	.name = "genalloc-best-fit",
	.create = gen_create_best,
	.destroy = gen_destroy,
	.alloc = gen_alloc,
	.free = gen_free,
	.metadata = gen_metadata,
	.slow = true,
};

/* --- drm_mm ----------------------------------------------------------------- */

struct range_zone {
	struct drm_mm mm;
	u64 nodes;
};

static void *range_create(u64 size)
{
	struct range_zone *z = kzalloc(sizeof(*z), GFP_KERNEL);

	if (z)
		drm_mm_init(&z->mm, 0, size);
	return z;
}

static void range_destroy(void *zone)
{
	struct range_zone *z = zone;

	drm_mm_takedown(&z->mm);
	kfree(z);
}

/* As the TTM range manager does it: the node is allocated with the call. */
static int range_alloc(void *zone, u64 size, u64 align, struct bench_block *block)
{
	struct drm_mm_node *node = kzalloc(sizeof(*node), GFP_KERNEL);
	struct range_zone *z = zone;
	int err;

	if (!node)
		return -ENOMEM;
	err = drm_mm_insert_node_in_range(&z->mm, node, size, align, 0, 0, U64_MAX,
					  DRM_MM_INSERT_BEST);
	if (err) {
		kfree(node);
		return err;
	}
	block->priv[0] = (unsigned long)node;
	z->nodes++;
	return 0;
}

static void range_free(void *zone, struct bench_block *block)
{
	struct drm_mm_node *node = (void *)(unsigned long)block->priv[0];
	struct range_zone *z = zone;

	drm_mm_remove_node(node);
	kfree(node);
	z->nodes--;
}

static u64 range_metadata(void *zone)
{
	struct range_zone *z = zone;

	return sizeof(*z) + z->nodes * sizeof(struct drm_mm_node);
}

static const struct bench_peer drm_mm_best = {
	.name = "drm_mm-best",
	.create = range_create,
	.destroy = range_destroy,
	.alloc = range_alloc,
	.free = range_free,
	.metadata = range_metadata,
};

const struct bench_peer *const bench_peers[] = {
	&bench_ours,
	&gpu_contiguous,
	&gpu_scattered,
	&gen_first,
	&gen_best,
	&drm_mm_best,
	&bench_exact_first,
	&bench_exact_best,
	NULL,
};

int bench_peers_start(void)
{
	return bench_gpu_buddy_module_init();
}

void bench_peers_stop(void)
{
	bench_gpu_buddy_module_exit();
}

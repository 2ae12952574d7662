// SPDX-License-Identifier: LGPL-2.1-or-later
/* Paged memory for keys and values: how large, and where from (kv.h). */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "../../common/lock.h"
#include "../device/device.h"
#include "../device/opts.h"
#include "kv.h"
#include "mem.h"

#define KV_BLOCK_TOKENS	64u
#define KV_FRACTION	0.9
/* Host memory comes in pieces that a busy machine has. */
#define KV_HOST_PIECE	(4ull << 20)
#define KV_GIB		((double)(1ull << 30))

void kv_say(struct neuron_kv_pool *pool, const char *format, ...)
{
	char line[160];
	va_list args;

	if (!pool->opts.log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	pool->opts.log(pool->opts.data, line);
}

int kv_refuse(struct neuron_kv_pool *pool)
{
	pool->stats.num_ooms++;
	kv_say(pool, "%s", NEURON_KV_NO_BLOCK);
	return -ENOBUFS;
}

static int options(struct neuron_kv_opts *o, const struct neuron_kv_opts *opts,
		   uint64_t *block_bytes)
{
	int ret = opts_copy(o, sizeof(*o), opts);

	if (ret)
		return ret;
	o->category = o->category ? o->category : NEURON_MEM_TENSORS;
	o->block_tokens = o->block_tokens ? o->block_tokens : KV_BLOCK_TOKENS;
	if (!o->token_bytes || !(o->fraction >= 0 && o->fraction <= 1) ||
	    __builtin_mul_overflow(o->token_bytes, o->block_tokens, block_bytes) ||
	    *block_bytes > 1ull << 48)
		return -EINVAL;
	return 0;
}

/* Who names tokens and no fraction wants all of them. */
static bool exact(const struct neuron_kv_opts *o)
{
	return o->max_tokens && o->fraction == 0;
}

static uint64_t blocks_of(const struct neuron_kv_opts *o, uint64_t tokens)
{
	return tokens / o->block_tokens + (tokens % o->block_tokens != 0);
}

/* Options that were checked. 0: not one block fits; a fraction of less than a token is one. */
static uint64_t plan(const struct neuron_kv_opts *o, uint64_t block_bytes, uint64_t available)
{
	double fraction = exact(o) ? 1 : o->fraction > 0 ? o->fraction : KV_FRACTION;
	uint64_t tokens = (uint64_t)((long double)available * (long double)fraction) /
			  o->token_bytes;

	tokens = MAX(tokens, 1);
	if (o->max_tokens)
		tokens = MIN(tokens, o->max_tokens);
	return MIN(MIN(blocks_of(o, tokens), available / block_bytes), NEURON_KV_MAX_BLOCKS);
}

NEURON_EXPORT int neuron_kv_plan(const struct neuron_kv_opts *opts, uint64_t available,
				 uint64_t *blocks)
{
	struct neuron_kv_opts o;
	uint64_t block_bytes;
	int ret = options(&o, opts, &block_bytes);

	if (ret)
		return ret;
	if (!blocks)
		return -EINVAL;
	*blocks = plan(&o, block_bytes, available);
	return 0;
}

/* Free bytes of the device memory that limits let this process have. */
static int available(struct neuron_kv_pool *pool, struct neuron_hbm_stats *stats, uint64_t *bytes)
{
	int ret = neuron_hbm_get_stats(pool->device, pool->opts.hbm, stats);
	const int32_t index[] = {
		[NEURON_LIMIT_CORE] = (int32_t)pool->opts.nc,
		[NEURON_LIMIT_PROCESS] = 0,
	};

	if (ret)
		return ret;
	*bytes = stats->free;
	for (int i = 0; i < 2; i++) {
		uint64_t limit, used;

		if (!neuron_limit_get(pool->device, (enum neuron_limit_kind)i, index[i], &limit,
				      &used) && limit != NEURON_LIMIT_NONE)
			*bytes = MIN(*bytes, limit > used ? limit - used : 0);
	}
	return 0;
}

static int tier_add(struct neuron_kv_pool *pool, enum kv_side side, uint64_t blocks)
{
	struct kv_tier *tier = &pool->tier[side];
	struct neuron_mem_opts o = {
		.size = sizeof(o), .hbm = pool->opts.hbm, .nc = pool->opts.nc,
		.flags = side == KV_HOST ? NEURON_MEM_F_HOST : 0,
		.category = side == KV_HOST ? NEURON_MEM_HOST_TENSORS : pool->opts.category,
		.failure = pool->opts.failure, .owner = pool->opts.owner,
	};
	struct kv_segment *segment;
	int ret = array_grow((void **)&tier->segment, tier->nr_segments, &tier->max_segments,
			     sizeof(*segment));

	if (ret)
		return mem_no_host(blocks * pool->block_bytes, o.failure);
	segment = &tier->segment[tier->nr_segments];
	ret = neuron_mem_alloc(pool->device, blocks * pool->block_bytes, &o, &segment->mem);
	if (ret)
		return ret;
	segment->address = neuron_mem_address(segment->mem);
	for (uint64_t i = 0; i < blocks; i++)
		tier->frame[tier->nr++] = (struct kv_frame){
			.address = segment->address + i * pool->block_bytes,
			.segment = (uint32_t)tier->nr_segments,
		};
	tier->nr_segments++;
	return 0;
}

static bool has_room(struct neuron_kv_pool *pool, uint64_t blocks)
{
	struct neuron_hbm_stats stats = { .size = sizeof(stats) };
	uint64_t bytes;

	return available(pool, &stats, &bytes) || bytes / pool->block_bytes >= blocks;
}

/* What is told is of one piece, beside those before it, which go back; @largest: before them. */
static void tell_all(const struct neuron_kv_pool *pool, uint64_t blocks, uint64_t largest)
{
	const struct kv_tier *tier = &pool->tier[KV_DEVICE];
	struct neuron_mem_failure *f = pool->opts.failure;

	f->bytes = blocks * pool->block_bytes;
	if (f->reason == NEURON_MEM_REASON_HOST)
		return;
	for (size_t i = 0; i < tier->nr_segments; i++)
		f->free += mem_pages(tier->segment[i].mem);
	f->largest_free = MAX(f->largest_free, largest);
	f->largest_aligned = MAX(f->largest_aligned, largest);
}

/* Blocks of device memory, in as few pieces as there are. */
static int device_tier(struct neuron_kv_pool *pool, uint64_t blocks)
{
	uint64_t want = blocks, largest = 0;
	int ret = 0;

	/*
	 * In pieces, more than there is would take all of that from others until a piece is
	 * refused. It is asked for at once, and the driver says why not. Other pools have more
	 * than they use.
	 */
	if (exact(&pool->opts) && !has_room(pool, blocks) &&
	    !(device_reclaim(pool->device, pool->opts.hbm) && has_room(pool, blocks)))
		return tier_add(pool, KV_DEVICE, blocks);
	while (want && !ret) {
		struct neuron_hbm_stats stats = { .size = sizeof(stats) };
		uint64_t piece;

		ret = neuron_hbm_get_stats(pool->device, pool->opts.hbm, &stats);
		piece = MIN(want, stats.largest_free / pool->block_bytes);
		largest = MAX(largest, stats.largest_free);
		/* What is left is in holes; the driver says so if it is needed. */
		if (!ret && !piece && (exact(&pool->opts) || !pool->tier[KV_DEVICE].nr))
			piece = want;
		if (ret || !piece)
			break;
		ret = tier_add(pool, KV_DEVICE, piece);
		want -= piece;
	}
	if (ret == -ENOMEM && pool->opts.failure)
		tell_all(pool, blocks, largest);
	return ret;
}

static int host_tier(struct neuron_kv_pool *pool, uint64_t blocks)
{
	uint64_t piece = MAX(KV_HOST_PIECE / pool->block_bytes, 1);
	int ret = 0;

	for (; blocks && !ret; blocks -= piece) {
		piece = MIN(piece, blocks);
		ret = tier_add(pool, KV_HOST, piece);
	}
	return ret;
}

/* The lowest number comes out first. */
static void number(struct neuron_kv_pool *pool)
{
	for (int side = 0; side < KV_SIDES; side++) {
		struct kv_tier *tier = &pool->tier[side];

		tier->free = KV_NONE;
		for (uint32_t i = tier->nr; i-- > 0;)
			kv_frame_put(tier, i);
	}
	pool->free_page = KV_NONE;
	for (uint32_t i = pool->nr_pages; i-- > 0;) {
		pool->page[i].next = pool->free_page;
		pool->free_page = i;
	}
	for (unsigned int i = 0; i < KV_PRIORITIES; i++)
		pool->evictable[i].oldest = pool->evictable[i].newest = KV_NONE;
	pool->copy.page = KV_NONE;
}

static void say_sizes(struct neuron_kv_pool *pool, uint64_t host)
{
	const struct kv_tier *tier = &pool->tier[KV_DEVICE];
	const struct neuron_kv_opts *o = &pool->opts;

	kv_say(pool, "Number of blocks in KV cache primary pool: %u", tier->nr);
	kv_say(pool, "Number of blocks in KV cache secondary pool: %llu, onboard blocks to primary "
	       "memory before reuse: true", (unsigned long long)host);
	kv_say(pool, "Max KV cache pages per sequence: %llu",
	       (unsigned long long)(o->max_seq_tokens ? blocks_of(o, o->max_seq_tokens) :
							tier->nr));
	kv_say(pool, "Number of tokens per block: %u.", o->block_tokens);
	kv_say(pool, "[MemUsageChange] Allocated %.2f GiB for max tokens in paged KV cache (%llu).",
	       (double)(tier->nr * pool->block_bytes) / KV_GIB,
	       (unsigned long long)tier->nr * o->block_tokens);
}

/* Tokens that were named are wanted, all of them. */
static int exact_blocks(struct neuron_kv_pool *pool, const struct neuron_hbm_stats *stats,
			uint64_t *blocks)
{
	const struct neuron_kv_opts *o = &pool->opts;
	uint64_t bytes;
	bool too_long;

	*blocks = blocks_of(o, o->max_tokens);
	/* The driver rounds up. */
	too_long = __builtin_mul_overflow(*blocks, pool->block_bytes, &bytes) || bytes > INT64_MAX;
	if (!too_long && *blocks <= NEURON_KV_MAX_BLOCKS)
		return 0;
	if (o->failure)
		*o->failure = (struct neuron_mem_failure){
			.reason = too_long ? NEURON_MEM_REASON_FULL : NEURON_MEM_REASON_NONE,
			.category = o->category,
			.hbm = o->hbm,
			.nc = o->nc,
			.bytes = too_long ? UINT64_MAX : bytes,
			.total = stats->total,
			.free = stats->free,
			.largest_free = stats->largest_free,
			.largest_aligned = stats->largest_free,
		};
	return -ENOMEM;
}

static int fill(struct neuron_kv_pool *pool)
{
	uint64_t bytes, blocks, host = pool->opts.host_bytes / pool->block_bytes;
	struct neuron_hbm_stats stats = { .size = sizeof(stats) };
	int ret = available(pool, &stats, &bytes);

	if (ret)
		return ret;
	host = MIN(host, NEURON_KV_MAX_BLOCKS);
	kv_say(pool, "Memory usage when calculating max tokens in paged kv cache: total: %.2f GiB, "
	       "available: %.2f GiB", (double)stats.total / KV_GIB, (double)bytes / KV_GIB);
	blocks = plan(&pool->opts, pool->block_bytes, bytes);
	if (exact(&pool->opts))
		ret = exact_blocks(pool, &stats, &blocks);
	if (ret)
		return ret;
	/* If there is not room for one, the driver says so. */
	blocks = MAX(blocks, 1);
	/* One more on the host: there a page waits while its frame's next page comes. */
	pool->nr_pages = (uint32_t)(blocks + host);
	pool->page = calloc(pool->nr_pages, sizeof(*pool->page));
	pool->tier[KV_DEVICE].frame = calloc(blocks, sizeof(struct kv_frame));
	pool->tier[KV_HOST].frame = calloc(host + 1, sizeof(struct kv_frame));
	if (!pool->page || !pool->tier[KV_DEVICE].frame || !pool->tier[KV_HOST].frame)
		return mem_no_host(blocks * pool->block_bytes, pool->opts.failure);
	ret = device_tier(pool, blocks);
	if (!ret && host)
		ret = host_tier(pool, host + 1);
	if (ret)
		return ret;
	number(pool);
	say_sizes(pool, host);
	return 0;
}

static void kv_destroy(struct neuron_kv_pool *pool)
{
	for (int side = 0; side < KV_SIDES; side++) {
		struct kv_tier *tier = &pool->tier[side];

		for (size_t i = 0; i < tier->nr_segments; i++)
			neuron_mem_free(tier->segment[i].mem);
		free(tier->segment);
		free(tier->frame);
	}
	device_put(pool->device);
	pthread_mutex_destroy(&pool->lock);
	free(pool->page);
	free(pool);
}

NEURON_EXPORT int neuron_kv_pool_open(struct neuron_device *device,
				      const struct neuron_kv_opts *opts,
				      struct neuron_kv_pool **pool)
{
	struct neuron_kv_opts o;
	struct neuron_kv_pool *p;
	uint64_t block_bytes;
	int ret = options(&o, opts, &block_bytes);

	if (ret)
		return ret;
	if (!pool)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return mem_no_host(0, o.failure);
	p->device = device_get(device);
	p->opts = o;
	p->block_bytes = block_bytes;
	p->nr_users = 1;
	pthread_mutex_init(&p->lock, NULL);
	ret = fill(p);
	if (ret) {
		kv_destroy(p);
		return ret;
	}
	*pool = p;
	return 0;
}

void kv_leave(struct neuron_kv_pool *pool)
{
	bool last;

	pthread_mutex_lock(&pool->lock);
	last = --pool->nr_users == 0;
	if (last)
		kv_settle(pool);
	pthread_mutex_unlock(&pool->lock);
	if (last)
		kv_destroy(pool);
}

NEURON_EXPORT void neuron_kv_pool_close(struct neuron_kv_pool *pool)
{
	if (!pool)
		return;
	/* As neuron_mem_pool_close() of the other kind; sequences still ask for the device. */
	if (device_inherited(pool->device))
		device_put(pool->device);
	else
		kv_leave(pool);
}

NEURON_EXPORT int neuron_kv_pool_get_stats(struct neuron_kv_pool *pool,
					   struct neuron_kv_stats *stats)
{
	const struct kv_tier *device = &pool->tier[KV_DEVICE], *host = &pool->tier[KV_HOST];
	struct neuron_kv_stats out;

	if (!result_valid(stats))
		return -EINVAL;
	GUARD(&pool->lock);
	out = pool->stats;
	out.block_bytes = pool->block_bytes;
	out.block_tokens = pool->opts.block_tokens;
	out.segments = (uint32_t)device->nr_segments;
	out.blocks = device->nr;
	out.free_blocks = device->nr_free;
	out.inactive_blocks = pool->nr_evictable;
	out.active_blocks = device->nr - device->nr_free - pool->nr_evictable;
	out.shared_blocks = pool->nr_shared;
	out.host_blocks = host->nr ? host->nr - 1 : 0;
	out.host_free_blocks = kv_host_room(pool);
	out.reserved_bytes = device->nr * pool->block_bytes;
	out.allocated_bytes = (device->nr - device->nr_free) * pool->block_bytes;
	out.host_reserved_bytes = host->nr * pool->block_bytes;
	result_copy(stats, &out, sizeof(out));
	return 0;
}

NEURON_EXPORT void neuron_kv_pool_reset_peak(struct neuron_kv_pool *pool)
{
	GUARD(&pool->lock);
	pool->stats.allocated_blocks.peak = pool->stats.allocated_blocks.current;
}

NEURON_EXPORT int neuron_kv_pool_evict(struct neuron_kv_pool *pool, uint64_t blocks)
{
	uint64_t nr_free;
	int ret;

	GUARD(&pool->lock);
	nr_free = pool->tier[KV_DEVICE].nr_free;
	if (blocks <= nr_free)
		return 0;
	ret = kv_settle(pool);
	if (ret)
		return ret;
	return kv_make_room(pool, blocks);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Paged memory for keys and values.  A page holds the contents of a block of tokens and is in a
 * frame of one of two tiers, device memory or host memory; sequences list pages.  Pages and
 * frames are numbered, all of them exist from the beginning.
 */
#ifndef NEURON_LIB_KV_H
#define NEURON_LIB_KV_H

#include <pthread.h>

#include <neuron/pool.h>

#include "../../common/util.h"
#include "figure.h"

#define KV_NONE UINT32_MAX
#define KV_PRIORITIES (NEURON_KV_MAX_PRIORITY + 1)

enum kv_side {
	KV_DEVICE,
	KV_HOST,
	KV_SIDES,
};

struct kv_segment {
	struct neuron_mem *mem;
	uint64_t address;
};

struct kv_frame {
	uint64_t address;
	uint32_t segment;
	uint32_t next;		/* free */
};

struct kv_tier {
	struct kv_segment *segment;
	size_t nr_segments, max_segments;
	struct kv_frame *frame;
	uint32_t nr, nr_free, free;
};

struct kv_page {
	uint32_t frame;
	uint32_t refs;		/* sequences; 0: free */
	uint32_t pins;		/* of these, pinned ones */
	/* Free: @next alone.  Evictable: those that go before and after it. */
	uint32_t prev, next;
	uint8_t side;		/* enum kv_side of @frame */
	uint8_t priority;	/* of who unpinned it; shared: the highest one */
};

/* The ends of the list of evictable pages of a priority. */
struct kv_queue {
	uint32_t oldest, newest;
};

/* The copy under way, one at a time, as the core has one. */
struct kv_copy {
	uint32_t page;		/* KV_NONE: none */
	uint32_t frame;		/* where it goes, on the other side */
};

struct neuron_kv_pool {
	pthread_mutex_t lock;	/* all that changes after opening, sequences included */
	struct neuron_device *device;
	struct neuron_kv_opts opts;	/* with the defaults filled in */
	uint64_t block_bytes;
	uint64_t nr_users;	/* its handle and sequences */
	struct kv_tier tier[KV_SIDES];
	struct kv_page *page;
	uint32_t nr_pages, free_page;
	struct kv_queue evictable[KV_PRIORITIES];
	uint64_t some[2];	/* priorities that have an evictable page */
	uint32_t nr_evictable;
	uint32_t nr_shared;
	struct kv_copy copy;
	struct neuron_kv_stats stats;	/* figures and counters; others on demand */
};

struct neuron_kv_seq {
	struct neuron_kv_pool *pool;
	bool pinned;
	uint8_t priority;
	uint64_t tokens;
	/* Pages, and their addresses as they were when it was pinned; grow together. */
	uint32_t *page;
	uint64_t *address;
	size_t nr, max;
};

/* One user less; the last one takes the pool along. */
void kv_leave(struct neuron_kv_pool *pool);

/* From here on under the lock. */

void kv_say(struct neuron_kv_pool *pool, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* No block is free: count it, say it, -ENOBUFS. */
int kv_refuse(struct neuron_kv_pool *pool);

/* Take a frame of a tier that has one, and give it back. */
uint32_t kv_frame_take(struct kv_tier *tier);
void kv_frame_put(struct kv_tier *tier, uint32_t frame);
/* A page for a free frame of device memory, which there must be; it has one reference and pin. */
uint32_t kv_page_new(struct neuron_kv_pool *pool);
void kv_page_get(struct neuron_kv_pool *pool, uint32_t page);
/* Drop a reference; @pinned: a pin with it. */
void kv_page_put(struct neuron_kv_pool *pool, uint32_t page, bool pinned);
void kv_pin(struct neuron_kv_pool *pool, uint32_t page);
/* The priority of what several hold only rises. */
void kv_unpin(struct neuron_kv_pool *pool, uint32_t page, uint8_t priority);
uint64_t kv_address(const struct neuron_kv_pool *pool, uint32_t page);

/* Host frames that evictions may fill; one stays for pages that change places. */
static inline uint32_t kv_host_room(const struct neuron_kv_pool *pool)
{
	uint32_t nr = pool->tier[KV_HOST].nr_free;

	return nr ? nr - 1 : 0;
}

/*
 * Device frames that new pages may fill. When a page has left the device for one that did not
 * come, the host has no frame to spare, and the one that was left is for it.
 */
static inline uint32_t kv_device_room(const struct neuron_kv_pool *pool)
{
	uint32_t nr = pool->tier[KV_DEVICE].nr_free;

	return nr && pool->tier[KV_HOST].nr && !pool->tier[KV_HOST].nr_free ? nr - 1 : nr;
}

/* Memory that has a page of the device in it. */
struct neuron_mem *kv_locate(const struct neuron_kv_pool *pool, uint32_t page, uint64_t *offset);

/* Wait for the copy under way.  Its page is where it was on error. */
int kv_settle(struct neuron_kv_pool *pool);
/*
 * Nothing is under way: evict until @frames of device memory are free, with the one of the last
 * copy, which is not waited for.  -ENOBUFS before anything is done.
 */
int kv_make_room(struct neuron_kv_pool *pool, uint64_t frames);
/*
 * Begin to bring a page to the device, if need be in the place of one that can be evicted;
 * -ENOBUFS.
 */
int kv_onboard(struct neuron_kv_pool *pool, uint32_t page);
/* Copy the contents of a page to a new one, which has one reference and pin. */
int kv_duplicate(struct neuron_kv_pool *pool, uint32_t page, uint32_t *copy);

#endif

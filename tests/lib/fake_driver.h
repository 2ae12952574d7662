/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A driver and its devices in one file, in place of libneuron/src/device/sys.c and
 * discover.c: enough of both doors for the library, with a failure wherever a
 * test wants one.  Memory is counted; DMA and the control instructions happen
 * at once.  Include after cmocka.h, in one file of a test.
 *
 * With FAKE_EXEC compute instructions are executed, by the code of the software device.
 * With FAKE_BUDDY the driver's allocator places device memory; FAKE_HBM_SIZE may be a
 * variable then.
 */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <neuron/neuron.h>

#include "neuron_ioctl.h"
#include "neuron_isa.h"
#include "neuron_native.h"
#include "src/device/sys.h"
#ifdef FAKE_BUDDY
#include "../../kmod/mem/buddy/all.h"
#define FAKE_RESERVED	(16ull << 20)	/* of each HBM */
#define FAKE_BASE	(64ull << 30)	/* as even as those of devices */
#else
#define FAKE_RESERVED	0
#define FAKE_BASE	(1ull << 30)
#endif
#ifdef FAKE_COMPUTE
#include "dma_ref.h"	/* needs -lm -ffp-contract=off */
#ifndef FAKE_COMPUTE_FN
#define FAKE_COMPUTE_FN ref_compute
#endif
#endif
#ifdef FAKE_EXEC
#include "emu/exec.h"
#include "../kunit/exec_run.h"
#endif

#ifndef FAKE_DEVICES
#define FAKE_DEVICES	3
#endif
#define FAKE_CORES	4
#define FAKE_HBMS	2
#define FAKE_ENGINES	16	/* of a core */
#define FAKE_QUEUES	16
#ifndef FAKE_HBM_SIZE
#define FAKE_HBM_SIZE	(24ull << 30)
#endif
#ifndef FAKE_CORE_HBM
#define FAKE_CORE_HBM(core) ((core) * FAKE_HBMS / FAKE_CORES)
#endif
#ifndef FAKE_SBUF
#define FAKE_SBUF	(1u << 20)
#endif
#define FAKE_OWNERS	64
#ifndef FAKE_CHUNKS
#define FAKE_CHUNKS	4096
#endif
#define FAKE_EVENTS	64	/* that it remembers */
/* Handles of imported memory are those of the exporter with this bit. */
#define FAKE_IMPORTED	(1ull << 20)
#define FAKE_FD		1000
#define FAKE_CLAIM_FD	1500	/* and the number of the device; only for writing: claims, looks */
#define FAKE_WINDOW	(1ull << 46)
#define FAKE_DS		(FAKE_WINDOW + 4096)	/* device address of the datastore */
#define FAKE_DS_SIZE	262144u
/* Behind all device memory: addresses of that are never used again. */
#define FAKE_TPB(c)	((1ull << 45) + ((uint64_t)(c) << 32))

struct fake_chunk {
	bool used;		/* has a handle */
	bool host;
	bool movable;
	bool busy;		/* a test wants that it is not freed */
	unsigned int pins;
	unsigned int refs;	/* handle, rings */
	uint64_t address;
	uint64_t bytes;
	uint8_t *data;
	uint32_t hbm, nc, category, owner;
#ifdef FAKE_BUDDY
	struct neuron_buddy_block block;
#endif
};

struct fake_queue {
	bool on;
	struct fake_chunk *ring[2];
	uint32_t slots[2], tail[2], head, rx_head;
};

struct fake_nq {
	bool on;
	struct fake_chunk *chunk;
	uint32_t next, count;
	uint8_t phase;
	int eventfd;
};

struct fake_core {
	bool owned_by_other;
	uint8_t *sbuf;
	uint32_t sem[256], event[256];
	uint8_t *fifo[NEURON_ISA_NR_ENGINES];
	size_t fifo_bytes[NEURON_ISA_NR_ENGINES], fifo_done[NEURON_ISA_NR_ENGINES];
	bool begun[NEURON_ISA_NR_ENGINES];	/* in the trace */
	struct fake_nq nq[6][16];
	unsigned int resets;
};

/* An asynchronous copy of a core: the bytes move when it is waited for, not before. */
struct fake_async {
	bool on;
	struct neuron_ioctl_mem_copy_async64 copy;
};

struct fake_device {
	struct fake_async async[FAKE_CORES];
	uint64_t limit[3][FAKE_CORES];
	struct neuron_native_failure failures[NEURON_NATIVE_FAILURES_MAX];
	uint64_t nr_failures;
	unsigned int opens;
	uint64_t ds[FAKE_DS_SIZE / 8];	/* of the only process there is */
	struct fake_chunk chunk[FAKE_CHUNKS];
	unsigned int lowest;	/* no chunk before it is free */
	unsigned int end;	/* all chunks from here on are */
	uint64_t used[FAKE_HBMS], bump[FAKE_HBMS + 1];
	uint64_t by_category[32];
	/* By core; the most since a test set it. */
	uint64_t held[FAKE_CORES][32], most[FAKE_CORES][32];
	char owner[FAKE_OWNERS][NEURON_NATIVE_LABEL_MAX];
	struct neuron_native_event event[FAKE_EVENTS];	/* of all HBMs, by number */
	uint32_t event_hbm[FAKE_EVENTS];
	uint64_t nr_events;
#ifdef FAKE_BUDDY
	struct neuron_buddy *zone[FAKE_HBMS];
#endif
	struct fake_queue queue[FAKE_CORES * FAKE_ENGINES][FAKE_QUEUES];
	struct fake_core core[FAKE_CORES];
};

static struct {
	unsigned int nr_devices;
	struct fake_device dev[FAKE_DEVICES];
	/* The fail_at'th ioctl from now fails, or the fail_at'th with this number. */
	unsigned int fail_at, fail_nr;
	int fail_errno;
	bool sticky;		/* so do all that follow it */
	unsigned int also_nr;	/* with another number; 0: none */
	unsigned int failed;
	/* What a device still had when it was closed: device memory, and handles. */
	uint64_t left_bytes;
	unsigned int left_handles;
	unsigned int calls, calls_nr[256];
	unsigned int mapped;
	bool map_fails, open_fails;
	const char *pretend;		/* marker of a software device, NULL: it is a card */
	const char *(*file)(const char *path);	/* what is in other files, NULL: nothing */
	atomic_bool stuck;	/* engines do not run */
	atomic_uint starts;	/* DMA queues started: a run has begun */
	uint64_t sbuf_bytes;	/* that DMA has written into state buffers */
	uint64_t programmed;	/* and PROGRAM_ENGINE */
	int dma_error;		/* the next queue started stops with this code */
	uint64_t dma_address;	/* and this address */
	enum neuron_native_reason reason;	/* of a full HBM */
	bool no_growing;	/* what follows an allocation is never free */
	bool no_bulk;		/* it allocates and frees one by one only, as those of others do */
	bool has_claims, claims_busy, claimed;
	unsigned int claimed_core;	/* the first one, of all devices */
	uint32_t denied;	/* devices that a control group keeps closed, a bit for each */
	uint32_t arch;
} fake = { .nr_devices = 1, .arch = 3 };

/* ---- one call at a time: the library may make them from several threads --------------- */

static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool fake_locked;

static void fake_enter(void)
{
	pthread_mutex_lock(&fake_lock);
	fake_locked = true;
}

static void fake_leave(void)
{
	fake_locked = false;
	pthread_mutex_unlock(&fake_lock);
}

/*
 * A failed assertion jumps out of the call, or ends the program if the thread is not that of
 * the test.  With the lock held the next call, of another thread, of the teardown or at exit,
 * would wait for ever.
 */
#define fake_assert(cond) \
	do { \
		if (!(cond)) { \
			if (fake_locked) \
				fake_leave(); \
			fail_msg("%s", #cond); \
		} \
	} while (0)

static struct fake_device *fake_dev(int fd)
{
	fake_assert(fd >= FAKE_FD && fd <= FAKE_FD + FAKE_DEVICES - 1);
	return &fake.dev[fd - FAKE_FD];
}

/* ---- memory ------------------------------------------------------------------------ */

static struct fake_chunk *fake_chunk(struct fake_device *d, uint64_t handle)
{
	bool imported = handle & FAKE_IMPORTED;

	handle &= ~FAKE_IMPORTED;
	if (!handle || handle > FAKE_CHUNKS ||
	    !(imported ? d->chunk[handle - 1].refs > 0 : d->chunk[handle - 1].used))
		return NULL;
	return &d->chunk[handle - 1];
}

#ifdef FAKE_BUDDY
static struct neuron_buddy *fake_zone(struct fake_device *d, uint32_t hbm)
{
	struct neuron_buddy **zone = &d->zone[hbm];

	if (!*zone) {
		fake_assert(!neuron_buddy_create(zone, FAKE_HBM_SIZE));
		fake_assert(!neuron_buddy_prepare(*zone));
		fake_assert(!neuron_buddy_reserve(*zone, 0, FAKE_RESERVED));
	}
	fake_assert(!neuron_buddy_prepare(*zone));
	return *zone;
}

/* As the driver does it (kmod/mem/hbm.c). */
static int fake_place(struct fake_device *d, struct neuron_native_mem_alloc *a, uint64_t bytes,
		      struct neuron_buddy_block *block)
{
	const struct neuron_buddy_request req = {
		.size = bytes,
		.align = a->align,
		.addr = a->pa - ((uint64_t)a->hbm << 42) - FAKE_BASE,
		.flags = (a->flags & NEURON_NATIVE_ALLOC_LOW ? NEURON_BUDDY_LOW : 0) |
			 (a->flags & NEURON_NATIVE_ALLOC_HIGH ? NEURON_BUDDY_HIGH : 0) |
			 (a->flags & NEURON_NATIVE_ALLOC_AT ? NEURON_BUDDY_EXACT : 0),
	};
	struct neuron_buddy *zone = fake_zone(d, a->hbm);
	enum neuron_buddy_cause cause;

	if (!neuron_buddy_alloc(zone, &req, block, &cause))
		return 0;
	a->reason = cause == NEURON_BUDDY_CAUSE_FULL ? NEURON_NATIVE_REASON_FULL :
		    cause == NEURON_BUDDY_CAUSE_ALIGNMENT ? NEURON_NATIVE_REASON_ALIGNMENT :
		    NEURON_NATIVE_REASON_FRAGMENTED;
	a->total = FAKE_HBM_SIZE;
	a->free = neuron_buddy_free_bytes(zone);
	a->largest_free = neuron_buddy_largest(zone, 4096);
	a->largest_aligned = neuron_buddy_largest(zone, a->align > 4096 ? a->align : 4096);
	return ENOMEM;
}

static int fake_resize(struct fake_device *d, struct fake_chunk *c, uint64_t bytes)
{
	struct neuron_buddy *zone = fake_zone(d, c->hbm);
	struct neuron_buddy_block tail;

	if (bytes >= c->bytes)
		return neuron_buddy_grow(zone, &c->block, bytes) ? ENOMEM : 0;
	/* What lies in a frame is not shortened. */
	if (neuron_buddy_split(zone, &c->block, bytes, &tail))
		return ENOMEM;
	fake_assert(!neuron_buddy_free(zone, &tail, false));
	return 0;
}
#endif

static uint64_t fake_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void fake_event(struct fake_device *d, const struct fake_chunk *c, uint32_t kind)
{
	uint64_t i = d->nr_events++ % FAKE_EVENTS;

	d->event_hbm[i] = c->hbm;
	d->event[i] = (struct neuron_native_event){
		.seq = d->nr_events, .time = fake_now(), .address = c->address,
		.bytes = c->bytes, .kind = kind, .client = 1, .pid = getpid(),
		.owner = c->owner, .nc_id = c->nc, .mem_type = c->category,
	};
}

static int fake_events(const struct fake_device *d, struct neuron_native_events *a)
{
	struct neuron_native_event *out = (void *)(uintptr_t)a->entries;
	uint64_t from = d->nr_events > FAKE_EVENTS ? d->nr_events - FAKE_EVENTS : 0;
	uint32_t n = 0;

	if (a->hbm >= FAKE_HBMS || a->entry_size != sizeof(*out))
		return EINVAL;
	for (uint64_t i = from > a->since ? from : a->since; i < d->nr_events; i++)
		if (d->event_hbm[i % FAKE_EVENTS] == a->hbm && n < a->count)
			out[n++] = d->event[i % FAKE_EVENTS];
	a->count = n;
	a->last = d->nr_events;
	return 0;
}

static void fake_charge(struct fake_device *d, const struct fake_chunk *c, uint64_t bytes)
{
	uint64_t *held = &d->held[c->nc][c->category], *most = &d->most[c->nc][c->category];

	d->by_category[c->category] += bytes;
	*held += bytes;
	*most = *held > *most ? *held : *most;
}

static void fake_put(struct fake_device *d, struct fake_chunk *c)
{
	if (!c || --c->refs)
		return;
	if (!c->host)
		fake_event(d, c, NEURON_NATIVE_EVENT_FREE);
	munmap(c->data, c->bytes);
	if (!c->host)
		d->used[c->hbm] -= c->bytes;
#ifdef FAKE_BUDDY
	if (!c->host)
		fake_assert(!neuron_buddy_free(fake_zone(d, c->hbm), &c->block, false));
#endif
	fake_charge(d, c, -c->bytes);
	if (d->lowest > (unsigned int)(c - d->chunk))
		d->lowest = (unsigned int)(c - d->chunk);
	memset(c, 0, sizeof(*c));
}

static int fake_alloc(struct fake_device *d, struct neuron_native_mem_alloc *a)
{
	uint64_t bytes, align = a->align ? a->align : 4096;
	uint32_t zone = a->flags & NEURON_NATIVE_ALLOC_HOST ? FAKE_HBMS : a->hbm;
	struct fake_chunk *c;

	fake_assert(a->size == sizeof(*a));
	if (!a->bytes || a->bytes > 1ull << 62 || a->hbm >= FAKE_HBMS || a->nc_id >= FAKE_CORES ||
	    a->mem_type >= NEURON_MEMALLOC_TYPE_MAX || align & (align - 1))
		return EINVAL;
	bytes = (a->bytes + 4095) & ~4095ull;
#ifdef FAKE_BUDDY
	struct neuron_buddy_block block = { 0 };

	if (zone < FAKE_HBMS && fake_place(d, a, bytes, &block))
		return ENOMEM;
#endif
	if (zone < FAKE_HBMS && (bytes > FAKE_HBM_SIZE - d->used[zone] || fake.reason)) {
		a->reason = fake.reason ? fake.reason : NEURON_NATIVE_REASON_FULL;
		a->total = FAKE_HBM_SIZE;
		a->free = a->largest_free = a->largest_aligned = FAKE_HBM_SIZE - d->used[zone];
		return ENOMEM;
	}
	while (d->lowest < FAKE_CHUNKS && d->chunk[d->lowest].refs)
		d->lowest++;
	fake_assert(d->lowest < FAKE_CHUNKS);
	c = &d->chunk[d->lowest];
	a->mem_handle = d->lowest + 1;
	if (d->end <= d->lowest)
		d->end = d->lowest + 1;
	/* Addresses are never used again: what is stale leads nowhere. */
	d->bump[zone] = (d->bump[zone] + align - 1) & ~(align - 1);
	c->address = d->bump[zone] + (zone == FAKE_HBMS ? FAKE_WINDOW : (uint64_t)zone << 42) +
		     FAKE_BASE;
	d->bump[zone] += bytes;
#ifdef FAKE_BUDDY
	c->block = block;
	if (zone < FAKE_HBMS)
		c->address = block.addr + ((uint64_t)zone << 42) + FAKE_BASE;
#endif
	/* Room to grow into. */
	if (a->mem_type == NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE)
		d->bump[zone] += FAKE_HBM_SIZE;
	c->data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	fake_assert(c->data != MAP_FAILED);
	c->used = true;
	c->refs = 1;
	c->host = zone == FAKE_HBMS;
	c->bytes = bytes;
	c->hbm = a->hbm;
	c->nc = a->nc_id;
	c->category = a->mem_type;
	c->owner = a->owner;
	if (!c->host)
		d->used[zone] += bytes;
	fake_charge(d, c, bytes);
	c->movable = a->flags & NEURON_NATIVE_ALLOC_MOVABLE;
	a->pa = a->mmap_offset = c->movable ? 0 : c->address;
	if (!c->host)
		fake_event(d, c, NEURON_NATIVE_EVENT_ALLOC);
	return 0;
}

static int fake_pin(struct fake_device *d, struct neuron_native_mem_pin *p)
{
	struct fake_chunk *c = fake_chunk(d, p->mem_handle);

	fake_assert(p->size == sizeof(*p));
	if (!c)
		return ENOENT;
	c->pins++;
	p->pa = p->mmap_offset = c->address;
	return 0;
}

static int fake_unpin(struct fake_device *d, struct neuron_native_mem_unpin *p)
{
	struct fake_chunk *c = fake_chunk(d, p->mem_handle);

	fake_assert(p->size == sizeof(*p));
	if (!c)
		return ENOENT;
	return c->pins ? c->pins--, 0 : EINVAL;
}

/* All that can move moves, to addresses that were never used. */
static int fake_compact(struct fake_device *d, struct neuron_native_mem_compact *m)
{
	fake_assert(m->size == sizeof(*m));
	fake_assert(!(m->flags || m->moves || m->moved_bytes || m->largest));
	if (m->hbm >= FAKE_HBMS || m->align & (m->align - 1))
		return EINVAL;
	for (unsigned int i = 0; i < d->end; i++) {
		struct fake_chunk *c = &d->chunk[i];

		if (!c->used || c->refs > 1 || !c->movable || c->pins || c->hbm != m->hbm)
			continue;
		c->address = d->bump[m->hbm] + ((uint64_t)m->hbm << 42) + FAKE_BASE;
		d->bump[m->hbm] += c->bytes;
		m->moves++;
		m->moved_bytes += c->bytes;
		fake.reason = NEURON_NATIVE_REASON_NONE;
	}
	/* As the driver: what surely begins at a multiple. */
	m->largest = FAKE_HBM_SIZE - d->used[m->hbm] - (m->align > 4096 ? m->align - 4096 : 0);
	return 0;
}

static int fake_grow(struct fake_device *d, struct neuron_native_mem_grow *g)
{
	struct fake_chunk *c = fake_chunk(d, g->mem_handle);
	uint64_t bytes = (g->bytes + 4095) & ~4095ull, more;

	fake_assert(g->size == sizeof(*g));
	if (!c)
		return ENOENT;
	if (g->flags == NEURON_NATIVE_GROW_SHRINK ? c->host || !bytes || bytes > c->bytes :
						    g->flags || c->host || bytes < c->bytes)
		return EINVAL;
	more = bytes - c->bytes;
	if (!g->flags && (fake.no_growing || more > FAKE_HBM_SIZE - d->used[c->hbm])) {
		g->reason = fake.no_growing ? NEURON_NATIVE_REASON_FRAGMENTED :
					      NEURON_NATIVE_REASON_FULL;
		g->total = FAKE_HBM_SIZE;
		g->free = g->largest_free = FAKE_HBM_SIZE - d->used[c->hbm];
		return ENOMEM;
	}
#ifdef FAKE_BUDDY
	if (fake_resize(d, c, bytes)) {
		g->reason = NEURON_NATIVE_REASON_FRAGMENTED;
		return ENOMEM;
	}
#endif
	c->data = mremap(c->data, c->bytes, bytes, MREMAP_MAYMOVE);
	fake_assert(c->data != MAP_FAILED);
	c->bytes = bytes;
	d->used[c->hbm] += more;
	fake_charge(d, c, more);
	return 0;
}

/* A file that says what it stands for. */
static int fake_export(struct fake_device *d, struct neuron_native_mem_export *e)
{
	const uint64_t what[2] = { (uint64_t)(d - fake.dev), e->mem_handle };

	fake_assert(e->size == sizeof(*e));
	if (!fake_chunk(d, e->mem_handle))
		return ENOENT;
	e->fd = memfd_create("fake-dma-buf", MFD_CLOEXEC);
	fake_assert(write(e->fd, what, sizeof(what)) == sizeof(what));
	return 0;
}

static int fake_import(struct fake_device *d, struct neuron_native_mem_import *i)
{
	struct fake_chunk *c;
	uint64_t what[2];

	fake_assert(i->size == sizeof(*i));
	if (pread(i->fd, what, sizeof(what), 0) != sizeof(what))
		return EINVAL;
	if (what[0] != (uint64_t)(d - fake.dev))
		return EXDEV;
	c = fake_chunk(d, what[1]);
	if (!c)
		return ENOENT;
	c->refs++;
	i->mem_handle = what[1] | FAKE_IMPORTED;
	i->pa = i->mmap_offset = c->address;
	i->bytes = c->bytes;
	i->host = c->host;
	return 0;
}

static int fake_free(struct fake_device *d, uint64_t handle)
{
	struct fake_chunk *c = fake_chunk(d, handle);

	if (handle & FAKE_IMPORTED) {
		fake_put(d, &d->chunk[(handle & ~FAKE_IMPORTED) - 1]);
		return 0;
	}
	if (!c)
		return ENOENT;
	if (c->busy)
		return EBUSY;
	c->used = false;
	fake_put(d, c);
	return 0;
}

/* All of them or none, as the driver does it (kmod/mem/chunk.c). */
static int fake_alloc_bulk(struct fake_device *d, struct neuron_native_mem_alloc_bulk *b)
{
	struct neuron_native_mem_bulk_entry *e = (void *)(uintptr_t)b->entries;
	struct neuron_native_mem_alloc a[NEURON_NATIVE_BULK_MAX];
	uint64_t bump[FAKE_HBMS + 1];
	uint32_t i = 0;
	int ret = 0;

	if (fake.no_bulk)
		return ENOTTY;
	memcpy(bump, d->bump, sizeof(bump));
	fake_assert(b->size == sizeof(*b));
	fake_assert(b->entry_size == sizeof(*e));
	fake_assert(b->count >= 1 && b->count <= NEURON_NATIVE_BULK_MAX);
	fake_assert(!(b->flags & NEURON_NATIVE_ALLOC_AT));
	while (i < b->count && !ret) {
		a[i] = (struct neuron_native_mem_alloc){
			.size = sizeof(a[i]), .flags = b->flags, .bytes = e[i].bytes,
			.align = e[i].align, .hbm = b->hbm, .nc_id = b->nc_id,
			.mem_type = b->mem_type, .owner = b->owner,
		};
		ret = fake_alloc(d, &a[i]);
		i += !ret;
	}
	if (ret) {
		b->failed = i;
		b->reason = a[i].reason;
		b->total = a[i].total;
		b->free = a[i].free;
		b->largest_free = a[i].largest_free;
		b->largest_aligned = a[i].largest_aligned;
	}
	while (ret && i--)
		fake_assert(!fake_free(d, a[i].mem_handle));
	/* Nobody has seen those addresses. */
	if (ret)
		memcpy(d->bump, bump, sizeof(bump));
	for (i = 0; i < b->count && !ret; i++) {
		e[i].mem_handle = a[i].mem_handle;
		e[i].pa = a[i].pa;
	}
	return ret;
}

static int fake_free_bulk(struct fake_device *d, const struct neuron_native_mem_free_bulk *b)
{
	const uint64_t *handles = (void *)(uintptr_t)b->handles;

	if (fake.no_bulk)
		return ENOTTY;
	fake_assert(b->size == sizeof(*b));
	fake_assert(!(b->flags || b->__reserved));
	fake_assert(b->count >= 1 && b->count <= NEURON_NATIVE_BULK_MAX);
	for (uint32_t i = 0; i < b->count; i++)
		if (!(handles[i] & FAKE_IMPORTED)) {
			const struct fake_chunk *c = fake_chunk(d, handles[i]);

			if (!c || c->busy)
				return c ? EBUSY : ENOENT;
		}
	for (uint32_t i = 0; i < b->count; i++)
		fake_assert(!fake_free(d, handles[i]));
	return 0;
}

/* State buffers are made when one is touched, and go at a reset: most tests touch none. */
static uint8_t *fake_sbuf(struct fake_device *d, unsigned int core)
{
	struct fake_core *c = &d->core[core];

	if (!c->sbuf)
		c->sbuf = calloc(1, FAKE_SBUF);
	fake_assert(c->sbuf);
	return c->sbuf;
}

/* Device address to memory of the test; registers of cores are not memory. */
static uint8_t *fake_memory(struct fake_device *d, uint64_t address, uint64_t bytes)
{
	for (unsigned int i = 0; i < d->end; i++) {
		struct fake_chunk *c = &d->chunk[i];

		if (c->refs && (!c->movable || c->pins) && address >= c->address && address - c->address < c->bytes)
			return bytes <= c->bytes - (address - c->address) ?
			       c->data + (address - c->address) : NULL;
	}
	for (unsigned int i = 0; i < FAKE_CORES; i++)
		if (address >= FAKE_TPB(i) && address - FAKE_TPB(i) < FAKE_SBUF &&
		    bytes <= FAKE_SBUF - (address - FAKE_TPB(i)))
			return fake_sbuf(d, i) + (address - FAKE_TPB(i));
	return NULL;
}

/* Device memory in use, all devices: what must be back at the end. */
static inline uint64_t fake_used(void)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < FAKE_DEVICES; i++)
		for (unsigned int k = 0; k < FAKE_HBMS; k++)
			sum += fake.dev[i].used[k];
	return sum;
}

/* ---- notification queues ----------------------------------------------------------- */

static void fake_nq_drop(struct fake_device *d, struct fake_nq *nq)
{
	if (!nq->on)
		return;
	fake_put(d, nq->chunk);
	memset(nq, 0, sizeof(*nq));
}

static void fake_post(struct fake_device *d, unsigned int core, unsigned int type,
		      unsigned int engine, struct neuron_isa_notice n)
{
	struct fake_nq *nq = &d->core[core].nq[type][engine];
	const uint64_t one = 1;

	if (!nq->on)
		return;
	n.phase |= nq->phase;
	((struct neuron_isa_notice *)nq->chunk->data)[nq->next] = n;
	if (++nq->next == nq->count) {
		nq->next = 0;
		nq->phase ^= 1;
	}
	if (nq->eventfd >= 0)
		fake_assert(write(nq->eventfd, &one, sizeof(one)) == sizeof(one));
}

/* An entry of a trace, with the time; the last one of a queue counts what does not fit. */
static void fake_trace(struct fake_device *d, unsigned int core, unsigned int type,
		       unsigned int engine, struct neuron_isa_notice n)
{
	struct fake_nq *nq = &d->core[core].nq[type][engine];
	struct neuron_isa_notice *e;

	if (!nq->on)
		return;
	n.data = htole64(fake_now());
	n.phase |= 1;
	if (nq->next < nq->count - 1) {
		((struct neuron_isa_notice *)nq->chunk->data)[nq->next++] = n;
		return;
	}
	e = (struct neuron_isa_notice *)nq->chunk->data + nq->next;
	e->kind = NEURON_ISA_NOTICE_LOST;
	e->phase = 1;
	e->data = htole64(le64toh(e->data) + 1);
}

static void fake_trace_semaphore(struct fake_device *d, unsigned int core, uint32_t index,
				 uint8_t by)
{
	const struct neuron_isa_notice n = {
		.id = htole32(d->core[core].sem[index]),
		.engine = by,
		.kind = NEURON_ISA_NOTICE_SEMAPHORE,
		.code = (uint8_t)index,
	};

	fake_trace(d, core, NQ_TYPE_EVENT, 0, n);
}

static int fake_nq_init(struct fake_device *d,
			struct neuron_ioctl_notifications_init_with_realloc_v2 *a)
{
	struct neuron_native_mem_alloc alloc = {
		.size = sizeof(alloc),
		.flags = a->on_host_memory ? NEURON_NATIVE_ALLOC_HOST : 0,
		.bytes = a->size,
		.nc_id = a->nq_dev_id,
		.hbm = a->on_host_memory ? 0 : a->dram_channel,
		.mem_type = a->on_host_memory ? NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST :
						NEURON_MEMALLOC_TYPE_NOTIFICATION_DEVICE,
	};
	struct fake_nq *nq;
	int eventfd = -1, ret;

	if (a->nq_dev_id >= FAKE_CORES || a->nq_type >= 6 || a->engine_index >= 16 ||
	    a->nq_dev_type || a->size & (a->size - 1))
		return EINVAL;
	if (d->core[a->nq_dev_id].owned_by_other)
		return EBUSY;
	nq = &d->core[a->nq_dev_id].nq[a->nq_type][a->engine_index];
	if (nq->on) {
		eventfd = nq->eventfd;
		/* Replaced: the handle of the old memory goes. */
		if (nq->chunk->used) {
			nq->chunk->used = false;
			fake_put(d, nq->chunk);
		}
	}
	fake_nq_drop(d, nq);
	ret = fake_alloc(d, &alloc);
	if (ret)
		return ret;
	nq->on = true;
	/* One reference for the handle, one for the queue. */
	nq->chunk = fake_chunk(d, alloc.mem_handle);
	nq->chunk->refs++;
	nq->count = a->size / 16;
	nq->phase = 1;
	nq->eventfd = eventfd;
	a->mmap_offset = a->on_host_memory ? alloc.pa : UINT64_MAX;
	a->mem_handle = alloc.mem_handle;
	return 0;
}

/* ---- DMA and engines --------------------------------------------------------------- */

static void fake_run_core(struct fake_device *d, unsigned int core);

static void fake_dma_stop(struct fake_device *d, unsigned int eng, unsigned int q, uint32_t done,
			  uint8_t code, uint64_t address)
{
	struct neuron_isa_notice n = {
		.id = htole32(done),
		.engine = (uint8_t)eng,
		.kind = NEURON_ISA_NOTICE_DMA_ERROR,
		.code = code,
		.phase = (uint8_t)(q << 4),
		.data = htole64(address),
	};

	d->queue[eng][q].on = false;
	fake_post(d, eng / FAKE_ENGINES, NQ_TYPE_ERROR, 0, n);
}

/* A write into the window of a core beyond its state buffer. */
static bool fake_register(struct fake_device *d, unsigned int core, uint64_t off,
			  const uint8_t *src, uint32_t bytes)
{
	struct fake_core *c = &d->core[core];
	uint32_t value = 0;

	if (off >= NEURON_ISA_FIFO_OFF(0) && off < NEURON_ISA_FIFO_OFF(5)) {
		unsigned int e = (unsigned int)((off - NEURON_ISA_FIFO_OFF(0)) / NEURON_ISA_FIFO_SIZE);

		if (bytes % 64)
			return false;
		c->fifo[e] = realloc(c->fifo[e], c->fifo_bytes[e] + bytes);
		memcpy(c->fifo[e] + c->fifo_bytes[e], src, bytes);
		c->fifo_bytes[e] += bytes;
		return true;
	}
	if (bytes != 4 || off % 4)
		return false;
	memcpy(&value, src, 4);
	value = le32toh(value);
	if (off >= NEURON_ISA_SEM_INC_OFF(0) && off < NEURON_ISA_SEM_INC_OFF(256)) {
		uint32_t index = (uint32_t)(off - NEURON_ISA_SEM_INC_OFF(0)) / 4;

		c->sem[index] += value;
		fake_trace_semaphore(d, core, index, NEURON_ISA_BY_ACCESS);
	} else if (off >= NEURON_ISA_EVENT_OFF(0) && off < NEURON_ISA_EVENT_OFF(256))
		c->event[(off - NEURON_ISA_EVENT_OFF(0)) / 4] = value & 1;
	else
		return false;
	return true;
}

/* An elementwise packet whose result is in one piece; false: there is none. */
static bool fake_compute(struct fake_device *d, struct fake_queue *k)
{
#ifdef FAKE_COMPUTE
	const struct neuron_descriptor *tx = (struct neuron_descriptor *)k->ring[0]->data + k->head;
	const struct neuron_descriptor *rx =
		(struct neuron_descriptor *)k->ring[1]->data + k->rx_head;
	uint32_t meta = le32toh(tx->meta), nr = 0, bytes = le32toh(rx->control) & 0xffff, n;
	uint8_t types[16], *src[16], *dst, *out;

	if ((meta >> 23 & 7) != 3 || !(le32toh(tx->control) >> 26 & 1))
		return false;
	bytes = bytes ? bytes : 65536;
	n = bytes / (uint32_t)ref_dtype_size(meta >> 4 & 15);
	dst = fake_memory(d, le64toh(rx->address), bytes);
	do {
		if (nr == 16 || k->head + nr >= k->tail[0])
			return false;
		types[nr] = le32toh(tx[nr].meta) & 15;
		if (((le32toh(tx[nr].control) - n * ref_dtype_size(types[nr])) & 0xffff) ||
		    ((le32toh(tx[nr].meta) ^ meta) & ~15u))
			return false;
		src[nr] = fake_memory(d, le64toh(tx[nr].address), n * ref_dtype_size(types[nr]));
		if (!src[nr] || !dst)
			return false;
	} while (!(le32toh(tx[nr++].control) >> 27 & 1));
	/* All sources are read before the result is written. */
	out = malloc(bytes);
	FAKE_COMPUTE_FN(out, meta >> 20 & 7, meta >> 4 & 15, src, types, nr, meta >> 8 & 3,
			le32toh(rx->meta), n);
	memcpy(dst, out, bytes);
	free(out);
	k->head += nr;
	k->rx_head++;
	return true;
#else
	(void)d;
	(void)k;
	return false;
#endif
}

static void fake_run_queue(struct fake_device *d, unsigned int eng, unsigned int q)
{
	struct fake_queue *k = &d->queue[eng][q];

	while (k->on && k->head < k->tail[0] && k->rx_head < k->tail[1]) {
		const struct neuron_descriptor *tx =
			(struct neuron_descriptor *)k->ring[0]->data + k->head;
		const struct neuron_descriptor *rx =
			(struct neuron_descriptor *)k->ring[1]->data + k->rx_head;
		uint32_t bytes = le32toh(tx->control) & 0xffff;
		uint64_t to = le64toh(rx->address);
		struct neuron_isa_notice n = {
			.id = htole32(k->head),
			.engine = (uint8_t)eng,
			.kind = NEURON_ISA_NOTICE_DMA_BEGIN,
			.phase = (uint8_t)(q << 4),
		};
		uint8_t *src, *dst;

		if (fake_compute(d, k))
			continue;
		/* Ring id 1, first and last of its packet, plain copy. */
		if (((le32toh(rx->control) ^ le32toh(tx->control)) & 0xffff) ||
		    (le32toh(tx->control) >> 24 & 0xf) != 0xd ||
		    (le32toh(rx->control) >> 24 & 3) != 1 ||
		    (le32toh(tx->meta) & ~(1u << 26)) != 0x01080003) {
			fake_dma_stop(d, eng, q, k->head, NEURON_ISA_ERR_DMA_DESC, to);
			return;
		}
		bytes = bytes ? bytes : 65536;
		fake_trace(d, eng / FAKE_ENGINES, NQ_TYPE_TRACE_DMA, eng % FAKE_ENGINES, n);
		src = fake_memory(d, le64toh(tx->address), bytes);
		dst = fake_memory(d, to, bytes);
		if (src && dst) {
			memmove(dst, src, bytes);
			fake.sbuf_bytes += to >= FAKE_TPB(0) ? bytes : 0;
		} else if (!src || to < FAKE_TPB(0) ||
			   !fake_register(d, (unsigned int)((to - FAKE_TPB(0)) >> 32),
					  (to - FAKE_TPB(0)) & 0xffffffff, src, bytes)) {
			fake_dma_stop(d, eng, q, k->head, NEURON_ISA_ERR_DMA_ACCESS,
				      src ? to : le64toh(tx->address));
			return;
		}
		n.id = htole32(bytes);
		n.kind = NEURON_ISA_NOTICE_DMA_END;
		fake_trace(d, eng / FAKE_ENGINES, NQ_TYPE_TRACE_DMA, eng % FAKE_ENGINES, n);
		k->head++;
		k->rx_head++;
	}
}

static int fake_start(struct fake_device *d, unsigned int eng, unsigned int q, uint32_t tx,
		      uint32_t rx)
{
	struct fake_queue *k = &d->queue[eng][q];

	if (!k->on || !k->ring[0] || !k->ring[1])
		return ENOENT;
	if (tx > k->slots[0] - 16 - (k->tail[0] - k->head) ||
	    rx > k->slots[1] - 16 - (k->tail[1] - k->rx_head))
		return ENOSPC;
	k->tail[0] += tx;
	k->tail[1] += rx;
	fake.starts++;
	if (fake.dma_error) {
		fake_dma_stop(d, eng, q, k->head, (uint8_t)fake.dma_error,
			      fake.dma_address);
		fake.dma_error = 0;
		return 0;
	}
	if (!fake.stuck)
		fake_run_queue(d, eng, q);
	return 0;
}

static void fake_engine_stop(struct fake_device *d, unsigned int core, unsigned int e,
			     uint8_t code, uint8_t opcode)
{
	struct neuron_isa_notice n = {
		.id = htole32((uint32_t)(d->core[core].fifo_done[e] / 64)),
		.engine = (uint8_t)e,
		.kind = NEURON_ISA_NOTICE_ERROR,
		.code = code,
		.data = htole64(opcode),
	};

	/* Not emptied any more. */
	d->core[core].fifo_bytes[e] = d->core[core].fifo_done[e];
	fake_post(d, core, NQ_TYPE_ERROR, 0, n);
}

static void fake_compute_inst(struct fake_device *d, unsigned int core, unsigned int e,
			      const struct neuron_isa_inst *i)
{
	uint8_t error = NEURON_ISA_ERR_ILLEGAL;

#ifdef FAKE_EXEC
	struct emu_sbuf sb = { .base = fake_sbuf(d, core), .size = FAKE_SBUF };

	error = (uint8_t)exec_run(i, e, &sb);
#endif
	if (error)
		fake_engine_stop(d, core, e, error, i->opcode);
}

/* False: the engine waits. */
static bool fake_execute(struct fake_device *d, unsigned int core, unsigned int e,
			 const struct neuron_isa_inst *i)
{
	struct fake_core *c = &d->core[core];
	struct neuron_isa_notice n = { 0 };
	uint32_t index, value;

	switch (i->magic == NEURON_ISA_MAGIC ? i->opcode : 0xff) {
	case NEURON_ISA_OP_NOP:
	case NEURON_ISA_OP_PROLOGUE:
		return true;
	case NEURON_ISA_OP_SEM_WAIT:
		index = le32toh(i->u.sem.index) & 255;
		value = le32toh(i->u.sem.value);
		if (c->sem[index] < value)
			return false;
		if (i->flags & NEURON_ISA_F_CONSUME) {
			c->sem[index] -= value;
			fake_trace_semaphore(d, core, index, (uint8_t)e);
		}
		return true;
	case NEURON_ISA_OP_EVENT_SET:
		c->event[le32toh(i->u.sem.index) & 255] = le32toh(i->u.sem.value);
		return true;
	case NEURON_ISA_OP_DMA_TRIGGER:
		if (fake_start(d, core * FAKE_ENGINES + le16toh(i->u.dma.engine),
			       le16toh(i->u.dma.queue), le32toh(i->u.dma.tx_count),
			       le32toh(i->u.dma.rx_count)))
			fake_engine_stop(d, core, e, NEURON_ISA_ERR_QUEUE, i->opcode);
		return true;
	case NEURON_ISA_OP_NOTIFY:
		n.id = i->u.notify.id;
		n.engine = (uint8_t)e;
		n.kind = NEURON_ISA_NOTICE_NOTIFY;
		n.data = i->u.notify.data;
		fake_post(d, core, NQ_TYPE_NOTIFY, e, n);
		return true;
	case NEURON_ISA_OP_SEM_POST:
		c->sem[le32toh(i->u.sem.index) & 255] += le32toh(i->u.sem.value);
		return true;
	default:
		fake_compute_inst(d, core, e, i);
		return true;
	}
}

/* The begin once, however often it is tried. */
static void fake_trace_inst(struct fake_device *d, unsigned int core, unsigned int e,
			    const struct neuron_isa_inst *i, enum neuron_isa_notice_kind kind)
{
	struct fake_core *c = &d->core[core];
	const struct neuron_isa_notice n = {
		.id = htole32((uint32_t)(c->fifo_done[e] / 64)),
		.engine = (uint8_t)e,
		.kind = (uint8_t)kind,
		.code = i->opcode,
	};

	if (kind == NEURON_ISA_NOTICE_END || !c->begun[e])
		fake_trace(d, core, NQ_TYPE_TRACE, e, n);
	c->begun[e] = kind == NEURON_ISA_NOTICE_BEGIN;
}

static void fake_run_core(struct fake_device *d, unsigned int core)
{
	struct fake_core *c = &d->core[core];
	bool moved = true;

	while (moved && !fake.stuck) {
		moved = false;
		for (unsigned int e = 0; e < NEURON_ISA_NR_ENGINES; e++)
			while (c->fifo_done[e] < c->fifo_bytes[e]) {
				struct neuron_isa_inst inst;

				memcpy(&inst, c->fifo[e] + c->fifo_done[e], sizeof(inst));
				fake_trace_inst(d, core, e, &inst, NEURON_ISA_NOTICE_BEGIN);
				if (!fake_execute(d, core, e, &inst))
					break;
				fake_trace_inst(d, core, e, &inst, NEURON_ISA_NOTICE_END);
				c->fifo_done[e] += 64;
				moved = true;
			}
	}
}

static void fake_queue_drop(struct fake_device *d, struct fake_queue *k)
{
	fake_put(d, k->ring[0]);
	fake_put(d, k->ring[1]);
	memset(k, 0, sizeof(*k));
}

static int fake_queue_init(struct fake_device *d, const struct neuron_ioctl_dma_queue_init *a)
{
	struct fake_chunk *ring[2] = { fake_chunk(d, a->tx_handle), fake_chunk(d, a->rx_handle) };
	const uint32_t slots[2] = { a->tx_desc_count, a->rx_desc_count };
	struct fake_queue *k;

	if (a->eng_id >= FAKE_CORES * FAKE_ENGINES || a->qid >= FAKE_QUEUES)
		return EINVAL;
	if ((a->tx_handle && !ring[0]) || (a->rx_handle && !ring[1]))
		return ENOENT;
	for (int i = 0; i < 2; i++)
		if (ring[i] && (slots[i] < 32 || slots[i] % 16 || slots[i] * 16ull > ring[i]->bytes))
			return EINVAL;
	k = &d->queue[a->eng_id][a->qid];
	for (int i = 0; i < 2; i++)
		if (ring[i])
			ring[i]->refs++;
	fake_queue_drop(d, k);
	k->on = true;
	for (int i = 0; i < 2; i++) {
		k->ring[i] = ring[i];
		k->slots[i] = slots[i];
	}
	return 0;
}

static void fake_reset(struct fake_device *d, unsigned int core)
{
	struct fake_core *c = &d->core[core];

	c->resets++;
	free(c->sbuf);
	c->sbuf = NULL;
	memset(c->sem, 0, sizeof(c->sem));
	memset(c->event, 0, sizeof(c->event));
	for (unsigned int e = 0; e < NEURON_ISA_NR_ENGINES; e++) {
		free(c->fifo[e]);
		c->fifo[e] = NULL;
		c->fifo_bytes[e] = c->fifo_done[e] = 0;
		c->begun[e] = false;
	}
	for (unsigned int t = 0; t < 6; t++)
		for (unsigned int e = 0; e < 16; e++)
			fake_nq_drop(d, &c->nq[t][e]);
	for (unsigned int e = core * FAKE_ENGINES; e < (core + 1) * FAKE_ENGINES; e++)
		for (unsigned int q = 0; q < FAKE_QUEUES; q++)
			fake_queue_drop(d, &d->queue[e][q]);
}

/* ---- ioctls ------------------------------------------------------------------------ */

static void fake_geometry(struct neuron_native_geometry *g)
{
	g->arch = fake.arch;
	g->nr_cores = FAKE_CORES;
	g->nr_hbms = FAKE_HBMS;
	g->nr_dma_engines = FAKE_CORES * FAKE_ENGINES + 4;
	g->engines_per_core = FAKE_ENGINES;
	g->nr_queues = FAKE_QUEUES;
	g->nr_semaphores = fake.arch == 1 ? 32 : 256;
	g->nr_events = 256;
	g->nr_nq_types = 6;
	g->nr_nq_engines = 16;
	g->isa_version = NEURON_ISA_VERSION;
	g->host_window = FAKE_WINDOW;
	g->tpb_size = 1u << 26;
	g->sbuf_size = FAKE_SBUF;
	for (unsigned int i = 0; i < FAKE_HBMS; i++) {
		g->hbm[i].base = (uint64_t)i << 42;
		g->hbm[i].size = FAKE_HBM_SIZE;
	}
	for (unsigned int i = 0; i < FAKE_CORES; i++) {
		g->tpb_base[i] = FAKE_TPB(i);
		g->core_hbm[i] = (uint8_t)FAKE_CORE_HBM(i);
	}
}

static int fake_copy(struct fake_chunk *c, uint64_t off, void *buf, uint64_t bytes, bool to_mem)
{
	if (!c)
		return ENOENT;
	if (!bytes || off > c->bytes || bytes > c->bytes - off)
		return EINVAL;
	if (to_mem)
		memcpy(c->data + off, buf, bytes);
	else
		memcpy(buf, c->data + off, bytes);
	return 0;
}

static int fake_semaphore(struct fake_device *d, unsigned long cmd,
			  struct neuron_ioctl_semaphore *s)
{
	uint32_t *sem;

	if (s->nc_id >= FAKE_CORES)
		return E2BIG;
	if (s->semaphore_index >= 256)
		return EINVAL;
	sem = &d->core[s->nc_id].sem[s->semaphore_index];
	if (cmd == NEURON_IOCTL_SEMAPHORE_READ)
		s->value = *sem;
	else if (cmd == NEURON_IOCTL_SEMAPHORE_WRITE)
		*sem = s->value;
	else
		*sem += cmd == NEURON_IOCTL_SEMAPHORE_INCREMENT ? s->value : -s->value;
	return 0;
}

static void fake_hbm_stats(struct fake_device *d, struct neuron_native_hbm_stats *s)
{
	s->total = FAKE_HBM_SIZE;
	for (unsigned int i = 0; i < d->end; i++) {
		struct fake_chunk *c = &d->chunk[i];

		if (!c->refs || c->host || c->hbm != s->hbm)
			continue;
		s->used += c->bytes;
		s->by_category[c->category] += c->bytes;
		s->by_core[c->nc] += c->bytes;
		s->nr_allocs++;
	}
	s->reserved = FAKE_RESERVED;
	s->free = s->largest_free = s->total - s->used - s->reserved;
#ifdef FAKE_BUDDY
	s->largest_free = neuron_buddy_largest(fake_zone(d, s->hbm), NEURON_BUDDY_GRANULE);
#endif
}

/* With the driver's allocator, addresses begin behind those of the geometry. */
static void fake_hbm_ranges(struct fake_device *d, struct neuron_native_hbm_ranges *a)
{
	struct neuron_native_range *out = (void *)(uintptr_t)a->entries;
	uint64_t base = ((uint64_t)a->hbm << 42) + (FAKE_RESERVED ? FAKE_BASE : 0);
	uint64_t end = base + FAKE_HBM_SIZE, at = a->from > base ? a->from : base;
	uint32_t room = a->count;

	for (a->count = 0; a->count < room && at < end; at += out[a->count++].bytes) {
		struct fake_chunk *next = NULL;

		for (unsigned int i = 0; i < d->end; i++) {
			struct fake_chunk *c = &d->chunk[i];

			if (c->refs && !c->host && c->hbm == a->hbm && c->address >= at &&
			    (!next || c->address < next->address))
				next = c;
		}
		out[a->count] = next && next->address == at ? (struct neuron_native_range) {
			.address = at, .bytes = next->bytes, .pid = getpid(), .nc_id = next->nc,
			.mem_type = next->category, .state = NEURON_NATIVE_RANGE_OWNED,
			.owner = next->owner,
		} : (struct neuron_native_range) {
			.address = at, .bytes = (next ? next->address : end) - at,
		};
		/* Addresses that are never used again lead past the end. */
		if (out[a->count].bytes > end - at)
			out[a->count].bytes = end - at;
		if (at == base && FAKE_RESERVED) {
			out[a->count].bytes = FAKE_RESERVED;
			out[a->count].state = NEURON_NATIVE_RANGE_RESERVED;
		}
	}
	a->from = at;
}

static int fake_owner(struct fake_device *d, struct neuron_native_owner *a)
{
	if (a->flags & NEURON_NATIVE_OWNER_RELEASE) {
		if (!a->owner || a->owner > FAKE_OWNERS || !d->owner[a->owner - 1][0])
			return ENOENT;
		d->owner[a->owner - 1][0] = 0;
		return 0;
	}
	if (!a->label[0])
		return EINVAL;
	for (uint32_t i = 0; i < FAKE_OWNERS && !a->owner; i++)
		if (!d->owner[i][0])
			a->owner = i + 1;
	if (!a->owner || a->owner > FAKE_OWNERS)
		return ENOSPC;
	memcpy(d->owner[a->owner - 1], a->label, sizeof(a->label));
	return 0;
}

/* Owners that were not released. */
static inline unsigned int fake_owners_left(const struct fake_device *d)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < FAKE_OWNERS; i++)
		n += d->owner[i][0] != 0;
	return n;
}

/* What number @id has, 0: the process; the driver has nothing. */
static void fake_owner_bytes(const struct fake_device *d, uint32_t hbm, uint32_t id,
			     struct neuron_native_owner_entry *e)
{
	*e = (struct neuron_native_owner_entry){ .owner = id, .pid = getpid() };
	if (id)
		memcpy(e->label, d->owner[id - 1], sizeof(e->label));
	for (unsigned int i = 0; i < d->end; i++) {
		const struct fake_chunk *c = &d->chunk[i];

		if (!c->refs || c->host || c->hbm != hbm || c->owner != id)
			continue;
		e->bytes += c->bytes;
		e->allocs++;
	}
}

static int fake_owners(struct fake_device *d, struct neuron_native_owners *a)
{
	struct neuron_native_owner_entry *out = (void *)(uintptr_t)a->entries, e;

	if (a->hbm >= FAKE_HBMS || a->entry_size != sizeof(e) || a->total || a->used ||
	    a->flags & ~NEURON_NATIVE_OWNERS_CLEAR)
		return EINVAL;
	for (uint32_t id = 0; id <= FAKE_OWNERS; id++) {
		fake_owner_bytes(d, a->hbm, id, &e);
		if (id && !e.label[0] && !e.bytes)
			continue;
		if (a->total < a->count)
			out[a->total] = e;
		a->total++;
		a->used += e.bytes;
	}
	a->count = a->count < a->total ? a->count : a->total;
	return 0;
}

static void fake_core_stats(struct fake_device *d, struct neuron_native_core_stats *s)
{
	s->owner = d->core[s->nc_id].owned_by_other ? getppid() : getpid();
	for (unsigned int i = 0; i < d->end; i++) {
		struct fake_chunk *c = &d->chunk[i];

		if (c->refs && !c->host && c->nc == s->nc_id)
			s->device_bytes[c->category] += c->bytes;
		else if (c->refs && c->host && c->nc == s->nc_id)
			s->host_bytes += c->bytes;
	}
}

/* What the process publishes, as the driver reads it. */
static inline uint64_t fake_stat(unsigned int device, uint32_t nc, unsigned int counter)
{
	void *ds = fake.dev[device].ds;

	if (nc >= NDS_MAX_NEURONCORE_COUNT)
		return NDS_EXT_NEURONCORE_NC_DATA(ds, nc - NDS_MAX_NEURONCORE_COUNT)[counter];
	if (counter < NDS_NC_COUNTER_COUNT)
		return NDS_NEURONCORE_COUNTERS(ds, nc)[counter];
	return NDS_EXT_NEURONCORE_COUNTERS(ds, nc)[counter - NDS_NC_COUNTER_COUNT];
}

/* What fake_ioctl() does, by subject; ENOTTY: of another one. */
static int fake_ioctl_host(struct fake_device *d, unsigned long cmd, void *arg)
{
	switch (cmd) {
	case NEURON_NATIVE_GET_GEOMETRY:
		fake_geometry(arg);
		return 0;
	case NEURON_IOCTL_HOST_DEVICE_ID:
		((struct neuron_ioctl_host_device_id *)arg)->host_device_id =
			(uint32_t)(d - fake.dev);
		return 0;
	case NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP: {
		struct neuron_ioctl_host_device_id_to_rid_map *m = arg;

		m->count = fake.nr_devices;
		for (uint32_t i = 0; i < NEURON_IOCTL_MAX_DEVICES; i++)
			m->host_did_to_rid_map[i] = i < fake.nr_devices ? 0x10 + i : UINT32_MAX;
		return 0;
	}
	case NEURON_IOCTL_DEVICE_BDF_EXT: {
		struct neuron_ioctl_device_bdf_ext *b = arg;

		/* Counted from the device that was asked. */
		fake_assert(!b->nd_index);
		b->domain = 1;
		b->bus_number = 0x20 + (uint32_t)(d - fake.dev);
		b->slot = 0x1e;
		return 0;
	}
	case NEURON_IOCTL_DEVICE_INFO:
		((struct neuron_ioctl_device_info *)arg)->architecture = fake.arch;
		return 0;
	case NEURON_IOCTL_COMPATIBLE_VERSION:
		*(struct neuron_ioctl_compatible_version *)arg =
			(struct neuron_ioctl_compatible_version){ .max = 11, .min = 10 };
		return 0;
	case NEURON_IOCTL_DRIVER_INFO_GET:
		((struct neuron_ioctl_device_driver_info *)arg)->feature_flags1 = 0x14;
		return 0;
	default:
		return ENOTTY;
	}
}

static int fake_copy_between(struct fake_device *d, uint64_t dst, uint64_t dst_off, uint64_t src,
			     uint64_t src_off, uint64_t bytes)
{
	struct fake_chunk *s = fake_chunk(d, src);

	if (!s || src_off > s->bytes || bytes > s->bytes - src_off)
		return EINVAL;
	return fake_copy(fake_chunk(d, dst), dst_off, s->data + src_off, bytes, true);
}

static struct fake_async *fake_async(struct fake_device *d, uint64_t dst, uint64_t src)
{
	struct fake_chunk *to = fake_chunk(d, dst), *from = fake_chunk(d, src);

	return to && from ? &d->async[to->host ? from->nc : to->nc] : NULL;
}

static int fake_copy_start(struct fake_device *d, struct neuron_ioctl_mem_copy_async64 *c)
{
	struct fake_async *async = fake_async(d, c->dst_mem_handle, c->src_mem_handle);

	if (!async)
		return ENOENT;
	if (async->on)
		return EBUSY;
	async->on = true;
	async->copy = *c;
	return 0;
}

static int fake_copy_wait(struct fake_device *d, const struct neuron_ioctl_mem_copy_async_wait *w)
{
	struct fake_async *async = fake_async(d, w->dst_mem_handle, w->src_mem_handle);
	const struct neuron_ioctl_mem_copy_async64 *c = &async->copy;

	if (!async || !async->on)
		return EINVAL;
	async->on = false;
	return fake_copy_between(d, c->dst_mem_handle, c->dst_offset, c->src_mem_handle,
				 c->src_offset, c->size);
}

static int fake_ioctl_memory(struct fake_device *d, unsigned long cmd, void *arg)
{
	switch (cmd) {
	case NEURON_IOCTL_MEM_COPY_ASYNC64:
		return fake_copy_start(d, arg);
	case NEURON_IOCTL_MEM_COPY_ASYNC_WAIT:
		return fake_copy_wait(d, arg);
	case NEURON_NATIVE_MEM_GROW:
		return fake_grow(d, arg);
	case NEURON_NATIVE_MEM_PIN:
		return fake_pin(d, arg);
	case NEURON_NATIVE_MEM_UNPIN:
		return fake_unpin(d, arg);
	case NEURON_NATIVE_MEM_COMPACT:
		return fake_compact(d, arg);
	case NEURON_NATIVE_MEM_EXPORT:
		return fake_export(d, arg);
	case NEURON_NATIVE_MEM_IMPORT:
		return fake_import(d, arg);
	case NEURON_NATIVE_MEM_ALLOC:
		return fake_alloc(d, arg);
	case NEURON_NATIVE_MEM_ALLOC_BULK:
		return fake_alloc_bulk(d, arg);
	case NEURON_IOCTL_MEM_FREE:
		return fake_free(d, ((struct neuron_ioctl_mem_free *)arg)->mem_handle);
	case NEURON_NATIVE_MEM_FREE_BULK:
		return fake_free_bulk(d, arg);
	case NEURON_IOCTL_MEM_BUF_COPY64: {
		struct neuron_ioctl_mem_buf_copy64 *c = arg;

		return fake_copy(fake_chunk(d, c->mem_handle), c->offset, c->buffer, c->size,
				 c->copy_to_mem_handle);
	}
	case NEURON_IOCTL_MEM_COPY64: {
		struct neuron_ioctl_mem_copy64 *c = arg;

		return fake_copy_between(d, c->dst_mem_handle, c->dst_offset, c->src_mem_handle,
					 c->src_offset, c->size);
	}
	case NEURON_IOCTL_PROGRAM_ENGINE_NC64: {
		struct neuron_ioctl_program_engine_nc64 *p = arg;
		uint64_t off = p->dst - FAKE_TPB(p->nc_id);

		if (p->nc_id >= FAKE_CORES || p->offset || off > FAKE_SBUF ||
		    p->size > FAKE_SBUF - off)
			return EINVAL;
		memcpy(fake_sbuf(d, p->nc_id) + off, p->buffer, p->size);
		fake.programmed += p->size;
		return 0;
	}
	case NEURON_IOCTL_MEMSET64: {
		struct neuron_ioctl_memset64 *s = arg;
		struct fake_chunk *c = fake_chunk(d, s->mem_handle);

		if (!c || s->offset > c->bytes || s->size > c->bytes - s->offset)
			return EINVAL;
		memset(c->data + s->offset, (int)s->value, s->size);
		return 0;
	}
	case NEURON_IOCTL_MEM_GET_EXTENDED_INFO: {
		struct neuron_ioctl_mem_get_extended_info *e = arg;
		struct fake_chunk *c = fake_chunk(d, e->mem_handle);

		if (!c)
			return ENOENT;
		e->pa = e->mmap_offset = c->address;
		e->size = c->bytes;
		e->host_memory = c->host;
		e->pid = (uint64_t)getpid();
		return 0;
	}
	default:
		return ENOTTY;
	}
}

static int fake_ioctl_queue(struct fake_device *d, unsigned long cmd, void *arg)
{
	switch (cmd) {
	case NEURON_IOCTL_DMA_COPY_DESCRIPTORS64: {
		struct neuron_ioctl_dma_copy_descriptors64 *c = arg;

		return fake_copy(fake_chunk(d, c->mem_handle), c->offset, c->buffer,
				 c->num_descs * 16ull, true);
	}
	case NEURON_IOCTL_DMA_QUEUE_INIT:
		return fake_queue_init(d, arg);
	case NEURON_IOCTL_DMA_QUEUE_INIT_BATCH: {
		struct neuron_ioctl_dma_queue_init_batch *b = arg;
		int ret = b->count >= MAX_DMA_QUEUE_INIT_BATCH ? E2BIG : 0;

		for (uint32_t i = 0; i < b->count && !ret; i++)
			ret = fake_queue_init(d, &b->entries[i]);
		return ret;
	}
	case NEURON_IOCTL_DMA_QUEUE_COPY_START: {
		struct neuron_ioctl_dma_queue_copy_start *s = arg;
		int ret = s->eng_id < FAKE_CORES * FAKE_ENGINES && s->qid < FAKE_QUEUES ?
			  fake_start(d, s->eng_id, s->qid, s->tx_desc_count, s->rx_desc_count) :
			  EINVAL;

		if (!ret)
			fake_run_core(d, s->eng_id / FAKE_ENGINES);
		return ret;
	}
	case NEURON_IOCTL_DMA_QUEUE_GET_STATE: {
		struct neuron_ioctl_dma_queue_get_state *s = arg;
		struct fake_queue *k = &d->queue[s->eng_id][s->qid];

		if (!k->ring[0])
			return ENOENT;
		s->tx->length = k->slots[0];
		s->tx->tail_pointer = k->tail[0];
		s->tx->head_pointer = k->head;
		s->rx->head_pointer = k->rx_head;
		s->rx->length = k->slots[1];
		s->rx->tail_pointer = k->tail[1];
		s->tx->sw_status = s->rx->sw_status = k->on ? 2 : 3;
		return 0;
	}
	case NEURON_IOCTL_DMA_QUEUE_RELEASE:
	case NEURON_IOCTL_DMA_ACK_COMPLETED:
		return 0;
	default:
		return ENOTTY;
	}
}

static int fake_ioctl_core(struct fake_device *d, unsigned long cmd, void *arg)
{
	switch (cmd) {
	case NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2:
		return fake_nq_init(d, arg);
	case NEURON_NATIVE_NQ_EVENTFD: {
		struct neuron_native_nq_eventfd *e = arg;
		struct fake_nq *nq = &d->core[e->nq_dev_id].nq[e->nq_type][e->engine_index];

		if (!nq->on)
			return ENOENT;
		nq->eventfd = e->eventfd;
		return 0;
	}
	case NEURON_IOCTL_NC_RESET: {
		struct neuron_ioctl_device_reset *r = arg;

		for (unsigned int i = 0; i < FAKE_CORES; i++)
			if (r->nc_map >> i & 1 && d->core[i].owned_by_other)
				return EBUSY;
		for (unsigned int i = 0; i < FAKE_CORES; i++)
			if (r->nc_map >> i & 1)
				fake_reset(d, i);
		r->request_id = 77;
		return 0;
	}
	case NEURON_IOCTL_NC_RESET_READY: {
		struct neuron_ioctl_device_ready *r = arg;

		r->result = r->request_id != 77;
		return 0;
	}
	case NEURON_IOCTL_SEMAPHORE_READ:
	case NEURON_IOCTL_SEMAPHORE_WRITE:
	case NEURON_IOCTL_SEMAPHORE_INCREMENT:
	case NEURON_IOCTL_SEMAPHORE_DECREMENT:
		return fake_semaphore(d, cmd, arg);
	case NEURON_IOCTL_EVENT_SET:
	case NEURON_IOCTL_EVENT_GET: {
		struct neuron_ioctl_event *e = arg;
		uint32_t *event = &d->core[e->nc_id % FAKE_CORES].event[e->event_index & 255];

		if (cmd == NEURON_IOCTL_EVENT_SET)
			*event = e->value;
		e->value = *event;
		return 0;
	}
	default:
		return ENOTTY;
	}
}

static int fake_ioctl_figures(struct fake_device *d, unsigned long cmd, void *arg)
{
	switch (cmd) {
	case NEURON_NATIVE_HBM_STATS: {
		struct neuron_native_hbm_stats *s = arg;

		if (s->hbm >= FAKE_HBMS)
			return EINVAL;
		fake_hbm_stats(d, s);
		return 0;
	}
	case NEURON_NATIVE_HBM_RANGES: {
		struct neuron_native_hbm_ranges *a = arg;

		if (a->hbm >= FAKE_HBMS)
			return EINVAL;
		fake_assert(a->entry_size == sizeof(struct neuron_native_range));
		fake_hbm_ranges(d, a);
		return 0;
	}
	case NEURON_NATIVE_OWNER:
		return fake_owner(d, arg);
	case NEURON_NATIVE_OWNERS:
		return fake_owners(d, arg);
	case NEURON_NATIVE_EVENTS:
		return fake_events(d, arg);
	case NEURON_NATIVE_CORE_STATS: {
		struct neuron_native_core_stats *s = arg;

		if (s->nc_id >= FAKE_CORES)
			return EINVAL;
		fake_core_stats(d, s);
		return 0;
	}
	case NEURON_NATIVE_LIMIT: {
		struct neuron_native_limit *l = arg;

		fake_assert(!(l->used || l->flags & ~NEURON_NATIVE_LIMIT_SET));
		if (l->what > NEURON_NATIVE_LIMIT_DEFAULT || l->index >= FAKE_CORES)
			return EINVAL;
		if (l->flags & NEURON_NATIVE_LIMIT_SET)
			d->limit[l->what][l->index] = l->bytes;
		l->bytes = d->limit[l->what][l->index];
		/* None was set. */
		if (!l->bytes)
			l->bytes = UINT64_MAX;
		l->used = d->used[0];
		return 0;
	}
	case NEURON_IOCTL_ACQUIRE_NEURON_DS: {
		struct neuron_ioctl_neuron_ds_info *ds = arg;

		fake_assert(!ds->pid);
		ds->mmap_offset = FAKE_DS;
		ds->size = FAKE_DS_SIZE;
		return 0;
	}
	case NEURON_NATIVE_FAILURES: {
		struct neuron_native_failures *f = arg;
		uint64_t seq = f->since;
		uint32_t n = 0;

		fake_assert(f->entry_size == sizeof(struct neuron_native_failure));
		for (; seq < d->nr_failures && n < f->count; seq++)
			((struct neuron_native_failure *)(uintptr_t)f->entries)[n++] =
				d->failures[seq];
		f->count = n;
		f->last = seq;
		return 0;
	}
	default:
		return ENOTTY;
	}
}

static int fake_ioctl(struct fake_device *d, unsigned long cmd, void *arg)
{
	static int (*const subject[])(struct fake_device *, unsigned long, void *) = {
		fake_ioctl_host, fake_ioctl_memory, fake_ioctl_queue, fake_ioctl_core,
		fake_ioctl_figures,
	};
	int ret = ENOTTY;

	for (size_t i = 0; i < sizeof(subject) / sizeof(subject[0]) && ret == ENOTTY; i++)
		ret = subject[i](d, cmd, arg);
	return ret;
}

static int fake_claim(unsigned int device, unsigned long cmd,
		      struct neuron_ioctl_crwl_nc_map_ext *map)
{
	if (!fake.has_claims)
		return ENOTTY;
	if (cmd == NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0) {
		fake.claimed = false;
		return 0;
	}
	map->max_nc_available = 1;
	if (fake.claims_busy)
		return EBUSY;
	/* Counted from the device that was opened. */
	fake.claimed_core = device * FAKE_CORES + map->start_nc_index;
	if (fake.claimed_core + map->nc_count > fake.nr_devices * FAKE_CORES)
		return EBUSY;
	fake.claimed = true;
	for (uint32_t i = 0; i < map->nc_count; i++)
		map->bitmap[0] |= 1ul << (map->start_nc_index + i);
	return 0;
}

/* What the driver tells one who only looks. */
static bool fake_looks(unsigned long cmd)
{
	static const unsigned long looks[] = {
		NEURON_NATIVE_GET_GEOMETRY, NEURON_NATIVE_HBM_STATS, NEURON_NATIVE_CORE_STATS,
		NEURON_NATIVE_HBM_RANGES, NEURON_NATIVE_FAILURES, NEURON_NATIVE_LIMIT,
		NEURON_NATIVE_OWNERS, NEURON_NATIVE_EVENTS,
	};

	for (size_t i = 0; i < sizeof(looks) / sizeof(*looks); i++)
		if (cmd == looks[i])
			return true;
	return false;
}

/* A descriptor that is only for writing. */
static int fake_observer(unsigned int device, unsigned long cmd, void *arg)
{
	if (fake_looks(cmd))
		return fake_ioctl(&fake.dev[device], cmd, arg);
	return cmd == NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0 ||
	       cmd == NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0 ? fake_claim(device, cmd, arg) : EACCES;
}

/* ---- what the library calls -------------------------------------------------------- */

/* Files of sysfs: the marker of a software device, or of a card. */
size_t neuron_sys_read(const char *path, char *text, size_t size)
{
	unsigned int n;

	text[0] = '\0';
	if (fake.file && fake.file(path))
		return (size_t)snprintf(text, size, "%s", fake.file(path));
	if (!fake.pretend || sscanf(path, "/sys/devices/virtual/neuron_device/neuron%u/pretend",
				    &n) != 1 || n >= fake.nr_devices)
		return 0;
	return (size_t)snprintf(text, size, "%s\n", fake.pretend);
}

int neuron_sys_open(const char *path, int flags)
{
	unsigned int n;

	if (fake.open_fails) {
		errno = EACCES;
		return -1;
	}
	if (sscanf(path, "/dev/neuron%u", &n) != 1 || n >= fake.nr_devices) {
		errno = ENOENT;
		return -1;
	}
	if (fake.denied >> n & 1) {
		errno = EPERM;
		return -1;
	}
	if ((flags & O_ACCMODE) == O_WRONLY)
		return FAKE_CLAIM_FD + (int)n;
	fake_enter();
	fake.dev[n].opens++;
	fake_leave();
	return FAKE_FD + (int)n;
}

/* Closing gives everything back, as for a process that dies. */
static void fake_close(struct fake_device *d)
{
	fake_assert(d->opens > 0);
	if (--d->opens)
		return;
	memset(d->owner, 0, sizeof(d->owner));
	for (unsigned int i = 0; i < FAKE_HBMS; i++)
		fake.left_bytes += d->used[i];
	for (unsigned int i = 0; i < d->end; i++)
		fake.left_handles += d->chunk[i].used;
	for (unsigned int i = 0; i < FAKE_CORES; i++)
		fake_reset(d, i);
	for (unsigned int i = 0; i < d->end; i++)
		if (d->chunk[i].used)
			fake_assert(!fake_free(d, i + 1));
	while (d->end && !d->chunk[d->end - 1].refs)
		d->end--;
	memset(d->ds, 0, sizeof(d->ds));
	/* Nobody has an old one any more, and the windows of cores are not far. */
	memset(d->bump, 0, sizeof(d->bump));
}

int neuron_sys_close(int fd)
{
	fake_enter();
	if (fd >= FAKE_CLAIM_FD)
		fake.claimed = false;
	else
		fake_close(fake_dev(fd));
	fake_leave();
	return 0;
}

static bool fake_fails(unsigned long cmd)
{
	if (!fake.fail_at)
		return false;
	/*
	 * Of all calls: a free that fails is tried again, what cannot be done together is done
	 * one by one, statistics and owners may be missing.
	 */
	if (fake.fail_nr ? fake.fail_nr != _IOC_NR(cmd) &&
			   (!fake.also_nr || fake.also_nr != _IOC_NR(cmd)) :
			   cmd == NEURON_IOCTL_MEM_FREE || cmd == NEURON_NATIVE_OWNER ||
			   cmd == NEURON_NATIVE_MEM_ALLOC_BULK || cmd == NEURON_NATIVE_MEM_FREE_BULK ||
			   cmd == NEURON_IOCTL_ACQUIRE_NEURON_DS)
		return false;
	if (fake.fail_at > 1) {
		fake.fail_at--;
		return false;
	}
	if (!fake.sticky)
		fake.fail_at = 0;
	fake.failed++;
	return true;
}

static int fake_call(int fd, unsigned long cmd, void *arg)
{
	int ret;

	fake.calls++;
	fake.calls_nr[_IOC_NR(cmd)]++;
	if (fake_fails(cmd)) {
		errno = fake.fail_errno;
		return -1;
	}
	ret = fd >= FAKE_CLAIM_FD ? fake_observer((unsigned int)(fd - FAKE_CLAIM_FD), cmd, arg) :
	      fake_ioctl(fake_dev(fd), cmd, arg);
	errno = ret;
	return ret ? -1 : 0;
}

int neuron_sys_ioctl(int fd, unsigned long cmd, void *arg)
{
	int ret;

	fake_enter();
	ret = fake_call(fd, cmd, arg);
	fake_leave();
	return ret;
}

void *neuron_sys_mmap(int fd, uint64_t offset, size_t bytes)
{
	uint8_t *data;

	(void)bytes;
	fake_enter();
	data = fake.map_fails ? NULL :
	       offset == FAKE_DS ? (uint8_t *)fake_dev(fd)->ds :
				   fake_memory(fake_dev(fd), offset, 1);
	fake.mapped += data != NULL;
	fake_leave();
	if (!data)
		errno = ENOMEM;
	return data;
}

int neuron_sys_munmap(void *address, size_t bytes)
{
	(void)address;
	(void)bytes;
	fake_enter();
	fake_assert(fake.mapped > 0);
	fake.mapped--;
	fake_leave();
	return 0;
}

int neuron_sys_mapping(int fd, const void *address, uint64_t *offset)
{
	struct fake_device *d = fake_dev(fd);
	int ret = -ENOENT;

	fake_enter();
	for (unsigned int i = 0; i < d->end && ret; i++) {
		const struct fake_chunk *c = &d->chunk[i];

		if (!c->refs || (uintptr_t)address - (uintptr_t)c->data >= c->bytes)
			continue;
		*offset = c->address + ((uintptr_t)address - (uintptr_t)c->data);
		ret = 0;
	}
	fake_leave();
	return ret;
}

int neuron_device_list(struct neuron_device_entry **list, size_t *count)
{
	*list = NULL;
	*count = fake.nr_devices;
	if (!fake.nr_devices)
		return 0;
	*list = calloc(fake.nr_devices, sizeof(**list));
	for (unsigned int i = 0; i < fake.nr_devices; i++) {
		(*list)[i].index = i;
		(*list)[i].nr_cores = i ? 0 : FAKE_CORES;	/* the second has to be asked */
		strcpy((*list)[i].instance, "Trn2");
	}
	return 0;
}

void neuron_device_list_free(struct neuron_device_entry *list)
{
	free(list);
}

/* Wait for a run to begin after @starts was read; a minute is for ever. */
static inline void fake_wait_start(unsigned int starts)
{
	for (int i = 0; i < 6000 && fake.starts == starts; i++)
		usleep(10000);
	assert_int_not_equal(fake.starts, starts);
}

/* Let the n'th ioctl with this number (0: any) fail. */
static inline void fake_fail(unsigned int n, unsigned int nr, int error)
{
	fake.fail_at = n;
	fake.fail_nr = nr;
	fake.fail_errno = error;
	fake.sticky = false;
	fake.also_nr = 0;
	fake.failed = 0;
}

#endif

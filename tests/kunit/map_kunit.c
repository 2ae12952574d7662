// SPDX-License-Identifier: GPL-2.0-only
/* Mappings of chunks without the rest of neuron.ko: who may map what, and what is held. */
#include <kunit/test.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>

static void map_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	*(vm_flags_t *)&vma->vm_flags |= flags;
}

/* Also what map.h does. */
#define vm_flags_set		map_flags_set

#include "../../kmod/base/client.h"
#include "../../kmod/base/device.h"
#include "../../kmod/base/hw.h"
#include "../../kmod/mem/datastore.h"
#include "../../kmod/mem/handle.h"
#include "../../kmod/mem/map.h"
#include "../../kmod/mem/resource.h"
#include "../../kmod/mem/watch.h"

#define ADDR	0x40000000ULL
#define SIZE	(16 * (u64)PAGE_SIZE)
#define VA	0x10000000UL
#define WRITES	(VM_WRITE | VM_MAYWRITE | VM_MAYSHARE)
#define READS	VM_MAYSHARE
#define MAPPED	(VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY)

/* Where the memory at ADDR is known from. */
enum map_mode { MAP_OWN, MAP_RING, MAP_DATASTORE, MAP_OTHERS, MAP_NONE };

static struct {
	struct neuron_geometry geo;
	struct neuron_hw_ops ops;
	struct neuron_device nd;
	struct neuron_client client, other;
	struct neuron_chunk chunk;
	struct neuron_file nf;
	struct file file;
	struct vm_area_struct vma;
	enum map_mode mode;
	bool gone, nomem, no_frame, no_area, interrupted;
	struct page *pages[SIZE / PAGE_SIZE];
	struct mm_struct *current_mm;	/* not looked into */
	int inside, watches, allocs, page_refs, mm_locks;
	u64 watched, off;
	u32 resources, inserted;
	u32 revoked;
} state;

/* The caller: its address space.  It is its own thread group. */
struct map_task {
	struct mm_struct *mm;
};

static bool map_enter(struct neuron_device *nd, int *idx)
{
	state.inside += !state.gone;
	return !state.gone;
}

static void map_exit(struct neuron_device *nd, int idx)
{
	state.inside--;
}

static bool map_admit(struct neuron_chunk *chunk, enum neuron_user as)
{
	chunk->users[as - 1]++;
	return true;
}

static void map_unuse(struct neuron_chunk *chunk, enum neuron_user as)
{
	chunk->users[as - 1]--;
	refcount_dec(&chunk->ref.refcount);
}

static struct neuron_chunk *map_find(struct neuron_client *client, u64 addr, u64 len,
				     enum neuron_user as)
{
	bool own = state.mode == MAP_OWN || (state.mode == MAP_RING && as == NEURON_USER_READER);

	if (!own || client != &state.client || len != 1 || addr < ADDR || addr >= ADDR + SIZE)
		return NULL;
	map_admit(neuron_chunk_ref(&state.chunk), as);
	return &state.chunk;
}

static struct neuron_chunk *map_datastore(struct neuron_device *nd, u64 addr)
{
	return state.mode == MAP_DATASTORE || state.mode == MAP_OTHERS ?
	       neuron_chunk_ref(&state.chunk) : NULL;
}

static int map_range(const struct neuron_chunk *chunk, u64 off, u64 len)
{
	return off <= SIZE && len <= SIZE - off ? 0 : -EINVAL;
}

static int map_resource(struct neuron_file *nf, struct vm_area_struct *vma)
{
	state.resources++;
	return -EPERM;
}

static struct neuron_watch *map_watch(struct neuron_chunk *chunk, u64 off, u64 len,
				      enum neuron_user as)
{
	state.watches += as == NEURON_USER_MAPPING && len;
	state.watched = off;
	return (struct neuron_watch *)&state.watches;
}

static void map_unwatch(struct neuron_watch *w)
{
	state.watches -= w == (struct neuron_watch *)&state.watches;
}

static void *map_alloc(size_t size, gfp_t gfp)
{
	void *p = state.nomem ? NULL : kzalloc(size, gfp);

	state.allocs += !!p;
	return p;
}

static void map_free(void *p)
{
	state.allocs -= !!p;
	kfree(p);
}

/* The area is no part of an address space, so nobody holds its lock. */
static void map_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	*(vm_flags_t *)&vma->vm_flags &= ~flags;
}

static vm_fault_t map_insert(struct vm_area_struct *vma, unsigned long addr, unsigned long pfn)
{
	state.inserted += state.inside && addr == VA && pfn == 77;
	return VM_FAULT_NOPAGE;
}

static int map_lock(struct mm_struct *mm)
{
	state.mm_locks += !state.interrupted;
	return state.interrupted ? -EINTR : 0;
}

static void map_unlock(struct mm_struct *mm)
{
	state.mm_locks--;
}

static struct vm_area_struct *map_lookup(struct mm_struct *mm, unsigned long va)
{
	return state.mm_locks && !state.no_area ? &state.vma : NULL;
}

#undef kzalloc
#undef current
#undef get_page
#define kzalloc			map_alloc
#define kfree			map_free
#define neuron_device_enter	map_enter
#define neuron_device_exit	map_exit
#define neuron_chunk_admit	map_admit
#define neuron_chunk_unuse	map_unuse
#define neuron_chunk_find	map_find
#define neuron_datastore_find	map_datastore
#define neuron_chunk_range	map_range
#define neuron_resource_mmap	map_resource
#define neuron_watch_chunk	map_watch
#define neuron_unwatch		map_unwatch
#define vm_flags_clear		map_flags_clear
#define vmf_insert_pfn		map_insert
#define mmap_read_lock_killable	map_lock
#define mmap_read_unlock	map_unlock
#define vma_lookup		map_lookup
#define task_tgid(task)		((struct pid *)(task))
#define get_page(p)		(state.page_refs += (p) == state.pages[3])
#define current			((struct map_task *)&state.current_mm)

#include "../../kmod/mem/map.c"

static int map_pfn(struct neuron_device *nd, u32 hbm, u64 off, unsigned long *pfn)
{
	state.off = hbm == 1 ? off : U64_MAX;
	*pfn = 77;
	return state.no_frame ? -ENOMEM : 0;
}

static int map_init(struct kunit *test)
{
	u32 i;

	memset(&state, 0, sizeof(state));
	state.nd.geo = &state.geo;
	state.nd.ops = &state.ops;
	state.ops.hbm_pfn = map_pfn;
	state.client.nd = &state.nd;
	state.client.pid = (struct pid *)&state.current_mm;
	state.current_mm = (struct mm_struct *)&state.mm_locks;
	state.other.nd = &state.nd;
	state.chunk.client = &state.client;
	state.chunk.addr = ADDR;
	state.chunk.hbm = 1;
	state.chunk.block.addr = SZ_1M;
	kref_init(&state.chunk.ref);
	state.nf.nd = &state.nd;
	state.nf.client = &state.client;
	state.file.private_data = &state.nf;
	for (i = 0; i < ARRAY_SIZE(state.pages); i++)
		state.pages[i] = (struct page *)&state.pages[i];
	return 0;
}

static void map_finish(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(state.chunk.users); i++)
		KUNIT_EXPECT_EQ(test, state.chunk.users[i], 0u);
	KUNIT_EXPECT_EQ(test, kref_read(&state.chunk.ref), 1u);
	KUNIT_EXPECT_EQ(test, state.allocs, 0);
	KUNIT_EXPECT_EQ(test, state.watches, 0);
	KUNIT_EXPECT_EQ(test, state.inside, 0);
	KUNIT_EXPECT_EQ(test, state.mm_locks, 0);
}

static int map_at(u64 addr, u64 len, unsigned long flags)
{
	*(vm_flags_t *)&state.vma.vm_flags = flags;
	state.vma.vm_pgoff = addr >> PAGE_SHIFT;
	state.vma.vm_start = VA;
	state.vma.vm_end = VA + len;
	state.vma.vm_ops = NULL;
	return neuron_mmap(&state.file, &state.vma);
}

/* Who may map what, and whether it can become writable. */
static void map_rules(struct kunit *test)
{
	static const struct {
		enum map_mode mode;
		unsigned long flags, after;
		int err;
		enum neuron_user as;
		bool given;
	} rows[] = {
		{ MAP_OWN, WRITES, WRITES, 0, NEURON_USER_MAPPING, true },
		{ MAP_OWN, READS | VM_MAYWRITE, READS | VM_MAYWRITE, 0, NEURON_USER_MAPPING, true },
		{ MAP_OWN, READS, READS, 0, NEURON_USER_READER },
		{ MAP_OWN, WRITES & ~VM_MAYSHARE, 0, -EINVAL },
		{ MAP_RING, WRITES, 0, -EPERM },
		{ MAP_RING, READS | VM_MAYWRITE, READS, 0, NEURON_USER_READER },
		{ MAP_RING, READS, READS, 0, NEURON_USER_READER },
		{ MAP_DATASTORE, WRITES, WRITES, 0, NEURON_USER_MAPPING, true },
		{ MAP_OTHERS, WRITES, 0, -EPERM },
		{ MAP_OTHERS, READS | VM_MAYWRITE, READS, 0, NEURON_USER_MAPPING, true },
		{ MAP_OTHERS, READS, READS, 0, NEURON_USER_READER },
		{ MAP_NONE, WRITES, 0, -EPERM },
	};
	u32 i, host;

	for (i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
		const typeof(rows[0]) *row = &rows[i / 2];

		host = i % 2;
		state.mode = row->mode;
		state.chunk.host = host;
		state.chunk.given = false;
		state.chunk.client = row->mode == MAP_OTHERS ? &state.other : &state.client;
		state.resources = 0;
		KUNIT_EXPECT_EQ(test, map_at(ADDR, SIZE, row->flags), row->err);
		KUNIT_EXPECT_EQ(test, state.resources,
				row->err == -EPERM && row->mode != MAP_OTHERS ? 1u : 0u);
		if (row->err || !state.vma.vm_ops)
			continue;
		KUNIT_EXPECT_EQ(test, state.vma.vm_flags,
				row->after | MAPPED | (host ? 0 : VM_PFNMAP | VM_IO));
		KUNIT_EXPECT_PTR_EQ(test, state.vma.vm_ops,
				    host ? &neuron_vm_host : &neuron_vm_device);
		KUNIT_EXPECT_EQ(test, state.chunk.users[row->as - 1], 1u);
		KUNIT_EXPECT_EQ(test, state.chunk.given, host && row->given);
		KUNIT_EXPECT_EQ(test, kref_read(&state.chunk.ref), 2u);
		KUNIT_EXPECT_EQ(test, state.watches, 1);
		state.vma.vm_ops->close(&state.vma);
		KUNIT_EXPECT_EQ(test, kref_read(&state.chunk.ref), 1u);
	}
}

static void map_refused(struct kunit *test)
{
	static const struct {
		u64 addr, len;
		int err;
	} rows[] = {
		{ ADDR, SIZE + PAGE_SIZE, -EINVAL }, { ADDR + SIZE - PAGE_SIZE, PAGE_SIZE, 0 },
		{ ADDR + SIZE - PAGE_SIZE, 2 * PAGE_SIZE, -EINVAL },
		{ ADDR + SIZE, PAGE_SIZE, -EPERM },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		KUNIT_EXPECT_EQ(test, map_at(rows[i].addr, rows[i].len, WRITES), rows[i].err);
		if (!state.vma.vm_ops)
			continue;
		KUNIT_EXPECT_EQ(test, state.watched, rows[i].addr - ADDR);
		neuron_vm_close(&state.vma);
	}
	state.nomem = true;
	KUNIT_EXPECT_EQ(test, map_at(ADDR, SIZE, WRITES), -ENOMEM);
	state.nomem = false;
	state.nd.gone = true;
	KUNIT_EXPECT_EQ(test, map_at(ADDR, SIZE, WRITES), -ENODEV);
	state.nd.gone = false;
	/* Another process has the descriptor, or it is for writing only. */
	state.client.pid = NULL;
	KUNIT_EXPECT_EQ(test, map_at(ADDR, SIZE, WRITES), -EACCES);
	state.nf.client = NULL;
	KUNIT_EXPECT_EQ(test, map_at(ADDR, SIZE, WRITES), -EACCES);
}

/* Memory on a bus is write-combined; that of the software device and of the host is cached. */
static void map_cache(struct kunit *test)
{
	u32 i;

	for (i = 0; i < 4; i++) {
		pgprot_t prot = PAGE_SHARED;

		state.chunk.host = i & 1;
		state.geo.hbm_io = i & 2;
		state.vma.vm_page_prot = prot;
		if (state.geo.hbm_io && !state.chunk.host)
			prot = pgprot_writecombine(prot);
		KUNIT_EXPECT_EQ(test, map_at(ADDR, SIZE, WRITES), 0);
		KUNIT_EXPECT_EQ(test, pgprot_val(state.vma.vm_page_prot), pgprot_val(prot));
		neuron_vm_close(&state.vma);
	}
	/* A process of the host has no say in that. */
	if (!IS_ENABLED(CONFIG_UML))
		KUNIT_EXPECT_NE(test, pgprot_val(pgprot_writecombine(PAGE_SHARED)),
				pgprot_val(PAGE_SHARED));
}

static void map_revoke(struct neuron_mapping *mapping)
{
	state.revoked += state.chunk.users[NEURON_USER_MAPPING - 1] == 1;
}

/* A mapping ends with its last piece, and goes with the last lookup. */
static void map_pieces(struct kunit *test)
{
	struct neuron_mapping *mapping;
	bool write;
	u64 off;

	KUNIT_ASSERT_EQ(test, map_at(ADDR, SIZE, WRITES), 0);
	neuron_vm_open(&state.vma);
	mapping = neuron_mapping_get(VA, SIZE, &off, &write);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mapping));
	mapping->revoke = map_revoke;
	neuron_vm_close(&state.vma);
	KUNIT_EXPECT_EQ(test, state.revoked, 0u);
	neuron_vm_close(&state.vma);
	KUNIT_EXPECT_EQ(test, state.revoked, 1u);
	KUNIT_EXPECT_EQ(test, state.chunk.users[NEURON_USER_MAPPING - 1], 1u);
	KUNIT_EXPECT_EQ(test, state.watches, 1);
	neuron_mapping_put(mapping);
}

static void map_lookups(struct kunit *test)
{
	static const struct {
		u64 va, len, off;
		int err;
	} rows[] = {
		{ VA, 4 * PAGE_SIZE, PAGE_SIZE, 0 }, { VA, 4 * PAGE_SIZE + 1, 0, -EINVAL },
		{ VA + 100, 1, PAGE_SIZE + 100, 0 }, { VA, 0, 0, -EINVAL },
		{ VA + 3 * PAGE_SIZE, PAGE_SIZE, 4 * PAGE_SIZE, 0 },
		{ VA + 3 * PAGE_SIZE, PAGE_SIZE + 1, 0, -EINVAL },
	};
	static const struct vm_operations_struct foreign = { };
	struct neuron_mapping *mapping;
	bool write;
	u64 off;
	u32 i;

	for (i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
		const typeof(rows[0]) *row = &rows[i / 2];

		state.chunk.host = i % 2;
		KUNIT_ASSERT_EQ(test, map_at(ADDR + PAGE_SIZE, 4 * PAGE_SIZE,
					     i % 2 ? WRITES : READS), 0);
		mapping = neuron_mapping_get(row->va, row->len, &off, &write);
		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(mapping), (long)row->err);
		if (!row->err) {
			KUNIT_EXPECT_EQ(test, off, row->off);
			KUNIT_EXPECT_EQ(test, write, (bool)(i % 2));
			KUNIT_EXPECT_EQ(test, kref_read(&mapping->ref), 2u);
			neuron_mapping_put(mapping);
		}
		neuron_vm_close(&state.vma);
	}
	state.interrupted = true;
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(neuron_mapping_get(VA, 1, &off, &write)), -EINTR);
	state.interrupted = false;
	state.no_area = true;
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(neuron_mapping_get(VA, 1, &off, &write)), -EINVAL);
	state.no_area = false;
	state.vma.vm_ops = &foreign;
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(neuron_mapping_get(VA, 1, &off, &write)), -EINVAL);
	state.current_mm = NULL;
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(neuron_mapping_get(VA, 1, &off, &write)), -EINVAL);
}

static void map_faults(struct kunit *test)
{
	struct vm_fault vmf = {
		.vma = &state.vma, .address = VA, .pgoff = (ADDR + 3 * PAGE_SIZE) >> PAGE_SHIFT,
	};
	struct vm_fault beyond = {
		.vma = &state.vma, .address = VA, .pgoff = (ADDR + SIZE) >> PAGE_SHIFT,
	};
	struct neuron_buddy_block block = state.chunk.block;

	KUNIT_ASSERT_EQ(test, map_at(ADDR, SIZE, WRITES), 0);
	KUNIT_EXPECT_EQ(test, neuron_vm_fault_device(&vmf), (vm_fault_t)VM_FAULT_NOPAGE);
	KUNIT_EXPECT_EQ(test, state.inserted, 1u);
	KUNIT_EXPECT_EQ(test, state.off, SZ_1M + 3 * (u64)PAGE_SIZE);
	state.no_frame = true;
	KUNIT_EXPECT_EQ(test, neuron_vm_fault_device(&vmf), (vm_fault_t)VM_FAULT_SIGBUS);
	state.no_frame = false;
	state.gone = true;
	KUNIT_EXPECT_EQ(test, neuron_vm_fault_device(&vmf), (vm_fault_t)VM_FAULT_SIGBUS);
	state.gone = false;
	state.chunk.pages = state.pages;
	KUNIT_EXPECT_EQ(test, neuron_vm_fault_host(&vmf), (vm_fault_t)0);
	KUNIT_EXPECT_PTR_EQ(test, vmf.page, state.pages[3]);
	KUNIT_EXPECT_EQ(test, state.page_refs, 1);
	state.chunk.block = block;
	/* The chunk has become shorter. */
	KUNIT_EXPECT_EQ(test, neuron_vm_fault_device(&beyond), (vm_fault_t)VM_FAULT_SIGBUS);
	KUNIT_EXPECT_EQ(test, neuron_vm_fault_host(&beyond), (vm_fault_t)VM_FAULT_SIGBUS);
	KUNIT_EXPECT_EQ(test, state.inserted, 1u);
	neuron_vm_close(&state.vma);
}

static struct kunit_case map_cases[] = {
	KUNIT_CASE(map_rules),
	KUNIT_CASE(map_refused),
	KUNIT_CASE(map_cache),
	KUNIT_CASE(map_pieces),
	KUNIT_CASE(map_lookups),
	KUNIT_CASE(map_faults),
	{}
};

static struct kunit_suite map_suite = {
	.name = "neuron_mappings",
	.init = map_init,
	.exit = map_finish,
	.test_cases = map_cases,
};

kunit_test_suite(map_suite);

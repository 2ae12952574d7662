// SPDX-License-Identifier: GPL-2.0-only
/* Exports without the rest of neuron.ko: who gets what, and what is held until when. */
#include <kunit/test.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "../../kmod/base/call.h"
#include "../../kmod/base/client.h"
#include "../../kmod/base/device.h"
#include "../../kmod/base/hw.h"
#include "../../kmod/compat/compat.h"
#include "../../kmod/mem/handle.h"
#include "../../kmod/mem/map.h"
#include "../../kmod/mem/watch.h"

#define PAGES	300u			/* more than are looked up at a time */
#define SIZE	((u64)PAGES * PAGE_SIZE)
#define HANDLE	5
#define FD	9
#define BUS_DMA	0x123000u		/* of memory of a bus, for an importer */

static struct {
	struct neuron_geometry geo;
	struct neuron_hw_ops ops;
	struct neuron_device nd, other;
	struct inode *inode;
	struct neuron_client client;
	struct neuron_chunk chunk;
	struct neuron_mapping mapping;
	struct dma_buf buf;
	struct file file;
	struct page *pages[PAGES];
	/* What fails, and how. */
	bool gone, refuse, readonly, fault, killed, not_exported;
	int fail_alloc, dma_err, fd_err, frame_err, import_err;
	unsigned int max_seg;
	/* What is held: all 0 in the end. */
	int inside, allocs, users, devices, watches, dma, fds, mappings, bufs, vmaps;
	int cpu, device;		/* tables that are told of an access */
	int told, peer_err;
	struct device *peer;
	u64 watched, watched_len, frame;
	u32 installed, unpublished;
	pgprot_t prot;
	unsigned long flags;
	u32 flags_device, inserted;
	int export_flags;
} state;

static bool dmabuf_enter(struct neuron_device *nd, int *idx)
{
	state.inside += !state.gone;
	return !state.gone;
}

static void dmabuf_exit(struct neuron_device *nd, int idx)
{
	state.inside--;
}

/* Allocation number fail_alloc fails. */
static void *dmabuf_alloc(size_t size)
{
	void *p = state.fail_alloc && !--state.fail_alloc ? NULL : kzalloc(size, GFP_KERNEL);

	state.allocs += !!p;
	return p;
}

static void dmabuf_free(const void *p)
{
	state.allocs -= !!p;
	kfree(p);
}

static bool dmabuf_admit(struct neuron_chunk *chunk, enum neuron_user as)
{
	state.users += !state.refuse && as == NEURON_USER_EXPORT;
	return !state.refuse;
}

static void dmabuf_chunk_put(struct neuron_chunk *chunk)
{
	refcount_dec(&chunk->ref.refcount);
}

static void dmabuf_unuse(struct neuron_chunk *chunk, enum neuron_user as)
{
	state.users -= as == NEURON_USER_EXPORT;
	dmabuf_chunk_put(chunk);
}

static struct neuron_chunk *dmabuf_use(struct neuron_client *client, u64 handle,
				       enum neuron_user as)
{
	if (handle != HANDLE)
		return NULL;
	state.users += as == NEURON_USER_EXPORT;
	return neuron_chunk_ref(&state.chunk);
}

static int dmabuf_range(const struct neuron_chunk *chunk, u64 off, u64 len)
{
	return len && off < SIZE && len <= SIZE - off ? 0 : -EINVAL;
}

static int dmabuf_import(struct neuron_client *client, struct neuron_chunk *chunk, u32 *out)
{
	*out = 6;
	return mutex_is_locked(&state.nd.grow_lock) ? state.import_err : -ENOTTY;
}

static int dmabuf_unpublish(struct neuron_client *client, u64 handle)
{
	state.unpublished = handle;
	return 0;
}

static struct neuron_mapping *dmabuf_mapping_get(u64 va, u64 len, u64 *off, bool *write)
{
	if (va + len > SIZE)
		return ERR_PTR(-EINVAL);
	state.mappings++;
	*off = va;
	*write = !state.readonly;
	return &state.mapping;
}

static struct neuron_watch *dmabuf_watch(struct neuron_chunk *chunk, u64 off, u64 len,
					 enum neuron_user as)
{
	state.watches += as == NEURON_USER_EXPORT;
	state.watched = off;
	state.watched_len = len;
	return (struct neuron_watch *)&state.watches;
}

static void dmabuf_unwatch(struct neuron_watch *w)
{
	state.watches -= w == (struct neuron_watch *)&state.watches;
}

static struct dma_buf *dmabuf_export(const struct dma_buf_export_info *info)
{
	if (state.not_exported)
		return ERR_PTR(-ENOMEM);
	state.bufs++;
	state.buf.ops = info->ops;
	state.buf.priv = info->priv;
	state.buf.resv = info->resv;
	state.buf.size = info->size;
	state.buf.file = &state.file;
	state.file.f_mode = info->flags == O_RDWR ? FMODE_READ | FMODE_WRITE : FMODE_READ;
	return &state.buf;
}

static void dmabuf_put(struct dma_buf *buf)
{
	if (!--state.bufs)
		buf->ops->release(buf);
}

static struct dma_buf *dmabuf_get(int fd)
{
	if (fd != FD)
		return ERR_PTR(-EBADF);
	state.bufs++;
	return &state.buf;
}

static int dmabuf_fd(void)
{
	state.fds += !state.fd_err;
	return state.fd_err ?: FD;
}

static int dmabuf_put_user(int val, s32 *to)
{
	*to = val;
	return state.fault ? -EFAULT : 0;
}

static int dmabuf_dma_map(struct sg_table *sgt)
{
	state.dma += !state.dma_err;
	return state.dma_err;
}

static void *dmabuf_vmap(struct page **pages, unsigned int n, pgprot_t prot)
{
	void *va = state.fault || n != PAGES ? NULL : vmap(pages, n, VM_MAP, PAGE_KERNEL);

	state.vmaps += !!va;
	state.prot = prot;
	return va;
}

static void dmabuf_vunmap(const void *va)
{
	state.vmaps--;
	vunmap(va);
}

static vm_fault_t dmabuf_insert(unsigned long pfn)
{
	state.inserted += state.inside && pfn == 77;
	return VM_FAULT_NOPAGE;
}

#undef kzalloc
#undef kmalloc_array
#undef kvmalloc_array
#undef put_user
#undef dma_buf_export
#define kzalloc(size, gfp)			((void)(gfp), dmabuf_alloc(size))
#define kmalloc_array(n, size, gfp)		((void)(gfp), dmabuf_alloc((n) * (size)))
#define kvmalloc_array(n, size, gfp)		((void)(gfp), dmabuf_alloc((n) * (size)))
#define kfree					dmabuf_free
#define kvfree					dmabuf_free
#define neuron_device_enter			dmabuf_enter
#define neuron_device_exit			dmabuf_exit
#define neuron_chunk_admit			dmabuf_admit
#define neuron_chunk_unuse			dmabuf_unuse
#define neuron_chunk_put			dmabuf_chunk_put
#define neuron_chunk_use			dmabuf_use
#define neuron_chunk_missing(client, handle)	((void)(client), (void)(handle), -ENOENT)
#define neuron_chunk_range			dmabuf_range
#define neuron_chunk_import			dmabuf_import
#define neuron_chunk_unpublish			dmabuf_unpublish
#define neuron_mapping_get			dmabuf_mapping_get
#define neuron_mapping_put(mapping)		((void)(mapping), state.mappings--)
#define neuron_watch_chunk			dmabuf_watch
#define neuron_unwatch				dmabuf_unwatch
#define neuron_vma_device(nd, vma)		((void)(nd), (void)(vma), state.flags_device++)
#define neuron_chunk_has_pages			dmabuf_has_pages
#define neuron_chunk_frame			dmabuf_frame
#define get_device(dev)				((void)(dev), state.devices++)
#define put_device(dev)				((void)(dev), state.devices--)
#define dma_buf_export				dmabuf_export
#define dma_buf_put				dmabuf_put
#define dma_buf_get				dmabuf_get
#define get_unused_fd_flags(flags)		((void)(flags), dmabuf_fd())
#define put_unused_fd(fd)			(state.fds -= (fd) == FD)
#define fd_install(fd, file)			((void)(file), state.fds -= (fd) == FD, \
						 state.installed++)
#define put_user(val, to)			dmabuf_put_user(val, (s32 __force *)(to))
#define dma_get_max_seg_size(dev)		((void)(dev), state.max_seg)
#define dma_map_sgtable(dev, sgt, dir, attrs)	((void)(dev), (void)(dir), (void)(attrs), \
						 dmabuf_dma_map(sgt))
#define dma_unmap_sgtable(dev, sgt, dir, attrs)	((void)(dev), (void)(sgt), (void)(dir), \
						 (void)(attrs), state.dma--)
#define dma_sync_sgtable_for_cpu(dev, sgt, dir)	((void)(dev), (void)(sgt), (void)(dir), \
						 state.cpu++)
#define dma_sync_sgtable_for_device(dev, sgt, dir)	((void)(dev), (void)(sgt), (void)(dir), \
							 state.device++)
#define fatal_signal_pending(task)		((void)(task), state.killed)
#define vmap(pages, n, flags, prot)		((void)(flags), dmabuf_vmap(pages, n, prot))
#define vunmap(va)				dmabuf_vunmap(va)
#define vmf_insert_pfn(vma, addr, pfn)		((void)(vma), (void)(addr), dmabuf_insert(pfn))
#define vm_flags_set(vma, set)			((void)(vma), state.flags |= (set))

#undef dma_buf_invalidate_mappings
#define dma_buf_invalidate_mappings(buf)	((void)(buf), state.told++)
#define dma_map_resource(dev, phys, size, dir, attrs)	((void)(dev), (void)(size), (void)(dir), \
							 (void)(attrs), dmabuf_map_resource(phys))
#define dma_unmap_resource(dev, addr, size, dir, attrs)	((void)(dev), (void)(size), (void)(dir), \
							 (void)(attrs), \
							 state.dma -= (addr) == BUS_DMA)
#define dma_mapping_error(dev, addr)		((void)(dev), (addr) != BUS_DMA)

static dma_addr_t dmabuf_map_resource(phys_addr_t phys)
{
	bool mapped = !state.dma_err && phys == PFN_PHYS(77);

	state.dma += mapped;
	return mapped ? BUS_DMA : 0;
}

#include "../../kmod/mem/bus.c"
#include "../../kmod/mem/dmabuf.c"

static int dmabuf_pfn(struct neuron_device *nd, u32 hbm, u64 off, unsigned long *pfn)
{
	state.frame = hbm == 1 ? off : U64_MAX;
	*pfn = 77;
	return state.frame_err;
}

static int dmabuf_peer(struct neuron_device *nd, struct device *peer)
{
	state.peer = peer;
	return state.peer_err;
}

static int dmabuf_init(struct kunit *test)
{
	u32 i;

	memset(&state, 0, sizeof(state));
	state.inode = kunit_kzalloc(test, sizeof(*state.inode), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, state.inode);
	state.ops.hbm_pfn = dmabuf_pfn;
	state.ops.peer_dma = dmabuf_peer;
	state.nd.desc.ops = &state.ops;
	mutex_init(&state.nd.exports_lock);
	INIT_LIST_HEAD(&state.nd.exports);
	state.nd.ops = &state.ops;
	state.nd.geo = &state.geo;
	state.nd.inode = state.inode;
	mutex_init(&state.nd.grow_lock);
	state.client.nd = &state.nd;
	state.chunk.client = &state.client;
	state.chunk.hbm = 1;
	state.chunk.host = true;
	state.chunk.size = SIZE;
	state.chunk.addr = 1ULL << 40;
	state.chunk.pages = state.pages;
	kref_init(&state.chunk.ref);
	state.mapping.chunk = &state.chunk;
	state.max_seg = UINT_MAX;
	for (i = 0; i < PAGES; i++) {
		state.pages[i] = alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, state.pages[i]);
	}
	return 0;
}

static void expect_nothing(struct kunit *test)
{
	u32 i;

	KUNIT_EXPECT_EQ(test, state.inside, 0);
	KUNIT_EXPECT_EQ(test, state.allocs, 0);
	KUNIT_EXPECT_EQ(test, state.users, 0);
	KUNIT_EXPECT_EQ(test, state.devices, 0);
	KUNIT_EXPECT_EQ(test, state.watches, 0);
	KUNIT_EXPECT_EQ(test, state.dma, 0);
	KUNIT_EXPECT_EQ(test, state.fds, 0);
	KUNIT_EXPECT_EQ(test, state.mappings, 0);
	KUNIT_EXPECT_EQ(test, state.bufs, 0);
	KUNIT_EXPECT_EQ(test, state.vmaps, 0);
	KUNIT_EXPECT_EQ(test, kref_read(&state.chunk.ref), 1u);
	for (i = 0; i < PAGES; i++)
		KUNIT_EXPECT_EQ(test, page_ref_count(state.pages[i]), 1);
}

static void dmabuf_finish(struct kunit *test)
{
	u32 i;

	expect_nothing(test);
	neuron_sync_free(&state.chunk);
	for (i = 0; i < PAGES; i++)
		if (state.pages[i])
			__free_page(state.pages[i]);
}

static int export(u64 handle, u64 off, u64 bytes, u32 flags, s32 *fd)
{
	struct neuron_native_mem_export a = {
		.mem_handle = handle, .offset = off, .bytes = bytes, .flags = flags,
	}, user = { .fd = -1 };
	struct neuron_call call = {
		.nd = &state.nd, .client = &state.client, .arg = &a, .uarg = (void __user *)&user,
	};
	int err = neuron_do_native_mem_export(&call);

	*fd = user.fd;
	return err;
}

/* What may be exported, and the part of the chunk that it is. */
static void dmabuf_ranges(struct kunit *test)
{
	static const struct {
		u64 handle, off, bytes;
		u32 flags;
		int err;
		u64 len;
	} rows[] = {
		{ HANDLE, 0, 0, 0, 0, SIZE },
		{ HANDLE, 2 * PAGE_SIZE, 0, NEURON_NATIVE_EXPORT_RDONLY, 0, SIZE - 2 * PAGE_SIZE },
		{ HANDLE, PAGE_SIZE, PAGE_SIZE, 0, 0, PAGE_SIZE },
		{ HANDLE, 1, PAGE_SIZE, 0, -EINVAL }, { HANDLE, 0, 1, 0, -EINVAL },
		{ HANDLE, SIZE, 0, 0, -EINVAL }, { HANDLE, PAGE_SIZE, SIZE, 0, -EINVAL },
		{ HANDLE, 0, 0, NEURON_NATIVE_EXPORT_RDONLY << 1, -EINVAL },
		{ HANDLE + 1, 0, 0, 0, -ENOENT },
	};
	u32 i;
	s32 fd;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		bool readonly = rows[i].flags == NEURON_NATIVE_EXPORT_RDONLY;

		KUNIT_EXPECT_EQ(test, export(rows[i].handle, rows[i].off, rows[i].bytes,
					     rows[i].flags, &fd), rows[i].err);
		if (rows[i].err || !state.bufs)
			continue;
		KUNIT_EXPECT_EQ(test, fd, FD);
		KUNIT_EXPECT_EQ(test, state.fds, 0);
		KUNIT_EXPECT_EQ(test, state.buf.size, rows[i].len);
		KUNIT_EXPECT_EQ(test, state.watched, rows[i].off);
		KUNIT_EXPECT_EQ(test, state.watched_len, rows[i].len);
		KUNIT_EXPECT_EQ(test, neuron_export_writable(&state.buf), !readonly);
		KUNIT_EXPECT_PTR_EQ(test, state.file.f_mapping, state.inode->i_mapping);
		KUNIT_EXPECT_EQ(test, state.users, 1);
		KUNIT_EXPECT_EQ(test, state.devices, 1);
		dmabuf_put(&state.buf);
		expect_nothing(test);
	}
	KUNIT_EXPECT_EQ(test, state.installed, 3u);
}

static void dmabuf_not_exported(struct kunit *test)
{
	s32 fd;

	state.fail_alloc = 1;
	KUNIT_EXPECT_EQ(test, export(HANDLE, 0, 0, 0, &fd), -ENOMEM);
	state.refuse = true;
	KUNIT_EXPECT_EQ(test, export(HANDLE, 0, 0, 0, &fd), -EPERM);
	state.refuse = false;
	state.not_exported = true;
	KUNIT_EXPECT_EQ(test, export(HANDLE, 0, 0, 0, &fd), -ENOMEM);
	state.not_exported = false;
	state.fd_err = -EMFILE;
	KUNIT_EXPECT_EQ(test, export(HANDLE, 0, 0, 0, &fd), -EMFILE);
	state.fd_err = 0;
	state.fault = true;
	KUNIT_EXPECT_EQ(test, export(HANDLE, 0, 0, 0, &fd), -EFAULT);
	state.fault = false;
	expect_nothing(test);
	KUNIT_EXPECT_EQ(test, state.installed, 0u);
}

/* The command of the given interface: an address of a mapping. */
static void dmabuf_of_address(struct kunit *test)
{
	static const struct {
		u64 va, size;
		bool readonly;
		int err;
		u64 len;
	} rows[] = {
		{ PAGE_SIZE, 1, false, 0, PAGE_SIZE }, { 0, SIZE, true, 0, SIZE },
		{ 1, PAGE_SIZE, false, -EINVAL }, { 0, 0, false, -EINVAL },
		{ 0, U64_MAX, false, -EOVERFLOW }, { 0, SIZE + 1, false, -EINVAL },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		s32 fd = -1;
		struct neuron_ioctl_dmabuf_fd a = {
			.va = rows[i].va, .size = rows[i].size, .fd = &fd,
		};
		struct neuron_call call = { .nd = &state.nd, .arg = &a };

		state.readonly = rows[i].readonly;
		KUNIT_EXPECT_EQ(test, neuron_do_dmabuf_fd(&call), rows[i].err);
		KUNIT_EXPECT_EQ(test, fd, rows[i].err ? -1 : FD);
		if (rows[i].err || !state.bufs)
			continue;
		KUNIT_EXPECT_EQ(test, state.mappings, 0);
		KUNIT_EXPECT_EQ(test, state.buf.size, rows[i].len);
		KUNIT_EXPECT_EQ(test, state.watched, rows[i].va);
		KUNIT_EXPECT_EQ(test, neuron_export_writable(&state.buf), !rows[i].readonly);
		dmabuf_put(&state.buf);
	}
}

/* A handle of exported memory is for all of it, on its device, by a writable descriptor. */
static void dmabuf_imports(struct kunit *test)
{
	struct neuron_native_mem_import a = { .fd = FD };
	struct neuron_call call = { .nd = &state.nd, .client = &state.client, .arg = &a };
	static const struct dma_buf_ops foreign;
	s32 fd;

	KUNIT_ASSERT_EQ(test, export(HANDLE, 0, 0, 0, &fd), 0);
	KUNIT_EXPECT_EQ(test, neuron_do_native_mem_import(&call), 0);
	KUNIT_EXPECT_EQ(test, a.mem_handle, 6ULL);
	KUNIT_EXPECT_EQ(test, a.pa, state.chunk.addr);
	KUNIT_EXPECT_EQ(test, a.mmap_offset, state.chunk.addr);
	KUNIT_EXPECT_EQ(test, a.bytes, SIZE);
	KUNIT_EXPECT_EQ(test, a.host, 1ULL);
	neuron_undo_native_mem_import(&call);
	KUNIT_EXPECT_EQ(test, state.unpublished, 6u);
	state.import_err = -EMFILE;
	KUNIT_EXPECT_EQ(test, neuron_do_native_mem_import(&call), -EMFILE);
	state.import_err = 0;
	state.chunk.size += PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, neuron_do_native_mem_import(&call), -EINVAL);
	state.chunk.size -= PAGE_SIZE;
	call.nd = &state.other;
	KUNIT_EXPECT_EQ(test, neuron_do_native_mem_import(&call), -EXDEV);
	call.nd = &state.nd;
	state.file.f_mode = FMODE_READ;
	KUNIT_EXPECT_EQ(test, neuron_do_native_mem_import(&call), -EPERM);
	a.flags = 1;
	KUNIT_EXPECT_EQ(test, neuron_do_native_mem_import(&call), -EINVAL);
	a.flags = 0;
	a.__reserved = 1;
	KUNIT_EXPECT_EQ(test, neuron_do_native_mem_import(&call), -EINVAL);
	a.__reserved = 0;
	a.fd = FD + 1;
	KUNIT_EXPECT_EQ(test, neuron_do_native_mem_import(&call), -EBADF);
	a.fd = FD;
	state.file.f_mode = FMODE_WRITE;
	state.buf.ops = &foreign;
	KUNIT_EXPECT_EQ(test, neuron_do_native_mem_import(&call), -EINVAL);
	state.buf.ops = &neuron_export_ops;
	KUNIT_EXPECT_EQ(test, state.bufs, 1);
	dmabuf_put(&state.buf);
}

/* A table holds its pages until it is unmapped; the processor's accesses concern it. */
static void dmabuf_tables(struct kunit *test)
{
	struct dma_buf_attachment attach = { .dmabuf = &state.buf };
	struct sg_table *sgt;
	s32 fd;
	u32 i;

	KUNIT_ASSERT_EQ(test, export(HANDLE, PAGE_SIZE, 0, 0, &fd), 0);
	KUNIT_EXPECT_EQ(test, neuron_export_attach(&state.buf, &attach), 0);
	state.max_seg = PAGE_SIZE + 1;
	sgt = neuron_export_map(&attach, DMA_BIDIRECTIONAL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(sgt));
	KUNIT_EXPECT_EQ(test, sgt->orig_nents, PAGES - 1);
	for (i = 0; i < PAGES; i++)
		KUNIT_EXPECT_EQ(test, page_ref_count(state.pages[i]), i ? 2 : 1);
	KUNIT_EXPECT_EQ(test, state.device, 1);
	KUNIT_EXPECT_EQ(test, neuron_export_begin_cpu(&state.buf, DMA_FROM_DEVICE), 0);
	KUNIT_EXPECT_EQ(test, neuron_export_end_cpu(&state.buf, DMA_FROM_DEVICE), 0);
	KUNIT_EXPECT_EQ(test, state.cpu, 1);
	KUNIT_EXPECT_EQ(test, state.device, 2);
	neuron_export_unmap(&attach, sgt, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_EQ(test, state.cpu, 2);
	KUNIT_EXPECT_EQ(test, neuron_export_end_cpu(&state.buf, DMA_FROM_DEVICE), 0);
	KUNIT_EXPECT_EQ(test, state.device, 2);
	state.nd.gone = true;
	KUNIT_EXPECT_EQ(test, neuron_export_begin_cpu(&state.buf, DMA_FROM_DEVICE), -ENODEV);
	KUNIT_EXPECT_EQ(test, neuron_export_attach(&state.buf, &attach), -ENODEV);
	state.nd.gone = false;
	dmabuf_put(&state.buf);
}

static void export_bus(struct kunit *test)
{
	s32 fd;

	state.chunk.host = false;
	state.chunk.block.addr = SZ_1M;
	state.geo.hbm_io = true;
	state.geo.nr_hbms = 1;
	state.geo.hbm[0].size = SIZE;
	KUNIT_ASSERT_EQ(test, export(HANDLE, PAGE_SIZE, 0, 0, &fd), 0);
}

/* Without pages: addresses only, for importers that can be told when the device goes. */
static void dmabuf_bus(struct kunit *test)
{
	struct dma_buf_attachment attach = { .dmabuf = &state.buf, .dev = &state.other.dev };
	struct scatterlist *sg;
	struct sg_table *sgt;
	u64 bytes = 0;
	u32 i;

	export_bus(test);
	KUNIT_EXPECT_EQ(test, state.buf.ops->attach(&state.buf, &attach), -EOPNOTSUPP);
	attach.peer2peer = true;
	state.peer_err = -EOPNOTSUPP;
	KUNIT_EXPECT_EQ(test, state.buf.ops->attach(&state.buf, &attach), -EOPNOTSUPP);
	KUNIT_EXPECT_PTR_EQ(test, state.peer, attach.dev);
	state.peer_err = 0;
	KUNIT_EXPECT_EQ(test, state.buf.ops->attach(&state.buf, &attach), 0);
	KUNIT_EXPECT_EQ(test, state.buf.ops->pin(&attach), 0);
	KUNIT_EXPECT_NULL(test, state.buf.ops->vmap);
	state.max_seg = 2 * PAGE_SIZE + 1;
	sgt = state.buf.ops->map_dma_buf(&attach, DMA_BIDIRECTIONAL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(sgt));
	KUNIT_EXPECT_EQ(test, sgt->nents, PAGES / 2);
	KUNIT_EXPECT_EQ(test, state.frame, SZ_1M + PAGE_SIZE);
	for_each_sgtable_dma_sg(sgt, sg, i) {
		KUNIT_EXPECT_EQ(test, sg_dma_address(sg), BUS_DMA + bytes);
		bytes += sg_dma_len(sg);
	}
	KUNIT_EXPECT_EQ(test, bytes, SIZE - PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, neuron_bus_unused(&state.nd), -EADDRINUSE);
	state.buf.ops->unmap_dma_buf(&attach, sgt, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_EQ(test, neuron_bus_unused(&state.nd), 0);
	state.chunk.host = true;
	dmabuf_put(&state.buf);
}

static void dmabuf_no_bus(struct kunit *test)
{
	struct dma_buf_attachment attach = { .dmabuf = &state.buf, .peer2peer = true };

	export_bus(test);
	state.fail_alloc = 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_bus_map(&attach, DMA_TO_DEVICE)), -ENOMEM);
	state.dma_err = -EIO;
	KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_bus_map(&attach, DMA_TO_DEVICE)), -EIO);
	state.dma_err = 0;
	state.max_seg = PAGE_SIZE - 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_bus_map(&attach, DMA_TO_DEVICE)), -EINVAL);
	state.frame_err = -ENODEV;
	KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_bus_map(&attach, DMA_TO_DEVICE)), -ENODEV);
	state.frame_err = 0;
	state.file.f_mode = FMODE_READ;
	KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_bus_map(&attach, DMA_BIDIRECTIONAL)), -EACCES);
	KUNIT_EXPECT_EQ(test, state.allocs, 1);
	KUNIT_EXPECT_EQ(test, neuron_bus_unused(&state.nd), 0);
	state.nd.gone = true;
	KUNIT_EXPECT_EQ(test, neuron_bus_attach(&state.buf, &attach), -ENODEV);
	state.chunk.host = true;
	dmabuf_put(&state.buf);
}

/* The device goes: each export is told once, and nothing is mapped or pinned any more. */
static void dmabuf_bus_gone(struct kunit *test)
{
	struct dma_buf_attachment attach = { .dmabuf = &state.buf, .peer2peer = true };
	struct sg_table *kept;

	export_bus(test);
	kept = neuron_bus_map(&attach, DMA_TO_DEVICE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kept));
	neuron_bus_revoke(&state.nd);
	neuron_bus_revoke(&state.nd);
	KUNIT_EXPECT_EQ(test, state.told, 1);
	KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_bus_map(&attach, DMA_TO_DEVICE)), -ENODEV);
	KUNIT_EXPECT_EQ(test, neuron_bus_pin(&attach), -ENODEV);
	/* Who cannot be told keeps the addresses. */
	KUNIT_EXPECT_EQ(test, neuron_bus_unused(&state.nd), -EADDRINUSE);
	neuron_bus_unmap(&attach, kept, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, neuron_bus_unused(&state.nd), 0);
	state.chunk.host = true;
	dmabuf_put(&state.buf);
	/* One that is made now is as if it had been told. */
	state.nd.gone = true;
	export_bus(test);
	neuron_bus_revoke(&state.nd);
	KUNIT_EXPECT_EQ(test, state.told, 1);
	KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_bus_map(&attach, DMA_TO_DEVICE)), -ENODEV);
	state.chunk.host = true;
	dmabuf_put(&state.buf);
}

static void dmabuf_no_table(struct kunit *test)
{
	struct dma_buf_attachment attach = { .dmabuf = &state.buf };
	s32 fd;
	u32 i;

	KUNIT_ASSERT_EQ(test, export(HANDLE, 0, 0, 0, &fd), 0);
	for (i = 1; i <= 2; i++) {
		state.fail_alloc = i;
		KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_export_map(&attach, DMA_TO_DEVICE)), -ENOMEM);
	}
	state.max_seg = PAGE_SIZE - 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_export_map(&attach, DMA_TO_DEVICE)), -EINVAL);
	state.max_seg = UINT_MAX;
	state.killed = true;
	KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_export_map(&attach, DMA_TO_DEVICE)), -EINTR);
	state.killed = false;
	state.gone = true;
	KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_export_map(&attach, DMA_TO_DEVICE)), -ENODEV);
	state.gone = false;
	state.dma_err = -EIO;
	KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_export_map(&attach, DMA_TO_DEVICE)), -EIO);
	state.dma_err = 0;
	state.file.f_mode = FMODE_READ;
	KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_export_map(&attach, DMA_FROM_DEVICE)), -EACCES);
	KUNIT_EXPECT_EQ(test, PTR_ERR(neuron_export_map(&attach, DMA_BIDIRECTIONAL)), -EACCES);
	KUNIT_EXPECT_EQ(test, state.allocs, 1);
	dmabuf_put(&state.buf);
}

static void dmabuf_kernel(struct kunit *test)
{
	struct iosys_map map = { };
	s32 fd;
	u32 i;

	KUNIT_ASSERT_EQ(test, export(HANDLE, 0, 0, 0, &fd), 0);
	for (i = 0; i < PAGES; i++)
		*(u32 *)page_address(state.pages[i]) = i;
	KUNIT_ASSERT_EQ(test, neuron_export_vmap(&state.buf, &map), 0);
	KUNIT_EXPECT_EQ(test, pgprot_val(state.prot), pgprot_val(PAGE_KERNEL));
	for (i = 0; i < PAGES; i++) {
		KUNIT_EXPECT_EQ(test, *(u32 *)(map.vaddr + i * PAGE_SIZE), i);
		KUNIT_EXPECT_EQ(test, page_ref_count(state.pages[i]), 2);
	}
	neuron_export_vunmap(&state.buf, &map);
	state.file.f_mode = FMODE_READ;
	KUNIT_ASSERT_EQ(test, neuron_export_vmap(&state.buf, &map), 0);
	KUNIT_EXPECT_EQ(test, pgprot_val(state.prot), pgprot_val(PAGE_KERNEL_RO));
	neuron_export_vunmap(&state.buf, &map);
	state.fail_alloc = 1;
	KUNIT_EXPECT_EQ(test, neuron_export_vmap(&state.buf, &map), -ENOMEM);
	state.gone = true;
	KUNIT_EXPECT_EQ(test, neuron_export_vmap(&state.buf, &map), -ENODEV);
	state.gone = false;
	state.killed = true;
	KUNIT_EXPECT_EQ(test, neuron_export_vmap(&state.buf, &map), -EINTR);
	state.killed = false;
	state.fault = true;
	KUNIT_EXPECT_EQ(test, neuron_export_vmap(&state.buf, &map), -ENOMEM);
	KUNIT_EXPECT_EQ(test, state.allocs, 1);
	dmabuf_put(&state.buf);
}

static void dmabuf_mapped(struct kunit *test)
{
	struct vm_area_struct *vma = kunit_kzalloc(test, sizeof(*vma), GFP_KERNEL);
	struct vm_fault vmf = { .vma = vma, .pgoff = 3 };
	struct neuron_chunk *chunk = &state.chunk;
	s32 fd;

	KUNIT_ASSERT_NOT_NULL(test, vma);
	KUNIT_ASSERT_EQ(test, export(HANDLE, PAGE_SIZE, 0, 0, &fd), 0);
	KUNIT_EXPECT_EQ(test, neuron_export_mmap(&state.buf, vma), -EINVAL);
	*(vm_flags_t *)&vma->vm_flags = VM_MAYSHARE;
	state.nd.gone = true;
	KUNIT_EXPECT_EQ(test, neuron_export_mmap(&state.buf, vma), -ENODEV);
	state.nd.gone = false;
	KUNIT_EXPECT_EQ(test, neuron_export_mmap(&state.buf, vma), 0);
	KUNIT_EXPECT_EQ(test, state.flags, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	KUNIT_EXPECT_EQ(test, state.flags_device, 0u);
	KUNIT_EXPECT_PTR_EQ(test, vma->vm_ops, &neuron_export_vm);
	KUNIT_EXPECT_EQ(test, neuron_export_fault(&vmf), (vm_fault_t)VM_FAULT_NOPAGE);
	KUNIT_EXPECT_EQ(test, state.inserted, 0u);

	/* A device's memory, without pages. */
	chunk->host = false;
	chunk->block.addr = SZ_1M;
	state.geo.hbm_io = true;
	KUNIT_EXPECT_EQ(test, neuron_export_mmap(&state.buf, vma), 0);
	KUNIT_EXPECT_EQ(test, state.flags_device, 1u);
	KUNIT_EXPECT_EQ(test, neuron_export_fault(&vmf), (vm_fault_t)VM_FAULT_NOPAGE);
	KUNIT_EXPECT_EQ(test, state.frame, SZ_1M + 4 * (u64)PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, state.inserted, 1u);
	state.frame_err = -ENXIO;
	KUNIT_EXPECT_EQ(test, neuron_export_fault(&vmf), (vm_fault_t)VM_FAULT_SIGBUS);
	state.gone = true;
	KUNIT_EXPECT_EQ(test, neuron_export_fault(&vmf), (vm_fault_t)VM_FAULT_SIGBUS);
	chunk->host = true;
	chunk->pages = state.pages;
	dmabuf_put(&state.buf);
}

static struct kunit_case dmabuf_cases[] = {
	KUNIT_CASE(dmabuf_ranges),
	KUNIT_CASE(dmabuf_not_exported),
	KUNIT_CASE(dmabuf_of_address),
	KUNIT_CASE(dmabuf_imports),
	KUNIT_CASE(dmabuf_tables),
	KUNIT_CASE(dmabuf_no_table),
	KUNIT_CASE(dmabuf_bus),
	KUNIT_CASE(dmabuf_no_bus),
	KUNIT_CASE(dmabuf_bus_gone),
	KUNIT_CASE(dmabuf_kernel),
	KUNIT_CASE(dmabuf_mapped),
	{}
};

static struct kunit_suite dmabuf_suite = {
	.name = "neuron_dmabufs",
	.init = dmabuf_init,
	.exit = dmabuf_finish,
	.test_cases = dmabuf_cases,
};

kunit_test_suite(dmabuf_suite);

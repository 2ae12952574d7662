// SPDX-License-Identifier: GPL-2.0-only
/* Mappings of state buffers without the rest of neuron.ko: whose, where, and when. */
#include <kunit/test.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>

#include "../../kmod/base/call.h"
#include "../../kmod/base/client.h"
#include "../../kmod/base/core.h"
#include "../../kmod/base/device.h"
#include "../../kmod/base/hw.h"
#include "../../kmod/compat/compat.h"
#include "../../kmod/mem/map.h"

#define BASE	(1ULL << 40)
#define WINDOW	((u64)SZ_64M)
#define FRAME	0x1234u

static struct {
	struct neuron_geometry geo;
	struct neuron_hw_ops ops;
	struct neuron_device nd;
	struct neuron_client client, other;
	struct neuron_file nf;
	struct file file;
	struct vm_area_struct vma;
	int acquire[2];			/* results of the first attempt, of the next */
	u32 acquires, reaps, acquired;
	int reap_err;
	bool gone, no_frame, killed;
	int inside;
	unsigned long flags, addr, pfn;	/* set, what is inserted where */
	u32 devices, core, sleeps;
	u64 off;
} state;

static bool resource_enter(struct neuron_device *nd, int *idx)
{
	state.inside += !state.gone;
	return !state.gone;
}

static void resource_exit(struct neuron_device *nd, int idx)
{
	state.inside--;
}

static u32 resource_teardowns(void)
{
	return 77 + state.acquires;
}

static int resource_acquire(struct neuron_device *nd, u32 core, struct neuron_client *client)
{
	state.acquired = client == &state.client ? core : U32_MAX;
	return state.acquire[min(state.acquires++, 1u)];
}

static int resource_reap(struct neuron_device *nd, u32 seen)
{
	/* The number is that from before the attempt. */
	state.reaps += seen == 77;
	return state.reap_err;
}

static vm_fault_t resource_insert(struct vm_area_struct *vma, unsigned long addr, unsigned long pfn)
{
	/* Removal of the device, and a reset, must be kept away. */
	if (!state.inside || !mutex_is_locked(&state.nd.core[state.core].lock))
		return VM_FAULT_OOM;
	state.addr = addr;
	state.pfn = pfn;
	return VM_FAULT_NOPAGE;
}

static void resource_flags(struct vm_area_struct *vma, vm_flags_t flags)
{
	state.flags |= flags;
}

static void resource_vma_device(const struct neuron_device *nd, struct vm_area_struct *vma)
{
	state.devices++;
}

static long resource_sleep(long ticks)
{
	state.sleeps++;
	return 0;
}

#define neuron_device_enter		resource_enter
#define neuron_device_exit		resource_exit
#define neuron_teardowns_read		resource_teardowns
#define neuron_core_acquire_now		resource_acquire
#define neuron_clients_reap		resource_reap
#define vmf_insert_pfn			resource_insert
#define vm_flags_set			resource_flags
#define neuron_vma_device		resource_vma_device
#define schedule_timeout_killable	resource_sleep
#define fatal_signal_pending(task)	((void)(task), state.killed)

#include "../../kmod/mem/resource.c"

static int resource_pfn(struct neuron_device *nd, u32 core, u64 off, unsigned long *pfn)
{
	state.off = core == state.core ? off : U64_MAX;
	*pfn = FRAME;
	return state.no_frame ? -ENXIO : 0;
}

static int resource_init(struct kunit *test)
{
	u32 i;

	memset(&state, 0, sizeof(state));
	state.geo.nr_cores = 3;
	state.geo.nr_topsp = 2;
	state.geo.nr_hbms = 2;
	state.geo.tpb_base[0] = BASE;
	state.geo.tpb_size = WINDOW;
	state.ops.core_pfn = resource_pfn;
	state.nd.geo = &state.geo;
	state.nd.ops = &state.ops;
	state.nd.core = kunit_kcalloc(test, 3, sizeof(*state.nd.core), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, state.nd.core);
	for (i = 0; i < 3; i++) {
		mutex_init(&state.nd.core[i].lock);
		state.nd.core[i].owner = &state.client;
	}
	state.nf.nd = &state.nd;
	state.nf.client = &state.client;
	state.file.private_data = &state.nf;
	state.vma.vm_file = &state.file;
	return 0;
}

static void resource_finish(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, state.inside, 0);
}

static int map_at(u64 at, u64 len)
{
	state.acquires = 0;
	state.reaps = 0;
	state.flags = 0;
	state.devices = 0;
	state.vma.vm_ops = NULL;
	state.vma.vm_pgoff = at >> PAGE_SHIFT;
	state.vma.vm_start = SZ_1M;
	state.vma.vm_end = SZ_1M + len;
	return neuron_resource_mmap(&state.nf, &state.vma);
}

static void resource_where(struct kunit *test)
{
	static const struct {
		u64 at, len;
		int err;
		u32 core;
	} rows[] = {
		{ BASE, NEURON_RESOURCE_SBUF, 0, 0 },
		{ BASE, NEURON_RESOURCE_SBUF + PAGE_SIZE, -EINVAL },
		{ BASE + 2 * WINDOW, PAGE_SIZE, 0, 2 },
		{ BASE + 3 * WINDOW, PAGE_SIZE, -EPERM },
		{ BASE - PAGE_SIZE, PAGE_SIZE, -EPERM },
		{ BASE + WINDOW + NEURON_RESOURCE_SBUF - PAGE_SIZE, PAGE_SIZE, 0, 1 },
		{ BASE + WINDOW + NEURON_RESOURCE_SBUF - PAGE_SIZE, 2 * PAGE_SIZE, -EINVAL },
		{ BASE + WINDOW + NEURON_RESOURCE_SBUF, PAGE_SIZE, -EPERM },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		bool good = !rows[i].err;

		KUNIT_EXPECT_EQ(test, map_at(rows[i].at, rows[i].len), rows[i].err);
		KUNIT_EXPECT_EQ(test, state.acquires, (u32)good);
		KUNIT_EXPECT_EQ(test, state.devices, (u32)good);
		KUNIT_EXPECT_EQ(test, state.flags,
				good ? VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY : 0UL);
		KUNIT_EXPECT_PTR_EQ(test, state.vma.vm_ops, good ? &neuron_resource_vm : NULL);
		if (good)
			KUNIT_EXPECT_EQ(test, state.acquired, rows[i].core);
	}
}

/* A core of a process that is dead already is tried again; of another one it is not. */
static void resource_owner(struct kunit *test)
{
	static const struct {
		int first, reap, second, err;
		u32 acquires, reaps;
	} rows[] = {
		{ 0, 0, 0, 0, 1, 0 }, { -EBUSY, 0, 0, 0, 2, 1 },
		{ -EBUSY, -EBUSY, 0, -EBUSY, 1, 1 },
		{ -EBUSY, 0, -EBUSY, -EBUSY, 2, 1 }, { -EIO, 0, 0, -EIO, 1, 0 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		state.acquire[0] = rows[i].first;
		state.acquire[1] = rows[i].second;
		state.reap_err = rows[i].reap;
		KUNIT_EXPECT_EQ(test, map_at(BASE, PAGE_SIZE), rows[i].err);
		KUNIT_EXPECT_EQ(test, state.acquires, rows[i].acquires);
		KUNIT_EXPECT_EQ(test, state.reaps, rows[i].reaps);
		KUNIT_EXPECT_EQ(test, state.devices, (u32)!rows[i].err);
	}
}

static void resource_faults(struct kunit *test)
{
	static const struct {
		u32 core;
		u64 off;
		enum neuron_core_state is;
		bool others, gone, no_frame, killed;
		vm_fault_t ret;
		u32 sleeps;
	} rows[] = {
		{ .core = 0, .ret = VM_FAULT_NOPAGE },
		{ .core = 2, .off = 5 * PAGE_SIZE, .ret = VM_FAULT_NOPAGE },
		{ .core = 1, .others = true, .ret = VM_FAULT_SIGBUS },
		{ .core = 1, .gone = true, .ret = VM_FAULT_SIGBUS },
		{ .core = 1, .no_frame = true, .ret = VM_FAULT_SIGBUS },
		{ .core = 1, .is = NEURON_CORE_WEDGED, .ret = VM_FAULT_SIGBUS },
		{ .core = 1, .is = NEURON_CORE_RESETTING, .ret = VM_FAULT_NOPAGE, .sleeps = 1 },
		{ .core = 1, .is = NEURON_CORE_RESETTING, .killed = true,
		  .ret = VM_FAULT_SIGBUS, .sleeps = 1 },
		{ .core = 1, .is = NEURON_CORE_RESETTING, .others = true, .ret = VM_FAULT_SIGBUS },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		u64 at = BASE + rows[i].core * WINDOW + rows[i].off;
		struct vm_fault vmf = {
			.vma = &state.vma, .pgoff = at >> PAGE_SHIFT, .address = SZ_1M,
		};
		struct neuron_core *core = &state.nd.core[rows[i].core];
		bool good = rows[i].ret == VM_FAULT_NOPAGE && !rows[i].sleeps;

		state.core = rows[i].core;
		core->state = rows[i].is;
		core->owner = rows[i].others ? &state.other : &state.client;
		state.gone = rows[i].gone;
		state.no_frame = rows[i].no_frame;
		state.killed = rows[i].killed;
		state.sleeps = 0;
		state.pfn = 0;
		KUNIT_EXPECT_EQ(test, neuron_resource_fault(&vmf), rows[i].ret);
		KUNIT_EXPECT_EQ(test, state.sleeps, rows[i].sleeps);
		KUNIT_EXPECT_EQ(test, state.pfn, good ? FRAME : 0UL);
		if (good)
			KUNIT_EXPECT_EQ(test, state.off, rows[i].off);
		KUNIT_EXPECT_FALSE(test, mutex_is_locked(&core->lock));
	}
	KUNIT_EXPECT_EQ(test, state.addr, (unsigned long)SZ_1M);
}

static void resource_info(struct kunit *test)
{
	static const struct {
		u32 block, id, resource;
		int err;
	} rows[] = {
		{ NEURON_DM_BLOCK_TPB, 0, NEURON_DM_RESOURCE_SBUF, 0 },
		{ NEURON_DM_BLOCK_TPB, 2, NEURON_DM_RESOURCE_SBUF, 0 },
		{ NEURON_DM_BLOCK_TPB, 3, NEURON_DM_RESOURCE_SBUF, -EINVAL },
		{ NEURON_DM_BLOCK_TPB, 1, NEURON_DM_RESOURCE_SEMAPHORE, -EOPNOTSUPP },
		{ NEURON_DM_BLOCK_TPB, 1, NEURON_DM_RESOURCE_DMEM, -EINVAL },
		{ NEURON_DM_BLOCK_TOPSP, 1, NEURON_DM_RESOURCE_SEMAPHORE, -EOPNOTSUPP },
		{ NEURON_DM_BLOCK_TOPSP, 1, NEURON_DM_RESOURCE_ALL, -EOPNOTSUPP },
		{ NEURON_DM_BLOCK_TOPSP, 2, NEURON_DM_RESOURCE_ALL, -EINVAL },
		{ NEURON_DM_BLOCK_TOPSP, 0, NEURON_DM_RESOURCE_SBUF, -EINVAL },
		{ NEURON_DM_BLOCK_HBM, 1, NEURON_DM_RESOURCE_DMEM, -EPERM },
		{ NEURON_DM_BLOCK_HBM, 2, NEURON_DM_RESOURCE_DMEM, -EINVAL },
		{ NEURON_DM_BLOCK_HBM, 0, NEURON_DM_RESOURCE_SBUF, -EINVAL },
		{ U32_MAX, 0, NEURON_DM_RESOURCE_SBUF, -EINVAL },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct neuron_ioctl_resource_mmap_info a = {
			.block = rows[i].block, .block_id = rows[i].id,
			.resource = rows[i].resource,
		};
		struct neuron_call call = { .nd = &state.nd, .arg = &a };

		KUNIT_EXPECT_EQ(test, neuron_do_resource_mmap_info(&call), rows[i].err);
		KUNIT_EXPECT_EQ(test, a.offset, rows[i].err ? 0 : BASE + rows[i].id * WINDOW);
		KUNIT_EXPECT_EQ(test, a.size, rows[i].err ? 0 : NEURON_RESOURCE_SBUF);
	}
}

static struct kunit_case resource_cases[] = {
	KUNIT_CASE(resource_where),
	KUNIT_CASE(resource_owner),
	KUNIT_CASE(resource_faults),
	KUNIT_CASE(resource_info),
	{}
};

static struct kunit_suite resource_suite = {
	.name = "neuron_resources",
	.init = resource_init,
	.exit = resource_finish,
	.test_cases = resource_cases,
};

kunit_test_suite(resource_suite);

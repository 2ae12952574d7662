// SPDX-License-Identifier: GPL-2.0-only
/* The list of ranges in debugfs without the rest of neuron.ko: each line, and each file. */
#include <kunit/test.h>
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include "../../kmod/base/device.h"
#include "../../kmod/mem/hbm.h"

#define BASE	(1ULL << 40)

static struct {
	struct neuron_geometry geo;
	struct neuron_device nd;
	struct neuron_buddy_range range[4];
	int ready;
	u32 dirs, files, faults, removed;
	char name[4][8];
	void *data[4];
	umode_t mode;
} state;

/* The real one's contract: the range at or behind @addr, and where the next one begins. */
static unsigned int debugfs_walk(struct neuron_buddy *buddy, u64 *addr,
				 struct neuron_buddy_range *out, unsigned int count)
{
	u32 i;

	lockdep_assert_held(&state.nd.hbm[1].lock);
	for (i = 0; i < ARRAY_SIZE(state.range) && state.range[i].addr < *addr; i++)
		;
	if (i == ARRAY_SIZE(state.range) || count != 1)
		return 0;
	*out = state.range[i];
	*addr = out->addr + out->size;
	return 1;
}

static int debugfs_ready(struct neuron_hbm *hbm)
{
	return state.ready;
}

static struct dentry *debugfs_dir(const char *name, struct dentry *parent)
{
	state.dirs++;
	return (struct dentry *)&state.dirs;
}

static struct dentry *debugfs_file(const char *name, umode_t mode, struct dentry *parent,
				   void *data, const struct file_operations *fops)
{
	if (state.files < ARRAY_SIZE(state.data) && parent == (struct dentry *)&state.dirs) {
		strscpy(state.name[state.files], name, sizeof(state.name[0]));
		state.data[state.files] = data;
	}
	state.files++;
	state.mode = mode;
	return NULL;
}

static void debugfs_fault(struct neuron_fault *f, const char *name, struct dentry *dir)
{
	state.faults += f == &state.nd.fail_alloc && dir == (struct dentry *)&state.dirs;
}

static void debugfs_gone(struct dentry *dir)
{
	state.removed += dir == (struct dentry *)&state.dirs;
}

#undef debugfs_create_file
#undef debugfs_remove_recursive
#define neuron_buddy_walk		debugfs_walk
#define neuron_hbm_ready		debugfs_ready
#define debugfs_create_dir		debugfs_dir
#define debugfs_create_file		debugfs_file
#define debugfs_remove_recursive	debugfs_gone
#define neuron_fault_add		debugfs_fault

#include "../../kmod/mem/debugfs.c"

static int debugfs_init_case(struct kunit *test)
{
	memset(&state, 0, sizeof(state));
	state.geo.nr_hbms = 2;
	state.nd.geo = &state.geo;
	state.nd.hbm = kunit_kcalloc(test, 3, sizeof(*state.nd.hbm), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, state.nd.hbm);
	spin_lock_init(&state.nd.hbm[1].lock);
	state.nd.hbm[1].base = BASE;
	return 0;
}

static void debugfs_lines(struct kunit *test)
{
	static const struct neuron_buddy_range ranges[] = {
		{ 0, 0x1000, NEURON_BUDDY_RANGE_RESERVED, 0 },
		{ 0x1000, 0x3000, NEURON_BUDDY_RANGE_USED, 1 },
		{ 0x4000, 0x2000, NEURON_BUDDY_RANGE_USED, 0 },
		{ 0x6000, 0x10000, NEURON_BUDDY_RANGE_FREE, 0 },
	};
	static const char want[] = "0x10000000000 4096 reserved\n0x10000001000 12288 used frame\n"
				   "0x10000004000 8192 used\n0x10000006000 65536 free\n";
	static char buf[256];
	struct neuron_walk walk = { .hbm = &state.nd.hbm[1] };
	struct seq_file m = { .private = &walk, .buf = buf, .size = sizeof(buf) };
	loff_t pos = 0;
	u32 lines = 0;
	void *v;

	memcpy(state.range, ranges, sizeof(ranges));
	for (v = neuron_walk_start(&m, &pos); v && lines < 9; v = neuron_walk_next(&m, v, &pos)) {
		KUNIT_EXPECT_EQ(test, neuron_walk_show(&m, v), 0);
		lines++;
	}
	neuron_walk_stop(&m, v);
	KUNIT_EXPECT_EQ(test, lines, 4u);
	KUNIT_EXPECT_EQ(test, pos, (loff_t)0x16000);
	buf[min(m.count, sizeof(buf) - 1)] = '\0';
	KUNIT_EXPECT_STREQ(test, buf, want);

	/* A reader that comes back goes on where it was. */
	m.count = 0;
	pos = 0x4000;
	v = neuron_walk_start(&m, &pos);
	KUNIT_ASSERT_NOT_NULL(test, v);
	KUNIT_EXPECT_EQ(test, walk.range.addr, 0x4000ULL);
	KUNIT_EXPECT_EQ(test, walk.next, 0x6000ULL);
}

static void debugfs_opened(struct kunit *test)
{
	struct inode *inode = kunit_kzalloc(test, sizeof(*inode), GFP_KERNEL);
	struct file *file = kunit_kzalloc(test, sizeof(*file), GFP_KERNEL);
	struct neuron_walk *walk;

	KUNIT_ASSERT_NOT_NULL(test, inode);
	KUNIT_ASSERT_NOT_NULL(test, file);
	inode->i_private = &state.nd.hbm[1];
	state.ready = -ENOMEM;
	KUNIT_EXPECT_EQ(test, neuron_walk_open(inode, file), -ENOMEM);
	KUNIT_EXPECT_NULL(test, file->private_data);
	state.ready = 0;
	KUNIT_ASSERT_EQ(test, neuron_walk_open(inode, file), 0);
	walk = ((struct seq_file *)file->private_data)->private;
	KUNIT_EXPECT_PTR_EQ(test, walk->hbm, &state.nd.hbm[1]);
	KUNIT_EXPECT_EQ(test, seq_release_private(inode, file), 0);
}

static void debugfs_files(struct kunit *test)
{
	neuron_debugfs_init();
	KUNIT_EXPECT_EQ(test, state.dirs, 1u);
	neuron_debugfs_add(&state.nd);
	KUNIT_EXPECT_EQ(test, state.dirs, 2u);
	KUNIT_EXPECT_EQ(test, state.faults, 1u);
	KUNIT_ASSERT_EQ(test, state.files, 2u);
	KUNIT_EXPECT_EQ(test, (u32)state.mode, 0400u);
	KUNIT_EXPECT_STREQ(test, state.name[0], "hbm0");
	KUNIT_EXPECT_STREQ(test, state.name[1], "hbm1");
	KUNIT_EXPECT_PTR_EQ(test, state.data[0], (void *)&state.nd.hbm[0]);
	KUNIT_EXPECT_PTR_EQ(test, state.data[1], (void *)&state.nd.hbm[1]);
	neuron_debugfs_del(&state.nd);
	KUNIT_EXPECT_EQ(test, state.removed, 1u);
	neuron_debugfs_exit();
	KUNIT_EXPECT_EQ(test, state.removed, 2u);
}

static struct kunit_case debugfs_cases[] = {
	KUNIT_CASE(debugfs_lines),
	KUNIT_CASE(debugfs_opened),
	KUNIT_CASE(debugfs_files),
	{}
};

static struct kunit_suite debugfs_suite = {
	.name = "neuron_debugfs",
	.init = debugfs_init_case,
	.test_cases = debugfs_cases,
};

kunit_test_suite(debugfs_suite);

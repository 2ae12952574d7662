// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers of cores without the rest of neuron.ko, on a device that is reset, or has lost its
 * owner, between the look at the core and the access.
 */
#include <kunit/test.h>
#include <linux/eventfd.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../../kmod/base/call.h"
#include "../../kmod/base/claim.h"
#include "../../kmod/base/client.h"
#include "../../kmod/base/core.h"
#include "../../kmod/base/eventfd.h"
#include "../../kmod/base/hw.h"
#include "../../kmod/base/isolation.h"
#include "../../kmod/base/reset.h"
#include "../../kmod/compat/compat.h"
#include "../../kmod/core/reg_ioctl.h"
#include "../../kmod/core/reset.h"
#include "../../kmod/dma/copy.h"

#define EQ(a, b)	KUNIT_EXPECT_EQ(state.test, (u64)(a), (u64)(b))
#define OK(a)		KUNIT_EXPECT_TRUE(state.test, a)

/* What happens when somebody has become the owner of a core. */
enum core_event { CORE_NOTHING, CORE_RESET, CORE_WEDGED, CORE_GONE, CORE_LOST };

static struct {
	struct kunit *test;
	struct neuron_geometry geo;
	struct neuron_hw_ops ops;
	struct neuron_device nd;
	struct neuron_client client, other;
	struct neuron_core core[2];
	enum core_event event;
	u32 reset_after;	/* so many writes; 0: never */
	u32 reads, writes, off, val;
} state;

static void core_evict(struct neuron_crwl *crwl, const struct pid *pid)
{
	struct neuron_core *c = container_of(crwl, struct neuron_core, crwl);

	switch (state.event) {
	case CORE_NOTHING:
		break;
	case CORE_RESET:
		c->state = NEURON_CORE_RESETTING;
		break;
	case CORE_WEDGED:
		c->state = NEURON_CORE_WEDGED;
		break;
	case CORE_GONE:
		c->state = NEURON_CORE_GONE;
		break;
	case CORE_LOST:
		c->owner = &state.other;
		break;
	}
}

/* What is not asked for here. */
static bool stub_core_reserved(struct neuron_device *nd, struct neuron_core *c,
			       const struct pid *pid)
{
	return false;
}

static void stub_crwl_reset(struct neuron_crwl *crwl)
{
}

static void stub_core_clear_mark(struct neuron_core *c)
{
}

static void stub_core_clear_later(struct neuron_core *c)
{
}

static int stub_core_clear_run(struct neuron_core *c)
{
	return 0;
}

static bool stub_core_reset_mark(struct neuron_core *c)
{
	return false;
}

static bool stub_core_reset_request(struct neuron_core *c)
{
	return false;
}

static void stub_core_reset_run(struct neuron_device *nd, unsigned long cores)
{
}

static int stub_core_reset_wait(struct neuron_core *c, u32 epoch)
{
	return 0;
}

static int stub_cores_reset(struct neuron_client *client, unsigned long map)
{
	return 0;
}

static u32 stub_device_index(struct neuron_device *nd)
{
	return 0;
}

static int stub_eventfd_get(int fd, struct eventfd_ctx **out)
{
	*out = NULL;
	return 0;
}

static bool stub_isolation_window(struct neuron_device *nd, u64 off, u64 len)
{
	return true;
}

static void stub_isolation_refused(struct neuron_device *nd, const char *what)
{
}

static int stub_dma_addr_user(struct neuron_device *nd, u32 core, u64 addr, void __user *buf,
			      u64 len, bool to_device)
{
	return 0;
}

/* The memory of the process is the kernel's. */
static int core_copy(void *to, const void *from, unsigned long n)
{
	memcpy(to, from, n);
	return 0;
}

#define neuron_core_reserved	stub_core_reserved
#define neuron_crwl_reset	stub_crwl_reset
#define neuron_core_clear_mark	stub_core_clear_mark
#define neuron_core_clear_later	stub_core_clear_later
#define neuron_core_clear_run	stub_core_clear_run
#define neuron_core_reset_mark	stub_core_reset_mark
#define neuron_core_reset_request	stub_core_reset_request
#define neuron_core_reset_run	stub_core_reset_run
#define neuron_core_reset_wait	stub_core_reset_wait
#define neuron_cores_reset	stub_cores_reset
#define neuron_device_index	stub_device_index
#define neuron_eventfd_get	stub_eventfd_get
#define neuron_isolation_window	stub_isolation_window
#define neuron_isolation_refused	stub_isolation_refused
#define neuron_dma_addr_user	stub_dma_addr_user
#define neuron_crwl_evict	core_evict
#undef get_user
#define get_user(val, from)			((val) = *(const u64 __force *)(from), 0)
#define copy_from_user(to, from, n)		core_copy(to, (void __force *)(from), n)
#define copy_to_user(to, from, n)		core_copy((void __force *)(to), from, n)

#include "../../kmod/base/core.c"
#include "../../kmod/core/core_ioctl.c"
#include "../../kmod/core/reg_ioctl.c"

/* The device wants to be alone with the core, which no reset has. */
static void core_expect(enum neuron_block block, u32 core)
{
	EQ(block, NEURON_BLOCK_CORE);
	OK(mutex_is_locked(&state.core[core].lock));
	EQ(state.core[core].state, NEURON_CORE_READY);
	OK(state.core[core].owner == &state.client);
}

static int core_reg_read(struct neuron_device *nd, enum neuron_block block, u32 core, u32 off,
			 u32 *val)
{
	core_expect(block, core);
	state.reads++;
	state.off = off;
	*val = 0x5a5a;
	return 0;
}

static int core_reg_write(struct neuron_device *nd, enum neuron_block block, u32 core, u32 off,
			  u32 val)
{
	core_expect(block, core);
	state.off = off;
	state.val = val;
	if (++state.writes == state.reset_after)
		state.core[core].state = NEURON_CORE_RESETTING;
	return 0;
}

static void core_bind(struct neuron_device *nd, u32 core, struct neuron_space *space)
{
}

static int core_init(struct kunit *test)
{
	u32 i;

	memset(&state, 0, sizeof(state));
	state.test = test;
	state.geo.arch = NEURON_ARCH_V2;
	state.geo.nr_cores = 2;
	state.geo.nr_semaphores = 16;
	state.geo.nr_events = 16;
	state.geo.sem_block = 0x400;
	state.geo.tpb_size = 64 << 20;
	state.ops.core_bind = core_bind;
	state.ops.reg_read = core_reg_read;
	state.ops.reg_write = core_reg_write;
	state.nd.geo = &state.geo;
	state.nd.ops = &state.ops;
	state.nd.core = state.core;
	state.client.nd = &state.nd;
	state.other.nd = &state.nd;
	for (i = 0; i < ARRAY_SIZE(state.core); i++) {
		state.core[i].nd = &state.nd;
		mutex_init(&state.core[i].lock);
	}
	return 0;
}

/* ---- calls that access one register of core 1 ---------------------------------------- */

static int core_call(int (*handler)(struct neuron_call *call), void *arg)
{
	struct neuron_call call = { .nd = &state.nd, .client = &state.client, .arg = arg };

	return handler(&call);
}

#define SEMAPHORE(name)									\
static int call_sem_##name(void)							\
{											\
	struct neuron_ioctl_semaphore a = { .nc_id = 1, .semaphore_index = 3, .value = 7 };\
											\
	return core_call(neuron_do_semaphore_##name, &a);				\
}

SEMAPHORE(read)
SEMAPHORE(write)
SEMAPHORE(increment)
SEMAPHORE(decrement)

static int call_event_set(void)
{
	struct neuron_ioctl_event a = { .nc_id = 1, .event_index = 3, .value = 1 };

	return core_call(neuron_do_event_set, &a);
}

static int call_event_get(void)
{
	struct neuron_ioctl_event a = { .nc_id = 1, .event_index = 3 };

	return core_call(neuron_do_event_get, &a);
}

static int bar_write(u32 count)
{
	u64 addr[2] = { NEURON_BAR_COOKIE(0) + (64 << 20) + 16, NEURON_BAR_COOKIE(0) + (64 << 20) };
	u32 data[2] = { 7, 8 };
	struct neuron_ioctl_bar_rw a = { .address = addr, .data = data, .count = count };

	return core_call(neuron_do_bar_write, &a);
}

static int call_bar_write(void)
{
	return bar_write(1);
}

static const struct {
	const char *name;
	int (*call)(void);
	bool write;
	u32 off;
} core_calls[] = {
	{ "SEMAPHORE_READ", call_sem_read, false, NEURON_ISA_SEM_READ_OFF(3) },
	{ "SEMAPHORE_WRITE", call_sem_write, true, NEURON_ISA_SEM_READ_OFF(3) + 0x400 },
	{ "SEMAPHORE_INCREMENT", call_sem_increment, true, NEURON_ISA_SEM_READ_OFF(3) + 0x800 },
	{ "SEMAPHORE_DECREMENT", call_sem_decrement, true, NEURON_ISA_SEM_READ_OFF(3) + 0xc00 },
	{ "EVENT_GET", call_event_get, false, NEURON_ISA_EVENT_OFF(3) },
	{ "EVENT_SET", call_event_set, true, NEURON_ISA_EVENT_OFF(3) },
	{ "BAR_WRITE", call_bar_write, true, 16 },
};

/* A call that finds the core ready, whereupon @event comes. */
static int core_overtaken(u32 i, enum core_event event)
{
	state.core[1].owner = NULL;
	state.core[1].state = NEURON_CORE_READY;
	state.event = event;
	return core_calls[i].call();
}

static void core_registers(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(core_calls); i++) {
		state.reads = 0;
		state.writes = 0;
		KUNIT_EXPECT_EQ_MSG(test, core_overtaken(i, CORE_NOTHING), 0, "%s",
				    core_calls[i].name);
		EQ(state.reads, !core_calls[i].write);
		EQ(state.writes, core_calls[i].write);
		EQ(state.off, core_calls[i].off);
		OK(state.core[1].owner == &state.client && !state.core[0].owner);
	}
}

static void core_overtaken_by_a_reset(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(core_calls); i++) {
		const char *name = core_calls[i].name;

		KUNIT_EXPECT_EQ_MSG(test, core_overtaken(i, CORE_RESET), -EBUSY, "%s", name);
		KUNIT_EXPECT_EQ_MSG(test, core_overtaken(i, CORE_WEDGED), -EIO, "%s", name);
		KUNIT_EXPECT_EQ_MSG(test, core_overtaken(i, CORE_GONE), -ENODEV, "%s", name);
	}
	EQ(state.reads + state.writes, 0);
}

/* Its process is being torn down. */
static void core_overtaken_by_another_owner(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(core_calls); i++)
		KUNIT_EXPECT_EQ_MSG(test, core_overtaken(i, CORE_LOST), -EBUSY, "%s",
				    core_calls[i].name);
	EQ(state.reads + state.writes, 0);
}

/* Only an owner writes. */
static void core_write_of_nobody(struct kunit *test)
{
	EQ(neuron_core_write(&state.nd, 1, &state.client, 0, 7), -EBUSY);
	EQ(state.writes, 0);
}

/* A reset between two registers of one call. */
static void core_bar_write_is_cut_short(struct kunit *test)
{
	EQ(bar_write(2), 0);
	EQ(state.writes, 2);
	EQ(state.val, 8);
	state.reset_after = 3;
	EQ(bar_write(2), -EBUSY);
	EQ(state.writes, 3);
	EQ(state.val, 7);
}

static struct kunit_case core_cases[] = {
	KUNIT_CASE(core_registers),
	KUNIT_CASE(core_overtaken_by_a_reset),
	KUNIT_CASE(core_overtaken_by_another_owner),
	KUNIT_CASE(core_write_of_nobody),
	KUNIT_CASE(core_bar_write_is_cut_short),
	{}
};

static struct kunit_suite core_suite = {
	.name = "neuron_core",
	.init = core_init,
	.test_cases = core_cases,
};
kunit_test_suite(core_suite);

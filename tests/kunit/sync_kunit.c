// SPDX-License-Identifier: GPL-2.0-only
/* Fences of exported memory: who waits for whom, with real reservation objects. */
#include <kunit/test.h>
#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "../../kmod/mem/chunk.h"
#include "../../kmod/mem/sync.h"

static struct {
	struct neuron_chunk a, b;
	struct dma_fence foreign;
	spinlock_t lock;
	/* What fails, and how: the lock and the allocation of that number. */
	int deadlock, fail_alloc, reserve_err;
	long wait_err;
	int waits;
	struct dma_fence *waited;
	unsigned int refs;
	bool released;			/* the foreign fence */
} state;

static const char *foreign_name(struct dma_fence *fence)
{
	return "foreign";
}

static void foreign_release(struct dma_fence *fence)
{
	state.released = true;
}

static const struct dma_fence_ops foreign_ops = {
	.get_driver_name = foreign_name,
	.get_timeline_name = foreign_name,
	.release = foreign_release,
};

static void *sync_alloc(size_t size)
{
	return state.fail_alloc && !--state.fail_alloc ? NULL : kzalloc(size, GFP_KERNEL);
}

/* What is waited for ends meanwhile, or the wait does. */
static long sync_wait(struct dma_fence *fence, long timeout)
{
	state.waits++;
	state.waited = fence;
	if (state.wait_err <= 0)
		return state.wait_err;
	dma_fence_signal(fence);
	return timeout;
}

static int sync_lock(struct dma_resv *resv, struct ww_acquire_ctx *ctx)
{
	return state.deadlock && !--state.deadlock ? -EDEADLK :
						      dma_resv_lock_interruptible(resv, ctx);
}

static int sync_reserve(struct dma_resv *resv)
{
	return state.reserve_err ?: dma_resv_reserve_fences(resv, 1);
}

#undef kzalloc
#define kzalloc(size, gfp)				((void)(gfp), sync_alloc(size))
#define dma_fence_wait_timeout(fence, intr, left)	((void)(intr), sync_wait(fence, left))
#define dma_resv_lock_slow_interruptible(resv, ctx)	dma_resv_lock_interruptible(resv, ctx)
#define dma_resv_lock_interruptible			sync_lock
#define dma_resv_reserve_fences(resv, n)		((void)(n), sync_reserve(resv))

#include "../../kmod/mem/sync.c"

#define EQ(a, b)	KUNIT_EXPECT_EQ(test, (long)(a), (long)(b))

static int sync_init(struct kunit *test)
{
	memset(&state, 0, sizeof(state));
	state.wait_err = 1;
	state.refs = module_refcount(THIS_MODULE);
	spin_lock_init(&state.lock);
	KUNIT_ASSERT_NOT_NULL(test, neuron_sync_resv(&state.a));
	KUNIT_ASSERT_NOT_NULL(test, neuron_sync_resv(&state.b));
	return 0;
}

/* Fences hold the module until the last of them has gone. */
static void sync_finish(struct kunit *test)
{
	neuron_sync_free(&state.a);
	neuron_sync_free(&state.b);
	EQ(module_refcount(THIS_MODULE), state.refs);
}

static void add_foreign(struct neuron_chunk *chunk, enum dma_resv_usage usage)
{
	dma_fence_init(&state.foreign, &foreign_ops, &state.lock, dma_fence_context_alloc(1), 1);
	dma_resv_lock(chunk->resv, NULL);
	if (!(dma_resv_reserve_fences)(chunk->resv, 1))
		dma_resv_add_fence(chunk->resv, &state.foreign, usage);
	dma_resv_unlock(chunk->resv);
}

static bool read_by(const struct neuron_chunk *chunk)
{
	return !dma_resv_test_signaled(chunk->resv, DMA_RESV_USAGE_READ);
}

static bool written(const struct neuron_chunk *chunk)
{
	return !dma_resv_test_signaled(chunk->resv, DMA_RESV_USAGE_WRITE);
}

static void sync_not_exported(struct kunit *test)
{
	struct neuron_chunk c = { };

	KUNIT_EXPECT_NULL(test, neuron_sync_begin(&c, &c));
	neuron_sync_end(NULL, 0);
	EQ(neuron_sync_wait(&c, true), 0);
	neuron_sync_free(&c);
}

static void sync_one_object(struct kunit *test)
{
	struct dma_resv *resv = state.a.resv;

	KUNIT_EXPECT_PTR_EQ(test, neuron_sync_resv(&state.a), resv);
}

/* The source is read, the destination written, until the end. */
static void sync_copy(struct kunit *test)
{
	struct dma_fence *fence = neuron_sync_begin(&state.a, &state.b), *seen;

	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(fence));
	EQ(read_by(&state.a), true);
	EQ(written(&state.a), false);
	EQ(written(&state.b), true);
	dma_fence_get(fence);
	seen = fence;
	neuron_sync_end(fence, -EIO);
	EQ(read_by(&state.a), false);
	EQ(read_by(&state.b), false);
	EQ(dma_fence_get_status(seen), -EIO);
	EQ(module_refcount(THIS_MODULE), state.refs + 1);
	dma_fence_put(seen);
	EQ(state.waits, 0);
}

static void sync_one_side(struct kunit *test)
{
	struct neuron_chunk plain = { };
	struct dma_fence *fence = neuron_sync_begin(&plain, &state.b);

	EQ(written(&state.b), true);
	neuron_sync_end(fence, 0);
	fence = neuron_sync_begin(NULL, &state.b);
	EQ(written(&state.b), true);
	neuron_sync_end(fence, 0);
	fence = neuron_sync_begin(&state.a, &plain);
	EQ(read_by(&state.a) && !written(&state.a), true);
	neuron_sync_end(fence, 0);
	fence = neuron_sync_begin(&state.a, &state.a);
	EQ(written(&state.a), true);
	neuron_sync_end(fence, 0);
	EQ(read_by(&state.a) || read_by(&state.b), false);
}

/* A process orders its own copies: the second of them does not wait for the first. */
static void sync_own_copies(struct kunit *test)
{
	struct dma_fence *first = neuron_sync_begin(&state.a, &state.b);
	struct dma_fence *second = neuron_sync_begin(&state.b, &state.a);

	EQ(state.waits, 0);
	EQ(neuron_sync_wait(&state.b, true), 0);
	EQ(state.waits, 0);
	neuron_sync_end(second, 0);
	EQ(written(&state.b), true);
	neuron_sync_end(first, 0);
	EQ(written(&state.b) || written(&state.a), false);
}

/* What other devices do is waited for until a time, and an error of their own is no end. */
static void sync_drain(struct kunit *test)
{
	struct dma_fence *own = neuron_sync_begin(&state.b, &state.a);

	EQ(neuron_sync_drain(&state.a, jiffies + HZ), true);
	EQ(state.waits, 0);
	add_foreign(&state.a, DMA_RESV_USAGE_BOOKKEEP);
	EQ(neuron_sync_drain(&state.a, jiffies - 1), false);
	EQ(state.waits, 0);
	state.wait_err = -ETIME;
	EQ(neuron_sync_drain(&state.a, jiffies + HZ), false);
	EQ(state.waits, 1);
	state.wait_err = 1;
	EQ(neuron_sync_drain(&state.a, jiffies + HZ), true);
	EQ(state.waits, 2);
	KUNIT_EXPECT_PTR_EQ(test, state.waited, &state.foreign);
	neuron_sync_end(own, 0);
}

/* Readers are not waited for by readers; all others are. */
static void sync_foreign_reader(struct kunit *test)
{
	add_foreign(&state.a, DMA_RESV_USAGE_READ);
	neuron_sync_end(neuron_sync_begin(&state.a, &state.b), 0);
	EQ(neuron_sync_wait(&state.a, false), 0);
	EQ(state.waits, 0);
	neuron_sync_end(neuron_sync_begin(&state.b, &state.a), 0);
	EQ(state.waits, 1);
	KUNIT_EXPECT_PTR_EQ(test, state.waited, &state.foreign);
	/* It has ended. */
	EQ(neuron_sync_wait(&state.a, true), 0);
	EQ(state.waits, 1);
	/* The fence of the copy has its place: only the test has it any more. */
	EQ(state.released, false);
	dma_fence_put(&state.foreign);
	EQ(state.released, true);
}

static void sync_foreign_writer(struct kunit *test)
{
	add_foreign(&state.a, DMA_RESV_USAGE_WRITE);
	neuron_sync_end(neuron_sync_begin(&state.a, &state.b), 0);
	EQ(state.waits, 1);
	KUNIT_EXPECT_PTR_EQ(test, state.waited, &state.foreign);
}

static void sync_foreign_cpu(struct kunit *test)
{
	add_foreign(&state.a, DMA_RESV_USAGE_READ);
	EQ(neuron_sync_wait(&state.a, true), 0);
	EQ(state.waits, 1);
}

/* Until the wait has ended nobody sees a fence of ours. */
static void sync_wait_fails(struct kunit *test)
{
	static const long errors[][2] = { { 0, -ETIMEDOUT }, { -ERESTARTSYS, -ERESTARTSYS } };
	u32 i;

	add_foreign(&state.b, DMA_RESV_USAGE_WRITE);
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		state.wait_err = errors[i][0];
		EQ(PTR_ERR(neuron_sync_begin(&state.a, &state.b)), errors[i][1]);
		EQ(neuron_sync_wait(&state.b, false), errors[i][1]);
		EQ(read_by(&state.a), false);
	}
	dma_fence_signal(&state.foreign);
	EQ(written(&state.b), false);
	/* Nobody has it but the test and the memory. */
	dma_fence_put(&state.foreign);
	EQ(state.released, false);
	neuron_sync_free(&state.b);
	state.b.resv = NULL;
	EQ(state.released, true);
}

static void sync_no_memory(struct kunit *test)
{
	state.fail_alloc = 1;
	EQ(PTR_ERR(neuron_sync_begin(&state.a, &state.b)), -ENOMEM);
	state.reserve_err = -ENOMEM;
	EQ(PTR_ERR(neuron_sync_begin(&state.a, &state.b)), -ENOMEM);
	EQ(read_by(&state.a) || read_by(&state.b), false);
	/* Nothing stays locked. */
	EQ(dma_resv_is_locked(state.a.resv) || dma_resv_is_locked(state.b.resv), false);
}

/* Another driver has locked the second object and wants the first. */
static void sync_lock_order(struct kunit *test)
{
	struct dma_fence *fence;

	state.deadlock = 2;
	fence = neuron_sync_begin(&state.a, &state.b);
	EQ(read_by(&state.a) && !written(&state.a), true);
	EQ(written(&state.b), true);
	EQ(dma_resv_is_locked(state.a.resv) || dma_resv_is_locked(state.b.resv), false);
	neuron_sync_end(fence, 0);
}

static struct kunit_case sync_cases[] = {
	KUNIT_CASE(sync_not_exported),
	KUNIT_CASE(sync_one_object),
	KUNIT_CASE(sync_copy),
	KUNIT_CASE(sync_one_side),
	KUNIT_CASE(sync_own_copies),
	KUNIT_CASE(sync_drain),
	KUNIT_CASE(sync_foreign_reader),
	KUNIT_CASE(sync_foreign_writer),
	KUNIT_CASE(sync_foreign_cpu),
	KUNIT_CASE(sync_wait_fails),
	KUNIT_CASE(sync_no_memory),
	KUNIT_CASE(sync_lock_order),
	{ }
};

static struct kunit_suite sync_suite = {
	.name = "neuron_sync",
	.init = sync_init,
	.exit = sync_finish,
	.test_cases = sync_cases,
};
kunit_test_suite(sync_suite);

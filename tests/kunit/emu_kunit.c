// SPDX-License-Identifier: GPL-2.0-only
/*
 * The software device without neuron.ko: the very same files, with a small
 * stand-in for the functions that they call.  A device with two memories and
 * two cores is driven through its registers and rings, as neuron.ko would.
 */
#include <kunit/test.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/wait.h>

#define neuron_space_pin	fake_space_pin
#define neuron_ring_pin		fake_ring_pin
#define neuron_device_pin	fake_device_pin
#define neuron_pin_put		fake_pin_put
#define neuron_dma_irq		fake_dma_irq
#define neuron_nq_posted	fake_nq_posted
#define neuron_device_report	fake_device_report

#include "../../kmod/emu/arithmetic.h"
#include "../../kmod/emu/core.h"

/* Unsigned and of one type everywhere; KUnit compares types, too. */
#define EQ(test, a, b)	KUNIT_EXPECT_EQ(test, (u64)(a), (u64)(b))

#define HBM_SIZE	(64ULL << 20)
#define HBM1		0x1000000000ULL
#define CORE_BASE(c)	(0xfffc0000000ULL + 0x4000000ULL * (c))
#define HOST		(1ULL << 44)
#define HOST_PAGES	160
#define SBUF_SIZE	(1u << 20)
#define MAX_RANGES	8

struct fake_range {
	u64 base, size;
	bool write;
};

/* What a queue may touch: everything in a few ranges. */
struct neuron_space {
	struct neuron_device *nd;
	struct fake_range range[MAX_RANGES];
	u32 nr;
};

struct neuron_device {
	struct emu_device *ed;
	struct page *host[HOST_PAGES];
	struct neuron_space space, other;
	wait_queue_head_t wait;
	bool hold;		/* the next write to a window, once it is pinned */
	bool hold_alloc;	/* the next state buffer, before there is memory for it */
	struct completion held, go;
	atomic_t pins;
	atomic_t irqs;
	atomic_t posts;
	atomic_t reports[NEURON_NR_EVENTS];
};

static int fake_resolve(struct neuron_device *nd, u64 addr, u64 len, struct neuron_pin *pin)
{
	struct emu_device *ed = nd->ed;
	u32 i;

	memset(pin, 0, sizeof(*pin));
	for (i = 0; i < ed->geo.nr_hbms; i++) {
		pin->kind = NEURON_TARGET_HBM;
		pin->index = i;
		pin->off = addr - ed->geo.hbm[i].base;
		if (pin->off < HBM_SIZE && len <= HBM_SIZE - pin->off)
			goto found;
	}
	for (i = 0; i < ed->geo.nr_cores; i++) {
		pin->kind = NEURON_TARGET_CORE;
		pin->index = i;
		pin->off = addr - CORE_BASE(i);
		if (pin->off < ed->geo.tpb_size && len <= ed->geo.tpb_size - pin->off)
			goto found;
	}
	pin->kind = NEURON_TARGET_HOST;
	pin->index = 0;
	pin->off = addr - HOST;
	pin->pages = nd->host;
	if (pin->off >= HOST_PAGES * PAGE_SIZE || len > HOST_PAGES * PAGE_SIZE - pin->off)
		return -EACCES;
found:
	atomic_inc(&nd->pins);
	/* only to find the device again */
	pin->chunk = (struct neuron_chunk *)nd;
	return 0;
}

/* Between the check of an access and the access itself, until the test goes on. */
static void fake_hold(struct neuron_device *nd, bool *hold)
{
	if (!*hold)
		return;
	*hold = false;
	complete(&nd->held);
	wait_for_completion_timeout(&nd->go, HZ / 4);
}

int fake_space_pin(struct neuron_space *space, u64 addr, u64 len, bool write,
		   struct neuron_pin *pin)
{
	u32 i;

	for (i = 0; i < space->nr; i++) {
		const struct fake_range *r = &space->range[i];

		if (addr - r->base < r->size && len <= r->size - (addr - r->base) &&
		    (!write || r->write)) {
			int err = fake_resolve(space->nd, addr, len, pin);

			if (!err && write && pin->kind == NEURON_TARGET_CORE)
				fake_hold(space->nd, &space->nd->hold);
			return err;
		}
	}
	return -EACCES;
}

/* Every device here checks for itself. */
int fake_ring_pin(struct neuron_space *space, u64 addr, u64 len, bool write,
		  struct neuron_pin *pin)
{
	return -EACCES;
}

int fake_device_pin(struct neuron_device *nd, u64 addr, u64 len, bool write,
		    struct neuron_pin *pin)
{
	return fake_resolve(nd, addr, len, pin);
}

void fake_pin_put(struct neuron_pin *pin)
{
	struct neuron_device *nd = (struct neuron_device *)pin->chunk;

	atomic_dec(&nd->pins);
}

void fake_dma_irq(struct neuron_device *nd, u32 eng, u32 q)
{
	atomic_inc(&nd->irqs);
	wake_up(&nd->wait);
}

void fake_nq_posted(struct neuron_device *nd, u32 core, u32 nq)
{
	atomic_inc(&nd->posts);
	wake_up(&nd->wait);
}

void fake_device_report(struct neuron_device *nd, enum neuron_event event, u32 core)
{
	atomic_inc(&nd->reports[event]);
}

#include "../../kmod/emu/busy.c"
#include "../../kmod/emu/faults.c"
#include "../../kmod/emu/completion.c"
#include "../../kmod/emu/hbm.c"

static void *fake_kvzalloc(struct emu_device *ed, size_t size, gfp_t flags)
{
	fake_hold(ed->nd, &ed->nd->hold_alloc);
	return kvzalloc(size, flags);
}

#pragma push_macro("kvzalloc")
#undef kvzalloc
#define kvzalloc(size, flags)	fake_kvzalloc(ed, size, flags)
#include "../../kmod/emu/mem.c"
#pragma pop_macro("kvzalloc")

#include "../../kmod/emu/notify.c"
#include "../../kmod/emu/trace.c"
#include "../../kmod/emu/compute.c"
#include "../../kmod/emu/window.c"
#include "../../kmod/emu/posted.c"
#include "../../kmod/emu/packet.c"
#include "../../kmod/emu/share.c"
#include "../../kmod/emu/queue.c"
#include "../../kmod/emu/dma.c"
#include "../../kmod/emu/rows.c"
#include "../../kmod/emu/shuffle.c"
#include "../../kmod/emu/engine.c"
#include "../../kmod/emu/core.c"
#include "../../kmod/emu/debugfs.c"

/* ---- device ---- */

/* Pages of host memory behind all device memories. */
static long nr_pages(struct kunit *test)
{
	struct emu_device *ed = ((struct neuron_device *)test->priv)->ed;
	long n = 0;
	u32 i;

	for (i = 0; i < ed->geo.nr_hbms; i++)
		n += atomic_long_read(&ed->hbm[i].nr_pages);
	return n;
}

static void emu_test_exit(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct emu_device *ed;
	u32 i, q;

	if (!nd)
		return;
	ed = nd->ed;
	for (i = 0; i < ed->geo.nr_dma_engines; i++)
		for (q = 0; q < NEURON_HW_QUEUES_PER_ENGINE; q++)
			emu_dma_stop(ed, i, q);
	emu_posted_free(ed);
	emu_core_destroy(ed);
	emu_dma_destroy(ed);
	if (ed->wq)
		destroy_workqueue(ed->wq);
	for (i = 0; i < ed->geo.nr_hbms; i++)
		emu_hbm_destroy(&ed->hbm[i]);
	EQ(test, atomic_read(&nd->pins), 0);
	EQ(test, nr_pages(test), 0);
	for (i = 0; i < HOST_PAGES; i++)
		if (nd->host[i])
			__free_page(nd->host[i]);
	kfree(ed);
	kfree(nd);
}

static int emu_test_init(struct kunit *test)
{
	static const struct neuron_geometry geo = {
		.nr_cores = 2,
		.nr_hbms = 2,
		.hbm = { { 0, HBM_SIZE, 0 }, { HBM1, HBM_SIZE, 0 } },
		.nr_dma_engines = 10,
		.engines_per_core = 4,
		.nr_semaphores = 256,
		.sem_block = 0x400,
		.nr_events = 256,
		.nr_nq_types = 5,
		.nr_nq_engines = 16,
		.copy_engine = { 8, 9 },
		.host_window = HOST,
		.tpb_base = { CORE_BASE(0), CORE_BASE(1) },
		.tpb_size = 0x4000000,
		.sbuf_size = SBUF_SIZE,
	};
	struct neuron_device *nd = kzalloc(sizeof(*nd), GFP_KERNEL);
	struct emu_device *ed = kzalloc(sizeof(*ed), GFP_KERNEL);
	u32 i;

	if (!nd || !ed) {
		kfree(nd);
		kfree(ed);
		return -ENOMEM;
	}
	test->priv = nd;
	nd->ed = ed;
	ed->nd = nd;
	ed->geo = geo;
	ed->checks = true;
	init_waitqueue_head(&nd->wait);
	init_completion(&nd->held);
	init_completion(&nd->go);
	emu_busy_init(&ed->busy);
	for (i = 0; i < geo.nr_hbms; i++)
		emu_hbm_init(&ed->hbm[i], geo.hbm[i].size);
	emu_dma_init(ed);
	ed->wq = alloc_workqueue("emu_kunit", WQ_UNBOUND, 4);
	if (!ed->wq)
		return -ENOMEM;
	for (i = 0; i < HOST_PAGES; i++) {
		nd->host[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!nd->host[i])
			return -ENOMEM;
	}
	/*
	 * Space: host memory, HBM 1, core 0; the first 64 KiB of HBM 0 for
	 * reading only, and 64 KiB for writing after a hole of the same size.
	 */
	nd->space.nd = nd;
	nd->space.range[0] = (struct fake_range){ HOST, HOST_PAGES * PAGE_SIZE, true };
	nd->space.range[1] = (struct fake_range){ HBM1, HBM_SIZE, true };
	nd->space.range[2] = (struct fake_range){ CORE_BASE(0), 0x4000000, true };
	nd->space.range[3] = (struct fake_range){ 0, SZ_64K, false };
	nd->space.range[4] = (struct fake_range){ SZ_128K, SZ_64K, true };
	nd->space.nr = 5;
	nd->other = nd->space;
	return emu_core_init(ed);
}

static struct neuron_pin pin_at(struct kunit *test, u64 addr, u64 len)
{
	struct neuron_device *nd = test->priv;
	struct neuron_pin pin;

	KUNIT_ASSERT_EQ(test, fake_resolve(nd, addr, len, &pin), 0);
	return pin;
}

static void poke(struct kunit *test, u64 addr, const void *buf, u32 len)
{
	struct neuron_device *nd = test->priv;
	struct neuron_pin pin = pin_at(test, addr, len);

	KUNIT_ASSERT_EQ(test, emu_mem_write(nd->ed, &pin, 0, buf, len), 0);
	fake_pin_put(&pin);
}

static void peek(struct kunit *test, u64 addr, void *buf, u32 len)
{
	struct neuron_device *nd = test->priv;
	struct neuron_pin pin = pin_at(test, addr, len);

	KUNIT_ASSERT_EQ(test, emu_mem_read(nd->ed, &pin, 0, buf, len), 0);
	fake_pin_put(&pin);
}

static void poke32(struct kunit *test, u64 addr, u32 val)
{
	__le32 v = cpu_to_le32(val);

	poke(test, addr, &v, sizeof(v));
}

static u32 peek32(struct kunit *test, u64 addr)
{
	__le32 v;

	peek(test, addr, &v, sizeof(v));
	return le32_to_cpu(v);
}

/* ---- queues ---- */

#define RING_LEN	64

/* Rings of queue q in host memory: a page for TX and one for RX. */
static u64 ring_addr(u32 q, bool rx)
{
	return HOST + (2 * q + rx) * PAGE_SIZE;
}

/* Free host memory begins here. */
#define HOST_DATA	(HOST + 64 * PAGE_SIZE)
#define HOST_END	(HOST + HOST_PAGES * PAGE_SIZE)

static void reg(struct kunit *test, u32 eng, u32 off, u32 val)
{
	struct neuron_device *nd = test->priv;

	KUNIT_ASSERT_EQ(test, emu_dma_reg_write(nd->ed, eng, off, val), 0);
}

static u32 reg_get(struct kunit *test, u32 eng, u32 off)
{
	struct neuron_device *nd = test->priv;
	u32 val = 0;

	KUNIT_ASSERT_EQ(test, emu_dma_reg_read(nd->ed, eng, off, &val), 0);
	return val;
}

static void queue_open_at(struct kunit *test, u32 eng, u32 q, struct neuron_space *space,
			  u64 tx_ring, u64 rx_ring, u32 len)
{
	const struct neuron_queue_setup setup = { .space = space };
	struct neuron_device *nd = test->priv;
	u32 rx;

	KUNIT_ASSERT_EQ(test, emu_dma_bind(nd->ed, eng, q, &setup), 0);
	for (rx = 0; rx < 2; rx++) {
		u32 base = rx ? NEURON_DMA_RX(q) : NEURON_DMA_TX(q);
		u64 addr = rx ? rx_ring : tx_ring;

		reg(test, eng, base + NEURON_DMA_Q_BASE_LO, lower_32_bits(addr));
		reg(test, eng, base + NEURON_DMA_Q_BASE_HI, upper_32_bits(addr));
		reg(test, eng, base + NEURON_DMA_Q_LENGTH, len);
		reg(test, eng, base + NEURON_DMA_Q_CONFIG, NEURON_DMA_Q_CONFIG_ENABLE);
	}
}

static void queue_open(struct kunit *test, u32 eng, u32 q)
{
	struct neuron_device *nd = test->priv;

	queue_open_at(test, eng, q, &nd->space, ring_addr(q, false), ring_addr(q, true),
		      RING_LEN);
}

static void put_desc(struct kunit *test, u32 q, bool rx, u32 i, u64 addr, u32 len, u32 flags)
{
	struct neuron_desc d = {
		.ctrl = cpu_to_le32((len & NEURON_DESC_LEN_MASK) | flags),
		.meta = cpu_to_le32(rx ? 0 : NEURON_DESC_META_COPY),
		.addr = cpu_to_le64(addr),
	};

	poke(test, ring_addr(q, rx) + i * sizeof(d), &d, sizeof(d));
}

/* One packet of one descriptor. */
static void put_copy(struct kunit *test, u32 q, u32 i, u64 dst, u64 src, u32 len, u32 flags)
{
	put_desc(test, q, false, i, src, len, NEURON_DESC_FIRST | NEURON_DESC_LAST | flags);
	put_desc(test, q, true, i, dst, len, 0);
}

static void doorbell(struct kunit *test, u32 eng, u32 q, u32 tx, u32 rx)
{
	reg(test, eng, NEURON_DMA_RX(q) + NEURON_DMA_Q_TAIL_INC, rx);
	reg(test, eng, NEURON_DMA_TX(q) + NEURON_DMA_Q_TAIL_INC, tx);
}

static bool wait_irqs(struct kunit *test, int n)
{
	struct neuron_device *nd = test->priv;

	return wait_event_timeout(nd->wait, atomic_read(&nd->irqs) >= n, 120 * HZ);
}

static bool wait_posts(struct kunit *test, int n)
{
	struct neuron_device *nd = test->priv;

	return wait_event_timeout(nd->wait, atomic_read(&nd->posts) >= n, 120 * HZ);
}

/* Until all work, and the work that came from it, is done. */
static void wait_idle(struct kunit *test)
{
	struct neuron_device *nd = test->priv;

	drain_workqueue(nd->ed->wq);
}

static u32 queue_status(struct kunit *test, u32 eng, u32 q)
{
	return reg_get(test, eng, NEURON_DMA_TX(q) + NEURON_DMA_Q_STATUS);
}

#define NQ_ADDR(i)	(HOST + (40 + (i)) * PAGE_SIZE)

static void nq_open(struct kunit *test, u32 core, u32 nq, u64 addr, u32 size)
{
	struct neuron_device *nd = test->priv;
	struct emu_notify *nt = nd->ed->notify[core];

	EQ(test, emu_nq_reg_write(nt, NEURON_NQ_SIZE(nq), 0), 0);
	EQ(test, emu_nq_reg_write(nt, NEURON_NQ_BASE_LO(nq), lower_32_bits(addr)), 0);
	EQ(test, emu_nq_reg_write(nt, NEURON_NQ_BASE_HI(nq), upper_32_bits(addr)), 0);
	EQ(test, emu_nq_reg_write(nt, NEURON_NQ_SIZE(nq), size), 0);
}

#define NQ_ERR	EMU_NQ(EMU_NQ_ERROR, 0)
#define NQ_NOTE(e) EMU_NQ(EMU_NQ_NOTIFY, e)

static struct neuron_isa_notice notice_at(struct kunit *test, u64 addr)
{
	struct neuron_isa_notice n;

	peek(test, addr, &n, sizeof(n));
	return n;
}

/* ---- instructions ---- */

static struct neuron_isa_inst inst(u8 opcode, u8 op, u8 flags)
{
	struct neuron_isa_inst in = {
		.opcode = opcode,
		.magic = NEURON_ISA_MAGIC,
		.op = op,
		.flags = flags,
	};

	return in;
}

static struct neuron_isa_inst in_prologue(u32 e)
{
	struct neuron_isa_inst in = inst(NEURON_ISA_OP_PROLOGUE, 0, 0);

	in.u.prologue.signature = cpu_to_le32(NEURON_ISA_SIGNATURE);
	in.u.prologue.version = cpu_to_le16(NEURON_ISA_VERSION);
	in.u.prologue.engine = cpu_to_le16(e);
	return in;
}

static struct neuron_isa_inst in_sem(u8 opcode, u8 op, u8 flags, u32 index, u32 value)
{
	struct neuron_isa_inst in = inst(opcode, op, flags);

	in.u.sem.index = cpu_to_le32(index);
	in.u.sem.value = cpu_to_le32(value);
	return in;
}

static struct neuron_isa_inst in_notify(u32 id, u64 data)
{
	struct neuron_isa_inst in = inst(NEURON_ISA_OP_NOTIFY, 0, 0);

	in.u.notify.id = cpu_to_le32(id);
	in.u.notify.data = cpu_to_le64(data);
	return in;
}

static struct neuron_isa_inst in_trigger(u32 eng, u32 q, u32 tx, u32 rx)
{
	struct neuron_isa_inst in = inst(NEURON_ISA_OP_DMA_TRIGGER, 0, 0);

	in.u.dma.engine = cpu_to_le16(eng);
	in.u.dma.queue = cpu_to_le16(q);
	in.u.dma.tx_count = cpu_to_le32(tx);
	in.u.dma.rx_count = cpu_to_le32(rx);
	return in;
}

#define WAIT(i, v) in_sem(NEURON_ISA_OP_SEM_WAIT, NEURON_ISA_WAIT_GE, NEURON_ISA_F_CONSUME, i, v)
#define POST(i, v) in_sem(NEURON_ISA_OP_SEM_POST, NEURON_ISA_POST_INC, 0, i, v)

/* Put instructions into a FIFO, through memory, without a DMA queue. */
static void feed(struct kunit *test, u32 core, u32 e, const struct neuron_isa_inst *in, u32 n)
{
	struct neuron_device *nd = test->priv;
	u64 addr = HBM1 + (4 << 20);
	struct neuron_pin pin;

	poke(test, addr, in, n * sizeof(*in));
	pin = pin_at(test, addr, n * sizeof(*in));
	down_read(&nd->ed->window_lock);
	EQ(test, emu_fifo_write(nd->ed->window[core], e, &pin, 0, n * sizeof(*in)),
	   n * sizeof(*in));
	up_read(&nd->ed->window_lock);
	fake_pin_put(&pin);
}

static u32 sem(struct kunit *test, u32 core, u32 i)
{
	struct neuron_device *nd = test->priv;
	u32 val = ~0;

	KUNIT_ASSERT_EQ(test, emu_window_reg_read(nd->ed->window[core],
						  NEURON_ISA_SEM_READ_OFF(i), &val), 0);
	return val;
}

static int sem_inc(struct kunit *test, u32 core, u32 i, u32 n)
{
	struct neuron_device *nd = test->priv;

	return emu_window_reg_write(nd->ed->window[core], NEURON_ISA_SEM_INC_OFF(i), n);
}

/* ---- device memory ---- */

static void hbm_is_sparse(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	u8 *buf = kunit_kzalloc(test, 3 * PAGE_SIZE, GFP_KERNEL);
	unsigned long pfn, pfn2;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	memset(buf, 0xaa, 3 * PAGE_SIZE);
	peek(test, 0x1ff0, buf, 3 * PAGE_SIZE);
	KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0, 3 * PAGE_SIZE));
	EQ(test, nr_pages(test), 0);

	memset(buf, 0xaa, 3 * PAGE_SIZE);
	poke(test, PAGE_SIZE - 1, buf, PAGE_SIZE + 2);
	EQ(test, nr_pages(test), 3);
	peek(test, 0, buf, 3 * PAGE_SIZE);
	KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0, PAGE_SIZE - 1));
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + PAGE_SIZE - 1, 0xaa, PAGE_SIZE + 2));
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + 2 * PAGE_SIZE + 1, 0, PAGE_SIZE - 1));
	/* the same offset of another memory is other memory */
	EQ(test, peek32(test, HBM1 + PAGE_SIZE), 0);

	EQ(test, emu_hbm_frame(emu_hbm(nd->ed, 0), PAGE_SIZE, &pfn), 0);
	EQ(test, nr_pages(test), 3);
	EQ(test, emu_hbm_frame(emu_hbm(nd->ed, 0), 9 * PAGE_SIZE, &pfn), 0);
	EQ(test, nr_pages(test), 4);
	EQ(test, emu_hbm_frame(emu_hbm(nd->ed, 0), 9 * PAGE_SIZE, &pfn2), 0);
	EQ(test, pfn, pfn2);
	KUNIT_EXPECT_EQ(test, emu_hbm_frame(emu_hbm(nd->ed, 0), HBM_SIZE, &pfn), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_hbm_frame(emu_hbm(nd->ed, 2), 0, &pfn), -EINVAL);
}

static void hbm_zero_and_drop(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	const u32 len = 6 * PAGE_SIZE;
	u8 *buf = kunit_kzalloc(test, len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	memset(buf, 0x55, len);
	poke(test, HBM1, buf, len);
	EQ(test, nr_pages(test), 6);

	/* cleared, not dropped: it may be mapped */
	EQ(test, emu_hbm_zero(emu_hbm(nd->ed, 1), 100, 2 * PAGE_SIZE, false), 0);
	EQ(test, nr_pages(test), 6);
	peek(test, HBM1, buf, len);
	KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0x55, 100));
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + 100, 0, 2 * PAGE_SIZE));
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + 100 + 2 * PAGE_SIZE, 0x55,
					   len - 100 - 2 * PAGE_SIZE));

	/* inside one page; from the end of one to the start of another */
	EQ(test, emu_hbm_zero(emu_hbm(nd->ed, 1), 10, 20, true), 0);
	EQ(test, emu_hbm_zero(emu_hbm(nd->ed, 1), 3 * PAGE_SIZE + 1, 2 * PAGE_SIZE - 2, true), 0);
	EQ(test, nr_pages(test), 6);
	EQ(test, emu_hbm_zero(emu_hbm(nd->ed, 1), 3 * PAGE_SIZE - 8, 2 * PAGE_SIZE + 16, true), 0);
	EQ(test, nr_pages(test), 4);
	peek(test, HBM1, buf, len);
	KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0x55, 10));
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + 3 * PAGE_SIZE - 8, 0, 2 * PAGE_SIZE + 16));
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + 5 * PAGE_SIZE + 8, 0x55, PAGE_SIZE - 8));

	KUNIT_EXPECT_EQ(test, emu_hbm_zero(emu_hbm(nd->ed, 1), HBM_SIZE - 1, 2, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_hbm_zero(emu_hbm(nd->ed, 1), 2, U64_MAX, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_hbm_zero(emu_hbm(nd->ed, 5), 0, 1, true), -EINVAL);
	EQ(test, emu_hbm_zero(emu_hbm(nd->ed, 1), 0, HBM_SIZE, true), 0);
	EQ(test, nr_pages(test), 0);
}

static void hbm_copies_holes_as_holes(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct neuron_pin a = pin_at(test, 0, SZ_64K), b = pin_at(test, HBM1, SZ_64K);

	EQ(test, emu_mem_copy(nd->ed, &b, 0, &a, 0, SZ_64K), 0);
	EQ(test, nr_pages(test), 0);
	poke32(test, HBM1 + 5 * SZ_4K, 0x12345678);
	EQ(test, emu_mem_copy(nd->ed, &b, 0, &a, 0, SZ_64K), 0);
	EQ(test, nr_pages(test), 1);
	EQ(test, peek32(test, HBM1 + 5 * SZ_4K), 0);
	fake_pin_put(&b);
	fake_pin_put(&a);
}

/* From the host into pages that are not there yet: all new, some new, and too many. */
static void hbm_fills_new_pages(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	const u32 len = 20 * PAGE_SIZE - 7;
	struct neuron_pin host = pin_at(test, HOST_DATA, len), pin = pin_at(test, HBM1, len);
	unsigned long max = emu_max_pages;
	u8 *data = kunit_kzalloc(test, len, GFP_KERNEL);
	u8 *buf = kunit_kzalloc(test, len, GFP_KERNEL);
	u32 round;

	KUNIT_ASSERT_NOT_NULL(test, data);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (round = 0; round < 4; round++) {
		/* neither side at the start of a page, in the last one */
		u32 so = 13 * round, doff = round == 3 ? 5 : 0, n = len - so - doff;

		get_random_bytes(data, len);
		poke(test, HOST_DATA, data, len);
		if (round == 1)
			poke32(test, HBM1 + 5 * PAGE_SIZE + 8, 1);
		if (round == 2)
			poke32(test, HBM1 + 8, 1);
		EQ(test, emu_mem_copy(nd->ed, &pin, doff, &host, so, n), 0);
		EQ(test, nr_pages(test), 20);
		peek(test, HBM1 + doff, buf, n);
		KUNIT_EXPECT_EQ(test, memcmp(buf, data + so, n), 0);
		EQ(test, emu_hbm_zero(emu_hbm(nd->ed, 1), 0, HBM_SIZE, true), 0);
		EQ(test, nr_pages(test), 0);
	}
	emu_max_pages = atomic_long_read(&emu_total_pages) + 18;
	KUNIT_EXPECT_EQ(test, emu_mem_copy(nd->ed, &pin, 0, &host, 0, len), -ENOMEM);
	emu_max_pages = max;
	EQ(test, nr_pages(test), 18);
	EQ(test, emu_mem_copy(nd->ed, &pin, 0, &host, 0, len), 0);
	EQ(test, nr_pages(test), 20);
	fake_pin_put(&pin);
	fake_pin_put(&host);
}

/* Random copies between host, device memory and state buffer, with a model. */
static void mem_random_copies(struct kunit *test)
{
	static const u64 base[] = { HOST_DATA, HBM1 + 0x1234, CORE_BASE(0) };
	struct neuron_device *nd = test->priv;
	const u32 area = 20 * SZ_4K;
	struct rnd_state rnd;
	u8 *model[3], *buf;
	u32 n, i;

	prandom_seed_state(&rnd, 20261121);
	buf = kunit_kzalloc(test, area, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < 3; i++) {
		model[i] = kunit_kzalloc(test, area, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, model[i]);
		prandom_bytes_state(&rnd, model[i], area);
		poke(test, base[i], model[i], area);
	}
	for (n = 0; n < 300; n++) {
		u32 s = prandom_u32_state(&rnd) % 3, d = prandom_u32_state(&rnd) % 3;
		u32 len = 1 + prandom_u32_state(&rnd) % (n % 2 ? 70000 : 100);
		u32 so = prandom_u32_state(&rnd) % (area - len);
		u32 doff = prandom_u32_state(&rnd) % (area - len);
		struct neuron_pin sp = pin_at(test, base[s], area);
		struct neuron_pin dp = pin_at(test, base[d], area);

		/* the result of an overlapping copy is not defined */
		if (s != d) {
			EQ(test, emu_mem_copy(nd->ed, &dp, doff, &sp, so, len), 0);
			memcpy(model[d] + doff, model[s] + so, len);
		}
		fake_pin_put(&sp);
		fake_pin_put(&dp);
	}
	for (i = 0; i < 3; i++) {
		peek(test, base[i], buf, area);
		KUNIT_EXPECT_EQ(test, memcmp(buf, model[i], area), 0);
	}
}

struct sbuf_writer {
	struct work_struct work;
	struct emu_device *ed;
	u8 *sbuf;
};

static void write_sbuf(struct work_struct *work)
{
	struct sbuf_writer *w = container_of(work, struct sbuf_writer, work);

	w->sbuf = emu_sbuf_get(w->ed, 0, true);
}

/* Two are the first to write to a core, and the limit allows one more state buffer. */
static void sbuf_is_charged_once(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct sbuf_writer w = { .ed = nd->ed };
	unsigned long max = emu_max_pages;
	u8 *sbuf;

	emu_max_pages = atomic_long_read(&emu_total_pages) + PFN_UP(SBUF_SIZE);
	nd->hold_alloc = true;
	INIT_WORK_ONSTACK(&w.work, write_sbuf);
	queue_work(nd->ed->wq, &w.work);
	wait_for_completion(&nd->held);
	sbuf = emu_sbuf_get(nd->ed, 0, true);
	KUNIT_EXPECT_NOT_NULL(test, sbuf);
	complete(&nd->go);
	flush_work(&w.work);
	destroy_work_on_stack(&w.work);
	KUNIT_EXPECT_PTR_EQ(test, sbuf, w.sbuf);
	KUNIT_EXPECT_NULL(test, emu_sbuf_get(nd->ed, 1, true));
	emu_max_pages = max;
}

/* ---- DMA ---- */

static void dma_copies(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	u8 *a = kunit_kzalloc(test, SZ_64K, GFP_KERNEL);
	u8 *b = kunit_kzalloc(test, SZ_64K, GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_ASSERT_NOT_NULL(test, b);
	get_random_bytes(a, SZ_64K);
	poke(test, HOST_DATA, a, SZ_64K);
	queue_open(test, 0, 3);
	EQ(test, queue_status(test, 0, 3), NEURON_QUEUE_ENABLED);
	/* in, across, out, then a marker: a length of 0 is 64 KiB */
	put_copy(test, 3, 0, HBM1 + 5, HOST_DATA, 0, 0);
	put_copy(test, 3, 1, CORE_BASE(0), HBM1 + 5, 0, 0);
	put_copy(test, 3, 2, HOST_DATA + SZ_64K, CORE_BASE(0), 0, 0);
	poke32(test, HOST_DATA + 2 * SZ_64K, 0xabcdef01);
	put_copy(test, 3, 3, HOST_DATA + 2 * SZ_64K + 4, HOST_DATA + 2 * SZ_64K, 4,
		 NEURON_DESC_INT);
	/* nothing happens before both doorbells rang */
	reg(test, 0, NEURON_DMA_TX(3) + NEURON_DMA_Q_TAIL_INC, 4);
	wait_idle(test);
	EQ(test, reg_get(test, 0, NEURON_DMA_TX(3) + NEURON_DMA_Q_HEAD), 1u << 30);
	reg(test, 0, NEURON_DMA_RX(3) + NEURON_DMA_Q_TAIL_INC, 4);
	KUNIT_EXPECT_TRUE(test, wait_irqs(test, 1));
	EQ(test, peek32(test, HOST_DATA + 2 * SZ_64K + 4), 0xabcdef01);
	peek(test, HOST_DATA + SZ_64K, b, SZ_64K);
	KUNIT_EXPECT_EQ(test, memcmp(a, b, SZ_64K), 0);
	EQ(test, reg_get(test, 0, NEURON_DMA_TX(3) + NEURON_DMA_Q_HEAD), 1u << 30 | 4);
	EQ(test, reg_get(test, 0, NEURON_DMA_RX(3) + NEURON_DMA_Q_TAIL), 1u << 30 | 4);

	/* around the ring a few times: the phase advances modulo 4 */
	for (i = 4; i < RING_LEN; i++)
		put_copy(test, 3, i, HBM1, HOST_DATA, 8, i == RING_LEN - 1 ? NEURON_DESC_INT : 0);
	doorbell(test, 0, 3, RING_LEN - 4, RING_LEN - 4);
	KUNIT_EXPECT_TRUE(test, wait_irqs(test, 2));
	for (i = 0; i < 3; i++) {
		EQ(test, reg_get(test, 0, NEURON_DMA_TX(3) + NEURON_DMA_Q_HEAD),
		   (u32)(i + 2) << 30);
		doorbell(test, 0, 3, RING_LEN, RING_LEN);
		KUNIT_EXPECT_TRUE(test, wait_irqs(test, 4 + 2 * i));
		wait_idle(test);
	}
	EQ(test, atomic_read(&nd->irqs), 8);
	EQ(test, reg_get(test, 0, NEURON_DMA_TX(3) + NEURON_DMA_Q_HEAD), 1u << 30);
	EQ(test, queue_status(test, 0, 3), NEURON_QUEUE_ENABLED);
}

/* A thread that sees the last marker may fill the ring again: its places are free. */
static void dma_marker_means_room(struct kunit *test)
{
	const u64 marker = HOST_DATA + PAGE_SIZE;
	u32 n, i, spins;

	queue_open(test, 0, 0);
	for (n = 1; n <= 200; n++) {
		for (i = 0; i < RING_LEN - 1; i++)
			put_copy(test, 0, i, HBM1, HOST_DATA, 64, 0);
		put_copy(test, 0, i, marker + 4, marker, 4, 0);
		poke32(test, marker, n);
		doorbell(test, 0, 0, RING_LEN, RING_LEN);
		for (spins = 0; peek32(test, marker + 4) != n && spins < 10000000; spins++)
			cond_resched();
		EQ(test, peek32(test, marker + 4), n);
		EQ(test, reg_get(test, 0, NEURON_DMA_TX(0) + NEURON_DMA_Q_HEAD),
		   reg_get(test, 0, NEURON_DMA_TX(0) + NEURON_DMA_Q_TAIL));
	}
}

/* A packet whose source and destination descriptors differ in length. */
static void dma_packets_are_streams(struct kunit *test)
{
	static const u32 tx_len[] = { 1, 5000, 64, 300 };
	static const u32 rx_len[] = { 4096, 10, 1259 };
	u8 buf[64];
	u32 i, pos;

	for (i = 0; i < 5365; i += 37)
		poke32(test, HOST_DATA + i, i * 2654435761u);
	queue_open(test, 1, 0);
	for (i = 0, pos = 0; i < ARRAY_SIZE(tx_len); pos += tx_len[i++])
		put_desc(test, 0, false, i, HOST_DATA + pos, tx_len[i],
			 (i ? 0 : NEURON_DESC_FIRST) |
			 (i == 3 ? NEURON_DESC_LAST | NEURON_DESC_INT : 0));
	for (i = 0, pos = 0; i < ARRAY_SIZE(rx_len); pos += rx_len[i++])
		put_desc(test, 0, true, i, HBM1 + 77 + pos, rx_len[i], 0);
	/* the packet waits for the rest of its destination */
	doorbell(test, 1, 0, 4, 2);
	wait_idle(test);
	EQ(test, queue_status(test, 1, 0), NEURON_QUEUE_ENABLED);
	EQ(test, reg_get(test, 1, NEURON_DMA_RX(0) + NEURON_DMA_Q_HEAD), 1u << 30 | 2);
	reg(test, 1, NEURON_DMA_RX(0) + NEURON_DMA_Q_TAIL_INC, 1);
	KUNIT_EXPECT_TRUE(test, wait_irqs(test, 1));
	EQ(test, queue_status(test, 1, 0), NEURON_QUEUE_ENABLED);
	for (i = 0; i < 5365 - 4; i += 37)
		EQ(test, peek32(test, HBM1 + 77 + i), peek32(test, HOST_DATA + i));
	peek(test, HBM1 + 77 + 5365, buf, sizeof(buf));
	KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0, sizeof(buf)));
}

struct bad_desc {
	const char *what;
	u64 src, dst;
	u32 tx_len, rx_len;
	u32 flags;	/* of TX, FIRST and LAST inverted */
	u32 meta;	/* exclusive or */
	u32 code;
	u64 addr;	/* reported; 1 = the descriptor's */
};

static const struct bad_desc bad_descs[] = {
	{ "source in a hole", SZ_64K, HBM1, 16, 16, 0, 0, NEURON_ISA_ERR_DMA_ACCESS, SZ_64K },
	{ "source runs into a hole", SZ_64K - 8, HBM1, 16, 16, 0, 0,
	  NEURON_ISA_ERR_DMA_ACCESS, SZ_64K - 8 },
	{ "source wraps", U64_MAX - 4, HBM1, 16, 16, 0, 0,
	  NEURON_ISA_ERR_DMA_ACCESS, U64_MAX - 4 },
	{ "destination read only", HOST_DATA, 0, 16, 16, 0, 0, NEURON_ISA_ERR_DMA_ACCESS, 0 },
	{ "destination of another core", HOST_DATA, CORE_BASE(1), 16, 16, 0, 0,
	  NEURON_ISA_ERR_DMA_ACCESS, CORE_BASE(1) },
	{ "beyond the state buffer", HOST_DATA, CORE_BASE(0) + SBUF_SIZE - 8, 16, 16, 0, 0,
	  NEURON_ISA_ERR_DMA_ACCESS, CORE_BASE(0) + SBUF_SIZE - 8 },
	{ "source is a FIFO", CORE_BASE(0) + NEURON_ISA_FIFO_OFF(0), HBM1, 64, 64, 0, 0,
	  NEURON_ISA_ERR_DMA_ACCESS, CORE_BASE(0) + NEURON_ISA_FIFO_OFF(0) },
	{ "not a whole instruction", HOST_DATA, CORE_BASE(0) + NEURON_ISA_FIFO_OFF(0), 32, 32,
	  0, 0, NEURON_ISA_ERR_DMA_DESC, CORE_BASE(0) + NEURON_ISA_FIFO_OFF(0) },
	{ "two registers at once", HOST_DATA, CORE_BASE(0) + NEURON_ISA_SEM_INC_OFF(3), 8, 8, 0, 0,
	  NEURON_ISA_ERR_DMA_DESC, CORE_BASE(0) + NEURON_ISA_SEM_INC_OFF(3) },
	{ "unaligned register", HOST_DATA, CORE_BASE(0) + NEURON_ISA_SEM_INC_OFF(3) + 2, 4, 4,
	  0, 0, NEURON_ISA_ERR_DMA_DESC, CORE_BASE(0) + NEURON_ISA_SEM_INC_OFF(3) + 2 },
	{ "shorter source", HOST_DATA, HBM1, 15, 16, 0, 0, NEURON_ISA_ERR_DMA_DESC, 1 },
	{ "not first", HOST_DATA, HBM1, 16, 16, NEURON_DESC_FIRST, 0,
	  NEURON_ISA_ERR_DMA_DESC, 1 },
	{ "operation 4", HOST_DATA, HBM1, 16, 16, 0, 6 << NEURON_DESC_META_OP_SHIFT,
	  NEURON_ISA_ERR_DMA_DESC, 1 },
	{ "compute with CRC bits", HOST_DATA, HBM1, 16, 16, 0, 1 << NEURON_DESC_META_OP_SHIFT,
	  NEURON_ISA_ERR_DMA_DESC, 1 },
};

static void dma_refuses(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct neuron_isa_notice n;
	u32 i, k, len = 0;
	u8 buf[16];

	nq_open(test, 0, NQ_ERR, NQ_ADDR(0), PAGE_SIZE);
	memset(buf, 0x77, sizeof(buf));
	poke(test, HOST_DATA, buf, sizeof(buf));
	queue_open(test, 2, 1);
	for (i = 0; i < ARRAY_SIZE(bad_descs); i++) {
		const struct bad_desc *b = &bad_descs[i];
		struct neuron_desc d = {
			.ctrl = cpu_to_le32(b->tx_len | ((NEURON_DESC_FIRST | NEURON_DESC_LAST) ^
							 b->flags)),
			.meta = cpu_to_le32(NEURON_DESC_META_COPY ^ b->meta),
			.addr = cpu_to_le64(b->src),
		};

		/* a good one, the bad one, a good one that must not happen */
		put_copy(test, 1, 0, HBM1 + SZ_64K, HOST_DATA, 4, 0);
		poke(test, ring_addr(1, false) + 16, &d, sizeof(d));
		put_desc(test, 1, true, 1, b->dst, b->rx_len, 0);
		put_copy(test, 1, 2, HBM1 + SZ_64K + 8, HOST_DATA, 4, 0);
		doorbell(test, 2, 1, 3, 3);
		KUNIT_EXPECT_TRUE_MSG(test, wait_irqs(test, i + 1), "%s", b->what);
		wait_idle(test);

		EQ(test, queue_status(test, 2, 1), NEURON_QUEUE_ABORTED);
		n = notice_at(test, NQ_ADDR(0) + i * sizeof(n));
		KUNIT_EXPECT_EQ_MSG(test, (u32)n.code, b->code, "%s", b->what);
		EQ(test, n.kind, NEURON_ISA_NOTICE_DMA_ERROR);
		EQ(test, n.engine, 2);
		EQ(test, n.phase, 1 << 4 | 1);
		EQ(test, le32_to_cpu(n.id), 1);
		EQ(test, le64_to_cpu(n.data), b->addr == 1 ? ring_addr(1, false) + 16 : b->addr);

		EQ(test, peek32(test, HBM1 + SZ_64K), 0x77777777);
		EQ(test, peek32(test, HBM1 + SZ_64K + 8), 0);
		peek(test, HBM1, buf, sizeof(buf));
		KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0, sizeof(buf)));

		/* doorbells are dead until the rings are reset */
		doorbell(test, 2, 1, 1, 1);
		wait_idle(test);
		EQ(test, atomic_read(&nd->irqs), i + 1);
		reg(test, 2, NEURON_DMA_TX(1) + NEURON_DMA_TX_SWRESET, NEURON_DMA_Q_SWRESET);
		reg(test, 2, NEURON_DMA_RX(1) + NEURON_DMA_RX_SWRESET, NEURON_DMA_Q_SWRESET);
		EQ(test, queue_status(test, 2, 1), NEURON_QUEUE_ENABLED);
	}
	for (k = 0; k < 8; k++)
		len += sem(test, 0, k);
	EQ(test, len, 0);
	EQ(test, atomic_read(&nd->posts), ARRAY_SIZE(bad_descs));
}

static void dma_ring_gone(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct neuron_isa_notice n;

	nq_open(test, 0, NQ_ERR, NQ_ADDR(0), PAGE_SIZE);
	/* the ring of the destination is in a hole of the space */
	queue_open_at(test, 0, 0, &nd->space, ring_addr(0, false), SZ_64K, RING_LEN);
	put_copy(test, 0, 0, HBM1, HOST_DATA, 4, 0);
	doorbell(test, 0, 0, 1, 1);
	KUNIT_EXPECT_TRUE(test, wait_irqs(test, 1));
	n = notice_at(test, NQ_ADDR(0));
	EQ(test, n.code, NEURON_ISA_ERR_DMA_RING);
	EQ(test, le64_to_cpu(n.data), SZ_64K);
}

static void dma_registers(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	const struct neuron_queue_setup setup = { .space = &nd->space };
	struct emu_device *ed = nd->ed;
	const u32 tx = NEURON_DMA_TX(0), rx = NEURON_DMA_RX(0);
	u32 val;

	/* nothing is there yet, and reads as after a reset */
	EQ(test, queue_status(test, 0, 0), NEURON_QUEUE_DISABLED);
	EQ(test, reg_get(test, 0, NEURON_DMA_COMMON), NEURON_DMA_ENG_NORMAL);
	KUNIT_EXPECT_NULL(test, ed->dma[0]);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(ed, 0, tx + NEURON_DMA_Q_LENGTH, 64), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_bind(ed, 10, 0, &setup), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_bind(ed, 0, 16, &setup), -EINVAL);

	queue_open(test, 0, 0);
	KUNIT_EXPECT_EQ(test, emu_dma_bind(ed, 0, 0, &setup), -EBUSY);
	/* an enabled ring is not reprogrammed */
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(ed, 0, tx + NEURON_DMA_Q_BASE_LO, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(ed, 0, rx + NEURON_DMA_Q_LENGTH, 64), -EINVAL);
	reg(test, 0, tx + NEURON_DMA_Q_CONFIG, 0);
	EQ(test, queue_status(test, 0, 0), NEURON_QUEUE_DISABLED);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(ed, 0, tx + NEURON_DMA_Q_BASE_LO, 128), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(ed, 0, tx + NEURON_DMA_Q_LENGTH, 16), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(ed, 0, tx + NEURON_DMA_Q_LENGTH, 40), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(ed, 0, tx + NEURON_DMA_Q_LENGTH, 16777216),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(ed, 0, tx + NEURON_DMA_Q_HEAD, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(ed, 0, tx + NEURON_DMA_Q_COMPL_LO, 64), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(ed, 0, tx, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_read(ed, 0, tx, &val), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_read(ed, 0, 0, &val), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_read(ed, 0, NEURON_DMA_TX(16) + 0x20, &val), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_read(ed, 10, tx + NEURON_DMA_Q_HEAD, &val), -EINVAL);
	/* a doorbell may fill the ring but not run over itself */
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(ed, 0, rx + NEURON_DMA_Q_TAIL_INC, RING_LEN + 1),
			-EINVAL);
	reg(test, 0, rx + NEURON_DMA_Q_TAIL_INC, RING_LEN);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(ed, 0, rx + NEURON_DMA_Q_TAIL_INC, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(ed, 0, rx + NEURON_DMA_Q_TAIL_INC, U32_MAX),
			-EINVAL);
	emu_dma_stop(ed, 0, 0);
	EQ(test, reg_get(test, 0, rx + NEURON_DMA_Q_TAIL), 1u << 30);
}

static void dma_bind_programs_rings(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct neuron_queue_setup setup = {
		.space = &nd->space,
		.addr = { HBM1 + SZ_64K, 0 },
		.length = { RING_LEN, 2 * RING_LEN },
	};
	const u32 tx = NEURON_DMA_TX(3), rx = NEURON_DMA_RX(3);

	KUNIT_ASSERT_EQ(test, emu_dma_bind(nd->ed, 1, 3, &setup), 0);
	EQ(test, reg_get(test, 1, tx + NEURON_DMA_Q_BASE_LO), lower_32_bits(setup.addr[0]));
	EQ(test, reg_get(test, 1, tx + NEURON_DMA_Q_BASE_HI), upper_32_bits(setup.addr[0]));
	EQ(test, reg_get(test, 1, tx + NEURON_DMA_Q_LENGTH), RING_LEN);
	EQ(test, reg_get(test, 1, tx + NEURON_DMA_Q_STATUS), NEURON_QUEUE_ENABLED);
	/* the other one has no address yet */
	EQ(test, reg_get(test, 1, rx + NEURON_DMA_Q_LENGTH), 2 * RING_LEN);
	EQ(test, reg_get(test, 1, rx + NEURON_DMA_Q_STATUS), NEURON_QUEUE_DISABLED);
	emu_dma_stop(nd->ed, 1, 3);

	setup.length[1] = 40;
	KUNIT_EXPECT_EQ(test, emu_dma_bind(nd->ed, 1, 3, &setup), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_dma_bind(nd->ed, 1, 3, &setup), -EBUSY);
	emu_dma_stop(nd->ed, 1, 3);
}

static void dma_engine_states(struct kunit *test)
{
	struct neuron_device *nd = test->priv;

	queue_open(test, 0, 0);
	queue_open(test, 0, 1);
	reg(test, 0, NEURON_DMA_COMMON, NEURON_DMA_ENG_DISABLE);
	put_copy(test, 0, 0, HBM1, HOST_DATA, 4, NEURON_DESC_INT);
	doorbell(test, 0, 0, 1, 1);
	wait_idle(test);
	EQ(test, atomic_read(&nd->irqs), 0);
	reg(test, 0, NEURON_DMA_COMMON, NEURON_DMA_ENG_NORMAL);
	KUNIT_EXPECT_TRUE(test, wait_irqs(test, 1));
	KUNIT_EXPECT_EQ(test, emu_dma_reg_write(nd->ed, 0, NEURON_DMA_COMMON,
						NEURON_DMA_ENG_IDLE), -EINVAL);
	reg(test, 0, NEURON_DMA_COMMON, NEURON_DMA_ENG_ABORT);
	EQ(test, reg_get(test, 0, NEURON_DMA_COMMON), NEURON_DMA_ENG_ABORT);
	EQ(test, queue_status(test, 0, 0), NEURON_QUEUE_ABORTED);
	EQ(test, queue_status(test, 0, 1), NEURON_QUEUE_ABORTED);
	EQ(test, queue_status(test, 0, 2), NEURON_QUEUE_DISABLED);
	EQ(test, atomic_read(&nd->irqs), 3);
}

/* K16: a waiter has done a part, and then the device is to complete in another way. */
static void dma_poll_hands_over(struct kunit *test)
{
	static const enum emu_completion later[] = { EMU_COMPLETE_INLINE, EMU_COMPLETE_TIMER };
	struct neuron_device *nd = test->priv;
	struct emu_device *ed = nd->ed;
	u32 n, i;

	for (n = 0; n < ARRAY_SIZE(later); n++) {
		queue_open(test, 0, 0);
		for (i = 0; i < RING_LEN; i++)
			put_copy(test, 0, i, HBM1 + i * SZ_64K, HOST_DATA, 0,
				 i == RING_LEN - 1 ? NEURON_DESC_INT : 0);
		/* No work item comes in between. */
		ed->completion = EMU_COMPLETE_TIMER;
		ed->completion_nsec = 1000 * NSEC_PER_SEC;
		doorbell(test, 0, 0, RING_LEN, RING_LEN);
		KUNIT_EXPECT_EQ(test, hrtimer_cancel(&ed->dma[0]->timer), 1);
		ed->completion = EMU_COMPLETE_WORKER;
		KUNIT_EXPECT_TRUE(test, emu_dma_poll(ed, 0, 0));
		EQ(test, atomic_read(&nd->irqs), n);

		ed->completion_nsec = 1000;
		ed->completion = later[n];
		KUNIT_EXPECT_FALSE(test, emu_dma_poll(ed, 0, 0));
		KUNIT_EXPECT_TRUE(test, wait_irqs(test, n + 1));
		emu_dma_stop(ed, 0, 0);
	}
}

#define OWN_ENGINE	8	/* the driver's copies of core 0, on queue 0 */

/* As a thread does that waits: no work item is woken. */
static void run_own(struct kunit *test, u32 n)
{
	struct emu_device *ed = ((struct neuron_device *)test->priv)->ed;

	KUNIT_ASSERT_EQ(test, emu_dma_start(ed, OWN_ENGINE, 0, n), 0);
	KUNIT_EXPECT_FALSE(test, work_busy(&ed->dma[OWN_ENGINE]->work));
	while (emu_dma_poll(ed, OWN_ENGINE, 0))
		;
	wait_idle(test);
}

/* @n descriptors of 64 KiB, and one with the interrupt. */
static void put_long_copy(struct kunit *test, u64 dst, u64 src, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		put_copy(test, 0, i, dst + i * SZ_64K, src + i * SZ_64K, 0, 0);
	put_copy(test, 0, n, HOST_DATA + 4, HOST_DATA, 4, NEURON_DESC_INT);
}

/* Descriptors of the driver that continue each other are one copy. */
static void dma_joins_copies(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	const u32 n = 30;
	u32 i;

	queue_open(test, OWN_ENGINE, 0);
	for (i = 0; i < n * 16; i++)
		poke32(test, HBM1 + i * SZ_4K, i + 1);
	put_long_copy(test, HBM1 + SZ_4M, HBM1, n);
	run_own(test, n + 1);
	EQ(test, nd->ed->dma[OWN_ENGINE]->share.len, n * SZ_64K);
	EQ(test, atomic_read(&nd->irqs), 1);
	for (i = 0; i < n * 16; i++)
		EQ(test, peek32(test, HBM1 + SZ_4M + i * SZ_4K), i + 1);
	EQ(test, reg_get(test, OWN_ENGINE, NEURON_DMA_TX(0) + NEURON_DMA_Q_HEAD),
	   1u << 30 | (n + 1));
	EQ(test, reg_get(test, OWN_ENGINE, NEURON_DMA_RX(0) + NEURON_DMA_Q_HEAD),
	   1u << 30 | (n + 1));
}

/* Where the order of descriptors shows, they are done one by one. */
static void dma_joins_no_overlap(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	u32 i;

	queue_open(test, OWN_ENGINE, 0);
	poke32(test, HBM1, 17);
	put_long_copy(test, HBM1 + SZ_64K, HBM1, 4);
	run_own(test, 5);
	EQ(test, nd->ed->dma[OWN_ENGINE]->share.len, 0);
	for (i = 0; i <= 4; i++)
		EQ(test, peek32(test, HBM1 + i * SZ_64K), 17);
	EQ(test, atomic_read(&nd->irqs), 1);
}

/* A fault meets the first descriptor, as it does without joining. */
static void dma_joins_no_fault(struct kunit *test)
{
	struct neuron_device *nd = test->priv;

	queue_open(test, OWN_ENGINE, 0);
	poke32(test, HBM1, 17);
	put_long_copy(test, HBM1 + SZ_4M, HBM1, 4);
	atomic_set(&nd->ed->faults.fault[EMU_FAULT_DMA_ABORT].shots, 1);
	run_own(test, 5);
	EQ(test, nd->ed->dma[OWN_ENGINE]->share.len, 0);
	EQ(test, queue_status(test, OWN_ENGINE, 0), NEURON_QUEUE_ABORTED);
	EQ(test, peek32(test, HBM1 + SZ_4M), 0);
}

/* A copy without descriptors, where a descriptor could do it, and only there. */
static void dma_small_copies(struct kunit *test)
{
	struct emu_device *ed = ((struct neuron_device *)test->priv)->ed;
	u32 word = 0x12345678, got = 0;

#define RW(addr, write)	emu_dma_rw(ed, OWN_ENGINE, 0, addr, (write) ? &word : &got, 4, write)
	KUNIT_EXPECT_FALSE(test, RW(HBM1, true));	/* not started */
	queue_open(test, OWN_ENGINE, 0);
	KUNIT_EXPECT_TRUE(test, RW(HBM1 + PAGE_SIZE - 2, true));
	KUNIT_EXPECT_TRUE(test, RW(HBM1 + PAGE_SIZE - 2, false));
	EQ(test, got, word);
	EQ(test, peek32(test, HBM1 + PAGE_SIZE - 2), word);
	KUNIT_EXPECT_FALSE(test, RW(SZ_64K, false));	/* nobody's */
	KUNIT_EXPECT_FALSE(test, RW(0, true));		/* only for reading */
	KUNIT_EXPECT_FALSE(test, RW(CORE_BASE(0), false));
	atomic_set(&ed->faults.fault[EMU_FAULT_MEM_UNCORRECTED].shots, 1);
	KUNIT_EXPECT_FALSE(test, RW(HBM1, false));
	EQ(test, atomic_read(&ed->faults.fault[EMU_FAULT_MEM_UNCORRECTED].shots), 1);
	atomic_set(&ed->faults.fault[EMU_FAULT_MEM_UNCORRECTED].shots, 0);
	ed->completion = EMU_COMPLETE_TIMER;
	KUNIT_EXPECT_FALSE(test, RW(HBM1, false));
	ed->completion = EMU_COMPLETE_WORKER;
	/* What a doorbell asked for comes first. */
	reg(test, OWN_ENGINE, NEURON_DMA_RX(0) + NEURON_DMA_Q_TAIL_INC, 1);
	KUNIT_EXPECT_FALSE(test, RW(HBM1, false));
#undef RW
}

#define TRANSPOSE (NEURON_ISA_DMA_COMPUTE | NEURON_ISA_DMA_TRANSPOSE << 20)

static void put_compute(struct kunit *test, bool rx, u32 i, u32 meta, u64 addr, u32 len, u32 flags)
{
	struct neuron_desc d = {
		.ctrl = cpu_to_le32(len | flags),
		.meta = cpu_to_le32(meta),
		.addr = cpu_to_le64(addr),
	};

	poke(test, ring_addr(0, rx) + i * sizeof(d), &d, sizeof(d));
}

/* K17: rings that are programmed anew know nothing of a packet that had begun. */
static void dma_length_ends_a_packet(struct kunit *test)
{
	const u32 tx = NEURON_DMA_TX(0), rx = NEURON_DMA_RX(0);
	u32 both;

	for (both = 0; both < 2; both++) {
		queue_open(test, 0, 0);
		put_compute(test, false, 0, TRANSPOSE, HOST_DATA, 64,
			    NEURON_DESC_FIRST | NEURON_DESC_LAST);
		/* 8 rows of elements of 4 bytes; room for one half */
		put_compute(test, true, 0, 8 | 4 << 24, HBM1, 32, 0);
		doorbell(test, 0, 0, 1, 1);
		wait_idle(test);
		EQ(test, queue_status(test, 0, 0), NEURON_QUEUE_ENABLED);

		reg(test, 0, tx + NEURON_DMA_Q_CONFIG, 0);
		reg(test, 0, tx + NEURON_DMA_Q_LENGTH, RING_LEN);
		put_compute(test, false, 0, TRANSPOSE, HOST_DATA, SZ_32K, NEURON_DESC_LAST);
		if (both) {
			reg(test, 0, rx + NEURON_DMA_Q_CONFIG, 0);
			reg(test, 0, rx + NEURON_DMA_Q_LENGTH, RING_LEN);
			reg(test, 0, rx + NEURON_DMA_Q_CONFIG, NEURON_DMA_Q_CONFIG_ENABLE);
		}
		put_compute(test, true, !both, 0, HBM1 + SZ_4K, 32, 0);
		reg(test, 0, tx + NEURON_DMA_Q_CONFIG, NEURON_DMA_Q_CONFIG_ENABLE);
		doorbell(test, 0, 0, 1, 1);
		wait_idle(test);
		EQ(test, queue_status(test, 0, 0), NEURON_QUEUE_ABORTED);
		emu_dma_stop(((struct neuron_device *)test->priv)->ed, 0, 0);
	}
}

/* K17: nothing is added to a packet whose length is settled. */
static void packet_source_after_destination(struct kunit *test)
{
	struct emu_packet *p = emu_packet_new(TRANSPOSE);

	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_EXPECT_EQ(test, emu_packet_source(p, TRANSPOSE, HOST_DATA, 64, false), 0);
	KUNIT_EXPECT_EQ(test, emu_packet_dest(p, 8 | 4 << 24, HBM1, 32, false), 0);
	KUNIT_EXPECT_EQ(test, emu_packet_source(p, TRANSPOSE, HOST_DATA, SZ_32K, false), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_packet_dest(p, 0, HBM1 + 32, 32, false), 1);
	EQ(test, p->result, 64);
	emu_packet_free(p);
}

/*
 * K18: the driver copies on an engine of a core, as on inf1.  The core's owner sees what
 * its own queues do on that engine, and nothing of the copies.
 */
static void dma_copies_are_not_shown(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	u32 q;

	nd->ed->geo.copy_engine[1] = 2;
	nd->ed->geo.copy_queue[1] = 0;
	nq_open(test, 0, NQ_ERR, NQ_ADDR(0), PAGE_SIZE);
	nq_open(test, 0, EMU_NQ_TRACE_DMA * NEURON_HW_NQ_ENGINES + 2, NQ_ADDR(1), PAGE_SIZE);
	for (q = 0; q < 2; q++) {
		queue_open(test, 2, q);
		put_copy(test, q, 0, HBM1, HOST_DATA, 4, 0);
		/* outside of the space */
		put_copy(test, q, 1, HBM1, SZ_64K, 4, 0);
		doorbell(test, 2, q, 2, 2);
		KUNIT_EXPECT_TRUE(test, wait_irqs(test, q + 1));
		EQ(test, queue_status(test, 2, q), NEURON_QUEUE_ABORTED);
		/* a packet that is complete, and one that failed */
		EQ(test, atomic_read(&nd->posts), 2 * q);
		EQ(test, notice_at(test, NQ_ADDR(0)).kind, q ? NEURON_ISA_NOTICE_DMA_ERROR : 0);
		EQ(test, notice_at(test, NQ_ADDR(1)).kind, q ? NEURON_ISA_NOTICE_DMA_BEGIN : 0);
	}
}

/* Stopping a queue in the middle of a lot of work leaves no pin behind. */
static void dma_stop_is_synchronous(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	u32 round, i, irqs;

	for (round = 0; round < 30; round++) {
		queue_open(test, 3, 5);
		for (i = 0; i < RING_LEN; i++)
			put_copy(test, 5, i, HBM1 + i * SZ_64K, HOST_DATA, 0, NEURON_DESC_INT);
		irqs = atomic_read(&nd->irqs);
		doorbell(test, 3, 5, RING_LEN, RING_LEN);
		if (round % 3)
			wait_irqs(test, irqs + round % 3);
		emu_dma_stop(nd->ed, 3, 5);
		EQ(test, atomic_read(&nd->pins), 0);
		EQ(test, reg_get(test, 3, NEURON_DMA_TX(5) + NEURON_DMA_Q_HEAD), 1u << 30);
	}
}

/*
 * Whatever stands in a ring, nothing outside the space changes.  Random
 * descriptors made of addresses at and around the edges of what is allowed.
 */
static void dma_hostile_rings(struct kunit *test)
{
	static const u64 base[] = {
		0, SZ_64K, SZ_128K, SZ_128K + SZ_64K, HBM1, HOST_DATA, HOST_END, CORE_BASE(0),
		CORE_BASE(0) + SBUF_SIZE, CORE_BASE(0) + NEURON_ISA_FIFO_OFF(0),
		CORE_BASE(0) + NEURON_ISA_SEM_INC_OFF(0), CORE_BASE(1), U64_MAX,
	};
	struct neuron_device *nd = test->priv;
	u8 *canary = kunit_kzalloc(test, SZ_64K, GFP_KERNEL);
	struct rnd_state rnd;
	u32 n, i, rx;

	KUNIT_ASSERT_NOT_NULL(test, canary);
	prandom_seed_state(&rnd, 4711);
	memset(canary, 0xc3, SZ_64K);
	poke(test, 0, canary, SZ_64K);
	poke(test, SZ_64K, canary, SZ_64K);
	poke(test, CORE_BASE(1), canary, SZ_64K);
	poke(test, SZ_128K + SZ_64K, canary, SZ_64K);
	for (n = 0; n < 400; n++) {
		queue_open(test, 0, 0);
		for (i = 0; i < RING_LEN; i++) {
			for (rx = 0; rx < 2; rx++) {
				u32 r = prandom_u32_state(&rnd);
				u64 a = base[r % ARRAY_SIZE(base)];
				u32 len = r & BIT(20) ? 4 : r >> 24 & 0xf0;

				if (r & BIT(16))
					a += (s32)prandom_u32_state(&rnd) % SZ_64K;
				put_desc(test, 0, rx, i, a, len,
					 (r & BIT(17) && r & BIT(18) ? 0 : NEURON_DESC_FIRST) |
					 (r & BIT(17) && r & BIT(19) ? 0 : NEURON_DESC_LAST));
			}
		}
		doorbell(test, 0, 0, RING_LEN, RING_LEN);
		wait_idle(test);
		emu_dma_stop(nd->ed, 0, 0);
		if (n % 50 == 49)
			emu_core_reset(nd->ed->core[0]);
	}
	for (i = 0; i < 4; i++) {
		static const u64 at[] = { 0, SZ_64K, SZ_128K + SZ_64K, CORE_BASE(1) };

		peek(test, at[i], canary, SZ_64K);
		KUNIT_EXPECT_NULL_MSG(test, memchr_inv(canary, 0xc3, SZ_64K), "at %llx", at[i]);
	}
}

/* ---- cores ---- */

static void core_semaphores(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct emu_core *core = nd->ed->core[1];
	struct emu_window *w = &core->window;
	u32 val;

	EQ(test, sem_inc(test, 1, 255, 5), 0);
	EQ(test, sem(test, 1, 255), 5);
	EQ(test, sem(test, 0, 255), 0);
	EQ(test, emu_window_reg_write(w, NEURON_ISA_SEM_DEC_OFF(255), 3), 0);
	KUNIT_EXPECT_EQ(test, emu_window_reg_write(w, NEURON_ISA_SEM_DEC_OFF(255), 3), -ERANGE);
	EQ(test, sem(test, 1, 255), 2);
	EQ(test, emu_window_reg_write(w, NEURON_ISA_SEM_SET_OFF(255), U32_MAX), 0);
	KUNIT_EXPECT_EQ(test, sem_inc(test, 1, 255, 1), -ERANGE);
	EQ(test, sem(test, 1, 255), U32_MAX);
	KUNIT_EXPECT_EQ(test, emu_window_reg_write(w, NEURON_ISA_SEM_READ_OFF(0), 1), -EACCES);
	KUNIT_EXPECT_EQ(test, emu_window_reg_read(w, NEURON_ISA_SEM_SET_OFF(0), &val), -EACCES);
	KUNIT_EXPECT_EQ(test, emu_window_reg_read(w, NEURON_ISA_SEM_READ_OFF(0) + 2, &val),
			-EACCES);

	EQ(test, emu_window_reg_write(w, NEURON_ISA_EVENT_OFF(7), 3), 0);
	EQ(test, emu_window_reg_read(w, NEURON_ISA_EVENT_OFF(7), &val), 0);
	EQ(test, val, 1);
	EQ(test, emu_window_reg_write(w, NEURON_ISA_EVENT_OFF(7), 2), 0);
	EQ(test, emu_window_reg_read(w, NEURON_ISA_EVENT_OFF(7), &val), 0);
	EQ(test, val, 0);
	KUNIT_EXPECT_EQ(test, emu_window_reg_read(w, NEURON_ISA_EVENT_OFF(256), &val), -EACCES);

	EQ(test, emu_window_reg_write(w, NEURON_ISA_EVENT_OFF(9), 1), 0);
	emu_core_reset(core);
	EQ(test, sem(test, 1, 255), 0);
	EQ(test, emu_window_reg_read(w, NEURON_ISA_EVENT_OFF(9), &val), 0);
	EQ(test, val, 0);
}

/* A token goes round all five engines, a hundred times. */
static void core_engines_wait_and_post(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct neuron_isa_inst *in = kunit_kzalloc(test, 202 * sizeof(*in), GFP_KERNEL);
	struct neuron_isa_notice n;
	u32 e, i;

	KUNIT_ASSERT_NOT_NULL(test, in);
	nq_open(test, 0, NQ_NOTE(4), NQ_ADDR(4), PAGE_SIZE);
	for (e = 0; e < NEURON_ISA_NR_ENGINES; e++) {
		in[0] = in_prologue(e);
		for (i = 0; i < 100; i++) {
			in[1 + 2 * i] = WAIT(e, 3);
			in[2 + 2 * i] = POST((e + 1) % 5, 3);
		}
		in[201] = in_notify(100 + e, 0x1122334455667788ULL);
		feed(test, 0, e, in, 202);
	}
	wait_idle(test);
	/* all are blocked; no event of two is enough */
	sem_inc(test, 0, 0, 2);
	wait_idle(test);
	EQ(test, sem(test, 0, 0), 2);
	EQ(test, nd->ed->window[0]->waiting, 0x1f);
	sem_inc(test, 0, 0, 1);
	KUNIT_EXPECT_TRUE(test, wait_posts(test, 1));
	wait_idle(test);
	n = notice_at(test, NQ_ADDR(4));
	EQ(test, le32_to_cpu(n.id), 104);
	EQ(test, le64_to_cpu(n.data), 0x1122334455667788ULL);
	EQ(test, n.kind, NEURON_ISA_NOTICE_NOTIFY);
	EQ(test, n.engine, 4);
	EQ(test, n.phase, 1);
	for (e = 0; e < 5; e++) {
		EQ(test, sem(test, 0, e), e ? 0 : 3);
		EQ(test, nd->ed->core[0]->window.fifo[e].engine->done, 202);
	}
	EQ(test, nd->ed->window[0]->waiting, 0);
}

static void core_events(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct neuron_isa_inst in[4] = {
		in_prologue(NEURON_ISA_ENGINE_SP),
		in_sem(NEURON_ISA_OP_EVENT_WAIT, 0, NEURON_ISA_F_CONSUME, 200, 1),
		in_sem(NEURON_ISA_OP_EVENT_SET, 0, 0, 201, 1),
		in_sem(NEURON_ISA_OP_EVENT_WAIT, 0, 0, 201, 0),
	};
	u32 val;

	feed(test, 1, NEURON_ISA_ENGINE_SP, in, 4);
	wait_idle(test);
	EQ(test, nd->ed->core[1]->window.fifo[NEURON_ISA_ENGINE_SP].engine->done, 1);
	EQ(test, emu_window_reg_write(nd->ed->window[1], NEURON_ISA_EVENT_OFF(200), 1), 0);
	wait_idle(test);
	EQ(test, emu_window_reg_read(nd->ed->window[1], NEURON_ISA_EVENT_OFF(200), &val), 0);
	EQ(test, val, 0);
	EQ(test, emu_window_reg_read(nd->ed->window[1], NEURON_ISA_EVENT_OFF(201), &val), 0);
	EQ(test, val, 1);
	EQ(test, nd->ed->core[1]->window.fifo[NEURON_ISA_ENGINE_SP].engine->done, 3);
	EQ(test, emu_window_reg_write(nd->ed->window[1], NEURON_ISA_EVENT_OFF(201), 0), 0);
	wait_idle(test);
	EQ(test, nd->ed->core[1]->window.fifo[NEURON_ISA_ENGINE_SP].engine->done, 4);
}

struct bad_inst {
	const char *what;
	struct neuron_isa_inst in;
	u32 code;
};

#define FAILS(i, w, instruction, c) \
	(bad[i] = (struct bad_inst){ w, instruction, NEURON_ISA_ERR_##c })

static u32 bad_insts(struct bad_inst *bad)
{
	struct neuron_isa_inst vendor = inst(0x40, 0, 0);
	u32 n = 0;

	vendor.magic = 0x10;
	FAILS(n++, "vendor bytes", vendor, ILLEGAL);
	FAILS(n++, "program of PE", in_prologue(NEURON_ISA_ENGINE_PE), ENGINE);
	FAILS(n++, "MATMUL", inst(NEURON_ISA_OP_MATMUL, 0, 0), ENGINE);
	FAILS(n++, "semaphore 256", WAIT(256, 1), INDEX);
	FAILS(n++, "semaphore below 0",
	      in_sem(NEURON_ISA_OP_SEM_POST, NEURON_ISA_POST_DEC, 0, 9, 1), SEMAPHORE);
	FAILS(n++, "DMA engine 4", in_trigger(4, 0, 1, 1), INDEX);
	FAILS(n++, "queue not set up", in_trigger(0, 0, 1, 1), QUEUE);
	FAILS(n++, "queue of another", in_trigger(0, 1, 1, 1), QUEUE);
	FAILS(n++, "too many descriptors", in_trigger(0, 2, RING_LEN + 1, 0), QUEUE);
	return n;
}

#define MAX_BAD_INSTS	16

static void core_refuses(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct bad_inst *bad = kunit_kzalloc(test, MAX_BAD_INSTS * sizeof(*bad), GFP_KERNEL);
	struct emu_core *core = nd->ed->core[0];
	const u32 e = NEURON_ISA_ENGINE_SP;
	struct neuron_isa_inst in[3];
	struct neuron_isa_notice n;
	u32 i, nr;

	KUNIT_ASSERT_NOT_NULL(test, bad);
	nr = bad_insts(bad);
	KUNIT_ASSERT_LE(test, nr, (u32)MAX_BAD_INSTS);
	queue_open_at(test, 0, 1, &nd->other, ring_addr(1, false), ring_addr(1, true), RING_LEN);
	queue_open(test, 0, 2);
	for (i = 0; i < nr; i++) {
		emu_core_bind(core, &nd->space);
		nq_open(test, 0, NQ_ERR, NQ_ADDR(0) + i * sizeof(n), 256);
		in[0] = in_prologue(e);
		in[1] = bad[i].in;
		in[2] = POST(0, 1);
		feed(test, 0, e, in, 3);
		KUNIT_EXPECT_TRUE_MSG(test, wait_posts(test, i + 1), "%s", bad[i].what);
		wait_idle(test);
		n = notice_at(test, NQ_ADDR(0) + i * sizeof(n));
		KUNIT_EXPECT_EQ_MSG(test, (u32)n.code, bad[i].code, "%s", bad[i].what);
		EQ(test, n.kind, NEURON_ISA_NOTICE_ERROR);
		EQ(test, n.engine, e);
		EQ(test, le32_to_cpu(n.id), 1);
		EQ(test, le64_to_cpu(n.data), bad[i].in.opcode);
		/* it has stopped, the others have not */
		EQ(test, sem(test, 0, 0), 0);
		in[1] = in_prologue(NEURON_ISA_ENGINE_PE);
		feed(test, 0, NEURON_ISA_ENGINE_PE, in + 1, 2);
		wait_idle(test);
		EQ(test, sem(test, 0, 0), 1);
		emu_core_reset(core);
	}
	/* no prologue */
	nq_open(test, 0, NQ_ERR, NQ_ADDR(0), 256);
	in[0] = inst(NEURON_ISA_OP_NOP, 0, 0);
	feed(test, 0, e, in, 1);
	KUNIT_EXPECT_TRUE(test, wait_posts(test, i + 1));
	EQ(test, notice_at(test, NQ_ADDR(0)).code, NEURON_ISA_ERR_ILLEGAL);
	EQ(test, le32_to_cpu(notice_at(test, NQ_ADDR(0)).id), 0);
}

/*
 * The whole way: instructions by DMA into the FIFO, a trigger that fetches an
 * operand, a wait for the marker in a semaphore, arithmetic, and DMA back.
 */
static void core_runs_a_program(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct neuron_isa_inst in[6] = {
		in_prologue(NEURON_ISA_ENGINE_ACT),
		in_trigger(1, 0, 2, 2),
		WAIT(8, 1),
		inst(NEURON_ISA_OP_CAST, 0, 0),
		in_trigger(1, 1, 2, 2),
		WAIT(9, 1),
	};
	struct neuron_isa_inst note = in_notify(1, 0);
	const u64 data = HOST_DATA;
	u32 i;

	emu_core_bind(nd->ed->core[0], &nd->space);
	nq_open(test, 0, NQ_NOTE(NEURON_ISA_ENGINE_ACT), NQ_ADDR(0), 256);
	in[3].src_dtype = NEURON_ISA_DT_UINT8;
	in[3].dst_dtype = NEURON_ISA_DT_INT32;
	in[3].u.tensor.dst = cpu_to_le32(0x1000);
	in[3].u.tensor.rows = cpu_to_le32(1);
	in[3].u.tensor.cols = cpu_to_le32(100);
	poke(test, HBM1, in, sizeof(in));
	poke(test, HBM1 + sizeof(in), &note, sizeof(note));
	poke32(test, data, 1);
	for (i = 0; i < 100; i += 4)
		poke32(test, data + 64 + i, 0xff800100 + i);

	/* queue 0 of engine 1: operand in; queue 1: result out; queue 2: code */
	queue_open(test, 1, 0);
	queue_open(test, 1, 1);
	queue_open(test, 1, 2);
	put_copy(test, 0, 0, CORE_BASE(0), data + 64, 100, 0);
	put_copy(test, 0, 1, CORE_BASE(0) + NEURON_ISA_SEM_INC_OFF(8), data, 4, 0);
	put_copy(test, 1, 0, data + 4096, CORE_BASE(0) + 0x1000, 400, 0);
	put_copy(test, 1, 1, CORE_BASE(0) + NEURON_ISA_SEM_INC_OFF(9), data, 4, 0);
	put_copy(test, 2, 0, CORE_BASE(0) + NEURON_ISA_FIFO_OFF(1), HBM1,
		 sizeof(in) + sizeof(note), 0);
	doorbell(test, 1, 2, 1, 1);
	KUNIT_EXPECT_TRUE(test, wait_posts(test, 1));
	EQ(test, le32_to_cpu(notice_at(test, NQ_ADDR(0)).id), 1);
	for (i = 0; i < 100; i += 4) {
		EQ(test, peek32(test, data + 4096 + 4 * i), i);
		EQ(test, peek32(test, data + 4096 + 4 * i + 4), 1);
		EQ(test, peek32(test, data + 4096 + 4 * i + 8), 0x80);
		EQ(test, peek32(test, data + 4096 + 4 * i + 12), 0xff);
	}
	EQ(test, sem(test, 0, 8), 0);
	EQ(test, sem(test, 0, 9), 0);
	/* semaphores and events can be read by DMA, too */
	sem_inc(test, 0, 77, 1234);
	put_copy(test, 2, 1, data + 8192, CORE_BASE(0) + NEURON_ISA_SEM_READ_OFF(77), 4,
		 NEURON_DESC_INT);
	doorbell(test, 1, 2, 1, 1);
	KUNIT_EXPECT_TRUE(test, wait_irqs(test, 1));
	EQ(test, peek32(test, data + 8192), 1234);
}

/* Much more code than the FIFO holds, and what it waits for comes last. */
static void fifo_pauses_the_queue(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	const u32 nr = 4 * NEURON_ISA_FIFO_SIZE / NEURON_ISA_INST_SIZE;
	const u64 code = HBM1 + SZ_1M;
	struct neuron_isa_inst in = in_prologue(0);
	struct emu_fifo *pe = &nd->ed->window[0]->fifo[0];
	u32 i;

	nq_open(test, 0, NQ_NOTE(0), NQ_ADDR(0), 256);
	poke(test, code, &in, sizeof(in));
	in = WAIT(0, 1);
	for (i = 1; i < nr; i++) {
		/* blocks at the start, and again in the middle of the rest */
		if (i == 2)
			in = POST(1, 1);
		if (i == nr - 200)
			in = WAIT(2, 1);
		if (i == nr - 199)
			in = POST(1, 1);
		poke(test, code + i * sizeof(in), &in, sizeof(in));
	}
	queue_open(test, 0, 0);
	for (i = 0; i < 4; i++)
		put_copy(test, 0, i, CORE_BASE(0) + NEURON_ISA_FIFO_OFF(0), code + i * SZ_64K, 0,
			 0);
	poke32(test, HOST_DATA, 1);
	put_copy(test, 0, 4, CORE_BASE(0) + NEURON_ISA_SEM_INC_OFF(2), HOST_DATA, 4, 0);
	in = in_notify(7, 0);
	poke(test, HOST_DATA + 64, &in, sizeof(in));
	put_copy(test, 0, 5, CORE_BASE(0) + NEURON_ISA_FIFO_OFF(0), HOST_DATA + 64, 64, 0);
	doorbell(test, 0, 0, 6, 6);
	wait_idle(test);
	/* asleep, not spinning: FIFO full, the second descriptor has begun */
	EQ(test, pe->tail - pe->head, NEURON_ISA_FIFO_SIZE);
	EQ(test, reg_get(test, 0, NEURON_DMA_TX(0) + NEURON_DMA_Q_HEAD), 1u << 30 | 2);
	EQ(test, nd->ed->core[0]->window.fifo[0].engine->done, 1);
	sem_inc(test, 0, 0, 1);
	KUNIT_EXPECT_TRUE(test, wait_posts(test, 1));
	EQ(test, le32_to_cpu(notice_at(test, NQ_ADDR(0)).id), 7);
	EQ(test, sem(test, 0, 1), nr - 3);
	EQ(test, queue_status(test, 0, 0), NEURON_QUEUE_ENABLED);

	/* and a queue that waits for room can be stopped */
	emu_dma_stop(nd->ed, 0, 0);
	queue_open(test, 0, 0);
	for (i = 0; i < 3; i++)
		put_copy(test, 0, i, CORE_BASE(0) + NEURON_ISA_FIFO_OFF(0), code, 0, 0);
	doorbell(test, 0, 0, 3, 3);
	wait_idle(test);
	EQ(test, pe->tail - pe->head, NEURON_ISA_FIFO_SIZE);
	emu_dma_stop(nd->ed, 0, 0);
	EQ(test, atomic_read(&nd->pins), 0);
	emu_core_reset(nd->ed->core[0]);
	EQ(test, pe->tail, 0);
}

/*
 * The owner rewrites descriptors that are half done.  What was checked counts:
 * a length of 64 in place of 64 KiB must not become a huge rest.
 */
static void dma_ignores_later_writes(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct emu_fifo *pe = &nd->ed->window[0]->fifo[0];
	const u64 fifo = CORE_BASE(0) + NEURON_ISA_FIFO_OFF(0);
	const u64 code = HBM1 + SZ_1M;
	struct neuron_isa_inst in[3] = { in_prologue(0), WAIT(0, 1), POST(1, 1) };
	u32 i;

	for (i = 0; i < SZ_128K / sizeof(in[0]); i++)
		poke(test, code + i * sizeof(in[0]), &in[min(i, 2u)], sizeof(in[0]));
	queue_open(test, 0, 0);
	put_copy(test, 0, 0, fifo, code, 0, 0);
	put_copy(test, 0, 1, fifo, code + SZ_64K, 0, NEURON_DESC_INT);
	doorbell(test, 0, 0, 2, 2);
	wait_idle(test);
	/* the prologue is gone, so 64 bytes of the second copy are in */
	EQ(test, pe->tail, SZ_64K + 64);
	put_copy(test, 0, 1, HBM1, SZ_64K, 32, 0);
	sem_inc(test, 0, 0, 1);
	KUNIT_EXPECT_TRUE(test, wait_irqs(test, 1));
	wait_idle(test);
	EQ(test, queue_status(test, 0, 0), NEURON_QUEUE_ENABLED);
	EQ(test, sem(test, 0, 1), SZ_128K / 64 - 2);
}

/* Resets while engines, DMA and doorbells are busy. */
static void core_reset_under_load(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct emu_core *core = nd->ed->core[0];
	struct neuron_isa_inst in = in_prologue(4);
	const u64 code = HBM1 + SZ_1M;
	u32 n, i, irqs;

	poke(test, code, &in, sizeof(in));
	in = POST(1, 1);
	for (i = 1; i < SZ_64K / 64; i++)
		poke(test, code + i * sizeof(in), &in, sizeof(in));
	for (n = 0; n < 15; n++) {
		queue_open(test, 0, 0);
		queue_open(test, 1, 1);
		for (i = 0; i < 32; i++) {
			put_copy(test, 0, i, CORE_BASE(0) + NEURON_ISA_FIFO_OFF(4), code, 0, 0);
			put_copy(test, 1, i, CORE_BASE(0) + (i % 16) * SZ_64K, code, 0,
				 NEURON_DESC_INT);
		}
		irqs = atomic_read(&nd->irqs);
		doorbell(test, 0, 0, 32, 32);
		doorbell(test, 1, 1, 32, 32);
		wait_irqs(test, irqs + n % 4);
		emu_core_reset(core);
		emu_dma_stop(nd->ed, 0, 0);
		emu_dma_stop(nd->ed, 1, 1);
		emu_core_reset(core);
		wait_idle(test);
		EQ(test, sem(test, 0, 1), 0);
		KUNIT_EXPECT_NULL(test, nd->ed->sbuf[0]);
		KUNIT_EXPECT_NULL(test, core->window.fifo[4].buf);
		KUNIT_EXPECT_NULL(test, core->window.fifo[4].engine);
	}
}

/* What a queue of core 1 is about to write to core 0; it goes on when neuron_device.go says so. */
static void start_late_write(struct kunit *test, u32 how)
{
	struct neuron_device *nd = test->priv;
	const u64 fifo = CORE_BASE(0) + NEURON_ISA_FIFO_OFF(0);
	const struct neuron_isa_inst in = in_prologue(0);

	poke(test, HOST_DATA, &in, sizeof(in));
	queue_open(test, 4, 0);
	if (how < 2) {
		put_copy(test, 0, 0, how ? fifo : CORE_BASE(0), HOST_DATA, 64, 0);
	} else {
		put_compute(test, false, 0, TRANSPOSE, HOST_DATA, 64,
			    NEURON_DESC_FIRST | NEURON_DESC_LAST);
		put_compute(test, true, 0, 8 | 4 << 24, CORE_BASE(0), 64, 0);
	}
	nd->hold = true;
	doorbell(test, 4, 0, 1, 1);
	wait_for_completion(&nd->held);
}

static void expect_clear_core(struct kunit *test, u32 core)
{
	struct emu_device *ed = ((struct neuron_device *)test->priv)->ed;
	u32 e;

	KUNIT_EXPECT_NULL(test, ed->sbuf[core]);
	for (e = 0; e < NEURON_ISA_NR_ENGINES; e++)
		KUNIT_EXPECT_NULL(test, ed->window[core]->fifo[e].engine);
}

/* What was checked before the owner of a core went does not reach it after its reset. */
static void core_late_writes_are_refused(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	u32 how;

	for (how = 0; how < 3; how++) {
		start_late_write(test, how);
		nd->space.range[2].size = 0;
		emu_core_reset(nd->ed->core[0]);
		complete(&nd->go);
		wait_idle(test);
		EQ(test, queue_status(test, 4, 0), NEURON_QUEUE_ABORTED);
		expect_clear_core(test, 0);
		emu_dma_stop(nd->ed, 4, 0);
		nd->space.range[2].size = 0x4000000;
	}
}

/* Cores that are reset together are clear, whatever their queues wrote to each other. */
static void cores_are_reset_together(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	u32 how;

	for (how = 0; how < 3; how++) {
		start_late_write(test, how);
		emu_core_reset_begin(nd->ed, BIT(0) | BIT(1));
		complete(&nd->go);
		wait_idle(test);
		EQ(test, emu_core_reset_poll(nd->ed->core[0]), 0);
		EQ(test, queue_status(test, 4, 0), NEURON_QUEUE_DISABLED);
		expect_clear_core(test, 0);
		reinit_completion(&nd->go);
	}
}

/* 300 x 200 x 500 bf16 in the state buffer, by columns of b. */
static struct neuron_isa_inst in_matmul(void)
{
	return (struct neuron_isa_inst) {
		.opcode = NEURON_ISA_OP_MATMUL, .magic = NEURON_ISA_MAGIC,
		.flags = NEURON_ISA_F_B_TRANSPOSED,
		.src_dtype = NEURON_ISA_DT_BF16, .dst_dtype = NEURON_ISA_DT_FP32,
		.u.matmul = {
			.b = cpu_to_le32(300000), .c = cpu_to_le32(500000),
			.a_stride = cpu_to_le32(1000), .b_stride = cpu_to_le32(1000),
			.c_stride = cpu_to_le32(800),
			.m = cpu_to_le32(300), .n = cpu_to_le32(200), .k = cpu_to_le32(500),
		},
	};
}

static void fill_operands(u8 *sbuf)
{
	u32 i, x = 1;

	for (i = 0; i < 500000; i += 2) {
		x = x * 1664525 + 1013904223;
		emu_put16(sbuf + i, 0x3c00 | (x >> 16 & 0x81ff));
	}
	memset(sbuf + 500000, 0, SBUF_SIZE - 500000);
}

/* The same with integers, by one worker. */
static u8 *matmul_result(struct kunit *test, const struct neuron_isa_inst *in)
{
	struct emu_sbuf sb = { kunit_kzalloc(test, SBUF_SIZE, GFP_KERNEL), SBUF_SIZE };
	struct emu_exec *x = kunit_kzalloc(test, sizeof(*x), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sb.base);
	KUNIT_ASSERT_NOT_NULL(test, x);
	fill_operands(sb.base);
	EQ(test, emu_exec_start(x, in, NEURON_ISA_ENGINE_PE, &sb), 0);
	while (emu_exec_step(x, EMU_EXEC_BUDGET))
		cond_resched();
	return sb.base;
}

/* Three share a product, on whatever processors there are; what was given up leaves no trace. */
static void rows_are_shared(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct emu_rows *rows = emu_rows_new(nd->ed->wq, 3);
	struct emu_sbuf sb = { kunit_kzalloc(test, SBUF_SIZE, GFP_KERNEL), SBUF_SIZE };
	struct emu_exec *x = kunit_kzalloc(test, sizeof(*x), GFP_KERNEL);
	struct neuron_isa_inst in = in_matmul();
	u8 *want = matmul_result(test, &in);
	u32 i, round;

	KUNIT_ASSERT_NOT_NULL(test, rows);
	KUNIT_ASSERT_NOT_NULL(test, sb.base);
	KUNIT_ASSERT_NOT_NULL(test, x);
	sb.part = emu_rows_part(rows);
	sb.workers = emu_rows_workers(rows);
	for (i = 0; (sb.simd = emu_arithmetic_path(i)); i++) {
		for (round = 0; round < 4; round++) {
			fill_operands(sb.base);
			EQ(test, emu_exec_start(x, &in, NEURON_ISA_ENGINE_PE, &sb), 0);
			emu_rows_start(rows, emu_exec_matmul(x));
			EQ(test, rows->used, 3);
			/* an odd round is only begun */
			if (!emu_rows_step(rows) && round % 2)
				continue;
			while (!emu_rows_step(rows))
				;
			KUNIT_EXPECT_EQ_MSG(test, 0, memcmp(sb.base, want, SBUF_SIZE), "%s",
					    sb.simd->name);
		}
	}
	emu_rows_free(rows);
}

static void core_multiplies(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct neuron_isa_inst in[] = {
		in_prologue(NEURON_ISA_ENGINE_PE), in_matmul(), in_notify(1, 0), in_matmul(),
	};
	struct emu_core *core = nd->ed->core[0];
	u8 *want = matmul_result(test, &in[1]);
	u32 i;

	/* 6,000 M multiply-adds of int8, behind the first result: a reset comes before its end */
	in[3].src_dtype = NEURON_ISA_DT_INT8;
	in[3].dst_dtype = NEURON_ISA_DT_INT32;
	in[3].u.matmul.a_stride = 0;
	in[3].u.matmul.b_stride = cpu_to_le32(1);
	in[3].u.matmul.k = cpu_to_le32(100000);
	in[3].u.matmul.c = cpu_to_le32(500000 + 300 * 800);
	for (i = 0; !i || emu_arithmetic_path(i); i++) {
		nd->ed->simd = emu_arithmetic_path(i);
		nq_open(test, 0, NQ_NOTE(NEURON_ISA_ENGINE_PE), NQ_ADDR(0), 256);
		fill_operands(emu_sbuf_get(nd->ed, 0, true));
		feed(test, 0, NEURON_ISA_ENGINE_PE, in, ARRAY_SIZE(in));
		KUNIT_EXPECT_TRUE(test, wait_posts(test, i + 1));
		KUNIT_EXPECT_EQ(test, 0, memcmp(nd->ed->sbuf[0], want, 500000 + 300 * 800));
		emu_core_reset(core);
		KUNIT_EXPECT_NULL(test, core->window.fifo[NEURON_ISA_ENGINE_PE].engine);
	}
	nd->ed->simd = NULL;
}

static void nq_wraps(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct emu_notify *nt = nd->ed->notify[0];
	struct neuron_isa_notice n = { .kind = NEURON_ISA_NOTICE_NOTIFY };
	const u32 nq = NQ_NOTE(2);
	u32 i, val;

	/* off: lost, and nothing is made for it, nor for what is refused or switches off */
	emu_nq_post(nt, nq, &n);
	EQ(test, atomic_read(&nd->posts), 0);
	EQ(test, emu_nq_reg_write(nt, NEURON_NQ_SIZE(nq), 0), 0);
	EQ(test, emu_nq_reg_write(nt, NEURON_NQ_SIZE(nq), 8), -EINVAL);
	EQ(test, emu_nq_reg_write(nt, NEURON_NQ_HEAD(nq), 16), -EINVAL);
	EQ(test, emu_nq_reg_read(nt, NEURON_NQ_SIZE(nq), &val), 0);
	EQ(test, val, 0);
	EQ(test, !nt->nq, true);
	nq_open(test, 0, nq, NQ_ADDR(1), 64);
	for (i = 0; i < 11; i++) {
		n.id = cpu_to_le32(i);
		emu_nq_post(nt, nq, &n);
		EQ(test, le32_to_cpu(notice_at(test, NQ_ADDR(1) + i % 4 * 16).id), i);
		EQ(test, notice_at(test, NQ_ADDR(1) + i % 4 * 16).phase, !(i / 4 % 2));
		EQ(test, emu_nq_reg_read(nt, NEURON_NQ_HEAD(nq), &val), 0);
		EQ(test, val, (i + 1) % 4 * 16);
	}
	EQ(test, peek32(test, NQ_ADDR(1) + 64), 0);
	/* new memory: not used before the size is written, then from its start */
	EQ(test, emu_nq_reg_write(nt, NEURON_NQ_BASE_LO(nq), lower_32_bits(NQ_ADDR(2))), 0);
	emu_nq_post(nt, nq, &n);
	EQ(test, notice_at(test, NQ_ADDR(2)).kind, 0);
	EQ(test, emu_nq_reg_write(nt, NEURON_NQ_SIZE(nq), 64), 0);
	emu_nq_post(nt, nq, &n);
	EQ(test, notice_at(test, NQ_ADDR(2)).phase, 1);
	/* memory that is gone */
	nq_open(test, 0, nq, HOST_END, 64);
	i = atomic_read(&nd->posts);
	emu_nq_post(nt, nq, &n);
	EQ(test, atomic_read(&nd->posts), i);
	EQ(test, emu_nq_reg_read(nt, NEURON_NQ_SIZE(nq), &val), 0);
	EQ(test, val, 0);

	KUNIT_EXPECT_EQ(test, emu_nq_reg_write(nt, NEURON_NQ_SIZE(nq), 24), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_nq_reg_write(nt, NEURON_NQ_BASE_LO(nq), 8), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_nq_reg_write(nt, NEURON_NQ_HEAD(nq), 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_nq_reg_write(nt, NEURON_NQ_SIZE(nq) + 8, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_nq_reg_write(nt, NEURON_NQ_SIZE(80), 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, emu_nq_reg_write(nt, 0xfc, 0), -EINVAL);
}

/* A write that nothing follows is late; others, and what is asked for, come after it. */
static void writes_are_posted(struct kunit *test)
{
	struct emu_device *ed = ((struct neuron_device *)test->priv)->ed;
	const u32 set = NEURON_ISA_SEM_READ_OFF(0) + ed->geo.sem_block;
	const u32 nq = NQ_NOTE(2);
	u32 val;

	KUNIT_ASSERT_EQ(test, emu_posted_new(ed), 0);
	ed->posted->delay = MAX_JIFFY_OFFSET;
	emu_posted_write(ed, NEURON_BLOCK_CORE, 0, set, 5);
	EQ(test, ed->window[0]->sem[0], 0);
	emu_posted_write(ed, NEURON_BLOCK_CORE, 1, set + 4, 6);
	EQ(test, ed->window[0]->sem[0], 5);
	EQ(test, ed->window[1]->sem[1], 0);
	emu_posted_land(ed);
	EQ(test, ed->window[1]->sem[1], 6);
	/* once */
	EQ(test, emu_window_write(ed->window[1], set + 4, 7), 0);
	emu_posted_land(ed);
	EQ(test, ed->window[1]->sem[1], 7);
	/* what the device does not take is lost */
	emu_posted_write(ed, NEURON_BLOCK_CORE_NQ, 0, NEURON_NQ_SIZE(nq), 8);
	emu_posted_write(ed, NEURON_BLOCK_CORE_NQ, 0, NEURON_NQ_SIZE(nq), 64);
	EQ(test, emu_nq_reg_read(ed->notify[0], NEURON_NQ_SIZE(nq), &val), 0);
	EQ(test, val, 0);
	/* by itself */
	flush_delayed_work(&ed->posted->work);
	EQ(test, emu_nq_reg_read(ed->notify[0], NEURON_NQ_SIZE(nq), &val), 0);
	EQ(test, val, 64);
}

#define NQ_TRACE(e)	(EMU_NQ_TRACE * NEURON_HW_NQ_ENGINES + (e))
#define NQ_EVENT	(EMU_NQ_EVENT * NEURON_HW_NQ_ENGINES)
#define NQ_DMA(e)	(EMU_NQ_TRACE_DMA * NEURON_HW_NQ_ENGINES + (e))

static int by_time(const void *a, const void *b)
{
	const struct neuron_isa_notice *x = a, *y = b;

	return le64_to_cpu(x->data) < le64_to_cpu(y->data) ? -1 : 1;
}

/* An engine that waits for a packet: what each of the three traces says about it. */
static void trace_of_a_program(struct kunit *test)
{
	static const u8 opcodes[] = {
		NEURON_ISA_OP_PROLOGUE, NEURON_ISA_OP_DMA_TRIGGER, NEURON_ISA_OP_SEM_WAIT,
		NEURON_ISA_OP_SEM_POST,
	};
	struct neuron_device *nd = test->priv;
	const struct neuron_isa_inst in[] = {
		in_prologue(3), in_trigger(1, 2, 4, 3), WAIT(8, 1), POST(9, 5),
	};
	struct neuron_isa_notice n, next, sem[3];
	u64 last = ktime_get_ns(), waited;
	u32 i;

	emu_core_bind(nd->ed->core[0], &nd->space);
	nq_open(test, 0, NQ_TRACE(3), NQ_ADDR(0), 1024);
	nq_open(test, 0, NQ_EVENT, NQ_ADDR(1), 1024);
	nq_open(test, 0, NQ_DMA(1), NQ_ADDR(2), 1024);
	poke32(test, HOST_DATA, 1);
	queue_open(test, 1, 2);
	/* a packet of two, one of one, and the marker */
	put_desc(test, 2, false, 0, HOST_DATA, 100, NEURON_DESC_FIRST);
	put_desc(test, 2, false, 1, HOST_DATA, 200, NEURON_DESC_LAST);
	put_desc(test, 2, true, 0, HBM1, 300, 0);
	put_desc(test, 2, false, 2, HOST_DATA, 1000, NEURON_DESC_FIRST | NEURON_DESC_LAST);
	put_desc(test, 2, true, 1, HBM1, 1000, 0);
	put_desc(test, 2, false, 3, HOST_DATA, 4, NEURON_DESC_FIRST | NEURON_DESC_LAST);
	put_desc(test, 2, true, 2, CORE_BASE(0) + NEURON_ISA_SEM_INC_OFF(8), 4, 0);
	feed(test, 0, 3, in, ARRAY_SIZE(in));
	wait_idle(test);
	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		n = notice_at(test, NQ_ADDR(0) + 32 * i);
		next = notice_at(test, NQ_ADDR(0) + 32 * i + 16);
		EQ(test, n.kind, NEURON_ISA_NOTICE_BEGIN);
		EQ(test, next.kind, NEURON_ISA_NOTICE_END);
		EQ(test, n.engine, 3);
		EQ(test, n.code, opcodes[i]);
		EQ(test, next.code, opcodes[i]);
		EQ(test, le32_to_cpu(n.id), i);
		EQ(test, le32_to_cpu(next.id), i);
		EQ(test, n.phase & next.phase, 1);
		KUNIT_EXPECT_GE(test, le64_to_cpu(n.data), last);
		KUNIT_EXPECT_GE(test, le64_to_cpu(next.data), le64_to_cpu(n.data));
		last = le64_to_cpu(next.data);
		if (opcodes[i] == NEURON_ISA_OP_SEM_WAIT)
			waited = last;
	}
	EQ(test, notice_at(test, NQ_ADDR(0) + 32 * i).phase, 0);
	for (i = 0; i < 3; i++) {
		static const u32 first[] = { 0, 2, 3 }, bytes[] = { 300, 1000, 4 };

		n = notice_at(test, NQ_ADDR(2) + 32 * i);
		next = notice_at(test, NQ_ADDR(2) + 32 * i + 16);
		EQ(test, n.kind, NEURON_ISA_NOTICE_DMA_BEGIN);
		EQ(test, next.kind, NEURON_ISA_NOTICE_DMA_END);
		EQ(test, n.engine, 1);
		EQ(test, n.phase, 0x21);
		EQ(test, next.phase, 0x21);
		EQ(test, le32_to_cpu(n.id), first[i]);
		EQ(test, le32_to_cpu(next.id), bytes[i]);
		KUNIT_EXPECT_GE(test, le64_to_cpu(next.data), le64_to_cpu(n.data));
	}
	EQ(test, notice_at(test, NQ_ADDR(2) + 32 * i).phase, 0);
	/* the wait was over only when the marker was being written */
	KUNIT_EXPECT_GE(test, waited, le64_to_cpu(n.data));
	/* The engine may go on before the queue has told what it did. */
	for (i = 0; i < 3; i++)
		sem[i] = notice_at(test, NQ_ADDR(1) + 16 * i);
	sort(sem, 3, sizeof(sem[0]), by_time, NULL);
	for (i = 0; i < 3; i++) {
		static const u32 by[] = { NEURON_ISA_BY_ACCESS, 3, 3 };
		static const u32 number[] = { 8, 8, 9 }, value[] = { 1, 0, 5 };

		n = sem[i];
		EQ(test, n.kind, NEURON_ISA_NOTICE_SEMAPHORE);
		EQ(test, n.engine, by[i]);
		EQ(test, n.code, number[i]);
		EQ(test, le32_to_cpu(n.id), value[i]);
	}
	EQ(test, notice_at(test, NQ_ADDR(1) + 16 * i).phase, 0);
}

/* An engine that has a lot to compute: another one need not wait for all of it. */
static void engines_take_turns(struct kunit *test)
{
	const u32 act = NEURON_ISA_ENGINE_ACT, sp = NEURON_ISA_ENGINE_SP, nr = 30;
	struct neuron_isa_inst *in = kunit_kzalloc(test, nr * sizeof(*in), GFP_KERNEL);
	struct neuron_device *nd = test->priv;
	struct neuron_isa_notice end[2];
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, in);
	nq_open(test, 0, NQ_TRACE(act), NQ_ADDR(0), 2048);
	nq_open(test, 0, NQ_TRACE(sp), NQ_ADDR(1), 2048);
	in[0] = in_prologue(act);
	in[1] = WAIT(0, 1);
	for (i = 2; i < nr; i++) {
		in[i] = inst(NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_EXP, 0);
		in[i].src_dtype = NEURON_ISA_DT_FP32;
		in[i].dst_dtype = NEURON_ISA_DT_FP32;
		in[i].u.tensor.rows = cpu_to_le32(1);
		in[i].u.tensor.cols = cpu_to_le32(SZ_8K);
	}
	feed(test, 0, act, in, nr);
	in[0] = in_prologue(sp);
	in[1] = WAIT(1, 1);
	feed(test, 0, sp, in, 2);
	wait_idle(test);
	sem_inc(test, 0, 0, 1);
	sem_inc(test, 0, 1, 1);
	wait_idle(test);
	EQ(test, nd->ed->window[0]->fifo[act].engine->done, nr);
	end[0] = notice_at(test, NQ_ADDR(0) + 16 * (2 * nr - 1));
	end[1] = notice_at(test, NQ_ADDR(1) + 16 * 3);
	EQ(test, end[0].code, NEURON_ISA_OP_ACTIVATE);
	EQ(test, end[1].code, NEURON_ISA_OP_SEM_WAIT);
	KUNIT_EXPECT_LT(test, le64_to_cpu(end[1].data), le64_to_cpu(end[0].data));
}

/* Full: what is there stays, the rest is counted, and the engine goes on. */
static void trace_does_not_wrap(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	const struct neuron_isa_inst in[] = { in_prologue(2), POST(0, 1), POST(0, 1), POST(0, 1) };
	struct neuron_isa_notice n;
	u32 i;

	nq_open(test, 0, NQ_TRACE(2), NQ_ADDR(0), 128);
	/* packets go in whole */
	nq_open(test, 0, NQ_DMA(1), NQ_ADDR(1), 64);
	feed(test, 0, 2, in, ARRAY_SIZE(in));
	wait_idle(test);
	EQ(test, sem(test, 0, 0), 3);
	EQ(test, le32_to_cpu(notice_at(test, NQ_ADDR(0)).id), 0);
	EQ(test, notice_at(test, NQ_ADDR(0) + 96).kind, NEURON_ISA_NOTICE_BEGIN);
	n = notice_at(test, NQ_ADDR(0) + 112);
	EQ(test, n.kind, NEURON_ISA_NOTICE_LOST);
	EQ(test, n.phase, 1);
	EQ(test, le64_to_cpu(n.data), 1);
	feed(test, 0, 2, &in[1], 3);
	wait_idle(test);
	EQ(test, le64_to_cpu(notice_at(test, NQ_ADDR(0) + 112).data), 7);
	EQ(test, notice_at(test, NQ_ADDR(0) + 128).kind, 0);

	queue_open(test, 1, 0);
	for (i = 0; i < 3; i++)
		put_copy(test, 0, i, HBM1, HOST_DATA, 64, 0);
	doorbell(test, 1, 0, 3, 3);
	wait_idle(test);
	EQ(test, notice_at(test, NQ_ADDR(1) + 16).kind, NEURON_ISA_NOTICE_DMA_END);
	n = notice_at(test, NQ_ADDR(1) + 32);
	EQ(test, n.kind, NEURON_ISA_NOTICE_LOST);
	EQ(test, le64_to_cpu(n.data), 4);
	EQ(test, notice_at(test, NQ_ADDR(1) + 48).kind, 0);
	/* set up again: from the start */
	nq_open(test, 0, NQ_TRACE(2), NQ_ADDR(2), 128);
	feed(test, 0, 2, &in[1], 1);
	wait_idle(test);
	EQ(test, notice_at(test, NQ_ADDR(2)).kind, NEURON_ISA_NOTICE_BEGIN);
	EQ(test, notice_at(test, NQ_ADDR(2) + 16).kind, NEURON_ISA_NOTICE_END);
	/* memory that is gone, and engines of no core */
	nq_open(test, 0, NQ_TRACE(2), HOST_END, 128);
	feed(test, 0, 2, &in[1], 1);
	queue_open(test, 9, 0);
	doorbell(test, 9, 0, 3, 3);
	wait_idle(test);
	EQ(test, sem(test, 0, 0), 8);
	EQ(test, emu_trace_dma_begin(nd->ed, 9), 0);
	EQ(test, emu_trace_dma_begin(nd->ed, 0), 0);
}

/* Entries without memory are lost, both of a packet or none; they are counted later. */
static void trace_without_memory(struct kunit *test)
{
	struct neuron_device *nd = test->priv;
	struct emu_notify *nt = nd->ed->notify[0];
	const u64 addr = HBM1 + PAGE_SIZE - 32;
	struct neuron_isa_notice n[2] = {
		{ .kind = NEURON_ISA_NOTICE_DMA_BEGIN }, { .kind = NEURON_ISA_NOTICE_DMA_END },
	};
	const unsigned long max = emu_max_pages;
	struct neuron_isa_notice got;
	u32 nq = NQ_DMA(1);

	/* the second entry of the second packet is in the next page */
	poke32(test, HBM1, 0);
	nq_open(test, 0, nq, addr, 1024);
	emu_nq_fill(nt, nq, n, 1);
	emu_max_pages = atomic_long_read(&emu_total_pages);
	emu_nq_fill(nt, nq, n, ARRAY_SIZE(n));
	got = notice_at(test, addr + 16);
	EQ(test, got.kind, NEURON_ISA_NOTICE_LOST);
	EQ(test, got.phase, 1);
	EQ(test, le64_to_cpu(got.data), 2);
	emu_max_pages = max;
	emu_nq_fill(nt, nq, n, ARRAY_SIZE(n));
	EQ(test, le64_to_cpu(notice_at(test, addr + 16).data), 4);
	EQ(test, notice_at(test, addr + 32).phase, 0);

	/* nor for the entry that says so, at first */
	nq_open(test, 0, nq, HBM1 + SZ_1M, 1024);
	emu_max_pages = atomic_long_read(&emu_total_pages);
	emu_nq_fill(nt, nq, n, ARRAY_SIZE(n));
	emu_max_pages = max;
	EQ(test, notice_at(test, HBM1 + SZ_1M).phase, 0);
	emu_nq_fill(nt, nq, n, ARRAY_SIZE(n));
	got = notice_at(test, HBM1 + SZ_1M);
	EQ(test, got.kind, NEURON_ISA_NOTICE_LOST);
	EQ(test, le64_to_cpu(got.data), 4);
	EQ(test, notice_at(test, HBM1 + SZ_1M + 16).phase, 0);
}

/* A device with eight cores that nobody uses takes less than 64 KiB. */
static void device_is_small(struct kunit *test)
{
	KUNIT_EXPECT_LT(test, sizeof(struct emu_device) +
			NEURON_HW_MAX_CORES * roundup_pow_of_two(sizeof(struct emu_core)),
			(size_t)SZ_64K);
	/* an engine is made when it is used; lock debugging makes it larger */
	KUNIT_EXPECT_LT(test, sizeof(struct emu_dma), (size_t)SZ_8K);
}

static struct kunit_case emu_cases[] = {
	KUNIT_CASE(hbm_is_sparse),
	KUNIT_CASE(hbm_zero_and_drop),
	KUNIT_CASE(hbm_copies_holes_as_holes),
	KUNIT_CASE(hbm_fills_new_pages),
	KUNIT_CASE(mem_random_copies),
	KUNIT_CASE(sbuf_is_charged_once),
	KUNIT_CASE(dma_copies),
	KUNIT_CASE(dma_marker_means_room),
	KUNIT_CASE(dma_packets_are_streams),
	KUNIT_CASE(dma_refuses),
	KUNIT_CASE(dma_ring_gone),
	KUNIT_CASE(dma_registers),
	KUNIT_CASE(dma_bind_programs_rings),
	KUNIT_CASE(dma_engine_states),
	KUNIT_CASE(dma_poll_hands_over),
	KUNIT_CASE(dma_joins_copies),
	KUNIT_CASE(dma_joins_no_overlap),
	KUNIT_CASE(dma_joins_no_fault),
	KUNIT_CASE(dma_small_copies),
	KUNIT_CASE(dma_length_ends_a_packet),
	KUNIT_CASE(packet_source_after_destination),
	KUNIT_CASE(dma_copies_are_not_shown),
	KUNIT_CASE(dma_stop_is_synchronous),
	KUNIT_CASE(dma_hostile_rings),
	KUNIT_CASE(core_semaphores),
	KUNIT_CASE(core_engines_wait_and_post),
	KUNIT_CASE(core_events),
	KUNIT_CASE(core_refuses),
	KUNIT_CASE(core_runs_a_program),
	KUNIT_CASE(fifo_pauses_the_queue),
	KUNIT_CASE(dma_ignores_later_writes),
	KUNIT_CASE(core_reset_under_load),
	KUNIT_CASE(core_late_writes_are_refused),
	KUNIT_CASE(cores_are_reset_together),
	KUNIT_CASE(rows_are_shared),
	KUNIT_CASE(core_multiplies),
	KUNIT_CASE(nq_wraps),
	KUNIT_CASE(writes_are_posted),
	KUNIT_CASE(trace_of_a_program),
	KUNIT_CASE(engines_take_turns),
	KUNIT_CASE(trace_does_not_wrap),
	KUNIT_CASE(trace_without_memory),
	KUNIT_CASE(device_is_small),
	{}
};

static struct kunit_suite emu_suite = {
	.name = "neuron_emu",
	.init = emu_test_init,
	.exit = emu_test_exit,
	.test_cases = emu_cases,
};

kunit_test_suite(emu_suite);

MODULE_LICENSE("GPL");

// SPDX-License-Identifier: GPL-2.0-only
/* K10: which geometries of a device are refused. */
#include <kunit/test.h>
#include <linux/module.h>

#include "../../kmod/base/geometry.c"

#define MIB	(1ULL << 20)

/* Two cores, their copies on engines of nobody; as trn1. */
static const struct neuron_geometry apart = {
	.nr_cores = 2, .nr_hbms = 2,
	.hbm = { { 0, 64 * MIB, MIB }, { 0x1000000000, 64 * MIB, 0 } },
	.nr_dma_engines = 10, .engines_per_core = 4,
	.nr_nq_types = 6, .nr_nq_engines = 16,
	.copy_engine = { 8, 9 },
	.host_window = 1ULL << 44,
	.tpb_base = { 0xfffc0000000, 0xfffc4000000 }, .tpb_size = 64 * MIB, .sbuf_size = MIB,
};

/* The last queue of the last engine of each core; as inf1. */
static const struct neuron_geometry within = {
	.nr_cores = 2, .nr_hbms = 1,
	.hbm = { { 0, 64 * MIB, 0 } },
	.nr_dma_engines = 6, .engines_per_core = 3,
	.nr_nq_types = 4, .nr_nq_engines = 4,
	.copy_engine = { 2, 5 }, .copy_queue = { 15, 15 },
	.host_window = 1ULL << 46,
	.tpb_base = { 0xfffc0000000, 0xfffc4000000 }, .tpb_size = 64 * MIB, .sbuf_size = MIB,
};

struct geometry_row {
	const char *name;
	const struct neuron_geometry *base;
	void (*change)(struct neuron_geometry *geo);
	bool valid;
};

/* What a row changes in its geometry. */
#define CHANGE(name, change)					\
static void name(struct neuron_geometry *geo)			\
{								\
	change;							\
}

CHANGE(no_change, (void)geo)
CHANGE(no_cores, geo->nr_cores = 0)
CHANGE(many_cores, geo->nr_cores = NEURON_HW_MAX_CORES + 1)
CHANGE(no_hbms, geo->nr_hbms = 0)
CHANGE(many_hbms, geo->nr_hbms = NEURON_HW_MAX_HBMS + 1)
CHANGE(few_engines, geo->engines_per_core = 4)
CHANGE(engines_wrap, geo->engines_per_core = 1u << 31)
CHANGE(no_engines, geo->engines_per_core = 0)
CHANGE(two_host_bits, geo->host_window |= 1)
CHANGE(low_host_bit, geo->host_window = 1ULL << 39)
CHANGE(small_core, geo->tpb_size = 16 * MIB)
CHANGE(empty_core, geo->tpb_size = 0; geo->sbuf_size = 0)
CHANGE(empty_hbm, geo->hbm[0].size = 0; geo->hbm[0].reserved = 0)
CHANGE(all_reserved, geo->hbm[0].reserved = 64 * MIB)
CHANGE(hbms_overlap, geo->hbm[1].base = 64 * MIB - 4096)
CHANGE(hbms_touch, geo->hbm[1].base = 64 * MIB)
CHANGE(hbm_wraps, geo->hbm[1].base = -4096ULL)
CHANGE(cores_overlap, geo->tpb_base[1] = geo->tpb_base[0] + 4096)
CHANGE(core_in_hbm, geo->tpb_base[1] = 32 * MIB)
CHANGE(core_in_host, geo->tpb_base[1] = geo->host_window)
CHANGE(hbm_in_host, geo->hbm[0].base = geo->host_window + MIB)
CHANGE(row_in_hbm, geo->hbm[0].base = 0xfffc4000000; geo->tpb_base[1] = 0)
CHANGE(big_sbuf, geo->sbuf_size = geo->tpb_size + 1)
CHANGE(copy_beyond, geo->copy_engine[1] = geo->nr_dma_engines)
CHANGE(copy_queue_beyond, geo->copy_queue[1] = NEURON_HW_QUEUES_PER_ENGINE)
CHANGE(copy_of_other, geo->copy_engine[1] = 0)
CHANGE(copies_meet, geo->copy_engine[1] = geo->copy_engine[0])
CHANGE(copies_share, copies_meet(geo); geo->copy_queue[1] = 1)

static const struct geometry_row rows[] = {
	{ "copies on engines of nobody", &apart, no_change, true },
	{ "copies on engines of their cores", &within, no_change, true },
	{ "memories side by side", &apart, hbms_touch, true },
	{ "two copy queues of one engine", &apart, copies_share, true },
	{ "no cores", &apart, no_cores },
	{ "more cores than there can be", &apart, many_cores },
	{ "no memories", &apart, no_hbms },
	{ "more memories than there can be", &apart, many_hbms },
	{ "fewer engines than the cores need", &within, few_engines },
	{ "number of engines wraps", &apart, engines_wrap },
	{ "cores without engines", &apart, no_engines },
	{ "host memory by two bits", &apart, two_host_bits },
	{ "host memory by a bit of its addresses", &apart, low_host_bit },
	{ "windows smaller than what is mapped of them", &apart, small_core },
	{ "windows of size 0", &apart, empty_core },
	{ "a memory of size 0", &apart, empty_hbm },
	{ "all of a memory reserved", &apart, all_reserved },
	{ "memories overlap", &apart, hbms_overlap },
	{ "a memory wraps", &apart, hbm_wraps },
	{ "windows of cores overlap", &apart, cores_overlap },
	{ "a window in memory", &apart, core_in_hbm },
	{ "a window in host memory", &apart, core_in_host },
	{ "a memory in host memory", &apart, hbm_in_host },
	{ "windows in a row reach memory", &apart, row_in_hbm },
	{ "state buffer larger than its window", &apart, big_sbuf },
	{ "no such engine for copies", &apart, copy_beyond },
	{ "no such queue for copies", &apart, copy_queue_beyond },
	{ "copies on an engine of another core", &within, copy_of_other },
	{ "two cores, one copy queue", &apart, copies_meet },
};

static void row_name(const struct geometry_row *row, char *name)
{
	strscpy(name, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(geometry, rows, row_name);

static void test_K10_geometry(struct kunit *test)
{
	const struct geometry_row *row = test->param_value;
	struct neuron_geometry geo = *row->base;

	row->change(&geo);
	KUNIT_EXPECT_EQ(test, neuron_geometry_valid(&geo), row->valid);
}

/* What of a core's window is memory, registers, FIFOs, and how they are accessed. */
static void test_K11_window(struct kunit *test)
{
	static const struct {
		u64 off, len;
		bool card, device;	/* one without and one with the instruction set */
	} parts[] = {
		{ 0, 1, true, true },
		{ 12345, 54321, true, true },
		{ 0, 1 << 20, true, true },
		{ 0, (1 << 20) + 1, false, false },
		{ (1 << 20) - 4, 8, false, false },
		{ 1 << 20, 4, false, false },
		{ NEURON_ISA_EVENT_OFF(0), 4, true, true },
		{ NEURON_ISA_EVENT_OFF(63), 4, true, true },
		{ NEURON_ISA_EVENT_OFF(64), 4, false, false },
		{ NEURON_ISA_EVENT_OFF(0), 8, false, false },
		{ NEURON_ISA_EVENT_OFF(0) + 2, 4, false, false },
		{ NEURON_ISA_EVENT_OFF(0), 2, false, false },
		{ NEURON_ISA_SEM_READ_OFF(31), 4, true, true },
		{ NEURON_ISA_SEM_READ_OFF(0), 128, false, false },
		{ NEURON_ISA_SEM_READ_OFF(0) + 4 * 0x400, 4, false, false },
		{ NEURON_ISA_FIFO_OFF(0), 64, false, true },
		{ NEURON_ISA_FIFO_OFF(0), 63, false, false },
		{ NEURON_ISA_FIFO_OFF(0) + 4, 64, false, false },
		{ NEURON_ISA_FIFO_OFF(2), NEURON_ISA_FIFO_SIZE, false, true },
		{ NEURON_ISA_FIFO_OFF(2) + 64, NEURON_ISA_FIFO_SIZE, false, false },
		{ NEURON_ISA_FIFO_OFF(0), NEURON_ISA_FIFO_SIZE + 64, false, false },
		{ NEURON_ISA_FIFO_OFF(NEURON_ISA_NR_ENGINES - 1), NEURON_ISA_FIFO_SIZE,
		  false, true },
		{ NEURON_ISA_FIFO_OFF(NEURON_ISA_NR_ENGINES), 64, false, false },
		{ 0, U64_MAX, false, false },
		{ NEURON_ISA_FIFO_OFF(0), U64_MAX - 63, false, false },
	};
	struct neuron_geometry geo = {
		.sbuf_size = 1 << 20, .nr_events = 64, .nr_semaphores = 32, .sem_block = 0x400,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		geo.isa_version = 0;
		KUNIT_EXPECT_EQ_MSG(test, neuron_geometry_window(&geo, parts[i].off, parts[i].len),
				    parts[i].card, "row %u", i);
		geo.isa_version = 1;
		KUNIT_EXPECT_EQ_MSG(test, neuron_geometry_window(&geo, parts[i].off, parts[i].len),
				    parts[i].device, "row %u, with instructions", i);
	}
}

static struct kunit_case geometry_cases[] = {
	KUNIT_CASE(test_K11_window),
	KUNIT_CASE_PARAM(test_K10_geometry, geometry_gen_params),
	{}
};

static struct kunit_suite geometry_suite = {
	.name = "neuron_geometry",
	.test_cases = geometry_cases,
};
kunit_test_suite(geometry_suite);

MODULE_LICENSE("GPL");

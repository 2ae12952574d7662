// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model of a card does what the tables of README.md say, and complains of everything
 * else. The "driver" of these tests is as small as can be.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "vfu.h"

#include <cmocka.h>

#define HOST_LEN	(1 << 20)
#define HOST_ADDR	0x100000ULL	/* where the machine has that memory */
#define RING_LEN	64u
#define TX_RING		0x0
#define RX_RING		0x1000
#define DATA		0x10000
#define MARKER		0xf000

static const char * const names[] = { "trn1", "inf2", "trn2", "trn3" };

struct fixture {
	struct card *card;
	int fd;
	u8 *host;
	u32 tail[2];	/* of the copy queue, and ring id */
	u32 phase;
};

static struct fixture setup(const char *name)
{
	struct card_config cfg = {
		.kind = card_kind_find(name), .routing_id = 3, .serial = 0x1122334455667788,
	};
	struct fixture f = { .card = card_new(&cfg), .phase = 1 };

	assert_non_null(f.card);
	f.card->faults.reset_ms = 0;
	f.card->command = 0x6;
	f.fd = memfd_create("host", MFD_CLOEXEC);
	assert_int_equal(ftruncate(f.fd, HOST_LEN), 0);
	f.host = mmap(NULL, HOST_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
	assert_ptr_not_equal(f.host, MAP_FAILED);
	assert_int_equal(card_range_add(f.card, HOST_ADDR, HOST_LEN, f.fd, 0, true), 0);
	return f;
}

static void teardown(struct fixture *f)
{
	card_free(f->card);
	munmap(f->host, HOST_LEN);
	close(f->fd);
}

static u64 misc(struct fixture *f, u32 off)
{
	return card_offset(f->card, CARD_MISC, 0) + off;
}

static u64 host_address(struct fixture *f, u64 off)
{
	return f->card->ed.geo.host_window | (HOST_ADDR + off);
}

/* As a driver does it; the number of accesses is compared with what was recorded. */
static void start_engine(struct fixture *f, u32 engine, bool again)
{
	struct card_step steps[CARD_MAX_STEPS];
	u32 nr = card_engine_steps(f->card, engine, again, steps), i, val;
	u64 base;

	for (i = 0; i < nr; i++) {
		base = card_offset(f->card, steps[i].block, engine);
		val = steps[i].value;
		if (steps[i].rmw)
			val |= card_read(f->card, base + steps[i].off, 4) & ~steps[i].clear;
		else if (steps[i].from)
			val = f->card->engine[engine].regs[steps[i].from / 4];
		card_write(f->card, base + steps[i].off, 4, val);
	}
}

static void start_side(struct fixture *f, u32 engine, u32 q, bool rx, u64 ring, u32 len)
{
	u64 base = card_offset(f->card, CARD_ENGINE, engine) +
		   (rx ? NEURON_DMA_RX(q) : NEURON_DMA_TX(q));
	const struct card_step *steps;
	u32 nr = card_queue_steps(rx, &steps), i, val;

	for (i = 0; i < nr; i++) {
		val = steps[i].off == 0x28 ? lower_32_bits(ring) :
		      steps[i].off == 0x2c ? upper_32_bits(ring) :
		      steps[i].off == 0x30 ? len : steps[i].value;
		card_write(f->card, base + steps[i].off, 4, val);
	}
}

static void start_queue(struct fixture *f, u32 engine, u32 q)
{
	start_side(f, engine, q, false, host_address(f, TX_RING), RING_LEN);
	start_side(f, engine, q, true, host_address(f, RX_RING), RING_LEN);
	f->tail[0] = 0;
	f->phase = 1;
}

static void reset(struct fixture *f, u32 what, u32 map)
{
	if (what == 2)
		card_write(f->card, misc(f, 0x1d8), 4, map);
	card_write(f->card, misc(f, 0x1ec), 4, what);
	card_write(f->card, misc(f, 0x800), 4, 1);
	assert_int_equal(card_read(f->card, misc(f, 0x1ec), 4), 0);
	assert_int_equal(card_read(f->card, misc(f, 0x808), 4) & 8, 0);
}

static void probe(struct fixture *f)
{
	const struct neuron_geometry *geo = &f->card->ed.geo;
	u32 c, e, pair = f->card->gen == 2 ? 1 : 2;

	assert_int_equal(card_read(f->card, misc(f, 0x24), 4), 3);
	reset(f, 1, 0);
	for (c = 0; c < geo->nr_cores; c++) {
		for (e = 0; e < geo->engines_per_core; e++)
			start_engine(f, c * geo->engines_per_core + e, false);
		if (c % pair == 0)
			start_engine(f, geo->copy_engine[c], false);
		start_queue(f, geo->copy_engine[c], geo->copy_queue[c]);
	}
}

static struct neuron_desc *slot(struct fixture *f, u32 ring)
{
	return (struct neuron_desc *)(f->host + ring) + f->tail[0];
}

/* One packet of one descriptor on the copy queue of core 0, without the doorbell. */
static void describe(struct fixture *f, u64 dst, u64 src, u32 len, u32 id)
{
	*slot(f, TX_RING) = (struct neuron_desc){
		.ctrl = cpu_to_le32((len & 0xffff) | id << 24 | NEURON_DESC_FIRST |
				    NEURON_DESC_LAST),
		.meta = cpu_to_le32(NEURON_DESC_META_COPY),
		.addr = cpu_to_le64(src),
	};
	*slot(f, RX_RING) = (struct neuron_desc){
		.ctrl = cpu_to_le32((len & 0xffff) | id << 24), .addr = cpu_to_le64(dst),
	};
	if (++f->tail[0] == RING_LEN) {
		f->tail[0] = 0;
		f->phase = (f->phase + 1) & 3;
	}
}

static u64 copy_queue(struct fixture *f, bool rx)
{
	const struct neuron_geometry *geo = &f->card->ed.geo;

	return card_offset(f->card, CARD_ENGINE, geo->copy_engine[0]) +
	       (rx ? NEURON_DMA_RX(geo->copy_queue[0]) : NEURON_DMA_TX(geo->copy_queue[0]));
}

static u32 engine_state(struct fixture *f, u32 engine)
{
	return card_read(f->card, card_offset(f->card, CARD_ENGINE, engine) + 0x200, 4);
}

static void ring_doorbell(struct fixture *f, u32 n)
{
	card_write(f->card, copy_queue(f, true) + 0x38, 4, n);
	card_write(f->card, copy_queue(f, false) + 0x38, 4, n);
}

/* A copy and the marker that says that it is done. */
static bool copy(struct fixture *f, u64 dst, u64 src, u32 len)
{
	u32 *marker = (u32 *)(f->host + MARKER);
	u32 i;

	marker[0] = 0xabcdef01;
	marker[1] = 0;
	describe(f, dst, src, len, f->phase);
	describe(f, host_address(f, MARKER + 4), host_address(f, MARKER), 4, f->phase);
	ring_doorbell(f, 2);
	for (i = 0; i < 2000 && smp_load_acquire(&marker[1]) != 0xabcdef01; i++)
		usleep(1000);
	return smp_load_acquire(&marker[1]) == 0xabcdef01;
}

static void test_registers_are_where_the_tables_say(void **state)
{
	static const struct {
		const char *name;
		u64 off;
		enum card_block block;
		u32 index;
		u32 in_block;
	} rows[] = {
		{ "trn1", 0x4000004, CARD_CORE, 1, 4 },
		{ "trn1", 0x30040000, CARD_ENGINE, 1, 0 },
		{ "trn1", 0x30740038, CARD_ENGINE, 17, 0x38 },
		{ "trn1", 0x30600000, CARD_ENGINE, 32, 0 },
		{ "trn1", 0x30d00000, CARD_ENGINE, 33, 0 },
		{ "trn1", 0x30407020, CARD_APP, 1, 0x20 },
		{ "trn1", 0x30b00100, CARD_APP, 16, 0x100 },
		{ "trn1", 0x30408100, CARD_ENGINE_NQ, 1, 0x100 },
		{ "trn1", 0x30c35108, CARD_CORE_NQ, 1, 0x108 },
		{ "trn1", 0x30fa01ec, CARD_MISC, 0, 0x1ec },
		{ "trn1", 0x38000000, CARD_NOTHING, 0, 0 },
		{ "trn2", 0x82000000, CARD_ENGINE, 0, 0 },
		{ "trn2", 0x82100000, CARD_ENGINE, 1, 0 },
		{ "trn2", 0x94000000, CARD_ENGINE, 32, 0 },
		{ "trn2", 0xa2000000, CARD_ENGINE, 64, 0 },
		{ "trn2", 0xb5f00000, CARD_ENGINE, 127, 0 },
		{ "trn2", 0x82040800, CARD_APP, 0, 0x800 },
		{ "trn2", 0x8c000090, CARD_USER, 0, 0x90 },
		{ "trn2", 0x9c420090, CARD_USER, 33, 0x90 },
		{ "trn2", 0x6900000, CARD_ENGINE, 129, 0 },
		{ "trn2", 0x46800000, CARD_ENGINE, 130, 0 },
		{ "trn2", 0x6001100, CARD_CORE_NQ, 0, 0x100 },
		{ "trn2", 0x6181100, CARD_CORE_NQ, 1, 0x100 },
		{ "trn2", 0x46581100, CARD_CORE_NQ, 7, 0x100 },
		{ "trn2", 0xd4000000, CARD_CORE, 1, 0 },
		{ "trn2", 0x6c84024, CARD_MISC, 0, 0x24 },
		{ "trn3", 0x6c84808, CARD_MISC, 0, 0x808 },
	};
	struct fixture f = { };
	struct card_place at;
	u32 i, bad = 0;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		f = setup(rows[i].name);
		at = card_place(f.card, rows[i].off);
		if (at.block != rows[i].block || at.index != rows[i].index ||
		    at.off != rows[i].in_block) {
			print_error("%s: %#llx is %u %u + %#x\n", rows[i].name, rows[i].off,
				    at.block, at.index, at.off);
			bad++;
		}
		teardown(&f);
	}
	assert_int_equal(bad, 0);
}

/* Accesses of the vendor's driver until a device is ready, as they were recorded. */
static void test_probe_takes_the_recorded_accesses(void **state)
{
	static const u32 accesses[] = { 12951, 12951, 19341, 19605 };
	struct fixture f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		f = setup(names[i]);
		probe(&f);
		assert_int_equal(f.card->stats.complaints, 0);
		assert_int_equal(f.card->stats.reads + f.card->stats.writes, accesses[i]);
		teardown(&f);
	}
}

static void test_engine_start_has_the_recorded_values(void **state)
{
	static const struct {
		const char *name;
		u32 engine;
		u32 step;
		u32 off;
		u32 value;
	} rows[] = {
		{ "trn1", 0, 0, 0x100, 0xffff }, { "trn1", 5, 0, 0x100, 0x7ff },
		{ "trn1", 5, 1, 0x104, 0 }, { "trn1", 6, 1, 0x104, 0xffff },
		{ "trn1", 0, 2, 0x1020, 0x30000 }, { "trn1", 0, 3, 0x21020, 0x30000 },
		{ "trn1", 0, 34, 0x310, 0x1000400 }, { "trn1", 32, 0, 0x1020, 0x30000 },
		{ "trn2", 0, 32, 0x310, 0x10008f8 }, { "trn2", 0, 33, 0x124, 0x20808080 },
		{ "trn2", 128, 34, 0x3a300, 0x5f5e100 }, { "trn3", 0, 55, 0x2038c, 0 },
	};
	struct card_step steps[CARD_MAX_STEPS];
	struct fixture f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		f = setup(rows[i].name);
		card_engine_steps(f.card, rows[i].engine, false, steps);
		assert_int_equal(steps[rows[i].step].off, rows[i].off);
		assert_int_equal(steps[rows[i].step].value, rows[i].value);
		teardown(&f);
	}
}

static void test_second_start_of_an_engine_differs(void **state)
{
	struct fixture f = setup("trn2");

	probe(&f);
	reset(&f, 2, 0x20202);
	start_engine(&f, 16, true);
	assert_int_equal(f.card->stats.complaints, 0);
	start_engine(&f, 17, false);
	assert_true(f.card->stats.complaints > 0);
	teardown(&f);
}

static void test_wrong_accesses_are_complaints(void **state)
{
	static const struct {
		u64 off;
		u32 size;
		bool write;
		u32 val;
	} rows[] = {
		{ 0x6c84024, 2, false, 0 },		/* not four bytes */
		{ 0x6c84026, 4, false, 0 },		/* not at a multiple of four */
		{ 0x100000000, 4, false, 0 },		/* behind the BAR */
		{ 0x50000000, 4, false, 0 },		/* nothing is there */
		{ 0x50000000, 4, true, 0 },
		{ 0x6c84024, 4, true, 0 },		/* read only */
		{ 0x6c84800, 4, true, 2 },		/* no such request */
		{ 0x820010a0, 4, true, 1 },		/* engine 0: wrong value */
		{ 0x82000310, 4, true, 0x10008f8 },	/* engine 0 is started: too late */
		{ 0x6801038, 4, true, 65 },		/* more than the ring has */
		{ 0x6803038, 4, true, 1 },		/* queue 2 is off */
		{ 0x6800204, 4, true, 3 },		/* no such state */
		{ 0xd2000000, 4, false, 0 },		/* core 0, behind the state buffer */
	};
	struct fixture f = setup("trn2");
	u64 before;
	u32 i, bad = 0;

	probe(&f);
	assert_int_equal(f.card->stats.complaints, 0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		before = f.card->stats.complaints;
		if (rows[i].write)
			card_write(f.card, rows[i].off, rows[i].size, rows[i].val);
		else
			card_read(f.card, rows[i].off, rows[i].size);
		if (f.card->stats.complaints != before + 1) {
			print_error("row %u: %llu complaints\n", i,
				    f.card->stats.complaints - before);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
	teardown(&f);
}

static void test_queue_before_its_engine_is_a_complaint(void **state)
{
	struct fixture f = setup("trn1");

	reset(&f, 1, 0);
	start_queue(&f, 32, 0);
	assert_true(f.card->stats.complaints > 0);
	assert_false(f.card->engine[32].side[0][0].on);
	teardown(&f);
}

/* Three times around the ring, so that each ring id is used. */
static void test_copies_reach_device_and_host(void **state)
{
	struct fixture f;
	u32 i, k;

	for (k = 0; k < ARRAY_SIZE(names); k++) {
		f = setup(names[k]);
		probe(&f);
		for (i = 0; i < 4 * RING_LEN / 2; i++) {
			memset(f.host + DATA, i, 4096);
			memset(f.host + DATA + 4096, 0xee, 4096);
			assert_true(copy(&f, f.card->ed.geo.hbm[1].base + 8192,
					 host_address(&f, DATA), 4096));
			assert_int_equal(f.card->bar4[f.card->hbm_stride + 8192 + 4095], i & 0xff);
			assert_true(copy(&f, host_address(&f, DATA + 4096),
					 f.card->ed.geo.hbm[1].base + 8192, 4096));
			assert_memory_equal(f.host + DATA, f.host + DATA + 4096, 4096);
		}
		assert_int_equal(f.card->stats.complaints, 0);
		teardown(&f);
	}
}

static void test_a_wrong_ring_id_stops_where_it_is_fatal(void **state)
{
	struct fixture f = setup("trn2");

	probe(&f);
	describe(&f, f.card->ed.geo.hbm[0].base, host_address(&f, DATA), 64, 2);
	ring_doorbell(&f, 1);
	assert_true(f.card->stats.complaints > 0);
	assert_int_equal(engine_state(&f, 128), 0x2222);
	teardown(&f);
}

static bool settles(const u64 *count, u64 want)
{
	u32 i;

	for (i = 0; i < 2000 && smp_load_acquire(count) != want; i++)
		usleep(1000);
	return smp_load_acquire(count) == want;
}

static void test_addresses_where_nothing_is_are_complaints(void **state)
{
	static const u64 addresses[] = {
		0x600000000,			/* behind HBM 0 */
		0x5ffffffc0 + 1,		/* its last bytes, and beyond */
		0x2004000000,			/* behind core 0 */
		1ULL << 46 | 0x10000000,	/* host memory that is not there */
		0x8006c84024,			/* a register */
	};
	struct fixture f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(addresses); i++) {
		f = setup("trn2");
		probe(&f);
		describe(&f, addresses[i], host_address(&f, DATA), 64, 1);
		ring_doorbell(&f, 1);
		/* The address, and the queue that stopped. */
		assert_true(settles(&f.card->stats.complaints, 2));
		teardown(&f);
	}
}

static void test_host_memory_needs_bus_mastering_and_a_mapping(void **state)
{
	struct fixture f = setup("trn1");
	u32 word;

	assert_int_equal(card_memory_read(f.card, host_address(&f, 0), &word, 4), 0);
	f.card->command = 0x2;
	assert_int_equal(card_memory_read(f.card, host_address(&f, 0), &word, 4), -EACCES);
	assert_int_equal(f.card->stats.complaints, 1);
	f.card->command = 0x6;
	card_range_del(f.card, HOST_ADDR, HOST_LEN);
	assert_int_equal(card_memory_read(f.card, host_address(&f, 0), &word, 4), -EACCES);
	teardown(&f);
}

static void test_semaphores_and_events(void **state)
{
	struct fixture f = setup("trn2");
	u64 core = card_offset(f.card, CARD_CORE, 5);

	card_write(f.card, core + 0x2701400 + 4 * 9, 4, 7);
	card_write(f.card, core + 0x2701800 + 4 * 9, 4, 3);
	card_write(f.card, core + 0x2701c00 + 4 * 9, 4, 2);
	assert_int_equal(card_read(f.card, core + 0x2701000 + 4 * 9, 4), 8);
	/* A program that counts below 0 does no wrong to the card. */
	card_write(f.card, core + 0x2701c00 + 4 * 9, 4, 9);
	assert_int_equal(card_read(f.card, core + 0x2701000 + 4 * 9, 4), 8);
	card_write(f.card, core + 0x2700000 + 4 * 255, 4, 1);
	assert_int_equal(card_read(f.card, core + 0x2700000 + 4 * 255, 4), 1);
	reset(&f, 1, 0);
	assert_int_equal(card_read(f.card, core + 0x2701000 + 4 * 9, 4), 0);
	assert_int_equal(f.card->stats.complaints, 0);
	card_write(f.card, core + 0x2702000, 4, 1);
	assert_int_equal(f.card->stats.complaints, 1);
	teardown(&f);
}

static void test_state_buffers_are_memory(void **state)
{
	static const u32 sizes[] = { 1, 2, 4, 8 };
	struct fixture f = setup("trn1");
	u64 core = card_offset(f.card, CARD_CORE, 1), val = 0x1122334455667788;
	u64 last = f.card->ed.geo.sbuf_size - 4;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		u64 want = val & (~0ULL >> (64 - 8 * sizes[i]));

		card_write(f.card, core + 4104, 8, 0);
		card_write(f.card, core + 4104, sizes[i], val);
		assert_int_equal(card_read(f.card, core + 4104, sizes[i]), want);
		assert_int_equal(card_read(f.card, core + 4104, 8), want);
	}
	assert_int_equal(f.card->stats.complaints, 0);
	/* Half of it is behind the buffer. */
	card_read(f.card, core + last, 8);
	assert_int_equal(f.card->stats.complaints, 1);
	/* Registers have a length. */
	card_write(f.card, core + 0x2701400, 8, 0);
	assert_int_equal(f.card->stats.complaints, 2);
	teardown(&f);
}

/* Until the reset of its core has ended, or the card may not master the bus. */
static void test_queues_can_run_on(void **state)
{
	char line[32];
	struct fixture f = setup("trn2");
	u64 fetches;
	u32 i;

	probe(&f);
	strcpy(line, "run-on 1");
	assert_int_equal(card_control(f.card, line, stderr), 0);
	for (i = 0; i < 3; i++) {
		start_queue(&f, 16, 2);
		start_queue(&f, 16, 2);
		fetches = f.card->stats.fetches;
		usleep(50000);
		/* The second start has switched it off, and rings are where they were. */
		assert_true(f.card->stats.fetches > fetches);
		if (i == 0) {
			reset(&f, 2, 0x20202);
			start_engine(&f, 16, true);
		} else if (i == 1) {
			f.card->command = 0x2;
			usleep(50000);
		}
		if (i < 2) {
			fetches = f.card->stats.fetches;
			usleep(50000);
			assert_int_equal(f.card->stats.fetches, fetches);
			f.card->command = 0x6;
		}
	}
	assert_int_equal(f.card->stats.complaints, 0);
	card_range_del(f.card, HOST_ADDR, HOST_LEN);
	assert_true(settles(&f.card->stats.complaints, 2));
	card_range_add(f.card, HOST_ADDR, HOST_LEN, f.fd, 0, true);
	start_queue(&f, 16, 2);
	card_run_on_check(f.card);
	assert_int_equal(f.card->stats.complaints, 3);
	teardown(&f);
}

static void test_queues_can_run_on_for_a_moment(void **state)
{
	char line[32] = "run-on 50";
	struct fixture f = setup("trn2");
	u64 fetches;

	probe(&f);
	assert_int_equal(card_control(f.card, line, stderr), 0);
	start_queue(&f, 16, 2);
	start_queue(&f, 16, 2);
	usleep(300000);
	fetches = f.card->stats.fetches;
	assert_true(fetches > 0);
	usleep(50000);
	assert_int_equal(f.card->stats.fetches, fetches);
	assert_int_equal(f.card->stats.complaints, 0);
	teardown(&f);
}

static void test_notification_queues_are_off_while_their_base_changes(void **state)
{
	struct fixture f = setup("trn2");
	u64 slot = card_offset(f.card, CARD_CORE_NQ, 1) + 0x100 + 2 * 0x28;
	u32 i;

	/* Low and high word of the base, size. */
	for (i = 0; i < 2; i++) {
		card_write(f.card, slot + 8, 4, 0);
		card_write(f.card, slot + 4, 4, upper_32_bits(host_address(&f, DATA)));
		card_write(f.card, slot, 4, lower_32_bits(host_address(&f, DATA)));
		card_write(f.card, slot + 8, 4, 4096);
	}
	assert_int_equal(f.card->stats.complaints, 0);
	card_write(f.card, slot + 4, 4, 0);
	assert_int_equal(f.card->stats.complaints, 1);
	card_write(f.card, slot, 4, 0);
	assert_int_equal(f.card->stats.complaints, 2);
	card_write(f.card, slot + 8, 4, 0);
	card_write(f.card, slot, 4, 0);
	assert_int_equal(f.card->stats.complaints, 2);
	teardown(&f);
}

static void test_queues_of_programs_may_stop(void **state)
{
	struct fixture f = setup("trn2");
	char line[32];
	u32 i;

	probe(&f);
	strcpy(line, "programs 1");
	assert_int_equal(card_control(f.card, line, stderr), 0);
	/* Three bytes into a semaphore. */
	start_queue(&f, 3, 0);
	describe(&f, f.card->ed.geo.tpb_base[0] + 0x2701400, host_address(&f, DATA), 3, 1);
	card_write(f.card, card_offset(f.card, CARD_ENGINE, 3) + NEURON_DMA_RX(0) + 0x38, 4, 1);
	card_write(f.card, card_offset(f.card, CARD_ENGINE, 3) + NEURON_DMA_TX(0) + 0x38, 4, 1);
	for (i = 0; i < 2000 && engine_state(&f, 3) != 0x2222; i++)
		usleep(1000);
	assert_int_equal(engine_state(&f, 3), 0x2222);
	assert_int_equal(f.card->stats.complaints, 0);
	/* So does the queue that the driver copies with, because a program chose the place. */
	f.tail[0] = 0;
	ring_doorbell(&f, 1);
	for (i = 0; i < 2000 && engine_state(&f, 128) != 0x2222; i++)
		usleep(1000);
	assert_int_equal(engine_state(&f, 128), 0x2222);
	assert_int_equal(f.card->stats.complaints, 0);
	/* The other core's, on the same engine, has stopped with it. */
	assert_true(f.card->ed.dma[128]->q[1].aborted);
	teardown(&f);

	/* But not with what the driver writes itself: one side is longer. */
	f = setup("trn2");
	probe(&f);
	strcpy(line, "programs 1");
	assert_int_equal(card_control(f.card, line, stderr), 0);
	describe(&f, f.card->ed.geo.hbm[0].base, host_address(&f, DATA), 64, 1);
	slot(&f, RX_RING)[-1].ctrl = cpu_to_le32(128 | 1 << 24);
	ring_doorbell(&f, 1);
	assert_true(settles(&f.card->stats.complaints, 1));
	teardown(&f);
}

static void test_reset_map_names_cores_and_what_is_theirs(void **state)
{
	static const struct {
		const char *name;
		u32 map;
		bool good;
	} rows[] = {
		{ "trn1", 0x701, true }, { "trn1", 0x3802, true }, { "trn1", 0x3f03, true },
		{ "trn1", 0x1, false }, { "trn1", 0x3801, false }, { "trn1", 0, false },
		{ "trn2", 0x20202, true }, { "trn2", 0xffffff, true }, { "trn2", 0x2, false },
		{ "trn2", 0x1020202, false },
	};
	struct fixture f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		f = setup(rows[i].name);
		reset(&f, 2, rows[i].map);
		assert_int_equal(f.card->stats.complaints, rows[i].good ? 0 : 1);
		teardown(&f);
	}
}

static void test_faults_of_reset_and_firmware(void **state)
{
	struct fixture f = setup("trn2");
	char line[32] = "reset never";

	assert_int_equal(card_control(f.card, line, stderr), 0);
	card_write(f.card, misc(&f, 0x1ec), 4, 1);
	card_write(f.card, misc(&f, 0x800), 4, 1);
	usleep(50000);
	assert_int_equal(card_read(f.card, misc(&f, 0x1ec), 4), 1);
	/* A driver may give up, and ask again. */
	card_write(f.card, misc(&f, 0x1ec), 4, 1);
	f.card->reset_at = 1;
	strcpy(line, "not-ready 2");
	assert_int_equal(card_control(f.card, line, stderr), 0);
	assert_int_equal(card_read(f.card, misc(&f, 0x1ec), 4), 0);
	assert_int_equal(card_read(f.card, misc(&f, 0x808), 4), 8);
	assert_int_equal(card_read(f.card, misc(&f, 0x808), 4), 8);
	assert_int_equal(card_read(f.card, misc(&f, 0x808), 4), 0);
	strcpy(line, "dead 20");
	assert_int_equal(card_control(f.card, line, stderr), 0);
	assert_int_equal(card_read(f.card, misc(&f, 0x24), 4), 0xdeadbeef);
	usleep(30000);
	assert_int_equal(card_read(f.card, misc(&f, 0x24), 4), 3);
	strcpy(line, "removed 1");
	assert_int_equal(card_control(f.card, line, stderr), 0);
	assert_int_equal((u32)card_read(f.card, misc(&f, 0x24), 4), 0xffffffff);
	strcpy(line, "dead x");
	assert_int_equal(card_control(f.card, line, stderr), -EINVAL);
	strcpy(line, "nonsense 1");
	assert_int_equal(card_control(f.card, line, stderr), -EINVAL);
	assert_int_equal(f.card->stats.complaints, 0);
	teardown(&f);
}

static void test_lost_doorbells_and_aborts(void **state)
{
	struct fixture f = setup("trn1");

	probe(&f);
	f.card->faults.lost_doorbells = 2;
	assert_false(copy(&f, f.card->ed.geo.hbm[0].base, host_address(&f, DATA), 64));
	teardown(&f);

	f = setup("trn1");
	probe(&f);
	atomic_set(&f.card->ed.faults.fault[EMU_FAULT_DMA_ABORT].shots, 1);
	assert_false(copy(&f, f.card->ed.geo.hbm[0].base, host_address(&f, DATA), 64));
	assert_int_equal(engine_state(&f, 32), 0x2222);
	teardown(&f);
}

static void test_states_change_late(void **state)
{
	struct fixture f = setup("trn1");
	u64 engine = card_offset(f.card, CARD_ENGINE, 32);
	char line[32] = "slow-state 2";

	probe(&f);
	assert_int_equal(card_control(f.card, line, stderr), 0);
	card_write(f.card, engine + 0x204, 4, 4);
	assert_int_equal(engine_state(&f, 32), 0x1111);
	assert_int_equal(engine_state(&f, 32), 0x1111);
	assert_int_equal(engine_state(&f, 32), 0x2222);
	card_write(f.card, engine + 0x204, 4, 1);
	assert_int_equal(engine_state(&f, 32), 0x2222);
	assert_int_equal(engine_state(&f, 32), 0x2222);
	assert_int_equal(engine_state(&f, 32), 0x1111);
	assert_int_equal(f.card->stats.complaints, 0);
	teardown(&f);
}

/* A request as a driver makes it; the checksum of this one is known. */
static u32 mailbox(struct fixture *f, u32 crc)
{
	/* sequence 1, command 1 (read registers), 16 bytes, one address: the serial number's */
	u8 request[16] = { 1, 1, 16, 0 };
	u64 addr = 0x8006c84038;

	memcpy(request + 4, &crc, sizeof(crc));
	memcpy(request + 8, &addr, sizeof(addr));
	memcpy(f->host + DATA, request, sizeof(request));
	memset(f->host + DATA + 4096, 0, 8);
	card_write(f->card, misc(f, 0x1f4), 4, lower_32_bits(host_address(f, DATA)));
	card_write(f->card, misc(f, 0x1f0), 4, upper_32_bits(host_address(f, DATA)));
	card_write(f->card, misc(f, 0x1fc), 4, lower_32_bits(host_address(f, DATA + 4096)));
	card_write(f->card, misc(f, 0x1f8), 4, upper_32_bits(host_address(f, DATA + 4096)));
	card_write(f->card, misc(f, 0x800), 4, 1);
	return f->host[DATA + 4096];
}

static u32 crc32c_of(const u8 *p, size_t n)
{
	u32 crc = ~0u, k;

	for (; n--; p++)
		for (k = 0; k < 8; k++)
			crc = crc >> 1 ^ ((crc ^ *p >> k) & 1 ? 0x82f63b78 : 0);
	return ~crc;
}

static u32 crc32c_of_request(void)
{
	u8 request[16] = { 1, 1, 16, 0 };
	u64 addr = 0x8006c84038;

	memcpy(request + 8, &addr, sizeof(addr));
	return crc32c_of(request, sizeof(request));
}

static void test_mailbox(void **state)
{
	struct fixture f = setup("trn2");
	u32 crc = crc32c_of_request(), word;

	assert_int_equal(mailbox(&f, crc), 1);
	memcpy(&word, f.host + DATA + 4096 + 4, sizeof(word));
	assert_int_equal(word, 0x55667788);
	assert_int_equal(f.card->stats.complaints, 0);
	assert_int_equal(mailbox(&f, crc ^ 1), 0);
	assert_int_equal(f.card->stats.complaints, 1);
	f.card->faults.mailbox = CARD_MAILBOX_SILENT;
	assert_int_equal(mailbox(&f, crc), 0);
	f.card->faults.mailbox = CARD_MAILBOX_SEQUENCE;
	assert_int_equal(mailbox(&f, crc), 2);
	f.card->faults.mailbox = CARD_MAILBOX_FAILED;
	assert_int_equal(mailbox(&f, crc), 1);
	assert_int_equal(f.host[DATA + 4096 + 1], 1);
	teardown(&f);
}

/* The same request in the second form, as words.  Return: the first word of the answer. */
static u32 message(struct fixture *f, u32 wrong)
{
	u32 words[4] = { 1 | 1 << 8 | 16 << 16, 0, 0x06c84038, 0x80 };
	u32 crc = crc32c_of((u8 *)words, sizeof(words));

	card_write(f->card, misc(f, 0x100), 4, words[2]);
	card_write(f->card, misc(f, 0x104), 4, words[3]);
	card_write(f->card, misc(f, 0x1f0), 4, words[0]);
	card_write(f->card, misc(f, 0x1f4), 4, crc ^ wrong);
	card_write(f->card, misc(f, 0x1f8), 4, 0);
	card_write(f->card, misc(f, 0x1fc), 4, 0);
	card_write(f->card, misc(f, 0xf0), 4, 1);
	card_write(f->card, misc(f, 0x800), 4, 1);
	return card_read(f->card, misc(f, 0x1f0), 4);
}

static void test_mailbox_in_misc_ram(void **state)
{
	u32 header[2] = { 1 | 12 << 16 }, answer[3];
	struct fixture f = setup("trn3");

	/* The answer: 12 bytes, with a checksum, and the word that was asked for. */
	assert_int_equal(message(&f, 0), header[0]);
	assert_int_equal(card_read(f.card, misc(&f, 0x100), 4), 0x55667788);
	memcpy(answer, (u32[]){ header[0], 0, 0x55667788 }, sizeof(answer));
	assert_int_equal(card_read(f.card, misc(&f, 0x1f4), 4),
			 crc32c_of((u8 *)answer, sizeof(answer)));
	assert_int_equal(card_read(f.card, misc(&f, 0x800), 4), 0);
	f.card->faults.mailbox = CARD_MAILBOX_CHECKSUM;
	message(&f, 0);
	assert_int_not_equal(card_read(f.card, misc(&f, 0x1f4), 4),
			     crc32c_of((u8 *)answer, sizeof(answer)));
	f.card->faults.mailbox = CARD_MAILBOX_LOST;
	assert_int_equal(message(&f, 0), 1 | 1 << 8 | 16 << 16);
	assert_int_equal(card_read(f.card, misc(&f, 0x800), 4), 0);
	assert_int_equal(message(&f, 0), header[0]);
	f.card->faults.mailbox = CARD_MAILBOX_SEQUENCE;
	assert_int_equal(message(&f, 0) & 0xff, 2);
	f.card->faults.mailbox = CARD_MAILBOX_SILENT;
	message(&f, 0);
	assert_int_equal(card_read(f.card, misc(&f, 0x800), 4), 1);
	assert_int_equal(f.card->stats.complaints, 0);
	message(&f, 1);
	assert_int_equal(f.card->stats.complaints, 1);
	teardown(&f);

	/* Firmware that has the first form only. */
	f = setup("trn2");
	message(&f, 0);
	assert_int_equal(f.card->stats.complaints, 1);
	teardown(&f);
}

static void test_memory_can_be_dirty_at_the_start(void **state)
{
	struct card_config cfg = { .kind = CARD_TRN1, .dirty_mib = 1 };
	struct card *card = card_new(&cfg);

	assert_non_null(card);
	assert_int_equal(card->bar4[7], 0xda);
	assert_int_equal(card->bar4[card->hbm_stride + (1 << 20) - 1], 0xda);
	assert_int_equal(card->bar4[1 << 20], 0);
	card_free(card);
}

/* HBMs are larger than the machine that the model runs on. */
static void test_memory_of_zeros_takes_no_room(void **state)
{
	struct fixture f = setup("trn1");
	struct stat before, after;
	u64 hbm = f.card->ed.geo.hbm[0].base;
	u32 i;

	probe(&f);
	assert_int_equal(fstat(f.card->bar4_fd, &before), 0);
	memset(f.host + DATA, 7, 65536);
	assert_true(copy(&f, hbm + 65536, host_address(&f, DATA), 65536));
	assert_int_equal(fstat(f.card->bar4_fd, &after), 0);
	assert_true(after.st_blocks > before.st_blocks);
	memset(f.host + DATA, 0, 65536);
	for (i = 1; i < 4; i++)
		assert_true(copy(&f, hbm + i * 65536, host_address(&f, DATA), 65536));
	assert_int_equal(fstat(f.card->bar4_fd, &after), 0);
	assert_int_equal(after.st_blocks, before.st_blocks);
	assert_int_equal(f.card->bar4[65536], 0);
	assert_memory_equal(f.card->bar4 + 65536, f.card->bar4 + 65537, 3 * 65536 - 1);
	assert_int_equal(f.card->stats.complaints, 0);
	teardown(&f);
}

/* ---- through vfio-user ---- */

struct head {
	u16 id;
	u16 command;
	u32 size;
	u32 flags;
	u32 error;
};

/* Send a message, let the card handle it, return the answer's error; *@out: its body. */
static u32 ask(struct vfu *v, int fd, u16 command, const void *body, u32 len, void *out, u32 room)
{
	struct head h = { .id = 7, .command = command, .size = sizeof(h) + len };
	char buf[512];
	ssize_t n;

	assert_int_equal(send(fd, &h, sizeof(h), 0), sizeof(h));
	assert_int_equal(send(fd, body, len, 0), len);
	assert_int_equal(vfu_message(v), 0);
	n = recv(fd, buf, sizeof(buf), 0);
	assert_true(n >= (ssize_t)sizeof(h));
	memcpy(&h, buf, sizeof(h));
	assert_int_equal(h.id, 7);
	assert_int_equal(h.size, n);
	if (out)
		memcpy(out, buf + sizeof(h), min((size_t)room, (size_t)n - sizeof(h)));
	return h.error;
}

static void test_a_virtual_machine_sees_a_pci_function(void **state)
{
	struct { u64 off; u32 region, count; u8 data[4]; } a = { 0, 7, 4, { 0 } };
	struct { u32 argsz, flags, index, cap; u64 size, offset; } region = { .index = 0 };
	struct fixture f = setup("trn2");
	struct vfu v;
	int fd[2];
	u32 val;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(vfu_init(&v, f.card, fd[1]), 0);
	assert_int_equal(ask(&v, fd[0], 9, &a, 16, &a, sizeof(a)), 0);
	memcpy(&val, a.data, sizeof(val));
	assert_int_equal(val, 0x73641d0f);
	assert_int_equal(ask(&v, fd[0], 5, &region, sizeof(region), &region, sizeof(region)), 0);
	assert_int_equal(region.size, 4ULL << 30);
	a.region = 0;
	a.off = 0x6c84024;
	assert_int_equal(ask(&v, fd[0], 9, &a, 16, &a, sizeof(a)), 0);
	memcpy(&val, a.data, sizeof(val));
	assert_int_equal(val, 3);
	/* Bus mastering on; the rest of the register cannot be set. */
	a.region = 7;
	a.off = 4;
	memset(a.data, 0xff, 4);
	assert_int_equal(ask(&v, fd[0], 10, &a, 20, NULL, 0), 0);
	assert_int_equal(f.card->command, 0x46);
	vfu_exit(&v);
	close(fd[0]);
	teardown(&f);
}

static void test_malformed_messages(void **state)
{
	struct { u64 off; u32 region, count; u8 data[4]; } a = { 0, 7, 400, { 0 } };
	struct head h = { .command = 9, .size = 1 << 24 };
	struct fixture f = setup("trn2");
	struct vfu v;
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(vfu_init(&v, f.card, fd[1]), 0);
	assert_int_equal(ask(&v, fd[0], 9, &a, 16, NULL, 0), EINVAL);	/* longer than the space */
	assert_int_equal(ask(&v, fd[0], 10, &a, 20, NULL, 0), EINVAL);	/* longer than the body */
	assert_int_equal(ask(&v, fd[0], 9, &a, 8, NULL, 0), EINVAL);	/* too short */
	assert_int_equal(ask(&v, fd[0], 99, &a, 8, NULL, 0), EINVAL);
	assert_int_equal(ask(&v, fd[0], 11, &a, 8, NULL, 0), ENOSYS);
	a.region = 4;
	assert_int_equal(ask(&v, fd[0], 9, &a, 16, NULL, 0), EINVAL);	/* not by message */
	assert_int_equal(send(fd[0], &h, sizeof(h), 0), sizeof(h));
	assert_int_equal(vfu_message(&v), -EPROTO);
	close(fd[0]);
	assert_int_equal(vfu_message(&v), -EPIPE);
	vfu_exit(&v);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers_are_where_the_tables_say),
		cmocka_unit_test(test_probe_takes_the_recorded_accesses),
		cmocka_unit_test(test_engine_start_has_the_recorded_values),
		cmocka_unit_test(test_second_start_of_an_engine_differs),
		cmocka_unit_test(test_wrong_accesses_are_complaints),
		cmocka_unit_test(test_queue_before_its_engine_is_a_complaint),
		cmocka_unit_test(test_copies_reach_device_and_host),
		cmocka_unit_test(test_a_wrong_ring_id_stops_where_it_is_fatal),
		cmocka_unit_test(test_addresses_where_nothing_is_are_complaints),
		cmocka_unit_test(test_host_memory_needs_bus_mastering_and_a_mapping),
		cmocka_unit_test(test_semaphores_and_events),
		cmocka_unit_test(test_state_buffers_are_memory),
		cmocka_unit_test(test_queues_can_run_on),
		cmocka_unit_test(test_queues_can_run_on_for_a_moment),
		cmocka_unit_test(test_notification_queues_are_off_while_their_base_changes),
		cmocka_unit_test(test_queues_of_programs_may_stop),
		cmocka_unit_test(test_reset_map_names_cores_and_what_is_theirs),
		cmocka_unit_test(test_faults_of_reset_and_firmware),
		cmocka_unit_test(test_lost_doorbells_and_aborts),
		cmocka_unit_test(test_states_change_late),
		cmocka_unit_test(test_mailbox),
		cmocka_unit_test(test_mailbox_in_misc_ram),
		cmocka_unit_test(test_memory_can_be_dirty_at_the_start),
		cmocka_unit_test(test_memory_of_zeros_takes_no_room),
		cmocka_unit_test(test_a_virtual_machine_sees_a_pci_function),
		cmocka_unit_test(test_malformed_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

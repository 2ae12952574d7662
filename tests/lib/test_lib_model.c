// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loading and running: rings descriptor by descriptor, the scratchpad, what is
 * refused, and that nothing stays allocated whichever call of the driver fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>

#include "fake_driver.h"
#include "test_neffs.h"

#include "common/wait.h"
#include "src/isa/program.h"
#include "src/isa/span.h"
#include "src/load/labels.h"
#include "src/run/core.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* After the @left'th end of a program that the library reads, core @nc has an error. */
static struct {
	unsigned int left;
	unsigned int nc;
} error_after;

int __real_neuron_nq_read(struct neuron_nq *nq, struct neuron_notice *notice);
int __wrap_neuron_nq_read(struct neuron_nq *nq, struct neuron_notice *notice);

int __wrap_neuron_nq_read(struct neuron_nq *nq, struct neuron_notice *notice)
{
	const struct neuron_isa_notice n = {
		.engine = NEURON_ISA_ENGINE_PE,
		.kind = NEURON_ISA_NOTICE_ERROR,
		.code = NEURON_ISA_ERR_BOUNDS,
	};
	int ret = __real_neuron_nq_read(nq, notice);

	if (!ret && notice->kind == NEURON_ISA_NOTICE_NOTIFY && notice->id == NOTIFY_DONE &&
	    error_after.left && !--error_after.left)
		fake_post(&fake.dev[0], error_after.nc, NQ_TYPE_ERROR, 0, n);
	return ret;
}

/* ---- arithmetic -------------------------------------------------------------------- */

static struct neuron_neff_side side(uint64_t off, uint32_t ndim, const uint64_t *size,
				    const uint64_t *step)
{
	struct neuron_neff_side s = { .off = off, .ndim = ndim };

	for (uint32_t i = 0; i < ndim; i++) {
		s.size[i] = size[i];
		s.step[i] = step[i];
	}
	return s;
}

#define SIDE(off, n, ...) \
	side(off, n, (const uint64_t[2][4]){ __VA_ARGS__ }[0], (const uint64_t[2][4]){ __VA_ARGS__ }[1])

static void test_spans(void **state)
{
	struct neuron_neff_side s;
	struct span p;

	(void)state;
	/* Rows end to end become one; dimensions of one element go. */
	s = SIDE(5, 4, { 16, 4, 1, 3 }, { 1, 16, 999, 64 });
	p = span_of(&s, 1000);
	assert_int_equal(p.ndim, 1);
	assert_int_equal(p.size[0], 192);
	assert_int_equal(span_end(&s), 5 + 16 + 3 * 16 + 2 * 64);
	s = SIDE(0, 3, { 16, 4, 3 }, { 1, 32, 128 });
	p = span_of(&s, 0);
	assert_int_equal(p.ndim, 2);
	assert_int_equal(p.size[1], 12);
	/* A repeated row is not one long row. */
	s = SIDE(0, 3, { 16, 4, 3 }, { 1, 0, 16 });
	p = span_of(&s, 0);
	assert_int_equal(p.ndim, 3);
}

/* A profile finds transfers by ring and descriptor, whatever order their triggers have. */
static void test_labels_order(void **state)
{
	static const struct {
		uint32_t ring, first;
	} added[] = { { 2, 0 }, { 0, 4 }, { 2, 3 }, { 1, 7 }, { 0, 0 }, { 1, 2 }, { 0, 2 } };
	static const uint32_t sorted[] = { 4, 6, 1, 5, 3, 0, 2 };
	enum { N = sizeof(added) / sizeof(added[0]) };
	struct neuron_neff_queue queue = { .name = "q" };
	struct neuron_neff_dma dma = { .queue = &queue };
	struct programs programs = { .nr_triggers = N };
	struct labels *l = labels_new("caf\xc3\xa9 ~", &programs, 3);

	(void)state;
	assert_non_null(l);
	assert_string_equal(l->name, "caf?? ~");
	for (uint32_t i = 0; i < N; i++) {
		struct trigger t = { .dma = &dma, .inst = i, .ring = added[i].ring };

		assert_int_equal(labels_add(l, &t, NEURON_ISA_ENGINE_ACT, added[i].first), 0);
	}
	labels_sort(l);
	assert_int_equal(l->nr_entries, N);
	for (uint32_t i = 0; i < N; i++) {
		const struct label_entry *e = &l->entries[l->by_ring[i]];

		assert_int_equal(l->by_ring[i], sorted[i]);
		assert_int_equal(e->ring, added[sorted[i]].ring);
		assert_int_equal(e->first, added[sorted[i]].first);
		assert_int_equal(e->inst, sorted[i]);
		assert_int_equal(e->engine, NEURON_ISA_ENGINE_ACT);
	}
	labels_put(l);
}

/* Against a walk byte by byte. */
static void test_pieces(void **state)
{
	static const struct {
		uint32_t ndim[2];
		uint64_t size[2][4], step[2][4];
		unsigned int pieces;
	} cases[] = {
		{ { 1, 1 }, { { 200000 }, { 200000 } }, { { 1 }, { 1 } }, 4 },
		{ { 1, 1 }, { { 65536 }, { 65536 } }, { { 1 }, { 1 } }, 1 },
		{ { 1, 1 }, { { 65537 }, { 65537 } }, { { 1 }, { 1 } }, 2 },
		{ { 2, 1 }, { { 64, 16 }, { 1024 } }, { { 1, 128 }, { 1 } }, 16 },
		{ { 2, 2 }, { { 64, 16 }, { 256, 4 } }, { { 1, 128 }, { 1, 300 } }, 16 },
		{ { 2, 2 }, { { 6, 10 }, { 4, 15 } }, { { 1, 9 }, { 1, 5 } }, 20 },
		{ { 3, 4 }, { { 8, 3, 5 }, { 2, 5, 3, 4 } },
		  { { 1, 10, 40 }, { 1, 3, 0, 100 } }, 60 },
		{ { 2, 1 }, { { 70000, 2 }, { 140000 } }, { { 1, 80000 }, { 1 } }, 4 },
		{ { 1, 2 }, { { 48 }, { 16, 3 } }, { { 1 }, { 1, 0 } }, 3 },
	};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct neuron_neff_side d =
			side(0, cases[c].ndim[0], cases[c].size[0], cases[c].step[0]);
		struct neuron_neff_side s =
			side(0, cases[c].ndim[1], cases[c].size[1], cases[c].step[1]);
		struct span ds = span_of(&d, 1000), ss = span_of(&s, 5000000);
		struct piece_iter it;
		struct piece p;
		unsigned int n = 0;
		uint64_t at[2][4] = { { 0 } }, seen = 0, bytes = 1;

		for (uint32_t i = 0; i < d.ndim; i++)
			bytes *= d.size[i];
		piece_start(&it, &ds, &ss);
		while (piece_next(&it, &p)) {
			assert_in_range(p.bytes, 1, 65536);
			for (uint32_t b = 0; b < p.bytes; b++) {
				const struct neuron_neff_side *sides[2] = { &d, &s };
				uint64_t address[2] = { 1000, 5000000 };

				for (int k = 0; k < 2; k++) {
					bool carry = true;

					for (uint32_t i = 0; i < sides[k]->ndim; i++)
						address[k] += at[k][i] * sides[k]->step[i];
					for (uint32_t i = 0; i < sides[k]->ndim && carry; i++) {
						carry = ++at[k][i] == sides[k]->size[i];
						if (carry)
							at[k][i] = 0;
					}
				}
				assert_int_equal(p.dst + b, address[0]);
				assert_int_equal(p.src + b, address[1]);
			}
			seen += p.bytes;
			n++;
		}
		assert_int_equal(seen, bytes);
		assert_int_equal(n, cases[c].pieces);
		assert_int_equal(piece_count(&ds, &ss, UINT32_MAX), n);
		assert_int_equal(piece_count(&ds, &ss, n), n);
		assert_int_equal(piece_count(&ds, &ss, n - 1), n);
	}
}

static void test_page_rules(void **state)
{
	(void)state;
	assert_true(scratchpad_fits(0, 512 * MIB, 512 * MIB));
	assert_false(scratchpad_fits(1, 512 * MIB, 512 * MIB));
	assert_true(scratchpad_fits(1024 * MIB, 512 * MIB, 512 * MIB));
	assert_false(scratchpad_fits(0, 512 * MIB + 1, 512 * MIB));
	assert_true(scratchpad_fits(100 * MIB, 412 * MIB, 512 * MIB));
	assert_false(scratchpad_fits(100 * MIB, 412 * MIB + 1, 512 * MIB));
	assert_int_equal(scratchpad_pages(0, 512 * MIB), 0);
	assert_int_equal(scratchpad_pages(1, 512 * MIB), 1);
	assert_int_equal(scratchpad_pages(512 * MIB, 512 * MIB), 1);
	assert_int_equal(scratchpad_pages(1638 * MIB, 512 * MIB), 4);
	assert_true(scratchpad_pages(UINT64_MAX, 512 * MIB) == 1ull << 35);
}

/* ---- a core ------------------------------------------------------------------------ */

struct fixture {
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_mem *x, *y;
	struct neuron_io io[2];
	uint8_t in[100000];
};

/* Of the core that setup_on() opens. */
static bool contiguous;

static int setup_on(void **state, uint32_t nc, uint64_t page)
{
	struct neuron_core_opts opts = {
		.size = sizeof(opts),
		.scratchpad_page = page,
		.contiguous = contiguous,
	};
	struct neuron_mem_opts mem = { .size = sizeof(mem), .nc = nc, .category = NEURON_MEM_TENSORS };
	struct fixture *f = calloc(1, sizeof(*f));

	if (neuron_device_open(0, &f->device) ||
	    neuron_core_open(f->device, nc, &opts, &f->core) ||
	    neuron_mem_alloc(f->device, sizeof(f->in), &mem, &f->x) ||
	    neuron_mem_alloc(f->device, sizeof(f->in), &mem, &f->y))
		return -1;
	for (size_t i = 0; i < sizeof(f->in); i++)
		f->in[i] = (uint8_t)(i * 31 + i / 256);
	neuron_mem_write(f->x, 0, f->in, sizeof(f->in));
	f->io[0] = (struct neuron_io){ "x", f->x, 0, sizeof(f->in) };
	f->io[1] = (struct neuron_io){ "y", f->y, 0, sizeof(f->in) };
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return setup_on(state, 2, 0);
}

/* Addresses begin at the start of a memory that nobody ever had. */
static int setup_low(void **state)
{
	memset(fake.dev[0].bump, 0, sizeof(fake.dev[0].bump));
	fake.dev[0].nr_events = 0;
	return setup_on(state, 2, 0);
}

static int setup_big_page(void **state)
{
	return setup_on(state, 0, 2 * GIB);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fake.fail_at = 0;
	fake.stuck = false;
	fake.reason = NEURON_NATIVE_REASON_NONE;
	fake.no_growing = false;
	contiguous = false;
	neuron_core_close(f->core);
	neuron_mem_free(f->x);
	neuron_mem_free(f->y);
	neuron_device_close(f->device);
	free(f);
	if (fake.left_bytes || fake.left_handles)
		print_error("left before the device was closed: %llu bytes, %u handles\n",
			    (unsigned long long)fake.left_bytes, fake.left_handles);
	return fake_used() || fake.mapped || fake.dev[0].opens || fake.left_bytes ||
	       fake.left_handles;
}

static int setup_contiguous(void **state)
{
	contiguous = true;
	return setup_on(state, 0, 0);
}

static struct neuron_model *load(struct fixture *f, struct neff_bytes neff)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &error };
	struct neuron_model *m = NULL;
	int ret = neuron_model_load(f->core, neff.data, neff.size, &opts, &m);

	free(neff.data);
	if (ret)
		fail_msg("%d: %s", ret, error.text);
	return m;
}

/* Loading fails with @ret, @kind and a line that contains @text; nothing stays. */
static void refused(struct fixture *f, struct neff_bytes neff, int ret, enum neuron_error_kind kind,
		    const char *text)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &error };
	struct neuron_model *m = NULL;
	uint64_t before = fake_used();

	assert_int_equal(neuron_model_load(f->core, neff.data, neff.size, &opts, &m), ret);
	assert_null(m);
	assert_int_equal(fake_used(), before);
	if (error.kind != kind || !strstr(error.text, text))
		fail_msg("kind %d, '%s', not '%s'", error.kind, error.text, text);
	free(neff.data);
}

/* Times of the steps of a load, if the caller wants them. */
static void test_stats(void **state)
{
	struct fixture *f = *state;
	struct neuron_load_stats s = { .size = sizeof(s) }, part = { .copy_ns = 1234 };
	struct neuron_model_opts opts = { .size = sizeof(opts), .stats = &s };
	struct neff_bytes n = make_list_neff();
	struct neuron_model *m;

	assert_int_equal(neuron_model_load(f->core, n.data, n.size, &opts, &m), 0);
	assert_true(s.archive_ns && s.json_ns && s.plan_ns && s.memory_ns && s.copy_ns && s.rings_ns);
	assert_true(s.archive_ns + s.json_ns + s.plan_ns + s.memory_ns + s.copy_ns + s.rings_ns <=
		    s.total_ns);
	/* k, the numbers to add, what g points to (p points to an input), the program */
	assert_true(s.copy_bytes > 256 + 64 + 2 * 8);
	assert_int_equal((s.copy_bytes - 256 - 2 * 8) % NEURON_ISA_INST_SIZE, 0);
	assert_int_equal(s.descriptors % 2, 0);
	assert_true(s.descriptors > 2);
	neuron_model_unload(m);

	/* Only the members that the caller knows are written. */
	part.size = offsetof(struct neuron_load_stats, copy_ns);
	opts.stats = &part;
	assert_int_equal(neuron_model_load(f->core, n.data, n.size, &opts, &m), 0);
	assert_true(part.total_ns && part.memory_ns);
	assert_int_equal(part.copy_ns, 1234);
	neuron_model_unload(m);
	part = (struct neuron_load_stats){ .size = 0 };
	assert_int_equal(neuron_model_load(f->core, n.data, n.size, &opts, &m), 0);
	assert_int_equal(part.total_ns, 0);
	neuron_model_unload(m);

	/* A failed load touches nothing of it. */
	memset(&s, 0x55, sizeof(s));
	s.size = sizeof(s);
	opts.stats = &s;
	assert_int_equal(neuron_model_load(f->core, n.data, n.size / 2, &opts, &m), -EINVAL);
	assert_int_equal(s.total_ns, 0x5555555555555555);
	free(n.data);
}

static void run_ok(struct fixture *f, struct neuron_model *m)
{
	struct neuron_run_result r = { .size = sizeof(r) };

	if (neuron_model_run(m, f->io, 2, 1000, &r))
		fail_msg("%s", r.text);
	assert_int_equal(r.status, NEURON_RUN_DONE);
}

static void test_core_open(void **state)
{
	struct fixture *f = *state;
	struct neuron_core_opts opts = { .size = sizeof(opts) };
	struct neuron_core *core = NULL;

	assert_int_equal(neuron_core_index(f->core), 2);
	assert_ptr_equal(neuron_core_device(f->core), f->device);
	assert_int_equal(neuron_core_open(f->device, FAKE_CORES, NULL, &core), -EINVAL);
	opts.scratchpad_page = 100 * MIB;
	assert_int_equal(neuron_core_open(f->device, 1, &opts, &core), -EINVAL);
	opts.scratchpad_page = 4 * GIB;
	assert_int_equal(neuron_core_open(f->device, 1, &opts, &core), -EINVAL);
	opts.scratchpad_page = 0;
	opts.contiguous = 2;
	assert_int_equal(neuron_core_open(f->device, 1, &opts, &core), -EINVAL);
	opts.contiguous = 0;
	fake.dev[0].core[1].owned_by_other = true;
	assert_int_equal(neuron_core_open(f->device, 1, NULL, &core), -EBUSY);
	fake.dev[0].core[1].owned_by_other = false;
	/* Each call of the driver fails once; everything is given back. */
	for (unsigned int i = 1;; i++) {
		int ret;

		fake_fail(i, 0, EIO);
		ret = neuron_core_open(f->device, 1, NULL, &core);
		if (!fake.fail_at) {
			assert_int_equal(ret, -EIO);
			continue;
		}
		assert_int_equal(ret, 0);
		assert_in_range(i, 6, 20);
		break;
	}
	fake.fail_at = 0;
	neuron_core_close(core);
	opts.scratchpad_page = 0;
	opts.no_reset = true;
	assert_int_equal(neuron_core_open(f->device, 3, &opts, &core), 0);
	assert_int_equal(fake.dev[0].core[3].resets, 0);
	assert_int_equal(neuron_core_reset(core), 0);
	assert_int_equal(fake.dev[0].core[3].resets, 1);
	neuron_core_close(core);
	neuron_core_close(NULL);
}

static void check_pair(const struct ring *ring, uint32_t i, uint64_t dst, uint64_t src,
		       uint32_t bytes, bool barrier)
{
	struct neuron_descriptor tx, rx, want_tx, want_rx;

	neuron_descriptor_copy(&want_tx, &want_rx, dst, src, bytes, barrier);
	assert_int_equal(neuron_mem_read(ring->tx, i * 16, &tx, 16), 0);
	assert_int_equal(neuron_mem_read(ring->rx, i * 16, &rx, 16), 0);
	assert_memory_equal(&tx, &want_tx, 16);
	assert_memory_equal(&rx, &want_rx, 16);
}

static uint64_t pair_address(const struct ring *ring, uint32_t i, bool rx)
{
	struct neuron_descriptor d;

	assert_int_equal(neuron_mem_read(rx ? ring->rx : ring->tx, i * 16, &d, 16), 0);
	return le64toh(d.address);
}

/* The next four tests load make_list_neff(): its tensors, memory, result and descriptors. */
static void test_list_describes(void **state)
{
	struct neuron_tensor_info info = { .size = sizeof(info) };
	struct neuron_model *m = load(*state, make_list_neff());

	assert_string_equal(neuron_model_name(m), "list");
	assert_null(neuron_model_obstacle(m));
	assert_int_equal(neuron_model_tensor_count(m), 2);
	assert_int_equal(neuron_model_tensor_info(m, 1, &info), 0);
	assert_string_equal(info.name, "y");
	assert_int_equal(info.usage, NEURON_TENSOR_OUTPUT);
	assert_int_equal(info.bytes, 1024);
	assert_int_equal(info.ndim, 1);
	assert_int_equal(info.shape[0], 1024);
	assert_int_equal(neuron_model_tensor_info(m, 2, &info), -EINVAL);
	neuron_model_unload(m);
}

/* The report is what the driver counts. */
static void test_list_usage(void **state)
{
	struct fixture *f = *state;
	struct neuron_model_usage u = { .size = sizeof(u) };
	uint64_t before = fake_used();
	struct neuron_model *m = load(f, make_list_neff());

	assert_int_equal(neuron_model_get_usage(m, &u), 0);
	assert_int_equal(u.code, 4096);
	assert_int_equal(u.constants, 4096);
	assert_int_equal(u.scratchpad, 8192);
	assert_int_equal(u.runtime, 4096);
	assert_int_equal(u.rings_io, 4 * 4096);
	assert_int_equal(u.rings_spill, 2 * 4096);
	assert_int_equal(u.rings_runtime, 2 * 4096);
	assert_int_equal(u.shared_scratchpad, 65536 + 4096);
	assert_int_equal(fake_used() - before, 512 * MIB + 4096 + 4096 + 8192 + 4096 + 8 * 4096);
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_SCRATCHPAD], 512 * MIB);
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_SCRATCHPAD_PRIVATE], 8192);
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_RINGS], 8 * 4096);
	assert_int_equal(neuron_core_scratchpad(f->core), 512 * MIB);
	neuron_model_unload(m);
	neuron_model_unload(NULL);
	assert_int_equal(fake_used(), before);
	assert_int_equal(neuron_core_scratchpad(f->core), 0);
}

static void test_list_runs(void **state)
{
	struct fixture *f = *state;
	struct fake_core *core = &fake.dev[0].core[2];
	struct neuron_model *m = load(f, make_list_neff());
	uint8_t want[1024], got[1024];

	run_ok(f, m);
	list_expected(f->in, want);
	assert_int_equal(neuron_mem_read(f->y, 0, got, 1024), 0);
	assert_memory_equal(got, want, 1024);
	/* Everything is as it was: the next run can start. */
	for (int i = 0; i < 256; i++) {
		assert_int_equal(core->sem[i], 0);
		assert_int_equal(core->event[i], 0);
	}
	neuron_model_unload(m);
}

/* Fetch ring of SP, then qIn (16 rows, event, semaphore), qSpill, qOut. */
static void test_list_rings(void **state)
{
	struct fixture *f = *state;
	uint64_t x, y, t, v, k, one, tpb = FAKE_TPB(2), pointer, table[2];
	struct neuron_model *m = load(f, make_list_neff());

	run_ok(f, m);
	assert_int_equal(m->nr_rings, 4);
	assert_int_equal(m->nr_fetch, 1);
	assert_int_equal(m->rings[0].slot, NEURON_ISA_ENGINE_SP);
	assert_int_equal(m->rings[0].count, 1);
	check_pair(&m->rings[0], 0, tpb + NEURON_ISA_FIFO_OFF(4), pair_address(&m->rings[0], 0, false),
		   11 * 64, false);
	assert_int_equal(m->rings[1].count, 18);
	assert_int_equal(m->rings[1].slots, 48);
	assert_int_equal(m->rings[2].count, 16 + 1 + 2 + 1);
	assert_int_equal(m->rings[3].count, 1 + 1);
	assert_int_equal(m->rings[1].slot, 5);
	assert_int_equal(m->rings[3].slot, 7);
	x = neuron_mem_address(f->x);
	y = neuron_mem_address(f->y);
	t = pair_address(&m->rings[1], 0, true);
	one = pair_address(&m->rings[1], 16, false);
	for (uint32_t i = 0; i < 16; i++)
		check_pair(&m->rings[1], i, t + 128 * i, x + 64 * i, 64, i == 15);
	check_pair(&m->rings[1], 16, tpb + NEURON_ISA_EVENT_OFF(9), one, 4, true);
	check_pair(&m->rings[1], 17, tpb + NEURON_ISA_SEM_INC_OFF(255), one, 4, true);
	for (uint32_t i = 0; i < 16; i++)
		check_pair(&m->rings[2], i, tpb + 256 + 64 * i, t + 128 * i, 64, i == 15);
	/* A set of 3 queues counts by 3, in one queue as in three. */
	check_pair(&m->rings[2], 16, tpb + NEURON_ISA_SEM_INC_OFF(12), one + 8, 4, true);
	v = pair_address(&m->rings[2], 17, true);
	k = pair_address(&m->rings[2], 18, false);
	check_pair(&m->rings[2], 17, v, tpb + 256, 1024, false);
	check_pair(&m->rings[2], 18, v, k, 256, true);
	check_pair(&m->rings[2], 19, tpb + NEURON_ISA_SEM_INC_OFF(255), one, 4, true);
	check_pair(&m->rings[3], 0, y, v, 1024, true);
	/* Scratchpad variables lie at their offset in a page. */
	assert_int_equal((v - 65536) % MIB, 0);

	/* pointer to x, dge-table of t and k: on a line each after the constants. */
	memcpy(&pointer, fake_memory(&fake.dev[0], one + 64, 8), 8);
	assert_int_equal(le64toh(pointer), x);
	memcpy(table, fake_memory(&fake.dev[0], one + 128, 16), 16);
	assert_int_equal(le64toh(table[0]), t);
	assert_int_equal(le64toh(table[1]), k);
	neuron_model_unload(m);
}

/* Moving a tensor rewrites its descriptors, and nothing else. */
static void test_rebind(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m = load(f, make_list_neff());
	struct neuron_mem *z;
	uint8_t want[1024], got[1024];
	unsigned int writes;

	run_ok(f, m);
	writes = fake.calls_nr[38];
	run_ok(f, m);
	assert_int_equal(fake.calls_nr[38], writes);

	assert_int_equal(neuron_mem_alloc(f->device, 4096, NULL, &z), 0);
	f->io[1].mem = z;
	f->io[1].offset = 512;
	f->io[1].bytes = 1024;
	run_ok(f, m);
	assert_int_equal(fake.calls_nr[38] - writes, 2);	/* both sides of qOut */
	list_expected(f->in, want);
	assert_int_equal(neuron_mem_read(z, 512, got, 1024), 0);
	assert_memory_equal(got, want, 1024);

	f->io[0].offset = 3000;
	f->io[0].bytes = 1024;
	run_ok(f, m);
	assert_int_equal(fake.calls_nr[38] - writes, 4);
	list_expected(f->in + 3000, want);
	assert_int_equal(neuron_mem_read(z, 512, got, 1024), 0);
	assert_memory_equal(got, want, 1024);

	/* An upload that failed is repeated by the next run. */
	f->io[0].offset = 0;
	fake_fail(2, 38, EIO);
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, NULL), -EIO);
	run_ok(f, m);
	list_expected(f->in, want);
	assert_int_equal(neuron_mem_read(z, 512, got, 1024), 0);
	assert_memory_equal(got, want, 1024);
	neuron_model_unload(m);
	neuron_mem_free(z);
}

/* Tensors that have moved since the last run are found where they are now. */
static void test_movable_tensors(void **state)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts), .nc = 2, .category = NEURON_MEM_TENSORS,
		.flags = NEURON_MEM_F_MOVABLE,
	};
	struct neuron_compaction c = { .size = sizeof(c) };
	struct fixture *f = *state;
	struct neuron_model *m = load(f, make_list_neff());
	struct neuron_mem *in, *out;
	uint8_t want[1024], got[1024];

	assert_int_equal(neuron_mem_alloc(f->device, sizeof(f->in), &opts, &in), 0);
	assert_int_equal(neuron_mem_alloc(f->device, sizeof(f->in), &opts, &out), 0);
	assert_int_equal(neuron_mem_write(in, 0, f->in, sizeof(f->in)), 0);
	f->io[0].mem = in;
	f->io[1].mem = out;
	list_expected(f->in, want);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(neuron_mem_set(out, 0, 0, 1024), 0);
		run_ok(f, m);
		assert_int_equal(neuron_mem_read(out, 0, got, 1024), 0);
		assert_memory_equal(got, want, 1024);
		assert_int_equal(neuron_mem_address(in), 0);
		assert_int_equal(neuron_hbm_compact(f->device, 0, 0, 0, 0, &c), 0);
		assert_int_equal(c.moves, 2);
	}
	/* The second one cannot be pinned: the first one is let go. */
	fake_fail(2, _IOC_NR(NEURON_NATIVE_MEM_PIN), ENODEV);
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, NULL), -ENODEV);
	assert_int_equal(neuron_mem_address(in), 0);
	run_ok(f, m);
	neuron_model_unload(m);
	neuron_mem_free(in);
	neuron_mem_free(out);
}

static void bad_io(struct fixture *f, struct neuron_model *m, const char *text)
{
	struct neuron_run_result r = { .size = sizeof(r) };

	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, &r), -EINVAL);
	if (!strstr(r.text, text))
		fail_msg("'%s', not '%s'", r.text, text);
}

static void test_bad_tensors(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m = load(f, make_list_neff());
	struct neuron_device *other;
	struct neuron_mem *mem, *x = f->x;

	f->io[0].name = "z";
	bad_io(f, m, "input x is missing");
	f->io[0].name = "x";
	f->io[1].bytes = 1023;
	bad_io(f, m, "output y is too small");
	f->io[1].bytes = 1024;
	f->io[1].offset = sizeof(f->in) - 1023;
	bad_io(f, m, "output y ends beyond");
	f->io[1].offset = 0;
	fake.nr_devices = 2;
	assert_int_equal(neuron_device_open(1, &other), 0);
	assert_int_equal(neuron_mem_alloc(other, 1024, NULL, &mem), 0);
	f->io[0] = (struct neuron_io){ "x", mem, 0, 1024 };
	bad_io(f, m, "input x is on another device");
	neuron_mem_free(mem);
	neuron_device_close(other);
	fake.nr_devices = 1;
	f->io[0] = (struct neuron_io){ "x", x, 0, 1024 };
	run_ok(f, m);
	neuron_model_unload(m);
}

static void test_program(void **state)
{
	struct fixture *f = *state;
	struct neuron_isa_inst p[8], loaded[6];
	size_t n = good_program(p);
	struct neuron_model *m = load(f, make_program_neff(p, n * 64));
	uint8_t got[100000];

	for (int i = 0; i < 3; i++) {
		assert_int_equal(neuron_mem_set(f->y, 0, 0, sizeof(got)), 0);
		run_ok(f, m);
		assert_int_equal(neuron_mem_read(f->y, 0, got, sizeof(got)), 0);
		assert_memory_equal(got, f->in, sizeof(got));
	}
	/* The triggers in device memory are real ones: 70000 bytes in two pieces. */
	memcpy(loaded, fake_memory(&fake.dev[0], pair_address(&m->rings[0], 0, false), 384), 384);
	assert_int_equal(le16toh(loaded[1].u.dma.engine), 5);
	assert_int_equal(loaded[1].u.dma.queue, 0);
	assert_int_equal(le32toh(loaded[1].u.dma.tx_count), 3);
	assert_int_equal(le32toh(loaded[1].u.dma.rx_count), 3);
	assert_int_equal(le32toh(loaded[3].u.dma.tx_count), 2);
	neuron_model_unload(m);
}

/* @key's program moves x to y, that of SP waits for it. */
static struct neff_bytes engine_neff(const char *key, unsigned int engine)
{
	const struct neuron_isa_inst own[] = { inst_prologue(engine), inst_trigger(7) };
	const struct neuron_isa_inst sp[] = {
		inst_prologue(NEURON_ISA_ENGINE_SP), inst_wait(8, 1), inst_notify(1),
	};
	const struct neff_file files[] = {
		{ "sg00/E.json", "{\"dma\": [{\"id\": 7, \"queue\": \"q\", \"semaphore\": 8, \"desc\": ["
		  "{\"from\": \"x\", \"to\": \"y\", \"from_sizes\": [1000], \"from_steps\": [1],"
		  " \"to_sizes\": [1000], \"to_steps\": [1]}]}]}", 0 },
		{ "sg00/E.bin", own, sizeof(own) },
		{ "sg00/SP.json", "{\"dma\": []}", 0 },
		{ "sg00/SP.bin", sp, sizeof(sp) },
	};
	char def[512];

	snprintf(def, sizeof(def),
		 "{\"name\": \"definition\", \"%s\": \"E.json\", \"%s_instr\": \"E.bin\","
		 " \"sp\": \"SP.json\", \"sp_instr\": \"SP.bin\","
		 " \"dma_queue\": {\"q\": {\"type\": \"data\"}}, \"var\": {"
		 " \"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 1000},"
		 " \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 1000}}}", key, key);
	return make_neff("engine", def, files, 4);
}

/* Each engine fetches its own program. */
static void test_engines(void **state)
{
	static const char *const keys[] = { "pe", "act", "pool", "dve" };
	struct fixture *f = *state;
	uint8_t got[1000];

	for (unsigned int e = 0; e < 4; e++) {
		struct neuron_model *m = load(f, engine_neff(keys[e], e));
		uint64_t code = pair_address(&m->rings[0], 0, false);

		assert_int_equal(m->rings[0].slot, e);
		check_pair(&m->rings[0], 0, FAKE_TPB(2) + NEURON_ISA_FIFO_OFF(e), code, 2 * 64, false);
		assert_int_equal(neuron_mem_set(f->y, 0, 0, sizeof(got)), 0);
		run_ok(f, m);
		assert_int_equal(neuron_mem_read(f->y, 0, got, sizeof(got)), 0);
		assert_memory_equal(got, f->in, sizeof(got));
		neuron_model_unload(m);
	}
}

static void refuse_program(struct fixture *f, const struct neuron_isa_inst *p, size_t n,
			   const char *text)
{
	refused(f, make_program_neff(p, n * 64), -EINVAL, NEURON_ERROR_NEFF_INVALID, text);
}

static void test_bad_programs(void **state)
{
	struct fixture *f = *state;
	struct neuron_isa_inst p[8];
	size_t n = good_program(p);

	p[1] = inst_trigger(99);
	refuse_program(f, p, n, "sg00/SP.bin: instruction 1: no dma entry has id 99");
	p[1] = inst_trigger(8);
	refuse_program(f, p, n, "instruction 3: DMA entry 8 is triggered twice");
	p[3] = inst_trigger(7);
	refuse_program(f, p, n, "instruction 3: DMA entry 7 is triggered twice or out of order");
	good_program(p);
	p[3].u.dma.engine = 0;
	refuse_program(f, p, n, "instruction 3: DMA trigger is not symbolic");
	good_program(p);
	p[2] = inst_wait(250, 1);
	refuse_program(f, p, n, "instruction 2: semaphore 250 is reserved");
	good_program(p);
	p[3] = inst_notify(1);
	refuse_program(f, p, n, "instruction 3: NOTIFY 1 before the last instruction");
	good_program(p);
	p[n - 1] = inst_notify(2);
	refuse_program(f, p, n, "sg00/SP.bin: the last instruction is not NOTIFY 1");
	good_program(p);
	p[n] = inst_wait(9, 0);
	refuse_program(f, p, n + 1, "NOTIFY 1 before the last instruction");
}

/* As many notifications as the queue has room for, and one more. */
static void test_notifications(void **state)
{
	struct fixture *f = *state;
	static struct neuron_isa_inst p[1025];
	struct neuron_model *m;

	p[0] = inst_prologue(NEURON_ISA_ENGINE_SP);
	for (size_t i = 1; i < 1025; i++)
		p[i] = inst_notify(2);
	p[1023] = inst_notify(1);
	m = load(f, make_program_neff(p, 1024 * 64));
	for (int i = 0; i < 3; i++)
		run_ok(f, m);
	neuron_model_unload(m);
	p[1023] = inst_notify(2);
	p[1024] = inst_notify(1);
	refused(f, make_program_neff(p, 1025 * 64), -E2BIG, NEURON_ERROR_LIMIT,
		"sg00/SP.bin: more than 1023 NOTIFY");
}

static struct neuron_isa_inst inst_sem(unsigned int opcode, unsigned int op, uint32_t index,
				       uint32_t value)
{
	struct neuron_isa_inst i = inst_wait(index, value);

	i.opcode = (uint8_t)opcode;
	i.op = (uint8_t)op;
	i.flags = 0;
	return i;
}

/* Semaphores and events that a run leaves do not reach the next run. */
static void test_dirty(void **state)
{
	struct fixture *f = *state;
	const struct {
		struct neuron_isa_inst inst[2];
		bool dirty;
	} cases[] = {
		{ { inst_wait(8, 1), inst_wait(8, 1) }, false },
		{ { inst_wait(8, 2), inst_wait(8, 0) }, false },
		{ { inst_wait(8, 2), inst_sem(NEURON_ISA_OP_EVENT_SET, 0, 3, 0) }, false },
		{ { inst_wait(8, 1), inst_wait(8, 0) }, true },
		{ { inst_wait(8, 2), inst_sem(NEURON_ISA_OP_EVENT_SET, 0, 3, 1) }, true },
		{ { inst_sem(NEURON_ISA_OP_SEM_WAIT, NEURON_ISA_WAIT_GE, 8, 2), inst_wait(8, 1) },
		  true },
	};
	struct fake_core *core = &fake.dev[0].core[2];
	struct neuron_model *other = load(f, make_list_neff());
	struct neuron_isa_inst p[8];

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		unsigned int resets;
		struct neuron_model *m;
		size_t n = 0;

		p[n++] = inst_prologue(NEURON_ISA_ENGINE_SP);
		p[n++] = inst_trigger(7);
		p[n++] = inst_trigger(8);
		p[n++] = cases[c].inst[0];
		p[n++] = cases[c].inst[1];
		p[n++] = inst_notify(1);
		m = load(f, make_program_neff(p, n * 64));
		assert_int_equal(m->dirty, cases[c].dirty);
		resets = core->resets;
		run_ok(f, m);
		assert_int_equal(core->resets, resets);
		run_ok(f, m);
		assert_int_equal(core->resets, resets + cases[c].dirty);
		run_ok(f, other);
		assert_int_equal(core->resets, resets + 2 * cases[c].dirty);
		run_ok(f, other);
		assert_int_equal(core->resets, resets + 2 * cases[c].dirty);
		for (int i = 0; i < 256; i++)
			assert_int_equal(core->sem[i] | core->event[i], 0);
		neuron_model_unload(m);
	}
	neuron_model_unload(other);
}

/* A model on the pair of cores 0 and 1, and its tensors. */
struct on_pair {
	struct neuron_core *core;
	struct neuron_model *m;
	struct neuron_io io[3];
};

static void pair_load(struct fixture *f, struct on_pair *p)
{
	struct neuron_core_opts opts = { .size = sizeof(opts), .lnc = 2 };
	struct neff_bytes n = make_pair_neff("1024");

	p->io[0] = (struct neuron_io){ "x", f->x, 0, 1024 };
	p->io[1] = (struct neuron_io){ "a", f->y, 0, 1024 };
	p->io[2] = (struct neuron_io){ "b", f->y, 1024, 1024 };
	assert_int_equal(neuron_core_open(f->device, 0, &opts, &p->core), 0);
	assert_int_equal(neuron_model_load(p->core, n.data, n.size, NULL, &p->m), 0);
	free(n.data);
}

static void pair_unload(struct on_pair *p)
{
	neuron_model_unload(p->m);
	neuron_core_close(p->core);
}

/* Each transfer of one core counts for the other one; the next run resets the semaphore. */
static void test_remote_semaphores(void **state)
{
	struct fake_core *core = fake.dev[0].core;
	struct on_pair p;
	unsigned int resets;

	pair_load(*state, &p);
	resets = core[1].resets;
	for (unsigned int run = 0; run < 3; run++) {
		assert_int_equal(neuron_model_run(p.m, p.io, 3, 1000, NULL), 0);
		for (int i = 0; i < 256; i++) {
			assert_int_equal(core[0].sem[i], 0);
			assert_int_equal(core[1].sem[i], i == 17 ? 3 : 0);
		}
		assert_int_equal(core[1].resets, resets + run);
	}
	pair_unload(&p);
}

/* A transfer that is never triggered has no place in the ring. */
static void test_untriggered(void **state)
{
	struct fixture *f = *state;
	struct neuron_isa_inst p[4] = {
		inst_prologue(NEURON_ISA_ENGINE_SP), inst_trigger(8), inst_wait(8, 1), inst_notify(1),
	};
	struct neuron_model *m = load(f, make_program_neff(p, sizeof(p)));
	uint8_t got[100000];

	assert_int_equal(m->rings[1].count, 2);
	run_ok(f, m);
	assert_int_equal(neuron_mem_read(f->y, 0, got, sizeof(got)), 0);
	assert_memory_equal(got + 70000, f->in + 70000, 30000);
	assert_int_equal(got[69999], 0);
	neuron_model_unload(m);
}

static void test_timeout(void **state)
{
	struct fixture *f = *state;
	struct neuron_run_result r = { .size = sizeof(r) };
	struct neuron_isa_inst p[3] = {
		inst_prologue(NEURON_ISA_ENGINE_SP), inst_wait(3, 1), inst_notify(1),
	};
	struct neuron_model *hangs = load(f, make_program_neff(p, sizeof(p)));
	struct neuron_model *m = load(f, make_list_neff());
	struct fake_core *core = &fake.dev[0].core[2];
	unsigned int resets = core->resets;

	assert_int_equal(neuron_model_run(hangs, f->io, 2, 20, &r), -ETIMEDOUT);
	assert_int_equal(r.status, NEURON_RUN_TIMEOUT);
	assert_non_null(strstr(r.text, "20 ms"));
	assert_int_equal(core->resets, resets + 1);
	run_ok(f, m);
	assert_int_equal(core->resets, resets + 1);

	/* An engine that is stuck, and a reset that fails at first. */
	fake.stuck = true;
	fake_fail(1, _IOC_NR(NEURON_IOCTL_NC_RESET), EIO);
	assert_int_equal(neuron_model_run(m, f->io, 2, 0, &r), -ETIMEDOUT);
	fake.stuck = false;
	run_ok(f, m);
	assert_int_equal(core->resets, resets + 2);
	/* The queues that the resets made useless are gone. */
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_HOST_NOTIFICATION], 2 * 16384);
	neuron_model_unload(hangs);
	neuron_model_unload(m);
}

static void test_errors(void **state)
{
	struct fixture *f = *state;
	struct neuron_run_result r = { .size = sizeof(r) };
	struct neuron_isa_inst p[8];
	struct neuron_model *m, *bad;

	good_program(p);
	p[1].opcode = NEURON_ISA_OP_MATMUL;	/* the fake driver refuses it on SP */
	p[3].opcode = NEURON_ISA_OP_NOP;
	bad = load(f, make_program_neff(p, 6 * 64));
	m = load(f, make_list_neff());
	assert_int_equal(neuron_model_run(bad, f->io, 2, 1000, &r), -EIO);
	assert_int_equal(r.status, NEURON_RUN_ENGINE_ERROR);
	assert_int_equal(r.notice.code, NEURON_ISA_ERR_ILLEGAL);
	assert_non_null(strstr(r.text, "engine SP stopped at instruction 1: illegal instruction"));
	run_ok(f, m);
	fake.dma_error = NEURON_ISA_ERR_DMA_ACCESS;
	fake.dma_address = 0x1234;
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, &r), -EIO);
	assert_int_equal(r.status, NEURON_RUN_DMA_ERROR);
	assert_int_equal(r.notice.data, 0x1234);
	assert_non_null(strstr(r.text, "out of bounds, address 0x1234"));
	run_ok(f, m);
	neuron_model_unload(bad);
	neuron_model_unload(m);
}

/* ---- addresses --------------------------------------------------------------------- */

static struct neuron_location where(struct fixture *f, uint64_t address, uint32_t flags)
{
	struct neuron_location l = { .size = sizeof(l) };

	assert_int_equal(neuron_address_resolve(f->device, address, flags, &l), 0);
	return l;
}

/* The only allocation of a category. */
static uint64_t address_of(enum neuron_mem_category category)
{
	for (unsigned int i = 0; i < FAKE_CHUNKS; i++)
		if (fake.dev[0].chunk[i].used && fake.dev[0].chunk[i].category == category)
			return fake.dev[0].chunk[i].address;
	fail_msg("no memory of category %d", category);
	return 0;
}

static void test_resolve_model(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m = load(f, make_list_neff());
	uint64_t k = address_of(NEURON_MEM_CONSTANTS), t = address_of(NEURON_MEM_SCRATCHPAD_PRIVATE);
	uint64_t v = address_of(NEURON_MEM_SCRATCHPAD) + 65536;
	uint64_t sb = neuron_device_geometry(f->device)->tpb_base[2] + NEURON_ISA_SBUF_OFF;
	struct neuron_location l = where(f, k + 200, 0);

	assert_string_equal(l.variable, "k");
	assert_string_equal(l.model, "list");
	assert_true(l.offset == 200 && l.variable_bytes == 256 && !l.freed && !l.others);
	assert_true(l.hbm == 1 && l.nc == 2 && l.pid == getpid() && l.address == k);
	assert_int_equal(l.state, NEURON_RANGE_OWNED);
	assert_int_equal(l.category, NEURON_MEM_CONSTANTS);
	assert_string_equal(l.label, "list");
	assert_string_equal(l.text, "k + 200 of model list");
	assert_string_equal(where(f, t, 0).variable, "t");
	assert_string_equal(where(f, v + 4095, 0).variable, "v");
	/* Behind it the scratchpad is nobody's. */
	l = where(f, v + 4096, 0);
	assert_int_equal(l.state, NEURON_RANGE_OWNED);
	assert_string_equal(l.variable, "");
	l = where(f, sb + 9, 0);
	assert_string_equal(l.text, "sb + 9 of model list");
	assert_int_equal(l.hbm, UINT32_MAX);
	assert_string_equal(where(f, neuron_mem_address(m->rings[m->nr_rings - 1].rx), 0).model, "list");
	assert_non_null(strstr(where(f, neuron_mem_address(m->rings[m->nr_rings - 1].rx), 0).variable,
			       "rx ring of q"));
	assert_non_null(strstr(where(f, neuron_mem_address(m->rings[0].tx), 0).variable,
			       "tx ring of instructions"));
	assert_string_equal(where(f, address_of(NEURON_MEM_CODE) + 64, 0).variable, "program of SP");
	assert_int_equal(where(f, k, NEURON_RESOLVE_FREED).freed, 0);
	neuron_model_unload(m);

	/* Afterwards it is known what was there. */
	l = where(f, k + 200, 0);
	assert_true(l.freed && l.state == NEURON_RANGE_FREE && l.freed_ns && l.pid == getpid());
	assert_string_equal(l.variable, "k");
	assert_non_null(strstr(l.text, "free memory, before: k + 200 of model list, freed 0."));
}

/* Only the last ones are remembered, and none of another device's. */
static void test_resolve_forgets(void **state)
{
	struct fixture *f = *state;
	uint64_t first = 0, last = 0;

	for (unsigned int i = 0; i < 70; i++) {
		struct neuron_model *m;

		fake.dev[0].bump[1] = (i + 1) * MIB;
		m = load(f, make_list_neff());
		last = address_of(NEURON_MEM_CONSTANTS);
		first = first ? first : last;
		neuron_model_unload(m);
	}
	assert_string_equal(where(f, first, 0).model, "");
	assert_string_equal(where(f, last, 0).variable, "k");

	fake.dev[0].bump[1] = 100 * MIB;
	f->device->remember = false;
	neuron_model_unload(load(f, make_list_neff()));
	assert_string_equal(where(f, last, 0).model, "");
}

static void test_resolve_memory(void **state)
{
	struct fixture *f = *state;
	struct neuron_mem_opts opts = { .size = sizeof(opts), .hbm = 1, .nc = 3,
					.category = NEURON_MEM_TENSORS };
	struct neuron_location l = { .size = sizeof(l) };
	struct neuron_mem *mem;
	uint64_t at;

	assert_int_equal(neuron_owner_create(f->device, "kv", &opts.owner), 0);
	assert_int_equal(neuron_mem_alloc(f->device, 3 * 4096, &opts, &mem), 0);
	at = neuron_mem_address(mem);
	l = where(f, at + 5000, 0);
	assert_true(!l.freed && l.address == at && l.bytes == 3 * 4096 && l.owner == opts.owner);
	assert_string_equal(l.label, "kv");
	assert_non_null(strstr(l.text, "tensors of process "));
	assert_non_null(strstr(l.text, " (kv) + 5000"));
	neuron_mem_free(mem);
	l = where(f, at + 5000, 0);
	assert_true(l.freed && l.address == at && l.bytes == 3 * 4096 && l.owner == opts.owner &&
		    l.nc == 3 && l.pid == getpid());
	assert_string_equal(l.label, "kv");
	assert_non_null(strstr(l.text, "free memory, before: tensors of process "));
	/* What nobody ever had. */
	l = where(f, at + GIB, 0);
	assert_string_equal(l.text, "free memory");
	assert_true(!l.freed && !l.pid);
	assert_string_equal(where(f, FAKE_WINDOW + 5, 0).text, "host memory");
	assert_string_equal(where(f, 1ull << 41, 0).text, "no device memory");
	assert_int_equal(neuron_address_resolve(f->device, at, 2, &l), -EINVAL);
	l.size = 0;
	assert_int_equal(neuron_address_resolve(f->device, at, 0, &l), -EINVAL);
}

static struct neuron_location pointed(struct fixture *f, const void *pointer)
{
	struct neuron_location l = { .size = sizeof(l) };

	assert_int_equal(neuron_pointer_resolve(f->device, pointer, &l), 0);
	return l;
}

static struct neuron_mem *mapped(struct fixture *f, const struct neuron_mem_opts *opts, char **va)
{
	struct neuron_mem *mem;
	void *p;

	assert_int_equal(neuron_mem_alloc(f->device, 3 * 4096, opts, &mem), 0);
	assert_int_equal(neuron_mem_map(mem, &p), 0);
	*va = p;
	return mem;
}

/* A pointer into memory that is mapped; afterwards, when it was freed. */
static void test_pointer(void **state)
{
	struct fixture *f = *state;
	struct neuron_mem_opts opts = { .size = sizeof(opts), .hbm = 1, .nc = 3,
					.category = NEURON_MEM_TENSORS };
	struct neuron_location l = { .size = sizeof(l) };
	uint64_t bump = fake.dev[0].bump[1], at;
	struct neuron_mem *mem;
	char *va;

	assert_int_equal(neuron_owner_create(f->device, "kv", &opts.owner), 0);
	mem = mapped(f, &opts, &va);
	at = neuron_mem_address(mem);
	l = pointed(f, va + 5000);
	assert_true(!l.freed && l.state == NEURON_RANGE_OWNED && l.address == at &&
		    l.bytes == 3 * 4096 && l.owner == opts.owner && l.hbm == 1);
	assert_non_null(strstr(l.text, "tensors of process "));
	assert_non_null(strstr(l.text, " (kv) + 5000"));
	neuron_mem_free(mem);
	l = pointed(f, va + 5000);
	assert_true(l.freed && l.state == NEURON_RANGE_FREE && l.address == at && l.freed_ns &&
		    l.bytes == 3 * 4096 && l.owner == opts.owner && l.nc == 3 && l.pid == getpid() &&
		    l.category == NEURON_MEM_TENSORS && l.hbm == 1);
	assert_non_null(strstr(l.text, "unmapped memory, before: tensors of process "));
	assert_non_null(strstr(l.text, " (kv) + 5000, freed 0."));
	/* Whoever has the memory now, it was that.  Nothing else gets mapped there. */
	assert_ptr_equal(mmap(va, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			      0), va);
	fake.dev[0].bump[1] = bump;
	opts.owner = 0;
	opts.category = NEURON_MEM_CONSTANTS;
	assert_int_equal(neuron_mem_alloc(f->device, 3 * 4096, &opts, &mem), 0);
	assert_true(neuron_mem_address(mem) == at);
	l = pointed(f, va);
	assert_true(l.freed && l.state == NEURON_RANGE_OWNED && l.category == NEURON_MEM_TENSORS);
	neuron_mem_free(mem);
	munmap(va, 3 * 4096);
	assert_int_equal(neuron_pointer_resolve(f->device, &l, &l), -ENOENT);
	assert_int_equal(neuron_pointer_resolve(f->device, NULL, &l), -ENOENT);
	l.size = 0;
	assert_int_equal(neuron_pointer_resolve(f->device, va, &l), -EINVAL);
}

/* Host memory, of which the driver tells nothing; what the library did not map. */
static void test_pointer_host(void **state)
{
	struct fixture *f = *state;
	struct neuron_mem_opts opts = { .size = sizeof(opts), .flags = NEURON_MEM_F_HOST, .nc = 1,
					.category = NEURON_MEM_HOST_TENSORS };
	struct neuron_model *m = load(f, make_list_neff());
	struct neuron_location l;
	struct neuron_mem *mem;
	const uint8_t *k = NULL;
	char *va;

	mem = mapped(f, &opts, &va);
	l = pointed(f, va + 9);
	assert_true(!l.freed && l.hbm == UINT32_MAX && l.address == neuron_mem_address(mem));
	assert_non_null(strstr(l.text, "tensors of process "));
	neuron_mem_free(mem);
	assert_non_null(strstr(pointed(f, va + 9).text, "unmapped memory, before: tensors of process "));
	for (unsigned int i = 0; i < FAKE_CHUNKS; i++)
		if (fake.dev[0].chunk[i].used && fake.dev[0].chunk[i].category == NEURON_MEM_CONSTANTS)
			k = fake.dev[0].chunk[i].data;
	assert_string_equal(pointed(f, k + 200).text, "k + 200 of model list");
	neuron_model_unload(m);
}

/* The device is gone, as it often is when there is a SIGBUS: what the process knows is enough. */
static void test_pointer_gone(void **state)
{
	struct fixture *f = *state;
	struct neuron_mem_opts opts = { .size = sizeof(opts), .hbm = 1, .nc = 3,
					.category = NEURON_MEM_TENSORS };
	struct neuron_location l;
	struct neuron_mem *mem;
	char *va;

	mem = mapped(f, &opts, &va);
	fake.fail_at = 1;
	fake.fail_nr = 0;
	fake.fail_errno = ENODEV;
	fake.sticky = true;
	l = pointed(f, va + 4096);
	assert_true(!l.freed && l.address == neuron_mem_address(mem) && l.bytes == 3 * 4096 &&
		    l.hbm == 1 && l.nc == 3 && l.pid == getpid() && !*l.label);
	assert_non_null(strstr(l.text, "tensors of process "));
	assert_non_null(strstr(l.text, " + 4096; the device is gone"));
	fake.fail_at = 0;
	fake.sticky = false;
	neuron_mem_free(mem);
}

/* Only the last ones are remembered, in the order in which they were unmapped. */
static void test_pointer_forgets(void **state)
{
	struct fixture *f = *state;
	struct neuron_mem_opts opts = { .size = sizeof(opts), .hbm = 1, .nc = 3,
					.category = NEURON_MEM_TENSORS };
	struct neuron_location l = { .size = sizeof(l) };
	struct neuron_mem *mem[70];
	char *va[70];

	for (unsigned int i = 0; i < 70; i++)
		mem[i] = mapped(f, &opts, &va[i]);
	for (unsigned int i = 0; i < 70; i++)
		neuron_mem_free(mem[i * 11 % 70]);
	for (unsigned int i = 0; i < 70; i++)
		assert_int_equal(neuron_pointer_resolve(f->device, va[i * 11 % 70], &l),
				 i < 6 ? -ENOENT : 0);
	f->device->remember = false;
	neuron_mem_free(mapped(f, &opts, &va[0]));
	assert_int_equal(neuron_pointer_resolve(f->device, va[0], &l), -ENOENT);
	assert_int_equal(neuron_pointer_resolve(f->device, va[69 * 11 % 70], &l), -ENOENT);
}

/* A run that stops says whose the address is: of a tensor of the run, of a variable. */
static void test_fault_named(void **state)
{
	struct fixture *f = *state;
	struct neuron_run_result r = { .size = sizeof(r) };
	struct neuron_model *m = load(f, make_list_neff());

	run_ok(f, m);
	fake.dma_error = NEURON_ISA_ERR_DMA_ACCESS;
	fake.dma_address = neuron_mem_address(f->y) + 1000;
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, &r), -EIO);
	assert_non_null(strstr(r.text, ", y + 1000 of model list"));
	fake.dma_error = NEURON_ISA_ERR_DMA_ACCESS;
	fake.dma_address = address_of(NEURON_MEM_CONSTANTS) + 7;
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, &r), -EIO);
	assert_non_null(strstr(r.text, ", k + 7 of model list"));
	run_ok(f, m);
	neuron_model_unload(m);
}

static void error_beside_end(struct neuron_model *m, const struct neuron_io *io, size_t nr_io,
			     unsigned int ends, unsigned int nc)
{
	struct neuron_run_result r = { .size = sizeof(r) };
	unsigned int resets = fake.dev[0].core[nc].resets;

	error_after.left = ends;
	error_after.nc = nc;
	assert_int_equal(neuron_model_run(m, io, nr_io, 1000, &r), -EIO);
	assert_int_equal(error_after.left, 0);
	assert_int_equal(r.status, NEURON_RUN_ENGINE_ERROR);
	assert_int_equal(r.notice.code, NEURON_ISA_ERR_BOUNDS);
	assert_true(fake.dev[0].core[nc].resets > resets);
	assert_int_equal(neuron_model_run(m, io, nr_io, 1000, &r), 0);
}

/* A run fails if an error comes together with its end. */
static void test_L5_error_beside_end(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m = load(f, make_list_neff());

	error_beside_end(m, f->io, 2, 1, 2);
	neuron_model_unload(m);
}

/* The same if the core that was done first has the error, while the other one still runs. */
static void test_L5_error_of_the_other_core(void **state)
{
	struct on_pair p;

	pair_load(*state, &p);
	for (unsigned int ends = 1; ends <= 2; ends++)
		for (unsigned int nc = 0; nc < 2; nc++)
			error_beside_end(p.m, p.io, 3, ends, nc);
	pair_unload(&p);
}

/* An engine that stops after the end of a run is reset before the next one. */
static void test_late_error(void **state)
{
	struct fixture *f = *state;
	struct neuron_isa_notice n = {
		.engine = NEURON_ISA_ENGINE_PE,
		.kind = NEURON_ISA_NOTICE_ERROR,
		.code = NEURON_ISA_ERR_ILLEGAL,
	};
	struct neuron_model *m = load(f, make_list_neff());
	struct fake_core *core = &fake.dev[0].core[2];
	unsigned int resets = core->resets;

	run_ok(f, m);
	assert_int_equal(core->resets, resets);
	fake_post(&fake.dev[0], 2, NQ_TYPE_ERROR, 0, n);
	run_ok(f, m);
	assert_int_equal(core->resets, resets + 1);
	run_ok(f, m);
	assert_int_equal(core->resets, resets + 1);
	/* The error is not lost when that reset fails. */
	fake_post(&fake.dev[0], 2, NQ_TYPE_ERROR, 0, n);
	fake_fail(1, _IOC_NR(NEURON_IOCTL_NC_RESET), EIO);
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, NULL), -EIO);
	run_ok(f, m);
	assert_int_equal(core->resets, resets + 2);
	neuron_model_unload(m);
}

static void *reset_during_run(void *arg)
{
	struct neuron_device *device = arg;

	fake_wait_start(0);
	return (void *)(intptr_t)neuron_device_reset(device, 1u << 2);
}

/* Who resets a core through its device need not know who has opened it. */
static void test_device_reset(void **state)
{
	struct fixture *f = *state;
	struct neuron_run_result r = { .size = sizeof(r) };
	struct neuron_model *m = load(f, make_list_neff());
	pthread_t thread;
	void *reset;

	run_ok(f, m);
	assert_int_equal(neuron_device_reset(f->device, 1u << 2), 0);
	run_ok(f, m);
	/* One that failed half way has taken the queues away all the same. */
	fake_fail(1, _IOC_NR(NEURON_IOCTL_NC_RESET_READY), EIO);
	assert_int_equal(neuron_device_reset(f->device, 1u << 2), -EIO);
	run_ok(f, m);

	fake.stuck = true;
	fake.starts = 0;
	assert_int_equal(pthread_create(&thread, NULL, reset_during_run, f->device), 0);
	assert_int_equal(neuron_model_run(m, f->io, 2, 60000, &r), -EIO);
	assert_string_equal(r.text, "core 2 was reset during the run");
	assert_int_equal(pthread_join(thread, &reset), 0);
	assert_null(reset);
	fake.stuck = false;
	run_ok(f, m);
	neuron_model_unload(m);
}

/* A reset of the core gives back the rings of a queue that the driver does not release. */
static void test_L23_queue_is_held(void **state)
{
	struct fixture *f = *state;
	struct fake_core *core = &fake.dev[0].core[2];
	uint64_t before = fake_used();

	for (int stuck = 0; stuck < 2; stuck++) {
		struct neuron_model *m = load(f, make_list_neff());
		unsigned int resets = core->resets;

		run_ok(f, m);
		fake_fail(1, _IOC_NR(NEURON_IOCTL_DMA_QUEUE_INIT), EIO);
		fake.sticky = stuck;
		neuron_model_unload(m);
		fake.fail_at = 0;
		assert_int_equal(fake_used(), before);
		assert_int_equal(core->resets, resets + 1);
	}
}

/* Neither the queues nor the reset give the memory back.  Return: what was used before. */
static uint64_t unload_held(struct fixture *f)
{
	uint64_t before = fake_used();
	struct neuron_model *m = load(f, make_list_neff());

	run_ok(f, m);
	fake_fail(1, _IOC_NR(NEURON_IOCTL_DMA_QUEUE_INIT), EIO);
	fake.also_nr = _IOC_NR(NEURON_IOCTL_NC_RESET);
	fake.sticky = true;
	neuron_model_unload(m);
	assert_true(fake_used() > before);
	fake.fail_at = 0;
	return before;
}

/* If the reset fails, too, the rings come back when the core is used again. */
static void test_L23_core_is_held(void **state)
{
	struct fixture *f = *state;
	uint64_t before = unload_held(f);

	neuron_model_unload(load(f, make_list_neff()));
	assert_int_equal(fake_used(), before);
}

static void test_L23_core_is_closed_held(void **state)
{
	struct fixture *f = *state;
	uint64_t before = unload_held(f);

	neuron_core_close(f->core);
	f->core = NULL;
	assert_int_equal(fake_used(), before);
}

static unsigned int handles(void)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < FAKE_CHUNKS; i++)
		nr += fake.dev[0].chunk[i].used;
	return nr;
}

/* Memory of queues, and other memory, that the driver fails to free at first. */
static void test_L23_memory_is_held(void **state)
{
	static const unsigned int nrs[] = {
		_IOC_NR(NEURON_IOCTL_MEM_GET_EXTENDED_INFO), _IOC_NR(NEURON_IOCTL_MEM_FREE),
	};
	struct fixture *f = *state;
	unsigned int before = handles(), mapped = fake.mapped;
	struct neuron_mem *mem;

	for (size_t i = 0; i < 2; i++)
		for (int sticky = 0; sticky < 2; sticky++) {
			struct neuron_core *c;

			assert_int_equal(neuron_core_open(f->device, 0, NULL, &c), 0);
			assert_int_equal(neuron_mem_alloc(f->device, 4096, NULL, &mem), 0);
			assert_int_equal(handles(), before + 3);
			fake_fail(1, nrs[i], EBUSY);
			fake.sticky = sticky;
			neuron_core_close(c);
			assert_true(fake.failed > 0);
			fake.fail_at = 0;
			neuron_mem_free(mem);
			assert_int_equal(handles(), before);
			assert_int_equal(fake.mapped, mapped);
		}
	/* The last chance is when the device is closed, see teardown(). */
	assert_int_equal(neuron_mem_alloc(f->device, 4096, NULL, &mem), 0);
	neuron_core_close(f->core);
	f->core = NULL;
	neuron_mem_free(f->x);
	neuron_mem_free(f->y);
	f->x = f->y = NULL;
	fake_fail(1, nrs[1], EBUSY);
	neuron_mem_free(mem);
	assert_int_equal(handles(), 1);
}

/* A child cannot use its parent's device, and does not crash. */
static void test_fork(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m = load(f, make_list_neff());
	struct neuron_location l = { .size = sizeof(l) };
	struct neuron_error error = { .size = sizeof(error), .text = "of another load" };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &error };
	struct neuron_model *none;
	struct neuron_notice n;
	int status;
	void *va;
	pid_t pid;

	run_ok(f, m);
	assert_int_equal(neuron_mem_map(f->x, &va), 0);
	turn_take(&f->core->turn);	/* by a thread that the child does not have */
	pid = fork();
	if (!pid) {
		unsigned int calls = fake.calls, mapped = fake.mapped;
		bool ok = neuron_model_run(m, f->io, 2, 1000, NULL) == -EACCES &&
			  neuron_nq_read(f->core->notify, &n) == -EACCES &&
			  neuron_nq_wait(f->core->notify, &n, -1) == -EACCES &&
			  neuron_pointer_resolve(f->device, va, &l) == -EACCES &&
			  neuron_mem_map(f->x, &va) == -EACCES &&
			  neuron_mem_write(f->x, 0, f->in, 1) == -EACCES &&
			  neuron_model_load(f->core, "", 1, &opts, &none) == -EACCES &&
			  !strcmp(error.text, "Permission denied") &&
			  neuron_core_reset(f->core) == -EACCES;

		neuron_model_unload(m);
		neuron_mem_free(f->x);
		neuron_mem_free(f->y);
		_exit(ok && fake.calls == calls && fake.mapped == mapped ? 0 : 1);
	}
	turn_give(&f->core->turn);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	run_ok(f, m);
	neuron_model_unload(m);
}

/* Notifications wrap around their queue. */
static void test_many_runs(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *a = load(f, make_list_neff()), *b;
	struct neuron_isa_inst p[8];
	size_t n = good_program(p);

	b = load(f, make_program_neff(p, n * 64));
	for (int i = 0; i < 1100; i++)
		run_ok(f, i & 1 ? a : b);
	/* Model a goes although queues still have its rings. */
	neuron_model_unload(a);
	run_ok(f, b);
	neuron_model_unload(b);
}

static void test_vendor(void **state)
{
	struct fixture *f = *state;
	struct neuron_run_result r = { .size = sizeof(r) };
	struct neuron_model_usage u = { .size = sizeof(u) };
	char code[5000];
	struct neuron_model *m;

	memset(code, 0xab, sizeof(code));
	m = load(f, make_program_neff(code, sizeof(code)));
	assert_non_null(strstr(neuron_model_obstacle(m), "instructions of a real device"));
	assert_int_equal(neuron_model_get_usage(m, &u), 0);
	assert_int_equal(u.code, 8192);
	assert_int_equal(u.rings_io, 2 * 4096);
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, &r), -EOPNOTSUPP);
	assert_non_null(strstr(r.text, "sg00/SP.bin: instructions of a real device"));
	neuron_model_unload(m);
}

static void pretended_run(struct fixture *f, struct neuron_model *m, uint8_t *out)
{
	struct neuron_run_result r = { .size = sizeof(r) };

	memset(out, 0x55, sizeof(f->in));
	assert_int_equal(neuron_mem_write(f->y, 0, out, sizeof(f->in)), 0);
	assert_int_equal(neuron_model_run(m, f->io, 2, 1000, &r), 0);
	assert_int_equal(r.status, NEURON_RUN_DONE);
	assert_int_equal(neuron_mem_read(f->y, 0, out, sizeof(f->in)), 0);
}

/* Only what cannot be run pretends, only if it should, and only on a software device. */
static void test_pretend(void **state)
{
	struct fixture *f = *state;
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = {
		.size = sizeof(opts), .error = &error, .pretend = NEURON_PRETEND_ZERO,
	};
	struct neuron_run_result r = { .size = sizeof(r) };
	static uint8_t out[4][sizeof(f->in)];
	enum neuron_pretend marker = NEURON_PRETEND_COPY;
	struct neff_bytes neff, list = make_list_neff();
	struct neuron_model *m = NULL;
	char code[5000];
	uint64_t began;

	memset(code, 0xab, sizeof(code));
	neff = make_program_neff(code, sizeof(code));
	fake.pretend = NULL;
	assert_int_equal(neuron_device_pretend(f->device, &marker), -ENOENT);
	assert_int_equal(neuron_model_load(f->core, neff.data, neff.size, &opts, &m), -EPERM);
	assert_non_null(strstr(error.text, "not a software device"));
	fake.pretend = "nonsense";
	assert_int_equal(neuron_device_pretend(f->device, &marker), -EINVAL);
	assert_int_equal(marker, NEURON_PRETEND_COPY);
	fake.pretend = "none";
	assert_int_equal(neuron_device_pretend(f->device, &marker), 0);
	assert_int_equal(marker, NEURON_PRETEND_NONE);
	opts.pretend = (enum neuron_pretend)4;
	/* Also of what can be run, which has no need to. */
	assert_int_equal(neuron_model_load(f->core, list.data, list.size, &opts, &m), -EINVAL);
	assert_int_equal(neuron_model_load(f->core, neff.data, neff.size, &opts, &m), -EINVAL);
	for (unsigned int how = NEURON_PRETEND_NONE; how <= NEURON_PRETEND_HASH; how++) {
		opts.pretend = (enum neuron_pretend)how;
		assert_int_equal(neuron_model_load(f->core, neff.data, neff.size, &opts, &m), 0);
		assert_non_null(neuron_model_obstacle(m));
		assert_int_equal(neuron_model_pretends(m), how != NEURON_PRETEND_NONE);
		if (how == NEURON_PRETEND_NONE)
			assert_int_equal(neuron_model_run(m, f->io, 2, 1000, &r), -EOPNOTSUPP);
		else
			pretended_run(f, m, out[how]);
		if (how == NEURON_PRETEND_HASH) {
			/* The same again, and something else for another input. */
			pretended_run(f, m, out[0]);
			assert_memory_equal(out[0], out[how], sizeof(f->in));
			f->in[99999] ^= 1;
			neuron_mem_write(f->x, 0, f->in, sizeof(f->in));
			pretended_run(f, m, out[0]);
			assert_memory_not_equal(out[0], out[how], 32);
			assert_memory_not_equal(out[0] + 99968, out[how] + 99968, 32);
			/* Tensors are checked as ever. */
			f->io[1].bytes--;
			assert_int_equal(neuron_model_run(m, f->io, 2, 1000, &r), -EINVAL);
			f->io[1].bytes++;
			m->pretend_ns = 30000000;
			began = now_ns();
			assert_int_equal(neuron_model_run(m, f->io, 2, 1000, &r), 0);
			assert_true(now_ns() - began >= 30000000);
			assert_int_equal(neuron_model_run(m, f->io, 2, 5, &r), -ETIMEDOUT);
			assert_int_equal(r.status, NEURON_RUN_TIMEOUT);
		}
		neuron_model_unload(m);
	}
	for (size_t i = 0; i < sizeof(f->in); i++)
		assert_int_equal(out[NEURON_PRETEND_ZERO][i], 0);
	f->in[99999] ^= 1;
	assert_memory_equal(out[NEURON_PRETEND_COPY], f->in, sizeof(f->in));
	/* What can be run is run. */
	assert_int_equal(neuron_model_load(f->core, list.data, list.size, &opts, &m), 0);
	assert_false(neuron_model_pretends(m));
	run_ok(f, m);
	neuron_model_unload(m);
	fake.pretend = NULL;
	free(neff.data);
	free(list.data);
}

static struct neff_bytes neff_with(const char *def, const char *sp)
{
	const struct neff_file files[] = { { "sg00/SP.json", sp, 0 } };

	return make_neff("test", def, files, 1);
}

#define DEF(vars) \
	"{\"name\": \"definition\", \"sp\": \"SP.json\"," \
	" \"dma_queue\": {\"q\": {\"type\": \"data\"}}, \"var\": {" vars "}}"
#define COPY(extra, from, to, size) \
	"{\"dma\": [{\"id\": 1, \"queue\": \"q\"" extra ", \"desc\": [{\"from\": \"" from "\"," \
	" \"to\": \"" to "\", \"from_sizes\": [" size "], \"from_steps\": [1]," \
	" \"to_sizes\": [" size "], \"to_steps\": [1]}]}]}"
#define TMP(name, id, size) \
	"\"" name "\": {\"type\": \"tmp-buf\", \"var_id\": " id ", \"size\": " size "}"

static void test_refused(void **state)
{
	struct fixture *f = *state;
	char junk[3000] = "not a NEFF";
	struct neff_bytes copy = { malloc(sizeof(junk)), sizeof(junk) };
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = {
		.size = sizeof(opts), .error = &error, .max_descriptors = 1000,
	};
	struct neff_bytes n;
	struct neuron_model *m;

	memcpy(copy.data, junk, sizeof(junk));
	refused(f, copy, -EINVAL, NEURON_ERROR_NEFF_INVALID, "header");
	assert_int_equal(neuron_model_load(f->core, NULL, 5, NULL, &m), -EINVAL);

	/* Outside the state buffer of this device. */
	refused(f, neff_with(DEF("\"s\": {\"type\": \"state-buffer\", \"var_id\": 0,"
				 " \"size\": 2097152}," TMP("t", "1", "2097152")),
			     COPY("", "t", "s", "1048577")),
		-EINVAL, NEURON_ERROR_NEFF_INVALID, "DMA entry 1: s lies outside the state buffer");
	/* Control characters of names do not reach a terminal, whatever has the name. */
	refused(f, neff_with(DEF("\"s\\u001b[2J\": {\"type\": \"state-buffer\", \"var_id\": 0,"
				 " \"size\": 2097152}," TMP("t", "1", "2097152")),
			     COPY("", "t", "s\\u001b[2J", "1048577")),
		-EINVAL, NEURON_ERROR_NEFF_INVALID, "var.s?[2J: has control characters");
	refused(f, neff_with(DEF("\"x\\n\": {\"type\": \"input\", \"var_id\": 0,"
				 " \"size\": 64}," TMP("t", "1", "64")),
			     COPY("", "t", "t", "64")),
		-EINVAL, NEURON_ERROR_NEFF_INVALID, "var.x?: has control characters");
	refused(f, neff_with(DEF("\"x\\u009b\": {\"type\": \"output\", \"var_id\": 0,"
				 " \"size\": 64}," TMP("t", "1", "64")),
			     COPY("", "t", "t", "64")),
		-EINVAL, NEURON_ERROR_NEFF_INVALID, "has control characters");
	/* A table too small for its addresses. */
	refused(f, neff_with(DEF(TMP("t", "1", "64") ", \"p\": {\"type\": \"pointer\", \"var_id\": 2,"
				 " \"size\": 4, \"referenced_var_id\": 1}"),
			     COPY("", "t", "t", "64")),
		-EINVAL, NEURON_ERROR_NEFF_INVALID, "var.p");
	/* One byte at a time, more than a ring can hold, or than the caller wants. */
	refused(f, neff_with(DEF(TMP("a", "1", "40000000") ", " TMP("b", "2", "40000000")),
			     "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"from\": \"a\","
			     " \"to\": \"b\", \"from_sizes\": [1, 20000000], \"from_steps\": [1, 2],"
			     " \"to_sizes\": [1, 20000000], \"to_steps\": [1, 2]}]}]}"),
		-E2BIG, NEURON_ERROR_LIMIT, "more than 16777200 descriptors");
	n = neff_with(DEF(TMP("a", "1", "2000") ", " TMP("b", "2", "2000")),
		      "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"from\": \"a\","
		      " \"to\": \"b\", \"from_sizes\": [1, 1000], \"from_steps\": [1, 2],"
		      " \"to_sizes\": [1, 1000], \"to_steps\": [1, 2]}]}]}");
	assert_int_equal(neuron_model_load(f->core, n.data, n.size, &opts, &m), -E2BIG);
	assert_int_equal(error.kind, NEURON_ERROR_LIMIT);
	assert_non_null(strstr(error.text, "more descriptors than a ring or a model may have"));
	/* With the one at the end. */
	opts.max_descriptors++;
	assert_int_equal(neuron_model_load(f->core, n.data, n.size, &opts, &m), 0);
	neuron_model_unload(m);
	free(n.data);
}

static void test_too_large(void **state)
{
	struct fixture *f = *state;
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &error };
	struct neuron_mem *other;
	struct neuron_model *m;
	struct neff_bytes n;

	refused(f, neff_with(DEF(TMP("a", "1", "30000000000") ", " TMP("b", "2", "64")),
			     COPY("", "a", "b", "64")),
		-EFBIG, NEURON_ERROR_TOO_LARGE, "does not fit the device: no room for 30000000000 bytes of nonshared_scratchpad in HBM 1: full");
	/* The last page does not fit; those before it are given back. */
	assert_int_equal(neuron_mem_alloc(f->device, 64 << 20,
					  &(struct neuron_mem_opts){ .size = sizeof(struct neuron_mem_opts),
								     .hbm = 1, .nc = 2,
								     .category = NEURON_MEM_TENSORS },
					  &other), 0);
	refused(f, neff_with(DEF(TMP("a", "1", "64") ", \"v\": {\"type\": \"virtual\", \"var_id\": 2,"
				 " \"size\": 64, \"backing_variable_off\": 25500000000}"),
			     COPY("", "a", "v", "64")),
		-EFBIG, NEURON_ERROR_TOO_LARGE, "does not fit the device: no room for a scratchpad of 25500000064 bytes");
	/* With two pages less it would fit beside its rings, but for the other. */
	refused(f, neff_with(DEF(TMP("a", "1", "1040000000") ", \"v\": {\"type\": \"virtual\", \"var_id\": 2,"
				 " \"size\": 64, \"backing_variable_off\": 24600000000}"),
			     COPY("", "a", "v", "64")),
		-ENOMEM, NEURON_ERROR_MEMORY, "does not fit now: no room for ");
	neuron_mem_free(other);
	refused(f, neff_with(DEF(TMP("a", "1", "64") ", \"v\": {\"type\": \"virtual\", \"var_id\": 2,"
				 " \"size\": 64, \"backing_variable_off\": 8000000000000000000}"),
			     COPY("", "a", "v", "64")),
		-EFBIG, NEURON_ERROR_TOO_LARGE, "does not fit the device: no room for a scratchpad");
	assert_int_equal(neuron_core_scratchpad(f->core), 0);

	fake.reason = NEURON_NATIVE_REASON_ALIGNMENT;
	n = make_list_neff();
	assert_int_equal(neuron_model_load(f->core, n.data, n.size, &opts, &m), -ENOMEM);
	assert_int_equal(error.memory.reason, NEURON_MEM_REASON_ALIGNMENT);
	assert_int_equal(error.memory.category, NEURON_MEM_SCRATCHPAD);
	fake.reason = NEURON_NATIVE_REASON_NONE;
	assert_int_equal(neuron_model_load(f->core, n.data, n.size, &opts, &m), 0);
	neuron_model_unload(m);
	free(n.data);
}

/* The model is placed and accounted, and tells why it cannot be run. */
static void test_L10_obstacles(void **state)
{
	struct fixture *f = *state;
	struct neuron_run_result r = { .size = sizeof(r) };
	struct neuron_model_usage u = { .size = sizeof(u) };
	struct neuron_model *m;

	neff_features = 0x40;
	m = load(f, neff_with(DEF(TMP("a", "1", "4096") ", " TMP("b", "2", "4096")),
			      "{\"dma\": ["
			      "{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"op\": \"scatter\","
			      " \"from\": \"a\", \"to\": \"b\", \"to_dtype\": \"float4\","
			      " \"from_sizes\": [64], \"from_steps\": [1]}]},"
			      "{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"from\": \"a\", \"to\": \"b\","
			      " \"from_sizes\": [64], \"from_steps\": [1]}]}]}"));
	neff_features = 0;
	assert_string_equal(neuron_model_obstacle(m), "header: unknown feature_bits 0x40");
	assert_string_equal(neuron_model_obstacles(m, 1),
			    "sg00/SP.json: dma[0].desc[0].op: unknown operation 'scatter'");
	assert_string_equal(neuron_model_obstacles(m, 2),
			    "sg00/SP.json: dma[0].desc[0].to_dtype: unknown type 'float4'");
	assert_string_equal(neuron_model_obstacles(m, 3), "sg00/SP.json: dma: two entries have id 1");
	assert_null(neuron_model_obstacles(m, 4));
	assert_int_equal(neuron_model_get_usage(m, &u), 0);
	assert_int_equal(u.scratchpad, 8192);
	assert_true(u.rings_spill > 0);
	assert_int_equal(neuron_model_run(m, NULL, 0, 1000, &r), -EOPNOTSUPP);
	assert_string_equal(r.text, "header: unknown feature_bits 0x40");
	neuron_model_unload(m);
}

/* No descriptors are made for unknown operations of the second core's part. */
static void test_obstacle_of_other_part(void **state)
{
	struct fixture *f = *state;
	struct neuron_core_opts opts = { .size = sizeof(opts), .lnc = 2 };
	struct neuron_load_stats stats = { .size = sizeof(stats) };
	struct neuron_model_opts mo = { .size = sizeof(mo), .stats = &stats };
	struct neff_bytes n;
	struct neuron_model *m;
	struct neuron_core *c;

	neff_pair_op = "scatter";
	n = make_pair_neff("1024");
	neff_pair_op = "copy";
	assert_int_equal(neuron_core_open(f->device, 0, &opts, &c), 0);
	assert_int_equal(neuron_model_load(c, n.data, n.size, &mo, &m), 0);
	assert_string_equal(neuron_model_obstacle(m),
			    "sg01/SP.json: dma[0].desc[0].op: unknown operation 'scatter'");
	assert_null(neuron_model_obstacles(m, 1));
	assert_int_equal(stats.descriptors, 0);
	assert_int_equal(neuron_model_run(m, NULL, 0, 1000, NULL), -EOPNOTSUPP);
	neuron_model_unload(m);
	neuron_core_close(c);
	free(n.data);
}

/* A file for four cores is refused on one; the plan refuses it, too. */
static void test_L11_cores(void **state)
{
	struct fixture *f = *state;
	struct neuron_model_opts o = { .size = sizeof(o), .cores = 4 };
	struct neuron_plan_opts po = { .size = sizeof(po) };
	struct neuron_plan p = { .size = sizeof(p) };
	struct neuron_geometry g;
	struct neuron_model *m;
	struct neff_bytes n;

	neff_cores = 4;
	n = make_list_neff();
	refused(f, make_list_neff(), -ERANGE, NEURON_ERROR_CORES,
		"header: node 0 is made for 4 cores, it gets 1");
	neff_cores = 1;
	assert_int_equal(neuron_model_load(f->core, n.data, n.size, &o, &m), 0);
	run_ok(f, m);
	neuron_model_unload(m);
	assert_int_equal(neuron_instance_geometry("trn2", &g, NULL), 0);
	assert_int_equal(neuron_model_plan(&g, n.data, n.size, &po, &p), 0);
	assert_int_equal(p.cores, 4);
	free(n.data);
}

/* More elements than a dimension can have: rows, or none if there is no such number of rows. */
static void test_T6_large_shape(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m = load(f, neff_with(
		"{\"name\": \"definition\", \"var\": {"
		" \"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 30000000000},"
		" \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 4294967311}}}", "{}"));
	struct neuron_tensor_info info = { .size = sizeof(info) };

	assert_int_equal(neuron_model_tensor_info(m, 0, &info), 0);
	assert_int_equal(info.ndim, 2);
	assert_true((uint64_t)info.shape[0] * info.shape[1] == 30000000000);
	assert_int_equal(neuron_model_tensor_info(m, 1, &info), 0);
	assert_true(info.bytes == 4294967311);
	assert_int_equal(info.ndim, 0);
	neuron_model_unload(m);
}

/* A prime, then squares of another: so many numbers of rows are tried for all, not for each. */
static void test_many_large_shapes(void **state)
{
	enum { NR = 20, WITH_SHAPE = 15 };
	struct neuron_tensor_info info = { .size = sizeof(info) };
	struct neuron_model *m;
	char def[NR * 80 + 64];
	size_t at = (size_t)sprintf(def, "{\"name\": \"definition\", \"var\": {");

	for (int i = 0; i < NR; i++)
		at += (size_t)sprintf(def + at,
				      "%s\"t%d\": {\"type\": \"input\", \"var_id\": %d, \"size\": %s}",
				      i ? ", " : "", i, i, i ? "1099505336329" : "4294967311");
	strcpy(def + at, "}}");
	m = load(*state, neff_with(def, "{}"));
	for (size_t i = 0; i < NR; i++) {
		assert_int_equal(neuron_model_tensor_info(m, i, &info), 0);
		assert_int_equal(info.ndim, i && i <= WITH_SHAPE ? 2 : 0);
		if (info.ndim)
			assert_int_equal(info.shape[0], 1048573);
	}
	neuron_model_unload(m);
}

static void test_not_executable(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m;

	m = load(f, neff_with(DEF(TMP("a", "1", "64") ", " TMP("b", "2", "64")),
			      "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"op\": \"add\","
			      " \"from_arr\": [{\"from\": \"a\", \"from_dtype\": \"float32\"},"
			      "  {\"from\": \"b\", \"from_dtype\": \"float32\"}],"
			      " \"to\": \"b\", \"to_dtype\": \"float32\","
			      " \"to_sizes\": [64], \"to_steps\": [1]}]}]}"));
	assert_null(neuron_model_obstacle(m));
	neuron_model_unload(m);
	m = load(f, neff_with(DEF(TMP("a", "1", "64") ", " TMP("b", "2", "64")),
			      "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"op\": \"fma\","
			      " \"from\": \"a\", \"to\": \"b\", \"scale\": 2.0, \"scale_dtype\": \"int8\","
			      " \"to_sizes\": [64], \"to_steps\": [1]}]}]}"));
	assert_non_null(strstr(neuron_model_obstacle(m), "DMA entry 1: scale is not a float32"));
	assert_int_equal(neuron_model_run(m, NULL, 0, 100, NULL), -EOPNOTSUPP);
	neuron_model_unload(m);
	m = load(f, neff_with(DEF(TMP("a", "1", "64") ", " TMP("b", "2", "64")),
			      "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"op\": \"min\","
			      " \"from\": \"a\", \"to\": \"b\", \"constant\": -1,"
			      " \"constant_dtype\": \"uint32\","
			      " \"to_sizes\": [64], \"to_steps\": [1]}]}]}"));
	assert_non_null(strstr(neuron_model_obstacle(m), "constant is not a uint32"));
	neuron_model_unload(m);

	m = load(f, neff_with(DEF(TMP("a", "1", "64")),
			      COPY(", \"remote_semaphores\": [3]", "a", "a", "64")));
	assert_non_null(strstr(neuron_model_obstacle(m), "semaphores of another core"));
	neuron_model_unload(m);
}

/* An empty program ends at once. */
static void test_empty(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m = load(f, neff_with(DEF(TMP("a", "1", "64")), "{\"dma\": []}"));

	assert_int_equal(neuron_model_run(m, NULL, 0, 100, NULL), 0);
	assert_int_equal(neuron_model_run(m, NULL, 0, 100, NULL), 0);
	neuron_model_unload(m);
}

#define VIRTUAL(name, id, off, size) \
	"\"" name "\": {\"type\": \"virtual\", \"var_id\": " id ", \"size\": " size \
	", \"backing_variable_off\": " off "}"

static struct neff_bytes worked_a(void)
{
	return neff_with(DEF(VIRTUAL("a1", "1", "0", "536870912") ", "
			     VIRTUAL("a2", "2", "536870912", "1073741824")),
			 COPY("", "a1", "a2", "64"));
}

static struct neff_bytes worked_b(void)
{
	return neff_with(DEF(VIRTUAL("b1", "1", "0", "104857600") ", "
			     VIRTUAL("b2", "2", "104857600", "1610612736")),
			 COPY("", "b1", "b2", "64"));
}

/* @nr variables in a scratch area each. */
static struct neff_bytes areas_neff(unsigned int nr)
{
	char *def = malloc(200 + nr * 160);
	size_t n = (size_t)sprintf(def, "{\"name\": \"definition\", \"sp\": \"SP.json\","
				   " \"dma_queue\": {}, \"var\": {");
	struct neff_bytes neff;

	for (unsigned int i = 0; i < nr; i++)
		n += (size_t)sprintf(def + n, "%s\"v%u\": {\"type\": \"virtual\", \"var_id\": %u,"
				     " \"size\": 64, \"backing_variable_off\": 0,"
				     " \"backing_buf\": \"area%u\"}", i ? ", " : "", i, i, i);
	strcpy(def + n, "}}");
	neff = neff_with(def, "{\"dma\": []}");
	free(def);
	return neff;
}

static void test_areas(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m = load(f, areas_neff(64));

	assert_int_equal(m->usage.shared_scratchpad, 63 * 65536 + 64);
	neuron_model_unload(m);
	refused(f, areas_neff(65), -E2BIG, NEURON_ERROR_LIMIT,
		"sg00/def.json: var.v64: more than 64 scratch areas");
}

/* A virtual variable is in the shared scratchpad if its place there is aligned, else on its own. */
static void test_virtual_alignment(void **state)
{
	static const struct {
		const char *off, *alignment;
		bool own;
	} rows[] = {
		{ "65536", "0", false }, { "65536", "1", false }, { "65536", "4096", false },
		{ "65536", "65536", false }, { "65536", "131072", true },
		{ "1114112", "65536", false }, { "1114112", "131072", true },
		{ "2097152", "1048576", false }, { "2097152", "2097152", true },
	};
	struct fixture *f = *state;
	char def[512];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct neuron_model *m;

		snprintf(def, sizeof(def), DEF("\"v\": {\"type\": \"virtual\", \"var_id\": 1,"
			 " \"size\": 4096, \"backing_variable_off\": %s, \"alignment\": %s}"),
			 rows[i].off, rows[i].alignment);
		m = load(f, neff_with(def, COPY("", "v", "v", "64")));
		if (m->usage.scratchpad != (rows[i].own ? 4096 : 0))
			fail_msg("%s at %s: %llu bytes of its own", rows[i].alignment, rows[i].off,
				 (unsigned long long)m->usage.scratchpad);
		neuron_model_unload(m);
	}
}

/* Two models that share pages of the scratchpad. */
static void test_worked_example(void **state)
{
	struct fixture *f = *state;
	const uint64_t *by = fake.dev[0].by_category;
	struct neuron_model *a, *b;
	uint64_t a1, b1;

	a = load(f, worked_a());
	assert_int_equal(by[NEURON_MEM_SCRATCHPAD], 3 * 512 * MIB);
	assert_int_equal(by[NEURON_MEM_SCRATCHPAD_PRIVATE], GIB);
	b = load(f, worked_b());
	/* 1.6 GB in pages of 512 MB, and 1 + 1.5 GB that fit no page */
	assert_int_equal(by[NEURON_MEM_SCRATCHPAD], 2 * GIB);
	assert_int_equal(by[NEURON_MEM_SCRATCHPAD_PRIVATE], 5 * GIB / 2);
	/* a1 and b1 share a page. */
	a1 = pair_address(&a->rings[1], 0, false);
	b1 = pair_address(&b->rings[1], 0, false);
	assert_int_equal(a1, b1);
	run_ok(f, b);
	/* The scratchpad shrinks to the need of a; a1 does not move. */
	neuron_model_unload(b);
	assert_int_equal(by[NEURON_MEM_SCRATCHPAD], 3 * 512 * MIB);
	assert_int_equal(pair_address(&a->rings[1], 0, false), a1);
	run_ok(f, a);
	neuron_model_unload(a);
	assert_int_equal(by[NEURON_MEM_SCRATCHPAD], 0);
	assert_int_equal(by[NEURON_MEM_SCRATCHPAD_PRIVATE], 0);
}

static void test_worked_example_2g(void **state)
{
	struct fixture *f = *state;
	const uint64_t *by = fake.dev[0].by_category;
	struct neuron_model *a = load(f, worked_a()), *b = load(f, worked_b());

	assert_int_equal(by[NEURON_MEM_SCRATCHPAD], 2 * GIB);
	assert_int_equal(by[NEURON_MEM_SCRATCHPAD_PRIVATE], 0);
	run_ok(f, a);
	run_ok(f, b);
	neuron_model_unload(a);
	neuron_model_unload(b);
}

/* A model with a variable of @bytes at @off, and the counters that it must have. */
static struct neuron_model *load_virtual(struct fixture *f, uint64_t off, uint64_t bytes)
{
	char def[512];

	snprintf(def, sizeof(def), DEF(TMP("a", "1", "64")
				       ", \"v\": {\"type\": \"virtual\", \"var_id\": 2, \"size\": %llu,"
				       " \"backing_variable_off\": %llu}"),
		 (unsigned long long)bytes, (unsigned long long)off);
	return load(f, neff_with(def, COPY("", "a", "v", "1")));
}

static uint64_t private_bytes(const struct neuron_model *m)
{
	struct neuron_model_usage u = { .size = sizeof(u) };

	assert_int_equal(neuron_model_get_usage(m, &u), 0);
	return u.scratchpad - 4096;		/* "a" */
}

static void test_contiguous(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *m[4];
	uint64_t address;

	/* Any variable fits; 64 MiB at a time. */
	m[0] = load_virtual(f, 1, 700 * MIB);
	assert_int_equal(neuron_core_scratchpad(f->core), 704 * MIB);
	assert_int_equal(private_bytes(m[0]), 0);
	address = scratchpad_address(&f->core->scratchpad, 0);
	m[1] = load_virtual(f, 512 * MIB - 1, 1024 * MIB);
	assert_int_equal(neuron_core_scratchpad(f->core), 1536 * MIB);
	assert_int_equal(private_bytes(m[1]), 0);
	assert_int_equal(scratchpad_address(&f->core->scratchpad, 0), address);
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_SCRATCHPAD_CONTIGUOUS], 1536 * MIB);

	/*
	 * The piece cannot grow: pages take the rest; a variable across its end has
	 * memory of its own.
	 */
	fake.no_growing = true;
	m[2] = load_virtual(f, 1536 * MIB, 512 * MIB);
	assert_int_equal(neuron_core_scratchpad(f->core), 2048 * MIB);
	assert_int_equal(private_bytes(m[2]), 0);
	assert_int_equal(scratchpad_address(&f->core->scratchpad, 1535 * MIB), address + 1535 * MIB);
	assert_true(scratchpad_address(&f->core->scratchpad, 1536 * MIB) != address + 1536 * MIB);
	m[3] = load_virtual(f, 1000 * MIB, 600 * MIB);
	assert_int_equal(private_bytes(m[3]), 600 * MIB);
	assert_int_equal(neuron_core_scratchpad(f->core), 2048 * MIB);

	/* A variable in the page stays there, even if the piece can grow again. */
	fake.no_growing = false;
	neuron_model_unload(m[3]);
	m[3] = load_virtual(f, 2048 * MIB, 1);
	assert_int_equal(neuron_core_scratchpad(f->core), 2560 * MIB);
	neuron_model_unload(m[3]);
	assert_int_equal(neuron_core_scratchpad(f->core), 2048 * MIB);
	neuron_model_unload(m[2]);
	assert_int_equal(neuron_core_scratchpad(f->core), 1536 * MIB);
	m[2] = load_virtual(f, 1536 * MIB, 1);
	assert_int_equal(neuron_core_scratchpad(f->core), 1600 * MIB);
	assert_int_equal(scratchpad_address(&f->core->scratchpad, 1536 * MIB), address + 1536 * MIB);

	/* Its end is freed with the model that needed it, and nothing moves. */
	neuron_model_unload(m[2]);
	assert_int_equal(neuron_core_scratchpad(f->core), 1536 * MIB);
	fake_fail(1, _IOC_NR(NEURON_NATIVE_MEM_GROW), EBUSY);
	neuron_model_unload(m[1]);
	assert_int_equal(neuron_core_scratchpad(f->core), 1536 * MIB);
	m[1] = load_virtual(f, 800 * MIB, 1);
	assert_int_equal(private_bytes(m[1]), 0);
	neuron_model_unload(m[1]);
	assert_int_equal(neuron_core_scratchpad(f->core), 704 * MIB);
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_SCRATCHPAD_CONTIGUOUS], 704 * MIB);
	assert_int_equal(neuron_plan_scratchpad(&(struct neuron_plan_opts){ .contiguous = 1 },
						700 * MIB + 1), 704 * MIB);
	assert_int_equal(scratchpad_address(&f->core->scratchpad, 0), address);
	m[1] = load_virtual(f, 800 * MIB, 1);
	assert_int_equal(neuron_core_scratchpad(f->core), 832 * MIB);
	assert_int_equal(scratchpad_address(&f->core->scratchpad, 800 * MIB), address + 800 * MIB);
	neuron_model_unload(m[0]);
	assert_int_equal(neuron_core_scratchpad(f->core), 832 * MIB);
	neuron_model_unload(m[1]);
	assert_int_equal(neuron_core_scratchpad(f->core), 0);
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_SCRATCHPAD_CONTIGUOUS], 0);
}

/* The same two models with the scratchpad in one piece: nothing is private. */
static void test_contiguous_example(void **state)
{
	struct fixture *f = *state;
	struct neuron_model *a = load_virtual(f, 512 * MIB, 1024 * MIB), *b;

	b = load_virtual(f, 100 * MIB, 1536 * MIB);
	assert_int_equal(neuron_core_scratchpad(f->core), 1664 * MIB);
	assert_int_equal(private_bytes(a) + private_bytes(b), 0);
	neuron_model_unload(a);
	assert_int_equal(neuron_core_scratchpad(f->core), 1664 * MIB);
	neuron_model_unload(b);
}

static void test_mem_grow(void **state)
{
	struct fixture *f = *state;
	struct neuron_mem_opts opts = { .size = sizeof(opts), .hbm = 1, .nc = 2,
					.category = NEURON_MEM_SCRATCHPAD_CONTIGUOUS };
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_mem *mem;
	uint8_t byte = 7;
	void *va;

	assert_int_equal(neuron_mem_alloc(f->device, 10000, &opts, &mem), 0);
	assert_int_equal(neuron_mem_grow(mem, 9999, NULL), -EINVAL);
	assert_int_equal(neuron_mem_bytes(mem), 10000);
	assert_int_equal(neuron_mem_grow(mem, 100000, NULL), 0);
	assert_int_equal(neuron_mem_write(mem, 99999, &byte, 1), 0);
	assert_int_equal(neuron_mem_write(mem, 100000, &byte, 1), -EINVAL);
	fake.no_growing = true;
	assert_int_equal(neuron_mem_grow(mem, 200000, NULL), -ENOMEM);
	assert_int_equal(neuron_mem_grow(mem, 200000, &failure), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_FRAGMENTED);
	assert_int_equal(failure.bytes, 200000);
	assert_int_equal(neuron_mem_bytes(mem), 100000);
	fake.no_growing = false;
	assert_int_equal(neuron_mem_map(mem, &va), 0);
	assert_int_equal(neuron_mem_grow(mem, 200000, NULL), -EBUSY);
	neuron_mem_free(mem);
}

static void count_refusals(void *data, const struct neuron_mem_failure *failure,
			   const struct neuron_report_model *model)
{
	assert_int_equal(failure->reason, NEURON_MEM_REASON_FULL);
	assert_null(model);
	++*(unsigned int *)data;
}

static void test_microcode(void **state)
{
	struct fixture *f = *state;
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_core_opts opts = {
		.size = sizeof(opts),
		.microcode = 96 * MIB,
		.failure = &failure,
	};
	uint64_t before = fake_used(), code = fake.dev[0].by_category[NEURON_MEM_CODE];
	struct neuron_core *core;
	unsigned int refused = 0;

	assert_int_equal(neuron_core_open(f->device, 3, &opts, &core), 0);
	assert_int_equal(fake_used(), before + 96 * MIB);
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_CODE], code + 96 * MIB);
	neuron_core_close(core);
	assert_int_equal(fake_used(), before);
	opts.microcode = 25 * GIB;
	assert_int_equal(neuron_core_open(f->device, 3, &opts, &core), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_FULL);
	assert_int_equal(failure.category, NEURON_MEM_CODE);
	assert_int_equal(fake_used(), before);
	/* That of the first core has room, that of the second one has none: told once. */
	opts.lnc = 2;
	opts.refused = count_refusals;
	opts.refused_data = &refused;
	for (unsigned int gib = 13; gib <= 25; gib += 12) {
		opts.microcode = gib * GIB;
		refused = 0;
		assert_int_equal(neuron_core_open(f->device, 2, &opts, &core), -ENOMEM);
		assert_int_equal(refused, 1);
		assert_int_equal(fake_used(), before);
	}
}

/* Of each call of a load; how many there are, and then the model. */
static unsigned int every_load_failure(struct fixture *f, const struct neff_bytes *n,
				       struct neuron_model **m)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &error };
	uint64_t before = fake_used();
	unsigned int i;
	int ret;

	for (i = 1;; i++) {
		*m = NULL;
		memset(&error, 0, sizeof(error));
		error.size = sizeof(error);
		fake_fail(i, 0, i % 2 ? EIO : ENOMEM);
		ret = neuron_model_load(f->core, n->data, n->size, &opts, m);
		if (fake.fail_at)
			break;
		assert_int_equal(ret, i % 2 ? -EIO : -ENOMEM);
		assert_null(*m);
		assert_true(error.kind != NEURON_ERROR_NONE && error.text[0]);
		assert_int_equal(fake_used(), before);
	}
	assert_int_equal(ret, 0);
	fake.fail_at = 0;
	return i;
}

static void test_every_failure(void **state)
{
	struct fixture *f = *state;
	struct neff_bytes n = make_list_neff();
	uint64_t before = fake_used();
	struct neuron_model *m;
	unsigned int i;
	int ret;

	fake.no_bulk = true;
	assert_in_range(every_load_failure(f, &n, &m), 20, 100);
	neuron_model_unload(m);
	fake.no_bulk = false;
	assert_in_range(every_load_failure(f, &n, &m), 10, 19);
	f->io[0].bytes = 1024;
	for (i = 1;; i++) {
		uint8_t want[1024], got[1024];

		f->io[0].offset = i;		/* so that there is something to upload */
		fake_fail(i, 0, ENODEV);
		ret = neuron_model_run(m, f->io, 2, 1000, NULL);
		if (fake.fail_at)
			break;
		assert_int_equal(ret, -ENODEV);
		run_ok(f, m);
		list_expected(f->in + i, want);
		assert_int_equal(neuron_mem_read(f->y, 0, got, 1024), 0);
		assert_memory_equal(got, want, 1024);
	}
	assert_int_equal(i, 6);
	fake.fail_at = 0;
	neuron_model_unload(m);
	assert_int_equal(fake_used(), before);
	free(n.data);
}

/* Numbers of the descriptions, and anything, changed at random: no crash, no leak. */
static void test_damaged(void **state)
{
	struct fixture *f = *state;
	uint64_t before = fake_used();
	unsigned int seed = 7, loaded = 0, ran = 0;
	struct neff_bytes n;
	uint8_t *copy;

	neff_plain = true;
	n = make_list_neff();
	neff_plain = false;
	copy = malloc(n.size);
	assert_non_null(copy);
	for (int i = 0; i < 6000; i++) {
		struct neuron_model *m = NULL;

		memcpy(copy, n.data, n.size);
		for (int k = 0; k < 1 + i % 3; k++) {
			size_t at = 1024 + (size_t)rand_r(&seed) % (n.size - 1024);

			if (i % 4) {
				while (copy[at] < '0' || copy[at] > '9')
					at = at + 1 < n.size ? at + 1 : 1024;
				copy[at] = (uint8_t)('0' + rand_r(&seed) % 10);
			} else {
				copy[at] = (uint8_t)rand_r(&seed);
			}
		}
		if (!neuron_model_load(f->core, copy, n.size, NULL, &m)) {
			loaded++;
			ran += !neuron_model_run(m, f->io, 2, 0, NULL);
			neuron_model_unload(m);
		} else {
			assert_null(m);
		}
		assert_int_equal(fake_used(), before);
	}
	/* Enough of them are plausible. */
	assert_in_range(loaded, 100, 5999);
	assert_in_range(ran, 50, loaded);
	free(copy);
	free(n.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels_order),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_page_rules),
		cmocka_unit_test_setup_teardown(test_core_open, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list_describes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list_usage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list_rings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stats, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rebind, setup, teardown),
		cmocka_unit_test_setup_teardown(test_movable_tensors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_tensors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_program, setup, teardown),
		cmocka_unit_test_setup_teardown(test_engines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_programs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_notifications, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dirty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remote_semaphores, setup, teardown),
		cmocka_unit_test_setup_teardown(test_untriggered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timeout, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resolve_model, setup_low, teardown),
		cmocka_unit_test_setup_teardown(test_resolve_forgets, setup_low, teardown),
		cmocka_unit_test_setup_teardown(test_resolve_memory, setup_low, teardown),
		cmocka_unit_test_setup_teardown(test_pointer, setup_low, teardown),
		cmocka_unit_test_setup_teardown(test_pointer_host, setup_low, teardown),
		cmocka_unit_test_setup_teardown(test_pointer_gone, setup_low, teardown),
		cmocka_unit_test_setup_teardown(test_pointer_forgets, setup_low, teardown),
		cmocka_unit_test_setup_teardown(test_fault_named, setup_low, teardown),
		cmocka_unit_test_setup_teardown(test_L5_error_beside_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L5_error_of_the_other_core, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_error, setup, teardown),
		cmocka_unit_test_setup_teardown(test_device_reset, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L23_queue_is_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L23_core_is_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L23_core_is_closed_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L23_memory_is_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vendor, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pretend, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L10_obstacles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_obstacle_of_other_part, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L11_cores, setup, teardown),
		cmocka_unit_test_setup_teardown(test_T6_large_shape, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_large_shapes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_executable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_areas, setup, teardown),
		cmocka_unit_test_setup_teardown(test_virtual_alignment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_worked_example, setup, teardown),
		cmocka_unit_test_setup_teardown(test_worked_example_2g, setup_big_page, teardown),
		cmocka_unit_test_setup_teardown(test_contiguous, setup_contiguous, teardown),
		cmocka_unit_test_setup_teardown(test_contiguous_example, setup_contiguous, teardown),
		cmocka_unit_test_setup_teardown(test_mem_grow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_microcode, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

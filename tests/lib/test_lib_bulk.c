// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that is allocated and freed many pieces at a time: with few calls what a driver without
 * such calls makes of many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_driver.h"
#include "src/memory/mem.h"
#include "test_neffs.h"

#define MIB	(1ull << 20)
#define MOST	3000

struct want {
	uint64_t bytes;
	struct neuron_mem_opts opts;
};

/* What becomes of some requests. */
struct outcome {
	int ret;
	size_t nr;
	struct neuron_mem_failure failure;
	uint64_t address[MOST], offset[MOST];
	struct fake_chunk chunk[MOST];
	uint64_t ds[FAKE_DS_SIZE / 8];
	char log[1 << 20];
	unsigned int allocs, bulk_allocs, frees, bulk_frees;
};

static unsigned int calls(unsigned long cmd)
{
	return fake.calls_nr[_IOC_NR(cmd)];
}

/* Without its times. */
static void read_log(struct neuron_device *device, uint32_t hbm, char *text, size_t size)
{
	FILE *f = tmpfile();
	char line[256];
	size_t n = strlen(text);

	assert_non_null(f);
	assert_int_equal(neuron_device_write_memory_log(device, hbm, fileno(f)), 0);
	rewind(f);
	while (fgets(line, sizeof(line), f))
		n += (size_t)snprintf(text + n, size - n, "%s", strchr(line, ','));
	fclose(f);
	assert_true(n < size - 1);
}

static struct outcome *request(const struct want *want, size_t n, bool no_bulk)
{
	struct outcome *o = calloc(1, sizeof(*o));
	struct neuron_mem *mem[MOST];
	struct neuron_device *device;

	assert_non_null(o);
	fake.no_bulk = no_bulk;
	memset(fake.calls_nr, 0, sizeof(fake.calls_nr));
	assert_int_equal(neuron_device_open(0, &device), 0);
	assert_int_equal(neuron_device_log_memory(device, 2 * MOST), 0);
	for (size_t i = 0; i < n; i++)
		assert_non_null(mem[i] = mem_new(device, want[i].bytes, &want[i].opts));
	o->ret = mem_obtain(mem, n, &o->nr, &o->failure);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(!mem[i]->handle, i >= o->nr);
		if (!mem[i]->handle)
			continue;
		o->address[i] = neuron_mem_address(mem[i]);
		o->offset[i] = mem[i]->mmap_offset;
		o->chunk[i] = *fake_chunk(&fake.dev[0], neuron_mem_handle(mem[i]));
		o->chunk[i].data = NULL;
	}
	memcpy(o->ds, fake.dev[0].ds, sizeof(o->ds));
	for (size_t i = o->nr; i < n; i++)
		mem_drop(mem[i]);
	mem_free_all(mem, o->nr);
	assert_int_equal(fake_used(), 0);
	for (uint32_t i = 0; i < FAKE_HBMS; i++)
		read_log(device, i, o->log, sizeof(o->log));
	neuron_device_close(device);
	o->allocs = calls(NEURON_NATIVE_MEM_ALLOC);
	o->bulk_allocs = calls(NEURON_NATIVE_MEM_ALLOC_BULK);
	o->frees = calls(NEURON_IOCTL_MEM_FREE);
	o->bulk_frees = calls(NEURON_NATIVE_MEM_FREE_BULK);
	fake.no_bulk = false;
	return o;
}

/* All but the calls that it took: those of many pieces are the caller's to check. */
static struct outcome *same_both_ways(const struct want *want, size_t n)
{
	struct outcome *many = request(want, n, false), *single = request(want, n, true);

	assert_int_equal(many->ret, single->ret);
	assert_int_equal(many->nr, single->nr);
	assert_memory_equal(&many->failure, &single->failure, sizeof(many->failure));
	assert_memory_equal(many->address, single->address, sizeof(many->address));
	assert_memory_equal(many->offset, single->offset, sizeof(many->offset));
	assert_memory_equal(many->chunk, single->chunk, sizeof(many->chunk));
	assert_memory_equal(many->ds, single->ds, sizeof(many->ds));
	assert_string_equal(many->log, single->log);
	assert_true(strlen(many->log) > 100);
	/* One more for the first that was refused. */
	assert_int_equal(single->allocs, single->nr + (single->nr < n));
	assert_int_equal(single->frees, single->nr);
	free(single);
	return many;
}

static void fill(struct want *want, size_t n, uint64_t bytes)
{
	for (size_t i = 0; i < n; i++)
		want[i] = (struct want){ bytes, { .category = NEURON_MEM_CONSTANTS } };
}

static void test_alike(void **state)
{
	static struct want want[MOST];
	struct outcome *o;

	(void)state;
	fill(want, MOST, 4096);
	for (size_t i = 0; i < MOST; i++) {
		want[i].bytes = 1 + i * 7 % 9000;
		want[i].opts.align = i % 3 ? 0 : 4096ull << i % 5;
	}
	o = same_both_ways(want, MOST);
	assert_int_equal(o->ret, 0);
	assert_int_equal(o->nr, MOST);
	for (size_t i = 0; i < MOST; i += 3)
		assert_int_equal(o->address[i] % (4096ull << i % 5), 0);
	assert_int_equal(o->bulk_allocs, 3);
	assert_int_equal(o->allocs, 0);
	assert_int_equal(o->bulk_frees, 3);
	assert_int_equal(o->frees, 0);
	free(o);
}

/* One call is for one memory, core, category, owner and way to place it; and keeps the order. */
static void test_not_alike(void **state)
{
	static const struct neuron_mem_opts kinds[] = {
		{ .category = NEURON_MEM_CONSTANTS },
		{ .category = NEURON_MEM_CODE },
		{ .category = NEURON_MEM_CODE, .hbm = 1 },
		{ .category = NEURON_MEM_CODE, .hbm = 1, .nc = 3 },
		{ .category = NEURON_MEM_CODE, .hbm = 1, .nc = 3, .owner = 1 },
		{ .category = NEURON_MEM_CODE, .flags = NEURON_MEM_F_HIGH },
		{ .category = NEURON_MEM_CODE, .flags = NEURON_MEM_F_MOVABLE },
		{ .category = NEURON_MEM_HOST_CODE, .flags = NEURON_MEM_F_HOST },
		{ .category = NEURON_MEM_CODE },
	};
	enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), EACH = 5 };
	struct want want[KINDS * EACH];
	struct outcome *o;

	(void)state;
	for (size_t i = 0; i < KINDS * EACH; i++)
		want[i] = (struct want){ 8192, kinds[i / EACH] };
	o = same_both_ways(want, KINDS * EACH);
	assert_int_equal(o->ret, 0);
	for (size_t i = 0; i < KINDS * EACH; i++) {
		const struct neuron_mem_opts *k = &kinds[i / EACH];

		assert_true(o->chunk[i].category == k->category && o->chunk[i].hbm == k->hbm &&
			    o->chunk[i].nc == k->nc && o->chunk[i].owner == k->owner);
		assert_int_equal(o->chunk[i].host, !!(k->flags & NEURON_MEM_F_HOST));
		assert_int_equal(!o->address[i], !!(k->flags & NEURON_MEM_F_MOVABLE));
	}
	assert_int_equal(o->bulk_allocs, KINDS);
	assert_int_equal(o->allocs, 0);
	free(o);
	/* One at a time, there is nothing to do together. */
	for (size_t i = 0; i < KINDS; i++)
		want[i].opts = kinds[i];
	o = same_both_ways(want, KINDS);
	assert_int_equal(o->bulk_allocs, 0);
	assert_int_equal(o->allocs, KINDS);
	free(o);
}

/* At an address of its own: no other can be asked for with it. */
static void test_at(void **state)
{
	struct want want[4];
	struct outcome *o;

	(void)state;
	fill(want, 4, 4096);
	for (size_t i = 0; i < 4; i++)
		want[i].opts.flags = NEURON_MEM_F_AT;
	o = same_both_ways(want, 4);
	assert_int_equal(o->bulk_allocs, 0);
	free(o);
}

/* Nothing is lost of those before it, and what is told is about the one that was refused. */
static void test_refused(void **state)
{
	static const size_t at[] = { 0, 1, 7, 1023, 1024, 1025, 2000, 2499 };
	static struct want want[2500];

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct outcome *o;

		fill(want, 2500, 4096);
		want[at[i]].bytes = FAKE_HBM_SIZE + 1 + i;
		want[at[i]].opts.align = 1 << 20;
		o = same_both_ways(want, 2500);
		assert_int_equal(o->ret, -ENOMEM);
		assert_int_equal(o->nr, at[i]);
		assert_int_equal(o->failure.reason, NEURON_MEM_REASON_FULL);
		assert_int_equal(o->failure.bytes, FAKE_HBM_SIZE + 1 + i);
		assert_int_equal(o->failure.align, 1 << 20);
		assert_int_equal(o->failure.free, FAKE_HBM_SIZE - at[i] * 4096);
		/* What the driver has said once it is not asked again. */
		assert_int_equal(o->allocs, 0);
		free(o);
	}
}

/* Of an error other than a refusal nothing is known but that one of them has it. */
static void test_invalid(void **state)
{
	struct want want[20];
	struct outcome *o;

	(void)state;
	fill(want, 20, 4096);
	want[13].opts.align = 3;
	o = same_both_ways(want, 20);
	assert_int_equal(o->ret, -EINVAL);
	assert_int_equal(o->nr, 13);
	assert_int_equal(o->failure.reason, NEURON_MEM_REASON_NONE);
	assert_int_equal(o->allocs, 14);
	free(o);
}

/* A pool that has too much. */
struct spare {
	struct reserve reserve;
	struct neuron_mem *mem;
};

static bool give_spare(struct reserve *reserve)
{
	struct spare *s = (struct spare *)reserve;
	bool some = s->mem != NULL;

	neuron_mem_free(s->mem);
	s->mem = NULL;
	return some;
}

/* Memory that a pool gives back is for the one that was refused, and for those behind it. */
static void test_reclaimed(void **state)
{
	struct spare spare = { .reserve = { .give_back = give_spare } };
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_device *device;
	struct neuron_mem *mem[30];
	size_t nr;

	(void)state;
	assert_int_equal(neuron_device_open(0, &device), 0);
	assert_int_equal(neuron_mem_alloc(device, FAKE_HBM_SIZE - 10 * MIB, &opts, &spare.mem), 0);
	device_add_reserve(device, &spare.reserve);
	for (size_t i = 0; i < 30; i++)
		assert_non_null(mem[i] = mem_new(device, MIB, &opts));
	memset(fake.calls_nr, 0, sizeof(fake.calls_nr));
	assert_int_equal(mem_obtain(mem, 30, &nr, &failure), 0);
	assert_int_equal(nr, 30);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_NONE);
	assert_int_equal(calls(NEURON_NATIVE_MEM_ALLOC), 1);
	/* All of them, the ten before it, the nineteen behind it. */
	assert_int_equal(calls(NEURON_NATIVE_MEM_ALLOC_BULK), 3);
	device_remove_reserve(device, &spare.reserve);
	mem_free_all(mem, 30);
	neuron_device_close(device);
}

/* Room that is gone when it is asked for again: then each by itself. */
static void test_refused_twice(void **state)
{
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };
	struct neuron_device *device;
	struct neuron_mem *mem[10];
	size_t nr;

	(void)state;
	assert_int_equal(neuron_device_open(0, &device), 0);
	for (size_t i = 0; i < 10; i++)
		assert_non_null(mem[i] = mem_new(device, i == 5 ? FAKE_HBM_SIZE : MIB, &opts));
	fake_fail(2, _IOC_NR(NEURON_NATIVE_MEM_ALLOC_BULK), ENOMEM);
	assert_int_equal(mem_obtain(mem, 10, &nr, &failure), -ENOMEM);
	assert_int_equal(fake.failed, 1);
	assert_int_equal(nr, 5);
	assert_true(failure.bytes == FAKE_HBM_SIZE && failure.free == FAKE_HBM_SIZE - 5 * MIB);
	for (size_t i = nr; i < 10; i++)
		mem_drop(mem[i]);
	mem_free_all(mem, nr);
	neuron_device_close(device);
}

static void take_many(struct neuron_device *device, struct neuron_mem **mem, size_t n)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };
	size_t nr;

	for (size_t i = 0; i < n; i++)
		assert_non_null(mem[i] = mem_new(device, 100, &opts));
	assert_int_equal(mem_obtain(mem, n, &nr, NULL), 0);
}

/* A device with @n of them, and one more. */
static struct neuron_device *open_with(struct neuron_mem **mem, size_t n, struct neuron_mem **last)
{
	struct neuron_device *device;

	assert_int_equal(neuron_device_open(0, &device), 0);
	take_many(device, mem, n);
	take_many(device, last, 1);
	return device;
}

/* From now on: of one, and of many. */
static void refuse_frees(int error, bool many)
{
	fake_fail(1, _IOC_NR(NEURON_IOCTL_MEM_FREE), error);
	fake.sticky = true;
	fake.also_nr = many ? _IOC_NR(NEURON_NATIVE_MEM_FREE_BULK) : 0;
	memset(fake.calls_nr, 0, sizeof(fake.calls_nr));
}

/* What the driver refuses to take back is kept, whether of many or of one. */
static void test_free_refused(void **state)
{
	enum { NR = 64 };
	struct neuron_mem *mem[NR], *last;
	struct neuron_device *device;

	(void)state;
	device = open_with(mem, NR, &last);
	refuse_frees(EBUSY, true);
	mem_free_all(mem, NR);
	assert_int_equal(fake_used(), (NR + 1) * 4096);
	assert_int_equal(calls(NEURON_NATIVE_MEM_FREE_BULK), 1);
	assert_int_equal(calls(NEURON_IOCTL_MEM_FREE), NR);
	fake.fail_at = 0;
	neuron_mem_free(last);
	assert_int_equal(fake_used(), 0);
	neuron_device_close(device);
}

/* A device that is gone is not asked for each of them, neither then nor when it is closed. */
static void test_free_gone(void **state)
{
	static struct neuron_mem *mem[MOST];
	struct neuron_device *device;

	(void)state;
	assert_int_equal(neuron_device_open(0, &device), 0);
	take_many(device, mem, MOST);
	refuse_frees(ENODEV, true);
	mem_free_all(mem, MOST);
	assert_int_equal(fake_used(), MOST * 4096);
	assert_int_equal(calls(NEURON_NATIVE_MEM_FREE_BULK), 3);
	/* One that was left, by each call but the first. */
	assert_int_equal(calls(NEURON_IOCTL_MEM_FREE), 2);
	neuron_device_close(device);
	assert_int_equal(calls(NEURON_IOCTL_MEM_FREE), 3);
	fake.fail_at = 0;
	assert_int_equal(fake.left_handles, MOST);
	fake.left_handles = 0;
	fake.left_bytes = 0;
}

/* All of it is kept, and goes as soon as the driver takes memory again. */
static void test_free_gone_for_the_moment(void **state)
{
	struct neuron_mem *mem[64], *last;
	struct neuron_device *device;

	(void)state;
	device = open_with(mem, 64, &last);
	refuse_frees(ENODEV, true);
	mem_free_all(mem, 64);
	fake.fail_at = 0;
	neuron_mem_free(last);
	assert_int_equal(fake_used(), 0);
	neuron_device_close(device);
}

/* One that was refused before is no reason to free others one by one. */
static void test_free_beside_refused(void **state)
{
	struct neuron_mem *mem[64], *last;
	struct neuron_device *device;

	(void)state;
	device = open_with(mem, 64, &last);
	refuse_frees(EBUSY, false);
	neuron_mem_free(last);
	mem_free_all(mem, 64);
	assert_int_equal(fake_used(), 4096);
	assert_int_equal(calls(NEURON_NATIVE_MEM_FREE_BULK), 1);
	assert_int_equal(calls(NEURON_IOCTL_MEM_FREE), 2);
	fake.fail_at = 0;
	neuron_device_close(device);
	assert_int_equal(fake.left_handles, 0);
}

/* Three are refused, then one of them is not any more: the others do not keep it. */
static void free_in_turn(unsigned int which)
{
	struct neuron_mem *mem[10], *more[3];
	struct fake_chunk *busy[3];
	struct neuron_device *device;

	assert_int_equal(neuron_device_open(0, &device), 0);
	take_many(device, mem, 10);
	take_many(device, more, 3);
	for (size_t i = 0; i < 3; i++) {
		busy[i] = fake_chunk(&fake.dev[0], neuron_mem_handle(mem[2 + i]));
		busy[i]->busy = true;
	}
	mem_free_all(mem, 10);
	assert_int_equal(fake_used(), 6 * 4096);
	busy[which]->busy = false;
	for (size_t i = 0; i < 3; i++)
		neuron_mem_free(more[i]);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(busy[i]->used, i != which);
		busy[i]->busy = false;
	}
	neuron_device_close(device);
	assert_int_equal(fake.left_handles, 0);
}

static void test_free_in_turn(void **state)
{
	(void)state;
	for (unsigned int which = 0; which < 3; which++)
		free_in_turn(which);
}

/* ---- models ------------------------------------------------------------------------ */

enum { WEIGHTS = 200 };

/* Weights of which each has memory of its own. */
static struct neff_bytes weights_neff(void)
{
	static const char sp[] = "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"from\": \"w0\","
		" \"to\": \"t\", \"from_sizes\": [64], \"from_steps\": [1], \"to_sizes\": [64],"
		" \"to_steps\": [1]}]}]}";
	const struct neff_file files[] = { { "sg00/SP.json", sp, 0 }, { "sg00/k.bin", sp, 0 } };
	static char def[65536];
	size_t n;

	n = (size_t)snprintf(def, sizeof(def), "{\"name\": \"definition\", \"sp\": \"SP.json\","
			     " \"dma_queue\": {\"q\": {\"type\": \"data\"}}, \"var\": {");
	for (unsigned int i = 0; i < WEIGHTS; i++)
		n += (size_t)snprintf(def + n, sizeof(def) - n, "\"w%u\": {\"type\": \"file\","
				      " \"var_id\": %u, \"size\": %llu, \"file_name\": \"k.bin\"}, ",
				      i, i + 1, MIB + 4096 * i);
	snprintf(def + n, sizeof(def) - n,
		 "\"t\": {\"type\": \"tmp-buf\", \"var_id\": 1000, \"size\": 64}}}");
	return make_neff("weights", def, files, 2);
}

/* What is told of a load. */
struct story {
	int ret;
	struct neuron_error error;
	struct neuron_mem_failure failure;
	struct neuron_model_usage usage;
	unsigned int allocs, frees;
};

static void refused(void *data, const struct neuron_mem_failure *failure,
		    const struct neuron_report_model *model)
{
	struct story *s = data;

	s->failure = *failure;
	s->usage = model->usage;
}

/* Beside an allocation of @other bytes. */
static struct story load(uint64_t other, bool no_bulk)
{
	struct story s = { .error.size = sizeof(s.error), .usage.size = sizeof(s.usage) };
	struct neuron_model_opts opts = {
		.size = sizeof(opts), .error = &s.error, .refused = refused, .refused_data = &s,
		.short_constants = true,
	};
	struct neuron_mem_opts tensors = { .size = sizeof(tensors), .category = NEURON_MEM_TENSORS };
	struct neff_bytes neff = weights_neff();
	struct neuron_model *model = NULL;
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_mem *mem;
	uint64_t before;

	fake.no_bulk = no_bulk;
	assert_int_equal(neuron_device_open(0, &device), 0);
	assert_int_equal(neuron_core_open(device, 0, NULL, &core), 0);
	assert_int_equal(neuron_mem_alloc(device, other, &tensors, &mem), 0);
	before = fake_used();
	memset(fake.calls_nr, 0, sizeof(fake.calls_nr));
	s.ret = neuron_model_load(core, neff.data, neff.size, &opts, &model);
	if (!s.ret)
		assert_int_equal(neuron_model_get_usage(model, &s.usage), 0);
	s.allocs = calls(NEURON_NATIVE_MEM_ALLOC) + calls(NEURON_NATIVE_MEM_ALLOC_BULK);
	neuron_model_unload(model);
	s.frees = calls(NEURON_IOCTL_MEM_FREE) + calls(NEURON_NATIVE_MEM_FREE_BULK);
	assert_int_equal(fake_used(), before);
	neuron_mem_free(mem);
	neuron_core_close(core);
	neuron_device_close(device);
	assert_int_equal(fake.left_handles, 0);
	free(neff.data);
	fake.no_bulk = false;
	return s;
}

static void same_story(const struct story *a, const struct story *b)
{
	assert_int_equal(a->ret, b->ret);
	assert_memory_equal(&a->error, &b->error, sizeof(a->error));
	assert_memory_equal(&a->failure, &b->failure, sizeof(a->failure));
	assert_memory_equal(&a->usage, &b->usage, sizeof(a->usage));
}

/* Words for semaphores, weights, the two sides of a ring of its own, and of one that fetches. */
static void test_load(void **state)
{
	struct story many = load(4096, false), single = load(4096, true);

	(void)state;
	same_story(&many, &single);
	assert_string_equal(many.error.text, "");
	assert_int_equal(many.ret, 0);
	assert_true(many.usage.constants > WEIGHTS * MIB);
	assert_true(single.allocs > WEIGHTS && single.frees > WEIGHTS);
	assert_true(many.allocs <= 6);
	assert_int_equal(many.frees, 1);
}

static void test_load_refused(void **state)
{
	struct story many = load(FAKE_HBM_SIZE - 100 * MIB, false),
		     single = load(FAKE_HBM_SIZE - 100 * MIB, true);

	(void)state;
	same_story(&many, &single);
	assert_int_equal(many.ret, -ENOMEM);
	assert_int_equal(many.error.kind, NEURON_ERROR_MEMORY);
	assert_int_equal(many.failure.category, NEURON_MEM_CONSTANTS);
	/* It has what there was room for. */
	assert_true(many.usage.constants > 70 * MIB && many.usage.constants < 100 * MIB);
	assert_true(many.frees <= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alike),
		cmocka_unit_test(test_not_alike),
		cmocka_unit_test(test_at),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_invalid),
		cmocka_unit_test(test_reclaimed),
		cmocka_unit_test(test_refused_twice),
		cmocka_unit_test(test_free_refused),
		cmocka_unit_test(test_free_gone),
		cmocka_unit_test(test_free_gone_for_the_moment),
		cmocka_unit_test(test_free_beside_refused),
		cmocka_unit_test(test_free_in_turn),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_load_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

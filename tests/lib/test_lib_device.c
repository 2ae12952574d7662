// SPDX-License-Identifier: GPL-2.0-only
/* The device layer: memory, queues, notification queues, and every refusal of the driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>

#include "fake_driver.h"

static int setup(void **state)
{
	struct neuron_device *device;

	if (neuron_device_open(0, &device))
		return -1;
	*state = device;
	return 0;
}

static int teardown(void **state)
{
	fake.fail_at = 0;
	neuron_device_close(*state);
	fake.map_fails = false;
	fake.reason = NEURON_NATIVE_REASON_NONE;
	return fake_used() || fake.mapped || fake.dev[0].opens;
}

static void test_open(void **state)
{
	struct neuron_device *device = NULL;
	struct neuron_device_info info = { .size = sizeof(info) };
	const struct neuron_geometry *g;

	(void)state;
	assert_int_equal(neuron_device_open(7, &device), -ENOENT);
	assert_int_equal(neuron_device_open(0, NULL), -EINVAL);
	assert_int_equal(neuron_device_open_fd(-1, &device), -EINVAL);
	fake.open_fails = true;
	assert_int_equal(neuron_device_open(0, &device), -EACCES);
	fake.open_fails = false;
	/* A driver without the native door: nothing stays open. */
	fake_fail(1, _IOC_NR(NEURON_NATIVE_GET_GEOMETRY), ENOTTY);
	assert_int_equal(neuron_device_open(0, &device), -ENOTTY);
	fake_fail(1, _IOC_NR(NEURON_IOCTL_HOST_DEVICE_ID), ENODEV);
	assert_int_equal(neuron_device_open(0, &device), -ENODEV);
	assert_null(device);
	assert_int_equal(fake.dev[0].opens, 0);

	fake.nr_devices = 2;
	assert_int_equal(neuron_device_open(1, &device), 0);
	assert_int_equal(neuron_device_index(device), 1);
	g = neuron_device_geometry(device);
	assert_int_equal(g->nr_cores, FAKE_CORES);
	assert_int_equal(g->core_hbm[3], 1);
	assert_true(g->tpb_base[2] == FAKE_TPB(2));
	assert_int_equal(neuron_device_get_info(device, &info), 0);
	assert_int_equal(info.compat_max, 11);
	assert_int_equal(info.features, 0x14);
	assert_int_equal(neuron_device_get_info(device, NULL), -EINVAL);
	neuron_device_close(device);
	neuron_device_close(NULL);
	fake.nr_devices = 1;
	assert_int_equal(fake.dev[1].opens, 0);
}

/* One who looks takes no place among those who have the device, and can do nothing else. */
static void test_observe(void **state)
{
	struct neuron_hbm_stats stats = { .size = sizeof(stats) };
	struct neuron_core_stats core = { .size = sizeof(core) };
	struct neuron_mem_opts opts = { .size = sizeof(opts) };
	struct neuron_device *device = NULL;
	struct neuron_range *range;
	struct neuron_mem *mem;
	uint64_t limit;
	size_t n;
	char *json;

	(void)state;
	assert_int_equal(neuron_device_observe(7, &device), -ENOENT);
	assert_int_equal(neuron_device_observe(0, NULL), -EINVAL);
	fake_fail(1, _IOC_NR(NEURON_NATIVE_GET_GEOMETRY), ENOTTY);
	assert_int_equal(neuron_device_observe(0, &device), -ENOTTY);
	assert_null(device);

	fake.nr_devices = 2;
	assert_int_equal(neuron_device_observe(1, &device), 0);
	assert_int_equal(fake.dev[1].opens, 0);
	assert_int_equal(neuron_device_index(device), 1);
	assert_int_equal(neuron_device_geometry(device)->nr_cores, FAKE_CORES);
	assert_int_equal(neuron_hbm_get_stats(device, 0, &stats), 0);
	assert_true(stats.total == FAKE_HBM_SIZE);
	assert_int_equal(neuron_core_get_stats(device, 0, &core), 0);
	assert_int_equal(neuron_limit_get(device, NEURON_LIMIT_CORE, 0, &limit, NULL), 0);
	assert_int_equal(neuron_hbm_get_ranges(device, 0, &range, &n), 0);
	free(range);
	assert_int_equal(neuron_mem_snapshot(device, -1, &json), 0);
	free(json);
	assert_int_equal(neuron_mem_alloc(device, 4096, &opts, &mem), -EACCES);
	assert_int_equal(neuron_device_reset(device, 1), -EACCES);
	neuron_device_close(device);
	fake.nr_devices = 1;
}

static void test_interrupted(void **state)
{
	struct neuron_mem *mem;
	unsigned int before = fake.calls;

	fake_fail(1, 0, EINTR);
	assert_int_equal(neuron_mem_alloc(*state, 100, NULL, &mem), 0);
	assert_int_equal(fake.calls - before, 2);
	/* A driver that is busy is not asked for ever. */
	fake_fail(1, 0, EAGAIN);
	assert_int_equal(neuron_mem_set(mem, 0, 0, 1), -EAGAIN);
	assert_int_equal(fake.calls - before, 3);
	neuron_mem_free(mem);
}

/* What a driver refuses to take back is not all tried again with each that follows. */
static void test_many_refused(void **state)
{
	enum { NR = 64 };
	const unsigned int *calls = &fake.calls_nr[_IOC_NR(NEURON_IOCTL_MEM_FREE)];
	struct neuron_mem *mem[NR];
	unsigned int before;

	for (int i = 0; i < NR; i++)
		assert_int_equal(neuron_mem_alloc(*state, 100, NULL, &mem[i]), 0);
	fake_fail(1, _IOC_NR(NEURON_IOCTL_MEM_FREE), ENODEV);
	fake.sticky = true;
	before = *calls;
	for (int i = 1; i < NR; i++)
		neuron_mem_free(mem[i]);
	assert_true(*calls - before <= 2 * NR);
	/* As soon as it takes one, it is offered the others. */
	fake.fail_at = 0;
	neuron_mem_free(mem[0]);
	assert_false(fake_used());
}

static void test_limits(void **state)
{
	struct neuron_device *device = *state;
	uint64_t bytes = 1, used = 1;

	assert_int_equal(neuron_limit_set(device, NEURON_LIMIT_CORE, 2, 4096), 0);
	assert_int_equal(neuron_limit_set(device, NEURON_LIMIT_DEFAULT, 0, NEURON_LIMIT_NONE), 0);
	assert_int_equal(neuron_limit_get(device, NEURON_LIMIT_CORE, 2, &bytes, &used), 0);
	assert_int_equal(bytes, 4096);
	assert_int_equal(used, 0);
	assert_int_equal(neuron_limit_get(device, NEURON_LIMIT_DEFAULT, 0, &bytes, NULL), 0);
	assert_true(bytes == NEURON_LIMIT_NONE);
	assert_int_equal(neuron_limit_get(device, NEURON_LIMIT_CORE, FAKE_CORES, NULL, NULL),
			 -EINVAL);
	fake_fail(1, _IOC_NR(NEURON_NATIVE_LIMIT), EPERM);
	assert_int_equal(neuron_limit_set(device, NEURON_LIMIT_PROCESS, 0, 1), -EPERM);
}

static void test_refusals(void **state)
{
	struct neuron_device *device = *state;
	struct neuron_mem_refusal list[20];
	uint64_t since = 0;
	size_t n = 20;

	assert_int_equal(neuron_mem_get_refusals(device, &since, list, &n), 0);
	assert_int_equal(n, 0);
	fake.dev[0].failures[0] = (struct neuron_native_failure){
		.size = sizeof(struct neuron_native_failure), .seq = 1, .time = 7, .pid = 8,
		.reason = NEURON_NATIVE_REASON_CAPPED, .hbm = 1, .nc_id = 3,
		.mem_type = NEURON_MEMALLOC_TYPE_CODE_DEVICE, .bytes = 10, .align = 11,
		.total = 12, .free = 13, .largest_free = 14, .largest_aligned = 15, .limit = 16,
		.category[2] = { NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 0, 17 },
		.process[1] = { 18, 0, 19 },
	};
	fake.dev[0].failures[1].seq = 2;
	fake.dev[0].failures[1].flags = NEURON_NATIVE_ALLOC_HOST;
	fake.dev[0].nr_failures = 2;
	n = 1;
	assert_int_equal(neuron_mem_get_refusals(device, &since, list, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(since, 1);
	assert_int_equal(list[0].number, 1);
	assert_int_equal(list[0].time, 7);
	assert_int_equal(list[0].pid, 8);
	assert_false(list[0].host);
	assert_int_equal(list[0].limit, 16);
	assert_int_equal(list[0].failure.reason, NEURON_MEM_REASON_CAPPED);
	assert_int_equal(list[0].failure.category, NEURON_MEM_CODE);
	assert_int_equal(list[0].failure.hbm, 1);
	assert_int_equal(list[0].failure.nc, 3);
	assert_int_equal(list[0].failure.bytes, 10);
	assert_int_equal(list[0].failure.align, 11);
	assert_int_equal(list[0].failure.total, 12);
	assert_int_equal(list[0].failure.free, 13);
	assert_int_equal(list[0].failure.largest_free, 14);
	assert_int_equal(list[0].failure.largest_aligned, 15);
	assert_int_equal(list[0].categories[2].category, NEURON_MEM_TENSORS);
	assert_int_equal(list[0].categories[2].bytes, 17);
	assert_int_equal(list[0].processes[1].pid, 18);
	assert_int_equal(list[0].processes[1].bytes, 19);
	n = 20;
	assert_int_equal(neuron_mem_get_refusals(device, &since, list, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(since, 2);
	assert_true(list[0].host);
	fake_fail(1, _IOC_NR(NEURON_NATIVE_FAILURES), ENOMEM);
	assert_int_equal(neuron_mem_get_refusals(device, &since, list, &n), -ENOMEM);
	fake.dev[0].nr_failures = 0;
}

static void test_memory(void **state)
{
	struct neuron_device *device = *state;
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.hbm = 1,
		.nc = 3,
		.category = NEURON_MEM_TENSORS,
		.align = 1 << 16,
	};
	struct neuron_mem_info info = { .size = sizeof(info) };
	struct neuron_hbm_stats hbm = { .size = sizeof(hbm) };
	struct neuron_core_stats core = { .size = sizeof(core) };
	struct neuron_mem *a, *b;
	char in[300], out[300];
	void *va, *again;

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (char)(i * 3);
	assert_int_equal(neuron_mem_alloc(device, 5000, &opts, &a), 0);
	assert_int_equal(neuron_mem_address(a) % (1 << 16), 0);
	assert_int_equal(neuron_mem_bytes(a), 5000);
	assert_int_equal(neuron_mem_get_info(a, &info), 0);
	assert_int_equal(info.bytes, 8192);
	assert_int_equal(info.host, 0);
	assert_true(info.address == neuron_mem_address(a));
	assert_int_equal(neuron_hbm_get_stats(device, 1, &hbm), 0);
	assert_int_equal(hbm.used, 8192);
	assert_int_equal(hbm.by_category[NEURON_MEM_TENSORS], 8192);
	assert_int_equal(hbm.by_core[3], 8192);
	assert_int_equal(neuron_hbm_get_stats(device, 9, &hbm), -EINVAL);
	assert_int_equal(neuron_core_get_stats(device, 3, &core), 0);
	assert_int_equal(core.device_bytes[NEURON_MEM_TENSORS], 8192);
	assert_int_equal(core.owner, getpid());

	assert_int_equal(neuron_mem_write(a, 4700, in, 300), 0);
	assert_int_equal(neuron_mem_read(a, 4700, out, 300), 0);
	assert_memory_equal(in, out, 300);
	assert_int_equal(neuron_mem_write(a, 4701, in, 300), -EINVAL);
	assert_int_equal(neuron_mem_read(a, UINT64_MAX, out, 2), -EINVAL);
	assert_int_equal(neuron_mem_read(a, 5001, out, 0), -EINVAL);
	assert_int_equal(neuron_mem_read(a, 5000, out, 0), 0);

	opts.flags = NEURON_MEM_F_HOST;
	opts.category = NEURON_MEM_HOST_TENSORS;
	assert_int_equal(neuron_mem_alloc(device, 300, &opts, &b), 0);
	assert_true(neuron_mem_address(b) & FAKE_WINDOW);
	assert_int_equal(neuron_mem_copy(b, 0, a, 4700, 300), 0);
	assert_int_equal(neuron_mem_copy(b, 1, a, 4700, 300), -EINVAL);
	assert_int_equal(neuron_mem_map(b, &va), 0);
	assert_int_equal(neuron_mem_map(b, &again), 0);
	assert_ptr_equal(va, again);
	assert_memory_equal(va, in, 300);
	assert_int_equal(neuron_mem_set(b, 10, 0x1ff, 20), 0);
	assert_int_equal(((uint8_t *)va)[29], 0xff);
	assert_int_equal(((uint8_t *)va)[30], (uint8_t)in[30]);
	fake.map_fails = true;
	assert_int_equal(neuron_mem_map(a, &va), -ENOMEM);
	neuron_mem_free(a);
	neuron_mem_free(b);
	neuron_mem_free(NULL);
}

/* Where results would go that nobody has a place for: nothing is asked, and nothing crashes. */
static void test_no_place(void **state)
{
	struct neuron_device *device = *state;
	struct neuron_mem_refusal refusal;
	struct neuron_event *events;
	struct neuron_range *ranges;
	struct neuron_mem *mem;
	uint64_t since = 0;
	unsigned int calls;
	size_t n = 1;

	assert_int_equal(neuron_mem_alloc(device, 4096, NULL, &mem), 0);
	calls = fake.calls;
	assert_int_equal(neuron_mem_map(mem, NULL), -EINVAL);
	assert_int_equal(fake.mapped, 0);
	assert_int_equal(neuron_hbm_get_ranges(device, 0, NULL, &n), -EINVAL);
	assert_int_equal(neuron_hbm_get_ranges(device, 0, &ranges, NULL), -EINVAL);
	assert_int_equal(neuron_hbm_get_events(device, 0, NULL, &events, &n), -EINVAL);
	assert_int_equal(neuron_hbm_get_events(device, 0, &since, NULL, &n), -EINVAL);
	assert_int_equal(neuron_hbm_get_events(device, 0, &since, &events, NULL), -EINVAL);
	assert_int_equal(neuron_mem_get_refusals(device, NULL, &refusal, &n), -EINVAL);
	assert_int_equal(neuron_mem_get_refusals(device, &since, NULL, &n), -EINVAL);
	assert_int_equal(neuron_mem_get_refusals(device, &since, &refusal, NULL), -EINVAL);
	assert_int_equal(fake.calls, calls);
	assert_true(neuron_plan_scratchpad(NULL, 1) == 512ull << 20);
	neuron_mem_free(mem);
}

/* More of them than the library asks for at once: every second one is a hole. */
static void test_ranges(void **state)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .hbm = 1, .nc = 3,
					.category = NEURON_MEM_TENSORS };
	struct neuron_device *device = *state;
	struct neuron_mem *mem[700];
	struct neuron_range *list;
	uint64_t at = 1ull << 42;
	size_t n;

	for (size_t i = 0; i < 700; i++)
		assert_int_equal(neuron_mem_alloc(device, 4096, &opts, &mem[i]), 0);
	for (size_t i = 0; i < 700; i += 2)
		neuron_mem_free(mem[i]);
	assert_int_equal(neuron_hbm_get_ranges(device, 1, &list, &n), 0);
	assert_int_equal(n, 701);
	for (size_t i = 0; i < n; at += list[i++].bytes) {
		assert_true(list[i].address == at);
		if (list[i].state == NEURON_RANGE_FREE)
			continue;
		assert_int_equal(list[i].state, NEURON_RANGE_OWNED);
		assert_int_equal(list[i].bytes, 4096);
		assert_int_equal(list[i].pid, getpid());
		assert_int_equal(list[i].nc, 3);
		assert_int_equal(list[i].category, NEURON_MEM_TENSORS);
	}
	assert_true(at == (1ull << 42) + FAKE_HBM_SIZE);
	free(list);
	assert_int_equal(neuron_hbm_get_ranges(device, 9, &list, &n), -EINVAL);
	for (size_t i = 1; i < 700; i += 2)
		neuron_mem_free(mem[i]);
}

static void test_owners(void **state)
{
	struct neuron_device *device = *state;
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS,
					.hbm = 1 };
	struct neuron_owners all = { .size = sizeof(all) };
	uint32_t id, other;
	struct neuron_mem *mem;

	assert_int_equal(neuron_owner_create(device, "a\nlabel of twenty-nine bytes", &id), 0);
	assert_int_equal(neuron_owner_create(device, "second", &other), 0);
	assert_int_not_equal(id, other);
	opts.owner = id;
	assert_int_equal(neuron_mem_alloc(device, 8192, &opts, &mem), 0);
	assert_int_equal(neuron_hbm_get_owners(device, 1, 0, &all), 0);
	assert_int_equal(all.used, 8192);
	assert_int_equal(all.count, 3);
	assert_int_equal(all.list[0].bytes, 0);
	assert_int_equal(all.list[1].id, id);
	assert_int_equal(all.list[1].bytes, 8192);
	assert_string_equal(all.list[1].label, "a?label of twen");
	assert_string_equal(all.list[2].label, "second");
	free(all.list);
	neuron_mem_free(mem);
	assert_int_equal(neuron_owner_release(device, id), 0);
	assert_int_equal(neuron_owner_release(device, id), -ENOENT);
	assert_int_equal(neuron_owner_release(device, other), 0);
	assert_int_equal(neuron_owner_create(device, "", &id), -EINVAL);
	assert_int_equal(neuron_owner_create(device, NULL, &id), -EINVAL);
	assert_int_equal(neuron_hbm_get_owners(device, 9, 0, &all), -EINVAL);
	all.size = 3;
	assert_int_equal(neuron_hbm_get_owners(device, 1, 0, &all), -EINVAL);
}

/* Movable memory has an address while it is pinned, and is mapped where it is then. */
static void test_movable(void **state)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts), .category = NEURON_MEM_TENSORS, .flags = NEURON_MEM_F_MOVABLE,
	};
	struct neuron_compaction c = { .size = sizeof(c) };
	struct neuron_mem *mem = NULL, *plain = NULL;
	uint64_t first = 0, second = 0;
	uint8_t byte = 7;
	void *va;

	assert_int_equal(neuron_mem_alloc(*state, 8192, &opts, &mem), 0);
	assert_int_equal(neuron_mem_address(mem), 0);
	assert_int_equal(neuron_mem_unpin(mem), -EINVAL);
	fake_fail(1, _IOC_NR(NEURON_NATIVE_MEM_PIN), ENODEV);
	assert_int_equal(neuron_mem_pin(mem, &first), -ENODEV);
	assert_int_equal(neuron_mem_pin(mem, &first), 0);
	assert_int_equal(neuron_mem_pin(mem, NULL), 0);
	assert_true(first && neuron_mem_address(mem) == first);
	assert_int_equal(neuron_hbm_compact(*state, 0, 0, 0, 0, &c), 0);
	assert_int_equal(c.moves, 0);
	assert_int_equal(neuron_mem_unpin(mem), 0);
	assert_true(neuron_mem_address(mem) == first);
	assert_int_equal(neuron_mem_unpin(mem), 0);
	assert_int_equal(neuron_mem_address(mem), 0);
	assert_int_equal(neuron_mem_unpin(mem), -EINVAL);

	assert_int_equal(neuron_mem_write(mem, 5, &byte, 1), 0);
	assert_int_equal(neuron_hbm_compact(*state, 0, 4096, 4096, 1 << 20, &c), 0);
	assert_true(c.moves == 1 && c.bytes == 8192 && c.largest == FAKE_HBM_SIZE - 8192);
	assert_int_equal(neuron_mem_map(mem, &va), 0);
	assert_int_equal(((uint8_t *)va)[5], 7);
	assert_int_equal(neuron_mem_address(mem), 0);
	assert_int_equal(neuron_mem_pin(mem, &second), 0);
	assert_true(second && second != first);
	neuron_mem_free(mem);

	/* What does not move needs no pin, and no call. */
	assert_int_equal(neuron_mem_alloc(*state, 4096, NULL, &plain), 0);
	fake_fail(1, _IOC_NR(NEURON_NATIVE_MEM_PIN), EIO);
	assert_int_equal(neuron_mem_pin(plain, &first), 0);
	assert_true(first == neuron_mem_address(plain));
	assert_int_equal(neuron_mem_unpin(plain), 0);
	neuron_mem_free(plain);
	fake.fail_at = 0;
	assert_int_equal(neuron_hbm_compact(*state, 9, 0, 0, 0, NULL), -EINVAL);
	c.size = 1;
	assert_int_equal(neuron_hbm_compact(*state, 0, 0, 0, 0, &c), -EINVAL);
}

/* A request that is refused as fragmented is made again, if something was moved. */
static void test_compacts(void **state)
{
	const unsigned int *compacts = &fake.calls_nr[_IOC_NR(NEURON_NATIVE_MEM_COMPACT)];
	struct neuron_mem_opts opts = {
		.size = sizeof(opts), .category = NEURON_MEM_TENSORS, .flags = NEURON_MEM_F_MOVABLE,
	};
	struct neuron_mem_opts aligned = { .size = sizeof(aligned), .category = NEURON_MEM_TENSORS };
	struct neuron_mem *mem = NULL, *more = NULL;
	struct neuron_device *off;
	unsigned int before;

	assert_int_equal(neuron_mem_alloc(*state, 4096, &opts, &mem), 0);
	before = *compacts;
	fake.reason = NEURON_NATIVE_REASON_FRAGMENTED;
	assert_int_equal(neuron_mem_alloc(*state, 4096, NULL, &more), 0);
	assert_int_equal(*compacts, before + 1);
	neuron_mem_free(more);
	aligned.align = 16ull << 30;
	fake.reason = NEURON_NATIVE_REASON_ALIGNMENT;
	assert_int_equal(neuron_mem_alloc(*state, aligned.align, &aligned, &more), 0);
	neuron_mem_free(more);
	before++;

	fake.reason = NEURON_NATIVE_REASON_FULL;
	assert_int_equal(neuron_mem_alloc(*state, 4096, NULL, &more), -ENOMEM);
	neuron_device_set_compact(*state, false);
	fake.reason = NEURON_NATIVE_REASON_ALIGNMENT;
	assert_int_equal(neuron_mem_alloc(*state, 4096, NULL, &more), -ENOMEM);
	assert_int_equal(*compacts, before + 1);
	neuron_device_set_compact(*state, true);
	fake_fail(1, _IOC_NR(NEURON_NATIVE_MEM_COMPACT), EIO);
	assert_int_equal(neuron_mem_alloc(*state, 4096, NULL, &more), -ENOMEM);
	fake.fail_at = 0;
	assert_int_equal(neuron_mem_alloc(*state, 4096, NULL, &more), 0);
	neuron_mem_free(more);
	neuron_mem_free(mem);

	setenv("NEURON_COMPACT", "0", 1);
	assert_int_equal(neuron_device_open(0, &off), 0);
	unsetenv("NEURON_COMPACT");
	before = *compacts;
	fake.reason = NEURON_NATIVE_REASON_FRAGMENTED;
	assert_int_equal(neuron_mem_alloc(off, 4096, NULL, &more), -ENOMEM);
	assert_int_equal(*compacts, before);
	neuron_device_close(off);
}

static void test_memory_failure(void **state)
{
	struct neuron_mem_failure why = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.category = NEURON_MEM_CODE,
		.failure = &why,
	};
	struct neuron_mem *mem = NULL;
	struct {
		struct neuron_mem_opts opts;
		uint64_t later;
	} newer = { .opts = { .size = sizeof(newer), .category = NEURON_MEM_OTHER } };

	assert_int_equal(neuron_mem_alloc(*state, FAKE_HBM_SIZE + 1, &opts, &mem), -ENOMEM);
	assert_int_equal(why.reason, NEURON_MEM_REASON_FULL);
	assert_true(why.bytes == FAKE_HBM_SIZE + 1 && why.free == FAKE_HBM_SIZE);
	assert_int_equal(why.category, NEURON_MEM_CODE);
	fake.reason = NEURON_NATIVE_REASON_FRAGMENTED;
	assert_int_equal(neuron_mem_alloc(*state, 4096, &opts, &mem), -ENOMEM);
	assert_string_equal(neuron_mem_reason_name(why.reason), "fragmented");
	fake.reason = NEURON_NATIVE_REASON_NONE;
	assert_int_equal(neuron_mem_alloc(*state, 0, &opts, &mem), -EINVAL);
	opts.align = 3;
	assert_int_equal(neuron_mem_alloc(*state, 4096, &opts, &mem), -EINVAL);
	opts.size = 3;
	assert_int_equal(neuron_mem_alloc(*state, 4096, &opts, &mem), -EINVAL);
	assert_null(mem);

	/* A program built against a later version that does not use what is new. */
	assert_int_equal(neuron_mem_alloc(*state, 4096, &newer.opts, &mem), 0);
	neuron_mem_free(mem);
	newer.later = 1;
	assert_int_equal(neuron_mem_alloc(*state, 4096, &newer.opts, &mem), -E2BIG);

	assert_string_equal(neuron_mem_category_name(NEURON_MEM_SCRATCHPAD_PRIVATE),
			    "nonshared_scratchpad");
	assert_string_equal(neuron_mem_category_name((enum neuron_mem_category)99), "unknown");
}

/* Memory keeps the device, whatever goes first. */
static void test_order_of_freeing(void **state)
{
	struct neuron_device *device;
	struct neuron_mem *mem;

	(void)state;
	assert_int_equal(neuron_device_open(0, &device), 0);
	assert_int_equal(neuron_mem_alloc(device, 10, NULL, &mem), 0);
	neuron_device_close(device);
	assert_int_equal(neuron_mem_set(mem, 0, 1, 10), 0);
	neuron_mem_free(mem);
}

static void test_slots(void **state)
{
	(void)state;
	assert_int_equal(neuron_ring_slots(0), 32);
	assert_int_equal(neuron_ring_slots(1), 32);
	assert_int_equal(neuron_ring_slots(16), 32);
	assert_int_equal(neuron_ring_slots(17), 48);
	assert_int_equal(neuron_ring_slots(4096), 4112);
	assert_int_equal(neuron_ring_slots(NEURON_RING_MAX_SLOTS - 16), NEURON_RING_MAX_SLOTS);
	assert_int_equal(neuron_ring_slots(NEURON_RING_MAX_SLOTS - 15), 0);
	assert_int_equal(neuron_ring_slots(UINT64_MAX), 0);
}

static void test_descriptor(void **state)
{
	struct neuron_descriptor tx, rx;

	(void)state;
	neuron_descriptor_copy(&tx, &rx, 0x1122334455667788, 0x99aabbccddeeff00, 65536, false);
	/* uapi/FACTS.md 5: length 0 is 65536, ring id 1, first and last */
	assert_int_equal(le32toh(tx.control), 0x0d000000);
	assert_int_equal(le32toh(tx.meta), 0x01080003);
	assert_true(le64toh(tx.address) == 0x99aabbccddeeff00);
	assert_int_equal(le32toh(rx.control), 0x01000000);
	assert_int_equal(rx.meta, 0);
	assert_true(le64toh(rx.address) == 0x1122334455667788);
	neuron_descriptor_copy(&tx, &rx, 8, 4, 4, true);
	assert_int_equal(le32toh(tx.control), 0x0d000004);
	assert_int_equal(le32toh(tx.meta), 0x05080003);
}

static void test_queue(void **state)
{
	struct neuron_device *device = *state;
	struct neuron_queue_setup setup[300];
	struct neuron_queue_state qs = { .size = sizeof(qs) };
	struct neuron_descriptor tx[3], rx[3];
	struct neuron_mem *ring[2], *data;
	unsigned int calls;
	uint8_t bytes[64];

	assert_int_equal(neuron_mem_alloc(device, 32 * 16, NULL, &ring[0]), 0);
	assert_int_equal(neuron_mem_alloc(device, 32 * 16, NULL, &ring[1]), 0);
	assert_int_equal(neuron_mem_alloc(device, 4096, NULL, &data), 0);
	assert_int_equal(neuron_mem_set(data, 0, 5, 32), 0);
	for (int i = 0; i < 3; i++)
		neuron_descriptor_copy(&tx[i], &rx[i], neuron_mem_address(data) + 32 + i * 8,
				       neuron_mem_address(data), 8, false);
	assert_int_equal(neuron_queue_write(device, ring[0], NEURON_RING_TX, 0, tx, 3), 0);
	assert_int_equal(neuron_queue_write(device, ring[1], NEURON_RING_RX, 0, rx, 3), 0);
	assert_int_equal(neuron_queue_write(device, ring[0], NEURON_RING_TX, 30, tx, 3), -EINVAL);
	assert_int_equal(neuron_queue_write(device, ring[0], (enum neuron_ring_side)2, 0, tx, 3),
			 -EINVAL);
	assert_int_equal(neuron_queue_write(device, ring[0], NEURON_RING_TX, 32, tx, 0), 0);

	for (unsigned int i = 0; i < 300; i++)
		setup[i] = (struct neuron_queue_setup){
			.engine = i / 10,
			.queue = i % 10,
			.tx = ring[0],
			.rx = ring[1],
			.tx_slots = 32,
			.rx_slots = 32,
		};
	calls = fake.calls_nr[133];
	assert_int_equal(neuron_queue_init(device, setup, 300), 0);
	assert_int_equal(fake.calls_nr[133] - calls, 2);
	setup[299].tx_slots = 48;
	assert_int_equal(neuron_queue_init(device, setup, 300), -EINVAL);
	assert_int_equal(neuron_queue_start(device, 29, 9, 2, 2), 0);
	assert_int_equal(neuron_queue_start(device, 29, 9, 31, 31), -ENOSPC);
	assert_int_equal(neuron_queue_ack(device, 29, 9, 2), 0);
	assert_int_equal(neuron_queue_get_state(device, 29, 9, &qs), 0);
	assert_int_equal(qs.tx.head, 2);
	assert_int_equal(qs.rx.slots, 32);
	assert_int_equal(neuron_mem_read(data, 0, bytes, 64), 0);
	assert_int_equal(bytes[47], 5);
	assert_int_equal(bytes[48], 0);

	/* Released, the rings are free to go. */
	for (unsigned int i = 0; i < 300; i++)
		assert_int_equal(neuron_queue_release(device, setup[i].engine, setup[i].queue), 0);
	neuron_mem_free(ring[0]);
	neuron_mem_free(ring[1]);
	neuron_mem_free(data);
	assert_int_equal(fake_used(), 0);
}

static void test_notifications(void **state)
{
	struct neuron_device *device = *state;
	struct neuron_nq_opts opts = {
		.size = sizeof(opts),
		.nc = 1,
		.type = NEURON_NQ_NOTIFY,
		.engine = 4,
		.bytes = 256,
	};
	struct neuron_isa_notice n = { .kind = NEURON_ISA_NOTICE_NOTIFY, .data = htole64(7) };
	struct neuron_notice got;
	struct neuron_nq *nq, *other;
	struct neuron_mem *mem;

	assert_int_equal(neuron_nq_open(device, NULL, &nq), -EINVAL);
	opts.bytes = 300;
	assert_int_equal(neuron_nq_open(device, &opts, &nq), -EINVAL);
	opts.bytes = 256;
	opts.nc = 99;
	assert_int_equal(neuron_nq_open(device, &opts, &nq), -EINVAL);
	opts.nc = 1;
	fake.map_fails = true;
	assert_int_equal(neuron_nq_open(device, &opts, &nq), -ENOMEM);
	fake.map_fails = false;
	assert_int_equal(neuron_nq_open(device, &opts, &nq), 0);
	assert_int_equal(neuron_nq_read(nq, &got), -EAGAIN);
	assert_int_equal(neuron_nq_wait(nq, &got, 1), -ETIMEDOUT);

	/* Three times round the ring of 16, in steps that do not divide it. */
	for (uint32_t i = 0; i < 48; i += 3) {
		for (uint32_t k = 0; k < 3; k++) {
			n.id = htole32(i + k);
			fake_post(fake_dev(neuron_device_fd(device)), 1, NQ_TYPE_NOTIFY, 4, n);
		}
		for (uint32_t k = 0; k < 3; k++) {
			assert_int_equal(neuron_nq_wait(nq, &got, -1), 0);
			assert_int_equal(got.id, i + k);
			assert_int_equal(got.data, 7);
		}
		assert_int_equal(neuron_nq_read(nq, &got), -EAGAIN);
	}
	fake_fail(1, _IOC_NR(NEURON_NATIVE_NQ_EVENTFD), EBADF);
	assert_int_equal(neuron_nq_set_eventfd(nq, 12345), -EBADF);
	assert_int_equal(neuron_nq_set_eventfd(nq, -5), 0);
	/* A queue is replaced, closed, reset: its memory is freed once, and nothing else is. */
	assert_int_equal(neuron_nq_open(device, &opts, &other), 0);
	assert_int_equal(neuron_mem_alloc(device, 64, NULL, &mem), 0);
	neuron_nq_close(nq);
	assert_int_equal(neuron_mem_set(mem, 0, 1, 64), 0);
	assert_int_equal(neuron_device_reset(device, 2), 0);
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_HOST_NOTIFICATION], 4096);
	neuron_nq_close(other);
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_HOST_NOTIFICATION], 0);
	neuron_mem_free(mem);
	neuron_nq_close(NULL);
}

static void test_semaphores(void **state)
{
	struct neuron_device *device = *state;
	uint32_t value = 9;

	assert_int_equal(neuron_semaphore_set(device, 2, 200, 5), 0);
	assert_int_equal(neuron_semaphore_add(device, 2, 200, 3), 0);
	assert_int_equal(neuron_semaphore_subtract(device, 2, 200, 1), 0);
	assert_int_equal(neuron_semaphore_read(device, 2, 200, &value), 0);
	assert_int_equal(value, 7);
	assert_int_equal(neuron_semaphore_read(device, 2, 256, &value), -EINVAL);
	assert_int_equal(neuron_semaphore_read(device, 4, 0, &value), -E2BIG);
	assert_int_equal(value, 7);
	assert_int_equal(neuron_event_set(device, 0, 3, 1), 0);
	assert_int_equal(neuron_event_read(device, 0, 3, &value), 0);
	assert_int_equal(value, 1);
}

static void test_reset(void **state)
{
	struct neuron_device *device = *state;
	uint32_t value;

	assert_int_equal(neuron_semaphore_set(device, 1, 0, 5), 0);
	assert_int_equal(neuron_device_reset(device, 0), -EINVAL);
	assert_int_equal(neuron_device_reset(device, 2), 0);
	assert_int_equal(neuron_semaphore_read(device, 1, 0, &value), 0);
	assert_int_equal(value, 0);
	fake_fail(1, _IOC_NR(NEURON_IOCTL_NC_RESET_READY), ENODEV);
	assert_int_equal(neuron_device_reset(device, 2), -ENODEV);
	fake.dev[0].core[1].owned_by_other = true;
	assert_int_equal(neuron_device_reset(device, 2), -EBUSY);
	fake.dev[0].core[1].owned_by_other = false;
}

static void call_at_exit(void)
{
	neuron_sys_open("/dev/neuron0", O_RDWR);
}

static void *call_wrongly(void *arg)
{
	struct neuron_native_mem_pin p = { .size = 1 };

	neuron_sys_ioctl(FAKE_FD, NEURON_NATIVE_MEM_PIN, &p);
	return arg;
}

/* What the driver of tests is told wrongly ends the program, which calls it once more on its way. */
static void test_assertion(void **state)
{
	pid_t pid = fork();
	pthread_t thread;
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		freopen("/dev/null", "w", stderr);
		alarm(20);
		atexit(call_at_exit);
		pthread_create(&thread, NULL, call_wrongly, NULL);
		pthread_join(thread, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_not_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_assertion),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_observe),
		cmocka_unit_test_setup_teardown(test_interrupted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_place, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(test_owners, setup, teardown),
		cmocka_unit_test_setup_teardown(test_movable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compacts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_failure, setup, teardown),
		cmocka_unit_test(test_order_of_freeing),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_descriptor),
		cmocka_unit_test_setup_teardown(test_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(test_notifications, setup, teardown),
		cmocka_unit_test_setup_teardown(test_semaphores, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reset, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

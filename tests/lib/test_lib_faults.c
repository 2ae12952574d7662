// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the library does, with every allocation and every call of the driver failing in
 * turn: an error that says so, or success if it can do without; and nothing stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>
#include <nrt/nrt_sys_trace.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *text);

/* The driver's own memory is never short. */
#define calloc __real_calloc
#define realloc __real_realloc
#include "fake_driver.h"
#undef calloc
#undef realloc
#include "test_neffs.h"

/* The n'th allocation from now fails; 0 none. */
static atomic_uint fail_alloc;
/* The call that fails is one of those that give things back, and nobody hears of it. */
static bool late;

static void giving_back(void)
{
	late = fake.fail_at != 0;
}

static bool alloc_fails(void)
{
	unsigned int left = fail_alloc;

	while (left)
		if (atomic_compare_exchange_weak(&fail_alloc, &left, left - 1))
			return left == 1;
	return false;
}

void *__wrap_malloc(size_t n)
{
	return alloc_fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return alloc_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return alloc_fails() ? NULL : __real_realloc(p, n);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return alloc_fails() ? NULL : __real_reallocarray(p, n, size);
}

char *__wrap_strdup(const char *text)
{
	return alloc_fails() ? NULL : __real_strdup(text);
}

static unsigned int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void no_trace(unsigned int files)
{
	assert_int_equal(fake_used(), 0);
	assert_int_equal(fake.mapped, 0);
	assert_int_equal(fake.dev[0].opens + fake.dev[1].opens, 0);
	assert_false(fake.claimed);
	assert_int_equal(open_files(), files);
}

/*
 * Do it again and again, each time with one more call that works. A scenario returns the
 * first error: @memory when an allocation fails, @io when a call of the driver does;
 * @optional: or 0. It leaves nothing behind.
 */
static void every_failure(int (*scenario)(void), int memory, int io, bool optional)
{
	unsigned int files = open_files(), refused = 0, i;
	int ret;

	fake.nr_devices = 2;
	fake.has_claims = true;
	assert_int_equal(scenario(), 0);
	no_trace(files);
	for (i = 1;; i++) {
		fail_alloc = i;
		ret = scenario();
		if (fail_alloc)
			break;
		if (ret != memory && !(optional && !ret))
			fail_msg("allocation %u: %d, not %d", i, ret, memory);
		refused += !!ret;
		no_trace(files);
	}
	fail_alloc = 0;
	assert_int_equal(ret, 0);
	assert_true(refused > 0);
	for (i = 1;; i++) {
		late = false;
		fake_fail(i, 0, EIO);
		ret = scenario();
		if (fake.fail_at)
			break;
		if (ret != io && !((optional || late) && !ret))
			fail_msg("call %u: %d, not %d", i, ret, io);
		no_trace(files);
	}
	fake.fail_at = 0;
	assert_int_equal(ret, 0);
	assert_true(io == 0 || i > 1);
	no_trace(files);
}

/* ---- devices, cores, memory ------------------------------------------------------------ */

static struct neff_bytes neff;
static struct neuron_device *device;
static struct neuron_core *core;

static int open_core(const struct neuron_core_opts *opts)
{
	int ret = neuron_device_open(0, &device);

	if (ret)
		return ret;
	ret = neuron_core_open(device, 2, opts, &core);
	if (ret)
		neuron_device_close(device);
	return ret;
}

static void close_core(void)
{
	neuron_core_close(core);
	neuron_device_close(device);
}

static int use_core(void)
{
	struct neuron_core_opts opts = {
		.size = sizeof(opts), .microcode = 1 << 20, .contiguous = 1, .lnc = 2,
	};
	struct neuron_core_stats cs = { .size = sizeof(cs) };
	struct neuron_hbm_stats hs = { .size = sizeof(hs) };
	struct neuron_mem_info info = { .size = sizeof(info) };
	struct neuron_mem *mem = NULL;
	uint32_t value;
	void *va;
	int ret = open_core(&opts);

	if (ret)
		return ret;
	ret = neuron_mem_alloc(device, 5000, NULL, &mem);
	if (!ret)
		ret = neuron_mem_get_info(mem, &info);
	if (!ret)
		ret = neuron_mem_grow(mem, 10000, NULL);
	if (!ret)
		ret = neuron_mem_set(mem, 0, 1, 10000);
	if (!ret)
		ret = neuron_mem_copy(mem, 0, mem, 5000, 5000);
	if (!ret)
		ret = neuron_mem_map(mem, &va);
	if (!ret)
		ret = neuron_core_get_stats(device, 1, &cs);
	if (!ret)
		ret = neuron_hbm_get_stats(device, 1, &hs);
	if (!ret)
		ret = neuron_semaphore_set(device, 1, 2, 3);
	if (!ret)
		ret = neuron_semaphore_read(device, 1, 2, &value);
	if (!ret)
		ret = neuron_event_set(device, 1, 2, 1);
	if (!ret)
		ret = neuron_event_read(device, 1, 2, &value);
	giving_back();
	neuron_mem_free(mem);
	close_core();
	return ret;
}

static void test_core(void **state)
{
	(void)state;
	every_failure(use_core, -ENOMEM, -EIO, false);
}

/* ---- models ---------------------------------------------------------------------------- */

static uint32_t lnc;
static const char *outputs[2];

static int use_model(void)
{
	struct neuron_core_opts opts = { .size = sizeof(opts), .lnc = lnc };
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts mo = { .size = sizeof(mo), .error = &error };
	struct neuron_io io[3];
	struct neuron_mem *mem = NULL;
	struct neuron_model *m = NULL;
	int ret = open_core(&opts);

	if (ret)
		return ret;
	ret = neuron_mem_alloc(device, 200000, NULL, &mem);
	if (!ret) {
		ret = neuron_model_load(core, neff.data, neff.size, &mo, &m);
		/* Whatever it was, it is said. */
		assert_int_equal(!ret, error.kind == NEURON_ERROR_NONE);
		assert_int_equal(!ret, !error.text[0]);
	}
	io[0] = (struct neuron_io){ "x", mem, 0, 100000 };
	io[1] = (struct neuron_io){ outputs[0], mem, 100000, 100000 };
	io[2] = (struct neuron_io){ outputs[1], mem, 100000, 100000 };
	if (!ret)
		ret = neuron_model_run(m, io, 3, 10000, NULL);
	giving_back();
	neuron_model_unload(m);
	neuron_mem_free(mem);
	close_core();
	return ret;
}

static void model(struct neff_bytes n, uint32_t cores, const char *a, const char *b)
{
	neff = n;
	lnc = cores;
	outputs[0] = a;
	outputs[1] = b;
	every_failure(use_model, -ENOMEM, -EIO, false);
	free(neff.data);
}

static void test_list_model(void **state)
{
	(void)state;
	model(make_list_neff(), 1, "y", "y");
}

static void test_program_model(void **state)
{
	struct neuron_isa_inst p[8];

	(void)state;
	model(make_program_neff(p, good_program(p) * 64), 1, "y", "y");
}

static void test_pair_model(void **state)
{
	(void)state;
	model(make_pair_neff("1024"), 2, "a", "b");
}

static int plan(void)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_plan_opts o = { .size = sizeof(o), .lnc = 2, .error = &error };
	struct neuron_plan p = { .size = sizeof(p) };
	struct neuron_report_core c = { .nc = 0 };
	struct neuron_geometry g;
	uint64_t sum = 0;
	int ret;

	assert_int_equal(neuron_instance_geometry("trn2", &g, NULL), 0);
	ret = neuron_model_plan(&g, neff.data, neff.size, &o, &p);
	if (ret)
		return ret;
	neuron_plan_sum(&p, 1, &o, 1, &c);
	for (size_t i = 0; i < NEURON_MAX_CATEGORIES; i++)
		sum += c.device_bytes[i];
	/* Microcode on both cores, a scratchpad of one page, and what the parts take. */
	assert_int_equal(sum, 2 * 4096 + (512ull << 20) + p.parts[0].code + p.parts[0].runtime +
			 p.parts[0].rings_io + p.parts[0].rings_spill + p.parts[0].rings_runtime +
			 p.parts[1].code + p.parts[1].runtime + p.parts[1].rings_io +
			 p.parts[1].rings_spill + p.parts[1].rings_runtime + p.parts[1].scratchpad);
	return 0;
}

static void test_plan(void **state)
{
	(void)state;
	neff = make_pair_neff("1024");
	every_failure(plan, -ENOMEM, 0, false);
	free(neff.data);
}

/* ---- networks -------------------------------------------------------------------------- */

static int invert(void *context, const struct neuron_host_tensor *in, size_t nr_in,
		  const struct neuron_host_tensor *out, size_t nr_out)
{
	(void)context;
	(void)nr_in;
	(void)nr_out;
	for (size_t i = 0; i < in[0].bytes; i++)
		((uint8_t *)out[0].data)[i] = (uint8_t)~((uint8_t *)in[0].data)[i];
	return 0;
}

static int use_net(void)
{
	static const struct neuron_host_op ops[] = { { "invert", invert, NULL } };
	struct neuron_net_opts o = { .size = sizeof(o), .ops = ops, .nr_ops = 1 };
	struct neuron_core *cores[2] = { NULL };
	struct neuron_pool *pool = NULL;
	struct neuron_net *net = NULL;
	struct neuron_mem *mem = NULL;
	struct neuron_io io[2];
	int ret = neuron_device_open(0, &device);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < 2 && !ret; i++)
		ret = neuron_core_open(device, i, NULL, &cores[i]);
	if (!ret)
		ret = neuron_pool_open(cores, 2, &pool);
	if (!ret)
		ret = neuron_mem_alloc(device, 4096, NULL, &mem);
	if (!ret)
		ret = neuron_net_load(pool, neff.data, neff.size, &o, &net);
	io[0] = (struct neuron_io){ "x", mem, 0, 1024 };
	io[1] = (struct neuron_io){ "y", mem, 2048, 1024 };
	for (int i = 0; i < 3 && !ret; i++)
		ret = neuron_net_infer(net, io, 2, NULL);
	giving_back();
	neuron_net_unload(net);
	neuron_mem_free(mem);
	if (pool)
		neuron_pool_close(pool);
	for (uint32_t i = 0; i < 2; i++)
		neuron_core_close(cores[i]);
	neuron_device_close(device);
	return ret;
}

static void test_net(void **state)
{
	(void)state;
	neff = net_neff();
	every_failure(use_net, -ENOMEM, -EIO, false);
	free(neff.data);
	/* One that is no network. */
	neff = make_list_neff();
	every_failure(use_net, -ENOMEM, -EIO, false);
	free(neff.data);
}

/* ---- the runtime interface ------------------------------------------------------------- */

static NRT_STATUS use_tensors(nrt_tensor_t **t)
{
	static uint8_t bytes[1024];
	NRT_STATUS status = NRT_SUCCESS;

	if (!status)
		status = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 1024, "x", &t[0]);
	if (!status)
		status = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, 1024, "y", &t[1]);
	if (!status)
		status = nrt_tensor_allocate_empty("z", &t[2]);
	if (!status)
		status = nrt_tensor_attach_buffer(t[2], bytes, sizeof(bytes));
	if (!status)
		status = nrt_tensor_allocate_slice(t[0], 512, 512, "s", &t[3]);
	if (!status)
		status = nrt_tensor_write(t[0], bytes, 0, sizeof(bytes));
	if (!status)
		status = nrt_tensor_copy(t[0], 0, t[1], 0, 1024);
	if (!status)
		status = nrt_tensor_memset(t[3], 0, 7, 512);
	return status;
}

static NRT_STATUS use_runs(nrt_tensor_t *const *t)
{
	nrt_tensor_set_t *in = NULL, *out = NULL;
	nrt_tensor_info_array_t *info = NULL;
	/* It is written at the latest when the runtime is closed. */
	static NRT_STATUS queued;
	nrt_model_t *m = NULL;
	NRT_STATUS status;
	int fd = eventfd(0, EFD_CLOEXEC);
	uint64_t n;
	nrta_seq_t seq;

	status = nrt_load(neff.data, neff.size, 0, -1, &m);
	if (!status)
		status = nrt_get_model_tensor_info(m, &info);
	if (!status)
		status = nrt_allocate_tensor_set(&in);
	if (!status)
		status = nrt_allocate_tensor_set(&out);
	if (!status)
		status = nrt_add_tensor_to_tensor_set(in, "x", t[2]);
	if (!status)
		status = nrt_add_tensor_to_tensor_set(out, "y", t[1]);
	if (!status)
		status = nrt_execute(m, in, out);
	if (!status)
		status = nrta_execute_schedule(m, in, out, 0, &queued, &seq);
	if (!status) {
		status = nrta_event_register_seq_id_completion(seq, fd);
		if (!status && read(fd, &n, sizeof(n)) != sizeof(n))
			status = NRT_FAILURE;
	}
	if (!status)
		status = queued;
	close(fd);
	if (info)
		nrt_free_model_tensor_info(info);
	nrt_destroy_tensor_set(&in);
	nrt_destroy_tensor_set(&out);
	if (m)
		nrt_unload(m);
	return status;
}

static NRT_STATUS use_trace(void)
{
	nrt_sys_trace_fetch_options_t *o = NULL;
	nrt_sys_trace_config_t *config = NULL;
	const char **types = NULL, **enabled = NULL;
	char *text = NULL;
	size_t n = 0, on = 0, size;
	NRT_STATUS status = nrt_sys_trace_config_allocate(&config);

	if (!status)
		status = nrt_sys_trace_get_event_types(&types, &n);
	if (!status)
		status = nrt_sys_trace_config_get_enabled_event_types(config, &enabled, &on);
	if (!status)
		status = nrt_sys_trace_start(config);
	if (!status)
		status = nrt_sys_trace_fetch_options_allocate(&o);
	if (!status) {
		nrt_sys_trace_fetch_options_set_defaults(o);
		status = nrt_sys_trace_fetch_events(&text, &size, o);
	}
	nrt_sys_trace_buffer_free(text);
	nrt_sys_trace_fetch_options_free(o);
	nrt_sys_trace_free_event_types(types, n);
	nrt_sys_trace_free_event_types(enabled, on);
	nrt_sys_trace_config_free(config);
	nrt_sys_trace_stop();
	return status;
}

static int use_runtime(void)
{
	nrt_tensor_t *t[4] = { NULL };
	NRT_STATUS status = nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");

	/* Which call of the driver it was does not matter there. */
	if (status)
		return (int)(status == NRT_FAILURE ? NRT_HW_ERROR : status);
	status = use_tensors(t);
	if (!status)
		status = use_runs(t);
	if (!status)
		status = use_trace();
	for (size_t i = 0; i < 4; i++)
		nrt_tensor_free(&t[i]);
	nrt_close();
	return (int)status;
}

static void test_runtime(void **state)
{
	(void)state;
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "600", 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	neff = make_list_neff();
	/* The log of allocations may be short of entries. */
	every_failure(use_runtime, NRT_RESOURCE, NRT_HW_ERROR, true);
	free(neff.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_core),
		cmocka_unit_test(test_list_model),
		cmocka_unit_test(test_program_model),
		cmocka_unit_test(test_pair_model),
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_net),
		cmocka_unit_test(test_runtime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

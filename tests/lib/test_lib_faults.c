// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the library does, with every allocation and every call of the driver failing in
 * turn: an error that says so, or success if it can do without; and nothing stays.
 *
 * FAULTS_ALL in the environment lets all calls fail with all errors, which takes minutes.
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
#define malloc __real_malloc
#define calloc __real_calloc
#define realloc __real_realloc
#include "fake_driver.h"
#undef malloc
#undef calloc
#undef realloc
#include "test_neffs.h"

/* The n'th allocation from now fails; 0 none. */
static atomic_uint fail_alloc;
/* The call that fails is one of those that give things back, and nobody hears of it. */
static bool late;

static void giving_back(void)
{
	late = fake.failed == 0;
}

/* Closing a core is where everything comes back that the driver refused before. */
static void closing(void)
{
	if (fake.sticky)
		fake.fail_at = 0;
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
	/* Before the devices were closed, which gives everything back. */
	assert_int_equal(fake.left_bytes, 0);
	assert_int_equal(fake.left_handles, 0);
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
	closing();
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
	struct neuron_range *ranges;
	size_t nr_ranges;
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
		ret = neuron_hbm_get_ranges(device, 1, &ranges, &nr_ranges);
	if (!ret)
		free(ranges);
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

/* What the driver did not refuse: why not, is told for it. */
static int told(int ret, const struct neuron_mem_failure *failure)
{
	if (ret == -ENOMEM)
		assert_int_equal(failure->reason, NEURON_MEM_REASON_HOST);
	return ret;
}

static int use_memory(void)
{
	struct neuron_mem_failure failure;
	struct neuron_mem_opts mo = {
		.size = sizeof(mo), .category = NEURON_MEM_TENSORS, .failure = &failure,
	};
	struct neuron_kv_opts ko = {
		.size = sizeof(ko), .token_bytes = 1024, .max_tokens = 100, .host_bytes = 1 << 20,
		.failure = &failure,
	};
	struct neuron_kv_pool *kv = NULL;
	struct neuron_mem *mem = NULL;
	int ret = neuron_device_open(0, &device);

	if (ret)
		return ret;
	memset(&failure, 0x5a, sizeof(failure));
	ret = told(neuron_mem_alloc(device, 5000, &mo, &mem), &failure);
	if (!ret)
		ret = told(neuron_kv_pool_open(device, &ko, &kv), &failure);
	giving_back();
	neuron_kv_pool_close(kv);
	neuron_mem_free(mem);
	neuron_device_close(device);
	return ret;
}

static void test_memory(void **state)
{
	(void)state;
	every_failure(use_memory, -ENOMEM, -EIO, true);
}

/* ---- models ---------------------------------------------------------------------------- */

static uint32_t lnc = 1;
static const char *outputs[2] = { "y", "y" };

static int fill(struct neuron_mem *mem)
{
	uint8_t bytes[1024];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	return neuron_mem_write(mem, 0, bytes, sizeof(bytes));
}

/* A run that says it worked did: x is at the start of @mem, and a copy of its end at @y. */
static int worked(struct neuron_mem *mem, uint64_t y, uint8_t xor)
{
	uint8_t in[512], out[512];
	int ret = neuron_mem_read(mem, 512, in, sizeof(in));

	if (!ret)
		ret = neuron_mem_read(mem, y + 512, out, sizeof(out));
	for (size_t i = 0; i < sizeof(in) && !ret; i++)
		assert_int_equal(out[i], in[i] ^ xor);
	return ret;
}

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
	if (!ret)
		ret = fill(mem);
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
	if (!ret)
		ret = worked(mem, 100000, 0);
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

/* Of a device that is not there. */
static int ask_empty(void)
{
	struct neuron_plan_opts o = { .size = sizeof(o), .lnc = 2, .io_sets = 1 };
	struct neuron_plan p = { .size = sizeof(p) };
	struct neuron_fit fit = { .size = sizeof(fit) };
	struct neuron_fit_file file = {
		.size = sizeof(file), .bytes = neff.data, .length = neff.size, .plan = &p,
	};
	struct neuron_geometry g;
	int ret = neuron_instance_geometry("trn2", &g, NULL);

	ret = ret ?: neuron_model_plan(&g, neff.data, neff.size, &o, &p) ?:
	      neuron_models_fit_empty(&g, 0, &file, 1, &o, 1ull << 30, &fit);
	if (!ret)
		assert_int_equal(fit.verdict, NEURON_FIT_NOW);
	return ret;
}

static void test_ask_empty(void **state)
{
	(void)state;
	neff = make_pair_neff("1024");
	every_failure(ask_empty, -ENOMEM, 0, false);
	free(neff.data);
}

static int ask_network(void)
{
	struct neuron_plan_opts o = { .size = sizeof(o), .io_sets = 1 };
	struct neuron_plan p[2] = { { .size = sizeof(p[0]) } };
	struct neuron_fit fit = { .size = sizeof(fit) };
	struct neuron_fit_file file = {
		.size = sizeof(file), .bytes = neff.data, .length = neff.size, .plan = p,
	};
	struct neuron_geometry g;
	size_t nr = 2;
	int ret = neuron_instance_geometry("trn2", &g, NULL);

	ret = ret ?: neuron_net_plan(&g, neff.data, neff.size, &o, p, &nr);
	file.nr_plans = nr;
	ret = ret ?: neuron_models_fit_empty(&g, 0, &file, 1, &o, 1ull << 30, &fit);
	if (!ret)
		assert_int_equal(fit.verdict, NEURON_FIT_NOW);
	return ret;
}

static void test_ask_network(void **state)
{
	(void)state;
	neff = net_neff();
	every_failure(ask_network, -ENOMEM, 0, false);
	free(neff.data);
}

/* Beside something that leaves no room for microcode, so that there is somebody to name. */
static int ask_now(void)
{
	struct neuron_plan_opts o = { .size = sizeof(o), .lnc = 2 };
	struct neuron_plan p = { .size = sizeof(p) };
	struct neuron_fit fit = { .size = sizeof(fit) };
	struct neuron_fit_file file = {
		.size = sizeof(file), .bytes = neff.data, .length = neff.size, .plan = &p,
	};
	struct neuron_mem_opts m = { .size = sizeof(m), .category = NEURON_MEM_TENSORS };
	struct neuron_device *device = NULL;
	struct neuron_mem *mem = NULL;
	int ret = neuron_device_open(0, &device);

	ret = ret ?: neuron_mem_alloc(device, FAKE_HBM_SIZE - (2ull << 30), &m, &mem) ?:
	      neuron_model_plan(neuron_device_geometry(device), neff.data, neff.size, &o, &p) ?:
	      neuron_models_fit(device, &file, 1, &o, 1ull << 30, &fit);
	if (!ret) {
		assert_int_equal(fit.verdict, NEURON_FIT_NOT_NOW);
		assert_int_equal(fit.release.count, 1);
	}
	neuron_mem_free(mem);
	neuron_device_close(device);
	return ret;
}

/* The name of who holds it is not needed. */
static void test_ask_now(void **state)
{
	(void)state;
	neff = make_pair_neff("1024");
	every_failure(ask_now, -ENOMEM, -EIO, true);
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

/* What the network xors x with; 0: the file has no network, and copies x. */
static uint8_t net_mask;

static int use_net(void)
{
	static const struct neuron_host_op ops[] = { { "invert", invert, NULL } };
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts o = { .size = sizeof(o), .ops = ops, .nr_ops = 1, .error = &error };
	struct neuron_core *cores[2] = { NULL };
	struct neuron_pool *pool = NULL;
	struct neuron_net *net = NULL;
	struct neuron_mem *mem = NULL;
	struct neuron_core_opts opts = { .size = sizeof(opts), .lnc = lnc };
	struct neuron_io io[2];
	int ret = neuron_device_open(0, &device);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < 2 && !ret; i++)
		ret = neuron_core_open(device, i * lnc, &opts, &cores[i]);
	if (!ret)
		ret = neuron_pool_open(cores, 2, &pool);
	if (!ret)
		ret = neuron_mem_alloc(device, 4096, NULL, &mem);
	if (!ret)
		ret = fill(mem);
	if (!ret) {
		ret = neuron_net_load(pool, neff.data, neff.size, &o, &net);
		assert_int_equal(!ret, !error.text[0]);
	}
	io[0] = (struct neuron_io){ "x", mem, 0, 1024 };
	io[1] = (struct neuron_io){ "y", mem, 2048, 1024 };
	for (int i = 0; i < 3 && !ret; i++)
		ret = neuron_net_infer(net, io, 2, NULL);
	if (!ret)
		ret = worked(mem, 2048, net_mask);
	giving_back();
	neuron_net_unload(net);
	neuron_mem_free(mem);
	if (pool)
		neuron_pool_close(pool);
	closing();
	for (uint32_t i = 0; i < 2; i++)
		neuron_core_close(cores[i]);
	neuron_device_close(device);
	return ret;
}

static void test_net(void **state)
{
	(void)state;
	lnc = 1;
	net_mask = 0xff;
	neff = net_neff();
	every_failure(use_net, -ENOMEM, -EIO, false);
	free(neff.data);
	/* A file without a network. */
	net_mask = 0;
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

/* The runtime did not start; only its log says why. */
static bool not_started;

static NRT_STATUS start_runtime(void)
{
	const char *cores = lnc == 1 ? "1" : "2";
	NRT_STATUS status;

	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "600", 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", cores, 1);
	status = nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
	not_started = !!status;
	return status == NRT_FAILURE ? NRT_HW_ERROR : status;
}

static int use_runtime(void)
{
	nrt_tensor_t *t[4] = { NULL };
	NRT_STATUS status = start_runtime();

	if (status)
		return (int)status;
	status = use_tensors(t);
	if (!status)
		status = use_runs(t);
	if (!status)
		status = use_trace();
	for (size_t i = 0; i < 4; i++)
		nrt_tensor_free(&t[i]);
	closing();
	nrt_close();
	return (int)status;
}

static void test_runtime(void **state)
{
	(void)state;
	lnc = 1;
	neff = make_list_neff();
	/* The log of allocations may be short of entries. */
	every_failure(use_runtime, NRT_RESOURCE, NRT_HW_ERROR, true);
	free(neff.data);
}

/* ---- collectives by ranks --------------------------------------------------------------- */

#define RANKS 2
#define ELEMENTS 256

static struct rank {
	pthread_t thread;
	uint32_t rank;
	nrt_tensor_t *in, *out;
	NRT_STATUS status;
} ranks[RANKS];

/* The others wait for a rank that is refused before they hear of it: it tries once more. */
#define AGAIN(first, call) do {			\
	(first) = (call);			\
	if (first)				\
		status = (call);		\
} while (0)

static NRT_STATUS all_reduce(const struct rank *r)
{
	nrt_tensor_t *in = r->in, *out = r->out;
	nrt_tensor_list_t ins = { &in, 1 }, outs = { &out, 1 };
	nrt_cc_comm_t comm = {
		.rank = r->rank, .rank_n = RANKS, .ctx_device_id = r->rank,
		.ctx_device_count = RANKS, .vnc = r->rank,
	};
	/* It is written at the latest when the runtime is closed. */
	static NRT_STATUS done[RANKS];
	NRT_STATUS status = NRT_SUCCESS, joined, prepared = NRT_SUCCESS, scheduled = NRT_SUCCESS;
	nrt_cc_context_t *c = NULL;
	nrta_seq_t seq;
	uint64_t n;
	int fd;

	AGAIN(joined, nrt_build_global_comm((int32_t)r->rank, r->rank, RANKS));
	if (!status)
		AGAIN(prepared, nrta_cc_prepare(&comm, &ins, &outs, NRT_DTYPE_FLOAT32, NRT_OP_ADD,
						NRT_CC_ALLREDUCE, &c));
	if (!status)
		AGAIN(scheduled, nrta_cc_schedule(&c, 0, &done[r->rank], &seq));
	if (status)
		return status;
	fd = eventfd(0, EFD_CLOEXEC);
	AGAIN(status, nrta_event_register_seq_id_completion(seq, fd));
	if (!status && read(fd, &n, sizeof(n)) != sizeof(n))
		status = NRT_FAILURE;
	close(fd);
	return joined ? joined : prepared ? prepared : scheduled ? scheduled :
	       status ? status : done[r->rank];
}

static void *rank_main(void *arg)
{
	struct rank *r = arg;

	r->status = all_reduce(r);
	return NULL;
}

static NRT_STATUS fill_rank(struct rank *r)
{
	float in[ELEMENTS];
	NRT_STATUS status = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, (int)r->rank,
						sizeof(in), "in", &r->in);

	if (!status)
		status = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, (int)r->rank,
					     sizeof(in), "out", &r->out);
	for (uint32_t i = 0; i < ELEMENTS; i++)
		in[i] = (float)(i * (r->rank + 1));
	return status ? status : nrt_tensor_write(r->in, in, 0, sizeof(in));
}

/* A rank that says it worked has the sum. */
static NRT_STATUS rank_worked(const struct rank *r)
{
	float out[ELEMENTS];
	NRT_STATUS status = nrt_tensor_read(r->out, out, 0, sizeof(out));

	for (uint32_t i = 0; i < ELEMENTS && !status; i++)
		assert_true(out[i] == (float)(i * 3));
	return status;
}

/* What one rank is refused the others hear of, and none waits for it for ever. */
static int use_ranks(void)
{
	NRT_STATUS status = start_runtime(), of_others = NRT_SUCCESS;

	if (status)
		return (int)status;
	for (uint32_t i = 0; i < RANKS; i++) {
		ranks[i] = (struct rank){ .rank = i };
		if (!status)
			status = fill_rank(&ranks[i]);
	}
	for (uint32_t i = 0; i < RANKS && !status; i++)
		assert_int_equal(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
	for (uint32_t i = 0; i < RANKS && ranks[i].thread; i++)
		pthread_join(ranks[i].thread, NULL);
	for (uint32_t i = 0; i < RANKS; i++) {
		if (ranks[i].thread && !ranks[i].status)
			ranks[i].status = rank_worked(&ranks[i]);
		if (ranks[i].status == NRT_EXEC_HW_ERR_COLLECTIVES)
			of_others = ranks[i].status;
		else if (!status)
			/* The core is reset when it is needed again. */
			status = ranks[i].status == NRT_EXEC_HW_ERR_DMA_ABORT ? NRT_HW_ERROR :
										ranks[i].status;
	}
	giving_back();
	for (uint32_t i = 0; i < RANKS; i++) {
		nrt_tensor_free(&ranks[i].in);
		nrt_tensor_free(&ranks[i].out);
	}
	closing();
	nrt_close();
	return (int)(status ? status : of_others);
}

static void test_ranks(void **state)
{
	(void)state;
	lnc = 1;
	every_failure(use_ranks, NRT_RESOURCE, NRT_HW_ERROR, true);
}

static char runtime_dir[] = "/tmp/test_lib_faults_XXXXXX";

static int make_runtime_dir(void)
{
	return !mkdtemp(runtime_dir) || setenv("XDG_RUNTIME_DIR", runtime_dir, 1) ||
	       setenv("NEURON_RT_ROOT_COMM_ID", "127.0.0.1:20000", 1);
}

/* The runtime has left nothing in the directory: it can be removed. */
static int remove_runtime_dir(void **state)
{
	char name[64];

	(void)state;
	snprintf(name, sizeof(name), "%s/neuron-nrt-%u", runtime_dir, geteuid());
	return rmdir(name) || rmdir(runtime_dir);
}

/* ---- profiles, computing ----------------------------------------------------------------- */

static int use_profile(void)
{
	const struct neuron_profile_opts small = {
		.size = sizeof(small), .bytes = { 4096, 4096, 4096, 4096, 4096 },
	};
	struct neuron_profile_stats stats = { .size = sizeof(stats) };
	struct neuron_core_opts opts = { .size = sizeof(opts), .lnc = lnc };
	struct neuron_profile *p = NULL;
	struct neuron_model *m = NULL;
	struct neuron_mem *mem = NULL;
	struct neuron_io io[2];
	int fd, ret = open_core(&opts);

	if (ret)
		return ret;
	fd = memfd_create("profile", MFD_CLOEXEC);
	ret = neuron_mem_alloc(device, 4096, NULL, &mem);
	if (!ret)
		ret = neuron_model_load(core, neff.data, neff.size, NULL, &m);
	if (!ret)
		ret = neuron_profile_start(core, &small, &p);
	io[0] = (struct neuron_io){ "x", mem, 0, 1024 };
	io[1] = (struct neuron_io){ "y", mem, 2048, 1024 };
	for (int i = 0; i < 2 && !ret; i++)
		ret = neuron_model_run(m, io, 2, 10000, NULL);
	if (!ret)
		ret = neuron_profile_write(p, fd);
	if (!ret) {
		assert_int_equal(neuron_profile_get_stats(p, &stats), 0);
		assert_int_equal(stats.runs, 2);
		/* Prologue, four transfers with their waits, an event, the end. */
		assert_int_equal(stats.instructions, 2 * 11);
		assert_int_equal(stats.lost, 0);
	}
	if (!ret)
		ret = neuron_profile_stop(p);
	giving_back();
	neuron_profile_close(p);
	neuron_model_unload(m);
	neuron_mem_free(mem);
	close_core();
	close(fd);
	return ret;
}

static int use_compute(void)
{
	struct neuron_core_opts opts = { .size = sizeof(opts), .lnc = lnc };
	struct neuron_mem *mem = NULL;
	struct neuron_operand src[2];
	struct neuron_compute c;
	float in[128], out[64];
	int ret = open_core(&opts);

	if (ret)
		return ret;
	for (unsigned int i = 0; i < 128; i++)
		in[i] = (float)(i * i);
	ret = neuron_mem_alloc(device, 4096, NULL, &mem);
	if (!ret)
		ret = neuron_mem_write(mem, 0, in, sizeof(in));
	for (size_t i = 0; i < 2; i++)
		src[i] = (struct neuron_operand){ mem, i * sizeof(out), NEURON_ISA_DT_FP32 };
	c = (struct neuron_compute){
		.size = sizeof(c), .op = NEURON_COMPUTE_ADD, .elements = 64,
		.dst = { mem, 2048, NEURON_ISA_DT_FP32 }, .src = src, .nr_src = 2,
	};
	if (!ret)
		ret = neuron_core_compute(core, &c, 1000);
	if (!ret)
		ret = neuron_mem_read(mem, 2048, out, sizeof(out));
	for (unsigned int i = 0; i < 64 && !ret; i++)
		assert_true(out[i] == in[i] + in[i + 64]);
	giving_back();
	neuron_mem_free(mem);
	close_core();
	return ret;
}

/* ---- every call with every error ----------------------------------------------------------- */

/*
 * Of what the library can do without, or tries again, it may say that it worked; that is
 * only believed when the results are right.
 */
#define RECOVERS true

static const struct {
	unsigned long cmd;
	const char *name;
	bool recovers;
} calls[] = {
	{ NEURON_NATIVE_GET_GEOMETRY, "GET_GEOMETRY", false },
	{ NEURON_IOCTL_HOST_DEVICE_ID, "HOST_DEVICE_ID", false },
	{ NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, "CRWL_NC_RANGE_MARK", false },
	{ NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0, "CRWL_NC_RANGE_UNMARK", RECOVERS },
	{ NEURON_IOCTL_NC_RESET, "NC_RESET", false },
	{ NEURON_IOCTL_NC_RESET_READY, "NC_RESET_READY", false },
	{ NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, "NOTIFICATIONS_INIT", false },
	{ NEURON_NATIVE_NQ_EVENTFD, "NQ_EVENTFD", RECOVERS },
	{ NEURON_NATIVE_MEM_ALLOC, "MEM_ALLOC", false },
	{ NEURON_NATIVE_MEM_ALLOC_BULK, "MEM_ALLOC_BULK", RECOVERS },
	{ NEURON_NATIVE_MEM_GROW, "MEM_GROW", false },
	{ NEURON_NATIVE_MEM_EXPORT, "MEM_EXPORT", false },
	{ NEURON_NATIVE_MEM_IMPORT, "MEM_IMPORT", false },
	{ NEURON_IOCTL_MEM_FREE, "MEM_FREE", RECOVERS },
	{ NEURON_NATIVE_MEM_FREE_BULK, "MEM_FREE_BULK", RECOVERS },
	{ NEURON_IOCTL_MEM_GET_EXTENDED_INFO, "MEM_GET_EXTENDED_INFO", RECOVERS },
	{ NEURON_IOCTL_MEM_BUF_COPY64, "MEM_BUF_COPY64", false },
	{ NEURON_IOCTL_MEM_COPY64, "MEM_COPY64", false },
	{ NEURON_IOCTL_MEMSET64, "MEMSET64", false },
	{ NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, "DMA_COPY_DESCRIPTORS64", false },
	{ NEURON_IOCTL_DMA_QUEUE_INIT, "DMA_QUEUE_INIT", RECOVERS },
	{ NEURON_IOCTL_DMA_QUEUE_INIT_BATCH, "DMA_QUEUE_INIT_BATCH", false },
	{ NEURON_IOCTL_DMA_QUEUE_COPY_START, "DMA_QUEUE_COPY_START", false },
	{ NEURON_IOCTL_DMA_QUEUE_RELEASE, "DMA_QUEUE_RELEASE", RECOVERS },
	{ NEURON_IOCTL_ACQUIRE_NEURON_DS, "ACQUIRE_NEURON_DS", RECOVERS },
	{ NEURON_IOCTL_SEMAPHORE_READ, "SEMAPHORE_READ", false },
	{ NEURON_IOCTL_SEMAPHORE_WRITE, "SEMAPHORE_WRITE", false },
	{ NEURON_IOCTL_EVENT_SET, "EVENT_SET", false },
	{ NEURON_IOCTL_EVENT_GET, "EVENT_GET", false },
	{ NEURON_NATIVE_CORE_STATS, "CORE_STATS", false },
	{ NEURON_NATIVE_HBM_STATS, "HBM_STATS", false },
	{ NEURON_NATIVE_HBM_RANGES, "HBM_RANGES", false },
	{ NEURON_NATIVE_OWNER, "OWNER", RECOVERS },
};

#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

static const struct {
	int error;
	const char *name;
	NRT_STATUS status;	/* what the runtime interface makes of it */
} errors[] = {
	{ EIO, "EIO", NRT_HW_ERROR }, { ENOMEM, "ENOMEM", NRT_RESOURCE },
	{ EBUSY, "EBUSY", NRT_EXEC_NC_BUSY }, { ENODEV, "ENODEV", NRT_HW_ERROR },
	{ ETIMEDOUT, "ETIMEDOUT", NRT_TIMEOUT }, { EPERM, "EPERM", NRT_FAILURE },
	{ EAGAIN, "EAGAIN", NRT_FAILURE }, { EINTR, "EINTR", NRT_SUCCESS },
};

#define NR_ERRORS (sizeof(errors) / sizeof(errors[0]))

static struct neff_bytes plain_pair(void)
{
	return make_pair_neff("1024");
}

static const struct scenario {
	const char *name;
	int (*run)(void);
	uint32_t lnc;
	struct neff_bytes (*neff)(void);
	const char *outputs[2];
	uint8_t mask;
	bool runtime;		/* it returns NRT_STATUS */
} scenarios[] = {
	{ "core", use_core, 2, make_list_neff, { "y", "y" }, 0, false },
	{ "model", use_model, 1, make_list_neff, { "y", "y" }, 0, false },
	{ "model, LNC 2", use_model, 2, plain_pair, { "a", "b" }, 0, false },
	{ "profile", use_profile, 1, make_list_neff, { "y", "y" }, 0, false },
	{ "profile, LNC 2", use_profile, 2, make_list_neff, { "y", "y" }, 0, false },
	{ "group", use_net, 1, net_neff, { "y", "y" }, 0xff, false },
	{ "group, LNC 2", use_net, 2, net_neff, { "y", "y" }, 0xff, false },
	{ "compute", use_compute, 1, make_list_neff, { "y", "y" }, 0, false },
	{ "compute, LNC 2", use_compute, 2, make_list_neff, { "y", "y" }, 0, false },
	{ "runtime", use_runtime, 1, make_list_neff, { "y", "y" }, 0, true },
	{ "runtime, LNC 2", use_runtime, 2, make_list_neff, { "y", "y" }, 0, true },
	{ "ranks", use_ranks, 1, make_list_neff, { "y", "y" }, 0, true },
	{ "ranks, LNC 2", use_ranks, 2, make_list_neff, { "y", "y" }, 0, true },
};

#define NR_SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

struct row {
	const struct scenario *scenario;
	size_t call, error;
	unsigned int times;		/* it is called */
	char name[80];
};

static void begin(const struct scenario *s)
{
	neff = s->neff();
	lnc = s->lnc;
	outputs[0] = s->outputs[0];
	outputs[1] = s->outputs[1];
	net_mask = s->mask;
	fake.nr_devices = 1;
	fake.has_claims = true;
	fake.fail_at = 0;
	/* Whatever the row before it left. */
	fake.mapped = 0;
	fake.left_bytes = 0;
	fake.left_handles = 0;
}

/* What the call's error becomes, or nothing where that is good enough. */
static bool as_wanted(const struct row *row, int ret)
{
	int error = errors[row->error].error;
	NRT_STATUS status = errors[row->error].status;

	if (!ret)
		return error == EINTR || calls[row->call].recovers || late;
	if (!row->scenario->runtime)
		return error != EINTR && ret == -error;
	if (not_started)
		return ret == (int)status || ret == NRT_HW_ERROR;
	/* Collectives have one status for what has no better name. */
	return ret == (int)status || (ret == NRT_EXEC_HW_ERR_COLLECTIVES &&
				      (status == NRT_TIMEOUT || status == NRT_FAILURE));
}

/* The @n'th call fails, and with @sticky all that follow it until the core is closed. */
static void one_failure(const struct row *row, unsigned int n, bool sticky, unsigned int files)
{
	int error = errors[row->error].error, ret;

	late = false;
	fake_fail(n, _IOC_NR(calls[row->call].cmd), error);
	fake.sticky = sticky;
	ret = row->scenario->run();
	fake.fail_at = 0;
	/* A call that is made only when the core is closed never fails with @sticky. */
	if (!fake.failed && !sticky)
		fail_msg("call %u was not made", n);
	if (!as_wanted(row, ret))
		fail_msg("call %u%s: %d", n, sticky ? " and all that follow" : "", ret);
	no_trace(files);
}

/* In the short form all calls fail only with EIO; of other errors the first and the last. */
static void test_row(void **state)
{
	const struct row *row = *state;
	bool all = getenv("FAULTS_ALL") || errors[row->error].error == EIO;
	unsigned int files = open_files();

	begin(row->scenario);
	for (unsigned int n = 1; n <= row->times; n++)
		if (all || n == 1 || n == row->times)
			one_failure(row, n, false, files);
	for (unsigned int n = 1; n <= row->times && errors[row->error].error != EINTR; n++)
		if (n == 1 || (all && (n == row->times || getenv("FAULTS_ALL"))))
			one_failure(row, n, true, files);
	free(neff.data);
}

/* A row for each call of a scenario that works, and each error. */
static size_t make_rows(struct row *rows)
{
	size_t nr = 0;

	for (size_t s = 0; s < NR_SCENARIOS; s++) {
		unsigned int before[256];
		int ret;

		begin(&scenarios[s]);
		memcpy(before, fake.calls_nr, sizeof(before));
		ret = scenarios[s].run();
		free(neff.data);
		if (ret)
			printf("# %s: %d without a failure\n", scenarios[s].name, ret);
		for (size_t i = 0; i < NR_CALLS; i++) {
			unsigned int n = _IOC_NR(calls[i].cmd);

			for (size_t e = 0; e < NR_ERRORS && fake.calls_nr[n] > before[n]; e++) {
				struct row *row = &rows[nr++];

				*row = (struct row){ &scenarios[s], i, e,
						     fake.calls_nr[n] - before[n], "" };
				snprintf(row->name, sizeof(row->name), "%s: %s: %s",
					 scenarios[s].name, calls[i].name, errors[e].name);
			}
		}
	}
	return nr;
}

/* Every call that a scenario makes is in the table. */
static void test_calls(void **state)
{
	(void)state;
	for (unsigned int n = 0; n < 256; n++) {
		bool known = !fake.calls_nr[n];

		for (size_t i = 0; i < NR_CALLS; i++)
			known |= n == _IOC_NR(calls[i].cmd);
		if (!known)
			fail_msg("call %u is made and has no rows", n);
	}
}

#define MAX_ROWS (NR_SCENARIOS * NR_CALLS * NR_ERRORS)

int main(void)
{
	static const struct CMUnitTest others[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_core),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_list_model),
		cmocka_unit_test(test_program_model),
		cmocka_unit_test(test_pair_model),
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_ask_empty),
		cmocka_unit_test(test_ask_network),
		cmocka_unit_test(test_ask_now),
		cmocka_unit_test(test_net),
		cmocka_unit_test(test_runtime),
		cmocka_unit_test(test_ranks),
	};
	static struct CMUnitTest tests[sizeof(others) / sizeof(others[0]) + MAX_ROWS];
	static struct row rows[MAX_ROWS];
	size_t nr = sizeof(others) / sizeof(others[0]), nr_rows;

	if (make_runtime_dir())
		return 1;
	nr_rows = make_rows(rows);
	memcpy(tests, others, sizeof(others));
	for (size_t i = 0; i < nr_rows; i++)
		tests[nr++] = (struct CMUnitTest){ rows[i].name, test_row, NULL, NULL, &rows[i] };
	return _cmocka_run_group_tests("faults", tests, nr, NULL, remove_runtime_dir);
}

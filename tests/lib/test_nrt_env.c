// SPDX-License-Identifier: GPL-2.0-only
/* Variables of the environment that are about failures, threads and cores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <sys/stat.h>

#include <nrt/nrt.h>
#include <nrt/nrt_async.h>

#include "fake_driver.h"
#include "test_neffs.h"

static const char *const names[] = {
	"NEURON_RT_RESET_CORES", "NEURON_RT_DBG_DUMP_INPUTS_ON_ERR",
	"NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY", "NEURON_RT_NUMERICAL_ERRORS_VERBOSITY",
	"NEURON_FAIL_ON_NAN", "NEURON_RT_ONE_TMPBUF_PAGE_SIZE_MB", "NEURON_SCRATCHPAD_PAGE_SIZE",
	"NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY", "NEURON_RT_LOG_LOCATION",
	"NEURON_RT_STOCHASTIC_ROUNDING_EN",
};

static char directory[] = "/tmp/neuron-env-XXXXXX";

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	fake.nr_devices = 1;
	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	return !mkdtemp(directory) || chdir(directory);
}

static int teardown(void **state)
{
	(void)state;
	nrt_close();
	fake.dma_error = 0;
	return chdir("/") || rmdir(directory) || fake_used() || fake.mapped;
}

static void init(void)
{
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
}

static void refused(const char *name, const char *value)
{
	setenv(name, value, 1);
	if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_INVALID)
		fail_msg("%s=%s", name, value);
	unsetenv(name);
}

static void test_bad(void **state)
{
	static const char *const cpus[] = { "x", "1-", "-1", "3-1", "1,,2", "1,", "1024", "0 1" };

	(void)state;
	for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++)
		refused("NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY", cpus[i]);
	refused("NEURON_RT_DBG_DUMP_INPUTS_ON_ERR", "-1");
	refused("NEURON_RT_DBG_DUMP_INPUTS_ON_ERR", "5x");
	refused("NEURON_RT_ONE_TMPBUF_PAGE_SIZE_MB", "1000");
	/* The newer name counts. */
	setenv("NEURON_SCRATCHPAD_PAGE_SIZE", "1024", 1);
	setenv("NEURON_RT_ONE_TMPBUF_PAGE_SIZE_MB", "1000", 1);
	init();
}

static void test_reset(void **state)
{
	unsigned int before = fake.dev[0].core[0].resets;

	(void)state;
	setenv("NEURON_RT_RESET_CORES", "0", 1);
	init();
	assert_int_equal(fake.dev[0].core[0].resets, before);
	nrt_close();
	before = fake.dev[0].core[0].resets;
	/* Anything else is no reason to take cores as they are. */
	setenv("NEURON_RT_RESET_CORES", "", 1);
	init();
	assert_int_equal(fake.dev[0].core[0].resets, before + 1);
}

static void read_log(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
	assert_int_equal(unlink(path), 0);
}

static void test_ignored(void **state)
{
	char text[4096];

	(void)state;
	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	setenv("NEURON_RT_LOG_LOCATION", "log", 1);
	setenv("NEURON_RT_STOCHASTIC_ROUNDING_EN", "1", 1);
	init();
	nrt_close();
	read_log("log", text, sizeof(text));
	assert_non_null(strstr(text, "NEURON_RT_STOCHASTIC_ROUNDING_EN has no effect"));
	assert_null(strstr(text, "NEURON_RT_ULTRASERVER_MODE"));
	setenv("NEURON_RT_LOG_LOCATION", "console", 1);
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
}

struct run {
	nrt_model_t *m;
	nrt_tensor_t *x, *y;
	nrt_tensor_set_t *in, *out;
};

static void run_begin(struct run *r, struct neff_bytes n, const void *x)
{
	*r = (struct run){ 0 };
	assert_int_equal(nrt_load(n.data, n.size, 0, -1, &r->m), NRT_SUCCESS);
	free(n.data);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 1024, "x", &r->x),
			 NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 1024, "y", &r->y),
			 NRT_SUCCESS);
	assert_int_equal(nrt_tensor_write(r->x, x, 0, 1024), NRT_SUCCESS);
	assert_int_equal(nrt_allocate_tensor_set(&r->in), NRT_SUCCESS);
	assert_int_equal(nrt_allocate_tensor_set(&r->out), NRT_SUCCESS);
	assert_int_equal(nrt_add_tensor_to_tensor_set(r->in, "x", r->x), NRT_SUCCESS);
	assert_int_equal(nrt_add_tensor_to_tensor_set(r->out, "y", r->y), NRT_SUCCESS);
}

static void run_end(struct run *r)
{
	nrt_destroy_tensor_set(&r->in);
	nrt_destroy_tensor_set(&r->out);
	nrt_tensor_free(&r->x);
	nrt_tensor_free(&r->y);
	assert_int_equal(nrt_unload(r->m), NRT_SUCCESS);
}

/* Directories of dumps here; the name of one. */
static unsigned int dumps(char name[64])
{
	DIR *d = opendir(".");
	struct dirent *e;
	unsigned int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.') {
			snprintf(name, 64, "%.63s", e->d_name);
			n++;
		}
	closedir(d);
	return n;
}

static void test_inputs(void **state)
{
	char name[64], path[128], text[64];
	uint8_t x[1024], got[1025];
	unsigned int random, id;
	struct stat st;
	struct run r;
	FILE *f;

	(void)state;
	for (size_t i = 0; i < sizeof(x); i++)
		x[i] = (uint8_t)(i * 7);
	setenv("NEURON_RT_DBG_DUMP_INPUTS_ON_ERR", "1204", 1);	/* NRT_EXEC_HW_ERR_DMA_ABORT is not */
	init();
	run_begin(&r, make_list_neff(), x);
	fake.dma_error = NEURON_ISA_ERR_DMA_DESC;
	assert_int_equal(nrt_execute(r.m, r.in, r.out), NRT_EXEC_HW_ERR_DMA_ABORT);
	assert_int_equal(dumps(name), 0);
	run_end(&r);
	nrt_close();

	snprintf(text, sizeof(text), "%d", NRT_EXEC_HW_ERR_DMA_ABORT);
	setenv("NEURON_RT_DBG_DUMP_INPUTS_ON_ERR", text, 1);
	init();
	run_begin(&r, make_list_neff(), x);
	assert_int_equal(nrt_execute(r.m, r.in, r.out), NRT_SUCCESS);
	assert_int_equal(dumps(name), 0);
	fake.dma_error = NEURON_ISA_ERR_DMA_DESC;
	assert_int_equal(nrt_execute(r.m, r.in, r.out), NRT_EXEC_HW_ERR_DMA_ABORT);
	assert_int_equal(dumps(name), 1);
	assert_int_equal(sscanf(name, "input_dump_%8x_h_nn_%u", &random, &id), 2);
	assert_int_equal(id, 1001);
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	snprintf(path, sizeof(path), "%s/input0.bin", name);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fread(got, 1, sizeof(got), f), sizeof(x));
	fclose(f);
	assert_memory_equal(got, x, sizeof(x));
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/model_name.txt", name);
	read_log(path, text, sizeof(text));
	assert_string_equal(text, "list");
	assert_int_equal(rmdir(name), 0);
	run_end(&r);
}

/* The caller's mistake; of two inputs of the set none has storage. */
static void test_refused(void **state)
{
	uint8_t x[1024] = { 0 };
	nrt_tensor_set_t *none;
	char name[64];
	struct run r;

	(void)state;
	setenv("NEURON_RT_DBG_DUMP_INPUTS_ON_ERR", "2", 1);	/* NRT_INVALID */
	init();
	run_begin(&r, make_list_neff(), x);
	assert_int_equal(nrt_allocate_tensor_set(&none), NRT_SUCCESS);
	assert_int_equal(nrt_execute(r.m, none, r.out), NRT_INVALID);
	/* Begun, and not complete: there is nothing to write. */
	assert_int_equal(dumps(name), 1);
	assert_int_equal(rmdir(name), 0);
	nrt_destroy_tensor_set(&none);
	run_end(&r);
}

/* x to y, of the type that neff.json gives them. */
static struct neff_bytes make_typed_neff(const char *dtype, unsigned int elements)
{
	static const char def[] =
		"{\"name\": \"definition\", \"sp\": \"SP.json\","
		" \"dma_queue\": {\"qIO\": {\"type\": \"data\"}},"
		" \"var\": {"
		"  \"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 1024},"
		"  \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 1024}}}";
	static const char sp[] =
		"{\"dma\": [{\"id\": 7, \"queue\": \"qIO\", \"semaphore\": 8, \"desc\": ["
		" {\"op\": \"copy\", \"from\": \"x\", \"to\": \"y\","
		"  \"from_sizes\": [1024], \"from_steps\": [1],"
		"  \"to_sizes\": [1024], \"to_steps\": [1]}]}]}";
	char top[256];
	const struct neff_file files[] = { { "sg00/SP.json", sp, 0 }, { "neff.json", top, 0 } };

	snprintf(top, sizeof(top), "{\"format\": \"neuron-pack-1\","
		 " \"inputs\": [{\"name\": \"x\", \"dtype\": \"%s\", \"shape\": [%u]}],"
		 " \"outputs\": [{\"name\": \"y\", \"dtype\": \"%s\", \"shape\": [%u]}]}",
		 dtype, elements, dtype, elements);
	return make_neff("typed", def, files, 2);
}

static void test_nan(void **state)
{
	static const struct {
		const char *dtype;
		unsigned int size;
		uint32_t nan, inf;
	} types[] = {
		{ "float32", 4, 0xff800001, 0xff800000 },
		{ "bfloat16", 2, 0x7fc0, 0x7f80 },
		{ "float16", 2, 0xfe00, 0xfc00 },
		{ "int32", 4, 0, 0 },
	};
	uint8_t x[1024];
	struct run r;

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		NRT_STATUS want = types[i].nan ? NRT_EXEC_COMPLETED_WITH_NUM_ERR : NRT_SUCCESS;

		memset(x, 0, sizeof(x));
		memcpy(x + 1020, &types[i].inf, types[i].size);
		unsetenv("NEURON_RT_NUMERICAL_ERRORS_VERBOSITY");
		setenv("NEURON_FAIL_ON_NAN", "1", 1);
		init();
		run_begin(&r, make_typed_neff(types[i].dtype, 1024 / types[i].size), x);
		assert_int_equal(nrt_execute(r.m, r.in, r.out), NRT_SUCCESS);
		memset(x, types[i].nan ? 0 : 0xff, sizeof(x));
		memcpy(x + 1024 - types[i].size, &types[i].nan, types[i].size);
		assert_int_equal(nrt_tensor_write(r.x, x, 0, sizeof(x)), NRT_SUCCESS);
		assert_int_equal(nrt_execute(r.m, r.in, r.out), want);
		run_end(&r);
		nrt_close();
		/* Either variable, and only if asked for. */
		unsetenv("NEURON_FAIL_ON_NAN");
		setenv("NEURON_RT_NUMERICAL_ERRORS_VERBOSITY", i % 2 ? "critical" : "none", 1);
		init();
		run_begin(&r, make_typed_neff(types[i].dtype, 1024 / types[i].size), x);
		assert_int_equal(nrt_execute(r.m, r.in, r.out), i % 2 ? want : NRT_SUCCESS);
		run_end(&r);
		nrt_close();
	}
	init();
}

/* The processor that a queued execution may use. */
static void test_affinity(void **state)
{
	cpu_set_t here;
	char text[16];
	uint8_t x[1024] = { 0 };
	bool done = false, seen = false;
	nrta_seq_t seq;
	NRT_STATUS ret;
	struct run r;
	int cpu = 0;
	DIR *tasks;
	struct dirent *e;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(here), &here), 0);
	while (!CPU_ISSET(cpu, &here))
		cpu++;
	snprintf(text, sizeof(text), "%d,1000-1002", cpu);
	setenv("NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY", text, 1);
	init();
	run_begin(&r, make_list_neff(), x);
	assert_int_equal(nrta_execute_schedule(r.m, r.in, r.out, 0, &ret, &seq), NRT_SUCCESS);
	while (!done)
		assert_int_equal(nrta_is_completed(seq, &done), NRT_SUCCESS);
	tasks = opendir("/proc/self/task");
	assert_non_null(tasks);
	while ((e = readdir(tasks))) {
		pid_t tid = atoi(e->d_name);
		cpu_set_t of;

		if (tid <= 0 || tid == getpid() || sched_getaffinity(tid, sizeof(of), &of))
			continue;
		if (CPU_COUNT(&here) > 1 ? CPU_COUNT(&of) == 1 && CPU_ISSET(cpu, &of) :
		    CPU_ISSET(cpu, &of))
			seen = true;
	}
	closedir(tasks);
	assert_true(seen);
	run_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bad, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reset, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ignored, setup, teardown),
		cmocka_unit_test_setup_teardown(test_inputs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nan, setup, teardown),
		cmocka_unit_test_setup_teardown(test_affinity, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

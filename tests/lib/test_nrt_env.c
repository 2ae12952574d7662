// SPDX-License-Identifier: GPL-2.0-only
/* Variables of the environment that are about failures, threads and cores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

#include <nrt/nrt.h>
#include <nrt/nrt_async.h>

#include "fake_driver.h"
#include "nrt/base/process.h"
#include "test_neffs.h"

static const char *const names[] = {
	"NEURON_RT_RESET_CORES", "NEURON_RT_DBG_DUMP_INPUTS_ON_ERR",
	"NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY", "NEURON_RT_NUMERICAL_ERRORS_VERBOSITY",
	"NEURON_FAIL_ON_NAN", "NEURON_RT_ONE_TMPBUF_PAGE_SIZE_MB", "NEURON_SCRATCHPAD_PAGE_SIZE",
	"NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY", "NEURON_RT_LOG_LOCATION",
	"NEURON_RT_STOCHASTIC_ROUNDING_EN", "NEURON_RT_EXEC_TIMEOUT", "NEURON_RT_VALIDATE_HASH",
	"NEURON_RT_MAP_HBM", "NEURON_RT_CONTIGUOUS_SCRATCHPAD", "NEURON_RT_LOG_LEVEL_NMGR",
	"NEURON_RT_ENABLE_DEVICE_MEMORY_OOM_LOG", "NEURON_RT_INSPECT_ENABLE",
	"NEURON_RT_INSPECT_HOST_MEMORY",
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
	/* The last reset is that of the driver, when the device was closed. */
	for (const char *const *off = (const char *const []){ "false", "No", "OFF", NULL }; *off; off++) {
		before = fake.dev[0].core[0].resets;
		setenv("NEURON_RT_RESET_CORES", *off, 1);
		init();
		assert_int_equal(fake.dev[0].core[0].resets, before);
		nrt_close();
	}
	for (const char *const *on = (const char *const []){ "", "1", "true", NULL }; *on; on++) {
		before = fake.dev[0].core[0].resets;
		setenv("NEURON_RT_RESET_CORES", *on, 1);
		init();
		assert_int_equal(fake.dev[0].core[0].resets, before + 1);
		nrt_close();
	}
	refused("NEURON_RT_RESET_CORES", "later");
	init();
}

static void read_log(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
	assert_int_equal(unlink(path), 0);
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

/* Variables of the interface that nothing reads; at the level that is on if none is asked for. */
static void test_L8_ignored(void **state)
{
	static const char *const ignored[] = {
		"NEURON_RT_ALLOW_LEGACY_NEFF", "NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT",
		"NEURON_RT_ASYNC_SENDRECV_EXPERIMENTAL_ENABLED", "NEURON_RT_DBG_CC_DMA_PACKET_SIZE",
		"NEURON_RT_DBG_DMA_PACKETIZATION_SIZE", "NEURON_RT_DEBUG_STREAM_BUFFER_SIZE",
		"NEURON_RT_ENABLE_DGE_NOTIFICATIONS", "NEURON_RT_GPSIMD_STDOUT_QUEUE_SIZE_BYTES",
		"NEURON_RT_INSPECT_PRECACHE_ENABLE", "NEURON_RT_MULTI_INSTANCE_SHARED_WEIGHTS",
		"NEURON_RT_ONE_THREAD_PER_CORE", "NEURON_RT_RANKS_PER_NETWORK_PROXY",
		"NEURON_RT_STOCHASTIC_ROUNDING_EN", "NEURON_RT_STOCHASTIC_ROUNDING_SEED",
		"NEURON_RT_ULTRASERVER_MODE", "NEURON_RT_ULTRASERVER_NODE_ID",
		"NEURON_RT_ULTRASERVER_SERVER_ID", "NEURON_PROCESS_TAG",
	};
	char text[8192], line[128];

	(void)state;
	unsetenv("NEURON_RT_LOG_LEVEL");
	setenv("NEURON_RT_LOG_LOCATION", "log", 1);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i += 2)
		setenv(ignored[i], "1", 1);
	init();
	nrt_close();
	read_log("log", text, sizeof(text));
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
		snprintf(line, sizeof(line), "%s has no effect", ignored[i]);
		if ((strstr(text, line) != NULL) == i % 2)
			fail_msg("%s", ignored[i]);
		unsetenv(ignored[i]);
	}
}

static void test_L8_flags(void **state)
{
	static const struct {
		const char *name;
		const bool *value;
		bool otherwise;
	} flags[] = {
		{ "NEURON_RT_VALIDATE_HASH", &nrt_process.verify_hash, false },
		{ "NEURON_RT_MAP_HBM", &nrt_process.map_hbm, true },
		{ "NEURON_RT_ENABLE_DEVICE_MEMORY_OOM_LOG", &nrt_process.oom_table, true },
		{ "NEURON_RT_CONTIGUOUS_SCRATCHPAD", &nrt_process.contiguous, false },
		{ "NEURON_FAIL_ON_NAN", &nrt_process.env.find_nan, false },
	};
	static const char *const on[] = { "1", "true", "True", "TRUE", "yes", "On" };
	static const char *const off[] = { "0", "false", "False", "NO", "off" };

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		for (size_t k = 0; k < 11; k++) {
			bool want = k < 6;

			setenv(flags[i].name, want ? on[k] : off[k - 6], 1);
			init();
			if (*flags[i].value != want)
				fail_msg("%s=%s", flags[i].name, getenv(flags[i].name));
			nrt_close();
		}
		refused(flags[i].name, "2");
		refused(flags[i].name, "maybe");
		setenv(flags[i].name, "", 1);
		init();
		assert_int_equal(*flags[i].value, flags[i].otherwise);
		nrt_close();
		unsetenv(flags[i].name);
	}
	/* It begins when the runtime is there, which does not fail for it. */
	setenv("NEURON_RT_INSPECT_ENABLE", "True", 1);
	setenv("NEURON_RT_INSPECT_HOST_MEMORY", "maybe", 1);
	init();
	assert_int_equal(dumps((char[64]){ 0 }), 0);
}

static void test_L8_timeout(void **state)
{
	static const struct {
		const char *text;
		int ms;
	} times[] = { { NULL, 30000 }, { "0", -1 }, { "7", 7000 }, { "2147483647", INT_MAX } };

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (times[i].text)
			setenv("NEURON_RT_EXEC_TIMEOUT", times[i].text, 1);
		init();
		assert_int_equal(nrt_process.timeout_ms, times[i].ms);
		nrt_close();
	}
	refused("NEURON_RT_EXEC_TIMEOUT", "soon");
}

/* Something for the log. */
static void log_name(const char *name)
{
	nrt_tensor_t *t;

	assert_int_equal(nrt_tensor_allocate((nrt_tensor_placement_t)7, 0, 1, name, &t),
			 NRT_INVALID);
}

/* What cannot be used is said, once, where lines go instead. */
static void test_L8_log_variables(void **state)
{
	char text[4096], *first;

	(void)state;
	setenv("NEURON_RT_LOG_LEVEL", "LOUD", 1);
	setenv("NEURON_RT_LOG_LEVEL_NMGR", "7", 1);
	setenv("NEURON_RT_LOG_LOCATION", "log", 1);
	init();
	nrt_close();
	read_log("log", text, sizeof(text));
	first = strstr(text, "NEURON_RT_LOG_LEVEL=LOUD: not a level");
	assert_non_null(first);
	assert_null(strstr(first + 1, "NEURON_RT_LOG_LEVEL="));
	assert_non_null(strstr(text, "NEURON_RT_LOG_LEVEL_NMGR=7: not a level"));
}

/* Standard error, for as long as the test wants it. */
static int console_of(const char *path)
{
	int old = dup(2), fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(dup2(fd, 2), 2);
	close(fd);
	return old;
}

static void console_back(int old)
{
	fflush(stderr);
	assert_int_equal(dup2(old, 2), 2);
	close(old);
}

/* With and without a reader: nothing waits for it. */
static void test_L22_fifo_as_location(void **state)
{
	char text[4096], *first;
	int old, reader;

	(void)state;
	assert_int_equal(mkfifo("fifo", 0600), 0);
	unsetenv("NEURON_RT_LOG_LEVEL");
	setenv("NEURON_RT_LOG_LOCATION", "fifo", 1);
	alarm(30);
	for (int i = 0; i < 2; i++) {
		reader = i ? open("fifo", O_RDONLY | O_NONBLOCK) : -1;
		old = console_of("console");
		init();
		log_name("n");
		nrt_close();
		console_back(old);
		close(reader);
		read_log("console", text, sizeof(text));
		first = strstr(text, "NEURON_RT_LOG_LOCATION=fifo: neither a file nor a terminal");
		assert_non_null(first);
		assert_null(strstr(first + 1, "NEURON_RT_LOG_LOCATION"));
		assert_non_null(strstr(text, "placement 7"));
	}
	alarm(0);
	assert_int_equal(unlink("fifo"), 0);
}

static void test_L22_forged_line(void **state)
{
	char text[4096], *end;

	(void)state;
	unsetenv("NEURON_RT_LOG_LEVEL");
	setenv("NEURON_RT_LOG_LOCATION", "log", 1);
	init();
	log_name("n\n2025-Jan-31 12:00:00.123456 100:101 ERROR forged\x7f\x1b[2J");
	nrt_close();
	read_log("log", text, sizeof(text));
	end = strchr(text, '\n');
	assert_non_null(end);
	assert_string_equal(end, "\n");
	assert_non_null(strstr(text, "n?2025-Jan-31 12:00:00.123456 100:101 ERROR forged??[2J"));
}

/* A second life writes to the second file only; syslog is not one. */
static void test_location_changes(void **state)
{
	char text[4096];

	(void)state;
	unsetenv("NEURON_RT_LOG_LEVEL");
	setenv("NEURON_RT_LOG_LOCATION", "first", 1);
	init();
	log_name("one");
	nrt_close();
	setenv("NEURON_RT_LOG_LOCATION", "second", 1);
	init();
	log_name("two");
	nrt_close();
	setenv("NEURON_RT_LOG_LOCATION", "syslog", 1);
	init();
	log_name("three");
	nrt_close();
	assert_int_equal(access("syslog", F_OK), -1);
	read_log("first", text, sizeof(text));
	assert_non_null(strstr(text, "tensor one"));
	assert_null(strstr(text, "tensor two"));
	read_log("second", text, sizeof(text));
	assert_non_null(strstr(text, "tensor two"));
	assert_null(strstr(text, "tensor three"));
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
	/* The directory is there, but incomplete: there were no inputs to write. */
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
		cmocka_unit_test_setup_teardown(test_L8_ignored, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L8_flags, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L8_timeout, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L8_log_variables, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L22_fifo_as_location, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L22_forged_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_location_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_inputs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nan, setup, teardown),
		cmocka_unit_test_setup_teardown(test_affinity, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

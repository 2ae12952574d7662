// SPDX-License-Identifier: GPL-2.0-only
/* nrt_profile_* and nrt_inspect_*: files, environment, states, failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

#include <nrt/nrt_experimental.h>
#include <nrt/nrt_profile.h>
#include <nrt/nrt_sys_trace.h>

#include "fake_driver.h"
#include "test_neffs.h"
#include "trace_check.h"

#define SP (2 + NEURON_ISA_ENGINE_SP)
#define LIST_INSTS 11u		/* of make_list_neff() */
#define MIB (1ull << 20)
#define CORE_MEMORY ((6 + FAKE_ENGINES + 3) * MIB)	/* with buffers of 1 MB */

static char dir[64];
static nrt_model_t *model;
static nrt_tensor_t *x, *y;
static nrt_tensor_set_t *in, *out;

static void set_small_buffers(void)
{
	static const char *const kinds[] = {
		"EVENT", "DMA", "THROTTLE", "CC_CORE_INSTRUCTION", "CC_CORE_EVENT",
	};
	char name[64];

	for (size_t i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "NEURON_RT_PROFILE_BUF_%s_MB", kinds[i]);
		setenv(name, "1", 1);
	}
}

static int setup_dir(void **state)
{
	static const char *const inspect[] = {
		"ENABLE", "ON_FAIL", "SYSTEM_PROFILE", "DEVICE_PROFILE", "HOST_MEMORY", "CPU_UTIL",
		"EVENT_FILTER_NC", "EVENT_FILTER_TYPE", "SYS_TRACE_MAX_EVENTS_PER_NC",
	};
	char name[64];

	(void)state;
	strcpy(dir, "/tmp/nrt-profile-XXXXXX");
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < sizeof(inspect) / sizeof(inspect[0]); i++) {
		snprintf(name, sizeof(name), "NEURON_RT_INSPECT_%s", inspect[i]);
		unsetenv(name);
	}
	set_small_buffers();
	setenv("NEURON_RT_INSPECT_OUTPUT_DIR", dir, 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	fake.nr_devices = 1;
	return 0;
}

static void open_model(void)
{
	struct neff_bytes n = make_list_neff();

	assert_int_equal(nrt_load(n.data, n.size, 1, -1, &model), NRT_SUCCESS);
	free(n.data);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, 1024, "x", &x),
			 NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, 1024, "y", &y),
			 NRT_SUCCESS);
	assert_int_equal(nrt_allocate_tensor_set(&in), NRT_SUCCESS);
	assert_int_equal(nrt_allocate_tensor_set(&out), NRT_SUCCESS);
	assert_int_equal(nrt_add_tensor_to_tensor_set(in, "x", x), NRT_SUCCESS);
	assert_int_equal(nrt_add_tensor_to_tensor_set(out, "y", y), NRT_SUCCESS);
}

static void close_model(void)
{
	nrt_destroy_tensor_set(&in);
	nrt_destroy_tensor_set(&out);
	nrt_tensor_free(&x);
	nrt_tensor_free(&y);
}

static int setup(void **state)
{
	setup_dir(state);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	open_model();
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	fake.fail_at = 0;
	close_model();
	nrt_close();
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) || fake_used() || fake.mapped;
}

static uint64_t profiler_bytes(void)
{
	return fake.dev[0].by_category[NEURON_MEM_NOTIFICATION];
}

/* NULL: there is no such file. */
static struct trace_sum *check_file(const char *path)
{
	struct trace_sum *s;
	FILE *f = fopen(path, "r");
	size_t size = 0;
	char *text = NULL;

	if (!f)
		return NULL;
	assert_true(getdelim(&text, &size, '\0', f) > 0);
	fclose(f);
	if (!trace_check(text, &s))
		fail_msg("%s: %s", path, text);
	free(text);
	return s;
}

/* A file of the session, with so many calls and runs; -1: there is none. */
static void expect_file(int session, const char *name, int calls, int runs)
{
	char path[256];
	struct trace_sum *s;

	snprintf(path, sizeof(path), "%s/session_%d_pid_%d/%s", dir, session, (int)getpid(), name);
	s = check_file(path);
	if (calls < 0) {
		assert_null(s);
		return;
	}
	assert_non_null(s);
	assert_int_equal(s->calls, calls);
	assert_int_equal(s->runs, runs);
	assert_int_equal(s->instructions, (unsigned int)runs * LIST_INSTS);
	free(s);
}

static void test_model(void **state)
{
	struct neff_bytes n = make_list_neff();
	nrt_model_t *other;
	struct trace_sum *s;
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/model.json", dir);
	assert_int_equal(nrt_profile_stop(path), NRT_FAILURE);
	assert_int_equal(nrt_profile_start((nrt_model_t *)path, path), NRT_INVALID_HANDLE);
	assert_int_equal(nrt_profile_start(model, NULL), NRT_INVALID);
	assert_int_equal(nrt_profile_start(model, "/no/such/dir/file"), NRT_FAILURE);
	assert_int_equal(profiler_bytes(), 0);
	assert_int_equal(nrt_load(n.data, n.size, 1, -1, &other), NRT_SUCCESS);
	free(n.data);
	assert_int_equal(nrt_profile_start(model, path), NRT_SUCCESS);
	assert_int_equal(profiler_bytes(), CORE_MEMORY);
	assert_int_equal(nrt_profile_start(model, path), NRT_FAILURE);
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	assert_int_equal(nrt_execute(other, in, out), NRT_SUCCESS);
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	/* The core is being profiled: no other profile can have it. */
	assert_int_equal(nrt_profile_continuous_start(NULL), NRT_EXEC_NC_BUSY);
	assert_int_equal(nrt_inspect_begin(), NRT_EXEC_NC_BUSY);
	assert_int_equal(nrt_inspect_stop(), NRT_FAILURE);
	assert_int_equal(profiler_bytes(), CORE_MEMORY);
	assert_int_equal(nrt_profile_stop(NULL), NRT_SUCCESS);
	assert_int_equal(profiler_bytes(), 0);
	s = check_file(path);
	assert_non_null(s);
	assert_int_equal(s->runs, 2);
	assert_true(trace_once(s, 0, 1, SP, LIST_INSTS));
	assert_true(trace_once(s, 1, 1, SP, 0));
	free(s);
	/* What is on when the runtime is closed ends without a file. */
	assert_int_equal(nrt_profile_start(model, path), NRT_SUCCESS);
	assert_int_equal(nrt_unload(model), NRT_SUCCESS);
}

/* A profile stays until a file takes it. */
static void test_unwritten(void **state)
{
	struct trace_sum *s;
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/model.json", dir);
	assert_int_equal(nrt_profile_start(model, path), NRT_SUCCESS);
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(nrt_profile_stop(i ? "/dev/full" : dir), NRT_FAILURE);
		assert_int_equal(profiler_bytes(), 0);
		assert_int_equal(nrt_profile_start(model, path), NRT_FAILURE);
	}
	/* It has ended: this execution is not in it. */
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	assert_int_equal(nrt_profile_stop(NULL), NRT_SUCCESS);
	s = check_file(path);
	assert_non_null(s);
	assert_int_equal(s->runs, 1);
	assert_true(trace_once(s, 0, 1, SP, LIST_INSTS));
	free(s);
	assert_int_equal(nrt_profile_stop(NULL), NRT_FAILURE);
	/* One that is not written when the runtime is closed goes. */
	assert_int_equal(nrt_profile_start(model, path), NRT_SUCCESS);
	assert_int_equal(nrt_profile_stop(dir), NRT_FAILURE);
	nrt_close();
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	assert_int_equal(nrt_profile_stop(path), NRT_FAILURE);
}

/* A start that is refused leaves no file behind. */
static void test_refused(void **state)
{
	char path[128];
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/model.json", dir);
	setenv("NEURON_RT_PROFILE_BUF_DMA_MB", "0", 1);
	assert_int_equal(nrt_profile_start(model, path), NRT_INVALID);
	setenv("NEURON_RT_PROFILE_BUF_DMA_MB", "1", 1);
	assert_int_equal(nrt_profile_continuous_start(NULL), NRT_SUCCESS);
	assert_int_equal(nrt_profile_start(model, path), NRT_EXEC_NC_BUSY);
	assert_int_equal(nrt_profile_continuous_stop(), NRT_SUCCESS);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(nrt_profile_start(model, path), NRT_SUCCESS);
	assert_int_equal(stat(path, &st), 0);
}

/* Nobody waits for the reader of a FIFO; only such a wait is ended by the alarm. */
static void test_fifo(void **state)
{
	struct trace_sum *s;
	char path[128];
	int reader;

	(void)state;
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(60);
	assert_int_equal(nrt_profile_start(model, path), NRT_FAILURE);
	assert_int_equal(profiler_bytes(), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	assert_int_equal(nrt_profile_start(model, path), NRT_SUCCESS);
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	close(reader);
	assert_int_equal(nrt_profile_stop(NULL), NRT_FAILURE);
	alarm(0);
	snprintf(path, sizeof(path), "%s/model.json", dir);
	assert_int_equal(nrt_profile_stop(path), NRT_SUCCESS);
	s = check_file(path);
	assert_non_null(s);
	assert_int_equal(s->runs, 1);
	free(s);
}

/* What an inspection could not write is lost, but the calls can be fetched. */
static void test_inspect_unwritten(void **state)
{
	nrt_inspect_config_t *c = NULL;
	struct trace_sum *s;
	char *text;

	(void)state;
	assert_int_equal(nrt_inspect_config_allocate(&c), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_output_dir(c, "/dev/null/x"), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_begin_with_options(c), NRT_SUCCESS);
	nrt_inspect_config_free(c);
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_stop(), NRT_FAILURE);
	assert_int_equal(nrt_inspect_stop(), NRT_FAILURE);
	assert_int_equal(profiler_bytes(), 0);
	assert_int_equal(nrt_sys_trace_fetch_events(&text, NULL, NULL), NRT_SUCCESS);
	assert_true(trace_check(text, &s));
	assert_int_equal(s->calls, 1);
	nrt_sys_trace_buffer_free(text);
	free(s);
}

static void test_sizes(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/model.json", dir);
	setenv("NEURON_RT_PROFILE_BUF_DMA_MB", "5", 1);
	assert_int_equal(nrt_profile_start(model, path), NRT_SUCCESS);
	assert_int_equal(profiler_bytes(), CORE_MEMORY + FAKE_ENGINES * 7 * MIB);
	assert_int_equal(nrt_profile_stop(NULL), NRT_SUCCESS);
	for (size_t i = 0; i < 4; i++) {
		static const char *const bad[] = { "0", "1025", "-1", "64MB" };

		setenv("NEURON_RT_PROFILE_BUF_DMA_MB", bad[i], 1);
		assert_int_equal(nrt_profile_start(model, path), NRT_INVALID);
	}
	setenv("NEURON_RT_PROFILE_BUF_DMA_MB", "", 1);
	assert_int_equal(nrt_profile_start(model, path), NRT_SUCCESS);
	assert_int_equal(profiler_bytes(), CORE_MEMORY + FAKE_ENGINES * 63 * MIB);
	assert_int_equal(nrt_profile_stop(NULL), NRT_SUCCESS);
	/* 16 GB of buffers do not fit twice into a memory of 24. */
	setenv("NEURON_RT_PROFILE_BUF_DMA_MB", "1024", 1);
	assert_int_equal(nrt_profile_continuous_start(NULL), NRT_RESOURCE);
	assert_int_equal(profiler_bytes(), 0);
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
}

static void test_continuous(void **state)
{
	nrt_profile_continuous_options_t *o = NULL;
	char sub[128], path[256];
	struct trace_sum *s;

	(void)state;
	snprintf(sub, sizeof(sub), "%s/a/b", dir);
	assert_int_equal(nrt_profile_continuous_options_allocate(NULL), NRT_INVALID);
	assert_int_equal(nrt_profile_continuous_options_free(NULL), NRT_INVALID);
	assert_int_equal(nrt_profile_continuous_options_allocate(&o), NRT_SUCCESS);
	assert_int_equal(nrt_profile_continuous_options_set_output_dir(o, NULL), NRT_INVALID);
	assert_int_equal(nrt_profile_continuous_options_set_output_dir(o, ""), NRT_INVALID);
	assert_int_equal(nrt_profile_continuous_options_set_output_dir(o, sub), NRT_SUCCESS);
	assert_int_equal(nrt_profile_continuous_save(1, o), NRT_FAILURE);
	assert_int_equal(nrt_profile_continuous_stop(), NRT_FAILURE);
	assert_int_equal(nrt_profile_continuous_start(o), NRT_SUCCESS);
	assert_int_equal(nrt_profile_continuous_start(o), NRT_FAILURE);
	assert_int_equal(profiler_bytes(), FAKE_CORES * CORE_MEMORY);
	for (int i = 0; i < 3; i++)
		assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	assert_int_equal(nrt_profile_continuous_save(FAKE_CORES, NULL), NRT_INVALID);
	assert_int_equal(nrt_profile_continuous_save(1, NULL), NRT_SUCCESS);
	assert_int_equal(nrt_profile_continuous_save(0, o), NRT_SUCCESS);
	snprintf(path, sizeof(path), "%s/profile_nd_0_nc_1_pid_%d_0.json", sub, (int)getpid());
	s = check_file(path);
	assert_non_null(s);
	assert_int_equal(s->runs, 1);
	assert_true(trace_once(s, 2, 1, SP, LIST_INSTS));
	free(s);
	snprintf(path, sizeof(path), "%s/profile_nd_0_nc_0_pid_%d_1.json", sub, (int)getpid());
	s = check_file(path);
	assert_non_null(s);
	assert_int_equal(s->runs, 0);
	free(s);
	assert_int_equal(nrt_profile_continuous_options_set_output_dir(o, "/dev/null/x"),
			 NRT_SUCCESS);
	assert_int_equal(nrt_profile_continuous_save(1, o), NRT_FAILURE);
	assert_int_equal(nrt_profile_continuous_stop(), NRT_SUCCESS);
	assert_int_equal(profiler_bytes(), 0);
	nrt_profile_continuous_options_free(o);
}

static void test_inspect(void **state)
{
	nrt_inspect_config_t *c = NULL;

	(void)state;
	/* The environment: the directory. */
	assert_int_equal(nrt_inspect_begin(), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_begin(), NRT_FAILURE);
	assert_int_equal(nrt_sys_trace_start(NULL), NRT_FAILURE);
	assert_int_equal(profiler_bytes(), FAKE_CORES * CORE_MEMORY);
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_stop(), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_stop(), NRT_FAILURE);
	assert_int_equal(profiler_bytes(), 0);
	expect_file(1, "system.json", 2, 0);
	expect_file(1, "nd_0_nc_0.json", 0, 0);
	expect_file(1, "nd_0_nc_1.json", 0, 2);
	expect_file(1, "host.json", -1, 0);

	/* One core, one type of events. */
	setenv("NEURON_RT_INSPECT_ON_FAIL", "1", 1);	/* not for a configuration */
	assert_int_equal(nrt_inspect_config_allocate(&c), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_session_id(c, 7), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_output_dir(c, dir), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_capture_enabled_for_nc(c, 0, false), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_capture_enabled_for_nc(c, 2, false), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_capture_enabled_for_nc(c, 2, true), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_capture_enabled_for_nc(c, 1024, false),
			 NRT_INVALID);
	assert_int_equal(nrt_inspect_config_set_capture_enabled_for_event_type_string(c,
			 "nrt_tensor_write", false), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_capture_enabled_for_event_type_string(c,
			 "nrt_dance", false), NRT_INVALID);
	assert_int_equal(nrt_inspect_config_set_sys_trace_max_events_per_nc(c, 0), NRT_INVALID);
	assert_int_equal(nrt_inspect_config_set_sys_trace_max_events_per_nc(c, 3), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_begin_with_options(c), NRT_SUCCESS);
	assert_int_equal(profiler_bytes(), 3 * CORE_MEMORY);
	assert_int_equal(nrt_tensor_write(x, "text", 0, 4), NRT_SUCCESS);
	for (int i = 0; i < 5; i++)
		assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_stop(), NRT_SUCCESS);
	expect_file(7, "system.json", 3, 0);
	expect_file(7, "nd_0_nc_0.json", -1, 0);
	expect_file(7, "nd_0_nc_1.json", 0, 5);
	expect_file(7, "nd_0_nc_2.json", 0, 0);

	/* Nothing; only what needs no device memory; a place that cannot be written. */
	assert_int_equal(nrt_inspect_config_set_enable_inspect(c, false), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_session_id(c, 8), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_begin_with_options(c), NRT_SUCCESS);
	assert_int_equal(profiler_bytes(), 0);
	assert_int_equal(nrt_inspect_stop(), NRT_SUCCESS);
	expect_file(8, "system.json", -1, 0);
	assert_int_equal(nrt_inspect_config_set_enable_inspect(c, true), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_activity(c, "device_profile", false), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_output_dir(c, "/dev/null/x"), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_begin_with_options(c), NRT_SUCCESS);
	assert_int_equal(profiler_bytes(), 0);
	assert_int_equal(nrt_inspect_stop(), NRT_FAILURE);
	nrt_inspect_config_free(c);
}

/* Nobody but an inspection ends its system profile, and it ends no other trace. */
static void test_trace_owner(void **state)
{
	nrt_inspect_config_t *c = NULL;

	(void)state;
	assert_int_equal(nrt_inspect_begin(), NRT_SUCCESS);
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	assert_int_equal(nrt_sys_trace_stop(), NRT_FAILURE);
	assert_int_equal(nrt_trace_stop("/dev/null"), NRT_FAILURE);
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_stop(), NRT_SUCCESS);
	expect_file(1, "system.json", 2, 0);
	assert_int_equal(nrt_sys_trace_stop(), NRT_FAILURE);
	/* An inspection without a system profile. */
	assert_int_equal(nrt_inspect_config_allocate(&c), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_output_dir(c, dir), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_activity(c, "system_profile", false), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_begin_with_options(c), NRT_SUCCESS);
	assert_int_equal(nrt_sys_trace_start(NULL), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_stop(), NRT_SUCCESS);
	assert_int_equal(nrt_sys_trace_stop(), NRT_SUCCESS);
	nrt_inspect_config_free(c);
}

/* What an earlier inspection with the same number has written is not deleted. */
static void test_same_session(void **state)
{
	nrt_inspect_config_t *c = NULL;

	(void)state;
	assert_int_equal(nrt_inspect_config_allocate(&c), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_output_dir(c, dir), NRT_SUCCESS);
	for (int runs = 2; runs; runs--) {
		assert_int_equal(nrt_inspect_begin_with_options(c), NRT_SUCCESS);
		for (int i = 0; i < runs; i++)
			assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
		assert_int_equal(nrt_inspect_stop(), NRT_SUCCESS);
		assert_int_equal(nrt_inspect_config_set_activity(c, "device_profile", false),
				 NRT_SUCCESS);
	}
	nrt_inspect_config_free(c);
	expect_file(1, "system.json", 1, 0);
	expect_file(1, "nd_0_nc_1.json", 0, 2);
}

#define TARGET "not to be touched"

static void write_target(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(TARGET, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void expect_target(const char *path)
{
	char text[64] = "";
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	assert_string_equal(text, TARGET);
	fclose(f);
}

/* What somebody else has put where files are going to be is left alone. */
static void test_links(void **state)
{
	char target[128], session[192], path[256];
	struct stat st;

	(void)state;
	snprintf(target, sizeof(target), "%s/target", dir);
	snprintf(session, sizeof(session), "%s/session_1_pid_%d", dir, (int)getpid());
	write_target(target);
	assert_int_equal(nrt_inspect_begin(), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_stop(), NRT_SUCCESS);
	assert_int_equal(stat(session, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	for (size_t i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", session, i & 1 ? "system.json" : "nd_0_nc_0.json");
		assert_int_equal(unlink(path), 0);
		assert_int_equal(i & 2 ? link(target, path) : symlink(target, path), 0);
		assert_int_equal(nrt_inspect_begin(), NRT_SUCCESS);
		assert_int_equal(nrt_inspect_stop(), NRT_FAILURE);
		expect_target(target);
		assert_int_equal(unlink(path), 0);
		/* First the file is made anew, then the file that is there is used. */
		for (int k = 0; k < 2; k++) {
			assert_int_equal(nrt_inspect_begin(), NRT_SUCCESS);
			assert_int_equal(nrt_inspect_stop(), NRT_SUCCESS);
		}
	}
	snprintf(path, sizeof(path), "%s.real", session);
	assert_int_equal(rename(session, path), 0);
	assert_int_equal(symlink(path, session), 0);
	assert_int_equal(nrt_inspect_begin(), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_stop(), NRT_FAILURE);
	if (!geteuid()) {
		assert_int_equal(unlink(session), 0);
		assert_int_equal(mkdir(session, 0777), 0);
		assert_int_equal(chown(session, 1, 1), 0);
		assert_int_equal(nrt_inspect_begin(), NRT_SUCCESS);
		assert_int_equal(nrt_inspect_stop(), NRT_FAILURE);
	}
	assert_int_equal(nrt_profile_continuous_start(NULL), NRT_SUCCESS);
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(nrt_profile_continuous_save(1, NULL), NRT_SUCCESS);
	for (unsigned int i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "output/profile_nd_0_nc_1_pid_%d_%u.json",
			 (int)getpid(), i);
		assert_true(!symlink(target, path) || errno == EEXIST);
	}
	assert_int_equal(nrt_profile_continuous_save(1, NULL), NRT_FAILURE);
	expect_target(target);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(nrt_profile_continuous_stop(), NRT_SUCCESS);
}

/* A file is emptied when there is something to put into it. */
static void test_kept(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/model.json", dir);
	write_target(path);
	setenv("NEURON_RT_PROFILE_BUF_DMA_MB", "0", 1);
	assert_int_equal(nrt_profile_start(model, path), NRT_INVALID);
	expect_target(path);
	setenv("NEURON_RT_PROFILE_BUF_DMA_MB", "1", 1);
	assert_int_equal(nrt_profile_start(model, path), NRT_SUCCESS);
	assert_int_equal(nrt_profile_stop(NULL), NRT_SUCCESS);
	free(check_file(path));
}

/* Threads of this process that take SIGUSR1. */
static unsigned int listeners(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned int n = 0;
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d))) {
		unsigned long long blocked = 0;
		char path[300], line[256];
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		f = *e->d_name == '.' ? NULL : fopen(path, "r");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "SigBlk: %llx", &blocked) == 1)
				n += !(blocked >> (SIGUSR1 - 1) & 1);
		if (f)
			fclose(f);
	}
	closedir(d);
	return n;
}

/* A program's signals are for its own threads. */
static void test_signals(void **state)
{
	unsigned int before = listeners();
	nrt_inspect_config_t *c = NULL;

	(void)state;
	assert_true(before > 0);
	assert_int_equal(nrt_inspect_config_allocate(&c), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_output_dir(c, dir), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_activity(c, "all", false), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_activity(c, "cpu_util", true), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_begin_with_options(c), NRT_SUCCESS);
	assert_int_equal(listeners(), before);
	assert_int_equal(nrt_inspect_stop(), NRT_SUCCESS);
	nrt_inspect_config_free(c);
}

static void test_on_fail(void **state)
{
	nrt_inspect_config_t *c = NULL;

	(void)state;
	assert_int_equal(nrt_inspect_config_allocate(&c), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_output_dir(c, dir), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_enable_inspect(c, false), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_set_enable_inspect_on_fail(c, true), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_begin_with_options(c), NRT_SUCCESS);
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_stop(), NRT_SUCCESS);
	expect_file(1, "system.json", -1, 0);
	assert_int_equal(nrt_inspect_begin_with_options(c), NRT_SUCCESS);
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	fake.dma_error = NEURON_ISA_ERR_DMA_DESC;
	assert_int_equal(nrt_execute(model, in, out), NRT_EXEC_HW_ERR_DMA_ABORT);
	assert_int_equal(nrt_inspect_stop(), NRT_SUCCESS);
	expect_file(1, "system.json", 2, 0);
	nrt_inspect_config_free(c);
}

static void test_activities(void **state)
{
	static const char *const names[] = {
		"system_profile", "device_profile", "host_memory", "cpu_util",
	};
	nrt_inspect_config_t *c = NULL;
	const char **types;
	size_t n;

	(void)state;
	assert_int_equal(nrt_inspect_config_get_all_activity_types(&types, &n), NRT_SUCCESS);
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(types[i], names[i]);
	nrt_inspect_config_free_activity_types(types, n);
	assert_int_equal(nrt_inspect_config_get_all_activity_types(NULL, &n), NRT_INVALID);
	assert_int_equal(nrt_inspect_config_allocate(NULL), NRT_INVALID);
	assert_int_equal(nrt_inspect_config_free(NULL), NRT_INVALID);
	assert_int_equal(nrt_inspect_config_set_defaults(NULL), NRT_INVALID);
	assert_int_equal(nrt_inspect_config_set_activity(NULL, "all", true), NRT_INVALID);
	assert_int_equal(nrt_inspect_config_set_output_dir(NULL, dir), NRT_INVALID);
	assert_int_equal(nrt_inspect_config_set_session_id(NULL, 1), NRT_INVALID);
	assert_int_equal(nrt_inspect_config_set_enable_inspect(NULL, true), NRT_INVALID);
	assert_int_equal(nrt_inspect_config_set_enable_inspect_on_fail(NULL, true), NRT_INVALID);
	assert_int_equal(nrt_inspect_config_get_enabled_activity_types(NULL, &types, &n),
			 NRT_INVALID);
	/* Before nrt_init() and after nrt_close(). */
	assert_int_equal(nrt_inspect_config_allocate(&c), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_begin_with_options(c), NRT_CLOSED);
	assert_int_equal(nrt_inspect_stop(), NRT_CLOSED);
	assert_int_equal(nrt_profile_stop("x"), NRT_CLOSED);
	assert_int_equal(nrt_profile_continuous_start(NULL), NRT_CLOSED);
	assert_int_equal(nrt_profile_continuous_save(0, NULL), NRT_CLOSED);
	assert_int_equal(nrt_profile_continuous_stop(), NRT_CLOSED);
	assert_int_equal(nrt_inspect_config_set_activity(c, "gossip", true), NRT_INVALID);
	assert_int_equal(nrt_inspect_config_set_activity(c, "all", false), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_get_enabled_activity_types(c, &types, &n), NRT_SUCCESS);
	assert_int_equal(n, 0);
	nrt_inspect_config_free_activity_types(types, n);
	assert_int_equal(nrt_inspect_config_set_activity(c, "cpu_util", true), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_get_enabled_activity_types(c, &types, &n), NRT_SUCCESS);
	assert_int_equal(n, 1);
	assert_string_equal(types[0], "cpu_util");
	nrt_inspect_config_free_activity_types(types, n);
	assert_int_equal(nrt_inspect_config_set_defaults(c), NRT_SUCCESS);
	assert_int_equal(nrt_inspect_config_get_enabled_activity_types(c, &types, &n), NRT_SUCCESS);
	assert_int_equal(n, 2);
	nrt_inspect_config_free_activity_types(types, n);
	nrt_inspect_config_free(c);
}

/* From nrt_init() to nrt_close(), as the environment says. */
static void test_environment(void **state)
{
	char path[128], *text = NULL;
	size_t size = 0;
	FILE *f;

	(void)state;
	setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
	setenv("NEURON_RT_INSPECT_HOST_MEMORY", "1", 1);
	setenv("NEURON_RT_INSPECT_CPU_UTIL", "true", 1);
	setenv("NEURON_RT_INSPECT_EVENT_FILTER_NC", "1-2,0", 1);
	setenv("NEURON_RT_INSPECT_EVENT_FILTER_TYPE", "nrt_load,nrt_execute", 1);
	setenv("NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "100", 1);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	assert_int_equal(profiler_bytes(), 3 * CORE_MEMORY);
	open_model();
	assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
	usleep(250000);
	nrt_close();
	assert_int_equal(profiler_bytes(), 0);
	close_model();
	expect_file(1, "system.json", 2, 0);
	expect_file(1, "nd_0_nc_1.json", 0, 1);
	expect_file(1, "nd_0_nc_3.json", -1, 0);
	snprintf(path, sizeof(path), "%s/session_1_pid_%d/host.json", dir, (int)getpid());
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(getdelim(&text, &size, '\0', f) > 0);
	fclose(f);
	assert_non_null(strstr(text, "\"resident bytes\""));
	assert_non_null(strstr(text, "\"processor percent\""));
	free(text);

	/* What makes no sense does not keep the program from running. */
	for (size_t i = 0; i < 4; i++) {
		static const char *const bad[][2] = {
			{ "NEURON_RT_INSPECT_EVENT_FILTER_NC", "1," },
			{ "NEURON_RT_INSPECT_EVENT_FILTER_NC", "3-1" },
			{ "NEURON_RT_INSPECT_EVENT_FILTER_TYPE", "nrt_load,nrt_dance" },
			{ "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "many" },
		};

		setenv(bad[i][0], bad[i][1], 1);
		assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
		assert_int_equal(profiler_bytes(), 0);
		assert_int_equal(nrt_inspect_begin(), NRT_INVALID);
		assert_int_equal(nrt_inspect_stop(), NRT_FAILURE);
		nrt_close();
		unsetenv(bad[i][0]);
	}
}

/* Every call fails once, while all three ways are used. */
static void test_calls_fail(void **state)
{
	uint64_t used = fake_used();
	char path[128];
	bool clean = false;
	unsigned int n;

	(void)state;
	snprintf(path, sizeof(path), "%s/model.json", dir);
	setenv("NEURON_RT_INSPECT_EVENT_FILTER_NC", "1", 1);
	for (n = 1; n < 600 && !clean; n++) {
		fake_fail(n, 0, EIO);
		if (nrt_profile_start(model, path) == NRT_SUCCESS) {
			nrt_execute(model, in, out);
			nrt_profile_stop(NULL);
		}
		if (nrt_inspect_begin() == NRT_SUCCESS) {
			nrt_execute(model, in, out);
			nrt_inspect_stop();
		}
		clean = fake.fail_at > 0;
		fake.fail_at = 0;
		/* A profile that resets the core takes what a failing reset left behind. */
		assert_int_equal(nrt_profile_start(model, path), NRT_SUCCESS);
		assert_int_equal(nrt_execute(model, in, out), NRT_SUCCESS);
		assert_int_equal(nrt_profile_stop(NULL), NRT_SUCCESS);
		if (fake_used() != used)
			fail_msg("call %u: %llu bytes stay", n,
				 (unsigned long long)(fake_used() - used));
	}
	assert_true(clean);
	assert_true(n > 100);
}

static int teardown_dir(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) || fake_used() || fake.mapped;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_model, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unwritten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fifo, setup, teardown),
		cmocka_unit_test_setup_teardown(test_inspect_unwritten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_continuous, setup, teardown),
		cmocka_unit_test_setup_teardown(test_inspect, setup, teardown),
		cmocka_unit_test_setup_teardown(test_trace_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_session, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_on_fail, setup, teardown),
		cmocka_unit_test_setup_teardown(test_activities, setup_dir, teardown_dir),
		cmocka_unit_test_setup_teardown(test_environment, setup_dir, teardown_dir),
		cmocka_unit_test_setup_teardown(test_calls_fail, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only
/* The trace of the runtime: what is in it, what can be left out, and that it is JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include <jansson.h>

#include <nrt/nrt_experimental.h>
#include <nrt/nrt_sys_trace.h>

#include "fake_driver.h"
#include "test_neffs.h"

static int setup(void **state)
{
	(void)state;
	fake.nr_devices = 1;
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS;
}

static int teardown(void **state)
{
	(void)state;
	nrt_close();
	return fake_used() || fake.mapped;
}

#define ANY SIZE_MAX

/* Events of a fetch, as a list; its length must be @want. */
static json_t *fetch(const nrt_sys_trace_fetch_options_t *o, size_t want)
{
	char *text = NULL;
	size_t size = 0;
	json_t *root, *list;

	assert_int_equal(nrt_sys_trace_fetch_events(&text, &size, o), NRT_SUCCESS);
	assert_int_equal(strlen(text), size);
	root = json_loads(text, 0, NULL);
	if (!root)
		fail_msg("'%s'", text);
	nrt_sys_trace_buffer_free(text);
	list = json_incref(json_object_get(root, "traceEvents"));
	json_decref(root);
	if (want != ANY && json_array_size(list) != want)
		fail_msg("%zu events, not %zu", json_array_size(list), want);
	return list;
}

static const char *field(json_t *list, size_t i, const char *name)
{
	return json_string_value(json_object_get(json_array_get(list, i), name));
}

static json_t *arg(json_t *list, size_t i, const char *name)
{
	return json_object_get(json_object_get(json_array_get(list, i), "args"), name);
}

/* Load, run, unload on core @vnc: 1 load, 2 allocations, 1 write, 1 failed run, 1 unload. */
static void work(int vnc)
{
	struct neff_bytes n = make_list_neff();
	nrt_tensor_t *x = NULL, *y = NULL;
	nrt_tensor_set_t *set;
	nrt_model_t *m;

	assert_int_equal(nrt_load(n.data, n.size, vnc, -1, &m), NRT_SUCCESS);
	free(n.data);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, vnc, 1024, "x", &x),
			 NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, vnc, 1024, "\xc3\xa4\xff", &y),
			 NRT_SUCCESS);
	assert_int_equal(nrt_tensor_write(x, "text", 0, 4), NRT_SUCCESS);
	assert_int_equal(nrt_allocate_tensor_set(&set), NRT_SUCCESS);
	assert_int_equal(nrt_add_tensor_to_tensor_set(set, "x", x), NRT_SUCCESS);
	assert_int_equal(nrt_execute(m, set, set), NRT_INVALID);
	nrt_destroy_tensor_set(&set);
	nrt_tensor_free(&x);
	nrt_tensor_free(&y);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
}

static void test_events(void **state)
{
	static const char *const names[] = {
		"nrt_load", "nrt_tensor_allocate", "nrt_tensor_allocate", "nrt_tensor_write",
		"nrt_execute", "nrt_unload",
	};
	nrt_sys_trace_fetch_options_t *o;
	json_t *list;

	(void)state;
	/* Off: nothing. */
	work(0);
	assert_int_equal(nrt_sys_trace_stop(), NRT_FAILURE);
	assert_int_equal(nrt_sys_trace_start(NULL), NRT_SUCCESS);
	assert_int_equal(nrt_sys_trace_start(NULL), NRT_FAILURE);
	work(0);
	work(1);
	assert_int_equal(nrt_sys_trace_fetch_options_allocate(&o), NRT_SUCCESS);
	nrt_sys_trace_fetch_options_set_nc_idx(o, 1);
	nrt_sys_trace_fetch_options_set_max_events_per_nc(o, 2);
	list = fetch(o, 2);
	assert_string_equal(field(list, 0, "name"), "nrt_load");
	assert_int_equal(json_integer_value(arg(list, 0, "nc")), 1);
	json_decref(list);
	/* Each once: the rest of core 1, all of core 0. */
	nrt_sys_trace_fetch_options_set_max_events_per_nc(o, 0);
	json_decref(fetch(o, 4));
	json_decref(fetch(o, 0));
	nrt_sys_trace_fetch_options_free(o);
	assert_int_equal(nrt_sys_trace_stop(), NRT_SUCCESS);
	work(0);
	list = fetch(NULL, 6);
	for (size_t i = 0; i < 6; i++) {
		double ts = json_real_value(json_object_get(json_array_get(list, i), "ts"));

		assert_string_equal(field(list, i, "name"), names[i]);
		assert_string_equal(field(list, i, "ph"), "X");
		assert_true(ts > 0);
		assert_true(json_real_value(json_object_get(json_array_get(list, i), "dur")) >= 0);
		if (i && i != 4)
			assert_true(ts >= json_real_value(json_object_get(json_array_get(list, i - 1),
									  "ts")));
	}
	assert_string_equal(json_string_value(arg(list, 0, "name")), "list");
	assert_string_equal(json_string_value(arg(list, 1, "name")), "x");
	assert_int_equal(json_integer_value(arg(list, 1, "bytes")), 1024);
	assert_string_equal(json_string_value(arg(list, 2, "name")), "???");
	assert_int_equal(json_integer_value(arg(list, 3, "bytes")), 4);
	assert_string_equal(json_string_value(arg(list, 4, "status")), "NRT_INVALID");
	json_decref(list);
}

/* Memory of the program has no copies, only reads and writes; and memset is not in it. */
static void test_buffers(void **state)
{
	static const char *const names[] = {
		"nrt_tensor_write", "nrt_tensor_copy", "nrt_tensor_read", "nrt_tensor_write",
	};
	nrt_tensor_t *device[2], *user[2];
	char data[2][64];
	json_t *list;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, 64, "d",
						     &device[i]), NRT_SUCCESS);
		assert_int_equal(nrt_tensor_allocate_empty("u", &user[i]), NRT_SUCCESS);
		assert_int_equal(nrt_tensor_attach_buffer(user[i], data[i], 64), NRT_SUCCESS);
	}
	assert_int_equal(nrt_sys_trace_start(NULL), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_memset(device[0], 0, 1, 64), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_copy(device[0], 0, device[1], 0, 64), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_copy(device[0], 0, user[0], 0, 64), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_copy(user[0], 0, device[1], 0, 64), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_copy(user[0], 0, user[1], 0, 64), NRT_SUCCESS);
	list = fetch(NULL, 4);
	/* Core 0 first, which is that of memory of the program. */
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(json_integer_value(arg(list, i, "nc")), i > 0);
		assert_string_equal(field(list, i, "name"), names[i]);
	}
	json_decref(list);
	for (int i = 0; i < 2; i++) {
		nrt_tensor_free(&device[i]);
		nrt_tensor_free(&user[i]);
	}
}

static void test_config(void **state)
{
	nrt_sys_trace_config_t *c;
	const char **types;
	size_t n;
	json_t *list;

	(void)state;
	assert_int_equal(nrt_sys_trace_config_allocate(NULL), NRT_INVALID);
	assert_int_equal(nrt_sys_trace_config_allocate(&c), NRT_SUCCESS);
	assert_int_equal(nrt_sys_trace_get_event_types(&types, &n), NRT_SUCCESS);
	assert_int_equal(n, 7);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(nrt_sys_trace_config_set_capture_enabled_for_event_type(c, types[i],
					 !strcmp(types[i], "nrt_tensor_allocate")), NRT_SUCCESS);
	nrt_sys_trace_free_event_types(types, n);
	assert_int_equal(nrt_sys_trace_config_set_capture_enabled_for_event_type(c, "x", true),
			 NRT_INVALID);
	assert_int_equal(nrt_sys_trace_config_get_enabled_event_types(c, &types, &n), NRT_SUCCESS);
	assert_int_equal(n, 1);
	assert_string_equal(types[0], "nrt_tensor_allocate");
	nrt_sys_trace_free_event_types(types, n);
	nrt_sys_trace_config_set_capture_enabled_for_nc(c, 1, false);
	nrt_sys_trace_config_set_max_events_per_nc(c, 100);
	assert_int_equal(nrt_sys_trace_start(c), NRT_SUCCESS);
	nrt_sys_trace_config_free(c);
	work(1);
	/* 202 events, of which the last 100 stay. */
	for (int i = 0; i < 101; i++)
		work(0);
	list = fetch(NULL, 100);
	json_decref(list);
	assert_int_equal(nrt_sys_trace_stop(), NRT_SUCCESS);
	/* The end of the runtime is the end of the trace. */
	assert_int_equal(nrt_sys_trace_start(NULL), NRT_SUCCESS);
	work(0);
	nrt_close();
	json_decref(fetch(NULL, 6));
	assert_int_equal(nrt_sys_trace_start(NULL), NRT_CLOSED);
}

static void test_file(void **state)
{
	char path[] = "/tmp/nrt-trace-XXXXXX";
	int fd = mkstemp(path);
	json_t *root;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(nrt_trace_start(false), NRT_SUCCESS);
	work(0);
	assert_int_equal(nrt_trace_stop(NULL), NRT_INVALID);
	assert_int_equal(nrt_trace_stop(path), NRT_SUCCESS);
	root = json_load_file(path, 0, NULL);
	assert_non_null(root);
	assert_int_equal(json_array_size(json_object_get(root, "traceEvents")), 4);
	json_decref(root);
	assert_int_equal(nrt_trace_start(true), NRT_SUCCESS);
	assert_int_equal(nrt_trace_stop("/nonexistent/file"), NRT_FAILURE);
	close(fd);
	unlink(path);
}

static nrt_tensor_t *make_tensor(size_t size)
{
	nrt_tensor_t *t;

	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, size, "t", &t),
			 NRT_SUCCESS);
	return t;
}

/* A write of @first bytes, of one more, and so on; how many? */
static size_t expect_writes(json_t *list, size_t first)
{
	size_t n = json_array_size(list);

	for (size_t i = 0; i < n; i++) {
		assert_string_equal(field(list, i, "name"), "nrt_tensor_write");
		assert_int_equal(json_integer_value(arg(list, i, "bytes")), first + i);
	}
	json_decref(list);
	return n;
}

static void write_tensor(nrt_tensor_t *t, size_t first, size_t last)
{
	static const char data[20000];

	assert_true(last <= sizeof(data));
	for (size_t i = first; i <= last; i++)
		assert_int_equal(nrt_tensor_write(t, data, 0, i), NRT_SUCCESS);
}

#define WRITES 20000

static atomic_bool written;

static void *write_on(void *t)
{
	write_tensor(t, 1, WRITES);
	written = true;
	return NULL;
}

/* Each event is given out once and in order, however often they are fetched meanwhile. */
static void test_fetch_meanwhile(void **state)
{
	nrt_tensor_t *t = make_tensor(WRITES);
	size_t seen = 0;
	pthread_t thread;
	bool last;

	(void)state;
	written = false;
	assert_int_equal(nrt_sys_trace_start(NULL), NRT_SUCCESS);
	assert_int_equal(pthread_create(&thread, NULL, write_on, t), 0);
	do {
		last = written;
		seen += expect_writes(fetch(NULL, ANY), seen + 1);
	} while (!last);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(seen, WRITES);
	nrt_tensor_free(&t);
}

/* What another thread does while jansson allocates for the n'th time from now. */
static struct {
	unsigned int n;
	void *(*run)(void *tensor);
	nrt_tensor_t *tensor;
	bool done;
} meanwhile;

static void *hooked_malloc(size_t size)
{
	struct timespec until;
	pthread_t thread;

	if (meanwhile.n && !--meanwhile.n) {
		if (!meanwhile.run)
			return NULL;
		assert_int_equal(pthread_create(&thread, NULL, meanwhile.run, meanwhile.tensor), 0);
		/* Only a thread that waits for this one takes so long. */
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 60;
		meanwhile.done = !pthread_timedjoin_np(thread, NULL, &until);
	}
	return malloc(size);
}

/* Fetches, with a thread that runs @run in the middle of it; NULL: the memory is short. */
static NRT_STATUS fetch_hooked(char **text, unsigned int n, void *(*run)(void *), nrt_tensor_t *t)
{
	NRT_STATUS status;

	meanwhile.run = run;
	meanwhile.tensor = t;
	meanwhile.done = false;
	meanwhile.n = n;
	json_set_alloc_funcs(hooked_malloc, free);
	status = nrt_sys_trace_fetch_events(text, NULL, NULL);
	json_set_alloc_funcs(malloc, free);
	return status;
}

static void *write_200(void *t)
{
	write_tensor(t, 101, 300);
	return NULL;
}

/* A call that is traced does not wait for the text, and is not in it. */
static void test_call_meanwhile(void **state)
{
	nrt_tensor_t *t = make_tensor(1024);
	char *text = NULL;

	(void)state;
	assert_int_equal(nrt_sys_trace_start(NULL), NRT_SUCCESS);
	write_tensor(t, 1, 100);
	assert_int_equal(fetch_hooked(&text, 20, write_200, t), NRT_SUCCESS);
	assert_true(meanwhile.done);
	assert_non_null(strstr(text, "\"bytes\":100}"));
	assert_null(strstr(text, "\"bytes\":101}"));
	nrt_sys_trace_buffer_free(text);
	expect_writes(fetch(NULL, 200), 101);
	nrt_tensor_free(&t);
}

static void *start_anew(void *t)
{
	assert_int_equal(nrt_sys_trace_stop(), NRT_SUCCESS);
	assert_int_equal(nrt_sys_trace_start(NULL), NRT_SUCCESS);
	write_tensor(t, 201, 210);
	return NULL;
}

/* A fetch does not take away the events of a trace that began after it. */
static void test_start_meanwhile(void **state)
{
	nrt_tensor_t *t = make_tensor(1024);
	char *text = NULL;

	(void)state;
	assert_int_equal(nrt_sys_trace_start(NULL), NRT_SUCCESS);
	write_tensor(t, 1, 100);
	assert_int_equal(fetch_hooked(&text, 20, start_anew, t), NRT_SUCCESS);
	assert_true(meanwhile.done);
	assert_null(strstr(text, "\"bytes\":201}"));
	nrt_sys_trace_buffer_free(text);
	expect_writes(fetch(NULL, 10), 201);
	nrt_tensor_free(&t);
}

static void *fork_fetcher(void *t)
{
	int status = -1;
	pid_t pid = fork();
	char *text;

	(void)t;
	if (!pid) {
		/* Only a child that waits for a thread of its parent takes so long. */
		alarm(60);
		_exit(nrt_sys_trace_fetch_events(&text, NULL, NULL));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, NRT_SUCCESS);
	return NULL;
}

/* A child can fetch although its parent was in a fetch. */
static void test_fork_meanwhile(void **state)
{
	nrt_tensor_t *t = make_tensor(1024);
	char *text = NULL;

	(void)state;
	assert_int_equal(nrt_sys_trace_start(NULL), NRT_SUCCESS);
	write_tensor(t, 1, 100);
	assert_int_equal(fetch_hooked(&text, 20, fork_fetcher, NULL), NRT_SUCCESS);
	nrt_sys_trace_buffer_free(text);
	nrt_tensor_free(&t);
}

/* A fetch for which the memory does not suffice loses nothing. */
static void test_no_memory(void **state)
{
	nrt_tensor_t *t = make_tensor(1024);
	char *text = NULL;

	(void)state;
	assert_int_equal(nrt_sys_trace_start(NULL), NRT_SUCCESS);
	write_tensor(t, 1, 100);
	for (unsigned int n = 1; n < 1000; n += 99)
		assert_int_equal(fetch_hooked(&text, n, NULL, NULL), NRT_RESOURCE);
	assert_null(text);
	expect_writes(fetch(NULL, 100), 1);
	nrt_tensor_free(&t);
}

/* A file that cannot be written has none of the events: all of them can be fetched. */
static void test_full(void **state)
{
	nrt_tensor_t *t = make_tensor(1024);

	(void)state;
	for (size_t n = 1; n <= 1000; n *= 10) {
		assert_int_equal(nrt_trace_start(false), NRT_SUCCESS);
		write_tensor(t, 1, n);
		assert_int_equal(nrt_trace_stop("/dev/full"), NRT_FAILURE);
		expect_writes(fetch(NULL, n), 1);
	}
	nrt_tensor_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_events, setup, teardown),
		cmocka_unit_test_setup_teardown(test_buffers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_config, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fetch_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_call_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_start_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

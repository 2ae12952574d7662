// SPDX-License-Identifier: GPL-2.0-only
/* The trace of the runtime: what is in it, what can be left out, and that it is JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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
	if (json_array_size(list) != want)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_events, setup, teardown),
		cmocka_unit_test_setup_teardown(test_config, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

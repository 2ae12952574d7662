// SPDX-License-Identifier: GPL-2.0-only
/* Debug streams and other hosts: what there is not, and that it is said the right way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nrt/ndebug_stream.h>
#include <nrt/nrt_async_sendrecv.h>

#include "fake_driver.h"

static int setup(void **state)
{
	(void)state;
	fake.nr_devices = 1;
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS;
}

static int teardown(void **state)
{
	(void)state;
	nrt_close();
	return fake_used() || fake.mapped || fake.dev[0].opens;
}

/* A connection that would never tell anything is none. */
static void test_L7_stream(void **state)
{
	ndebug_stream_event_header_t header = { .data_size = 77 };
	void *payload = &header;
	int fd = -1;

	(void)state;
	assert_int_equal(nrt_debug_client_connect(0, &fd), NRT_FAILURE);
	assert_int_equal(nrt_debug_client_connect(-1, &fd), NRT_INVALID);
	assert_int_equal(nrt_debug_client_connect(99, &fd), NRT_INVALID);
	assert_int_equal(nrt_debug_client_connect(2, NULL), NRT_INVALID);
	assert_int_equal(fd, -1);
	assert_int_equal(nrt_debug_client_read_one_event(0, &header, &payload), NRT_INVALID);
	assert_int_equal(nrt_debug_client_read_one_event(-1, &header, &payload), NRT_INVALID);
	assert_int_equal(header.data_size, 77);
	assert_ptr_equal(payload, &header);
	/* Nothing of the caller's is closed. */
	nrt_debug_client_connect_close(0);
	assert_int_not_equal(fcntl(0, F_GETFD), -1);
	nrt_debug_client_connect_close(-1);
	nrt_close();
	assert_int_equal(nrt_debug_client_connect(0, &fd), NRT_CLOSED);
	assert_int_equal(nrt_debug_client_read_one_event(0, &header, &payload), NRT_CLOSED);
}

static void check_all(NRT_STATUS entered)
{
	nrt_async_sendrecv_request_t *request = NULL;
	nrt_async_sendrecv_comm_t *comm = NULL;
	size_t size = 5;
	bool done = true;

#define IS(call, status) assert_int_equal(call, entered == NRT_SUCCESS ? (status) : entered)
	IS(nrt_async_sendrecv_init(0), NRT_FAILURE);
	IS(nrt_async_sendrecv_close(0), NRT_FAILURE);
	IS(nrt_async_sendrecv_flush(0), NRT_FAILURE);
	IS(nrt_async_sendrecv_connect("10.0.0.1", 0, 0, &comm), NRT_RESOURCE);
	IS(nrt_async_sendrecv_accept("10.0.0.1", 0, 0, &comm), NRT_RESOURCE);
	IS(nrt_async_sendrecv_connect(NULL, 0, 0, &comm), NRT_INVALID);
	IS(nrt_async_sendrecv_accept("10.0.0.1", 0, 0, NULL), NRT_INVALID);
	IS(nrt_async_sendrecv_test_comm(comm, &done), NRT_INVALID_HANDLE);
	IS(nrt_async_sendrecv_send_tensor(NULL, 0, 0, comm, &request), NRT_INVALID_HANDLE);
	IS(nrt_async_sendrecv_recv_tensor(NULL, 0, 0, comm, &request), NRT_INVALID_HANDLE);
	IS(nrt_async_sendrecv_test_request(request, &done, &size), NRT_INVALID_HANDLE);
	assert_null(comm);
	assert_null(request);
	assert_true(done);
	assert_int_equal(size, 5);
}

static void test_sendrecv(void **state)
{
	int n = 7;

	(void)state;
	check_all(NRT_SUCCESS);
	nrt_close();
	check_all(NRT_CLOSED);
	assert_int_equal(nrt_async_sendrecv_get_max_num_communicators_per_lnc(&n), NRT_SUCCESS);
	assert_int_equal(n, 0);
	n = 7;
	assert_int_equal(nrt_async_sendrecv_get_max_num_pending_request(&n), NRT_SUCCESS);
	assert_int_equal(n, 0);
	assert_int_equal(nrt_async_sendrecv_get_max_num_pending_request(NULL), NRT_INVALID);
	assert_int_equal(nrt_async_sendrecv_get_max_num_communicators_per_lnc(NULL), NRT_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_L7_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sendrecv, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

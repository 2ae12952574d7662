// SPDX-License-Identifier: GPL-2.0-only
/* Debug streams and other hosts: what there is not, and that it is said the right way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

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

static void test_stream(void **state)
{
	ndebug_stream_event_header_t header = { .data_size = 77 };
	void *payload = &header;
	struct pollfd pfd = { .events = POLLIN };
	int a = -1, b = -1, c = -1, status;
	pid_t pid;

	(void)state;
	assert_int_equal(nrt_debug_client_connect(0, &a), NRT_SUCCESS);
	assert_int_equal(nrt_debug_client_connect(1, &b), NRT_SUCCESS);
	assert_int_equal(nrt_debug_client_connect(0, &c), NRT_INVALID);
	assert_int_equal(nrt_debug_client_connect(-1, &c), NRT_INVALID);
	assert_int_equal(nrt_debug_client_connect(99, &c), NRT_INVALID);
	assert_int_equal(nrt_debug_client_connect(2, NULL), NRT_INVALID);
	assert_int_equal(c, -1);
	pfd.fd = a;
	assert_int_equal(poll(&pfd, 1, 0), 0);
	assert_int_equal(nrt_debug_client_read_one_event(a, &header, &payload), NRT_QUEUE_EMPTY);
	assert_int_equal(nrt_debug_client_read_one_event(b, &header, &payload), NRT_QUEUE_EMPTY);
	assert_int_equal(header.data_size, 77);
	assert_ptr_equal(payload, &header);
	assert_int_equal(nrt_debug_client_read_one_event(a, NULL, &payload), NRT_INVALID);
	assert_int_equal(nrt_debug_client_read_one_event(a, &header, NULL), NRT_INVALID);
	assert_int_equal(nrt_debug_client_read_one_event(-1, &header, &payload), NRT_INVALID);
	assert_int_equal(nrt_debug_client_read_one_event(0, &header, &payload), NRT_INVALID);
	/* Only descriptors of this kind are closed. */
	nrt_debug_client_connect_close(0);
	assert_int_not_equal(fcntl(0, F_GETFD), -1);
	nrt_debug_client_connect_close(-1);
	nrt_debug_client_connect_close(a);
	assert_int_equal(fcntl(a, F_GETFD), -1);
	assert_int_equal(nrt_debug_client_read_one_event(a, &header, &payload), NRT_INVALID);
	assert_int_equal(nrt_debug_client_connect(0, &a), NRT_SUCCESS);
	pid = fork();
	if (!pid)
		_exit(nrt_debug_client_read_one_event(a, &header, &payload) != NRT_UNINITIALIZED);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	nrt_close();
	assert_int_equal(fcntl(a, F_GETFD), -1);
	assert_int_equal(fcntl(b, F_GETFD), -1);
	assert_int_equal(nrt_debug_client_connect(0, &a), NRT_CLOSED);
	assert_int_equal(nrt_debug_client_read_one_event(a, &header, &payload), NRT_CLOSED);
	nrt_debug_client_connect_close(a);
}

/* A descriptor whose close() takes long; and one that is not to be closed meanwhile. */
static atomic_int slow = -1, other = -1;
static atomic_bool closing, both;

int __real_close(int fd);
int __wrap_close(int fd)
{
	if (fd == atomic_load(&other) && atomic_load(&closing))
		atomic_store(&both, true);
	if (fd == atomic_load(&slow)) {
		atomic_store(&closing, true);
		for (int i = 0; i < 50 && !atomic_load(&both); i++)
			usleep(10000);
		atomic_store(&closing, false);
	}
	return __real_close(fd);
}

static void *disconnect_slow(void *arg)
{
	nrt_debug_client_connect_close(atomic_load(&slow));
	return arg;
}

/* nrt_close() and who disconnects do not go through the list at the same time. */
static void test_close(void **state)
{
	pthread_t thread;
	int a = -1, b = -1;

	(void)state;
	assert_int_equal(nrt_debug_client_connect(0, &a), NRT_SUCCESS);
	assert_int_equal(nrt_debug_client_connect(1, &b), NRT_SUCCESS);
	atomic_store(&slow, a);
	atomic_store(&other, b);
	assert_int_equal(pthread_create(&thread, NULL, disconnect_slow, NULL), 0);
	while (!atomic_load(&closing))
		usleep(1000);
	nrt_close();
	pthread_join(thread, NULL);
	atomic_store(&slow, -1);
	atomic_store(&other, -1);
	assert_false(atomic_load(&both));
	assert_int_equal(fcntl(a, F_GETFD), -1);
	assert_int_equal(fcntl(b, F_GETFD), -1);
}

static void test_no_descriptors(void **state)
{
	struct rlimit old, none;
	int fd = -1;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(nrt_debug_client_connect(0, &fd), NRT_RESOURCE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(nrt_debug_client_connect(0, &fd), NRT_SUCCESS);
	nrt_debug_client_connect_close(fd);
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
		cmocka_unit_test_setup_teardown(test_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(test_close, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sendrecv, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

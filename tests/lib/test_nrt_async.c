// SPDX-License-Identifier: GPL-2.0-only
/* Queued requests of the runtime interface: order, status, back-pressure, eventfds, close. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <nrt/ndebug_stream.h>
#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>

#include "fake_driver.h"
#include "test_neffs.h"

#define INFLIGHT "NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS"
#define UNSET ((NRT_STATUS)0x5555)

struct io {
	nrt_tensor_t *x, *y;
	nrt_tensor_set_t *in, *out;
	uint8_t bytes[1024];
};

static nrt_tensor_t *tensor(int vnc)
{
	nrt_tensor_t *t = NULL;

	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, vnc, 1024, "t", &t),
			 NRT_SUCCESS);
	return t;
}

static void io_init(struct io *io, uint8_t seed)
{
	io->x = tensor(0);
	io->y = tensor(0);
	assert_int_equal(nrt_allocate_tensor_set(&io->in), NRT_SUCCESS);
	assert_int_equal(nrt_allocate_tensor_set(&io->out), NRT_SUCCESS);
	assert_int_equal(nrt_add_tensor_to_tensor_set(io->in, "x", io->x), NRT_SUCCESS);
	assert_int_equal(nrt_add_tensor_to_tensor_set(io->out, "y", io->y), NRT_SUCCESS);
	for (size_t i = 0; i < sizeof(io->bytes); i++)
		io->bytes[i] = (uint8_t)(i * 13 + seed);
}

static void io_free(struct io *io)
{
	nrt_destroy_tensor_set(&io->in);
	nrt_destroy_tensor_set(&io->out);
	nrt_tensor_free(&io->x);
	nrt_tensor_free(&io->y);
}

static nrt_model_t *load(void)
{
	struct neff_bytes n = make_list_neff();
	nrt_model_t *m = NULL;

	assert_int_equal(nrt_load(n.data, n.size, 0, -1, &m), NRT_SUCCESS);
	free(n.data);
	return m;
}

static void init(const char *inflight, const char *timeout)
{
	nrt_close();
	unsetenv(INFLIGHT);
	unsetenv("NEURON_RT_EXEC_TIMEOUT");
	if (inflight)
		setenv(INFLIGHT, inflight, 1);
	if (timeout)
		setenv("NEURON_RT_EXEC_TIMEOUT", timeout, 1);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
}

static int setup(void **state)
{
	(void)state;
	fake.nr_devices = 2;
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	init(NULL, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake.stuck = false;
	nrt_close();
	return fake_used() || fake.mapped || fake.dev[0].opens || fake.dev[1].opens;
}

/* By eventfd; a minute is for ever. */
static void wait_fd(int fd, uint64_t want)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t sum = 0, n;

	while (sum < want) {
		assert_int_equal(poll(&pfd, 1, 60000), 1);
		assert_int_equal(read(fd, &n, sizeof(n)), sizeof(n));
		sum += n;
	}
	assert_int_equal(sum, want);
}

static void wait_seq(nrta_seq_t seq)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	bool done = false;

	assert_int_equal(nrta_event_register_seq_id_completion(seq, fd), NRT_SUCCESS);
	wait_fd(fd, 1);
	close(fd);
	assert_int_equal(nrta_is_completed(seq, &done), NRT_SUCCESS);
	assert_true(done);
}

/* Write, run and read without waiting in between, but for the order of queues. */
static void test_round(void **state)
{
	uint8_t want[1024], got[1024] = { 0 };
	NRT_STATUS status[3] = { UNSET, UNSET, UNSET };
	nrta_seq_t seq[3], last;
	nrt_model_t *m = load();
	struct io io;

	(void)state;
	io_init(&io, 5);
	assert_int_equal(nrta_get_sequence(0, NRTA_XU_TENSOR_OP, 1, &last), NRT_SUCCESS);
	assert_int_equal(last & 0xffffffffffff, 0);
	assert_int_equal(nrta_tensor_write(io.x, io.bytes, 0, 1024, 1, &status[0], &seq[0]),
			 NRT_SUCCESS);
	assert_int_equal(seq[0], last + 1);
	wait_seq(seq[0]);
	assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, &status[1], &seq[1]),
			 NRT_SUCCESS);
	assert_true(seq[1] >> 48 != seq[0] >> 48);
	wait_seq(seq[1]);
	assert_int_equal(nrta_tensor_read(got, io.y, 0, 1024, 1, &status[2], &seq[2]),
			 NRT_SUCCESS);
	assert_int_equal(seq[2], seq[0] + 1);
	wait_seq(seq[2]);
	for (int i = 0; i < 3; i++)
		assert_int_equal(status[i], NRT_SUCCESS);
	list_expected(io.bytes, want);
	assert_memory_equal(got, want, 1024);
	assert_int_equal(nrta_get_sequence(0, NRTA_XU_TENSOR_OP, 1, &last), NRT_SUCCESS);
	assert_int_equal(last, seq[2]);
	/* Copies, and no place for a status. */
	assert_int_equal(nrta_tensor_copy(io.y, 0, io.x, 0, 1024, 0, NULL, NULL), NRT_SUCCESS);
	assert_int_equal(nrta_tensor_read(got, io.x, 1, 1023, 0, &status[0], &seq[0]),
			 NRT_SUCCESS);
	wait_seq(seq[0]);
	assert_memory_equal(got, want + 1, 1023);
	io_free(&io);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
}

static void test_arguments(void **state)
{
	nrt_model_t *m = load();
	nrta_seq_t seq = 0x1234;
	NRT_STATUS status = UNSET;
	struct io io;
	bool done;
	char c;

	(void)state;
	io_init(&io, 1);
	assert_int_equal(nrta_tensor_write(io.x, &c, 1024, 1, 0, &status, &seq), NRT_INVALID);
	assert_int_equal(nrta_tensor_write(io.x, NULL, 0, 1, 0, &status, &seq), NRT_INVALID);
	assert_int_equal(nrta_tensor_write(NULL, &c, 0, 1, 0, &status, &seq), NRT_INVALID);
	assert_int_equal(nrta_tensor_write(io.x, &c, 0, 1, 2, &status, &seq), NRT_INVALID);
	assert_int_equal(nrta_tensor_write(io.x, &c, 0, 1, -1, &status, &seq), NRT_INVALID);
	assert_int_equal(nrta_tensor_copy(io.x, UINT64_MAX, io.y, 0, 2, 0, &status, &seq),
			 NRT_INVALID);
	assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 1, &status, &seq), NRT_INVALID);
	assert_int_equal(nrta_execute_schedule(m, io.x, io.out, 0, &status, &seq), NRT_INVALID);
	assert_int_equal(nrta_execute_schedule((nrt_model_t *)&io, io.in, io.out, 0, &status, &seq),
			 NRT_INVALID_HANDLE);
	assert_int_equal(seq, 0x1234);
	assert_int_equal(status, UNSET);
	assert_int_equal(nrta_is_completed(0, &done), NRT_INVALID);
	assert_int_equal(nrta_is_completed(1, &done), NRT_INVALID);
	assert_int_equal(nrta_is_completed(UINT64_MAX, &done), NRT_INVALID);
	assert_int_equal(nrta_get_sequence(99, NRTA_XU_COMPUTE, 0, &seq), NRT_INVALID);
	assert_int_equal(nrta_get_sequence(0, NRTA_XU_TYPE_NUM, 0, &seq), NRT_INVALID);
	assert_int_equal(nrta_get_sequence(0, NRTA_XU_COMPUTE, 0, NULL), NRT_INVALID);
	/* A number that was not given out yet. */
	assert_int_equal(nrta_get_sequence(0, NRTA_XU_COMPUTE, 0, &seq), NRT_SUCCESS);
	assert_int_equal(nrta_is_completed(seq + 1, &done), NRT_INVALID);
	assert_int_equal(nrta_event_register_seq_id_completion(seq + 1, 0), NRT_INVALID);
	assert_int_equal(nrta_event_register_xu_completion(0, NRTA_XU_COMPUTE, 0, 9999),
			 NRT_INVALID);
	assert_int_equal(nrta_event_register_xu_completion(0, NRTA_XU_COMPUTE, 0, -2), NRT_INVALID);
	/* An error of the tensors is the status of the execution. */
	assert_int_equal(nrta_execute_schedule(m, io.in, NULL, 0, &status, &seq), NRT_SUCCESS);
	wait_seq(seq);
	assert_int_equal(status, NRT_INVALID);
	io_free(&io);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
}

/* The queue takes as many as it was made for; then NRT_QUEUE_FULL, and nothing changes. */
static void test_back_pressure(void **state)
{
	NRT_STATUS status[4] = { UNSET, UNSET, UNSET, UNSET };
	nrta_seq_t seq[4] = { 0 };
	nrt_model_t *m;
	struct io io;
	int fd;

	(void)state;
	init("3", "3");
	m = load();
	io_init(&io, 9);
	fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(nrta_event_register_xu_completion(0, NRTA_XU_COMPUTE, 0, fd),
			 NRT_SUCCESS);
	fake.stuck = true;
	for (int i = 0; i < 3; i++)
		assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, &status[i], &seq[i]),
				 NRT_SUCCESS);
	assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, &status[3], &seq[3]),
			 NRT_QUEUE_FULL);
	assert_int_equal(seq[3], 0);
	wait_fd(fd, 3);
	for (int i = 0; i < 3; i++)
		wait_seq(seq[i]);
	for (int i = 0; i < 3; i++)
		assert_int_equal(status[i], NRT_TIMEOUT);
	assert_int_equal(status[3], UNSET);
	fake.stuck = false;
	assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, &status[3], &seq[3]),
			 NRT_SUCCESS);
	wait_fd(fd, 1);
	wait_seq(seq[3]);
	assert_int_equal(status[3], NRT_SUCCESS);
	assert_int_equal(nrta_event_register_xu_completion(0, NRTA_XU_COMPUTE, 0, -1),
			 NRT_SUCCESS);
	close(fd);
	io_free(&io);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
}

/* Everything may be freed while the request is queued. */
static void test_free_early(void **state)
{
	NRT_STATUS status[2] = { UNSET, UNSET };
	uint8_t got[1024], want[1024];
	unsigned int starts;
	nrt_tensor_t *y;
	nrta_seq_t seq[2];
	uint64_t before;
	nrt_model_t *m;
	struct io io;

	(void)state;
	init(NULL, "3");
	before = fake_used();
	m = load();
	io_init(&io, 77);
	assert_int_equal(nrt_tensor_write(io.x, io.bytes, 0, 1024), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate_slice(io.y, 0, 1024, "y", &y), NRT_SUCCESS);
	fake.stuck = true;
	starts = fake.starts;
	assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, &status[0], &seq[0]),
			 NRT_SUCCESS);
	assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, &status[1], &seq[1]),
			 NRT_SUCCESS);
	fake_wait_start(starts);
	io_free(&io);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
	wait_seq(seq[0]);
	fake.stuck = false;
	wait_seq(seq[1]);
	assert_int_equal(status[0], NRT_TIMEOUT);
	/* Whether engines ran again in time for it is a matter of luck. */
	assert_true(status[1] == NRT_SUCCESS || status[1] == NRT_TIMEOUT);
	if (status[1] == NRT_SUCCESS) {
		assert_int_equal(nrt_tensor_read(y, got, 0, 1024), NRT_SUCCESS);
		list_expected(io.bytes, want);
		assert_memory_equal(got, want, 1024);
	}
	nrt_tensor_free(&y);
	/*
	 * A request frees what it holds before it is complete; the scratchpad stays with
	 * its core.
	 */
	assert_int_equal(fake_used(), before);
}

static void test_close(void **state)
{
	NRT_STATUS status[2] = { UNSET, UNSET };
	unsigned int starts;
	nrta_seq_t seq;
	nrt_model_t *m;
	struct io io;
	bool done;

	(void)state;
	init(NULL, "3");
	m = load();
	io_init(&io, 3);
	fake.stuck = true;
	starts = fake.starts;
	for (int i = 0; i < 2; i++)
		assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, &status[i], &seq),
				 NRT_SUCCESS);
	fake_wait_start(starts);
	nrt_close();
	fake.stuck = false;
	assert_int_equal(status[0], NRT_TIMEOUT);
	assert_int_equal(status[1], NRT_CLOSED);
	assert_int_equal(nrta_is_completed(seq, &done), NRT_CLOSED);
	assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, NULL, NULL), NRT_CLOSED);
	assert_int_equal(nrta_tensor_write(io.x, &done, 0, 1, 0, NULL, NULL), NRT_CLOSED);
	io_free(&io);
	/* Numbers of the life before are unknown in the next one. */
	init(NULL, NULL);
	assert_int_equal(nrta_is_completed(seq, &done), NRT_INVALID);
	m = load();
	io_init(&io, 3);
	assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, &status[0], &seq),
			 NRT_SUCCESS);
	wait_seq(seq);
	assert_int_equal(status[0], NRT_SUCCESS);
	io_free(&io);
}

static void test_watch(void **state)
{
	int a = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), b = eventfd(0, EFD_CLOEXEC);
	nrt_model_t *m;
	nrta_seq_t seq;
	uint64_t n;
	struct io io;

	(void)state;
	init(NULL, "3");
	m = load();
	io_init(&io, 3);
	fake.stuck = true;
	assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, NULL, &seq), NRT_SUCCESS);
	assert_int_equal(nrta_event_register_seq_id_completion(seq, a), NRT_SUCCESS);
	/* Another eventfd takes its place; the caller may close its descriptor. */
	assert_int_equal(nrta_event_register_seq_id_completion(seq, b), NRT_SUCCESS);
	n = (uint64_t)dup(b);
	close(b);
	wait_fd((int)n, 1);
	close((int)n);
	assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, NULL, &seq), NRT_SUCCESS);
	assert_int_equal(nrta_event_register_seq_id_completion(seq, a), NRT_SUCCESS);
	assert_int_equal(nrta_event_register_seq_id_completion(seq, -1), NRT_SUCCESS);
	assert_int_equal(nrta_event_register_seq_id_completion(seq, -1), NRT_SUCCESS);
	fake.stuck = false;
	wait_seq(seq);
	assert_int_equal(read(a, &n, sizeof(n)), -1);
	close(a);
	io_free(&io);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
}

/* ---- nrt_execute() that queues ------------------------------------------------------- */

struct seen {
	int fd;
	uint64_t jobs;
	uint32_t model, vnc;
	NRT_STATUS status;
};

static void callback(void *params, uint32_t model_id, uint32_t vnc, uint64_t job_id,
		     NRT_STATUS status)
{
	static const uint64_t one = 1;
	struct seen *seen = params;
	uint32_t n;

	/* The runtime may be used here. */
	if (nrt_get_visible_vnc_count(&n) == NRT_SUCCESS && job_id == seen->jobs + 1)
		seen->jobs++;
	seen->model = model_id;
	seen->vnc = vnc;
	seen->status = status;
	if (write(seen->fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static void test_implicit(void **state)
{
	struct seen seen = { .fd = eventfd(0, EFD_CLOEXEC) };
	uint8_t got[1024], want[1024];
	nrt_model_t *m;
	struct io io;

	(void)state;
	setenv(INFLIGHT, "64", 1);
	nrt_close();
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_INVALID);
	init("2", NULL);
	m = load();
	io_init(&io, 21);
	assert_int_equal(nrt_tensor_write(io.x, io.bytes, 0, 1024), NRT_SUCCESS);
	/* Without a callback it waits. */
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_check_output_completion(io.y, 0, 1), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_check_output_completion(io.y, 20000, 2), NRT_TIMEOUT);
	assert_int_equal(nrt_register_async_exec_callback(callback, &seen), NRT_SUCCESS);
	/* More than fit: the third waits for the first. */
	for (int i = 0; i < 10; i++)
		assert_int_equal(nrt_execute(m, io.in, io.out), NRT_SUCCESS);
	assert_int_equal(nrt_async_drain_queued_execs(0), NRT_SUCCESS);
	wait_fd(seen.fd, 10);
	assert_int_equal(seen.jobs, 10);
	assert_int_equal(seen.model, 1001);
	assert_int_equal(seen.vnc, 0);
	assert_int_equal(seen.status, NRT_SUCCESS);
	assert_int_equal(nrt_tensor_check_output_completion(io.y, -1, 11), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_reset_output_completion(io.y), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_check_output_completion(io.y, 0, 1), NRT_TIMEOUT);
	assert_int_equal(nrt_tensor_check_output_completion(NULL, 0, 1), NRT_INVALID);
	assert_int_equal(nrt_tensor_reset_output_completion(NULL), NRT_INVALID);
	assert_int_equal(nrt_tensor_read(io.y, got, 0, 1024), NRT_SUCCESS);
	list_expected(io.bytes, want);
	assert_memory_equal(got, want, 1024);
	/* Several times is another call, and waits: also once. */
	assert_int_equal(nrt_tensor_check_output_completion(io.y, 0, 1), NRT_TIMEOUT);
	assert_int_equal(nrt_execute_repeat(m, io.in, io.out, 1), NRT_SUCCESS);
	assert_int_equal(nrt_async_drain_queued_execs(0), NRT_SUCCESS);
	assert_int_equal(seen.jobs, 10);
	/* Errors come through the callback. */
	fake.dma_error = NEURON_ISA_ERR_DMA_ACCESS;
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_SUCCESS);
	wait_fd(seen.fd, 1);
	assert_int_equal(seen.status, NRT_EXEC_OOB);
	assert_int_equal(nrt_async_drain_queued_execs(99), NRT_INVALID);
	close(seen.fd);
	io_free(&io);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
}

/* Those who wait while the runtime is closed, and opened again before they look. */
struct waiter {
	pthread_t thread;
	nrt_tensor_t *tensor;		/* NULL: for the queue of core 0 */
	atomic_bool there;
	NRT_STATUS status;
};

static void *wait_on(void *arg)
{
	struct waiter *w = arg;

	atomic_store(&w->there, true);
	w->status = w->tensor ? nrt_tensor_check_output_completion(w->tensor, -1, 1000) :
				nrt_async_drain_queued_execs(0);
	return NULL;
}

/* nrt_close() and nrt_init() while it waits. */
static void closed_waiter(struct waiter *w)
{
	struct timespec end;

	w->status = UNSET;
	assert_int_equal(pthread_create(&w->thread, NULL, wait_on, w), 0);
	while (!atomic_load(&w->there))
		usleep(1000);
	/* It is inside by then. */
	usleep(100000);
	nrt_close();
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 20;
	assert_int_equal(pthread_timedjoin_np(w->thread, NULL, &end), 0);
	assert_int_equal(w->status, NRT_CLOSED);
}

static void test_closed_waiters(void **state)
{
	struct seen seen = { .fd = eventfd(0, EFD_CLOEXEC) };
	struct waiter output = { 0 }, drain = { 0 };
	nrt_model_t *m;
	struct io io;

	(void)state;
	init("4", "2");
	io_init(&io, 9);
	output.tensor = io.y;
	closed_waiter(&output);
	io_free(&io);
	/* The first one comes to its end while it closes, the others are given up. */
	m = load();
	io_init(&io, 9);
	assert_int_equal(nrt_register_async_exec_callback(callback, &seen), NRT_SUCCESS);
	fake.stuck = true;
	for (int i = 0; i < 3; i++)
		assert_int_equal(nrt_execute(m, io.in, io.out), NRT_SUCCESS);
	closed_waiter(&drain);
	io_free(&io);
	close(seen.fd);
}

/* Names that programs are written with: this is to compile. */
static void test_C8_names(void **state)
{
	enum nrt_dtype dtype = NRT_DTYPE_INT8;
	enum nrt_op_type op = NRT_OP_ADD;
	enum nrt_cc_op_type cc_op = NRT_CC_ALLREDUCE;
	enum nrt_tensor_usage usage = NRT_TENSOR_USAGE_OUTPUT;
	ndebug_stream_event_type_t type = NDEBUG_STREAM_EVENT_TYPE_DEBUG_TENSOR_READ;
	nrt_tensor_batch_offset_t offset = UINT64_MAX;
	nrt_tensor_batch_size_t size = UINT64_MAX;
	nrta_seq_t seq;
	nrta_xu_id_t id;

	(void)state;
	assert_int_equal(dtype + op + cc_op + usage + type, 2 + 0 + 1 + 1 + 1);
	assert_true(offset + size == UINT64_MAX - 1);
	/* Core 1's only queue for executions. */
	assert_int_equal(nrta_get_sequence(1, NRTA_XU_COMPUTE, 0, &seq), NRT_SUCCESS);
	id = NRTA_SEQ_GET_XU_ID(seq);
	assert_int_equal(id, seq >> 48);
	assert_int_equal(NRTA_SEQ_GET_SEQ_NUM(seq), 0);
	assert_int_equal(NRTA_SEQ_GET_SEQ_NUM(UINT64_MAX), NRTA_SEQ_NUM_MAX);
}

/* Queues the next one as soon as one is done, while the queue is as full as can be. */
struct chain {
	nrt_model_t *model;
	struct io *io;
	int fd;
	NRT_STATUS execute, drain;
};

static void chaining(void *params, uint32_t model_id, uint32_t vnc, uint64_t job_id,
		     NRT_STATUS status)
{
	static const uint64_t one = 1;
	struct chain *c = params;

	(void)model_id;
	(void)vnc;
	(void)job_id;
	(void)status;
	c->execute = nrt_execute(c->model, c->io->in, c->io->out);
	c->drain = nrt_async_drain_queued_execs(0);
	if (write(c->fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static void test_callback_full(void **state)
{
	struct chain c = { .fd = eventfd(0, EFD_CLOEXEC) };
	struct io io;

	(void)state;
	init("1", NULL);
	c.model = load();
	c.io = &io;
	io_init(&io, 21);
	assert_int_equal(nrt_register_async_exec_callback(chaining, &c), NRT_SUCCESS);
	assert_int_equal(nrt_execute(c.model, io.in, io.out), NRT_SUCCESS);
	wait_fd(c.fd, 1);
	assert_int_equal(nrt_async_drain_queued_execs(0), NRT_SUCCESS);
	assert_int_equal(c.execute, NRT_QUEUE_FULL);
	assert_int_equal(c.drain, NRT_INVALID);
	close(c.fd);
	io_free(&io);
	assert_int_equal(nrt_unload(c.model), NRT_SUCCESS);
}

/* A child has no threads and no queue. */
static void test_fork(void **state)
{
	nrt_model_t *m = load();
	nrta_seq_t seq;
	struct io io;
	int status;
	bool done;
	pid_t pid;

	(void)state;
	io_init(&io, 1);
	assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, NULL, &seq), NRT_SUCCESS);
	wait_seq(seq);
	pid = fork();
	if (!pid) {
		bool ok = nrta_is_completed(seq, &done) == NRT_UNINITIALIZED;

		nrt_close();
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, NULL, &seq), NRT_SUCCESS);
	wait_seq(seq);
	io_free(&io);
}

/* ---- the life of the runtime, from several threads ----------------------------------- */

/* A child that hangs is killed, which fails the program. */
static int setup_alarm(void **state)
{
	alarm(60);
	return setup(state);
}

static int teardown_alarm(void **state)
{
	alarm(0);
	return teardown(state);
}

struct from_callback {
	struct io *io;
	int fd;
	atomic_bool closing;	/* wait for it first */
	bool wait;
	sigset_t blocked;
	NRT_STATUS drain, output, used;
};

static void closing_callback(void *params, uint32_t model_id, uint32_t vnc, uint64_t job_id,
			     NRT_STATUS status)
{
	static const uint64_t one = 1;
	struct from_callback *c = params;
	uint8_t byte;

	(void)model_id;
	(void)vnc;
	(void)job_id;
	(void)status;
	pthread_sigmask(SIG_BLOCK, NULL, &c->blocked);
	if (c->wait) {
		while (!atomic_load(&c->closing))
			usleep(1000);
		/* By then nrt_close() waits for this thread. */
		usleep(200000);
		c->drain = nrt_async_drain_queued_execs(0);
		c->output = nrt_tensor_check_output_completion(c->io->y, -1, 1000);
	} else {
		nrt_close();
	}
	c->used = nrt_tensor_read(c->io->y, &byte, 0, 1);
	if (write(c->fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

/* Queue a run whose end calls closing_callback(). */
static nrt_model_t *run_for_callback(struct from_callback *c, struct io *io)
{
	nrt_model_t *m;

	init("1", NULL);
	m = load();
	io_init(io, 3);
	c->io = io;
	assert_int_equal(nrt_register_async_exec_callback(closing_callback, c), NRT_SUCCESS);
	assert_int_equal(nrt_execute(m, io->in, io->out), NRT_SUCCESS);
	return m;
}

/* It would wait for its own end: refused, and the runtime goes on. */
static void test_L1_close_in_callback(void **state)
{
	struct from_callback c = { .fd = eventfd(0, EFD_CLOEXEC) };
	nrt_model_t *m;
	struct io io;

	(void)state;
	m = run_for_callback(&c, &io);
	wait_fd(c.fd, 1);
	assert_int_equal(c.used, NRT_SUCCESS);
	assert_int_equal(nrt_register_async_exec_callback(NULL, NULL), NRT_SUCCESS);
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_SUCCESS);
	close(c.fd);
	io_free(&io);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
}

/* The same while nrt_close() waits for the thread; what is left can still be read. */
static void test_L18_drain_in_callback_while_closing(void **state)
{
	struct from_callback c = { .fd = eventfd(0, EFD_CLOEXEC), .wait = true };
	struct io io;

	(void)state;
	run_for_callback(&c, &io);
	atomic_store(&c.closing, true);
	nrt_close();
	wait_fd(c.fd, 1);
	assert_int_equal(c.drain, NRT_INVALID);
	assert_int_equal(c.output, NRT_CLOSED);
	assert_int_equal(c.used, NRT_SUCCESS);
	close(c.fd);
	io_free(&io);
}

struct mutual {
	pthread_barrier_t both;
	NRT_STATUS drain[2];
};

static void drain_the_other(void *params, uint32_t model_id, uint32_t vnc, uint64_t job_id,
			    NRT_STATUS status)
{
	struct mutual *m = params;

	(void)model_id;
	(void)job_id;
	(void)status;
	pthread_barrier_wait(&m->both);
	m->drain[vnc] = nrt_async_drain_queued_execs(!vnc);
}

/* Two workers that drain each other's queue would wait for ever: both are refused. */
static void test_L18_callbacks_drain_each_other(void **state)
{
	struct neff_bytes n = make_list_neff();
	struct mutual both = { .drain = { UNSET, UNSET } };
	nrt_model_t *m[2];
	struct io io[2];

	(void)state;
	init("1", NULL);
	pthread_barrier_init(&both.both, NULL, 2);
	assert_int_equal(nrt_register_async_exec_callback(drain_the_other, &both), NRT_SUCCESS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(nrt_load(n.data, n.size, i, -1, &m[i]), NRT_SUCCESS);
		io_init(&io[i], 3);
		assert_int_equal(nrt_execute(m[i], io[i].in, io[i].out), NRT_SUCCESS);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(nrt_async_drain_queued_execs(i), NRT_SUCCESS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(both.drain[i], NRT_INVALID);
		io_free(&io[i]);
	}
	pthread_barrier_destroy(&both.both);
	free(n.data);
}

/* A fault of a worker ends in the program's handler; other signals go to its own threads. */
static void test_L24_signals_of_a_worker(void **state)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	struct from_callback c = { .fd = eventfd(0, EFD_CLOEXEC) };
	struct io io;

	(void)state;
	run_for_callback(&c, &io);
	wait_fd(c.fd, 1);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		assert_false(sigismember(&c.blocked, faults[i]));
	assert_true(sigismember(&c.blocked, SIGTERM));
	assert_true(sigismember(&c.blocked, SIGPIPE));
	close(c.fd);
	io_free(&io);
}

/* Calls of threads that do not stop while the runtime is closed and opened again. */
struct calls {
	nrt_tensor_t *tensor;
	atomic_bool turned_away;	/* one of them has been */
	atomic_bool reopening;
	atomic_bool over;
	atomic_uint late;		/* let in after another had been turned away */
};

static void *read_on(void *arg)
{
	struct calls *c = arg;
	uint8_t byte;

	while (!atomic_load(&c->over)) {
		bool before = atomic_load(&c->turned_away);

		if (nrt_tensor_read(c->tensor, &byte, 0, 1) == NRT_CLOSED)
			atomic_store(&c->turned_away, true);
		else if (before && !atomic_load(&c->reopening))
			atomic_fetch_add(&c->late, 1);
	}
	return NULL;
}

static void *count_on(void *arg)
{
	struct calls *c = arg;
	uint32_t n;

	while (!atomic_load(&c->over))
		nrt_get_visible_vnc_count(&n);
	return NULL;
}

/*
 * Threads that do not stop calling keep neither nrt_close() nor nrt_init() waiting for good:
 * from the first call that is turned away on, none is let in.
 */
static void test_L13_close_while_others_call(void **state)
{
	struct calls c = { .tensor = tensor(0) };
	pthread_t threads[6];

	(void)state;
	for (int i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? count_on : read_on, &c),
				 0);
	usleep(50000);
	nrt_close();
	while (!atomic_load(&c.turned_away))
		usleep(1000);
	atomic_store(&c.reopening, true);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	atomic_store(&c.over, true);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&c.late), 0);
	nrt_tensor_free(&c.tensor);
}

/* A device whose close() takes as long as a fork(). */
static atomic_int slow_fd = -1;
static atomic_bool in_close, forked;

int __real_neuron_sys_close(int fd);
int __wrap_neuron_sys_close(int fd);
int __wrap_neuron_sys_close(int fd)
{
	if (fd == atomic_load(&slow_fd)) {
		atomic_store(&in_close, true);
		for (int i = 0; i < 50 && !atomic_load(&forked); i++)
			usleep(10000);
	}
	return __real_neuron_sys_close(fd);
}

/* ThreadSanitizer does not know that a child has one thread, and locks of its own. */
#ifndef __SANITIZE_THREAD__
static void *close_runtime(void *arg)
{
	nrt_close();
	return arg;
}

/* The child of a process that is in nrt_close() touches neither devices nor their numbers. */
static void test_L14_fork_while_closing(void **state)
{
	pthread_t thread;
	int status;
	pid_t pid;

	(void)state;
	/* The second device is slow to close: the first one has been freed by then. */
	atomic_store(&slow_fd, FAKE_FD + 1);
	assert_int_equal(pthread_create(&thread, NULL, close_runtime, NULL), 0);
	while (!atomic_load(&in_close))
		usleep(1000);
	pid = fork();
	if (!pid) {
		nrta_seq_t seq;

		_exit(fake.dev[0].opens || fake.dev[1].opens ||
		      nrta_get_sequence(0, NRTA_XU_COMPUTE, 0, &seq) != NRT_UNINITIALIZED);
	}
	atomic_store(&forked, true);
	pthread_join(thread, NULL);
	atomic_store(&slow_fd, -1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}
#endif

/* A descriptor that cannot take what it is told holds up neither the queue nor nrt_close(). */
static void full_descriptor(int fd)
{
	NRT_STATUS status = UNSET;
	nrt_model_t *m = load();
	nrta_seq_t seq;
	bool done = false;
	struct io io;

	io_init(&io, 3);
	assert_int_equal(nrta_event_register_xu_completion(0, NRTA_XU_COMPUTE, 0, fd), NRT_SUCCESS);
	assert_int_equal(nrta_execute_schedule(m, io.in, io.out, 0, &status, &seq), NRT_SUCCESS);
	while (!done)
		assert_int_equal(nrta_is_completed(seq, &done), NRT_SUCCESS);
	assert_int_equal(status, NRT_SUCCESS);
	/* The same for a request that is complete already. */
	assert_int_equal(nrta_event_register_seq_id_completion(seq, fd), NRT_SUCCESS);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	nrt_close();
	io_free(&io);
}

static void test_L17_full_eventfd(void **state)
{
	static const uint64_t most = UINT64_MAX - 1;
	int fd = eventfd(0, EFD_CLOEXEC);

	(void)state;
	assert_int_equal(write(fd, &most, sizeof(most)), sizeof(most));
	full_descriptor(fd);
	close(fd);
}

static void test_L17_full_pipe(void **state)
{
	static const char page[4096];
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(fds[1], page, sizeof(page)) > 0)
		;
	assert_int_equal(fcntl(fds[1], F_SETFL, 0), 0);
	full_descriptor(fds[1]);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round, setup, teardown),
		cmocka_unit_test_setup_teardown(test_C8_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_arguments, setup, teardown),
		cmocka_unit_test_setup_teardown(test_back_pressure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_free_early, setup, teardown),
		cmocka_unit_test_setup_teardown(test_close, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_implicit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_closed_waiters, setup, teardown),
		cmocka_unit_test_setup_teardown(test_callback_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L1_close_in_callback, setup_alarm,
						teardown_alarm),
		cmocka_unit_test_setup_teardown(test_L13_close_while_others_call, setup_alarm,
						teardown_alarm),
#ifndef __SANITIZE_THREAD__
		cmocka_unit_test_setup_teardown(test_L14_fork_while_closing, setup_alarm,
						teardown_alarm),
#endif
		cmocka_unit_test_setup_teardown(test_L17_full_eventfd, setup_alarm, teardown_alarm),
		cmocka_unit_test_setup_teardown(test_L17_full_pipe, setup_alarm, teardown_alarm),
		cmocka_unit_test_setup_teardown(test_L18_drain_in_callback_while_closing,
						setup_alarm, teardown_alarm),
		cmocka_unit_test_setup_teardown(test_L18_callbacks_drain_each_other, setup_alarm,
						teardown_alarm),
		cmocka_unit_test_setup_teardown(test_L24_signals_of_a_worker, setup_alarm,
						teardown_alarm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

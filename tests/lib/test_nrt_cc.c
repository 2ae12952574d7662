// SPDX-License-Identifier: GPL-2.0-only
/* Collectives of the runtime interface: ranks as threads and as processes, and who misbehaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>

#define FAKE_DEVICES 5	/* more cores than a transfer has sources */
#include "fake_driver.h"
#include "nrt/cc/comm.h"
#include "nrt/cc/hub.h"
#include "nrt/object/tensor.h"
#include "test_neffs.h"

#define MAX_RANKS 8		/* cores of two devices */
#define ELEMENTS 20000u
#define UNSET ((NRT_STATUS)0x5555)

/* Longer than the name of a socket may be. */
static char runtime_dir[200];

static int make_runtime_dir(void **state)
{
	(void)state;
	snprintf(runtime_dir, sizeof(runtime_dir), "/tmp/test_nrt_cc_%0130u_XXXXXX", 0);
	return !mkdtemp(runtime_dir) || setenv("XDG_RUNTIME_DIR", runtime_dir, 1);
}

static void directory_name(char name[256])
{
	snprintf(name, 256, "%s/neuron-nrt-%u", runtime_dir, geteuid());
}

/* Nothing is left in it. */
static int remove_runtime_dir(void **state)
{
	char name[256];

	(void)state;
	directory_name(name);
	return rmdir(name) || rmdir(runtime_dir);
}

static void init_devices(const char *timeout, uint32_t devices)
{
	static unsigned int port = 20000;
	char root[64];

	nrt_close();
	/* A place of its own for each test. */
	snprintf(root, sizeof(root), "127.0.0.1:%u", port++);
	setenv("NEURON_RT_ROOT_COMM_ID", root, 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", timeout, 1);
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_MICROCODE_MB", "0", 1);
	fake.nr_devices = devices;
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
}

static void init(const char *timeout)
{
	init_devices(timeout, 2);
}

static int setup(void **state)
{
	(void)state;
	init("60");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake.fail_at = 0;
	fake.stuck = false;
	fake.dma_error = 0;
	nrt_close();
	return fake_used() || fake.mapped || fake.dev[0].opens || fake.dev[1].opens;
}

/* ---- ranks as threads -------------------------------------------------------------- */

struct rank {
	pthread_t thread;
	uint32_t rank, count;
	NRT_STATUS (*fn)(struct rank *r);
	NRT_STATUS status;
	const void *arg;
};

static void *rank_main(void *arg)
{
	struct rank *r = arg;

	r->status = r->fn(r);
	return NULL;
}

/* Every rank is the core of that number. */
static void run_ranks(struct rank *ranks, uint32_t count, NRT_STATUS (*fn)(struct rank *r),
		      const void *arg)
{
	for (uint32_t i = 0; i < count; i++) {
		ranks[i] = (struct rank){ .rank = i, .count = count, .fn = fn, .arg = arg };
		assert_int_equal(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
	}
	for (uint32_t i = 0; i < count; i++)
		pthread_join(ranks[i].thread, NULL);
}

static void all_are(const struct rank *ranks, uint32_t count, NRT_STATUS want)
{
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(ranks[i].status, want);
}

static NRT_STATUS do_join(struct rank *r)
{
	return nrt_build_global_comm((int32_t)r->rank, r->rank, r->count);
}

static void join_all(uint32_t count)
{
	struct rank ranks[MAX_RANKS];

	run_ranks(ranks, count, do_join, NULL);
	all_are(ranks, count, NRT_SUCCESS);
}

static atomic_uint arrived;

static NRT_STATUS do_barriers(struct rank *r)
{
	for (unsigned int i = 1; i <= 50; i++) {
		NRT_STATUS status;

		atomic_fetch_add(&arrived, 1);
		status = nrt_barrier((int32_t)r->rank, r->rank, r->count);
		if (status != NRT_SUCCESS)
			return status;
		if (atomic_load(&arrived) < i * r->count)
			return NRT_FAILURE;
	}
	return NRT_SUCCESS;
}

static void test_barrier(void **state)
{
	struct rank ranks[MAX_RANKS];

	(void)state;
	for (uint32_t count = 1; count <= MAX_RANKS; count += count < 3 ? 1 : 5) {
		init("60");
		atomic_store(&arrived, 0);
		run_ranks(ranks, count, do_barriers, NULL);
		all_are(ranks, count, NRT_SUCCESS);
	}
	/* Two cores of a process cannot both be rank 0. */
	init("60");
	join_all(3);
	assert_int_equal(nrt_build_global_comm(4, 0, 2), NRT_INVALID);
	join_all(3);
	init("60");
	join_all(8);
	/* A core that is rank 7 of 8 cannot take part as another rank. */
	assert_int_equal(nrt_build_global_comm(7, 7, 8), NRT_SUCCESS);
	assert_int_equal(nrt_barrier(7, 6, 8), NRT_INVALID);
	assert_int_equal(nrt_cc_global_comm_init(7, 0, 1), NRT_INVALID);
	run_ranks(ranks, 8, do_barriers, NULL);
}

static NRT_STATUS do_gather(struct rank *r)
{
	static const uint32_t sizes[] = { 1, 17, 100000 };
	NRT_STATUS status = NRT_SUCCESS;

	for (size_t s = 0; s < 3 && status == NRT_SUCCESS; s++) {
		uint32_t size = sizes[s];
		uint8_t *in = malloc(size), *out = malloc(size * r->count);

		for (uint32_t i = 0; i < size; i++)
			in[i] = (uint8_t)(r->rank * 31 + i);
		status = nrt_all_gather((int32_t)r->rank, r->rank, r->count, size, in, out);
		for (uint32_t k = 0; k < r->count && status == NRT_SUCCESS; k++)
			for (uint32_t i = 0; i < size; i++)
				if (out[k * size + i] != (uint8_t)(k * 31 + i))
					status = NRT_FAILURE;
		free(in);
		free(out);
	}
	return status;
}

static NRT_STATUS do_uneven(struct rank *r)
{
	uint8_t in[16] = { 0 }, out[16 * MAX_RANKS] = { 0 };

	return nrt_all_gather((int32_t)r->rank, r->rank, r->count, r->rank == 2 ? 16 : 15, in, out);
}

static void test_gather(void **state)
{
	struct rank ranks[MAX_RANKS];
	uint8_t byte = 5, out = 0;

	(void)state;
	run_ranks(ranks, 8, do_gather, NULL);
	all_are(ranks, 8, NRT_SUCCESS);
	run_ranks(ranks, 8, do_uneven, NULL);
	all_are(ranks, 8, NRT_INVALID);
	run_ranks(ranks, 8, do_gather, NULL);
	all_are(ranks, 8, NRT_SUCCESS);
	init("60");
	assert_int_equal(nrt_all_gather(3, 0, 1, 1, &byte, &out), NRT_SUCCESS);
	assert_int_equal(out, 5);
	assert_int_equal(nrt_all_gather(3, 0, 1, 0, &byte, &out), NRT_INVALID);
	assert_int_equal(nrt_all_gather(3, 0, 1, 1, NULL, &out), NRT_INVALID);
	assert_int_equal(nrt_all_gather(3, 0, 1, 1, &byte, NULL), NRT_INVALID);
}

/* ---- operations on tensors --------------------------------------------------------- */

struct op {
	nrt_cc_op_type_t cc_op;
	nrt_op_type_t op;
	nrt_tensor_placement_t placement;
	bool in_place;
	int queue;
	uint32_t groups;	/* that the ranks are split into */
	size_t nr_tensors;
	NRT_STATUS fail;	/* what rank 0 is refused by the driver */
	bool planned;		/* its memory is compared with what is planned */
};

static float value(uint32_t rank, size_t tensor, size_t i)
{
	return (float)((rank * 7919 + tensor * 131 + i * 17) % 1000) - 300;
}

static void wait_seq(nrta_seq_t seq)
{
	struct pollfd pfd = { .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN };
	bool done = false;

	assert_int_equal(nrta_event_register_seq_id_completion(seq, pfd.fd), NRT_SUCCESS);
	assert_int_equal(poll(&pfd, 1, 120000), 1);
	close(pfd.fd);
	assert_int_equal(nrta_is_completed(seq, &done), NRT_SUCCESS);
	assert_true(done);
}

static float combine(const struct op *op, const uint32_t *group, uint32_t n, size_t tensor,
		     size_t i)
{
	float acc = value(group[0], tensor, i);

	for (uint32_t k = 1; k < n; k++) {
		float v = value(group[k], tensor, i);

		acc = op->op == NRT_OP_ADD ? acc + v : op->op == NRT_OP_MAX ? (v > acc ? v : acc) :
						       (v < acc ? v : acc);
	}
	return acc;
}

static bool result_right(const struct op *op, const uint32_t *group, uint32_t n, uint32_t place,
			 size_t tensor, const float *got, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		float want = op->cc_op == NRT_CC_ALLGATHER ?
			     value(group[i / (nr / n)], tensor, i % (nr / n)) :
			     op->cc_op == NRT_CC_ALLREDUCE ? combine(op, group, n, tensor, i) :
			     combine(op, group, n, tensor, place * nr + i);

		if (got[i] != want)
			return false;
	}
	return true;
}

static uint64_t *most_of(const struct rank *r)
{
	return &fake.dev[r->rank / FAKE_CORES].most[r->rank % FAKE_CORES][NEURON_MEM_COLLECTIVES];
}

/* What the core had at most is what is planned, and so are its rings. */
static bool memory_right(const struct rank *r, const struct neuron_collective *planned,
			 bool reduces)
{
	const struct fake_device *d = &fake.dev[r->rank / FAKE_CORES];
	uint64_t rings = d->held[r->rank % FAKE_CORES][NEURON_MEM_RINGS];
	struct neuron_plan_opts opts = {
		.size = sizeof(opts), .collectives = neuron_collective_staging(planned), .computes = 1,
	};
	uint64_t row[NEURON_REPORT_NR_COLUMNS];
	struct neuron_report report = { .size = sizeof(report) };
	struct neuron_report_core core = { .nc = 0 };

	if (neuron_plan_sum(NULL, 0, &opts, 0, &core))
		return false;
	neuron_report_row(&report, &core, row);
	return row[NEURON_REPORT_COLLECTIVES] == *most_of(r) && !row[NEURON_REPORT_RINGS_RUNTIME] &&
	       ((!rings && !reduces) || row[NEURON_REPORT_RINGS_COLLECTIVES] == rings);
}

static NRT_STATUS do_op(struct rank *r)
{
	const struct op *op = r->arg;
	uint32_t n = r->count / op->groups, group[MAX_RANKS];
	size_t in_nr = op->cc_op == NRT_CC_ALLGATHER ? ELEMENTS / n : ELEMENTS / n * n;
	size_t out_nr = op->cc_op == NRT_CC_ALLREDUCE ? in_nr :
			op->cc_op == NRT_CC_ALLGATHER ? in_nr * n : in_nr / n;
	size_t largest = in_nr > out_nr ? in_nr : out_nr;
	nrt_tensor_t *in[4] = { NULL }, *out[4] = { NULL };
	nrt_tensor_list_t ins = { in, op->nr_tensors }, outs = { out, op->nr_tensors };
	nrt_cc_comm_t comm = {
		.replica_group = group, .rank = r->rank / op->groups, .rank_n = n,
		.ctx_device_id = r->rank, .ctx_device_count = r->count, .vnc = r->rank,
	};
	struct neuron_collective planned = {
		.size = sizeof(planned), .in = in_nr * 4, .out = out_nr * 4, .ranks = n,
		.in_place = op->in_place,
	};
	NRT_STATUS status = NRT_SUCCESS, done = UNSET;
	nrt_cc_context_t *c = NULL;
	float *data = malloc(largest * 4);
	nrta_seq_t seq;

	for (uint32_t k = 0; k < n; k++)
		group[k] = k * op->groups + r->rank % op->groups;
	planned.devices = group[0] / FAKE_CORES != group[n - 1] / FAKE_CORES;
	*most_of(r) = 0;
	for (size_t t = 0; t < op->nr_tensors && status == NRT_SUCCESS; t++) {
		nrt_tensor_t *whole = NULL;

		status = nrt_tensor_allocate(op->placement, (int)r->rank, largest * 4 + 64, "t", &whole);
		if (status != NRT_SUCCESS)
			break;
		nrt_tensor_allocate_slice(whole, 64, in_nr * 4, NULL, &in[t]);
		if (op->in_place)
			nrt_tensor_allocate_slice(whole, 64, out_nr * 4, NULL, &out[t]);
		else
			status = nrt_tensor_allocate(op->placement, (int)r->rank, out_nr * 4, "o",
						     &out[t]);
		nrt_tensor_free(&whole);
		for (size_t i = 0; i < in_nr; i++)
			data[i] = value(r->rank, t, i);
		if (status == NRT_SUCCESS)
			status = nrt_tensor_write(in[t], data, 0, in_nr * 4);
	}
	if (status == NRT_SUCCESS)
		status = nrta_cc_prepare(&comm, &ins, &outs, NRT_DTYPE_FLOAT32, op->op, op->cc_op, &c);
	/* The operation has its own. */
	for (size_t t = 0; t < op->nr_tensors; t++)
		nrt_tensor_free(&in[t]);
	if (status == NRT_SUCCESS)
		status = nrta_cc_schedule(&c, op->queue, &done, &seq);
	if (status == NRT_SUCCESS) {
		wait_seq(seq);
		status = c ? NRT_INVALID_HANDLE : done;
	}
	if (status == NRT_SUCCESS && op->planned && !memory_right(r, &planned, op->cc_op != NRT_CC_ALLGATHER))
		status = NRT_FAILURE;
	for (size_t t = 0; t < op->nr_tensors; t++) {
		if (status == NRT_SUCCESS)
			status = nrt_tensor_read(out[t], data, 0, out_nr * 4);
		if (status == NRT_SUCCESS &&
		    !result_right(op, group, n, comm.rank, t, data, out_nr))
			status = NRT_EXEC_COMPLETED_WITH_NUM_ERR;
		nrt_tensor_free(&out[t]);
	}
	free(data);
	return status;
}

static void test_operations(void **state)
{
	struct rank ranks[MAX_RANKS];

	(void)state;
	/* On one device, and on two; the second time the queues are known. */
	for (uint32_t count = 1; count <= 8; count *= 2) {
		init("60");
		join_all(count);
		for (int cc_op = NRT_CC_ALLGATHER; cc_op <= NRT_CC_REDUCESCATTER; cc_op++)
			for (int way = 0; way < 4; way++) {
				struct op op = {
					.cc_op = cc_op,
					.op = way == 1 ? NRT_OP_MAX : way == 2 ? NRT_OP_MIN : NRT_OP_ADD,
					.placement = way == 1 ? NRT_TENSOR_PLACEMENT_HOST :
								NRT_TENSOR_PLACEMENT_DEVICE,
					.in_place = way & 1,
					.queue = way % 3,
					.groups = way == 3 && count > 1 ? 2 : 1,
					.nr_tensors = way == 2 ? 3 : 1,
					.planned = true,
				};

				run_ranks(ranks, count, do_op, &op);
				all_are(ranks, count, NRT_SUCCESS);
			}
	}
}

#define MANY (FAKE_DEVICES * FAKE_CORES)

struct many {
	nrt_dtype_t dtype;
	uint32_t size;		/* of an element */
	bool in_place;
	uint32_t elements;
};

/* The first sixteen have a number of which they have too much together, the others take it back. */
static NRT_STATUS do_many(struct rank *r)
{
	const struct many *m = r->arg;
	int64_t number = m->size == 1 ? 10 : 200000000, mine = r->rank < 16 ? number : -3 * number;
	struct neuron_collective planned = {
		.size = sizeof(planned), .in = (uint64_t)m->elements * m->size, .ranks = MANY,
		.devices = true, .in_place = m->in_place, .sums = m->elements * 4,
	};
	nrt_cc_comm_t comm = { NULL, r->rank, MANY, r->rank, MANY, r->rank };
	nrt_tensor_t *in = NULL, *out = NULL;
	nrt_tensor_list_t ins = { &in, 1 }, outs = { m->in_place ? &in : &out, 1 };
	uint8_t *data = malloc(planned.in);
	nrt_cc_context_t *c = NULL;
	NRT_STATUS status, done = UNSET;
	nrta_seq_t seq;

	planned.out = planned.in;
	*most_of(r) = 0;
	for (uint64_t i = 0; i < planned.in; i += m->size)
		memcpy(data + i, &mine, m->size);
	status = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, (int)r->rank, planned.in, "i", &in) ?:
		 nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, (int)r->rank, planned.out, "o", &out) ?:
		 nrt_tensor_write(in, data, 0, planned.in) ?:
		 nrta_cc_prepare(&comm, &ins, &outs, m->dtype, NRT_OP_ADD, NRT_CC_ALLREDUCE, &c) ?:
		 nrta_cc_schedule(&c, 0, &done, &seq);
	if (status == NRT_SUCCESS) {
		wait_seq(seq);
		status = done ?: nrt_tensor_read(m->in_place ? in : out, data, 0, planned.out);
	}
	number *= 16 - 3 * 4;
	for (uint64_t i = 0; i < planned.out && status == NRT_SUCCESS; i += m->size)
		if (memcmp(data + i, &number, m->size))
			status = NRT_EXEC_COMPLETED_WITH_NUM_ERR;
	if (status == NRT_SUCCESS && !memory_right(r, &planned, true))
		status = NRT_FAILURE;
	nrt_tensor_free(&in);
	nrt_tensor_free(&out);
	free(data);
	return status;
}

/* A part of the ranks, as many as a transfer has sources, has a sum that the type cannot hold. */
static void test_many(void **state)
{
	static const struct many many[] = {
		/* More than there are sums of at a time. */
		{ NRT_DTYPE_INT8, 1, false, 300000 },
		{ NRT_DTYPE_INT32, 4, true, 5000 },
		{ NRT_DTYPE_INT64, 8, false, 5000 },
	};
	struct rank ranks[MANY];

	(void)state;
	init_devices("60", FAKE_DEVICES);
	run_ranks(ranks, MANY, do_join, NULL);
	all_are(ranks, MANY, NRT_SUCCESS);
	for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
		run_ranks(ranks, MANY, do_many, &many[i]);
		all_are(ranks, MANY, NRT_SUCCESS);
	}
}

/* The table of a refusal has the rings of operations in the column of collectives. */
static void test_report_rings(void **state)
{
	static const char path[] = "/tmp/neuron_mem_table_device_0_hbm_0.log";
	struct op op = { .cc_op = NRT_CC_ALLREDUCE, .op = NRT_OP_ADD, .groups = 1, .nr_tensors = 1 };
	char line[1024] = "", *column = line;
	nrt_tensor_t *t = NULL;
	struct rank ranks[1];
	FILE *f;

	(void)state;
	join_all(1);
	run_ranks(ranks, 1, do_op, &op);
	all_are(ranks, 1, NRT_SUCCESS);
	unlink(path);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 1ull << 40, "t", &t),
			 NRT_RESOURCE);
	f = fopen(path, "r");
	assert_non_null(f);
	while (strncmp(line, "\\_NC 0 ", 7))
		assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	for (int i = 0; i < NEURON_REPORT_RINGS_COLLECTIVES; i++)
		column = strchr(column, '|') + 1;
	assert_non_null(strstr(strsep(&column, "|"), "0.000B"));	/* of descriptors of models */
	assert_non_null(strstr(strsep(&column, "|"), "64.000KB"));
	assert_non_null(strstr(strsep(&column, "|"), "0.000B"));	/* of the runtime */
}

/* What the driver refuses one rank, all are told; then it works. */
static void test_refusals(void **state)
{
	static const unsigned int calls[] = {
		_IOC_NR(NEURON_NATIVE_MEM_EXPORT), _IOC_NR(NEURON_NATIVE_MEM_IMPORT),
		_IOC_NR(NEURON_IOCTL_DMA_QUEUE_COPY_START),
	};
	struct op op = { .cc_op = NRT_CC_ALLREDUCE, .op = NRT_OP_ADD, .groups = 1, .nr_tensors = 2 };
	struct rank ranks[MAX_RANKS];
	uint32_t resource, others;

	(void)state;
	join_all(4);
	for (size_t i = 0; i < 3; i++) {
		fake_fail(1, calls[i], ENOMEM);
		run_ranks(ranks, 4, do_op, &op);
		assert_int_equal(fake.fail_at, 0);
		resource = others = 0;
		for (uint32_t k = 0; k < 4; k++) {
			resource += ranks[k].status == NRT_RESOURCE;
			others += ranks[k].status == NRT_EXEC_HW_ERR_COLLECTIVES;
		}
		assert_int_equal(resource, 1);
		assert_int_equal(others, 3);
		run_ranks(ranks, 4, do_op, &op);
		all_are(ranks, 4, NRT_SUCCESS);
	}
	fake.dma_error = NEURON_ISA_ERR_DMA_ACCESS;
	run_ranks(ranks, 4, do_op, &op);
	resource = others = 0;
	for (uint32_t k = 0; k < 4; k++) {
		resource += ranks[k].status == NRT_EXEC_HW_ERR_DMA_ABORT;
		others += ranks[k].status == NRT_EXEC_HW_ERR_COLLECTIVES;
	}
	assert_int_equal(resource, 1);
	assert_int_equal(others, 3);
	run_ranks(ranks, 4, do_op, &op);
	all_are(ranks, 4, NRT_SUCCESS);
}

/* Messages with descriptors that do not leave because too many are on their way. */
static atomic_int held_up;
/* Messages whose descriptors the process has no room for. */
static atomic_int cut;

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (msg->msg_controllen && atomic_fetch_sub(&held_up, 1) > 0) {
		errno = ETOOMANYREFS;
		return -1;
	}
	return __real_sendmsg(fd, msg, flags);
}

ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t n = __real_recvmsg(fd, msg, flags);

	/* Answers, not requests. */
	if (n > 0 && msg->msg_controllen > CMSG_SPACE(sizeof(int)) &&
	    atomic_fetch_sub(&cut, 1) > 0)
		msg->msg_flags |= MSG_CTRUNC;
	return n;
}

static void test_descriptors(void **state)
{
	struct op op = { .cc_op = NRT_CC_ALLREDUCE, .op = NRT_OP_ADD, .groups = 1, .nr_tensors = 2 };
	struct rank ranks[MAX_RANKS];
	uint32_t resource = 0;

	(void)state;
	join_all(4);
	/* Requests and answers. */
	atomic_store(&held_up, 40);
	run_ranks(ranks, 4, do_op, &op);
	all_are(ranks, 4, NRT_SUCCESS);
	assert_true(atomic_load(&held_up) < 0);
	atomic_store(&cut, 1);
	run_ranks(ranks, 4, do_op, &op);
	atomic_store(&cut, 0);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_not_equal(ranks[i].status, NRT_SUCCESS);
		resource += ranks[i].status == NRT_RESOURCE;
	}
	assert_int_equal(resource, 1);
}

static NRT_STATUS do_different(struct rank *r)
{
	struct op op = {
		.cc_op = NRT_CC_ALLREDUCE, .op = r->rank ? NRT_OP_ADD : NRT_OP_MAX,
		.groups = 1, .nr_tensors = 1,
	};
	struct rank own = *r;

	own.arg = &op;
	return do_op(&own);
}

/* Everybody on a queue of its own; and one is missing. */
static NRT_STATUS do_elsewhere(struct rank *r)
{
	struct op op = {
		.cc_op = NRT_CC_ALLREDUCE, .op = NRT_OP_ADD, .groups = 1, .nr_tensors = 1,
		.queue = (int)r->rank,
	};
	struct rank own = *r;

	own.arg = &op;
	return do_op(&own);
}

static void test_disagreement(void **state)
{
	struct op op = { .cc_op = NRT_CC_ALLREDUCE, .op = NRT_OP_ADD, .groups = 1, .nr_tensors = 1 };
	struct rank ranks[MAX_RANKS];

	(void)state;
	init("2");
	join_all(3);
	run_ranks(ranks, 3, do_different, NULL);
	all_are(ranks, 3, NRT_INVALID);
	run_ranks(ranks, 3, do_op, &op);
	all_are(ranks, 3, NRT_SUCCESS);
	run_ranks(ranks, 3, do_elsewhere, NULL);
	all_are(ranks, 3, NRT_EXEC_HW_ERR_COLLECTIVES);
	run_ranks(ranks, 3, do_op, &op);
	all_are(ranks, 3, NRT_FAILURE);
	/* Again from the start. */
	init("60");
	join_all(3);
	run_ranks(ranks, 3, do_op, &op);
	all_are(ranks, 3, NRT_SUCCESS);
}

static int log_kept = -1, log_before;

/* What the log says goes to a file until log_has(). */
static void log_keep(void)
{
	log_kept = memfd_create("log", MFD_CLOEXEC);
	log_before = dup(STDERR_FILENO);
	dup2(log_kept, STDERR_FILENO);
}

/* It was one line, with @text in it. */
static bool log_has(const char *text)
{
	char line[500] = "";
	ssize_t n = pread(log_kept, line, sizeof(line) - 1, 0);

	dup2(log_before, STDERR_FILENO);
	close(log_before);
	close(log_kept);
	if (n > 0 && strstr(line, text) && strchr(line, '\n') == line + n - 1)
		return true;
	print_error("not \"%s\", but: %s\n", text, line);
	return false;
}

/* With the variables of the test. */
#define PREPARE(dtype, op, cc_op) \
	nrta_cc_prepare(&comm, &in, &out, NRT_DTYPE_##dtype, NRT_OP_##op, cc_op, &c)
#define INVALID(call, text) do {						\
	log_keep();							\
	status = call;							\
	assert_true(log_has(text));					\
	assert_int_equal(status, NRT_INVALID);				\
} while (0)
#define REFUSED(change, text) do {					\
	change;								\
	INVALID(PREPARE(FLOAT32, ADD, NRT_CC_ALLREDUCE), text);		\
	comm = good;							\
	in = out = (nrt_tensor_list_t){ &t, 1 };			\
} while (0)

static void test_prepare(void **state)
{
	nrt_tensor_t *t = NULL, *half = NULL, *plain = NULL, *far = NULL, *empty = NULL;
	uint32_t group[2] = { 0, 0 }, queue;
	nrt_cc_comm_t comm = { .rank_n = 1, .ctx_device_count = 1 }, good = comm;
	nrt_tensor_list_t in = { &t, 1 }, out = { &t, 1 };
	nrt_cc_context_t *c = NULL, *stale;
	NRT_STATUS status = UNSET;
	nrta_seq_t seq;

	(void)state;
	nrt_close();
	setenv("NEURON_RT_LOG_LEVEL", "ERROR", 1);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 64, "t", &t), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate_slice(t, 0, 32, NULL, &half), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_VIRTUAL, 0, 64, "p", &plain), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 5, 64, "f", &far), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate_empty("e", &empty), NRT_SUCCESS);
	assert_int_equal(PREPARE(FLOAT32, ADD, NRT_CC_ALLREDUCE), NRT_FAILURE);
	assert_int_equal(nrt_cc_global_comm_init(0, 0, 1), NRT_SUCCESS);
	REFUSED(comm.rank_n = 0, " rank_n is not 1 to 1024");
	REFUSED(comm.rank_n = 2, "without replica_group");
	REFUSED(comm.rank = 1, "rank is not below rank_n");
	REFUSED(comm.vnc = 99, "there is no core vnc");
	REFUSED((comm.rank_n = UINT32_MAX, comm.ctx_device_count = UINT32_MAX),
		" rank_n is not 1 to 1024");
	REFUSED((comm.replica_group = group, group[0] = 1), "replica_group is not below ctx_device_count");
	REFUSED((comm.replica_group = group, group[0] = 0, comm.rank_n = 2),
		"a rank is in replica_group twice");
	REFUSED(in.tensors = NULL, "a list of tensors is NULL");
	REFUSED(out.num_tensors = 2, "the lists are not of the same length");
	REFUSED((in.num_tensors = 0, out.num_tensors = 0), "num_tensors is not 1 to 65536");
	REFUSED((in.num_tensors = SIZE_MAX, out.num_tensors = SIZE_MAX),
		"num_tensors is not 1 to 65536");
	REFUSED(in.tensors = &half, "input 0 of 32 bytes and output of 64 do not fit");
	REFUSED(out.tensors = &half, "input 0 of 64 bytes and output of 32 do not fit");
	REFUSED(in.tensors = &plain, "input 0 is not a tensor in memory of the core's device");
	REFUSED(in.tensors = &far, "input 0 is not a tensor in memory of the core's device");
	REFUSED(out.tensors = &empty, "output 0 is not a tensor in memory of the core's device");
	INVALID(PREPARE(UNKNOWN, ADD, NRT_CC_ALLREDUCE), "there is no such dtype");
	INVALID(PREPARE(FLOAT32, FMA, NRT_CC_ALLREDUCE), "op is not NRT_OP_ADD,");
	INVALID(PREPARE(FLOAT32, INVALID, NRT_CC_REDUCESCATTER), "op is not NRT_OP_ADD,");
	INVALID(PREPARE(FLOAT32, ADD, (nrt_cc_op_type_t)3), "there is no such cc_op");
	INVALID(nrta_cc_prepare(NULL, &in, &out, NRT_DTYPE_INT8, NRT_OP_ADD, NRT_CC_ALLREDUCE, &c),
		"comm is NULL");
	INVALID(nrta_cc_prepare(&comm, &in, &out, NRT_DTYPE_INT8, NRT_OP_ADD, NRT_CC_ALLREDUCE, NULL),
		"cc_ctx is NULL");
	INVALID(nrt_all_gather(0, 0, 1, 0, group, &queue), "rank_input_size is 0");
	assert_null(c);
	/* No operation is asked for. */
	assert_int_equal(PREPARE(FLOAT32, INVALID, NRT_CC_ALLGATHER), NRT_SUCCESS);
	assert_int_equal(nrta_cc_schedule(&c, 3, &status, &seq), NRT_INVALID);
	assert_int_equal(nrta_cc_schedule(&c, -1, &status, &seq), NRT_INVALID);
	assert_int_equal(nrta_cc_schedule(NULL, 0, &status, &seq), NRT_INVALID);
	assert_non_null(c);
	stale = c;
	assert_int_equal(nrta_cc_schedule(&c, 0, &status, &seq), NRT_SUCCESS);
	assert_null(c);
	wait_seq(seq);
	assert_int_equal(status, NRT_SUCCESS);
	assert_int_equal(nrta_cc_schedule(&stale, 0, &status, &seq), NRT_INVALID_HANDLE);
	assert_int_equal(nrta_cc_schedule(&c, 0, &status, &seq), NRT_INVALID_HANDLE);
	/* What is prepared and not used is no leak. */
	for (queue = 0; queue < 3; queue++)
		assert_int_equal(PREPARE(INT8, MAX, NRT_CC_ALLREDUCE), NRT_SUCCESS);
	nrt_tensor_free(&t);
	nrt_tensor_free(&half);
	nrt_tensor_free(&plain);
	nrt_tensor_free(&far);
	nrt_tensor_free(&empty);
}

/* ---- joining ----------------------------------------------------------------------- */

static void join_fails(const char *root, uint32_t rank, uint32_t count, NRT_STATUS want)
{
	if (root)
		setenv("NEURON_RT_ROOT_COMM_ID", root, 1);
	else
		unsetenv("NEURON_RT_ROOT_COMM_ID");
	assert_int_equal(nrt_build_global_comm(0, rank, count), want);
}

static void test_join(void **state)
{
	struct neff_bytes n = make_list_neff();
	nrt_model_t *m = NULL;

	(void)state;
	init("1");
	join_fails(NULL, 0, 2, NRT_INVALID);
	join_fails("", 0, 2, NRT_INVALID);
	join_fails("127.0.0.1", 0, 2, NRT_INVALID);
	join_fails("127.0.0.1:", 0, 2, NRT_INVALID);
	join_fails("127.0.0.1:0", 0, 2, NRT_INVALID);
	join_fails("127.0.0.1:65536", 0, 2, NRT_INVALID);
	join_fails("127.0.0.1:1x", 1, 2, NRT_INVALID);
	join_fails("127.0.0.1:-1", 1, 2, NRT_INVALID);
	join_fails("localhost:1", 0, 2, NRT_INVALID);
	join_fails("::1:1", 0, 2, NRT_INVALID);
	join_fails("[::1:1", 0, 2, NRT_INVALID);
	join_fails("127.0.0.1000000000000000000000000000000000000000000000000000000000000000:1", 0, 2,
		   NRT_INVALID);
	/* A root on another host (an address for documentation), and more ranks than cores. */
	join_fails("192.0.2.7:1000", 0, 2, NRT_FAILURE);
	join_fails("192.0.2.7:1000", 1, 2, fabric_missing() ? NRT_FAILURE : NRT_TIMEOUT);
	join_fails("127.0.0.1:1000", 0, 9, NRT_FAILURE);
	join_fails("127.0.0.1:1000", 0, UINT32_MAX, NRT_FAILURE);
	join_fails("127.0.0.1:1000", 2, 2, NRT_INVALID);
	join_fails("127.0.0.1:1000", 0, 0, NRT_INVALID);
	assert_int_equal(nrt_build_global_comm(-1, 0, 1), NRT_INVALID);
	assert_int_equal(nrt_build_global_comm(8, 0, 1), NRT_INVALID);
	assert_int_equal(nrt_cc_global_comm_init(UINT32_MAX, 0, 1), NRT_INVALID);
	/* The other rank does not come. */
	join_fails("127.0.0.1:1001", 0, 2, NRT_TIMEOUT);
	join_fails("127.0.0.1:1002", 1, 2, NRT_TIMEOUT);
	/* A rank that is alone needs no place to meet. */
	join_fails(NULL, 0, 1, NRT_SUCCESS);
	assert_int_equal(nrt_load_collectives(n.data, n.size, 1, -1, 0, 1, &m), NRT_SUCCESS);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
	assert_int_equal(nrt_load_collectives(n.data, n.size, -1, -1, 0, 1, &m), NRT_SUCCESS);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
	assert_int_equal(nrt_load_collectives(n.data, n.size, 1, -1, 1, 1, &m), NRT_INVALID);
	assert_int_equal(nrt_load_collectives(NULL, n.size, 1, -1, 0, 1, &m), NRT_INVALID);
	assert_int_equal(nrt_load_collectives(n.data, 10, 1, -1, 0, 1, &m), NRT_INVALID);
	assert_int_equal(nrt_load_collectives(n.data, n.size, 77, -1, 0, 1, &m), NRT_INVALID);
	free(n.data);
}

static void test_states(void **state)
{
	nrt_cc_context_t *c = NULL;
	nrt_model_t *m;
	char byte;

	(void)state;
	nrt_close();
	assert_int_equal(nrt_build_global_comm(0, 0, 1), NRT_CLOSED);
	assert_int_equal(nrt_cc_global_comm_init(0, 0, 1), NRT_CLOSED);
	assert_int_equal(nrt_load_collectives(&byte, 1, 0, 1, 0, 1, &m), NRT_CLOSED);
	assert_int_equal(nrt_barrier(0, 0, 1), NRT_CLOSED);
	assert_int_equal(nrt_all_gather(0, 0, 1, 1, &byte, &byte), NRT_CLOSED);
	assert_int_equal(nrta_cc_prepare(NULL, NULL, NULL, 0, 0, 0, &c), NRT_CLOSED);
	assert_int_equal(nrta_cc_schedule(&c, 0, NULL, NULL), NRT_CLOSED);
}

static NRT_STATUS do_wait(struct rank *r)
{
	return r->rank == 2 ? NRT_SUCCESS : nrt_barrier((int32_t)r->rank, r->rank, r->count);
}

static void *close_later(void *arg)
{
	usleep(200000);
	nrt_close();
	return arg;
}

/* nrt_close() does not wait for those who wait. */
static void test_close(void **state)
{
	struct rank ranks[MAX_RANKS];
	pthread_t closer;

	(void)state;
	init("600");
	join_all(3);
	assert_int_equal(pthread_create(&closer, NULL, close_later, NULL), 0);
	run_ranks(ranks, 3, do_wait, NULL);
	pthread_join(closer, NULL);
	assert_int_equal(ranks[0].status, NRT_CLOSED);
	assert_int_equal(ranks[1].status, NRT_CLOSED);
	/* The same while not all have joined yet. */
	init("600");
	assert_int_equal(pthread_create(&closer, NULL, close_later, NULL), 0);
	run_ranks(ranks, 3, do_wait, NULL);
	pthread_join(closer, NULL);
	assert_int_equal(ranks[0].status, NRT_CLOSED);
	assert_int_equal(ranks[1].status, NRT_CLOSED);
}

/* ---- ranks as processes ------------------------------------------------------------ */

static int to_child[2], from_child[2];

static void child_main(uint32_t rank)
{
	char byte = 1;

	fake.nr_devices = 2;
	if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS)
		_exit(10);
	struct rank r = { .rank = rank, .count = 3 };

	if (do_gather(&r) != NRT_SUCCESS || nrt_barrier((int32_t)rank, rank, 3) != NRT_SUCCESS)
		_exit(11);
	if (write(from_child[1], &byte, 1) != 1 || read(to_child[0], &byte, 1) != 1)
		_exit(12);
	/* Rank 2 is gone: every other rank learns of it, in whatever process it is. */
	if (nrt_barrier((int32_t)rank, rank, 3) != NRT_FAILURE)
		_exit(13);
	/* All that are left, and a new rank 2, meet again. */
	if (nrt_barrier((int32_t)rank, rank, 3) != NRT_SUCCESS)
		_exit(14);
	nrt_close();
	_exit(0);
}

static pid_t start_child(uint32_t rank)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		child_main(rank);
	return pid;
}

static void test_processes(void **state)
{
	struct rank r = { .rank = 0, .count = 3 };
	pid_t one, two;
	int status;
	char byte;

	(void)state;
	nrt_close();
	assert_int_equal(pipe(to_child) | pipe(from_child), 0);
	one = start_child(1);
	two = start_child(2);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	assert_int_equal(do_gather(&r), NRT_SUCCESS);
	assert_int_equal(nrt_barrier(0, 0, 3), NRT_SUCCESS);
	assert_int_equal(read(from_child[0], &byte, 1), 1);
	assert_int_equal(read(from_child[0], &byte, 1), 1);
	kill(two, SIGKILL);
	assert_int_equal(waitpid(two, &status, 0), two);
	assert_int_equal(write(to_child[1], &byte, 1), 1);
	/* At once, long before the timeout. */
	alarm(30);
	assert_int_equal(nrt_barrier(0, 0, 3), NRT_FAILURE);
	/* Rank 1 has learned of it before the place to meet is a new one. */
	usleep(500000);
	two = fork();
	if (!two) {
		fake.nr_devices = 2;
		if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS)
			_exit(10);
		_exit(nrt_barrier(2, 2, 3) == NRT_SUCCESS ? 0 : 15);
	}
	assert_int_equal(nrt_barrier(0, 0, 3), NRT_SUCCESS);
	alarm(0);
	assert_int_equal(waitpid(one, &status, 0), one);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(two, &status, 0), two);
	assert_int_equal(status, 0);
	for (int i = 0; i < 2; i++) {
		close(to_child[i]);
		close(from_child[i]);
	}
}

/* A child of the process with rank 0 does not keep its place. */
static void test_fork(void **state)
{
	int status, hold[2];
	char byte;
	pid_t pid;

	(void)state;
	join_all(2);
	assert_int_equal(pipe(hold), 0);
	pid = fork();
	if (!pid) {
		close(hold[1]);
		_exit(nrt_barrier(0, 0, 2) != NRT_UNINITIALIZED || read(hold[0], &byte, 1));
	}
	close(hold[0]);
	nrt_close();
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	join_all(2);
	close(hold[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- strangers --------------------------------------------------------------------- */

static struct comm_place place(void)
{
	struct comm_place p;

	assert_int_equal(comm_place_open("test", &p), NRT_SUCCESS);
	return p;
}

/* Somebody of this user, who has come as far as the socket. */
static int stranger(void)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct comm_place p = place();
	struct sockaddr_un a;

	comm_place_address(&p, &a);
	for (int i = 0; i < 600; i++) {
		if (!connect(sock, (struct sockaddr *)&a, sizeof(a))) {
			comm_place_close(&p);
			return sock;
		}
		usleep(10000);
	}
	fail_msg("nobody listens");
	return -1;
}

/* With the secret that is there by now: after stranger(). */
static struct comm_hello greeting(uint32_t rank, uint32_t count, uint32_t channel)
{
	struct comm_hello hello = {
		.type = COMM_HELLO, .magic = COMM_MAGIC, .version = COMM_VERSION,
		.rank = rank, .count = count, .channel = channel,
	};
	struct comm_place p = place();

	assert_int_equal(comm_place_secret(&p, hello.key), 0);
	comm_place_close(&p);
	return hello;
}

static ssize_t last_answer;
static uint32_t last_reason;

/* What it answers, 0 if it hangs up. */
static ssize_t say(int sock, const void *message, size_t size)
{
	static uint32_t answer[4096];

	last_answer = 0;
	if (send(sock, message, size, MSG_NOSIGNAL) != (ssize_t)size)
		return 0;
	last_answer = recv(sock, answer, sizeof(answer), 0);
	last_reason = last_answer > 0 ? ((struct comm_reply *)answer)->reason : REASON_NONE;
	return last_answer > 0 ? (ssize_t)answer[1] : 0;
}

static void *join_zero(void *arg)
{
	*(NRT_STATUS *)arg = nrt_build_global_comm(0, 0, 2);
	return NULL;
}

static void test_strangers(void **state)
{
	NRT_STATUS status = UNSET;
	uint64_t rng = 12345;
	struct comm_hello hello;
	pthread_t zero;
	int sock;

	(void)state;
	assert_int_equal(pthread_create(&zero, NULL, join_zero, &status), 0);
	/* A wrong word in a hello, of which some are told; then anything of any length. */
	for (size_t i = 0; i < 6; i++) {
		sock = stranger();
		hello = greeting(1, 2, 0);
		((uint32_t *)&hello)[i] += 1000;
		assert_int_equal(say(sock, &hello, sizeof(hello)), NRT_INVALID);
		assert_int_equal(last_reason, i == 2 ? REASON_VERSION : i == 4 ? REASON_COUNT :
								    REASON_NONE);
		close(sock);
	}
	/* Each byte of the secret counts. */
	for (size_t i = 0; i < COMM_KEY; i++) {
		sock = stranger();
		hello = greeting(1, 2, 0);
		hello.key[i] ^= 0x10;
		assert_int_equal(say(sock, &hello, sizeof(hello)), NRT_COLL_PENDING);
		close(sock);
	}
	sock = stranger();
	hello = greeting(1, 2, 1);
	assert_int_equal(say(sock, &hello, sizeof(hello)), NRT_FAILURE);
	close(sock);
	for (size_t i = 0; i < 200; i++) {
		uint32_t noise[256];

		for (size_t k = 0; k < 256; k++) {
			rng ^= rng << 13;
			rng ^= rng >> 7;
			rng ^= rng << 17;
			noise[k] = (uint32_t)rng;
		}
		sock = stranger();
		say(sock, noise, 1 + rng % 1000);
		close(sock);
	}
	/* A rank that says hello and then nonsense is gone for the others. */
	sock = stranger();
	hello = greeting(1, 2, 0);
	assert_int_equal(send(sock, &hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
	pthread_join(zero, NULL);
	assert_int_equal(status, NRT_SUCCESS);
	assert_int_equal(say(sock, &hello, 1), 0);
	assert_int_equal(say(sock, &hello, sizeof(hello)), 0);
	close(sock);
	assert_int_equal(nrt_barrier(0, 0, 2), NRT_FAILURE);
}

static void *join_three(void *arg)
{
	*(NRT_STATUS *)arg = nrt_build_global_comm(0, 0, 3);
	return NULL;
}

/* A rank that comes again before anybody has heard that it had hung up. */
static void test_again(void **state)
{
	NRT_STATUS status = UNSET;
	struct comm_hello one, two;
	uint32_t answer[256];
	int again, first, last;
	pthread_t zero;

	(void)state;
	assert_int_equal(pthread_create(&zero, NULL, join_three, &status), 0);
	/* Its place in the hub is the first, so that it is heard first. */
	again = stranger();
	first = stranger();
	last = stranger();
	one = greeting(1, 3, 0);
	two = greeting(2, 3, 0);
	assert_int_equal(send(first, &one, sizeof(one), MSG_NOSIGNAL), sizeof(one));
	usleep(500000);
	pthread_mutex_lock(&comm_lock);
	assert_int_equal(send(again, &one, sizeof(one), MSG_NOSIGNAL), sizeof(one));
	close(first);
	pthread_mutex_unlock(&comm_lock);
	usleep(500000);
	assert_true(say(last, &two, sizeof(two)) == NRT_SUCCESS);
	assert_true(recv(again, answer, sizeof(answer), 0) > 0);
	assert_int_equal(answer[1], NRT_SUCCESS);
	pthread_join(zero, NULL);
	assert_int_equal(status, NRT_SUCCESS);
	close(again);
	close(last);
}

/* A rank of which everything but one word is right. */
static void test_requests(void **state)
{
	struct comm_hello hello;
	uint32_t good[4 + 32 + 2] = { 2, 0, 2, 0 };

	(void)state;
	good[36] = 0;
	good[37] = 1;
	for (int i = 0; i < 8; i++) {
		uint32_t bad[40];
		NRT_STATUS status = UNSET;
		size_t size = sizeof(good);
		pthread_t zero;
		int sock;

		memcpy(bad, good, sizeof(good));
		switch (i) {
		case 0: bad[0] = 3; break;
		case 1: bad[2] = 0; break;
		case 2: bad[2] = 3; break;
		case 3: bad[3] = 1; break;
		case 4: bad[36] = 1; break;
		case 5: bad[37] = 2; break;
		case 6: bad[36] = 0x80000000; break;
		case 7: size -= 4; break;
		}
		init("60");
		assert_int_equal(pthread_create(&zero, NULL, join_zero, &status), 0);
		sock = stranger();
		hello = greeting(1, 2, 0);
		assert_true(say(sock, &hello, sizeof(hello)) == NRT_SUCCESS);
		pthread_join(zero, NULL);
		assert_int_equal(status, NRT_SUCCESS);
		assert_int_equal(send(sock, bad, size, MSG_NOSIGNAL), size);
		assert_int_equal(recv(sock, bad, sizeof(bad), 0), 0);
		assert_int_equal(nrt_barrier(0, 0, 2), NRT_FAILURE);
		close(sock);
	}
}

/* ---- an impostor of the same user ---------------------------------------------------- */

/* What nrta_cc_schedule() says, its first word is the kind. */
static bool impostor_says(int sock, uint32_t kind, int fd)
{
	struct { uint32_t kind, dtype, op, cc_op; uint64_t size; uint32_t index, nr; } params = {
		kind, NRT_DTYPE_FLOAT32, NRT_OP_ADD, NRT_CC_ALLREDUCE, ELEMENTS / 2 * 2 * 4, 0, 1,
	};
	struct comm_request r = { .type = COMM_REQUEST, .nr = 2, .fds = fd >= 0, .ranks = { 0, 1 } };
	struct pollfd pfd = { .fd = sock, .events = POLLIN };
	struct comm_reply reply;
	int fds[2];

	memcpy(r.params, &params, sizeof(params));
	if (comm_send(sock, &r, offsetof(struct comm_request, ranks) + 8, &fd, r.fds) ||
	    poll(&pfd, 1, 20000) != 1 || comm_receive(sock, &reply, sizeof(reply), fds, 2) <= 0)
		return false;
	comm_close_fds(fds, 2);
	return reply.status == NRT_SUCCESS;
}

/* Takes the channel of rank 1's first queue, and offers bytes of its own. */
static bool impostor(void)
{
	int sock = stranger(), fd = -1;
	struct comm_hello hello = greeting(1, 2, 1);
	nrt_tensor_t *t = NULL;
	bool in;

	in = say(sock, &hello, sizeof(hello)) == NRT_SUCCESS && last_answer > 0;
	if (in) {
		assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, ELEMENTS * 4, "x",
						     &t), NRT_SUCCESS);
		assert_int_equal(neuron_mem_export(t->storage->mem, 0, &fd), 0);
		impostor_says(sock, 3, fd);
		impostor_says(sock, 4, -1);
		close(fd);
		nrt_tensor_free(&t);
	}
	close(sock);
	return in;
}

static void test_L12_impostor(void **state)
{
	struct op op = { .cc_op = NRT_CC_ALLREDUCE, .op = NRT_OP_ADD, .groups = 1, .nr_tensors = 1 };
	struct rank ranks[2];

	(void)state;
	join_all(2);
	ranks[0] = (struct rank){ .rank = 0, .count = 2, .fn = do_op, .arg = &op };
	assert_int_equal(pthread_create(&ranks[0].thread, NULL, rank_main, &ranks[0]), 0);
	if (impostor()) {
		pthread_join(ranks[0].thread, NULL);
		print_error("rank 0 reports %s\n", ranks[0].status == NRT_EXEC_COMPLETED_WITH_NUM_ERR ?
			    "success, with bytes of another one" :
			    nrt_get_status_as_str(ranks[0].status));
		fail();
	}
	ranks[1] = (struct rank){ .rank = 1, .count = 2, .fn = do_op, .arg = &op };
	rank_main(&ranks[1]);
	pthread_join(ranks[0].thread, NULL);
	all_are(ranks, 2, NRT_SUCCESS);
}

/* A rank's key is its own. */
static void test_L12_keys(void **state)
{
	struct comm_hello hello, second;
	struct comm_reply reply[2];
	NRT_STATUS status = UNSET;
	int sock[3];
	pthread_t zero;

	(void)state;
	assert_int_equal(pthread_create(&zero, NULL, join_three, &status), 0);
	for (uint32_t i = 0; i < 2; i++) {
		sock[i] = stranger();
		hello = greeting(1 + i, 3, 0);
		assert_int_equal(send(sock[i], &hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
	}
	for (uint32_t i = 0; i < 2; i++)
		assert_true(recv(sock[i], &reply[i], sizeof(reply[i]), 0) > 0);
	pthread_join(zero, NULL);
	assert_int_equal(status, NRT_SUCCESS);
	assert_memory_not_equal(reply[0].key, reply[1].key, COMM_KEY);
	assert_memory_not_equal(reply[0].key, hello.key, COMM_KEY);
	/* Somebody is rank 1 already, of all. */
	second = greeting(1, 3, 0);
	sock[2] = stranger();
	assert_int_equal(say(sock[2], &second, sizeof(second)), NRT_COLL_PENDING);
	assert_int_equal(last_reason, REASON_TAKEN);
	close(sock[2]);
	second = greeting(2, 3, 3);
	/* The job's key, another rank's, and its own with a wrong bit. */
	for (int i = 0; i < 3; i++) {
		if (i)
			memcpy(second.key, reply[i - 1].key, COMM_KEY);
		second.key[COMM_KEY - 1] ^= i == 2;
		sock[2] = stranger();
		assert_int_equal(say(sock[2], &second, sizeof(second)), NRT_FAILURE);
		close(sock[2]);
	}
	memcpy(second.key, reply[1].key, COMM_KEY);
	sock[2] = stranger();
	assert_int_equal(say(sock[2], &second, sizeof(second)), NRT_SUCCESS);
	assert_true(last_answer > 0);
	for (int i = 0; i < 3; i++)
		close(sock[i]);
}

/* ---- peers of another user ----------------------------------------------------------- */

/* How often it was asked whose the other end is, and how often it will be another user's. */
static atomic_int asked, foreign;

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int ret = __real_getsockopt(fd, level, name, value, len);

	if (name == SO_PEERCRED && atomic_load(&foreign) > 0) {
		((struct ucred *)value)->uid++;
		atomic_fetch_sub(&foreign, 1);
	}
	if (name == SO_PEERCRED)
		atomic_fetch_add(&asked, 1);
	return ret;
}

/* The hub does not listen to another user, who may know the secret. */
static void test_foreign_rank(void **state)
{
	NRT_STATUS status = UNSET;
	struct comm_hello hello;
	pthread_t zero;
	int sock;

	(void)state;
	atomic_store(&asked, 0);
	assert_int_equal(pthread_create(&zero, NULL, join_zero, &status), 0);
	/* Rank 0 and the hub trust each other. */
	for (int i = 0; i < 20000 && atomic_load(&asked) < 2; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&asked), 2);
	for (int again = 0; again < 2; again++) {
		atomic_store(&foreign, !again);
		sock = stranger();
		hello = greeting(1, 2, 0);
		assert_int_equal(say(sock, &hello, sizeof(hello)), 0);
		assert_int_equal(last_answer > 0, again);
		assert_int_equal(atomic_load(&foreign), 0);
		close(sock);
	}
	pthread_join(zero, NULL);
	assert_int_equal(status, NRT_SUCCESS);
}

/* A rank says nothing to another user in the place of rank 0. */
static void test_foreign_root(void **state)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), peer, lock;
	struct rank one = { .rank = 1, .count = 2, .fn = do_join };
	struct comm_place p = place();
	uint8_t secret[COMM_KEY];
	struct comm_hello hello;
	struct sockaddr_un a;

	(void)state;
	lock = comm_place_take(&p, secret);
	assert_true(lock >= 0);
	comm_place_address(&p, &a);
	assert_int_equal(bind(sock, (struct sockaddr *)&a, sizeof(a)) | listen(sock, 5), 0);
	atomic_store(&foreign, 1);
	assert_int_equal(pthread_create(&one.thread, NULL, rank_main, &one), 0);
	peer = accept(sock, NULL, NULL);
	assert_int_equal(recv(peer, &hello, sizeof(hello), 0), 0);
	pthread_join(one.thread, NULL);
	assert_int_equal(one.status, NRT_FAILURE);
	assert_int_equal(atomic_load(&foreign), 0);
	close(peer);
	close(sock);
	comm_place_leave(&p, lock);
	comm_place_close(&p);
}

/* ---- memory that can still change ---------------------------------------------------- */

static int shared_memory(size_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static NRT_STATUS gather_100(struct rank *r)
{
	uint8_t in[100] = { 0 }, out[200];

	return nrt_all_gather(0, 0, r->count, sizeof(in), in, out);
}

static const struct {
	int seals;
	int more;		/* than what was agreed on */
	bool taken;
} memories[] = {
	{ F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, 0, true },
	{ F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL, 0, true },
	{ F_SEAL_GROW | F_SEAL_WRITE, 0, false },
	{ F_SEAL_SHRINK | F_SEAL_WRITE, 0, false },
	{ F_SEAL_SHRINK | F_SEAL_GROW, 0, false },
	{ 0, 0, false },
	{ F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, 1, false },
	{ F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, -1, false },
};

#define NR_MEMORIES (sizeof(memories) / sizeof(memories[0]))

/* What could change, or end, while it is read is not: nrt_all_gather(). */
static void test_unsealed_gather(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_MEMORIES; i++) {
		struct rank zero = { .count = 2, .fn = gather_100 };
		struct comm_request r = {
			.type = COMM_REQUEST, .nr = 2, .fds = 1, .params = { 2, [16] = 100 },
			.ranks = { 0, 1 },
		};
		int fd = shared_memory(100 + (size_t)memories[i].more, memories[i].seals), sock;
		struct comm_hello hello;

		init("20");
		assert_int_equal(pthread_create(&zero.thread, NULL, rank_main, &zero), 0);
		sock = stranger();
		hello = greeting(1, 2, 0);
		assert_int_equal(say(sock, &hello, sizeof(hello)), NRT_SUCCESS);
		assert_int_equal(comm_send(sock, &r, offsetof(struct comm_request, ranks) + 8, &fd, 1),
				 0);
		pthread_join(zero.thread, NULL);
		assert_int_equal(zero.status, memories[i].taken ? NRT_SUCCESS : NRT_FAILURE);
		close(sock);
		close(fd);
	}
}

/* The same of an operation whose inputs go through memory of the host. */
static void test_unsealed_input(void **state)
{
	struct op op = { .cc_op = NRT_CC_ALLREDUCE, .op = NRT_OP_ADD, .groups = 1, .nr_tensors = 1 };

	(void)state;
	for (size_t i = 0; i < NR_MEMORIES; i++) {
		struct rank join = { .count = 2, .fn = do_join };
		struct rank zero = { .count = 2, .fn = do_op, .arg = &op };
		int fd = shared_memory(ELEMENTS * 4 + (size_t)memories[i].more, memories[i].seals);
		struct comm_reply reply;
		struct comm_hello hello;
		int sock[2];

		init("20");
		/* On the other device. */
		assert_int_equal(pthread_create(&join.thread, NULL, rank_main, &join), 0);
		sock[0] = stranger();
		hello = greeting(1, 2, 0);
		hello.data[0] = 1;
		assert_int_equal(send(sock[0], &hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
		assert_true(recv(sock[0], &reply, sizeof(reply), 0) > 0);
		pthread_join(join.thread, NULL);
		assert_int_equal(pthread_create(&zero.thread, NULL, rank_main, &zero), 0);
		sock[1] = stranger();
		hello.channel = 1;
		memcpy(hello.key, reply.key, COMM_KEY);
		assert_int_equal(say(sock[1], &hello, sizeof(hello)), NRT_SUCCESS);
		assert_true(impostor_says(sock[1], 3, fd));
		assert_int_equal(impostor_says(sock[1], 4, -1), memories[i].taken);
		pthread_join(zero.thread, NULL);
		/* Of zeros the sum is another one. */
		assert_int_equal(zero.status, memories[i].taken ? NRT_EXEC_COMPLETED_WITH_NUM_ERR :
								  NRT_EXEC_HW_ERR_COLLECTIVES);
		close(sock[0]);
		close(sock[1]);
		close(fd);
	}
}

/* ---- where they meet ----------------------------------------------------------------- */

static void join_is(NRT_STATUS want)
{
	struct rank ranks[2];

	run_ranks(ranks, 2, do_join, NULL);
	all_are(ranks, 2, want);
}

/* A directory that others can enter, or that is elsewhere, is not used: the next one is. */
static void test_L12_directory(void **state)
{
	char name[256], there[256];
	struct comm_place p;
	struct stat a, b;

	(void)state;
	directory_name(name);
	snprintf(there, sizeof(there), "%s/elsewhere", runtime_dir);
	for (int i = 0; i < 4; i++) {
		assert_true(!rmdir(name) || errno == ENOENT);
		switch (i) {
		case 0: assert_int_equal(mkdir(name, 0700) | chmod(name, 0710), 0); break;
		case 1: assert_int_equal(mkdir(name, 0700) | chmod(name, 0701), 0); break;
		case 2: assert_int_equal(mkdir(there, 0700) | symlink(there, name), 0); break;
		case 3: assert_int_equal(mkdir(name, 0700), 0);
			/* Not ours, if we can make such a one. */
			if (chown(name, 4321, 4321))
				continue;
		}
		p = place();
		assert_int_equal(fstat(p.dir, &a) | stat(name, &b), 0);
		assert_true(a.st_ino != b.st_ino || a.st_dev != b.st_dev);
		assert_int_equal(a.st_uid, geteuid());
		assert_int_equal(a.st_mode & 0777, 0700);
		comm_place_close(&p);
		if (i == 2)
			assert_int_equal(unlink(name) | rmdir(there), 0);
	}
	assert_int_equal(rmdir(name), 0);
	join_is(NRT_SUCCESS);
	assert_int_equal(stat(name, &b), 0);
	assert_int_equal(b.st_mode & 07777, 0700);
}

static bool exists(const struct comm_place *p, const char *suffix, mode_t mode)
{
	char name[80];
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", p->name, suffix);
	return !fstatat(p->dir, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       (st.st_mode & (S_IFMT | 077)) == mode;
}

/* A process with rank 0 that is killed leaves its files: at the same place, and another. */
static void test_L12_stale(void **state)
{
	struct comm_place left, here;
	NRT_STATUS status = UNSET;
	pid_t pid;
	int sock;

	(void)state;
	for (int same = 0; same < 2; same++) {
		init("60");
		left = place();
		pid = fork();
		if (!pid) {
			fake.nr_devices = 2;
			nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
			join_zero(&status);
			_exit(1);
		}
		sock = stranger();
		close(sock);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		assert_true(exists(&left, "", S_IFREG));
		assert_true(exists(&left, ".sock", S_IFSOCK));
		if (!same)
			init("60");
		join_all(2);
		here = place();
		assert_true(exists(&here, "", S_IFREG));
		assert_int_equal(exists(&left, "", S_IFREG), same);
		assert_int_equal(exists(&left, ".sock", S_IFSOCK), same);
		nrt_close();
		assert_false(exists(&here, "", S_IFREG));
		assert_false(exists(&here, ".sock", S_IFSOCK));
		comm_place_close(&left);
		comm_place_close(&here);
	}
}

/* A place is one process's; nobody takes the name away from it. */
static void test_L12_lock(void **state)
{
	uint8_t secret[COMM_KEY], other[COMM_KEY];
	struct comm_place p;
	int status, lock;
	pid_t pid;

	(void)state;
	init("1");
	p = place();
	lock = comm_place_take(&p, secret);
	assert_true(lock >= 0);
	pid = fork();
	if (!pid)
		_exit(comm_place_take(&p, other) != -EADDRINUSE ||
		      comm_place_secret(&p, other) || memcmp(secret, other, COMM_KEY));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* An earlier one that is slow to leave. */
	join_fails(getenv("NEURON_RT_ROOT_COMM_ID"), 0, 2, NRT_FAILURE);
	comm_place_leave(&p, lock);
	lock = comm_place_take(&p, other);
	assert_true(lock >= 0);
	assert_memory_not_equal(secret, other, COMM_KEY);
	comm_place_leave(&p, lock);
	comm_place_close(&p);
}

/* Rank 0 that has given up makes room for another process to be it. */
static void test_place_after_timeout(void **state)
{
	uint8_t secret[COMM_KEY];
	struct comm_place p;
	int lock;

	(void)state;
	init("1");
	join_fails(getenv("NEURON_RT_ROOT_COMM_ID"), 0, 2, NRT_TIMEOUT);
	p = place();
	lock = comm_place_take(&p, secret);
	assert_true(lock >= 0);
	comm_place_leave(&p, lock);
	comm_place_close(&p);
}

/* ---- connections that say nothing ---------------------------------------------------- */

#define SILENT 600

/* There are more of them than places, and they take the descriptors of nobody. */
static void test_L19_silent(void **state)
{
	int silent[SILENT];
	NRT_STATUS status = UNSET;
	struct rank one = { .rank = 1, .count = 2 };
	pthread_t zero;

	(void)state;
	init("10");
	assert_int_equal(pthread_create(&zero, NULL, join_zero, &status), 0);
	for (size_t i = 0; i < SILENT; i++)
		silent[i] = stranger();
	assert_int_equal(do_join(&one), NRT_SUCCESS);
	pthread_join(zero, NULL);
	assert_int_equal(status, NRT_SUCCESS);
	for (size_t i = 0; i < SILENT; i++)
		close(silent[i]);
}

static void *keep_connecting(void *arg)
{
	atomic_bool *stop = arg;
	int sock[200], n = 0;

	memset(sock, 0xff, sizeof(sock));
	for (; !atomic_load(stop); n = (n + 1) % 200) {
		if (sock[n] >= 0)
			close(sock[n]);
		sock[n] = stranger();
	}
	comm_close_fds(sock, 200);
	return NULL;
}

/* While they keep coming: joining, later channels, operations. */
static void test_L19_flood(void **state)
{
	struct op op = { .cc_op = NRT_CC_ALLREDUCE, .op = NRT_OP_ADD, .groups = 1, .nr_tensors = 1 };
	struct rank ranks[MAX_RANKS];
	atomic_bool stop = false;
	pthread_t flood;

	(void)state;
	assert_int_equal(pthread_create(&flood, NULL, keep_connecting, &stop), 0);
	join_all(4);
	for (op.queue = 0; op.queue < 3; op.queue++) {
		run_ranks(ranks, 4, do_op, &op);
		all_are(ranks, 4, NRT_SUCCESS);
	}
	atomic_store(&stop, true);
	pthread_join(flood, NULL);
}

/* One alone is sent away, those that have spoken are not; before and after all are there. */
static void test_L19_deadline(void **state)
{
	NRT_STATUS status = UNSET;
	struct comm_hello hello;
	struct pollfd pfd[2];
	char byte;
	pthread_t zero;

	(void)state;
	assert_int_equal(pthread_create(&zero, NULL, join_three, &status), 0);
	for (int i = 0; i < 2; i++)
		pfd[i] = (struct pollfd){ .fd = stranger(), .events = POLLIN };
	hello = greeting(1, 3, 0);
	assert_int_equal(send(pfd[1].fd, &hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
	assert_int_equal(poll(&pfd[0], 1, 500), 0);
	assert_int_equal(poll(&pfd[0], 1, 10000), 1);
	assert_int_equal(recv(pfd[0].fd, &byte, 1, 0), 0);
	assert_int_equal(poll(&pfd[1], 1, 500), 0);
	close(pfd[0].fd);
	pfd[0].fd = stranger();
	hello = greeting(2, 3, 0);
	assert_int_equal(say(pfd[0].fd, &hello, sizeof(hello)), NRT_SUCCESS);
	assert_true(last_answer > 0);
	assert_true(recv(pfd[1].fd, &hello, sizeof(hello), 0) > 0);
	pthread_join(zero, NULL);
	assert_int_equal(status, NRT_SUCCESS);
	assert_int_equal(poll(pfd, 2, 3000), 0);
	close(pfd[0].fd);
	close(pfd[1].fd);
}

/* ---- two of a process want to be rank 0 ------------------------------------------------ */

static void test_second_root(void **state)
{
	struct rank one = { .rank = 1, .count = 2 };
	NRT_STATUS status = UNSET;
	pthread_t zero;
	int sock;

	(void)state;
	init("10");
	assert_int_equal(pthread_create(&zero, NULL, join_zero, &status), 0);
	/* Rank 0 listens by then. */
	sock = stranger();
	assert_int_equal(nrt_build_global_comm(4, 0, 3), NRT_INVALID);
	assert_int_equal(do_join(&one), NRT_SUCCESS);
	pthread_join(zero, NULL);
	assert_int_equal(status, NRT_SUCCESS);
	close(sock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_barrier, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gather, setup, teardown),
		cmocka_unit_test_setup_teardown(test_operations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_report_rings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disagreement, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prepare, setup, teardown),
		cmocka_unit_test_setup_teardown(test_join, setup, teardown),
		cmocka_unit_test_setup_teardown(test_states, setup, teardown),
		cmocka_unit_test_setup_teardown(test_close, setup, teardown),
		cmocka_unit_test_setup_teardown(test_processes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strangers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L12_impostor, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L12_keys, setup, teardown),
		cmocka_unit_test_setup_teardown(test_foreign_rank, setup, teardown),
		cmocka_unit_test_setup_teardown(test_foreign_root, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unsealed_gather, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unsealed_input, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L12_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L12_stale, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L12_lock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_place_after_timeout, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L19_silent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L19_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L19_deadline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_second_root, setup, teardown),
	};

	return cmocka_run_group_tests(tests, make_runtime_dir, remove_runtime_dir);
}

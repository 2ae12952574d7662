// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collectives through libnrt: two cores of this process and two of another work
 * together on device memory; wrong sizes, a peer that is killed, other users.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include <nrt/nrt.h>
#include <nrt/nrt_async.h>

#include "nrt_guest.h"

#define RANKS	4u
#define BYTES	(1u << 20)		/* of the shorter side */
#define PLACE	"127.0.0.1:7000"
#define DIRECTORY "/tmp/runtime/neuron-nrt-0"

static struct counters start, now;

struct rank {
	pthread_t thread;
	uint32_t rank, vnc;
	int case_nr;
	NRT_STATUS status;
};

struct shared {
	pthread_barrier_t all;
	NRT_STATUS status[RANKS];
};

static struct shared *shared;		/* with the other process */

static const struct {
	nrt_cc_op_type_t cc_op;
	nrt_op_type_t op;
	nrt_dtype_t dtype;
	nrt_tensor_placement_t placement;
	bool in_place, pairs;
} cases[] = {
	{ NRT_CC_ALLREDUCE, NRT_OP_ADD, NRT_DTYPE_FLOAT32, NRT_TENSOR_PLACEMENT_DEVICE, false, false },
	{ NRT_CC_ALLREDUCE, NRT_OP_ADD, NRT_DTYPE_INT32, NRT_TENSOR_PLACEMENT_DEVICE, true, false },
	{ NRT_CC_ALLREDUCE, NRT_OP_MAX, NRT_DTYPE_INT32, NRT_TENSOR_PLACEMENT_HOST, true, true },
	{ NRT_CC_ALLREDUCE, NRT_OP_MIN, NRT_DTYPE_FLOAT32, NRT_TENSOR_PLACEMENT_DEVICE, false, true },
	{ NRT_CC_ALLGATHER, NRT_OP_INVALID, NRT_DTYPE_INT32, NRT_TENSOR_PLACEMENT_DEVICE, false, false },
	{ NRT_CC_ALLGATHER, NRT_OP_INVALID, NRT_DTYPE_FLOAT32, NRT_TENSOR_PLACEMENT_HOST, true, true },
	{ NRT_CC_REDUCESCATTER, NRT_OP_ADD, NRT_DTYPE_FLOAT32, NRT_TENSOR_PLACEMENT_DEVICE, false, false },
	{ NRT_CC_REDUCESCATTER, NRT_OP_MAX, NRT_DTYPE_INT32, NRT_TENSOR_PLACEMENT_DEVICE, true, true },
};

#define NR_CASES ((int)(sizeof(cases) / sizeof(cases[0])))

static int32_t number(uint32_t rank, size_t i)
{
	return (int32_t)((i * 2654435761u + rank * 40503u) >> 12 & 0xffff) - 30000;
}

static uint32_t bits(nrt_dtype_t dtype, int32_t n)
{
	float f = (float)n;
	uint32_t word;

	if (dtype == NRT_DTYPE_INT32)
		return (uint32_t)n;
	memcpy(&word, &f, sizeof(word));
	return word;
}

static int32_t combined(nrt_op_type_t op, const uint32_t *group, uint32_t n, size_t i)
{
	int32_t acc = number(group[0], i);

	for (uint32_t k = 1; k < n; k++) {
		int32_t v = number(group[k], i);

		acc = op == NRT_OP_ADD ? acc + v : (op == NRT_OP_MAX) == (v > acc) ? v : acc;
	}
	return acc;
}

static NRT_STATUS wait_for(nrta_seq_t seq, const NRT_STATUS *status)
{
	struct pollfd pfd = { .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN };
	int ret = nrta_event_register_seq_id_completion(seq, pfd.fd) ? -1 : poll(&pfd, 1, 120000);

	close(pfd.fd);
	return ret == 1 ? *status : NRT_TIMEOUT;
}

static NRT_STATUS operate(struct rank *r, int case_nr, size_t bytes)
{
	uint32_t n = cases[case_nr].pairs ? 2 : RANKS, group[RANKS];
	size_t in_bytes = cases[case_nr].cc_op == NRT_CC_REDUCESCATTER ? bytes * n : bytes;
	size_t out_bytes = cases[case_nr].cc_op == NRT_CC_ALLGATHER ? bytes * n : bytes;
	size_t both = in_bytes > out_bytes ? in_bytes : out_bytes;
	nrt_dtype_t dtype = cases[case_nr].dtype;
	nrt_tensor_t *whole = NULL, *in = NULL, *out = NULL;
	nrt_tensor_list_t ins = { &in, 1 }, outs = { &out, 1 };
	nrt_cc_comm_t comm = {
		.replica_group = group, .rank_n = n, .rank = cases[case_nr].pairs ? r->rank / 2 : r->rank,
		.ctx_device_id = r->rank, .ctx_device_count = RANKS, .vnc = r->vnc,
	};
	NRT_STATUS status, done = NRT_FAILURE;
	uint32_t *data = malloc(both);
	nrt_cc_context_t *c = NULL;
	nrta_seq_t seq;

	/* Pairs are of one core of each process. */
	for (uint32_t k = 0; k < n; k++)
		group[k] = cases[case_nr].pairs ? r->rank % 2 + 2 * k : k;
	status = nrt_tensor_allocate(cases[case_nr].placement, (int)r->vnc, both + 256, "t", &whole);
	if (!status)
		status = nrt_tensor_allocate_slice(whole, 256, in_bytes, NULL, &in);
	if (!status && cases[case_nr].in_place)
		status = nrt_tensor_allocate_slice(whole, 256, out_bytes, NULL, &out);
	else if (!status)
		status = nrt_tensor_allocate(cases[case_nr].placement, (int)r->vnc, out_bytes, "o", &out);
	for (size_t i = 0; i < in_bytes / 4; i++)
		data[i] = bits(dtype, number(r->rank, i));
	if (!status)
		status = nrt_tensor_write(in, data, 0, in_bytes);
	if (!status)
		status = nrta_cc_prepare(&comm, &ins, &outs, dtype, cases[case_nr].op,
					 cases[case_nr].cc_op, &c);
	if (!status)
		status = nrta_cc_schedule(&c, case_nr % 3, &done, &seq);
	if (!status)
		status = wait_for(seq, &done);
	if (!status)
		status = nrt_tensor_read(out, data, 0, out_bytes);
	for (size_t i = 0; i < out_bytes / 4 && !status; i++) {
		size_t part = i / (bytes / 4), rest = i % (bytes / 4);
		uint32_t want = bits(dtype, cases[case_nr].cc_op == NRT_CC_ALLGATHER ?
					    number(group[part], rest) :
				     cases[case_nr].cc_op == NRT_CC_ALLREDUCE ?
					    combined(cases[case_nr].op, group, n, i) :
					    combined(cases[case_nr].op, group, n,
						     comm.rank * (bytes / 4) + i));

		if (data[i] != want)
			status = NRT_EXEC_COMPLETED_WITH_NUM_ERR;
	}
	nrt_tensor_free(&whole);
	nrt_tensor_free(&in);
	nrt_tensor_free(&out);
	free(data);
	return status;
}

static NRT_STATUS gather(struct rank *r, uint32_t size)
{
	uint8_t *in = malloc(size), *out = malloc(size * RANKS);
	NRT_STATUS status;

	memset(in, (int)r->rank + 1, size);
	status = nrt_all_gather((int32_t)r->vnc, r->rank, RANKS, size, in, out);
	for (uint32_t i = 0; i < size * RANKS && !status; i++)
		if (out[i] != i / size + 1)
			status = NRT_EXEC_COMPLETED_WITH_NUM_ERR;
	free(in);
	free(out);
	return status;
}

/* What a step is: cases, then a gather, wrong sizes twice. */
static void *step(void *arg)
{
	struct rank *r = arg;

	if (r->case_nr < NR_CASES)
		r->status = operate(r, r->case_nr, BYTES);
	else if (r->case_nr == NR_CASES)
		r->status = gather(r, 300000);
	else if (r->case_nr == NR_CASES + 1)
		r->status = gather(r, r->rank ? 10 : 11);
	else
		r->status = operate(r, 0, r->rank ? BYTES : BYTES / 2);
	shared->status[r->rank] = r->status;
	return NULL;
}

#define NR_STEPS (NR_CASES + 3)

/* Two ranks of this process, in threads. */
static void both(uint32_t first, int case_nr)
{
	struct rank ranks[2];

	pthread_barrier_wait(&shared->all);
	for (uint32_t i = 0; i < 2; i++) {
		ranks[i] = (struct rank){ .rank = first + i, .vnc = i, .case_nr = case_nr };
		if (pthread_create(&ranks[i].thread, NULL, step, &ranks[i]))
			exit(1);
	}
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(ranks[i].thread, NULL);
	pthread_barrier_wait(&shared->all);
}

static void *join_rank(void *arg)
{
	struct rank *r = arg;

	r->status = nrt_cc_global_comm_init(r->vnc, r->rank, RANKS);
	return NULL;
}

static bool join_both(uint32_t first)
{
	struct rank ranks[2] = { { .rank = first }, { .rank = first + 1, .vnc = 1 } };

	if (pthread_create(&ranks[0].thread, NULL, join_rank, &ranks[0]))
		return false;
	join_rank(&ranks[1]);
	pthread_join(ranks[0].thread, NULL);
	return !ranks[0].status && !ranks[1].status;
}

static void *join_first(void *arg)
{
	struct rank *r = arg;

	r->status = nrt_cc_global_comm_init(0, 0, 2);
	return NULL;
}

/* Two ranks in all, both here. */
static bool join_two(void)
{
	struct rank r = { 0 };
	NRT_STATUS status;

	if (pthread_create(&r.thread, NULL, join_first, &r))
		return false;
	status = nrt_cc_global_comm_init(1, 1, 2);
	pthread_join(r.thread, NULL);
	return !r.status && !status;
}

static void other_process(void)
{
	setenv("NEURON_RT_VISIBLE_CORES", "2-3", 1);
	if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") || !join_both(2))
		_exit(1);
	for (int i = 0; i < NR_STEPS; i++)
		both(2, i);
	/* This rank does not take part in the last operation. */
	pthread_barrier_wait(&shared->all);
	pause();
}

#define SOCKET DIRECTORY "/127.0.0.1-7000.sock"

/* A user of this number cannot come as far as the socket; not even if it can be reached. */
static bool stranger_refused(uid_t uid, bool opened)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = SOCKET };
	const uint32_t hello[30] = { 1, 0x6e727463, 2, 0, RANKS };
	int status;
	pid_t pid = fork();

	if (!pid) {
		int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		char answer[16384];

		if (setuid(uid))
			_exit(2);
		if (connect(sock, (struct sockaddr *)&a, sizeof(a)))
			_exit(opened || errno != EACCES);
		/* It may be thrown out before it has spoken. */
		if (send(sock, hello, sizeof(hello), MSG_NOSIGNAL) < 0)
			_exit(errno != EPIPE);
		_exit(!opened || recv(sock, answer, sizeof(answer), 0) > 0);
	}
	return waitpid(pid, &status, 0) == pid && !status;
}

/* Another user is where rank 0 should be, as far as permissions let it. */
static void test_squatter(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = SOCKET };
	int ready[2], status;
	pid_t pid;
	char c = 0;

	if (pipe(ready))
		exit(1);
	/* Only root can let it in, and does not. */
	mkdir(DIRECTORY, 0700);
	CHECK(!chmod(DIRECTORY, 0777), "a directory that all can enter");
	pid = fork();
	if (!pid) {
		int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);

		if (setuid(4321) || bind(sock, (struct sockaddr *)&a, sizeof(a)) || listen(sock, 5) ||
		    write(ready[1], &c, 1) != 1)
			_exit(1);
		pause();
	}
	CHECK(read(ready[0], &c, 1) == 1, "L19: another user has the name there");
	CHECK(join_two(), "which keeps nobody from meeting elsewhere");
	nrt_close();
	CHECK(!chmod(DIRECTORY, 0700), "a directory that became private again");
	CHECK(!nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), "again");
	CHECK(nrt_build_global_comm(1, 1, 2) == NRT_FAILURE, "the one who listens is no rank 0");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	CHECK(join_two(), "rank 0 clears away what is left of it");
	close(ready[0]);
	close(ready[1]);
}

static void test_two_processes(void)
{
	pthread_barrierattr_t attr;
	NRT_STATUS want;
	struct rank r = { 0 };
	struct timespec began, ended;
	pthread_t thread;
	int status;
	pid_t pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->all, &attr, 2);
	pid = fork();
	if (!pid)
		other_process();
	CHECK(!nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), "two processes with two cores each");
	CHECK(join_both(0), "they meet");
	CHECK(stranger_refused(1234, false), "another user does not reach the place");
	CHECK(!chmod(DIRECTORY, 0755) && !chmod(SOCKET, 0777) && stranger_refused(1234, true) &&
	      !chmod(DIRECTORY, 0700), "and is not let in");
	for (int i = 0; i < NR_STEPS; i++) {
		bool ok = true;

		both(0, i);
		want = i > NR_CASES ? NRT_INVALID : NRT_SUCCESS;
		for (uint32_t k = 0; k < RANKS; k++) {
			ok &= shared->status[k] == want;
			if (shared->status[k] != want)
				printf("# rank %u: %s\n", k, nrt_get_status_as_str(shared->status[k]));
		}
		CHECK(ok, i < NR_CASES ? "operation %d" : i == NR_CASES ? "gather (%d)" : "wrong sizes (%d)",
		      i);
	}
	pthread_barrier_wait(&shared->all);
	r.case_nr = 0;
	clock_gettime(CLOCK_MONOTONIC, &began);
	CHECK(!pthread_create(&thread, NULL, step, &r), "one that waits");
	usleep(300000);
	kill(pid, SIGKILL);
	pthread_join(thread, NULL);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	CHECK(r.status == NRT_EXEC_HW_ERR_COLLECTIVES, "a peer is killed: %s",
	      nrt_get_status_as_str(r.status));
	CHECK(ended.tv_sec - began.tv_sec < 60, "which is noticed before the timeout");
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "it is gone");
	r.vnc = r.rank = 1;
	CHECK(nrt_barrier(1, 1, RANKS) == NRT_FAILURE, "the others know");
	nrt_close();
	munmap(shared, sizeof(*shared));
}

static void *barrier_rank(void *arg)
{
	struct rank *r = arg;

	r->status = nrt_barrier((int32_t)r->vnc, r->rank, RANKS);
	if (!r->status)
		r->status = operate(r, r->case_nr, 65536);
	return NULL;
}

static void test_one_process(void)
{
	struct rank ranks[RANKS];
	uint32_t total = 0;

	setenv("NEURON_RT_VISIBLE_CORES", "0-3", 1);
	CHECK(!nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") && !nrt_get_total_vnc_count(&total),
	      "one process with four cores");
	for (int c = 0; c < NR_CASES; c++) {
		bool ok = true;

		for (uint32_t i = 0; i < RANKS; i++) {
			ranks[i] = (struct rank){ .rank = i, .vnc = i, .case_nr = c };
			pthread_create(&ranks[i].thread, NULL, barrier_rank, &ranks[i]);
		}
		for (uint32_t i = 0; i < RANKS; i++) {
			pthread_join(ranks[i].thread, NULL);
			ok &= !ranks[i].status;
		}
		CHECK(ok, "operation %d", c);
	}
	nrt_close();
	CHECK(!nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), "again");
	test_squatter();
	/* Core 0 has met others. */
	nrt_close();
	CHECK(!nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), "and again");
	CHECK(nrt_build_global_comm(0, 0, total + 1) == NRT_FAILURE, "more ranks than cores");
	setenv("NEURON_RT_ROOT_COMM_ID", "192.0.2.1:7000", 1);
	CHECK(nrt_build_global_comm(0, 0, 2) == NRT_FAILURE, "a root that is elsewhere");
	nrt_close();
}

int main(void)
{
	setenv("NEURON_RT_LOG_LEVEL", "ERROR", 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_VISIBLE_CORES", "0-1", 1);
	setenv("NEURON_RT_ROOT_COMM_ID", PLACE, 1);
	setenv("XDG_RUNTIME_DIR", "/tmp/runtime", 1);
	mkdir("/tmp/runtime", 0755);
	setenv("NEURON_RT_EXEC_TIMEOUT", "120", 1);
	counters_take(&start);
	test_two_processes();
	counters_take(&now);
	CHECK(counters_equal(&start, &now), "all memory is back");
	test_one_process();
	counters_take(&now);
	CHECK(counters_equal(&start, &now), "all memory is back");
	return failed != 0;
}

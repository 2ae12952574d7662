// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queued requests of the runtime interface on the software device: completion through
 * eventfds, back-pressure, statuses, and that order within a queue holds.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/eventfd.h>

#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>

#include "nrt_guest.h"

#define DEPTH 4
#define UNSET ((NRT_STATUS)0x5555)

struct io {
	nrt_tensor_t *x, *y;
	nrt_tensor_set_t *in, *out;
	uint8_t bytes[LIST_IN], got[LIST_OUT];
	NRT_STATUS status;
	nrta_seq_t seq;
};

static struct io io[DEPTH];
static struct neff neff, other;

static bool io_init(struct io *i, unsigned int seed)
{
	for (size_t k = 0; k < sizeof(i->bytes); k++)
		i->bytes[k] = (uint8_t)(rand_r(&seed) >> 8);
	return !nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, LIST_IN, "x", &i->x) &&
	       !nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, LIST_OUT, "y", &i->y) &&
	       !nrt_allocate_tensor_set(&i->in) && !nrt_allocate_tensor_set(&i->out) &&
	       !nrt_add_tensor_to_tensor_set(i->in, "x", i->x) &&
	       !nrt_add_tensor_to_tensor_set(i->out, "y", i->y) &&
	       !nrt_tensor_write(i->x, i->bytes, 0, LIST_IN);
}

static void io_free(struct io *i)
{
	nrt_destroy_tensor_set(&i->in);
	nrt_destroy_tensor_set(&i->out);
	nrt_tensor_free(&i->x);
	nrt_tensor_free(&i->y);
}

/* Wait until an eventfd was signalled @n times since. */
static bool wait_fd(int fd, uint64_t n)
{
	while (n) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t some;

		if (poll(&p, 1, 120000) != 1 || read(fd, &some, sizeof(some)) != sizeof(some) || some > n) {
			printf("# %llu signals more were expected\n", (unsigned long long)n);
			return false;
		}
		n -= some;
	}
	return true;
}

static bool wait_seq(nrta_seq_t seq)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	bool ok = nrta_event_register_seq_id_completion(seq, fd) == NRT_SUCCESS && wait_fd(fd, 1), is;

	close(fd);
	return ok && nrta_is_completed(seq, &is) == NRT_SUCCESS && is;
}

static bool right(struct io *i)
{
	return !nrt_tensor_read(i->y, i->got, 0, LIST_OUT) && list_right(i->bytes, i->got);
}

/* As many as fit are queued, then as many again; each has its own answer. */
static void test_rounds(nrt_model_t *m)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	nrta_seq_t last;
	bool ok = true;

	CHECK(nrta_event_register_xu_completion(0, NRTA_XU_COMPUTE, 0, fd) == NRT_SUCCESS,
	      "an eventfd for the queue");
	for (int round = 0; round < 5 && ok; round++) {
		for (int i = 0; i < DEPTH; i++) {
			io[i].status = UNSET;
			ok = ok && !nrt_tensor_memset(io[i].y, 0, 0xee, LIST_OUT) &&
			     !nrta_execute_schedule(m, io[i].in, io[i].out, 0, &io[i].status, &io[i].seq);
		}
		ok = ok && wait_fd(fd, DEPTH);
		for (int i = 0; i < DEPTH; i++)
			ok = ok && io[i].status == NRT_SUCCESS && io[i].seq == io[0].seq + (unsigned int)i &&
			     right(&io[i]);
	}
	CHECK(ok, "20 queued executions, told of by eventfd, in order, with the right bytes");
	CHECK(nrta_get_sequence(0, NRTA_XU_COMPUTE, 0, &last) == NRT_SUCCESS &&
	      last == io[DEPTH - 1].seq, "the queue says which was the last");
	CHECK(nrta_event_register_xu_completion(0, NRTA_XU_COMPUTE, 0, -1) == NRT_SUCCESS, "no more");
	close(fd);
}

/* Write, execute and read, each by its own queue, one told of by the one before. */
static void test_transfers(nrt_model_t *m)
{
	static uint8_t got[LIST_OUT], copy[LIST_OUT];
	NRT_STATUS status[4] = { UNSET, UNSET, UNSET, UNSET };
	nrta_seq_t seq[4];
	bool ok;

	for (size_t k = 0; k < LIST_IN; k++)
		io[0].bytes[k] ^= 0x5a;
	ok = !nrta_tensor_write(io[0].x, io[0].bytes, 0, LIST_IN, 1, &status[0], &seq[0]) &&
	     wait_seq(seq[0]) &&
	     !nrta_execute_schedule(m, io[0].in, io[0].out, 0, &status[1], &seq[1]) &&
	     wait_seq(seq[1]) &&
	     /* The same queue: the second sees what the first has done. */
	     !nrta_tensor_copy(io[0].y, 0, io[1].y, 0, LIST_OUT, 0, &status[2], NULL) &&
	     !nrta_tensor_read(copy, io[1].y, 0, LIST_OUT, 0, &status[3], &seq[3]) &&
	     wait_seq(seq[3]) && !nrt_tensor_read(io[0].y, got, 0, LIST_OUT);
	for (int i = 0; i < 4; i++)
		ok = ok && status[i] == NRT_SUCCESS;
	CHECK(ok && list_right(io[0].bytes, got) && !memcmp(got, copy, LIST_OUT),
	      "queued write, execution, copy and read");
}

static nrt_model_t *program(const struct neuron_isa_inst *code, size_t size)
{
	nrt_model_t *m = NULL;

	neff_program(&other, code, size);
	CHECK(nrt_load(other.data, other.size, 0, -1, &m) == NRT_SUCCESS, "load a bad program");
	return m;
}

static void test_errors(nrt_model_t *m)
{
	struct neuron_isa_inst wait[3] = { inst(NEURON_ISA_OP_PROLOGUE), inst(NEURON_ISA_OP_SEM_WAIT),
					   inst(NEURON_ISA_OP_NOTIFY) };
	struct neuron_isa_inst bad[3] = { inst(NEURON_ISA_OP_PROLOGUE), inst(NEURON_ISA_OP_MATMUL),
					  inst(NEURON_ISA_OP_NOTIFY) };
	NRT_STATUS status[3] = { UNSET, UNSET, UNSET };
	nrt_model_t *hangs, *errs;
	int queued = 0;
	nrta_seq_t seq;
	bool is;

	wait[1].op = NEURON_ISA_WAIT_GE;
	wait[1].u.sem.value = htole32(1);
	wait[2].u.notify.id = bad[2].u.notify.id = htole32(1);
	hangs = program(wait, sizeof(wait));
	errs = program(bad, sizeof(bad));

	CHECK(!nrta_execute_schedule(errs, io[0].in, io[0].out, 0, &status[0], NULL) &&
	      !nrta_execute_schedule(m, NULL, io[0].out, 0, &status[1], NULL) &&
	      !nrta_execute_schedule(m, io[0].in, io[0].out, 0, &status[2], &seq) && wait_seq(seq),
	      "an error, a missing input, and a good one behind them");
	CHECK(status[0] == NRT_EXEC_COMPLETED_WITH_ERR && status[1] == NRT_INVALID &&
	      status[2] == NRT_SUCCESS && right(&io[0]), "each has its own status (%d %d %d)",
	      (int)status[0], (int)status[1], (int)status[2]);

	/* What hangs fills the queue. */
	CHECK(!nrta_execute_schedule(hangs, NULL, NULL, 0, &status[0], &seq), "one that hangs");
	for (int i = 0; i < DEPTH - 1; i++) {
		io[i].status = UNSET;
		queued += !nrta_execute_schedule(m, io[i].in, io[i].out, 0, &io[i].status, &io[i].seq);
	}
	CHECK(queued == DEPTH - 1, "more behind it");
	CHECK(nrta_execute_schedule(m, io[3].in, io[3].out, 0, &status[1], NULL) == NRT_QUEUE_FULL &&
	      status[1] == NRT_INVALID, "the next one finds the queue full, nothing changes");
	CHECK(nrta_is_completed(io[0].seq, &is) == NRT_SUCCESS && !is, "they wait");
	CHECK(nrta_is_completed(io[DEPTH - 2].seq + 1, &is) == NRT_INVALID, "it has no number");
	CHECK(wait_seq(seq) && status[0] == NRT_TIMEOUT, "the one that hangs times out");
	CHECK(wait_seq(io[DEPTH - 2].seq), "the others are done");
	for (int i = 0; i < DEPTH - 1; i++)
		CHECK(io[i].status == NRT_SUCCESS && right(&io[i]), "number %d is right", i);
	CHECK(!nrta_execute_schedule(m, io[3].in, io[3].out, 0, &status[1], &seq) && wait_seq(seq) &&
	      status[1] == NRT_SUCCESS && right(&io[3]), "there is room again");
	CHECK(!nrt_unload(hangs) && !nrt_unload(errs), "unload");
}

static void test_bad_arguments(nrt_model_t *m)
{
	nrta_seq_t seq = 0;
	uint8_t b;
	bool is;

	CHECK(nrta_execute_schedule(m, io[0].in, io[0].out, 1, NULL, &seq) == NRT_INVALID &&
	      nrta_execute_schedule((nrt_model_t *)&b, io[0].in, io[0].out, 0, NULL, &seq) ==
	      NRT_INVALID_HANDLE, "no such queue, no such model");
	CHECK(nrta_tensor_read(&b, io[0].x, LIST_IN, 1, 0, NULL, &seq) == NRT_INVALID &&
	      nrta_tensor_read(&b, io[0].x, 0, 1, 2, NULL, &seq) == NRT_INVALID &&
	      nrta_tensor_write(NULL, &b, 0, 1, 0, NULL, &seq) == NRT_INVALID, "no such bytes or tensor");
	CHECK(nrta_is_completed(0, &is) == NRT_INVALID && nrta_is_completed(~0ull, &is) == NRT_INVALID &&
	      nrta_event_register_seq_id_completion(~0ull, 0) == NRT_INVALID &&
	      nrta_event_register_seq_id_completion(io[0].seq, 12345) == NRT_INVALID &&
	      nrta_event_register_xu_completion(99, NRTA_XU_COMPUTE, 0, 1) == NRT_INVALID,
	      "no such request, descriptor or core");
	CHECK(!seq, "nothing was queued");
}

int main(void)
{
	static struct counters start;
	nrt_model_t *m = NULL;
	nrta_seq_t seq = 0;
	bool ok = true;

	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "4", 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "4", 1);
	counters_take(&start);
	CHECK(nrta_get_sequence(0, NRTA_XU_COMPUTE, 0, &seq) == NRT_UNINITIALIZED, "too early");
	neff_list(&neff);
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS &&
	      nrt_load(neff.data, neff.size, 0, -1, &m) == NRT_SUCCESS, "init and load");
	for (unsigned int i = 0; i < DEPTH; i++)
		ok = ok && io_init(&io[i], i);
	CHECK(ok, "tensors");
	if (failed)
		return 1;
	test_rounds(m);
	test_transfers(m);
	test_errors(m);
	test_bad_arguments(m);
	/* What is queued is finished, or told that it is not; then everything is back. */
	for (int i = 0; i < DEPTH; i++) {
		io[i].status = UNSET;
		ok = ok && !nrta_execute_schedule(m, io[i].in, io[i].out, 0, &io[i].status, NULL);
	}
	for (int i = 0; i < DEPTH; i++)
		io_free(&io[i]);
	CHECK(ok && !nrt_unload(m), "model and tensors go while they are in use");
	nrt_close();
	for (int i = 0; i < DEPTH; i++)
		ok = ok && (io[i].status == NRT_SUCCESS || io[i].status == NRT_CLOSED);
	CHECK(ok, "every request has its status");
	CHECK(nrta_get_sequence(0, NRTA_XU_COMPUTE, 0, &seq) == NRT_CLOSED, "too late");
	CHECK(counters_come_to(&start), "all counters are back");
	return failed != 0;
}

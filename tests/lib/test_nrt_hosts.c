// SPDX-License-Identifier: GPL-2.0-only
/* Collectives between hosts (fleet.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>

#include "fleet.h"
#include "nrt/cc/world.h"

#define MAX_HERE 4u		/* ranks of a host: cores of a device */
#define MAX_ALL (MAX_HOSTS * MAX_HERE)
/* An error of a host that is gone has to come within that; waiting ends after TIMEOUT. */
#define BOUND 20
#define TIMEOUT "60"

/* ---- ranks of a host, as threads ------------------------------------------------------- */

struct rank {
	const struct fleet *f;
	pthread_t thread;
	uint32_t core, rank, count;
	NRT_STATUS (*fn)(struct rank *r, const void *arg);
	const void *arg;
	NRT_STATUS status;
};

static void *rank_main(void *arg)
{
	struct rank *r = arg;

	r->status = r->fn(r, r->arg);
	return NULL;
}

/* What all ranks of this host have, or -1 if it is not the same. */
static NRT_STATUS rank_status(const struct fleet *f, uint32_t host,
			      NRT_STATUS (*fn)(struct rank *r, const void *arg), const void *arg)
{
	struct rank ranks[MAX_HERE];
	NRT_STATUS status;

	for (uint32_t i = 0; i < f->here; i++) {
		ranks[i] = (struct rank){
			.f = f, .core = i, .rank = rank_of(f, host, i),
			.count = f->hosts * f->here, .fn = fn, .arg = arg,
		};
		if (pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]))
			_exit(95);
	}
	for (uint32_t i = 0; i < f->here; i++)
		pthread_join(ranks[i].thread, NULL);
	status = ranks[0].status;
	for (uint32_t i = 0; i < f->here; i++) {
		if (ranks[i].status != NRT_SUCCESS)
			fprintf(stderr, "# rank %u: %s\n", ranks[i].rank,
				nrt_get_status_as_str(ranks[i].status));
		if (ranks[i].status != status)
			return (NRT_STATUS)-1;
	}
	return status;
}

static bool ranks_are(const struct fleet *f, uint32_t host,
		      NRT_STATUS (*fn)(struct rank *r, const void *arg), const void *arg,
		      NRT_STATUS want)
{
	return rank_status(f, host, fn, arg) == want;
}

static NRT_STATUS do_join(struct rank *r, const void *arg)
{
	(void)arg;
	return nrt_build_global_comm((int32_t)r->core, r->rank, r->count);
}

static NRT_STATUS do_barrier(struct rank *r, const void *arg)
{
	(void)arg;
	return nrt_barrier((int32_t)r->core, r->rank, r->count);
}

static NRT_STATUS do_gather(struct rank *r, const void *arg)
{
	const uint32_t *size = arg;
	uint8_t *in = malloc(*size), *out = malloc((size_t)*size * r->count);
	NRT_STATUS status;

	for (uint32_t i = 0; i < *size; i++)
		in[i] = (uint8_t)(r->rank * 31 + i);
	status = nrt_all_gather((int32_t)r->core, r->rank, r->count, *size, in, out);
	for (uint32_t k = 0; k < r->count && status == NRT_SUCCESS; k++)
		for (uint32_t i = 0; i < *size; i++)
			if (out[k * *size + i] != (uint8_t)(k * 31 + i))
				status = NRT_EXEC_COMPLETED_WITH_NUM_ERR;
	free(in);
	free(out);
	return status;
}

/* ---- operations, and a plain reference ------------------------------------------------- */

struct op {
	nrt_cc_op_type_t cc_op;
	nrt_op_type_t op;
	nrt_dtype_t dtype;
	uint32_t elements;	/* of a part, or of the whole for all-reduce */
	bool in_place;
	bool some;		/* the group is every rank but the first, backwards */
	int queue;
	double most;		/* all but the last rank have it, two and two with another sign */
};

/* Small enough for each type to have the sums exactly. */
static double value(const struct op *op, uint32_t rank, uint32_t count, uint32_t i)
{
	if (op->most)
		return rank + 1 == count ? 0 : rank % 4 < 2 ? op->most : -op->most;
	return (double)((rank * 7919 + i * 17 + i / 251) % 2);
}

static uint32_t group_of(const struct op *op, uint32_t count, uint32_t group[MAX_ALL])
{
	uint32_t n = op->some ? count - 1 : count;

	for (uint32_t i = 0; i < n; i++)
		group[i] = op->some ? count - 1 - i : i;
	return n;
}

static double combined(const struct op *op, const uint32_t *group, uint32_t n, uint32_t i)
{
	double acc = value(op, group[0], n, i), v;

	for (uint32_t k = 1; k < n; k++) {
		v = value(op, group[k], n, i);
		acc = op->op == NRT_OP_ADD ? acc + v : (v > acc) == (op->op == NRT_OP_MAX) ? v : acc;
	}
	return acc;
}

static double expected(const struct op *op, const uint32_t *group, uint32_t n, uint32_t place,
		       uint32_t i)
{
	switch (op->cc_op) {
	case NRT_CC_ALLGATHER: return value(op, group[i / op->elements], n, i % op->elements);
	case NRT_CC_ALLREDUCE: return combined(op, group, n, i);
	default: return combined(op, group, n, place * op->elements + i);
	}
}

/* What a number is in memory. */
static void encode(uint8_t *p, nrt_dtype_t dtype, double v)
{
	uint8_t f[4];
	float number = (float)v;
	uint8_t *src[1] = { f };
	uint8_t type = NRT_DTYPE_FLOAT32;

	memcpy(f, &number, 4);
	ref_store(p, (uint8_t)dtype, ref_load(src[0], type));
}

static NRT_STATUS compare(const struct op *op, const uint32_t *group, uint32_t n, uint32_t place,
			  const uint8_t *got, size_t nr)
{
	size_t size = ref_dtype_size((uint8_t)op->dtype);
	uint8_t want[8];

	for (uint32_t i = 0; i < nr; i++) {
		encode(want, op->dtype, expected(op, group, n, place, i));
		if (memcmp(want, got + i * size, size)) {
			fprintf(stderr, "operation %d %d type %d of %u elements: element %u is wrong\n",
				op->cc_op, op->op, op->dtype, op->elements, i);
			return NRT_EXEC_COMPLETED_WITH_NUM_ERR;
		}
	}
	return NRT_SUCCESS;
}

static NRT_STATUS schedule(nrt_cc_context_t *c, int queue)
{
	NRT_STATUS done = (NRT_STATUS)0x5555, status;
	struct pollfd pfd = { .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN };
	nrta_seq_t seq;
	bool complete;

	status = nrta_cc_schedule(&c, queue, &done, &seq);
	if (status == NRT_SUCCESS)
		status = nrta_event_register_seq_id_completion(seq, pfd.fd);
	if (status == NRT_SUCCESS && poll(&pfd, 1, 120000) != 1)
		status = NRT_TIMEOUT;
	close(pfd.fd);
	/* What it was told of has been done, for this thread as well. */
	status = status ?: nrta_is_completed(seq, &complete);
	return status != NRT_SUCCESS ? status : done;
}

static NRT_STATUS run_op(struct rank *r, const struct op *op, const nrt_cc_comm_t *comm)
{
	uint32_t n = comm->rank_n, whole = op->elements * n;
	uint32_t in_nr = op->cc_op == NRT_CC_REDUCESCATTER ? whole : op->elements;
	uint32_t out_nr = op->cc_op == NRT_CC_ALLGATHER ? whole : op->elements;
	size_t size = ref_dtype_size((uint8_t)op->dtype), most = (in_nr > out_nr ? in_nr : out_nr) * size;
	nrt_tensor_t *all = NULL, *in = NULL, *out = NULL;
	nrt_tensor_list_t ins = { &in, 1 }, outs = { &out, 1 };
	nrt_cc_context_t *c = NULL;
	uint8_t *bytes = malloc(most);
	NRT_STATUS status;

	for (uint32_t i = 0; i < in_nr; i++)
		encode(bytes + i * size, op->dtype, value(op, r->rank, n, i));
	status = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, (int)r->core, most + 64, NULL, &all) ?:
		 nrt_tensor_allocate_slice(all, 64, in_nr * size, NULL, &in) ?:
		 nrt_tensor_write(in, bytes, 0, in_nr * size);
	if (status == NRT_SUCCESS)
		status = op->in_place ? nrt_tensor_allocate_slice(all, 64, out_nr * size, NULL, &out) :
			 nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, (int)r->core, out_nr * size,
					     NULL, &out);
	status = status ?: nrta_cc_prepare((nrt_cc_comm_t *)(uintptr_t)comm, &ins, &outs, op->dtype,
					   op->op, op->cc_op, &c) ?:
		 schedule(c, op->queue) ?: nrt_tensor_read(out, bytes, 0, out_nr * size) ?:
		 compare(op, comm->replica_group, n, comm->rank, bytes, out_nr);
	nrt_tensor_free(&all);
	nrt_tensor_free(&in);
	nrt_tensor_free(&out);
	free(bytes);
	return status;
}

static NRT_STATUS do_op(struct rank *r, const void *arg)
{
	const struct op *op = arg;
	uint32_t group[MAX_ALL];
	nrt_cc_comm_t comm = {
		.replica_group = group, .rank_n = group_of(op, r->count, group),
		.ctx_device_id = r->rank, .ctx_device_count = r->count, .vnc = r->core,
	};

	while (comm.rank < comm.rank_n && group[comm.rank] != r->rank)
		comm.rank++;
	return comm.rank == comm.rank_n ? NRT_SUCCESS : run_op(r, op, &comm);
}

/* ---- what hosts do --------------------------------------------------------------------- */

static const nrt_dtype_t dtypes[] = {
	NRT_DTYPE_UINT64, NRT_DTYPE_INT8, NRT_DTYPE_UINT8, NRT_DTYPE_INT16, NRT_DTYPE_UINT16,
	NRT_DTYPE_BFLOAT16, NRT_DTYPE_FLOAT16, NRT_DTYPE_INT32, NRT_DTYPE_UINT32,
	NRT_DTYPE_FLOAT32, NRT_DTYPE_FP32R, NRT_DTYPE_INT64, NRT_DTYPE_FP8_E3, NRT_DTYPE_FP8_E4,
	NRT_DTYPE_FP8_E5,
};

#define NR_DTYPES (sizeof(dtypes) / sizeof(dtypes[0]))

/* All operations, of all types, as long as the argument says. */
static int main_operations(const struct fleet *f, uint32_t host)
{
	const uint32_t *elements = f->arg;
	struct op op = { .elements = *elements };
	int n = 0;

	if (!ranks_are(f, host, do_join, NULL, NRT_SUCCESS))
		return 1;
	for (int cc_op = NRT_CC_ALLGATHER; cc_op <= NRT_CC_REDUCESCATTER; cc_op++)
		for (int way = 0; way < (cc_op == NRT_CC_ALLGATHER ? 1 : 3); way++)
			for (size_t t = 0; t < NR_DTYPES; t++) {
				op.cc_op = cc_op;
				op.op = way == 0 ? NRT_OP_ADD : way == 1 ? NRT_OP_MAX : NRT_OP_MIN;
				op.dtype = dtypes[t];
				op.in_place = t % 2;
				op.some = f->hosts * f->here > 2 && t % 3 == 1;
				op.queue = n++ % 3;
				/* Of long ones two types do. */
				if (*elements > 10000 && t != 5 && t != 9)
					continue;
				if (!ranks_are(f, host, do_op, &op, NRT_SUCCESS))
					return 2;
			}
	return 0;
}

static void operations(uint32_t hosts, uint32_t here, bool interleaved, uint32_t elements)
{
	struct fleet f = {
		.hosts = hosts, .here = here, .interleaved = interleaved,
		.main = main_operations, .arg = &elements,
	};

	run_fleet(&f);
}

static void test_operations(void **state)
{
	(void)state;
	/* In words, told to all, and around the ring. */
	operations(2, 2, false, 1);
	operations(2, 1, false, 3);
	operations(2, 1, false, 3000);
	operations(2, 2, true, 700);
	operations(4, 1, false, 5);
	operations(4, 2, true, 1000);
	operations(4, 2, false, 20);
}

static void test_ring(void **state)
{
	(void)state;
	operations(2, 1, false, 1000003);
	operations(4, 1, false, 300001);
	operations(2, 2, true, 100001);
	operations(4, 2, false, 50001);
}

/* Sums that fit the type, of which a part does not: wherever the ranks are. */
static int main_parts(const struct fleet *f, uint32_t host)
{
	static const struct op ops[] = {
		{ .dtype = NRT_DTYPE_INT8, .most = 100 },
		{ .dtype = NRT_DTYPE_INT16, .most = 30000 },
		{ .dtype = NRT_DTYPE_INT32, .most = 2e9 },
		{ .dtype = NRT_DTYPE_INT64, .most = 1ll << 62 },
		{ .dtype = NRT_DTYPE_FLOAT16, .most = 60000 },
		{ .dtype = NRT_DTYPE_FP8_E3, .most = 12 },
		{ .dtype = NRT_DTYPE_FP8_E4, .most = 224 },
		{ .dtype = NRT_DTYPE_FP8_E5, .most = 49152 },
	};
	const uint32_t *elements = f->arg;

	if (!ranks_are(f, host, do_join, NULL, NRT_SUCCESS))
		return 1;
	for (size_t t = 0; t < sizeof(ops) / sizeof(ops[0]); t++)
		for (int cc_op = NRT_CC_ALLREDUCE; cc_op <= NRT_CC_REDUCESCATTER; cc_op++) {
			struct op op = ops[t];

			op.cc_op = cc_op;
			op.op = NRT_OP_ADD;
			op.elements = *elements;
			op.in_place = t % 2;
			if (!ranks_are(f, host, do_op, &op, NRT_SUCCESS))
				return 2;
		}
	return 0;
}

static void test_parts(void **state)
{
	static const uint32_t elements[] = { 3, 500, 100001 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct fleet pairs = {
			.hosts = 2, .here = 2, .main = main_parts, .arg = &elements[i],
		};
		struct fleet single = {
			.hosts = 4, .here = 1, .main = main_parts, .arg = &elements[i],
		};

		run_fleet(&pairs);
		run_fleet(&single);
	}
}

static int main_gather(const struct fleet *f, uint32_t host)
{
	static const uint32_t sizes[] = { 1, 17, 100000 };

	for (int i = 0; i < 3; i++)
		if (!ranks_are(f, host, do_gather, &sizes[i], NRT_SUCCESS) ||
		    !ranks_are(f, host, do_barrier, NULL, NRT_SUCCESS))
			return 1;
	return 0;
}

static void test_gather(void **state)
{
	struct fleet two = { .hosts = 2, .here = 1, .main = main_gather };
	struct fleet four = { .hosts = 4, .here = 2, .interleaved = true, .main = main_gather };

	(void)state;
	run_fleet(&two);
	run_fleet(&four);
}

/* ---- who does otherwise, and who is gone ----------------------------------------------- */

static NRT_STATUS do_different(struct rank *r, const void *arg)
{
	struct op op = *(const struct op *)arg;

	op.op = host_of(r->f, r->rank) ? NRT_OP_ADD : NRT_OP_MAX;
	return do_op(r, &op);
}

static int main_disagreement(const struct fleet *f, uint32_t host)
{
	struct op op = {
		.cc_op = NRT_CC_ALLREDUCE, .op = NRT_OP_ADD, .dtype = NRT_DTYPE_FLOAT32,
	};
	static const uint32_t sizes[] = { 10, 3000, 100000 };

	if (!ranks_are(f, host, do_join, NULL, NRT_SUCCESS))
		return 1;
	for (int i = 0; i < 3; i++) {
		op.elements = sizes[i];
		if (!ranks_are(f, host, do_different, &op, NRT_INVALID))
			return 2;
		if (!ranks_are(f, host, do_op, &op, NRT_SUCCESS))
			return 3;
	}
	/* What the driver refuses one, all are told. */
	if (host == 1)
		fake_fail(1, _IOC_NR(NEURON_IOCTL_DMA_QUEUE_COPY_START), ENOMEM);
	if (!ranks_are(f, host, do_op, &op,
		       host == 1 ? NRT_RESOURCE : NRT_EXEC_HW_ERR_COLLECTIVES))
		return 4;
	return ranks_are(f, host, do_op, &op, NRT_SUCCESS) ? 0 : 5;
}

static void test_disagreement(void **state)
{
	struct fleet f = { .hosts = 3, .here = 1, .main = main_disagreement };

	(void)state;
	run_fleet(&f);
}

/* One has no memory to say anything, for whatever reason: nobody waits for it. */
static int main_speechless(const struct fleet *f, uint32_t host)
{
	struct op op = {
		.cc_op = NRT_CC_ALLREDUCE, .op = NRT_OP_ADD, .dtype = NRT_DTYPE_FLOAT32,
		.elements = 10,
	};

	if (!ranks_are(f, host, do_join, NULL, NRT_SUCCESS))
		return 1;
	/* The first two are its tensors. */
	if (host == 1)
		fake_fail(3, _IOC_NR(NEURON_NATIVE_MEM_ALLOC), EIO);
	return ranks_are(f, host, do_op, &op, NRT_EXEC_HW_ERR_COLLECTIVES) ? 0 : 2;
}

static void test_speechless(void **state)
{
	struct fleet f = { .hosts = 3, .here = 1, .main = main_speechless };

	(void)state;
	run_fleet(&f);
}

/*
 * One is gone while the others are in the middle of it: each hears of it, by the second
 * operation if it had all it needs for the first.
 */
static int main_gone(const struct fleet *f, uint32_t host)
{
	struct op op = {
		.cc_op = NRT_CC_ALLREDUCE, .op = NRT_OP_ADD, .dtype = NRT_DTYPE_FLOAT32,
		.elements = f->arg ? 100000 : 10,
	};
	NRT_STATUS status = NRT_SUCCESS;
	time_t began;

	if (!ranks_are(f, host, do_join, NULL, NRT_SUCCESS) ||
	    !ranks_are(f, host, do_op, &op, NRT_SUCCESS))
		return 1;
	say(f->from[host]);
	if (!hear(f->to[host]))
		return 2;
	began = time(NULL);
	for (int i = 0; i < 2 && status == NRT_SUCCESS; i++)
		status = rank_status(f, host, do_op, &op);
	if (status != NRT_EXEC_HW_ERR_COLLECTIVES)
		return 3;
	return time(NULL) - began > BOUND ? 4 : 0;
}

static void gone(uint32_t hosts, uint32_t here, uint32_t which, bool cable, bool large)
{
	struct fleet f = {
		.hosts = hosts, .here = here, .main = main_gone, .arg = large ? "" : NULL,
	};

	start(&f);
	for (uint32_t i = 0; i < hosts; i++)
		assert_true(hear(f.from[i]));
	for (uint32_t i = 0; i < hosts; i++)
		if (i != which)
			say(f.to[i]);
	usleep(200000);
	if (cable) {
		assert_int_equal(run("nsenter -t %d -n ip link set port%u down", f.net, which), 0);
		/* It hears nothing of the others, either. */
		say(f.to[which]);
	} else {
		kill(f.pid[which], SIGKILL);
	}
	finish(&f, cable ? UINT32_MAX : which);
}

static void test_killed(void **state)
{
	(void)state;
	gone(2, 1, 1, false, false);
	gone(4, 1, 2, false, true);
	gone(3, 2, 1, false, true);
	/* Where all found each other. */
	gone(3, 1, 0, false, false);
}

static void test_cable(void **state)
{
	(void)state;
	gone(2, 1, 1, true, false);
	gone(4, 1, 2, true, true);
}

/* The network is away for a while, and then there again: nothing has ended. */
static int main_interrupted(const struct fleet *f, uint32_t host)
{
	if (!ranks_are(f, host, do_barrier, NULL, NRT_SUCCESS))
		return 1;
	say(f->from[host]);
	/* While it is away, and when it was: one of those who wait has nothing to send. */
	for (int i = 0; i < 2; i++) {
		if (!hear(f->to[host]))
			return 2;
		if (!ranks_are(f, host, do_barrier, NULL, NRT_SUCCESS))
			return 3;
	}
	return 0;
}

static void test_interrupted(void **state)
{
	struct fleet f = { .hosts = 2, .here = 1, .main = main_interrupted };

	(void)state;
	start(&f);
	for (uint32_t i = 0; i < f.hosts; i++)
		assert_true(hear(f.from[i]));
	assert_int_equal(run("nsenter -t %d -n ip link set port1 down", f.net), 0);
	say(f.to[0]);
	usleep(4800000);
	assert_int_equal(run("nsenter -t %d -n ip link set port1 up", f.net), 0);
	say(f.to[1]);
	/* As long as an end that came of it would take to be noticed. */
	usleep(3000000);
	for (uint32_t i = 0; i < f.hosts; i++)
		say(f.to[i]);
	finish(&f, UINT32_MAX);
}

/* ---- strangers ------------------------------------------------------------------------ */

static int call_root(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd;

	inet_pton(AF_INET, "10.99.0.1", &a.sin_addr);
	for (int i = 0; i < 500; i++) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
			return fd;
		close(fd);
		usleep(20000);
	}
	return -1;
}

/* Those who say nothing, nonsense, half of it, or something about others. */
static int main_strangers(const struct fleet *f, uint32_t host)
{
	struct world_hello h = {
		.magic = WORLD_MAGIC, .version = WORLD_VERSION, .count = 2, .rank = 1,
	};
	uint8_t noise[5000];
	int fds[200];

	if (host == 1) {
		for (int i = 0; i < 200; i++) {
			size_t size = i % 4 == 1 ? sizeof(noise) : (size_t)i;

			fds[i] = call_root();
			if (fds[i] < 0)
				return 1;
			for (size_t k = 0; k < sizeof(noise); k++)
				noise[k] = (uint8_t)(rand() >> 7);
			h.rank = i % 8 == 2 ? 7 : 1;
			h.name_size = i % 8 == 6 ? UINT32_MAX : 0;
			h.version = i % 16 == 3 ? 99 : WORLD_VERSION;
			if (i % 4 >= 2 && h.rank == 1 && !h.name_size && h.version == WORLD_VERSION)
				h.magic = 1;
			if (i % 4 >= 2)
				memcpy(noise, &h, sizeof(h));
			h.magic = WORLD_MAGIC;
			(void)!send(fds[i], noise, i % 4 >= 2 ? sizeof(h) : size, MSG_NOSIGNAL);
		}
	}
	if (!ranks_are(f, host, do_barrier, NULL, NRT_SUCCESS))
		return 2;
	/* What is said after all have come changes nothing for them. */
	if (host == 1) {
		h.name_size = 0;
		for (int i = 0; i < 20; i++) {
			close(fds[i]);
			fds[i] = call_root();
			(void)!send(fds[i], &h, sizeof(h), MSG_NOSIGNAL);
		}
	}
	return ranks_are(f, host, do_barrier, NULL, NRT_SUCCESS) ? 0 : 3;
}

static void test_strangers(void **state)
{
	struct fleet f = { .hosts = 2, .here = 1, .main = main_strangers };

	(void)state;
	run_fleet(&f);
}

/* A rank that is on another host than the root's address, and one that nobody answers. */
static int main_join(const struct fleet *f, uint32_t host)
{
	(void)f;
	if (host)
		return nrt_build_global_comm(0, 0, 2) == NRT_FAILURE ? 0 : 1;
	return nrt_build_global_comm(0, 0, 2) == NRT_TIMEOUT &&
	       nrt_build_global_comm(0, 0, 5000) == NRT_FAILURE ? 0 : 1;
}

static void test_join(void **state)
{
	struct fleet f = { .hosts = 2, .here = 1, .main = main_join };

	(void)state;
	setenv("NEURON_RT_EXEC_TIMEOUT", "3", 1);
	run_fleet(&f);
	setenv("NEURON_RT_EXEC_TIMEOUT", TIMEOUT, 1);
}

/*
 * A provider that has nothing to wait for, as those of fast networks; it knows no networks, but
 * hosts.  Its files are of this test alone: a host that is killed leaves them.
 */
static void test_looks(void **state)
{
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL), 0);
	setenv("NEURON_RT_FABRIC_PROVIDER", "shm", 1);
	test_operations(state);
	test_ring(state);
	test_killed(state);
	unsetenv("NEURON_RT_FABRIC_PROVIDER");
}

static int setup(void **state)
{
	(void)state;
	setenv("NEURON_RT_EXEC_TIMEOUT", TIMEOUT, 1);
	return fleet_setup();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_disagreement),
		cmocka_unit_test(test_speechless),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_cable),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_looks),
	};

	return fleet_tests() ? cmocka_run_group_tests(tests, setup, fleet_end) : 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Collective operations.  Who takes part reads what it needs from the tensors of the
 * others, which come as dma-bufs, and computes its own result, in the order of the
 * ranks, so that everybody gets the same bits.  Nobody goes on before all have read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <neuron/neff.h>
#include <nrt/nrt_async.h>

#include "../../common/lock.h"
#include "../base/log.h"
#include "../base/process.h"
#include "../cc/comm.h"
#include "../object/model.h"
#include "../object/tensor.h"
#include "collective.h"
#include "queue.h"

#define MAX_TENSORS 65536u
/* Of the host: what it has is all there, and stays. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

struct nrt_cc_context {
	struct nrt_cc_context *next;	/* contexts_lock */
	uint32_t vnc;
	uint32_t rank;			/* in @ranks */
	uint32_t nr;
	uint32_t ranks[COMM_MAX_RANKS];
	nrt_dtype_t dtype;
	nrt_op_type_t op;
	nrt_cc_op_type_t cc_op;
	bool through_host;		/* not all on one device */
	size_t nr_tensors;
	nrt_tensor_t **in;
	nrt_tensor_t **out;
};

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nrt_cc_context *contexts;	/* prepared, not scheduled */

/* ---- communicators ----------------------------------------------------------------- */

static NRT_STATUS join(const char *func, int64_t vnc, uint32_t rank, uint32_t count)
{
	struct nrt_vnc *v;
	NRT_STATUS status = nrt_vnc_get(vnc, &v);

	if (status != NRT_SUCCESS) {
		LOG_AS(ENC, ERROR, func, "there is no core %lld", (long long)vnc);
		return status;
	}
	return nrt_comm_join(func, (uint32_t)vnc, rank, count);
}

static NRT_STATUS build(const char *func, int64_t vnc, uint32_t rank, uint32_t count)
{
	NRT_ENTER();
	return join(func, vnc, rank, count);
}

NEURON_EXPORT NRT_STATUS nrt_build_global_comm(int32_t vnc, uint32_t g_device_id,
					       uint32_t g_device_count)
{
	return build(__func__, vnc, g_device_id, g_device_count);
}

NEURON_EXPORT NRT_STATUS nrt_cc_global_comm_init(uint32_t vnc, uint32_t g_device_id,
						 uint32_t g_device_count)
{
	return build(__func__, vnc, g_device_id, g_device_count);
}

NEURON_EXPORT NRT_STATUS nrt_load_collectives(const void *neff_bytes, size_t size, int32_t vnc,
					      int32_t vnc_count, uint32_t ctx_device_id,
					      uint32_t ctx_device_count, nrt_model_t **model)
{
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	if (!neff_bytes || !size || !model) {
		status = NRT_INVALID;
	} else {
		if (vnc == -1)
			vnc = (int32_t)nrt_emptiest_vnc();
		status = join(__func__, vnc, ctx_device_id, ctx_device_count);
	}
	nrt_leave();
	return status == NRT_SUCCESS ? nrt_load(neff_bytes, size, vnc, vnc_count, model) : status;
}

/* ---- memory of the host for others --------------------------------------------------- */

static int make_memfd(void)
{
	return memfd_create("neuron-collective", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/* It can be handed out. */
static bool seal(int fd)
{
	return !fcntl(fd, F_ADD_SEALS, SEALS);
}

/* What another process says is one: reading can neither wait nor fault. */
static bool sealed(int fd, uint64_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS) == SEALS && lseek(fd, 0, SEEK_END) == (off_t)size;
}

static bool read_all(int fd, char *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(fd, bytes + done, size - done, (off_t)done);

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* ---- calls that wait --------------------------------------------------------------- */

/* The kinds of exchanges: those who mean different things must not meet. */
enum kind {
	KIND_BARRIER = 1,
	KIND_ALL_GATHER,
	KIND_OPERATION,
	KIND_DONE,
};

struct params {
	uint32_t kind;
	uint32_t dtype;
	uint32_t op;
	uint32_t cc_op;
	uint64_t size;
	uint32_t index;
	uint32_t nr_tensors;
};

_Static_assert(sizeof(struct params) <= COMM_DATA, "fits");

/* What every exchange has. */
#define EXCHANGE(func_, nr_, params_) \
	.func = (func_), .nr = (nr_), .params = &(params_), .params_size = sizeof(params_)

NEURON_EXPORT NRT_STATUS nrt_barrier(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count)
{
	struct params params = { .kind = KIND_BARRIER };
	struct nrt_exchange x = { EXCHANGE(__func__, g_device_count, params), .fd = -1 };
	NRT_STATUS status;

	NRT_ENTER();
	status = join(__func__, vnc, g_device_id, g_device_count);
	return status == NRT_SUCCESS ? nrt_comm_exchange((uint32_t)vnc, &x) : status;
}

static NRT_STATUS gather(int fds[], uint32_t count, size_t size, void *out)
{
	for (uint32_t i = 0; i < count; i++)
		if (!sealed(fds[i], size) || !read_all(fds[i], (char *)out + i * size, size))
			return NRT_FAILURE;
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_all_gather(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count,
					uint32_t rank_input_size, void *input, void *output)
{
	struct params params = { .kind = KIND_ALL_GATHER, .size = rank_input_size };
	int fds[COMM_MAX_RANKS];
	struct nrt_exchange x = { EXCHANGE(__func__, g_device_count, params), .fds = fds };
	NRT_STATUS status;

	NRT_ENTER();
	status = !rank_input_size || !input || !output ? NRT_INVALID :
		 join(__func__, vnc, g_device_id, g_device_count);
	if (status != NRT_SUCCESS)
		return status;
	x.fd = make_memfd();
	/* The others are waiting for us, also if we cannot. */
	if (x.fd < 0 || write_bytes(x.fd, input, rank_input_size) || !seal(x.fd))
		x.failed = true;
	status = nrt_comm_exchange((uint32_t)vnc, &x);
	if (x.fd >= 0)
		close(x.fd);
	if (status == NRT_SUCCESS) {
		status = gather(fds, g_device_count, rank_input_size, output);
		comm_close_fds(fds, g_device_count);
	} else if (x.failed) {
		status = NRT_RESOURCE;
	}
	return status;
}

/* ---- preparing --------------------------------------------------------------------- */

static void context_free(struct nrt_cc_context *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nr_tensors; i++) {
		if (c->in)
			nrt_tensor_drop(c->in[i]);
		if (c->out)
			nrt_tensor_drop(c->out[i]);
	}
	free(c->in);
	free(c->out);
	free(c);
}

/* Both interfaces have the same numbers. */
static uint32_t element_size(nrt_dtype_t dtype)
{
	return neuron_neff_dtype_size((enum neuron_neff_dtype)dtype);
}

static bool group_valid(const nrt_cc_comm_t *comm)
{
	if (!comm->rank_n || comm->rank_n > COMM_MAX_RANKS || comm->rank >= comm->rank_n)
		return false;
	if (!comm->replica_group)
		return comm->rank_n == comm->ctx_device_count &&
		       comm->rank == comm->ctx_device_id;
	for (uint32_t i = 0; i < comm->rank_n; i++)
		for (uint32_t k = 0; k <= i; k++)
			if (comm->replica_group[i] >= comm->ctx_device_count ||
			    (k < i && comm->replica_group[k] == comm->replica_group[i]))
				return false;
	return comm->replica_group[comm->rank] == comm->ctx_device_id;
}

static bool operation_valid(nrt_dtype_t dtype, nrt_op_type_t op, nrt_cc_op_type_t cc_op)
{
	if (!element_size(dtype))
		return false;
	switch (cc_op) {
	case NRT_CC_ALLGATHER:
		return true;
	case NRT_CC_ALLREDUCE:
	case NRT_CC_REDUCESCATTER:
		/* A factor, which fma needs, has no place in the interface. */
		return op == NRT_OP_ADD || op == NRT_OP_MAX || op == NRT_OP_MIN;
	}
	return false;
}

/* On the core's device, or in memory of the host that it reaches. */
static bool reachable(const nrt_tensor_t *t, const struct neuron_device *device)
{
	return nrt_tensor_valid(t) && nrt_tensor_stored(t) &&
	       t->storage->kind != NRT_STORAGE_USER && t->storage->device == device;
}

static bool sizes_valid(const struct nrt_cc_context *c, uint64_t in, uint64_t out)
{
	uint32_t nr = c->nr;

	if (!in || !out || in % element_size(c->dtype) || out % element_size(c->dtype))
		return false;
	switch (c->cc_op) {
	case NRT_CC_ALLGATHER: return out / nr == in && !(out % nr);
	case NRT_CC_REDUCESCATTER: return in / nr == out && !(in % nr);
	default: return in == out;
	}
}

static NRT_STATUS hold_tensors(struct nrt_cc_context *c, const nrt_tensor_list_t *in,
			       const nrt_tensor_list_t *out)
{
	struct neuron_device *device = nrt_process.vncs[c->vnc].device;

	c->in = calloc(in->num_tensors, sizeof(*c->in));
	c->out = calloc(in->num_tensors, sizeof(*c->out));
	if (!c->in || !c->out)
		return NRT_RESOURCE;
	for (size_t i = 0; i < in->num_tensors; i++) {
		const nrt_tensor_t *from = in->tensors[i], *to = out->tensors[i];

		if (!reachable(from, device) || !reachable(to, device) ||
		    !sizes_valid(c, from->size, to->size)) {
			LOG_AS(ENC, ERROR, "nrta_cc_prepare",
			       "tensors %zu are of other sizes, or not in memory of the core's device",
			       i);
			return NRT_INVALID;
		}
		c->nr_tensors = i + 1;
		c->in[i] = nrt_tensor_hold(from);
		c->out[i] = nrt_tensor_hold(to);
		if (!c->in[i] || !c->out[i])
			return NRT_RESOURCE;
	}
	return NRT_SUCCESS;
}

static NRT_STATUS prepare(const nrt_cc_comm_t *comm, const nrt_tensor_list_t *in,
			  const nrt_tensor_list_t *out, nrt_dtype_t dtype, nrt_op_type_t op,
			  nrt_cc_op_type_t cc_op, struct nrt_cc_context **context)
{
	struct nrt_cc_context *c;
	struct nrt_vnc *v;
	NRT_STATUS status;

	if (!comm || !in || !out || !context || !in->tensors || !out->tensors ||
	    !in->num_tensors || in->num_tensors > MAX_TENSORS ||
	    in->num_tensors != out->num_tensors || nrt_vnc_get(comm->vnc, &v) != NRT_SUCCESS ||
	    !group_valid(comm) || !operation_valid(dtype, op, cc_op)) {
		LOG_AS(ENC, ERROR, "nrta_cc_prepare", "invalid argument");
		return NRT_INVALID;
	}
	status = nrt_comm_check(comm->vnc, comm->ctx_device_id, comm->ctx_device_count);
	if (status != NRT_SUCCESS) {
		LOG_AS(ENC, ERROR, "nrta_cc_prepare",
		       "core %u has not joined as rank %u of %u: nrt_cc_global_comm_init() comes first",
		       comm->vnc, comm->ctx_device_id, comm->ctx_device_count);
		return status;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NRT_RESOURCE;
	c->vnc = comm->vnc;
	c->rank = comm->rank;
	c->nr = comm->rank_n;
	c->dtype = dtype;
	c->op = op;
	c->cc_op = cc_op;
	for (uint32_t i = 0; i < c->nr; i++) {
		c->ranks[i] = comm->replica_group ? comm->replica_group[i] : i;
		if (nrt_comm_device(c->vnc, c->ranks[i]) !=
		    nrt_comm_device(c->vnc, comm->ctx_device_id))
			c->through_host = true;
	}
	status = hold_tensors(c, in, out);
	if (status == NRT_SUCCESS)
		*context = c;
	else
		context_free(c);
	return status;
}

static void context_add(struct nrt_cc_context *c)
{
	GUARD(&contexts_lock);
	c->next = contexts;
	contexts = c;
}

/* The list tells handles from anything else. */
static bool context_take(const struct nrt_cc_context *c)
{
	struct nrt_cc_context **at;

	GUARD(&contexts_lock);
	for (at = &contexts; *at && *at != c; at = &(*at)->next)
		;
	if (!*at)
		return false;
	*at = c->next;
	return true;
}

void nrt_cc_close(void)
{
	while (contexts) {
		struct nrt_cc_context *c = contexts;

		contexts = c->next;
		context_free(c);
	}
}

/* In a child: what they hold is the parent's. */
void nrt_cc_forget(void)
{
	pthread_mutex_init(&contexts_lock, NULL);
	contexts = NULL;
}

NEURON_EXPORT NRT_STATUS nrta_cc_prepare(nrt_cc_comm_t *comm, nrt_tensor_list_t *input,
					 nrt_tensor_list_t *output, nrt_dtype_t dtype,
					 nrt_op_type_t op, nrt_cc_op_type_t cc_op,
					 nrt_cc_context_t **cc_ctx)
{
	NRT_STATUS status;

	NRT_ENTER();
	status = prepare(comm, input, output, dtype, op, cc_op, cc_ctx);
	if (status == NRT_SUCCESS)
		context_add(*cc_ctx);
	return status;
}

/* ---- doing it ---------------------------------------------------------------------- */

/* Where the input of a rank is. */
struct source {
	struct neuron_mem *mem;
	uint64_t offset;
	bool own;			/* to be freed */
};

static struct params params_of(const struct nrt_cc_context *c, enum kind kind, size_t i)
{
	return (struct params){
		.kind = kind,
		.dtype = c->dtype,
		.op = c->cc_op == NRT_CC_ALLGATHER ? 0 : c->op,
		.cc_op = c->cc_op,
		.size = c->in[i]->size,
		.index = (uint32_t)i,
		.nr_tensors = (uint32_t)c->nr_tensors,
	};
}

/* Between a file of the host and memory that the device reaches; 0 or -errno. */
static int copy_file(int fd, struct neuron_mem *mem, uint64_t offset, uint64_t size, bool to_file)
{
	void *map = mmap(NULL, size, PROT_READ | (to_file ? PROT_WRITE : 0),
			 to_file ? MAP_SHARED : MAP_PRIVATE, fd, 0);
	int ret;

	if (map == MAP_FAILED)
		return -ENOMEM;
	ret = to_file ? neuron_mem_read(mem, offset, map, size) :
			neuron_mem_write(mem, offset, map, size);
	munmap(map, size);
	return ret;
}

/* Our input as others can have it: -1 and the reason. */
static int offer(const struct nrt_cc_context *c, const nrt_tensor_t *t, NRT_STATUS *status)
{
	int fd = -1, ret;

	if (!c->through_host) {
		/* Not read-only: such a one nobody can import. */
		ret = neuron_mem_export(t->storage->mem, 0, &fd);
	} else {
		fd = make_memfd();
		ret = fd < 0 || ftruncate(fd, (off_t)t->size) ? -ENOMEM :
		      copy_file(fd, t->storage->mem, t->offset, t->size, true);
		if (!ret && !seal(fd))
			ret = -ENOMEM;
		if (ret)
			comm_close_fds(&fd, 1);
	}
	*status = nrt_status_of(ret);
	return ret ? -1 : fd;
}

static int alloc_staging(const struct nrt_cc_context *c, uint64_t bytes, struct neuron_mem **mem)
{
	return nrt_core_alloc(&nrt_process.vncs[c->vnc], NEURON_MEM_COLLECTIVES, 0, bytes, mem);
}

/* The input of another rank, from what it offers. */
static NRT_STATUS fetch(const struct nrt_cc_context *c, int fd, uint64_t offset, uint64_t size,
			struct source *s)
{
	struct neuron_device *device = nrt_process.vncs[c->vnc].device;
	int ret;

	if (!c->through_host) {
		ret = neuron_mem_import(device, fd, &s->mem);
		if (ret)
			return nrt_status_of(ret);
		s->own = true;
		s->offset = offset;
		return offset <= neuron_mem_bytes(s->mem) &&
		       size <= neuron_mem_bytes(s->mem) - offset ? NRT_SUCCESS : NRT_FAILURE;
	}
	if (!sealed(fd, size))
		return NRT_FAILURE;
	ret = alloc_staging(c, size, &s->mem);
	if (ret)
		return nrt_status_of(ret);
	s->own = true;
	return nrt_status_of(copy_file(fd, s->mem, 0, size, false));
}

/* Sources from byte @at on, @size bytes of each, into @to. */
static NRT_STATUS reduce(const struct nrt_cc_context *c, const struct source *sources,
			 uint64_t at, uint64_t size, struct neuron_mem *to, uint64_t to_offset)
{
	static const enum neuron_compute_op ops[] = {
		[NRT_OP_ADD] = NEURON_COMPUTE_ADD,
		[NRT_OP_MAX] = NEURON_COMPUTE_MAX,
		[NRT_OP_MIN] = NEURON_COMPUTE_MIN,
	};
	struct neuron_operand src[NEURON_COMPUTE_MAX_SOURCES];
	struct neuron_compute compute = {
		.size = sizeof(compute),
		.op = ops[c->op],
		.elements = size / element_size(c->dtype),
		.dst = { .mem = to, .offset = to_offset, .dtype = c->dtype },
		.src = src,
	};
	uint32_t next = 0;
	int ret = 0;

	/* From the second time on the result so far is the first source. */
	while (next < c->nr && !ret) {
		uint32_t n = 0;

		if (next)
			src[n++] = compute.dst;
		while (n < NEURON_COMPUTE_MAX_SOURCES && next < c->nr) {
			src[n++] = (struct neuron_operand){
				.mem = sources[next].mem,
				.offset = sources[next].offset + at,
				.dtype = c->dtype,
			};
			next++;
		}
		compute.nr_src = n;
		ret = neuron_core_compute(nrt_process.vncs[c->vnc].core, &compute,
					  nrt_process.timeout_ms);
	}
	/* The core is reset before it is used again; the device is there. */
	return ret == -EIO ? NRT_EXEC_HW_ERR_DMA_ABORT : nrt_status_of(ret);
}

static NRT_STATUS compute(const struct nrt_cc_context *c, const struct source *sources,
			  uint64_t in_size, uint64_t out_size, struct neuron_mem *to,
			  uint64_t to_offset)
{
	int ret = 0;

	if (c->cc_op == NRT_CC_REDUCESCATTER)
		return reduce(c, sources, c->rank * out_size, out_size, to, to_offset);
	if (c->cc_op == NRT_CC_ALLREDUCE)
		return reduce(c, sources, 0, out_size, to, to_offset);
	for (uint32_t i = 0; i < c->nr && !ret; i++)
		ret = neuron_mem_copy(to, to_offset + i * in_size, sources[i].mem,
				      sources[i].offset, in_size);
	return nrt_status_of(ret);
}

static bool overlap(const nrt_tensor_t *a, const nrt_tensor_t *b)
{
	return a->storage == b->storage && a->offset < b->offset + b->size &&
	       b->offset < a->offset + a->size;
}

/* With what all offered: the result, in @staging if others may still read what is there. */
static NRT_STATUS take_part(const struct nrt_cc_context *c, size_t i, int *fds,
			    uint8_t (*all)[COMM_DATA], struct neuron_mem **staging)
{
	nrt_tensor_t *in = c->in[i], *out = c->out[i];
	struct source sources[COMM_MAX_RANKS] = { 0 };
	NRT_STATUS status = NRT_SUCCESS;

	for (uint32_t k = 0; k < c->nr && status == NRT_SUCCESS; k++) {
		uint64_t offset;

		memcpy(&offset, all[k], sizeof(offset));
		if (k == c->rank)
			sources[k] = (struct source){ in->storage->mem, in->offset, false };
		else
			status = fetch(c, fds[k], offset, in->size, &sources[k]);
	}
	if (status == NRT_SUCCESS && overlap(in, out))
		status = nrt_status_of(alloc_staging(c, out->size, staging));
	if (status == NRT_SUCCESS)
		status = compute(c, sources, in->size, out->size,
				 *staging ? *staging : out->storage->mem,
				 *staging ? 0 : out->offset);
	for (uint32_t k = 0; k < c->nr; k++)
		if (sources[k].own)
			neuron_mem_free(sources[k].mem);
	return status;
}

static NRT_STATUS run_tensor(const struct nrt_cc_context *c, uint32_t channel, size_t i)
{
	struct params params = params_of(c, KIND_OPERATION, i);
	/* The descriptor has the rest of what a rank says of its input. */
	uint64_t offset = c->in[i]->offset;
	struct neuron_mem *staging = NULL;
	uint8_t all[COMM_MAX_RANKS][COMM_DATA];
	int fds[COMM_MAX_RANKS];
	NRT_STATUS status, own;
	struct nrt_exchange x = {
		EXCHANGE("nrta_cc_schedule", c->nr, params),
		.channel = channel,
		.ranks = c->ranks,
		.data = &offset,
		.data_size = sizeof(offset),
		.all = all,
		.fds = fds,
	};

	x.fd = offer(c, c->in[i], &own);
	x.failed = x.fd < 0;
	status = nrt_comm_exchange(c->vnc, &x);
	if (x.fd >= 0)
		close(x.fd);
	if (status != NRT_SUCCESS)
		return x.failed && status == NRT_EXEC_COMPLETED_WITH_ERR ? own : status;

	own = take_part(c, i, fds, all, &staging);
	comm_close_fds(fds, c->nr);
	/* Until everybody has read, inputs stay as they are. */
	params.kind = KIND_DONE;
	x.fd = -1;
	x.fds = NULL;
	x.failed = own != NRT_SUCCESS;
	status = nrt_comm_exchange(c->vnc, &x);
	if (status == NRT_SUCCESS && staging)
		status = nrt_status_of(neuron_mem_copy(c->out[i]->storage->mem, c->out[i]->offset,
						       staging, 0, c->out[i]->size));
	neuron_mem_free(staging);
	return x.failed && status == NRT_EXEC_COMPLETED_WITH_ERR ? own : status;
}

static NRT_STATUS run_context(const struct nrt_cc_context *c, uint32_t queue)
{
	NRT_STATUS status = NRT_SUCCESS;
	size_t i;

	for (i = 0; i < c->nr_tensors && status == NRT_SUCCESS; i++)
		status = run_tensor(c, 1 + queue, i);
	switch (status) {
	case NRT_TIMEOUT:
		LOG_AS(ENC, ERROR, "nrta_cc_schedule",
		       "(FATAL-RT-UNDEFINED-STATE) missing collectives status on Neuron Device %u NC %u, model 0 - suspected hang in collectives operation %zu out of %zu",
		       neuron_device_index(nrt_process.vncs[c->vnc].device),
		       nrt_process.vncs[c->vnc].index, i - 1, c->nr_tensors);
		return NRT_EXEC_HW_ERR_COLLECTIVES;
	case NRT_FAILURE:
	case NRT_EXEC_COMPLETED_WITH_ERR:
		return NRT_EXEC_HW_ERR_COLLECTIVES;
	default:
		return status;
	}
}

/* ---- queueing it ------------------------------------------------------------------- */

static NRT_STATUS run_job(const struct nrt_job *job)
{
	return run_context(job->collective, job->queue);
}

static void drop_job(const struct nrt_job *job)
{
	context_free(job->collective);
}

static const struct nrt_job_ops job_ops = { .run = run_job, .drop = drop_job };

NEURON_EXPORT NRT_STATUS nrta_cc_schedule(nrt_cc_context_t **cc_ctx, int queue, NRT_STATUS *ret,
					  nrta_seq_t *seq)
{
	struct nrt_job job = { .ops = &job_ops, .ret = ret, .queue = (uint32_t)queue };
	struct nrt_cc_context *c;
	NRT_STATUS status;

	NRT_ENTER();
	if (!cc_ctx)
		return NRT_INVALID;
	c = *cc_ctx;
	if (!context_take(c))
		return NRT_INVALID_HANDLE;
	job.collective = c;
	/* Only if it is queued it is the queue's. */
	status = nrt_queue_submit(c->vnc, NRTA_XU_COLLECTIVES, queue, &job, false, seq);
	if (status == NRT_SUCCESS)
		*cc_ctx = NULL;
	else
		context_add(c);
	return status;
}

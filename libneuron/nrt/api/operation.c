// SPDX-License-Identifier: LGPL-2.1-or-later
/* What an operation is made of: what ranks give each other, and combining it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <neuron/neff.h>

#include "../../common/sums.h"
#include "../object/model.h"
#include "operation.h"

/* Of the host: what it has is all there, and stays. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)


/* ---- memory of the host for others --------------------------------------------------- */

int cc_make_memfd(void)
{
	return memfd_create("neuron-collective", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/* It can be handed out. */
bool cc_seal(int fd)
{
	return !fcntl(fd, F_ADD_SEALS, SEALS);
}

/* What another process says is one: reading can neither wait nor fault. */
bool cc_sealed(int fd, uint64_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS) == SEALS && lseek(fd, 0, SEEK_END) == (off_t)size;
}

bool cc_read_all(int fd, char *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(fd, bytes + done, size - done, (off_t)done);

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* ---- an operation ------------------------------------------------------------------- */

/* Both interfaces have the same numbers. */
uint32_t cc_element_size(nrt_dtype_t dtype)
{
	return neuron_neff_dtype_size((enum neuron_neff_dtype)dtype);
}

nrt_dtype_t cc_partial_type(const struct nrt_cc_context *c)
{
	if (c->cc_op == NRT_CC_ALLGATHER || c->op != NRT_OP_ADD ||
	    sums_fit((enum neuron_neff_dtype)c->dtype))
		return c->dtype;
	return NRT_DTYPE_FLOAT32;
}

struct params cc_params_of(const struct nrt_cc_context *c, enum kind kind, size_t i)
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

bool cc_overlap(const nrt_tensor_t *a, const nrt_tensor_t *b)
{
	return a->storage == b->storage && a->offset < b->offset + b->size &&
	       b->offset < a->offset + a->size;
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
int cc_offer(const struct nrt_cc_context *c, const nrt_tensor_t *t, NRT_STATUS *status)
{
	int fd = -1, ret;

	if (!c->through_host) {
		/* Not read-only: such a one nobody can import. */
		ret = neuron_mem_export(t->storage->mem, 0, &fd);
	} else {
		fd = cc_make_memfd();
		ret = fd < 0 || ftruncate(fd, (off_t)t->size) ? -ENOMEM :
		      copy_file(fd, t->storage->mem, t->offset, t->size, true);
		if (!ret && !cc_seal(fd))
			ret = -ENOMEM;
		if (ret)
			comm_close_fds(&fd, 1);
	}
	*status = nrt_status_of(ret);
	return ret ? -1 : fd;
}

int cc_alloc_staging(const struct nrt_cc_context *c, uint64_t bytes, struct neuron_mem **mem)
{
	return nrt_core_alloc(&nrt_process.vncs[c->vnc], NEURON_MEM_COLLECTIVES, 0, bytes, mem);
}

/* The input of another rank, from what it offers. */
NRT_STATUS cc_fetch(const struct nrt_cc_context *c, int fd, uint64_t offset, uint64_t size,
			struct source *s)
{
	struct neuron_device *device = nrt_process.vncs[c->vnc].device;
	int ret;

	s->dtype = c->dtype;
	if (!c->through_host) {
		ret = neuron_mem_import(device, fd, &s->mem);
		if (ret)
			return nrt_status_of(ret);
		s->own = true;
		s->offset = offset;
		return offset <= neuron_mem_bytes(s->mem) &&
		       size <= neuron_mem_bytes(s->mem) - offset ? NRT_SUCCESS : NRT_FAILURE;
	}
	if (!cc_sealed(fd, size))
		return NRT_FAILURE;
	ret = cc_alloc_staging(c, size, &s->mem);
	if (ret)
		return nrt_status_of(ret);
	s->own = true;
	return nrt_status_of(copy_file(fd, s->mem, 0, size, false));
}

void cc_put_sources(struct source *sources, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		if (sources[i].own)
			neuron_mem_free(sources[i].mem);
}

static struct neuron_operand operand_of(const struct source *s, uint64_t at)
{
	return (struct neuron_operand){
		.mem = s->mem,
		.offset = s->offset + at * cc_element_size(s->dtype),
		.dtype = s->dtype,
	};
}

/* What does not fit into one transfer goes by way of @partial, which may be the result. */
static int reduce(const struct nrt_cc_context *c, const struct source *sources, uint32_t nr,
		  uint64_t at, uint64_t elements, struct neuron_operand to,
		  struct neuron_operand partial)
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
		.elements = elements,
		.src = src,
	};
	uint32_t next = 0;
	int ret = 0;

	/* From the second time on the result so far is the first source. */
	while (next < nr && !ret) {
		uint32_t n = 0;

		if (next)
			src[n++] = partial;
		while (n < NEURON_COMPUTE_MAX_SOURCES && next < nr)
			src[n++] = operand_of(&sources[next++], at);
		compute.nr_src = n;
		compute.dst = next < nr ? partial : to;
		ret = neuron_core_compute(nrt_process.vncs[c->vnc].core, &compute,
					  nrt_process.timeout_ms);
	}
	return ret;
}

NRT_STATUS cc_reduce(const struct nrt_cc_context *c, const struct source *sources, uint32_t nr,
		     uint64_t at, uint64_t elements, const struct source *to)
{
	struct source partial = { .dtype = cc_partial_type(c) };
	bool apart = nr > NEURON_COMPUTE_MAX_SOURCES && to->dtype != partial.dtype;
	uint64_t most = elements;
	int ret = 0;

	if (apart) {
		most = NEURON_COLLECTIVE_SUMS / cc_element_size(partial.dtype);
		most = elements < most ? elements : most;
		ret = cc_alloc_staging(c, most * cc_element_size(partial.dtype), &partial.mem);
	}
	for (uint64_t done = 0, n; done < elements && !ret; done += n) {
		struct neuron_operand result = operand_of(to, done);

		n = elements - done < most ? elements - done : most;
		ret = reduce(c, sources, nr, at + done, n, result,
			     apart ? operand_of(&partial, 0) : result);
	}
	neuron_mem_free(partial.mem);
	/* The core is reset before it is used again; the device is there. */
	return ret == -EIO ? NRT_EXEC_HW_ERR_DMA_ABORT : nrt_status_of(ret);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Computing with device memory through libneuron: every operation against
 * dma_ref.h, on each core, from imported and host memory, between runs of a model.
 */
#include <math.h>
#include <poll.h>

#include <neuron/neuron.h>

#include "check.h"
#include "../../lib/dma_ref.h"

#define BYTES	(4u << 20)
#define RESULT	(3u << 20)

static uint8_t data[BYTES], want[BYTES - RESULT], got[BYTES - RESULT];
static uint64_t rng = 88172645463325252ULL;

static uint64_t rnd(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

/* @nr sources of @elements each, wherever; the result at RESULT of @to. */
static bool right(struct neuron_core *core, struct neuron_mem *from, struct neuron_mem *to,
		  uint32_t op, size_t nr, uint64_t elements)
{
	struct neuron_operand src[NEURON_COMPUTE_MAX_SOURCES];
	uint8_t types[NEURON_COMPUTE_MAX_SOURCES], *p[NEURON_COMPUTE_MAX_SOURCES];
	struct neuron_compute c = {
		.size = sizeof(c), .op = op, .scale = 0.25f, .elements = elements,
		.dst = { to, RESULT, 1 + (uint32_t)(rnd() % 15) }, .src = src, .nr_src = nr,
	};
	size_t bytes = elements * ref_dtype_size((uint8_t)c.dst.dtype);

	for (size_t i = 0; i < nr; i++) {
		types[i] = (uint8_t)(1 + rnd() % 15);
		src[i] = (struct neuron_operand){ from, rnd() % (RESULT - elements * 8), types[i] };
		p[i] = data + src[i].offset;
	}
	ref_compute(want, (uint8_t)op, (uint8_t)c.dst.dtype, p, types, (uint32_t)nr,
		    op == NEURON_COMPUTE_FMA ? NEURON_ISA_DMA_ARG_FP32 : 0,
		    op == NEURON_COMPUTE_FMA ? 0x3e800000 : 0, elements);
	return !neuron_core_compute(core, &c, 60000) && !neuron_mem_read(to, RESULT, got, bytes) &&
	       !memcmp(got, want, bytes);
}

int main(void)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };
	struct neuron_mem *mem, *host, *imported;
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_compute bad = { .size = sizeof(bad) };
	struct neuron_operand src;
	unsigned int wrong;
	int ret, fd;

	for (size_t i = 0; i < BYTES; i++)
		data[i] = (uint8_t)rnd();
	CHECK(!neuron_device_open(0, &device), "open");
	for (uint32_t nc = 0; nc < 2; nc++) {
		CHECK(!neuron_core_open(device, nc, NULL, &core), "core %u", nc);
		CHECK(!neuron_mem_alloc(device, BYTES, &opts, &mem) &&
		      !neuron_mem_write(mem, 0, data, BYTES), "memory");
		for (uint32_t op = 0; op <= NEURON_COMPUTE_MAX; op++) {
			wrong = 0;
			for (unsigned int i = 0; i < 40; i++)
				wrong += !right(core, mem, mem, op, op ? 1 + rnd() % 16 : 1,
						1 + rnd() % (i ? 3000 : 100000));
			CHECK(!wrong, "operation %u: %u of 40 are wrong", op, wrong);
		}
		neuron_mem_free(mem);
		neuron_core_close(core);
	}

	CHECK(!neuron_core_open(device, 0, NULL, &core) && !neuron_mem_alloc(device, BYTES, &opts, &mem),
	      "again");
	opts.flags = NEURON_MEM_F_HOST;
	opts.category = NEURON_MEM_HOST_TENSORS;
	CHECK(!neuron_mem_alloc(device, BYTES, &opts, &host) && !neuron_mem_write(host, 0, data, BYTES),
	      "host memory");
	CHECK(right(core, host, mem, NEURON_COMPUTE_ADD, 16, 50000), "from host memory");
	CHECK(!neuron_mem_export(host, 0, &fd) && !neuron_mem_import(device, fd, &imported),
	      "as another process would");
	CHECK(right(core, imported, mem, NEURON_COMPUTE_ADD, 16, 50000), "from imported memory");

	/* Nothing of it may be left over. */
	src = (struct neuron_operand){ imported, 0, NEURON_ISA_DT_FP32 };
	bad = (struct neuron_compute){
		.size = sizeof(bad), .op = NEURON_COMPUTE_ADD, .elements = BYTES / 4,
		.dst = { mem, 0, NEURON_ISA_DT_FP32 }, .src = &src, .nr_src = 1,
	};
	ret = neuron_core_compute(core, &bad, 0);
	CHECK(!ret || ret == -ETIMEDOUT, "no time: %d", ret);
	CHECK(!neuron_core_compute(core, &bad, 60000) && !neuron_mem_read(mem, 0, want, 4096) &&
	      !neuron_mem_read(host, 0, got, 4096), "after it");
	bad.elements++;
	CHECK(neuron_core_compute(core, &bad, 60000) == -EINVAL, "beyond the end");
	CHECK(!neuron_core_reset(core) && right(core, host, mem, NEURON_COMPUTE_MAX, 3, 50000),
	      "after a reset");
	neuron_mem_free(imported);
	close(fd);
	neuron_mem_free(host);
	neuron_mem_free(mem);
	neuron_core_close(core);
	neuron_device_close(device);
	return failed != 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Models and memory of the software device in host memory, and back to the same results. */
#define _GNU_SOURCE
#include <neuron/neuron.h>

#include "nrt_guest.h"

#define MODELS	"/usr/share/neuron/models/"
#define MIB	(1ull << 20)
#define BIG	(512 * MIB)

static struct counters start, now;

struct job {
	struct neuron_model *model;
	struct neuron_mem *in, *out;
	struct neuron_io io[2];
	uint8_t want[65536];
	uint64_t bytes;			/* of the output */
};

static uint64_t used(struct neuron_device *d)
{
	struct neuron_hbm_stats s = { .size = sizeof(s) };
	uint64_t sum = 0;

	for (uint32_t i = 0; !neuron_hbm_get_stats(d, i, &s); i++)
		sum += s.own_process;
	return sum;
}

static bool load(struct neuron_core *core, const char *path, struct job *j)
{
	FILE *f = fopen(path, "rb");
	static uint8_t neff[4 << 20];
	size_t n = f ? fread(neff, 1, sizeof(neff), f) : 0;
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS,
				     .flags = NEURON_MEM_F_MOVABLE };
	struct neuron_tensor_info t = { .size = sizeof(t) };
	static uint8_t in[1 << 20];

	if (f)
		fclose(f);
	if (!n || neuron_model_load(core, neff, n, NULL, &j->model) ||
	    neuron_model_tensor_count(j->model) != 2)
		return false;
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 7 + i / 784);
	for (size_t i = 0; i < 2; i++) {
		struct neuron_mem **mem;

		neuron_model_tensor_info(j->model, i, &t);
		mem = t.usage == NEURON_TENSOR_INPUT ? &j->in : &j->out;
		if (t.bytes > (mem == &j->in ? sizeof(in) : sizeof(j->want)) ||
		    neuron_mem_alloc(neuron_core_device(core), t.bytes, &o, mem))
			return false;
		j->io[i] = (struct neuron_io){ t.name, *mem, 0, t.bytes };
		if (mem == &j->in && neuron_mem_write(*mem, 0, in, t.bytes))
			return false;
		if (mem == &j->out)
			j->bytes = t.bytes;
	}
	return !neuron_model_run(j->model, j->io, 2, 60000, NULL) &&
	       !neuron_mem_read(j->out, 0, j->want, j->bytes);
}

static bool run(struct job *j)
{
	struct neuron_run_result r = { .size = sizeof(r) };
	static uint8_t got[65536];
	bool ok = !neuron_mem_set(j->out, 0, 0xee, j->bytes) &&
		  !neuron_model_run(j->model, j->io, 2, 60000, &r) &&
		  !neuron_mem_read(j->out, 0, got, j->bytes) && !memcmp(got, j->want, j->bytes);

	if (!ok)
		printf("# %s\n", r.text);
	return ok;
}

/* What its tensors take of the device. */
static uint64_t pages(const struct job *j)
{
	return (neuron_mem_bytes(j->in) + PAGE - 1) / PAGE * PAGE +
	       (neuron_mem_bytes(j->out) + PAGE - 1) / PAGE * PAGE;
}

static void end(struct job *j)
{
	neuron_model_unload(j->model);
	neuron_mem_free(j->in);
	neuron_mem_free(j->out);
}

static void test_models(struct neuron_device *d, struct neuron_core *core)
{
	static struct job j[2];
	struct neuron_offload_stats s = { .size = sizeof(s) };
	uint64_t before = used(d), loaded, tensors;
	unsigned int good = 0;
	struct neuron_mem *hole;

	CHECK(load(core, MODELS "mnist-bf16.neff", &j[0]) &&
	      load(core, MODELS "mnist-int8.neff", &j[1]), "two models");
	loaded = used(d);
	CHECK(!neuron_model_offload(j[0].model) && !neuron_model_offload(j[1].model) &&
	      neuron_model_offload(j[1].model) == -EALREADY, "offloaded");
	tensors = pages(&j[0]) + pages(&j[1]);
	CHECK(used(d) - before == tensors, "and nothing of %llu KiB is on the device",
	      (unsigned long long)(loaded - before - tensors) / 1024);
	/* Where they were. */
	CHECK(!neuron_mem_alloc(d, 64 * MIB, NULL, &hole), "others have the memory");
	CHECK(run(&j[0]) && run(&j[1]), "a run brings them back, bit-exact");
	neuron_mem_free(hole);
	CHECK(used(d) == loaded, "to as much memory");
	for (int i = 0; i < 20; i++)
		good += !neuron_model_prefetch(j[i % 2].model) && run(&j[(i + 1) % 2]) &&
			!neuron_model_offload(j[(i + 1) % 2].model);
	CHECK(good == 20, "one comes while the other one runs, 20 times");
	good = 0;
	for (int i = 0; i < 4; i++)
		good += run(&j[i % 2]) && !neuron_model_offload(j[i % 2].model) &&
			!neuron_core_reset(core) && !neuron_model_prefetch(j[i % 2].model);
	CHECK(good == 4, "resets between");
	CHECK(!neuron_device_get_offload_stats(d, &s) && s.moved_out && s.waited_ns, "figures");
	printf("# out %llu times, %llu KiB; waited %llu us\n", (unsigned long long)s.offloads,
	       (unsigned long long)s.moved_out / 1024, (unsigned long long)s.waited_ns / 1000);
	neuron_model_offload(j[0].model);
	end(&j[0]);
	end(&j[1]);
	CHECK(used(d) == before, "all is free, on the device or not");
}

static bool pattern(struct neuron_mem *mem, bool write)
{
	uint8_t want[5000], got[5000];

	for (uint64_t at = 0; at < BIG; at += 37 * MIB) {
		for (size_t i = 0; i < sizeof(want); i++)
			want[i] = (uint8_t)(at / MIB + i);
		if (write ? neuron_mem_write(mem, at, want, sizeof(want)) :
			    neuron_mem_read(mem, at, got, sizeof(got)) ||
			    memcmp(want, got, sizeof(got)))
			return false;
	}
	return true;
}

static void test_memory(struct neuron_device *d)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS,
				     .flags = NEURON_MEM_F_MOVABLE };
	uint64_t before = used(d), address;
	struct neuron_mem *mem, *small;
	void *va;
	int fd;

	CHECK(!neuron_mem_alloc(d, BIG, &o, &mem) && !neuron_mem_alloc(d, 100, &o, &small) &&
	      pattern(mem, true) && !neuron_mem_write(small, 0, "small", 6), "memory");
	CHECK(!neuron_mem_offload(mem) && !neuron_mem_offload(small) && used(d) == before,
	      "offloaded: none of it is on the device");
	CHECK(pattern(mem, false), "comes back when it is read, bit-exact");
	CHECK(!neuron_mem_copy(mem, 0, small, 0, 6), "and by a copy");
	CHECK(!neuron_mem_pin(mem, &address) && address && neuron_mem_offload(mem) == -EBUSY &&
	      !neuron_mem_unpin(mem), "not while it is pinned");
	CHECK(!neuron_mem_offload(mem) && !neuron_mem_pin(mem, &address) && address &&
	      !neuron_mem_unpin(mem), "a pin brings it back");
	CHECK(!neuron_mem_map(small, &va) && !memcmp(va, "small", 6) &&
	      neuron_mem_offload(small) == -EADDRINUSE, "not while it is mapped");
	CHECK(!neuron_mem_export(mem, 0, &fd) && neuron_mem_offload(mem) == -EPERM, "nor exported");
	close(fd);
	neuron_mem_free(mem);
	neuron_mem_free(small);
	CHECK(used(d) == before, "free");
}

int main(void)
{
	struct neuron_core *core;
	struct neuron_device *d;

	counters_take(&start);
	CHECK(!neuron_device_open(0, &d) && !neuron_core_open(d, 0, NULL, &core), "a core");
	test_models(d, core);
	test_memory(d);
	neuron_core_close(core);
	neuron_device_close(d);
	counters_take(&now);
	CHECK(counters_equal(&start, &now), "all counters are back after close");
	return failed != 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The runtime interface on the software device: right bytes, counters that come
 * back, bad NEFFs, errors of the device, several threads.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

#include <nrt/nrt.h>
#include <nrt/nrt_experimental.h>

#include "nrt_guest.h"

#define CORE0 "/neuron0/neuron_core0/stats/memory_usage/device_mem/"

#define EMULATED "/sys/devices/virtual/neuron_device/neuron0/emulated"

struct io {
	nrt_tensor_t *x, *y;
	nrt_tensor_set_t *in, *out;
	uint8_t bytes[LIST_IN], got[LIST_OUT];
};

static bool io_init(struct io *io, int vnc, unsigned int seed)
{
	for (size_t i = 0; i < sizeof(io->bytes); i++)
		io->bytes[i] = (uint8_t)(rand_r(&seed) >> 8);
	return !nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, vnc, LIST_IN, "x", &io->x) &&
	       !nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, vnc, LIST_OUT, "y", &io->y) &&
	       !nrt_allocate_tensor_set(&io->in) && !nrt_allocate_tensor_set(&io->out) &&
	       !nrt_add_tensor_to_tensor_set(io->in, "x", io->x) &&
	       !nrt_add_tensor_to_tensor_set(io->out, "y", io->y) &&
	       !nrt_tensor_write(io->x, io->bytes, 0, LIST_IN);
}

static void io_free(struct io *io)
{
	nrt_destroy_tensor_set(&io->in);
	nrt_destroy_tensor_set(&io->out);
	nrt_tensor_free(&io->x);
	nrt_tensor_free(&io->y);
}

static bool run_right(nrt_model_t *m, struct io *io)
{
	NRT_STATUS status = nrt_tensor_memset(io->y, 0, 0xee, LIST_OUT);

	if (!status)
		status = nrt_execute(m, io->in, io->out);
	if (!status)
		status = nrt_tensor_read(io->y, io->got, 0, LIST_OUT);
	if (status)
		printf("# %s\n", nrt_get_status_as_str(status));
	return !status && list_right(io->bytes, io->got);
}

static struct counters start, before, now;
static struct neff neff, other;

static void test_canonical(void)
{
	nrt_tensor_info_array_t *info = NULL;
	nrt_vnc_memory_stats_t stats;
	nrt_tensor_t *host, *virt;
	nrt_model_t *m, *again;
	static struct io io;
	uint64_t used;
	bool ok = true;

	neff_list(&neff);
	counters_take(&before);
	CHECK(nrt_load(neff.data, neff.size, 0, -1, &m) == NRT_SUCCESS, "load");
	counters_take(&now);
	CHECK(counter(&now, CORE0 "model_shared_scratchpad/total") == 512 << 20 &&
	      counter(&now, CORE0 "nonshared_scratchpad/total") == 65536 &&
	      counter(&now, CORE0 "constants/total") == PAGE &&
	      counter(&now, CORE0 "model_code/total") == PAGE &&
	      counter(&now, CORE0 "runtime_memory/total") == PAGE,
	      "each category has its bytes");
	/* 8 KiB of descriptors for the spread, 8 for the rest, and those that fetch. */
	CHECK(counter(&now, CORE0 "dma_rings/total") >= 6 * 4096, "rings are counted");
	used = counter(&now, CORE0 "total");
	CHECK(nrt_get_vnc_memory_stats(0, &stats, sizeof(stats), NULL) == NRT_SUCCESS &&
	      stats.bytes_used == used && stats.bytes_limit > used,
	      "the runtime reports what sysfs says");
	CHECK(nrt_get_model_tensor_info(m, &info) == NRT_SUCCESS && info->tensor_count == 2 &&
	      info->tensor_array[1].size == LIST_OUT, "tensor info");
	nrt_free_model_tensor_info(info);
	CHECK(io_init(&io, 0, 1), "tensors and sets");
	CHECK(run_right(m, &io), "the first run gives the right bytes");
	for (int i = 0; i < 20; i++)
		ok = ok && run_right(m, &io);
	CHECK(ok, "so do 20 more");
	CHECK(nrt_load(neff.data, neff.size, 0, -1, &again) == NRT_SUCCESS, "load it twice");
	for (int i = 0; i < 10; i++)
		ok = ok && run_right(i & 1 ? m : again, &io);
	CHECK(ok, "two models of a core take turns");
	CHECK(nrt_unload(m) == NRT_SUCCESS && run_right(again, &io), "one is unloaded, one runs");

	nrt_tensor_free(&io.x);
	CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, LIST_IN, "h", &host) == NRT_SUCCESS &&
	      nrt_add_tensor_to_tensor_set(io.in, "x", host) == NRT_SUCCESS &&
	      nrt_tensor_write(host, io.bytes, 0, LIST_IN) == NRT_SUCCESS && run_right(again, &io),
	      "input in host memory");
	CHECK(nrt_tensor_get_va(host) && !memcmp(nrt_tensor_get_va(host), io.bytes, LIST_IN),
	      "which the CPU sees");
	CHECK(nrt_tensor_allocate_empty("v", &virt) == NRT_SUCCESS &&
	      nrt_tensor_attach_buffer(virt, io.bytes, LIST_IN) == NRT_SUCCESS &&
	      nrt_add_tensor_to_tensor_set(io.in, "x", virt) == NRT_SUCCESS && run_right(again, &io),
	      "input in a buffer of the program");
	nrt_tensor_free(&host);
	nrt_tensor_free(&virt);
	io_free(&io);
	CHECK(nrt_unload(again) == NRT_SUCCESS, "unload");
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "every counter is what it was before the load");
}

static void test_cores(void)
{
	nrt_model_t *m[3];
	static struct io io[3];
	bool ok = true;

	counters_take(&before);
	for (int i = 0; i < 3; i++)
		ok = ok && nrt_load(neff.data, neff.size, i * 3, -1, &m[i]) == NRT_SUCCESS &&
		     io_init(&io[i], i * 3, 10 + i);
	CHECK(ok, "load on cores 0, 3 and 6");
	for (int k = 0; k < 4; k++)
		for (int i = 0; i < 3; i++)
			ok = ok && run_right(m[i], &io[i]);
	CHECK(ok, "each gives its own answer");
	for (int i = 0; i < 3; i++) {
		io_free(&io[i]);
		ok = ok && nrt_unload(m[i]) == NRT_SUCCESS;
	}
	counters_take(&now);
	CHECK(ok && counters_equal(&before, &now), "and back");
}

struct worker {
	pthread_t thread;
	int vnc;
	bool ok;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct io *io = malloc(sizeof(*io));
	nrt_model_t *m;

	w->ok = true;
	for (int round = 0; round < 3 && w->ok; round++) {
		w->ok = nrt_load(neff.data, neff.size, w->vnc, -1, &m) == NRT_SUCCESS &&
			io_init(io, w->vnc, (unsigned int)(uintptr_t)w);
		for (int i = 0; i < 10 && w->ok; i++)
			w->ok = run_right(m, io);
		if (w->ok) {
			io_free(io);
			w->ok = nrt_unload(m) == NRT_SUCCESS;
		}
	}
	free(io);
	return NULL;
}

static void test_threads(void)
{
	struct worker w[4] = { { .vnc = 0 }, { .vnc = 0 }, { .vnc = 0 }, { .vnc = 5 } };
	bool ok = true;

	counters_take(&before);
	for (int i = 0; i < 4; i++)
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	for (int i = 0; i < 4; i++) {
		pthread_join(w[i].thread, NULL);
		ok = ok && w[i].ok;
	}
	CHECK(ok, "4 threads load, run and unload on 2 cores");
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "and nothing is left of it");
}

static void test_device_errors(void)
{
	struct neuron_isa_inst wait[3] = { inst(NEURON_ISA_OP_PROLOGUE), inst(NEURON_ISA_OP_SEM_WAIT),
					   inst(NEURON_ISA_OP_NOTIFY) };
	struct neuron_isa_inst bad[3] = { inst(NEURON_ISA_OP_PROLOGUE), inst(NEURON_ISA_OP_MATMUL),
					  inst(NEURON_ISA_OP_NOTIFY) };
	uint8_t vendor[4096];
	nrt_model_t *m, *hangs, *errs, *foreign;
	static struct io io;
	struct timespec t0, t1;
	NRT_STATUS status;

	/* Long for a model that runs alone, also where a machine is emulated. */
	nrt_close();
	setenv("NEURON_RT_EXEC_TIMEOUT", "6", 1);
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS, "init, with a short time");
	memset(vendor, 0xa5, sizeof(vendor));
	wait[1].op = NEURON_ISA_WAIT_GE;
	wait[1].u.sem.value = htole32(1);
	wait[2].u.notify.id = htole32(1);
	bad[2].u.notify.id = htole32(1);
	counters_take(&before);
	neff_program(&other, wait, sizeof(wait));
	status = nrt_load(other.data, other.size, 0, -1, &hangs);
	neff_program(&other, bad, sizeof(bad));
	status = status ? status : nrt_load(other.data, other.size, 0, -1, &errs);
	neff_program(&other, vendor, sizeof(vendor));
	status = status ? status : nrt_load(other.data, other.size, 0, -1, &foreign);
	status = status ? status : nrt_load(neff.data, neff.size, 0, -1, &m);
	CHECK(!status && io_init(&io, 0, 3), "load a hanging, a bad, a foreign and a good program");
	counters_take(&now);
	CHECK(counter(&now, CORE0 "model_code/total") == 4 * PAGE, "all of them are accounted");
	CHECK(run_right(m, &io), "the good one runs");
	clock_gettime(CLOCK_MONOTONIC, &t0);
	CHECK(nrt_execute(hangs, io.in, io.out) == NRT_TIMEOUT, "the hanging one times out");
	clock_gettime(CLOCK_MONOTONIC, &t1);
	CHECK(t1.tv_sec - t0.tv_sec >= 5 && t1.tv_sec - t0.tv_sec < 60, "after the time asked for");
	CHECK(run_right(m, &io), "the good one still runs");
	CHECK(nrt_execute(errs, io.in, io.out) == NRT_EXEC_COMPLETED_WITH_ERR,
	      "the bad one ends with an error");
	CHECK(run_right(m, &io), "the good one still runs");
	CHECK(nrt_execute(foreign, io.in, io.out) == NRT_UNSUPPORTED_NEFF_VERSION,
	      "the foreign one is refused");
	CHECK(run_right(m, &io), "the good one still runs");
	io_free(&io);
	CHECK(!nrt_unload(hangs) && !nrt_unload(errs) && !nrt_unload(foreign) && !nrt_unload(m),
	      "unload them all");
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "every counter is back");
}

static void test_too_large(void)
{
	nrt_model_t *m = NULL;
	nrt_tensor_t *t = NULL;

	counters_take(&before);
	neff_sized(&other, 4096, 1ull << 40);
	CHECK(nrt_load(other.data, other.size, 0, -1, &m) == NRT_RESOURCE, "scratchpad of 1 TiB");
	/* The scratchpad is there before the private area turns out too large. */
	neff_sized(&other, 23ull << 30, 1ull << 30);
	CHECK(nrt_load(other.data, other.size, 0, -1, &m) == NRT_RESOURCE, "1 GiB and 23 GiB");
	neff_sized(&other, 1ull << 62, 0);
	CHECK(nrt_load(other.data, other.size, 0, -1, &m) != NRT_SUCCESS, "2^62 bytes");
	CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 1ull << 40, "t", &t) == NRT_RESOURCE,
	      "tensor of 1 TiB");
	CHECK(!m && !t, "nothing is handed out");
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "everything is given back");
	neff_sized(&other, 5ull << 30, 6ull << 30);
	CHECK(nrt_load(other.data, other.size, 0, -1, &m) == NRT_SUCCESS, "11 GiB fit");
	counters_take(&now);
	CHECK(counter(&now, CORE0 "model_shared_scratchpad/total") == 13ull << 29 &&
	      counter(&now, CORE0 "nonshared_scratchpad/total") >= 5ull << 30, "and are counted");
	CHECK(nrt_unload(m) == NRT_SUCCESS, "unload");
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "and given back");
}

static void test_hostile(void)
{
	unsigned int seed = 20, loaded = 0, tried = 0;
	nrt_model_t *m;

	counters_take(&before);
	for (size_t size = 0; size < neff.size; size += 97, tried++)
		loaded += nrt_load(neff.data, size, 0, -1, &m) == NRT_SUCCESS;
	CHECK(tried > 50 && !loaded, "%u truncated NEFFs are refused", tried);
	for (tried = 0; tried < 300; tried++) {
		memcpy(&other, &neff, sizeof(other));
		for (int i = 0; i < 4; i++)
			other.data[(unsigned int)rand_r(&seed) % other.size] = (uint8_t)rand_r(&seed);
		if (nrt_load(other.data, other.size, 0, -1, &m) == NRT_SUCCESS) {
			loaded++;
			nrt_unload(m);
		}
	}
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "%u damaged NEFFs, of which %u load, leave nothing",
	      tried, loaded);
}

/* A card refuses, whatever the environment says. */
static void test_pretend(void)
{
	NRT_STATUS want = access(EMULATED, F_OK) ? NRT_UNSUPPORTED_NEFF_VERSION : NRT_SUCCESS;
	uint8_t vendor[4096], out[LIST_OUT];
	nrt_model_t *foreign;
	static struct io io;
	size_t i;

	nrt_close();
	setenv("NEURON_RT_PRETEND", "zero", 1);
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS, "init, to pretend");
	memset(vendor, 0xa5, sizeof(vendor));
	neff_start(&other);
	neff_text(&other, "sg00/def.json",
		  "{\"name\": \"definition\", \"sp\": \"SP.json\", \"sp_instr\": \"SP.bin\","
		  " \"dma_queue\": {}, \"var\": {"
		  " \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 16896}}}");
	neff_text(&other, "sg00/SP.json", "{\"dma\": []}");
	neff_add(&other, "sg00/SP.bin", vendor, sizeof(vendor));
	neff_end(&other, "foreign");
	CHECK(nrt_load(other.data, other.size, 0, -1, &foreign) == NRT_SUCCESS && io_init(&io, 0, 3),
	      "load a foreign program");
	memset(out, 0x55, sizeof(out));
	CHECK(nrt_tensor_write(io.y, out, 0, sizeof(out)) == NRT_SUCCESS &&
	      nrt_execute(foreign, io.in, io.out) == want &&
	      nrt_tensor_read(io.y, out, 0, sizeof(out)) == NRT_SUCCESS, "it pretends to run");
	for (i = 0; i < sizeof(out) && out[i] == (want ? 0x55 : 0); i++)
		;
	CHECK(i == sizeof(out), "its outputs are zero");
	io_free(&io);
	CHECK(nrt_unload(foreign) == NRT_SUCCESS, "unload it");
	unsetenv("NEURON_RT_PRETEND");
}

static bool set_limit(const char *text)
{
	FILE *f = fopen("/sys/devices/virtual/neuron_device/neuron0/neuron_core0/limits/memory", "w");
	bool ok = f && fputs(text, f) >= 0;

	return f && !fclose(f) && ok;
}

/* Two models where there is only room for one. */
static void test_offload(void)
{
	nrt_model_t *m[2] = { NULL };
	static struct io io;
	bool ok = true;
	char text[32];

	nrt_close();
	setenv("NEURON_RT_OFFLOAD", "1", 1);
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS, "init, to offload");
	CHECK(nrt_load(neff.data, neff.size, 0, -1, &m[0]) == NRT_SUCCESS && io_init(&io, 0, 4) &&
	      run_right(m[0], &io), "a model runs");
	counters_take(&before);
	snprintf(text, sizeof(text), "%llu",
		 (unsigned long long)counter(&before, CORE0 "total") + PAGE);
	CHECK(set_limit(text), "no other one fits beside it");
	CHECK(nrt_load(neff.data, neff.size, 0, -1, &m[1]) == NRT_SUCCESS, "another one is loaded");
	for (int i = 0; i < 20; i++)
		ok = ok && run_right(m[i % 2], &io);
	CHECK(ok, "they take turns, with the right bytes");
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "one is on the device, the other one is not");
	CHECK(nrt_unload(m[0]) == NRT_SUCCESS && run_right(m[1], &io) &&
	      nrt_unload(m[1]) == NRT_SUCCESS, "unload both, one in host memory");
	io_free(&io);
	CHECK(set_limit("max"), "no limit");
	unsetenv("NEURON_RT_OFFLOAD");
}

int main(void)
{
	uint32_t n;

	/* Refusals are expected here; their log lines are tested on the host. */
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "120", 1);
	/* Physical cores with nothing on them; report.c has the others. */
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_MICROCODE_MB", "0", 1);
	counters_take(&start);
	CHECK(counters_sum(&start) == 0, "all counters are 0 at the start");
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS, "init");
	CHECK(nrt_get_visible_vnc_count(&n) == NRT_SUCCESS && n == 8, "8 cores");
	test_canonical();
	test_cores();
	test_threads();
	test_device_errors();
	test_too_large();
	test_hostile();
	test_pretend();
	test_offload();
	nrt_close();
	CHECK(counters_come_to(&start), "all counters are 0 after close");
	return failed != 0;
}

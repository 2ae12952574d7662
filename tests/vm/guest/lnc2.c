// SPDX-License-Identifier: GPL-2.0-only
/*
 * Logical cores of two: a NEFF whose subgraphs wait for each other, run and checked; and
 * at LNC 1, what the report says about the core next door when their memory is full.
 */
#define _GNU_SOURCE
#include <nrt/nrt.h>

#include "nrt_guest.h"

#define HALF 40000
#define STATUS(core, name) DEVICES "/neuron0/neuron_core" #core "/stats/" name "/total"

static struct neff neff;
static uint8_t x[HALF], y[2 * HALF];

static struct neuron_isa_inst trigger(uint32_t id)
{
	struct neuron_isa_inst i = inst(NEURON_ISA_OP_DMA_TRIGGER);

	i.u.dma.engine = i.u.dma.queue = 0xffff;
	i.u.dma.tx_count = htole32(id);
	return i;
}

static struct neuron_isa_inst wait_for(uint32_t semaphore)
{
	struct neuron_isa_inst i = inst(NEURON_ISA_OP_SEM_WAIT);

	i.op = NEURON_ISA_WAIT_GE;
	i.flags = NEURON_ISA_F_CONSUME;
	i.u.sem.index = htole32(semaphore);
	i.u.sem.value = htole32(1);
	return i;
}

static struct neuron_isa_inst done(void)
{
	struct neuron_isa_inst i = inst(NEURON_ISA_OP_NOTIFY);

	i.u.notify.id = htole32(1);
	return i;
}

/*
 * Core 0 fills the first half of y with x and tells core 1; core 1 copies that to the
 * second half and tells core 0, which was waiting and overwrites the start of the first.
 */
static void neff_pair(struct neff *n)
{
	static const char kelf[] =
		"{\"graphs\": [{\"definition\": \"sg00/def.json\", \"name\": \"sg00\"},"
		" {\"definition\": \"sg01/def.json\", \"name\": \"sg01\"}], \"version\": \"0.5\"}";
	const struct neuron_isa_inst even[] = {
		inst(NEURON_ISA_OP_PROLOGUE), trigger(1), wait_for(6), wait_for(5), trigger(2),
		wait_for(6), done(),
	}, odd[] = {
		inst(NEURON_ISA_OP_PROLOGUE), wait_for(5), trigger(1), wait_for(6), done(),
	};
	const uint32_t two = htole32(2);
	char text[1024];

	memset(n, 0, sizeof(*n));
	n->size = 1024;
	neff_text(n, "kelf-0.json", kelf);
	snprintf(text, sizeof(text),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\", \"sp_instr\": \"SP.bin\","
		 " \"dma_queue\": {\"q\": {\"type\": \"data\"}}, \"var\": {"
		 " \"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": %u},"
		 " \"k\": {\"type\": \"file\", \"var_id\": 3, \"size\": 100, \"file_name\": \"k.bin\"},"
		 " \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": %u}}}", HALF, 2 * HALF);
	neff_text(n, "sg00/def.json", text);
	snprintf(text, sizeof(text),
		 "{\"dma\": ["
		 "{\"id\": 1, \"queue\": \"q\", \"semaphore\": 6, \"remote_semaphores\": [5], \"desc\": ["
		 "{\"from\": \"x\", \"to\": \"y\", \"from_sizes\": [%u], \"from_steps\": [1],"
		 " \"to_sizes\": [%u], \"to_steps\": [1]}]},"
		 "{\"id\": 2, \"queue\": \"q\", \"semaphore\": 6, \"desc\": ["
		 "{\"from\": \"k\", \"to\": \"y\", \"from_sizes\": [100], \"from_steps\": [1],"
		 " \"to_sizes\": [100], \"to_steps\": [1]}]}]}", HALF, HALF);
	neff_text(n, "sg00/SP.json", text);
	neff_add(n, "sg00/SP.bin", even, sizeof(even));
	memset(text, 'k', 100);
	neff_add(n, "sg00/k.bin", text, 100);
	snprintf(text, sizeof(text),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\", \"sp_instr\": \"SP.bin\","
		 " \"dma_queue\": {\"q\": {\"type\": \"data\"}}, \"var\": {"
		 " \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": %u}}}", 2 * HALF);
	neff_text(n, "sg01/def.json", text);
	snprintf(text, sizeof(text),
		 "{\"dma\": ["
		 "{\"id\": 1, \"queue\": \"q\", \"semaphore\": 6, \"remote_semaphores\": [5], \"desc\": ["
		 "{\"from\": \"y\", \"to\": \"y\", \"to_off\": %u, \"from_sizes\": [%u], \"from_steps\": [1],"
		 " \"to_sizes\": [%u], \"to_steps\": [1]}]}]}", HALF, HALF, HALF);
	neff_text(n, "sg01/SP.json", text);
	neff_add(n, "sg01/SP.bin", odd, sizeof(odd));
	neff_end(n, "pair");
	memcpy(n->data + 168, &two, 4);
	memcpy(n->data + 552, &two, 4);
}

static uint64_t figure(const char *path)
{
	unsigned long long value = 0;
	FILE *f = fopen(path, "r");

	if (!f || fscanf(f, "%llu", &value) != 1) {
		printf("not ok - read %s\n", path);
		exit(1);
	}
	fclose(f);
	return value;
}

static bool right(void)
{
	for (size_t i = 0; i < HALF; i++)
		if (y[i] != (i < 100 ? 'k' : x[i]) || y[HALF + i] != x[i]) {
			printf("# byte %zu\n", i);
			return false;
		}
	return true;
}

static void test_pair(void)
{
	static struct counters before, now;
	uint64_t runs[2] = { figure(STATUS(2, "other_info/inference_count")),
			     figure(STATUS(3, "other_info/inference_count")) };
	nrt_tensor_set_t *in, *out;
	nrt_tensor_t *tx, *ty;
	unsigned int seed = 3;
	nrt_model_t *m = NULL;
	bool ok = true;
	uint32_t n;

	neff_pair(&neff);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS &&
	      nrt_load(neff.data, neff.size, 0, -1, &m) == NRT_UNSUPPORTED_NEFF_VERSION,
	      "a core of one does not take it");
	nrt_close();
	setenv("NEURON_LOGICAL_NC_CONFIG", "2", 1);
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS &&
	      nrt_get_visible_vnc_count(&n) == NRT_SUCCESS && n == 4, "four logical cores");
	counters_take(&before);
	CHECK(nrt_load(neff.data, neff.size, 1, -1, &m) == NRT_SUCCESS, "load on the second");
	counters_take(&now);
	for (int c = 2; c < 4; c++) {
		char name[120];

		snprintf(name, sizeof(name),
			 "/neuron0/neuron_core%d/stats/memory_usage/device_mem/model_code/total", c);
		CHECK(counter(&now, name) == PAGE, "program on physical core %d", c);
	}
	CHECK(!nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, sizeof(x), "x", &tx) &&
	      !nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, sizeof(y), "y", &ty) &&
	      !nrt_allocate_tensor_set(&in) && !nrt_allocate_tensor_set(&out) &&
	      !nrt_add_tensor_to_tensor_set(in, "x", tx) &&
	      !nrt_add_tensor_to_tensor_set(out, "y", ty), "tensors");
	for (int i = 0; i < 20 && ok; i++) {
		for (size_t k = 0; k < sizeof(x); k++)
			x[k] = (uint8_t)(rand_r(&seed) >> 8);
		ok = !nrt_tensor_write(tx, x, 0, sizeof(x)) && !nrt_tensor_memset(ty, 0, 0xee, sizeof(y)) &&
		     !nrt_execute(m, in, out) && !nrt_tensor_read(ty, y, 0, sizeof(y)) && right();
	}
	CHECK(ok, "20 runs in which both cores wait for each other give the right bytes");
	CHECK(figure(STATUS(2, "other_info/inference_count")) == runs[0] + 20 &&
	      figure(STATUS(3, "other_info/inference_count")) == runs[1] + 20, "counted on both");
	nrt_destroy_tensor_set(&in);
	nrt_destroy_tensor_set(&out);
	nrt_tensor_free(&tx);
	nrt_tensor_free(&ty);
	CHECK(nrt_unload(m) == NRT_SUCCESS, "unload");
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "every counter is back");
	nrt_close();
}

/* The log of the runtime while @core of those that share a memory fills it. */
static void test_neighbour(void)
{
	static char log[65536];
	nrt_tensor_t *t[64] = { NULL }, *more = NULL;
	int out = dup(1), n = 0;
	FILE *f = tmpfile();
	size_t len;

	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_LOG_LEVEL", "ERROR", 1);
	CHECK(f && nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS, "cores of one");
	/* Cores 2 and 3 are next to one memory. */
	CHECK(!nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 2, 512 << 20, "t", &t[n++]),
	      "a tensor on core 2");
	fflush(stdout);
	fflush(stderr);
	if (dup2(fileno(f), 2) < 0 || dup2(fileno(f), 1) < 0)
		exit(1);
	while (n < 64 && !nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 3, 1 << 30, "t", &t[n]))
		n++;
	len = (size_t)n;
	nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 2, 1 << 30, "t", &more);
	fflush(stdout);
	dup2(out, 1);
	dup2(out, 2);
	close(out);
	CHECK(len > 8 && len < 64 && !more, "core 3 fills it: nothing is left for core 2");
	rewind(f);
	len = fread(log, 1, sizeof(log) - 1, f);
	log[len] = '\0';
	fclose(f);
	CHECK(strstr(log, "ND 0:NC 2") && strstr(log, "ND 0:NC 3"), "the table has both cores");
	CHECK(strstr(log, "or to put less on NC 3, which shares this memory with NC 2"),
	      "the reason names the neighbour");
	if (failed)
		printf("# %.3000s\n", log);
	while (n)
		nrt_tensor_free(&t[--n]);
	nrt_close();
}

int main(void)
{
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_RT_MICROCODE_MB", "0", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "60", 1);
	test_pair();
	test_neighbour();
	return failed != 0;
}

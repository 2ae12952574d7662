// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose an address is: of a variable while its model is loaded and afterwards, when a DMA
 * queue stops there; and what another process is told of it.
 */
#define _GNU_SOURCE
#include <jansson.h>
#include <neuron/neuron.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "nrt_guest.h"

#define K_BYTES	8192
#define GROUPS	"neuron-mem owners --groups --json 0"

static struct neuron_device *dev;
static struct neuron_core *core;
static char text[4096];

static struct neuron_model *load(void)
{
	static struct neff neff;
	static char k[K_BYTES];
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &error };
	struct neuron_model *model = NULL;

	neff_start(&neff);
	neff_text(&neff, "sg00/def.json",
		  "{\"name\": \"definition\", \"sp\": \"SP.json\","
		  " \"dma_queue\": {\"q\": {\"type\": \"data\"}}, \"var\": {"
		  " \"k\": {\"type\": \"file\", \"var_id\": 1, \"size\": 8192, \"file_name\": \"k.bin\"},"
		  " \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 8192}}}");
	neff_text(&neff, "sg00/SP.json",
		  "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"op\": \"copy\", \"from\": \"k\","
		  " \"to\": \"y\", \"from_sizes\": [8192], \"from_steps\": [1], \"to_sizes\": [8192],"
		  " \"to_steps\": [1]}]}]}");
	neff_add(&neff, "sg00/k.bin", k, sizeof(k));
	neff_end(&neff, "teller");
	CHECK(!neuron_model_load(core, neff.data, neff.size, &opts, &model), "load: %s", error.text);
	return model;
}

static struct neuron_location where(uint64_t address, uint32_t flags)
{
	struct neuron_location l = { .size = sizeof(l) };

	CHECK(!neuron_address_resolve(dev, address, flags, &l), "0x%" PRIx64 " is: %s", address,
	      l.text);
	return l;
}

/* What neuron-mem says of it, which has no models. */
static bool tool_says(const char *args, uint64_t address, const char *one, const char *other)
{
	char command[96];
	FILE *p;

	snprintf(command, sizeof(command), "neuron-mem resolve 0x%" PRIx64 " %s", address, args);
	p = popen(command, "r");
	text[fread(text, 1, sizeof(text) - 1, p)] = 0;
	printf("# %s", text);
	return !pclose(p) && strstr(text, one) && strstr(text, other);
}

static uint64_t number(const json_t *o, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(o, key));
}

/* The bytes of a group of the model, or 0; everything adds up. */
static uint64_t group(const json_t *memories, const char *category)
{
	json_t *memory, *owner, *one;
	size_t i, k, n;
	uint64_t found = 0;

	json_array_foreach(memories, i, memory) {
		uint64_t used = number(memory, "driver");

		json_array_foreach(json_object_get(memory, "owners"), k, owner) {
			uint64_t bytes = 0, allocs = 0;
			const char *label = json_string_value(json_object_get(owner, "label"));

			json_array_foreach(json_object_get(owner, "groups"), n, one) {
				bytes += number(one, "bytes");
				allocs += number(one, "allocations");
				if (!strcmp(label, "teller") && !number(one, "core") &&
				    !strcmp(json_string_value(json_object_get(one, "category")), category))
					found += number(one, "bytes");
			}
			CHECK(bytes == number(owner, "bytes") && allocs == number(owner, "allocations"),
			      "owner %" PRIu64 " has its groups, without rest", number(owner, "owner"));
			used += bytes;
		}
		CHECK(used == number(memory, "used") && json_is_true(json_object_get(memory, "consistent")),
		      "HBM %zu is what owners and the driver have", i);
	}
	return found;
}

/* Another process tells the groups of a model: its constants, its programs, its rings. */
static void groups(const struct neuron_model *model)
{
	struct neuron_model_usage u = { .size = sizeof(u) };
	FILE *p = popen(GROUPS, "r");
	json_t *memories = json_loadf(p, 0, NULL);

	CHECK(!pclose(p) && memories, GROUPS);
	neuron_model_get_usage(model, &u);
	CHECK(u.constants && group(memories, "constants") == u.constants &&
	      group(memories, "model_code") == u.code &&
	      group(memories, "runtime_memory") == u.runtime &&
	      group(memories, "dma_rings") == u.rings_io + u.rings_spill + u.rings_runtime,
	      "what each group of the model has");
	json_decref(memories);
	CHECK(!system("neuron-mem owners --groups 0"), "as a table");
}

static sigjmp_buf jump;
static struct neuron_location fault = { .size = sizeof(fault) };
static int told;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)context;
	told = neuron_pointer_resolve(dev, info->si_addr, &fault);
	siglongjmp(jump, sig);
}

/* Somebody writes to constants that he has mapped to read them. */
static void write_constants(uint64_t k)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	volatile char *p = mmap(NULL, K_BYTES, PROT_READ, MAP_SHARED, neuron_device_fd(dev),
				(off_t)k);
	char args[32], want[64];
	int sig;

	CHECK(p != MAP_FAILED, "constants are mapped");
	sigaction(SIGSEGV, &sa, NULL);
	sig = sigsetjmp(jump, 1);
	if (!sig)
		p[5000] = 1;
	signal(SIGSEGV, SIG_DFL);
	CHECK(sig == SIGSEGV && !told && !strcmp(fault.variable, "k") && fault.offset == 5000 &&
	      !strcmp(fault.model, "teller"), "SIGSEGV at: %s", fault.text);
	snprintf(args, sizeof(args), "--pid=%d", getpid());
	snprintf(want, sizeof(want), " of process %d: 0x%" PRIx64 " of neuron0\n", getpid(), k + 5000);
	CHECK(tool_says(args, (uintptr_t)p + 5000, want, " (teller) + 5000\n"),
	      "another process finds it by the pointer");
	munmap((void *)p, K_BYTES);
	CHECK(neuron_pointer_resolve(dev, (char *)p + 5000, &fault) == -ENOENT,
	      "what the program unmapped is not known");
}

/* Where this process has constants. */
static uint64_t constants(void)
{
	struct neuron_range *list;
	uint64_t address = 0;
	size_t n;

	if (neuron_hbm_get_ranges(dev, 0, &list, &n))
		return 0;
	while (n--)
		if (list[n].state == NEURON_RANGE_OWNED && list[n].pid == getpid() &&
		    list[n].category == NEURON_MEM_CONSTANTS)
			address = list[n].address;
	free(list);
	return address;
}

/* A descriptor that somebody forgot, as in a use after free: the notice of its error. */
static struct neuron_notice read_stale(uint64_t address)
{
	const struct neuron_geometry *g = neuron_device_geometry(dev);
	struct neuron_nq_opts opts = { .size = sizeof(opts), .nc = 1, .type = NEURON_NQ_ERROR };
	struct neuron_mem_opts ring = { .size = sizeof(ring), .nc = 1, .category = NEURON_MEM_RINGS };
	struct neuron_queue_setup setup = { .engine = g->engines_per_core, .queue = 2,
					    .tx_slots = 32, .rx_slots = 32 };
	struct neuron_mem_opts host = { .size = sizeof(host), .flags = NEURON_MEM_F_HOST, .nc = 1 };
	struct neuron_notice notice = { 0 };
	struct neuron_descriptor t, r;
	struct neuron_mem *to;
	struct neuron_nq *nq;

	CHECK(!neuron_device_reset(dev, 2) && !neuron_nq_open(dev, &opts, &nq) &&
	      !neuron_mem_alloc(dev, 32 * sizeof(t), &ring, &setup.tx) &&
	      !neuron_mem_alloc(dev, 32 * sizeof(t), &ring, &setup.rx) &&
	      !neuron_mem_alloc(dev, 4096, &host, &to), "a ring");
	neuron_descriptor_copy(&t, &r, neuron_mem_address(to), address, 64, false);
	CHECK(!neuron_queue_write(dev, setup.tx, NEURON_RING_TX, 0, &t, 1) &&
	      !neuron_queue_write(dev, setup.rx, NEURON_RING_RX, 0, &r, 1) &&
	      !neuron_queue_init(dev, &setup, 1) &&
	      !neuron_queue_start(dev, setup.engine, 2, 1, 1) &&
	      !neuron_nq_wait(nq, &notice, 10000) && notice.kind == NEURON_ISA_NOTICE_DMA_ERROR,
	      "the queue stops");
	neuron_queue_release(dev, setup.engine, 2);
	neuron_nq_close(nq);
	neuron_mem_free(setup.tx);
	neuron_mem_free(setup.rx);
	neuron_mem_free(to);
	return notice;
}

int main(void)
{
	struct neuron_core_opts opts = { .size = sizeof(opts) };
	struct neuron_location l;
	struct neuron_notice notice;
	struct neuron_model *model;
	char want[64];
	uint64_t k;

	CHECK(!neuron_device_open(0, &dev) && !neuron_core_open(dev, 0, &opts, &core), "device, core");
	if (failed)
		return 1;
	model = load();
	k = constants();
	l = where(k + 5000, 0);
	CHECK(!strcmp(l.variable, "k") && !strcmp(l.model, "teller") && l.offset == 5000 && !l.freed &&
	      l.pid == getpid() && l.state == NEURON_RANGE_OWNED, "a variable of a loaded model");
	snprintf(want, sizeof(want), "constants of process %d (teller", getpid());
	CHECK(tool_says("0", k + 5000, want, " + 5000\n"), "another process knows the owner");
	groups(model);
	write_constants(k);
	neuron_model_unload(model);

	/* Both are known, who has it now and who had it before. */
	model = load();
	CHECK(constants() == k, "the same memory again");
	l = where(k, 0);
	CHECK(!l.freed && !strcmp(l.variable, "k"), "now it is loaded again");
	l = where(k, NEURON_RESOLVE_FREED);
	CHECK(l.freed && !strcmp(l.variable, "k"), "and before");
	neuron_model_unload(model);

	notice = read_stale(k + 5000);
	CHECK(notice.data == k + 5000, "the address of the error");
	l = where(notice.data, 0);
	CHECK(l.freed && !strcmp(l.variable, "k") && l.offset == 5000 && l.freed_ns,
	      "it was a variable, and is free");
	snprintf(want, sizeof(want), "free memory, before: constants of process %d", getpid());
	CHECK(tool_says("0", k + 5000, want, ", freed "), "another process knows who had it");

	neuron_core_close(core);
	neuron_device_close(dev);
	return failed ? 1 : 0;
}

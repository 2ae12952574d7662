// SPDX-License-Identifier: GPL-2.0-only
/*
 * shuffle=SEED of the software device: a program that lacks a semaphore gives a wrong result
 * with some seed, one that lacks nothing with none; and the example models give their bits.
 */
#define _GNU_SOURCE
#include <neuron/neuron.h>

#include "device.h"
#include "nrt_guest.h"

#define BYTES	4096
#define SEEDS	32
#define PARAM	"/sys/module/neuron_emu/parameters/shuffle"

enum {
	INPUT, FIRST, SECOND, OUTPUT, BEGIN,	/* semaphores */
	NOTHING					/* none is missing */
};

static struct neuron_device *device;
static struct neuron_core *core;
static struct neuron_mem *x, *y;
static struct neuron_isa_inst code[16];
static size_t nr;

static bool set_seed(unsigned int seed)
{
	FILE *f = fopen(PARAM, "w");
	bool good = f && fprintf(f, "%u\n", seed) > 0;

	return f && !fclose(f) && good;
}

static struct neuron_isa_inst *add(unsigned int opcode)
{
	code[nr] = inst(opcode);
	return &code[nr++];
}

static void begin(unsigned int engine)
{
	nr = 0;
	add(NEURON_ISA_OP_PROLOGUE)->u.prologue.engine = htole16((uint16_t)engine);
}

static void trigger(unsigned int id)
{
	struct neuron_isa_inst *i = add(NEURON_ISA_OP_DMA_TRIGGER);

	i->u.dma.engine = htole16(0xffff);
	i->u.dma.queue = htole16(0xffff);
	i->u.dma.tx_count = htole32(id);
}

/* Both sides of the one that is missing are. */
static void semaphore(unsigned int opcode, unsigned int index, unsigned int missing)
{
	struct neuron_isa_inst *i;

	if (index == missing)
		return;
	i = add(opcode);
	i->op = opcode == NEURON_ISA_OP_SEM_WAIT ? NEURON_ISA_WAIT_GE : NEURON_ISA_POST_INC;
	i->flags = opcode == NEURON_ISA_OP_SEM_WAIT ? NEURON_ISA_F_CONSUME : 0;
	i->u.sem.index = htole32(index);
	i->u.sem.value = htole32(1);
}

/* The second number times or plus @imm becomes the first. */
static void compute(unsigned int op, uint32_t to, uint32_t from, uint32_t imm)
{
	struct neuron_isa_inst *i = add(NEURON_ISA_OP_TENSOR);

	i->op = (uint8_t)op;
	i->flags = NEURON_ISA_F_IMMEDIATE;
	i->src_dtype = NEURON_ISA_DT_INT8;
	i->dst_dtype = NEURON_ISA_DT_INT8;
	i->u.tensor.src0 = htole32(from);
	i->u.tensor.dst = htole32(to);
	i->u.tensor.rows = htole32(1);
	i->u.tensor.cols = htole32(BYTES);
	i->u.tensor.imm = htole32(imm);
}

/* y = (x + 1) * 3: SP brings x, DVE adds, POOL multiplies, SP takes y away. */
static struct neuron_model *load(unsigned int missing)
{
	static struct neff neff;
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &error };
	struct neuron_model *model = NULL;

	neff_start(&neff);
	neff_text(&neff, "sg00/def.json",
		  "{\"name\": \"definition\", \"sp\": \"SP.json\", \"sp_instr\": \"SP.bin\","
		  " \"dve\": \"none.json\", \"dve_instr\": \"DVE.bin\","
		  " \"pool\": \"none.json\", \"pool_instr\": \"Pool.bin\","
		  " \"dma_queue\": {\"in\": {\"type\": \"in\"}, \"out\": {\"type\": \"out\"}}, \"var\": {"
		  " \"sbuf\": {\"type\": \"state-buffer\", \"var_id\": 0, \"size\": 12288},"
		  " \"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 4096},"
		  " \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 4096}}}");
	neff_text(&neff, "sg00/none.json", "{\"dma\": []}");
	neff_text(&neff, "sg00/SP.json",
		  "{\"dma\": [{\"id\": 0, \"queue\": \"in\", \"semaphore\": 0, \"desc\": [{\"op\": \"copy\","
		  " \"from\": \"x\", \"from_sizes\": [4096], \"from_steps\": [1], \"to\": \"sbuf\","
		  " \"to_sizes\": [4096], \"to_steps\": [1]}]},"
		  " {\"id\": 1, \"queue\": \"out\", \"semaphore\": 3, \"desc\": [{\"op\": \"copy\","
		  " \"from\": \"sbuf\", \"from_off\": 8192, \"from_sizes\": [4096], \"from_steps\": [1],"
		  " \"to\": \"y\", \"to_sizes\": [4096], \"to_steps\": [1]}]}]}");
	begin(NEURON_ISA_ENGINE_SP);
	trigger(0);
	semaphore(NEURON_ISA_OP_SEM_WAIT, INPUT, missing);
	semaphore(NEURON_ISA_OP_SEM_POST, BEGIN, missing);
	semaphore(NEURON_ISA_OP_SEM_WAIT, SECOND, missing);
	trigger(1);
	semaphore(NEURON_ISA_OP_SEM_WAIT, OUTPUT, missing);
	add(NEURON_ISA_OP_NOTIFY)->u.notify.id = htole32(1);
	neff_add(&neff, "sg00/SP.bin", code, nr * sizeof(*code));
	begin(NEURON_ISA_ENGINE_DVE);
	semaphore(NEURON_ISA_OP_SEM_WAIT, BEGIN, missing);
	compute(NEURON_ISA_ALU_ADD, BYTES, 0, 1);
	semaphore(NEURON_ISA_OP_SEM_POST, FIRST, missing);
	neff_add(&neff, "sg00/DVE.bin", code, nr * sizeof(*code));
	begin(NEURON_ISA_ENGINE_POOL);
	semaphore(NEURON_ISA_OP_SEM_WAIT, FIRST, missing);
	compute(NEURON_ISA_ALU_MUL, 2 * BYTES, BYTES, 3);
	semaphore(NEURON_ISA_OP_SEM_POST, SECOND, missing);
	neff_add(&neff, "sg00/Pool.bin", code, nr * sizeof(*code));
	neff_end(&neff, "order");
	CHECK(!neuron_model_load(core, neff.data, neff.size, &opts, &model), "load: %s", error.text);
	return model;
}

/* With how many seeds the result is wrong. */
static unsigned int wrong_results(struct neuron_model *model)
{
	struct neuron_io io[2] = { { "x", x, 0, BYTES }, { "y", y, 0, BYTES } };
	unsigned int wrong = 0;
	int8_t in[BYTES], out[BYTES];

	for (unsigned int seed = 1; seed <= SEEDS; seed++) {
		struct neuron_run_result r = { .size = sizeof(r) };
		bool good = set_seed(seed) && !neuron_core_reset(core);

		for (int i = 0; i < BYTES; i++)
			in[i] = (int8_t)(rand() % 80 - 40);	/* the result fits, too */
		good = good && !neuron_mem_write(x, 0, in, BYTES) &&
		       !neuron_mem_write(y, 0, in, BYTES) &&
		       !neuron_model_run(model, io, 2, 60000, &r) && !neuron_mem_read(y, 0, out, BYTES);
		if (!good) {
			CHECK(good, "seed %u: %s", seed, r.text);
			break;
		}
		for (int i = 0; i < BYTES && good; i++)
			good = out[i] == (int8_t)((in[i] + 1) * 3);
		wrong += !good;
	}
	return wrong;
}

/* A queue of core 1, whose semaphore 7 counts. */
static struct neuron_mem *data, *ring[2];

static bool ring_begin(void)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_RINGS };
	uint32_t bytes = neuron_ring_slots(4) * 16;

	CHECK(!neuron_mem_alloc(device, 64, &opts, &data) &&
	      !neuron_mem_alloc(device, bytes, &opts, &ring[0]) &&
	      !neuron_mem_alloc(device, bytes, &opts, &ring[1]), "rings");
	return data && ring[0] && ring[1];
}

static void ring_end(void)
{
	neuron_mem_free(data);
	neuron_mem_free(ring[0]);
	neuron_mem_free(ring[1]);
}

/* Run @n copies, the last of which counts; the semaphore is @want then. */
static bool ring_run(uint32_t engine, const struct neuron_descriptor *t,
		     const struct neuron_descriptor *r, uint32_t n, uint32_t want)
{
	uint32_t slots = neuron_ring_slots(4), value = 0;
	struct neuron_queue_setup setup = {
		neuron_device_geometry(device)->engines_per_core + engine, 2, ring[0], ring[1],
		slots, slots,
	};
	int tries = 0;

	if (neuron_queue_write(device, ring[0], NEURON_RING_TX, 0, t, n) ||
	    neuron_queue_write(device, ring[1], NEURON_RING_RX, 0, r, n) ||
	    neuron_queue_init(device, &setup, 1) ||
	    neuron_queue_start(device, setup.engine, 2, n, n))
		return false;
	while (!neuron_semaphore_read(device, 1, 7, &value) && value != want && ++tries < 5000)
		usleep(1000);
	return value == want;
}

static uint64_t counter_address(void)
{
	return neuron_device_geometry(device)->tpb_base[1] + NEURON_ISA_SEM_INC_OFF(7);
}

/* Engines that see a seed before their core does lose no doorbell. */
static void before_a_reset(void)
{
	struct neuron_descriptor t, r;
	uint32_t one = 1, e = 0;

	if (!ring_begin())
		return;
	neuron_descriptor_copy(&t, &r, counter_address(), neuron_mem_address(data), 4, false);
	if (set_seed(1) && !neuron_mem_write(data, 0, &one, 4))
		while (e < 8 && ring_run(e, &t, &r, 1, e + 1))
			e++;
	CHECK(e == 8, "a seed before a reset: %u engines of 8 do their work", e);
	ring_end();
}

/* With how many seeds the second of two copies does not see what the first one wrote. */
static unsigned int out_of_order(bool barrier)
{
	uint32_t first = 1, second;
	struct neuron_descriptor t[4], r[4];
	unsigned int wrong = 0;
	bool good = ring_begin();
	uint64_t base;

	if (!good)
		return 0;
	base = neuron_mem_address(data);
	neuron_descriptor_copy(&t[0], &r[0], base + 4, base, 4, barrier);
	neuron_descriptor_copy(&t[1], &r[1], base + 8, base + 4, 4, false);
	neuron_descriptor_copy(&t[2], &r[2], base + 12, base, 4, true);
	neuron_descriptor_copy(&t[3], &r[3], counter_address(), base, 4, false);
	for (unsigned int seed = 1; seed <= SEEDS && good; seed++) {
		second = 0;
		good = set_seed(seed) && !neuron_device_reset(device, 2) &&
		       !neuron_mem_write(data, 0, &first, 4) &&
		       !neuron_mem_write(data, 4, &second, 4) &&
		       ring_run(0, t, r, 4, 1) && !neuron_mem_read(data, 8, &second, 4);
		if (!good)
			CHECK(good, "seed %u", seed);
		wrong += second != first;
	}
	ring_end();
	return wrong;
}

int main(void)
{
	static const char *const names[] = {
		[INPUT] = "for the input", [FIRST] = "between two engines",
		[SECOND] = "before the result is taken", [OUTPUT] = "for the output",
		[BEGIN] = "of SP for an engine",
	};
	static const char *const models[] = { "mnist-int8", "mnist-bf16", "decoder" };
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };
	struct neuron_model *model;
	/*
	 * The output may be there before anybody looks, if another processor does it, or if the
	 * device does not tell when the program has ended.
	 */
	bool late = sysconf(_SC_NPROCESSORS_ONLN) > 1 || is_silent();
	unsigned int wrong;
	char command[128];

	CHECK(!system("rmmod neuron_emu && modprobe neuron_emu"), "a device that nobody used");
	CHECK(!neuron_device_open(0, &device) && !neuron_core_open(device, 0, NULL, &core) &&
	      !neuron_mem_alloc(device, BYTES, &opts, &x) && !neuron_mem_alloc(device, BYTES, &opts, &y),
	      "device, core, memory");
	if (failed)
		return 1;
	before_a_reset();
	for (unsigned int missing = 0; missing <= NOTHING; missing++) {
		model = load(missing);
		wrong = wrong_results(model);
		if (missing == NOTHING)
			CHECK(!wrong, "nothing is missing: wrong with %u seeds of %u", wrong, SEEDS);
		else
			CHECK(wrong || (missing == OUTPUT && late), "no semaphore %s: wrong with %u seeds of %u",
			      names[missing], wrong, SEEDS);
		neuron_model_unload(model);
	}
	neuron_mem_free(x);
	neuron_mem_free(y);
	neuron_core_close(core);
	wrong = out_of_order(false);
	CHECK(wrong && wrong < SEEDS, "no barrier: out of order with %u seeds of %u", wrong, SEEDS);
	wrong = out_of_order(true);
	CHECK(!wrong, "a barrier: out of order with %u seeds of %u", wrong, SEEDS);
	neuron_device_close(device);
	for (unsigned int i = 0; i < sizeof(models) / sizeof(*models); i++) {
		snprintf(command, sizeof(command),
			 "neuron-demo -m %s >/tmp/demo.log || { cat /tmp/demo.log; false; }", models[i]);
		CHECK(set_seed(i + 1) && !system(command), "%s with seed %u", models[i], i + 1);
	}
	CHECK(set_seed(0), "as they come");
	return failed != 0;
}

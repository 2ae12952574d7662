// SPDX-License-Identifier: GPL-2.0-only
/*
 * The committed digit classifiers, executed on the host by the very code that
 * executes instructions in the software device, must give the bits of the
 * plain host implementation.  What a device adds (rings, FIFOs, threads) is
 * replaced by a small interpreter of semaphores and DMA entries that follows
 * libneuron/docs/loading.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/exec.h"
#include "heldout.h"
#include "host_ref.h"

#define SBUF_SIZE	(1u << 20)
#define NR_RUNS		6

struct machine {
	const struct neuron_neff_subgraph *sg;
	struct emu_sbuf sbuf;
	uint8_t *input, *output;
	size_t input_size, output_size;
	uint32_t sem[NEURON_NEFF_MAX_SEMAPHORES];
	size_t pc[NEURON_NEFF_NR_ENGINES];
	unsigned int triggered;
	bool notified;
};

static uint8_t *address(struct machine *m, const struct neuron_neff_side *s)
{
	const struct neuron_neff_var *v = s->var;

	switch (v->type) {
	case NEURON_NEFF_VAR_STATE_BUFFER:
		assert_true(v->backing_off + v->size <= m->sbuf.size);
		return (uint8_t *)m->sbuf.base + v->backing_off + s->off;
	case NEURON_NEFF_VAR_INPUT:
		assert_true(v->size <= m->input_size);
		return m->input + s->off;
	case NEURON_NEFF_VAR_OUTPUT:
		assert_true(v->size <= m->output_size);
		return m->output + s->off;
	case NEURON_NEFF_VAR_FILE:
		assert_int_equal(v->data_size, v->size);
		return (uint8_t *)(uintptr_t)v->data + s->off;
	default:
		fail_msg("unexpected variable %s", v->name);
		return NULL;
	}
}

static void transfer(struct machine *m, const struct neuron_neff_engine *eng, uint32_t id)
{
	const struct neuron_neff_dma *dma = neuron_neff_find_dma(eng, id);

	assert_non_null(dma);
	for (size_t i = 0; i < dma->nr_desc; i++) {
		const struct neuron_neff_desc *d = &dma->desc[i];

		assert_int_equal(d->op, NEURON_NEFF_OP_COPY);
		assert_int_equal(d->nr_from, 1);
		assert_int_equal(d->to.ndim, 1);
		assert_int_equal(d->from[0].ndim, 1);
		memcpy(address(m, &d->to), address(m, &d->from[0]), d->to.bytes);
	}
	assert_true(dma->semaphore >= 0);
	m->sem[dma->semaphore]++;
	m->triggered++;
}

/* One instruction of an engine; false if it waits or is at its end. */
static bool advance(struct machine *m, unsigned int e)
{
	static const struct emu_isa_limits limits = {
		.sbuf_size = SBUF_SIZE, .nr_semaphores = 256, .nr_events = 256,
		.engines_per_core = 16, .nr_queues = 16,
	};
	const struct neuron_neff_engine *eng = &m->sg->engines[e];
	struct neuron_isa_inst inst;
	uint32_t index, value;

	if (m->pc[e] * sizeof(inst) >= eng->code_size)
		return false;
	memcpy(&inst, (const char *)eng->code + m->pc[e] * sizeof(inst), sizeof(inst));
	index = le32toh(inst.u.sem.index);
	value = le32toh(inst.u.sem.value);

	if (inst.opcode == NEURON_ISA_OP_DMA_TRIGGER) {
		uint32_t id = le32toh(inst.u.dma.tx_count);

		/* As the loader resolves it. */
		inst.u.dma.engine = inst.u.dma.queue = 0;
		inst.u.dma.tx_count = inst.u.dma.rx_count = htole32(1);
		assert_int_equal(emu_isa_check(&inst, e, &limits), 0);
		transfer(m, eng, id);
		m->pc[e]++;
		return true;
	}
	assert_int_equal(emu_isa_check(&inst, e, &limits), 0);
	switch (inst.opcode) {
	case NEURON_ISA_OP_PROLOGUE:
		assert_int_equal(m->pc[e], 0);
		break;
	case NEURON_ISA_OP_SEM_WAIT:
		assert_int_equal(inst.op, NEURON_ISA_WAIT_GE);
		assert_int_equal(inst.flags, NEURON_ISA_F_CONSUME);
		if (m->sem[index] < value)
			return false;
		m->sem[index] -= value;
		break;
	case NEURON_ISA_OP_SEM_POST:
		assert_int_equal(inst.op, NEURON_ISA_POST_INC);
		m->sem[index] += value;
		break;
	case NEURON_ISA_OP_NOTIFY:
		assert_int_equal(e, NEURON_ISA_ENGINE_SP);
		assert_int_equal(le32toh(inst.u.notify.id), 1);
		m->notified = true;
		break;
	default:
		assert_true(emu_isa_is_compute(&inst));
		assert_int_equal(emu_exec(&inst, e, &m->sbuf), 0);
	}
	m->pc[e]++;
	return true;
}

static void run(struct machine *m)
{
	bool moved;

	memset(m->sem, 0, sizeof(m->sem));
	memset(m->pc, 0, sizeof(m->pc));
	m->notified = false;
	m->triggered = 0;
	do {
		moved = false;
		for (unsigned int e = 0; e < NEURON_NEFF_NR_ENGINES; e++)
			moved |= advance(m, e);
	} while (moved);

	/* Nobody is stuck, nothing is left over for the next run. */
	assert_true(m->notified);
	for (unsigned int e = 0; e < NEURON_NEFF_NR_ENGINES; e++)
		assert_int_equal(m->pc[e] * NEURON_ISA_INST_SIZE,
				 m->sg->engines[e].code_size);
	for (unsigned int i = 0; i < NEURON_NEFF_MAX_SEMAPHORES; i++)
		assert_int_equal(m->sem[i], 0);
	assert_int_equal(m->triggered, m->sg->engines[NEURON_NEFF_SP].nr_dma);
}

static void *read_whole(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	void *data;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	*size = (size_t)ftell(f);
	rewind(f);
	data = malloc(*size);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, *size, f), *size);
	fclose(f);
	return data;
}

static void check_model(const char *path)
{
	struct neuron_neff_error e = { .text = "" };
	struct neuron_neff_opts o = { .size = sizeof(o), .verify_hash = true, .error = &e };
	static struct host_model host;
	const struct neuron_neff_var *x, *y;
	struct machine m = { .sbuf = { .size = SBUF_SIZE } };
	struct neuron_neff *neff = NULL;
	size_t size, nr, batch, right = 0, total = 0;
	uint8_t *images;
	void *bytes;

	bytes = read_whole(path, &size);
	if (neuron_neff_open(bytes, size, &o, &neff))
		fail_msg("%s", e.text);
	free(bytes);
	assert_true(neff->executable);
	assert_int_equal(neff->nr_subgraphs, 1);
	assert_int_equal(host_model_init(&host, neff), 0);
	m.sg = &neff->subgraphs[0];
	x = neuron_neff_find_var(m.sg, "x");
	y = neuron_neff_find_var(m.sg, "y");
	assert_non_null(x);
	assert_non_null(y);
	assert_int_equal(x->ndim, 2);
	assert_int_equal(x->dtype, NEURON_NEFF_DT_UINT8);
	assert_int_equal(x->shape[1], HELDOUT_PIXELS);
	assert_int_equal(y->ndim, 2);
	assert_int_equal(y->dtype, host.int8 ? NEURON_NEFF_DT_INT32 : NEURON_NEFF_DT_FLOAT32);
	assert_int_equal(y->shape[0], x->shape[0]);
	batch = x->shape[0];

	images = heldout_read(MODELS "/mnist-heldout.npy.gz", &nr);
	assert_non_null(images);
	assert_int_equal(nr, 2000);
	m.sbuf.base = malloc(SBUF_SIZE);
	m.input = malloc(m.input_size = x->size);
	m.output = malloc(m.output_size = y->size);
	assert_non_null(m.sbuf.base);
	assert_non_null(m.input);
	assert_non_null(m.output);
	/* What a run leaves behind must not matter to the next one. */
	memset(m.sbuf.base, 0xa5, SBUF_SIZE);

	for (size_t r = 0; r < NR_RUNS; r++) {
		const uint8_t *rows = images + r * batch * HELDOUT_ROW;

		for (size_t i = 0; i < batch; i++)
			memcpy(m.input + i * HELDOUT_PIXELS, rows + i * HELDOUT_ROW,
			       HELDOUT_PIXELS);
		run(&m);
		for (size_t i = 0; i < batch; i++) {
			uint32_t want[HOST_CLASSES];
			const uint8_t *got = m.output + i * sizeof(want);

			host_model_run(&host, rows + i * HELDOUT_ROW, want);
			assert_memory_equal(got, want, sizeof(want));
			right += host_model_class(&host, want) ==
				 rows[i * HELDOUT_ROW + HELDOUT_PIXELS];
			total++;
		}
	}
	assert_true(right * 100 >= total * 95);
	free(m.sbuf.base);
	free(m.input);
	free(m.output);
	free(images);
	neuron_neff_close(neff);
}

static void test_bf16(void **state)
{
	(void)state;
	check_model(MODELS "/mnist-bf16.neff");
}

static void test_int8(void **state)
{
	(void)state;
	check_model(MODELS "/mnist-int8.neff");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bf16),
		cmocka_unit_test(test_int8),
	};

	return cmocka_run_group_tests_name("the digit classifiers on the host", tests, NULL, NULL);
}

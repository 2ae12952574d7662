// SPDX-License-Identifier: GPL-2.0-only
/*
 * libneuron/src/isa: what single instructions leave behind, the names of what a
 * device reports, and errors as they are told.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "src/isa/program.h"

static struct neuron_isa_inst inst(unsigned int opcode, unsigned int op, unsigned int flags,
				   uint32_t index, uint32_t value)
{
	struct neuron_isa_inst i = {
		.opcode = (uint8_t)opcode, .op = (uint8_t)op, .flags = (uint8_t)flags,
	};

	i.u.sem.index = htole32(index);
	i.u.sem.value = htole32(value);
	return i;
}

/* A program of @engine, and one of SP that ends the run. */
static int scan(struct programs *p, uint32_t engine, const struct neuron_isa_inst *code, size_t nr)
{
	static struct neuron_neff_subgraph sg;
	static struct neuron_error error;
	static struct obstacles obstacles;
	struct neuron_isa_inst sp[8] = { { 0 } };
	size_t n = engine == NEURON_NEFF_SP ? nr : 0;
	int ret;

	memset(&sg, 0, sizeof(sg));
	error = (struct neuron_error){ .size = sizeof(error) };
	*p = (struct programs){ .sg = &sg, .error = &error, .obstacles = &obstacles };
	sg.dir = "sg00";
	for (size_t i = 0; i < n; i++)
		sp[i] = code[i];
	sp[n].opcode = NEURON_ISA_OP_NOTIFY;
	sp[n++].u.notify.id = htole32(NOTIFY_DONE);
	for (unsigned int i = 0; i < NR_ENGINES; i++)
		sg.engines[i].code_name = "code.bin";
	sg.engines[engine].code_kind = NEURON_NEFF_CODE_NISA;
	sg.engines[engine].code = code;
	sg.engines[engine].code_size = nr * sizeof(*code);
	sg.engines[NEURON_NEFF_SP].code_kind = NEURON_NEFF_CODE_NISA;
	sg.engines[NEURON_NEFF_SP].code = sp;
	sg.engines[NEURON_NEFF_SP].code_size = n * sizeof(*sp);
	ret = programs_scan(p, NEURON_ISA_VERSION);
	programs_check_balance(p);
	programs_free(p);
	return ret;
}

#define WAIT(op, flags, value)	{ NEURON_ISA_OP_SEM_WAIT, NEURON_ISA_WAIT_##op, flags, 8, value }
#define POST(op, value)		{ NEURON_ISA_OP_SEM_POST, NEURON_ISA_POST_##op, 0, 8, value }
#define EVENT(op, flags, value)	{ NEURON_ISA_OP_EVENT_##op, 0, flags, 255, value }
#define TAKE			NEURON_ISA_F_CONSUME

/* Does a run leave a semaphore or an event set, or an engine that waits? */
static void test_balance(void **state)
{
	static const struct {
		struct { unsigned int opcode, op, flags, index, value; } inst[2];
		bool dirty_pool, dirty_sp;
	} rows[] = {
		{ { WAIT(GE, TAKE, 0) }, false, false },
		{ { WAIT(GE, TAKE, 1) }, true, true },
		{ { WAIT(GE, 0, 1) }, true, false },
		{ { WAIT(EQ, TAKE, 0) }, true, false },
		{ { POST(INC, 0) }, false, false },
		{ { POST(INC, 1) }, true, true },
		{ { POST(DEC, 1) }, true, true },
		{ { POST(SET, 0) }, false, false },
		{ { POST(SET, 1) }, true, true },
		{ { POST(INC, 3), POST(DEC, 3) }, false, false },
		{ { POST(INC, 3), WAIT(GE, TAKE, 3) }, false, false },
		{ { POST(INC, 3), WAIT(GE, TAKE, 2) }, true, true },
		{ { EVENT(WAIT, 0, 0) }, true, false },
		{ { EVENT(WAIT, TAKE, 0) }, true, true },
		{ { EVENT(SET, 0, 0) }, false, false },
		{ { EVENT(SET, 0, 1) }, true, true },
		{ { EVENT(SET, 0, 1), EVENT(WAIT, TAKE, 0) }, false, false },
		{ { { NEURON_ISA_OP_EVENT_SET, 0, 0, 256, 1 } }, false, false },
		{ { { NEURON_ISA_OP_SEM_POST, NEURON_ISA_POST_INC, 0, 0, 1 } }, true, true },
		{ { { NEURON_ISA_OP_EVENT_SET, 0, 0, 0, 1 } }, true, true },
	};

	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct neuron_isa_inst code[2];
		struct programs p;

		print_message("# row %zu\n", r);
		for (size_t i = 0; i < 2; i++)
			code[i] = inst(rows[r].inst[i].opcode, rows[r].inst[i].op, rows[r].inst[i].flags,
				       rows[r].inst[i].index, rows[r].inst[i].value);
		assert_int_equal(scan(&p, NEURON_NEFF_POOL, code, 2), 0);
		assert_int_equal(p.dirty, rows[r].dirty_pool);
		assert_int_equal(scan(&p, NEURON_NEFF_SP, code, 2), 0);
		assert_int_equal(p.dirty, rows[r].dirty_sp);
	}
}

static void test_reserved_semaphores(void **state)
{
	struct neuron_isa_inst code;
	struct programs p;

	(void)state;
	for (unsigned int op = NEURON_ISA_OP_SEM_WAIT; op <= NEURON_ISA_OP_SEM_POST; op++) {
		code = inst(op, 0, 0, LOADER_SEMAPHORES - 1, 0);
		assert_int_equal(scan(&p, NEURON_NEFF_ACT, &code, 1), 0);
		code = inst(op, 0, 0, LOADER_SEMAPHORES, 0);
		assert_int_equal(scan(&p, NEURON_NEFF_ACT, &code, 1), -EINVAL);
	}
}

static void test_macs(void **state)
{
	struct neuron_isa_inst code[2] = { { .opcode = NEURON_ISA_OP_MATMUL } };
	struct programs p;

	(void)state;
	code[0].u.matmul.m = htole32(3);
	code[0].u.matmul.n = htole32(500000);
	code[0].u.matmul.k = htole32(7000);
	code[1] = code[0];
	code[1].u.matmul.m = htole32(1);
	assert_int_equal(scan(&p, NEURON_NEFF_PE, code, 2), 0);
	assert_true(p.macs == 4ull * 500000 * 7000);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(isa_engine_name(NEURON_ISA_ENGINE_PE), "PE");
	assert_string_equal(isa_engine_name(NEURON_ISA_ENGINE_SP), "SP");
	assert_string_equal(isa_engine_name(NR_ENGINES), "?");
	assert_string_equal(isa_error_name(NEURON_ISA_ERR_NONE), "no error");
	assert_string_equal(isa_error_name(NEURON_ISA_ERR_SRAM_UE),
			    "uncorrectable error of the state buffer");
	assert_string_equal(isa_error_name(NEURON_ISA_ERR_SRAM_UE + 1), "unknown error");
	for (unsigned int i = 0; i <= NEURON_ISA_ERR_SRAM_UE; i++)
		assert_non_null(isa_error_name((uint8_t)i));
}

/* Whose fault an error is that stopped an engine, or a DMA queue. */
static void test_faults(void **state)
{
	static const struct {
		uint8_t code;
		enum neuron_run_fault engine, queue;
	} rows[] = {
		{ NEURON_ISA_ERR_ILLEGAL, NEURON_FAULT_PROGRAM, NEURON_FAULT_PROGRAM },
		{ NEURON_ISA_ERR_BOUNDS, NEURON_FAULT_BOUNDS, NEURON_FAULT_BOUNDS },
		{ NEURON_ISA_ERR_SEMAPHORE, NEURON_FAULT_SEMAPHORE, NEURON_FAULT_SEMAPHORE },
		{ NEURON_ISA_ERR_DMA_ACCESS, NEURON_FAULT_BOUNDS, NEURON_FAULT_BOUNDS },
		{ NEURON_ISA_ERR_DMA_DESC, NEURON_FAULT_DMA, NEURON_FAULT_DMA },
		{ NEURON_ISA_ERR_DMA_RING, NEURON_FAULT_DMA, NEURON_FAULT_DMA },
		{ NEURON_ISA_ERR_ABORT, NEURON_FAULT_PROGRAM, NEURON_FAULT_DMA },
		{ NEURON_ISA_ERR_MEM_UE, NEURON_FAULT_MEMORY, NEURON_FAULT_MEMORY },
		{ NEURON_ISA_ERR_MEM_REPAIRABLE, NEURON_FAULT_MEMORY_REPAIRABLE,
		  NEURON_FAULT_MEMORY_REPAIRABLE },
		{ NEURON_ISA_ERR_SRAM_UE, NEURON_FAULT_SRAM, NEURON_FAULT_SRAM },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct neuron_notice n = { .code = rows[i].code };

		n.kind = NEURON_ISA_NOTICE_ERROR;
		assert_int_equal(isa_fault(&n), rows[i].engine);
		n.kind = NEURON_ISA_NOTICE_DMA_ERROR;
		assert_int_equal(isa_fault(&n), rows[i].queue);
	}
}

/* The first error is kept; a driver without memory is told apart from one that fails. */
static void test_errors(void **state)
{
	struct neuron_error e = { .size = sizeof(e) };

	(void)state;
	assert_int_equal(error_device(&e, "x", -ENOMEM), -ENOMEM);
	assert_int_equal(e.kind, NEURON_ERROR_MEMORY);
	assert_string_equal(e.text, "x: out of memory");
	assert_int_equal(error_device(&e, "y", -EIO), -EIO);
	assert_string_equal(e.text, "x: out of memory");
	e = (struct neuron_error){ .size = sizeof(e) };
	assert_int_equal(error_device(&e, "y", -EIO), -EIO);
	assert_int_equal(e.kind, NEURON_ERROR_DEVICE);
	assert_string_equal(e.text, "y: Input/output error");
	e = (struct neuron_error){ .size = sizeof(e) };
	assert_int_equal(error_no_memory(&e), -ENOMEM);
	assert_int_equal(e.kind, NEURON_ERROR_MEMORY);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_balance),
		cmocka_unit_test(test_reserved_semaphores),
		cmocka_unit_test(test_macs),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests_name("instructions", tests, NULL, NULL);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of engines, instructions and errors (names.h). */
#include "../../common/util.h"
#include "names.h"

const char *isa_engine_name(uint32_t engine)
{
	static const char *const names[] = { "PE", "Activation", "Pool", "DVE", "SP" };

	return engine < ARRAY_SIZE(names) ? names[engine] : "?";
}

const char *isa_opcode_name(uint8_t code)
{
	switch (code) {
	case NEURON_ISA_OP_NOP: return "NOP";
	case NEURON_ISA_OP_PROLOGUE: return "PROLOGUE";
	case NEURON_ISA_OP_SEM_WAIT: return "SEM_WAIT";
	case NEURON_ISA_OP_SEM_POST: return "SEM_POST";
	case NEURON_ISA_OP_EVENT_WAIT: return "EVENT_WAIT";
	case NEURON_ISA_OP_EVENT_SET: return "EVENT_SET";
	case NEURON_ISA_OP_DMA_TRIGGER: return "DMA_TRIGGER";
	case NEURON_ISA_OP_NOTIFY: return "NOTIFY";
	case NEURON_ISA_OP_MATMUL: return "MATMUL";
	case NEURON_ISA_OP_TENSOR: return "TENSOR";
	case NEURON_ISA_OP_ACTIVATE: return "ACTIVATE";
	case NEURON_ISA_OP_REDUCE: return "REDUCE";
	case NEURON_ISA_OP_CAST: return "CAST";
	case NEURON_ISA_OP_MEMSET: return "MEMSET";
	case NEURON_ISA_OP_GATHER: return "GATHER";
	default: return "?";
	}
}

const char *isa_error_name(uint8_t code)
{
	static const char *const names[] = {
		[NEURON_ISA_ERR_NONE] = "no error",
		[NEURON_ISA_ERR_ILLEGAL] = "illegal instruction",
		[NEURON_ISA_ERR_ENGINE] = "instruction for another engine",
		[NEURON_ISA_ERR_BOUNDS] = "operand outside the state buffer",
		[NEURON_ISA_ERR_INDEX] = "no such semaphore, event or queue",
		[NEURON_ISA_ERR_SEMAPHORE] = "semaphore would wrap",
		[NEURON_ISA_ERR_QUEUE] = "DMA trigger refused",
		[NEURON_ISA_ERR_DMA_ACCESS] = "DMA to memory out of bounds",
		[NEURON_ISA_ERR_DMA_DESC] = "malformed DMA descriptor",
		[NEURON_ISA_ERR_DMA_RING] = "DMA ring gone",
		[NEURON_ISA_ERR_ABORT] = "aborted",
		[NEURON_ISA_ERR_MEM_UE] = "uncorrectable error of device memory",
		[NEURON_ISA_ERR_MEM_REPAIRABLE] = "repairable error of device memory",
		[NEURON_ISA_ERR_SRAM_UE] = "uncorrectable error of the state buffer",
	};

	return code < ARRAY_SIZE(names) ? names[code] : "unknown error";
}

enum neuron_run_fault isa_fault(const struct neuron_notice *n)
{
	switch (n->code) {
	case NEURON_ISA_ERR_BOUNDS:
	case NEURON_ISA_ERR_DMA_ACCESS: return NEURON_FAULT_BOUNDS;
	case NEURON_ISA_ERR_SEMAPHORE: return NEURON_FAULT_SEMAPHORE;
	case NEURON_ISA_ERR_DMA_DESC:
	case NEURON_ISA_ERR_DMA_RING: return NEURON_FAULT_DMA;
	case NEURON_ISA_ERR_MEM_UE: return NEURON_FAULT_MEMORY;
	case NEURON_ISA_ERR_MEM_REPAIRABLE: return NEURON_FAULT_MEMORY_REPAIRABLE;
	case NEURON_ISA_ERR_SRAM_UE: return NEURON_FAULT_SRAM;
	case NEURON_ISA_ERR_ABORT:
		return n->kind == NEURON_ISA_NOTICE_DMA_ERROR ? NEURON_FAULT_DMA :
								NEURON_FAULT_PROGRAM;
	default: return NEURON_FAULT_PROGRAM;
	}
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the software device calls its parts (kmod/emu/ISA.md). */
#ifndef NEURON_LIB_NAMES_H
#define NEURON_LIB_NAMES_H

#include <neuron/neuron.h>

#include "../../../uapi/neuron_isa.h"

#define NR_ENGINES ((uint32_t)NEURON_ISA_NR_ENGINES)

/* Each is "?" or says "unknown" for a number that has no name. */
const char *isa_engine_name(uint32_t engine);
const char *isa_opcode_name(uint8_t opcode);
const char *isa_error_name(uint8_t code);
/* Of a notice of an error. */
enum neuron_run_fault isa_fault(const struct neuron_notice *n);

#endif

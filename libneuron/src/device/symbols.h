/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What lies where in the memory of a loaded model (memory/resolve.c). */
#ifndef NEURON_LIB_SYMBOLS_H
#define NEURON_LIB_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct symbol {
	uint64_t address;
	uint64_t bytes;
	size_t name;			/* offset in @names */
};

/* Of a part of a model; one piece of memory. */
struct symbols {
	struct symbols *next;		/* of the device, its symbols_lock */
	uint64_t freed;			/* CLOCK_MONOTONIC, nanoseconds; 0: it is loaded */
	uint32_t nc;
	size_t size;			/* of all of this */
	const char *names;		/* that of the model first */
	size_t count;
	struct symbol list[];
};

#endif

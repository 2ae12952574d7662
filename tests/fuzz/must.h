/* SPDX-License-Identifier: GPL-2.0-only */
/* What holds whatever the input is: the fuzzer stops where it does not. */
#ifndef FUZZ_MUST_H
#define FUZZ_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define must(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #cond); \
			abort(); \
		} \
	} while (0)

#endif

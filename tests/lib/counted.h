/* SPDX-License-Identifier: GPL-2.0-only */
/* Before a source of the library: what it allocates is counted by the test. */
#ifndef COUNTED_H
#define COUNTED_H

#include <stdlib.h>

void *counted_realloc(void *p, size_t n, size_t size);
void *counted_calloc(size_t n, size_t size);
void counted_free(void *p);

#define malloc(size)			counted_realloc(NULL, 1, size)
#define calloc(n, size)			counted_calloc(n, size)
#define realloc(p, size)		counted_realloc(p, 1, size)
#define reallocarray(p, n, size)	counted_realloc(p, n, size)
#define free(p)				counted_free(p)

#endif

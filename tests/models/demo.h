/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of neuron-demo share. */
#ifndef DEMO_H
#define DEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Print a verdict, and count what is not ok. */
bool __attribute__((format(printf, 2, 3))) report(bool ok, const char *fmt, ...);

/* A whole file, with a verdict if it cannot be read; to be freed. */
void *demo_read_file(const char *path, size_t *size);

/* The text decoder of the directory on a core of a device; false: it did not get through. */
bool demo_decoder(const char *dir, uint32_t device, uint32_t nc);

#endif

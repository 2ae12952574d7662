/* SPDX-License-Identifier: GPL-2.0-only */
/* The held-out images: a gzip compressed .npy of uint8, pixels then label. */
#ifndef HELDOUT_H
#define HELDOUT_H

#include <stddef.h>
#include <stdint.h>

#define HELDOUT_PIXELS	784
#define HELDOUT_ROW	(HELDOUT_PIXELS + 1)

/**
 * heldout_read() - read the file
 * @path: file
 * @nr: number of images
 *
 * Return: @nr rows of HELDOUT_ROW bytes, to be freed; NULL if the file cannot
 * be read or is something else (errno is set).
 */
uint8_t *heldout_read(const char *path, size_t *nr);

#endif /* HELDOUT_H */

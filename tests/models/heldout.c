// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "heldout.h"

#define NPY_HEAD	128	/* bytes before the elements, as numpy writes it */
#define MAX_IMAGES	100000

uint8_t *heldout_read(const char *path, size_t *nr)
{
	unsigned int rows = 0, cols = 0;
	char head[NPY_HEAD + 1] = { 0 };
	uint8_t *data = NULL;
	gzFile f = gzopen(path, "rb");
	const char *shape;

	if (!f)
		return NULL;
	if (gzread(f, head, NPY_HEAD) != NPY_HEAD || memcmp(head, "\x93NUMPY\x01\x00\x76\x00", 10))
		goto invalid;
	shape = strstr(head + 10, "'shape': (");
	if (!shape || !strstr(head + 10, "'descr': '|u1'") ||
	    sscanf(shape, "'shape': (%u, %u)", &rows, &cols) != 2 || cols != HELDOUT_ROW ||
	    !rows || rows > MAX_IMAGES)
		goto invalid;
	data = malloc((size_t)rows * HELDOUT_ROW);
	if (data && gzread(f, data, rows * HELDOUT_ROW) != (int)(rows * HELDOUT_ROW))
		goto invalid;
	gzclose_r(f);
	*nr = rows;
	return data;

invalid:
	free(data);
	gzclose_r(f);
	errno = EINVAL;
	return NULL;
}

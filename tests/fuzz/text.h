/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A NEFF as text, so that a fuzzer gets past container and compression:
 *
 *	=== member name
 *	contents
 *	=== next member
 */
#ifndef FUZZ_TEXT_H
#define FUZZ_TEXT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include <neuron/neff.h>

static inline const uint8_t *next_mark(const uint8_t *p, const uint8_t *end)
{
	for (; (p = memchr(p, '=', (size_t)(end - p))); p++) {
		if (end - p < 4)
			return NULL;
		if (!memcmp(p, "=== ", 4) && p[-1] == '\n')
			return p;
	}
	return NULL;
}

/* NULL: there is none. To be freed. */
static inline void *pack_text(const uint8_t *data, size_t size,
			      const struct neuron_neff_header *header, size_t *packed)
{
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	const uint8_t *p = data, *end = data + size;
	void *bytes = NULL;

	must(w);
	while (p) {
		const uint8_t *line = memchr(p, '\n', (size_t)(end - p)), *next;
		char name[64];

		if (!line)
			break;
		next = next_mark(line + 1, end);
		snprintf(name, sizeof(name), "%.*s", (int)(line - p - 4), (const char *)p + 4);
		/* A bad or second name only leaves the member out. */
		(void)neuron_neff_writer_add(w, name, line + 1,
					     (size_t)((next ? next : end) - line - 1));
		p = next;
	}
	if (neuron_neff_writer_finish(w, header, false, &bytes, packed))
		bytes = NULL;
	neuron_neff_writer_free(w);
	return bytes;
}

#endif

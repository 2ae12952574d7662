/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why a rank has not joined, as far as it knows: for the line that says so. */
#ifndef NRT_REASON_H
#define NRT_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Also as processes say it to each other. */
enum reason_kind {
	REASON_NONE,
	REASON_VERSION,		/* of what they say */
	REASON_COUNT,		/* the others say another number of ranks */
	REASON_TAKEN,		/* somebody else has this rank */
	REASON_MET,		/* all are there already, or were */
	/* Of this process alone: */
	REASON_UNREACHED,	/* rank 0 could not be connected to: @error, or 0 it was not there */
	REASON_STRANGER,	/* what answers is no rank 0 */
	REASON_WAITS,		/* rank 0 is there, but not everybody else */
	REASON_GONE,		/* it was there, and hung up */
	REASON_MISSING,		/* those that @text names */
};

struct reason {
	enum reason_kind kind;
	int error;
	char text[100];
};

/* An attempt with so many ms left, -1 for any, tells something new: in less nobody answers. */
static inline bool reason_tells(const struct reason *r, int left)
{
	return !r->kind || left < 0 || left >= 200;
}

/* Ranks of @count, as REASON_MISSING, if there are any. */
void reason_missing(struct reason *r, const bool *missing, uint32_t count);
/* As the end of a line: "" or ": " and a text; @r may be what another process has sent. */
const char *reason_text(const struct reason *r, char *text, size_t size);

#endif

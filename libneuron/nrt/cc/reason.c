// SPDX-License-Identifier: LGPL-2.1-or-later
/* Why a rank has not joined. */
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "reason.h"

/* "1, 3-7", as much of it as there is room for. */
void reason_missing(struct reason *r, const bool *missing, uint32_t count)
{
	size_t at = 0;

	for (uint32_t i = 0, last; i < count; i = last + 1) {
		last = i;
		if (!missing[i])
			continue;
		while (last + 1 < count && missing[last + 1])
			last++;
		r->kind = REASON_MISSING;
		if (at + sizeof(", 1023-1023, ...") > sizeof(r->text)) {
			snprintf(r->text + at, sizeof(r->text) - at, ", ...");
			return;
		}
		at += (size_t)snprintf(r->text + at, sizeof(r->text) - at,
				       last > i ? "%s%u-%u" : "%s%u", at ? ", " : "", i, last);
	}
}

const char *reason_text(const struct reason *r, char *text, size_t size)
{
	static const char *const texts[] = {
		[REASON_NONE] = "",
		[REASON_VERSION] = ": rank 0 has another version of libnrt",
		[REASON_COUNT] = ": rank 0 says another number of ranks",
		[REASON_TAKEN] = ": somebody else has this rank",
		[REASON_MET] = ": rank 0 has met all its ranks, and not begun again",
		[REASON_WAITS] = ": rank 0 is there and waits for others",
		[REASON_GONE] = ": rank 0 was there, and has gone",
	};
	const char *root = job_root_text();

	switch (r->kind) {
	case REASON_UNREACHED:
		snprintf(text, size, ": rank 0 is not reached at NEURON_RT_ROOT_COMM_ID=%s%s%s", root,
			 r->error ? ": " : "", r->error ? strerror(r->error) : "");
		return text;
	case REASON_STRANGER:
		snprintf(text, size, ": at NEURON_RT_ROOT_COMM_ID=%s is another program, or another version of libnrt",
			 root);
		return text;
	case REASON_MISSING:
		snprintf(text, size, ": missing are ranks %s", r->text);
		return text;
	default:
		return (size_t)r->kind < sizeof(texts) / sizeof(texts[0]) ? texts[r->kind] : "";
	}
}

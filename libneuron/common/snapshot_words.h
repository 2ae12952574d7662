/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Device memory in JSON: the words that are written and read, and a list of ranges. */
#ifndef NEURON_SNAPSHOT_WORDS_H
#define NEURON_SNAPSHOT_WORDS_H

#include <jansson.h>

#include <neuron/neuron.h>

#include "util.h"

/* For json_pack(). */
#define INT(value) ((json_int_t)(value))

static const char *const range_states[] = {
	[NEURON_RANGE_FREE] = "free",
	[NEURON_RANGE_USED] = "used",
	[NEURON_RANGE_RESERVED] = "reserved",
	[NEURON_RANGE_OWNED] = "owned",
};

static const char *const event_kinds[] = {
	[NEURON_EVENT_ALLOC] = "alloc",
	[NEURON_EVENT_FREE] = "free",
	[NEURON_EVENT_GROW] = "grow",
	[NEURON_EVENT_SHRINK] = "shrink",
	[NEURON_EVENT_REFUSE] = "refuse",
	[NEURON_EVENT_MOVE] = "move",
};

/* @other: the word for a state of a newer driver. */
static inline json_t *ranges_json(const struct neuron_range *range, size_t count,
				  const char *other)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		const struct neuron_range *r = &range[i];
		json_t *o = json_pack("{s:I, s:I, s:s}", "address", INT(r->address), "bytes",
				      INT(r->bytes), "state", (unsigned int)r->state <
				      ARRAY_SIZE(range_states) ? range_states[r->state] : other);

		if (r->state == NEURON_RANGE_OWNED)
			json_object_update_new(o, json_pack(
				"{s:i, s:i, s:i, s:s}", "pid", r->pid, "owner", (int)r->owner,
				"core", (int)r->nc, "category",
				neuron_mem_category_name(r->category)));
		json_array_append_new(list, o);
	}
	return list;
}

#endif

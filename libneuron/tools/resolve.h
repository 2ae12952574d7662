/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* neuron-mem resolve: whose an address is, and whose it was. */
#ifndef TOOLS_RESOLVE_H
#define TOOLS_RESOLVE_H

#include <inttypes.h>

#include "../common/snapshot_words.h"
#include "file.h"

static inline json_t *location_json(const struct neuron_location *l)
{
	json_t *o = json_pack("{s:b, s:s, s:s}", "freed", (int)l->freed, "state",
			      range_states[l->state], "text", l->text);

	if (l->hbm != UINT32_MAX)
		json_object_update_new(o, json_pack("{s:i, s:I, s:I}", "hbm", (int)l->hbm, "begin",
						    INT(l->address), "bytes", INT(l->bytes)));
	if (l->pid)
		json_object_update_new(o, json_pack(
			"{s:i, s:i, s:s, s:i, s:s}", "pid", l->pid, "owner", (int)l->owner, "label",
			l->label, "core", (int)l->nc, "category",
			neuron_mem_category_name(l->category)));
	if (l->freed)
		json_object_set_new(o, "freed_ns", json_integer(INT(l->freed_ns)));
	return o;
}

/* What there is now, and what was there before; 0 or -errno. */
static inline int resolve_show(struct neuron_device *device, uint64_t address, bool json)
{
	struct neuron_location now = { .size = sizeof(now) }, before = { .size = sizeof(before) };
	json_t *list;
	int ret = neuron_address_resolve(device, address, 0, &now) ?:
		  neuron_address_resolve(device, address, NEURON_RESOLVE_FREED, &before);

	if (ret)
		return ret;
	if (!json) {
		printf("0x%" PRIx64 ": %s\n", address, now.text);
		if (before.freed && !now.freed)
			printf("%s\n", before.text);
		return 0;
	}
	list = json_pack("[o]", location_json(&now));
	if (before.freed && !now.freed)
		json_array_append_new(list, location_json(&before));
	print_json(list);
	return 0;
}

#endif

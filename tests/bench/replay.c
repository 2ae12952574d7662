// SPDX-License-Identifier: GPL-2.0-only
/*
 * Play the events of a memory snapshot (neuron-mem snapshot, NEURON_MEMORY_DUMP) again, on the
 * driver's allocator.
 *
 * This is not a part of neuron-mem because the allocator is GPL-2.0-only: with it in the
 * program, neuron-mem, which is LGPL-2.1-or-later like the library, would be GPL-2.0-only.
 *
 * usage: replay FILE	exit status 0: what was refused is refused again, 1: it is not, or the
 *			events cannot be played, 2: this is no snapshot
 */
#include "replay.h"
#include "../../libneuron/tools/file.h"

int main(int argc, char **argv)
{
	struct snapshot s;
	bool bad = false;
	size_t size;
	char *text;
	int err;

	if (argc != 2)
		error(2, 0, "usage: replay FILE");
	text = read_whole(argv[1], &size, 2);
	err = snapshot_parse(text, size, &s);
	if (err)
		error(2, err == -EINVAL ? 0 : -err, "%s is no memory snapshot", argv[1]);
	for (size_t i = 0; i < s.count; i++) {
		struct replay r = { .out = stdout };

		err = replay_hbm(&r, &s.list[i]);
		bad |= err || r.different;
		printf("HBM %u: %zu of %zu events played; %zu refused again, %zu differently, %zu by a limit, %zu unknown\n",
		       s.list[i].hbm, r.events, s.list[i].nr_events, r.same, r.different, r.limits,
		       r.unknown);
	}
	snapshot_free(&s);
	free(text);
	return bad;
}

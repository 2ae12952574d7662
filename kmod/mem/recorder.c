// SPDX-License-Identifier: GPL-2.0-only
/* The flight recorder of an HBM. */
#include <linux/minmax.h>

#include "recorder.h"

/**
 * neuron_recorder_read() - events after a certain one, the oldest first
 * @rec: the recorder, under the lock of its HBM
 * @since: number of that event, which may be forgotten; set to that of the last one read
 * @out: where to put them
 * @room: how many fit there
 *
 * Return: how many there are in @out; the first one has the number *@since - this + 1.
 */
u32 neuron_recorder_read(const struct neuron_recorder *rec, u64 *since,
			 struct neuron_record *out, u32 room)
{
	u64 oldest = rec->seq > NEURON_RECORDS ? rec->seq - NEURON_RECORDS : 0, seq;
	u32 n = 0;

	for (seq = max(*since, oldest); seq < rec->seq && n < room; n++)
		out[n] = rec->ring[++seq % NEURON_RECORDS];
	if (n)
		*since = seq;
	return n;
}

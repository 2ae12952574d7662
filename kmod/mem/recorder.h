/* SPDX-License-Identifier: GPL-2.0-only */
/* The flight recorder of an HBM: what happened to its memory last. */
#ifndef NEURON_MEM_RECORDER_H
#define NEURON_MEM_RECORDER_H

#include <linux/types.h>

#include "buddy/buddy.h"

/* 2047 records and the head fill 64 KiB. */
#define NEURON_RECORDS		2047

/* At @page, or nowhere: nobody can ask for both ends. */
#define NEURON_RECORD_AT	(NEURON_BUDDY_LOW | NEURON_BUDDY_HIGH)

/**
 * struct neuron_record - something that happened
 * @time: local_clock(), ns
 * @page: number of its first page in the HBM
 * @pages: its length; what was asked for, at most U32_MAX
 * @client: low half of client.id
 * @free: refused: free pages; moved: @page before
 * @owner: number of the owner
 * @what: enum neuron_native_event_kind, and NEURON_NATIVE_REASON_* << 4
 * @core: core charged
 * @category: category charged
 * @ask: log2 of the alignment asked for, and NEURON_BUDDY_LOW, _HIGH or NEURON_RECORD_AT << 6
 */
struct neuron_record {
	u64 time;
	u32 page;
	u32 pages;
	u32 client;
	u32 free;
	u16 owner;
	u8 what;
	u8 core;
	u8 category;
	u8 ask;
};

/**
 * struct neuron_recorder - the last events; under the lock of the HBM
 * @seq: number of the last one; 0 = none
 * @slot: where it is
 * @ring: event n is in slot n % NEURON_RECORDS
 */
struct neuron_recorder {
	u64 seq;
	u32 slot;
	struct neuron_record ring[NEURON_RECORDS];
};

u32 neuron_recorder_read(const struct neuron_recorder *rec, u64 *since,
			 struct neuron_record *out, u32 room);

/* The slot after a slot: the remainder of a division, in fewer instructions. */
static inline struct neuron_record *neuron_recorder_after(struct neuron_recorder *rec,
							  struct neuron_record *r)
{
	return r < &rec->ring[NEURON_RECORDS - 1] ? r + 1 : rec->ring;
}

/**
 * neuron_recorder_next() - room for an event, in place of the oldest one
 * @rec: the recorder, under the lock of its HBM
 *
 * Return: what to fill in.
 */
static inline struct neuron_record *neuron_recorder_next(struct neuron_recorder *rec)
{
	rec->seq++;
	/* The remainder of a division, in fewer instructions. */
	rec->slot = rec->slot < NEURON_RECORDS - 1 ? rec->slot + 1 : 0;
	return &rec->ring[rec->slot];
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Handles of chunks, and how a chunk is found. */
#ifndef NEURON_MEM_HANDLE_H
#define NEURON_MEM_HANDLE_H

#include "chunk.h"

struct neuron_failure;
struct neuron_native_range;

int neuron_chunk_alloc_handle(struct neuron_client *client,
			      const struct neuron_chunk_request *req, u32 *handle, u64 *addr,
			      struct neuron_failure *why);
int neuron_chunk_publish(struct neuron_chunk *chunk, u32 *out);
int neuron_chunk_import(struct neuron_client *client, struct neuron_chunk *chunk, u32 *out);
void neuron_chunk_revoke(struct neuron_chunk *chunk);
int neuron_chunks_publish(struct neuron_client *client, struct neuron_chunk **chunks, u32 n,
			  struct neuron_native_mem_bulk_entry *entries);
int neuron_chunks_mark(struct neuron_client *client, const u64 *numbers, u32 n);
int neuron_chunks_unpublish(struct neuron_client *client, const u64 *numbers, u32 n);
int neuron_chunk_unpublish(struct neuron_client *client, u64 handle);
struct neuron_chunk *neuron_chunk_unpublish_hold(struct neuron_client *client, u64 handle,
						 bool marked);
void neuron_chunk_unpublish_all(struct neuron_client *client);
bool neuron_chunk_next(struct neuron_client *client, u64 from,
		       struct neuron_native_range *info);
struct neuron_chunk *neuron_chunk_use(struct neuron_client *client, u64 handle,
				      enum neuron_user as);
struct neuron_chunk *neuron_chunk_find(struct neuron_client *client, u64 addr, u64 len,
				       enum neuron_user as);
int neuron_chunk_missing(struct neuron_client *client, u64 handle);
u32 neuron_chunk_handle(struct neuron_client *client, struct neuron_chunk *chunk);
int neuron_chunk_address(struct neuron_client *client, u64 handle, u64 *addr);
int neuron_chunk_pin(struct neuron_client *client, u64 handle, bool pin, u64 *addr);
bool neuron_chunk_idle_at(struct neuron_client *client, u64 addr, u8 *align,
			  struct neuron_chunk **start);
bool neuron_chunk_replace(struct neuron_chunk *chunk, struct neuron_buddy_block *block, u64 addr);

/* For readers that do not use the memory: the chunk may get shorter at any time. */
static inline struct neuron_chunk *neuron_chunk_get(struct neuron_client *client, u64 handle)
{
	return neuron_chunk_use(client, handle, NEURON_USER_NONE);
}

#endif

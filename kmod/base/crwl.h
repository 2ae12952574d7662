/* SPDX-License-Identifier: GPL-2.0-only */
/* The cooperative lock of a core, and the handshake that initialises it. */
#ifndef NEURON_BASE_CRWL_H
#define NEURON_BASE_CRWL_H

#include <linux/spinlock.h>
#include <linux/wait.h>

#include "../../uapi/neuron_ioctl.h"

struct neuron_client;
struct neuron_uuid;
struct pid;

/**
 * struct neuron_crwl - what cooperating processes agree on about a core
 * @lock: the rest
 * @wait: woken at every change
 * @owner: process that loaded the model, NULL = none; its teardown drops the lock
 * @uuid: the model
 * @writer: the owner is loading it
 * @readers: executions that the owner has under way
 * @cinit: progress of the initialisation, enum neuron_cinit_state
 * @starter: thread that initialises it, NULL = none
 */
struct neuron_crwl {
	spinlock_t lock;
	wait_queue_head_t wait;
	const struct neuron_client *owner;
	struct neuron_uuid uuid;
	bool writer;
	u32 readers;
	u32 cinit;
	struct pid *starter;
};

/* One attempt; -EAGAIN: wait for a change. */
typedef int (*neuron_crwl_fn)(struct neuron_crwl *crwl, const struct neuron_client *client,
			      const struct neuron_uuid *uuid);
int neuron_crwl(struct neuron_client *client, u32 nc, const struct neuron_uuid *uuid,
		neuron_crwl_fn fn, long timeout);
int neuron_crwl_read(struct neuron_crwl *crwl, const struct neuron_client *client,
		     const struct neuron_uuid *uuid);
int neuron_crwl_write(struct neuron_crwl *crwl, const struct neuron_client *client,
		      const struct neuron_uuid *uuid);
int neuron_crwl_read_end(struct neuron_crwl *crwl, const struct neuron_client *client,
			 const struct neuron_uuid *uuid);
int neuron_crwl_downgrade(struct neuron_crwl *crwl, const struct neuron_client *client,
			  const struct neuron_uuid *uuid);

void neuron_crwl_init(struct neuron_crwl *crwl);
void neuron_crwl_reset(struct neuron_crwl *crwl);
void neuron_crwl_evict(struct neuron_crwl *crwl, const struct pid *pid);
void neuron_crwl_exit(struct neuron_client *client);
void neuron_crwl_drop(struct neuron_crwl *crwl, const struct neuron_client *client);
int neuron_cinit(struct neuron_client *client, u32 nc, u32 state, u32 *out);

#endif

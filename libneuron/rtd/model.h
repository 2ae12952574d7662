/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Groups of cores and loaded models, and to whom they belong.
 *
 * A model has as many slots as requests may be under way: device memory for all inputs and
 * outputs of one.
 */
#ifndef NEURON_RTD_MODEL_H
#define NEURON_RTD_MODEL_H

#include <neuron/neuron.h>

#include "client.h"

#define MODEL_MAX_TENSORS	256u
#define MODEL_MAX_WAITING	256u

struct request;

struct slot {
	struct neuron_mem **mem;	/* by tensor */
	struct neuron_io *io;
	TAILQ_ENTRY(slot) link;
};

struct group {
	uint64_t id;
	struct client *client;		/* NULL: gone, only shared models keep it */
	struct neuron_group *cores;
	unsigned int nr_models;
	TAILQ_ENTRY(group) link;
};

struct model {
	unsigned int refs;		/* requests that are not done, calls, and one for being loaded */
	uint64_t id;
	struct client *client;		/* NULL: gone, the model is shared or being unloaded */
	uid_t uid;
	bool shared, closing, running;
	struct job_list changes;	/* starts and stops, of which the first is under way */
	struct job *when_idle, *when_unused;
	struct job end;			/* unloads what nobody asked to unload */
	struct group *group;
	struct neuron_net *net;
	uint32_t depth;
	size_t nr_tensors;
	struct neuron_tensor_info *tensors;
	uint64_t output_bytes;
	struct slot *slots;
	TAILQ_HEAD(slot_list, slot) free_slots;
	TAILQ_HEAD(request_list, request) waiting, under_way;	/* under_way: as the network has them */
	unsigned int nr_waiting, nr_under_way;
	unsigned int nr_busy;		/* slots that are not free */
	uint64_t done, failed;
	int eventfd;			/* a request has ended */
	TAILQ_ENTRY(model) link;
};

TAILQ_HEAD(model_list, model);
extern struct model_list models;	/* rtd_lock */

int group_new(struct client *client, uint32_t cores, uint64_t *id);
int group_destroy(struct client *client, uint64_t id);

struct model_load {
	const void *neff;
	size_t bytes;
	uint64_t group;
	uint32_t depth;
	bool shared;
	struct neuron_error *error;	/* of -errno values of libneuron */
};

/*
 * Loads; 0 or -errno. Nobody finds the model before it is published, which gives the caller a
 * reference; until then it can be discarded.
 */
int model_load(struct client *client, const struct model_load *load, struct model **model);
void model_publish(struct client *client, struct model *model);
void model_discard(struct client *client, struct model *model);
/* May the client use it? Under rtd_lock. */
bool model_usable(const struct model *model, const struct client *client);
/*
 * A model that the client may use, or with @manage start, stop and unload, with a reference;
 * under rtd_lock. 0, -ENOENT, -EPERM.
 */
int model_find(struct client *client, uint64_t id, bool manage, struct model **model);
/* By number only, for who watches it; under rtd_lock. */
struct model *model_by_id(uint64_t id);
void model_put(struct model *model);
/* The same under rtd_lock. */
void model_drop(struct model *model);

/* A slot for a request, or NULL; and back. Under rtd_lock. */
struct slot *model_take_slot(struct model *model);
void model_free_slot(struct model *model, struct slot *slot);

/*
 * Adds a job that starts or stops the model, in the order of the calls, so that @running is what
 * the last one made it. It ends with model_changed(), and has a reference to the model.
 */
void model_change(struct model *model, struct job *job);
void model_changed(struct model *model);
/* Adds the job once no request has a slot. For the job of a change. */
void model_when_idle(struct model *model, struct job *job);
/* Adds the job once there is no reference but that of being loaded; drops the caller's. Once. */
void model_when_unused(struct model *model, struct job *job);

/* Of a change. */
int model_start(struct model *model);
/* No further request is taken. */
void model_halt(struct model *model);
/* Of a model that is idle. */
int model_stop(struct model *model);
/* Takes it from its clients, once. -ENOENT: another call has. Under rtd_lock. */
int model_close(struct model *model);
/* It forgets its client, which is about to be freed; under rtd_lock. */
void model_disown(struct model *model);
/* Frees one that was closed and is not used. */
void model_unload(struct model *model);
/* One that is not closed, which then is, with a reference; NULL: there is none. */
struct model *model_close_next(void);
/* Until all are unloaded. */
void models_wait(void);

/*
 * What a client that ended leaves behind: one model after the other that is to be unloaded,
 * closed already, with a reference; NULL: there is none. Shared models and their groups lose their owner.
 */
struct model *model_of_ended(struct client *client);
void groups_of_ended(struct client *client);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests: from the message to the device and back.
 *
 * A request waits for a slot, has its inputs written there, and is submitted to the network.
 * The threads here learn that it has ended, read its outputs, answer, and give the slot to the
 * next one. Those of a model are answered in the order in which they were submitted.
 */
#ifndef NEURON_RTD_INFER_H
#define NEURON_RTD_INFER_H

#include "call.h"
#include "model.h"
#include "neuron-rtd.pb-c.h"

/* Starts the threads. 0 or -errno. */
int infer_start(void);
void infer_stop(void);

/* Have the requests of a loaded model looked after. 0 or -errno. */
int infer_add_model(struct model *model);

void infer_run(struct call *call);
void infer_post(struct call *call);
void infer_wait(struct call *call);

/* What was posted, of which nobody has the number. */
void infer_undo(struct client *client, uint64_t id);

/* Requests that have no slot yet are refused with -errno and why: of one client, or (NULL) all. */
void infer_refuse(struct model *model, const struct client *client, int error, const char *why);
/* The same for who ends, and those that have not begun are cancelled. */
void infer_drop(struct model *model, const struct client *client);
/* The same for all models, and what the client has posted is forgotten. */
void infer_forget(struct client *client);

/* A descriptor that becomes readable when somebody has waited long enough: infer_expire(). */
int infer_timer(void);
void infer_expire(void);

#endif

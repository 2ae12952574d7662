/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages between hosts, by libfabric, whatever provider the machine has.  An end belongs
 * to a core; its threads may use it at the same time.
 *
 * Messages of the same tag from one end to another arrive in order.  A request belongs to
 * its end: after an error it may still be under way, and so may what it reads or writes,
 * until the end is closed.
 */
#ifndef NRT_FABRIC_H
#define NRT_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nrt/nrt.h>

#include "../../common/wait.h"

struct fabric;
struct fabric_request;

/* Memory that messages are in: of the host, or of a Neuron device, mapped. */
struct fabric_memory {
	uint8_t *bytes;
	size_t size;
	bool on_device;
	uint32_t device;
	void *registration, *desc;
};

/* Who may interrupt a wait. */
struct fabric_watch {
	struct deadline deadline;
	int fd;				/* that tells of it, or -1 */
	bool (*broken)(void *arg);
	void *arg;
};

/* Why there is no libfabric; NULL: there is. Loads it. */
const char *fabric_missing(void);
/* Its address goes to @name, *@size in: of @name, out: of the address.  0 or -errno. */
int fabric_open(struct fabric **out, const char *address, void *name, size_t *size);
/* No message is under way after it.  NULL is allowed, as in the next. */
void fabric_stop(struct fabric *f);
void fabric_close(struct fabric *f);
const char *fabric_provider(const struct fabric *f);
/* The number of another end.  0 or -errno. */
int fabric_peer(struct fabric *f, const void *name, uint64_t *peer);
/* Its provider may take memory of devices; fabric_register() says if it takes that of this one. */
bool fabric_takes_devices(const struct fabric *f);
int fabric_register(struct fabric *f, struct fabric_memory *m);
/* @f may be NULL if nothing is registered. */
void fabric_unregister(struct fabric *f, struct fabric_memory *m);

/*
 * Begin; @at bytes into @m.  One that waits for its turn is in the watch's hands, too.
 * NRT_SUCCESS and a request, to be waited for.
 */
NRT_STATUS fabric_send(struct fabric *f, uint64_t peer, uint64_t tag, const struct fabric_memory *m,
		       size_t at, size_t size, const struct fabric_watch *watch,
		       struct fabric_request **out);
NRT_STATUS fabric_receive(struct fabric *f, uint64_t peer, uint64_t tag,
			  const struct fabric_memory *m, size_t at, size_t size,
			  const struct fabric_watch *watch, struct fabric_request **out);
/* Messages go on without anybody waiting for one of them. */
void fabric_progress(struct fabric *f);
/*
 * NRT_TIMEOUT; NRT_FAILURE it was interrupted; NRT_NETWORK_PROXY_FAILURE the fabric has
 * failed, or another size has come.
 */
NRT_STATUS fabric_wait(struct fabric *f, struct fabric_request *r, const struct fabric_watch *watch);

#endif

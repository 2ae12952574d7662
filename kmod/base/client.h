/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes that have a device open, and their descriptors. */
#ifndef NEURON_BASE_CLIENT_H
#define NEURON_BASE_CLIENT_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "neuron_hw.h"
#include "owner.h"

struct neuron_async;
struct neuron_chunk;
struct neuron_device;
struct neuron_failures;
struct neuron_scrub;
struct pid;

#define NEURON_ASYNC_TOKENS	2	/* uapi/FACTS.md 3 */

/**
 * struct neuron_space - what a process may reach by DMA
 * @client: whose memory and cores these are
 */
struct neuron_space {
	struct neuron_client *client;
};

/**
 * struct neuron_process - a process that has devices open
 * @ref: its clients
 * @node: in the list of them
 * @pid: its thread group
 * @host_bytes: bytes of host memory charged, for the limit
 */
struct neuron_process {
	struct kref ref;
	struct list_head node;
	struct pid *pid;
	atomic64_t host_bytes;
};

/**
 * struct neuron_client - a process that has a device open
 * @ref: files and chunks
 * @nd: the device
 * @pid: its thread group; identifies it
 * @cred: of who opened the device first; NULL: the driver itself
 * @exec_id: how often that had called exec()
 * @process: its process, shared by its clients of all devices; NULL: the driver itself
 * @death: in the wait queue of @pid, from attach to teardown
 * @reap: queued by @death, with a reference on the client: is the process dead?
 * @id: unique number
 * @space: what its queues may touch
 * @node: in device.clients, under clients_lock; read under RCU, too
 * @rcu: freeing
 * @nr_files: open files, under clients_lock
 * @dead: teardown has begun, under clients_lock
 * @done: teardown has ended
 * @kernel: the driver itself; reaches everything
 * @claims: it may have claimed cores
 * @async_lock: @async, @scrub
 * @async: copies under way and results, by core and token - 1
 * @scrub: HBMs that it scrubs
 * @datastore: memory that it publishes counters in, under clients_lock
 * @handles: struct neuron_handle by number; its lock also guards the fields from @spare to
 *	     @closed
 * @spare: where in @handles the next chunk goes, a slot that is reserved; index 0 = nowhere
 * @top: the highest number given out so far
 * @holes: numbers up to @top that are free; not @spare, which is kept for the next handle
 * @by_addr: the same by device address: allocated by it, imported
 * @unindexed: those that are not in @by_addr yet, newest first
 * @nr_unindexed: their number
 * @rings: ring memory that it allocated and that still exists
 * @closed: it is being torn down: @handles, @by_addr and @unindexed are empty for good
 * @hbm_bytes: bytes held of each HBM; under that hbm's lock
 * @device_bytes: bytes of device memory charged, for the limits
 * @core_bytes: the same by core
 * @limit: limit of @device_bytes set by the administrator; NEURON_NO_LIMIT = the device's
 *	   default
 * @own_limit: same, set by the process itself, under clients_lock
 * @host_bytes: bytes of host memory held
 * @failures: record of refused allocations, NULL: none; under device.failures_lock
 * @owner: the process itself
 * @owners: other owners by number
 * @nr_owners: their number
 * @last_owner: the last number given out
 */
struct neuron_client {
	struct kref ref;
	struct neuron_device *nd;
	struct pid *pid;
	const struct cred *cred;
	u64 exec_id;
	struct neuron_process *process;
	wait_queue_entry_t death;
	struct work_struct reap;
	u64 id;
	struct neuron_space space;
	struct list_head node;
	struct rcu_head rcu;
	unsigned int nr_files;
	bool dead;
	struct completion done;
	bool kernel;
	bool claims;
	struct mutex async_lock;
	struct neuron_async *async[NEURON_HW_MAX_CORES][NEURON_ASYNC_TOKENS];
	struct neuron_scrub *scrub[NEURON_HW_MAX_HBMS];
	struct neuron_chunk *datastore;
	struct xarray handles;
	struct xa_state spare;
	u32 top;
	u32 holes;
	u32 nr_unindexed;
	struct rb_root by_addr[2];
	struct list_head unindexed;
	struct list_head rings;
	bool closed;
	u64 hbm_bytes[NEURON_HW_MAX_HBMS];
	atomic64_t device_bytes;
	atomic64_t core_bytes[NEURON_HW_MAX_CORES];
	u64 limit;
	u64 own_limit;
	atomic64_t host_bytes;
	struct neuron_failures *failures;
	struct neuron_owner owner;
	struct xarray owners;
	atomic_t nr_owners;
	u32 last_owner;
};

/**
 * struct neuron_file - an open descriptor
 * @nd: the device
 * @client: the process that opened it; NULL if opened write-only
 * @claims: cores may have been claimed through it
 */
struct neuron_file {
	struct neuron_device *nd;
	struct neuron_client *client;
	bool claims;
};

struct neuron_client *neuron_client_new(struct neuron_device *nd, struct pid *pid);
void neuron_client_release(struct kref *ref);
void neuron_client_put_some(struct neuron_client *client, u32 n);
bool neuron_process_alive(struct pid *pid);
bool neuron_client_same_user(const struct neuron_client *client);
bool neuron_process_attached(struct neuron_device *nd, const struct pid *pid);
bool neuron_cred_same_user(const struct cred *cred);
bool neuron_client_foreign(const struct neuron_client *client);
char *neuron_printable(char *text);
int neuron_clients_reap(struct neuron_device *nd, u32 seen);
void neuron_client_reap_later(struct neuron_client *client);
int neuron_clients_init(void);
void neuron_clients_destroy(void);

static inline void neuron_client_put(struct neuron_client *client)
{
	kref_put(&client->ref, neuron_client_release);
}

/**
 * neuron_file_allowed() - may the caller do everything with a descriptor?
 * @nf: the descriptor
 *
 * Only the process that opened it may.  What another process does through an inherited or
 * received descriptor would be charged to the opener.
 */
static inline bool neuron_file_allowed(const struct neuron_file *nf)
{
	return nf->client && nf->client->pid == task_tgid(current) &&
	       !READ_ONCE(nf->client->dead);
}

/**
 * neuron_reaped() - is a request that was refused worth another try?
 * @reaped: what neuron_clients_reap() or neuron_devices_reap() returned
 * @err: of the request; what ended the wait, if that was not a process that gave something back
 *
 * Context: any.
 */
static inline bool neuron_reaped(int reaped, int *err)
{
	if (reaped && reaped != -ENOENT)
		*err = reaped;
	return !reaped;
}

/* Teardowns that have ended, of all devices; may wrap. */
extern atomic_t neuron_teardowns;

/**
 * neuron_teardowns_read() - number of processes that have given back what they own
 *
 * Context: any.
 * Return: for neuron_clients_reap(); read before the attempt that may be refused.
 */
static inline u32 neuron_teardowns_read(void)
{
	return atomic_read(&neuron_teardowns);
}

/**
 * neuron_teardown_ended() - a process has given back what it owned
 *
 * Context: any.
 */
static inline void neuron_teardown_ended(void)
{
	/* A reader that sees the new number also sees what was given back. */
	atomic_inc_return(&neuron_teardowns);
}

#endif

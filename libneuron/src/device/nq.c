// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Notification queues in host memory.
 *
 * The device writes 16-byte entries one after the other, the phase bit last: 1
 * on the first pass, then alternating.  An entry is new when its phase bit is
 * the one of the pass that the reader is in.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../../../uapi/neuron_isa.h"
#include "../../common/wait.h"
#include "device.h"
#include "opts.h"
#include "sys.h"

#define NQ_DEFAULT_BYTES 16384u
#define NQ_MAX_BYTES (1u << 30)

_Static_assert(sizeof(struct neuron_isa_notice) == 16, "notice layout");
_Static_assert((int)NEURON_NQ_NOTIFY == (int)NQ_TYPE_NOTIFY &&
	       (int)NEURON_NQ_ERROR == (int)NQ_TYPE_ERROR, "queue types");

struct neuron_nq {
	struct neuron_device *device;
	struct neuron_nq_opts opts;
	struct neuron_isa_notice *entries;
	uint64_t handle;
	uint64_t mmap_offset;
	uint32_t count;
	uint32_t next;
	uint8_t phase;
	int fd;			/* own eventfd of neuron_nq_wait(), -1 none */
};

static int set_eventfd(struct neuron_nq *nq, int fd)
{
	struct neuron_native_nq_eventfd e = {
		.size = sizeof(e),
		.nq_dev_id = nq->opts.nc,
		.nq_dev_type = NQ_DEVICE_TYPE_NEURON_CORE,
		.nq_type = nq->opts.type,
		.engine_index = nq->opts.engine,
		.eventfd = fd,
	};

	return device_ioctl(nq->device, NEURON_NATIVE_NQ_EVENTFD, &e);
}

NEURON_EXPORT int neuron_nq_open(struct neuron_device *device,
				 const struct neuron_nq_opts *opts, struct neuron_nq **nq)
{
	struct neuron_ioctl_notifications_init_with_realloc_v2 init = { 0 };
	struct neuron_nq_opts o;
	struct neuron_nq *n;
	int ret = opts_copy(&o, sizeof(o), opts);

	if (ret)
		return ret;
	if (!o.bytes)
		o.bytes = NQ_DEFAULT_BYTES;
	if (!opts || !nq || o.bytes & (o.bytes - 1) || o.bytes > NQ_MAX_BYTES ||
	    o.bytes < sizeof(*n->entries))
		return -EINVAL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	init.nq_dev_id = o.nc;
	init.nq_dev_type = NQ_DEVICE_TYPE_NEURON_CORE;
	init.nq_type = o.type;
	init.engine_index = o.engine;
	init.size = o.bytes;
	init.on_host_memory = 1;
	init.force_alloc_mem = 1;	/* fresh memory, so that phases start again */
	ret = device_ioctl(device, NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &init);
	if (ret)
		goto fail;
	n->entries = neuron_sys_mmap(device->fd, init.mmap_offset,
				     round_up(o.bytes, host_page()));
	if (!n->entries) {
		ret = -errno;
		device_give_back(device, &(struct leftover){ .handle = init.mem_handle });
		goto fail;
	}
	n->device = device_get(device);
	n->opts = o;
	n->handle = init.mem_handle;
	n->mmap_offset = init.mmap_offset;
	n->count = o.bytes / (uint32_t)sizeof(*n->entries);
	n->phase = 1;
	n->fd = -1;
	*nq = n;
	return 0;
fail:
	free(n);
	return ret;
}

/* The memory has a handle of its own, which a reset leaves alone. */
static void free_memory(struct neuron_nq *nq)
{
	const struct leftover left = {
		.handle = nq->handle,
		.va = nq->entries,
		.mapped = round_up(nq->opts.bytes, host_page()),
		.mmap_offset = nq->mmap_offset,
	};

	device_give_back(nq->device, &left);
}

NEURON_EXPORT void neuron_nq_close(struct neuron_nq *nq)
{
	if (!nq)
		return;
	if (nq->fd >= 0) {
		set_eventfd(nq, -1);
		close(nq->fd);
	}
	free_memory(nq);
	device_put(nq->device);
	free(nq);
}

NEURON_EXPORT int neuron_nq_set_eventfd(struct neuron_nq *nq, int fd)
{
	int ret = set_eventfd(nq, fd < 0 ? -1 : fd);

	if (!ret && nq->fd >= 0) {
		close(nq->fd);
		nq->fd = -1;
	}
	return ret;
}

NEURON_EXPORT int neuron_nq_read(struct neuron_nq *nq, struct neuron_notice *notice)
{
	struct neuron_isa_notice *e = &nq->entries[nq->next];
	uint8_t phase;

	if (device_inherited(nq->device))
		return -EACCES;
	/* The rest of the entry was written before the phase bit. */
	phase = __atomic_load_n(&e->phase, __ATOMIC_ACQUIRE);
	if ((phase & 1) != nq->phase)
		return -EAGAIN;
	notice->id = le32toh(e->id);
	notice->engine = e->engine;
	notice->kind = e->kind;
	notice->code = e->code;
	notice->queue = phase >> 4;
	notice->data = le64toh(e->data);
	if (++nq->next == nq->count) {
		nq->next = 0;
		nq->phase ^= 1;
	}
	return 0;
}

NEURON_EXPORT int neuron_nq_wait(struct neuron_nq *nq, struct neuron_notice *notice,
				 int timeout_ms)
{
	struct deadline deadline = deadline_in(timeout_ms);
	uint64_t count;
	int ret;

	if (device_inherited(nq->device))
		return -EACCES;
	if (nq->fd < 0) {
		int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

		if (fd < 0)
			return -errno;
		ret = set_eventfd(nq, fd);
		if (ret) {
			close(fd);
			return ret;
		}
		nq->fd = fd;
	}
	for (;;) {
		struct pollfd pfd = { .fd = nq->fd, .events = POLLIN };

		/* Take the signal first: what comes after the look signals again. */
		if (read(nq->fd, &count, sizeof(count)) < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (!neuron_nq_read(nq, notice))
			return 0;
		ret = poll(&pfd, 1, deadline_left(&deadline));
		if (ret < 0 && errno != EINTR)
			return -errno;
		if (!ret)
			return neuron_nq_read(nq, notice) ? -ETIMEDOUT : 0;
	}
}

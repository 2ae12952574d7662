// SPDX-License-Identifier: LGPL-2.1-or-later
/* Running a model: bind tensors, set up queues, start instruction fetch, wait. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../common/wait.h"
#include "../device/datastore.h"
#include "../device/opts.h"
#include "../isa/program.h"
#include "content.h"
#include "core.h"
#include "offload.h"
#include "pretend.h"

static void set_address(struct neuron_model *m, const struct fixup *f, uint64_t address)
{
	struct ring *ring = &m->rings[f->ring];
	struct neuron_descriptor *d = f->rx ? &ring->rx_desc[f->index] : &ring->tx_desc[f->index];
	bool clean = ring->dirty_first >= ring->dirty_end;

	d->address = htole64(address + f->offset);
	ring->dirty_first = clean ? f->index : MIN(ring->dirty_first, f->index);
	ring->dirty_end = clean ? f->index + 1 : MAX(ring->dirty_end, f->index + 1);
}

static int bind_tensor(struct neuron_model *m, struct io_tensor *t, uint64_t address)
{
	uint64_t word = htole64(address);

	if (t->bound && t->address == address)
		return 0;
	/* If something fails half way, the next run does all of it again. */
	t->bound = false;
	for (size_t i = 0; i < t->nr_fixups; i++)
		set_address(m, &t->fixups[i], address);
	for (size_t i = 0; i < t->nr_pointers; i++) {
		int ret = neuron_mem_write(t->pointers[i].mem, t->pointers[i].offset, &word,
					   sizeof(word));

		if (ret)
			return ret;
	}
	t->address = address;
	t->bound = true;
	return 0;
}

static int check_io(const struct neuron_model *m, const struct neuron_tensor_info *t,
		    const struct neuron_io *io, struct neuron_run_result *result)
{
	const char *what = NULL;

	if (!io || !io->mem)
		what = "is missing";
	else if (io->mem->device != m->core->device)
		what = "is on another device";
	else if (io->bytes < t->bytes)
		what = "is too small";
	else if (io->offset > io->mem->bytes || io->bytes > io->mem->bytes - io->offset)
		what = "ends beyond its memory";
	if (!what)
		return 0;
	snprintf(result->text, sizeof(result->text), "%s %.160s %s",
		 t->usage == NEURON_TENSOR_INPUT ? "input" : "output", t->name, what);
	neuron_neff_printable(result->text);
	return -EINVAL;
}

/* All parts of a model: what is refused must not have touched the core of any. */
static int check_model(const struct neuron_model *model, const struct neuron_io *io, size_t nr_io,
		       struct neuron_run_result *result)
{
	int ret = 0;

	for (const struct neuron_model *m = model; m; m = m->peer)
		for (size_t i = 0; i < m->nr_io && !ret; i++)
			ret = check_io(m, &m->io[i].info, find_io(io, nr_io, i, m->io[i].info.name),
				       result);
	return ret;
}

/* After check_model(). */
static int bind(struct neuron_model *m, const struct neuron_io *io, size_t nr_io)
{
	struct neuron_device *device = m->core->device;
	int ret = 0;

	for (size_t i = 0; i < m->nr_io && !ret; i++) {
		const struct neuron_io *b = find_io(io, nr_io, i, m->io[i].info.name);

		ret = bind_tensor(m, &m->io[i], neuron_mem_address(b->mem) + b->offset);
	}
	for (size_t i = m->nr_fetch; i < m->nr_rings && !ret; i++) {
		struct ring *r = &m->rings[i];
		uint32_t count = r->dirty_end - r->dirty_first;

		if (r->dirty_first >= r->dirty_end)
			continue;
		ret = neuron_queue_write(device, r->tx, NEURON_RING_TX, r->dirty_first,
					 r->tx_desc + r->dirty_first, count) ?:
		      neuron_queue_write(device, r->rx, NEURON_RING_RX, r->dirty_first,
					 r->rx_desc + r->dirty_first, count);
		if (!ret)
			r->dirty_first = r->dirty_end = 0;
	}
	return ret;
}

static int start(struct neuron_model *m)
{
	struct neuron_core *core = m->core;
	int ret;

	if (core->profile)
		core->recorder->run_begin(core->profile, m);
	/* Also takes the rings to their first slot again. */
	for (size_t i = 0; i < m->nr_rings; i++)
		core->owner[m->rings[i].slot] = m;
	ret = neuron_queue_init(core->device, m->setup, m->nr_rings) ?: content_begin(m);
	for (size_t i = 0; i < m->nr_fetch && !ret; i++)
		ret = neuron_queue_start(core->device, m->setup[i].engine, m->setup[i].queue,
					 m->rings[i].count, m->rings[i].count);
	return ret;
}

/* What is at the address of a fault: what the run was given, or what there is now or was. */
static void name_address(const struct neuron_model *model, uint64_t address, char *text, size_t size)
{
	struct neuron_location l = { .size = sizeof(l) };

	for (const struct neuron_model *m = model; m; m = m->peer)
		for (size_t i = 0; i < m->nr_io; i++) {
			const struct io_tensor *t = &m->io[i];

			if (!t->bound || address - t->address >= t->info.bytes)
				continue;
			snprintf(text, size, "%.60s + %llu of model %.60s", t->info.name,
				 (unsigned long long)(address - t->address), m->name);
			neuron_neff_printable(text);
			return;
		}
	if (!neuron_address_resolve(model->core->device, address, 0, &l))
		snprintf(text, size, "%.*s", (int)size - 1, l.text);
}

static int stopped(const struct neuron_model *model, const struct neuron_notice *n,
		   struct neuron_run_result *result)
{
	char what[160] = "unknown";

	result->notice = *n;
	result->fault = isa_fault(n);
	if (n->kind == NEURON_ISA_NOTICE_DMA_ERROR) {
		result->status = NEURON_RUN_DMA_ERROR;
		name_address(model, n->data, what, sizeof(what));
		snprintf(result->text, sizeof(result->text),
			 "DMA engine %u queue %u stopped after %u descriptors: %s, address 0x%llx, %s",
			 n->engine, n->queue, n->id, isa_error_name(n->code),
			 (unsigned long long)n->data, what);
	} else {
		result->status = NEURON_RUN_ENGINE_ERROR;
		snprintf(result->text, sizeof(result->text),
			 "engine %s stopped at instruction %u: %s, opcode 0x%llx",
			 isa_engine_name(n->engine), n->id,
			 isa_error_name(n->code), (unsigned long long)n->data);
	}
	return -EIO;
}

/* Takes what the core's program said; the core is done when it said so. */
static void look_for_end(struct neuron_core *core)
{
	struct neuron_notice n;

	while (!core->done && !neuron_nq_read(core->notify, &n))
		core->done = n.kind == NEURON_ISA_NOTICE_NOTIFY && n.id == NOTIFY_DONE;
}

/* Of a run whose queues a reset took away nothing more is heard. */
static int was_reset(const struct neuron_model *model, struct neuron_run_result *result)
{
	for (const struct neuron_model *m = model; m; m = m->peer) {
		if (!atomic_load(&m->core->watch.reset))
			continue;
		snprintf(result->text, sizeof(result->text), "core %u was reset during the run",
			 m->core->nc);
		return -EIO;
	}
	return -EAGAIN;
}

/*
 * Whether every part of the model is done; -EAGAIN: not yet.  The ends are read before the
 * errors, and the errors of all cores each time: an error makes the results worthless
 * though its core is done, and though another core still runs.
 */
static int look(const struct neuron_model *model, struct neuron_run_result *result)
{
	struct neuron_notice n;
	int ret = 0;

	for (const struct neuron_model *m = model; m; m = m->peer) {
		look_for_end(m->core);
		if (!m->core->done)
			ret = -EAGAIN;
	}
	for (const struct neuron_model *m = model; m; m = m->peer)
		if (!neuron_nq_read(m->core->error, &n))
			return stopped(model, &n, result);
	return ret ? was_reset(model, result) : 0;
}

/* Takes the signals of the cores: what comes after the look signals again. */
static int take_signals(const struct pollfd *pfd, nfds_t nr)
{
	uint64_t count;

	for (nfds_t i = 0; i < nr; i++)
		if (read(pfd[i].fd, &count, sizeof(count)) < 0 && errno != EAGAIN &&
		    errno != EINTR)
			return -errno;
	return 0;
}

/*
 * All parts of the model; the first error of any of them ends it.  What is done at the first
 * look takes no system call: then the signals stay, and the next run looks once more for them.
 */
static int wait_done(const struct neuron_model *model, int timeout_ms,
		     struct neuron_run_result *result)
{
	int ret = look(model, result);
	struct deadline deadline;
	struct pollfd pfd[2];
	nfds_t nr = 0;

	if (ret != -EAGAIN)
		return ret;
	deadline = deadline_in(timeout_ms);
	for (const struct neuron_model *m = model; m; m = m->peer)
		pfd[nr++] = (struct pollfd){ .fd = m->core->watch.eventfd, .events = POLLIN };
	do {
		if (poll(pfd, nr, deadline_left(&deadline)) < 0 && errno != EINTR)
			return -errno;
		ret = take_signals(pfd, nr) ?: look(model, result);
	} while (ret == -EAGAIN && deadline_left(&deadline));
	if (ret != -EAGAIN)
		return ret;
	result->status = NEURON_RUN_TIMEOUT;
	snprintf(result->text, sizeof(result->text), "no completion notification in %d ms",
		 timeout_ms);
	return -ETIMEDOUT;
}

static void lock_cores(struct neuron_model *model)
{
	for (struct neuron_model *m = model; m; m = m->peer)
		turn_take(&m->core->turn);
}

static void unlock_cores(struct neuron_model *model)
{
	for (struct neuron_model *m = model; m; m = m->peer)
		turn_give(&m->core->turn);
}

/* The part of a model on one core, so far that it can be started. */
static int prepare(struct neuron_model *m, const struct neuron_io *io, size_t nr_io)
{
	struct neuron_core *core = m->core;
	/* Whatever the reset is for, the profile is to know. */
	bool over = core->profile && core->recorder->starts_over(core->profile);
	struct neuron_notice late;
	int ret = 0;

	/*
	 * An error that came after the end of the last run: an engine or a queue
	 * that stands still until the core is reset.  A reset by others took the queues away.
	 */
	if (over || core->broken || atomic_load(&core->watch.reset) ||
	    !neuron_nq_read(core->error, &late))
		ret = core_reset_locked(core);
	ret = ret ?: bind(m, io, nr_io);
	while (!ret && !neuron_nq_read(core->notify, &late))
		;
	core->done = false;
	return ret;
}

/* The status counter of a core for the end of a run; 0 if the driver counts it itself. */
static unsigned int status_counter(int ret, const struct neuron_run_result *r)
{
	static const unsigned int faults[] = {
		[NEURON_FAULT_PROGRAM] = NDS_NC_COUNTER_INFER_COMPLETED_WITH_ERR,
		[NEURON_FAULT_BOUNDS] = NDS_NC_COUNTER_OOB,
		[NEURON_FAULT_SEMAPHORE] = NDS_EXT_NC_COUNTER_ERR_SW_SEMAPHORE_ERROR,
		[NEURON_FAULT_DMA] = NDS_EXT_NC_COUNTER_HW_ERR_DMA_ABORT,
		[NEURON_FAULT_MEMORY] = NDS_EXT_NC_COUNTER_HW_ERR_HBM_UE,
		[NEURON_FAULT_MEMORY_REPAIRABLE] = NDS_EXT_NC_COUNTER_HW_ERR_REPAIRABLE_HBM_UE,
		[NEURON_FAULT_SRAM] = NDS_EXT_NC_COUNTER_HW_ERR_NC_UE,
	};

	switch (ret) {
	case 0: return NDS_NC_COUNTER_INFER_COMPLETED;
	case -ETIMEDOUT: return NDS_NC_COUNTER_INFER_TIMED_OUT;
	case -EINVAL: return NDS_NC_COUNTER_INFER_INCORRECT_INPUT;
	case -EOPNOTSUPP: return NDS_NC_COUNTER_ERR_UNSUPPORTED_NEFF_VERSION;
	case -ENODEV: return NDS_NC_COUNTER_ERR_HW;
	case -EIO: break;
	default: return NDS_NC_COUNTER_GENERIC_FAIL;
	}
	if (r->status == NEURON_RUN_DONE)
		return NDS_NC_COUNTER_ERR_HW;
	return faults[r->fault];
}

/* Microseconds: @called, @started on the cores (0: it was not), @ended. */
static void count_run(const struct neuron_model *model, int ret, const struct neuron_run_result *r,
		      uint64_t called, uint64_t started, uint64_t ended)
{
	const struct neuron_device *device = model->core->device;
	unsigned int counter = status_counter(ret, r);

	for (const struct neuron_model *m = model; m; m = m->peer) {
		uint32_t nc = m->core->nc;

		if (counter)
			stats_add(device, nc, counter, 1);
		if (!started)
			continue;
		stats_add(device, nc, NDS_NC_COUNTER_INFERENCE_COUNT, 1);
		stats_add(device, nc, NDS_NC_COUNTER_TIME_IN_USE, ended - started);
		if (ret)
			continue;
		stats_add(device, nc, NDS_NC_COUNTER_MAC_COUNT, m->macs);
		stats_set(device, nc, NDS_NC_COUNTER_LATENCY_DEVICE, ended - started);
		stats_set(device, nc, NDS_NC_COUNTER_LATENCY_TOTAL, ended - called);
	}
}

/* Cores locked, tensors checked.  *@started: when its parts were, 0 they were not. */
static int run_parts(struct neuron_model *model, const struct neuron_io *io, size_t nr_io,
		     int timeout_ms, struct neuron_run_result *r, uint64_t *started)
{
	int ret = 0;

	for (struct neuron_model *m = model; m && !ret; m = m->peer)
		ret = prepare(m, io, nr_io);
	if (ret)
		return ret;
	*started = now_us();
	for (struct neuron_model *m = model; m && !ret; m = m->peer)
		ret = start(m);
	return ret ?: wait_done(model, timeout_ms, r);
}

/* What is still going on must not meet the next run. */
static void end_parts(struct neuron_model *model, int ret)
{
	for (struct neuron_model *m = model; m; m = m->peer) {
		if (m->core->profile)
			m->core->recorder->run_end(m->core->profile, ret);
		if (ret) {
			core_reset_locked(m->core);
			continue;
		}
		m->core->broken = m->dirty;
		content_keep(m);
	}
}

/* Tensors that may move stay where they are for a run; the next one binds them anew. */
static int pin_tensors(const struct neuron_device *device, const struct neuron_io *io, size_t nr_io,
		       size_t *pinned)
{
	int ret = 0;

	for (*pinned = 0; *pinned < nr_io; ++*pinned) {
		struct neuron_mem *mem = io[*pinned].mem;

		if (mem && mem->device == device)
			ret = neuron_mem_pin(mem, NULL);
		if (ret)
			break;
	}
	return ret;
}

static void unpin_tensors(const struct neuron_device *device, const struct neuron_io *io,
			  size_t pinned)
{
	for (size_t i = 0; i < pinned; i++)
		if (io[i].mem && io[i].mem->device == device)
			neuron_mem_unpin(io[i].mem);
}

/* What was offloaded comes back. */
static int enter(struct neuron_model *model, struct neuron_run_result *result)
{
	struct neuron_mem_failure why = { .reason = NEURON_MEM_REASON_NONE };
	int ret = model_enter(model, &why);

	if (ret)
		snprintf(result->text, sizeof(result->text),
			 "the model was offloaded and cannot come back: %s, device memory: %s",
			 strerror(-ret), neuron_mem_reason_name(why.reason));
	return ret;
}

NEURON_EXPORT int neuron_model_run(struct neuron_model *model, const struct neuron_io *io,
				   size_t nr_io, int timeout_ms,
				   struct neuron_run_result *result)
{
	struct neuron_run_result r = { .status = NEURON_RUN_DONE };
	const char *obstacle = neuron_model_obstacle(model);
	uint64_t called = now_us(), started = 0, ended = called;
	size_t pinned;
	int ret = 0;

	if (device_inherited(model->core->device))
		return -EACCES;
	if (obstacle && !neuron_model_pretends(model)) {
		snprintf(r.text, sizeof(r.text), "%.255s", obstacle);
		result_copy(result, &r, sizeof(r));
		count_run(model, -EOPNOTSUPP, &r, called, 0, called);
		return -EOPNOTSUPP;
	}
	ret = enter(model, &r);
	if (ret) {
		result_copy(result, &r, sizeof(r));
		count_run(model, ret, &r, called, 0, called);
		return ret;
	}
	lock_cores(model);
	ret = check_model(model, io, nr_io, &r);
	if (!ret && obstacle) {
		started = now_us();
		ret = pretend_run(model, io, nr_io, timeout_ms, &r);
		ended = now_us();
	} else if (!ret) {
		ret = pin_tensors(model->core->device, io, nr_io, &pinned) ?:
		      run_parts(model, io, nr_io, timeout_ms, &r, &started);
		ended = now_us();
		if (started)
			end_parts(model, ret);
		unpin_tensors(model->core->device, io, pinned);
	}
	count_run(model, ret, &r, called, started, ended);
	unlock_cores(model);
	model_leave(model);
	result_copy(result, &r, sizeof(r));
	return ret;
}

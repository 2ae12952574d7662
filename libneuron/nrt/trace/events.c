// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the runtime does, kept in a ring for each core and given out as JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <nrt/nrt_experimental.h>
#include <nrt/nrt_sys_trace.h>

#include "../../common/lock.h"
#include "../../common/wait.h"
#include "../base/log.h"
#include "../base/output.h"
#include "../base/process.h"
#include "events.h"

#define MAX_EVENTS (16u << 20)
#define DEFAULT_EVENTS 65536u

static const char *const type_names[] = {
	[NRT_TRACE_LOAD] = "nrt_load",
	[NRT_TRACE_UNLOAD] = "nrt_unload",
	[NRT_TRACE_EXECUTE] = "nrt_execute",
	[NRT_TRACE_TENSOR_ALLOCATE] = "nrt_tensor_allocate",
	[NRT_TRACE_TENSOR_READ] = "nrt_tensor_read",
	[NRT_TRACE_TENSOR_WRITE] = "nrt_tensor_write",
	[NRT_TRACE_TENSOR_COPY] = "nrt_tensor_copy",
};

struct event {
	uint64_t start, end;		/* ns */
	uint64_t bytes;
	uint32_t tid;
	uint16_t type;
	uint16_t status;
	char name[40];
};

/*
 * The events of a core are numbered; those from @first up to @next are kept, each in the
 * place of its number modulo @room.  The ring doubles up to the maximum; from then on the
 * oldest event is overwritten.
 */
struct event_ring {
	struct event *events;
	size_t room;
	uint64_t first, next;
	uint64_t given, end;		/* of the fetch under way: so far, and its last one */
};

struct nrt_sys_trace_config {
	uint64_t max_events;
	uint32_t types;			/* bits */
	uint8_t off[MAX_CORES / 8];
};

struct nrt_sys_trace_fetch_options {
	uint64_t max_events;
	uint64_t nc;
	bool one;
};

static const struct nrt_sys_trace_fetch_options all_events;

/* Copied at a time: few enough for the stack of any thread, and for the calls that wait. */
#define BATCH 64u

static struct {
	atomic_bool on;
	pthread_mutex_t fetch;		/* one fetch at a time; before @lock */
	pthread_mutex_t lock;		/* the rest */
	enum nrt_trace_owner owner;
	struct nrt_sys_trace_config config;
	struct event_ring *rings;
	uint32_t nr;
} trace = { .fetch = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER };

bool nrt_trace_wants(const struct nrt_sys_trace_config *config, uint32_t vnc)
{
	return vnc >= MAX_CORES || !(config->off[vnc / 8] >> vnc % 8 & 1);
}

uint64_t nrt_trace_begin(void)
{
	return atomic_load_explicit(&trace.on, memory_order_relaxed) ? now_ns() : 0;
}

/* Under the lock. Without memory the ring stays as it is, which a trace can live with. */
static void ring_grow(struct event_ring *r, size_t max)
{
	size_t room = MIN(r->room ? r->room * 2 : 64, max);
	struct event *more = reallocarray(NULL, room, sizeof(*more));

	if (!more)
		return;
	for (uint64_t i = r->first; i < r->next; i++)
		more[i % room] = r->events[i % r->room];
	free(r->events);
	r->events = more;
	r->room = room;
}

/* Under the lock; NULL: no memory at all. */
static struct event *ring_add(struct event_ring *r, size_t max)
{
	if (r->next - r->first == r->room && r->room < max)
		ring_grow(r, max);
	if (!r->room)
		return NULL;
	if (r->next - r->first == r->room)
		r->first++;
	return &r->events[r->next++ % r->room];
}

void nrt_trace_end(uint64_t began, enum nrt_trace_type type, uint32_t vnc, NRT_STATUS status,
		   uint64_t bytes, const char *name)
{
	struct event *e;
	uint64_t end;

	if (!began)
		return;
	end = now_ns();
	GUARD(&trace.lock);
	if (!trace.on || vnc >= trace.nr || !(trace.config.types >> type & 1) ||
	    !nrt_trace_wants(&trace.config, vnc))
		return;
	e = ring_add(&trace.rings[vnc], trace.config.max_events);
	if (!e)
		return;
	*e = (struct event){
		.start = began,
		.end = end,
		.bytes = bytes,
		.tid = (uint32_t)gettid(),
		.type = (uint16_t)type,
		.status = (uint16_t)status,
	};
	snprintf(e->name, sizeof(e->name), "%s", name ? name : "");
	/* JSON is UTF-8; names of tensors may be anything. */
	for (char *c = e->name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/* Under the lock. */
static void rings_free(void)
{
	for (uint32_t i = 0; i < trace.nr; i++)
		free(trace.rings[i].events);
	free(trace.rings);
	trace.rings = NULL;
	trace.nr = 0;
}

/* At nrt_close() a trace ends; what it has can still be fetched. */
void nrt_trace_close(void)
{
	GUARD(&trace.lock);
	trace.on = false;
}

/* In a child: other threads of the parent may have had the locks. */
void nrt_trace_forget(void)
{
	pthread_mutex_init(&trace.fetch, NULL);
	pthread_mutex_init(&trace.lock, NULL);
	trace.on = false;
	trace.rings = NULL;
	trace.nr = 0;
}

NRT_STATUS nrt_trace_on(enum nrt_trace_owner owner, const nrt_sys_trace_config_t *config)
{
	struct event_ring *rings;

	GUARD(&trace.lock);
	if (trace.on)
		return NRT_FAILURE;
	rings = calloc(nrt_process.nr_vncs, sizeof(*rings));
	if (!rings)
		return NRT_RESOURCE;
	rings_free();
	trace.rings = rings;
	trace.nr = nrt_process.nr_vncs;
	if (config)
		trace.config = *config;
	else
		nrt_sys_trace_config_set_defaults(&trace.config);
	trace.owner = owner;
	trace.on = true;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_trace_off(enum nrt_trace_owner owner)
{
	GUARD(&trace.lock);
	if (!trace.on || trace.owner != owner)
		return NRT_FAILURE;
	trace.on = false;
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_sys_trace_start(nrt_sys_trace_config_t *config)
{
	NRT_ENTER();
	return nrt_trace_on(NRT_TRACE_OF_PROGRAM, config);
}

NEURON_EXPORT NRT_STATUS nrt_sys_trace_stop(void)
{
	NRT_ENTER();
	return nrt_trace_off(NRT_TRACE_OF_PROGRAM);
}

/* ---- giving it out ------------------------------------------------------------------- */

/* The fetch ends with the events that there are now, so that it ends while others come. */
static void fetch_begin(const struct nrt_sys_trace_fetch_options *o)
{
	GUARD(&trace.lock);
	for (uint32_t nc = 0; nc < trace.nr; nc++) {
		struct event_ring *r = &trace.rings[nc];
		uint64_t n = o->one && o->nc != nc ? 0 : r->next - r->first;

		if (o->max_events)
			n = MIN(n, o->max_events);
		r->given = r->first;
		r->end = r->first + n;
	}
}

/*
 * Copies the next events of the fetch, all of core @nc; 0: there are no more.  A trace that
 * was started meanwhile has new rings, of which the fetch wants nothing.
 */
static size_t fetch_next(struct event *batch, uint32_t *nc)
{
	size_t n = 0;

	GUARD(&trace.lock);
	for (; *nc < trace.nr; ++*nc) {
		struct event_ring *r = &trace.rings[*nc];

		/* Calls that were traced meanwhile may have overwritten some. */
		r->given = r->given < r->first ? r->first : r->given;
		while (n < BATCH && r->given < r->end)
			batch[n++] = r->events[r->given++ % r->room];
		if (n)
			break;
	}
	return n;
}

/* What was given out leaves the rings, once it is where it belongs. */
static void fetch_end(void)
{
	GUARD(&trace.lock);
	for (uint32_t nc = 0; nc < trace.nr; nc++) {
		struct event_ring *r = &trace.rings[nc];

		if (r->first < r->given)
			r->first = r->given;
	}
}

/* False: no memory, or @f cannot be written. */
static bool put_event(FILE *f, const struct event *e, uint32_t nc)
{
	json_t *event = json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:{s:i, s:s, s:s, s:I}}",
		"name", type_names[e->type], "cat", "nrt", "ph", "X",
		"ts", (double)e->start / 1000, "dur", (double)(e->end - e->start) / 1000,
		"pid", (int)getpid(), "tid", (int)e->tid, "args", "nc", (int)nc,
		"status", nrt_get_status_as_str((NRT_STATUS)e->status), "name", e->name,
		"bytes", (json_int_t)(e->bytes < INT64_MAX ? e->bytes : INT64_MAX));
	bool good = event && !json_dumpf(event, f, JSON_COMPACT | JSON_REAL_PRECISION(17));

	json_decref(event);
	return good;
}

/* False: as of put_event(). */
static bool put_events(FILE *f, const struct nrt_sys_trace_fetch_options *o)
{
	bool good = fputs("{\"traceEvents\":[", f) >= 0;
	struct event batch[BATCH];
	const char *between = "";
	uint32_t nc = 0;
	size_t n;

	fetch_begin(o);
	while (good && (n = fetch_next(batch, &nc)))
		for (size_t i = 0; i < n && good; i++) {
			good = fputs(between, f) >= 0 && put_event(f, &batch[i], nc);
			between = ",";
		}
	return good && fputs("],\"displayTimeUnit\":\"ns\"}", f) >= 0;
}

/*
 * Closes @f.  Under the fetch lock only: calls that are traced do not wait for the text.  What is
 * not given out before fetch_end() can still be fetched.
 */
static NRT_STATUS fetch_to(FILE *f, const struct nrt_sys_trace_fetch_options *o)
{
	NRT_STATUS status = NRT_SUCCESS;

	if (!put_events(f, o))
		status = ferror(f) ? NRT_FAILURE : NRT_RESOURCE;
	return fclose(f) ? NRT_FAILURE : status;
}

NEURON_EXPORT NRT_STATUS nrt_sys_trace_fetch_events(char **buffer, size_t *written_size,
						    const nrt_sys_trace_fetch_options_t *options)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	if (!buffer)
		return NRT_INVALID;
	GUARD(&trace.fetch);
	f = open_memstream(&text, &size);
	/* Whatever fails to be written to memory has found none, also when it is closed. */
	if (!f || fetch_to(f, options ?: &all_events) != NRT_SUCCESS || !text) {
		free(text);
		return NRT_RESOURCE;
	}
	fetch_end();
	*buffer = text;
	if (written_size)
		*written_size = size;
	return NRT_SUCCESS;
}

NEURON_EXPORT void nrt_sys_trace_buffer_free(char *buffer)
{
	free(buffer);
}

NEURON_EXPORT NRT_STATUS nrt_trace_start(bool trace_mem)
{
	nrt_sys_trace_config_t config;

	nrt_sys_trace_config_set_defaults(&config);
	if (!trace_mem)
		config.types &= ~(1u << NRT_TRACE_TENSOR_ALLOCATE);
	return nrt_sys_trace_start(&config);
}

NEURON_EXPORT NRT_STATUS nrt_trace_stop(const char *filename)
{
	NRT_STATUS status;

	if (!filename)
		return NRT_INVALID;
	status = nrt_sys_trace_stop();
	return status == NRT_SUCCESS ? nrt_trace_write(nrt_open_named(filename), filename) : status;
}

NRT_STATUS nrt_trace_write(int fd, const char *name)
{
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	NRT_STATUS status = NRT_FAILURE;

	GUARD(&trace.fetch);
	if (f)
		status = fetch_to(f, &all_events);
	else if (fd < 0)
		errno = -fd;
	else
		close(fd);
	if (status == NRT_SUCCESS)
		fetch_end();
	else
		LOG(NRT, ERROR, "cannot write %s: %m", name);
	return status;
}

/* ---- configuration ------------------------------------------------------------------- */

NEURON_EXPORT NRT_STATUS nrt_sys_trace_config_allocate(nrt_sys_trace_config_t **config)
{
	if (!config)
		return NRT_INVALID;
	*config = malloc(sizeof(**config));
	if (!*config)
		return NRT_RESOURCE;
	nrt_sys_trace_config_set_defaults(*config);
	return NRT_SUCCESS;
}

NEURON_EXPORT void nrt_sys_trace_config_set_defaults(nrt_sys_trace_config_t *config)
{
	if (config)
		*config = (struct nrt_sys_trace_config){
			.max_events = DEFAULT_EVENTS,
			.types = (1u << NRT_TRACE_NR_TYPES) - 1,
		};
}

NEURON_EXPORT void nrt_sys_trace_config_free(nrt_sys_trace_config_t *config)
{
	free(config);
}

NEURON_EXPORT void nrt_sys_trace_config_set_max_events_per_nc(nrt_sys_trace_config_t *config,
							      uint64_t max_events_per_nc)
{
	if (config && max_events_per_nc)
		config->max_events = max_events_per_nc < MAX_EVENTS ? max_events_per_nc : MAX_EVENTS;
}

NEURON_EXPORT void nrt_sys_trace_config_set_capture_enabled_for_nc(nrt_sys_trace_config_t *config,
								   uint32_t nc_idx, bool enabled)
{
	if (!config || nc_idx >= MAX_CORES)
		return;
	if (enabled)
		config->off[nc_idx / 8] &= (uint8_t)~(1u << nc_idx % 8);
	else
		config->off[nc_idx / 8] |= (uint8_t)(1u << nc_idx % 8);
}

NEURON_EXPORT NRT_STATUS
nrt_sys_trace_config_set_capture_enabled_for_event_type(nrt_sys_trace_config_t *config,
							const char *event_type, bool enabled)
{
	for (uint32_t i = 0; config && event_type && i < NRT_TRACE_NR_TYPES; i++)
		if (!strcmp(event_type, type_names[i])) {
			if (enabled)
				config->types |= 1u << i;
			else
				config->types &= ~(1u << i);
			return NRT_SUCCESS;
		}
	return NRT_INVALID;
}

NRT_STATUS nrt_names_list(const char *const *names, unsigned int nr, uint32_t bits,
			  const char ***list, size_t *count)
{
	const char **all;
	size_t n = 0;

	if (!list || !count)
		return NRT_INVALID;
	all = calloc(nr + 1, sizeof(*all));
	if (!all)
		return NRT_RESOURCE;
	for (unsigned int i = 0; i < nr; i++)
		if (bits >> i & 1)
			all[n++] = names[i];
	*list = all;
	*count = n;
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_sys_trace_get_event_types(const char ***event_types, size_t *count)
{
	return nrt_names_list(type_names, NRT_TRACE_NR_TYPES, UINT32_MAX, event_types, count);
}

/* The names themselves are the library's. */
NEURON_EXPORT void nrt_sys_trace_free_event_types(const char **event_types, size_t count)
{
	(void)count;
	free(event_types);
}

NEURON_EXPORT NRT_STATUS
nrt_sys_trace_config_get_enabled_event_types(const nrt_sys_trace_config_t *config,
					     const char ***event_types, size_t *count)
{
	return config ? nrt_names_list(type_names, NRT_TRACE_NR_TYPES, config->types, event_types,
				       count) : NRT_INVALID;
}

NEURON_EXPORT NRT_STATUS
nrt_sys_trace_fetch_options_allocate(nrt_sys_trace_fetch_options_t **options)
{
	if (!options)
		return NRT_INVALID;
	*options = calloc(1, sizeof(**options));
	return *options ? NRT_SUCCESS : NRT_RESOURCE;
}

NEURON_EXPORT void nrt_sys_trace_fetch_options_set_defaults(nrt_sys_trace_fetch_options_t *options)
{
	if (options)
		memset(options, 0, sizeof(*options));
}

NEURON_EXPORT void nrt_sys_trace_fetch_options_free(nrt_sys_trace_fetch_options_t *options)
{
	free(options);
}

NEURON_EXPORT void
nrt_sys_trace_fetch_options_set_max_events_per_nc(nrt_sys_trace_fetch_options_t *options,
						  uint64_t max_events_per_nc)
{
	if (options)
		options->max_events = max_events_per_nc;
}

NEURON_EXPORT void nrt_sys_trace_fetch_options_set_nc_idx(nrt_sys_trace_fetch_options_t *options,
							  uint64_t nc_idx)
{
	if (options) {
		options->nc = nc_idx;
		options->one = true;
	}
}

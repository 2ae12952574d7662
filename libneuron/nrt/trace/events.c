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

/* Grows by doubling up to the maximum, then wraps. */
struct event_ring {
	struct event *events;
	size_t room;
	size_t first;
	size_t nr;
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

static struct {
	atomic_bool on;
	pthread_mutex_t lock;		/* the rest */
	struct nrt_sys_trace_config config;
	struct event_ring *rings;
	uint32_t nr;
} trace = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool nrt_trace_wants(const struct nrt_sys_trace_config *config, uint32_t vnc)
{
	return vnc >= MAX_CORES || !(config->off[vnc / 8] >> vnc % 8 & 1);
}

uint64_t nrt_trace_begin(void)
{
	return atomic_load_explicit(&trace.on, memory_order_relaxed) ? now_ns() : 0;
}

/* Under the lock; NULL: no memory, which a trace can live with. */
static struct event *ring_add(struct event_ring *r, size_t max)
{
	if (r->nr == r->room && r->room < max) {
		size_t room = MIN(r->room ? r->room * 2 : 64, max);
		struct event *more = reallocarray(NULL, room, sizeof(*more));

		for (size_t i = 0; more && i < r->nr; i++)
			more[i] = r->events[(r->first + i) % r->room];
		if (more) {
			free(r->events);
			*r = (struct event_ring){ .events = more, .room = room, .nr = r->nr };
		}
	}
	if (!r->room)
		return NULL;
	if (r->nr == r->room) {
		r->first = (r->first + 1) % r->room;
		r->nr--;
	}
	return &r->events[(r->first + r->nr++) % r->room];
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

/* In a child: another thread of the parent may have had the lock. */
void nrt_trace_forget(void)
{
	pthread_mutex_init(&trace.lock, NULL);
	trace.on = false;
	trace.rings = NULL;
	trace.nr = 0;
}

NRT_STATUS nrt_trace_on(const nrt_sys_trace_config_t *config)
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
	trace.on = true;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_trace_off(void)
{
	NRT_STATUS status;

	GUARD(&trace.lock);
	status = trace.on ? NRT_SUCCESS : NRT_FAILURE;
	trace.on = false;
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_sys_trace_start(nrt_sys_trace_config_t *config)
{
	NRT_ENTER();
	return nrt_trace_on(config);
}

NEURON_EXPORT NRT_STATUS nrt_sys_trace_stop(void)
{
	NRT_ENTER();
	return nrt_trace_off();
}

/* ---- giving it out ------------------------------------------------------------------- */

static int add_event(json_t *list, const struct event *e, uint32_t nc)
{
	json_t *args = json_pack("{s:i, s:s, s:s%, s:I}", "nc", (int)nc, "status",
				 nrt_get_status_as_str((NRT_STATUS)e->status), "name", e->name,
				 strlen(e->name), "bytes", (json_int_t)(e->bytes < INT64_MAX ? e->bytes : INT64_MAX));

	if (!args)
		return -1;
	return json_array_append_new(list,
		json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:o}", "name", type_names[e->type],
			  "cat", "nrt", "ph", "X", "ts", (double)e->start / 1000, "dur",
			  (double)(e->end - e->start) / 1000, "pid", (int)getpid(), "tid",
			  (int)e->tid, "args", args));
}

/* How many events of a core are to be given out. */
static size_t wanted(const struct nrt_sys_trace_fetch_options *o, uint32_t nc)
{
	size_t nr = trace.rings[nc].nr;

	return o->one && o->nc != nc ? 0 : o->max_events ? MIN(nr, o->max_events) : nr;
}

/* Under the lock: events leave their ring only if all of it worked. */
static json_t *collect(const struct nrt_sys_trace_fetch_options *o)
{
	json_t *list = json_array();
	bool ok = list;

	for (uint32_t nc = 0; nc < trace.nr && ok; nc++) {
		const struct event_ring *r = &trace.rings[nc];

		for (size_t i = 0; i < wanted(o, nc) && ok; i++)
			ok = !add_event(list, &r->events[(r->first + i) % r->room], nc);
	}
	if (ok)
		return list;
	json_decref(list);
	return NULL;
}

static void drop(const struct nrt_sys_trace_fetch_options *o)
{
	for (uint32_t nc = 0; nc < trace.nr; nc++) {
		struct event_ring *r = &trace.rings[nc];
		size_t n = wanted(o, nc);

		if (!n)
			continue;
		r->first = (r->first + n) % r->room;
		r->nr -= n;
	}
}

NEURON_EXPORT NRT_STATUS nrt_sys_trace_fetch_events(char **buffer, size_t *written_size,
						    const nrt_sys_trace_fetch_options_t *options)
{
	struct nrt_sys_trace_fetch_options o = { 0 };
	char *text = NULL;
	json_t *list, *root;

	if (!buffer)
		return NRT_INVALID;
	if (options)
		o = *options;
	pthread_mutex_lock(&trace.lock);
	list = collect(&o);
	root = json_pack("{s:o*, s:s}", "traceEvents", list, "displayTimeUnit", "ns");
	if (list && root)
		text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
	if (text)
		drop(&o);
	pthread_mutex_unlock(&trace.lock);
	json_decref(root);
	if (!text)
		return NRT_RESOURCE;
	*buffer = text;
	if (written_size)
		*written_size = strlen(text);
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
	char *text = NULL;
	NRT_STATUS status = f ? nrt_sys_trace_fetch_events(&text, NULL, NULL) : NRT_FAILURE;

	if (fd < 0)
		errno = -fd;
	else if (!f)
		close(fd);
	if (text && fputs(text, f) < 0)
		status = NRT_FAILURE;
	if (f && fclose(f))
		status = NRT_FAILURE;
	if (status != NRT_SUCCESS)
		LOG(NRT, ERROR, "cannot write %s: %m", name);
	free(text);
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

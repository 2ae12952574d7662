// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Inspection: system and device profiles, memory and processor time of the process, all
 * at once and into one directory.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <nrt/nrt_profile.h>
#include <nrt/nrt_sys_trace.h>

#include "../../common/env.h"
#include "../../common/lock.h"
#include "../../common/thread.h"
#include "../../common/wait.h"
#include "../base/env.h"
#include "../base/log.h"
#include "../base/output.h"
#include "../trace/events.h"
#include "profile.h"

#define SAMPLE_NS 100000000u
#define MAX_SAMPLES 65536u	/* almost two hours */

enum activity {
	SYSTEM_PROFILE,
	DEVICE_PROFILE,
	HOST_MEMORY,
	CPU_UTIL,
	NR_ACTIVITIES,
};

static const char *const activity_names[NR_ACTIVITIES] = {
	"system_profile", "device_profile", "host_memory", "cpu_util",
};

struct nrt_inspect_config {
	int session;
	char *dir;
	nrt_sys_trace_config_t *trace;
	uint32_t activities;		/* bits */
	bool enable;
	bool on_fail;
};

struct sample {
	uint64_t when;			/* ns of CLOCK_MONOTONIC */
	uint64_t rss;			/* bytes */
	double cpu;			/* percent of one processor since the last one */
};

/* A thread that looks at the process from time to time. */
struct sampler {
	pthread_t thread;
	bool runs;
	pthread_mutex_t lock;		/* the rest */
	pthread_cond_t wake;
	bool stop;
	struct sample *samples;
	size_t nr;
};

static struct {
	pthread_mutex_t lock;
	bool on;
	nrt_inspect_config_t config;	/* of what is on; @trace is not kept */
	bool system;
	struct neuron_profile **cores;	/* by vnc */
	atomic_bool failed;
	struct sampler sampler;
} inspect = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.sampler = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER },
};

static bool wanted(const nrt_inspect_config_t *c, enum activity a)
{
	return c->activities >> a & 1;
}

/* ---- configuration ------------------------------------------------------------------- */

static void clear(nrt_inspect_config_t *c)
{
	nrt_sys_trace_config_free(c->trace);
	free(c->dir);
	memset(c, 0, sizeof(*c));
}

static NRT_STATUS set_defaults(nrt_inspect_config_t *c)
{
	*c = (struct nrt_inspect_config){
		.session = 1,
		.activities = 1u << SYSTEM_PROFILE | 1u << DEVICE_PROFILE,
		.enable = true,
		.dir = strdup(NRT_OUTPUT_DIR),
	};
	if (!c->dir || nrt_sys_trace_config_allocate(&c->trace) != NRT_SUCCESS) {
		clear(c);
		return NRT_RESOURCE;
	}
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_inspect_config_allocate(nrt_inspect_config_t **config)
{
	nrt_inspect_config_t *c;
	NRT_STATUS status;

	if (!config)
		return NRT_INVALID;
	c = malloc(sizeof(*c));
	if (!c)
		return NRT_RESOURCE;
	status = set_defaults(c);
	if (status == NRT_SUCCESS)
		*config = c;
	else
		free(c);
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_inspect_config_free(nrt_inspect_config_t *config)
{
	if (!config)
		return NRT_INVALID;
	clear(config);
	free(config);
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_inspect_config_set_defaults(nrt_inspect_config_t *config)
{
	nrt_inspect_config_t fresh;
	NRT_STATUS status = config ? set_defaults(&fresh) : NRT_INVALID;

	if (status != NRT_SUCCESS)
		return status;
	clear(config);
	*config = fresh;
	return NRT_SUCCESS;
}

/* A function that sets a member to whatever it is given. */
#define SETTER(name, type, member) \
	NEURON_EXPORT NRT_STATUS name(nrt_inspect_config_t *config, type value) \
	{ \
		if (config) \
			config->member = value; \
		return config ? NRT_SUCCESS : NRT_INVALID; \
	}

SETTER(nrt_inspect_config_set_session_id, int, session)
SETTER(nrt_inspect_config_set_enable_inspect, bool, enable)
SETTER(nrt_inspect_config_set_enable_inspect_on_fail, bool, on_fail)

NEURON_EXPORT NRT_STATUS nrt_inspect_config_set_output_dir(nrt_inspect_config_t *config,
							   const char *output_dir)
{
	if (!config || !output_dir || !*output_dir)
		return NRT_INVALID;
	return nrt_text_replace(&config->dir, output_dir) ? NRT_SUCCESS : NRT_RESOURCE;
}

NEURON_EXPORT NRT_STATUS
nrt_inspect_config_set_sys_trace_max_events_per_nc(nrt_inspect_config_t *config,
						   uint64_t max_events_per_nc)
{
	if (!config || !max_events_per_nc)
		return NRT_INVALID;
	nrt_sys_trace_config_set_max_events_per_nc(config->trace, max_events_per_nc);
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_inspect_config_set_capture_enabled_for_nc(nrt_inspect_config_t *config,
								       uint32_t nc_idx, bool enabled)
{
	if (!config || nc_idx >= MAX_CORES)
		return NRT_INVALID;
	nrt_sys_trace_config_set_capture_enabled_for_nc(config->trace, nc_idx, enabled);
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS
nrt_inspect_config_set_capture_enabled_for_event_type_string(nrt_inspect_config_t *config,
							     const char *event_type, bool enabled)
{
	return config ? nrt_sys_trace_config_set_capture_enabled_for_event_type(config->trace,
										event_type,
										enabled) :
			NRT_INVALID;
}

NEURON_EXPORT NRT_STATUS nrt_inspect_config_set_activity(nrt_inspect_config_t *config,
							 const char *activity, bool enabled)
{
	uint32_t bits = 0;

	if (!config || !activity)
		return NRT_INVALID;
	for (unsigned int i = 0; i < NR_ACTIVITIES; i++)
		if (!strcmp(activity, activity_names[i]) || !strcmp(activity, "all"))
			bits |= 1u << i;
	if (!bits)
		return NRT_INVALID;
	if (enabled)
		config->activities |= bits;
	else
		config->activities &= ~bits;
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_inspect_config_get_all_activity_types(const char ***activity_types,
								   size_t *count)
{
	return nrt_names_list(activity_names, NR_ACTIVITIES, UINT32_MAX, activity_types, count);
}

NEURON_EXPORT NRT_STATUS nrt_inspect_config_get_enabled_activity_types(nrt_inspect_config_t *config,
								       const char ***activity_types,
								       size_t *count)
{
	return config ? nrt_names_list(activity_names, NR_ACTIVITIES, config->activities,
				       activity_types, count) : NRT_INVALID;
}

/* The names themselves are the library's. */
NEURON_EXPORT void nrt_inspect_config_free_activity_types(const char **activity_types, size_t count)
{
	(void)count;
	free(activity_types);
}

/* ---- environment --------------------------------------------------------------------- */

static bool read_activity(nrt_inspect_config_t *c, const char *name, enum activity a)
{
	bool on = wanted(c, a);

	return nrt_env_flag(name, &on) &&
	       nrt_inspect_config_set_activity(c, activity_names[a], on) == NRT_SUCCESS;
}

/* "0,2-3": only these. */
static bool read_cores(nrt_inspect_config_t *c, const char *text)
{
	unsigned long first, last;

	for (uint32_t nc = 0; nc < MAX_CORES; nc++)
		nrt_inspect_config_set_capture_enabled_for_nc(c, nc, false);
	while (text) {
		if (!nrt_env_range(&text, MAX_CORES - 1, &first, &last))
			return false;
		for (; first <= last; first++)
			nrt_inspect_config_set_capture_enabled_for_nc(c, (uint32_t)first, true);
	}
	return true;
}

/* "nrt_load,nrt_execute": only these. */
static bool read_types(nrt_inspect_config_t *c, const char *text)
{
	char *copy = strdup(text), *state = NULL;
	const char **all;
	bool good = copy;
	size_t n;

	if (good && nrt_sys_trace_get_event_types(&all, &n) == NRT_SUCCESS) {
		for (size_t i = 0; i < n; i++)
			nrt_inspect_config_set_capture_enabled_for_event_type_string(c, all[i],
										     false);
		nrt_sys_trace_free_event_types(all, n);
	}
	for (char *t = good ? strtok_r(copy, ",", &state) : NULL; t && good;
	     t = strtok_r(NULL, ",", &state))
		good = nrt_inspect_config_set_capture_enabled_for_event_type_string(c, t, true) ==
		       NRT_SUCCESS;
	free(copy);
	return good;
}

static bool refused(const char *name, const char *what)
{
	LOG_AS(NRT, ERROR, "nrt_inspect_begin", "%s=%s is not %s", name, getenv(name), what);
	return false;
}

static bool read_environment(nrt_inspect_config_t *c)
{
	static const char dir[] = "NEURON_RT_INSPECT_OUTPUT_DIR";
	static const char cores[] = "NEURON_RT_INSPECT_EVENT_FILTER_NC";
	static const char types[] = "NEURON_RT_INSPECT_EVENT_FILTER_TYPE";
	static const char events[] = "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC";
	unsigned long n = 0;

	if (!read_activity(c, "NEURON_RT_INSPECT_SYSTEM_PROFILE", SYSTEM_PROFILE) ||
	    !read_activity(c, "NEURON_RT_INSPECT_DEVICE_PROFILE", DEVICE_PROFILE) ||
	    !read_activity(c, "NEURON_RT_INSPECT_HOST_MEMORY", HOST_MEMORY) ||
	    !read_activity(c, "NEURON_RT_INSPECT_CPU_UTIL", CPU_UTIL) ||
	    !nrt_env_flag("NEURON_RT_INSPECT_ON_FAIL", &c->on_fail))
		return false;
	if (env_text(dir) && nrt_inspect_config_set_output_dir(c, env_text(dir)) != NRT_SUCCESS)
		return false;
	if (env_text(cores) && !read_cores(c, env_text(cores)))
		return refused(cores, "a list of cores");
	if (env_text(types) && !read_types(c, env_text(types)))
		return refused(types, "a list of event types");
	if (!nrt_env_value(events, 1, ULONG_MAX, "a number from 1", &n))
		return false;
	if (n)
		nrt_inspect_config_set_sys_trace_max_events_per_nc(c, n);
	return true;
}

/* ---- memory and processor time --------------------------------------------------------- */

static uint64_t resident(void)
{
	unsigned long long pages = 0;
	char text[128];

	read_short("/proc/self/statm", text, sizeof(text));
	sscanf(text, "%*u %llu", &pages);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void *sample(void *arg)
{
	uint64_t now = now_ns(), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t next = now;
	struct sampler *s = arg;

	GUARD(&s->lock);
	while (!s->stop && s->nr < MAX_SAMPLES) {
		struct sample *one = &s->samples[s->nr++];
		uint64_t before = now, used = cpu;
		struct timespec until;

		now = now_ns();
		cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		*one = (struct sample){
			.when = now,
			.rss = resident(),
			.cpu = now > before ? 100.0 * (double)(cpu - used) / (double)(now - before) : 0,
		};
		next += SAMPLE_NS;
		until.tv_sec = (time_t)(next / 1000000000);
		until.tv_nsec = (long)(next % 1000000000);
		while (!s->stop && !pthread_cond_clockwait(&s->wake, &s->lock, CLOCK_MONOTONIC,
							      &until))
			;
	}
	return NULL;
}

static NRT_STATUS sampler_start(struct sampler *s)
{
	s->samples = calloc(MAX_SAMPLES, sizeof(*s->samples));
	if (!s->samples)
		return NRT_RESOURCE;
	s->nr = 0;
	s->stop = false;
	s->runs = !thread_start(&s->thread, sample, s);
	return s->runs ? NRT_SUCCESS : NRT_RESOURCE;
}

static void sampler_stop(struct sampler *s)
{
	if (!s->runs)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	s->runs = false;
}

static json_t *counter(const struct sample *s, const char *name, const char *cat, json_t *value)
{
	return json_pack("{s:s, s:s, s:s, s:f, s:i, s:i, s:{s:o}}", "name", name, "cat", cat, "ph",
			 "C", "ts", (double)s->when / 1000, "pid", (int)getpid(), "tid", 0, "args",
			 "value", value);
}

static NRT_STATUS write_samples(int fd, const char *name)
{
	const nrt_inspect_config_t *c = &inspect.config;
	const struct sampler *s = &inspect.sampler;
	json_t *list = json_array(), *root;
	int bad = !list || fd < 0;

	for (size_t i = 0; i < s->nr && !bad; i++) {
		if (wanted(c, HOST_MEMORY))
			bad = json_array_append_new(list, counter(&s->samples[i], "resident bytes",
						    "host_memory",
						    json_integer((json_int_t)s->samples[i].rss)));
		if (wanted(c, CPU_UTIL) && !bad)
			bad = json_array_append_new(list, counter(&s->samples[i], "processor percent",
						    "cpu_util", json_real(s->samples[i].cpu)));
	}
	root = json_pack("{s:s, s:o}", "displayTimeUnit", "ns", "traceEvents", list);
	if (!bad && root)
		bad = json_dumpfd(root, fd, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(root);
	if (fd >= 0 && close(fd))
		bad = 1;
	if (!bad && root)
		return NRT_SUCCESS;
	LOG(NRT, ERROR, "cannot write %s", name);
	return NRT_FAILURE;
}

/* ---- recording ----------------------------------------------------------------------- */

/* Under the lock: end it, and keep nothing. */
static void forget(void)
{
	if (inspect.system)
		nrt_trace_off(NRT_TRACE_OF_INSPECTION);
	inspect.system = false;
	for (uint32_t i = 0; inspect.cores && i < nrt_process.nr_vncs; i++)
		neuron_profile_close(inspect.cores[i]);
	free(inspect.cores);
	inspect.cores = NULL;
	sampler_stop(&inspect.sampler);
	free(inspect.sampler.samples);
	inspect.sampler.samples = NULL;
	clear(&inspect.config);
	inspect.on = false;
}

static NRT_STATUS start_cores(const nrt_inspect_config_t *c)
{
	NRT_STATUS status = NRT_SUCCESS;

	inspect.cores = calloc(nrt_process.nr_vncs, sizeof(struct neuron_profile *));
	if (!inspect.cores)
		return NRT_RESOURCE;
	for (uint32_t i = 0; i < nrt_process.nr_vncs && status == NRT_SUCCESS; i++)
		if (nrt_trace_wants(c->trace, i))
			/* Waiting for a failure can take long: keep what led to it. */
			status = nrt_core_profile_start(&nrt_process.vncs[i], NULL, !c->enable,
							&inspect.cores[i]);
	return status;
}

/* Under the life lock. */
static NRT_STATUS begin(const nrt_inspect_config_t *c)
{
	NRT_STATUS status = NRT_SUCCESS;

	GUARD(&inspect.lock);
	if (inspect.on) {
		LOG_AS(NRT, ERROR, "nrt_inspect_begin", "it is on already");
		return NRT_FAILURE;
	}
	inspect.on = true;
	inspect.failed = false;
	inspect.config = *c;
	inspect.config.trace = NULL;
	inspect.config.dir = strdup(c->dir);
	if (!inspect.config.dir)
		status = NRT_RESOURCE;
	if (c->enable || c->on_fail) {
		if (wanted(c, SYSTEM_PROFILE) && status == NRT_SUCCESS) {
			status = nrt_trace_on(NRT_TRACE_OF_INSPECTION, c->trace);
			inspect.system = status == NRT_SUCCESS;
		}
		if (wanted(c, DEVICE_PROFILE) && status == NRT_SUCCESS)
			status = start_cores(c);
		if ((wanted(c, HOST_MEMORY) || wanted(c, CPU_UTIL)) && status == NRT_SUCCESS)
			status = sampler_start(&inspect.sampler);
	}
	if (status != NRT_SUCCESS)
		forget();
	return status;
}

static NRT_STATUS write_files(void)
{
	const nrt_inspect_config_t *c = &inspect.config;
	NRT_STATUS status = NRT_SUCCESS, one;
	char path[PATH_MAX], name[64];
	int dir = -ENAMETOOLONG;

	if (snprintf(path, sizeof(path), "%s/session_%d_pid_%d", c->dir, c->session,
		     (int)getpid()) < (int)sizeof(path))
		dir = nrt_make_dir(c->dir);
	if (!dir)
		dir = nrt_open_session(path);
	if (dir < 0) {
		LOG(NRT, ERROR, "%s: %s", path, strerror(-dir));
		return NRT_FAILURE;
	}
	if (inspect.system)
		status = nrt_trace_write(nrt_open_output(dir, "system.json"), "system.json");
	for (uint32_t i = 0; inspect.cores && i < nrt_process.nr_vncs; i++) {
		const struct nrt_vnc *v = &nrt_process.vncs[i];

		if (!inspect.cores[i])
			continue;
		snprintf(name, sizeof(name), "nd_%u_nc_%u.json", neuron_device_index(v->device),
			 v->index);
		one = nrt_core_profile_write(inspect.cores[i], nrt_open_output(dir, name), name);
		status = status ?: one;
	}
	if (inspect.sampler.samples) {
		one = write_samples(nrt_open_output(dir, "host.json"), "host.json");
		status = status ?: one;
	}
	close(dir);
	return status;
}

/* Under the life lock. */
static NRT_STATUS end(void)
{
	const nrt_inspect_config_t *c = &inspect.config;
	NRT_STATUS status = NRT_SUCCESS;

	GUARD(&inspect.lock);
	if (!inspect.on)
		return NRT_FAILURE;
	sampler_stop(&inspect.sampler);
	/* While the trace is on, no other can take the place of its events. */
	if (c->enable || (c->on_fail && inspect.failed))
		status = write_files();
	forget();
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_inspect_begin_with_options(nrt_inspect_config_t *config)
{
	nrt_inspect_config_t defaults = { .session = 0 };
	NRT_STATUS status = NRT_SUCCESS;

	NRT_ENTER();
	if (!config)
		status = set_defaults(&defaults);
	if (status == NRT_SUCCESS)
		status = begin(config ? config : &defaults);
	clear(&defaults);
	return status;
}

/* @enable: record whatever happens. */
static NRT_STATUS begin_as_environment(bool enable)
{
	nrt_inspect_config_t c = { .session = 0 };
	NRT_STATUS status = set_defaults(&c);

	if (status == NRT_SUCCESS && !read_environment(&c))
		status = NRT_INVALID;
	c.enable = enable;
	if (status == NRT_SUCCESS)
		status = begin(&c);
	clear(&c);
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_inspect_begin(void)
{
	bool enable = false, on_fail = false;

	NRT_ENTER();
	if (!nrt_env_flag("NEURON_RT_INSPECT_ENABLE", &enable) ||
	    !nrt_env_flag("NEURON_RT_INSPECT_ON_FAIL", &on_fail))
		return NRT_INVALID;
	return begin_as_environment(!on_fail || enable);
}

NEURON_EXPORT NRT_STATUS nrt_inspect_stop(void)
{
	NRT_ENTER();
	return end();
}

/* ---- process ------------------------------------------------------------------------- */

void nrt_inspect_init(void)
{
	bool enable = false, on_fail = false;
	NRT_STATUS status;

	nrt_env_flag("NEURON_RT_INSPECT_ENABLE", &enable);
	nrt_env_flag("NEURON_RT_INSPECT_ON_FAIL", &on_fail);
	if ((!enable && !on_fail) || nrt_enter() != NRT_SUCCESS)
		return;
	status = begin_as_environment(enable);
	/* The program is not to fail for it. */
	if (status != NRT_SUCCESS)
		LOG_AS(NRT, ERROR, "nrt_init", "no inspection: %s", nrt_get_status_as_str(status));
	nrt_leave();
}

void nrt_inspect_failure(void)
{
	inspect.failed = true;
}

void nrt_inspect_close(void)
{
	end();
}

void nrt_inspect_forget(void)
{
	pthread_mutex_init(&inspect.lock, NULL);
	inspect.on = false;
	inspect.system = false;
	inspect.cores = NULL;
	memset(&inspect.config, 0, sizeof(inspect.config));
	inspect.sampler = (struct sampler){
		.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER,
	};
}

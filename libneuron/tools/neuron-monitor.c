// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * neuron-monitor: what Neuron devices, their processes and the host do, for other programs:
 * a JSON object now and again, or metrics for Prometheus as a file or over HTTP.
 *
 * It reads what neuron-top reads.  A group of metrics has its own period and its own open
 * files, so that rates are those of its period, and only files that are due are read.
 */
#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <error.h>
#include <regex.h>

#include <neuron/neuron.h>

#include "host.h"
#include "http.h"
#include "options.h"
#include "prometheus.h"
#include "watch.h"

#define PERIOD 5.0
#define PORT "9649"
#define PAGE_SECONDS 0.5	/* that a page answers requests */
#define SLACK 1e-3		/* seconds too early are in time */

/* Those of a process come first. */
enum { CORES, EXECUTIONS, MEMORY, PROCESS_CPU, NR_OF_PROCESS,
       ECC = NR_OF_PROCESS, HOST_CPU, HOST_MEMORY, NR_KINDS };
static const struct {
	const char *name;
	unsigned int wanted;
} kinds[NR_KINDS] = {
	[CORES] = { "neuroncore_counters", READ_USE },
	[EXECUTIONS] = { "execution_stats", READ_ERRORS },
	[MEMORY] = { "memory_used", READ_MEMORY },
	[PROCESS_CPU] = { "neuron_runtime_vcpu_usage", 0 },
	[ECC] = { "neuron_hw_counters", READ_ECC },
	[HOST_CPU] = { "vcpu_usage", 0 },
	[HOST_MEMORY] = { "memory_info", 0 },
};

/* A kind of metrics with a period, for all who want it with that. */
struct group {
	unsigned int kind;
	double period, next;		/* seconds; when it is due */
	double time, measured;		/* when it was read, and since when */
	bool due;
	struct devices devices;
	struct cpus before, cpus;
	struct process_use *uses, *uses_before;
	size_t nr_uses, nr_uses_before;
};

/* An element of neuron_runtimes in the configuration. */
struct filter {
	bool any;
	regex_t tag;
	struct group *group[NR_OF_PROCESS];
};

/* A process that uses devices. */
struct runtime {
	int pid;
	char tag[256];
	const struct filter *filter;	/* NULL: it is not watched */
};

static struct {
	const char *config;
	char *textfile;
	const char *address;		/* NULL: no HTTP */
	bool json;
	double period;			/* 0: as configured */
	unsigned long count;		/* 0: for ever */
} options;

static struct {
	struct watch watch;
	double tagged;			/* the scan that runtimes are of */
	struct group **groups;
	size_t nr_groups, max_groups;
	struct filter *filters;
	size_t nr_filters;
	struct group *system[NR_KINDS];
	struct runtime *runtimes;
	size_t nr_runtimes;
	struct http http;
	char *page;			/* for Prometheus */
	size_t page_size;
	double page_time;		/* when it was made, 0 never */
} monitor;

/* ---- options and configuration ------------------------------------------------------- */

TOOL_VERSION("neuron-monitor");

static const struct argp_option argp_options[] = {
	{ "config-file", 'c', "FILE", 0, "Which metrics of which processes, how often", 0 },
	{ "period", 'p', "TIME", 0, "Between two reports, such as 500ms, 10s, 1m; 5s by default", 0 },
	{ "iterations", 'n', "COUNT", 0, "End after so many objects, or files", 0 },
	{ "json", 'j', NULL, 0, "Print JSON beside what follows; alone, it is the default", 0 },
	{ "textfile", 't', "FILE", 0, "Write metrics for node_exporter", 0 },
	{ "listen", 'l', "[ADDRESS:]PORT", OPTION_ARG_OPTIONAL,
	  "Answer Prometheus over HTTP; at " HTTP_ADDRESS ":" PORT " by default", 0 },
	{ 0 },
};

/* Seconds, or 0 if it is no time. */
static double parse_period(const char *text)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = { { "ms", 1e-3 }, { "s", 1 }, { "m", 60 }, { "h", 3600 } };
	double n;
	char *end;

	if (*text < '0' || *text > '9')
		return 0;
	n = strtod(text, &end);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(end, units[i].name) && n * units[i].seconds >= 0.1 &&
		    n * units[i].seconds <= 86400)
			return n * units[i].seconds;
	return 0;
}

#define PERIOD_HELP "is not a time from 100ms to 24h, such as 5s"

/* It stays where it was when the program changes its directory. */
static char *absolute(const char *path)
{
	char *here = *path == '/' ? strdup("") : getcwd(NULL, 0), *out = realpath(path, NULL);

	if (out) {
		free(here);
		return out;
	}
	if (!here || asprintf(&out, "%s%s%s", here, *path == '/' ? "" : "/", path) < 0)
		error(1, errno, "%s", path);
	free(here);
	return out;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'c': options.config = arg; return 0;
	case 'p':
		options.period = parse_period(arg);
		if (!options.period)
			argp_error(state, "%s " PERIOD_HELP, arg);
		return 0;
	case 'n': options.count = number(arg, 1, 1000000000, state); return 0;
	case 'j': options.json = true; return 0;
	case 't': options.textfile = absolute(arg); return 0;
	case 'l': options.address = arg ? arg : PORT; return 0;
	case ARGP_KEY_END:
		options.json |= !options.textfile && !options.address;
		if (options.count && !options.json && !options.textfile)
			argp_error(state, "--iterations counts objects or files; there are none");
		if (options.config && !options.json)
			argp_error(state, "--config-file is about JSON; add --json");
		return 0;
	default: return nothing_follows(key, arg, state);
	}
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.doc = "Report what Neuron devices do, for other programs: as JSON, or for Prometheus.",
};

/* The program has no use for a configuration that it does not understand. */
static void __attribute__((noreturn, format(printf, 1, 2))) bad_config(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: %s: ", program_invocation_short_name, options.config);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

/* @keys: those that it may have, NULL at the end. */
static void check_object(json_t *o, const char *where, const char *const *keys)
{
	const char *key;
	json_t *v;
	size_t i;

	if (!json_is_object(o))
		bad_config("%s is no object", where);
	json_object_foreach(o, key, v) {
		for (i = 0; keys[i] && strcmp(keys[i], key); i++)
			;
		if (!keys[i])
			bad_config("%s has an unknown key \"%s\"", where, key);
	}
}

/* NULL: there is none. */
static const char *config_text(json_t *o, const char *where, const char *key)
{
	json_t *v = json_object_get(o, key);

	if (v && !json_is_string(v))
		bad_config("%s of %s is no text", key, where);
	return json_string_value(v);
}

static json_t *config_list(json_t *o, const char *where, const char *key)
{
	json_t *v = json_object_get(o, key);

	if (v && !json_is_array(v))
		bad_config("%s of %s is no list", key, where);
	return v;
}

static double config_period(json_t *o, const char *where, double otherwise)
{
	const char *text = config_text(o, where, "period");
	double period = text ? parse_period(text) : otherwise;

	if (!period)
		bad_config("period of %s: \"%s\" " PERIOD_HELP, where, text);
	return period;
}

static struct group *add_group(unsigned int kind, double period)
{
	struct group *g;

	for (size_t i = 0; i < monitor.nr_groups; i++)
		if (monitor.groups[i]->kind == kind && monitor.groups[i]->period == period)
			return monitor.groups[i];
	g = calloc(1, sizeof(*g));
	if (!g || array_grow((void **)&monitor.groups, monitor.nr_groups, &monitor.max_groups,
			     sizeof(*monitor.groups)))
		error(1, ENOMEM, "configuration");
	g->kind = kind;
	g->period = period;
	g->devices.wanted = kinds[kind].wanted;
	g->devices.spread = true;
	monitor.groups[monitor.nr_groups++] = g;
	return g;
}

/* Kinds from @first to before @end, the elements of a list. */
static void config_metrics(json_t *list, const char *where, double otherwise, unsigned int first,
			   unsigned int end, struct group **out)
{
	static const char *const keys[] = { "type", "period", NULL };
	const char *type;
	char at[128];
	size_t i;
	json_t *o;

	json_array_foreach(list, i, o) {
		unsigned int kind = first;

		snprintf(at, sizeof(at), "%s[%zu]", where, i);
		check_object(o, at, keys);
		type = config_text(o, at, "type");
		while (type && kind < end && strcmp(kinds[kind].name, type))
			kind++;
		if (!type || kind == end)
			bad_config("type of %s: %s%s%s", at, type ? "there is no \"" : "missing",
				   type ? type : "", type ? "\" here" : "");
		out[kind] = add_group(kind, config_period(o, at, otherwise));
	}
}

static void config_runtime(json_t *o, size_t index, double otherwise)
{
	static const char *const keys[] = { "tag_filter", "metrics", "period", NULL };
	struct filter *f = &monitor.filters[index];
	char where[64], text[256];
	const char *tag;
	int ret;

	snprintf(where, sizeof(where), "neuron_runtimes[%zu]", index);
	check_object(o, where, keys);
	tag = config_text(o, where, "tag_filter");
	f->any = !tag;
	ret = tag ? regcomp(&f->tag, tag, REG_EXTENDED | REG_NOSUB) : 0;
	if (ret) {
		regerror(ret, &f->tag, text, sizeof(text));
		bad_config("tag_filter of %s: \"%s\": %s", where, tag, text);
	}
	otherwise = config_period(o, where, otherwise);
	snprintf(text, sizeof(text), "%s.metrics", where);
	config_metrics(config_list(o, where, "metrics"), text, otherwise, 0, NR_OF_PROCESS,
		       f->group);
}

static void configure(void)
{
	/* Everything, of all processes. */
	static const char otherwise[] =
		"{\"neuron_runtimes\": [{\"metrics\": [{\"type\": \"neuroncore_counters\"},"
		" {\"type\": \"execution_stats\"}, {\"type\": \"memory_used\"},"
		" {\"type\": \"neuron_runtime_vcpu_usage\"}]}], \"system_metrics\": ["
		" {\"type\": \"neuron_hw_counters\"}, {\"type\": \"vcpu_usage\"},"
		" {\"type\": \"memory_info\"}]}";
	static const char *const keys[] = { "period", "neuron_runtimes", "system_metrics", NULL };
	double period;
	json_error_t why;
	json_t *root, *list;

	root = options.config ? json_load_file(options.config, JSON_REJECT_DUPLICATES, &why) :
		json_loads(otherwise, 0, &why);
	if (!root && why.line > 0)
		bad_config("line %d: %s", why.line, why.text);
	if (!root)
		error(2, 0, "%s", why.text);
	check_object(root, "the file", keys);
	period = config_period(root, "the file", PERIOD);
	/* What is said on the command line is said later. */
	if (options.period)
		period = options.period;
	list = config_list(root, "the file", "neuron_runtimes");
	monitor.nr_filters = json_array_size(list);
	monitor.filters = calloc(monitor.nr_filters + 1, sizeof(*monitor.filters));
	if (!monitor.filters)
		error(1, ENOMEM, "configuration");
	for (size_t i = 0; i < monitor.nr_filters; i++)
		config_runtime(json_array_get(list, i), i, period);
	config_metrics(config_list(root, "the file", "system_metrics"), "system_metrics", period,
		       NR_OF_PROCESS, NR_KINDS, monitor.system);
	if (!monitor.nr_groups)
		bad_config("no metrics are asked for");
	json_decref(root);
}

/* ---- processes ----------------------------------------------------------------------- */

/* What its starter called a process, or its number. */
static void read_tag(struct runtime *r)
{
	static const char name[] = "NEURON_PROCESS_TAG=";
	static char text[1 << 17];
	char path[32];
	size_t len;

	snprintf(r->tag, sizeof(r->tag), "%d", r->pid);
	snprintf(path, sizeof(path), "proc/%d/environ", r->pid);
	len = read_short(path, text, sizeof(text));
	for (const char *at = text; at < text + len; at += strlen(at) + 1)
		if (!strncmp(at, name, sizeof(name) - 1) && at[sizeof(name) - 1])
			snprintf(r->tag, sizeof(r->tag), "%s", at + sizeof(name) - 1);
}

static const struct filter *find_filter(const char *tag)
{
	for (size_t i = 0; i < monitor.nr_filters; i++) {
		const struct filter *f = &monitor.filters[i];

		if (f->any || !regexec(&f->tag, tag, 0, NULL, 0))
			return f;
	}
	return NULL;
}

static struct runtime *find_runtime(int pid)
{
	for (size_t i = 0; i < monitor.nr_runtimes; i++)
		if (monitor.runtimes[i].pid == pid)
			return &monitor.runtimes[i];
	return NULL;
}

/* After processes were looked for: those with devices, each once. */
static void find_runtimes(void)
{
	const struct processes *all = &monitor.watch.processes;

	if (monitor.tagged == monitor.watch.scanned)
		return;
	monitor.tagged = monitor.watch.scanned;
	monitor.nr_runtimes = 0;
	free(monitor.runtimes);
	monitor.runtimes = calloc(all->count + 1, sizeof(*monitor.runtimes));
	if (!monitor.runtimes)
		error(1, ENOMEM, "processes");
	for (size_t i = 0; i < all->count; i++) {
		struct runtime *r = &monitor.runtimes[monitor.nr_runtimes];

		if (find_runtime(all->list[i].pid))
			continue;
		r->pid = all->list[i].pid;
		read_tag(r);
		r->filter = find_filter(r->tag);
		monitor.nr_runtimes++;
	}
}

#define UNCLEAR INT32_MIN	/* one of several processes owns the core */

/* 0: none.  Where the driver does not tell who owns a core, it is the only process of the device. */
static int32_t core_owner(const struct device *d, unsigned int core)
{
	const struct processes *all = &monitor.watch.processes;
	int32_t owner = 0;

	if (d->owners_known)
		return d->core[core].owner;
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].device == d->index)
			owner = owner ? UNCLEAR : all->list[i].pid;
	return owner;
}

static bool uses(const struct device *d, int pid)
{
	const struct processes *all = &monitor.watch.processes;

	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].device == d->index && all->list[i].pid == pid)
			return true;
	return false;
}

/* Asked for each process and device; it reads the environment. */
static unsigned int device_lnc(struct device *d)
{
	if (!d->lnc)
		d->lnc = logical_core(d->instance, d->nr_cores, 0);
	return d->lnc;
}

/* A core of a process, and what @g has read of its device. */
struct place {
	const struct group *g;
	const struct device *d;
	unsigned int core, logical, lnc;
};

/* Calls @f for each core of @pid.  Returns the text for "error". */
static const char *each_core(const struct group *g, int pid, void *arg,
			     void (*f)(const struct place *at, void *arg))
{
	const struct devices *all = &monitor.watch.devices;
	struct place at = { .g = g };
	const char *why = "";
	unsigned int first = 0;

	for (size_t i = 0; i < all->count; i++) {
		struct device *d = all->list[i];

		at.d = devices_find(&g->devices, d->index);
		at.lnc = device_lnc(d);
		for (at.core = 0; at.d && at.core < MIN(d->nr_cores, at.d->nr_cores); at.core++) {
			int32_t owner = core_owner(d, at.core);

			at.logical = first + at.core / at.lnc;
			if (owner == pid)
				f(&at, arg);
			else if (owner == UNCLEAR && uses(d, pid))
				why = "which process owns a core is not known";
		}
		first += d->nr_cores / at.lnc;
	}
	return why;
}

/* ---- groups of a process ------------------------------------------------------------- */

/* The object @name in @list, made if there is none. */
static json_t *child(json_t *list, const char *name)
{
	json_t *o = json_object_get(list, name);

	if (!o) {
		o = json_object();
		json_object_set_new(list, name, o);
	}
	return o;
}

static json_t *numbered(json_t *list, unsigned int n)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", n);
	return child(list, name);
}

/* What several physical cores do is one figure of the logical one.  An unknown one is null. */
static void add_real(json_t *o, const char *key, double value)
{
	json_t *old = json_object_get(o, key);

	if (json_is_number(old))
		value = (isnan(value) ? 0 : value) + json_number_value(old);
	json_object_set_new(o, key, json_rate(value));
}

static void add_integer(json_t *o, const char *key, uint64_t value)
{
	json_t *old = json_object_get(o, key);
	uint64_t sum = json_is_integer(old) ? (uint64_t)json_integer_value(old) : UNKNOWN;

	add_known(&sum, value);
	json_object_set_new(o, key, json_value(sum));
}

/* "v3" of "NCv3", and "v3d" where two are one logical core, as the published guide has it. */
static const char *core_version(const struct device *d, unsigned int lnc)
{
	static char text[16];
	const char *digits = strrchr(d->core_arch, 'v');

	snprintf(text, sizeof(text), "%.12s%s", digits ?: "", digits && lnc > 1 ? "d" : "");
	return text;
}

static void core_use(const struct place *at, void *list)
{
	const struct core *c = &at->d->core[at->core];
	const char *version = core_version(at->d, at->lnc);
	double flops = c->passed_on ? NAN : counter_rate(&c->file[CORE_FLOPS], at->g->measured);
	double busy = c->passed_on ? NAN : c->busy * 100;
	json_t *o = numbered(list, at->logical);
	char name[32];

	add_real(o, "neuroncore_utilization", busy / at->lnc);
	add_integer(o, "flops", isnan(flops) ? UNKNOWN : (uint64_t)flops);
	if (at->lnc == 1 || !*version)
		return;
	snprintf(name, sizeof(name), "nc_%.*s.%u", (int)strcspn(version, "d"), version,
		 at->logical * at->lnc + at->core % at->lnc);
	add_real(child(child(o, version), name), "neuroncore_utilization", busy);
}

static json_t *cores_json(const struct group *g, int pid)
{
	json_t *list = json_object();
	const char *why = each_core(g, pid, list, core_use);

	return json_pack("{s:f, s:o, s:s}", "period", g->measured, "neuroncores_in_use", list,
			 "error", why);
}

/* What came since the reading before; all that there is if somebody has cleared it. */
static uint64_t counter_more(const struct counter *c)
{
	if (c->now == UNKNOWN || c->before == UNKNOWN)
		return UNKNOWN;
	return c->now < c->before ? c->now : c->now - c->before;
}

/* The first is not an error of sysfs.h. */
static const struct {
	const char *key, *error;
} ends[] = {
	{ "completed", NULL },
	{ "completed_with_err", "execute_completed_with_error" },
	{ "completed_with_num_err", "execute_completed_with_num_error" },
	{ "timed_out", "timeout" },
	{ "incorrect_input", "exec_bad_input" },
	{ "failed_to_queue", "execute_failed_to_queue" },
};

/* Classes of sysfs.h are one of these; none is the last, which nobody tells. */
static const char *const summary[] = {
	"numerical", "model", "runtime", "hardware", "generic", "transient",
};
static const unsigned int summary_of[NR_CLASSES] = { 0, 1, 1, 2, 3, 2, 2, 4 };

struct executions {
	uint64_t ends[ARRAY_SIZE(ends)], errors[ARRAY_SIZE(summary)];
};

static void core_executions(const struct place *at, void *arg)
{
	const struct core *c = &at->d->core[at->core];
	struct executions *x = arg;

	if (c->passed_on)
		return;
	add_known(&x->ends[0], counter_more(&c->file[CORE_INFERENCES]));
	for (size_t i = 0; i < NR_ERRORS; i++) {
		uint64_t more = counter_more(&c->error[i]);

		add_known(&x->errors[summary_of[errors[i].class]], more);
		for (size_t k = 1; k < ARRAY_SIZE(ends); k++)
			if (!strcmp(errors[i].dir, ends[k].error))
				add_known(&x->ends[k], more);
	}
}

static void count_core(const struct place *at, void *count)
{
	(void)at;
	++*(unsigned int *)count;
}

static json_t *executions_json(const struct group *g, int pid)
{
	json_t *completed = json_object(), *failed = json_object();
	struct executions x = { 0 };
	unsigned int cores = 0;
	const char *why = each_core(g, pid, &cores, count_core);

	/* Without a core nothing executed; what no core tells is unknown. */
	if (cores || *why)
		memset(&x, 0xff, sizeof(x));
	each_core(g, pid, &x, core_executions);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		json_object_set_new(completed, ends[i].key, json_value(x.ends[i]));
	for (size_t i = 0; i < ARRAY_SIZE(summary); i++)
		json_object_set_new(failed, summary[i], json_value(x.errors[i]));
	return json_pack("{s:f, s:o, s:o, s:{s:n, s:n}, s:s}", "period", g->measured,
			 "error_summary", failed, "execution_summary", completed, "latency_stats",
			 "total_latency", "device_latency", "error", why);
}

static void core_memory(const struct place *at, void *list)
{
	json_t *o = numbered(list, at->logical);

	for (size_t i = 0; i < NR_CATEGORIES; i++)
		add_integer(o, categories[i].dir, at->d->core[at->core].category[i].now);
}

/* What the driver says of the process, on all devices. */
static void driver_memory(int pid, uint64_t *device, uint64_t *host)
{
	const struct processes *all = &monitor.watch.processes;

	*device = UNKNOWN;
	*host = UNKNOWN;
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].pid == pid && all->list[i].client) {
			add_known(device, all->list[i].device_bytes);
			add_known(host, all->list[i].host_bytes);
		}
}

static json_t *memory_json(const struct group *g, int pid)
{
	json_t *cores = json_object();
	const char *why = each_core(g, pid, cores, core_memory);
	struct process_use use;
	uint64_t device, dma, own = process_use(pid, &use) ? use.memory : UNKNOWN, host = own;

	driver_memory(pid, &device, &dma);
	add_known(&host, dma);
	return json_pack("{s:f, s:{s:o, s:o, s:{s:{s:o, s:n, s:o, s:n}, s:o}}, s:n, s:s}",
			 "period", g->measured, "neuron_runtime_used_bytes", "host", json_value(host),
			 "neuron_device", json_value(device), "usage_breakdown", "host",
			 "application_memory", json_value(own), "constants",
			 "dma_buffers", json_value(dma), "tensors",
			 "neuroncore_memory_usage", cores, "loaded_models", "error", why);
}

static double ticks_percent(const struct group *g, uint64_t ticks)
{
	return g->measured > 0 ? (double)ticks * 100 / (double)sysconf(_SC_CLK_TCK) / g->measured :
		NAN;
}

static const struct process_use *find_use(const struct process_use *list, size_t n, int pid)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].pid == pid)
			return &list[i];
	return NULL;
}

static json_t *process_cpu_json(const struct group *g, int pid)
{
	const struct process_use *a = find_use(g->uses_before, g->nr_uses_before, pid);
	const struct process_use *b = find_use(g->uses, g->nr_uses, pid);
	double user = NAN, system = NAN;

	if (a && b && a->started == b->started) {
		user = ticks_percent(g, b->user - a->user);
		system = ticks_percent(g, b->system - a->system);
	}
	return json_pack("{s:f, s:{s:o, s:o}, s:s}", "period", g->measured, "vcpu_usage",
			 "user", json_rate(user), "system", json_rate(system), "error", "");
}

/* ---- groups of the system, and what is always there ---------------------------------- */

static json_t *ecc_json(const struct group *g)
{
	json_t *list = json_array();

	for (size_t i = 0; i < g->devices.count; i++) {
		const struct device *d = g->devices.list[i];
		json_t *o = json_pack("{s:i, s:b}", "neuron_device_index", (int)d->index,
				      "emulated", (int)d->emulated);

		for (size_t k = 0; k < NR_ECC; k++)
			json_object_set_new(o, ecc_files[k], json_value(d->ecc[k].now));
		json_array_append_new(list, o);
	}
	return json_pack("{s:f, s:o, s:s}", "period", g->measured, "neuron_devices", list,
			 "error", "");
}

static json_t *cpu_json(const struct cpu *before, const struct cpu *cpu)
{
	json_t *o = json_object();
	uint64_t sum = 0, more[NR_CPU_TIMES];

	for (size_t i = 0; i < NR_CPU_TIMES; i++) {
		/* The kernel corrects the time of an idle processor now and then. */
		more[i] = cpu->time[i] > before->time[i] ? cpu->time[i] - before->time[i] : 0;
		sum += more[i];
	}
	for (size_t i = 0; i < ARRAY_SIZE(cpu_times); i++)
		json_object_set_new(o, cpu_times[i], json_rate(before->seen && sum ?
				    (double)more[i] * 100 / (double)sum : NAN));
	return o;
}

static json_t *host_cpu_json(const struct group *g)
{
	static const struct cpu none;
	json_t *all = json_null(), *list = json_object();
	char name[16];

	for (size_t i = 0; i < g->cpus.max; i++) {
		json_t *o;

		if (!g->cpus.list[i].seen)
			continue;
		o = cpu_json(i < g->before.max ? &g->before.list[i] : &none, &g->cpus.list[i]);
		snprintf(name, sizeof(name), "%zu", i - 1);
		if (i)
			json_object_set_new(list, name, o);
		else
			all = o;
	}
	return json_pack("{s:f, s:o, s:o, s:I, s:s}", "period", g->measured, "average_usage", all,
			 "usage_data", list, "context_switch_count",
			 INT(g->cpus.switches - g->before.switches), "error", "");
}

static json_t *host_memory_json(const struct group *g)
{
	char text[4096];
	uint64_t total, swap;
	bool known = read_short("proc/meminfo", text, sizeof(text)) > 0;

	total = meminfo(text, "MemTotal");
	swap = meminfo(text, "SwapTotal");
	return json_pack("{s:f, s:I, s:I, s:I, s:I, s:s}", "period", g->measured,
			 "memory_total_bytes", INT(total), "memory_used_bytes",
			 INT(total - meminfo(text, "MemAvailable")), "swap_total_bytes", INT(swap),
			 "swap_used_bytes", INT(swap - meminfo(text, "SwapFree")),
			 "error", known ? "" : "no /proc/meminfo");
}

/* What firmware tells, once; the rest would have to be asked over the network. */
static json_t *instance_json(void)
{
	const struct devices *all = &monitor.watch.devices;
	static char vendor[32], type[64], id[64];
	static bool known, ec2;

	if (!known) {
		read_line(AT_FDCWD, "sys/devices/virtual/dmi/id/sys_vendor", vendor,
			  sizeof(vendor));
		read_line(AT_FDCWD, "sys/devices/virtual/dmi/id/product_name", type, sizeof(type));
		read_line(AT_FDCWD, "sys/devices/virtual/dmi/id/board_asset_tag", id, sizeof(id));
		ec2 = !strcmp(vendor, "Amazon EC2");
		known = true;
	}
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "instance_name", "",
			 "instance_id", ec2 ? id : "", "instance_type",
			 ec2 ? type : all->count ? all->list[0]->instance : "",
			 "instance_availability_zone", "", "instance_availability_zone_id", "",
			 "instance_region", "", "ami_id", "", "subnet_id", "",
			 "error", ec2 ? "" : "this is no EC2 instance");
}

/* Of the first device: an instance has one kind. */
static json_t *hardware_json(void)
{
	static struct device none;
	const struct devices *all = &monitor.watch.devices;
	struct device *d = all->count ? all->list[0] : &none;
	const char *version = *d->arch ? strrchr(d->arch, 'v') ?: d->arch : "";
	char type[sizeof(d->name)];

	snprintf(type, sizeof(type), "%s", d->name);
	for (char *c = type; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	/* The published guide has another number than sysfs. */
	if (!strcmp(type, "trainium2"))
		version = "v4";
	return json_pack("{s:s, s:s, s:s, s:i, s:I, s:i, s:i, s:s, s:b, s:s}",
			 "neuron_device_type", type, "neuron_device_version", version,
			 "neuroncore_version", core_version(d, device_lnc(d)),
			 "neuron_device_count", (int)all->count, "neuron_device_memory_size",
			 INT(d->total), "neuroncore_per_device_count",
			 (int)(d->nr_cores / device_lnc(d)), "logical_neuroncore_config",
			 (int)device_lnc(d), "neuron_driver_version", monitor.watch.driver,
			 "emulated", (int)d->emulated,
			 "error", all->count ? "" : "no Neuron device");
}

/* ---- the end ------------------------------------------------------------------------- */

/* What nobody keeps up to date is worse than nothing; not what was there before and is no file. */
static void remove_textfile(void)
{
	struct stat st;

	if (options.textfile && !lstat(options.textfile, &st) && S_ISREG(st.st_mode))
		unlink(options.textfile);
}

/* A signal that does not wait until all is in order. */
static void end_at_once(int number)
{
	remove_textfile();
	signal(number, SIG_DFL);
	raise(number);
}

/* ---- JSON ---------------------------------------------------------------------------- */

static void read_uses(struct group *g)
{
	free(g->uses_before);
	g->uses_before = g->uses;
	g->nr_uses_before = g->nr_uses;
	g->nr_uses = 0;
	g->uses = calloc(monitor.nr_runtimes + 1, sizeof(*g->uses));
	if (!g->uses)
		error(1, ENOMEM, "processes");
	for (size_t i = 0; i < monitor.nr_runtimes; i++)
		g->nr_uses += process_use(monitor.runtimes[i].pid, &g->uses[g->nr_uses]);
}

/*
 * Counters of a core go on when its process ends: what came since the reading before may be
 * another's, and errors that had not been read since then are not the new owner's later on.
 */
static void note_owners(struct group *g)
{
	const struct devices *all = &monitor.watch.devices;

	for (size_t i = 0; i < all->count; i++) {
		const struct device *d = all->list[i];
		struct device *own = devices_find(&g->devices, d->index);

		for (unsigned int c = 0; own && c < MIN(d->nr_cores, own->nr_cores); c++) {
			struct core *core = &own->core[c];
			int32_t owner = core_owner(d, c);

			core->passed_on = core->owner != owner;
			core->owner = owner;
			for (size_t k = 0; k < NR_ERRORS && core->passed_on; k++)
				counter_read(&core->error[k]);
		}
	}
}

static void read_group(struct group *g)
{
	double time = now();

	g->measured = g->time ? time - g->time : 0;
	g->time = time;
	switch (g->kind) {
	case PROCESS_CPU:
		read_uses(g);
		break;
	case HOST_CPU:
		cpus_copy(&g->before, &g->cpus);
		cpus_read(&g->cpus);
		break;
	case HOST_MEMORY:
		break;
	default:
		devices_read(&g->devices, time);
		note_owners(g);
	}
}

static json_t *group_json(const struct group *g, int pid)
{
	switch (g->kind) {
	case CORES: return cores_json(g, pid);
	case EXECUTIONS: return executions_json(g, pid);
	case MEMORY: return memory_json(g, pid);
	case PROCESS_CPU: return process_cpu_json(g, pid);
	case ECC: return ecc_json(g);
	case HOST_CPU: return host_cpu_json(g);
	default: return host_memory_json(g);
	}
}

/* Those of @groups that are due; NULL if there is none. */
static json_t *report_json(struct group *const *groups, unsigned int first, unsigned int end,
			   int pid)
{
	json_t *o = NULL;

	for (unsigned int kind = first; kind < end; kind++)
		if (groups[kind] && groups[kind]->due) {
			o = o ?: json_object();
			json_object_set_new(o, kinds[kind].name, group_json(groups[kind], pid));
		}
	return o;
}

static void print_object(void)
{
	json_t *list = json_array(), *system;
	struct timespec t;

	for (size_t i = 0; i < monitor.nr_runtimes; i++) {
		const struct runtime *r = &monitor.runtimes[i];
		json_t *report = r->filter ? report_json(r->filter->group, 0, NR_OF_PROCESS,
							 r->pid) : NULL;

		if (report)
			json_array_append_new(list, json_pack(
				"{s:i, s:s, s:o, s:s, s:o}", "pid", r->pid, "address", "",
				"neuron_runtime_tag", json_stringn(r->tag, strlen(r->tag)) ?:
				json_sprintf("%d", r->pid), "error", "", "report", report));
	}
	system = report_json(monitor.system, NR_OF_PROCESS, NR_KINDS, 0);
	clock_gettime(CLOCK_REALTIME, &t);
	/* It may wait for its reader for ever; a signal then ends the program at once. */
	handle_signals(end_at_once);
	if (ended)
		raise(ended);
	print_json_line(json_pack("{s:i, s:f, s:o, s:o, s:o, s:o}", "schema_version", 1,
				  "time", (double)t.tv_sec + (double)t.tv_nsec / 1e9,
				  "neuron_runtime_data", list,
				  "system_data", system ? system : json_object(),
				  "instance_info", instance_json(),
				  "neuron_hardware_info", hardware_json()));
	handle_signals(signalled);
}

/* The first reading is what rates begin with. */
static void start_groups(double start)
{
	watch_read(&monitor.watch, start);
	find_runtimes();
	for (size_t i = 0; i < monitor.nr_groups; i++) {
		read_group(monitor.groups[i]);
		monitor.groups[i]->next = start + monitor.groups[i]->period;
	}
}

/* Reads what is due, and prints it. */
static void turn_groups(double time)
{
	watch_read(&monitor.watch, time);
	find_runtimes();
	for (size_t i = 0; i < monitor.nr_groups; i++) {
		struct group *g = monitor.groups[i];

		g->due = time >= g->next - SLACK;
		if (!g->due)
			continue;
		read_group(g);
		/* A machine that slept does not make up for it. */
		g->next += g->period * (1 + floor((time + SLACK - g->next) / g->period));
	}
	print_object();
}

static double groups_next(void)
{
	double next = INFINITY;

	for (size_t i = 0; i < monitor.nr_groups; i++)
		next = fmin(next, monitor.groups[i]->next);
	return next;
}

/* ---- Prometheus ---------------------------------------------------------------------- */

/* The page, no older than so many seconds. */
static void make_page(double age)
{
	double time = now();
	FILE *f;
	int ret;

	if (monitor.page_time && time - monitor.page_time < age)
		return;
	watch_read(&monitor.watch, time);
	free(monitor.page);
	f = open_memstream(&monitor.page, &monitor.page_size);
	ret = f ? prometheus_print(f, &monitor.watch) : -errno;
	if (ret || fclose(f))
		error(1, ret ? -ret : errno, "metrics");
	monitor.page_time = now();
}

/* Whoever reads the file finds all of it: it gets its name when it is complete. */
static void write_textfile(void)
{
	mode_t mask = umask(0);

	umask(mask);
	make_page(0);
	if (!replace_file(options.textfile, monitor.page, monitor.page_size, 0666 & ~mask,
			  false))
		error(1, errno, "%s", options.textfile);
}

static const char *serve_page(size_t *size)
{
	make_page(PAGE_SECONDS);
	*size = monitor.page_size;
	return monitor.page;
}

/* ---- all of it ----------------------------------------------------------------------- */

static void run(void)
{
	double start = now(), period = options.period ?: PERIOD, next = start;
	unsigned long objects = 0, files = 0;

	if (options.json)
		start_groups(start);
	for (;;) {
		bool json = options.json && (!options.count || objects < options.count);
		bool file = options.textfile && (!options.count || files < options.count);

		if (options.count && !json && !file)
			break;
		http_wait(&monitor.http, fmin(json ? groups_next() : INFINITY, file ? next : INFINITY));
		if (ended)
			break;
		if (json && now() >= groups_next() - SLACK) {
			turn_groups(now());
			objects++;
		}
		if (file && now() >= next) {
			write_textfile();
			next += period * (1 + floor((now() - next) / period));
			files++;
		}
	}
	if (ended)
		remove_textfile();
}

static void free_all(void)
{
	http_stop(&monitor.http);
	for (size_t i = 0; i < monitor.nr_groups; i++) {
		struct group *g = monitor.groups[i];

		devices_close(&g->devices);
		free(g->before.list);
		free(g->cpus.list);
		free(g->uses);
		free(g->uses_before);
		free(g);
	}
	for (size_t i = 0; i < monitor.nr_filters; i++)
		if (!monitor.filters[i].any)
			regfree(&monitor.filters[i].tag);
	watch_end(&monitor.watch);
	free(monitor.groups);
	free(monitor.filters);
	free(monitor.runtimes);
	free(monitor.page);
	free(options.textfile);
	options.textfile = NULL;
}

int main(int argc, char **argv)
{
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (options.json)
		configure();
	monitor.watch.devices.wanted = READ_SIZE;
	monitor.watch.devices.spread = true;
	if (options.textfile || options.address)
		monitor.watch.devices.wanted = READ_MEMORY | READ_USE | READ_ERRORS | READ_ECC;
	watch_start();
	handle_signals(signalled);
	if (signal(SIGPIPE, end_at_once) == SIG_IGN)
		signal(SIGPIPE, SIG_IGN);
	if (options.address)
		http_start(&monitor.http, options.address, serve_page);
	atexit(remove_textfile);
	run();
	free_all();
	end_by_signal();
	return 0;
}

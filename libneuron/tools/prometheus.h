/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a watch has seen, in the text format of Prometheus. What is unknown has no line. */
#ifndef TOOLS_PROMETHEUS_H
#define TOOLS_PROMETHEUS_H

#include "watch.h"

struct prometheus {
	FILE *f;
	const struct watch *watch;
	const char *metric;
	bool micro;		/* its values are millionths */
};

static inline void metric(struct prometheus *p, const char *name, const char *type,
			  const char *help)
{
	p->metric = name;
	p->micro = false;
	fprintf(p->f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* What users choose stands between quotes. */
static inline const char *quoted(const char *text)
{
	static char out[4][2 * sizeof(((struct process *)0)->command) + 1];
	static unsigned int next;
	char *to = out[next++ % ARRAY_SIZE(out)], *start = to;

	for (; *text && to < start + sizeof(out[0]) - 2; text++) {
		if (*text == '"' || *text == '\\')
			*to++ = '\\';
		*to++ = *text;
	}
	*to = 0;
	return start;
}

static inline void __attribute__((format(printf, 3, 4)))
sample(struct prometheus *p, uint64_t value, const char *labels, ...)
{
	va_list ap;

	if (value == UNKNOWN)
		return;
	fprintf(p->f, "%s{", p->metric);
	va_start(ap, labels);
	vfprintf(p->f, labels, ap);
	va_end(ap);
	if (p->micro)
		fprintf(p->f, "} %" PRIu64 ".%06" PRIu64 "\n", value / 1000000, value % 1000000);
	else
		fprintf(p->f, "} %" PRIu64 "\n", value);
}

#define EACH_DEVICE(p, d) \
	for (struct device **at_ = (p)->watch->devices.list, \
	     **end_ = at_ + (p)->watch->devices.count, *d; at_ < end_ && (d = *at_, true); at_++)
#define EACH_CORE(p, d, c) \
	EACH_DEVICE(p, d) \
		for (unsigned int c = 0; c < d->nr_cores; c++)
#define CORE_LABELS "neuron_device=\"%u\",neuron_core=\"%u\""

static inline void prometheus_devices(struct prometheus *p)
{
	static const char *const ecc[NR_ECC][2] = {
		{ "mem", "corrected" }, { "mem", "uncorrected" },
		{ "mem", "repairable_uncorrected" },
		{ "sram", "corrected" }, { "sram", "uncorrected" },
	};

	metric(p, "neuron_device_info", "gauge", "What the device is; 1.");
	EACH_DEVICE(p, d)
		sample(p, 1, "neuron_device=\"%u\",device_name=\"%s\",instance_type=\"%s\","
		       "driver_version=\"%s\",emulated=\"%d\"", d->index, quoted(d->name),
		       quoted(d->instance), quoted(p->watch->driver), d->emulated);
	metric(p, "neuron_device_memory_size_bytes", "gauge", "Device memory that there is.");
	EACH_DEVICE(p, d)
		sample(p, d->total ?: UNKNOWN, "neuron_device=\"%u\"", d->index);
	metric(p, "neuron_device_memory_used_bytes", "gauge", "Device memory in use.");
	EACH_DEVICE(p, d)
		sample(p, d->used, "neuron_device=\"%u\"", d->index);
	metric(p, "neuron_device_host_memory_bytes", "gauge",
	       "Host memory that the driver holds for the device.");
	EACH_DEVICE(p, d)
		sample(p, d->host.now, "neuron_device=\"%u\"", d->index);
	metric(p, "neuron_device_ecc_events_total", "counter", "Memory errors.");
	EACH_DEVICE(p, d)
		for (size_t i = 0; i < NR_ECC; i++)
			sample(p, d->ecc[i].now,
			       "neuron_device=\"%u\",memory=\"%s\",type=\"%s\"", d->index,
			       ecc[i][0], ecc[i][1]);
}

static inline void prometheus_hbms(struct prometheus *p)
{
	static const struct {
		const char *name, *help;
	} files[NR_HBM_FILES] = {
		[HBM_TOTAL] = { "neuron_hbm_size_bytes", "Size of a device memory (HBM)." },
		[HBM_USED] = { "neuron_hbm_used_bytes", "In use." },
		[HBM_FREE] = { "neuron_hbm_free_bytes", "Free." },
		[HBM_LARGEST_FREE] = { "neuron_hbm_largest_free_bytes", "Longest free run." },
		[HBM_HIGH_WATER] = { "neuron_hbm_high_water_bytes", "Most that was in use." },
	};

	for (size_t i = 0; i < NR_HBM_FILES; i++) {
		metric(p, files[i].name, "gauge", files[i].help);
		EACH_DEVICE(p, d)
			for (unsigned int h = 0; h < d->nr_hbms; h++)
				sample(p, d->hbm[h].file[i].now,
				       "neuron_device=\"%u\",hbm=\"%u\"", d->index, h);
	}
}

static inline void prometheus_cores(struct prometheus *p)
{
	metric(p, "neuron_core_memory_bytes", "gauge", "Device memory charged to a core.");
	EACH_CORE(p, d, c)
		for (size_t i = 0; i < NR_CATEGORIES; i++)
			sample(p, d->core[c].category[i].now, CORE_LABELS ",category=\"%s\"",
			       d->index, c, categories[i].dir);
	metric(p, "neuron_core_host_memory_bytes", "gauge", "Host memory charged to a core.");
	EACH_CORE(p, d, c)
		sample(p, d->core[c].file[CORE_HOST].now, CORE_LABELS, d->index, c);
	metric(p, "neuron_core_in_use", "gauge", "Whether a process owns the core.");
	EACH_CORE(p, d, c)
		sample(p, d->owners_known ? d->core[c].owner != 0 : UNKNOWN, CORE_LABELS,
		       d->index, c);
	metric(p, "neuron_core_executions_total", "counter", "Executions that completed.");
	EACH_CORE(p, d, c)
		sample(p, d->core[c].file[CORE_INFERENCES].now, CORE_LABELS, d->index, c);
	metric(p, "neuron_core_busy_seconds_total", "counter", "Time in which the core executed.");
	p->micro = true;
	EACH_CORE(p, d, c)
		sample(p, d->core[c].file[CORE_TIME_IN_USE].now, CORE_LABELS, d->index, c);
	metric(p, "neuron_core_flops_total", "counter", "Floating point operations.");
	EACH_CORE(p, d, c)
		sample(p, d->core[c].file[CORE_FLOPS].now, CORE_LABELS, d->index, c);
	metric(p, "neuron_core_errors_total", "counter", "Executions that failed, by class.");
	EACH_CORE(p, d, c)
		for (size_t i = 0; i < NR_CLASSES; i++)
			sample(p, d->core[c].errors[i], CORE_LABELS ",class=\"%s\"", d->index, c,
			       error_classes[i]);
}

static inline void prometheus_processes(struct prometheus *p)
{
	const struct processes *all = &p->watch->processes;

	for (int host = 0; host < 2; host++) {
		metric(p, host ? "neuron_process_host_memory_bytes" :
		       "neuron_process_device_memory_bytes", "gauge", host ?
		       "Host memory that the driver holds for the process." :
		       "Device memory of the process.");
		for (size_t i = 0; i < all->count; i++) {
			const struct process *q = &all->list[i];

			sample(p, !q->client ? UNKNOWN : host ? q->host_bytes : q->device_bytes,
			       "neuron_device=\"%u\",pid=\"%d\",process=\"%s\",user=\"%s\"",
			       q->device, q->pid, quoted(q->name), quoted(q->user));
		}
	}
}

/* Returns 0 or -errno. */
static inline int prometheus_print(FILE *f, const struct watch *w)
{
	struct prometheus p = { .f = f, .watch = w };
	struct timespec used;

	prometheus_devices(&p);
	prometheus_hbms(&p);
	prometheus_cores(&p);
	prometheus_processes(&p);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	metric(&p, "neuron_monitor_cpu_seconds_total", "counter",
	       "Processor time of neuron-monitor.");
	fprintf(f, "%s %ld.%09ld\n", p.metric, (long)used.tv_sec, used.tv_nsec);
	return ferror(f) ? -EIO : 0;
}

#endif

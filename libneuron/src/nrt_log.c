// SPDX-License-Identifier: LGPL-2.1-or-later
/* Log lines in the form that tools for the runtime know. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nrt_internal.h"

static const char *const comp_names[LOG_NR_COMPS] = { "TDRV", "NMGR", "NRT" };
static const char *const level_names[] = { "", "ERROR", "WARN", "INFO", "DEBUG", "TRACE" };

static atomic_int levels[LOG_NR_COMPS] = { LOG_ERROR, LOG_ERROR, LOG_ERROR };

static int parse_level(const char *text, int fallback)
{
	static const struct {
		const char *name;
		int level;
	} names[] = {
		{ "QUIET", LOG_QUIET }, { "ERROR", LOG_ERROR }, { "WARNING", LOG_WARN },
		{ "WARN", LOG_WARN }, { "INFO", LOG_INFO }, { "DEBUG", LOG_DEBUG },
		{ "TRACE", LOG_TRACE },
	};

	for (size_t i = 0; text && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcasecmp(text, names[i].name))
			return names[i].level;
	return fallback;
}

void nrt_log_configure(void)
{
	int common = parse_level(getenv("NEURON_RT_LOG_LEVEL"), LOG_ERROR);
	char name[48];

	for (int i = 0; i < LOG_NR_COMPS; i++) {
		snprintf(name, sizeof(name), "NEURON_RT_LOG_LEVEL_%s", comp_names[i]);
		atomic_store(&levels[i], parse_level(getenv(name), common));
	}
}

bool nrt_log_enabled(enum log_comp comp, enum log_level level)
{
	return (int)level <= atomic_load_explicit(&levels[comp], memory_order_relaxed);
}

void nrt_log(enum log_comp comp, enum log_level level, const char *func, const char *fmt, ...)
{
	char line[2048], when[32];
	struct timespec now;
	struct tm tm;
	va_list ap;
	int n;

	if (!nrt_log_enabled(comp, level))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(when, sizeof(when), "%Y-%b-%d %H:%M:%S", &tm);
	n = snprintf(line, sizeof(line), "%s.%06ld %d:%ld %5s %5s:%-40s", when,
		     now.tv_nsec / 1000, (int)getpid(), (long)syscall(SYS_gettid),
		     level_names[level], comp_names[comp], func);
	va_start(ap, fmt);
	if (n > 0 && (size_t)n < sizeof(line))
		vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	/* Names that a caller gave; some lines have breaks of their own. */
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' && *c != '\n' && *c != '\t')
			*c = '?';
	/* One write for a line, so that lines of several threads do not mix. */
	fprintf(stderr, "%s\n", line);
}

const char *nrt_log_size(uint64_t bytes, char *text, size_t size)
{
	static const char *const units[] = { "B", "KB", "MB", "GB" };
	double value = (double)bytes;
	unsigned int unit = 0;

	while (value >= 1024 && unit < 3) {
		value /= 1024;
		unit++;
	}
	snprintf(text, size, "%.3f%s", value, units[unit]);
	return text;
}

static const char *usage_name(enum neuron_mem_category category)
{
	switch (category) {
	case NEURON_MEM_CODE: return "model code";
	case NEURON_MEM_CONSTANTS: return "model constants";
	case NEURON_MEM_TENSORS:
	case NEURON_MEM_HOST_TENSORS: return "tensors";
	case NEURON_MEM_SCRATCHPAD:
	case NEURON_MEM_SCRATCHPAD_CONTIGUOUS: return "shared scratchpad";
	case NEURON_MEM_SCRATCHPAD_PRIVATE: return "scratchpad";
	case NEURON_MEM_RINGS:
	case NEURON_MEM_HOST_RINGS: return "dma rings";
	case NEURON_MEM_COLLECTIVES: return "collectives";
	default: return "runtime";
	}
}

void nrt_log_memory(const struct neuron_device *device, const struct neuron_mem_failure *f)
{
	unsigned int nd = neuron_device_index(device);
	char want[32], align[32] = "none", total[32], left[32], run[32], aligned[32];

	if (f->align)
		nrt_log_size(f->align, align, sizeof(align));
	LOG_AS(TDRV, ERROR, "log_dev_mem",
	       "Failed to allocate %s (alignment: %s, usage: %s) on ND %u:NC %u",
	       nrt_log_size(f->bytes, want, sizeof(want)), align, usage_name(f->category), nd,
	       f->nc);
	nrt_log_size(f->total, total, sizeof(total));
	nrt_log_size(f->free, left, sizeof(left));
	nrt_log_size(f->largest_free, run, sizeof(run));
	nrt_log_size(f->largest_aligned, aligned, sizeof(aligned));
	switch (f->reason) {
	case NEURON_MEM_REASON_FULL:
		LOG_AS(TDRV, ERROR, "log_dev_mem", "ND %u HBM %u is full: %s of %s are free", nd,
		       f->hbm, left, total);
		break;
	case NEURON_MEM_REASON_FRAGMENTED:
		LOG_AS(TDRV, ERROR, "log_dev_mem",
		       "ND %u HBM %u is fragmented: %s of %s are free, the longest run has %s", nd,
		       f->hbm, left, total, run);
		break;
	case NEURON_MEM_REASON_ALIGNMENT:
		LOG_AS(TDRV, ERROR, "log_dev_mem",
		       "ND %u HBM %u has no aligned space: %s of %s are free, the longest run has %s, aligned %s",
		       nd, f->hbm, left, total, run, aligned);
		break;
	case NEURON_MEM_REASON_CAPPED:
		LOG_AS(TDRV, ERROR, "log_dev_mem",
		       "ND %u HBM %u: a limit is reached; %s of %s are free", nd, f->hbm, left,
		       total);
		break;
	case NEURON_MEM_REASON_HOST:
	case NEURON_MEM_REASON_NONE:
		LOG_AS(TDRV, ERROR, "log_dev_mem", "the host is out of memory");
		break;
	}
}

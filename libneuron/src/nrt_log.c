// SPDX-License-Identifier: LGPL-2.1-or-later
/* Log lines in the form that tools for the runtime know. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nrt_internal.h"

/* Not <syslog.h>: its LOG_INFO and LOG_DEBUG are other numbers than ours. */
void syslog(int prio, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static const char *const comp_names[LOG_NR_COMPS] = { "TDRV", "NMGR", "NRT", "ENC", "HAL" };
static const char *const level_names[] = { "", "ERROR", "WARN", "INFO", "DEBUG", "TRACE" };

static atomic_int levels[LOG_NR_COMPS] = { [0 ... LOG_NR_COMPS - 1] = LOG_ERROR };

enum target {
	TO_CONSOLE,
	TO_SYSLOG,
	TO_FILE,
};

static atomic_int targets[LOG_NR_COMPS];
static int files[LOG_NR_COMPS] = { [0 ... LOG_NR_COMPS - 1] = -1 };	/* made once, then only replaced */

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

/* "console", "syslog", or the name of a file to add to. */
static void set_target(int comp, const char *text)
{
	enum target target = TO_CONSOLE;
	int fd;

	if (text && !strcasecmp(text, "syslog")) {
		target = TO_SYSLOG;
	} else if (text && *text && strcasecmp(text, "console")) {
		fd = open(text, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
		if (fd >= 0 && files[comp] < 0) {
			files[comp] = fd;
		} else if (fd >= 0) {
			/* Another thread may be writing: the number stays the same. */
			dup3(fd, files[comp], O_CLOEXEC);
			close(fd);
		}
		if (fd >= 0)
			target = TO_FILE;
	}
	atomic_store(&targets[comp], target);
}

void nrt_log_configure(void)
{
	int common = parse_level(getenv("NEURON_RT_LOG_LEVEL"), LOG_ERROR);
	const char *location = getenv("NEURON_RT_LOG_LOCATION"), *own;
	char name[48];

	for (int i = 0; i < LOG_NR_COMPS; i++) {
		snprintf(name, sizeof(name), "NEURON_RT_LOG_LEVEL_%s", comp_names[i]);
		atomic_store(&levels[i], parse_level(getenv(name), common));
		snprintf(name, sizeof(name), "NEURON_RT_LOG_LOCATION_%s", comp_names[i]);
		own = getenv(name);
		set_target(i, own ? own : location);
	}
}

bool nrt_log_enabled(enum log_comp comp, enum log_level level)
{
	return (int)level <= atomic_load_explicit(&levels[comp], memory_order_relaxed);
}

/* Severities of RFC 5424. */
static int priority(enum log_level level)
{
	static const int numbers[] = {
		[LOG_QUIET] = 3, [LOG_ERROR] = 3, [LOG_WARN] = 4, [LOG_INFO] = 6, [LOG_DEBUG] = 7,
		[LOG_TRACE] = 7,
	};

	return numbers[level];
}

void nrt_log(enum log_comp comp, enum log_level level, const char *func, const char *fmt, ...)
{
	int target = atomic_load_explicit(&targets[comp], memory_order_relaxed);
	char *line = NULL, when[32];
	struct timespec now;
	struct tm tm;
	size_t size;
	va_list ap;
	FILE *f;

	if (!nrt_log_enabled(comp, level))
		return;
	f = open_memstream(&line, &size);
	if (!f)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(when, sizeof(when), "%Y-%b-%d %H:%M:%S", &tm);
	fprintf(f, "%s.%06ld %d:%ld %5s %5s:%-40s", when, now.tv_nsec / 1000, (int)getpid(),
		(long)syscall(SYS_gettid), level_names[level], comp_names[comp], func);
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	fputc('\n', f);
	if (fclose(f)) {
		free(line);
		return;
	}
	/* Names that a caller gave; some lines have breaks of their own. */
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' && *c != '\n' && *c != '\t')
			*c = '?';
	/* One write for a line, so that lines of several threads do not mix. */
	if (target == TO_SYSLOG)
		syslog(priority(level), "%s", line);
	else if (target != TO_FILE || write(files[comp], line, size) < 0)
		fputs(line, stderr);
	free(line);
}

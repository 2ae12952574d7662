// SPDX-License-Identifier: LGPL-2.1-or-later
/* Log lines in the form that tools for the runtime know. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

/* Not <syslog.h>: its LOG_INFO and LOG_DEBUG are other numbers than ours. */
void syslog(int prio, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static const char *const comp_names[LOG_NR_COMPS] = { "TDRV", "NMGR", "NRT", "ENC", "HAL" };
static const char *const level_names[] = { "QUIET", "ERROR", "WARN", "INFO", "DEBUG", "TRACE" };

static atomic_int levels[LOG_NR_COMPS] = { [0 ... LOG_NR_COMPS - 1] = LOG_ERROR };

enum target {
	TO_CONSOLE,
	TO_SYSLOG,
	TO_FILE,
};

static atomic_int targets[LOG_NR_COMPS];
static int files[LOG_NR_COMPS] = { [0 ... LOG_NR_COMPS - 1] = -1 };	/* made once, then only replaced */

/* -1: it is none. */
static int parse_level(const char *text)
{
	for (int i = 0; i <= LOG_TRACE; i++)
		if (!strcasecmp(text, level_names[i]))
			return i;
	return strcasecmp(text, "WARNING") ? -1 : LOG_WARN;
}

/*
 * What can be written to without waiting for somebody, and without a signal when they
 * have gone: not a FIFO.  Or -errno.
 */
static int open_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
		      O_NOCTTY, 0644);
	struct stat st;

	/* A FIFO that nobody reads cannot even be opened. */
	if (fd < 0)
		return errno == ENXIO ? -EINVAL : -errno;
	if (!fstat(fd, &st) && (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)))
		return fd;
	close(fd);
	return -EINVAL;
}

/* "console", "syslog", or the name of a file to add to; 0, or -errno and the console. */
static int set_target(int comp, const char *text)
{
	enum target target = TO_CONSOLE;
	int fd = 0;

	if (text && !strcasecmp(text, "syslog")) {
		target = TO_SYSLOG;
	} else if (text && *text && strcasecmp(text, "console")) {
		fd = open_file(text);
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
	return fd < 0 ? fd : 0;
}

/* Whatever goes wrong here is said when all is set, on the console. */
struct complaint {
	char name[48];
	const char *text;
	const char *why;		/* NULL: there is none */
};

/* Of one component, or all together with the name of none. */
static int read_level(const char *comp, int otherwise, struct complaint *c)
{
	int level;

	snprintf(c->name, sizeof(c->name), "NEURON_RT_LOG_LEVEL%s%s", *comp ? "_" : "", comp);
	c->text = getenv(c->name);
	if (!c->text || !*c->text)
		return otherwise;
	level = parse_level(c->text);
	if (level < 0)
		c->why = "not a level";
	return level < 0 ? otherwise : level;
}

static void read_location(int comp, const char *common, struct complaint *c)
{
	const char *own;
	int ret;

	snprintf(c->name, sizeof(c->name), "NEURON_RT_LOG_LOCATION_%s", comp_names[comp]);
	own = getenv(c->name);
	if (!own)
		strcpy(c->name, "NEURON_RT_LOG_LOCATION");
	c->text = own ? own : common;
	ret = set_target(comp, c->text);
	if (ret)
		c->why = ret == -EINVAL ? "neither a file nor a terminal" : strerrordesc_np(-ret);
}

void nrt_log_configure(void)
{
	struct complaint complaints[2 * LOG_NR_COMPS + 1] = { 0 }, *c = complaints, *seen;
	int common = read_level("", LOG_ERROR, c++);

	for (int i = 0; i < LOG_NR_COMPS; i++) {
		atomic_store(&levels[i], read_level(comp_names[i], common, c++));
		read_location(i, getenv("NEURON_RT_LOG_LOCATION"), c++);
	}
	for (c = complaints; c < complaints + 2 * LOG_NR_COMPS + 1; c++) {
		/* One for all components is said once. */
		for (seen = complaints; strcmp(seen->name, c->name); seen++)
			;
		if (c->why && seen == c)
			LOG_AS(NRT, ERROR, "nrt_init", "%s=%s: %s", c->name, c->text, c->why);
	}
}

bool nrt_log_enabled(enum log_comp comp, enum log_level level)
{
	return (int)level <= atomic_load_explicit(&levels[comp], memory_order_relaxed);
}

/* Severities of RFC 5424. */
static int priority(enum log_level level)
{
	return level <= LOG_ERROR ? 3 : level == LOG_WARN ? 4 : level == LOG_INFO ? 6 : 7;
}

void nrt_log_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

void nrt_log(enum log_comp comp, enum log_level level, const char *func, const char *fmt, ...)
{
	int target = atomic_load_explicit(&targets[comp], memory_order_relaxed);
	char *line = NULL, when[32];
	struct timespec now;
	struct tm tm;
	size_t size;
	va_list ap;
	bool lines = strchr(fmt, '\n');
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
	if (fclose(f) || !line) {
		free(line);
		return;
	}
	for (char *c = line; *c; c++)
		if (((unsigned char)*c < ' ' && *c != '\t' && (*c != '\n' || (!lines && c[1]))) ||
		    *c == 0x7f)
			*c = '?';
	/* One write for a line, so that lines of several threads do not mix. */
	if (target == TO_SYSLOG)
		syslog(priority(level), "%s", line);
	else if (target != TO_FILE || write(files[comp], line, size) < 0)
		fputs(line, stderr);
	free(line);
}

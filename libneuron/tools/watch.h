/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What neuron-top and neuron-monitor share: both look at devices and processes for ever. */
#ifndef TOOLS_WATCH_H
#define TOOLS_WATCH_H

#include <error.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include <jansson.h>

#include "file.h"
#include "processes.h"
#include "sysfs.h"

#define SCAN_SECONDS 3		/* until processes are looked for again */

struct watch {
	struct devices devices;
	struct processes clients;	/* as they were found */
	struct processes processes;	/* each once for a device */
	int *fdinfo;			/* of each client, 0 if it could not be opened */
	double scanned;			/* when processes were looked for, 0 never */
	char driver[32];		/* version */
};

/* The signal that ends the program, once there was one. */
static volatile sig_atomic_t ended;

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline struct timespec timespec_of(double seconds)
{
	return (struct timespec){ (time_t)seconds, (long)((seconds - floor(seconds)) * 1e9) };
}

/*
 * Paths of sysfs and /proc are relative from here on.  Sixteen devices have thousands of
 * files; root may have more than its limit.
 */
static inline void watch_start(void)
{
	const char *root = getenv("NEURON_TOOLS_ROOT");	/* of tests */
	struct rlimit files = { 65536, 65536 };

	if (chdir(root && *root ? root : "/"))
		error(1, errno, "%s", root);
	if (!setrlimit(RLIMIT_NOFILE, &files) || getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static inline void watch_forget_processes(struct watch *w)
{
	for (size_t i = 0; i < w->clients.count; i++)
		if (w->fdinfo && w->fdinfo[i])
			close(w->fdinfo[i]);
	free(w->clients.list);
	free(w->processes.list);
	w->clients = w->processes = (struct processes){ 0 };
}

/* Opens a lot of files in /proc, so that it is not done at each refresh. */
static inline void watch_scan(struct watch *w)
{
	char path[32];
	int fd;

	watch_forget_processes(w);
	if (find_clients("proc", &w->clients))
		error(1, ENOMEM, "processes");
	free(w->fdinfo);
	w->fdinfo = calloc(w->clients.count + 1, sizeof(*w->fdinfo));
	w->processes.list = calloc(w->clients.count + 1, sizeof(*w->processes.list));
	if (!w->fdinfo || !w->processes.list)
		error(1, ENOMEM, "processes");
	for (size_t i = 0; i < w->clients.count; i++) {
		fd = open(w->clients.list[i].fdinfo, O_RDONLY | O_CLOEXEC);
		w->fdinfo[i] = fd > 0 ? fd : 0;
	}
	/* Not kept open: the module could not be unloaded. */
	for (size_t i = 0; i < w->devices.count; i++) {
		struct device *d = w->devices.list[i];
		int32_t owner[NEURON_MAX_CORES] = { 0 };

		snprintf(path, sizeof(path), "dev/neuron%u", d->index);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		d->owners_known = fd >= 0 && !core_owners(fd, d->nr_cores, owner);
		for (unsigned int c = 0; c < d->nr_cores; c++)
			d->core[c].owner = owner[c];
		if (fd >= 0)
			close(fd);
	}
	w->scanned = now();
}

/* Returns whether all of them are still there. */
static inline bool watch_clients(struct watch *w)
{
	char text[4096];

	for (size_t i = 0; i < w->clients.count; i++) {
		ssize_t len;

		if (!w->fdinfo[i])
			continue;
		len = pread(w->fdinfo[i], text, sizeof(text) - 1, 0);
		if (len <= 0)
			return false;
		text[len] = 0;
		parse_fdinfo(&w->clients.list[i], text);
	}
	return true;
}

/* Reads everything.  Returns whether a device came or went. */
static inline bool watch_read(struct watch *w, double time)
{
	bool changed = devices_read(&w->devices, time);

	if (changed || !w->scanned)
		read_line(AT_FDCWD, "sys/module/neuron/version", w->driver, sizeof(w->driver));
	if (changed || !w->scanned || time - w->scanned >= SCAN_SECONDS || !watch_clients(w))
		watch_scan(w);
	w->processes.count = join_clients(w->processes.list, w->clients.list, w->clients.count);
	return changed;
}

static inline void watch_end(struct watch *w)
{
	watch_forget_processes(w);
	free(w->fdinfo);
	devices_close(&w->devices);
}

/* ---- signals ------------------------------------------------------------------------- */

static inline void signalled(int number)
{
	ended = number;
}

/* With @handler, those that end a program. */
static inline void handle_signals(void (*handler)(int))
{
	struct sigaction act = { .sa_handler = handler };

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
}

/* Now that all is in order, ends by the signal that was caught, if there was one. */
static inline void end_by_signal(void)
{
	if (ended) {
		signal(ended, SIG_DFL);
		raise(ended);
	}
}

/* ---- JSON ---------------------------------------------------------------------------- */

static inline json_t *json_value(uint64_t value)
{
	return value == UNKNOWN ? json_null() : json_integer(INT(value));
}

static inline json_t *json_rate(double value)
{
	return isnan(value) ? json_null() : json_real(value);
}

/* One line; takes the object. */
static inline void print_json_line(json_t *o)
{
	if (!o || json_dumpf(o, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER) ||
	    putchar('\n') < 0)
		error(1, o ? errno : ENOMEM, "output");
	json_decref(o);
	end_output(1);
}

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Devices as sysfs shows them, for programs that look again and again: every file is opened
 * once and read from its beginning each time.  A file that a driver does not have is an
 * unknown value.
 */
#ifndef TOOLS_SYSFS_H
#define TOOLS_SYSFS_H

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <neuron/neuron.h>

#include "../common/util.h"

/* Relative to the working directory, which is / but for tests. */
#define SYSFS_DEVICES "sys/devices/virtual/neuron_device"
#define UNKNOWN UINT64_MAX

/* What device memory is for: directory, letter in a bar, word in a legend. */
static const struct {
	const char *dir;
	char letter;
	const char *word;
} categories[] = {
	{ "model_code", 'M', "code" },
	{ "constants", 'C', "constants" },
	{ "tensors", 'T', "tensors" },
	{ "model_shared_scratchpad", 'S', "shared scratchpad" },
	{ "nonshared_scratchpad", 'P', "private scratchpad" },
	{ "runtime_memory", 'R', "runtime" },
	{ "dma_rings", 'D', "DMA rings" },
	{ "collectives", 'L', "collectives" },
	{ "notifications", 'N', "notifications" },
	{ "driver_memory", 'V', "driver" },
	{ "uncategorized", 'U', "uncategorized" },
};

#define NR_CATEGORIES ARRAY_SIZE(categories)
#define DRIVER_MEMORY 9u

static const char *const error_classes[] = {
	"numerical", "input", "bounds", "timeout", "hardware", "queue", "resource", "other",
};

#define NR_CLASSES ARRAY_SIZE(error_classes)

/* Two drivers, or releases of one, have different names for some; one may have both. */
static const struct {
	const char *dir;
	const char *old;
	unsigned int class;
} errors[] = {
	{ "execute_completed_with_num_error", "infer_completed_with_num_error", 0 },
	{ "exec_bad_input", NULL, 1 },
	{ "oob_error", NULL, 2 },
	{ "timeout", NULL, 3 },
	{ "hw_error", NULL, 4 },
	{ "hw_collectives_error", NULL, 4 },
	{ "hw_dma_abort_error", NULL, 4 },
	{ "hw_hbm_ue_error", NULL, 4 },
	{ "hw_nc_ue_error", NULL, 4 },
	{ "hw_repairable_hbm_ue_error", NULL, 4 },
	{ "execute_failed_to_queue", "infer_failed_to_queue", 5 },
	{ "resource_error", NULL, 6 },
	{ "resource_nc_error", NULL, 6 },
	{ "execute_completed_with_error", "infer_completed_with_error", 7 },
	{ "execute_sw_event_error", NULL, 7 },
	{ "execute_sw_nq_overflow", NULL, 7 },
	{ "execute_sw_psum_collision", NULL, 7 },
	{ "execute_sw_semaphore_error", NULL, 7 },
	{ "execute_sw_sequencer_fatal", NULL, 7 },
	{ "failure", NULL, 7 },
	{ "generic_error", NULL, 7 },
	{ "invalid_error", NULL, 7 },
	{ "unsupported_neff_version", NULL, 7 },
};

#define NR_ERRORS ARRAY_SIZE(errors)

/* Which files are opened: what is not needed is not read. */
enum { READ_SIZE = 1, READ_MEMORY = 2, READ_USE = 4, READ_ERRORS = 8, READ_ECC = 16 };

struct counter {
	int fd;			/* 0: there is no such file, or it is not wanted */
	uint64_t now;		/* or UNKNOWN */
	uint64_t before;	/* what it was the time before, or UNKNOWN */
};

enum { HBM_TOTAL, HBM_USED, HBM_FREE, HBM_LARGEST_FREE, HBM_HIGH_WATER, NR_HBM_FILES };
static const char *const hbm_files[] = { "total", "used", "free", "largest_free", "high_water" };

/* Files, or directories with a file "total": the published guide has both forms. */
enum { CORE_MEMORY, CORE_HOST, CORE_INFERENCES, CORE_TIME_IN_USE, CORE_FLOPS, NR_CORE_FILES };
static const struct {
	const char *name;
	unsigned int wanted;
} core_files[] = {
	{ "memory_usage/device_mem", READ_MEMORY },
	{ "memory_usage/host_mem", READ_MEMORY },
	{ "other_info/inference_count", READ_USE | READ_ERRORS },
	{ "other_info/nc_time_in_use", READ_USE },
	{ "other_info/flop_count", READ_USE },
};

static const char *const ecc_files[] = {
	"mem_ecc_corrected", "mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected",
	"sram_ecc_corrected", "sram_ecc_uncorrected",
};

#define NR_ECC ARRAY_SIZE(ecc_files)

struct hbm {
	struct counter file[NR_HBM_FILES];
};

struct core {
	struct counter file[NR_CORE_FILES], category[NR_CATEGORIES], error[NR_ERRORS];
	int32_t owner;		/* process, 0 none or unknown, NEURON_OWNER_OUTSIDE */
	bool passed_on;		/* it had another owner at the reading before */
	uint64_t errors[NR_CLASSES];	/* sums, or UNKNOWN */
	double errors_per_s[NR_CLASSES];	/* NAN: unknown, as below */
	double all_errors_per_s;
	double inferences_per_s;
	double busy;		/* share of the time, 0 to 1 */
};

/* A sample is the most of some seconds, see history_add(). */
#define HISTORY 240
#define HISTORY_SECONDS 3

struct history {
	uint64_t sample[HISTORY];
	long last;		/* time of the last sample, in units of HISTORY_SECONDS */
};

struct device {
	unsigned int index;
	ino_t ino;		/* another one if a device came back under its number */
	bool seen, opened, owners_known;
	bool complete;		/* or its driver was still adding files */
	unsigned int nr_found;	/* HBMs, cores and files of these */
	bool emulated;
	char name[32], instance[32], arch[16], core_arch[16];
	unsigned int nr_cores, nr_hbms;
	unsigned int lnc;	/* physical cores of a logical one; 0: nobody has asked */
	unsigned int core_hbm[NEURON_MAX_CORES];
	struct counter host, ecc[NR_ECC];
	struct hbm hbm[NEURON_MAX_HBMS];
	struct core core[NEURON_MAX_CORES];
	struct history history;
	/* Sums, made anew each time. */
	uint64_t used, total;
	unsigned int cores_in_use, nr_processes;
	double busy, inferences_per_s, errors_per_s;
};

/* Where there are more cores, their errors are read in turns, each within some seconds. */
#define FEW_CORES 16
#define ERROR_SECONDS 4

struct devices {
	unsigned int wanted;	/* READ_*, set before the first reading */
	bool spread;		/* errors of a core need not be read each time */
	unsigned int turn;
	DIR *dir;
	struct device **list;	/* by number */
	size_t count, max;
	double time;		/* of the last reading, seconds */
};

/* ---- one file ------------------------------------------------------------------------ */

static inline void counter_open(struct counter *c, int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	static bool said;

	if (fd < 0 && (errno == EMFILE || errno == ENFILE) && !said) {
		fprintf(stderr, "%s: %s; some values stay unknown, see ulimit -n\n",
			program_invocation_short_name, strerror(errno));
		said = true;
	}
	*c = (struct counter){ fd > 0 ? fd : 0, UNKNOWN, UNKNOWN };
}

static inline void counter_read(struct counter *c)
{
	char text[32], *end;
	ssize_t len = c->fd ? pread(c->fd, text, sizeof(text) - 1, 0) : -1;

	c->before = c->now;
	c->now = UNKNOWN;
	if (len <= 0)
		return;
	text[len] = 0;
	errno = 0;
	c->now = strtoull(text, &end, 10);
	if (errno || end == text)
		c->now = UNKNOWN;
}

static inline void counter_keep(struct counter *c)
{
	c->before = c->now;
}

/* Unknown the first time, and when somebody has cleared the file. */
static inline double counter_rate(const struct counter *c, double seconds)
{
	if (c->now == UNKNOWN || c->before == UNKNOWN || c->now < c->before || seconds <= 0)
		return NAN;
	return (double)(c->now - c->before) / seconds;
}

/* Sums of what is known: unknown only if nothing is. */
static inline void add_known(uint64_t *sum, uint64_t value)
{
	if (*sum == UNKNOWN)
		*sum = value;
	else if (value != UNKNOWN)
		add_capped(sum, value);
}

static inline void add_rate(double *sum, double value)
{
	if (isnan(*sum))
		*sum = value;
	else if (!isnan(value))
		*sum += value;
}

/* ---- what it was before -------------------------------------------------------------- */

static inline void history_add(struct history *h, double time, uint64_t value)
{
	long now = (long)(time / HISTORY_SECONDS);
	uint64_t *sample = &h->sample[now % HISTORY];

	if (value == UNKNOWN)
		value = 0;
	/* While nobody looked it was what it was before; too long ago, unknown as at first. */
	if (now - h->last >= HISTORY)
		*h = (struct history){ .last = now - 1 };
	for (; h->last < now; h->last++)
		h->sample[(h->last + 1) % HISTORY] =
			h->last + 1 < now ? h->sample[h->last % HISTORY] : value;
	if (value > *sample)
		*sample = value;
}

/* Of @ago samples before the last one. */
static inline uint64_t history_at(const struct history *h, unsigned int ago)
{
	return h->last < (long)ago ? 0 : h->sample[(h->last - (long)ago) % HISTORY];
}

/* ---- a device ------------------------------------------------------------------------ */

/* The first line of a file that does not change; "" if there is none. */
static inline void read_line(int dir, const char *path, char *text, size_t size)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, text, size - 1);

	text[len > 0 ? len : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	if (fd >= 0)
		close(fd);
}

/* Is there such a file? */
static inline bool core_counter(struct counter *c, int dir, const char *group, const char *name)
{
	char path[128];
	int len = snprintf(path, sizeof(path), "stats/%s%s/total", group, name);

	counter_open(c, dir, path);
	path[len - (int)strlen("/total")] = 0;
	if (!c->fd)
		counter_open(c, dir, path);
	return c->fd;
}

/* Returns how many files there are of those that are wanted. */
static inline unsigned int core_open(struct core *c, int dir, unsigned int wanted)
{
	unsigned int n = 0;

	for (size_t i = 0; i < NR_CORE_FILES; i++)
		if (core_files[i].wanted & wanted)
			n += core_counter(&c->file[i], dir, "", core_files[i].name);
	for (size_t i = 0; i < NR_CATEGORIES && wanted & READ_MEMORY; i++)
		n += core_counter(&c->category[i], dir, "memory_usage/device_mem/",
				  categories[i].dir);
	for (size_t i = 0; i < NR_ERRORS && wanted & READ_ERRORS; i++)
		n += core_counter(&c->error[i], dir, "status/", errors[i].dir) ||
		     (errors[i].old && core_counter(&c->error[i], dir, "status/", errors[i].old));
	return n;
}

/* What another driver does not tell, the kind of device does. */
static inline void read_geometry(struct device *d)
{
	struct neuron_geometry g;
	bool known = !neuron_instance_geometry(d->instance, &g, NULL);

	for (unsigned int i = 0; i < d->nr_cores; i++)
		d->core_hbm[i] = known && g.nr_cores == d->nr_cores ? g.core_hbm[i] :
				 i * d->nr_hbms / d->nr_cores;
	for (unsigned int i = 0; known && i < g.nr_hbms && !d->nr_hbms; i++)
		d->total += g.hbm[i].size;
}

static inline int open_sub(int dir, const char *name, unsigned int number)
{
	char path[32];

	snprintf(path, sizeof(path), "%s%u", name, number);
	return openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* NULL: it went away meanwhile, or there is no memory. */
static inline struct device *device_open(int root, unsigned int index, ino_t ino,
					 unsigned int wanted)
{
	struct device *d = calloc(1, sizeof(*d));
	int dir = open_sub(root, "neuron", index), sub;
	unsigned int files = 0, first = 0;
	char text[64];

	if (!d || dir < 0) {
		free(d);
		if (dir >= 0)
			close(dir);
		return NULL;
	}
	d->index = index;
	d->ino = ino;
	read_line(dir, "info/architecture/device_name", d->name, sizeof(d->name));
	read_line(dir, "info/architecture/instance_type", d->instance, sizeof(d->instance));
	read_line(dir, "emulated", text, sizeof(text));
	d->emulated = atoi(text) == 1;
	read_line(dir, "info/architecture/arch_type", d->arch, sizeof(d->arch));
	read_line(dir, "neuron_core0/info/architecture/arch_type", d->core_arch,
		  sizeof(d->core_arch));
	if (wanted & READ_MEMORY)
		counter_open(&d->host, dir, "stats/memory_usage/host_mem/total");
	for (size_t i = 0; i < NR_ECC && wanted & READ_ECC; i++) {
		snprintf(text, sizeof(text), "stats/hardware/%s", ecc_files[i]);
		counter_open(&d->ecc[i], dir, text);
	}
	while (d->nr_hbms < NEURON_MAX_HBMS && (sub = open_sub(dir, "hbm", d->nr_hbms)) >= 0) {
		for (size_t i = 0; i < NR_HBM_FILES; i++)
			if (wanted & (i == HBM_TOTAL ? READ_MEMORY | READ_SIZE : READ_MEMORY))
				counter_open(&d->hbm[d->nr_hbms].file[i], sub, hbm_files[i]);
		d->nr_hbms++;
		close(sub);
	}
	while (d->nr_cores < NEURON_MAX_CORES &&
	       (sub = open_sub(dir, "neuron_core", d->nr_cores)) >= 0) {
		files = core_open(&d->core[d->nr_cores], sub, wanted);
		if (!d->nr_cores++)
			first = files;
		d->nr_found += files;
		close(sub);
	}
	d->nr_found += d->nr_hbms + d->nr_cores;
	/* Cores are added last, one by one, and have the same files. */
	read_line(dir, "core_count", text, sizeof(text));
	d->complete = d->nr_cores && (int)d->nr_cores >= atoi(text) && files >= first;
	read_geometry(d);
	close(dir);
	return d;
}

/* Calls @f for each counter of a device, but for errors only of one core in @every; else @others. */
static inline void device_each(struct device *d, void (*f)(struct counter *), unsigned int every,
			       unsigned int first, void (*others)(struct counter *))
{
	f(&d->host);
	for (size_t i = 0; i < NR_ECC; i++)
		f(&d->ecc[i]);
	for (unsigned int i = 0; i < d->nr_hbms; i++)
		for (size_t k = 0; k < NR_HBM_FILES; k++)
			f(&d->hbm[i].file[k]);
	for (unsigned int i = 0; i < d->nr_cores; i++) {
		for (size_t k = 0; k < NR_CORE_FILES; k++)
			f(&d->core[i].file[k]);
		for (size_t k = 0; k < NR_CATEGORIES; k++)
			f(&d->core[i].category[k]);
		for (size_t k = 0; k < NR_ERRORS; k++)
			(i % every == first ? f : others)(&d->core[i].error[k]);
	}
}

static inline void counter_close(struct counter *c)
{
	if (c->fd)
		close(c->fd);
}

static inline void device_close(struct device *d)
{
	device_each(d, counter_close, 1, 0, counter_close);
	free(d);
}

static inline void core_sums(struct core *c, double seconds)
{
	double micro = counter_rate(&c->file[CORE_TIME_IN_USE], seconds);

	c->inferences_per_s = counter_rate(&c->file[CORE_INFERENCES], seconds);
	c->busy = micro > 1e6 ? 1 : micro / 1e6;
	c->all_errors_per_s = NAN;
	for (size_t k = 0; k < NR_CLASSES; k++) {
		c->errors[k] = UNKNOWN;
		c->errors_per_s[k] = NAN;
	}
	for (size_t i = 0; i < NR_ERRORS; i++) {
		double rate = counter_rate(&c->error[i], seconds);

		add_known(&c->errors[errors[i].class], c->error[i].now);
		add_rate(&c->errors_per_s[errors[i].class], rate);
		add_rate(&c->all_errors_per_s, rate);
	}
	if (c->file[CORE_MEMORY].fd)
		return;
	for (size_t k = 0; k < NR_CATEGORIES; k++)
		add_known(&c->file[CORE_MEMORY].now, c->category[k].now);
}

/* By its owner; else by memory that is not the driver's own. */
static inline bool core_in_use(const struct device *d, const struct core *c)
{
	uint64_t used = c->file[CORE_MEMORY].now, driver = c->category[DRIVER_MEMORY].now;

	if (d->owners_known)
		return c->owner;
	return used != UNKNOWN && used > (driver == UNKNOWN ? 0 : driver);
}

static inline void device_read(struct device *d, double time, double seconds, unsigned int every,
			       unsigned int turn)
{
	uint64_t total = UNKNOWN, used = UNKNOWN, by_core = UNKNOWN;
	double busy = NAN;

	device_each(d, counter_read, every, turn % every, counter_keep);
	d->inferences_per_s = NAN;
	d->errors_per_s = NAN;
	d->cores_in_use = 0;
	for (unsigned int i = 0; i < d->nr_cores; i++) {
		struct core *c = &d->core[i];

		core_sums(c, seconds);
		add_known(&by_core, c->file[CORE_MEMORY].now);
		add_rate(&d->inferences_per_s, c->inferences_per_s);
		add_rate(&d->errors_per_s, c->all_errors_per_s);
		add_rate(&busy, c->busy);
		d->cores_in_use += core_in_use(d, c);
	}
	d->busy = d->nr_cores ? busy / d->nr_cores : NAN;
	for (unsigned int i = 0; i < d->nr_hbms; i++) {
		add_known(&used, d->hbm[i].file[HBM_USED].now);
		add_known(&total, d->hbm[i].file[HBM_TOTAL].now);
	}
	d->used = used == UNKNOWN ? by_core : used;
	if (total != UNKNOWN)
		d->total = total;
	history_add(&d->history, time, d->used);
}

/* ---- all of them --------------------------------------------------------------------- */

static inline int device_order(const void *a, const void *b)
{
	const struct device *const *x = a, *const *y = b;

	return ((*x)->index > (*y)->index) - ((*x)->index < (*y)->index);
}

static inline void device_found(struct devices *all, unsigned int index, ino_t ino)
{
	struct device *d, *old = NULL;

	for (size_t i = 0; i < all->count; i++)
		if (all->list[i]->index == index && all->list[i]->ino == ino)
			old = all->list[i];
	if (old)
		old->seen = true;
	if ((old && old->complete) ||
	    array_grow((void **)&all->list, all->count, &all->max, sizeof(*all->list)))
		return;
	d = device_open(dirfd(all->dir), index, ino, all->wanted);
	if (!d)
		return;
	if (old && d->nr_found <= old->nr_found) {
		device_close(d);
		return;
	}
	if (old) {
		/* It goes, and comes again with more. */
		old->seen = false;
		d->opened = old->opened;
		d->history = old->history;
	}
	d->seen = true;
	all->list[all->count++] = d;
}

/* A directory that stays empty may be that of a module that was unloaded and came back. */
static inline size_t devices_list(struct devices *all)
{
	struct dirent *entry;
	unsigned int index;
	size_t n = 0;
	char rest;

	if (all->dir)
		rewinddir(all->dir);
	else
		all->dir = opendir(SYSFS_DEVICES);
	while (all->dir && (entry = readdir(all->dir)))
		if (sscanf(entry->d_name, "neuron%u%c", &index, &rest) == 1) {
			device_found(all, index, entry->d_ino);
			n++;
		}
	if (!n && all->dir) {
		closedir(all->dir);
		all->dir = NULL;
	}
	return n;
}

/* Reads everything.  Returns whether a device came or went. */
static inline bool devices_read(struct devices *all, double time)
{
	bool had_dir = all->dir, changed = false;
	size_t kept = 0, before = all->count, nr_cores = 0;
	unsigned int every = 1;

	for (size_t i = 0; i < all->count; i++)
		all->list[i]->seen = false;
	if (!devices_list(all) && had_dir)
		devices_list(all);
	for (size_t i = 0; i < all->count; i++) {
		struct device *d = all->list[i];

		changed |= !d->seen || i >= before;
		if (d->seen)
			all->list[kept++] = d;
		else
			device_close(d);
	}
	all->count = kept;
	if (changed && kept)
		qsort(all->list, kept, sizeof(*all->list), device_order);
	for (size_t i = 0; i < kept; i++)
		nr_cores += all->list[i]->nr_cores;
	/* More than half of all files tell of errors; a read of each takes 2 us. */
	if (all->spread && !changed && nr_cores > FEW_CORES && time - all->time < ERROR_SECONDS)
		every = (unsigned int)lround(ERROR_SECONDS / fmax(time - all->time, 1));
	all->turn++;
	for (size_t i = 0; i < kept; i++)
		device_read(all->list[i], time, all->time ? time - all->time : 0, every, all->turn);
	all->time = time;
	return changed;
}

/* NULL: there is no such device. */
static inline struct device *devices_find(const struct devices *all, unsigned int index)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i]->index == index)
			return all->list[i];
	return NULL;
}

static inline void devices_close(struct devices *all)
{
	for (size_t i = 0; i < all->count; i++)
		device_close(all->list[i]);
	free(all->list);
	if (all->dir)
		closedir(all->dir);
}

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes that have Neuron devices open, as /proc shows them on any driver. */
#ifndef TOOLS_PROCESSES_H
#define TOOLS_PROCESSES_H

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <neuron/neuron.h>

struct process {
	unsigned int device;
	int pid;
	uint64_t client;	/* number that the driver gave it, 0: it gives none */
	uint64_t device_bytes;
	uint64_t hbm[NEURON_MAX_HBMS];	/* of these, by memory */
	uint64_t host_bytes;
	char name[32];
	char command[256];
};

struct processes {
	struct process *list;
	size_t count;
};

/* A file that is short: what there is of it, terminated. Returns its length. */
static inline size_t read_short(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t len = file ? fread(text, 1, size - 1, file) : 0;

	text[len] = 0;
	if (file)
		fclose(file);
	return len;
}

/* Bytes behind all keys that begin with @key, or the plain number behind it. */
static inline uint64_t fdinfo_sum(const char *text, const char *key)
{
	size_t len = strlen(key);
	uint64_t sum = 0;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		uint64_t value;
		char unit[4] = "";

		line += *line == '\n';
		if (strncmp(line, key, len) ||
		    sscanf(line + strcspn(line, ":\n"), ":%" SCNu64 " %3s", &value, unit) < 1)
			continue;
		sum += strcmp(unit, "KiB") ? value : value << 10;
	}
	return sum;
}

/* Arguments with spaces between them; what is not printable is the process's doing. */
static inline void read_words(int pid, const char *file, char *text, size_t size)
{
	char path[64];
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	len = read_short(path, text, size);
	while (len && (!text[len - 1] || text[len - 1] == '\n'))
		text[--len] = 0;
	for (size_t i = 0; i < len; i++)
		if (!text[i])
			text[i] = ' ';
		else if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
}

/* Several descriptors of a process, and those that a child inherited, are one client. */
static inline bool process_known(const struct processes *all, const struct process *p)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct process *q = &all->list[i];

		if (q->device == p->device &&
		    (p->client ? q->client == p->client : q->pid == p->pid))
			return true;
	}
	return false;
}

static inline int add_descriptor(struct processes *all, int pid, const char *fd)
{
	struct process p = { .pid = pid }, *more;
	char path[300], target[64], text[4096], key[32], rest;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/fd/%.255s", pid, fd);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return 0;
	target[len] = 0;
	if (sscanf(target, "/dev/neuron%u%c", &p.device, &rest) != 1)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.255s", pid, fd);
	read_short(path, text, sizeof(text));
	p.client = fdinfo_sum(text, "drm-client-id");
	/* A descriptor that only looks at a device makes no client. */
	if ((strstr(text, "drm-driver:") && !p.client) || process_known(all, &p))
		return 0;
	p.device_bytes = fdinfo_sum(text, "drm-total-hbm");
	for (unsigned int h = 0; h < NEURON_MAX_HBMS; h++) {
		snprintf(key, sizeof(key), "drm-total-hbm%u:", h);
		p.hbm[h] = fdinfo_sum(text, key);
	}
	p.host_bytes = fdinfo_sum(text, "drm-total-memory");
	read_words(pid, "comm", p.name, sizeof(p.name));
	read_words(pid, "cmdline", p.command, sizeof(p.command));
	more = realloc(all->list, (all->count + 1) * sizeof(p));
	if (!more)
		return -1;
	all->list = more;
	all->list[all->count++] = p;
	return 0;
}

/* Those of this user, or of all if that is root. Returns -1 without memory. */
static inline int find_processes(struct processes *all)
{
	struct dirent *entry, *fd;
	DIR *proc = opendir("/proc"), *fds;
	char path[64];
	int ret = 0;

	while (proc && !ret && (entry = readdir(proc))) {
		int pid = atoi(entry->d_name);

		if (pid <= 0 || pid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd", pid);
		fds = opendir(path);
		while (fds && !ret && (fd = readdir(fds)))
			ret = add_descriptor(all, pid, fd->d_name);
		if (fds)
			closedir(fds);
	}
	if (proc)
		closedir(proc);
	return ret;
}

#endif

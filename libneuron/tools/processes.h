/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes that have Neuron devices open, as /proc shows them on any driver. */
#ifndef TOOLS_PROCESSES_H
#define TOOLS_PROCESSES_H

#include <dirent.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <neuron/neuron.h>

#include "../../uapi/neuron_ioctl.h"
#include "../../uapi/neuron_native.h"
#include "../common/util.h"

struct process {
	unsigned int device;
	int pid;
	char user[40];		/* name, or number; useradd(8) takes 32 bytes */
	uint64_t client;	/* number that the driver gave it, 0: it gives none */
	uint64_t device_bytes;
	uint64_t hbm[NEURON_MAX_HBMS];	/* of these, by memory */
	uint64_t host_bytes;
	char name[32];
	char command[256];
	char fdinfo[300];	/* path of what the figures come from */
};

struct processes {
	struct process *list;
	size_t count;
};

static inline bool has_capability(unsigned int bit)
{
	char text[2048];
	const char *caps;
	unsigned long long effective = 0;

	read_short("/proc/self/status", text, sizeof(text));
	caps = strstr(text, "\nCapEff:");
	if (caps)
		sscanf(caps, "\nCapEff: %llx", &effective);
	return effective >> bit & 1;
}

/* What CAP_SYS_ADMIN lets one see. */
static inline bool sees_all(void)
{
	return has_capability(21);
}

/*
 * Would every process be found that has a device open?  That takes CAP_SYS_PTRACE, and the first
 * pid and user name spaces, whose numbers never change (include/linux/proc_ns.h of the kernel).
 */
static inline bool finds_all(void)
{
	static const char *const spaces[][2] = {
		{ "/proc/self/ns/pid", "pid:[4026531836]" },
		{ "/proc/self/ns/user", "user:[4026531837]" },
	};
	char text[64];

	for (unsigned int i = 0; i < ARRAY_SIZE(spaces); i++) {
		ssize_t n = readlink(spaces[i][0], text, sizeof(text) - 1);

		/* A kernel without such name spaces has one of each. */
		if (n < 0 && errno == ENOENT)
			continue;
		text[n < 0 ? 0 : n] = 0;
		if (strcmp(text, spaces[i][1]))
			return false;
	}
	return has_capability(19);
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
static inline void read_words(const char *proc, int pid, const char *file, char *text, size_t size)
{
	char path[64];
	size_t len;

	snprintf(path, sizeof(path), "%s/%d/%s", proc, pid, file);
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

static inline void parse_fdinfo(struct process *p, const char *text)
{
	char key[32];

	p->client = fdinfo_sum(text, "drm-client-id");
	p->device_bytes = fdinfo_sum(text, "drm-total-hbm");
	for (unsigned int h = 0; h < NEURON_MAX_HBMS; h++) {
		snprintf(key, sizeof(key), "drm-total-hbm%u:", h);
		p->hbm[h] = fdinfo_sum(text, key);
	}
	p->host_bytes = fdinfo_sum(text, "drm-total-memory");
}

static inline void read_user(uid_t uid, char *text, size_t size)
{
	const struct passwd *known = getpwuid(uid);

	if (known)
		snprintf(text, size, "%s", known->pw_name);
	else
		snprintf(text, size, "%u", uid);
}

/*
 * The device behind a descriptor. The driver says which; its path, as another root or mount name
 * space may have it, does not, but where the driver is an older one.
 */
static inline bool device_behind(const char *target, const char *fdinfo, unsigned int *device)
{
	const char *line = strstr(fdinfo, "\nneuron-device:");
	char rest;

	return line ? sscanf(line, "\nneuron-device: %u", device) == 1 :
		      sscanf(target, "/dev/neuron%u%c", device, &rest) == 1;
}

static inline int add_descriptor(struct processes *all, const char *proc, int pid, const char *fd)
{
	struct process p = { .pid = pid }, *more;
	char path[300], target[64], text[4096];
	struct stat st;
	ssize_t len;

	snprintf(path, sizeof(path), "%s/%d/fd/%.255s", proc, pid, fd);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return 0;
	target[len] = 0;
	/* Most are sockets, pipes and files: their figures are not read. */
	if (*target != '/' || (strncmp(target, "/dev/neuron", strlen("/dev/neuron")) &&
			       (stat(path, &st) || !S_ISCHR(st.st_mode))))
		return 0;
	snprintf(p.fdinfo, sizeof(p.fdinfo), "%s/%d/fdinfo/%.255s", proc, pid, fd);
	read_short(p.fdinfo, text, sizeof(text));
	if (!device_behind(target, text, &p.device))
		return 0;
	parse_fdinfo(&p, text);
	/* A descriptor that only looks at a device makes no client. */
	if ((strstr(text, "drm-driver:") && !p.client) || process_known(all, &p))
		return 0;
	snprintf(path, sizeof(path), "%s/%d", proc, pid);
	if (!stat(path, &st))
		read_user(st.st_uid, p.user, sizeof(p.user));
	read_words(proc, pid, "comm", p.name, sizeof(p.name));
	read_words(proc, pid, "cmdline", p.command, sizeof(p.command));
	more = realloc(all->list, (all->count + 1) * sizeof(p));
	if (!more)
		return -1;
	all->list = more;
	all->list[all->count++] = p;
	return 0;
}

/*
 * A process once for each device that it uses, with what its clients of it have together: it
 * has several if it inherited one and opened the device itself. @list: room for @count, which
 * may be @client. Returns how many there are.
 */
static inline size_t join_clients(struct process *list, const struct process *client, size_t count)
{
	size_t n = 0, at;

	for (size_t i = 0; i < count; i++) {
		const struct process *p = &client[i];

		for (at = 0; at < n; at++)
			if (list[at].device == p->device && list[at].pid == p->pid)
				break;
		if (at == n) {
			list[n++] = *p;
			continue;
		}
		list[at].device_bytes += p->device_bytes;
		list[at].host_bytes += p->host_bytes;
		for (unsigned int h = 0; h < NEURON_MAX_HBMS; h++)
			list[at].hbm[h] += p->hbm[h];
	}
	return n;
}

/* Those of this user, or of all if that is root. @proc: "/proc". Returns -1 without memory. */
static inline int find_clients(const char *proc, struct processes *all)
{
	struct dirent *entry, *fd;
	DIR *pids = opendir(proc), *fds;
	char path[64];
	int ret = 0;

	while (pids && !ret && (entry = readdir(pids))) {
		int pid = atoi(entry->d_name);

		if (pid <= 0 || pid == getpid())
			continue;
		snprintf(path, sizeof(path), "%s/%d/fd", proc, pid);
		fds = opendir(path);
		while (fds && !ret && (fd = readdir(fds)))
			ret = add_descriptor(all, proc, pid, fd->d_name);
		if (fds)
			closedir(fds);
	}
	if (pids)
		closedir(pids);
	return ret;
}

static inline int find_processes(const char *proc, struct processes *all)
{
	int ret = find_clients(proc, all);

	all->count = join_clients(all->list, all->list, all->count);
	return ret;
}

/* The process that owns each core, 0 none, NEURON_OWNER_OUTSIDE; returns 0, or -1 on a driver that does not tell. */
static inline int core_owners(int fd, uint32_t nr_cores, int32_t *owner)
{
	int ret = -1;

	for (uint32_t i = 0; i < nr_cores && i < NEURON_MAX_CORES; i++) {
		struct neuron_native_core_stats s = { .size = sizeof(s), .nc_id = i };

		if (!ioctl(fd, NEURON_NATIVE_CORE_STATS, &s)) {
			owner[i] = s.owner;
			ret = 0;
		}
	}
	return ret;
}

/* "0-3", @count numbers from @first. */
static inline const char *core_range(unsigned int first, unsigned int count)
{
	static char text[32];

	if (!count)
		return "-";
	snprintf(text, sizeof(text), count > 1 ? "%u-%u" : "%u", first, first + count - 1);
	return text;
}

/* Cores of a device that a process owns, physical numbers. */
static inline const char *owned_cores(const int32_t *owner, unsigned int nr_cores, int pid)
{
	static char text[64];
	size_t len = 0;

	text[0] = 0;
	for (unsigned int i = 0; i < nr_cores && i < NEURON_MAX_CORES; i++) {
		unsigned int last = i;

		if (owner[i] != pid)
			continue;
		while (last + 1 < nr_cores && last + 1 < NEURON_MAX_CORES && owner[last + 1] == pid)
			last++;
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len ? "," : "",
					core_range(i, last - i + 1));
		i = last;
	}
	return len ? text : "-";
}

#endif

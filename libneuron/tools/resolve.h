/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* neuron-mem resolve: whose an address is, and whose it was. */
#ifndef TOOLS_RESOLVE_H
#define TOOLS_RESOLVE_H

#include <inttypes.h>

#include "../common/maps.h"
#include "../common/snapshot_words.h"
#include "file.h"
#include "processes.h"

/* The number of a device by one of its nodes, wherever that is. */
static inline bool node_device(dev_t node, unsigned int *device)
{
	char path[64], target[256];
	const char *name;
	ssize_t len;
	char rest;

	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u", major(node), minor(node));
	len = readlink(path, target, sizeof(target) - 1);
	target[len < 0 ? 0 : len] = 0;
	name = strrchr(target, '/');
	return name && sscanf(name, "/neuron%u%c", device, &rest) == 1;
}

/*
 * Of which device a process has mapped a file: nodes in containers can have any name, but the
 * process has it open; else by its name.
 */
static inline bool mapped_device(int pid, const struct mapped *m, unsigned int *device)
{
	char path[300];
	struct dirent *fd;
	bool found = false;
	struct stat st;
	int len = 0;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	fds = opendir(path);
	while (fds && !found && (fd = readdir(fds))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%.255s", pid, fd->d_name);
		found = !stat(path, &st) && S_ISCHR(st.st_mode) && st.st_dev == m->dev &&
			st.st_ino == m->inode && node_device(st.st_rdev, device);
	}
	if (fds)
		closedir(fds);
	return found || (sscanf(m->path, "/dev/neuron%u%n", device, &len) == 1 &&
			 (!m->path[len] || !strcmp(m->path + len, " (deleted)")));
}

/* The offset that a process has mapped at an address; ends the program if there is none. */
static inline uint64_t resolve_process(int pid, uint64_t address, unsigned int *device)
{
	struct mapped m;
	char path[32];
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	ret = maps_find(path, address, &m);
	if (ret < 0)
		error(1, -ret, "%s", path);
	if (!ret)
		error(1, 0, "process %d has nothing mapped at 0x%" PRIx64, pid, address);
	if (!mapped_device(pid, &m, device))
		error(1, 0, "process %d has no Neuron device mapped at 0x%" PRIx64 ", but %s", pid,
		      address, *m.path ? m.path : "memory without a file");
	return m.offset;
}

static inline json_t *location_json(unsigned int device, uint64_t address,
				    const struct neuron_location *l)
{
	json_t *o = json_pack("{s:i, s:I, s:b, s:s, s:s}", "device", (int)device, "address",
			      INT(address), "freed", (int)l->freed, "state",
			      range_states[l->state], "text", l->text);

	if (l->hbm != UINT32_MAX)
		json_object_update_new(o, json_pack("{s:i, s:I, s:I}", "hbm", (int)l->hbm, "begin",
						    INT(l->address), "bytes", INT(l->bytes)));
	if (l->pid)
		json_object_update_new(o, json_pack(
			"{s:i, s:i, s:s, s:i, s:s}", "pid", l->pid, "owner", (int)l->owner, "label",
			l->label, "core", (int)l->nc, "category",
			neuron_mem_category_name(l->category)));
	if (l->freed)
		json_object_set_new(o, "freed_ns", json_integer(INT(l->freed_ns)));
	return o;
}

/* What there is now, and what was there before; 0 or -errno. */
static inline int resolve_show(struct neuron_device *device, uint64_t address, bool json)
{
	struct neuron_location now = { .size = sizeof(now) }, before = { .size = sizeof(before) };
	unsigned int index = neuron_device_index(device);
	json_t *list;
	int ret = neuron_address_resolve(device, address, 0, &now) ?:
		  neuron_address_resolve(device, address, NEURON_RESOLVE_FREED, &before);

	if (ret)
		return ret;
	if (!json) {
		printf("0x%" PRIx64 ": %s\n", address, now.text);
		if (before.freed && !now.freed)
			printf("%s\n", before.text);
		return 0;
	}
	list = json_pack("[o]", location_json(index, address, &now));
	if (before.freed && !now.freed)
		json_array_append_new(list, location_json(index, address, &before));
	print_json(list, 1);
	return 0;
}

#endif

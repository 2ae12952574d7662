/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why a device cannot be opened. */
#ifndef NEURON_ACCESS_H
#define NEURON_ACCESS_H

#include <errno.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCESS_ROOM 96

/* What programs say that have looked for devices. */
#define NO_DEVICE "no Neuron device; is the module loaded (modprobe neuron_emu)?"

/* Goes behind the name of a device that cannot be opened: who can, or what is missing; or "". */
static inline const char *access_hint(unsigned int device, int error, char text[ACCESS_ROOM])
{
	struct group group, *known = NULL;
	char path[32], room[1024], name[33];
	struct stat st;

	text[0] = 0;
	if (error == -ENOENT && access("/sys/class/neuron_device", F_OK)) {
		snprintf(text, ACCESS_ROOM, " (is the module loaded? modprobe neuron_emu)");
		return text;
	}
	snprintf(path, sizeof(path), "/dev/neuron%u", device);
	if (error != -EACCES || stat(path, &st))
		return text;
	if (!(st.st_mode & 0060)) {
		snprintf(text, ACCESS_ROOM, " (only root may open it)");
		return text;
	}
	if (!getgrgid_r(st.st_gid, &group, room, sizeof(room), &known) && known)
		snprintf(name, sizeof(name), "%.32s", group.gr_name);
	else
		snprintf(name, sizeof(name), "%u", st.st_gid);
	snprintf(text, ACCESS_ROOM, " (root and members of the group \"%s\" may open it)", name);
	return text;
}

#endif

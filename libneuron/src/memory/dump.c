// SPDX-License-Identifier: LGPL-2.1-or-later
/* A file for each of the first refusals of a process, if NEURON_MEMORY_DUMP says where. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../common/util.h"
#include "snapshot.h"

#define MAX_DUMPS 8	/* a loop that is refused again and again fills no disk */

void mem_dump(struct neuron_device *device, const struct neuron_mem_failure *failure)
{
	static atomic_uint dumps;
	/* Of a program with more rights than its user has, a file is not the user's to place. */
	const char *dir = secure_getenv("NEURON_MEMORY_DUMP");
	int error = errno, fd, bad;
	unsigned int number;
	char *path, *json;

	if (!dir || !*dir || failure->reason == NEURON_MEM_REASON_HOST || atomic_load(&dumps) >= MAX_DUMPS)
		return;
	number = atomic_fetch_add(&dumps, 1);
	if (number >= MAX_DUMPS || mem_snapshot_refused(device, failure, &json))
		goto out;
	if (asprintf(&path, "%s/neuron-memory-%lld-%d-%u.json", dir, (long long)time(NULL),
		     getpid(), number) < 0) {
		free(json);
		goto out;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	bad = fd >= 0 && write_bytes(fd, json, strlen(json));
	/* Half a file is none. */
	if (fd >= 0 && (close(fd) || bad))
		unlink(path);
	free(path);
	free(json);
out:
	errno = error;
}

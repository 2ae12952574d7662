/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tools do with files. */
#ifndef NEURON_TOOLS_FILE_H
#define NEURON_TOOLS_FILE_H

#include <argp.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "../common/env.h"
#include "../common/snapshot_words.h"
#include "../common/util.h"

/* All of a file or pipe, to be freed; or say why not and end with @status. */
static inline void *read_whole(const char *path, size_t *size, int status)
{
	FILE *f = fopen(path, "rb");
	size_t room = 0, n = 0, got;
	char *data = NULL;
	struct stat st;

	if (!f)
		error(status, errno, "%s", path);
	/* Some have no end, as /dev/zero. */
	if (!fstat(fileno(f), &st) && S_ISCHR(st.st_mode) && !isatty(fileno(f)))
		error(status, 0, "%s is a device", path);
	do {
		if (room - n < 65536) {
			room = room ? room * 2 : 1 << 20;
			data = realloc(data, room);
			if (!data)
				error(status, ENOMEM, "%s", path);
		}
		got = fread(data + n, 1, room - n, f);
		n += got;
	} while (got);
	if (ferror(f))
		error(status, errno, "%s", path);
	fclose(f);
	*size = n;
	return data;
}

static inline void write_whole(const char *path, const void *data, size_t size)
{
	FILE *f = fopen(path, "wb");

	if (!f || (size && fwrite(data, 1, size, f) != size) || fclose(f))
		error(EXIT_FAILURE, errno, "%s", path);
}

/* Beside the file, then in its place. */
static inline bool rename_over(const char *path, const char *data, size_t size, mode_t mode,
			       bool lasting)
{
	char *new;
	int fd, err;
	bool done;

	if (asprintf(&new, "%s.XXXXXX", path) < 0)
		return false;
	fd = mkostemp(new, O_CLOEXEC);
	done = fd >= 0 && !write_bytes(fd, data, size) && !fchmod(fd, mode) &&
	       (!lasting || !fsync(fd)) && !rename(new, path);
	err = errno;
	if (fd >= 0) {
		close(fd);
		if (!done)
			unlink(new);
	}
	free(new);
	errno = err;
	return done;
}

/*
 * All of it or what was there before, because readers come at any time.  A link stays and its
 * target is replaced; what is no regular file, such as a device, is written to.  A file has @mode
 * then.  @lasting: it also outlives a machine that stops.  False with errno, of a link to nothing,
 * too.
 */
static inline bool replace_file(const char *path, const char *data, size_t size, mode_t mode,
				bool lasting)
{
	struct stat st;
	char *real;
	bool done;
	int fd;

	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		done = fd >= 0 && !write_bytes(fd, data, size);
		return fd >= 0 && close(fd) ? false : done;
	}
	real = realpath(path, NULL);
	if (!real && (errno != ENOENT || !lstat(path, &st)))
		return false;
	done = rename_over(real ?: path, data, size, mode, lasting);
	free(real);
	return done;
}

/* What was printed has been written; or say why not and end with @status. */
static inline void end_output(int status)
{
	if (fflush(stdout) || ferror(stdout))
		error(status, errno, "output");
}

/* To the standard output; takes it.  NULL is one that there was no memory for. */
static inline void print_json(json_t *v, int status)
{
	if (!v || json_dumpf(v, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER) || putchar('\n') < 0)
		error(status, v ? errno : ENOMEM, "output");
	json_decref(v);
	end_output(status);
}

static inline json_t *release_json(const struct neuron_release *release)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < release->count && i < NEURON_RELEASE_ITEMS; i++)
		json_array_append_new(list, json_pack("{s:i, s:s, s:I}", "pid",
						      (int)release->item[i].pid, "label",
						      release->item[i].label, "bytes",
						      INT(release->item[i].bytes)));
	return json_pack("{s:i, s:I, s:o}", "count", (int)release->count, "bytes",
			 INT(release->bytes), "processes", list);
}

/* UINT32_MAX: there is none. */
static inline json_t *number_json(uint32_t n)
{
	return n == UINT32_MAX ? json_null() : json_integer(n);
}

/* An argument that is a version of NEFF. */
static inline void neff_version(const char *arg, uint64_t *major, uint64_t *minor,
				struct argp_state *state)
{
	unsigned long n = 0, behind = 0;
	const char *end;

	if (!env_digits(arg, &end, INT64_MAX, &n) || *end != '.' ||
	    !env_number(end + 1, INT64_MAX, &behind))
		argp_error(state, "%s is not MAJOR.MINOR", arg);
	*major = n;
	*minor = behind;
}

#endif

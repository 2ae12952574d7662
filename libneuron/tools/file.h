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
#include <string.h>
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

/* Writes what a file shall have; 0 or -errno. */
typedef int fill_file(int fd, void *arg);

struct file_bytes {
	const void *data;
	size_t size;
};

static inline int fill_bytes(int fd, void *arg)
{
	const struct file_bytes *bytes = arg;

	return write_bytes(fd, bytes->data, bytes->size);
}

/* Beside the file, then in its place. @owner: whose it is then, NULL: the caller's. */
static inline bool rename_over(const char *path, fill_file *fill, void *arg, mode_t mode,
			       bool lasting, const struct stat *owner)
{
	char *new;
	int fd, err;
	bool done;

	if (asprintf(&new, "%s.XXXXXX", path) < 0)
		return false;
	fd = mkostemp(new, O_CLOEXEC);
	done = fd >= 0 && (!owner || !fchown(fd, owner->st_uid, owner->st_gid));
	err = done ? -fill(fd, arg) : errno;
	done = done && !err && !fchmod(fd, mode) && (!lasting || !fsync(fd)) && !rename(new, path);
	err = err ?: errno;
	if (fd >= 0) {
		close(fd);
		if (!done)
			unlink(new);
	}
	free(new);
	errno = err;
	return done;
}

/* @mode: of a regular file; 0 is as it is, or what a new one has. */
static inline bool write_in_place(const char *path, fill_file *fill, void *arg, int flags,
				  mode_t mode)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY | flags, mode ?: 0666);
	int ret = fd < 0 ? -errno : 0;
	struct stat st;

	/* Others must not read what they could not read later. */
	if (!ret && mode && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    (st.st_mode & 0777) != mode && fchmod(fd, mode))
		ret = -errno;
	ret = ret ?: fill(fd, arg);
	if (fd >= 0 && close(fd) && !ret)
		ret = -errno;
	errno = -ret;
	return !ret;
}

/* As /dev/stdout: others go on with it, and it may have no name any more. */
static inline bool is_open(const struct stat *st)
{
	struct stat other;

	for (int fd = 0; fd < 10; fd++)
		if (!fstat(fd, &other) && other.st_dev == st->st_dev && other.st_ino == st->st_ino)
			return true;
	return false;
}

static inline bool replace_with(const char *path, fill_file *fill, void *arg, mode_t mode,
				bool lasting, const struct stat *owner)
{
	struct stat st;
	char *real;
	bool done;

	if (!stat(path, &st) && (!S_ISREG(st.st_mode) || is_open(&st)))
		return write_in_place(path, fill, arg, 0, mode);
	real = realpath(path, NULL);
	if (!real && (errno != ENOENT || !lstat(path, &st)))
		return false;
	done = rename_over(real ?: path, fill, arg, mode, lasting, owner);
	free(real);
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
	struct file_bytes bytes = { data, size };

	return replace_with(path, fill_bytes, &bytes, mode, lasting, NULL);
}

/*
 * What the user named: what was there before is lost only when all of the new is written.  Where
 * that cannot be, as in a directory of others or of a file that is a mount, it is written to.
 * @mode: 0 is that of the file, or what a new one has.
 */
static inline bool save_file(const char *path, fill_file *fill, void *arg, mode_t mode)
{
	mode_t mask = umask(0);
	struct stat st;
	bool there = !stat(path, &st);

	umask(mask);
	if (access(path, W_OK) && errno != ENOENT)
		return false;
	if (replace_with(path, fill, arg, mode ?: there ? st.st_mode & 0777 : 0666 & ~mask, false,
			 there ? &st : NULL))
		return true;
	if (errno != EACCES && errno != EPERM && errno != EROFS && errno != EBUSY &&
	    errno != ENAMETOOLONG && errno != ENOENT)
		return false;
	return write_in_place(path, fill, arg, O_CREAT, mode);
}

static inline void write_whole(const char *path, const void *data, size_t size, mode_t mode)
{
	struct file_bytes bytes = { data, size };

	if (!save_file(path, fill_bytes, &bytes, mode))
		error(EXIT_FAILURE, errno, "%s", path);
}

/* What was printed has been written; or say why not and end with @status. */
static inline void end_output(int status)
{
	if (fflush(stdout) || ferror(stdout))
		error(status, errno, "output");
}

/* "-" is the standard output. */
static inline void write_named(const char *path, const void *data, size_t size, mode_t mode)
{
	if (strcmp(path, "-")) {
		write_whole(path, data, size, mode);
		return;
	}
	fwrite(data, 1, size, stdout);
	end_output(EXIT_FAILURE);
}

/* To the standard output; takes it.  NULL is one that there was no memory for. */
static inline void print_json(json_t *v, int status)
{
	if (!v || json_dumpf(v, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER) || putchar('\n') < 0)
		error(status, v ? errno : ENOMEM, "output");
	json_decref(v);
	end_output(status);
}

static inline json_t *release_bytes(uint64_t bytes)
{
	return bytes == NEURON_RELEASE_UNKNOWN ? json_null() : json_integer(INT(bytes));
}

static inline json_t *release_json(const struct neuron_release *release)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < release->count && i < NEURON_RELEASE_ITEMS; i++)
		json_array_append_new(list, json_pack("{s:i, s:s, s:o}", "pid",
						      (int)release->item[i].pid, "label",
						      release->item[i].label, "bytes",
						      release_bytes(release->item[i].bytes)));
	return json_pack("{s:i, s:o, s:o}", "count", (int)release->count, "bytes",
			 release_bytes(release->bytes), "processes", list);
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

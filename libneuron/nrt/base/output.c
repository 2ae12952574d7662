// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files and directories that the runtime writes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"

int nrt_open_named(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	/* What is written to it may wait. */
	fcntl(fd, F_SETFL, 0);
	return fd;
}

/* Returns @fd if it belongs to this user, and has one name only if it is a file; or -errno. */
static int own(int fd, mode_t type)
{
	struct stat st;
	int ret;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		ret = -errno;
	else if ((st.st_mode & S_IFMT) != type || st.st_uid != geteuid() ||
		 (type == S_IFREG && st.st_nlink != 1))
		ret = -EPERM;
	else if (type == S_IFREG && ftruncate(fd, 0))
		ret = -errno;
	else
		return fd;
	close(fd);
	return ret;
}

static int open_own(int dir, const char *name, mode_t mode)
{
	return own(openat(dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
			  mode), S_IFREG);
}

int nrt_open_output(int dir, const char *name)
{
	return open_own(dir, name, 0666);
}

int nrt_open_private(const char *path)
{
	int fd = open_own(AT_FDCWD, path, 0600), ret;

	/* One of an earlier version may be there. */
	if (fd < 0 || !fchmod(fd, 0600))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int nrt_make_dir(const char *path)
{
	char part[PATH_MAX];

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	for (size_t i = 0; ; i++) {
		part[i] = path[i];
		if (i && (path[i] == '/' || !path[i])) {
			part[i] = '\0';
			if (mkdir(part, 0777) && errno != EEXIST)
				return -errno;
			part[i] = path[i];
		}
		if (!path[i])
			return 0;
	}
}

int nrt_open_session(const char *path)
{
	return own(mkdir(path, 0700) && errno != EEXIST ? -1 :
		   open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), S_IFDIR);
}

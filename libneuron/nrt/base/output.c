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
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	return fd < 0 ? -errno : fd;
}

int nrt_open_output(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
	struct stat st;
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		ret = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		ret = -EPERM;
	else if (ftruncate(fd, 0))
		ret = -errno;
	if (ret)
		close(fd);
	return ret ? ret : fd;
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
	int fd = mkdir(path, 0700) && errno != EEXIST ? -1 :
		 open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		ret = -errno;
	else if (st.st_uid != geteuid())
		ret = -EPERM;
	if (ret)
		close(fd);
	return ret ? ret : fd;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The place where the ranks of a job meet: a socket in a directory that only its user can
 * enter, named after the root of the job.  Beside it is a file with the secret of the
 * job, which the process with rank 0 holds a lock on for as long as it listens: what
 * nobody has locked is left from a process that died.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/log.h"
#include "hub.h"
#include "job.h"

#define SUFFIX ".sock"

/* ---- its name ---------------------------------------------------------------------- */

static bool is_loopback(int family, const unsigned char *address)
{
	return family == AF_INET ? address[0] == 127 :
	       !memcmp(address, &in6addr_loopback, sizeof(in6addr_loopback));
}

static bool is_local(int family, const unsigned char *address)
{
	struct ifaddrs *list;
	bool found = false;

	/* The loopback interface need not be up: nothing is sent. */
	if (is_loopback(family, address))
		return true;
	if (getifaddrs(&list))
		return false;
	for (struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != family)
			continue;
		if (family == AF_INET)
			found = !memcmp(&((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr,
					address, sizeof(struct in_addr));
		else
			found = !memcmp(&((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr,
					address, sizeof(struct in6_addr));
	}
	freeifaddrs(list);
	return found;
}

static void set_address(struct comm_place *place, int family, const unsigned char *ip,
			unsigned long port)
{
	memset(&place->root, 0, sizeof(place->root));
	place->root.any.sa_family = (sa_family_t)family;
	if (family == AF_INET) {
		memcpy(&place->root.v4.sin_addr, ip, sizeof(place->root.v4.sin_addr));
		place->root.v4.sin_port = htons((uint16_t)port);
	} else {
		memcpy(&place->root.v6.sin6_addr, ip, sizeof(place->root.v6.sin6_addr));
		place->root.v6.sin6_port = htons((uint16_t)port);
	}
	place->reach = is_loopback(family, ip) ? COMM_LOOPBACK :
		       is_local(family, ip) ? COMM_LOCAL : COMM_REMOTE;
}

/* "ip:port", an IPv6 address in brackets; also as a name of our own. */
static NRT_STATUS root_name(const char *func, struct comm_place *place)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	const char *text;
	unsigned char ip[sizeof(struct in6_addr)];
	char host[48], rest;
	unsigned long port;
	int family;
	NRT_STATUS status = job_root(func, &text);

	if (status != NRT_SUCCESS)
		return status;
	family = *text == '[' ? AF_INET6 : AF_INET;
	if (sscanf(text, family == AF_INET6 ? "[%47[^]]]:%lu%c" : "%47[^:]:%lu%c", host, &port,
		   &rest) != 2 || !isdigit((unsigned char)strrchr(text, ':')[1]) || !port ||
	    port > UINT16_MAX || inet_pton(family, host, ip) != 1) {
		LOG_AS(ENC, ERROR, func, "NEURON_RT_ROOT_COMM_ID=%s is not an address and a port",
		       text);
		return NRT_INVALID;
	}
	/* An IPv4 address, which the interfaces and the fabric have as such. */
	if (family == AF_INET6 && !memcmp(ip, mapped, sizeof(mapped))) {
		family = AF_INET;
		memmove(ip, ip + sizeof(mapped), sizeof(struct in_addr));
		inet_ntop(family, ip, host, sizeof(host));
	}
	set_address(place, family, ip, port);
	snprintf(place->name, sizeof(place->name), "%s-%lu", host, port);
	return NRT_SUCCESS;
}

/* ---- its directory ----------------------------------------------------------------- */

/* In @base, ours alone: a descriptor or -errno, -EPERM if it is another user's. */
static int open_private(const char *base)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/neuron-nrt-%u", base, geteuid()) >=
	    sizeof(path))
		return -ENAMETOOLONG;
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & (S_IRWXG | S_IRWXO)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

/*
 * The first one that is there.  /tmp is the last: anybody can have made a directory of that
 * name there before us.
 */
static int open_directory(const char *func)
{
	const char *given = getenv("XDG_RUNTIME_DIR");
	char of_user[32];
	const char *bases[] = { given, of_user, "/run", "/tmp" };
	int fd = -ENOENT;

	snprintf(of_user, sizeof(of_user), "/run/user/%u", geteuid());
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		if (!bases[i] || *bases[i] != '/')
			continue;
		fd = open_private(bases[i]);
		if (fd >= 0)
			return fd;
		if (fd == -EPERM)
			LOG_AS(ENC, WARN, func, "%s/neuron-nrt-%u is not a directory of this user alone",
			       bases[i], geteuid());
	}
	LOG_AS(ENC, ERROR, func,
	       "no directory to meet in: XDG_RUNTIME_DIR has to name one of this user alone (%s)",
	       strerror(-fd));
	return fd;
}

NRT_STATUS comm_place_open(const char *func, struct comm_place *place)
{
	NRT_STATUS status;

	place->dir = -1;
	status = root_name(func, place);
	if (status != NRT_SUCCESS)
		return status;
	place->dir = open_directory(func);
	if (place->dir < 0)
		return place->dir == -EMFILE || place->dir == -ENFILE ? NRT_RESOURCE : NRT_FAILURE;
	return NRT_SUCCESS;
}

void comm_place_close(struct comm_place *place)
{
	comm_close_fds(&place->dir, 1);
}

/* Two processes that can meet there say the same, and no others. */
int comm_place_host(const struct comm_place *place, uint8_t host[WORLD_HOST])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	uint64_t node[2];
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return -errno;
	memset(host, 0, WORLD_HOST);
	n = read(fd, host, WORLD_HOST - sizeof(node));
	close(fd);
	if (n <= 0 || fstat(place->dir, &st))
		return -EIO;
	node[0] = st.st_dev;
	node[1] = st.st_ino;
	memcpy(host + WORLD_HOST - sizeof(node), node, sizeof(node));
	return 0;
}

/* Through the descriptor: however long the path is, and whatever happens to its parts. */
void comm_place_address(const struct comm_place *place, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%s" SUFFIX,
		 place->dir, place->name);
}

/* ---- its files --------------------------------------------------------------------- */

int comm_random(uint8_t key[COMM_KEY])
{
	return getrandom(key, COMM_KEY, 0) == COMM_KEY ? 0 : -EIO;
}

int comm_place_secret(const struct comm_place *place, uint8_t key[COMM_KEY])
{
	int fd = openat(place->dir, place->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = pread(fd, key, COMM_KEY, 0);
	close(fd);
	return n == COMM_KEY ? 0 : -EAGAIN;
}

/* Only who has the lock takes the name away, so that it is the name of what is locked. */
static int lock_file(int dir, const char *name, int flags)
{
	struct stat st;
	int fd, ret;

	for (;;) {
		fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
		if (fd < 0)
			return -errno;
		ret = flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &st) ? -errno : 0;
		if (!ret && st.st_nlink)
			return fd;
		close(fd);
		if (ret)
			return ret == -EWOULDBLOCK ? -EADDRINUSE : ret;
	}
}

static void unlink_socket(int dir, const char *name)
{
	char path[sizeof(((struct comm_place *)NULL)->name) + sizeof(SUFFIX)];

	snprintf(path, sizeof(path), "%s" SUFFIX, name);
	unlinkat(dir, path, 0);
}

static void unlink_both(int dir, const char *name)
{
	unlink_socket(dir, name);
	unlinkat(dir, name, 0);
}

/* What dead processes left at places where nobody meets any more. */
static void sweep(const struct comm_place *place)
{
	int fd = openat(place->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *d;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (d = readdir(dir))) {
		/* Sockets and directories do not open like that. */
		int lock = strlen(d->d_name) < sizeof(place->name) ?
			   lock_file(place->dir, d->d_name, O_NONBLOCK) : -1;

		if (lock < 0)
			continue;
		unlink_both(place->dir, d->d_name);
		close(lock);
	}
	if (dir)
		closedir(dir);
}

int comm_place_take(const struct comm_place *place, uint8_t secret[COMM_KEY])
{
	int lock, ret;

	sweep(place);
	lock = lock_file(place->dir, place->name, O_CREAT);
	if (lock < 0)
		return lock;
	unlink_socket(place->dir, place->name);
	ret = comm_random(secret);
	if (!ret && pwrite(lock, secret, COMM_KEY, 0) != COMM_KEY)
		ret = -EIO;
	if (ret) {
		comm_place_leave(place, lock);
		return ret;
	}
	/* systemd-tmpfiles leaves alone what is in a directory that somebody has locked. */
	(void)flock(place->dir, LOCK_SH | LOCK_NB);
	return lock;
}

void comm_place_leave(const struct comm_place *place, int lock)
{
	unlink_both(place->dir, place->name);
	/* Also if a child has a copy of the descriptor. */
	flock(lock, LOCK_UN);
	close(lock);
}

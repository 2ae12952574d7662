// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>

#include "../common/env.h"
#include "../common/util.h"
#include "config.h"
#include "listen.h"

#define BACKLOG 128
#define FIRST_FD 3		/* of systemd */
#define GROUP "neuron"
/* Linux 6.16; of headers that are older. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* Made here, and removed at the end. */
static bool own_path, own_memory_path;

static void path_of(struct sockaddr_un *address, const char *suffix)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address->sun_path, sizeof(address->sun_path), "%s%s", config.endpoint, suffix);
}

/*
 * A socket that nobody listens on is left over from a daemon that was killed. The fate of the
 * second one is that of the first, if it is a socket.
 */
static int remove_stale(const struct sockaddr_un *address, bool first)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), ret = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!lstat(address->sun_path, &st)) {
		if (!S_ISSOCK(st.st_mode))
			ret = -EEXIST;
		else if (!first || (connect(fd, (const void *)address, sizeof(*address)) &&
				    errno == ECONNREFUSED))
			ret = unlink(address->sun_path) ? -errno : 0;
		else
			ret = -EADDRINUSE;
	}
	close(fd);
	return ret;
}

void listen_without_rights(int fd)
{
	const int off = 0;

	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

/* For its user and, as devices are, for the group. */
static int open_unix(const char *suffix, int type, int *socket_fd)
{
	const struct group *group = getgrnam(GROUP);
	struct sockaddr_un address;
	mode_t old;
	int fd, ret;

	path_of(&address, suffix);
	ret = remove_stale(&address, type == SOCK_STREAM);
	fd = ret ? -1 : socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (!ret && fd >= 0) {
		if (type == SOCK_STREAM)
			listen_without_rights(fd);
		old = umask(0117);
		if (bind(fd, (const void *)&address, sizeof(address)) || listen(fd, BACKLOG))
			ret = -errno;
		umask(old);
	}
	if (ret || fd < 0) {
		ret = ret ?: -errno;
		syslog(LOG_ERR, "%s: %s", address.sun_path, strerror(-ret));
		if (fd >= 0)
			close(fd);
		return ret;
	}
	if (group && !geteuid() && chown(address.sun_path, (uid_t)-1, group->gr_gid))
		syslog(LOG_WARNING, "%s: %s", address.sun_path, strerror(errno));
	*socket_fd = fd;
	return 0;
}

/* As in [::1]:50051. */
static char *without_brackets(char *host)
{
	size_t n = strlen(host);

	if (*host != '[' || host[n - 1] != ']')
		return host;
	host[n - 1] = 0;
	return host + 1;
}

/* Which one of the addresses of a name it is. */
static void tell_address(const struct addrinfo *info)
{
	char host[64], port[8];

	if (!getnameinfo(info->ai_addr, info->ai_addrlen, host, sizeof(host), port, sizeof(port),
			 NI_NUMERICHOST | NI_NUMERICSERV))
		syslog(LOG_NOTICE, "%s is %s, port %s", config.endpoint, host, port);
}

/* Anybody who reaches it is a client: the manual says so. */
static int open_tcp(int *socket_fd)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *info = NULL;
	char host[108];
	char *port;
	int fd = -1, ret, on = 1;

	snprintf(host, sizeof(host), "%s", config.endpoint);
	port = strrchr(host, ':');
	*port++ = 0;
	ret = getaddrinfo(*host ? without_brackets(host) : "localhost", port, &hints, &info);
	if (ret) {
		syslog(LOG_ERR, "%s: %s", config.endpoint, gai_strerror(ret));
		return -EINVAL;
	}
	fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, BACKLOG))
		ret = -errno;
	else
		tell_address(info);
	freeaddrinfo(info);
	if (ret) {
		syslog(LOG_ERR, "%s: %s", config.endpoint, strerror(-ret));
		if (fd >= 0)
			close(fd);
		return ret;
	}
	*socket_fd = fd;
	return 0;
}

/* Sockets of systemd, told apart by their type. 1: there are none. */
static int take_sockets(struct listeners *l)
{
	const char *pid = env_text("LISTEN_PID"), *count = env_text("LISTEN_FDS");
	unsigned long n;

	if (!pid || !count || !env_number(pid, INT32_MAX, &n) || n != (unsigned long)getpid() ||
	    !env_number(count, 16, &n) || !n)
		return 1;
	for (int fd = FIRST_FD; fd < FIRST_FD + (int)n; fd++) {
		int type = 0;
		socklen_t len = sizeof(type);

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) ||
		    fcntl(fd, F_SETFD, FD_CLOEXEC) || fcntl(fd, F_SETFL, O_NONBLOCK))
			return -errno;
		if (type == SOCK_STREAM)
			l->calls = fd;
		else if (type == SOCK_SEQPACKET)
			l->memory = fd;
	}
	if (l->calls < 0)
		syslog(LOG_ERR, "there is no stream socket among those of systemd");
	return l->calls < 0 ? -ENOTSOCK : 0;
}

static int open_all(struct listeners *l)
{
	int ret;

	ret = take_sockets(l);
	if (ret <= 0)
		return ret;
	if (config_is_tcp(config.endpoint))
		return open_tcp(&l->calls);
	ret = open_unix("", SOCK_STREAM, &l->calls);
	if (ret)
		return ret;
	own_path = true;
	ret = open_unix(MEMORY_SUFFIX, SOCK_SEQPACKET, &l->memory);
	own_memory_path = !ret;
	return ret;
}

int listen_open(struct listeners *l)
{
	int ret;

	l->calls = l->memory = -1;
	ret = open_all(l);
	/* Also of a socket that was given. */
	if (!ret)
		listen_without_rights(l->calls);
	return ret;
}

/* To close them would wait for what was sent to connections that were not accepted. */
void listen_remove(void)
{
	struct sockaddr_un address;

	path_of(&address, "");
	if (own_path)
		unlink(address.sun_path);
	path_of(&address, MEMORY_SUFFIX);
	if (own_memory_path)
		unlink(address.sun_path);
	own_path = own_memory_path = false;
}

void listen_notify(const char *state)
{
	const char *path = env_text("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (!path || strlen(path) >= sizeof(address.sun_path))
		return;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* Abstract names begin with a zero byte. */
	if (*path == '@')
		address.sun_path[0] = 0;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const void *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))) < 0)
		syslog(LOG_WARNING, "systemd is not told \"%s\": %s", state, strerror(errno));
	close(fd);
}

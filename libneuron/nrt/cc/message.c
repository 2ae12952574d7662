// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sending and receiving messages with descriptors. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "message.h"

int comm_send(int sock, const void *message, size_t size, const int *fds, uint32_t nr_fds)
{
	char control[CMSG_SPACE(COMM_MAX_RANKS * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)message, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nr_fds) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(nr_fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nr_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nr_fds * sizeof(int));
	}
	/* One message at a time is under way: it has room unless the peer plays tricks. */
	return sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size ? 0 :
	       errno ? -errno : -EIO;
}

void comm_close_fds(int *fds, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

ssize_t comm_receive(int sock, void *message, size_t size, int *fds, uint32_t nr_fds)
{
	char control[CMSG_SPACE(COMM_MAX_RANKS * sizeof(int))];
	struct iovec iov = { message, size };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	uint32_t got = 0;
	ssize_t n;

	for (uint32_t i = 0; i < nr_fds; i++)
		fds[i] = -1;
	n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		const unsigned char *data = CMSG_DATA(c);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t len = CMSG_LEN(sizeof(int)); len <= c->cmsg_len;
		     len += sizeof(int), data += sizeof(int)) {
			int fd;

			memcpy(&fd, data, sizeof(fd));
			if (got < nr_fds)
				fds[got++] = fd;
			else
				close(fd);
		}
	}
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		comm_close_fds(fds, nr_fds);
		/* There is room in @control for all of them, but not in the process. */
		return msg.msg_flags & MSG_CTRUNC ? -EMFILE : -EBADMSG;
	}
	return n;
}

/* Whoever else may enter the directory, for being root. */
bool comm_peer_is_us(int sock)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred cred;

	return !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.uid == geteuid();
}

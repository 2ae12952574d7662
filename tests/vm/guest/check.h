/* SPDX-License-Identifier: GPL-2.0-only */
/* What the test programs of a guest share. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "neuron_ioctl.h"
#include "neuron_native.h"
#include "point.h"

#define NODE	"/dev/neuron0"
#define SYSFS	"/sys/devices/virtual/neuron_device/neuron0/"

static inline int is_uml(void)
{
	char text[4096] = "";
	int fd = open("/proc/cpuinfo", O_RDONLY);

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return !!strstr(text, "User Mode Linux");
}

static inline int open_node(int flags)
{
	int fd = open(NODE, flags | O_CLOEXEC);

	if (fd < 0) {
		perror(NODE);
		exit(1);
	}
	return fd;
}

/* 0 or the errno; a positive result is no errno at all. */
static inline int call(int fd, unsigned long cmd, const void *arg)
{
	int rc = ioctl(fd, cmd, arg);

	return rc < 0 ? errno : rc ? 10000 + rc : 0;
}

static inline struct neuron_native_geometry geometry(int fd)
{
	struct neuron_native_geometry geo = { .size = sizeof(geo) };

	CHECK(!call(fd, NEURON_NATIVE_GET_GEOMETRY, &geo), "geometry");
	return geo;
}

static inline uint64_t alloc(int fd, uint64_t size, uint32_t hbm, uint32_t nc)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = size, .hbm = hbm, .nc_id = nc,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};

	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "allocate %llu KiB",
	      (unsigned long long)size >> 10);
	return a.mem_handle;
}

static inline int mem_free(int fd, uint64_t handle)
{
	struct neuron_ioctl_mem_free f = { .mem_handle = handle };

	return call(fd, NEURON_IOCTL_MEM_FREE, &f);
}

/* Device address of the register that adds to a semaphore (uapi/FACTS.md 6). */
static inline uint64_t sem_inc_address(const struct neuron_native_geometry *geo, uint32_t core,
				       uint32_t index)
{
	return geo->tpb_base[core] + (geo->arch == 1 ? 0x2701200 : 0x2701800) + 4 * index;
}

/* Send a descriptor over a socket; 0 or -1. */
static inline int pass_fd(int sock, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(sock, &msg, 0) == 1 ? 0 : -1;
}

/* The descriptor that came over a socket, or -1. */
static inline int take_fd(int sock)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(sock, &msg, 0) == 1 && (c = CMSG_FIRSTHDR(&msg)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* Run @fn in another process: its checks count here. */
static inline void in_child(void (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		failed = 0;
		fn();
		fflush(stdout);
		_exit(failed > 100 ? 100 : failed);
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status))
		CHECK(0, "a child of the test died");
	else
		failed += WEXITSTATUS(status);
}

#endif

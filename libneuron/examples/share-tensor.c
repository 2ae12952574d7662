// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Two processes share memory of a device through a dma-buf: one exports it and sends
 * the descriptor over a socket, the other imports it and writes to it.
 *
 *	cc share-tensor.c $(pkg-config --cflags --libs neuron)
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include <neuron/neuron.h>

#include "example.h"

#define BYTES 65536

static void send_fd(int sock, int fd)
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
	if (sendmsg(sock, &msg, 0) != 1)
		err(1, "sendmsg");
}

static int receive_fd(int sock)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd;

	if (recvmsg(sock, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
		errx(1, "no descriptor came");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* The other process: it has its own handle of the device. */
static void writer(int sock)
{
	static uint8_t bytes[BYTES];
	struct neuron_device *device;
	struct neuron_mem *mem;
	int fd = receive_fd(sock);

	check(neuron_device_open(0, &device), "device 0");
	check(neuron_mem_import(device, fd, &mem), "import");
	close(fd);
	fill(bytes, BYTES, 1);
	check(neuron_mem_write(mem, 0, bytes, BYTES), "write");
	neuron_mem_free(mem);
	neuron_device_close(device);
}

int main(void)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };
	static uint8_t bytes[BYTES];
	struct neuron_device *device;
	struct neuron_mem *mem;
	int sock[2], fd, status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock))
		err(1, "socketpair");
	/* Before the device is opened: handles are not for children. */
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	/* Each keeps its own end, so that it hears when the other one has gone. */
	close(sock[!pid ? 0 : 1]);
	if (!pid) {
		writer(sock[1]);
		return 0;
	}
	check(neuron_device_open(0, &device), "device 0");
	check(neuron_mem_alloc(device, BYTES, &opts, &mem), "memory");
	check(neuron_mem_export(mem, 0, &fd), "export");
	send_fd(sock[0], fd);
	close(fd);
	if (waitpid(pid, &status, 0) != pid || status)
		errx(1, "the other process failed");
	check(neuron_mem_read(mem, 0, bytes, BYTES), "read");
	printf("the other process wrote %d bytes, checksum %08x\n", BYTES,
	       checksum(bytes, BYTES));
	neuron_mem_free(mem);
	neuron_device_close(device);
	return 0;
}

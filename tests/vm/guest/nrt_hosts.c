// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collectives between hosts, on the driver: two processes that have nothing in common but the
 * fabric.  By a provider that takes memory of devices (tests/fabric/model.c) what is long goes from
 * device to device, by another one from memory of the host.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <nrt/nrt.h>
#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>

#include "emu.h"

#define HOSTS	2u
/* In a word, told to all, and several pieces for each host around the ring. */
static const uint32_t lengths[] = { 2, 3000, 1000003 };

static float value(uint32_t rank, size_t i)
{
	return (float)((i * 31 + rank * 1009) % 5000) - 1000;
}

/* The library wants no address of the loopback interface, which takes another one. */
static bool add_address(const char *address)
{
	struct ifreq r = { .ifr_name = "lo" };
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok;

	r.ifr_flags = IFF_UP | IFF_RUNNING;
	ok = !ioctl(fd, SIOCSIFFLAGS, &r);
	inet_pton(AF_INET, address, &a.sin_addr);
	strcpy(r.ifr_name, "lo:1");
	memcpy(&r.ifr_addr, &a, sizeof(a));
	ok &= !ioctl(fd, SIOCSIFADDR, &r);
	close(fd);
	return ok;
}

static unsigned long collectives(uint32_t core)
{
	char path[200];

	snprintf(path, sizeof(path), "/sys/devices/virtual/neuron_device/neuron0/neuron_core%u"
		 "/stats/memory_usage/device_mem/collectives/total", core);
	return strtoul(text_read(path), NULL, 10);
}

static bool reduce(uint32_t rank, uint32_t n)
{
	nrt_cc_comm_t comm = {
		.rank = rank, .rank_n = HOSTS, .ctx_device_id = rank, .ctx_device_count = HOSTS,
	};
	struct pollfd pfd = { .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN };
	nrt_tensor_t *t = NULL;
	nrt_tensor_list_t list = { &t, 1 };
	float *data = calloc(n, sizeof(*data));
	NRT_STATUS done = NRT_FAILURE;
	nrt_cc_context_t *c;
	nrta_seq_t seq;
	bool ok;

	for (size_t i = 0; i < n; i++)
		data[i] = value(rank, i);
	ok = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, n * 4ul, "t", &t) == NRT_SUCCESS &&
	     nrt_tensor_write(t, data, 0, n * 4ul) == NRT_SUCCESS &&
	     nrta_cc_prepare(&comm, &list, &list, NRT_DTYPE_FLOAT32, NRT_OP_ADD, NRT_CC_ALLREDUCE,
			     &c) == NRT_SUCCESS &&
	     nrta_cc_schedule(&c, 0, &done, &seq) == NRT_SUCCESS &&
	     nrta_event_register_seq_id_completion(seq, pfd.fd) == NRT_SUCCESS &&
	     poll(&pfd, 1, 120000) == 1 && done == NRT_SUCCESS &&
	     nrt_tensor_read(t, data, 0, n * 4ul) == NRT_SUCCESS;
	for (size_t i = 0; i < n && ok; i++)
		ok = data[i] == value(0, i) + value(1, i);
	nrt_tensor_free(&t);
	close(pfd.fd);
	free(data);
	return ok;
}

/* 0, or what has failed. */
static int host_main(uint32_t host, bool takes_devices)
{
	char text[32];
	int ret = 0;

	snprintf(text, sizeof(text), "/tmp/host%u", host);
	mkdir(text, 0700);
	setenv("XDG_RUNTIME_DIR", text, 1);
	snprintf(text, sizeof(text), "%u", host);
	setenv("NEURON_RT_VISIBLE_CORES", text, 1);
	if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS)
		return 1;
	if (nrt_cc_global_comm_init(0, host, HOSTS) != NRT_SUCCESS)
		ret = 2;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]) && !ret; i++)
		ret = reduce(host, lengths[i]) ? 0 : 3 + (int)i;
	/* What is left is the memory for what is long. */
	if (!ret && (collectives(host) >= lengths[2] * 4ul) != takes_devices)
		ret = 10;
	nrt_close();
	return ret;
}

static void run(const char *provider, bool takes_devices)
{
	pid_t pid[HOSTS];
	int status;

	setenv("NEURON_RT_FABRIC_PROVIDER", provider, 1);
	for (uint32_t i = 0; i < HOSTS; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(host_main(i, takes_devices));
	}
	for (uint32_t i = 0; i < HOSTS; i++) {
		status = -1;
		waitpid(pid[i], &status, 0);
		CHECK(!status, "by %s, host %u ends with %#x", provider, i, (unsigned int)status);
	}
}

int main(void)
{
	mkdir("/dev/shm", 01777);
	CHECK(!mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL), "memory that processes share");
	CHECK(add_address("10.99.0.1"), "an address");
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_MICROCODE_MB", "0", 1);
	setenv("NEURON_RT_ROOT_COMM_ID", "10.99.0.1:19000", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "120", 1);
	setenv("FI_PROVIDER_PATH", "/usr/lib/libfabric", 1);
	run("shm", false);
	run("model", true);
	umount("/dev/shm");
	return failed != 0;
}

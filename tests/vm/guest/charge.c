// SPDX-License-Identifier: GPL-2.0-only
/* K7: whose memory is charged to a core, and what of it counts for the limit of its owner. */
#include <signal.h>

#include "check.h"

#define MIB	(1ull << 20)

static int fd, to_owner;

static int take(uint32_t core, uint64_t bytes, int host, uint64_t *handle)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = bytes, .nc_id = core,
		.flags = host ? NEURON_NATIVE_ALLOC_HOST : NEURON_NATIVE_ALLOC_LOW,
		.mem_type = host ? NEURON_MEMALLOC_TYPE_TENSORS_HOST :
				   NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	int err = call(fd, NEURON_NATIVE_MEM_ALLOC, &a);

	if (handle)
		*handle = a.mem_handle;
	else if (!err)
		mem_free(fd, a.mem_handle);
	return err;
}

static int grow(uint64_t handle, uint64_t bytes)
{
	struct neuron_native_mem_grow g = {
		.size = sizeof(g), .mem_handle = handle, .bytes = bytes,
	};

	return call(fd, NEURON_NATIVE_MEM_GROW, &g);
}

/* Of core 0; what counts. */
static uint64_t limit(uint64_t bytes)
{
	struct neuron_native_limit l = {
		.size = sizeof(l), .flags = NEURON_NATIVE_LIMIT_SET, .what = NEURON_NATIVE_LIMIT_CORE,
		.bytes = bytes,
	};

	CHECK(!call(fd, NEURON_NATIVE_LIMIT, &l), "K7: a limit of %llu MiB for core 0",
	      (unsigned long long)(bytes >> 20));
	return l.used;
}

/* The owner of core 0, who has claimed core 1, until it is told to go. */
static void owner(int from)
{
	struct neuron_ioctl_semaphore s = { .semaphore_index = 1, .value = 1 };
	struct neuron_ioctl_crwl_nc_map claim = { .nc_count = 1, .start_nc_index = 1,
						  .end_nc_index = 1 };
	uint64_t handle;
	char c;

	fd = open_node(O_RDWR);
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_INCREMENT, &s), "K7: another process owns core 0");
	CHECK(!call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &claim), "K7: and has claimed core 1");
	CHECK(!take(0, 8 * MIB, 0, &handle),
	      "K7: it can have all of its limit, whatever others had before");
	CHECK(take(0, 4096, 0, NULL) == ENOMEM, "K7: and no more");
	CHECK(!take(1, 4096, 0, NULL), "K7: for the core that it has claimed, too");
	if (write(from, "r", 1) != 1 || read(from, &c, 1) < 0)
		failed++;
	fflush(stdout);
	_exit(failed);
}

static pid_t start_owner(void)
{
	int sock[2];
	pid_t pid;
	char c;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(sock[0]);
		owner(sock[1]);
	}
	close(sock[1]);
	to_owner = sock[0];
	CHECK(read(to_owner, &c, 1) == 1, "K7: the owner is ready");
	return pid;
}

/* A request that no device could fulfil, over and over, while others ask for a page. */
static void beside_absurd(void)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = 4096, .hbm = 1, .nc_id = 2,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	int i, err = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		fd = open_node(O_RDWR);
		while (take(2, -4096ull, 0, NULL) == ENOMEM)
			;
		_exit(1);
	}
	for (i = 0; i < 20000 && !err; i++) {
		err = call(fd, NEURON_NATIVE_MEM_ALLOC, &a);
		if (!err)
			err = mem_free(fd, a.mem_handle);
	}
	CHECK(!err, "K7: an absurd request of one process refuses nothing to another");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	uint64_t before;
	int status;
	pid_t pid;

	fd = open_node(O_RDWR);
	limit(8 * MIB);
	CHECK(!take(0, 6 * MIB, 0, &before), "K7: for a core that nobody owns: allowed");
	CHECK(take(0, 4 * MIB, 0, NULL) == ENOMEM, "K7: up to its limit");
	pid = start_owner();

	CHECK(take(0, 4096, 0, NULL) == EBUSY, "K7: for a core of another process: EBUSY");
	CHECK(take(0, 4096, 1, NULL) == EBUSY, "K7: host memory: EBUSY");
	CHECK(take(1, 4096, 0, NULL) == EBUSY, "K7: for a core that is claimed: EBUSY");
	CHECK(!take(2, 4096, 0, NULL), "K7: for another one: allowed");
	CHECK(take(99, 4096, 0, NULL) == EINVAL, "K7: for none that exists: EINVAL");
	CHECK(grow(before, 7 * MIB) == EBUSY, "K7: what is charged to it does not grow: EBUSY");
	CHECK(limit(9 * MIB) == 8 * MIB, "K7: what counts is the owner's");
	CHECK(!mem_free(fd, before), "K7: what was charged before is freed");
	CHECK(limit(9 * MIB) == 8 * MIB, "K7: which changes nothing for the owner");

	close(to_owner);
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "K7: the owner was content");
	CHECK(!take(0, 4096, 0, NULL) && !take(1, 4096, 0, NULL),
	      "K7: when it is gone, both are free again");
	CHECK(limit(NEURON_NATIVE_LIMIT_NONE) == 0, "K7: and nothing is charged");
	beside_absurd();
	return failed != 0;
}

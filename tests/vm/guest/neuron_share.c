// SPDX-License-Identifier: GPL-2.0-only
/* libneuron: memory of one process in another. */
#include <sys/mman.h>

#include <neuron/neuron.h>

#include "check.h"

#define BYTES	(64u << 10)

static int sock[2];

static void exporter(void)
{
	struct neuron_device *device;
	struct neuron_mem *mem;
	char data[BYTES];
	int fd = -1;

	memset(data, 0x5a, sizeof(data));
	CHECK(!neuron_device_open(0, &device), "a process opens the device");
	CHECK(!neuron_mem_alloc(device, BYTES, NULL, &mem) &&
	      !neuron_mem_write(mem, 0, data, BYTES), "fills memory");
	CHECK(neuron_mem_export(mem, 0, NULL) == -EINVAL, "needs a place for the descriptor");
	CHECK(neuron_mem_export(mem, ~0u, &fd) == -EINVAL && fd == -1, "and flags that exist");
	CHECK(!neuron_mem_export(mem, 0, &fd) && fd >= 0, "exports it");
	CHECK(!pass_fd(sock[0], fd), "pass the descriptor");
	close(fd);
	neuron_mem_free(mem);
	neuron_device_close(device);
}

int main(void)
{
	char data[BYTES], expected[BYTES];
	struct neuron_mem_info info = { .size = sizeof(info) };
	struct neuron_hbm_stats hbm = { .size = sizeof(hbm) };
	struct neuron_device *device;
	struct neuron_mem *mem;
	uint64_t used;
	void *va;
	int fd;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		return 1;
	CHECK(!neuron_device_open(0, &device) && !neuron_hbm_get_stats(device, 0, &hbm), "open");
	used = hbm.used;
	in_child(exporter);
	fd = take_fd(sock[1]);
	CHECK(fd >= 0, "receive it");
	CHECK(neuron_mem_import(device, -1, &mem) == -EBADF, "import: no descriptor");
	CHECK(neuron_mem_import(device, sock[0], &mem) == -EINVAL, "import: a socket");
	CHECK(neuron_mem_import(device, fd, NULL) == -EINVAL, "import: no result");
	CHECK(!neuron_mem_import(device, fd, &mem), "import");
	close(fd);
	memset(expected, 0x5a, sizeof(expected));
	CHECK(neuron_mem_bytes(mem) == BYTES && !neuron_mem_read(mem, 0, data, BYTES) &&
	      !memcmp(data, expected, BYTES), "the bytes of the other process");
	CHECK(!neuron_mem_map(mem, &va) && !memcmp(va, expected, BYTES), "also where it is mapped");
	CHECK(!neuron_mem_get_info(mem, &info) && info.address == neuron_mem_address(mem) &&
	      info.pid != (unsigned int)getpid(), "not allocated here");
	CHECK(!neuron_mem_export(mem, NEURON_MEM_EXPORT_RDONLY, &fd), "export it again");
	neuron_mem_free(mem);
	CHECK(neuron_mem_import(device, fd, &mem) == -EPERM, "a read-only one is not imported");
	va = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(va != MAP_FAILED && !memcmp(va, expected, BYTES), "but read");
	close(fd);
	munmap(va, BYTES);
	CHECK(!neuron_hbm_get_stats(device, 0, &hbm) && hbm.used == used, "all of it comes back");
	neuron_device_close(device);
	return failed != 0;
}

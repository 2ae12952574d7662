// SPDX-License-Identifier: GPL-2.0-only
/* What can be mapped and what cannot; each row of the table in uapi/README.md. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "check.h"
#include "device.h"

#define SIZE	(1u << 20)
#define SBUF	0x2000000u

static int fd;
static struct neuron_native_geometry geo;
static uint64_t at;

static sigjmp_buf jump;

static void on_bus(int sig)
{
	siglongjmp(jump, sig);
}

/* Does writing there end in SIGBUS? */
static int faults(volatile uint8_t *p)
{
	struct sigaction sa = { .sa_handler = on_bus }, old;
	volatile int hit = 1;

	sigaction(SIGBUS, &sa, &old);
	if (!sigsetjmp(jump, 1)) {
		*p = 1;
		hit = 0;
	}
	sigaction(SIGBUS, &old, NULL);
	return hit;
}

static void *map(int dev, uint64_t off, uint64_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_SHARED, dev, off);

	return p == MAP_FAILED ? NULL : p;
}

static int refused(uint64_t off, uint64_t len, int prot, int err)
{
	return !map(fd, off, len, prot) && errno == err;
}

static uint64_t address(uint64_t handle)
{
	__u64 pa = 0;
	struct neuron_ioctl_mem_get_pa g = { .mem_handle = handle, .pa = &pa };

	CHECK(!call(fd, NEURON_IOCTL_MEM_GET_PA, &g), "address");
	return pa;
}

static int info(uint32_t block, uint32_t id, uint32_t resource,
		struct neuron_ioctl_resource_mmap_info *r)
{
	*r = (struct neuron_ioctl_resource_mmap_info){
		.block = block, .block_id = id, .resource = resource,
	};
	return call(fd, NEURON_IOCTL_RESOURCE_MMAP_INFO, r);
}

static void other(void)
{
	struct neuron_ioctl_resource_mmap_info r;

	CHECK(!map(fd, at, PAGE, PROT_READ) && errno == EACCES, "an inherited descriptor");
	fd = open_node(O_RDWR);
	CHECK(refused(at, PAGE, PROT_READ, EPERM), "memory of another process");
	CHECK(!info(NEURON_DM_BLOCK_TPB, 0, NEURON_DM_RESOURCE_SBUF, &r) &&
	      refused(r.offset, SBUF, PROT_READ, EBUSY), "state buffer of another process");
	close(fd);
}

static void memory(void)
{
	uint64_t handle = alloc(fd, SIZE, 0, 0);
	uint8_t *p, *q;
	int ro;

	at = address(handle);
	p = map(fd, at, SIZE, PROT_READ | PROT_WRITE);
	CHECK(p, "all of an allocation");
	memset(p, 7, SIZE);
	q = map(fd, at + SIZE / 2, PAGE, PROT_READ);
	CHECK(q && q[0] == 7, "a page in its middle");
	p[SIZE / 2] = 8;
	CHECK(q && q[0] == 8, "and that page it is");
	munmap(q, PAGE);
	CHECK(refused(at, SIZE + PAGE, PROT_READ, EINVAL), "longer than it is");
	CHECK(refused(at + SIZE / 2, SIZE, PROT_READ, EINVAL), "past its end");
	CHECK(mremap(p, SIZE, SIZE + PAGE, MREMAP_MAYMOVE) == MAP_FAILED, "a mapping does not grow");
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, at) == MAP_FAILED && errno == EINVAL,
	      "private");
	CHECK(refused(geo.hbm[0].base, PAGE, PROT_READ, EPERM), "memory of the firmware");
	CHECK(refused(geo.hbm[1].base + (1ull << 30), PAGE, PROT_READ, EPERM), "free memory");
	CHECK(refused(1ull << 60, PAGE, PROT_READ, EPERM), "nothing at all");
	in_child(other);

	ro = open_node(O_RDONLY);
	q = map(ro, at, SIZE, PROT_READ);
	CHECK(q && q[0] == 7, "through a read-only descriptor");
	CHECK(mprotect(q, SIZE, PROT_READ | PROT_WRITE) && errno == EACCES,
	      "A13: mprotect does not make it writable");
	munmap(q, SIZE);
	CHECK(!map(ro, at, PAGE, PROT_READ | PROT_WRITE) && errno == EACCES, "nor mmap");
	close(ro);

	CHECK(!mem_free(fd, handle), "A4: free while mapped");
	handle = alloc(fd, SIZE, 0, 0);
	CHECK(address(handle) != at, "A4: the memory is not given to anybody else");
	mem_free(fd, handle);
	CHECK(p[SIZE - 1] == 7, "A4: and holds what it held");
	munmap(p, SIZE);
}

static void datastore(void)
{
	struct neuron_ioctl_neuron_ds_info ds = { .pid = 0 }, mine;
	uint64_t theirs;
	int ready[2], go[2];
	uint8_t *p;
	char c = 0;
	pid_t pid;

	if (pipe(ready) || pipe(go))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		fd = open_node(O_RDWR);
		if (call(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &ds) ||
		    write(ready[1], &ds, sizeof(ds)) < 0 || read(go[0], &c, 1) < 0)
			_exit(1);
		_exit(0);
	}
	CHECK(read(ready[0], &mine, sizeof(mine)) == sizeof(mine), "a process with a datastore");
	ds.pid = pid;
	CHECK(!call(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &ds), "is found");
	theirs = ds.mmap_offset;
	CHECK(refused(theirs, ds.size, PROT_READ | PROT_WRITE, EPERM), "A14: not for writing");
	p = map(fd, theirs, ds.size, PROT_READ);
	CHECK(p, "for reading");
	CHECK(mprotect(p, ds.size, PROT_READ | PROT_WRITE) && errno == EACCES,
	      "A13: which mprotect does not change");
	if (write(go[1], &c, 1) < 0)
		exit(1);
	waitpid(pid, NULL, 0);
	CHECK(p[0] == p[ds.size - 1], "it stays when the process is gone");
	munmap(p, ds.size);
	CHECK(refused(theirs, PAGE, PROT_READ, EPERM), "but is not found any more");
}

/*
 * A card's state buffers are in the BAR of its registers, of which only accesses of four bytes
 * are known to work.
 */
static void sbufs(void)
{
	struct neuron_ioctl_device_reset reset = { .nc_map = 1 };
	struct neuron_ioctl_resource_mmap_info r;
	uint64_t word = 0x44;
	struct neuron_ioctl_program_engine_nc64 program = {
		.dst = geo.tpb_base[1], .buffer = &word, .size = sizeof(word),
	};
	volatile uint32_t *p, *q;
	uint32_t i;

	info(NEURON_DM_BLOCK_TPB, 0, NEURON_DM_RESOURCE_SBUF, &r);
	p = map(fd, r.offset, r.size, PROT_READ | PROT_WRITE);
	CHECK(p, "mapped");
	if (!p)
		return;
	CHECK(!p[0] && !p[geo.sbuf_size / 4 - 1], "and clear");
	CHECK(refused(r.offset, r.size + PAGE, PROT_READ, EINVAL), "past its end");
	CHECK(refused(r.offset + r.size, PAGE, PROT_READ, EPERM), "what follows it");
	CHECK(faults((uint8_t *)p + geo.sbuf_size), "a real buffer may be shorter");
	for (i = 0; i < 2 * PAGE / 4; i++)
		p[i] = 0x42;
	q = map(fd, r.offset + PAGE, PAGE, PROT_READ);
	CHECK(q && q[0] == 0x42, "it is the state buffer");
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &reset), "reset");
	/* Where the driver checks, a reset may leave its owner's bytes; the next owner's are cleared. */
	CHECK(q && p[0] == q[0] && (is_checked() || !p[0]), "clears what is mapped");
	p[PAGE / 4] = 0x43;
	CHECK(q && q[0] == 0x43, "it is the same buffer in both");
	munmap((void *)q, PAGE);
	info(NEURON_DM_BLOCK_TPB, 1, NEURON_DM_RESOURCE_SBUF, &r);
	q = map(fd, r.offset, r.size, PROT_READ);
	CHECK(!call(fd, NEURON_IOCTL_PROGRAM_ENGINE_NC64, &program) && q && q[0] == 0x44 && p[0] != 0x44,
	      "that of another core is another one");
	munmap((void *)q, r.size);
	memory();
	munmap((void *)p, r.size);
}

static void resources(void)
{
	struct neuron_ioctl_resource_mmap_info r;
	uint32_t i;

	for (i = 0; i < geo.nr_hbms; i++)
		CHECK(info(NEURON_DM_BLOCK_HBM, i, NEURON_DM_RESOURCE_DMEM, &r) == EPERM,
		      "A11: not the whole of memory %u", i);
	CHECK(refused(geo.hbm[0].base, geo.hbm[0].size, PROT_READ, EPERM), "A11: nor by guessing");
	CHECK(info(NEURON_DM_BLOCK_HBM, i, NEURON_DM_RESOURCE_DMEM, &r) == EINVAL &&
	      info(NEURON_DM_BLOCK_HBM, 0, NEURON_DM_RESOURCE_SBUF, &r) == EINVAL &&
	      info(NEURON_DM_BLOCK_TPB, geo.nr_cores, NEURON_DM_RESOURCE_SBUF, &r) == EINVAL &&
	      info(NEURON_DM_BLOCK_TPB, 0, NEURON_DM_RESOURCE_DMEM, &r) == EINVAL &&
	      info(NEURON_DM_BLOCK_TOPSP, geo.nr_topsp, NEURON_DM_RESOURCE_ALL, &r) == EINVAL &&
	      info(3, 0, 0, &r) == EINVAL, "no such resource");
	CHECK(info(NEURON_DM_BLOCK_TPB, 0, NEURON_DM_RESOURCE_SEMAPHORE, &r) == EOPNOTSUPP &&
	      info(NEURON_DM_BLOCK_TOPSP, 0, NEURON_DM_RESOURCE_SEMAPHORE, &r) == EOPNOTSUPP &&
	      info(NEURON_DM_BLOCK_TOPSP, 0, NEURON_DM_RESOURCE_ALL, &r) == EOPNOTSUPP,
	      "registers");
	for (i = 0; i < geo.nr_cores; i++)
		CHECK(!info(NEURON_DM_BLOCK_TPB, i, NEURON_DM_RESOURCE_SBUF, &r) && r.size == SBUF &&
		      r.offset == 0x2000000000 + 0x4000000 * (uint64_t)i, "state buffer %u", i);
	sbufs();
}

/* Whatever a reset leaves, nobody sees bytes of a former owner. */
static void next_owner(void)
{
	struct neuron_ioctl_resource_mmap_info r;
	volatile uint32_t *p;

	info(NEURON_DM_BLOCK_TPB, 0, NEURON_DM_RESOURCE_SBUF, &r);
	p = map(fd, r.offset, r.size, PROT_READ);
	CHECK(p && !p[0] && !p[PAGE / 4] && !p[geo.sbuf_size / 4 - 1],
	      "the next owner's state buffer is clear");
	munmap((void *)p, r.size);
}

int main(void)
{
	device_settles();
	fd = open_node(O_RDWR);
	geo = geometry(fd);
	resources();
	datastore();
	close(fd);
	/* mmap() does not wait for the reset of a core. */
	device_settles();
	fd = open_node(O_RDWR);
	next_owner();
	close(fd);
	return failed != 0;
}

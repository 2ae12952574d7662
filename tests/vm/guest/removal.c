// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device is pulled out while a process uses all of it: open files, mapped
 * memory, copies, a DMA ring and an engine that feed each other for ever,
 * threads that wait.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>

#include "emu.h"
#include "neuron_isa.h"

#define MIB	(1u << 20)
#define RING	64
#define SEM	17

static int fd, dup_fd, look_fd, evfd, number;
static struct neuron_native_geometry geo;
static uint64_t device_mem, host_mem, other_mem;
static volatile uint32_t *device_map, *host_map;

static uint64_t alloc_as(uint64_t bytes, int host, uint32_t type, uint64_t *pa, uint64_t *offset)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = bytes, .mem_type = type,
		.flags = host ? NEURON_NATIVE_ALLOC_HOST : 0,
	};

	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "memory");
	if (pa)
		*pa = a.pa;
	if (offset)
		*offset = a.mmap_offset;
	return a.mem_handle;
}

static int buf_copy(uint64_t handle, void *buf, uint64_t size, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = buf, .size = size, .copy_to_mem_handle = to,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static uint32_t progress(void)
{
	struct neuron_ioctl_semaphore s = { .nc_id = 0, .semaphore_index = SEM };

	return call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s) ? 0 : s.value;
}

/*
 * A ring of which each descriptor feeds the same instructions to an engine,
 * whose last one starts the next descriptor.
 */
static void run_for_ever(void)
{
	struct neuron_isa_inst code[] = {
		{ .opcode = NEURON_ISA_OP_PROLOGUE, .magic = NEURON_ISA_MAGIC,
		  .u.prologue = { .signature = htole32(NEURON_ISA_SIGNATURE),
				  .version = htole16(NEURON_ISA_VERSION),
				  .engine = htole16(NEURON_ISA_ENGINE_POOL) } },
		{ .opcode = NEURON_ISA_OP_SEM_POST, .magic = NEURON_ISA_MAGIC,
		  .op = NEURON_ISA_POST_INC,
		  .u.sem = { .index = htole32(SEM), .value = htole32(1) } },
		{ .opcode = NEURON_ISA_OP_NOTIFY, .magic = NEURON_ISA_MAGIC },
		{ .opcode = NEURON_ISA_OP_DMA_TRIGGER, .magic = NEURON_ISA_MAGIC,
		  .u.dma = { .queue = htole16(1), .tx_count = htole32(1),
			     .rx_count = htole32(1) } },
	};
	struct neuron_ioctl_notifications_init_v2 nq = {
		.nq_type = NQ_TYPE_NOTIFY, .engine_index = NEURON_ISA_ENGINE_POOL, .size = 4096,
		.on_host_memory = 1,
	};
	struct neuron_native_nq_eventfd ev = {
		.size = sizeof(ev), .nq_type = NQ_TYPE_NOTIFY,
		.engine_index = NEURON_ISA_ENGINE_POOL,
	};
	struct neuron_ioctl_dma_queue_init init = {
		.eng_id = 0, .qid = 1, .tx_desc_count = RING, .rx_desc_count = RING,
	};
	struct neuron_ioctl_dma_queue_copy_start s = {
		.qid = 1, .tx_desc_count = 1, .rx_desc_count = 1,
	};
	uint64_t fifo = geo.tpb_base[0] + NEURON_ISA_FIFO_OFF(NEURON_ISA_ENGINE_POOL);
	struct { uint32_t ctrl, meta; uint64_t addr; } ring[2][RING];
	uint64_t code_pa, handle;
	int i;

	handle = alloc_as(4096, 0, NEURON_MEMALLOC_TYPE_CODE_DEVICE, &code_pa, NULL);
	CHECK(!buf_copy(handle, code, sizeof(code), 1), "instructions");
	init.tx_handle = alloc_as(4096, 1, NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST, NULL, NULL);
	init.rx_handle = alloc_as(4096, 0, NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE, NULL, NULL);
	for (i = 0; i < RING; i++) {
		ring[0][i].ctrl = sizeof(code) | 1u << 24 | 3u << 26;
		ring[0][i].meta = 0x01080003;
		ring[0][i].addr = code_pa;
		ring[1][i].ctrl = sizeof(code) | 1u << 24;
		ring[1][i].meta = 0;
		ring[1][i].addr = fifo;
	}
	CHECK(!buf_copy(init.tx_handle, ring[0], sizeof(ring[0]), 1) &&
	      !buf_copy(init.rx_handle, ring[1], sizeof(ring[1]), 1), "rings");
	CHECK(!call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &nq), "notification queue");
	evfd = ev.eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK(!call(fd, NEURON_NATIVE_NQ_EVENTFD, &ev), "eventfd");
	CHECK(!call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init) &&
	      !call(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &s), "start");
	for (i = 0; i < 3000 && progress() < 100; i++)
		usleep(10000);
	CHECK(progress() >= 100, "engine and ring feed each other");
}

/* What a thread saw at last. */
struct worker {
	const char *what;
	void (*fn)(struct worker *w);
	pthread_t thread;
	int result, expect;
};

static void do_copies(struct worker *w)
{
	char *buf = calloc(1, 2 * MIB);
	int i;

	for (i = 0; !w->result; i++)
		w->result = buf_copy(device_mem, buf, i % 2 ? 2 * MIB : 5000, i & 1);
	free(buf);
}

static void do_async(struct worker *w)
{
	struct neuron_ioctl_mem_copy_async64 c = {
		.src_mem_handle = device_mem, .dst_mem_handle = other_mem, .size = 4 * MIB,
		.pwait_handle = ~0u,
	};
	struct neuron_ioctl_mem_copy_async_wait wt = {
		.src_mem_handle = device_mem, .dst_mem_handle = other_mem,
	};

	while (!w->result) {
		w->result = call(fd, NEURON_IOCTL_MEM_COPY_ASYNC64, &c);
		wt.pwait_handle = c.wait_handle;
		if (!w->result)
			w->result = call(fd, NEURON_IOCTL_MEM_COPY_ASYNC_WAIT, &wt);
	}
}

static void do_alloc(struct worker *w)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = 300000, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};

	while (!w->result) {
		w->result = call(fd, NEURON_NATIVE_MEM_ALLOC, &a);
		if (!w->result)
			w->result = mem_free(fd, a.mem_handle);
	}
}

static void do_reset(struct worker *w)
{
	struct neuron_ioctl_device_reset r = { .nc_map = 2 };

	while (!w->result)
		w->result = call(fd, NEURON_IOCTL_NC_RESET, &r);
}

/* The lock of core 1 is taken: the second one waits for 4 seconds, again and again. */
static void do_lock(struct worker *w)
{
	struct neuron_ioctl_crwl l = { .nc_id = 1, .uuid = { .value = { 2 } } };

	do
		w->result = call(fd, NEURON_IOCTL_CRWL_WRITER_ENTER, &l);
	while (w->result == EBUSY);
}

static void do_poll(struct worker *w)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	w->result = poll(&p, 1, -1) == 1 ? p.revents : 0;
}

static __thread sigjmp_buf jump;

static void on_sigbus(int sig)
{
	siglongjmp(jump, sig);
}

static void do_touch(struct worker *w)
{
	uint32_t i = 0;

	w->result = sigsetjmp(jump, 1);
	for (; !w->result; i++)
		device_map[i % MIB] = i;
}

static struct worker workers[] = {
	{ .what = "copies end with ENODEV", .fn = do_copies, .expect = ENODEV },
	{ .what = "asynchronous copies end with ENODEV", .fn = do_async, .expect = ENODEV },
	{ .what = "allocations end with ENODEV", .fn = do_alloc, .expect = ENODEV },
	{ .what = "resets end with ENODEV", .fn = do_reset, .expect = ENODEV },
	{ .what = "a thread that waits wakes up with ENODEV", .fn = do_lock, .expect = ENODEV },
	{ .what = "poll() reports it", .fn = do_poll, .expect = POLLHUP | POLLERR },
	{ .what = "a mapping of device memory gives SIGBUS", .fn = do_touch, .expect = SIGBUS },
};

#define NR_WORKERS (sizeof(workers) / sizeof(workers[0]))

static void *work(void *arg)
{
	struct worker *w = arg;

	w->fn(w);
	return NULL;
}

static void set_up(void)
{
	struct neuron_ioctl_crwl l = { .nc_id = 1, .uuid = { .value = { 1 } } };
	uint64_t offset, host_offset;
	unsigned int i;

	fd = emu_open(number, O_RDWR);
	look_fd = emu_open(number, O_WRONLY);
	dup_fd = dup(fd);
	CHECK(fd >= 0 && look_fd >= 0, "open");
	geo = geometry(fd);
	device_mem = alloc_as(4 * MIB, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, NULL, &offset);
	other_mem = alloc_as(4 * MIB, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, NULL, NULL);
	host_mem = alloc_as(MIB, 1, NEURON_MEMALLOC_TYPE_TENSORS_HOST, NULL, &host_offset);
	device_map = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
	host_map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, host_offset);
	CHECK(device_map != MAP_FAILED && host_map != MAP_FAILED, "map");
	host_map[5] = 12345;
	device_map[MIB - 1] = 54321;
	CHECK(!call(fd, NEURON_IOCTL_CRWL_WRITER_ENTER, &l), "a lock");
	run_for_ever();
	signal(SIGBUS, on_sigbus);
	for (i = 0; i < NR_WORKERS; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
}

static void check_after(void)
{
	struct neuron_ioctl_compatible_version ver;
	struct pollfd p = { .fd = evfd, .events = POLLIN };
	struct neuron_native_mem_alloc a = { .size = sizeof(a), .bytes = 4096 };
	struct timespec now;
	unsigned int i;
	char c;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += 60;
	for (i = 0; i < NR_WORKERS; i++) {
		CHECK(!pthread_timedjoin_np(workers[i].thread, NULL, &now) &&
		      workers[i].result == workers[i].expect, "%s (%d)", workers[i].what,
		      workers[i].result);
	}
	CHECK(poll(&p, 1, 0) == 1, "the eventfd is signalled");
	CHECK(call(fd, NEURON_IOCTL_COMPATIBLE_VERSION, &ver) == ENODEV &&
	      call(dup_fd, NEURON_NATIVE_MEM_ALLOC, &a) == ENODEV &&
	      call(look_fd, NEURON_IOCTL_COMPATIBLE_VERSION, &ver) == ENODEV &&
	      call(fd, _IO('N', 191), NULL) == ENODEV &&
	      mem_free(fd, device_mem) == ENODEV, "every ioctl: ENODEV");
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == ENODEV,
	      "mmap: ENODEV");
	CHECK(emu_open(number, O_RDWR) < 0 && errno == ENOENT, "open: ENOENT");
	CHECK(host_map[5] == 12345 && (host_map[6] = 7) == 7, "host memory stays");
	if (!sigsetjmp(jump, 1)) {
		c = device_map[MIB - 1];
		CHECK(0, "device memory is still there (%d)", c);
	}
	CHECK(read(fd, &c, 1) < 0, "nothing to read");
}

/* Tells on @to what it has done, waits for the removal on @from. */
static int user(int to, int from)
{
	char c = 0;

	set_up();
	if (failed || write(to, &c, 1) != 1 || read(from, &c, 1) != 1)
		return 1;
	check_after();
	return failed != 0;
}

static void test_in_use(void)
{
	int to[2], from[2], status, again;
	char c = 0;
	pid_t pid;

	number = emu_add("gone");
	if (pipe(to) || pipe(from))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(user(from[1], to[0]));
	CHECK(read(from[0], &c, 1) == 1, "a process uses a device");
	usleep(300000);
	CHECK(!emu_set("gone", "live", "0"), "the device goes");
	CHECK(!strcmp(emu_get("gone", "dev_name"), "none"), "and is gone");
	CHECK(!emu_set("gone", "live", "1") &&
	      sscanf(emu_get("gone", "dev_name"), "neuron%d", &again) == 1 && again != number,
	      "another one comes, with another number as the first is still open");
	CHECK(write(to[1], &c, 1) == 1 && waitpid(pid, &status, 0) == pid, "its user looks");
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "what its user saw");
	CHECK(!emu_set("gone", "live", "0") && !emu_set("gone", "live", "1") &&
	      sscanf(emu_get("gone", "dev_name"), "neuron%d", &again) == 1 && again == number,
	      "after its end the number is free");
	emu_del("gone");
}

/* A process that is killed in the middle, and one that never closes. */
static void test_dies(void)
{
	int to[2], i, bad = 0, status;
	char c;
	pid_t pid;

	for (i = 0; i < 8; i++) {
		number = emu_add("gone");
		if (pipe(to))
			exit(1);
		fflush(stdout);
		pid = fork();
		if (!pid) {
			if (!freopen("/dev/null", "w", stdout))
				_exit(1);
			set_up();
			c = !!failed;
			_exit(write(to[1], &c, 1) == 1 && !pause());
		}
		close(to[1]);
		bad += read(to[0], &c, 1) != 1 || c;
		usleep(i * 5000);
		if (i & 1)
			kill(pid, SIGKILL);
		bad += emu_set("gone", "live", "0");
		kill(pid, SIGKILL);
		bad += waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status);
		bad += !!rmdir(emu_path("gone", ""));
		close(to[0]);
	}
	CHECK(!bad, "8 times, with a process that is killed before, at the same time or after");
}

int main(void)
{
	test_in_use();
	test_dies();
	return failed != 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes: who is attached, what fork, exec, dup, passing, pid namespaces and
 * devices of a container change, and that everything comes back from a process
 * that is killed in the middle of any operation.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "check.h"
#include "device.h"

#define MIB	(1ull << 20)

static struct neuron_native_geometry geo;
static int look;		/* write-only: it attaches nobody */

static uint64_t used(void)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < geo.nr_hbms; i++) {
		struct neuron_native_hbm_stats s = { .size = sizeof(s), .hbm = i };

		if (call(look, NEURON_NATIVE_HBM_STATS, &s))
			return ~0ull;
		sum += s.used;
	}
	return sum;
}

/* Nothing is used, owned, claimed or charged. */
static int idle_now(int quiet)
{
	struct neuron_ioctl_crwl_nc_map m = {
		.nc_count = geo.nr_cores, .end_nc_index = geo.nr_cores - 1,
	};
	uint64_t bytes = used();
	uint32_t i, c, owned = 0;

	for (i = 0; i < geo.nr_cores; i++) {
		struct neuron_native_core_stats s = { .size = sizeof(s), .nc_id = i };

		if (call(look, NEURON_NATIVE_CORE_STATS, &s))
			return 0;
		owned += s.owner != 0;
		bytes += s.host_bytes;
		for (c = 0; c < NEURON_NATIVE_MAX_CATEGORIES; c++)
			bytes += s.device_bytes[c];
	}
	if (call(look, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &m) ||
	    call(look, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK, &m)) {
		if (!quiet)
			printf("# not all cores are free\n");
		return 0;
	}
	if ((bytes || owned) && !quiet)
		printf("# %llu bytes, %u cores\n", (unsigned long long)bytes, owned);
	return !bytes && !owned;
}

/* At once; what a card's queues may reach comes back when their cores are reset. */
static int idle(void)
{
	int i;

	for (i = 0; i < 1000 && is_card() && !idle_now(1); i++)
		usleep(10000);
	return idle_now(0);
}

static uint64_t quiet_alloc(int fd, uint64_t size, uint32_t flags, uint32_t nc)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = size, .flags = flags, .nc_id = nc,
		.mem_type = flags & NEURON_NATIVE_ALLOC_HOST ?
			    NEURON_MEMALLOC_TYPE_TENSORS_HOST : NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};

	if (call(fd, NEURON_NATIVE_MEM_ALLOC, &a))
		_exit(1);
	return a.mem_handle;
}

static int buf(int fd, uint64_t handle, void *p, uint64_t size, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = p, .size = size, .copy_to_mem_handle = to,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

/* ---- kill -9 in the middle of everything ---- */

static void does_copies(int fd)
{
	struct neuron_ioctl_mem_copy64 c = { .size = 64 * MIB };

	c.src_mem_handle = quiet_alloc(fd, c.size, 0, 0);
	c.dst_mem_handle = quiet_alloc(fd, c.size, 0, 1);
	while (!call(fd, NEURON_IOCTL_MEM_COPY64, &c))
		;
}

static void does_zero_copies(int fd)
{
	uint64_t a = quiet_alloc(fd, 32 * MIB, 0, 0);
	char *p = malloc(32 * MIB);

	memset(p, 1, 32 * MIB);
	while (!buf(fd, a, p, 32 * MIB, 1) && !buf(fd, a, p, 32 * MIB, 0))
		;
}

static void does_small_copies(int fd)
{
	uint64_t a = quiet_alloc(fd, MIB, 0, 2);
	static char p[4096];

	while (!buf(fd, a, p, sizeof(p), 1) && !buf(fd, a, p, sizeof(p), 0))
		;
}

static void does_fills(int fd)
{
	struct neuron_ioctl_memset64 s = { .size = 128 * MIB, .value = 5 };

	s.mem_handle = quiet_alloc(fd, s.size, 0, 0);
	while (!call(fd, NEURON_IOCTL_MEMSET64, &s))
		;
}

static void does_async_copies(int fd)
{
	struct neuron_ioctl_mem_copy_async64 c = { .size = 64 * MIB, .pwait_handle = ~0u };

	c.src_mem_handle = quiet_alloc(fd, c.size, 0, 0);
	c.dst_mem_handle = quiet_alloc(fd, c.size, 0, 1);
	while (!call(fd, NEURON_IOCTL_MEM_COPY_ASYNC64, &c)) {
		struct neuron_native_copy_eventfd e = {
			.size = sizeof(e), .src_mem_handle = c.src_mem_handle,
			.dst_mem_handle = c.dst_mem_handle, .token = c.wait_handle,
			.eventfd = eventfd(0, EFD_CLOEXEC),
		};

		call(fd, NEURON_NATIVE_COPY_EVENTFD, &e);
		close(e.eventfd);
		c.pwait_handle = c.wait_handle;
	}
}

static void does_rings(int fd)
{
	struct {
		uint32_t ctrl, meta;
		uint64_t addr;
	} d[2][16];
	struct neuron_ioctl_dma_queue_init init = { .qid = 1, .tx_desc_count = 64, .rx_desc_count = 64 };
	struct neuron_ioctl_dma_queue_copy_start start = {
		.qid = 1, .tx_desc_count = 16, .rx_desc_count = 16,
	};
	uint64_t mem[2];
	int i, rx;

	init.tx_handle = quiet_alloc(fd, 4096, NEURON_NATIVE_ALLOC_HOST, 0);
	init.rx_handle = quiet_alloc(fd, 4096, 0, 0);
	for (rx = 0; rx < 2; rx++) {
		__u64 pa = 0;
		struct neuron_ioctl_mem_get_pa g = { .pa = &pa };

		g.mem_handle = mem[rx] = quiet_alloc(fd, MIB, 0, 0);
		call(fd, NEURON_IOCTL_MEM_GET_PA, &g);
		for (i = 0; i < 16; i++) {
			d[rx][i].ctrl = 1u << 24 | (rx ? 0 : 3u << 26);
			d[rx][i].meta = rx ? 0 : 0x01080003;
			d[rx][i].addr = pa + i * 65536;
		}
	}
	for (;;) {
		if (call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init))
			return;
		for (rx = 0; rx < 2; rx++) {
			struct neuron_ioctl_dma_copy_descriptors64 c = {
				.mem_handle = rx ? init.rx_handle : init.tx_handle, .buffer = d[rx],
				.num_descs = 16, .queue_type = rx,
			};

			if (call(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &c))
				return;
		}
		if (call(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &start))
			return;
	}
}

static void does_programs(int fd)
{
	char *p = calloc(1, 4 * MIB);
	struct neuron_ioctl_program_engine_nc64 w = {
		.dst = geo.tpb_base[1], .buffer = p, .size = 4 * MIB,
	};

	while (!call(fd, NEURON_IOCTL_PROGRAM_ENGINE_NC64, &w))
		;
}

static void waits_for_notices(int fd)
{
	struct neuron_ioctl_notifications_init_with_realloc_v2 nq = {
		.nq_type = NQ_TYPE_NOTIFY, .size = 65536, .on_host_memory = 1, .force_alloc_mem = 1,
	};
	struct pollfd p = { .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN };
	struct neuron_native_nq_eventfd e = {
		.size = sizeof(e), .nq_type = NQ_TYPE_NOTIFY, .eventfd = p.fd,
	};

	while (!call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &nq) &&
	       !call(fd, NEURON_NATIVE_NQ_EVENTFD, &e))
		poll(&p, 1, 3);
}

static void does_resets(int fd)
{
	struct neuron_ioctl_device_reset r = { .nc_map = 3 };
	struct neuron_ioctl_semaphore s = { .nc_id = 0 };

	while (!call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s) && !call(fd, NEURON_IOCTL_NC_RESET, &r))
		;
}

static void maps(int fd)
{
	struct neuron_ioctl_mem_get_info g = { 0 };
	__u64 off, pa;
	uint64_t i;
	char *p;

	g.mmap_offset = &off;
	g.pa = &pa;
	for (;;) {
		g.mem_handle = quiet_alloc(fd, 16 * MIB, 0, 0);
		if (call(fd, NEURON_IOCTL_MEM_GET_INFO, &g))
			return;
		p = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, off);
		if (p == MAP_FAILED || mem_free(fd, g.mem_handle))
			return;
		for (i = 0; i < 16 * MIB; i += 4096)
			p[i] = 1;
		munmap(p, 16 * MIB);
	}
}

static void allocates(int fd)
{
	uint64_t h[64];
	int i;

	for (;;) {
		for (i = 0; i < 64; i++)
			h[i] = quiet_alloc(fd, 4096 + i * 8192, i & 1, i % geo.nr_cores);
		for (i = 0; i < 64; i++)
			if (mem_free(fd, h[i]))
				return;
	}
}

static void waits_for_locks(int fd)
{
	struct neuron_ioctl_crwl a = { .nc_id = 1 }, b = { .nc_id = 1, .uuid = { { 1 } } };

	if (!call(fd, NEURON_IOCTL_CRWL_WRITER_ENTER, &a))
		call(fd, NEURON_IOCTL_CRWL_WRITER_ENTER, &b);
}

static void claims(int fd)
{
	struct neuron_ioctl_crwl_nc_map m = {
		.nc_count = geo.nr_cores, .end_nc_index = geo.nr_cores - 1,
	};

	while (!call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &m) &&
	       !call(fd, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK, &m))
		;
}

static void publishes(int fd)
{
	struct neuron_ioctl_neuron_ds_info ds = { 0 };

	for (;;) {
		ds.pid = 0;
		if (call(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &ds) ||
		    call(fd, NEURON_IOCTL_RELEASE_NEURON_DS, &ds))
			return;
	}
}

static const struct {
	const char *name;
	void (*fn)(int fd);
} work[] = {
	{ "copies", does_copies }, { "zero copies", does_zero_copies },
	{ "small copies", does_small_copies }, { "fills", does_fills },
	{ "asynchronous copies", does_async_copies }, { "runs a ring", does_rings },
	{ "writes to a core's window", does_programs },
	{ "waits for notifications", waits_for_notices }, { "resets", does_resets },
	{ "maps and faults", maps }, { "allocates", allocates },
	{ "waits for a lock", waits_for_locks }, { "claims cores", claims },
	{ "publishes counters", publishes },
};

#define NR_WORK	(sizeof(work) / sizeof(work[0]))

static void kill_one(unsigned int which, int round, int threads)
{
	int ready[2], status, i;
	char c = 0;
	pid_t pid;

	if (pipe(ready))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int fd = open_node(O_RDWR);

		/* Several threads at it, and a child that has the descriptor. */
		if (threads && !fork()) {
			close(ready[0]);
			close(ready[1]);
			usleep(300000);
			_exit(0);
		}
		for (i = 0; i < threads; i++) {
			pthread_t t;

			pthread_create(&t, NULL, (void *(*)(void *))(void *)work[which].fn,
				       (void *)(long)fd);
		}
		if (write(ready[1], &c, 1) != 1)
			_exit(1);
		work[which].fn(fd);
		/* The work goes on for ever; should it end, the parent still kills this process. */
		pause();
	}
	close(ready[1]);
	CHECK(read(ready[0], &c, 1) == 1, "a process %s", work[which].name);
	close(ready[0]);
	usleep(2000 + 13000 * round);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && idle(), "%s: killed, everything is back", work[which].name);
}

/* ---- who is attached ---- */

static int other;
static uint64_t other_handle;

static void has_inherited(void)
{
	int fd;

	CHECK(mem_free(other, other_handle) == EACCES, "a child cannot use its parent's descriptor");
	fd = open_node(O_RDWR);
	CHECK(mem_free(fd, other_handle) == ENOENT, "nor its memory through one of its own");
	CHECK(mem_free(other, other_handle) == EACCES, "nor then its parent's");
	close(other);
}

static void *opens(void *arg)
{
	*(int *)arg = open_node(O_RDWR);
	return NULL;
}

static void attach(void)
{
	int a = open_node(O_RDWR), b = open_node(O_RDONLY), i, fds[100], bad = 0;
	uint64_t h = alloc(a, MIB, 0, 0);
	char word[4];
	pthread_t t;

	CHECK(!buf(b, h, word, 4, 1), "all descriptors of a process have the same memory");
	close(a);
	CHECK(!buf(b, h, word, 4, 1), "closing one of two detaches nothing");
	a = dup(b);
	close(b);
	CHECK(!buf(a, h, word, 4, 1), "nor does closing the original of a duplicate");
	other = a;
	other_handle = h;
	in_child(has_inherited);
	CHECK(!buf(a, h, word, 4, 1), "nor what children do");
	for (i = 0; i < 100; i++) {
		fds[i] = open(NODE, (i & 1 ? O_WRONLY : O_WRONLY | O_RDWR) | O_CLOEXEC);
		bad += fds[i] < 0 || mem_free(fds[i], h) != EACCES;
	}
	CHECK(!bad, "100 write-only descriptors attach nobody and may do nothing");
	for (i = 0; i < 100; i++)
		close(fds[i]);
	CHECK(!buf(a, h, word, 4, 1), "closing them detaches nobody");
	pthread_create(&t, NULL, opens, &i);
	pthread_join(t, NULL);
	CHECK(!mem_free(i, h), "what a thread opened is its process's, also when it is gone");
	close(i);
	alloc(a, MIB, 0, 0);
	close(a);
	CHECK(idle(), "the last one detaches");
}

/* Main thread gone, the others work. */
static void *survivor(void *arg)
{
	int fd = *(int *)arg;
	char word[4];

	usleep(200000);
	CHECK(!buf(fd, other_handle, word, 4, 1), "the first thread is gone, the process is there");
	fflush(stdout);
	_exit(failed);
}

static void leader_leaves(void)
{
	static int fd;
	pthread_t t;

	fd = open_node(O_RDWR);
	other_handle = alloc(fd, 4096, 0, 0);
	pthread_create(&t, NULL, survivor, &fd);
	/* This thread only. */
	syscall(SYS_exit, 0);
}

static void execs(void)
{
	int fd = open(NODE, O_RDWR);
	char a[32], b[32];

	snprintf(a, sizeof(a), "%d", fd);
	snprintf(b, sizeof(b), "%llu", (unsigned long long)alloc(fd, 4096, 0, 0));
	execl("/proc/self/exe", "process", a, b, NULL);
	CHECK(0, "exec");
}

static void after_exec(int fd, uint64_t handle)
{
	char word[4];

	CHECK(!buf(fd, handle, word, 4, 1), "a descriptor that stays open over exec still works");
}

/* A program opens the device: over what its caller left, which somebody else may have, too. */
static int opens_again(const char *how)
{
	int fd = open(NODE, O_RDWR);

	CHECK(*how == 'd' ? fd < 0 && errno == EBUSY : fd >= 0, "exec %s, and open the device",
	      *how == 'd' ? "as another user" : "as the same user");
	return failed != 0;
}

static void exec_as(uid_t uid, const char *how)
{
	int fd = open(NODE, O_RDWR);

	CHECK(fd >= 0 && !setresuid(uid, uid, -1), "become user %u", (unsigned int)uid);
	/* It is the same program as before. */
	close(open_node(O_RDWR));
	execl("/proc/self/exe", "process", how, NULL);
	CHECK(0, "exec");
}

static void execs_as_other(void)
{
	exec_as(1234, "different");
}

static void execs_as_same(void)
{
	exec_as(0, "same");
}

/* ---- passed on ---- */

static void passing(int take)
{
	struct neuron_ioctl_semaphore s = { .nc_id = 0 };
	struct neuron_ioctl_device_basic_info info;
	int pair[2], fd = -1;
	char c = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		fd = open_node(O_RDWR);
		quiet_alloc(fd, 8 * MIB, 0, 0);
		if (call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s) || pass_fd(pair[0], fd) ||
		    (take && read(pair[0], &c, 1) != 1))
			_exit(1);
		_exit(0);
	}
	if (take) {
		fd = take_fd(pair[1]);
		CHECK(fd >= 0 && used() == 8 * MIB, "a descriptor is passed on, its sender lives");
		CHECK(mem_free(fd, 1) == EACCES && call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s) == EACCES,
		      "it gives nothing of the sender's");
		if (write(pair[1], &c, 1) != 1)
			exit(1);
	}
	waitpid(pid, NULL, 0);
	CHECK(idle(), "the sender is gone and its memory is back, though the descriptor is %s",
	      take ? "open" : "under way");
	if (!take)
		fd = take_fd(pair[1]);
	CHECK(fd >= 0 && mem_free(fd, 1) == EACCES &&
	      !call(fd, NEURON_IOCTL_DEVICE_BASIC_INFO, &info),
	      "the receiver may look at the device with it, no more");
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

/* ---- namespaces ---- */

static pid_t fork_in_namespace(void)
{
	fflush(stdout);
	return syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
}

static void namespaces(void)
{
	struct neuron_native_core_stats s = { .size = sizeof(s) };
	struct neuron_ioctl_semaphore sem = { .nc_id = 1 };
	int fd = open_node(O_RDWR), p[2], status;
	char c = 0;
	pid_t pid;

	if (pipe(p))
		exit(1);
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &sem), "use core 1");
	pid = fork_in_namespace();
	if (!pid) {
		struct neuron_ioctl_mem_get_extended_info ext = { 0 };
		struct neuron_ioctl_device_reset reset = { .nc_map = 1 };
		struct {
			struct neuron_ioctl_get_apps_info h;
			struct neuron_app_info app[16];
		} apps = { .h.apps_info_flags = APP_INFO_ALL, .h.capacity = 16 };
		int own = open_node(O_RDWR), first = -1;
		unsigned int i, me = 0, strangers = 0;

		failed = 0;
		ext.mem_handle = alloc(own, MIB, 0, 0);
		CHECK(getpid() == 1 && !call(own, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &ext) &&
		      ext.pid == 1, "first process of a pid namespace: its memory is of process 1");
		sem.nc_id = 0;
		CHECK(!call(own, NEURON_IOCTL_SEMAPHORE_WRITE, &sem) &&
		      !call(own, NEURON_NATIVE_CORE_STATS, &s) && s.owner == 1, "core 0 is its own");
		s.nc_id = 1;
		CHECK(!call(own, NEURON_NATIVE_CORE_STATS, &s) &&
		      s.owner == NEURON_NATIVE_OWNER_OUTSIDE, "who has core 1 is outside");
		s.nc_id = 2;
		CHECK(!call(own, NEURON_NATIVE_CORE_STATS, &s) && !s.owner, "nobody has core 2");
		CHECK(!system("neuron-mem 0 | grep -q '^neuron0 core 1 .*, a process outside'"),
		      "neuron-mem says so");
		CHECK(!system("neuron-ls >/tmp/outside; ! grep -q 'No process' /tmp/outside"),
		      "somebody uses it");
		CHECK(!system("neuron-ls | grep -q '^neuron0 *outside *1  *- *- *-'"), "neuron-ls");
		CHECK(!system("neuron-monitor -t /tmp/outside.prom -n 1 >/dev/null && "
			      "grep -q '^neuron_core_in_use{.*neuron_core=\"1\".*} 1$' /tmp/outside.prom"),
		      "neuron-monitor");
		sem.nc_id = 1;
		CHECK(call(own, NEURON_IOCTL_SEMAPHORE_WRITE, &sem) == EBUSY, "but has it");
		CHECK(!call(own, NEURON_IOCTL_NC_RESET, &reset) && reset.request_id == 1,
		      "its reset is that of process 1");
		CHECK(!call(own, NEURON_IOCTL_DEVICE_APP_PID, &first) && first == 0,
		      "the first process of the device has no number there, either");
		CHECK(!call(own, NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, &apps), "list of processes");
		for (i = 0; i < apps.h.size; i++) {
			me += apps.app[i].pid == 1;
			strangers += apps.app[i].pid == 0;
		}
		CHECK(me == 1 && strangers == 1, "itself, and one without a number");
		fflush(stdout);
		c = failed;
		if (write(p[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	if (pid < 0 && errno == EINVAL) {
		printf("ok - this kernel has no pid namespaces # SKIP\n");
		close(fd);
		return;
	}
	if (pid < 0) {
		CHECK(0, "a process in a pid namespace");
		exit(1);
	}
	CHECK(read(p[0], &c, 1) == 1 && !c, "a process in a pid namespace");
	CHECK(!call(fd, NEURON_NATIVE_CORE_STATS, &s) && s.owner == pid,
	      "seen from outside core 0 is that of process %d", (int)pid);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	close(fd);
	CHECK(idle(), "the namespace is gone, everything is back");
	close(p[0]);
	close(p[1]);
}

/* Numbers are relative to the node that was opened. */
static void container(void)
{
	struct neuron_ioctl_crwl_nc_map m = { .nc_count = 1, .end_nc_index = 0 };
	struct neuron_ioctl_semaphore s = { .nc_id = 0 };
	struct neuron_ioctl_device_bdf_ext at[2] = { { .nd_index = 1 }, { .nd_index = 0 } };
	struct neuron_ioctl_device_bdf bdf;
	int fd[4], i, wr;
	char name[32];
	pid_t pid;

	close(look);
	/* Children of those killed last may still have descriptors. */
	for (i = 0; i < 600 && system("rmmod neuron_emu 2>/dev/null"); i++)
		usleep(100000);
	CHECK(i < 600 && !system("modprobe neuron_emu nr_devices=4"), "four devices");
	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "/dev/neuron%d", i);
		fd[i] = open(name, O_RDWR | O_CLOEXEC);
		CHECK(fd[i] >= 0, "open %s", name);
	}
	CHECK(!call(fd[1], NEURON_IOCTL_DEVICE_BDF_EXT, &at[0]) &&
	      !call(fd[2], NEURON_IOCTL_DEVICE_BDF_EXT, &at[1]) &&
	      !call(fd[2], NEURON_IOCTL_DEVICE_BDF, &bdf) &&
	      at[0].bus_number == at[1].bus_number && at[0].slot == at[1].slot &&
	      bdf.bus_number == at[0].bus_number,
	      "the device after number 1 is number 2");
	at[0].nd_index = 1;
	CHECK(call(fd[3], NEURON_IOCTL_DEVICE_BDF_EXT, &at[0]) == EINVAL, "none is after the last");

	wr = open("/dev/neuron1", O_WRONLY | O_CLOEXEC);
	CHECK(!call(wr, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &m) && m.bitmap == 1,
	      "claim the first core of the node that is open");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int zero = open("/dev/neuron0", O_RDWR), one = open("/dev/neuron1", O_RDWR);

		_exit(!(!call(zero, NEURON_IOCTL_SEMAPHORE_WRITE, &s) &&
			call(one, NEURON_IOCTL_SEMAPHORE_WRITE, &s) == EBUSY));
	}
	waitpid(pid, &i, 0);
	CHECK(WIFEXITED(i) && !WEXITSTATUS(i), "it is that of number 1, not of number 0");
	m.start_nc_index = m.end_nc_index = geo.nr_cores;
	CHECK(!call(wr, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &m), "claim the first of the next");
	CHECK(!call(fd[2], NEURON_IOCTL_SEMAPHORE_WRITE, &s), "and use it");
	close(wr);
	for (i = 0; i < 4; i++)
		close(fd[i]);
	CHECK(!system("rmmod neuron_emu && modprobe neuron_emu"), "load for the tests that follow");
	look = open_node(O_WRONLY);
}

int main(int argc, char **argv)
{
	unsigned int i;
	int round;

	if (argc == 3) {
		after_exec(atoi(argv[1]), strtoull(argv[2], NULL, 10));
		return failed;
	}
	if (argc == 2)
		return opens_again(argv[1]);
	look = open_node(O_WRONLY);
	geo = geometry(look);
	CHECK(idle(), "nothing is in use");
	attach();
	in_child(leader_leaves);
	CHECK(idle(), "nothing is left of it");
	in_child(execs);
	CHECK(idle(), "nor of that");
	CHECK(!chmod(NODE, 0666), "everybody may open it");
	in_child(execs_as_same);
	in_child(execs_as_other);
	CHECK(!chmod(NODE, 0600) && idle(), "nor of these");
	passing(1);
	passing(0);
	namespaces();
	for (i = 0; i < NR_WORK; i++)
		for (round = 0; round < 4; round++)
			kill_one(i, round, 0);
	for (i = 0; i < NR_WORK; i++)
		kill_one(i, 2, 3);
	/* Four cards would need a machine of that size. */
	if (!is_card())
		container();
	CHECK(idle(), "nothing is in use at the end");
	close(look);
	return failed != 0;
}

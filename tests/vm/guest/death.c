// SPDX-License-Identifier: GPL-2.0-only
/*
 * Death of a process: what it owned comes back whatever happened to its
 * descriptors, and nothing that happens after wait() has to be tried twice.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "check.h"

#define MIB	(1ull << 20)
#define SLOTS	16		/* processes that may have a device open */
#define CORE	1

static struct neuron_native_geometry geo;
static int look;		/* write-only: it attaches nobody */
static uint64_t whole;		/* largest run of an idle HBM 0 */

/* What somebody else keeps of a process that takes things and dies. */
static struct {
	int sock;		/* to the test */
	int alive;		/* readable (end of file) when a keeper is to go */
} line;

static struct neuron_native_hbm_stats stats(void)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };

	if (call(look, NEURON_NATIVE_HBM_STATS, &s))
		exit(1);
	return s;
}

static int take_core(int fd)
{
	struct neuron_ioctl_semaphore s = { .nc_id = CORE };

	return call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s);
}

static int take_memory(int fd, uint64_t bytes, uint64_t *handle)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = bytes, .nc_id = CORE,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	int err = call(fd, NEURON_NATIVE_MEM_ALLOC, &a);

	*handle = a.mem_handle;
	return err;
}

static int word(int fd, uint64_t handle)
{
	char w[4] = { 0 };
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = w, .size = 4, .copy_to_mem_handle = 1,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

/* Everything is back before long, without anybody asking for it. */
static int comes_back(void)
{
	struct neuron_native_core_stats s = { .size = sizeof(s), .nc_id = CORE };
	int i;

	for (i = 0; i < 1000; i++, usleep(10000))
		if (!stats().used && !call(look, NEURON_NATIVE_CORE_STATS, &s) && !s.owner)
			return 1;
	printf("# %llu bytes, core of %d\n", (unsigned long long)stats().used, s.owner);
	return 0;
}

/* It is back for whoever wants it at once: all of the memory, and the core. */
static void is_there(void)
{
	uint64_t handle;
	int fd = open_node(O_RDWR);

	CHECK(!take_memory(fd, whole, &handle), "its memory is there for the next one at once");
	CHECK(!mem_free(fd, handle) && !take_core(fd), "and its core");
	close(fd);
}

static void wants_core(void)
{
	int fd = open_node(O_RDWR);

	CHECK(!take_core(fd), "its core is there for the next one at once");
}

static void claims_core(void)
{
	struct neuron_ioctl_crwl_nc_map m = {
		.nc_count = 1, .start_nc_index = CORE, .end_nc_index = CORE,
	};

	CHECK(!call(look, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &m) &&
	      !call(look, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK, &m), "its core can be claimed at once");
}

static int open_and_take(void)
{
	uint64_t handle;
	int fd = open_node(O_RDWR);

	if (take_memory(fd, 64 * MIB, &handle) || take_core(fd))
		_exit(1);
	return fd;
}

/* ---- ways to leave a descriptor behind ---- */

static void keep_until_told(void)
{
	char c;

	close(line.sock);
	while (read(line.alive, &c, 1) > 0)
		;
	_exit(0);
}

static void by_message(int fd)
{
	if (pass_fd(line.sock, fd))
		_exit(1);
	close(fd);
}

static void by_fork(int fd)
{
	if (!fork())
		keep_until_told();
	close(fd);
}


/* The table of descriptors is shared: nothing in it is closed. */
static int shares(void *arg)
{
	char c;

	while (read(*(int *)arg, &c, 1) > 0)
		;
	return 0;
}

static void by_files(int fd)
{
	if (fd < 0 || syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL) == 0)
		_exit(shares(&line.alive));
}

static void by_files_and_memory(int fd)
{
	static char stack[65536] __attribute__((aligned(16)));

	if (fd < 0 || clone(shares, stack + sizeof(stack), CLONE_FILES | CLONE_VM | SIGCHLD,
			    &line.alive) < 0)
		_exit(1);
}

static const struct {
	const char *name;
	void (*fn)(int fd);
	int sent;		/* the test gets the descriptor */
} ways[] = {
	{ "passed on", by_message, 1 },
	{ "inherited by a child", by_fork, 0 },
	{ "in a shared table", by_files, 0 },
	{ "in a shared table, memory shared, too", by_files_and_memory, 0 },
};

/*
 * A process takes memory and a core, leaves its descriptor behind and dies.
 * Whoever keeps the descriptor goes when *@alive is closed.
 */
static int leave(unsigned int way, int killed, int *alive)
{
	int pair[2], p[2], status, fd = -1;
	char c = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) || pipe2(p, O_CLOEXEC))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(pair[1]);
		close(p[1]);
		line.sock = pair[0];
		line.alive = p[0];
		ways[way].fn(open_and_take());
		if (write(line.sock, &c, 1) != 1 || read(line.sock, &c, 1) != 1)
			_exit(1);
		_exit(0);
	}
	close(pair[0]);
	close(p[0]);
	*alive = p[1];
	if (ways[way].sent)
		fd = take_fd(pair[1]);
	CHECK(read(pair[1], &c, 1) == 1 && stats().used >= 64 * MIB,
	      "a process with 64 MiB, its descriptor %s", ways[way].name);
	if (killed)
		kill(pid, SIGKILL);
	else if (write(pair[1], &c, 1) != 1)
		exit(1);
	waitpid(pid, &status, 0);
	close(pair[1]);
	return fd;
}

static void test_K3_comes_back(unsigned int way, int killed)
{
	int alive, fd = leave(way, killed, &alive);

	CHECK(comes_back(), "K3: %s: all it had comes back", ways[way].name);
	close(alive);
	close(fd);
}

static void test_K3_at_once(unsigned int way, void (*wants)(void))
{
	int alive, fd = leave(way, 1, &alive);

	printf("# K3: %s\n", ways[way].name);
	in_child(wants);
	close(alive);
	close(fd);
	CHECK(comes_back(), "K3: and nothing is left");
}

static void test_K3_holder(void)
{
	struct neuron_ioctl_device_basic_info info;
	int alive, fd = leave(0, 0, &alive);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	CHECK(map == MAP_FAILED && poll(&p, 1, 0) >= 0, "K3: the holder maps nothing");
	CHECK(mem_free(fd, 1) == EACCES && take_core(fd) == EACCES, "K3: it may change nothing");
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_BASIC_INFO, &info), "K3: it may look at the device");
	CHECK(comes_back(), "K3: none of that keeps anything");
	close(alive);
	close(fd);
}

static void test_K3_slots(void)
{
	int alive[SLOTS], fd[SLOTS], i, bad = 0;

	for (i = 0; i < SLOTS; i++) {
		fd[i] = leave(0, i & 1, &alive[i]);
		bad += fd[i] < 0;
	}
	i = open(NODE, O_RDWR | O_CLOEXEC);
	CHECK(!bad && i >= 0, "K3: %d processes died, their descriptors are kept: open", SLOTS);
	close(i);
	for (i = 0; i < SLOTS; i++) {
		close(fd[i]);
		close(alive[i]);
	}
}

/* ---- what is not the death of a process ---- */

static void *execs(void *arg)
{
	int to = *(int *)arg;
	char fd[16], handle[32], sock[16];
	uint64_t h;
	int f = open(NODE, O_RDWR);

	if (take_memory(f, 64 * MIB, &h) || take_core(f) || pass_fd(to, f))
		_exit(1);
	snprintf(fd, sizeof(fd), "%d", f);
	snprintf(handle, sizeof(handle), "%llu", (unsigned long long)h);
	snprintf(sock, sizeof(sock), "%d", to);
	execl("/proc/self/exe", "death", fd, handle, sock, NULL);
	_exit(1);
}

/* The program that the process executes then: 0 if it is the owner still. */
static int after_exec(int fd, uint64_t handle, int sock)
{
	char c;
	int bad;

	usleep(200000);
	bad = word(fd, handle) || take_core(fd);
	c = bad ? 'n' : 'y';
	close(fd);
	return write(sock, &c, 1) != 1 || bad;
}

static void *goes_on(void *arg)
{
	int to = *(int *)arg;
	int fd = open(NODE, O_RDWR | O_CLOEXEC);
	uint64_t h;
	char c;

	if (take_memory(fd, 64 * MIB, &h) || take_core(fd) || pass_fd(to, fd))
		_exit(1);
	usleep(300000);
	c = word(fd, h) || take_core(fd) ? 'n' : 'y';
	close(fd);
	_exit(write(to, &c, 1) != 1 || c != 'y');
}

/* @threaded: another thread does it, and the first one ends if @leader_ends. */
static void test_K3_alive(const char *name, void *(*fn)(void *), int threaded, int leader_ends)
{
	int pair[2], status, fd;
	char c = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		pthread_t t;

		close(pair[1]);
		if (!threaded)
			fn(&pair[0]);
		pthread_create(&t, NULL, fn, &pair[0]);
		while (!leader_ends)
			pause();
		syscall(SYS_exit, 0);
	}
	close(pair[0]);
	fd = take_fd(pair[1]);
	CHECK(fd >= 0 && read(pair[1], &c, 1) == 1 && c == 'y', "K3: %s: it keeps what it has", name);
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "and ends");
	CHECK(comes_back(), "K3: all is back then, its descriptor elsewhere");
	close(fd);
	close(pair[1]);
}

/* Many that die at the same time, others open and take meanwhile. */
static void test_K3_crowd(void)
{
	int alive, round, bad = 0;

	for (round = 0; round < 40; round++) {
		int fd = leave(round % 2, 1, &alive), own;
		uint64_t h;

		own = open(NODE, O_RDWR | O_CLOEXEC);
		bad += own < 0 || take_core(own) || take_memory(own, whole, &h);
		close(own);
		close(alive);
		close(fd);
	}
	CHECK(!bad, "K3: 40 times: a core and all memory, right after the death of the owner");
}

int main(int argc, char **argv)
{
	unsigned int i;

	if (argc == 4)
		return after_exec(atoi(argv[1]), strtoull(argv[2], NULL, 10), atoi(argv[3]));
	look = open_node(O_WRONLY);
	geo = geometry(look);
	/* The allocator is set up by the first allocation. */
	i = open_node(O_RDWR);
	mem_free(i, alloc(i, 4096, 0, 0));
	whole = stats().largest_free;
	close(i);
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		test_K3_comes_back(i, 0);
		test_K3_comes_back(i, 1);
		test_K3_at_once(i, is_there);
		test_K3_at_once(i, wants_core);
		test_K3_at_once(i, claims_core);
	}
	test_K3_holder();
	test_K3_slots();
	test_K3_alive("exec without close-on-exec", execs, 0, 0);
	test_K3_alive("exec by another thread", execs, 1, 0);
	test_K3_alive("first thread gone, others work", goes_on, 1, 1);
	test_K3_crowd();
	CHECK(comes_back(), "nothing is in use at the end");
	close(look);
	return failed != 0;
}

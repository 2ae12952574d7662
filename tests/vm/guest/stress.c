// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything at once: processes that allocate, copy, run rings, wait for notifications
 * and map memory, are killed in the middle of it, and reset their cores while they use
 * them; readers of the whole sysfs tree; devices that are pulled out and come back. Then
 * the module is removed and loaded while processes open the device all the time.
 *
 * Data that a call says it has moved must be right. Calls may fail because the device is
 * gone, a core is in use or was reset; what else may go wrong is found by the rig.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "emu.h"

#define USERS		4
#define SECONDS		20
#define SIZE		(192u << 10)	/* some through the buffer, some by lending pages */
#define RING		64

/* Shared by all processes. */
static struct shared {
	uint64_t opened, copied, rings, notified, mapped, resets, lost, wrong, removed, read;
	int stop;
	int number[2];		/* devices that come and go */
} *all;

static void count(uint64_t *what)
{
	__atomic_add_fetch(what, 1, __ATOMIC_RELAXED);
}

static int stopping(void)
{
	return __atomic_load_n(&all->stop, __ATOMIC_RELAXED);
}

/* ---- a process that uses a device ------------------------------------------------- */

static __thread sigjmp_buf fault;

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(fault, 1);
}

struct user {
	int fd;
	uint32_t core;
	struct neuron_native_geometry geo;
	uint64_t dev, host, dev_pa, host_pa, offset;
	uint64_t ring[2];
	int event;
	unsigned int seed;
	int done;
};

static uint64_t get(struct user *u, uint64_t bytes, int on_host, uint64_t *pa, uint64_t *offset)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = bytes, .nc_id = u->core,
		.flags = on_host ? NEURON_NATIVE_ALLOC_HOST : 0,
		.mem_type = on_host ? NEURON_MEMALLOC_TYPE_TENSORS_HOST :
				      NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};

	if (call(u->fd, NEURON_NATIVE_MEM_ALLOC, &a))
		return 0;
	*pa = a.pa;
	if (offset)
		*offset = a.mmap_offset;
	return a.mem_handle;
}

static int buf_copy(struct user *u, uint64_t handle, void *buf, uint64_t size, uint64_t off, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = buf, .size = size, .offset = off,
		.copy_to_mem_handle = to,
	};

	return call(u->fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static void fill(uint8_t *p, size_t n, unsigned int seed)
{
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = i * 7 + (i >> 9) + seed;
}

/* A part of the device memory, there and back; the ring has the first page. */
static void use_copies(struct user *u)
{
	static __thread uint8_t in[SIZE], out[SIZE];
	size_t len = 1 + rand_r(&u->seed) % (SIZE - 8192), off = 8192;

	fill(in, len, u->seed);
	if (buf_copy(u, u->dev, in, len, off, 1) || buf_copy(u, u->dev, out, len, off, 0))
		return;
	count(&all->copied);
	if (memcmp(in, out, len))
		count(&all->wrong);
}

static int set_up_ring(struct user *u)
{
	struct neuron_ioctl_dma_queue_init init = {
		.eng_id = u->core * u->geo.engines_per_core, .qid = 1,
		.tx_desc_count = RING, .rx_desc_count = RING,
		.tx_handle = u->ring[0], .rx_handle = u->ring[1],
	};

	return call(u->fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init);
}

/*
 * One page from host memory to the first page of the device memory. A reset in the
 * middle of it stops the ring; then only what arrived says that it did.
 */
static void use_ring(struct user *u)
{
	struct { uint32_t ctrl, meta; uint64_t addr; } tx = {
		4096 | 1u << 24 | 3u << 26, 0x01080003, u->host_pa,
	}, rx = { 4096 | 1u << 24, 0, u->dev_pa };
	struct neuron_ioctl_dma_queue_copy_start s = {
		.eng_id = u->core * u->geo.engines_per_core, .qid = 1,
		.tx_desc_count = 1, .rx_desc_count = 1,
	};
	uint8_t in[4096], out[4096];
	int i;

	fill(in, sizeof(in), rand_r(&u->seed));
	if (buf_copy(u, u->host, in, sizeof(in), 0, 1) || set_up_ring(u) ||
	    buf_copy(u, u->ring[0], &tx, sizeof(tx), 0, 1) ||
	    buf_copy(u, u->ring[1], &rx, sizeof(rx), 0, 1) ||
	    call(u->fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &s))
		return;
	for (i = 0; i < 20; i++) {
		if (buf_copy(u, u->dev, out, sizeof(out), 0, 0))
			return;
		if (!memcmp(in, out, sizeof(in))) {
			count(&all->rings);
			return;
		}
		usleep(2000);
	}
}

static void use_notifications(struct user *u)
{
	struct neuron_ioctl_notifications_init_with_realloc_v2 nq = {
		.nq_dev_id = u->core, .nq_type = NQ_TYPE_ERROR, .size = 4096,
		.on_host_memory = rand_r(&u->seed) & 1, .force_alloc_mem = rand_r(&u->seed) & 1,
	};
	struct neuron_native_nq_eventfd ev = {
		.size = sizeof(ev), .nq_dev_id = u->core, .nq_type = NQ_TYPE_ERROR,
		.eventfd = u->event,
	};
	struct pollfd p = { .fd = u->event, .events = POLLIN };

	if (call(u->fd, NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &nq) ||
	    call(u->fd, NEURON_NATIVE_NQ_EVENTFD, &ev))
		return;
	poll(&p, 1, 5);
	count(&all->notified);
}

static void use_mapping(struct user *u)
{
	volatile uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd,
				   u->offset);

	if (p == MAP_FAILED)
		return;
	/* The device may go: SIGBUS. */
	if (!sigsetjmp(fault, 1)) {
		p[SIZE - 1] = 1;
		p[0] = p[SIZE - 1];
		count(&all->mapped);
	}
	munmap((void *)p, SIZE);
}

/* The other thread of the process: resets the core that the first one uses. */
static void *reset(void *arg)
{
	struct user *u = arg;
	struct neuron_ioctl_device_reset r = { .nc_map = 1u << u->core };

	while (!__atomic_load_n(&u->done, __ATOMIC_RELAXED)) {
		usleep(20000);
		if (!call(u->fd, NEURON_IOCTL_NC_RESET, &r))
			count(&all->resets);
		call(u->fd, NEURON_IOCTL_DEVICE_RESET, NULL);
	}
	return NULL;
}

static void use_device(int number, uint32_t core, unsigned int seed, int most)
{
	struct user u = { .core = core, .seed = seed };
	pthread_t other;
	int i, rounds, with_reset = rand_r(&u.seed) % 2;
	uint64_t pa;

	u.fd = emu_open(number, O_RDWR);
	if (u.fd < 0) {
		usleep(5000);
		return;
	}
	count(&all->opened);
	u.geo.size = sizeof(u.geo);
	if (call(u.fd, NEURON_NATIVE_GET_GEOMETRY, &u.geo))
		goto out;
	u.core %= u.geo.nr_cores;
	u.dev = get(&u, SIZE, 0, &u.dev_pa, &u.offset);
	u.host = get(&u, 4096, 1, &u.host_pa, NULL);
	u.ring[0] = get(&u, RING * 16, 1, &pa, NULL);
	u.ring[1] = get(&u, RING * 16, 0, &pa, NULL);
	u.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!u.dev || !u.host || !u.ring[0] || !u.ring[1])
		goto out;
	if (with_reset && pthread_create(&other, NULL, reset, &u))
		with_reset = 0;
	rounds = 1 + rand_r(&u.seed) % most;
	for (i = 0; i < rounds && !stopping(); i++) {
		switch (rand_r(&u.seed) % 4) {
		case 0:	use_copies(&u); break;
		case 1:	use_ring(&u); break;
		case 2:	use_notifications(&u); break;
		default: use_mapping(&u); break;
		}
	}
	__atomic_store_n(&u.done, 1, __ATOMIC_RELAXED);
	if (with_reset)
		pthread_join(other, NULL);
	if (rand_r(&u.seed) % 2) {
		mem_free(u.fd, u.dev);
		mem_free(u.fd, u.host);
	}
out:
	if (u.event > 0)
		close(u.event);
	close(u.fd);
}

/* @number: a device, which is left alone at times; -1 for those that come and go. */
static void user(uint32_t id, unsigned int seed, int number)
{
	signal(SIGBUS, on_fault);
	while (!stopping()) {
		if (number < 0) {
			int n = __atomic_load_n(&all->number[id % 2], __ATOMIC_RELAXED);

			use_device(n, id / 2, seed++, 40);
		} else {
			use_device(number, id / 2, seed++, 4);
			usleep(rand_r(&seed) % 500000);
		}
	}
}

/* ---- readers ------------------------------------------------------------------------ */

static void read_dir(int at, const char *name, int depth)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *e;
	char text[4096];
	DIR *dir;

	if (fd < 0)
		return;
	dir = fdopendir(fd);
	while (dir && (e = readdir(dir)) && !stopping()) {
		if (e->d_name[0] == '.')
			continue;
		if (e->d_type == DT_DIR && depth) {
			read_dir(dirfd(dir), e->d_name, depth - 1);
		} else if (e->d_type == DT_REG) {
			int file = openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

			if (file < 0)
				continue;
			if (read(file, text, sizeof(text)) >= 0)
				count(&all->read);
			close(file);
		}
	}
	if (dir)
		closedir(dir);
}

static void reader(void)
{
	while (!stopping()) {
		read_dir(AT_FDCWD, "/sys/devices/virtual/neuron_device", 12);
		read_dir(AT_FDCWD, "/sys/kernel/debug/neuron", 4);
	}
}

/* ---- devices that come and go ---------------------------------------------------------- */

static const char * const names[2] = { "stress0", "stress1" };

static void remover(unsigned int seed)
{
	while (!stopping()) {
		int i = rand_r(&seed) % 2, number;

		usleep(100000 + rand_r(&seed) % 300000);
		if (!emu_set(names[i], "live", "0"))
			count(&all->removed);
		usleep(rand_r(&seed) % 50000);
		/* Its number may be another one: the old one is in use as long as it is open. */
		if (!emu_set(names[i], "live", "1") &&
		    sscanf(emu_get(names[i], "dev_name"), "neuron%d", &number) == 1)
			__atomic_store_n(&all->number[i], number, __ATOMIC_RELAXED);
	}
}

/* Like "rmmod": refused while somebody has the device open. */
static void unloader(void)
{
	while (!stopping()) {
		if (syscall(SYS_delete_module, "neuron_emu", O_NONBLOCK)) {
			usleep(1000);
			continue;
		}
		count(&all->removed);
		if (system("modprobe neuron_emu"))
			count(&all->lost);
	}
}

/* ---- all of them ------------------------------------------------------------------------- */

static pid_t start(void (*fn)(void))
{
	pid_t pid = fork();

	if (!pid) {
		fn();
		_exit(0);
	}
	return pid;
}

static pid_t start_user(uint32_t id, unsigned int seed, int number)
{
	pid_t pid = fork();

	if (!pid) {
		user(id, seed, number);
		_exit(0);
	}
	return pid;
}

static void run_remover(void)
{
	remover(7);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int somewhere(void)
{
	return all->opened && all->copied && all->rings && all->notified && all->mapped &&
	       all->removed && all->read;
}

/* Users, one of which is killed now and then, and whoever disturbs them. */
static void storm(int number, void (*disturb)(void), void (*look)(void))
{
	pid_t users[USERS], others[2];
	unsigned int seed = 1;
	double end = now() + SECONDS;
	int i, status;

	all->stop = 0;
	fflush(stdout);
	for (i = 0; i < USERS; i++)
		users[i] = start_user(i, seed++ * 1000, number);
	others[0] = start(disturb);
	others[1] = start(look);
	/* Longer on a machine that has much else to do. */
	while (now() < end || (!somewhere() && now() < end + 5 * SECONDS)) {
		usleep(50000 + rand_r(&seed) % 200000);
		i = rand_r(&seed) % USERS;
		kill(users[i], SIGKILL);
		waitpid(users[i], &status, 0);
		users[i] = start_user(i, seed++ * 1000, number);
	}
	__atomic_store_n(&all->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < USERS; i++) {
		waitpid(users[i], &status, 0);
		CHECK(!status, "user %d ends by itself", i);
	}
	for (i = 0; i < 2; i++) {
		waitpid(others[i], &status, 0);
		CHECK(!status, "the other process %d, too", i);
	}
	printf("# opened %llu, copies %llu, rings %llu, notifications %llu, mappings %llu, resets %llu, removals %llu, files read %llu\n",
	       (unsigned long long)all->opened, (unsigned long long)all->copied,
	       (unsigned long long)all->rings, (unsigned long long)all->notified,
	       (unsigned long long)all->mapped, (unsigned long long)all->resets,
	       (unsigned long long)all->removed, (unsigned long long)all->read);
	CHECK(somewhere(), "everybody got somewhere");
	CHECK(!all->wrong, "no copy brought other data");
}

int main(void)
{
	uint32_t used = 0, i;
	int fd;

	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return 1;
	for (i = 0; i < 2; i++) {
		/* Few cores, few files: it comes and goes quickly. */
		CHECK(!emu_mkdir(names[i]) && !emu_set(names[i], "arch", "trn1") &&
		      !emu_set(names[i], "hbm_size", "256") && !emu_set(names[i], "live", "1") &&
		      sscanf(emu_get(names[i], "dev_name"), "neuron%d", &all->number[i]) == 1,
		      "software device %s", names[i]);
	}
	storm(-1, run_remover, reader);
	CHECK(all->resets, "cores were reset");
	emu_del(names[0]);
	emu_del(names[1]);

	/* A module that makes a device may go when nobody has it open. */
	memset(all, 0, sizeof(*all));
	storm(0, unloader, reader);
	CHECK(!all->lost, "the module comes back each time");

	fd = open_node(O_WRONLY);
	for (i = 0; i < 4; i++) {
		struct neuron_native_hbm_stats s = { .size = sizeof(s), .hbm = i };

		if (call(fd, NEURON_NATIVE_HBM_STATS, &s))
			break;
		used += s.used != 0;
	}
	CHECK(i && !used, "all memory is back");
	close(fd);
	return failed != 0;
}

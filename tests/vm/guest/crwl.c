// SPDX-License-Identifier: GPL-2.0-only
/* Claims of cores, the cooperative lock, the initialisation handshake. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "check.h"
#include "device.h"

/* Seconds that the driver waits (uapi/FACTS.md 2), less a little. */
#define WRITER_WAIT	3.9
#define CINIT_WAIT	4.9

static struct neuron_native_geometry geo;
static int parent_fd;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int mark(int fd, uint32_t count, uint32_t start, uint32_t end, uint64_t *map,
		uint32_t *longest)
{
	struct neuron_ioctl_crwl_nc_map m = {
		.nc_count = count, .start_nc_index = start, .end_nc_index = end,
		.bitmap = ~0ul, .max_nc_available = ~0u,
	};
	int err = call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &m);

	*map = m.bitmap;
	*longest = m.max_nc_available;
	return err;
}

static int unmark(int fd, uint64_t map)
{
	struct neuron_ioctl_crwl_nc_map m = { .bitmap = map };

	return call(fd, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK, &m);
}

static int sem(int fd, uint32_t core)
{
	struct neuron_ioctl_semaphore s = { .nc_id = core };

	return call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s);
}

static void other_is_refused(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_ioctl_device_reset reset = { .nc_map = 1 << 3 };
	uint32_t longest;
	uint64_t map;

	CHECK(sem(fd, 2) == EBUSY && sem(fd, 3) == EBUSY,
	      "another process cannot use claimed cores: EBUSY");
	CHECK(call(fd, NEURON_IOCTL_NC_RESET, &reset) == EBUSY, "nor reset one: EBUSY");
	CHECK(!sem(fd, 1), "it can use one beside them");
	CHECK(mark(fd, 1, 2, 3, &map, &longest) == EBUSY && !map && !longest,
	      "nor claim them: EBUSY, none free");
	CHECK(!unmark(fd, 0xc), "giving back what is not its own does nothing");
	CHECK(sem(fd, 2) == EBUSY, "they are still claimed");
}

static void owner_blocks_mark(void)
{
	int fd = open_node(O_RDWR);
	uint32_t longest;
	uint64_t map;

	CHECK(mark(fd, 1, 0, 0, &map, &longest) == EBUSY && !longest,
	      "a core that another process uses cannot be claimed: EBUSY");
	CHECK(!mark(fd, 1, 0, 7, &map, &longest) && map == 2, "the next one can");
}

static void mark_by_inherited(void)
{
	uint32_t longest;
	uint64_t map;

	CHECK(!mark(parent_fd, 1, 0, 7, &map, &longest) && map == 1,
	      "claim through an inherited write-only descriptor");
}

static int parent_rd;

static void mark_and_close(void)
{
	uint32_t longest;
	uint64_t map;

	CHECK(!mark(parent_rd, 1, 0, 0, &map, &longest) && map == 1 &&
	      !mark(parent_fd, 1, 1, 1, &map, &longest) && map == 2,
	      "a child claims through two inherited descriptors, and closes them");
	close(parent_rd);
	close(parent_fd);
}

/* Nothing tells the driver when such a process dies. */
static void claims_of_the_dead(void)
{
	int fd = open_node(O_RDWR), wr = open_node(O_WRONLY);
	uint32_t longest;
	uint64_t map;

	parent_rd = fd;
	parent_fd = wr;
	in_child(mark_and_close);
	CHECK(!sem(fd, 0), "its cores can be used when it is dead");
	CHECK(!mark(wr, 8, 0, 7, &map, &longest) && map == 0xff, "and claimed");
	close(wr);
	close(fd);
}

static void lost_claim(void)
{
	struct neuron_ioctl_crwl_nc_map *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
						  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open_node(O_RDWR);
	uint32_t longest;
	uint64_t map;

	*m = (struct neuron_ioctl_crwl_nc_map){ .nc_count = 2, .end_nc_index = 7 };
	mprotect(m, 4096, PROT_READ);
	CHECK(call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK, m) == EFAULT, "read-only map: EFAULT");
	CHECK(!mark(fd, 8, 0, 7, &map, &longest), "and nothing is claimed");
	munmap(m, 4096);
	close(fd);
}

static void killed_with_claim(void)
{
	uint32_t longest;
	uint64_t map;
	int fd = open_node(O_RDWR), status, p[2];
	char c;
	pid_t pid;

	if (pipe(p))
		exit(1);
	pid = fork();
	if (!pid) {
		int own = open_node(O_WRONLY);

		close(fd);
		c = mark(own, 8, 0, 7, &map, &longest) ? 'n' : 'y';
		/* A grandchild keeps the descriptor, but not the claim. */
		if (!fork()) {
			close(p[0]);
			close(p[1]);
			sleep(1);
			_exit(0);
		}
		if (write(p[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	CHECK(read(p[0], &c, 1) == 1 && c == 'y', "a child claims all cores");
	CHECK(mark(fd, 1, 0, 7, &map, &longest) == EBUSY, "none is left: EBUSY");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	CHECK(!mark(fd, 8, 0, 7, &map, &longest) && map == 0xff,
	      "kill -9: they are free before wait() returns");
	close(fd);
}

static void claims(void)
{
	int fd = open_node(O_RDWR), wr = open_node(O_WRONLY), wr2;
	struct neuron_ioctl_crwl_nc_map_ext ext = { .nc_count = 2, .end_nc_index = 511 };
	uint32_t longest, i;
	uint64_t map;

	parent_fd = wr;
	CHECK(mark(fd, 0, 0, 7, &map, &longest) == EINVAL, "vendor C13: claim of 0 cores: EINVAL");
	CHECK(mark(fd, 65, 0, 63, &map, &longest) == EINVAL, "65 cores in 64 bits: EINVAL");
	CHECK(mark(fd, 1, 3, 2, &map, &longest) == EINVAL, "end before start: EINVAL");
	CHECK(mark(fd, 1, 64, 70, &map, &longest) == EINVAL, "start beyond the map: EINVAL");
	CHECK(mark(fd, 9, 0, 63, &map, &longest) == EBUSY && !map && longest == 8,
	      "9 of 8 cores: EBUSY, longest run 8, no bit set");

	/* Cores 0, 1 and 4 in use leave runs of 2 and 3. */
	CHECK(!mark(fd, 1, 0, 7, &map, &longest) && map == 1 && longest == 1, "claim one core");
	CHECK(!mark(fd, 1, 4, 4, &map, &longest) && map == 0x10, "claim core 4");
	CHECK(!mark(fd, 2, 0, 7, &map, &longest) && map == 6,
	      "vendor C13: the pair right behind a used core is found");
	CHECK(!mark(fd, 3, 0, 7, &map, &longest) && map == 0xe0, "and the three behind the next");
	CHECK(mark(fd, 2, 0, 7, &map, &longest) == EBUSY && longest == 1,
	      "no pair is left: EBUSY, longest run 1");
	CHECK(!unmark(fd, 0xff & ~0xcu), "give back all but 2 and 3");
	CHECK(!mark(fd, 1, 3, 3, &map, &longest) && map == 8, "claim core 3");
	in_child(other_is_refused);
	CHECK(!sem(fd, 2), "the process itself can use it");
	close(fd);
	fd = open_node(O_RDWR);
	CHECK(!mark(fd, 8, 0, 7, &map, &longest) && map == 0xff,
	      "vendor C14: claims end with the last descriptor");
	CHECK(!unmark(fd, ~0ull), "give everything back, also what does not exist");

	CHECK(!mark(wr, 4, 0, 7, &map, &longest) && map == 0xf,
	      "claim through a write-only descriptor");
	wr2 = open_node(O_WRONLY);
	CHECK(mark(wr2, 5, 0, 7, &map, &longest) == EBUSY && longest == 4, "it holds");
	CHECK(!sem(fd, 0), "the process can use what it claimed there");
	close(wr);
	CHECK(!mark(wr2, 8, 0, 7, &map, &longest), "closing it ends the claim");
	close(wr2);
	in_child(owner_blocks_mark);
	close(fd);

	wr = parent_fd = open_node(O_WRONLY);
	in_child(mark_by_inherited);
	CHECK(!mark(wr, 8, 0, 7, &map, &longest), "vendor C14: it ends with its process");
	close(wr);
	killed_with_claim();
	claims_of_the_dead();
	lost_claim();
	fd = open_node(O_RDWR);
	CHECK(!call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, &ext) && ext.bitmap[0] == 3,
	      "512-bit map: claim two");
	ext.nc_count = 513;
	CHECK(call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, &ext) == EINVAL, "513: EINVAL");
	ext.nc_count = 7;
	CHECK(call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, &ext) == EBUSY &&
	      ext.max_nc_available == 6 && !ext.bitmap[0], "7 more: EBUSY, 6 available");
	memset(ext.bitmap, 0xff, sizeof(ext.bitmap));
	CHECK(!call(fd, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0, &ext), "give back");
	for (i = 0; i < 2000; i++)
		if (mark(fd, 8, 0, 7, &map, &longest) || unmark(fd, map))
			break;
	CHECK(i == 2000, "claim and give back 2000 times");
	close(fd);
}

static int crwl(int fd, unsigned long cmd, uint32_t core, uint8_t model)
{
	struct neuron_ioctl_crwl c = { .nc_id = core };

	memset(c.uuid.value, model, sizeof(c.uuid.value));
	return call(fd, cmd, &c);
}

#define READ_ENTER	NEURON_IOCTL_CRWL_READER_ENTER
#define READ_EXIT	NEURON_IOCTL_CRWL_READER_EXIT
#define WRITE_ENTER	NEURON_IOCTL_CRWL_WRITER_ENTER
#define DOWNGRADE	NEURON_IOCTL_CRWL_WRITER_DOWNGRADE

static void other_waits(void)
{
	int fd = open_node(O_RDWR);
	double start = now();

	CHECK(crwl(fd, READ_ENTER, 5, 1) == ENOENT, "reader of another process's model: ENOENT");
	CHECK(crwl(fd, READ_EXIT, 5, 1) == ENOENT, "reader leaves what it did not enter: ENOENT");
	CHECK(crwl(fd, WRITE_ENTER, 5, 1) == EBUSY && now() - start > 2 && now() - start < 30,
	      "writer while there are readers: EBUSY after some seconds");
}

static void other_is_next(void)
{
	int fd = open_node(O_RDWR);

	CHECK(!crwl(fd, WRITE_ENTER, 5, 2), "another process is next when it left");
	CHECK(crwl(fd, READ_ENTER, 5, 2) == EBUSY, "reader while there is a writer: EBUSY");
	/* It ends without giving the lock back. */
}

static void *late_exit(void *arg)
{
	int fd = *(int *)arg;

	usleep(300000);
	crwl(fd, READ_EXIT, 6, 1);
	return NULL;
}

static void cooperative_lock(void)
{
	int fd = open_node(O_RDWR);
	double start;
	pthread_t t;

	CHECK(crwl(fd, WRITE_ENTER, geo.nr_cores, 1) == EINVAL, "no such core: EINVAL");
	CHECK(crwl(fd, READ_ENTER, 5, 1) == ENOENT, "reader without a model: ENOENT");
	CHECK(crwl(fd, DOWNGRADE, 5, 1) == ENOENT, "downgrade without a lock: ENOENT");
	CHECK(!crwl(fd, WRITE_ENTER, 5, 1), "writer");
	CHECK(crwl(fd, DOWNGRADE, 5, 2) == ENOENT, "downgrade with another model: ENOENT");
	CHECK(!crwl(fd, DOWNGRADE, 5, 1), "downgrade");
	CHECK(!crwl(fd, READ_ENTER, 5, 1), "a second reader");
	CHECK(crwl(fd, READ_ENTER, 5, 2) == ENOENT, "of another model: ENOENT");
	CHECK(crwl(fd, WRITE_ENTER, 5, 1) == EALREADY, "load it again: EALREADY");
	CHECK(!crwl(fd, READ_ENTER, 5, 1), "vendor C25: EALREADY did not take the lock");
	in_child(other_waits);
	CHECK(!crwl(fd, READ_EXIT, 5, 1) && !crwl(fd, READ_EXIT, 5, 1) &&
	      !crwl(fd, READ_EXIT, 5, 1), "three readers leave");
	CHECK(crwl(fd, READ_EXIT, 5, 1) == ENOENT, "a fourth one does not: ENOENT");
	in_child(other_is_next);
	CHECK(!crwl(fd, WRITE_ENTER, 5, 3), "a process that dies loses its lock");

	CHECK(!crwl(fd, WRITE_ENTER, 6, 1) && !crwl(fd, DOWNGRADE, 6, 1), "a reader");
	pthread_create(&t, NULL, late_exit, &fd);
	start = now();
	CHECK(!crwl(fd, WRITE_ENTER, 6, 2), "a writer waits for it");
	CHECK(now() - start < WRITER_WAIT, "and is woken when it leaves");
	pthread_join(t, NULL);
	close(fd);
}

static void lock_of_others(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_ioctl_notifications_init_v1 nq = {
		.nc_id = 3, .nq_type = NQ_TYPE_NOTIFY, .size = 4096,
	};
	double start = now();

	CHECK(crwl(fd, WRITE_ENTER, 2, 1) == EBUSY, "lock of another process's core: EBUSY");
	CHECK(crwl(fd, WRITE_ENTER, 3, 1) == EBUSY, "of one that it claimed: EBUSY");
	CHECK(now() - start < WRITER_WAIT, "at once");
	CHECK(call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V1, &nq) == EBUSY,
	      "a notification queue of a claimed core: EBUSY");
	CHECK(!crwl(fd, WRITE_ENTER, 4, 1), "of a free core: yes");
}

static void holds_a_free_core(int p, int go)
{
	int fd = open_node(O_RDWR);
	char c = 0;

	CHECK(!crwl(fd, WRITE_ENTER, 5, 9) && !crwl(fd, WRITE_ENTER, 6, 9),
	      "a process locks free cores");
	fflush(stdout);
	if (write(p, &c, 1) != 1 || read(go, &c, 1) < 0)
		_exit(1);
	_exit(crwl(fd, READ_ENTER, 5, 9) != EBUSY || crwl(fd, DOWNGRADE, 6, 9) != ENOENT);
}

/* The lock is for those who may use the core. */
static void whose_lock(void)
{
	int fd = open_node(O_RDWR), p[2], go[2], status;
	uint32_t longest;
	uint64_t map;
	double start;
	pid_t pid;
	char c;

	CHECK(!sem(fd, 2) && !mark(fd, 1, 3, 3, &map, &longest), "use core 2, claim core 3");
	in_child(lock_of_others);
	CHECK(!crwl(fd, WRITE_ENTER, 2, 1) && !crwl(fd, WRITE_ENTER, 3, 1), "lock them");

	if (pipe(p) || pipe(go))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(go[1]);
		holds_a_free_core(p[1], go[0]);
	}
	CHECK(read(p[0], &c, 1) == 1, "it has them");
	start = now();
	CHECK(!sem(fd, 5) && !crwl(fd, WRITE_ENTER, 5, 1) && now() - start < WRITER_WAIT,
	      "who uses such a core next has the lock at once");
	start = now();
	CHECK(!mark(fd, 1, 6, 6, &map, &longest) && !crwl(fd, WRITE_ENTER, 6, 1) &&
	      now() - start < WRITER_WAIT, "and who claims one");
	close(go[1]);
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "the other one has lost it");
	close(p[0]);
	close(p[1]);
	close(go[0]);
	close(fd);
}

static int cinit(int fd, uint32_t core, uint32_t state, uint32_t *new_state)
{
	struct neuron_ioctl_cinit_set c = { .nc_id = core, .state = state };
	int err = call(fd, NEURON_IOCTL_CINIT_SET_STATE, &c);

	*new_state = c.new_state;
	return err;
}

static int thread_started[2];

static void *late_complete(void *arg)
{
	uint32_t state;

	CHECK(!cinit(*(int *)arg, 0, NEURON_CINIT_STATE_STARTED, &state) &&
	      state == NEURON_CINIT_STATE_STARTED, "the first one starts");
	if (write(thread_started[1], "", 1) != 1)
		exit(1);
	usleep(300000);
	cinit(*(int *)arg, 0, NEURON_CINIT_STATE_COMPLETED, &state);
	return NULL;
}

static void cinit_other(void)
{
	int fd = open_node(O_RDWR);
	uint32_t state;

	CHECK(cinit(fd, 0, NEURON_CINIT_STATE_STARTED, &state) == EBUSY,
	      "core of another process: EBUSY");
}

static void *starts(void *arg)
{
	uint32_t state;

	CHECK(!cinit(*(int *)arg, 0, NEURON_CINIT_STATE_STARTED, &state) &&
	      state == NEURON_CINIT_STATE_STARTED, "a thread starts");
	return NULL;
}

static void *starts_too(void *arg)
{
	double start = now();
	uint32_t state;

	CHECK(cinit(*(int *)arg, 0, NEURON_CINIT_STATE_STARTED, &state) == EBUSY &&
	      now() - start > 4, "while the first one lives and does not complete: EBUSY after 5 s");
	return NULL;
}

static void cinit_dies(void)
{
	int fd = open_node(O_RDWR);
	uint32_t state;

	CHECK(!cinit(fd, 0, NEURON_CINIT_STATE_STARTED, &state) &&
	      state == NEURON_CINIT_STATE_STARTED, "a process starts, and dies");
}

static void handshake(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_ioctl_device_reset reset = { .nc_map = 1 };
	struct neuron_ioctl_nc_model_started_count count = { .started_count = 99 };
	uint32_t state;
	double start;
	pthread_t t;
	char c;

	in_child(cinit_dies);
	start = now();
	CHECK(!cinit(fd, 0, NEURON_CINIT_STATE_STARTED, &state) &&
	      state == NEURON_CINIT_STATE_STARTED && now() - start < CINIT_WAIT,
	      "the next process is told to start");
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &reset), "reset");
	CHECK(cinit(fd, geo.nr_cores, NEURON_CINIT_STATE_STARTED, &state) == E2BIG,
	      "no such core: E2BIG");
	CHECK(cinit(fd, 0, 0, &state) == EINVAL && cinit(fd, 0, 3, &state) == EINVAL,
	      "no such state: EINVAL");
	CHECK(!cinit(fd, 0, NEURON_CINIT_STATE_COMPLETED, &state) &&
	      state == NEURON_CINIT_STATE_INVALID, "completed before started: still invalid");
	in_child(cinit_other);
	if (pipe(thread_started))
		exit(1);
	pthread_create(&t, NULL, late_complete, &fd);
	if (read(thread_started[0], &c, 1) != 1)
		exit(1);
	start = now();
	CHECK(!cinit(fd, 0, NEURON_CINIT_STATE_STARTED, &state) &&
	      state == NEURON_CINIT_STATE_COMPLETED && now() - start < CINIT_WAIT,
	      "vendor B9: the second one waits until it is completed");
	pthread_join(t, NULL);
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &reset) &&
	      !cinit(fd, 0, NEURON_CINIT_STATE_STARTED, &state) &&
	      state == NEURON_CINIT_STATE_STARTED, "after a reset it begins anew");
	start = now();
	CHECK(!cinit(fd, 0, NEURON_CINIT_STATE_STARTED, &state) &&
	      state == NEURON_CINIT_STATE_STARTED && now() - start < CINIT_WAIT,
	      "the one that has to start is told so again");
	pthread_create(&t, NULL, starts_too, &fd);
	pthread_join(t, NULL);
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &reset), "reset");
	pthread_create(&t, NULL, starts, &fd);
	pthread_join(t, NULL);
	start = now();
	CHECK(!cinit(fd, 0, NEURON_CINIT_STATE_STARTED, &state) &&
	      state == NEURON_CINIT_STATE_STARTED && now() - start < CINIT_WAIT,
	      "the thread is gone: the next one has to start");
	CHECK(!call(fd, NEURON_IOCTL_NC_MODEL_STARTED_COUNT, &count) && !count.started_count,
	      "models started by firmware: none");
	count.nc_id = geo.nr_cores;
	CHECK(call(fd, NEURON_IOCTL_NC_MODEL_STARTED_COUNT, &count) == E2BIG,
	      "of no such core: E2BIG");
	close(fd);
}

/* ---- two devices ---- */

#define CLAIM_SECONDS	3

static int open_number(int n, int flags)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "/dev/neuron%d", n);
	fd = open(name, flags | O_CLOEXEC);
	if (fd < 0) {
		perror(name);
		exit(1);
	}
	return fd;
}

static int sem_of(int n, uint32_t core)
{
	int fd = open_number(n, O_RDWR), err = sem(fd, core);

	close(fd);
	return err;
}

static void is_held_everywhere(void)
{
	uint32_t longest;
	uint64_t map;
	int fd = open_number(0, O_WRONLY);

	CHECK(sem_of(0, 1) == EBUSY && sem_of(1, 1) == EBUSY, "K2: at first it holds on both devices");
	CHECK(mark(fd, 1, 0, 15, &map, &longest) == EBUSY && !longest, "K2: nobody else claims any");
	close(fd);
}

static void is_held_where_attached(void)
{
	uint32_t longest;
	uint64_t map;
	int fd = open_number(0, O_WRONLY), i;

	/* The kernel counts ticks, of which a busy machine may lose some. */
	for (i = 0; i < 200 && sem_of(1, 1) == EBUSY; i++)
		usleep(100000);
	CHECK(sem_of(0, 1) == EBUSY, "K2: later it holds on the device that its process has open");
	CHECK(!sem_of(1, 1), "K2: and turns nobody away on the other one");
	CHECK(mark(fd, 1, 0, 15, &map, &longest) == EBUSY && !longest,
	      "K2: among those who claim it counts still, everywhere");
	close(fd);
}

static void is_held_there_too(void)
{
	CHECK(sem_of(1, 2) == EBUSY, "K2: its process has the other device open, too: it holds there");
}

static void test_K2_time(void)
{
	int fd = open_number(0, O_RDWR), other;
	uint32_t longest;
	uint64_t map;

	CHECK(!mark(fd, 16, 0, 15, &map, &longest) && map == 0xffff,
	      "K2: claim the cores of two devices through the first");
	in_child(is_held_everywhere);
	sleep(CLAIM_SECONDS);
	in_child(is_held_where_attached);
	other = open_number(1, O_RDWR);
	in_child(is_held_there_too);
	CHECK(!sem(other, 2) && !sem(fd, 2), "K2: the process itself uses its cores");
	close(other);
	close(fd);
}

#define CGROUP	"/tmp/devices"

static int claim_pipe[2], claim_go[2];

/* In a cgroup that may not use the second device. */
static void claims_from_cage(void)
{
	uint32_t longest;
	uint64_t map;
	char c;
	int fd;

	fd = open(CGROUP "/cage/cgroup.procs", O_WRONLY | O_CLOEXEC);
	CHECK(write(fd, "0", 1) == 1, "join the cgroup");
	close(fd);
	fd = open_number(0, O_RDWR);
	CHECK(open("/dev/neuron1", O_RDWR | O_CLOEXEC) < 0 && errno == EPERM,
	      "its processes cannot open the second device");
	CHECK(!mark(fd, 16, 0, 15, &map, &longest) && map == 0xffff, "and claim its cores");
	fflush(stdout);
	close(claim_go[1]);
	if (write(claim_pipe[1], "", 1) != 1 || read(claim_go[0], &c, 1) < 0)
		_exit(1);
	close(fd);
}

static int cage(void)
{
	struct stat st;
	char rule[64];
	int fd, ok;

	mkdir(CGROUP, 0755);
	if (mount("devices", CGROUP, "cgroup", 0, "devices"))
		return 0;
	mkdir(CGROUP "/cage", 0755);
	stat("/dev/neuron1", &st);
	snprintf(rule, sizeof(rule), "c %u:%u rwm", major(st.st_rdev), minor(st.st_rdev));
	fd = open(CGROUP "/cage/devices.deny", O_WRONLY | O_CLOEXEC);
	ok = write(fd, rule, strlen(rule)) == (ssize_t)strlen(rule);
	close(fd);
	return ok;
}

static void test_K2_cgroup(void)
{
	int status;
	pid_t pid;
	char c;

	if (!cage()) {
		printf("ok - this kernel has no cgroups of devices # SKIP\n");
		return;
	}
	if (pipe(claim_pipe) || pipe(claim_go))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		failed = 0;
		claims_from_cage();
		fflush(stdout);
		_exit(failed);
	}
	CHECK(read(claim_pipe[0], &c, 1) == 1, "a process claims what it may not open");
	CHECK(sem_of(0, 1) == EBUSY, "K2: that holds where it may");
	CHECK(!sem_of(1, 1), "K2: and turns nobody away where it may not");
	close(claim_go[1]);
	waitpid(pid, &status, 0);
	failed += !WIFEXITED(status) || WEXITSTATUS(status);
	rmdir(CGROUP "/cage");
	umount(CGROUP);
}

static void two_devices(void)
{
	char command[96];
	int i;

	/* Children of those killed last may still have descriptors. */
	for (i = 0; i < 100 && system("rmmod neuron_emu 2>/dev/null"); i++)
		usleep(100000);
	snprintf(command, sizeof(command), "echo %d >/sys/module/neuron/parameters/claim_seconds",
		 CLAIM_SECONDS);
	CHECK(!system("modprobe neuron_emu nr_devices=2") && !system(command),
	      "two devices, claims hold for %d s", CLAIM_SECONDS);
	test_K2_time();
	test_K2_cgroup();
	CHECK(!system("rmmod neuron_emu && rmmod neuron && modprobe neuron_emu"),
	      "load for the tests that follow");
}

int main(void)
{
	int fd = open_node(O_WRONLY);

	geo = geometry(fd);
	close(fd);
	if (geo.nr_cores != 8) {
		CHECK(0, "a trn2 with 8 cores");
		return 1;
	}
	claims();
	cooperative_lock();
	whose_lock();
	handshake();
	/* Software devices: the module that is taken away is theirs. */
	if (!is_card())
		two_devices();
	return failed != 0;
}

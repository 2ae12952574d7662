// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every call that takes a handle, a core, a queue or a mapping against every other, and
 * against close, exit, fork, munmap and removal: two threads of one process on the same
 * object, many rounds with delays that vary.
 *
 * After each round a bystander, another process, allocates what is free and writes marks
 * into it. Whatever the first process still has (mappings, handles, exports, rings) must
 * neither show a mark nor change one; when it is gone, all bytes must be back.
 *
 * Settings on the kernel command line: pairs.rounds=8 (of each pair), pairs.only=free,
 * pairs.with=shrink, pairs.seconds=0 (at least).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include "emu.h"

#define MIB		(1ull << 20)
#define SIZE		(2 * MIB)	/* of the object */
#define CUT		(64u << 10)	/* what is left when it is cut */
#define STEP		(64u << 10)	/* one word of so many is looked at */
#define TAKES		3		/* what the bystander allocates: so many, each as */
#define TAKEN		(SIZE - CUT)	/* long as what is cut off, to get just that */
#define WINDOWS		4		/* where the object is mapped */
#define RING		64
#define MARK		0x6b72616d6b72616dull
#define SCRIBBLE	0x1badbeef1badbeefull

static int number, fd;

/* ---- the object, and what a process has of it -------------------------------------- */

static struct {
	uint64_t handle, pa, other, import;
	uint8_t *window[WINDOWS + 1];	/* the last one maps the export */
	int export;
	int second;			/* another descriptor of the device */
} it;

static __thread sigjmp_buf fault;
static __thread volatile sig_atomic_t expected;
static __thread unsigned int seed;

static void on_fault(int sig)
{
	if (!expected)
		_exit(sig);
	siglongjmp(fault, 1);
}

static uint64_t take(uint64_t bytes, uint64_t *pa)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = bytes, .flags = NEURON_NATIVE_ALLOC_LOW,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};

	if (call(fd, NEURON_NATIVE_MEM_ALLOC, &a))
		return 0;
	if (pa)
		*pa = a.pa;
	return a.mem_handle;
}

static int pin(void)
{
	struct neuron_native_mem_pin p = { .size = sizeof(p), .mem_handle = it.handle };
	int err = call(fd, NEURON_NATIVE_MEM_PIN, &p);

	if (!err)
		__atomic_store_n(&it.pa, p.pa, __ATOMIC_RELAXED);
	return err;
}

static int unpin(void)
{
	struct neuron_native_mem_unpin p = { .size = sizeof(p), .mem_handle = it.handle };

	return call(fd, NEURON_NATIVE_MEM_UNPIN, &p);
}

static int buf_copy(uint64_t handle, uint64_t off, void *buf, uint64_t size, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = buf, .size = size, .offset = off,
		.copy_to_mem_handle = to,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

/* Windows are never given back, so that nothing else gets their addresses. */
static int unmap_window(unsigned int i)
{
	return mmap(it.window[i], SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == MAP_FAILED ? errno : 0;
}

/* Write to a window, up to where it ends.  Was there somebody else's mark in it? */
static int scribble(unsigned int i)
{
	volatile uint64_t off;
	volatile int found = 0;

	expected = 1;
	for (off = 0; off < SIZE && !sigsetjmp(fault, 1); off += STEP) {
		volatile uint64_t *word = (uint64_t *)(it.window[i] + off);

		found |= *word == MARK;
		*word = SCRIBBLE;
	}
	expected = 0;
	return found;
}

/* ---- what is done with it ----------------------------------------------------------- */

static int do_free(void)
{
	return mem_free(fd, it.handle);
}

static int do_free_bulk(void)
{
	__u64 handles[] = { it.other, it.handle };
	struct neuron_native_mem_free_bulk f = {
		.size = sizeof(f), .count = 2, .handles = (uintptr_t)handles,
	};

	return call(fd, NEURON_NATIVE_MEM_FREE_BULK, &f);
}

static int resize(uint64_t handle, uint64_t bytes, uint32_t flags)
{
	struct neuron_native_mem_grow g = {
		.size = sizeof(g), .mem_handle = handle, .bytes = bytes, .flags = flags,
	};

	return call(fd, NEURON_NATIVE_MEM_GROW, &g);
}

static int do_shrink(void)
{
	return resize(it.handle, CUT, NEURON_NATIVE_GROW_SHRINK);
}

static int do_grow(void)
{
	return resize(it.handle, 2 * SIZE, 0);
}

/* It may have another place afterwards, or none that is known. */
static int do_compact(void)
{
	struct neuron_native_mem_compact c = { .size = sizeof(c) };
	int err = unpin();

	return err ?: call(fd, NEURON_NATIVE_MEM_COMPACT, &c) ?: pin();
}

static int do_shrink_import(void)
{
	return resize(__atomic_load_n(&it.import, __ATOMIC_RELAXED), CUT,
		      NEURON_NATIVE_GROW_SHRINK);
}

static int map_window(unsigned int i, int from, uint64_t offset)
{
	/* All of it, or what there is when it was cut. */
	if (mmap(it.window[i], SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, from,
		 (off_t)offset) != MAP_FAILED)
		return 0;
	return mmap(it.window[i], CUT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, from,
		    (off_t)offset) == MAP_FAILED ? errno : 0;
}

static int do_map(void)
{
	return map_window(rand_r(&seed) % WINDOWS, fd, it.pa);
}

static int do_munmap(void)
{
	unsigned int i;

	for (i = 0; i < WINDOWS; i++)
		unmap_window(i);
	return 0;
}

static int do_touch(void)
{
	scribble(0);
	return 0;
}

static void keep_export(int new)
{
	int old = __atomic_exchange_n(&it.export, new, __ATOMIC_RELAXED);

	if (old >= 0)
		close(old);
}

static int do_export(void)
{
	struct neuron_native_mem_export e = { .size = sizeof(e), .mem_handle = it.handle };
	int err = call(fd, NEURON_NATIVE_MEM_EXPORT, &e);

	if (!err)
		keep_export(e.fd);
	return err;
}

static int do_export_va(void)
{
	int buf = -1;
	struct neuron_ioctl_dmabuf_fd e = {
		.va = (uintptr_t)it.window[0], .size = CUT, .fd = &buf,
	};
	int err = call(fd, NEURON_IOCTL_DMABUF_FD, &e);

	if (!err)
		keep_export(buf);
	return err;
}

static int do_close_export(void)
{
	keep_export(-1);
	return 0;
}

static int do_map_export(void)
{
	int from = __atomic_load_n(&it.export, __ATOMIC_RELAXED);

	return from < 0 ? ENOENT : map_window(WINDOWS, from, 0);
}

static int do_import(void)
{
	struct neuron_native_mem_import i = {
		.size = sizeof(i), .fd = __atomic_load_n(&it.export, __ATOMIC_RELAXED),
	};
	int err = call(fd, NEURON_NATIVE_MEM_IMPORT, &i);
	uint64_t old;

	if (err)
		return err;
	old = __atomic_exchange_n(&it.import, i.mem_handle, __ATOMIC_RELAXED);
	if (old)
		mem_free(fd, old);
	return 0;
}

static int do_drop_import(void)
{
	return mem_free(fd, __atomic_exchange_n(&it.import, 0, __ATOMIC_RELAXED));
}

static int do_write(void)
{
	static __thread uint8_t buf[CUT];

	return buf_copy(it.handle, SIZE - CUT, buf, CUT, 1);
}

static int do_read(void)
{
	static __thread uint64_t buf[CUT / 8];
	int err = buf_copy(it.handle, SIZE - CUT, buf, CUT, 0);

	return !err && buf[0] == MARK ? 10000 : err;
}

static int do_memset(void)
{
	struct neuron_ioctl_memset64 m = {
		.mem_handle = it.handle, .offset = SIZE - CUT, .value = 0x55, .size = CUT,
	};

	return call(fd, NEURON_IOCTL_MEMSET64, &m);
}

static int do_copy(void)
{
	struct neuron_ioctl_mem_copy64 c = {
		.src_mem_handle = it.other, .dst_mem_handle = it.handle, .size = CUT,
		.dst_offset = SIZE - CUT,
	};

	return call(fd, NEURON_IOCTL_MEM_COPY64, &c);
}

static int do_copy_async(void)
{
	struct neuron_ioctl_mem_copy_async64 c = {
		.src_mem_handle = it.handle, .dst_mem_handle = it.other, .size = CUT,
		.src_offset = SIZE - CUT, .pwait_handle = ~0u,
	};
	struct neuron_ioctl_mem_copy_async_wait w = {
		.src_mem_handle = it.handle, .dst_mem_handle = it.other,
	};
	int err = call(fd, NEURON_IOCTL_MEM_COPY_ASYNC64, &c);

	w.pwait_handle = c.wait_handle;
	return err ?: call(fd, NEURON_IOCTL_MEM_COPY_ASYNC_WAIT, &w);
}

static int queue_init(uint64_t ring)
{
	struct neuron_ioctl_dma_queue_init q = {
		.eng_id = 0, .qid = 1, .tx_desc_count = RING, .rx_desc_count = RING,
		.tx_handle = ring, .rx_handle = ring,
	};

	return call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q);
}

static int do_queue_init(void)
{
	return queue_init(it.handle);
}

static int do_queue_end(void)
{
	return queue_init(0);
}

static int do_queue_start(void)
{
	struct neuron_ioctl_dma_queue_copy_start s = {
		.eng_id = 0, .qid = 1, .tx_desc_count = 1, .rx_desc_count = 1,
	};

	return call(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &s);
}

static int do_descriptors(void)
{
	struct { uint32_t ctrl, meta; uint64_t addr; } d[RING];
	struct neuron_ioctl_dma_copy_descriptors64 c = {
		.mem_handle = it.handle, .buffer = d, .num_descs = RING,
	};
	unsigned int i;

	for (i = 0; i < RING; i++) {
		d[i].ctrl = 4096 | 1u << 24 | 3u << 26;
		d[i].meta = 0x01080003;
		d[i].addr = it.pa + SIZE - 4096 * (1 + i % 8);
	}
	return call(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &c);
}

/* 10000: the ring shows somebody else's memory. */
static int do_copyout(void)
{
	uint64_t d[2 * RING] = { 0 };
	struct neuron_ioctl_dma_descriptor_copyout c = {
		.eng_id = 0, .qid = 1, .type = NEURON_DMA_QUEUE_TYPE_TX, .count = RING,
		.buffer = d,
	};
	int err = call(fd, NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &c);

	return !err && d[0] == MARK ? 10000 : err;
}

static int do_nq_init(void)
{
	struct neuron_ioctl_notifications_init_with_realloc_v2 n = {
		.nq_type = 1, .size = 1u << 20, .force_alloc_mem = 1,
	};
	int err = call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &n);

	/* Its handle is the object's stand-in: it goes at the end of the round. */
	return err ?: mem_free(fd, n.mem_handle);
}

static int do_reset(void)
{
	struct neuron_ioctl_device_reset r = { .nc_map = 1 };

	return call(fd, NEURON_IOCTL_NC_RESET, &r);
}

static int do_semaphore(void)
{
	struct neuron_ioctl_semaphore s = { .semaphore_index = 3, .value = 1 };

	return call(fd, NEURON_IOCTL_SEMAPHORE_INCREMENT, &s);
}

static int do_engine(void)
{
	struct neuron_ioctl_dma_eng_set_state s = { .state = 2 };

	return call(fd, NEURON_IOCTL_DMA_ENG_SET_STATE, &s);
}

static int do_info(void)
{
	struct neuron_ioctl_mem_get_extended_info i = { .mem_handle = it.handle };
	struct neuron_ioctl_mem_get_mc_mmap_info_v2 m = { .pa = it.pa + SIZE - 1 };

	call(fd, NEURON_IOCTL_MEM_MC_GET_INFO_V2, &m);
	return call(fd, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &i);
}

static int do_alloc(void)
{
	uint64_t handle = take(SIZE, NULL);

	return handle ? mem_free(fd, handle) : ENOMEM;
}

static int do_scrub(void)
{
	struct neuron_ioctl_hbm_scrub_start s = { 0 };
	struct neuron_ioctl_hbm_scrub_wait w = { 0 };
	int err = call(fd, NEURON_IOCTL_HBM_SCRUB_START, &s);

	return err ?: call(fd, NEURON_IOCTL_HBM_SCRUB_WAIT, &w);
}

static int do_fork(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	return waitpid(pid, NULL, 0) < 0 ? errno : 0;
}

/* Descriptors of the device: the second one, and with the first one the process detaches. */
static int do_close(void)
{
	close(__atomic_exchange_n(&it.second, -1, __ATOMIC_RELAXED));
	close(fd);
	return 0;
}

static int do_exit(void)
{
	_exit(0);
}

static int do_remove(void)
{
	return emu_set("pairs", "live", "0");
}

#define ENDS(_name, _fn, _ends)	{ .name = _name, .fn = _fn, .ends = _ends }
#define ACT(_name, _fn)		ENDS(_name, _fn, 0)

static const struct act {
	const char *name;
	int (*fn)(void);
	int ends;	/* the process has nothing afterwards; 2: nor has anybody else */
} acts[] = {
	ACT("free", do_free), ACT("free both", do_free_bulk), ACT("shrink", do_shrink), ACT("grow", do_grow),
	ACT("shrink-import", do_shrink_import), ACT("map", do_map), ACT("munmap", do_munmap),
	ACT("touch", do_touch), ACT("export", do_export), ACT("export-va", do_export_va),
	ACT("close-export", do_close_export), ACT("map-export", do_map_export),
	ACT("import", do_import), ACT("drop-import", do_drop_import), ACT("write", do_write),
	ACT("read", do_read), ACT("memset", do_memset), ACT("copy", do_copy),
	ACT("copy-async", do_copy_async), ACT("queue-init", do_queue_init),
	ACT("queue-end", do_queue_end), ACT("queue-start", do_queue_start),
	ACT("descriptors", do_descriptors), ACT("copyout", do_copyout),
	ACT("nq-init", do_nq_init), ACT("reset", do_reset), ACT("semaphore", do_semaphore),
	ACT("engine", do_engine), ACT("info", do_info), ACT("alloc", do_alloc),
	ACT("scrub", do_scrub), ACT("fork", do_fork), ACT("compact", do_compact),
	ACT("pin", pin), ACT("unpin", unpin),
	ENDS("close", do_close, 1), ENDS("exit", do_exit, 1), ENDS("remove", do_remove, 2),
};

#define ACTS	(sizeof(acts) / sizeof(acts[0]))

/* ---- the bystander ------------------------------------------------------------------ */

static int to_bystander;

static struct {
	uint64_t handle[TAKES];
	uint64_t *map[TAKES];
	uint64_t used;		/* while nobody has anything */
} by;

static uint64_t bytes_used(void)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };

	return call(fd, NEURON_NATIVE_HBM_STATS, &s) ? ~0ull : s.used;
}

static void put_marks(void)
{
	unsigned int i;
	uint64_t off, pa;

	for (i = 0; i < TAKES; i++) {
		by.handle[i] = take(TAKEN, &pa);
		by.map[i] = !by.handle[i] ? MAP_FAILED :
			    mmap(NULL, TAKEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)pa);
		for (off = 0; by.map[i] != MAP_FAILED && off < TAKEN; off += STEP)
			by.map[i][off / 8] = MARK;
	}
}

/* 'y': all marks are as they were. */
static char look_at_marks(void)
{
	unsigned int i, bad = 0;
	uint64_t off;

	for (i = 0; i < TAKES; i++) {
		for (off = 0; by.map[i] != MAP_FAILED && off < TAKEN; off += STEP)
			bad += by.map[i][off / 8] != MARK;
		if (by.map[i] != MAP_FAILED)
			munmap(by.map[i], TAKEN);
		if (by.handle[i])
			mem_free(fd, by.handle[i]);
	}
	return bad ? 'n' : 'y';
}

static void bystander(int from)
{
	char what;

	fd = emu_open(number, O_RDWR);
	by.used = bytes_used();
	while (read(from, &what, 1) == 1) {
		switch (what) {
		case 'm':	/* put marks */
			put_marks();
			break;
		case 'l':
			what = look_at_marks();
			break;
		case 'u':	/* is everything back? */
			what = bytes_used() == by.used ? 'y' : 'n';
			break;
		case 'c':	/* the device goes */
			close(fd);
			break;
		case 'o':
			fd = emu_open(number, O_RDWR);
			break;
		}
		if (write(from, &what, 1) != 1)
			break;
	}
	_exit(0);
}

static char ask(char what)
{
	if (write(to_bystander, &what, 1) != 1 || read(to_bystander, &what, 1) != 1)
		return '?';
	return what;
}

/* ---- rounds ------------------------------------------------------------------------- */

enum { GOOD = 0, MARK_SEEN = 1, MARK_LOST = 2, NO_OBJECT = 3 };

static struct {
	int (*fn)(void);
	int err;
	atomic_uint go, done;
	unsigned int delay;
} helper;

static void wait_a_bit(unsigned int n)
{
	volatile unsigned int i;

	for (i = 0; i < n; i++)
		;
}

static void *help(void *arg)
{
	unsigned int round = 0;

	seed = time(NULL);
	for (;;) {
		while (atomic_load(&helper.go) == round)
			sched_yield();
		round = atomic_load(&helper.go);
		wait_a_bit(helper.delay);
		helper.err = helper.fn();
		atomic_store(&helper.done, round);
	}
	return arg;
}

/* Both at once; 10000 from one of them is somebody else's memory. */
static int run_both(const struct act *a, const struct act *b)
{
	unsigned int delay = rand_r(&seed) % 2 ? 0 : rand_r(&seed) % (1u << rand_r(&seed) % 16);
	int err;

	helper.fn = b->fn;
	helper.delay = rand_r(&seed) % 2 ? delay : 0;
	atomic_fetch_add(&helper.go, 1);
	wait_a_bit(helper.delay ? 0 : delay);
	err = a->fn();
	while (atomic_load(&helper.done) != atomic_load(&helper.go))
		sched_yield();
	return err == 10000 || helper.err == 10000 ? MARK_SEEN : GOOD;
}

/* The object is movable, and pinned; below it there is a hole that it can go to. */
static uint64_t take_movable(void)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = SIZE,
		.flags = NEURON_NATIVE_ALLOC_LOW | NEURON_NATIVE_ALLOC_MOVABLE,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	uint64_t below = take(SIZE, NULL);

	it.other = take(SIZE, NULL);
	it.handle = call(fd, NEURON_NATIVE_MEM_ALLOC, &a) ? 0 : a.mem_handle;
	mem_free(fd, below);
	return !it.handle || pin() ? 0 : it.handle;
}

/* The object, and one thing that uses it: mostly a mapping. */
static int dress(void)
{
	if (rand_r(&seed) % 2) {
		it.handle = take(SIZE, &it.pa);
		it.other = take(SIZE, NULL);
	} else {
		it.handle = take_movable();
	}
	if (!it.handle || !it.other)
		return NO_OBJECT;
	switch (rand_r(&seed) % 8) {
	case 0:
		break;
	case 1:
		do_import();
		break;
	case 2:
		do_export();
		do_import();
		break;
	case 3:
		do_queue_init();
		break;
	case 4:
		do_export();
		do_map_export();
		break;
	default:
		map_window(0, fd, it.pa);
	}
	return GOOD;
}

static void undress(void)
{
	do_munmap();
	unmap_window(WINDOWS);
	do_close_export();
	do_drop_import();
	do_queue_end();
	do_free();
	mem_free(fd, it.other);
}

/* What is left must not reach what the bystander got. */
static int probe(void)
{
	unsigned int i;
	int result = GOOD;

	if (ask('m') != 'm')
		return MARK_LOST;
	if (do_copyout() == 10000 || do_read() == 10000)
		result = MARK_SEEN;
	for (i = 0; i <= WINDOWS; i++)
		if (scribble(i))
			result = MARK_SEEN;
	do_memset();
	do_copy();
	return ask('l') == 'y' ? result : MARK_LOST;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

static void child(const struct act *a, const struct act *b, unsigned int rounds, unsigned int start)
{
	struct sigaction act = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };
	pthread_t thread;
	unsigned int i;
	int err = GOOD;

	seed = start;
	sigaction(SIGBUS, &act, NULL);
	sigaction(SIGSEGV, &act, NULL);
	fd = emu_open(number, O_RDWR);
	it.second = emu_open(number, O_RDWR);
	it.export = -1;
	for (i = 0; i <= WINDOWS; i++)
		it.window[i] = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pthread_create(&thread, NULL, help, NULL))
		_exit(NO_OBJECT);
	for (i = 0; i < rounds && err == GOOD; i++) {
		err = dress() ?: run_both(a, b);
		if (err == GOOD && a->ends < 2 && b->ends < 2)
			err = probe();
		undress();
	}
	_exit(err);
}

/* A device that went comes back; the bystander has to let go of it before. */
static int revive(void)
{
	if (ask('c') != 'c')
		return NO_OBJECT;
	/* It is gone, unless its process ended before it was removed. */
	emu_set("pairs", "live", "0");
	if (emu_set("pairs", "live", "1"))
		return NO_OBJECT;
	sscanf(emu_get("pairs", "dev_name"), "neuron%d", &number);
	return ask('o') == 'o' ? GOOD : NO_OBJECT;
}

static const char * const said[] = {
	[GOOD] = "good", [MARK_SEEN] = "it shows another process's memory",
	[MARK_LOST] = "it writes to another process's memory", [NO_OBJECT] = "there is no object",
};

/* @rounds of one pair: GOOD, or what went wrong. */
static int run_pair(const struct act *a, const struct act *b, unsigned int rounds)
{
	unsigned int n, tries, done, each = a->ends || b->ends ? 1 : rounds;
	int status, err = GOOD;
	pid_t pid;

	for (done = 0; done < rounds && err == GOOD; done += n) {
		n = each;
		pid = fork();
		if (!pid)
			child(a, b, n, rand_r(&seed));
		if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
			return NO_OBJECT;
		err = WEXITSTATUS(status);
		if (a->ends == 2 || b->ends == 2) {
			err = err ?: revive();
			continue;
		}
		if (err == GOOD && (ask('m') != 'm' || ask('l') != 'y'))
			err = MARK_LOST;
		for (tries = 0; ask('u') != 'y'; tries++) {
			if (tries == 100) {
				printf("# bytes are missing\n");
				return NO_OBJECT;
			}
			usleep(10000);
		}
	}
	return err;
}

/* ---- the table ---------------------------------------------------------------------- */

static int bad[ACTS];
static unsigned int pairs_run, rounds_run;

static void pair(unsigned int a, unsigned int b, unsigned int rounds)
{
	int err = run_pair(&acts[a], &acts[b], rounds);

	pairs_run++;
	rounds_run += rounds;
	if (err == GOOD)
		return;
	printf("# %s against %s: %s\n", acts[a].name, acts[b].name,
	       (unsigned int)err < sizeof(said) / sizeof(said[0]) ? said[err] : "it died");
	bad[a]++;
	bad[b] += a != b;
}

static const char *setting(const char *name)
{
	static char line[4096];
	FILE *f = fopen("/proc/cmdline", "r");
	char *p;

	if (!f || !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	p = strstr(line, name);
	if (!p)
		return "";
	p += strlen(name);
	p[strcspn(p, " \n")] = 0;
	return p;
}

static unsigned int act_named(const char *name)
{
	unsigned int i;

	for (i = 0; i < ACTS && strcmp(acts[i].name, name); i++)
		;
	return i;
}

/* Where mistakes were found before: more often. */
static void known(unsigned int seconds)
{
	time_t end = time(NULL) + seconds;
	unsigned int freed = act_named("free"), shrunk = act_named("shrink");

	do
		pair(freed, shrunk, 20);
	while (!bad[freed] && time(NULL) < end);
	CHECK(!bad[freed], "K1: what is cut while it is freed reaches nobody else's memory");
	pair(act_named("drop-import"), act_named("shrink-import"), 20);
	CHECK(!bad[act_named("shrink-import")], "K1: who imported it cannot cut it");
}

/* All pairs, in an order of their own, until the time is over. */
static void all(unsigned int rounds, unsigned int seconds)
{
	unsigned int i, at = 0, n = ACTS * ACTS, stride = 773;
	time_t end = time(NULL) + seconds;

	for (i = 0; i < n || time(NULL) < end; i++) {
		at = (at + stride) % n;
		if (at / ACTS <= at % ACTS)
			pair(at / ACTS, at % ACTS, rounds);
		if (i < n && time(NULL) >= end)
			break;
	}
	printf("# %u pairs, %u rounds\n", pairs_run, rounds_run);
	fflush(stdout);
	for (i = 0; i < ACTS; i++)
		CHECK(!bad[i], "%s against the others", acts[i].name);
}

int main(void)
{
	unsigned int rounds = atoi(setting("pairs.rounds=")), seconds = atoi(setting("pairs.seconds="));
	unsigned int a = act_named(setting("pairs.only=")), b = act_named(setting("pairs.with="));
	uint64_t began = now();
	int sock[2];

	number = emu_add("pairs");
	seed = time(NULL);
	fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock))
		return 1;
	if (!fork()) {
		close(sock[0]);
		bystander(sock[1]);
	}
	close(sock[1]);
	to_bystander = sock[0];
	CHECK(ask('u') == 'y', "the bystander is there");
	fd = emu_open(number, O_RDWR);
	close(fd);
	if (a < ACTS && b < ACTS) {
		time_t end = time(NULL) + seconds;

		do
			pair(a, b, rounds ?: 20);
		while (!bad[a] && time(NULL) < end);
		printf("# %u rounds, %u ms\n", rounds_run, (unsigned int)(now() - began));
		CHECK(!bad[a], "%s against %s", acts[a].name, acts[b].name);
	} else {
		known(seconds ? seconds / 10 : 5);
		all(rounds ?: 2, seconds ?: 15);
	}
	close(to_bystander);
	wait(NULL);
	emu_del("pairs");
	return failed != 0;
}

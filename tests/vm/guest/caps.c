// SPDX-License-Identifier: GPL-2.0-only
/* Limits of device memory per core and per process, and the record of refused allocations. */
#include <pthread.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <time.h>

#include "check.h"

#define MIB		(1ull << 20)
#define NONE		NEURON_NATIVE_LIMIT_NONE
#define CORE(n)		SYSFS "neuron_core" #n "/limits/memory"
#define PROCESS		SYSFS "limits/process_memory"

static int limit(int fd, uint32_t flags, uint32_t what, int32_t index, uint64_t bytes,
		 struct neuron_native_limit *out)
{
	struct neuron_native_limit l = {
		.size = sizeof(l), .flags = flags, .what = what, .index = index, .bytes = bytes,
	};
	int err = call(fd, NEURON_NATIVE_LIMIT, &l);

	if (out)
		*out = l;
	return err;
}

static int set(int fd, uint32_t what, int32_t index, uint64_t bytes)
{
	struct neuron_native_limit l;
	int err = limit(fd, NEURON_NATIVE_LIMIT_SET, what, index, bytes, &l);

	return err ? err : l.bytes == bytes ? 0 : -1;
}

/* Quietly: threads use it. */
static int try_alloc(int fd, uint64_t bytes, uint32_t hbm, uint32_t nc,
		     struct neuron_native_mem_alloc *out)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = bytes, .hbm = hbm, .nc_id = nc,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	int err = call(fd, NEURON_NATIVE_MEM_ALLOC, &a);

	*out = a;
	return err;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), err = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

static int reads(const char *path, const char *text)
{
	char buf[64] = "";
	int fd = open(path, O_RDONLY);

	if (fd < 0 || read(fd, buf, sizeof(buf) - 1) < 0)
		return 0;
	close(fd);
	return !strcmp(buf, text);
}

static struct neuron_native_hbm_stats stats(int fd, uint32_t hbm)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s), .hbm = hbm };

	CHECK(!call(fd, NEURON_NATIVE_HBM_STATS, &s), "statistics");
	return s;
}

static int failures(int fd, struct neuron_native_failure *f, uint32_t *n, uint64_t *since)
{
	struct neuron_native_failures a = {
		.size = sizeof(a), .count = *n, .since = *since, .entries = (uintptr_t)f,
		.entry_size = sizeof(*f),
	};
	int err = call(fd, NEURON_NATIVE_FAILURES, &a);

	*n = a.count;
	*since = a.last;
	return err;
}

static void test_core(int fd)
{
	struct neuron_native_mem_alloc a, b, c;
	struct neuron_native_hbm_stats before = stats(fd, 1);
	struct neuron_native_limit l;

	CHECK(reads(CORE(5), "max\n") && reads(PROCESS, "max\n"), "no limit to begin with");
	CHECK(!limit(fd, 0, NEURON_NATIVE_LIMIT_CORE, 5, 0, &l) && l.bytes == NONE && !l.used,
	      "and the ioctl says so");
	CHECK(!write_file(CORE(5), "8388608\n") && reads(CORE(5), "8388608\n"), "8 MiB for core 5");
	CHECK(!try_alloc(fd, 5 * MIB, 1, 5, &a), "5 MiB");
	CHECK(try_alloc(fd, 3 * MIB + 1, 0, 5, &b) == ENOMEM &&
	      b.reason == NEURON_NATIVE_REASON_CAPPED && b.limit == 8 * MIB &&
	      b.total == before.total && b.largest_free > 8 * MIB,
	      "a byte too much, on another HBM: capped");
	CHECK(try_alloc(fd, 1ull << 60, 1, 5, &b) == ENOMEM &&
	      b.reason == NEURON_NATIVE_REASON_CAPPED, "far too much: capped");
	CHECK(stats(fd, 1).fail_capped == before.fail_capped + 1 &&
	      stats(fd, 1).fail_full == before.fail_full, "counted as that");
	CHECK(!try_alloc(fd, 3 * MIB, 0, 5, &b), "up to the last byte");
	CHECK(!try_alloc(fd, 32 * MIB, 1, 4, &c), "another core has no limit");
	CHECK(!limit(fd, 0, NEURON_NATIVE_LIMIT_CORE, 5, 0, &l) && l.bytes == 8 * MIB &&
	      l.used == 8 * MIB, "8 MiB in use");
	CHECK(!write_file(CORE(5), "0x100000") && reads(CORE(5), "1048576\n"),
	      "a limit below what is in use");
	mem_free(fd, a.mem_handle);
	CHECK(try_alloc(fd, 4096, 1, 5, &a) == ENOMEM, "nothing before enough is back");
	mem_free(fd, b.mem_handle);
	CHECK(!try_alloc(fd, MIB, 1, 5, &a), "then 1 MiB");
	mem_free(fd, a.mem_handle);
	mem_free(fd, c.mem_handle);

	CHECK(!write_file(CORE(5), "8G\n") && reads(CORE(5), "8589934592\n") &&
	      !write_file(CORE(5), "3m") && reads(CORE(5), "3145728\n") &&
	      !write_file(CORE(5), "0x10K") && reads(CORE(5), "16384\n") &&
	      !write_file(CORE(5), "0x1E") && reads(CORE(5), "30\n") &&
	      !write_file(CORE(5), "15E") && reads(CORE(5), "17293822569102704640\n"), "units");
	CHECK(write_file(CORE(5), "16E") == ERANGE && write_file(CORE(5), "G") == EINVAL &&
	      write_file(CORE(5), "8GG") == EINVAL && write_file(CORE(5), "8 G") == EINVAL &&
	      write_file(CORE(5), "8Z") == EINVAL && write_file(CORE(5), "8Gx") == EINVAL &&
	      write_file(CORE(5), "-1G") == EINVAL && !write_file(CORE(5), "0x100000"),
	      "what is none");
	CHECK(write_file(CORE(5), "lots") == EINVAL && write_file(CORE(5), "-1") == EINVAL &&
	      write_file(CORE(5), "") == 0 && reads(CORE(5), "1048576\n"), "nonsense: EINVAL");
	CHECK(!set(fd, NEURON_NATIVE_LIMIT_CORE, 5, 1ull << 50) &&
	      try_alloc(fd, (1ull << 50) + 4096, 1, 5, &b) == ENOMEM &&
	      b.reason == NEURON_NATIVE_REASON_CAPPED && b.limit == 1ull << 50 &&
	      try_alloc(fd, 1ull << 50, 1, 5, &b) == ENOMEM &&
	      b.reason == NEURON_NATIVE_REASON_FULL && b.limit == NONE,
	      "more than there is, and a limit of that: full, above it capped");
	CHECK(!set(fd, NEURON_NATIVE_LIMIT_CORE, 5, NONE) && reads(CORE(5), "max\n"),
	      "no limit any more, by the ioctl");
	CHECK(limit(fd, 0, NEURON_NATIVE_LIMIT_CORE, 8, 0, NULL) == EINVAL &&
	      limit(fd, 0, NEURON_NATIVE_LIMIT_CORE, -1, 0, NULL) == EINVAL &&
	      limit(fd, 0, NEURON_NATIVE_LIMIT_DEFAULT, 1, 0, NULL) == EINVAL &&
	      limit(fd, 0, 3, 0, 0, NULL) == EINVAL &&
	      limit(fd, 2, NEURON_NATIVE_LIMIT_CORE, 0, 0, NULL) == EINVAL &&
	      limit(fd, 0, NEURON_NATIVE_LIMIT_CORE, 0, 1, NULL) == EINVAL,
	      "no such core, limit or flag: EINVAL");
	CHECK(limit(fd, 0, NEURON_NATIVE_LIMIT_PROCESS, 999999, 0, NULL) == ENOENT,
	      "no such process: ENOENT");
	CHECK(limit(fd, 0, NEURON_NATIVE_LIMIT_PROCESS, 1, 0, NULL) == ENOENT,
	      "a process that has not opened the device: ENOENT");
}

/* Without privileges. */
static void nobody(void)
{
	struct neuron_native_mem_alloc a;
	struct neuron_native_limit l;
	int fd = open_node(O_RDWR);

	CHECK(!setuid(65534), "become nobody");
	CHECK(set(fd, NEURON_NATIVE_LIMIT_CORE, 0, 0) == EPERM &&
	      set(fd, NEURON_NATIVE_LIMIT_DEFAULT, 0, 0) == EPERM &&
	      set(fd, NEURON_NATIVE_LIMIT_PROCESS, getppid(), 0) == EPERM &&
	      !limit(fd, 0, NEURON_NATIVE_LIMIT_DEFAULT, 0, 0, &l) && l.bytes == 64 * MIB,
	      "nobody sets a limit of others: EPERM, but reads them");
	CHECK(set(fd, NEURON_NATIVE_LIMIT_PROCESS, 0, 65 * MIB) == EPERM,
	      "nor raises his own: EPERM");
	CHECK(!set(fd, NEURON_NATIVE_LIMIT_PROCESS, 0, 2 * MIB) &&
	      !set(fd, NEURON_NATIVE_LIMIT_PROCESS, getpid(), MIB) &&
	      set(fd, NEURON_NATIVE_LIMIT_PROCESS, 0, 2 * MIB) == EPERM,
	      "he lowers it, and that is that");
	CHECK(try_alloc(fd, MIB + 1, 0, 0, &a) == ENOMEM && a.limit == MIB &&
	      !try_alloc(fd, MIB, 0, 0, &a), "it holds");
	close(fd);
}

static void test_process(int fd)
{
	struct neuron_native_mem_alloc a, b;
	struct neuron_native_limit l;

	CHECK(!write_file(PROCESS, "67108864"), "64 MiB for every process");
	CHECK(!try_alloc(fd, 40 * MIB, 0, 0, &a) && try_alloc(fd, 40 * MIB, 1, 2, &b) == ENOMEM &&
	      b.reason == NEURON_NATIVE_REASON_CAPPED && b.limit == 64 * MIB,
	      "over all HBMs and cores");
	CHECK(!limit(fd, 0, NEURON_NATIVE_LIMIT_PROCESS, 0, 0, &l) && l.bytes == 64 * MIB &&
	      l.used == 40 * MIB, "of which 40 are in use");
	in_child(nobody);
	CHECK(!set(fd, NEURON_NATIVE_LIMIT_PROCESS, getpid(), 80 * MIB) &&
	      !try_alloc(fd, 40 * MIB, 1, 2, &b), "an exception for one");
	mem_free(fd, a.mem_handle);
	mem_free(fd, b.mem_handle);
	CHECK(!limit(fd, NEURON_NATIVE_LIMIT_SET, NEURON_NATIVE_LIMIT_PROCESS, 0, NONE, &l) &&
	      l.bytes == 64 * MIB && !l.used, "and back to the default");
	CHECK(!set(fd, NEURON_NATIVE_LIMIT_DEFAULT, 0, NONE) && reads(PROCESS, "max\n"),
	      "no default");
}

/* An argument that cannot be written to. */
static int unheard(int fd, uint32_t what, int32_t index, uint64_t bytes)
{
	struct neuron_native_limit l = {
		.size = sizeof(l), .flags = NEURON_NATIVE_LIMIT_SET, .what = what,
		.index = index, .bytes = bytes,
	};
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	if (page == MAP_FAILED)
		return -1;
	memcpy(page, &l, sizeof(l));
	err = mprotect(page, 4096, PROT_READ) ? -1 : call(fd, NEURON_NATIVE_LIMIT, page);
	munmap(page, 4096);
	return err;
}

static void nobody_unheard(void)
{
	struct neuron_native_limit l;
	int fd = open_node(O_RDWR);

	CHECK(!setuid(65534), "become nobody");
	CHECK(unheard(fd, NEURON_NATIVE_LIMIT_PROCESS, 0, MIB) == EFAULT &&
	      !limit(fd, 0, NEURON_NATIVE_LIMIT_PROCESS, 0, 0, &l) && l.bytes == NONE,
	      "nor does he set his own without hearing of it");
	close(fd);
}

static void test_unheard(int fd)
{
	struct neuron_native_limit l;

	CHECK(unheard(fd, NEURON_NATIVE_LIMIT_CORE, 5, MIB) == EFAULT && reads(CORE(5), "max\n"),
	      "the result cannot be written: EFAULT, and no limit of a core");
	CHECK(unheard(fd, NEURON_NATIVE_LIMIT_DEFAULT, 0, MIB) == EFAULT && reads(PROCESS, "max\n"),
	      "nor of all processes");
	CHECK(unheard(fd, NEURON_NATIVE_LIMIT_PROCESS, 0, MIB) == EFAULT &&
	      !limit(fd, 0, NEURON_NATIVE_LIMIT_PROCESS, 0, 0, &l) && l.bytes == NONE,
	      "nor of one");
	in_child(nobody_unheard);
}

#define THREADS		8
#define ROUNDS		400

static int shared_fd;
static uint64_t refused[THREADS], worst[THREADS];

/* Two of them at once would be enough to go beyond. */
static void *racer(void *arg)
{
	struct neuron_native_mem_alloc a[4];
	struct neuron_native_limit l;
	long me = (long)arg;
	int i, j, n;

	for (i = 0; i < ROUNDS; i++) {
		for (n = 0; n < 4; n++)
			if (try_alloc(shared_fd, MIB, me % 4, 6, &a[n]))
				break;
		if (n < 4)
			refused[me] += a[n].reason == NEURON_NATIVE_REASON_CAPPED ? 1 : 1000000;
		if (limit(shared_fd, 0, NEURON_NATIVE_LIMIT_CORE, 6, 0, &l))
			worst[me] = NONE;
		else if (l.used > worst[me])
			worst[me] = l.used;
		for (j = 0; j < n; j++)
			mem_free(shared_fd, a[j].mem_handle);
	}
	return NULL;
}

static void test_threads(int fd)
{
	pthread_t t[THREADS];
	uint64_t sum = 0, high = 0;
	struct neuron_native_limit l;
	long i;

	shared_fd = fd;
	CHECK(!set(fd, NEURON_NATIVE_LIMIT_CORE, 6, 6 * MIB), "6 MiB for 8 threads");
	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, racer, (void *)i);
	for (i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		sum += refused[i];
		high = worst[i] > high ? worst[i] : high;
	}
	CHECK(high <= 6 * MIB && high, "never beyond (%llu)", (unsigned long long)high);
	CHECK(sum < 1000000, "each refusal says capped (%llu)", (unsigned long long)sum);
	CHECK(!limit(fd, 0, NEURON_NATIVE_LIMIT_CORE, 6, 0, &l) && !l.used, "all is back");
	CHECK(!set(fd, NEURON_NATIVE_LIMIT_CORE, 6, NONE), "no limit");
}

static uint64_t seen_by_others;

/* Another process, with failures of its own. */
static void other(void)
{
	struct neuron_native_failure f[NEURON_NATIVE_FAILURES_MAX];
	struct neuron_native_mem_alloc a;
	uint32_t n = NEURON_NATIVE_FAILURES_MAX;
	uint64_t since = seen_by_others;
	int fd = open_node(O_RDWR);

	CHECK(!setuid(65534), "become nobody");
	CHECK(!failures(fd, f, &n, &since) && n == 0 && since > seen_by_others,
	      "failures of others are not shown");
	CHECK(try_alloc(fd, 1ull << 41, 2, 3, &a) == ENOMEM, "fail");
	n = NEURON_NATIVE_FAILURES_MAX;
	since = seen_by_others;
	CHECK(!failures(fd, f, &n, &since) && n == 1 && f[0].pid == getpid() &&
	      f[0].bytes == 1ull << 41 && f[0].hbm == 2 && f[0].nc_id == 3, "his own is");
	close(fd);
}

static void test_record(int fd)
{
	struct neuron_native_failure f[NEURON_NATIVE_FAILURES_MAX];
	struct neuron_native_mem_alloc a, b, big = { .size = sizeof(big) };
	struct neuron_native_hbm_stats s;
	uint32_t i, n = NEURON_NATIVE_FAILURES_MAX;
	uint64_t since = 0, start;
	struct timespec now;
	char log[65536], want[512];
	int len;

	for (i = 0; i <= NEURON_NATIVE_FAILURES_MAX; i++)
		if (try_alloc(fd, 1ull << 41, 3, 6, &a) != ENOMEM)
			break;
	CHECK(i > NEURON_NATIVE_FAILURES_MAX, "more failures than are kept");
	CHECK(!failures(fd, f, &n, &since) && n == NEURON_NATIVE_FAILURES_MAX,
	      "as many as are kept");
	for (i = 1; i < n && f[i].seq == f[i - 1].seq + 1; i++)
		;
	CHECK(i == n && f[n - 1].seq == since, "in their order");
	start = since;
	n = NEURON_NATIVE_FAILURES_MAX;
	CHECK(!failures(fd, f, &n, &since) && n == 0 && since == start, "nothing since then");

	CHECK(!try_alloc(fd, 7 * MIB, 3, 6, &a) && !try_alloc(fd, 2 * MIB, 3, 6, &b), "memory");
	big.bytes = 1ull << 40;
	big.align = 4 * MIB;
	big.hbm = 3;
	big.nc_id = 7;
	big.mem_type = NEURON_MEMALLOC_TYPE_CODE_DEVICE;
	/* Out of the log's rate limit. */
	sleep(6);
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC, &big) == ENOMEM, "one more failure");
	s = stats(fd, 3);
	clock_gettime(CLOCK_REALTIME, &now);
	n = NEURON_NATIVE_FAILURES_MAX;
	CHECK(!failures(fd, f, &n, &since) && n == 1 && since == start + 1, "is recorded");
	CHECK(f[0].pid == getpid() && f[0].reason == NEURON_NATIVE_REASON_FULL && !f[0].flags &&
	      f[0].hbm == 3 && f[0].nc_id == 7 && f[0].bytes == 1ull << 40 &&
	      f[0].align == 4 * MIB && f[0].mem_type == NEURON_MEMALLOC_TYPE_CODE_DEVICE &&
	      f[0].limit == NONE, "with what was asked for");
	CHECK(f[0].total == s.total && f[0].free == s.free && f[0].largest_free == s.largest_free &&
	      f[0].largest_aligned && f[0].largest_aligned <= s.largest_free,
	      "what there was");
	CHECK(f[0].category[0].mem_type == NEURON_MEMALLOC_TYPE_TENSORS_DEVICE &&
	      f[0].category[0].bytes == 9 * MIB && !f[0].category[1].bytes &&
	      f[0].process[0].pid == getpid() && f[0].process[0].bytes == 9 * MIB &&
	      !f[0].process[1].bytes, "who held it");
	CHECK(f[0].time / 1000000000 <= (uint64_t)now.tv_sec &&
	      f[0].time / 1000000000 + 60 > (uint64_t)now.tv_sec, "and when");

	len = klogctl(3, log, sizeof(log) - 1);
	log[len > 0 ? len : 0] = 0;
	snprintf(want, sizeof(want), "neuron0: neuron:mc_alloc: device mempool [3:0] total %llu "
		 "occupied %llu needed %llu available %llu align %llu largest %llu largest aligned "
		 "%llu cap none for nc 7 category model_code pid %d: full; categories: tensors %llu; "
		 "processes: %d %llu\n", (unsigned long long)s.total,
		 (unsigned long long)(s.total - s.free), 1ull << 40, (unsigned long long)s.free,
		 4 * MIB, (unsigned long long)s.largest_free,
		 (unsigned long long)f[0].largest_aligned, getpid(), 9 * MIB, getpid(), 9 * MIB);
	CHECK(strstr(log, want), "the kernel log says the same: %s", want);

	seen_by_others = since;
	n = NEURON_NATIVE_FAILURES_MAX;
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC, &big) == ENOMEM, "and one more");
	in_child(other);
	CHECK(!failures(fd, f, &n, &since) && n == 2 && f[0].pid == getpid() &&
	      f[1].pid != getpid() && f[1].pid > 1, "root sees all");
	CHECK(f[1].process[0].pid == getpid() || !f[1].process[0].bytes, "also who held memory");

	/* Room for fewer: the rest comes with the next call. */
	since = seen_by_others;
	n = 1;
	CHECK(!failures(fd, f, &n, &since) && n == 1 && since == seen_by_others + 1 &&
	      !failures(fd, f, &n, &since) && n == 1 && since == seen_by_others + 2, "one by one");
	since = seen_by_others;
	n = 2;
	CHECK(failures(fd, (void *)8, &n, &since) == EFAULT, "nowhere to store them: EFAULT");
	mem_free(fd, a.mem_handle);
	mem_free(fd, b.mem_handle);
}

int main(void)
{
	int fd = open_node(O_RDWR);

	test_core(fd);
	test_unheard(fd);
	test_process(fd);
	test_threads(fd);
	test_record(fd);
	close(fd);
	return failed != 0;
}

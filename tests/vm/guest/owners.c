// SPDX-License-Identifier: GPL-2.0-only
/* OWNER and OWNERS: who has how much, and that nothing escapes the sums. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "check.h"

#define MIB	(1ull << 20)
#define ROOM	1024

static struct neuron_native_owner_entry list[ROOM];

/* All of an HBM.  @used, @driver may be NULL; @n: entries.  0 or the errno. */
static int owners(int fd, uint32_t hbm, uint32_t flags, uint32_t *n, uint64_t *used,
		  uint64_t *driver)
{
	struct neuron_native_owners a = {
		.size = sizeof(a), .hbm = hbm, .flags = flags, .entry_size = sizeof(list[0]),
		.entries = (uintptr_t)list, .count = ROOM,
	};
	int err = call(fd, NEURON_NATIVE_OWNERS, &a);

	*n = a.count;
	if (used)
		*used = a.used;
	if (driver)
		*driver = a.driver;
	return err ? err : a.count != a.total ? E2BIG : 0;
}

static int owner(int fd, uint32_t flags, uint32_t *id, const char *label)
{
	struct neuron_native_owner a = { .size = sizeof(a), .flags = flags, .owner = *id };
	int err;

	snprintf(a.label, sizeof(a.label), "%s", label);
	err = call(fd, NEURON_NATIVE_OWNER, &a);
	*id = a.owner;
	return err;
}

static uint64_t alloc_for(int fd, uint32_t id, uint64_t bytes, int *err)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = bytes, .owner = id,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};

	*err = call(fd, NEURON_NATIVE_MEM_ALLOC, &a);
	return a.mem_handle;
}

/* The figures of an owner of the caller in HBM 0; all 0 if there is none. */
static struct neuron_native_owner_entry figures(int fd, uint32_t id)
{
	static const struct neuron_native_owner_entry none;
	uint32_t n;

	CHECK(!owners(fd, 0, 0, &n, NULL, NULL), "owners");
	for (uint32_t i = 0; i < n; i++)
		if (list[i].pid == getpid() && list[i].owner == id)
			return list[i];
	return none;
}

static void life(int fd)
{
	struct neuron_native_owner_entry f;
	uint32_t id = 0, other = 0, n, none = 0;
	uint64_t a, b;
	int err;

	CHECK(!owner(fd, 0, &id, "weights") && id, "an owner");
	CHECK(!owner(fd, 0, &other, "weights") && other != id, "another one of that name");
	a = alloc_for(fd, id, 3 * MIB, &err);
	CHECK(!err, "memory for it");
	b = alloc_for(fd, id, MIB, &err);
	f = figures(fd, id);
	CHECK(f.bytes == 4 * MIB && f.peak == 4 * MIB && !f.steady && f.allocs == 2 &&
	      !strcmp(f.label, "weights"), "has what it got");
	CHECK(!mem_free(fd, b), "free");
	f = figures(fd, id);
	CHECK(f.bytes == 3 * MIB && f.peak == 4 * MIB && f.allocs == 1, "the peak stays");
	CHECK(!owners(fd, 0, NEURON_NATIVE_OWNERS_CLEAR, &n, NULL, NULL), "start again");
	f = figures(fd, id);
	CHECK(f.peak == 3 * MIB && f.steady == 3 * MIB, "peak and steady are what there is");
	usleep(300000);
	f = figures(fd, id);
	/* Within a tick of a millisecond at both ends, of what the clock says. */
	CHECK(f.time > 250000000 && f.byte_seconds >= (f.time - 4000000) * 3 * MIB / 1000000000 &&
	      f.byte_seconds <= (f.time + 4000000) * 3 * MIB / 1000000000,
	      "%llu byte-seconds in %llu ms", (unsigned long long)f.byte_seconds,
	      (unsigned long long)f.time / 1000000);

	CHECK(!owner(fd, NEURON_NATIVE_OWNER_RENAME, &id, "w 2"), "rename");
	CHECK(!owner(fd, NEURON_NATIVE_OWNER_RENAME, &none, "me"), "rename the process itself");
	CHECK(!strcmp(figures(fd, 0).label, "me"), "that is its name");
	CHECK(!owner(fd, NEURON_NATIVE_OWNER_RELEASE, &id, ""), "release");
	f = figures(fd, id);
	CHECK(f.flags == NEURON_NATIVE_OWNER_RELEASED && f.bytes == 3 * MIB &&
	      !strcmp(f.label, "w 2"), "it keeps what it has");
	alloc_for(fd, id, MIB, &err);
	CHECK(err == ENOENT, "and gets no more");
	CHECK(owner(fd, NEURON_NATIVE_OWNER_RELEASE, &id, "") == ENOENT, "release twice");
	CHECK(!mem_free(fd, a) && !figures(fd, id).allocs && !figures(fd, id).owner,
	      "with its memory it is gone");
	CHECK(!owner(fd, NEURON_NATIVE_OWNER_RELEASE, &other, ""), "release");
}

static void bad(int fd)
{
	struct neuron_native_owner a = { .size = sizeof(a), .label = "x" };
	struct neuron_native_owners s = {
		.size = sizeof(s), .entry_size = sizeof(list[0]), .count = 1, .entries = 8,
	};
	uint32_t ids[NEURON_NATIVE_OWNERS_MAX] = { 0 }, id = 7, one = 0, i;
	int err;

	CHECK(owner(fd, 0, &id, "x") == EINVAL, "a number of its own choice");
	id = 0;
	CHECK(owner(fd, 0, &id, "") == EINVAL, "no name");
	CHECK(owner(fd, 0, &id, "a\nb") == EINVAL, "a name with a line end");
	CHECK(owner(fd, 0, &id, "\303\244") == EINVAL, "one that is not ASCII");
	CHECK(owner(fd, NEURON_NATIVE_OWNER_RELEASE, &id, "") == ENOENT, "release the process");
	CHECK(owner(fd, 4, &id, "x") == EINVAL, "unknown flag");
	memset(a.label, 'x', sizeof(a.label));
	CHECK(call(fd, NEURON_NATIVE_OWNER, &a) == EINVAL, "a name without end");
	memcpy(a.label, "x\0y", 4);
	CHECK(call(fd, NEURON_NATIVE_OWNER, &a) == EINVAL, "something behind the name");
	alloc_for(fd, 60000, MIB, &err);
	CHECK(err == ENOENT, "memory for an owner that is not there");
	CHECK(call(fd, NEURON_NATIVE_OWNERS, &s) == EFAULT, "no memory there");
	s.hbm = 99;
	CHECK(call(fd, NEURON_NATIVE_OWNERS, &s) == EINVAL, "an HBM that is not there");
	s.hbm = 0;
	s.flags = 2;
	CHECK(call(fd, NEURON_NATIVE_OWNERS, &s) == EINVAL, "unknown flag");
	s.flags = 0;
	s.entry_size--;
	CHECK(call(fd, NEURON_NATIVE_OWNERS, &s) == EINVAL, "entries of another length");
	s.entry_size++;
	s.entries = 0;
	s.count = 0;
	CHECK(!call(fd, NEURON_NATIVE_OWNERS, &s) && s.total >= 1, "no room: how many there are");
	for (i = 0; i < NEURON_NATIVE_OWNERS_MAX && !owner(fd, 0, &ids[i], "many"); i++)
		;
	CHECK(i == NEURON_NATIVE_OWNERS_MAX, "%u owners", i);
	CHECK(owner(fd, 0, &one, "one more") == ENOSPC, "no more");
	while (i--)
		owner(fd, NEURON_NATIVE_OWNER_RELEASE, &ids[i], "");
	CHECK(!owner(fd, 0, &one, "again") && one > ids[NEURON_NATIVE_OWNERS_MAX - 1],
	      "numbers are not used again at once");
	CHECK(!owner(fd, NEURON_NATIVE_OWNER_RELEASE, &one, ""), "release");
}

/* Allocate and free for some owners, until killed. */
static void churn(unsigned int seed)
{
	int fd = open_node(O_RDWR), err;
	uint64_t handle[16] = { 0 };
	uint32_t id[4] = { 0 };

	for (;;) {
		unsigned int i = rand_r(&seed) % 16, o = rand_r(&seed) % 4;

		if (handle[i])
			mem_free(fd, handle[i]);
		handle[i] = alloc_for(fd, id[o], 4096ull << rand_r(&seed) % 9, &err);
		if (err)
			handle[i] = 0;
		if (rand_r(&seed) % 8)
			continue;
		if (id[o])
			owner(fd, NEURON_NATIVE_OWNER_RELEASE, &id[o], "");
		id[o] = 0;
		owner(fd, 0, &id[o], "churn");
	}
}

/* Whatever happens meanwhile: owners and driver have what is used, at every instant. */
static void stress(int fd)
{
	unsigned int rounds, wrong = 0, several = 0;
	struct timespec now, end;
	uint64_t used, driver, sum;
	pid_t pid[4];
	uint32_t n;

	fflush(stdout);
	for (unsigned int i = 0; i < 4; i++) {
		pid[i] = fork();
		if (!pid[i])
			churn(i + 1);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 3;
	for (rounds = 0; rounds < 20000; rounds++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > end.tv_sec)
			break;
		if (owners(fd, 0, 0, &n, &used, &driver)) {
			wrong++;
			continue;
		}
		sum = driver;
		for (uint32_t i = 0; i < n; i++)
			sum += list[i].bytes;
		wrong += sum != used;
		several += n > 8;
	}
	CHECK(!wrong && several, "sum of owners = used, %u times of %u, with many owners %u times",
	      rounds - wrong, rounds, several);
	for (unsigned int i = 0; i < 4; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	CHECK(!owners(fd, 0, 0, &n, &used, &driver) && n == 1 && used == driver,
	      "the dead have nothing");
}

/* Memory that is still mapped belongs to its owner, who has been released. */
static void outlives(int fd)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = MIB, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	uint32_t id = 0;
	void *map;

	CHECK(!owner(fd, 0, &id, "mapped"), "an owner");
	a.owner = id;
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "memory for it");
	map = mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, a.mmap_offset);
	CHECK(map != MAP_FAILED && !mem_free(fd, a.mem_handle) &&
	      !owner(fd, NEURON_NATIVE_OWNER_RELEASE, &id, ""), "mapped, freed, released");
	CHECK(figures(fd, id).bytes == MIB, "it still has the memory");
	munmap(map, MIB);
	CHECK(!figures(fd, id).owner, "until it is unmapped");
}

static uint32_t theirs;
static int shared_fd;

static void stranger(void)
{
	int fd = open_node(O_RDWR);
	uint32_t n;

	if (setresgid(65533, 65533, 65533) || setresuid(65533, 65533, 65533))
		CHECK(0, "give up privileges");
	CHECK(!owners(fd, 0, 0, &n, NULL, NULL) && n == 1 && list[0].pid == getpid(),
	      "another user sees his own");
	CHECK(!owners(shared_fd, 0, 0, &n, NULL, NULL) && n == 1 && list[0].pid == getpid(),
	      "and no more with a descriptor that somebody else has opened");
	CHECK(owners(shared_fd, 0, NEURON_NATIVE_OWNERS_CLEAR, &n, NULL, NULL) == EACCES,
	      "nor does he start the figures of that one again");
}

static void secrets(int fd)
{
	uint64_t handle;
	int err;

	CHECK(!owner(fd, 0, &theirs, "secret"), "an owner");
	handle = alloc_for(fd, theirs, MIB, &err);
	shared_fd = fd;
	in_child(stranger);
	CHECK(!mem_free(fd, handle) && !owner(fd, NEURON_NATIVE_OWNER_RELEASE, &theirs, ""),
	      "release");
}

static void fdinfo(int fd)
{
	char path[64], text[4096], want[80];
	uint64_t handle;
	uint32_t id = 0;
	int file, err;
	ssize_t len;

	CHECK(!owner(fd, 0, &id, "shown"), "an owner");
	handle = alloc_for(fd, id, 2 * MIB, &err);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = open(path, O_RDONLY);
	len = read(file, text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = 0;
	close(file);
	snprintf(want, sizeof(want), "\nneuron-owner:\t%u hbm0 2048 KiB peak 2048 KiB shown\n", id);
	CHECK(strstr(text, want), "fdinfo shows it");
	mem_free(fd, handle);
	owner(fd, NEURON_NATIVE_OWNER_RELEASE, &id, "");
}

int main(void)
{
	int fd = open_node(O_RDWR), look = open_node(O_WRONLY);
	uint32_t n, id = 0;

	CHECK(!owners(look, 0, 0, &n, NULL, NULL) && n == 1, "without being a user of the device");
	CHECK(owners(look, 0, NEURON_NATIVE_OWNERS_CLEAR, &n, NULL, NULL) == EINVAL,
	      "who has no figures cannot start them again");
	CHECK(owner(look, 0, &id, "x") == EACCES, "who is no user has no owners");
	life(fd);
	bad(fd);
	outlives(fd);
	secrets(fd);
	fdinfo(fd);
	stress(fd);
	return failed != 0;
}

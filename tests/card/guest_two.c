// SPDX-License-Identifier: GPL-2.0-only
/* Two cards at work: one is pulled out and comes again, and the other does not notice. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>

#include "guest_cards.h"

#define BYTES	(256u << 10)
#define MORE	10u	/* rounds that show that a card is at work */
#define PATIENCE 60.0	/* seconds */

/**
 * struct traffic - a process that copies to a card and back
 * @rounds: done
 * @wrong: bytes that were not what was written
 * @err: errno that ended it
 * @pid: the process
 */
struct traffic {
	volatile unsigned int rounds, wrong;
	volatile int err;
	pid_t pid;
};

static int copy(int fd, uint64_t handle, uint8_t *buf, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = buf, .size = BYTES, .copy_to_mem_handle = to,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

/* Through two places of device memory, until that fails. */
static int work(const struct card *c, struct traffic *t)
{
	struct neuron_native_mem_alloc a[2] = { { .size = sizeof(a[0]) } };
	uint8_t *in = malloc(BYTES), *out = malloc(BYTES);
	struct neuron_ioctl_mem_copy64 move = { .size = BYTES };
	int fd = open_card(c), err = 0;
	uint32_t i;

	a[0].bytes = BYTES;
	a[0].mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE;
	a[1] = a[0];
	err = call(fd, NEURON_NATIVE_MEM_ALLOC, &a[0]) ?: call(fd, NEURON_NATIVE_MEM_ALLOC, &a[1]);
	move.src_mem_handle = a[0].mem_handle;
	move.dst_mem_handle = a[1].mem_handle;
	for (; !err; t->rounds++) {
		for (i = 0; i < BYTES; i++)
			in[i] = i * 5 + (i >> 8) + t->rounds + c->number;
		err = copy(fd, a[0].mem_handle, in, 1) ?: call(fd, NEURON_IOCTL_MEM_COPY64, &move) ?:
		      copy(fd, a[1].mem_handle, out, 0);
		t->wrong += !err && memcmp(in, out, BYTES);
	}
	return err;
}

static void start(const struct card *c, struct traffic *t)
{
	pid_t pid;

	t->rounds = t->wrong = t->err = 0;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		t->err = work(c, t);
		_exit(0);
	}
	/* The child shares it, and must not write its own 0 there. */
	t->pid = pid;
}

/* It goes on, without an error. */
static void goes_on(const char *what, const struct card *c, const struct traffic *t)
{
	unsigned int before = t->rounds;
	double end = seconds() + PATIENCE;

	while (t->rounds < before + MORE && !t->err && seconds() < end)
		usleep(10000);
	CHECK(t->rounds >= before + MORE && !t->err && !t->wrong, "%s: %s copies (%u rounds, errno %d)",
	      what, c->name, t->rounds, t->err);
}

static void ends(const struct card *c, const struct traffic *t)
{
	char path[64];
	double end = seconds() + PATIENCE;

	while ((!t->err || !node(c, path, sizeof(path))) && seconds() < end)
		usleep(10000);
	/* A copy looks at the card only when its time is over. */
	CHECK(t->err == ENODEV || t->err == EIO || t->err == ETIMEDOUT, "%s: its process gets an error: %d", c->name, t->err);
	CHECK(!t->wrong && node(c, path, sizeof(path)), "%s: its device is gone", c->name);
	waitpid(t->pid, NULL, 0);
}

static int bind_card(const struct card *c, const char *how)
{
	char path[96];
	const char *at = strrchr(c->pci, '/') + 1;
	int fd, err;

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/neuron_pci/%s", how);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	err = write(fd, at, strlen(at)) != (ssize_t)strlen(at);
	close(fd);
	return err;
}

int main(void)
{
	struct traffic *t = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct card *stays, *goes;

	find_cards();
	stays = next_card(NULL);
	goes = stays ? next_card(stays) : NULL;
	CHECK(goes, "there are two");
	CHECK(load("hbm_limit=64"), "load");
	if (failed)
		return 1;
	start(stays, &t[0]);
	start(goes, &t[1]);
	goes_on("both", stays, &t[0]);
	goes_on("both", goes, &t[1]);

	tell(goes, "removed 1");
	ends(goes, &t[1]);
	goes_on("one is pulled out", stays, &t[0]);
	CHECK(!bind_card(goes, "unbind"), "the driver lets go of it");
	tell(goes, "removed 0");
	CHECK(!bind_card(goes, "bind"), "it comes again");
	start(goes, &t[1]);
	goes_on("it is back", goes, &t[1]);

	CHECK(!bind_card(goes, "unbind"), "it is taken away in order");
	ends(goes, &t[1]);
	goes_on("one is taken away", stays, &t[0]);
	kill(t[0].pid, SIGKILL);
	waitpid(t[0].pid, NULL, 0);
	CHECK(unload(), "unload");
	return failed != 0;
}

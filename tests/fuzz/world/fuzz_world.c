// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the registry of ranks on several hosts, and a rank that listens to one.
 *
 * The first byte says which.  To the registry processes connect, say hello with something
 * wrong in it or right, in pieces, say anything at all, hang up, read, wait.  It is the
 * library's own, in this thread; only poll() does not wait, the clock is ours, and the
 * connections are no TCP.
 *
 * Whatever they do, the tables stay consistent, what everybody is told is the same and has
 * its form, and no descriptor stays behind.  A rank takes only a table that is one.
 */
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../must.h"
#include "common/wait.h"

static uint64_t world_clock = 1;

static int poll_now(struct pollfd *pfd, nfds_t nr, int timeout)
{
	(void)timeout;
	return poll(pfd, nr, 0);
}

static int no_option(int fd, int level, int name, const void *value, socklen_t size)
{
	(void)fd;
	(void)level;
	(void)name;
	(void)value;
	(void)size;
	return 0;
}

#define poll(pfd, nr, timeout) poll_now(pfd, nr, timeout)
#define now_ns() world_clock
#define setsockopt no_option
#include "nrt/cc/world.c"
#undef poll
#undef setsockopt

#define NR_CLIENTS (MAX_SILENT + 12)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct client {
	int fd;				/* -1: none */
	size_t heard;			/* of the stream */
	bool refused;
} clients[NR_CLIENTS];

static const uint8_t *input, *input_end;

static uint8_t byte(void)
{
	return input < input_end ? *input++ : 0;
}

/* ---- the registry -------------------------------------------------------------------- */

static void hang_up(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	*c = (struct client){ .fd = -1 };
}

static void connect_client(struct registry *r, struct client *c)
{
	int pair[2];

	hang_up(c);
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
	c->fd = pair[0];
	add_guest(r, pair[1]);
}

static void say_hello(const struct registry *r, struct client *c)
{
	struct world_hello h = {
		.magic = WORLD_MAGIC, .version = WORLD_VERSION, .rank = byte(), .count = r->count,
		.name_size = byte() % (WORLD_NAME + 1),
	};
	uint8_t change = byte(), from = byte(), size = byte();

	h.host[0] = byte() & 3;
	/* One word of the header is wrong. */
	if (change & 1)
		((uint32_t *)&h)[(change >> 1 & 7) % 6] ^= 1u << (change >> 3);
	/* A part of it is the rest of one, or the beginning. */
	from = from < 200 ? 0 : from % sizeof(h);
	size = size < 200 ? sizeof(h) - from : size % (sizeof(h) - from);
	(void)!send(c->fd, (uint8_t *)&h + from, size, MSG_NOSIGNAL);
}

static void say_anything(struct client *c)
{
	uint8_t noise[256] = { 0 };
	size_t n = byte();

	for (size_t i = 0; i < n; i++)
		noise[i] = byte();
	(void)!send(c->fd, noise, n, MSG_NOSIGNAL);
}

/* The stream from where this one has heard it, or one refusal. */
static void hear_client(const struct registry *r, struct client *c)
{
	uint8_t bytes[4096];
	struct world_head head;
	ssize_t n = recv(c->fd, bytes, 1 + byte() * 16u, 0);

	if (n <= 0)
		return;
	must(!c->refused);
	if (!c->heard && n == sizeof(head)) {
		memcpy(&head, bytes, sizeof(head));
		c->refused = head.status != NRT_SUCCESS;
	}
	if (c->refused) {
		must(head.magic == WORLD_MAGIC && head.count <= REASON_MET);
		return;
	}
	if (!r->size || memcmp(bytes, r->stream + c->heard, (size_t)n)) {
		/* A refusal that is read in pieces. */
		must((size_t)n < sizeof(head) && c->heard < sizeof(head));
	}
	c->heard += (size_t)n;
	must(c->heard <= r->size || c->heard <= sizeof(head));
}

static void check_registry(const struct registry *r)
{
	uint32_t seated = 0, silent = 0, seats = 0, gone = 0;

	for (uint32_t i = 0; i < r->nr_guests; i++) {
		const struct guest *g = &r->guests[i];

		if (g->fd < 0) {
			must(!g->seated);
			continue;
		}
		seated += g->seated;
		silent += !g->seated;
		must(g->got <= sizeof(g->hello) && g->sent <= r->size);
		must(!g->seated || r->seats[g->hello.rank] == g);
	}
	for (uint32_t i = 0; i < r->count; i++) {
		seats += r->seats[i] != NULL;
		gone += r->gone[i];
		must(!r->gone[i] || !r->seats[i]);
	}
	must(seats == seated && silent <= MAX_SILENT);
	must(r->size ? seated + gone == r->count : seated == r->seated && seated < r->count);
	must(!r->size || r->size == sizeof(struct world_head) +
	     r->count * sizeof(struct world_rank) + gone * sizeof(uint32_t));
}

static void fuzz_registry(void)
{
	struct registry *r = registry_new(1 + byte() % 6);

	must(r);
	r->stop = eventfd(0, EFD_CLOEXEC);
	for (size_t i = 0; i < NR_CLIENTS; i++)
		clients[i] = (struct client){ .fd = -1 };
	while (input < input_end) {
		uint8_t what = byte();
		struct client *c = &clients[byte() % NR_CLIENTS];

		switch (c->fd < 0 ? 0 : what % 7) {
		case 0: connect_client(r, c); break;
		case 1: hang_up(c); break;
		case 2: case 3: say_hello(r, c); break;
		case 4: say_anything(c); break;
		case 5: hear_client(r, c); break;
		case 6: world_clock += byte() * 16000000ull; break;
		}
		if (!(what & 0x80)) {
			must(registry_step(r));
			check_registry(r);
		}
	}
	for (size_t i = 0; i < NR_CLIENTS; i++)
		hang_up(&clients[i]);
	/* What they have said is heard, a byte or a message at a time, and then their end. */
	for (int i = 0; i < 3; i++)
		must(registry_step(r));
	world_clock += HELLO_MS * 1000000ull;
	must(registry_step(r));
	for (uint32_t i = 0; i < r->nr_guests; i++)
		must(r->guests[i].fd < 0);
	registry_free(r);
}

/* ---- a rank -------------------------------------------------------------------------- */

static void check_table(const struct world *w, uint32_t count)
{
	must(w->count == count);
	for (uint32_t i = 0; i < count; i++)
		must(w->ranks[i].host <= i && w->ranks[i].name_size <= WORLD_NAME);
}

static void fuzz_rank(void)
{
	static struct world w;
	struct world_hello hello = { .count = 1 + byte() % 6 };
	struct deadline deadline = deadline_in(0);
	uint32_t all[] = { 0, 1, 2, 3, 4, 5 };
	uint8_t heads = byte();
	struct world_head head = {
		.magic = WORLD_MAGIC, .status = heads & 1 ? byte() : 0, .count = hello.count,
	};
	NRT_STATUS status;
	int pair[2];

	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
	memset(&w, 0, sizeof(w));
	pthread_mutex_init(&w.lock, NULL);
	w.fd = pair[0];
	if (heads & 2)
		(void)!send(pair[1], &head, sizeof(head), MSG_NOSIGNAL);
	(void)!send(pair[1], input, (size_t)(input_end - input), MSG_NOSIGNAL);
	if (heads & 4)
		shutdown(pair[1], SHUT_WR);
	status = world_meet(&w, &hello, &deadline);
	if (status == NRT_SUCCESS) {
		bool lost;

		check_table(&w, hello.count);
		lost = world_broken(&w, all, hello.count);
		/* What is gone stays gone. */
		must(lost == world_broken(&w, all, hello.count));
		must(!(heads & 4) || lost);
	}
	close(pair[0]);
	close(pair[1]);
	pthread_mutex_destroy(&w.lock);
}

static uint32_t descriptors(void)
{
	uint32_t nr = 0;

	for (int fd = 0; fd < 300; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t before = descriptors();

	input = data;
	input_end = data + size;
	if (byte() & 1)
		fuzz_rank();
	else
		fuzz_registry();
	must(descriptors() == before);
	return 0;
}

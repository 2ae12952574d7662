// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the hub of collectives: what it does with connections and messages.
 *
 * The first byte of an input says of how many ranks a job is.  What follows is a list of
 * what processes do: connect, say hello, ask for an exchange, with descriptors or without,
 * say anything at all, hang up, wait, read.  The hub is the library's own, with a socket
 * that is listened at, in this thread; only poll() does not wait, and the clock is ours.
 *
 * Whatever they do, the hub's tables stay consistent, nobody without the secret or a rank's
 * key hears what the ranks say, answers are whole, and no descriptor stays behind.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "../must.h"
#include "common/wait.h"

static uint64_t hub_clock = 1;

static int poll_now(struct pollfd *pfd, nfds_t nr, int timeout)
{
	(void)timeout;
	return poll(pfd, nr, 0);
}

#define poll(pfd, nr, timeout) poll_now(pfd, nr, timeout)
#define now_ns() hub_clock
#define usleep(us) ((void)0)
#include "nrt/cc/hub.c"
#undef poll

#define NR_CLIENTS (MAX_SILENT + 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The hub here needs no directory: its socket has a name that the kernel chose. */
int comm_place_take(const struct comm_place *place, uint8_t secret[COMM_KEY])
{
	(void)place;
	(void)secret;
	return -ENOENT;
}

void comm_place_leave(const struct comm_place *place, int lock)
{
	(void)place;
	(void)lock;
}

void comm_place_address(const struct comm_place *place, struct sockaddr_un *address)
{
	(void)place;
	(void)address;
}

int comm_random(uint8_t key[COMM_KEY])
{
	(void)key;
	return -EIO;
}

static struct client {
	int fd;				/* -1: none */
	bool trusted;			/* has shown a key that was right */
	bool greeted;			/* was answered with SUCCESS */
} clients[NR_CLIENTS];

static struct sockaddr_un address;
static socklen_t address_size;

/* ---- the input ----------------------------------------------------------------------- */

static const uint8_t *input, *input_end;

static uint8_t byte(void)
{
	return input < input_end ? *input++ : 0;
}

/* ---- what processes do --------------------------------------------------------------- */

static void hang_up(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	*c = (struct client){ .fd = -1 };
}

static void connect_client(struct client *c)
{
	hang_up(c);
	c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	must(c->fd >= 0);
	if (connect(c->fd, (struct sockaddr *)&address, address_size))
		hang_up(c);
}

/* Copies of the hub's own eventfd, as many as there can be in a message and more. */
static void send_message(struct client *c, const void *message, size_t size, uint8_t fds)
{
	static const uint8_t counts[] = { 0, 1, 2, 3, COMM_MAX_RANKS, 250 };
	char control[CMSG_SPACE(250 * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)message, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	uint32_t nr = counts[fds % sizeof(counts)];

	if (nr) {
		struct cmsghdr *h = (struct cmsghdr *)control;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(nr * sizeof(int));
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(nr * sizeof(int));
		for (uint32_t i = 0; i < nr; i++)
			memcpy(CMSG_DATA(h) + i * sizeof(int), &hub->stop, sizeof(int));
	}
	(void)!sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Sizes that are nearly right. */
static size_t about(size_t size, uint8_t n)
{
	return n < 250 ? size : size + n - 253;
}

static void say_hello(struct client *c)
{
	struct comm_hello m[2] = { {
		.type = COMM_HELLO, .magic = COMM_MAGIC, .version = COMM_VERSION,
		.rank = byte(), .count = hub->count, .channel = byte() & 7,
	} };
	uint8_t change = byte(), key = byte(), fds = byte();

	/* One word of the header is wrong. */
	if (change & 1)
		((uint32_t *)m)[change >> 1 & 7] ^= 1u << (change >> 4);
	memcpy(m->key, m->channel && m->rank < hub->count ? hub->keys[m->rank] : hub->secret,
	       COMM_KEY);
	m->data[0] = (uint8_t)m->rank;
	if (key & 0x80)
		m->key[key % COMM_KEY] ^= 0x40;
	else
		c->trusted = true;
	send_message(c, m, about(sizeof(*m), byte()), fds);
}

static void ask(struct client *c)
{
	struct comm_request r[2] = { { .type = COMM_REQUEST } };
	uint8_t change, fds;

	r->nr = byte();
	for (uint32_t i = 0; i < r->nr && i < COMM_MAX_RANKS; i++)
		r->ranks[i] = byte();
	change = byte();
	r->failed = change & 1;
	r->params[COMM_DATA - 1] = change >> 1 & 1;
	r->type += change >> 7;
	r->data[0] = byte();
	fds = byte();
	r->fds = (fds & 15) == 1 ? 1 : fds >> 4;
	send_message(c, r, about(offsetof(struct comm_request, ranks) +
				 (r->nr < COMM_MAX_RANKS ? r->nr : COMM_MAX_RANKS) * 4, byte()),
		     fds & 15);
}

static void say_anything(struct client *c)
{
	uint8_t noise[1024] = { 0 }, fds = byte();
	size_t n = byte();

	for (size_t i = 0; i < n; i++)
		noise[i] = byte();
	send_message(c, noise, n * (n > 250 ? 4 : 1), fds);
	/* It may have guessed what it cannot know. */
	c->trusted = true;
}

static void hear(struct client *c)
{
	static const uint8_t zero[COMM_KEY];
	struct comm_reply reply;
	int fds[COMM_MAX_RANKS];
	uint32_t nr_fds = 0;
	ssize_t n = comm_receive(c->fd, &reply, sizeof(reply), fds, COMM_MAX_RANKS);

	if (n <= 0)
		return;
	must(n >= (ssize_t)offsetof(struct comm_reply, data) && reply.type == COMM_REPLY);
	must(reply.nr <= hub->count && (size_t)n == reply_size(&reply));
	while (nr_fds < COMM_MAX_RANKS && fds[nr_fds] >= 0)
		nr_fds++;
	must(nr_fds == reply.fds && (!reply.fds || reply.fds == reply.nr));
	comm_close_fds(fds, nr_fds);
	must(!reply.nr == (reply.status != NRT_SUCCESS));
	if (reply.status == NRT_SUCCESS) {
		must(c->trusted);
		/* The first of these has the key, no other. */
		must(!memcmp(reply.key, zero, COMM_KEY) == c->greeted);
		c->greeted = true;
	} else {
		must(!memcmp(reply.key, zero, COMM_KEY));
	}
}

/* ---- the hub ------------------------------------------------------------------------- */

static void start(uint32_t count)
{
	hub = hub_new(count);
	must(hub);
	hub->stop = eventfd(0, EFD_CLOEXEC);
	hub->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	address_size = sizeof(address);
	must(hub->stop >= 0 && hub->listener >= 0);
	must(!bind(hub->listener, (struct sockaddr *)&address, sizeof(sa_family_t)));
	must(!getsockname(hub->listener, (struct sockaddr *)&address, &address_size));
	must(!listen(hub->listener, NR_CLIENTS));
	memset(hub->secret, 0x5e, COMM_KEY);
	for (uint32_t i = 0; i < count; i++)
		memset(hub->keys[i], (int)i + 1, COMM_KEY);
	for (size_t i = 0; i < NR_CLIENTS; i++)
		clients[i] = (struct client){ .fd = -1 };
}

static void check_hub(void)
{
	uint32_t silent = 0, seated = 0, seats = 0;

	for (uint32_t i = 0; i < MAX_PEERS; i++) {
		const struct peer *p = &hub->peers[i];

		if (p->fd < 0) {
			must(!p->seated && !p->pending && !p->delivery && p->request_fd < 0);
			continue;
		}
		silent += !p->seated;
		seated += p->seated;
		must(!p->seated || (p->rank < hub->count && p->channel < COMM_CHANNELS &&
				    hub->seat[p->rank][p->channel] == p));
		must(!p->pending || (p->seated && hub->complete && in_group(&p->request, p->rank)));
		must(p->pending || p->request_fd < 0);
		must(!p->delivery || !p->pending);
	}
	for (uint32_t r = 0; r < COMM_MAX_RANKS; r++)
		for (uint32_t c = 0; c < COMM_CHANNELS; c++)
			seats += hub->seat[r][c] != NULL;
	must(seats == seated && silent <= MAX_SILENT);
}

static void step(void)
{
	must(hub_step(hub));
	check_hub();
}

/* When all have hung up nothing is left of them. */
static void finish(void)
{
	struct pollfd listener = { .fd = hub->listener, .events = POLLIN };

	for (size_t i = 0; i < NR_CLIENTS; i++)
		hang_up(&clients[i]);
	/* Those that wait to be let in, one at a time; then their ends are heard. */
	while (poll(&listener, 1, 0) > 0)
		step();
	for (int i = 0; i < 3; i++)
		step();
	for (uint32_t i = 0; i < MAX_PEERS; i++)
		must(hub->peers[i].fd < 0);
	hub_free(hub);
	hub = NULL;
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
	start(1 + byte() % 5);
	while (input < input_end) {
		uint8_t what = byte();
		struct client *c = &clients[byte() % NR_CLIENTS];

		switch (c->fd < 0 ? 0 : what % 8) {
		case 0: connect_client(c); break;
		case 1: hang_up(c); break;
		case 2: say_hello(c); break;
		case 3: ask(c); break;
		case 4: say_anything(c); break;
		case 5: hear(c); break;
		case 6: hub_clock += byte() * 16000000ull; break;
		case 7: shutdown(c->fd, byte() % 3); break;
		}
		/* Some do several things before the hub looks. */
		if (!(what & 0x80))
			step();
	}
	finish();
	must(descriptors() == before);
	return 0;
}

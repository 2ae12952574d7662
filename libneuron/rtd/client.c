// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "../common/lock.h"
#include "../common/util.h"
#include "client.h"

/* Of all mappings of a client: address space and tables, the pages are the client's. */
#define MAX_MAPPED (64ull << 30)
/* So that a number is exact in a double, which some languages make of it. */
#define FIRST_ID_MASK ((1ull << 52) - 1)

pthread_mutex_t rtd_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(client_list, client) clients = TAILQ_HEAD_INITIALIZER(clients);
static unsigned int nr_clients;

uint64_t new_id(void)
{
	static uint64_t last;

	/* Clients connect to the next daemon without noticing, and have numbers of this one. */
	while (!last) {
		if (getrandom(&last, sizeof(last), 0) != sizeof(last))
			last = 0;
		last &= FIRST_ID_MASK;
	}
	return ++last;
}

static bool has_event(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) > 0;
}

static struct client *find(const struct ucred *peer)
{
	struct client *c;

	TAILQ_FOREACH(c, &clients, link)
		if (!c->gone && c->pidfd >= 0 && c->pid == peer->pid && c->uid == peer->uid &&
		    !has_event(c->pidfd, POLLIN))
			return c;
	return NULL;
}

static int create(int socket, const struct ucred *peer, struct client **client)
{
	struct client *c;

	if (nr_clients == CLIENT_MAX)
		return -EUSERS;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->turn = turn_new();
	if (!c->turn) {
		free(c);
		return -ENOMEM;
	}
	c->refs = 1;
	c->pid = peer->pid;
	c->uid = peer->uid;
	c->pidfd = c->pid > 0 ? (int)syscall(SYS_pidfd_open, c->pid, 0) : -1;
	/* The number may be another process's by now: then this end is closed. */
	if (has_event(socket, POLLRDHUP)) {
		if (c->pidfd >= 0)
			close(c->pidfd);
		turn_drop(c->turn);
		free(c);
		return -ESRCH;
	}
	TAILQ_INIT(&c->buffers);
	TAILQ_INSERT_TAIL(&clients, c, link);
	nr_clients++;
	*client = c;
	return 0;
}

int client_of(int socket, bool known, struct client **client, bool *is_new)
{
	struct ucred peer = { .uid = CLIENT_NOBODY };
	socklen_t len = sizeof(peer);
	int ret = 0;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		peer = (struct ucred){ .uid = CLIENT_NOBODY };
	if (known && peer.pid <= 0)
		return -EPERM;
	GUARD(&rtd_lock);
	*client = peer.pid > 0 ? find(&peer) : NULL;
	*is_new = !*client;
	if (*is_new)
		ret = create(socket, &peer, client);
	else
		(*client)->refs++;
	return ret;
}

struct client *client_hold(struct client *client)
{
	client->refs++;
	return client;
}

void client_drop(struct client *client)
{
	if (--client->refs)
		return;
	TAILQ_REMOVE(&clients, client, link);
	nr_clients--;
	if (client->pidfd >= 0)
		close(client->pidfd);
	turn_drop(client->turn);
	free(client);
}

void client_put(struct client *client)
{
	GUARD(&rtd_lock);
	client_drop(client);
}

unsigned int client_count(void)
{
	return nr_clients;
}

static void forget_buffer(struct client *client, struct buffer *buffer)
{
	TAILQ_REMOVE(&client->buffers, buffer, link);
	buffer->client = NULL;
	/* Whoever releases it has the reference to it already. */
	if (!buffer->released)
		buffer_drop(buffer);
}

void client_end(struct client *client)
{
	GUARD(&rtd_lock);
	client->gone = true;
	while (!TAILQ_EMPTY(&client->buffers))
		forget_buffer(client, TAILQ_FIRST(&client->buffers));
}

/*
 * Memory that could become shorter would end whoever touches what is gone. So would huge
 * pages: the seal allows to punch holes, and there may be no page to fill one again. Holes in
 * other memory (that of shmem, which tmpfs is made of) are filled with ordinary pages.
 */
static int check_memory(int fd, uint64_t *bytes, bool *read_only)
{
	struct statfs fs;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) || st.st_size <= 0)
		return -EINVAL;
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC)
		return -EINVAL;
	*bytes = (uint64_t)st.st_size;
	*read_only = seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE);
	return 0;
}

static uint64_t mapped_bytes(const struct client *client)
{
	const struct buffer *b;
	uint64_t sum = 0;

	TAILQ_FOREACH(b, &client->buffers, link)
		sum += b->bytes;
	return sum;
}

int buffer_add(struct client *client, int fd, uint64_t *id)
{
	struct buffer *b;
	uint64_t bytes;
	bool read_only;
	int ret = check_memory(fd, &bytes, &read_only);

	if (ret)
		return ret;
	GUARD(&rtd_lock);
	if (client->gone)
		return -ESRCH;
	if (client->nr_buffers == CLIENT_MAX_BUFFERS || bytes > MAX_MAPPED ||
	    mapped_bytes(client) > MAX_MAPPED - bytes)
		return -EDQUOT;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	/* Before Linux 6.7 sealed memory cannot be mapped as shared, even to be read. */
	b->map = mmap(NULL, bytes, PROT_READ | (read_only ? 0 : PROT_WRITE),
		      read_only ? MAP_PRIVATE : MAP_SHARED, fd, 0);
	if (b->map == MAP_FAILED) {
		ret = -errno;
		free(b);
		return ret;
	}
	b->refs = 1;
	b->client = client;
	b->id = *id = new_id();
	b->bytes = bytes;
	b->read_only = read_only;
	TAILQ_INSERT_TAIL(&client->buffers, b, link);
	client->nr_buffers++;
	return 0;
}

static struct buffer *find_buffer(struct client *client, uint64_t id)
{
	struct buffer *b;

	TAILQ_FOREACH(b, &client->buffers, link)
		if (b->id == id && !b->released)
			break;
	return b;
}

int buffer_remove(struct client *client, uint64_t id, struct job *job)
{
	struct buffer *b;

	GUARD(&rtd_lock);
	b = find_buffer(client, id);
	if (!b)
		return -ENOENT;
	b->released = job;
	buffer_drop(b);
	return 0;
}

int buffer_find(struct client *client, uint64_t id, uint64_t offset, uint64_t bytes,
		struct buffer **buffer)
{
	struct buffer *b = find_buffer(client, id);

	if (!b)
		return -ENOENT;
	if (offset > b->bytes || bytes > b->bytes - offset)
		return -EINVAL;
	b->refs++;
	*buffer = b;
	return 0;
}

void buffer_drop(struct buffer *buffer)
{
	if (--buffer->refs)
		return;
	if (buffer->client) {
		TAILQ_REMOVE(&buffer->client->buffers, buffer, link);
		buffer->client->nr_buffers--;
	}
	munmap(buffer->map, buffer->bytes);
	if (buffer->released)
		job_add(buffer->released);
	free(buffer);
}

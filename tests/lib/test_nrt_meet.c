// SPDX-License-Identifier: GPL-2.0-only
/* What the log says when ranks of several hosts do not come together (fleet.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <nrt/nrt_experimental.h>

#include "fleet.h"

#define MAX_HERE 4u
/* Those who wait for others in vain do so for TIMEOUT; what is refused at once takes less. */
#define TIMEOUT 6
#define AT_ONCE 3

struct rank {
	pthread_t thread;
	uint32_t core, rank, count, size;
	NRT_STATUS status;
};

/* A gather joins first. */
static void *rank_main(void *arg)
{
	struct rank *r = arg;
	uint8_t in[8] = { 0 }, out[8 * MAX_HOSTS * MAX_HERE];

	r->status = r->size ? nrt_all_gather((int32_t)r->core, r->rank, r->count, r->size, in, out) :
			      nrt_barrier((int32_t)r->core, r->rank, r->count);
	return NULL;
}

/* All ranks of a host, with @size bytes each: what they have, or -1. */
static NRT_STATUS gather(const struct fleet *f, uint32_t host, uint32_t size)
{
	struct rank ranks[MAX_HERE];
	NRT_STATUS status;

	for (uint32_t i = 0; i < f->here; i++) {
		ranks[i] = (struct rank){
			.core = i, .rank = rank_of(f, host, i), .count = f->hosts * f->here,
			.size = size,
		};
		if (pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]))
			_exit(95);
	}
	for (uint32_t i = 0; i < f->here; i++)
		pthread_join(ranks[i].thread, NULL);
	status = ranks[0].status;
	for (uint32_t i = 0; i < f->here; i++)
		if (ranks[i].status != status)
			return (NRT_STATUS)-1;
	return status;
}

/* ---- the log of a host ----------------------------------------------------------------- */

static void log_path(uint32_t host, char path[100])
{
	snprintf(path, 100, "%s/%u.log", directory, host);
}

/* From here on, of this process. */
static void keep_log(uint32_t host)
{
	char path[100];
	int fd;

	log_path(host, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(96);
	close(fd);
}

/* Errors of collectives: how many lines, and how many that have @text. */
static unsigned int lines(uint32_t host, const char *text)
{
	char path[100], line[1000];
	unsigned int n = 0;
	FILE *file;

	log_path(host, path);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, "ENC:") && (!text || strstr(line, text));
	fclose(file);
	return n;
}

static void one_line(uint32_t host, const char *text)
{
	if (lines(host, NULL) == 1 && lines(host, text) == 1)
		return;
	fprintf(stderr, "# host %u has no such line, or others: %s\n", host, text);
	run("cat %s/%u.log >&2", directory, host);
	fail();
}

/* ---- ranks that do not ask for the same ------------------------------------------------- */

static int main_unlike(const struct fleet *f, uint32_t host)
{
	if (gather(f, host, 8) != NRT_SUCCESS)
		return 1;
	keep_log(host);
	if (gather(f, host, host ? 8 : 7) != NRT_INVALID)
		return 2;
	return gather(f, host, 8) == NRT_SUCCESS ? 0 : 3;
}

static void test_unlike(void **state)
{
	struct fleet single = { .hosts = 3, .here = 1, .main = main_unlike };
	struct fleet pairs = { .hosts = 2, .here = 2, .main = main_unlike };

	(void)state;
	run_fleet(&single);
	for (uint32_t i = 0; i < 3; i++)
		one_line(i, "the 3 ranks on 3 hosts do not ask for the same");
	run_fleet(&pairs);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(lines(i, NULL), 2);
		assert_int_equal(lines(i, "the 4 ranks on 2 hosts do not ask for the same"), 2);
	}
}

/* ---- ranks that do not come together ------------------------------------------------------ */

/* What a host does that joins: as which rank, and what comes of it. */
struct part {
	uint32_t rank, count;
	NRT_STATUS want;
	bool at_once;
	const char *line;	/* of its log, or NULL: it does not join */
	unsigned int more;	/* lines */
	bool later;		/* than the others, who are there, and whose time is over first */
};

struct meeting {
	const char *root, *provider;
	bool server;		/* another program is at the port, on host 0 */
	struct part parts[3];
};

/* It says something else to all who come, until it ends with its process. */
static void *serve(void *arg)
{
	for (;;) {
		int guest = accept((int)(intptr_t)arg, NULL, NULL);

		if (guest >= 0 && write(guest, "220 no rank here\r\n", 18) != 18)
			_exit(98);
	}
	return NULL;
}

static void start_server(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	pthread_t server;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 5) ||
	    pthread_create(&server, NULL, serve, (void *)(intptr_t)fd))
		_exit(97);
}

static int main_meeting(const struct fleet *f, uint32_t host)
{
	const struct meeting *m = f->arg;
	const struct part *p = &m->parts[host];
	time_t began;

	keep_log(host);
	if (m->root)
		setenv("NEURON_RT_ROOT_COMM_ID", m->root, 1);
	if (m->provider)
		setenv("NEURON_RT_FABRIC_PROVIDER", m->provider, 1);
	if (m->server && !host)
		start_server();
	if (p->later)
		sleep(TIMEOUT / 2);
	began = time(NULL);
	if (p->line && nrt_barrier(0, p->rank, p->count) != p->want)
		return 2;
	if (p->at_once && time(NULL) - began > AT_ONCE)
		return 3;
	/* The others may need it. */
	if (p->want == NRT_SUCCESS)
		sleep(TIMEOUT + 1);
	return 0;
}

static void meet(const struct meeting *m, uint32_t hosts)
{
	struct fleet f = { .hosts = hosts, .here = 1, .main = main_meeting, .arg = m };

	run_fleet(&f);
	for (uint32_t i = 0; i < hosts; i++) {
		const struct part *p = &m->parts[i];

		if (!p->line || !*p->line)
			assert_int_equal(lines(i, NULL), 0);
		else if (!p->more)
			one_line(i, p->line);
		else
			assert_true(lines(i, NULL) == 1 + p->more && lines(i, p->line) == 1);
	}
}

static void test_missing(void **state)
{
	static const struct meeting some = { .parts = {
		{ 0, 6, NRT_TIMEOUT, false, "NRT_TIMEOUT: missing are ranks 1, 3-5" },
		{ 2, 6, NRT_TIMEOUT, false, "NRT_TIMEOUT: rank 0 ", .later = true },
	} };
	static const struct meeting first = { .parts = {
		{ .line = NULL },
		{ 1, 2, NRT_TIMEOUT, false, "not reached at NEURON_RT_ROOT_COMM_ID=10.99.0.1:19000: Connection refused" },
	} };

	(void)state;
	meet(&some, 2);
	meet(&first, 2);
}

static void test_others(void **state)
{
	static const struct meeting count = { .parts = {
		{ 0, 3, NRT_TIMEOUT, false, "NRT_TIMEOUT: missing are ranks 1-2" },
		{ 1, 2, NRT_INVALID, true, "NRT_INVALID: rank 0 says another number of ranks",
		  .later = true },
	} };

	(void)state;
	meet(&count, 2);
}

static void test_program(void **state)
{
	static const struct meeting stranger = { .server = true, .parts = {
		{ .line = NULL, .want = NRT_SUCCESS },
		{ 1, 2, NRT_FAILURE, true, "10.99.0.1:19000 is another program",
		  .later = true },
	} };
	static const struct meeting port = { .server = true, .parts = {
		{ 0, 2, NRT_FAILURE, false, "Address already in use", 1 },
	} };

	(void)state;
	meet(&stranger, 2);
	meet(&port, 1);
}

static void test_provider(void **state)
{
	static const struct meeting nonsense = { .provider = "nonsense", .parts = {
		{ 0, 2, NRT_NETWORK_PROXY_FAILURE, false, "NEURON_RT_FABRIC_PROVIDER=nonsense: ", 1 },
		{ 1, 2, NRT_NETWORK_PROXY_FAILURE, false, "NEURON_RT_FABRIC_PROVIDER=nonsense: ", 1 },
	} };

	(void)state;
	meet(&nonsense, 2);
}

/* The same place, by whatever name. */
static void test_mapped(void **state)
{
	static const struct meeting mapped = { .root = "[::ffff:10.99.0.1]:19000", .parts = {
		{ 0, 2, NRT_SUCCESS, false, "" },
		{ 1, 2, NRT_SUCCESS, false, "" },
	} };

	(void)state;
	meet(&mapped, 2);
}

/* A rank of those who have met, again: of the same process, and of another one. */
static int main_taken(const struct fleet *f, uint32_t host)
{
	time_t began;

	if (host < 2 && nrt_barrier(0, host, 2) != NRT_SUCCESS)
		return 1;
	say(f->from[host]);
	if (!hear(f->to[host]))
		return 2;
	keep_log(host);
	began = time(NULL);
	if (host == 2)
		return nrt_barrier(0, 1, 2) == NRT_TIMEOUT ? 0 : 3;
	if (nrt_barrier(1, host, 2) != NRT_INVALID || time(NULL) - began > AT_ONCE)
		return 4;
	sleep(TIMEOUT + 1);
	return nrt_barrier(0, host, 2) == NRT_SUCCESS ? 0 : 5;
}

static void test_taken(void **state)
{
	struct fleet f = { .hosts = 3, .here = 1, .main = main_taken };

	(void)state;
	start(&f);
	for (uint32_t i = 0; i < f.hosts; i++)
		assert_true(hear(f.from[i]));
	for (uint32_t i = 0; i < f.hosts; i++)
		say(f.to[i]);
	finish(&f, UINT32_MAX);
	one_line(1, "another core of this process is rank 1 of 2");
	one_line(2, "NRT_TIMEOUT: somebody else has this rank");
}

static int setup(void **state)
{
	char seconds[8];

	(void)state;
	snprintf(seconds, sizeof(seconds), "%d", TIMEOUT);
	setenv("NEURON_RT_EXEC_TIMEOUT", seconds, 1);
	setenv("NEURON_RT_LOG_LEVEL", "ERROR", 1);
	return fleet_setup();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unlike),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_program),
		cmocka_unit_test(test_provider),
		cmocka_unit_test(test_mapped),
		cmocka_unit_test(test_taken),
	};

	return fleet_tests() ? cmocka_run_group_tests(tests, setup, fleet_end) : 0;
}

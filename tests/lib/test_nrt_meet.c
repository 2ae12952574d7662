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
#include "nrt/cc/fabric.h"

#define MAX_HERE 4u
/* Those who wait for others in vain do so for TIMEOUT; what is refused at once takes less. */
#define TIMEOUT 4
#define AT_ONCE 2

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

static int setup(void **state)
{
	char seconds[8];

	(void)state;
	snprintf(seconds, sizeof(seconds), "%d", TIMEOUT);
	setenv("NEURON_RT_EXEC_TIMEOUT", seconds, 1);
	setenv("NEURON_RT_LOG_LEVEL", "ERROR", 1);
	return fleet_setup();
}

static int teardown(void **state)
{
	(void)state;
	return fleet_teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unlike),
	};
	char *only = getenv("TEST");

	if (!fabric_built() || geteuid()) {
		printf("1..0 # skipped: needs root and libfabric\n");
		return 0;
	}
	if (only)
		cmocka_set_test_filter(only);
	return cmocka_run_group_tests(tests, setup, teardown);
}

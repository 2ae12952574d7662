// SPDX-License-Identifier: GPL-2.0-only
/* The examples of the library: each is run, and says what it should. */
#define _GNU_SOURCE
#include "nrt_guest.h"

#define DIR "/usr/libexec/neuron/"
#define NEFF "/tmp/example.neff"

static char output[65536];

/* Exit status; what it said is in @output. */
static int run(const char *command)
{
	char line[300];
	FILE *f;
	size_t n;

	snprintf(line, sizeof(line), "%s%s 2>&1", DIR, command);
	f = popen(line, "r");
	if (!f)
		return -1;
	n = fread(output, 1, sizeof(output) - 1, f);
	output[n] = '\0';
	return pclose(f);
}

/* As in example.h. */
static uint32_t checksum(const uint8_t *bytes, size_t size)
{
	uint32_t sum = 2166136261u;

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ bytes[i]) * 16777619u;
	return sum;
}

/* Of what neff_list() makes of the examples' input. */
static uint32_t expected(unsigned int seed)
{
	static uint8_t y[LIST_OUT];

	memset(y, 'k', 512);
	for (size_t i = 0; i < LIST_IN; i++)
		y[512 + i] = (uint8_t)(i * 7 + seed);
	return checksum(y, sizeof(y));
}

static bool says(const char *fmt, unsigned int number, uint32_t sum)
{
	char line[100];

	snprintf(line, sizeof(line), fmt, number, sum);
	if (strstr(output, line))
		return true;
	printf("# no '%s' in:\n# %s\n", line, output);
	return false;
}

static bool all_requests(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (!says("request %u: checksum %08x\n", i, expected(i)))
			return false;
	return !strstr(output, "request 12:");
}

int main(void)
{
	static struct counters before, now;
	static uint8_t shared[65536];
	static struct neff neff;
	FILE *f;

	neff_list(&neff);
	f = fopen(NEFF, "w");
	if (!f || fwrite(neff.data, 1, neff.size, f) != neff.size || fclose(f))
		return 1;
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	counters_take(&before);
	CHECK(!run("run-model " NEFF) && says("y: %u bytes, checksum %08x\n", LIST_OUT, expected(0)) &&
	      strstr(output, "list: code 4096, constants 4096 bytes"), "run-model");
	CHECK(!run("nrt-run " NEFF) && says("y: %u bytes, checksum %08x\n", LIST_OUT, expected(0)),
	      "nrt-run");
	CHECK(!run("nrt-async " NEFF) && all_requests(4), "nrt-async");
	CHECK(!run("nrt-job") && says("rank 0 of %u: the sum is %u\n", 1, 1), "nrt-job");
	CHECK(!run("data-parallel " NEFF) && all_requests(12), "data-parallel");
	CHECK(!run("memory-report trn2 " NEFF) && strstr(output, "On trn2:\n") &&
	      strstr(output, "\\_NEFF 1 ") && strstr(output, "1: \"list\"") &&
	      strstr(output, "HBM 0 of device 0 here: "), "memory-report");
	CHECK(!run("kv-pool") && strstr(output, "Number of blocks in KV cache primary pool: 16\n") &&
	      strstr(output, "sequence 0: 8 blocks; 2 of all are shared, 28 were evicted, 6 came back\n"),
	      "kv-pool");
	for (size_t i = 0; i < sizeof(shared); i++)
		shared[i] = (uint8_t)(i * 7 + 1);
	CHECK(!run("share-tensor") &&
	      says("wrote %u bytes, checksum %08x\n", sizeof(shared), checksum(shared, sizeof(shared))),
	      "share-tensor");
	if (failed)
		printf("# %s\n", output);
	CHECK(run("run-model") && run("run-model /nowhere") && strstr(output, "/nowhere: No such file") &&
	      run("nrt-run /dev/null") && run("memory-report tpu " NEFF), "no file, and no such device");
	unlink(NEFF);
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "all counters are back");
	return failed != 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* The helper that collects what it wants after an execution failed, and what it is told. */
#define _GNU_SOURCE
#include <sys/stat.h>
#include <time.h>

#include <nrt/nrt.h>

#include "nrt_guest.h"

#define HELPER "/opt/aws/neuron/bin/neuron-dump"
#define TOLD "/tmp/neuron-dump-told"

static nrt_model_t *m;
static nrt_tensor_set_t *set;
static char told[4096];

static void put_helper(const char *text)
{
	FILE *f;

	mkdir("/opt", 0755);
	mkdir("/opt/aws", 0755);
	mkdir("/opt/aws/neuron", 0755);
	mkdir("/opt/aws/neuron/bin", 0755);
	unlink(HELPER);
	f = fopen(HELPER, "w");
	CHECK(f && fputs(text, f) >= 0 && !fchmod(fileno(f), 0755) && !fclose(f), "put a helper");
}

/* An argument in each line. */
static bool was_told(void)
{
	FILE *f = fopen(TOLD, "r");
	size_t n;

	if (!f)
		return false;
	n = fread(told, 1, sizeof(told) - 1, f);
	told[n] = '\0';
	fclose(f);
	unlink(TOLD);
	return true;
}

static bool told_that(const char *option, const char *value)
{
	char want[256];

	snprintf(want, sizeof(want), "%s\n%s\n", option, value);
	return strstr(told, want);
}

static void run(void)
{
	CHECK(nrt_execute(m, set, set) == NRT_EXEC_COMPLETED_WITH_ERR, "an execution fails");
}

static void start(const char *directory, const char *s3)
{
	/* An instruction that SP does not have. */
	struct neuron_isa_inst code[3] = { inst(NEURON_ISA_OP_PROLOGUE),
					   inst(NEURON_ISA_OP_MATMUL), inst(NEURON_ISA_OP_NOTIFY) };
	static struct neff neff;

	code[2].u.notify.id = htole32(1);
	neff_program(&neff, code, sizeof(code));
	for (int i = 0; i < 16; i++)
		neff.data[204 + i] = (uint8_t)(0xa0 + i);
	if (directory)
		setenv("NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY", directory, 1);
	else
		unsetenv("NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY");
	if (s3)
		setenv("NEURON_RT_S3_CORE_DUMP_PREFIX", s3, 1);
	else
		unsetenv("NEURON_RT_S3_CORE_DUMP_PREFIX");
	CHECK(!nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") &&
	      !nrt_load(neff.data, neff.size, 0, -1, &m) && !nrt_allocate_tensor_set(&set),
	      "init, load");
}

static void stop(void)
{
	nrt_destroy_tensor_set(&set);
	CHECK(!nrt_unload(m), "unload");
	nrt_close();
}

int main(void)
{
	char text[128], date[32];
	time_t now = time(NULL);
	struct tm tm;
	FILE *f;

	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	unlink(TOLD);

	start(NULL, NULL);
	run();
	CHECK(!was_told(), "without a helper nothing happens");
	put_helper("#!/bin/sh\nprintf '%s\\n' \"$@\" >" TOLD "\nexit 3\n");
	run();
	CHECK(was_told() && told_that("--neff-name", "program") &&
	      told_that("--neff-uuid", "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf") &&
	      told_that("--cluster-id", "0000000000000000") &&
	      told_that("--error-location", "nrt_execute") && !strstr(told, "--s3-output-prefix"),
	      "the helper is told which model failed");
	snprintf(text, sizeof(text), "%d", NRT_EXEC_COMPLETED_WITH_ERR);
	CHECK(told_that("--error-code", text), "and how");
	snprintf(text, sizeof(text), "%d", (int)getpid());
	CHECK(told_that("--pid", text) && told_that("--tid", text), "and in which process");
	/* A minute may have begun since. */
	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d-", &tm);
	snprintf(text, sizeof(text), "--local-output-dir\n/tmp/neuron-core-dump/dt-%s", date);
	CHECK(strstr(told, text) && strstr(told, "-cid-0000000000000000\n"),
	      "and where the result goes by default");
	stop();

	start("/tmp/%p/%%d/%", "bucket/prefix");
	run();
	snprintf(text, sizeof(text), "/tmp/%d/%%%%d/%%", (int)getpid());
	CHECK(was_told() && told_that("--local-output-dir", text) &&
	      told_that("--s3-output-prefix", "bucket/prefix"), "or where the environment says");
	stop();

	start("", "");
	run();
	CHECK(!was_told(), "with both variables empty nothing happens");
	stop();

	start(NULL, NULL);
	put_helper("no program");
	run();
	CHECK(!was_told(), "a helper that cannot run does no harm");
	f = fopen(HELPER, "r");
	CHECK(f && !fchmod(fileno(f), 0644) && !fclose(f), "take its permission");
	run();
	CHECK(!was_told(), "nor one that is not allowed to");
	stop();
	unlink(HELPER);
	return failed != 0;
}

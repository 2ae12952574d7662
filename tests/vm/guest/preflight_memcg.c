// SPDX-License-Identifier: GPL-2.0-only
/*
 * neuron-preflight --now knows whether what its cgroup may have of host memory is enough for what
 * the driver and the library take at least to load a file with long rings.  The kernel charges
 * that, and the tables of rings that the driver gets while the library still has what it writes.
 */
#define _GNU_SOURCE
#include "cgroup.h"
#include "preflight.h"

#define FILE_NAME	"rings"
#define DESCRIPTORS	2000000u
#define STATS		3	/* seconds until the kernel has added everything up */
#define BESIDE		8	/* MiB that the program and the kernel need beside it */

static int number;

/* One byte at a time, and nothing of it is an input or an output. */
static void make_rings(void)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {\"q\": {\"type\": \"data\"}},"
		 " \"var\": {\"a\": {\"type\": \"tmp-buf\", \"var_id\": 1, \"size\": %u},"
		 " \"b\": {\"type\": \"tmp-buf\", \"var_id\": 2, \"size\": %u}}}", 2 * DESCRIPTORS,
		 2 * DESCRIPTORS);
	neff_start(&neff);
	neff_text(&neff, "sg00/def.json", text);
	snprintf(text, sizeof(text),
		 "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"from\": \"a\", \"to\": \"b\","
		 " \"from_sizes\": [1, %u], \"from_steps\": [1, 2], \"to_sizes\": [1, %u],"
		 " \"to_steps\": [1, 2]}]}]}", DESCRIPTORS, DESCRIPTORS);
	neff_text(&neff, "sg00/SP.json", text);
	CHECK(save(FILE_NAME), "a file with rings");
}

/* A device whose rings the driver checks, so that it has to know what is in them. */
static int checked_device(void)
{
	int n = -1;

	CHECK(!emu_mkdir("checked") && !emu_set("checked", "hbm_size", "1024") &&
	      !emu_set("checked", "checks", "0") && !emu_set("checked", "live", "1") &&
	      sscanf(emu_get("checked", "dev_name"), "neuron%d", &n) == 1, "a device as a card");
	CHECK(!strcmp(text_read(emu_file(n, "isolation")), "checked"), "its rings are checked");
	return n;
}

static int ask(const char *options)
{
	char command[128];

	snprintf(command, sizeof(command), "neuron-preflight --now -D %d -l 1 %s %s >" OUT " 2>&1", number,
		 options, path_of(FILE_NAME));
	return WEXITSTATUS(system(command));
}

static int say(void)
{
	return ask("");
}

/* What is needed, in MiB. */
static int need(void)
{
	uint64_t bytes = 0;
	char line[256];
	FILE *f;

	ask("--json");
	f = fopen(OUT, "r");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, " \"need\": %" SCNu64, &bytes) != 1)
		;
	if (f)
		fclose(f);
	return (int)(bytes / MIB);
}

static bool load_it(void)
{
	struct neuron_core_opts core_opts = { .size = sizeof(core_opts), .lnc = 1 };
	struct neuron_model_opts opts = { .size = sizeof(opts) };
	struct neuron_device *d;
	struct neuron_core *core;
	struct neuron_model *model;

	return !neuron_device_open((unsigned int)number, &d) &&
	       !neuron_core_open(d, 0, &core_opts, &core) &&
	       !neuron_model_load(core, neff.data, neff.size, &opts, &model);
}

static uint64_t kernel(void)
{
	return charged("box");
}

static uint64_t current(void)
{
	return strtoull(text_read(cg("load", "memory.current")), NULL, 10);
}

static uint64_t peak(void)
{
	return strtoull(text_read(cg("load", "memory.peak")), NULL, 10);
}

/* How far a figure has got when it is loaded from another one before, in MiB; 0: it is not. */
static int load(uint64_t (*from)(void), uint64_t (*to)(void))
{
	uint64_t before;

	sleep(STATS);
	before = from();
	if (!load_it())
		return 0;
	sleep(STATS);
	return (int)((to() - before) / MIB);
}

static int load_kernel(void)
{
	return load(kernel, kernel);
}

static int load_most(void)
{
	return load(current, peak);
}

/* Of a child in a cgroup; -1: it was killed. */
static int in_group(const char *name, int (*what)(void))
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(join(name) ? 99 : what());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int in_box(int (*what)(void))
{
	return in_group("box", what);
}

static int set_memory(const char *max)
{
	return text_write(cg("box", "memory.max"), max);
}

int main(void)
{
	/* For a slot of 16 bytes 8 bytes, on both sides. */
	const int tables = DESCRIPTORS * 16ull / MIB;
	int needs, took;

	if (!has_controller("memory"))
		return 0;
	make_rings();
	number = checked_device();
	CHECK(!text_write(cg("", "cgroup.subtree_control"), "+memory") && !make("box") &&
	      !set_memory("24M"), "a cgroup that may have 24 MiB");
	CHECK(in_box(say) == 3, "it is not allowed");
	CHECK(said_text("is not allowed: memory.max of the cgroup /box allows 24.000MB of host memory, at least "),
	      "and it says by what");
	needs = in_box(need);
	/* Of 16 bytes each, for both sides of the ring. */
	CHECK(needs >= (int)(DESCRIPTORS * 32ull / MIB), "loading needs %d MiB", needs);
	CHECK(!set_memory("512M") && !in_box(say) && said_text(": fits now"), "512 MiB are enough");
	CHECK(!make("load"), "a cgroup of its own for the peak");
	took = in_group("load", load_most);
	CHECK(took >= needs && took <= needs + tables + BESIDE,
	      "it is loaded, and the kernel charges %d MiB", took);
	took = in_box(load_kernel);
	CHECK(took >= tables && took <= tables + 4, "%d MiB of it are the driver's", took);
	if (failed)
		(void)!system("sed 's/^/# /' " OUT);
	CHECK(!drop("box") && !drop("load"), "the cgroups go");
	emu_del("checked");
	return failed != 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * neuron-mem about owners: the table, who leaks, snapshots and timelines; and what a refusal
 * leaves in NEURON_MEMORY_DUMP, played again on the allocator. The three refusals are those of
 * libneuron/docs/out-of-memory.md, and say what it shows.
 */
#define _GNU_SOURCE
#include <glob.h>
#include <signal.h>
#include <sys/prctl.h>

#include <neuron/neuron.h>

#include "check.h"
#include "../../bench/replay.h"

#define HBM	1
#define PIECE	(256ull << 20)
#define DUMPS	"/tmp/dumps"

static char text[1 << 22];
static struct neuron_device *dev;
static struct neuron_mem *piece[128];
static size_t nr_pieces;

static int run(const char *command)
{
	FILE *p = popen(command, "r");
	size_t len = fread(text, 1, sizeof(text) - 1, p);

	text[len] = 0;
	return pclose(p);
}

static int says(const char *want)
{
	return strstr(text, want) != NULL;
}

static int get(uint64_t bytes, uint32_t owner, struct neuron_mem **mem)
{
	const struct neuron_mem_opts opts = {
		.size = sizeof(opts), .hbm = HBM, .nc = 2, .category = NEURON_MEM_TENSORS,
		.owner = owner,
	};

	return neuron_mem_alloc(dev, bytes, &opts, mem);
}

static uint32_t owner(const char *label)
{
	uint32_t id = 0;

	CHECK(!neuron_owner_create(dev, label, &id), "owner %s", label);
	return id;
}

/* One that loses 4 KiB in each of many steps, beside two that take and give back. */
static void leak(void)
{
	uint32_t cache, batch, lost;
	struct neuron_mem *mem[3];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (neuron_device_open(0, &dev) || neuron_owner_create(dev, "cache", &cache) ||
	    neuron_owner_create(dev, "batch", &batch) || neuron_owner_create(dev, "lost", &lost))
		exit(1);
	for (unsigned int i = 0;; i++) {
		int bad = get((1 + i * 7 % 11) << 16, batch, &mem[0]);

		bad |= get((1 + i * 5 % 13) << 16, cache, &mem[1]) | get(4096, lost, &mem[2]);
		if (bad)
			exit(1);
		usleep(60000);
		neuron_mem_free(mem[0]);
		neuron_mem_free(mem[1]);
		usleep(40000);
	}
}

static void leaks(void)
{
	int pid = fork();

	if (!pid)
		leak();
	CHECK(!run("neuron-mem owners --diff --watch=0.1 -n 90 0"), "differences");
	CHECK(says("\"lost\" rose in ") && says(" steps and never fell, "), "who leaks is named");
	CHECK(!says("suspect: neuron0 HBM 1 process ") || !strstr(text, "\"batch\" rose"),
	      "who gives back is not");
	for (const char *at = text; (at = strstr(at, "suspect: ")); at++)
		if (strncmp(strchr(at, '"'), "\"lost\"", 6))
			CHECK(0, "suspected: %.80s", at);
	CHECK(!run("neuron-mem owners 0") && says(" lost ") && says(" batch "), "the table");
	printf("# %s\n", text);
	CHECK(!run("neuron-mem owners --json 0 | tr -d ' \\n'") && says("\"label\":\"lost\"") &&
	      says("\"steady\":"), "as JSON");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Plays the last dump again; how many were refused in it, and again. */
static struct replay replay_last(int want)
{
	struct replay r = { 0 };
	struct snapshot s;
	char command[300];
	glob_t found;
	int err;

	CHECK(!glob(DUMPS "/neuron-memory-*.json", 0, NULL, &found) &&
	      found.gl_pathc == (size_t)want, "%d files", want);
	snprintf(command, sizeof(command), "cat %s", found.gl_pathv[found.gl_pathc - 1]);
	CHECK(!run(command) && !snapshot_parse(text, strlen(text), &s) && s.count == 1 &&
	      s.list[0].hbm == HBM && s.list[0].consistent, "a snapshot of that memory");
	r.out = stdout;
	printf("# ");
	err = replay_hbm(&r, &s.list[0]);
	CHECK(!err && !r.different, "replayed: %zu events, %zu refused again", r.events, r.same);
	snapshot_free(&s);
	globfree(&found);
	return r;
}

/* The file and the library name the owner, the tool, which is another process, this one. */
static void who(uint64_t bytes, uint32_t kv)
{
	const struct neuron_mem_failure f = { .hbm = HBM, .bytes = bytes };
	struct neuron_release release = { .size = sizeof(release) };
	char process[64];

	CHECK(says("\"fits_without\":\"kv-cache, owner "), "the file names who would have to go");
	CHECK(!neuron_mem_release(dev, &f, &release) && release.count == 1 && release.smallest &&
	      release.item[0].pid == getpid() && release.item[0].owner == kv &&
	      !strcmp(release.item[0].label, "kv-cache"), "so does the library");
	run("neuron-mem --failures 0");
	snprintf(process, sizeof(process), "  now it would fit without process %d (", getpid());
	CHECK(says(process), "the tool names the process");
}

#define DOCUMENT	"/usr/share/doc/libneuron/out-of-memory.md"
/* What is another one each time. */
#define NORMAL	" | sed -E 's/process [0-9]+ */process N /; s/refused [0-9]+, [-0-9: ]+:/refused N, D:/; s/[(][0-9]+-/(N-/'"

/* A block of the page for people, by how it begins, is what the tool says now. */
static void documented(const char *section, const char *first, const char *tool)
{
	static char said[sizeof(text)];
	char command[600], *line, *rest = text;
	unsigned int lines = 0;

	snprintf(command, sizeof(command), "%s 0" NORMAL, tool);
	run(command);
	strcpy(said, text);
	snprintf(command, sizeof(command),
		 "sed -n '/^## %s$/,/^## /p' " DOCUMENT " | sed -n '/^    %s/,/^$/s/^    //p'" NORMAL,
		 section, first);
	run(command);
	while ((line = strsep(&rest, "\n")) && *line) {
		lines += strcmp(line, "...") != 0;
		CHECK(!strcmp(line, "...") || strstr(said, line), "%s: %s", section, line);
	}
	CHECK(lines >= 2, "%s: %u lines are those of the page", section, lines);
	printf("# %s\n", said);
}

static void refusals(void)
{
	struct neuron_mem *mem;
	uint32_t kv = owner("kv-cache");
	size_t same;

	while (nr_pieces < 128 && !get(PIECE, kv, &piece[nr_pieces]))
		nr_pieces++;
	/* Other programs may have been refused before. */
	same = replay_last(1).same;
	CHECK(same >= 1, "full");
	who(PIECE, kv);
	documented("Full", "neuron0 refused", "neuron-mem --failures");
	for (size_t i = 0; i < nr_pieces; i += 2) {
		neuron_mem_free(piece[i]);
		piece[i] = NULL;
	}
	CHECK(get(2 * PIECE, 0, &mem) == -ENOMEM, "a longer one");
	CHECK(replay_last(2).same == same + 1, "fragmented");
	who(2 * PIECE, kv);
	documented("Fragmented", "neuron0 refused", "neuron-mem --failures");
	documented("Fragmented", "          a character is", "neuron-mem map");
	documented("Fragmented", "A  process", "neuron-mem map");
	CHECK(!neuron_limit_set(dev, NEURON_LIMIT_CORE, 2, 13ull << 30) &&
	      get(PIECE * 8, 0, &mem) == -ENOMEM, "a limit");
	CHECK(replay_last(3).limits >= 1, "is not played again");
	documented("Capped", "neuron0 refused", "neuron-mem --failures");
	CHECK(!neuron_limit_set(dev, NEURON_LIMIT_CORE, 2, NEURON_LIMIT_NONE), "no limit");
}

static void files(void)
{
	CHECK(!run("neuron-mem snapshot /tmp/s.json 0 && stat -c %a /tmp/s.json") && says("600\n"),
	      "a snapshot, for nobody else");
	CHECK(!run("neuron-mem snapshot --html --from /tmp/s.json /tmp/s.html && cat /tmp/s.html") &&
	      says("<!DOCTYPE html>") && says("kv-cache") && says("fragmented") &&
	      says("</html>") && !says("<script") && !says(" src="), "a page");
	CHECK(!run("neuron-mem timeline /tmp/t.svg 0 && cat /tmp/t.svg") && says("<svg xmlns") &&
	      says("refused: fragmented, ") && says("<title>tensors</title>") && says("</svg>"),
	      "a timeline");
	CHECK(!run("neuron-mem timeline --from /tmp/s.json /tmp/t.json && cat /tmp/t.json") &&
	      says("{\"traceEvents\":[{\"ph\":\"C\"") && says("\"refused: capped\""),
	      "for Perfetto");
	CHECK(run("neuron-mem snapshot 2>/dev/null") && run("neuron-mem --html 0 2>/dev/null") &&
	      run("neuron-mem snapshot --html --from /etc/passwd /tmp/x 2>/dev/null"), "nonsense");
}

int main(void)
{
	system("rm -rf " DUMPS " && mkdir " DUMPS);
	leaks();
	setenv("NEURON_MEMORY_DUMP", DUMPS, 1);
	CHECK(!neuron_device_open(0, &dev), "open");
	refusals();
	unsetenv("NEURON_MEMORY_DUMP");
	files();
	for (size_t i = 0; i < nr_pieces; i++)
		neuron_mem_free(piece[i]);
	neuron_device_close(dev);
	return failed != 0;
}

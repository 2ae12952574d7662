// SPDX-License-Identifier: GPL-2.0-only
/*
 * neuron-preflight --now: on an empty device, on one that is full, half full or in pieces, with a core
 * that another process has, and with a limit, it says what the runtime then does with the files;
 * and without --now what it does on an empty one.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>

#include <neuron/neuron.h>
#include <nrt/nrt.h>
#include <nrt/nrt_experimental.h>

#include "nrt_guest.h"

#define MIB	(1ull << 20)
#define GIB	(1ull << 30)
#define OUT	"/tmp/now.out"
#define PIECES	15		/* of 1.5 GiB, nearly all of a memory */

static const struct file {
	const char *name;
	uint64_t private, shared, input;
} files[] = {
	{ "small", MIB, MIB, 4096 },
	{ "large", 9 * GIB, MIB, 4096 },
	{ "huge", 14 * GIB, MIB, 4096 },
	{ "never", 30 * GIB, MIB, 4096 },
	{ "shared", MIB, 5 * GIB, 4096 },
	{ "input", MIB, MIB, 5 * GIB },
	{ "three", 3 * GIB, MIB, 4096 },
	{ "four", 4 * GIB, MIB, 4096 },
	{ "seven", 7 * GIB, MIB, 4096 },
};

static char path_text[64];

/* Without a core: "large@1". */
static const char *path_of(const char *name)
{
	snprintf(path_text, sizeof(path_text), "/tmp/now-%.*s.neff", (int)strcspn(name, "@"), name);
	return path_text;
}

static int core_of(const char *name)
{
	const char *at = strchr(name, '@');

	return at ? atoi(at + 1) : 0;
}

static struct neff neff;

static void make_file(const struct file *file)
{
	char def[1024];
	FILE *f;

	snprintf(def, sizeof(def),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {}, \"var\": {"
		 " \"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": %llu},"
		 " \"v\": {\"type\": \"virtual\", \"var_id\": 2, \"size\": 4096,"
		 "  \"backing_variable_off\": %llu},"
		 " \"b\": {\"type\": \"tmp-buf\", \"var_id\": 3, \"size\": %llu}}}",
		 (unsigned long long)file->input, (unsigned long long)file->shared,
		 (unsigned long long)file->private);
	neff_start(&neff);
	neff_text(&neff, "sg00/def.json", def);
	neff_text(&neff, "sg00/SP.json", "{\"dma\": []}");
	neff_end(&neff, file->name);
	f = fopen(path_of(file->name), "w");
	if (!f || fwrite(neff.data, 1, neff.size, f) != neff.size || fclose(f))
		CHECK(false, "write %s", path_text);
}

/* ---- another process --------------------------------------------------------------- */

static bool take(struct neuron_device *d, uint64_t bytes, uint32_t flags, struct neuron_mem **mem)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts), .category = NEURON_MEM_TENSORS, .flags = flags,
	};

	return !neuron_mem_alloc(d, bytes, &opts, mem);
}

static bool hold_half(struct neuron_device *d)
{
	struct neuron_mem *mem;

	return take(d, 12 * GIB, 0, &mem);
}

/* All but 100 MiB: not enough for what opening the cores takes. */
static bool hold_all(struct neuron_device *d)
{
	struct neuron_hbm_stats s = { .size = sizeof(s) };
	struct neuron_mem *mem;

	return !neuron_hbm_get_stats(d, 0, &s) && take(d, s.free - 100 * MIB, 0, &mem);
}

/* Every other piece is free. */
static bool hold_pieces(struct neuron_device *d)
{
	struct neuron_mem *mem[PIECES];

	for (int i = 0; i < PIECES; i++)
		if (!take(d, 3 * GIB / 2, NEURON_MEM_F_LOW, &mem[i]))
			return false;
	for (int i = 1; i < PIECES; i += 2)
		neuron_mem_free(mem[i]);
	return true;
}

/* A hole of 10.5 GiB and one of 6.3: 3, 4 and 7 GiB go into them, but not in that order. */
static bool hold_middle(struct neuron_device *d)
{
	struct neuron_hbm_stats s = { .size = sizeof(s) };
	struct neuron_mem *below, *mem;

	if (!take(d, 21 * GIB / 2, NEURON_MEM_F_LOW, &below) || neuron_hbm_get_stats(d, 0, &s) ||
	    !take(d, s.free - 63 * GIB / 10, NEURON_MEM_F_LOW, &mem))
		return false;
	neuron_mem_free(below);
	return true;
}

static bool hold_core(struct neuron_device *d)
{
	struct neuron_core_opts opts = { .size = sizeof(opts), .microcode = 96 * MIB };
	struct neuron_core *core;

	return !neuron_core_open(d, 0, &opts, &core);
}

/* No memory: root says how much a core may have. */
static bool set_limit(uint64_t bytes)
{
	struct neuron_device *d;
	bool done;

	if (neuron_device_open(0, &d))
		return false;
	done = !neuron_limit_set(d, NEURON_LIMIT_CORE, 0, bytes);
	neuron_device_close(d);
	return done;
}

/* Until it is killed. */
static pid_t start(bool (*hold)(struct neuron_device *d))
{
	int up[2];
	char c = 'n';
	pid_t pid;

	if (!hold || pipe(up))
		return 0;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct neuron_device *d;

		if (!neuron_device_open(0, &d) && hold(d))
			c = 'y';
		if (write(up[1], &c, 1) == 1)
			pause();
		_exit(0);
	}
	CHECK(read(up[0], &c, 1) == 1 && c == 'y', "another process has what it wants");
	close(up[0]);
	close(up[1]);
	return pid;
}

static void stop(pid_t pid)
{
	if (!pid)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- what is said, and what happens ------------------------------------------------ */

static int said(const char *names, bool now)
{
	char command[512], list[128], *name, *next = list;

	snprintf(command, sizeof(command), "neuron-preflight%s", now ? " --now" : "");
	snprintf(list, sizeof(list), "%s", names);
	while ((name = strsep(&next, " "))) {
		strcat(command, " ");
		strcat(command, path_of(name));
		strcat(command, name + strcspn(name, "@"));
	}
	strcat(command, " >" OUT " 2>&1");
	return WEXITSTATUS(system(command));
}

static bool said_text(const char *text)
{
	static char out[16384];
	FILE *f = fopen(OUT, "r");

	memset(out, 0, sizeof(out));
	if (!f || !fread(out, 1, sizeof(out) - 1, f))
		return false;
	fclose(f);
	return strstr(out, text);
}

static bool load_file(const char *name, nrt_model_t **model)
{
	FILE *f = fopen(path_of(name), "r");

	if (!f)
		return false;
	neff.size = fread(neff.data, 1, sizeof(neff.data), f);
	fclose(f);
	return nrt_load(neff.data, neff.size, core_of(name), -1, model) == NRT_SUCCESS;
}

static bool allocate_inputs(nrt_model_t *model)
{
	nrt_tensor_info_array_t *info;
	nrt_tensor_t *t = NULL;
	bool done = true;

	if (nrt_get_model_tensor_info(model, &info) != NRT_SUCCESS)
		return false;
	for (uint64_t i = 0; i < info->tensor_count && done; i++)
		done = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0,
					   info->tensor_array[i].size, "t", &t) == NRT_SUCCESS;
	nrt_free_model_tensor_info(info);
	return done;
}

/* In a process of its own: the files one after the other, then their inputs. */
static bool load_all(const char *names)
{
	char list[128], *name, *next = list;
	nrt_model_t *model[4];
	unsigned int nr = 0;
	bool done;

	setenv("NEURON_RT_VISIBLE_CORES", strchr(names, '@') ? "0-1" : "0", 1);
	setenv("NEURON_RT_LOG_LOCATION", "/tmp/nrt.log", 1);
	snprintf(list, sizeof(list), "%s", names);
	done = nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS;
	while (done && (name = strsep(&next, " ")))
		done = load_file(name, &model[nr++]);
	for (unsigned int i = 0; i < nr && done; i++)
		done = allocate_inputs(model[i]);
	return done;
}

static bool happens(const char *names)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(!load_all(names));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* ---- states ------------------------------------------------------------------------ */

/* 0: it fits, 1: not the device, 3: not now. */
static const struct state {
	const char *name;
	bool (*hold)(struct neuron_device *d);
	uint64_t limit;
	struct {
		const char *files;
		int want;
		const char *text;
	} row[6];
} states[] = {
	{ "empty", NULL, 0, {
		{ "small", 0, "neuron0: fits now" }, { "huge", 0, NULL }, { "large huge", 0, NULL },
		{ "huge large small", 0, NULL }, { "never", 1, "does not fit the device" },
		{ "huge large input", 1, NULL } } },
	{ "half full", hold_half, 0, {
		{ "small", 0, NULL }, { "large", 0, NULL }, { "huge", 3, "GB are needed; it would" },
		{ "large input", 3, NULL }, { "never", 1, NULL }, { "shared input", 0, NULL } } },
	{ "full", hold_all, 0, { { "small", 3, "HBM 0 has 100.000MB free" }, { "never", 1, NULL } } },
	{ "in pieces", hold_pieces, 0, {
		{ "small", 0, NULL }, { "large", 3, "no more than 1.5" }, { "shared", 0, NULL },
		{ "input", 3, "in one piece" }, { "never", 1, NULL }, { "small shared", 0, NULL } } },
	/* The scratchpad of core 1 starts at 8 GiB, so that core 0 can grow. */
	{ "two scratchpads", NULL, 0, {
		{ "small@1 seven@0", 0, NULL }, { "large@0 seven@0 small@1", 0, NULL },
		{ "small@1 seven@0 large@0", 1, "some of that finds no place; it would fit in another order" } } },
	{ "two holes", hold_middle, 0, {
		{ "three four seven", 3, "that order: /tmp/now-seven.neff@0 /tmp/now-four.neff@0" },
		{ "seven four three", 0, NULL } } },
	{ "core 0 taken", hold_core, 0, {
		{ "small", 3, "core 0 is of process" }, { "large", 3, NULL }, { "never", 1, NULL } } },
	{ "core 0 limited", NULL, 6 * GIB, {
		{ "small", 0, NULL }, { "large", 3, "the limit of core 0 leaves" },
		{ "shared", 0, NULL }, { "shared input", 3, NULL } } },
};

/* Who holds memory or a core is what would have to go. */
static bool named(pid_t holder)
{
	char text[64];

	snprintf(text, sizeof(text), "it would fit without process %d ", (int)holder);
	return said_text(text);
}

static void try_state(const struct state *s)
{
	pid_t holder = start(s->hold);

	if (s->limit)
		CHECK(set_limit(s->limit), "a limit");
	/* Cores that share a memory, each with its scratchpad. */
	if (strchr(s->row[0].files, '@')) {
		setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
		setenv("NEURON_RT_CONTIGUOUS_SCRATCHPAD", "1", 1);
	}
	for (size_t i = 0; i < sizeof(s->row) / sizeof(s->row[0]) && s->row[i].files; i++) {
		int got = said(s->row[i].files, true);

		CHECK(got == s->row[i].want, "%s: of %s it says %d", s->name, s->row[i].files, got);
		CHECK(!s->row[i].text || said_text(s->row[i].text), "%s: %s: the words", s->name,
		      s->row[i].files);
		CHECK(got != 3 || !holder || named(holder), "%s: %s: who would have to go", s->name,
		      s->row[i].files);
		if (failed)
			(void)!system("sed 's/^/# /' " OUT);
		CHECK(happens(s->row[i].files) == !got, "%s: %s: and that is so", s->name,
		      s->row[i].files);
		CHECK(holder || s->limit || said(s->row[i].files, false) == got,
		      "%s: %s: without a device, too", s->name, s->row[i].files);
	}
	unsetenv("NEURON_LOGICAL_NC_CONFIG");
	unsetenv("NEURON_RT_CONTIGUOUS_SCRATCHPAD");
	stop(holder);
	if (s->limit)
		CHECK(set_limit(NEURON_LIMIT_NONE), "no limit");
}

int main(void)
{
	static struct counters before, after;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		make_file(&files[i]);
	counters_take(&before);
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		try_state(&states[i]);
	CHECK(said("large huge", true) == 0, "when they are gone it fits");
	counters_take(&after);
	CHECK(counters_equal(&before, &after), "nothing is left");
	return failed != 0;
}

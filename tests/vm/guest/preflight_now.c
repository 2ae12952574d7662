// SPDX-License-Identifier: GPL-2.0-only
/*
 * neuron-preflight --now: on an empty device, on one that is full, half full or in pieces, which may
 * move, with a core that another process has or has claimed, and with a limit, it says what the
 * runtime then does with the files; and without --now what it does on an empty one.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <sys/stat.h>

#include "preflight.h"

#define PIECES	15		/* of 1.5 GiB, nearly all of a memory */

/* ---- another process --------------------------------------------------------------- */

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
static bool take_pieces(struct neuron_device *d, uint32_t flags, struct neuron_mem **mem)
{
	for (int i = 0; i < PIECES; i++)
		if (!take(d, 3 * GIB / 2, NEURON_MEM_F_LOW | flags, &mem[i]))
			return false;
	for (int i = 1; i < PIECES; i += 2)
		neuron_mem_free(mem[i]);
	return true;
}

static bool hold_pieces(struct neuron_device *d)
{
	struct neuron_mem *mem[PIECES];

	return take_pieces(d, 0, mem);
}

static bool hold_movable(struct neuron_device *d)
{
	struct neuron_mem *mem[PIECES];

	return take_pieces(d, NEURON_MEM_F_MOVABLE, mem);
}

/* Two stay where they are: no more than 7.5 GiB are below, between or above them. */
static bool hold_pinned(struct neuron_device *d)
{
	struct neuron_mem *mem[PIECES];

	return take_pieces(d, NEURON_MEM_F_MOVABLE, mem) && !neuron_mem_pin(mem[4], NULL) &&
	       !neuron_mem_pin(mem[10], NULL);
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

/* As a runtime does before it opens a core. */
static bool hold_claim(struct neuron_device *d)
{
	struct neuron_claim_opts opts = {
		.size = sizeof(opts), .count = 1, .exact = true, .total = 1,
	};
	struct neuron_device_entry *list;
	struct neuron_claim *claim = NULL;
	size_t n;

	(void)d;
	return !neuron_device_list(&list, &n) &&
	       !neuron_claim_cores(list, n, &opts, &claim) && claim;
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
	{ "in pieces that move", hold_movable, 0, {
		{ "small", 0, "neuron0: fits now\n" }, { "large", 0, "that others hold can be moved then" } } },
	{ "in pieces of which two stay", hold_pinned, 0, {
		{ "seven", 0, "that others hold can be moved then" }, { "large", 3, "in one piece" } } },
	/* The scratchpad of core 1 starts at 8 GiB, so that core 0 can grow. */
	{ "two scratchpads", NULL, 0, {
		{ "small@1 seven@0", 0, NULL }, { "large@0 seven@0 small@1", 0, NULL },
		{ "small@1 seven@0 large@0", 1, "some of that finds no place; it would fit in another order" } } },
	{ "two holes", hold_middle, 0, {
		{ "three four seven", 3, "that order: /tmp/now-seven.neff@0 /tmp/now-four.neff@0" },
		{ "seven four three", 0, NULL } } },
	{ "core 0 taken", hold_core, 0, {
		{ "small", 3, "core 0 is of process" }, { "large", 3, NULL }, { "never", 1, NULL } } },
	{ "core 0 claimed", hold_claim, 0, {
		{ "small", 3, "another process has claimed core 0" }, { "never", 1, NULL } } },
	{ "core 0 limited", NULL, 6 * GIB, {
		{ "small", 0, NULL }, { "large", 3, "is not allowed: the limit of core 0 leaves" },
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
		/* Who has claimed a core is not told. */
		CHECK(got != 3 || !holder || s->hold == hold_claim || named(holder),
		      "%s: %s: who would have to go", s->name, s->row[i].files);
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

/* What is hidden from a user is not said to be nothing. */
static void other_user(void)
{
	pid_t holder = start(hold_core), nobody;
	int status = -1;
	char text[96];

	unlink(OUT);
	chmod("/dev/neuron0", 0666);
	nobody = fork();
	if (!nobody) {
		if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
		    setresuid(65534, 65534, 65534))
			_exit(99);
		_exit(said("small", true));
	}
	waitpid(nobody, &status, 0);
	chmod("/dev/neuron0", 0660);
	snprintf(text, sizeof(text), "it would fit without process %d (of unknown size)",
		 (int)holder);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3 && said_text(text),
	      "another user: what a process has is unknown");
	if (failed)
		(void)!system("sed 's/^/# /' " OUT);
	unlink(OUT);
	stop(holder);
}

int main(void)
{
	static struct counters before, after;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		make_file(&files[i]);
	counters_take(&before);
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		try_state(&states[i]);
	other_user();
	CHECK(said("large huge", true) == 0, "when they are gone it fits");
	counters_take(&after);
	CHECK(counters_equal(&before, &after), "nothing is left");
	return failed != 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* neuron-preflight --now knows what the device-memory controller allows its cgroup. */
#define _GNU_SOURCE
#include "cgroup.h"
#include "preflight.h"

static int set_bytes(uint64_t bytes)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	return set_max("box", 0, text);
}

static bool hold_three(struct neuron_device *d)
{
	struct neuron_mem *mem;

	return take(d, 3 * GIB, 0, &mem);
}

static void try_one(const char *files, int want, const char *text)
{
	int got = said(files, true);

	CHECK(got == want, "of %s it says %d", files, got);
	CHECK(said_text(text), "%s: the words: %s", files, text);
	CHECK(happens(files) == !want, "%s: and that is so", files);
	if (failed)
		(void)!system("sed 's/^/# /' " OUT);
}

/* What it takes, to the byte. */
static uint64_t need_of(const char *file)
{
	char command[128];
	uint64_t need = 0;
	FILE *f;

	snprintf(command, sizeof(command), "neuron-preflight --now --json %s |"
		 " sed -n 's/.*\"need\": *\\([0-9]*\\).*/\\1/p'", path_of(file));
	f = popen(command, "r");
	if (!f || fscanf(f, "%" SCNu64, &need) != 1)
		CHECK(false, "what %s needs", file);
	if (f)
		pclose(f);
	return need;
}

static void test_to_the_byte(void)
{
	uint64_t need;

	CHECK(!set_bytes(4096), "next to nothing");
	need = need_of("three");
	CHECK(need > 3 * GIB && !set_bytes(need), "as much as it needs: %llu", (unsigned long long)need);
	try_one("three", 0, "neuron0: fits now");
	CHECK(!set_bytes(need - 4096), "a page less");
	try_one("three", 3, "neuron0: is not allowed: the cgroup /box allows 3.");
}

static void test_used_by_others(void)
{
	pid_t holder;

	CHECK(!set_max("box", 0, "6G"), "6 GiB for a cgroup");
	try_one("three", 0, "neuron0: fits now");
	try_one("large", 3, "neuron0: is not allowed: the cgroup /box allows 6.000GB of HBM 0, 0.000B are used, 9.");
	try_one("never", 1, "does not fit the device");
	holder = start(hold_three);
	try_one("four", 3, "neuron0: is not allowed: the cgroup /box allows 6.000GB of HBM 0, 3.000GB are used, 4.");
	try_one("small", 0, "neuron0: fits now");
	stop(holder);
	try_one("four", 0, "neuron0: fits now");
}

int main(void)
{
	if (!has_controller("dmem"))
		return 0;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		make_file(&files[i]);
	/* The limit is that of the cgroup above. */
	CHECK(!text_write(cg("", "cgroup.subtree_control"), "+dmem") && !make("box") &&
	      !text_write(cg("box", "cgroup.subtree_control"), "+dmem") && !make("box/inner") &&
	      !join("box/inner"), "a process in a cgroup of a cgroup");
	test_used_by_others();
	test_to_the_byte();
	CHECK(!set_max("box", 0, "max"), "no limit");
	try_one("large", 0, "neuron0: fits now");
	CHECK(!join("") && !drop("box/inner") && !drop("box"), "the cgroups go");
	return failed != 0;
}

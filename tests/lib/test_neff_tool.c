// SPDX-License-Identifier: GPL-2.0-only
/* neuron-neff under the sanitizers: what it says of files that the script does not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* In a child; what it leaves allocated when it gives up is not of interest. */
#define main	tool_main
#define options	tool_options
#include "../../libneuron/tools/neuron-neff.c"
#undef main
#undef options

#include "test_neffs.h"

static char dir[] = "/tmp/neff-tool-XXXXXX";
static char text[65536];	/* what the tool printed last */

static const char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* Status of the tool with arguments that end with NULL, as a shell has it. */
static int tool(const char *command, ...)
{
	char *argv[12] = { "neuron-neff", (char *)(uintptr_t)command, NULL };
	int fds[2], status, argc = 2;
	size_t used = 0;
	va_list ap;
	ssize_t n;
	pid_t pid;

	va_start(ap, command);
	while ((argv[argc] = va_arg(ap, char *)))
		argc++;
	va_end(ap);
	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		close(fds[0]);
		setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
		status = tool_main(argc, argv);
		fflush(NULL);
		_exit(status);
	}
	close(fds[1]);
	while ((n = read(fds[0], text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A file with this in it, and that there is. */
static const char *neff_file(struct neff_bytes neff)
{
	FILE *f = fopen(in_dir("x.neff"), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(neff.data, 1, neff.size, f), neff.size);
	fclose(f);
	free(neff.data);
	return in_dir("x.neff");
}

static void says(const char *what)
{
	if (!strstr(text, what))
		fail_msg("'%s' is not in: %s", what, text);
}

/* An empty member has no data, and makes an empty file. */
static void test_C4_empty_member(void **state)
{
	struct neuron_neff_header header = { .size = sizeof(header), .version_major = 1, .lnc_size = 1 };
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	char file[128], out[128], member[160];
	struct neff_bytes n;
	struct stat st;

	(void)state;
	add_kelf(w, 0, "x", "y");
	assert_int_equal(neuron_neff_writer_add(w, "empty", NULL, 0), 0);
	assert_int_equal(neuron_neff_writer_finish(w, &header, true, &n.data, &n.size), 0);
	neuron_neff_writer_free(w);
	snprintf(file, sizeof(file), "%s", neff_file(n));
	snprintf(out, sizeof(out), "%s", in_dir("out"));
	if (tool("unpack", "-o", out, file, NULL))
		fail_msg("%s", text);
	snprintf(member, sizeof(member), "%s/empty", out);
	assert_int_equal(stat(member, &st), 0);
	assert_int_equal(st.st_size, 0);
}

static const char scratch_def[] =
	"{\"name\": \"definition\", \"var\": {"
	" \"big\": {\"type\": \"input\", \"var_id\": 1, \"size\": 30000000000},"
	" \"prime\": {\"type\": \"output\", \"var_id\": 2, \"size\": 4294967311},"
	" \"a\": {\"type\": \"virtual\", \"var_id\": 3, \"size\": 4096,"
	"  \"backing_variable_off\": 123456},"
	" \"b\": {\"type\": \"virtual\", \"var_id\": 4, \"size\": 1000,"
	"  \"backing_variable_off\": 7000, \"backing_buf\": \"side\"},"
	" \"c\": {\"type\": \"virtual\", \"var_id\": 5, \"size\": 64,"
	"  \"backing_variable_off\": 0}}}";

/* Where each scratchpad variable is, what each area takes, and all of them. */
static void test_T6_scratchpad(void **state)
{
	(void)state;
	neff_file(make_neff("scratch", scratch_def, NULL, 0));
	assert_int_equal(tool("info", in_dir("x.neff"), NULL), 0);
	says("123456");
	says("7000");
	says("  Scratchpad main: 127552 bytes\n");
	says("  Scratchpad side: 8000 bytes\n");
	/* Areas start at multiples of 64 KiB, as the loader places them. */
	says("  Scratchpad total: 139072 bytes\n");
	assert_int_equal(tool("info", "--json", in_dir("x.neff"), NULL), 0);
	says("\"offset\": 123456");
	says("\"offset\": 7000");
	says("\"buffer\": \"side\"");
	says("\"main\": 127552");
	says("\"side\": 8000");
	says("\"scratchpad_total\": 139072");
}

static void test_T6_large_shape(void **state)
{
	(void)state;
	neff_file(make_neff("scratch", scratch_def, NULL, 0));
	assert_int_equal(tool("info", in_dir("x.neff"), NULL), 0);
	says("uint8     30000000000\n");
	says("uint8     4294967311\n");
	assert_null(strstr(text, "4294967295"));
	assert_int_equal(tool("info", "--json", in_dir("x.neff"), NULL), 0);
	says("            30000000000\n");
	assert_null(strstr(text, "4294967295"));
}

static void test_network_info(void **state)
{
	(void)state;
	neff_file(net_neff());
	assert_int_equal(tool("info", in_dir("x.neff"), NULL), 0);
	says("Node first: kelf-0.json on 1 core, x -> b\n");
	says("Node middle: invert on the host, b -> c\n");
	says("Node last: kelf-1.json on 1 core, c -> y\n");
	says("Graph sg00 of kelf-0.json\n");
	says("Graph sg10 of kelf-1.json\n");
	assert_int_equal(tool("info", "--json", in_dir("x.neff"), NULL), 0);
	says("\"name\": \"sg10\"");
	says("\"op\": \"invert\"");
	assert_int_equal(tool("plan", in_dir("x.neff"), NULL), 0);
	says("Graph sg10 of kelf-1.json: 0 variables in the scratchpad\n");
	assert_int_equal(tool("plan", "--json", in_dir("x.neff"), NULL), 0);
	says("\"kelf\": 1");
}

/* Whatever looks at a file refuses one in which any node is broken. */
static void check_broken(const char *network, const char *what)
{
	char file[128], out[128];

	snprintf(file, sizeof(file), "%s", neff_file(make_net(network)));
	snprintf(out, sizeof(out), "%s", in_dir("broken"));
	assert_int_equal(tool("info", file, NULL), 1);
	says(what);
	assert_int_equal(tool("info", "--json", file, NULL), 1);
	assert_int_equal(tool("plan", file, NULL), 1);
	says(what);
	assert_int_equal(tool("unpack", "-o", out, file, NULL), 1);
	says(what);
	assert_int_not_equal(access(out, F_OK), 0);
}

static void test_network_broken(void **state)
{
	(void)state;
	check_broken(NETWORK(EDGES, NODE_A "," NODE_OP ", {\"name\": \"last\", \"kelf\": 7,"
			     " \"inputs\": [\"c\"], \"outputs\": [\"y\"]}"), "kelf-7.json: missing");
	check_broken(NETWORK("\"edges\": [{\"name\": \"x\", \"bytes\": 1024, \"use\": \"input\"},"
			     "{\"name\": \"b\", \"bytes\": 1024}, {\"name\": \"c\", \"bytes\": 1024},"
			     "{\"name\": \"y\", \"bytes\": 1023, \"use\": \"output\"}]",
			     NODE_A "," NODE_OP "," NODE_B),
		     "nodes[2]: its program has no output 'y' of 1023 bytes");
}

static int group_setup(void **state)
{
	(void)state;
	return !mkdtemp(dir);
}

static int group_teardown(void **state)
{
	char command[160];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_C4_empty_member),
		cmocka_unit_test(test_T6_scratchpad),
		cmocka_unit_test(test_T6_large_shape),
		cmocka_unit_test(test_network_info),
		cmocka_unit_test(test_network_broken),
	};

	return cmocka_run_group_tests_name("neuron-neff", tests, group_setup, group_teardown);
}

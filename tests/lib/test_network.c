// SPDX-License-Identifier: GPL-2.0-only
/*
 * Networks of several nodes on paper: what neuron_net_plan() and neuron_models_fit_empty() say of
 * random ones is what neuron_net_load() does then, with the driver's allocator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static unsigned long long hbm_size;
#define FAKE_HBM_SIZE hbm_size

#include "draw.h"
#include "fake_driver.h"
#include "test_neffs.h"

#include "common/util.h"

#define MIB (1ull << 20)
#define SETS 1000u
#define MAX_NODES 6u
#define MAX_FILES 3u

/* From 1 byte to @max, half of them of any length in digits. */
static uint64_t draw_size(uint64_t max)
{
	uint64_t size = 1ull << (draw(0, 1) ? 40 : draw(4, 36));

	size = draw(size, 2 * size);
	return size > max ? draw(1, max) : size;
}

struct network {
	uint32_t nr;			/* nodes, each reads what the one before writes */
	bool cpu[MAX_NODES];
	uint8_t cores[MAX_NODES];	/* by kelf, as in the header */
	uint64_t bytes[MAX_NODES + 1];	/* of the edges between them */
	uint32_t first;			/* logical core */
	uint32_t want;			/* logical cores */
	struct neff_bytes file;
	struct neuron_plan plan[MAX_NODES];
	size_t nr_plans;
	struct neuron_net *net;
	struct neuron_pool *pool;
	struct neuron_mem *mem[2];
};

struct set {
	struct neuron_core_opts opts;
	struct network net[MAX_FILES];
	uint32_t nr, lnc;
	bool io_each;
	struct neuron_device *device;
	struct neuron_core *core[FAKE_CORES];
};

static void add_text(struct neuron_neff_writer *w, const char *name, const char *text)
{
	assert_int_equal(neuron_neff_writer_add(w, name, text, strlen(text)), 0);
}

/* One subgraph of a node; only the first has tensors. */
static void add_graph(struct neuron_neff_writer *w, unsigned int kelf, unsigned int part,
		      const struct network *n, unsigned int node, uint64_t largest)
{
	static const char *const types[] = { "tmp-buf", "virtual", "file" };
	unsigned int vars = (unsigned int)draw(0, 6);
	char name[48], *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fprintf(f, "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {\"q\": {\"type\":"
		   " \"data\"}}, \"var\": {\"a\": {\"type\": \"tmp-buf\", \"var_id\": 100, \"size\": 64}");
	if (!part)
		fprintf(f, ", \"e%u\": {\"type\": \"input\", \"var_id\": 101, \"size\": %llu},"
			" \"e%u\": {\"type\": \"output\", \"var_id\": 102, \"size\": %llu}", node,
			(unsigned long long)n->bytes[node], node + 1,
			(unsigned long long)n->bytes[node + 1]);
	for (unsigned int id = 1; id <= vars; id++) {
		const char *type = types[draw(0, 2)];

		fprintf(f, ", \"v%u\": {\"type\": \"%s\", \"var_id\": %u, \"size\": %llu", id, type, id,
			(unsigned long long)draw_size(largest));
		if (*type == 'v')
			fprintf(f, ", \"backing_variable_off\": %llu",
				(unsigned long long)draw_size(largest));
		else if (*type == 'f')
			fprintf(f, ", \"file_name\": \"k\"");
		fputc('}', f);
	}
	fputs("}}", f);
	assert_int_equal(fclose(f), 0);
	snprintf(name, sizeof(name), "k%u_%u/def.json", kelf, part);
	add_text(w, name, text);
	free(text);
	snprintf(name, sizeof(name), "k%u_%u/SP.json", kelf, part);
	add_text(w, name, part ?
		 "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"from\": \"a\", \"to\": \"a\","
		 " \"to_sizes\": [64], \"to_steps\": [1]}]}]}" :
		 "{\"dma\": []}");
	snprintf(name, sizeof(name), "k%u_%u/k", kelf, part);
	add_text(w, name, "k");
}

static void add_program(struct neuron_neff_writer *w, unsigned int kelf, const struct network *n,
			unsigned int node, unsigned int parts, uint64_t largest)
{
	char name[48], text[256];

	snprintf(name, sizeof(name), "kelf-%u.json", kelf);
	snprintf(text, sizeof(text), parts == 1 ?
		 "{\"graphs\": [{\"definition\": \"k%u_0/def.json\", \"name\": \"sg00\"}]}" :
		 "{\"graphs\": [{\"definition\": \"k%u_0/def.json\", \"name\": \"sg00\"},"
		 " {\"definition\": \"k%u_1/def.json\", \"name\": \"sg01\"}]}", kelf, kelf);
	add_text(w, name, text);
	for (unsigned int k = 0; k < parts; k++)
		add_graph(w, kelf, k, n, node, largest);
}

static void add_network(struct neuron_neff_writer *w, const struct network *n)
{
	unsigned int kelf = 0;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fputs("{\"format\": \"neuron-pack-1\", \"edges\": [", f);
	for (unsigned int i = 0; i <= n->nr; i++)
		fprintf(f, "%s{\"name\": \"e%u\", \"bytes\": %llu, \"use\": \"%s\"}", i ? ", " : "", i,
			(unsigned long long)n->bytes[i],
			!i ? "input" : i == n->nr ? "output" : "internal");
	fputs("], \"nodes\": [", f);
	for (unsigned int i = 0; i < n->nr; i++) {
		fprintf(f, "%s{\"name\": \"n%u\", \"inputs\": [\"e%u\"], \"outputs\": [\"e%u\"], ",
			i ? ", " : "", i, i, i + 1);
		if (n->cpu[i])
			fputs("\"op\": \"op\"}", f);
		else
			fprintf(f, "\"kelf\": %u}", kelf++);
	}
	fputs("]}", f);
	assert_int_equal(fclose(f), 0);
	add_text(w, "neff.json", text);
	free(text);
}

static void make_network(struct network *n, uint32_t lnc, uint64_t largest)
{
	struct neuron_neff_header header = {
		.size = sizeof(header), .version_major = 2, .num_tpb = 1, .name = "net",
	};
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	uint32_t left = FAKE_CORES / lnc, kelf = 0;
	uint64_t edge = largest / draw(1, 8);

	n->first = (uint32_t)draw(0, left - 1);
	left -= n->first;
	n->nr = (uint32_t)draw(1, MAX_NODES);
	for (uint32_t i = 0; i <= n->nr; i++)
		n->bytes[i] = draw_size(MIN(edge, UINT32_MAX));
	for (uint32_t i = 0; i < n->nr; i++) {
		uint8_t cores = (uint8_t)draw(0, draw(0, 3) ? lnc : 2 * lnc);
		uint32_t takes = (MAX(cores, 1) + lnc - 1) / lnc;

		n->cpu[i] = n->want + takes > left || !draw(0, 3);
		if (n->cpu[i])
			continue;
		n->want += takes;
		n->cores[kelf] = cores;
		add_program(w, kelf++, n, i, (unsigned int)draw(1, MIN(lnc, MAX(cores, 1))), largest);
	}
	if (!kelf)
		add_program(w, 0, n, 0, 1, largest);
	add_network(w, n);
	memcpy(header.tpb_per_node, n->cores, sizeof(n->cores));
	assert_int_equal(neuron_neff_writer_finish(w, &header, false, &n->file.data, &n->file.size), 0);
	neuron_neff_writer_free(w);
}

static void make_set(struct set *s, unsigned int seed)
{
	state = seed * 7919ull + 3;
	draw(0, 1);
	memset(s, 0, sizeof(*s));
	hbm_size = draw(16, 256) * 64 * MIB;
	s->lnc = (uint32_t)draw(1, 2);
	s->nr = (uint32_t)draw(1, MAX_FILES);
	s->io_each = draw(0, 1);
	s->opts = (struct neuron_core_opts){
		.size = sizeof(s->opts), .scratchpad_page = draw(1, 3) * 512 * MIB,
		.contiguous = draw(0, 1), .microcode = draw(0, 1) * draw(1, 96) * MIB, .lnc = s->lnc,
	};
	for (uint32_t i = 0; i < s->nr; i++)
		make_network(&s->net[i], s->lnc, hbm_size / draw(2, 10));
}

static struct neuron_plan_opts plan_opts(const struct set *s, struct neuron_error *error)
{
	return (struct neuron_plan_opts){
		.size = sizeof(struct neuron_plan_opts), .scratchpad_page = s->opts.scratchpad_page,
		.contiguous = s->opts.contiguous, .lnc = s->lnc, .io_sets = 1, .io_each = s->io_each,
		.short_constants = true, .error = error,
	};
}

/* Without a device. */
static bool promised(struct set *s, const struct neuron_geometry *g)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_plan_opts opts = plan_opts(s, &error);
	struct neuron_fit_file file[MAX_FILES];
	struct neuron_fit fit = { .size = sizeof(fit) };
	bool expected;

	for (uint32_t i = 0; i < s->nr; i++) {
		struct network *n = &s->net[i];

		n->plan[0].size = sizeof(n->plan[0]);
		n->nr_plans = MAX_NODES;
		if (neuron_net_plan(g, n->file.data, n->file.size, &opts, n->plan, &n->nr_plans))
			fail_msg("%s", error.text);
		file[i] = (struct neuron_fit_file){
			.size = sizeof(file[i]), .bytes = n->file.data, .length = n->file.size,
			.plan = n->plan, .nr_plans = n->nr_plans, .nc = n->first * s->lnc,
		};
	}
	if (neuron_models_fit_empty(g, FAKE_RESERVED, file, s->nr, &opts, s->opts.microcode, &fit))
		fail_msg("%s", error.text);
	expected = fit.verdict == NEURON_FIT_NOW;
	/* The same of a device that is there, where only cores with a file would be opened. */
	if (!s->opts.microcode) {
		if (neuron_models_fit(s->device, file, s->nr, &opts, 0, &fit))
			fail_msg("%s", error.text);
		assert_int_equal(fit.verdict, expected ? NEURON_FIT_NOW : NEURON_FIT_NEVER);
	}
	return expected;
}

static int op(void *context, const struct neuron_host_tensor *in, size_t nr_in,
	      const struct neuron_host_tensor *out, size_t nr_out)
{
	(void)context;
	(void)in;
	(void)nr_in;
	(void)out;
	(void)nr_out;
	return 0;
}

/* Its input and output, next to its first core. */
static int load_tensors(struct set *s, struct network *n)
{
	const struct neuron_geometry *g = neuron_device_geometry(s->device);
	uint32_t nc = n->first * s->lnc;
	int ret = 0;

	for (unsigned int i = 0; i < 2 && !ret; i++) {
		struct neuron_mem_opts opts = {
			.size = sizeof(opts), .hbm = g->core_hbm[nc], .nc = nc,
			.category = NEURON_MEM_TENSORS,
			.flags = s->opts.contiguous ? NEURON_MEM_F_HIGH : 0,
		};

		ret = neuron_mem_alloc(s->device, n->bytes[i ? n->nr : 0], &opts, &n->mem[i]);
	}
	return ret;
}

static int load_network(struct set *s, struct network *n)
{
	static const struct neuron_host_op ops[] = { { "op", op, NULL } };
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts opts = {
		.size = sizeof(opts), .ops = ops, .nr_ops = 1, .short_constants = true, .error = &error,
	};
	uint32_t nr = FAKE_CORES / s->lnc - n->first;
	int ret;

	assert_int_equal(neuron_pool_open(s->core + n->first, nr, &n->pool), 0);
	ret = neuron_net_load(n->pool, n->file.data, n->file.size, &opts, &n->net);
	if (!ret)
		assert_ptr_equal(neuron_net_core(n->net), s->core[n->first]);
	else if (ret != -ENOMEM && ret != -EFBIG)
		fail_msg("%d: %s", ret, error.text);
	return ret;
}

/* What was planned of a logical core is what the driver charges to it. */
static void check_bytes(struct set *s, uint32_t core)
{
	struct neuron_plan_opts opts = plan_opts(s, NULL);
	struct neuron_plan plans[MAX_FILES * MAX_NODES];
	struct neuron_report_core sum = { .nc = core };
	uint64_t bytes[NEURON_MAX_CATEGORIES] = { 0 };
	size_t nr = 0;

	plans[0].size = sizeof(plans[0]);
	for (uint32_t i = 0; i < s->nr; i++)
		for (size_t k = 0; k < s->net[i].nr_plans; k++)
			if (s->net[i].first + s->net[i].plan[k].first / s->lnc == core)
				plans[nr++] = s->net[i].plan[k];
	assert_int_equal(neuron_plan_sum(plans, nr, &opts, s->opts.microcode, &sum), 0);
	for (uint32_t nc = core * s->lnc; nc < (core + 1) * s->lnc; nc++) {
		struct neuron_core_stats stats = { .size = sizeof(stats) };

		assert_int_equal(neuron_core_get_stats(s->device, nc, &stats), 0);
		for (size_t i = 0; i < NEURON_MAX_CATEGORIES; i++)
			bytes[i] += stats.device_bytes[i];
	}
	assert_memory_equal(bytes, sum.device_bytes, sizeof(bytes));
}

static bool loads(struct set *s)
{
	int ret = 0;

	for (uint32_t i = 0; i < FAKE_CORES / s->lnc && !ret; i++)
		ret = neuron_core_open(s->device, i * s->lnc, &s->opts, &s->core[i]);
	for (uint32_t i = 0; i < s->nr && !ret; i++) {
		ret = load_network(s, &s->net[i]);
		if (!ret && s->io_each)
			ret = load_tensors(s, &s->net[i]);
	}
	for (uint32_t i = 0; i < s->nr && !ret && !s->io_each; i++)
		ret = load_tensors(s, &s->net[i]);
	/* A scratchpad in one piece that could not grow goes on in pages. */
	for (uint32_t i = 0; i < FAKE_CORES / s->lnc && !ret && !s->opts.contiguous; i++)
		check_bytes(s, i);
	return !ret;
}

static void free_set(struct set *s)
{
	for (uint32_t i = 0; i < s->nr; i++) {
		struct network *n = &s->net[i];

		neuron_net_unload(n->net);
		neuron_pool_close(n->pool);
		neuron_mem_free(n->mem[0]);
		neuron_mem_free(n->mem[1]);
		free(n->file.data);
	}
	for (uint32_t i = 0; i < FAKE_CORES; i++)
		neuron_core_close(s->core[i]);
	neuron_device_close(s->device);
	assert_int_equal(fake_used(), 0);
	for (unsigned int i = 0; i < FAKE_HBMS; i++) {
		neuron_buddy_destroy(fake.dev[0].zone[i]);
		fake.dev[0].zone[i] = NULL;
	}
}

static void test_promises(void **unused)
{
	unsigned int fit = 0, wrong = 0, several = 0;

	(void)unused;
	for (unsigned int seed = 1; seed <= SETS; seed++) {
		static struct set s;
		bool expected, did;

		make_set(&s, seed);
		assert_int_equal(neuron_device_open(0, &s.device), 0);
		expected = promised(&s, neuron_device_geometry(s.device));
		did = loads(&s);
		if (did != expected) {
			print_message("# set %u: promised %d, did %d\n", seed, expected, did);
			wrong++;
		}
		fit += did;
		several += did && s.net[0].nr_plans > 1;
		free_set(&s);
	}
	print_message("# %u of %u fit, %u with several nodes on cores\n", fit, SETS, several);
	assert_int_equal(wrong, 0);
	/* Each answer has to be frequent to mean anything. */
	assert_in_range(fit, SETS / 8, SETS * 7 / 8);
	assert_in_range(several, SETS / 16, SETS);
}

static struct neff_bytes plain;

static int plan_plain(const char *network, struct neuron_plan *plans, size_t *nr,
		      struct neuron_error *error)
{
	struct neuron_plan_opts opts = { .size = sizeof(opts), .error = error };
	struct neuron_geometry g;
	int ret;

	assert_int_equal(neuron_instance_geometry("trn2", &g, NULL), 0);
	plain = make_net(network);
	plans->size = sizeof(*plans);
	ret = neuron_net_plan(&g, plain.data, plain.size, &opts, plans, nr);
	free(plain.data);
	return ret;
}

#define IO(from, to) "\"edges\": [" \
	"{\"name\": \"" from "\", \"bytes\": 1024, \"use\": \"input\"}," \
	"{\"name\": \"" to "\", \"bytes\": 1024, \"use\": \"output\"}]"

/* Which nodes have a plan, and where; between a node on a core and the host nothing is on a device. */
static void test_nodes(void **unused)
{
	static const char between[] =
		NETWORK("\"edges\": [{\"name\": \"x\", \"bytes\": 1024, \"use\": \"input\"},"
			"{\"name\": \"b\", \"bytes\": 1024, \"use\": \"output\"},"
			"{\"name\": \"c\", \"bytes\": 1024, \"use\": \"input\"},"
			"{\"name\": \"y\", \"bytes\": 1024, \"use\": \"output\"}]",
			NODE_A "," NODE_B);
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_plan p[3];
	size_t nr = 3;

	(void)unused;
	assert_int_equal(plan_plain(NETWORK(EDGES, NODE_A "," NODE_OP "," NODE_B), p, &nr, &error), 0);
	assert_int_equal(nr, 2);
	assert_string_equal(p[1].name, "net/last");
	assert_int_equal(p[0].first, 0);
	assert_int_equal(p[1].first, 1);
	assert_int_equal(p[1].node, 1);
	assert_int_equal(p[0].io, 2 * 4096);
	assert_int_equal(p[1].io, 0);
	assert_int_equal(p[0].edges, 0);
	/* Four requests have two edges each. */
	assert_in_range(p[0].host_kept, 4 * 2 * 4096, 4 * 2 * 4096 + 4096);
	nr = 1;
	assert_int_equal(plan_plain(between, p, &nr, &error), -ENOSPC);
	nr = 2;
	assert_int_equal(plan_plain(between, p, &nr, &error), 0);
	assert_int_equal(p[0].io, 4 * 4096);
	/* All on the host, and no network at all. */
	assert_int_equal(plan_plain(NETWORK(IO("b", "c"), NODE_OP), p, &nr, &error), 0);
	assert_int_equal(nr, 1);
	assert_int_equal(p[0].nr_parts, 0);
	assert_int_equal(p[0].io, 2 * 4096);
	assert_int_equal(plan_plain(NETWORK(IO("x", "b"), NODE_A), p, &nr, &error), 0);
	assert_int_equal(nr, 1);
	assert_int_equal(p[0].nr_parts, 1);
	assert_string_equal(p[0].name, "net");
	error.kind = NEURON_ERROR_NONE;
	assert_int_equal(plan_plain(NETWORK(EDGES, NODE_A "," NODE_OP ", {\"name\": \"last\", \"kelf\": 7,"
					    " \"inputs\": [\"c\"], \"outputs\": [\"y\"]}"), p, &nr,
				    &error), -EINVAL);
	assert_non_null(strstr(error.text, "kelf-7.json"));
	assert_int_equal(plan_plain(NETWORK(EDGES, NODE_A), p, NULL, &error), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_promises),
		cmocka_unit_test(test_nodes),
	};

	fake.nr_devices = 1;
	return cmocka_run_group_tests_name("network", tests, NULL, NULL);
}

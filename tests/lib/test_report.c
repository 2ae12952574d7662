// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory report, character by character; plans against what loading allocates;
 * logical cores of two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/stat.h>

#include <nrt/nrt.h>

#include "src/memory/mem.h"
#include "src/run/core.h"
#include "comparisons.h"
#include "fake_driver.h"
#include "test_neffs.h"

#define KIB 1024ull
#define MIB (1ull << 20)
#define GIB (1ull << 30)
/* As printed: three decimals of a unit. */
#define KB(x) ((uint64_t)((x) * 1024 + 0.5))

/* ---- text -------------------------------------------------------------------------- */

/* The example of the device memory document. */
static void document(struct neuron_report *r)
{
	static struct neuron_report_model models[3] = {
		{ 1001, "1.0.41235.0+df4a714bb-/local/out-test0_meta_dense",
		  { sizeof(struct neuron_model_usage), KB(28.5625), KB(34.34375), 0, 108 * KIB, 57 * KIB,
		    32 * KIB, 4 * KIB, 0, 0, 0, 0 } },
		{ 1002, "1.0.41235.0+df4a714bb-/local/out-test0_meta_concat3",
		  { sizeof(struct neuron_model_usage), KB(31.875), 24 * KIB, 0, 108 * KIB, 61 * KIB,
		    16 * KIB, 4 * KIB, 0, 0, 0, 0 } },
		{ 1003, "1.0.41235.0+df4a714bb-/local/out-test0_meta_concat3",
		  { sizeof(struct neuron_model_usage), KB(31.875), 24 * KIB, 0, 108 * KIB, 61 * KIB,
		    16 * KIB, 4 * KIB, 0, 0, 0, 0 } },
	};
	static struct neuron_report_core cores[2];

	memset(cores, 0, sizeof(cores));
	cores[0].nc = 4;
	cores[0].owner = 4711;
	cores[0].models = models;
	cores[0].nr_models = 2;
	cores[0].device_bytes[NEURON_MEM_CODE] = KB(98370.56);
	cores[0].device_bytes[NEURON_MEM_CONSTANTS] = KB(58.34375);
	cores[0].device_bytes[NEURON_MEM_TENSORS] = 20 * GIB;
	cores[0].device_bytes[NEURON_MEM_MISC] = KB(229.0625);
	cores[0].device_bytes[NEURON_MEM_RINGS] = (118 + 48 + 36) * KIB;
	cores[1].nc = 5;
	cores[1].models = models + 2;
	cores[1].nr_models = 1;
	cores[1].device_bytes[NEURON_MEM_CODE] = KB(98341.888);
	cores[1].device_bytes[NEURON_MEM_CONSTANTS] = 24 * KIB;
	cores[1].device_bytes[NEURON_MEM_OTHER] = KB(121.0625);
	cores[1].device_bytes[NEURON_MEM_RINGS] = (61 + 16 + 32) * KIB;
	*r = (struct neuron_report){
		.size = sizeof(*r), .device = 0, .hbm = 2, .lnc = 1, .cores = cores, .nr_cores = 2,
	};
}

static void test_table(void **state)
{
	static const char want[] =
"              |          |  Model   |  Model   |          |  Shared  |          |          |DMA Rings |DMA Rings | DMA Rings |DMA Rings |           |          | Profiler |\n"
"              |  TOTAL   |   Code   |Constants | Tensors  |Scratchpad|Scratchpad| Runtime  |    IO    |  Spill   |Collectives| Runtime  |Collectives|  XT CC   | Buffers  |\n"
"ND 0 HBM 2    | 20.188GB |192.102MB | 82.344KB | 20.000GB |  0.000B  |  0.000B  |350.125KB |179.000KB | 64.000KB |  0.000B   | 68.000KB |  0.000B   |  0.000B  |  0.000B  |\n"
"\\_NC 4        | 20.094GB | 96.065MB | 58.344KB | 20.000GB |  0.000B  |  0.000B  |229.062KB |118.000KB | 48.000KB |  0.000B   | 36.000KB |  0.000B   |  0.000B  |  0.000B  |\n"
"  \\_NEFF 1001 |263.906KB | 28.562KB | 34.344KB |   n/a    |   n/a    |  0.000B  |108.000KB | 57.000KB | 32.000KB |  0.000B   | 4.000KB  |  0.000B   |   n/a    |   n/a    |\n"
"  \\_NEFF 1002 |244.875KB | 31.875KB | 24.000KB |   n/a    |   n/a    |  0.000B  |108.000KB | 61.000KB | 16.000KB |  0.000B   | 4.000KB  |  0.000B   |   n/a    |   n/a    |\n"
"\\_NC 5        | 96.285MB | 96.037MB | 24.000KB |  0.000B  |  0.000B  |  0.000B  |121.062KB | 61.000KB | 16.000KB |  0.000B   | 32.000KB |  0.000B   |  0.000B  |  0.000B  |\n"
"  \\_NEFF 1003 |244.875KB | 31.875KB | 24.000KB |   n/a    |   n/a    |  0.000B  |108.000KB | 61.000KB | 16.000KB |  0.000B   | 4.000KB  |  0.000B   |   n/a    |   n/a    |\n"
"\n"
"192.012MB of the code are set aside for microcode (NEURON_RT_MICROCODE_MB)\n"
"\n"
"NEFF id to name mapping:\n"
"1001: \"1.0.41235.0+df4a714bb-/local/out-test0_meta_dense\"\n"
"1002: \"1.0.41235.0+df4a714bb-/local/out-test0_meta_concat3\"\n"
"1003: \"1.0.41235.0+df4a714bb-/local/out-test0_meta_concat3\"\n";
	struct neuron_report r;
	char *text;

	(void)state;
	document(&r);
	assert_int_equal(neuron_report_table(&r, &text), 0);
	assert_string_equal(text, want);
	free(text);
	assert_int_equal(neuron_report_table(NULL, &text), -EINVAL);
	assert_int_equal(neuron_report_table(&r, NULL), -EINVAL);
}

/* Every byte of the driver is in one column; the columns add up. */
static void test_rows(void **state)
{
	uint64_t row[NEURON_REPORT_NR_COLUMNS], all[NEURON_REPORT_NR_COLUMNS], sum = 0;
	struct neuron_report_core core = { .nc = 0 };
	struct neuron_report r = { .size = sizeof(r), .lnc = 1, .cores = &core, .nr_cores = 1 };

	(void)state;
	for (unsigned int i = 0; i < NEURON_MAX_CATEGORIES; i++) {
		core.device_bytes[i] = 1ull << i;
		sum += 1ull << i;
	}
	neuron_report_row(&r, &core, row);
	neuron_report_row(&r, NULL, all);
	assert_memory_equal(row, all, sizeof(row));
	assert_true(row[NEURON_REPORT_TOTAL] == sum);
	for (int i = 1; i < NEURON_REPORT_NR_COLUMNS; i++)
		sum -= row[i];
	assert_true(sum == 0);
	assert_true(row[NEURON_REPORT_SHARED_SCRATCHPAD] ==
		    (1ull << NEURON_MEM_SCRATCHPAD | 1ull << NEURON_MEM_SCRATCHPAD_CONTIGUOUS));
}

static void reason_is(const struct neuron_report *r, const struct neuron_mem_failure *f,
		      const char *want)
{
	char *text;

	char pid[32], full[1024];
	const char *at = strstr(want, "PID");

	assert_int_equal(neuron_report_reason(r, f, &text), 0);
	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(full, sizeof(full), "%.*s%s%s", at ? (int)(at - want) : (int)strlen(want), want,
		 at ? pid : "", at ? at + 3 : "");
	assert_string_equal(text, full);
	free(text);
}

static void reason_has_not(const struct neuron_report *r, const struct neuron_mem_failure *f,
			   const char *unwanted)
{
	char *text;

	assert_int_equal(neuron_report_reason(r, f, &text), 0);
	assert_null(strstr(text, unwanted));
	free(text);
}

/* A limit is named, with what is left of it, and is not put on somebody else. */
static void test_R5_limits(void **state)
{
	struct neuron_mem_failure f = {
		.reason = NEURON_MEM_REASON_CAPPED, .category = NEURON_MEM_TENSORS, .nc = 1,
		.bytes = GIB, .total = 24 * GIB, .free = 20 * GIB, .largest_free = 18 * GIB,
		.largest_aligned = 18 * GIB,
	};
	struct neuron_report_core core = {
		.nc = 1, .device_bytes = { [NEURON_MEM_TENSORS] = 3 * GIB },
	};
	struct neuron_report r = {
		.size = sizeof(r), .lnc = 1, .cores = &core, .nr_cores = 1, .limit_path = "/x/limit",
		.limit = 3 * GIB + 512 * MIB, .limit_used = 3 * GIB, .limit_core = 1,
	};

	(void)state;
	reason_is(&r, &f, "No room for 1.000GB of tensors: HBM 0 of ND 0 is not to be used further by NC 1:"
		  " its limit of 3.500GB has 3.000GB charged and 512.000MB left (/x/limit), 20.000GB of 24.000GB are free; held by"
		  " NC 1 3.000GB, most of it tensors (3.000GB); up to 512.000MB would fit; try a higher limit,"
		  " or fewer tensors and models on NC 1, or to free tensors, or smaller batches");
	r.limit_core = 0;
	r.limit_used = 4 * GIB;
	reason_is(&r, &f, "No room for 1.000GB of tensors: HBM 0 of ND 0 is not to be used further by this process:"
		  " its limit of 3.500GB has 4.000GB charged and 0.000B left (/x/limit), 20.000GB of 24.000GB are free; held by"
		  " NC 1 3.000GB, most of it tensors (3.000GB); up to 0.000B would fit; try a higher limit,"
		  " or fewer tensors and models in this process, or to free tensors, or smaller batches");
}

/* Memory set aside for microcode is no model. */
static void test_R5_microcode(void **state)
{
	struct neuron_mem_failure f = {
		.reason = NEURON_MEM_REASON_FRAGMENTED, .category = NEURON_MEM_TENSORS,
		.bytes = 200 * MIB, .total = 256 * MIB, .free = 64 * MIB, .largest_free = 32 * MIB,
	};
	struct neuron_report_core core = {
		.owner = getpid(), .device_bytes = { [NEURON_MEM_CODE] = 192 * MIB },
	};
	struct neuron_report r = {
		.size = sizeof(r), .lnc = 2, .cores = &core, .nr_cores = 1, .total = 256 * MIB,
		.free = 48 * MIB, .reserved = 16 * MIB,
	};
	char *text;

	(void)state;
	reason_has_not(&r, &f, "model code");
	reason_has_not(&r, &f, "unload");
	reason_is(&r, &f, "No room for 200.000MB of tensors: HBM 0 of ND 0 is fragmented: 64.000MB of 256.000MB are"
		  " free, but the longest piece has 32.000MB; held by NC 0 (this process, PID) 192.000MB, most"
		  " of it set aside for microcode (192.000MB); up to 32.000MB would fit; try to load models and"
		  " allocate large tensors first, before small ones, or to set less aside for microcode"
		  " (NEURON_RT_MICROCODE_MB)");
	assert_int_equal(neuron_report_table(&r, &text), 0);
	assert_non_null(strstr(text, "\n256.000MB are 192.000MB in these rows, 48.000MB free and 16.000MB reserved"
			       " (268435456 = 201326592 + 50331648 + 16777216 bytes)\n192.000MB of the code are"
			       " set aside for microcode (NEURON_RT_MICROCODE_MB)\n"));
	free(text);
}

/* Small memories keep room for models; real ones have what the vendor's takes. */
static void test_R5_small(void **state)
{
	struct neuron_placement p = { .size = sizeof(p) };
	struct neuron_geometry g;

	(void)state;
	assert_int_equal(neuron_instance_geometry("trn1", &g, NULL), 0);
	assert_int_equal(neuron_placement_microcode(NULL, &g), 96 * MIB);
	g.hbm[0].size = 64 * MIB;
	assert_int_equal(neuron_placement_microcode(NULL, &g), 4 * MIB);
	setenv("NEURON_RT_MICROCODE_MB", "8", 1);
	assert_int_equal(neuron_placement_read(false, &p), 0);
	unsetenv("NEURON_RT_MICROCODE_MB");
	assert_int_equal(neuron_placement_microcode(&p, &g), 8 * MIB);
}

static void test_reason(void **state)
{
	struct neuron_mem_failure f = {
		.reason = NEURON_MEM_REASON_FULL, .category = NEURON_MEM_TENSORS, .hbm = 2, .nc = 4,
		.bytes = 4 * GIB, .total = 24 * GIB, .free = 3 * GIB, .largest_free = 2 * GIB,
		.largest_aligned = GIB,
	};
	struct neuron_report_core one = { .nc = 0 };
	struct neuron_report r, single = {
		.size = sizeof(single), .hbm = 2, .lnc = 2, .cores = &one, .nr_cores = 1,
	};

	(void)state;
	document(&r);
	reason_is(&r, &f, "No room for 4.000GB of tensors: HBM 2 of ND 0 is full: 3.000GB of 24.000GB are free;"
		  " held by NC 4 (process 4711) 20.094GB, most of it tensors (20.000GB)"
		  " and NC 5 96.285MB, most of it model code (96.037MB); up to 2.000GB would fit;"
		  " try to free tensors, or smaller batches, or to put less on NC 5, which shares this"
		  " memory with NC 4 (NEURON_LOGICAL_NC_CONFIG=2 makes one core of them)");
	f.reason = NEURON_MEM_REASON_ALIGNMENT;
	f.align = GIB;
	one.device_bytes[NEURON_MEM_SCRATCHPAD_PRIVATE] = GIB;
	reason_is(&single, &f, "No room for 4.000GB of tensors: HBM 2 of ND 0 has no piece that starts where it must:"
		  " 3.000GB of 24.000GB are free, the longest piece has 2.000GB, the longest one from a multiple of 1.000GB has 1.000GB;"
		  " held by NC 0 1.000GB, most of it scratchpad (1.000GB); up to 1.000GB would fit;"
		  " try to load models and allocate large tensors first, before small ones, or a smaller alignment,"
		  " or another NEURON_SCRATCHPAD_PAGE_SIZE (\"neuron-preflight --pages\" proposes one),"
		  " or to unload models, or smaller ones");
	f.align = 0;
	/* Where there are no pages, none are proposed. */
	single.contiguous = 1;
	reason_has_not(&single, &f, "PAGE_SIZE");
	single.contiguous = 0;
	f.reason = NEURON_MEM_REASON_CAPPED;
	one.device_bytes[NEURON_MEM_SCRATCHPAD_PRIVATE] = 0;
	one.device_bytes[NEURON_MEM_SCRATCHPAD] = GIB;
	reason_is(&single, &f, "No room for 4.000GB of tensors: HBM 2 of ND 0 is not to be used further by this process:"
		  " a limit that is neither its own nor the core's is reached (a control group's), 3.000GB of"
		  " 24.000GB are free; held by NC 0 1.000GB, most of it shared scratchpad (1.000GB); try a higher"
		  " limit, or fewer tensors and models in this process, or NEURON_RT_CONTIGUOUS_SCRATCHPAD=1, or"
		  " models that need less scratchpad");
	f.reason = NEURON_MEM_REASON_HOST;
	reason_is(&single, &f, "No room for 4.000GB of tensors: HBM 2 of ND 0 is not to blame: the host is out of memory");
}

/* ---- plans ------------------------------------------------------------------------- */

static unsigned int seed = 11;

static unsigned int any(unsigned int n)
{
	return (unsigned int)rand_r(&seed) % n;
}

/* Variables of all kinds, and copies between some of them. */
static struct neff_bytes random_neff(unsigned int nr)
{
	static const char *const types[] = { "file", "tmp-buf", "virtual", "virtual" };
	static char def[65536], sp[65536], data[4096];
	struct neff_file files[2] = { { "sg00/SP.json", sp, 0 }, { "sg00/k.bin", data, sizeof(data) } };
	size_t at, to;

	at = (size_t)snprintf(def, sizeof(def),
			      "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {"
			      "\"qI\": {\"type\": \"in\"}, \"qD\": {\"type\": \"data\"}}, \"var\": {"
			      "\"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 4096},"
			      "\"w\": {\"type\": \"tmp-buf\", \"var_id\": 1000, \"size\": 4096},"
			      "\"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 4096}");
	to = (size_t)snprintf(sp, sizeof(sp), "{\"dma\": [{\"id\": 0, \"queue\": \"qI\", \"desc\": ["
			      "{\"from\": \"x\", \"to\": \"y\", \"from_sizes\": [4096], \"from_steps\": [1],"
			      " \"to_sizes\": [4096], \"to_steps\": [1]}]}");
	for (unsigned int i = 0; i < nr; i++) {
		const char *type = types[any(4)];
		unsigned int bytes = 4096 + any(2) * any(3 << 20);

		at += (size_t)snprintf(def + at, sizeof(def) - at,
				       ", \"v%u\": {\"type\": \"%s\", \"var_id\": %u, \"size\": %llu", i, type,
				       i + 3, type[0] == 'v' ? bytes * (1ull + any(300)) : bytes);
		if (type[0] == 'f')
			at += (size_t)snprintf(def + at, sizeof(def) - at, ", \"file_name\": \"k.bin\"");
		if (type[0] == 'v')
			at += (size_t)snprintf(def + at, sizeof(def) - at,
					       ", \"backing_variable_off\": %llu", any(2000) * MIB / 2);
		if (!any(3))
			at += (size_t)snprintf(def + at, sizeof(def) - at, ", \"alignment\": %u",
					       1u << any(23));
		at += (size_t)snprintf(def + at, sizeof(def) - at, "}");
		if (any(2))
			to += (size_t)snprintf(sp + to, sizeof(sp) - to,
					       ", {\"id\": %u, \"queue\": \"qD\", \"desc\": [{\"from\": \"v%u\","
					       " \"to\": \"w\", \"from_sizes\": [4, %u], \"from_steps\": [1, 8],"
					       " \"to_sizes\": [4, %u], \"to_steps\": [1, 4]}]}",
					       i + 1, i, 1 + i, 1 + i);
	}
	snprintf(def + at, sizeof(def) - at, "}}");
	snprintf(sp + to, sizeof(sp) - to, "]}");
	return make_neff("random", def, files, 2);
}

/* The memory of several models together, from the plan of each before it is loaded. */
static void plans(bool contiguous, uint64_t page)
{
	struct neuron_core_opts opts = {
		.size = sizeof(opts), .scratchpad_page = page, .contiguous = contiguous,
	};
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_plan_opts plan_opts = {
		.short_constants = true, .size = sizeof(plan_opts), .scratchpad_page = page, .contiguous = contiguous,
		.error = &error,
	};
	struct neuron_model_opts model_opts = { .short_constants = true, .size = sizeof(model_opts), .error = &error };
	struct neuron_device *device;
	struct neuron_core *core;
	unsigned int loaded = 0;

	assert_int_equal(neuron_device_open(0, &device), 0);
	assert_int_equal(neuron_core_open(device, 1, &opts, &core), 0);
	for (unsigned int round = 0; round < 30; round++) {
		struct neuron_model *m[3] = { NULL };
		uint64_t need = 0, want = fake_used();

		for (int i = 0; i < 3; i++) {
			struct neff_bytes n = random_neff(1 + any(30));
			struct neuron_plan plan = { .size = sizeof(plan) };
			struct neuron_model_usage u = { .size = sizeof(u) };

			if (neuron_model_plan(neuron_device_geometry(device), n.data, n.size, &plan_opts,
					      &plan))
				fail_msg("%s", error.text);
			assert_int_equal(plan.nr_parts, 1);
			assert_string_equal(plan.name, "random");
			if (neuron_model_load(core, n.data, n.size, &model_opts, &m[i]))
				fail_msg("%s", error.text);
			assert_int_equal(neuron_model_get_usage(m[i], &u), 0);
			plan.parts[0].size = u.size;
			assert_memory_equal(&plan.parts[0], &u, sizeof(u));
			want += u.code + u.constants + u.scratchpad + u.runtime + u.rings_io + u.rings_spill +
				u.rings_runtime;
			need = u.shared_scratchpad > need ? u.shared_scratchpad : need;
			assert_true(fake_used() == want + neuron_plan_scratchpad(&plan_opts, need));
			assert_true(neuron_core_scratchpad(core) == neuron_plan_scratchpad(&plan_opts, need));
			free(n.data);
			loaded++;
		}
		for (int i = 0; i < 3; i++)
			neuron_model_unload(m[i]);
	}
	assert_int_equal(loaded, 90);
	neuron_core_close(core);
	neuron_device_close(device);
	assert_int_equal(fake_used(), 0);
}

static void test_plans(void **state)
{
	(void)state;
	plans(false, 0);
	plans(false, 1536 * MIB);
	plans(true, 0);
}

static void test_plan_refused(void **state)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_plan_opts opts = { .short_constants = true, .size = sizeof(opts), .error = &error };
	struct neff_bytes n = make_list_neff();
	struct neuron_plan plan = { .size = sizeof(plan) };
	struct neuron_geometry g;
	uint64_t reserved;

	(void)state;
	assert_int_equal(neuron_instance_geometry("trn2.48xlarge", &g, &reserved), 0);
	assert_int_equal(g.nr_cores, 8);
	assert_true(g.hbm[3].size == 24 * GIB && reserved == 16 * MIB && g.core_hbm[7] == 3);
	assert_int_equal(neuron_instance_geometry("Trn1", &g, NULL), 0);
	assert_true(g.nr_cores == 2 && g.core_hbm[1] == 1 && g.hbm[1].size == 16 * GIB);
	assert_int_equal(neuron_instance_geometry("trn", &g, NULL), -ENOENT);
	assert_int_equal(neuron_instance_geometry("", &g, NULL), -ENOENT);
	assert_int_equal(neuron_instance_geometry(NULL, &g, NULL), -EINVAL);
	assert_int_equal(neuron_instance_devices("Trn2.48xlarge"), 16);
	assert_int_equal(neuron_instance_devices("inf2.24xlarge"), 6);
	assert_int_equal(neuron_instance_devices("trn2"), 1);
	assert_int_equal(neuron_instance_devices("trn1.2xlarge"), 1);
	assert_int_equal(neuron_instance_devices(NULL), 1);

	opts.scratchpad_page = 100;
	assert_int_equal(neuron_model_plan(&g, n.data, n.size, &opts, &plan), -EINVAL);
	opts.scratchpad_page = 4 * GIB;
	assert_int_equal(neuron_model_plan(&g, n.data, n.size, &opts, &plan), -EINVAL);
	opts.scratchpad_page = 0;
	opts.lnc = 3;
	assert_int_equal(neuron_model_plan(&g, n.data, n.size, &opts, &plan), -EINVAL);
	opts.lnc = 2;
	assert_int_equal(neuron_model_plan(&g, n.data, n.size, &opts, &plan), 0);
	assert_int_equal(plan.nr_parts, 1);
	assert_int_equal(neuron_model_plan(&g, n.data, 100, &opts, &plan), -EINVAL);
	assert_int_equal(error.kind, NEURON_ERROR_NEFF_INVALID);
	assert_true(error.text[0] != 0);
	assert_int_equal(neuron_model_plan(&g, NULL, 0, &opts, &plan), -EINVAL);
	assert_int_equal(neuron_model_plan(NULL, n.data, n.size, &opts, &plan), -EINVAL);
	assert_int_equal(neuron_model_plan(&g, n.data, n.size, &opts, NULL), -EINVAL);
	free(n.data);
}

/* A plan has the reasons why the model cannot be run, as many as there is room for. */
static void test_plan_obstacles(void **state)
{
	struct neff_bytes n = make_list_neff();
	struct neuron_plan plan = { .size = sizeof(plan) };
	struct neuron_geometry g;

	(void)state;
	assert_int_equal(neuron_instance_geometry("Trn1", &g, NULL), 0);
	assert_int_equal(neuron_model_plan(&g, n.data, n.size, NULL, &plan), 0);
	assert_int_equal(plan.nr_obstacles, 0);
	free(n.data);
	neff_features = 0x40;
	n = make_list_neff();
	neff_features = 0;
	assert_int_equal(neuron_model_plan(&g, n.data, n.size, NULL, &plan), 0);
	assert_int_equal(plan.nr_obstacles, 1);
	assert_string_equal(plan.obstacles[0], "header: unknown feature_bits 0x40");
	free(n.data);
}

static struct neff_bytes neff_with(const char *def, const char *sp)
{
	const struct neff_file files[] = { { "sg00/SP.json", sp, 0 } };

	return make_neff("rows", def, files, 1);
}

/* Loads, and has the rows that the plan said; gives the plan. */
static struct neuron_plan planned_and_loaded(const char *def, const char *sp, bool *runs)
{
	struct neuron_plan plan = { .size = sizeof(plan) };
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = { .short_constants = true, .size = sizeof(opts), .error = &error };
	struct neuron_model_usage u = { .size = sizeof(u) };
	struct neff_bytes n = neff_with(def, sp);
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_model *m;
	uint64_t before;

	assert_int_equal(neuron_device_open(0, &device), 0);
	assert_int_equal(neuron_core_open(device, 1, NULL, &core), 0);
	assert_int_equal(neuron_model_plan(neuron_device_geometry(device), n.data, n.size, NULL,
					   &plan), 0);
	before = fake_used();
	if (neuron_model_load(core, n.data, n.size, &opts, &m))
		fail_msg("%s", error.text);
	assert_int_equal(neuron_model_get_usage(m, &u), 0);
	plan.parts[0].size = u.size;
	assert_memory_equal(&plan.parts[0], &u, sizeof(u));
	assert_int_equal(fake_used() - before, u.code + u.constants + u.scratchpad + u.runtime +
			 u.rings_io + u.rings_spill + u.rings_runtime);
	*runs = !neuron_model_obstacle(m);
	neuron_model_unload(m);
	neuron_core_close(core);
	neuron_device_close(device);
	free(n.data);
	assert_int_equal(fake_used(), 0);
	return plan;
}

#define ROWS_DEF(type) \
	"{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {" \
	"\"q\": {\"type\": \"data\"}, \"r\": {\"type\": \"" type "\"}}, \"var\": {" \
	"\"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 4096}," \
	"\"t\": {\"type\": \"tmp-buf\", \"var_id\": 2, \"size\": 65536}," \
	"\"u\": {\"type\": \"tmp-buf\", \"var_id\": 3, \"size\": 65536}}}"
#define ROWS_COPY(queue, id, from, n) \
	"{\"id\": " #id ", \"queue\": \"" queue "\", \"semaphore\": 7, \"desc\": [{\"from\": \"" from "\"," \
	" \"to\": \"t\", \"from_sizes\": [4, " #n "], \"from_steps\": [1, 8]," \
	" \"to_sizes\": [4, " #n "], \"to_steps\": [1, 12]}]}"

/* A ring has descriptors of several kinds. */
static void test_T4_rings(void **state)
{
	struct neuron_plan p;
	bool runs;

	(void)state;
	p = planned_and_loaded(ROWS_DEF("data"), "{\"dma\": [" ROWS_COPY("q", 0, "x", 20) ", "
			       ROWS_COPY("q", 1, "u", 20) "]}", &runs);
	assert_true(runs);
	assert_int_equal(p.parts[0].rings_io, 4096);
	assert_int_equal(p.parts[0].rings_spill, 4096);
	p = planned_and_loaded(ROWS_DEF("data"), "{\"dma\": [" ROWS_COPY("q", 0, "x", 100) ", "
			       ROWS_COPY("q", 1, "u", 300) ", " ROWS_COPY("r", 2, "x", 5) "]}", &runs);
	assert_true(runs);
	assert_int_equal(p.parts[0].rings_io, 2 * 8192 / 4 + 2 * 4096);
	assert_int_equal(p.parts[0].rings_spill, 2 * 8192 / 4 * 3);
}

static uint64_t descriptors_with(const char *ends)
{
	char sp[512];
	bool runs;

	snprintf(sp, sizeof(sp), "{\"dma\": [{\"id\": 0, \"queue\": \"q\", %s \"desc\": [{\"from\": \"u\","
		 " \"to\": \"t\", \"from_sizes\": [64], \"from_steps\": [1],"
		 " \"to_sizes\": [64], \"to_steps\": [1]}]}]}", ends);
	return planned_and_loaded(ROWS_DEF("data"), sp, &runs).parts[0].descriptors;
}

/* The first event and the first semaphore take a descriptor like any other. */
static void test_first_event(void **state)
{
	uint64_t n = descriptors_with("\"semaphore\": 7,");

	(void)state;
	assert_int_equal(descriptors_with("\"semaphore\": 0,"), n);
	assert_int_equal(descriptors_with("\"semaphore\": 7, \"event\": 9,"), n + 1);
	assert_int_equal(descriptors_with("\"semaphore\": 0, \"event\": 0,"), n + 1);
}

/* Descriptors that the device makes need no ring; nothing here makes them. */
static void test_T4_dynamic(void **state)
{
	struct neuron_plan p;
	bool runs;

	(void)state;
	p = planned_and_loaded(ROWS_DEF("dynamic"), "{\"dma\": [" ROWS_COPY("q", 0, "x", 20) ", "
			       ROWS_COPY("r", 1, "u", 2000) "]}", &runs);
	assert_false(runs);
	assert_int_equal(p.parts[0].rings_io, 2 * 4096);
	assert_int_equal(p.parts[0].rings_spill, 0);
	assert_int_equal(p.parts[0].descriptors, 21 + 1);
}

/* Planning and loading say the same of a file with @vars. */
static int refused(const char *vars, enum neuron_error_kind kind)
{
	struct neuron_plan plan = { .size = sizeof(plan) };
	struct neuron_error planning = { .size = sizeof(planning) }, loading = planning;
	struct neuron_plan_opts plan_opts = { .short_constants = true, .size = sizeof(plan_opts), .error = &planning };
	struct neuron_model_opts opts = { .short_constants = true, .size = sizeof(opts), .error = &loading };
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_model *m;
	struct neff_bytes n;
	char def[1024];
	int ret;

	snprintf(def, sizeof(def), "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {}, \"var\": {%s}}",
		 vars);
	n = neff_with(def, "{\"dma\": []}");
	assert_int_equal(neuron_device_open(0, &device), 0);
	assert_int_equal(neuron_core_open(device, 1, NULL, &core), 0);
	ret = neuron_model_plan(neuron_device_geometry(device), n.data, n.size, &plan_opts, &plan);
	assert_int_equal(neuron_model_load(core, n.data, n.size, &opts, &m), ret);
	assert_int_equal(planning.kind, kind);
	assert_int_equal(loading.kind, kind);
	assert_string_equal(planning.text, loading.text);
	neuron_core_close(core);
	neuron_device_close(device);
	free(n.data);
	assert_int_equal(fake_used(), 0);
	return ret;
}

#define BIG(type, id, size) \
	"\"v" #id "\": {\"type\": \"" type "\", \"var_id\": " #id ", \"size\": " size "}"

static void test_L15_sums(void **state)
{
	(void)state;
	assert_int_equal(refused(BIG("tmp-buf", 1, "9223372036854775807") ", "
				 BIG("tmp-buf", 2, "9223372036854775807"), NEURON_ERROR_LIMIT), -E2BIG);
	assert_int_equal(refused(BIG("tmp-buf", 1, "9223372036854775807") ", "
				 BIG("file", 2, "9223372036854775807, \"file_name\": \"SP.json\""),
				 NEURON_ERROR_LIMIT), -E2BIG);
}

/* So are those of plans, reports and inputs. */
static void test_L15_more_sums(void **state)
{
	struct neuron_plan plans[2] = { { .nr_parts = 1 }, { .nr_parts = 1 } };
	struct neuron_plan_opts opts = { .short_constants = true, .size = sizeof(opts), .io_sets = 2 };
	uint64_t row[NEURON_REPORT_NR_COLUMNS];
	struct neuron_report_core core = { .nc = 0 };
	struct neuron_report r = { .size = sizeof(r), .cores = &core, .nr_cores = 1 };

	(void)state;
	plans[0].parts[0].scratchpad = plans[1].parts[0].scratchpad = 1ull << 63;
	assert_int_equal(neuron_plan_sum(plans, 1, &opts, 4096, &core), 0);
	assert_int_equal(neuron_plan_sum(plans, 2, &opts, 4096, &core), -E2BIG);
	plans[0].parts[0].scratchpad = 0;
	plans[0].io = 1ull << 62;
	assert_int_equal(neuron_plan_sum(plans, 1, &opts, 4096, &core), 0);
	assert_true(core.device_bytes[NEURON_MEM_TENSORS] == 1ull << 63);
	plans[0].io = 1ull << 63;
	assert_int_equal(neuron_plan_sum(plans, 1, &opts, 4096, &core), -E2BIG);
	core.device_bytes[NEURON_MEM_TENSORS] = core.device_bytes[NEURON_MEM_CODE] = 1ull << 63;
	neuron_report_row(&r, &core, row);
	assert_true(row[NEURON_REPORT_TOTAL] == UINT64_MAX);
}

/* Inputs and outputs as the runtime allocates them. */
static void test_T2_io(void **state)
{
	struct neuron_plan_opts opts = { .short_constants = true, .size = sizeof(opts), .io_sets = 1 };
	struct neuron_report_core core = { .nc = 0 };
	struct neuron_plan p = { .size = sizeof(p) };
	struct neuron_geometry g;
	struct neff_bytes n = make_pair_neff("1024");

	(void)state;
	assert_int_equal(neuron_instance_geometry("trn2", &g, NULL), 0);
	opts.lnc = 2;
	assert_int_equal(neuron_model_plan(&g, n.data, n.size, &opts, &p), 0);
	free(n.data);
	/* x is the input of both parts. */
	assert_int_equal(p.io, 3 * 4096);
	assert_int_equal(p.io_longest, 4096);
	assert_int_equal(neuron_plan_sum(&p, 1, &opts, 0, &core), 0);
	assert_int_equal(core.device_bytes[NEURON_MEM_TENSORS], 3 * 4096);
	opts.io_sets = 5;
	opts.io_single = 1;
	assert_int_equal(neuron_plan_sum(&p, 1, &opts, 0, &core), 0);
	assert_int_equal(core.device_bytes[NEURON_MEM_TENSORS], 5 * 4096);
	opts.io_sets = 0;
	assert_int_equal(neuron_plan_sum(&p, 1, &opts, 0, &core), 0);
	assert_int_equal(core.device_bytes[NEURON_MEM_TENSORS], 0);
}

/* A list of a program that knows less of a plan. */
static void test_older_plans(void **state)
{
	enum { OLD = offsetof(struct neuron_plan, io) };
	struct neuron_plan_opts opts = { .size = sizeof(opts) };
	struct neuron_report_core core = { .nc = 0 };
	struct neuron_plan p = { .size = OLD, .nr_parts = 1 };
	char *list = malloc(2 * OLD);

	(void)state;
	assert_non_null(list);
	p.parts[0].constants = 4096;
	memcpy(list, &p, OLD);
	p.parts[0].constants = 8192;
	memcpy(list + OLD, &p, OLD);
	assert_int_equal(neuron_plan_sum((struct neuron_plan *)(void *)list, 2, &opts, 0, &core), 0);
	assert_int_equal(core.device_bytes[NEURON_MEM_CONSTANTS], 3 * 4096);
	free(list);
}

static void test_C3_alignment(void **state)
{
	static const char *const types[] = { "tmp-buf", "virtual", "pointer", "input" };
	char vars[256];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		for (int bit = 35; bit < 63; bit += 27) {
			snprintf(vars, sizeof(vars), "\"v\": {\"type\": \"%s\", \"var_id\": 1, \"size\": 4096, \"alignment\": %llu}",
				 types[i], 1ull << bit);
			assert_int_equal(refused(vars, NEURON_ERROR_NEFF_INVALID), -EINVAL);
		}
}

/* ---- logical cores of two ---------------------------------------------------------- */

/* A model on the pair of cores 2 and 3, and its tensors. */
struct pair {
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_model *m;
	struct neuron_mem *t[3];
	struct neuron_io io[3];
	uint64_t before;
};

static int pair_load(struct pair *p, const char *bytes, struct neuron_error *error)
{
	struct neuron_model_opts opts = { .short_constants = true, .size = sizeof(opts), .error = error };
	struct neff_bytes n = make_pair_neff(bytes);
	int ret = neuron_model_load(p->core, n.data, n.size, &opts, &p->m);

	free(n.data);
	return ret;
}

static int pair_setup(void **state)
{
	struct neuron_core_opts opts = { .size = sizeof(opts), .lnc = 2 };
	struct neuron_mem_opts mem = { .size = sizeof(mem), .hbm = 1, .nc = 2,
				       .category = NEURON_MEM_TENSORS };
	struct pair *p = calloc(1, sizeof(*p));

	*state = p;
	if (neuron_device_open(0, &p->device) ||
	    neuron_core_open(p->device, 2, &opts, &p->core))
		return -1;
	for (int i = 0; i < 3; i++) {
		if (neuron_mem_alloc(p->device, 1024, &mem, &p->t[i]))
			return -1;
		p->io[i] = (struct neuron_io){ (const char *[]){ "x", "a", "b" }[i], p->t[i], 0, 1024 };
	}
	p->before = fake_used();
	return 0;
}

static int pair_teardown(void **state)
{
	struct pair *p = *state;

	fake.fail_at = 0;
	fake.stuck = false;
	neuron_core_close(p->core);
	neuron_model_unload(p->m);
	for (int i = 0; i < 3; i++)
		neuron_mem_free(p->t[i]);
	neuron_device_close(p->device);
	free(p);
	return fake_used() != 0;
}

static void test_pair_cores(void **state)
{
	struct neuron_core_opts opts = { .size = sizeof(opts), .lnc = 2 };
	struct neuron_device *device;
	struct neuron_core *core;

	(void)state;
	assert_int_equal(neuron_device_open(0, &device), 0);
	assert_int_equal(neuron_core_open(device, 1, &opts, &core), -EINVAL);
	assert_int_equal(neuron_core_open(device, 4, &opts, &core), -EINVAL);
	fake.dev[0].core[3].owned_by_other = true;
	assert_int_equal(neuron_core_open(device, 2, &opts, &core), -EBUSY);
	fake.dev[0].core[3].owned_by_other = false;
	neuron_device_close(device);
}

/* Tensors of both subgraphs are found without a look at all of them. */
static void test_pair_of_many_tensors(void **state)
{
	enum { NR = 500 };
	struct neff_bytes n = make_wide_neff(NR);
	struct neuron_plan_opts o = { .size = sizeof(o), .lnc = 2, .io_sets = 1 };
	struct neuron_plan p = { .size = sizeof(p) };
	struct neuron_fit fit = { .size = sizeof(fit) };
	struct neuron_fit_file file = {
		.size = sizeof(file), .bytes = n.data, .length = n.size, .plan = &p,
	};
	struct neuron_geometry g;

	(void)state;
	assert_int_equal(neuron_instance_geometry("trn2", &g, NULL), 0);
	comparisons = 0;
	assert_int_equal(neuron_model_plan(&g, n.data, n.size, &o, &p), 0);
	assert_in_range(comparisons, 1, 2 * NR * 100);
	comparisons = 0;
	assert_int_equal(neuron_models_fit_empty(&g, 0, &file, 1, &o, 0, &fit), 0);
	assert_in_range(comparisons, 1, 2 * NR * 200);
	assert_int_equal(fit.verdict, NEURON_FIT_NOW);
	free(n.data);
}

/* The plan equals the memory that loading takes. */
static void test_pair_plan(void **state)
{
	struct pair *p = *state;
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_tensor_info info = { .size = sizeof(info) };
	struct neuron_plan plan = { .size = sizeof(plan) };
	struct neuron_plan_opts opts = { .short_constants = true, .size = sizeof(opts), .lnc = 2 };
	struct neuron_model_usage u = { .size = sizeof(u) };
	struct neff_bytes n = make_pair_neff("1024");

	if (pair_load(p, "1024", &error))
		fail_msg("%s", error.text);
	assert_int_equal(neuron_model_tensor_count(p->m), 3);
	assert_int_equal(neuron_model_tensor_info(p->m, 2, &info), 0);
	assert_string_equal(info.name, "b");
	assert_int_equal(neuron_model_tensor_info(p->m, 3, &info), -EINVAL);
	assert_int_equal(neuron_model_get_usage(p->m, &u), 0);
	assert_int_equal(neuron_model_plan(neuron_device_geometry(p->device), n.data, n.size, &opts,
					   &plan), 0);
	free(n.data);
	assert_int_equal(plan.nr_parts, 2);
	assert_int_equal(plan.parts[0].scratchpad, 0);
	assert_int_equal(plan.parts[1].scratchpad, 12288);
	assert_int_equal(plan.parts[0].shared_scratchpad, 4096);
	assert_int_equal(plan.parts[0].rings_io + plan.parts[1].rings_io, u.rings_io);
	assert_int_equal(fake_used() - p->before, u.code + u.constants + u.scratchpad + u.runtime +
			 u.rings_io + u.rings_spill + u.rings_runtime + 512 * MIB);
}

static void test_pair_runs(void **state)
{
	struct pair *p = *state;
	struct neuron_run_result r = { .size = sizeof(r) };
	uint8_t in[1024], out[1024];

	assert_int_equal(pair_load(p, "1024", NULL), 0);
	for (int run = 0; run < 3; run++) {
		for (int i = 0; i < 1024; i++)
			in[i] = (uint8_t)(i * 7 + run);
		assert_int_equal(neuron_mem_write(p->t[0], 0, in, 1024), 0);
		if (neuron_model_run(p->m, p->io, 3, 1000, &r))
			fail_msg("%s", r.text);
		for (int i = 1; i < 3; i++) {
			assert_int_equal(neuron_mem_read(p->t[i], 0, out, 1024), 0);
			assert_memory_equal(out, in, 1024);
		}
		/* Each of three queues told the other core. */
		assert_int_equal(fake.dev[0].core[3].sem[17], 3);
		assert_int_equal(fake.dev[0].core[2].sem[17], 0);
	}
}

/* One part fails, both are clean afterwards. */
static void test_pair_run_fails(void **state)
{
	struct pair *p = *state;
	struct neuron_run_result r = { .size = sizeof(r) };

	assert_int_equal(pair_load(p, "1024", NULL), 0);
	fake.dma_error = NEURON_ISA_ERR_DMA_ACCESS;
	assert_int_equal(neuron_model_run(p->m, p->io, 3, 1000, &r), -EIO);
	assert_int_equal(neuron_model_run(p->m, p->io, 3, 1000, &r), 0);
	fake.stuck = true;
	assert_int_equal(neuron_model_run(p->m, p->io, 3, 50, &r), -ETIMEDOUT);
	fake.stuck = false;
	assert_int_equal(neuron_model_run(p->m, p->io, 2, 1000, &r), -EINVAL);
	assert_string_equal(r.text, "output b is missing");
	assert_int_equal(neuron_core_reset(p->core), 0);
	assert_int_equal(neuron_model_run(p->m, p->io, 3, 1000, &r), 0);
	neuron_model_unload(p->m);
	p->m = NULL;
	assert_int_equal(fake_used(), p->before);
}

/* Every failure on the way leaves nothing behind. */
static void test_pair_load_fails(void **state)
{
	struct pair *p = *state;
	struct neff_bytes n = make_pair_neff("1024");

	for (unsigned int i = 1;; i++) {
		p->m = NULL;
		fake_fail(i, 0, EIO);
		if (!neuron_model_load(p->core, n.data, n.size, NULL, &p->m))
			break;
		assert_null(p->m);
		assert_int_equal(fake_used(), p->before);
	}
	free(n.data);
}

static void test_pair_refused(void **state)
{
	struct pair *p = *state;
	struct neuron_error error = { .size = sizeof(error) };

	assert_int_equal(pair_load(p, "512", &error), -EINVAL);
	assert_int_equal(fake_used(), p->before);
	assert_int_equal(pair_load(p, "2048", &error), -EINVAL);
	assert_non_null(strstr(error.text, "sg01/def.json: var.x is different in the other subgraph"));
	assert_int_equal(fake_used(), p->before);
}

static void test_pair_on_single_core(void **state)
{
	struct pair *p = *state;
	struct neuron_core *pair = p->core;

	assert_int_equal(neuron_core_open(p->device, 0, NULL, &p->core), 0);
	assert_int_equal(pair_load(p, "2048", NULL), -EOPNOTSUPP);
	neuron_core_close(p->core);
	p->core = pair;
}

/* A file for one core runs on the first of the two. */
static void test_single_on_pair(void **state)
{
	struct pair *p = *state;
	struct neff_bytes n = make_list_neff();

	assert_int_equal(neuron_model_load(p->core, n.data, n.size, NULL, &p->m), 0);
	free(n.data);
}

/* ---- log --------------------------------------------------------------------------- */

/* The lines after the heading without their time; how many there are. */
static unsigned int log_lines(struct neuron_device *device, uint32_t hbm, char *text, size_t size)
{
	FILE *f = tmpfile();
	char line[256];
	unsigned int n = 0;

	assert_non_null(f);
	assert_int_equal(neuron_device_write_memory_log(device, hbm, fileno(f)), 0);
	rewind(f);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_string_equal(line, "time,operation,device,hbm,nc,category,bytes,address,alignment,result\n");
	text[0] = '\0';
	for (; fgets(line, sizeof(line), f); n++) {
		long long s;
		long ns;
		int at = 0;

		assert_int_equal(sscanf(line, "%lld.%9ld%n", &s, &ns, &at), 2);
		assert_true(at > 0 && s > 0 && strlen(text) + strlen(line + at) < size);
		strcat(text, line + at);
	}
	fclose(f);
	return n;
}

/* Of a memory that there is not nothing is said, not even a heading. */
static void test_no_memory(void **state)
{
	static const int32_t none[] = { INT32_MIN, -2, FAKE_HBMS, INT32_MAX };
	struct neuron_device *device;
	FILE *f = tmpfile();
	char *json;

	(void)state;
	assert_non_null(f);
	assert_int_equal(neuron_device_open(0, &device), 0);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_equal(neuron_mem_snapshot(device, none[i], &json), -EINVAL);
		assert_int_equal(neuron_device_write_memory_log(device, (uint32_t)none[i],
								fileno(f)), -EINVAL);
	}
	rewind(f);
	assert_int_equal(fgetc(f), EOF);
	assert_int_equal(neuron_mem_snapshot(device, -1, &json), 0);
	free(json);
	fclose(f);
	neuron_device_close(device);
}

static void test_log(void **state)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .hbm = 1, .nc = 3,
					.category = NEURON_MEM_TENSORS };
	struct neuron_mem_opts host = { .size = sizeof(host), .flags = NEURON_MEM_F_HOST,
					.category = NEURON_MEM_HOST_TENSORS };
	struct neuron_device *device;
	struct neuron_mem *mem, *m;
	char text[8192], want[512];

	(void)state;
	assert_int_equal(neuron_device_open(0, &device), 0);
	assert_int_equal(neuron_mem_alloc(device, 4096, &opts, &mem), 0);
	assert_int_equal(log_lines(device, 1, text, sizeof(text)), 0);
	neuron_mem_free(mem);
	assert_int_equal(neuron_device_log_memory(device, SIZE_MAX), -EINVAL);
	assert_int_equal(neuron_device_log_memory(device, 300), 0);
	assert_int_equal(neuron_mem_alloc(device, 4096, &host, &m), 0);
	neuron_mem_free(m);
	opts.align = 1 << 20;
	assert_int_equal(neuron_mem_alloc(device, 5000, &opts, &mem), 0);
	assert_int_equal(neuron_mem_grow(mem, 9000, NULL), 0);
	assert_int_equal(neuron_mem_alloc(device, 25 * GIB, &opts, &m), -ENOMEM);
	assert_int_equal(log_lines(device, 0, text, sizeof(text)), 0);
	assert_int_equal(log_lines(device, 1, text, sizeof(text)), 3);
	snprintf(want, sizeof(want), ",alloc,0,1,3,tensors,5000,0x%llx,1048576,ok\n"
		 ",grow,0,1,3,tensors,9000,0x%llx,0,ok\n"
		 ",alloc,0,1,3,tensors,26843545600,0x0,1048576,full\n",
		 (unsigned long long)neuron_mem_address(mem), (unsigned long long)neuron_mem_address(mem));
	assert_string_equal(text, want);
	neuron_mem_free(mem);
	opts.align = 0;
	/* The oldest go. */
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(neuron_mem_alloc(device, 1, &opts, &mem), 0);
		neuron_mem_free(mem);
	}
	{
		static char all[65536];

		assert_int_equal(log_lines(device, 1, all, sizeof(all)), 300);
		assert_null(strstr(all, "grow"));
		assert_memory_equal(all, ",alloc,0,1,3,tensors,1,", 23);
	}
	assert_int_equal(neuron_device_write_memory_log(device, 1, -1), -EBADF);
	assert_int_equal(neuron_device_log_memory(device, NEURON_MEMORY_LOG_MAX + 1), -EINVAL);
	assert_int_equal(neuron_device_log_memory(device, 0), 0);
	assert_int_equal(log_lines(device, 1, text, sizeof(text)), 0);
	neuron_device_close(device);
	assert_int_equal(fake_used(), 0);
}

struct writing {
	struct neuron_device *device;
	int fd;
	int ret;
};

static void *alloc_one(void *device)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .hbm = 1, .category = NEURON_MEM_TENSORS };
	struct neuron_mem *mem;

	assert_int_equal(neuron_mem_alloc(device, 1, &opts, &mem), 0);
	neuron_mem_free(mem);
	return NULL;
}

static void *write_log(void *arg)
{
	struct writing *w = arg;

	w->ret = neuron_device_write_memory_log(w->device, 1, w->fd);
	return NULL;
}

/* Other descriptors of a pipe, which a program that is started now would not get. */
static unsigned int count_private(const int pipefd[2])
{
	struct stat st, other;
	unsigned int n = 0;

	assert_int_equal(fstat(pipefd[1], &st), 0);
	for (int i = 0; i < 1024; i++)
		if (i != pipefd[0] && i != pipefd[1] && !fstat(i, &other) &&
		    other.st_dev == st.st_dev && other.st_ino == st.st_ino)
			n += fcntl(i, F_GETFD) & FD_CLOEXEC;
	return n;
}

/* Half a million allocations: what is kept and written is bounded, and nobody waits for it. */
static void test_L20_bounds(void **state)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .hbm = 1, .category = NEURON_MEM_TENSORS };
	struct writing w;
	struct neuron_mem *mem;
	pthread_t writing, allocating;
	struct timespec end;
	struct stat st;
	FILE *f = tmpfile();
	char buf[65536];
	unsigned int private;
	int pipefd[2];

	(void)state;
	assert_non_null(f);
	assert_int_equal(neuron_device_open(0, &w.device), 0);
	assert_int_equal(neuron_device_log_memory(w.device, NEURON_MEMORY_LOG_MAX), 0);
	assert_int_equal(neuron_mem_alloc(w.device, 1, &opts, &mem), 0);
	/* As 530,000 pairs of neuron_mem_alloc() and neuron_mem_free() do. */
	for (int i = 0; i < 530000; i++) {
		memlog_add(w.device, MEMLOG_ALLOC, mem, 1, 0, 0);
		memlog_add(w.device, MEMLOG_FREE, mem, 1, 0, 0);
	}
	neuron_mem_free(mem);
	assert_int_equal(neuron_device_write_memory_log(w.device, 1, fileno(f)), 0);
	assert_int_equal(fstat(fileno(f), &st), 0);
	assert_in_range(st.st_size, NEURON_MEMORY_LOG_MAX * 40, 4 << 20);
	fclose(f);

	assert_int_equal(pipe(pipefd), 0);
	w.fd = pipefd[1];
	assert_int_equal(pthread_create(&writing, NULL, write_log, &w), 0);
	/* Writing has begun, and cannot end: nobody reads more of the pipe. */
	assert_int_equal(read(pipefd[0], buf, 1), 1);
	private = count_private(pipefd);
	assert_int_equal(pthread_create(&allocating, NULL, alloc_one, w.device), 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 20;
	assert_int_equal(pthread_timedjoin_np(allocating, NULL, &end), 0);
	close(pipefd[1]);
	while (read(pipefd[0], buf, sizeof(buf)) > 0)
		;
	assert_int_equal(pthread_join(writing, NULL), 0);
	assert_int_equal(w.ret, 0);
	assert_int_equal(private, 1);
	close(pipefd[0]);
	neuron_device_close(w.device);
	assert_int_equal(fake_used(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_reason),
		cmocka_unit_test(test_R5_limits),
		cmocka_unit_test(test_R5_microcode),
		cmocka_unit_test(test_R5_small),
		cmocka_unit_test(test_plans),
		cmocka_unit_test(test_plan_refused),
		cmocka_unit_test(test_plan_obstacles),
		cmocka_unit_test(test_T4_rings),
		cmocka_unit_test(test_first_event),
		cmocka_unit_test(test_T4_dynamic),
		cmocka_unit_test(test_L15_sums),
		cmocka_unit_test(test_L15_more_sums),
		cmocka_unit_test(test_T2_io),
		cmocka_unit_test(test_older_plans),
		cmocka_unit_test(test_C3_alignment),
		cmocka_unit_test(test_pair_cores),
		cmocka_unit_test(test_pair_of_many_tensors),
		cmocka_unit_test_setup_teardown(test_pair_plan, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_pair_runs, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_pair_run_fails, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_pair_load_fails, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_pair_refused, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_pair_on_single_core, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_single_on_pair, pair_setup, pair_teardown),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_L20_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

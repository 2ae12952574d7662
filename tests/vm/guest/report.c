// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preflight, loading and sysfs: three ways to the same bytes, for models of all kinds
 * on cores of all kinds; and the report when there is no room.
 */
#define _GNU_SOURCE
#define NEFF_ROOM (1 << 20)

#include <neuron/neuron.h>
#include <nrt/nrt.h>

#include "nrt_guest.h"

#define MIB (1ull << 20)
#define MODELS 4
#define ROUNDS 6

static unsigned int seed = 5;

static unsigned int any(unsigned int n)
{
	return (unsigned int)rand_r(&seed) % n;
}

static struct neff neffs[MODELS];

/* One subgraph of a model: variables of all kinds, and copies from some of them. */
static void subgraph(struct neff *n, const char *dir, unsigned int nr)
{
	static char def[65536], sp[65536], path[32], data[3000];
	static const char *const types[] = { "file", "tmp-buf", "virtual", "virtual" };
	size_t at, to;

	at = (size_t)sprintf(def, "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {"
			     "\"qI\": {\"type\": \"in\"}, \"qD\": {\"type\": \"data\"}}, \"var\": {"
			     "\"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 4096},"
			     "\"w\": {\"type\": \"tmp-buf\", \"var_id\": 1000, \"size\": 4096},"
			     "\"y%s\": {\"type\": \"output\", \"var_id\": 2, \"size\": 4096}", dir);
	to = (size_t)sprintf(sp, "{\"dma\": [{\"id\": 0, \"queue\": \"qI\", \"desc\": ["
			     "{\"from\": \"x\", \"to\": \"y%s\", \"from_sizes\": [4096], \"from_steps\": [1],"
			     " \"to_sizes\": [4096], \"to_steps\": [1]}]}", dir);
	for (unsigned int i = 0; i < nr; i++) {
		const char *type = types[any(4)];
		unsigned long long bytes = 4096 + any(2) * any(3 << 20);

		if (type[0] == 'v')
			bytes *= 1 + any(150);
		at += (size_t)sprintf(def + at, ", \"v%u\": {\"type\": \"%s\", \"var_id\": %u, \"size\": %llu",
				      i, type, i + 3, bytes);
		if (type[0] == 'f')
			at += (size_t)sprintf(def + at, ", \"file_name\": \"k.bin\"");
		if (type[0] == 'v')
			at += (size_t)sprintf(def + at, ", \"backing_variable_off\": %llu",
					      any(1000) * MIB / 2);
		if (!any(3))
			at += (size_t)sprintf(def + at, ", \"alignment\": %u", 1u << any(23));
		at += (size_t)sprintf(def + at, "}");
		if (any(2))
			to += (size_t)sprintf(sp + to, ", {\"id\": %u, \"queue\": \"qD\", \"desc\": [{\"from\": \"v%u\","
					      " \"to\": \"w\", \"from_sizes\": [4, %u], \"from_steps\": [1, 8],"
					      " \"to_sizes\": [4, %u], \"to_steps\": [1, 4]}]}", i + 1, i, 1 + i,
					      1 + i);
	}
	strcpy(def + at, "}}");
	strcpy(sp + to, "]}");
	sprintf(path, "%s/def.json", dir);
	neff_text(n, path, def);
	sprintf(path, "%s/SP.json", dir);
	neff_text(n, path, sp);
	sprintf(path, "%s/k.bin", dir);
	neff_add(n, path, data, sizeof(data));
}

static void make_neff(struct neff *n, unsigned int parts)
{
	static const char kelf[] =
		"{\"graphs\": [{\"definition\": \"sg00/def.json\", \"name\": \"sg00\"},"
		"{\"definition\": \"sg01/def.json\", \"name\": \"sg01\"}], \"version\": \"0.5\"}";
	const uint32_t lnc = htole32(parts);

	if (parts == 1) {
		neff_start(n);
	} else {
		memset(n, 0, sizeof(*n));
		n->size = 1024;
		neff_text(n, "kelf-0.json", kelf);
		subgraph(n, "sg01", 1 + any(25));
	}
	subgraph(n, "sg00", 1 + any(25));
	neff_end(n, "generated");
	memcpy(n->data + 552, &lnc, 4);
}

/* What sysfs says about a core, category by category. */
static uint64_t sysfs_of(const struct counters *c, uint32_t nc, const char *category)
{
	char name[128];

	snprintf(name, sizeof(name), "/neuron0/neuron_core%u/stats/memory_usage/device_mem/%s%stotal", nc,
		 category, category[0] ? "/" : "");
	return counter(c, name);
}

static bool same(struct neuron_device *d, uint32_t nc, uint32_t lnc,
		 const struct neuron_report_core *plan)
{
	static const struct {
		const char *name;
		enum neuron_mem_category category[2];
	} shown[] = {
		{ "model_code", { NEURON_MEM_CODE, NEURON_MEM_CODE } },
		{ "constants", { NEURON_MEM_CONSTANTS, NEURON_MEM_CONSTANTS } },
		{ "tensors", { NEURON_MEM_TENSORS, NEURON_MEM_TENSORS } },
		{ "runtime_memory", { NEURON_MEM_MISC, NEURON_MEM_MISC } },
		{ "dma_rings", { NEURON_MEM_RINGS, NEURON_MEM_RINGS } },
		{ "nonshared_scratchpad", { NEURON_MEM_SCRATCHPAD_PRIVATE, NEURON_MEM_SCRATCHPAD_PRIVATE } },
		{ "model_shared_scratchpad", { NEURON_MEM_SCRATCHPAD, NEURON_MEM_SCRATCHPAD_CONTIGUOUS } },
	};
	struct neuron_report_core real = { .nc = plan->nc };
	struct neuron_report r = { .size = sizeof(r), .lnc = lnc };
	uint64_t a[NEURON_REPORT_NR_COLUMNS], b[NEURON_REPORT_NR_COLUMNS], seen;
	static struct counters now;
	bool equal = true;

	device_settles();
	now.nr = 0;
	for (uint32_t i = nc; i < nc + lnc; i++) {
		struct neuron_core_stats s = { .size = sizeof(s) };
		char folder[128];

		snprintf(folder, sizeof(folder), DEVICES "/neuron0/neuron_core%u/stats/memory_usage", i);
		counters_add(&now, folder);

		if (neuron_core_get_stats(d, i, &s))
			return false;
		for (size_t k = 0; k < NEURON_MAX_CATEGORIES; k++)
			real.device_bytes[k] += s.device_bytes[k];
	}
	neuron_report_row(&r, plan, a);
	neuron_report_row(&r, &real, b);
	for (int i = 0; i < NEURON_REPORT_NR_COLUMNS; i++)
		if (a[i] != b[i]) {
			printf("# column %d: planned %llu, real %llu\n", i, (unsigned long long)a[i],
			       (unsigned long long)b[i]);
			equal = false;
		}
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		uint64_t want = real.device_bytes[shown[i].category[0]];

		if (shown[i].category[1] != shown[i].category[0])
			want += real.device_bytes[shown[i].category[1]];
		seen = 0;
		for (uint32_t k = nc; k < nc + lnc; k++)
			seen += sysfs_of(&now, k, shown[i].name);
		if (seen != want) {
			printf("# %s: sysfs %llu, driver %llu\n", shown[i].name,
			       (unsigned long long)seen, (unsigned long long)want);
			equal = false;
		}
	}
	return equal;
}

/* Plan and load models one after the other on a core; every byte must be foreseen. */
static void core_like(uint32_t lnc, bool contiguous, uint64_t page, uint64_t microcode)
{
	struct neuron_core_opts opts = {
		.size = sizeof(opts), .scratchpad_page = page, .microcode = microcode,
		.contiguous = contiguous, .lnc = lnc,
	};
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_plan_opts plan_opts = {
		.short_constants = true, .size = sizeof(plan_opts), .scratchpad_page = page, .contiguous = contiguous, .lnc = lnc,
		.error = &error,
	};
	struct neuron_model_opts model_opts = { .short_constants = true, .size = sizeof(model_opts), .error = &error };
	struct neuron_geometry g;
	struct neuron_device *device;
	struct neuron_core *core;
	unsigned int loaded = 0, equal = 0;

	if (neuron_device_open(0, &device) || neuron_core_open(device, 2, &opts, &core) ||
	    neuron_instance_geometry("trn2", &g, NULL)) {
		CHECK(false, "a core of %u", lnc);
		return;
	}
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct neuron_plan plans[MODELS];
		struct neuron_model *m[MODELS] = { NULL };
		struct neuron_report_core want = { .nc = 0 };

		neuron_plan_sum(plans, 0, &plan_opts, microcode, &want);
		equal += same(device, 2, lnc, &want);
		for (unsigned int i = 0; i < MODELS; i++) {
			make_neff(&neffs[i], 1 + any(lnc));
			plans[i].size = sizeof(plans[i]);
			if (neuron_model_plan(&g, neffs[i].data, neffs[i].size, &plan_opts, &plans[i]) ||
			    neuron_model_load(core, neffs[i].data, neffs[i].size, &model_opts, &m[i])) {
				printf("# %s\n", error.text);
				continue;
			}
			loaded++;
			neuron_plan_sum(plans, i + 1, &plan_opts, microcode, &want);
			equal += same(device, 2, lnc, &want);
		}
		for (unsigned int i = 0; i < MODELS; i++)
			neuron_model_unload(m[i]);
	}
	neuron_core_close(core);
	neuron_device_close(device);
	CHECK(loaded == ROUNDS * MODELS && equal == ROUNDS * (MODELS + 1),
	      "LNC %u, %s, page %llu MiB, microcode %llu MiB: %u models, plan, driver and sysfs agree %u times",
	      lnc, contiguous ? "contiguous" : "paged", (unsigned long long)(page / MIB),
	      (unsigned long long)(microcode / MIB), loaded, equal);
}

/* The line under the table: everything is in a row, free or reserved, to the byte. */
static bool balanced(const char *text, uint64_t used)
{
	unsigned long long b[4] = { 0 };
	const char *at = strstr(text, " reserved (");

	if (!at || sscanf(at, " reserved (%llu = %llu + %llu + %llu bytes)", &b[0], &b[1], &b[2],
			  &b[3]) != 4)
		return false;
	if (b[0] != b[1] + b[2] + b[3] || b[1] != used)
		printf("# %llu = %llu + %llu + %llu, the cores have %llu\n", b[0], b[1], b[2], b[3],
		       (unsigned long long)used);
	return b[0] == b[1] + b[2] + b[3] && b[1] == used;
}

/* A limit of the core: the refusal names it, and what is left of it. */
static void limited(void)
{
	static const char path[] = "/sys/devices/virtual/neuron_device/neuron0/neuron_core2/limits/memory";
	char text[8192] = "", want[256];
	struct neuron_device *device;
	nrt_tensor_t *t = NULL;
	uint64_t used = 0;
	FILE *f;

	CHECK(!neuron_device_open(0, &device) &&
	      !neuron_limit_get(device, NEURON_LIMIT_CORE, 2, NULL, &used) &&
	      !neuron_limit_set(device, NEURON_LIMIT_CORE, 2, used + 8 * MIB), "R5: a limit of a core");
	unlink("/tmp/neuron_mem_table_device_0_hbm_1.log");
	CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 64 * MIB, "t", &t) == NRT_RESOURCE,
	      "R5: that refuses a tensor");
	f = fopen("/tmp/neuron_mem_table_device_0_hbm_1.log", "r");
	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
	}
	snprintf(want, sizeof(want), "is not to be used further by NC 1: its limit of ");
	CHECK(strstr(text, want), "R5: is named as the core's");
	snprintf(want, sizeof(want), " and 8.000MB left (%s)", path);
	CHECK(strstr(text, want) && strstr(text, "up to 8.000MB would fit"), "R5: with its file, and what fits");
	CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 8 * MIB, "t", &t) == NRT_SUCCESS,
	      "R5: it does fit");
	if (failed)
		printf("# %.2000s\n", text);
	nrt_tensor_free(&t);
	neuron_limit_set(device, NEURON_LIMIT_CORE, 2, NEURON_LIMIT_NONE);
	neuron_device_close(device);
}

/* A full device: the table in the file has the bytes of the driver. */
static void report(void)
{
	static const char path[] = "/tmp/neuron_mem_table_device_0_hbm_1.log";
	struct neuron_core_stats s = { .size = sizeof(s) };
	nrt_tensor_t *t[64] = { NULL }, *last = NULL;
	char text[8192] = "", want[32], row[80];
	struct neuron_device *device;
	nrt_model_t *m = NULL;
	uint64_t total = 0;
	unsigned int n = 0;
	FILE *f;

	setenv("NEURON_RT_LOG_LOCATION", "/tmp/nrt.log", 1);
	setenv("NEURON_RT_VISIBLE_CORES", "1", 1);
	/* Sizes are what matters here. */
	setenv("NEURON_RT_NEFF_SHORT_CONSTANTS", "1", 1);
	unlink(path);
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS, "a logical core of two");
	make_neff(&neffs[0], 2);
	CHECK(nrt_load(neffs[0].data, neffs[0].size, 0, -1, &m) == NRT_SUCCESS, "a model on it");
	while (n < 64 && nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 1024 * MIB, "t", &t[n]) ==
	       NRT_SUCCESS)
		n++;
	CHECK(n > 4 && n < 24, "%u GiB of tensors fit", n);
	CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 1024 * MIB, "t", &last) == NRT_RESOURCE,
	      "one more does not");
	f = fopen(path, "r");
	CHECK(f != NULL, "there is a report");
	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
	}
	CHECK(!neuron_device_open(0, &device), "look at the device");
	for (uint32_t nc = 2; nc < 4; nc++)
		if (!neuron_core_get_stats(device, nc, &s))
			for (size_t k = 0; k < NEURON_MAX_CATEGORIES; k++)
				total += s.device_bytes[k];
	neuron_device_close(device);
	neuron_report_size(total, want, sizeof(want));
	snprintf(row, sizeof(row), "\\_NC 1        | %s |", want);
	CHECK(strstr(text, row), "it has a row %s", row);
	CHECK(balanced(text, total), "T1: rows, free and reserved bytes are the memory");
	CHECK(strstr(text, "  \\_NEFF 1001 |") && strstr(text, "1001: \"generated\""), "and the model");
	CHECK(strstr(text, "No room for 1.000GB of tensors: HBM 1 of ND 0 is ") &&
	      strstr(text, "NC 1 (this process,"), "and says why");
	if (failed)
		printf("# %.3000s\n", text);
	while (n)
		nrt_tensor_free(&t[--n]);
	limited();
	nrt_close();
}

int main(void)
{
	static struct counters before, after;

	counters_take(&before);
	core_like(1, false, 0, 96 * MIB);
	core_like(1, false, 1536 * MIB, 0);
	core_like(1, true, 0, 96 * MIB);
	core_like(2, true, 0, 96 * MIB);
	core_like(2, false, 2048 * MIB, 0);
	report();
	counters_take(&after);
	CHECK(counters_equal(&before, &after), "everything is back");
	return failed != 0;
}

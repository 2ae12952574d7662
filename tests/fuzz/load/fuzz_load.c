// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz what becomes of a NEFF: planned, loaded onto the fake driver, run, unloaded.
 *
 * An input is the bytes of struct setup, in which '0' stands for 0, and a NEFF as text
 * (text.h).  Whatever it is:
 *
 * - planning and loading agree: the same error with the same words, or the same bytes of
 *   each category; and where it fits into the device memory it loads;
 * - no run is refused for lack of anything or touches memory that is not the model's, and
 *   a NEFF without instructions that only copies runs to its end;
 * - unloaded, the core has what it had before; closed, the device has nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../text.h"
#include "fake_driver.h"

/* Of a model: more are only planned, or only loaded. */
#define MAX_LOAD (1u << 14)
#define MAX_RUN (1u << 10)
#define MAX_TENSORS 64u
/* Addresses of the fake device grow; there the windows of cores begin. */
#define MAX_ADDRESS (FAKE_TPB(0) / 2)
#define PAGE 4096u

/* How the host is set up, and what is special about this file. */
struct setup {
	uint8_t core;		/* lnc - 1, contiguous, core / 2 */
	uint8_t page;		/* of the scratchpad */
	uint8_t arch;		/* how much older than trn2 */
	uint8_t lnc;		/* in the header */
	uint8_t cores;		/* in the header, and whether the caller has as many */
	uint8_t limit;		/* of the unpacked archive; node to load */
	uint8_t fail_at;	/* this call of the driver from the load on; 0: none */
	uint8_t options;	/* short constants, error of that call, a tensor too few */
};

/* For one input. */
struct trial {
	struct setup s;
	void *neff;
	size_t size;
	struct neuron_device *device;
	struct neuron_core *core;
	uint32_t hbm;
	uint32_t lnc;
	struct neuron_plan_opts plan_opts;
	struct neuron_error plan_error, load_error;
	struct neuron_plan plan;
	bool fails;		/* a call of the driver does */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);
/* Not there without libFuzzer, as the caller of the one above. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));
const char *__asan_default_options(void);

/* A model with very many descriptors is refused, rather than the machine used up. */
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=64";
}

/* Mostly another number in one of the descriptions, so that it stays one. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	static const char *const numbers[] = {
		"0", "1", "2", "3", "4", "7", "8", "16", "64", "200", "250", "255", "256", "1023",
		"1024", "4095", "4096", "65535", "65536", "1048576", "16777216", "536870912",
		"2147483648", "4294967295", "4294967296", "12884901888", "25769803776", "-1",
		"4611686018427387904", "9223372036854775807",
	};
	const char *number = numbers[seed / 4 % (sizeof(numbers) / sizeof(numbers[0]))];
	size_t length = strlen(number), at, end;

	if (!(seed % 4) || size <= sizeof(struct setup))
		return LLVMFuzzerMutate(data, size, max);
	at = sizeof(struct setup) + seed / 128 % (size - sizeof(struct setup));
	while (at < size && !(data[at] >= '0' && data[at] <= '9' && strchr(" [:,", data[at - 1])))
		at++;
	for (end = at; end < size && data[end] >= '0' && data[end] <= '9';)
		end++;
	if (at == size || size - (end - at) + length > max)
		return LLVMFuzzerMutate(data, size, max);
	memmove(data + at + length, data + end, size - end);
	memcpy(data + at, number, length);
	return size - (end - at) + length;
}

static int free_descriptor(void)
{
	int fd = dup(STDERR_FILENO);

	must(fd >= 0);
	close(fd);
	return fd;
}

static unsigned int handles(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < FAKE_CHUNKS; i++)
		n += fake.dev[0].chunk[i].used;
	return n;
}

static void open_core(struct trial *t)
{
	uint64_t page = (t->s.page % 7 + 1) * (512ull << 20);
	struct neuron_core_opts o = {
		.size = sizeof(o),
		.scratchpad_page = page,
		.contiguous = t->s.core >> 1 & 1,
		.lnc = (t->s.core & 1) + 1,
	};
	uint32_t nc = t->s.core >> 2 & 1 ? 2 : 0;

	fake.arch = 3 - t->s.arch % 3;
	must(!neuron_device_open(0, &t->device));
	must(!neuron_core_open(t->device, nc, &o, &t->core));
	t->lnc = (uint32_t)o.lnc;
	t->hbm = neuron_device_geometry(t->device)->core_hbm[nc];
	t->plan_opts = (struct neuron_plan_opts){
		.size = sizeof(t->plan_opts),
		.scratchpad_page = page,
		.contiguous = o.contiguous,
		.lnc = t->lnc,
		.node = t->s.limit & 1,
		.max_unpacked = (uint64_t)(t->s.limit >> 1) << 7,
		.short_constants = t->s.options & 1,
		.error = &t->plan_error,
	};
}

/* It is asked while the model still has what it got. */
static void refused(void *data, const struct neuron_mem_failure *failure,
		    const struct neuron_report_model *model)
{
	struct trial *t = data;

	must(failure->reason != NEURON_MEM_REASON_NONE || t->fails);
	must(model && model->name && strlen(model->name) < sizeof(t->plan.name));
	must(model->usage.constants <= fake.dev[0].by_category[NEURON_MEM_CONSTANTS]);
}

static int load(struct trial *t, struct neuron_model **model)
{
	struct neuron_model_opts o = {
		.size = sizeof(o),
		.error = &t->load_error,
		.node = t->plan_opts.node,
		.refused = refused,
		.refused_data = t,
		.max_unpacked = t->plan_opts.max_unpacked,
		.short_constants = t->plan_opts.short_constants,
		.cores = t->s.cores & 8 ? t->plan.cores : 0,
	};

	return neuron_model_load(t->core, t->neff, t->size, &o, model);
}

/* A file that cannot be planned cannot be loaded, for the same reason. */
static void check_refusal(const struct trial *t, int planned, int loaded)
{
	const struct neuron_error *e = &t->load_error;

	must(t->plan_error.kind != NEURON_ERROR_NONE && *t->plan_error.text);
	must(planned == -EINVAL || planned == -EOPNOTSUPP || planned == -E2BIG);
	must(loaded);
	/* It takes memory before it plans the rest. */
	if (loaded == -ENOMEM && e->kind == NEURON_ERROR_MEMORY)
		return;
	if (loaded == -EFBIG && e->kind == NEURON_ERROR_TOO_LARGE)
		return;
	/* The caller may have fewer cores than the plan, which has as many as it wants. */
	if (loaded == -ERANGE && e->kind == NEURON_ERROR_CORES)
		return;
	must(loaded == planned && e->kind == t->plan_error.kind);
	must(!strcmp(e->text, t->plan_error.text) && !strcmp(e->name, t->plan_error.name));
}

static bool same_usage(const struct trial *t, const struct neuron_model *m)
{
	struct neuron_model_usage u = { .size = sizeof(u) };
	uint64_t got[sizeof(u) / 8], sum[sizeof(u) / 8] = { 0 }, part[sizeof(u) / 8];

	must(!neuron_model_get_usage(m, &u));
	memcpy(got, &u, sizeof(u));
	for (uint32_t k = 0; k < t->plan.nr_parts; k++) {
		memcpy(part, &t->plan.parts[k], sizeof(part));
		for (size_t i = 0; i < sizeof(u) / 8; i++)
			sum[i] += part[i];
	}
	/* The first word is the size of the structure. */
	return !memcmp(got + 1, sum + 1, sizeof(u) - 8);
}

/* What the model is, as the plan had it. */
static void check_model(const struct trial *t, const struct neuron_model *m)
{
	uint64_t io = 0;
	uint32_t n = 0;

	must(same_usage(t, m));
	must(!strcmp(neuron_model_name(m), t->plan.name));
	for (; n < t->plan.nr_obstacles; n++)
		must(!strcmp(neuron_model_obstacles(m, n), t->plan.obstacles[n]));
	must(n == NEURON_MAX_OBSTACLES || !neuron_model_obstacles(m, n));
	for (size_t i = 0; i < neuron_model_tensor_count(m); i++) {
		struct neuron_tensor_info info = { .size = sizeof(info) };

		must(!neuron_model_tensor_info(m, i, &info));
		io += (info.bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	}
	must(io == t->plan.io);
}

/* Whether it fits, and if it was loaded, what the driver counted since @before. */
static void check_memory(const struct trial *t, int loaded, const uint64_t *before)
{
	const struct fake_device *d = &fake.dev[0];
	struct neuron_report_core sum = { .nc = 0 };
	uint64_t room = FAKE_HBM_SIZE, all = 0;
	bool fits_alone, fits = !neuron_plan_sum(&t->plan, 1, &t->plan_opts, 0, &sum);

	for (size_t i = 0; i < NEURON_MEM_NR_CATEGORIES; i++) {
		all += fits ? sum.device_bytes[i] : 0;
		if (!loaded)
			must(d->by_category[i] - before[i] == sum.device_bytes[i]);
	}
	room -= d->used[t->hbm] - (loaded ? 0 : all);
	fits_alone = fits && all <= FAKE_HBM_SIZE;
	fits = fits && all <= room;
	must(loaded ? !fits : fits);
	/* More than there is of it, or more than there is left. */
	if (loaded)
		must(loaded == (fits_alone ? -ENOMEM : -EFBIG));
	must(!loaded || t->load_error.kind != NEURON_ERROR_NONE);
}

/* No instructions, and copies only: nothing of it can go wrong. */
static bool only_copies(const struct trial *t)
{
	struct neuron_neff_opts o = {
		.size = sizeof(o),
		.node = t->plan_opts.node,
		.short_constants = true,
	};
	struct neuron_neff *neff;
	bool yes = true;

	must(!neuron_neff_open(t->neff, t->size, &o, &neff));
	for (size_t g = 0; g < neff->nr_subgraphs; g++)
		for (int i = 0; i < NEURON_NEFF_NR_ENGINES; i++) {
			const struct neuron_neff_engine *e = &neff->subgraphs[g].engines[i];

			yes &= e->code_kind == NEURON_NEFF_CODE_NONE;
			for (size_t k = 0; k < e->nr_dma; k++)
				for (size_t d = 0; d < e->dma[k].nr_desc; d++)
					yes &= e->dma[k].desc[d].op == NEURON_NEFF_OP_COPY;
		}
	neuron_neff_close(neff);
	return yes;
}

static void check_run(const struct trial *t, int ret, const struct neuron_run_result *r)
{
	if (t->fails)
		return;
	must(ret == 0 || ret == -ETIMEDOUT || ret == -EIO);
	must(ret != -EIO || r->status == NEURON_RUN_DMA_ERROR ||
	     r->status == NEURON_RUN_ENGINE_ERROR);
	must(ret != -EIO || (r->notice.code != NEURON_ISA_ERR_DMA_ACCESS &&
			     r->notice.code != NEURON_ISA_ERR_QUEUE));
	must(!ret || !only_copies(t));
}

/* Twice, with tensors that are elsewhere the second time. */
static void run(const struct trial *t, struct neuron_model *m)
{
	size_t nr = neuron_model_tensor_count(m), n = 0;
	struct neuron_run_result r = { .size = sizeof(r) };
	struct neuron_io io[MAX_TENSORS];

	for (; n < nr && n < MAX_TENSORS; n++) {
		struct neuron_tensor_info info = { .size = sizeof(info) };
		struct neuron_mem_opts o = {
			.size = sizeof(o), .hbm = t->hbm, .category = NEURON_MEM_TENSORS,
		};

		must(!neuron_model_tensor_info(m, n, &info));
		io[n] = (struct neuron_io){ .name = info.name, .bytes = info.bytes };
		if (info.bytes > FAKE_HBM_SIZE ||
		    neuron_mem_alloc(t->device, info.bytes + PAGE, &o, &io[n].mem))
			break;
	}
	if (n == nr && fake.dev[0].bump[t->hbm] < MAX_ADDRESS) {
		if (nr && t->s.options & 8)
			must(neuron_model_run(m, io, nr - 1, 1, &r) == -EINVAL);
		check_run(t, neuron_model_run(m, io, nr, 1, &r), &r);
		for (size_t i = 0; i < nr; i++)
			io[i].offset = 64;
		check_run(t, neuron_model_run(m, io, nr, 1, &r), &r);
	}
	while (n > 0)
		neuron_mem_free(io[--n].mem);
}

static void load_and_run(struct trial *t, int planned)
{
	static const int errors[] = { ENOMEM, EIO, EBUSY, EINVAL };
	uint64_t before[NEURON_MEM_NR_CATEGORIES];
	unsigned int had = handles();
	struct neuron_model *m = NULL;
	int ret;

	memcpy(before, fake.dev[0].by_category, sizeof(before));
	t->fails = t->s.fail_at;
	fake_fail(t->s.fail_at, 0, errors[t->s.options >> 1 & 3]);
	ret = load(t, &m);
	must(!ret == (m != NULL) && !(planned && m));
	if (!t->fails && planned) {
		check_refusal(t, planned, ret);
	} else if (!t->fails && ret == -ERANGE) {
		must(t->plan.cores > t->lnc && t->load_error.kind == NEURON_ERROR_CORES);
	} else if (!t->fails) {
		check_memory(t, ret, before);
	}
	if (m)
		check_model(t, m);
	if (m && neuron_model_obstacle(m))
		must(neuron_model_run(m, NULL, 0, 1, NULL) == -EOPNOTSUPP);
	/* The fake one has no engines of the first generation. */
	else if (m && t->plan.parts[0].descriptors + t->plan.parts[1].descriptors <= MAX_RUN &&
		 fake.arch != 1)
		run(t, m);
	neuron_model_unload(m);
	fake.fail_at = 0;
	/* A failure can cost the core its notification queues until the next run. */
	if (!t->fails) {
		must(!memcmp(before, fake.dev[0].by_category, sizeof(before)));
		must(handles() == had);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trial t = {
		.plan_error.size = sizeof(t.plan_error),
		.load_error.size = sizeof(t.load_error),
		.plan.size = sizeof(t.plan),
	};
	struct neuron_neff_header header = {
		.size = sizeof(header), .version_major = 2, .num_tpb = 1, .name = "fuzz",
	};
	int fd = free_descriptor(), ret;

	if (size < sizeof(t.s) + 4)
		return 0;
	for (size_t i = 0; i < sizeof(t.s); i++)
		((uint8_t *)&t.s)[i] = data[i] ^ '0';
	header.lnc_size = t.s.lnc % 3;
	header.tpb_per_node[0] = t.s.cores & 7;
	t.neff = pack_text(data + sizeof(t.s), size - sizeof(t.s), &header, &t.size);
	if (!t.neff)
		return 0;
	open_core(&t);
	ret = neuron_model_plan(neuron_device_geometry(t.device), t.neff, t.size, &t.plan_opts,
				&t.plan);
	if (ret != -ENOMEM && t.plan.parts[0].descriptors + t.plan.parts[1].descriptors <= MAX_LOAD)
		load_and_run(&t, ret);
	neuron_core_close(t.core);
	neuron_device_close(t.device);
	must(!fake_used() && !fake.mapped && !fake.dev[0].opens);
	must(!fake.left_bytes && !fake.left_handles);
	must(free_descriptor() == fd);
	free(t.neff);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is said about memory is true: a plan promises what loading does then, with the
 * driver's allocator; what a refused load reports adds up to the byte; it leaves nothing
 * behind; "does not fit the device" is said of nothing else; what it names as the
 * smallest set to release is enough, and no smaller one is; and what is said of a device as it
 * is holds when the files are loaded then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static unsigned long long hbm_size;
static unsigned int hbm_cores = 2;	/* cores that share a memory */
#define FAKE_HBM_SIZE hbm_size
#define FAKE_CORE_HBM(core) ((core) / hbm_cores % FAKE_HBMS)

#include "draw.h"
#include "fake_driver.h"
#include "test_neffs.h"

#define MIB (1ull << 20)
#define SETS 500
#define MAX_FILES 8
#define FEWER 5		/* smaller sets that are tried */

/* From 1 byte to @max, each length in digits as frequent. */
static uint64_t draw_size(uint64_t max)
{
	uint64_t size = 1ull << draw(4, 36);

	size = draw(size, 2 * size);
	return size > max ? draw(1, max) : size;
}

/*
 * More sets than usual, or one of them, by hand:
 *
 *	TRUTH_TEST='test_promises*' TRUTH_FIRST=501 TRUTH_SETS=10000 build/test_truth
 */
static unsigned int setting(const char *name, unsigned int otherwise)
{
	const char *env = getenv(name);

	return env ? (unsigned int)strtoul(env, NULL, 0) : otherwise;
}

/* ---- sets -------------------------------------------------------------------------- */

struct set {
	struct neuron_core_opts opts;
	uint32_t lnc, nr;
	bool io_each;			/* tensors come behind each file */
	bool profile;			/* at last each core with a file is profiled */
	struct neuron_profile_opts buffers;
	uint32_t process[FAKE_CORES];	/* of each logical core */
	struct neff_bytes file[MAX_FILES];
	uint32_t core[MAX_FILES];	/* logical */
	uint32_t drop[MAX_FILES];	/* what is released when the file was loaded */
	struct neuron_plan plan[MAX_FILES];
};

/* Variables of a subgraph, and one transfer. */
static char *random_definition(uint64_t largest, unsigned int nr_types)
{
	static const char *const types[] = { "tmp-buf", "virtual", "file", "input", "output" };
	unsigned int id = 1, vars = (unsigned int)draw(1, 10);
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fprintf(f, "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {\"q\": {\"type\":"
		   " \"data\"}}, \"var\": {\"a\": {\"type\": \"tmp-buf\", \"var_id\": 100, \"size\": 64},"
		   " \"b\": {\"type\": \"tmp-buf\", \"var_id\": 101, \"size\": 64}");
	for (; id <= vars; id++) {
		const char *type = types[draw(0, nr_types - 1)];

		fprintf(f, ", \"v%u\": {\"type\": \"%s\", \"var_id\": %u, \"size\": %llu", id, type, id,
			(unsigned long long)draw_size(largest));
		if (*type == 'v')
			fprintf(f, ", \"backing_variable_off\": %llu",
				(unsigned long long)draw_size(largest));
		else if (*type == 'f')
			fprintf(f, ", \"file_name\": \"k\"");
		if (!draw(0, 3))
			fprintf(f, ", \"alignment\": %llu", 1ull << draw(0, 21));
		fputc('}', f);
	}
	fputs("}}", f);
	assert_int_equal(fclose(f), 0);
	return text;
}

/* With so many subgraphs. */
static struct neff_bytes random_file(unsigned int parts, uint64_t largest, uint32_t number)
{
	static const char dma[] =
		"{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"from\": \"a\", \"to\": \"b\","
		" \"from_sizes\": [64], \"from_steps\": [1], \"to_sizes\": [64], \"to_steps\": [1]}]}]}";
	struct neuron_neff_header header = {
		.size = sizeof(header), .version_major = 2, .num_tpb = parts, .lnc_size = parts,
		.tpb_per_node = { (uint8_t)parts },
	};
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	struct neff_bytes out;
	char kelf[256], name[32];

	snprintf(header.name, sizeof(header.name), "file %u", number);
	snprintf(kelf, sizeof(kelf), "{\"graphs\": [{\"definition\": \"sg00/def.json\", \"name\":"
		 " \"sg00\"}%s]}", parts > 1 ?
		 ", {\"definition\": \"sg01/def.json\", \"name\": \"sg01\"}" : "");
	assert_int_equal(neuron_neff_writer_add(w, "kelf-0.json", kelf, strlen(kelf)), 0);
	for (unsigned int k = 0; k < parts; k++) {
		/* What both parts name has to be the same: the second one has no tensors. */
		char *def = random_definition(largest, k ? 3 : 5);

		snprintf(name, sizeof(name), "sg0%u/def.json", k);
		assert_int_equal(neuron_neff_writer_add(w, name, def, strlen(def)), 0);
		snprintf(name, sizeof(name), "sg0%u/SP.json", k);
		assert_int_equal(neuron_neff_writer_add(w, name, dma, strlen(dma)), 0);
		snprintf(name, sizeof(name), "sg0%u/k", k);
		assert_int_equal(neuron_neff_writer_add(w, name, "k", 1), 0);
		free(def);
	}
	assert_int_equal(neuron_neff_writer_finish(w, &header, false, &out.data, &out.size), 0);
	neuron_neff_writer_free(w);
	return out;
}

/* @crowded: so many and so large that one of them is refused, with holes between the others. */
static void make_set(struct set *s, unsigned int seed, bool crowded)
{
	state = seed * 7919ull + 3;
	draw(0, 1);
	memset(s, 0, sizeof(*s));
	hbm_size = draw(16, 256) * 64 * MIB;
	s->lnc = (uint32_t)draw(1, 2);
	s->opts = (struct neuron_core_opts){
		.size = sizeof(s->opts),
		.scratchpad_page = draw(1, 3) * 512 * MIB,
		.contiguous = draw(0, 1),
		.microcode = draw(0, 1) * draw(1, 96) * MIB,
		.lnc = s->lnc,
	};
	s->nr = crowded ? MAX_FILES : (uint32_t)draw(1, MAX_FILES);
	for (uint32_t i = 0; i < s->nr; i++) {
		s->core[i] = (uint32_t)draw(0, FAKE_CORES / s->lnc - 1);
		s->file[i] = random_file((unsigned int)draw(1, s->lnc), hbm_size / (crowded ? draw(3, 6) : draw(2, 12)), i);
		if (crowded && i)
			s->drop[i] = (uint32_t)(draw(0, UINT32_MAX) & draw(0, UINT32_MAX) &
						draw(0, UINT32_MAX)) & ((1u << 2 * i) - 1);
	}
}

/* How they are loaded. */
enum manner { IO_EACH, IO_LAST, PROCESSES, PROFILE, NR_MANNERS };

static void set_manner(struct set *s, enum manner manner)
{
	s->io_each = manner == IO_EACH;
	s->profile = manner == PROFILE;
	s->buffers.size = sizeof(s->buffers);
	for (unsigned int i = 0; i < NEURON_PROFILE_NR_BUFFERS && s->profile; i++)
		s->buffers.bytes[i] = 1ull << draw(12, 29);
	if (manner < PROCESSES)
		return;
	s->io_each = draw(0, 1);
	for (uint32_t nc = 0; nc < FAKE_CORES; nc++)
		s->process[nc] = (uint32_t)draw(0, 2);
	hbm_cores = (unsigned int)draw(1, 2) * 2;
}

static void free_set(struct set *s)
{
	hbm_cores = 2;
	for (uint32_t i = 0; i < s->nr; i++)
		free(s->file[i].data);
}

static void forget_zones(void)
{
	for (unsigned int i = 0; i < FAKE_HBMS; i++) {
		if (fake.dev[0].zone[i])
			assert_int_equal(neuron_buddy_check(fake.dev[0].zone[i]), 0);
		neuron_buddy_destroy(fake.dev[0].zone[i]);
		fake.dev[0].zone[i] = NULL;
	}
}

/* ---- what is promised -------------------------------------------------------------- */

/* Plans, and what is to be loaded. */
static void plan_set(struct set *s, const struct neuron_geometry *g,
		     struct neuron_plan_opts *opts, struct neuron_fit_file *file)
{
	*opts = (struct neuron_plan_opts){
		.size = sizeof(*opts), .scratchpad_page = s->opts.scratchpad_page,
		.contiguous = s->opts.contiguous, .lnc = s->lnc, .io_sets = 1,
		.io_each = s->io_each, .short_constants = true,
		.profile = s->profile ? neuron_profile_memory(g, &s->buffers) : 0,
		.buffers = &s->buffers,
	};
	for (uint32_t i = 0; i < s->nr; i++) {
		s->plan[i].size = sizeof(s->plan[i]);
		assert_int_equal(neuron_model_plan(g, s->file[i].data, s->file[i].size, opts,
						   &s->plan[i]), 0);
		file[i] = (struct neuron_fit_file){
			.size = sizeof(file[i]), .bytes = s->file[i].data,
			.length = s->file[i].size, .plan = &s->plan[i], .nc = s->core[i] * s->lnc,
			.process = s->process[s->core[i]],
		};
	}
}

/* Without a device. */
static bool promised(struct set *s)
{
	struct neuron_fit fit = { .size = sizeof(fit) };
	struct neuron_fit_file file[MAX_FILES];
	struct neuron_device *device;
	struct neuron_plan_opts opts;
	struct neuron_geometry g;

	assert_int_equal(neuron_device_open(0, &device), 0);
	g = *neuron_device_geometry(device);
	neuron_device_close(device);
	plan_set(s, &g, &opts, file);
	assert_int_equal(neuron_models_fit_empty(&g, FAKE_RESERVED, file, s->nr, &opts,
						 s->opts.microcode, &fit), 0);
	return fit.verdict == NEURON_FIT_NOW;
}

/* ---- what happens ------------------------------------------------------------------ */

struct run {
	struct set *set;
	struct neuron_device *device;	/* of the process that does something */
	struct neuron_device *of_process[FAKE_CORES];
	struct neuron_core *core[FAKE_CORES];
	struct neuron_model *model[MAX_FILES];
	struct neuron_mem *tensor[MAX_FILES][16];
	uint64_t tensor_bytes[FAKE_CORES];	/* by logical core */
	uint32_t owner[MAX_FILES];	/* of the tensors */
	struct neuron_profile *profile[FAKE_CORES];
	bool profiles;			/* it comes to them */
	unsigned int refusals;
	bool loading;
	struct neuron_release release;	/* of the last refusal */
};

/* The driver's row of a logical core. */
static uint64_t row_of(struct run *r, uint32_t core)
{
	uint64_t sum = 0;

	for (uint32_t nc = core * r->set->lnc; nc < (core + 1) * r->set->lnc; nc++) {
		struct neuron_core_stats s = { .size = sizeof(s) };

		assert_int_equal(neuron_core_get_stats(r->device, nc, &s), 0);
		for (size_t i = 0; i < NEURON_MAX_CATEGORIES; i++)
			sum += s.device_bytes[i];
	}
	return sum;
}

static uint64_t usage_sum(const struct neuron_model_usage *u)
{
	return u->code + u->constants + u->scratchpad + u->runtime + u->rings_io + u->rings_spill +
	       u->rings_collectives + u->rings_runtime + u->collectives;
}

/*
 * At the refusal, before anything is given back: the rows of the cores, what is free and what
 * is reserved are the whole memory, and the rows of the models are the row of their core.
 */
static void refused(void *data, const struct neuron_mem_failure *failure,
		    const struct neuron_report_model *loading)
{
	struct run *r = data;
	const struct neuron_geometry *g = neuron_device_geometry(r->device);
	uint32_t core = failure->nc / r->set->lnc;
	struct neuron_hbm_stats s = { .size = sizeof(s) };
	uint64_t rows = 0, models = usage_sum(&loading->usage);

	r->refusals++;
	assert_true(r->loading);
	assert_int_equal(neuron_hbm_get_stats(r->device, failure->hbm, &s), 0);
	for (uint32_t nc = 0; nc < FAKE_CORES / r->set->lnc; nc++)
		if (g->core_hbm[nc * r->set->lnc] == failure->hbm)
			rows += row_of(r, nc);
	assert_true(rows + s.free + s.reserved == s.total);
	for (uint32_t i = 0; i < r->set->nr; i++) {
		struct neuron_model_usage u = { .size = sizeof(u) };

		if (!r->model[i] || r->set->core[i] != core)
			continue;
		assert_int_equal(neuron_model_get_usage(r->model[i], &u), 0);
		models += usage_sum(&u);
	}
	models += ((r->set->opts.microcode + 4095) & ~4095ull) * r->set->lnc +
		  neuron_core_scratchpad(r->core[core]) + r->tensor_bytes[core];
	assert_true(models == row_of(r, core));
}

static int load_tensors(struct run *r, uint32_t i)
{
	const struct neuron_geometry *g = neuron_device_geometry(r->device);
	uint32_t nc = r->set->core[i] * r->set->lnc;
	char label[NEURON_LABEL_MAX];

	snprintf(label, sizeof(label), "tensors %hhu", (uint8_t)i);
	assert_int_equal(neuron_owner_create(r->device, label, &r->owner[i]), 0);
	for (size_t k = 0; k < neuron_model_tensor_count(r->model[i]); k++) {
		struct neuron_tensor_info info = { .size = sizeof(info) };
		struct neuron_mem_opts opts = {
			.size = sizeof(opts), .hbm = g->core_hbm[nc], .nc = nc,
			.category = NEURON_MEM_TENSORS,
			.flags = r->set->opts.contiguous ? NEURON_MEM_F_HIGH : 0,
			.owner = r->owner[i],
		};
		int ret;

		assert_int_equal(neuron_model_tensor_info(r->model[i], k, &info), 0);
		ret = neuron_mem_alloc(r->device, info.bytes, &opts, &r->tensor[i][k]);
		if (ret)
			return ret;
		r->tensor_bytes[r->set->core[i]] += (info.bytes + 4095) & ~4095ull;
	}
	return 0;
}

/* One file; a refusal leaves everything as it was. */
static int load_one(struct run *r, uint32_t i)
{
	struct neuron_error error = { .size = sizeof(error), .release.size = sizeof(error.release) };
	struct neuron_model_opts opts = {
		.size = sizeof(opts), .error = &error, .short_constants = true,
		.refused = refused, .refused_data = r,
	};
	struct fake_device *d = &fake.dev[0];
	uint64_t before[32], free_before[FAKE_HBMS];
	unsigned int refusals = r->refusals;
	int ret;

	memcpy(before, d->by_category, sizeof(before));
	for (unsigned int k = 0; k < FAKE_HBMS; k++)
		free_before[k] = neuron_buddy_free_bytes(fake_zone(d, k));
	r->loading = true;
	ret = neuron_model_load(r->core[r->set->core[i]], r->set->file[i].data,
				r->set->file[i].size, &opts, &r->model[i]);
	r->loading = false;
	if (!ret)
		return 0;
	r->model[i] = NULL;
	r->release = error.release;
	assert_int_equal(r->refusals, refusals + 1);
	assert_memory_equal(before, d->by_category, sizeof(before));
	for (unsigned int k = 0; k < FAKE_HBMS; k++)
		assert_true(free_before[k] == neuron_buddy_free_bytes(fake_zone(d, k)));
	assert_int_equal(error.kind, ret == -EFBIG ? NEURON_ERROR_TOO_LARGE : NEURON_ERROR_MEMORY);
	assert_true(ret == -EFBIG || ret == -ENOMEM);
	assert_non_null(strstr(error.text, ret == -EFBIG ? "does not fit the device: " :
							   "does not fit now: "));
	return ret;
}

/* All of them, or one. */
static int open_cores(struct run *r, uint32_t first, uint32_t end)
{
	int ret = neuron_device_open(0, &r->device);

	for (uint32_t nc = first; nc < end && !ret; nc++)
		ret = neuron_core_open(r->device, nc * r->set->lnc, &r->set->opts, &r->core[nc]);
	return ret;
}

/* What a file has, or its tensors: bit 2 * file, and the next one. */
static void release_set(struct run *r, uint32_t set)
{
	for (unsigned int i = 0; i < MAX_FILES; i++) {
		for (unsigned int k = 0; k < 16 && set >> (2 * i + 1) & 1; k++) {
			if (r->tensor[i][k])
				r->tensor_bytes[r->set->core[i]] -=
					(neuron_mem_bytes(r->tensor[i][k]) + 4095) & ~4095ull;
			neuron_mem_free(r->tensor[i][k]);
			r->tensor[i][k] = NULL;
		}
		if (set >> (2 * i) & 1) {
			neuron_model_unload(r->model[i]);
			r->model[i] = NULL;
		}
	}
}

static struct neuron_device *device_of(const struct run *r, uint32_t file)
{
	return r->device ?: r->of_process[r->set->process[r->set->core[file]]];
}

static void close_all(struct run *r)
{
	release_set(r, UINT32_MAX);
	for (unsigned int i = 0; i < MAX_FILES; i++)
		if (r->owner[i])
			neuron_owner_release(device_of(r, i), r->owner[i]);
	for (unsigned int i = 0; i < FAKE_CORES; i++) {
		neuron_profile_close(r->profile[i]);
		neuron_core_close(r->core[i]);
	}
	for (unsigned int i = 0; i < FAKE_CORES; i++)
		neuron_device_close(r->of_process[i]);
	neuron_device_close(r->device);
	assert_int_equal(fake_used(), 0);
	forget_zones();
}

/* Alone on an empty device. */
static int load_alone(struct set *s, uint32_t i)
{
	struct run r = { .set = s };
	int ret = open_cores(&r, s->core[i], s->core[i] + 1);

	assert_int_equal(ret, 0);
	ret = load_one(&r, i);
	close_all(&r);
	return ret;
}

/* Until a file does not fit beside the others; files and tensors too large are left out. */
static uint32_t crowd(struct run *r)
{
	struct set *s = r->set;
	uint32_t i;

	assert_int_equal(open_cores(r, 0, FAKE_CORES / s->lnc), 0);
	for (i = 0; i < s->nr; i++) {
		int ret = load_one(r, i);

		if (ret == -ENOMEM)
			break;
		if (!ret)
			load_tensors(r, i);
		release_set(r, s->drop[i]);
	}
	return i;
}

/* Does the file that was refused fit when those are released, too? */
static bool fits_without(struct set *s, uint32_t file, uint32_t without)
{
	struct run r = { .set = s };
	int ret;

	assert_int_equal(crowd(&r), file);
	release_set(&r, without);
	ret = load_one(&r, file);
	close_all(&r);
	return !ret;
}

static uint32_t named_set(const struct neuron_release *release)
{
	uint32_t set = 0;
	unsigned int file;

	assert_in_range(release->count, 0, NEURON_RELEASE_ITEMS);
	for (uint32_t i = 0; i < release->count; i++) {
		const struct neuron_release_item *o = &release->item[i];

		assert_int_equal(o->pid, getpid());
		if (sscanf(o->label, "tensors %u", &file) == 1)
			set |= 2u << (2 * file);
		else if (sscanf(o->label, "file %u", &file) == 1)
			set |= 1u << (2 * file);
		else
			fail_msg("%s", o->label);
	}
	return set;
}

struct blame {
	unsigned int named, nobody, single, tried;
	unsigned int wrong, too_many;
};

/* Freeing what is named is enough, and freeing fewer objects is not, as far as it is tried. */
static void check_release(struct set *s, uint32_t file, const struct neuron_release *release,
			  struct blame *b)
{
	uint32_t all = (1u << 2 * file) - 1, set = named_set(release), fewer = 0;
	bool done = fits_without(s, file, set ? set : all);

	b->named += set != 0;
	b->nobody += !set;
	b->single += release->count == 1;
	if (set ? !done : done) {
		print_message("# %#x named, fits %d\n", set, done);
		b->wrong++;
	}
	for (unsigned int i = 0; i < FEWER && release->count > 1; i++) {
		/* Any one, or of larger sets all but one. */
		fewer = 1u << draw(0, 2 * file - 1);
		if (release->count > 2)
			fewer = set & ~fewer;
		if (fewer == set)
			continue;
		b->tried++;
		if (fits_without(s, file, fewer)) {
			print_message("# %#x named, %#x will do\n", set, fewer);
			b->too_many++;
		}
	}
}

/* Does one process open all cores there are? */
static bool is_alone(const struct set *s)
{
	for (uint32_t i = 1; i < s->nr; i++)
		if (s->process[s->core[i]] != s->process[s->core[0]])
			return false;
	return true;
}

static bool has_file(const struct set *s, uint32_t nc)
{
	for (uint32_t i = 0; i < s->nr; i++)
		if (s->core[i] == nc)
			return true;
	return false;
}

/* Of the cores of a process, one after the other. */
static int start_profiles(struct run *r, uint32_t process)
{
	const struct set *s = r->set;
	int ret = 0;

	r->profiles = true;
	for (uint32_t nc = 0; nc < FAKE_CORES / s->lnc && !ret; nc++)
		if (has_file(s, nc) && s->process[nc] == process)
			ret = neuron_profile_start(r->core[nc], &s->buffers, &r->profile[nc]);
	return ret;
}

/* What one process does; the first error.  @named: the file it was. */
static int run_process(struct run *r, uint32_t process, uint32_t *named)
{
	struct set *s = r->set;
	bool alone = is_alone(s);
	int ret = neuron_device_open(0, &r->of_process[process]);

	r->device = r->of_process[process];
	for (uint32_t nc = 0; nc < FAKE_CORES / s->lnc && !ret; nc++)
		if (alone || (has_file(s, nc) && s->process[nc] == process))
			ret = neuron_core_open(r->device, nc * s->lnc, &s->opts, &r->core[nc]);
	for (uint32_t i = 0; i < s->nr && !ret; i++) {
		if (s->process[s->core[i]] != process)
			continue;
		ret = load_one(r, i);
		if (ret)
			*named = i;
		else if (s->io_each)
			ret = load_tensors(r, i);
	}
	for (uint32_t i = 0; i < s->nr && !ret && !s->io_each; i++)
		if (s->process[s->core[i]] == process)
			ret = load_tensors(r, i);
	return !ret && s->profile ? start_profiles(r, process) : ret;
}

/*
 * All of them with their tensors, one process after the other. *@profiles: nothing but buffers
 * of a profile found no room.
 */
static int load_all(struct set *s, uint32_t *named, bool *profiles)
{
	struct run r = { .set = s };
	int ret = 0;

	*named = MAX_FILES;
	for (uint32_t i = 0; i < s->nr && !ret; i++) {
		uint32_t process = s->process[s->core[i]];

		if (!r.of_process[process])
			ret = run_process(&r, process, named);
		*profiles = ret && r.profiles;
		r.profiles = false;
	}
	r.device = NULL;
	close_all(&r);
	return ret;
}

struct outcome {
	unsigned int fits, never, now, tensors, profiles;
	unsigned int broken, misnamed;
};

/* One set; what is wrong is told, not refused. */
static void try_set(unsigned int seed, enum manner manner, struct outcome *t)
{
	uint32_t which;
	struct set s;
	bool want, profiles = false;
	int ret;

	make_set(&s, seed, false);
	set_manner(&s, manner);
	want = promised(&s);
	ret = load_all(&s, &which, &profiles);
	t->fits += !ret;
	t->never += ret == -EFBIG;
	t->now += which < MAX_FILES && ret == -ENOMEM;
	t->tensors += which == MAX_FILES && ret && !profiles;
	t->profiles += profiles;
	if (want != !ret) {
		print_message("# set %u: promised %d, result %d at file %u\n", seed, want, ret, which);
		t->broken++;
	}
	/* The error says what happens to the file alone. */
	if (which < MAX_FILES && load_alone(&s, which) != (ret == -EFBIG ? -EFBIG : 0)) {
		print_message("# set %u: file %u, %d, is something else alone\n", seed, which, ret);
		t->misnamed++;
	}
	free_set(&s);
}

static void try_sets(enum manner manner)
{
	unsigned int first = setting("TRUTH_FIRST", 1), nr = setting("TRUTH_SETS", SETS);
	struct outcome t = { 0 };

	for (unsigned int seed = first; seed < first + nr; seed++)
		try_set(seed, manner, &t);
	print_message("# %u sets fit, %u have a file too large, in %u a file does not fit now, in %u a tensor, in %u a profile\n",
		      t.fits, t.never, t.now, t.tensors, t.profiles);
	assert_true(nr < SETS || manner != PROFILE || t.profiles > nr / 50);
	assert_true(nr < SETS || (t.fits > nr / 10 && t.never > nr / 50 && t.now > nr / 20 &&
				  t.tensors > nr / 50));
	assert_int_equal(t.broken, 0);
	assert_int_equal(t.misnamed, 0);
}

/* What is planned without a device is what loading does on an empty one, set for set. */
static void test_promises(void **unused)
{
	(void)unused;
	try_sets(IO_EACH);
}

static void test_promises_tensors_last(void **unused)
{
	(void)unused;
	try_sets(IO_LAST);
}

static void test_promises_processes(void **unused)
{
	(void)unused;
	try_sets(PROCESSES);
}

static void test_promises_profiles(void **unused)
{
	(void)unused;
	try_sets(PROFILE);
}

/* Sets of which something else was promised once; SETS does not reach them. */
static void test_promises_broken_once(void **unused)
{
	static const unsigned int seeds[] = {
		2869,	/* a page where the region of the other core would grow */
		4232, 7816, 8047,	/* a frame for small requests where the last tensor would go */
	};
	struct outcome t = { 0 };

	(void)unused;
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		for (enum manner manner = 0; manner < NR_MANNERS; manner++)
			try_set(seeds[i], manner, &t);
	assert_int_equal(t.broken, 0);
	assert_int_equal(t.misnamed, 0);
}

/* Refusals of full and of fragmented memory, each with what is named for it. */
static void test_release(void **unused)
{
	struct blame b = { 0 };
	unsigned int cases = 0;

	(void)unused;
	for (unsigned int seed = 1; cases < SETS; seed++) {
		struct set s;
		struct run r = { .set = &s };
		uint32_t file;

		make_set(&s, seed, true);
		file = crowd(&r);
		close_all(&r);
		if (file && file < s.nr) {
			check_release(&s, file, &r.release, &b);
			cases++;
		}
		free_set(&s);
	}
	print_message("# named a set %u times, of one %u times, nobody %u times; tried %u others\n",
		      b.named, b.single, b.nobody, b.tried);
	assert_true(b.named > SETS / 2 && b.single < b.named && b.tried > SETS / 2);
	assert_int_equal(b.wrong, 0);
	assert_int_equal(b.too_many, 0);
}

/* ---- what is said of a device as it is --------------------------------------------- */

#define HOGS 24

/* Memory of this process that has nothing to do with the files, with holes in between. */
struct hogs {
	struct neuron_mem *mem[HOGS];
	uint32_t owner[HOGS];
};

static void hogs_take(struct hogs *h, struct run *r, unsigned int share)
{
	const struct neuron_geometry *g = neuron_device_geometry(r->device);
	static const uint32_t flags[] = { 0, 0, NEURON_MEM_F_LOW, NEURON_MEM_F_HIGH };
	char label[NEURON_LABEL_MAX];

	memset(h, 0, sizeof(*h));
	for (unsigned int i = 0; i < HOGS; i++) {
		struct neuron_mem_opts opts = {
			.size = sizeof(opts), .hbm = (uint32_t)draw(0, g->nr_hbms - 1),
			.category = NEURON_MEM_TENSORS, .flags = flags[draw(0, 3)],
		};

		snprintf(label, sizeof(label), "hog %hhu", (uint8_t)i);
		assert_int_equal(neuron_owner_create(r->device, label, &h->owner[i]), 0);
		opts.owner = h->owner[i];
		if (neuron_mem_alloc(r->device, draw(1, hbm_size / share), &opts, &h->mem[i]))
			h->mem[i] = NULL;
	}
	for (unsigned int i = 0; i < HOGS; i++)
		if (!draw(0, 2)) {
			neuron_mem_free(h->mem[i]);
			h->mem[i] = NULL;
		}
}

static void hogs_release(struct hogs *h, struct run *r)
{
	for (unsigned int i = 0; i < HOGS; i++) {
		neuron_mem_free(h->mem[i]);
		neuron_owner_release(r->device, h->owner[i]);
	}
}

static void hogs_free_named(struct hogs *h, const struct neuron_release *release)
{
	for (uint32_t i = 0; i < release->count; i++) {
		unsigned int hog;

		assert_int_equal(release->item[i].pid, getpid());
		assert_int_equal(sscanf(release->item[i].label, "hog %u", &hog), 1);
		assert_non_null(h->mem[hog]);
		neuron_mem_free(h->mem[hog]);
		h->mem[hog] = NULL;
	}
}

/* What is said. */
static struct neuron_fit asked(struct set *s, struct neuron_device *device)
{
	struct neuron_fit_file file[MAX_FILES];
	struct neuron_fit fit = { .size = sizeof(fit) };
	struct neuron_plan_opts opts;

	plan_set(s, neuron_device_geometry(device), &opts, file);
	assert_int_equal(neuron_models_fit(device, file, s->nr, &opts, s->opts.microcode, &fit), 0);
	assert_true(fit.text[0]);
	return fit;
}

/* What happens: the cores that have a file, the files, their tensors; NULL: as they come. */
static int load_beside(struct run *r, const uint32_t *order)
{
	struct set *s = r->set;
	int ret = 0;

	for (uint32_t i = 0; i < s->nr && !ret; i++)
		if (!r->core[s->core[i]])
			ret = neuron_core_open(r->device, s->core[i] * s->lnc, &s->opts,
					       &r->core[s->core[i]]);
	for (uint32_t k = 0; k < s->nr && !ret; k++) {
		uint32_t i = order ? order[k] : k;

		ret = neuron_model_load(r->core[s->core[i]], s->file[i].data, s->file[i].size,
					&(struct neuron_model_opts){
						.size = sizeof(struct neuron_model_opts),
						.short_constants = true,
					}, &r->model[i]);
	}
	for (uint32_t k = 0; k < s->nr && !ret; k++)
		ret = load_tensors(r, order ? order[k] : k);
	assert_true(!ret || ret == -ENOMEM || ret == -EFBIG);
	release_set(r, UINT32_MAX);
	for (unsigned int i = 0; i < MAX_FILES; i++) {
		if (r->owner[i])
			neuron_owner_release(r->device, r->owner[i]);
		r->owner[i] = 0;
	}
	for (unsigned int i = 0; i < FAKE_CORES; i++) {
		neuron_core_close(r->core[i]);
		r->core[i] = NULL;
	}
	return ret;
}

struct verdicts {
	unsigned int now, not_now, never;
	unsigned int by_reason[6], named;
	unsigned int hope, fear, vain;
	unsigned int ordered, disorder;		/* an order was named; in vain */
};

/* What it names is enough. */
static void check_named(struct set *s, struct run *r, struct hogs *h, const struct neuron_fit *fit,
			struct verdicts *v)
{
	v->named++;
	hogs_free_named(h, &fit->release);
	assert_int_equal(asked(s, r->device).verdict, NEURON_FIT_NOW);
	v->vain += load_beside(r, NULL) != 0;
}

static void try_now(unsigned int seed, struct verdicts *v)
{
	struct set s;
	struct run r = { .set = &s };
	struct neuron_fit fit;
	struct hogs hogs;
	int ret;

	make_set(&s, seed, false);
	/* One alone is decided by what load_arrange() finds. */
	for (bool one = draw(0, 1); one && s.nr > 1; s.nr--)
		free(s.file[s.nr - 1].data);
	assert_int_equal(neuron_device_open(0, &r.device), 0);
	hogs_take(&hogs, &r, (unsigned int)draw(4, 40));
	fit = asked(&s, r.device);
	ret = load_beside(&r, NULL);
	v->now += fit.verdict == NEURON_FIT_NOW;
	v->not_now += fit.verdict == NEURON_FIT_NOT_NOW;
	v->never += fit.verdict == NEURON_FIT_NEVER;
	if (fit.verdict == NEURON_FIT_NOT_NOW)
		v->by_reason[fit.reason]++;
	if ((fit.verdict == NEURON_FIT_NOW) != !ret)
		print_message("# set %u of %u: %s, but %d\n", seed, s.nr, fit.text, ret);
	v->hope += fit.verdict == NEURON_FIT_NOW && ret;
	v->fear += fit.verdict != NEURON_FIT_NOW && !ret;
	assert_true(!fit.nr_order || (fit.nr_order == s.nr && fit.verdict != NEURON_FIT_NOW));
	v->ordered += fit.nr_order != 0;
	if (fit.verdict == NEURON_FIT_NOT_NOW)
		v->disorder += fit.nr_order && load_beside(&r, fit.order);
	if (fit.verdict == NEURON_FIT_NOT_NOW && fit.release.count &&
	    fit.release.count <= NEURON_RELEASE_ITEMS)
		check_named(&s, &r, &hogs, &fit, v);
	hogs_release(&hogs, &r);
	if (fit.verdict == NEURON_FIT_NEVER) {
		assert_true(load_beside(&r, NULL));
		v->disorder += fit.nr_order && load_beside(&r, fit.order);
	}
	neuron_device_close(r.device);
	assert_int_equal(fake_used(), 0);
	forget_zones();
	free_set(&s);
}

/* Full and fragmented memory: the verdict is what loading does then, and what is named helps. */
static void test_now(void **unused)
{
	unsigned int first = setting("TRUTH_FIRST", 1), nr = setting("TRUTH_SETS", SETS);
	struct verdicts v = { 0 };

	(void)unused;
	for (unsigned int seed = first; seed < first + nr; seed++)
		try_now(seed, &v);
	print_message("# %u fit now, %u do not, %u never; %u full, %u fragmented, %u named a set\n",
		      v.now, v.not_now, v.never, v.by_reason[NEURON_MEM_REASON_FULL],
		      v.by_reason[NEURON_MEM_REASON_FRAGMENTED], v.named);
	print_message("# said to fit and refused %u, the other way round %u, named in vain %u\n",
		      v.hope, v.fear, v.vain);
	print_message("# an order named %u times, in vain %u\n", v.ordered, v.disorder);
	/* Frames of what is there are not told: they matter where nearly all that is free is needed. */
	assert_true(v.hope + v.fear <= nr / 1000);
	assert_true(!v.disorder && v.vain <= v.named / 25);
	assert_true(nr < SETS || (v.now > nr / 2 && v.not_now > nr / 10 && v.never > nr / 10 &&
				  v.by_reason[NEURON_MEM_REASON_FULL] &&
				  v.by_reason[NEURON_MEM_REASON_FRAGMENTED] && v.ordered &&
				  v.named > nr / 10));
}

/* Sets of which it was not: the driver takes a place that leaves something useful. */
static void test_now_wrong_once(void **unused)
{
	static const unsigned int seeds[] = { 1533, 2082, 3505, 4124, 5152, 5849 };
	struct verdicts v = { 0 };

	(void)unused;
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		try_now(seeds[i], &v);
	assert_int_equal(v.hope, 0);
	assert_int_equal(v.fear, 0);
}

/* A file of 1 GiB on an empty device of 8, and what is wrong with the question. */
struct question {
	struct neuron_device *device;
	struct neff_bytes neff;
	struct neuron_plan plan;
	struct neuron_plan_opts opts;
	struct neuron_fit_file file;
	struct neuron_fit fit;
};

static void question_open(struct question *q)
{
	memset(q, 0, sizeof(*q));
	hbm_size = 8192 * MIB;
	state = 1;
	q->neff = random_file(1, 1024 * MIB, 0);
	assert_int_equal(neuron_device_open(0, &q->device), 0);
	q->opts.size = sizeof(q->opts);
	q->opts.short_constants = true;
	q->plan.size = sizeof(q->plan);
	q->fit.size = sizeof(q->fit);
	assert_int_equal(neuron_model_plan(neuron_device_geometry(q->device), q->neff.data,
					   q->neff.size, &q->opts, &q->plan), 0);
	q->file = (struct neuron_fit_file){
		.size = sizeof(q->file), .bytes = q->neff.data, .length = q->neff.size,
		.plan = &q->plan, .nc = 1,
	};
}

static int ask_empty(struct question *q, size_t nr)
{
	return neuron_models_fit_empty(neuron_device_geometry(q->device), FAKE_RESERVED, &q->file,
				       nr, &q->opts, 0, &q->fit);
}

static int ask(struct question *q)
{
	return neuron_models_fit(q->device, &q->file, 1, &q->opts, 0, &q->fit);
}

static void question_close(struct question *q)
{
	neuron_device_close(q->device);
	forget_zones();
	free(q->neff.data);
}

static void test_now_core_taken(void **unused)
{
	struct question q;

	(void)unused;
	question_open(&q);
	fake.dev[0].core[1].owned_by_other = true;
	assert_int_equal(ask(&q), 0);
	assert_int_equal(q.fit.verdict, NEURON_FIT_NOT_NOW);
	assert_int_equal(q.fit.reason, NEURON_MEM_REASON_NONE);
	assert_int_equal(q.fit.nc, 1);
	assert_int_equal(q.fit.pid, getppid());
	assert_int_equal(q.fit.hbm, UINT32_MAX);
	assert_int_equal(q.fit.release.count, 1);
	assert_int_equal(q.fit.release.item[0].pid, getppid());
	assert_non_null(strstr(q.fit.text, "does not fit now: core 1 is of process "));
	/* The other core is not asked for. */
	q.file.nc = 0;
	assert_int_equal(ask(&q), 0);
	assert_int_equal(q.fit.verdict, NEURON_FIT_NOW);
	fake.dev[0].core[1].owned_by_other = false;
	question_close(&q);
}

static void test_now_limits(void **unused)
{
	struct question q;

	(void)unused;
	question_open(&q);
	assert_int_equal(neuron_limit_set(q.device, NEURON_LIMIT_CORE, 1, 1 * MIB), 0);
	assert_int_equal(ask(&q), 0);
	assert_int_equal(q.fit.verdict, NEURON_FIT_NOT_NOW);
	assert_int_equal(q.fit.reason, NEURON_MEM_REASON_CAPPED);
	assert_int_equal(q.fit.nc, 1);
	assert_int_equal(q.fit.hbm, UINT32_MAX);
	assert_int_equal(q.fit.release.count, 0);
	assert_non_null(strstr(q.fit.text, "is not allowed: the limit of core 1 leaves 1.000MB of 1.000MB, "));
	assert_int_equal(neuron_limit_set(q.device, NEURON_LIMIT_CORE, 1, NEURON_LIMIT_NONE), 0);
	assert_int_equal(neuron_limit_set(q.device, NEURON_LIMIT_DEFAULT, 0, 1 * MIB), 0);
	assert_int_equal(ask(&q), 0);
	assert_int_equal(q.fit.reason, NEURON_MEM_REASON_CAPPED);
	assert_int_equal(q.fit.nc, UINT32_MAX);
	assert_non_null(strstr(q.fit.text, "the limit of a process leaves "));
	assert_int_equal(neuron_limit_set(q.device, NEURON_LIMIT_DEFAULT, 0, NEURON_LIMIT_NONE), 0);
	assert_int_equal(ask(&q), 0);
	assert_int_equal(q.fit.verdict, NEURON_FIT_NOW);
	assert_string_equal(q.fit.text, "fits now");
	assert_int_equal(q.fit.hbm, UINT32_MAX);
	assert_int_equal(q.fit.nc, UINT32_MAX);
	question_close(&q);
}

/* Its buffers count for the limit of the core, to the byte, and are placed with their sizes. */
static void test_now_profile(void **unused)
{
	struct neuron_profile_opts sizes = { .size = sizeof(sizes) };
	struct question q;
	uint64_t need;

	(void)unused;
	question_open(&q);
	assert_int_equal(neuron_limit_set(q.device, NEURON_LIMIT_CORE, 1, 1 * MIB), 0);
	assert_int_equal(ask(&q), 0);
	need = q.fit.need;
	assert_int_equal(q.fit.reason, NEURON_MEM_REASON_CAPPED);
	q.opts.profile = neuron_profile_memory(neuron_device_geometry(q.device), &sizes);
	assert_int_equal(ask(&q), -EINVAL);
	q.opts.buffers = &sizes;
	assert_int_equal(ask(&q), 0);
	assert_true(q.fit.need == need + q.opts.profile);
	assert_int_equal(neuron_limit_set(q.device, NEURON_LIMIT_CORE, 1, NEURON_LIMIT_NONE), 0);
	assert_int_equal(ask(&q), 0);
	assert_int_equal(q.fit.verdict, NEURON_FIT_NOW);
	q.opts.profile--;
	assert_int_equal(ask(&q), -EINVAL);
	sizes.bytes[NEURON_PROFILE_DMA] = 3;
	assert_int_equal(ask(&q), -EINVAL);
	question_close(&q);
}

/* A group of a group, as a container sees it whose mount begins with the first one. */
static const char *cgroup_root = "/box", *cgroup_path = "/box/in/side", *inner_max = "max";

static const char *cgroup_file(const char *path)
{
	static char text[256];

	if (!strcmp(path, "/proc/self/mountinfo"))
		snprintf(text, sizeof(text), "22 1 0:20 / /proc rw - proc proc rw\n"
			 "30 24 0:26 %s /cg rw,nosuid shared:4 - cgroup2 cgroup rw\n", cgroup_root);
	else if (!strcmp(path, "/proc/self/cgroup"))
		snprintf(text, sizeof(text), "1:name=systemd:/x\n0::%s\n", cgroup_path);
	else if (!strcmp(path, "/cg/in/dmem.max"))
		snprintf(text, sizeof(text), "drm/card0/vram 5\nneuron/neuron0/hbm0 2097152\n"
			 "neuron/neuron0/hbm1 %s\n", inner_max);
	else if (!strcmp(path, "/cg/in/dmem.current"))
		return "neuron/neuron0/hbm0 1048576\nneuron/neuron0/hbm1 0\n";
	else if (!strcmp(path, "/cg/dmem.max"))
		return "neuron/neuron0/hbm0 1073741824\nneuron/neuron0/hbm1 max\n";
	else if (!strcmp(path, "/cg/dmem.current"))
		return "neuron/neuron0/hbm0 1072693248\n";
	else
		return NULL;
	return text;
}

static void assert_cgroup(struct question *q, const char *path, uint64_t limit, uint64_t used)
{
	assert_int_equal(ask(q), 0);
	assert_int_equal(q->fit.verdict, path ? NEURON_FIT_NOT_NOW : NEURON_FIT_NOW);
	assert_int_equal(q->fit.reason, path ? NEURON_MEM_REASON_CAPPED : NEURON_MEM_REASON_NONE);
	assert_string_equal(q->fit.cgroup, path ? path : "");
	assert_true(q->fit.limit == limit && q->fit.limit_used == used);
	assert_int_equal(q->fit.hbm, path ? 0 : UINT32_MAX);
}

static void test_now_cgroup(void **unused)
{
	struct question q;

	(void)unused;
	question_open(&q);
	fake.file = cgroup_file;
	/* 1 MiB is left there, and as much above it. */
	assert_cgroup(&q, "/in", 2 * MIB, MIB);
	assert_non_null(strstr(q.fit.text, "is not allowed: the cgroup /in allows 2.000MB of HBM 0, 1.000MB are used, "));
	cgroup_path = "/box";
	assert_cgroup(&q, "/", 1024 * MIB, 1023 * MIB);
	/* Another memory, of which nobody says how much may be had, and then nothing. */
	cgroup_path = "/box/in";
	q.file.nc = 2;
	assert_cgroup(&q, NULL, 0, 0);
	inner_max = "0";
	assert_int_equal(ask(&q), 0);
	assert_int_equal(q.fit.reason, NEURON_MEM_REASON_CAPPED);
	assert_int_equal(q.fit.hbm, 1);
	q.file.nc = 1;
	/* Not below the mount. */
	cgroup_path = "/boxer/in";
	assert_cgroup(&q, NULL, 0, 0);
	cgroup_root = "/";
	cgroup_path = "/../in";
	assert_cgroup(&q, NULL, 0, 0);
	cgroup_path = "/in";
	assert_cgroup(&q, "/in", 2 * MIB, MIB);
	fake.file = NULL;
	question_close(&q);
}

static unsigned int files_read;

/* All may be had. */
static const char *counted_file(const char *path)
{
	static char last[64];

	/* fake_driver.h asks twice for what there is. */
	files_read += strcmp(path, last) != 0;
	snprintf(last, sizeof(last), "%s", path);
	return strstr(path, "/dmem.max") ? "neuron/neuron0/hbm0 1099511627776\n"
					   "neuron/neuron0/hbm1 1099511627776\n" :
	       strstr(path, "/dmem.current") ? "neuron/neuron0/hbm0 0\nneuron/neuron0/hbm1 0\n" :
	       strstr(path, "/memory.max") ? "max\n" : cgroup_file(path);
}

/*
 * Mounts, its group, what is in swap and of this process, whether the driver checks rings, and of
 * the group and of the one above what they allow and what is in use.
 */
static void test_now_cgroup_reads(void **unused)
{
	struct neuron_fit_file files[2];
	struct question q;

	(void)unused;
	question_open(&q);
	fake.file = counted_file;
	cgroup_root = "/";
	cgroup_path = "/in";
	files[0] = files[1] = q.file;
	files[1].nc = 2;
	for (size_t n = 1; n <= 2; n++) {
		files_read = 0;
		assert_int_equal(neuron_models_fit(q.device, files, n, &q.opts, 0, &q.fit), 0);
		assert_int_equal(q.fit.verdict, NEURON_FIT_NOW);
		assert_int_equal(files_read, 4 + 2 * 3 + 1);
	}
	fake.file = NULL;
	question_close(&q);
}

/* 300 KiB are in use, 100 of them of this process, which is about to end. */
static const char *memory_max, *memory_above, *swap_free, *isolation;

static const char *memory_file(const char *path)
{
	return !strcmp(path, "/cg/in/memory.max") ? memory_max :
	       !strcmp(path, "/cg/memory.max") ? memory_above :
	       !strcmp(path, "/cg/in/memory.stat") || !strcmp(path, "/cg/memory.stat") ?
		"anon 204800\nfile 99999999\nkernel 122880\nshmem 40960\nslab_reclaimable 61440\n" :
	       !strcmp(path, "/proc/meminfo") ? swap_free :
	       !strcmp(path, "/sys/devices/virtual/neuron_device/neuron0/isolation") ? isolation :
	       !strcmp(path, "/proc/self/status") ? "VmRSS:\t 900 kB\nRssAnon:\t     100 kB\n" :
	       !strstr(path, "/dmem.") ? cgroup_file(path) : NULL;
}

/*
 * Two queues of 16 KiB, and what the library takes; the model has rings, too, of which the driver
 * knows if it checks them.
 */
static void test_now_host_memory(void **unused)
{
	struct question q;
	uint64_t need, rings, used = (200 - 100 + 120 - 60 + 40) << 10;
	char exact[32], less[32];

	(void)unused;
	question_open(&q);
	fake.file = memory_file;
	cgroup_root = "/";
	cgroup_path = "/in";
	memory_max = "4096\n";
	memory_above = "max\n";
	swap_free = "SwapTotal: 0 kB\nSwapFree:      0 kB\n";
	isolation = "device\n";
	assert_true(q.plan.host_peak > 0);
	assert_int_equal(ask(&q), 0);
	assert_int_equal(q.fit.need, (32 << 10) + q.plan.host_peak);
	isolation = "checked\n";
	assert_int_equal(ask(&q), 0);
	assert_int_equal(q.fit.verdict, NEURON_FIT_NOT_NOW);
	assert_int_equal(q.fit.reason, NEURON_MEM_REASON_CAPPED);
	assert_int_equal(q.fit.hbm, UINT32_MAX);
	assert_int_equal(q.fit.nc, UINT32_MAX);
	assert_string_equal(q.fit.cgroup, "/in");
	assert_true(q.fit.limit == 4096 && q.fit.limit_used == used);
	assert_non_null(strstr(q.fit.text, "is not allowed: memory.max of the cgroup /in allows 4.000KB of host memory, at least 200.000KB are used, the driver with the library needs "));
	need = q.fit.need;
	assert_true(need >= (32 << 10) + q.plan.host_peak);
	snprintf(exact, sizeof(exact), "%llu\n", (unsigned long long)(used + need));
	snprintf(less, sizeof(less), "%llu\n", (unsigned long long)(used + need - 1));
	memory_max = exact;
	assert_cgroup(&q, NULL, 0, 0);
	memory_max = less;
	assert_int_equal(ask(&q), 0);
	assert_int_equal(q.fit.verdict, NEURON_FIT_NOT_NOW);
	assert_non_null(strstr(q.fit.text, ", 1.000B too much"));
	/* Only the kernel's own stays when the rest can be swapped. */
	swap_free = "SwapFree:      4 kB\n";
	assert_cgroup(&q, NULL, 0, 0);
	memory_above = "4096\n";
	assert_int_equal(ask(&q), 0);
	assert_string_equal(q.fit.cgroup, "/");
	assert_true(q.fit.limit_used == 60 << 10);
	assert_non_null(strstr(q.fit.text, ", the driver needs "));
	rings = q.fit.need - (32 << 10);
	assert_true(rings > 0 && rings % 2048 == 0);
	/* The tables stay, and what the library needs to load the file goes before they are there. */
	rings += q.plan.host_kept;
	assert_true(need == (32 << 10) + (rings > q.plan.host_peak ? rings : q.plan.host_peak));
	memory_max = memory_above = "max\n";
	assert_cgroup(&q, NULL, 0, 0);
	fake.file = NULL;
	question_close(&q);
}

/*
 * A logical core of two whose memories are two, and a file for the first one: what does not fit
 * now fits an empty device, with the microcode of both.
 */
static void test_core_of_two_memories(void **unused)
{
	struct neuron_core_opts opts = { .size = sizeof(opts), .lnc = 2, .microcode = 64 * MIB };
	struct neuron_error error = { .size = sizeof(error), .release.size = sizeof(error.release) };
	struct neuron_model_opts load = {
		.size = sizeof(load), .error = &error, .short_constants = true,
	};
	struct neuron_mem_opts hog = { .size = sizeof(hog), .category = NEURON_MEM_TENSORS };
	struct neuron_model *model;
	struct neuron_core *core;
	struct neuron_mem *mem;
	struct question q;

	(void)unused;
	hbm_cores = 1;
	question_open(&q);
	assert_int_equal(neuron_core_open(q.device, 0, &opts, &core), 0);
	assert_true(fake.dev[0].used[0] == 64 * MIB && fake.dev[0].used[1] == 64 * MIB);
	assert_int_equal(neuron_mem_alloc(q.device, hbm_size - FAKE_RESERVED - 64 * MIB, &hog, &mem),
			 0);
	assert_int_equal(neuron_model_load(core, q.neff.data, q.neff.size, &load, &model), -ENOMEM);
	assert_int_equal(error.kind, NEURON_ERROR_MEMORY);
	assert_non_null(strstr(error.text, "does not fit now: "));
	neuron_mem_free(mem);
	assert_int_equal(neuron_model_load(core, q.neff.data, q.neff.size, &load, &model), 0);
	neuron_model_unload(model);
	neuron_core_close(core);
	question_close(&q);
	hbm_cores = 2;
}

static void test_staging(void **unused)
{
	struct neuron_collective o = { .size = sizeof(o), .in = 100, .out = 5000, .ranks = 4 };

	(void)unused;
	assert_int_equal(neuron_collective_staging(&o), 0);
	o.devices = o.in_place = true;
	assert_int_equal(neuron_collective_staging(&o), 3 * 4096 + 2 * 4096);
	/* Sums of a part of the ranks, if a transfer does not take all: up to 1 MiB. */
	o.sums = 5000;
	o.ranks = 16;
	assert_int_equal(neuron_collective_staging(&o), 15 * 4096 + 2 * 4096);
	o.ranks = 17;
	assert_int_equal(neuron_collective_staging(&o), 16 * 4096 + 2 * 4096 + 2 * 4096);
	o.sums = UINT64_MAX;
	assert_int_equal(neuron_collective_staging(&o), 16 * 4096 + 2 * 4096 + (1 << 20));
	o.in = UINT64_MAX / 3;
	assert_true(neuron_collective_staging(&o) == UINT64_MAX);
	o.in = UINT64_MAX;
	assert_true(neuron_collective_staging(&o) == UINT64_MAX);
	o.size = 0;
	assert_int_equal(neuron_collective_staging(&o), 0);
	assert_int_equal(neuron_collective_staging(NULL), 0);
}

static void test_now_refuses(void **unused)
{
	struct question q, good;

	(void)unused;
	question_open(&q);
	good = q;
	assert_int_equal(neuron_models_fit(q.device, &q.file, 0, &q.opts, 0, &q.fit), -EINVAL);
	assert_int_equal(neuron_models_fit(q.device, NULL, 1, &q.opts, 0, &q.fit), -EINVAL);
	assert_int_equal(neuron_models_fit(q.device, &q.file, 1, &q.opts, 0, NULL), -EINVAL);
	assert_int_equal(neuron_models_fit(NULL, &q.file, 1, &q.opts, 0, &q.fit), -EINVAL);
	assert_int_equal(neuron_models_fit_empty(NULL, 0, &q.file, 1, &q.opts, 0, &q.fit), -EINVAL);
	assert_int_equal(ask_empty(&q, 0), -EINVAL);
	q.file.plan = NULL;
	assert_int_equal(ask(&q), -EINVAL);
	q.file = good.file;
	q.file.nc = FAKE_CORES;
	assert_int_equal(ask(&q), -EINVAL);
	q.file.nc = 1;
	q.opts.lnc = 2;
	assert_int_equal(ask(&q), -EINVAL);
	q.opts = good.opts;
	q.opts.profile = 1;
	assert_int_equal(ask(&q), -EINVAL);
	q.opts = good.opts;
	q.file.length = 100;
	assert_int_equal(ask(&q), -EINVAL);
	q.file = good.file;
	q.file.size = sizeof(size_t);
	assert_int_equal(ask(&q), -EINVAL);
	q.file = good.file;
	assert_int_equal(ask(&q), 0);
	question_close(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_promises),
		cmocka_unit_test(test_promises_tensors_last),
		cmocka_unit_test(test_promises_processes),
		cmocka_unit_test(test_promises_profiles),
		cmocka_unit_test(test_promises_broken_once),
		cmocka_unit_test(test_release),
		cmocka_unit_test(test_now),
		cmocka_unit_test(test_now_wrong_once),
		cmocka_unit_test(test_now_core_taken),
		cmocka_unit_test(test_now_limits),
		cmocka_unit_test(test_now_profile),
		cmocka_unit_test(test_now_cgroup),
		cmocka_unit_test(test_now_cgroup_reads),
		cmocka_unit_test(test_now_host_memory),
		cmocka_unit_test(test_core_of_two_memories),
		cmocka_unit_test(test_staging),
		cmocka_unit_test(test_now_refuses),
	};

	if (getenv("TRUTH_TEST"))
		cmocka_set_test_filter(getenv("TRUTH_TEST"));
	return cmocka_run_group_tests_name("truth", tests, NULL, NULL);
}

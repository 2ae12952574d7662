// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * neuron-demo: run the digit classifiers and the text decoder on a Neuron
 * device and check every answer.
 *
 * The digits are classified through the public runtime interface only, in the
 * canonical order: init, load, get model tensor info, allocate tensors and
 * sets, write, execute, read, unload, close.  The expected outputs come from
 * tests/models/host_ref.c.  The memory table is what sysfs says.  The text is
 * demo_decoder.c's, with libneuron.
 */
#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nrt/nrt.h>
#include <nrt/nrt_experimental.h>

#include "demo.h"
#include "heldout.h"
#include "host_ref.h"

#define WANTED_ACCURACY	96.0
#define SYSFS		"/sys/class/neuron_device"
#define MODELS		"share/neuron/models"
#define MAX_CATEGORIES	32

static struct {
	const char *dir, *model;
	unsigned long limit, passes;
} options = { .passes = 1 };

static int failed;

bool report(bool ok, const char *fmt, ...)
{
	va_list ap;

	printf("%s - ", ok ? "ok" : "not ok");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	failed += !ok;
	return ok;
}

/* ---- memory table ---- */

enum moment { START, INIT, LOADED, RUNNING, UNLOADED, CLOSED, NR_MOMENTS };

static const char *const moments[] = {
	"start", "initialised", "loaded", "running", "unloaded", "closed"
};

struct memory {
	char dir[128];			/* of the core */
	uint32_t device, core;
	size_t nr;
	char name[MAX_CATEGORIES][48];
	uint64_t bytes[MAX_CATEGORIES][NR_MOMENTS];
};

static bool read_number(const char *path, uint64_t *value)
{
	FILE *f = fopen(path, "r");
	bool ok = f && fscanf(f, "%" SCNu64, value) == 1;

	if (f)
		fclose(f);
	return ok;
}

/* Directory of the first core that the runtime will use: cores count through devices. */
static bool find_core(struct memory *m)
{
	const char *visible = getenv("NEURON_RT_VISIBLE_CORES");
	unsigned long core = visible ? strtoul(visible, NULL, 10) : 0;

	for (unsigned int dev = 0;; dev++) {
		char path[128];
		uint64_t count;

		snprintf(path, sizeof(path), SYSFS "/neuron%u/core_count", dev);
		if (!read_number(path, &count))
			return false;
		if (core < count) {
			snprintf(m->dir, sizeof(m->dir), SYSFS "/neuron%u/neuron_core%lu", dev,
				 core);
			m->device = dev;
			m->core = (uint32_t)core;
			return true;
		}
		core -= count;
	}
}

static void add_category(struct memory *m, const char *name)
{
	if (m->nr < MAX_CATEGORIES && strlen(name) < sizeof(m->name[0]))
		strcpy(m->name[m->nr++], name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Categories of device memory, then the sum, then host memory. */
static bool find_categories(struct memory *m)
{
	char path[192];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%.127s/stats/memory_usage/device_mem", m->dir);
	d = opendir(path);
	if (!d)
		return false;
	while ((e = readdir(d))) {
		char file[512];
		uint64_t value;

		snprintf(file, sizeof(file), "%s/%s/total", path, e->d_name);
		if (e->d_name[0] == '.' || !read_number(file, &value))
			continue;
		snprintf(file, sizeof(file), "device_mem/%s", e->d_name);
		add_category(m, file);
	}
	closedir(d);
	qsort(m->name, m->nr, sizeof(m->name[0]), by_name);
	add_category(m, "device_mem");
	add_category(m, "host_mem");
	return true;
}

static void take(struct memory *m, enum moment when)
{
	for (size_t i = 0; i < m->nr; i++) {
		char path[256];

		snprintf(path, sizeof(path), "%.127s/stats/memory_usage/%s/total", m->dir, m->name[i]);
		if (!read_number(path, &m->bytes[i][when]))
			report(false, "%s: cannot read", path);
	}
}

static void print_memory(const struct memory *m)
{
	printf("# memory of %s in bytes\n#   %-36s", m->dir, "");
	for (int i = 0; i < NR_MOMENTS; i++)
		printf(" %11s", moments[i]);
	putchar('\n');
	for (size_t c = 0; c < m->nr; c++) {
		uint64_t any = 0;

		for (int i = 0; i < NR_MOMENTS; i++)
			any |= m->bytes[c][i];
		if (!any && strchr(m->name[c], '/'))
			continue;
		printf("#   %-36s", m->name[c]);
		for (int i = 0; i < NR_MOMENTS; i++)
			printf(" %11" PRIu64, m->bytes[c][i]);
		putchar('\n');
	}
}

static void check_memory(const struct memory *m)
{
	bool back = true, seen = false;

	for (size_t c = 0; c < m->nr; c++) {
		const uint64_t *b = m->bytes[c];

		if (b[UNLOADED] != b[INIT] || b[CLOSED] != b[START]) {
			printf("# %s: %" PRIu64 " -> %" PRIu64 " by unload, %" PRIu64 " -> %"
			       PRIu64 " by close\n", m->name[c], b[INIT], b[UNLOADED], b[START],
			       b[CLOSED]);
			back = false;
		}
		/* A table of zeros would be "back" as well. */
		if (!strcmp(m->name[c], "device_mem"))
			seen = b[LOADED] > b[INIT] && b[RUNNING] > b[LOADED];
	}
	report(seen, "memory grows with the model, and again with its tensors");
	report(back, "memory is back where it was after unload and after close");
}

/* A card may write to its notification queues until its cores are reset. */
static void take_closed(struct memory *m)
{
	const struct timespec pause = { .tv_nsec = 100000000 };

	for (int i = 0; i < 100; i++) {
		bool back = true;

		take(m, CLOSED);
		for (size_t c = 0; c < m->nr; c++)
			back &= m->bytes[c][CLOSED] == m->bytes[c][START];
		if (back)
			return;
		nanosleep(&pause, NULL);
	}
}

/* ---- one model ---- */

struct run {
	const uint8_t *images;
	size_t nr_images;
	void *bytes;			/* of the NEFF */
	size_t size;
	struct host_model host;
	nrt_model_t *model;
	nrt_tensor_info_array_t *info;
	const nrt_tensor_info_t *in, *out;
	nrt_tensor_t *in_tensor, *out_tensor;
	nrt_tensor_set_t *in_set, *out_set;
	size_t batch;
	size_t right, identical, done, executions;
	double seconds;
};

static bool ok(NRT_STATUS status, const char *what)
{
	if (status != NRT_SUCCESS)
		report(false, "%s: %s", what, nrt_get_status_as_str(status));
	return status == NRT_SUCCESS;
}

void *demo_read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	void *bytes = NULL;
	long n = 0;

	if (f && !fseek(f, 0, SEEK_END))
		n = ftell(f);
	if (n > 0 && !fseek(f, 0, SEEK_SET))
		bytes = malloc((size_t)n);
	if (!bytes || fread(bytes, 1, (size_t)n, f) != (size_t)n) {
		report(false, "%s: %s", path, errno ? strerror(errno) : "cannot read");
		free(bytes);
		bytes = NULL;
	}
	if (f)
		fclose(f);
	*size = (size_t)n;
	return bytes;
}

/* The constants for the host's computation, from the same bytes. */
static bool read_host_model(struct run *r)
{
	struct neuron_neff_error e = { .size = sizeof(e) };
	struct neuron_neff_opts o = { .size = sizeof(o), .error = &e };
	struct neuron_neff *neff;
	int err;

	if (neuron_neff_open(r->bytes, r->size, &o, &neff))
		return report(false, "%s", e.text);
	err = host_model_init(&r->host, neff);
	neuron_neff_close(neff);
	return !err || report(false, "the NEFF is not the digit classifier");
}

static void print_tensor(const nrt_tensor_info_t *t)
{
	printf("# %s %s: %s, ", t->usage == NRT_TENSOR_USAGE_INPUT ? "input" : "output", t->name,
	       neuron_neff_dtype_name((enum neuron_neff_dtype)t->dtype));
	for (uint32_t i = 0; i < t->ndim; i++)
		printf("%s%u", i ? " x " : "", t->shape[i]);
	printf(", %zu bytes\n", t->size);
}

static bool inspect(struct run *r)
{
	if (!ok(nrt_get_model_tensor_info(r->model, &r->info), "nrt_get_model_tensor_info"))
		return false;
	for (uint64_t i = 0; i < r->info->tensor_count; i++) {
		const nrt_tensor_info_t *t = &r->info->tensor_array[i];

		print_tensor(t);
		if (t->usage == NRT_TENSOR_USAGE_INPUT)
			r->in = t;
		else
			r->out = t;
	}
	if (r->info->tensor_count != 2 || !r->in || !r->out || r->in->ndim != 2 ||
	    r->in->shape[1] != HELDOUT_PIXELS || r->in->size % HELDOUT_PIXELS)
		return report(false, "the model has other inputs and outputs than expected");
	r->batch = r->in->size / HELDOUT_PIXELS;
	return r->out->size == r->batch * HOST_CLASSES * 4 ||
	       report(false, "the output has %zu bytes", r->out->size);
}

static bool allocate(struct run *r)
{
	return ok(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, r->in->size, r->in->name,
				      &r->in_tensor), "nrt_tensor_allocate (input)") &&
	       ok(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, r->out->size, r->out->name,
				      &r->out_tensor), "nrt_tensor_allocate (output)") &&
	       ok(nrt_allocate_tensor_set(&r->in_set), "nrt_allocate_tensor_set") &&
	       ok(nrt_allocate_tensor_set(&r->out_set), "nrt_allocate_tensor_set") &&
	       ok(nrt_add_tensor_to_tensor_set(r->in_set, r->in->name, r->in_tensor),
		  "nrt_add_tensor_to_tensor_set (input)") &&
	       ok(nrt_add_tensor_to_tensor_set(r->out_set, r->out->name, r->out_tensor),
		  "nrt_add_tensor_to_tensor_set (output)");
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check_batch(struct run *r, size_t first, size_t n, const uint8_t *out)
{
	for (size_t i = 0; i < n; i++) {
		const uint8_t *row = r->images + (first + i) * HELDOUT_ROW;
		uint32_t want[HOST_CLASSES], got[HOST_CLASSES];

		memcpy(got, out + i * sizeof(got), sizeof(got));
		host_model_run(&r->host, row, want);
		if (!memcmp(got, want, sizeof(want)))
			r->identical++;
		else if (r->identical == r->done)
			printf("# image %zu: device 0x%08x ..., host 0x%08x ...\n", first + i,
			       got[0], want[0]);
		r->right += host_model_class(&r->host, got) == row[HELDOUT_PIXELS];
		r->done++;
	}
}

static bool classify(struct run *r, struct memory *memory)
{
	uint8_t *in = calloc(1, r->in->size), *out = malloc(r->out->size);
	size_t quarter = (r->nr_images + 3) / 4, next = quarter;
	bool good = in && out;

	for (size_t first = 0; good && first < r->nr_images; first += r->batch) {
		size_t n = r->nr_images - first < r->batch ? r->nr_images - first : r->batch;
		double start;

		for (size_t i = 0; i < n; i++)
			memcpy(in + i * HELDOUT_PIXELS, r->images + (first + i) * HELDOUT_ROW,
			       HELDOUT_PIXELS);
		memset(out, 0xff, r->out->size);
		start = now();
		good = ok(nrt_tensor_write(r->in_tensor, in, 0, r->in->size),
			  "nrt_tensor_write") &&
		       ok(nrt_execute(r->model, r->in_set, r->out_set), "nrt_execute") &&
		       ok(nrt_tensor_read(r->out_tensor, out, 0, r->out->size),
			  "nrt_tensor_read");
		r->seconds += now() - start;
		if (!good)
			break;
		if (!r->executions++)
			take(memory, RUNNING);
		check_batch(r, first, n, out);
		if (first + n >= next) {
			printf("# %5zu of %zu images, so far %.1f %% right\n", first + n,
			       r->nr_images, 100.0 * (double)r->right / (double)r->done);
			fflush(stdout);
			next += quarter;
		}
	}
	free(in);
	free(out);
	return good;
}

static bool execute(struct run *r, struct memory *memory)
{
	double percent;

	if (!inspect(r) || !allocate(r))
		return false;
	for (unsigned long pass = 0; pass < options.passes; pass++)
		if (!classify(r, memory))
			return false;
	percent = 100.0 * (double)r->right / (double)r->done;
	report(percent >= WANTED_ACCURACY, "accuracy %.2f %% (%zu of %zu held-out images)",
	       percent, r->right, r->done);
	report(r->identical == r->done, "%zu of %zu outputs identical bit for bit to the host",
	       r->identical, r->done);
	printf("# %.1f inferences per second (%zu executions of %zu images, %.2f s)\n",
	       (double)r->done / r->seconds, r->executions, r->batch, r->seconds);
	return true;
}

static void release(struct run *r)
{
	nrt_destroy_tensor_set(&r->in_set);
	nrt_destroy_tensor_set(&r->out_set);
	nrt_tensor_free(&r->in_tensor);
	nrt_tensor_free(&r->out_tensor);
	if (r->info)
		nrt_free_model_tensor_info(r->info);
	if (r->model)
		ok(nrt_unload(r->model), "nrt_unload");
}

/* Load to unload; false if it did not get through. */
static bool run_model(const char *name, const uint8_t *images, size_t nr,
		      struct memory *memory)
{
	struct run *r = calloc(1, sizeof(*r));
	char path[4096];
	bool good;

	if (!r)
		error(EXIT_FAILURE, ENOMEM, "allocation");
	printf("# --- %s\n", name);
	r->images = images;
	r->nr_images = nr;
	snprintf(path, sizeof(path), "%s/%s.neff", options.dir, name);
	r->bytes = demo_read_file(path, &r->size);
	good = r->bytes && read_host_model(r);
	if (good) {
		take(memory, INIT);
		good = ok(nrt_load(r->bytes, r->size, 0, -1, &r->model), "nrt_load");
	}
	if (good) {
		take(memory, LOADED);
		good = execute(r, memory);
	}
	release(r);
	take(memory, UNLOADED);
	free(r->bytes);
	free(r);
	return good;
}

/*
 * The driver makes the core's copy ring with the first copy and keeps it until
 * the core is released.  It belongs to no model: let it come before them.
 */
static bool first_copy(void)
{
	nrt_tensor_t *t = NULL;
	uint64_t word = 0;
	bool good;

	good = ok(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, sizeof(word), NULL, &t),
		  "nrt_tensor_allocate") &&
	       ok(nrt_tensor_write(t, &word, 0, sizeof(word)), "nrt_tensor_write") &&
	       ok(nrt_tensor_read(t, &word, 0, sizeof(word)), "nrt_tensor_read");
	nrt_tensor_free(&t);
	return good;
}

/* Of all that there are, or the one that was named; some images take no text along. */
static bool wanted(const char *name)
{
	if (options.model)
		return !strcmp(options.model, name);
	return !options.limit || strcmp(name, "decoder");
}

/* Init to close, with the models one after the other; then what does without the runtime. */
static void run_all(const uint8_t *images, size_t nr)
{
	static const char *const names[] = { "mnist-bf16", "mnist-int8" };
	struct memory memory[2] = { 0 };
	bool good[2] = { false };

	for (int i = 0; i < 2; i++) {
		if (!find_core(&memory[i]) || !find_categories(&memory[i])) {
			report(false, access(SYSFS, F_OK) ?
			       "no Neuron device; is the module loaded (modprobe neuron_emu)?" :
			       "no memory counters below " SYSFS);
			return;
		}
		take(&memory[i], START);
	}
	if (!ok(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), "nrt_init"))
		return;
	for (int i = 0; i < 2 && (i || first_copy()); i++)
		if (wanted(names[i]))
			good[i] = run_model(names[i], images, nr, &memory[i]);
	nrt_close();
	for (int i = 0; i < 2; i++) {
		if (!good[i])
			continue;
		take_closed(&memory[i]);
		printf("# --- %s\n", names[i]);
		print_memory(&memory[i]);
		check_memory(&memory[i]);
	}
	if (wanted("decoder"))
		demo_decoder(options.dir, memory[0].device, memory[0].core);
}

/* For somebody who sees this for the first time. */
static void print_end(size_t nr)
{
	printf("# --- what was shown\n"
	       "# Neural networks were loaded from NEFF files into the memory of a NeuronCore. They\n"
	       "# classified %zu handwritten digits that they had not seen in training. A plain\n"
	       "# implementation on the host gave the same bits, and all memory came back. A decoder\n"
	       "# wrote several texts at a time, with their keys and values in blocks of a pool.\n"
	       "# --- what to try next\n"
	       "#   neuron-demo -p 100 >/dev/null &   keeps the device busy, while you look at it with\n"
	       "#   neuron-top                        memory, executions and errors as they change\n"
	       "#   neuron-mem map                    which process holds what, and the holes\n"
	       "#   neuron-preflight %s/mnist-int8.neff\n"
	       "#                                     what a model takes, and whether it fits\n"
	       "#   neuron-profile capture -n %s/mnist-int8.neff\n"
	       "#                                     what the engines do in a run, for Perfetto\n"
	       "#   man neuron                        how to write programs of your own\n",
	       nr, options.dir, options.dir);
}

static const struct argp_option option_table[] = {
	{ "model", 'm', "NAME", 0, "Only this model: mnist-bf16, mnist-int8 or decoder", 0 },
	{ "images", 'n', "COUNT", 0, "Only the first COUNT images, and no text", 0 },
	{ "passes", 'p', "COUNT", 0, "Go through the images COUNT times", 0 },
	{ 0 }
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	char *end;

	switch (key) {
	case 'm':
		if (strcmp(arg, "mnist-bf16") && strcmp(arg, "mnist-int8") && strcmp(arg, "decoder"))
			argp_error(state, "no model is called %s", arg);
		options.model = arg;
		break;
	case 'n':
		options.limit = strtoul(arg, &end, 10);
		if (end == arg || *end || !options.limit)
			argp_error(state, "%s is not a count", arg);
		break;
	case 'p':
		options.passes = strtoul(arg, &end, 10);
		if (end == arg || *end || !options.passes)
			argp_error(state, "%s is not a count", arg);
		break;
	case ARGP_KEY_ARG:
		if (options.dir)
			argp_usage(state);
		options.dir = arg;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* Where "make install" puts the models: next to this program, whatever the prefix. */
static const char *installed_models(void)
{
	static char path[4000];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - sizeof(MODELS) - 1);
	int i;

	for (i = 0; i < 2; i++)
		while (len > 0 && path[--len] != '/')
			;
	if (len < 0)
		len = 0;
	strcpy(path + len, "/" MODELS);
	return path;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		option_table, parse_option, "[DIRECTORY]",
		"Classify handwritten digits and write text on a Neuron device, and check every output.",
		NULL, NULL, NULL
	};
	char path[4096];
	uint8_t *images;
	size_t nr;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (!options.dir)
		options.dir = installed_models();
	/* One core is enough, and the table shows that one. */
	setenv("NEURON_RT_VISIBLE_CORES", "0", 0);
	/* One core is enough, and sysfs counts physical ones. */
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 0);
	snprintf(path, sizeof(path), "%s/mnist-heldout.npy.gz", options.dir);
	images = heldout_read(path, &nr);
	if (!images)
		error(EXIT_FAILURE, errno, "%s", path);
	if (options.limit && options.limit < nr)
		nr = options.limit;
	run_all(images, nr);
	if (!failed)
		print_end(nr);
	free(images);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * A model with many weights is loaded and unloaded with a few calls, and all is as with a driver
 * that allocates and frees one by one only: this program takes those calls away from it.
 *
 * usage: neuron_many [ROUNDS]; prints how long it took, both ways in turn
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#include <neuron/neuron.h>

#include "neuron_ioctl.h"
#include "neuron_native.h"
#include "nrt_guest.h"

#define WEIGHTS	200
#define MIB	(1ull << 20)

static struct neuron_device *device;
static struct neuron_core *core;
static struct neff neff;
static bool one_by_one;
static unsigned int calls[256];

/* In the place of libc's, for libneuron too. */
int ioctl(int fd, unsigned long cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	if (one_by_one && (cmd == NEURON_NATIVE_MEM_ALLOC_BULK || cmd == NEURON_NATIVE_MEM_FREE_BULK)) {
		errno = ENOTTY;
		return -1;
	}
	calls[_IOC_NR(cmd)]++;
	return (int)syscall(SYS_ioctl, fd, cmd, arg);
}

static unsigned int allocs(void)
{
	return calls[_IOC_NR(NEURON_NATIVE_MEM_ALLOC)] + calls[_IOC_NR(NEURON_NATIVE_MEM_ALLOC_BULK)];
}

static unsigned int frees(void)
{
	return calls[_IOC_NR(NEURON_IOCTL_MEM_FREE)] + calls[_IOC_NR(NEURON_NATIVE_MEM_FREE_BULK)];
}

/* What a load and an unload did. */
struct story {
	int ret;
	struct neuron_error error;
	struct neuron_model_usage usage;
	struct neuron_range *ranges;
	size_t nr_ranges;
	uint64_t failures;
	unsigned int allocs, frees;
	uint64_t memory_ns, load_ns, unload_ns;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct neuron_hbm_stats hbm(void)
{
	struct neuron_hbm_stats s = { .size = sizeof(s) };

	if (neuron_hbm_get_stats(device, 0, &s)) {
		printf("not ok - statistics\n");
		exit(1);
	}
	return s;
}

static uint64_t failures(void)
{
	struct neuron_hbm_stats s = hbm();

	return s.fail_full + s.fail_fragmented + s.fail_alignment + s.fail_capped;
}

static void tell(struct story *s)
{
	struct neuron_load_stats stats = { .size = sizeof(stats) };
	struct neuron_model_opts o = {
		.size = sizeof(o), .error = &s->error, .stats = &stats, .short_constants = true,
	};
	struct neuron_model *model = NULL;
	uint64_t began, before = failures();

	memset(s, 0, sizeof(*s));
	s->error.size = sizeof(s->error);
	s->usage.size = sizeof(s->usage);
	memset(calls, 0, sizeof(calls));
	s->ret = neuron_model_load(core, neff.data, neff.size, &o, &model);
	s->allocs = allocs();
	s->memory_ns = stats.memory_ns;
	s->load_ns = stats.total_ns;
	if (!s->ret && (neuron_model_get_usage(model, &s->usage) ||
			neuron_hbm_get_ranges(device, 0, &s->ranges, &s->nr_ranges)))
		printf("not ok - figures\n");
	began = now_ns();
	neuron_model_unload(model);
	s->unload_ns = now_ns() - began;
	s->frees = frees();
	s->failures = failures() - before;
}

/* @way[0]: as it is; @way[1]: one by one. */
static void tell_both(struct story way[2])
{
	for (int i = 0; i < 2; i++) {
		one_by_one = i;
		tell(&way[i]);
	}
	one_by_one = false;
}

static void forget(struct story way[2])
{
	free(way[0].ranges);
	free(way[1].ranges);
}

static void make(void)
{
	static char def[WEIGHTS * 128];
	static const uint8_t bytes[4096] = { 1, 2, 3 };
	int n = sprintf(def, "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {}, \"var\": {");

	for (unsigned int i = 0; i < WEIGHTS; i++)
		n += sprintf(def + n, "%s\"w%u\": {\"type\": \"file\", \"var_id\": %u, \"size\": %llu,"
			     " \"alignment\": %u, \"file_name\": \"k.bin\"}", i ? ", " : "", i, i,
			     MIB + 4096 * (i % 7), i % 5 ? 64 : 65536);
	strcpy(def + n, "}}");
	neff_start(&neff);
	neff_text(&neff, "sg00/def.json", def);
	neff_text(&neff, "sg00/SP.json", "{\"dma\": []}");
	neff_add(&neff, "sg00/k.bin", bytes, sizeof(bytes));
	neff_end(&neff, "weights");
}

static const struct neuron_range *next_owned(const struct story *s, size_t *i)
{
	while (*i < s->nr_ranges && s->ranges[*i].state != NEURON_RANGE_OWNED)
		++*i;
	return *i < s->nr_ranges ? &s->ranges[(*i)++] : NULL;
}

/* Owners are new each time; that of the weights is the model. */
static bool same_ranges(const struct story *a, const struct story *b)
{
	const struct neuron_range *x, *y;
	size_t i = 0, k = 0, weights = 0;

	do {
		x = next_owned(a, &i);
		y = next_owned(b, &k);
		if (!x != !y)
			return false;
		if (x && (x->address != y->address || x->bytes != y->bytes || x->nc != y->nc ||
			  x->category != y->category || x->pid != y->pid || !x->owner != !y->owner))
			return false;
		weights += x && x->category == NEURON_MEM_CONSTANTS && x->owner;
	} while (x);
	return weights == WEIGHTS;
}

static void test_load(void)
{
	struct story way[2];

	tell_both(way);
	CHECK(!way[0].ret && !way[1].ret, "loads: %s", way[0].error.text);
	CHECK(way[1].allocs > WEIGHTS && way[1].frees > WEIGHTS, "one by one: %u and %u calls",
	      way[1].allocs, way[1].frees);
	CHECK(way[0].allocs < 10 && way[0].frees < 5, "together: %u and %u", way[0].allocs,
	      way[0].frees);
	CHECK(same_ranges(&way[0], &way[1]), "each weight is where it was, and whose it was");
	CHECK(!memcmp(&way[0].usage, &way[1].usage, sizeof(way[0].usage)), "and is accounted for");
	CHECK(!way[0].failures && !way[1].failures, "nothing is refused");
	forget(way);
}

/* Another process would have to be asked what it has; this one leaves room for some weights. */
static void test_refused(void)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS };
	struct neuron_hbm_stats before;
	struct neuron_mem *mem;
	struct story way[2];

	before = hbm();
	CHECK(!neuron_mem_alloc(device, before.largest_free - 100 * MIB, &o, &mem), "little is left");
	before = hbm();
	tell_both(way);
	CHECK(way[0].ret == -ENOMEM && way[1].ret == -ENOMEM, "is refused: %s", way[0].error.text);
	CHECK(!strcmp(way[0].error.text, way[1].error.text), "in the same words");
	CHECK(!memcmp(&way[0].error.memory, &way[1].error.memory, sizeof(way[0].error.memory)),
	      "with the same figures");
	CHECK(way[0].failures && way[0].failures == way[1].failures,
	      "the driver counts as many refusals: %llu, %llu", (unsigned long long)way[0].failures,
	      (unsigned long long)way[1].failures);
	CHECK(hbm().used == before.used && hbm().nr_allocs == before.nr_allocs, "nothing stays");
	forget(way);
	neuron_mem_free(mem);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(uint64_t *ns, unsigned int n)
{
	qsort(ns, n, sizeof(*ns), compare);
	return (double)ns[n / 2] / 1000;
}

static void measure(unsigned int n)
{
	uint64_t *ns[2][3];
	struct story way[2];

	for (int i = 0; i < 6; i++)
		ns[i / 3][i % 3] = calloc(n, sizeof(uint64_t));
	for (unsigned int r = 0; r < n; r++) {
		tell_both(way);
		for (int i = 0; i < 2; i++) {
			ns[i][0][r] = way[i].memory_ns;
			ns[i][1][r] = way[i].load_ns;
			ns[i][2][r] = way[i].unload_ns;
		}
		forget(way);
	}
	for (int i = 0; i < 2; i++)
		printf("{\"work\":\"many\",\"one_by_one\":%d,\"rounds\":%u,\"memory_us\":%.1f,\"load_us\":%.1f,\"unload_us\":%.1f}\n",
		       i, n, median(ns[i][0], n), median(ns[i][1], n), median(ns[i][2], n));
	for (int i = 0; i < 6; i++)
		free(ns[i / 3][i % 3]);
}

int main(int argc, char **argv)
{
	struct neuron_hbm_stats before;
	struct counters start, end;

	if (neuron_device_open(0, &device) || neuron_core_open(device, 0, NULL, &core)) {
		printf("not ok - device\n");
		return 1;
	}
	make();
	before = hbm();
	counters_take(&start);
	test_load();
	test_refused();
	measure(argc > 1 ? (unsigned int)atoi(argv[1]) : 20);
	counters_take(&end);
	CHECK(counters_equal(&start, &end), "every counter is as before");
	CHECK(hbm().used == before.used && hbm().largest_free == before.largest_free,
	      "so is the memory of the device");
	neuron_core_close(core);
	neuron_device_close(device);
	return failed != 0;
}

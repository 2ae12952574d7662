// SPDX-License-Identifier: GPL-2.0-only
/*
 * Models of many kinds loaded, run and unloaded again and again: nothing is refused, and
 * afterwards everything is as before, on the device, in the driver and in the process.
 * "make bench-nrt" does it 1,000 times.
 *
 * usage: load_cycles [CYCLES]
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <malloc.h>

#include <neuron/neuron.h>

#define NEFF_ROOM (5 << 20)
#include "nrt_guest.h"

#define MAX_LOADED 4

static struct neuron_device *device;
static struct neuron_core *core[2];
static struct neff neff;
static unsigned int seed = 1;

/* What must come back. */
struct state {
	struct counters counters;
	struct neuron_hbm_stats hbm;
	struct mallinfo2 heap;
	unsigned int fds;
	unsigned int mappings;
};

static unsigned int lines(const char *path)
{
	unsigned int n = 0;
	FILE *f = fopen(path, "r");
	int c;

	while (f && (c = fgetc(f)) != EOF)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

static unsigned int files(const char *path)
{
	unsigned int n = 0;
	DIR *d = opendir(path);

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void take(struct state *s)
{
	counters_take(&s->counters);
	s->hbm = (struct neuron_hbm_stats){ .size = sizeof(s->hbm) };
	if (neuron_hbm_get_stats(device, 0, &s->hbm)) {
		printf("not ok - statistics\n");
		exit(1);
	}
	s->fds = files("/proc/self/fd");
	s->mappings = lines("/proc/self/maps");
	s->heap = mallinfo2();
}

/* A constant of any size, which a run copies to a private area. */
static void neff_constant(void)
{
	static uint8_t bytes[4 << 20];
	unsigned int size = 1024u << rand_r(&seed) % 13;
	char text[1024];

	size -= rand_r(&seed) % 512;
	memset(bytes, rand_r(&seed), size);
	neff_start(&neff);
	snprintf(text, sizeof(text),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\":"
		 " {\"q\": {\"type\": \"data\"}}, \"var\": {"
		 " \"k\": {\"type\": \"file\", \"var_id\": 0, \"size\": %u, \"file_name\": \"k.bin\"},"
		 " \"t\": {\"type\": \"tmp-buf\", \"var_id\": 1, \"size\": %u}}}", size, size);
	neff_text(&neff, "sg00/def.json", text);
	snprintf(text, sizeof(text),
		 "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": ["
		 "{\"from\": \"k\", \"from_sizes\": [%u], \"from_steps\": [1],"
		 " \"to\": \"t\", \"to_sizes\": [%u], \"to_steps\": [1]}]}]}", size, size);
	neff_text(&neff, "sg00/SP.json", text);
	neff_add(&neff, "sg00/k.bin", bytes, size);
	neff_end(&neff, "constant");
}

/* One of the kinds; how many inputs and outputs it has is in @nr_io. */
static void make(unsigned int kind, size_t *nr_io)
{
	struct neuron_isa_inst code[2] = { inst(NEURON_ISA_OP_PROLOGUE), inst(NEURON_ISA_OP_NOTIFY) };

	*nr_io = 0;
	code[1].u.notify.id = htole32(1);
	switch (kind) {
	case 0:
		neff_program(&neff, code, sizeof(code));
		break;
	case 1:
		neff_list(&neff);
		*nr_io = 2;
		break;
	case 2:		/* up to 1.5 GiB of scratchpad, which come and go */
		neff_sized(&neff, 1 + rand_r(&seed) % (64 << 20),
			   (uint64_t)(rand_r(&seed) % 1536) << 20);
		break;
	default:
		neff_constant();
		break;
	}
}

/* Also what is refused must leave nothing. */
static bool broken_refused(struct neuron_core *c)
{
	struct neuron_model *m;
	uint64_t size;

	neff_constant();
	/* A constant that is longer than its variable: found after everything was unpacked. */
	for (char *p = (char *)neff.data; p < (char *)neff.data + neff.size - 6; p++)
		if (!memcmp(p, "\"size\":", 7)) {
			memcpy(p, "\"siz_\":", 7);
			break;
		}
	if (neuron_model_load(c, neff.data, neff.size, NULL, &m) != -EINVAL)
		return false;
	size = neff.size / 2;
	memcpy(neff.data + 16, &(uint64_t){ htole64(size - 1024) }, 8);
	return neuron_model_load(c, neff.data, size, NULL, &m) == -EINVAL;
}

static bool cycles(unsigned int n, const struct neuron_io *io)
{
	struct neuron_model *loaded[MAX_LOADED] = { NULL };
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts o = { .size = sizeof(o), .error = &error };
	bool ok = true;

	for (unsigned int i = 0; i < n && ok; i++) {
		unsigned int at = rand_r(&seed) % MAX_LOADED;
		struct neuron_core *c = core[rand_r(&seed) % 2];
		size_t nr_io;
		int ret;

		neuron_model_unload(loaded[at]);
		loaded[at] = NULL;
		make(i < 4 ? i : (unsigned int)rand_r(&seed) % 6, &nr_io);
		ret = neuron_model_load(c, neff.data, neff.size, &o, &loaded[at]);
		if (!ret)
			ret = neuron_model_run(loaded[at], io, nr_io, 60000, NULL);
		if (ret) {
			printf("# cycle %u: %s: %s\n", i, strerror(-ret), error.text);
			ok = false;
		}
		if (i % 8 == 7)
			ok = ok && broken_refused(c);
	}
	for (unsigned int i = 0; i < MAX_LOADED; i++)
		neuron_model_unload(loaded[i]);
	return ok;
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? (unsigned int)atoi(argv[1]) : 60;
	struct neuron_mem_opts mo = { .size = sizeof(mo), .category = NEURON_MEM_TENSORS };
	static struct state before, after;
	struct neuron_mem *x, *y;
	struct neuron_io io[2];

	/* What malloc() keeps for the next call would count as in use. */
	if (!getenv("GLIBC_TUNABLES")) {
		setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
		/* So would what lay where in models that are gone. */
		setenv("NEURON_REMEMBER", "0", 1);
		execv("/proc/self/exe", argv);
	}
	if (neuron_device_open(0, &device) || neuron_core_open(device, 0, NULL, &core[0]) ||
	    neuron_core_open(device, 1, NULL, &core[1]) ||
	    neuron_mem_alloc(device, LIST_IN, &mo, &x) || neuron_mem_alloc(device, LIST_OUT, &mo, &y)) {
		printf("not ok - device\n");
		return 1;
	}
	io[0] = (struct neuron_io){ "x", x, 0, LIST_IN };
	io[1] = (struct neuron_io){ "y", y, 0, LIST_OUT };
	/* What is made once and stays. */
	CHECK(cycles(8, io), "a few models");
	take(&before);
	take(&before);
	CHECK(cycles(n, io), "%u models of all kinds: none is refused", n);
	take(&after);
	CHECK(counters_equal(&before.counters, &after.counters), "every counter is as before");
	CHECK(after.hbm.used == before.hbm.used && after.hbm.free == before.hbm.free &&
	      after.hbm.nr_allocs == before.hbm.nr_allocs, "so is the memory of the device");
	CHECK(after.hbm.largest_free == before.hbm.largest_free, "and it is in as few pieces");
	CHECK(after.hbm.fail_full == before.hbm.fail_full &&
	      after.hbm.fail_fragmented == before.hbm.fail_fragmented &&
	      after.hbm.fail_alignment == before.hbm.fail_alignment &&
	      after.hbm.fail_capped == before.hbm.fail_capped, "nothing was refused");
	CHECK(after.hbm.metadata <= before.hbm.metadata, "the driver has what it had: %llu bytes",
	      (unsigned long long)after.hbm.metadata);
	CHECK(after.heap.uordblks == before.heap.uordblks && after.heap.hblkhd == before.heap.hblkhd,
	      "the process has what it had: %zu bytes, then %zu", before.heap.uordblks,
	      after.heap.uordblks);
	CHECK(after.fds == before.fds && after.mappings == before.mappings,
	      "descriptors and mappings: %u, %u, then %u, %u", before.fds, before.mappings, after.fds,
	      after.mappings);
	printf("{\"work\":\"cycles\",\"number\":%u,\"device_before\":%llu,\"device_after\":%llu,\"host_before\":%zu,\"host_after\":%zu}\n",
	       n, (unsigned long long)before.hbm.used, (unsigned long long)after.hbm.used,
	       before.heap.uordblks + before.heap.hblkhd, after.heap.uordblks + after.heap.hblkhd);
	neuron_mem_free(x);
	neuron_mem_free(y);
	neuron_core_close(core[0]);
	neuron_core_close(core[1]);
	neuron_device_close(device);
	return failed != 0;
}

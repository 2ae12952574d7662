// SPDX-License-Identifier: GPL-2.0-only
/*
 * What allocation traces are recorded from: processes that load, run and unload
 * models through the runtime interface. The models have the tensors of public
 * decoder shapes (../trace.h); their weights are zero, which the software device
 * does not store, so that a full device fits into a small guest.
 *
 * usage: loads serve|swap|pair|requests [LOADS [SEED]]
 *
 *   serve	models stay until there is no room for the next one: the oldest goes
 *   swap	the same, but any of them may go
 *   pair	two processes do that at once, on two cores of one device memory
 *   requests	two models stay; tensors of requests come and go
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include <nrt/nrt.h>
#include <nrt/nrt_experimental.h>

#include "../trace.h"
#define NEFF_ROOM (4 << 20)
#include "../../vm/guest/nrt_guest.h"

#define MAX_RESIDENT	64
#define MAX_CACHES	256
/* Nothing larger moves to a state buffer at once. */
#define PIECE		(16 * MIB)
/* Models with more weights are loaded, but not run: an emulated processor is slow. */
#define RUN_BYTES	(1 * GIB)

/* A loaded model and the tensors that belong to it. */
struct resident {
	nrt_model_t *model;
	nrt_tensor_set_t *in, *out;
	nrt_tensor_t *tensor[MAX_CACHES];
	u32 nr_tensors;
	u64 bytes;
};

/* A description under construction. */
struct plan {
	FILE *vars, *moves;
	u32 nr;
	u64 bytes;		/* of weights */
	u64 all;		/* and of all that only this model uses */
};

static struct resident resident[MAX_RESIDENT];
static u32 nr_resident;
static u64 held, limit;		/* bytes of this process, and how far it goes */
static struct rng rng;

static void var(struct plan *p, const char *type, u64 size, const char *more)
{
	fprintf(p->vars, ",\n\"v%u\": {\"type\": \"%s\", \"var_id\": %u, \"size\": %llu%s}",
		p->nr, type, p->nr, (unsigned long long)size, more);
	p->nr++;
}

/* A weight, and the transfers that bring it to the state buffer. */
static void weight(struct plan *p, u64 elems)
{
	u64 size = elems * 2, off, n;

	for (off = 0; off < size; off += n) {
		n = size - off < PIECE ? size - off : PIECE;
		fprintf(p->moves,
			"%s{\"from\": \"v%u\", \"from_off\": %llu, \"from_sizes\": [%llu],"
			" \"from_steps\": [1], \"to\": \"sb\", \"to_sizes\": [%llu],"
			" \"to_steps\": [1]}", p->bytes + off ? ",\n" : "", p->nr,
			(unsigned long long)off, (unsigned long long)n, (unsigned long long)n);
	}
	var(p, "file", size, ", \"file_name\": \"w.bin\"");
	p->bytes += size;
}

/* The part of a model that one core holds. */
static void describe(struct neff *neff, const struct shape *s, struct plan *p)
{
	u64 h = s->hidden, tp = s->shards, ctx = 2048u << rng_below(&rng, 3);
	u32 l, i, experts = s->experts ? s->experts : 1;
	char *vars, *moves, *def, *list;
	size_t size;

	memset(p, 0, sizeof(*p));
	p->nr = 1;
	p->vars = open_memstream(&vars, &size);
	p->moves = open_memstream(&moves, &size);
	weight(p, s->vocab * h / tp);
	weight(p, s->vocab * h / tp);
	weight(p, h);
	for (l = 0; l < s->layers; l++) {
		weight(p, h);
		weight(p, h);
		weight(p, h * h / tp);
		weight(p, h * h / tp);
		weight(p, h * s->kv / tp);
		weight(p, h * s->kv / tp);
		for (i = 0; i < experts * 3; i++)
			weight(p, h * s->ffn / tp);
		for (i = 0; i < 2; i++) {
			var(p, "input", ctx * s->kv / tp * 2, "");
			p->all += ctx * s->kv / tp * 2;
		}
	}
	/* activations: private ones, and what all models of a core may share */
	var(p, "tmp-buf", ctx * h / tp * 2, "");
	p->all += p->bytes + ctx * h / tp * 2;
	var(p, "virtual", ctx * h * 2 + rng_below(&rng, 64) * MIB, ", \"backing_variable_off\": 0");
	var(p, "output", ctx * 4, "");
	fclose(p->vars);
	fclose(p->moves);
	if (asprintf(&def,
		     "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\":"
		     " {\"qW\": {\"type\": \"data\"}}, \"var\": {\"sb\":"
		     " {\"type\": \"state-buffer\", \"var_id\": 0, \"size\": %llu}%s}}",
		     PIECE, vars) < 0 ||
	    asprintf(&list, "{\"dma\": [{\"id\": 1, \"queue\": \"qW\", \"desc\": [%s]}]}",
		     moves) < 0)
		exit(1);
	neff_start(neff);
	neff_text(neff, "sg00/def.json", def);
	neff_text(neff, "sg00/SP.json", list);
	neff_text(neff, "sg00/w.bin", "weights");
	neff_end(neff, s->name);
	free(def);
	free(list);
	free(vars);
	free(moves);
}

static void unload(u32 i)
{
	struct resident *r = &resident[i];

	held -= r->bytes;
	nrt_destroy_tensor_set(&r->in);
	nrt_destroy_tensor_set(&r->out);
	while (r->nr_tensors)
		nrt_tensor_free(&r->tensor[--r->nr_tensors]);
	if (r->model)
		nrt_unload(r->model);
	memmove(r, r + 1, (--nr_resident - i) * sizeof(*r));
	memset(&resident[nr_resident], 0, sizeof(*r));
}

static NRT_STATUS tensor(struct resident *r, nrt_tensor_set_t *set, const char *name, u64 size)
{
	NRT_STATUS status = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, size, name,
						&r->tensor[r->nr_tensors]);

	return status ? status : nrt_add_tensor_to_tensor_set(set, name, r->tensor[r->nr_tensors++]);
}

/* NRT_RESOURCE: there is no room, and nothing of it is left. */
static NRT_STATUS load(const struct neff *neff, const struct plan *p)
{
	struct resident *r = &resident[nr_resident++];
	nrt_tensor_info_array_t *info = NULL;
	NRT_STATUS status;
	u64 i;

	r->bytes = p->all;
	held += r->bytes;
	status = nrt_load(neff->data, neff->size, 0, -1, &r->model);
	if (!status)
		status = nrt_allocate_tensor_set(&r->in);
	if (!status)
		status = nrt_allocate_tensor_set(&r->out);
	if (!status)
		status = nrt_get_model_tensor_info(r->model, &info);
	for (i = 0; !status && i < info->tensor_count; i++) {
		const nrt_tensor_info_t *t = &info->tensor_array[i];

		status = tensor(r, t->usage == NRT_TENSOR_USAGE_INPUT ? r->in : r->out, t->name,
				t->size);
	}
	if (info)
		nrt_free_model_tensor_info(info);
	if (!status && p->bytes <= RUN_BYTES)
		status = nrt_execute(r->model, r->in, r->out);
	if (status)
		unload(nr_resident - 1);
	return status;
}

static u64 room(void)
{
	nrt_vnc_memory_stats_t s;

	if (nrt_get_vnc_memory_stats(0, &s, sizeof(s), NULL))
		exit(1);
	return s.bytes_limit;
}

static bool models(u32 loads, bool oldest)
{
	static struct neff neff;
	static struct plan p;
	u32 forced = 0, done = 0;
	NRT_STATUS status;

	while (done < loads) {
		describe(&neff, &shapes[rng_below(&rng, NR_SHAPES)], &p);
		while (nr_resident && held + p.all > limit) {
			unload(oldest ? 0 : rng_below(&rng, nr_resident));
			forced++;
		}
		while ((status = load(&neff, &p)) == NRT_RESOURCE && nr_resident) {
			unload(oldest ? 0 : rng_below(&rng, nr_resident));
			forced++;
		}
		if (status) {
			printf("# load: %s\n", nrt_get_status_as_str(status));
			return false;
		}
		done++;
		/* Some go because nobody asks for them any more. */
		if (nr_resident > 2 && !rng_below(&rng, 8))
			unload(rng_below(&rng, nr_resident));
	}
	printf("# %u loads, %u unloads for want of room in %llu MiB\n", done, forced,
	       (unsigned long long)(limit >> 20));
	while (nr_resident)
		unload(0);
	return true;
}

/* Tensors of requests that come and go while two models stay. */
static bool requests(u32 loads)
{
	static nrt_tensor_t *t[4096];
	static u64 size_of[4096];
	static struct neff neff;
	static struct plan p;
	u32 n = 0, i, k, forced = 0;
	NRT_STATUS status = NRT_SUCCESS;

	for (i = 0; i < 2; i++) {
		describe(&neff, &shapes[i + 1], &p);
		if (load(&neff, &p))
			return false;
	}
	for (i = 0; i < loads * 100 && !status; i++) {
		u32 tokens = 64u << rng_below(&rng, 8);
		u64 size = (u64)(tokens + rng_below(&rng, tokens)) * 8192;

		while (n == 4096 || held + size > limit ||
		       (status = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, size, "kv",
						     &t[n])) == NRT_RESOURCE) {
			if (!n)
				return false;
			k = rng_below(&rng, n);
			nrt_tensor_free(&t[k]);
			held -= size_of[k];
			t[k] = t[--n];
			size_of[k] = size_of[n];
			t[n] = NULL;
			forced++;
		}
		size_of[n++] = size;
		held += size;
	}
	printf("# %u tensors, %u freed for want of room\n", i, forced);
	while (n)
		nrt_tensor_free(&t[--n]);
	while (nr_resident)
		unload(0);
	return !status;
}

/* Goes up to 95 % of the memory that @sharing processes share. */
static bool process(const char *what, u32 loads, u32 seed, const char *cores, u32 sharing)
{
	setenv("NEURON_RT_VISIBLE_CORES", cores, 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	rng_seed(&rng, seed);
	setenv("NEURON_RT_NEFF_SHORT_CONSTANTS", "1", 1);
	CHECK(!nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), "init");
	limit = room() / 100 * 95 / sharing;
	if (!failed)
		CHECK(!strcmp(what, "requests") ? requests(loads) :
						  models(loads, !strcmp(what, "serve")),
		      "%s", what);
	nrt_close();
	return !failed;
}

int main(int argc, char **argv)
{
	u32 loads = argc > 2 ? (u32)atoi(argv[2]) : 20, seed = argc > 3 ? (u32)atoi(argv[3]) : 1;
	int status = 1;
	bool ok;
	pid_t pid;

	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "pair"))
		return !process(argv[1], loads, seed, "0", 1);
	pid = fork();
	if (!pid)
		exit(!process("swap", loads, seed + 1, "1", 2));
	ok = process("swap", loads, seed, "0", 2);
	waitpid(pid, &status, 0);
	return !ok || status;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* neuron-neff: look into NEFF files, take them apart, put them together. */
#include <argp.h>
#include <errno.h>
#include <error.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include <neuron/buffers.h>
#include <neuron/neff.h>

#include "../common/util.h"
#include "file.h"
#include "nodes.h"
#include "options.h"

TOOL_VERSION("neuron-neff");

static struct {
	const char *command, *input, *output, *name;
	uint64_t major, minor, package;
	bool plain, verify, json;
	unsigned int lnc;
} options = { .major = 1, .package = 2 };

/* Parse all of it, or say what is wrong and stop. */
static struct programs open_neff(void *bytes, size_t size)
{
	struct neuron_neff_error e = { .size = sizeof(e) };
	struct programs p;

	if (programs_open(bytes, size, options.verify, &e, &p))
		error(EXIT_FAILURE, 0, "%s: %s", options.input, e.text);
	return p;
}

/* ---- info ---- */

static const char *const engine_names[] = { "PE", "Activation", "Pool", "DVE", "SP" };
static const char *const code_kinds[] = { "none", "software device", "vendor" };

static void hex(const uint8_t *p, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++)
		sprintf(out + 2 * i, "%02x", p[i]);
}

static json_t *header_json(const struct neuron_neff_header *h)
{
	char hash[65], uuid[33], features[24];

	snprintf(features, sizeof(features), "0x%" PRIx64, h->feature_bits);
	hex(h->hash, h->pkg_version == 1 ? 32 : 16, hash);
	hex(h->uuid, 16, uuid);
	return json_pack("{s:s, s:s, s:I, s:I, s:s, s:I, s:I, s:s, s:s, s:I, s:I}",
			 "name", h->name, "build_version", h->build_version,
			 "pkg_version", INT(h->pkg_version), "data_size", INT(h->data_size),
			 "hash", hash, "version_major", INT(h->version_major),
			 "version_minor", INT(h->version_minor), "uuid", uuid,
			 "feature_bits", features, "num_tpb", INT(h->num_tpb),
			 "lnc_size", INT(h->lnc_size));
}

static bool has_offset(const struct neuron_neff_var *v)
{
	return v->type == NEURON_NEFF_VAR_VIRTUAL || v->type == NEURON_NEFF_VAR_STATE_BUFFER;
}

static json_t *var_json(const struct neuron_neff_var *v)
{
	json_t *shape = json_array();

	for (uint32_t i = 0; i < v->ndim; i++)
		json_array_append_new(shape, json_integer(INT(v->shape[i])));
	return json_pack("{s:s, s:s, s:I, s:I, s:s, s:o, s:o*, s:s*}", "name", v->name, "type",
			 neuron_neff_var_type_name(v->type), "var_id", INT(v->var_id),
			 "size", INT(v->size), "dtype", neuron_neff_dtype_name(v->dtype),
			 "shape", shape, "offset",
			 has_offset(v) ? json_integer(INT(v->backing_off)) : NULL,
			 "buffer", v->backing_buf);
}

static json_t *engine_json(const struct neuron_neff_engine *e, const char *name)
{
	size_t desc = 0;

	for (size_t i = 0; i < e->nr_dma; i++)
		desc += e->dma[i].nr_desc;
	return json_pack("{s:s, s:s, s:I, s:I, s:I}", "name", name, "instructions",
			 code_kinds[e->code_kind], "code_size", INT(e->code_size),
			 "dma_entries", INT(e->nr_dma), "transfers", INT(desc));
}

static json_t *graphs_json(const struct neuron_neff *neff)
{
	json_t *graphs = json_array();

	for (size_t g = 0; g < neff->nr_subgraphs; g++) {
		const struct neuron_neff_subgraph *sg = &neff->subgraphs[g];
		json_t *vars = json_array(), *engines = json_array(), *areas = json_object();

		for (size_t i = 0; i < sg->nr_areas; i++)
			json_object_set_new(areas, sg->areas[i].name,
					    json_integer(INT(sg->areas[i].need)));
		for (size_t i = 0; i < sg->nr_vars; i++)
			json_array_append_new(vars, var_json(&sg->vars[i]));
		for (int e = 0; e < NEURON_NEFF_NR_ENGINES; e++)
			if (sg->engines[e].json_name || sg->engines[e].code_name)
				json_array_append_new(engines, engine_json(&sg->engines[e],
									   engine_names[e]));
		json_array_append_new(graphs, json_pack("{s:s, s:o, s:o, s:I, s:o}",
							"name", sg->name, "variables", vars,
							"scratchpad", areas, "scratchpad_total",
							INT(sg->scratchpad),
							"engines", engines));
	}
	return graphs;
}

static json_t *names_json(const char *const *names, size_t nr)
{
	json_t *list = json_array();

	for (size_t i = 0; i < nr; i++)
		json_array_append_new(list, json_string(names[i]));
	return list;
}

static json_t *node_json(const struct programs *p, const struct neuron_neff_node *n)
{
	json_t *o = json_pack("{s:s, s:o, s:o}", "name", n->name, "inputs",
			      names_json(n->inputs, n->nr_inputs), "outputs",
			      names_json(n->outputs, n->nr_outputs));

	json_object_update_new(o, n->cpu ? json_pack("{s:s}", "op", n->op) :
			       json_pack("{s:I, s:I, s:o}", "kelf", INT(n->kelf), "cores",
					 INT(neuron_neff_cores(p->neff[0], n->kelf)), "graphs",
					 graphs_json(p->neff[n->kelf])));
	return o;
}

static bool is_executable(const struct programs *p)
{
	bool all = true;

	for (size_t i = 0; i < NEURON_NEFF_MAX_NODES; i++)
		all &= !p->neff[i] || p->neff[i]->executable;
	return all;
}

static json_t *neff_json(const struct programs *p)
{
	const struct neuron_neff *neff = p->neff[0];
	json_t *obstacles = json_array(), *nodes = json_array(), *o;

	for (size_t k = 0; k < NEURON_NEFF_MAX_NODES; k++)
		for (size_t i = 0; p->neff[k] && i < p->neff[k]->nr_obstacles; i++)
			json_array_append_new(obstacles, json_string(p->neff[k]->obstacles[i]));
	for (size_t i = 0; i < neff->nr_nodes; i++)
		json_array_append_new(nodes, node_json(p, &neff->nodes[i]));
	o = json_pack("{s:o, s:b, s:o, s:o}", "header", header_json(&neff->header), "executable",
		      is_executable(p), "obstacles", obstacles, "graphs", graphs_json(neff));
	if (neff->nr_nodes)
		json_object_set(o, "nodes", nodes);
	json_decref(nodes);
	return o;
}

/* " of kelf-1.json", where there are several */
static const char *of_program(const struct programs *p, size_t n)
{
	static char text[32];

	snprintf(text, sizeof(text), p->neff[0]->nr_nodes > 1 ? " of kelf-%zu.json" : "", n);
	return text;
}

static void print_names(const char *const *names, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		printf("%s%s", i ? ", " : " ", names[i]);
}

static void print_node(const struct neuron_neff *neff, const struct neuron_neff_node *n)
{
	printf("Node %s: ", n->name);
	if (n->cpu)
		printf("%s on the host,", n->op);
	else
		printf("kelf-%u.json on %u core%s,", n->kelf, neuron_neff_cores(neff, n->kelf),
		       neuron_neff_cores(neff, n->kelf) == 1 ? "" : "s");
	print_names(n->inputs, n->nr_inputs);
	printf(" ->");
	print_names(n->outputs, n->nr_outputs);
	putchar('\n');
}

static void print_graph(const struct neuron_neff_subgraph *sg, const char *of)
{
	printf("\nGraph %s%s\n  %-24s %-12s %6s %12s %12s  %-9s %s\n", sg->name, of, "Variable",
	       "Type", "Id", "Size", "Offset", "DataType", "Shape");
	for (size_t i = 0; i < sg->nr_vars; i++) {
		const struct neuron_neff_var *v = &sg->vars[i];

		printf("  %-24s %-12s %6u %12" PRIu64, v->name,
		       neuron_neff_var_type_name(v->type), v->var_id, v->size);
		if (has_offset(v))
			printf(" %12" PRIu64, v->backing_off);
		printf("%*s  %-9s ", has_offset(v) ? 0 : 13, "", neuron_neff_dtype_name(v->dtype));
		for (uint32_t d = 0; d < v->ndim; d++)
			printf("%s%" PRIu64, d ? "x" : "", v->shape[d]);
		putchar('\n');
	}
	for (size_t i = 0; i < sg->nr_areas; i++)
		printf("  Scratchpad %s: %" PRIu64 " bytes\n", sg->areas[i].name,
		       sg->areas[i].need);
	if (sg->nr_areas)
		printf("  Scratchpad total: %" PRIu64 " bytes\n", sg->scratchpad);
	printf("  %-24s %-16s %12s %12s\n", "Engine", "Instructions", "Code bytes", "DMA entries");
	for (int i = 0; i < NEURON_NEFF_NR_ENGINES; i++) {
		const struct neuron_neff_engine *e = &sg->engines[i];

		if (e->json_name || e->code_name)
			printf("  %-24s %-16s %12zu %12zu\n", engine_names[i],
			       code_kinds[e->code_kind], e->code_size, e->nr_dma);
	}
}

/* After the header. */
static void print_programs(const struct programs *p)
{
	const struct neuron_neff *neff = p->neff[0];

	for (size_t k = 0; k < NEURON_NEFF_MAX_NODES; k++)
		for (size_t i = 0; p->neff[k] && i < p->neff[k]->nr_obstacles; i++)
			printf("Cannot run here because of %s\n", p->neff[k]->obstacles[i]);
	for (size_t i = 0; i < neff->nr_nodes; i++)
		print_node(neff, &neff->nodes[i]);
	for (size_t k = 0; k < NEURON_NEFF_MAX_NODES; k++)
		for (size_t g = 0; p->neff[k] && g < p->neff[k]->nr_subgraphs; g++)
			print_graph(&p->neff[k]->subgraphs[g], of_program(p, k));
}

static void info(void *bytes, size_t size)
{
	struct programs p = open_neff(bytes, size);
	const struct neuron_neff *neff = p.neff[0];
	const struct neuron_neff_header *h = &neff->header;
	size_t obstacles = 0;
	char hash[65];

	for (size_t k = 0; k < NEURON_NEFF_MAX_NODES; k++)
		obstacles += p.neff[k] ? p.neff[k]->nr_obstacles : 0;
	if (options.json) {
		print_json(neff_json(&p), EXIT_FAILURE);
	} else {
		hex(h->hash, h->pkg_version == 1 ? 32 : 16, hash);
		printf("Name:            %s\n", h->name);
		printf("NEFF version:    %" PRIu64 ".%" PRIu64 "\n", h->version_major,
		       h->version_minor);
		printf("Package version: %" PRIu64 "\n", h->pkg_version);
		printf("Build version:   %s\n", h->build_version);
		printf("Data size:       %" PRIu64 "\n", h->data_size);
		printf("Hash:            %s\n", hash);
		printf("Cores:           %u\n", h->num_tpb);
		printf("LNC size:        %u\n", h->lnc_size);
		printf("Executable:      %s\n", is_executable(&p) ? "yes" : obstacles ? "no" :
		       "no, it has instructions of a real accelerator");
		print_programs(&p);
	}
	programs_close(&p);
}

/* ---- plan ---- */

/* Where transfers stand in an order of all engines. */
#define LAST_STEP (1u << 20)

struct use {
	struct neuron_buffer buffer;	/* lifetime by the transfers */
	const struct neuron_neff_var *var;
	bool used;
};

struct scratchpad_plan {
	struct use *uses;
	struct neuron_buffer *buffers;
	size_t nr, nr_unused, nr_conflicts;
	bool guessed;			/* nobody knows the order of the engines */
	struct neuron_buffers_result best;
};

/* What is read before it is written comes from an earlier run and has to stay. */
static void use_at(struct scratchpad_plan *p, const struct neuron_neff_subgraph *sg,
		   const size_t *index, const struct neuron_neff_side *side, uint32_t step, bool read)
{
	struct use *use;

	if (!side->var || side->var->type != NEURON_NEFF_VAR_VIRTUAL)
		return;
	use = &p->uses[index[side->var - sg->vars]];
	if (!use->used) {
		use->buffer.first = read ? 0 : step;
		use->buffer.last = read ? LAST_STEP : step;
	}
	use->used = true;
	use->buffer.first = MIN(use->buffer.first, step);
	use->buffer.last = MAX(use->buffer.last, step);
}

static void use_transfers(struct scratchpad_plan *p, const struct neuron_neff_subgraph *sg,
			  const size_t *index, const struct neuron_neff_dma *dma, uint32_t step)
{
	for (size_t i = 0; i < dma->nr_desc; i++) {
		for (size_t k = 0; k < dma->desc[i].nr_from; k++)
			use_at(p, sg, index, &dma->desc[i].from[k], step, true);
		use_at(p, sg, index, &dma->desc[i].to, step, false);
	}
}

/*
 * Without instructions engines take turns (docs/loading.md). With them their order depends on
 * semaphores: they are assumed to be equally far at any time.
 */
static void find_uses(struct scratchpad_plan *p, const struct neuron_neff_subgraph *sg,
		      const size_t *index)
{
	size_t engines = 0, programs = 0, total = 0, at = 0;

	for (int e = 0; e < NEURON_NEFF_NR_ENGINES; e++) {
		engines += sg->engines[e].nr_dma != 0;
		programs += sg->engines[e].code_size != 0;
		total += sg->engines[e].nr_dma;
	}
	p->guessed = engines > 1 && programs;
	for (int e = 0; e < NEURON_NEFF_NR_ENGINES; e++) {
		const struct neuron_neff_engine *engine = &sg->engines[e];

		for (size_t i = 0; i < engine->nr_dma; i++, at++)
			use_transfers(p, sg, index, &engine->dma[i], p->guessed ?
				      (uint32_t)((double)i / (double)engine->nr_dma * LAST_STEP) :
				      (uint32_t)((double)at / (double)total * LAST_STEP));
	}
}

/* Variables that the file itself puts into one place while both are in use. */
static size_t conflicts(const struct scratchpad_plan *p)
{
	size_t nr = 0;

	for (size_t i = 0; i < p->nr; i++)
		for (size_t k = i + 1; k < p->nr; k++) {
			const struct use *a = &p->uses[i], *b = &p->uses[k];
			uint64_t at = a->var->area->base + a->var->backing_off;
			uint64_t other = b->var->area->base + b->var->backing_off;

			nr += a->used && b->used && a->buffer.first <= b->buffer.last &&
			      b->buffer.first <= a->buffer.last && at < other + b->var->size &&
			      other < at + a->var->size;
		}
	return nr;
}

static void *xalloc(size_t nr, size_t size)
{
	void *p = calloc(nr + 1, size);

	if (!p)
		error(EXIT_FAILURE, ENOMEM, "allocation");
	return p;
}

static void plan_graph(const struct neuron_neff_subgraph *sg, struct scratchpad_plan *p)
{
	size_t *index = xalloc(sg->nr_vars, sizeof(*index));
	int ret;

	*p = (struct scratchpad_plan){ .best.size = sizeof(p->best) };
	p->uses = xalloc(sg->nr_vars, sizeof(*p->uses));
	p->buffers = xalloc(sg->nr_vars, sizeof(*p->buffers));
	for (size_t i = 0; i < sg->nr_vars; i++) {
		const struct neuron_neff_var *v = &sg->vars[i];

		index[i] = p->nr;
		if (v->type == NEURON_NEFF_VAR_VIRTUAL)
			p->uses[p->nr++] = (struct use){
				.buffer = { .bytes = v->size, .align = v->alignment,
					    .last = LAST_STEP },
				.var = v,
			};
	}
	find_uses(p, sg, index);
	for (size_t i = 0; i < p->nr; i++) {
		p->buffers[i] = p->uses[i].buffer;
		p->nr_unused += !p->uses[i].used;
	}
	p->nr_conflicts = conflicts(p);
	ret = neuron_buffers_place(p->buffers, p->nr, &p->best);
	if (ret)
		error(EXIT_FAILURE, -ret, "%s: the scratchpad of %s", options.input, sg->name);
	free(index);
	free(p->uses);
	free(p->buffers);
}

/* "123456 bytes, 4.0 % more than the lower bound" */
static void print_distance(const char *what, uint64_t bytes, uint64_t bound)
{
	printf("  %-26s %12" PRIu64 " bytes", what, bytes);
	if (bytes < bound)
		printf(", less than the lower bound");
	else if (bound)
		printf(", %.1f %% more than the lower bound",
		       100 * ((double)bytes / (double)bound - 1));
	putchar('\n');
}

static void print_plan(const struct neuron_neff_subgraph *sg, const char *of,
		       const struct scratchpad_plan *p)
{
	printf("Graph %s%s: %zu variables in the scratchpad\n", sg->name, of, p->nr);
	if (!p->nr)
		return;
	printf("  %-26s %12" PRIu64 " bytes\n", "in use at once", p->best.bound);
	print_distance("placed by the file", sg->scratchpad, p->best.bound);
	print_distance("placed by first fit", p->best.first_fit, p->best.bound);
	print_distance("best that was found", p->best.bytes, p->best.bound);
	printf("  found by: %s\n", p->best.heuristic);
	if (p->nr_unused)
		printf("  %zu variables are in no transfer: they count as always in use\n",
		       p->nr_unused);
	if (p->guessed)
		puts("  The order of transfers of different engines is not known: they count as equally far.");
	if (p->nr_conflicts)
		printf("  %zu pairs of variables share memory in the file although both are in use, in this order of transfers: the figures are not comparable.\n",
		       p->nr_conflicts);
}

static json_t *plan_json(const struct neuron_neff_subgraph *sg, size_t kelf,
			 const struct scratchpad_plan *p)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:I}", "name",
			 sg->name, "kelf", INT(kelf), "variables", INT(p->nr), "unused", INT(p->nr_unused),
			 "bound", INT(p->best.bound), "file", INT(sg->scratchpad),
			 "first_fit", INT(p->best.first_fit), "best", INT(p->best.bytes),
			 "heuristic", p->best.heuristic, "order_guessed", p->guessed,
			 "conflicts", INT(p->nr_conflicts));
}

static void plan(void *bytes, size_t size)
{
	struct programs programs = open_neff(bytes, size);
	json_t *graphs = json_array();

	for (size_t k = 0; k < NEURON_NEFF_MAX_NODES; k++) {
		const struct neuron_neff *neff = programs.neff[k];

		for (size_t g = 0; neff && g < neff->nr_subgraphs; g++) {
			struct scratchpad_plan p;

			plan_graph(&neff->subgraphs[g], &p);
			if (options.json)
				json_array_append_new(graphs, plan_json(&neff->subgraphs[g], k, &p));
			else
				print_plan(&neff->subgraphs[g], of_program(&programs, k), &p);
		}
	}
	if (options.json)
		print_json(json_pack("{s:i, s:o}", "schema_version", 1, "graphs", graphs),
			   EXIT_FAILURE);
	else
		json_decref(graphs);
	programs_close(&programs);
}

/* ---- unpack ---- */

/* Directories of @path below the current one. */
static void make_directories(char *path)
{
	for (char *p = path; (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdir(path, 0777) && errno != EEXIST)
			error(EXIT_FAILURE, errno, "%s", path);
		*p = '/';
	}
}

/* A new directory: nothing in it can lead a member elsewhere. */
static void make_output(void)
{
	static bool made;

	if (!made && (mkdir(options.output, 0777) || chdir(options.output)))
		error(EXIT_FAILURE, errno, "%s", options.output);
	made = true;
}

static void write_member(void *context, const char *name, const void *data, size_t size)
{
	char *path = strdup(name);

	(void)context;
	if (!path)
		error(EXIT_FAILURE, ENOMEM, "allocation");
	make_output();
	make_directories(path);
	write_whole(name, data, size, 0);
	free(path);
}

static void unpack(void *bytes, size_t size)
{
	struct neuron_neff_error e = { .size = sizeof(e) };
	struct programs p = open_neff(bytes, size);

	programs_close(&p);
	if (neuron_neff_unpack(bytes, size, &e, write_member, NULL))
		error(EXIT_FAILURE, 0, "%s: %s", options.input, e.text);
	make_output();
}

/* ---- create ---- */

static struct neuron_neff_writer *writer;

static int add_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *name = path + strlen(options.input);
	size_t size;
	void *data;
	int err;

	(void)st;
	(void)ftw;
	if (type == FTW_D)
		return 0;
	if (type != FTW_F)
		error(EXIT_FAILURE, 0, "%s: not a regular file", path);
	data = read_whole(path, &size, EXIT_FAILURE);
	err = neuron_neff_writer_add(writer, name + strspn(name, "/"), data, size);
	if (err)
		error(EXIT_FAILURE, -err, "%s", path);
	free(data);
	return 0;
}

static void create(void)
{
	struct neuron_neff_header h = {
		.size = sizeof(h),
		.pkg_version = options.package, .version_major = options.major,
		.version_minor = options.minor, .num_tpb = 1, .requested_tpb_count = 1,
		.tpb_per_node = { 1 }, .build_version = "neuron-neff 1",
		.lnc_size = options.lnc,
	};
	const char *base = strrchr(options.output, '/');
	struct programs p;
	void *bytes;
	size_t size;
	int err;

	snprintf(h.name, sizeof(h.name), "%s", options.name ? options.name :
		 base ? base + 1 : options.output);
	writer = neuron_neff_writer_new();
	if (!writer)
		error(EXIT_FAILURE, ENOMEM, "allocation");
	if (nftw(options.input, add_file, 16, FTW_PHYS))
		error(EXIT_FAILURE, errno, "%s", options.input);
	err = neuron_neff_writer_finish(writer, &h, !options.plain, &bytes, &size);
	if (err)
		error(EXIT_FAILURE, -err, "%s", options.output);
	neuron_neff_writer_free(writer);
	options.verify = true;
	p = open_neff(bytes, size);
	programs_close(&p);
	write_whole(options.output, bytes, size, 0);
	free(bytes);
}

/* ---- command line ---- */

static const struct argp_option option_table[] = {
	{ "output", 'o', "PATH", 0, "unpack: new directory; create: file", 0 },
	{ "json", 'j', NULL, 0, "info, plan: print JSON", 0 },
	{ "verify", 'V', NULL, 0, "info, plan, unpack: the hash must match", 0 },
	{ "name", 'n', "NAME", 0, "create: name of the model", 0 },
	{ "neff-version", 'k', "MAJOR.MINOR", 0, "create: NEFF version, default 1.0", 0 },
	{ "package-version", 'r', "1|2", 0, "create: 1 = SHA-256, 2 = MD5 (default)", 0 },
	{ "lnc", 'l', "1|2", 0, "create: logical core size; default: as many as graphs", 0 },
	{ "plain", 'u', NULL, 0, "create: do not compress", 0 },
	{ 0 }
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'o': options.output = arg; break;
	case 'j': options.json = true; break;
	case 'V': options.verify = true; break;
	case 'n':
		if (strlen(arg) >= sizeof(((struct neuron_neff_header *)0)->name))
			argp_error(state, "the name is too long");
		options.name = arg;
		break;
	case 'u': options.plain = true; break;
	case 'l':
	case 'r':
		if (strcmp(arg, "1") && strcmp(arg, "2"))
			argp_error(state, "%s is neither 1 nor 2", arg);
		if (key == 'l')
			options.lnc = (unsigned int)(*arg - '0');
		else
			options.package = (uint64_t)(*arg - '0');
		break;
	case 'k': neff_version(arg, &options.major, &options.minor, state); break;
	case ARGP_KEY_ARG:
		if (!options.command && strcmp(arg, "info") && strcmp(arg, "plan") &&
		    strcmp(arg, "unpack") && strcmp(arg, "create"))
			argp_error(state, "\"%s\" is not a command: info, plan, unpack, create", arg);
		else if (!options.command)
			options.command = arg;
		else if (!options.input)
			options.input = arg;
		else
			argp_usage(state);
		break;
	case ARGP_KEY_END:
		if (!options.command || !options.input)
			argp_usage(state);
		if (strcmp(options.command, "info") && strcmp(options.command, "plan") &&
		    !options.output)
			argp_error(state, "--output is missing");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		option_table, parse_option, "info FILE\nplan FILE\nunpack -o DIR FILE\ncreate -o FILE DIR",
		"Look into NEFF files, judge their memory, take them apart, put them together.", NULL, NULL, NULL
	};
	void *bytes;
	size_t size;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (!strcmp(options.command, "create")) {
		create();
		return EXIT_SUCCESS;
	}
	bytes = read_whole(options.input, &size, EXIT_FAILURE);
	if (!strcmp(options.command, "info"))
		info(bytes, size);
	else if (!strcmp(options.command, "plan"))
		plan(bytes, size);
	else
		unpack(bytes, size);
	free(bytes);
	end_output(EXIT_FAILURE);
	return EXIT_SUCCESS;
}

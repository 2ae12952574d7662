// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From the members of a NEFF to subgraphs: kelf-0.json, def.json, the engine
 * JSONs, constants, instruction binaries, and our own form of neff.json.
 *
 * Keys that are not known are skipped: newer compilers may say more.  Values
 * that are not known change what the program means: where it can still be placed
 * (types of elements and queues, operations) they are obstacles to running it,
 * elsewhere the file is refused.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "object.h"
#include "parse.h"

/* What a subgraph is made of, and what it names. */
static int parse_definition(struct neff_reader *r, struct neuron_neff_subgraph *sg)
{
	const struct jpath at = { .member = sg->definition };
	json_t *root, *vars = NULL, *queues = NULL;
	int err = jload(r, sg->definition, NULL, &root);

	if (err)
		return err;
	err = jget(r, &at, root, { "var", .object = &vars, .required = true },
		   { "dma_queue", .object = &queues }) ?:
	      parse_vars(r, AT_KEY(&at, "var"), vars, sg) ?:
	      parse_queues(r, AT_KEY(&at, "dma_queue"), queues, sg);
	for (unsigned int id = 0; !err && id < NEURON_NEFF_NR_ENGINES; id++)
		err = name_engine(r, &at, root, sg, id);
	json_decref(root);
	return err;
}

static int load_contents(struct neff_reader *r, struct neuron_neff_subgraph *sg)
{
	int err = 0;

	for (size_t i = 0; i < sg->nr_vars && !err; i++)
		if (sg->vars[i].file_name)
			err = load_constant(r, sg, &sg->vars[i]);
	for (unsigned int id = 0; id < NEURON_NEFF_NR_ENGINES && !err; id++) {
		struct neuron_neff_engine *eng = &sg->engines[id];

		for (size_t i = 0; i < eng->nr_tables; i++) {
			struct neuron_neff_blob *blob = &eng->tables[i];
			const struct neff_member *m = neff_find_member(r->obj, blob->name);

			blob->data = m->data;
			blob->size = m->size;
		}
		if (eng->code_name)
			err = load_code(r, sg, eng, id);
	}
	return err;
}

static int parse_subgraph(struct neff_reader *r, const struct jpath *at, const json_t *obj,
			  struct neuron_neff_subgraph *sg)
{
	const struct jpath *here = AT_KEY(at, "definition");
	const char *file, *why;
	struct neff_member *m;
	char *path, *slash;
	int err;

	sg->name = "";
	err = jget(r, at, obj, { "definition", .text = &file, .required = true },
		   { "name", .copy = &sg->name });
	if (err)
		return err;
	path = neff_strdup(r->obj, file);
	if (!path)
		return memory_at(r, at);
	why = neff_normalise(file, path);
	if (why)
		return invalid_at(r, here, "'%s': %s", file, why);
	m = neff_find_member(r->obj, path);
	if (!m)
		return invalid_at(r, here, "'%s' is not in the archive", path);
	err = neff_want_json(r, m);
	if (err)
		return err;
	sg->definition = path;
	slash = strrchr(path, '/');
	sg->dir = "";
	if (slash) {
		char *dir = neff_strdup(r->obj, path);

		if (!dir)
			return memory_at(r, at);
		dir[slash - path] = '\0';
		sg->dir = dir;
	}
	return 0;
}

static int parse_graphs(struct neff_reader *r, const char *member, const json_t *root)
{
	const struct jpath at = { .member = member };
	const struct jpath *here = AT_KEY(&at, "graphs");
	struct neuron_neff *neff = &r->obj->pub;
	json_t *graphs;
	size_t n;
	int err;

	neff->graph_version = "";
	err = jget(r, &at, root, { "version", .copy = &neff->graph_version },
		   { "graphs", .list = &graphs, .required = true });
	if (err)
		return err;
	n = json_array_size(graphs);
	if (!n)
		return invalid_at(r, here, "no graphs");
	if (n > 2)
		return unsupported_at(r, here, "%zu graphs, a logical core has at most 2", n);
	if (!neff->header.lnc_size)
		neff->header.lnc_size = (uint32_t)n;
	if (neff->header.lnc_size != n)
		return invalid_at(r, here, "%zu graphs, lnc_size of the header is %u", n,
				  neff->header.lnc_size);
	if (new_at(r, here, neff->subgraphs, n))
		return -ENOMEM;
	neff->nr_subgraphs = n;
	for (size_t i = 0; i < n && !err; i++)
		err = parse_subgraph(r, AT_INDEX(here, i), json_array_get(graphs, i),
				     &neff->subgraphs[i]);
	return err;
}

static int want_named(struct neff_reader *r, const char *name)
{
	struct neff_member *m = neff_find_member(r->obj, name);

	return m ? neff_want_json(r, m) : 0;
}

static int look_at_node(const struct neff_reader *r, uint32_t node);

/* Before a pass: what do the nodes want that will be opened? */
static void look_ahead(struct neff_reader *r)
{
	struct neff_object *whole = r->obj->whole;

	for (uint32_t n = 0; n < NEURON_NEFF_MAX_NODES && whole->others; n++) {
		char member[24];

		snprintf(member, sizeof(member), "kelf-%u.json", n);
		if (n != r->opts.node && !(whole->named >> n & 1) && neff_find_member(whole, member) &&
		    look_at_node(r, n) != -EAGAIN)
			whole->named |= 1ull << n;
	}
}

static int fetch(struct neff_reader *r)
{
	if (r->ahead)
		return 0;
	if (neff_missing(r->obj))
		look_ahead(r);
	return neff_fetch(r);
}

static int parse_kelf(struct neff_reader *r)
{
	char member[24];
	json_t *root;
	int err;

	snprintf(member, sizeof(member), "kelf-%u.json", r->opts.node);
	err = want_named(r, member) ?: want_named(r, "neff.json") ?: fetch(r) ?:
	      jload(r, member, NULL, &root);
	if (err)
		return err;
	err = parse_graphs(r, member, root);
	json_decref(root);
	return err;
}

static int for_each_graph(struct neff_reader *r,
			  int (*step)(struct neff_reader *, struct neuron_neff_subgraph *))
{
	struct neuron_neff *neff = &r->obj->pub;
	int err = 0;

	for (size_t i = 0; i < neff->nr_subgraphs && !err; i++)
		err = step(r, &neff->subgraphs[i]);
	return err;
}

/* Each step names what the next one needs. */
static int parse_descriptions(struct neff_reader *r)
{
	return parse_kelf(r) ?:
	       fetch(r) ?: for_each_graph(r, parse_definition) ?:
	       fetch(r) ?: for_each_graph(r, parse_engines) ?: parse_neff_json(r);
}

/* -EAGAIN: not all of its descriptions are there.  Errors are told when the node is opened. */
static int look_at_node(const struct neff_reader *r, uint32_t node)
{
	struct neff_object *obj = calloc(1, sizeof(*obj));
	struct neff_reader other = { .obj = obj, .opts = r->opts, .ahead = true };
	int err;

	if (!obj)
		return -ENOMEM;
	other.opts.node = node;
	neff_share(obj, r->obj->whole);
	err = parse_descriptions(&other);
	neuron_neff_close(&obj->pub);
	return err;
}

int neff_parse(struct neff_reader *r)
{
	struct neuron_neff *neff = &r->obj->pub;
	int err = 0;

	neff->executable = true;
	if (neff->header.feature_bits)
		err = obstacle_at(r, &(struct jpath){ .member = "header" },
				  "unknown feature_bits 0x%" PRIx64, neff->header.feature_bits);
	return err ?: parse_descriptions(r) ?: check_nodes(r) ?:
	       fetch(r) ?: for_each_graph(r, load_contents) ?: load_objects(r);
}

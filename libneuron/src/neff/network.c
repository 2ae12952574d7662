// SPDX-License-Identifier: LGPL-2.1-or-later
/* Our own form of neff.json: inputs and outputs, and networks of several nodes. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/util.h"
#include "json.h"
#include "parse.h"

#define NEFF_IO_FORMAT	"neuron-pack-1"

static int parse_shape(struct neff_reader *r, const struct jpath *at, const json_t *shape,
		       enum neuron_neff_dtype dtype, struct neuron_neff_var *var)
{
	uint64_t element = neuron_neff_dtype_size(dtype), bytes = element ? element : 1, v = 0;
	size_t n = json_array_size(shape);
	uint64_t dims[NEURON_NEFF_MAX_SHAPE] = { 0 };
	int err;

	if (!n || n > NEURON_NEFF_MAX_SHAPE)
		return invalid_at(r, at, "%zu dimensions, not 1 to %u", n,
				  NEURON_NEFF_MAX_SHAPE);
	for (size_t i = 0; i < n; i++) {
		err = jcheck_int(r, AT_INDEX(at, i), json_array_get(shape, i), 1, UINT32_MAX, &v);
		if (err)
			return err;
		dims[i] = v;
		if (__builtin_mul_overflow(bytes, v, &bytes))
			return invalid_at(r, at, "product overflows");
	}
	/* The size of an element of an unknown type is what makes it fit. */
	if (element ? bytes != var->size : var->size % bytes)
		return invalid_at(r, at, "%" PRIu64 " bytes, variable '%s' has %" PRIu64, bytes,
				  var->name, var->size);
	var->dtype = dtype;
	var->ndim = (uint32_t)n;
	memcpy(var->shape, dims, sizeof(dims));
	return 0;
}

static int parse_io(struct neff_reader *r, const struct jpath *at, const json_t *list,
		    enum neuron_neff_var_type type)
{
	struct neuron_neff *neff = &r->obj->pub;
	int err;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const struct jpath *here = AT_INDEX(at, i);
		enum neuron_neff_dtype dtype = NEURON_NEFF_DT_UINT8;
		json_t *v = json_array_get(list, i), *shape;
		const char *name = NULL;
		bool found = false;

		if (!json_is_object(v))
			return invalid_at(r, here, "is %s, not an object", jtype_name(v));
		err = jget_text(r, here, v, "name", true, &name);
		if (!err)
			err = jget_dtype(r, here, v, "dtype", NEURON_NEFF_DT_UNKNOWN, &dtype);
		if (!err)
			err = jget_list(r, here, v, "shape", true, &shape);
		if (err)
			return err;
		for (size_t g = 0; g < neff->nr_subgraphs; g++) {
			const struct neuron_neff_subgraph *sg = &neff->subgraphs[g];
			const struct neuron_neff_var *var = neuron_neff_find_var(sg, name);

			if (!var || var->type != type)
				continue;
			found = true;
			err = parse_shape(r, AT_KEY(here, "shape"), shape, dtype,
					  &sg->vars[var - sg->vars]);
			if (err)
				return err;
		}
		if (!found)
			return invalid_at(r, AT_KEY(here, "name"), "no %s is called '%s'",
					  neuron_neff_var_type_name(type), name);
	}
	return 0;
}

static int parse_node(struct neff_reader *r, const struct jpath *at, const json_t *v,
		      struct neuron_neff_node *node)
{
	const char *name = NULL, *op = "", *object = "";
	json_t *kelf = json_object_get(v, "kelf");
	uint64_t index = 0;
	int err;

	if (!json_is_object(v))
		return invalid_at(r, at, "is %s, not an object", jtype_name(v));
	err = jget_text(r, at, v, "name", true, &name);
	if (!err)
		err = jget_text(r, at, v, "op", !kelf, &op);
	if (!err)
		err = jget_text(r, at, v, "object", false, &object);
	if (!err && kelf)
		err = jcheck_int(r, AT_KEY(at, "kelf"), kelf, 0, NEURON_NEFF_MAX_NODES - 1, &index);
	if (err)
		return err;
	if (kelf && (*op || *object))
		return invalid_at(r, at, "has 'kelf' and 'op' or 'object'");
	node->cpu = !kelf;
	node->kelf = (uint32_t)index;
	err = jcopy_text(r, at, name, &node->name);
	if (!err)
		err = jcopy_text(r, at, op, &node->op);
	if (!err && *object) {
		struct neff_member *m = neff_find_member(r->obj, object);

		if (!m)
			return invalid_at(r, AT_KEY(at, "object"), "'%s' is not in the archive", object);
		m->wanted = true;
		m->keep = true;
		err = jcopy_text(r, at, object, &node->object_name);
	}
	if (!err)
		err = jget_texts(r, at, v, "inputs", &node->inputs, &node->nr_inputs);
	if (!err)
		err = jget_texts(r, at, v, "outputs", &node->outputs, &node->nr_outputs);
	return err;
}

static int parse_edge_list(struct neff_reader *r, const struct jpath *at, const json_t *list)
{
	struct neuron_neff *neff = &r->obj->pub;
	size_t n = json_array_size(list);

	if (n > NEURON_NEFF_MAX_EDGES)
		return unsupported_at(r, at, "%zu edges, more than %u", n, NEURON_NEFF_MAX_EDGES);
	neff->edges = neff_alloc(r->obj, n + 1, sizeof(*neff->edges));
	if (!neff->edges)
		return memory_at(r, at);
	for (size_t i = 0; i < n; i++) {
		const struct jpath *here = AT_INDEX(at, i);
		struct neuron_neff_edge *e = &neff->edges[i];
		json_t *v = json_array_get(list, i);
		const char *name = NULL, *use = "internal";
		int err;

		if (!json_is_object(v))
			return invalid_at(r, here, "is %s, not an object", jtype_name(v));
		err = jget_text(r, here, v, "name", true, &name);
		if (!err)
			err = jget_text(r, here, v, "use", false, &use);
		if (!err)
			err = jcheck_int(r, AT_KEY(here, "bytes"), json_object_get(v, "bytes"), 1,
					UINT32_MAX, &e->bytes);
		if (!err && !*name)
			err = invalid_at(r, here, "has no name");
		if (!err && strlen(name) > MAX_IO_NAME)
			err = invalid_at(r, here, "name is longer than %u", MAX_IO_NAME);
		if (!err)
			err = jcopy_text(r, here, name, &e->name);
		if (err)
			return err;
		for (size_t k = 0; k < i; k++)
			if (!strcmp(neff->edges[k].name, e->name))
				return invalid_at(r, here, "'%s' is there twice", e->name);
		if (!strcmp(use, "input"))
			e->use = NEURON_NEFF_EDGE_INPUT;
		else if (!strcmp(use, "output"))
			e->use = NEURON_NEFF_EDGE_OUTPUT;
		else if (strcmp(use, "internal"))
			return invalid_at(r, here, "use '%s' is not known", use);
		neff->nr_edges = i + 1;
	}
	return 0;
}

static struct neuron_neff_edge *find_edge(struct neuron_neff *neff, const char *name)
{
	for (size_t i = 0; i < neff->nr_edges; i++)
		if (!strcmp(neff->edges[i].name, name))
			return &neff->edges[i];
	return NULL;
}

/* Every edge is written once, by a node or the caller, before a node reads it. */
static int check_edges(struct neff_reader *r, const struct jpath *at)
{
	struct neuron_neff *neff = &r->obj->pub;
	bool *written = neff_alloc(r->obj, neff->nr_edges + 1, sizeof(*written));

	if (!written)
		return memory_at(r, at);
	for (size_t i = 0; i < neff->nr_edges; i++)
		written[i] = neff->edges[i].use == NEURON_NEFF_EDGE_INPUT;
	for (size_t i = 0; i < neff->nr_nodes; i++) {
		const struct neuron_neff_node *node = &neff->nodes[i];
		const struct jpath *here = AT_INDEX(at, i);

		for (size_t k = 0; k < node->nr_inputs; k++) {
			struct neuron_neff_edge *e = find_edge(neff, node->inputs[k]);

			if (!e || !written[e - neff->edges])
				return invalid_at(r, here, "input '%s' has no value yet", node->inputs[k]);
			/* So that a node has no more tensors than there are edges. */
			for (size_t n = 0; n < k; n++)
				if (!strcmp(node->inputs[n], node->inputs[k]))
					return invalid_at(r, here, "has input '%s' twice",
							  node->inputs[k]);
		}
		for (size_t k = 0; k < node->nr_outputs; k++) {
			struct neuron_neff_edge *e = find_edge(neff, node->outputs[k]);

			if (!e || written[e - neff->edges])
				return invalid_at(r, here, "output '%s' is no edge, or has a value",
						  node->outputs[k]);
			written[e - neff->edges] = true;
		}
	}
	for (size_t i = 0; i < neff->nr_edges; i++)
		if (!written[i])
			return invalid_at(r, at, "no node writes '%s'", neff->edges[i].name);
	return 0;
}

static int parse_network(struct neff_reader *r, const struct jpath *at, const json_t *root,
			 const json_t *nodes)
{
	const struct jpath *here = AT_KEY(at, "nodes");
	struct neuron_neff *neff = &r->obj->pub;
	size_t n = json_array_size(nodes);
	json_t *edges;
	int err = jget_list(r, at, root, "edges", true, &edges);

	if (err)
		return err;
	if (!n || n > NEURON_NEFF_MAX_NODES)
		return unsupported_at(r, here, "%zu nodes, not 1 to %u", n, NEURON_NEFF_MAX_NODES);
	err = parse_edge_list(r, AT_KEY(at, "edges"), edges);
	if (err)
		return err;
	neff->nodes = neff_alloc(r->obj, n, sizeof(*neff->nodes));
	if (!neff->nodes)
		return memory_at(r, here);
	for (size_t i = 0; i < n && !err; i++) {
		err = parse_node(r, AT_INDEX(here, i), json_array_get(nodes, i), &neff->nodes[i]);
		neff->nr_nodes = i + 1;
	}
	return err ? err : check_edges(r, here);
}

int parse_neff_json(struct neff_reader *r)
{
	const struct jpath at = { .member = "neff.json" };
	json_t *root, *format, *in = NULL, *out = NULL, *nodes = NULL;
	int err;

	if (!neff_find_member(r->obj, "neff.json"))
		return 0;
	err = jload(r, "neff.json", NULL, &root);
	if (err)
		return err;
	format = json_object_get(root, "format");
	if (json_is_string(format) && !strcmp(json_string_value(format), NEFF_IO_FORMAT)) {
		err = jget_list(r, &at, root, "inputs", false, &in);
		if (!err)
			err = jget_list(r, &at, root, "outputs", false, &out);
		if (!err)
			err = jget_list(r, &at, root, "nodes", false, &nodes);
		if (!err && nodes)
			err = parse_network(r, &at, root, nodes);
		if (!err && in)
			err = parse_io(r, AT_KEY(&at, "inputs"), in, NEURON_NEFF_VAR_INPUT);
		if (!err && out)
			err = parse_io(r, AT_KEY(&at, "outputs"), out, NEURON_NEFF_VAR_OUTPUT);
	}
	json_decref(root);
	return err;
}

void load_objects(struct neff_reader *r)
{
	for (size_t i = 0; i < r->obj->pub.nr_nodes; i++) {
		struct neuron_neff_node *node = &r->obj->pub.nodes[i];
		const struct neff_member *m;

		if (!node->object_name)
			continue;
		m = neff_find_member(r->obj, node->object_name);
		node->object = m->data;
		node->object_size = m->size;
	}
}

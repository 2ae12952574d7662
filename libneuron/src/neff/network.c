// SPDX-License-Identifier: LGPL-2.1-or-later
/* Our own form of neff.json: inputs and outputs, and networks of several nodes. */
#include <errno.h>
#include <inttypes.h>
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
	int err;

	if (!n || n > NEURON_NEFF_MAX_SHAPE)
		return invalid_at(r, at, "%zu dimensions, not 1 to %u", n,
				  NEURON_NEFF_MAX_SHAPE);
	memset(var->shape, 0, sizeof(var->shape));
	for (size_t i = 0; i < n; i++) {
		err = jcheck_int(r, AT_INDEX(at, i), json_array_get(shape, i), 1, UINT32_MAX, &v);
		if (err)
			return err;
		var->shape[i] = v;
		if (__builtin_mul_overflow(bytes, v, &bytes))
			return invalid_at(r, at, "product overflows");
	}
	/* The size of an element of an unknown type is what makes it fit. */
	if (element ? bytes != var->size : var->size % bytes)
		return invalid_at(r, at, "%" PRIu64 " bytes, variable '%s' has %" PRIu64, bytes,
				  var->name, var->size);
	var->dtype = dtype;
	var->ndim = (uint32_t)n;
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
		const char *name;
		bool found = false;
		json_t *shape;

		err = jget(r, here, json_array_get(list, i),
			   { "name", .text = &name, .required = true }, { "dtype", .dtype = &dtype },
			   { "shape", .list = &shape, .required = true });
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

/* A member that a node points into. */
static int want_member(struct neff_reader *r, const struct jpath *at, const char *name)
{
	struct neff_member *m = neff_find_member(r->obj, name);

	if (!m)
		return invalid_at(r, at, "'%s' is not in the archive", name);
	m->wanted = true;
	m->keep = true;
	return 0;
}

static int want_params(struct neff_reader *r, const struct jpath *at, const char *const *names,
		       size_t n, struct neuron_neff_node *node)
{
	int err = 0;

	if (n > NEURON_NEFF_MAX_PARAMS)
		return unsupported_at(r, at, "%zu parameters, more than %u", n,
				      NEURON_NEFF_MAX_PARAMS);
	if (new_at(r, at, node->params, n))
		return -ENOMEM;
	for (; node->nr_params < n && !err; node->nr_params++) {
		node->params[node->nr_params].name = names[node->nr_params];
		err = want_member(r, AT_INDEX(at, node->nr_params), names[node->nr_params]);
	}
	return err;
}

static int parse_node(struct neff_reader *r, const struct jpath *at, const json_t *v,
		      struct neuron_neff_node *node)
{
	bool kelf = json_object_get(v, "kelf");
	const char **params;
	size_t nr_params = 0;
	int err;

	node->op = "";
	err = jget(r, at, v, { "name", .copy = &node->name, .required = true },
		   { "op", .copy = &node->op, .required = !kelf },
		   { "object", .copy = &node->object_name },
		   { "params", .texts = &params, .nr = &nr_params },
		   { "kelf", .number = &node->kelf, .max = NEURON_NEFF_MAX_NODES - 1 },
		   { "inputs", .texts = &node->inputs, .nr = &node->nr_inputs },
		   { "outputs", .texts = &node->outputs, .nr = &node->nr_outputs });
	if (err)
		return err;
	if (node->object_name && !*node->object_name)
		node->object_name = NULL;
	if (kelf && (*node->op || node->object_name || nr_params))
		return invalid_at(r, at, "has 'kelf' and 'op', 'object' or 'params'");
	node->cpu = !kelf;
	if (node->object_name)
		err = want_member(r, AT_KEY(at, "object"), node->object_name);
	if (!err && nr_params)
		err = want_params(r, AT_KEY(at, "params"), params, nr_params, node);
	return err;
}

static struct neuron_neff_edge *find_edge(struct neuron_neff *neff, const char *name)
{
	for (size_t i = 0; i < neff->nr_edges; i++)
		if (!strcmp(neff->edges[i].name, name))
			return &neff->edges[i];
	return NULL;
}

static int parse_edge_list(struct neff_reader *r, const struct jpath *at, const json_t *list)
{
	static const char *const uses[] = {
		[NEURON_NEFF_EDGE_INTERNAL] = "internal",
		[NEURON_NEFF_EDGE_INPUT] = "input",
		[NEURON_NEFF_EDGE_OUTPUT] = "output",
	};
	struct neuron_neff *neff = &r->obj->pub;
	size_t n = json_array_size(list);

	if (n > NEURON_NEFF_MAX_EDGES)
		return unsupported_at(r, at, "%zu edges, more than %u", n, NEURON_NEFF_MAX_EDGES);
	if (new_at(r, at, neff->edges, n + 1))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct jpath *here = AT_INDEX(at, i);
		struct neuron_neff_edge *e = &neff->edges[i];
		const char *use = "internal";
		int known, err;

		err = jget(r, here, json_array_get(list, i),
			   { "name", .copy = &e->name, .required = true }, { "use", .text = &use },
			   { "bytes", .integer = &e->bytes, .required = true, .min = 1,
			     .max = UINT32_MAX });
		if (err)
			return err;
		if (!*e->name)
			return invalid_at(r, here, "has no name");
		if (strlen(e->name) > MAX_IO_NAME)
			return invalid_at(r, here, "name is longer than %u", MAX_IO_NAME);
		if (find_edge(neff, e->name))
			return invalid_at(r, here, "'%s' is there twice", e->name);
		known = find_name(use, uses, ARRAY_SIZE(uses));
		if (known < 0)
			return invalid_at(r, here, "use '%s' is not known", use);
		e->use = (enum neuron_neff_edge_use)known;
		neff->nr_edges = i + 1;
	}
	return 0;
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
	int err = jget(r, at, root, { "edges", .list = &edges, .required = true });

	if (err)
		return err;
	if (!n || n > NEURON_NEFF_MAX_NODES)
		return unsupported_at(r, here, "%zu nodes, not 1 to %u", n, NEURON_NEFF_MAX_NODES);
	err = parse_edge_list(r, AT_KEY(at, "edges"), edges);
	if (err)
		return err;
	if (new_at(r, here, neff->nodes, n))
		return -ENOMEM;
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
		err = jget(r, &at, root, { "inputs", .list = &in }, { "outputs", .list = &out },
			   { "nodes", .list = &nodes });
		if (!err && nodes)
			err = parse_network(r, &at, root, nodes);
		err = err ?: parse_io(r, AT_KEY(&at, "inputs"), in, NEURON_NEFF_VAR_INPUT) ?:
			     parse_io(r, AT_KEY(&at, "outputs"), out, NEURON_NEFF_VAR_OUTPUT);
	}
	json_decref(root);
	return err;
}

static int load_param(struct neff_reader *r, struct neuron_neff_blob *param)
{
	struct neuron_neff_npy npy;
	int err = neff_elements(r, neff_find_member(r->obj, param->name), &npy);

	if (!err) {
		param->data = npy.data;
		param->size = npy.size;
	}
	return err;
}

int load_objects(struct neff_reader *r)
{
	int err = 0;

	for (size_t i = 0; i < r->obj->pub.nr_nodes; i++) {
		struct neuron_neff_node *node = &r->obj->pub.nodes[i];
		const struct neff_member *m;

		for (size_t k = 0; k < node->nr_params && !err; k++)
			err = load_param(r, &node->params[k]);
		if (!node->object_name)
			continue;
		m = neff_find_member(r->obj, node->object_name);
		node->object = m->data;
		node->object_size = m->size;
	}
	return err;
}

static const struct neuron_neff_var *find_tensor(const struct neuron_neff *neff, const char *name,
						 enum neuron_neff_var_type type)
{
	for (size_t i = 0; i < neff->nr_subgraphs; i++) {
		const struct neuron_neff_var *v = neuron_neff_find_var(&neff->subgraphs[i], name);

		if (v && v->type == type)
			return v;
	}
	return NULL;
}

/* Both subgraphs may have the same one. */
static size_t count_tensors(const struct neuron_neff *neff)
{
	size_t nr = 0;

	for (size_t k = 0; k < neff->nr_subgraphs; k++)
		for (size_t i = 0; i < neff->subgraphs[k].nr_vars; i++) {
			const struct neuron_neff_var *v = &neff->subgraphs[k].vars[i];

			nr += is_tensor(v) &&
			      !(k && is_tensor(neuron_neff_find_var(neff->subgraphs, v->name)));
		}
	return nr;
}

/* Names are edges, mostly in their order. */
static int check_names(struct neff_reader *r, const struct jpath *at, const char *const *names,
		       size_t nr, enum neuron_neff_var_type type)
{
	const struct neuron_neff *neff = &r->obj->pub;
	size_t e = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct neuron_neff_var *v = find_tensor(neff, names[i], type);

		while (strcmp(neff->edges[e].name, names[i]))
			e = (e + 1) % neff->nr_edges;
		if (!v || v->size != neff->edges[e].bytes)
			return invalid_at(r, at, "its program has no %s '%s' of %" PRIu64 " bytes",
					  neuron_neff_var_type_name(type), names[i],
					  neff->edges[e].bytes);
	}
	return 0;
}

int check_nodes(struct neff_reader *r)
{
	const struct jpath top = { .member = "neff.json" }, *at = AT_KEY(&top, "nodes");
	const struct neuron_neff *neff = &r->obj->pub;
	size_t nr = neff->nr_nodes ? count_tensors(neff) : 0;

	for (size_t i = 0; i < neff->nr_nodes; i++) {
		const struct neuron_neff_node *node = &neff->nodes[i];
		const struct jpath *here = AT_INDEX(at, i);
		int err;

		if (node->cpu || node->kelf != r->opts.node)
			continue;
		err = check_names(r, here, node->inputs, node->nr_inputs, NEURON_NEFF_VAR_INPUT) ?:
		      check_names(r, here, node->outputs, node->nr_outputs, NEURON_NEFF_VAR_OUTPUT);
		if (err)
			return err;
		if (nr != node->nr_inputs + node->nr_outputs)
			return invalid_at(r, here, "its program has %zu tensors, not %zu", nr,
					  node->nr_inputs + node->nr_outputs);
	}
	return 0;
}

static bool has_name(const char *const *names, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

bool neff_on_host(const struct neuron_neff *neff, const char *edge)
{
	for (size_t i = 0; i < neff->nr_nodes; i++) {
		const struct neuron_neff_node *n = &neff->nodes[i];

		if (n->cpu && (has_name(n->inputs, n->nr_inputs, edge) ||
			       has_name(n->outputs, n->nr_outputs, edge)))
			return true;
	}
	return false;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Variables of a subgraph, and what constants hold. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../../uapi/neuron_isa.h"
#include "../../common/util.h"
#include "object.h"
#include "parse.h"

#define AREA_ALIGN	(1ull << 16)	/* of the start of a scratch area */

static int compare_var_names(const void *a, const void *b)
{
	const struct neuron_neff_var *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int compare_var_ids(const void *a, const void *b)
{
	const struct neuron_neff_var *const *x = a, *const *y = b;

	return ((*x)->var_id > (*y)->var_id) - ((*x)->var_id < (*y)->var_id);
}

/* A variable of the state buffer or the scratchpad: where in there. */
static int parse_place(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		       struct neuron_neff_var *var)
{
	bool sbuf = var->type == NEURON_NEFF_VAR_STATE_BUFFER;
	uint64_t room = sbuf ? NEURON_NEFF_SBUF_WINDOW : INT64_MAX;
	int err = 0;

	if (!sbuf) {
		var->backing_buf = "main";
		err = jget(r, at, obj, { "backing_buf", .copy = &var->backing_buf });
	}
	err = err ?: jget(r, at, obj, { "backing_variable_off", .integer = &var->backing_off,
					.required = !sbuf });
	if (err)
		return err;
	if (sbuf && !var->size && var->backing_off < room)
		var->size = room - var->backing_off;
	if (var->backing_off > room || var->size > room - var->backing_off || !var->size)
		return invalid_at(r, at, "offset %" PRIu64 " plus size %" PRIu64
				  " is more than %" PRIu64, var->backing_off, var->size, room);
	return 0;
}

static int parse_var(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		     const struct neuron_neff_subgraph *sg, struct neuron_neff_var *var)
{
	struct neff_member *m;
	const char *type;
	int err = jget(r, at, obj, { "type", .text = &type, .required = true }), i;

	if (err)
		return err;
	for (i = 0; i < NEURON_NEFF_NR_VAR_TYPES; i++)
		if (!strcmp(type, neuron_neff_var_type_name((enum neuron_neff_var_type)i)))
			break;
	if (i == NEURON_NEFF_NR_VAR_TYPES)
		return unsupported_at(r, AT_KEY(at, "type"), "unknown type '%s'", type);
	var->type = (enum neuron_neff_var_type)i;
	/* Nothing to address, nothing to allocate: only the state buffer has a size anyway. */
	err = jget(r, at, obj, { "var_id", .number = &var->var_id, .required = true },
		   { "size", .integer = &var->size, .required = true,
		     .min = var->type != NEURON_NEFF_VAR_STATE_BUFFER },
		   { "alignment", .integer = &var->alignment },
		   { "fabric_path", .fabric = &var->fabric });
	if (err)
		return err;
	if (var->alignment & (var->alignment - 1))
		return invalid_at(r, AT_KEY(at, "alignment"), "%" PRIu64
				  " is not a power of two", var->alignment);

	var->dtype = NEURON_NEFF_DT_UINT8;
	var->ndim = 1;
	var->shape[0] = var->size;

	switch (var->type) {
	case NEURON_NEFF_VAR_INPUT:
	case NEURON_NEFF_VAR_OUTPUT:
		if (strlen(var->name) > MAX_IO_NAME)
			return invalid_at(r, at, "name has more than %u bytes", MAX_IO_NAME);
		break;
	case NEURON_NEFF_VAR_FILE:
		err = jget(r, at, obj, { "file_name", .copy = &var->file_name, .required = true }) ?:
		      neff_find_file(r, AT_KEY(at, "file_name"), sg, var->file_name, &m);
		if (!err)
			m->keep = true;
		break;
	case NEURON_NEFF_VAR_VIRTUAL:
	case NEURON_NEFF_VAR_STATE_BUFFER:
		return parse_place(r, at, obj, var);
	default:
		break;
	}
	return err;
}

/* Second pass, when all ids are known: what pointers and tables refer to. */
static int parse_references(struct neff_reader *r, const struct jpath *at, const json_t *obj,
			    const struct neuron_neff_var **by_id, size_t nr,
			    struct neuron_neff_var *var)
{
	struct neuron_neff_var key, *pkey = &key;
	const struct neuron_neff_var **hit;
	const uint32_t *ids = NULL;
	size_t n = 0;
	int err;

	if (var->type == NEURON_NEFF_VAR_POINTER) {
		err = jget(r, at, obj, { "referenced_var_id", .number = &key.var_id,
					 .required = true });
		if (err)
			return err;
		hit = bsearch(&pkey, by_id, nr, sizeof(*by_id), compare_var_ids);
		if (!hit)
			return invalid_at(r, AT_KEY(at, "referenced_var_id"),
					  "no variable has id %u", key.var_id);
		var->referenced = *hit;
		if (var->size < 8)
			return invalid_at(r, AT_KEY(at, "size"), "a pointer needs 8 bytes");
	}
	if (var->type == NEURON_NEFF_VAR_DGE_TABLE) {
		err = jget(r, at, obj, { "list", .integers = &ids, .nr = &n, .max = UINT32_MAX });
		if (err)
			return err;
		if (var->size / 8 < n)
			return invalid_at(r, AT_KEY(at, "size"),
					  "%zu addresses do not fit into %" PRIu64 " bytes",
					  n, var->size);
		if (new_at(r, at, var->list, n))
			return -ENOMEM;
		var->nr_list = n;
		for (size_t i = 0; i < n; i++) {
			key.var_id = ids[i];
			hit = bsearch(&pkey, by_id, nr, sizeof(*by_id), compare_var_ids);
			if (!hit)
				return invalid_at(r, AT_INDEX(AT_KEY(at, "list"), i),
						  "no variable has id %u", ids[i]);
			var->list[i] = *hit;
		}
	}
	return 0;
}

/* The scratch area of a virtual variable, with room for it. */
static int find_area(struct neff_reader *r, const struct jpath *at,
		     struct neuron_neff_subgraph *sg, struct neuron_neff_var *var)
{
	uint64_t end = var->backing_off + var->size;
	size_t i;

	for (i = 0; i < sg->nr_areas; i++)
		if (!strcmp(sg->areas[i].name, var->backing_buf))
			break;
	if (i == NEURON_NEFF_MAX_AREAS)
		return fail_at(r, NEURON_NEFF_RESOURCE, at, "more than %u scratch areas",
			       NEURON_NEFF_MAX_AREAS);
	if (i == sg->nr_areas)
		sg->areas[sg->nr_areas++].name = var->backing_buf;
	sg->areas[i].need = MAX(sg->areas[i].need, end);
	var->area = &sg->areas[i];
	return 0;
}

/* One area behind the other; each is as long as its last variable reaches. */
static int place_areas(struct neff_reader *r, const struct jpath *at,
		       struct neuron_neff_subgraph *sg)
{
	int err = 0;

	if (new_at(r, at, sg->areas, NEURON_NEFF_MAX_AREAS))
		return -ENOMEM;
	for (size_t i = 0; i < sg->nr_vars && !err; i++)
		if (sg->vars[i].type == NEURON_NEFF_VAR_VIRTUAL)
			err = find_area(r, AT_KEY(at, sg->vars[i].name), sg, &sg->vars[i]);
	for (size_t i = 0; i < sg->nr_areas && !err; i++) {
		if (i)
			sg->scratchpad = round_up(sg->scratchpad, AREA_ALIGN);
		sg->areas[i].base = sg->scratchpad;
		if (__builtin_add_overflow(sg->scratchpad, sg->areas[i].need, &sg->scratchpad) ||
		    sg->scratchpad > INT64_MAX)
			err = invalid_at(r, at, "scratchpad of more than 2^63 bytes");
	}
	return err;
}

int parse_vars(struct neff_reader *r, const struct jpath *at, json_t *vars,
	       struct neuron_neff_subgraph *sg)
{
	size_t n = json_object_size(vars), i = 0;
	const struct neuron_neff_var **by_id;
	const char *name;
	json_t *v;
	int err;

	if (new_at(r, at, sg->vars, n) || new_at(r, at, sg->vars_by_name, n) ||
	    new_at(r, at, by_id, n))
		return -ENOMEM;

	json_object_foreach(vars, name, v) {
		struct neuron_neff_var *var = &sg->vars[i];
		const struct jpath *here = AT_KEY(at, name);

		if (!*name)
			return invalid_at(r, at, "variable without a name");
		err = jcopy_text(r, here, name, &var->name) ?: parse_var(r, here, v, sg, var);
		if (err)
			return err;
		sg->vars_by_name[i] = by_id[i] = var;
		i++;
	}
	sg->nr_vars = n;
	if (!n)
		return 0;
	err = place_areas(r, at, sg);
	if (err)
		return err;
	qsort(sg->vars_by_name, n, sizeof(*sg->vars_by_name), compare_var_names);
	qsort(by_id, n, sizeof(*by_id), compare_var_ids);
	for (i = 1; i < n; i++)
		if (by_id[i]->var_id == by_id[i - 1]->var_id)
			return invalid_at(r, AT_KEY(AT_KEY(at, by_id[i]->name), "var_id"),
					  "%u is also the id of '%s'", by_id[i]->var_id,
					  by_id[i - 1]->name);
	i = 0;
	json_object_foreach(vars, name, v)
		err = err ?: parse_references(r, AT_KEY(at, name), v, by_id, n, &sg->vars[i++]);
	return err;
}

int load_constant(struct neff_reader *r, const struct neuron_neff_subgraph *sg,
		  struct neuron_neff_var *var)
{
	const struct jpath root = { .member = sg->definition };
	const struct jpath *here = AT_KEY(AT_KEY(AT_KEY(&root, "var"), var->name), "file_name");
	struct neff_member *m;
	struct neuron_neff_npy npy;
	int err = neff_find_file(r, here, sg, var->file_name, &m) ?: neff_elements(r, m, &npy);

	if (err)
		return err;
	var->data = npy.data;
	var->data_size = npy.size;
	if (npy.ndim && npy.size == var->size) {
		var->dtype = npy.dtype;
		var->ndim = npy.ndim;
		for (uint32_t i = 0; i < npy.ndim; i++)
			var->shape[i] = npy.shape[i];
	}
	if (var->data_size > var->size)
		return invalid_at(r, here, "'%s' has %zu bytes, the variable %" PRIu64,
				  m->name, var->data_size, var->size);
	/* Weights that are missing would silently read as zero. */
	if (var->data_size < var->size && !r->opts.short_constants)
		return invalid_at(r, here, "'%s' has only %zu of the %" PRIu64
				  " bytes of the variable", m->name, var->data_size, var->size);
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the entries of an engine's list of DMA triggers move. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/util.h"
#include "json.h"
#include "parse.h"

/* Keys of a side: from_* or to_*. */
struct side_keys {
	const char *var, *off, *steps, *sizes, *dtype;
};

static const struct side_keys from_keys = {
	"from", "from_off", "from_steps", "from_sizes", "from_dtype"
};

static const struct side_keys to_keys = {
	"to", "to_off", "to_steps", "to_sizes", "to_dtype"
};

/* Everything but the size check against the variable; ndim 0 = no sizes given. */
static int parse_side(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		      const struct side_keys *k, const struct neuron_neff_subgraph *sg,
		      struct neuron_neff_side *side, struct neuron_neff_desc *d)
{
	json_t *sizes = NULL, *steps = NULL;
	const char *name;
	size_t n;
	int err;

	side->dtype = NEURON_NEFF_DT_UINT8;
	err = jget(r, at, obj, { k->var, .text = &name, .required = true },
		   { k->off, .integer = &side->off }, { k->dtype, .dtype = &side->dtype },
		   { k->sizes, .list = &sizes }, { k->steps, .list = &steps });
	if (err)
		return err;
	side->var = neuron_neff_find_var(sg, name);
	if (!side->var)
		return invalid_at(r, AT_KEY(at, k->var), "no variable is called '%s'", name);
	if (side->dtype == NEURON_NEFF_DT_UNKNOWN) {
		side->dtype = NEURON_NEFF_DT_UINT8;
		d->op = NEURON_NEFF_OP_UNKNOWN;
	}
	if (!sizes != !steps)
		return invalid_at(r, at, "has only one of %s and %s", k->sizes, k->steps);
	if (!sizes)
		return 0;

	n = json_array_size(sizes);
	if (!n || n > NEURON_NEFF_MAX_DIMS)
		return invalid_at(r, AT_KEY(at, k->sizes), "%zu dimensions, not 1 to %u", n,
				  NEURON_NEFF_MAX_DIMS);
	if (json_array_size(steps) != n)
		return invalid_at(r, AT_KEY(at, k->steps), "%zu steps for %zu sizes",
				  json_array_size(steps), n);
	side->bytes = 1;
	for (size_t i = 0; i < n; i++) {
		err = jcheck_int(r, AT_INDEX(AT_KEY(at, k->sizes), i), json_array_get(sizes, i),
				 1, INT64_MAX, &side->size[i]) ?:
		      jcheck_int(r, AT_INDEX(AT_KEY(at, k->steps), i), json_array_get(steps, i),
				 0, INT64_MAX, &side->step[i]);
		if (err)
			return err;
		if (__builtin_mul_overflow(side->bytes, side->size[i], &side->bytes) ||
		    side->bytes > INT64_MAX)
			return invalid_at(r, AT_KEY(at, k->sizes), "product overflows");
	}
	side->ndim = (uint32_t)n;
	if (side->size[0] % neuron_neff_dtype_size(side->dtype))
		return invalid_at(r, AT_INDEX(AT_KEY(at, k->sizes), 0),
				  "%" PRIu64 " bytes are no multiple of a %s", side->size[0],
				  neuron_neff_dtype_name(side->dtype));
	return 0;
}

static uint64_t elements(const struct neuron_neff_side *s)
{
	return s->bytes / neuron_neff_dtype_size(s->dtype);
}

/* A side without sizes is contiguous and has as many elements as the other. */
static int fill_side(struct neff_reader *r, const struct jpath *at,
		     struct neuron_neff_side *side, const struct neuron_neff_side *other,
		     enum neuron_neff_op op)
{
	bool bytes = op == NEURON_NEFF_OP_COPY || op == NEURON_NEFF_OP_UNKNOWN;
	uint64_t n = bytes ? other->bytes : elements(other);
	uint64_t unit = bytes ? 1 : neuron_neff_dtype_size(side->dtype);

	if (side->ndim)
		return 0;
	/* Of elements of unknown sizes nobody can say how far they reach. */
	if (op == NEURON_NEFF_OP_UNKNOWN) {
		side->dtype = NEURON_NEFF_DT_UINT8;
		if (side->off < side->var->size && n > side->var->size - side->off)
			n = side->var->size - side->off;
	}
	if (__builtin_mul_overflow(n, unit, &n) || n > INT64_MAX)
		return invalid_at(r, at, "size overflows");
	if (n % neuron_neff_dtype_size(side->dtype))
		return invalid_at(r, at, "%" PRIu64 " bytes are no multiple of its type", n);
	side->ndim = 1;
	side->size[0] = n;
	side->step[0] = 1;
	side->bytes = n;
	return 0;
}

static int check_side(struct neff_reader *r, const struct jpath *at,
		      const struct neuron_neff_side *s)
{
	uint64_t run = neuron_neff_side_run(s), end, span, count;

	if (__builtin_add_overflow(s->off, run - 1, &end))
		return invalid_at(r, at, "offset and steps overflow");
	for (uint32_t i = 0; i < s->ndim; i++) {
		count = i ? s->size[i] : s->size[0] / run;
		if (__builtin_mul_overflow(count - 1, s->step[i], &span) ||
		    __builtin_add_overflow(end, span, &end))
			return invalid_at(r, at, "offset and steps overflow");
	}
	if (end >= s->var->size)
		return invalid_at(r, at, "byte %" PRIu64 " is outside '%s', which has %" PRIu64
				  " bytes", end, s->var->name, s->var->size);
	return 0;
}

static int check_writable(struct neff_reader *r, const struct jpath *at,
			  const struct neuron_neff_side *to)
{
	for (uint32_t i = 0; i < to->ndim; i++) {
		uint64_t count = i ? to->size[i] : to->size[0] / neuron_neff_side_run(to);

		if (!to->step[i] && count > 1)
			return invalid_at(r, AT_INDEX(AT_KEY(at, "to_steps"), i),
					  "0 writes the same bytes %" PRIu64 " times", count);
	}
	switch (to->var->type) {
	case NEURON_NEFF_VAR_INPUT:
		return obstacle_at(r, AT_KEY(at, "to"), "'%s' is an input and written",
				   to->var->name);
	case NEURON_NEFF_VAR_FILE:
	case NEURON_NEFF_VAR_POINTER:
	case NEURON_NEFF_VAR_DGE_TABLE:
		return invalid_at(r, AT_KEY(at, "to"), "'%s' is of type %s and cannot be written",
				  to->var->name, neuron_neff_var_type_name(to->var->type));
	default:
		return 0;
	}
}

static int parse_sources(struct neff_reader *r, const struct jpath *at, const json_t *obj,
			 const struct neuron_neff_subgraph *sg, struct neuron_neff_desc *d)
{
	json_t *arr = NULL;
	size_t n = 1;
	int err = jget(r, at, obj, { "from_arr", .list = &arr });

	if (err)
		return err;
	if (arr) {
		n = json_array_size(arr);
		if (!n || n > NEURON_NEFF_MAX_SOURCES)
			return invalid_at(r, AT_KEY(at, "from_arr"), "%zu sources, not 1 to %u",
					  n, NEURON_NEFF_MAX_SOURCES);
		if (n > 1 && (d->op == NEURON_NEFF_OP_COPY || d->op == NEURON_NEFF_OP_CAST ||
			      d->op == NEURON_NEFF_OP_TRANSPOSE))
			return invalid_at(r, AT_KEY(at, "from_arr"),
					  "%zu sources, the operation takes one", n);
	}
	if (new_at(r, at, d->from, n))
		return -ENOMEM;
	d->nr_from = n;
	if (!arr)
		return parse_side(r, at, obj, &from_keys, sg, &d->from[0], d);
	for (size_t i = 0; i < n && !err; i++)
		err = parse_side(r, AT_INDEX(AT_KEY(at, "from_arr"), i), json_array_get(arr, i),
				 &from_keys, sg, &d->from[i], d);
	return err;
}

static int parse_transpose(struct neff_reader *r, const struct jpath *at, const json_t *obj,
			   struct neuron_neff_desc *d)
{
	const struct jpath *here = AT_KEY(at, "transpose_shape");
	uint64_t bytes;
	json_t *shape;
	int err = jget(r, at, obj, { "transpose_shape", .list = &shape, .required = true },
		       { "transpose_element_size", .number = &d->transpose_element_size,
			 .required = true, .min = 1, .max = 16 });

	if (err)
		return err;
	if (json_array_size(shape) != 4)
		return invalid_at(r, here, "%zu dimensions, not 4", json_array_size(shape));
	bytes = d->transpose_element_size;
	for (size_t i = 0; i < 4; i++) {
		err = jcheck_int(r, AT_INDEX(here, i), json_array_get(shape, i), 1, INT64_MAX,
				&d->transpose_shape[i]);
		if (err)
			return err;
		if (__builtin_mul_overflow(bytes, d->transpose_shape[i], &bytes))
			return invalid_at(r, here, "product overflows");
	}
	if (bytes != d->from[0].bytes)
		return invalid_at(r, here, "%" PRIu64 " bytes, the source has %" PRIu64, bytes,
				  d->from[0].bytes);
	return 0;
}

static int parse_compute(struct neff_reader *r, const struct jpath *at, const json_t *obj,
			 struct neuron_neff_desc *d)
{
	bool constant = json_object_get(obj, "constant");
	int err;

	d->scale_dtype = NEURON_NEFF_DT_FLOAT32;
	d->scale = 1.0;
	err = jget(r, at, obj, { "num_tiling_dimensions", .number = &d->num_tiling_dimensions });
	if (err)
		return err;
	switch (d->op) {
	case NEURON_NEFF_OP_FMA:
		return jget(r, at, obj, { "scale_dtype", .dtype = &d->scale_dtype,
					  .unknown = NEURON_NEFF_DT_FLOAT32 },
			    { "scale", .real = &d->scale });
	case NEURON_NEFF_OP_MIN:
	case NEURON_NEFF_OP_MAX:
		err = jget(r, at, obj, { "constant_dtype", .dtype = &d->constant_dtype,
					 .unknown = NEURON_NEFF_DT_FLOAT32 },
			   { "constant", .real = &d->constant });
		if (err)
			return err;
		if (constant != (d->constant_dtype != NEURON_NEFF_DT_UNKNOWN))
			return invalid_at(r, at, "has only one of constant and constant_dtype");
		if (constant && d->constant_dtype != NEURON_NEFF_DT_FLOAT32 &&
		    d->constant_dtype != NEURON_NEFF_DT_INT32 &&
		    d->constant_dtype != NEURON_NEFF_DT_UINT32)
			return invalid_at(r, AT_KEY(at, "constant_dtype"),
					  "is not float32, int32 or uint32");
		return 0;
	case NEURON_NEFF_OP_TRANSPOSE:
		return parse_transpose(r, at, obj, d);
	default:
		return 0;
	}
}

static int parse_desc(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		      const struct neuron_neff_subgraph *sg, struct neuron_neff_desc *d)
{
	static const char *const ops[] = {
		"copy", "cast", "fma", "add", "min", "max", "transpose"
	};
	const struct neuron_neff_side *sized = NULL;
	const char *op = "copy";
	bool bytes;
	int err = jget(r, at, obj, { "op", .text = &op }), i;

	if (err)
		return err;
	i = find_name(op, ops, ARRAY_SIZE(ops));
	d->op = i < 0 ? NEURON_NEFF_OP_UNKNOWN : (enum neuron_neff_op)i;
	err = i < 0 ? obstacle_at(r, AT_KEY(at, "op"), "unknown operation '%s'", op) : 0;
	err = err ?: parse_side(r, at, obj, &to_keys, sg, &d->to, d) ?:
		     parse_sources(r, at, obj, sg, d);
	if (err)
		return err;
	bytes = d->op == NEURON_NEFF_OP_COPY;

	if (d->to.ndim)
		sized = &d->to;
	for (size_t s = 0; !sized && s < d->nr_from; s++)
		if (d->from[s].ndim)
			sized = &d->from[s];
	if (!sized)
		return invalid_at(r, at, "neither side has sizes");
	err = fill_side(r, AT_KEY(at, "to"), &d->to, sized, d->op) ?:
	      check_side(r, AT_KEY(at, "to"), &d->to) ?: check_writable(r, at, &d->to);
	for (size_t s = 0; !err && s < d->nr_from; s++) {
		struct neuron_neff_side *from = &d->from[s];
		uint64_t here, there;

		err = fill_side(r, AT_KEY(at, "from"), from, &d->to, d->op) ?:
		      check_side(r, AT_KEY(at, "from"), from);
		if (err)
			return err;
		here = bytes ? from->bytes : elements(from);
		there = bytes ? d->to.bytes : elements(&d->to);
		if (here != there && d->op != NEURON_NEFF_OP_UNKNOWN)
			return invalid_at(r, at, "%" PRIu64 " %s from '%s' to %" PRIu64 " in '%s'",
					  here, bytes ? "bytes" : "elements", from->var->name, there,
					  d->to.var->name);
	}
	return err ? err : parse_compute(r, at, obj, d);
}

static int find_queue(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		      struct neuron_neff_dma *dma)
{
	const char *instance = NULL, *queue = NULL;
	const struct neff_queue_name *hit;
	int err = jget(r, at, obj, { "instance_name", .text = &instance },
		       { "queue", .text = &queue,
			 .required = !json_object_get(obj, "instance_name") });

	if (err)
		return err;
	hit = find_queue_name(r, instance ? instance : queue, instance);
	if (!hit && instance)
		return invalid_at(r, AT_KEY(at, "instance_name"),
				  "no queue set has an instance '%s'", instance);
	if (!hit)
		return invalid_at(r, AT_KEY(at, "queue"), "no queue set is called '%s'", queue);
	dma->queue = hit->queue;
	dma->instance = hit->instance;
	return 0;
}

static int parse_dma(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		     const struct neuron_neff_subgraph *sg, struct neuron_neff_dma *dma)
{
	const struct jpath *here = AT_KEY(at, "desc");
	json_t *desc;
	int err;

	dma->event = -1;
	dma->semaphore = -1;
	err = jget(r, at, obj, { "id", .number = &dma->id, .required = true }) ?:
	      find_queue(r, at, obj, dma) ?:
	      jget(r, at, obj, { "function_start", .copy = &dma->function_start },
		   { "section_start_desc", .boolean = &dma->section_start },
		   { "event", .index = &dma->event, .max = NEURON_NEFF_MAX_EVENTS - 1 },
		   { "semaphore", .index = &dma->semaphore, .max = NEURON_NEFF_MAX_SEMAPHORES - 1 },
		   { "remote_semaphores", .integers = &dma->remote_semaphores,
		     .nr = &dma->nr_remote_semaphores, .max = NEURON_NEFF_MAX_SEMAPHORES - 1 });
	if (err)
		return err;

	desc = json_object_get(obj, "desc");
	if (!desc)
		return invalid_at(r, here, "missing");
	if (!json_is_array(desc) && !json_is_object(desc))
		return invalid_at(r, here, "is %s, not an object or a list", jtype_name(desc));
	dma->nr_desc = json_is_array(desc) ? json_array_size(desc) : 1;
	if (!dma->nr_desc)
		return invalid_at(r, here, "empty list");
	if (new_at(r, here, dma->desc, dma->nr_desc))
		return -ENOMEM;
	if (json_is_object(desc))
		return parse_desc(r, here, desc, sg, &dma->desc[0]);
	for (size_t i = 0; i < dma->nr_desc && !err; i++)
		err = parse_desc(r, AT_INDEX(here, i), json_array_get(desc, i), sg, &dma->desc[i]);
	return err;
}

static int compare_dma_ids(const void *a, const void *b)
{
	const struct neuron_neff_dma *const *x = a, *const *y = b;

	return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

int parse_dma_list(struct neff_reader *r, const struct jpath *at, const json_t *list,
		   const struct neuron_neff_subgraph *sg, struct neuron_neff_engine *eng)
{
	size_t n = json_array_size(list);
	int err;

	if (new_at(r, at, eng->dma, n) || new_at(r, at, eng->dma_by_id, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		err = parse_dma(r, AT_INDEX(at, i), json_array_get(list, i), sg, &eng->dma[i]);
		if (err)
			return err;
		eng->dma_by_id[i] = &eng->dma[i];
	}
	eng->nr_dma = n;
	if (!n)
		return 0;
	qsort(eng->dma_by_id, n, sizeof(*eng->dma_by_id), compare_dma_ids);
	for (size_t i = 1; i < n; i++)
		if (eng->dma_by_id[i]->id == eng->dma_by_id[i - 1]->id)
			return obstacle_at(r, at, "two entries have id %u", eng->dma_by_id[i]->id);
	return 0;
}

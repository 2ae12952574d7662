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
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "../../../uapi/neuron_isa.h"
#include "reader.h"

#define NEFF_IO_FORMAT	"neuron-pack-1"
#define MAX_IO_NAME	255u		/* NRT_TENSOR_NAME_MAX with its NUL */
#define AREA_ALIGN	(1ull << 16)	/* of the start of a scratch area */
#define NR_ELEMS(a)	(sizeof(a) / sizeof((a)[0]))

/* Where in a JSON document we are, for messages; lives on the stack. */
struct jpath {
	const char *member;		/* set in the root only */
	const struct jpath *up;
	const char *key;		/* NULL: @index */
	size_t index;
};

#define AT_KEY(up_, key_)	(&(struct jpath){ .up = (up_), .key = (key_) })
#define AT_INDEX(up_, index_)	(&(struct jpath){ .up = (up_), .index = (index_) })

static size_t path_text(const struct jpath *p, char *buf, size_t room)
{
	size_t n;
	int len;

	if (!p->up) {
		len = snprintf(buf, room, "%s", p->member);
		return len < 0 ? 0 : (size_t)len;
	}
	n = path_text(p->up, buf, room);
	if (n >= room)
		return n;
	if (p->key)
		len = snprintf(buf + n, room - n, "%s%s", p->up->up ? "." : ": ", p->key);
	else
		len = snprintf(buf + n, room - n, "%s[%zu]", p->up->up ? "" : ": ", p->index);
	return n + (len < 0 ? 0 : (size_t)len);
}

#define fail_at(r, class, path, ...) \
	__extension__({ \
		char where_[400]; \
		path_text((path), where_, sizeof(where_)); \
		neff_fail((r), (class), where_, __VA_ARGS__); \
	})
#define invalid_at(r, path, ...)	fail_at(r, NEURON_NEFF_INVALID, path, __VA_ARGS__)
#define unsupported_at(r, path, ...)	fail_at(r, NEURON_NEFF_UNSUPPORTED, path, __VA_ARGS__)

static int memory_at(struct neff_reader *r, const struct jpath *path)
{
	char where[400];

	path_text(path, where, sizeof(where));
	return neff_fail_memory(r, where);
}

/* It can be placed, but not run. */
__attribute__((format(printf, 3, 4)))
static int obstacle_at(struct neff_reader *r, const struct jpath *path, const char *fmt, ...)
{
	struct neuron_neff *neff = &r->obj->pub;
	char text[512];
	va_list ap;
	int n;

	neff->executable = false;
	if (neff->nr_obstacles == NEURON_NEFF_MAX_OBSTACLES)
		return 0;
	path_text(path, text, 320);
	n = (int)strlen(text);
	n += snprintf(text + n, sizeof(text) - (size_t)n, ": ");
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	neuron_neff_printable(text);
	neff->obstacles[neff->nr_obstacles] = neff_strdup(r->obj, text);
	if (!neff->obstacles[neff->nr_obstacles])
		return memory_at(r, path);
	neff->nr_obstacles++;
	return 0;
}

static const char *type_name(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT: return "an object";
	case JSON_ARRAY: return "a list";
	case JSON_STRING: return "a string";
	case JSON_INTEGER: return "an integer";
	case JSON_REAL: return "a real number";
	case JSON_NULL: return "null";
	default: return "a boolean";
	}
}

/* Get @key of @obj if it has the type; *out = NULL if absent and not required. */
static int get(struct neff_reader *r, const struct jpath *at, const json_t *obj,
	       const char *key, json_type type, const char *type_text, bool required,
	       json_t **out)
{
	json_t *v = json_object_get(obj, key);

	*out = v;
	if (!v)
		return required ? invalid_at(r, AT_KEY(at, key), "missing") : 0;
	if (json_typeof(v) != type)
		return invalid_at(r, AT_KEY(at, key), "is %s, not %s", type_name(v), type_text);
	return 0;
}

static int get_list(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		    const char *key, bool required, json_t **out)
{
	return get(r, at, obj, key, JSON_ARRAY, "a list", required, out);
}

static int get_object(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		      const char *key, bool required, json_t **out)
{
	return get(r, at, obj, key, JSON_OBJECT, "an object", required, out);
}

/* The text belongs to the JSON document; *out untouched if absent. */
static int get_text(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		    const char *key, bool required, const char **out)
{
	json_t *v;
	int err = get(r, at, obj, key, JSON_STRING, "a string", required, &v);

	if (!err && v)
		*out = json_string_value(v);
	return err;
}

static int get_bool(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		    const char *key, bool *out)
{
	json_t *v = json_object_get(obj, key);

	if (!v)
		return 0;
	if (!json_is_boolean(v))
		return invalid_at(r, AT_KEY(at, key), "is %s, not a boolean", type_name(v));
	*out = json_is_true(v);
	return 0;
}

static int check_int(struct neff_reader *r, const struct jpath *at, const json_t *v,
		     uint64_t min, uint64_t max, uint64_t *out)
{
	json_int_t n;

	if (!json_is_integer(v))
		return invalid_at(r, at, "is %s, not an integer", type_name(v));
	n = json_integer_value(v);
	if (n < 0 || (uint64_t)n < min || (uint64_t)n > max)
		return invalid_at(r, at, "%" JSON_INTEGER_FORMAT " is not in %" PRIu64
				  "..%" PRIu64, n, min, max);
	*out = (uint64_t)n;
	return 0;
}

/* *out untouched if absent. */
static int get_int(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		   const char *key, bool required, uint64_t min, uint64_t max, uint64_t *out)
{
	json_t *v = json_object_get(obj, key);

	if (!v)
		return required ? invalid_at(r, AT_KEY(at, key), "missing") : 0;
	return check_int(r, AT_KEY(at, key), v, min, max, out);
}

static int get_number(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		      const char *key, double *out)
{
	json_t *v = json_object_get(obj, key);

	if (!v)
		return 0;
	if (!json_is_number(v))
		return invalid_at(r, AT_KEY(at, key), "is %s, not a number", type_name(v));
	*out = json_number_value(v);
	return 0;
}

/* A list of integers in min..max, copied; *out = NULL and *n = 0 if absent. */
static int get_ints(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		    const char *key, uint32_t max, const uint32_t **out, size_t *n)
{
	uint32_t *copy;
	uint64_t v;
	json_t *list;
	int err;

	err = get_list(r, at, obj, key, false, &list);
	if (err || !list)
		return err;
	copy = neff_alloc(r->obj, json_array_size(list), sizeof(*copy));
	if (!copy)
		return memory_at(r, AT_KEY(at, key));
	for (size_t i = 0; i < json_array_size(list); i++) {
		err = check_int(r, AT_INDEX(AT_KEY(at, key), i), json_array_get(list, i),
				0, max, &v);
		if (err)
			return err;
		copy[i] = (uint32_t)v;
	}
	*out = copy;
	*n = json_array_size(list);
	return 0;
}

static int copy_text(struct neff_reader *r, const struct jpath *at, const char *text,
		     const char **out)
{
	*out = neff_strdup(r->obj, text);
	return *out ? 0 : memory_at(r, at);
}

/* A list of strings, copied. */
static int get_texts(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		     const char *key, const char ***out, size_t *n)
{
	const char **copy;
	json_t *list;
	int err;

	err = get_list(r, at, obj, key, false, &list);
	if (err || !list)
		return err;
	copy = neff_alloc(r->obj, json_array_size(list), sizeof(*copy));
	if (!copy)
		return memory_at(r, AT_KEY(at, key));
	for (size_t i = 0; i < json_array_size(list); i++) {
		const struct jpath *here = AT_INDEX(AT_KEY(at, key), i);
		json_t *v = json_array_get(list, i);

		if (!json_is_string(v))
			return invalid_at(r, here, "is %s, not a string", type_name(v));
		err = copy_text(r, here, json_string_value(v), &copy[i]);
		if (err)
			return err;
	}
	*out = copy;
	*n = json_array_size(list);
	return 0;
}

/* Index of @text in @names, or -1. */
static int find_name(const char *text, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (names[i] && !strcmp(text, names[i]))
			return (int)i;
	return -1;
}

static int get_fabric(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		      enum neuron_neff_fabric *out)
{
	static const char *const names[] = { "main", "alt" };
	const char *text = "main";
	int err, i;

	err = get_text(r, at, obj, "fabric_path", false, &text);
	if (err)
		return err;
	i = find_name(text, names, NR_ELEMS(names));
	if (i < 0)
		return unsupported_at(r, AT_KEY(at, "fabric_path"), "unknown path '%s'", text);
	*out = (enum neuron_neff_fabric)i;
	return 0;
}

/*
 * At least as many as the parser would create, strings apart: jansson needs
 * many times the memory of the text, which its size alone does not bound well.
 */
static uint32_t count_values(const char *text, size_t size)
{
	size_t n = 1;

	for (size_t i = 0; i < size; i++)
		n += text[i] == ',' || text[i] == ':' || text[i] == '[' || text[i] == '{';
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Of a value, in the order of the document, the first number that no integer can be. */
static int find_large(struct neff_reader *r, const struct jpath *at, const json_t *v)
{
	const char *key;
	json_t *member;
	int err = 0;

	if (json_is_real(v) && json_real_value(v) >= 0x1p63)
		return invalid_at(r, at, "is more than %" PRId64, INT64_MAX);
	if (json_is_real(v) && json_real_value(v) < -0x1p63)
		return invalid_at(r, at, "is less than %" PRId64, INT64_MIN);
	for (size_t i = 0; i < json_array_size(v) && !err; i++)
		err = find_large(r, AT_INDEX(at, i), json_array_get(v, i));
	json_object_foreach((json_t *)(uintptr_t)v, key, member)
		if (!err)
			err = find_large(r, AT_KEY(at, key), member);
	return err;
}

/* The parser says the column of a number that is too large; people look for its key. */
static int fail_syntax(struct neff_reader *r, const struct neff_member *m, const json_error_t *e)
{
	const struct jpath at = { .member = m->name };
	json_t *v = NULL;
	int err = 0;

	if (json_error_code(e) == json_error_numeric_overflow)
		v = json_loadb(m->data, m->size, JSON_DECODE_INT_AS_REAL, NULL);
	if (v)
		err = find_large(r, &at, v);
	json_decref(v);
	if (err)
		return err;
	return neff_fail(r, NEURON_NEFF_INVALID, m->name, "line %d column %d: %s", e->line,
			 e->column, e->text);
}

/* To be fetched, if it is not too long to be parsed. */
static int want_json(struct neff_reader *r, struct neff_member *m)
{
	m->wanted = m->size <= r->opts.max_json;
	return m->wanted ? 0 : neff_fail_limit(r, m->name,
					       "%zu bytes of JSON, the limit is %" PRIu64, m->size,
					       r->opts.max_json);
}

/* Parse a member as JSON; the caller drops the reference. */
static int load_json(struct neff_reader *r, const char *name, const struct jpath *who,
		     json_t **out)
{
	struct neff_member *m = neff_find_member(r->obj, name);
	json_error_t e;

	if (!m && who)
		return invalid_at(r, who, "'%s' is not in the archive", name);
	if (!m)
		return neff_fail(r, NEURON_NEFF_INVALID, name, "missing from the archive");
	if (count_values(m->data, m->size) > r->opts.max_values)
		return neff_fail_limit(r, name, "more than %u values", r->opts.max_values);
	*out = json_loadb(m->data ? m->data : "", m->size, JSON_REJECT_DUPLICATES, &e);
	if (!*out && json_error_code(&e) == json_error_out_of_memory)
		return neff_fail_memory(r, name);
	if (!*out)
		return fail_syntax(r, m, &e);
	if (!json_is_object(*out)) {
		json_decref(*out);
		return neff_fail(r, NEURON_NEFF_INVALID, name, "not a JSON object");
	}
	return 0;
}

/* ASCII ones, and those that UTF-8 writes as 0xc2 0x80 to 0xc2 0x9f. */
static bool has_control(const char *s)
{
	for (; *s; s++)
		if (iscntrl((unsigned char)*s) ||
		    ((unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0))
			return true;
	return false;
}

/* Member @file of the subgraph's directory, as named by the value at @at; to be fetched. */
static int find_file(struct neff_reader *r, const struct jpath *at,
		     const struct neuron_neff_subgraph *sg, const char *file,
		     struct neff_member **out)
{
	size_t room = strlen(sg->dir) + strlen("/") + strlen(file) + 1;
	char *raw = malloc(room), *name = malloc(room);
	const char *why;
	int err = 0;

	if (!raw || !name) {
		err = memory_at(r, at);
		goto done;
	}
	snprintf(raw, room, "%s%s%s", sg->dir, *sg->dir ? "/" : "", file);
	why = *file == '/' ? "absolute path" : neff_normalise(raw, name);
	if (why) {
		err = invalid_at(r, at, "'%s': %s", file, why);
		goto done;
	}
	*out = neff_find_member(r->obj, name);
	if (!*out)
		err = invalid_at(r, at, "'%s' is not in the archive", name);
	else
		(*out)->wanted = true;
done:
	free(raw);
	free(name);
	return err;
}

/* ---- variables ---- */

static int compare_var_names(const void *a, const void *b)
{
	return strcmp((*(const struct neuron_neff_var *const *)a)->name,
		      (*(const struct neuron_neff_var *const *)b)->name);
}

static int compare_var_ids(const void *a, const void *b)
{
	uint32_t x = (*(const struct neuron_neff_var *const *)a)->var_id;
	uint32_t y = (*(const struct neuron_neff_var *const *)b)->var_id;

	return (x > y) - (x < y);
}

static int parse_var(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		     const struct neuron_neff_subgraph *sg, struct neuron_neff_var *var)
{
	const char *type = NULL, *text = NULL;
	struct neff_member *m;
	uint64_t v = 0;
	int err, i;

	err = get_text(r, at, obj, "type", true, &type);
	if (err)
		return err;
	for (i = 0; i < NEURON_NEFF_NR_VAR_TYPES; i++)
		if (!strcmp(type, neuron_neff_var_type_name((enum neuron_neff_var_type)i)))
			break;
	if (i == NEURON_NEFF_NR_VAR_TYPES)
		return unsupported_at(r, AT_KEY(at, "type"), "unknown type '%s'", type);
	var->type = (enum neuron_neff_var_type)i;

	err = get_int(r, at, obj, "var_id", true, 0, UINT32_MAX, &v);
	if (err)
		return err;
	var->var_id = (uint32_t)v;
	/* Nothing to address, nothing to allocate: only the state buffer has a size anyway. */
	err = get_int(r, at, obj, "size", true, var->type != NEURON_NEFF_VAR_STATE_BUFFER,
		      INT64_MAX, &var->size);
	if (err)
		return err;
	err = get_int(r, at, obj, "alignment", false, 0, INT64_MAX, &var->alignment);
	if (err)
		return err;
	if (var->alignment & (var->alignment - 1))
		return invalid_at(r, AT_KEY(at, "alignment"), "%" PRIu64
				  " is not a power of two", var->alignment);
	err = get_fabric(r, at, obj, &var->fabric);
	if (err)
		return err;

	var->dtype = NEURON_NEFF_DT_UINT8;
	var->ndim = 1;
	var->shape[0] = var->size;

	switch (var->type) {
	case NEURON_NEFF_VAR_INPUT:
	case NEURON_NEFF_VAR_OUTPUT:
		if (strlen(var->name) > MAX_IO_NAME)
			return invalid_at(r, at, "name has more than %u bytes", MAX_IO_NAME);
		if (has_control(var->name))
			return invalid_at(r, at, "name has control characters");
		break;
	case NEURON_NEFF_VAR_FILE:
		err = get_text(r, at, obj, "file_name", true, &text);
		if (!err)
			err = copy_text(r, at, text, &var->file_name);
		if (!err)
			err = find_file(r, AT_KEY(at, "file_name"), sg, text, &m);
		if (!err)
			m->keep = true;
		break;
	case NEURON_NEFF_VAR_VIRTUAL:
		text = "main";
		err = get_text(r, at, obj, "backing_buf", false, &text);
		if (!err)
			err = copy_text(r, at, text, &var->backing_buf);
		/* fall through */
	case NEURON_NEFF_VAR_STATE_BUFFER:
		if (!err)
			err = get_int(r, at, obj, "backing_variable_off",
				      var->type == NEURON_NEFF_VAR_VIRTUAL, 0, INT64_MAX,
				      &var->backing_off);
		if (err)
			break;
		if (var->type == NEURON_NEFF_VAR_STATE_BUFFER && !var->size &&
		    var->backing_off < NEURON_NEFF_SBUF_WINDOW)
			var->size = NEURON_NEFF_SBUF_WINDOW - var->backing_off;
		v = var->type == NEURON_NEFF_VAR_STATE_BUFFER ? NEURON_NEFF_SBUF_WINDOW :
		    INT64_MAX;
		if (var->backing_off > v || var->size > v - var->backing_off || !var->size)
			err = invalid_at(r, at, "offset %" PRIu64 " plus size %" PRIu64
					 " is more than %" PRIu64, var->backing_off, var->size, v);
		break;
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
	uint64_t id = 0;
	size_t n = 0;
	int err;

	if (var->type == NEURON_NEFF_VAR_POINTER) {
		err = get_int(r, at, obj, "referenced_var_id", true, 0, UINT32_MAX, &id);
		if (err)
			return err;
		key.var_id = (uint32_t)id;
		hit = bsearch(&pkey, by_id, nr, sizeof(*by_id), compare_var_ids);
		if (!hit)
			return invalid_at(r, AT_KEY(at, "referenced_var_id"),
					  "no variable has id %" PRIu64, id);
		var->referenced = *hit;
		if (var->size < 8)
			return invalid_at(r, AT_KEY(at, "size"), "a pointer needs 8 bytes");
	}
	if (var->type == NEURON_NEFF_VAR_DGE_TABLE) {
		err = get_ints(r, at, obj, "list", UINT32_MAX, &ids, &n);
		if (err)
			return err;
		if (var->size / 8 < n)
			return invalid_at(r, AT_KEY(at, "size"),
					  "%zu addresses do not fit into %" PRIu64 " bytes",
					  n, var->size);
		var->list = neff_alloc(r->obj, n, sizeof(*var->list));
		if (!var->list)
			return memory_at(r, at);
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
	if (end > sg->areas[i].need)
		sg->areas[i].need = end;
	var->area = &sg->areas[i];
	return 0;
}

/* One area behind the other; each is as long as its last variable reaches. */
static int place_areas(struct neff_reader *r, const struct jpath *at,
		       struct neuron_neff_subgraph *sg)
{
	int err = 0;

	sg->areas = neff_alloc(r->obj, NEURON_NEFF_MAX_AREAS, sizeof(*sg->areas));
	if (!sg->areas)
		return memory_at(r, at);
	for (size_t i = 0; i < sg->nr_vars && !err; i++)
		if (sg->vars[i].type == NEURON_NEFF_VAR_VIRTUAL)
			err = find_area(r, AT_KEY(at, sg->vars[i].name), sg, &sg->vars[i]);
	for (size_t i = 0; i < sg->nr_areas && !err; i++) {
		if (i)
			sg->scratchpad = (sg->scratchpad + AREA_ALIGN - 1) & ~(AREA_ALIGN - 1);
		sg->areas[i].base = sg->scratchpad;
		if (__builtin_add_overflow(sg->scratchpad, sg->areas[i].need, &sg->scratchpad) ||
		    sg->scratchpad > INT64_MAX)
			err = invalid_at(r, at, "scratchpad of more than 2^63 bytes");
	}
	return err;
}

static int parse_vars(struct neff_reader *r, const struct jpath *at, json_t *vars,
		      struct neuron_neff_subgraph *sg)
{
	size_t n = json_object_size(vars), i = 0;
	const struct neuron_neff_var **by_id;
	const char *name;
	json_t *v;
	int err;

	sg->vars = neff_alloc(r->obj, n, sizeof(*sg->vars));
	sg->vars_by_name = neff_alloc(r->obj, n, sizeof(*sg->vars_by_name));
	by_id = neff_alloc(r->obj, n, sizeof(*by_id));
	if (!sg->vars || !sg->vars_by_name || !by_id)
		return memory_at(r, at);

	json_object_foreach(vars, name, v) {
		struct neuron_neff_var *var = &sg->vars[i];
		const struct jpath *here = AT_KEY(at, name);

		if (!*name)
			return invalid_at(r, at, "variable without a name");
		if (!json_is_object(v))
			return invalid_at(r, here, "is %s, not an object", type_name(v));
		err = copy_text(r, here, name, &var->name);
		if (!err)
			err = parse_var(r, here, v, sg, var);
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
	json_object_foreach(vars, name, v) {
		err = parse_references(r, AT_KEY(at, name), v, by_id, n, &sg->vars[i++]);
		if (err)
			return err;
	}
	return 0;
}

/* ---- queue sets ---- */

/* "PE", "pe", "Activation", "act", ...: the owner key's spelling is not published. */
static int find_engine(const char *text)
{
	static const char *const spellings[][3] = {
		[NEURON_NEFF_PE] = { "pe", "PE", "PE0" },
		[NEURON_NEFF_ACT] = { "act", "Activation", "Activation0" },
		[NEURON_NEFF_POOL] = { "pool", "Pool", "Pool0" },
		[NEURON_NEFF_DVE] = { "dve", "DVE", "DVE0" },
		[NEURON_NEFF_SP] = { "sp", "SP", "SP0" },
	};

	for (size_t i = 0; i < NR_ELEMS(spellings); i++)
		if (find_name(text, spellings[i], NR_ELEMS(spellings[i])) >= 0)
			return (int)i;
	return -1;
}

static int parse_queue(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		       struct neuron_neff_queue *q)
{
	static const char *const types[] = { "in", "out", "data", "embedding_update", "dynamic" };
	const char *type = NULL, *owner = NULL;
	uint64_t n = 1, sem = UINT64_MAX;
	uint32_t *one;
	int err, i;

	err = get_text(r, at, obj, "type", true, &type);
	if (err)
		return err;
	i = find_name(type, types, NR_ELEMS(types));
	q->type = i < 0 ? NEURON_NEFF_QUEUE_UNKNOWN : (enum neuron_neff_queue_type)i;
	err = i < 0 ? obstacle_at(r, AT_KEY(at, "type"), "unknown type '%s'", type) : 0;
	if (!err)
		err = get_int(r, at, obj, "num_queues", false, 1, NEURON_NEFF_MAX_QUEUES, &n);
	if (!err)
		err = get_text(r, at, obj, "owner", false, &owner);
	if (!err)
		err = get_bool(r, at, obj, "pinned", &q->pinned);
	if (!err)
		err = get_texts(r, at, obj, "queue_instances", &q->instances, &q->nr_instances);
	if (!err)
		err = get_ints(r, at, obj, "semaphore_set", NEURON_NEFF_MAX_SEMAPHORES - 1,
			       &q->semaphores, &q->nr_semaphores);
	if (!err)
		err = get_int(r, at, obj, "semaphore", false, 0,
			      NEURON_NEFF_MAX_SEMAPHORES - 1, &sem);
	if (!err)
		err = get_fabric(r, at, obj, &q->fabric);
	if (err)
		return err;
	q->num_queues = (uint32_t)n;
	q->owner = owner ? find_engine(owner) : -1;
	if (sem != UINT64_MAX && !q->nr_semaphores) {
		one = neff_alloc(r->obj, 1, sizeof(*one));
		if (!one)
			return memory_at(r, at);
		*one = (uint32_t)sem;
		q->semaphores = one;
		q->nr_semaphores = 1;
	}
	return 0;
}

static int compare_queue_names(const void *a, const void *b)
{
	const struct neff_queue_name *x = a, *y = b;
	int c = (x->instance < 0) - (y->instance < 0);

	if (!c)
		c = strcmp(x->name, y->name);
	/* The first set that has an instance gets it. */
	return c ? c : (x->queue > y->queue) - (x->queue < y->queue);
}

static int index_queues(struct neff_reader *r, const struct jpath *at,
			const struct neuron_neff_subgraph *sg)
{
	size_t n = sg->nr_queues, k = 0;

	for (size_t i = 0; i < sg->nr_queues; i++)
		n += sg->queues[i].nr_instances;
	r->queue_names = neff_alloc(r->obj, n, sizeof(*r->queue_names));
	if (!r->queue_names)
		return memory_at(r, at);
	for (size_t i = 0; i < sg->nr_queues; i++) {
		const struct neuron_neff_queue *q = &sg->queues[i];

		r->queue_names[k++] = (struct neff_queue_name){ q->name, q, -1 };
		for (size_t j = 0; j < q->nr_instances; j++)
			r->queue_names[k++] = (struct neff_queue_name){ q->instances[j], q, (int)j };
	}
	if (n)
		qsort(r->queue_names, n, sizeof(*r->queue_names), compare_queue_names);
	r->nr_queue_names = n;
	return 0;
}

/* First entry of that name, NULL if none. */
static const struct neff_queue_name *find_queue_name(const struct neff_reader *r,
						     const char *name, bool instance)
{
	struct neff_queue_name key = { name, NULL, instance ? 0 : -1 };
	size_t low = 0, high = r->nr_queue_names;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare_queue_names(&r->queue_names[mid], &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == r->nr_queue_names || strcmp(r->queue_names[low].name, name) ||
	    (r->queue_names[low].instance >= 0) != instance)
		return NULL;
	return &r->queue_names[low];
}

static int parse_queues(struct neff_reader *r, const struct jpath *at, json_t *queues,
			struct neuron_neff_subgraph *sg)
{
	const char *name;
	json_t *v;
	int err;

	sg->queues = neff_alloc(r->obj, json_object_size(queues), sizeof(*sg->queues));
	if (!sg->queues)
		return memory_at(r, at);
	json_object_foreach(queues, name, v) {
		struct neuron_neff_queue *q = &sg->queues[sg->nr_queues];
		const struct jpath *here = AT_KEY(at, name);

		if (!json_is_object(v))
			return invalid_at(r, here, "is %s, not an object", type_name(v));
		err = copy_text(r, here, name, &q->name);
		if (!err)
			err = parse_queue(r, here, v, q);
		if (err)
			return err;
		sg->nr_queues++;
	}
	return 0;
}

/* ---- transfers ---- */

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
	const char *name = NULL, *dtype = "uint8";
	json_t *sizes, *steps;
	uint64_t v = 0;
	size_t n;
	int err;

	err = get_text(r, at, obj, k->var, true, &name);
	if (err)
		return err;
	side->var = neuron_neff_find_var(sg, name);
	if (!side->var)
		return invalid_at(r, AT_KEY(at, k->var), "no variable is called '%s'", name);
	err = get_int(r, at, obj, k->off, false, 0, INT64_MAX, &side->off);
	if (!err)
		err = get_text(r, at, obj, k->dtype, false, &dtype);
	if (!err)
		err = get_list(r, at, obj, k->sizes, false, &sizes);
	if (!err)
		err = get_list(r, at, obj, k->steps, false, &steps);
	if (err)
		return err;
	side->dtype = neuron_neff_dtype_parse(dtype);
	if (side->dtype == NEURON_NEFF_DT_UNKNOWN) {
		side->dtype = NEURON_NEFF_DT_UINT8;
		d->op = NEURON_NEFF_OP_UNKNOWN;
		err = obstacle_at(r, AT_KEY(at, k->dtype), "unknown type '%s'", dtype);
	}
	if (err)
		return err;
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
		err = check_int(r, AT_INDEX(AT_KEY(at, k->sizes), i), json_array_get(sizes, i),
				1, INT64_MAX, &side->size[i]);
		if (!err)
			err = check_int(r, AT_INDEX(AT_KEY(at, k->steps), i),
					json_array_get(steps, i), 0, INT64_MAX, &v);
		if (err)
			return err;
		side->step[i] = v;
		if (__builtin_mul_overflow(side->bytes, side->size[i], &side->bytes) ||
		    side->bytes > INT64_MAX)
			return invalid_at(r, AT_KEY(at, k->sizes), "product overflows");
	}
	side->ndim = (uint32_t)n;
	if (side->size[0] % neuron_neff_dtype_size(side->dtype))
		return invalid_at(r, AT_INDEX(AT_KEY(at, k->sizes), 0),
				  "%" PRIu64 " bytes are no multiple of a %s", side->size[0],
				  dtype);
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
	if (op == NEURON_NEFF_OP_UNKNOWN && side->off < side->var->size &&
	    n > side->var->size - side->off)
		n = side->var->size - side->off;
	if (__builtin_mul_overflow(n, unit, &n) || n > INT64_MAX)
		return invalid_at(r, at, "size overflows");
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
	json_t *arr;
	size_t n = 1;
	int err;

	err = get_list(r, at, obj, "from_arr", false, &arr);
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
	d->from = neff_alloc(r->obj, n, sizeof(*d->from));
	if (!d->from)
		return memory_at(r, at);
	d->nr_from = n;
	if (!arr)
		return parse_side(r, at, obj, &from_keys, sg, &d->from[0], d);
	for (size_t i = 0; i < n; i++) {
		const struct jpath *here = AT_INDEX(AT_KEY(at, "from_arr"), i);
		json_t *v = json_array_get(arr, i);

		if (!json_is_object(v))
			return invalid_at(r, here, "is %s, not an object", type_name(v));
		err = parse_side(r, here, v, &from_keys, sg, &d->from[i], d);
		if (err)
			return err;
	}
	return 0;
}

static int get_dtype(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		     const char *key, enum neuron_neff_dtype unknown,
		     enum neuron_neff_dtype *out)
{
	const char *text = NULL;
	int err = get_text(r, at, obj, key, false, &text);

	if (err || !text)
		return err;
	*out = neuron_neff_dtype_parse(text);
	if (*out != NEURON_NEFF_DT_UNKNOWN)
		return 0;
	*out = unknown;
	return obstacle_at(r, AT_KEY(at, key), "unknown type '%s'", text);
}

static int parse_transpose(struct neff_reader *r, const struct jpath *at, const json_t *obj,
			   struct neuron_neff_desc *d)
{
	const struct jpath *here = AT_KEY(at, "transpose_shape");
	uint64_t bytes, v = 0;
	json_t *shape;
	int err;

	err = get_list(r, at, obj, "transpose_shape", true, &shape);
	if (!err)
		err = get_int(r, at, obj, "transpose_element_size", true, 1, 16, &v);
	if (err)
		return err;
	if (json_array_size(shape) != 4)
		return invalid_at(r, here, "%zu dimensions, not 4", json_array_size(shape));
	d->transpose_element_size = (uint32_t)v;
	bytes = v;
	for (size_t i = 0; i < 4; i++) {
		err = check_int(r, AT_INDEX(here, i), json_array_get(shape, i), 1, INT64_MAX,
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
	uint64_t tiling = 0;
	int err;

	d->scale_dtype = NEURON_NEFF_DT_FLOAT32;
	d->scale = 1.0;
	err = get_int(r, at, obj, "num_tiling_dimensions", false, 0, UINT32_MAX, &tiling);
	d->num_tiling_dimensions = (uint32_t)tiling;
	if (!err && d->op == NEURON_NEFF_OP_FMA)
		err = get_dtype(r, at, obj, "scale_dtype", NEURON_NEFF_DT_FLOAT32,
				&d->scale_dtype);
	if (!err && d->op == NEURON_NEFF_OP_FMA)
		err = get_number(r, at, obj, "scale", &d->scale);
	if (!err && (d->op == NEURON_NEFF_OP_MIN || d->op == NEURON_NEFF_OP_MAX)) {
		err = get_dtype(r, at, obj, "constant_dtype", NEURON_NEFF_DT_FLOAT32,
				&d->constant_dtype);
		if (!err && !json_object_get(obj, "constant") !=
			    (d->constant_dtype == NEURON_NEFF_DT_UNKNOWN))
			err = invalid_at(r, at,
					 "has only one of constant and constant_dtype");
		if (!err && d->constant_dtype != NEURON_NEFF_DT_UNKNOWN &&
		    d->constant_dtype != NEURON_NEFF_DT_FLOAT32 &&
		    d->constant_dtype != NEURON_NEFF_DT_INT32 &&
		    d->constant_dtype != NEURON_NEFF_DT_UINT32)
			err = invalid_at(r, AT_KEY(at, "constant_dtype"),
					 "is not float32, int32 or uint32");
		if (!err)
			err = get_number(r, at, obj, "constant", &d->constant);
	}
	if (!err && d->op == NEURON_NEFF_OP_TRANSPOSE)
		err = parse_transpose(r, at, obj, d);
	return err;
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
	int err, i;

	if (!json_is_object(obj))
		return invalid_at(r, at, "is %s, not an object", type_name(obj));
	err = get_text(r, at, obj, "op", false, &op);
	if (err)
		return err;
	i = find_name(op, ops, NR_ELEMS(ops));
	d->op = i < 0 ? NEURON_NEFF_OP_UNKNOWN : (enum neuron_neff_op)i;
	err = i < 0 ? obstacle_at(r, AT_KEY(at, "op"), "unknown operation '%s'", op) : 0;
	if (!err)
		err = parse_side(r, at, obj, &to_keys, sg, &d->to, d);
	if (!err)
		err = parse_sources(r, at, obj, sg, d);
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
	err = fill_side(r, AT_KEY(at, "to"), &d->to, sized, d->op);
	if (!err)
		err = check_side(r, AT_KEY(at, "to"), &d->to);
	if (!err)
		err = check_writable(r, at, &d->to);
	for (size_t s = 0; !err && s < d->nr_from; s++) {
		struct neuron_neff_side *from = &d->from[s];

		err = fill_side(r, AT_KEY(at, "from"), from, &d->to, d->op);
		if (!err)
			err = check_side(r, AT_KEY(at, "from"), from);
		if (!err && d->op != NEURON_NEFF_OP_UNKNOWN &&
		    (bytes ? from->bytes != d->to.bytes : elements(from) != elements(&d->to)))
			err = invalid_at(r, at, "%" PRIu64 " %s from '%s' to %" PRIu64 " in '%s'",
					 bytes ? from->bytes : elements(from),
					 bytes ? "bytes" : "elements", from->var->name,
					 bytes ? d->to.bytes : elements(&d->to),
					 d->to.var->name);
	}
	if (err)
		return err;
	return parse_compute(r, at, obj, d);
}

static int find_queue(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		      struct neuron_neff_dma *dma)
{
	const char *instance = NULL, *queue = NULL;
	const struct neff_queue_name *hit;
	int err;

	err = get_text(r, at, obj, "instance_name", false, &instance);
	if (!err)
		err = get_text(r, at, obj, "queue", !instance, &queue);
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
	uint64_t id = 0, event = UINT64_MAX, sem = UINT64_MAX;
	const char *function = NULL;
	json_t *desc;
	int err;

	if (!json_is_object(obj))
		return invalid_at(r, at, "is %s, not an object", type_name(obj));
	err = get_int(r, at, obj, "id", true, 0, UINT32_MAX, &id);
	if (!err)
		err = find_queue(r, at, obj, dma);
	if (!err)
		err = get_text(r, at, obj, "function_start", false, &function);
	if (!err && function)
		err = copy_text(r, at, function, &dma->function_start);
	if (!err)
		err = get_bool(r, at, obj, "section_start_desc", &dma->section_start);
	if (!err)
		err = get_int(r, at, obj, "event", false, 0, NEURON_NEFF_MAX_EVENTS - 1, &event);
	if (!err)
		err = get_int(r, at, obj, "semaphore", false, 0,
			      NEURON_NEFF_MAX_SEMAPHORES - 1, &sem);
	if (!err)
		err = get_ints(r, at, obj, "remote_semaphores", NEURON_NEFF_MAX_SEMAPHORES - 1,
			       &dma->remote_semaphores, &dma->nr_remote_semaphores);
	if (err)
		return err;
	dma->id = (uint32_t)id;
	dma->event = event == UINT64_MAX ? -1 : (int)event;
	dma->semaphore = sem == UINT64_MAX ? -1 : (int)sem;

	desc = json_object_get(obj, "desc");
	if (!desc)
		return invalid_at(r, here, "missing");
	if (!json_is_array(desc) && !json_is_object(desc))
		return invalid_at(r, here, "is %s, not an object or a list", type_name(desc));
	dma->nr_desc = json_is_array(desc) ? json_array_size(desc) : 1;
	if (!dma->nr_desc)
		return invalid_at(r, here, "empty list");
	dma->desc = neff_alloc(r->obj, dma->nr_desc, sizeof(*dma->desc));
	if (!dma->desc)
		return memory_at(r, here);
	if (json_is_object(desc))
		return parse_desc(r, here, desc, sg, &dma->desc[0]);
	for (size_t i = 0; i < dma->nr_desc; i++) {
		err = parse_desc(r, AT_INDEX(here, i), json_array_get(desc, i), sg,
				 &dma->desc[i]);
		if (err)
			return err;
	}
	return 0;
}

/* ---- engines ---- */

static int compare_dma_ids(const void *a, const void *b)
{
	uint32_t x = (*(const struct neuron_neff_dma *const *)a)->id;
	uint32_t y = (*(const struct neuron_neff_dma *const *)b)->id;

	return (x > y) - (x < y);
}

static int parse_dma_list(struct neff_reader *r, const struct jpath *at, const json_t *list,
			  const struct neuron_neff_subgraph *sg, struct neuron_neff_engine *eng)
{
	size_t n = json_array_size(list);
	int err;

	eng->dma = neff_alloc(r->obj, n, sizeof(*eng->dma));
	eng->dma_by_id = neff_alloc(r->obj, n, sizeof(*eng->dma_by_id));
	if (!eng->dma || !eng->dma_by_id)
		return memory_at(r, at);
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

static int parse_dve_tables(struct neff_reader *r, const struct jpath *at, const json_t *root,
			    const struct neuron_neff_subgraph *sg,
			    struct neuron_neff_engine *eng)
{
	static const char *const keys[] = { "control_table", "datapath_table", "opcode_table" };
	json_t *list;
	int err;

	err = get_list(r, at, root, "dve_tables", false, &list);
	if (err || !list)
		return err;
	eng->tables = neff_alloc(r->obj, json_array_size(list),
				 NR_ELEMS(keys) * sizeof(*eng->tables));
	if (!eng->tables)
		return memory_at(r, at);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const struct jpath *here = AT_INDEX(AT_KEY(at, "dve_tables"), i);
		json_t *v = json_array_get(list, i);

		if (!json_is_object(v))
			return invalid_at(r, here, "is %s, not an object", type_name(v));
		for (size_t k = 0; k < NR_ELEMS(keys); k++) {
			struct neuron_neff_blob *blob = &eng->tables[eng->nr_tables];
			const char *file = NULL;
			struct neff_member *m;

			err = get_text(r, here, v, keys[k], true, &file);
			if (!err)
				err = find_file(r, AT_KEY(here, keys[k]), sg, file, &m);
			if (!err)
				err = copy_text(r, here, m->name, &blob->name);
			if (err)
				return err;
			m->keep = true;
			eng->nr_tables++;
		}
	}
	return 0;
}

static uint32_t le32(const void *p)
{
	const uint8_t *b = p;

	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
	       (uint32_t)b[3] << 24;
}

static uint16_t le16(const void *p)
{
	const uint8_t *b = p;

	return (uint16_t)(b[0] | b[1] << 8);
}

static bool has_prologue(const uint8_t *code, size_t size)
{
	return size >= NEURON_ISA_INST_SIZE && code[0] == NEURON_ISA_OP_PROLOGUE &&
	       code[1] == NEURON_ISA_MAGIC && le32(code + 8) == NEURON_ISA_SIGNATURE;
}

/* What the loader relies on; the device itself checks every other field. */
static int check_nisa(struct neff_reader *r, const char *where,
		      const struct neuron_neff_engine *eng, unsigned int id)
{
	const uint8_t *code = eng->code;

	if (eng->code_size % NEURON_ISA_INST_SIZE)
		return neff_fail(r, NEURON_NEFF_INVALID, where,
				 "%zu bytes are no multiple of %u", eng->code_size,
				 NEURON_ISA_INST_SIZE);
	if (le16(code + 12) != NEURON_ISA_VERSION)
		return neff_fail(r, NEURON_NEFF_UNSUPPORTED, where,
				 "instruction set version %u, known is %u", le16(code + 12),
				 NEURON_ISA_VERSION);
	if (le16(code + 14) != id)
		return neff_fail(r, NEURON_NEFF_INVALID, where,
				 "instructions of engine %u, used for engine %u",
				 le16(code + 14), id);
	for (size_t i = 0; i < eng->code_size / NEURON_ISA_INST_SIZE; i++) {
		const uint8_t *inst = code + i * NEURON_ISA_INST_SIZE;

		if (inst[1] != NEURON_ISA_MAGIC)
			return neff_fail(r, NEURON_NEFF_INVALID, where,
					 "instruction %zu is none: second byte is 0x%02x", i,
					 inst[1]);
		if (inst[0] != NEURON_ISA_OP_DMA_TRIGGER)
			continue;
		if (le16(inst + 8) != 0xffff || le16(inst + 10) != 0xffff || le32(inst + 16))
			return neff_fail(r, NEURON_NEFF_INVALID, where,
					 "instruction %zu: DMA trigger is not symbolic", i);
		if (!neuron_neff_find_dma(eng, le32(inst + 12)))
			return neff_fail(r, NEURON_NEFF_INVALID, where,
					 "instruction %zu: no dma entry has id %u", i,
					 le32(inst + 12));
	}
	return 0;
}

static int parse_engine_json(struct neff_reader *r, const char *member,
			     const struct neuron_neff_subgraph *sg,
			     struct neuron_neff_engine *eng)
{
	const struct jpath at = { .member = member };
	json_t *root, *list;
	int err;

	err = load_json(r, member, NULL, &root);
	if (err)
		return err;
	err = get_list(r, &at, root, "dma", false, &list);
	if (!err && list)
		err = parse_dma_list(r, AT_KEY(&at, "dma"), list, sg, eng);
	if (!err)
		err = get_texts(r, &at, root, "activation_function_sets", &eng->act_sets,
				&eng->nr_act_sets);
	if (!err)
		err = parse_dve_tables(r, &at, root, sg, eng);
	json_decref(root);
	return err;
}

static const char *const engine_keys[] = { "pe", "act", "pool", "dve", "sp" };
static const char *const code_keys[] = {
	"pe_instr", "act_instr", "pool_instr", "dve_instr", "sp_instr"
};

static int name_engine(struct neff_reader *r, const struct jpath *at, const json_t *def,
		       struct neuron_neff_subgraph *sg, unsigned int id)
{
	struct neuron_neff_engine *eng = &sg->engines[id];
	const char *json = NULL, *code = NULL;
	struct neff_member *m;
	int err;

	err = get_text(r, at, def, engine_keys[id], false, &json);
	if (!err)
		err = get_text(r, at, def, code_keys[id], false, &code);
	if (!err && json)
		err = find_file(r, AT_KEY(at, engine_keys[id]), sg, json, &m);
	if (!err && json)
		err = want_json(r, m);
	if (!err && json)
		err = copy_text(r, at, json, &eng->json_name);
	if (!err && code)
		err = find_file(r, AT_KEY(at, code_keys[id]), sg, code, &m);
	if (!err && code) {
		m->keep = true;
		err = copy_text(r, at, code, &eng->code_name);
	}
	return err;
}

/* ---- graphs ---- */

/* What a subgraph is made of, and what it names. */
static int parse_definition(struct neff_reader *r, struct neuron_neff_subgraph *sg)
{
	const struct jpath at = { .member = sg->definition };
	json_t *root, *vars, *queues;
	int err;

	err = load_json(r, sg->definition, NULL, &root);
	if (err)
		return err;
	err = get_object(r, &at, root, "var", true, &vars);
	if (!err)
		err = parse_vars(r, AT_KEY(&at, "var"), vars, sg);
	if (!err)
		err = get_object(r, &at, root, "dma_queue", false, &queues);
	if (!err && queues)
		err = parse_queues(r, AT_KEY(&at, "dma_queue"), queues, sg);
	for (unsigned int id = 0; !err && id < NEURON_NEFF_NR_ENGINES; id++)
		err = name_engine(r, &at, root, sg, id);
	json_decref(root);
	return err;
}

static int parse_engines(struct neff_reader *r, struct neuron_neff_subgraph *sg)
{
	const struct jpath at = { .member = sg->definition };
	int err = index_queues(r, AT_KEY(&at, "dma_queue"), sg);

	for (unsigned int id = 0; !err && id < NEURON_NEFF_NR_ENGINES; id++) {
		struct neuron_neff_engine *eng = &sg->engines[id];
		struct neff_member *m;

		if (!eng->json_name)
			continue;
		err = find_file(r, AT_KEY(&at, engine_keys[id]), sg, eng->json_name, &m);
		if (!err)
			err = parse_engine_json(r, m->name, sg, eng);
	}
	return err;
}

/* ---- contents, when they were fetched ---- */

static int load_constant(struct neff_reader *r, const struct neuron_neff_subgraph *sg,
			 struct neuron_neff_var *var)
{
	const struct jpath root = { .member = sg->definition };
	const struct jpath *here = AT_KEY(AT_KEY(AT_KEY(&root, "var"), var->name), "file_name");
	struct neff_member *m;
	struct neff_npy npy;
	size_t n;
	int err;

	err = find_file(r, here, sg, var->file_name, &m);
	if (err)
		return err;
	var->data = m->data;
	var->data_size = m->size;
	n = strlen(m->name);
	if (n > 4 && !strcmp(m->name + n - 4, ".npy")) {
		err = neff_npy_parse(r, m->name, m->data, m->size, &npy);
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

static int load_code(struct neff_reader *r, const struct neuron_neff_subgraph *sg,
		     struct neuron_neff_engine *eng, unsigned int id)
{
	const struct jpath at = { .member = sg->definition };
	struct neff_member *m;
	int err;

	err = find_file(r, AT_KEY(&at, code_keys[id]), sg, eng->code_name, &m);
	if (err)
		return err;
	eng->code = m->data;
	eng->code_size = m->size;
	if (!m->size)
		return 0;
	if (!has_prologue(m->data, m->size)) {
		eng->code_kind = NEURON_NEFF_CODE_VENDOR;
		r->obj->pub.executable = false;
		return 0;
	}
	eng->code_kind = NEURON_NEFF_CODE_NISA;
	return check_nisa(r, m->name, eng, id);
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

static void load_objects(struct neff_reader *r)
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

static int parse_subgraph(struct neff_reader *r, const struct jpath *at, const json_t *obj,
			  struct neuron_neff_subgraph *sg)
{
	const struct jpath *here = AT_KEY(at, "definition");
	const char *file = NULL, *name = "", *why;
	struct neff_member *m;
	char *path, *slash;
	int err;

	if (!json_is_object(obj))
		return invalid_at(r, at, "is %s, not an object", type_name(obj));
	err = get_text(r, at, obj, "definition", true, &file);
	if (!err)
		err = get_text(r, at, obj, "name", false, &name);
	if (!err)
		err = copy_text(r, at, name, &sg->name);
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
	err = want_json(r, m);
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
	const char *version = "";
	json_t *graphs;
	size_t n;
	int err;

	err = get_text(r, &at, root, "version", false, &version);
	if (!err)
		err = copy_text(r, &at, version, &neff->graph_version);
	if (!err)
		err = get_list(r, &at, root, "graphs", true, &graphs);
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
	neff->subgraphs = neff_alloc(r->obj, n, sizeof(*neff->subgraphs));
	if (!neff->subgraphs)
		return memory_at(r, here);
	neff->nr_subgraphs = n;
	for (size_t i = 0; i < n; i++) {
		err = parse_subgraph(r, AT_INDEX(here, i), json_array_get(graphs, i),
				     &neff->subgraphs[i]);
		if (err)
			return err;
	}
	return 0;
}

/* ---- names and types of inputs and outputs ---- */

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
		err = check_int(r, AT_INDEX(at, i), json_array_get(shape, i), 1, UINT32_MAX, &v);
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
			return invalid_at(r, here, "is %s, not an object", type_name(v));
		err = get_text(r, here, v, "name", true, &name);
		if (!err)
			err = get_dtype(r, here, v, "dtype", NEURON_NEFF_DT_UNKNOWN, &dtype);
		if (!err)
			err = get_list(r, here, v, "shape", true, &shape);
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

/* ---- networks of several nodes ---- */

static int parse_node(struct neff_reader *r, const struct jpath *at, const json_t *v,
		      struct neuron_neff_node *node)
{
	const char *name = NULL, *op = "", *object = "";
	json_t *kelf = json_object_get(v, "kelf");
	uint64_t index = 0;
	int err;

	if (!json_is_object(v))
		return invalid_at(r, at, "is %s, not an object", type_name(v));
	err = get_text(r, at, v, "name", true, &name);
	if (!err)
		err = get_text(r, at, v, "op", !kelf, &op);
	if (!err)
		err = get_text(r, at, v, "object", false, &object);
	if (!err && kelf)
		err = check_int(r, AT_KEY(at, "kelf"), kelf, 0, NEURON_NEFF_MAX_NODES - 1, &index);
	if (err)
		return err;
	if (kelf && (*op || *object))
		return invalid_at(r, at, "has 'kelf' and 'op' or 'object'");
	node->cpu = !kelf;
	node->kelf = (uint32_t)index;
	err = copy_text(r, at, name, &node->name);
	if (!err)
		err = copy_text(r, at, op, &node->op);
	if (!err && *object) {
		struct neff_member *m = neff_find_member(r->obj, object);

		if (!m)
			return invalid_at(r, AT_KEY(at, "object"), "'%s' is not in the archive", object);
		m->wanted = true;
		m->keep = true;
		err = copy_text(r, at, object, &node->object_name);
	}
	if (!err)
		err = get_texts(r, at, v, "inputs", &node->inputs, &node->nr_inputs);
	if (!err)
		err = get_texts(r, at, v, "outputs", &node->outputs, &node->nr_outputs);
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
			return invalid_at(r, here, "is %s, not an object", type_name(v));
		err = get_text(r, here, v, "name", true, &name);
		if (!err)
			err = get_text(r, here, v, "use", false, &use);
		if (!err)
			err = check_int(r, AT_KEY(here, "bytes"), json_object_get(v, "bytes"), 1,
					UINT32_MAX, &e->bytes);
		if (!err && !*name)
			err = invalid_at(r, here, "has no name");
		if (!err && strlen(name) > MAX_IO_NAME)
			err = invalid_at(r, here, "name is longer than %u", MAX_IO_NAME);
		if (!err)
			err = copy_text(r, here, name, &e->name);
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
	int err = get_list(r, at, root, "edges", true, &edges);

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

static int parse_neff_json(struct neff_reader *r)
{
	const struct jpath at = { .member = "neff.json" };
	json_t *root, *format, *in = NULL, *out = NULL, *nodes = NULL;
	int err;

	if (!neff_find_member(r->obj, "neff.json"))
		return 0;
	err = load_json(r, "neff.json", NULL, &root);
	if (err)
		return err;
	format = json_object_get(root, "format");
	if (json_is_string(format) && !strcmp(json_string_value(format), NEFF_IO_FORMAT)) {
		err = get_list(r, &at, root, "inputs", false, &in);
		if (!err)
			err = get_list(r, &at, root, "outputs", false, &out);
		if (!err)
			err = get_list(r, &at, root, "nodes", false, &nodes);
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

static int want_named(struct neff_reader *r, const char *name)
{
	struct neff_member *m = neff_find_member(r->obj, name);

	return m ? want_json(r, m) : 0;
}

static int parse_kelf(struct neff_reader *r)
{
	char member[24];
	json_t *root;
	int err;

	snprintf(member, sizeof(member), "kelf-%u.json", r->opts.node);
	err = want_named(r, member);
	if (!err)
		err = want_named(r, "neff.json");
	if (!err)
		err = neff_fetch(r);
	if (!err)
		err = load_json(r, member, NULL, &root);
	if (err)
		return err;
	err = parse_graphs(r, member, root);
	json_decref(root);
	return err;
}

/* Each step names what the next one needs. */
int neff_parse(struct neff_reader *r)
{
	struct neuron_neff *neff = &r->obj->pub;
	int err = 0;

	neff->executable = true;
	if (neff->header.feature_bits)
		err = obstacle_at(r, &(struct jpath){ .member = "header" },
				  "unknown feature_bits 0x%" PRIx64, neff->header.feature_bits);
	if (!err)
		err = parse_kelf(r);
	if (!err)
		err = neff_fetch(r);
	for (size_t i = 0; i < neff->nr_subgraphs && !err; i++)
		err = parse_definition(r, &neff->subgraphs[i]);
	if (!err)
		err = neff_fetch(r);
	for (size_t i = 0; i < neff->nr_subgraphs && !err; i++)
		err = parse_engines(r, &neff->subgraphs[i]);
	if (!err)
		err = parse_neff_json(r);
	if (!err)
		err = neff_fetch(r);
	for (size_t i = 0; i < neff->nr_subgraphs && !err; i++)
		err = load_contents(r, &neff->subgraphs[i]);
	if (!err)
		load_objects(r);
	return err;
}

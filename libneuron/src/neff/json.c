// SPDX-License-Identifier: LGPL-2.1-or-later
/* Values of JSON documents, and where they are (json.h). */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/util.h"
#include "json.h"

size_t jpath_text(const struct jpath *p, char *buf, size_t room)
{
	size_t n;
	int len;

	if (!p->up) {
		len = snprintf(buf, room, "%s", p->member);
		return len < 0 ? 0 : (size_t)len;
	}
	n = jpath_text(p->up, buf, room);
	if (n >= room)
		return n;
	if (p->key)
		len = snprintf(buf + n, room - n, "%s%s", p->up->up ? "." : ": ", p->key);
	else
		len = snprintf(buf + n, room - n, "%s[%zu]", p->up->up ? "" : ": ", p->index);
	return n + (len < 0 ? 0 : (size_t)len);
}

int memory_at(struct neff_reader *r, const struct jpath *path)
{
	char where[400];

	jpath_text(path, where, sizeof(where));
	return neff_fail_memory(r, where);
}

int obstacle_at(struct neff_reader *r, const struct jpath *path, const char *fmt, ...)
{
	struct neuron_neff *neff = &r->obj->pub;
	char text[512];
	va_list ap;
	int n;

	neff->executable = false;
	if (neff->nr_obstacles == NEURON_NEFF_MAX_OBSTACLES)
		return 0;
	jpath_text(path, text, 320);
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

const char *jtype_name(const json_t *v)
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

static int jget(struct neff_reader *r, const struct jpath *at, const json_t *obj,
	       const char *key, json_type type, const char *type_text, bool required,
	       json_t **out)
{
	json_t *v = json_object_get(obj, key);

	*out = v;
	if (!v)
		return required ? invalid_at(r, AT_KEY(at, key), "missing") : 0;
	if (json_typeof(v) != type)
		return invalid_at(r, AT_KEY(at, key), "is %s, not %s", jtype_name(v), type_text);
	return 0;
}

int jget_list(struct neff_reader *r, const struct jpath *at, const json_t *obj,
	      const char *key, bool required, json_t **out)
{
	return jget(r, at, obj, key, JSON_ARRAY, "a list", required, out);
}

int jget_object(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		const char *key, bool required, json_t **out)
{
	return jget(r, at, obj, key, JSON_OBJECT, "an object", required, out);
}

/* The text belongs to the JSON document; *out untouched if absent. */
int jget_text(struct neff_reader *r, const struct jpath *at, const json_t *obj,
	      const char *key, bool required, const char **out)
{
	json_t *v;
	int err = jget(r, at, obj, key, JSON_STRING, "a string", required, &v);

	if (!err && v)
		*out = json_string_value(v);
	return err;
}

int jget_bool(struct neff_reader *r, const struct jpath *at, const json_t *obj,
	      const char *key, bool *out)
{
	json_t *v = json_object_get(obj, key);

	if (!v)
		return 0;
	if (!json_is_boolean(v))
		return invalid_at(r, AT_KEY(at, key), "is %s, not a boolean", jtype_name(v));
	*out = json_is_true(v);
	return 0;
}

int jcheck_int(struct neff_reader *r, const struct jpath *at, const json_t *v,
	       uint64_t min, uint64_t max, uint64_t *out)
{
	json_int_t n;

	if (!json_is_integer(v))
		return invalid_at(r, at, "is %s, not an integer", jtype_name(v));
	n = json_integer_value(v);
	if (n < 0 || (uint64_t)n < min || (uint64_t)n > max)
		return invalid_at(r, at, "%" JSON_INTEGER_FORMAT " is not in %" PRIu64
				  "..%" PRIu64, n, min, max);
	*out = (uint64_t)n;
	return 0;
}

/* *out untouched if absent. */
int jget_int(struct neff_reader *r, const struct jpath *at, const json_t *obj,
	     const char *key, bool required, uint64_t min, uint64_t max, uint64_t *out)
{
	json_t *v = json_object_get(obj, key);

	if (!v)
		return required ? invalid_at(r, AT_KEY(at, key), "missing") : 0;
	return jcheck_int(r, AT_KEY(at, key), v, min, max, out);
}

int jget_number(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		const char *key, double *out)
{
	json_t *v = json_object_get(obj, key);

	if (!v)
		return 0;
	if (!json_is_number(v))
		return invalid_at(r, AT_KEY(at, key), "is %s, not a number", jtype_name(v));
	*out = json_number_value(v);
	return 0;
}

/* A list of integers in min..max, copied; *out = NULL and *n = 0 if absent. */
int jget_ints(struct neff_reader *r, const struct jpath *at, const json_t *obj,
	      const char *key, uint32_t max, const uint32_t **out, size_t *n)
{
	uint32_t *copy;
	uint64_t v;
	json_t *list;
	int err;

	err = jget_list(r, at, obj, key, false, &list);
	if (err || !list)
		return err;
	copy = neff_alloc(r->obj, json_array_size(list), sizeof(*copy));
	if (!copy)
		return memory_at(r, AT_KEY(at, key));
	for (size_t i = 0; i < json_array_size(list); i++) {
		err = jcheck_int(r, AT_INDEX(AT_KEY(at, key), i), json_array_get(list, i),
				0, max, &v);
		if (err)
			return err;
		copy[i] = (uint32_t)v;
	}
	*out = copy;
	*n = json_array_size(list);
	return 0;
}

int jcopy_text(struct neff_reader *r, const struct jpath *at, const char *text,
	       const char **out)
{
	*out = neff_strdup(r->obj, text);
	return *out ? 0 : memory_at(r, at);
}

/* A list of strings, copied. */
int jget_texts(struct neff_reader *r, const struct jpath *at, const json_t *obj,
	       const char *key, const char ***out, size_t *n)
{
	const char **copy;
	json_t *list;
	int err;

	err = jget_list(r, at, obj, key, false, &list);
	if (err || !list)
		return err;
	copy = neff_alloc(r->obj, json_array_size(list), sizeof(*copy));
	if (!copy)
		return memory_at(r, AT_KEY(at, key));
	for (size_t i = 0; i < json_array_size(list); i++) {
		const struct jpath *here = AT_INDEX(AT_KEY(at, key), i);
		json_t *v = json_array_get(list, i);

		if (!json_is_string(v))
			return invalid_at(r, here, "is %s, not a string", jtype_name(v));
		err = jcopy_text(r, here, json_string_value(v), &copy[i]);
		if (err)
			return err;
	}
	*out = copy;
	*n = json_array_size(list);
	return 0;
}

int find_name(const char *text, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (names[i] && !strcmp(text, names[i]))
			return (int)i;
	return -1;
}

int jget_fabric(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		enum neuron_neff_fabric *out)
{
	static const char *const names[] = { "main", "alt" };
	const char *text = "main";
	int err, i;

	err = jget_text(r, at, obj, "fabric_path", false, &text);
	if (err)
		return err;
	i = find_name(text, names, ARRAY_SIZE(names));
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

int neff_want_json(struct neff_reader *r, struct neff_member *m)
{
	m->wanted = m->size <= r->opts.max_json;
	return m->wanted ? 0 : neff_fail_limit(r, m->name,
					       "%zu bytes of JSON, the limit is %" PRIu64, m->size,
					       r->opts.max_json);
}

int jload(struct neff_reader *r, const char *name, const struct jpath *who,
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

int neff_find_file(struct neff_reader *r, const struct jpath *at,
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

/* ASCII ones, and those that UTF-8 writes as 0xc2 0x80 to 0xc2 0x9f. */
bool has_control(const char *s)
{
	for (; *s; s++)
		if (iscntrl((unsigned char)*s) ||
		    ((unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0))
			return true;
	return false;
}

int jget_dtype(struct neff_reader *r, const struct jpath *at, const json_t *obj,
	       const char *key, enum neuron_neff_dtype unknown,
	       enum neuron_neff_dtype *out)
{
	const char *text = NULL;
	int err = jget_text(r, at, obj, key, false, &text);

	if (err || !text)
		return err;
	*out = neuron_neff_dtype_parse(text);
	if (*out != NEURON_NEFF_DT_UNKNOWN)
		return 0;
	*out = unknown;
	return obstacle_at(r, AT_KEY(at, key), "unknown type '%s'", text);
}

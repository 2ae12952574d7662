// SPDX-License-Identifier: LGPL-2.1-or-later
/* Values of JSON documents, and where they are (json.h). */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
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

static int must_be(struct neff_reader *r, const struct jpath *at, const json_t *v, bool is,
		   const char *what)
{
	return is ? 0 : invalid_at(r, at, "is %s, not %s", jtype_name(v), what);
}

int jcheck_int(struct neff_reader *r, const struct jpath *at, const json_t *v,
	       uint64_t min, uint64_t max, uint64_t *out)
{
	json_int_t n = json_integer_value(v);
	int err = must_be(r, at, v, json_is_integer(v), "an integer");

	if (err)
		return err;
	if (n < 0 || (uint64_t)n < min || (uint64_t)n > max)
		return invalid_at(r, at, "%" JSON_INTEGER_FORMAT " is not in %" PRIu64
				  "..%" PRIu64, n, min, max);
	*out = (uint64_t)n;
	return 0;
}

static int copy_integers(struct neff_reader *r, const struct jpath *at, const json_t *list,
			 const struct jfield *f)
{
	size_t n = json_array_size(list);
	uint32_t *copy = neff_alloc(r->obj, n, sizeof(*copy));
	uint64_t v;

	if (!copy)
		return memory_at(r, at);
	for (size_t i = 0; i < n; i++) {
		int err = jcheck_int(r, AT_INDEX(at, i), json_array_get(list, i), 0, f->max, &v);

		if (err)
			return err;
		copy[i] = (uint32_t)v;
	}
	*f->integers = copy;
	*f->nr = n;
	return 0;
}

/*
 * Characters that could forge a line of a log or steer a terminal: ASCII ones, and those that
 * UTF-8 writes as 0xc2 0x80 to 0xc2 0x9f.
 */
static bool has_control(const char *s)
{
	for (; *s; s++)
		if (iscntrl((unsigned char)*s) ||
		    ((unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0))
			return true;
	return false;
}

int jcopy_text(struct neff_reader *r, const struct jpath *at, const char *text,
	       const char **out)
{
	if (has_control(text))
		return invalid_at(r, at, "has control characters");
	*out = neff_strdup(r->obj, text);
	return *out ? 0 : memory_at(r, at);
}

static int copy_texts(struct neff_reader *r, const struct jpath *at, const json_t *list,
		      const struct jfield *f)
{
	size_t n = json_array_size(list);
	const char **copy = neff_alloc(r->obj, n, sizeof(*copy));

	if (!copy)
		return memory_at(r, at);
	for (size_t i = 0; i < n; i++) {
		const struct jpath *here = AT_INDEX(at, i);
		json_t *v = json_array_get(list, i);
		int err = must_be(r, here, v, json_is_string(v), "a string") ?:
			  jcopy_text(r, here, json_string_value(v), &copy[i]);

		if (err)
			return err;
	}
	*f->texts = copy;
	*f->nr = n;
	return 0;
}

int find_name(const char *text, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (names[i] && !strcmp(text, names[i]))
			return (int)i;
	return -1;
}

static int read_text(struct neff_reader *r, const struct jpath *at, const json_t *v,
		     const struct jfield *f)
{
	static const char *const fabrics[] = { "main", "alt" };
	const char *text = json_string_value(v);
	int i;

	if (f->copy)
		return jcopy_text(r, at, text, f->copy);
	if (f->fabric) {
		i = find_name(text, fabrics, ARRAY_SIZE(fabrics));
		if (i < 0)
			return unsupported_at(r, at, "unknown path '%s'", text);
		*f->fabric = (enum neuron_neff_fabric)i;
		return 0;
	}
	if (f->dtype) {
		*f->dtype = neuron_neff_dtype_parse(text);
		if (*f->dtype != NEURON_NEFF_DT_UNKNOWN)
			return 0;
		*f->dtype = f->unknown;
		return obstacle_at(r, at, "unknown type '%s'", text);
	}
	*f->text = text;
	return 0;
}

static int read_integer(struct neff_reader *r, const struct jpath *at, const json_t *v,
			const struct jfield *f)
{
	uint64_t max = f->integer ? INT64_MAX : f->number ? UINT32_MAX : INT_MAX, n;
	int err = jcheck_int(r, at, v, f->min, f->max ? f->max : max, &n);

	if (err)
		return err;
	if (f->integer)
		*f->integer = n;
	else if (f->number)
		*f->number = (uint32_t)n;
	else
		*f->index = (int)n;
	return 0;
}

static int read_list(struct neff_reader *r, const struct jpath *at, json_t *v,
		     const struct jfield *f)
{
	if (f->integers)
		return copy_integers(r, at, v, f);
	if (f->texts)
		return copy_texts(r, at, v, f);
	*f->list = v;
	return 0;
}

static int read_field(struct neff_reader *r, const struct jpath *at, json_t *v,
		      const struct jfield *f)
{
	if (f->integer || f->number || f->index)
		return read_integer(r, at, v, f);
	if (f->list || f->integers || f->texts)
		return must_be(r, at, v, json_is_array(v), "a list") ?: read_list(r, at, v, f);
	if (f->object) {
		*f->object = v;
		return must_be(r, at, v, json_is_object(v), "an object");
	}
	if (f->boolean) {
		*f->boolean = json_is_true(v);
		return must_be(r, at, v, json_is_boolean(v), "a boolean");
	}
	if (f->real) {
		*f->real = json_number_value(v);
		return must_be(r, at, v, json_is_number(v), "a number");
	}
	return must_be(r, at, v, json_is_string(v), "a string") ?: read_text(r, at, v, f);
}

int jget_fields(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		const struct jfield *fields)
{
	int err = must_be(r, at, obj, json_is_object(obj), "an object");

	for (const struct jfield *f = fields; !err && f->key; f++) {
		json_t *v = json_object_get(obj, f->key);

		if (v)
			err = read_field(r, AT_KEY(at, f->key), v, f);
		else if (f->required)
			err = invalid_at(r, AT_KEY(at, f->key), "missing");
	}
	return err;
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
	if (r->ahead && !m->there)
		return -EAGAIN;
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
	char *name = malloc(room);
	const char *why;
	int err = 0;

	if (!name)
		return memory_at(r, at);
	snprintf(name, room, "%s%s%s", sg->dir, *sg->dir ? "/" : "", file);
	why = *file == '/' ? "absolute path" : neff_normalise(name, name);
	*out = why ? NULL : neff_find_member(r->obj, name);
	if (*out)
		(*out)->wanted = true;
	else if (why)
		err = invalid_at(r, at, "'%s': %s", file, why);
	else
		err = invalid_at(r, at, "'%s' is not in the archive", name);
	free(name);
	return err;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* The object that a NEFF is read into: its memory, its members, errors (object.h). */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/util.h"
#include "../device/opts.h"
#include "object.h"

struct neff_alloc {
	struct neff_alloc *next;
	max_align_t data[];
};

void *neff_alloc(struct neff_object *obj, size_t n, size_t size)
{
	struct neff_alloc *a;
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(*a), &bytes))
		return NULL;
	a = calloc(1, bytes);
	if (!a)
		return NULL;
	a->next = obj->allocs;
	obj->allocs = a;
	return a->data;
}

char *neff_strdup(struct neff_object *obj, const char *s)
{
	size_t n = strlen(s) + 1;
	char *copy = neff_alloc(obj, 1, n);

	return copy ? memcpy(copy, s, n) : NULL;
}

int neff_fail(struct neff_reader *r, enum neuron_neff_class class, const char *where,
	      const char *fmt, ...)
{
	struct neuron_neff_error *e = &r->error;
	va_list ap;
	int n;

	e->kind = class;
	/* A long path must not push the reason out of the line. */
	n = snprintf(e->text, sizeof(e->text), "%.320s: ", where);
	va_start(ap, fmt);
	if (n > 0 && (size_t)n < sizeof(e->text))
		vsnprintf(e->text + n, sizeof(e->text) - (size_t)n, fmt, ap);
	va_end(ap);
	neuron_neff_printable(e->text);
	return class == NEURON_NEFF_UNSUPPORTED ? -EOPNOTSUPP :
	       class == NEURON_NEFF_RESOURCE ? -E2BIG : -EINVAL;
}

int neff_fail_memory(struct neff_reader *r, const char *where)
{
	neff_fail(r, NEURON_NEFF_RESOURCE, where, "out of host memory");
	return -ENOMEM;
}

int neff_tell(const struct neff_reader *r, struct neuron_neff_error *theirs, int err)
{
	if (result_valid(theirs))
		result_copy(theirs, &r->error, sizeof(r->error));
	return err;
}

const char *neff_normalise(const char *path, char *out)
{
	char *end = out;

	if (!*path)
		return "empty name";
	if (*path == '/')
		return "absolute path";
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && !memcmp(path, "..", 2))
			return "path leaves the archive";
		if (n && !(n == 1 && *path == '.')) {
			if (end != out)
				*end++ = '/';
			memmove(end, path, n);
			end += n;
		}
		path += n;
		path += *path == '/';
	}
	*end = '\0';
	return NULL;
}

void neff_share(struct neff_object *obj, struct neff_object *whole)
{
	obj->pub.header = whole->pub.header;
	/* As the file has it: the first node counted its own graphs. */
	obj->pub.header.lnc_size = whole->lnc_size;
	obj->members = whole->members;
	obj->nr_members = whole->nr_members;
	obj->whole = whole;
	obj->payload = whole->payload;
	obj->payload_size = whole->payload_size;
}

int neff_compare_members(const void *a, const void *b)
{
	const struct neff_member *x = a, *y = b;

	return strcmp(x->name, y->name);
}

bool neff_is_json(const struct neff_member *m)
{
	size_t n = strlen(m->name);

	return n > 5 && !strcmp(m->name + n - 5, ".json");
}

static int compare_member(const void *key, const void *member)
{
	return strcmp(key, ((const struct neff_member *)member)->name);
}

struct neff_member *neff_find_member(struct neff_object *obj, const char *name)
{
	if (!obj->nr_members)
		return NULL;
	return bsearch(name, obj->members, obj->nr_members, sizeof(*obj->members),
		       compare_member);
}

static void free_data(struct neff_member *m)
{
	if (!m->borrowed)
		free(m->data);
}

void neff_drop_unused(struct neff_object *obj)
{
	for (size_t i = 0; i < obj->nr_members; i++) {
		if (obj->members[i].keep)
			continue;
		free_data(&obj->members[i]);
		obj->members[i].data = NULL;
	}
}

uint64_t neff_unpacked(const struct neuron_neff *neff)
{
	const struct neff_object *obj = (const struct neff_object *)neff;
	uint64_t sum = 0;

	for (size_t i = 0; i < obj->nr_members; i++)
		if (obj->members[i].data && !obj->members[i].borrowed)
			sum += obj->members[i].size;
	return sum;
}

NEURON_EXPORT void neuron_neff_forget(struct neuron_neff *neff)
{
	struct neff_object *obj = (struct neff_object *)neff;

	for (size_t i = 0; i < obj->nr_members; i++) {
		free(obj->members[i].name);
		free_data(&obj->members[i]);
	}
	free(obj->members);
	obj->members = NULL;
	obj->nr_members = 0;
}

NEURON_EXPORT void neuron_neff_close(struct neuron_neff *neff)
{
	struct neff_object *obj = (struct neff_object *)neff;

	if (!obj)
		return;
	if (obj->whole == obj)
		neuron_neff_forget(neff);
	while (obj->allocs) {
		struct neff_alloc *next = obj->allocs->next;

		free(obj->allocs);
		obj->allocs = next;
	}
	free(obj);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values of JSON documents of a NEFF, and messages that say where in which one. */
#ifndef NEURON_LIB_JSON_H
#define NEURON_LIB_JSON_H

#include <jansson.h>
#include "object.h"

/* Bytes of the name of an input or output: NRT_TENSOR_NAME_MAX with its NUL. */
#define MAX_IO_NAME	255u

/* Where in a JSON document we are, for messages; lives on the stack. */
struct jpath {
	const char *member;		/* set in the root only */
	const struct jpath *up;
	const char *key;		/* NULL: @index */
	size_t index;
};

#define AT_KEY(up_, key_)	(&(struct jpath){ .up = (up_), .key = (key_) })
#define AT_INDEX(up_, index_)	(&(struct jpath){ .up = (up_), .index = (index_) })

/* The path in words; returns their length. */
size_t jpath_text(const struct jpath *p, char *buf, size_t room);

#define fail_at(r, class, path, ...) \
	__extension__({ \
		char where_[400]; \
		jpath_text((path), where_, sizeof(where_)); \
		neff_fail((r), (class), where_, __VA_ARGS__); \
	})
#define invalid_at(r, path, ...)	fail_at(r, NEURON_NEFF_INVALID, path, __VA_ARGS__)
#define unsupported_at(r, path, ...)	fail_at(r, NEURON_NEFF_UNSUPPORTED, path, __VA_ARGS__)

int memory_at(struct neff_reader *r, const struct jpath *path);
/* 0 and zeroed memory for @n elements at @ptr, or -ENOMEM. */
#define new_at(r, path, ptr, n) \
	(((ptr) = neff_alloc((r)->obj, (n), sizeof(*(ptr)))) ? 0 : memory_at((r), (path)))
/* The file can be placed, but not run. */
int obstacle_at(struct neff_reader *r, const struct jpath *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* "an object", "a list", ... */
const char *jtype_name(const json_t *v);
/* Index of @text in @names, or -1. */
int find_name(const char *text, const char *const *names, size_t n);

/*
 * A key of an object, and where its value goes: the pointer that is set says what the value
 * has to be.  What is absent and not required leaves that alone.  Texts and documents belong
 * to the object, what is copied to the reader.
 */
struct jfield {
	const char *key;
	bool required;
	const char **text;
	const char **copy;		/* of a text */
	bool *boolean;
	uint64_t *integer;		/* min to max; max 0: what the type can hold */
	uint32_t *number;
	int *index;
	uint64_t min, max;
	double *real;
	json_t **list, **object;
	const uint32_t **integers;	/* 0 to max, copied */
	const char ***texts;		/* copied */
	size_t *nr;			/* of both */
	enum neuron_neff_fabric *fabric;
	enum neuron_neff_dtype *dtype, unknown;
};

/* The fields of @obj, at the path @at, in their order. */
int jget_fields(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		const struct jfield *fields);
#define jget(r, at, obj, ...) \
	jget_fields((r), (at), (obj), (const struct jfield[]){ __VA_ARGS__, { .key = NULL } })

int jcheck_int(struct neff_reader *r, const struct jpath *at, const json_t *v,
	       uint64_t min, uint64_t max, uint64_t *out);
int jcopy_text(struct neff_reader *r, const struct jpath *at, const char *text,
	       const char **out);

/* A member is to be fetched, if it is not too long to be parsed. */
int neff_want_json(struct neff_reader *r, struct neff_member *m);
/* Parse a member as JSON; the caller drops the reference.  @who names it, or NULL. */
int jload(struct neff_reader *r, const char *name, const struct jpath *who,
	  json_t **out);
/* Member @file of the subgraph's directory, as named by the value at @at; to be fetched. */
int neff_find_file(struct neff_reader *r, const struct jpath *at,
		   const struct neuron_neff_subgraph *sg, const char *file,
		   struct neff_member **out);

#endif

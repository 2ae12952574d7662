// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The .npy format, versions 1 to 3: magic, header length, a Python dictionary
 * with exactly the keys descr, fortran_order and shape, then the elements.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/util.h"
#include "object.h"

/* The token that comes next, behind white space. */
static bool accept(const char **p, const char *token)
{
	size_t n = strlen(token);

	*p += strspn(*p, " \t\n\v\f\r");
	if (strncmp(*p, token, n))
		return false;
	*p += n;
	return true;
}

/* 'text' or "text" into @out. */
static bool get_quoted(const char **p, char *out, size_t room)
{
	const char *quote = accept(p, "'") ? "'\\" : "\"\\";
	size_t n;

	if (*quote == '"' && !accept(p, "\""))
		return false;
	n = strcspn(*p, quote);
	if (n >= room || (*p)[n] != *quote)
		return false;
	memcpy(out, *p, n);
	out[n] = '\0';
	*p += n + 1;
	return true;
}

static bool get_number(const char **p, uint64_t *out)
{
	char *end;

	accept(p, "");
	if (!isdigit((unsigned char)**p))
		return false;
	errno = 0;
	*out = strtoull(*p, &end, 10);
	*p = end + (*end == 'L');	/* written by Python 2 */
	return !errno;
}

#define MAX_NPY_DIMS 32u
#define MAX_NPY_HEADER 10000u

struct dict {
	char descr[16];
	bool fortran;
	uint32_t ndim;
	uint64_t shape[MAX_NPY_DIMS];
	unsigned int seen;
};

static bool get_shape(const char **t, struct dict *d)
{
	if (!accept(t, "("))
		return false;
	d->ndim = 0;
	while (!accept(t, ")")) {
		if (d->ndim == MAX_NPY_DIMS || !get_number(t, &d->shape[d->ndim++]))
			return false;
		if (!accept(t, ",")) {
			if (!accept(t, ")"))
				return false;
			break;
		}
	}
	return true;
}

static bool get_dict(const char **t, struct dict *d)
{
	char key[16];

	if (!accept(t, "{"))
		return false;
	while (!accept(t, "}")) {
		unsigned int bit;

		if (!get_quoted(t, key, sizeof(key)) || !accept(t, ":"))
			return false;
		if (!strcmp(key, "descr")) {
			bit = 1;
			if (!get_quoted(t, d->descr, sizeof(d->descr)))
				return false;
		} else if (!strcmp(key, "fortran_order")) {
			bit = 2;
			d->fortran = accept(t, "True");
			if (!d->fortran && !accept(t, "False"))
				return false;
		} else if (!strcmp(key, "shape")) {
			bit = 4;
			if (!get_shape(t, d))
				return false;
		} else {
			return false;
		}
		if (d->seen & bit)
			return false;
		d->seen |= bit;
		if (!accept(t, ",")) {
			if (!accept(t, "}"))
				return false;
			break;
		}
	}
	accept(t, "");
	return d->seen == 7 && !**t;
}

/* Element type and size from "<f4"; false if we do not know the notation. */
static bool parse_descr(const char *s, enum neuron_neff_dtype *dtype, uint64_t *size)
{
	static const struct {
		char kind;
		uint8_t size;
		uint8_t dtype;
	} known[] = {
		{ 'i', 1, NEURON_NEFF_DT_INT8 },	{ 'u', 1, NEURON_NEFF_DT_UINT8 },
		{ 'i', 2, NEURON_NEFF_DT_INT16 },	{ 'u', 2, NEURON_NEFF_DT_UINT16 },
		{ 'i', 4, NEURON_NEFF_DT_INT32 },	{ 'u', 4, NEURON_NEFF_DT_UINT32 },
		{ 'i', 8, NEURON_NEFF_DT_INT64 },	{ 'u', 8, NEURON_NEFF_DT_UINT64 },
		{ 'f', 2, NEURON_NEFF_DT_FLOAT16 },	{ 'f', 4, NEURON_NEFF_DT_FLOAT32 },
		/* How numpy extensions store bfloat16: two bytes without a meaning. */
		{ 'V', 2, NEURON_NEFF_DT_BFLOAT16 },
	};
	char *end;
	char kind;

	if (!*s || !strchr("<|=", *s) || !s[1] || !strchr("iufbcV", s[1]) ||
	    !isdigit((unsigned char)s[2]))
		return false;
	kind = s[1];
	*size = strtoul(s + 2, &end, 10);
	if (*end || !*size || *size > 1024)
		return false;
	*dtype = NEURON_NEFF_DT_UNKNOWN;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].kind == kind && known[i].size == *size)
			*dtype = (enum neuron_neff_dtype)known[i].dtype;
	return true;
}

static int check_dict(struct neff_reader *r, const char *where, const struct dict *d,
		      struct neuron_neff_npy *npy)
{
	uint64_t bytes, item;
	unsigned int wide = 0;

	if (!parse_descr(d->descr, &npy->dtype, &item))
		return neff_fail(r, NEURON_NEFF_UNSUPPORTED, where,
				 "element type '%s' of the .npy file", d->descr);
	bytes = item;
	npy->ndim = d->ndim <= NEURON_NEFF_MAX_SHAPE ? d->ndim : 0;
	for (uint32_t i = 0; i < d->ndim; i++) {
		if (__builtin_mul_overflow(bytes, d->shape[i], &bytes))
			return neff_fail(r, NEURON_NEFF_INVALID, where,
					 "shape of the .npy file overflows");
		wide += d->shape[i] > 1;
		if (d->shape[i] > UINT32_MAX)
			npy->ndim = 0;
		if (i < NEURON_NEFF_MAX_SHAPE)
			npy->shape[i] = (uint32_t)d->shape[i];
	}
	if (d->fortran && wide > 1)
		return neff_fail(r, NEURON_NEFF_UNSUPPORTED, where,
				 ".npy file in Fortran order");
	if (bytes != npy->size)
		return neff_fail(r, NEURON_NEFF_INVALID, where,
				 ".npy file has %zu bytes of elements, its shape says %llu",
				 npy->size, (unsigned long long)bytes);
	if (npy->dtype == NEURON_NEFF_DT_UNKNOWN)
		npy->ndim = 0;
	return 0;
}

static int parse_npy(struct neff_reader *r, const char *where, const void *data, size_t size,
		     struct neuron_neff_npy *npy)
{
	const uint8_t *p = data;
	struct dict d = { .seen = 0 };
	char text[MAX_NPY_HEADER + 1];
	const char *at = text;
	size_t length, skip;

	if (size < 10 || memcmp(p, "\x93NUMPY", 6))
		return neff_fail(r, NEURON_NEFF_INVALID, where, "not a .npy file");
	if (p[6] < 1 || p[6] > 3)
		return neff_fail(r, NEURON_NEFF_UNSUPPORTED, where, ".npy version %u", p[6]);
	skip = p[6] == 1 ? 10 : 12;
	if (size < skip)
		return neff_fail(r, NEURON_NEFF_INVALID, where, ".npy file ends in its header");
	length = (size_t)p[8] | (size_t)p[9] << 8;
	if (skip == 12)
		length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
	if (length > size - skip)
		return neff_fail(r, NEURON_NEFF_INVALID, where, ".npy file ends in its header");

	/* As numpy itself; many variables may name one file. */
	if (length > MAX_NPY_HEADER)
		return neff_fail(r, NEURON_NEFF_INVALID, where,
				 ".npy header of %zu bytes, the limit is %u", length,
				 MAX_NPY_HEADER);

	memcpy(text, p + skip, length);
	text[length] = '\0';
	if (strlen(text) != length || !get_dict(&at, &d))
		return neff_fail(r, NEURON_NEFF_INVALID, where, "bad header of the .npy file");

	*npy = (struct neuron_neff_npy){
		.data = p + skip + length,
		.size = size - skip - length,
	};
	return check_dict(r, where, &d, npy);
}

int neff_elements(struct neff_reader *r, const struct neff_member *m, struct neuron_neff_npy *npy)
{
	size_t n = strlen(m->name);

	if (n > 4 && !strcmp(m->name + n - 4, ".npy"))
		return parse_npy(r, m->name, m->data, m->size, npy);
	*npy = (struct neuron_neff_npy){ .data = m->data, .size = m->size };
	return 0;
}

NEURON_EXPORT int neuron_neff_npy(const char *name, const void *data, size_t size,
				  struct neuron_neff_error *error, struct neuron_neff_npy *npy)
{
	struct neff_reader r = { .obj = NULL };

	return neff_tell(&r, error, parse_npy(&r, name, data, size, npy));
}

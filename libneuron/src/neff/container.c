// SPDX-License-Identifier: LGPL-2.1-or-later
/* NEFF reader: header, memory, errors, names.  Layout: see neff.h. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/md5.h>
#include <nettle/sha2.h>

#include "reader.h"
#include "../../common/wait.h"

#define GIB (1024ull * 1024 * 1024)

/* Newest container version whose layout this reader knows. */
#define NEFF_MAX_MAJOR 2

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

void neuron_neff_printable(char *s)
{
	for (; *s; s++)
		if (!isascii((unsigned char)*s) || iscntrl((unsigned char)*s))
			*s = '?';
}

static int fail(struct neff_reader *r, enum neuron_neff_class class, int err,
		const char *where, const char *fmt, va_list ap)
{
	struct neuron_neff_error *e = r->error;
	int n;

	e->class = class;
	/* A long path must not push the reason out of the line. */
	n = snprintf(e->text, sizeof(e->text), "%.320s: ", where);
	if (n > 0 && (size_t)n < sizeof(e->text))
		vsnprintf(e->text + n, sizeof(e->text) - (size_t)n, fmt, ap);
	neuron_neff_printable(e->text);
	return err;
}

int neff_fail(struct neff_reader *r, enum neuron_neff_class class, const char *where,
	      const char *fmt, ...)
{
	va_list ap;
	int err;

	va_start(ap, fmt);
	err = fail(r, class, class == NEURON_NEFF_UNSUPPORTED ? -EOPNOTSUPP :
		   class == NEURON_NEFF_RESOURCE ? -E2BIG : -EINVAL, where, fmt, ap);
	va_end(ap);
	return err;
}

static int fail_errno(struct neff_reader *r, enum neuron_neff_class class, int err,
		      const char *where, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err = fail(r, class, err, where, fmt, ap);
	va_end(ap);
	return err;
}

int neff_fail_memory(struct neff_reader *r, const char *where)
{
	return fail_errno(r, NEURON_NEFF_RESOURCE, -ENOMEM, where, "out of host memory");
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
			memcpy(end, path, n);
			end += n;
		}
		path += n;
		path += *path == '/';
	}
	*end = '\0';
	return NULL;
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

static uint64_t get64(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

static void get_text(char *out, const uint8_t *p, size_t n)
{
	memcpy(out, p, n);
	out[n] = '\0';
	neuron_neff_printable(out);
}

static int parse_header(struct neff_reader *r, const uint8_t *p, size_t size)
{
	struct neuron_neff_header *h = &r->obj->pub.header;

	if (size < NEURON_NEFF_HEADER_SIZE)
		return neff_fail(r, NEURON_NEFF_INVALID, "header",
				 "file has %zu bytes, the header alone has %u", size,
				 NEURON_NEFF_HEADER_SIZE);

	h->pkg_version = get64(p);
	h->header_size = get64(p + 8);
	h->data_size = get64(p + 16);
	h->version_major = get64(p + 24);
	h->version_minor = get64(p + 32);
	get_text(h->build_version, p + 40, 128);
	h->num_tpb = get32(p + 168);
	memcpy(h->hash, p + 172, sizeof(h->hash));
	memcpy(h->uuid, p + 204, sizeof(h->uuid));
	get_text(h->name, p + 220, 256);
	memcpy(r->error->name, h->name, sizeof(h->name));
	h->requested_tpb_count = get32(p + 476);
	memcpy(h->tpb_per_node, p + 480, sizeof(h->tpb_per_node));
	h->feature_bits = get64(p + 544);
	h->lnc_size = get32(p + 552);
	r->obj->lnc_size = h->lnc_size;

	/* The size first: a file of another kind fails here, not at "version". */
	if (h->header_size != NEURON_NEFF_HEADER_SIZE)
		return neff_fail(r, NEURON_NEFF_INVALID, "header",
				 "header_size is %" PRIu64 ", not %u", h->header_size,
				 NEURON_NEFF_HEADER_SIZE);
	if (h->pkg_version != 1 && h->pkg_version != 2)
		return neff_fail(r, NEURON_NEFF_UNSUPPORTED, "header",
				 "pkg_version is %" PRIu64 ", known are 1 and 2",
				 h->pkg_version);
	if (h->data_size != size - NEURON_NEFF_HEADER_SIZE)
		return neff_fail(r, NEURON_NEFF_INVALID, "header",
				 "data_size is %" PRIu64 " but %zu bytes follow the header",
				 h->data_size, size - NEURON_NEFF_HEADER_SIZE);
	if (h->version_major > NEFF_MAX_MAJOR)
		return neff_fail(r, NEURON_NEFF_UNSUPPORTED, "header",
				 "NEFF version mismatch supported: %u.x received: %" PRIu64
				 ".%" PRIu64, NEFF_MAX_MAJOR, h->version_major,
				 h->version_minor);
	if (h->lnc_size > 2)
		return neff_fail(r, NEURON_NEFF_INVALID, "header",
				 "lnc_size is %u, not 1 or 2", h->lnc_size);
	return 0;
}

static int verify_hash(struct neff_reader *r, const uint8_t *payload, size_t size)
{
	const struct neuron_neff_header *h = &r->obj->pub.header;
	uint8_t digest[SHA256_DIGEST_SIZE] = { 0 };
	size_t n;

	if (h->pkg_version == 1) {
		struct sha256_ctx ctx;

		sha256_init(&ctx);
		sha256_update(&ctx, size, payload);
		sha256_digest(&ctx, n = SHA256_DIGEST_SIZE, digest);
	} else {
		struct md5_ctx ctx;

		md5_init(&ctx);
		md5_update(&ctx, size, payload);
		md5_digest(&ctx, n = MD5_DIGEST_SIZE, digest);
	}
	if (memcmp(digest, h->hash, n))
		return neff_fail(r, NEURON_NEFF_INVALID, "header",
				 "hash does not match the data");
	return 0;
}

static void fill_opts(struct neff_reader *r, const struct neuron_neff_opts *opts)
{
	struct neuron_neff_opts *o = &r->opts;

	if (opts)
		memcpy(o, opts, opts->size < sizeof(*o) ? opts->size : sizeof(*o));
	if (!o->max_members)
		o->max_members = 65536;
	if (!o->max_total)
		o->max_total = 16 * GIB;
	if (!o->max_json)
		o->max_json = GIB / 4;
	if (!o->max_values)
		o->max_values = 8u << 20;
}

static void free_data(struct neff_member *m)
{
	if (!m->borrowed)
		free(m->data);
}

/* What was only needed to parse: descriptions, debug information. */
static void drop_unused_members(struct neff_object *obj)
{
	for (size_t i = 0; i < obj->nr_members; i++) {
		if (obj->members[i].keep)
			continue;
		free_data(&obj->members[i]);
		obj->members[i].data = NULL;
	}
}

static int start(struct neff_reader *r, const struct neuron_neff_opts *opts,
		 struct neuron_neff_error *scratch)
{
	fill_opts(r, opts);
	r->error = r->opts.error ? r->opts.error : scratch;
	*r->error = (struct neuron_neff_error){ .class = NEURON_NEFF_OK };
	r->obj = calloc(1, sizeof(*r->obj));
	return r->obj ? 0 : neff_fail_memory(r, "header");
}

int neuron_neff_open(const void *bytes, size_t size, const struct neuron_neff_opts *opts,
		     struct neuron_neff **out)
{
	struct neuron_neff_error scratch;
	struct neff_reader r = { .obj = NULL };
	const uint8_t *payload;
	int err;

	if (!out || (!bytes && size) || (opts && !opts->size))
		return -EINVAL;
	err = start(&r, opts, &scratch);
	if (err)
		return err;
	err = parse_header(&r, bytes, size);
	if (err)
		goto fail;
	payload = (const uint8_t *)bytes + NEURON_NEFF_HEADER_SIZE;
	size -= NEURON_NEFF_HEADER_SIZE;
	if (r.opts.verify_hash) {
		err = verify_hash(&r, payload, size);
		if (err)
			goto fail;
	}
	err = neff_unpack(&r, payload, size);
	if (err)
		goto fail;
	if (r.opts.unpacked)
		*r.opts.unpacked = now_ns();
	err = neff_parse(&r);
	if (err)
		goto fail;
	if (!r.opts.keep)
		drop_unused_members(r.obj);
	*out = &r.obj->pub;
	return 0;

fail:
	neuron_neff_close(&r.obj->pub);
	return err;
}

int neuron_neff_open_node(struct neuron_neff *file, const struct neuron_neff_opts *opts,
			  struct neuron_neff **out)
{
	struct neff_object *whole = (struct neff_object *)file;
	struct neuron_neff_error scratch;
	struct neff_reader r = { .obj = NULL };
	int err = start(&r, opts, &scratch);

	if (err)
		return err;
	r.obj->pub.header = file->header;
	r.obj->members = whole->members;
	r.obj->nr_members = whole->nr_members;
	r.obj->shares = true;
	r.obj->payload = whole->payload;
	r.obj->payload_size = whole->payload_size;
	/* As the file has it: the first node counted its own graphs. */
	r.obj->pub.header.lnc_size = whole->lnc_size;
	err = neff_parse(&r);
	if (err)
		neuron_neff_close(&r.obj->pub);
	else
		*out = &r.obj->pub;
	return err;
}

void neuron_neff_forget(struct neuron_neff *neff)
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

void neuron_neff_close(struct neuron_neff *neff)
{
	struct neff_object *obj = (struct neff_object *)neff;

	if (!obj)
		return;
	if (!obj->shares)
		neuron_neff_forget(neff);
	while (obj->allocs) {
		struct neff_alloc *next = obj->allocs->next;

		free(obj->allocs);
		obj->allocs = next;
	}
	free(obj);
}

const struct neuron_neff_var *
neuron_neff_find_var(const struct neuron_neff_subgraph *sg, const char *name)
{
	size_t low = 0, high = sg->nr_vars;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = strcmp(name, sg->vars_by_name[mid]->name);

		if (!c)
			return sg->vars_by_name[mid];
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

uint32_t neuron_neff_cores(const struct neuron_neff *neff, uint32_t node)
{
	const struct neuron_neff_header *h = &neff->header;
	uint32_t cores = node < sizeof(h->tpb_per_node) ? h->tpb_per_node[node] : 0;

	/* Without a count for each node there is one for the file. */
	if (!cores && !neff->nr_nodes)
		cores = h->requested_tpb_count ? h->requested_tpb_count : h->num_tpb;
	return cores ? cores : 1;
}

const struct neuron_neff_dma *
neuron_neff_find_dma(const struct neuron_neff_engine *engine, uint32_t id)
{
	size_t low = 0, high = engine->nr_dma;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct neuron_neff_dma *dma = engine->dma_by_id[mid];

		if (dma->id == id)
			return dma;
		if (id < dma->id)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

static const struct {
	const char *name;
	uint32_t size;
} dtypes[] = {
	[NEURON_NEFF_DT_UINT64] = { "uint64", 8 },
	[NEURON_NEFF_DT_INT8] = { "int8", 1 },
	[NEURON_NEFF_DT_UINT8] = { "uint8", 1 },
	[NEURON_NEFF_DT_INT16] = { "int16", 2 },
	[NEURON_NEFF_DT_UINT16] = { "uint16", 2 },
	[NEURON_NEFF_DT_BFLOAT16] = { "bfloat16", 2 },
	[NEURON_NEFF_DT_FLOAT16] = { "float16", 2 },
	[NEURON_NEFF_DT_INT32] = { "int32", 4 },
	[NEURON_NEFF_DT_UINT32] = { "uint32", 4 },
	[NEURON_NEFF_DT_FLOAT32] = { "float32", 4 },
	[NEURON_NEFF_DT_FP32R] = { "float32r", 4 },
	[NEURON_NEFF_DT_INT64] = { "int64", 8 },
	[NEURON_NEFF_DT_FP8_E3] = { "float8e3", 1 },
	[NEURON_NEFF_DT_FP8_E4] = { "float8e4", 1 },
	[NEURON_NEFF_DT_FP8_E5] = { "float8e5", 1 },
};

#define NR_DTYPES (sizeof(dtypes) / sizeof(dtypes[0]))

uint32_t neuron_neff_dtype_size(enum neuron_neff_dtype dtype)
{
	return (size_t)dtype < NR_DTYPES ? dtypes[dtype].size : 0;
}

const char *neuron_neff_dtype_name(enum neuron_neff_dtype dtype)
{
	if ((size_t)dtype < NR_DTYPES && dtypes[dtype].name)
		return dtypes[dtype].name;
	return "unknown";
}

enum neuron_neff_dtype neuron_neff_dtype_parse(const char *name)
{
	for (size_t i = 0; i < NR_DTYPES; i++)
		if (dtypes[i].name && !strcmp(dtypes[i].name, name))
			return (enum neuron_neff_dtype)i;
	return NEURON_NEFF_DT_UNKNOWN;
}

const char *neuron_neff_var_type_name(enum neuron_neff_var_type type)
{
	static const char *const names[] = {
		"state-buffer", "input", "output", "file", "tmp-buf", "virtual",
		"pointer", "dge-table",
	};

	return (size_t)type < NEURON_NEFF_NR_VAR_TYPES ? names[type] : "unknown";
}

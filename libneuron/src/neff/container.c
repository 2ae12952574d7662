// SPDX-License-Identifier: LGPL-2.1-or-later
/* NEFF reader: header, hash, opening.  Layout: see neff.h. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/md5.h>
#include <nettle/sha2.h>

#include "../../common/wait.h"
#include "../../common/util.h"
#include "object.h"

#define GIB (1024ull * 1024 * 1024)

/* Newest container version whose layout this reader knows. */
#define NEFF_MAX_MAJOR 2

/* Numbers of the header are little-endian, and need not be aligned. */
static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
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
	memcpy(r->error.name, h->name, sizeof(h->name));
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

static int start(struct neff_reader *r, const struct neuron_neff_opts *opts)
{
	fill_opts(r, opts);
	r->obj = calloc(1, sizeof(*r->obj));
	if (!r->obj)
		return neff_tell(r, r->opts.error, neff_fail_memory(r, "header"));
	r->obj->pub.header.size = sizeof(r->obj->pub.header);
	return 0;
}

static int read_payload(struct neff_reader *r, const uint8_t *payload, size_t size)
{
	int err = r->opts.verify_hash ? verify_hash(r, payload, size) : 0;

	err = err ?: neff_unpack(r, payload, size);
	if (!err && r->opts.unpacked)
		*r->opts.unpacked = now_ns();
	return err;
}

NEURON_EXPORT int neuron_neff_open(const void *bytes, size_t size,
				   const struct neuron_neff_opts *opts,
				   struct neuron_neff **out)
{
	struct neff_reader r = { .obj = NULL };
	int err;

	if (!out || (!bytes && size) || (opts && !opts->size))
		return -EINVAL;
	err = start(&r, opts);
	if (err)
		return err;
	err = parse_header(&r, bytes, size) ?:
	      read_payload(&r, (const uint8_t *)bytes + NEURON_NEFF_HEADER_SIZE,
			   size - NEURON_NEFF_HEADER_SIZE) ?:
	      neff_parse(&r);
	if (err) {
		neuron_neff_close(&r.obj->pub);
	} else {
		if (!r.opts.keep)
			neff_drop_unused(r.obj);
		*out = &r.obj->pub;
	}
	return neff_tell(&r, r.opts.error, err);
}

NEURON_EXPORT int neuron_neff_unpack(const void *bytes, size_t size,
				     struct neuron_neff_error *error,
				     void (*member)(void *context, const char *name,
				     const void *data, size_t size),
				     void *context)
{
	const struct neuron_neff_opts opts = {
		.size = sizeof(opts), .error = error, .borrow = true,
	};
	struct neff_reader r = { .obj = NULL };
	int err = start(&r, &opts);

	if (err)
		return err;
	if (size < NEURON_NEFF_HEADER_SIZE)
		err = neff_fail(&r, NEURON_NEFF_INVALID, "header", "file has only %zu bytes", size);
	else
		err = neff_unpack(&r, (const uint8_t *)bytes + NEURON_NEFF_HEADER_SIZE,
				  size - NEURON_NEFF_HEADER_SIZE);
	for (size_t i = 0; !err && i < r.obj->nr_members; i++)
		r.obj->members[i].wanted = true;
	err = err ?: neff_fetch(&r);
	for (size_t i = 0; !err && i < r.obj->nr_members; i++)
		member(context, r.obj->members[i].name, r.obj->members[i].data,
		       r.obj->members[i].size);
	neuron_neff_close(&r.obj->pub);
	return neff_tell(&r, error, err);
}

NEURON_EXPORT int neuron_neff_open_node(struct neuron_neff *file,
					const struct neuron_neff_opts *opts,
					struct neuron_neff **out)
{
	struct neff_object *whole = (struct neff_object *)file;
	struct neff_reader r = { .obj = NULL };
	int err = start(&r, opts);

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
	return neff_tell(&r, r.opts.error, err);
}

NEURON_EXPORT uint32_t neuron_neff_cores(const struct neuron_neff *neff, uint32_t node)
{
	const struct neuron_neff_header *h = &neff->header;
	uint32_t cores = node < sizeof(h->tpb_per_node) ? h->tpb_per_node[node] : 0;

	/* Without a count for each node there is one for the file. */
	if (!cores && !neff->nr_nodes)
		cores = h->requested_tpb_count ? h->requested_tpb_count : h->num_tpb;
	return cores ? cores : 1;
}

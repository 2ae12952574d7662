// SPDX-License-Identifier: LGPL-2.1-or-later
/* NEFF reader: header, hash, opening.  Layout: see neff.h. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/wait.h"
#include "../../common/util.h"
#include "object.h"

#define GIB (1024ull * 1024 * 1024)

/* Newest container version whose layout this reader knows. */
#define NEFF_MAX_MAJOR 2

static void get_text(char *out, const char *p, size_t n)
{
	memcpy(out, p, n);
	out[n] = '\0';
	neuron_neff_printable(out);
}

static int parse_header(struct neff_reader *r, const void *bytes, size_t size)
{
	struct neuron_neff_header *h = &r->obj->pub.header;
	struct neff_file_header f;

	if (size < NEURON_NEFF_HEADER_SIZE)
		return neff_fail(r, NEURON_NEFF_INVALID, "header",
				 "file has %zu bytes, the header alone has %u", size,
				 NEURON_NEFF_HEADER_SIZE);

	/* The caller's bytes need not be aligned. */
	memcpy(&f, bytes, sizeof(f));
	h->pkg_version = le64toh(f.pkg_version);
	h->header_size = le64toh(f.header_size);
	h->data_size = le64toh(f.data_size);
	h->version_major = le64toh(f.version_major);
	h->version_minor = le64toh(f.version_minor);
	get_text(h->build_version, f.build_version, sizeof(f.build_version));
	h->num_tpb = le32toh(f.num_tpb);
	memcpy(h->hash, f.hash, sizeof(h->hash));
	memcpy(h->uuid, f.uuid, sizeof(h->uuid));
	get_text(h->name, f.name, sizeof(f.name));
	memcpy(r->error.name, h->name, sizeof(h->name));
	h->requested_tpb_count = le32toh(f.requested_tpb_count);
	memcpy(h->tpb_per_node, f.tpb_per_node, sizeof(h->tpb_per_node));
	h->feature_bits = le64toh(f.feature_bits);
	h->lnc_size = le32toh(f.lnc_size);
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
	uint8_t digest[sizeof(h->hash)];
	size_t n = neff_hash(h->pkg_version, payload, size, digest);

	return memcmp(digest, h->hash, n) ?
	       neff_fail(r, NEURON_NEFF_INVALID, "header", "hash does not match the data") : 0;
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
	r->obj->whole = r->obj;
	r->obj->others = r->opts.keep;
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
	struct neff_reader r = { .obj = NULL };
	int err = start(&r, opts);

	if (err)
		return err;
	neff_share(r.obj, (struct neff_object *)file);
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

// SPDX-License-Identifier: LGPL-2.1-or-later
/* NEFF writer: equal contents give equal bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>
#include <nettle/md5.h>
#include <nettle/sha2.h>

#include "../../common/util.h"
#include "object.h"

struct neuron_neff_writer {
	struct neff_member *members;
	size_t nr;
	size_t room;
};

NEURON_EXPORT struct neuron_neff_writer *neuron_neff_writer_new(void)
{
	return calloc(1, sizeof(struct neuron_neff_writer));
}

NEURON_EXPORT void neuron_neff_writer_free(struct neuron_neff_writer *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->nr; i++) {
		free(w->members[i].name);
		free(w->members[i].data);
	}
	free(w->members);
	free(w);
}

NEURON_EXPORT int neuron_neff_writer_add(struct neuron_neff_writer *w, const char *name,
					 const void *data, size_t size)
{
	struct neff_member m = { .size = size };
	int err = -ENOMEM;

	if (!w || !name || (!data && size))
		return -EINVAL;
	m.name = malloc(strlen(name) + 1);
	if (!m.name)
		return -ENOMEM;
	if (neff_normalise(name, m.name) || !*m.name) {
		err = -EINVAL;
		goto fail;
	}
	for (size_t i = 0; i < w->nr; i++) {
		if (!strcmp(w->members[i].name, m.name)) {
			err = -EEXIST;
			goto fail;
		}
	}
	if (w->nr == w->room) {
		size_t room = w->room ? w->room * 2 : 16;
		struct neff_member *grown = realloc(w->members, room * sizeof(*grown));

		if (!grown)
			goto fail;
		w->members = grown;
		w->room = room;
	}
	if (size) {
		m.data = malloc(size);
		if (!m.data)
			goto fail;
		memcpy(m.data, data, size);
	}
	w->members[w->nr++] = m;
	return 0;

fail:
	free(m.name);
	return err;
}

struct sink {
	uint8_t *bytes;
	size_t size;
	size_t room;
};

static la_ssize_t write_cb(struct archive *a, void *data, const void *buffer, size_t n)
{
	struct sink *s = data;

	if (s->room - s->size < n) {
		size_t room = (s->size + n) * 2;
		uint8_t *grown = realloc(s->bytes, room);

		if (!grown) {
			archive_set_error(a, ENOMEM, "out of memory");
			return -1;
		}
		s->bytes = grown;
		s->room = room;
	}
	memcpy(s->bytes + s->size, buffer, n);
	s->size += n;
	return (la_ssize_t)n;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct neff_member *)a)->name,
		      ((const struct neff_member *)b)->name);
}

static int write_members(struct neuron_neff_writer *w, struct archive *a)
{
	struct archive_entry *e = archive_entry_new();
	int ret = ARCHIVE_OK;

	if (!e)
		return -ENOMEM;
	for (size_t i = 0; ret == ARCHIVE_OK && i < w->nr; i++) {
		const struct neff_member *m = &w->members[i];

		archive_entry_clear(e);
		archive_entry_set_pathname(e, m->name);
		archive_entry_set_filetype(e, AE_IFREG);
		archive_entry_set_perm(e, 0644);
		archive_entry_set_mtime(e, 0, 0);
		archive_entry_set_uid(e, 0);
		archive_entry_set_gid(e, 0);
		archive_entry_set_size(e, (int64_t)m->size);
		ret = archive_write_header(a, e);
		if (ret == ARCHIVE_OK && m->size &&
		    archive_write_data(a, m->data, m->size) != (la_ssize_t)m->size)
			ret = ARCHIVE_FATAL;
	}
	archive_entry_free(e);
	if (ret == ARCHIVE_OK)
		ret = archive_write_close(a);
	if (ret == ARCHIVE_OK)
		return 0;
	return archive_errno(a) == ENOMEM ? -ENOMEM : -EIO;
}

static int write_archive(struct neuron_neff_writer *w, bool gzip, struct sink *s)
{
	struct archive *a = archive_write_new();
	int err;

	if (!a)
		return -ENOMEM;
	/* No padding behind the compressed data. */
	if (archive_write_set_format_pax_restricted(a) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(a, 1) != ARCHIVE_OK ||
	    (gzip && (archive_write_add_filter_gzip(a) != ARCHIVE_OK ||
		      archive_write_set_options(a, "gzip:compression-level=9,gzip:!timestamp") !=
		      ARCHIVE_OK)) ||
	    archive_write_open(a, s, NULL, write_cb, NULL) != ARCHIVE_OK)
		err = -EIO;
	else
		err = write_members(w, a);
	archive_write_free(a);
	return err;
}

static void put64(uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 8; i++, v >>= 8)
		p[i] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++, v >>= 8)
		p[i] = (uint8_t)v;
}

static void put_hash(uint8_t *p, uint64_t version, const uint8_t *data, size_t size)
{
	if (version == 1) {
		struct sha256_ctx ctx;

		sha256_init(&ctx);
		sha256_update(&ctx, size, data);
		sha256_digest(&ctx, SHA256_DIGEST_SIZE, p);
	} else {
		struct md5_ctx ctx;

		md5_init(&ctx);
		md5_update(&ctx, size, data);
		md5_digest(&ctx, MD5_DIGEST_SIZE, p);
	}
}

static void put_header(uint8_t *p, const struct neuron_neff_header *h, size_t payload)
{
	uint64_t version = h->pkg_version ? h->pkg_version : 2;

	memset(p, 0, NEURON_NEFF_HEADER_SIZE);
	put64(p, version);
	put64(p + 8, NEURON_NEFF_HEADER_SIZE);
	put64(p + 16, payload);
	put64(p + 24, h->version_major);
	put64(p + 32, h->version_minor);
	memcpy(p + 40, h->build_version, strnlen(h->build_version, 128));
	put32(p + 168, h->num_tpb);
	put_hash(p + 172, version, p + NEURON_NEFF_HEADER_SIZE, payload);
	memcpy(p + 204, h->uuid, sizeof(h->uuid));
	memcpy(p + 220, h->name, strnlen(h->name, 255));
	put32(p + 476, h->requested_tpb_count);
	memcpy(p + 480, h->tpb_per_node, sizeof(h->tpb_per_node));
	put64(p + 544, h->feature_bits);
	put32(p + 552, h->lnc_size);
}

NEURON_EXPORT int neuron_neff_writer_finish(struct neuron_neff_writer *w,
					    const struct neuron_neff_header *header, bool gzip,
					    void **bytes, size_t *size)
{
	struct neuron_neff_header h = { .version_major = 0 };
	struct sink s = { .size = NEURON_NEFF_HEADER_SIZE };
	int err;

	if (!w || !header || !header->size || !bytes || !size)
		return -EINVAL;
	memcpy(&h, header, header->size < sizeof(h) ? header->size : sizeof(h));
	if (h.pkg_version > 2)
		return -EINVAL;
	s.room = 64 * 1024;
	s.bytes = malloc(s.room);
	if (!s.bytes)
		return -ENOMEM;
	if (w->nr)
		qsort(w->members, w->nr, sizeof(*w->members), compare);
	err = write_archive(w, gzip, &s);
	if (err) {
		free(s.bytes);
		return err;
	}
	put_header(s.bytes, &h, s.size - NEURON_NEFF_HEADER_SIZE);
	*bytes = s.bytes;
	*size = s.size;
	return 0;
}

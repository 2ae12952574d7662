// SPDX-License-Identifier: LGPL-2.1-or-later
/* NEFF writer: equal contents give equal bytes. */
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
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

/* Of other names it depends on the locale whether they can be written. */
static bool is_ascii(const char *name)
{
	for (; *name; name++)
		if (!isascii((unsigned char)*name))
			return false;
	return true;
}

NEURON_EXPORT int neuron_neff_writer_add(struct neuron_neff_writer *w, const char *name,
					 const void *data, size_t size)
{
	struct neff_member m = { .size = size };
	int err = -ENOMEM;

	if (!w || !name || !is_ascii(name) || (!data && size))
		return -EINVAL;
	m.name = malloc(strlen(name) + 1);
	if (!m.name)
		return -ENOMEM;
	if (neff_normalise(name, m.name) || !*m.name) {
		err = -EINVAL;
		goto fail;
	}
	for (size_t i = 0; i < w->nr; i++)
		if (!strcmp(w->members[i].name, m.name)) {
			err = -EEXIST;
			goto fail;
		}
	if (array_grow((void **)&w->members, w->nr, &w->room, sizeof(m)))
		goto fail;
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

static int write_archive(struct neuron_neff_writer *w, bool gzip, FILE *f)
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
	    archive_write_open_FILE(a, f) != ARCHIVE_OK)
		err = -EIO;
	else
		err = write_members(w, a);
	archive_write_free(a);
	return err;
}

size_t neff_hash(uint64_t pkg_version, const void *data, size_t size, uint8_t digest[32])
{
	struct sha256_ctx sha256;
	struct md5_ctx md5;

	if (pkg_version == 1) {
		sha256_init(&sha256);
		sha256_update(&sha256, size, data);
		sha256_digest(&sha256, SHA256_DIGEST_SIZE, digest);
		return SHA256_DIGEST_SIZE;
	}
	md5_init(&md5);
	md5_update(&md5, size, data);
	md5_digest(&md5, MD5_DIGEST_SIZE, digest);
	return MD5_DIGEST_SIZE;
}

static void put_header(void *bytes, const struct neuron_neff_header *h, size_t payload)
{
	uint64_t version = h->pkg_version ? h->pkg_version : 2;
	struct neff_file_header f = {
		.pkg_version = htole64(version),
		.header_size = htole64(NEURON_NEFF_HEADER_SIZE),
		.data_size = htole64(payload),
		.version_major = htole64(h->version_major),
		.version_minor = htole64(h->version_minor),
		.num_tpb = htole32(h->num_tpb),
		.requested_tpb_count = htole32(h->requested_tpb_count),
		.feature_bits = htole64(h->feature_bits),
		.lnc_size = htole32(h->lnc_size),
	};

	memcpy(f.build_version, h->build_version, strnlen(h->build_version, 128));
	neff_hash(version, (char *)bytes + NEURON_NEFF_HEADER_SIZE, payload, f.hash);
	memcpy(f.uuid, h->uuid, sizeof(h->uuid));
	memcpy(f.name, h->name, strnlen(h->name, 255));
	memcpy(f.tpb_per_node, h->tpb_per_node, sizeof(h->tpb_per_node));
	memcpy(bytes, &f, sizeof(f));
}

/* Descriptions first, by name: whoever reads the archive knows then what he needs of the rest. */
static int compare(const void *a, const void *b)
{
	int first = neff_is_json(b) - neff_is_json(a);

	return first ? first : neff_compare_members(a, b);
}

NEURON_EXPORT int neuron_neff_writer_finish(struct neuron_neff_writer *w,
					    const struct neuron_neff_header *header, bool gzip,
					    void **bytes, size_t *size)
{
	struct neuron_neff_header h = { .version_major = 0 };
	static const struct neff_file_header none;
	char *out = NULL;
	size_t length;
	FILE *f;
	int err;

	if (!w || !header || !header->size || !bytes || !size)
		return -EINVAL;
	memcpy(&h, header, header->size < sizeof(h) ? header->size : sizeof(h));
	if (h.pkg_version > 2)
		return -EINVAL;
	f = open_memstream(&out, &length);
	if (!f)
		return -ENOMEM;
	if (w->nr)
		qsort(w->members, w->nr, sizeof(*w->members), compare);
	err = fwrite(&none, sizeof(none), 1, f) == 1 ? write_archive(w, gzip, f) : -ENOMEM;
	/* Without memory for the last byte it closes well, with no text. */
	if ((fclose(f) || !out) && !err)
		err = -ENOMEM;
	if (err) {
		free(out);
		return err;
	}
	put_header(out, &h, length - NEURON_NEFF_HEADER_SIZE);
	*bytes = out;
	*size = length;
	return 0;
}

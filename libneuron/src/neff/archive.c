// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Unpack the payload of a NEFF into memory.
 *
 * zlib inflates (it checks length and CRC, which libarchive's own filter does
 * not), libarchive reads the tar.  Every limit is applied before memory is
 * taken, so that a small file cannot make a large process.
 *
 * The first pass lists the members and takes what is small, and, where a pass
 * has to inflate, what a description before it mentions: constants are most of
 * a file.  What else the descriptions name is fetched in further passes, all of
 * it that is known at a time in one, of all nodes of a network; a member that
 * nothing names never takes memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include "../../common/util.h"
#include "object.h"

#define CHUNK		(256u * 1024)
#define EAGER_MEMBER	(1u << 20)	/* the first pass takes members up to this */
#define EAGER_TOTAL	(16u << 20)	/* and so much of them */
#define MAX_NAME	1024u
#define MAX_AGAIN	4u		/* times max_total is inflated by all passes together */
#define SEARCH_COST	64u		/* bytes that it takes as long to search as to begin */

struct source {
	struct neff_reader *r;
	const uint8_t *in;
	size_t left;
	size_t payload;
	uint64_t out;		/* bytes given to libarchive */
	bool first;		/* pass */
	size_t room;		/* for members */
	uint64_t total;		/* bytes of all members */
	uint64_t eager;		/* bytes taken without being asked for */
	uint64_t searched;	/* bytes of descriptions, for names */
	size_t *described;	/* members that are descriptions, and there */
	size_t nr_described;
	size_t max_described;
	bool gzip;
	bool end;
	int err;		/* set when the reason was already noted */
	z_stream z;
	uint8_t buf[CHUNK];
};

static int check_total(struct source *s, uint64_t total)
{
	uint64_t max = s->r->opts.max_total;

	return total <= max ? 0 :
	       neff_fail_limit(s->r, "archive",
			       "unpacks to more than the limit of %" PRIu64 " bytes", max);
}

static int check_again(struct source *s)
{
	uint64_t max = s->r->opts.max_total;

	return s->r->obj->whole->inflated / MAX_AGAIN <= max ? 0 :
	       neff_fail_limit(s->r, "archive",
			       "has to be unpacked too often: to more than %u times the limit of %" PRIu64 " bytes",
			       MAX_AGAIN, max);
}

/* Next piece of the tar: its length, 0 at the end, -1 with s->err set. */
static ssize_t next_piece(struct source *s, const void **piece)
{
	size_t n;

	/* In one piece, so that every member is. */
	if (!s->gzip) {
		n = s->left;
		*piece = s->in;
		s->in += n;
		s->left = 0;
		return (ssize_t)n;
	}

	s->z.next_out = s->buf;
	s->z.avail_out = CHUNK;
	while (!s->end && s->z.avail_out) {
		uInt feed = s->left < 1u << 30 ? (uInt)s->left : 1u << 30;
		int ret;

		s->z.next_in = (uint8_t *)(uintptr_t)s->in;
		s->z.avail_in = feed;
		ret = inflate(&s->z, Z_NO_FLUSH);
		feed -= s->z.avail_in;
		s->in += feed;
		s->left -= feed;
		if (ret == Z_STREAM_END) {
			s->end = true;
		} else if (ret == Z_MEM_ERROR) {
			s->err = neff_fail_memory(s->r, "archive");
			return -1;
		} else if (ret != Z_OK) {
			s->err = neff_fail(s->r, NEURON_NEFF_INVALID, "archive",
					   ret == Z_BUF_ERROR ? "gzip data ends early" :
					   "gzip data is corrupt");
			return -1;
		}
	}
	n = CHUNK - s->z.avail_out;
	s->out += n;
	s->r->obj->whole->inflated += n;
	s->err = check_total(s, s->out) ?: check_again(s);
	if (s->err)
		return -1;
	*piece = s->buf;
	return (ssize_t)n;
}

static la_ssize_t read_cb(struct archive *a, void *data, const void **buffer)
{
	struct source *s = data;
	ssize_t n = s->err ? -1 : next_piece(s, buffer);

	if (n < 0)
		archive_set_error(a, EIO, "see reader");
	return n;
}

static int fail_archive(struct source *s, struct archive *a, const char *where)
{
	const char *why = archive_error_string(a);

	if (s->err)
		return s->err;
	if (archive_errno(a) == ENOMEM)
		return neff_fail_memory(s->r, where);
	return neff_fail(s->r, NEURON_NEFF_INVALID, where, "%s", why ? why : "unreadable");
}

static int check_entry(struct source *s, struct archive_entry *e, const char *raw)
{
	const char *what = NULL;

	if (archive_entry_hardlink(e))
		what = "hard link";
	else if (archive_entry_filetype(e) == AE_IFLNK)
		what = "symbolic link";
	else if (archive_entry_filetype(e) != AE_IFREG)
		what = "special file";
	else if (archive_entry_sparse_count(e) > 0)
		what = "sparse file";
	if (what)
		return neff_fail(s->r, NEURON_NEFF_INVALID, raw, "%s in the archive", what);
	if (!archive_entry_size_is_set(e) || archive_entry_size(e) < 0)
		return neff_fail(s->r, NEURON_NEFF_INVALID, raw, "no size");
	return 0;
}

static bool in_payload(const struct source *s, const void *p)
{
	return !s->gzip && (const uint8_t *)p < s->in && (const uint8_t *)p >= s->in - s->payload;
}

static int read_data(struct source *s, struct archive *a, struct neff_member *m, bool take)
{
	size_t done = 0;

	while (done < m->size && (take || !s->gzip)) {
		const void *block;
		la_int64_t at;
		size_t n;
		int ret = archive_read_data_block(a, &block, &n, &at);

		if (ret != ARCHIVE_OK && ret != ARCHIVE_EOF)
			return fail_archive(s, a, m->name);
		if (ret == ARCHIVE_EOF || (uint64_t)at != done || n > m->size - done)
			return neff_fail(s->r, NEURON_NEFF_INVALID, m->name,
					 "archive ends inside this member");
		m->borrowed = n == m->size && in_payload(s, block);
		if (m->borrowed) {
			m->data = (void *)(uintptr_t)block;
			break;
		}
		if (!take)
			return 0;
		if (!m->data)
			m->data = malloc(m->size);
		if (!m->data)
			return neff_fail_memory(s->r, m->name);
		memcpy((char *)m->data + done, block, n);
		done += n;
	}
	m->there = take || m->borrowed;
	return 0;
}

/*
 * Does a description that was read mention the last part of its name?  Then it is wanted, likely.
 * Not more bytes are searched than were unpacked, whatever the archive has.
 */
static bool is_mentioned(struct source *s, const struct neff_member *m)
{
	const struct neff_object *obj = s->r->obj;
	const char *slash = strrchr(m->name, '/');
	const char *name = slash ? slash + 1 : m->name;

	for (size_t i = 0; i < s->nr_described; i++) {
		const struct neff_member *by = &obj->members[s->described[i]];

		s->searched += by->size + SEARCH_COST;
		if (s->searched > s->total)
			break;
		if (memmem(by->data, by->size, name, strlen(name)))
			return true;
	}
	return false;
}

static int note_described(struct source *s, const struct neff_member *m)
{
	if (!s->gzip || !m->data || !neff_is_json(m))
		return 0;
	if (array_grow((void **)&s->described, s->nr_described, &s->max_described,
		       sizeof(*s->described)))
		return neff_fail_memory(s->r, m->name);
	s->described[s->nr_described++] = (size_t)(m - s->r->obj->members);
	return 0;
}

static int read_member(struct source *s, struct archive *a, uint64_t size, struct neff_member *m)
{
	bool small = size <= EAGER_MEMBER && s->eager + size <= EAGER_TOTAL;
	bool guess = !small && s->gzip && (!neff_is_json(m) || size <= s->r->opts.max_json);

	/* Not more than the source can still hold, before memory is taken. */
	if (!s->gzip && size > s->payload)
		return neff_fail(s->r, NEURON_NEFF_INVALID, m->name,
				 "archive ends inside this member");
	s->total += size;
	s->err = check_total(s, s->total);
	if (s->err)
		return s->err;
	s->eager += small ? size : 0;
	m->size = size;
	return read_data(s, a, m, small || (guess && is_mentioned(s, m))) ?: note_described(s, m);
}

static int add_entry(struct source *s, struct archive *a, struct archive_entry *e)
{
	struct neff_object *obj = s->r->obj;
	const char *raw = archive_entry_pathname(e);
	char name[MAX_NAME + 1];
	struct neff_member *m;
	const char *why;
	int err;

	if (!raw)
		return neff_fail(s->r, NEURON_NEFF_INVALID, "archive", "member without a name");
	if (strlen(raw) > MAX_NAME)
		return neff_fail(s->r, NEURON_NEFF_INVALID, raw,
				 "name has more than %u bytes", MAX_NAME);
	why = neff_normalise(raw, name);
	if (why)
		return neff_fail(s->r, NEURON_NEFF_INVALID, raw, "%s", why);
	if (archive_entry_filetype(e) == AE_IFDIR && !archive_entry_hardlink(e))
		return 0;
	if (!*name)
		return neff_fail(s->r, NEURON_NEFF_INVALID, raw, "empty name");
	err = check_entry(s, e, raw);
	if (err)
		return err;
	if (!s->first) {
		m = neff_find_member(obj, name);
		return m && m->wanted && !m->there ? read_data(s, a, m, true) : 0;
	}
	if (array_grow((void **)&obj->members, obj->nr_members, &s->room, sizeof(*m)))
		return neff_fail_memory(s->r, "archive");
	m = &obj->members[obj->nr_members];
	*m = (struct neff_member){ .name = malloc(strlen(name) + 1) };
	if (!m->name)
		return neff_fail_memory(s->r, "archive");
	strcpy(m->name, name);
	obj->nr_members++;
	return read_member(s, a, (uint64_t)archive_entry_size(e), m);
}

static int read_archive(struct source *s, struct archive *a)
{
	struct archive_entry *e;
	uint32_t count = 0;
	int ret, err;

	if (archive_read_support_format_tar(a) != ARCHIVE_OK ||
	    archive_read_open(a, s, NULL, read_cb, NULL) != ARCHIVE_OK)
		return fail_archive(s, a, "archive");

	for (;;) {
		ret = archive_read_next_header(a, &e);
		if (ret == ARCHIVE_EOF)
			break;
		/* A warning means libarchive guessed; nobody should have to. */
		if (ret != ARCHIVE_OK)
			return fail_archive(s, a, "archive");
		/* Directories count as well: they cost time. */
		if (++count > s->r->opts.max_members)
			return neff_fail_limit(s->r, "archive", "more than %u members",
					       s->r->opts.max_members);
		err = add_entry(s, a, e);
		if (err)
			return err;
	}
	return s->err;
}

static int sort_members(struct neff_reader *r)
{
	struct neff_object *obj = r->obj;

	if (!obj->nr_members)
		return neff_fail(r, NEURON_NEFF_INVALID, "archive", "no members");
	qsort(obj->members, obj->nr_members, sizeof(*obj->members), neff_compare_members);
	for (size_t i = 1; i < obj->nr_members; i++)
		if (!strcmp(obj->members[i - 1].name, obj->members[i].name))
			return neff_fail(r, NEURON_NEFF_INVALID, obj->members[i].name,
					 "twice in the archive");
	return 0;
}

/* libarchive stops at the end mark of the tar; the rest may still be corrupt. */
static int drain(struct source *s)
{
	const void *piece;
	ssize_t n;

	while (s->gzip && !s->end) {
		n = next_piece(s, &piece);
		if (n < 0)
			return s->err;
	}
	for (; s->gzip && s->left; s->left--)
		if (*s->in++)
			return neff_fail(s->r, NEURON_NEFF_INVALID, "archive",
					 "data behind the end of the gzip stream");
	return 0;
}

static int pass(struct neff_reader *r, bool first)
{
	const uint8_t *payload = r->obj->payload;
	size_t size = r->obj->payload_size;
	struct archive *a = NULL;
	struct source *s;
	int err;

	s = calloc(1, sizeof(*s));
	if (!s)
		return neff_fail_memory(r, "archive");
	s->r = r;
	s->in = payload;
	s->left = size;
	s->payload = size;
	s->first = first;
	s->gzip = size >= 2 && payload[0] == 0x1f && payload[1] == 0x8b;
	/* 15 window bits, + 16: gzip wrapper only. */
	if (s->gzip && inflateInit2(&s->z, 15 + 16) != Z_OK) {
		err = neff_fail_memory(r, "archive");
		goto free_source;
	}
	a = archive_read_new();
	err = (a ? read_archive(s, a) : neff_fail_memory(r, "archive")) ?: drain(s);
	archive_read_free(a);
	if (s->gzip)
		inflateEnd(&s->z);
free_source:
	free(s->described);
	free(s);
	return err;
}

int neff_unpack(struct neff_reader *r, const uint8_t *payload, size_t size)
{
	if (!size)
		return neff_fail(r, NEURON_NEFF_INVALID, "archive", "empty");
	r->obj->payload = payload;
	r->obj->payload_size = size;
	return pass(r, true) ?: sort_members(r);
}

bool neff_missing(const struct neff_object *obj)
{
	for (size_t i = 0; i < obj->nr_members; i++)
		if (obj->members[i].wanted && !obj->members[i].there)
			return true;
	return false;
}

int neff_fetch(struct neff_reader *r)
{
	int err = neff_missing(r->obj) ? pass(r, false) : 0;

	for (size_t i = 0; i < r->obj->nr_members && !err; i++) {
		struct neff_member *m = &r->obj->members[i];
		void *copy;

		if (!m->keep || !m->borrowed || r->opts.borrow)
			continue;
		copy = malloc(m->size);
		if (!copy)
			return neff_fail_memory(r, m->name);
		m->data = memcpy(copy, m->data, m->size);
		m->borrowed = false;
	}
	return err;
}

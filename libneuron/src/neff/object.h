/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A NEFF while it is read, and all that belongs to it afterwards. */
#ifndef NEURON_NEFF_OBJECT_H
#define NEURON_NEFF_OBJECT_H

#include <neuron/neff.h>

/* A regular file of the archive. */
struct neff_member {
	char *name;		/* normalised */
	void *data;		/* NULL once dropped or if empty */
	size_t size;
	bool wanted;		/* something names it */
	bool there;		/* it is in @data */
	bool keep;		/* something parsed points into @data */
	bool borrowed;		/* @data is in the file, not malloc()ed */
};

/* The object behind struct neuron_neff: everything is freed from here. */
struct neff_object {
	struct neuron_neff pub;		/* first: neuron_neff_close() casts back */
	struct neff_alloc *allocs;
	struct neff_member *members;	/* sorted by name once the archive is read */
	size_t nr_members;
	uint32_t lnc_size;		/* of the file, 0 if it does not say */
	struct neff_object *whole;	/* to which @members belong: itself, or of another node */
	const uint8_t *payload;		/* to fetch members from */
	size_t payload_size;
	/* Of @whole: */
	bool others;			/* more nodes will be opened */
	uint64_t named;			/* nodes all of whose members are known, by number */
	uint64_t inflated;		/* bytes, by all passes */
};

/* A file begins with this, numbers in little endian (neff.h). */
struct neff_file_header {
	uint64_t pkg_version, header_size, data_size, version_major, version_minor;
	char build_version[128];
	uint32_t num_tpb;
	uint8_t hash[32], uuid[16];
	char name[256];
	uint32_t requested_tpb_count;
	uint8_t tpb_per_node[64];
	uint64_t feature_bits;
	uint32_t lnc_size;
	uint8_t unused[468];
};

_Static_assert(sizeof(struct neff_file_header) == NEURON_NEFF_HEADER_SIZE, "no padding");

struct neff_queue_name;

/* While opening. */
struct neff_reader {
	struct neff_object *obj;
	struct neuron_neff_opts opts;	/* defaults filled in */
	struct neuron_neff_error error;
	struct neff_queue_name *queue_names;	/* of the current subgraph, sorted */
	size_t nr_queue_names;
	bool ahead;			/* only for what it names, as far as that is there */
};

/* Fail: note class and "<where>: <what>", return the negative errno of the class. */
int neff_fail(struct neff_reader *r, enum neuron_neff_class class, const char *where,
	      const char *fmt, ...) __attribute__((format(printf, 4, 5)));
#define neff_fail_limit(r, where, ...) neff_fail((r), NEURON_NEFF_RESOURCE, (where), __VA_ARGS__)
int neff_fail_memory(struct neff_reader *r, const char *where);
/* What there is to say, to the caller's size; NULL: nobody wants it.  Returns @err. */
int neff_tell(const struct neff_reader *r, struct neuron_neff_error *theirs, int err);

/* Zeroed memory that lives as long as the object; NULL without memory or on overflow. */
void *neff_alloc(struct neff_object *obj, size_t n, size_t size);
char *neff_strdup(struct neff_object *obj, const char *s);

/*
 * Normalise a path of the archive into @out (strlen(path) + 1 bytes, or @path): no "."
 * components, no doubled or trailing slashes.  NULL, or why it is refused.
 */
const char *neff_normalise(const char *path, char *out);

/* What was only needed to parse goes: descriptions, debug information. */
void neff_drop_unused(struct neff_object *obj);

/* Bytes of the archive that were unpacked and stay until it is closed. */
uint64_t neff_unpacked(const struct neuron_neff *neff);

/* An input or output?  NULL is none. */
static inline bool is_tensor(const struct neuron_neff_var *v)
{
	return v && (v->type == NEURON_NEFF_VAR_INPUT || v->type == NEURON_NEFF_VAR_OUTPUT);
}

/* Is there nothing to run but the program of @node? */
static inline bool neff_alone(const struct neuron_neff *neff, uint32_t node)
{
	return !neff->nr_nodes ||
	       (neff->nr_nodes == 1 && !neff->nodes[0].cpu && neff->nodes[0].kelf == node);
}

/* Is an edge an input or output of a node on the host? */
bool neff_on_host(const struct neuron_neff *neff, const char *edge);

int neff_compare_members(const void *a, const void *b);

/* Is it a description, by its name? */
bool neff_is_json(const struct neff_member *m);

struct neff_member *neff_find_member(struct neff_object *obj, const char *name);

/* List the members of the payload in @r->obj->members; small ones are there then. */
int neff_unpack(struct neff_reader *r, const uint8_t *payload, size_t size);
/* Is there one that is wanted and not there? */
bool neff_missing(const struct neff_object *obj);
/* Unpack the wanted ones that are not there. */
int neff_fetch(struct neff_reader *r);

/* What is in a member, or the elements of one that is a .npy file. */
int neff_elements(struct neff_reader *r, const struct neff_member *m, struct neuron_neff_npy *npy);

/* An object that has the header and the archive of another one. */
void neff_share(struct neff_object *obj, struct neff_object *whole);

/* The reader's object has the header and the archive, and gets the rest. */
int neff_parse(struct neff_reader *r);

/* Computes the hash that a package of this version has in its header; returns its length. */
size_t neff_hash(uint64_t pkg_version, const void *data, size_t size, uint8_t digest[32]);

#endif

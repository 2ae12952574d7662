/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the NEFF reader share; not for anybody else. */
#ifndef NEURON_NEFF_INTERNAL_H
#define NEURON_NEFF_INTERNAL_H

#include "neff.h"

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
	bool shares;			/* @members belong to another object */
	const uint8_t *payload;		/* to fetch members from */
	size_t payload_size;
};

/* A name by which DMA entries find a queue set. */
struct neff_queue_name {
	const char *name;
	const struct neuron_neff_queue *queue;
	int instance;			/* -1: @name is that of the set */
};

/* While opening. */
struct neff_reader {
	struct neff_object *obj;
	struct neuron_neff_opts opts;	/* defaults filled in */
	struct neuron_neff_error *error;	/* never NULL */
	struct neff_queue_name *queue_names;	/* of the current subgraph, sorted */
	size_t nr_queue_names;
};

/* Fail: note class and "<where>: <what>", return the negative errno of the class. */
int neff_fail(struct neff_reader *r, enum neuron_neff_class class, const char *where,
	      const char *fmt, ...) __attribute__((format(printf, 4, 5)));
#define neff_fail_limit(r, where, ...) neff_fail((r), NEURON_NEFF_RESOURCE, (where), __VA_ARGS__)
int neff_fail_memory(struct neff_reader *r, const char *where);

/* Zeroed memory that lives as long as the object; NULL without memory or on overflow. */
void *neff_alloc(struct neff_object *obj, size_t n, size_t size);
char *neff_strdup(struct neff_object *obj, const char *s);

/*
 * Normalise a path of the archive into @out (strlen(path) + 1 bytes): no "."
 * components, no doubled or trailing slashes.  NULL, or why it is refused.
 */
const char *neff_normalise(const char *path, char *out);

struct neff_member *neff_find_member(struct neff_object *obj, const char *name);

/* archive.c: list the members of the payload in @r->obj->members. */
int neff_unpack(struct neff_reader *r, const uint8_t *payload, size_t size);

/* Unpack the wanted ones that are not there. */
int neff_fetch(struct neff_reader *r);

/* graph.c: from members to subgraphs. */
int neff_parse(struct neff_reader *r);

/* npy.c */
struct neff_npy {
	const void *data;
	size_t size;
	enum neuron_neff_dtype dtype;
	uint32_t ndim;			/* 0: not representable, use the default */
	uint32_t shape[NEURON_NEFF_MAX_SHAPE];
};

int neff_npy_parse(struct neff_reader *r, const char *where, const void *data, size_t size,
		   struct neff_npy *npy);

#endif /* NEURON_NEFF_INTERNAL_H */

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sets of tensors by name. */
#include <stdlib.h>
#include <string.h>

#include "handles.h"
#include "set.h"

struct nrt_set *nrt_set_of(const nrt_tensor_set_t *set)
{
	return nrt_handle_live(NRT_HANDLES_SETS, set) ? (struct nrt_set *)(uintptr_t)set : NULL;
}

NEURON_EXPORT NRT_STATUS nrt_allocate_tensor_set(nrt_tensor_set_t **result)
{
	struct nrt_set *s;
	NRT_STATUS status = NRT_SUCCESS;

	NRT_ENTER();
	s = result ? calloc(1, sizeof(*s)) : NULL;
	if (s && nrt_handle_add(NRT_HANDLES_SETS, s)) {
		*result = s;
	} else {
		status = result ? NRT_RESOURCE : NRT_INVALID;
		free(s);
	}
	return status;
}

static void set_free(struct nrt_set *s)
{
	for (size_t i = 0; i < s->nr; i++)
		free(s->entries[i].name);
	free(s->entries);
	free(s);
}

NEURON_EXPORT void nrt_destroy_tensor_set(nrt_tensor_set_t **tensor_set)
{
	if (!tensor_set || !nrt_handle_remove(NRT_HANDLES_SETS, *tensor_set))
		return;
	set_free(*tensor_set);
	*tensor_set = NULL;
}

/* A set that has its own tensors; NULL is allowed. */
void nrt_set_drop(struct nrt_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->nr; i++)
		nrt_tensor_drop(set->entries[i].tensor);
	set_free(set);
}

/* The set as it is now, in @out; false: no memory. A freed tensor is left out. */
bool nrt_set_hold(const struct nrt_set *set, struct nrt_set **out)
{
	struct nrt_set *own = calloc(1, sizeof(*own));

	if (own)
		own->entries = calloc(set->nr + 1, sizeof(*own->entries));
	if (!own || !own->entries) {
		free(own);
		return false;
	}
	for (size_t i = 0; i < set->nr; i++) {
		struct nrt_set_entry *e = &own->entries[own->nr];

		if (!nrt_tensor_valid(set->entries[i].tensor))
			continue;
		e->name = strdup(set->entries[i].name);
		e->tensor = e->name ? nrt_tensor_hold(set->entries[i].tensor) : NULL;
		own->nr++;
		if (!e->tensor) {
			nrt_set_drop(own);
			return false;
		}
	}
	*out = own;
	return true;
}

static struct nrt_set_entry *set_entry(const struct nrt_set *set, const char *name, size_t hint)
{
	if (hint < set->nr && !strcmp(set->entries[hint].name, name))
		return &set->entries[hint];
	for (size_t i = 0; i < set->nr; i++)
		if (!strcmp(set->entries[i].name, name))
			return &set->entries[i];
	return NULL;
}

nrt_tensor_t *nrt_set_find(const struct nrt_set *set, const char *name, size_t hint)
{
	struct nrt_set_entry *e = set ? set_entry(set, name, hint) : NULL;

	return e ? e->tensor : NULL;
}

NEURON_EXPORT NRT_STATUS nrt_add_tensor_to_tensor_set(nrt_tensor_set_t *tensor_set,
						      const char *tensor_name, nrt_tensor_t *tensor)
{
	struct nrt_set *s = nrt_set_of(tensor_set);
	struct nrt_set_entry *e;

	NRT_ENTER();
	if (!s || !tensor_name || !nrt_tensor_valid(tensor))
		return NRT_INVALID;
	e = set_entry(s, tensor_name, s->nr);
	if (e) {
		e->tensor = tensor;
		return NRT_SUCCESS;
	}
	if (array_grow((void **)&s->entries, s->nr, &s->max, sizeof(*e)))
		return NRT_RESOURCE;
	e = &s->entries[s->nr];
	e->name = strdup(tensor_name);
	e->tensor = tensor;
	if (!e->name)
		return NRT_RESOURCE;
	s->nr++;
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_get_tensor_from_tensor_set(nrt_tensor_set_t *tensor_set,
							const char *tensor_name,
							nrt_tensor_t **tensor)
{
	struct nrt_set *s = nrt_set_of(tensor_set);
	nrt_tensor_t *t;

	NRT_ENTER();
	if (!s || !tensor_name || !tensor)
		return NRT_INVALID;
	t = nrt_set_find(s, tensor_name, 0);
	if (!t)
		return NRT_FAILURE;
	*tensor = t;
	return NRT_SUCCESS;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Queue sets of a subgraph. */
#include <stdlib.h>
#include <string.h>

#include "../../common/util.h"
#include "json.h"
#include "parse.h"

/* "PE", "pe", "Activation", "act", ...: the owner key's spelling is not published. */
static int find_engine(const char *text)
{
	static const char *const spellings[][3] = {
		[NEURON_NEFF_PE] = { "pe", "PE", "PE0" },
		[NEURON_NEFF_ACT] = { "act", "Activation", "Activation0" },
		[NEURON_NEFF_POOL] = { "pool", "Pool", "Pool0" },
		[NEURON_NEFF_DVE] = { "dve", "DVE", "DVE0" },
		[NEURON_NEFF_SP] = { "sp", "SP", "SP0" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(spellings); i++)
		if (find_name(text, spellings[i], ARRAY_SIZE(spellings[i])) >= 0)
			return (int)i;
	return -1;
}

static int parse_queue(struct neff_reader *r, const struct jpath *at, const json_t *obj,
		       struct neuron_neff_queue *q)
{
	static const char *const types[] = { "in", "out", "data", "embedding_update", "dynamic" };
	const char *type = NULL, *owner = NULL;
	uint64_t n = 1, sem = UINT64_MAX;
	uint32_t *one;
	int err, i;

	err = jget_text(r, at, obj, "type", true, &type);
	if (err)
		return err;
	i = find_name(type, types, ARRAY_SIZE(types));
	q->type = i < 0 ? NEURON_NEFF_QUEUE_UNKNOWN : (enum neuron_neff_queue_type)i;
	err = i < 0 ? obstacle_at(r, AT_KEY(at, "type"), "unknown type '%s'", type) : 0;
	if (!err)
		err = jget_int(r, at, obj, "num_queues", false, 1, NEURON_NEFF_MAX_QUEUES, &n);
	if (!err)
		err = jget_text(r, at, obj, "owner", false, &owner);
	if (!err)
		err = jget_bool(r, at, obj, "pinned", &q->pinned);
	if (!err)
		err = jget_texts(r, at, obj, "queue_instances", &q->instances, &q->nr_instances);
	if (!err)
		err = jget_ints(r, at, obj, "semaphore_set", NEURON_NEFF_MAX_SEMAPHORES - 1,
			       &q->semaphores, &q->nr_semaphores);
	if (!err)
		err = jget_int(r, at, obj, "semaphore", false, 0,
			      NEURON_NEFF_MAX_SEMAPHORES - 1, &sem);
	if (!err)
		err = jget_fabric(r, at, obj, &q->fabric);
	if (err)
		return err;
	q->num_queues = (uint32_t)n;
	q->owner = owner ? find_engine(owner) : -1;
	if (sem != UINT64_MAX && !q->nr_semaphores) {
		one = neff_alloc(r->obj, 1, sizeof(*one));
		if (!one)
			return memory_at(r, at);
		*one = (uint32_t)sem;
		q->semaphores = one;
		q->nr_semaphores = 1;
	}
	return 0;
}

static int compare_queue_names(const void *a, const void *b)
{
	const struct neff_queue_name *x = a, *y = b;
	int c = (x->instance < 0) - (y->instance < 0);

	if (!c)
		c = strcmp(x->name, y->name);
	/* The first set that has an instance gets it. */
	return c ? c : (x->queue > y->queue) - (x->queue < y->queue);
}

int index_queues(struct neff_reader *r, const struct jpath *at,
		 const struct neuron_neff_subgraph *sg)
{
	size_t n = sg->nr_queues, k = 0;

	for (size_t i = 0; i < sg->nr_queues; i++)
		n += sg->queues[i].nr_instances;
	r->queue_names = neff_alloc(r->obj, n, sizeof(*r->queue_names));
	if (!r->queue_names)
		return memory_at(r, at);
	for (size_t i = 0; i < sg->nr_queues; i++) {
		const struct neuron_neff_queue *q = &sg->queues[i];

		r->queue_names[k++] = (struct neff_queue_name){ q->name, q, -1 };
		for (size_t j = 0; j < q->nr_instances; j++)
			r->queue_names[k++] = (struct neff_queue_name){ q->instances[j], q, (int)j };
	}
	if (n)
		qsort(r->queue_names, n, sizeof(*r->queue_names), compare_queue_names);
	r->nr_queue_names = n;
	return 0;
}

const struct neff_queue_name *find_queue_name(const struct neff_reader *r,
					      const char *name, bool instance)
{
	struct neff_queue_name key = { name, NULL, instance ? 0 : -1 };
	size_t low = 0, high = r->nr_queue_names;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare_queue_names(&r->queue_names[mid], &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == r->nr_queue_names || strcmp(r->queue_names[low].name, name) ||
	    (r->queue_names[low].instance >= 0) != instance)
		return NULL;
	return &r->queue_names[low];
}

int parse_queues(struct neff_reader *r, const struct jpath *at, json_t *queues,
		 struct neuron_neff_subgraph *sg)
{
	const char *name;
	json_t *v;
	int err;

	sg->queues = neff_alloc(r->obj, json_object_size(queues), sizeof(*sg->queues));
	if (!sg->queues)
		return memory_at(r, at);
	json_object_foreach(queues, name, v) {
		struct neuron_neff_queue *q = &sg->queues[sg->nr_queues];
		const struct jpath *here = AT_KEY(at, name);

		if (!json_is_object(v))
			return invalid_at(r, here, "is %s, not an object", jtype_name(v));
		err = jcopy_text(r, here, name, &q->name);
		if (!err)
			err = parse_queue(r, here, v, q);
		if (err)
			return err;
		sg->nr_queues++;
	}
	return 0;
}

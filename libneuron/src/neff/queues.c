// SPDX-License-Identifier: LGPL-2.1-or-later
/* Queue sets of a subgraph. */
#include <errno.h>
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
	const char *type, *owner = "";
	int err, i, sem = -1;
	uint32_t *one;

	q->num_queues = 1;
	err = jget(r, at, obj, { "type", .text = &type, .required = true },
		   { "num_queues", .number = &q->num_queues, .min = 1,
		     .max = NEURON_NEFF_MAX_QUEUES },
		   { "owner", .text = &owner },
		   { "pinned", .boolean = &q->pinned },
		   { "resident", .boolean = &q->resident },
		   { "queue_instances", .texts = &q->instances, .nr = &q->nr_instances },
		   { "semaphore_set", .integers = &q->semaphores, .nr = &q->nr_semaphores,
		     .max = NEURON_NEFF_MAX_SEMAPHORES - 1 },
		   { "semaphore", .index = &sem, .max = NEURON_NEFF_MAX_SEMAPHORES - 1 },
		   { "fabric_path", .fabric = &q->fabric });
	if (err)
		return err;
	q->owner = find_engine(owner);
	if (sem >= 0 && !q->nr_semaphores) {
		if (new_at(r, at, one, 1))
			return -ENOMEM;
		*one = (uint32_t)sem;
		q->semaphores = one;
		q->nr_semaphores = 1;
	}
	i = find_name(type, types, ARRAY_SIZE(types));
	q->type = i < 0 ? NEURON_NEFF_QUEUE_UNKNOWN : (enum neuron_neff_queue_type)i;
	return i < 0 ? obstacle_at(r, AT_KEY(at, "type"), "unknown type '%s'", type) : 0;
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
	if (new_at(r, at, r->queue_names, n))
		return -ENOMEM;
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

	if (new_at(r, at, sg->queues, json_object_size(queues)))
		return -ENOMEM;
	json_object_foreach(queues, name, v) {
		struct neuron_neff_queue *q = &sg->queues[sg->nr_queues];
		const struct jpath *here = AT_KEY(at, name);

		err = jcopy_text(r, here, name, &q->name) ?: parse_queue(r, here, v, q);
		if (err)
			return err;
		sg->nr_queues++;
	}
	return 0;
}

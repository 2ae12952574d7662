// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the state buffer of a core has (content.h). */
#include <stdatomic.h>

#include "../isa/program.h"
#include "content.h"
#include "core.h"

/*
 * The model whose constants a state buffer has, 0 if none: a model of this process, through
 * whichever struct neuron_core it ran.  A reset, by whoever it is, clears the state buffer and
 * the semaphores, and another process gets a core only behind one: so the semaphore tells
 * whether this is still true.
 */
static _Atomic uint64_t content[NEURON_MAX_DEVICES][NEURON_MAX_CORES];

/* Two that share an entry could only make each other copy more. */
static _Atomic uint64_t *content_of(const struct neuron_model *m)
{
	return &content[neuron_device_index(m->core->device) % NEURON_MAX_DEVICES]
		       [m->core->nc % NEURON_MAX_CORES];
}

static int write_form(struct neuron_model *m, enum resident_form form)
{
	int ret = 0;

	if (m->form == form)
		return 0;
	/* If something fails half way, the next run does all of it again. */
	m->form = RESIDENT_UNKNOWN;
	for (size_t i = 0; i < m->nr_resident && !ret; i++) {
		const struct resident *r = &m->resident[i];

		ret = neuron_mem_write(r->mem, r->offset,
				       form == RESIDENT_HAS ? r->has : r->brings, r->bytes);
	}
	if (!ret)
		m->form = form;
	return ret;
}

int content_begin(struct neuron_model *m)
{
	struct neuron_device *device = m->core->device;
	/* Until the run has ended nobody knows. */
	uint64_t was = atomic_exchange(content_of(m), 0);
	uint32_t value = 0;
	int ret;

	if (was && was == m->serial) {
		ret = neuron_semaphore_read(device, m->core->nc, RESIDENT_SEMAPHORE, &value);
		if (ret)
			return ret;
		if (value)
			return write_form(m, RESIDENT_HAS);
	}
	ret = write_form(m, RESIDENT_BRINGS);
	if (!ret && (was || m->serial))
		ret = neuron_semaphore_set(device, m->core->nc, RESIDENT_SEMAPHORE, m->serial != 0);
	return ret;
}

void content_keep(const struct neuron_model *m)
{
	atomic_store(content_of(m), m->serial);
}

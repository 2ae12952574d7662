// SPDX-License-Identifier: LGPL-2.1-or-later
/* Loaded models, and who uses them (model.h). */
#include <stdlib.h>

#include "../../common/lock.h"
#include "model.h"

void nrt_model_free(struct nrt_model *m)
{
	neuron_model_unload(m->model);
	for (size_t i = 0; i < m->nr_io && m->stages; i++)
		neuron_mem_free(m->stages[i].mem);
	turn_destroy(&m->turn);
	free(m->info);
	free(m->stages);
	free(m->io);
	free(m);
}

struct nrt_model *nrt_model_get(const struct nrt_model *handle)
{
	struct nrt_model *m;

	GUARD(&nrt_process.lock);
	for (m = nrt_process.models; m && m != handle; m = m->next)
		;
	if (m)
		m->refs++;
	return m;
}

void nrt_model_put(struct nrt_model *m)
{
	bool last;

	if (!m)
		return;
	pthread_mutex_lock(&nrt_process.lock);
	last = !--m->refs;
	pthread_mutex_unlock(&nrt_process.lock);
	if (last)
		nrt_model_free(m);
}

void nrt_models_close(void)
{
	struct nrt_process *p = &nrt_process;

	while (p->models) {
		struct nrt_model *m = p->models;

		p->models = m->next;
		nrt_model_free(m);
	}
}

uint32_t nrt_emptiest_vnc(void)
{
	struct nrt_process *p = &nrt_process;
	uint32_t best = 0;

	GUARD(&p->lock);
	for (uint32_t i = 1; i < p->nr_vncs; i++)
		if (p->vncs[i].nr_models < p->vncs[best].nr_models)
			best = i;
	return best;
}

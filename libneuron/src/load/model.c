// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a model is (model.h). */
#include <errno.h>
#include <stdlib.h>

#include "../device/opts.h"
#include "../memory/mem.h"
#include "model.h"

void model_free(struct neuron_model *model)
{
	mem_free_all(model->mems, model->nr_mems);
	for (size_t i = 0; i < model->nr_rings; i++) {
		free(model->rings[i].tx_desc);
		free(model->rings[i].rx_desc);
	}
	for (size_t i = 0; i < model->nr_io; i++) {
		free((char *)(uintptr_t)model->io[i].info.name);
		free(model->io[i].fixups);
		free(model->io[i].pointers);
	}
	for (size_t i = 0; i < model->nr_resident; i++) {
		free(model->resident[i].brings);
		free(model->resident[i].has);
	}
	free(model->resident);
	labels_put(model->labels);
	free(model->io);
	free(model->tensors);
	free(model->mems);
	free(model->words);
	free(model->rings);
	free(model->setup);
	free(model->name);
	free(model);
}

NEURON_EXPORT const char *neuron_model_uuid(const struct neuron_model *model)
{
	return model->uuid;
}

NEURON_EXPORT const char *neuron_model_name(const struct neuron_model *model)
{
	return model->name;
}

NEURON_EXPORT size_t neuron_model_tensor_count(const struct neuron_model *model)
{
	return model->nr_tensors;
}

NEURON_EXPORT int neuron_model_tensor_info(const struct neuron_model *model, size_t index,
					   struct neuron_tensor_info *info)
{
	if (index >= model->nr_tensors || !result_valid(info))
		return -EINVAL;
	result_copy(info, &model->tensors[index]->info, sizeof(*info));
	return 0;
}

NEURON_EXPORT int neuron_model_get_usage(const struct neuron_model *model,
					 struct neuron_model_usage *usage)
{
	struct neuron_model_usage sum = { 0 };

	if (!result_valid(usage))
		return -EINVAL;
	/* All members behind the size are numbers of the same type. */
	for (const struct neuron_model *m = model; m; m = m->peer)
		for (size_t i = 1; i < sizeof(sum) / sizeof(uint64_t); i++)
			((uint64_t *)&sum)[i] += ((const uint64_t *)&m->usage)[i];
	result_copy(usage, &sum, sizeof(sum));
	return 0;
}

NEURON_EXPORT const char *neuron_model_obstacles(const struct neuron_model *model, size_t index)
{
	for (; model; model = model->peer) {
		if (index < model->obstacles.nr)
			return model->obstacles.text[index];
		index -= model->obstacles.nr;
	}
	return NULL;
}

NEURON_EXPORT const char *neuron_model_obstacle(const struct neuron_model *model)
{
	return neuron_model_obstacles(model, 0);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Load a NEFF and run it once, with libneuron.
 *
 *	cc run-model.c $(pkg-config --cflags --libs neuron)
 */
#include <neuron/neuron.h>

#include "example.h"

int main(int argc, char **argv)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &error };
	struct neuron_run_result result = { .size = sizeof(result) };
	struct neuron_model_usage usage = { .size = sizeof(usage) };
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_model *model;
	struct neuron_io *io;
	struct file neff;
	size_t n;

	if (argc != 2)
		errx(2, "usage: run-model FILE.neff");
	neff = map_file(argv[1]);
	check(neuron_device_open(0, &device), "device 0");
	check(neuron_core_open(device, 0, NULL, &core), "core 0");
	if (neuron_model_load(core, neff.bytes, neff.size, &opts, &model))
		errx(1, "%s: %s", argv[1], error.text);
	check(neuron_model_get_usage(model, &usage), "usage");
	printf("%s: code %llu, constants %llu bytes, %llu DMA descriptors\n",
	       neuron_model_name(model), (unsigned long long)usage.code,
	       (unsigned long long)usage.constants, (unsigned long long)usage.descriptors);

	/* Memory of the device for each input and output, by name. */
	n = neuron_model_tensor_count(model);
	io = calloc(n, sizeof(*io));
	if (!io)
		err(1, "memory");
	for (size_t i = 0; i < n; i++) {
		struct neuron_mem_opts tensor = { .size = sizeof(tensor), .category = NEURON_MEM_TENSORS };
		struct neuron_tensor_info info = { .size = sizeof(info) };

		check(neuron_model_tensor_info(model, i, &info), "tensor");
		io[i].name = info.name;
		io[i].bytes = info.bytes;
		check(neuron_mem_alloc(device, info.bytes, &tensor, &io[i].mem), info.name);
		if (info.usage == NEURON_TENSOR_INPUT) {
			uint8_t *bytes = malloc(info.bytes);

			fill(bytes, info.bytes, 0);
			check(neuron_mem_write(io[i].mem, 0, bytes, info.bytes), info.name);
			free(bytes);
		}
	}
	if (neuron_model_run(model, io, n, 60000, &result))
		errx(1, "%s", result.text);

	for (size_t i = 0; i < n; i++) {
		struct neuron_tensor_info info = { .size = sizeof(info) };

		check(neuron_model_tensor_info(model, i, &info), "tensor");
		if (info.usage == NEURON_TENSOR_OUTPUT) {
			uint8_t *bytes = malloc(info.bytes);

			check(neuron_mem_read(io[i].mem, 0, bytes, info.bytes), info.name);
			printf("%s: %llu bytes, checksum %08x\n", info.name,
			       (unsigned long long)info.bytes, checksum(bytes, info.bytes));
			free(bytes);
		}
		neuron_mem_free(io[i].mem);
	}
	free(io);
	neuron_model_unload(model);
	neuron_core_close(core);
	neuron_device_close(device);
	return 0;
}

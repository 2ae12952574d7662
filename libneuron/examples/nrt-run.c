// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Load a NEFF and run it once, with the runtime interface.
 *
 *	cc nrt-run.c $(pkg-config --cflags --libs nrt)
 */
#include <nrt/nrt.h>
#include <nrt/nrt_experimental.h>

#include "example.h"

static void ok(NRT_STATUS status, const char *what)
{
	if (status != NRT_SUCCESS)
		errx(1, "%s: %s", what, nrt_get_status_as_str(status));
}

int main(int argc, char **argv)
{
	nrt_tensor_set_t *inputs, *outputs;
	nrt_tensor_info_array_t *info;
	nrt_tensor_t **tensors;
	nrt_model_t *model;
	struct file neff;

	if (argc != 2)
		errx(2, "usage: nrt-run FILE.neff");
	neff = map_file(argv[1]);
	ok(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), "nrt_init");
	ok(nrt_load(neff.bytes, neff.size, 0, -1, &model), argv[1]);
	ok(nrt_get_model_tensor_info(model, &info), "tensor info");
	ok(nrt_allocate_tensor_set(&inputs), "inputs");
	ok(nrt_allocate_tensor_set(&outputs), "outputs");
	tensors = calloc(info->tensor_count, sizeof(*tensors));
	if (!tensors)
		err(1, "memory");
	for (uint64_t i = 0; i < info->tensor_count; i++) {
		const nrt_tensor_info_t *t = &info->tensor_array[i];
		int input = t->usage == NRT_TENSOR_USAGE_INPUT;

		ok(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, t->size, t->name, &tensors[i]),
		   t->name);
		ok(nrt_add_tensor_to_tensor_set(input ? inputs : outputs, t->name, tensors[i]), t->name);
		if (input) {
			uint8_t *bytes = malloc(t->size);

			fill(bytes, t->size, 0);
			ok(nrt_tensor_write(tensors[i], bytes, 0, t->size), t->name);
			free(bytes);
		}
	}
	ok(nrt_execute(model, inputs, outputs), "nrt_execute");

	for (uint64_t i = 0; i < info->tensor_count; i++) {
		const nrt_tensor_info_t *t = &info->tensor_array[i];

		if (t->usage == NRT_TENSOR_USAGE_OUTPUT) {
			uint8_t *bytes = malloc(t->size);

			ok(nrt_tensor_read(tensors[i], bytes, 0, t->size), t->name);
			printf("%s: %zu bytes, checksum %08x\n", t->name, t->size,
			       checksum(bytes, t->size));
			free(bytes);
		}
		nrt_tensor_free(&tensors[i]);
	}
	nrt_destroy_tensor_set(&inputs);
	nrt_destroy_tensor_set(&outputs);
	nrt_free_model_tensor_info(info);
	free(tensors);
	nrt_unload(model);
	nrt_close();
	return 0;
}

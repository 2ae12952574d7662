// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the HBM allocator: bytes become operations, each compared with the model
 * (tests/lib/buddy_model.h). A difference, a broken invariant and a sanitizer
 * report are crashes.
 *
 * First byte: the zone. Then records of 8 bytes: operation, and the four numbers
 * of model_step() in 2, 2, 2 and 1 bytes.
 */
#include "../../lib/buddy_model.h"

static const u32 zones[] = { 1, 3, 511, 512, 513, 1024, 1500, 2048, 3072, 4097 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model m;
	size_t i;

	if (size < 9 || size > 8 * 400)
		return 0;
	model_init(&m, zones[data[0] % (sizeof(zones) / sizeof(zones[0]))]);
	for (i = 1; i + 8 <= size; i += 8) {
		u32 a = data[i + 1] | (u32)data[i + 2] << 8;
		u32 b = data[i + 3] | (u32)data[i + 4] << 8;
		u32 c = data[i + 5] | (u32)data[i + 6] << 8;

		model_step(&m, data[i], a, b, c, data[i + 7]);
		if (!(i / 8 % 16))
			MODEL_ASSERT(neuron_buddy_check(m.zone) == 0);
	}
	model_compare(&m, 3);
	model_exit(&m);
	return 0;
}

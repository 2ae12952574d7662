// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the HBM allocator: bytes become operations, each compared with the model
 * (tests/lib/buddy_model.h). A difference, a broken invariant and a sanitizer
 * report are crashes.
 *
 * First byte: the zone. Then records of 8 bytes: operation, and the four numbers
 * of model_step() in 2, 2, 2 and 1 bytes.
 *
 * With -DSTANDALONE a program without libFuzzer: replays files, then runs random
 * inputs made of them for some seconds.
 */
#include <time.h>
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

#ifdef STANDALONE
static u8 input[64][8 * 400];
static size_t length[64];

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	u64 s = 88172645463325252ULL, runs = 0;
	u8 buf[8 * 400];
	int files, i;

	for (files = 0; files < 64 && files + 2 < argc; files++) {
		FILE *f = fopen(argv[files + 2], "rb");

		if (!f)
			return 2;
		length[files] = fread(input[files], 1, sizeof(input[0]), f);
		fclose(f);
		LLVMFuzzerTestOneInput(input[files], length[files]);
	}
	while (files && time(NULL) < end) {
#define RND() (s ^= s << 13, s ^= s >> 7, s ^= s << 17, (u32)(s >> 20))
		int from = RND() % files, n = 1 + RND() % 40;

		memcpy(buf, input[from], length[from]);
		for (i = 0; i < n && length[from]; i++)
			buf[RND() % length[from]] = RND();
		LLVMFuzzerTestOneInput(buf, length[from]);
		runs++;
	}
	printf("# %d files, %llu runs\n", files, (unsigned long long)runs);
	return 0;
}
#endif

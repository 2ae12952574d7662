// SPDX-License-Identifier: GPL-2.0-only
/*
 * In place of libFuzzer, for compilers without it: replay files, then mutate
 * them (seeded): mutate SECONDS FILE...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_SIZE 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t state = 0x9e3779b97f4a7c15ull;

static uint64_t rnd(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

/* A word in place of a number, most of the time. */
static size_t insert_word(uint8_t *d, size_t n, size_t at)
{
	static const char *const words[] = {
		"0", "-1", "256", "4294967296", "9223372036854775807", "null", "[]", "{}", "\"\"",
		"\"x\"", "true", "1.5", "\"../\"", "/", "[[[[", "\"sbuf\"", "\"virtual\"",
	};
	const char *w = words[rnd(sizeof(words) / sizeof(words[0]))];
	size_t k = strlen(w);

	for (size_t i = 0; i < 64 && at < n - 1 && (d[at] < '0' || d[at] > '9'); i++)
		at++;
	if (n + k > MAX_SIZE)
		return n;
	memmove(d + at + k, d + at, n - at);
	memcpy(d + at, w, k);
	return n + k;
}

static size_t mutate(uint8_t *d, size_t n)
{
	for (uint64_t times = 1 + rnd(6); times && n > 8; times--) {
		size_t at = rnd(n), len = 1 + rnd(16);

		if (len > n - at)
			len = n - at;
		switch (rnd(6)) {
		case 0:
			d[at] ^= (uint8_t)(1u << rnd(8));
			break;
		case 1:
			d[at] = (uint8_t)(rnd(2) ? rnd(8) : rnd(256));
			break;
		case 2:
			memmove(d + at, d + at + len, n - at - len);
			n -= len;
			break;
		case 3:
			if (n + len > MAX_SIZE)
				break;
			memmove(d + at + len, d + at, n - at);
			n += len;
			break;
		case 4:
			memmove(d + rnd(n - len + 1), d + at, len);
			break;
		default:
			n = insert_word(d, n, at);
		}
	}
	return n;
}

int main(int argc, char **argv)
{
	static uint8_t seed[256][MAX_SIZE], work[MAX_SIZE];
	size_t len[256], nr = 0;
	unsigned long runs = 0;
	time_t end;

	if (argc < 3)
		return 2;
	for (int i = 2; i < argc && nr < 256; i++) {
		FILE *f = fopen(argv[i], "rb");

		if (!f) {
			perror(argv[i]);
			return 2;
		}
		len[nr] = fread(seed[nr], 1, sizeof(seed[0]), f);
		fclose(f);
		LLVMFuzzerTestOneInput(seed[nr], len[nr]);
		nr++;
	}
	for (end = time(NULL) + atol(argv[1]); time(NULL) < end; runs++) {
		size_t s = rnd(nr);

		memcpy(work, seed[s], len[s]);
		LLVMFuzzerTestOneInput(work, mutate(work, len[s]));
	}
	printf("# %zu files, %lu mutations\n", nr, runs);
	return 0;
}

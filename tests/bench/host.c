// SPDX-License-Identifier: GPL-2.0-only
/*
 * The benchmark on the host: the project's allocator, and the policies that it is compared
 * with. For quick looks; the comparison of times runs in the kernel (module.c).
 *
 * usage: bench-host [TESTS [PEERS [SEEDS [TRACE,TRACE... [DRAW [full]]]]]]
 */
#include <stdarg.h>
#include <time.h>
#include "bench.h"

const struct bench_peer *const bench_peers[] = {
	&bench_ours, &bench_moving_all, &bench_moving_half, &bench_exact_first,
	&bench_exact_best, NULL,
};

u64 bench_cycles(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
#endif
}

static u64 nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static u64 cycles_per_ms;

u64 bench_cycles_to_ns(u64 cycles)
{
	return (cycles * 1000 + cycles_per_ms / 2000) * 1000 / cycles_per_ms;
}

void bench_print(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
}

char *bench_read(const char *path)
{
	char *text = NULL;
	FILE *f = fopen(path, "r");
	long size;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END) && (size = ftell(f)) >= 0) {
		rewind(f);
		text = bench_alloc_mem((size_t)size + 1);
		if (text && fread(text, 1, (size_t)size, f) != (size_t)size) {
			bench_free_mem(text);
			text = NULL;
		}
	}
	fclose(f);
	return text;
}

int main(int argc, char **argv)
{
	u64 c = bench_cycles(), t = nanoseconds();

	while (nanoseconds() - t < 20000000)
		;
	cycles_per_ms = (bench_cycles() - c) * 1000000 / (nanoseconds() - t);
	return bench_run(&(struct bench_options){
		.tests = argc > 1 ? argv[1] : "",
		.peers = argc > 2 ? argv[2] : "",
		.seeds = argc > 3 ? (u32)atoi(argv[3]) : 3,
		.recorded = argc > 4 ? argv[4] : NULL,
		.draw = argc > 5 ? strtoull(argv[5], NULL, 0) : 1,
		.quick = argc <= 6,
	}) ? 1 : 0;
}

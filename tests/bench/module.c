// SPDX-License-Identifier: GPL-2.0-only
/*
 * The benchmark as a module: runs while it loads, writes its results to a file.
 *
 * insmod neuron_bench.ko out=/results.json [tests="ml-mix models"]
 *	[peers="neuron_buddy"] [seeds=3] [recorded=/a.trace,/b.trace]
 */
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/timex.h>
#include "bench.h"

static char *out = "";
module_param(out, charp, 0);
MODULE_PARM_DESC(out, "file for the results, one JSON object per line");
static char *tests = "";
module_param(tests, charp, 0);
MODULE_PARM_DESC(tests, "names of tests and traces to run, all if empty");
static char *peers = "";
module_param(peers, charp, 0);
MODULE_PARM_DESC(peers, "names of allocators to run, all if empty");
static uint seeds = 3;
module_param(seeds, uint, 0);
MODULE_PARM_DESC(seeds, "runs with different random numbers");

static bool quick;
module_param(quick, bool, 0);
MODULE_PARM_DESC(quick, "fewer sizes, mixes and seeds where packing is measured");
static ulong draw = 1;
module_param(draw, ulong, 0);
MODULE_PARM_DESC(draw, "seed that mixes of sizes are drawn from");

static char *recorded;
module_param(recorded, charp, 0);
MODULE_PARM_DESC(recorded, "files with recorded traces");

static struct file *file;
static loff_t position;
static u64 cycles_per_ms;

int bench_peers_start(void);
void bench_peers_stop(void);

u64 bench_cycles(void)
{
#ifdef CONFIG_X86_64
	return __builtin_ia32_rdtsc();
#else
	return get_cycles();
#endif
}

u64 bench_cycles_to_ns(u64 cycles)
{
	return (cycles * 1000 + cycles_per_ms / 2000) / (cycles_per_ms / 1000);
}

void bench_print(const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vscnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	kernel_write(file, line, n, &position);
}

char *bench_read(const char *path)
{
	struct file *f = filp_open(path, O_RDONLY, 0);
	char *text = NULL;
	loff_t pos = 0;
	size_t size;

	if (IS_ERR(f))
		return NULL;
	size = i_size_read(file_inode(f));
	text = bench_alloc_mem(size + 1);
	if (text && kernel_read(f, text, size, &pos) != size) {
		bench_free_mem(text);
		text = NULL;
	}
	filp_close(f, NULL);
	return text;
}

static int __init bench_init(void)
{
	u64 c, t;
	int err;

	file = filp_open(out, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (IS_ERR(file))
		return PTR_ERR(file);
	err = bench_peers_start();
	if (err)
		goto close;
	c = bench_cycles();
	t = ktime_get_ns();
	while (ktime_get_ns() - t < 100 * NSEC_PER_MSEC)
		;
	cycles_per_ms = (bench_cycles() - c) * NSEC_PER_MSEC / (ktime_get_ns() - t);
	err = bench_run(&(struct bench_options){
		.tests = tests, .peers = peers, .seeds = seeds, .recorded = recorded,
		.quick = quick, .draw = draw,
	});
	bench_peers_stop();
close:
	filp_close(file, NULL);
	return err;
}
module_init(bench_init);

static void __exit bench_exit(void)
{
}
module_exit(bench_exit);

MODULE_DESCRIPTION("Benchmark of allocators of contiguous device memory");
MODULE_LICENSE("GPL");

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Built in front of each copy of a peer's source: as part of the benchmark
 * instead of the kernel, and without the kernel's list debugging, which would
 * make it look slower than it is.
 */
#include <linux/kconfig.h>
#undef CONFIG_DEBUG_LIST
#include <linux/export.h>
#include <linux/init.h>
#include <linux/module.h>
#undef EXPORT_SYMBOL
#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL(symbol)
#define EXPORT_SYMBOL_GPL(symbol)
#undef __init
#undef __exit
#define __init
#define __exit
#undef module_init
#undef module_exit
#define module_init(f)	int bench_##f(void); int bench_##f(void) { return f(); }
#define module_exit(f)	void bench_##f(void); void bench_##f(void) { f(); }
#undef MODULE_DESCRIPTION
#undef MODULE_LICENSE
#define MODULE_DESCRIPTION(text)
#define MODULE_LICENSE(text)

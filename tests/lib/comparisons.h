/* SPDX-License-Identifier: GPL-2.0-only */
/* How often names were compared: for a test that is linked with --wrap=strcmp. */
#ifndef COMPARISONS_H
#define COMPARISONS_H

#include <stdatomic.h>

static atomic_ulong comparisons;	/* by all threads */

int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);

int __wrap_strcmp(const char *a, const char *b)
{
	comparisons++;
	return __real_strcmp(a, b);
}

#endif

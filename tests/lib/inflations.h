/* SPDX-License-Identifier: GPL-2.0-only */
/* How often an archive was inflated: for a test that is linked with --wrap=inflateInit2_. */
#ifndef INFLATIONS_H
#define INFLATIONS_H

static unsigned int inflations;

int __real_inflateInit2_(void *z, int bits, const char *version, int size);
int __wrap_inflateInit2_(void *z, int bits, const char *version, int size);

int __wrap_inflateInit2_(void *z, int bits, const char *version, int size)
{
	inflations++;
	return __real_inflateInit2_(z, bits, version, size);
}

#endif

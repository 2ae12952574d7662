// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Loading: a parsed NEFF into device memory (docs/loading.md).
 *
 * First a plan (load.h): programs are looked through for the transfers they trigger,
 * variables and rings get their place.  Then memory, and with it addresses; then
 * descriptors, constants and programs are written.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader.h"

int __attribute__((format(printf, 4, 5)))
load_fail(struct loader *l, enum neuron_error_kind kind, int ret, const char *fmt, ...)
{
	va_list ap;

	if (l->error->kind == NEURON_ERROR_NONE) {
		l->error->kind = kind;
		va_start(ap, fmt);
		vsnprintf(l->error->text, sizeof(l->error->text), fmt, ap);
		va_end(ap);
		neuron_neff_printable(l->error->text);
	}
	return ret;
}

int load_no_memory(struct loader *l)
{
	return load_fail(l, NEURON_ERROR_MEMORY, -ENOMEM, "out of host memory");
}

int load_device_error(struct loader *l, const char *what, int ret)
{
	if (ret == -ENOMEM)
		return load_fail(l, NEURON_ERROR_MEMORY, ret, "%s: out of memory", what);
	return load_fail(l, NEURON_ERROR_DEVICE, ret, "%s: %s", what, strerror(-ret));
}

void __attribute__((format(printf, 2, 3)))
load_obstacle(struct loader *l, const char *fmt, ...)
{
	struct neuron_model *m = l->model;
	char *text = m->obstacles[m->nr_obstacles];
	va_list ap;

	if (m->nr_obstacles == NEURON_MAX_OBSTACLES)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(m->obstacles[0]), fmt, ap);
	va_end(ap);
	neuron_neff_printable(text);
	m->nr_obstacles++;
}

/* Room for one more element of an array that doubles. */
int load_grow(void **array, size_t nr, size_t *max, size_t size)
{
	size_t more = *max ? *max * 2 : 16;
	void *p;

	if (nr < *max)
		return 0;
	p = reallocarray(*array, more, size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*max = more;
	return 0;
}

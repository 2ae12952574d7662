// SPDX-License-Identifier: LGPL-2.1-or-later
/* Errors and obstacles in words, without what could forge a line (error.h). */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../device/opts.h"
#include "error.h"
#include <neuron/neff.h>

int error_note(struct neuron_error *e, int ret, const char *fmt, ...)
{
	va_list ap;

	if (e->kind != NEURON_ERROR_NONE)
		return ret;
	e->kind = ret == -EINVAL ? NEURON_ERROR_NEFF_INVALID :
		  ret == -E2BIG ? NEURON_ERROR_LIMIT :
		  ret == -ERANGE ? NEURON_ERROR_CORES :
		  ret == -ENOMEM ? NEURON_ERROR_MEMORY : NEURON_ERROR_NEFF_UNSUPPORTED;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	neuron_neff_printable(e->text);
	return ret;
}

int error_no_memory(struct neuron_error *e)
{
	return error_note(e, -ENOMEM, "out of host memory");
}

int error_tell(struct neuron_error *theirs, struct neuron_error *e, int ret)
{
	if (ret == -ENOMEM)
		error_no_memory(e);
	else if (!e->text[0])
		snprintf(e->text, sizeof(e->text), "%s", strerror(-ret));
	result_copy(theirs, e, sizeof(*e));
	return ret;
}

int error_device(struct neuron_error *e, const char *what, int ret)
{
	bool first = e->kind == NEURON_ERROR_NONE;

	error_note(e, ret, "%s: %s", what, ret == -ENOMEM ? "out of memory" : strerror(-ret));
	if (first && ret != -ENOMEM)
		e->kind = NEURON_ERROR_DEVICE;
	return ret;
}

void obstacle_add(struct obstacles *o, const char *fmt, ...)
{
	va_list ap;

	if (o->nr == NEURON_MAX_OBSTACLES)
		return;
	va_start(ap, fmt);
	vsnprintf(o->text[o->nr], sizeof(o->text[0]), fmt, ap);
	va_end(ap);
	neuron_neff_printable(o->text[o->nr++]);
}

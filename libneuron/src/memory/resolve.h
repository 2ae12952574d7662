/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of addresses, for as long as a model is loaded, and for some time afterwards. */
#ifndef NEURON_LIB_RESOLVE_H
#define NEURON_LIB_RESOLVE_H

#include "../device/device.h"
#include "../device/symbols.h"

/* @names, of @size bytes, begins with that of the model.  NULL without memory. */
struct symbols *symbols_add(struct neuron_device *device, uint32_t nc, const struct symbol *symbol,
			    size_t count, const char *names, size_t size);
/* Its memory is free now.  The last ones are kept, not longer than the device.  NULL is allowed. */
void symbols_retire(struct neuron_device *device, struct symbols *symbols);

#endif

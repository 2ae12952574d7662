// SPDX-License-Identifier: LGPL-2.1-or-later
/* What lies where in the memory of a model that was loaded, for neuron_address_resolve(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../memory/resolve.h"
#include "loader.h"

struct collection {
	FILE *names;
	struct symbol *list;
	size_t count, max;
	bool failed;
};

static void add(struct collection *c, uint64_t address, uint64_t bytes, const char *format,
		const char *name)
{
	char text[320];

	if (array_grow((void **)&c->list, c->count, &c->max, sizeof(*c->list))) {
		c->failed = true;
		return;
	}
	c->list[c->count++] = (struct symbol){ address, bytes, (size_t)ftell(c->names) };
	snprintf(text, sizeof(text), format, name);
	neuron_neff_printable(text);
	fwrite(text, 1, strlen(text) + 1, c->names);
}

static void add_rings(struct collection *c, const struct neuron_model *m)
{
	for (size_t i = 0; i < m->nr_rings; i++) {
		const struct ring *ring = &m->rings[i];
		const char *queue = m->labels && i >= m->nr_fetch ? m->labels->rings[i].name : NULL;

		if (!ring->tx)
			continue;
		add(c, neuron_mem_address(ring->tx), neuron_mem_bytes(ring->tx),
		    "tx ring of %.255s", queue ? queue : "instructions");
		add(c, neuron_mem_address(ring->rx), neuron_mem_bytes(ring->rx),
		    "rx ring of %.255s", queue ? queue : "instructions");
	}
}

int load_symbols(struct loader *l)
{
	struct collection c = { 0 };
	char *names = NULL;
	size_t size = 0;

	c.names = open_memstream(&names, &size);
	if (!c.names)
		return error_no_memory(l->error);
	/* The model's name is at the start, and no symbol's. */
	add(&c, 0, 0, "%s", l->model->name);
	for (size_t i = 0; i < l->sg->nr_vars; i++)
		if (l->places[i].address)
			add(&c, l->places[i].address, l->sg->vars[i].size, "%.255s",
			    l->sg->vars[i].name);
	for (uint32_t i = 0; i < NR_ENGINES; i++)
		if (l->programs.code_size[i])
			add(&c, l->code[i].address, l->programs.code_size[i], "program of %s",
			    isa_engine_name(i));
	add_rings(&c, l->model);
	if (!fclose(c.names) && !c.failed)
		l->model->symbols = symbols_add(l->scratchpad->device, l->nc, c.list, c.count, names,
						size);
	free(names);
	free(c.list);
	return l->model->symbols ? 0 : error_no_memory(l->error);
}

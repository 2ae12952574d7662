/* SPDX-License-Identifier: GPL-2.0-only */
/* The engines of a core, which execute its instructions. */
#ifndef EMU_ENGINE_H
#define EMU_ENGINE_H

#include <linux/slab.h>

#include "rows.h"
#include "window.h"

/**
 * struct emu_engine - one of the engines of a core
 * @window: window of its core, with the FIFO that its instructions come from
 * @index: enum neuron_isa_engine
 * @inst: the current one (worker)
 * @loaded: @inst is valid and checked (worker)
 * @computing: @exec is in the middle of @inst (worker)
 * @started: it has seen a prologue (worker)
 * @failed: stopped by an error until reset (worker)
 * @done: instructions completed since start (worker)
 * @exec: state of a compute instruction (worker)
 * @rows: for matrix products on vector registers, made for the first one (worker)
 *
 * "Worker": only emu_window.work touches it, or a reset that has cancelled it.
 */
struct emu_engine {
	struct emu_window *window;
	u32 index;
	struct neuron_isa_inst inst;
	bool loaded;
	bool computing;
	bool started;
	bool failed;
	u32 done;
	struct emu_exec exec;
	struct emu_rows *rows;
};

/**
 * emu_engine_new() - make an engine, in its initial state
 * @w: window of its core
 * @index: enum neuron_isa_engine
 *
 * Context: may sleep.
 * Return: the engine, for emu_engine_free(); NULL: no memory.
 */
static inline struct emu_engine *emu_engine_new(struct emu_window *w, u32 index)
{
	struct emu_engine *eng = kzalloc(sizeof(*eng),
					 GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);

	if (eng) {
		eng->window = w;
		eng->index = index;
	}
	return eng;
}

/**
 * emu_engine_free() - give an engine back
 * @eng: at rest, or NULL
 *
 * Context: may sleep.
 */
static inline void emu_engine_free(struct emu_engine *eng)
{
	if (eng)
		emu_rows_free(eng->rows);
	kfree(eng);
}

bool emu_engine_turn(struct emu_engine *eng, u32 nr, u64 ns);

#endif /* EMU_ENGINE_H */

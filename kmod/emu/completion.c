// SPDX-License-Identifier: GPL-2.0-only
/*
 * When DMA work is done that a doorbell starts: the names of the ways.
 */
#include <linux/string.h>

#include "completion.h"

static const char * const emu_completions[] = {
	[EMU_COMPLETE_WORKER] = "worker",
	[EMU_COMPLETE_INLINE] = "inline",
	[EMU_COMPLETE_TIMER] = "timer",
};

/**
 * emu_find_completion() - way of completion of a name
 * @name: text, may end with a newline
 *
 * Return: enum emu_completion, -EINVAL.
 */
int emu_find_completion(const char *name)
{
	return sysfs_match_string(emu_completions, name);
}

/**
 * emu_completion_name() - name of a way of completion
 * @c: the way
 */
const char *emu_completion_name(enum emu_completion c)
{
	return emu_completions[c];
}

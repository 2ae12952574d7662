// SPDX-License-Identifier: GPL-2.0-only
#include "completion.h"

const char * const emu_completion_names[EMU_NR_COMPLETIONS] = {
	[EMU_COMPLETE_WORKER] = "worker",
	[EMU_COMPLETE_INLINE] = "inline",
	[EMU_COMPLETE_TIMER] = "timer",
};

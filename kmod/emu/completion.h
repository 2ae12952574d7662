/* SPDX-License-Identifier: GPL-2.0-only */
/* When DMA work is done. */
#ifndef EMU_COMPLETION_H
#define EMU_COMPLETION_H

#define EMU_COMPLETION_NSEC	10000	/* latency unless told otherwise */

/* When DMA work that a doorbell starts is done. */
enum emu_completion {
	EMU_COMPLETE_WORKER,	/* soon, in a work item */
	EMU_COMPLETE_INLINE,	/* before the doorbell returns */
	EMU_COMPLETE_TIMER,	/* in a work item, after a latency */
	EMU_NR_COMPLETIONS
};

extern const char * const emu_completion_names[EMU_NR_COMPLETIONS];

#endif /* EMU_COMPLETION_H */

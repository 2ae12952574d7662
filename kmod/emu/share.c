// SPDX-License-Identifier: GPL-2.0-only
/*
 * Long copies, which the processors of the host share.
 *
 * The caller and some work items take one piece after the other.  When the caller finds none
 * left, it takes back the work items that nobody began and waits for the others: none of them
 * touches the memory after that.
 */
#include <linux/cpumask.h>
#include <linux/sched.h>
#include <linux/sizes.h>

#include "mem.h"
#include "share.h"

/* As many pages as emu_mem_copy() looks up at a time. */
#define EMU_SHARE_PIECE		SZ_64K

/* Bytes for each processor, below which waking it takes longer than it helps. */
#define EMU_SHARE_MIN		SZ_256K

static void emu_share_run(struct emu_share *share)
{
	u64 off;
	int err;

	for (;;) {
		off = (u64)(atomic_inc_return(&share->next) - 1) * EMU_SHARE_PIECE;
		if (off >= share->len || READ_ONCE(share->err))
			return;
		err = emu_mem_copy(share->ed, share->to, off, share->from, off,
				   min_t(u64, share->len - off, EMU_SHARE_PIECE));
		if (err)
			WRITE_ONCE(share->err, err);
		cond_resched();
	}
}

static void emu_share_work(struct work_struct *work)
{
	emu_share_run(container_of(work, struct emu_sharer, work)->share);
}

/**
 * emu_share_init() - prepare copies, one at a time
 * @share: to be prepared
 * @ed: device
 */
void emu_share_init(struct emu_share *share, struct emu_device *ed)
{
	u32 i;

	share->ed = ed;
	for (i = 0; i < EMU_SHARE_HELPERS; i++) {
		INIT_WORK(&share->helper[i].work, emu_share_work);
		share->helper[i].share = share;
	}
}

/**
 * emu_share_copy() - copy between pinned memories, which do not overlap
 * @share: no other copy is under way
 * @to: destination
 * @from: source
 * @len: bytes, all inside both
 *
 * Context: may sleep.
 * Return: as emu_mem_copy().
 */
int emu_share_copy(struct emu_share *share, const struct neuron_pin *to,
		   const struct neuron_pin *from, u32 len)
{
	u32 helpers = min3(len / EMU_SHARE_MIN, num_online_cpus() - 1, (u32)EMU_SHARE_HELPERS), i;

	/* A worker may belong to a queue that must not wait for this one. */
	if (current->flags & PF_WQ_WORKER)
		helpers = 0;
	share->to = to;
	share->from = from;
	share->len = len;
	share->err = 0;
	atomic_set(&share->next, 0);
	for (i = 0; i < helpers; i++)
		queue_work(share->ed->wq, &share->helper[i].work);
	emu_share_run(share);
	for (i = 0; i < helpers; i++)
		cancel_work_sync(&share->helper[i].work);
	return share->err;
}

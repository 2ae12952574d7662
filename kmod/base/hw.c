// SPDX-License-Identifier: GPL-2.0-only
/*
 * The operations of a device as the rest of neuron.ko calls them: as long as
 * the device is there, its own; afterwards an error.  So a caller of nd->ops need not
 * know whether the device was just pulled out.
 *
 * Removal has two steps.  First the device is gone: nothing new starts.  Then everything
 * that runs is stopped, and from then on the device is dead: nothing calls it at all.  In
 * between, the teardown of a process can still stop what the process owns.
 */
#include "client.h"
#include "device.h"
#include "hw.h"

/**
 * neuron_device_enter() - keep a device from being removed
 * @nd: device
 * @idx: for neuron_device_exit()
 *
 * neuron_device_del() waits for neuron_device_exit(), so nothing in between may depend on
 * user space, such as a page fault.
 *
 * Context: may be nested; may sleep afterwards.
 * Return: false the device is gone.
 */
bool neuron_device_enter(struct neuron_device *nd, int *idx)
{
	*idx = srcu_read_lock(&nd->users);
	if (!neuron_device_gone(nd)) {
		/* Sparse knows no conditional lock. */
		__release(&nd->users);
		return true;
	}
	srcu_read_unlock(&nd->users, *idx);
	return false;
}

/**
 * neuron_device_exit() - allow the removal of the device again
 * @nd: device
 * @idx: from neuron_device_enter()
 */
void neuron_device_exit(struct neuron_device *nd, int idx)
{
	srcu_read_unlock(&nd->users, idx);
}

/* For operations that stop something. */
static bool neuron_hw_enter_stop(struct neuron_device *nd, int *idx)
{
	*idx = srcu_read_lock(&nd->users);
	if (!READ_ONCE(nd->dead)) {
		__release(&nd->users);
		return true;
	}
	srcu_read_unlock(&nd->users, *idx);
	return false;
}

static int neuron_hw_reg_read(struct neuron_device *nd, enum neuron_block block, u32 index,
			      u32 off, u32 *val)
{
	int idx, err = -ENODEV;

	if (neuron_device_enter(nd, &idx)) {
		err = nd->desc.ops->reg_read(nd, block, index, off, val);
		neuron_device_exit(nd, idx);
	}
	return err;
}

static int neuron_hw_reg_write(struct neuron_device *nd, enum neuron_block block, u32 index,
			       u32 off, u32 val)
{
	int idx, err = -ENODEV;

	if (neuron_device_enter(nd, &idx)) {
		err = nd->desc.ops->reg_write(nd, block, index, off, val);
		neuron_device_exit(nd, idx);
	}
	return err;
}

static int neuron_hw_queue_start(struct neuron_device *nd, u32 eng, u32 q,
				 const struct neuron_queue_setup *setup)
{
	int idx, err = -ENODEV;

	if (neuron_device_enter(nd, &idx)) {
		err = nd->desc.ops->queue_start(nd, eng, q, setup);
		neuron_device_exit(nd, idx);
	}
	return err;
}

static int neuron_hw_queue_stop(struct neuron_device *nd, u32 eng, u32 q)
{
	int idx, err = 0;

	/* A dead device makes no access. */
	if (neuron_hw_enter_stop(nd, &idx)) {
		err = nd->desc.ops->queue_stop(nd, eng, q);
		neuron_device_exit(nd, idx);
	}
	return err;
}

static void neuron_hw_queue_abort(struct neuron_device *nd, u32 eng, u32 q)
{
	const struct neuron_hw_ops *ops = nd->desc.ops;
	int idx;

	if (!neuron_hw_enter_stop(nd, &idx))
		return;
	if (ops->queue_abort)
		ops->queue_abort(nd, eng, q);
	else
		ops->queue_stop(nd, eng, q);
	neuron_device_exit(nd, idx);
}

static int neuron_hw_queue_ring(struct neuron_device *nd, u32 eng, u32 q, u32 count)
{
	const struct neuron_hw_ops *ops = nd->desc.ops;
	int idx, err = -ENODEV;

	if (!neuron_device_enter(nd, &idx))
		return err;
	if (ops->queue_ring)
		err = ops->queue_ring(nd, eng, q, count);
	else
		err = ops->reg_write(nd, NEURON_BLOCK_DMA, eng,
				     NEURON_DMA_RX(q) + NEURON_DMA_Q_TAIL_INC, count) ?:
		      ops->reg_write(nd, NEURON_BLOCK_DMA, eng,
				     NEURON_DMA_TX(q) + NEURON_DMA_Q_TAIL_INC, count);
	neuron_device_exit(nd, idx);
	return err;
}

static bool neuron_hw_queue_poll(struct neuron_device *nd, u32 eng, u32 q)
{
	bool more = nd->desc.ops->queue_poll;
	int idx;

	/* Enter for each piece of the work, so that removal waits for one piece only. */
	while (more && neuron_device_enter(nd, &idx)) {
		more = nd->desc.ops->queue_poll(nd, eng, q);
		neuron_device_exit(nd, idx);
		cond_resched();
	}
	return false;
}

static bool neuron_hw_queue_rw(struct neuron_device *nd, u32 eng, u32 q, u64 addr, void *buf,
			       u32 len, bool write)
{
	bool done = false;
	int idx;

	if (nd->desc.ops->queue_rw && neuron_device_enter(nd, &idx)) {
		done = nd->desc.ops->queue_rw(nd, eng, q, addr, buf, len, write);
		neuron_device_exit(nd, idx);
	}
	return done;
}

static void neuron_hw_core_bind(struct neuron_device *nd, u32 core, struct neuron_space *space)
{
	int idx;

	if (space ? neuron_device_enter(nd, &idx) : neuron_hw_enter_stop(nd, &idx)) {
		if (nd->desc.ops->core_bind)
			nd->desc.ops->core_bind(nd, core, space);
		neuron_device_exit(nd, idx);
	}
}

static int neuron_hw_core_reset_begin(struct neuron_device *nd, unsigned long cores)
{
	int idx, err = -ENODEV;

	if (neuron_hw_enter_stop(nd, &idx)) {
		err = nd->desc.ops->core_reset_begin(nd, cores);
		neuron_device_exit(nd, idx);
	}
	return err;
}

static int neuron_hw_core_reset_poll(struct neuron_device *nd, unsigned long cores)
{
	int idx, err = -ENODEV;

	if (neuron_hw_enter_stop(nd, &idx)) {
		err = nd->desc.ops->core_reset_poll(nd, cores);
		neuron_device_exit(nd, idx);
	}
	return err;
}

static void neuron_hw_flush(struct neuron_device *nd)
{
	int idx;

	if (neuron_hw_enter_stop(nd, &idx)) {
		if (nd->desc.ops->flush)
			nd->desc.ops->flush(nd);
		neuron_device_exit(nd, idx);
	}
}

static void neuron_hw_stop(struct neuron_device *nd)
{
	int idx;

	if (neuron_hw_enter_stop(nd, &idx)) {
		nd->desc.ops->stop(nd);
		neuron_device_exit(nd, idx);
	}
}

static bool neuron_hw_hbm_release(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	bool clear = false;
	int idx;

	/* An export may outlive the backend's module, and so its table. */
	if (neuron_device_enter(nd, &idx)) {
		if (nd->desc.ops->hbm_release)
			clear = nd->desc.ops->hbm_release(nd, hbm, off, len);
		neuron_device_exit(nd, idx);
	}
	return clear;
}

static int neuron_hw_hbm_clear(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	int idx, err = -ENODEV;

	if (neuron_device_enter(nd, &idx)) {
		err = nd->desc.ops->hbm_clear(nd, hbm, off, len);
		neuron_device_exit(nd, idx);
	}
	return err;
}

static int neuron_hw_hbm_pfn(struct neuron_device *nd, u32 hbm, u64 off, unsigned long *pfn)
{
	int idx, err = -ENODEV;

	if (neuron_device_enter(nd, &idx)) {
		err = nd->desc.ops->hbm_pfn(nd, hbm, off, pfn);
		neuron_device_exit(nd, idx);
	}
	return err;
}

static int neuron_hw_peer_dma(struct neuron_device *nd, struct device *peer)
{
	int idx, err = -ENODEV;

	if (neuron_device_enter(nd, &idx)) {
		err = nd->desc.ops->peer_dma ? nd->desc.ops->peer_dma(nd, peer) : -EOPNOTSUPP;
		neuron_device_exit(nd, idx);
	}
	return err;
}

static int neuron_hw_core_pfn(struct neuron_device *nd, u32 core, u64 off, unsigned long *pfn)
{
	int idx, err = -ENODEV;

	if (neuron_device_enter(nd, &idx)) {
		err = nd->desc.ops->core_pfn ? nd->desc.ops->core_pfn(nd, core, off, pfn) : -ENXIO;
		neuron_device_exit(nd, idx);
	}
	return err;
}

static int neuron_hw_ecc_count(struct neuron_device *nd, enum neuron_event event, u64 *count)
{
	int idx, err = -ENODEV;

	if (neuron_device_enter(nd, &idx)) {
		err = nd->desc.ops->ecc_count ? nd->desc.ops->ecc_count(nd, event, count) :
						-EOPNOTSUPP;
		neuron_device_exit(nd, idx);
	}
	return err;
}

static int neuron_hw_power(struct neuron_device *nd, struct neuron_power *power)
{
	int idx, err = -ENODEV;

	if (neuron_device_enter(nd, &idx)) {
		err = nd->desc.ops->power ? nd->desc.ops->power(nd, power) : -EOPNOTSUPP;
		neuron_device_exit(nd, idx);
	}
	return err;
}

static int neuron_hw_metric(struct neuron_device *nd, const u32 *words)
{
	int idx, err = -ENODEV;

	if (neuron_device_enter(nd, &idx)) {
		err = nd->desc.ops->metric ? nd->desc.ops->metric(nd, words) : 0;
		neuron_device_exit(nd, idx);
	}
	return err;
}

const struct neuron_hw_ops neuron_hw_ops = {
	.reg_read = neuron_hw_reg_read,
	.reg_write = neuron_hw_reg_write,
	.queue_start = neuron_hw_queue_start,
	.queue_stop = neuron_hw_queue_stop,
	.queue_abort = neuron_hw_queue_abort,
	.queue_ring = neuron_hw_queue_ring,
	.queue_poll = neuron_hw_queue_poll,
	.queue_rw = neuron_hw_queue_rw,
	.core_bind = neuron_hw_core_bind,
	.core_reset_begin = neuron_hw_core_reset_begin,
	.core_reset_poll = neuron_hw_core_reset_poll,
	.flush = neuron_hw_flush,
	.stop = neuron_hw_stop,
	.hbm_release = neuron_hw_hbm_release,
	.hbm_clear = neuron_hw_hbm_clear,
	.hbm_pfn = neuron_hw_hbm_pfn,
	.peer_dma = neuron_hw_peer_dma,
	.core_pfn = neuron_hw_core_pfn,
	.ecc_count = neuron_hw_ecc_count,
	.power = neuron_hw_power,
	.metric = neuron_hw_metric,
};

/**
 * neuron_hw_synchronize() - wait for all operations that began before
 * @nd: device
 *
 * If device.gone was set before, only operations that stop something can still run.  If
 * device.dead was set before, none can.
 *
 * Context: may sleep.
 */
void neuron_hw_synchronize(struct neuron_device *nd)
{
	synchronize_srcu(&nd->users);
}

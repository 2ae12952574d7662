// SPDX-License-Identifier: GPL-2.0-only
/*
 * Access to the windows of cores: single registers, by BAR offset (uapi/FACTS.md 6)
 * or device address, and blocks by DMA.  All other registers of a device are out of
 * reach, because the driver checks what is in rings and who may start them.
 */
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/core.h"
#include "../base/isolation.h"
#include "../dma/copy.h"
#include "../mem/space.h"
#include "reg_ioctl.h"

#define NEURON_BAR_MAX_COUNT	100	/* uapi/FACTS.md 1 */
#define NEURON_COUNTERS_MAX	8190	/* uapi/FACTS.md 1 */

/* BAR in which the windows of cores are (uapi/FACTS.md 6). */
static u32 neuron_cores_bar(struct neuron_device *nd)
{
	return nd->geo->arch == NEURON_ARCH_V1 ? 2 : 0;
}

/* Index of that BAR in struct neuron_ioctl_device_info: BAR 0 is first, then the other one. */
u32 neuron_cores_bar_entry(struct neuron_device *nd)
{
	return neuron_cores_bar(nd) ? 1 : 0;
}

/* Offset of the first core's window in that BAR; the others follow it. */
static u64 neuron_bar_cores(struct neuron_device *nd)
{
	return nd->geo->arch >= NEURON_ARCH_V3 ? 0xd0000000 : 0;
}

u64 neuron_bar_size(struct neuron_device *nd)
{
	return neuron_bar_cores(nd) + nd->geo->nr_cores * nd->geo->tpb_size;
}

/**
 * struct neuron_reg - a register of a core
 * @core: core number
 * @off: in its window
 */
struct neuron_reg {
	u32 core;
	u32 off;
};

static int neuron_reg_of_bar(struct neuron_device *nd, u64 addr, struct neuron_reg *reg)
{
	u64 off = addr - NEURON_BAR_COOKIE(neuron_cores_bar_entry(nd)) - neuron_bar_cores(nd);

	/* An address below the first window wraps to a large offset. */
	if (off >= nd->geo->nr_cores * nd->geo->tpb_size || off % 4)
		return -EINVAL;
	reg->core = array_index_nospec((u32)div64_u64(off, nd->geo->tpb_size), nd->geo->nr_cores);
	reg->off = off - reg->core * nd->geo->tpb_size;
	return 0;
}

static int neuron_reg_of_address(struct neuron_device *nd, u64 addr, struct neuron_reg *reg)
{
	u32 core = neuron_space_core(nd, addr, sizeof(u32));

	if (core == nd->geo->nr_cores || addr % sizeof(u32))
		return -EINVAL;
	reg->core = core;
	reg->off = addr - nd->geo->tpb_base[core];
	return 0;
}

/**
 * struct neuron_bar_access - registers of one call
 * @reg: the registers
 * @data: their values
 */
struct neuron_bar_access {
	struct neuron_reg reg[NEURON_BAR_MAX_COUNT];
	u32 data[NEURON_BAR_MAX_COUNT];
};

/* All addresses are checked before the first access. */
static int neuron_bar_prepare(struct neuron_device *nd, const struct neuron_ioctl_bar_rw *a,
			      struct neuron_bar_access *access, bool write,
			      unsigned long *cores)
{
	const u64 __user *uaddr = (const u64 __user *)a->address;
	/* On v1 words are written one behind the other, from one address. */
	bool row = write && nd->geo->arch == NEURON_ARCH_V1;
	u64 addr;
	u32 i;
	int err;

	*cores = 0;
	for (i = 0; i < a->count; i++) {
		if (row && i)
			addr += sizeof(u32);
		else if (get_user(addr, &uaddr[i]))
			return -EFAULT;
		err = neuron_reg_of_bar(nd, addr, &access->reg[i]);
		if (err)
			return err;
		if (write && !neuron_isolation_window(nd, access->reg[i].off, sizeof(u32))) {
			neuron_isolation_refused(nd, "to write a register of a core");
			return -EPERM;
		}
		__set_bit(access->reg[i].core, cores);
	}
	return 0;
}

static int neuron_bar_rw(struct neuron_call *call, bool write)
{
	const struct neuron_ioctl_bar_rw *a = call->arg;
	void __user *udata = (void __user *)a->data;
	struct neuron_client *client = call->client;
	struct neuron_device *nd = call->nd;
	struct neuron_bar_access *access;
	unsigned long cores;
	u32 i;
	int err;

	if (a->bar != neuron_cores_bar(nd) || !a->count || a->count > NEURON_BAR_MAX_COUNT)
		return -EINVAL;
	access = kmalloc(sizeof(*access), GFP_KERNEL_ACCOUNT);
	if (!access)
		return -ENOMEM;
	err = 0;
	if (write && copy_from_user(access->data, udata, a->count * sizeof(u32)))
		err = -EFAULT;
	if (!err)
		err = neuron_bar_prepare(nd, a, access, write, &cores);
	if (!err && write)
		err = neuron_cores_acquire(nd, cores, client);
	for (i = 0; i < a->count && !err; i++) {
		struct neuron_reg *reg = &access->reg[i];

		err = write ? neuron_core_write(nd, reg->core, client, reg->off,
						access->data[i]) :
			      neuron_core_read(nd, reg->core, client, reg->off,
					       &access->data[i]);
		call->begun |= write && !err;
	}
	if (!err && !write && copy_to_user(udata, access->data, a->count * sizeof(u32)))
		err = -EFAULT;
	kfree(access);
	return err;
}

int neuron_do_bar_read(struct neuron_call *call)
{
	return neuron_bar_rw(call, false);
}

int neuron_do_bar_write(struct neuron_call *call)
{
	return neuron_bar_rw(call, true);
}

/* Each value replaces its address in @addr. */
static int neuron_counters_read(struct neuron_client *client, u64 *addr, u32 count)
{
	u32 *val = (u32 *)addr;
	struct neuron_reg reg;
	u32 i;
	int err;

	for (i = 0; i < count; i++) {
		err = neuron_reg_of_address(client->nd, addr[i], &reg);
		if (err)
			return err;
	}
	for (i = 0; i < count; i++) {
		neuron_reg_of_address(client->nd, addr[i], &reg);
		err = neuron_core_read(client->nd, reg.core, client, reg.off, &val[i]);
		if (err)
			return err;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

int neuron_do_read_hw_counters(struct neuron_call *call)
{
	struct neuron_ioctl_read_hw_counters *a = call->arg;
	u64 *addr;
	int err;

	if (!a->count || a->count > NEURON_COUNTERS_MAX)
		return -EINVAL;
	addr = vmemdup_user((void __user *)a->address, a->count * sizeof(*addr));
	if (IS_ERR(addr))
		return PTR_ERR(addr);
	err = neuron_counters_read(call->client, addr, a->count);
	if (!err && copy_to_user((void __user *)a->data, addr, a->count * sizeof(u32)))
		err = -EFAULT;
	kvfree(addr);
	return err;
}

int neuron_do_post_metric(struct neuron_call *call)
{
	struct neuron_ioctl_post_metric *a = call->arg;
	u32 words[NEURON_HW_METRIC_BYTES / sizeof(u32)] = { };

	if (a->data_size > sizeof(words))
		return -E2BIG;
	if (!a->data_size)
		return -EINVAL;
	if (copy_from_user(words, (void __user *)a->data, a->data_size))
		return -EFAULT;
	return call->nd->ops->metric(call->nd, words);
}

static int neuron_program_engine(struct neuron_client *client, u32 nc, u64 dst, void __user *buf,
				 u64 size, u64 off)
{
	struct neuron_device *nd = client->nd;
	u64 start, end, from;
	u32 core;
	int err;

	if (!size || nc >= nd->geo->nr_cores)
		return -EINVAL;
	/* The offset counts for both sides (uapi/FACTS.md 2). */
	if (check_add_overflow(dst, off, &start) || check_add_overflow(start, size, &end) ||
	    check_add_overflow((u64)(unsigned long)buf, off, &from))
		return -EOVERFLOW;
	core = neuron_space_core(nd, start, size);
	if (core == nd->geo->nr_cores)
		return -EINVAL;
	if (!neuron_isolation_window(nd, start - nd->geo->tpb_base[core], size)) {
		neuron_isolation_refused(nd, "to write registers of a core");
		return -EPERM;
	}
	if (!access_ok((void __user *)(unsigned long)from, size))
		return -EFAULT;
	err = neuron_core_acquire(nd, core, client);
	return err ?: neuron_dma_addr_user(nd, core, start, (void __user *)(unsigned long)from,
					   size, true);
}

int neuron_do_program_engine(struct neuron_call *call)
{
	struct neuron_ioctl_program_engine *a = call->arg;

	return neuron_program_engine(call->client, 0, a->dst, (void __user *)a->buffer, a->size,
				     a->offset);
}

int neuron_do_program_engine_nc(struct neuron_call *call)
{
	struct neuron_ioctl_program_engine_nc *a = call->arg;

	return neuron_program_engine(call->client, a->nc_id, a->dst, (void __user *)a->buffer,
				     a->size, a->offset);
}

int neuron_do_program_engine_nc64(struct neuron_call *call)
{
	struct neuron_ioctl_program_engine_nc64 *a = call->arg;

	return neuron_program_engine(call->client, a->nc_id, a->dst, (void __user *)a->buffer,
				     a->size, a->offset);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * What keeps the programs on a device apart.  The software device checks each access.  A
 * card does not: whoever writes its rings reaches all device memory, and host memory as far
 * as an IOMMU lets it.  So the driver checks rings when they are written (../dma/RINGS.md),
 * and which registers, unless root has said that programs are trusted.
 *
 * Instructions can make descriptors that the driver does not see.  So such a device is of one
 * domain at a time: of the programs of one user, or of one program.
 */
#include <linux/cred.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "client.h"
#include "core.h"
#include "device.h"
#include "geometry.h"
#include "isolation.h"

static const char * const neuron_isolation_names[] = {
	[NEURON_ISOLATION_DEVICE] = "device",
	[NEURON_ISOLATION_CHECKED] = "checked",
	[NEURON_ISOLATION_TRUSTED] = "trusted",
};

static enum neuron_isolation neuron_isolation = NEURON_ISOLATION_CHECKED;

static int neuron_isolation_set(const char *val, const struct kernel_param *kp)
{
	int i = sysfs_match_string(neuron_isolation_names, val);

	if (i < 0 || i == NEURON_ISOLATION_DEVICE)
		return -EINVAL;
	neuron_isolation = i;
	return 0;
}

static int neuron_isolation_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%s\n", neuron_isolation_names[neuron_isolation]);
}

static const struct kernel_param_ops neuron_isolation_ops = {
	.set = neuron_isolation_set,
	.get = neuron_isolation_get,
};
module_param_cb(isolation, &neuron_isolation_ops, NULL, 0444);
MODULE_PARM_DESC(isolation, "of devices that do not check accesses: checked (default; by the driver) or trusted (programs reach all memory)");

static const char * const neuron_domain_names[] = { "user", "process" };
static int neuron_domain_by_process;	/* index of a name */

static int neuron_domain_set(const char *val, const struct kernel_param *kp)
{
	int i = sysfs_match_string(neuron_domain_names, val);

	if (i < 0)
		return -EINVAL;
	WRITE_ONCE(neuron_domain_by_process, i);
	return 0;
}

static int neuron_domain_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%s\n", neuron_domain_names[READ_ONCE(neuron_domain_by_process)]);
}

static const struct kernel_param_ops neuron_domain_ops = {
	.set = neuron_domain_set,
	.get = neuron_domain_get,
};
module_param_cb(domain, &neuron_domain_ops, NULL, 0644);
MODULE_PARM_DESC(domain, "who shares a device that does not check accesses: programs of one user and user name space (user, default), or nobody (process)");

/**
 * neuron_isolation_init() - what keeps the programs on a device apart
 * @nd: device that is being made
 *
 * Context: any.
 */
void neuron_isolation_init(struct neuron_device *nd)
{
	nd->isolation = nd->desc.isolates ? NEURON_ISOLATION_DEVICE : neuron_isolation;
}

/**
 * neuron_isolation_name() - the same as a word
 * @nd: device
 */
const char *neuron_isolation_name(const struct neuron_device *nd)
{
	return neuron_isolation_names[nd->isolation];
}

/**
 * neuron_isolation_refused() - the driver refuses what a device would not
 * @nd: device
 * @what: what a program tried
 *
 * The kernel log says it once for each device.
 *
 * Context: any.
 */
void neuron_isolation_refused(struct neuron_device *nd, const char *what)
{
	char name[TASK_COMM_LEN];

	if (!xchg(&nd->isolation_told, true))
		dev_notice(&nd->dev, "%s tried %s: refused, because the device does not check what programs reach (isolation=trusted lets them)\n",
			   neuron_printable(get_task_comm(name, current)), what);
}

static bool neuron_domain_same(const struct neuron_device *nd)
{
	if (READ_ONCE(neuron_domain_by_process))
		return nd->domain_pid == task_tgid(current);
	return neuron_cred_same_user(nd->domain);
}

/**
 * neuron_domain_check() - may the current process share a device with those that use it?
 * @nd: device
 *
 * Context: clients_lock is held.
 * Return: 0; -EBUSY processes of another domain use it; -EAGAIN they have gone, but cores
 *	   that they used must be READY first.
 */
int neuron_domain_check(struct neuron_device *nd)
{
	char name[TASK_COMM_LEN];

	if (nd->isolation == NEURON_ISOLATION_DEVICE || !nd->domain || neuron_domain_same(nd))
		return 0;
	if (nd->nr_clients) {
		dev_notice_ratelimited(&nd->dev, "%s cannot share the device with programs of another %s: it does not check what programs reach\n",
				       neuron_printable(get_task_comm(name, current)),
				       neuron_domain_names[READ_ONCE(neuron_domain_by_process)]);
		return -EBUSY;
	}
	return neuron_cores_ready(nd) ? 0 : -EAGAIN;
}

/**
 * neuron_domain_enter() - the domain of the current process has a device
 * @nd: device
 *
 * Context: clients_lock is held.
 */
void neuron_domain_enter(struct neuron_device *nd)
{
	if (nd->isolation == NEURON_ISOLATION_DEVICE)
		return;
	neuron_domain_exit(nd);
	nd->domain = get_current_cred();
	nd->domain_pid = get_pid(task_tgid(current));
}

/**
 * neuron_domain_exit() - nobody has left anything at work on a device
 * @nd: device
 *
 * Context: clients_lock is held, or nobody uses the device any more.
 */
void neuron_domain_exit(struct neuron_device *nd)
{
	if (nd->domain)
		put_cred(nd->domain);
	put_pid(nd->domain_pid);
	nd->domain = NULL;
	nd->domain_pid = NULL;
}

/**
 * neuron_isolation_window() - may the owner of a core make accesses to a part of its window?
 * @nd: device
 * @off: from the start of the window
 * @len: bytes, not 0
 *
 * If the driver checks, not to registers that it does not know.
 *
 * Context: any.
 */
bool neuron_isolation_window(struct neuron_device *nd, u64 off, u64 len)
{
	return nd->isolation != NEURON_ISOLATION_CHECKED ||
	       neuron_geometry_window(nd->geo, off, len);
}

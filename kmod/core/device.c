// SPDX-License-Identifier: GPL-2.0-only
/* Devices, as a backend adds and removes them. */
#include <linux/kmemleak.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "../base/claim.h"
#include "../base/client.h"
#include "../base/core.h"
#include "../base/devices.h"
#include "../base/geometry.h"
#include "../base/health.h"
#include "../base/hw.h"
#include "../base/isolation.h"
#include "../base/reset.h"
#include "../dma/copy.h"
#include "../dma/nq_event.h"
#include "../dma/queue.h"
#include "../mem/bus.h"
#include "../mem/debugfs.h"
#include "../mem/failure.h"
#include "../mem/hbm.h"
#include "../mem/host.h"
#include "../mem/peer.h"
#include "../sysfs/tree.h"
#include "file.h"

static void neuron_device_forget(struct neuron_device *nd)
{
	mutex_lock(&neuron_devices_lock);
	neuron_device_set(neuron_device_index(nd), NULL);
	neuron_claims_drop_device(nd);
	mutex_unlock(&neuron_devices_lock);
}

static void neuron_device_release(struct device *dev)
{
	struct neuron_device *nd = container_of(dev, struct neuron_device, dev);
	u32 i;

	neuron_domain_exit(nd);
	if (nd->kclient)
		neuron_client_put(nd->kclient);
	for (i = 0; nd->hbm && i < nd->geo->nr_hbms; i++)
		if (nd->hbm[i].nd)
			neuron_hbm_exit(&nd->hbm[i]);
	neuron_failures_exit(nd->failures);
	mtree_destroy(&nd->host_pages);
	for (i = 0; nd->engine && i < nd->geo->nr_dma_engines; i++)
		kfree(nd->engine[i].queue);
	kvfree(nd->engine);
	for (i = 0; nd->core && i < nd->geo->nr_cores; i++) {
		kfree(nd->core[i].copy);
		kfree(nd->core[i].nq_poll);
	}
	kmemleak_free(nd->core);
	if (nd->core)
		free_pages_exact(nd->core, nd->geo->nr_cores * sizeof(*nd->core));
	kvfree(nd->hbm);
	neuron_inode_put(nd);
	neuron_minor_put(MINOR(dev->devt));
	put_device(nd->desc.parent);
	cleanup_srcu_struct(&nd->users);
	kfree(nd);
}

/* All fields that need no memory, so that neuron_device_release() works from here on. */
static void neuron_device_init(struct neuron_device *nd, const struct neuron_device_desc *desc,
			       int minor)
{
	nd->desc = *desc;
	nd->geometry = *desc->geometry;
	/* Host memory asks how it does DMA, even when the device has gone. */
	get_device(desc->parent);
	nd->geo = &nd->geometry;
	nd->ops = &neuron_hw_ops;
	neuron_isolation_init(nd);
	nd->core_clear = neuron_dma_core_clear;
	init_waitqueue_head(&nd->gone_wait);
	neuron_health_init(nd);
	nd->process_limit = NEURON_NO_LIMIT;
	spin_lock_init(&nd->failures_lock);
	mutex_init(&nd->clients_lock);
	INIT_LIST_HEAD(&nd->clients);
	mutex_init(&nd->host_lock);
	mutex_init(&nd->grow_lock);
	mutex_init(&nd->exports_lock);
	INIT_LIST_HEAD(&nd->exports);
	mt_init_flags(&nd->host_pages, MT_FLAGS_ALLOC_RANGE | MT_FLAGS_USE_RCU);

	device_initialize(&nd->dev);
	nd->dev.class = &neuron_class;
	nd->dev.devt = neuron_devt(minor);
	nd->dev.release = neuron_device_release;
	nd->dev.groups = desc->groups;
	nd->dev.id = minor;
}

static int neuron_core_init(struct neuron_device *nd, u32 i)
{
	struct neuron_core *core = &nd->core[i];

	neuron_core_reset_init(nd, i);
	core->limit = NEURON_NO_LIMIT;
	mutex_init(&core->lock);
	spin_lock_init(&core->nq_lock);
	neuron_crwl_init(&core->crwl);
	core->copy = neuron_copy_new();
	return core->copy ? 0 : -ENOMEM;
}

/* Everything that a device consists of.  neuron_device_release() frees what there is. */
static int neuron_device_build(struct neuron_device *nd)
{
	const struct neuron_geometry *geo = nd->geo;
	int err;
	u32 i;

	err = dev_set_name(&nd->dev, "neuron%d", nd->dev.id) ?: neuron_inode_get(nd);
	if (err)
		return err;
	nd->hbm = kvcalloc(geo->nr_hbms, sizeof(*nd->hbm), GFP_KERNEL);
	/* Many and large: whole pages, but no more of them, as kmalloc() would take. */
	nd->core = alloc_pages_exact(geo->nr_cores * sizeof(*nd->core), GFP_KERNEL | __GFP_ZERO);
	/* It does not look into pages by itself, and cores name what is allocated. */
	kmemleak_alloc(nd->core, geo->nr_cores * sizeof(*nd->core), 1, GFP_KERNEL);
	nd->engine = kvcalloc(geo->nr_dma_engines, sizeof(*nd->engine), GFP_KERNEL);
	nd->kclient = neuron_client_new(nd, NULL);
	if (!nd->hbm || !nd->core || !nd->engine || !nd->kclient)
		return -ENOMEM;
	for (i = 0; i < geo->nr_cores && !err; i++)
		err = neuron_core_init(nd, i);
	for (i = 0; i < geo->nr_dma_engines; i++)
		mutex_init(&nd->engine[i].lock);
	for (i = 0; i < geo->nr_hbms && !err; i++)
		err = neuron_hbm_init(nd, i);
	return err ?: neuron_bus_unused(nd);
}

/* Make a device visible: its number, its files, /dev. */
static int neuron_device_show(struct neuron_device *nd)
{
	int err;

	mutex_lock(&neuron_devices_lock);
	neuron_device_set(neuron_device_index(nd), nd);
	mutex_unlock(&neuron_devices_lock);

	/* User space hears of the device when all its files exist. */
	dev_set_uevent_suppress(&nd->dev, true);
	err = device_add(&nd->dev);
	if (err)
		goto forget;
	/*
	 * Programs look below /sys/devices/virtual/, so the parent is not that of the device
	 * model: this link is what a class device has beside that.
	 */
	if (nd->desc.parent)
		err = sysfs_create_link(&nd->dev.kobj, &nd->desc.parent->kobj, "device");
	if (!err)
		err = neuron_sysfs_add(nd);
	if (err)
		goto del;
	/*
	 * The backend's module should stay while the device is open, although the backend
	 * may delete the device. cdev_put() drops the device before the module.
	 */
	cdev_init(&nd->cdev, &neuron_fops);
	nd->cdev.owner = nd->desc.ops->owner;
	cdev_set_parent(&nd->cdev, &nd->dev.kobj);
	err = cdev_add(&nd->cdev, nd->dev.devt, 1);
	if (err)
		goto sysfs;
	neuron_debugfs_add(nd);
	dev_set_uevent_suppress(&nd->dev, false);
	kobject_uevent(&nd->dev.kobj, KOBJ_ADD);
	return 0;

sysfs:
	neuron_sysfs_del(nd);
del:
	device_del(&nd->dev);
forget:
	neuron_device_forget(nd);
	return err;
}

/* One line when it comes, one when it goes. */
static void neuron_device_say(const struct neuron_device *nd, const char *what)
{
	const struct neuron_geometry *geo = nd->geo;
	bool pci = nd->desc.parent && dev_is_pci(nd->desc.parent);
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < geo->nr_hbms; i++)
		bytes += geo->hbm[i].size;
	dev_info(&nd->dev, "%s: %s, %u cores, %llu MiB in %u HBM%s, %s%s\n", what,
		 geo->device_name, geo->nr_cores, bytes >> 20, geo->nr_hbms,
		 geo->nr_hbms == 1 ? "" : "s", pci ? "PCI " : "emulated",
		 pci ? dev_name(nd->desc.parent) : "");
}

/**
 * neuron_device_add() - make a device known
 * @desc: the device; copied, but what it points to must stay
 *
 * It can be opened before this returns.
 *
 * Context: may sleep.
 * Return: the device, to be given to neuron_device_del(); ERR_PTR(-EINVAL)
 *	   geometry, -EBUSY number taken, -ENOSPC no number left, -EADDRINUSE other
 *	   devices use memory of this one from before, -ENOMEM.
 */
struct neuron_device *neuron_device_add(const struct neuron_device_desc *desc)
{
	struct neuron_device *nd;
	int minor, err;

	if (!neuron_geometry_valid(desc->geometry) ||
	    desc->nr_neighbours > NEURON_HW_MAX_NEIGHBOURS)
		return ERR_PTR(-EINVAL);
	minor = neuron_minor_get(desc->index);
	if (minor < 0)
		return ERR_PTR(minor);
	nd = kzalloc(sizeof(*nd), GFP_KERNEL);
	if (!nd || init_srcu_struct(&nd->users)) {
		kfree(nd);
		neuron_minor_put(minor);
		return ERR_PTR(-ENOMEM);
	}
	neuron_device_init(nd, desc, minor);
	err = neuron_device_build(nd) ?: neuron_device_show(nd);
	if (err) {
		put_device(&nd->dev);
		return ERR_PTR(err);
	}
	neuron_device_say(nd, "added");
	return nd;
}
NEURON_EXPORT_SYMBOL(neuron_device_add);

/* Wake everything that waits for the device; the waiters find it gone. */
static void neuron_device_wake(struct neuron_device *nd)
{
	u32 i;

	for (i = 0; i < nd->geo->nr_cores; i++) {
		wake_up_all(&nd->core[i].copy->wait);
		wake_up_all(&nd->core[i].crwl.wait);
		neuron_nqs_wake(nd, i);
	}
	wake_up_all(&nd->gone_wait);
}

/*
 * Stop everything on a device for good.  Afterwards none of its operations runs or will
 * be called, the device makes no access, and no process sees its memory.
 */
static void neuron_device_stop(struct neuron_device *nd)
{
	WRITE_ONCE(nd->gone, true);
	neuron_device_wake(nd);
	neuron_hw_synchronize(nd);
	/* The next access faults host memory in again, but no memory of the device. */
	unmap_mapping_range(nd->inode->i_mapping, 0, 0, 1);
	neuron_peers_revoke(nd);
	neuron_bus_revoke(nd);

	nd->ops->stop(nd);
	WRITE_ONCE(nd->dead, true);
	neuron_hw_synchronize(nd);
	neuron_cores_gone(nd);
}

/**
 * neuron_device_del() - remove a device
 * @nd: from neuron_device_add(); must not be used any more
 *
 * Processes may be using it.  Their calls fail from now on with -ENODEV, and
 * those that wait return; a mapping of device memory gives SIGBUS.  The device
 * is stopped, and its operations are not called after this returns.  What the
 * processes hold in host memory stays until they close the device, and so
 * does the device's number.
 *
 * Context: may sleep.
 */
void neuron_device_del(struct neuron_device *nd)
{
	u32 i;

	neuron_device_say(nd, "removed");
	neuron_device_forget(nd);
	neuron_device_stop(nd);
	neuron_health_exit(nd);
	for (i = 0; i < nd->geo->nr_cores; i++) {
		neuron_nq_poll_exit(nd, i);
		neuron_copy_exit(nd, i);
	}
	neuron_host_detach(nd);
	cdev_del(&nd->cdev);
	neuron_debugfs_del(nd);
	neuron_sysfs_del(nd);
	device_del(&nd->dev);
	put_device(&nd->dev);
}
NEURON_EXPORT_SYMBOL(neuron_device_del);

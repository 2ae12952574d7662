// SPDX-License-Identifier: GPL-2.0-only
/* Another device that uses memory of Neuron devices; see importer.h. */
#include <linux/dma-buf.h>
#include <linux/dma-direct.h>
#include <linux/dma-fence.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/iosys-map.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../../../kmod/compat/compat.h"
#include "../../../kmod/mem/neuron_p2p.h"
#include "importer.h"

struct importer {
	struct mutex lock;
	struct dma_buf *buf;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	struct iosys_map map;
	bool vmapped;
	struct neuron_p2p_va_info *peer;
	bool from_callback;
	u32 callbacks;
	struct dma_fence *fence;
	/* Attached without pages; then @sgt and @told are under the reservation lock. */
	bool p2p, stubborn;
	u32 told;
};

static char *as;
module_param(as, charp, 0444);
MODULE_PARM_DESC(as, "PCI device that attaches memory without pages (default: none, a platform device)");

static struct platform_device *importer_pdev;
static struct device *importer_p2p_dev;
/* The memory may keep a fence after its file is closed. */
static DEFINE_SPINLOCK(importer_fence_lock);

static int importer_table(struct importer *im)
{
	struct sg_table *sgt;

	dma_resv_lock(im->buf->resv, NULL);
	sgt = dma_buf_map_attachment(im->attach, DMA_BIDIRECTIONAL);
	if (!IS_ERR(sgt))
		im->sgt = sgt;
	dma_resv_unlock(im->buf->resv);
	return PTR_ERR_OR_ZERO(sgt);
}

static int importer_map(struct importer *im, struct importer_map *result)
{
	struct scatterlist *sg;
	dma_addr_t end = 0;
	unsigned int i;
	int err;

	if (!im->attach || im->sgt)
		return -EBUSY;
	err = importer_table(im);
	if (err)
		return err;
	for_each_sgtable_dma_sg(im->sgt, sg, i) {
		result->entries++;
		result->bytes += sg_dma_len(sg);
		if (!i || sg_dma_address(sg) != end)
			result->runs++;
		end = sg_dma_address(sg) + sg_dma_len(sg);
	}
	return 0;
}

/* Under the reservation lock. */
static void importer_unmap_locked(struct importer *im)
{
	if (im->sgt)
		dma_buf_unmap_attachment(im->attach, im->sgt, DMA_BIDIRECTIONAL);
	im->sgt = NULL;
}

/* A card whose memory it is goes. */
static void importer_invalidate(struct dma_buf_attachment *attach)
{
	struct importer *im = attach->importer_priv;

	im->told++;
	if (!im->stubborn)
		importer_unmap_locked(im);
}

static const struct dma_buf_attach_ops importer_p2p_ops = {
	.allow_peer2peer = true,
	.invalidate_mappings = importer_invalidate,
};

static void importer_unmap(struct importer *im)
{
	if (!im->attach)
		return;
	dma_resv_lock(im->buf->resv, NULL);
	importer_unmap_locked(im);
	dma_resv_unlock(im->buf->resv);
}

static void importer_vunmap(struct importer *im)
{
	if (im->vmapped)
		dma_buf_vunmap_unlocked(im->buf, &im->map);
	im->vmapped = false;
}

static void importer_detach(struct importer *im)
{
	importer_unmap(im);
	importer_vunmap(im);
	if (im->stubborn && im->attach) {
		dma_resv_lock(im->buf->resv, NULL);
		dma_buf_unpin(im->attach);
		dma_resv_unlock(im->buf->resv);
	}
	if (im->attach)
		dma_buf_detach(im->buf, im->attach);
	if (im->buf)
		dma_buf_put(im->buf);
	im->attach = NULL;
	im->buf = NULL;
	im->p2p = false;
	im->stubborn = false;
}

static int importer_pin(struct importer *im)
{
	int err;

	dma_resv_lock(im->buf->resv, NULL);
	err = dma_buf_pin(im->attach);
	dma_resv_unlock(im->buf->resv);
	im->stubborn = !err;
	return err;
}

static int importer_attach(struct importer *im, int fd, bool p2p)
{
	int err;

	if (im->buf)
		return -EBUSY;
	im->buf = dma_buf_get(fd);
	if (IS_ERR(im->buf)) {
		err = PTR_ERR(im->buf);
		im->buf = NULL;
		return err;
	}
	im->p2p = p2p;
	im->told = 0;
	im->attach = p2p ? dma_buf_dynamic_attach(im->buf, importer_p2p_dev, &importer_p2p_ops,
						  im) :
			   dma_buf_attach(im->buf, &importer_pdev->dev);
	if (IS_ERR(im->attach)) {
		err = PTR_ERR(im->attach);
		im->attach = NULL;
		dma_buf_put(im->buf);
		im->buf = NULL;
		im->p2p = false;
		return err;
	}
	return 0;
}

/*
 * As a device would, by the DMA address, which is the physical one here.  A page at a time, so
 * that no user memory is touched under the reservation lock.
 */
static int importer_bus_page(struct importer *im, u64 off, void *page, u64 n, bool write)
{
	struct scatterlist *sg;
	unsigned int i;
	void *va = NULL;

	if (!im->sgt)
		return -ENXIO;
	for_each_sgtable_dma_sg(im->sgt, sg, i) {
		if (off < sg_dma_len(sg)) {
			va = memremap(dma_to_phys(importer_p2p_dev, sg_dma_address(sg)) +
				      ALIGN_DOWN(off, PAGE_SIZE), PAGE_SIZE, MEMREMAP_WC);
			break;
		}
		off -= sg_dma_len(sg);
	}
	if (!va)
		return -ENXIO;
	if (write)
		memcpy(va + offset_in_page(off), page, n);
	else
		memcpy(page, va + offset_in_page(off), n);
	memunmap(va);
	return 0;
}

static int importer_bus_rw(struct importer *im, const struct importer_rw *a)
{
	void *page = (void *)__get_free_page(GFP_KERNEL);
	u64 n, done;
	int err = page ? 0 : -ENOMEM;

	for (done = 0; done < a->len && !err; done += n) {
		void __user *buf = (void __user *)(a->buf + done);

		n = min_t(u64, PAGE_SIZE - offset_in_page(a->off + done), a->len - done);
		if (a->write && copy_from_user(page, buf, n))
			err = -EFAULT;
		if (err)
			break;
		dma_resv_lock(im->buf->resv, NULL);
		err = importer_bus_page(im, a->off + done, page, n, a->write);
		dma_resv_unlock(im->buf->resv);
		if (!err && !a->write && copy_to_user(buf, page, n))
			err = -EFAULT;
	}
	free_page((unsigned long)page);
	return err;
}

/* Where byte @off is, and how many follow it there. */
static void *importer_find(struct importer *im, u64 off, u32 via, u64 *room)
{
	struct scatterlist *sg;
	unsigned int i;

	if (via == IMPORTER_SG && im->sgt) {
		for_each_sgtable_dma_sg(im->sgt, sg, i) {
			if (off < sg_dma_len(sg)) {
				*room = sg_dma_len(sg) - off;
				return phys_to_virt(dma_to_phys(&importer_pdev->dev,
								sg_dma_address(sg))) + off;
			}
			off -= sg_dma_len(sg);
		}
	} else if (via == IMPORTER_VMAP && im->vmapped && off < im->buf->size) {
		*room = im->buf->size - off;
		return im->map.vaddr + off;
	} else if (via == IMPORTER_PEER && im->peer) {
		for (i = 0; i < im->peer->entries; i++) {
			u64 len = (u64)im->peer->page_info[i].page_count <<
				  im->peer->shift_page_size;

			if (off < len) {
				*room = len - off;
				return phys_to_virt(im->peer->page_info[i].physical_address) + off;
			}
			off -= len;
		}
	}
	return NULL;
}

static int importer_rw(struct importer *im, const struct importer_rw *a)
{
	u64 n, done, room = 0;
	void *p;

	if (im->p2p && a->via == IMPORTER_SG)
		return importer_bus_rw(im, a);
	for (done = 0; done < a->len; done += n) {
		void __user *buf = (void __user *)(a->buf + done);
		unsigned long left;

		p = importer_find(im, a->off + done, a->via, &room);
		if (!p)
			return -ENXIO;
		n = min(room, a->len - done);
		left = a->write ? copy_from_user(p, buf, n) : copy_to_user(buf, p, n);
		if (left)
			return -EFAULT;
	}
	return 0;
}

static void importer_callback(void *data)
{
	struct importer *im = data;

	im->callbacks++;
	if (im->from_callback) {
		neuron_p2p_unregister_va(im->peer);
		im->peer = NULL;
	}
}

static int importer_register(struct importer *im, struct importer_peer *a)
{
	u32 i;
	int err;

	if (im->peer)
		return -EBUSY;
	im->from_callback = a->from_callback;
	im->callbacks = 0;
	err = neuron_p2p_register_va(a->va, a->len, &im->peer, importer_callback, im);
	if (err)
		return err;
	a->shift = im->peer->shift_page_size;
	a->entries = im->peer->entries;
	a->device = im->peer->device_index;
	a->bytes = 0;
	for (i = 0; i < a->entries; i++)
		a->bytes += (u64)im->peer->page_info[i].page_count << a->shift;
	return im->peer->virtual_address == a->va && im->peer->size == a->len ? 0 : -EIO;
}

static int importer_unregister(struct importer *im)
{
	struct neuron_p2p_va_info *peer = im->peer;

	/* Its callback may be running; it does not take our lock. */
	im->peer = NULL;
	return peer ? neuron_p2p_unregister_va(peer) : -EINVAL;
}

static const char *importer_name(struct dma_fence *fence)
{
	return "importer";
}

static const struct dma_fence_ops importer_fence_ops = {
	.get_driver_name = importer_name,
	.get_timeline_name = importer_name,
};

static int importer_signal(struct importer *im)
{
	if (!im->fence)
		return -EINVAL;
	dma_fence_signal(im->fence);
	dma_fence_put(im->fence);
	im->fence = NULL;
	return 0;
}

static int importer_fence(struct importer *im, const struct importer_fence *a)
{
	struct dma_buf *buf;
	int err;

	if (im->fence)
		return -EBUSY;
	buf = dma_buf_get(a->fd);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	im->fence = kzalloc(sizeof(*im->fence), GFP_KERNEL);
	if (!im->fence) {
		dma_buf_put(buf);
		return -ENOMEM;
	}
	dma_fence_init(im->fence, &importer_fence_ops, &importer_fence_lock,
		       dma_fence_context_alloc(1), 1);
	dma_resv_lock(buf->resv, NULL);
	err = dma_resv_reserve_fences(buf->resv, 1);
	if (!err)
		dma_resv_add_fence(buf->resv, im->fence,
				   a->write ? DMA_RESV_USAGE_WRITE : DMA_RESV_USAGE_READ);
	dma_resv_unlock(buf->resv);
	dma_buf_put(buf);
	if (err)
		importer_signal(im);
	return err;
}

static long importer_locked_ioctl(struct importer *im, unsigned int cmd, void __user *uarg)
{
	union {
		struct importer_map map;
		struct importer_rw rw;
		struct importer_peer peer;
		struct importer_fence fence;
		struct importer_p2p p2p;
		s32 fd;
	} a = { };
	int err;

	if (_IOC_DIR(cmd) & _IOC_WRITE &&
	    copy_from_user(&a, uarg, min_t(size_t, _IOC_SIZE(cmd), sizeof(a))))
		return -EFAULT;
	switch (cmd) {
	case IMPORTER_ATTACH:
		return importer_attach(im, a.fd, false);
	case IMPORTER_ATTACH_P2P:
		err = importer_attach(im, a.p2p.fd, true);
		if (!err && a.p2p.stubborn) {
			err = importer_pin(im);
			if (err)
				importer_detach(im);
		}
		return err;
	case IMPORTER_TOLD:
		return put_user(im->told, (u32 __user *)uarg);
	case IMPORTER_DETACH:
		importer_detach(im);
		return 0;
	case IMPORTER_MAP:
		err = importer_map(im, &a.map);
		break;
	case IMPORTER_UNMAP:
		importer_unmap(im);
		return 0;
	case IMPORTER_VMAP:
		if (!im->buf || im->vmapped)
			return -EBUSY;
		err = dma_buf_vmap_unlocked(im->buf, &im->map);
		im->vmapped = !err;
		return err;
	case IMPORTER_VUNMAP:
		importer_vunmap(im);
		return 0;
	case IMPORTER_RW:
		return importer_rw(im, &a.rw);
	case IMPORTER_REGISTER:
		err = importer_register(im, &a.peer);
		break;
	case IMPORTER_UNREGISTER:
		return importer_unregister(im);
	case IMPORTER_CALLBACKS:
		return put_user(im->callbacks, (u32 __user *)uarg);
	case IMPORTER_SYNC:
		if (!im->buf)
			return -EBUSY;
		err = dma_buf_begin_cpu_access(im->buf, DMA_BIDIRECTIONAL);
		return err ?: dma_buf_end_cpu_access(im->buf, DMA_BIDIRECTIONAL);
	case IMPORTER_FENCE:
		return importer_fence(im, &a.fence);
	case IMPORTER_SIGNAL:
		return importer_signal(im);
	default:
		return -ENOTTY;
	}
	if (!err && copy_to_user(uarg, &a, _IOC_SIZE(cmd)))
		err = -EFAULT;
	return err;
}

static long importer_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct importer *im = file->private_data;
	long err;

	mutex_lock(&im->lock);
	err = importer_locked_ioctl(im, cmd, (void __user *)arg);
	mutex_unlock(&im->lock);
	return err;
}

static int importer_open(struct inode *inode, struct file *file)
{
	struct importer *im = kzalloc(sizeof(*im), GFP_KERNEL);

	if (!im)
		return -ENOMEM;
	mutex_init(&im->lock);
	file->private_data = im;
	return 0;
}

static int importer_release(struct inode *inode, struct file *file)
{
	struct importer *im = file->private_data;

	importer_detach(im);
	if (im->fence)
		importer_signal(im);
	if (im->peer)
		importer_unregister(im);
	kfree(im);
	return 0;
}

static const struct file_operations importer_fops = {
	.owner = THIS_MODULE,
	.open = importer_open,
	.release = importer_release,
	.unlocked_ioctl = importer_ioctl,
};

static struct miscdevice importer_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "neuron_importer",
	.fops = &importer_fops,
};

static int __init importer_init(void)
{
	int err;

	if (IS_ENABLED(CONFIG_PCI) && as) {
		importer_p2p_dev = bus_find_device_by_name(&pci_bus_type, NULL, as);
		if (!importer_p2p_dev)
			return -ENODEV;
	}
	importer_pdev = platform_device_register_simple("neuron_importer", -1, NULL, 0);
	if (IS_ERR(importer_pdev)) {
		put_device(importer_p2p_dev);
		return PTR_ERR(importer_pdev);
	}
	if (!importer_p2p_dev)
		importer_p2p_dev = get_device(&importer_pdev->dev);
	err = dma_coerce_mask_and_coherent(&importer_pdev->dev, DMA_BIT_MASK(64));
	/* No reason to cut a run. */
	dma_set_max_seg_size(&importer_pdev->dev, UINT_MAX);
	if (!err)
		err = misc_register(&importer_misc);
	if (err) {
		put_device(importer_p2p_dev);
		platform_device_unregister(importer_pdev);
	}
	return err;
}

static void __exit importer_exit(void)
{
	misc_deregister(&importer_misc);
	put_device(importer_p2p_dev);
	platform_device_unregister(importer_pdev);
}

module_init(importer_init);
module_exit(importer_exit);

MODULE_DESCRIPTION("Importer of Neuron device memory, for tests");
MODULE_AUTHOR("Neuron open driver developers");
MODULE_LICENSE("GPL");
NEURON_IMPORT_NS_DMA_BUF();

// SPDX-License-Identifier: GPL-2.0-only
/*
 * A provider of libfabric that takes memory of Neuron devices, as a network card does: it asks for a
 * dma-buf of what is registered and reaches the memory through that alone, by a mapping of its own.
 * What goes over the network is another provider's, "tcp;ofi_rxm".  Like network cards it has no
 * descriptor to wait for, and refuses what is not registered.
 *
 * libfabric loads it from FI_PROVIDER_PATH as "model".
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>

#define BELOW "tcp;ofi_rxm"

/* What was registered; its descriptor is this. */
struct region {
	struct fid_mr mr;
	uint8_t *start;		/* where the program has it */
	uint8_t *window;	/* where the dma-buf is mapped, or the same as @start */
	size_t size;
};

/* Calls of the provider below, which this one's stand before. */
static struct fi_ops_fabric fabric_ops, *fabric_below;
static struct fi_ops_domain domain_ops, *domain_below;
static struct fi_ops_tagged tagged_ops, *tagged_below;
static struct fi_ops_mr mr_ops;
static uint64_t next_key;	/* of a registration in the domain: each has one of its own */

static struct fi_info *info_below(const struct fi_info *info)
{
	struct fi_info *below = info ? fi_dupinfo(info) : fi_allocinfo();

	if (!below)
		return NULL;
	free(below->fabric_attr->prov_name);
	below->fabric_attr->prov_name = strdup(BELOW);
	below->caps &= ~FI_HMEM;
	below->domain_attr->mr_mode &= ~(FI_MR_HMEM | FI_MR_LOCAL);
	return below;
}

static int model_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			 const struct fi_info *hints, struct fi_info **info)
{
	struct fi_info *below = info_below(hints);
	bool devices = hints && hints->caps & FI_HMEM;
	int ret;

	/* It is the first that is asked for without a name; nobody gets it by chance. */
	if (!below || !hints || !hints->fabric_attr->prov_name)
		return -FI_ENODATA;
	ret = fi_getinfo(version, node, service, flags, below, info);
	fi_freeinfo(below);
	for (struct fi_info *i = ret ? NULL : *info; i; i = i->next) {
		free(i->fabric_attr->prov_name);
		i->fabric_attr->prov_name = strdup("model");
		i->domain_attr->mr_mode |= FI_MR_LOCAL | (devices ? FI_MR_HMEM : 0);
		i->caps |= devices ? FI_HMEM : 0;
	}
	return ret;
}

/* ---- memory -------------------------------------------------------------------------- */

static int region_close(struct fid *fid)
{
	struct region *r = (struct region *)fid;

	if (r->window != r->start)
		munmap(r->window, r->size);
	free(r);
	return 0;
}

static int region_map(struct region *r)
{
	void *runtime = dlopen("libnrt.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*get_dmabuf)(uint64_t va, uint64_t size, int *fd);
	int (*to_device)(void *to, const void *from, size_t size);
	uint8_t nothing = 0;
	int fd;

	if (!runtime)
		return -FI_EOPNOTSUPP;
	*(void **)&get_dmabuf = dlsym(runtime, "nrt_get_dmabuf_fd");
	*(void **)&to_device = dlsym(runtime, "nrt_memcpy_to_device");
	/* Cards have the processor copy what is short. */
	if (to_device(r->start + r->size - 1, &nothing, 1) ||
	    get_dmabuf((uintptr_t)r->start, r->size, &fd))
		return -FI_EOPNOTSUPP;
	r->window = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return r->window == MAP_FAILED ? -FI_EFAULT : 0;
}

static int model_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
			 struct fid_mr **mr)
{
	static struct fi_ops ops = { .size = sizeof(ops), .close = region_close };
	struct region *r = calloc(1, sizeof(*r));
	int ret = 0;

	(void)fid;
	(void)flags;
	if (attr->requested_key < next_key)
		ret = -FI_ENOKEY;
	if (!r || ret) {
		free(r);
		return ret ?: -FI_ENOMEM;
	}
	next_key = attr->requested_key + 1;
	r->start = r->window = attr->mr_iov[0].iov_base;
	r->size = attr->mr_iov[0].iov_len;
	r->mr.fid.fclass = FI_CLASS_MR;
	r->mr.fid.ops = &ops;
	r->mr.mem_desc = r;
	if (attr->iface == FI_HMEM_NEURON)
		ret = region_map(r);
	else if (attr->iface != FI_HMEM_SYSTEM)
		ret = -FI_EINVAL;
	if (ret)
		free(r);
	else
		*mr = &r->mr;
	return ret;
}

/* Where a message is for the card; NULL: that is not registered. */
static void *in_window(const struct region *r, const void *buf, size_t len)
{
	size_t at = r ? (size_t)((const uint8_t *)buf - r->start) : 0;

	return r && at <= r->size && len <= r->size - at ? r->window + at : NULL;
}

static ssize_t model_tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   fi_addr_t dest, uint64_t tag, void *context)
{
	buf = in_window(desc, buf, len);
	return buf ? tagged_below->send(ep, buf, len, NULL, dest, tag, context) : -FI_EFAULT;
}

static ssize_t model_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
			   uint64_t tag, uint64_t ignore, void *context)
{
	buf = in_window(desc, buf, len);
	return buf ? tagged_below->recv(ep, buf, len, NULL, src, tag, ignore, context) : -FI_EFAULT;
}

/* ---- from the fabric to the endpoint ---------------------------------------------------- */

static int model_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			  void *context)
{
	struct fi_info *below = info_below(info);
	int ret = below ? domain_below->endpoint(domain, below, ep, context) : -FI_ENOMEM;

	fi_freeinfo(below);
	if (ret)
		return ret;
	tagged_below = (*ep)->tagged;
	tagged_ops = *tagged_below;
	tagged_ops.send = model_tsend;
	tagged_ops.recv = model_trecv;
	(*ep)->tagged = &tagged_ops;
	return 0;
}

static int model_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
			 void *context)
{
	return attr->wait_obj == FI_WAIT_NONE ? domain_below->cq_open(domain, attr, cq, context) :
						-FI_ENOSYS;
}

static int model_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
			void *context)
{
	struct fi_info *below = info_below(info);
	int ret = below ? fabric_below->domain(fabric, below, domain, context) : -FI_ENOMEM;

	fi_freeinfo(below);
	if (ret)
		return ret;
	next_key = 0;
	domain_below = (*domain)->ops;
	domain_ops = *domain_below;
	domain_ops.endpoint = model_endpoint;
	domain_ops.cq_open = model_cq_open;
	(*domain)->ops = &domain_ops;
	mr_ops = *(*domain)->mr;
	mr_ops.regattr = model_regattr;
	(*domain)->mr = &mr_ops;
	return 0;
}

static int model_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct fi_fabric_attr below = *attr;
	int ret;

	below.prov_name = (char *)(uintptr_t)BELOW;
	ret = fi_fabric(&below, fabric, context);
	if (ret)
		return ret;
	fabric_below = (*fabric)->ops;
	fabric_ops = *fabric_below;
	fabric_ops.domain = model_domain;
	(*fabric)->ops = &fabric_ops;
	return 0;
}

FI_EXT_INI
{
	static struct fi_provider provider = {
		.version = FI_VERSION(1, 0),
		.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
		.name = "model",
		.getinfo = model_getinfo,
		.fabric = model_fabric,
	};

	return &provider;
}

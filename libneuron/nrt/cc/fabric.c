// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages between hosts, by libfabric.  It is loaded by the first who needs it: the libraries of
 * some fabrics, which it brings, take signals of the program that loads them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"

#ifdef NRT_FABRIC

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

/* Of all channels: those of ring.c. */
#define NR_REQUESTS 1024u
#define NR_ENTRIES 16			/* that are read at a time */
/*
 * Without a descriptor: a message comes within so many looks, or much later; a look costs less than
 * a microsecond.
 */
#define EAGER_LOOKS 1000u
#define LATER_US 100

struct fabric_request {
	struct fi_context2 context;	/* libfabric's, while it is under way */
	struct fabric_request *next;	/* free ones */
	size_t size;
	uint32_t looks;			/* for its end, without a descriptor to wait for */
	bool done;
	bool failed;
};

struct fabric {
	struct fi_info *info;		/* of these the one that the end is of */
	struct fi_info *plain;
	struct fi_info *hmem;		/* the same provider, for memory of devices; may be NULL */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	int fd;				/* readable when there is something to do; -1: none */
	/* One thread at a time is in libfabric; one of those that wait waits for @fd, if there is. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool watched;
	bool dead;
	uint64_t next_key;		/* of a registration: no two have the same */
	struct fabric_request *free;
	struct fabric_request requests[NR_REQUESTS];
};

/* What it exports; the rest are calls of what it returns. */
static struct {
	pthread_once_t once;
	typeof(fi_getinfo) *getinfo;
	typeof(fi_dupinfo) *dupinfo;
	typeof(fi_freeinfo) *freeinfo;
	typeof(fi_fabric) *fabric;
	char missing[256];	/* why it is not there */
} lib = { .once = PTHREAD_ONCE_INIT };

/*
 * Later releases have other structures under the same names, and keep those that this was built
 * with under their versions.
 */
static void *call_of(void *object, const char *name, const char *version)
{
	void *call = NULL;

	if (FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION <= 17)
		call = dlvsym(object, name, version);
	return call ?: dlsym(object, name);
}

static void find_calls(void)
{
	void *object = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);

	if (object) {
		lib.getinfo = call_of(object, "fi_getinfo", "FABRIC_1.3");
		lib.dupinfo = call_of(object, "fi_dupinfo", "FABRIC_1.3");
		lib.freeinfo = call_of(object, "fi_freeinfo", "FABRIC_1.3");
		lib.fabric = call_of(object, "fi_fabric", "FABRIC_1.1");
	}
	if (!lib.getinfo || !lib.dupinfo || !lib.freeinfo || !lib.fabric)
		snprintf(lib.missing, sizeof(lib.missing), "%s", dlerror() ?: "libfabric");
}

/* With all that it loads for its providers; signals stay the program's. */
static void load_library(void)
{
	struct sigaction was[NSIG], now;
	struct fi_info *info = NULL;

	for (int i = 1; i < NSIG; i++)
		sigaction(i, NULL, &was[i]);
	find_calls();
	if (!lib.missing[0] && !lib.getinfo(FI_VERSION(1, 9), NULL, NULL, 0, NULL, &info))
		lib.freeinfo(info);
	for (int i = 1; i < NSIG; i++)
		if (!sigaction(i, NULL, &now) && now.sa_handler != was[i].sa_handler)
			sigaction(i, &was[i], NULL);
}

const char *fabric_missing(void)
{
	pthread_once(&lib.once, load_library);
	return lib.missing[0] ? lib.missing : NULL;
}

static struct fi_info *make_hints(void)
{
	struct fi_info *hints = lib.dupinfo(NULL);

	if (!hints)
		return NULL;
	hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	return hints;
}

/* What there is instead of what was found before. */
static int ask(const struct fi_info *hints, const char *address, struct fi_info **info)
{
	struct fi_info *there;
	int ret = lib.getinfo(FI_VERSION(1, 9), address, NULL, address ? FI_SOURCE : 0, hints, &there);

	if (ret)
		return ret;
	if (*info)
		lib.freeinfo(*info);
	*info = there;
	return 0;
}

/*
 * The best there is, or NEURON_RT_FABRIC_PROVIDER.  One that has addresses of the network
 * takes that of the interface.  Only then it is asked if it takes memory of devices: the best may
 * not, and others that do may not reach other hosts.
 */
static int find(struct fabric *f, const char *address)
{
	const char *provider = getenv("NEURON_RT_FABRIC_PROVIDER");
	struct fi_info *hints = make_hints();
	int ret;

	if (!hints)
		return -ENOMEM;
	if (provider && *provider)
		hints->fabric_attr->prov_name = strdup(provider);
	ret = ask(hints, NULL, &f->plain);
	if (!ret) {
		free(hints->fabric_attr->prov_name);
		hints->fabric_attr->prov_name = strdup(f->plain->fabric_attr->prov_name);
		if (f->plain->addr_format != FI_SOCKADDR_IN && f->plain->addr_format != FI_SOCKADDR_IN6)
			address = NULL;
		if (address)
			ret = ask(hints, address, &f->plain);
	}
	if (!ret) {
		if (f->plain->domain_attr->name)
			hints->domain_attr->name = strdup(f->plain->domain_attr->name);
		hints->caps |= FI_HMEM;
		hints->domain_attr->mr_mode |= FI_MR_HMEM;
		ask(hints, address, &f->hmem);
	}
	lib.freeinfo(hints);
	return ret;
}

/* Providers of fast networks have no descriptor to wait for: they are asked again and again. */
static int open_queue(struct fabric *f)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD };

	if (!fi_cq_open(f->domain, &cq, &f->cq, NULL)) {
		if (!fi_control(&f->cq->fid, FI_GETWAIT, &f->fd))
			return 0;
		fi_close(&f->cq->fid);
		f->cq = NULL;
	}
	f->fd = -1;
	cq.wait_obj = FI_WAIT_NONE;
	return fi_cq_open(f->domain, &cq, &f->cq, NULL);
}

static int open_end(struct fabric *f)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	return lib.fabric(f->info->fabric_attr, &f->fabric, NULL) ?:
	       fi_domain(f->fabric, f->info, &f->domain, NULL) ?:
	       fi_av_open(f->domain, &av, &f->av, NULL) ?:
	       open_queue(f) ?:
	       fi_endpoint(f->domain, f->info, &f->ep, NULL) ?:
	       fi_ep_bind(f->ep, &f->av->fid, 0) ?:
	       fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV) ?:
	       fi_enable(f->ep);
}

static void close_end(struct fabric *f)
{
	fabric_stop(f);
	if (f->cq)
		fi_close(&f->cq->fid);
	if (f->av)
		fi_close(&f->av->fid);
	if (f->domain)
		fi_close(&f->domain->fid);
	if (f->fabric)
		fi_close(&f->fabric->fid);
	f->cq = NULL;
	f->av = NULL;
	f->domain = NULL;
	f->fabric = NULL;
}

/* A provider that takes memory of devices may have a domain or an end that does not. */
static int open_best(struct fabric *f)
{
	if (f->hmem) {
		f->info = f->hmem;
		if (!open_end(f))
			return 0;
		close_end(f);
	}
	f->info = f->plain;
	return open_end(f);
}

void fabric_stop(struct fabric *f)
{
	if (f && f->ep)
		fi_close(&f->ep->fid);
	if (f)
		f->ep = NULL;
}

void fabric_close(struct fabric *f)
{
	if (!f)
		return;
	close_end(f);
	if (f->plain)
		lib.freeinfo(f->plain);
	if (f->hmem)
		lib.freeinfo(f->hmem);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

int fabric_open(struct fabric **out, const char *address, void *name, size_t *size)
{
	struct fabric *f;
	int ret;

	if (fabric_missing())
		return -ENOSYS;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	for (uint32_t i = 0; i < NR_REQUESTS; i++) {
		f->requests[i].next = f->free;
		f->free = &f->requests[i];
	}
	ret = find(f, address) ?: open_best(f) ?: fi_getname(&f->ep->fid, name, size);
	if (ret)
		fabric_close(f);
	else
		*out = f;
	return ret;
}

const char *fabric_provider(const struct fabric *f)
{
	return f->info->fabric_attr->prov_name;
}

int fabric_peer(struct fabric *f, const void *name, uint64_t *peer)
{
	fi_addr_t number;
	int ret;

	pthread_mutex_lock(&f->lock);
	ret = fi_av_insert(f->av, name, 1, &number, 0, NULL);
	pthread_mutex_unlock(&f->lock);
	*peer = number;
	return ret == 1 ? 0 : -EINVAL;
}

bool fabric_takes_devices(const struct fabric *f)
{
	return f->info->caps & FI_HMEM;
}

int fabric_register(struct fabric *f, struct fabric_memory *m)
{
	struct iovec all = { .iov_base = m->bytes, .iov_len = m->size };
	struct fi_mr_attr attr = {
		.mr_iov = &all,
		.iov_count = 1,
		.access = FI_SEND | FI_RECV,
		.iface = m->on_device ? FI_HMEM_NEURON : FI_HMEM_SYSTEM,
		.device.neuron = (int)m->device,
	};
	struct fid_mr *mr = NULL;
	int ret = 0;

	m->registration = m->desc = NULL;
	if (!m->on_device && !(f->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return 0;
	pthread_mutex_lock(&f->lock);
	attr.requested_key = f->next_key++;
	/* libfabric asks this library for a dma-buf of it: nrt_get_dmabuf_fd(). */
	ret = fi_mr_regattr(f->domain, &attr, 0, &mr);
	pthread_mutex_unlock(&f->lock);
	if (!ret) {
		m->registration = mr;
		m->desc = fi_mr_desc(mr);
	}
	return ret;
}

void fabric_unregister(struct fabric *f, struct fabric_memory *m)
{
	if (m->registration) {
		pthread_mutex_lock(&f->lock);
		fi_close(&((struct fid_mr *)m->registration)->fid);
		pthread_mutex_unlock(&f->lock);
	}
	m->registration = m->desc = NULL;
}

/* Under the lock. */
static void finish(struct fabric *f, void *context, size_t size, bool failed)
{
	struct fabric_request *r = context;

	if (!r || r->done)
		return;
	r->done = true;
	/* A send says nothing of its size. */
	r->failed = failed || (size != SIZE_MAX && size != r->size);
	pthread_cond_broadcast(&f->changed);
}

/* Under the lock: what has come to its end.  Each look costs system calls; no more than needed. */
static void progress(struct fabric *f)
{
	struct fi_cq_tagged_entry e[NR_ENTRIES];
	struct fi_cq_err_entry error;
	ssize_t n;

	for (;;) {
		n = fi_cq_read(f->cq, e, NR_ENTRIES);
		if (n == -FI_EAVAIL) {
			memset(&error, 0, sizeof(error));
			n = fi_cq_readerr(f->cq, &error, 0);
			if (n > 0) {
				finish(f, error.op_context, 0, true);
				continue;
			}
		}
		for (ssize_t i = 0; i < n; i++)
			finish(f, e[i].op_context, e[i].flags & FI_RECV ? e[i].len : SIZE_MAX, false);
		f->dead |= n < 0 && n != -FI_EAGAIN;
		if (n < NR_ENTRIES)
			return;
	}
}

/* Like the next, of a provider without a descriptor. */
static void pause_for_look(struct fabric *f, struct fabric_request *r, int watched_fd)
{
	struct timespec t = { .tv_nsec = r->looks++ < EAGER_LOOKS ? 0 : LATER_US * 1000 };
	struct pollfd pfd = { .fd = watched_fd, .events = POLLIN };

	pthread_mutex_unlock(&f->lock);
	ppoll(&pfd, 1, &t, NULL);
	pthread_mutex_lock(&f->lock);
}

/* Under the lock, which it gives back meanwhile: until there may be something new. */
static void pause_for_news(struct fabric *f, struct fabric_request *r, int left, int watched_fd)
{
	struct fid *fids[] = { &f->cq->fid };
	struct pollfd pfd[] = {
		{ .fd = f->fd, .events = POLLIN }, { .fd = watched_fd, .events = POLLIN },
	};
	struct timespec t;

	if (f->fd < 0) {
		pause_for_look(f, r, watched_fd);
		return;
	}
	/* What another one's watch says may not be heard on ours. */
	left = left < 0 || left > 50 ? 50 : left;
	if (f->watched) {
		t = time_in_us(left * 1000);
		pthread_cond_clockwait(&f->changed, &f->lock, CLOCK_MONOTONIC, &t);
		return;
	}
	if (fi_trywait(f->fabric, fids, 1) != FI_SUCCESS)
		return;
	f->watched = true;
	pthread_mutex_unlock(&f->lock);
	poll(pfd, 2, left);
	pthread_mutex_lock(&f->lock);
	f->watched = false;
	pthread_cond_broadcast(&f->changed);
}

/* Under the lock: NRT_SUCCESS to go on. */
static NRT_STATUS check(struct fabric *f, const struct fabric_watch *watch)
{
	if (f->dead)
		return NRT_NETWORK_PROXY_FAILURE;
	if (watch->broken(watch->arg))
		return NRT_FAILURE;
	return deadline_left(&watch->deadline) ? NRT_SUCCESS : NRT_TIMEOUT;
}

NRT_STATUS fabric_wait(struct fabric *f, struct fabric_request *r, const struct fabric_watch *watch)
{
	NRT_STATUS status = NRT_SUCCESS;

	pthread_mutex_lock(&f->lock);
	if (!r->done)
		progress(f);
	while (!r->done && (status = check(f, watch)) == NRT_SUCCESS) {
		pause_for_news(f, r, deadline_left(&watch->deadline), watch->fd);
		progress(f);
	}
	if (r->done) {
		status = r->failed ? NRT_NETWORK_PROXY_FAILURE : NRT_SUCCESS;
		r->next = f->free;
		f->free = r;
	}
	pthread_mutex_unlock(&f->lock);
	return status;
}

void fabric_progress(struct fabric *f)
{
	pthread_mutex_lock(&f->lock);
	progress(f);
	pthread_mutex_unlock(&f->lock);
}

static NRT_STATUS begin(struct fabric *f, bool send, uint64_t peer, uint64_t tag,
			const struct fabric_memory *m, size_t at, size_t size,
			const struct fabric_watch *watch, struct fabric_request **out)
{
	struct fabric_request *r;
	NRT_STATUS status = NRT_SUCCESS;
	ssize_t ret;

	pthread_mutex_lock(&f->lock);
	r = f->free;
	if (!r) {
		pthread_mutex_unlock(&f->lock);
		return NRT_RESOURCE;
	}
	f->free = r->next;
	r->done = r->failed = false;
	r->looks = 0;
	r->size = size;
	for (;;) {
		ret = send ? fi_tsend(f->ep, m->bytes + at, size, m->desc, peer, tag, &r->context) :
			     fi_trecv(f->ep, m->bytes + at, size, m->desc, peer, tag, 0, &r->context);
		if (ret != -FI_EAGAIN)
			break;
		progress(f);
		status = check(f, watch);
		if (status != NRT_SUCCESS)
			break;
		pause_for_news(f, r, 1, watch->fd);
	}
	if (status == NRT_SUCCESS && ret)
		status = NRT_NETWORK_PROXY_FAILURE;
	if (status != NRT_SUCCESS) {
		r->next = f->free;
		f->free = r;
	}
	pthread_mutex_unlock(&f->lock);
	*out = r;
	return status;
}

#else /* built without libfabric: nobody gets an end */

const char *fabric_missing(void)
{
	return "libnrt was built without it";
}

int fabric_open(struct fabric **out, const char *address, void *name, size_t *size)
{
	(void)out;
	(void)address;
	(void)name;
	(void)size;
	return -ENOSYS;
}

void fabric_stop(struct fabric *f)
{
	(void)f;
}

void fabric_close(struct fabric *f)
{
	(void)f;
}

const char *fabric_provider(const struct fabric *f)
{
	(void)f;
	return "none";
}

int fabric_peer(struct fabric *f, const void *name, uint64_t *peer)
{
	(void)f;
	(void)name;
	(void)peer;
	return -ENOSYS;
}

bool fabric_takes_devices(const struct fabric *f)
{
	(void)f;
	return false;
}

int fabric_register(struct fabric *f, struct fabric_memory *m)
{
	(void)f;
	(void)m;
	return -ENOSYS;
}

void fabric_unregister(struct fabric *f, struct fabric_memory *m)
{
	(void)f;
	(void)m;
}

void fabric_progress(struct fabric *f)
{
	(void)f;
}

NRT_STATUS fabric_wait(struct fabric *f, struct fabric_request *r, const struct fabric_watch *watch)
{
	(void)f;
	(void)r;
	(void)watch;
	return NRT_FAILURE;
}

static NRT_STATUS begin(struct fabric *f, bool send, uint64_t peer, uint64_t tag,
			const struct fabric_memory *m, size_t at, size_t size,
			const struct fabric_watch *watch, struct fabric_request **out)
{
	(void)f;
	(void)send;
	(void)peer;
	(void)tag;
	(void)m;
	(void)at;
	(void)size;
	(void)watch;
	(void)out;
	return NRT_FAILURE;
}

#endif

NRT_STATUS fabric_send(struct fabric *f, uint64_t peer, uint64_t tag, const struct fabric_memory *m,
		       size_t at, size_t size, const struct fabric_watch *watch,
		       struct fabric_request **out)
{
	return begin(f, true, peer, tag, m, at, size, watch, out);
}

NRT_STATUS fabric_receive(struct fabric *f, uint64_t peer, uint64_t tag,
			  const struct fabric_memory *m, size_t at, size_t size,
			  const struct fabric_watch *watch, struct fabric_request **out)
{
	return begin(f, false, peer, tag, m, at, size, watch, out);
}

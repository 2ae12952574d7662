// SPDX-License-Identifier: LGPL-2.1-or-later
/* The memory report when an allocation fails: in the log and in a file in /tmp (uapi/FACTS.md 11). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/log.h"
#include "../base/output.h"
#include "model.h"
#include "report.h"

struct gathered {
	struct neuron_report report;
	char limit[128];
	struct neuron_report_core cores[NEURON_MAX_CORES];
	struct neuron_report_model *models;
};

static bool on_core(const struct nrt_model *m, const struct neuron_device *device, uint32_t nc)
{
	return m->vnc->device == device && m->vnc->index == nc;
}

/* Models of a logical core into g->models, from @at.  Under the process lock. */
static void gather_models(struct gathered *g, struct neuron_device *device,
			  struct neuron_report_core *core, size_t at)
{
	const struct nrt_model *m;
	size_t nr = 0;

	core->models = g->models + at;
	for (m = nrt_process.models; m; m = m->next)
		nr += on_core(m, device, core->nc);
	core->nr_models = nr;
	/* The list has the latest first. */
	for (m = nrt_process.models; m; m = m->next) {
		struct neuron_report_model *out;

		if (!on_core(m, device, core->nc))
			continue;
		out = &g->models[at + --nr];
		out->id = m->id;
		out->name = neuron_model_name(m->model);
		out->usage.size = sizeof(out->usage);
		/* Nothing of what is in host memory. */
		if (!neuron_model_offloaded(m->model))
			neuron_model_get_usage(m->model, &out->usage);
	}
}

/* The one that is being loaded comes last. */
static void gather_loading(struct gathered *g, struct neuron_report_core *core,
			   const struct neuron_report_model *loading)
{
	size_t at = (size_t)(core->models - g->models) + core->nr_models++;

	g->models[at] = *loading;
	g->models[at].id = nrt_process.next_id;
}

/*
 * What a logical core is charged with in an HBM, by category.  The driver has these sums for
 * all memories of the device; a core that has some elsewhere gets one for all categories.
 * False: it changed meanwhile.
 */
static bool gather_core(struct neuron_device *device, const struct neuron_hbm_stats *hbm,
			uint32_t first, struct neuron_report_core *c)
{
	uint64_t here = 0, sum = 0;

	for (uint32_t i = first; i < first + nrt_process.lnc; i++) {
		struct neuron_core_stats s = { .size = sizeof(s) };

		here += hbm->by_core[i];
		if (neuron_core_get_stats(device, i, &s))
			continue;
		c->owner = s.owner ? s.owner : c->owner;
		for (size_t k = 0; k < NEURON_MAX_CATEGORIES; k++) {
			c->device_bytes[k] += s.device_bytes[k];
			sum += s.device_bytes[k];
		}
	}
	if (sum == here || !hbm->total)
		return true;
	memset(c->device_bytes, 0, sizeof(c->device_bytes));
	c->device_bytes[NEURON_MEM_OTHER] = here;
	return false;
}

/* Nothing but collective operations computes. */
static uint64_t compute_rings(const struct neuron_device *device, uint32_t nc)
{
	for (uint32_t i = 0; i < nrt_process.nr_vncs; i++) {
		const struct nrt_vnc *v = &nrt_process.vncs[i];

		if (v->device == device && v->nc == nc)
			return neuron_core_compute_rings(v->core);
	}
	return 0;
}

/* The rows of one moment; after a few attempts without categories. */
static void gather_cores(struct gathered *g, struct neuron_device *device, uint32_t hbm)
{
	const struct neuron_geometry *geo = neuron_device_geometry(device);
	uint32_t lnc = nrt_process.lnc;
	bool same = false;

	for (int attempt = 0; attempt < 8 && !same; attempt++) {
		struct neuron_hbm_stats s = { .size = sizeof(s) };

		same = !neuron_hbm_get_stats(device, hbm, &s);
		g->report.total = s.total;
		g->report.free = s.free;
		g->report.reserved = s.reserved;
		g->report.nr_cores = 0;
		for (uint32_t nc = 0; nc + lnc <= geo->nr_cores; nc += lnc) {
			struct neuron_report_core *c = &g->cores[g->report.nr_cores];
			bool here = geo->core_hbm[nc] == hbm;

			for (uint32_t i = nc; i < nc + lnc; i++)
				here |= s.by_core[i] != 0;
			if (!here)
				continue;
			*c = (struct neuron_report_core){
				.nc = nc / lnc, .rings_collectives = compute_rings(device, nc),
			};
			same &= gather_core(device, &s, nc, c);
			g->report.nr_cores++;
		}
	}
}

/* Which limit it was, if it was one of the driver's.  The process's is asked first. */
static void gather_limit(struct gathered *g, struct neuron_device *device,
			 const struct neuron_mem_failure *f)
{
	struct neuron_report *r = &g->report;
	static const char root[] = "/sys/devices/virtual/neuron_device";
	uint64_t everybody;

	if (f->reason != NEURON_MEM_REASON_CAPPED)
		return;
	for (int core = 0; core < 2; core++) {
		if (neuron_limit_get(device, core ? NEURON_LIMIT_CORE : NEURON_LIMIT_PROCESS,
				     core ? (int32_t)f->nc : 0, &r->limit, &r->limit_used) ||
		    (r->limit > r->limit_used && f->bytes <= r->limit - r->limit_used))
			continue;
		if (core)
			snprintf(g->limit, sizeof(g->limit), "%s/neuron%u/neuron_core%u/limits/memory",
				 root, r->device, f->nc);
		else if (!neuron_limit_get(device, NEURON_LIMIT_DEFAULT, 0, &everybody, NULL) &&
			 everybody == r->limit)
			snprintf(g->limit, sizeof(g->limit), "%s/neuron%u/limits/process_memory",
				 root, r->device);
		else
			snprintf(g->limit, sizeof(g->limit), "set for this process alone");
		r->limit_path = g->limit;
		r->limit_core = (uint64_t)core;
		return;
	}
}

/* @loading: on core @nc, or NULL. */
static int gather(struct gathered *g, struct neuron_device *device,
		  const struct neuron_mem_failure *f, const struct neuron_report_model *loading)
{
	size_t nr = 1, at = 0;

	memset(g, 0, sizeof(*g));
	for (const struct nrt_model *m = nrt_process.models; m; m = m->next)
		nr++;
	g->models = calloc(nr, sizeof(*g->models));
	if (!g->models)
		return -ENOMEM;
	g->report.size = sizeof(g->report);
	g->report.device = neuron_device_index(device);
	g->report.hbm = f->hbm;
	g->report.lnc = nrt_process.lnc;
	g->report.cores = g->cores;
	g->report.contiguous = nrt_process.contiguous;
	gather_cores(g, device, f->hbm);
	gather_limit(g, device, f);
	for (size_t i = 0; i < g->report.nr_cores; i++) {
		struct neuron_report_core *c = &g->cores[i];

		gather_models(g, device, c, at);
		if (loading && c->nc == f->nc / nrt_process.lnc)
			gather_loading(g, c, loading);
		at += c->nr_models;
	}
	return 0;
}

/* Everybody can write to /tmp and read there: only a file of our own, and for us alone. */
static int open_file(const char *path)
{
	int fd = nrt_open_private(path);

	if (fd < 0)
		LOG(TDRV, WARN, "%s: %s", path, strerror(-fd));
	return fd;
}

static void write_table(const struct neuron_report *r, const char *reason, const char *table)
{
	char path[96];
	int fd, len;

	len = snprintf(path, sizeof(path), "/tmp/neuron_mem_table_device_%u_hbm_%u.log", r->device,
		       r->hbm);
	fd = open_file(path);
	if (fd < 0) {
		/* Another user's, most likely: one that is hardly anybody else's. */
		snprintf(path + len - 4, sizeof(path) - (size_t)len + 4, "_%x.log",
			 (unsigned int)getpid());
		fd = open_file(path);
		if (fd < 0)
			return;
		LOG(TDRV, ERROR, "the memory of the device is in %s", path);
	}
	if (dprintf(fd, "%s\n\n%s", reason, table) < 0)
		LOG(TDRV, WARN, "%s: %m", path);
	close(fd);
}

static void write_csv(struct neuron_device *device, uint32_t hbm)
{
	char path[80];
	int fd, ret;

	if (!nrt_process.memlog)
		return;
	snprintf(path, sizeof(path), "/tmp/neuron_mem_log_device_%u_hbm_%u_%x.csv",
		 neuron_device_index(device), hbm, (unsigned int)getpid());
	fd = open_file(path);
	if (fd < 0)
		return;
	ret = neuron_device_write_memory_log(device, hbm, fd);
	if (ret)
		LOG(TDRV, WARN, "%s: %s", path, strerror(-ret));
	else
		LOG_AS(TDRV, ERROR, "dml_dump", "wrote nrt memory alloc debug info to %s", path);
	close(fd);
}

static void log_sharing(const struct neuron_report *r)
{
	char text[256];
	int n;

	if (r->lnc != 1 || r->nr_cores < 2)
		return;
	n = snprintf(text, sizeof(text), "LNC size is 1. Neuron Cores using this HBM:");
	for (size_t i = 0; i < r->nr_cores && n > 0 && (size_t)n < sizeof(text); i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s NC %u", i ? " and" : "",
			      r->cores[i].nc);
	LOG_AS(TDRV, ERROR, "print_lnc_hbm_details", "%s", text);
}

static const char *usage_name(enum neuron_mem_category category)
{
	switch (category) {
	case NEURON_MEM_CODE: return "model code";
	case NEURON_MEM_CONSTANTS: return "model constants";
	case NEURON_MEM_TENSORS:
	case NEURON_MEM_HOST_TENSORS: return "tensors";
	case NEURON_MEM_SCRATCHPAD:
	case NEURON_MEM_SCRATCHPAD_CONTIGUOUS: return "shared scratchpad";
	case NEURON_MEM_SCRATCHPAD_PRIVATE: return "scratchpad";
	case NEURON_MEM_RINGS:
	case NEURON_MEM_HOST_RINGS: return "dma rings";
	case NEURON_MEM_COLLECTIVES: return "collectives";
	default: return "runtime";
	}
}

static void log_failed(unsigned int nd, const struct neuron_mem_failure *f)
{
	LOG_AS(TDRV, ERROR, "log_dev_mem",
	       "Failed to allocate %s (alignment: %s, usage: %s) on ND %u:NC %u%s",
	       SIZE_TEXT(f->bytes), f->align ? SIZE_TEXT(f->align) : "none",
	       usage_name(f->category), nd, f->nc,
	       f->align ? "; aligned allocations can fail although enough memory is free, when no piece starts at a multiple of the alignment" : "");
}

static void log_release(struct neuron_device *device, const struct neuron_mem_failure *f)
{
	struct neuron_release release = { .size = sizeof(release) };
	char text[256];

	if (f->reason != NEURON_MEM_REASON_CAPPED && f->reason != NEURON_MEM_REASON_HOST &&
	    !neuron_mem_release(device, f, &release) && release.count)
		LOG_AS(TDRV, ERROR, "log_dev_mem_release", "It would fit without %s",
		       neuron_release_text(&release, text, sizeof(text)));
}

void nrt_refused(void *device, const struct neuron_mem_failure *failure,
		 const struct neuron_report_model *loading)
{
	struct neuron_mem_failure f = *failure;
	char *reason = NULL, *table = NULL;
	struct gathered g;
	int ret;

	/* Models stay while their names are used. */
	pthread_mutex_lock(&nrt_process.lock);
	ret = gather(&g, device, &f, loading);
	f.nc /= nrt_process.lnc;
	ret = ret ?: neuron_report_reason(&g.report, &f, &reason) ?:
		     neuron_report_table(&g.report, &table);
	pthread_mutex_unlock(&nrt_process.lock);

	if (reason)
		LOG_AS(TDRV, ERROR, "log_dev_mem_reason", "%s", reason);
	if (!ret)
		log_sharing(&g.report);
	log_failed(neuron_device_index(device), &f);
	/* That of a model is found when nothing is left of it (load_failed()). */
	if (!loading)
		log_release(device, failure);
	if (!ret && nrt_process.oom_table) {
		LOG_AS(TDRV, ERROR, "log_dev_mem_usage_table",
		       "Displaying Current Memory Utilization:\n(NOTE: the lines are LONG, and NEFF id to name mapping is printed after)\n\n%s",
		       table);
		write_table(&g.report, reason, table);
		write_csv(device, f.hbm);
	}
	free(reason);
	free(table);
	free(g.models);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* nrt_init, nrt_close: environment, claiming cores. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../../uapi/neuron_ioctl.h"
#include "../cc/comm.h"
#include "../trace/profile.h"
#include "../../src/device/sys.h"

#define DEFAULT_TIMEOUT_S 30

struct nrt_process nrt_process = {
	.life = PTHREAD_RWLOCK_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.claim_fd = -1,
};

/* What the environment asks for. */
struct wish {
	uint32_t start;		/* of all cores of the host */
	uint32_t count;
	bool exact;		/* these; else any @count in a row */
	struct neuron_placement placement;
};

NRT_STATUS nrt_ready(void)
{
	switch (atomic_load(&nrt_process.state)) {
	case NRT_STATE_READY: return NRT_SUCCESS;
	case NRT_STATE_UNINITIALIZED: return NRT_UNINITIALIZED;
	default: return NRT_CLOSED;
	}
}

static NRT_STATUS may_enter(void)
{
	if (atomic_load(&nrt_process.state) == NRT_STATE_CLOSING && nrt_on_worker())
		return NRT_SUCCESS;
	return nrt_ready();
}

NRT_STATUS nrt_enter(void)
{
	NRT_STATUS status = may_enter();

	if (status != NRT_SUCCESS)
		return status;
	pthread_rwlock_rdlock(&nrt_process.life);
	status = may_enter();
	if (status != NRT_SUCCESS)
		pthread_rwlock_unlock(&nrt_process.life);
	return status;
}

void nrt_leave(void)
{
	pthread_rwlock_unlock(&nrt_process.life);
}

NRT_STATUS nrt_vnc_get(int64_t vnc, struct nrt_vnc **out)
{
	if (vnc < 0 || vnc >= nrt_process.nr_vncs)
		return NRT_INVALID;
	*out = &nrt_process.vncs[vnc];
	return NRT_SUCCESS;
}

/* An ascending run without gaps. */
static bool parse_cores(const char *text, uint32_t *start, uint32_t *count)
{
	unsigned long first, last, next = 0;
	bool any = false;

	while (text) {
		if (!nrt_env_range(&text, UINT16_MAX, &first, &last) || (any && first != next))
			return false;
		if (!any)
			*start = (uint32_t)first;
		any = true;
		next = last + 1;
	}
	*count = (uint32_t)next - *start;
	return true;
}

static bool has_pairs(const struct neuron_device_entry *entry)
{
	return !strncasecmp(entry->instance, "Trn2", 4) || !strncasecmp(entry->instance, "Trn3", 4);
}

static NRT_STATUS read_placement(bool pairs, struct neuron_placement *placement)
{
	int ret = neuron_placement_read(pairs, placement);

	/* Whoever set a variable that does nothing wants to know. */
	if (placement->variable)
		LOG_AS(NRT, ERROR, "nrt_init", "%s=%s %s", placement->variable,
		       getenv(placement->variable), placement->text);
	nrt_process.lnc = placement->lnc;
	nrt_process.contiguous = placement->contiguous;
	return ret ? NRT_INVALID : NRT_SUCCESS;
}

/* @total: logical cores */
static NRT_STATUS read_cores(struct wish *wish, uint32_t total)
{
	const char *cores = getenv("NEURON_RT_VISIBLE_CORES");
	unsigned long n = 0;

	wish->count = total;
	if (cores && *cores) {
		if (!parse_cores(cores, &wish->start, &wish->count)) {
			LOG_AS(NRT, ERROR, "nrt_init",
			       "NEURON_RT_VISIBLE_CORES=%s is not an ascending run of cores", cores);
			return NRT_INVALID;
		}
		wish->exact = true;
	} else {
		if (!nrt_env_value("NEURON_RT_NUM_CORES", 0, UINT16_MAX, "a number of cores", &n))
			return NRT_INVALID;
		if (n)
			wish->count = (uint32_t)n;
	}
	if (wish->start < total && wish->count <= total - wish->start)
		return NRT_SUCCESS;
	LOG_AS(NRT, ERROR, "nrt_allocate_neuron_cores",
	       "NeuronCore(s) not available - Requested:nc%u-nc%u Available:%u", wish->start,
	       wish->start + wish->count - 1, total);
	return NRT_FAILURE;
}

static bool read_memory(void)
{
	unsigned long memlog = NEURON_MEMORY_LOG_MAX;
	struct nrt_process *p = &nrt_process;

	if (!nrt_env_value("NEURON_RT_DEBUG_MEMLOG_MAX_SIZE", 0, 1ul << 30,
			   "a number of entries", &memlog))
		return false;
	if (memlog > NEURON_MEMORY_LOG_MAX)
		LOG_AS(NRT, ERROR, "nrt_init",
		       "NEURON_RT_DEBUG_MEMLOG_MAX_SIZE=%lu is more than the %u entries that are kept",
		       memlog, NEURON_MEMORY_LOG_MAX);
	p->memlog = memlog < NEURON_MEMORY_LOG_MAX ? memlog : NEURON_MEMORY_LOG_MAX;
	p->oom_table = true;
	p->map_hbm = true;
	return nrt_env_flag("NEURON_RT_ENABLE_DEVICE_MEMORY_OOM_LOG", &p->oom_table) &&
	       nrt_env_flag("NEURON_RT_MAP_HBM", &p->map_hbm);
}

/* Of executions, and of loading. */
static bool read_limits(void)
{
	static const char depth[] = "NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS";
	unsigned long seconds = DEFAULT_TIMEOUT_S, inflight = 0, unpacked = 0;
	struct nrt_process *p = &nrt_process;

	p->verify_hash = false;
	p->short_constants = false;
	if (!nrt_env_value("NEURON_RT_EXEC_TIMEOUT", 0, INT_MAX, "a number of seconds",
			   &seconds) ||
	    !nrt_env_value(depth, 0, NRT_MAX_INFLIGHT, "a number up to 63", &inflight) ||
	    !nrt_env_value("NEURON_RT_NEFF_MAX_UNPACKED_MB", 0, 1ul << 30,
			   "a number of megabytes", &unpacked) ||
	    !nrt_env_flag("NEURON_RT_NEFF_SHORT_CONSTANTS", &p->short_constants) ||
	    !nrt_env_flag("NEURON_RT_VALIDATE_HASH", &p->verify_hash))
		return false;
	p->max_unpacked = (uint64_t)unpacked << 20;
	/* With 0 as a limit nothing could ever succeed: there is none. */
	p->timeout_ms = !seconds ? -1 : seconds > INT_MAX / 1000 ? INT_MAX : (int)seconds * 1000;
	p->implicit_async = inflight;
	p->exec_depth = inflight ? (uint32_t)inflight : NRT_MAX_INFLIGHT;
	return true;
}

static NRT_STATUS read_environment(struct wish *wish, uint32_t total)
{
	NRT_STATUS status = read_cores(wish, total);

	if (status != NRT_SUCCESS)
		return status;
	return read_memory() && read_limits() ? nrt_env_read(&nrt_process.env) : NRT_INVALID;
}

/* Cores of a device that sysfs does not tell; 0 if it cannot be used. */
static int ask_cores(struct neuron_device_entry *entry)
{
	struct neuron_device *device;
	int ret;

	pthread_mutex_lock(&nrt_process.lock);
	ret = neuron_device_open(entry->index, &device);
	if (!ret) {
		entry->nr_cores = neuron_device_geometry(device)->nr_cores;
		neuron_device_close(device);
	}
	pthread_mutex_unlock(&nrt_process.lock);
	return ret == -ENOMEM ? ret : 0;
}

/* All entries have their number of cores afterwards. */
static int count_cores(uint32_t *total, struct neuron_device_entry **list, size_t *nr)
{
	int ret = neuron_device_list(list, nr);

	*total = 0;
	for (size_t i = 0; !ret && i < *nr; i++) {
		if (!(*list)[i].nr_cores)
			ret = ask_cores(&(*list)[i]);
		*total += (*list)[i].nr_cores;
	}
	return ret;
}

static void release_cores(void)
{
	struct nrt_process *p = &nrt_process;

	for (uint32_t i = 0; i < p->nr_vncs; i++)
		neuron_core_close(p->vncs[i].core);
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->nr_devices; i++)
		neuron_device_close(p->devices[i]);
	free(p->vncs);
	free(p->devices);
	p->vncs = NULL;
	p->devices = NULL;
	p->nr_vncs = 0;
	p->nr_devices = 0;
	/* Closing the descriptor gives the claim back, too; this does it at once. */
	if (p->claim_fd >= 0) {
		struct neuron_ioctl_crwl_nc_map_ext map = { .nc_count = p->claim_count };

		for (uint32_t i = 0; i < p->claim_count; i++)
			map.bitmap[(p->claim_start + i) / 64] |= 1ul << (p->claim_start + i) % 64;
		neuron_sys_ioctl(p->claim_fd, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0, &map);
		neuron_sys_close(p->claim_fd);
		p->claim_fd = -1;
	}
	pthread_mutex_unlock(&p->lock);
}

/* Claims count cores through consecutive devices that are all alike. */
static bool claims_fit(const struct neuron_device_entry *list, size_t nr)
{
	for (size_t i = 1; i < nr; i++)
		if (list[i].index != list[0].index + i || list[i].nr_cores != list[0].nr_cores)
			return false;
	return true;
}

static uint32_t first_core(const struct neuron_ioctl_crwl_nc_map_ext *map)
{
	uint32_t i = 0;

	while (i < 511 && !(map->bitmap[i / 64] >> i % 64 & 1))
		i++;
	return i;
}

static int mark_cores(int fd, struct neuron_ioctl_crwl_nc_map_ext *map)
{
	int ret;

	do {
		ret = neuron_sys_ioctl(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, map);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : ret ? -EIO : 0;
}

/*
 * Claim cores in the table that all processes share.  Where there is none, the
 * cores are owned by whoever programs them first; then this says yes.  Under the lock.
 */
static int claim_cores(struct wish *wish, uint32_t total, const struct neuron_device_entry *list,
		       size_t nr, uint32_t *available)
{
	struct neuron_ioctl_crwl_nc_map_ext map = {
		.nc_count = wish->count,
		.start_nc_index = wish->start,
		.end_nc_index = wish->exact ? wish->start + wish->count - 1 : total - 1,
	};
	char path[32];
	int fd, ret;

	if (!claims_fit(list, nr))
		return 0;
	snprintf(path, sizeof(path), "/dev/neuron%u", list[0].index);
	fd = neuron_sys_open(path, O_WRONLY);
	if (fd < 0)
		return -errno;
	ret = mark_cores(fd, &map);
	/* Others may have taken an odd number of cores: look for whole pairs one by one. */
	if (!ret && !wish->exact && first_core(&map) % nrt_process.lnc) {
		uint32_t last = total - wish->count;

		neuron_sys_ioctl(fd, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0, &map);
		ret = -EBUSY;
		for (uint32_t at = 0; at <= last && ret == -EBUSY; at += nrt_process.lnc) {
			map = (struct neuron_ioctl_crwl_nc_map_ext){
				.nc_count = wish->count,
				.start_nc_index = at,
				.end_nc_index = at + wish->count - 1,
			};
			ret = mark_cores(fd, &map);
		}
	}
	if (ret) {
		neuron_sys_close(fd);
		if (ret == -EBUSY)
			*available = map.max_nc_available;
		return ret == -ENOTTY || ret == -EINVAL ? 0 : ret;
	}
	wish->start = first_core(&map);
	wish->exact = true;
	nrt_process.claim_fd = fd;
	nrt_process.claim_start = wish->start;
	nrt_process.claim_count = wish->count;
	return 0;
}

static int open_device(unsigned int index, struct neuron_device **device)
{
	struct nrt_process *p = &nrt_process;
	int ret;

	pthread_mutex_lock(&p->lock);
	ret = neuron_device_open(index, device);
	if (!ret)
		p->devices[p->nr_devices++] = *device;
	pthread_mutex_unlock(&p->lock);
	if (ret)
		LOG_AS(NRT, ERROR, "nrt_init", "Could not open the nd%u: %s", index,
		       strerror(-ret));
	return ret;
}

/* Open and reset the cores from @start; *@failed is the one that could not be had. */
static int open_cores(const struct neuron_device_entry *list, size_t nr, uint32_t start,
		      const struct wish *wish, uint32_t *failed)
{
	struct nrt_process *p = &nrt_process;
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_core_opts opts = {
		.size = sizeof(opts),
		.scratchpad_page = wish->placement.page,
		.contiguous = p->contiguous,
		.no_reset = p->env.keep_cores,
		.failure = &failure,
		.lnc = p->lnc,
		.refused = nrt_refused,
	};
	uint32_t base = 0;
	int ret = 0;

	p->vncs = calloc(wish->count, sizeof(*p->vncs));
	p->devices = calloc(nr, sizeof(*p->devices));
	*failed = start;
	if (!p->vncs || !p->devices)
		ret = -ENOMEM;
	for (size_t i = 0; i < nr && !ret && p->nr_vncs * p->lnc < wish->count; i++) {
		uint32_t cores = list[i].nr_cores;
		struct neuron_device *device;

		if (base + cores <= start) {
			base += cores;
			continue;
		}
		ret = open_device(list[i].index, &device);
		if (!ret)
			ret = neuron_device_log_memory(device, p->memlog);
		if (ret)
			break;
		opts.microcode = neuron_placement_microcode(&wish->placement,
							    neuron_device_geometry(device));
		for (uint32_t nc = start > base ? start - base : 0;
		     nc + p->lnc <= cores && p->nr_vncs * p->lnc < wish->count; nc += p->lnc) {
			struct nrt_vnc *vnc = &p->vncs[p->nr_vncs];

			*failed = base + nc;
			opts.refused_data = device;
			ret = neuron_core_open(device, nc, &opts, &vnc->core);
			if (ret)
				break;
			vnc->device = device;
			vnc->nc = nc;
			vnc->index = nc / p->lnc;
			p->nr_vncs++;
		}
		base += cores;
	}
	if (!ret && p->nr_vncs * p->lnc < wish->count)
		ret = -ENODEV;
	return ret;
}

static NRT_STATUS take_cores(const struct neuron_device_entry *list, size_t nr,
			     struct wish *wish, uint32_t total)
{
	uint32_t failed = wish->start, available = 0;
	int ret;

	pthread_mutex_lock(&nrt_process.lock);
	ret = claim_cores(wish, total, list, nr, &available);
	pthread_mutex_unlock(&nrt_process.lock);
	for (uint32_t start = wish->start; !ret; start = failed + nrt_process.lnc) {
		ret = open_cores(list, nr, start, wish, &failed);
		if (!ret)
			return NRT_SUCCESS;
		LOG_AS(NRT, DEBUG, "nrt_init", "core %u: %s", failed, strerror(-ret));
		if (ret == -EBUSY && !wish->exact &&
		    failed + nrt_process.lnc + wish->count <= total) {
			release_cores();
			ret = 0;
		}
	}
	release_cores();
	if (ret == -EBUSY)
		LOG_AS(NRT, ERROR, "nrt_allocate_neuron_cores",
		       "NeuronCore(s) not available - Requested:nc%u-nc%u Available:%u", wish->start,
		       wish->start + wish->count - 1, available);
	else
		LOG_AS(NRT, ERROR, "nrt_init", "cannot initialise nc%u: %s", failed, strerror(-ret));
	return ret == -ENOMEM ? NRT_RESOURCE : NRT_FAILURE;
}

/* Of the module, if that says; else of its interface. */
static void driver_version(const struct neuron_device_info *info, char *text, size_t size)
{
	FILE *f = fopen("/sys/module/neuron/version", "re");

	snprintf(text, size, "interface %u to %u", info->compat_min, info->compat_max);
	if (!f)
		return;
	if (fgets(text, (int)size, f))
		text[strcspn(text, "\n")] = '\0';
	fclose(f);
}

static void log_instance(void)
{
	struct neuron_device_info info = { .size = sizeof(info) };
	const struct nrt_process *p = &nrt_process;
	char version[64];

	if (!nrt_log_enabled(LOG_NRT, LOG_INFO) ||
	    neuron_device_get_info(p->devices[0], &info))
		return;
	driver_version(&info, version, sizeof(version));
	LOG_AS(NRT, INFO, "nrt_init", "Neuron Runtime %s built on %s", NEURON_VERSION, __DATE__);
	LOG_AS(NRT, INFO, "nrt_init", "Found neuron driver: %s", version);
	LOG_AS(NRT, INFO, "nrt_init",
	       "Instance info:: device count:%zu cores per device:%u architecture:v%u",
	       p->nr_devices, neuron_device_geometry(p->devices[0])->nr_cores, info.arch);
}

/* nrt_init() and nrt_close(), one at a time. */
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;

static NRT_STATUS init_failed(NRT_STATUS status, const char *why)
{
	LOG_AS(NRT, ERROR, "nrt_init", "%s", why);
	return status;
}

/* The devices and their cores, which have to be freed in any case. */
static NRT_STATUS look_for_cores(struct neuron_device_entry **list, size_t *nr, uint32_t *total)
{
	int ret = count_cores(total, list, nr);

	if (ret == -ENOMEM)
		return init_failed(NRT_RESOURCE, "out of host memory");
	if (ret || !*nr)
		return init_failed(NRT_FAILURE, "cannot determine driver version, check dkms package: no Neuron device");
	if (!*total) {
		LOG_AS(NRT, ERROR, "nrt_init",
		       "no access to /dev/neuron%u; in a container pass it with --device",
		       (*list)[0].index);
		return NRT_FAILURE;
	}
	return NRT_SUCCESS;
}

/* Under @change. */
static NRT_STATUS init(void)
{
	struct nrt_process *p = &nrt_process;
	struct neuron_device_entry *list = NULL;
	struct wish wish = { .placement.size = sizeof(wish.placement) };
	NRT_STATUS status;
	uint32_t total;
	size_t nr;

	status = look_for_cores(&list, &nr, &total);
	if (status != NRT_SUCCESS)
		goto out;
	status = read_placement(has_pairs(&list[0]), &wish.placement);
	if (status != NRT_SUCCESS)
		goto out;
	status = read_environment(&wish, total / p->lnc);
	if (status == NRT_SUCCESS) {
		/* From here on in physical cores, as the driver counts. */
		wish.start *= p->lnc;
		wish.count *= p->lnc;
		status = take_cores(list, nr, &wish, total);
	}
	if (status == NRT_SUCCESS) {
		p->next_id = 1001;
		log_instance();
		atomic_store(&p->state, NRT_STATE_READY);
	} else {
		nrt_env_free(&p->env);
	}
out:
	neuron_device_list_free(list);
	return status;
}

NRT_EXPORT NRT_STATUS nrt_init(nrt_framework_type_t framework, const char *fw_version,
			       const char *fal_version)
{
	NRT_STATUS status;

	(void)fw_version;
	(void)fal_version;
	/* What a worker calls back would wait for nrt_close(), and that for the worker. */
	if (nrt_on_worker())
		return init_failed(NRT_FAILURE, "already initialised");
	pthread_mutex_lock(&change);
	nrt_log_configure();
	if ((int)framework < NRT_FRAMEWORK_TYPE_NO_FW ||
	    (int)framework > NRT_FRAMEWORK_TYPE_PRECHECK) {
		LOG(NRT, ERROR, "framework %d is not known", (int)framework);
		status = NRT_INVALID;
	} else if (atomic_load(&nrt_process.state) == NRT_STATE_READY) {
		status = init_failed(NRT_FAILURE, "already initialised");
	} else {
		status = init();
	}
	pthread_mutex_unlock(&change);
	if (status == NRT_SUCCESS)
		nrt_inspect_init();
	return status;
}

/* The lists are whole when a process is copied. */
static void before_fork(void)
{
	pthread_mutex_lock(&nrt_process.lock);
	nrt_handles_lock();
	pthread_mutex_lock(&comm_lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&comm_lock);
	nrt_handles_unlock();
	pthread_mutex_unlock(&nrt_process.lock);
}

/*
 * A child has none of what its parent has on the device, and starts over.  Its
 * descriptors go, so that it does not hold the cores when the parent is gone; what
 * belongs to them is forgotten, not freed.
 */
static void in_child(void)
{
	struct nrt_process *p = &nrt_process;

	pthread_rwlock_init(&p->life, NULL);
	/* This thread had them at fork(). */
	nrt_handles_unlock();
	pthread_mutex_unlock(&p->lock);
	nrt_storages_forget();
	pthread_mutex_init(&change, NULL);
	nrt_async_forget();
	nrt_env_forget(&p->env);
	nrt_failure_forget();
	nrt_cc_forget();
	nrt_comm_forget();
	nrt_completions_forget();
	nrt_trace_forget();
	nrt_profiles_forget();
	nrt_inspect_forget();
	for (size_t i = 0; i < p->nr_devices; i++)
		neuron_sys_close(neuron_device_fd(p->devices[i]));
	if (p->claim_fd >= 0)
		neuron_sys_close(p->claim_fd);
	p->claim_fd = -1;
	p->models = NULL;
	p->devices = NULL;
	p->nr_devices = 0;
	p->vncs = NULL;
	p->nr_vncs = 0;
	atomic_store(&p->state, NRT_STATE_UNINITIALIZED);
}

static void __attribute__((constructor)) watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

NRT_EXPORT void nrt_close(void)
{
	struct nrt_process *p = &nrt_process;

	if (nrt_on_worker()) {
		LOG(NRT, ERROR, "called by a function that the runtime calls back: nothing is closed");
		return;
	}
	pthread_mutex_lock(&change);
	if (atomic_load(&p->state) != NRT_STATE_READY) {
		pthread_mutex_unlock(&change);
		return;
	}
	atomic_store(&p->state, NRT_STATE_CLOSING);
	/* Calls and workers that wait for others return early. */
	nrt_comm_stop();
	nrt_async_stop();
	pthread_rwlock_wrlock(&p->life);
	nrt_async_close();
	nrt_cc_close();
	nrt_comm_close();
	nrt_inspect_close();
	nrt_trace_close();
	nrt_profiles_close();
	nrt_models_close();
	nrt_storages_close();
	release_cores();
	nrt_env_free(&p->env);
	atomic_store(&p->state, NRT_STATE_CLOSED);
	pthread_rwlock_unlock(&p->life);
	pthread_mutex_unlock(&change);
}

NRT_EXPORT NRT_STATUS nrt_get_total_vnc_count(uint32_t *vnc_count)
{
	struct neuron_placement placement = { .size = sizeof(placement) };
	struct neuron_device_entry *list = NULL;
	uint32_t total;
	size_t nr;

	if (!vnc_count)
		return NRT_INVALID;
	if (count_cores(&total, &list, &nr)) {
		neuron_device_list_free(list);
		return NRT_FAILURE;
	}
	/* What else is wrong in there does not matter here. */
	neuron_placement_read(nr && has_pairs(&list[0]), &placement);
	neuron_device_list_free(list);
	if (!placement.lnc)
		return NRT_INVALID;
	*vnc_count = total / placement.lnc;
	return NRT_SUCCESS;
}

NRT_EXPORT NRT_STATUS nrt_get_total_nc_count(uint32_t *nc_count)
{
	return nrt_get_total_vnc_count(nc_count);
}

/* After nrt_init() what was claimed, before it what would be. */
NRT_EXPORT NRT_STATUS nrt_get_visible_vnc_count(uint32_t *vnc_count)
{
	uint32_t total, start, count;
	NRT_STATUS status;
	const char *cores;
	unsigned long n = 0;

	if (!vnc_count)
		return NRT_INVALID;
	if (nrt_enter() == NRT_SUCCESS) {
		*vnc_count = nrt_process.nr_vncs;
		nrt_leave();
		return NRT_SUCCESS;
	}
	status = nrt_get_total_vnc_count(&total);
	if (status != NRT_SUCCESS)
		return status;
	cores = getenv("NEURON_RT_VISIBLE_CORES");
	if (cores && *cores) {
		if (!parse_cores(cores, &start, &count) || start >= total || count > total - start)
			return NRT_INVALID;
		*vnc_count = count;
		return NRT_SUCCESS;
	}
	if (!nrt_env_value("NEURON_RT_NUM_CORES", 0, total, "a number of cores of this host", &n))
		return NRT_INVALID;
	*vnc_count = n ? (uint32_t)n : total;
	return NRT_SUCCESS;
}

NRT_EXPORT NRT_STATUS nrt_get_visible_nc_count(uint32_t *nc_count)
{
	return nrt_get_visible_vnc_count(nc_count);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* nrt_init, nrt_close: environment, claiming cores. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/access.h"
#include "../../common/lock.h"
#include "../../common/util.h"
#include "../base/cores.h"
#include "../base/log.h"
#include "../cc/comm.h"
#include "../cc/hub.h"
#include "../object/handles.h"
#include "../object/model.h"
#include "../object/report.h"
#include "../object/room.h"
#include "../object/tensor.h"
#include "../profile/profile.h"
#include "../trace/events.h"
#include "collective.h"
#include "execute.h"
#include "queue.h"

#define DEFAULT_TIMEOUT_S 30

/* What the environment asks for. */
struct wish {
	uint32_t start;		/* of all cores of the host */
	uint32_t count;
	bool exact;		/* these; else any @count in a row */
	struct neuron_placement placement;
};

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

static void log_unavailable(const struct wish *wish, uint32_t available)
{
	LOG_AS(NRT, ERROR, "nrt_allocate_neuron_cores",
	       "NeuronCore(s) not available - Requested:nc%u-nc%u Available:%u", wish->start,
	       wish->start + wish->count - 1, available);
}

/* Process and command, which the log makes printable. */
static void log_holder(uint32_t first, uint32_t last, int pid)
{
	char path[32], command[128];
	size_t len;

	if (pid == NEURON_OWNER_OUTSIDE) {
		LOG_AS(NRT, ERROR, "nrt_allocate_neuron_cores",
		       "nc%u-nc%u: held by a process outside of this pid namespace", first, last);
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	len = read_short(path, command, sizeof(command));
	for (size_t i = 0; i + 1 < len; i++)
		if (!command[i])
			command[i] = ' ';
	LOG_AS(NRT, ERROR, "nrt_allocate_neuron_cores", "nc%u-nc%u: held by process %d (%s)", first,
	       last, pid, len ? command : "of another user");
}

static int core_owner(struct neuron_device *device, uint32_t nc)
{
	struct neuron_core_stats s = { .size = sizeof(s) };

	return neuron_core_get_stats(device, nc, &s) || s.owner == getpid() ? 0 : s.owner;
}

/* Of the cores that were asked for, those that somebody holds: a line for each that does. */
static void log_holders(const struct wish *wish, const struct neuron_device_entry *list, size_t nr)
{
	uint32_t end = wish->start + wish->count;

	GUARD(&nrt_process.lock);
	for (uint32_t i = 0, base = 0; i < nr && base < end; base += list[i++].nr_cores) {
		uint32_t cores = list[i].nr_cores, first = base;
		struct neuron_device *device;
		int owner = 0;

		if (base + cores <= wish->start || neuron_device_open(list[i].index, &device))
			continue;
		for (uint32_t nc = base; nc <= base + cores; nc++) {
			int next = nc < base + cores && nc >= wish->start && nc < end ?
				   core_owner(device, nc - base) : 0;

			if (next == owner)
				continue;
			if (owner)
				log_holder(first, nc - 1, owner);
			first = nc;
			owner = next;
		}
		neuron_device_close(device);
	}
}

/* @list: devices of the host, which have @total logical cores */
static NRT_STATUS read_cores(struct wish *wish, const struct neuron_device_entry *list, size_t nr,
			     uint32_t total)
{
	const char *cores = getenv("NEURON_RT_VISIBLE_CORES");
	unsigned long n = 0;

	if (cores && *cores) {
		if (!nrt_parse_cores(cores, &wish->start, &wish->count)) {
			LOG_AS(NRT, ERROR, "nrt_init",
			       "NEURON_RT_VISIBLE_CORES=%s is not an ascending run of cores", cores);
			return NRT_INVALID;
		}
		wish->exact = true;
	} else {
		if (!nrt_env_value("NEURON_RT_NUM_CORES", 0, UINT16_MAX, "a number of cores", &n))
			return NRT_INVALID;
		/* If it may open none, opening the first one says what is wrong. */
		wish->count = (uint32_t)n ?: nrt_usable_cores(list, nr, nrt_process.lnc,
							      &wish->start) ?: total;
	}
	if (wish->start < total && wish->count <= total - wish->start)
		return NRT_SUCCESS;
	log_unavailable(wish, total);
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

static NRT_STATUS read_environment(struct wish *wish, const struct neuron_device_entry *list,
				   size_t nr, uint32_t total)
{
	NRT_STATUS status = read_cores(wish, list, nr, total);

	if (status != NRT_SUCCESS)
		return status;
	return read_memory() && read_limits() ? nrt_env_read(&nrt_process.env) : NRT_INVALID;
}

static void release_cores(void)
{
	struct nrt_process *p = &nrt_process;

	for (uint32_t i = 0; i < p->nr_vncs; i++)
		neuron_core_close(p->vncs[i].core);
	GUARD(&p->lock);
	for (size_t i = 0; i < p->nr_devices; i++)
		neuron_device_close(p->devices[i]);
	free(p->vncs);
	free(p->devices);
	p->vncs = NULL;
	p->devices = NULL;
	p->nr_vncs = 0;
	p->nr_devices = 0;
	neuron_claim_release(p->claim);
	p->claim = NULL;
}

/* In the table that all processes share, if there is one. */
static int claim_cores(struct wish *wish, uint32_t total, const struct neuron_device_entry *list,
		       size_t nr, uint32_t *available)
{
	struct neuron_claim_opts opts = {
		.size = sizeof(opts),
		.start = wish->start,
		.count = wish->count,
		.exact = wish->exact,
		.total = total,
		.align = nrt_process.lnc,
		.available = available,
	};
	int ret;

	GUARD(&nrt_process.lock);
	ret = neuron_claim_cores(list, nr, &opts, &nrt_process.claim);
	if (!ret && nrt_process.claim) {
		wish->start = neuron_claim_start(nrt_process.claim);
		wish->exact = true;
	}
	return ret;
}

static int open_device(unsigned int index, struct neuron_device **device)
{
	struct nrt_process *p = &nrt_process;
	int ret;

	GUARD(&p->lock);
	ret = neuron_device_open(index, device);
	if (!ret)
		p->devices[p->nr_devices++] = *device;
	else
		LOG_AS(NRT, ERROR, "nrt_init", "Could not open the nd%u: %s%s", index,
		       strerror(-ret), access_hint(index, ret, (char[ACCESS_ROOM]){ 0 }));
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
		ret = open_device(list[i].index, &device) ?:
		      neuron_device_log_memory(device, p->memlog);
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
	int ret = claim_cores(wish, total, list, nr, &available);

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
	if (ret == -EBUSY) {
		log_unavailable(wish, available);
		log_holders(wish, list, nr);
	} else {
		LOG_AS(NRT, ERROR, "nrt_init", "cannot initialise nc%u: %s", failed, strerror(-ret));
	}
	return ret == -ENOMEM ? NRT_RESOURCE : NRT_FAILURE;
}

/* Of the module, if that says; else of its interface. */
static void driver_version(const struct neuron_device_info *info, char *text, size_t size)
{
	if (read_short("/sys/module/neuron/version", text, size))
		text[strcspn(text, "\n")] = '\0';
	else
		snprintf(text, size, "interface %u to %u", info->compat_min, info->compat_max);
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
	int ret = nrt_count_cores(total, list, nr);

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

	status = look_for_cores(&list, &nr, &total) ?:
		 read_placement(nrt_has_pairs(&list[0]), &wish.placement) ?:
		 read_environment(&wish, list, nr, total / p->lnc);
	if (status == NRT_SUCCESS) {
		/* From here on in physical cores, as the driver counts. */
		wish.start *= p->lnc;
		wish.count *= p->lnc;
		status = take_cores(list, nr, &wish, total);
	}
	if (status == NRT_SUCCESS) {
		p->next_id = 1001;
		log_instance();
		atomic_fetch_add(&p->inits, 1);
		atomic_store(&p->state, NRT_STATE_READY);
	} else {
		nrt_env_free(&p->env);
	}
	neuron_device_list_free(list);
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_init(nrt_framework_type_t framework, const char *fw_version,
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
	nrt_queues_forget();
	nrt_execute_forget();
	nrt_env_forget(&p->env);
	nrt_failure_forget();
	nrt_cc_forget();
	nrt_comm_forget();
	nrt_completions_forget();
	nrt_trace_forget();
	nrt_profiles_forget();
	nrt_inspect_forget();
	nrt_room_forget();
	for (size_t i = 0; i < p->nr_devices; i++)
		neuron_device_abandon(p->devices[i]);
	neuron_claim_release(p->claim);
	p->claim = NULL;
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

NEURON_EXPORT void nrt_close(void)
{
	struct nrt_process *p = &nrt_process;

	if (nrt_on_worker()) {
		LOG(NRT, ERROR, "called by a function that the runtime calls back: nothing is closed");
		return;
	}
	GUARD(&change);
	if (atomic_load(&p->state) != NRT_STATE_READY)
		return;
	atomic_store(&p->state, NRT_STATE_CLOSING);
	/* Calls and workers that wait for others return early. */
	nrt_comm_stop();
	nrt_queues_stop();
	pthread_rwlock_wrlock(&p->life);
	nrt_queues_close();
	nrt_execute_close();
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
}

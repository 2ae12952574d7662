// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sysfs tree below neuronN/.  One table describes it; sysfs-docs/ has an
 * entry for each file, which a script checks against this table.
 *
 * Directories are kobjects, but for those of counters, of which there are hundreds: they
 * are groups of attributes, which take less memory.  All are added before user space is
 * told of the device and removed before the device goes, so no file ever outlives what it
 * shows.
 */
#include <linux/ctype.h>
#include <linux/jump_label.h>
#include <linux/kobject.h>
#include <linux/overflow.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/workqueue.h>

#include "../base/core.h"
#include "../base/devices.h"
#include "../base/health.h"
#include "../base/isolation.h"
#include "../base/reset.h"
#include "../mem/datastore.h"
#include "../mem/hbm.h"
#include "../mem/limit.h"
#include "tree.h"

enum neuron_sysfs_scope {
	DEV,	/* neuronN/ */
	CORE,	/* neuronN/neuron_coreM/ */
	HBM,	/* neuronN/hbmM/ */
};

struct neuron_node;
typedef ssize_t (*neuron_show_fn)(struct neuron_node *node, char *buf);
typedef ssize_t (*neuron_store_fn)(struct neuron_node *node, const char *buf, size_t count);

/* A memory counter directory: total, present, peak. */
#define MEM(_scope, _path, _where, _category) \
	{ .scope = (_scope), .path = (_path), .where = (_where), .category = (_category) }
/* A counter directory of a core: total, present. */
#define COUNT(_scope, _path, _where, _counter) \
	{ .scope = (_scope), .path = (_path), .where = (_where), .category = (_counter) }
/* One file. */
#define FILE_RO(_scope, _path, _show) \
	{ .scope = (_scope), .path = (_path), .mode = 0444, .show = (_show) }
/* Only for root, below neuronN/ itself. */
#define FILE_ROOT(_scope, _path, _show, _store) \
	{ .scope = (_scope), .path = (_path), .mode = 0600, .show = (_show), .store = (_store) }
#define FILE_RW(_scope, _path, _show, _store) \
	{ .scope = (_scope), .path = (_path), .mode = 0644, .show = (_show), .store = (_store) }

#define NEURON_HEALTH_DIR	"stats/hardware/health_status"

enum neuron_sysfs_where {
	NONE,
	DEV_HOST,	/* host memory of the device, one category */
	DEV_HOST_SUM,	/* host memory of the device, all categories */
	CORE_HOST,	/* host memory of a core, all categories */
	CORE_DEVICE,	/* device memory of a core, all categories */
	CORE_CATEGORY,	/* device memory of a core, one category */
	CORE_NDS,	/* counter that processes publish */
	CORE_RESETS,	/* resets asked for (0), failed (1) */
};

struct neuron_sysfs_row {
	enum neuron_sysfs_scope scope;
	const char *path;
	enum neuron_sysfs_where where;
	u32 category;
	umode_t mode;
	neuron_show_fn show;
	neuron_store_fn store;
};

/**
 * struct neuron_node - one directory that is not only a counter's
 * @kobj: in the tree
 * @list: in neuron_sysfs.nodes, parents first
 * @nd: device; outlives the node
 * @core: core number below neuron_coreM/, HBM number below hbmM/
 */
struct neuron_node {
	struct kobject kobj;
	struct list_head list;
	struct neuron_device *nd;
	u32 core;
};

/**
 * struct neuron_sysfs - the tree of a device
 * @nd: the device
 * @watch: looks at the counters that are no memory
 * @seen: total and present of each of them that pollers know, core by core, in the order of
 *	  the table; NULL before there is somebody to tell
 * @nodes: all nodes, parents first
 */
struct neuron_sysfs {
	struct neuron_device *nd;
	struct delayed_work watch;
	u64 (*seen)[2];
	struct list_head nodes;
};

/*
 * Processes publish counters by writing to memory, which raises no event.  While
 * notification is on, the counters are read this often.
 */
#define NEURON_WATCH_INTERVAL	(HZ / 10)

static ssize_t show_core_count(struct neuron_node *node, char *buf)
{
	int len = sysfs_emit(buf, "%u", node->nd->geo->nr_cores);

	/* Readers expect no newline (uapi/FACTS.md 9). */
	return len;
}

static ssize_t show_connected(struct neuron_node *node, char *buf)
{
	const struct neuron_device_desc *desc = &node->nd->desc;
	int len = 0;
	u32 i;

	for (i = 0; i < desc->nr_neighbours; i++)
		len += sysfs_emit_at(buf, len, "%s%u", i ? ", " : "", desc->neighbours[i]);
	return len + sysfs_emit_at(buf, len, "\n");
}

static ssize_t show_serial(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%016llx\n", node->nd->desc.serial);
}

static ssize_t show_nd_arch(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%s\n", node->nd->geo->nd_arch_type);
}

static ssize_t show_nc_arch(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%s\n", node->nd->geo->nc_arch_type);
}

static ssize_t show_device_name(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%s\n", node->nd->geo->device_name);
}

static ssize_t show_instance_type(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%s\n", node->nd->geo->instance_type);
}

static ssize_t show_notify_delay(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%d\n", static_key_enabled(&neuron_notify) ? 0 : -1);
}

static int neuron_watch_start(struct neuron_device *nd);

static ssize_t store_notify_delay(struct neuron_node *node, const char *buf, size_t count)
{
	struct neuron_device *nd;
	int val, err;
	u32 i;

	err = kstrtoint(buf, 0, &val);
	if (err)
		return err;
	if (val != 0 && val != -1)
		return -EINVAL;
	mutex_lock(&neuron_devices_lock);
	if (val == 0 && !static_key_enabled(&neuron_notify)) {
		static_branch_enable(&neuron_notify);
		for (i = 0; i < NEURON_MAX_DEVICES && !err; i++) {
			nd = neuron_device_lookup(i);
			if (nd && nd->sysfs_ready)
				err = neuron_watch_start(nd);
		}
	}
	/* Either all devices tell of changes or none does. */
	if (val == -1 || err)
		static_branch_disable(&neuron_notify);
	mutex_unlock(&neuron_devices_lock);
	return err ?: count;
}

/* 0 in reset, 1 ready, 2 invalid (uapi/FACTS.md 3). */
static ssize_t show_reset(struct neuron_node *node, char *buf)
{
	u32 i, state = neuron_device_gone(node->nd) ? 2 : 1;

	for (i = 0; i < node->nd->geo->nr_cores; i++) {
		enum neuron_core_state core = READ_ONCE(node->nd->core[i].state);

		if (core == NEURON_CORE_WEDGED)
			state = 2;
		else if (core == NEURON_CORE_RESETTING && state == 1)
			state = 0;
	}
	return sysfs_emit(buf, "%u\n", state);
}

static ssize_t store_reset(struct neuron_node *node, const char *buf, size_t count)
{
	return neuron_device_reset(node->nd) ?: (ssize_t)count;
}

#define ECC_FILE(_name, _event)								\
static ssize_t show_##_name(struct neuron_node *node, char *buf)			\
{											\
	return sysfs_emit(buf, "%llu\n", neuron_health_ecc(node->nd, _event));		\
}											\
static ssize_t clear_##_name(struct neuron_node *node, const char *buf, size_t count)	\
{											\
	neuron_health_clear(node->nd, _event);						\
	return count;									\
}
ECC_FILE(mem_corrected, NEURON_EVENT_MEM_CORRECTED)
ECC_FILE(mem_uncorrected, NEURON_EVENT_MEM_UNCORRECTED)
ECC_FILE(mem_repairable, NEURON_EVENT_MEM_REPAIRABLE)
ECC_FILE(sram_corrected, NEURON_EVENT_SRAM_CORRECTED)
ECC_FILE(sram_uncorrected, NEURON_EVENT_SRAM_UNCORRECTED)

static ssize_t show_hw_errors(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%lld\n", atomic64_read(&node->nd->health.hw_errors));
}

static ssize_t clear_hw_errors(struct neuron_node *node, const char *buf, size_t count)
{
	atomic64_set(&node->nd->health.hw_errors, 0);
	return count;
}

static ssize_t show_heartbeat(struct neuron_node *node, char *buf)
{
	/* Reading a count from the device updates its heartbeat. */
	neuron_health_ecc(node->nd, NEURON_EVENT_MEM_UNCORRECTED);
	return sysfs_emit(buf, "%lld\n", atomic64_read(&node->nd->health.heartbeat));
}

static ssize_t show_unhealthy(struct neuron_node *node, char *buf)
{
	static const struct {
		const char *name;
		enum neuron_event event;
	} parts[] = {
		{ "hbm", NEURON_EVENT_MEM_UNCORRECTED },
		{ "sram", NEURON_EVENT_SRAM_UNCORRECTED },
	};
	int len = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		if (neuron_health_ecc(node->nd, parts[i].event))
			len += sysfs_emit_at(buf, len, "%s%s", len ? "," : "", parts[i].name);
	return len + sysfs_emit_at(buf, len, "\n");
}

static const char *power_status(int err)
{
	return err == -ENODATA ? "POWER_STATUS_NO_DATA" :
	       err ? "POWER_STATUS_INVALID" : "POWER_STATUS_VALID";
}

static ssize_t show_utilization(struct neuron_node *node, char *buf)
{
	struct neuron_power p;
	int err = neuron_health_power(node->nd, &p);

	/* Parts of NEURON_POWER_MAX as percent with two decimals. */
	return sysfs_emit(buf, "%s,%llu,%u.%02u,%u.%02u,%u.%02u\n", power_status(err), p.time,
			  p.min / 100, p.min % 100, p.max / 100, p.max % 100, p.avg / 100,
			  p.avg % 100);
}

static ssize_t show_utilization_raw(struct neuron_node *node, char *buf)
{
	struct neuron_power p;
	int err = neuron_health_power(node->nd, &p);

	return sysfs_emit(buf, "%s,%llu,%u.%02u\n", power_status(err), p.time, p.now / 100,
			  p.now % 100);
}

static ssize_t show_limit(char *buf, u64 limit)
{
	return limit == NEURON_NO_LIMIT ? sysfs_emit(buf, "max\n") :
					  sysfs_emit(buf, "%llu\n", limit);
}

/* A number that may end with one of K, M, G, T, P and E, for powers of 1024. */
static int parse_bytes(const char *buf, u64 *bytes)
{
	static const char units[] = "KMGTPE";
	char text[32];
	const char *unit;
	u64 n;
	int err = kstrtou64(buf, 0, bytes), len = strcspn(buf, "\n");

	/* Hexadecimal digits come first: 0xE is 14. */
	if (err != -EINVAL || !len || len >= (int)sizeof(text))
		return err;
	strscpy(text, buf, len);
	unit = strchr(units, toupper(buf[len - 1]));
	if (!unit)
		return -EINVAL;
	err = kstrtou64(text, 0, &n);
	if (err)
		return err;
	return check_shl_overflow(n, 10 * (unit - units + 1), bytes) ? -ERANGE : 0;
}

static ssize_t store_limit(const char *buf, size_t count, u64 *limit)
{
	u64 val = NEURON_NO_LIMIT;
	int err;

	if (!sysfs_streq(buf, "max")) {
		err = parse_bytes(buf, &val);
		if (err)
			return err;
	}
	WRITE_ONCE(*limit, val);
	return count;
}

static ssize_t show_process_limit(struct neuron_node *node, char *buf)
{
	return show_limit(buf, READ_ONCE(node->nd->process_limit));
}

static ssize_t store_process_limit(struct neuron_node *node, const char *buf, size_t count)
{
	return store_limit(buf, count, &node->nd->process_limit);
}

static ssize_t show_isolation(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%s\n", neuron_isolation_name(node->nd));
}

static ssize_t show_host_limit(struct neuron_node *node, char *buf)
{
	return show_limit(buf, neuron_host_limit(false));
}

static ssize_t show_process_host_limit(struct neuron_node *node, char *buf)
{
	return show_limit(buf, neuron_host_limit(true));
}

static ssize_t show_core_limit(struct neuron_node *node, char *buf)
{
	return show_limit(buf, READ_ONCE(node->nd->core[node->core].limit));
}

static ssize_t show_quarantine(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%llu\n", neuron_core_held(&node->nd->core[node->core]));
}

static ssize_t store_core_limit(struct neuron_node *node, const char *buf, size_t count)
{
	return store_limit(buf, count, &node->nd->core[node->core].limit);
}

static struct neuron_buddy_stats hbm_figures(struct neuron_node *node)
{
	struct neuron_buddy_stats stats;

	neuron_hbm_figures(&node->nd->hbm[node->core], &stats);
	return stats;
}

static ssize_t show_hbm_total(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%llu\n", hbm_figures(node).total);
}

static ssize_t show_hbm_used(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%llu\n", hbm_figures(node).used);
}

static ssize_t show_hbm_free(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%llu\n", hbm_figures(node).free);
}

static ssize_t show_hbm_largest(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%llu\n", neuron_hbm_largest(&node->nd->hbm[node->core],
							     NEURON_BUDDY_GRANULE));
}

static ssize_t show_hbm_largest_2m(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%llu\n", neuron_hbm_largest(&node->nd->hbm[node->core], SZ_2M));
}

static ssize_t show_hbm_high_water(struct neuron_node *node, char *buf)
{
	return sysfs_emit(buf, "%llu\n", hbm_figures(node).high_water);
}

static const struct neuron_sysfs_row neuron_sysfs_table[] = {
	FILE_ROOT(DEV, "reset", show_reset, store_reset),
	FILE_RW(DEV, "stats/hardware/mem_ecc_corrected", show_mem_corrected,
		clear_mem_corrected),
	FILE_RW(DEV, "stats/hardware/mem_ecc_uncorrected", show_mem_uncorrected,
		clear_mem_uncorrected),
	FILE_RW(DEV, "stats/hardware/mem_ecc_repairable_uncorrected", show_mem_repairable,
		clear_mem_repairable),
	FILE_RW(DEV, "stats/hardware/sram_ecc_corrected", show_sram_corrected,
		clear_sram_corrected),
	FILE_RW(DEV, "stats/hardware/sram_ecc_uncorrected", show_sram_uncorrected,
		clear_sram_uncorrected),
	FILE_RO(DEV, "stats/hardware/health_status/mem_ecc_corrected", show_mem_corrected),
	FILE_RO(DEV, "stats/hardware/health_status/mem_ecc_uncorrected", show_mem_uncorrected),
	FILE_RO(DEV, "stats/hardware/health_status/mem_ecc_repairable_uncorrected",
		show_mem_repairable),
	FILE_RO(DEV, "stats/hardware/health_status/sram_ecc_corrected", show_sram_corrected),
	FILE_RO(DEV, "stats/hardware/health_status/sram_ecc_uncorrected", show_sram_uncorrected),
	FILE_RW(DEV, "stats/hardware/health_status/hw_error_event",
		show_hw_errors, clear_hw_errors),
	FILE_RO(DEV, "stats/hardware/health_status/healthcheck_heartbeat", show_heartbeat),
	FILE_RO(DEV, "stats/hardware/health_status/unhealthy_components", show_unhealthy),
	FILE_RO(DEV, "stats/power/utilization", show_utilization),
	FILE_RO(DEV, "stats/power/utilization_raw", show_utilization_raw),
	FILE_RO(DEV, "core_count", show_core_count),
	FILE_RO(DEV, "connected_devices", show_connected),
	FILE_RW(DEV, "info/notify_delay", show_notify_delay, store_notify_delay),
	FILE_RO(DEV, "info/serial_number", show_serial),
	FILE_RO(DEV, "info/architecture/arch_type", show_nd_arch),
	FILE_RO(DEV, "info/architecture/device_name", show_device_name),
	FILE_RO(DEV, "info/architecture/instance_type", show_instance_type),
	MEM(DEV, "stats/memory_usage/host_mem", DEV_HOST_SUM, 0),
	MEM(DEV, "stats/memory_usage/host_mem/application_memory", DEV_HOST,
	    NEURON_MEMALLOC_TYPE_MISC_HOST),
	MEM(DEV, "stats/memory_usage/host_mem/constants", DEV_HOST,
	    NEURON_MEMALLOC_TYPE_CONSTANTS_HOST),
	MEM(DEV, "stats/memory_usage/host_mem/dma_buffers", DEV_HOST,
	    NEURON_MEMALLOC_TYPE_CODE_HOST),
	MEM(DEV, "stats/memory_usage/host_mem/dma_rings", DEV_HOST,
	    NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST),
	MEM(DEV, "stats/memory_usage/host_mem/driver_memory", DEV_HOST,
	    NEURON_MEMALLOC_TYPE_NCDEV_HOST),
	MEM(DEV, "stats/memory_usage/host_mem/notifications", DEV_HOST,
	    NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST),
	MEM(DEV, "stats/memory_usage/host_mem/tensors", DEV_HOST,
	    NEURON_MEMALLOC_TYPE_TENSORS_HOST),
	MEM(DEV, "stats/memory_usage/host_mem/uncategorized", DEV_HOST,
	    NEURON_MEMALLOC_TYPE_UNKNOWN_HOST),

	/* Files that only this driver has. */
	FILE_RO(DEV, "isolation", show_isolation),
	FILE_RO(DEV, "limits/host_memory", show_host_limit),
	FILE_RO(DEV, "limits/process_host_memory", show_process_host_limit),
	FILE_RW(DEV, "limits/process_memory", show_process_limit, store_process_limit),

	FILE_RO(HBM, "total", show_hbm_total),
	FILE_RO(HBM, "used", show_hbm_used),
	FILE_RO(HBM, "free", show_hbm_free),
	FILE_RO(HBM, "largest_free", show_hbm_largest),
	FILE_RO(HBM, "largest_free_2m", show_hbm_largest_2m),
	FILE_RO(HBM, "high_water", show_hbm_high_water),

	FILE_RO(CORE, "quarantine", show_quarantine),
	FILE_RW(CORE, "limits/memory", show_core_limit, store_core_limit),
	FILE_RO(CORE, "info/architecture/arch_type", show_nc_arch),
	MEM(CORE, "stats/memory_usage/host_mem", CORE_HOST, 0),
	MEM(CORE, "stats/memory_usage/device_mem", CORE_DEVICE, 0),
	MEM(CORE, "stats/memory_usage/device_mem/collectives", CORE_CATEGORY,
	    NEURON_MEMALLOC_TYPE_COLLECTIVES_DEVICE),
	MEM(CORE, "stats/memory_usage/device_mem/constants", CORE_CATEGORY,
	    NEURON_MEMALLOC_TYPE_CONSTANTS_DEVICE),
	MEM(CORE, "stats/memory_usage/device_mem/dma_rings", CORE_CATEGORY,
	    NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE),
	MEM(CORE, "stats/memory_usage/device_mem/driver_memory", CORE_CATEGORY,
	    NEURON_MEMALLOC_TYPE_NCDEV_DEVICE),
	MEM(CORE, "stats/memory_usage/device_mem/model_code", CORE_CATEGORY,
	    NEURON_MEMALLOC_TYPE_CODE_DEVICE),
	MEM(CORE, "stats/memory_usage/device_mem/model_shared_scratchpad", CORE_CATEGORY,
	    NEURON_MEMALLOC_TYPE_SCRATCHPAD_DEVICE),
	MEM(CORE, "stats/memory_usage/device_mem/nonshared_scratchpad", CORE_CATEGORY,
	    NEURON_MEMALLOC_TYPE_SCRATCHPAD_NONSHARED_DEVICE),
	MEM(CORE, "stats/memory_usage/device_mem/notifications", CORE_CATEGORY,
	    NEURON_MEMALLOC_TYPE_NOTIFICATION_DEVICE),
	MEM(CORE, "stats/memory_usage/device_mem/runtime_memory", CORE_CATEGORY,
	    NEURON_MEMALLOC_TYPE_MISC_DEVICE),
	MEM(CORE, "stats/memory_usage/device_mem/tensors", CORE_CATEGORY,
	    NEURON_MEMALLOC_TYPE_TENSORS_DEVICE),
	MEM(CORE, "stats/memory_usage/device_mem/uncategorized", CORE_CATEGORY,
	    NEURON_MEMALLOC_TYPE_UNKNOWN_DEVICE),
	COUNT(CORE, "stats/status/success", CORE_NDS,
	      NDS_NC_COUNTER_INFER_COMPLETED),
	COUNT(CORE, "stats/status/failure", CORE_NDS,
	      NDS_NC_COUNTER_GENERIC_FAIL),
	COUNT(CORE, "stats/status/timeout", CORE_NDS,
	      NDS_NC_COUNTER_INFER_TIMED_OUT),
	COUNT(CORE, "stats/status/exec_bad_input", CORE_NDS,
	      NDS_NC_COUNTER_INFER_INCORRECT_INPUT),
	COUNT(CORE, "stats/status/hw_error", CORE_NDS,
	      NDS_NC_COUNTER_ERR_HW),
	COUNT(CORE, "stats/status/execute_completed_with_error", CORE_NDS,
	      NDS_NC_COUNTER_INFER_COMPLETED_WITH_ERR),
	COUNT(CORE, "stats/status/execute_completed_with_num_error", CORE_NDS,
	      NDS_NC_COUNTER_INFER_COMPLETED_WITH_NUM_ERR),
	COUNT(CORE, "stats/status/generic_error", CORE_NDS,
	      NDS_NC_COUNTER_ERR_GENERIC),
	COUNT(CORE, "stats/status/resource_error", CORE_NDS,
	      NDS_NC_COUNTER_ERR_RESOURCE),
	COUNT(CORE, "stats/status/resource_nc_error", CORE_NDS,
	      NDS_NC_COUNTER_ERR_RESOURCE_NC),
	COUNT(CORE, "stats/status/execute_failed_to_queue", CORE_NDS,
	      NDS_NC_COUNTER_INFER_FAILED_TO_QUEUE),
	COUNT(CORE, "stats/status/invalid_error", CORE_NDS,
	      NDS_NC_COUNTER_ERR_INVALID),
	COUNT(CORE, "stats/status/unsupported_neff_version", CORE_NDS,
	      NDS_NC_COUNTER_ERR_UNSUPPORTED_NEFF_VERSION),
	COUNT(CORE, "stats/status/oob_error", CORE_NDS,
	      NDS_NC_COUNTER_OOB),
	COUNT(CORE, "stats/status/hw_collectives_error", CORE_NDS,
	      NDS_EXT_NC_COUNTER_HW_ERR_COLLECTIVES),
	COUNT(CORE, "stats/status/hw_hbm_ue_error", CORE_NDS,
	      NDS_EXT_NC_COUNTER_HW_ERR_HBM_UE),
	COUNT(CORE, "stats/status/hw_nc_ue_error", CORE_NDS,
	      NDS_EXT_NC_COUNTER_HW_ERR_NC_UE),
	COUNT(CORE, "stats/status/hw_dma_abort_error", CORE_NDS,
	      NDS_EXT_NC_COUNTER_HW_ERR_DMA_ABORT),
	COUNT(CORE, "stats/status/execute_sw_nq_overflow", CORE_NDS,
	      NDS_EXT_NC_COUNTER_ERR_SW_NQ_OVERFLOW),
	COUNT(CORE, "stats/status/execute_sw_semaphore_error", CORE_NDS,
	      NDS_EXT_NC_COUNTER_ERR_SW_SEMAPHORE_ERROR),
	COUNT(CORE, "stats/status/execute_sw_event_error", CORE_NDS,
	      NDS_EXT_NC_COUNTER_ERR_SW_EVENT_ERROR),
	COUNT(CORE, "stats/status/execute_sw_psum_collision", CORE_NDS,
	      NDS_EXT_NC_COUNTER_ERR_SW_PSUM_COLLISION),
	COUNT(CORE, "stats/status/execute_sw_sequencer_fatal", CORE_NDS,
	      NDS_EXT_NC_COUNTER_ERR_SW_SEQUENCER_FATAL),
	COUNT(CORE, "stats/status/hw_repairable_hbm_ue_error", CORE_NDS,
	      NDS_EXT_NC_COUNTER_HW_ERR_REPAIRABLE_HBM_UE),
	/* The names of the user guide (uapi/FACTS.md 9) for three of them. */
	COUNT(CORE, "stats/status/infer_completed_with_error", CORE_NDS,
	      NDS_NC_COUNTER_INFER_COMPLETED_WITH_ERR),
	COUNT(CORE, "stats/status/infer_completed_with_num_error", CORE_NDS,
	      NDS_NC_COUNTER_INFER_COMPLETED_WITH_NUM_ERR),
	COUNT(CORE, "stats/status/infer_failed_to_queue", CORE_NDS,
	      NDS_NC_COUNTER_INFER_FAILED_TO_QUEUE),
	COUNT(CORE, "stats/other_info/model_load_count", CORE_NDS,
	      NDS_NC_COUNTER_MODEL_LOAD_COUNT),
	COUNT(CORE, "stats/other_info/inference_count", CORE_NDS,
	      NDS_NC_COUNTER_INFERENCE_COUNT),
	COUNT(CORE, "stats/other_info/flop_count", CORE_NDS, NDS_NC_COUNTER_MAC_COUNT),
	COUNT(CORE, "stats/other_info/nc_time_in_use", CORE_NDS, NDS_NC_COUNTER_TIME_IN_USE),
	COUNT(CORE, "stats/other_info/reset_req_count", CORE_RESETS, 0),
	COUNT(CORE, "stats/other_info/reset_fail_count", CORE_RESETS, 1),
};

/*
 * The attribute of each row; a row is found by the position of its attribute.
 * Files right below neuronN belong to the device and need its kind of
 * attribute; the others only use .attr.
 */
static struct device_attribute neuron_file_attrs[ARRAY_SIZE(neuron_sysfs_table)];

/* Those of the counters, whose row is found in the same way. */
enum neuron_figure { TOTAL, PRESENT, PEAK, NEURON_NR_FIGURES };
static const char * const neuron_figures[] = { "total", "present", "peak" };
static struct attribute neuron_counter_attrs[ARRAY_SIZE(neuron_sysfs_table)][NEURON_NR_FIGURES];

static bool neuron_attr_is_counter(const struct attribute *attr)
{
	const struct attribute *first = neuron_counter_attrs[0];

	return attr >= first && attr < first + sizeof(neuron_counter_attrs) / sizeof(*first);
}

static enum neuron_figure neuron_attr_figure(const struct attribute *attr)
{
	return (attr - neuron_counter_attrs[0]) % NEURON_NR_FIGURES;
}

static const struct neuron_sysfs_row *neuron_attr_row(const struct attribute *attr)
{
	u32 i;

	if (neuron_attr_is_counter(attr))
		i = (attr - neuron_counter_attrs[0]) / NEURON_NR_FIGURES;
	else
		i = container_of(attr, struct device_attribute, attr) - neuron_file_attrs;
	return &neuron_sysfs_table[i];
}

/* Does the row count memory?  Else, or if it is a file: NULL. */
static struct neuron_counter *neuron_row_counter(const struct neuron_sysfs_row *row,
						 struct neuron_device *nd, u32 core)
{
	switch (row->where) {
	case DEV_HOST:
		return &nd->host_category[row->category];
	case DEV_HOST_SUM:
		return &nd->host_mem;
	case CORE_HOST:
		return &nd->core[core].host_mem;
	case CORE_DEVICE:
		return &nd->core[core].device_mem;
	case CORE_CATEGORY:
		return &nd->core[core].category[row->category];
	default:
		return NULL;
	}
}

static bool neuron_row_is_count(const struct neuron_sysfs_row *row)
{
	return row->where == CORE_NDS || row->where == CORE_RESETS;
}

static atomic64_t *neuron_counter_field(struct neuron_counter *c, enum neuron_figure figure)
{
	return figure == TOTAL ? &c->total : figure == PRESENT ? &c->present : &c->peak;
}

static atomic64_t *neuron_core_resets(struct neuron_core *core,
				      const struct neuron_sysfs_row *row)
{
	return row->category ? &core->reset_fail : &core->reset_req;
}

static void neuron_count_read(struct neuron_device *nd, u32 core,
			      const struct neuron_sysfs_row *row, u64 *now)
{
	if (row->where == CORE_RESETS) {
		now[TOTAL] = atomic64_read(neuron_core_resets(&nd->core[core], row));
		now[PRESENT] = !!now[TOTAL];
	} else {
		neuron_nds_read(nd, core, row->category, &now[TOTAL], &now[PRESENT]);
		/* Processes count multiply-accumulates: two operations (uapi/FACTS.md 9). */
		if (row->category == NDS_NC_COUNTER_MAC_COUNT) {
			now[TOTAL] *= 2;
			now[PRESENT] *= 2;
		}
	}
}

static ssize_t neuron_node_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	struct neuron_node *node = container_of(kobj, struct neuron_node, kobj);
	const struct neuron_sysfs_row *row = neuron_attr_row(attr);
	struct neuron_counter *c;
	u64 now[2];

	if (!neuron_attr_is_counter(attr))
		return row->show(node, buf);
	c = neuron_row_counter(row, node->nd, node->core);
	if (c)
		return sysfs_emit(buf, "%lld\n",
				  atomic64_read(neuron_counter_field(c, neuron_attr_figure(attr))));
	neuron_count_read(node->nd, node->core, row, now);
	return sysfs_emit(buf, "%llu\n", now[neuron_attr_figure(attr)]);
}

/*
 * Writing anything clears a figure.  What is in use now cannot be cleared, so
 * a write to total changes nothing and the peak starts again from there.
 */
static void neuron_mem_clear(struct neuron_counter *c, enum neuron_figure figure)
{
	if (figure == PRESENT)
		atomic64_set(&c->present, 0);
	else if (figure == PEAK)
		atomic64_set(&c->peak, atomic64_read(&c->total));
	if (static_branch_unlikely(&neuron_notify))
		neuron_counter_tell(c);
}

static void neuron_count_clear(struct neuron_node *node, const struct neuron_sysfs_row *row,
			       enum neuron_figure figure)
{
	if (row->where == CORE_RESETS)
		atomic64_set(neuron_core_resets(&node->nd->core[node->core], row), 0);
	else
		neuron_nds_clear(node->nd, node->core, row->category, figure == TOTAL);
}

static struct kobject *neuron_walk(struct neuron_device *nd, struct kobject *parent,
				   const char *path, u32 core, bool dir);

/* Wake the pollers of a file of a core. */
static void neuron_count_tell(struct neuron_device *nd, u32 core,
			      const struct neuron_sysfs_row *row, enum neuron_figure figure)
{
	struct kobject *parent;
	char path[96];

	/* All nodes are there already: none is made. */
	snprintf(path, sizeof(path), "neuron_core%u/%s", core, row->path);
	parent = neuron_walk(nd, &nd->dev.kobj, path, core, false);
	if (!WARN_ON_ONCE(IS_ERR(parent)))
		sysfs_notify(parent, kbasename(path), neuron_figures[figure]);
}

/* Look at all counters of cores that are no memory; tell pollers of those that changed. */
static void neuron_watch_look(struct neuron_device *nd, bool notify)
{
	u64 now[2], (*seen)[2] = nd->sysfs->seen;
	u32 core, i, figure;

	for (core = 0; core < nd->geo->nr_cores; core++) {
		for (i = 0; i < ARRAY_SIZE(neuron_sysfs_table); i++) {
			const struct neuron_sysfs_row *row = &neuron_sysfs_table[i];

			if (!neuron_row_is_count(row))
				continue;
			neuron_count_read(nd, core, row, now);
			for (figure = TOTAL; figure <= PRESENT; figure++)
				if (notify && now[figure] != (*seen)[figure])
					neuron_count_tell(nd, core, row, figure);
			memcpy(seen++, now, sizeof(now));
		}
	}
}

static void neuron_watch_work(struct work_struct *work)
{
	struct neuron_sysfs *sysfs = container_of(work, struct neuron_sysfs, watch.work);

	if (!static_key_enabled(&neuron_notify))
		return;
	neuron_watch_look(sysfs->nd, true);
	schedule_delayed_work(&sysfs->watch, NEURON_WATCH_INTERVAL);
}

/* Under neuron_devices_lock.  Return: 0, -ENOMEM. */
static int neuron_watch_start(struct neuron_device *nd)
{
	struct neuron_sysfs *sysfs = nd->sysfs;
	u32 i, n = 0;

	/* The work of an earlier watch may not have stopped yet. */
	cancel_delayed_work_sync(&sysfs->watch);
	if (!sysfs->seen) {
		for (i = 0; i < ARRAY_SIZE(neuron_sysfs_table); i++)
			n += neuron_row_is_count(&neuron_sysfs_table[i]);
		sysfs->seen = kcalloc(n * nd->geo->nr_cores, sizeof(*sysfs->seen), GFP_KERNEL);
		if (!sysfs->seen)
			return -ENOMEM;
	}
	neuron_watch_look(nd, false);
	schedule_delayed_work(&sysfs->watch, NEURON_WATCH_INTERVAL);
	return 0;
}

static ssize_t neuron_node_store(struct kobject *kobj, struct attribute *attr, const char *buf,
				 size_t count)
{
	struct neuron_node *node = container_of(kobj, struct neuron_node, kobj);
	const struct neuron_sysfs_row *row = neuron_attr_row(attr);
	struct neuron_counter *c;

	if (!neuron_attr_is_counter(attr))
		return row->store ? row->store(node, buf, count) : -EIO;
	c = neuron_row_counter(row, node->nd, node->core);
	if (c)
		neuron_mem_clear(c, neuron_attr_figure(attr));
	else
		neuron_count_clear(node, row, neuron_attr_figure(attr));
	return count;
}

static const struct sysfs_ops neuron_node_ops = {
	.show = neuron_node_show,
	.store = neuron_node_store,
};

static void neuron_node_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct neuron_node, kobj));
}

static const struct kobj_type neuron_node_type = {
	.release = neuron_node_release,
	.sysfs_ops = &neuron_node_ops,
};

static struct neuron_node *neuron_node_get(struct neuron_device *nd, struct kobject *parent,
					   const char *name, u32 core)
{
	struct neuron_node *node;
	int err;

	list_for_each_entry(node, &nd->sysfs->nodes, list)
		if (node->kobj.parent == parent && !strcmp(kobject_name(&node->kobj), name))
			return node;

	node = kzalloc(sizeof(*node), GFP_KERNEL);
	if (!node)
		return ERR_PTR(-ENOMEM);
	node->nd = nd;
	node->core = core;
	err = kobject_init_and_add(&node->kobj, &neuron_node_type, parent, "%s", name);
	if (err) {
		kobject_put(&node->kobj);
		return ERR_PTR(err);
	}
	list_add_tail(&node->list, &nd->sysfs->nodes);
	return node;
}

/*
 * The directory of a file or, with @dir, the directory that the path names;
 * made with all its parents if it does not exist.
 */
static struct kobject *neuron_walk(struct neuron_device *nd, struct kobject *parent,
				   const char *path, u32 core, bool dir)
{
	struct neuron_node *node;
	const char *end;
	char name[40];

	for (;;) {
		end = strchrnul(path, '/');
		if (!*end && !dir)
			return parent;
		if (end - path >= sizeof(name))
			return ERR_PTR(-ENAMETOOLONG);
		memcpy(name, path, end - path);
		name[end - path] = '\0';
		node = neuron_node_get(nd, parent, name, core);
		if (IS_ERR(node))
			return ERR_CAST(node);
		if (!*end)
			return &node->kobj;
		parent = &node->kobj;
		path = end + 1;
	}
}

/* A counter: a group of attributes, unless other directories are below it. */
static int neuron_counter_add(struct neuron_device *nd, struct kobject *root,
			      const struct neuron_sysfs_row *row, u32 core)
{
	struct neuron_counter *c = neuron_row_counter(row, nd, core);
	bool parent = row->where == CORE_DEVICE || row->where == DEV_HOST_SUM;
	struct kobject *kobj = neuron_walk(nd, root, row->path, core, parent);
	struct attribute *attrs[NEURON_NR_FIGURES + 1] = { NULL };
	struct attribute_group group = { .attrs = attrs };
	struct kernfs_node *dir;
	int err;
	u32 i;

	if (IS_ERR(kobj))
		return PTR_ERR(kobj);
	dir = kobj->sd;
	for (i = 0; i < (c ? NEURON_NR_FIGURES : PEAK); i++)
		attrs[i] = &neuron_counter_attrs[row - neuron_sysfs_table][i];
	if (!parent)
		group.name = kbasename(row->path);
	err = sysfs_create_group(kobj, &group);
	if (err || !c)
		return err;
	/* It stays as long as its parent; see neuron_counter_changed(). */
	if (group.name) {
		dir = sysfs_get_dirent(dir, group.name);
		sysfs_put(dir);
	}
	WRITE_ONCE(c->dir, dir);
	return 0;
}

static int neuron_row_add(struct neuron_device *nd, struct kobject *root,
			  const struct neuron_sysfs_row *row, u32 core)
{
	struct kobject *kobj;

	if (row->where != NONE)
		return neuron_counter_add(nd, root, row, core);
	kobj = neuron_walk(nd, root, row->path, core, false);
	if (IS_ERR(kobj))
		return PTR_ERR(kobj);
	return sysfs_create_file(kobj, &neuron_file_attrs[row - neuron_sysfs_table].attr);
}

static ssize_t neuron_root_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct neuron_node node = { .nd = container_of(dev, struct neuron_device, dev) };

	return neuron_attr_row(&attr->attr)->show(&node, buf);
}

static ssize_t neuron_root_store(struct device *dev, struct device_attribute *attr,
				 const char *buf, size_t count)
{
	struct neuron_node node = { .nd = container_of(dev, struct neuron_device, dev) };

	return neuron_attr_row(&attr->attr)->store(&node, buf, count);
}

/**
 * neuron_sysfs_init() - prepare the table
 *
 * Context: module initialisation.
 */
void __init neuron_sysfs_init(void)
{
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(neuron_sysfs_table); i++) {
		const struct neuron_sysfs_row *row = &neuron_sysfs_table[i];

		for (k = 0; k < NEURON_NR_FIGURES; k++) {
			neuron_counter_attrs[i][k].name = neuron_figures[k];
			neuron_counter_attrs[i][k].mode = 0644;
		}
		neuron_file_attrs[i].attr.name = kbasename(row->path);
		neuron_file_attrs[i].attr.mode = row->mode;
		neuron_file_attrs[i].show = neuron_root_show;
		if (row->store)
			neuron_file_attrs[i].store = neuron_root_store;
	}
}

/* Remember the files that show the device's health. */
static int neuron_health_files(struct neuron_device *nd)
{
	struct kobject *dir = neuron_walk(nd, &nd->dev.kobj, NEURON_HEALTH_DIR, 0, true);
	u32 i, n = 0;

	if (IS_ERR(dir))
		return PTR_ERR(dir);
	for (i = 0; i < ARRAY_SIZE(neuron_sysfs_table); i++)
		if (strstarts(neuron_sysfs_table[i].path, NEURON_HEALTH_DIR) &&
		    !WARN_ON_ONCE(n == NEURON_HEALTH_FILES))
			nd->health.files[n++] =
				sysfs_get_dirent(dir->sd, neuron_file_attrs[i].attr.name);
	return 0;
}

/**
 * neuron_sysfs_del() - remove the tree of a device
 * @nd: device
 *
 * Context: may sleep; waits for readers.
 */
void neuron_sysfs_del(struct neuron_device *nd)
{
	struct neuron_node *node, *next;
	u32 i;

	if (!nd->sysfs)
		return;
	mutex_lock(&neuron_devices_lock);
	nd->sysfs_ready = false;
	mutex_unlock(&neuron_devices_lock);
	cancel_delayed_work_sync(&nd->sysfs->watch);
	for (i = 0; i < ARRAY_SIZE(neuron_sysfs_table); i++)
		if (neuron_sysfs_table[i].scope == DEV &&
		    !strchr(neuron_sysfs_table[i].path, '/'))
			sysfs_remove_file(&nd->dev.kobj, &neuron_file_attrs[i].attr);
	for (i = 0; i < NEURON_HEALTH_FILES; i++)
		sysfs_put(nd->health.files[i]);
	list_for_each_entry_safe_reverse(node, next, &nd->sysfs->nodes, list) {
		list_del(&node->list);
		kobject_del(&node->kobj);
		kobject_put(&node->kobj);
	}
	kfree(nd->sysfs->seen);
	kfree(nd->sysfs);
	nd->sysfs = NULL;
}

/* The directory of a core or HBM, with all that is in it. */
static int neuron_scope_add(struct neuron_device *nd, enum neuron_sysfs_scope scope,
			    const char *prefix, u32 index)
{
	struct neuron_node *root;
	char name[24];
	int err;
	u32 i;

	snprintf(name, sizeof(name), "%s%u", prefix, index);
	root = neuron_node_get(nd, &nd->dev.kobj, name, index);
	err = PTR_ERR_OR_ZERO(root);
	for (i = 0; i < ARRAY_SIZE(neuron_sysfs_table) && !err; i++)
		if (neuron_sysfs_table[i].scope == scope)
			err = neuron_row_add(nd, &root->kobj, &neuron_sysfs_table[i], index);
	return err;
}

/**
 * neuron_sysfs_add() - make the tree of a device
 * @nd: device, known to sysfs but not yet announced
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM; nothing is left behind on error.
 */
int neuron_sysfs_add(struct neuron_device *nd)
{
	u32 i;
	int err = 0;

	nd->sysfs = kzalloc(sizeof(*nd->sysfs), GFP_KERNEL);
	if (!nd->sysfs)
		return -ENOMEM;
	nd->sysfs->nd = nd;
	INIT_DELAYED_WORK(&nd->sysfs->watch, neuron_watch_work);
	INIT_LIST_HEAD(&nd->sysfs->nodes);

	for (i = 0; i < ARRAY_SIZE(neuron_sysfs_table) && !err; i++)
		if (neuron_sysfs_table[i].scope == DEV)
			err = neuron_row_add(nd, &nd->dev.kobj, &neuron_sysfs_table[i], 0);
	err = err ?: neuron_health_files(nd);
	for (i = 0; i < nd->geo->nr_hbms && !err; i++)
		err = neuron_scope_add(nd, HBM, "hbm", i);
	for (i = 0; i < nd->geo->nr_cores && !err; i++)
		err = neuron_scope_add(nd, CORE, "neuron_core", i);
	if (err) {
		neuron_sysfs_del(nd);
		return err;
	}
	mutex_lock(&neuron_devices_lock);
	if (static_key_enabled(&neuron_notify))
		err = neuron_watch_start(nd);
	nd->sysfs_ready = !err;
	mutex_unlock(&neuron_devices_lock);
	if (err)
		neuron_sysfs_del(nd);
	return err;
}

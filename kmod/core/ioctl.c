// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctl dispatcher: one table for both doors.
 *
 * A row of the compatible door (uapi/neuron_ioctl.h) is found by its whole
 * value, because several layouts share a number.  A row of the native door
 * (uapi/neuron_native.h) is found by its number; its structure starts with
 * its size.
 */
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/device.h"
#include "../compat/compat.h"
#include "ioctl.h"

#define IN		0x01	/* copy the argument in */
#define OUT		0x02	/* copy it out after success */
#define OUT_ERR		0x04	/* also copy it out after a shortage: it says why */
#define ANY		0x08	/* also on write-only and foreign descriptors */
#define NATIVE		0x10	/* found by number, sized by its first member */
#define PARTS		0x20	/* ENOMEM may leave a part done or a result taken: no retry */

/* Arguments up to this size live on the stack. */
#define NEURON_IOCTL_STACK	128

struct neuron_ioctl_row {
	u32 cmd;
	u16 size;		/* of the structure, not what the command encodes */
	u16 min;		/* NATIVE: smallest size accepted */
	u32 flags;
	int (*fn)(struct neuron_call *call);
	void (*undo)(struct neuron_call *call);	/* the result could not be copied out */
};

#define ROW(_name, _type, _flags, _fn) \
	{ .cmd = NEURON_IOCTL_##_name, .size = sizeof(_type), .flags = (_flags), .fn = (_fn) }
#define ROW_UNDO(_name, _type, _flags, _fn, _undo) \
	{ .cmd = NEURON_IOCTL_##_name, .size = sizeof(_type), .flags = (_flags), \
	  .fn = (_fn), .undo = (_undo) }
/* No argument, or one that the handler copies itself. */
#define ROW_RAW(_name, _flags, _fn) \
	{ .cmd = NEURON_IOCTL_##_name, .flags = (_flags), .fn = (_fn) }
#define ROW_NATIVE(_name, _type, _last, _flags, _fn, _undo) \
	{ .cmd = NEURON_NATIVE_##_name, .size = sizeof(_type), \
	  .min = offsetofend(_type, _last), .flags = NATIVE | IN | (_flags), .fn = (_fn), \
	  .undo = (_undo) }

/* Sorted by number. */
static const struct neuron_ioctl_row neuron_ioctls[] = {
	ROW_RAW(DEVICE_RESET, 0, neuron_do_device_reset),
	ROW(DEVICE_READY, __u8, OUT, neuron_do_device_ready),
	ROW(DEVICE_INFO, struct neuron_ioctl_device_info, OUT, neuron_do_device_info),
	ROW_RAW(DEVICE_INIT, 0, neuron_do_nop),
	ROW_RAW(DEVICE_RELEASE, 0, neuron_do_nop),
	ROW(DEVICE_APP_PID, __s32, OUT, neuron_do_device_app_pid),
	ROW(DEVICE_GET_ALL_APPS_INFO, struct neuron_ioctl_get_apps_info, IN | OUT,
	    neuron_do_device_get_all_apps_info),
	ROW(BAR_READ, struct neuron_ioctl_bar_rw, IN, neuron_do_bar_read),
	ROW(BAR_WRITE, struct neuron_ioctl_bar_rw, IN | PARTS, neuron_do_bar_write),
	ROW(POST_METRIC, struct neuron_ioctl_post_metric, IN, neuron_do_post_metric),
	ROW(MEM_ALLOC, struct neuron_ioctl_mem_alloc, IN, neuron_do_mem_alloc),
	ROW(MEM_FREE, struct neuron_ioctl_mem_free, IN, neuron_do_mem_free),
	ROW(MEM_COPY, struct neuron_ioctl_mem_copy, IN, neuron_do_mem_copy),
	ROW(MEM_COPY64, struct neuron_ioctl_mem_copy64, IN, neuron_do_mem_copy64),
	ROW(MEM_BUF_COPY, struct neuron_ioctl_mem_buf_copy, IN, neuron_do_mem_buf_copy),
	ROW(MEM_BUF_COPY64, struct neuron_ioctl_mem_buf_copy64, IN, neuron_do_mem_buf_copy64),
	ROW(MEM_GET_PA, struct neuron_ioctl_mem_get_pa, IN, neuron_do_mem_get_pa),
	ROW(MEM_GET_INFO, struct neuron_ioctl_mem_get_info, IN, neuron_do_mem_get_info),
	ROW(PROGRAM_ENGINE, struct neuron_ioctl_program_engine, IN | PARTS,
	    neuron_do_program_engine),
	ROW(MEMSET, struct neuron_ioctl_memset, IN, neuron_do_memset),
	ROW(MEMSET64, struct neuron_ioctl_memset64, IN, neuron_do_memset64),
	ROW(MEM_GET_EXTENDED_INFO, struct neuron_ioctl_mem_get_extended_info, IN | OUT,
	    neuron_do_mem_get_extended_info),
	ROW(DMA_ENG_INIT, struct neuron_ioctl_dma_eng_init, IN, neuron_do_dma_eng_init),
	ROW(DMA_ENG_SET_STATE, struct neuron_ioctl_dma_eng_set_state, IN,
	    neuron_do_dma_eng_set_state),
	ROW(DMA_ENG_GET_STATE, struct neuron_ioctl_dma_eng_get_state, IN,
	    neuron_do_dma_eng_get_state),
	ROW(DMA_QUEUE_INIT, struct neuron_ioctl_dma_queue_init, IN, neuron_do_dma_queue_init),
	ROW(DMA_QUEUE_RELEASE, struct neuron_ioctl_dma_queue_release, IN,
	    neuron_do_dma_queue_release),
	ROW(DMA_QUEUE_COPY_START, struct neuron_ioctl_dma_queue_copy_start, IN,
	    neuron_do_dma_queue_copy_start),
	ROW(DMA_ACK_COMPLETED, struct neuron_ioctl_dma_ack_completed, IN,
	    neuron_do_dma_ack_completed),
	ROW(DMA_QUEUE_GET_STATE, struct neuron_ioctl_dma_queue_get_state, IN,
	    neuron_do_dma_queue_get_state),
	ROW(DMA_COPY_DESCRIPTORS, struct neuron_ioctl_dma_copy_descriptors, IN,
	    neuron_do_dma_copy_descriptors),
	ROW(DMA_COPY_DESCRIPTORS64, struct neuron_ioctl_dma_copy_descriptors64, IN,
	    neuron_do_dma_copy_descriptors64),
	ROW(DMA_DESCRIPTOR_COPYOUT, struct neuron_ioctl_dma_descriptor_copyout, IN,
	    neuron_do_dma_descriptor_copyout),
	/* The vendor's driver dropped these two; programs know this answer. */
	ROW_RAW(DMA_QUIESCE_QUEUES, 0, neuron_do_enotty),
	ROW(SEMAPHORE_INCREMENT, struct neuron_ioctl_semaphore, IN,
	    neuron_do_semaphore_increment),
	ROW(SEMAPHORE_DECREMENT, struct neuron_ioctl_semaphore, IN,
	    neuron_do_semaphore_decrement),
	ROW(SEMAPHORE_READ, struct neuron_ioctl_semaphore, IN | OUT, neuron_do_semaphore_read),
	ROW(SEMAPHORE_WRITE, struct neuron_ioctl_semaphore, IN, neuron_do_semaphore_write),
	ROW(EVENT_SET, struct neuron_ioctl_event, IN, neuron_do_event_set),
	ROW(EVENT_GET, struct neuron_ioctl_event, IN | OUT, neuron_do_event_get),
	ROW(NOTIFICATIONS_INIT_V1, struct neuron_ioctl_notifications_init_v1, IN | OUT,
	    neuron_do_notifications_init_v1),
	ROW_RAW(NOTIFICATIONS_DESTROY_V1, 0, neuron_do_nop),
	ROW(NOTIFICATIONS_INIT_V2, struct neuron_ioctl_notifications_init_v2, IN | OUT,
	    neuron_do_notifications_init_v2),
	ROW(NOTIFICATIONS_INIT_WITH_REALLOC_V2,
	    struct neuron_ioctl_notifications_init_with_realloc_v2, IN | OUT,
	    neuron_do_notifications_init_with_realloc_v2),
	ROW_RAW(NOTIFICATIONS_QUEUE_INFO, 0, neuron_do_eperm),
	ROW(READ_HW_COUNTERS, struct neuron_ioctl_read_hw_counters, IN,
	    neuron_do_read_hw_counters),
	ROW(ACQUIRE_NEURON_DS, struct neuron_ioctl_neuron_ds_info, IN | OUT,
	    neuron_do_acquire_neuron_ds),
	ROW(RELEASE_NEURON_DS, struct neuron_ioctl_neuron_ds_info, IN, neuron_do_release_neuron_ds),
	ROW(CRWL_READER_ENTER, struct neuron_ioctl_crwl, IN, neuron_do_crwl_reader_enter),
	ROW(CRWL_READER_EXIT, struct neuron_ioctl_crwl, IN, neuron_do_crwl_reader_exit),
	ROW(CRWL_WRITER_ENTER, struct neuron_ioctl_crwl, IN, neuron_do_crwl_writer_enter),
	ROW(CRWL_WRITER_DOWNGRADE, struct neuron_ioctl_crwl, IN,
	    neuron_do_crwl_writer_downgrade),
	ROW_UNDO(CRWL_NC_RANGE_MARK, struct neuron_ioctl_crwl_nc_map, IN | OUT | OUT_ERR | ANY,
		 neuron_do_crwl_nc_range_mark, neuron_undo_crwl_nc_range_mark),
	ROW_UNDO(CRWL_NC_RANGE_MARK_EXT0, struct neuron_ioctl_crwl_nc_map_ext,
		 IN | OUT | OUT_ERR | ANY, neuron_do_crwl_nc_range_mark_ext,
		 neuron_undo_crwl_nc_range_mark_ext),
	ROW(CRWL_NC_RANGE_UNMARK, struct neuron_ioctl_crwl_nc_map, IN | ANY,
	    neuron_do_crwl_nc_range_unmark),
	ROW(CRWL_NC_RANGE_UNMARK_EXT0, struct neuron_ioctl_crwl_nc_map_ext, IN | ANY,
	    neuron_do_crwl_nc_range_unmark_ext),
	ROW(CINIT_SET_STATE, struct neuron_ioctl_cinit_set, IN | OUT, neuron_do_cinit_set_state),
	ROW(NC_MODEL_STARTED_COUNT, struct neuron_ioctl_nc_model_started_count, IN | OUT,
	    neuron_do_nc_model_started_count),
	ROW(COMPATIBLE_VERSION, struct neuron_ioctl_compatible_version, OUT | ANY,
	    neuron_do_compatible_version),
	ROW(DEVICE_BASIC_INFO, struct neuron_ioctl_device_basic_info, OUT | ANY,
	    neuron_do_device_basic_info),
	ROW(DEVICE_BDF, struct neuron_ioctl_device_bdf, OUT, neuron_do_device_bdf),
	ROW(MEM_ALLOC_V2, struct neuron_ioctl_mem_alloc_v2, IN, neuron_do_mem_alloc_v2),
	ROW(MEM_ALLOC_V2MT, struct neuron_ioctl_mem_alloc_v2_mem_type, IN,
	    neuron_do_mem_alloc_v2mt),
	ROW(MEM_ALLOC_V2MT64, struct neuron_ioctl_mem_alloc_v2_mem_type64, IN,
	    neuron_do_mem_alloc_v2mt),
	ROW(NC_RESET, struct neuron_ioctl_device_reset, IN | OUT, neuron_do_nc_reset),
	ROW(NC_RESET_READY, struct neuron_ioctl_device_ready, IN | OUT,
	    neuron_do_nc_reset_ready),
	ROW(PROGRAM_ENGINE_NC, struct neuron_ioctl_program_engine_nc, IN | PARTS,
	    neuron_do_program_engine_nc),
	ROW(PROGRAM_ENGINE_NC64, struct neuron_ioctl_program_engine_nc64, IN | PARTS,
	    neuron_do_program_engine_nc64),
	ROW(DEVICE_RESET_STATUS, __u8, OUT, neuron_do_device_ready),
	ROW(DEVICE_BDF_EXT, struct neuron_ioctl_device_bdf_ext, IN | OUT | ANY,
	    neuron_do_device_bdf_ext),
	ROW(DMABUF_FD, struct neuron_ioctl_dmabuf_fd, IN | ANY, neuron_do_dmabuf_fd),
	ROW_UNDO(MEM_COPY_ASYNC, struct neuron_ioctl_mem_copy_async, IN | OUT | PARTS,
		 neuron_do_mem_copy_async, neuron_undo_mem_copy_async),
	ROW_UNDO(MEM_COPY_ASYNC64, struct neuron_ioctl_mem_copy_async64, IN | OUT | PARTS,
		 neuron_do_mem_copy_async64, neuron_undo_mem_copy_async64),
	ROW(MEM_COPY_ASYNC_WAIT, struct neuron_ioctl_mem_copy_async_wait, IN | PARTS,
	    neuron_do_mem_copy_async_wait),
	ROW(DRIVER_INFO_GET, struct neuron_ioctl_device_driver_info, OUT | ANY,
	    neuron_do_driver_info_get),
	ROW_RAW(DRIVER_INFO_SET, ANY, neuron_do_eopnotsupp),
	ROW(MEM_MC_GET_INFO, struct neuron_ioctl_mem_get_mc_mmap_info, IN | OUT,
	    neuron_do_mem_mc_get_info),
	ROW(MEM_MC_GET_INFO_V2, struct neuron_ioctl_mem_get_mc_mmap_info_v2, IN | OUT,
	    neuron_do_mem_mc_get_info_v2),
	ROW(RESOURCE_MMAP_INFO, struct neuron_ioctl_resource_mmap_info, IN | OUT,
	    neuron_do_resource_mmap_info),
	ROW(PRINTK, struct neuron_ioctl_printk, IN | ANY, neuron_do_printk),
	ROW(HOST_DEVICE_ID, struct neuron_ioctl_host_device_id, OUT,
	    neuron_do_host_device_id),
	ROW(HOST_DEVICE_ID_TO_RID_MAP, struct neuron_ioctl_host_device_id_to_rid_map, OUT | ANY,
	    neuron_do_host_device_id_to_rid_map),
	ROW(DUMP_MEM_CHUNKS, struct neuron_ioctl_dump_mem_chunks, IN | OUT | OUT_ERR,
	    neuron_do_dump_mem_chunks),
	ROW(NC_PID_STATE_DUMP, struct neuron_ioctl_nc_pid_state_dump, IN | ANY,
	    neuron_do_nc_pid_state_dump),
	ROW(HBM_SCRUB_START, struct neuron_ioctl_hbm_scrub_start, IN,
	    neuron_do_hbm_scrub_start),
	ROW(HBM_SCRUB_WAIT, struct neuron_ioctl_hbm_scrub_wait, IN | PARTS,
	    neuron_do_hbm_scrub_wait),
	ROW(GET_LOGICAL_TO_PHYSICAL_NC_MAP, struct neuron_ioctl_get_logical_to_physical_nc_map,
	    IN | ANY, neuron_do_get_logical_to_physical_nc_map),
	/* There are no pods; nothing is written. */
	ROW_RAW(POD_INFO, ANY, neuron_do_eopnotsupp),
	ROW_RAW(POD_STATUS, ANY, neuron_do_eopnotsupp),
	ROW_RAW(POD_STATUS_V2, ANY, neuron_do_eopnotsupp),
	ROW_RAW(POD_CTRL, ANY, neuron_do_eopnotsupp),
	ROW_RAW(POD_CTRL_V2, ANY, neuron_do_eopnotsupp),
	ROW(MEM_BUF_ZEROCOPY64, struct neuron_ioctl_mem_buf_copy64, IN,
	    neuron_do_mem_buf_copy64),
	ROW_RAW(DMA_QUEUE_INIT_BATCH, 0, neuron_do_dma_queue_init_batch),

	ROW_NATIVE(GET_GEOMETRY, struct neuron_native_geometry, core_hbm, OUT | ANY,
		   neuron_do_native_get_geometry, NULL),
	ROW_NATIVE(MEM_ALLOC, struct neuron_native_mem_alloc, largest_aligned, OUT | OUT_ERR,
		   neuron_do_native_mem_alloc, neuron_undo_native_mem_alloc),
	ROW_NATIVE(NQ_EVENTFD, struct neuron_native_nq_eventfd, __reserved, 0,
		   neuron_do_native_nq_eventfd, NULL),
	ROW_NATIVE(HBM_STATS, struct neuron_native_hbm_stats, by_core, OUT | ANY,
		   neuron_do_native_hbm_stats, NULL),
	ROW_NATIVE(CORE_STATS, struct neuron_native_core_stats, host_bytes, OUT | ANY,
		   neuron_do_native_core_stats, NULL),
	ROW_NATIVE(MEM_EXPORT, struct neuron_native_mem_export, __reserved, 0,
		   neuron_do_native_mem_export, NULL),
	ROW_NATIVE(MEM_IMPORT, struct neuron_native_mem_import, host, OUT,
		   neuron_do_native_mem_import, neuron_undo_native_mem_import),
	ROW_NATIVE(FAILURES, struct neuron_native_failures, __reserved, OUT | ANY,
		   neuron_do_native_failures, NULL),
	ROW_NATIVE(LIMIT, struct neuron_native_limit, used, ANY,
		   neuron_do_native_limit, NULL),
	ROW_NATIVE(MEM_GROW, struct neuron_native_mem_grow, largest_free, OUT | OUT_ERR,
		   neuron_do_native_mem_grow, NULL),
	ROW_NATIVE(COPY_EVENTFD, struct neuron_native_copy_eventfd, eventfd, 0,
		   neuron_do_native_copy_eventfd, NULL),
	ROW_NATIVE(RESET_EVENTFD, struct neuron_native_reset_eventfd, eventfd, 0,
		   neuron_do_native_reset_eventfd, NULL),
	ROW_NATIVE(HBM_RANGES, struct neuron_native_hbm_ranges, count, OUT | ANY,
		   neuron_do_native_hbm_ranges, NULL),
	ROW_NATIVE(OWNER, struct neuron_native_owner, label, 0,
		   neuron_do_native_owner, NULL),
	ROW_NATIVE(OWNERS, struct neuron_native_owners, driver, OUT | ANY,
		   neuron_do_native_owners, NULL),
	ROW_NATIVE(MEM_PIN, struct neuron_native_mem_pin, mmap_offset, OUT,
		   neuron_do_native_mem_pin, neuron_undo_native_mem_pin),
	ROW_NATIVE(MEM_UNPIN, struct neuron_native_mem_unpin, mem_handle, 0,
		   neuron_do_native_mem_unpin, NULL),
	ROW_NATIVE(MEM_COMPACT, struct neuron_native_mem_compact, largest, OUT | PARTS,
		   neuron_do_native_mem_compact, NULL),
	ROW_NATIVE(EVENTS, struct neuron_native_events, count, OUT | ANY,
		   neuron_do_native_events, NULL),
	ROW_NATIVE(MEM_ALLOC_BULK, struct neuron_native_mem_alloc_bulk, limit, OUT_ERR,
		   neuron_do_native_mem_alloc_bulk, NULL),
	ROW_NATIVE(MEM_FREE_BULK, struct neuron_native_mem_free_bulk, handles, 0,
		   neuron_do_native_mem_free_bulk, NULL),
};

/* First row of each number; ARRAY_SIZE = none. */
static u8 neuron_ioctl_first[256] __ro_after_init;

/**
 * neuron_ioctl_init() - index the table
 *
 * Return: 0, -EINVAL the table is not sorted.
 */
int __init neuron_ioctl_init(void)
{
	int i;

	BUILD_BUG_ON(ARRAY_SIZE(neuron_ioctls) > U8_MAX);
	memset(neuron_ioctl_first, ARRAY_SIZE(neuron_ioctls), sizeof(neuron_ioctl_first));
	for (i = ARRAY_SIZE(neuron_ioctls) - 1; i >= 0; i--) {
		if (i && _IOC_NR(neuron_ioctls[i - 1].cmd) > _IOC_NR(neuron_ioctls[i].cmd))
			return -EINVAL;
		neuron_ioctl_first[_IOC_NR(neuron_ioctls[i].cmd)] = i;
	}
	return 0;
}

/* Number 110: who knows a longer structure asks for it in full, and takes what there is. */
static u32 neuron_ioctl_info(u32 cmd)
{
	if (_IOC_TYPE(cmd) != NEURON_IOCTL_BASE)
		return cmd;
	if (_IOC_DIR(cmd) == _IOC_READ &&
	    _IOC_SIZE(cmd) >= _IOC_SIZE(NEURON_IOCTL_DRIVER_INFO_GET))
		return NEURON_IOCTL_DRIVER_INFO_GET;
	return _IOC_DIR(cmd) == _IOC_WRITE ? NEURON_IOCTL_DRIVER_INFO_SET : cmd;
}

static const struct neuron_ioctl_row *neuron_ioctl_find(u32 cmd)
{
	u32 i, nr = _IOC_NR(cmd);

	if (nr == _IOC_NR(NEURON_IOCTL_DRIVER_INFO_GET))
		cmd = neuron_ioctl_info(cmd);
	for (i = neuron_ioctl_first[nr];
	     i < ARRAY_SIZE(neuron_ioctls) && _IOC_NR(neuron_ioctls[i].cmd) == nr; i++)
		if (neuron_ioctls[i].cmd == cmd)
			return &neuron_ioctls[i];
	return NULL;
}

/* Errors that report a shortage. */
static bool neuron_ioctl_shortage(int err)
{
	return err == -ENOMEM || err == -EBUSY || err == -EAGAIN;
}

static int neuron_ioctl_run(struct neuron_call *call, const struct neuron_ioctl_row *row, u32 usize)
{
	int err = 0;

	/* No uninitialised byte is ever copied out. */
	if (row->flags & NATIVE)
		err = copy_struct_from_user(call->arg, row->size, call->uarg, usize);
	else if (!(row->flags & IN))
		memset(call->arg, 0, row->size);
	else if (copy_from_user(call->arg, call->uarg, row->size))
		err = -EFAULT;
	return err ?: row->fn(call);
}

/*
 * A call ended with a shortage: is it worth another try, as a dead process gave something back?
 * Except for PARTS, a call that failed and has not begun changed nothing, or does the same again.
 */
static noinline bool neuron_ioctl_reap(const struct neuron_call *call,
				       const struct neuron_ioctl_row *row, u32 seen, int *err)
{
	if (call->begun || (row->flags & PARTS && *err == -ENOMEM))
		return false;
	return neuron_reaped(neuron_clients_reap(call->nd, seen), err);
}

long neuron_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct neuron_ioctl_row *row = neuron_ioctl_find(cmd);
	struct neuron_file *nf = file->private_data;
	u8 stack[NEURON_IOCTL_STACK] __aligned(8) NEURON_UNINIT;
	struct neuron_call call = {
		.nf = nf,
		.nd = nf->nd,
		.client = nf->client,
		.arg = stack,
		.uarg = (void __user *)arg,
	};
	u32 usize, size, seen;
	bool again = false;
	int err;

	if (neuron_device_gone(call.nd))
		return -ENODEV;
	if (!row)
		return -ENOTTY;
	if (!(row->flags & ANY) && !neuron_file_allowed(nf))
		return -EACCES;
	size = row->size;
	usize = size;
	if (row->flags & NATIVE) {
		if (get_user(usize, (u32 __user *)call.uarg))
			return -EFAULT;
		if (usize < row->min)
			return -EINVAL;
		if (usize > PAGE_SIZE)
			return -E2BIG;
	}
	if (size > sizeof(stack)) {
		call.arg = kmalloc(size, GFP_KERNEL_ACCOUNT);
		if (!call.arg)
			return -ENOMEM;
	}
	seen = neuron_teardowns_read();
	do {
		err = neuron_ioctl_run(&call, row, usize);
		again = unlikely(neuron_ioctl_shortage(err)) && !again &&
			neuron_ioctl_reap(&call, row, seen, &err);
	} while (again);
	if ((!err && row->flags & OUT) || (row->flags & OUT_ERR && neuron_ioctl_shortage(err))) {
		if (copy_to_user(call.uarg, call.arg, min(size, usize))) {
			if (!err && row->undo)
				row->undo(&call);
			err = -EFAULT;
		}
	}
	if (call.arg != stack)
		kfree(call.arg);
	return err;
}

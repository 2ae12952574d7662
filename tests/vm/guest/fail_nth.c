// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every kernel allocation of every call fails in turn, and every copy from and to
 * user space: the kernel's fault injection lets the n-th of a system call fail, for
 * n = 1, 2, ... until the call has no n-th one. A call that fails says ENOMEM (or
 * EFAULT for a copy) and leaves memory, cores and descriptors as they were; when its
 * process is gone, nothing is left of it. Each case runs in a process of its own, so
 * that it finds the device at rest: what is made on first use is made there.
 * Then the same, for some of them, while the module of the device is loaded.
 *
 * Only kernels with fault injection can do this; on others there is nothing to see.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "check.h"
#include "neuron_isa.h"

#define KIB64		(64u << 10)
#define BIG		(256u << 10)	/* large enough for the device to work on the caller's pages */
#define POINTS_MAX	400
/* Calls with more points are loops over pages or words: of those, some will do. */
#define POINTS_EACH	40
#define POINTS_STEP	5
#define DEBUGFS		"/sys/kernel/debug/"

/* What a case may do. */
enum {
	STAYS	= 1,	/* when only the result cannot be copied out, it is done */
	TAKES	= 2,	/* core 1 may stay with the caller, see uapi/README.md */
};

struct op {
	const char *name;
	int (*run)(void);
	int flags;
	int (*before)(void);	/* in the same process, nothing fails there */
};

static int fd, nth = -1;
static struct neuron_native_geometry geo;
static struct neuron_ioctl_device_info info;
static uint64_t dev1, dev2, host, ring_tx, ring_rx;
static uint32_t nq_bytes = 4096;
static int event;
static uint8_t *buffer;
static uint8_t *map;
static int scratch_fd;
static uint32_t token;

/* ---- the calls ------------------------------------------------------------------ */

#define FORMAT(_name, _cmd, _type, ...)				\
static int _name(void)						\
{								\
	_type a = { __VA_ARGS__ };				\
								\
	return call(fd, _cmd, &a);				\
}

static uint64_t out64, out64b;
static uint32_t words[64];
static struct neuron_dma_queue_state qstate[2];
static struct neuron_dma_eng_state estate;
static uint64_t addresses[2];
static struct neuron_ioctl_nc_map logical[130];
static struct neuron_ioctl_mem_chunk_info chunks[8];
static char text[] = "fail_nth";
static struct neuron_native_failure failure;
static struct neuron_native_range ranges[8];
/* More than the driver allocates at a time. */
#define BULK	70
static struct neuron_native_mem_bulk_entry bulk[BULK] = {
	[0 ... BULK - 1] = { .bytes = 4096 },
};
static uint64_t bulk_handles[BULK];
static struct neuron_native_owner_entry owner_list[8];
static struct neuron_native_event event_list[8];
static struct {
	struct neuron_ioctl_get_apps_info h;
	struct neuron_app_info app[4];
} apps;

FORMAT(mem_alloc, NEURON_IOCTL_MEM_ALLOC, struct neuron_ioctl_mem_alloc,
       .size = KIB64, .mem_handle = (void *)&out64)
FORMAT(mem_alloc_v2, NEURON_IOCTL_MEM_ALLOC_V2, struct neuron_ioctl_mem_alloc_v2,
       .size = KIB64, .align = 8192, .mem_handle = (void *)&out64)
FORMAT(mem_alloc_v2mt, NEURON_IOCTL_MEM_ALLOC_V2MT, struct neuron_ioctl_mem_alloc_v2_mem_type,
       .size = KIB64, .host_memory = 1, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_HOST,
       .mem_handle = (void *)&out64)
FORMAT(mem_alloc_v2mt64, NEURON_IOCTL_MEM_ALLOC_V2MT64,
       struct neuron_ioctl_mem_alloc_v2_mem_type64, .size = 3 * KIB64, .nc_id = 1,
       .mem_type = NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE,
       .mem_handle = (void *)&out64)
FORMAT(native_alloc, NEURON_NATIVE_MEM_ALLOC, struct neuron_native_mem_alloc,
       .size = sizeof(a), .bytes = KIB64, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE)
FORMAT(native_alloc_host, NEURON_NATIVE_MEM_ALLOC, struct neuron_native_mem_alloc,
       .size = sizeof(a), .bytes = KIB64, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_HOST,
       .flags = NEURON_NATIVE_ALLOC_HOST)
FORMAT(native_grow, NEURON_NATIVE_MEM_GROW, struct neuron_native_mem_grow,
       .size = sizeof(a), .mem_handle = dev2, .bytes = 2 * BIG)
FORMAT(native_alloc_movable, NEURON_NATIVE_MEM_ALLOC, struct neuron_native_mem_alloc,
       .size = sizeof(a), .bytes = BIG, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
       .flags = NEURON_NATIVE_ALLOC_MOVABLE)
FORMAT(native_alloc_bulk, NEURON_NATIVE_MEM_ALLOC_BULK, struct neuron_native_mem_alloc_bulk,
       .size = sizeof(a), .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, .count = BULK,
       .entry_size = sizeof(bulk[0]), .entries = (uintptr_t)bulk)
FORMAT(native_free_bulk, NEURON_NATIVE_MEM_FREE_BULK, struct neuron_native_mem_free_bulk,
       .size = sizeof(a), .count = BULK, .handles = (uintptr_t)bulk_handles)
FORMAT(native_pin, NEURON_NATIVE_MEM_PIN, struct neuron_native_mem_pin,
       .size = sizeof(a), .mem_handle = dev2)
FORMAT(native_unpin, NEURON_NATIVE_MEM_UNPIN, struct neuron_native_mem_unpin,
       .size = sizeof(a), .mem_handle = dev2)
FORMAT(native_compact, NEURON_NATIVE_MEM_COMPACT, struct neuron_native_mem_compact,
       .size = sizeof(a))
FORMAT(native_export, NEURON_NATIVE_MEM_EXPORT, struct neuron_native_mem_export,
       .size = sizeof(a), .mem_handle = dev1)
FORMAT(native_import, NEURON_NATIVE_MEM_IMPORT, struct neuron_native_mem_import,
       .size = sizeof(a), .fd = scratch_fd)
FORMAT(dmabuf_fd, NEURON_IOCTL_DMABUF_FD, struct neuron_ioctl_dmabuf_fd,
       .va = (uintptr_t)map, .size = KIB64, .fd = (void *)words)
FORMAT(resource_info, NEURON_IOCTL_RESOURCE_MMAP_INFO, struct neuron_ioctl_resource_mmap_info,
       .block = NEURON_DM_BLOCK_TPB, .resource = NEURON_DM_RESOURCE_SBUF)
FORMAT(scrub_start, NEURON_IOCTL_HBM_SCRUB_START, struct neuron_ioctl_hbm_scrub_start,
       .hbm_index = 1)
FORMAT(scrub_wait, NEURON_IOCTL_HBM_SCRUB_WAIT, struct neuron_ioctl_hbm_scrub_wait,
       .hbm_index = 1)
FORMAT(native_failures, NEURON_NATIVE_FAILURES, struct neuron_native_failures,
       .size = sizeof(a), .count = 1, .entry_size = sizeof(failure),
       .entries = (uintptr_t)&failure)
FORMAT(native_ranges, NEURON_NATIVE_HBM_RANGES, struct neuron_native_hbm_ranges,
       .size = sizeof(a), .count = 8, .entry_size = sizeof(ranges[0]),
       .entries = (uintptr_t)ranges)
FORMAT(native_owner, NEURON_NATIVE_OWNER, struct neuron_native_owner,
       .size = sizeof(a), .label = "failing")
FORMAT(native_owners, NEURON_NATIVE_OWNERS, struct neuron_native_owners,
       .size = sizeof(a), .count = 8, .entry_size = sizeof(owner_list[0]),
       .entries = (uintptr_t)owner_list)
FORMAT(native_events, NEURON_NATIVE_EVENTS, struct neuron_native_events,
       .size = sizeof(a), .count = 8, .entry_size = sizeof(event_list[0]),
       .entries = (uintptr_t)event_list)
FORMAT(native_limit, NEURON_NATIVE_LIMIT, struct neuron_native_limit,
       .size = sizeof(a), .flags = NEURON_NATIVE_LIMIT_SET, .what = NEURON_NATIVE_LIMIT_PROCESS,
       .bytes = 1ull << 40)
FORMAT(copy_eventfd, NEURON_NATIVE_COPY_EVENTFD, struct neuron_native_copy_eventfd,
       .size = sizeof(a), .src_mem_handle = dev1, .dst_mem_handle = dev2, .token = token,
       .eventfd = event)
FORMAT(reset_eventfd, NEURON_NATIVE_RESET_EVENTFD, struct neuron_native_reset_eventfd,
       .size = sizeof(a), .eventfd = event)
FORMAT(do_mem_free, NEURON_IOCTL_MEM_FREE, struct neuron_ioctl_mem_free, .mem_handle = dev1)
FORMAT(mem_free_host, NEURON_IOCTL_MEM_FREE, struct neuron_ioctl_mem_free, .mem_handle = host)
FORMAT(mem_copy, NEURON_IOCTL_MEM_COPY, struct neuron_ioctl_mem_copy,
       .src_mem_handle = dev1, .dst_mem_handle = dev2, .size = 4096)
FORMAT(mem_copy64, NEURON_IOCTL_MEM_COPY64, struct neuron_ioctl_mem_copy64,
       .src_mem_handle = host, .dst_mem_handle = dev2, .size = 4096, .dst_offset = 7)
FORMAT(copy_async, NEURON_IOCTL_MEM_COPY_ASYNC, struct neuron_ioctl_mem_copy_async,
       .src_mem_handle = dev1, .dst_mem_handle = dev2, .size = 4096, .pwait_handle = ~0u)
FORMAT(copy_async64, NEURON_IOCTL_MEM_COPY_ASYNC64, struct neuron_ioctl_mem_copy_async64,
       .src_mem_handle = dev1, .dst_mem_handle = dev2, .size = 4096, .pwait_handle = ~0u)
FORMAT(copy_async_sync, NEURON_IOCTL_MEM_COPY_ASYNC64, struct neuron_ioctl_mem_copy_async64,
       .src_mem_handle = dev1, .dst_mem_handle = dev2, .size = 4096)
FORMAT(copy_async_wait, NEURON_IOCTL_MEM_COPY_ASYNC_WAIT, struct neuron_ioctl_mem_copy_async_wait,
       .src_mem_handle = dev1, .dst_mem_handle = dev2, .pwait_handle = token)
FORMAT(buf_copy, NEURON_IOCTL_MEM_BUF_COPY, struct neuron_ioctl_mem_buf_copy,
       .mem_handle = dev1, .buffer = buffer, .size = 4096, .copy_to_mem_handle = 1)
FORMAT(buf_copy_out, NEURON_IOCTL_MEM_BUF_COPY64, struct neuron_ioctl_mem_buf_copy64,
       .mem_handle = dev1, .buffer = buffer, .size = 4096)
FORMAT(buf_copy_big, NEURON_IOCTL_MEM_BUF_COPY64, struct neuron_ioctl_mem_buf_copy64,
       .mem_handle = dev1, .buffer = buffer, .size = BIG, .copy_to_mem_handle = 1)
FORMAT(buf_copy_host, NEURON_IOCTL_MEM_BUF_COPY64, struct neuron_ioctl_mem_buf_copy64,
       .mem_handle = host, .buffer = buffer, .size = 8192)
FORMAT(zerocopy, NEURON_IOCTL_MEM_BUF_ZEROCOPY64, struct neuron_ioctl_mem_buf_copy64,
       .mem_handle = dev2, .buffer = buffer, .size = BIG)
FORMAT(do_memset, NEURON_IOCTL_MEMSET, struct neuron_ioctl_memset,
       .mem_handle = dev1, .value = 5, .size = 8192)
FORMAT(memset64, NEURON_IOCTL_MEMSET64, struct neuron_ioctl_memset64,
       .mem_handle = host, .value = 5, .size = 8192)
FORMAT(get_pa, NEURON_IOCTL_MEM_GET_PA, struct neuron_ioctl_mem_get_pa,
       .mem_handle = dev1, .pa = (void *)&out64)
FORMAT(get_info, NEURON_IOCTL_MEM_GET_INFO, struct neuron_ioctl_mem_get_info,
       .mem_handle = dev1, .mmap_offset = (void *)&out64, .pa = (void *)&out64b)
FORMAT(extended_info, NEURON_IOCTL_MEM_GET_EXTENDED_INFO,
       struct neuron_ioctl_mem_get_extended_info, .mem_handle = dev1)
FORMAT(mc_get_info, NEURON_IOCTL_MEM_MC_GET_INFO, struct neuron_ioctl_mem_get_mc_mmap_info,
       .pa = out64)
FORMAT(mc_get_info_v2, NEURON_IOCTL_MEM_MC_GET_INFO_V2,
       struct neuron_ioctl_mem_get_mc_mmap_info_v2, .pa = out64)
FORMAT(dump_chunks, NEURON_IOCTL_DUMP_MEM_CHUNKS, struct neuron_ioctl_dump_mem_chunks,
       .num_entries_in = 8, .data = chunks)
FORMAT(bar_read, NEURON_IOCTL_BAR_READ, struct neuron_ioctl_bar_rw,
       .address = (void *)addresses, .data = words, .count = 1)
FORMAT(bar_write, NEURON_IOCTL_BAR_WRITE, struct neuron_ioctl_bar_rw,
       .address = (void *)addresses, .data = words, .count = 1)
FORMAT(hw_counters, NEURON_IOCTL_READ_HW_COUNTERS, struct neuron_ioctl_read_hw_counters,
       .address = (void *)&addresses[1], .data = words, .count = 1)
FORMAT(post_metric, NEURON_IOCTL_POST_METRIC, struct neuron_ioctl_post_metric,
       .data = words, .data_size = 64)
FORMAT(program, NEURON_IOCTL_PROGRAM_ENGINE, struct neuron_ioctl_program_engine,
       .dst = geo.tpb_base[1], .buffer = buffer, .size = 4096)
FORMAT(program_nc, NEURON_IOCTL_PROGRAM_ENGINE_NC, struct neuron_ioctl_program_engine_nc,
       .dst = geo.tpb_base[1], .buffer = buffer, .size = 4096)
FORMAT(program_nc64, NEURON_IOCTL_PROGRAM_ENGINE_NC64, struct neuron_ioctl_program_engine_nc64,
       .dst = geo.tpb_base[0], .buffer = buffer, .size = 4096)
FORMAT(eng_init, NEURON_IOCTL_DMA_ENG_INIT, struct neuron_ioctl_dma_eng_init, .eng_id = 1)
FORMAT(eng_set, NEURON_IOCTL_DMA_ENG_SET_STATE, struct neuron_ioctl_dma_eng_set_state,
       .eng_id = geo.engines_per_core, .state = 2)
FORMAT(eng_get, NEURON_IOCTL_DMA_ENG_GET_STATE, struct neuron_ioctl_dma_eng_get_state,
       .eng_id = 1, .state = &estate)
#define RINGS(eng, q)						\
	.eng_id = (eng), .qid = (q), .tx_desc_count = 256, .rx_desc_count = 256, \
	.tx_handle = ring_tx, .rx_handle = ring_rx
FORMAT(queue_init, NEURON_IOCTL_DMA_QUEUE_INIT, struct neuron_ioctl_dma_queue_init,
       RINGS(geo.engines_per_core, 0))
FORMAT(queue_again, NEURON_IOCTL_DMA_QUEUE_INIT, struct neuron_ioctl_dma_queue_init, RINGS(0, 0))
FORMAT(queue_batch, NEURON_IOCTL_DMA_QUEUE_INIT_BATCH, struct neuron_ioctl_dma_queue_init_batch,
       .count = 2, .entries = { { RINGS(0, 1) }, { RINGS(0, 2) } })
FORMAT(queue_release, NEURON_IOCTL_DMA_QUEUE_RELEASE, struct neuron_ioctl_dma_queue_release,
       .eng_id = 0)
FORMAT(queue_start, NEURON_IOCTL_DMA_QUEUE_COPY_START, struct neuron_ioctl_dma_queue_copy_start,
       .tx_desc_count = 1, .rx_desc_count = 1)
FORMAT(queue_ack, NEURON_IOCTL_DMA_ACK_COMPLETED, struct neuron_ioctl_dma_ack_completed,
       .count = 1)
FORMAT(queue_state, NEURON_IOCTL_DMA_QUEUE_GET_STATE, struct neuron_ioctl_dma_queue_get_state,
       .tx = &qstate[0], .rx = &qstate[1])
FORMAT(copy_desc, NEURON_IOCTL_DMA_COPY_DESCRIPTORS, struct neuron_ioctl_dma_copy_descriptors,
       .mem_handle = ring_tx, .buffer = buffer, .num_descs = 4, .offset = 512)
FORMAT(copy_desc64, NEURON_IOCTL_DMA_COPY_DESCRIPTORS64,
       struct neuron_ioctl_dma_copy_descriptors64, .mem_handle = ring_rx, .buffer = buffer,
       .num_descs = 4, .offset = 512, .queue_type = NEURON_DMA_QUEUE_TYPE_RX)
FORMAT(copyout, NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, struct neuron_ioctl_dma_descriptor_copyout,
       .type = NEURON_DMA_QUEUE_TYPE_TX, .count = 8, .buffer = buffer)
FORMAT(sem_inc, NEURON_IOCTL_SEMAPHORE_INCREMENT, struct neuron_ioctl_semaphore,
       .nc_id = 1, .value = 1)
FORMAT(sem_dec, NEURON_IOCTL_SEMAPHORE_DECREMENT, struct neuron_ioctl_semaphore,
       .nc_id = 1, .value = 1)
FORMAT(sem_read, NEURON_IOCTL_SEMAPHORE_READ, struct neuron_ioctl_semaphore, .nc_id = 1)
FORMAT(sem_write, NEURON_IOCTL_SEMAPHORE_WRITE, struct neuron_ioctl_semaphore,
       .nc_id = 1, .value = 1)
FORMAT(event_set, NEURON_IOCTL_EVENT_SET, struct neuron_ioctl_event, .nc_id = 1, .value = 1)
FORMAT(event_get, NEURON_IOCTL_EVENT_GET, struct neuron_ioctl_event, .nc_id = 1)
FORMAT(nq_v1, NEURON_IOCTL_NOTIFICATIONS_INIT_V1, struct neuron_ioctl_notifications_init_v1,
       .nc_id = 1, .size = 4096)
FORMAT(nq_v2, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, struct neuron_ioctl_notifications_init_v2,
       .nq_dev_id = 1, .size = 4096)
FORMAT(nq_realloc, NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2,
       struct neuron_ioctl_notifications_init_with_realloc_v2, .size = nq_bytes,
       .on_host_memory = 1, .force_alloc_mem = 1)
FORMAT(nq_eventfd, NEURON_NATIVE_NQ_EVENTFD, struct neuron_native_nq_eventfd,
       .size = sizeof(a), .eventfd = event)
FORMAT(acquire_ds, NEURON_IOCTL_ACQUIRE_NEURON_DS, struct neuron_ioctl_neuron_ds_info, .pid = 0)
FORMAT(release_ds, NEURON_IOCTL_RELEASE_NEURON_DS, struct neuron_ioctl_neuron_ds_info, .pid = 0)
FORMAT(writer_enter, NEURON_IOCTL_CRWL_WRITER_ENTER, struct neuron_ioctl_crwl, .nc_id = 1)
FORMAT(downgrade, NEURON_IOCTL_CRWL_WRITER_DOWNGRADE, struct neuron_ioctl_crwl, .nc_id = 1)
FORMAT(reader_enter, NEURON_IOCTL_CRWL_READER_ENTER, struct neuron_ioctl_crwl, .nc_id = 1)
FORMAT(reader_exit, NEURON_IOCTL_CRWL_READER_EXIT, struct neuron_ioctl_crwl, .nc_id = 1)
FORMAT(range_mark, NEURON_IOCTL_CRWL_NC_RANGE_MARK, struct neuron_ioctl_crwl_nc_map,
       .nc_count = 1, .start_nc_index = 1, .end_nc_index = 1)
FORMAT(range_mark_ext, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, struct neuron_ioctl_crwl_nc_map_ext,
       .nc_count = 1, .start_nc_index = 1, .end_nc_index = 1)
FORMAT(range_unmark, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK, struct neuron_ioctl_crwl_nc_map,
       .bitmap = 2)
FORMAT(range_unmark_ext, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0,
       struct neuron_ioctl_crwl_nc_map_ext, .bitmap = { 2 })
FORMAT(cinit, NEURON_IOCTL_CINIT_SET_STATE, struct neuron_ioctl_cinit_set, .nc_id = 1,
       .state = NEURON_CINIT_STATE_STARTED)
FORMAT(started_count, NEURON_IOCTL_NC_MODEL_STARTED_COUNT,
       struct neuron_ioctl_nc_model_started_count, .nc_id = 1)
FORMAT(compat_version, NEURON_IOCTL_COMPATIBLE_VERSION, struct neuron_ioctl_compatible_version,
       .max = 0)
FORMAT(basic_info, NEURON_IOCTL_DEVICE_BASIC_INFO, struct neuron_ioctl_device_basic_info,
       .revision = 0)
FORMAT(bdf, NEURON_IOCTL_DEVICE_BDF, struct neuron_ioctl_device_bdf, .slot = 0)
FORMAT(bdf_ext, NEURON_IOCTL_DEVICE_BDF_EXT, struct neuron_ioctl_device_bdf_ext, .nd_index = 0)
FORMAT(nc_reset, NEURON_IOCTL_NC_RESET, struct neuron_ioctl_device_reset, .nc_map = 2)
FORMAT(reset_ready, NEURON_IOCTL_NC_RESET_READY, struct neuron_ioctl_device_ready,
       .request_id = 1)
FORMAT(driver_info, NEURON_IOCTL_DRIVER_INFO_GET, struct neuron_ioctl_device_driver_info,
       .version = 0)
FORMAT(do_printk, NEURON_IOCTL_PRINTK, struct neuron_ioctl_printk, .buffer = text,
       .size = sizeof(text))
FORMAT(host_device_id, NEURON_IOCTL_HOST_DEVICE_ID, struct neuron_ioctl_host_device_id,
       .host_device_id = 0)
FORMAT(rid_map, NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP,
       struct neuron_ioctl_host_device_id_to_rid_map, .count = 0)
FORMAT(pid_state, NEURON_IOCTL_NC_PID_STATE_DUMP, struct neuron_ioctl_nc_pid_state_dump,
       .nc_id = 0)
FORMAT(logical_map, NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP,
       struct neuron_ioctl_get_logical_to_physical_nc_map, .map = logical,
       .max_map_entries = 128)
FORMAT(native_geometry, NEURON_NATIVE_GET_GEOMETRY, struct neuron_native_geometry,
       .size = sizeof(a))
FORMAT(hbm_stats, NEURON_NATIVE_HBM_STATS, struct neuron_native_hbm_stats, .size = sizeof(a))
FORMAT(core_stats, NEURON_NATIVE_CORE_STATS, struct neuron_native_core_stats, .size = sizeof(a))

static int device_reset(void) { return call(fd, NEURON_IOCTL_DEVICE_RESET, NULL); }
static int device_ready(void) { return call(fd, NEURON_IOCTL_DEVICE_READY, words); }
static int reset_status(void) { return call(fd, NEURON_IOCTL_DEVICE_RESET_STATUS, words); }
static int device_info(void) { return call(fd, NEURON_IOCTL_DEVICE_INFO, &info); }
static int app_pid(void) { return call(fd, NEURON_IOCTL_DEVICE_APP_PID, words); }

static int apps_info(void)
{
	apps.h.apps_info_flags = APP_INFO_ALL;
	apps.h.capacity = 4;
	return call(fd, NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, &apps);
}

/* ---- other system calls ---------------------------------------------------------- */

static int opened(int flags)
{
	scratch_fd = open(NODE, flags | O_CLOEXEC);
	return scratch_fd < 0 ? errno : 0;
}

static int open_again(void) { return opened(O_RDWR); }
static int open_to_look(void) { return opened(O_WRONLY); }

static int map_chunk(uint64_t handle, size_t size)
{
	struct neuron_ioctl_mem_get_info g = {
		.mem_handle = handle, .mmap_offset = (void *)&out64, .pa = (void *)&out64b,
	};
	int err = call(fd, NEURON_IOCTL_MEM_GET_INFO, &g);
	void *p;

	if (err)
		return err;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, out64);
	if (p == MAP_FAILED)
		return errno;
	map = p;
	return 0;
}

static int map_device(void) { return map_chunk(dev1, KIB64); }
static int map_host(void) { return map_chunk(host, KIB64); }

/* The kernel touches the page, so that a failure is an errno and no signal. */
static int fault_in(void)
{
	return pread(scratch_fd, map, 1, 0) == 1 ? 0 : errno;
}

static int before_fault(int err)
{
	scratch_fd = memfd_create("fail_nth", MFD_CLOEXEC);
	return err || scratch_fd < 0 || pwrite(scratch_fd, "x", 1, 0) != 1;
}

static int before_fault_device(void) { return before_fault(map_device()); }
static int before_fault_host(void) { return before_fault(map_host()); }

/* A hole in the middle of a mapping makes two of it. */
static int unmap_middle(void)
{
	return munmap(map + PAGE, PAGE) ? errno : 0;
}

static int do_close(void)
{
	int rc = close(fd);

	fd = -1;
	return rc ? errno : 0;
}

static int sysfs_clear(void)
{
	int file = open(SYSFS "neuron_core1/stats/status/success/total", O_WRONLY | O_CLOEXEC), err;

	if (file < 0)
		return errno;
	err = write(file, "1", 1) == 1 ? 0 : errno;
	close(file);
	return err;
}

static int read_all(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	ssize_t n;

	if (file < 0)
		return errno;
	while ((n = read(file, buffer, 4096)) > 0)
		;
	if (n < 0)
		err = errno;
	close(file);
	return err;
}

static int sysfs_read(void)
{
	return read_all(SYSFS "neuron_core0/stats/memory_usage/device_mem/total");
}

static int debugfs_read(void)
{
	return read_all(DEBUGFS "neuron/neuron0/hbm0");
}

/* Opened before: looking for the file, procfs says ENOENT when it has no memory. */
static int open_fdinfo(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	scratch_fd = open(path, O_RDONLY | O_CLOEXEC);
	return scratch_fd < 0;
}

static int fdinfo_read(void)
{
	return read(scratch_fd, buffer, 4096) > 0 ? 0 : errno;
}

/* ---- what must have happened before ---------------------------------------------- */

static int start_async(void)
{
	struct neuron_ioctl_mem_copy_async64 c = {
		.src_mem_handle = dev1, .dst_mem_handle = dev2, .size = 4096,
		.pwait_handle = ~0u,
	};
	int err = call(fd, NEURON_IOCTL_MEM_COPY_ASYNC64, &c);

	token = c.wait_handle;
	return err;
}

/* A hole below movable memory, which would go there. */
static int leave_hole(void)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = BIG, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};

	return call(fd, NEURON_NATIVE_MEM_ALLOC, &a) ?: native_alloc_movable() ?:
	       mem_free(fd, a.mem_handle);
}

static int alloc_bulk(void)
{
	int err = native_alloc_bulk();

	for (int i = 0; i < BULK; i++)
		bulk_handles[i] = bulk[i].mem_handle;
	return err;
}

/* Another process exports memory, and goes: only the dma-buf keeps it. */
static int export_elsewhere(void)
{
	int pair[2], status;
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u = { 0 };
	char x = 'x';
	struct iovec io = { .iov_base = &x, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = u.space,
		.msg_controllen = sizeof(u.space),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return 1;
	pid = fork();
	if (!pid) {
		struct neuron_native_mem_alloc a = {
			.size = sizeof(a), .bytes = KIB64, .nc_id = 1,	/* 0 has an owner */
			.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
		};
		struct neuron_native_mem_export e = { .size = sizeof(e) };

		fd = open_node(O_RDWR);
		if (call(fd, NEURON_NATIVE_MEM_ALLOC, &a))
			_exit(1);
		e.mem_handle = a.mem_handle;
		if (call(fd, NEURON_NATIVE_MEM_EXPORT, &e))
			_exit(1);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &e.fd, sizeof(e.fd));
		_exit(sendmsg(pair[0], &msg, 0) != 1);
	}
	waitpid(pid, &status, 0);
	close(pair[0]);
	if (status || recvmsg(pair[1], &msg, MSG_CMSG_CLOEXEC) != 1)
		return 1;
	memcpy(&scratch_fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(scratch_fd));
	close(pair[1]);
	return 0;
}

static int address_of_dev1(void) { return get_info(); }
static int enter_and_downgrade(void) { return writer_enter() ?: downgrade(); }

/* What the driver makes on first use is there already: its ring, its buffer. */
static int warm_copy(void) { return mem_copy(); }
static int warm_buffer(void) { return do_memset(); }

static const struct op ops[] = {
	{ "DEVICE_RESET", device_reset, 0, NULL },
	{ "DEVICE_READY", device_ready, 0, NULL },
	{ "DEVICE_RESET_STATUS", reset_status, 0, NULL },
	{ "DEVICE_INFO", device_info, 0, NULL },
	{ "DEVICE_APP_PID", app_pid, 0, NULL },
	{ "DEVICE_GET_ALL_APPS_INFO", apps_info, 0, NULL },
	{ "DEVICE_BASIC_INFO", basic_info, 0, NULL },
	{ "DEVICE_BDF", bdf, 0, NULL },
	{ "DEVICE_BDF_EXT", bdf_ext, 0, NULL },
	{ "DRIVER_INFO_GET", driver_info, 0, NULL },
	{ "COMPATIBLE_VERSION", compat_version, 0, NULL },
	{ "HOST_DEVICE_ID", host_device_id, 0, NULL },
	{ "HOST_DEVICE_ID_TO_RID_MAP", rid_map, 0, NULL },
	{ "GET_LOGICAL_TO_PHYSICAL_NC_MAP", logical_map, 0, NULL },
	{ "PRINTK", do_printk, 0, NULL },
	{ "NC_PID_STATE_DUMP", pid_state, 0, NULL },
	{ "BAR_READ", bar_read, STAYS, NULL },
	{ "BAR_WRITE", bar_write, TAKES, NULL },
	{ "READ_HW_COUNTERS", hw_counters, 0, NULL },
	{ "POST_METRIC", post_metric, 0, NULL },
	{ "MEM_ALLOC", mem_alloc, 0, NULL },
	{ "MEM_ALLOC_V2", mem_alloc_v2, 0, NULL },
	{ "MEM_ALLOC_V2MT", mem_alloc_v2mt, 0, NULL },
	{ "MEM_ALLOC_V2MT64", mem_alloc_v2mt64, 0, NULL },
	{ "NATIVE_MEM_ALLOC", native_alloc, 0, NULL },
	{ "NATIVE_MEM_ALLOC, host memory", native_alloc_host, 0, NULL },
	{ "NATIVE_MEM_ALLOC_BULK", native_alloc_bulk, 0, NULL },
	{ "NATIVE_MEM_FREE_BULK", native_free_bulk, 0, alloc_bulk },
	{ "NATIVE_MEM_GROW", native_grow, STAYS, NULL },
	{ "NATIVE_MEM_ALLOC, movable", native_alloc_movable, 0, NULL },
	{ "NATIVE_MEM_PIN", native_pin, 0, NULL },
	{ "NATIVE_MEM_UNPIN", native_unpin, STAYS, native_pin },
	{ "NATIVE_MEM_COMPACT", native_compact, STAYS, leave_hole },
	{ "NATIVE_FAILURES", native_failures, 0, NULL },
	{ "NATIVE_HBM_RANGES", native_ranges, 0, NULL },
	{ "NATIVE_OWNER", native_owner, 0, NULL },
	{ "NATIVE_OWNERS", native_owners, 0, NULL },
	{ "NATIVE_EVENTS", native_events, 0, NULL },
	{ "NATIVE_LIMIT", native_limit, 0, NULL },
	{ "NATIVE_COPY_EVENTFD", copy_eventfd, 0, start_async },
	{ "NATIVE_RESET_EVENTFD", reset_eventfd, 0, NULL },
	{ "NATIVE_MEM_EXPORT", native_export, 0, NULL },
	{ "NATIVE_MEM_IMPORT", native_import, 0, export_elsewhere },
	{ "DMABUF_FD", dmabuf_fd, 0, map_device },
	{ "RESOURCE_MMAP_INFO", resource_info, STAYS, NULL },
	{ "HBM_SCRUB_START", scrub_start, STAYS, NULL },
	{ "HBM_SCRUB_WAIT", scrub_wait, STAYS, scrub_start },
	{ "MEM_FREE", do_mem_free, 0, NULL },
	{ "MEM_FREE, host memory", mem_free_host, 0, NULL },
	{ "MEM_COPY", mem_copy, 0, NULL },
	{ "MEM_COPY, ring there", mem_copy, 0, warm_copy },
	{ "MEM_COPY64", mem_copy64, 0, NULL },
	{ "MEM_COPY_ASYNC", copy_async, STAYS, NULL },
	{ "MEM_COPY_ASYNC64", copy_async64, STAYS, NULL },
	{ "MEM_COPY_ASYNC64, at once", copy_async_sync, STAYS, NULL },
	{ "MEM_COPY_ASYNC_WAIT", copy_async_wait, 0, start_async },
	{ "MEM_BUF_COPY", buf_copy, 0, NULL },
	{ "MEM_BUF_COPY64", buf_copy_out, 0, warm_buffer },
	{ "MEM_BUF_COPY64, large", buf_copy_big, 0, NULL },
	{ "MEM_BUF_COPY64, host memory", buf_copy_host, 0, NULL },
	{ "MEM_BUF_ZEROCOPY64", zerocopy, 0, warm_copy },
	{ "MEMSET", do_memset, 0, NULL },
	{ "MEMSET64", memset64, 0, NULL },
	{ "MEM_GET_PA", get_pa, 0, NULL },
	{ "MEM_GET_INFO", get_info, 0, NULL },
	{ "MEM_GET_EXTENDED_INFO", extended_info, 0, NULL },
	{ "MEM_MC_GET_INFO", mc_get_info, 0, address_of_dev1 },
	{ "MEM_MC_GET_INFO_V2", mc_get_info_v2, 0, address_of_dev1 },
	{ "DUMP_MEM_CHUNKS", dump_chunks, 0, NULL },
	{ "PROGRAM_ENGINE", program, TAKES, warm_buffer },
	{ "PROGRAM_ENGINE_NC", program_nc, TAKES, warm_buffer },
	{ "PROGRAM_ENGINE_NC64", program_nc64, 0, warm_buffer },
	{ "DMA_ENG_INIT", eng_init, 0, NULL },
	{ "DMA_ENG_SET_STATE", eng_set, TAKES, NULL },
	{ "DMA_ENG_GET_STATE", eng_get, 0, NULL },
	{ "DMA_QUEUE_INIT", queue_init, 0, NULL },
	{ "DMA_QUEUE_INIT, in place of another", queue_again, 0, NULL },
	{ "DMA_QUEUE_INIT_BATCH", queue_batch, 0, NULL },
	{ "DMA_QUEUE_RELEASE", queue_release, 0, NULL },
	{ "DMA_QUEUE_COPY_START", queue_start, 0, NULL },
	{ "DMA_ACK_COMPLETED", queue_ack, 0, NULL },
	{ "DMA_QUEUE_GET_STATE", queue_state, 0, NULL },
	{ "DMA_COPY_DESCRIPTORS", copy_desc, 0, NULL },
	{ "DMA_COPY_DESCRIPTORS64", copy_desc64, 0, NULL },
	{ "DMA_DESCRIPTOR_COPYOUT", copyout, 0, NULL },
	{ "SEMAPHORE_INCREMENT", sem_inc, 0, NULL },
	{ "SEMAPHORE_DECREMENT", sem_dec, 0, sem_inc },
	{ "SEMAPHORE_READ", sem_read, STAYS, NULL },
	{ "SEMAPHORE_WRITE", sem_write, 0, NULL },
	{ "EVENT_SET", event_set, 0, NULL },
	{ "EVENT_GET", event_get, STAYS, NULL },
	{ "NOTIFICATIONS_INIT_V1", nq_v1, STAYS, NULL },
	{ "NOTIFICATIONS_INIT_V2", nq_v2, STAYS, NULL },
	{ "NOTIFICATIONS_INIT_WITH_REALLOC_V2", nq_realloc, STAYS, NULL },
	{ "NATIVE_NQ_EVENTFD", nq_eventfd, 0, NULL },
	{ "ACQUIRE_NEURON_DS", acquire_ds, STAYS, NULL },
	{ "RELEASE_NEURON_DS", release_ds, STAYS, acquire_ds },
	{ "CRWL_WRITER_ENTER", writer_enter, 0, NULL },
	{ "CRWL_WRITER_DOWNGRADE", downgrade, 0, writer_enter },
	{ "CRWL_READER_ENTER", reader_enter, 0, enter_and_downgrade },
	{ "CRWL_READER_EXIT", reader_exit, 0, enter_and_downgrade },
	{ "CRWL_NC_RANGE_MARK", range_mark, STAYS, NULL },
	{ "CRWL_NC_RANGE_MARK_EXT0", range_mark_ext, STAYS, NULL },
	{ "CRWL_NC_RANGE_UNMARK", range_unmark, 0, range_mark },
	{ "CRWL_NC_RANGE_UNMARK_EXT0", range_unmark_ext, 0, range_mark },
	{ "CINIT_SET_STATE", cinit, STAYS, NULL },
	{ "NC_MODEL_STARTED_COUNT", started_count, 0, NULL },
	{ "NC_RESET", nc_reset, STAYS, NULL },
	{ "NC_RESET_READY", reset_ready, 0, NULL },
	{ "NATIVE_GET_GEOMETRY", native_geometry, 0, NULL },
	{ "NATIVE_HBM_STATS", hbm_stats, 0, NULL },
	{ "NATIVE_CORE_STATS", core_stats, 0, NULL },
	{ "open", open_again, 0, NULL },
	{ "open, write-only", open_to_look, 0, NULL },
	{ "mmap, device memory", map_device, 0, NULL },
	{ "mmap, host memory", map_host, 0, NULL },
	{ "page fault, device memory", fault_in, 0, before_fault_device },
	{ "page fault, host memory", fault_in, 0, before_fault_host },
	{ "munmap in the middle", unmap_middle, 0, map_device },
	{ "close", do_close, 0, NULL },
	{ "sysfs, write", sysfs_clear, 0, NULL },
	{ "sysfs, read", sysfs_read, 0, NULL },
	{ "debugfs, read", debugfs_read, 0, NULL },
	{ "fdinfo, read", fdinfo_read, 0, open_fdinfo },
};

/* ---- state -------------------------------------------------------------------------- */

struct state {
	struct neuron_native_hbm_stats hbm[NEURON_NATIVE_MAX_HBMS];
	struct neuron_native_core_stats core[NEURON_NATIVE_MAX_CORES];
	struct neuron_native_limit limit;
	int fds;
};

/* @looker is a descriptor that is allowed to look, only. */
static void look(int looker, struct state *s)
{
	struct dirent *entry;
	DIR *dir;
	uint32_t i;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < geo.nr_hbms; i++) {
		struct neuron_native_hbm_stats *h = &s->hbm[i];

		h->size = sizeof(*h);
		h->hbm = i;
		if (ioctl(looker, NEURON_NATIVE_HBM_STATS, h))
			h->size = 0;
		/* What was, not what is; and what the allocator keeps for itself. */
		h->high_water = 0;
		h->metadata = 0;
		h->fail_full = 0;
		h->fail_fragmented = 0;
		h->fail_alignment = 0;
		h->fail_capped = 0;
		h->moves = 0;
		h->moved_bytes = 0;
		h->move_failures = 0;
	}
	for (i = 0; i < geo.nr_cores; i++) {
		s->core[i].size = sizeof(s->core[i]);
		s->core[i].nc_id = i;
		if (ioctl(looker, NEURON_NATIVE_CORE_STATS, &s->core[i]))
			s->core[i].size = 0;
	}
	s->limit.size = sizeof(s->limit);
	s->limit.what = NEURON_NATIVE_LIMIT_PROCESS;
	if (ioctl(looker, NEURON_NATIVE_LIMIT, &s->limit))
		s->limit.size = 0;
	s->limit.used = 0;
	dir = opendir("/proc/self/fd");
	while (dir && (entry = readdir(dir)))
		s->fds++;
	if (dir)
		closedir(dir);
}

/* The driver may keep what it made for its copies until the device is at rest. */
static int same(const struct state *a, const struct state *b, int flags, int at_rest)
{
	struct state x = *a, y = *b;
	uint32_t i;

	for (i = 0; !at_rest && i < geo.nr_cores; i++)
		x.core[i].host_bytes = y.core[i].host_bytes = 0;
	if (flags & TAKES)
		x.core[1].owner = y.core[1].owner;
	return !memcmp(&x, &y, sizeof(x));
}

static uint64_t host_bytes(const struct state *s)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < geo.nr_cores; i++)
		sum += s->core[i].host_bytes;
	return sum;
}

/* ---- the sweep ------------------------------------------------------------------------ */

static int write_text(const char *path, const char *what)
{
	int file = open(path, O_WRONLY | O_CLOEXEC), ok;

	if (file < 0)
		return 0;
	ok = write(file, what, strlen(what)) > 0;
	close(file);
	return ok;
}

/* Let the @n-th point of this thread fail from now on; 0 ends it. */
static void arm(int n)
{
	char line[16];
	int len = snprintf(line, sizeof(line), "%d", n);

	/* This write has points of its own. */
	while (pwrite(nth, line, len, 0) != len)
		;
}

/* Was the point reached? If it was not, the read that asks may reach it. */
static int disarm(void)
{
	char line[16] = "";
	int fired = pread(nth, line, sizeof(line) - 1, 0) > 0 && atoi(line) == 0;

	arm(0);
	return fired;
}

/* What a desc in a ring looks like, see the ISA of the software device. */
static int fill_ring(uint64_t ring, int rx, uint64_t addr)
{
	struct { uint32_t ctrl, meta; uint64_t addr; } d = {
		.ctrl = 4096 | 1u << 24 | (rx ? 0 : 3u << 26),
		.meta = rx ? 0 : 0x01080003,
		.addr = addr,
	};
	struct neuron_ioctl_dma_copy_descriptors64 c = {
		.mem_handle = ring, .buffer = &d, .num_descs = 1,
		.queue_type = rx ? NEURON_DMA_QUEUE_TYPE_RX : NEURON_DMA_QUEUE_TYPE_TX,
	};

	return call(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &c);
}

static uint64_t get(uint64_t size, int on_host, uint64_t *pa)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = size, .flags = on_host ? NEURON_NATIVE_ALLOC_HOST : 0,
		.mem_type = on_host ? NEURON_MEMALLOC_TYPE_TENSORS_HOST :
				      NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};

	if (call(fd, NEURON_NATIVE_MEM_ALLOC, &a))
		return 0;
	*pa = a.pa;
	return a.mem_handle;
}

/* A process with memory, a queue and a notification queue, owner of core 0. */
static int prepare(void)
{
	uint64_t pa[5];

	fd = open(NODE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 1;
	dev1 = get(BIG, 0, &pa[0]);
	dev2 = get(BIG, 0, &pa[1]);
	host = get(KIB64, 1, &pa[2]);
	ring_tx = get(4096, 1, &pa[3]);
	ring_rx = get(4096, 1, &pa[4]);
	event = eventfd(0, EFD_CLOEXEC);
	addresses[0] = info.bar_address[0] + info.bar_size[0] - geo.nr_cores * geo.tpb_size +
		       geo.tpb_size;
	addresses[1] = geo.tpb_base[1];
	return !dev1 || !dev2 || !host || !ring_tx || !ring_rx || event < 0 ||
	       fill_ring(ring_tx, 0, pa[0]) || fill_ring(ring_rx, 1, pa[1]) ||
	       queue_again() || nq_realloc();
}

enum { DONE, FAILED, PASSED, BROKEN };

/* In a process of its own: one call, of which one point fails. */
static int one(const struct op *op, int n, int looker)
{
	struct state before, after;
	int err, fired;

	if (prepare() || (op->before && op->before())) {
		printf("# %s: cannot prepare, errno %d\n", op->name, errno);
		return BROKEN;
	}
	look(looker, &before);
	arm(n);
	err = op->run();
	fired = disarm();
	if (!fired && !err)
		return DONE;
	if (!fired) {
		printf("# %s: fails without reason: %s\n", op->name, strerror(err));
		return BROKEN;
	}
	if (!err)
		return PASSED;
	if (err != ENOMEM && err != EFAULT) {
		printf("# %s: point %d: errno %d %s\n", op->name, n, err, strerror(err));
		return BROKEN;
	}
	/* Nothing fails while the call comes back: it may be the one that is not copied out. */
	look(looker, &after);
	if (fd >= 0 && !(op->flags & STAYS && err == EFAULT) && !same(&before, &after, op->flags, 0)) {
		uint32_t i;

		printf("# %s: point %d (%s) changed the state\n", op->name, n, strerror(err));
		for (i = 0; i < geo.nr_hbms; i++)
			if (before.hbm[i].used != after.hbm[i].used)
				printf("#   HBM %u used %llu, now %llu\n", i,
				       (unsigned long long)before.hbm[i].used,
				       (unsigned long long)after.hbm[i].used);
		for (i = 0; i < geo.nr_cores; i++)
			if (before.core[i].owner != after.core[i].owner)
				printf("#   core %u owner %d, now %d\n", i, before.core[i].owner,
				       after.core[i].owner);
		if (before.fds != after.fds)
			printf("#   %d descriptors, now %d\n", before.fds, after.fds);
		return BROKEN;
	}
	/* What failed once for want of memory works when there is some. */
	if (err == ENOMEM && fd >= 0) {
		err = op->run();
		if (err) {
			printf("# %s: after point %d: %s\n", op->name, n, strerror(err));
			return BROKEN;
		}
	}
	return FAILED;
}

static void sweep(const struct op *op, int looker, const struct state *rest)
{
	int n, status, code, failures = 0, fine = 1, first = failed;
	struct state now;
	pid_t pid;

	for (n = 1; n < POINTS_MAX; n += n < POINTS_EACH ? 1 : POINTS_STEP) {
		fflush(stdout);
		pid = fork();
		if (!pid) {
			char path[64];

			snprintf(path, sizeof(path), "/proc/self/task/%ld/fail-nth",
				 (long)syscall(SYS_gettid));
			nth = open(path, O_RDWR | O_CLOEXEC);
			code = nth < 0 ? BROKEN : one(op, n, looker);
			fflush(stdout);
			_exit(code);
		}
		waitpid(pid, &status, 0);
		code = WIFEXITED(status) ? WEXITSTATUS(status) : BROKEN;
		if (!WIFEXITED(status))
			printf("# %s: point %d: the process died\n", op->name, n);
		look(looker, &now);
		if (!same(rest, &now, 0, 1)) {
			printf("# %s: point %d: not all is back: host memory %llu, HBM 0 used %llu\n",
			       op->name, n, (unsigned long long)host_bytes(&now),
			       (unsigned long long)now.hbm[0].used);
			code = BROKEN;
		}
		if (code == BROKEN)
			fine = 0;
		if (code == FAILED)
			failures++;
		if (code == DONE || code == BROKEN)
			break;
	}
	CHECK(fine && n < POINTS_MAX && failed == first, "%s: %d points, %d calls failed",
	      op->name, n - 1, failures);
}

/* ---- loading -------------------------------------------------------------------------- */

/* Nothing of the device module is there, not even its directories. */
static int unloaded(void)
{
	return access("/sys/module/neuron_emu", F_OK) && access(NODE, F_OK) &&
	       access("/sys/kernel/config/neuron_emu", F_OK) &&
	       access(DEBUGFS "neuron_emu", F_OK);
}

/* Every @step-th point of loading the device module fails. */
static void loading(const char *options, int step)
{
	int n, file, err, fired, fine = 1, failures = 0;
	struct utsname u;
	char path[256];

	if (uname(&u))
		exit(1);
	snprintf(path, sizeof(path), "/lib/modules/%s/updates/neuron_emu.ko", u.release);
	for (n = 1, fired = 1; fired && fine; n += step) {
		file = open(path, O_RDONLY | O_CLOEXEC);
		arm(n);
		err = syscall(SYS_finit_module, file, options, 0) ? errno : 0;
		fired = disarm();
		close(file);
		if (err && (!fired || (err != ENOMEM && err != EFAULT) || !unloaded())) {
			printf("# load, point %d: errno %d %s\n", n, err, strerror(err));
			fine = 0;
		}
		/* Its files may be open in udev. */
		while (!err && syscall(SYS_delete_module, "neuron_emu", O_NONBLOCK) &&
		       (errno == EAGAIN || errno == EBUSY))
			usleep(10000);
		if (!err && !unloaded()) {
			printf("# unload after point %d\n", n);
			fine = 0;
		}
		failures += !!err;
	}
	CHECK(fine && failures, "load with %s: %d points, %d loads failed", options, n - step,
	      failures);
}

int main(void)
{
	static struct state rest;
	int looker, total = 0;
	size_t i;

	if (access("/proc/self/fail-nth", W_OK)) {
		printf("ok - skipped: this kernel has no fault injection\n");
		return 0;
	}
	/* All kinds of allocations, without a trace in the log for each. */
	CHECK(write_text(DEBUGFS "failslab/ignore-gfp-wait", "N") &&
	      write_text(DEBUGFS "failslab/verbose", "0") &&
	      write_text(DEBUGFS "fail_page_alloc/ignore-gfp-wait", "N") &&
	      write_text(DEBUGFS "fail_page_alloc/min-order", "0") &&
	      write_text(DEBUGFS "fail_page_alloc/verbose", "0") &&
	      write_text(DEBUGFS "fail_usercopy/verbose", "0"), "fault injection is set up");

	/*
	 * The memory of the software device is its own: a call must not fail because the
	 * caller does a piece of the device's work while it waits.
	 */
	CHECK(write_text(DEBUGFS "neuron_emu/neuron0/completion", "timer") &&
	      write_text(DEBUGFS "neuron_emu/neuron0/completion_nsec", "1000"),
	      "the device does its work itself");
	fd = open_node(O_RDWR);
	geo = geometry(fd);
	CHECK(!device_info(), "device info");
	buffer = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer == MAP_FAILED)
		return 1;
	memset(buffer, 0, BIG);
	close(fd);
	looker = open_node(O_WRONLY);
	look(looker, &rest);
	CHECK(!host_bytes(&rest) && !rest.hbm[0].own_process, "the device is at rest");
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		sweep(&ops[i], looker, &rest);
		total++;
	}
	CHECK(total > 90, "%d calls", total);
	close(looker);

	nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	CHECK(nth >= 0 && !system("rmmod neuron_emu") && unloaded(), "unload");
	loading("nr_devices=0", 3);
	loading("nr_devices=1", 499);
	CHECK(!system("modprobe neuron_emu"), "load for the tests that follow");
	return failed != 0;
}

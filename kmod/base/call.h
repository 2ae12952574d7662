/* SPDX-License-Identifier: GPL-2.0-only */
/* The ioctls: what a handler gets, and all of them. */
#ifndef NEURON_BASE_CALL_H
#define NEURON_BASE_CALL_H

#include <linux/types.h>

struct neuron_file;

/* @arg is the kernel copy of the argument. */
typedef int (*neuron_ioctl_fn)(struct neuron_file *nf, void *arg, void __user *uarg);

/* base/claim.c */
int neuron_ioctl_nc_range_mark(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nc_range_mark_ext(struct neuron_file *nf, void *arg, void __user *uarg);
void neuron_nc_range_mark_undo(struct neuron_file *nf, void *arg);
void neuron_nc_range_mark_ext_undo(struct neuron_file *nf, void *arg);
int neuron_ioctl_nc_range_unmark(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nc_range_unmark_ext(struct neuron_file *nf, void *arg, void __user *uarg);

/* core/core_ioctl.c */
int neuron_ioctl_nop(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_device_info_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_device_basic_info_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_driver_info(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_compatible_version_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_host_device_id_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_app_pid(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nc_reset(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_device_reset_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_device_ready_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nc_reset_ready(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_reset_eventfd_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_semaphore_increment(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_semaphore_decrement(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_semaphore_read(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_semaphore_write(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_event_set(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_event_get(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_geometry_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

/* core/crwl_ioctl.c */
int neuron_ioctl_crwl_reader_enter(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_crwl_reader_exit(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_crwl_writer_enter(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_crwl_writer_downgrade(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_cinit(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_model_started_count(struct neuron_file *nf, void *arg, void __user *uarg);

/* core/device_ioctl.c */
int neuron_ioctl_device_bdf_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_device_bdf_ext_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_rid_map(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_logical_map(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_printk_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_pid_state_dump(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_apps_info(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_enotty(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_eperm(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_eopnotsupp(struct neuron_file *nf, void *arg, void __user *uarg);

/* core/mem_ioctl.c */
int neuron_ioctl_mem_alloc(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_alloc_v2(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_alloc_v2mt(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_mem_alloc_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);
void neuron_native_mem_alloc_undo(struct neuron_file *nf, void *arg);
int neuron_ioctl_mem_free(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_copy(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_copy64(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_buf_copy(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_buf_copy64(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_memset(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_memset64(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_get_pa(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_get_info(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_get_extended_info(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_mc_get_info(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_mc_get_info_v2(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_hbm_stats_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_core_stats_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

/* core/reg_ioctl.c */
int neuron_ioctl_bar_read(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_bar_write(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_read_hw_counters_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_post_metric_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_program_engine_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_program_engine_nc_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_program_engine_nc64_fn(struct neuron_file *nf, void *arg, void __user *uarg);

/* dma/async.c */
int neuron_ioctl_mem_copy_async(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_mem_copy_async64(struct neuron_file *nf, void *arg, void __user *uarg);
void neuron_mem_copy_async_undo(struct neuron_file *nf, void *arg);
void neuron_mem_copy_async64_undo(struct neuron_file *nf, void *arg);
int neuron_ioctl_mem_copy_async_wait(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_copy_eventfd_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

/* dma/dma_ioctl.c */
int neuron_ioctl_dma_eng_init(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_eng_set_state(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_eng_get_state(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_queue_init(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_queue_init_batch(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_queue_release(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_queue_copy_start(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_ack_completed(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_queue_get_state(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_copy_descriptors(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_copy_descriptors64(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_dma_descriptor_copyout(struct neuron_file *nf, void *arg, void __user *uarg);

/* dma/notify.c */
int neuron_ioctl_nq_init_v1(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nq_init_v2(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_nq_init_realloc_v2(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_nq_eventfd_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

/* mem/datastore.c */
int neuron_ioctl_acquire_ds(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_release_ds(struct neuron_file *nf, void *arg, void __user *uarg);

/* mem/dmabuf.c */
int neuron_ioctl_dmabuf_fd_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_mem_export_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_native_mem_import_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);
void neuron_native_mem_import_undo(struct neuron_file *nf, void *arg);

/* mem/dump.c */
int neuron_ioctl_dump_mem_chunks_fn(struct neuron_file *nf, void *arg, void __user *uarg);

/* mem/failure.c */
int neuron_native_failures_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

/* mem/grow.c */
int neuron_native_mem_grow_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

/* mem/limit.c */
int neuron_native_limit_ioctl(struct neuron_file *nf, void *arg, void __user *uarg);

/* mem/resource.c */
int neuron_ioctl_resource_mmap_info_fn(struct neuron_file *nf, void *arg, void __user *uarg);

/* mem/scrub.c */
int neuron_ioctl_hbm_scrub_start_fn(struct neuron_file *nf, void *arg, void __user *uarg);
int neuron_ioctl_hbm_scrub_wait_fn(struct neuron_file *nf, void *arg, void __user *uarg);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* The ioctl handlers, and the call structure that each of them takes. */
#ifndef NEURON_BASE_CALL_H
#define NEURON_BASE_CALL_H

#include <linux/types.h>

struct neuron_client;
struct neuron_device;
struct neuron_file;

/**
 * struct neuron_call - an ioctl under way
 * @nf: the descriptor
 * @nd: its device
 * @client: the process that opened it; NULL if it was opened write-only
 * @arg: the argument, copied to the kernel
 * @uarg: where it came from
 * @begun: a part is done, and must not be done twice: the call is not tried again
 */
struct neuron_call {
	struct neuron_file *nf;
	struct neuron_device *nd;
	struct neuron_client *client;
	void *arg;
	void __user *uarg;
	bool begun;
};

/* base/claim.c */
int neuron_do_crwl_nc_range_mark(struct neuron_call *call);
int neuron_do_crwl_nc_range_mark_ext(struct neuron_call *call);
void neuron_undo_crwl_nc_range_mark(struct neuron_call *call);
void neuron_undo_crwl_nc_range_mark_ext(struct neuron_call *call);
int neuron_do_crwl_nc_range_unmark(struct neuron_call *call);
int neuron_do_crwl_nc_range_unmark_ext(struct neuron_call *call);

/* base/owner.c */
int neuron_do_native_owner(struct neuron_call *call);

/* core/core_ioctl.c */
int neuron_do_nop(struct neuron_call *call);
int neuron_do_device_info(struct neuron_call *call);
int neuron_do_device_basic_info(struct neuron_call *call);
int neuron_do_driver_info_get(struct neuron_call *call);
int neuron_do_compatible_version(struct neuron_call *call);
int neuron_do_host_device_id(struct neuron_call *call);
int neuron_do_device_app_pid(struct neuron_call *call);
int neuron_do_nc_reset(struct neuron_call *call);
int neuron_do_device_reset(struct neuron_call *call);
int neuron_do_device_ready(struct neuron_call *call);
int neuron_do_nc_reset_ready(struct neuron_call *call);
int neuron_do_native_reset_eventfd(struct neuron_call *call);
int neuron_do_semaphore_increment(struct neuron_call *call);
int neuron_do_semaphore_decrement(struct neuron_call *call);
int neuron_do_semaphore_read(struct neuron_call *call);
int neuron_do_semaphore_write(struct neuron_call *call);
int neuron_do_event_set(struct neuron_call *call);
int neuron_do_event_get(struct neuron_call *call);
int neuron_do_native_get_geometry(struct neuron_call *call);

/* core/crwl_ioctl.c */
int neuron_do_crwl_reader_enter(struct neuron_call *call);
int neuron_do_crwl_reader_exit(struct neuron_call *call);
int neuron_do_crwl_writer_enter(struct neuron_call *call);
int neuron_do_crwl_writer_downgrade(struct neuron_call *call);
int neuron_do_cinit_set_state(struct neuron_call *call);
int neuron_do_nc_model_started_count(struct neuron_call *call);

/* core/device_ioctl.c */
int neuron_do_device_bdf(struct neuron_call *call);
int neuron_do_device_bdf_ext(struct neuron_call *call);
int neuron_do_host_device_id_to_rid_map(struct neuron_call *call);
int neuron_do_get_logical_to_physical_nc_map(struct neuron_call *call);
int neuron_do_printk(struct neuron_call *call);
int neuron_do_nc_pid_state_dump(struct neuron_call *call);
int neuron_do_device_get_all_apps_info(struct neuron_call *call);
int neuron_do_enotty(struct neuron_call *call);
int neuron_do_eperm(struct neuron_call *call);
int neuron_do_eopnotsupp(struct neuron_call *call);

/* core/mem_ioctl.c */
int neuron_do_mem_alloc(struct neuron_call *call);
int neuron_do_mem_alloc_v2(struct neuron_call *call);
int neuron_do_mem_alloc_v2mt(struct neuron_call *call);
int neuron_do_native_mem_alloc(struct neuron_call *call);
void neuron_undo_native_mem_alloc(struct neuron_call *call);
int neuron_do_native_mem_pin(struct neuron_call *call);
void neuron_undo_native_mem_pin(struct neuron_call *call);
int neuron_do_native_mem_unpin(struct neuron_call *call);
int neuron_do_mem_free(struct neuron_call *call);
int neuron_do_mem_copy(struct neuron_call *call);
int neuron_do_mem_copy64(struct neuron_call *call);
int neuron_do_mem_buf_copy(struct neuron_call *call);
int neuron_do_mem_buf_copy64(struct neuron_call *call);
int neuron_do_memset(struct neuron_call *call);
int neuron_do_memset64(struct neuron_call *call);
int neuron_do_mem_get_pa(struct neuron_call *call);
int neuron_do_mem_get_info(struct neuron_call *call);
int neuron_do_mem_get_extended_info(struct neuron_call *call);
int neuron_do_mem_mc_get_info(struct neuron_call *call);
int neuron_do_mem_mc_get_info_v2(struct neuron_call *call);
int neuron_do_native_hbm_stats(struct neuron_call *call);
int neuron_do_native_core_stats(struct neuron_call *call);

/* core/reg_ioctl.c */
int neuron_do_bar_read(struct neuron_call *call);
int neuron_do_bar_write(struct neuron_call *call);
int neuron_do_read_hw_counters(struct neuron_call *call);
int neuron_do_post_metric(struct neuron_call *call);
int neuron_do_program_engine(struct neuron_call *call);
int neuron_do_program_engine_nc(struct neuron_call *call);
int neuron_do_program_engine_nc64(struct neuron_call *call);

/* dma/async.c */
int neuron_do_mem_copy_async(struct neuron_call *call);
int neuron_do_mem_copy_async64(struct neuron_call *call);
void neuron_undo_mem_copy_async(struct neuron_call *call);
void neuron_undo_mem_copy_async64(struct neuron_call *call);
int neuron_do_mem_copy_async_wait(struct neuron_call *call);
int neuron_do_native_copy_eventfd(struct neuron_call *call);

/* dma/dma_ioctl.c */
int neuron_do_dma_eng_init(struct neuron_call *call);
int neuron_do_dma_eng_set_state(struct neuron_call *call);
int neuron_do_dma_eng_get_state(struct neuron_call *call);
int neuron_do_dma_queue_init(struct neuron_call *call);
int neuron_do_dma_queue_init_batch(struct neuron_call *call);
int neuron_do_dma_queue_release(struct neuron_call *call);
int neuron_do_dma_queue_copy_start(struct neuron_call *call);
int neuron_do_dma_ack_completed(struct neuron_call *call);
int neuron_do_dma_queue_get_state(struct neuron_call *call);
int neuron_do_dma_copy_descriptors(struct neuron_call *call);
int neuron_do_dma_copy_descriptors64(struct neuron_call *call);
int neuron_do_dma_descriptor_copyout(struct neuron_call *call);

/* dma/move.c */
int neuron_do_native_mem_alloc_bulk(struct neuron_call *call);
int neuron_do_native_mem_free_bulk(struct neuron_call *call);
int neuron_do_native_mem_compact(struct neuron_call *call);

/* dma/notify.c */
int neuron_do_notifications_init_v1(struct neuron_call *call);
int neuron_do_notifications_init_v2(struct neuron_call *call);
int neuron_do_notifications_init_with_realloc_v2(struct neuron_call *call);
int neuron_do_native_nq_eventfd(struct neuron_call *call);

/* mem/datastore.c */
int neuron_do_acquire_neuron_ds(struct neuron_call *call);
int neuron_do_release_neuron_ds(struct neuron_call *call);

/* mem/dmabuf.c */
int neuron_do_dmabuf_fd(struct neuron_call *call);
int neuron_do_native_mem_export(struct neuron_call *call);
int neuron_do_native_mem_import(struct neuron_call *call);
void neuron_undo_native_mem_import(struct neuron_call *call);

/* mem/dump.c */
int neuron_do_dump_mem_chunks(struct neuron_call *call);
int neuron_do_native_hbm_ranges(struct neuron_call *call);
int neuron_do_native_owners(struct neuron_call *call);
int neuron_do_native_events(struct neuron_call *call);

/* mem/failure.c */
int neuron_do_native_failures(struct neuron_call *call);

/* mem/grow.c */
int neuron_do_native_mem_grow(struct neuron_call *call);

/* mem/limit.c */
int neuron_do_native_limit(struct neuron_call *call);

/* mem/resource.c */
int neuron_do_resource_mmap_info(struct neuron_call *call);

/* mem/scrub.c */
int neuron_do_hbm_scrub_start(struct neuron_call *call);
int neuron_do_hbm_scrub_wait(struct neuron_call *call);

#endif

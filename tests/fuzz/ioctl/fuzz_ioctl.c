// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzer of /dev/neuronN, run in a test guest: several processes with several threads
 * each send commands of both doors, map, touch and unmap memory, read the sysfs tree and
 * the debugfs directories and write to them, make, use, pull out and remove devices in
 * configfs, pass descriptors to each other, and are killed in the middle of it. Most
 * values are good ones, so that calls get far: handles that exist, addresses of live
 * memory, rings with descriptors; the rest is nearly good, or anything.
 *
 * Half of the ioctls are varied from those of a corpus, the file /corpus. Where the kernel
 * gives coverage (CONFIG_KCOV, modules built with NEURON_KCOV=1), calls that reached something
 * new are kept and varied, too, and printed in the end: a corpus for other runs.
 *
 * What counts as a failure is the kernel's: a complaint in its log, found by the rig. When
 * there is one, the last calls of each thread are printed here, oldest first. After the
 * last process is gone, everything must be back and the device must work.
 *
 * Settings on the kernel command line: fuzz.seconds=30 fuzz.calls=0 (if not 0, the end may
 * come sooner) fuzz.seed=1 fuzz.workers=3. With one worker and the same seed, the calls are
 * the same up to the first kill.
 *
 * With the name of a corpus as its argument, the program only looks whether it is one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "neuron_ioctl.h"
#include "neuron_isa.h"
#include "neuron_native.h"

#define TREE		"/sys/devices/virtual/neuron_device"
#define DEBUG		"/sys/kernel/debug/neuron"
#define DEBUG_EMU	"/sys/kernel/debug/neuron_emu"
#define CONFIG		"/sys/kernel/config/neuron_emu"
#define GUESTS		3		/* devices in configfs */
#define PANIC_ON_WARN	"/proc/sys/kernel/panic_on_warn"
#define PANIC_ON_OOPS	"/proc/sys/kernel/panic_on_oops"
#define DEVICES_MAX	4
#define WORKERS_MAX	8
#define THREADS		2
#define POOL		48		/* handles of a process */
#define MAPS		8
#define DMABUFS		8
#define FILES_MAX	2048
#define ARG_MAX		(16u << 10)	/* largest argument structure */
#define BUF_MAX		(1u << 20)	/* what pointers lead to */
#define HISTORY		64
#define CORPUS_FILE	"/corpus"
#define CORPUS		8192
#define LINE		640		/* of it */
#define COVER		(1u << 16)

/* ---- what a command takes --------------------------------------------------------- */

enum kind {
	ANY,		/* a number without a meaning */
	HANDLE,
	CORE,
	HBM,
	ENGINE,
	QUEUE,
	INDEX,		/* of semaphores and events */
	BYTES,
	OFFSET,
	ALIGN,
	COUNT,		/* of descriptors, registers, entries */
	FLAG,		/* small set: 0, 1, 2, 3 */
	FLAGS,		/* of the native calls, unknown ones too */
	CATEGORY,
	POWER,		/* a power of two, size of a queue */
	TOKEN,
	PID,
	EVENTFD,
	DMABUF,
	LIMIT,
	ENTRY_SIZE,	/* of a list */
	OWNER,		/* number of an owner of memory, mostly that of the process */
	LETTER,		/* first byte of a label */
	STRUCT_SIZE,	/* of the structure itself */
	ADDRESS,	/* of device memory or a core */
	WINDOW,		/* of a register, as BAR_READ knows it */
	POINTER,	/* to memory that is read or written */
	REGISTERS,	/* to addresses of registers */
	DESCRIPTORS,	/* to descriptors */
	PROGRAM,	/* to instructions */
	MAPPING,	/* to a mapping of device or host memory */
	TEXT,
};

struct field {
	uint16_t off;
	uint8_t size;
	uint8_t kind;
};

/* What a good result tells. */
enum result {
	NOTHING,
	HANDLE_AT,	/* a handle, where a pointer of the argument leads */
	HANDLE_IN,	/* a handle in the argument */
	MAP_IN,		/* an offset for mmap in the argument */
	FREED,		/* the handle is gone */
	TOKEN_IN,
	DMABUF_AT,	/* a descriptor, where a pointer of the argument leads */
	DMABUF_IN,
};

struct command {
	const char *name;
	uint32_t cmd;
	uint32_t size;
	uint8_t result;
	uint16_t at;
	uint8_t weight;
	uint8_t nr;
	struct field field[16];
};

#define F(type, member, kind)	{ offsetof(type, member), sizeof(((type *)0)->member), kind }
#define FIELDS(...)							\
	.nr = sizeof((struct field[]){ __VA_ARGS__ }) / sizeof(struct field),	\
	.field = { __VA_ARGS__ }
#define CALL(_name, _type, _weight, _result, _at, ...)			\
	{ .name = #_name, .cmd = NEURON_IOCTL_##_name, .size = sizeof(_type),	\
	  .result = _result, .at = _at, .weight = _weight, FIELDS(__VA_ARGS__) }
#define CALL_NATIVE(_name, _type, _weight, _result, _at, ...)		\
	{ .name = "NATIVE_" #_name, .cmd = NEURON_NATIVE_##_name, .size = sizeof(_type), \
	  .result = _result, .at = _at, .weight = _weight, FIELDS(__VA_ARGS__) }
/* No argument, or only results, or none that anybody looks at. */
#define CALL_PLAIN(_name, _size)					\
	{ .name = #_name, .cmd = NEURON_IOCTL_##_name, .size = _size, .weight = 1 }

static const struct command commands[] = {
	CALL_PLAIN(DEVICE_RESET, 0),
	CALL_PLAIN(DEVICE_READY, 1),
	CALL_PLAIN(DEVICE_INFO, sizeof(struct neuron_ioctl_device_info)),
	CALL_PLAIN(DEVICE_INIT, 4),
	CALL_PLAIN(DEVICE_RELEASE, 0),
	CALL_PLAIN(DEVICE_APP_PID, 4),
	CALL_PLAIN(DMA_QUIESCE_QUEUES, sizeof(struct neuron_ioctl_dma_quiesce_queues)),
	CALL_PLAIN(NOTIFICATIONS_DESTROY_V1, 8),
	CALL_PLAIN(NOTIFICATIONS_QUEUE_INFO, 16),
	CALL_PLAIN(COMPATIBLE_VERSION, 8),
	CALL_PLAIN(DEVICE_BASIC_INFO, 8),
	CALL_PLAIN(DEVICE_BDF, 8),
	CALL_PLAIN(DEVICE_RESET_STATUS, 1),
	CALL_PLAIN(DRIVER_INFO_GET, 24),
	CALL_PLAIN(DRIVER_INFO_SET, 24),
	CALL_PLAIN(HOST_DEVICE_ID, 4),
	CALL_PLAIN(HOST_DEVICE_ID_TO_RID_MAP,
		   sizeof(struct neuron_ioctl_host_device_id_to_rid_map)),
	CALL_PLAIN(POD_INFO, 4096),
	CALL_PLAIN(POD_STATUS, 4096),
	CALL_PLAIN(POD_STATUS_V2, 4096),
	CALL_PLAIN(POD_CTRL, 4096),
	CALL_PLAIN(POD_CTRL_V2, 4096),
	CALL(DEVICE_GET_ALL_APPS_INFO, struct neuron_ioctl_get_apps_info, 1, NOTHING, 0,
	     F(struct neuron_ioctl_get_apps_info, apps_info_flags, FLAG),
	     F(struct neuron_ioctl_get_apps_info, capacity, COUNT)),
	CALL(BAR_READ, struct neuron_ioctl_bar_rw, 3, NOTHING, 0,
	     F(struct neuron_ioctl_bar_rw, bar, FLAG),
	     F(struct neuron_ioctl_bar_rw, address, REGISTERS),
	     F(struct neuron_ioctl_bar_rw, data, POINTER),
	     F(struct neuron_ioctl_bar_rw, count, COUNT)),
	CALL(BAR_WRITE, struct neuron_ioctl_bar_rw, 3, NOTHING, 0,
	     F(struct neuron_ioctl_bar_rw, bar, FLAG),
	     F(struct neuron_ioctl_bar_rw, address, REGISTERS),
	     F(struct neuron_ioctl_bar_rw, data, POINTER),
	     F(struct neuron_ioctl_bar_rw, count, COUNT)),
	CALL(POST_METRIC, struct neuron_ioctl_post_metric, 1, NOTHING, 0,
	     F(struct neuron_ioctl_post_metric, data, POINTER),
	     F(struct neuron_ioctl_post_metric, data_size, COUNT)),
	CALL(MEM_ALLOC, struct neuron_ioctl_mem_alloc, 3, HANDLE_AT,
	     offsetof(struct neuron_ioctl_mem_alloc, mem_handle),
	     F(struct neuron_ioctl_mem_alloc, size, BYTES),
	     F(struct neuron_ioctl_mem_alloc, host_memory, FLAG),
	     F(struct neuron_ioctl_mem_alloc, dram_channel, HBM),
	     F(struct neuron_ioctl_mem_alloc, dram_region, FLAG),
	     F(struct neuron_ioctl_mem_alloc, nc_id, CORE),
	     F(struct neuron_ioctl_mem_alloc, mem_handle, POINTER)),
	CALL(MEM_ALLOC_V2, struct neuron_ioctl_mem_alloc_v2, 3, HANDLE_AT,
	     offsetof(struct neuron_ioctl_mem_alloc_v2, mem_handle),
	     F(struct neuron_ioctl_mem_alloc_v2, size, BYTES),
	     F(struct neuron_ioctl_mem_alloc_v2, align, ALIGN),
	     F(struct neuron_ioctl_mem_alloc_v2, host_memory, FLAG),
	     F(struct neuron_ioctl_mem_alloc_v2, dram_channel, HBM),
	     F(struct neuron_ioctl_mem_alloc_v2, nc_id, CORE),
	     F(struct neuron_ioctl_mem_alloc_v2, mem_handle, POINTER)),
	CALL(MEM_ALLOC_V2MT, struct neuron_ioctl_mem_alloc_v2_mem_type, 3, HANDLE_AT,
	     offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type, mem_handle),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type, size, BYTES),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type, align, ALIGN),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type, host_memory, FLAG),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type, dram_channel, HBM),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type, nc_id, CORE),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type, mem_type, CATEGORY),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type, mem_handle, POINTER)),
	CALL(MEM_ALLOC_V2MT64, struct neuron_ioctl_mem_alloc_v2_mem_type64, 3, HANDLE_AT,
	     offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type64, mem_handle),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type64, size, BYTES),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type64, align, ALIGN),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type64, host_memory, FLAG),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type64, dram_channel, HBM),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type64, nc_id, CORE),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type64, mem_type, CATEGORY),
	     F(struct neuron_ioctl_mem_alloc_v2_mem_type64, mem_handle, POINTER)),
	CALL(MEM_FREE, struct neuron_ioctl_mem_free, 6, FREED, 0,
	     F(struct neuron_ioctl_mem_free, mem_handle, HANDLE)),
	CALL(MEM_COPY, struct neuron_ioctl_mem_copy, 3, NOTHING, 0,
	     F(struct neuron_ioctl_mem_copy, src_mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_copy, dst_mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_copy, size, BYTES),
	     F(struct neuron_ioctl_mem_copy, src_offset, OFFSET),
	     F(struct neuron_ioctl_mem_copy, dst_offset, OFFSET)),
	CALL(MEM_COPY64, struct neuron_ioctl_mem_copy64, 3, NOTHING, 0,
	     F(struct neuron_ioctl_mem_copy64, src_mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_copy64, dst_mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_copy64, size, BYTES),
	     F(struct neuron_ioctl_mem_copy64, src_offset, OFFSET),
	     F(struct neuron_ioctl_mem_copy64, dst_offset, OFFSET)),
	CALL(MEM_COPY_ASYNC, struct neuron_ioctl_mem_copy_async, 3, TOKEN_IN,
	     offsetof(struct neuron_ioctl_mem_copy_async, wait_handle),
	     F(struct neuron_ioctl_mem_copy_async, src_mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_copy_async, dst_mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_copy_async, size, BYTES),
	     F(struct neuron_ioctl_mem_copy_async, src_offset, OFFSET),
	     F(struct neuron_ioctl_mem_copy_async, dst_offset, OFFSET),
	     F(struct neuron_ioctl_mem_copy_async, host_prefetch_addr, POINTER),
	     F(struct neuron_ioctl_mem_copy_async, pwait_handle, TOKEN)),
	CALL(MEM_COPY_ASYNC64, struct neuron_ioctl_mem_copy_async64, 3, TOKEN_IN,
	     offsetof(struct neuron_ioctl_mem_copy_async64, wait_handle),
	     F(struct neuron_ioctl_mem_copy_async64, src_mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_copy_async64, dst_mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_copy_async64, size, BYTES),
	     F(struct neuron_ioctl_mem_copy_async64, src_offset, OFFSET),
	     F(struct neuron_ioctl_mem_copy_async64, dst_offset, OFFSET),
	     F(struct neuron_ioctl_mem_copy_async64, host_prefetch_addr, POINTER),
	     F(struct neuron_ioctl_mem_copy_async64, pwait_handle, TOKEN)),
	CALL(MEM_COPY_ASYNC_WAIT, struct neuron_ioctl_mem_copy_async_wait, 3, NOTHING, 0,
	     F(struct neuron_ioctl_mem_copy_async_wait, src_mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_copy_async_wait, dst_mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_copy_async_wait, pwait_handle, TOKEN)),
	CALL(MEM_BUF_COPY, struct neuron_ioctl_mem_buf_copy, 3, NOTHING, 0,
	     F(struct neuron_ioctl_mem_buf_copy, mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_buf_copy, buffer, POINTER),
	     F(struct neuron_ioctl_mem_buf_copy, size, BYTES),
	     F(struct neuron_ioctl_mem_buf_copy, offset, OFFSET),
	     F(struct neuron_ioctl_mem_buf_copy, copy_to_mem_handle, FLAG)),
	CALL(MEM_BUF_COPY64, struct neuron_ioctl_mem_buf_copy64, 4, NOTHING, 0,
	     F(struct neuron_ioctl_mem_buf_copy64, mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_buf_copy64, buffer, POINTER),
	     F(struct neuron_ioctl_mem_buf_copy64, size, BYTES),
	     F(struct neuron_ioctl_mem_buf_copy64, offset, OFFSET),
	     F(struct neuron_ioctl_mem_buf_copy64, copy_to_mem_handle, FLAG)),
	CALL(MEM_BUF_ZEROCOPY64, struct neuron_ioctl_mem_buf_copy64, 4, NOTHING, 0,
	     F(struct neuron_ioctl_mem_buf_copy64, mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_buf_copy64, buffer, POINTER),
	     F(struct neuron_ioctl_mem_buf_copy64, size, BYTES),
	     F(struct neuron_ioctl_mem_buf_copy64, offset, OFFSET),
	     F(struct neuron_ioctl_mem_buf_copy64, copy_to_mem_handle, FLAG)),
	CALL(MEM_GET_PA, struct neuron_ioctl_mem_get_pa, 2, NOTHING, 0,
	     F(struct neuron_ioctl_mem_get_pa, mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_get_pa, pa, POINTER)),
	CALL(MEM_GET_INFO, struct neuron_ioctl_mem_get_info, 2, NOTHING, 0,
	     F(struct neuron_ioctl_mem_get_info, mem_handle, HANDLE),
	     F(struct neuron_ioctl_mem_get_info, mmap_offset, POINTER),
	     F(struct neuron_ioctl_mem_get_info, pa, POINTER)),
	CALL(MEM_GET_EXTENDED_INFO, struct neuron_ioctl_mem_get_extended_info, 2, MAP_IN,
	     offsetof(struct neuron_ioctl_mem_get_extended_info, mmap_offset),
	     F(struct neuron_ioctl_mem_get_extended_info, mem_handle, HANDLE)),
	CALL(MEM_MC_GET_INFO, struct neuron_ioctl_mem_get_mc_mmap_info, 2, MAP_IN,
	     offsetof(struct neuron_ioctl_mem_get_mc_mmap_info, mmap_offset),
	     F(struct neuron_ioctl_mem_get_mc_mmap_info, pa, ADDRESS)),
	CALL(MEM_MC_GET_INFO_V2, struct neuron_ioctl_mem_get_mc_mmap_info_v2, 2, MAP_IN,
	     offsetof(struct neuron_ioctl_mem_get_mc_mmap_info_v2, mmap_offset),
	     F(struct neuron_ioctl_mem_get_mc_mmap_info_v2, pa, ADDRESS)),
	CALL(DUMP_MEM_CHUNKS, struct neuron_ioctl_dump_mem_chunks, 2, NOTHING, 0,
	     F(struct neuron_ioctl_dump_mem_chunks, hbm_index, HBM),
	     F(struct neuron_ioctl_dump_mem_chunks, num_entries_in, COUNT),
	     F(struct neuron_ioctl_dump_mem_chunks, data, POINTER)),
	CALL(PROGRAM_ENGINE, struct neuron_ioctl_program_engine, 3, NOTHING, 0,
	     F(struct neuron_ioctl_program_engine, dst, ADDRESS),
	     F(struct neuron_ioctl_program_engine, buffer, PROGRAM),
	     F(struct neuron_ioctl_program_engine, size, BYTES),
	     F(struct neuron_ioctl_program_engine, offset, OFFSET)),
	CALL(PROGRAM_ENGINE_NC, struct neuron_ioctl_program_engine_nc, 3, NOTHING, 0,
	     F(struct neuron_ioctl_program_engine_nc, nc_id, CORE),
	     F(struct neuron_ioctl_program_engine_nc, dst, ADDRESS),
	     F(struct neuron_ioctl_program_engine_nc, buffer, PROGRAM),
	     F(struct neuron_ioctl_program_engine_nc, size, BYTES),
	     F(struct neuron_ioctl_program_engine_nc, offset, OFFSET)),
	CALL(PROGRAM_ENGINE_NC64, struct neuron_ioctl_program_engine_nc64, 3, NOTHING, 0,
	     F(struct neuron_ioctl_program_engine_nc64, nc_id, CORE),
	     F(struct neuron_ioctl_program_engine_nc64, dst, ADDRESS),
	     F(struct neuron_ioctl_program_engine_nc64, buffer, PROGRAM),
	     F(struct neuron_ioctl_program_engine_nc64, size, BYTES),
	     F(struct neuron_ioctl_program_engine_nc64, offset, OFFSET)),
	CALL(MEMSET, struct neuron_ioctl_memset, 3, NOTHING, 0,
	     F(struct neuron_ioctl_memset, mem_handle, HANDLE),
	     F(struct neuron_ioctl_memset, offset, OFFSET),
	     F(struct neuron_ioctl_memset, value, ANY),
	     F(struct neuron_ioctl_memset, size, BYTES)),
	CALL(MEMSET64, struct neuron_ioctl_memset64, 3, NOTHING, 0,
	     F(struct neuron_ioctl_memset64, mem_handle, HANDLE),
	     F(struct neuron_ioctl_memset64, offset, OFFSET),
	     F(struct neuron_ioctl_memset64, value, ANY),
	     F(struct neuron_ioctl_memset64, size, BYTES)),
	CALL(DMA_ENG_INIT, struct neuron_ioctl_dma_eng_init, 1, NOTHING, 0,
	     F(struct neuron_ioctl_dma_eng_init, eng_id, ENGINE)),
	CALL(DMA_ENG_SET_STATE, struct neuron_ioctl_dma_eng_set_state, 1, NOTHING, 0,
	     F(struct neuron_ioctl_dma_eng_set_state, eng_id, ENGINE),
	     F(struct neuron_ioctl_dma_eng_set_state, state, FLAG)),
	CALL(DMA_ENG_GET_STATE, struct neuron_ioctl_dma_eng_get_state, 1, NOTHING, 0,
	     F(struct neuron_ioctl_dma_eng_get_state, eng_id, ENGINE),
	     F(struct neuron_ioctl_dma_eng_get_state, state, POINTER)),
	CALL(DMA_QUEUE_INIT, struct neuron_ioctl_dma_queue_init, 6, NOTHING, 0,
	     F(struct neuron_ioctl_dma_queue_init, eng_id, ENGINE),
	     F(struct neuron_ioctl_dma_queue_init, qid, QUEUE),
	     F(struct neuron_ioctl_dma_queue_init, tx_desc_count, COUNT),
	     F(struct neuron_ioctl_dma_queue_init, rx_desc_count, COUNT),
	     F(struct neuron_ioctl_dma_queue_init, tx_handle, HANDLE),
	     F(struct neuron_ioctl_dma_queue_init, rx_handle, HANDLE),
	     F(struct neuron_ioctl_dma_queue_init, axi_port, FLAG)),
	CALL(DMA_QUEUE_INIT_BATCH, struct neuron_ioctl_dma_queue_init_batch, 1, NOTHING, 0,
	     F(struct neuron_ioctl_dma_queue_init_batch, count, FLAG),
	     F(struct neuron_ioctl_dma_queue_init_batch, entries[0].eng_id, ENGINE),
	     F(struct neuron_ioctl_dma_queue_init_batch, entries[0].qid, QUEUE),
	     F(struct neuron_ioctl_dma_queue_init_batch, entries[0].tx_desc_count, COUNT),
	     F(struct neuron_ioctl_dma_queue_init_batch, entries[0].rx_desc_count, COUNT),
	     F(struct neuron_ioctl_dma_queue_init_batch, entries[0].tx_handle, HANDLE),
	     F(struct neuron_ioctl_dma_queue_init_batch, entries[0].rx_handle, HANDLE),
	     F(struct neuron_ioctl_dma_queue_init_batch, entries[1].eng_id, ENGINE),
	     F(struct neuron_ioctl_dma_queue_init_batch, entries[1].qid, QUEUE),
	     F(struct neuron_ioctl_dma_queue_init_batch, entries[1].tx_desc_count, COUNT),
	     F(struct neuron_ioctl_dma_queue_init_batch, entries[1].tx_handle, HANDLE)),
	CALL(DMA_QUEUE_RELEASE, struct neuron_ioctl_dma_queue_release, 1, NOTHING, 0,
	     F(struct neuron_ioctl_dma_queue_release, eng_id, ENGINE),
	     F(struct neuron_ioctl_dma_queue_release, qid, QUEUE)),
	CALL(DMA_QUEUE_COPY_START, struct neuron_ioctl_dma_queue_copy_start, 6, NOTHING, 0,
	     F(struct neuron_ioctl_dma_queue_copy_start, eng_id, ENGINE),
	     F(struct neuron_ioctl_dma_queue_copy_start, qid, QUEUE),
	     F(struct neuron_ioctl_dma_queue_copy_start, tx_desc_count, FLAG),
	     F(struct neuron_ioctl_dma_queue_copy_start, rx_desc_count, FLAG)),
	CALL(DMA_ACK_COMPLETED, struct neuron_ioctl_dma_ack_completed, 1, NOTHING, 0,
	     F(struct neuron_ioctl_dma_ack_completed, eng_id, ENGINE),
	     F(struct neuron_ioctl_dma_ack_completed, qid, QUEUE),
	     F(struct neuron_ioctl_dma_ack_completed, count, COUNT)),
	CALL(DMA_QUEUE_GET_STATE, struct neuron_ioctl_dma_queue_get_state, 1, NOTHING, 0,
	     F(struct neuron_ioctl_dma_queue_get_state, eng_id, ENGINE),
	     F(struct neuron_ioctl_dma_queue_get_state, qid, QUEUE),
	     F(struct neuron_ioctl_dma_queue_get_state, tx, POINTER),
	     F(struct neuron_ioctl_dma_queue_get_state, rx, POINTER)),
	CALL(DMA_COPY_DESCRIPTORS, struct neuron_ioctl_dma_copy_descriptors, 4, NOTHING, 0,
	     F(struct neuron_ioctl_dma_copy_descriptors, mem_handle, HANDLE),
	     F(struct neuron_ioctl_dma_copy_descriptors, buffer, DESCRIPTORS),
	     F(struct neuron_ioctl_dma_copy_descriptors, num_descs, COUNT),
	     F(struct neuron_ioctl_dma_copy_descriptors, offset, OFFSET),
	     F(struct neuron_ioctl_dma_copy_descriptors, queue_type, FLAG)),
	CALL(DMA_COPY_DESCRIPTORS64, struct neuron_ioctl_dma_copy_descriptors64, 4, NOTHING, 0,
	     F(struct neuron_ioctl_dma_copy_descriptors64, mem_handle, HANDLE),
	     F(struct neuron_ioctl_dma_copy_descriptors64, buffer, DESCRIPTORS),
	     F(struct neuron_ioctl_dma_copy_descriptors64, num_descs, COUNT),
	     F(struct neuron_ioctl_dma_copy_descriptors64, offset, OFFSET),
	     F(struct neuron_ioctl_dma_copy_descriptors64, queue_type, FLAG)),
	CALL(DMA_DESCRIPTOR_COPYOUT, struct neuron_ioctl_dma_descriptor_copyout, 2, NOTHING, 0,
	     F(struct neuron_ioctl_dma_descriptor_copyout, eng_id, ENGINE),
	     F(struct neuron_ioctl_dma_descriptor_copyout, qid, QUEUE),
	     F(struct neuron_ioctl_dma_descriptor_copyout, type, FLAG),
	     F(struct neuron_ioctl_dma_descriptor_copyout, start_index, COUNT),
	     F(struct neuron_ioctl_dma_descriptor_copyout, count, COUNT),
	     F(struct neuron_ioctl_dma_descriptor_copyout, buffer, POINTER)),
#define SEMAPHORE(name)								\
	CALL(name, struct neuron_ioctl_semaphore, 1, NOTHING, 0,		\
	     F(struct neuron_ioctl_semaphore, nc_id, CORE),			\
	     F(struct neuron_ioctl_semaphore, semaphore_index, INDEX),		\
	     F(struct neuron_ioctl_semaphore, value, FLAG))
	SEMAPHORE(SEMAPHORE_INCREMENT),
	SEMAPHORE(SEMAPHORE_DECREMENT),
	SEMAPHORE(SEMAPHORE_READ),
	SEMAPHORE(SEMAPHORE_WRITE),
#define EVENT(name)								\
	CALL(name, struct neuron_ioctl_event, 1, NOTHING, 0,			\
	     F(struct neuron_ioctl_event, nc_id, CORE),				\
	     F(struct neuron_ioctl_event, event_index, INDEX),			\
	     F(struct neuron_ioctl_event, value, FLAG))
	EVENT(EVENT_SET),
	EVENT(EVENT_GET),
	CALL(NOTIFICATIONS_INIT_V1, struct neuron_ioctl_notifications_init_v1, 2, MAP_IN,
	     offsetof(struct neuron_ioctl_notifications_init_v1, mmap_offset),
	     F(struct neuron_ioctl_notifications_init_v1, nc_id, CORE),
	     F(struct neuron_ioctl_notifications_init_v1, nq_type, FLAG),
	     F(struct neuron_ioctl_notifications_init_v1, engine_index, FLAG),
	     F(struct neuron_ioctl_notifications_init_v1, size, POWER)),
#define NQ(name, type)								\
	CALL(name, type, 3, HANDLE_IN, offsetof(type, mem_handle),		\
	     F(type, nq_dev_id, CORE), F(type, nq_type, FLAG),			\
	     F(type, engine_index, FLAG), F(type, size, POWER),			\
	     F(type, on_host_memory, FLAG), F(type, dram_channel, HBM))
	NQ(NOTIFICATIONS_INIT_V2, struct neuron_ioctl_notifications_init_v2),
	CALL(NOTIFICATIONS_INIT_WITH_REALLOC_V2,
	     struct neuron_ioctl_notifications_init_with_realloc_v2, 3, HANDLE_IN,
	     offsetof(struct neuron_ioctl_notifications_init_with_realloc_v2, mem_handle),
	     F(struct neuron_ioctl_notifications_init_with_realloc_v2, nq_dev_id, CORE),
	     F(struct neuron_ioctl_notifications_init_with_realloc_v2, nq_dev_type, FLAG),
	     F(struct neuron_ioctl_notifications_init_with_realloc_v2, nq_type, FLAG),
	     F(struct neuron_ioctl_notifications_init_with_realloc_v2, engine_index, FLAG),
	     F(struct neuron_ioctl_notifications_init_with_realloc_v2, size, POWER),
	     F(struct neuron_ioctl_notifications_init_with_realloc_v2, on_host_memory, FLAG),
	     F(struct neuron_ioctl_notifications_init_with_realloc_v2, dram_channel, HBM),
	     F(struct neuron_ioctl_notifications_init_with_realloc_v2, force_alloc_mem, FLAG)),
	CALL(READ_HW_COUNTERS, struct neuron_ioctl_read_hw_counters, 2, NOTHING, 0,
	     F(struct neuron_ioctl_read_hw_counters, address, REGISTERS),
	     F(struct neuron_ioctl_read_hw_counters, data, POINTER),
	     F(struct neuron_ioctl_read_hw_counters, count, COUNT)),
	CALL(ACQUIRE_NEURON_DS, struct neuron_ioctl_neuron_ds_info, 2, MAP_IN,
	     offsetof(struct neuron_ioctl_neuron_ds_info, mmap_offset),
	     F(struct neuron_ioctl_neuron_ds_info, pid, PID)),
	CALL(RELEASE_NEURON_DS, struct neuron_ioctl_neuron_ds_info, 1, NOTHING, 0,
	     F(struct neuron_ioctl_neuron_ds_info, pid, PID)),
#define CRWL(name)								\
	CALL(name, struct neuron_ioctl_crwl, 1, NOTHING, 0,			\
	     F(struct neuron_ioctl_crwl, nc_id, CORE),				\
	     { offsetof(struct neuron_ioctl_crwl, uuid), 1, FLAG })
	CRWL(CRWL_READER_ENTER),
	CRWL(CRWL_READER_EXIT),
	CRWL(CRWL_WRITER_ENTER),
	CRWL(CRWL_WRITER_DOWNGRADE),
#define RANGE(name, type, map)							\
	CALL(name, type, 1, NOTHING, 0, F(type, nc_count, CORE),		\
	     F(type, start_nc_index, CORE), F(type, end_nc_index, CORE), F(type, map, ANY))
	RANGE(CRWL_NC_RANGE_MARK, struct neuron_ioctl_crwl_nc_map, bitmap),
	RANGE(CRWL_NC_RANGE_MARK_EXT0, struct neuron_ioctl_crwl_nc_map_ext, bitmap[0]),
	RANGE(CRWL_NC_RANGE_UNMARK, struct neuron_ioctl_crwl_nc_map, bitmap),
	RANGE(CRWL_NC_RANGE_UNMARK_EXT0, struct neuron_ioctl_crwl_nc_map_ext, bitmap[0]),
	CALL(CINIT_SET_STATE, struct neuron_ioctl_cinit_set, 1, NOTHING, 0,
	     F(struct neuron_ioctl_cinit_set, nc_id, CORE),
	     F(struct neuron_ioctl_cinit_set, state, FLAG)),
	CALL(NC_MODEL_STARTED_COUNT, struct neuron_ioctl_nc_model_started_count, 1, NOTHING, 0,
	     F(struct neuron_ioctl_nc_model_started_count, nc_id, CORE)),
	CALL(DEVICE_BDF_EXT, struct neuron_ioctl_device_bdf_ext, 1, NOTHING, 0,
	     F(struct neuron_ioctl_device_bdf_ext, nd_index, CORE)),
	CALL(NC_RESET, struct neuron_ioctl_device_reset, 1, NOTHING, 0,
	     F(struct neuron_ioctl_device_reset, nc_map, ANY)),
	CALL(NC_RESET_READY, struct neuron_ioctl_device_ready, 1, NOTHING, 0,
	     F(struct neuron_ioctl_device_ready, request_id, ANY)),
	CALL(PRINTK, struct neuron_ioctl_printk, 1, NOTHING, 0,
	     F(struct neuron_ioctl_printk, buffer, TEXT),
	     F(struct neuron_ioctl_printk, size, COUNT)),
	CALL(NC_PID_STATE_DUMP, struct neuron_ioctl_nc_pid_state_dump, 1, NOTHING, 0,
	     F(struct neuron_ioctl_nc_pid_state_dump, nc_id, CORE),
	     F(struct neuron_ioctl_nc_pid_state_dump, filter_log_owner, FLAG),
	     F(struct neuron_ioctl_nc_pid_state_dump, log_dump_limit, COUNT)),
	CALL(GET_LOGICAL_TO_PHYSICAL_NC_MAP,
	     struct neuron_ioctl_get_logical_to_physical_nc_map, 1, NOTHING, 0,
	     F(struct neuron_ioctl_get_logical_to_physical_nc_map, map, POINTER),
	     F(struct neuron_ioctl_get_logical_to_physical_nc_map, max_map_entries, COUNT),
	     F(struct neuron_ioctl_get_logical_to_physical_nc_map, mapping_version, FLAG)),
	CALL(DMABUF_FD, struct neuron_ioctl_dmabuf_fd, 3, DMABUF_AT,
	     offsetof(struct neuron_ioctl_dmabuf_fd, fd),
	     F(struct neuron_ioctl_dmabuf_fd, va, MAPPING),
	     F(struct neuron_ioctl_dmabuf_fd, size, BYTES),
	     F(struct neuron_ioctl_dmabuf_fd, fd, POINTER)),
	CALL(RESOURCE_MMAP_INFO, struct neuron_ioctl_resource_mmap_info, 2, MAP_IN,
	     offsetof(struct neuron_ioctl_resource_mmap_info, offset),
	     F(struct neuron_ioctl_resource_mmap_info, block, FLAG),
	     F(struct neuron_ioctl_resource_mmap_info, block_id, CORE),
	     F(struct neuron_ioctl_resource_mmap_info, resource, FLAG)),
	CALL(HBM_SCRUB_START, struct neuron_ioctl_hbm_scrub_start, 1, NOTHING, 0,
	     F(struct neuron_ioctl_hbm_scrub_start, nc_id, CORE),
	     F(struct neuron_ioctl_hbm_scrub_start, hbm_index, HBM),
	     F(struct neuron_ioctl_hbm_scrub_start, axi_port, FLAG),
	     F(struct neuron_ioctl_hbm_scrub_start, init_val, ANY)),
	CALL(HBM_SCRUB_WAIT, struct neuron_ioctl_hbm_scrub_wait, 1, NOTHING, 0,
	     F(struct neuron_ioctl_hbm_scrub_wait, nc_id, CORE),
	     F(struct neuron_ioctl_hbm_scrub_wait, hbm_index, HBM)),
	CALL_NATIVE(GET_GEOMETRY, struct neuron_native_geometry, 1, NOTHING, 0,
		    F(struct neuron_native_geometry, size, STRUCT_SIZE)),
	CALL_NATIVE(MEM_ALLOC, struct neuron_native_mem_alloc, 8, HANDLE_IN,
		    offsetof(struct neuron_native_mem_alloc, mem_handle),
		    F(struct neuron_native_mem_alloc, size, STRUCT_SIZE),
		    F(struct neuron_native_mem_alloc, flags, FLAGS),
		    F(struct neuron_native_mem_alloc, bytes, BYTES),
		    F(struct neuron_native_mem_alloc, align, ALIGN),
		    F(struct neuron_native_mem_alloc, hbm, HBM),
		    F(struct neuron_native_mem_alloc, nc_id, CORE),
		    F(struct neuron_native_mem_alloc, mem_type, CATEGORY),
		    F(struct neuron_native_mem_alloc, pa, ADDRESS),
		    F(struct neuron_native_mem_alloc, owner, OWNER)),
	CALL_NATIVE(MEM_EXPORT, struct neuron_native_mem_export, 3, DMABUF_IN,
		    offsetof(struct neuron_native_mem_export, fd),
		    F(struct neuron_native_mem_export, size, STRUCT_SIZE),
		    F(struct neuron_native_mem_export, flags, FLAGS),
		    F(struct neuron_native_mem_export, mem_handle, HANDLE),
		    F(struct neuron_native_mem_export, offset, FLAG),
		    F(struct neuron_native_mem_export, bytes, FLAG)),
	CALL_NATIVE(MEM_IMPORT, struct neuron_native_mem_import, 3, HANDLE_IN,
		    offsetof(struct neuron_native_mem_import, mem_handle),
		    F(struct neuron_native_mem_import, size, STRUCT_SIZE),
		    F(struct neuron_native_mem_import, fd, DMABUF)),
	CALL_NATIVE(FAILURES, struct neuron_native_failures, 1, NOTHING, 0,
		    F(struct neuron_native_failures, size, STRUCT_SIZE),
		    F(struct neuron_native_failures, count, FLAG),
		    F(struct neuron_native_failures, since, FLAG),
		    F(struct neuron_native_failures, entry_size, ENTRY_SIZE),
		    F(struct neuron_native_failures, entries, POINTER)),
	CALL_NATIVE(LIMIT, struct neuron_native_limit, 2, NOTHING, 0,
		    F(struct neuron_native_limit, size, STRUCT_SIZE),
		    F(struct neuron_native_limit, flags, FLAGS),
		    F(struct neuron_native_limit, what, FLAG),
		    F(struct neuron_native_limit, index, PID),
		    F(struct neuron_native_limit, bytes, LIMIT)),
	CALL_NATIVE(COPY_EVENTFD, struct neuron_native_copy_eventfd, 2, NOTHING, 0,
		    F(struct neuron_native_copy_eventfd, size, STRUCT_SIZE),
		    F(struct neuron_native_copy_eventfd, src_mem_handle, HANDLE),
		    F(struct neuron_native_copy_eventfd, dst_mem_handle, HANDLE),
		    F(struct neuron_native_copy_eventfd, token, TOKEN),
		    F(struct neuron_native_copy_eventfd, eventfd, EVENTFD)),
	CALL_NATIVE(RESET_EVENTFD, struct neuron_native_reset_eventfd, 1, NOTHING, 0,
		    F(struct neuron_native_reset_eventfd, size, STRUCT_SIZE),
		    F(struct neuron_native_reset_eventfd, nc_id, CORE),
		    F(struct neuron_native_reset_eventfd, eventfd, EVENTFD)),
	CALL_NATIVE(MEM_GROW, struct neuron_native_mem_grow, 3, NOTHING, 0,
		    F(struct neuron_native_mem_grow, size, STRUCT_SIZE),
		    F(struct neuron_native_mem_grow, flags, FLAGS),
		    F(struct neuron_native_mem_grow, mem_handle, HANDLE),
		    F(struct neuron_native_mem_grow, bytes, BYTES)),
	CALL_NATIVE(NQ_EVENTFD, struct neuron_native_nq_eventfd, 2, NOTHING, 0,
		    F(struct neuron_native_nq_eventfd, size, STRUCT_SIZE),
		    F(struct neuron_native_nq_eventfd, nq_dev_id, CORE),
		    F(struct neuron_native_nq_eventfd, nq_type, FLAG),
		    F(struct neuron_native_nq_eventfd, engine_index, FLAG),
		    F(struct neuron_native_nq_eventfd, eventfd, EVENTFD)),
	CALL_NATIVE(HBM_STATS, struct neuron_native_hbm_stats, 2, NOTHING, 0,
		    F(struct neuron_native_hbm_stats, size, STRUCT_SIZE),
		    F(struct neuron_native_hbm_stats, hbm, HBM)),
	CALL_NATIVE(CORE_STATS, struct neuron_native_core_stats, 2, NOTHING, 0,
		    F(struct neuron_native_core_stats, size, STRUCT_SIZE),
		    F(struct neuron_native_core_stats, nc_id, CORE)),
	CALL_NATIVE(MEM_PIN, struct neuron_native_mem_pin, 4, NOTHING, 0,
		    F(struct neuron_native_mem_pin, size, STRUCT_SIZE),
		    F(struct neuron_native_mem_pin, mem_handle, HANDLE)),
	CALL_NATIVE(MEM_UNPIN, struct neuron_native_mem_unpin, 4, NOTHING, 0,
		    F(struct neuron_native_mem_unpin, size, STRUCT_SIZE),
		    F(struct neuron_native_mem_unpin, mem_handle, HANDLE)),
	CALL_NATIVE(MEM_COMPACT, struct neuron_native_mem_compact, 4, NOTHING, 0,
		    F(struct neuron_native_mem_compact, size, STRUCT_SIZE),
		    F(struct neuron_native_mem_compact, hbm, HBM),
		    F(struct neuron_native_mem_compact, bytes, BYTES),
		    F(struct neuron_native_mem_compact, align, ALIGN),
		    F(struct neuron_native_mem_compact, budget, BYTES)),
	CALL_NATIVE(MEM_ALLOC_BULK, struct neuron_native_mem_alloc_bulk, 3, NOTHING, 0,
		    F(struct neuron_native_mem_alloc_bulk, size, STRUCT_SIZE),
		    F(struct neuron_native_mem_alloc_bulk, flags, FLAGS),
		    F(struct neuron_native_mem_alloc_bulk, hbm, HBM),
		    F(struct neuron_native_mem_alloc_bulk, nc_id, CORE),
		    F(struct neuron_native_mem_alloc_bulk, mem_type, CATEGORY),
		    F(struct neuron_native_mem_alloc_bulk, owner, OWNER),
		    F(struct neuron_native_mem_alloc_bulk, count, COUNT),
		    F(struct neuron_native_mem_alloc_bulk, entry_size, ENTRY_SIZE),
		    F(struct neuron_native_mem_alloc_bulk, entries, POINTER)),
	CALL_NATIVE(MEM_FREE_BULK, struct neuron_native_mem_free_bulk, 3, NOTHING, 0,
		    F(struct neuron_native_mem_free_bulk, size, STRUCT_SIZE),
		    F(struct neuron_native_mem_free_bulk, count, COUNT),
		    F(struct neuron_native_mem_free_bulk, handles, POINTER)),
	CALL_NATIVE(HBM_RANGES, struct neuron_native_hbm_ranges, 2, NOTHING, 0,
		    F(struct neuron_native_hbm_ranges, size, STRUCT_SIZE),
		    F(struct neuron_native_hbm_ranges, hbm, HBM),
		    F(struct neuron_native_hbm_ranges, from, BYTES),
		    F(struct neuron_native_hbm_ranges, entry_size, ENTRY_SIZE),
		    F(struct neuron_native_hbm_ranges, count, COUNT),
		    F(struct neuron_native_hbm_ranges, entries, POINTER)),
	CALL_NATIVE(OWNER, struct neuron_native_owner, 3, NOTHING, 0,
		    F(struct neuron_native_owner, size, STRUCT_SIZE),
		    F(struct neuron_native_owner, flags, FLAG),
		    F(struct neuron_native_owner, owner, OWNER),
		    F(struct neuron_native_owner, label[0], LETTER)),
	CALL_NATIVE(OWNERS, struct neuron_native_owners, 2, NOTHING, 0,
		    F(struct neuron_native_owners, size, STRUCT_SIZE),
		    F(struct neuron_native_owners, flags, FLAG),
		    F(struct neuron_native_owners, hbm, HBM),
		    F(struct neuron_native_owners, entry_size, ENTRY_SIZE),
		    F(struct neuron_native_owners, count, COUNT),
		    F(struct neuron_native_owners, entries, POINTER)),
	CALL_NATIVE(EVENTS, struct neuron_native_events, 2, NOTHING, 0,
		    F(struct neuron_native_events, size, STRUCT_SIZE),
		    F(struct neuron_native_events, hbm, HBM),
		    F(struct neuron_native_events, since, COUNT),
		    F(struct neuron_native_events, entry_size, ENTRY_SIZE),
		    F(struct neuron_native_events, count, COUNT),
		    F(struct neuron_native_events, entries, POINTER)),
};

#define NR_COMMANDS	(sizeof(commands) / sizeof(commands[0]))

/* Calls that are no ioctl. */
enum { OP_MMAP = NR_COMMANDS, OP_MUNMAP, OP_TOUCH, OP_MPROTECT, OP_OPEN, OP_CLOSE, OP_PASS,
       OP_RECEIVE, OP_SYSFS_READ, OP_SYSFS_WRITE, OP_DEBUGFS_READ, OP_DEBUGFS_WRITE,
       OP_CONFIGFS, OP_RAW, OP_SLEEP, NR_OPS };

static const char * const op_names[] = {
	"mmap", "munmap", "touch", "mprotect", "open", "close", "pass", "receive", "sysfs read",
	"sysfs write", "debugfs read", "debugfs write", "configfs", "raw ioctl", "sleep",
};

static const uint8_t op_weight[] = { 4, 3, 5, 1, 1, 1, 1, 1, 3, 2, 1, 1, 2, 2, 1 };

/* ---- shared by all processes --------------------------------------------------------- */

/* One call, as it is printed. */
struct record {
	uint64_t n;
	uint16_t op;
	int16_t err;		/* -1 under way */
	uint32_t device;
	uint64_t value[16];
};

struct kept {
	uint16_t op;
	uint8_t arg[256];
};

struct shared {
	uint64_t calls, good, covered, kept;
	uint8_t cover[COVER];
	struct kept corpus[CORPUS];
	struct record history[WORKERS_MAX][THREADS][HISTORY];
};

static struct shared *shared;
static int passing[2];		/* descriptors from process to process */
static int nr_devices;
static int settings_seconds = 30, settings_calls, settings_seed = 1, settings_workers = 3;
static struct kept seeds[CORPUS];	/* those of the file */
static uint32_t nr_seeds;
static char *files[FILES_MAX], *debug_files[FILES_MAX], *knobs[FILES_MAX];
static int nr_files, nr_debug_files, nr_knobs;
static struct neuron_native_geometry geo;
static struct neuron_ioctl_device_info info;

/* ---- of a process --------------------------------------------------------------------- */

static int fds[DEVICES_MAX * 2 + 4];	/* own ones first, then inherited and received ones */
static int nr_fds, nr_own;
static uint64_t pool[POOL];		/* handles; threads overwrite each other's, all the better */
static uint64_t addresses[POOL];
static uint64_t offsets[POOL];
static struct { uint8_t *p; size_t len; } maps[MAPS];
static int evfd;
static int dmabufs[DMABUFS];		/* 0: none yet */

/* ---- of a thread ----------------------------------------------------------------------- */

static __thread uint64_t rng;
static __thread int worker, thread;
static __thread uint8_t *buf;		/* BUF_MAX, then a page that cannot be touched */
static __thread uint8_t *readonly;	/* a page that cannot be written */
static __thread struct record *record;
static __thread unsigned long *kcov;

static uint64_t rnd(void)
{
	/* xorshift64* */
	rng ^= rng >> 12;
	rng ^= rng << 25;
	rng ^= rng >> 27;
	return rng * 0x2545f4914f6cdd1dull;
}

static uint64_t below(uint64_t n)
{
	return n ? rnd() % n : 0;
}

static int chance(unsigned int percent)
{
	return below(100) < percent;
}

/* Numbers that break things. */
static uint64_t wild(void)
{
	static const uint64_t edge[] = {
		0, 1, ~0ull, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 1ull << 63,
		0x7fffffffffffffff, 0xfffffffffffff000, 4095, 4097, 1ull << 40, 1ull << 44,
		1ull << 46, 0xffff888000000000, 16, 32, 64, 128, 255, 256,
	};
	uint64_t v;

	switch (below(4)) {
	case 0:
		return edge[below(sizeof(edge) / sizeof(edge[0]))];
	case 1:
		return edge[below(sizeof(edge) / sizeof(edge[0]))] + below(9) - 4;
	case 2:
		return 1ull << below(64);
	default:
		v = rnd();
		return v >> below(64);
	}
}

static uint64_t device_address(void)
{
	uint32_t core = below(geo.nr_cores);

	switch (below(6)) {
	case 0:
		return geo.tpb_base[core] + NEURON_ISA_FIFO_OFF(below(5)) + below(4) * 64;
	case 1:
		return geo.tpb_base[core] + (below(0x10000) & ~3ull);
	case 2:
		return geo.tpb_base[core] + NEURON_ISA_SEM_READ_OFF(below(256)) +
		       (below(4) << 10);
	case 3:
		return geo.hbm[below(geo.nr_hbms)].base + (below(1 << 30) & ~0xfffull);
	default:
		return addresses[below(POOL)] + (chance(50) ? 0 : below(8192));
	}
}

/* A descriptor of a copy, as the software device knows it. */
static void descriptors(uint8_t *p, uint32_t n)
{
	struct { uint32_t ctrl, meta; uint64_t addr; } d;
	uint32_t i;

	for (i = 0; i < n; i++) {
		int rx = chance(50);

		d.ctrl = (chance(90) ? 64u << below(10) : rnd()) & 0xffff;
		d.ctrl |= (chance(90) ? 1u : (uint32_t)below(4)) << 24 | (rx ? 0 : 3u << 26);
		if (chance(20))
			d.ctrl |= 1u << 28;
		d.meta = rx ? 0 : 0x01080003;
		if (chance(5))
			d.meta ^= 1u << below(32);
		d.addr = chance(95) ? device_address() : wild();
		memcpy(p + i * sizeof(d), &d, sizeof(d));
	}
}

static void instructions(uint8_t *p, uint32_t n)
{
	uint32_t i, k;

	for (i = 0; i < n; i++) {
		struct neuron_isa_inst inst;
		uint8_t *b = (uint8_t *)&inst;

		memset(&inst, 0, sizeof(inst));
		inst.opcode = below(16);
		inst.magic = chance(98) ? NEURON_ISA_MAGIC : below(256);
		inst.op = below(8);
		inst.flags = below(4);
		inst.src_dtype = below(14);
		inst.dst_dtype = below(14);
		for (k = 8; k < sizeof(inst); k += 4)
			if (chance(40)) {
				uint32_t v = chance(80) ? below(64) * 64 : wild();

				memcpy(b + k, &v, 4);
			}
		memcpy(p + i * sizeof(inst), &inst, sizeof(inst));
	}
}

static uint64_t pointer(enum kind kind)
{
	uint64_t window = info.bar_address[0] + info.bar_size[0] - geo.nr_cores * geo.tpb_size;
	uint32_t i, off = below(16) * 8192;
	uint64_t *list = (uint64_t *)(buf + off);

	if (chance(3))
		return wild();
	if (chance(3))
		return (uint64_t)(buf + BUF_MAX - below(64));	/* into what is not there */
	if (chance(2))
		return (uint64_t)readonly;
	if (chance(2) && maps[0].p)
		return (uint64_t)maps[below(MAPS)].p;
	switch (kind) {
	case REGISTERS:
		for (i = 0; i < 16; i++)
			list[i] = chance(90) ? (chance(70) ? window : 0) +
				  (device_address() & (geo.nr_cores * geo.tpb_size - 4)) : wild();
		if (chance(50))
			for (i = 0; i < 16; i++)
				list[i] = device_address() & ~3ull;
		break;
	case DESCRIPTORS:
		descriptors(buf + off, 32);
		break;
	case PROGRAM:
		instructions(buf + off, 64);
		break;
	case MAPPING:
		i = below(MAPS);
		return (uint64_t)maps[i].p + below(4) * 4096;
	case TEXT:
		strcpy((char *)buf + off, "fuzz\033[31m\n%s%n");
		break;
	default:
		if (chance(20))
			for (i = 0; i < 16; i++)
				list[i] = rnd();
	}
	return (uint64_t)(buf + off);
}

static uint64_t entry_size(void)
{
	static const uint32_t sizes[] = {
		sizeof(struct neuron_native_failure), sizeof(struct neuron_native_range),
		sizeof(struct neuron_native_owner_entry), sizeof(struct neuron_native_event),
	};

	return sizes[below(sizeof(sizes) / sizeof(sizes[0]))];
}

static uint64_t good(const struct command *c, enum kind kind)
{
	switch (kind) {
	case HANDLE:	return pool[below(POOL)];
	case CORE:	return below(geo.nr_cores);
	case HBM:	return below(geo.nr_hbms);
	case ENGINE:	return chance(90) ? below(geo.nr_cores) * geo.engines_per_core :
				    below(geo.nr_dma_engines);
	case QUEUE:	return chance(90) ? below(3) : below(16);
	case INDEX:	return below(geo.nr_semaphores);
	/* From 1 MiB on it can be cut. */
	case BYTES:	return chance(10) ? 1u << (20 + below(4)) :
			       chance(60) ? 4096u << below(6) : 1 + below(300000);
	case OFFSET:	return chance(60) ? 0 : below(16) * 64;
	case ALIGN:	return chance(50) ? 0 : 4096ull << below(12);
	case COUNT:	return chance(60) ? 64u << below(3) : below(40);
	case FLAG:	return chance(60) ? below(2) : below(4);
	case FLAGS:	return chance(60) ? below(2) : below(16);
	case CATEGORY:	return below(NEURON_MEMALLOC_TYPE_MAX);
	case POWER:	return 256u << below(10);
	case TOKEN:	return chance(40) ? ~0u : below(3);
	case PID:	return chance(60) ? 0 : (uint64_t)getpid() + below(9) - 4;
	case EVENTFD:	return chance(80) ? (uint64_t)evfd : ~0ull;
	case DMABUF:	return dmabufs[below(DMABUFS)];
	case LIMIT:	return chance(60) ? NEURON_NATIVE_LIMIT_NONE : below(1 << 28);
	case ENTRY_SIZE: return entry_size();
	case OWNER:	return below(4) ? 0 : below(8);
	case LETTER:	return below(8) ? 'a' + below(26) : below(256);
	case STRUCT_SIZE: return c->size;
	case ADDRESS:	return device_address();
	case ANY:
	default:	return below(8);
	}
}

static uint64_t value(const struct command *c, enum kind kind)
{
	uint64_t v;

	if (kind >= POINTER)
		return pointer(kind);
	if (chance(90))
		return good(c, kind);
	v = chance(60) ? good(c, kind) + below(5) - 2 : wild();
	/*
	 * Large requests that could succeed only eat the guest's memory and time; what
	 * must be refused stays.
	 */
	if (kind == BYTES && v > (8u << 20) && v < (1ull << 38))
		v &= (8u << 20) - 1;
	return v;
}

static void put(uint8_t *arg, const struct field *f, uint64_t v)
{
	memcpy(arg + f->off, &v, f->size);
}

static uint64_t fetch(const uint8_t *arg, uint32_t off, uint32_t size)
{
	uint64_t v = 0;

	memcpy(&v, arg + off, size);
	return v;
}

/* ---- coverage -------------------------------------------------------------------------- */

#define KCOV_INIT_TRACE	_IOR('c', 1, unsigned long)
#define KCOV_ENABLE	_IO('c', 100)
#define KCOV_ENTRIES	(64u << 10)

static void kcov_open(void)
{
	int fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
	void *p;

	kcov = NULL;
	if (fd < 0)
		return;
	if (ioctl(fd, KCOV_INIT_TRACE, KCOV_ENTRIES))
		return;
	p = mmap(NULL, KCOV_ENTRIES * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || ioctl(fd, KCOV_ENABLE, 0))
		return;
	kcov = p;
}

static void kcov_start(void)
{
	if (kcov)
		__atomic_store_n(&kcov[0], 0, __ATOMIC_RELAXED);
}

/* How many places the last call was the first to reach. */
static unsigned int kcov_new(void)
{
	unsigned long n, i, last = 0;
	unsigned int fresh = 0;

	if (!kcov)
		return 0;
	n = __atomic_load_n(&kcov[0], __ATOMIC_RELAXED);
	for (i = 1; i <= n && i < KCOV_ENTRIES; i++) {
		unsigned long pc = kcov[i];
		uint32_t h = (uint32_t)((pc ^ last << 1) * 0x9e3779b1u) >> 16;

		last = pc;
		if (!shared->cover[h]) {
			shared->cover[h] = 1;
			fresh++;
		}
	}
	if (fresh)
		__atomic_add_fetch(&shared->covered, fresh, __ATOMIC_RELAXED);
	return fresh;
}

/* ---- the corpus ------------------------------------------------------------------------ */

static uint32_t kept_size(const struct kept *k)
{
	uint32_t size = commands[k->op].size;

	return size < sizeof(k->arg) ? size : sizeof(k->arg);
}

/* The command, and the bytes of its argument up to the last one that is not 0. */
static void write_line(char *line, const struct kept *k)
{
	uint32_t n = kept_size(k), i;

	while (n && !k->arg[n - 1])
		n--;
	line += sprintf(line, "%s", commands[k->op].name);
	for (i = 0; i < n; i++)
		line += sprintf(line, i ? "%02x" : " %02x", k->arg[i]);
	strcpy(line, "\n");
}

/* Return: write_line() would have written the same. */
static bool read_line(const char *line, struct kept *k)
{
	size_t len = strcspn(line, " \n");
	const char *hex = line + len + (line[len] == ' ');
	char again[LINE];
	uint32_t i;

	for (i = 0; i < NR_COMMANDS; i++)
		if (strlen(commands[i].name) == len && !strncmp(line, commands[i].name, len))
			break;
	if (i == NR_COMMANDS)
		return false;
	k->op = i;
	for (i = 0; i < kept_size(k) && hex[0] && hex[1]; i++, hex += 2)
		if (sscanf(hex, "%2hhx", &k->arg[i]) != 1)
			break;
	write_line(again, k);
	return !strcmp(line, again);
}

static bool read_corpus(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[LINE];

	if (!f) {
		perror(path);
		return false;
	}
	while (fgets(line, sizeof(line), f)) {
		if (nr_seeds == CORPUS || !read_line(line, &seeds[nr_seeds])) {
			printf("%s:%u: no command with an argument: %s\n", path, nr_seeds + 1, line);
			fclose(f);
			return false;
		}
		nr_seeds++;
	}
	fclose(f);
	if (!nr_seeds)
		printf("%s is empty\n", path);
	return nr_seeds;
}

static uint64_t nr_kept(void)
{
	uint64_t n = __atomic_load_n(&shared->kept, __ATOMIC_RELAXED);

	return n < CORPUS ? n : CORPUS;
}

/* Pointers and handles mean nothing in another run. */
static void print_corpus(void)
{
	char line[LINE];
	uint64_t n;
	uint32_t i;

	for (n = 0; n < nr_kept(); n++) {
		struct kept *k = &shared->corpus[n];
		const struct command *c = &commands[k->op];

		for (i = 0; i < c->nr; i++)
			if (c->field[i].kind >= POINTER || c->field[i].kind == HANDLE)
				put(k->arg, &c->field[i], 0);
		write_line(line, k);
		printf("corpus: %s", line);
	}
}

/* ---- the calls ------------------------------------------------------------------------- */

static int some_fd(void)
{
	return fds[chance(85) ? below(nr_own) : below(nr_fds)];
}

static void keep_dmabuf(int fd)
{
	fd = __atomic_exchange_n(&dmabufs[below(DMABUFS)], fd, __ATOMIC_RELAXED);
	if (fd > 0)
		close(fd);
}

static void learn(const struct command *c, const uint8_t *arg)
{
	uint64_t handle = 0, *where = NULL;
	uint32_t slot = below(POOL);

	switch (c->result) {
	case HANDLE_AT:
		where = (uint64_t *)fetch(arg, c->at, 8);
		if ((uint8_t *)where < buf || (uint8_t *)where > buf + BUF_MAX - 8)
			return;
		memcpy(&handle, where, sizeof(handle));
		break;
	case HANDLE_IN:
		handle = fetch(arg, c->at, 8);
		break;
	case MAP_IN:
		offsets[slot] = fetch(arg, c->at, 8);
		return;
	case DMABUF_IN:
		keep_dmabuf(fetch(arg, c->at, 4));
		return;
	case DMABUF_AT:
		where = (uint64_t *)fetch(arg, c->at, 8);
		if ((uint8_t *)where >= buf && (uint8_t *)where <= buf + BUF_MAX - 4)
			keep_dmabuf(*(int *)where);
		return;
	default:
		return;
	}
	if (pool[slot]) {
		/* Room for the new one: what nobody can name any more would only pile up. */
		struct neuron_ioctl_mem_free f = { .mem_handle = pool[slot] };

		ioctl(fds[0], NEURON_IOCTL_MEM_FREE, &f);
	}
	pool[slot] = handle;
	if (handle) {
		struct neuron_ioctl_mem_get_info g = {
			.mem_handle = handle, .mmap_offset = (void *)&offsets[slot],
			.pa = (void *)&addresses[slot],
		};

		ioctl(fds[0], NEURON_IOCTL_MEM_GET_INFO, &g);
	}
}

static int do_ioctl(uint32_t op)
{
	static __thread uint8_t arg[ARG_MAX];
	static __thread struct kept call;
	const struct command *c = &commands[op];
	uint8_t *p = arg;
	uint32_t i, k;
	int fd = some_fd(), rc;

	memset(arg, 0, c->size + 256);
	/* One that reached something, varied; or a new one. Pointers and handles go stale. */
	if (chance(50)) {
		uint64_t n = below(nr_seeds + nr_kept());
		const struct kept *from = n < nr_seeds ? &seeds[n] : &shared->corpus[n - nr_seeds];

		c = &commands[from->op];
		op = from->op;
		memset(arg, 0, c->size + 256);
		memcpy(arg, from->arg, kept_size(from));
		k = below(3);
		for (i = 0; i < c->nr; i++)
			if (c->field[i].kind >= POINTER ||
			    (c->field[i].kind == HANDLE && chance(90)) || below(c->nr) < k)
				put(arg, &c->field[i], value(c, c->field[i].kind));
	} else {
		for (i = 0; i < c->nr; i++)
			put(arg, &c->field[i], value(c, c->field[i].kind));
		if (c->size && chance(2))
			arg[below(c->size)] ^= 1u << below(8);
	}
	record->op = op;
	for (i = 0; i < c->nr; i++)
		record->value[i] = fetch(arg, c->field[i].off, c->field[i].size);
	if (chance(2))
		p = (uint8_t *)(chance(50) ? wild() : (uint64_t)(buf + BUF_MAX - below(32)));
	record->device = fd;
	/* As it is now: results come into it. */
	call.op = op;
	memcpy(call.arg, arg, sizeof(call.arg));
	kcov_start();
	rc = ioctl(fd, c->cmd, p);
	rc = rc < 0 ? errno : 0;
	if (kcov_new() && p == arg)
		shared->corpus[__atomic_fetch_add(&shared->kept, 1, __ATOMIC_RELAXED) % CORPUS] =
			call;
	if (!rc && p == arg)
		learn(c, arg);
	return rc;
}

static int do_mmap(void)
{
	uint32_t slot = below(MAPS);
	size_t len = chance(80) ? 4096u << below(6) : wild();
	uint64_t off = chance(90) ? offsets[below(POOL)] : wild() & ~4095ull;
	int prot = chance(80) ? PROT_READ | PROT_WRITE : (int)below(8);
	void *p;

	if (chance(20))
		off += 4096u * below(8);
	record->value[0] = off;
	record->value[1] = len;
	record->value[2] = prot;
	p = chance(80) ? mmap(NULL, len, prot, chance(95) ? MAP_SHARED : MAP_PRIVATE, some_fd(),
			      off & ~4095ull) :
			 mmap(NULL, len, prot, MAP_SHARED, dmabufs[below(DMABUFS)],
			      chance(80) ? 0 : 4096u * below(8));
	if (p == MAP_FAILED)
		return errno;
	if (maps[slot].p)
		munmap(maps[slot].p, maps[slot].len);
	maps[slot].len = len;
	maps[slot].p = p;
	return 0;
}

static int do_munmap(void)
{
	uint32_t slot = below(MAPS);
	uint8_t *p = maps[slot].p;
	size_t len = maps[slot].len;

	if (!p)
		return 0;
	if (chance(30) && len > 4096)
		return munmap(p + 4096 * below(len / 4096), 4096) ? errno : 0;
	maps[slot].p = NULL;
	return munmap(p, len) ? errno : 0;
}

/* The kernel touches it: another thread may unmap it meanwhile. */
static int do_touch(void)
{
	uint32_t slot = below(MAPS);
	uint8_t *p = maps[slot].p;
	size_t len = maps[slot].len;
	uint64_t one = rnd();
	int pipes[2], rc;

	if (!p || !len)
		return 0;
	p += below(len) & ~7ull;
	record->value[0] = (uint64_t)p;
	if (pipe2(pipes, O_CLOEXEC))
		return errno;
	if (chance(50)) {
		rc = write(pipes[1], p, 8) < 0 ? errno : 0;
	} else {
		rc = write(pipes[1], &one, 8) < 0 ? errno : 0;
		if (!rc)
			rc = read(pipes[0], p, 8) < 0 ? errno : 0;
	}
	close(pipes[0]);
	close(pipes[1]);
	return rc;
}

static int open_device(uint32_t i, int flags)
{
	char name[32];

	snprintf(name, sizeof(name), "/dev/neuron%u", i);
	return open(name, flags | O_CLOEXEC);
}

static int do_open(void)
{
	int slot, fd = open_device(below(nr_devices), chance(80) ? O_RDWR : (int)below(3));

	if (fd < 0)
		return errno;
	/* The first ones stay: a process without a descriptor fuzzes nothing. */
	if (nr_own < DEVICES_MAX) {
		close(fd);
		return 0;
	}
	slot = below(nr_own - nr_devices) + nr_devices;
	close(__atomic_exchange_n(&fds[slot], fd, __ATOMIC_RELAXED));
	return 0;
}

static int do_close(void)
{
	if (nr_own <= nr_devices)
		return 0;
	return close(fds[nr_devices + below(nr_own - nr_devices)]) ? errno : 0;
}

static int do_pass(void)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u = { 0 };
	struct iovec io = { .iov_base = "x", .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = u.space,
		.msg_controllen = sizeof(u.space),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fd = chance(50) ? some_fd() : dmabufs[below(DMABUFS)];

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(passing[0], &msg, MSG_DONTWAIT) < 0 ? errno : 0;
}

static int do_receive(void)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	char x;
	struct iovec io = { .iov_base = &x, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = u.space,
		.msg_controllen = sizeof(u.space),
	};
	struct cmsghdr *c;
	int fd;

	if (recvmsg(passing[1], &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return errno;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return 0;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	if (chance(50))
		keep_dmabuf(fd);
	else
		close(__atomic_exchange_n(&fds[nr_fds - 1], fd, __ATOMIC_RELAXED));
	return 0;
}

static int do_file_read(char **list, int n)
{
	char text[4096];
	int fd, rc = 0, i;

	if (!n)
		return 0;
	record->value[0] = i = below(n);
	fd = open(list[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno;
	if (read(fd, text, chance(90) ? sizeof(text) : below(8)) < 0)
		rc = errno;
	close(fd);
	return rc;
}

static int file_write(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, len) < 0)
		rc = errno;
	close(fd);
	return rc;
}

static int do_file_write(char **list, int n)
{
	static const char * const texts[] = {
		"0", "1", "1\n", "-1", "", "99999999999999999999", "0x10", "a", " 1", "500",
		"inline", "timer", "worker\n",
	};
	char text[8192];
	int len, i;

	if (!n)
		return 0;
	record->value[0] = i = below(n);
	if (chance(90)) {
		strcpy(text, texts[below(sizeof(texts) / sizeof(texts[0]))]);
		len = strlen(text);
	} else {
		len = below(sizeof(text));
		memset(text, 'x', len);
	}
	return file_write(list[i], text, len);
}

static const char *guest_path(char *path, size_t size, int id, const char *attr)
{
	snprintf(path, size, CONFIG "/fuzz%d%s%s", id, *attr ? "/" : "", attr);
	return path;
}

/* Number of a device in configfs; -1: it is not live. */
static int guest_number(int id)
{
	char path[128], text[32] = "";
	int fd = open(guest_path(path, sizeof(path), id, "dev_name"), O_RDONLY | O_CLOEXEC);
	int number = -1;

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) < 0 || sscanf(text, "neuron%d", &number) != 1)
		number = -1;
	close(fd);
	/* The others stay. */
	return number < nr_devices ? -1 : number;
}

static int guest_open(int id)
{
	int number = guest_number(id), fd;

	if (number < 0 || nr_own <= nr_devices)
		return 0;
	fd = open_device(number, O_RDWR);
	if (fd < 0)
		return errno;
	close(__atomic_exchange_n(&fds[nr_own - 1], fd, __ATOMIC_RELAXED));
	return 0;
}

static int guest_pull(int id)
{
	int number = guest_number(id);
	char path[128];

	if (number < 0)
		return 0;
	snprintf(path, sizeof(path), DEBUG_EMU "/neuron%d/remove", number);
	return file_write(path, "1", 1);
}

static int do_configfs(void)
{
	static const struct {
		const char *name;
		const char *text[4];
	} attrs[] = {
		{ "arch", { "trn1", "trn2\n", "inf2", "tpu" } },
		{ "hbm_size", { "64", "256", "0", "1" } },
		{ "index", { "-1", "63", "0", "64" } },
		{ "serial", { "0", "19fcda00f5ff6eb9", "x", "10000000000000000" } },
		{ "neighbours", { "", "0", "1, 2 3", "0 1 2 3 4 5 6 7 8" } },
		{ "completion", { "worker", "inline", "timer", "never" } },
		{ "completion_nsec", { "0", "10000", "1000000", "-1" } },
		{ "live", { "0", "1", "1", "2" } },
		{ "dev_name", { "x", "", "1", "0" } },
	};
	unsigned int what = below(100), attr = below(sizeof(attrs) / sizeof(attrs[0])), n = below(4);
	char path[128], text[8192];
	int id = below(GUESTS);

	record->value[0] = what;
	record->value[1] = id;
	record->value[2] = attr;
	record->value[3] = n;
	guest_path(path, sizeof(path), id, "");
	if (what < 10)
		return mkdir(path, 0755) ? errno : 0;
	if (what < 13)
		return rmdir(path) ? errno : 0;
	if (what < 30)
		return guest_open(id);
	if (what < 33)
		return guest_pull(id);
	guest_path(path, sizeof(path), id, what < 40 ? "live" : attrs[attr].name);
	if (what < 40)
		return file_write(path, "1", 1);
	if (what < 60) {
		char *list[] = { path };

		return do_file_read(list, 1);
	}
	if (what < 97)
		return file_write(path, attrs[attr].text[n], strlen(attrs[attr].text[n]));
	memset(text, 'x', sizeof(text));
	return file_write(path, text, below(sizeof(text)));
}

/* Any number with any direction and size, not only those of the table. */
static int do_raw(void)
{
	const struct command *c = &commands[below(NR_COMMANDS)];
	uint32_t cmd = chance(70) ? c->cmd ^ 1u << below(32) : (uint32_t)rnd();
	uint32_t i;

	/* What is inherited by all files, like FIONBIO, is none of ours. */
	if (_IOC_TYPE(cmd) != 'N')
		cmd = (cmd & ~0xff00u) | 'N' << 8;
	for (i = 0; i < 512; i++)
		buf[i] = chance(70) ? 0 : rnd();
	record->value[0] = cmd;
	return ioctl(some_fd(), cmd, buf) < 0 ? errno : 0;
}

static uint32_t total_weight(void)
{
	uint32_t i, sum = 0;

	for (i = 0; i < NR_COMMANDS; i++)
		sum += commands[i].weight;
	for (i = 0; i < sizeof(op_weight); i++)
		sum += op_weight[i];
	return sum;
}

static uint32_t pick(uint32_t sum)
{
	uint32_t i, at = below(sum);

	for (i = 0; i < NR_OPS; i++) {
		uint32_t w = i < NR_COMMANDS ? commands[i].weight : op_weight[i - NR_COMMANDS];

		if (at < w)
			return i;
		at -= w;
	}
	return 0;
}

static void *fuzz(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg, n;
	uint32_t sum = total_weight();

	worker = seed & 0xff;
	thread = seed >> 8 & 0xff;
	rng = seed * 0x9e3779b97f4a7c15ull + 1;
	for (n = 0; n < 4; n++)
		rnd();
	buf = mmap(NULL, BUF_MAX + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		   -1, 0);
	readonly = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED || readonly == MAP_FAILED)
		_exit(1);
	mprotect(buf + BUF_MAX, 4096, PROT_NONE);
	kcov_open();
	for (n = 0;; n++) {
		uint32_t op = pick(sum);
		int err;

		record = &shared->history[worker][thread][n % HISTORY];
		memset(record, 0, sizeof(*record));
		record->n = n;
		record->op = op;
		record->err = -1;
		if (op < NR_COMMANDS) {
			err = do_ioctl(op);
		} else {
			kcov_start();
			switch (op) {
			case OP_MMAP:		err = do_mmap(); break;
			case OP_MUNMAP:		err = do_munmap(); break;
			case OP_TOUCH:		err = do_touch(); break;
			case OP_MPROTECT:
				err = !maps[0].p ? 0 : mprotect(maps[0].p, maps[0].len, below(8)) ?
				      errno : 0;
				break;
			case OP_OPEN:		err = do_open(); break;
			case OP_CLOSE:		err = do_close(); break;
			case OP_PASS:		err = do_pass(); break;
			case OP_RECEIVE:	err = do_receive(); break;
			case OP_SYSFS_READ:	err = do_file_read(files, nr_files); break;
			case OP_SYSFS_WRITE:	err = do_file_write(files, nr_files); break;
			case OP_DEBUGFS_READ:	err = do_file_read(debug_files, nr_debug_files); break;
			case OP_DEBUGFS_WRITE:	err = do_file_write(knobs, nr_knobs); break;
			case OP_CONFIGFS:	err = do_configfs(); break;
			case OP_RAW:		err = do_raw(); break;
			default:		usleep(below(2000)); err = 0; break;
			}
			kcov_new();
		}
		record->err = err;
		__atomic_add_fetch(&shared->calls, 1, __ATOMIC_RELAXED);
		if (!err)
			__atomic_add_fetch(&shared->good, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* ---- the processes ------------------------------------------------------------------------ */

/* @inherited: descriptors of the parent, through which this process may only look. */
static void work(uint32_t id, uint32_t generation, const int *inherited, int nr_inherited)
{
	uint64_t seed = (uint64_t)settings_seed << 32 | (uint64_t)generation << 16 | id;
	pthread_t t;
	int i;

	for (i = 0; i < nr_devices; i++) {
		fds[nr_fds] = open_device(i, O_RDWR);
		if (fds[nr_fds] < 0)
			_exit(1);
		nr_fds++;
	}
	for (i = 0; i < 2; i++)
		fds[nr_fds++] = open_device(0, O_RDWR);
	nr_own = nr_fds;
	fds[nr_fds++] = open_device(0, O_WRONLY);
	for (i = 0; i < nr_inherited; i++)
		fds[nr_fds++] = inherited[i];
	fds[nr_fds++] = -1;
	evfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	for (i = 1; i < THREADS; i++)
		if (pthread_create(&t, NULL, fuzz, (void *)(uintptr_t)(seed | i << 8)))
			_exit(1);
	fuzz((void *)(uintptr_t)seed);
}

static int found(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type == FTW_F && nr_files < FILES_MAX)
		files[nr_files++] = strdup(path);
	return 0;
}

static int found_debug(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	if (type != FTW_F || nr_debug_files == FILES_MAX)
		return 0;
	debug_files[nr_debug_files++] = strdup(path);
	/* The first devices stay; a trace in the log for each fault would be all that happens. */
	if (strcmp(path + ftw->base, "remove") && strcmp(path + ftw->base, "verbose"))
		knobs[nr_knobs++] = debug_files[nr_debug_files - 1];
	return 0;
}

/* No more faults: they would be all that happens. */
static void calm(void)
{
	const char *name;
	int i;

	for (i = 0; i < nr_knobs; i++) {
		name = strrchr(knobs[i], '/') + 1;
		if (!strncmp(name, "inject_", 7) || !strcmp(name, "probability"))
			file_write(knobs[i], "0", 1);
		if (!strcmp(name, "completion"))
			file_write(knobs[i], "worker", 6);
		if (!strcmp(name, "completion_nsec"))
			file_write(knobs[i], "10000", 5);
		if (!strcmp(name, "reset_slow_msec"))
			file_write(knobs[i], "20", 2);
	}
}

/* Devices that are left in configfs go. */
static int no_guests(void)
{
	char path[128];
	int id, left = 0;

	for (id = 0; id < GUESTS; id++) {
		file_write(guest_path(path, sizeof(path), id, "live"), "0", 1);
		if (rmdir(guest_path(path, sizeof(path), id, "")) && errno != ENOENT)
			left++;
	}
	return left;
}

static void print_history(void)
{
	int w, t, i, k;

	for (w = 0; w < settings_workers; w++) {
		for (t = 0; t < THREADS; t++) {
			struct record *h = shared->history[w][t];
			int first = 0;

			for (i = 1; i < HISTORY; i++)
				if (h[i].n < h[first].n)
					first = i;
			printf("# worker %d, thread %d\n", w, t);
			for (i = 0; i < HISTORY; i++) {
				struct record *r = &h[(first + i) % HISTORY];
				const struct command *c = &commands[r->op];

				printf("#   %llu %s fd %u:", (unsigned long long)r->n,
				       r->op < NR_COMMANDS ? c->name :
				       op_names[r->op - NR_COMMANDS], r->device);
				for (k = 0; k < (r->op < NR_COMMANDS ? c->nr : 4); k++)
					printf(" %#llx", (unsigned long long)r->value[k]);
				printf(" -> %d\n", r->err);
			}
		}
	}
	fflush(stdout);
}

/* Has the kernel complained? The rig looks for more; this is to stop in time. */
static int complaint(int kmsg)
{
	static const char * const words[] = {
		"BUG:", "WARNING:", "UBSAN:", "ODEBUG:", "refcount_t:", "Oops:",
		"unreferenced object", "possible circular", "general protection",
	};
	char line[2048];
	ssize_t n;
	size_t i;

	while ((n = read(kmsg, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		if (n < 0)
			continue;
		line[n] = 0;
		/* Whose these are, the rig finds out: this line does not tell. */
		if (strstr(line, "KCSAN") || strstr(line, "suspicious RCU usage"))
			continue;
		for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (strstr(line, words[i]))
				return 1;
	}
	return 0;
}

static void set(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		perror(path);
	close(fd);
}

static void get(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
}

static int setting(const char *name, int otherwise)
{
	char line[4096] = "";
	FILE *f = fopen("/proc/cmdline", "r");
	const char *p;

	if (!f || !fgets(line, sizeof(line), f))
		return otherwise;
	fclose(f);
	p = strstr(line, name);
	return p ? atoi(p + strlen(name)) : otherwise;
}

static int result(int good, const char *what)
{
	printf("%s - %s\n", good ? "ok" : "not ok", what);
	fflush(stdout);
	return !good;
}

/* What of the device is in use or held by somebody. */
static uint64_t in_use(int fd)
{
	uint64_t used = 0, held = 0;
	uint32_t i;

	for (i = 0; i < geo.nr_hbms; i++) {
		struct neuron_native_hbm_stats s = { .size = sizeof(s), .hbm = i };

		used += ioctl(fd, NEURON_NATIVE_HBM_STATS, &s) ? 1 : s.used;
	}
	for (i = 0; i < geo.nr_cores; i++) {
		struct neuron_native_core_stats s = { .size = sizeof(s), .nc_id = i };

		held += ioctl(fd, NEURON_NATIVE_CORE_STATS, &s) ? 1 : s.host_bytes + (s.owner != 0);
	}
	printf("# used %llu, held %llu\n", (unsigned long long)used, (unsigned long long)held);
	return used + held;
}

/* Everything is back, and copies arrive. */
static int afterwards(void)
{
	static uint8_t in[300000], out[300000];
	struct neuron_ioctl_mem_buf_copy64 c = { .size = sizeof(in) };
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = sizeof(in),
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	int fd = open_device(0, O_WRONLY), bad = 0, works;
	uint64_t left;
	uint32_t i;

	/* Cores whose reset was made to fail keep memory until one succeeds. */
	for (left = in_use(fd), i = 0; left && i < 10; i++) {
		int reset = open("/sys/devices/virtual/neuron_device/neuron0/reset", O_WRONLY);

		if (reset < 0 || write(reset, "1", 1) < 0)
			sleep(1);
		close(reset);
		left = in_use(fd);
	}
	close(fd);
	bad += result(!left, "all memory and cores are back");

	for (i = 0; i < sizeof(in); i++)
		in[i] = i * 31 + (i >> 9);
	fd = open_device(0, O_RDWR);
	works = !ioctl(fd, NEURON_NATIVE_MEM_ALLOC, &a);
	c.mem_handle = a.mem_handle;
	c.buffer = in;
	c.copy_to_mem_handle = 1;
	works = works && !ioctl(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
	c.buffer = out;
	c.copy_to_mem_handle = 0;
	works = works && !ioctl(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c) &&
		!memcmp(in, out, sizeof(in));
	close(fd);
	return bad + result(works, "the device works");
}

/* Limits stay when their process goes; without an end to them nothing would succeed. */
static void unlimit(int fd)
{
	struct neuron_native_limit l = {
		.size = sizeof(l), .flags = NEURON_NATIVE_LIMIT_SET,
		.what = NEURON_NATIVE_LIMIT_DEFAULT, .bytes = NEURON_NATIVE_LIMIT_NONE,
	};
	uint32_t i;

	ioctl(fd, NEURON_NATIVE_LIMIT, &l);
	l.what = NEURON_NATIVE_LIMIT_CORE;
	for (i = 0; i < geo.nr_cores; i++) {
		l.used = 0;
		l.index = i;
		l.bytes = NEURON_NATIVE_LIMIT_NONE;
		ioctl(fd, NEURON_NATIVE_LIMIT, &l);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int inherited[DEVICES_MAX], has_kcov;
static pid_t pids[WORKERS_MAX];
static uint32_t generation;	/* processes so far */

/* Return: there are devices, and room to share. */
static bool prepare(void)
{
	settings_seconds = setting("fuzz.seconds=", settings_seconds);
	settings_calls = setting("fuzz.calls=", settings_calls);
	settings_seed = setting("fuzz.seed=", settings_seed);
	settings_workers = setting("fuzz.workers=", settings_workers);
	if (settings_workers < 1 || settings_workers > WORKERS_MAX)
		settings_workers = 3;
	has_kcov = !access("/sys/kernel/debug/kcov", R_OK);
	printf("# seed %d, %d s, %d workers, %zu commands, %s\n", settings_seed, settings_seconds,
	       settings_workers, NR_COMMANDS, has_kcov ? "with coverage" : "without coverage");
	if (!read_corpus(CORPUS_FILE))
		return !result(0, "a corpus");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_DGRAM, 0, passing))
		return false;
	while (nr_devices < DEVICES_MAX) {
		inherited[nr_devices] = open_device(nr_devices, O_RDWR);
		if (inherited[nr_devices] < 0)
			break;
		nr_devices++;
	}
	geo.size = sizeof(geo);
	if (!nr_devices || ioctl(inherited[0], NEURON_NATIVE_GET_GEOMETRY, &geo) ||
	    ioctl(inherited[0], NEURON_IOCTL_DEVICE_INFO, &info))
		return !result(0, "a device");
	nftw(TREE, found, 16, FTW_PHYS);
	nftw(DEBUG, found_debug, 16, FTW_PHYS);
	nftw(DEBUG_EMU, found_debug, 16, FTW_PHYS);
	mount("configfs", "/sys/kernel/config", "configfs", 0, NULL);
	return true;
}

static void start_workers(void)
{
	uint32_t i;

	for (i = 0; i < (uint32_t)settings_workers; i++) {
		if (pids[i])
			continue;
		pids[i] = fork();
		if (!pids[i])
			work(i, generation, inherited, nr_devices);
		generation++;
	}
}

/* Kill a process now and then, and undo what would stop all others. */
static void disturb(bool also_kill)
{
	uint32_t i;

	for (i = 0; i < (uint32_t)nr_devices; i++)
		unlimit(inherited[i]);
	calm();
	if (also_kill)
		kill(pids[random() % settings_workers], SIGKILL);
}

static void tell(void)
{
	printf("# %llu calls, %llu good, %llu covered, %llu kept\n",
	       (unsigned long long)shared->calls, (unsigned long long)shared->good,
	       (unsigned long long)shared->covered,
	       (unsigned long long)shared->kept);
	fflush(stdout);
}

/* Return: the kernel complained. */
static int run_for_a_while(int kmsg)
{
	double end = now() + settings_seconds, killing = 0, telling = 0;
	int splat = 0, status;
	uint32_t i;

	srandom(settings_seed);
	while (now() < end && !splat &&
	       (!settings_calls || shared->calls < (uint64_t)settings_calls)) {
		start_workers();
		usleep(50000);
		splat = complaint(kmsg);
		if (now() > killing) {
			disturb(killing);
			killing = now() + 0.3 + random() % 2000 / 1000.0;
		}
		for (i = 0; i < (uint32_t)settings_workers; i++)
			if (waitpid(pids[i], &status, WNOHANG) == pids[i])
				pids[i] = 0;
		if (now() > telling + 10) {
			telling = now();
			tell();
		}
	}
	return splat;
}

static void stop_workers(int splat)
{
	int status;
	uint32_t i;

	for (i = 0; i < (uint32_t)settings_workers; i++)
		if (pids[i])
			kill(pids[i], splat ? SIGSTOP : SIGKILL);
	if (splat)
		print_history();
	for (i = 0; i < (uint32_t)settings_workers; i++) {
		if (!pids[i])
			continue;
		kill(pids[i], SIGKILL);
		waitpid(pids[i], &status, 0);
	}
}

int main(int argc, char **argv)
{
	char line[128], on_warn[16], on_oops[16];
	int kmsg, bad = 0, splat;
	uint32_t i;

	if (argc > 1)
		return !read_corpus(argv[1]);
	if (!prepare())
		return 1;
	/* The kernel goes on after a complaint: its log and the calls before it tell more. */
	get(PANIC_ON_WARN, on_warn, sizeof(on_warn));
	get(PANIC_ON_OOPS, on_oops, sizeof(on_oops));
	set(PANIC_ON_WARN, "0");
	set(PANIC_ON_OOPS, "0");
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	lseek(kmsg, 0, SEEK_END);
	fflush(stdout);

	splat = run_for_a_while(kmsg);
	stop_workers(splat);
	tell();
	close(passing[0]);
	close(passing[1]);
	calm();
	bad += result(!no_guests(), "the devices in configfs go");
	for (i = 0; i < (uint32_t)nr_devices; i++) {
		unlimit(inherited[i]);
		close(inherited[i]);
	}
	snprintf(line, sizeof(line), "%llu calls, %llu of them good, %u processes, no complaint",
		 (unsigned long long)shared->calls, (unsigned long long)shared->good, generation);
	bad += result(!splat, line);
	bad += result(shared->calls > 100 && shared->good > shared->calls / 20, "calls get far");
	if (has_kcov) {
		print_corpus();
		bad += result(shared->covered > 500 && shared->kept > 50, "coverage leads on");
	}
	bad += afterwards();
	set(PANIC_ON_WARN, on_warn);
	set(PANIC_ON_OOPS, on_oops);
	return bad != 0;
}

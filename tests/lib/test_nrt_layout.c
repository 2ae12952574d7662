// SPDX-License-Identifier: GPL-2.0-only
/*
 * Structures of the runtime interface have the layout that programs were compiled with
 * (uapi/FACTS.md 11, measured on x86-64).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nrt/ndebug_stream.h>
#include <nrt/nrt.h>
#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>

struct row {
	const char *what;
	size_t is, measured;
};

#define SIZE(type, bytes) { "sizeof(" #type ")", sizeof(type), bytes }
#define OFFSET(type, member, bytes) { #type "." #member, offsetof(type, member), bytes }

static struct row rows[] = {
	SIZE(NRT_STATUS, 4),
	SIZE(nrt_version_t, 224),
	OFFSET(nrt_version_t, rt_detail, 32),
	OFFSET(nrt_version_t, git_hash, 160),
	SIZE(nrt_instance_info_t, 32),
	OFFSET(nrt_instance_info_t, arch_name, 8),
	OFFSET(nrt_instance_info_t, device_revision, 24),
	SIZE(nrt_model_info_t, 4),
	SIZE(nrt_tensor_info_t, 296),
	OFFSET(nrt_tensor_info_t, usage, 256),
	OFFSET(nrt_tensor_info_t, size, 264),
	OFFSET(nrt_tensor_info_t, dtype, 272),
	OFFSET(nrt_tensor_info_t, shape, 280),
	OFFSET(nrt_tensor_info_t, ndim, 288),
	OFFSET(nrt_tensor_info_array_t, tensor_array, 8),
	SIZE(nrt_tensor_batch_op_t, 24),
	SIZE(nrt_tensor_batch_t, 24),
	OFFSET(nrt_tensor_batch_t, num_ops, 16),
	SIZE(nrt_tensor_device_allocation_info_t, 24),
	OFFSET(nrt_tensor_device_allocation_info_t, hbm_index, 16),
	SIZE(nrt_vnc_memory_stats_t, 16),
	SIZE(nrt_tensor_list_t, 16),
	OFFSET(nrt_tensor_list_t, num_tensors, 8),
	SIZE(nrt_cc_comm_t, 32),
	OFFSET(nrt_cc_comm_t, rank, 8),
	OFFSET(nrt_cc_comm_t, rank_n, 12),
	OFFSET(nrt_cc_comm_t, ctx_device_id, 16),
	OFFSET(nrt_cc_comm_t, ctx_device_count, 20),
	OFFSET(nrt_cc_comm_t, vnc, 24),
	SIZE(nrt_ucode_img, 16),
	SIZE(nrt_ucode_info, 32),
	SIZE(ndebug_stream_event_header_t, 64),
	OFFSET(ndebug_stream_event_header_t, type, 8),
	OFFSET(ndebug_stream_event_header_t, reserved, 12),
	SIZE(ndebug_stream_payload_debug_tensor_read_t, 1024),
	OFFSET(ndebug_stream_payload_debug_tensor_read_t, logical_nc_id, 512),
	OFFSET(ndebug_stream_payload_debug_tensor_read_t, pipe, 516),
	OFFSET(ndebug_stream_payload_debug_tensor_read_t, tensor_dtype, 520),
	OFFSET(ndebug_stream_payload_debug_tensor_read_t, tensor_shape, 536),
	OFFSET(ndebug_stream_payload_debug_tensor_read_t, tensor_data_size, 600),
	OFFSET(ndebug_stream_payload_debug_tensor_read_t, reserved, 608),
};

#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

static void test_layout(void **state)
{
	const struct row *row = *state;

	assert_int_equal(row->is, row->measured);
}

int main(void)
{
	struct CMUnitTest tests[NR_ROWS];

	for (size_t i = 0; i < NR_ROWS; i++)
		tests[i] = (struct CMUnitTest){
			.name = rows[i].what, .test_func = test_layout, .initial_state = &rows[i],
		};
	return cmocka_run_group_tests_name("layout of the runtime interface", tests, NULL, NULL);
}

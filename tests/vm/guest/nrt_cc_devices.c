// SPDX-License-Identifier: GPL-2.0-only
/* Collectives of cores on two devices, through memory of the host. */
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <nrt/nrt.h>
#include <nrt/nrt_async.h>

#include "emu.h"

#define RANKS	4u
#define N	30000u			/* elements of the shorter side */

static nrt_cc_op_type_t operation;

struct rank {
	pthread_t thread;
	uint32_t rank;
	NRT_STATUS status;
};

static float value(uint32_t rank, size_t i)
{
	return (float)((i * 31 + rank * 1009) % 5000) - 1000;
}

static float expected(uint32_t rank, size_t i)
{
	float sum = 0;

	if (operation == NRT_CC_ALLGATHER)
		return value((uint32_t)(i / N), i % N);
	if (operation == NRT_CC_REDUCESCATTER)
		i += rank * N;
	for (uint32_t k = 0; k < RANKS; k++)
		sum += value(k, i);
	return sum;
}

static void *take_part(void *arg)
{
	struct rank *r = arg;
	size_t in_nr = operation == NRT_CC_REDUCESCATTER ? RANKS * N : N;
	size_t out_nr = operation == NRT_CC_ALLGATHER ? RANKS * N : N;
	nrt_cc_comm_t comm = {
		.rank = r->rank, .rank_n = RANKS, .ctx_device_id = r->rank,
		.ctx_device_count = RANKS, .vnc = r->rank,
	};
	struct pollfd pfd = { .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN };
	nrt_tensor_t *in = NULL, *out = NULL;
	nrt_tensor_list_t ins = { &in, 1 }, outs = { &out, 1 };
	float *data = calloc(RANKS * N, sizeof(*data));
	NRT_STATUS done = NRT_FAILURE;
	nrt_cc_context_t *c;
	nrta_seq_t seq;

	for (size_t i = 0; i < in_nr; i++)
		data[i] = value(r->rank, i);
	r->status = NRT_FAILURE;
	if (nrt_cc_global_comm_init(r->rank, r->rank, RANKS) == NRT_SUCCESS &&
	    nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, (int)r->rank, in_nr * 4, "in",
				&in) == NRT_SUCCESS &&
	    nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, (int)r->rank, out_nr * 4, "out",
				&out) == NRT_SUCCESS &&
	    nrt_tensor_write(in, data, 0, in_nr * 4) == NRT_SUCCESS &&
	    nrta_cc_prepare(&comm, &ins, &outs, NRT_DTYPE_FLOAT32, NRT_OP_ADD, operation,
			    &c) == NRT_SUCCESS &&
	    nrta_cc_schedule(&c, 0, &done, &seq) == NRT_SUCCESS &&
	    nrta_event_register_seq_id_completion(seq, pfd.fd) == NRT_SUCCESS &&
	    poll(&pfd, 1, 120000) == 1 && done == NRT_SUCCESS &&
	    nrt_tensor_read(out, data, 0, out_nr * 4) == NRT_SUCCESS)
		r->status = NRT_SUCCESS;
	for (size_t i = 0; i < out_nr; i++)
		if (data[i] != expected(r->rank, i))
			r->status = NRT_EXEC_COMPLETED_WITH_NUM_ERR;
	nrt_tensor_free(&in);
	nrt_tensor_free(&out);
	close(pfd.fd);
	free(data);
	return NULL;
}

int main(void)
{
	nrt_tensor_t *tensors[2] = { NULL };
	struct rank ranks[RANKS];
	int number = emu_add("second");

	CHECK(number == 1, "a device next to device 0");
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_MICROCODE_MB", "0", 1);
	setenv("NEURON_RT_VISIBLE_CORES", "6-9", 1);
	setenv("NEURON_RT_ROOT_COMM_ID", "127.0.0.1:7001", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "120", 1);
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS, "two cores of each");
	CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 64, "a", &tensors[0]) == NRT_SUCCESS &&
	      nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 3, 64, "b", &tensors[1]) == NRT_SUCCESS &&
	      nrt_tensor_copy(tensors[0], 0, tensors[1], 0, 64) == NRT_INVALID,
	      "they do not reach each other");
	nrt_tensor_free(&tensors[0]);
	nrt_tensor_free(&tensors[1]);
	for (operation = NRT_CC_ALLGATHER; operation <= NRT_CC_REDUCESCATTER; operation++) {
		bool ok = true;

		for (uint32_t i = 0; i < RANKS; i++) {
			ranks[i] = (struct rank){ .rank = i };
			pthread_create(&ranks[i].thread, NULL, take_part, &ranks[i]);
		}
		for (uint32_t i = 0; i < RANKS; i++) {
			pthread_join(ranks[i].thread, NULL);
			ok &= ranks[i].status == NRT_SUCCESS;
		}
		CHECK(ok, "operation %d", (int)operation);
	}
	nrt_close();
	emu_del("second");
	return failed != 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * What collectives between two hosts (../lib/fleet.h) cost beside the bare fabric: libfabric
 * alone moves the same bytes, in the same processes, and takes turns with libnrt.
 *
 * Bandwidth: an all-reduce of 64 MiB of fp32 has to move 64 MiB to and from each host.
 * Latency: 8 bytes to and from each, by the bare fabric at once (an exchange) or one after the other
 * (a round trip).  The device is the tests', in this process, and adds
 * as fast as the processor; the driver costs nothing.
 *
 * usage: hosts [ROUNDS]	prints a line for each figure, with the ratio of the best rounds
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <cmocka.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>

#define MUST(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			_exit(99); \
		} \
	} while (0)
#define FLEET_MUST(cond) MUST(cond)
#define FAKE_COMPUTE
#define FAKE_COMPUTE_FN add_fast

static void add_fast(uint8_t *dst, uint8_t op, uint8_t dst_dtype, uint8_t *const *src,
		     const uint8_t *src_dtype, uint32_t nr_src, uint8_t arg_type, uint32_t arg,
		     size_t n);
#include "../lib/fleet.h"
#include "common/wait.h"

/* What a device does beside the processor costs no processor time here, either, but this. */
static void add_fast(uint8_t *dst, uint8_t op, uint8_t dst_dtype, uint8_t *const *src,
		     const uint8_t *src_dtype, uint32_t nr_src, uint8_t arg_type, uint32_t arg,
		     size_t n)
{
	const float *a = (const float *)src[0], *b = (const float *)src[1];
	float *to = (float *)dst;

	if (op != NEURON_ISA_DMA_ADD || nr_src != 2 || dst_dtype != NRT_DTYPE_FLOAT32) {
		ref_compute(dst, op, dst_dtype, src, src_dtype, nr_src, arg_type, arg, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		to[i] = a[i] + b[i];
}

#define SIZE (64u << 20)
#define PIECE (1u << 20)
#define PIECES (SIZE / PIECE)
#define TURNS 300

/* ---- the bare fabric ------------------------------------------------------------------ */

static struct bare {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
	uint8_t *in, *out;
	struct fi_context2 contexts[2 * PIECES];
} bare;

static void bare_open(uint32_t host)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	uint8_t name[64] = { 0 }, names[128];
	size_t size = sizeof(name);
	char address[32];

	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	snprintf(address, sizeof(address), "10.99.0.%u", host + 1);
	MUST(!fi_getinfo(FI_VERSION(1, 9), address, NULL, FI_SOURCE, hints, &bare.info));
	MUST(!fi_fabric(bare.info->fabric_attr, &bare.fabric, NULL));
	MUST(!fi_domain(bare.fabric, bare.info, &bare.domain, NULL));
	MUST(!fi_av_open(bare.domain, &av, &bare.av, NULL));
	MUST(!fi_cq_open(bare.domain, &cq, &bare.cq, NULL));
	MUST(!fi_endpoint(bare.domain, bare.info, &bare.ep, NULL));
	MUST(!fi_ep_bind(bare.ep, &bare.av->fid, 0));
	MUST(!fi_ep_bind(bare.ep, &bare.cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(!fi_enable(bare.ep) && !fi_getname(&bare.ep->fid, name, &size));
	MUST(!nrt_all_gather(0, host, 2, sizeof(name), name, names));
	MUST(fi_av_insert(bare.av, names + 64 * !host, 1, &bare.peer, 0, NULL) == 1);
	bare.in = malloc(SIZE);
	bare.out = malloc(SIZE);
	memset(bare.in, 1, SIZE);
	memset(bare.out, 2, SIZE);
	fi_freeinfo(hints);
}

static void bare_begin(ssize_t (*begin)(void *, size_t, void *), uint8_t *at, size_t size,
		       void *context)
{
	while (begin(at, size, context) == -FI_EAGAIN)
		(void)fi_cq_read(bare.cq, NULL, 0);
}

static ssize_t bare_receive(void *at, size_t size, void *context)
{
	return fi_trecv(bare.ep, at, size, NULL, FI_ADDR_UNSPEC, 7, 0, context);
}

static ssize_t bare_send(void *at, size_t size, void *context)
{
	return fi_tsend(bare.ep, at, size, NULL, bare.peer, 7, context);
}

/* So many have come to their end. */
static void bare_wait(uint32_t left)
{
	struct fi_cq_tagged_entry e[16];

	while (left) {
		ssize_t n = fi_cq_sread(bare.cq, e, left < 16 ? left : 16, NULL, -1);

		MUST(n > 0 || n == -FI_EAGAIN);
		left -= n > 0 ? (uint32_t)n : 0;
	}
}

/* @nr messages of @size to and from the other. */
static void bare_exchange(uint32_t nr, size_t size)
{
	for (uint32_t i = 0; i < nr; i++)
		bare_begin(bare_receive, bare.in + i * size, size, &bare.contexts[2 * i]);
	for (uint32_t i = 0; i < nr; i++)
		bare_begin(bare_send, bare.out + i * size, size, &bare.contexts[2 * i + 1]);
	bare_wait(2 * nr);
}

/* There and back, @nr times. */
static void bare_round_trips(uint32_t host, uint32_t nr, size_t size)
{
	for (uint32_t i = 0; i < nr; i++) {
		bare_begin(bare_receive, bare.in, size, &bare.contexts[0]);
		if (host)
			bare_wait(1);
		bare_begin(bare_send, bare.out, size, &bare.contexts[1]);
		bare_wait(host ? 1 : 2);
	}
}

/* ---- libnrt ---------------------------------------------------------------------------- */

static nrt_tensor_t *in, *out, *small_in, *small_out;
static int done = -1;

static void reduce(uint32_t host, nrt_tensor_t *from, nrt_tensor_t *to)
{
	nrt_tensor_list_t ins = { &from, 1 }, outs = { &to, 1 };
	nrt_cc_comm_t comm = {
		.rank = host, .rank_n = 2, .ctx_device_id = host, .ctx_device_count = 2,
	};
	nrt_cc_context_t *c = NULL;
	NRT_STATUS status = NRT_FAILURE;
	nrta_seq_t seq;
	uint64_t value;

	MUST(!nrta_cc_prepare(&comm, &ins, &outs, NRT_DTYPE_FLOAT32, NRT_OP_ADD, NRT_CC_ALLREDUCE, &c));
	MUST(!nrta_cc_schedule(&c, 0, &status, &seq));
	MUST(!nrta_event_register_seq_id_completion(seq, done));
	MUST(read(done, &value, sizeof(value)) == sizeof(value));
	MUST(status == NRT_SUCCESS);
}

static void make_tensors(void)
{
	MUST(!nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, SIZE, "in", &in));
	MUST(!nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, SIZE, "out", &out));
	MUST(!nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 8, "in", &small_in));
	MUST(!nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 8, "out", &small_out));
	MUST(!nrt_tensor_memset(in, 0, 0, SIZE) && !nrt_tensor_memset(small_in, 0, 0, 8));
	done = eventfd(0, EFD_CLOEXEC);
}

/* ---- turns ------------------------------------------------------------------------------ */

enum { BARE_LARGE, REDUCE_LARGE, BARE_SMALL, TRIP_SMALL, GATHER_SMALL, REDUCE_SMALL, NR_FIGURES };

static void turn(uint32_t host, int figure)
{
	uint8_t eight[8] = { 0 }, sixteen[16];

	switch (figure) {
	case BARE_LARGE:
		bare_exchange(PIECES, PIECE);
		break;
	case REDUCE_LARGE:
		reduce(host, in, out);
		break;
	case BARE_SMALL:
		for (int i = 0; i < TURNS; i++)
			bare_exchange(1, 8);
		break;
	case TRIP_SMALL:
		bare_round_trips(host, TURNS, 8);
		break;
	case GATHER_SMALL:
		for (int i = 0; i < TURNS; i++)
			MUST(!nrt_all_gather(0, host, 2, 8, eight, sixteen));
		break;
	default:
		for (int i = 0; i < TURNS; i++)
			reduce(host, small_in, small_out);
	}
}

static void print_small(const char *what, const double *best, int figure)
{
	printf("{\"what\": \"%s of 8 bytes\", \"exchange_us\": %.1f, \"round_trip_us\": %.1f, \"nrt_us\": %.1f, \"of_exchange\": %.2f, \"of_round_trip\": %.2f, \"goal\": 1.5}\n",
	       what, best[BARE_SMALL] / TURNS / 1e3, best[TRIP_SMALL] / TURNS / 1e3,
	       best[figure] / TURNS / 1e3, best[figure] / best[BARE_SMALL],
	       best[figure] / best[TRIP_SMALL]);
}

static int main_bench(const struct fleet *f, uint32_t host)
{
	double best[NR_FIGURES];
	int rounds = *(const int *)f->arg;

	MUST(!nrt_build_global_comm(0, host, 2));
	bare_open(host);
	make_tensors();
	for (int round = -1; round < rounds; round++)
		for (int i = 0; i < NR_FIGURES; i++) {
			uint64_t began, took;

			MUST(!nrt_barrier(0, host, 2));
			began = now_ns();
			turn(host, i);
			took = now_ns() - began;
			/* The first time is for connections and memory. */
			if (round <= 0 || (double)took < best[i])
				best[i] = (double)took;
		}
	if (host)
		return 0;
	printf("{\"what\": \"all-reduce of 64 MiB\", \"bare_MBps\": %.0f, \"nrt_MBps\": %.0f, \"ratio\": %.2f, \"goal\": 0.7}\n",
	       SIZE / best[BARE_LARGE] * 1e3, SIZE / best[REDUCE_LARGE] * 1e3,
	       best[BARE_LARGE] / best[REDUCE_LARGE]);
	print_small("all-gather", best, GATHER_SMALL);
	print_small("all-reduce", best, REDUCE_SMALL);
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 10;
	struct fleet f = { .hosts = 2, .here = 1, .main = main_bench, .arg = &rounds };

	setenv("NEURON_RT_EXEC_TIMEOUT", "600", 1);
	MUST(!fleet_setup());
	run_fleet(&f);
	return fleet_teardown();
}

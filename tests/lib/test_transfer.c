// SPDX-License-Identifier: GPL-2.0-only
/*
 * libneuron/src/isa/transfer.c: random transfers of every operation, with strides
 * on all sides, become packets; these are executed with the arithmetic of the
 * software device and compared with a walk element by element (dma_ref.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../kmod/emu/compute.h"
#include "src/isa/transfer.h"
#include "random_side.h"

/* Sources, then the destination. */
static uint8_t *memory, *expected;

static uint8_t *at(uint64_t address)
{
	assert_true(address < (NEURON_NEFF_MAX_SOURCES + 1ull) * SIDE_BYTES);
	return memory + address;
}

/* Execute a packet, with the checks of the device. */
static void execute(const struct transfer_packet *p)
{
	static uint8_t in[65536], out[65536];
	struct emu_compute c = { .arg = p->rx[0].meta };
	uint32_t bytes = 0, rows, cols, size, done = 0, n = 0;

	assert_in_range(p->nr_tx, 1, NEURON_ISA_DMA_MAX_DESCS);
	assert_in_range(p->nr_rx, 1, NEURON_ISA_DMA_MAX_DESCS);
	c.op = p->tx[0].meta >> 20 & 7;
	for (uint32_t i = 0; i < p->nr_tx; i++) {
		assert_int_equal(p->tx[i].meta & ~0xfu, p->tx[0].meta & ~0xfu);
		assert_in_range(p->tx[i].bytes, 1, 65536);
		bytes += p->tx[i].bytes;
	}
	if (c.op == NEURON_ISA_DMA_TRANSPOSE) {
		assert_int_equal(p->tx[0].meta, NEURON_ISA_DMA_COMPUTE | NEURON_ISA_DMA_OP(c.op));
		assert_int_equal(emu_transpose_shape(&c, bytes, &rows, &cols, &size), 0);
		for (uint32_t i = 0; i < p->nr_tx; i++) {
			memcpy(in + done, at(p->tx[i].address), p->tx[i].bytes);
			done += p->tx[i].bytes;
		}
		emu_transpose(out, in, rows, cols, size);
		n = bytes;
	} else {
		struct emu_lane lane;

		c.nr_src = (uint8_t)p->nr_tx;
		c.dst_dtype = p->tx[0].meta >> 4 & 0xf;
		c.arg_type = p->tx[0].meta >> 8 & 3;
		assert_in_range(c.nr_src, 1, NEURON_ISA_DMA_MAX_SOURCES);
		for (uint32_t i = 0; i < p->nr_tx; i++)
			c.src_dtype[i] = p->tx[i].meta & 0xf;
		assert_int_equal(emu_compute_check(&c), 0);
		n = p->tx[0].bytes / emu_dma_dtype_size(c.src_dtype[0]);
		for (uint32_t k = 0, now; k < n; k += now) {
			now = n - k < EMU_COMPUTE_STEP ? n - k : EMU_COMPUTE_STEP;
			for (uint32_t i = 0; i < p->nr_tx; i++) {
				size = emu_dma_dtype_size(c.src_dtype[i]);
				assert_int_equal(p->tx[i].bytes, n * size);
				memcpy(lane.raw, at(p->tx[i].address) + k * size, now * size);
				emu_compute_source(&c, &lane, i, now);
			}
			emu_compute_result(&c, &lane,
					   out + k * emu_dma_dtype_size(c.dst_dtype), now);
		}
		n *= emu_dma_dtype_size(c.dst_dtype);
	}
	done = 0;
	for (uint32_t i = 0; i < p->nr_rx; i++) {
		assert_in_range(p->rx[i].bytes, 1, 65536);
		if (i)
			assert_int_equal(p->rx[i].meta, 0);
		assert_true(done + p->rx[i].bytes <= n);
		memcpy(at(p->rx[i].address), out + done, p->rx[i].bytes);
		done += p->rx[i].bytes;
	}
	assert_int_equal(done, n);
}

static void fill_memory(void)
{
	size_t total = (NEURON_NEFF_MAX_SOURCES + 1ul) * SIDE_BYTES;

	for (size_t i = 0; i < total; i += 8) {
		uint64_t v = rnd(UINT64_MAX);

		memcpy(memory + i, &v, 8);
	}
	memcpy(expected, memory, total);
}

/* Packets of @d, executed; the memory must be as @expected then. */
static void run(const struct neuron_neff_desc *d)
{
	struct span src[NEURON_NEFF_MAX_SOURCES], dst;
	struct transfer_packet packet;
	struct transfer t;
	uint64_t tx = 0, rx = 0, count[2];

	for (size_t i = 0; i < d->nr_from; i++)
		src[i] = span_of(&d->from[i], i * SIDE_BYTES + d->from[i].off);
	dst = span_of(&d->to, NEURON_NEFF_MAX_SOURCES * (uint64_t)SIDE_BYTES + d->to.off);
	assert_null(transfer_start(&t, d, &dst, src));
	transfer_count(t, UINT64_MAX, &count[0], &count[1]);
	while (transfer_next(&t, &packet)) {
		execute(&packet);
		tx += packet.nr_tx;
		rx += packet.nr_rx;
	}
	assert_true(count[0] == tx && count[1] == rx);
	transfer_start(&t, d, &dst, src);
	transfer_count(t, 0, &count[0], &count[1]);
	assert_true(count[0] && count[1]);
	assert_memory_equal(memory, expected, (NEURON_NEFF_MAX_SOURCES + 1ul) * SIDE_BYTES);
}

static void test_elementwise(void **state)
{
	static const enum neuron_neff_op ops[] = {
		NEURON_NEFF_OP_CAST, NEURON_NEFF_OP_FMA, NEURON_NEFF_OP_ADD, NEURON_NEFF_OP_MIN,
		NEURON_NEFF_OP_MAX,
	};
	static const uint8_t isa[] = {
		NEURON_ISA_DMA_CAST, NEURON_ISA_DMA_FMA, NEURON_ISA_DMA_ADD, NEURON_ISA_DMA_MIN,
		NEURON_ISA_DMA_MAX,
	};

	(void)state;
	for (int again = 0; again < 500; again++) {
		struct neuron_neff_side from[NEURON_NEFF_MAX_SOURCES];
		uint32_t o = (uint32_t)rnd(5), size;
		struct neuron_neff_desc d = {
			.op = ops[o], .from = from,
			.nr_from = o ? 1 + rnd(rnd(4) ? 3 : NEURON_NEFF_MAX_SOURCES) : 1,
			.scale_dtype = NEURON_NEFF_DT_FLOAT32, .scale = o == 1 ? 0.1 : 1.0,
		};
		uint64_t n = rnd(10) ? 1 + rnd(300) : 1 + rnd(20000);
		uint8_t dtypes[NEURON_NEFF_MAX_SOURCES], arg_type = 0;
		uint8_t elems[NEURON_NEFF_MAX_SOURCES][8], *list[NEURON_NEFF_MAX_SOURCES];
		uint32_t arg = 0;

		fill_memory();
		for (size_t i = 0; i < d.nr_from; i++) {
			dtypes[i] = (uint8_t)(1 + rnd(15));
			random_side(&from[i], (enum neuron_neff_dtype)dtypes[i], n,
				    (uint32_t)ref_dtype_size(dtypes[i]), true);
			list[i] = elems[i];
		}
		d.to.dtype = (enum neuron_neff_dtype)(1 + rnd(15));
		size = (uint32_t)ref_dtype_size((uint8_t)d.to.dtype);
		random_side(&d.to, d.to.dtype, n, size, false);
		if (o == 1) {
			float scale = 0.1f;

			arg_type = NEURON_ISA_DMA_ARG_FP32;
			memcpy(&arg, &scale, 4);
		} else if (o > 2 && rnd(2)) {
			switch (rnd(3)) {
			case 0:
				d.constant_dtype = NEURON_NEFF_DT_FLOAT32;
				d.constant = -2.5;
				arg_type = NEURON_ISA_DMA_ARG_FP32;
				arg = 0xc0200000;
				break;
			case 1:
				d.constant_dtype = NEURON_NEFF_DT_INT32;
				d.constant = INT32_MIN + 7.0;
				arg_type = NEURON_ISA_DMA_ARG_INT32;
				arg = 0x80000007;
				break;
			default:
				d.constant_dtype = NEURON_NEFF_DT_UINT32;
				d.constant = 4000000000.0;
				arg_type = NEURON_ISA_DMA_ARG_UINT32;
				arg = 4000000000u;
			}
		}
		for (uint64_t e = 0; e < n; e++) {
			for (size_t i = 0; i < d.nr_from; i++) {
				uint32_t s = (uint32_t)ref_dtype_size(dtypes[i]);

				memcpy(elems[i], memory + i * SIDE_BYTES + element(&from[i], e, s), s);
			}
			ref_compute(expected + NEURON_NEFF_MAX_SOURCES * (size_t)SIDE_BYTES +
				    element(&d.to, e, size), isa[o], (uint8_t)d.to.dtype, list, dtypes,
				    (uint32_t)d.nr_from, arg_type, arg, 1);
		}
		run(&d);
	}
}

static void test_transposes(void **state)
{
	(void)state;
	for (int again = 0; again < 250; again++) {
		struct neuron_neff_side from;
		struct neuron_neff_desc d = {
			.op = NEURON_NEFF_OP_TRANSPOSE, .from = &from, .nr_from = 1,
			.transpose_element_size = 1 + (uint32_t)rnd(16),
		};
		const uint64_t *shape = d.transpose_shape;
		uint32_t size = d.transpose_element_size;
		uint64_t n;

		d.transpose_shape[0] = 1 + rnd(rnd(4) ? 12 : 150);
		d.transpose_shape[1] = 1 + rnd(4);
		d.transpose_shape[2] = 1 + rnd(3);
		d.transpose_shape[3] = 1 + rnd(rnd(4) ? 12 : 150);
		n = shape[0] * shape[1] * shape[2] * shape[3];
		if (n * size > SIDE_BYTES - 1000)
			continue;
		fill_memory();
		/* Elements of @size bytes, of type uint8. */
		random_side(&from, NEURON_NEFF_DT_UINT8, n, size, true);
		random_side(&d.to, NEURON_NEFF_DT_UINT8, n, size, false);
		for (uint64_t a = 0; a < shape[0]; a++)
			for (uint64_t b = 0; b < shape[1] * shape[2]; b++)
				for (uint64_t c = 0; c < shape[3]; c++)
					for (uint32_t k = 0; k < size; k++) {
						uint64_t in = (a * shape[1] * shape[2] + b) * shape[3] + c;
						uint64_t out = (c * shape[1] * shape[2] + b) * shape[0] + a;

						expected[NEURON_NEFF_MAX_SOURCES * (size_t)SIDE_BYTES +
							 element(&d.to, out * size + k, 1)] =
							memory[element(&from, in * size + k, 1)];
					}
		run(&d);
	}
}

static void test_refused(void **state)
{
	struct neuron_neff_side from = {
		.ndim = 1, .size = { 64 }, .step = { 1 }, .dtype = NEURON_NEFF_DT_UINT8, .bytes = 64,
	};
	struct neuron_neff_desc d = {
		.op = NEURON_NEFF_OP_MIN, .from = &from, .nr_from = 1, .to = from,
		.scale_dtype = NEURON_NEFF_DT_FLOAT32,
		.constant_dtype = NEURON_NEFF_DT_INT32,
	};
	static const double no_int32[] = { 0.5, 2147483648.0, -2147483649.0, 1e300, -1e300 };
	static const double no_uint32[] = { -1, 4294967296.0, 1.5 };
	static const double int32[] = { -2147483648.0, 0, 2147483647.0 };
	static const double uint32[] = { 0, 4294967295.0 };
	struct span s = span_of(&from, 0);
	struct transfer t;

	(void)state;
	for (size_t i = 0; i < sizeof(int32) / sizeof(int32[0]); i++) {
		d.constant = int32[i];
		assert_null(transfer_start(&t, &d, &s, &s));
		assert_int_equal(t.arg, (uint32_t)(int32_t)int32[i]);
	}
	for (size_t i = 0; i < sizeof(no_int32) / sizeof(no_int32[0]); i++) {
		d.constant = no_int32[i];
		assert_non_null(transfer_start(&t, &d, &s, &s));
	}
	d.constant_dtype = NEURON_NEFF_DT_UINT32;
	for (size_t i = 0; i < sizeof(no_uint32) / sizeof(no_uint32[0]); i++) {
		d.constant = no_uint32[i];
		assert_non_null(transfer_start(&t, &d, &s, &s));
	}
	for (size_t i = 0; i < sizeof(uint32) / sizeof(uint32[0]); i++) {
		d.constant = uint32[i];
		assert_null(transfer_start(&t, &d, &s, &s));
		assert_int_equal(t.arg, (uint32_t)uint32[i]);
	}
	d.op = NEURON_NEFF_OP_FMA;
	d.constant_dtype = NEURON_NEFF_DT_UNKNOWN;
	assert_null(transfer_start(&t, &d, &s, &s));
	d.scale_dtype = NEURON_NEFF_DT_FLOAT16;
	assert_non_null(transfer_start(&t, &d, &s, &s));
	d.op = NEURON_NEFF_OP_TRANSPOSE;
	d.transpose_element_size = 1;
	d.to.bytes = 128;
	assert_non_null(transfer_start(&t, &d, &s, &s));
}

/* Pieces of plain transfers are counted without a walk, which here would not end. */
static void test_count_plain(void **state)
{
	static const struct {
		uint64_t bytes, limit, count;
	} rows[] = {
		{ 1, UINT64_MAX, 1 }, { 65535, 1, 1 }, { 65536, 1, 1 }, { 65537, 2, 2 },
		{ 65537, 1, 2 }, { 131072, 0, 1 }, { 1ull << 60, UINT64_MAX, 1ull << 44 },
		{ 1ull << 60, 1ull << 44, 1ull << 44 },
		{ (1ull << 60) + 1, 1ull << 44, (1ull << 44) + 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct span s = { .ndim = 1, .size = { rows[i].bytes }, .step = { 1 } };

		if (piece_count(&s, &s, rows[i].limit) != rows[i].count)
			fail_msg("%llu bytes: not %llu pieces", (unsigned long long)rows[i].bytes,
				 (unsigned long long)rows[i].count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elementwise),
		cmocka_unit_test(test_transposes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_count_plain),
	};
	int ret;

	memory = malloc((NEURON_NEFF_MAX_SOURCES + 1) * (size_t)SIDE_BYTES);
	expected = malloc((NEURON_NEFF_MAX_SOURCES + 1) * (size_t)SIDE_BYTES);
	ret = cmocka_run_group_tests_name("transfer", tests, NULL, NULL);
	free(memory);
	free(expected);
	return ret;
}

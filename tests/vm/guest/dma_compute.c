// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compute operations of DMA on real rings: every operation and type against
 * dma_ref.h, gathered and scattered operands, the state buffer, overlap, packets
 * that come in pieces, and descriptors that have to be refused.
 */
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "check.h"
#include "device.h"
#include "../../lib/dma_ref.h"

#define ENGINE	2
#define QUEUE	3
#define SLOTS	512
#define SEM	7
#define MAP	(1u << 20)	/* of data, see the offsets below */
#define DST	(768u << 10)

struct desc {
	uint32_t ctrl, meta;
	uint64_t addr;
};

static int fd, evfd;
static struct neuron_native_geometry geo;
static struct neuron_native_mem_alloc ring[2], data, one;
static uint8_t *map;				/* of data */
static const struct neuron_isa_notice *notice;
static uint32_t at[2], errors, nr_done;
static uint64_t rng = 88172645463325252ULL;

static uint64_t rnd(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

static bool memory(uint64_t bytes, uint32_t type, struct neuron_native_mem_alloc *a)
{
	memset(a, 0, sizeof(*a));
	a->size = sizeof(*a);
	a->bytes = bytes;
	a->mem_type = type;
	return !call(fd, NEURON_NATIVE_MEM_ALLOC, a);
}

static void put(int rx, uint32_t ctrl, uint32_t meta, uint64_t addr)
{
	struct desc d = { .ctrl = ctrl | 1u << 24, .meta = meta, .addr = addr };
	struct neuron_ioctl_dma_copy_descriptors64 c = {
		.mem_handle = ring[rx].mem_handle, .buffer = &d, .num_descs = 1,
		.offset = at[rx] * 16,
		.queue_type = rx ? NEURON_DMA_QUEUE_TYPE_RX : NEURON_DMA_QUEUE_TYPE_TX,
	};

	if (call(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &c))
		CHECK(0, "write a descriptor");
	at[rx] = (at[rx] + 1) % SLOTS;
}

static void source(uint32_t meta, uint64_t addr, uint32_t len, bool first, bool last)
{
	put(0, (len & 0xffff) | (first ? 1u << 26 : 0) | (last ? 1u << 27 : 0),
	    NEURON_ISA_DMA_COMPUTE | meta, addr);
}

static void dest(uint32_t arg, uint64_t addr, uint32_t len)
{
	put(1, len & 0xffff, arg, addr);
}

/* Adds 1 to the semaphore when all before it is done. */
static void marker(void)
{
	put(0, 4 | 3u << 26, 0x05080003, one.pa);
	put(1, 4, 0, sem_inc_address(&geo, 0, SEM));
	nr_done++;
}

static int ring_bell(uint32_t tx, uint32_t rx)
{
	struct neuron_ioctl_dma_queue_copy_start s = {
		.eng_id = ENGINE, .qid = QUEUE, .tx_desc_count = tx, .rx_desc_count = rx,
	};

	return call(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &s);
}

static bool wait_done(void)
{
	struct neuron_ioctl_semaphore s = { .nc_id = 0, .semaphore_index = SEM };
	struct neuron_ioctl_dma_ack_completed ack = { .eng_id = ENGINE, .qid = QUEUE, .count = 1 };

	for (int i = 0; i < 30000; i++) {
		if (call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s))
			return false;
		if (s.value == nr_done)
			return !call(fd, NEURON_IOCTL_DMA_ACK_COMPLETED, &ack);
		usleep(i < 100 ? 0 : 1000);
	}
	return false;
}

static bool open_queue(void)
{
	struct neuron_ioctl_dma_queue_init init = {
		.eng_id = ENGINE, .qid = QUEUE,
		.tx_handle = ring[0].mem_handle, .rx_handle = ring[1].mem_handle,
		.tx_desc_count = SLOTS, .rx_desc_count = SLOTS,
	};

	at[0] = at[1] = 0;
	return !call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init);
}

static void fill(uint8_t *p, uint8_t dtype, size_t n)
{
	size_t size = ref_dtype_size(dtype);

	for (size_t i = 0; i < n; i++) {
		uint64_t v = rnd();

		switch (rnd() % 5) {
		case 0:
			v = 0 - (v & 7);
			break;
		case 1:
			v = (1ull << (v % 64)) - (v >> 63);
			break;
		case 2:
			v = 0x7f80000000007f80ull | (v & 0x8001000180018181ull);
			break;
		case 3:
			v &= 0x8000000780078783ull;
			break;
		}
		memcpy(p + i * size, &v, size);
	}
}

static uint32_t types(uint32_t op, uint32_t src, uint32_t dst, uint32_t arg)
{
	return NEURON_ISA_DMA_OP(op) | NEURON_ISA_DMA_SRC(src) | NEURON_ISA_DMA_DST(dst) |
	       NEURON_ISA_DMA_ARG(arg);
}

/* One packet against the reference; sources lie 40000 bytes apart, unaligned. */
static bool elementwise(uint32_t op, const uint8_t *src, uint32_t nr, uint8_t dst, uint8_t arg_type,
			uint32_t arg, uint32_t n)
{
	static uint8_t want[65536];
	uint32_t size = ref_dtype_size(dst), bytes = n * size;
	uint32_t split = bytes > 7 ? 3 + (uint32_t)(rnd() % (bytes - 6)) : 0;
	uint8_t *p[16];

	memset(map + DST, 0x5a, bytes + 64);
	for (uint32_t k = 0; k < nr; k++) {
		p[k] = map + 40000 * k + k;
		fill(p[k], src[k], n);
		source(types(op, src[k], dst, arg_type), data.pa + 40000 * k + k,
		       n * ref_dtype_size(src[k]), !k, k == nr - 1);
	}
	ref_compute(want, op, dst, p, src, nr, arg_type, arg, n);
	/* The destination in one or two parts; the cut need not be at an element. */
	if (split) {
		dest(arg, data.pa + DST + 1, split);
		dest(0, data.pa + DST + 1 + split, bytes - split);
	} else {
		dest(arg, data.pa + DST + 1, bytes);
	}
	marker();
	if (ring_bell(nr + 1, (split ? 2 : 1) + 1) || !wait_done())
		return false;
	return map[DST] == 0x5a && map[DST + 1 + bytes] == 0x5a &&
	       !memcmp(map + DST + 1, want, bytes);
}

static void test_elementwise(void)
{
	static const char *const names[] = { "cast", "add", "fma", "min", "max" };
	static const uint32_t args[] = { 0x3f000000, 100, 0xffffffff, 0x7fc00000, 0xbf800000 };
	uint32_t bad, cases;

	for (uint32_t op = 0; op <= NEURON_ISA_DMA_MAX; op++) {
		bad = cases = 0;
		for (uint8_t from = 1; from < 16; from++) {
			for (uint8_t to = 1; to < 16; to++) {
				uint32_t nr = op == NEURON_ISA_DMA_CAST ? 1 : 1 + rnd() % 3;
				uint8_t arg = op == NEURON_ISA_DMA_FMA ? NEURON_ISA_DMA_ARG_FP32 :
					      op < NEURON_ISA_DMA_MIN ? 0 : rnd() % 4;
				uint8_t src[3] = { from, (uint8_t)(1 + rnd() % 15), to };

				bad += !elementwise(op, src, nr, to, arg, arg ? args[rnd() % 5] : 0,
						    1 + (uint32_t)(rnd() % 200));
				cases++;
			}
		}
		CHECK(!bad, "%s: %u of %u cases differ", names[op], bad, cases);
	}
	uint8_t sixteen[16];

	for (int k = 0; k < 16; k++)
		sixteen[k] = k % 2 ? NEURON_ISA_DT_FP32 : NEURON_ISA_DT_BF16;
	CHECK(elementwise(NEURON_ISA_DMA_ADD, sixteen, 16, NEURON_ISA_DT_FP16, 0, 0, 9999),
	      "add of 16 sources, 9999 elements");
	sixteen[0] = NEURON_ISA_DT_INT8;
	CHECK(elementwise(NEURON_ISA_DMA_CAST, sixteen, 1, NEURON_ISA_DT_FP8_E5, 0, 0, 65536),
	      "cast of 64 KiB");
}

/* Rows that lie apart on both sides: one source and destination descriptor each. */
static bool transpose(uint32_t rows, uint32_t cols, uint32_t size)
{
	uint32_t row = cols * size, col = rows * size, bad = 0;

	memset(map + DST, 0x5a, 200000);
	for (uint32_t i = 0; i < rows * (row + 100); i++)
		map[i] = (uint8_t)rnd();
	for (uint32_t r = 0; r < rows; r++)
		source(NEURON_ISA_DMA_OP(NEURON_ISA_DMA_TRANSPOSE), data.pa + r * (row + 100), row,
		       !r, r == rows - 1);
	for (uint32_t c = 0; c < cols; c++)
		dest(c ? 0 : NEURON_ISA_DMA_TRANSPOSED(rows, size), data.pa + DST + c * (col + 10),
		     col);
	marker();
	if (ring_bell(rows + 1, cols + 1) || !wait_done())
		return false;
	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t c = 0; c < cols; c++)
			bad += !!memcmp(map + DST + c * (col + 10) + r * size,
					map + r * (row + 100) + c * size, size);
	for (uint32_t c = 0; c < cols; c++)
		for (uint32_t i = 0; i < 10; i++)
			bad += map[DST + c * (col + 10) + col + i] != 0x5a;
	return !bad;
}

static void test_transpose(void)
{
	for (uint32_t size = 1; size <= 16; size++)
		CHECK(transpose(1 + (uint32_t)(rnd() % 64), 1 + (uint32_t)(rnd() % 64), size),
		      "transpose of elements of %u bytes", size);
	CHECK(transpose(64, 64, 16), "the largest transpose");
}

static void test_places(void)
{
	uint64_t sbuf = geo.tpb_base[0] + NEURON_ISA_SBUF_OFF;
	uint32_t i, bad;
	uint8_t *p = map;
	static uint8_t want[1024];

	/* into the state buffer and out of it */
	fill(map, NEURON_ISA_DT_FP32, 256);
	source(types(NEURON_ISA_DMA_CAST, NEURON_ISA_DT_FP32, NEURON_ISA_DT_BF16, 0), data.pa, 1024,
	       true, true);
	dest(0, sbuf + 4096, 512);
	source(types(NEURON_ISA_DMA_CAST, NEURON_ISA_DT_BF16, NEURON_ISA_DT_FP16, 0), sbuf + 4096,
	       512, true, true);
	dest(0, data.pa + DST, 512);
	marker();
	ref_compute(want, NEURON_ISA_DMA_CAST, NEURON_ISA_DT_BF16, &p,
		    (uint8_t[]){ NEURON_ISA_DT_FP32 }, 1, 0, 0, 256);
	p = want;
	ref_compute(want + 512, NEURON_ISA_DMA_CAST, NEURON_ISA_DT_FP16, &p,
		    (uint8_t[]){ NEURON_ISA_DT_BF16 }, 1, 0, 0, 256);
	CHECK(!ring_bell(3, 3) && wait_done() && !memcmp(map + DST, want + 512, 512),
	      "through the state buffer, two packets");

	/* a destination that overlaps its sources: all of them are read first */
	for (i = 0; i < 1000; i++)
		map[i] = (uint8_t)i;
	source(types(NEURON_ISA_DMA_MAX, NEURON_ISA_DT_UINT8, NEURON_ISA_DT_UINT16, 0), data.pa,
	       500, true, false);
	source(types(NEURON_ISA_DMA_MAX, NEURON_ISA_DT_UINT8, NEURON_ISA_DT_UINT16, 0),
	       data.pa + 3, 500, false, true);
	dest(0, data.pa, 1000);
	marker();
	CHECK(!ring_bell(3, 2) && wait_done(), "a destination over its sources");
	for (i = 0, bad = 0; i < 500; i++) {
		uint8_t a = (uint8_t)i, b = (uint8_t)(i + 3);

		bad += map[2 * i] != (a > b ? a : b) || map[2 * i + 1];
	}
	CHECK(!bad, "reads all before it writes");

	/* descriptors that come one by one */
	memset(map, 1, 64);
	memset(map + DST, 0, 64);
	for (i = 0, bad = 0; i < 3; i++) {
		source(types(NEURON_ISA_DMA_ADD, NEURON_ISA_DT_UINT8, NEURON_ISA_DT_UINT8, 0),
		       data.pa, 64, !i, i == 2);
		dest(0, data.pa + DST + 20 * i, i < 2 ? 20 : 24);
		if (i == 2)
			marker();
		usleep(20000);
		bad += map[DST] != 0;
		CHECK(!ring_bell(i < 2 ? 1 : 2, i < 2 ? 1 : 2), "part %u of a packet", i);
	}
	CHECK(!bad, "nothing happens before the last descriptor is there");
	CHECK(wait_done() && map[DST] == 3 && map[DST + 63] == 3, "then all of it");
}

/* A queue that met @code; what it may not touch is as before. */
static void refused(uint32_t tx, uint32_t rx, uint8_t code, const char *what)
{
	struct pollfd p = { .fd = evfd, .events = POLLIN };
	const struct neuron_isa_notice *n = &notice[errors % 256];
	uint64_t count;
	bool came;

	memset(map + DST, 0x5a, 4096);
	came = !ring_bell(tx, rx) && poll(&p, 1, 30000) == 1 && read(evfd, &count, 8) == 8;
	CHECK(came && n->kind == NEURON_ISA_NOTICE_DMA_ERROR && n->code == code,
	      "%s: error %u (kind %u code %u)", what, code, n->kind, n->code);
	for (count = 0; count < 4096 && map[DST + count] == 0x5a; count++)
		;
	CHECK(count == 4096, "%s: nothing is written", what);
	errors++;
	CHECK(open_queue(), "%s: the queue starts again", what);
}

/* A packet that adds bytes: one of the sources or destinations of each test is wrong. */
#define U8		NEURON_ISA_DT_UINT8
#define F32		NEURON_ISA_DT_FP32
#define ADD		types(NEURON_ISA_DMA_ADD, U8, U8, 0)
#define SRC		(data.pa)
#define DST_ADDR	(data.pa + DST)

static void test_refused_words(void)
{
	const struct {
		const char *what;
		uint32_t meta, len, arg, dst_len;
	} one_each[] = {
		{ "operation 6", NEURON_ISA_DMA_OP(6) | U8 | U8 << 4, 64, 0, 64 },
		{ "operation 7", NEURON_ISA_DMA_OP(7) | U8 | U8 << 4, 64, 0, 64 },
		{ "no source type", types(NEURON_ISA_DMA_CAST, 0, U8, 0), 64, 0, 64 },
		{ "no destination type", types(NEURON_ISA_DMA_CAST, U8, 0, 0), 64, 0, 64 },
		{ "unknown bits", ADD | 1u << 10, 64, 0, 64 },
		{ "CRC bits", ADD | 1u << 19, 64, 0, 64 },
		{ "high bits", ADD | 1u << 31, 64, 0, 64 },
		{ "argument of add", types(NEURON_ISA_DMA_ADD, U8, U8, 1), 64, 0, 64 },
		{ "argument of cast", types(NEURON_ISA_DMA_CAST, U8, F32, 1), 16, 0, 64 },
		{ "argument word of add", ADD, 64, 1, 64 },
		{ "integer scale", types(NEURON_ISA_DMA_FMA, U8, U8, 2), 64, 1, 64 },
		{ "fma without scale", types(NEURON_ISA_DMA_FMA, U8, U8, 0), 64, 0, 64 },
		{ "half an element", types(NEURON_ISA_DMA_CAST, F32, U8, 0), 62, 0, 15 },
		{ "destination too long", ADD, 64, 0, 65 },
		{ "result of more than 64 KiB", types(NEURON_ISA_DMA_CAST, U8, F32, 0), 32768, 0, 64 },
		{ "transpose with types", NEURON_ISA_DMA_OP(5) | U8, 64,
		  NEURON_ISA_DMA_TRANSPOSED(8, 1), 64 },
		{ "transpose of no rows", NEURON_ISA_DMA_OP(5), 64,
		  NEURON_ISA_DMA_TRANSPOSED(0, 1), 64 },
		{ "transpose of elements of 17 bytes", NEURON_ISA_DMA_OP(5), 68,
		  NEURON_ISA_DMA_TRANSPOSED(4, 17), 68 },
		{ "transpose that does not come out even", NEURON_ISA_DMA_OP(5), 64,
		  NEURON_ISA_DMA_TRANSPOSED(3, 1), 64 },
	};
	uint32_t i;

	for (i = 0; i < sizeof(one_each) / sizeof(one_each[0]); i++) {
		source(one_each[i].meta, SRC, one_each[i].len, true, true);
		dest(one_each[i].arg, DST_ADDR, one_each[i].dst_len);
		refused(1, 1, NEURON_ISA_ERR_DMA_DESC, one_each[i].what);
	}
}

static void test_refused_order(void)
{
	source(ADD, SRC, 64, false, true);
	dest(0, DST_ADDR, 64);
	refused(1, 1, NEURON_ISA_ERR_DMA_DESC, "a packet without a first");
	source(ADD, SRC, 64, true, false);
	source(ADD, SRC, 64, true, true);
	dest(0, DST_ADDR, 64);
	refused(2, 1, NEURON_ISA_ERR_DMA_DESC, "two firsts");
	source(ADD, SRC, 64, true, false);
	source(ADD, SRC, 32, false, true);
	dest(0, DST_ADDR, 64);
	refused(2, 1, NEURON_ISA_ERR_DMA_DESC, "sources of different lengths");
	source(ADD, SRC, 64, true, false);
	source(types(NEURON_ISA_DMA_MIN, U8, U8, 0), SRC, 64, false, true);
	dest(0, DST_ADDR, 64);
	refused(2, 1, NEURON_ISA_ERR_DMA_DESC, "two operations in a packet");
	source(ADD, SRC, 64, true, false);
	source(types(NEURON_ISA_DMA_ADD, U8, F32, 0), SRC, 64, false, true);
	dest(0, DST_ADDR, 64);
	refused(2, 1, NEURON_ISA_ERR_DMA_DESC, "two destination types");
	source(types(NEURON_ISA_DMA_CAST, U8, F32, 0), SRC, 16, true, false);
	source(types(NEURON_ISA_DMA_CAST, U8, F32, 0), SRC, 16, false, true);
	dest(0, DST_ADDR, 64);
	refused(2, 1, NEURON_ISA_ERR_DMA_DESC, "cast of two sources");
	source(ADD, SRC, 64, true, false);
	put(0, 64 | 1u << 27, 0x01080003, SRC);
	dest(0, DST_ADDR, 64);
	refused(2, 1, NEURON_ISA_ERR_DMA_DESC, "a copy inside");
	put(0, 64 | 1u << 26, 0x01080003, SRC);
	source(ADD, SRC, 64, false, true);
	dest(0, data.pa + DST + 8192, 64);
	dest(0, DST_ADDR, 64);
	refused(2, 2, NEURON_ISA_ERR_DMA_DESC, "inside a copy");
}

static void test_refused_numbers(void)
{
	uint32_t i;

	for (i = 0; i < 17; i++)
		source(ADD, SRC, 64, !i, i == 16);
	dest(0, DST_ADDR, 64);
	refused(17, 1, NEURON_ISA_ERR_DMA_DESC, "17 sources");
	for (i = 0; i < 65; i++)
		source(NEURON_ISA_DMA_OP(NEURON_ISA_DMA_TRANSPOSE), SRC, 1, !i, i == 64);
	dest(NEURON_ISA_DMA_TRANSPOSED(65, 1), DST_ADDR, 65);
	refused(65, 1, NEURON_ISA_ERR_DMA_DESC, "transpose of 65 sources");
	source(NEURON_ISA_DMA_OP(NEURON_ISA_DMA_TRANSPOSE), SRC, 65536, true, false);
	source(NEURON_ISA_DMA_OP(NEURON_ISA_DMA_TRANSPOSE), SRC, 64, false, true);
	dest(NEURON_ISA_DMA_TRANSPOSED(1, 1), DST_ADDR, 64);
	refused(2, 1, NEURON_ISA_ERR_DMA_DESC, "transpose of more than 64 KiB");
	source(ADD, SRC, 65, true, true);
	for (i = 0; i < 65; i++)
		dest(0, DST_ADDR + i, 1);
	refused(1, 65, NEURON_ISA_ERR_DMA_DESC, "65 destinations");
	source(ADD, SRC, 64, true, true);
	dest(0, DST_ADDR, 32);
	dest(1, DST_ADDR + 32, 32);
	refused(1, 2, NEURON_ISA_ERR_DMA_DESC, "a second argument");
}

static void test_refused_addresses(void)
{
	source(ADD, SRC, 64, true, false);
	source(ADD, geo.hbm[0].base + geo.hbm[0].size / 2, 64, false, true);
	dest(0, DST_ADDR, 64);
	refused(2, 1, NEURON_ISA_ERR_DMA_ACCESS, "a second source that is not ours");
	source(ADD, SRC, 64, true, true);
	dest(0, DST_ADDR, 32);
	dest(0, geo.hbm[0].base + geo.hbm[0].size / 2, 32);
	refused(1, 2, NEURON_ISA_ERR_DMA_ACCESS, "a second destination that is not ours");
	source(ADD, SRC + MAP - 32, 64, true, true);
	dest(0, DST_ADDR, 64);
	refused(1, 1, NEURON_ISA_ERR_DMA_ACCESS, "the end of a chunk and more");
	source(ADD, -32ULL, 64, true, true);
	dest(0, DST_ADDR, 64);
	refused(1, 1, NEURON_ISA_ERR_DMA_ACCESS, "the top of the address space");
	source(ADD, SRC, 4, true, true);
	dest(0, sem_inc_address(&geo, 0, SEM), 4);
	refused(1, 1, NEURON_ISA_ERR_DMA_ACCESS, "a semaphore as destination");
	source(ADD, geo.tpb_base[0] + NEURON_ISA_SEM_READ_OFF(SEM), 4, true, true);
	dest(0, DST_ADDR, 4);
	refused(1, 1, NEURON_ISA_ERR_DMA_ACCESS, "a semaphore as source");
	source(ADD, SRC, 64, true, true);
	dest(0, geo.tpb_base[0] + NEURON_ISA_FIFO_OFF(0), 64);
	refused(1, 1, NEURON_ISA_ERR_DMA_ACCESS, "a FIFO as destination");
	if (geo.nr_cores > 1) {
		source(ADD, SRC, 64, true, true);
		dest(0, geo.tpb_base[1], 64);
		refused(1, 1, NEURON_ISA_ERR_DMA_ACCESS, "the window of a core that is not ours");
	}
}

static void test_abandoned(void)
{
	source(ADD, SRC, 64, true, false);
	dest(0, DST_ADDR, 64);
	CHECK(!ring_bell(1, 1) && open_queue(), "a queue that is set up again in a packet");
	source(ADD, SRC, 64, true, true);
	dest(0, DST_ADDR, 64);
	marker();
	CHECK(!ring_bell(2, 2) && wait_done() && !memcmp(map, map + DST, 64),
	      "starts with a new one");
}

int main(void)
{
	struct neuron_ioctl_notifications_init_with_realloc_v2 nq = {
		.nq_type = NQ_TYPE_ERROR, .size = 4096, .on_host_memory = 1, .force_alloc_mem = 1,
	};
	struct neuron_native_nq_eventfd ev = { .size = sizeof(ev), .nq_type = NQ_TYPE_ERROR };
	struct neuron_ioctl_device_reset reset = { .nc_map = 1 };
	struct neuron_ioctl_device_ready ready = { 0 };
	uint32_t word = htole32(1);
	struct neuron_ioctl_mem_buf_copy64 c = {
		.buffer = &word, .size = 4, .copy_to_mem_handle = 1,
	};

	fd = open_node(O_RDWR);
	geo = geometry(fd);
	CHECK(memory(SLOTS * 16, NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE, &ring[0]) &&
	      memory(SLOTS * 16, NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE, &ring[1]) &&
	      memory(MAP, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, &data) &&
	      memory(4096, NEURON_MEMALLOC_TYPE_MISC_DEVICE, &one), "memory");
	c.mem_handle = one.mem_handle;
	map = mmap(NULL, MAP, PROT_READ | PROT_WRITE, MAP_SHARED, fd, data.mmap_offset);
	CHECK(map != MAP_FAILED && !call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c), "mapped");
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &reset), "reset of core 0");
	ready.request_id = reset.request_id;
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET_READY, &ready) && !ready.result, "which is done");
	CHECK(!call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &nq), "error queue");
	evfd = ev.eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK(!call(fd, NEURON_NATIVE_NQ_EVENTFD, &ev), "its eventfd");
	notice = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, nq.mmap_offset);
	CHECK(open_queue(), "queue");
	if (failed || notice == MAP_FAILED)
		return 1;

	test_elementwise();
	test_transpose();
	test_places();
	/* What a queue stops at is a complaint of a card's model, or refused by the driver. */
	if (!is_checked()) {
		test_refused_words();
		test_refused_order();
		test_refused_numbers();
		test_refused_addresses();
	}
	test_abandoned();
	return failed ? 1 : 0;
}

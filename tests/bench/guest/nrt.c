// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the library costs: loading by size, with the share of each step, descriptors,
 * executions, requests by depth of the queue, idle state in host memory: much of it, and the half
 * of a decoder's weights that does not run. One JSON object per line; ../nrt.py makes the table.
 * Loading and unloading for ever is tests/vm/guest/load_cycles.c.
 *
 * usage: nrt load|run|offload [quick]
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <zlib.h>

#include <neuron/neuron.h>

#define NEFF_ROOM ((256 << 20) + 65536)
#include "../../vm/guest/nrt_guest.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

static struct neuron_device *device;
static struct neuron_core *core;
static struct neff neff;
static bool quick;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* What it takes when the machine does nothing else: one in twenty is faster. */
static uint64_t best(uint64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 20];
}

static void __attribute__((noreturn)) give_up(const char *what, int err)
{
	printf("not ok - %s: %s\n", what, strerror(-err));
	exit(1);
}

/* ---- loading ------------------------------------------------------------------------ */

/* One constant of @size bytes, which a transfer moves to the scratchpad. */
static void neff_constant(uint64_t size)
{
	uint64_t *k, x = 88172645463325252u;
	char text[1024];

	neff_start(&neff);
	snprintf(text, sizeof(text),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\":"
		 " {\"q\": {\"type\": \"data\"}}, \"var\": {"
		 " \"k\": {\"type\": \"file\", \"var_id\": 0, \"size\": %" PRIu64
		 ", \"file_name\": \"k.bin\"},"
		 " \"t\": {\"type\": \"tmp-buf\", \"var_id\": 1, \"size\": 65536}}}", size);
	neff_text(&neff, "sg00/def.json", text);
	neff_text(&neff, "sg00/SP.json",
		  "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": ["
		  "{\"from\": \"k\", \"from_sizes\": [1024], \"from_steps\": [1],"
		  " \"to\": \"t\", \"to_sizes\": [1024], \"to_steps\": [1]}]}]}");
	k = malloc(size);
	if (!k)
		give_up("memory", -ENOMEM);
	/* As little to compress as in weights. */
	for (uint64_t i = 0; i < size / 8; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		k[i] = x;
	}
	neff_add(&neff, "sg00/k.bin", k, size);
	free(k);
	neff_end(&neff, "constant");
}

/* The same file, compressed. */
static void neff_compress(void)
{
	z_stream z = { .next_in = neff.data + 1024, .avail_in = (uInt)(neff.size - 1024) };
	uLong room;
	uint8_t *out;

	if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		give_up("zlib", -ENOMEM);
	room = deflateBound(&z, z.avail_in);
	out = malloc(room);
	z.next_out = out;
	z.avail_out = (uInt)room;
	if (!out || deflate(&z, Z_FINISH) != Z_STREAM_END)
		give_up("zlib", -ENOMEM);
	memcpy(neff.data + 1024, out, z.total_out);
	neff.size = 1024 + z.total_out;
	*(uint64_t *)(neff.data + 16) = htole64(z.total_out);
	deflateEnd(&z);
	free(out);
}

/*
 * What the machine needs for as many bytes: to memory that was written before, and to
 * memory that nobody has used, as that of a new model.
 */
static void measure_memcpy(uint64_t bytes, uint64_t *warm, uint64_t *fresh)
{
	uint8_t *to;
	uint64_t t;

	to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (to == MAP_FAILED)
		give_up("memory", -ENOMEM);
	t = now();
	memcpy(to, neff.data, bytes);
	t = now() - t;
	*fresh = t < *fresh ? t : *fresh;
	t = now();
	memcpy(to, neff.data, bytes);
	t = now() - t;
	*warm = t < *warm ? t : *warm;
	munmap(to, bytes);
}

/* The fastest of @times loads: what is left is what it needs. */
static void load(const char *what, uint64_t bytes, unsigned int times)
{
	struct neuron_load_stats s = { .size = sizeof(s) }, least = { .total_ns = 0 };
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts o = { .size = sizeof(o), .stats = &s, .error = &error };
	uint64_t warm = UINT64_MAX, fresh = UINT64_MAX, copy = UINT64_MAX;
	struct neuron_model *m;

	for (unsigned int i = 0; i < times; i++) {
		int ret = neuron_model_load(core, neff.data, neff.size, &o, &m);

		if (ret)
			give_up(error.text, ret);
		neuron_model_unload(m);
		if (!i || s.total_ns < least.total_ns)
			least = s;
		copy = s.copy_ns < copy ? s.copy_ns : copy;
		measure_memcpy(bytes, &warm, &fresh);
	}
	printf("{\"work\":\"load\",\"what\":\"%s\",\"bytes\":%" PRIu64 ",\"file\":%zu,\"total\":%" PRIu64
	       ",\"archive\":%" PRIu64 ",\"json\":%" PRIu64 ",\"plan\":%" PRIu64 ",\"memory\":%" PRIu64
	       ",\"copy\":%" PRIu64 ",\"rings\":%" PRIu64 ",\"copy_least\":%" PRIu64
	       ",\"memcpy\":%" PRIu64 ",\"memcpy_fresh\":%" PRIu64 "}\n", what, least.copy_bytes, neff.size, least.total_ns,
	       least.archive_ns, least.json_ns, least.plan_ns, least.memory_ns, least.copy_ns,
	       least.rings_ns, copy, warm, fresh);
	fflush(stdout);
}

static void work_load(void)
{
	static const uint64_t sizes[] = {
		KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB, 128 * MIB, 256 * MIB,
	};
	char what[32];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t size = sizes[i];

		if (quick && size > 16 * MIB)
			break;
		if (size < MIB)
			snprintf(what, sizeof(what), "%" PRIu64 " KiB", size / KIB);
		else
			snprintf(what, sizeof(what), "%" PRIu64 " MiB", size / MIB);
		neff_constant(size);
		load(what, size, quick ? 2 : size < 16 * MIB ? 50 : 15);
	}
	neff_constant(MIB);
	neff_compress();
	load("1 MiB, gzip", MIB, quick ? 2 : 20);
	if (!quick) {
		neff_constant(64 * MIB);
		neff_compress();
		load("64 MiB, gzip", 64 * MIB, 3);
	}
}

/* ---- descriptors -------------------------------------------------------------------- */

/* Rows of 64 bytes that lie 256 apart: a descriptor on each side for each row. */
static void neff_rows(unsigned int rows)
{
	char text[2048];

	neff_start(&neff);
	snprintf(text, sizeof(text),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\":"
		 " {\"q\": {\"type\": \"data\"}}, \"var\": {"
		 " \"a\": {\"type\": \"tmp-buf\", \"var_id\": 0, \"size\": %u},"
		 " \"b\": {\"type\": \"tmp-buf\", \"var_id\": 1, \"size\": %u}}}", rows * 256, rows * 256);
	neff_text(&neff, "sg00/def.json", text);
	snprintf(text, sizeof(text),
		 "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": ["
		 "{\"from\": \"a\", \"from_sizes\": [64, %u], \"from_steps\": [1, 256],"
		 " \"to\": \"b\", \"to_sizes\": [64, %u], \"to_steps\": [1, 256]}]}]}", rows, rows);
	neff_text(&neff, "sg00/SP.json", text);
	neff_end(&neff, "rows");
}

static void work_descriptors(void)
{
	struct neuron_load_stats s = { .size = sizeof(s) };
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts o = { .size = sizeof(o), .stats = &s, .error = &error };
	uint64_t least = UINT64_MAX;
	struct neuron_model *m;
	unsigned int rows = quick ? 10000 : 500000;

	neff_rows(rows);
	for (unsigned int i = 0; i < (quick ? 2 : 9); i++) {
		int ret = neuron_model_load(core, neff.data, neff.size, &o, &m);

		if (ret)
			give_up(error.text, ret);
		neuron_model_unload(m);
		least = s.rings_ns < least ? s.rings_ns : least;
	}
	printf("{\"work\":\"descriptors\",\"number\":%" PRIu64 ",\"ns\":%" PRIu64 "}\n", s.descriptors,
	       least);
}

/* ---- executions --------------------------------------------------------------------- */

static void wait_for(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t n;

	if (poll(&p, 1, 60000) != 1 || read(fd, &n, sizeof(n)) != sizeof(n))
		give_up("event", -ETIMEDOUT);
}

/*
 * The least that a run can be: a doorbell, and the process woken by the eventfd of a
 * notification queue. A descriptor that leads nowhere is reported at once; it is done
 * on a core without models.
 */
struct trip {
	struct neuron_queue_setup setup;
	struct neuron_descriptor tx, rx;
	struct neuron_nq *nq;
	int eventfd;
};

static void trip_open(struct trip *p)
{
	struct neuron_nq_opts nq_opts = { .size = sizeof(nq_opts), .nc = 1, .type = NEURON_NQ_ERROR };
	struct neuron_mem_opts mo = { .size = sizeof(mo), .flags = NEURON_MEM_F_HOST, .nc = 1 };
	int ret;

	p->setup = (struct neuron_queue_setup){
		.engine = neuron_device_geometry(device)->engines_per_core,
		.queue = 3,
		.tx_slots = 32,
		.rx_slots = 32,
	};
	neuron_descriptor_copy(&p->tx, &p->rx, 4096, 4096, 64, false);
	p->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = neuron_mem_alloc(device, 4096, &mo, &p->setup.tx);
	if (!ret)
		ret = neuron_mem_alloc(device, 4096, &mo, &p->setup.rx);
	if (!ret)
		ret = neuron_nq_open(device, &nq_opts, &p->nq);
	if (!ret)
		ret = neuron_nq_set_eventfd(p->nq, p->eventfd);
	if (ret)
		give_up("notification queue", ret);
}

static void trip_close(struct trip *p)
{
	neuron_nq_close(p->nq);
	neuron_queue_release(device, p->setup.engine, p->setup.queue);
	neuron_mem_free(p->setup.tx);
	neuron_mem_free(p->setup.rx);
	close(p->eventfd);
}

static uint64_t trip_time(struct trip *p)
{
	struct neuron_notice notice;
	uint64_t t;
	int ret;

	ret = neuron_queue_init(device, &p->setup, 1);
	if (!ret)
		ret = neuron_queue_write(device, p->setup.tx, NEURON_RING_TX, 0, &p->tx, 1);
	if (!ret)
		ret = neuron_queue_write(device, p->setup.rx, NEURON_RING_RX, 0, &p->rx, 1);
	t = now();
	if (!ret)
		ret = neuron_queue_start(device, p->setup.engine, p->setup.queue, 1, 1);
	if (!ret)
		wait_for(p->eventfd);
	t = now() - t;
	if (!ret)
		ret = neuron_nq_read(p->nq, &notice);
	if (ret)
		give_up("notification round trip", ret);
	return t;
}

static void neff_empty(void)
{
	struct neuron_isa_inst code[2] = { inst(NEURON_ISA_OP_PROLOGUE), inst(NEURON_ISA_OP_NOTIFY) };

	code[1].u.notify.id = htole32(1);
	neff_program(&neff, code, sizeof(code));
}

static void work_execute(void)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts o = { .size = sizeof(o), .error = &error };
	unsigned int n = quick ? 50 : 5000;
	static uint64_t run[5000], trip[5000];
	struct neuron_model *m;
	struct trip p;
	int ret;

	neff_empty();
	ret = neuron_model_load(core, neff.data, neff.size, &o, &m);
	if (ret)
		give_up(error.text, ret);
	trip_open(&p);
	for (unsigned int i = 0; i < n; i++) {
		trip[i] = trip_time(&p);
		run[i] = now();
		ret = neuron_model_run(m, NULL, 0, 60000, NULL);
		run[i] = now() - run[i];
		if (ret)
			give_up("run", ret);
	}
	trip_close(&p);
	neuron_model_unload(m);
	printf("{\"work\":\"execute\",\"round_trip\":%" PRIu64 ",\"empty\":%" PRIu64 "}\n",
	       best(trip, n), best(run, n));
}

/* ---- requests ----------------------------------------------------------------------- */

/* Two nodes on two cores, one behind the other. */
static void neff_pair(unsigned int bytes)
{
	char text[1024];

	memset(&neff, 0, 65536);
	neff.size = 1024;
	neff_node(&neff, 0, "x", "b", bytes);
	neff_node(&neff, 1, "b", "y", bytes);
	snprintf(text, sizeof(text),
		 "{\"format\": \"neuron-pack-1\", \"edges\": ["
		 "{\"name\": \"x\", \"bytes\": %u, \"use\": \"input\"}, {\"name\": \"b\", \"bytes\": %u},"
		 "{\"name\": \"y\", \"bytes\": %u, \"use\": \"output\"}], \"nodes\": ["
		 "{\"name\": \"first\", \"kelf\": 0, \"inputs\": [\"x\"], \"outputs\": [\"b\"]},"
		 "{\"name\": \"last\", \"kelf\": 1, \"inputs\": [\"b\"], \"outputs\": [\"y\"]}]}",
		 bytes, bytes, bytes);
	neff_text(&neff, "neff.json", text);
	neff_end(&neff, "pair");
}

/* @n requests with at most @depth under way, in requests per second. */
static double requests(struct neuron_pool *pool, uint32_t depth, unsigned int n,
		       const struct neuron_io *io, size_t nr_io)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts o = { .size = sizeof(o), .depth = depth, .error = &error };
	uint64_t cookie[16], t = 0, end = 0;
	struct neuron_net *net;
	unsigned int sent = 0, got = 0, warm = 2 * depth;
	int ret = neuron_net_load(pool, neff.data, neff.size, &o, &net);

	if (ret)
		give_up(error.text, ret);
	/* The first ones bind tensors and touch memory. */
	while (got < n + warm) {
		while (sent < n + warm && sent - got < depth) {
			ret = neuron_net_submit(net, io, nr_io, &cookie[sent % 16]);
			if (ret)
				give_up("submit", ret);
			sent++;
		}
		ret = neuron_net_wait(net, cookie[got % 16], 60000, NULL);
		if (ret)
			give_up("request", ret);
		if (++got == warm)
			t = now();
	}
	end = now();
	neuron_net_unload(net);
	return n * 1e9 / (double)(end - t);
}

#define NR_DEPTHS 8

static void work_depth(void)
{
	static const uint32_t depths[NR_DEPTHS] = { 1, 2, 3, 4, 6, 8, 12, 16 };
	static double empty[NR_DEPTHS], pair[NR_DEPTHS];
	const unsigned int bytes = 256 << 10, n = quick ? 20 : 300;
	struct neuron_mem_opts mo = { .size = sizeof(mo), .category = NEURON_MEM_TENSORS };
	struct neuron_core *cores[2] = { core, NULL };
	struct neuron_mem *x, *y;
	struct neuron_pool *pool;
	int ret;

	ret = neuron_core_open(device, 1, NULL, &cores[1]);
	if (!ret)
		ret = neuron_pool_open(cores, 2, &pool);
	if (!ret)
		ret = neuron_mem_alloc(device, bytes, &mo, &x);
	if (!ret)
		ret = neuron_mem_alloc(device, bytes, &mo, &y);
	if (ret)
		give_up("two cores", ret);
	/* In turns, so that what else the machine does meets all of them. */
	for (unsigned int round = 0; round < (quick ? 1 : 9); round++)
		for (size_t i = 0; i < NR_DEPTHS; i++) {
			const struct neuron_io io[] = { { "x", x, 0, bytes }, { "y", y, 0, bytes } };
			double rate;

			neff_empty();
			rate = requests(pool, depths[i], n, NULL, 0);
			empty[i] = rate > empty[i] ? rate : empty[i];
			neff_pair(bytes);
			rate = requests(pool, depths[i], n, io, 2);
			pair[i] = rate > pair[i] ? rate : pair[i];
		}
	for (size_t i = 0; i < NR_DEPTHS; i++)
		printf("{\"work\":\"depth\",\"depth\":%u,\"empty\":%.1f,\"pair\":%.1f}\n", depths[i],
		       empty[i], pair[i]);
	neuron_mem_free(x);
	neuron_mem_free(y);
	neuron_pool_close(pool);
	neuron_core_close(cores[1]);
}

/* ---- idle state in host memory ------------------------------------------------------- */

#define DECODER	"/usr/share/neuron/models/decoder.neff"
#define PIECE	(512 * MIB)
/* What is not zero of a piece: the host, an emulated machine, has no 22 GB twice. */
#define WRITTEN	(4 * MIB)
#define PIECES	44
#define MAX_IO	64

static void must(const char *what, int ret)
{
	if (ret)
		give_up(what, ret);
}

static uint64_t held(void)
{
	struct neuron_hbm_stats s = { .size = sizeof(s) };
	uint64_t sum = 0;

	for (uint32_t i = 0; !neuron_hbm_get_stats(device, i, &s); i++)
		sum += s.own_process;
	return sum;
}

static void fill(uint32_t *buf, uint32_t seed)
{
	for (size_t i = 0; i < WRITTEN / sizeof(*buf); i++)
		buf[i] = (uint32_t)i * 2654435761u + seed;
}

/* In the middle of a piece. */
static void work_idle(void)
{
	static struct neuron_mem *mem[PIECES];
	static uint32_t want[WRITTEN / 4], got[WRITTEN / 4];
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS,
				     .flags = NEURON_MEM_F_MOVABLE };
	uint32_t n = quick ? 4 : PIECES;
	uint64_t before = held(), full, left, out, back;

	for (uint32_t i = 0; i < n; i++) {
		o.nc = i & 1;
		o.hbm = i & 1;
		fill(want, i);
		must("idle state", neuron_mem_alloc(device, PIECE, &o, &mem[i]));
		must("write", neuron_mem_write(mem[i], PIECE / 2, want, WRITTEN));
	}
	full = held() - before;
	out = now();
	for (uint32_t i = 0; i < n; i++)
		must("offload", neuron_mem_offload(mem[i]));
	out = now() - out;
	left = held() - before;
	back = now();
	for (uint32_t i = 0; i < n; i++)
		must("onload", neuron_mem_onload(mem[i], NULL));
	back = now() - back;
	for (uint32_t i = 0; i < n; i++) {
		fill(want, i);
		must("read", neuron_mem_read(mem[i], PIECE / 2, got, WRITTEN));
		must("contents", memcmp(want, got, WRITTEN) ? -EIO : 0);
		neuron_mem_free(mem[i]);
	}
	printf("{\"work\":\"idle\",\"bytes\":%" PRIu64 ",\"written\":%" PRIu64 ",\"left\":%" PRIu64
	       ",\"out\":%" PRIu64 ",\"back\":%" PRIu64 "}\n",
	       full, (uint64_t)n * WRITTEN, left, out, back);
}

struct half {
	struct neuron_model *model;
	struct neuron_mem *mem;
	struct neuron_io io[MAX_IO];
	size_t nr_io;
};

static void half_load(struct half *h)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS };
	uint64_t bytes = 0;

	must(DECODER, neuron_model_load(core, neff.data, neff.size, NULL, &h->model));
	h->nr_io = neuron_model_tensor_count(h->model);
	must("tensors", h->nr_io > MAX_IO ? -E2BIG : 0);
	for (size_t i = 0; i < h->nr_io; i++) {
		struct neuron_tensor_info t = { .size = sizeof(t) };

		must("tensor", neuron_model_tensor_info(h->model, i, &t));
		h->io[i] = (struct neuron_io){ t.name, NULL, bytes, t.bytes };
		bytes += (t.bytes + 4095) & ~4095ull;
	}
	must("tensors", neuron_mem_alloc(device, bytes, &o, &h->mem));
	for (size_t i = 0; i < h->nr_io; i++)
		h->io[i].mem = h->mem;
}

static void half_run(struct half *h)
{
	must("run", neuron_model_run(h->model, h->io, h->nr_io, 60000, NULL));
}

/* A step: both halves run, one after the other.  @offload: only the one that runs is there. */
static uint64_t step(struct half h[2], bool offload)
{
	uint64_t t = now();

	for (int i = 0; i < 2; i++) {
		if (offload)
			must("prefetch", neuron_model_prefetch(h[!i].model));
		half_run(&h[i]);
		if (offload)
			must("offload", neuron_model_offload(h[i].model));
	}
	return now() - t;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void work_halves(void)
{
	FILE *f = fopen(DECODER, "rb");
	uint64_t there = UINT64_MAX, away = UINT64_MAX, both, one;
	struct half h[2];

	must(DECODER, f ? 0 : -errno);
	neff.size = fread(neff.data, 1, sizeof(neff.data), f);
	fclose(f);
	for (int i = 0; i < 2; i++)
		half_load(&h[i]);
	both = held();
	must("offload", neuron_model_offload(h[1].model));
	one = held();
	must("onload", neuron_model_onload(h[1].model, NULL));
	/* In turns, so that what else the machine does meets both. */
	for (int round = 0; round < (quick ? 1 : 9); round++) {
		for (int i = 0; i < (quick ? 2 : 10); i++)
			there = least(there, step(h, false));
		must("offload", neuron_model_offload(h[1].model));
		for (int i = 0; i < (quick ? 2 : 10); i++)
			away = least(away, step(h, true));
		must("onload", neuron_model_onload(h[0].model, NULL));
		must("onload", neuron_model_onload(h[1].model, NULL));
	}
	printf("{\"work\":\"halves\",\"both\":%" PRIu64 ",\"one\":%" PRIu64 ",\"there\":%" PRIu64
	       ",\"away\":%" PRIu64 "}\n", both, one, there, away);
	for (int i = 0; i < 2; i++) {
		neuron_model_unload(h[i].model);
		neuron_mem_free(h[i].mem);
	}
}

int main(int argc, char **argv)
{
	int ret;

	if (argc < 2)
		return 2;
	quick = argc > 2 && !strcmp(argv[2], "quick");
	ret = neuron_device_open(0, &device);
	if (!ret)
		ret = neuron_core_open(device, 0, NULL, &core);
	if (ret)
		give_up("/dev/neuron0", ret);
	if (!strcmp(argv[1], "load")) {
		work_load();
		work_descriptors();
	} else if (!strcmp(argv[1], "offload")) {
		work_idle();
		work_halves();
	} else {
		work_execute();
		work_depth();
	}
	neuron_core_close(core);
	neuron_device_close(device);
	printf("ok - measured\n");
	return 0;
}

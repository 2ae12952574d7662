// SPDX-License-Identifier: GPL-2.0-only
/* Networks whose nodes are on two devices, with a node of the host in between. */
#define _GNU_SOURCE
#include <neuron/neuron.h>

#include "nrt_guest.h"

/* More than is copied at a time, and no multiple of anything. */
#define BYTES ((3u << 20) + 12345u)
#define PIECE 65536u
#define REQUESTS 3

static struct neuron_device *device[2];
static struct neuron_core *core[4];		/* of both, in turns */
static struct neuron_pool *pool;
static struct neff neff;
static struct counters before, now;
static uint8_t data[BYTES], got[BYTES];

/* x -> core 0 -> b -> core 1 (other device) -> c -> host -> d -> core 2 -> e -> core 3 -> y */
static void neff_network(void)
{
	char text[2048];

	memset(&neff, 0, sizeof(neff));
	neff.size = 1024;
	neff_node(&neff, 0, "x", "b", BYTES);
	neff_node(&neff, 1, "b", "c", BYTES);
	neff_node(&neff, 2, "d", "e", BYTES);
	neff_node(&neff, 3, "e", "y", BYTES);
	snprintf(text, sizeof(text),
		 "{\"format\": \"neuron-pack-1\", \"edges\": ["
		 "{\"name\": \"x\", \"bytes\": %u, \"use\": \"input\"},"
		 "{\"name\": \"b\", \"bytes\": %u}, {\"name\": \"c\", \"bytes\": %u},"
		 "{\"name\": \"d\", \"bytes\": %u}, {\"name\": \"e\", \"bytes\": %u},"
		 "{\"name\": \"y\", \"bytes\": %u, \"use\": \"output\"}], \"nodes\": ["
		 "{\"name\": \"n0\", \"kelf\": 0, \"inputs\": [\"x\"], \"outputs\": [\"b\"]},"
		 "{\"name\": \"n1\", \"kelf\": 1, \"inputs\": [\"b\"], \"outputs\": [\"c\"]},"
		 "{\"name\": \"op\", \"op\": \"invert\", \"inputs\": [\"c\"], \"outputs\": [\"d\"]},"
		 "{\"name\": \"n2\", \"kelf\": 2, \"inputs\": [\"d\"], \"outputs\": [\"e\"]},"
		 "{\"name\": \"n3\", \"kelf\": 3, \"inputs\": [\"e\"], \"outputs\": [\"y\"]}]}",
		 BYTES, BYTES, BYTES, BYTES, BYTES, BYTES);
	neff_text(&neff, "neff.json", text);
	neff_end(&neff, "network");
}

static int invert(void *context, const struct neuron_host_tensor *in, size_t nr_in,
		  const struct neuron_host_tensor *out, size_t nr_out)
{
	const uint8_t *from = in[0].data;
	uint8_t *to = out[0].data;

	(void)context;
	if (nr_in != 1 || nr_out != 1)
		return -EPROTO;
	for (size_t i = 0; i < BYTES; i++)
		to[i] = ~from[i];
	return 0;
}

static const struct neuron_host_op op = { "invert", invert, NULL };

static int load(struct neuron_net **net, struct neuron_error *error)
{
	struct neuron_net_opts o = {
		.size = sizeof(o), .depth = REQUESTS, .ops = &op, .nr_ops = 1, .error = error,
	};

	return neuron_net_load(pool, neff.data, neff.size, &o, net);
}

static struct neuron_mem *tensor(unsigned int on)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS };
	struct neuron_mem *mem = NULL;

	if (neuron_mem_alloc(device[on], BYTES + PIECE, &o, &mem)) {
		printf("not ok - tensor\n");
		exit(1);
	}
	return mem;
}

struct request {
	struct neuron_mem *x, *y;
	struct neuron_io io[2];
	uint64_t cookie;
};

static void request_init(struct request *r, unsigned int x, unsigned int y, uint8_t seed)
{
	r->x = tensor(x);
	r->y = tensor(y);
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (uint8_t)((i * 131 + i / 4096) ^ seed);
	neuron_mem_write(r->x, 24, data, BYTES);
	r->io[0] = (struct neuron_io){ "x", r->x, 24, BYTES };
	r->io[1] = (struct neuron_io){ "y", r->y, 4096, BYTES };
}

static bool request_right(const struct request *r, uint8_t seed)
{
	if (neuron_mem_read(r->y, 4096, got, BYTES))
		return false;
	for (size_t i = 0; i < BYTES; i++)
		if (got[i] != (uint8_t)~((i * 131 + i / 4096) ^ seed)) {
			printf("# byte %zu\n", i);
			return false;
		}
	return true;
}

static void request_free(struct request *r)
{
	neuron_mem_free(r->x);
	neuron_mem_free(r->y);
}

static void test_requests(void)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct request r[REQUESTS];
	struct neuron_net *net;
	bool right = true;

	CHECK(!load(&net, &error), "load: %s", error.text);
	for (unsigned int where = 0; where < 4; where++) {
		struct neuron_net_result result = { .size = sizeof(result) };

		request_init(&r[0], where & 1, where >> 1, (uint8_t)where);
		CHECK(!neuron_net_infer(net, r[0].io, 2, &result) && request_right(&r[0], (uint8_t)where),
		      "input on device %u, output on device %u: %s", where & 1, where >> 1,
		      result.errors[0]);
		request_free(&r[0]);
	}
	for (uint8_t i = 0; i < REQUESTS; i++) {
		request_init(&r[i], i & 1, !(i & 1), (uint8_t)(i * 50));
		right = right && !neuron_net_submit(net, r[i].io, 2, &r[i].cookie);
	}
	for (uint8_t i = 0; i < REQUESTS; i++) {
		right = right && !neuron_net_wait(net, r[i].cookie, 120000, NULL) &&
			request_right(&r[i], (uint8_t)(i * 50));
		request_free(&r[i]);
	}
	CHECK(right, "several at once");
	neuron_net_unload(net);
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "all is given back on both devices");
}

static void test_bad(void)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_device *again;
	struct neuron_net *net;
	struct request r;
	uint64_t used;

	/* The second device has no room for copies. */
	CHECK(!neuron_limit_get(device[1], NEURON_LIMIT_PROCESS, 0, NULL, &used) &&
	      !neuron_limit_set(device[1], NEURON_LIMIT_PROCESS, 0, used + BYTES),
	      "a limit on device 1");
	CHECK(load(&net, &error) == -ENOMEM && error.kind == NEURON_ERROR_MEMORY &&
	      error.memory.reason == NEURON_MEM_REASON_CAPPED, "load: ENOMEM: %s", error.text);
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "and nothing stays on either");
	CHECK(!neuron_limit_set(device[1], NEURON_LIMIT_PROCESS, 0, NEURON_LIMIT_NONE), "no limit");

	/* Another handle is another device, and not one of the group. */
	CHECK(!load(&net, &error) && !neuron_device_open(1, &again), "load, and open once more");
	request_init(&r, 0, 1, 1);
	neuron_mem_free(r.io[0].mem);
	r.io[0].mem = NULL;
	CHECK(!neuron_mem_alloc(again, BYTES + PIECE, NULL, &r.x), "memory of it");
	r.io[0].mem = r.x;
	CHECK(neuron_net_infer(net, r.io, 2, NULL) == -EINVAL, "is refused");
	request_free(&r);
	neuron_device_close(again);

	/* An output that is too short on the other device. */
	request_init(&r, 0, 0, 2);
	r.io[1].offset = PIECE + 1;
	CHECK(neuron_net_infer(net, r.io, 2, NULL) == -EINVAL, "so is one over the end");
	r.io[1].offset = 4096;
	CHECK(!neuron_net_infer(net, r.io, 2, NULL) && request_right(&r, 2), "the next is well");
	request_free(&r);
	neuron_net_unload(net);
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "all is given back");
}

int main(void)
{
	int ret;

	CHECK(!system("rmmod neuron_emu && modprobe neuron_emu arch=trn1 nr_devices=2"), "two devices");
	ret = neuron_device_open(0, &device[0]);
	if (!ret)
		ret = neuron_device_open(1, &device[1]);
	for (uint32_t i = 0; i < 4 && !ret; i++)
		ret = neuron_core_open(device[i % 2], i / 2, NULL, &core[i]);
	if (!ret)
		ret = neuron_pool_open(core, 4, &pool);
	CHECK(!ret, "four cores");
	if (ret)
		return 1;
	neff_network();
	counters_take(&before);
	test_requests();
	test_bad();
	neuron_pool_close(pool);
	for (uint32_t i = 0; i < 4; i++)
		neuron_core_close(core[i]);
	neuron_device_close(device[0]);
	neuron_device_close(device[1]);
	CHECK(!system("rmmod neuron_emu && modprobe neuron_emu"), "load for the tests that follow");
	return failed != 0;
}

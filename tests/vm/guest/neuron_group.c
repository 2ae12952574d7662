// SPDX-License-Identifier: GPL-2.0-only
/*
 * Networks on core groups of the software device: nodes on cores and on the host, the
 * same network on several groups, swapping, a queue of fixed depth, and errors.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <neuron/neuron.h>

#include "neuron_ioctl.h"
#include "neuron_native.h"
#include "nrt_guest.h"

#define BYTES 65536
#define CORES 8

static struct neuron_device *device;
static struct neuron_core *cores[CORES];
static struct neuron_pool *pool;
static struct neff three, simple, network;

/* ---- NEFFs ------------------------------------------------------------------------- */

/* Core, host, core; or, with @last, core, host, core, core. */
static void neff_network(struct neff *n, bool last)
{
	char text[2048];

	memset(n, 0, sizeof(*n));
	n->size = 1024;
	snprintf(text, sizeof(text),
		 "{\"format\": \"neuron-pack-1\", \"edges\": ["
		 "{\"name\": \"x\", \"bytes\": %u, \"use\": \"input\"}, {\"name\": \"b\", \"bytes\": %u},"
		 "{\"name\": \"c\", \"bytes\": %u}, %s{\"name\": \"y\", \"bytes\": %u, \"use\": \"output\"}],"
		 " \"nodes\": ["
		 "{\"name\": \"first\", \"kelf\": 0, \"inputs\": [\"x\"], \"outputs\": [\"b\"]},"
		 "{\"name\": \"middle\", \"op\": \"mix\", \"inputs\": [\"b\"], \"outputs\": [\"c\"]},"
		 "{\"name\": \"next\", \"kelf\": 1, \"inputs\": [\"c\"], \"outputs\": [\"%s\"]}%s]}",
		 BYTES, BYTES, BYTES, last ? "{\"name\": \"d\", \"bytes\": 65536}, " : "", BYTES,
		 last ? "d" : "y", last ? ", {\"name\": \"last\", \"kelf\": 2,"
		 " \"inputs\": [\"d\"], \"outputs\": [\"y\"]}" : "");
	neff_text(n, "neff.json", text);
	neff_node(n, 0, "x", "b", BYTES);
	neff_node(n, 1, "c", last ? "d" : "y", BYTES);
	if (last)
		neff_node(n, 2, "d", "y", BYTES);
	neff_end(n, "network");
}

/* One node, no host: y is x. */
static void neff_copy(struct neff *n)
{
	memset(n, 0, sizeof(*n));
	n->size = 1024;
	neff_node(n, 0, "x", "y", BYTES);
	neff_end(n, "copy");
}

/* ---- requests ---------------------------------------------------------------------- */

static int op_result;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static int mix(void *context, const struct neuron_host_tensor *in, size_t nr_in,
	       const struct neuron_host_tensor *out, size_t nr_out)
{
	const uint8_t *from = in[0].data;
	uint8_t *to = out[0].data;

	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	if (context != &op_result || nr_in != 1 || nr_out != 1 || in[0].bytes != BYTES ||
	    out[0].bytes != BYTES || strcmp(in[0].name, "b") || strcmp(out[0].name, "c"))
		return -EPROTO;
	for (size_t i = 0; i < BYTES; i++)
		to[i] = (uint8_t)(from[i] * 3 + i);
	return op_result;
}

static const struct neuron_host_op ops[] = { { "mix", mix, &op_result } };

struct request {
	struct neuron_mem *x, *y;
	struct neuron_io io[2];
	uint64_t cookie;
	uint8_t in[BYTES], out[BYTES];
};

static bool request_init(struct request *r, unsigned int seed)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS };

	for (size_t i = 0; i < BYTES; i++)
		r->in[i] = (uint8_t)(rand_r(&seed) >> 8);
	if (neuron_mem_alloc(device, BYTES, &o, &r->x) || neuron_mem_alloc(device, BYTES, &o, &r->y) ||
	    neuron_mem_write(r->x, 0, r->in, BYTES))
		return false;
	r->io[0] = (struct neuron_io){ "x", r->x, 0, BYTES };
	r->io[1] = (struct neuron_io){ "y", r->y, 0, BYTES };
	return true;
}

/* Right, and not a second time by chance. */
static bool request_right(struct request *r, bool mixed)
{
	if (neuron_mem_read(r->y, 0, r->out, BYTES) || neuron_mem_set(r->y, 0, 0, BYTES))
		return false;
	for (size_t i = 0; i < BYTES; i++)
		if (r->out[i] != (mixed ? (uint8_t)(r->in[i] * 3 + i) : r->in[i])) {
			printf("# byte %zu is %02x\n", i, r->out[i]);
			return false;
		}
	return true;
}

static void request_free(struct request *r)
{
	neuron_mem_free(r->x);
	neuron_mem_free(r->y);
}

static struct neuron_net *load(const struct neff *n, struct neuron_group *group, uint32_t depth)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts o = {
		.size = sizeof(o), .group = group, .depth = depth, .ops = ops, .nr_ops = 1,
		.error = &error, .timeout_ms = 60000,
	};
	struct neuron_net *net = NULL;

	if (neuron_net_load(pool, n->data, n->size, &o, &net)) {
		printf("not ok - load: %s\n", error.text);
		exit(1);
	}
	return net;
}

static struct request r[8];

/* ---- tests ------------------------------------------------------------------------- */

/* Nodes on three cores and the host: as many requests as fit, twice over. */
static void test_pipeline(void)
{
	struct neuron_net *net = load(&network, NULL, 4);
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct neuron_tensor_info info = { .size = sizeof(info) };
	uint64_t n = 0, cookie = 77, some;
	bool ok = true;

	CHECK(neuron_net_mode(net) == NEURON_NET_NORMAL && neuron_pool_free(pool) == CORES - 3,
	      "a core for each of three nodes");
	CHECK(neuron_net_tensor_count(net) == 2 && !neuron_net_tensor_info(net, 1, &info) &&
	      !strcmp(info.name, "y") && info.bytes == BYTES, "tensors");
	CHECK(!neuron_net_set_eventfd(net, fd), "an eventfd");
	for (int round = 0; round < 2; round++) {
		pthread_mutex_lock(&gate);
		for (int i = 0; i < 4; i++)
			ok = ok && !neuron_net_submit(net, r[i].io, 2, &r[i].cookie);
		CHECK(ok, "four requests are queued");
		CHECK(neuron_net_submit(net, r[4].io, 2, &cookie) == -EAGAIN && cookie == 77,
		      "a fifth has to wait");
		CHECK(neuron_net_wait(net, r[0].cookie, 50, NULL) == -ETIMEDOUT, "none is done");
		pthread_mutex_unlock(&gate);
		for (n = 0; ok && n < 4; n += some)
			ok = poll(&p, 1, 120000) == 1 && read(fd, &some, sizeof(some)) == sizeof(some);
		CHECK(ok && n == 4, "four signals");
		CHECK(neuron_net_submit(net, r[4].io, 2, &cookie) == -EAGAIN, "not waited for: still full");
		for (int i = 3; i >= 0; i--)
			ok = ok && !neuron_net_wait(net, r[i].cookie, 0, NULL) &&
			     request_right(&r[i], true);
		CHECK(ok, "each has its own answer");
		CHECK(neuron_net_wait(net, r[0].cookie, 0, NULL) == -ENOENT, "once");
	}
	for (int i = 0; i < 20; i++)
		ok = ok && !neuron_net_infer(net, r[i % 8].io, 2, NULL) && request_right(&r[i % 8], true);
	CHECK(ok, "and 20 more, one at a time");
	close(fd);
	neuron_net_unload(net);
	CHECK(neuron_pool_free(pool) == CORES, "the cores are free again");
}

/* One core for all nodes. */
static void test_shared(void)
{
	struct neuron_group *group;
	struct neuron_net *net;
	bool ok = true;

	CHECK(!neuron_group_create(pool, 1, &group), "a group of one");
	net = load(&network, group, 3);
	CHECK(neuron_net_mode(net) == NEURON_NET_SHARED && !neuron_net_start(net), "nodes share a core");
	for (int i = 0; i < 3; i++)
		ok = ok && !neuron_net_submit(net, r[i].io, 2, &r[i].cookie);
	for (int i = 0; i < 3; i++)
		ok = ok && !neuron_net_wait(net, r[i].cookie, -1, NULL) && request_right(&r[i], true);
	CHECK(ok, "three requests");
	neuron_net_unload(net);
	CHECK(!neuron_group_destroy(group), "destroy the group");
}

struct worker {
	pthread_t thread;
	struct neuron_net *net;
	struct request *r;
	bool ok;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	w->ok = true;
	for (int i = 0; i < 15 && w->ok; i++)
		w->ok = !neuron_net_infer(w->net, w->r->io, 2, NULL) && request_right(w->r, true);
	return NULL;
}

/* The same network on groups of their own, fed by a thread each. */
static void test_data_parallel(void)
{
	struct neuron_group *group[3];
	struct worker w[3] = { 0 };
	bool ok = true;

	for (int i = 0; i < 3; i++) {
		CHECK(!neuron_group_create(pool, 2, &group[i]), "group %d", i);
		w[i].net = load(&three, group[i], 2);
		w[i].r = &r[i];
		CHECK(!neuron_net_start(w[i].net), "the network runs on it");
	}
	for (int i = 0; i < 3; i++)
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	for (int i = 0; i < 3; i++) {
		pthread_join(w[i].thread, NULL);
		ok = ok && w[i].ok;
	}
	CHECK(ok, "45 requests by 3 threads on 3 groups");
	for (int i = 0; i < 3; i++) {
		neuron_net_unload(w[i].net);
		ok = ok && !neuron_group_destroy(group[i]);
	}
	CHECK(ok && neuron_pool_free(pool) == CORES, "all cores are back");
}

/* Two networks on a group take turns. */
static void test_swap(void)
{
	struct neuron_group *group;
	struct neuron_net *a, *b;
	bool ok = true;
	uint64_t cookie;

	CHECK(!neuron_group_create(pool, 2, &group), "a group of two");
	a = load(&three, group, 2);
	b = load(&simple, group, 2);
	CHECK(neuron_net_submit(a, r[0].io, 2, &cookie) == -ESHUTDOWN, "loaded is not running");
	for (int i = 0; i < 5; i++) {
		ok = ok && !neuron_net_start(a) && neuron_net_start(b) == -EBUSY &&
		     /* Stopping finishes what is queued. */
		     !neuron_net_submit(a, r[0].io, 2, &cookie) && !neuron_net_stop(a) &&
		     !neuron_net_wait(a, cookie, 0, NULL) && request_right(&r[0], true) &&
		     !neuron_net_start(b) && !neuron_net_infer(b, r[1].io, 2, NULL) &&
		     request_right(&r[1], false) && !neuron_net_stop(b);
	}
	CHECK(ok, "two networks take turns, five times");
	CHECK(neuron_group_destroy(group) == -EBUSY, "the group is in use");
	neuron_net_unload(a);
	CHECK(!neuron_net_start(b) && !neuron_net_infer(b, r[1].io, 2, NULL) && request_right(&r[1], false),
	      "one is unloaded, one runs");
	neuron_net_unload(b);
	CHECK(!neuron_group_destroy(group), "destroy the group");
}

static void test_errors(void)
{
	struct neuron_net_result result = { .size = sizeof(result) };
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts o = { .size = sizeof(o), .error = &error };
	struct neuron_net *net = load(&three, NULL, 0), *none = NULL;
	struct neuron_mem_opts host = { .size = sizeof(host), .flags = NEURON_MEM_F_HOST,
					.category = NEURON_MEM_HOST_TENSORS };
	struct neuron_io io[2];
	struct neuron_mem *y;
	void *va;

	op_result = -ERANGE;
	CHECK(neuron_net_infer(net, r[0].io, 2, &result) == -ERANGE && result.nr_errors == 1 &&
	      strstr(result.errors[0], "node middle: operation mix: "), "an error of the host: %s",
	      result.errors[0]);
	op_result = 0;
	CHECK(!neuron_net_infer(net, r[0].io, 2, &result) && !result.nr_errors &&
	      request_right(&r[0], true), "the next request is right");
	memcpy(io, r[0].io, sizeof(io));
	io[1].bytes--;
	CHECK(neuron_net_infer(net, io, 2, NULL) == -EINVAL && neuron_net_infer(net, io, 1, NULL) == -EINVAL,
	      "too small an output, and none");
	/* Host memory that the device reaches, and the CPU looks into. */
	CHECK(!neuron_mem_alloc(device, BYTES, &host, &y) && !neuron_mem_map(y, &va), "host memory");
	io[1] = (struct neuron_io){ "y", y, 0, BYTES };
	CHECK(!neuron_net_infer(net, io, 2, NULL) && !neuron_mem_read(y, 0, r[0].out, BYTES) &&
	      !memcmp(va, r[0].out, BYTES) && r[0].out[1] == (uint8_t)(r[0].in[1] * 3 + 1),
	      "output without a copy");
	neuron_mem_free(y);
	neuron_net_unload(net);
	CHECK(neuron_net_load(pool, three.data, three.size, &o, &none) == -ENOENT &&
	      strstr(error.text, "no operation mix was registered"), "an operation nobody has");
	CHECK(neuron_net_load(pool, three.data, three.size / 2, &o, &none) == -EINVAL, "half a file");
	o.size = sizeof(o.size) - 1;
	CHECK(neuron_net_load(pool, three.data, three.size, &o, &none) == -EINVAL, "no options");
	CHECK(!none && neuron_pool_free(pool) == CORES, "nothing is handed out");
}

/* Cores of another process are not to be had. */
static void test_other_process(void)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct neuron_device *own;
		struct neuron_core *core;
		struct neuron_net *net;

		_exit(neuron_net_load(pool, three.data, three.size, NULL, &net) != -EACCES ||
		      neuron_device_open(0, &own) || neuron_core_open(own, 3, NULL, &core) != -EBUSY);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status, "another process cannot use them");
}

/* What is left in a state buffer is gone when the next group has run something. */
static void test_isolated(void)
{
	uint32_t left = 0x5eb7e7, found = 1, other = 1;
	struct neuron_native_geometry geo = { .size = sizeof(geo) };
	struct neuron_ioctl_program_engine_nc64 p = { .buffer = &left, .size = sizeof(left) };
	struct neuron_ioctl_device_info info;
	struct neuron_ioctl_bar_rw rw = { .count = 1, .data = &found };
	int fd = open("/dev/neuron0", O_RDWR | O_CLOEXEC);
	struct neuron_net *net;
	__u64 address;

	neuron_pool_isolate(pool);
	neuron_net_unload(load(&simple, NULL, 1));
	CHECK(!ioctl(fd, NEURON_NATIVE_GET_GEOMETRY, &geo) &&
	      !ioctl(fd, NEURON_IOCTL_DEVICE_INFO, &info), "where the state buffer is");
	p.dst = geo.tpb_base[0] + geo.sbuf_size - sizeof(left);
	address = info.bar_address[0] + 0xd0000000 + geo.sbuf_size - sizeof(left);
	rw.address = &address;
	CHECK(!ioctl(fd, NEURON_IOCTL_PROGRAM_ENGINE_NC64, &p) &&
	      !ioctl(fd, NEURON_IOCTL_BAR_READ, &rw) && found == left, "something is left there");
	net = load(&simple, NULL, 1);
	CHECK(!neuron_net_infer(net, r[0].io, 2, NULL) && request_right(&r[0], false),
	      "the next network runs");
	rw.data = &other;
	CHECK(!ioctl(fd, NEURON_IOCTL_BAR_READ, &rw) && !other, "nothing is left (%#x)", other);
	neuron_net_unload(net);
	close(fd);
}

int main(void)
{
	static struct counters start, before, now;
	bool ok = true;

	counters_take(&start);
	neff_network(&three, false);
	neff_network(&network, true);
	neff_copy(&simple);
	CHECK(!neuron_device_open(0, &device), "device");
	for (uint32_t i = 0; i < CORES; i++)
		ok = ok && !neuron_core_open(device, i, NULL, &cores[i]);
	CHECK(ok && !neuron_pool_open(cores, CORES, &pool), "pool of all cores");
	for (unsigned int i = 0; i < 8; i++)
		ok = ok && request_init(&r[i], i);
	CHECK(ok, "tensors");
	if (failed)
		return 1;
	counters_take(&before);
	test_pipeline();
	test_shared();
	test_data_parallel();
	test_swap();
	test_errors();
	test_other_process();
	test_isolated();
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "every counter is what it was before");
	for (int i = 0; i < 8; i++)
		request_free(&r[i]);
	neuron_pool_close(pool);
	for (uint32_t i = 0; i < CORES; i++)
		neuron_core_close(cores[i]);
	neuron_device_close(device);
	CHECK(counters_come_to(&start), "and what it was at the start");
	return failed != 0;
}

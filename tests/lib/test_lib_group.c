// SPDX-License-Identifier: GPL-2.0-only
/* Core groups and networks: who gets which cores, nodes, requests, pipelining, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "fake_driver.h"
#include "comparisons.h"
#include "inflations.h"
#include "test_neffs.h"

#include "src/run/net.h"

#define BYTES 1024u
#define NR_CORES 4u

static struct neuron_device *device, *second;
static struct neuron_core *cores[NR_CORES];
static struct neuron_pool *pool;

/* ---- the operation of the host -------------------------------------------------------- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint op_calls;
static int op_result;
static sigset_t op_blocked;

static int invert(void *context, const struct neuron_host_tensor *in, size_t nr_in,
		  const struct neuron_host_tensor *out, size_t nr_out)
{
	const uint8_t *from = in[0].data;
	uint8_t *to = out[0].data;

	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	op_calls++;
	pthread_sigmask(SIG_BLOCK, NULL, &op_blocked);
	if (nr_in != 1 || nr_out != 1 || strcmp(in[0].name, "b") || strcmp(out[0].name, "c") ||
	    in[0].bytes != BYTES)
		return -EPROTO;
	for (size_t i = 0; i < BYTES; i++)
		to[i] = from[i] ^ *(uint8_t *)context;
	return op_result;
}

static uint8_t mask = 0xff;
static const struct neuron_host_op ops[] = { { "invert", invert, &mask } };

/* ---- requests ------------------------------------------------------------------------- */

struct request {
	struct neuron_mem *x, *y;
	struct neuron_io io[2];
	uint64_t cookie;
};

static void request_on(struct request *r, uint8_t seed, struct neuron_device *x,
		       struct neuron_device *y)
{
	uint8_t bytes[BYTES];

	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(i + seed);
	assert_int_equal(neuron_mem_alloc(x, BYTES, NULL, &r->x), 0);
	assert_int_equal(neuron_mem_alloc(y, BYTES, NULL, &r->y), 0);
	assert_int_equal(neuron_mem_write(r->x, 0, bytes, BYTES), 0);
	r->io[0] = (struct neuron_io){ .name = "y", .mem = r->y, .bytes = BYTES };
	r->io[1] = (struct neuron_io){ .name = "x", .mem = r->x, .bytes = BYTES };
}

static void request_init(struct request *r, uint8_t seed)
{
	request_on(r, seed, device, device);
}

static void request_check(const struct request *r, uint8_t seed, uint8_t xor)
{
	uint8_t got[BYTES];

	assert_int_equal(neuron_mem_read(r->y, 0, got, BYTES), 0);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(got[i], (uint8_t)((i + seed) ^ xor));
}

static void request_free(struct request *r)
{
	neuron_mem_free(r->x);
	neuron_mem_free(r->y);
}

static struct neuron_net *load(struct neff_bytes n, struct neuron_group *group, uint32_t depth)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts o = {
		.size = sizeof(o),
		.group = group,
		.depth = depth,
		.ops = ops,
		.nr_ops = 1,
		.error = &error,
		.timeout_ms = 1000,
	};
	struct neuron_net *net = NULL;

	if (neuron_net_load(pool, n.data, n.size, &o, &net))
		fail_msg("%s", error.text);
	free(n.data);
	return net;
}

static int setup(void **state)
{
	int ret;

	(void)state;
	fake.nr_devices = 1;
	op_result = 0;
	ret = neuron_device_open(0, &device);
	for (uint32_t i = 0; i < NR_CORES && !ret; i++)
		ret = neuron_core_open(device, i, NULL, &cores[i]);
	return ret ? ret : neuron_pool_open(cores, NR_CORES, &pool);
}

/* Logical cores of two. */
static int setup_pairs(void **state)
{
	struct neuron_core_opts opts = { .size = sizeof(opts), .lnc = 2 };
	int ret;

	(void)state;
	fake.nr_devices = 1;
	memset(cores, 0, sizeof(cores));
	ret = neuron_device_open(0, &device);
	for (uint32_t i = 0; i < NR_CORES / 2 && !ret; i++)
		ret = neuron_core_open(device, 2 * i, &opts, &cores[i]);
	return ret ? ret : neuron_pool_open(cores, NR_CORES / 2, &pool);
}

static int teardown(void **state)
{
	(void)state;
	fake.stuck = false;
	neuron_pool_close(pool);
	for (uint32_t i = 0; i < NR_CORES; i++)
		neuron_core_close(cores[i]);
	neuron_device_close(device);
	return fake_used() || fake.mapped || fake.dev[0].opens;
}

/* Cores of two devices in turns: the nodes of a network are on both. */
static int setup_two(void **state)
{
	int ret;

	(void)state;
	fake.nr_devices = 3;
	op_result = 0;
	ret = neuron_device_open(0, &device);
	if (!ret)
		ret = neuron_device_open(1, &second);
	for (uint32_t i = 0; i < NR_CORES && !ret; i++)
		ret = neuron_core_open(i % 2 ? second : device, i / 2, NULL, &cores[i]);
	return ret ? ret : neuron_pool_open(cores, NR_CORES, &pool);
}

static int teardown_two(void **state)
{
	int ret;

	/* Its cores keep it. */
	neuron_device_close(second);
	ret = teardown(state);
	fake.nr_devices = 1;
	return ret || fake_used() || fake.mapped || fake.dev[1].opens;
}

/* ---- tests ---------------------------------------------------------------------------- */

static void test_groups(void **state)
{
	struct neuron_group *a, *b, *c = NULL;
	struct neuron_core *twice[2] = { cores[0], cores[0] };
	struct neuron_pool *other = NULL;

	(void)state;
	assert_int_equal(neuron_pool_open(twice, 2, &other), -EINVAL);
	assert_int_equal(neuron_pool_open(NULL, 0, &other), -EINVAL);
	assert_int_equal(neuron_group_create(pool, 0, &a), -EINVAL);
	assert_int_equal(neuron_group_create(pool, 5, &a), -EINVAL);
	assert_int_equal(neuron_group_create(pool, 3, &a), 0);
	assert_int_equal(neuron_pool_free(pool), 1);
	assert_int_equal(neuron_group_create(pool, 2, &b), -EBUSY);
	assert_int_equal(neuron_group_create(pool, 1, &b), 0);
	assert_int_equal(neuron_group_create(pool, 1, &c), -EBUSY);
	assert_null(c);
	assert_int_equal(neuron_group_destroy(a), 0);
	assert_int_equal(neuron_pool_free(pool), 3);
	assert_int_equal(neuron_group_destroy(b), 0);
	assert_int_equal(neuron_group_destroy(NULL), 0);
}

/* Implicit: takes cores, runs at once, gives them back. */
static void test_implicit(void **state)
{
	struct neuron_tensor_info info = { .size = sizeof(info) };
	struct neuron_net *net, *more;
	struct request r;

	(void)state;
	net = load(net_neff(), NULL, 0);
	assert_int_equal(neuron_pool_free(pool), 2);
	assert_int_equal(neuron_net_mode(net), NEURON_NET_NORMAL);
	assert_ptr_equal(neuron_net_core(net), cores[0]);
	assert_int_equal(neuron_net_tensor_count(net), 2);
	assert_int_equal(neuron_net_tensor_info(net, 0, &info), 0);
	assert_string_equal(info.name, "x");
	assert_int_equal(info.usage, NEURON_TENSOR_INPUT);
	assert_int_equal(info.bytes, BYTES);
	assert_int_equal(neuron_net_tensor_info(net, 2, &info), -EINVAL);
	request_init(&r, 3);
	assert_int_equal(neuron_net_infer(net, r.io, 2, NULL), 0);
	request_check(&r, 3, 0xff);
	assert_int_equal(neuron_net_start(net), -EALREADY);
	more = load(net_neff(), NULL, 0);
	assert_int_equal(neuron_pool_free(pool), 0);
	/* The same network again: data parallel. */
	assert_int_equal(neuron_net_infer(more, r.io, 2, NULL), 0);
	neuron_net_unload(net);
	assert_int_equal(neuron_pool_free(pool), 2);
	neuron_net_unload(more);
	neuron_net_unload(NULL);
	/* A NEFF that is no network of nodes. */
	net = load(make_list_neff(), NULL, 0);
	assert_int_equal(neuron_pool_free(pool), 3);
	assert_int_equal(neuron_net_infer(net, r.io, 2, NULL), 0);
	neuron_net_unload(net);
	request_free(&r);
}

/* The operation comes behind the last core of the group. */
static void test_host_last(void **state)
{
	static const char network[] =
		NETWORK("\"edges\": ["
			"{\"name\": \"x\", \"bytes\": 1024, \"use\": \"input\"},"
			"{\"name\": \"b\", \"bytes\": 1024},"
			"{\"name\": \"c\", \"bytes\": 1024, \"use\": \"output\"}]",
			NODE_A "," NODE_OP);
	struct neuron_net *net = load(make_net(network), NULL, 0);
	struct request r;

	(void)state;
	assert_int_equal(neuron_pool_free(pool), NR_CORES - 1);
	request_init(&r, 5);
	r.io[0].name = "c";
	assert_int_equal(neuron_net_infer(net, r.io, 2, NULL), 0);
	request_check(&r, 5, 0xff);
	request_free(&r);
	neuron_net_unload(net);
}

/* Two nodes of two descriptors, and one each for their programs. */
static void test_descriptors(void **state)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts o = {
		.size = sizeof(o), .ops = ops, .nr_ops = 1, .error = &error,
	};
	struct neff_bytes n = net_neff();
	struct neuron_net *net;

	(void)state;
	for (o.max_descriptors = 1; o.max_descriptors < 6; o.max_descriptors++) {
		assert_int_equal(neuron_net_load(pool, n.data, n.size, &o, &net), -E2BIG);
		assert_int_equal(error.kind, NEURON_ERROR_LIMIT);
		assert_non_null(strstr(error.text, o.max_descriptors < 2 ? "model may have" :
				       "the nodes have more than"));
	}
	assert_int_equal(neuron_net_load(pool, n.data, n.size, &o, &net), 0);
	neuron_net_unload(net);
	free(n.data);
}

static unsigned int infer_resets(struct neuron_group *group)
{
	struct neuron_net *net = load(make_list_neff(), group, 0);
	const unsigned int *resets = &fake.dev[0].core[0].resets, before = *resets;
	uint64_t cleared = fake.programmed;
	struct request r;

	if (group)
		assert_int_equal(neuron_net_start(net), 0);
	request_init(&r, 1);
	assert_int_equal(neuron_net_infer(net, r.io, 2, NULL), 0);
	assert_int_equal(neuron_net_infer(net, r.io, 2, NULL), 0);
	request_free(&r);
	neuron_net_unload(net);
	/* The state buffer, too: the reset of a card may leave it as it is. */
	assert_true(fake.programmed - cleared == (uint64_t)(*resets - before) * FAKE_SBUF);
	return *resets - before;
}

/* Only behind a change of groups, and only where somebody asked for it. */
static void test_isolate(void **state)
{
	struct neuron_group *group;

	(void)state;
	for (unsigned int isolated = 0; isolated < 2; isolated++) {
		assert_int_equal(infer_resets(NULL), 0);
		assert_int_equal(infer_resets(NULL), isolated);
		assert_int_equal(neuron_group_create(pool, 1, &group), 0);
		assert_int_equal(infer_resets(group), isolated);
		assert_int_equal(infer_resets(group), 0);
		assert_int_equal(neuron_group_destroy(group), 0);
		assert_int_equal(infer_resets(NULL), isolated);
		if (!isolated)
			neuron_pool_isolate(pool);
	}
}

/* A child frees what it knows, whatever a thread that it does not have was doing. */
static void test_fork(void **state)
{
	struct neuron_group *group;
	struct neuron_net *net;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(neuron_group_create(pool, 1, &group), 0);
	net = load(make_list_neff(), group, 0);
	/* Its threads wait for something to do. */
	usleep(50000);
	pthread_mutex_lock(&pool->lock);
	pid = fork();
	if (!pid) {
		alarm(10);
		neuron_net_unload(net);
		_exit(neuron_group_destroy(group) ? 1 : 0);
	}
	pthread_mutex_unlock(&pool->lock);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	neuron_net_unload(net);
	assert_int_equal(neuron_group_destroy(group), 0);
}

/* The archive is unpacked once, however many nodes there are. */
static void test_L6_unpacked_once(void **state)
{
	struct neuron_net *net;

	(void)state;
	inflations = 0;
	net = load(net_neff(), NULL, 0);
	assert_int_equal(inflations, 1);
	neuron_net_unload(net);
}

/* A node that is made for more cores takes them, or the load fails. */
static void test_L11_cores(void **state)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts o = {
		.size = sizeof(o), .ops = ops, .nr_ops = 1, .error = &error,
	};
	struct neuron_net *net = NULL;
	struct neff_bytes n;

	(void)state;
	neff_cores = 2;
	n = net_neff();
	neff_cores = 1;
	assert_int_equal(neuron_net_load(pool, n.data, n.size, &o, &net), 0);
	assert_int_equal(neuron_pool_free(pool), NR_CORES - 3);
	neuron_net_unload(net);
	assert_int_equal(neuron_group_create(pool, 2, &o.group), 0);
	assert_int_equal(neuron_net_load(pool, n.data, n.size, &o, &net), 0);
	assert_int_equal(neuron_net_mode(net), NEURON_NET_SHARED);
	neuron_net_unload(net);
	assert_int_equal(neuron_group_destroy(o.group), 0);
	assert_int_equal(neuron_group_create(pool, 1, &o.group), 0);
	assert_int_equal(neuron_net_load(pool, n.data, n.size, &o, &net), -ERANGE);
	assert_int_equal(error.kind, NEURON_ERROR_CORES);
	assert_string_equal(error.text, "a node is made for 2 cores, the group has 1");
	assert_int_equal(neuron_group_destroy(o.group), 0);
	free(n.data);
}

/* Each core of a logical one has an output of its own; the input is that of both. */
static void test_tensors_of_both_cores(void **state)
{
	static const char *const names[] = { "x", "a", "b" };
	struct neuron_net *net = load(make_pair_neff("1024"), NULL, 0);
	struct neuron_tensor_info info = { .size = sizeof(info) };
	struct neuron_io io[3];
	struct request r;

	(void)state;
	assert_int_equal(neuron_net_tensor_count(net), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(neuron_net_tensor_info(net, i, &info), 0);
		assert_string_equal(info.name, names[i]);
		assert_int_equal(info.usage, i ? NEURON_TENSOR_OUTPUT : NEURON_TENSOR_INPUT);
	}
	for (size_t i = 1; i < 3; i++) {
		struct neuron_mem *other;

		request_init(&r, (uint8_t)i);
		assert_int_equal(neuron_mem_alloc(device, BYTES, NULL, &other), 0);
		io[0] = (struct neuron_io){ "x", r.x, 0, BYTES };
		io[i] = (struct neuron_io){ names[i], r.y, 0, BYTES };
		io[3 - i] = (struct neuron_io){ names[3 - i], other, 0, BYTES };
		assert_int_equal(neuron_net_infer(net, io, 3, NULL), 0);
		request_check(&r, (uint8_t)i, 0);
		request_free(&r);
		neuron_mem_free(other);
	}
	neuron_net_unload(net);
}

static unsigned int walks;
int __real_make_copies(struct neuron_net *net, struct slot *slot, struct neuron_error *error);
int __wrap_make_copies(struct neuron_net *net, struct slot *slot, struct neuron_error *error);

int __wrap_make_copies(struct neuron_net *net, struct slot *slot, struct neuron_error *error)
{
	walks++;
	return __real_make_copies(net, slot, error);
}

/* Tensors are found without a look at all of the others. */
static void test_many_tensors(void **state)
{
	enum { NR = 500 };
	static struct neuron_io io[2 * NR];
	struct neuron_tensor_info info = { .size = sizeof(info) };
	struct neuron_net *net;
	struct neuron_mem *mem;

	(void)state;
	comparisons = 0;
	net = load(make_wide_neff(NR), NULL, 0);
	assert_in_range(comparisons, 1, 2 * NR * 100);
	assert_int_equal(neuron_net_tensor_count(net), 2 * NR);
	assert_int_equal(neuron_mem_alloc(device, 2 * NR * 16, NULL, &mem), 0);
	for (size_t i = 0; i < 2 * NR; i++) {
		assert_int_equal(neuron_net_tensor_info(net, i, &info), 0);
		io[i] = (struct neuron_io){ info.name, mem, 16 * i, 16 };
	}
	comparisons = walks = 0;
	assert_int_equal(neuron_net_infer(net, io, 2 * NR, NULL), 0);
	assert_in_range(comparisons, 1, 2 * NR * 10);
	assert_int_equal(walks, 1);
	neuron_net_unload(net);
	neuron_mem_free(mem);
}

/* More pairs than a number of cores can say are too many, not none. */
static void test_too_many_cores(void **state)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts o = { .size = sizeof(o), .error = &error };
	struct neuron_net *net = NULL;
	struct neff_bytes n;

	(void)state;
	neff_cores = 0;
	n = make_list_neff();
	neff_cores = 1;
	/* requested_tpb_count */
	memset((char *)n.data + 476, 0xff, 4);
	assert_int_equal(neuron_net_load(pool, n.data, n.size, &o, &net), -ERANGE);
	assert_string_equal(error.text, "2147483648 cores wanted, there are 2");
	assert_int_equal(neuron_pool_free(pool), 2);
	free(n.data);
}

/* Of two networks on a group one runs at a time. */
static void test_start_stop(void **state)
{
	struct neuron_net *a, *b;
	struct neuron_group *group;
	struct request r;
	uint64_t cookie;

	(void)state;
	request_init(&r, 1);
	assert_int_equal(neuron_group_create(pool, 2, &group), 0);
	a = load(net_neff(), group, 0);
	b = load(make_list_neff(), group, 0);
	assert_int_equal(neuron_group_destroy(group), -EBUSY);
	assert_int_equal(neuron_net_submit(a, r.io, 2, &cookie), -ESHUTDOWN);
	assert_int_equal(neuron_net_stop(a), -EALREADY);
	assert_int_equal(neuron_net_start(a), 0);
	assert_int_equal(neuron_net_start(b), -EBUSY);
	assert_int_equal(neuron_net_infer(a, r.io, 2, NULL), 0);
	request_check(&r, 1, 0xff);
	assert_int_equal(neuron_net_stop(a), 0);
	assert_int_equal(neuron_net_start(b), 0);
	assert_int_equal(neuron_net_infer(b, r.io, 2, NULL), 0);
	assert_int_equal(neuron_net_infer(a, r.io, 2, NULL), -ESHUTDOWN);
	neuron_net_unload(b);
	assert_int_equal(neuron_net_start(a), 0);
	neuron_net_unload(a);
	assert_int_equal(neuron_group_destroy(group), 0);
	request_free(&r);
}

/* One core for two nodes. */
static void test_shared(void **state)
{
	struct neuron_group *group;
	struct neuron_net *net;
	struct request r[3];

	(void)state;
	assert_int_equal(neuron_group_create(pool, 1, &group), 0);
	net = load(net_neff(), group, 3);
	assert_int_equal(neuron_net_mode(net), NEURON_NET_SHARED);
	assert_int_equal(neuron_net_start(net), 0);
	for (uint8_t i = 0; i < 3; i++) {
		request_init(&r[i], i);
		assert_int_equal(neuron_net_submit(net, r[i].io, 2, &r[i].cookie), 0);
	}
	for (uint8_t i = 0; i < 3; i++) {
		assert_int_equal(neuron_net_wait(net, r[i].cookie, -1, NULL), 0);
		request_check(&r[i], i, 0xff);
		request_free(&r[i]);
	}
	neuron_net_unload(net);
	assert_int_equal(neuron_group_destroy(group), 0);
}

/* A request that no node has begun with can be cancelled, others go on. */
static void test_cancel(void **state)
{
	struct neuron_net_result result = { .size = sizeof(result) };
	struct neuron_node_stats stats = { .size = sizeof(stats) };
	struct neuron_group *group;
	struct neuron_net *net;
	struct request r[3];

	(void)state;
	assert_int_equal(neuron_group_create(pool, 1, &group), 0);
	net = load(net_neff(), group, 3);
	assert_int_equal(neuron_net_start(net), 0);
	pthread_mutex_lock(&gate);
	for (uint8_t i = 0; i < 3; i++) {
		request_init(&r[i], i);
		assert_int_equal(neuron_net_submit(net, r[i].io, 2, &r[i].cookie), 0);
	}
	while (!stats.runs)
		assert_int_equal(neuron_net_node_stats(net, 0, &stats), 0);
	assert_int_equal(neuron_net_cancel(net, r[0].cookie), -EBUSY);
	assert_int_equal(neuron_net_cancel(net, r[1].cookie), 0);
	assert_int_equal(neuron_net_cancel(net, r[1].cookie), 0);
	assert_int_equal(neuron_net_cancel(net, 1000), -ENOENT);
	pthread_mutex_unlock(&gate);
	assert_int_equal(neuron_net_wait(net, r[1].cookie, -1, &result), 0);
	assert_int_equal(result.status, -ECANCELED);
	assert_int_equal(result.nr_errors, 1);
	assert_string_equal(result.errors[0], "cancelled before it began");
	assert_int_equal(neuron_net_cancel(net, r[0].cookie), -EBUSY);
	assert_int_equal(neuron_net_cancel(net, r[1].cookie), -ENOENT);
	for (uint8_t i = 0; i < 3; i += 2) {
		assert_int_equal(neuron_net_wait(net, r[i].cookie, -1, &result), 0);
		assert_int_equal(result.status, 0);
		request_check(&r[i], i, 0xff);
	}
	assert_int_equal(neuron_net_node_stats(net, 0, &stats), 0);
	assert_int_equal(stats.runs, 2);
	for (uint8_t i = 0; i < 3; i++)
		request_free(&r[i]);
	neuron_net_unload(net);
	assert_int_equal(neuron_group_destroy(group), 0);
}

/* While a request is held up in one node, others go through the nodes before it. */
static void test_pipeline(void **state)
{
	struct neuron_net *net = load(net_neff(), NULL, 3);
	int fd = eventfd(0, EFD_CLOEXEC);
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct request r[4];
	uint64_t n;

	(void)state;
	assert_int_equal(neuron_net_set_eventfd(net, fd), 0);
	assert_int_equal(neuron_net_set_eventfd(net, 9999), -EBADF);
	assert_int_equal(neuron_net_set_eventfd(net, -2), -EINVAL);
	for (uint8_t i = 0; i < 4; i++)
		request_init(&r[i], i);
	pthread_mutex_lock(&gate);
	op_calls = 0;
	for (uint8_t i = 0; i < 3; i++)
		assert_int_equal(neuron_net_submit(net, r[i].io, 2, &r[i].cookie), 0);
	/* Back-pressure; nothing changes. */
	r[3].cookie = 77;
	assert_int_equal(neuron_net_submit(net, r[3].io, 2, &r[3].cookie), -EAGAIN);
	assert_int_equal(r[3].cookie, 77);
	assert_int_equal(neuron_net_wait(net, r[0].cookie, 20, NULL), -ETIMEDOUT);
	assert_int_equal(op_calls, 0);
	pthread_mutex_unlock(&gate);
	for (uint8_t i = 0; i < 3; i++)
		assert_int_equal(neuron_net_wait(net, r[2 - i].cookie, -1, NULL), 0);
	assert_int_equal(op_calls, 3);
	assert_int_equal(poll(&pfd, 1, 0), 1);
	assert_int_equal(read(fd, &n, sizeof(n)), sizeof(n));
	assert_int_equal(n, 3);
	/* A request that was waited for is gone. */
	assert_int_equal(neuron_net_wait(net, r[0].cookie, 0, NULL), -ENOENT);
	assert_int_equal(neuron_net_wait(net, 1000, 0, NULL), -ENOENT);
	assert_int_equal(neuron_net_submit(net, r[3].io, 2, &r[3].cookie), 0);
	/* Unloading finishes the last request. */
	neuron_net_unload(net);
	request_check(&r[3], 3, 0xff);
	for (uint8_t i = 0; i < 4; i++) {
		if (i < 3)
			request_check(&r[i], i, 0xff);
		request_free(&r[i]);
	}
	close(fd);
}

/* A blocking descriptor that cannot take it keeps the network from nothing. */
static void test_L17_full_eventfd(void **state)
{
	static const uint64_t most = UINT64_MAX - 1;
	struct neuron_net *net = load(net_neff(), NULL, 1);
	int fd = eventfd(0, EFD_CLOEXEC);
	struct request r;

	(void)state;
	alarm(60);
	assert_int_equal(write(fd, &most, sizeof(most)), sizeof(most));
	assert_int_equal(neuron_net_set_eventfd(net, fd), 0);
	request_init(&r, 1);
	assert_int_equal(neuron_net_infer(net, r.io, 2, NULL), 0);
	request_check(&r, 1, 0xff);
	neuron_net_unload(net);
	alarm(0);
	request_free(&r);
	close(fd);
}

static void check_node(struct neuron_net *net, size_t index, const char *name, uint64_t runs,
		       uint64_t failed)
{
	struct neuron_node_stats s = { .size = sizeof(s) };
	bool host = index == 1;

	assert_int_equal(neuron_net_node_stats(net, index, &s), 0);
	assert_string_equal(s.name, name);
	assert_int_equal(s.runs, runs);
	assert_int_equal(s.failed, failed);
	assert_true(s.longest_ns && s.longest_ns <= s.busy_ns && s.busy_ns <= runs * s.longest_ns);
	assert_int_equal(!s.core, host);
	assert_int_equal(!s.usage.code, host);
}

/* A fault of an operation ends in the program's handler. */
static void test_L24_signals_of_a_stage(void **state)
{
	struct neuron_net *net = load(net_neff(), NULL, 1);
	struct request r;

	(void)state;
	request_init(&r, 1);
	assert_int_equal(neuron_net_infer(net, r.io, 2, NULL), 0);
	assert_false(sigismember(&op_blocked, SIGSEGV));
	assert_false(sigismember(&op_blocked, SIGFPE));
	assert_true(sigismember(&op_blocked, SIGTERM));
	neuron_net_unload(net);
	request_free(&r);
}

static void test_errors(void **state)
{
	struct neuron_net_result result = { .size = sizeof(result) };
	struct neuron_node_stats stats = { .size = sizeof(stats) };
	struct neuron_net *net = load(net_neff(), NULL, 0);
	struct request r;

	(void)state;
	request_init(&r, 9);
	assert_int_equal(neuron_net_infer(net, r.io, 1, NULL), -EINVAL);
	r.io[0].bytes = BYTES - 1;
	assert_int_equal(neuron_net_infer(net, r.io, 2, NULL), -EINVAL);
	r.io[0].bytes = BYTES;
	r.io[0].offset = UINT64_MAX;
	assert_int_equal(neuron_net_infer(net, r.io, 2, NULL), -EINVAL);
	r.io[0].offset = 0;
	op_result = -ERANGE;
	assert_int_equal(neuron_net_infer(net, r.io, 2, &result), -ERANGE);
	assert_int_equal(result.status, -ERANGE);
	assert_int_equal(result.nr_errors, 1);
	assert_non_null(strstr(result.errors[0], "node middle: operation invert: "));
	op_result = 0;
	fake.dma_error = NEURON_ISA_ERR_DMA_ACCESS;
	assert_int_equal(neuron_net_infer(net, r.io, 2, &result), -EIO);
	assert_non_null(strstr(result.errors[0], "node first: DMA engine"));
	/* The next request is well. */
	assert_int_equal(neuron_net_infer(net, r.io, 2, &result), 0);
	assert_int_equal(result.nr_errors, 0);
	request_check(&r, 9, 0xff);
	/* A request that failed goes no further. */
	check_node(net, 0, "first", 3, 1);
	check_node(net, 1, "middle", 2, 1);
	check_node(net, 2, "last", 1, 0);
	assert_int_equal(neuron_net_node_count(net), 3);
	assert_int_equal(neuron_net_node_stats(net, 3, &stats), -EINVAL);
	assert_int_equal(neuron_net_node_stats(net, 0, NULL), -EINVAL);
	neuron_net_unload(net);
	request_free(&r);
}

#define NODE_PARAMS(params) "{\"name\": \"middle\", \"op\": \"mask\", \"params\": [" params "]," \
	" \"inputs\": [\"b\"], \"outputs\": [\"c\"]}"

static void refused(const char *network, int err, const char *text)
{
	struct neff_bytes n = make_net(network);
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts o = {
		.size = sizeof(o), .ops = ops, .nr_ops = 1, .error = &error,
	};
	struct neuron_net *net = NULL;
	int ret = neuron_net_load(pool, n.data, n.size, &o, &net);

	if (ret != err || !strstr(error.text, text))
		fail_msg("%d '%s', not %d '%s'", ret, error.text, err, text);
	assert_null(net);
	assert_int_equal(neuron_pool_free(pool), NR_CORES);
	free(n.data);
}

static void test_bad_networks(void **state)
{
	(void)state;
	refused(NETWORK(EDGES, ""), -EOPNOTSUPP, "0 nodes");
	refused(NETWORK(EDGES, NODE_OP "," NODE_A "," NODE_B), -EINVAL, "input 'b' has no value yet");
	refused(NETWORK(EDGES, NODE_A "," NODE_A), -EINVAL, "output 'b' is no edge, or has a value");
	refused(NETWORK(EDGES, NODE_A), -EINVAL, "no node writes 'c'");
	refused(NETWORK(EDGES, NODE_A "," "{\"name\": \"m\", \"op\": \"invert\", \"inputs\": [\"b\", \"b\"],"
			"\"outputs\": [\"c\"]}," NODE_B), -EINVAL, "has input 'b' twice");
	refused(NETWORK(EDGES, "7"), -EINVAL, "is an integer, not an object");
	refused(NETWORK(EDGES, "{\"name\": \"n\", \"kelf\": 1, \"op\": \"o\"}"), -EINVAL, "'kelf' and 'op'");
	refused(NETWORK(EDGES, "{\"name\": \"n\", \"kelf\": 64}"), -EINVAL, "kelf");
	refused(NETWORK(EDGES, "{\"name\": \"n\"}"), -EINVAL, "op: missing");
	refused(NETWORK("\"edges\": [{\"name\": \"x\", \"bytes\": 0}]", NODE_A), -EINVAL, "bytes");
	refused(NETWORK("\"edges\": [{\"name\": \"x\", \"bytes\": 1}, {\"name\": \"x\", \"bytes\": 1}]",
			NODE_A), -EINVAL, "is there twice");
	refused(NETWORK("\"edges\": [{\"name\": \"x\", \"bytes\": 1, \"use\": \"maybe\"}]", NODE_A),
		-EINVAL, "use 'maybe' is not known");
	/* The program of a node has other tensors than the network says. */
	refused(NETWORK("\"edges\": [{\"name\": \"x\", \"bytes\": 1024, \"use\": \"input\"},"
			"{\"name\": \"b\", \"bytes\": 1023, \"use\": \"output\"}]", NODE_A),
		-EINVAL, "neff.json: nodes[0]: its program has no output 'b' of 1023 bytes");
	refused(NETWORK("\"edges\": [{\"name\": \"x\", \"bytes\": 1024, \"use\": \"input\"}]",
			"{\"name\": \"first\", \"kelf\": 0, \"inputs\": [\"x\"], \"outputs\": []}"),
		-EINVAL, "neff.json: nodes[0]: its program has 2 tensors, not 1");
	refused(NETWORK("\"edges\": [{\"name\": \"x\", \"bytes\": 1024, \"use\": \"input\"},"
			"{\"name\": \"b\", \"bytes\": 1024},"
			"{\"name\": \"z\", \"bytes\": 1024, \"use\": \"output\"}]", NODE_A ","
			"{\"name\": \"last\", \"kelf\": 1, \"inputs\": [\"b\"], \"outputs\": [\"z\"]}"),
		-EINVAL, "neff.json: nodes[1]: its program has no input 'b' of 1024 bytes");
	refused(NETWORK(EDGES, NODE_A "," NODE_OP ","
			"{\"name\": \"last\", \"kelf\": 7, \"inputs\": [\"c\"], \"outputs\": [\"y\"]}"),
		-EINVAL, "kelf-7.json");
	/* Operations that are not there. */
	refused(NETWORK(EDGES, NODE_A "," "{\"name\": \"m\", \"op\": \"other\", \"inputs\": [\"b\"],"
			"\"outputs\": [\"c\"]}," NODE_B), -ENOENT, "no operation other was registered");
	refused(NETWORK(EDGES, NODE_A "," "{\"name\": \"m\", \"op\": \"other\", \"object\": \"kelf-0.json\","
			"\"inputs\": [\"b\"], \"outputs\": [\"c\"]}," NODE_B), -EPERM,
		"operation other is in a shared object, which is not loaded");
	refused(NETWORK(EDGES, "{\"name\": \"m\", \"op\": \"other\", \"object\": \"none.so\"}"), -EINVAL,
		"'none.so' is not in the archive");
	refused(NETWORK(EDGES, NODE_PARAMS("\"none\"")), -EINVAL, "params[0]: 'none' is not in");
	refused(NETWORK(EDGES, "{\"name\": \"n\", \"kelf\": 1, \"params\": [\"kelf-0.json\"]}"), -EINVAL,
		"'kelf' and 'op', 'object' or 'params'");
}

/* Options that cannot be meant. */
static void test_bad_options(void **state)
{
	const struct neuron_host_op nameless[] = { ops[0], { .fn = invert } };
	const struct neuron_host_op empty[] = { ops[0], { .name = "invert" } };
	const struct neuron_net_opts bad[] = {
		{ .size = sizeof(bad[0]), .depth = 1025 },
		{ .size = sizeof(bad[0]), .nr_ops = 1 },
		{ .size = sizeof(bad[0]), .nr_ops = 2, .ops = nameless },
		{ .size = sizeof(bad[0]), .nr_ops = 2, .ops = empty },
	};
	struct neff_bytes n = net_neff();

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct neuron_error error = { .size = sizeof(error), .text = "of another load" };
		struct neuron_net_opts o = bad[i];
		struct neuron_net *net = NULL;

		o.error = &error;
		assert_int_equal(neuron_net_load(pool, n.data, n.size, &o, &net), -EINVAL);
		assert_null(net);
		assert_string_equal(error.text, "Invalid argument");
	}
	free(n.data);
}

/* A shared object with an operation "flip" that inverts the bits of @mask. */
static size_t make_object(unsigned int bits, char *so, size_t room)
{
	char command[1024];
	size_t size;
	FILE *f;

	snprintf(command, sizeof(command),
		 "so=$(mktemp); ${CC:-cc} -shared -fPIC -x c - -o $so <<'END'\n"
		 "struct t { const char *name; unsigned char *data; unsigned long bytes; };\n"
		 "int flip(void *c, const struct t *in, unsigned long ni, const struct t *out,"
		 " unsigned long no)\n"
		 "{ for (unsigned long i = 0; i < in[0].bytes; i++)"
		 " out[0].data[i] = in[0].data[i] ^ %u; return c || ni != 1 || no != 1; }\n"
		 "END\n"
		 "cat $so; rm $so", bits);
	f = popen(command, "r");
	assert_non_null(f);
	size = fread(so, 1, room, f);
	assert_int_equal(pclose(f), 0);
	assert_in_range(size, 1000, room - 1);
	return size;
}

/*
 * Objects of the NEFF run only if the caller says so; two that have a function of
 * the same name are two.
 */
static void test_object(void **state)
{
	static const char network[] =
		NETWORK("\"edges\": ["
			"{\"name\": \"x\", \"bytes\": 1024, \"use\": \"input\"},"
			"{\"name\": \"b\", \"bytes\": 1024}, {\"name\": \"m\", \"bytes\": 1024},"
			"{\"name\": \"c\", \"bytes\": 1024},"
			"{\"name\": \"y\", \"bytes\": 1024, \"use\": \"output\"}]",
			NODE_A ","
			"{\"name\": \"m1\", \"op\": \"flip\", \"object\": \"cpu/a.so\","
			" \"inputs\": [\"b\"], \"outputs\": [\"m\"]},"
			"{\"name\": \"m2\", \"op\": \"flip\", \"object\": \"cpu/b.so\","
			" \"inputs\": [\"m\"], \"outputs\": [\"c\"]},"
			NODE_B);
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts o = { .size = sizeof(o), .load_objects = true, .error = &error };
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	struct neuron_net *net = NULL;
	static char so[1 << 17];
	struct neff_bytes n;
	struct request r;
	size_t size;

	(void)state;
	add_kelf(w, 0, "x", "b");
	add_kelf(w, 1, "c", "y");
	size = make_object(0x55, so, sizeof(so));
	assert_int_equal(neuron_neff_writer_add(w, "cpu/a.so", so, size), 0);
	size = make_object(0x0f, so, sizeof(so));
	assert_int_equal(neuron_neff_writer_add(w, "cpu/b.so", so, size), 0);
	n = net_finish(w, network);
	o.load_objects = false;
	assert_int_equal(neuron_net_load(pool, n.data, n.size, &o, &net), -EPERM);
	o.load_objects = true;
	if (neuron_net_load(pool, n.data, n.size, &o, &net))
		fail_msg("%s", error.text);
	request_init(&r, 40);
	assert_int_equal(neuron_net_infer(net, r.io, 2, NULL), 0);
	request_check(&r, 40, 0x55 ^ 0x0f);
	request_free(&r);
	neuron_net_unload(net);
	free(n.data);
}

/* out = in ^ the only byte of the first parameter ^ the elements of the second one */
static int with_params(void *context, const struct neuron_host_tensor *in, size_t nr_in,
		       const struct neuron_host_tensor *out, size_t nr_out)
{
	const uint8_t *from = in[0].data, *more = in[2].data;
	uint8_t *to = out[0].data;

	(void)context;
	if (nr_in != 3 || nr_out != 1 || strcmp(in[0].name, "b") || strcmp(out[0].name, "c") ||
	    strcmp(in[1].name, "cpu/mask") || in[1].bytes != 1 ||
	    strcmp(in[2].name, "cpu/more.npy") || in[2].bytes != 4)
		return -EPROTO;
	for (size_t i = 0; i < BYTES; i++)
		to[i] = from[i] ^ *(uint8_t *)in[1].data ^ more[0] ^ more[1] ^ more[2] ^ more[3];
	return 0;
}

/* The host's part of a network has parameters, too. */
static void test_params(void **state)
{
	static const char npy[] = "\x93NUMPY\1\0\x3b\0"
		"{'descr': '|u1', 'fortran_order': False, 'shape': (4,), } \n"
		"\x01\x02\x04\x08";
	static const struct neuron_host_op mask_op = { .name = "mask", .fn = with_params };
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts o = { .size = sizeof(o), .ops = &mask_op, .nr_ops = 1,
				     .error = &error };
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	struct neuron_net *net = NULL;
	struct neff_bytes n;
	struct request r;

	(void)state;
	add_kelf(w, 0, "x", "b");
	add_kelf(w, 1, "c", "y");
	assert_int_equal(neuron_neff_writer_add(w, "cpu/mask", "\x50", 1), 0);
	assert_int_equal(neuron_neff_writer_add(w, "cpu/more.npy", npy, sizeof(npy) - 1), 0);
	n = net_finish(w, NETWORK(EDGES, NODE_A ","
				  NODE_PARAMS("\"cpu/mask\", \"cpu/more.npy\"") "," NODE_B));
	if (neuron_net_load(pool, n.data, n.size, &o, &net))
		fail_msg("%s", error.text);
	/* The network has what it needs of the file. */
	memset(n.data, 0, n.size);
	free(n.data);
	request_init(&r, 77);
	assert_int_equal(neuron_net_infer(net, r.io, 2, NULL), 0);
	request_check(&r, 77, 0x50 ^ 0x0f);
	request_free(&r);
	neuron_net_unload(net);
}

/* Whichever call of the driver fails: nothing stays. */
static void test_load_fails(void **state)
{
	struct neff_bytes n = net_neff();
	struct neuron_net_opts o = { .size = sizeof(o), .ops = ops, .nr_ops = 1 };
	uint64_t used = fake_used();
	struct neuron_net *net = NULL;
	unsigned int i;

	(void)state;
	for (i = 1; i < 1000; i++) {
		fake_fail(i, 0, ENOMEM);
		if (!neuron_net_load(pool, n.data, n.size, &o, &net))
			break;
		fake.fail_at = 0;
		assert_int_equal(fake_used(), used);
		assert_int_equal(neuron_pool_free(pool), NR_CORES);
	}
	fake.fail_at = 0;
	assert_in_range(i, 10, 900);
	neuron_net_unload(net);
	free(n.data);
}

#define DIRECT_EDGES "\"edges\": [" \
	"{\"name\": \"x\", \"bytes\": 1024, \"use\": \"input\"}," \
	"{\"name\": \"b\", \"bytes\": 1024}," \
	"{\"name\": \"y\", \"bytes\": 1024, \"use\": \"output\"}]"
#define NODE_C "{\"name\": \"last\", \"kelf\": 1, \"inputs\": [\"b\"], \"outputs\": [\"y\"]}"

/* From core to core, nothing of the host in between. */
static struct neff_bytes direct_neff(void)
{
	struct neuron_neff_writer *w = neuron_neff_writer_new();

	assert_non_null(w);
	add_kelf(w, 0, "x", "b");
	add_kelf(w, 1, "b", "y");
	return net_finish(w, NETWORK(DIRECT_EDGES, NODE_A "," NODE_C));
}

static const struct {
	struct neff_bytes (*neff)(void);
	uint8_t xor;
} networks[] = { { direct_neff, 0 }, { net_neff, 0xff } };

/* Nodes on two devices; inputs and outputs on either. */
static void test_two_devices(void **state)
{
	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct neuron_net *net = load(networks[k].neff(), NULL, 3);
		uint64_t used = fake_used();

		assert_int_equal(neuron_net_mode(net), NEURON_NET_NORMAL);
		for (uint8_t i = 0; i < 4; i++) {
			struct request r;

			request_on(&r, i, i & 1 ? second : device, i & 2 ? second : device);
			for (uint8_t n = 0; n < 4; n++) {
				assert_int_equal(neuron_net_infer(net, r.io, 2, NULL), 0);
				request_check(&r, i, networks[k].xor);
				assert_int_equal(neuron_mem_set(r.y, 0, 0xee, BYTES), 0);
			}
			request_free(&r);
		}
		/* Copies of an input and an output for each of the three requests. */
		assert_int_equal(fake_used() - used, 3 * 2 * 4096);
		neuron_net_unload(net);
	}
}

/* As many requests as the queue takes, and again. */
static void test_two_devices_queue(void **state)
{
	struct neuron_net *net = load(direct_neff(), NULL, 4);
	struct request r[4];

	(void)state;
	for (uint8_t i = 0; i < 4; i++)
		request_on(&r[i], i * 5, i & 1 ? second : device, i & 1 ? device : second);
	for (int round = 0; round < 3; round++) {
		for (uint8_t i = 0; i < 4; i++)
			assert_int_equal(neuron_net_submit(net, r[i].io, 2, &r[i].cookie), 0);
		for (uint8_t i = 0; i < 4; i++) {
			assert_int_equal(neuron_net_wait(net, r[i].cookie, -1, NULL), 0);
			request_check(&r[i], i * 5, 0);
		}
	}
	for (uint8_t i = 0; i < 4; i++)
		request_free(&r[i]);
	neuron_net_unload(net);
}

/* What a network on two devices cannot do, and copies that fail. */
static void test_two_devices_bad(void **state)
{
	struct neuron_net_result result = { .size = sizeof(result) };
	struct neuron_net *net = load(direct_neff(), NULL, 1);
	struct neuron_device *third;
	struct request r;
	unsigned int copies = 0, i;
	int ret = -1;

	(void)state;
	/* Memory of a device that is not among those of the group. */
	assert_int_equal(neuron_device_open(2, &third), 0);
	request_on(&r, 1, third, second);
	assert_int_equal(neuron_net_infer(net, r.io, 2, &result), -EINVAL);
	request_free(&r);
	request_on(&r, 1, device, third);
	assert_int_equal(neuron_net_infer(net, r.io, 2, &result), -EINVAL);
	request_free(&r);
	neuron_device_close(third);

	/* Whichever call fails: an error that says what, and the next request is well. */
	for (i = 1; i < 200 && ret; i++) {
		request_on(&r, (uint8_t)i, second, device);
		fake_fail(i, 0, EIO);
		ret = neuron_net_infer(net, r.io, 2, &result);
		fake.fail_at = 0;
		if (ret) {
			assert_int_equal(ret, -EIO);
			copies += result.nr_errors && strstr(result.errors[0], "copy of ");
			result.nr_errors = 0;
		}
		assert_int_equal(neuron_net_infer(net, r.io, 2, &result), 0);
		request_check(&r, (uint8_t)i, 0);
		request_free(&r);
	}
	assert_in_range(i, 5, 199);
	/* The first one to fail is memory for copies; then x, b and both halves of y. */
	assert_int_equal(copies, 4);
	neuron_net_unload(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
		cmocka_unit_test_setup_teardown(test_implicit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_host_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_isolate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_start_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L6_unpacked_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L11_cores, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tensors_of_both_cores, setup_pairs, teardown),
		cmocka_unit_test_setup_teardown(test_many_tensors, setup_pairs, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_cores, setup_pairs, teardown),
		cmocka_unit_test_setup_teardown(test_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cancel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pipeline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L17_full_eventfd, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L24_signals_of_a_stage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_options, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_networks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_object, setup, teardown),
		cmocka_unit_test_setup_teardown(test_params, setup, teardown),
		cmocka_unit_test_setup_teardown(test_load_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_devices, setup_two, teardown_two),
		cmocka_unit_test_setup_teardown(test_two_devices_queue, setup_two, teardown_two),
		cmocka_unit_test_setup_teardown(test_two_devices_bad, setup_two, teardown_two),
		cmocka_unit_test_setup_teardown(test_load_fails, setup_two, teardown_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * neuron-rtd on the driver of fake_driver.h.
 *
 * usage: mock OPTION...	the daemon
 *        mock neff FILE	write a model: y is x, but for the first 256 bytes; FILE.keep: x
 *			stays in the state buffer; FILE.show: y is what is there;
 *			FILE.large: needs more than a third of the device memory of a core;
 *			FILE.wide: is for 5 cores; FILE.host: has an operation on the host
 *        mock bench		inferences a second, with and without the daemon
 *
 * MOCK_RUN_US and MOCK_ALLOC_US are how long a run and an allocation take at least, and
 * MOCK_PARSE_US how long a message takes, MOCK_WATCH_US how long it takes from where a client is
 * listened to until its call waits, MOCK_PUBLISH_US from where a model can be found until its
 * load is answered, MOCK_UNLOAD_US how much longer it takes to unload one, and MOCK_START_US from
 * where a model is started until that is known; of the
 * first MOCK_UNWATCHED models no events can be had. SIGUSR1 lets the engines stop, and run again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "common/env.h"
#include "common/wait.h"
#include "fake_driver.h"
#include "remote.h"
#include "rtd/call.h"
#include "rtd/model.h"
#include "test_neffs.h"

#define BYTES 1024u
#define DEPTH 8u

int rtd_main(int argc, char **argv);
int __real_neuron_sys_ioctl(int fd, unsigned long cmd, void *arg);
int __wrap_neuron_sys_ioctl(int fd, unsigned long cmd, void *arg);

int __real_epoll_ctl(int fd, int operation, int of, struct epoll_event *event);
int __wrap_epoll_ctl(int fd, int operation, int of, struct epoll_event *event);

bool __real_call_parse(struct call *call, const ProtobufCMessageDescriptor *type);
bool __wrap_call_parse(struct call *call, const ProtobufCMessageDescriptor *type);

void __real_call_watch(struct call *call, call_cancelled_fn cancelled);
void __wrap_call_watch(struct call *call, call_cancelled_fn cancelled);

void __real_model_publish(struct client *client, struct model *model);
void __wrap_model_publish(struct client *client, struct model *model);

int __real_neuron_net_start(struct neuron_net *net);
int __wrap_neuron_net_start(struct neuron_net *net);

void __real_model_unload(struct model *model);
void __wrap_model_unload(struct model *model);

static unsigned long unload_us, run_us, alloc_us, parse_us, watch_us, publish_us, start_us;
static unsigned long unwatched;

int __wrap_neuron_sys_ioctl(int fd, unsigned long cmd, void *arg)
{
	if (run_us && cmd == NEURON_IOCTL_DMA_QUEUE_COPY_START)
		usleep((useconds_t)run_us);
	if (alloc_us && cmd == NEURON_NATIVE_MEM_ALLOC)
		usleep((useconds_t)alloc_us);
	if (alloc_us && cmd == NEURON_NATIVE_MEM_ALLOC_BULK)
		usleep((useconds_t)alloc_us *
		       ((const struct neuron_native_mem_alloc_bulk *)arg)->count);
	return __real_neuron_sys_ioctl(fd, cmd, arg);
}

/* Models are the only ones that the daemon watches for one event at a time. */
int __wrap_epoll_ctl(int fd, int operation, int of, struct epoll_event *event)
{
	if (operation == EPOLL_CTL_ADD && event->events & EPOLLONESHOT && unwatched) {
		unwatched--;
		errno = ENOSPC;
		return -1;
	}
	return __real_epoll_ctl(fd, operation, of, event);
}

bool __wrap_call_parse(struct call *call, const ProtobufCMessageDescriptor *type)
{
	usleep((useconds_t)parse_us);
	return __real_call_parse(call, type);
}

void __wrap_call_watch(struct call *call, call_cancelled_fn cancelled)
{
	__real_call_watch(call, cancelled);
	usleep((useconds_t)watch_us);
}

void __wrap_model_publish(struct client *client, struct model *model)
{
	__real_model_publish(client, model);
	usleep((useconds_t)publish_us);
}

void __wrap_model_unload(struct model *model)
{
	usleep((useconds_t)unload_us);
	__real_model_unload(model);
}

int __wrap_neuron_net_start(struct neuron_net *net)
{
	int ret = __real_neuron_net_start(net);

	usleep((useconds_t)start_us);
	return ret;
}

static void on_usr1(int number)
{
	(void)number;
	fake.stuck = !fake.stuck;
}

static unsigned long number_of(const char *name)
{
	unsigned long n = 0;

	if (env_text(name))
		env_number(env_text(name), 10000000, &n);
	return n;
}

/* One transfer between the state buffer and a tensor. */
static struct neff_bytes make_part(const char *tensor, const char *type, const char *from,
				   const char *to)
{
	char def[400], sp[300];
	const struct neff_file file = { "sg00/SP.json", sp, 0 };

	snprintf(def, sizeof(def),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\","
		 " \"dma_queue\": {\"q\": {\"type\": \"data\"}}, \"var\": {"
		 "\"sb\": {\"type\": \"state-buffer\", \"var_id\": 0, \"size\": 65536},"
		 "\"%s\": {\"type\": \"%s\", \"var_id\": 1, \"size\": %u}}}", tensor, type, BYTES);
	snprintf(sp, sizeof(sp),
		 "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": ["
		 "{\"op\": \"copy\", \"from\": \"%s\", \"to\": \"%s\","
		 " \"from_sizes\": [%u], \"from_steps\": [1],"
		 " \"to_sizes\": [%u], \"to_steps\": [1]}]}]}", from, to, BYTES, BYTES);
	return make_neff("part", def, &file, 1);
}

static struct neff_bytes make_large(void)
{
	static const char sp[] =
		"{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": ["
		"{\"op\": \"copy\", \"from\": \"x\", \"to\": \"t\","
		" \"from_sizes\": [1024], \"from_steps\": [1],"
		" \"to_sizes\": [1024], \"to_steps\": [1]}]}]}";
	const struct neff_file file = { "sg00/SP.json", sp, 0 };

	return make_neff("large",
			 "{\"name\": \"definition\", \"sp\": \"SP.json\","
			 " \"dma_queue\": {\"q\": {\"type\": \"data\"}}, \"var\": {"
			 "\"x\": {\"type\": \"input\", \"var_id\": 0, \"size\": 1024},"
			 "\"t\": {\"type\": \"tmp-buf\", \"var_id\": 1, \"size\": 9663676416}}}",
			 &file, 1);
}

static struct neff_bytes make_wide(void)
{
	struct neff_bytes n;

	neff_cores = 5;
	n = make_list_neff();
	neff_cores = 1;
	return n;
}

static int write_neff(const char *path, const char *suffix, struct neff_bytes n)
{
	char name[4096];
	FILE *file;
	int ret;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	file = fopen(name, "we");
	ret = !file || fwrite(n.data, 1, n.size, file) != n.size || fclose(file);
	free(n.data);
	return ret;
}

/* ---- the bench ----------------------------------------------------------------------------- */

static uint64_t rate(unsigned int nr, uint64_t ns)
{
	return nr * 1000000000ull / ns;
}

/* DEPTH requests under way, each with its inputs written and outputs read. */
static uint64_t direct(unsigned int nr)
{
	struct neff_bytes neff = make_list_neff();
	const struct neuron_net_opts opts = { .size = sizeof(opts), .depth = DEPTH };
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_pool *pool;
	struct neuron_net *net;
	struct neuron_io io[DEPTH][2];
	struct neuron_mem *mem[DEPTH][2];
	uint64_t cookies[DEPTH], start;
	uint8_t data[BYTES] = { 0 };

	assert_int_equal(neuron_device_open(0, &device), 0);
	assert_int_equal(neuron_core_open(device, 0, NULL, &core), 0);
	assert_int_equal(neuron_pool_open(&core, 1, &pool), 0);
	assert_int_equal(neuron_net_load(pool, neff.data, neff.size, &opts, &net), 0);
	for (unsigned int i = 0; i < DEPTH; i++)
		for (unsigned int k = 0; k < 2; k++) {
			assert_int_equal(neuron_mem_alloc(device, BYTES, NULL, &mem[i][k]), 0);
			io[i][k] = (struct neuron_io){ k ? "y" : "x", mem[i][k], 0, BYTES };
		}
	start = now_ns();
	for (unsigned int i = 0; i < nr + DEPTH; i++) {
		struct neuron_net_result result = { .size = sizeof(result) };
		unsigned int s = i % DEPTH;

		if (i >= DEPTH) {
			assert_int_equal(neuron_net_wait(net, cookies[s], -1, &result), 0);
			assert_int_equal(result.status, 0);
			assert_int_equal(neuron_mem_read(mem[s][1], 0, data, BYTES), 0);
		}
		if (i >= nr)
			continue;
		assert_int_equal(neuron_mem_write(mem[s][0], 0, data, BYTES), 0);
		assert_int_equal(neuron_net_submit(net, io[s], 2, &cookies[s]), 0);
	}
	start = now_ns() - start;
	neuron_net_unload(net);
	for (unsigned int i = 0; i < 2 * DEPTH; i++)
		neuron_mem_free(mem[i / 2][i % 2]);
	neuron_pool_close(pool);
	neuron_core_close(core);
	neuron_device_close(device);
	free(neff.data);
	return rate(nr, start);
}

static uint64_t load_remote(void)
{
	Rtd__LoadRequest request = RTD__LOAD_REQUEST__INIT;
	Rtd__LoadResponse *response;
	struct neff_bytes neff = make_list_neff();
	uint64_t model;

	request.neff.data = neff.data;
	request.neff.len = neff.size;
	request.depth = DEPTH;
	response = remote_call("/rtd.Runtime/Load", &request.base,
			       &rtd__load_response__descriptor);
	assert_non_null(response);
	model = response->model;
	rtd__load_response__free_unpacked(response, NULL);
	free(neff.data);
	return model;
}

static uint64_t remote(unsigned int nr, const char *path)
{
	Rtd__InferRequest request = RTD__INFER_REQUEST__INIT;
	Rtd__Tensor x = RTD__TENSOR__INIT, *inputs = &x;
	uint8_t data[BYTES] = { 0 };
	struct remote calls[DEPTH];
	uint64_t start;

	remote_open(path);
	x.name = (char *)"x";
	x.data = (ProtobufCBinaryData){ sizeof(data), data };
	request.inputs = &inputs;
	request.n_inputs = 1;
	request.model = load_remote();
	start = now_ns();
	for (unsigned int i = 0; i < nr + DEPTH; i++) {
		struct remote *r = i < DEPTH ? &calls[i] : remote_next();

		if (i >= DEPTH) {
			assert_int_equal(r->status, GRPC_STATUS_OK);
			remote_end(r);
		}
		if (i < nr)
			remote_start(r, "/rtd.Runtime/Infer", &request.base);
	}
	start = now_ns() - start;
	grpc_channel_destroy(channel);
	return rate(nr, start);
}

static pid_t start_daemon(const char *path)
{
	char *argv[] = { (char *)"mock", (char *)"-c", (char *)"/dev/null", (char *)"-g",
			 (char *)path, NULL };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t pid = fork();

	if (!pid) {
		optind = 1;
		_exit(rtd_main(5, argv));
	}
	strcpy(address.sun_path, path);
	for (int i = 0; i < 500 && connect(fd, (void *)&address, sizeof(address)); i++)
		usleep(20000);
	close(fd);
	return pid;
}

static int bench(void)
{
	static const unsigned long device_us[] = { 0, 100, 300, 1000 };
	char path[] = "/tmp/rtd-bench-XXXXXX";
	int bad = 0;

	close(mkstemp(path));
	unlink(path);
	printf("| a run takes, us | libneuron, a second | neuron-rtd, a second | ratio |\n");
	printf("| --- | --- | --- | --- |\n");
	for (size_t i = 0; i < 4 && !bad; i++) {
		const unsigned int nr = 4000;
		pid_t pid;
		uint64_t a, b;
		int status;

		run_us = device_us[i];
		/* Before there is a thread of gRPC. */
		fflush(stdout);
		pid = start_daemon(path);
		if (!fork()) {
			a = direct(nr);
			b = remote(nr, path);
			printf("| %lu | %lu | %lu | %.2f |\n", run_us, a, b, (double)b / (double)a);
			fflush(stdout);
			_exit(0);
		}
		/* The client, which ends first. */
		bad = waitpid(-1, &status, 0) == pid || status;
		kill(pid, SIGTERM);
		waitpid(pid, &status, 0);
	}
	return bad;
}

int main(int argc, char **argv)
{
	int ret;

	run_us = number_of("MOCK_RUN_US");
	alloc_us = number_of("MOCK_ALLOC_US");
	parse_us = number_of("MOCK_PARSE_US");
	watch_us = number_of("MOCK_WATCH_US");
	publish_us = number_of("MOCK_PUBLISH_US");
	start_us = number_of("MOCK_START_US");
	unload_us = number_of("MOCK_UNLOAD_US");
	unwatched = number_of("MOCK_UNWATCHED");
	signal(SIGUSR1, on_usr1);
	if (argc == 3 && !strcmp(argv[1], "neff"))
		return write_neff(argv[2], "", make_list_neff()) ||
		       write_neff(argv[2], ".keep", make_part("x", "input", "x", "sb")) ||
		       write_neff(argv[2], ".show", make_part("y", "output", "sb", "y")) ||
		       write_neff(argv[2], ".large", make_large()) ||
		       write_neff(argv[2], ".wide", make_wide()) ||
		       write_neff(argv[2], ".host", net_neff());
	if (argc == 2 && !strcmp(argv[1], "bench"))
		return bench();
	ret = rtd_main(argc, argv);
	if (!ret && (fake.left_bytes || fake.left_handles || fake.dev[0].opens)) {
		fprintf(stderr, "left on the device: %lu bytes, %u handles, %u opens\n",
			fake.left_bytes, fake.left_handles, fake.dev[0].opens);
		ret = 99;
	}
	return ret;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * neuron-rtd on a device, in a guest: what a client that is killed had comes back, and so does
 * everything when the daemon is killed.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "remote.h"
#include "../vm/guest/nrt_guest.h"

#define PATH "/run/rtd.sock"

static struct counters start, idle, now;
static struct neff neff;

/* ---- clients, each a process of its own ------------------------------------------------- */

static uint64_t load(void)
{
	Rtd__LoadRequest request = RTD__LOAD_REQUEST__INIT;
	Rtd__LoadResponse *response;
	uint64_t model = 0;

	request.neff.data = neff.data;
	request.neff.len = neff.size;
	request.depth = 2;
	response = remote_call("/rtd.Runtime/Load", &request.base,
			       &rtd__load_response__descriptor);
	if (response)
		model = response->model;
	protobuf_c_message_free_unpacked((ProtobufCMessage *)response, NULL);
	return model;
}

/* Is the output what it is to be? */
static bool infer(uint64_t model, uint8_t seed)
{
	Rtd__InferRequest request = RTD__INFER_REQUEST__INIT;
	Rtd__Tensor x = RTD__TENSOR__INIT, *inputs = &x;
	Rtd__InferResponse *response;
	uint8_t data[LIST_IN];
	bool right;

	for (unsigned int i = 0; i < LIST_IN; i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
	x.name = (char *)"x";
	x.data = (ProtobufCBinaryData){ sizeof(data), data };
	request.model = model;
	request.inputs = &inputs;
	request.n_inputs = 1;
	response = remote_call("/rtd.Runtime/Infer", &request.base,
			       &rtd__infer_response__descriptor);
	right = response && !response->status && response->n_outputs == 1 &&
		response->outputs[0]->data.len == LIST_OUT &&
		list_right(data, response->outputs[0]->data.data);
	protobuf_c_message_free_unpacked((ProtobufCMessage *)response, NULL);
	return right;
}

static int free_cores(uint32_t *cores)
{
	const Rtd__Empty empty = RTD__EMPTY__INIT;
	Rtd__StatusResponse *s = remote_call("/rtd.Runtime/Status", &empty.base,
					     &rtd__status_response__descriptor);
	int nr = s ? (int)s->free_cores : -1;

	*cores = s ? s->cores : 0;
	protobuf_c_message_free_unpacked((ProtobufCMessage *)s, NULL);
	return nr;
}

enum { RIGHT, NOT_LOADED, WRONG, NOT_FREE };

static int client(int ready, bool on)
{
	uint64_t model;
	uint32_t cores;
	int nr;

	remote_open(PATH);
	nr = free_cores(&cores);
	if (nr < 1 || nr != (int)cores)
		return NOT_FREE;
	model = load();
	if (!model)
		return NOT_LOADED;
	for (unsigned int i = 0; i < 20; i++)
		if (!infer(model, (uint8_t)i))
			return WRONG;
	if (free_cores(&cores) != nr - 1)
		return NOT_FREE;
	if (write(ready, "r", 1) != 1)
		return WRONG;
	while (on)
		if (!infer(model, 1))
			return WRONG;
	return RIGHT;
}

/* With @on, it goes on until it is killed or gets no right answer. */
static pid_t start_client(bool on)
{
	int ready[2];
	pid_t pid;
	char c;

	fflush(stdout);
	if (pipe(ready))
		exit(1);
	pid = fork();
	if (!pid) {
		close(ready[0]);
		_exit(client(ready[1], on));
	}
	close(ready[1]);
	CHECK(read(ready[0], &c, 1) == 1, "a client's model computes what it is to, on one core");
	close(ready[0]);
	return pid;
}

static int end_of(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* ---- the daemon ---------------------------------------------------------------------------- */

static pid_t start_daemon(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = PATH };
	pid_t pid = fork();
	int fd;

	if (!pid) {
		execl("/usr/bin/neuron-rtd", "neuron-rtd", "-x", "-g", PATH, NULL);
		_exit(127);
	}
	for (int i = 0; i < 3000; i++) {
		int err;

		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		err = connect(fd, (const void *)&address, sizeof(address));
		close(fd);
		if (!err)
			return pid;
		usleep(10000);
	}
	CHECK(false, "the daemon starts");
	exit(1);
}

static uint64_t device_memory(const struct counters *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->nr; i++)
		if (strstr(counter_name[i], "device_mem"))
			sum += c->value[i];
	return sum;
}

/* Later than the client ends: the daemon unloads its model. */
static bool comes_to(const struct counters *want)
{
	for (int i = 0; i < 1000; i++) {
		counters_take(&now);
		if (!memcmp(now.value, want->value, want->nr * sizeof(*want->value)))
			return true;
		usleep(10000);
	}
	return counters_equal(want, &now);
}

/* The daemon keeps the notification queues of cores that it has opened: in host memory. */
static bool comes_to_idle(void)
{
	for (int i = 0; i < 1000; i++) {
		counters_take(&idle);
		if (!device_memory(&idle))
			return true;
		usleep(10000);
	}
	return false;
}

int main(void)
{
	pid_t daemon, pid;

	neff_list(&neff);
	counters_take(&start);
	CHECK(!counters_sum(&start), "all counters are 0 at the start");
	daemon = start_daemon();
	pid = start_client(false);
	CHECK(end_of(pid) == RIGHT, "a client ends by itself");
	CHECK(comes_to_idle(), "and no device memory is in use");
	for (int i = 0; i < 3; i++) {
		pid = start_client(true);
		counters_take(&now);
		CHECK(device_memory(&now), "it has memory of the device");
		usleep(10000 + 7000 * (useconds_t)i);
		kill(pid, SIGKILL);
		CHECK(end_of(pid) == 1000 + SIGKILL, "it is killed");
		CHECK(comes_to(&idle), "and all counters are as before, those of device memory 0");
	}
	pid = start_client(false);
	CHECK(end_of(pid) == RIGHT, "the next client finds all cores free");
	CHECK(comes_to(&idle), "and leaves nothing either");

	pid = start_client(true);
	kill(daemon, SIGKILL);
	CHECK(end_of(daemon) == 1000 + SIGKILL, "the daemon is killed");
	CHECK(end_of(pid) == WRONG, "its client is told that its call has failed");
	CHECK(comes_to(&start), "and all counters are 0 again");
	daemon = start_daemon();
	pid = start_client(false);
	CHECK(end_of(pid) == RIGHT, "the next daemon serves the next client");
	kill(daemon, SIGTERM);
	CHECK(end_of(daemon) == 0, "and ends when it is told to");
	CHECK(comes_to(&start), "with all counters at 0");
	return failed != 0;
}

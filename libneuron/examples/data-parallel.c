// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The same network on two core groups, fed with one stream of requests: data parallelism
 * with queues of a fixed depth. For a NEFF with an input "x" and an output "y".
 *
 *	cc data-parallel.c $(pkg-config --cflags --libs neuron)
 */
#include <neuron/neuron.h>

#include "example.h"

#define GROUPS 2
#define DEPTH 2
#define REQUESTS 12

struct request {
	struct neuron_mem *x, *y;
	struct neuron_net *net;		/* that has it */
	uint64_t cookie;
};

static struct neuron_mem *tensor(struct neuron_device *device, uint64_t bytes)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };
	struct neuron_mem *mem;

	check(neuron_mem_alloc(device, bytes, &opts, &mem), "tensor");
	return mem;
}

/* Wait for a request and look at its answer. */
static void finish(struct request *r, unsigned int number)
{
	struct neuron_net_result result = { .size = sizeof(result) };
	size_t size = neuron_mem_bytes(r->y);
	uint8_t *bytes = malloc(size);

	check(neuron_net_wait(r->net, r->cookie, -1, &result), "wait");
	if (result.status)
		errx(1, "request %u: %s", number, result.errors[0]);
	check(neuron_mem_read(r->y, 0, bytes, size), "y");
	printf("request %u: checksum %08x\n", number, checksum(bytes, size));
	free(bytes);
	neuron_mem_free(r->x);
	neuron_mem_free(r->y);
}

int main(int argc, char **argv)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts opts = { .size = sizeof(opts), .depth = DEPTH, .error = &error };
	struct request requests[REQUESTS];
	struct neuron_core *cores[GROUPS];
	struct neuron_net *nets[GROUPS];
	uint64_t x_size = 0, y_size = 0;
	struct neuron_device *device;
	struct neuron_pool *pool;
	unsigned int done = 0;
	struct file neff;

	if (argc != 2)
		errx(2, "usage: data-parallel FILE.neff");
	neff = map_file(argv[1]);
	check(neuron_device_open(0, &device), "device 0");
	for (uint32_t i = 0; i < GROUPS; i++)
		check(neuron_core_open(device, i, NULL, &cores[i]), "core");
	check(neuron_pool_open(cores, GROUPS, &pool), "pool");
	/* Without a group, a network makes its own of free cores, and runs at once. */
	for (uint32_t i = 0; i < GROUPS; i++)
		if (neuron_net_load(pool, neff.bytes, neff.size, &opts, &nets[i]))
			errx(1, "%s: %s", argv[1], error.text);
	for (size_t i = 0; i < neuron_net_tensor_count(nets[0]); i++) {
		struct neuron_tensor_info info = { .size = sizeof(info) };

		check(neuron_net_tensor_info(nets[0], i, &info), "tensor");
		*(info.usage == NEURON_TENSOR_INPUT ? &x_size : &y_size) = info.bytes;
	}

	for (unsigned int i = 0; i < REQUESTS; i++) {
		struct request *r = &requests[i];
		uint8_t *bytes = malloc(x_size);
		struct neuron_io io[2];
		int ret;

		r->x = tensor(device, x_size);
		r->y = tensor(device, y_size);
		r->net = nets[i % GROUPS];
		fill(bytes, x_size, i);
		check(neuron_mem_write(r->x, 0, bytes, x_size), "x");
		free(bytes);
		io[0] = (struct neuron_io){ "x", r->x, 0, x_size };
		io[1] = (struct neuron_io){ "y", r->y, 0, y_size };
		/* A full queue says so: take the oldest answer, and try again. */
		while ((ret = neuron_net_submit(r->net, io, 2, &r->cookie)) == -EAGAIN) {
			finish(&requests[done], done);
			done++;
		}
		check(ret, "submit");
	}
	for (; done < REQUESTS; done++)
		finish(&requests[done], done);

	for (uint32_t i = 0; i < GROUPS; i++) {
		neuron_net_unload(nets[i]);
		neuron_core_close(cores[i]);
	}
	neuron_pool_close(pool);
	neuron_device_close(device);
	return 0;
}

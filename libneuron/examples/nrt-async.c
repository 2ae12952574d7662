// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Queue executions and sleep until an eventfd tells of their ends, as a server with an
 * event loop does. For a NEFF with an input "x" and an output "y".
 *
 *	cc nrt-async.c $(pkg-config --cflags --libs nrt)
 */
#include <poll.h>
#include <sys/eventfd.h>

#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>

#include "example.h"

#define REQUESTS 4

struct request {
	nrt_tensor_set_t *inputs, *outputs;
	nrt_tensor_t *x, *y;
	NRT_STATUS status;	/* written when it is complete */
};

static void ok(NRT_STATUS status, const char *what)
{
	if (status != NRT_SUCCESS)
		errx(1, "%s: %s", what, nrt_get_status_as_str(status));
}

static void prepare(struct request *r, unsigned int seed, size_t x_size, size_t y_size)
{
	uint8_t *bytes = malloc(x_size);

	ok(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, x_size, "x", &r->x), "x");
	ok(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, y_size, "y", &r->y), "y");
	ok(nrt_allocate_tensor_set(&r->inputs), "inputs");
	ok(nrt_allocate_tensor_set(&r->outputs), "outputs");
	ok(nrt_add_tensor_to_tensor_set(r->inputs, "x", r->x), "x");
	ok(nrt_add_tensor_to_tensor_set(r->outputs, "y", r->y), "y");
	fill(bytes, x_size, seed);
	ok(nrt_tensor_write(r->x, bytes, 0, x_size), "x");
	free(bytes);
}

static void finish(struct request *r, unsigned int number, size_t y_size)
{
	uint8_t *bytes = malloc(y_size);

	ok(r->status, "execution");
	ok(nrt_tensor_read(r->y, bytes, 0, y_size), "y");
	printf("request %u: checksum %08x\n", number, checksum(bytes, y_size));
	free(bytes);
	nrt_destroy_tensor_set(&r->inputs);
	nrt_destroy_tensor_set(&r->outputs);
	nrt_tensor_free(&r->x);
	nrt_tensor_free(&r->y);
}

int main(int argc, char **argv)
{
	struct pollfd wait = { .events = POLLIN };
	struct request requests[REQUESTS];
	size_t x_size = 0, y_size = 0;
	nrt_tensor_info_array_t *info;
	unsigned int done = 0;
	nrt_model_t *model;
	struct file neff;

	if (argc != 2)
		errx(2, "usage: nrt-async FILE.neff");
	neff = map_file(argv[1]);
	ok(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), "nrt_init");
	ok(nrt_load(neff.bytes, neff.size, 0, -1, &model), argv[1]);
	ok(nrt_get_model_tensor_info(model, &info), "tensor info");
	for (uint64_t i = 0; i < info->tensor_count; i++)
		*(info->tensor_array[i].usage == NRT_TENSOR_USAGE_INPUT ? &x_size : &y_size) =
			info->tensor_array[i].size;
	nrt_free_model_tensor_info(info);

	/* One descriptor for all executions of core 0. */
	wait.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wait.fd < 0)
		err(1, "eventfd");
	ok(nrta_event_register_xu_completion(0, NRTA_XU_COMPUTE, 0, wait.fd), "eventfd");
	for (unsigned int i = 0; i < REQUESTS; i++) {
		struct request *r = &requests[i];

		prepare(r, i, x_size, y_size);
		/* NRT_QUEUE_FULL would say: wait for one of them first. */
		ok(nrta_execute_schedule(model, r->inputs, r->outputs, 0, &r->status, NULL), "queue");
	}
	while (done < REQUESTS) {
		uint64_t n;

		if (poll(&wait, 1, -1) != 1 || read(wait.fd, &n, sizeof(n)) != sizeof(n))
			err(1, "poll");
		/* They end in the order in which they were queued. */
		for (; n; n--, done++)
			finish(&requests[done], done, y_size);
	}
	close(wait.fd);
	nrt_unload(model);
	nrt_close();
	return 0;
}

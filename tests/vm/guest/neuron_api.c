// SPDX-License-Identifier: GPL-2.0-only
/* libneuron on the software device: discovery, memory, own rings, notifications. */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <neuron/neuron.h>

#include "nrt_guest.h"

static struct counters start, now;

static struct neuron_mem *alloc(struct neuron_device *d, uint64_t bytes,
				enum neuron_mem_category category)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .nc = 1, .category = category };
	struct neuron_mem *mem = NULL;

	if (neuron_mem_alloc(d, bytes, &opts, &mem)) {
		printf("not ok - memory\n");
		exit(1);
	}
	return mem;
}

static bool signalled(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t n;

	return poll(&p, 1, 60000) == 1 && read(fd, &n, sizeof(n)) == sizeof(n) && n == 1;
}

static void test_eventfds(struct neuron_device *d)
{
	struct neuron_mem *a = alloc(d, 1 << 20, NEURON_MEM_TENSORS);
	struct neuron_mem *b = alloc(d, 1 << 20, NEURON_MEM_TENSORS);
	int ev = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	uint32_t word = 0x1234, got = 0;

	CHECK(neuron_mem_copy_finish(b, a) == -EINVAL, "no copy was started");
	CHECK(neuron_mem_copy_start(b, 1, a, 0, 1 << 20, ev) == -EINVAL, "over the end");
	CHECK(!neuron_mem_write(a, (1 << 20) - 4, &word, 4) &&
	      !neuron_mem_copy_start(b, 0, a, 0, 1 << 20, ev), "start a copy");
	CHECK(neuron_mem_copy_start(b, 0, a, 0, 4, ev) == -EBUSY, "another one: not yet");
	CHECK(signalled(ev) && !neuron_mem_copy_finish(b, a) &&
	      !neuron_mem_read(b, (1 << 20) - 4, &got, 4) && got == word, "it is done");
	CHECK(neuron_mem_copy_start(b, 0, a, 0, 4, neuron_device_fd(d)) == -EINVAL &&
	      !neuron_mem_copy_start(b, 0, a, 0, 4, -1) && !neuron_mem_copy_finish(b, a),
	      "with what is no eventfd, and with none");

	CHECK(neuron_device_set_reset_eventfd(d, 3, ev) == -ENOENT, "core that nobody uses");
	CHECK(!neuron_semaphore_set(d, 3, 1, 1) && !neuron_device_set_reset_eventfd(d, 3, ev) &&
	      !neuron_device_reset(d, 1 << 3) && signalled(ev), "reset is told");
	CHECK(!neuron_device_set_reset_eventfd(d, 3, -1), "no longer");
	neuron_mem_free(a);
	neuron_mem_free(b);
	close(ev);
}

static void test_discovery(void)
{
	struct neuron_device_entry *list;
	size_t n;

	CHECK(!neuron_device_list(&list, &n) && n == 1, "one device is found");
	CHECK(n && !strcmp(list[0].path, "/dev/neuron0") && list[0].nr_cores == 8 &&
	      !strcmp(list[0].name, "Trainium2") && list[0].syspath[0] == '/', "with its names");
	neuron_device_list_free(list);
}

/* A program that waits for devices hears of them. */
static void test_monitor(void)
{
	struct neuron_monitor_event event;
	struct neuron_monitor *m;
	FILE *uevent;

	CHECK(!neuron_monitor_open(&m) && neuron_monitor_fd(m) >= 0, "monitor");
	CHECK(neuron_monitor_read(m, &event, 20) == -ETIMEDOUT, "nothing happens");
	uevent = fopen(DEVICES "/neuron0/uevent", "w");
	CHECK(uevent && fputs("change", uevent) >= 0 && !fclose(uevent), "something does");
	CHECK(!neuron_monitor_read(m, &event, 10000) && event.action == NEURON_DEVICE_CHANGED &&
	      event.entry.index == 0 && !strcmp(event.entry.path, "/dev/neuron0"), "and is heard of");
	neuron_monitor_close(m);
}

static void test_memory(struct neuron_device *d)
{
	struct neuron_mem_failure why;
	struct neuron_mem_opts opts = { .size = sizeof(opts), .failure = &why,
					.category = NEURON_MEM_TENSORS };
	struct neuron_hbm_stats s = { .size = sizeof(s) };
	struct neuron_mem *a = alloc(d, 100000, NEURON_MEM_TENSORS), *b, *huge;
	struct neuron_mem_info info = { .size = sizeof(info) };
	static uint8_t in[100000], out[100000];
	const uint64_t pages = (sizeof(in) + PAGE - 1) / PAGE * PAGE;
	void *va;

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 7 + i / 256);
	CHECK(!neuron_mem_read(a, 0, out, sizeof(out)) && !memcmp(out, (uint8_t[100]){ 0 }, 100),
	      "memory reads as zero");
	CHECK(!neuron_mem_write(a, 1, in, 99999) && !neuron_mem_read(a, 0, out, 100000) &&
	      !out[0] && !memcmp(out + 1, in, 99999), "write and read");
	CHECK(!neuron_mem_get_info(a, &info) && info.bytes == pages && !info.host &&
	      info.pid == (uint64_t)getpid(), "info");
	b = alloc(d, 100000, NEURON_MEM_TENSORS);
	CHECK(!neuron_mem_copy(b, 10, a, 1, 99990) && !neuron_mem_read(b, 10, out, 99990) &&
	      !memcmp(out, in, 99990), "copy");
	CHECK(!neuron_mem_set(b, 50, 0xab, 60000) && !neuron_mem_read(b, 50, out, 60001) &&
	      out[0] == 0xab && out[59999] == 0xab && out[60000] == in[60040], "set");
	CHECK(!neuron_mem_map(b, &va) && !memcmp((uint8_t *)va + 50, out, 60001), "map");
	CHECK(!neuron_hbm_get_stats(d, 0, &s) && s.by_category[NEURON_MEM_TENSORS] == 2 * pages &&
	      s.by_core[1] >= 2 * pages && s.used + s.free + s.reserved == s.total, "statistics");
	CHECK(neuron_mem_alloc(d, s.total, &opts, &huge) == -ENOMEM &&
	      why.reason == NEURON_MEM_REASON_FULL && why.free == s.free && why.total == s.total,
	      "too much is refused, with the figures");
	opts.align = 12345;
	CHECK(neuron_mem_alloc(d, 4096, &opts, &huge) == -EINVAL, "so is a bad alignment");
	opts.align = 0;
	opts.hbm = 99;
	CHECK(neuron_mem_alloc(d, 4096, &opts, &huge) == -EINVAL, "and an HBM that is not there");
	neuron_mem_free(a);
	neuron_mem_free(b);
}

static void test_rings(struct neuron_device *d)
{
	const struct neuron_geometry *g = neuron_device_geometry(d);
	uint32_t engine = g->engines_per_core + 3, value = 99;
	struct neuron_mem *data = alloc(d, 1 << 20, NEURON_MEM_TENSORS);
	struct neuron_mem *tx = alloc(d, 64 * 16, NEURON_MEM_RINGS);
	struct neuron_mem *rx = alloc(d, 64 * 16, NEURON_MEM_RINGS);
	struct neuron_queue_setup setup = { engine, 2, tx, rx, 64, 64 };
	struct neuron_queue_state state = { .size = sizeof(state) };
	struct neuron_nq_opts opts = { .size = sizeof(opts), .nc = 1, .type = NEURON_NQ_ERROR };
	struct neuron_descriptor t[10], r[10];
	uint64_t base = neuron_mem_address(data);
	static uint8_t in[65536], out[65536];
	struct neuron_notice notice;
	struct neuron_nq *nq;
	int err;
	int tries = 0;

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i ^ i >> 8);
	in[0] = 1;
	in[1] = in[2] = in[3] = 0;
	CHECK(!neuron_device_reset(d, 2) && !neuron_nq_open(d, &opts, &nq), "error queue");
	CHECK(!neuron_mem_write(data, 0, in, sizeof(in)), "data");
	for (int i = 0; i < 8; i++)
		neuron_descriptor_copy(&t[i], &r[i], base + (i + 1) * 65536, base + i * 65536,
				       65536, false);
	neuron_descriptor_copy(&t[8], &r[8], g->tpb_base[1] + NEURON_ISA_SEM_INC_OFF(7), base, 4, true);
	CHECK(!neuron_queue_write(d, tx, NEURON_RING_TX, 0, t, 9) &&
	      !neuron_queue_write(d, rx, NEURON_RING_RX, 0, r, 9) &&
	      !neuron_queue_init(d, &setup, 1) && !neuron_queue_start(d, engine, 2, 9, 9),
	      "ring of 9 descriptors");
	do {
		usleep(1000);
	} while (!neuron_semaphore_read(d, 1, 7, &value) && !value && ++tries < 5000);
	CHECK(value == 1, "its last one counts a semaphore");
	CHECK(!neuron_mem_read(data, 8 * 65536, out, 65536) && !memcmp(in, out, 65536),
	      "each copied what the one before wrote");
	CHECK(!neuron_queue_get_state(d, engine, 2, &state) && state.tx.head == 9 && state.rx.tail == 9,
	      "state of the queue");
	CHECK(neuron_nq_wait(nq, &notice, 10) == -ETIMEDOUT, "no error");

	/* Behind the memory there is nobody's. */
	neuron_descriptor_copy(&t[9], &r[9], base, g->hbm[3].base + (20ull << 30), 64, false);
	err = neuron_queue_write(d, tx, NEURON_RING_TX, 9, &t[9], 1);
	CHECK(!neuron_queue_write(d, rx, NEURON_RING_RX, 9, &r[9], 1), "a good destination");
	if (is_checked())
		CHECK(err == -EACCES, "a descriptor that points elsewhere is refused: %d", err);
	else
		CHECK(!err && !neuron_queue_start(d, engine, 2, 1, 1) &&
		      !neuron_nq_wait(nq, &notice, 10000) &&
		      notice.kind == NEURON_ISA_NOTICE_DMA_ERROR &&
		      notice.code == NEURON_ISA_ERR_DMA_ACCESS && notice.queue == 2,
		      "one that points elsewhere stops the queue, and poll() wakes up for it");
	CHECK(!neuron_queue_release(d, engine, 2), "release");
	neuron_nq_close(nq);
	neuron_mem_free(tx);
	neuron_mem_free(rx);
	neuron_mem_free(data);
}

/* A core belongs to whoever programs it first. */
static void test_owner(struct neuron_device *d)
{
	struct neuron_core *core;
	int status;
	pid_t pid;

	CHECK(!neuron_core_open(d, 1, NULL, &core), "take core 1");
	pid = fork();
	if (!pid) {
		struct neuron_device *own;
		struct neuron_core *other;

		_exit(neuron_device_open(0, &own) || neuron_core_open(own, 1, NULL, &other) != -EBUSY ||
		      neuron_core_open(own, 2, NULL, &other) != 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status,
	      "another process cannot, but gets core 2");
	neuron_core_close(core);
}

int main(void)
{
	struct neuron_device_info info = { .size = sizeof(info) };
	struct neuron_device *d;

	counters_take(&start);
	test_discovery();
	test_monitor();
	CHECK(!neuron_device_open(0, &d) && neuron_device_index(d) == 0, "open");
	CHECK(neuron_device_open(63, &d) == -ENOENT, "a device that is not there");
	CHECK(!neuron_device_get_info(d, &info) && info.arch == 3 && info.compat_max, "info");
	test_memory(d);
	test_eventfds(d);
	test_rings(d);
	test_owner(d);
	neuron_device_close(d);
	counters_take(&now);
	CHECK(counters_equal(&start, &now), "all counters are back after close");
	return failed != 0;
}

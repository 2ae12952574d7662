// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults on demand: each is seen in all the places where a card's would be, and
 * the device works again after a reset.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <poll.h>
#include <sys/mman.h>
#include <time.h>

#include "emu.h"
#include "neuron_isa.h"

#define MIB	(1u << 20)
#define SEM	3
#define UNHEALTHY "stats/hardware/health_status/unhealthy_components"
#define EVENTS	"stats/hardware/health_status/hw_error_event"

static int fd, number, kmsg;
static struct neuron_native_geometry geo;
static uint64_t data_mem, data_pa, code_mem, code_pa, ring_mem[2];
static volatile struct neuron_isa_notice *errors, *notes;

/* ---- files ---- */

static const char *status(const char *counter)
{
	static char name[96];

	snprintf(name, sizeof(name), "neuron_core0/stats/status/%s/total", counter);
	return name;
}

/* Is there a new line in the kernel log that has both texts? */
static int logged(const char *text, const char *tail)
{
	char line[2048];
	int i, found = 0;
	ssize_t n;

	for (i = 0; i < 3000 && !found; i++) {
		while ((n = read(kmsg, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
			line[n > 0 ? n : 0] = '\0';
			found |= strstr(line, text) && strstr(line, tail);
		}
		if (!found)
			usleep(10000);
	}
	return found;
}

static int logged_hw(const char *name, const char *action)
{
	char text[256], tail[128];

	snprintf(text, sizeof(text), " NEURON_HW_ERR=%s instance-id=", name);
	snprintf(tail, sizeof(tail), " nd-id=%d nc-id=0 serial-num=%s action=%s", number,
		 text_read(emu_file(number, "info/serial_number")), action);
	return logged(text, tail);
}

/* ---- work ---- */

static uint64_t alloc_as(uint64_t bytes, int host, uint32_t type, uint64_t *pa)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = bytes, .mem_type = type,
		.flags = host ? NEURON_NATIVE_ALLOC_HOST : 0,
	};

	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "memory");
	if (pa)
		*pa = a.pa;
	return a.mem_handle;
}

static int buf_copy(uint64_t handle, void *buf, uint64_t size, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = buf, .size = size, .copy_to_mem_handle = to,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static volatile struct neuron_isa_notice *nq(uint32_t type, uint32_t engine)
{
	struct neuron_ioctl_notifications_init_v2 n = {
		.nq_type = type, .engine_index = engine, .size = 4096, .on_host_memory = 1,
	};
	void *map;

	if (call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &n))
		return NULL;
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, n.mmap_offset);
	return map == MAP_FAILED ? NULL : map;
}

/* Everything of core 0 from the start: reset, queues for errors and notes. */
static void begin(void)
{
	struct neuron_ioctl_device_reset r = { .nc_map = 1 };

	if (errors)
		munmap((void *)errors, 4096);
	if (notes)
		munmap((void *)notes, 4096);
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &r), "reset");
	errors = nq(NQ_TYPE_ERROR, 0);
	notes = nq(NQ_TYPE_NOTIFY, NEURON_ISA_ENGINE_POOL);
	CHECK(errors && notes, "notification queues");
}

/* Ring 1 of engine 0 works on one packet. */
static int packet(uint64_t dst, uint64_t src, uint32_t len, uint32_t meta)
{
	struct { uint32_t ctrl, meta; uint64_t addr; } tx = { len | 1u << 24 | 3u << 26,
		meta, src }, rx = { len | 1u << 24, 0, dst };
	struct neuron_ioctl_dma_queue_init init = {
		.qid = 1, .tx_handle = ring_mem[0], .rx_handle = ring_mem[1],
		.tx_desc_count = 32, .rx_desc_count = 32,
	};
	struct neuron_ioctl_dma_queue_copy_start s = {
		.qid = 1, .tx_desc_count = 1, .rx_desc_count = 1,
	};

	return buf_copy(ring_mem[0], &tx, sizeof(tx), 1) ?: buf_copy(ring_mem[1], &rx, sizeof(rx), 1) ?:
	       call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init) ?:
	       call(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &s);
}

static int copy(uint64_t dst, uint64_t src, uint32_t len)
{
	return packet(dst, src, len, 0x01080003);
}

static int cast(uint64_t dst, uint64_t src, uint32_t len)
{
	return packet(dst, src, len, NEURON_ISA_DMA_COMPUTE |
		      NEURON_ISA_DMA_OP(NEURON_ISA_DMA_CAST) |
		      NEURON_ISA_DMA_DST(NEURON_ISA_DT_FP32) |
		      NEURON_ISA_DMA_SRC(NEURON_ISA_DT_INT32));
}

static unsigned int queue_status(void)
{
	struct neuron_dma_queue_state tx, rx;
	struct neuron_ioctl_dma_queue_get_state g = { .qid = 1, .tx = &tx, .rx = &rx };

	return call(fd, NEURON_IOCTL_DMA_QUEUE_GET_STATE, &g) ? 0 : tx.sw_status;
}

static unsigned int semaphore(void)
{
	struct neuron_ioctl_semaphore s = { .semaphore_index = SEM };

	return call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s) ? ~0u : s.value;
}

/* Within @ms; 0: not seen. */
static int sem_reaches(unsigned int want, int ms)
{
	for (; ms > 0 && semaphore() != want; ms -= 10)
		usleep(10000);
	return semaphore() == want;
}

static int notice(volatile struct neuron_isa_notice *n, int ms)
{
	for (; ms > 0 && !n->phase; ms -= 10)
		usleep(10000);
	return n->phase & 1;
}

/* The pool engine fills memory of the core, says so, and counts a semaphore. */
static int execute(void)
{
	struct neuron_isa_inst code[] = {
		{ .opcode = NEURON_ISA_OP_PROLOGUE, .magic = NEURON_ISA_MAGIC,
		  .u.prologue = { .signature = htole32(NEURON_ISA_SIGNATURE),
				  .version = htole16(NEURON_ISA_VERSION),
				  .engine = htole16(NEURON_ISA_ENGINE_POOL) } },
		{ .opcode = NEURON_ISA_OP_MEMSET, .magic = NEURON_ISA_MAGIC,
		  .dst_dtype = NEURON_ISA_DT_INT32,
		  .u.tensor = { .dst_stride = htole32(64), .rows = htole32(4),
				.cols = htole32(16), .imm = htole32(7) } },
		{ .opcode = NEURON_ISA_OP_NOTIFY, .magic = NEURON_ISA_MAGIC,
		  .u.notify = { .id = htole32(5) } },
		{ .opcode = NEURON_ISA_OP_SEM_POST, .magic = NEURON_ISA_MAGIC,
		  .op = NEURON_ISA_POST_INC,
		  .u.sem = { .index = htole32(SEM), .value = htole32(1) } },
	};

	return buf_copy(code_mem, code, sizeof(code), 1) ?:
	       copy(geo.tpb_base[0] + NEURON_ISA_FIFO_OFF(NEURON_ISA_ENGINE_POOL), code_pa,
		    sizeof(code));
}

static int inject(const char *what, const char *count)
{
	char name[64];

	snprintf(name, sizeof(name), "inject_%s", what);
	return text_write(emu_knob(number, name), count);
}

/* Does the second page of the data begin with @want, soon? */
static int wrote(uint32_t want)
{
	uint32_t page[2048];
	int i;

	for (i = 0; i < 1000; i++) {
		if (buf_copy(data_mem, page, sizeof(page), 0))
			return 0;
		if (page[1024] == want)
			return 1;
		usleep(10000);
	}
	return 0;
}

/* ---- faults ---- */

static void test_alloc(void)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = 4096, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/debug/neuron/neuron%d/inject_mc_alloc", number);
	CHECK(!text_write(path, "2"), "make 2 allocations fail");
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC, &a) == ENOMEM && a.total &&
	      call(fd, NEURON_NATIVE_MEM_ALLOC, &a) == ENOMEM &&
	      a.reason == NEURON_NATIVE_REASON_FULL, "they do: ENOMEM, with figures");
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a) && !mem_free(fd, a.mem_handle),
	      "the next does not");
}

/* Work that meets a fault of @what stops its queue. */
static void test_stops(int (*work)(uint64_t dst, uint64_t src, uint32_t len), const char *what,
		       unsigned int code, const char *counter, const char *ecc,
		       const char *name, const char *action)
{
	char health[96] = "";
	struct pollfd p;
	unsigned long long before = emu_value(number, EVENTS);
	unsigned long long was = emu_value(number, status(counter));
	unsigned long long count = ecc ? emu_value(number, ecc) : 0;
	uint32_t page[2048];
	char byte;

	begin();
	p.fd = open(emu_file(number, EVENTS), O_RDONLY | O_CLOEXEC);
	p.events = POLLPRI | POLLERR;
	CHECK(read(p.fd, &byte, 1) == 1, "watch the count of errors");
	CHECK(!inject(what, "1") && !work(data_pa + 4096, data_pa, 4096), "%s", what);
	CHECK(notice(&errors[0], 10000) && errors[0].kind == NEURON_ISA_NOTICE_DMA_ERROR &&
	      errors[0].code == code, "error notification (kind %u code %u)", errors[0].kind,
	      errors[0].code);
	CHECK(le64toh(errors[0].data) == data_pa || !ecc, "of the source");
	CHECK(queue_status() == 3, "the queue is aborted");
	CHECK(!buf_copy(data_mem, page, sizeof(page), 0) && page[1024] == 0,
	      "nothing was written");
	CHECK(emu_comes_to(number, status(counter), was + 1), "%s counts", counter);
	CHECK(poll(&p, 1, 10000) == 1 &&
	      emu_comes_to(number, EVENTS, before + 1),
	      "who watches the health hears of it");
	if (ecc) {
		CHECK(emu_value(number, ecc) == count + 1, "%s counts", ecc);
		snprintf(health, sizeof(health), "stats/hardware/health_status/%s",
			 strrchr(ecc, '/') + 1);
		CHECK(emu_value(number, health) == count + 1, "and %s", health);
	}
	CHECK(logged_hw(name, action), "%s is in the kernel log", name);
	CHECK(!copy(geo.tpb_base[0] + NEURON_ISA_SEM_SET_OFF(SEM), data_pa, 4) &&
	      sem_reaches(1, 10000), "the queue works again when it is set up anew");
	close(p.fd);
}

static void test_ecc(void)
{
	test_stops(copy, "mem_ecc_uncorrected", NEURON_ISA_ERR_MEM_UE, "hw_hbm_ue_error",
		   "stats/hardware/mem_ecc_uncorrected", "HBM_UNCORRECTABLE_ERROR",
		   "TERMINATE_INSTANCE");
	CHECK(!strcmp(text_read(emu_file(number, UNHEALTHY)), "hbm"),
	      "the memory is unhealthy");
	CHECK(!text_write(emu_file(number, "stats/hardware/mem_ecc_uncorrected"), "x") &&
	      emu_value(number, "stats/hardware/mem_ecc_uncorrected") == 0 &&
	      !*text_read(emu_file(number, UNHEALTHY)),
	      "a write clears the count");
	test_stops(copy, "mem_ecc_repairable", NEURON_ISA_ERR_MEM_REPAIRABLE,
		   "hw_repairable_hbm_ue_error", "stats/hardware/mem_ecc_repairable_uncorrected",
		   "HBM_UNCORRECTABLE_ERROR", "RESET_DEVICE");
	test_stops(cast, "mem_ecc_uncorrected", NEURON_ISA_ERR_MEM_UE, "hw_hbm_ue_error",
		   "stats/hardware/mem_ecc_uncorrected", "HBM_UNCORRECTABLE_ERROR",
		   "TERMINATE_INSTANCE");
	test_stops(cast, "mem_ecc_repairable", NEURON_ISA_ERR_MEM_REPAIRABLE,
		   "hw_repairable_hbm_ue_error", "stats/hardware/mem_ecc_repairable_uncorrected",
		   "HBM_UNCORRECTABLE_ERROR", "RESET_DEVICE");

	begin();
	CHECK(!inject("mem_ecc_corrected", "2") &&
	      !copy(geo.tpb_base[0] + NEURON_ISA_SEM_SET_OFF(SEM), data_pa, 4) &&
	      sem_reaches(1, 10000), "corrected errors change nothing");
	CHECK(!cast(data_pa + 4096, data_pa, 4096) &&
	      emu_comes_to(number, "stats/hardware/mem_ecc_corrected", 2), "but are counted");
	CHECK(wrote(0x3f800000), "and a packet that computes is executed");

	begin();
	CHECK(!inject("sram_ecc_corrected", "1") && !execute() && sem_reaches(1, 10000) &&
	      emu_value(number, "stats/hardware/sram_ecc_corrected") == 1,
	      "nor do those of the state buffer");
	CHECK(!inject("sram_ecc_uncorrected", "1") && !execute() && notice(&errors[0], 10000) &&
	      errors[0].kind == NEURON_ISA_NOTICE_ERROR &&
	      errors[0].code == NEURON_ISA_ERR_SRAM_UE, "an uncorrected one stops the engine");
	CHECK(emu_comes_to(number, status("hw_nc_ue_error"), 1) &&
	      emu_value(number, "stats/hardware/sram_ecc_uncorrected") == 1, "and is counted");
	CHECK(logged_hw("SRAM_UNCORRECTABLE_ERROR", "TERMINATE_INSTANCE"), "and logged");
	CHECK(strstr(text_read(emu_file(number, UNHEALTHY)), "sram"),
	      "the state buffer is unhealthy");
	CHECK(emu_value(number, "stats/hardware/health_status/healthcheck_heartbeat") > 1000000000,
	      "the heart beats");
	begin();
	CHECK(!execute() && sem_reaches(1, 10000), "the engine works again after a reset");
}

static void test_engine(void)
{
	begin();
	CHECK(!inject("lost_notification", "1") && !execute() && sem_reaches(1, 10000) &&
	      !notes[0].phase, "a notification gets lost");
	CHECK(!execute() && sem_reaches(2, 10000) && notice(&notes[0], 10000) &&
	      le32toh(notes[0].id) == 5, "the next one does not");
	CHECK(!inject("hang", "1") && !execute() && !sem_reaches(3, 500) && !errors[0].phase,
	      "an engine hangs and says nothing");
	begin();
	CHECK(!execute() && sem_reaches(1, 10000), "it works again after a reset");
}

static void test_driver_copy(void)
{
	char buf[4096] = "x";

	CHECK(!inject("dma_abort", "1") && buf_copy(data_mem, buf, sizeof(buf), 1) == EIO,
	      "a copy of the driver fails: EIO");
	CHECK(!buf_copy(data_mem, buf, sizeof(buf), 0), "the next one does not");
}

/* Kernels that have fault injection have it here, too. */
static void test_attr(void)
{
	char buf[4096] = "x";

	if (access("/sys/kernel/debug/failslab", F_OK))
		return;
	CHECK(!text_write(emu_knob(number, "fail_dma_abort/probability"), "100") &&
	      buf_copy(data_mem, buf, sizeof(buf), 1) == EIO, "fault injection of the kernel");
	CHECK(!buf_copy(data_mem, buf, sizeof(buf), 1), "once, unless told otherwise");
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void test_reset(void)
{
	struct neuron_ioctl_device_reset r = { .nc_map = 1 };
	uint8_t ready = 9;
	double t;

	CHECK(!inject("reset", "1") && call(fd, NEURON_IOCTL_NC_RESET, &r) == EIO,
	      "a reset fails: EIO");
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_READY, &ready) && !ready &&
	      emu_value(number, "reset") == 2 &&
	      emu_value(number, "neuron_core0/stats/other_info/reset_fail_count/total") == 1,
	      "the device is not ready, and the failure counted");
	begin();
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_READY, &ready) && ready &&
	      emu_value(number, "reset") == 1,
	      "the next one works: ready");
	CHECK(!execute() && sem_reaches(1, 10000), "and so does the core");
	CHECK(!text_write(emu_knob(number, "reset_slow_msec"), "700") && !inject("reset_slow", "1"),
	      "make a reset slow");
	t = seconds();
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &r) && seconds() - t >= 0.7, "it is: %.2f s",
	      seconds() - t);
	CHECK(text_write(emu_file(number, "reset"), "1") == EBUSY,
	      "reset file while the device is open: EBUSY");
}

static void test_power(void)
{
	char text[64], raw[64];
	long long time, min[2], max[2], avg[2], i;
	char *buf = calloc(1, 2 * MIB);
	double t = seconds();

	do
		buf_copy(data_mem, buf, 2 * MIB, 1);
	while (seconds() - t < 2.5);
	free(buf);
	strcpy(text, text_read(emu_file(number, "stats/power/utilization")));
	strcpy(raw, text_read(emu_file(number, "stats/power/utilization_raw")));
	i = sscanf(text, "POWER_STATUS_VALID,%lld,%lld.%2lld,%lld.%2lld,%lld.%2lld", &time, &min[0],
		   &min[1], &max[0], &max[1], &avg[0], &avg[1]);
	CHECK(i == 7 && llabs(time - (long long)(uint32_t)time) == 0 && max[0] * 100 + max[1] > 0 &&
	      max[0] <= 100 && avg[0] <= max[0] && min[0] <= avg[0], "power after work: %s", text);
	CHECK(!strncmp(raw, "POWER_STATUS_VALID,", 19), "raw: %s", raw);
}

static void set_up(const char *name)
{
	number = emu_add(name);
	fd = emu_open(number, O_RDWR);
	CHECK(fd >= 0, "open");
	geo = geometry(fd);
	data_mem = alloc_as(2 * MIB, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, &data_pa);
	code_mem = alloc_as(4096, 0, NEURON_MEMALLOC_TYPE_CODE_DEVICE, &code_pa);
	ring_mem[0] = alloc_as(4096, 1, NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST, NULL);
	ring_mem[1] = alloc_as(4096, 1, NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST, NULL);
	CHECK(!buf_copy(data_mem, &(uint32_t){ 1 }, 4, 1), "data");
}

static void close_device(void)
{
	if (errors)
		munmap((void *)errors, 4096);
	if (notes)
		munmap((void *)notes, 4096);
	errors = notes = NULL;
	close(fd);
}

static void clean_up(const char *name)
{
	close_device();
	emu_del(name);
}

/* A counting semaphore set by DMA: how long it takes says how it was completed. */
static void test_completion(void)
{
	uint64_t set;
	double t;

	CHECK(!emu_mkdir("slow") && emu_set("slow", "completion", "never") == EINVAL &&
	      !emu_set("slow", "completion", "timer") &&
	      !emu_set("slow", "completion_nsec", "300000000"), "completion by timer, 300 ms");
	rmdir(emu_path("slow", ""));
	set_up("fast");
	set = geo.tpb_base[0] + NEURON_ISA_SEM_SET_OFF(SEM);
	begin();
	CHECK(!text_write(emu_knob(number, "completion_nsec"), "300000000") &&
	      !text_write(emu_knob(number, "completion"), "timer") &&
	      !strcmp(text_read(emu_knob(number, "completion")), "timer"), "completion by timer");
	t = seconds();
	CHECK(!copy(set, data_pa, 4) && sem_reaches(1, 10000) && seconds() - t >= 0.3,
	      "it takes its time: %.2f s", seconds() - t);
	begin();
	CHECK(!text_write(emu_knob(number, "completion"), "inline") && !copy(set, data_pa, 4) &&
	      semaphore() == 1, "completion inline: done when the doorbell returns");
	CHECK(!execute() && sem_reaches(2, 10000), "engines work, too");
	CHECK(text_write(emu_knob(number, "completion"), "never") == EINVAL, "no such way: EINVAL");
	clean_up("fast");
}

static void test_remove(void)
{
	struct neuron_ioctl_compatible_version ver;
	int i;

	set_up("pulled");
	CHECK(!text_write(emu_knob(number, "remove"), "1"), "pull the device out");
	for (i = 0; i < 1000 && call(fd, NEURON_IOCTL_COMPATIBLE_VERSION, &ver) != ENODEV; i++)
		usleep(10000);
	CHECK(call(fd, NEURON_IOCTL_COMPATIBLE_VERSION, &ver) == ENODEV, "it is gone: ENODEV");
	for (i = 0; i < 1000 && strcmp(emu_get("pulled", "dev_name"), "none"); i++)
		usleep(10000);
	CHECK(!strcmp(emu_get("pulled", "dev_name"), "none") &&
	      !strcmp(emu_get("pulled", "live"), "1"), "its directory is still there");
	clean_up("pulled");
}

int main(void)
{
	mkdir("/sys/kernel/debug", 0700);
	mount("none", "/sys/kernel/debug", "debugfs", 0, NULL);
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	CHECK(kmsg >= 0 && lseek(kmsg, 0, SEEK_END) >= 0, "kernel log");
	set_up("faulty");
	CHECK(!strncmp(text_read(emu_file(number, "stats/power/utilization")), "POWER_STATUS_", 13),
	      "power: %s", text_read(emu_file(number, "stats/power/utilization")));
	test_alloc();
	test_stops(copy, "dma_abort", NEURON_ISA_ERR_ABORT, "hw_dma_abort_error", NULL, "DMA_ERROR",
		   "RESTART_APPLICATION");
	test_ecc();
	test_engine();
	test_driver_copy();
	test_attr();
	test_reset();
	test_power();
	close_device();
	CHECK(!text_write(emu_file(number, "reset"), "1"), "reset file");
	emu_del("faulty");
	test_completion();
	test_remove();
	return failed != 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every command of both doors with hostile arguments, on /dev/neuron0 of the
 * software device: bad pointers, arguments that end in an unmapped page, numbers
 * out of range and around 2^64, descriptors opened for writing only, inherited
 * or passed to another process, and handles and queues of somebody else.
 *
 * Each must give the error documented in uapi/README.md and change nothing: the
 * memory counters in sysfs are compared after every step.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "neuron_ioctl.h"
#include "neuron_native.h"
#include "device.h"

#define NODE		"/dev/neuron0"
#define SYSFS		"/sys/devices/virtual/neuron_device"
#define LEN(a)		(sizeof(a) / sizeof((a)[0]))

static int points, failures;
static size_t page;
static char *unmapped;		/* the first byte of a page that cannot be touched */
static char *readonly;		/* a page that cannot be written */

/* ---- results --------------------------------------------------------------- */

__attribute__((format(printf, 2, 3)))
static int check(int good, const char *format, ...)
{
	va_list args;

	points++;
	failures += !good;
	printf("%s - ", good ? "ok" : "not ok");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	return good;
}

/* Sets of errors are written as their names with spaces between. */
static const char *error_name(int error)
{
	static char other[16];

	switch (error) {
	case 0: return "0";
	case EACCES: return "EACCES";
	case EALREADY: return "EALREADY";
	case EAGAIN: return "EAGAIN";
	case EBADF: return "EBADF";
	case EBADMSG: return "EBADMSG";
	case EBUSY: return "EBUSY";
	case E2BIG: return "E2BIG";
	case EFAULT: return "EFAULT";
	case EINVAL: return "EINVAL";
	case ENODEV: return "ENODEV";
	case ENOENT: return "ENOENT";
	case ENOMEM: return "ENOMEM";
	case ENOSPC: return "ENOSPC";
	case ENOTTY: return "ENOTTY";
	case EOPNOTSUPP: return "EOPNOTSUPP";
	case EOVERFLOW: return "EOVERFLOW";
	case EPERM: return "EPERM";
	}
	snprintf(other, sizeof(other), "%d", error);
	return other;
}

/* Is @error one of the space-separated names in @set? */
static int in_set(int error, const char *set)
{
	const char *name = error_name(error);
	size_t len = strlen(name);
	const char *p;

	for (p = set; (p = strstr(p, name)); p += len)
		if ((p == set || p[-1] == ' ') && (!p[len] || p[len] == ' '))
			return 1;
	return 0;
}

/* 0 or the errno; a positive result is not in any set. */
static int call(int fd, unsigned long cmd, const void *arg)
{
	int rc = ioctl(fd, cmd, arg);

	return rc < 0 ? errno : rc ? 10000 + rc : 0;
}

/* ---- the memory counters ------------------------------------------------------ */

struct picture {
	char *text;
	size_t len;
	FILE *out;
};

static struct picture *drawing;
static int totals_only;

static int draw_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *name = path + ftw->base;
	char value[64];
	ssize_t len;
	int fd;

	(void)st;
	if (type != FTW_F || !strstr(path, "/memory_usage/"))
		return 0;
	if (totals_only && strcmp(name, "total"))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 1;
	len = read(fd, value, sizeof(value));
	close(fd);
	fprintf(drawing->out, "%s %.*s", path + strlen(SYSFS), len > 0 ? (int)len : 1,
		len > 0 ? value : "\n");
	return 0;
}

static struct picture draw(int only_totals)
{
	struct picture p = { NULL, 0, NULL };

	p.out = open_memstream(&p.text, &p.len);
	if (!p.out)
		exit(2);
	drawing = &p;
	totals_only = only_totals;
	if (nftw(SYSFS, draw_file, 16, FTW_PHYS))
		fprintf(p.out, "the tree cannot be read\n");
	fclose(p.out);
	return p;
}

static int compare(const struct picture *before, int only_totals, int tell)
{
	struct picture after = draw(only_totals);
	int equal = before->len == after.len && !memcmp(before->text, after.text, after.len);

	if (!equal && tell) {
		char *a = before->text, *b = after.text;

		while (*a && *b) {
			size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");

			if (n != m || memcmp(a, b, n))
				break;
			a += n + 1;
			b += m + 1;
		}
		printf("#   before %.*s\n#   after  %.*s\n", (int)strcspn(a, "\n"), a,
		       (int)strcspn(b, "\n"), b);
	}
	free(after.text);
	return equal;
}

/* At once; what a card's queues may reach comes back when their cores are reset. */
static int same(const struct picture *before, int only_totals)
{
	for (time_t end = time(NULL) + 5; is_card() && time(NULL) < end; usleep(10000))
		if (compare(before, only_totals, 0))
			break;
	return compare(before, only_totals, 1);
}

static int same_quietly(const struct picture *before)
{
	return compare(before, 1, 0);
}

/* ---- the commands --------------------------------------------------------------- */

enum {
	ANYBODY	= 1,	/* also through a descriptor that is write-only */
	IGNORED	= 2,	/* the argument is not looked at */
	ABSENT	= 4,	/* a number that this driver does not know */
	RESULT	= 8,	/* the argument is written only */
	COUNTED	= 16,	/* only as many entries are read as it says */
	NO_ZERO	= 32,	/* a structure of zeros is no good request either */
	WAITS	= 64,	/* may wait for somebody */
};

/*
 * @ones: what a structure of all ones gets. Several fields are wrong then; the
 * order they are looked at is not part of the interface.
 */
struct command {
	const char *name;
	unsigned long cmd;
	size_t size;
	int flags;
	const char *ones;
};

#define COMPAT(name, type, flags, ones) \
	{ #name, NEURON_IOCTL_##name, sizeof(type), flags, ones }
#define S(name) struct neuron_ioctl_##name
#define NATIVE(name, type, flags, ones) \
	{ "NATIVE_" #name, NEURON_NATIVE_##name, sizeof(type), flags, ones }

#define VALUE	"EINVAL EOVERFLOW EFAULT"
#define HANDLE	"ENOENT EINVAL EOVERFLOW"

static const struct command commands[] = {
	{ "DEVICE_RESET", NEURON_IOCTL_DEVICE_RESET, 0, IGNORED, "0" },
	COMPAT(DEVICE_READY, __u8, RESULT, "0"),
	COMPAT(DEVICE_RESET_STATUS, __u8, RESULT, "0"),
	COMPAT(DEVICE_INFO, S(device_info), RESULT, "0"),
	COMPAT(DEVICE_INIT, S(device_init), IGNORED, "0"),
	{ "DEVICE_RELEASE", NEURON_IOCTL_DEVICE_RELEASE, 0, IGNORED, "0" },
	COMPAT(DEVICE_APP_PID, __s32, RESULT, "0"),
	COMPAT(DEVICE_GET_ALL_APPS_INFO, S(get_apps_info), 0, "EINVAL"),
	COMPAT(BAR_READ, S(bar_rw), 0, "EINVAL"),
	COMPAT(BAR_WRITE, S(bar_rw), 0, "EINVAL"),
	COMPAT(POST_METRIC, S(post_metric), 0, "E2BIG"),
	COMPAT(MEM_ALLOC, S(mem_alloc), 0, VALUE),
	COMPAT(MEM_ALLOC_V2, S(mem_alloc_v2), 0, VALUE),
	COMPAT(MEM_ALLOC_V2MT, S(mem_alloc_v2_mem_type), 0, VALUE),
	COMPAT(MEM_ALLOC_V2MT64, S(mem_alloc_v2_mem_type64), 0, VALUE),
	COMPAT(MEM_FREE, S(mem_free), 0, "ENOENT"),
	COMPAT(MEM_COPY, S(mem_copy), 0, HANDLE),
	COMPAT(MEM_COPY64, S(mem_copy64), 0, HANDLE),
	COMPAT(MEM_BUF_COPY, S(mem_buf_copy), 0, HANDLE " EFAULT"),
	COMPAT(MEM_BUF_COPY64, S(mem_buf_copy64), 0, HANDLE " EFAULT"),
	COMPAT(MEM_BUF_ZEROCOPY64, S(mem_buf_copy64), 0, HANDLE " EFAULT"),
	COMPAT(MEM_GET_PA, S(mem_get_pa), 0, "ENOENT EFAULT"),
	COMPAT(MEM_GET_INFO, S(mem_get_info), 0, "ENOENT EFAULT"),
	COMPAT(MEM_GET_EXTENDED_INFO, S(mem_get_extended_info), 0, "ENOENT"),
	COMPAT(MEM_MC_GET_INFO, S(mem_get_mc_mmap_info), 0, "ENOENT"),
	COMPAT(MEM_MC_GET_INFO_V2, S(mem_get_mc_mmap_info_v2), 0, "ENOENT"),
	COMPAT(MEM_COPY_ASYNC, S(mem_copy_async), WAITS, HANDLE),
	COMPAT(MEM_COPY_ASYNC64, S(mem_copy_async64), WAITS, HANDLE),
	COMPAT(MEM_COPY_ASYNC_WAIT, S(mem_copy_async_wait), WAITS, HANDLE),
	COMPAT(MEMSET, S(memset), 0, HANDLE),
	COMPAT(MEMSET64, S(memset64), 0, HANDLE),
	COMPAT(PROGRAM_ENGINE, S(program_engine), 0, "EINVAL EOVERFLOW"),
	COMPAT(PROGRAM_ENGINE_NC, S(program_engine_nc), 0, "EINVAL EOVERFLOW"),
	COMPAT(PROGRAM_ENGINE_NC64, S(program_engine_nc64), 0, "EINVAL EOVERFLOW"),
	COMPAT(DMA_ENG_INIT, S(dma_eng_init), 0, "EINVAL"),
	COMPAT(DMA_ENG_SET_STATE, S(dma_eng_set_state), 0, "EINVAL"),
	COMPAT(DMA_ENG_GET_STATE, S(dma_eng_get_state), 0, "EINVAL"),
	COMPAT(DMA_QUEUE_INIT, S(dma_queue_init), 0, "EINVAL"),
	COMPAT(DMA_QUEUE_INIT_BATCH, S(dma_queue_init_batch), COUNTED, "E2BIG"),
	COMPAT(DMA_QUEUE_RELEASE, S(dma_queue_release), 0, "EINVAL"),
	COMPAT(DMA_QUEUE_COPY_START, S(dma_queue_copy_start), 0, "EINVAL"),
	COMPAT(DMA_ACK_COMPLETED, S(dma_ack_completed), 0, "EINVAL"),
	COMPAT(DMA_QUEUE_GET_STATE, S(dma_queue_get_state), 0, "EINVAL"),
	COMPAT(DMA_COPY_DESCRIPTORS, S(dma_copy_descriptors), 0, HANDLE),
	COMPAT(DMA_COPY_DESCRIPTORS64, S(dma_copy_descriptors64), 0, HANDLE),
	COMPAT(DMA_DESCRIPTOR_COPYOUT, S(dma_descriptor_copyout), 0, "EINVAL"),
	COMPAT(DMA_QUIESCE_QUEUES, S(dma_quiesce_queues), IGNORED, "ENOTTY"),
	COMPAT(SEMAPHORE_INCREMENT, S(semaphore), 0, "E2BIG"),
	COMPAT(SEMAPHORE_DECREMENT, S(semaphore), 0, "E2BIG"),
	COMPAT(SEMAPHORE_READ, S(semaphore), 0, "E2BIG"),
	COMPAT(SEMAPHORE_WRITE, S(semaphore), 0, "E2BIG"),
	COMPAT(EVENT_SET, S(event), 0, "E2BIG"),
	COMPAT(EVENT_GET, S(event), 0, "E2BIG"),
	COMPAT(NOTIFICATIONS_INIT_V1, S(notifications_init_v1), 0, "EINVAL"),
	COMPAT(NOTIFICATIONS_DESTROY_V1, S(notifications_destroy), IGNORED, "0"),
	COMPAT(NOTIFICATIONS_INIT_V2, S(notifications_init_v2), 0, "EINVAL"),
	COMPAT(NOTIFICATIONS_INIT_WITH_REALLOC_V2, S(notifications_init_with_realloc_v2), 0,
	       "EINVAL"),
	COMPAT(NOTIFICATIONS_QUEUE_INFO, S(notifications_queue_info), IGNORED, "EPERM"),
	COMPAT(READ_HW_COUNTERS, S(read_hw_counters), 0, "EINVAL"),
	COMPAT(ACQUIRE_NEURON_DS, S(neuron_ds_info), 0, "ENOENT"),
	COMPAT(RELEASE_NEURON_DS, S(neuron_ds_info), 0, "0"),
	COMPAT(CRWL_READER_ENTER, S(crwl), WAITS, "EINVAL"),
	COMPAT(CRWL_READER_EXIT, S(crwl), WAITS, "EINVAL"),
	COMPAT(CRWL_WRITER_ENTER, S(crwl), WAITS, "EINVAL"),
	COMPAT(CRWL_WRITER_DOWNGRADE, S(crwl), WAITS, "EINVAL"),
	COMPAT(CRWL_NC_RANGE_MARK, S(crwl_nc_map), ANYBODY | NO_ZERO, "EINVAL"),
	COMPAT(CRWL_NC_RANGE_MARK_EXT0, S(crwl_nc_map_ext), ANYBODY | NO_ZERO, "EINVAL"),
	COMPAT(CRWL_NC_RANGE_UNMARK, S(crwl_nc_map), ANYBODY, "0"),
	COMPAT(CRWL_NC_RANGE_UNMARK_EXT0, S(crwl_nc_map_ext), ANYBODY, "0"),
	COMPAT(CINIT_SET_STATE, S(cinit_set), WAITS, "E2BIG"),
	COMPAT(NC_MODEL_STARTED_COUNT, S(nc_model_started_count), 0, "E2BIG"),
	COMPAT(COMPATIBLE_VERSION, S(compatible_version), ANYBODY | RESULT, "0"),
	COMPAT(DEVICE_BASIC_INFO, S(device_basic_info), ANYBODY | RESULT, "0"),
	COMPAT(DEVICE_BDF, S(device_bdf), RESULT, "0"),
	COMPAT(DEVICE_BDF_EXT, S(device_bdf_ext), ANYBODY, "EINVAL"),
	COMPAT(NC_RESET, S(device_reset), 0, "0"),
	COMPAT(NC_RESET_READY, S(device_ready), 0, "0"),
	COMPAT(DMABUF_FD, S(dmabuf_fd), ANYBODY | NO_ZERO, "EINVAL"),
	COMPAT(DRIVER_INFO_GET, S(device_driver_info), ANYBODY | RESULT, "0"),
	COMPAT(DRIVER_INFO_SET, S(device_driver_info), ANYBODY | IGNORED, "EOPNOTSUPP"),
	COMPAT(RESOURCE_MMAP_INFO, S(resource_mmap_info), 0, "EINVAL"),
	COMPAT(PRINTK, S(printk), ANYBODY | NO_ZERO, "EINVAL"),
	COMPAT(HOST_DEVICE_ID, S(host_device_id), RESULT, "0"),
	COMPAT(HOST_DEVICE_ID_TO_RID_MAP, S(host_device_id_to_rid_map), ANYBODY | RESULT, "0"),
	COMPAT(DUMP_MEM_CHUNKS, S(dump_mem_chunks), 0, "EINVAL"),
	COMPAT(NC_PID_STATE_DUMP, S(nc_pid_state_dump), ANYBODY | NO_ZERO, "ENOENT"),
	COMPAT(HBM_SCRUB_START, S(hbm_scrub_start), WAITS, "EINVAL"),
	COMPAT(HBM_SCRUB_WAIT, S(hbm_scrub_wait), WAITS, "EINVAL"),
	COMPAT(GET_LOGICAL_TO_PHYSICAL_NC_MAP, S(get_logical_to_physical_nc_map), ANYBODY | NO_ZERO, "EINVAL EFAULT"),
	COMPAT(POD_INFO, S(pod_info), ANYBODY | IGNORED, "EOPNOTSUPP"),
	COMPAT(POD_STATUS, S(pod_status), ANYBODY | IGNORED, "EOPNOTSUPP"),
	COMPAT(POD_STATUS_V2, S(pod_status_v2), ANYBODY | IGNORED, "EOPNOTSUPP"),
	COMPAT(POD_CTRL, S(pod_ctrl), ANYBODY | IGNORED, "EOPNOTSUPP"),
	COMPAT(POD_CTRL_V2, S(pod_ctrl_v2), ANYBODY | IGNORED, "EOPNOTSUPP"),
	NATIVE(GET_GEOMETRY, struct neuron_native_geometry, ANYBODY, "E2BIG"),
	NATIVE(MEM_ALLOC, struct neuron_native_mem_alloc, 0, "E2BIG"),
	NATIVE(NQ_EVENTFD, struct neuron_native_nq_eventfd, 0, "E2BIG"),
	NATIVE(COPY_EVENTFD, struct neuron_native_copy_eventfd, 0, "E2BIG"),
	NATIVE(RESET_EVENTFD, struct neuron_native_reset_eventfd, 0, "E2BIG"),
	NATIVE(HBM_STATS, struct neuron_native_hbm_stats, ANYBODY, "E2BIG"),
	NATIVE(HBM_RANGES, struct neuron_native_hbm_ranges, ANYBODY | NO_ZERO, "E2BIG EINVAL"),
	NATIVE(OWNER, struct neuron_native_owner, NO_ZERO, "E2BIG EINVAL"),
	NATIVE(OWNERS, struct neuron_native_owners, ANYBODY | NO_ZERO, "E2BIG EINVAL"),
	NATIVE(EVENTS, struct neuron_native_events, ANYBODY | NO_ZERO, "E2BIG EINVAL"),
	NATIVE(MEM_PIN, struct neuron_native_mem_pin, 0, "E2BIG"),
	NATIVE(MEM_UNPIN, struct neuron_native_mem_unpin, 0, "E2BIG"),
	NATIVE(MEM_COMPACT, struct neuron_native_mem_compact, 0, "E2BIG"),
	NATIVE(MEM_ALLOC_BULK, struct neuron_native_mem_alloc_bulk, NO_ZERO, "E2BIG EINVAL"),
	NATIVE(MEM_FREE_BULK, struct neuron_native_mem_free_bulk, NO_ZERO, "E2BIG EINVAL"),
	NATIVE(CORE_STATS, struct neuron_native_core_stats, ANYBODY, "E2BIG"),
	NATIVE(MEM_EXPORT, struct neuron_native_mem_export, 0, "E2BIG"),
	NATIVE(MEM_IMPORT, struct neuron_native_mem_import, 0, "E2BIG"),
	NATIVE(FAILURES, struct neuron_native_failures, ANYBODY | NO_ZERO, "E2BIG EINVAL"),
	NATIVE(LIMIT, struct neuron_native_limit, ANYBODY, "E2BIG"),
};

static int is_command(unsigned long cmd)
{
	/* Of any length, and the answer has 24 bytes. */
	if (_IOC_TYPE(cmd) == 'N' && _IOC_NR(cmd) == 110 &&
	    (_IOC_DIR(cmd) == _IOC_WRITE || (_IOC_DIR(cmd) == _IOC_READ && _IOC_SIZE(cmd) >= 24)))
		return 1;
	for (size_t i = 0; i < LEN(commands); i++)
		if (commands[i].cmd == cmd)
			return 1;
	return 0;
}

static int open_node(int flags)
{
	int fd = open(NODE, flags | O_CLOEXEC);

	if (fd < 0) {
		check(0, "open " NODE ": %s", error_name(errno));
		exit(1);
	}
	return fd;
}

/*
 * The same figures without the hundreds of files: for use after every command.
 * A part of the test compares the files before and after it, too.
 */
struct sums {
	__u64 used[NEURON_NATIVE_MAX_HBMS];
	__u64 allocs[NEURON_NATIVE_MAX_HBMS];
	__u64 device[NEURON_NATIVE_MAX_CORES];
	__u64 host[NEURON_NATIVE_MAX_CORES];
	int owner[NEURON_NATIVE_MAX_CORES];
};

static struct sums add_up(int fd)
{
	struct sums sums;
	__u32 i;

	memset(&sums, 0, sizeof(sums));
	for (i = 0; i < NEURON_NATIVE_MAX_HBMS; i++) {
		struct neuron_native_hbm_stats stats = { .size = sizeof(stats), .hbm = i };

		if (call(fd, NEURON_NATIVE_HBM_STATS, &stats))
			break;
		sums.used[i] = stats.used;
		sums.allocs[i] = stats.nr_allocs;
	}
	if (!i)
		check(0, "HBM_STATS");
	for (i = 0; i < NEURON_NATIVE_MAX_CORES; i++) {
		struct neuron_native_core_stats stats = { .size = sizeof(stats), .nc_id = i };

		if (call(fd, NEURON_NATIVE_CORE_STATS, &stats))
			break;
		sums.host[i] = stats.host_bytes;
		sums.owner[i] = stats.owner;
		for (size_t c = 0; c < LEN(stats.device_bytes); c++)
			sums.device[i] += stats.device_bytes[c];
	}
	return sums;
}

/* One line for many calls of one command; says which one went wrong. */
struct tally {
	const char *name;
	const char *about;
	int calls;
	int bad;
};

static void step(struct tally *t, const char *what, int got, const char *set)
{
	t->calls++;
	if (in_set(got, set))
		return;
	t->bad++;
	printf("#   %s, %s: %s, not %s\n", t->name, what, error_name(got), set);
}

static void finish(struct tally *t, int fd, const struct sums *before)
{
	struct sums after = add_up(fd);
	int equal = !memcmp(before, &after, sizeof(after));

	check(!t->bad && equal, "%s: %d %s%s", t->name, t->calls, t->about,
	      equal ? "" : ", memory or owners changed");
}

/* ---- numbers that are no commands ------------------------------------------------- */

static void wrong_numbers(int fd)
{
	struct sums before = add_up(fd);
	struct tally t = { "unknown commands", "numbers", 0, 0 };
	char arg[64] = { 0 };
	char what[64];

	for (unsigned long nr = 0; nr < 256; nr++) {
		unsigned long cmd = _IOC(_IOC_READ, 'N', nr, 1000);

		if (is_command(cmd))
			continue;
		snprintf(what, sizeof(what), "number %lu with size 1000", nr);
		step(&t, what, call(fd, cmd, arg), "ENOTTY");
	}
	for (size_t i = 0; i < LEN(commands); i++) {
		unsigned long cmd = commands[i].cmd;
		unsigned long other[] = {
			cmd ^ ('N' ^ 'M') << 8,			/* type */
			cmd ^ 0x80ul << 16,			/* size */
			cmd ^ (unsigned long)_IOC_READ << 30,	/* direction */
			cmd ^ (unsigned long)_IOC_WRITE << 30,
		};

		for (size_t j = 0; j < LEN(other); j++) {
			if (is_command(other[j]))
				continue;
			snprintf(what, sizeof(what), "%s as %#lx", commands[i].name, other[j]);
			step(&t, what, call(fd, other[j], arg), "ENOTTY");
		}
	}
	finish(&t, fd, &before);
}

/* ---- bad pointers ------------------------------------------------------------------ */

static void bad_pointers(int fd, const struct command *c)
{
	struct sums before = add_up(fd);
	struct tally t = { c->name, "bad arguments", 0, 0 };
	const char *fault = "EFAULT";
	const char *ones = c->ones;
	char *buffer;

	if (c->flags & ABSENT)
		fault = ones = "ENOTTY";
	else if (c->flags & IGNORED)
		fault = ones = c->ones;

	step(&t, "NULL", call(fd, c->cmd, NULL), fault);
	step(&t, "unmapped", call(fd, c->cmd, unmapped), fault);
	step(&t, "the last byte of memory", call(fd, c->cmd, (void *)~0ul), fault);
	step(&t, "kernel memory", call(fd, c->cmd, (void *)0xffff888000000000ul), fault);
	step(&t, "no address", call(fd, c->cmd, (void *)0x8000000000000000ul), fault);
	if (c->flags & RESULT)
		step(&t, "read-only memory", call(fd, c->cmd, readonly), fault);
	if (c->size > 1) {
		/*
		 * A native structure tells its size; say so much that the
		 * kernel goes on to read it.
		 */
		char *start = unmapped - (c->size - 1);

		memset(start, 0, c->size - 1);
		if (!strncmp(c->name, "NATIVE_", 7) && c->size > 4)
			memcpy(start, &(__u32){ c->size }, 4);
		step(&t, "the last byte unmapped", call(fd, c->cmd, start),
		     c->flags & COUNTED ? "0" : fault);
	}

	buffer = malloc(c->size + 1);
	if (!buffer)
		exit(2);
	memset(buffer, 0xff, c->size + 1);
	step(&t, "all ones", call(fd, c->cmd, buffer), ones);
	memset(buffer, 0xff, c->size + 1);
	step(&t, "all ones, odd address", call(fd, c->cmd, buffer + 1), ones);
	free(buffer);

	finish(&t, fd, &before);
}

/* ---- descriptors that are not the caller's ------------------------------------------ */

/* Every command through @fd must be refused with @set, unless it is for anybody. */
static void refused(int fd, const char *who, const char *set)
{
	struct sums before = add_up(fd);
	struct tally t = { who, "commands refused", 0, 0 };
	char *zero = calloc(1, 65536);

	if (!zero)
		exit(2);
	for (size_t i = 0; i < LEN(commands); i++) {
		const struct command *c = &commands[i];

		if (c->flags & ANYBODY) {
			/* Not refused: it gets as far as the bad pointer, and works. */
			step(&t, c->name, call(fd, c->cmd, NULL),
			     c->flags & IGNORED ? c->ones : "EFAULT");
			memset(zero, 0, 65536);
			if (!strncmp(c->name, "NATIVE_", 7))
				memcpy(zero, &(__u32){ c->size }, 4);
			step(&t, c->name, call(fd, c->cmd, zero),
			     c->flags & (NO_ZERO | IGNORED) ? c->ones : "0");
			continue;
		}
		memset(zero, 0, 65536);
		step(&t, c->name, call(fd, c->cmd, zero), c->flags & ABSENT ? "ENOTTY" : set);
	}
	step(&t, "unknown command", call(fd, _IO('N', 255), zero), "ENOTTY");
	finish(&t, fd, &before);
	free(zero);
}

/* Run @f in a child; its points count here. */
static void in_child(void (*f)(int arg), int arg)
{
	int p[2], counts[2] = { 0, 1 }, status;
	pid_t pid;

	/* What it counts must not have anything of those before it. */
	device_settles();
	fflush(stdout);
	if (pipe(p))
		exit(2);
	pid = fork();
	if (!pid) {
		points = failures = 0;
		f(arg);
		counts[0] = points;
		counts[1] = failures;
		fflush(stdout);
		if (write(p[1], counts, sizeof(counts)) < 0)
			_exit(2);
		_exit(0);
	}
	close(p[1]);
	if (read(p[0], counts, sizeof(counts)) != sizeof(counts))
		check(0, "a child of the test died");
	close(p[0]);
	points += counts[0];
	failures += counts[1];
	waitpid(pid, &status, 0);
}

static void inherited(int fd)
{
	refused(fd, "inherited over fork", "EACCES");
}

/* Open the node and send the descriptor; wait until the other side is done. */
static void sender(int sock)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fd = open(NODE, O_RDWR);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(sock, &msg, 0) != 1 || read(sock, &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

static void passed(int unused)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	int pair[2], fd;
	pid_t pid;

	(void)unused;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		exit(2);
	pid = fork();
	if (!pid) {
		close(pair[1]);
		sender(pair[0]);
	}
	close(pair[0]);
	if (recvmsg(pair[1], &msg, 0) != 1 || !(c = CMSG_FIRSTHDR(&msg))) {
		check(0, "receive a descriptor");
	} else {
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		refused(fd, "passed over a socket", "EACCES");
		close(fd);
	}
	close(pair[1]);
	waitpid(pid, NULL, 0);
}

static void open_modes(int unused)
{
	int fd = open_node(O_WRONLY);
	void *p;

	(void)unused;
	refused(fd, "opened for writing only", "EACCES");
	p = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	check(p == MAP_FAILED && errno == EACCES, "mmap of it: EACCES");
	close(fd);
	fd = open_node(O_WRONLY | O_RDWR);
	refused(fd, "opened with access mode 3", "EACCES");
	close(fd);
}

/* ---- requests with one thing wrong --------------------------------------------------- */

static const char *about;	/* what the requests are about */

/* A request that is good but for what @what says. */
static void bad(int fd, unsigned long cmd, const void *arg, const char *what, const char *set)
{
	int got = call(fd, cmd, arg);

	check(in_set(got, set), "%s: %s: %s%s%s", about, what, set,
	      in_set(got, set) ? "" : ", got ", in_set(got, set) ? "" : error_name(got));
}

/* GOOD sends *req as it is, BAD with one field changed. */
#define GOOD(cmd, req) \
	check(!call(fd, cmd, req), "%s: the good request works", about)
#define BAD(cmd, req, field, value, set) do {			\
	__typeof__(*(req)) req_ = *(req);			\
	req_.field = (__typeof__(req_.field))(value);		\
	bad(fd, cmd, &req_, #field " = " #value, set);		\
} while (0)

#define CHUNK	65536ull
#define RING	64u		/* descriptors */

/* The objects of the tests below; made by make_objects(). */
static __u64 dev_mem, host_mem, tx_ring, rx_ring, dev_addr, host_addr;

/* The core that pays; nobody may charge what another process owns. */
static __u32 charged;

static __u64 allocate(int fd, __u64 size, __u32 host, __u32 type)
{
	__u64 handle = 0;
	struct neuron_ioctl_mem_alloc_v2_mem_type64 req = {
		.size = size, .align = 4096, .host_memory = host, .mem_type = type,
		.nc_id = charged, .mem_handle = &handle,
	};
	int error = call(fd, NEURON_IOCTL_MEM_ALLOC_V2MT64, &req);

	if (error || !handle) {
		check(0, "allocate: %s", error_name(error));
		exit(1);
	}
	return handle;
}

static __u64 address(int fd, __u64 handle)
{
	__u64 pa = 0;
	struct neuron_ioctl_mem_get_pa req = { .mem_handle = handle, .pa = &pa };

	if (call(fd, NEURON_IOCTL_MEM_GET_PA, &req))
		check(0, "address of handle %llu", (unsigned long long)handle);
	return pa;
}

static void make_objects(int fd)
{
	dev_mem = allocate(fd, CHUNK, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE);
	host_mem = allocate(fd, CHUNK, 1, NEURON_MEMALLOC_TYPE_TENSORS_HOST);
	tx_ring = allocate(fd, 4096, 1, NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST);
	rx_ring = allocate(fd, 4096, 1, NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST);
	dev_addr = address(fd, dev_mem);
	host_addr = address(fd, host_mem);
}

static void free_one(int fd, __u64 handle)
{
	struct neuron_ioctl_mem_free req = { .mem_handle = handle };

	check(!call(fd, NEURON_IOCTL_MEM_FREE, &req), "free handle %llu",
	      (unsigned long long)handle);
}

static void free_objects(int fd)
{
	free_one(fd, dev_mem);
	free_one(fd, host_mem);
	free_one(fd, tx_ring);
	free_one(fd, rx_ring);
}

static long long counter(const char *path)
{
	char full[256], value[64] = "";
	FILE *in;

	snprintf(full, sizeof(full), SYSFS "/neuron0/%s", path);
	in = fopen(full, "r");
	if (!in || !fgets(value, sizeof(value), in))
		check(0, "read %s", full);
	if (in)
		fclose(in);
	return atoll(value);
}

static void odd_category(int fd, __u32 host, __u32 type)
{
	const char *path = host ? "stats/memory_usage/host_mem/uncategorized/total" :
		"neuron_core0/stats/memory_usage/device_mem/uncategorized/total";
	long long before = counter(path);
	__u64 handle = allocate(fd, CHUNK, host, type);

	check(counter(path) == before + (long long)CHUNK, "category %u of %s memory: %s",
	      type, host ? "host" : "device", "uncategorized");
	free_one(fd, handle);
	check(counter(path) == before, "and back");
}

static void allocate_device(int fd)
{
	__u64 handle = 0;
	struct neuron_ioctl_mem_alloc_v2_mem_type64 dev = {
		.size = CHUNK, .align = 4096, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
		.mem_handle = &handle,
	};

	about = "MEM_ALLOC_V2MT64, device";
	if (GOOD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev))
		free_one(fd, handle);
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, size, 0, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, size, ~0ull, "EOVERFLOW");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, size, ~0ull - 4094, "EOVERFLOW");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, size, ~0ull - 4095, "ENOMEM EOVERFLOW");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, size, 1ull << 63, "ENOMEM");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, size, 1ull << 44, "ENOMEM");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, align, 3, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, align, 12288, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, align, ~0ull, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, align, 1ull << 63, "EINVAL ENOMEM");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, dram_channel, 64, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, dram_channel, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, nc_id, 64, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, nc_id, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, mem_handle, NULL, "EFAULT");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, mem_handle, unmapped, "EFAULT");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, mem_handle, unmapped - 4, "EFAULT");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &dev, mem_handle, readonly, "EFAULT");
}

/* Categories unknown, or of the other kind of memory, are "uncategorized". */
static void odd_categories(int fd)
{
	odd_category(fd, 0, NEURON_MEMALLOC_TYPE_MAX);
	odd_category(fd, 0, ~0u);
	odd_category(fd, 0, NEURON_MEMALLOC_TYPE_TENSORS_HOST);
	odd_category(fd, 1, NEURON_MEMALLOC_TYPE_MAX);
	odd_category(fd, 1, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE);
}

static void allocate_host(int fd)
{
	__u64 handle = 0;
	struct neuron_ioctl_mem_alloc_v2_mem_type64 host = {
		.size = CHUNK, .align = 4096, .host_memory = 1,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_HOST, .mem_handle = &handle,
	};

	about = "MEM_ALLOC_V2MT64, host";
	if (GOOD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &host))
		free_one(fd, handle);
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &host, align, 2 * PAGE, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &host, size, 0, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &host, size, ~0ull, "EOVERFLOW");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &host, size, 1ull << 63, "ENOMEM");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &host, size, 1ull << 40, "ENOMEM");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &host, nc_id, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &host, mem_handle, NULL, "EFAULT");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT64, &host, mem_handle, readonly, "EFAULT");
}

static void allocate_older(int fd)
{
	__u64 handle = 0;
	struct neuron_ioctl_mem_alloc v1 = { .size = CHUNK, .mem_handle = &handle };
	struct neuron_ioctl_mem_alloc_v2 v2 = { .size = CHUNK, .mem_handle = &handle };
	struct neuron_ioctl_mem_alloc_v2_mem_type mt = {
		.size = CHUNK, .mem_type = NEURON_MEMALLOC_TYPE_MISC_DEVICE, .mem_handle = &handle,
	};

	about = "MEM_ALLOC";
	if (GOOD(NEURON_IOCTL_MEM_ALLOC, &v1))
		free_one(fd, handle);
	BAD(NEURON_IOCTL_MEM_ALLOC, &v1, size, 0, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC, &v1, nc_id, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC, &v1, mem_handle, readonly, "EFAULT");
	about = "MEM_ALLOC_V2";
	if (GOOD(NEURON_IOCTL_MEM_ALLOC_V2, &v2))
		free_one(fd, handle);
	BAD(NEURON_IOCTL_MEM_ALLOC_V2, &v2, size, 0, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2, &v2, align, 3, "EINVAL");
	about = "MEM_ALLOC_V2MT";
	if (GOOD(NEURON_IOCTL_MEM_ALLOC_V2MT, &mt))
		free_one(fd, handle);
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT, &mt, size, 0, "EINVAL");
	BAD(NEURON_IOCTL_MEM_ALLOC_V2MT, &mt, align, 3, "EINVAL");
}

static void allocate_native(int fd)
{
	struct neuron_native_mem_alloc native = {
		.size = sizeof(native), .bytes = CHUNK,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};

	about = "native MEM_ALLOC";
	if (GOOD(NEURON_NATIVE_MEM_ALLOC, &native)) {
		free_one(fd, native.mem_handle);
		native.mem_handle = native.pa = native.mmap_offset = 0;
	}
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, size, 0, "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, size, 4, "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, size, ~0u, "E2BIG EFAULT");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, flags, 1u << 31, "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, flags,
	    NEURON_NATIVE_ALLOC_LOW | NEURON_NATIVE_ALLOC_HIGH, "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, flags,
	    NEURON_NATIVE_ALLOC_LOW | NEURON_NATIVE_ALLOC_AT, "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, flags,
	    NEURON_NATIVE_ALLOC_HOST | NEURON_NATIVE_ALLOC_AT, "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, flags,
	    NEURON_NATIVE_ALLOC_MOVABLE | NEURON_NATIVE_ALLOC_AT, "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, flags, NEURON_NATIVE_ALLOC_AT, "EINVAL ENOMEM");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, bytes, 0, "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, bytes, ~0ull, "EOVERFLOW");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, bytes, 1ull << 44, "ENOMEM");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, align, 3, "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, hbm, 64, "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, nc_id, 64, "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, mem_type, 20, "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, mem_type, NEURON_MEMALLOC_TYPE_TENSORS_HOST,
	    "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, __reserved, 1, "EINVAL");
	BAD(NEURON_NATIVE_MEM_ALLOC, &native, __reserved2, 1, "EINVAL");
}

static void freeing(int fd)
{
	struct neuron_ioctl_mem_free mfree = {
		.mem_handle = allocate(fd, 4096, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE),
	};

	about = "MEM_FREE";
	GOOD(NEURON_IOCTL_MEM_FREE, &mfree);
	bad(fd, NEURON_IOCTL_MEM_FREE, &mfree, "a second time", "ENOENT");
	BAD(NEURON_IOCTL_MEM_FREE, &mfree, mem_handle, 0, "ENOENT");
	BAD(NEURON_IOCTL_MEM_FREE, &mfree, mem_handle, ~0ull, "ENOENT");
	/* Not cut to 32 bits, which would be a handle that exists. */
	BAD(NEURON_IOCTL_MEM_FREE, &mfree, mem_handle, dev_mem + (1ull << 32), "ENOENT");
}

static void allocation(int fd)
{
	struct picture before = draw(1);

	allocate_device(fd);
	odd_categories(fd);
	allocate_host(fd);
	allocate_older(fd);
	allocate_native(fd);
	freeing(fd);
	check(same(&before, 1), "allocation: counters are as before");
	free(before.text);
}

static void of_memory(int fd)
{
	__u64 pa, offset;
	struct neuron_ioctl_mem_get_pa get_pa = { .mem_handle = dev_mem, .pa = &pa };
	struct neuron_ioctl_mem_get_info info = {
		.mem_handle = dev_mem, .mmap_offset = &offset, .pa = &pa,
	};
	struct neuron_ioctl_mem_get_extended_info ext = { .mem_handle = dev_mem };
	struct neuron_ioctl_mem_get_mc_mmap_info mc = { 0 };
	struct neuron_ioctl_mem_get_mc_mmap_info_v2 mc2 = { 0 };

	about = "MEM_GET_PA";
	GOOD(NEURON_IOCTL_MEM_GET_PA, &get_pa);
	BAD(NEURON_IOCTL_MEM_GET_PA, &get_pa, mem_handle, 0, "ENOENT");
	BAD(NEURON_IOCTL_MEM_GET_PA, &get_pa, mem_handle, ~0ull, "ENOENT");
	BAD(NEURON_IOCTL_MEM_GET_PA, &get_pa, pa, NULL, "EFAULT");
	BAD(NEURON_IOCTL_MEM_GET_PA, &get_pa, pa, readonly, "EFAULT");
	about = "MEM_GET_INFO";
	GOOD(NEURON_IOCTL_MEM_GET_INFO, &info);
	BAD(NEURON_IOCTL_MEM_GET_INFO, &info, mem_handle, ~0ull, "ENOENT");
	BAD(NEURON_IOCTL_MEM_GET_INFO, &info, pa, readonly, "EFAULT");
	BAD(NEURON_IOCTL_MEM_GET_INFO, &info, mmap_offset, unmapped, "EFAULT");
	BAD(NEURON_IOCTL_MEM_GET_INFO, &info, mmap_offset, NULL, "0");
	about = "MEM_GET_EXTENDED_INFO";
	GOOD(NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &ext);
	check(ext.mem_handle == dev_mem && !ext.version && ext.size == CHUNK &&
	      ext.pid == (__u64)getpid(),
	      "%s: no kernel address, nothing uninitialised", about);
	BAD(NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &ext, mem_handle, 0, "ENOENT");

	about = "MEM_MC_GET_INFO";
	mc.pa = mc2.pa = pa + 100;
	GOOD(NEURON_IOCTL_MEM_MC_GET_INFO, &mc);
	BAD(NEURON_IOCTL_MEM_MC_GET_INFO, &mc, pa, pa + CHUNK, "ENOENT");
	BAD(NEURON_IOCTL_MEM_MC_GET_INFO, &mc, pa, ~0ull, "ENOENT");
	about = "MEM_MC_GET_INFO_V2";
	GOOD(NEURON_IOCTL_MEM_MC_GET_INFO_V2, &mc2);
	check(mc2.mem_handle == dev_mem && mc2.size == CHUNK, "%s: finds the handle", about);
	BAD(NEURON_IOCTL_MEM_MC_GET_INFO_V2, &mc2, pa, 0, "ENOENT");
}

static void statistics(int fd)
{
	struct neuron_native_hbm_stats hbm = { .size = sizeof(hbm) };
	struct neuron_native_core_stats core = { .size = sizeof(core) };

	about = "native HBM_STATS";
	GOOD(NEURON_NATIVE_HBM_STATS, &hbm);
	check(hbm.total == hbm.used + hbm.reserved + hbm.free && hbm.own_process >= CHUNK,
	      "%s: the sums agree", about);
	BAD(NEURON_NATIVE_HBM_STATS, &hbm, size, 0, "EINVAL");
	BAD(NEURON_NATIVE_HBM_STATS, &hbm, size, 8, "EINVAL");
	BAD(NEURON_NATIVE_HBM_STATS, &hbm, hbm, 64, "EINVAL");
	BAD(NEURON_NATIVE_HBM_STATS, &hbm, hbm, ~0u, "EINVAL");
	about = "native CORE_STATS";
	GOOD(NEURON_NATIVE_CORE_STATS, &core);
	BAD(NEURON_NATIVE_CORE_STATS, &core, size, 0, "EINVAL");
	BAD(NEURON_NATIVE_CORE_STATS, &core, nc_id, 64, "EINVAL");
	BAD(NEURON_NATIVE_CORE_STATS, &core, __reserved, 1, "EINVAL");
}

static void refusals(int fd)
{
	struct neuron_native_failures failures = {
		.size = sizeof(failures), .entry_size = sizeof(struct neuron_native_failure),
	};

	about = "native FAILURES";
	GOOD(NEURON_NATIVE_FAILURES, &failures);
	failures.last = 0;
	BAD(NEURON_NATIVE_FAILURES, &failures, size, 0, "EINVAL");
	BAD(NEURON_NATIVE_FAILURES, &failures, last, 1, "EINVAL");
	BAD(NEURON_NATIVE_FAILURES, &failures, entry_size, 0, "EINVAL");
	BAD(NEURON_NATIVE_FAILURES, &failures, entry_size, ~0u, "EINVAL");
	BAD(NEURON_NATIVE_FAILURES, &failures, __reserved, 1, "EINVAL");
}

static void limits_and_geometry(int fd)
{
	struct neuron_native_limit limit = { .size = sizeof(limit) };
	struct neuron_native_geometry geometry = { .size = sizeof(geometry) };

	about = "native LIMIT";
	GOOD(NEURON_NATIVE_LIMIT, &limit);
	limit.bytes = limit.used = 0;
	BAD(NEURON_NATIVE_LIMIT, &limit, size, 0, "EINVAL");
	BAD(NEURON_NATIVE_LIMIT, &limit, flags, 2, "EINVAL");
	BAD(NEURON_NATIVE_LIMIT, &limit, what, 3, "EINVAL");
	BAD(NEURON_NATIVE_LIMIT, &limit, what, ~0u, "EINVAL");
	BAD(NEURON_NATIVE_LIMIT, &limit, index, 64, "EINVAL");
	BAD(NEURON_NATIVE_LIMIT, &limit, index, -1, "EINVAL");
	BAD(NEURON_NATIVE_LIMIT, &limit, bytes, 1, "EINVAL");
	BAD(NEURON_NATIVE_LIMIT, &limit, used, 1, "EINVAL");
	about = "native GET_GEOMETRY";
	GOOD(NEURON_NATIVE_GET_GEOMETRY, &geometry);
	geometry.__reserved = 0;
	BAD(NEURON_NATIVE_GET_GEOMETRY, &geometry, size, 0, "EINVAL");
	BAD(NEURON_NATIVE_GET_GEOMETRY, &geometry, __reserved, 1, "EINVAL");
}

static void information(int fd)
{
	struct picture before = draw(0);

	of_memory(fd);
	statistics(fd);
	refusals(fd);
	limits_and_geometry(fd);
	check(same(&before, 0), "information: counters are as before");
	free(before.text);
}

/* Ranges of a copy, of any structure that has these fields. */
#define BAD_RANGE(cmd, req, off) do {				\
	BAD(cmd, req, size, CHUNK + 1, "EINVAL");		\
	BAD(cmd, req, off, CHUNK, "EINVAL");			\
	BAD(cmd, req, off, CHUNK - 1, "EINVAL");		\
	BAD(cmd, req, size, ~0ull, "EINVAL EOVERFLOW");		\
	BAD(cmd, req, off, ~0ull, "EINVAL EOVERFLOW");		\
	BAD(cmd, req, off, 0ull - (req)->size, "EINVAL EOVERFLOW"); \
} while (0)

static void copies(int fd)
{
	struct picture before = draw(1);
	char *buffer = calloc(1, CHUNK + 1);
	struct neuron_ioctl_mem_copy copy = {
		.src_mem_handle = host_mem, .dst_mem_handle = dev_mem, .size = 4096,
	};
	struct neuron_ioctl_mem_copy64 copy64 = {
		.src_mem_handle = host_mem, .dst_mem_handle = dev_mem, .size = 4096,
	};
	struct neuron_ioctl_memset set = { .mem_handle = dev_mem, .size = 4096 };
	struct neuron_ioctl_memset64 set64 = { .mem_handle = dev_mem, .size = 4096 };
	struct neuron_ioctl_mem_buf_copy buf = {
		.mem_handle = dev_mem, .buffer = buffer, .size = 4096, .copy_to_mem_handle = 1,
	};
	struct neuron_ioctl_mem_buf_copy64 buf64 = {
		.mem_handle = dev_mem, .buffer = buffer, .size = 4096, .copy_to_mem_handle = 1,
	};

	if (!buffer)
		exit(2);
	about = "MEM_COPY";
	GOOD(NEURON_IOCTL_MEM_COPY, &copy);
	BAD(NEURON_IOCTL_MEM_COPY, &copy, src_mem_handle, 0, "ENOENT");
	BAD(NEURON_IOCTL_MEM_COPY, &copy, dst_mem_handle, ~0ull, "ENOENT");
	BAD(NEURON_IOCTL_MEM_COPY, &copy, size, 0, "EINVAL");
	BAD_RANGE(NEURON_IOCTL_MEM_COPY, &copy, src_offset);
	BAD_RANGE(NEURON_IOCTL_MEM_COPY, &copy, dst_offset);
	about = "MEM_COPY64";
	GOOD(NEURON_IOCTL_MEM_COPY64, &copy64);
	BAD(NEURON_IOCTL_MEM_COPY64, &copy64, src_mem_handle, 0, "ENOENT");
	BAD(NEURON_IOCTL_MEM_COPY64, &copy64, dst_mem_handle, ~0ull, "ENOENT");
	BAD(NEURON_IOCTL_MEM_COPY64, &copy64, size, 0, "EINVAL");
	BAD_RANGE(NEURON_IOCTL_MEM_COPY64, &copy64, src_offset);
	BAD_RANGE(NEURON_IOCTL_MEM_COPY64, &copy64, dst_offset);

	about = "MEMSET";
	GOOD(NEURON_IOCTL_MEMSET, &set);
	BAD(NEURON_IOCTL_MEMSET, &set, mem_handle, 0, "ENOENT");
	BAD(NEURON_IOCTL_MEMSET, &set, size, 0, "EINVAL");
	BAD_RANGE(NEURON_IOCTL_MEMSET, &set, offset);
	about = "MEMSET64";
	GOOD(NEURON_IOCTL_MEMSET64, &set64);
	BAD(NEURON_IOCTL_MEMSET64, &set64, mem_handle, ~0ull, "ENOENT");
	BAD(NEURON_IOCTL_MEMSET64, &set64, size, 0, "EINVAL");
	BAD_RANGE(NEURON_IOCTL_MEMSET64, &set64, offset);

	for (int to = 1; to >= 0; to--) {
		char *bad_buffer = to ? unmapped : readonly;
		__u64 handles[] = { dev_mem, host_mem };

		buf.copy_to_mem_handle = buf64.copy_to_mem_handle = to;
		for (size_t i = 0; i < LEN(handles); i++) {
			buf.mem_handle = buf64.mem_handle = handles[i];
			about = to ? "MEM_BUF_COPY to memory" : "MEM_BUF_COPY from memory";
			GOOD(NEURON_IOCTL_MEM_BUF_COPY, &buf);
			BAD(NEURON_IOCTL_MEM_BUF_COPY, &buf, mem_handle, 0, "ENOENT");
			BAD(NEURON_IOCTL_MEM_BUF_COPY, &buf, size, 0, "EINVAL");
			BAD_RANGE(NEURON_IOCTL_MEM_BUF_COPY, &buf, offset);
			BAD(NEURON_IOCTL_MEM_BUF_COPY, &buf, buffer, bad_buffer, "EFAULT");
			about = to ? "MEM_BUF_COPY64 to memory" : "MEM_BUF_COPY64 from memory";
			GOOD(NEURON_IOCTL_MEM_BUF_COPY64, &buf64);
			BAD(NEURON_IOCTL_MEM_BUF_COPY64, &buf64, mem_handle, ~0ull, "ENOENT");
			BAD(NEURON_IOCTL_MEM_BUF_COPY64, &buf64, size, 0, "EINVAL");
			BAD_RANGE(NEURON_IOCTL_MEM_BUF_COPY64, &buf64, offset);
			BAD(NEURON_IOCTL_MEM_BUF_COPY64, &buf64, buffer, NULL, "EFAULT");
			BAD(NEURON_IOCTL_MEM_BUF_COPY64, &buf64, buffer, bad_buffer, "EFAULT");
			BAD(NEURON_IOCTL_MEM_BUF_COPY64, &buf64, buffer, unmapped - 100,
			    "EFAULT");
			BAD(NEURON_IOCTL_MEM_BUF_COPY64, &buf64, buffer, ~0ul - 100, "EFAULT");
			BAD(NEURON_IOCTL_MEM_BUF_COPY64, &buf64, buffer,
			    0xffff888000000000ul, "EFAULT");
		}
	}
	free(buffer);
	check(same(&before, 1), "copies: counters are as before");
	free(before.text);
}

static __u8 descs[32][16];

static void no_queue(int fd)
{
	struct neuron_ioctl_dma_queue_copy_start start = {
		.eng_id = 0, .qid = 1, .rx_desc_count = 1,
	};
	struct neuron_ioctl_dma_ack_completed ack = { .eng_id = 0, .qid = 1 };
	struct neuron_ioctl_dma_descriptor_copyout out = {
		.eng_id = 0, .qid = 1, .type = NEURON_DMA_QUEUE_TYPE_TX, .count = 8,
		.buffer = descs,
	};

	about = "queue that was not set up";
	bad(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &start, "COPY_START", "ENOENT");
	bad(fd, NEURON_IOCTL_DMA_ACK_COMPLETED, &ack, "ACK_COMPLETED", "ENOENT");
	bad(fd, NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out, "DESCRIPTOR_COPYOUT", "ENOENT");
}

static void queue_init(int fd)
{
	struct neuron_ioctl_dma_queue_init init = {
		.eng_id = 0, .qid = 1, .tx_desc_count = RING, .rx_desc_count = RING,
		.tx_handle = tx_ring, .rx_handle = rx_ring,
	};

	about = "DMA_QUEUE_INIT";
	BAD(NEURON_IOCTL_DMA_QUEUE_INIT, &init, eng_id, 1000, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_INIT, &init, eng_id, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_INIT, &init, qid, 16, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_INIT, &init, qid, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_INIT, &init, tx_desc_count, 0, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_INIT, &init, tx_desc_count, 31, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_INIT, &init, tx_desc_count, 257, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_INIT, &init, rx_desc_count, 257, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_INIT, &init, rx_desc_count, 1u << 28, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_INIT, &init, rx_desc_count, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_INIT, &init, tx_handle, ~0ull, "ENOENT");
	BAD(NEURON_IOCTL_DMA_QUEUE_INIT, &init, rx_handle, 1ull << 40, "ENOENT");
	BAD(NEURON_IOCTL_DMA_QUEUE_INIT, &init, rxc_handle, rx_ring, "EINVAL");
}

static void queue_init_batch(int fd)
{
	struct neuron_ioctl_dma_queue_init init = {
		.eng_id = 0, .qid = 1, .tx_desc_count = RING, .rx_desc_count = RING,
		.tx_handle = tx_ring, .rx_handle = rx_ring,
	};
	static struct neuron_ioctl_dma_queue_init_batch batch;

	batch.count = MAX_DMA_QUEUE_INIT_BATCH;
	about = "DMA_QUEUE_INIT_BATCH";
	for (size_t i = 0; i < LEN(batch.entries); i++)
		batch.entries[i] = init;
	bad(fd, NEURON_IOCTL_DMA_QUEUE_INIT_BATCH, &batch, "count = 256", "E2BIG");
	batch.count = ~0u;
	bad(fd, NEURON_IOCTL_DMA_QUEUE_INIT_BATCH, &batch, "count = ~0", "E2BIG");
	batch.count = 1;
	batch.entries[0].eng_id = 1000;
	bad(fd, NEURON_IOCTL_DMA_QUEUE_INIT_BATCH, &batch, "eng_id = 1000", "EINVAL");
}

static void copy_descriptors(int fd)
{
	struct neuron_ioctl_dma_copy_descriptors copy = {
		.mem_handle = tx_ring, .buffer = descs, .num_descs = LEN(descs),
		.queue_type = NEURON_DMA_QUEUE_TYPE_TX,
	};
	struct neuron_ioctl_dma_copy_descriptors64 copy64 = {
		.mem_handle = rx_ring, .buffer = descs, .num_descs = LEN(descs),
		.queue_type = NEURON_DMA_QUEUE_TYPE_RX,
	};

	about = "DMA_COPY_DESCRIPTORS";
	GOOD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &copy);
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &copy, mem_handle, 0, "ENOENT");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &copy, num_descs, 0, "EINVAL");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &copy, num_descs, PAGE / 16 + 1, "EINVAL");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &copy, num_descs, 1u << 28, "EINVAL EOVERFLOW");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &copy, num_descs, ~0u, "EINVAL EOVERFLOW");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &copy, offset, PAGE, "EINVAL");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &copy, offset, 4095, "EINVAL");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &copy, offset, ~0u, "EINVAL EOVERFLOW");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &copy, queue_type,
	    NEURON_DMA_QUEUE_TYPE_COMPLETION, "EINVAL");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &copy, queue_type, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &copy, buffer, NULL, "EFAULT");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &copy, buffer, unmapped - 100, "EFAULT");
	about = "DMA_COPY_DESCRIPTORS64";
	GOOD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &copy64);
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &copy64, num_descs, 0, "EINVAL");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &copy64, offset, ~0ull, "EINVAL EOVERFLOW");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &copy64, offset, ~0ull - 511,
	    "EINVAL EOVERFLOW");
	BAD(NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &copy64, buffer, unmapped, "EFAULT");
}

static void queue_start(int fd)
{
	struct neuron_ioctl_dma_queue_copy_start start = {
		.eng_id = 0, .qid = 1, .rx_desc_count = 1,
	};
	struct neuron_ioctl_dma_ack_completed ack = { .eng_id = 0, .qid = 1 };

	about = "DMA_QUEUE_COPY_START";
	BAD(NEURON_IOCTL_DMA_QUEUE_COPY_START, &start, eng_id, 1000, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_COPY_START, &start, qid, 16, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_COPY_START, &start, tx_desc_count, RING, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_COPY_START, &start, tx_desc_count, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_COPY_START, &start, rx_desc_count, 0, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_COPY_START, &start, rx_desc_count, RING, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_COPY_START, &start, rx_desc_count, ~0u, "EINVAL");
	about = "DMA_ACK_COMPLETED";
	BAD(NEURON_IOCTL_DMA_ACK_COMPLETED, &ack, eng_id, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_DMA_ACK_COMPLETED, &ack, qid, 16, "EINVAL");
	BAD(NEURON_IOCTL_DMA_ACK_COMPLETED, &ack, count, RING + 1, "EINVAL");
	BAD(NEURON_IOCTL_DMA_ACK_COMPLETED, &ack, count, ~0u, "EINVAL");
}

static void queue_state(int fd)
{
	struct neuron_dma_queue_state tx, rx;
	struct neuron_dma_eng_state state;
	struct neuron_ioctl_dma_queue_get_state get = { .eng_id = 0, .qid = 1, .tx = &tx, .rx = &rx };
	struct neuron_ioctl_dma_eng_get_state eng = { .eng_id = 0, .state = &state };
	struct neuron_ioctl_dma_eng_set_state set = { .eng_id = 0, .state = 2 };

	about = "DMA_QUEUE_GET_STATE";
	GOOD(NEURON_IOCTL_DMA_QUEUE_GET_STATE, &get);
	BAD(NEURON_IOCTL_DMA_QUEUE_GET_STATE, &get, eng_id, 1000, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_GET_STATE, &get, qid, 16, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_GET_STATE, &get, tx, NULL, "EFAULT");
	BAD(NEURON_IOCTL_DMA_QUEUE_GET_STATE, &get, rx, readonly, "EFAULT");
	about = "DMA_ENG_GET_STATE";
	GOOD(NEURON_IOCTL_DMA_ENG_GET_STATE, &eng);
	BAD(NEURON_IOCTL_DMA_ENG_GET_STATE, &eng, eng_id, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_DMA_ENG_GET_STATE, &eng, state, NULL, "EFAULT");
	about = "DMA_ENG_SET_STATE";
	GOOD(NEURON_IOCTL_DMA_ENG_SET_STATE, &set);
	BAD(NEURON_IOCTL_DMA_ENG_SET_STATE, &set, eng_id, 1000, "EINVAL");
	BAD(NEURON_IOCTL_DMA_ENG_SET_STATE, &set, state, 1, "EINVAL");
	BAD(NEURON_IOCTL_DMA_ENG_SET_STATE, &set, state, ~0u, "EINVAL");
}

static void copyout_and_release(int fd)
{
	struct neuron_ioctl_dma_descriptor_copyout out = {
		.eng_id = 0, .qid = 1, .type = NEURON_DMA_QUEUE_TYPE_TX, .count = 8,
		.buffer = descs,
	};
	struct neuron_ioctl_dma_queue_release release = { .eng_id = 0, .qid = 1 };

	about = "DMA_DESCRIPTOR_COPYOUT";
	GOOD(NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out);
	BAD(NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out, count, 0, "EINVAL");
	BAD(NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out, count, RING + 1, "EINVAL");
	BAD(NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out, count, ~0u, "EINVAL EOVERFLOW");
	BAD(NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out, start_index, RING, "EINVAL");
	BAD(NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out, start_index, ~0u, "EINVAL EOVERFLOW");
	BAD(NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out, type, 2, "EINVAL");
	BAD(NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out, buffer, NULL, "EFAULT");
	about = "DMA_QUEUE_RELEASE";
	BAD(NEURON_IOCTL_DMA_QUEUE_RELEASE, &release, eng_id, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_DMA_QUEUE_RELEASE, &release, qid, 16, "EINVAL");
	GOOD(NEURON_IOCTL_DMA_QUEUE_RELEASE, &release);
}

static void rings(int fd)
{
	struct picture before = draw(1);
	struct neuron_ioctl_dma_queue_init init = {
		.eng_id = 0, .qid = 1, .tx_desc_count = RING, .rx_desc_count = RING,
		.tx_handle = tx_ring, .rx_handle = rx_ring,
	};

	no_queue(fd);
	queue_init(fd);
	queue_init_batch(fd);
	copy_descriptors(fd);
	about = "DMA_QUEUE_INIT";
	GOOD(NEURON_IOCTL_DMA_QUEUE_INIT, &init);
	queue_start(fd);
	queue_state(fd);
	copyout_and_release(fd);
	check(same(&before, 1), "rings: counters are as before");
	free(before.text);
}

static void cores(int fd)
{
	struct picture before = draw(1);
	struct neuron_ioctl_semaphore sem = { .nc_id = 0, .semaphore_index = 5, .value = 1 };
	struct neuron_ioctl_event event = { .nc_id = 0, .event_index = 5, .value = 1 };
	static const unsigned long sems[] = {
		NEURON_IOCTL_SEMAPHORE_WRITE, NEURON_IOCTL_SEMAPHORE_INCREMENT,
		NEURON_IOCTL_SEMAPHORE_DECREMENT, NEURON_IOCTL_SEMAPHORE_READ,
	};
	static const char *const names[] = {
		"SEMAPHORE_WRITE", "SEMAPHORE_INCREMENT", "SEMAPHORE_DECREMENT",
		"SEMAPHORE_READ",
	};
	static const unsigned long events[] = { NEURON_IOCTL_EVENT_SET, NEURON_IOCTL_EVENT_GET };

	for (size_t i = 0; i < LEN(sems); i++) {
		about = names[i];
		GOOD(sems[i], &sem);
		BAD(sems[i], &sem, nc_id, 64, "E2BIG");
		BAD(sems[i], &sem, nc_id, ~0u, "E2BIG");
		BAD(sems[i], &sem, semaphore_index, 256, "EINVAL");
		/* Not cut to 16 bits. */
		BAD(sems[i], &sem, semaphore_index, 65536, "EINVAL");
		BAD(sems[i], &sem, semaphore_index, ~0u, "EINVAL");
	}
	check(sem.value == 1, "write 1, add 1, subtract 1, read: %u", sem.value);
	for (size_t i = 0; i < LEN(events); i++) {
		about = i ? "EVENT_GET" : "EVENT_SET";
		GOOD(events[i], &event);
		BAD(events[i], &event, nc_id, 64, "E2BIG");
		BAD(events[i], &event, event_index, 256, "EINVAL");
		BAD(events[i], &event, event_index, 65536, "EINVAL");
		BAD(events[i], &event, event_index, ~0u, "EINVAL");
	}
	check(same(&before, 1), "cores: counters are as before");
	free(before.text);
}

static void notifications(int fd)
{
	struct picture before = draw(1);
	struct neuron_ioctl_notifications_init_v2 init = {
		.nq_dev_type = NQ_DEVICE_TYPE_NEURON_CORE, .nq_type = NQ_TYPE_NOTIFY,
		.size = 4096, .on_host_memory = 1,
	};
	struct neuron_ioctl_notifications_init_with_realloc_v2 again = {
		.nq_dev_type = NQ_DEVICE_TYPE_NEURON_CORE, .nq_type = NQ_TYPE_NOTIFY,
		.size = 4096, .on_host_memory = 1,
	};
	struct neuron_native_nq_eventfd notify = {
		.size = sizeof(notify), .nq_dev_type = NQ_DEVICE_TYPE_NEURON_CORE,
		.nq_type = NQ_TYPE_NOTIFY, .eventfd = -1,
	};

	about = "NOTIFICATIONS_INIT_V2";
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &init, nq_dev_id, 64, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &init, nq_dev_id, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &init, nq_dev_type, NQ_DEVICE_TYPE_MAX, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &init, nq_dev_type, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &init, nq_type, NQ_TYPE_MAX, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &init, nq_type, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &init, engine_index, 16, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &init, engine_index, ~0u, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &init, size, 0, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &init, size, 4095, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &init, size, 12288, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &init, size, ~0u, "EINVAL");
	about = "NOTIFICATIONS_INIT_WITH_REALLOC_V2";
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &again, nq_dev_id, 64, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &again, nq_type, 6, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &again, engine_index, 16, "EINVAL");
	BAD(NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &again, size, 12288, "EINVAL");
	about = "native NQ_EVENTFD";
	bad(fd, NEURON_NATIVE_NQ_EVENTFD, &notify, "queue that was not made", "ENOENT");
	check(same(&before, 1), "notification queues refused: counters are as before");

	about = "NOTIFICATIONS_INIT_V2";
	GOOD(NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &init);
	about = "native NQ_EVENTFD";
	GOOD(NEURON_NATIVE_NQ_EVENTFD, &notify);
	BAD(NEURON_NATIVE_NQ_EVENTFD, &notify, size, 0, "EINVAL");
	BAD(NEURON_NATIVE_NQ_EVENTFD, &notify, flags, 1, "EINVAL");
	BAD(NEURON_NATIVE_NQ_EVENTFD, &notify, __reserved, 1, "EINVAL");
	BAD(NEURON_NATIVE_NQ_EVENTFD, &notify, nq_dev_id, 64, "EINVAL");
	BAD(NEURON_NATIVE_NQ_EVENTFD, &notify, nq_type, 6, "EINVAL");
	BAD(NEURON_NATIVE_NQ_EVENTFD, &notify, engine_index, 16, "EINVAL");
	BAD(NEURON_NATIVE_NQ_EVENTFD, &notify, eventfd, 1000, "EBADF");
	BAD(NEURON_NATIVE_NQ_EVENTFD, &notify, eventfd, fd, "EINVAL");
	BAD(NEURON_NATIVE_NQ_EVENTFD, &notify, eventfd, -2, "EBADF EINVAL");
	free(before.text);
}

static void mappings(int fd)
{
	struct picture before = draw(1);
	struct neuron_ioctl_mem_get_extended_info info = { .mem_handle = dev_mem };
	static const unsigned long lengths[] = { 1, 4096, CHUNK + 1, 1ul << 46 };
	static const unsigned long offsets[] = { 0, 4096, 1ul << 40, 1ul << 62, ~4095ul };
	struct neuron_ioctl_mem_get_extended_info own = { 0 };
	struct neuron_ioctl_mem_free mfree;
	struct picture held;
	char *q;
	void *p;
	int bad_calls = 0;

	about = "mmap";
	if (!GOOD(NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &info))
		return;
	p = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)info.mmap_offset);
	check(p != MAP_FAILED, "mmap: a whole allocation");
	if (p != MAP_FAILED)
		munmap(p, CHUNK);
	p = mmap(NULL, CHUNK + page, PROT_READ, MAP_SHARED, fd, (off_t)info.mmap_offset);
	check(p == MAP_FAILED && errno == EINVAL, "mmap: past the end of an allocation: EINVAL");
	p = mmap(NULL, CHUNK, PROT_READ, MAP_SHARED, fd, (off_t)(info.mmap_offset + CHUNK));
	check(p == MAP_FAILED && errno == EPERM, "mmap: behind an allocation: EPERM");
	p = mmap(NULL, CHUNK, PROT_READ, MAP_PRIVATE, fd, (off_t)info.mmap_offset);
	check(p == MAP_FAILED && errno == EINVAL, "mmap: private: EINVAL");
	for (size_t i = 0; i < LEN(offsets); i++) {
		for (size_t j = 0; j < LEN(lengths); j++) {
			p = mmap(NULL, lengths[j], PROT_READ, MAP_SHARED, fd, (off_t)offsets[i]);
			if (p != MAP_FAILED) {
				bad_calls++;
				munmap(p, lengths[j]);
			}
		}
	}
	check(!bad_calls, "mmap: %d of %zu ranges of nobody were mapped", bad_calls,
	      LEN(offsets) * LEN(lengths));
	check(same(&before, 1), "mappings: counters are as before");
	free(before.text);

	/* A mapping keeps its memory; nobody else gets it meanwhile. */
	before = draw(1);
	own.mem_handle = mfree.mem_handle = allocate(fd, CHUNK, 0, 9);
	about = "memory that is mapped";
	if (!GOOD(NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &own))
		return;
	q = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)own.mmap_offset);
	if (!check(q != MAP_FAILED, "%s: mmap", about))
		return;
	held = draw(1);
	GOOD(NEURON_IOCTL_MEM_FREE, &mfree);
	check(same(&held, 1), "%s: still charged after it was freed", about);
	free(held.text);
	q[0] = 5;
	q[CHUNK - 1] = 6;
	check(q[0] == 5 && q[CHUNK - 1] == 6 && !q[1], "%s: can be used after it was freed", about);
	munmap(q, CHUNK);
	check(same(&before, 1), "%s: back when it is not mapped any more", about);
	free(before.text);
}

/* ---- what belongs to somebody else ----------------------------------------------------- */

/* Another process can have the core that nobody got hold of. */
static void can_have_core(int core)
{
	int fd = open_node(O_RDWR);
	struct neuron_ioctl_semaphore sem = { .nc_id = core };

	about = "core after a refused request";
	GOOD(NEURON_IOCTL_SEMAPHORE_READ, &sem);
	close(fd);
}

static void no_core_for_bad_requests(int fd)
{
	struct neuron_native_geometry geometry = { .size = sizeof(geometry) };
	struct neuron_ioctl_dma_queue_init init = {
		.qid = 1, .tx_desc_count = RING, .rx_desc_count = RING, .tx_handle = 12345,
	};
	struct neuron_ioctl_semaphore sem = { .nc_id = 1, .semaphore_index = 256 };
	struct neuron_ioctl_dma_eng_set_state set = { .state = 1 };
	struct neuron_ioctl_notifications_init_v2 nq = {
		.nq_dev_id = 1, .nq_type = NQ_TYPE_NOTIFY, .size = 12288, .on_host_memory = 1,
	};

	about = "request for core 1";
	if (!GOOD(NEURON_NATIVE_GET_GEOMETRY, &geometry))
		return;
	init.eng_id = set.eng_id = geometry.engines_per_core;
	bad(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &sem, "no such semaphore", "EINVAL");
	bad(fd, NEURON_IOCTL_DMA_ENG_SET_STATE, &set, "no such state", "EINVAL");
	bad(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &nq, "no such size", "EINVAL");
	bad(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init, "no such ring", "ENOENT");
	in_child(can_have_core, 1);
}

/* Runs in another process that has the device open itself. */
static void memory_of_another(int fd, const char *what, __u64 handle, __u64 address)
{
	char buffer[64] = { 0 };
	__u64 pa;
	struct neuron_ioctl_mem_free mfree = { .mem_handle = handle };
	struct neuron_ioctl_mem_get_pa get_pa = { .mem_handle = handle, .pa = &pa };
	struct neuron_ioctl_mem_get_extended_info ext = { .mem_handle = handle };
	struct neuron_ioctl_memset64 fill = { .mem_handle = handle, .size = 4096 };
	struct neuron_ioctl_mem_buf_copy64 buf = {
		.mem_handle = handle, .buffer = buffer, .size = sizeof(buffer),
	};
	struct neuron_ioctl_mem_copy64 copy = {
		.src_mem_handle = handle, .dst_mem_handle = handle, .size = 1,
	};
	struct neuron_ioctl_mem_get_mc_mmap_info_v2 mc = { .pa = address };
	struct neuron_ioctl_dma_copy_descriptors desc = {
		.mem_handle = handle, .buffer = buffer, .num_descs = 1,
	};

	about = what;
	bad(fd, NEURON_IOCTL_MEM_FREE, &mfree, "free somebody else's", "ENOENT");
	bad(fd, NEURON_IOCTL_MEM_GET_PA, &get_pa, "its address", "ENOENT");
	bad(fd, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &ext, "what it is", "ENOENT");
	bad(fd, NEURON_IOCTL_MEMSET64, &fill, "fill it", "ENOENT");
	bad(fd, NEURON_IOCTL_MEM_BUF_COPY64, &buf, "read it", "ENOENT");
	buf.copy_to_mem_handle = 1;
	bad(fd, NEURON_IOCTL_MEM_BUF_COPY64, &buf, "write it", "ENOENT");
	bad(fd, NEURON_IOCTL_MEM_COPY64, &copy, "copy it", "ENOENT");
	bad(fd, NEURON_IOCTL_MEM_MC_GET_INFO_V2, &mc, "ask for its handle", "ENOENT");
	check(mmap(NULL, CHUNK, PROT_READ, MAP_SHARED, fd, (off_t)address) ==
	      MAP_FAILED && errno == EPERM, "%s: map it: EPERM", about);
	bad(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &desc, "use it as a ring", "ENOENT");
}

static void queue_of_another(int fd)
{
	char buffer[64] = { 0 };
	struct neuron_ioctl_dma_queue_init init = {
		.eng_id = 0, .qid = 2, .tx_desc_count = RING, .rx_desc_count = RING,
	};
	struct neuron_ioctl_dma_queue_copy_start start = {
		.eng_id = 0, .qid = 2, .rx_desc_count = 1,
	};
	struct neuron_ioctl_dma_ack_completed ack = { .eng_id = 0, .qid = 2 };
	struct neuron_ioctl_dma_queue_release release = { .eng_id = 0, .qid = 2 };
	struct neuron_ioctl_dma_descriptor_copyout out = {
		.eng_id = 0, .qid = 2, .count = 1, .buffer = buffer,
	};
	struct neuron_ioctl_dma_eng_set_state set = { .eng_id = 0, .state = 3 };

	about = "somebody else's queue";
	charged = 1;
	init.tx_handle = allocate(fd, 4096, 1, NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST);
	init.rx_handle = allocate(fd, 4096, 1, NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST);
	bad(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init, "set it up", "EBUSY");
	bad(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &start, "start it", "EBUSY");
	bad(fd, NEURON_IOCTL_DMA_ACK_COMPLETED, &ack, "acknowledge", "EBUSY");
	bad(fd, NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out, "read its ring", "EBUSY");
	bad(fd, NEURON_IOCTL_DMA_QUEUE_RELEASE, &release, "release it (nothing happens)", "0");
	bad(fd, NEURON_IOCTL_DMA_ENG_SET_STATE, &set, "abort its engine", "EBUSY");
	about = "rings";
	free_one(fd, init.tx_handle);
	free_one(fd, init.rx_handle);
}

static void core_of_another(int fd)
{
	struct neuron_ioctl_semaphore sem = { .nc_id = 0, .semaphore_index = 1 };
	struct neuron_ioctl_event event = { .nc_id = 0, .event_index = 1 };
	struct neuron_ioctl_notifications_init_v2 nq = {
		.nq_type = NQ_TYPE_NOTIFY, .size = 4096, .on_host_memory = 1,
	};
	struct neuron_native_nq_eventfd notify = {
		.size = sizeof(notify), .nq_type = NQ_TYPE_NOTIFY, .eventfd = -1,
	};
	struct neuron_ioctl_device_reset reset = { .nc_map = 1 };

	about = "somebody else's core";
	bad(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &sem, "write a semaphore", "EBUSY");
	bad(fd, NEURON_IOCTL_SEMAPHORE_READ, &sem, "read a semaphore", "EBUSY");
	bad(fd, NEURON_IOCTL_EVENT_SET, &event, "set an event", "EBUSY");
	bad(fd, NEURON_IOCTL_EVENT_GET, &event, "read an event", "EBUSY");
	bad(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &nq, "make a notification queue", "EBUSY");
	bad(fd, NEURON_NATIVE_NQ_EVENTFD, &notify, "be told of notifications", "EBUSY");
	bad(fd, NEURON_IOCTL_NC_RESET, &reset, "reset it", "EBUSY");
}

static void stranger(int unused)
{
	int fd = open_node(O_RDWR);
	struct picture before = draw(1);

	(void)unused;
	memory_of_another(fd, "device memory", dev_mem, dev_addr);
	memory_of_another(fd, "host memory", host_mem, host_addr);
	queue_of_another(fd);
	core_of_another(fd);
	check(same(&before, 1), "somebody else's: counters are as before");
	free(before.text);
	close(fd);
}

static void owner(int fd)
{
	struct neuron_ioctl_dma_queue_init init = {
		.eng_id = 0, .qid = 2, .tx_desc_count = RING, .rx_desc_count = RING,
		.tx_handle = tx_ring, .rx_handle = rx_ring,
	};
	struct neuron_ioctl_semaphore sem = { .semaphore_index = 1, .value = 77 };
	struct neuron_ioctl_mem_free mfree = { .mem_handle = tx_ring };
	struct picture before;

	about = "own queue and core";
	GOOD(NEURON_IOCTL_DMA_QUEUE_INIT, &init);
	GOOD(NEURON_IOCTL_SEMAPHORE_WRITE, &sem);
	in_child(stranger, 0);
	sem.value = 0;
	GOOD(NEURON_IOCTL_SEMAPHORE_READ, &sem);
	check(sem.value == 77, "the semaphore is as it was");

	/* The queue keeps the memory of its ring when the handle is gone. */
	before = draw(1);
	check(!call(fd, NEURON_IOCTL_MEM_FREE, &mfree), "free the handle of a ring in use");
	check(same(&before, 1), "the ring is still there");
	free(before.text);
	init.qid = 3;
	bad(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init, "a ring whose handle is gone", "ENOENT");
	/* The rest goes with the process. */
}

/* ---- anything --------------------------------------------------------------------------- */

static __u64 random_state = 0x9e3779b97f4a7c15ull;

static __u64 random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Numbers that are near to something. */
static __u64 interesting(void)
{
	static const __u64 near[] = {
		0, 1, 2, 3, 7, 15, 16, 31, 32, 63, 64, 127, 255, 256, 4095, 4096, 65535, 65536,
		1ull << 31, 1ull << 32, 1ull << 36, 1ull << 63, ~0ull, ~0u,
	};
	__u64 value = near[random64() % LEN(near)];

	switch (random64() % 4) {
	case 0: return value - 1 + random64() % 3;
	case 1: return random64();
	default: return value;
	}
}

static void anything(int fd)
{
	static char arg[16384];
	static const char *const sane =
		"0 EAGAIN EBADF EBADMSG EBUSY E2BIG EFAULT EINVAL ENOENT ENOMEM ENOSPC EOPNOTSUPP EOVERFLOW "
		"EPERM";
	struct tally t = { "random arguments", "calls", 0, 0 };
	char *target = malloc(65536);
	time_t end = time(NULL) + 20;

	if (!target)
		exit(2);
	/* A bit less where everything is slow. */
	for (int i = 0; i < 20000 && time(NULL) < end; i++) {
		const struct command *c = &commands[random64() % LEN(commands)];
		__u64 *words = (__u64 *)arg;

		if (c->flags & (ABSENT | WAITS))
			continue;
		for (size_t w = 0; w < (c->size + 7) / 8 && w < 32; w++) {
			switch (random64() % 4) {
			case 0: words[w] = interesting(); break;
			case 1: words[w] = (__u32)interesting() | interesting() << 32; break;
			case 2: words[w] = (unsigned long)target; break;
			case 3: words[w] = random64() % 8 | (random64() % 8) << 32; break;
			}
		}
		if (!strncmp(c->name, "NATIVE_", 7) && random64() % 8)
			memcpy(arg, &(__u32){ c->size }, 4);
		step(&t, c->name, call(fd, c->cmd, arg), c->flags & IGNORED ? c->ones : sane);
	}
	check(!t.bad, "%s: %d %s", t.name, t.calls, t.about);
	/* It may have written there. */
	free(target);
}

/* ---- all of it ---------------------------------------------------------------------------- */

static void pointers(int fd)
{
	struct picture before = draw(0);

	wrong_numbers(fd);
	for (size_t i = 0; i < LEN(commands); i++)
		bad_pointers(fd, &commands[i]);
	check(same(&before, 0), "bad numbers and pointers: counters are as before");
	free(before.text);
}

/* With a descriptor, and where needed memory, of its own. */
static void with_device(int which)
{
	static const struct {
		void (*run)(int fd);
		int objects;
	} parts[] = {
		{ pointers, 0 }, { allocation, 1 }, { information, 1 }, { copies, 1 },
		{ rings, 1 }, { cores, 0 }, { notifications, 0 }, { mappings, 1 },
		{ anything, 1 },
	};
	int fd;

	if (which >= (int)LEN(parts))
		return;
	fd = open_node(O_RDWR);
	if (parts[which].objects)
		make_objects(fd);
	parts[which].run(fd);
	if (parts[which].objects && parts[which].run != anything)
		free_objects(fd);
	close(fd);
}

static void with_strangers(int unused)
{
	int fd = open_node(O_RDWR);

	(void)unused;
	make_objects(fd);
	no_core_for_bad_requests(fd);
	owner(fd);
}

/* ---- processes that come and go ----------------------------------------------------------- */

static void wait_forever(void)
{
	for (;;)
		pause();
}

/* No more than 16 processes at a time; this one's parent is one of them. */
static void too_many(int unused)
{
	pid_t pids[20];
	int opened = 0, busy = 0, p[2];
	char result;

	(void)unused;
	if (pipe(p))
		exit(2);
	for (size_t i = 0; i < LEN(pids); i++) {
		pids[i] = fork();
		if (!pids[i]) {
			int fd = open(NODE, O_RDWR);

			result = fd >= 0 ? 'o' : errno == EBUSY ? 'b' : '?';
			if (write(p[1], &result, 1) < 0)
				_exit(1);
			wait_forever();
		}
		if (read(p[0], &result, 1) == 1) {
			opened += result == 'o';
			busy += result == 'b';
		}
	}
	check(opened == NEURON_MAX_PROCESS_PER_DEVICE - 1 && opened + busy == (int)LEN(pids),
	      "%d more processes can open the device, %d get EBUSY", opened, busy);
	for (size_t i = 0; i < LEN(pids); i++)
		kill(pids[i], SIGKILL);
	for (size_t i = 0; i < LEN(pids); i++)
		waitpid(pids[i], NULL, 0);
	close(open_node(O_RDWR));
}

/* A dead process has given back what it owned, even if another process has its descriptor. */
static void death(int with_heir)
{
	struct picture before = draw(1);
	struct neuron_ioctl_dma_queue_init init = {
		.qid = 4, .tx_desc_count = RING, .rx_desc_count = RING,
	};
	struct neuron_ioctl_semaphore sem = { .semaphore_index = 1 };
	const char *who = with_heir ? "killed with a child that has its descriptor" : "killed";
	int ready[2], status;
	pid_t pid, heir = 0;

	if (pipe(ready))
		exit(2);
	pid = fork();
	if (!pid) {
		int fd = open_node(O_RDWR);
		struct neuron_ioctl_mem_get_extended_info info;

		make_objects(fd);
		init.tx_handle = tx_ring;
		init.rx_handle = rx_ring;
		info.mem_handle = dev_mem;
		if (call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init) ||
		    call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &sem) ||
		    call(fd, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &info) ||
		    mmap(NULL, CHUNK, PROT_READ, MAP_SHARED, fd, (off_t)info.mmap_offset) ==
		    MAP_FAILED)
			_exit(1);
		if (with_heir) {
			heir = fork();
			if (!heir)
				wait_forever();
		}
		if (write(ready[1], &heir, sizeof(heir)) < 0)
			_exit(1);
		wait_forever();
	}
	close(ready[1]);
	if (read(ready[0], &heir, sizeof(heir)) != sizeof(heir))
		check(0, "%s: got its memory", who);
	else
		check(!same_quietly(&before), "%s: has memory while it lives", who);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	check(same(&before, 1), "%s: everything is back", who);
	in_child(can_have_core, 0);
	if (heir)
		kill(heir, SIGKILL);
	free(before.text);
}

static void through_inheritance(int unused)
{
	int fd = open_node(O_RDWR);

	(void)unused;
	in_child(inherited, fd);
	close(fd);
}

/*
 * The driver's own memory for copies comes when a core first copies and goes
 * with the last process. This one stays, so that it does not disturb.
 */
static int warm_up(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_native_geometry geometry = { .size = sizeof(geometry) };

	if (call(fd, NEURON_NATIVE_GET_GEOMETRY, &geometry))
		check(0, "GET_GEOMETRY");
	for (__u32 core = 0; core < geometry.nr_cores; core++) {
		__u64 handle = 0;
		struct neuron_ioctl_mem_alloc req = {
			.size = 4096, .nc_id = core, .mem_handle = &handle,
		};
		struct neuron_ioctl_memset64 fill = { .size = 4096 };

		if (!check(!call(fd, NEURON_IOCTL_MEM_ALLOC, &req), "core %u: allocate", core))
			continue;
		fill.mem_handle = handle;
		check(!call(fd, NEURON_IOCTL_MEMSET64, &fill), "core %u: fill", core);
		free_one(fd, handle);
	}
	return fd;
}

int main(void)
{
	struct picture idle, before;
	int loaded = access(NODE, F_OK) == 0;
	int fd;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!loaded && system("modprobe neuron_emu"))
		check(0, "modprobe neuron_emu");
	for (int i = 0; i < 100 && access(NODE, F_OK); i++)
		usleep(50000);

	page = (size_t)sysconf(_SC_PAGESIZE);
	unmapped = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	readonly = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (unmapped == MAP_FAILED || readonly == MAP_FAILED)
		return 2;
	unmapped += 7 * page;
	/* Kept, so that nothing else is put there. */
	mprotect(unmapped, page, PROT_NONE);

	idle = draw(1);
	check(idle.len > 0, "the memory counters can be read");
	fd = warm_up();
	before = draw(1);
	for (int i = 0; i < 16; i++)
		in_child(with_device, i);
	in_child(with_strangers, 0);
	in_child(open_modes, 0);
	in_child(through_inheritance, 0);
	in_child(passed, 0);
	in_child(too_many, 0);
	in_child(death, 0);
	in_child(death, 1);

	check(same(&before, 1), "all processes are gone: nothing is in use that was not before");
	in_child(with_device, 3);	/* the device still works */
	close(fd);
	check(same(&idle, 1), "nobody has the device open: nothing is in use");
	if (!loaded)
		check(!system("rmmod neuron_emu"), "the device can be removed");

	printf("# %d points, %d failed\n", points, failures);
	return failures != 0;
}

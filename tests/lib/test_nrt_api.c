// SPDX-License-Identifier: GPL-2.0-only
/* The runtime interface: states, arguments, tensors, models, status codes, log lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <nrt/nrt.h>
#include <nrt/nrt_experimental.h>

#include "fake_driver.h"
#include "test_neffs.h"

/* What went to stderr since the last look. */
static char log_text[16384];
static int log_pipe[2], real_stderr;

static const char *take_log(void)
{
	ssize_t n;

	fflush(stderr);
	n = read(log_pipe[0], log_text, sizeof(log_text) - 1);
	log_text[n > 0 ? n : 0] = '\0';
	return log_text;
}

static void logged(const char *text)
{
	if (!strstr(take_log(), text))
		fail_msg("log is '%s', not '%s'", log_text, text);
}

static int group_setup(void **state)
{
	(void)state;
	real_stderr = dup(2);
	return pipe2(log_pipe, O_NONBLOCK) || dup2(log_pipe[1], 2) != 2;
}

static int group_teardown(void **state)
{
	(void)state;
	return dup2(real_stderr, 2) != 2;
}

static void clear_env(void)
{
	static const char *const names[] = {
		"NEURON_RT_VISIBLE_CORES", "NEURON_RT_NUM_CORES", "NEURON_RT_EXEC_TIMEOUT",
		"NEURON_SCRATCHPAD_PAGE_SIZE", "NEURON_RT_VALIDATE_HASH",
		"NEURON_RT_NEFF_MAX_UNPACKED_MB", "NEURON_RT_NEFF_SHORT_CONSTANTS", "NEURON_RT_MAP_HBM",
		"NEURON_RT_LOG_LEVEL", "NEURON_RT_LOG_LEVEL_TDRV", "NEURON_RT_LOG_LEVEL_NMGR",
		"NEURON_RT_LOG_LOCATION", "NEURON_RT_LOG_LOCATION_NMGR",
		"NEURON_RT_CONTIGUOUS_SCRATCHPAD", "NEURON_RT_ENABLE_DEVICE_MEMORY_OOM_LOG",
		"NEURON_RT_PRETEND",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	/* A logical core is a physical one, and no microcode is set aside. */
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_MICROCODE_MB", "0", 1);
}

static int setup(void **state)
{
	(void)state;
	clear_env();
	fake.nr_devices = 2;
	take_log();
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS;
}

static int setup_idle(void **state)
{
	(void)state;
	clear_env();
	fake.nr_devices = 2;
	take_log();
	return 0;
}

static void remove_reports(void)
{
	char path[128];

	for (unsigned int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "/tmp/neuron_mem_table_device_%u_hbm_%u.log", i / 2, i % 2);
		unlink(path);
		snprintf(path, sizeof(path), "/tmp/neuron_mem_table_device_%u_hbm_%u_%x.log", i / 2,
			 i % 2, (unsigned int)getpid());
		unlink(path);
		snprintf(path, sizeof(path), "/tmp/neuron_mem_log_device_%u_hbm_%u_%x.csv", i / 2, i % 2,
			 (unsigned int)getpid());
		unlink(path);
	}
}

/* Everything is back, in the driver and in the process (the rest is LeakSanitizer's). */
static int teardown(void **state)
{
	(void)state;
	fake.fail_at = 0;
	fake.stuck = false;
	fake.reason = NEURON_NATIVE_REASON_NONE;
	fake.pretend = NULL;
	nrt_close();
	clear_env();
	remove_reports();
	return fake_used() || fake.mapped || fake.dev[0].opens || fake.dev[1].opens || fake.claimed;
}

static nrt_tensor_t *tensor(size_t size, int vnc)
{
	nrt_tensor_t *t = NULL;

	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, vnc, size, "t", &t),
			 NRT_SUCCESS);
	return t;
}

static nrt_model_t *load(struct neff_bytes n, int32_t vnc)
{
	nrt_model_t *m = NULL;

	if (nrt_load(n.data, n.size, vnc, -1, &m) != NRT_SUCCESS)
		fail_msg("%s", take_log());
	free(n.data);
	return m;
}

struct io {
	nrt_tensor_t *x, *y;
	nrt_tensor_set_t *in, *out;
	uint8_t bytes[1024];
};

static void io_sets(struct io *io)
{
	assert_int_equal(nrt_allocate_tensor_set(&io->in), NRT_SUCCESS);
	assert_int_equal(nrt_allocate_tensor_set(&io->out), NRT_SUCCESS);
	assert_int_equal(nrt_add_tensor_to_tensor_set(io->in, "x", io->x), NRT_SUCCESS);
	assert_int_equal(nrt_add_tensor_to_tensor_set(io->out, "y", io->y), NRT_SUCCESS);
	for (size_t i = 0; i < sizeof(io->bytes); i++)
		io->bytes[i] = (uint8_t)(i * 13 + 5);
	assert_int_equal(nrt_tensor_write(io->x, io->bytes, 0, nrt_tensor_get_size(io->x) < 1024 ?
					  nrt_tensor_get_size(io->x) : 1024), NRT_SUCCESS);
}

static void io_init(struct io *io, size_t size, int vnc)
{
	io->x = tensor(size, vnc);
	io->y = tensor(size, vnc);
	io_sets(io);
}

static void io_free(struct io *io)
{
	nrt_destroy_tensor_set(&io->in);
	nrt_destroy_tensor_set(&io->out);
	assert_null(io->in);
	nrt_tensor_free(&io->x);
	nrt_tensor_free(&io->y);
	assert_null(io->x);
}

static void check_list(const struct io *io)
{
	uint8_t want[1024], got[1024];

	list_expected(io->bytes, want);
	assert_int_equal(nrt_tensor_read(io->y, got, 0, 1024), NRT_SUCCESS);
	assert_memory_equal(got, want, 1024);
}

/* ---- states ------------------------------------------------------------------------ */

static void check_states(NRT_STATUS want)
{
	nrt_tensor_t *t = NULL;
	nrt_tensor_set_t *set = NULL;
	nrt_model_t *m = NULL;
	nrt_vnc_memory_stats_t stats;
	uint32_t n;
	int dmabuf;
	char c;

	assert_int_equal(nrt_load("x", 1, 0, -1, &m), want);
	assert_int_equal(nrt_unload(m), want);
	assert_int_equal(nrt_execute(m, NULL, NULL), want);
	assert_int_equal(nrt_execute_repeat(m, NULL, NULL, 2), want);
	assert_int_equal(nrt_get_model_vnc_count(m, &n), want);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 1, "", &t), want);
	assert_int_equal(nrt_tensor_allocate_empty("", &t), want);
	assert_int_equal(nrt_tensor_read(t, &c, 0, 1), want);
	assert_int_equal(nrt_tensor_write(t, &c, 0, 1), want);
	assert_int_equal(nrt_tensor_read_batch(NULL, 0, false), want);
	assert_int_equal(nrt_tensor_copy(t, 0, t, 0, 1), want);
	assert_int_equal(nrt_tensor_memset(t, 0, 0, 1), want);
	assert_int_equal(nrt_tensor_attach_buffer(t, &c, 1), want);
	assert_int_equal(nrt_get_dmabuf_fd(1, 1, &dmabuf), want);
	assert_int_equal(nrt_tensor_allocate_slice(t, 0, 1, "", &t), want);
	assert_int_equal(nrt_allocate_tensor_set(&set), want);
	assert_int_equal(nrt_add_tensor_to_tensor_set(set, "", t), want);
	assert_int_equal(nrt_get_tensor_from_tensor_set(set, "", &t), want);
	assert_int_equal(nrt_get_vnc_memory_stats(0, &stats, sizeof(stats), NULL), want);
	assert_null(nrt_tensor_get_va(t));
}

static void check_any_time(void)
{
	nrt_instance_info_t info;
	nrt_version_t version;
	uint32_t n = 0;

	assert_int_equal(nrt_get_total_vnc_count(&n), NRT_SUCCESS);
	assert_int_equal(n, 2 * FAKE_CORES);
	assert_int_equal(nrt_get_total_nc_count(&n), NRT_SUCCESS);
	assert_int_equal(nrt_get_total_nc_count(NULL), NRT_INVALID);
	assert_int_equal(nrt_get_visible_nc_count(&n), NRT_SUCCESS);
	assert_int_equal(nrt_get_instance_info(&info, sizeof(info)), NRT_SUCCESS);
	assert_int_equal(info.family, NRT_INSTANCE_TRN2);
	assert_string_equal(info.arch_name, "trn2");
	assert_int_equal(nrt_get_instance_info(NULL, 0), NRT_INVALID);
	memset(&version, 0xff, sizeof(version));
	assert_int_equal(nrt_get_version(&version, 16), NRT_SUCCESS);
	assert_int_equal(version.rt_major, 2);
	assert_true(version.rt_patch == UINT64_MAX);
	assert_int_equal(nrt_get_version(&version, sizeof(version)), NRT_SUCCESS);
	assert_non_null(strstr(version.rt_detail, "test"));
	assert_int_equal(nrt_get_version(NULL, 8), NRT_INVALID);
}

/* Runs first: the process has not called nrt_init() yet. */
static void test_states(void **state)
{
	uint32_t n;

	(void)state;
	fake.nr_devices = 2;
	clear_env();
	check_states(NRT_UNINITIALIZED);
	check_any_time();
	setenv("NEURON_RT_VISIBLE_CORES", "2-4", 1);
	assert_int_equal(nrt_get_visible_vnc_count(&n), NRT_SUCCESS);
	assert_int_equal(n, 3);
	clear_env();
	nrt_close();
	check_states(NRT_UNINITIALIZED);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_FAILURE);
	logged("already initialised");
	check_any_time();
	nrt_close();
	check_states(NRT_CLOSED);
	check_any_time();
	nrt_close();
}

static void init_fails(NRT_STATUS want, const char *text)
{
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), want);
	logged(text);
	assert_int_equal(fake.dev[0].opens + fake.dev[1].opens, 0);
	assert_int_equal(fake_used(), 0);
	assert_false(fake.claimed);
}

static void init_cores(uint32_t want)
{
	uint32_t n;

	if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, NULL, NULL) != NRT_SUCCESS)
		fail_msg("%s", take_log());
	assert_int_equal(nrt_get_visible_vnc_count(&n), NRT_SUCCESS);
	assert_int_equal(n, want);
}

static void test_init_fails(void **state)
{
	(void)state;
	fake.nr_devices = 0;
	init_fails(NRT_FAILURE, "cannot determine driver version, check dkms package");
	fake.nr_devices = 2;
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_INVALID, "", ""), NRT_INVALID);
	fake.open_fails = true;
	init_fails(NRT_FAILURE, "cannot initialise");
	fake.open_fails = false;
}

static void test_visible_cores(void **state)
{
	static const char *const bad[] = { "x", "1,", "3-1", "0,2", "1,0", "-1", "0-", "99999999999" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("NEURON_RT_VISIBLE_CORES", bad[i], 1);
		init_fails(NRT_INVALID, "NEURON_RT_VISIBLE_CORES");
	}
	setenv("NEURON_RT_VISIBLE_CORES", "6-8", 1);
	init_fails(NRT_FAILURE, "NeuronCore(s) not available - Requested:nc6-nc8");
	setenv("NEURON_RT_VISIBLE_CORES", "3,4-5", 1);
	init_cores(3);
	/* Cores 3, 4 and 5 of the host: the last of device 0, two of device 1. */
	assert_int_equal(fake.dev[0].opens, 1);
	assert_int_equal(fake.dev[1].opens, 1);
	assert_int_equal(fake.dev[1].core[1].nq[NQ_TYPE_NOTIFY][4].on, true);
	assert_int_equal(fake.dev[1].core[2].nq[NQ_TYPE_NOTIFY][4].on, false);
	nrt_close();
}

static void test_num_cores(void **state)
{
	char holder[64];

	(void)state;
	setenv("NEURON_RT_NUM_CORES", "many", 1);
	init_fails(NRT_INVALID, "NEURON_RT_NUM_CORES");
	setenv("NEURON_RT_NUM_CORES", "9", 1);
	init_fails(NRT_FAILURE, "not available");
	/* Two in a row: 1 and 2 are taken, 3 and 4 are not. */
	fake.dev[0].core[1].owned_by_other = true;
	fake.dev[0].core[2].owned_by_other = true;
	setenv("NEURON_RT_NUM_CORES", "2", 1);
	init_cores(2);
	assert_true(fake.dev[0].core[3].nq[NQ_TYPE_ERROR][0].on);
	assert_true(fake.dev[1].core[0].nq[NQ_TYPE_ERROR][0].on);
	nrt_close();
	setenv("NEURON_RT_NUM_CORES", "0", 1);
	init_fails(NRT_FAILURE, "Requested:nc0-nc7");
	snprintf(holder, sizeof(holder), "nc1-nc2: held by process %d (", getppid());
	init_fails(NRT_FAILURE, holder);
	fake.dev[0].core[1].owned_by_other = false;
	fake.dev[0].core[2].owned_by_other = false;
}

static void test_other_variables(void **state)
{
	(void)state;
	setenv("NEURON_RT_EXEC_TIMEOUT", "-1", 1);
	init_fails(NRT_INVALID, "NEURON_RT_EXEC_TIMEOUT");
	setenv("NEURON_RT_EXEC_TIMEOUT", "9999999999", 1);
	init_fails(NRT_INVALID, "NEURON_RT_EXEC_TIMEOUT=9999999999 is not a number of seconds");
	unsetenv("NEURON_RT_EXEC_TIMEOUT");
	setenv("NEURON_SCRATCHPAD_PAGE_SIZE", "1000", 1);
	init_fails(NRT_INVALID, "multiple of 512");
}

/* A driver with a table of claims. */
static void test_init_claims(void **state)
{
	(void)state;
	fake.has_claims = true;
	setenv("NEURON_RT_VISIBLE_CORES", "2", 1);
	init_cores(1);
	assert_true(fake.claimed);
	nrt_close();
	assert_false(fake.claimed);
	fake.claims_busy = true;
	init_fails(NRT_FAILURE, "Requested:nc2-nc2 Available:1");
	fake.claims_busy = fake.has_claims = false;
}

/* A control group leaves this process the second device only. */
static void test_init_second_device(void **state)
{
	static const char *const wishes[][2] = {
		{ "NEURON_RT_VISIBLE_CORES", "5" }, { "NEURON_RT_NUM_CORES", "1" },
	};
	struct neuron_device_entry *list;
	uint32_t n = 7;
	size_t nr;

	(void)state;
	fake.has_claims = true;
	/* Of none, there is no first core. */
	assert_int_equal(neuron_device_list(&list, &nr), 0);
	fake.denied = 3;
	assert_int_equal(neuron_usable_cores(list, nr, &n), 0);
	assert_int_equal(neuron_usable_cores(NULL, 0, &n), 0);
	assert_int_equal(n, 7);
	neuron_device_list_free(list);
	fake.denied = 1;
	for (size_t i = 0; i < 2; i++) {
		setenv(wishes[i][0], wishes[i][1], 1);
		init_cores(1);
		assert_true(fake.claimed);
		assert_int_equal(fake.claimed_core, i ? 4 : 5);
		assert_int_equal(fake.dev[0].opens, 0);
		assert_int_equal(fake.dev[1].opens, 1);
		nrt_close();
		unsetenv(wishes[i][0]);
	}
	/* Without a wish all of that one; the number is known before. */
	assert_int_equal(nrt_get_visible_vnc_count(&n), NRT_SUCCESS);
	assert_int_equal(n, 4);
	init_cores(4);
	assert_int_equal(fake.dev[0].opens, 0);
	assert_int_equal(fake.dev[1].opens, 1);
	nrt_close();
	setenv("NEURON_RT_NUM_CORES", "5", 1);
	init_fails(NRT_FAILURE, "not available");
	setenv("NEURON_RT_VISIBLE_CORES", "1", 1);
	init_fails(NRT_FAILURE, "Could not open the nd0");
	fake.denied = 0;
	fake.has_claims = false;
}

/* Each call of the driver fails once. */
static void test_init_driver_fails(void **state)
{
	(void)state;
	for (unsigned int i = 1;; i++) {
		NRT_STATUS status;

		fake_fail(i, 0, EIO);
		status = nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
		if (status == NRT_SUCCESS) {
			nrt_close();
			if (fake.fail_at)
				break;
			continue;	/* the claim, which may be missing */
		}
		assert_int_equal(fake.dev[0].opens + fake.dev[1].opens, 0);
		assert_int_equal(fake_used(), 0);
	}
	fake.fail_at = 0;
	take_log();
}

/* ---- tensors ----------------------------------------------------------------------- */

static void test_tensor(void **state)
{
	nrt_tensor_device_allocation_info_t info;
	nrt_vnc_memory_stats_t stats;
	nrt_tensor_t *t, *bad = NULL;
	size_t size = 0;
	char in[100], out[100];

	(void)state;
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (char)i;
	t = tensor(5000, 6);
	assert_int_equal(nrt_tensor_get_size(t), 5000);
	assert_int_equal(fake.dev[1].by_category[NEURON_MEM_TENSORS], 8192);
	assert_int_equal(nrt_tensor_write(t, in, 4900, 100), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_read(t, out, 4900, 100), NRT_SUCCESS);
	assert_memory_equal(in, out, 100);
	assert_int_equal(nrt_tensor_write(t, in, 4901, 100), NRT_INVALID);
	logged("tensor t of 5000 bytes: 100 bytes at 4901 are outside");
	assert_int_equal(nrt_tensor_read(t, out, SIZE_MAX, 2), NRT_INVALID);
	assert_int_equal(nrt_tensor_read(t, NULL, 0, 2), NRT_INVALID);
	assert_int_equal(nrt_tensor_read(NULL, out, 0, 2), NRT_INVALID);
	assert_int_equal(nrt_tensor_memset(t, 4910, 0x5a, 3), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_read(t, out, 4910, 4), NRT_SUCCESS);
	assert_memory_equal(out, "\x5a\x5a\x5a\x0d", 4);
	assert_int_equal(nrt_tensor_memset(t, 4999, 0, 2), NRT_INVALID);

	assert_int_equal(nrt_tensor_get_device_allocation_info(t, &info), NRT_SUCCESS);
	assert_int_equal(info.size, 8192);
	assert_int_equal(info.hbm_index, 1);
	assert_int_equal(nrt_get_vnc_memory_stats(6, &stats, sizeof(stats), &size), NRT_SUCCESS);
	assert_int_equal(size, sizeof(stats));
	assert_int_equal(stats.bytes_used, 8192);
	assert_true(stats.bytes_limit == FAKE_HBM_SIZE);
	assert_int_equal(nrt_get_vnc_memory_stats(8, &stats, sizeof(stats), &size), NRT_INVALID);
	assert_int_equal(nrt_get_vnc_memory_stats(0, NULL, 16, &size), NRT_INVALID);

	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 8, 1, "n", &bad),
			 NRT_INVALID);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, -1, 1, "n", &bad),
			 NRT_INVALID);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 0, "n", &bad),
			 NRT_INVALID);
	take_log();
	assert_int_equal(nrt_tensor_allocate((nrt_tensor_placement_t)7, 0, 1, "n\x1b[2J", &bad),
			 NRT_INVALID);
	logged("tensor n?[2J: placement 7");
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, FAKE_HBM_SIZE + 1, NULL,
					     &bad), NRT_RESOURCE);
	logged("Failed to allocate 24.000GB (alignment: none, usage: tensors) on ND 0:NC 0");
	assert_non_null(strstr(log_text, "HBM 0 of ND 0 is full: 24.000GB of 24.000GB are free"));
	assert_null(bad);
	/* More than the driver counts in pages. */
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, SIZE_MAX, NULL, &bad),
			 NRT_RESOURCE);
	nrt_tensor_free(&t);
	assert_null(t);
	nrt_tensor_free(&t);
	nrt_tensor_free(NULL);
	assert_int_equal(fake_used(), 0);
}

/* Mapped when a program asks for it, and not before. */
static void test_C2_address_of_a_device_tensor(void **state)
{
	nrt_tensor_t *t = tensor(5000, 6), *part;
	unsigned int mapped = fake.mapped;
	char *va, c = 0;

	(void)state;
	assert_int_equal(nrt_tensor_write(t, "abc", 100, 3), NRT_SUCCESS);
	assert_int_equal(fake.mapped, mapped);
	va = nrt_tensor_get_va(t);
	assert_non_null(va);
	assert_int_equal(fake.mapped, mapped + 1);
	assert_memory_equal(va + 100, "abc", 3);
	va[100] = 'x';
	assert_int_equal(nrt_tensor_read(t, &c, 100, 1), NRT_SUCCESS);
	assert_int_equal(c, 'x');
	assert_int_equal(nrt_tensor_allocate_slice(t, 100, 3, "s", &part), NRT_SUCCESS);
	assert_ptr_equal(nrt_tensor_get_va(part), va + 100);
	assert_int_equal(fake.mapped, mapped + 1);
	nrt_tensor_free(&part);
	nrt_tensor_free(&t);
	nrt_close();
	setenv("NEURON_RT_MAP_HBM", "0", 1);
	init_cores(8);
	t = tensor(5000, 6);
	assert_null(nrt_tensor_get_va(t));
	nrt_tensor_free(&t);
}

/* The exact cores win over a number of any. */
static void test_visible_and_number_of_cores(void **state)
{
	uint32_t n = 0;

	(void)state;
	setenv("NEURON_RT_VISIBLE_CORES", "3", 1);
	setenv("NEURON_RT_NUM_CORES", "2", 1);
	assert_int_equal(nrt_get_visible_vnc_count(&n), NRT_SUCCESS);
	assert_int_equal(n, 1);
	init_cores(1);
	assert_true(fake.dev[0].core[3].nq[NQ_TYPE_ERROR][0].on);
	assert_false(fake.dev[0].core[0].nq[NQ_TYPE_ERROR][0].on);
	nrt_close();
	unsetenv("NEURON_RT_VISIBLE_CORES");
	assert_int_equal(nrt_get_visible_vnc_count(&n), NRT_SUCCESS);
	assert_int_equal(n, 2);
	/* What nrt_init() would refuse is no answer. */
	setenv("NEURON_RT_NUM_CORES", "two", 1);
	assert_int_equal(nrt_get_visible_vnc_count(&n), NRT_INVALID);
	setenv("NEURON_RT_NUM_CORES", "9", 1);
	assert_int_equal(nrt_get_visible_vnc_count(&n), NRT_INVALID);
	assert_int_equal(n, 2);
	clear_env();
	init_cores(8);
}

static void test_slices(void **state)
{
	nrt_tensor_device_allocation_info_t whole, part;
	nrt_tensor_t *t = tensor(4096, 0), *a = NULL, *b = NULL;
	char c = 0;

	(void)state;
	assert_int_equal(nrt_tensor_allocate_slice(t, 1000, 500, "a", &a), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate_slice(a, 100, 400, NULL, &b), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate_slice(a, 101, 400, "c", &b), NRT_INVALID);
	assert_int_equal(nrt_tensor_allocate_slice(a, SIZE_MAX, 2, "c", &b), NRT_INVALID);
	/* From the start of the slice to the end of the allocation, no further. */
	assert_int_equal(nrt_tensor_get_device_allocation_info(t, &whole), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_get_device_allocation_info(b, &part), NRT_SUCCESS);
	assert_int_equal(part.physical_address, whole.physical_address + 1100);
	assert_int_equal(part.size, whole.size - 1100);
	assert_int_equal(nrt_tensor_memset(t, 1100, 9, 1), NRT_SUCCESS);
	nrt_tensor_free(&t);
	nrt_tensor_free(&a);
	/* The storage lives as long as its last user. */
	assert_int_equal(fake_used(), 4096);
	assert_int_equal(nrt_tensor_read(b, &c, 0, 1), NRT_SUCCESS);
	assert_int_equal(c, 9);
	assert_int_equal(nrt_tensor_read(b, &c, 400, 1), NRT_INVALID);
	nrt_tensor_free(&b);
	assert_int_equal(fake_used(), 0);
	take_log();
}

static void test_host_tensors(void **state)
{
	nrt_tensor_t *host, *virt, *dev = tensor(64, 1), *far = tensor(64, 5), *empty, *slice;
	nrt_tensor_device_allocation_info_t info;
	char buffer[64], out[64];

	(void)state;
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 1, 64, "h", &host),
			 NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_VIRTUAL, 1, 64, "v", &virt),
			 NRT_SUCCESS);
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_HOST_TENSORS], 4096);
	memset(nrt_tensor_get_va(host), 3, 64);
	assert_int_equal(nrt_tensor_copy(host, 0, dev, 32, 32), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_copy(dev, 0, virt, 0, 64), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_copy(dev, 0, far, 0, 64), NRT_INVALID);
	logged("on different devices");
	assert_int_equal(nrt_tensor_copy(virt, 0, far, 0, 64), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_copy(virt, 1, far, 0, 64), NRT_INVALID);
	assert_int_equal(nrt_tensor_read(far, out, 0, 64), NRT_SUCCESS);
	assert_int_equal(out[31], 0);
	assert_int_equal(out[32], 3);
	assert_memory_equal(nrt_tensor_get_va(virt), out, 64);

	assert_int_equal(nrt_tensor_allocate_empty("e", &empty), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_get_size(empty), 0);
	assert_int_equal(nrt_tensor_read(empty, out, 0, 0), NRT_INVALID);
	logged("tensor e has no storage");
	assert_int_equal(nrt_tensor_allocate_slice(empty, 0, 1, "s", &slice), NRT_INVALID);
	assert_int_equal(nrt_tensor_attach_buffer(empty, NULL, 5), NRT_INVALID);
	assert_int_equal(nrt_tensor_attach_buffer(empty, buffer, SIZE_MAX), NRT_INVALID);
	assert_int_equal(nrt_tensor_attach_buffer(empty, buffer, 64), NRT_SUCCESS);
	assert_ptr_equal(nrt_tensor_get_va(empty), buffer);
	assert_int_equal(nrt_tensor_memset(empty, 0, 7, 64), NRT_SUCCESS);
	assert_int_equal(buffer[63], 7);
	assert_int_equal(nrt_tensor_get_device_allocation_info(empty, &info), NRT_INVALID);
	/* The previous storage goes. */
	assert_int_equal(nrt_tensor_attach_buffer(dev, buffer, 10), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_get_size(dev), 10);
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_TENSORS], 0);
	nrt_tensor_free(&host);
	nrt_tensor_free(&virt);
	nrt_tensor_free(&dev);
	nrt_tensor_free(&far);
	nrt_tensor_free(&empty);
	take_log();
}

static void test_batches(void **state)
{
	nrt_tensor_t *a = tensor(64, 0), *b = tensor(64, 0);
	char one[8] = "1111111", two[8] = "2222222", got[2][8] = { { 0 } };
	nrt_tensor_batch_op_t wa[] = { { 0, 8, one }, { 8, 8, two } }, wb[] = { { 56, 8, one } };
	nrt_tensor_batch_op_t ra[] = { { 8, 8, got[0] } }, rb[] = { { 56, 8, got[1] } };
	nrt_tensor_batch_op_t bad[] = { { 57, 8, one } };
	nrt_tensor_batch_t w[] = { { a, wa, 2 }, { b, wb, 1 } }, r[] = { { a, ra, 1 }, { b, rb, 1 } };
	nrt_tensor_batch_t wrong[] = { { a, bad, 1 } }, null[] = { { a, NULL, 1 } };
	nrt_tensor_batch_op_t bad_good[] = { { 57, 8, one }, { 0, 8, two } };
	nrt_tensor_batch_t stops[] = { { a, bad, 1 }, { b, wb, 1 } }, later[] = { { a, bad_good, 2 } };

	(void)state;
	assert_int_equal(nrt_tensor_write_batch(w, 2, false), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_read_batch(r, 2, true), NRT_SUCCESS);
	assert_string_equal(got[0], two);
	assert_string_equal(got[1], one);
	assert_int_equal(nrt_tensor_write_batch(wrong, 1, false), NRT_INVALID);
	assert_int_equal(nrt_tensor_write_batch(null, 1, false), NRT_INVALID);
	assert_int_equal(nrt_tensor_write_batch(NULL, 1, false), NRT_INVALID);
	/* The first that fails is the last, in a tensor and of several. */
	assert_int_equal(nrt_tensor_write_batch(stops, 2, false), NRT_INVALID);
	assert_int_equal(nrt_tensor_write_batch(&stops[1], 1, true), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_read_batch(stops, 1, false), NRT_INVALID);
	assert_int_equal(nrt_tensor_write_batch(later, 1, false), NRT_INVALID);
	assert_int_equal(nrt_tensor_read(a, got[0], 0, 8), NRT_SUCCESS);
	assert_string_equal(got[0], one);
	assert_string_equal(one, "1111111");
	nrt_tensor_free(&a);
	nrt_tensor_free(&b);
	take_log();
}

static void test_sets(void **state)
{
	nrt_tensor_t *a = tensor(1, 0), *b = tensor(1, 0), *got = NULL;
	nrt_tensor_set_t *set;
	char name[16];

	(void)state;
	assert_int_equal(nrt_allocate_tensor_set(NULL), NRT_INVALID);
	assert_int_equal(nrt_allocate_tensor_set(&set), NRT_SUCCESS);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(nrt_add_tensor_to_tensor_set(set, name, a), NRT_SUCCESS);
	}
	assert_int_equal(nrt_add_tensor_to_tensor_set(set, "n7", b), NRT_SUCCESS);
	assert_int_equal(nrt_get_tensor_from_tensor_set(set, "n99", &got), NRT_SUCCESS);
	assert_ptr_equal(got, a);
	assert_int_equal(nrt_get_tensor_from_tensor_set(set, "n7", &got), NRT_SUCCESS);
	assert_ptr_equal(got, b);
	assert_int_equal(nrt_get_tensor_from_tensor_set(set, "n100", &got), NRT_FAILURE);
	assert_ptr_equal(got, b);
	assert_int_equal(nrt_add_tensor_to_tensor_set(set, NULL, a), NRT_INVALID);
	assert_int_equal(nrt_add_tensor_to_tensor_set(set, "x", NULL), NRT_INVALID);
	assert_int_equal(nrt_add_tensor_to_tensor_set(NULL, "x", a), NRT_INVALID);
	nrt_destroy_tensor_set(&set);
	assert_null(set);
	nrt_destroy_tensor_set(&set);
	nrt_tensor_free(&a);
	nrt_tensor_free(&b);
}

/* What was freed is known to be, whatever its memory has become. */
static void test_L2_freed_handles(void **state)
{
	nrt_tensor_t *dead, *t = tensor(64, 0), *slice = NULL;
	nrt_tensor_device_allocation_info_t info;
	nrt_tensor_set_t *set, *dead_set;
	nrt_model_t *m;
	struct io io;
	char c;

	(void)state;
	dead = t;
	nrt_tensor_free(&t);
	assert_int_equal(nrt_tensor_read(dead, &c, 0, 1), NRT_INVALID);
	assert_int_equal(nrt_tensor_write(dead, &c, 0, 1), NRT_INVALID);
	assert_int_equal(nrt_tensor_memset(dead, 0, 0, 1), NRT_INVALID);
	assert_int_equal(nrt_tensor_allocate_slice(dead, 0, 1, "s", &slice), NRT_INVALID);
	assert_int_equal(nrt_tensor_attach_buffer(dead, &c, 1), NRT_INVALID);
	assert_int_equal(nrt_tensor_get_device_allocation_info(dead, &info), NRT_INVALID);
	assert_int_equal(nrt_tensor_check_output_completion(dead, 0, 1), NRT_INVALID);
	assert_int_equal(nrt_tensor_get_size(dead), 0);
	assert_null(nrt_tensor_get_va(dead));
	assert_int_equal(nrt_allocate_tensor_set(&set), NRT_SUCCESS);
	assert_int_equal(nrt_add_tensor_to_tensor_set(set, "x", dead), NRT_INVALID);
	nrt_tensor_free(&dead);
	/* One for the other, and a set that is gone. */
	t = tensor(64, 0);
	assert_int_equal(nrt_tensor_read((nrt_tensor_t *)set, &c, 0, 1), NRT_INVALID);
	assert_int_equal(nrt_add_tensor_to_tensor_set(t, "x", t), NRT_INVALID);
	dead_set = set;
	nrt_destroy_tensor_set(&set);
	assert_int_equal(nrt_add_tensor_to_tensor_set(dead_set, "x", t), NRT_INVALID);
	assert_int_equal(nrt_get_tensor_from_tensor_set(dead_set, "x", &slice), NRT_INVALID);
	nrt_destroy_tensor_set(&dead_set);
	nrt_tensor_free(&t);
	/* In a set that is alive. */
	m = load(make_list_neff(), 0);
	io_init(&io, 1024, 0);
	assert_int_equal(nrt_execute(m, dead_set, io.out), NRT_INVALID);
	nrt_tensor_free(&io.x);
	take_log();
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_INVALID);
	logged("input x of list was freed");
	io_free(&io);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
}

/* ---- models ------------------------------------------------------------------------ */

static void test_canonical(void **state)
{
	uint64_t host = fake.dev[0].by_category[NEURON_MEM_HOST_TENSORS];
	nrt_tensor_info_array_t *info;
	nrt_model_info_t mi;
	nrt_model_t *m;
	struct io io;
	uint32_t n;
	size_t out;

	(void)state;
	m = load(make_list_neff(), 2);
	assert_int_equal(nrt_get_model_tensor_info(m, &info), NRT_SUCCESS);
	assert_int_equal(info->tensor_count, 2);
	assert_string_equal(info->tensor_array[0].name, "x");
	assert_int_equal(info->tensor_array[0].usage, NRT_TENSOR_USAGE_INPUT);
	assert_int_equal(info->tensor_array[1].size, 1024);
	assert_int_equal(info->tensor_array[1].dtype, NRT_DTYPE_UINT8);
	assert_int_equal(info->tensor_array[1].ndim, 1);
	assert_int_equal(info->tensor_array[1].shape[0], 1024);
	assert_int_equal(nrt_free_model_tensor_info(info), NRT_SUCCESS);
	assert_int_equal(nrt_free_model_tensor_info(NULL), NRT_INVALID);
	assert_int_equal(nrt_get_model_info(m, &mi, sizeof(mi), &out), NRT_SUCCESS);
	assert_int_equal(mi.vnc, 2);
	assert_int_equal(nrt_get_model_nc_count(m, &n), NRT_SUCCESS);
	assert_int_equal(n, 1);
	assert_int_equal(nrt_get_model_instance_count(m, &n), NRT_SUCCESS);
	assert_int_equal(n, 1);

	io_init(&io, 1024, 2);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(nrt_execute(m, io.in, io.out), NRT_SUCCESS);
		check_list(&io);
	}
	/* A slice of a larger tensor, and buffers of the caller. */
	nrt_tensor_free(&io.y);
	nrt_tensor_t *big = tensor(8192, 3);

	assert_int_equal(nrt_tensor_allocate_slice(big, 4000, 1024, "s", &io.y), NRT_SUCCESS);
	assert_int_equal(nrt_add_tensor_to_tensor_set(io.out, "y", io.y), NRT_SUCCESS);
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_SUCCESS);
	check_list(&io);
	uint8_t x[1024], y[1024];

	memcpy(x, io.bytes, sizeof(x));
	assert_int_equal(nrt_tensor_attach_buffer(io.x, x, sizeof(x)), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_attach_buffer(io.y, y, sizeof(y)), NRT_SUCCESS);
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_SUCCESS);
	check_list(&io);
	x[1000] ^= 0xff;
	io.bytes[1000] ^= 0xff;
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_SUCCESS);
	check_list(&io);
	io_free(&io);
	nrt_tensor_free(&big);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
	assert_int_equal(nrt_unload(m), NRT_INVALID_HANDLE);
	assert_int_equal(nrt_execute(m, NULL, NULL), NRT_INVALID_HANDLE);
	assert_int_equal(nrt_get_model_nc_count(m, &n), NRT_INVALID_HANDLE);
	assert_int_equal(fake_used(), 0);
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_HOST_TENSORS], host);
}

static void test_load_arguments(void **state)
{
	struct neff_bytes n = make_list_neff();
	nrt_model_t *m = NULL, *more[8];
	uint8_t *byte = n.data;

	(void)state;
	assert_int_equal(nrt_load(NULL, 1, 0, -1, &m), NRT_INVALID);
	assert_int_equal(nrt_load(n.data, 0, 0, -1, &m), NRT_INVALID);
	assert_int_equal(nrt_load(n.data, n.size, 0, -1, NULL), NRT_INVALID);
	assert_int_equal(nrt_load(n.data, n.size, -2, -1, &m), NRT_INVALID);
	assert_int_equal(nrt_load(n.data, n.size, 8, -1, &m), NRT_LOAD_NOT_ENOUGH_NC);
	assert_int_equal(nrt_load(n.data, n.size, 0, 2, &m), NRT_LOAD_NOT_ENOUGH_NC);
	take_log();
	assert_int_equal(nrt_load(n.data, n.size - 1, 0, -1, &m), NRT_INVALID);
	/* One line, where and what. */
	logged("NMGR:kmgr_load_nn_post_metrics");
	assert_ptr_equal(strchr(log_text, '\n'), log_text + strlen(log_text) - 1);
	assert_non_null(strstr(log_text, "failed to load NN list: header: "));
	assert_non_null(strstr(log_text, "err: 2\n"));
	byte[552] = 2;
	assert_int_equal(nrt_load(n.data, n.size, 0, -1, &m), NRT_INVALID);
	byte[552] = 1;
	assert_null(m);
	assert_int_equal(fake_used(), 0);
	/* -1 spreads over the cores. */
	for (int i = 0; i < 8; i++) {
		nrt_model_info_t info;

		assert_int_equal(nrt_load(n.data, n.size, -1, -1, &more[i]), NRT_SUCCESS);
		assert_int_equal(nrt_get_model_info(more[i], &info, sizeof(info), NULL), NRT_SUCCESS);
		assert_int_equal(info.vnc, i);
	}
	/* nrt_close() unloads them. */
	free(n.data);
	take_log();
}

/* Two subgraphs, for two physical cores. */
static void test_two_cores(void **state)
{
	static const char *const members[][2] = {
		{ "kelf-0.json", "{\"graphs\": [{\"definition\": \"sg00/def.json\", \"name\": \"sg00\"},"
		  " {\"definition\": \"sg01/def.json\", \"name\": \"sg01\"}]}" },
		{ "sg00/def.json", "{\"name\": \"definition\", \"dma_queue\": {}, \"var\": {}}" },
		{ "sg01/def.json", "{\"name\": \"definition\", \"dma_queue\": {}, \"var\": {}}" },
	};
	struct neuron_neff_header header = {
		.size = sizeof(header), .version_major = 2, .num_tpb = 2, .lnc_size = 2,
	};
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	nrt_model_t *m = NULL;
	void *bytes;
	size_t size;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(neuron_neff_writer_add(w, members[i][0], members[i][1],
							strlen(members[i][1])), 0);
	assert_int_equal(neuron_neff_writer_finish(w, &header, true, &bytes, &size), 0);
	neuron_neff_writer_free(w);
	assert_int_equal(nrt_load(bytes, size, 0, -1, &m), NRT_UNSUPPORTED_NEFF_VERSION);
	logged("header: made for logical cores of 2 physical cores");
	assert_int_equal(fake_used(), 0);
	free(bytes);
}

static void test_oom(void **state)
{
	struct neff_bytes n = make_list_neff();
	nrt_model_t *m = NULL;

	(void)state;
	fake.reason = NEURON_NATIVE_REASON_FRAGMENTED;
	assert_int_equal(nrt_load(n.data, n.size, 0, -1, &m), NRT_RESOURCE);
	logged("usage: shared scratchpad) on ND 0:NC 0");
	assert_non_null(strstr(log_text, "HBM 0 of ND 0 is fragmented: 24.000GB of 24.000GB are free"));
	fake.reason = NEURON_NATIVE_REASON_NONE;
	assert_null(m);
	assert_int_equal(fake_used(), 0);
	free(n.data);
}

/* The figures of the line under the table: total, in rows, free, reserved. */
static void balance_of(const char *text, unsigned long long b[4])
{
	const char *at = strstr(text, " reserved (");

	assert_non_null(at);
	assert_int_equal(sscanf(at, " reserved (%llu = %llu + %llu + %llu bytes)", &b[0], &b[1], &b[2],
				&b[3]), 4);
	assert_true(b[0] == b[1] + b[2] + b[3]);
}

/* The other nodes would not be run. */
static void test_load_network(void **state)
{
	static const char alone[] =
		NETWORK("\"edges\": [{\"name\": \"x\", \"bytes\": 1024, \"use\": \"input\"},"
			" {\"name\": \"b\", \"bytes\": 1024, \"use\": \"output\"}]", NODE_A);
	static const char other[] =
		NETWORK("\"edges\": [{\"name\": \"c\", \"bytes\": 1024, \"use\": \"input\"},"
			" {\"name\": \"y\", \"bytes\": 1024, \"use\": \"output\"}]", NODE_B);
	static const char host[] =
		NETWORK("\"edges\": [{\"name\": \"b\", \"bytes\": 1024, \"use\": \"input\"},"
			" {\"name\": \"c\", \"bytes\": 1024, \"use\": \"output\"}]", NODE_OP);
	static const char several[] = NETWORK(EDGES, NODE_A "," NODE_OP "," NODE_B);
	static const char *const networks[] = { several, host, other };
	static const char *const texts[] = {
		"net: neff.json: nodes: a network of 3, 1 of them on the host: only neuron_net_load()",
		"net: neff.json: nodes: a network of 1, 1 of them on the host: only",
		"net: neff.json: nodes: a network of 1, 0 of them on the host: only",
	};
	nrt_model_t *m = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
		struct neff_bytes n = make_net(networks[i]);

		take_log();
		assert_int_equal(nrt_load(n.data, n.size, 0, -1, &m), NRT_UNSUPPORTED_NEFF_VERSION);
		assert_null(m);
		logged(texts[i]);
		free(n.data);
	}
	assert_int_equal(fake_used(), 0);
	m = load(make_net(alone), 0);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
}

/* A load that fails is reported as it was then: with what the model had got. */
static void test_T1_load(void **state)
{
	static const char def[] =
		"{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {}, \"var\": {"
		" \"v\": {\"type\": \"virtual\", \"var_id\": 1, \"size\": 4096,"
		"  \"backing_variable_off\": 0},"
		" \"a\": {\"type\": \"tmp-buf\", \"var_id\": 2, \"size\": 2147483648},"
		" \"b\": {\"type\": \"tmp-buf\", \"var_id\": 3, \"size\": 23622320128}}}";
	static const char pages[] =
		"{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {}, \"var\": {"
		" \"v\": {\"type\": \"virtual\", \"var_id\": 1, \"size\": 17179869184,"
		"  \"backing_variable_off\": 0}}}";
	const struct neff_file files[] = { { "sg00/SP.json", "{\"dma\": []}", 0 } };
	struct neff_bytes n = make_neff("too \"large\"", def, files, 1);
	nrt_tensor_t *t = tensor(4096, 1), *big;
	unsigned long long b[4];
	nrt_model_t *m = NULL;

	(void)state;
	take_log();
	assert_int_equal(nrt_load(n.data, n.size, 0, -1, &m), NRT_RESOURCE);
	logged("No room for 22.000GB of scratchpad: HBM 0 of ND 0 is full: 21.500GB of 24.000GB are free");
	assert_non_null(strstr(log_text, "\n  \\_NEFF 1001 | 2.000GB  |  0.000B  |  0.000B  |   n/a    |   n/a    | 2.000GB  | 4.000KB  |"));
	assert_non_null(strstr(log_text, "\n\\_NC 0        | 2.500GB  |  0.000B  |  0.000B  |  0.000B  |512.000MB | 2.000GB  | 4.000KB  |"));
	assert_non_null(strstr(log_text, "1001: \"too \"large\"\"\n"));
	balance_of(log_text, b);
	assert_true(b[1] == (2560ull << 20) + 4096 + 4096);
	assert_int_equal(fake_used(), 4096);
	free(n.data);

	/* Pages of the scratchpad are there until then, too. */
	big = tensor(10ull << 30, 1);
	n = make_neff("pages", pages, files, 1);
	assert_int_equal(nrt_load(n.data, n.size, 0, -1, &m), NRT_RESOURCE);
	logged("No room for 512.000MB of shared scratchpad: HBM 0 of ND 0 is full: 511.996MB of 24.000GB are free");
	assert_non_null(strstr(log_text, "\n\\_NC 0        | 13.500GB |  0.000B  |  0.000B  |  0.000B  | 13.500GB |"));
	balance_of(log_text, b);
	assert_true(b[2] == (512ull << 20) - 4096);
	assert_int_equal(fake_used(), 4096 + (10ull << 30));
	free(n.data);
	nrt_tensor_free(&big);
	nrt_tensor_free(&t);
}

/* A limit that refused something is found, and its file named. */
static void test_R5_limit(void **state)
{
	struct fake_device *d = &fake.dev[0];
	nrt_tensor_t *t = NULL;

	(void)state;
	d->limit[NEURON_LIMIT_PROCESS][0] = d->limit[NEURON_LIMIT_DEFAULT][0] = NEURON_LIMIT_NONE;
	d->limit[NEURON_LIMIT_CORE][1] = 1 << 20;
	fake.reason = NEURON_NATIVE_REASON_CAPPED;
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, 2 << 20, NULL, &t),
			 NRT_RESOURCE);
	logged("not to be used further by NC 1: its limit of 1.000MB has 0.000B charged and 1.000MB left"
	       " (/sys/devices/virtual/neuron_device/neuron0/neuron_core1/limits/memory)");
	assert_non_null(strstr(log_text, "up to 1.000MB would fit"));
	d->limit[NEURON_LIMIT_PROCESS][0] = d->limit[NEURON_LIMIT_DEFAULT][0] = 1 << 19;
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, 2 << 20, NULL, &t),
			 NRT_RESOURCE);
	logged("by this process: its limit of 512.000KB has 0.000B charged and 512.000KB left"
	       " (/sys/devices/virtual/neuron_device/neuron0/limits/process_memory)");
	d->limit[NEURON_LIMIT_DEFAULT][0] = NEURON_LIMIT_NONE;
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, 2 << 20, NULL, &t),
			 NRT_RESOURCE);
	logged("left (set for this process alone)");
	memset(d->limit, 0, sizeof(d->limit));
}

/* A page size that has no effect is an error in the log, which everybody sees. */
static void test_T3_page_size(void **state)
{
	(void)state;
	nrt_close();
	take_log();
	setenv("NEURON_SCRATCHPAD_PAGE_SIZE", "1024", 1);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	take_log();
	assert_null(strstr(log_text, "no effect"));
	nrt_close();
	setenv("NEURON_RT_CONTIGUOUS_SCRATCHPAD", "Yes", 1);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	logged("NEURON_SCRATCHPAD_PAGE_SIZE=1024 has no effect on a scratchpad in one piece");
	nrt_close();
	setenv("NEURON_RT_CONTIGUOUS_SCRATCHPAD", "maybe", 1);
	init_fails(NRT_INVALID, "NEURON_RT_CONTIGUOUS_SCRATCHPAD=maybe is not 1 or 0");
}

/* Logical cores, what is set aside on them, and the report of both. */
/* Cores 1 and 2 of the host, as its kind of device has them. */
static int setup_logical(void **state)
{
	setup_idle(state);
	unsetenv("NEURON_LOGICAL_NC_CONFIG");
	unsetenv("NEURON_RT_MICROCODE_MB");
	setenv("NEURON_RT_VISIBLE_CORES", "1-2", 1);
	setenv("NEURON_RT_LOG_LEVEL_TDRV", "info", 1);
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS;
}

/* Ask for 4 GiB, which the driver refuses. */
static void refuse_tensor(void)
{
	nrt_tensor_t *t = NULL;

	fake.reason = NEURON_NATIVE_REASON_FULL;
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 4ull << 30, NULL, &t),
			 NRT_RESOURCE);
	fake.reason = NEURON_NATIVE_REASON_NONE;
}

static void read_text(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
}

static void test_logical_cores(void **state)
{
	struct neff_bytes n = make_list_neff();
	nrt_vnc_memory_stats_t stats;
	nrt_model_t *m = NULL;
	uint32_t count = 0;

	(void)state;
	assert_int_equal(nrt_get_total_vnc_count(&count), NRT_SUCCESS);
	assert_int_equal(count, FAKE_CORES);
	assert_int_equal(nrt_get_visible_vnc_count(&count), NRT_SUCCESS);
	assert_int_equal(count, 2);
	assert_int_equal(nrt_get_vnc_memory_stats(1, &stats, sizeof(stats), NULL), NRT_SUCCESS);
	assert_int_equal(stats.bytes_used, 2 * 96 << 20);
	assert_int_equal(fake_used(), 4ull * 96 << 20);
	take_log();
	assert_int_equal(nrt_load(n.data, n.size, 1, -1, &m), NRT_SUCCESS);
	/* In one piece of 64 MB, because cores are pairs. */
	logged("[ND 1:NC 0] Current Usage Total: 256.");
	assert_non_null(strstr(log_text, "shared scratchpad: 64.000MB\nPer NEFF memory usage breakdown for [list]:"));
	assert_non_null(strstr(log_text, "\t* collectives: 0.000B"));
	free(n.data);
}

#define TABLE_1		"/tmp/neuron_mem_table_device_0_hbm_1.log"

static void test_logical_report(void **state)
{
	char path[64], text[8192];
	nrt_tensor_t *small;
	struct stat st;

	(void)state;
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 1 << 20, NULL, &small),
			 NRT_SUCCESS);
	refuse_tensor();
	logged("No room for 4.000GB of tensors: HBM 1 of ND 0 is full");
	assert_null(strstr(log_text, "LNC size"));
	assert_non_null(strstr(log_text, "log_dev_mem                             Failed to allocate 4.000GB (alignment: none, usage: tensors) on ND 0:NC 1\n"));
	assert_non_null(strstr(log_text, "log_dev_mem_usage_table                 Displaying Current Memory Utilization:\n(NOTE:"));
	assert_non_null(strstr(log_text, "\n\\_NC 1        |193.000MB |192.000MB |  0.000B  | 1.000MB  |"));
	assert_int_equal(stat(TABLE_1, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	read_text(TABLE_1, text, sizeof(text));
	assert_non_null(strstr(text, "\n\\_NC 1        |193.000MB |192.000MB |  0.000B  | 1.000MB  |"));
	snprintf(path, sizeof(path), "/tmp/neuron_mem_log_device_0_hbm_1_%x.csv", (unsigned int)getpid());
	read_text(path, text, sizeof(text));
	assert_non_null(strstr(text, ",alloc,0,1,2,tensors,1048576,"));
	assert_non_null(strstr(text, ",alloc,0,1,2,tensors,4294967296,0x0,0,full\n"));
	nrt_tensor_free(&small);
}

/* A link is not followed, and nothing breaks. */
static void test_report_link(void **state)
{
	(void)state;
	unlink(TABLE_1);
	assert_int_equal(symlink("/tmp/neuron_no_such_file", TABLE_1), 0);
	refuse_tensor();
	assert_int_equal(access("/tmp/neuron_no_such_file", F_OK), -1);
}

static void test_wrong_placement(void **state)
{
	uint32_t count = 0;

	(void)state;
	setenv("NEURON_LOGICAL_NC_CONFIG", "3", 1);
	init_fails(NRT_INVALID, "NEURON_LOGICAL_NC_CONFIG");
	assert_int_equal(nrt_get_total_vnc_count(&count), NRT_INVALID);
	clear_env();
	setenv("NEURON_RT_MICROCODE_MB", "4097", 1);
	init_fails(NRT_INVALID, "NEURON_RT_MICROCODE_MB");
	setenv("NEURON_RT_MICROCODE_MB", "4096", 1);
	fake.reason = NEURON_NATIVE_REASON_FULL;
	init_fails(NRT_RESOURCE, "No room for 4.000KB of runtime: HBM 0 of ND 0 is full");
}

static void test_no_report(void **state)
{
	(void)state;
	remove_reports();
	setenv("NEURON_RT_ENABLE_DEVICE_MEMORY_OOM_LOG", "0", 1);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	refuse_tensor();
	logged("LNC size is 1. Neuron Cores using this HBM: NC 0 and NC 1");
	assert_null(strstr(log_text, "Displaying"));
	assert_int_equal(access("/tmp/neuron_mem_table_device_0_hbm_0.log", F_OK), -1);
}

/* The report's names are known to everybody who can write to /tmp. */
static void test_L21_report_through_a_link(void **state)
{
	const char path[] = "/tmp/neuron_mem_table_device_0_hbm_0.log";
	char other[] = "/tmp/neuron_other_XXXXXX", text[8], mine[80];
	struct stat st;
	nrt_tensor_t *t = NULL;
	int fd = mkstemp(other);

	(void)state;
	assert_int_equal(write(fd, "precious", 8), 8);
	unlink(path);
	assert_int_equal(link(other, path), 0);
	nrt_close();
	setenv("NEURON_RT_LOG_LEVEL", "WARNING", 1);
	init_cores(8);
	take_log();
	fake.reason = NEURON_NATIVE_REASON_FULL;
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 4ull << 30, NULL, &t),
			 NRT_RESOURCE);
	fake.reason = NEURON_NATIVE_REASON_NONE;
	assert_int_equal(pread(fd, text, sizeof(text), 0), 8);
	assert_memory_equal(text, "precious", 8);
	logged("neuron_mem_table_device_0_hbm_0.log: Operation not permitted");
	/* It goes elsewhere, and the log tells where; nobody else may read it. */
	snprintf(mine, sizeof(mine), "/tmp/neuron_mem_table_device_0_hbm_0_%x.log",
		 (unsigned int)getpid());
	assert_non_null(strstr(log_text, "ERROR"));
	assert_non_null(strstr(log_text, "the memory of the device is in /tmp/neuron_mem_table_device_0_hbm_0_"));
	assert_int_equal(stat(mine, &st), 0);
	assert_true(st.st_size && (st.st_mode & 07777) == 0600);
	unlink(mine);
	close(fd);
	unlink(other);
	unlink(path);
}

/* A report that could not be written to its end is not taken for a whole one. */
static void test_L21_report_is_cut_short(void **state)
{
	struct rlimit limit, small;
	nrt_tensor_t *t = NULL;

	(void)state;
	nrt_close();
	setenv("NEURON_RT_LOG_LEVEL", "WARNING", 1);
	init_cores(8);
	remove_reports();
	take_log();
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	small.rlim_cur = 100;
	signal(SIGXFSZ, SIG_IGN);
	fake.reason = NEURON_NATIVE_REASON_FULL;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 4ull << 30, NULL, &t),
			 NRT_RESOURCE);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	fake.reason = NEURON_NATIVE_REASON_NONE;
	signal(SIGXFSZ, SIG_DFL);
	logged("neuron_mem_table_device_0_hbm_0.log: File too large");
}

static void test_log_location(void **state)
{
	char path[] = "/tmp/neuron_log_XXXXXX", text[4096];
	nrt_model_t *m = NULL;
	FILE *f;

	(void)state;
	close(mkstemp(path));
	nrt_close();
	setenv("NEURON_RT_LOG_LOCATION", path, 1);
	setenv("NEURON_RT_LOG_LOCATION_NMGR", "console", 1);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	take_log();
	assert_int_equal(nrt_load("x", 1, 99, -1, &m), NRT_LOAD_NOT_ENOUGH_NC);
	assert_string_equal(take_log(), "");
	assert_int_equal(nrt_load("x", 1, 0, -1, &m), NRT_INVALID);
	logged("NMGR:kmgr_load_nn_post_metrics");
	f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	assert_non_null(strstr(text, "ERROR  TDRV:db_vtpb_get_mla_and_tpb                 could not find VNC id 99"));
	nrt_close();
	/* What cannot be opened is the console, which syslog is not. */
	setenv("NEURON_RT_LOG_LOCATION", "/no/such/directory/file", 1);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	assert_int_equal(nrt_load("x", 1, 99, -1, &m), NRT_LOAD_NOT_ENOUGH_NC);
	logged("could not find VNC id 99");
	nrt_close();
	setenv("NEURON_RT_LOG_LOCATION", "syslog", 1);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	assert_int_equal(nrt_load("x", 1, 99, -1, &m), NRT_LOAD_NOT_ENOUGH_NC);
	assert_string_equal(take_log(), "");
	unlink(path);
}

static void test_execute_errors(void **state)
{
	struct neuron_isa_inst p[3] = {
		inst_prologue(NEURON_ISA_ENGINE_SP), inst_wait(3, 1), inst_notify(1),
	};
	nrt_tensor_t *y;
	nrt_model_t *m = load(make_list_neff(), 1), *vendor;
	char code[64];
	struct io io;

	(void)state;
	take_log();
	io_init(&io, 1024, 1);
	assert_int_equal(nrt_execute(m, io.in, NULL), NRT_INVALID);
	logged("output y of list is not in the set");
	assert_int_equal(nrt_execute(m, io.x, io.out), NRT_INVALID);
	y = tensor(1023, 1);
	assert_int_equal(nrt_add_tensor_to_tensor_set(io.out, "y", y), NRT_SUCCESS);
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_INVALID);
	logged("output y of list is too small");
	nrt_tensor_free(&y);
	y = tensor(1024, 5);
	assert_int_equal(nrt_add_tensor_to_tensor_set(io.out, "y", y), NRT_SUCCESS);
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_INVALID);
	logged("is on another device");
	nrt_tensor_free(&y);
	assert_int_equal(nrt_add_tensor_to_tensor_set(io.out, "y", io.y), NRT_SUCCESS);

	static const struct {
		int code;
		NRT_STATUS status;
	} errors[] = {
		{ NEURON_ISA_ERR_DMA_ACCESS, NRT_EXEC_OOB },
		{ NEURON_ISA_ERR_DMA_DESC, NRT_EXEC_HW_ERR_DMA_ABORT },
		{ NEURON_ISA_ERR_DMA_RING, NRT_EXEC_HW_ERR_DMA_ABORT },
		{ NEURON_ISA_ERR_ABORT, NRT_EXEC_HW_ERR_DMA_ABORT },
		{ NEURON_ISA_ERR_SEMAPHORE, NRT_EXEC_COMPLETED_WITH_ERR },
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		char line[80];

		fake.dma_error = errors[i].code;
		assert_int_equal(nrt_execute(m, io.in, io.out), errors[i].status);
		snprintf(line, sizeof(line), "Inference completed with err: %d. mode->h_nn=1001, start_nc=1",
			 errors[i].status);
		logged(line);
		assert_non_null(strstr(log_text, "TDRV:generate_custom_notification_msg"));
		/* The core is well again. */
		assert_int_equal(nrt_execute(m, io.in, io.out), NRT_SUCCESS);
		check_list(&io);
	}
	fake_fail(1, 133, ENODEV);
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_HW_ERROR);
	fake_fail(1, 133, EBUSY);
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_EXEC_NC_BUSY);
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_SUCCESS);
	take_log();
	memset(code, 0xcc, sizeof(code));
	setenv("NEURON_RT_LOG_LEVEL", "WARNING", 1);
	vendor = load(make_program_neff(code, sizeof(code)), 1);
	assert_int_equal(nrt_execute(vendor, io.in, io.out), NRT_UNSUPPORTED_NEFF_VERSION);
	logged("program cannot be executed: sg00/SP.bin: instructions of a real device");
	assert_int_equal(nrt_unload(vendor), NRT_SUCCESS);
	io_free(&io);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);

	/* A timeout takes its time from the environment. */
	nrt_close();
	setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);
	init_cores(8);
	m = load(make_program_neff(p, sizeof(p)), 0);
	io_init(&io, 100000, 0);
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_TIMEOUT);
	logged("(FATAL-RT-UNDEFINED-STATE) execution timeout (1000 ms) on Neuron Device 0 NC 0, model program, waiting for execution completion notification");
	io_free(&io);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
}

/* The variable goes before the device's marker; a card has none and never pretends. */
static void test_pretend(void **state)
{
	static const struct {
		const char *marker, *variable;
		NRT_STATUS status;
		uint8_t first;		/* byte of the output, which was 0x55 */
	} rows[] = {
		{ NULL, NULL, NRT_UNSUPPORTED_NEFF_VERSION, 0x55 },
		{ NULL, "zero", NRT_UNSUPPORTED_NEFF_VERSION, 0x55 },
		{ "none", NULL, NRT_UNSUPPORTED_NEFF_VERSION, 0x55 },
		{ "zero", "none", NRT_UNSUPPORTED_NEFF_VERSION, 0x55 },
		{ "none", "zero", NRT_SUCCESS, 0 },
		{ "zero", NULL, NRT_SUCCESS, 0 },
		{ "zero", "COPY", NRT_SUCCESS, 5 },
	};
	uint8_t code[5000], byte;

	(void)state;
	memset(code, 0xcc, sizeof(code));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		nrt_model_t *m;
		struct io io;

		fake.pretend = rows[i].marker;
		unsetenv("NEURON_RT_PRETEND");
		if (rows[i].variable)
			setenv("NEURON_RT_PRETEND", rows[i].variable, 1);
		take_log();
		init_cores(8);
		m = load(make_program_neff(code, sizeof(code)), 0);
		if (rows[i].status == NRT_SUCCESS)
			logged("program cannot be executed and only PRETENDS to");
		else if (!rows[i].marker && rows[i].variable)
			logged("NEURON_RT_PRETEND has no effect on Neuron Device 0, which is no software device");
		io_init(&io, 100000, 0);
		byte = 0x55;
		assert_int_equal(nrt_tensor_write(io.y, &byte, 0, 1), NRT_SUCCESS);
		assert_int_equal(nrt_execute(m, io.in, io.out), rows[i].status);
		assert_int_equal(nrt_tensor_read(io.y, &byte, 0, 1), NRT_SUCCESS);
		assert_int_equal(byte, rows[i].first);
		io_free(&io);
		assert_int_equal(nrt_unload(m), NRT_SUCCESS);
		nrt_close();
	}
	setenv("NEURON_RT_PRETEND", "yes", 1);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_INVALID);
	logged("NEURON_RT_PRETEND=yes is not none, zero, copy or hash");
}

static void test_repeat(void **state)
{
	nrt_model_t *m = load(make_list_neff(), 0);
	uint8_t want[1024], got[1024];
	struct io io;

	(void)state;
	io_init(&io, 1024, 0);
	assert_int_equal(nrt_execute_repeat(m, io.in, io.out, 0), NRT_INVALID);
	assert_int_equal(nrt_execute_repeat(m, io.in, io.out, 3), NRT_SUCCESS);
	check_list(&io);	/* applying it again changes nothing */
	assert_int_equal(nrt_tensor_read(io.x, got, 0, 1024), NRT_SUCCESS);
	list_expected(io.bytes, want);
	assert_memory_equal(got, want, 1024);
	io_free(&io);
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
}

/* y is x, shifted by a byte: each time it is run again shows. */
static struct neff_bytes shift_neff(void)
{
	static const char def[] =
		"{\"name\": \"definition\", \"sp\": \"SP.json\","
		" \"dma_queue\": {\"q\": {\"type\": \"data\"}}, \"var\": {"
		" \"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 1024},"
		" \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 1024}}}";
	static const char sp[] =
		"{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": ["
		" {\"op\": \"copy\", \"from\": \"x\", \"to\": \"y\", \"to_off\": 1,"
		"  \"from_sizes\": [1023], \"from_steps\": [1], \"to_sizes\": [1023], \"to_steps\": [1]},"
		" {\"op\": \"copy\", \"from\": \"x\", \"from_off\": 1023, \"to\": \"y\","
		"  \"from_sizes\": [1], \"from_steps\": [1], \"to_sizes\": [1], \"to_steps\": [1]}]}]}";
	const struct neff_file files[] = { { "sg00/SP.json", sp, 0 } };

	return make_neff("shift", def, files, 1);
}

/* Each run gets what the run before it has made. */
static void test_repeat_feeds_back_each_time(void **state)
{
	nrt_model_t *m = load(shift_neff(), 0);
	uint8_t y[1024];

	(void)state;
	for (int times = 1; times <= 5; times++) {
		struct io io;

		io_init(&io, 1024, 0);
		assert_int_equal(nrt_execute_repeat(m, io.in, io.out, times), NRT_SUCCESS);
		assert_int_equal(nrt_tensor_read(io.y, y, 0, 1024), NRT_SUCCESS);
		for (size_t i = 0; i < 1024; i++)
			assert_int_equal(y[(i + (size_t)times) % 1024], io.bytes[i]);
		io_free(&io);
	}
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
}

/* What a program forgot to free before nrt_close(). */
static void test_close(void **state)
{
	nrt_tensor_t *t = tensor(100, 0), *slice, *old = NULL, *host = NULL;
	nrt_tensor_device_allocation_info_t info;
	nrt_tensor_set_t *set;
	nrt_model_t *m;
	struct io io;
	char c;

	(void)state;
	load(make_list_neff(), 0);
	old = tensor(1024, 0);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, 64, "h", &host),
			 NRT_SUCCESS);
	assert_int_equal(nrt_allocate_tensor_set(&set), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_allocate_slice(t, 0, 10, "s", &slice), NRT_SUCCESS);
	nrt_close();
	assert_int_equal(fake_used(), 0);
	assert_int_equal(fake.dev[0].opens, 0);
	assert_int_equal(nrt_tensor_read(t, &c, 0, 1), NRT_CLOSED);
	assert_int_equal(nrt_tensor_get_size(t), 100);
	nrt_tensor_free(&t);
	nrt_tensor_free(&slice);
	nrt_destroy_tensor_set(&set);
	/* A second life; a tensor of the first one has no storage in it. */
	setenv("NEURON_RT_MAP_HBM", "1", 1);
	init_cores(8);
	assert_null(nrt_tensor_get_va(old));
	assert_null(nrt_tensor_get_va(host));
	assert_int_equal(nrt_tensor_get_device_allocation_info(old, &info), NRT_INVALID);
	assert_int_equal(nrt_tensor_read(old, &c, 0, 1), NRT_INVALID);
	m = load(make_list_neff(), 0);
	io_init(&io, 1024, 0);
	assert_int_equal(nrt_tensor_copy(old, 0, io.x, 0, 1), NRT_INVALID);
	assert_int_equal(nrt_add_tensor_to_tensor_set(io.in, "x", old), NRT_SUCCESS);
	take_log();
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_INVALID);
	logged("input x of list has no storage");
	io_free(&io);
	nrt_tensor_free(&old);
	nrt_tensor_free(&host);
}

static void *hammer(void *arg)
{
	nrt_model_t *m = arg;
	struct io io;

	io_init(&io, 1024, 0);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(nrt_execute(m, io.in, io.out), NRT_SUCCESS);
		check_list(&io);
	}
	io_free(&io);
	return NULL;
}

/* The fake driver is not thread safe by itself; tests/vm does this on the real one. */
static void test_two_models_one_core(void **state)
{
	nrt_model_t *a = load(make_list_neff(), 0), *b = load(make_list_neff(), 0);

	(void)state;
	hammer(a);
	hammer(b);
	assert_int_equal(nrt_unload(a), NRT_SUCCESS);
	hammer(b);
	assert_int_equal(nrt_unload(b), NRT_SUCCESS);
	assert_int_equal(fake_used(), 0);
}

struct running {
	nrt_model_t *model;
	struct io io;
	NRT_STATUS status;
};

static void *execute(void *arg)
{
	struct running *r = arg;

	r->status = nrt_execute(r->model, r->io.in, r->io.out);
	return NULL;
}

/* A model that is unloaded while it runs stays until it is done. */
static void test_unload_running(void **state)
{
	struct running r = { 0 };
	unsigned int starts;
	pthread_t thread;

	(void)state;
	nrt_close();
	setenv("NEURON_RT_EXEC_TIMEOUT", "3", 1);
	init_cores(8);
	r.model = load(make_list_neff(), 0);
	io_init(&r.io, 1024, 0);
	fake.stuck = true;
	starts = fake.starts;
	assert_int_equal(pthread_create(&thread, NULL, execute, &r), 0);
	fake_wait_start(starts);
	assert_int_equal(nrt_unload(r.model), NRT_SUCCESS);
	assert_int_equal(nrt_unload(r.model), NRT_INVALID_HANDLE);
	assert_int_equal(nrt_execute(r.model, r.io.in, r.io.out), NRT_INVALID_HANDLE);
	assert_true(fake.dev[0].by_category[NEURON_MEM_RINGS] > 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(r.status, NRT_TIMEOUT);
	assert_int_equal(fake.dev[0].by_category[NEURON_MEM_RINGS], 0);
	io_free(&r.io);
	assert_int_equal(fake_used(), 0);
	take_log();
}

/* A child does not hold the cores when its parent is gone. */
static void test_fork_closes_the_claim(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	nrt_close();
	fake.has_claims = true;
	setenv("NEURON_RT_VISIBLE_CORES", "2", 1);
	init_cores(1);
	assert_true(fake.claimed);
	pid = fork();
	if (!pid)
		_exit(fake.claimed || fake.dev[0].opens);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(fake.claimed);
	nrt_close();
	assert_false(fake.claimed);
	fake.has_claims = false;
}

/* A child starts over; its parent goes on. */
static void test_fork(void **state)
{
	nrt_model_t *m = load(make_list_neff(), 0);
	nrt_tensor_t *t = tensor(64, 0);
	struct io io;
	int status;
	pid_t pid;
	char c;

	(void)state;
	io_init(&io, 1024, 0);
	pid = fork();
	if (!pid) {
		unsigned int calls = fake.calls;
		bool ok = nrt_execute(m, io.in, io.out) == NRT_UNINITIALIZED &&
			  nrt_tensor_read(t, &c, 0, 1) == NRT_UNINITIALIZED &&
			  nrt_unload(m) == NRT_UNINITIALIZED && !fake.dev[0].opens;

		nrt_tensor_free(&t);
		nrt_close();
		ok = ok && fake.calls == calls;
		ok = ok && nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS &&
		     nrt_execute(m, io.in, io.out) == NRT_INVALID_HANDLE &&
		     nrt_tensor_read(io.x, &c, 0, 1) == NRT_INVALID;
		nrt_close();
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(nrt_execute(m, io.in, io.out), NRT_SUCCESS);
	check_list(&io);
	io_free(&io);
	nrt_tensor_free(&t);
	take_log();
}

static void test_log(void **state)
{
	uint8_t image = 0;
	nrt_ucode_info ucode = { { &image, 1 }, { &image, 1 } };
	nrt_model_t *m;
	regex_t re;

	(void)state;
	nrt_close();
	setenv("NEURON_RT_LOG_LEVEL", "quiet", 1);
	init_cores(8);
	take_log();
	nrt_load(NULL, 0, 0, 0, &m);
	assert_string_equal(take_log(), "");
	nrt_close();
	unsetenv("NEURON_RT_LOG_LEVEL");
	setenv("NEURON_RT_LOG_LEVEL_TDRV", "info", 1);
	setenv("NEURON_RT_LOG_LEVEL_NRT", "info", 1);
	setenv("NEURON_RT_LOG_LEVEL_HAL", "quiet", 1);
	init_cores(8);
	logged("NRT:nrt_init                                Neuron Runtime test built on ");
	assert_non_null(strstr(log_text, "Found neuron driver: "));
	assert_non_null(strstr(log_text, "Instance info:: device count:2 cores per device:4"));
	nrt_set_pool_eng_ucode(&ucode);
	assert_string_equal(take_log(), "");
	unsetenv("NEURON_RT_LOG_LEVEL_NRT");
	unsetenv("NEURON_RT_LOG_LEVEL_HAL");
	nrt_close();
	init_cores(8);
	nrt_set_pool_eng_ucode(&ucode);
	logged(" HAL:nrt_set_pool_eng_ucode ");
	nrt_load(NULL, 0, 0, 0, &m);
	take_log();
	/* uapi/FACTS.md 11 */
	assert_int_equal(regcomp(&re, "^[0-9]{4}-[A-Z][a-z]{2}-[0-9]{2} "
				 "[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6} "
				 "[0-9]+:[0-9]+ ERROR  NMGR:nrt_load {32}invalid argument",
				 REG_EXTENDED | REG_NOSUB), 0);
	if (regexec(&re, log_text, 0, NULL, 0))
		fail_msg("'%s'", log_text);
	regfree(&re);
	m = load(make_list_neff(), 0);
	logged("TDRV:dml_log_dev_neff_mem");
	assert_non_null(strstr(log_text, "[ND 0:NC 0] Current Usage Total: 512."));
	assert_non_null(strstr(log_text, "shared scratchpad: 512.000MB"));
	assert_non_null(strstr(log_text, "breakdown for [list]:\n\tTotal: 52.000KB\n\t* model code: 4.000KB"));
	assert_non_null(strstr(log_text, "* dma rings io: 16.000KB"));
	assert_int_equal(nrt_unload(m), NRT_SUCCESS);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(nrt_get_status_as_str(NRT_SUCCESS), "NRT_SUCCESS");
	assert_string_equal(nrt_get_status_as_str(NRT_RESOURCE), "NRT_RESOURCE");
	assert_string_equal(nrt_get_status_as_str(NRT_EXEC_OOB), "NRT_EXEC_OOB");
	assert_string_equal(nrt_get_status_as_str((NRT_STATUS)8), "UNKNOWN");
}

/* What a load says and returns for a list NEFF, with a variable set. */
static NRT_STATUS load_with(const char *name, const char *value, struct neff_bytes n)
{
	nrt_model_t *model = NULL;
	NRT_STATUS status;

	clear_env();
	if (name)
		setenv(name, value, 1);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
	take_log();
	status = nrt_load(n.data, n.size, 0, -1, &model);
	if (status == NRT_SUCCESS)
		assert_int_equal(nrt_unload(model), NRT_SUCCESS);
	nrt_close();
	clear_env();
	return status;
}

static void test_VALIDATE_HASH(void **state)
{
	struct neff_bytes n = make_list_neff();

	(void)state;
	assert_int_equal(load_with("NEURON_RT_VALIDATE_HASH", "1", n), NRT_SUCCESS);
	((uint8_t *)n.data)[172] ^= 1;
	assert_int_equal(load_with("NEURON_RT_VALIDATE_HASH", "1", n), NRT_INVALID);
	logged("hash does not match");
	assert_int_equal(load_with("NEURON_RT_VALIDATE_HASH", "0", n), NRT_SUCCESS);
	free(n.data);
}

static void test_L4_limit(void **state)
{
	static const char def[] =
		"{\"name\": \"definition\", \"var\": {\"k\": {\"type\": \"file\", \"var_id\": 1,"
		" \"size\": 20971520, \"file_name\": \"k.bin\"}}}";
	struct neff_file file = { "sg00/k.bin", calloc(1, 20 << 20), 20 << 20 };
	struct neff_bytes n = make_neff("zeros", def, &file, 1);

	(void)state;
	assert_int_equal(load_with(NULL, NULL, n), NRT_SUCCESS);
	assert_int_equal(load_with("NEURON_RT_NEFF_MAX_UNPACKED_MB", "19", n),
			 NRT_UNSUPPORTED_NEFF_VERSION);
	logged("failed to load NN zeros: archive: unpacks to more than the limit of 19922944 bytes");
	free(n.data);
	free((void *)(uintptr_t)file.data);
}

static void test_C6_short_constants(void **state)
{
	static const char def[] =
		"{\"name\": \"definition\", \"var\": {\"k\": {\"type\": \"file\", \"var_id\": 1,"
		" \"size\": 10, \"file_name\": \"k.bin\"}}}";
	struct neff_file file = { "sg00/k.bin", "four", 4 };
	struct neff_bytes n = make_neff("short", def, &file, 1);

	(void)state;
	assert_int_equal(load_with(NULL, NULL, n), NRT_INVALID);
	logged("has only 4 of the 10 bytes");
	assert_int_equal(load_with("NEURON_RT_NEFF_SHORT_CONSTANTS", "1", n), NRT_SUCCESS);
	free(n.data);
}

static void test_C7_messages(void **state)
{
	struct neff_bytes n = make_list_neff(), empty = { n.data, 0 };
	char text[32];

	(void)state;
	assert_int_equal(load_with(NULL, NULL, empty), NRT_INVALID);
	logged("the NEFF is empty");
	n.size--;
	assert_int_equal(load_with(NULL, NULL, n), NRT_INVALID);
	logged("failed to load NN list: header: data_size");
	free(n.data);
	assert_string_equal(neuron_report_size(1ull << 62, text, sizeof(text)), "4.000EB");
	assert_string_equal(neuron_report_size(3ull << 40, text, sizeof(text)), "3.000TB");
}

static void test_L11_cores(void **state)
{
	struct neff_bytes n;

	(void)state;
	neff_cores = 200;
	n = make_list_neff();
	neff_cores = 1;
	assert_int_equal(load_with(NULL, NULL, n), NRT_LOAD_NOT_ENOUGH_NC);
	logged("node 0 is made for 200 cores, it gets");
	free(n.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_states, teardown),
		cmocka_unit_test_setup_teardown(test_init_fails, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_visible_cores, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_num_cores, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_other_variables, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_init_claims, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_init_second_device, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_init_driver_fails, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_tensor, setup, teardown),
		cmocka_unit_test_setup_teardown(test_C2_address_of_a_device_tensor, setup,
						teardown),
		cmocka_unit_test_teardown(test_visible_and_number_of_cores, teardown),
		cmocka_unit_test_setup_teardown(test_slices, setup, teardown),
		cmocka_unit_test_setup_teardown(test_host_tensors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_batches, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L2_freed_handles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_canonical, setup, teardown),
		cmocka_unit_test_setup_teardown(test_load_arguments, setup, teardown),
		cmocka_unit_test_setup_teardown(test_load_network, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_cores, setup, teardown),
		cmocka_unit_test_setup_teardown(test_oom, setup, teardown),
		cmocka_unit_test_setup_teardown(test_T1_load, setup, teardown),
		cmocka_unit_test_setup_teardown(test_R5_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_T3_page_size, setup, teardown),
		cmocka_unit_test_setup_teardown(test_logical_cores, setup_logical, teardown),
		cmocka_unit_test_setup_teardown(test_logical_report, setup_logical, teardown),
		cmocka_unit_test_setup_teardown(test_report_link, setup_logical, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_placement, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_no_report, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_L21_report_through_a_link, setup, teardown),
		cmocka_unit_test_setup_teardown(test_L21_report_is_cut_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_log_location, setup, teardown),
		cmocka_unit_test_setup_teardown(test_execute_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pretend, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_repeat, setup, teardown),
		cmocka_unit_test_setup_teardown(test_repeat_feeds_back_each_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_close, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_models_one_core, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unload_running, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork_closes_the_claim, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_log, setup, teardown),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_VALIDATE_HASH),
		cmocka_unit_test(test_L4_limit),
		cmocka_unit_test(test_C6_short_constants),
		cmocka_unit_test(test_C7_messages),
		cmocka_unit_test(test_L11_cores),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}

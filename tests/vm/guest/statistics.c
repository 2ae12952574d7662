// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads and runs of the library in the status counters of sysfs, and in the datastore
 * as another process sees it: on one of the first four cores and on one behind them,
 * whose counters lie elsewhere.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <neuron/neuron.h>

#include "neuron_ioctl.h"
#include "nrt_guest.h"

static const uint32_t cores[] = { 1, 6 };

static uint64_t figure(uint32_t nc, const char *name, const char *file)
{
	unsigned long long value = 0;
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), DEVICES "/neuron0/neuron_core%u/stats/%s/%s", nc, name, file);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%llu", &value) != 1) {
		printf("not ok - read %s\n", path);
		exit(1);
	}
	fclose(f);
	return value;
}

/* What all runs so far come to. */
static const struct expected {
	const char *name;
	uint64_t count;
} expected[] = {
	{ "status/success", 5 },
	{ "status/timeout", 1 },
	{ "status/exec_bad_input", 2 },
	{ "status/execute_completed_with_error", 1 },
	{ "status/unsupported_neff_version", 1 },
	{ "status/invalid_error", 1 },
	{ "status/resource_error", 1 },
	{ "status/execute_failed_to_queue", 1 },
	{ "status/failure", 0 },
	{ "status/hw_error", 0 },
	{ "status/hw_hbm_ue_error", 1 },
	{ "status/hw_repairable_hbm_ue_error", 1 },
	{ "status/hw_dma_abort_error", 1 },
	{ "status/hw_nc_ue_error", 0 },
	{ "status/oob_error", 0 },
	{ "other_info/model_load_count", 4 },
	{ "other_info/inference_count", 10 },
};

#define NR (sizeof(expected) / sizeof(expected[0]))

static uint64_t at_start[2][NR];

/* Nobody makes a card do wrong there: it has three runs less, each with an error of its own. */
static uint64_t expect(const struct expected *e)
{
	if (is_card() && e->count && !strncmp(e->name, "status/hw_", 10))
		return 0;
	return e->count - (is_card() && !strcmp(e->name, "other_info/inference_count") ? 3 : 0);
}

static bool counted(const char *file)
{
	bool equal = true;

	for (size_t c = 0; c < 2; c++)
		for (size_t i = 0; i < NR; i++) {
			uint64_t now = figure(cores[c], expected[i].name, file) - at_start[c][i];

			if (now != expect(&expected[i])) {
				printf("# core %u %s: %llu, not %llu\n", cores[c], expected[i].name,
				       (unsigned long long)now,
				       (unsigned long long)expect(&expected[i]));
				equal = false;
			}
		}
	return equal;
}

static struct neff neff, other;
static struct neuron_device *device;
static struct neuron_mem *x, *y;

static bool inject(const char *what)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/neuron_emu/neuron0/inject_%s", what);
	f = fopen(path, "w");
	return f && fputs("1", f) >= 0 && !fclose(f);
}

/* Four loads, ten runs, and what is refused before it runs. */
static void work(uint32_t nc)
{
	static const char *const faults[] = { "mem_ecc_uncorrected", "mem_ecc_repairable", "dma_abort" };
	struct neuron_isa_inst wait[3] = { inst(NEURON_ISA_OP_PROLOGUE), inst(NEURON_ISA_OP_SEM_WAIT),
					   inst(NEURON_ISA_OP_NOTIFY) };
	struct neuron_isa_inst bad[3] = { inst(NEURON_ISA_OP_PROLOGUE), inst(NEURON_ISA_OP_MATMUL),
					  inst(NEURON_ISA_OP_NOTIFY) };
	struct neuron_io io[] = { { "x", x, 0, LIST_IN }, { "y", y, 0, LIST_OUT } };
	struct neuron_model *m, *hangs, *errs, *foreign, *none;
	struct neuron_core *core;
	uint8_t vendor[4096];
	bool ok = true;

	memset(vendor, 0xa5, sizeof(vendor));
	wait[1].op = NEURON_ISA_WAIT_GE;
	wait[1].u.sem.value = htole32(1);
	wait[2].u.notify.id = bad[2].u.notify.id = htole32(1);
	CHECK(!neuron_core_open(device, nc, NULL, &core), "core %u", nc);
	ok = !neuron_model_load(core, neff.data, neff.size, NULL, &m);
	neff_program(&other, wait, sizeof(wait));
	ok = ok && !neuron_model_load(core, other.data, other.size, NULL, &hangs);
	neff_program(&other, bad, sizeof(bad));
	ok = ok && !neuron_model_load(core, other.data, other.size, NULL, &errs);
	neff_program(&other, vendor, sizeof(vendor));
	ok = ok && !neuron_model_load(core, other.data, other.size, NULL, &foreign);
	CHECK(ok, "four models are loaded");
	neff_sized(&other, 1ull << 40, 0);
	CHECK(neuron_model_load(core, other.data, other.size, NULL, &none) == -EFBIG &&
	      neuron_model_load(core, other.data, 1000, NULL, &none) == -EINVAL, "two are not");
	for (int i = 0; i < 5; i++)
		ok = ok && !neuron_model_run(m, io, 2, 30000, NULL);
	CHECK(ok, "five good runs");
	CHECK(neuron_model_run(hangs, io, 2, 1000, NULL) == -ETIMEDOUT, "one that hangs");
	CHECK(neuron_model_run(errs, io, 2, 30000, NULL) == -EIO, "one that stops");
	CHECK(neuron_model_run(foreign, io, 2, 30000, NULL) == -EOPNOTSUPP &&
	      neuron_model_run(m, io, 1, 30000, NULL) == -EINVAL, "and two that are refused");
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]) && !is_card(); i++)
		CHECK(inject(faults[i]) && neuron_model_run(m, io, 2, 30000, NULL) == -EIO,
		      "one that meets %s", faults[i]);
	neuron_core_count(core, NEURON_CORE_QUEUE_FULL);
	neuron_core_count(core, NEURON_CORE_BAD_INPUT);
	neuron_model_unload(foreign);
	neuron_model_unload(errs);
	neuron_model_unload(hangs);
	neuron_model_unload(m);
	neuron_core_close(core);
}

/* The datastore of a process, in another one. */
static int look(pid_t pid)
{
	struct neuron_ioctl_neuron_ds_info ds = { .pid = pid };
	int fd = open("/dev/neuron0", O_RDWR | O_CLOEXEC);
	void *map;

	if (fd < 0 || ioctl(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &ds))
		return 1;
	map = mmap(NULL, ds.size, PROT_READ, MAP_SHARED, fd, (off_t)ds.mmap_offset);
	if (map == MAP_FAILED)
		return 2;
	if (memcmp(map, "nds0", 4))
		return 3;
	if (NDS_NEURONCORE_COUNTERS(map, 1)[NDS_NC_COUNTER_INFER_COMPLETED] != 5 ||
	    NDS_EXT_NEURONCORE_NC_DATA(map, 6 - 4)[NDS_NC_COUNTER_INFER_COMPLETED] != 5)
		return 4;
	if (!NDS_NEURONCORE_COUNTERS(map, 1)[NDS_NC_COUNTER_LATENCY_TOTAL] ||
	    NDS_NEURONCORE_COUNTERS(map, 1)[NDS_NC_COUNTER_LATENCY_TOTAL] <
	    NDS_NEURONCORE_COUNTERS(map, 1)[NDS_NC_COUNTER_LATENCY_DEVICE])
		return 5;
	/* Of memory, only the tensors are left. */
	if (NDS_NEURONCORE_COUNTERS(map, 0)[NDS_NC_COUNTER_MEM_USAGE_TENSORS_DEVICE] != 2 << 20 ||
	    NDS_NEURONCORE_COUNTERS(map, 1)[NDS_NC_COUNTER_MEM_USAGE_CODE_DEVICE] ||
	    NDS_NEURONCORE_COUNTERS(map, 1)[NDS_NC_COUNTER_MEM_USAGE_SCRATCHPAD_DEVICE])
		return 6;
	return 0;
}

/* A process that ends, so that the driver keeps what it counted. */
static void worker(int told, int go)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };
	struct neuron_core *first;
	char c = 'x';

	/* Memory counts from the first core that is opened. */
	CHECK(!neuron_device_open(0, &device) && !neuron_core_open(device, 0, NULL, &first) &&
	      !neuron_mem_alloc(device, 1 << 20, &opts, &x) &&
	      !neuron_mem_alloc(device, 1 << 20, &opts, &y), "device and memory");
	for (size_t c = 0; c < 2 && !failed; c++)
		work(cores[c]);
	if (write(told, &c, 1) != 1 || read(go, &c, 1) != 1)
		_exit(99);
	_exit(failed);
}

int main(void)
{
	static const char *const times[] = { "other_info/nc_time_in_use" };
	int told[2], go[2], status;
	uint64_t time[2];
	char c = 0;
	pid_t pid;

	mount("none", "/sys/kernel/debug", "debugfs", 0, NULL);
	neff_list(&neff);
	for (size_t k = 0; k < 2; k++) {
		for (size_t i = 0; i < NR; i++)
			at_start[k][i] = figure(cores[k], expected[i].name, "total");
		time[k] = figure(cores[k], times[0], "total");
	}
	if (pipe(told) || pipe(go))
		return 1;
	fflush(stdout);
	pid = fork();
	if (!pid)
		worker(told[1], go[0]);
	close(told[1]);
	CHECK(read(told[0], &c, 1) == 1, "a process has worked");
	CHECK(counted("total"), "sysfs shows it while the process runs");
	for (size_t k = 0; k < 2; k++)
		CHECK(figure(cores[k], times[0], "total") >= time[k] + 1000000,
		      "core %u was in use for the second of the timeout", cores[k]);
	status = look(pid);
	CHECK(!status, "another process finds it in the datastore (%d)", status);
	CHECK(write(go[1], "x", 1) == 1 && waitpid(pid, &status, 0) == pid && !status, "it ends");
	CHECK(counted("total"), "sysfs still shows it");
	return failed != 0;
}

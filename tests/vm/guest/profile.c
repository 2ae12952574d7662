// SPDX-License-Identifier: GPL-2.0-only
/*
 * Profiles on the software device: every instruction and every byte of a model is in the
 * file, once; buffers are what was foreseen, in sysfs, too, and come back.  Then the same
 * through the runtime, with a network that computes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <neuron/neuron.h>
#include <nrt/nrt.h>
#include <nrt/nrt_experimental.h>
#include <nrt/nrt_profile.h>

#include "nrt_guest.h"
#include "../../lib/trace_check.h"

#define KIB 1024ull
#define CORE0 "/neuron0/neuron_core0/stats/memory_usage/device_mem/"
#define CORE1 "/neuron0/neuron_core1/stats/memory_usage/device_mem/"
#define ENGINE(e) (2 + NEURON_ISA_ENGINE_##e)	/* thread of the file */

/* neff_list(): prologue, three transfers with their waits, an event, the end. */
#define LIST_INSTS 9u
#define LIST_BYTES (3u * LIST_IN + 512 + LIST_OUT)
#define LIST_WORDS (4u * 4)
#define RUNS 5u

static struct counters start, now;
static struct neff neff;

static char *whole(const char *path)
{
	struct stat st;
	char *text;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st))
		return NULL;
	text = calloc(1, (size_t)st.st_size + 1);
	if (text && read(fd, text, (size_t)st.st_size) != st.st_size) {
		free(text);
		text = NULL;
	}
	close(fd);
	return text;
}

static struct trace_sum *sum_of(const char *path)
{
	char *text = whole(path);
	struct trace_sum *s = NULL;

	CHECK(text && trace_check(text, &s), "%s is a trace", path);
	free(text);
	if (!s)
		exit(1);
	return s;
}

struct model {
	struct neuron_device *device;
	struct neuron_core *core;
	struct neuron_model *model;
	struct neuron_mem *x, *y;
	uint8_t in[LIST_IN];
};

static bool model_open(struct model *m, uint32_t lnc)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };
	struct neuron_core_opts core = { .size = sizeof(core), .lnc = lnc };

	for (size_t i = 0; i < sizeof(m->in); i++)
		m->in[i] = (uint8_t)(i * 31 + i / 256);
	return !neuron_device_open(0, &m->device) &&
	       !neuron_core_open(m->device, 0, &core, &m->core) &&
	       !neuron_model_load(m->core, neff.data, neff.size, NULL, &m->model) &&
	       !neuron_mem_alloc(m->device, LIST_IN, &opts, &m->x) &&
	       !neuron_mem_alloc(m->device, LIST_OUT, &opts, &m->y) &&
	       !neuron_mem_write(m->x, 0, m->in, LIST_IN);
}

static void model_close(struct model *m)
{
	neuron_mem_free(m->x);
	neuron_mem_free(m->y);
	neuron_model_unload(m->model);
	neuron_core_close(m->core);
	neuron_device_close(m->device);
}

static bool model_run(struct model *m)
{
	const struct neuron_io io[] = {
		{ "x", m->x, 0, LIST_IN }, { "y", m->y, 0, LIST_OUT },
	};
	struct neuron_run_result r = { .size = sizeof(r) };
	uint8_t got[LIST_OUT];

	if (neuron_model_run(m->model, io, 2, 60000, &r) ||
	    neuron_mem_read(m->y, 0, got, LIST_OUT)) {
		printf("# %s\n", r.text);
		return false;
	}
	return list_right(m->in, got);
}

static bool write_file(struct neuron_profile *p, const char *path)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	int ret = fd < 0 ? -errno : neuron_profile_write(p, fd);

	if (fd >= 0)
		close(fd);
	if (ret)
		printf("# %s: %s\n", path, strerror(-ret));
	return !ret;
}

/* Not known of a card which traces it writes: a profile has the runs and the calls only. */
static bool traces_nothing(void)
{
	return is_card();
}

/* What a run of neff_list() leaves in a trace, however the work was divided. */
static bool list_traced(const struct trace_sum *s, unsigned int first, unsigned int runs)
{
	printf("# %zu runs, %zu instructions, %zu packets of %llu bytes, %zu changes\n", s->runs,
	       s->instructions, s->packets, (unsigned long long)s->bytes, s->semaphores);
	if (traces_nothing())
		return s->runs == runs && !s->instructions && !s->packets && !s->lost;
	return s->runs == runs && s->instructions == runs * LIST_INSTS &&
	       trace_once(s, first, runs, ENGINE(SP), LIST_INSTS) && !s->unfinished && !s->lost &&
	       s->fetched == runs * LIST_INSTS * 64 &&
	       s->bytes == runs * (LIST_BYTES + LIST_WORDS + LIST_INSTS * 64) &&
	       s->semaphores == runs * 6;
}

static void test_default_sizes(void)
{
	struct neuron_profile_stats stats = { .size = sizeof(stats) };
	static struct counters before, with;
	struct neuron_profile *p = NULL, *second;
	struct neuron_geometry plan;
	static struct model m;
	struct trace_sum *s;
	bool ok = true;
	uint64_t memory = 0;

	CHECK(model_open(&m, 1) && model_run(&m), "a model that runs");
	counters_take(&before);
	CHECK(!failed && !neuron_profile_start(m.core, NULL, &p), "start");
	if (!p)
		exit(1);
	counters_take(&with);
	CHECK(!neuron_instance_geometry("trn2", &plan, NULL) &&
	      (memory = neuron_profile_memory(&plan, NULL)) == 1984 * KIB * KIB,
	      "buffers are foreseen");
	CHECK(!neuron_profile_get_stats(p, &stats) && stats.memory == memory &&
	      counter(&with, CORE0 "notifications/total") -
	      counter(&before, CORE0 "notifications/total") == memory &&
	      counter(&with, CORE0 "total") - counter(&before, CORE0 "total") == memory,
	      "and are in sysfs, to the byte");
	CHECK(neuron_profile_start(m.core, NULL, &second) == -EBUSY, "one at a time");
	for (unsigned int i = 0; i < RUNS; i++)
		ok = model_run(&m) && ok;
	CHECK(ok, "%u runs give the right bytes", RUNS);
	CHECK(write_file(p, "/tmp/on.json"), "a file while it is on");
	ok = model_run(&m);
	CHECK(ok && !neuron_profile_stop(p), "another run, and stop");
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "every counter is what it was before");
	CHECK(model_run(&m) && !neuron_profile_get_stats(p, &stats) && stats.runs == RUNS + 1,
	      "what runs later is not recorded");
	CHECK(write_file(p, "/tmp/off.json"), "a file after it");
	neuron_profile_close(p);
	model_close(&m);
	s = sum_of("/tmp/on.json");
	CHECK(list_traced(s, 0, RUNS), "every instruction and every byte of %u runs, once", RUNS);
	free(s);
	s = sum_of("/tmp/off.json");
	CHECK(list_traced(s, 0, RUNS + 1), "and of all of them");
	CHECK(s->last - s->first < 3600e6 && s->first > 0, "the times are those of the runs");
	free(s);
}

/* Small buffers on a logical core of two. */
static void test_full(void)
{
	struct neuron_profile_opts opts = {
		.size = sizeof(opts),
		.bytes = { 4096, 64 * KIB, 4096, 4096, 4096 },
	};
	struct neuron_profile_stats stats = { .size = sizeof(stats) };
	static struct counters before, with;
	struct neuron_profile *p = NULL;
	static struct model m;
	struct trace_sum *s;
	bool ok = true;

	CHECK(model_open(&m, 2), "a logical core of two");
	counters_take(&before);
	CHECK(!neuron_profile_start(m.core, &opts, &p) &&
	      !neuron_profile_get_stats(p, &stats), "small buffers");
	counters_take(&with);
	CHECK(stats.memory == 2 * neuron_profile_memory(neuron_device_geometry(m.device), &opts) &&
	      counter(&with, CORE0 "notifications/total") +
	      counter(&with, CORE1 "notifications/total") == stats.memory, "on both");
	for (unsigned int i = 0; i < 40; i++)
		ok = model_run(&m) && ok;
	CHECK(ok, "40 runs do not wait for anybody");
	CHECK(!neuron_profile_stop(p) && write_file(p, "/tmp/full.json"), "stop, write");
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "every counter is what it was before");
	CHECK(!neuron_profile_get_stats(p, &stats) && stats.runs == 40 &&
	      (traces_nothing() ? !stats.lost : stats.lost > 40 * LIST_INSTS * 2 - 255),
	      "%llu entries did not fit", (unsigned long long)stats.lost);
	neuron_profile_close(p);
	model_close(&m);
	s = sum_of("/tmp/full.json");
	CHECK(traces_nothing() ? !s->instructions :
	      s->instructions == 128 && s->unfinished == 1 && s->lost == stats.lost &&
	      trace_once(s, 0, 14, ENGINE(SP), LIST_INSTS), "what is there is the beginning");
	free(s);
}

/* ---- the runtime ------------------------------------------------------------------- */

#define MNIST "/usr/share/neuron/models/mnist-bf16.neff"

struct network {
	nrt_model_t *model;
	nrt_tensor_set_t *set;
	nrt_tensor_t *tensors[8];
	size_t nr;
};

static bool network_open(struct network *n)
{
	nrt_tensor_info_array_t *info = NULL;
	struct stat st;
	char *bytes = whole(MNIST);
	bool ok;

	ok = bytes && !stat(MNIST, &st) &&
	     !nrt_load(bytes, (size_t)st.st_size, 0, -1, &n->model) &&
	     !nrt_allocate_tensor_set(&n->set) &&
	     !nrt_get_model_tensor_info(n->model, &info) && info->tensor_count <= 8;
	free(bytes);
	/* One set for both: a call looks at its own names. */
	for (; ok && n->nr < info->tensor_count; n->nr++) {
		const nrt_tensor_info_t *t = &info->tensor_array[n->nr];

		ok = !nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, t->size, t->name,
					  &n->tensors[n->nr]) &&
		     !nrt_add_tensor_to_tensor_set(n->set, t->name, n->tensors[n->nr]);
	}
	if (info)
		nrt_free_model_tensor_info(info);
	return ok;
}

static void network_close(struct network *n)
{
	nrt_destroy_tensor_set(&n->set);
	while (n->nr)
		nrt_tensor_free(&n->tensors[--n->nr]);
	nrt_unload(n->model);
}

static bool network_run(struct network *n, unsigned int times)
{
	bool ok = true;

	while (times--)
		ok = nrt_execute(n->model, n->set, n->set) == NRT_SUCCESS && ok;
	return ok;
}

/* In each run each instruction of each engine once, and as many as in the first run. */
static bool whole_programs(const struct trace_sum *s, unsigned int runs)
{
	size_t total = 0;

	if (traces_nothing())
		return !s->instructions && !s->packets && !s->lost;
	for (unsigned int e = ENGINE(PE); e <= ENGINE(SP); e++) {
		unsigned int nr = 0;

		while (nr < TRACE_INSTS && s->seen[0][e][nr])
			nr++;
		if (!trace_once(s, 0, runs, e, nr))
			return false;
		total += nr;
	}
	printf("# %zu instructions in each run, %zu packets of %llu bytes\n", total, s->packets,
	       (unsigned long long)s->bytes);
	/* All engines but Pool have something to do. */
	return s->instructions == runs * total && total > 20 &&
	       s->fetched == s->instructions * 64 && !s->lost && !s->unfinished;
}

static void test_network(void)
{
	static struct counters before, with;
	static struct network n;
	struct trace_sum *s;
	char path[128], *text;

	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS && network_open(&n) &&
	      network_run(&n, 1), "a network on a logical core of two");
	counters_take(&before);
	CHECK(nrt_profile_start(n.model, "/tmp/mnist.json") == NRT_SUCCESS, "profile");
	counters_take(&with);
	CHECK(counter(&with, CORE0 "notifications/total") == 1984 * KIB * KIB &&
	      counter(&with, CORE1 "notifications/total") == 1984 * KIB * KIB,
	      "its buffers on both cores");
	CHECK(network_run(&n, 3) && nrt_profile_stop(NULL) == NRT_SUCCESS, "three executions");
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "every counter is what it was before");
	s = sum_of("/tmp/mnist.json");
	CHECK(s->runs == 3 && whole_programs(s, 3), "three times all of its programs");
	free(s);
	text = whole("/tmp/mnist.json");
	CHECK(text && strstr(text, "\"mnist-bf16\"") &&
	      (traces_nothing() || (strstr(text, "\"MATMUL\"") && strstr(text, "\"DMA_TRIGGER "))),
	      "with names");
	free(text);

	setenv("NEURON_RT_INSPECT_OUTPUT_DIR", "/tmp/inspect/here", 1);
	setenv("NEURON_RT_INSPECT_HOST_MEMORY", "1", 1);
	CHECK(nrt_inspect_begin() == NRT_SUCCESS && network_run(&n, 2) &&
	      nrt_inspect_stop() == NRT_SUCCESS, "inspect two executions");
	counters_take(&now);
	CHECK(counters_equal(&before, &now), "every counter is what it was before");
	snprintf(path, sizeof(path), "/tmp/inspect/here/session_1_pid_%d/nd_0_nc_0.json",
		 (int)getpid());
	s = sum_of(path);
	CHECK(s->runs == 2 && whole_programs(s, 2), "the device");
	free(s);
	snprintf(path, sizeof(path), "/tmp/inspect/here/session_1_pid_%d/system.json",
		 (int)getpid());
	s = sum_of(path);
	CHECK(s->calls == 2, "the calls");
	free(s);
	snprintf(path, sizeof(path), "/tmp/inspect/here/session_1_pid_%d/host.json",
		 (int)getpid());
	CHECK(!access(path, R_OK), "the host");
	/* A program that forgets to stop. */
	CHECK(nrt_profile_continuous_start(NULL) == NRT_SUCCESS && network_run(&n, 2),
	      "profile continuously");
	network_close(&n);
	nrt_close();
}

/* A process that dies with a profile on. */
static void test_death(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		static struct network n;

		if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS &&
		    network_open(&n) && nrt_profile_start(n.model, "/tmp/x.json") == NRT_SUCCESS &&
		    network_run(&n, 1))
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "killed with a profile on");
	/* The last reference goes a moment after the process. */
	for (int i = 0; i < 600; i++) {
		counters_take(&now);
		if (!counters_sum(&now))
			break;
		usleep(100000);
	}
}

int main(void)
{
	neff_list(&neff);
	counters_take(&start);
	test_default_sizes();
	test_full();
	test_network();
	test_death();
	counters_take(&now);
	CHECK(counters_equal(&start, &now), "in the end every counter is what it was");
	return failed ? 1 : 0;
}

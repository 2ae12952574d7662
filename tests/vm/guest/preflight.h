/* SPDX-License-Identifier: GPL-2.0-only */
/* What neuron-preflight says of files, and what the runtime then does with them. */
#ifndef PREFLIGHT_H
#define PREFLIGHT_H

#include <signal.h>
#include <sys/wait.h>

#include <neuron/neuron.h>
#include <nrt/nrt.h>
#include <nrt/nrt_experimental.h>

#include "nrt_guest.h"

#define MIB	(1ull << 20)
#define GIB	(1ull << 30)
#define OUT	"/tmp/now.out"

static const struct file {
	const char *name;
	uint64_t private, shared, input;
} files[] = {
	{ "small", MIB, MIB, 4096 },
	{ "large", 9 * GIB, MIB, 4096 },
	{ "huge", 14 * GIB, MIB, 4096 },
	{ "never", 30 * GIB, MIB, 4096 },
	{ "shared", MIB, 5 * GIB, 4096 },
	{ "input", MIB, MIB, 5 * GIB },
	{ "three", 3 * GIB, MIB, 4096 },
	{ "four", 4 * GIB, MIB, 4096 },
	{ "seven", 7 * GIB, MIB, 4096 },
};

static char path_text[64];

/* Without a core: "large@1". */
static const char *path_of(const char *name)
{
	snprintf(path_text, sizeof(path_text), "/tmp/now-%.*s.neff", (int)strcspn(name, "@"), name);
	return path_text;
}

static int core_of(const char *name)
{
	const char *at = strchr(name, '@');

	return at ? atoi(at + 1) : 0;
}

static struct neff neff;

static bool save(const char *name)
{
	FILE *f;

	neff_end(&neff, name);
	f = fopen(path_of(name), "w");
	return f && fwrite(neff.data, 1, neff.size, f) == neff.size && !fclose(f);
}

static inline void make_file(const struct file *file)
{
	char def[1024];

	snprintf(def, sizeof(def),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {}, \"var\": {"
		 " \"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": %llu},"
		 " \"v\": {\"type\": \"virtual\", \"var_id\": 2, \"size\": 4096,"
		 "  \"backing_variable_off\": %llu},"
		 " \"b\": {\"type\": \"tmp-buf\", \"var_id\": 3, \"size\": %llu}}}",
		 (unsigned long long)file->input, (unsigned long long)file->shared,
		 (unsigned long long)file->private);
	neff_start(&neff);
	neff_text(&neff, "sg00/def.json", def);
	neff_text(&neff, "sg00/SP.json", "{\"dma\": []}");
	if (!save(file->name))
		CHECK(false, "write %s", path_text);
}

/* ---- another process --------------------------------------------------------------- */

static inline bool take(struct neuron_device *d, uint64_t bytes, uint32_t flags,
			struct neuron_mem **mem)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts), .category = NEURON_MEM_TENSORS, .flags = flags,
	};

	return !neuron_mem_alloc(d, bytes, &opts, mem);
}

/* Until it is killed. */
static inline pid_t start(bool (*hold)(struct neuron_device *d))
{
	int up[2];
	char c = 'n';
	pid_t pid;

	if (!hold || pipe(up))
		return 0;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct neuron_device *d;

		if (!neuron_device_open(0, &d) && hold(d))
			c = 'y';
		if (write(up[1], &c, 1) == 1)
			pause();
		_exit(0);
	}
	CHECK(read(up[0], &c, 1) == 1 && c == 'y', "another process has what it wants");
	close(up[0]);
	close(up[1]);
	return pid;
}

static inline void stop(pid_t pid)
{
	if (!pid)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- what is said, and what happens ------------------------------------------------ */

static inline int said(const char *names, bool now)
{
	char command[512], list[128], *name, *next = list;

	snprintf(command, sizeof(command), "neuron-preflight%s", now ? " --now" : "");
	snprintf(list, sizeof(list), "%s", names);
	while ((name = strsep(&next, " "))) {
		strcat(command, " ");
		strcat(command, path_of(name));
		strcat(command, name + strcspn(name, "@"));
	}
	strcat(command, " >" OUT " 2>&1");
	return WEXITSTATUS(system(command));
}

static bool said_text(const char *text)
{
	static char out[16384];
	FILE *f = fopen(OUT, "r");

	memset(out, 0, sizeof(out));
	if (!f || !fread(out, 1, sizeof(out) - 1, f))
		return false;
	fclose(f);
	return strstr(out, text);
}

static bool load_file(const char *name, nrt_model_t **model)
{
	FILE *f = fopen(path_of(name), "r");

	if (!f)
		return false;
	neff.size = fread(neff.data, 1, sizeof(neff.data), f);
	fclose(f);
	return nrt_load(neff.data, neff.size, core_of(name), -1, model) == NRT_SUCCESS;
}

static bool allocate_inputs(nrt_model_t *model)
{
	nrt_tensor_info_array_t *info;
	nrt_tensor_t *t = NULL;
	bool done = true;

	if (nrt_get_model_tensor_info(model, &info) != NRT_SUCCESS)
		return false;
	for (uint64_t i = 0; i < info->tensor_count && done; i++)
		done = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0,
					   info->tensor_array[i].size, "t", &t) == NRT_SUCCESS;
	nrt_free_model_tensor_info(info);
	return done;
}

/* In a process of its own: the files one after the other, then their inputs. */
static bool load_all(const char *names)
{
	char list[128], *name, *next = list;
	nrt_model_t *model[4];
	unsigned int nr = 0;
	bool done;

	setenv("NEURON_RT_VISIBLE_CORES", strchr(names, '@') ? "0-1" : "0", 1);
	setenv("NEURON_RT_LOG_LOCATION", "/tmp/nrt.log", 1);
	snprintf(list, sizeof(list), "%s", names);
	done = nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS;
	while (done && (name = strsep(&next, " ")))
		done = load_file(name, &model[nr++]);
	for (unsigned int i = 0; i < nr && done; i++)
		done = allocate_inputs(model[i]);
	return done;
}

static inline bool happens(const char *names)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(!load_all(names));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

#endif

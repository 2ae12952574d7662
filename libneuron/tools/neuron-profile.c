// SPDX-License-Identifier: LGPL-2.1-or-later
/* neuron-profile: run a NEFF and write what the device did. */
#include <argp.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <neuron/neuron.h>

#include "../common/access.h"
#include "file.h"
#include "options.h"

TOOL_VERSION("neuron-profile");

static struct {
	const char *neff;
	const char *output;
	unsigned int device;
	uint32_t nc;
	unsigned int runs;
	int timeout_ms;
	bool single_io;
	struct neuron_profile_opts profile;
} options = { .output = "profile.json", .runs = 1, .timeout_ms = 30000 };

static struct neuron_device *device;
static struct neuron_core *core;
static struct neuron_model *model;
static struct neuron_placement placement = { .size = sizeof(placement) };

static error_t option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'n': options.neff = arg; return 0;
	case 's': options.output = arg; return 0;
	case 'd': options.device = (unsigned int)number(arg, 0, 63, state); return 0;
	case 'c': options.nc = (uint32_t)number(arg, 0, NEURON_MAX_CORES - 1, state); return 0;
	case 'r': options.runs = (unsigned int)number(arg, 1, 1000000, state); return 0;
	case 't': options.timeout_ms = (int)number(arg, 1, INT_MAX / 1000, state) * 1000; return 0;
	case 'i': options.single_io = true; return 0;
	case 'b':
		if (profile_buffer(arg, &options.profile))
			argp_error(state, "%s " PROFILE_BUFFER_HELP, arg);
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num || strcmp(arg, "capture"))
			argp_error(state, "%s is not \"capture\"", arg);
		return 0;
	case ARGP_KEY_END:
		if (!state->arg_num || !options.neff)
			argp_error(state, !state->arg_num ? "the command is missing: capture" :
				   "--neff is missing");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* In words, if a memory was full. */
static void no_room(const char *what, const struct neuron_mem_failure *why, int ret)
{
	if (ret == -ENOMEM && why->reason != NEURON_MEM_REASON_NONE)
		error(1, 0, "no room for %s: HBM %u is %s, %s free", what, why->hbm,
		      neuron_mem_reason_name(why->reason), SIZE_TEXT(why->free));
	error(1, -ret, "%s", what);
}

/* A logical core as the runtime makes them, so that memory ends where it does there. */
static void open_core(void)
{
	struct neuron_mem_failure why = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_core_opts opts = { .size = sizeof(opts), .failure = &why };
	const struct neuron_geometry *g;
	int ret = neuron_device_open(options.device, &device);

	if (ret)
		error(1, -ret, "device %u%s", options.device,
		      access_hint(options.device, ret, (char[ACCESS_ROOM]){ 0 }));
	g = neuron_device_geometry(device);
	read_environment(g, 1, &placement, &options.profile);
	opts.lnc = placement.lnc;
	opts.contiguous = placement.contiguous;
	opts.scratchpad_page = placement.page;
	opts.microcode = neuron_placement_microcode(&placement, g);
	ret = neuron_core_open(device, options.nc * (uint32_t)opts.lnc, &opts, &core);
	if (ret && ret != -ENOMEM)
		error(1, -ret, "core %u of device %u", options.nc, options.device);
	if (ret)
		no_room("a core", &why, ret);
}

static void load(void)
{
	struct neuron_error e = { .size = sizeof(e) };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &e, .whole = 1 };
	size_t size;
	void *bytes = read_whole(options.neff, &size, 1);
	int ret = neuron_model_load(core, bytes, size, &opts, &model);

	free(bytes);
	if (ret)
		error(1, e.text[0] ? 0 : -ret, "%s: %s", options.neff, e.text);
	if (neuron_model_obstacle(model))
		error(1, 0, "%s: %s", options.neff, neuron_model_obstacle(model));
}

static struct neuron_mem *tensor(uint64_t bytes)
{
	const struct neuron_geometry *g = neuron_device_geometry(device);
	struct neuron_mem_failure why = { .reason = NEURON_MEM_REASON_NONE };
	uint32_t nc = neuron_core_index(core);
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.flags = placement.contiguous ? NEURON_MEM_F_HIGH : 0,
		.hbm = g->core_hbm[nc],
		.nc = nc,
		.category = NEURON_MEM_TENSORS,
		.failure = &why,
	};
	struct neuron_mem *mem = NULL;
	char what[64];
	int ret = neuron_mem_alloc(device, bytes ? bytes : 1, &opts, &mem);

	snprintf(what, sizeof(what), "a tensor of %llu bytes", (unsigned long long)bytes);
	if (ret)
		no_room(what, &why, ret);
	return mem;
}

/* Memory for each input and output; or one that is as long as the longest, for all of them. */
static struct neuron_io *tensors(size_t *nr, uint64_t *bytes)
{
	struct neuron_io *io;
	uint64_t longest = 0, sum = 0;

	*nr = neuron_model_tensor_count(model);
	io = calloc(*nr + 1, sizeof(*io));
	if (!io)
		error(1, ENOMEM, "tensors");
	for (size_t i = 0; i < *nr; i++) {
		struct neuron_tensor_info info = { .size = sizeof(info) };
		int ret = neuron_model_tensor_info(model, i, &info);

		if (ret)
			error(1, -ret, "tensor %zu", i);
		io[i].name = info.name;
		io[i].bytes = info.bytes;
		sum += info.bytes;
		longest = MAX(longest, info.bytes);
		if (!options.single_io)
			io[i].mem = tensor(info.bytes);
	}
	if (options.single_io && *nr) {
		struct neuron_mem *mem = tensor(longest);

		for (size_t i = 0; i < *nr; i++)
			io[i].mem = mem;
	}
	*bytes = options.single_io ? longest : sum;
	return io;
}

static void start(struct neuron_profile **profile)
{
	struct neuron_mem_failure why = { .reason = NEURON_MEM_REASON_NONE };
	int ret;

	options.profile.size = sizeof(options.profile);
	options.profile.failure = &why;
	ret = neuron_profile_start(core, &options.profile, profile);
	if (ret)
		no_room("profile buffers (-b makes them smaller)", &why, ret);
}

static bool to_output(void)
{
	return !strcmp(options.output, "-");
}

struct capture {
	struct neuron_profile *profile;
	int missing;		/* why the file, which is whole, has less than was run */
};

/* A second time to where nothing fails: is it the file or what was recorded? */
static int fill_capture(int fd, void *arg)
{
	struct capture *c = arg;
	int ret = neuron_profile_write(c->profile, fd);
	int null = ret ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;

	if (null < 0)
		return ret;
	c->missing = neuron_profile_write(c->profile, null);
	close(null);
	return ret == c->missing ? 0 : ret;
}

static void write_capture(struct neuron_profile *profile)
{
	struct capture c = { .profile = profile };
	int ret = to_output() ? -fill_capture(STDOUT_FILENO, &c) :
		  save_file(options.output, fill_capture, &c, 0) ? 0 : errno;

	if (ret)
		error(1, ret, "%s", options.output);
	if (c.missing)
		error(1, -c.missing, "%s", options.output);
}

static int capture(void)
{
	struct neuron_run_result result = { .size = sizeof(result) };
	struct neuron_profile_stats stats = { .size = sizeof(stats) };
	FILE *f = to_output() ? stderr : stdout;
	struct neuron_profile *profile;
	struct neuron_io *io;
	int ret = 0, stopped;
	uint64_t bytes, buffers;
	size_t nr;

	open_core();
	load();
	io = tensors(&nr, &bytes);
	start(&profile);
	neuron_profile_get_stats(profile, &stats);
	buffers = stats.memory;
	for (unsigned int i = 0; i < options.runs && !ret; i++)
		ret = neuron_model_run(model, io, nr, options.timeout_ms, &result);
	if (ret)
		error(0, result.text[0] ? 0 : -ret, "%s: %s", options.neff, result.text);
	/* What led to the error is in the file. */
	stopped = neuron_profile_stop(profile);
	if (stopped)
		error(1, -stopped, "profile");
	write_capture(profile);
	neuron_profile_get_stats(profile, &stats);
	fprintf(f, "%s: %llu runs, %llu instructions, %llu packets of %llu bytes, %llu lost\n",
		options.output, (unsigned long long)stats.runs,
		(unsigned long long)stats.instructions, (unsigned long long)stats.packets,
		(unsigned long long)stats.bytes, (unsigned long long)stats.lost);
	fprintf(f, "profile buffers %s, inputs and outputs %s\n", SIZE_TEXT(buffers),
		SIZE_TEXT(bytes));
	neuron_profile_close(profile);
	for (size_t i = 0; i < nr; i++)
		if (!i || !options.single_io)
			neuron_mem_free(io[i].mem);
	free(io);
	neuron_model_unload(model);
	neuron_core_close(core);
	neuron_device_close(device);
	return ret ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{ "neff", 'n', "FILE", 0, "What to run", 0 },
		{ "session-file", 's', "FILE", 0, "Where to write (profile.json), - is the standard output", 0 },
		{ "single-io", 'i', NULL, 0, "One tensor for all inputs and outputs: less memory, wrong results", 0 },
		{ "runs", 'r', "N", 0, "Run it so often (1)", 0 },
		{ "device", 'd', "N", 0, "Device (0)", 0 },
		{ "core", 'c', "N", 0, "Logical core of the device (0)", 0 },
		{ "timeout", 't', "SECONDS", 0, "Of a run (30)", 0 },
		{ "buffer", 'b', "KIND=MIB", 0, "Size of the buffers of a kind", 0 },
		{ 0 }
	};
	static const struct argp argp = {
		opts, option, "capture",
		"Run a NEFF, and write what the engines and queues of the device did, for Perfetto or chrome://tracing.",
		NULL, NULL, NULL
	};

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	return capture();
}

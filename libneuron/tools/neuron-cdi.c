// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * neuron-cdi: tell container runtimes what a container needs for a device or a core, in the
 * form of the Container Device Interface (version 0.5.0).
 */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include <neuron/neuron.h>

#include "../common/access.h"
#include "file.h"
#include "options.h"

#define KIND "aws.amazon.com/neuron"

static struct {
	const char *command;
	const char *output;
	bool no_libraries;
	unsigned int lnc;		/* 0: what devices have by default */
} options = { .output = "/etc/cdi/neuron.json" };

TOOL_VERSION("neuron-cdi");

static const struct argp_option argp_options[] = {
	{ "lnc", 'l', "N", 0, "Physical cores of a logical core, 1 or 2", 0 },
	{ "no-libraries", 'n', NULL, 0, "The container has libneuron and libnrt of its own", 0 },
	{ "output", 'o', "FILE", 0, "Not /etc/cdi/neuron.json; - is standard output", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'l': options.lnc = (unsigned int)number(arg, 1, 2, state); return 0;
	case 'n': options.no_libraries = true; return 0;
	case 'o': options.output = arg; return 0;
	case ARGP_KEY_ARG:
		if (options.command || strcmp(arg, "generate"))
			argp_error(state, "%s is an unknown command", arg);
		options.command = arg;
		return 0;
	case ARGP_KEY_END:
		if (!options.command)
			argp_error(state, "the command is missing");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.args_doc = "generate",
	.doc = "Describe the Neuron devices of this machine to container runtimes (CDI).",
};

static json_t *json_checked(json_t *json)
{
	if (!json)
		error(1, ENOMEM, "neuron-cdi");
	return json;
}

/* Read only, at the same place. */
static void add_mount(json_t *mounts, const char *path)
{
	json_array_append_new(mounts, json_checked(
		json_pack("{ss,ss,s[ssss]}", "hostPath", path, "containerPath", path,
			  "options", "ro", "nosuid", "nodev", "bind")));
}

/* The library that this program runs with, and the other one beside it. */
static json_t *libraries(void)
{
	json_t *mounts = json_checked(json_array());
	char path[4096];
	Dl_info info;
	char *slash;

	if (!dladdr((void *)(uintptr_t)neuron_device_list, &info) || info.dli_fname[0] != '/') {
		error(0, 0, "where libneuron is cannot be told: no libraries");
		return mounts;
	}
	add_mount(mounts, info.dli_fname);
	snprintf(path, sizeof(path), "%s", info.dli_fname);
	slash = strrchr(path, '/') + 1;
	snprintf(slash, sizeof(path) - (size_t)(slash - path), "libnrt.so.1");
	if (!access(path, R_OK))
		add_mount(mounts, path);
	return mounts;
}

static json_t *node(unsigned int device)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/neuron%u", device);
	return json_checked(json_pack("{ss,ss}", "path", path, "permissions", "rw"));
}

static void add_device(json_t *devices, const char *name, json_t *nodes, const char *env)
{
	json_t *edits = json_checked(json_pack("{so}", "deviceNodes", nodes));

	if (env)
		json_object_set_new(edits, "env", json_checked(json_pack("[s]", env)));
	json_array_append_new(devices, json_checked(
		json_pack("{ss,so}", "name", name, "containerEdits", edits)));
}

/* Logical cores, counted over all devices as by libnrt. */
static unsigned int add_cores(json_t *devices, const struct neuron_device_entry *d,
			      unsigned int first)
{
	unsigned int lnc = logical_core(d->instance, d->nr_cores, options.lnc);
	unsigned int end = first + d->nr_cores / lnc;
	char name[32], env[64];

	for (; first < end; first++) {
		snprintf(name, sizeof(name), "core%u", first);
		snprintf(env, sizeof(env), "NEURON_RT_VISIBLE_CORES=%u", first);
		add_device(devices, name, json_checked(json_pack("[o]", node(d->index))), env);
	}
	return end;
}

static json_t *specification(const struct neuron_device_entry *list, size_t n)
{
	json_t *devices = json_checked(json_array()), *all = json_checked(json_array()), *spec;
	unsigned int core = 0;
	char name[16];

	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%u", list[i].index);
		add_device(devices, name, json_checked(json_pack("[o]", node(list[i].index))), NULL);
		json_array_append_new(all, node(list[i].index));
	}
	for (size_t i = 0; i < n; i++)
		core = add_cores(devices, &list[i], core);
	add_device(devices, "all", all, NULL);
	spec = json_checked(json_pack("{ss,ss,so}", "cdiVersion", "0.5.0", "kind", KIND,
				      "devices", devices));
	if (!options.no_libraries)
		json_object_set_new(spec, "containerEdits",
				    json_checked(json_pack("{so}", "mounts", libraries())));
	return spec;
}

static void write_file(const char *text, const char *path)
{
	if (!strncmp(path, "/etc/cdi/", 9) && mkdir("/etc/cdi", 0755) && errno != EEXIST)
		error(1, errno, "/etc/cdi");
	if (!replace_file(path, text, strlen(text), 0644, true))
		error(1, errno, "%s", path);
}

int main(int argc, char **argv)
{
	struct neuron_device_entry *list;
	char *text;
	json_t *spec;
	size_t n;
	int ret;

	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	ret = neuron_device_list(&list, &n);
	if (ret)
		error(1, -ret, "looking for devices");
	if (!n)
		error(1, 0, NO_DEVICE);
	spec = specification(list, n);
	neuron_device_list_free(list);
	if (!strcmp(options.output, "-")) {
		print_json(spec, 1);
		return 0;
	}
	text = json_dumps(spec, JSON_INDENT(2));
	if (!text)
		error(1, ENOMEM, "%s", options.output);
	write_file(text, options.output);
	free(text);
	json_decref(spec);
	return 0;
}

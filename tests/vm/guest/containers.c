// SPDX-License-Identifier: GPL-2.0-only
/*
 * What agents of clusters and container runtimes read, with two devices. From public
 * documents: the agent of ECS takes a directory neuronN in /sys/class/neuron_device with a
 * core_count that is a bare number, and /dev/neuronN; programs for Kubernetes give out devices
 * and cores, numbered from 0 through all devices; both read the keys of neuron-ls. The file
 * of neuron-cdi is held against the Container Device Interface's specification, version
 * 0.5.0, whose readers refuse a file with an unknown key or a wrong name as a whole.
 */
#include <ctype.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <jansson.h>

#include "check.h"

#define CLASS	"/sys/class/neuron_device"
#define DEVICES	2

/* What a program prints. */
static json_t *output(const char *command)
{
	FILE *pipe = popen(command, "r");
	json_t *json = pipe ? json_loadf(pipe, JSON_REJECT_DUPLICATES, NULL) : NULL;

	CHECK(pipe && !pclose(pipe) && json, "%s", command);
	if (!json)
		exit(1);
	return json;
}

/* All of a file without its line's end. */
static const char *text_of(const char *path)
{
	static char text[64];
	FILE *file = fopen(path, "r");

	text[0] = 0;
	if (file && fgets(text, sizeof(text), file))
		text[strcspn(text, "\n")] = 0;
	if (file)
		fclose(file);
	return text;
}

static long bare_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text) ? atol(text) : -1;
}

static void check_directory(const char *path, long *cores)
{
	char file[300], node[32], numbers[32];
	long n = bare_number(path + strlen(CLASS "/neuron"));
	struct stat st;

	CHECK(n >= 0 && n < DEVICES, "%s has a number", path);
	snprintf(file, sizeof(file), "%s/core_count", path);
	*cores = bare_number(text_of(file));
	CHECK(*cores > 0, "%s: a bare number", file);
	snprintf(node, sizeof(node), "/dev/neuron%ld", n);
	CHECK(!stat(node, &st) && S_ISCHR(st.st_mode), "%s", node);
	snprintf(numbers, sizeof(numbers), "%u:%u", major(st.st_rdev), minor(st.st_rdev));
	snprintf(file, sizeof(file), "%s/dev", path);
	CHECK(!strcmp(text_of(file), numbers), "%s is that device's", node);
}

static void agents_find_devices(long *cores)
{
	glob_t found;

	CHECK(!glob(CLASS "/neuron*", 0, NULL, &found) && found.gl_pathc == DEVICES,
	      "devices in sysfs, and nothing else");
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_directory(found.gl_pathv[i], cores);
	globfree(&found);
}

/* Numbers without a gap, and as many cores as sysfs has. */
static json_int_t cores_are_numbered(json_t *list, long physical)
{
	json_int_t next = 0;
	size_t i, k;
	json_t *device, *id;

	json_array_foreach(list, i, device) {
		json_t *ids = json_object_get(device, "neuroncore_ids");
		json_t *lnc = json_object_get(device, "logical_neuroncore_config");

		CHECK(json_integer_value(json_object_get(device, "neuron_device")) == (json_int_t)i,
		      "neuron-ls: device %zu", i);
		CHECK((long)json_array_size(ids) * json_integer_value(lnc) == physical,
		      "neuron-ls: logical cores of physical ones");
		json_array_foreach(ids, k, id) {
			if (json_integer_value(id) != next)
				CHECK(0, "core %lld is number %lld", next, json_integer_value(id));
			next++;
		}
	}
	CHECK(json_array_size(list) == DEVICES && next > 0, "neuron-ls: all devices have cores");
	return next;
}

/* No key but those of a list "a b c". */
static int only_keys(json_t *object, const char *keys)
{
	const char *key;
	json_t *value;
	int bad = !json_is_object(object);

	json_object_foreach(object, key, value) {
		const char *at = strstr(keys, key);
		size_t n = strlen(key);

		if (!at || (at != keys && at[-1] != ' ') || (at[n] && at[n] != ' ')) {
			printf("# key %s\n", key);
			bad = 1;
		}
	}
	return !bad;
}

static const char *string(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Letters and digits, and within these also some of "_-.:". */
static int is_name(const char *text, size_t n, const char *also)
{
	if (!n || !isalnum((unsigned char)text[0]) || !isalnum((unsigned char)text[n - 1]))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr(also, text[i]))
			return 0;
	return 1;
}

static int edits_are_right(json_t *edits)
{
	json_t *list, *item;
	size_t i;
	int good = only_keys(edits, "env deviceNodes hooks mounts") && json_object_size(edits);

	list = json_object_get(edits, "env");
	json_array_foreach(list, i, item)
		good &= json_is_string(item) && strchr(json_string_value(item), '=') > json_string_value(item);
	list = json_object_get(edits, "deviceNodes");
	json_array_foreach(list, i, item)
		good &= only_keys(item, "path hostPath type major minor fileMode permissions uid gid") &&
			!access(string(item, "path"), F_OK) &&
			strspn(string(item, "permissions"), "rwm") == strlen(string(item, "permissions"));
	list = json_object_get(edits, "mounts");
	json_array_foreach(list, i, item)
		good &= only_keys(item, "hostPath containerPath options type") &&
			!access(string(item, "hostPath"), R_OK) && *string(item, "containerPath") == '/';
	return good;
}

static void follows_the_specification(json_t *spec)
{
	const char *kind = string(spec, "kind"), *slash = strchr(kind, '/');
	json_t *devices = json_object_get(spec, "devices"), *names = json_object(), *device;
	size_t i;

	CHECK(only_keys(spec, "cdiVersion kind devices containerEdits"), "no unknown key");
	CHECK(!strcmp(string(spec, "cdiVersion"), "0.5.0"), "a version that has names with digits first");
	CHECK(slash && isalpha((unsigned char)*kind) && is_name(kind, (size_t)(slash - kind), "_-.") &&
	      isalpha((unsigned char)slash[1]) && is_name(slash + 1, strlen(slash + 1), "_-"),
	      "vendor and class: %s", kind);
	json_array_foreach(devices, i, device) {
		const char *name = string(device, "name");

		CHECK(only_keys(device, "name containerEdits") && is_name(name, strlen(name), "_-.:") &&
		      !json_object_get(names, name), "device %s: a name of its own", name);
		json_object_set_new(names, name, json_true());
		CHECK(edits_are_right(json_object_get(device, "containerEdits")), "device %s: edits", name);
	}
	CHECK(edits_are_right(json_object_get(spec, "containerEdits")), "edits for all");
	json_decref(names);
}

/* The nodes of a device as one text, "/dev/neuron0 /dev/neuron1 ". */
static void has_nodes(json_t *spec, const char *name, const char *want)
{
	char have[128] = "";
	json_t *device, *node;
	size_t i, k;

	json_array_foreach(json_object_get(spec, "devices"), i, device) {
		json_t *edits = json_object_get(device, "containerEdits");

		if (strcmp(string(device, "name"), name))
			continue;
		json_array_foreach(json_object_get(edits, "deviceNodes"), k, node) {
			size_t n = strlen(have);

			snprintf(have + n, sizeof(have) - n, "%s ", string(node, "path"));
		}
	}
	CHECK(!strcmp(have, want), "%s is %s", name, have);
}

int main(void)
{
	json_int_t cores;
	json_t *list, *spec;
	char last[32];
	long physical = 0;

	CHECK(!system("rmmod neuron_emu && modprobe neuron_emu nr_devices=2"), "two devices");
	agents_find_devices(&physical);
	list = output("neuron-ls -j");
	cores = cores_are_numbered(list, physical);
	spec = output("neuron-cdi -o - generate");
	follows_the_specification(spec);
	has_nodes(spec, "0", "/dev/neuron0 ");
	has_nodes(spec, "1", "/dev/neuron1 ");
	has_nodes(spec, "all", "/dev/neuron0 /dev/neuron1 ");
	has_nodes(spec, "core0", "/dev/neuron0 ");
	snprintf(last, sizeof(last), "core%lld", cores - 1);
	has_nodes(spec, last, "/dev/neuron1 ");
	CHECK((json_int_t)json_array_size(json_object_get(spec, "devices")) == cores + DEVICES + 1,
	      "nothing else");
	json_decref(list);
	json_decref(spec);
	CHECK(!system("rmmod neuron_emu && modprobe neuron_emu"), "load for what follows");
	return failed != 0;
}

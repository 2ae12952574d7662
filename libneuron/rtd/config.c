// SPDX-License-Identifier: LGPL-2.1-or-later
#include <ctype.h>
#include <err.h>
#include <getopt.h>
#include <string.h>

#include "../common/env.h"
#include "../common/util.h"
#include "config.h"

#define EXIT_USAGE 2

struct config config = {
	.endpoint = "/run/neuron.sock",
	.lnc = 1,
	.log_level = 5,
	.max_message = 16,
	.max_neff = 4096,
	.max_descriptors = 1u << 22,
	.max_depth = 64,
	.timeout = 30,
};

static bool read_number(const char *text, unsigned long min, unsigned long max,
			unsigned int *value)
{
	unsigned long n;

	if (!env_number(text, max, &n) || n < min)
		return false;
	*value = (unsigned int)n;
	return true;
}

bool config_is_tcp(const char *endpoint)
{
	return strchr(endpoint, ':') && !strchr(endpoint, '/');
}

static bool set_endpoint(const char *text)
{
	unsigned int port;

	/* gRPC's own way to write a path. */
	if (!strncmp(text, "unix:", 5))
		text += 5;
	if (!*text || strlen(text) >= sizeof(config.endpoint))
		return false;
	/* One of the system's choice could not be found. */
	if (config_is_tcp(text) && !read_number(strrchr(text, ':') + 1, 1, 65535, &port))
		return false;
	strcpy(config.endpoint, text);
	return true;
}

/* A PCI address, of which the domain may be missing. */
static bool add_device(const char *text)
{
	char bdf[32];
	unsigned int domain, bus, slot, function;
	int end = 0;

	snprintf(bdf, sizeof(bdf), strchr(text, ':') == strrchr(text, ':') ? "0:%s" : "%s", text);
	if (config.nr_devices == NEURON_MAX_DEVICES ||
	    sscanf(bdf, "%4x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &end) != 4 ||
	    bdf[end] || slot > 31 || function > 7)
		return false;
	snprintf(config.devices[config.nr_devices++], NEURON_BDF_SIZE, "%04x:%02x:%02x.%x",
		 domain & 0xffff, bus & 0xff, slot, function);
	return true;
}

static bool set_cores(const char *text)
{
	unsigned long first, last;
	const char *rest;

	if (!env_digits(text, &rest, 4095, &first))
		return false;
	last = first;
	if (*rest && (*rest != '-' || !env_number(rest + 1, 4095, &last) || last < first))
		return false;
	config.some_cores = true;
	config.first_core = (unsigned int)first;
	config.last_core = (unsigned int)last;
	return true;
}

/* The range of the number that was refused last, or nothing. */
static char range[64];

static bool set(const char *key, const char *value)
{
	static const struct {
		const char *key;
		unsigned long min, max;
		unsigned int *value;
	} numbers[] = {
		{ "lnc", 1, 2, &config.lnc },
		{ "log_level", 0, 7, &config.log_level },
		{ "max_message", 1, 1024, &config.max_message },
		{ "max_neff", 1, 65536, &config.max_neff },
		{ "max_descriptors", 1, 1u << 26, &config.max_descriptors },
		{ "max_depth", 1, 1024, &config.max_depth },
		{ "timeout", 1, 86400, &config.timeout },
	};

	*range = 0;
	if (!strcmp(key, "endpoint"))
		return set_endpoint(value);
	if (!strcmp(key, "device"))
		return add_device(value);
	if (!strcmp(key, "cores"))
		return set_cores(value);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(key, numbers[i].key)) {
			snprintf(range, sizeof(range), ": it is a number from %lu to %lu",
				 numbers[i].min, numbers[i].max);
			return read_number(value, numbers[i].min, numbers[i].max,
					   numbers[i].value);
		}
	return false;
}

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = 0;
	return text;
}

static void read_file(const char *path, bool must_exist)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	ssize_t bytes;

	if (!file && !must_exist && errno == ENOENT)
		return;
	if (!file)
		err(EXIT_USAGE, "%s", path);
	for (unsigned int n = 1; (bytes = getline(&line, &room, file)) >= 0; n++) {
		char *comment = strchr(line, '#'), *value;

		if (strlen(line) != (size_t)bytes)
			errx(EXIT_USAGE, "%s:%u: there is a zero byte", path, n);
		if (comment)
			*comment = 0;
		if (!*trim(line))
			continue;
		value = strchr(line, '=');
		if (value)
			*value++ = 0;
		if (!value || !set(trim(line), trim(value)))
			errx(EXIT_USAGE, "%s:%u: \"%s\" is not understood%s", path, n, trim(line),
			     value ? range : "");
	}
	/* A directory can be opened, too. */
	if (ferror(file))
		err(EXIT_USAGE, "%s", path);
	free(line);
	fclose(file);
}

static void help(void)
{
	puts("neuron-rtd [-t BDF]... [-g SERVER:PORT|SOCKET] [-c FILE] [-l LEVEL] [-x] [-v] [-h]\n"
	     "\n"
	     "  -t BDF         serve the device with this PCI address; may be repeated\n"
	     "  -g NAME        where to listen, instead of /run/neuron.sock\n"
	     "  -c FILE        configuration, instead of " CONFIG_FILE "\n"
	     "  -l LEVEL       what to log: 3 errors, 5 the default, 6 more, 7 each call\n"
	     "  -x             log to the console, too\n"
	     "  -v, --version  print the version\n"
	     "  -h, --help     print this");
}

static bool option(int key)
{
	switch (key) {
	case 't':
		return add_device(optarg);
	case 'g':
		return set_endpoint(optarg);
	case 'l':
		return set("log_level", optarg);
	case 'x':
		return config.console = true;
	case 'v':
		puts("neuron-rtd " NEURON_VERSION);
		exit(0);
	case 'h':
		help();
		exit(0);
	}
	return key == 'c';
}

static int next_option(int argc, char **argv)
{
	static const struct option words[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ 0 },
	};

	return getopt_long(argc, argv, "t:g:c:l:xvh", words, NULL);
}

void config_read(int argc, char **argv)
{
	const char *path = CONFIG_FILE;
	bool named = false;
	unsigned int from_file;
	int key;

	/* The file first: options replace what it says. */
	while ((key = next_option(argc, argv)) >= 0) {
		if (key == '?')
			exit(EXIT_USAGE);
		if (key == 'c') {
			path = optarg;
			named = true;
		} else if (key == 'v' || key == 'h') {
			option(key);
		}
	}
	if (optind < argc)
		errx(EXIT_USAGE, "there is nothing to be named: \"%s\"", argv[optind]);
	read_file(path, named);
	from_file = config.nr_devices;
	optind = 1;
	while ((key = next_option(argc, argv)) >= 0) {
		if (key == 't' && from_file)
			config.nr_devices = from_file = 0;
		if (!option(key))
			errx(EXIT_USAGE, "-%c %s is not understood%s", key, optarg,
			     key == 'l' ? range : "");
	}
}

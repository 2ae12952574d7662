/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options of the daemon: from its file, and from the command line, which wins. */
#ifndef NEURON_RTD_CONFIG_H
#define NEURON_RTD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include <neuron/neuron.h>

#define CONFIG_FILE "/etc/neuron/neuron-rtd.conf"

struct config {
	char endpoint[100];		/* path of a socket, whose suffix fits, or HOST:PORT */
	char devices[NEURON_MAX_DEVICES][NEURON_BDF_SIZE];	/* none: all */
	unsigned int nr_devices;
	bool some_cores;		/* else all of the devices */
	unsigned int first_core, last_core;	/* counted through the devices */
	unsigned int lnc;
	unsigned int log_level;
	bool console;
	unsigned int max_message;	/* MiB */
	unsigned int max_neff;		/* MiB */
	unsigned int max_descriptors;	/* of a model */
	unsigned int max_depth;
	unsigned int timeout;		/* of an execution, seconds */
};

/* Read only once the threads run. */
extern struct config config;

/* Whether an endpoint is HOST:PORT. */
bool config_is_tcp(const char *endpoint);

/* Ends the program where the options make no sense. */
void config_read(int argc, char **argv);

#endif

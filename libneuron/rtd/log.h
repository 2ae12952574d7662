/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the daemon says: to syslog, and to the console if that was asked for. */
#ifndef NEURON_RTD_LOG_H
#define NEURON_RTD_LOG_H

#include <stdbool.h>
#include <syslog.h>

/* Levels are syslog's; LOG_DEBUG (7) has a line for each call. */
void log_open(int level, bool console);
bool log_wants(int level);
void log_line(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

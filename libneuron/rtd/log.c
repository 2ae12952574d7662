// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdarg.h>

#include "log.h"

static int most = LOG_NOTICE;

void log_open(int level, bool console)
{
	most = level;
	openlog("neuron-rtd", LOG_PID | (console ? LOG_PERROR : 0), LOG_DAEMON);
}

bool log_wants(int level)
{
	return level <= most;
}

void log_line(int level, const char *format, ...)
{
	va_list args;

	if (!log_wants(level))
		return;
	va_start(args, format);
	vsyslog(level, format, args);
	va_end(args);
}

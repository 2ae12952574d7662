/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The log of libnrt (libnrt(7)). */
#ifndef NRT_LOG_H
#define NRT_LOG_H

#include <stdbool.h>

enum log_level {
	LOG_QUIET = 0,
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG,
	LOG_TRACE,
};

enum log_comp {
	LOG_TDRV,
	LOG_NMGR,
	LOG_NRT,
	LOG_ENC,	/* collectives */
	LOG_HAL,	/* what depends on the device */
	LOG_NR_COMPS,
};

/* Levels from the environment; at nrt_init(). */
void nrt_log_configure(void);
bool nrt_log_enabled(enum log_comp comp, enum log_level level);
/* In place: no line break, nothing that a terminal obeys. */
void nrt_log_printable(char *text);
/* Only a break in @fmt begins another line: a name that a caller gave cannot forge one. */
void nrt_log(enum log_comp comp, enum log_level level, const char *func, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#define LOG(comp, level, ...) \
	nrt_log(LOG_##comp, LOG_##level, __func__, __VA_ARGS__)
/* With the function name that existing log parsers look for. */
#define LOG_AS(comp, level, func, ...) \
	nrt_log(LOG_##comp, LOG_##level, func, __VA_ARGS__)

#endif

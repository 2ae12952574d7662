/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The number of this process, for those who ask often. */
#ifndef NEURON_LIB_PROCESS_H
#define NEURON_LIB_PROCESS_H

#include <sys/types.h>

/* As getpid(), without a system call in a process that has called process_remember(). */
pid_t process_id(void);
void process_remember(void);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The system calls on device nodes.  One file implements them (sys.c); unit
 * tests link a simulated driver in its place.
 */
#ifndef NEURON_SYS_H
#define NEURON_SYS_H

#include <stddef.h>
#include <stdint.h>

/* Like the system calls: -1 and errno on failure. */
int neuron_sys_open(const char *path, int flags);
int neuron_sys_close(int fd);
int neuron_sys_ioctl(int fd, unsigned long cmd, void *arg);
/* Shared mapping, read and write; NULL and errno on failure. */
void *neuron_sys_mmap(int fd, uint64_t offset, size_t bytes);
int neuron_sys_munmap(void *address, size_t bytes);
/*
 * The offset in the file of @fd that is mapped at an address of this process: 0; -EEXIST something
 * else is mapped there; -ENOENT nothing is.
 */
int neuron_sys_mapping(int fd, const void *address, uint64_t *offset);
/* The beginning of a short file as a string; its length, 0 if it cannot be read. */
size_t neuron_sys_read(const char *path, char *text, size_t size);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * @file neuron.h
 * @brief Neuron devices: memory, rings, notifications, and models that run on them.
 *
 * Conventions
 *  - Functions that can fail return 0 or a negative errno value and leave their
 *    outputs untouched on error. They never print and never end the program.
 *  - Handles are opaque. An object made from another one (memory of a device, a
 *    model on a core) keeps it alive; the order of freeing does not matter.
 *  - Sizes and addresses are in bytes. "Device address" is an address as the
 *    device's DMA engines see it.
 *  - Option and result structures start with @c size, set by the caller to
 *    sizeof(the structure); members added later at the end read as 0, and
 *    results beyond @c size are not written. Options may be NULL for defaults.
 *  - Functions that sleep take a timeout or say so. A negative timeout waits for ever.
 *  - There is no global state. Objects may be used from several threads, except
 *    that freeing one must not race with any other use of it. In a child after
 *    fork() they can only be freed.
 *
 * Errors common to all functions that talk to the driver: -ENODEV the device is
 * gone, -EBUSY the core or queue belongs to another process, -EACCES the process
 * is not the one that opened the device, -ENOMEM, -EINVAL.
 */
#ifndef NEURON_NEURON_H
#define NEURON_NEURON_H

#include <neuron/buffers.h>
#include <neuron/device.h>
#include <neuron/group.h>
#include <neuron/memory.h>
#include <neuron/model.h>
#include <neuron/neff.h>
#include <neuron/offload.h>
#include <neuron/pool.h>
#include <neuron/profile.h>
#include <neuron/report.h>

#endif

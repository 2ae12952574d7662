/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** @file nrt_version.h Version of the runtime library. */
#ifndef NRT_NRT_VERSION_H
#define NRT_NRT_VERSION_H

#include <stddef.h>
#include <stdint.h>

#include "nrt_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the interface that these headers describe. */
#define NRT_MAJOR_VERSION 2
#define NRT_MINOR_VERSION 0

#define RT_VERSION_DETAIL_LEN 128
#define GIT_HASH_LEN 64

typedef struct nrt_version {
	uint64_t rt_major;
	uint64_t rt_minor;
	uint64_t rt_patch;
	uint64_t rt_maintenance;
	char rt_detail[RT_VERSION_DETAIL_LEN];
	char git_hash[GIT_HASH_LEN];
} nrt_version_t;

/**
 * @brief Version of the library; callable at any time.
 * @param size	sizeof(nrt_version_t) of the caller; no more is written
 */
NRT_STATUS nrt_get_version(nrt_version_t *ver, size_t size);

#ifdef __cplusplus
}
#endif

#endif

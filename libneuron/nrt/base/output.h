/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files and directories that the runtime writes. */
#ifndef NRT_LIB_OUTPUT_H
#define NRT_LIB_OUTPUT_H

/* Where files go that nobody named a place for (uapi/FACTS.md 11). */
#define NRT_OUTPUT_DIR "./output"

/* All parts of a path; 0 or -errno. */
int nrt_make_dir(const char *path);
/*
 * To write to, empty: what the caller named, wherever that leads, but not a FIFO that nobody
 * reads, for the caller may have a lock; and what anybody could have known, which must be a
 * file of this user, and no link.  Or -errno.
 */
int nrt_open_named(const char *path);
int nrt_open_output(int dir, const char *name);
/* The same for what only this user is to read. */
int nrt_open_private(const char *path);
/* A directory of this user alone, or one he had before; -errno. */
int nrt_open_session(const char *path);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /dev/neuron_importer: another device that uses memory of Neuron devices, for
 * tests.  One attachment and one registration with the peer API for each open
 * file; closing it lets go of both.
 */
#ifndef IMPORTER_H
#define IMPORTER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * struct importer_map - what mapping an attachment gave
 * @entries: of the scatter table
 * @runs: physically contiguous runs in it
 * @bytes: in it
 */
struct importer_map {
	__u32 entries;
	__u32 runs;
	__u64 bytes;
};

enum importer_via { IMPORTER_SG, IMPORTER_VMAP, IMPORTER_PEER };

/**
 * struct importer_rw - read or write the memory
 * @off: bytes from its start
 * @len: bytes
 * @buf: user memory
 * @write: to the memory
 * @via: enum importer_via
 */
struct importer_rw {
	__u64 off;
	__u64 len;
	__u64 buf;
	__u32 write;
	__u32 via;
};

/**
 * struct importer_peer - a registration
 * @va: in, user address
 * @len: in, bytes
 * @from_callback: in, unregister from the callback
 * @shift: out, of the pages
 * @entries: out
 * @device: out
 * @bytes: out, in all entries
 */
struct importer_peer {
	__u64 va;
	__u64 len;
	__u32 from_callback;
	__u32 shift;
	__u32 entries;
	__u32 device;
	__u64 bytes;
};

/**
 * struct importer_fence - this device begins to use memory, until IMPORTER_SIGNAL
 * @fd: dma-buf
 * @write: it writes, else it reads
 */
struct importer_fence {
	__s32 fd;
	__u32 write;
};

/**
 * struct importer_p2p - attach as one that needs no pages, and can be told to unmap
 * @fd: dma-buf
 * @stubborn: pins it, and keeps what it has mapped
 */
struct importer_p2p {
	__s32 fd;
	__u32 stubborn;
};

#define IMPORTER_ATTACH		_IOW('i', 1, __s32)	/* dma-buf */
#define IMPORTER_DETACH		_IO('i', 2)
#define IMPORTER_MAP		_IOR('i', 3, struct importer_map)
#define IMPORTER_UNMAP		_IO('i', 4)
#define IMPORTER_VMAP		_IO('i', 5)
#define IMPORTER_VUNMAP		_IO('i', 6)
#define IMPORTER_RW		_IOW('i', 7, struct importer_rw)
#define IMPORTER_REGISTER	_IOWR('i', 8, struct importer_peer)
#define IMPORTER_UNREGISTER	_IO('i', 9)
#define IMPORTER_CALLBACKS	_IOR('i', 10, __u32)	/* how often it was called */
#define IMPORTER_SYNC		_IO('i', 11)		/* CPU access begins and ends */
#define IMPORTER_FENCE		_IOW('i', 12, struct importer_fence)
#define IMPORTER_SIGNAL		_IO('i', 13)
#define IMPORTER_ATTACH_P2P	_IOW('i', 14, struct importer_p2p)
#define IMPORTER_TOLD		_IOR('i', 15, __u32)	/* how often to give it up */

#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The geometry that a back end reports: checked once, trusted from then on.
 */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/overflow.h>

#include "../../uapi/neuron_ioctl.h"
#include "../../uapi/neuron_isa.h"
#include "geometry.h"

/* The device sees host memory above the bit host_window (mem/host.c): at least this much. */
#define NEURON_HOST_WINDOW	BIT_ULL(40)

/**
 * struct neuron_window - a range of device addresses
 * @base: first
 * @size: bytes
 */
struct neuron_window {
	u64 base;
	u64 size;
};

static bool neuron_windows_apart(const struct neuron_window *w, u32 n)
{
	u64 end, other;
	u32 i, j;

	for (i = 0; i < n; i++) {
		if (!w[i].size || check_add_overflow(w[i].base, w[i].size, &end))
			return false;
		for (j = 0; j < i; j++) {
			other = w[j].base + w[j].size;
			if (w[i].base < other && w[j].base < end)
				return false;
		}
	}
	return true;
}

/* No address may have two meanings, on the device or as an offset for mmap(). */
static bool neuron_geometry_windows(const struct neuron_geometry *geo)
{
	struct neuron_window w[NEURON_HW_MAX_HBMS + 1 + NEURON_HW_MAX_CORES];
	u32 n = 0, i;

	for (i = 0; i < geo->nr_hbms; i++) {
		if (geo->hbm[i].reserved >= geo->hbm[i].size)
			return false;
		w[n++] = (struct neuron_window){ geo->hbm[i].base, geo->hbm[i].size };
	}
	w[n++] = (struct neuron_window){ geo->host_window, geo->host_window };
	for (i = 0; i < geo->nr_cores; i++)
		w[n + i] = (struct neuron_window){ geo->tpb_base[i], geo->tpb_size };
	if (!neuron_windows_apart(w, n + geo->nr_cores))
		return false;
	/* Programs map the windows of all cores in a row (mem/resource.c). */
	if (check_mul_overflow(geo->tpb_size, (u64)geo->nr_cores, &w[n].size))
		return false;
	w[n].base = geo->tpb_base[0];
	return geo->sbuf_size <= geo->tpb_size && neuron_windows_apart(w, n + 1);
}

/*
 * Each core has a queue of its own for the driver's copies.  Programs use the other
 * queues of the engines that belong to cores, and a core's reset resets its engines.  So
 * a copy queue lies on an engine of its own core or on one that belongs to no core.
 */
static bool neuron_geometry_copies(const struct neuron_geometry *geo)
{
	u32 i, j, user = geo->nr_cores * geo->engines_per_core;

	for (i = 0; i < geo->nr_cores; i++) {
		u32 eng = geo->copy_engine[i];

		if (eng >= geo->nr_dma_engines ||
		    geo->copy_queue[i] >= NEURON_HW_QUEUES_PER_ENGINE ||
		    (eng < user && eng / geo->engines_per_core != i))
			return false;
		for (j = 0; j < i; j++)
			if (geo->copy_engine[j] == eng && geo->copy_queue[j] == geo->copy_queue[i])
				return false;
	}
	return true;
}

/**
 * neuron_geometry_valid() - does a geometry make sense?
 * @geo: from a back end
 *
 * Context: any.
 */
bool neuron_geometry_valid(const struct neuron_geometry *geo)
{
	return geo->nr_cores && geo->nr_cores <= NEURON_HW_MAX_CORES &&
	       geo->nr_hbms && geo->nr_hbms <= NEURON_HW_MAX_HBMS &&
	       geo->engines_per_core && geo->engines_per_core <= geo->nr_dma_engines &&
	       geo->nr_cores <= geo->nr_dma_engines / geo->engines_per_core &&
	       geo->nr_nq_types <= NEURON_HW_NQ_TYPES &&
	       geo->nr_nq_engines <= NEURON_HW_NQ_ENGINES && is_power_of_2(geo->host_window) &&
	       geo->host_window >= NEURON_HOST_WINDOW && geo->tpb_size >= NEURON_RESOURCE_SBUF &&
	       neuron_geometry_windows(geo) && neuron_geometry_copies(geo);
}

/**
 * neuron_geometry_window() - is a part of a core's window one whose purpose is known?
 * @geo: geometry
 * @off: from the start of the window
 * @len: bytes, not 0
 *
 * The state buffer, events, semaphores, and the FIFOs of the software device
 * (../../uapi/FACTS.md 6).  Registers are accessed four bytes at a time, and a FIFO takes whole
 * instructions: what else a device would make of it nobody knows, and one that stops at it stops
 * the driver's copies, too.
 *
 * Context: any.
 */
bool neuron_geometry_window(const struct neuron_geometry *geo, u64 off, u64 len)
{
	const struct { u64 start, size, unit, most; } parts[] = {
		{ NEURON_ISA_SBUF_OFF, geo->sbuf_size, 1, geo->sbuf_size },
		{ NEURON_ISA_EVENT_OFF(0), 4 * geo->nr_events, 4, 4 },
		{ NEURON_ISA_SEM_READ_OFF(0), 4 * geo->sem_block, 4, 4 },
		{ NEURON_ISA_FIFO_OFF(0),
		  geo->isa_version ? NEURON_ISA_NR_ENGINES * NEURON_ISA_FIFO_SIZE : 0,
		  NEURON_ISA_INST_SIZE, NEURON_ISA_FIFO_SIZE },
	};
	u64 from;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		if (off < parts[i].start || off - parts[i].start >= parts[i].size)
			continue;
		from = off - parts[i].start;
		return !(from % parts[i].unit) && !(len % parts[i].unit) &&
		       len <= parts[i].most - from % parts[i].most;
	}
	return false;
}

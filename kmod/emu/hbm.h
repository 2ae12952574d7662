/* SPDX-License-Identifier: GPL-2.0-only */
/* Device memory, made of pages of the host. */
#ifndef EMU_HBM_H
#define EMU_HBM_H

#include <linux/atomic.h>
#include <linux/xarray.h>

/**
 * struct emu_hbm - one sparse device memory
 * @pages: pages that were written to, by offset / PAGE_SIZE
 * @nr_pages: their number
 * @size: bytes
 */
struct emu_hbm {
	struct xarray pages;
	atomic_long_t nr_pages;
	u64 size;
};

/* Pages that all devices use (0 at module exit), and the most that they may use. */
extern atomic_long_t emu_total_pages;
extern unsigned long emu_max_pages;

/* What emu_hbm_soil() leaves behind, and where. */
#define EMU_SOIL		0xa5
#define EMU_SOIL_STEP		(1u << 20)
#define EMU_SOIL_END		(256u << 20)

bool emu_pages_charge(long n);
void emu_pages_uncharge(long n);
struct page *emu_pages_alloc(unsigned int order);

void emu_hbm_init(struct emu_hbm *hbm, u64 size);
int emu_hbm_soil(struct emu_hbm *hbm);
void emu_hbm_destroy(struct emu_hbm *hbm);
int emu_hbm_zero(struct emu_hbm *hbm, u64 off, u64 len, bool drop);
int emu_hbm_frame(struct emu_hbm *hbm, u64 off, unsigned long *pfn);
struct page *emu_hbm_page(struct emu_hbm *hbm, u64 off);
unsigned int emu_hbm_store(struct emu_hbm *hbm, unsigned long index, struct page *page,
			   unsigned int n);

#endif /* EMU_HBM_H */

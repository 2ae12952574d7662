// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device memory that somebody has is cut off and freed, which the driver refuses. On one
 * that does not, check_users must complain. Who has it is the parameter "user" of the
 * kernel's command line.
 */
#include <sys/mman.h>

#include "../guest/check.h"

#define SIZE	(16ull << 20)

static int fd;

static int has_mapping(const struct neuron_native_mem_alloc *a)
{
	return mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, (off_t)a->mmap_offset) == MAP_FAILED;
}

static int has_export(const struct neuron_native_mem_alloc *a)
{
	struct neuron_native_mem_export e = { .size = sizeof(e), .mem_handle = a->mem_handle };

	return call(fd, NEURON_NATIVE_MEM_EXPORT, &e);
}

/* Up to the end of the memory. */
static int has_ring(const struct neuron_native_mem_alloc *a)
{
	struct neuron_ioctl_dma_queue_init q = {
		.qid = 1, .tx_desc_count = SIZE / 16, .rx_desc_count = SIZE / 16,
		.tx_handle = a->mem_handle, .rx_handle = a->mem_handle,
	};

	return call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q);
}

static const struct {
	const char *name;
	int (*take)(const struct neuron_native_mem_alloc *a);
} users[] = {
	{ "user=mapping", has_mapping }, { "user=dma-buf", has_export }, { "user=ring", has_ring },
};

int main(void)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = SIZE, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	struct neuron_native_mem_grow g = {
		.size = sizeof(g), .bytes = 4096, .flags = NEURON_NATIVE_GROW_SHRINK,
	};
	struct neuron_ioctl_device_reset r = { .nc_map = 1 };
	char line[4096] = "";
	FILE *f = fopen("/proc/cmdline", "r");
	int err = -1;

	if (!f || !fgets(line, sizeof(line), f))
		return 1;
	fclose(f);
	fd = open_node(O_RDWR);
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &r), "a core");
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "memory");
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
		if (strstr(line, users[i].name))
			err = users[i].take(&a);
	CHECK(!err, "somebody has it");
	g.mem_handle = a.mem_handle;
	CHECK(call(fd, NEURON_NATIVE_MEM_GROW, &g) == EBUSY, "the driver refuses");
	return failed > 0;
}

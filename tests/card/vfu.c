// SPDX-License-Identifier: GPL-2.0-only
/*
 * The server side of vfio-user, as far as QEMU's vfio-user-pci needs it. Each message has a
 * header and a body; both are in the order of the host's bytes. No interrupts: a card has
 * none that a driver uses.
 */
#define _GNU_SOURCE
#include <sys/socket.h>

#include "vfu.h"

enum {
	VFU_VERSION = 1,
	VFU_DMA_MAP,
	VFU_DMA_UNMAP,
	VFU_DEVICE_INFO,
	VFU_REGION_INFO,
	VFU_REGION_IO_FDS,
	VFU_IRQ_INFO,
	VFU_SET_IRQS,
	VFU_REGION_READ,
	VFU_REGION_WRITE,
	VFU_DMA_READ,
	VFU_DMA_WRITE,
	VFU_DEVICE_RESET,
};

#define VFU_REPLY		0x1
#define VFU_NO_REPLY		0x10
#define VFU_ERROR		0x20

#define VFU_REGION_CONFIG	7
#define VFU_REGIONS		9
#define VFU_IRQS		5
#define VFU_CAN_READ		0x1
#define VFU_CAN_WRITE		0x2
#define VFU_CAN_MMAP		0x4
#define VFU_UNMAP_ALL		0x2

#define PCI_COMMAND		0x04
#define PCI_STATUS		0x06
#define PCI_STATUS_CAP_LIST	0x10
#define PCI_CAPABILITY_LIST	0x34
/* Advanced features (ECN of 2006 to PCI 3.0): a reset of the function. */
#define PCI_AF			0x40
#define PCI_CAP_ID_AF		0x13
#define PCI_AF_LENGTH		6
#define PCI_AF_CAP_TP_FLR	3
#define PCI_AF_CTRL		(PCI_AF + 4)
#define PCI_AF_CTRL_FLR		1
#define PCI_COMMAND_MASTER	0x4
#define PCI_COMMAND_ALLOWED	0x46	/* memory, bus master, parity */
#define PCI_BAR0		0x10
#define PCI_BARS_END		0x28
#define PCI_INTERRUPT_LINE	0x3c
#define PCI_BAR_64		0x4
#define PCI_BAR_PREFETCH	0x8

struct vfu_head {
	u16 id;
	u16 command;
	u32 size;
	u32 flags;
	u32 error;
};

struct vfu_dma {
	u32 argsz;
	u32 flags;
	u64 offset;
	u64 addr;
	u64 size;
};

struct vfu_unmap {
	u32 argsz;
	u32 flags;
	u64 addr;
	u64 size;
};

struct vfu_info {
	u32 argsz;
	u32 flags;
	u32 regions;
	u32 irqs;
};

struct vfu_region {
	u32 argsz;
	u32 flags;
	u32 index;
	u32 cap;
	u64 size;
	u64 offset;
};

struct vfu_irq {
	u32 argsz;
	u32 flags;
	u32 index;
	u32 count;
};

struct vfu_access {
	u64 offset;
	u32 region;
	u32 count;
	u8 data[];
};

static const u16 device_ids[CARD_NR_KINDS] = {
	[CARD_TRN1] = 0x7164, [CARD_INF2] = 0x7264, [CARD_TRN2] = 0x7364, [CARD_TRN3] = 0x7564,
};

static void put16(u8 *p, u16 v)
{
	v = cpu_to_le16(v);
	memcpy(p, &v, sizeof(v));
}

static void put32(u8 *p, u32 v)
{
	v = cpu_to_le32(v);
	memcpy(p, &v, sizeof(v));
}

/**
 * vfu_init() - make a PCI function of a card
 * @v: filled in
 * @card: the card
 * @fd: connection to the virtual machine; becomes the function's
 *
 * Return: 0, -ENOMEM.
 */
int vfu_init(struct vfu *v, struct card *card, int fd)
{
	memset(v, 0, sizeof(*v));
	v->card = card;
	v->fd = fd;
	v->body = malloc(VFU_MAX_MESSAGE);
	put16(v->config + 0x00, 0x1d0f);
	put16(v->config + 0x02, device_ids[card->kind]);
	put16(v->config + PCI_STATUS, PCI_STATUS_CAP_LIST);
	put16(v->config + 0x0a, 0x0880);
	v->config[PCI_CAPABILITY_LIST] = PCI_AF;
	v->config[PCI_AF] = PCI_CAP_ID_AF;
	v->config[PCI_AF + 2] = PCI_AF_LENGTH;
	v->config[PCI_AF + 3] = PCI_AF_CAP_TP_FLR;
	put32(v->config + PCI_BAR0, PCI_BAR_64);
	put32(v->config + PCI_BAR0 + 4 * 4, PCI_BAR_64 | PCI_BAR_PREFETCH);
	return v->body ? 0 : -ENOMEM;
}

/**
 * vfu_exit() - end the connection
 * @v: from vfu_init()
 */
void vfu_exit(struct vfu *v)
{
	free(v->body);
	close(v->fd);
}

/* Receive @len bytes, and the last descriptor that comes with them. */
static int vfu_receive(int fd, void *buf, size_t len, int *passed)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	size_t got = 0;

	while (got < len) {
		struct iovec io = { (char *)buf + got, len - got };
		struct msghdr m = {
			.msg_iov = &io, .msg_iovlen = 1,
			.msg_control = &control, .msg_controllen = sizeof(control),
		};
		ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			if (*passed >= 0)
				close(*passed);
			memcpy(passed, CMSG_DATA(c), sizeof(*passed));
		}
		got += n;
	}
	return 0;
}

static int vfu_reply(struct vfu *v, const struct vfu_head *h, const void *body, size_t len,
		     int error, int pass)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { };
	struct vfu_head r = {
		.id = h->id, .command = h->command, .size = sizeof(r) + len,
		.flags = VFU_REPLY | (error ? VFU_ERROR : 0), .error = error,
	};
	struct iovec io[2] = { { &r, sizeof(r) }, { (void *)body, len } };
	struct msghdr m = { .msg_iov = io, .msg_iovlen = len ? 2 : 1 };

	if (h->flags & VFU_NO_REPLY)
		return 0;
	if (pass >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &pass, sizeof(pass));
	}
	return sendmsg(v->fd, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int vfu_version(struct vfu *v, const struct vfu_head *h, u32 len)
{
	static const char caps[] = "{\"capabilities\":{\"max_msg_fds\":1,\"max_dma_maps\":65535,"
				   "\"max_data_xfer_size\":65536,\"pgsizes\":4096}}";
	char out[4 + sizeof(caps)];

	if (len < 4)
		return vfu_reply(v, h, NULL, 0, EINVAL, -1);
	memcpy(out, v->body, 4);		/* the version that the other side speaks */
	memcpy(out + 4, caps, sizeof(caps));
	return vfu_reply(v, h, out, sizeof(out), 0, -1);
}

static int vfu_map(struct vfu *v, const struct vfu_head *h, int fd)
{
	const struct vfu_dma *a = (struct vfu_dma *)v->body;
	int err = 0;

	/* Without a file it is no memory, but the BAR of another device. */
	if (fd >= 0)
		err = card_range_add(v->card, a->addr, a->size, fd, a->offset,
				     a->flags & VFU_CAN_WRITE);
	return vfu_reply(v, h, NULL, 0, -err, -1);
}

static int vfu_unmap(struct vfu *v, const struct vfu_head *h)
{
	const struct vfu_unmap *a = (struct vfu_unmap *)v->body;

	if (a->flags & VFU_UNMAP_ALL)
		card_range_del(v->card, 0, U64_MAX);
	else
		card_range_del(v->card, a->addr, a->size);
	return vfu_reply(v, h, a, sizeof(*a), 0, -1);
}

static int vfu_region(struct vfu *v, const struct vfu_head *h)
{
	struct vfu_region r = { .argsz = sizeof(r), .flags = VFU_CAN_READ | VFU_CAN_WRITE };
	int pass = -1;

	r.index = ((struct vfu_region *)v->body)->index;
	switch (r.index) {
	case 0:
		r.size = v->card->bar0_len;	/* every access is a message */
		break;
	case 4:
		if (!v->card->bar4_shown)
			break;
		r.size = v->card->bar4_shown;	/* the machine maps the file */
		r.flags |= VFU_CAN_MMAP;
		pass = v->card->bar4_fd;
		break;
	case VFU_REGION_CONFIG:
		r.size = VFU_CONFIG_LEN;
		break;
	default:
		r.flags = 0;
	}
	return vfu_reply(v, h, &r, sizeof(r), 0, pass);
}

static int vfu_read(struct vfu *v, const struct vfu_head *h)
{
	const struct vfu_access *a = (struct vfu_access *)v->body;
	struct { struct vfu_access a; u8 data[VFU_CONFIG_LEN]; } out = { .a = *a };
	u64 val;

	if (a->region == VFU_REGION_CONFIG && a->offset <= VFU_CONFIG_LEN &&
	    a->count <= VFU_CONFIG_LEN - a->offset) {
		memcpy(out.data, v->config + a->offset, a->count);
	} else if (a->region == 0 && a->count <= sizeof(u64)) {
		val = card_read(v->card, a->offset, a->count);
		memcpy(out.data, &val, sizeof(val));
	} else {
		return vfu_reply(v, h, NULL, 0, EINVAL, -1);
	}
	return vfu_reply(v, h, &out, sizeof(out.a) + a->count, 0, -1);
}

/* A byte of a line for the control.  The end of the line has it done. */
static void vfu_control(struct vfu *v, u32 at, u8 val)
{
	char *answer = (char *)v->config + VFU_CONTROL;
	FILE *out;

	v->line[at] = val;
	if (val != '\n')
		return;
	memset(answer, 0, VFU_CONTROL_LEN);
	out = fmemopen(answer, VFU_CONTROL_LEN, "w");
	if (!out)
		return;
	fprintf(out, "%s\n", card_control(v->card, v->line, out) ? "error" : "ok");
	fclose(out);
	memset(v->line, 0, sizeof(v->line));
}

/* Other than the firmware's reset, this one is only known to end bus mastering. */
static void vfu_reset(struct vfu *v)
{
	card_run_on_check(v->card);
	v->card->command = 0;
	v->config[PCI_COMMAND] = 0;
}

static void vfu_config_write(struct vfu *v, u64 off, u8 val)
{
	if (off == PCI_COMMAND) {
		v->config[off] = val & PCI_COMMAND_ALLOWED;
		v->card->command = v->config[off];
		if (val & PCI_COMMAND_MASTER && v->card->faults.leftover)
			card_complain(v->card, "bus mastering on, and queues run from before");
	} else if (off == PCI_INTERRUPT_LINE || (off >= PCI_BAR0 && off < PCI_BARS_END)) {
		v->config[off] = val;	/* where the BARs are is the machine's business */
	} else if (off == PCI_AF_CTRL && val & PCI_AF_CTRL_FLR) {
		vfu_reset(v);
	} else if (off >= VFU_CONTROL && off < VFU_CONFIG_LEN) {
		vfu_control(v, off - VFU_CONTROL, val);
	}
}

static int vfu_write(struct vfu *v, const struct vfu_head *h, u32 len)
{
	const struct vfu_access *a = (struct vfu_access *)v->body;
	u64 val = 0;
	u32 i;

	if (a->count > len - sizeof(*a))
		return vfu_reply(v, h, NULL, 0, EINVAL, -1);
	if (a->region == VFU_REGION_CONFIG) {
		for (i = 0; i < a->count; i++)
			vfu_config_write(v, a->offset + i, a->data[i]);
	} else if (a->region == 0 && a->count <= sizeof(u64)) {
		memcpy(&val, a->data, a->count);
		card_write(v->card, a->offset, a->count, val);
	} else {
		return vfu_reply(v, h, NULL, 0, EINVAL, -1);
	}
	return vfu_reply(v, h, a, sizeof(*a), 0, -1);
}

/* The least that a body has to have, by command. */
static const u32 vfu_least[] = {
	[VFU_DMA_MAP] = sizeof(struct vfu_dma),
	[VFU_DMA_UNMAP] = sizeof(struct vfu_unmap),
	[VFU_REGION_INFO] = sizeof(struct vfu_region),
	[VFU_IRQ_INFO] = sizeof(struct vfu_irq),
	[VFU_REGION_READ] = sizeof(struct vfu_access),
	[VFU_REGION_WRITE] = sizeof(struct vfu_access),
	[VFU_DEVICE_RESET] = 0,
};

static int vfu_handle(struct vfu *v, const struct vfu_head *h, u32 len, int passed)
{
	struct vfu_info info = { sizeof(info), 0x3 /* can be reset, PCI */, VFU_REGIONS, VFU_IRQS };
	struct vfu_irq irq = { .argsz = sizeof(irq) };

	if (h->command >= ARRAY_SIZE(vfu_least) || len < vfu_least[h->command])
		return vfu_reply(v, h, NULL, 0, EINVAL, -1);
	switch (h->command) {
	case VFU_VERSION:
		return vfu_version(v, h, len);
	case VFU_DMA_MAP:
		return vfu_map(v, h, passed);
	case VFU_DMA_UNMAP:
		return vfu_unmap(v, h);
	case VFU_DEVICE_INFO:
		return vfu_reply(v, h, &info, sizeof(info), 0, -1);
	case VFU_REGION_INFO:
		return vfu_region(v, h);
	case VFU_IRQ_INFO:
		irq.index = ((struct vfu_irq *)v->body)->index;
		return vfu_reply(v, h, &irq, sizeof(irq), 0, -1);
	case VFU_SET_IRQS:
		return vfu_reply(v, h, NULL, 0, 0, -1);
	case VFU_REGION_READ:
		return vfu_read(v, h);
	case VFU_REGION_WRITE:
		return vfu_write(v, h, len);
	case VFU_DEVICE_RESET:
		vfu_reset(v);
		return vfu_reply(v, h, NULL, 0, 0, -1);
	default:
		return vfu_reply(v, h, NULL, 0, ENOSYS, -1);
	}
}

/* Is it the access of a register at which the card has to go, as if its process were killed? */
static bool vfu_dies(const struct vfu *v, const struct vfu_head *h)
{
	struct card_faults *f = &v->card->faults;

	return f->die && (h->command == VFU_REGION_READ || h->command == VFU_REGION_WRITE) &&
	       !((const struct vfu_access *)v->body)->region && !--f->die;
}

/**
 * vfu_message() - handle the next message
 * @v: the function
 *
 * Return: 0; -EPIPE the machine has gone; -EPROTO a message that cannot be; -errno.
 */
int vfu_message(struct vfu *v)
{
	struct vfu_head h;
	int passed = -1, err;

	err = vfu_receive(v->fd, &h, sizeof(h), &passed);
	if (!err && (h.size < sizeof(h) || h.size - sizeof(h) > VFU_MAX_MESSAGE))
		err = -EPROTO;
	if (!err)
		err = vfu_receive(v->fd, v->body, h.size - sizeof(h), &passed);
	if (!err && vfu_dies(v, &h))
		err = -EPIPE;
	if (!err)
		err = vfu_handle(v, &h, h.size - sizeof(h), passed);
	if (passed >= 0)
		close(passed);
	return err;
}

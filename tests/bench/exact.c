// SPDX-License-Identifier: GPL-2.0-only
/*
 * First fit and best fit as genalloc does them, to the address, but with a search tree
 * over the free runs in the place of its bitmap: where a bitmap takes hours. "twin"
 * among the tests proves the sameness against genalloc itself.
 *
 * A treap whose nodes are free runs, named by their first granule. First fit keeps it by
 * address, best fit by (length, address).
 */
#include "bench.h"

#define NIL	0u		/* granule n is node n + 1 */

struct run {
	u32 len;		/* of the run that starts or ends here; 0: neither */
	u32 left, right;
	u32 most;		/* longest run of the subtree */
};

struct exact {
	u32 len;
	u32 root;
	bool best;
	struct run *run;	/* by granule + 1 */
};

static u32 priority(u32 node)
{
	u32 x = node * 0x9e3779b1u;

	x ^= x >> 15;
	return x * 0x85ebca77u;
}

static u64 key(const struct exact *z, u32 node)
{
	return z->best ? (u64)z->run[node].len << 32 | node : node;
}

static u32 update(struct exact *z, u32 node)
{
	struct run *r = &z->run[node];

	r->most = r->len;
	if (r->left)
		r->most = max(r->most, z->run[r->left].most);
	if (r->right)
		r->most = max(r->most, z->run[r->right].most);
	return node;
}

/* Nodes below @at go to @a, the others to @b. */
static void split(struct exact *z, u32 node, u64 at, u32 *a, u32 *b)
{
	if (!node) {
		*a = NIL;
		*b = NIL;
	} else if (key(z, node) < at) {
		split(z, z->run[node].right, at, &z->run[node].right, b);
		*a = update(z, node);
	} else {
		split(z, z->run[node].left, at, a, &z->run[node].left);
		*b = update(z, node);
	}
}

static u32 join(struct exact *z, u32 a, u32 b)
{
	if (!a || !b)
		return a ? a : b;
	if (priority(a) < priority(b)) {
		z->run[a].right = join(z, z->run[a].right, b);
		return update(z, a);
	}
	z->run[b].left = join(z, a, z->run[b].left);
	return update(z, b);
}

static void add(struct exact *z, u32 start, u32 len)
{
	u32 node = start + 1, a, b;

	z->run[node].len = len;
	z->run[node + len - 1].len = len;
	z->run[node].left = NIL;
	z->run[node].right = NIL;
	update(z, node);
	split(z, z->root, key(z, node), &a, &b);
	z->root = join(z, join(z, a, node), b);
}

static void del(struct exact *z, u32 start)
{
	u32 node = start + 1, len = z->run[node].len, a, b, c;

	split(z, z->root, key(z, node), &a, &b);
	split(z, b, key(z, node) + 1, &b, &c);
	z->root = join(z, a, c);
	z->run[node].len = 0;
	z->run[node + len - 1].len = 0;
}

/* The run of at least @n with the lowest address that is above node @after. */
static u32 first_after(const struct exact *z, u32 node, u32 after, u32 n)
{
	u32 found;

	if (!node || z->run[node].most < n)
		return NIL;
	if (node > after) {
		found = first_after(z, z->run[node].left, after, n);
		if (found)
			return found;
		if (z->run[node].len >= n)
			return node;
	}
	return first_after(z, z->run[node].right, after, n);
}

static u32 tightest(const struct exact *z, u32 n)
{
	u32 node = z->root, found = NIL;

	while (node) {
		if (z->run[node].len >= n) {
			found = node;
			node = z->run[node].left;
		} else {
			node = z->run[node].right;
		}
	}
	return found;
}

static void *create(u64 size, bool best)
{
	struct exact *z = bench_alloc_mem(sizeof(*z));

	if (!z)
		return NULL;
	z->len = (u32)(size >> 12);
	z->best = best;
	z->run = bench_alloc_mem((z->len + 2ULL) * sizeof(*z->run));
	if (!z->run) {
		bench_free_mem(z);
		return NULL;
	}
	add(z, 0, z->len);
	return z;
}

static void *create_first(u64 size)
{
	return create(size, false);
}

static void *create_best(u64 size)
{
	return create(size, true);
}

static void destroy(void *zone)
{
	struct exact *z = zone;

	bench_free_mem(z->run);
	bench_free_mem(z);
}

/* genalloc knows alignment in its first fit only: best fit cannot be asked for it. */
static int alloc(void *zone, u64 size, u64 align, struct bench_block *block)
{
	u32 n = (u32)((size + 4095) >> 12), mask = align > 4096 ? (u32)(align >> 12) - 1 : 0;
	struct exact *z = zone;
	u32 node, start, len, pos;

	if (z->best) {
		node = mask ? NIL : tightest(z, n);
		if (!node)
			return -ENOSPC;
		pos = node - 1;
	} else {
		node = NIL;
		do {
			node = first_after(z, z->root, node, n);
			if (!node)
				return -ENOSPC;
			pos = (node - 1 + mask) & ~mask;
		} while (pos + n > node - 1 + z->run[node].len);
	}
	start = node - 1;
	len = z->run[node].len;
	del(z, start);
	if (pos > start)
		add(z, start, pos - start);
	if (pos + n < start + len)
		add(z, pos + n, start + len - pos - n);
	block->priv[0] = (u64)pos << 12;
	return 0;
}

static void release(void *zone, struct bench_block *block)
{
	u32 start = (u32)(block->priv[0] >> 12), n = (u32)((block->size + 4095) >> 12), len;
	struct exact *z = zone;

	len = z->run[start + 1 + n].len;
	if (start + n < z->len && len) {
		del(z, start + n);
		n += len;
	}
	len = z->run[start].len;
	if (start && len) {
		start -= len;
		del(z, start);
		n += len;
	}
	add(z, start, n);
}

static u64 metadata(void *zone)
{
	(void)zone;
	return 0;
}

const struct bench_peer bench_exact_first = {
	.name = "first-fit",
	.create = create_first,
	.destroy = destroy,
	.alloc = alloc,
	.free = release,
	.metadata = metadata,
	.only_packing = true,
};

const struct bench_peer bench_exact_best = {
	.name = "best-fit",
	.create = create_best,
	.destroy = destroy,
	.alloc = alloc,
	.free = release,
	.metadata = metadata,
	.only_packing = true,
};

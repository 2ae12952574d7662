// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who holds memory, and which of them would make room (held.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../common/lock.h"
#include "../device/opts.h"
#include "held.h"
#include "mem.h"

/* Sets that are tried out before the smallest one is given up for a small one. */
#define TRIES 20000u
/* Steps that this may take. */
#define WORK 200000000ull

/* ---- scratchpads ------------------------------------------------------------------- */

/* Under the lock of the scratchpad. */
static int pad_fill(struct pad *p, const struct scratchpad *s, uint32_t without)
{
	size_t n = 0;

	for (const struct scratchpad_user *u = s->users; u; u = u->next)
		n++;
	*p = (struct pad){
		.of = s, .hbm = s->hbm, .page = s->page, .nr_pages = s->nr_pages,
		.page_at = calloc(s->nr_pages + 1, sizeof(*p->page_at)),
		.user = calloc(n + 1, sizeof(*p->user)),
	};
	if (!p->page_at || !p->user)
		return -ENOMEM;
	if (s->region) {
		p->region_at = s->region->address;
		p->region = s->region->bytes;
	}
	for (size_t i = 0; i < s->nr_pages; i++)
		p->page_at[i] = s->pages[i]->address;
	for (const struct scratchpad_user *u = s->users; u; u = u->next)
		if (!u->owner || u->owner != without)
			p->user[p->nr_users++] = (struct pad_user){ u->owner, u->need };
	return 0;
}

/*
 * One that is being made longer is left out, as if it were here to stay: the request that was
 * refused may be for it, so that this thread has the lock.
 */
static int pad_read(struct pad *p, struct scratchpad *s, uint32_t without)
{
	int ret;

	if (pthread_mutex_trylock(&s->lock))
		return 0;
	ret = pad_fill(p, s, without);
	pthread_mutex_unlock(&s->lock);
	return ret;
}

static int read_pads(struct held *held, struct neuron_device *device, uint32_t without)
{
	size_t n = 0;
	int ret = 0;

	GUARD(&device->scratchpads_lock);
	for (struct scratchpad *s = device->scratchpads; s; s = s->next)
		n++;
	held->pad = calloc(n + 1, sizeof(*held->pad));
	if (!held->pad)
		return -ENOMEM;
	for (struct scratchpad *s = device->scratchpads; s && !ret; s = s->next)
		ret = pad_read(&held->pad[held->nr_pads++], s, without);
	return ret;
}

bool held_gone(const struct held *held, uint64_t gone, int32_t pid, uint32_t owner)
{
	for (size_t i = 0; i < held->count; i++)
		if (gone >> i & 1 && held->object[i].pid == pid && held->object[i].owner == owner)
			return true;
	return false;
}

/* As scratchpad.c does it when users leave. */
static void pad_shrink(const struct held *held, const struct pad *p, uint64_t gone,
		       struct pad *left)
{
	uint64_t need = 0, behind;

	*left = *p;
	left->nr_users = 0;
	for (size_t i = 0; i < p->nr_users; i++) {
		if (p->user[i].owner && held_gone(held, gone, getpid(), p->user[i].owner))
			continue;
		need = MAX(need, p->user[i].need);
		left->nr_users++;
	}
	if (!need)
		left->region = 0;
	behind = scratchpad_pages(need - MIN(need, left->region), p->page);
	left->nr_pages = MIN(p->nr_pages, behind);
	if (!left->nr_pages)
		left->region = MIN(left->region, round_up(need, SCRATCHPAD_STEP));
}

const struct pad *held_pad(const struct held *held, const struct scratchpad *of, uint64_t gone,
			   struct pad *left)
{
	*left = (struct pad){ .of = of, .hbm = of->hbm, .page = of->page };
	if (held->empty)
		return left;
	for (size_t i = 0; i < held->nr_pads; i++)
		if (held->pad[i].of == of) {
			pad_shrink(held, &held->pad[i], gone, left);
			return left;
		}
	return NULL;
}

/* Bytes at the start of a range of a scratchpad that stay; all if it is none. */
static uint64_t bytes_kept(const struct held *held, uint64_t gone, const struct neuron_range *r)
{
	struct pad left;

	for (size_t i = 0; i < held->nr_pads; i++) {
		const struct pad *p = &held->pad[i];

		for (size_t k = 0; k < p->nr_pages; k++)
			if (p->page_at[k] == r->address) {
				pad_shrink(held, p, gone, &left);
				return k < left.nr_pages ? r->bytes : 0;
			}
		if (!p->region || p->region_at != r->address)
			continue;
		pad_shrink(held, p, gone, &left);
		return left.region == p->region ? r->bytes : left.region;
	}
	return r->bytes;
}

/* ---- objects ----------------------------------------------------------------------- */

/* Whose it is, as it can be released.  False: nobody's who could. */
static bool whose(const struct neuron_range *r, struct neuron_release_item *o)
{
	if (r->state != NEURON_RANGE_OWNED || !r->pid)
		return false;
	*o = (struct neuron_release_item){ .pid = r->pid, .owner = r->owner };
	if (r->pid != getpid())
		o->owner = NEURON_RELEASE_PROCESS;
	else if (!r->owner && r->category != NEURON_MEM_TENSORS)
		return false;
	return true;
}

static bool same(const struct neuron_release_item *a, const struct neuron_release_item *b)
{
	return a->pid == b->pid && a->owner == b->owner;
}

static int by_bytes(const void *a, const void *b)
{
	const struct neuron_release_item *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid) :
				  (x->owner > y->owner) - (x->owner < y->owner);
}

/* All there are, whose number is not bounded, then those with most. */
static int list_objects(struct held *held)
{
	struct neuron_release_item *all = NULL, o;
	size_t n = 0, max = 0, k;

	for (uint32_t hbm = 0; hbm < NEURON_MAX_HBMS; hbm++)
		for (size_t i = 0; i < held->hbm[hbm].count; i++) {
			const struct neuron_range *r = &held->hbm[hbm].list[i];

			if (!whose(r, &o))
				continue;
			for (k = 0; k < n && !same(&all[k], &o); k++)
				;
			if (k == n && array_grow((void **)&all, n, &max, sizeof(*all))) {
				free(all);
				return -ENOMEM;
			}
			if (k == n)
				all[n++] = o;
			all[k].bytes += r->bytes;
		}
	if (n)
		qsort(all, n, sizeof(*all), by_bytes);
	held->count = MIN(n, HELD_OBJECTS);
	if (n)
		memcpy(held->object, all, held->count * sizeof(*all));
	free(all);
	return 0;
}

/* A driver without owners leaves them without names. */
static void name_objects(struct held *held, struct neuron_device *device, uint32_t hbm)
{
	struct neuron_owners owners = { .size = sizeof(owners) };

	if (neuron_hbm_get_owners(device, hbm, 0, &owners))
		return;
	for (size_t i = 0; i < held->count; i++) {
		struct neuron_release_item *o = &held->object[i];
		uint32_t id = o->owner == NEURON_RELEASE_PROCESS ? 0 : o->owner;

		for (size_t k = 0; k < owners.count; k++)
			if (owners.list[k].pid == o->pid && owners.list[k].id == id)
				memcpy(o->label, owners.list[k].label, sizeof(o->label));
	}
	free(owners.list);
}

static void forget_owner(struct neuron_range *list, size_t n, uint32_t owner)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].state == NEURON_RANGE_OWNED && list[i].pid == getpid() &&
		    list[i].owner == owner)
			list[i].state = NEURON_RANGE_FREE;
}

int held_read(struct held *held, struct neuron_device *device, uint32_t hbms, uint32_t without)
{
	int ret = 0;

	memset(held, 0, sizeof(*held));
	for (uint32_t i = 0; i < NEURON_MAX_HBMS && !ret; i++)
		if (hbms >> i & 1)
			ret = neuron_hbm_get_ranges(device, i, &held->hbm[i].list,
						    &held->hbm[i].count);
	for (uint32_t i = 0; i < NEURON_MAX_HBMS && without; i++)
		forget_owner(held->hbm[i].list, held->hbm[i].count, without);
	ret = ret ?: read_pads(held, device, without) ?: list_objects(held);
	for (uint32_t i = 0; i < NEURON_MAX_HBMS && !ret; i++)
		if (hbms >> i & 1)
			name_objects(held, device, i);
	return ret;
}

int held_new(struct held *held, const struct neuron_geometry *g, uint64_t reserved)
{
	memset(held, 0, sizeof(*held));
	held->empty = true;
	for (uint32_t i = 0; i < g->nr_hbms; i++) {
		struct neuron_range *r = calloc(1, sizeof(*r));

		if (!r)
			return -ENOMEM;
		r->address = g->hbm[i].base + reserved;
		r->bytes = g->hbm[i].size - MIN(reserved, g->hbm[i].size);
		held->hbm[i].list = r;
		held->hbm[i].count = 1;
	}
	return 0;
}

void held_free(struct held *held)
{
	for (uint32_t i = 0; i < NEURON_MAX_HBMS; i++)
		free(held->hbm[i].list);
	for (size_t i = 0; i < held->nr_pads; i++) {
		free(held->pad[i].page_at);
		free(held->pad[i].user);
	}
	free(held->pad);
}

int held_room(const struct held *held, uint32_t hbm, uint64_t gone, struct room *room)
{
	struct neuron_release_item o;
	int ret = 0;

	if (held->hbm[hbm].count)
		room->memory.at = held->hbm[hbm].list[0].address;
	for (size_t i = 0; i < held->hbm[hbm].count && !ret; i++) {
		const struct neuron_range *r = &held->hbm[hbm].list[i];
		uint64_t kept = r->bytes;

		room->memory.bytes = r->address + r->bytes - room->memory.at;
		if (r->state == NEURON_RANGE_FREE ||
		    (held->empty && r->state != NEURON_RANGE_RESERVED))
			kept = 0;
		else if (whose(r, &o))
			kept = held_gone(held, gone, o.pid, o.owner) ? 0 : r->bytes;
		else if (r->state == NEURON_RANGE_OWNED && r->pid == getpid())
			kept = bytes_kept(held, gone, r);
		if (kept && r->state != NEURON_RANGE_RESERVED)
			room_count(room, r->address, kept);
		ret = room_add(room, r->address + kept, r->bytes - kept);
		if (held->moves && r->movable && kept && !ret)
			ret = room_add_movable(room, r->address, r->bytes, 1ull << r->movable);
	}
	return ret;
}

/* ---- the smallest set -------------------------------------------------------------- */

struct search {
	const struct held *held;
	uint64_t need, spare;		/* bytes free at most without any object */
	bool (*fits)(void *data, const struct held *held, uint64_t gone);
	void *data;
	uint64_t tries, max_tries;
};

static uint64_t bytes_of(const struct held *held, uint64_t set)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < held->count; i++)
		if (set >> i & 1 && held->object[i].bytes != NEURON_RELEASE_UNKNOWN)
			sum += held->object[i].bytes;
	return sum;
}

static bool try_set(struct search *s, uint64_t set)
{
	if (s->spare + bytes_of(s->held, set) < s->need)
		return false;
	s->tries++;
	return s->fits(s->data, s->held, set);
}

/* The next larger number with as many bits; 0: there is none. */
static uint64_t next_set(uint64_t set, size_t count)
{
	uint64_t low = set & -set, carry = set + low;

	if (carry < set || (count < 64 && carry >> count))
		return 0;
	return carry | ((set ^ carry) / low >> 2);
}

/* Of @size objects, the one with the fewest bytes; 0: none, or too many to try. */
static uint64_t best_of_size(struct search *s, size_t size)
{
	uint64_t set = size == 64 ? UINT64_MAX : (1ull << size) - 1, best = 0;

	for (; set && s->tries < s->max_tries; set = next_set(set, s->held->count))
		if ((!best || bytes_of(s->held, set) < bytes_of(s->held, best)) && try_set(s, set))
			best = set;
	return best;
}

/* None of which can stay. */
static uint64_t some_set(struct search *s)
{
	size_t n = s->held->count;
	uint64_t set = n == 64 ? UINT64_MAX : (1ull << n) - 1;

	if (!n || !try_set(s, set))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (try_set(s, set & ~(1ull << i)))
			set &= ~(1ull << i);
	return set;
}

static uint64_t held_ranges(const struct held *held)
{
	uint64_t n = 0;

	for (uint32_t hbm = 0; hbm < NEURON_MAX_HBMS; hbm++)
		n += held->hbm[hbm].count;
	return n;
}

static uint64_t spare(const struct held *held)
{
	uint64_t sum = 0;

	for (uint32_t hbm = 0; hbm < NEURON_MAX_HBMS; hbm++)
		for (size_t i = 0; i < held->hbm[hbm].count; i++)
			if (held->hbm[hbm].list[i].state == NEURON_RANGE_FREE)
				sum += held->hbm[hbm].list[i].bytes;
	for (size_t i = 0; i < held->nr_pads; i++)
		sum += held->pad[i].region + held->pad[i].nr_pages * held->pad[i].page;
	return sum;
}

int held_search(const struct held *held, uint64_t need, uint64_t steps,
		bool (*fits)(void *data, const struct held *held, uint64_t gone), void *data,
		struct neuron_release *release)
{
	struct search s = {
		.held = held, .need = need, .spare = spare(held), .fits = fits, .data = data,
		.max_tries = MIN(TRIES, WORK / (held_ranges(held) * steps + 1)),
	};
	struct neuron_release out = { .smallest = 1 };
	uint64_t some, set = 0;

	if (try_set(&s, 0)) {
		result_copy(release, &out, sizeof(out));
		return 0;
	}
	some = some_set(&s);
	if (!some)
		return -ENOENT;
	for (size_t size = 1; size < (size_t)__builtin_popcountll(some) && !set; size++)
		set = best_of_size(&s, size);
	/* No smaller one: of its size there may be one with less. */
	if (!set)
		set = best_of_size(&s, (size_t)__builtin_popcountll(some)) ?: some;
	out.smallest = s.tries < s.max_tries;
	for (size_t i = 0; i < held->count; i++) {
		if (!(set >> i & 1))
			continue;
		if (held->object[i].bytes == NEURON_RELEASE_UNKNOWN)
			out.bytes = NEURON_RELEASE_UNKNOWN;
		else if (out.bytes != NEURON_RELEASE_UNKNOWN)
			out.bytes += held->object[i].bytes;
		if (out.count < NEURON_RELEASE_ITEMS)
			out.item[out.count] = held->object[i];
		out.count++;
	}
	result_copy(release, &out, sizeof(out));
	return 0;
}

/* ---- one request ------------------------------------------------------------------- */

static bool request_fits(void *data, const struct held *held, uint64_t gone)
{
	const struct neuron_mem_failure *f = data;
	struct room room = { 0 };
	uint64_t at;
	bool fits = !held_room(held, f->hbm, gone, &room) &&
		    !room_take(&room, f->bytes, f->align, ROOM_LOWEST, &at);

	room_free(&room);
	return fits;
}

NEURON_EXPORT int neuron_mem_release(struct neuron_device *device,
				     const struct neuron_mem_failure *failure,
				     struct neuron_release *release)
{
	struct neuron_mem_failure f;
	struct held held;
	int ret;

	if (!failure || !failure->bytes || failure->align & (failure->align - 1) ||
	    failure->hbm >= neuron_device_geometry(device)->nr_hbms || !result_valid(release))
		return -EINVAL;
	f = *failure;
	ret = held_read(&held, device, 1u << f.hbm, 0) ?:
	      held_search(&held, f.bytes, 1, request_fits, &f, release);
	held_free(&held);
	return ret;
}

NEURON_EXPORT const char *neuron_release_text(const struct neuron_release *release, char *text,
					      size_t size)
{
	size_t n = 0, shown = MIN((size_t)release->count, NEURON_RELEASE_ITEMS);

	if (size)
		*text = '\0';
	for (size_t i = 0; i < shown && n < size; i++) {
		const struct neuron_release_item *o = &release->item[i];
		const char *sep = !i ? "" : i + 1 < release->count ? ", " : " and ";

		if (o->bytes == NEURON_RELEASE_UNKNOWN)
			n += (size_t)snprintf(text + n, size - n, "%sprocess %d (of unknown size)",
					      sep, o->pid);
		else if (o->owner == NEURON_RELEASE_PROCESS)
			n += (size_t)snprintf(text + n, size - n, "%sprocess %d (%s)", sep, o->pid,
					      SIZE_TEXT(o->bytes));
		else if (!o->owner)
			n += (size_t)snprintf(text + n, size - n, "%stensors (%s)", sep,
					      SIZE_TEXT(o->bytes));
		else
			n += (size_t)snprintf(text + n, size - n, "%s%s, owner %u (%s)", sep,
					      o->label, o->owner, SIZE_TEXT(o->bytes));
	}
	if (n < size && release->count > shown)
		snprintf(text + n, size - n, " and %u more", release->count - (uint32_t)shown);
	return text;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Holes on paper (room.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/util.h"
#include "room.h"

int room_add(struct room *room, uint64_t at, uint64_t bytes)
{
	struct hole *last = room->count ? &room->hole[room->count - 1] : NULL;

	if (!bytes)
		return 0;
	if (last && last->at + last->bytes == at) {
		last->bytes += bytes;
		return 0;
	}
	if (array_grow((void **)&room->hole, room->count, &room->max, sizeof(*room->hole)))
		return -ENOMEM;
	room->hole[room->count++] = (struct hole){ at, bytes };
	return 0;
}

void room_free(struct room *room)
{
	free(room->hole);
	free(room->movable);
	room_free_use(room);
	*room = (struct room){ .count = 0 };
}

int room_add_movable(struct room *room, uint64_t at, uint64_t bytes, uint64_t align)
{
	if (array_grow((void **)&room->movable, room->nr_movable, &room->max_movable,
		       sizeof(*room->movable)))
		return -ENOMEM;
	room->movable[room->nr_movable++] = (struct movable){ at, bytes, align };
	return 0;
}

int room_copy(struct room *to, const struct room *from)
{
	int ret = 0;

	for (size_t i = 0; i < from->count && !ret; i++)
		ret = room_add(to, from->hole[i].at, from->hole[i].bytes);
	for (size_t i = 0; i < from->nr_movable && !ret; i++)
		ret = room_add_movable(to, from->movable[i].at, from->movable[i].bytes,
				       from->movable[i].align);
	to->memory = from->memory;
	to->moved = from->moved;
	return ret ?: room_copy_use(to, from);
}

/* [@at, @at + @bytes) of hole @i; what is left are up to two holes. */
static int cut(struct room *room, size_t i, uint64_t at, uint64_t bytes)
{
	struct hole *h = &room->hole[i];
	uint64_t end = h->at + h->bytes;

	if (at + bytes == end) {
		h->bytes = at - h->at;
	} else if (at == h->at) {
		h->at += bytes;
		h->bytes -= bytes;
	} else {
		if (array_grow((void **)&room->hole, room->count, &room->max, sizeof(*room->hole)))
			return -ENOMEM;
		h = &room->hole[i];
		memmove(h + 2, h + 1, (room->count++ - i - 1) * sizeof(*h));
		h[1] = (struct hole){ at + bytes, end - at - bytes };
		h->bytes = at - h->at;
	}
	if (!h->bytes)
		memmove(h, h + 1, (--room->count - i) * sizeof(*h));
	return 0;
}

static int take_at(struct room *room, uint64_t at, uint64_t bytes)
{
	for (size_t i = 0; i < room->count; i++) {
		const struct hole *h = &room->hole[i];

		if (at >= h->at && at - h->at < h->bytes)
			return bytes <= h->bytes - (at - h->at) ? cut(room, i, at, bytes) : -ENOSPC;
	}
	return -ENOSPC;
}

int room_take_at(struct room *room, uint64_t at, uint64_t bytes)
{
	int ret = take_at(room, at, bytes);

	if (!ret)
		room_count(room, at, bytes);
	return ret;
}

int room_grow(struct room *room, uint64_t at, uint64_t bytes, uint64_t more)
{
	int ret = take_at(room, at + bytes, more);

	if (ret)
		return ret;
	room_uncount(room, bytes);
	room_count(room, at, bytes + more);
	return 0;
}

int room_take(struct room *room, uint64_t bytes, uint64_t align, enum room_fit fit, uint64_t *at)
{
	uint64_t even = align > host_page() ? align : host_page();
	int ret;

	if (bytes > UINT64_MAX / 2 || even > UINT64_MAX / 2)
		return -ENOSPC;
	bytes = round_up(bytes, host_page());
	if (fit >= ROOM_OWN)
		ret = room_find_own(room, bytes, even, fit, at);
	else
		ret = room_find(room, bytes, even, fit, at) ? 0 : -ENOSPC;
	return ret ?: room_take_at(room, *at, bytes);
}

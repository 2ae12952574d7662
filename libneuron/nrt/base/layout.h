/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Structures that programs were compiled with. */
#ifndef NRT_LAYOUT_H
#define NRT_LAYOUT_H

#include <stddef.h>

#define LAYOUT(type, member, off) \
	_Static_assert(offsetof(type, member) == (off), #type "." #member)
#define SIZE(type, bytes) \
	_Static_assert(sizeof(type) == (bytes), #type)

#endif

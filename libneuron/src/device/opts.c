// SPDX-License-Identifier: LGPL-2.1-or-later
/* Options that callers pass (opts.h). */
#include <errno.h>

#include "opts.h"

int opts_copy(void *ours, size_t our_size, const void *theirs)
{
	const unsigned char *bytes = theirs;
	size_t size;

	memset(ours, 0, our_size);
	if (!theirs)
		return 0;
	memcpy(&size, theirs, sizeof(size));
	if (size < sizeof(size))
		return -EINVAL;
	for (size_t i = our_size; i < size; i++)
		if (bytes[i])
			return -E2BIG;
	memcpy(ours, theirs, size < our_size ? size : our_size);
	return 0;
}

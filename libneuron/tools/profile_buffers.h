/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sizes of profile buffers on a command line. */
#ifndef NEURON_TOOLS_PROFILE_BUFFERS_H
#define NEURON_TOOLS_PROFILE_BUFFERS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <neuron/neuron.h>

/* KIND=MIB, kinds as in NEURON_RT_PROFILE_BUF_<KIND>_MB; 0 or -EINVAL. */
static inline int profile_buffer(const char *arg, struct neuron_profile_opts *opts)
{
	static const char *const kinds[NEURON_PROFILE_NR_BUFFERS] = {
		[NEURON_PROFILE_EVENT] = "EVENT",
		[NEURON_PROFILE_DMA] = "DMA",
		[NEURON_PROFILE_THROTTLE] = "THROTTLE",
		[NEURON_PROFILE_CC_CORE_INSTRUCTION] = "CC_CORE_INSTRUCTION",
		[NEURON_PROFILE_CC_CORE_EVENT] = "CC_CORE_EVENT",
	};
	size_t len = strcspn(arg, "=");
	unsigned long mib;
	char *end;

	if (arg[len] != '=' || arg[len + 1] < '0' || arg[len + 1] > '9')
		return -EINVAL;
	mib = strtoul(arg + len + 1, &end, 10);
	if (*end || !mib || mib > 1024 || mib & (mib - 1))
		return -EINVAL;
	for (int i = 0; i < NEURON_PROFILE_NR_BUFFERS; i++)
		if (strlen(kinds[i]) == len && !strncasecmp(arg, kinds[i], len)) {
			opts->bytes[i] = (uint64_t)mib << 20;
			return 0;
		}
	return -EINVAL;
}

#define PROFILE_BUFFER_HELP \
	"is not KIND=MIB, with EVENT, DMA, THROTTLE, CC_CORE_INSTRUCTION or CC_CORE_EVENT and a power of two up to 1024"

#endif

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where models go, as the environment asks for it: the runtime and the tools read it here. */
#include <errno.h>

#include "../../common/env.h"
#include "../device/opts.h"
#include "../memory/scratchpad.h"

/* Device memory document, "Overview". */
#define MICROCODE (96 * MIB)
#define MAX_MICROCODE_MIB 4096ul
/* At most that part of a memory on each core: a small one has room for models, too. */
#define MICROCODE_SHARE 16
#define MAX_BUFFER_MIB 1024ul

static int bad(struct neuron_placement *p, const char *variable, const char *rule)
{
	p->variable = variable;
	p->text = rule;
	return -EINVAL;
}

/* Of a variable, or of its older name. */
static const char *text_of_either(const char **name, const char *older)
{
	if (!env_text(*name))
		*name = older;
	return env_text(*name);
}

static int read_lnc(struct neuron_placement *p, bool pairs)
{
	const char *name = "NEURON_LOGICAL_NC_CONFIG";
	const char *text = text_of_either(&name, "NEURON_RT_VIRTUAL_CORE_SIZE");
	unsigned long n = pairs ? 2 : 1;

	if (text && (!env_number(text, n, &n) || !n))
		return bad(p, name, "is not 1, or 2 where cores come in pairs");
	p->lnc = (uint32_t)n;
	return 0;
}

static int read_scratchpad(struct neuron_placement *p, bool pairs)
{
	const char *mode = env_text("NEURON_RT_CONTIGUOUS_SCRATCHPAD");
	const char *name = "NEURON_SCRATCHPAD_PAGE_SIZE";
	const char *text = text_of_either(&name, "NEURON_RT_ONE_TMPBUF_PAGE_SIZE_MB");
	unsigned long n;
	int is;

	p->contiguous = p->lnc == 2 || !pairs;
	if (mode) {
		is = env_truth(mode);
		if (is < 0)
			return bad(p, "NEURON_RT_CONTIGUOUS_SCRATCHPAD", "is not 1 or 0");
		p->contiguous = is;
	}
	p->page = SCRATCHPAD_PAGE;
	if (!text)
		return 0;
	if (!env_number(text, 4095, &n) || !scratchpad_page_valid(n * MIB))
		return bad(p, name, "is not a multiple of 512 below 4096");
	p->page = n * MIB;
	if (p->contiguous) {
		p->variable = name;
		p->text = "has no effect on a scratchpad in one piece; with NEURON_RT_CONTIGUOUS_SCRATCHPAD=0 it is made of pages";
	}
	return 0;
}

NEURON_EXPORT int neuron_placement_read(bool pairs, struct neuron_placement *placement)
{
	struct neuron_placement out = { .microcode = NEURON_MICROCODE_DEFAULT };
	const char *text = env_text("NEURON_RT_MICROCODE_MB");
	unsigned long n;
	int ret;

	if (!result_valid(placement))
		return -EINVAL;
	ret = read_lnc(&out, pairs) ?: read_scratchpad(&out, pairs);
	if (!ret && text && env_number(text, MAX_MICROCODE_MIB, &n))
		out.microcode = n * MIB;
	else if (!ret && text)
		ret = bad(&out, "NEURON_RT_MICROCODE_MB", "is not a number up to 4096");
	result_copy(placement, &out, sizeof(out));
	return ret;
}

NEURON_EXPORT uint64_t neuron_placement_microcode(const struct neuron_placement *placement,
						  const struct neuron_geometry *geometry)
{
	uint64_t bytes = MICROCODE;

	if (placement && placement->microcode != NEURON_MICROCODE_DEFAULT)
		return placement->microcode;
	for (uint32_t i = 0; i < geometry->nr_hbms; i++)
		if (geometry->hbm[i].size / MICROCODE_SHARE < bytes)
			bytes = geometry->hbm[i].size / MICROCODE_SHARE & ~(uint64_t)(NEURON_PAGE - 1);
	return bytes;
}

NEURON_EXPORT int neuron_profile_read(struct neuron_profile_opts *opts, const char **variable)
{
	static const char *const names[NEURON_PROFILE_NR_BUFFERS] = {
		[NEURON_PROFILE_EVENT] = "NEURON_RT_PROFILE_BUF_EVENT_MB",
		[NEURON_PROFILE_DMA] = "NEURON_RT_PROFILE_BUF_DMA_MB",
		[NEURON_PROFILE_THROTTLE] = "NEURON_RT_PROFILE_BUF_THROTTLE_MB",
		[NEURON_PROFILE_CC_CORE_INSTRUCTION] =
			"NEURON_RT_PROFILE_BUF_CC_CORE_INSTRUCTION_MB",
		[NEURON_PROFILE_CC_CORE_EVENT] = "NEURON_RT_PROFILE_BUF_CC_CORE_EVENT_MB",
	};

	for (int i = 0; i < NEURON_PROFILE_NR_BUFFERS; i++) {
		const char *text = env_text(names[i]);
		unsigned long n;

		if (!text)
			continue;
		if (!env_number(text, MAX_BUFFER_MIB, &n) || !n) {
			*variable = names[i];
			return -EINVAL;
		}
		/* The driver has queues of a power of two; more than asked for loses nothing. */
		opts->bytes[i] = MIB;
		while (opts->bytes[i] < n * MIB)
			opts->bytes[i] *= 2;
	}
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pretended runs: a program that cannot be run here succeeds all the same, on a software
 * device and for who asked for it, so that what is around it can be tried.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nettle/sha2.h>

#include "../../common/pretend.h"
#include "../../common/util.h"
#include "../../common/wait.h"
#include "../device/opts.h"
#include <neuron/neff.h>
#include "core.h"
#include "pretend.h"

#define PIECE	(64u << 10)	/* bytes of a tensor at a time */

/* Bandwidth of a device's memory by architecture, in GB/s: product pages of the instances. */
static const uint64_t bandwidth[] = { [1] = 50, [2] = 820, [3] = 2900, [4] = 4900 };

NEURON_EXPORT int neuron_device_pretend(const struct neuron_device *device,
					enum neuron_pretend *pretend)
{
	char text[16];

	if (!device_line(device, "pretend", text, sizeof(text)))
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(pretend_names); i++)
		if (!strcmp(text, pretend_names[i])) {
			*pretend = (enum neuron_pretend)i;
			return 0;
		}
	return -EINVAL;
}

NEURON_EXPORT bool neuron_model_pretends(const struct neuron_model *model)
{
	return model->pretend != NEURON_PRETEND_NONE;
}

int pretend_setup(struct neuron_model *model, enum neuron_pretend how)
{
	struct neuron_device *device = model->core->device;
	struct neuron_device_info info = { .size = sizeof(info) };
	struct neuron_model_usage u = { .size = sizeof(u) };
	enum neuron_pretend marker;
	uint64_t bytes;
	int ret;

	if (how == NEURON_PRETEND_NONE || !neuron_model_obstacle(model))
		return 0;
	if (neuron_device_pretend(device, &marker) == -ENOENT)
		return -EPERM;
	ret = neuron_device_get_info(device, &info) ?: neuron_model_get_usage(model, &u);
	if (ret)
		return ret;
	bytes = u.code + u.constants;
	for (size_t i = 0; i < model->nr_tensors; i++)
		bytes += model->tensors[i]->info.bytes;
	info.arch = info.arch < ARRAY_SIZE(bandwidth) ? info.arch : ARRAY_SIZE(bandwidth) - 1;
	/* As if a core with its share of the memory read everything once. */
	model->pretend_ns = bytes / MAX(bandwidth[info.arch], 1u) * device->geometry.nr_cores;
	model->pretend = how;
	return 0;
}

/* The most significant bit of an exponent: without it every pattern is a number. */
static void make_finite(uint8_t *bytes, size_t nr, uint32_t dtype)
{
	uint32_t size = neuron_neff_dtype_size(dtype);

	switch (dtype) {
	case NEURON_NEFF_DT_BFLOAT16:
	case NEURON_NEFF_DT_FLOAT16:
	case NEURON_NEFF_DT_FLOAT32:
	case NEURON_NEFF_DT_FP32R:
	case NEURON_NEFF_DT_FP8_E3:
	case NEURON_NEFF_DT_FP8_E4:
	case NEURON_NEFF_DT_FP8_E5:
		for (size_t i = size - 1; i < nr; i += size)
			bytes[i] &= 0xbf;
	}
}

struct source {
	const struct neuron_io *io;	/* to copy from, or NULL */
	uint64_t bytes;			/* of it */
	uint8_t digest[SHA256_DIGEST_SIZE];
};

/* Bytes @at to @at + @nr of output @t. */
static int fill(const struct io_tensor *t, const struct source *from, enum neuron_pretend how,
		uint64_t at, uint8_t *buf, size_t nr)
{
	uint64_t have = from->io && at < from->bytes ? MIN(from->bytes - at, (uint64_t)nr) : 0;
	struct sha256_ctx ctx;
	uint64_t block;

	memset(buf, 0, nr);
	if (how == NEURON_PRETEND_COPY)
		return have ? neuron_mem_read(from->io->mem, from->io->offset + at, buf, have) : 0;
	for (size_t i = 0; how == NEURON_PRETEND_HASH && i < nr; i += SHA256_DIGEST_SIZE) {
		block = at + i;
		sha256_init(&ctx);
		sha256_update(&ctx, sizeof(from->digest), from->digest);
		sha256_update(&ctx, strlen(t->info.name), (const uint8_t *)t->info.name);
		sha256_update(&ctx, sizeof(block), (const uint8_t *)&block);
		sha256_digest(&ctx, MIN(nr - i, (size_t)SHA256_DIGEST_SIZE), buf + i);
	}
	if (how == NEURON_PRETEND_HASH)
		make_finite(buf, nr, t->info.dtype);
	return 0;
}

static int digest_inputs(const struct neuron_model *model, const struct neuron_io *io,
			 size_t nr_io, uint8_t *buf, uint8_t *digest)
{
	struct sha256_ctx ctx;
	int ret = 0;

	sha256_init(&ctx);
	for (size_t i = 0; i < model->nr_tensors; i++) {
		const struct neuron_tensor_info *t = &model->tensors[i]->info;
		const struct neuron_io *b = find_io(io, nr_io, i, t->name);

		for (uint64_t at = 0; t->usage == NEURON_TENSOR_INPUT && at < t->bytes && !ret;
		     at += PIECE) {
			size_t nr = MIN(t->bytes - at, (uint64_t)PIECE);

			ret = neuron_mem_read(b->mem, b->offset + at, buf, nr);
			if (!ret)
				sha256_update(&ctx, nr, buf);
		}
	}
	sha256_digest(&ctx, SHA256_DIGEST_SIZE, digest);
	return ret;
}

/* The input that output number @nr is a copy of: the one with its number, or from the start. */
static void find_source(const struct neuron_model *model, const struct neuron_io *io, size_t nr_io,
			size_t nr, struct source *from)
{
	size_t inputs = 0, seen = 0;

	from->io = NULL;
	for (size_t i = 0; i < model->nr_tensors; i++)
		inputs += model->tensors[i]->info.usage == NEURON_TENSOR_INPUT;
	for (size_t i = 0; i < model->nr_tensors && inputs && !from->io; i++) {
		const struct neuron_tensor_info *t = &model->tensors[i]->info;

		if (t->usage != NEURON_TENSOR_INPUT || seen++ != nr % inputs)
			continue;
		from->io = find_io(io, nr_io, i, t->name);
		from->bytes = t->bytes;
	}
}

static int write_outputs(const struct neuron_model *model, const struct neuron_io *io,
			 size_t nr_io, uint8_t *buf)
{
	struct source from = { .io = NULL };
	size_t nr_out = 0;
	int ret = 0;

	if (model->pretend == NEURON_PRETEND_HASH)
		ret = digest_inputs(model, io, nr_io, buf, from.digest);
	for (size_t i = 0; i < model->nr_tensors && !ret; i++) {
		const struct io_tensor *t = model->tensors[i];
		const struct neuron_io *b = find_io(io, nr_io, i, t->info.name);

		if (t->info.usage == NEURON_TENSOR_INPUT)
			continue;
		find_source(model, io, nr_io, nr_out++, &from);
		for (uint64_t at = 0; at < t->info.bytes && !ret; at += PIECE) {
			size_t nr = MIN(t->info.bytes - at, (uint64_t)PIECE);

			ret = fill(t, &from, model->pretend, at, buf, nr) ?:
			      neuron_mem_write(b->mem, b->offset + at, buf, nr);
		}
	}
	return ret;
}

int pretend_run(const struct neuron_model *model, const struct neuron_io *io, size_t nr_io,
		int timeout_ms, struct neuron_run_result *result)
{
	uint64_t ns = model->pretend_ns;
	bool late = timeout_ms >= 0 && ns > (uint64_t)timeout_ms * 1000000;
	uint8_t *buf = malloc(PIECE);
	struct timespec t;
	int ret = buf ? write_outputs(model, io, nr_io, buf) : -ENOMEM;

	free(buf);
	if (ret)
		return ret;
	if (late)
		ns = (uint64_t)timeout_ms * 1000000;
	t = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
			       .tv_nsec = (long)(ns % 1000000000) };
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
		;
	if (!late)
		return 0;
	result->status = NEURON_RUN_TIMEOUT;
	snprintf(result->text, sizeof(result->text),
		 "a pretended run takes %llu ms, more than %d",
		 (unsigned long long)(model->pretend_ns / 1000000), timeout_ms);
	return -ETIMEDOUT;
}

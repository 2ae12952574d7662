// SPDX-License-Identifier: GPL-2.0-only
/*
 * NEFFs whose transfers compute: random casts, sums, minima, transposes ... with
 * strides on both sides, loaded and run by libneuron, against a walk element by
 * element on the host.
 */
#define _GNU_SOURCE
#include <stdarg.h>

#include <neuron/neuron.h>

#include "nrt_guest.h"
#include "../../lib/random_side.h"

#define NR_DESC		12
#define MAX_FROM	4
#define X_BYTES		(2u << 20)
#define Y_BYTES		(4u << 20)

static char json[65000];
static size_t json_len;
static uint8_t *x, *y, *want;

static void __attribute__((format(printf, 1, 2))) out(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	json_len += (size_t)vsnprintf(json + json_len, sizeof(json) - json_len, fmt, ap);
	va_end(ap);
}

static const char *dtype_name(uint8_t dtype)
{
	static const char *const names[] = {
		"", "uint64", "int8", "uint8", "int16", "uint16", "bfloat16", "float16", "int32",
		"uint32", "float32", "float32r", "int64", "float8e3", "float8e4", "float8e5",
	};

	return names[dtype];
}

static void out_side(const char *key, const char *var, const struct neuron_neff_side *s)
{
	out("\"%s\": \"%s\", \"%s_off\": %" PRIu64 ", \"%s_dtype\": \"%s\", \"%s_sizes\": [", key,
	    var, key, s->off, key, dtype_name((uint8_t)s->dtype), key);
	for (uint32_t i = 0; i < s->ndim; i++)
		out("%s%" PRIu64, i ? ", " : "", s->size[i]);
	out("], \"%s_steps\": [", key);
	for (uint32_t i = 0; i < s->ndim; i++)
		out("%s%" PRIu64, i ? ", " : "", s->step[i]);
	out("]");
}

/* The next operation, in JSON and in @want. */
static void add_desc(uint32_t index)
{
	static const char *const names[] = { "cast", "add", "fma", "min", "max", "transpose" };
	uint32_t op = index % 6, nr = op && op < 5 ? 1 + (uint32_t)rnd(MAX_FROM) : 1, size;
	struct neuron_neff_side from[MAX_FROM], to;
	uint8_t dtypes[MAX_FROM], elems[MAX_FROM][8], *list[MAX_FROM];
	uint8_t dst = (uint8_t)(1 + rnd(15)), arg_type = 0;
	/* a part of y for each, so that all of them can be checked */
	uint64_t n = 1 + rnd(400), shape[4], base = (uint64_t)index * (Y_BYTES / NR_DESC);
	uint32_t arg = 0;

	size = op == 5 ? 1 + (uint32_t)rnd(16) : (uint32_t)ref_dtype_size(dst);
	for (int i = 0; i < 4; i++)
		shape[i] = 1 + rnd(i % 3 ? 3 : 30);
	if (op == 5) {
		n = shape[0] * shape[1] * shape[2] * shape[3];
		dst = NEURON_NEFF_DT_UINT8;
	}
	for (uint32_t k = 0; k < nr; k++) {
		dtypes[k] = op == 5 ? dst : (uint8_t)(1 + rnd(15));
		random_side(&from[k], dtypes[k], n,
			    op == 5 ? size : (uint32_t)ref_dtype_size(dtypes[k]), true);
		from[k].off += rnd(X_BYTES - SIDE_BYTES);
		list[k] = elems[k];
	}
	random_side(&to, dst, n, size, false);
	to.off += base;

	out("%s{\"op\": \"%s\", ", index ? ", " : "", names[op]);
	out_side("to", "y", &to);
	if (nr == 1) {
		out(", ");
		out_side("from", "x", &from[0]);
	} else {
		out(", \"from_arr\": [");
		for (uint32_t k = 0; k < nr; k++) {
			out("%s{", k ? ", " : "");
			out_side("from", "x", &from[k]);
			out("}");
		}
		out("]");
	}
	if (op == NEURON_ISA_DMA_FMA) {
		out(", \"scale\": -0.75");
		arg_type = NEURON_ISA_DMA_ARG_FP32;
		arg = 0xbf400000;
	} else if (op == NEURON_ISA_DMA_MIN) {
		out(", \"constant\": -3, \"constant_dtype\": \"int32\"");
		arg_type = NEURON_ISA_DMA_ARG_INT32;
		arg = (uint32_t)-3;
	} else if (op == 5) {
		out(", \"transpose_element_size\": %u, \"transpose_shape\": [%" PRIu64 ", %" PRIu64
		    ", %" PRIu64 ", %" PRIu64 "]", size, shape[0], shape[1], shape[2], shape[3]);
	}
	out("}");

	for (uint64_t e = 0; e < n && op < 5; e++) {
		for (uint32_t k = 0; k < nr; k++) {
			uint32_t s = (uint32_t)ref_dtype_size(dtypes[k]);

			memcpy(elems[k], x + element(&from[k], e, s), s);
		}
		ref_compute(want + element(&to, e, size), (uint8_t)op, dst, list, dtypes, nr,
			    arg_type, arg, 1);
	}
	for (uint64_t e = 0; e < n * size && op == 5; e++) {
		uint64_t k = e % size, i = e / size, c = i % shape[3], mid = i / shape[3];
		uint64_t b = mid % (shape[1] * shape[2]), a = mid / (shape[1] * shape[2]);
		uint64_t o = (c * shape[1] * shape[2] + b) * shape[0] + a;

		want[element(&to, o * size + k, 1)] = x[element(&from[0], e, 1)];
	}
}

static bool run(struct neuron_core *core, struct neuron_mem *xm, struct neuron_mem *ym)
{
	static struct neff neff;
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = { .size = sizeof(opts), .error = &error };
	struct neuron_run_result result = { .size = sizeof(result) };
	const struct neuron_io io[] = { { "x", xm, 0, X_BYTES }, { "y", ym, 0, Y_BYTES } };
	struct neuron_model *model;
	char def[512];
	bool right;

	for (uint32_t i = 0; i < X_BYTES; i++)
		x[i] = (uint8_t)rnd(rnd(3) ? 256 : 2);
	memset(y, 0x5a, Y_BYTES);
	memset(want, 0x5a, Y_BYTES);
	json_len = 0;
	out("{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [");
	for (uint32_t i = 0; i < NR_DESC; i++)
		add_desc(i);
	out("]}]}");
	snprintf(def, sizeof(def),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\","
		 " \"dma_queue\": {\"q\": {\"type\": \"data\"}}, \"var\": {"
		 " \"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": %u},"
		 " \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": %u}}}", X_BYTES, Y_BYTES);
	neff_start(&neff);
	neff_text(&neff, "sg00/def.json", def);
	neff_text(&neff, "sg00/SP.json", json);
	neff_end(&neff, "compute");
	if (neuron_model_load(core, neff.data, neff.size, &opts, &model)) {
		printf("# %s\n", error.text);
		return false;
	}
	right = !neuron_mem_write(xm, 0, x, X_BYTES) && !neuron_mem_write(ym, 0, y, Y_BYTES) &&
		!neuron_model_run(model, io, 2, 60000, &result) &&
		!neuron_mem_read(ym, 0, y, Y_BYTES);
	if (!right)
		printf("# %s %s\n", result.text,
		       neuron_model_obstacle(model) ? neuron_model_obstacle(model) : "");
	for (uint32_t i = 0; i < Y_BYTES && right; i++)
		if (y[i] != want[i]) {
			printf("# byte %u of operation %u is %02x, not %02x\n",
			       i % (Y_BYTES / NR_DESC), i / (Y_BYTES / NR_DESC), y[i], want[i]);
			right = false;
		}
	neuron_model_unload(model);
	return right;
}

int main(void)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .category = NEURON_MEM_TENSORS };
	struct neuron_mem *xm = NULL, *ym = NULL;
	struct neuron_device *device = NULL;
	struct neuron_core *core = NULL;

	x = malloc(X_BYTES);
	y = malloc(Y_BYTES);
	want = malloc(Y_BYTES);
	CHECK(!neuron_device_open(0, &device) && !neuron_core_open(device, 0, NULL, &core) &&
	      !neuron_mem_alloc(device, X_BYTES, &opts, &xm) &&
	      !neuron_mem_alloc(device, Y_BYTES, &opts, &ym), "device, core and memory");
	if (failed)
		return 1;
	for (int i = 0; i < 10; i++)
		CHECK(run(core, xm, ym), "NEFF %d: %u operations", i, NR_DESC);
	neuron_mem_free(xm);
	neuron_mem_free(ym);
	neuron_core_close(core);
	neuron_device_close(device);
	return failed ? 1 : 0;
}

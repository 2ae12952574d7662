// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * neuron-pack: a JSON description plus weight files in, a NEFF out.
 *
 * A small compiler for the instruction set of the software device
 * (uapi/neuron_isa.h): it places tensors in the state buffer, turns layers into
 * instructions of the five engines, and writes the DMA entries that bring
 * inputs and constants in and results out.  The format of the description is
 * documented in neuron-pack(1), the contract with the loader in
 * docs/loading.md.
 *
 * An engine waits for another one only where it needs what that made, or wants its place.
 * Constants that fit into the state buffer stay there; weights of products that do not are
 * brought in pieces, the next ones while the engine computes with one.
 */
#include <argp.h>
#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <neuron/buffers.h>
#include <neuron/neff.h>

#include "../../uapi/neuron_isa.h"
#include "../common/util.h"
#include "file.h"
#include "nodes.h"
#include "options.h"

TOOL_VERSION("neuron-pack");

#define FORMAT		"neuron-pack-1"
#define SBUF_ALIGN	64u
#define DEFAULT_SBUF	(24u << 20)	/* state buffer of trn1 and trn2 */

#define STREAM_PIECE	(2u << 20)	/* of weights, at most, unless a row has more */
#define STREAM_PLACES	2		/* for pieces */

/* Semaphores; docs/loading.md.  Those of engines and themselves are not used. */
#define SEM_ENGINES(from, to)	((uint32_t)((from) * NEURON_ISA_NR_ENGINES + (to)))
#define SEM_CONSTANTS	25
#define SEM_INPUTS	26
#define SEM_OUTPUTS	27
#define SEM_STREAM	28

enum kind { KIND_INPUT, KIND_OUTPUT, KIND_CONSTANT, KIND_TEMP };

static const char *const kinds[] = { "input", "output", "constant", NULL };
static const char *const engine_names[] = { "PE", "Activation", "Pool", "DVE", "SP" };

struct tensor {
	struct tensor *next;
	char *name;
	enum kind kind;
	enum neuron_neff_dtype dtype;
	uint32_t ndim;
	uint32_t shape[NEURON_NEFF_MAX_SHAPE];
	uint32_t rows, cols;		/* all but the last dimension, the last */
	struct tensor *storage;		/* itself, or what it is a view of */
	void *data;			/* constant: elements */
	bool defined;
	uint32_t first, last;		/* steps between which the storage is in use */
	uint32_t sbuf;			/* offset, once placed */
	bool placed;
	bool streamed;			/* constant: it has no place of its own */
};

enum step_kind {
	STEP_COMPUTE,
	STEP_PIECE,			/* SP starts the transfer of a piece of weights */
	STEP_BEGIN,			/* SP: inputs and constants are there */
	STEP_END,			/* SP: all others have done their work */
};

/* An instruction whose operands are still tensors. */
struct step {
	enum step_kind kind;
	enum neuron_isa_engine engine;
	struct neuron_isa_inst inst;	/* operand offsets relative to the tensors */
	struct tensor *operand[3];	/* src0/a, src1/b, dst/c; NULL: none */
	const struct tensor *weights;	/* of a piece, and a product that uses one: whose rows */
	uint32_t row, rows;
	/* When it is over: of each engine, how many of its steps are. */
	uint32_t over[NEURON_ISA_NR_ENGINES];
	uint32_t waits;			/* bit per engine: for that step */
	uint32_t posts;			/* bit per engine that waits for this one */
};

struct code {
	struct neuron_isa_inst *inst;
	size_t nr, room;
};

struct pack {
	const char *file;		/* of the description, for messages */
	char where[256];		/* in it: tensors.NAME, layers[N], members.NAME; or "" */
	const char *dir;		/* of the files it names */
	json_t *root;
	struct tensor *tensors, **tail;
	struct step *steps;
	size_t nr_steps, room_steps;
	struct code code[NEURON_ISA_NR_ENGINES];
	struct neuron_buffers_result places;	/* in the state buffer */
	struct tensor *stream[STREAM_PLACES];	/* places of pieces */
	bool streams;
	bool resident;			/* constants that have a place keep it */
	struct neuron_neff_header header;
	struct neuron_neff_writer *writer;
};

static struct {
	const char *input, *output, *name, *dir;
	uint64_t major, minor;
	uint32_t sbuf;
	bool plain, verbose, no_check;
} options = { .major = 1, .sbuf = DEFAULT_SBUF };

static struct pack pack;

/* A value of the second level of a text that is JSON: its line counts from 1. */
struct place {
	const char *section, *name;	/* name: NULL in an array */
	size_t section_len, index;
	int depth, line;
	size_t element;			/* of the section's array */
	bool inside;			/* the section */
};

/* The string at @at, which is a key if a colon follows; returns its end. */
static const char *pass_string(struct place *p, const char *at, bool *found)
{
	const char *begin = at + 1, *end = begin, *next;
	size_t len;

	while (*end && *end != '"')
		end += *end == '\\' && end[1] ? 2 : 1;
	if (!*end)
		return end;
	len = (size_t)(end - begin);
	next = end + 1 + strspn(end + 1, " \t\r\n");
	if (*next == ':' && p->depth == 1)
		p->inside = len == p->section_len && !strncmp(begin, p->section, len);
	else if (*next == ':' && p->depth == 2 && p->inside && p->name)
		*found = len == strlen(p->name) && !strncmp(begin, p->name, len);
	return end + 1;
}

/* The line at which tensors.NAME, layers[N] or members.NAME begins; 0: not found. */
static int line_of(const char *text, const char *where)
{
	struct place p = { .section = where, .section_len = strcspn(where, ".["), .line = 1 };
	bool array = where[p.section_len] == '[', found = false;

	if (array)
		p.index = strtoul(where + p.section_len + 1, NULL, 10);
	else if (where[p.section_len])
		p.name = where + p.section_len + 1;
	else
		return 0;
	while (*text && !found) {
		if (array && p.inside && p.depth == 2 && p.element == p.index &&
		    !strchr(" \t\r\n,", *text))
			break;
		if (*text == '"') {
			text = pass_string(&p, text, &found);
			continue;
		}
		p.line += *text == '\n';
		p.depth += (*text == '{' || *text == '[') - (*text == '}' || *text == ']');
		p.element += *text == ',' && p.inside && p.depth == 2;
		text++;
	}
	return *text ? p.line : 0;
}

/* Of what is being read, "" or with a colon. */
static const char *place_text(void)
{
	static char place[32];
	char *text;
	size_t size;
	int line;

	if (!pack.file || !pack.where[0])
		return "";
	text = read_whole(pack.file, &size, EXIT_FAILURE);
	text[size ? size - 1 : 0] = 0;	/* what ends a description is not needed */
	line = line_of(text, pack.where);
	free(text);
	snprintf(place, sizeof(place), ":%d", line);
	return line ? place : "";
}

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: %s%s: ", program_invocation_short_name,
		pack.file ? pack.file : "error", place_text());
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(EXIT_FAILURE);
}

static void *xalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		error(EXIT_FAILURE, ENOMEM, "allocation");
	return p;
}

static char *xstrdup(const char *s)
{
	return strcpy(xalloc(strlen(s) + 1, 1), s);
}

/* Room for one more. */
#define GROW(list, nr, room) \
	do { \
		if (array_grow((void **)&(list), (nr), &(room), sizeof(*(list)))) \
			error(EXIT_FAILURE, ENOMEM, "allocation"); \
	} while (0)

static void *read_file(const char *name, size_t *size)
{
	char *path, *data;

	if (asprintf(&path, "%s%s%s", *name == '/' ? "" : pack.dir, *name == '/' ? "" : "/",
		     name) < 0)
		error(EXIT_FAILURE, ENOMEM, "allocation");
	data = read_whole(path, size, EXIT_FAILURE);
	free(path);
	return data;
}

/* ---- description: typed access ---- */

static json_t *member(const json_t *obj, const char *where, const char *key, json_type type,
		      bool required)
{
	json_t *v = json_object_get(obj, key);

	if (!v && required)
		die("%s: %s is missing", where, key);
	if (v && json_typeof(v) != type)
		die("%s: %s has the wrong type", where, key);
	return v;
}

static const char *text(const json_t *obj, const char *where, const char *key, bool required)
{
	json_t *v = member(obj, where, key, JSON_STRING, required);

	return v ? json_string_value(v) : NULL;
}

static int find_word(const char *word, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(word, words[i]))
			return i;
	return -1;
}

/* What is not known could be a known key in wrong letters, without which it is another model. */
static void check_keys(const json_t *obj, const char *where, const char *const *keys)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)obj, key, v)
		if (find_word(key, keys) < 0)
			die("%s: unknown key %s", where, key);
}

#define CHECK_KEYS(obj, where, ...) \
	check_keys(obj, where, (const char *const []){ __VA_ARGS__, NULL })

static bool flag(const json_t *obj, const char *where, const char *key)
{
	json_t *v = json_object_get(obj, key);

	if (v && !json_is_boolean(v))
		die("%s: %s is not true or false", where, key);
	return json_is_true(v);
}

/* What the device works on, as .npy says it; bfloat16 is the void that numpy extensions use. */
static const char *const npy_types[] = {
	[NEURON_NEFF_DT_INT8] = "|i1", [NEURON_NEFF_DT_UINT8] = "|u1",
	[NEURON_NEFF_DT_INT16] = "<i2", [NEURON_NEFF_DT_UINT16] = "<u2",
	[NEURON_NEFF_DT_BFLOAT16] = "<V2", [NEURON_NEFF_DT_FLOAT16] = "<f2",
	[NEURON_NEFF_DT_INT32] = "<i4", [NEURON_NEFF_DT_UINT32] = "<u4",
	[NEURON_NEFF_DT_FLOAT32] = "<f4",
};

static enum neuron_neff_dtype dtype_of(const json_t *obj, const char *where,
				       enum neuron_neff_dtype def)
{
	const char *s = text(obj, where, "dtype", false);
	enum neuron_neff_dtype d = s ? neuron_neff_dtype_parse(s) : def;

	if ((s || d != NEURON_NEFF_DT_UNKNOWN) &&
	    ((size_t)d >= ARRAY_SIZE(npy_types) || !npy_types[d]))
		die("%s: the device cannot work on elements of type %s", where,
		    s ? s : neuron_neff_dtype_name(d));
	return d;
}

static uint32_t count_of(const json_t *v, const char *where, const char *what)
{
	if (!json_is_integer(v) || json_integer_value(v) < 1 ||
	    json_integer_value(v) > INT32_MAX)
		die("%s: %s is not a positive number", where, what);
	return (uint32_t)json_integer_value(v);
}

/* ---- tensors ---- */

static uint64_t tensor_bytes(const struct tensor *t)
{
	return (uint64_t)t->rows * t->cols * neuron_neff_dtype_size(t->dtype);
}

static uint32_t row_bytes(const struct tensor *t)
{
	return t->cols * neuron_neff_dtype_size(t->dtype);
}

static struct tensor *find_tensor(const char *name)
{
	for (struct tensor *t = pack.tensors; t; t = t->next)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

static void set_shape(struct tensor *t, const char *where, uint32_t ndim,
		      const uint32_t *shape)
{
	uint64_t rows = 1;

	t->ndim = ndim;
	memcpy(t->shape, shape, ndim * sizeof(*shape));
	for (uint32_t i = 0; i + 1 < ndim; i++) {
		rows *= shape[i];
		if (rows > UINT32_MAX)
			die("%s: too large", where);
	}
	t->rows = (uint32_t)rows;
	t->cols = shape[ndim - 1];
	/* rows and cols have 32 bits, an element at most 4 bytes: no overflow. */
	if (rows * t->cols > UINT32_MAX / 4)
		die("%s: too large", where);
}

static void read_shape(struct tensor *t, const char *where, const json_t *list)
{
	uint32_t shape[NEURON_NEFF_MAX_SHAPE], n = 0;
	const json_t *v;
	size_t i;

	if (!json_array_size(list) || json_array_size(list) > NEURON_NEFF_MAX_SHAPE)
		die("%s: shape has not 1 to %u dimensions", where, NEURON_NEFF_MAX_SHAPE);
	json_array_foreach(list, i, v)
		shape[n++] = count_of(v, where, "a dimension");
	set_shape(t, where, n, shape);
}

static struct tensor *new_tensor(const char *name)
{
	struct tensor *t = xalloc(1, sizeof(*t));

	if (find_tensor(name))
		die("tensor %s is defined twice", name);
	t->name = xstrdup(name);
	t->kind = KIND_TEMP;
	t->storage = t;
	*pack.tail = t;
	pack.tail = &t->next;
	return t;
}

/* An intermediate result that the description does not name. */
static struct tensor *new_temp(enum neuron_neff_dtype dtype, uint32_t rows, uint32_t cols)
{
	static unsigned int serial;
	uint32_t shape[2] = { rows, cols };
	struct tensor *t;
	char name[32];

	snprintf(name, sizeof(name), "%%%u", serial++);
	t = new_tensor(name);
	t->dtype = dtype;
	set_shape(t, name, 2, shape);
	return t;
}

static uint16_t to_bf16(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	if ((u & 0x7fffffff) > 0x7f800000)
		return 0x7fc0;
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* From double: rounded to float first, it could be rounded twice. */
static uint16_t to_fp16(double d)
{
	uint64_t u, mantissa;
	int exponent;
	uint32_t shift, bits;

	memcpy(&u, &d, 8);
	exponent = (int)(u >> 52 & 0x7ff) - 1023;
	mantissa = (u & ((1ull << 52) - 1)) | 1ull << 52;
	if (exponent > 15) {
		bits = 0x7c00;
	} else if (exponent < -25) {
		bits = 0;
	} else {
		/* Below 2^-14 an exponent of 0, and fewer bits; what is carried is added to it. */
		shift = 42 + (uint32_t)MAX(-14 - exponent, 0);
		mantissa += (1ull << (shift - 1)) - 1 + (mantissa >> shift & 1);
		bits = (uint32_t)(mantissa >> shift) + ((uint32_t)MAX(exponent + 14, 0) << 10);
	}
	return (uint16_t)(bits | u >> 63 << 15);
}

static void read_constant(struct tensor *t, const char *where, const json_t *v)
{
	const char *file = text(v, where, "file", true);
	struct neuron_neff_error e = { .size = sizeof(e) };
	enum neuron_neff_dtype want;
	struct neuron_neff_npy npy;
	size_t size, n;
	uint16_t *out;
	void *data = read_file(file, &size);

	if (neuron_neff_npy(file, data, size, &e, &npy))
		die("%s", e.text);
	if (!npy.ndim)
		die("%s: %s has an unusable shape or type", where, file);
	if (!npy.size)
		die("%s: %s has no elements", where, file);
	set_shape(t, where, npy.ndim, npy.shape);
	want = dtype_of(v, where, npy.dtype);
	t->dtype = want;
	n = npy.size;
	if (want == npy.dtype) {
		t->data = xalloc(1, n);
		memcpy(t->data, npy.data, n);
	} else if (npy.dtype == NEURON_NEFF_DT_FLOAT32 && want == NEURON_NEFF_DT_BFLOAT16) {
		n /= 4;
		t->data = out = xalloc(n, 2);
		for (size_t i = 0; i < n; i++) {
			float f;

			memcpy(&f, (const char *)npy.data + i * 4, 4);
			out[i] = to_bf16(f);
		}
	} else {
		die("%s: cannot convert %s from %s to %s", where, file,
		    neuron_neff_dtype_name(npy.dtype), neuron_neff_dtype_name(want));
	}
	free(data);
}

static void read_tensors(void)
{
	json_t *tensors = member(pack.root, "description", "tensors", JSON_OBJECT, true);
	const char *name;
	json_t *v;

	json_object_foreach(tensors, name, v) {
		struct tensor *t;
		char where[128];
		int kind;

		snprintf(where, sizeof(where), "tensors.%s", name);
		snprintf(pack.where, sizeof(pack.where), "%s", where);
		if (!json_is_object(v))
			die("%s: not an object", where);
		if (!*name || *name == '%' || strchr(name, '/') || strlen(name) > 100 ||
		    !strcmp(name, "sbuf"))
			die("%s: not a name for a tensor", where);
		t = new_tensor(name);
		kind = find_word(text(v, where, "kind", true), kinds);
		if (kind < 0)
			die("%s: kind is not input, output or constant", where);
		t->kind = (enum kind)kind;
		t->defined = t->kind != KIND_OUTPUT;
		if (t->kind == KIND_CONSTANT) {
			CHECK_KEYS(v, where, "kind", "file", "dtype");
			read_constant(t, where, v);
			continue;
		}
		CHECK_KEYS(v, where, "kind", "shape", "dtype");
		t->dtype = dtype_of(v, where, NEURON_NEFF_DT_FLOAT32);
		read_shape(t, where, member(v, where, "shape", JSON_ARRAY, true));
	}
	pack.where[0] = 0;
}

/* ---- layers ---- */

static struct tensor *source(const char *where, const char *name)
{
	struct tensor *t = find_tensor(name);

	if (!t || !t->defined)
		die("%s: tensor %s is not defined before this layer", where, name);
	return t;
}

/*
 * The tensor "out" names: an output that is declared, or a new temporary.  An
 * output keeps its declared shape, whose elements must be as many.
 */
static struct tensor *result(const json_t *layer, const char *where,
			     enum neuron_neff_dtype def, uint32_t rows, uint32_t cols)
{
	const char *name = text(layer, where, "out", true);
	struct tensor *t = find_tensor(name);
	enum neuron_neff_dtype dtype = dtype_of(layer, where, NEURON_NEFF_DT_UNKNOWN);
	uint32_t shape[2] = { rows, cols };

	if (!t) {
		t = new_tensor(name);
		t->dtype = dtype ? dtype : def;
		set_shape(t, where, 2, shape);
	} else if (t->kind != KIND_OUTPUT || t->defined) {
		die("%s: tensor %s has a value already", where, name);
	} else if ((uint64_t)t->rows * t->cols != (uint64_t)rows * cols) {
		die("%s: the result has %u x %u elements, %s is declared with %u x %u", where,
		    rows, cols, name, t->rows, t->cols);
	} else if (dtype && dtype != t->dtype) {
		die("%s: dtype differs from that of %s", where, name);
	} else {
		/* A view of other dimensions changes nothing in memory. */
		t->rows = rows;
		t->cols = cols;
	}
	t->defined = true;
	return t;
}

static struct step *add_step(enum neuron_isa_engine engine, uint8_t opcode, int op,
			     struct tensor *src, struct tensor *second, struct tensor *dst)
{
	struct step *s;

	GROW(pack.steps, pack.nr_steps, pack.room_steps);
	s = &pack.steps[pack.nr_steps++];
	memset(s, 0, sizeof(*s));
	s->engine = engine;
	s->inst.opcode = opcode;
	s->inst.magic = NEURON_ISA_MAGIC;
	s->inst.op = (uint8_t)op;
	s->inst.src_dtype = (uint8_t)src->dtype;
	s->inst.dst_dtype = (uint8_t)dst->dtype;
	s->operand[0] = src;
	s->operand[1] = second;
	s->operand[2] = dst;
	return s;
}

/* A step on whole tensors: src0 -> dst. */
static struct step *map_step(enum neuron_isa_engine engine, uint8_t opcode, int op,
			     struct tensor *src, struct tensor *dst)
{
	struct step *s = add_step(engine, opcode, op, src, NULL, dst);

	s->inst.u.tensor.src0_stride = htole32(row_bytes(src));
	s->inst.u.tensor.dst_stride = htole32(row_bytes(dst));
	s->inst.u.tensor.rows = htole32(src->rows);
	s->inst.u.tensor.cols = htole32(src->cols);
	return s;
}

/* One step makes the whole layer.  @cols: of the result; 0: as many as the input has. */
static void map_layer(const json_t *l, const char *where, enum neuron_isa_engine engine,
		      uint8_t opcode, int op, uint32_t cols)
{
	struct tensor *in = source(where, text(l, where, "in", true));

	if (opcode == NEURON_ISA_OP_REDUCE)
		CHECK_KEYS(l, where, "op", "in", "out", "dtype", "reduce");
	else
		CHECK_KEYS(l, where, "op", "in", "out", "dtype");
	map_step(engine, opcode, op, in,
		 result(l, where, in->dtype, in->rows, cols ? cols : in->cols));
}

static const char *const activations[] = {
	[NEURON_ISA_ACT_IDENTITY] = "identity", [NEURON_ISA_ACT_RELU] = "relu",
	[NEURON_ISA_ACT_SIGMOID] = "sigmoid", [NEURON_ISA_ACT_TANH] = "tanh",
	[NEURON_ISA_ACT_EXP] = "exp", [NEURON_ISA_ACT_RECIPROCAL] = "reciprocal",
	[NEURON_ISA_ACT_RSQRT] = "rsqrt", NULL,
};

static const char *const alus[] = {
	[NEURON_ISA_ALU_ADD] = "add", [NEURON_ISA_ALU_SUB] = "sub",
	[NEURON_ISA_ALU_MUL] = "mul", [NEURON_ISA_ALU_MAX] = "max",
	[NEURON_ISA_ALU_MIN] = "min", NULL,
};

static void same_type(const char *where, const struct tensor *a, const struct tensor *b)
{
	if (b->dtype != a->dtype)
		die("%s: %s is %s, %s is %s", where, a->name,
		    neuron_neff_dtype_name(a->dtype), b->name,
		    neuron_neff_dtype_name(b->dtype));
}

/* Second operand of an elementwise step: matrix, one row for all, or one column. */
static void second_operand(struct step *s, const char *where, const struct tensor *a,
			   struct tensor *b)
{
	same_type(where, a, b);
	s->operand[1] = b;
	if (b->rows == a->rows && b->cols == a->cols) {
		s->inst.u.tensor.src1_stride = htole32(row_bytes(b));
	} else if (b->rows == 1 && b->cols == a->cols) {
		s->inst.u.tensor.src1_stride = 0;
	} else if (b->rows == a->rows && b->cols == 1) {
		s->inst.flags |= NEURON_ISA_F_SRC1_COLUMN;
		s->inst.u.tensor.src1_stride = htole32(row_bytes(b));
	} else {
		die("%s: %s (%u x %u) does not fit %s (%u x %u)", where, b->name, b->rows,
		    b->cols, a->name, a->rows, a->cols);
	}
}

/* Bits of @value as one element: exactly, or the nearest floating point number. */
static uint32_t immediate(const char *where, enum neuron_neff_dtype dtype, double value)
{
	bool is_signed = dtype == NEURON_NEFF_DT_INT8 || dtype == NEURON_NEFF_DT_INT16 ||
			 dtype == NEURON_NEFF_DT_INT32;
	uint32_t bits, size = 8 * neuron_neff_dtype_size(dtype);
	double end = (double)(1ull << (size - is_signed));
	float f = (float)value;
	bool fits;

	if (dtype == NEURON_NEFF_DT_FLOAT16) {
		bits = to_fp16(value);
		fits = (bits & 0x7fff) != 0x7c00;
	} else if (dtype == NEURON_NEFF_DT_BFLOAT16) {
		bits = to_bf16(f);
		fits = (bits & 0x7fff) != 0x7f80;
	} else if (dtype == NEURON_NEFF_DT_FLOAT32) {
		memcpy(&bits, &f, 4);
		fits = (bits & 0x7fffffff) != 0x7f800000;
	} else {
		fits = value >= (is_signed ? -end : 0) && value < end &&
		       value == (double)(int64_t)value;
		bits = fits ? (uint32_t)(int64_t)value & (UINT32_MAX >> (32 - size)) : 0;
	}
	if (!fits)
		die("%s: %g is not a value of type %s", where, value,
		    neuron_neff_dtype_name(dtype));
	return bits;
}

static struct step *immediate_step(const char *where, int op, struct tensor *in,
				   struct tensor *out, double value)
{
	struct step *s = map_step(NEURON_ISA_ENGINE_DVE, NEURON_ISA_OP_TENSOR, op, in, out);

	s->inst.flags |= NEURON_ISA_F_IMMEDIATE;
	s->inst.u.tensor.imm = htole32(immediate(where, in->dtype, value));
	return s;
}

static void elementwise_layer(const json_t *l, const char *where, int op)
{
	json_t *in = json_object_get(l, "in"), *value = json_object_get(l, "value");
	struct tensor *a, *out;

	CHECK_KEYS(l, where, "op", "in", "out", "dtype", "value");
	if (value) {
		if (!json_is_number(value) || !json_is_string(in))
			die("%s: value needs a number and one tensor in \"in\"", where);
		a = source(where, json_string_value(in));
		out = result(l, where, a->dtype, a->rows, a->cols);
		immediate_step(where, op, a, out, json_number_value(value));
		return;
	}
	if (!json_is_array(in) || json_array_size(in) != 2 ||
	    !json_is_string(json_array_get(in, 0)) || !json_is_string(json_array_get(in, 1)))
		die("%s: \"in\" is not a list of two tensors", where);
	a = source(where, json_string_value(json_array_get(in, 0)));
	struct tensor *b = source(where, json_string_value(json_array_get(in, 1)));

	out = result(l, where, a->dtype, a->rows, a->cols);
	second_operand(map_step(NEURON_ISA_ENGINE_DVE, NEURON_ISA_OP_TENSOR, op, a, out), where, a,
		       b);
}

static bool is_float(enum neuron_neff_dtype dtype)
{
	return dtype == NEURON_NEFF_DT_FLOAT32 || dtype == NEURON_NEFF_DT_BFLOAT16 ||
	       dtype == NEURON_NEFF_DT_FLOAT16;
}

static void dense_layer(const json_t *l, const char *where)
{
	struct tensor *a = source(where, text(l, where, "in", true));
	struct tensor *w = source(where, text(l, where, "weights", true));
	const char *bias = text(l, where, "bias", false);
	const char *act = text(l, where, "activation", false);
	bool transposed = flag(l, where, "transposed"), narrow;
	uint32_t k = transposed ? w->cols : w->rows, n = transposed ? w->rows : w->cols;
	enum neuron_neff_dtype wide = a->dtype == NEURON_NEFF_DT_INT8 ?
				      NEURON_NEFF_DT_INT32 : NEURON_NEFF_DT_FLOAT32;
	int f = act ? find_word(act, activations) : -1;
	struct tensor *out, *c;
	struct step *s;

	CHECK_KEYS(l, where, "op", "in", "out", "dtype", "weights", "bias", "activation",
		   "transposed");
	same_type(where, a, w);
	if (a->dtype != NEURON_NEFF_DT_INT8 && !is_float(a->dtype))
		die("%s: no matrix product of %s", where, neuron_neff_dtype_name(a->dtype));
	if (k != a->cols)
		die("%s: %s has %u columns, the weights take %u", where, a->name, a->cols, k);
	if (act && f < 0)
		die("%s: unknown activation %s", where, act);

	out = result(l, where, wide, a->rows, n);
	/* Sums stay wide until the last operation of the layer. */
	narrow = !bias && !act && out->dtype != wide;
	c = bias || act || narrow ? new_temp(wide, a->rows, n) : out;
	if (narrow && out->dtype != a->dtype)
		die("%s: a matrix product of %s cannot be stored as %s", where,
		    neuron_neff_dtype_name(a->dtype), neuron_neff_dtype_name(out->dtype));
	s = add_step(NEURON_ISA_ENGINE_PE, NEURON_ISA_OP_MATMUL, 0, a, w, c);
	s->inst.flags = transposed ? NEURON_ISA_F_B_TRANSPOSED : 0;
	s->inst.u.matmul.a_stride = htole32(row_bytes(a));
	s->inst.u.matmul.b_stride = htole32(row_bytes(w));
	s->inst.u.matmul.c_stride = htole32(row_bytes(c));
	s->inst.u.matmul.m = htole32(a->rows);
	s->inst.u.matmul.n = htole32(n);
	s->inst.u.matmul.k = htole32(k);
	/* In place, unless this is the last operation. */
	if (bias)
		second_operand(map_step(NEURON_ISA_ENGINE_DVE, NEURON_ISA_OP_TENSOR,
					NEURON_ISA_ALU_ADD, c, act ? c : out),
			       where, c, source(where, bias));
	if (act)
		map_step(NEURON_ISA_ENGINE_ACT, NEURON_ISA_OP_ACTIVATE, f, c, out);
	if (narrow)
		map_step(NEURON_ISA_ENGINE_DVE, NEURON_ISA_OP_CAST, 0, c, out);
}

static int reduce_op(const json_t *l, const char *where)
{
	const char *word = text(l, where, "reduce", true);
	int op = find_word(word, alus);

	if (op < 0)
		die("%s: unknown reduction %s", where, word);
	return op;
}

static void pair_of(const json_t *l, const char *where, const char *key, uint32_t *h,
		    uint32_t *w)
{
	json_t *v = member(l, where, key, JSON_ARRAY, true);

	if (json_array_size(v) != 2)
		die("%s: %s is not a pair", where, key);
	*h = count_of(json_array_get(v, 0), where, key);
	*w = count_of(json_array_get(v, 1), where, key);
}

/*
 * Non-overlapping windows: along the rows first (a REDUCE whose "row" is one
 * window's line), then the lines of a window are combined.
 */
static void pool_layer(const json_t *l, const char *where)
{
	struct tensor *in = source(where, text(l, where, "in", true));
	int op = reduce_op(l, where);
	uint32_t h, w, wh, ww, rows, cols;
	struct tensor *out, *acc;
	struct step *s;

	CHECK_KEYS(l, where, "op", "in", "out", "dtype", "reduce", "image", "window");
	pair_of(l, where, "image", &h, &w);
	pair_of(l, where, "window", &wh, &ww);
	if ((uint64_t)h * w != in->cols || h % wh || w % ww)
		die("%s: rows of %u elements are no %u x %u images in %u x %u windows", where,
		    in->cols, h, w, wh, ww);
	rows = in->rows * h;
	cols = w / ww;
	out = result(l, where, in->dtype, in->rows, (h / wh) * cols);
	acc = wh == 1 ? out : new_temp(is_float(in->dtype) ? NEURON_NEFF_DT_FLOAT32 :
				       NEURON_NEFF_DT_INT32, rows, cols);

	s = add_step(NEURON_ISA_ENGINE_POOL, NEURON_ISA_OP_REDUCE, op, in, NULL, acc);
	s->inst.u.tensor.src0_stride = htole32(ww * neuron_neff_dtype_size(in->dtype));
	s->inst.u.tensor.dst_stride = htole32(neuron_neff_dtype_size(acc->dtype));
	s->inst.u.tensor.rows = htole32(rows * cols);
	s->inst.u.tensor.cols = htole32(ww);

	for (uint32_t line = 1; line < wh; line++) {
		/* The running result sits in the first line of each window. */
		struct tensor *dst = line == wh - 1 ? out : acc;
		uint32_t window = row_bytes(acc) * wh;

		s = add_step(NEURON_ISA_ENGINE_POOL, NEURON_ISA_OP_TENSOR, op, acc, acc, dst);
		s->inst.u.tensor.src1 = htole32(line * row_bytes(acc));
		s->inst.u.tensor.src0_stride = htole32(window);
		s->inst.u.tensor.src1_stride = htole32(window);
		s->inst.u.tensor.dst_stride =
			htole32(dst == acc ? window :
				cols * neuron_neff_dtype_size(dst->dtype));
		s->inst.u.tensor.rows = htole32(rows / wh);
		s->inst.u.tensor.cols = htole32(cols);
	}
}

/* Integers to small integers: to float (through relu if wanted), scale, round. */
static void requantise_layer(const json_t *l, const char *where)
{
	struct tensor *in = source(where, text(l, where, "in", true));
	json_t *scale = json_object_get(l, "scale");
	bool relu = flag(l, where, "relu");
	struct tensor *out, *f = in;

	CHECK_KEYS(l, where, "op", "in", "out", "dtype", "scale", "relu");
	if (!json_is_number(scale) && !json_is_string(scale))
		die("%s: scale is neither a number nor a tensor", where);
	out = result(l, where, NEURON_NEFF_DT_INT8, in->rows, in->cols);
	if (relu || in->dtype != NEURON_NEFF_DT_FLOAT32) {
		f = new_temp(NEURON_NEFF_DT_FLOAT32, in->rows, in->cols);
		map_step(NEURON_ISA_ENGINE_ACT, NEURON_ISA_OP_ACTIVATE,
			 relu ? NEURON_ISA_ACT_RELU : NEURON_ISA_ACT_IDENTITY, in, f);
	}
	if (json_is_number(scale))
		immediate_step(where, NEURON_ISA_ALU_MUL, f, out, json_number_value(scale));
	else
		second_operand(map_step(NEURON_ISA_ENGINE_DVE, NEURON_ISA_OP_TENSOR,
					NEURON_ISA_ALU_MUL, f, out), where, f,
			       source(where, json_string_value(scale)));
}

static void reshape_layer(const json_t *l, const char *where)
{
	struct tensor *in = source(where, text(l, where, "in", true));
	const char *name = text(l, where, "out", true);
	struct tensor *t;

	CHECK_KEYS(l, where, "op", "in", "out", "shape");
	if (find_tensor(name))
		die("%s: tensor %s exists already", where, name);
	t = new_tensor(name);
	t->dtype = in->dtype;
	t->storage = in->storage;
	t->defined = true;
	read_shape(t, where, member(l, where, "shape", JSON_ARRAY, true));
	if (tensor_bytes(t) != tensor_bytes(in))
		die("%s: the shapes have different numbers of elements", where);
}

static void read_layers(void)
{
	json_t *layers = member(pack.root, "description", "layers", JSON_ARRAY, true);
	size_t i;
	json_t *l;

	json_array_foreach(layers, i, l) {
		char where[64];
		const char *op;
		int word;

		snprintf(where, sizeof(where), "layers[%zu]", i);
		snprintf(pack.where, sizeof(pack.where), "%s", where);
		if (!json_is_object(l))
			die("%s: not an object", where);
		op = text(l, where, "op", true);
		if (!strcmp(op, "dense") || !strcmp(op, "matmul"))
			dense_layer(l, where);
		else if (!strcmp(op, "cast"))
			map_layer(l, where, NEURON_ISA_ENGINE_DVE, NEURON_ISA_OP_CAST, 0, 0);
		else if (!strcmp(op, "reduce"))
			map_layer(l, where, NEURON_ISA_ENGINE_POOL, NEURON_ISA_OP_REDUCE,
				  reduce_op(l, where), 1);
		else if (!strcmp(op, "pool"))
			pool_layer(l, where);
		else if (!strcmp(op, "requantise"))
			requantise_layer(l, where);
		else if (!strcmp(op, "reshape"))
			reshape_layer(l, where);
		else if ((word = find_word(op, activations)) >= 0)
			map_layer(l, where, NEURON_ISA_ENGINE_ACT, NEURON_ISA_OP_ACTIVATE, word, 0);
		else if ((word = find_word(op, alus)) >= 0)
			elementwise_layer(l, where, word);
		else
			die("%s: unknown op %s", where, op);
	}
	pack.where[0] = 0;
	for (struct tensor *t = pack.tensors; t; t = t->next)
		if (t->kind == KIND_OUTPUT && !t->defined)
			die("no layer makes the output %s", t->name);
}

/* ---- placement ---- */

/*
 * Steps between which each storage holds something that is needed.  Inputs are there from the
 * beginning, constants that stay for ever, and pieces go where nothing else is.
 */
static void find_lifetimes(void)
{
	uint32_t end = (uint32_t)pack.nr_steps;

	for (struct tensor *t = pack.tensors; t; t = t->next) {
		t->first = t->kind == KIND_TEMP || t->kind == KIND_OUTPUT ? UINT32_MAX : 0;
		t->last = t->kind == KIND_OUTPUT ? end : 0;
	}
	for (uint32_t i = 0; i < end; i++) {
		for (int o = 0; o < 3; o++) {
			struct tensor *t = pack.steps[i].operand[o];

			if (!t)
				continue;
			t = t->storage;
			t->first = MIN(t->first, i);
			t->last = MAX(t->last, i);
		}
	}
	for (struct tensor *t = pack.tensors; t; t = t->next)
		if (t->kind == KIND_CONSTANT && pack.resident)
			t->last = end;
	for (int i = 0; i < STREAM_PLACES && pack.streams; i++) {
		pack.stream[i]->first = 0;
		pack.stream[i]->last = end;
	}
}

static bool has_place(const struct tensor *t)
{
	return t->storage == t && t->first != UINT32_MAX && !t->streamed;
}

static void set_place(struct tensor *t, const struct neuron_buffer *b)
{
	if (b->offset + b->bytes > options.sbuf)
		die("tensor %s (%" PRIu64 " bytes) does not fit into the state buffer of %u bytes",
		    t->name, b->bytes, options.sbuf);
	t->sbuf = (uint32_t)b->offset;
	t->placed = true;
}

/* Try to place everything; with @last whatever does not fit is the end. */
static bool try_places(bool last)
{
	struct neuron_buffer *buffers;
	size_t nr = 0;
	bool fits;
	int err;

	find_lifetimes();
	for (struct tensor *t = pack.tensors; t; t = t->next) {
		t->placed = false;
		nr += has_place(t);
	}
	buffers = xalloc(nr, sizeof(*buffers));
	nr = 0;
	for (const struct tensor *t = pack.tensors; t; t = t->next)
		if (has_place(t))
			buffers[nr++] = (struct neuron_buffer){
				.bytes = tensor_bytes(t), .align = SBUF_ALIGN,
				.first = t->first, .last = t->last,
			};
	err = neuron_buffers_place(buffers, nr, &pack.places);
	if (err)
		die("tensors in the state buffer: %s", strerror(-err));
	fits = pack.places.bytes <= options.sbuf;
	nr = 0;
	for (struct tensor *t = pack.tensors; t && (fits || last); t = t->next)
		if (has_place(t))
			set_place(t, &buffers[nr++]);
	free(buffers);
	for (struct tensor *t = pack.tensors; t; t = t->next)
		t->sbuf = t->storage->sbuf;
	return fits;
}

/* Weights of products and of nothing else; sorted by size, the largest first. */
static struct tensor **streamable(size_t *nr)
{
	struct tensor **list;

	*nr = 0;
	for (struct tensor *t = pack.tensors; t; t = t->next)
		t->streamed = t->kind == KIND_CONSTANT;
	for (size_t i = 0; i < pack.nr_steps; i++)
		for (int o = 0; o < 3; o++) {
			struct tensor *t = pack.steps[i].operand[o];

			/* A view has other rows than what would be brought. */
			if (t && (t != t->storage || o != 1 ||
				  pack.steps[i].inst.opcode != NEURON_ISA_OP_MATMUL))
				t->storage->streamed = false;
		}
	for (struct tensor *t = pack.tensors; t; t = t->next)
		*nr += t->streamed;
	list = xalloc(*nr, sizeof(*list));
	*nr = 0;
	for (struct tensor *t = pack.tensors; t; t = t->next) {
		size_t i = *nr;

		if (!t->streamed)
			continue;
		t->streamed = false;
		for (++*nr; i && tensor_bytes(list[i - 1]) < tensor_bytes(t); i--)
			list[i] = list[i - 1];
		list[i] = t;
	}
	return list;
}

/* Rows of weights in a piece. */
static uint32_t piece_rows(const struct tensor *t)
{
	uint32_t limit = MIN(STREAM_PIECE, options.sbuf / 4);
	uint32_t rows = limit / row_bytes(t);

	return MIN(MAX(rows, 1u), t->rows);
}

/* Make the largest @nr of the list streamed, and places for their pieces. */
static bool try_streaming(struct tensor *const *list, size_t max, size_t nr, bool last)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < max; i++) {
		list[i]->streamed = i < nr;
		if (i < nr)
			bytes = MAX(bytes, (uint64_t)piece_rows(list[i]) * row_bytes(list[i]));
	}
	pack.streams = nr;
	for (int i = 0; i < STREAM_PLACES && nr; i++) {
		if (!pack.stream[i])
			pack.stream[i] = new_temp(NEURON_NEFF_DT_UINT8, 1, 1);
		pack.stream[i]->cols = (uint32_t)bytes;
	}
	return try_places(last);
}

/* As little as possible streams: all that fits stays. */
static void place_tensors(void)
{
	size_t nr, low = 0, high;
	struct tensor **list = streamable(&nr);

	pack.resident = true;
	if (try_streaming(list, nr, 0, false))
		goto out;
	/* What has no product needs its place only until it was used for the last time. */
	if (!try_streaming(list, nr, nr, false)) {
		pack.resident = false;
		if (!try_streaming(list, nr, 0, !nr) && !try_streaming(list, nr, nr, false))
			try_streaming(list, nr, nr, true);
		goto out;
	}
	/* With high it fits, with low it does not. */
	for (high = nr; high - low > 1;) {
		size_t middle = low + (high - low) / 2;

		if (try_streaming(list, nr, middle, false))
			high = middle;
		else
			low = middle;
	}
	try_streaming(list, nr, high, true);
out:
	free(list);
}

/* ---- schedule ---- */

static void append_step(const struct step *s)
{
	GROW(pack.steps, pack.nr_steps, pack.room_steps);
	pack.steps[pack.nr_steps++] = *s;
}

/* A piece of weights, and the product that uses it. */
struct piece {
	struct step bring, product;
};

/* With rows of the weights: a part of the sum or, if they are transposed, of the result. */
static struct piece make_piece(const struct step *s, uint32_t row, struct tensor *place)
{
	const struct tensor *weights = s->operand[1];
	struct piece p = { .product = *s };
	struct neuron_isa_inst *inst = &p.product.inst;
	uint32_t rows = MIN(piece_rows(weights), weights->rows - row);

	p.product.weights = weights;
	p.product.row = row;
	p.product.rows = rows;
	p.product.operand[1] = place;
	if (inst->flags & NEURON_ISA_F_B_TRANSPOSED) {
		inst->u.matmul.n = htole32(rows);
		inst->u.matmul.c = htole32(row * neuron_neff_dtype_size(s->operand[2]->dtype));
	} else {
		inst->u.matmul.k = htole32(rows);
		inst->u.matmul.a = htole32(row * neuron_neff_dtype_size(s->operand[0]->dtype));
		if (row)
			inst->flags |= NEURON_ISA_F_ACCUMULATE;
	}
	p.bring = (struct step){
		.kind = STEP_PIECE, .engine = NEURON_ISA_ENGINE_SP, .weights = weights,
		.row = row, .rows = rows, .operand = { NULL, NULL, place },
	};
	return p;
}

static bool uses_pieces(const struct step *s)
{
	return s->operand[1] && s->operand[1]->streamed;
}

static struct piece *list_pieces(size_t *nr)
{
	struct piece *list = NULL;
	size_t room = 0;

	*nr = 0;
	for (size_t i = 0; i < pack.nr_steps; i++) {
		const struct step *s = &pack.steps[i];

		for (uint32_t row = 0; uses_pieces(s) && row < s->operand[1]->rows;
		     row += piece_rows(s->operand[1])) {
			GROW(list, *nr, room);
			list[*nr] = make_piece(s, row, pack.stream[*nr % STREAM_PLACES]);
			++*nr;
		}
	}
	return list;
}

/*
 * The steps in an order in which one engine could do them all: so none waits for ever.  A piece
 * is asked for as soon as the one before it in its place was used.
 */
static void schedule(void)
{
	struct step *steps, mark = { .kind = STEP_BEGIN, .engine = NEURON_ISA_ENGINE_SP };
	size_t nr = pack.nr_steps, nr_pieces, used = 0;
	struct piece *pieces = list_pieces(&nr_pieces);

	steps = pack.steps;
	pack.steps = NULL;
	pack.nr_steps = 0;
	pack.room_steps = 0;
	for (size_t i = 0; i < MIN(nr_pieces, (size_t)STREAM_PLACES); i++)
		append_step(&pieces[i].bring);
	append_step(&mark);
	for (size_t i = 0; i < nr; i++) {
		if (!uses_pieces(&steps[i])) {
			append_step(&steps[i]);
			continue;
		}
		for (uint32_t row = 0; row < steps[i].operand[1]->rows;
		     row += pieces[used++].product.rows) {
			append_step(&pieces[used].product);
			if (used + STREAM_PLACES < nr_pieces)
				append_step(&pieces[used + STREAM_PLACES].bring);
		}
	}
	mark.kind = STEP_END;
	append_step(&mark);
	free(pieces);
	free(steps);
}

static bool overlap(const struct tensor *a, const struct tensor *b)
{
	return a && b && a->sbuf < b->sbuf + tensor_bytes(b) && b->sbuf < a->sbuf + tensor_bytes(a);
}

/* Must @later wait until @s is over?  For a piece to arrive it waits in another way. */
static bool has_to_wait(const struct step *later, const struct step *s)
{
	if (later->kind == STEP_END || s->kind == STEP_BEGIN)
		return true;
	if (s->kind == STEP_PIECE)
		return false;
	for (int o = 0; o < 3; o++)
		if (overlap(later->operand[o], s->operand[2]) ||
		    overlap(later->operand[2], s->operand[o]))
			return true;
	return false;
}

/*
 * What a step waits for: the last one of each other engine that it needs, unless its engine, or
 * one that it waits for, has waited for that.
 */
static void find_waits(void)
{
	const uint32_t nr_engines = NEURON_ISA_NR_ENGINES;
	uint32_t over[NEURON_ISA_NR_ENGINES][NEURON_ISA_NR_ENGINES] = { 0 };

	for (size_t i = 0; i < pack.nr_steps; i++) {
		struct step *s = &pack.steps[i];
		uint32_t *mine = over[s->engine];

		for (size_t j = i; j-- > 0;) {
			struct step *before = &pack.steps[j];

			if (before->over[before->engine] <= mine[before->engine] ||
			    !has_to_wait(s, before))
				continue;
			s->waits |= 1u << before->engine;
			before->posts |= 1u << s->engine;
			for (uint32_t e = 0; e < nr_engines; e++)
				mine[e] = MAX(mine[e], before->over[e]);
		}
		/* When it is over so is itself; its engine does one after the other. */
		mine[s->engine]++;
		memcpy(s->over, mine, sizeof(s->over));
	}
}

/* ---- instructions ---- */

static void emit(enum neuron_isa_engine engine, const struct neuron_isa_inst *inst)
{
	struct code *c = &pack.code[engine];

	if (!c->nr && inst->opcode != NEURON_ISA_OP_PROLOGUE) {
		struct neuron_isa_inst p = {
			.opcode = NEURON_ISA_OP_PROLOGUE, .magic = NEURON_ISA_MAGIC,
			.u.prologue = {
				.signature = htole32(NEURON_ISA_SIGNATURE),
				.version = htole16(NEURON_ISA_VERSION),
				.engine = htole16((uint16_t)engine),
			},
		};

		emit(engine, &p);
	}
	GROW(c->inst, c->nr, c->room);
	c->inst[c->nr++] = *inst;
}

static void emit_sem(enum neuron_isa_engine engine, uint8_t opcode, uint8_t op, uint8_t flags,
		     uint32_t index, uint32_t value)
{
	struct neuron_isa_inst inst = {
		.opcode = opcode, .magic = NEURON_ISA_MAGIC, .op = op, .flags = flags,
		.u.sem = { .index = htole32(index), .value = htole32(value) },
	};

	emit(engine, &inst);
}

static void emit_wait(enum neuron_isa_engine engine, uint32_t index, uint32_t value)
{
	emit_sem(engine, NEURON_ISA_OP_SEM_WAIT, NEURON_ISA_WAIT_GE, NEURON_ISA_F_CONSUME,
		 index, value);
}

static void emit_trigger(enum neuron_isa_engine engine, uint32_t id)
{
	struct neuron_isa_inst inst = {
		.opcode = NEURON_ISA_OP_DMA_TRIGGER, .magic = NEURON_ISA_MAGIC,
		.u.dma = { .engine = htole16(0xffff), .queue = htole16(0xffff),
			   .tx_count = htole32(id) },
	};

	emit(engine, &inst);
}

static void add_offset(__le32 *field, const struct tensor *t)
{
	if (t)
		*field = htole32(le32toh(*field) + t->sbuf);
}

static void emit_compute(const struct step *s)
{
	struct neuron_isa_inst inst = s->inst;

	if (inst.opcode == NEURON_ISA_OP_MATMUL) {
		add_offset(&inst.u.matmul.a, s->operand[0]);
		add_offset(&inst.u.matmul.b, s->operand[1]);
		add_offset(&inst.u.matmul.c, s->operand[2]);
	} else {
		add_offset(&inst.u.tensor.src0, s->operand[0]);
		add_offset(&inst.u.tensor.src1, s->operand[1]);
		add_offset(&inst.u.tensor.dst, s->operand[2]);
	}
	if (s->weights)
		emit_wait(s->engine, SEM_STREAM, 1);
	emit(s->engine, &inst);
}

/* ---- members of the archive ---- */

static void add_member(const char *name, const void *data, size_t size)
{
	int err = neuron_neff_writer_add(pack.writer, name, data, size);

	if (err)
		die("member %s: %s", name, strerror(-err));
}

static void add_json(const char *name, json_t *v)
{
	char *s = json_dumps(v, JSON_INDENT(1) | JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY);

	if (!s)
		error(EXIT_FAILURE, ENOMEM, "allocation");
	add_member(name, s, strlen(s));
	free(s);
	json_decref(v);
}

/* What there was no memory for is refused when it is put into something. */
static void append(json_t *list, json_t *v)
{
	if (json_array_append_new(list, v))
		error(EXIT_FAILURE, ENOMEM, "allocation");
}

static void put(json_t *obj, const char *key, json_t *v)
{
	if (json_object_set_new(obj, key, v))
		error(EXIT_FAILURE, ENOMEM, "allocation");
}

static json_t *shape_json(const struct tensor *t)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < t->ndim; i++)
		append(list, json_integer(t->shape[i]));
	return list;
}

/* A constant as .npy. */
static void add_npy(const struct tensor *t)
{
	char dict[384], dims[256] = "", name[160], *data;
	size_t n = 0, size;
	FILE *f = open_memstream(&data, &size);
	int length;

	if (!f)
		error(EXIT_FAILURE, ENOMEM, "allocation");
	for (uint32_t i = 0; i < t->ndim; i++)
		n += (size_t)snprintf(dims + n, sizeof(dims) - n, "%u,%s", t->shape[i],
				      i + 1 < t->ndim ? " " : "");
	length = snprintf(dict, sizeof(dict),
			  "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
			  npy_types[t->dtype], dims) + 1;
	/* Elements start at a multiple of 64; the header ends with a newline. */
	length = (int)round_up(10 + (uint64_t)length, 64) - 10;
	fprintf(f, "\x93NUMPY\x01%c%c%c%-*s\n", 0, length & 0xff, length >> 8, length - 1, dict);
	fwrite(t->data, 1, tensor_bytes(t), f);
	if (fclose(f) || !data)
		error(EXIT_FAILURE, ENOMEM, "allocation");
	snprintf(name, sizeof(name), "sg00/%s.npy", t->name);
	add_member(name, data, size);
	free(data);
}

static json_t *variables(void)
{
	static const char *const types[] = {
		[KIND_INPUT] = "input", [KIND_OUTPUT] = "output", [KIND_CONSTANT] = "file",
	};
	json_t *vars = json_object();
	json_int_t id = 0;

	put(vars, "sbuf", json_pack("{s:s, s:I, s:I}", "type", "state-buffer", "var_id", id++,
				    "size", (json_int_t)pack.places.bytes));
	for (const struct tensor *t = pack.tensors; t; t = t->next) {
		json_t *v;

		if (t->kind == KIND_TEMP)
			continue;
		v = json_pack("{s:s, s:I, s:I, s:i}", "type", types[t->kind], "var_id", id++,
			      "size", (json_int_t)tensor_bytes(t), "alignment", 64);
		put(vars, t->name, v);
		if (t->kind == KIND_CONSTANT) {
			put(v, "file_name", json_sprintf("%s.npy", t->name));
			add_npy(t);
		}
	}
	return vars;
}

static json_t *transfer(const char *from, uint64_t from_off, const char *to, uint64_t to_off,
			uint64_t bytes)
{
	json_int_t n = (json_int_t)bytes;

	return json_pack("{s:s, s:s, s:I, s:[i], s:[I], s:s, s:I, s:[i], s:[I]}",
			 "op", "copy",
			 "from", from, "from_off", (json_int_t)from_off, "from_steps", 1,
			 "from_sizes", n,
			 "to", to, "to_off", (json_int_t)to_off, "to_steps", 1, "to_sizes", n);
}

/* An entry, and what triggers it. */
static void add_entry(json_t *list, const char *queue, int semaphore, json_t *desc)
{
	json_int_t id = (json_int_t)json_array_size(list);

	append(list, json_pack("{s:I, s:s, s:i, s:[o]}", "id", id, "queue", queue, "semaphore",
			       semaphore, "desc", desc));
	emit_trigger(NEURON_ISA_ENGINE_SP, (uint32_t)id);
}

/* Transfers of one kind of tensor: an entry each; returns how many. */
static uint32_t add_dma(json_t *list, enum kind kind, const char *queue, int semaphore)
{
	uint32_t n = 0;

	for (const struct tensor *t = pack.tensors; t; t = t->next) {
		if (t->kind != kind || !t->placed)
			continue;
		add_entry(list, queue, semaphore, kind == KIND_OUTPUT ?
			  transfer("sbuf", t->sbuf, t->name, 0, tensor_bytes(t)) :
			  transfer(t->name, 0, "sbuf", t->sbuf, tensor_bytes(t)));
		n++;
	}
	return n;
}

static void add_piece(json_t *list, const struct step *s)
{
	uint64_t row = row_bytes(s->weights);

	add_entry(list, "qSPStream0", SEM_STREAM,
		  transfer(s->weights->name, s->row * row, "sbuf", s->operand[2]->sbuf,
			   s->rows * row));
}

static json_t *queue_json(const char *type, int semaphore)
{
	return json_pack("{s:s, s:i, s:s, s:i}", "type", type, "num_queues", 1, "owner", "sp",
			 "semaphore", semaphore);
}

/* Waits for @constants and @inputs that were asked for belong to the beginning. */
static void emit_step(const struct step *s, json_t *dma, uint32_t constants, uint32_t inputs)
{
	for (uint32_t e = 0; e < NEURON_ISA_NR_ENGINES; e++)
		if (s->waits & 1u << e)
			emit_wait(s->engine, SEM_ENGINES(e, s->engine), 1);
	if (s->kind == STEP_PIECE)
		add_piece(dma, s);
	else if (s->kind == STEP_COMPUTE)
		emit_compute(s);
	if (s->kind == STEP_BEGIN && constants)
		emit_wait(s->engine, SEM_CONSTANTS, constants);
	if (s->kind == STEP_BEGIN && inputs)
		emit_wait(s->engine, SEM_INPUTS, inputs);
	for (uint32_t e = 0; e < NEURON_ISA_NR_ENGINES; e++)
		if (s->posts & 1u << e)
			emit_sem(s->engine, NEURON_ISA_OP_SEM_POST, NEURON_ISA_POST_INC, 0,
				 SEM_ENGINES(s->engine, e), 1);
}

static json_t *compile(void)
{
	const enum neuron_isa_engine sp = NEURON_ISA_ENGINE_SP;
	const struct neuron_isa_inst notify = {
		.opcode = NEURON_ISA_OP_NOTIFY, .magic = NEURON_ISA_MAGIC,
		.u.notify.id = htole32(1),
	};
	json_t *dma = json_array();
	uint32_t constants, inputs, outputs;

	schedule();
	find_waits();
	constants = add_dma(dma, KIND_CONSTANT, "qSPConstants0", SEM_CONSTANTS);
	inputs = add_dma(dma, KIND_INPUT, "qSPIn0", SEM_INPUTS);
	for (size_t i = 0; i < pack.nr_steps; i++)
		emit_step(&pack.steps[i], dma, constants, inputs);
	outputs = add_dma(dma, KIND_OUTPUT, "qSPOut0", SEM_OUTPUTS);
	if (outputs)
		emit_wait(sp, SEM_OUTPUTS, outputs);
	emit(sp, &notify);
	return dma;
}

static json_t *queues(void)
{
	json_t *list = json_object(), *constants = queue_json("data", SEM_CONSTANTS);

	if (pack.resident)
		put(constants, "resident", json_true());
	put(list, "qSPConstants0", constants);
	put(list, "qSPIn0", queue_json("in", SEM_INPUTS));
	put(list, "qSPOut0", queue_json("out", SEM_OUTPUTS));
	if (pack.streams)
		put(list, "qSPStream0", queue_json("data", SEM_STREAM));
	return list;
}

static void add_engines(json_t *def, json_t *sp_dma)
{
	static const char *const keys[] = { "pe", "act", "pool", "dve", "sp" };

	for (int e = 0; e < NEURON_ISA_NR_ENGINES; e++) {
		const struct code *c = &pack.code[e];
		char key[16], path[48];

		if (!c->nr)
			continue;
		put(def, keys[e], json_sprintf("%s0.json", engine_names[e]));
		snprintf(path, sizeof(path), "sg00/%s0.json", engine_names[e]);
		add_json(path, json_pack("{s:o, s:[]}", "dma", e == NEURON_ISA_ENGINE_SP ? sp_dma :
					 json_array(), "instr"));

		snprintf(key, sizeof(key), "%s_instr", keys[e]);
		put(def, key, json_sprintf("%s0.bin", engine_names[e]));
		snprintf(path, sizeof(path), "sg00/%s0.bin", engine_names[e]);
		add_member(path, c->inst, c->nr * sizeof(*c->inst));
	}
}

static void add_io(void)
{
	json_t *in = json_array(), *out = json_array();

	for (const struct tensor *t = pack.tensors; t; t = t->next) {
		if (t->kind != KIND_INPUT && t->kind != KIND_OUTPUT)
			continue;
		append(t->kind == KIND_INPUT ? in : out,
		       json_pack("{s:s, s:s, s:o}", "name", t->name, "dtype",
				 neuron_neff_dtype_name(t->dtype), "shape", shape_json(t)));
	}
	add_json("neff.json",
		 json_pack("{s:s, s:o, s:o}", "format", FORMAT, "inputs", in, "outputs", out));
}

static void pack_model(void)
{
	json_t *def, *dma;

	if (pack.header.lnc_size != 1)
		die("header.lnc_size is %u; layers make a program for 1 core",
		    pack.header.lnc_size);
	read_tensors();
	read_layers();
	place_tensors();
	dma = compile();
	def = json_pack("{s:s, s:o, s:o}", "name", "definition", "dma_queue", queues(), "var",
			variables());
	add_engines(def, dma);
	add_json("sg00/def.json", def);
	add_io();
	add_json("kelf-0.json", json_pack("{s:[{s:s, s:s}], s:s}", "graphs", "definition",
					  "sg00/def.json", "name", "sg00", "version", "0.5"));
}

/* ---- literal archives ---- */

static void add_hex(const char *name, const char *hex)
{
	size_t n = strlen(hex);
	uint8_t *data = xalloc(1, n / 2 + 1);

	if (n % 2 || hex[strspn(hex, "0123456789abcdefABCDEF")])
		die("members.%s: not a hexadecimal string", name);
	for (size_t i = 0; i < n; i += 2)
		sscanf(hex + i, "%2hhx", &data[i / 2]);
	add_member(name, data, n / 2);
	free(data);
}

static void pack_members(json_t *members)
{
	const char *name;
	json_t *v;

	json_object_foreach(members, name, v) {
		char where[256];
		json_t *j;
		const char *s;
		void *data;
		size_t n;

		snprintf(where, sizeof(where), "members.%s", name);
		snprintf(pack.where, sizeof(pack.where), "%s", where);
		if (!json_is_object(v) || json_object_size(v) != 1)
			die("%s: not an object with one of json, file, text, hex, zeros", where);
		if ((j = json_object_get(v, "json"))) {
			add_json(name, json_incref(j));
		} else if ((s = text(v, where, "file", false))) {
			data = read_file(s, &n);
			add_member(name, data, n);
			free(data);
		} else if ((s = text(v, where, "text", false))) {
			add_member(name, s, strlen(s));
		} else if ((s = text(v, where, "hex", false))) {
			add_hex(name, s);
		} else if ((j = json_object_get(v, "zeros"))) {
			n = count_of(j, where, "zeros");
			data = xalloc(1, n);
			add_member(name, data, n);
			free(data);
		} else {
			die("%s: not one of json, file, text, hex, zeros", where);
		}
	}
	pack.where[0] = 0;
}

/* ---- main ---- */

static uint64_t header_number(const json_t *h, const char *key, uint64_t def, uint64_t max)
{
	json_t *v = json_object_get(h, key);

	if (!v)
		return def;
	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    (uint64_t)json_integer_value(v) > max)
		die("header.%s is not a number in 0..%" PRIu64, key, max);
	return (uint64_t)json_integer_value(v);
}

/* One for the first node if there is no list. */
static void fill_cores(const json_t *list)
{
	uint8_t *cores = pack.header.tpb_per_node;
	size_t nr = json_array_size(list);

	cores[0] = 1;
	if (nr > sizeof(pack.header.tpb_per_node))
		die("header.tpb_per_node has %zu entries, more than %zu", nr,
		    sizeof(pack.header.tpb_per_node));
	for (size_t i = 0; i < nr; i++) {
		const json_t *v = json_array_get(list, i);

		if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > UINT8_MAX)
			die("header.tpb_per_node[%zu] is not a number in 0..255", i);
		cores[i] = (uint8_t)json_integer_value(v);
	}
}

static void fill_header(void)
{
	struct neuron_neff_header *h = &pack.header;
	json_t *obj = member(pack.root, "description", "header", JSON_OBJECT, false);
	const char *name = text(pack.root, "description", "name", false);

	CHECK_KEYS(obj, "header", "pkg_version", "version_major", "version_minor", "num_tpb",
		   "requested_tpb_count", "tpb_per_node", "feature_bits", "lnc_size");
	h->size = sizeof(*h);
	h->pkg_version = header_number(obj, "pkg_version", 2, 2);
	h->version_major = header_number(obj, "version_major", options.major, INT64_MAX);
	h->version_minor = header_number(obj, "version_minor", options.minor, INT64_MAX);
	h->num_tpb = (uint32_t)header_number(obj, "num_tpb", 1, UINT32_MAX);
	h->requested_tpb_count =
		(uint32_t)header_number(obj, "requested_tpb_count", 1, UINT32_MAX);
	fill_cores(member(obj, "header", "tpb_per_node", JSON_ARRAY, false));
	h->feature_bits = header_number(obj, "feature_bits", 0, INT64_MAX);
	h->lnc_size = (uint32_t)header_number(obj, "lnc_size", 1, UINT32_MAX);
	if (options.name)
		name = options.name;
	if (!name)
		die("name is missing");
	if (strlen(name) > 255)
		die("name has more than 255 bytes");
	strcpy(h->name, name);
	strcpy(h->build_version, "neuron-pack 1");
}

static void print_summary(size_t size)
{
	printf("%s: %zu bytes, %" PRIu64 " bytes of state buffer\n", options.output, size,
	       pack.places.bytes);
	if (pack.places.bound)
		printf("  %.1f %% more than the %" PRIu64 " that are in use at once (%s)\n",
		       100 * ((double)pack.places.bytes / (double)pack.places.bound - 1),
		       pack.places.bound, pack.places.heuristic);
	for (const struct tensor *t = pack.tensors; t; t = t->next) {
		printf("  %-12s %-9s %6u x %-6u ", t->name, neuron_neff_dtype_name(t->dtype),
		       t->rows, t->cols);
		if (t->streamed)
			printf("in pieces of %u rows\n", piece_rows(t));
		else
			printf("at 0x%06x%s\n", t->sbuf, pack.resident &&
			       t->kind == KIND_CONSTANT ? ", stays" : "");
	}
	for (int e = 0; e < NEURON_ISA_NR_ENGINES; e++)
		if (pack.code[e].nr)
			printf("  %-12s %zu instructions\n", engine_names[e], pack.code[e].nr);
}

static void check_result(const void *bytes, size_t size)
{
	struct neuron_neff_error e = { .size = sizeof(e) };
	struct programs p;

	if (programs_open(bytes, size, true, &e, &p))
		die("the result is not a valid NEFF: %s", e.text);
	programs_close(&p);
}

static const struct argp_option option_table[] = {
	{ "output", 'o', "FILE", 0, "Write the NEFF to FILE (required)", 0 },
	{ "name", 'n', "NAME", 0, "Name of the model; default: that of the description", 0 },
	{ "directory", 'C', "DIR", 0,
	  "Where files that the description names are; default: beside it", 0 },
	{ "neff-version", 'k', "MAJOR.MINOR", 0, "NEFF version, default 1.0", 0 },
	{ "sbuf", 's', "BYTES", 0, "State buffer to use at most, default 25165824", 0 },
	{ "plain", 'u', NULL, 0, "Do not compress the archive", 0 },
	{ "no-check", 'f', NULL, 0, "Write the file even if a reader would refuse it", 0 },
	{ "verbose", 'v', NULL, 0, "Print where tensors are and how long programs are", 0 },
	{ 0 }
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'o': options.output = arg; break;
	case 'n': options.name = arg; break;
	case 'C': options.dir = arg; break;
	case 'k': neff_version(arg, &options.major, &options.minor, state); break;
	case 's':
		options.sbuf = (uint32_t)number(arg, 1, NEURON_NEFF_SBUF_WINDOW, state);
		break;
	case 'u': options.plain = true; break;
	case 'f': options.no_check = true; break;
	case 'v': options.verbose = true; break;
	case ARGP_KEY_ARG:
		if (options.input)
			argp_usage(state);
		options.input = arg;
		break;
	case ARGP_KEY_END:
		if (!options.input || !options.output)
			argp_error(state, options.input ? "--output is missing" :
				   "the description is missing");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		option_table, parse_option, "DESCRIPTION.json",
		"Pack a model for the software Neuron device into a NEFF.", NULL, NULL, NULL
	};
	json_t *members;
	json_error_t e;
	void *bytes;
	size_t size;
	int err;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	pack.file = options.input;
	pack.tail = &pack.tensors;
	pack.places.size = sizeof(pack.places);
	pack.root = json_load_file(options.input, JSON_REJECT_DUPLICATES, &e);
	if (!pack.root && e.line > 0) {
		fprintf(stderr, "%s: %s:%d: %s\n", program_invocation_short_name, options.input,
			e.line, e.text);
		return EXIT_FAILURE;
	}
	if (!pack.root)
		error(EXIT_FAILURE, 0, "%s", e.text);
	if (!json_is_object(pack.root))
		die("not a JSON object");
	if (strcmp(text(pack.root, "description", "format", true), FORMAT))
		die("format is not " FORMAT);
	pack.dir = options.dir ? options.dir : dirname(xstrdup(options.input));
	pack.writer = neuron_neff_writer_new();
	if (!pack.writer)
		error(EXIT_FAILURE, ENOMEM, "allocation");

	members = member(pack.root, "description", "members", JSON_OBJECT, false);
	if (members)
		CHECK_KEYS(pack.root, "description", "format", "name", "header", "members");
	else
		CHECK_KEYS(pack.root, "description", "format", "name", "header", "tensors",
			   "layers");
	fill_header();
	if (members)
		pack_members(members);
	else
		pack_model();
	err = neuron_neff_writer_finish(pack.writer, &pack.header, !options.plain, &bytes, &size);
	if (err)
		die("cannot build the archive: %s", strerror(-err));
	if (!options.no_check)
		check_result(bytes, size);
	write_whole(options.output, bytes, size, 0);
	if (options.verbose)
		print_summary(size);
	end_output(EXIT_FAILURE);
	return EXIT_SUCCESS;
}

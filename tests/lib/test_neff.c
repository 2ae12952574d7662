// SPDX-License-Identifier: GPL-2.0-only
/*
 * NEFF reader and writer: what is good is read completely, everything else is
 * refused with the right class, a line that says what and where, and nothing
 * left behind (the leak checker of the address sanitizer watches).
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>
#include <cmocka.h>
#include <zlib.h>

#include <neuron/neff.h>
#include "inflations.h"
#include "neuron_isa.h"

/* ---- allocations that fail ---- */

static long fail_at = -1;	/* count down to the one that fails; -1: none does */
static bool did_fail;

static bool fail_now(void)
{
	if (fail_at < 0 || fail_at--)
		return false;
	did_fail = true;
	return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

/* The largest piece of memory that was asked for. */
static size_t largest;

void *__wrap_malloc(size_t n)
{
	if (n > largest)
		largest = n;
	return fail_now() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fail_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fail_now() ? NULL : __real_realloc(p, n);
}

/* ---- looks at members ---- */

struct neff_member;

static unsigned long name_looks, searches;

bool __real_neff_is_json(const struct neff_member *m);
bool __wrap_neff_is_json(const struct neff_member *m);
void *__real_memmem(const void *in, size_t size, const void *what, size_t len);
void *__wrap_memmem(const void *in, size_t size, const void *what, size_t len);

bool __wrap_neff_is_json(const struct neff_member *m)
{
	name_looks++;
	return __real_neff_is_json(m);
}

void *__wrap_memmem(const void *in, size_t size, const void *what, size_t len)
{
	searches++;
	return __real_memmem(in, size, what, len);
}

/* ---- a good NEFF ---- */

static const char kelf_json[] =
	"{\"graphs\": [{\"definition\": \"sg00/def.json\", \"name\": \"sg00\"}],"
	" \"version\": \"0.5\"}";

static const char def_json[] =
	"{\"name\": \"definition\", \"sp\": \"SP0.json\", \"sp_instr\": \"SP0.bin\","
	" \"act\": \"Activation0.json\", \"act_instr\": \"Activation0.bin\","
	" \"dve\": \"DVE0.json\","
	" \"dma_queue\": {"
	"  \"qIn\": {\"type\": \"in\", \"num_queues\": 2, \"owner\": \"sp\", \"semaphore\": 9},"
	"  \"qData\": {\"type\": \"data\", \"queue_instances\": [\"a\", \"b\"],"
	"   \"semaphore_set\": [1, 2], \"fabric_path\": \"alt\", \"pinned\": true}},"
	" \"var\": {"
	"  \"sbuf\": {\"type\": \"state-buffer\", \"var_id\": 0, \"size\": 4096},"
	"  \"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 256},"
	"  \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 256, \"alignment\": 64},"
	"  \"w\": {\"type\": \"file\", \"var_id\": 3, \"size\": 64, \"file_name\": \"w.npy\"},"
	"  \"r\": {\"type\": \"file\", \"var_id\": 8, \"size\": 64, \"file_name\": \"raw.bin\"},"
	"  \"t\": {\"type\": \"tmp-buf\", \"var_id\": 4, \"size\": 4096},"
	"  \"v\": {\"type\": \"virtual\", \"var_id\": 5, \"size\": 128,"
	"   \"backing_variable_off\": 512, \"ops\": []},"
	"  \"p\": {\"type\": \"pointer\", \"var_id\": 6, \"size\": 8, \"referenced_var_id\": 4},"
	"  \"g\": {\"type\": \"dge-table\", \"var_id\": 7, \"size\": 16, \"list\": [4, 5]}}}";

static const char sp_json[] =
	"{\"dma\": ["
	" {\"id\": 7, \"queue\": \"qIn\", \"semaphore\": 9, \"event\": 3,"
	"  \"desc\": [{\"op\": \"copy\", \"from\": \"x\", \"from_off\": 0, \"from_steps\": [1, 32],"
	"   \"from_sizes\": [16, 8], \"to\": \"sbuf\", \"to_off\": 3968, \"to_steps\": [1],"
	"   \"to_sizes\": [128]}]},"
	" {\"id\": 3, \"instance_name\": \"b\", \"section_start_desc\": true,"
	"  \"function_start\": \"f\", \"remote_semaphores\": [4, 5],"
	"  \"desc\": {\"op\": \"cast\", \"from\": \"w\", \"from_dtype\": \"float32\","
	"   \"from_steps\": [1], \"from_sizes\": [64], \"to\": \"t\", \"to_dtype\": \"bfloat16\"}},"
	" {\"id\": 5, \"queue\": \"qData\", \"desc\": ["
	"  {\"op\": \"add\", \"from_arr\": ["
	"    {\"from\": \"t\", \"from_dtype\": \"float32\"},"
	"    {\"from\": \"v\", \"from_dtype\": \"float32\", \"from_off\": 64}],"
	"   \"to\": \"y\", \"to_dtype\": \"float32\", \"to_steps\": [1], \"to_sizes\": [64]},"
	"  {\"op\": \"max\", \"from\": \"t\", \"to\": \"v\", \"to_steps\": [1],"
	"   \"to_sizes\": [32], \"constant\": 1.5, \"constant_dtype\": \"float32\"},"
	"  {\"op\": \"fma\", \"from\": \"t\", \"to\": \"v\", \"to_steps\": [1],"
	"   \"to_sizes\": [32], \"scale\": 0.25},"
	"  {\"op\": \"transpose\", \"from\": \"t\", \"from_steps\": [1], \"from_sizes\": [48],"
	"   \"to\": \"v\", \"transpose_shape\": [2, 2, 3, 2], \"transpose_element_size\": 2}"
	" ]}], \"instr\": []}";

static const char act_json[] =
	"{\"dma\": [], \"activation_function_sets\": [\"exp\", \"tanh\"]}";

static const char dve_json[] =
	"{\"dve_tables\": [{\"control_table\": \"c.bin\", \"datapath_table\": \"d.bin\","
	" \"opcode_table\": \"o.bin\"}]}";

static const char neff_json[] =
	"{\"format\": \"neuron-pack-1\","
	" \"inputs\": [{\"name\": \"x\", \"dtype\": \"float32\", \"shape\": [4, 16]}],"
	" \"outputs\": [{\"name\": \"y\", \"dtype\": \"int16\", \"shape\": [128]}]}";

/* Instructions of SP: prologue, a trigger of each entry, notify. */
static void put_sp_code(struct neuron_isa_inst *code)
{
	memset(code, 0, 5 * sizeof(*code));
	code[0].opcode = NEURON_ISA_OP_PROLOGUE;
	code[0].u.prologue.signature = htole32(NEURON_ISA_SIGNATURE);
	code[0].u.prologue.version = htole16(NEURON_ISA_VERSION);
	code[0].u.prologue.engine = htole16(NEURON_ISA_ENGINE_SP);
	for (int i = 1; i < 4; i++) {
		static const uint32_t ids[] = { 0, 7, 3, 5 };

		code[i].opcode = NEURON_ISA_OP_DMA_TRIGGER;
		code[i].u.dma.engine = code[i].u.dma.queue = htole16(0xffff);
		code[i].u.dma.tx_count = htole32(ids[i]);
	}
	code[4].opcode = NEURON_ISA_OP_NOTIFY;
	code[4].u.notify.id = htole32(1);
	for (int i = 0; i < 5; i++)
		code[i].magic = NEURON_ISA_MAGIC;
}

#define MAX_FILES 24

struct file {
	const char *name;
	char *data;
	size_t size;
	bool absent;
};

struct fixture {
	struct file file[MAX_FILES];
	size_t nr;
	struct neuron_neff_header header;
};

static void set_file(struct fixture *f, const char *name, const void *data, size_t size)
{
	struct file *file = NULL;

	for (size_t i = 0; i < f->nr; i++)
		if (!strcmp(f->file[i].name, name))
			file = &f->file[i];
	if (!file) {
		assert_true(f->nr < MAX_FILES);
		file = &f->file[f->nr++];
		file->name = name;
		file->data = NULL;
	}
	free(file->data);
	file->data = malloc(size + 1);
	assert_non_null(file->data);
	memcpy(file->data, data, size);
	file->data[size] = '\0';
	file->size = size;
	file->absent = false;
}

static void set_text(struct fixture *f, const char *name, const char *text)
{
	set_file(f, name, text, strlen(text));
}

static struct file *get_file(struct fixture *f, const char *name)
{
	for (size_t i = 0; i < f->nr; i++)
		if (!strcmp(f->file[i].name, name))
			return &f->file[i];
	fail_msg("no file %s", name);
	return NULL;
}

/* Replace a text that occurs once. */
static void edit(struct fixture *f, const char *name, const char *from, const char *to)
{
	struct file *file = get_file(f, name);
	char *at = strstr(file->data, from), *text;

	if (!at || strstr(at + 1, from))
		fail_msg("'%s' is not exactly once in %s", from, name);
	assert_true(asprintf(&text, "%.*s%s%s", (int)(at - file->data), file->data, to,
			     at + strlen(from)) > 0);
	set_text(f, name, text);
	free(text);
}

static size_t make_npy(char *out, const char *dict, const void *data, size_t size)
{
	size_t n = strlen(dict);

	memcpy(out, "\x93NUMPY\x01\x00", 8);
	out[8] = (char)n;
	out[9] = (char)(n >> 8);
	memcpy(out + 10, dict, n);
	memcpy(out + 10 + n, data, size);
	return 10 + n + size;
}

static void fixture_init(struct fixture *f)
{
	static const char dict[] =
		"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), }     \n";
	struct neuron_isa_inst code[5];
	char npy[256], data[64];

	memset(f, 0, sizeof(*f));
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7);
	put_sp_code(code);
	set_text(f, "kelf-0.json", kelf_json);
	set_text(f, "neff.json", neff_json);
	set_text(f, "sg00/def.json", def_json);
	set_text(f, "sg00/SP0.json", sp_json);
	set_file(f, "sg00/SP0.bin", code, sizeof(code));
	set_text(f, "sg00/Activation0.json", act_json);
	set_file(f, "sg00/Activation0.bin", "", 0);
	set_text(f, "sg00/DVE0.json", dve_json);
	set_text(f, "sg00/c.bin", "control");
	set_text(f, "sg00/d.bin", "datapath");
	set_text(f, "sg00/o.bin", "");
	set_file(f, "sg00/w.npy", npy, make_npy(npy, dict, data, sizeof(data)));
	set_file(f, "sg00/raw.bin", data, 64);
	set_text(f, "debug_info/x.dbg", "not needed");
	f->header.size = sizeof(f->header);
	f->header.version_major = 1;
	f->header.num_tpb = 1;
	f->header.requested_tpb_count = 1;
	f->header.lnc_size = 1;
	strcpy(f->header.name, "fixture");
}

static void fixture_free(struct fixture *f)
{
	for (size_t i = 0; i < f->nr; i++)
		free(f->file[i].data);
}

static void *build(struct fixture *f, bool gzip, size_t *size)
{
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	void *bytes = NULL;

	assert_non_null(w);
	for (size_t i = 0; i < f->nr; i++)
		if (!f->file[i].absent)
			assert_int_equal(neuron_neff_writer_add(w, f->file[i].name,
								f->file[i].data,
								f->file[i].size), 0);
	assert_int_equal(neuron_neff_writer_finish(w, &f->header, gzip, &bytes, size), 0);
	neuron_neff_writer_free(w);
	return bytes;
}

/* ---- expectations ---- */

static enum neuron_neff_class class_of(int err)
{
	return err == -EINVAL ? NEURON_NEFF_INVALID :
	       err == -EOPNOTSUPP ? NEURON_NEFF_UNSUPPORTED : NEURON_NEFF_RESOURCE;
}

#define DEF	"sg00/def.json"
#define SP	"sg00/SP0.json"

/* Opening fails with @err and a line that has @what in it. */
static void refused(const void *bytes, size_t size, struct neuron_neff_opts *opts, int err,
		    const char *what)
{
	struct neuron_neff_opts o = { .size = sizeof(o) };
	struct neuron_neff_error e = { .size = sizeof(e), .text = "untouched" };
	struct neuron_neff *neff = (void *)&o;
	int ret;

	if (opts)
		o = *opts;
	o.error = &e;
	ret = neuron_neff_open(bytes, size, &o, &neff);
	if (ret != err || !strstr(e.text, what))
		fail_msg("returned %d, not %d; \"%s\" should contain \"%s\"", ret, err, e.text,
			 what);
	assert_ptr_equal(neff, &o);
	assert_int_equal(e.kind, class_of(err));
	assert_null(strpbrk(e.text, "\n\r\x1b"));
}

static struct neuron_neff *accepted(const void *bytes, size_t size)
{
	struct neuron_neff_error e = { .size = sizeof(e) };
	struct neuron_neff_opts o = { .size = sizeof(o), .verify_hash = true, .error = &e };
	struct neuron_neff *neff = NULL;

	if (neuron_neff_open(bytes, size, &o, &neff))
		fail_msg("%s", e.text);
	assert_int_equal(e.kind, NEURON_NEFF_OK);
	return neff;
}

static void refused_fixture(struct fixture *f, int err, const char *what)
{
	size_t size;
	void *bytes = build(f, true, &size);

	refused(bytes, size, NULL, err, what);
	free(bytes);
}

/* ---- good files ---- */

static void check_fixture_header(const struct neuron_neff *neff)
{
	const struct neuron_neff_subgraph *sg = &neff->subgraphs[0];

	assert_string_equal(neff->header.name, "fixture");
	assert_int_equal(neff->header.lnc_size, 1);
	assert_string_equal(neff->graph_version, "0.5");
	assert_int_equal(neff->nr_subgraphs, 1);
	assert_true(neff->executable);
	assert_string_equal(sg->name, "sg00");
	assert_string_equal(sg->dir, "sg00");
}

static void check_fixture_vars(const struct neuron_neff_subgraph *sg)
{
	const struct neuron_neff_var *x, *y, *w, *v, *p, *g, *t, *r;

	assert_int_equal(sg->nr_vars, 9);
	x = neuron_neff_find_var(sg, "x");
	y = neuron_neff_find_var(sg, "y");
	w = neuron_neff_find_var(sg, "w");
	r = neuron_neff_find_var(sg, "r");
	t = neuron_neff_find_var(sg, "t");
	v = neuron_neff_find_var(sg, "v");
	p = neuron_neff_find_var(sg, "p");
	g = neuron_neff_find_var(sg, "g");
	assert_null(neuron_neff_find_var(sg, "nobody"));
	assert_non_null(neuron_neff_find_var(sg, "sbuf"));
	assert_int_equal(x->type, NEURON_NEFF_VAR_INPUT);
	assert_int_equal(x->dtype, NEURON_NEFF_DT_FLOAT32);
	assert_int_equal(x->ndim, 2);
	assert_int_equal(x->shape[0], 4);
	assert_int_equal(x->shape[1], 16);
	assert_int_equal(y->alignment, 64);
	assert_int_equal(y->dtype, NEURON_NEFF_DT_INT16);
	assert_int_equal(w->data_size, 64);
	assert_int_equal(w->dtype, NEURON_NEFF_DT_FLOAT32);
	assert_int_equal(w->ndim, 2);
	assert_int_equal(((const uint8_t *)w->data)[2], 14);
	assert_int_equal(r->data_size, 64);
	assert_int_equal(r->dtype, NEURON_NEFF_DT_UINT8);
	assert_int_equal(v->backing_off, 512);
	assert_string_equal(v->backing_buf, "main");
	assert_ptr_equal(p->referenced, t);
	assert_int_equal(g->nr_list, 2);
	assert_ptr_equal(g->list[0], t);
	assert_ptr_equal(g->list[1], v);
}

static void check_fixture_queues(const struct neuron_neff_subgraph *sg)
{
	assert_int_equal(sg->nr_queues, 2);
	assert_int_equal(sg->queues[0].num_queues, 2);
	assert_int_equal(sg->queues[0].owner, NEURON_NEFF_SP);
	assert_int_equal(sg->queues[0].nr_semaphores, 1);
	assert_int_equal(sg->queues[0].semaphores[0], 9);
	assert_int_equal(sg->queues[1].nr_instances, 2);
	assert_int_equal(sg->queues[1].fabric, NEURON_NEFF_FABRIC_ALT);
	assert_true(sg->queues[1].pinned);
	assert_int_equal(sg->queues[1].owner, -1);
}

static void check_fixture_dma(const struct neuron_neff_subgraph *sg)
{
	const struct neuron_neff_engine *sp = &sg->engines[NEURON_NEFF_SP];
	const struct neuron_neff_dma *dma;
	const struct neuron_neff_desc *d;

	assert_int_equal(sp->code_kind, NEURON_NEFF_CODE_NISA);
	assert_int_equal(sp->code_size, 320);
	assert_int_equal(sp->nr_dma, 3);
	dma = neuron_neff_find_dma(sp, 7);
	assert_ptr_equal(dma, &sp->dma[0]);
	assert_null(neuron_neff_find_dma(sp, 4));
	assert_ptr_equal(dma->queue, &sg->queues[0]);
	assert_int_equal(dma->semaphore, 9);
	assert_int_equal(dma->event, 3);
	assert_int_equal(dma->instance, -1);
	d = dma->desc;
	assert_int_equal(d->op, NEURON_NEFF_OP_COPY);
	assert_int_equal(d->from[0].ndim, 2);
	assert_int_equal(d->from[0].bytes, 128);
	assert_int_equal(d->from[0].step[1], 32);
	assert_int_equal(d->to.off, 3968);
	dma = neuron_neff_find_dma(sp, 3);
	assert_ptr_equal(dma->queue, &sg->queues[1]);
	assert_int_equal(dma->instance, 1);
	assert_true(dma->section_start);
	assert_string_equal(dma->function_start, "f");
	assert_int_equal(dma->nr_remote_semaphores, 2);
	assert_int_equal(dma->event, -1);
	assert_int_equal(dma->desc[0].to.bytes, 32);
	assert_int_equal(dma->desc[0].to.ndim, 1);
	dma = neuron_neff_find_dma(sp, 5);
	assert_int_equal(dma->nr_desc, 4);
	assert_int_equal(dma->desc[0].nr_from, 2);
	assert_int_equal(dma->desc[0].from[1].off, 64);
	assert_int_equal(dma->desc[0].from[1].bytes, 64);
	assert_int_equal(dma->desc[1].constant_dtype, NEURON_NEFF_DT_FLOAT32);
	assert_true(dma->desc[1].constant == 1.5);
	assert_true(dma->desc[2].scale == 0.25);
	assert_int_equal(dma->desc[3].transpose_shape[2], 3);
}

static void check_fixture_tables(const struct neuron_neff_subgraph *sg)
{
	const struct neuron_neff_engine *dve = &sg->engines[NEURON_NEFF_DVE];
	const struct neuron_neff_engine *act = &sg->engines[NEURON_NEFF_ACT];

	assert_int_equal(act->code_kind, NEURON_NEFF_CODE_NONE);
	assert_int_equal(act->nr_act_sets, 2);
	assert_string_equal(act->act_sets[1], "tanh");
	assert_int_equal(dve->nr_tables, 3);
	assert_int_equal(dve->tables[0].size, 7);
	assert_memory_equal(dve->tables[0].data, "control", 7);
	assert_int_equal(dve->tables[1].size, 8);
	assert_memory_equal(dve->tables[1].data, "datapath", 8);
	assert_int_equal(dve->tables[2].size, 0);
	assert_null(sg->engines[NEURON_NEFF_PE].json_name);
}

static void check_fixture(const struct neuron_neff *neff)
{
	check_fixture_header(neff);
	check_fixture_vars(&neff->subgraphs[0]);
	check_fixture_queues(&neff->subgraphs[0]);
	check_fixture_dma(&neff->subgraphs[0]);
	check_fixture_tables(&neff->subgraphs[0]);
}

static void test_good(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	for (int gzip = 0; gzip < 2; gzip++) {
		for (f.header.pkg_version = 1; f.header.pkg_version <= 2;
		     f.header.pkg_version++) {
			struct neuron_neff *neff;
			size_t size;
			void *bytes = build(&f, gzip, &size);

			neff = accepted(bytes, size);
			/* Nothing may point into the input. */
			memset(bytes, 0xff, size);
			free(bytes);
			check_fixture(neff);
			neuron_neff_close(neff);
		}
	}
	neuron_neff_close(NULL);
	fixture_free(&f);
}

/* With leave, constants of a plain file are where the file is, and it says when it had them. */
static void test_borrow(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	for (int gzip = 0; gzip < 2; gzip++) {
		uint64_t unpacked = 0;
		struct neuron_neff_error e = { .size = sizeof(e) };
		struct neuron_neff_opts o = {
			.size = sizeof(o), .error = &e, .borrow = true, .unpacked = &unpacked,
		};
		struct neuron_neff *neff = NULL;
		const struct neuron_neff_var *w;
		const uint8_t *data;
		size_t size;
		uint8_t *bytes = build(&f, gzip, &size);

		assert_int_equal(neuron_neff_open(bytes, size, &o, &neff), 0);
		check_fixture(neff);
		w = neuron_neff_find_var(&neff->subgraphs[0], "w");
		assert_non_null(w);
		assert_true(w->data_size > 0);
		data = w->data;
		assert_int_equal(data >= bytes && data + w->data_size <= bytes + size, !gzip);
		assert_int_not_equal(unpacked, 0);
		neuron_neff_close(neff);
		/* An end that is missing is found all the same. */
		for (size_t n = 1024; n < size / 2; n += size / 64) {
			memcpy(bytes + 16, &(uint64_t){ htole64(n - 1024) }, 8);
			assert_int_equal(neuron_neff_open(bytes, n, &o, &neff), -EINVAL);
		}
		free(bytes);
	}
	fixture_free(&f);
}

static void test_minimal_header(void **state)
{
	/* Only the first 24 bytes, as one public fixture has it. */
	struct neuron_neff *neff = NULL;
	struct fixture f;
	uint8_t *bytes;
	size_t size;

	(void)state;
	fixture_init(&f);
	bytes = build(&f, true, &size);
	memset(bytes + 24, 0, 1000);
	assert_int_equal(neuron_neff_open(bytes, size, NULL, &neff), 0);
	assert_int_equal(neff->header.lnc_size, 1);
	neuron_neff_close(neff);
	free(bytes);
	fixture_free(&f);
}

/* Every field of the header is read from where it was written. */
static void test_header_fields(void **state)
{
	struct neuron_neff_header *h;
	struct neuron_neff *neff;
	struct fixture f;
	size_t size;
	void *bytes;

	(void)state;
	fixture_init(&f);
	h = &f.header;
	h->version_major = 2;
	h->version_minor = 7;
	strcpy(h->build_version, "compiler 1.2");
	h->num_tpb = 3;
	h->requested_tpb_count = 4;
	h->feature_bits = 0x8000000000000002;
	for (size_t i = 0; i < sizeof(h->uuid); i++)
		h->uuid[i] = (uint8_t)(0xa0 + i);
	for (size_t i = 0; i < sizeof(h->tpb_per_node); i++)
		h->tpb_per_node[i] = (uint8_t)(64 - i);
	bytes = build(&f, true, &size);
	neff = accepted(bytes, size);
	assert_int_equal(neff->header.pkg_version, 2);
	assert_int_equal(neff->header.header_size, 1024);
	assert_int_equal(neff->header.data_size, size - 1024);
	assert_int_equal(neff->header.version_major, 2);
	assert_int_equal(neff->header.version_minor, 7);
	assert_string_equal(neff->header.build_version, "compiler 1.2");
	assert_int_equal(neff->header.num_tpb, 3);
	assert_int_equal(neff->header.requested_tpb_count, 4);
	assert_memory_equal(neff->header.hash, (uint8_t *)bytes + 172, 32);
	assert_memory_equal(neff->header.uuid, h->uuid, sizeof(h->uuid));
	assert_memory_equal(neff->header.tpb_per_node, h->tpb_per_node, sizeof(h->tpb_per_node));
	assert_true(neff->header.feature_bits == h->feature_bits);
	neuron_neff_close(neff);
	free(bytes);
	fixture_free(&f);
}

/* The header of a program that knows more, or fewer, fields than this library. */
static void test_header_of_other_size(void **state)
{
	struct {
		struct neuron_neff_header h;
		uint8_t more[64];
	} later = { .h = { .size = sizeof(later), .version_major = 2, .lnc_size = 2 } };
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	uint8_t *bytes;
	size_t size;

	(void)state;
	assert_non_null(w);
	memset(later.more, 0xff, sizeof(later.more));
	assert_int_equal(neuron_neff_writer_finish(w, &later.h, false, (void **)&bytes, &size), 0);
	assert_int_equal(bytes[24], 2);
	assert_int_equal(bytes[552], 2);
	free(bytes);
	later.h.size = offsetof(struct neuron_neff_header, lnc_size);
	assert_int_equal(neuron_neff_writer_finish(w, &later.h, false, (void **)&bytes, &size), 0);
	assert_int_equal(bytes[24], 2);
	assert_int_equal(bytes[552], 0);
	free(bytes);
	neuron_neff_writer_free(w);
}

static void test_foreign_neff_json(void **state)
{
	struct neuron_neff *neff;
	struct fixture f;
	const struct neuron_neff_var *x;
	size_t size;
	void *bytes;

	(void)state;
	fixture_init(&f);
	set_text(&f, "neff.json", "{\"inputs\": 5, \"anything\": [1, 2]}");
	bytes = build(&f, true, &size);
	neff = accepted(bytes, size);
	free(bytes);
	x = neuron_neff_find_var(&neff->subgraphs[0], "x");
	assert_int_equal(x->dtype, NEURON_NEFF_DT_UINT8);
	assert_int_equal(x->ndim, 1);
	assert_int_equal(x->shape[0], 256);
	neuron_neff_close(neff);
	fixture_free(&f);
}

/* What the words of a queue set mean. */
static void test_queue_words(void **state)
{
	static const struct {
		const char *from, *to;
		int type, owner;
		uint32_t semaphore;
	} rows[] = {
		{ "\"in\"", "\"in\"", NEURON_NEFF_QUEUE_IN, NEURON_NEFF_SP, 9 },
		{ "\"in\"", "\"out\"", NEURON_NEFF_QUEUE_OUT, NEURON_NEFF_SP, 9 },
		{ "\"in\"", "\"data\"", NEURON_NEFF_QUEUE_DATA, NEURON_NEFF_SP, 9 },
		{ "\"in\"", "\"embedding_update\"", NEURON_NEFF_QUEUE_EMBEDDING_UPDATE,
		  NEURON_NEFF_SP, 9 },
		{ "\"in\"", "\"dynamic\"", NEURON_NEFF_QUEUE_DYNAMIC, NEURON_NEFF_SP, 9 },
		{ "\"in\"", "\"In\"", NEURON_NEFF_QUEUE_UNKNOWN, NEURON_NEFF_SP, 9 },
		{ "\"owner\": \"sp\"", "\"owner\": \"PE0\"", 0, NEURON_NEFF_PE, 9 },
		{ "\"owner\": \"sp\"", "\"owner\": \"pe\"", 0, NEURON_NEFF_PE, 9 },
		{ "\"owner\": \"sp\"", "\"owner\": \"Activation\"", 0, NEURON_NEFF_ACT, 9 },
		{ "\"owner\": \"sp\"", "\"owner\": \"Pool0\"", 0, NEURON_NEFF_POOL, 9 },
		{ "\"owner\": \"sp\"", "\"owner\": \"dve\"", 0, NEURON_NEFF_DVE, 9 },
		{ "\"owner\": \"sp\"", "\"owner\": \"SP0\"", 0, NEURON_NEFF_SP, 9 },
		{ "\"owner\": \"sp\"", "\"owner\": \"spx\"", 0, -1, 9 },
		{ "\"semaphore\": 9}", "\"semaphore\": 0}", 0, NEURON_NEFF_SP, 0 },
		{ "\"semaphore\": 9}", "\"semaphore\": 9, \"semaphore_set\": [7]}", 0,
		  NEURON_NEFF_SP, 7 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct neuron_neff_queue *q;
		struct neuron_neff *neff;
		struct fixture f;
		size_t size;
		void *bytes;

		print_message("# %s\n", rows[i].to);
		fixture_init(&f);
		edit(&f, DEF, rows[i].from, rows[i].to);
		bytes = build(&f, true, &size);
		neff = accepted(bytes, size);
		free(bytes);
		q = &neff->subgraphs[0].queues[0];
		assert_int_equal(q->type, rows[i].type);
		assert_int_equal(q->owner, rows[i].owner);
		assert_int_equal(q->fabric, NEURON_NEFF_FABRIC_MAIN);
		assert_int_equal(q->nr_semaphores, 1);
		assert_int_equal(q->semaphores[0], rows[i].semaphore);
		neuron_neff_close(neff);
		fixture_free(&f);
	}
}

/* Queues of a set that are named are found by that name, the first one, too. */
static void test_queue_instances(void **state)
{
	static const char *const names[] = { "a", "b" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		const struct neuron_neff_dma *dma;
		struct neuron_neff *neff;
		struct fixture f;
		char to[40];
		size_t size;
		void *bytes;

		snprintf(to, sizeof(to), "\"instance_name\": \"%s\"", names[i]);
		fixture_init(&f);
		edit(&f, SP, "\"instance_name\": \"b\"", to);
		bytes = build(&f, true, &size);
		neff = accepted(bytes, size);
		free(bytes);
		dma = neuron_neff_find_dma(&neff->subgraphs[0].engines[NEURON_NEFF_SP], 3);
		assert_ptr_equal(dma->queue, &neff->subgraphs[0].queues[1]);
		assert_int_equal(dma->instance, i);
		neuron_neff_close(neff);
		fixture_free(&f);
	}
}

static void test_two_graphs(void **state)
{
	struct neuron_neff *neff;
	struct fixture f;
	size_t size;
	void *bytes;

	(void)state;
	fixture_init(&f);
	f.header.lnc_size = 2;
	set_text(&f, "kelf-0.json", "{\"graphs\": [{\"definition\": \"sg00/def.json\"},"
				    " {\"definition\": \"./sg01//def.json\"}]}");
	set_text(&f, "sg01/def.json", "{\"var\": {}}");
	bytes = build(&f, true, &size);
	neff = accepted(bytes, size);
	assert_int_equal(neff->nr_subgraphs, 2);
	assert_string_equal(neff->subgraphs[1].dir, "sg01");
	assert_int_equal(neff->subgraphs[1].nr_vars, 0);
	neuron_neff_close(neff);
	free(bytes);
	f.header.lnc_size = 1;
	refused_fixture(&f, -EINVAL, "kelf-0.json: graphs: 2 graphs, lnc_size");
	fixture_free(&f);
}

/* A definition at the root of the archive finds its files there. */
static void test_L3_root(void **state)
{
	struct neuron_neff *neff;
	struct fixture f;
	size_t size;
	void *bytes;

	(void)state;
	fixture_init(&f);
	set_text(&f, "kelf-0.json", "{\"graphs\": [{\"definition\": \"def.json\"}]}");
	for (size_t i = 0; i < f.nr; i++)
		if (!strncmp(f.file[i].name, "sg00/", 5))
			f.file[i].name += 5;
	bytes = build(&f, true, &size);
	neff = accepted(bytes, size);
	free(bytes);
	assert_string_equal(neff->subgraphs[0].dir, "");
	assert_int_equal(neff->subgraphs[0].engines[NEURON_NEFF_SP].nr_dma, 3);
	neuron_neff_close(neff);
	fixture_free(&f);
}

static void test_vendor_code(void **state)
{
	static const char code[200] = "\x10\x20\x30 an encoding that nobody published";
	struct neuron_neff *neff;
	struct fixture f;
	size_t size;
	void *bytes;

	(void)state;
	fixture_init(&f);
	set_file(&f, "sg00/SP0.bin", code, sizeof(code));
	bytes = build(&f, true, &size);
	neff = accepted(bytes, size);
	free(bytes);
	assert_false(neff->executable);
	assert_int_equal(neff->subgraphs[0].engines[NEURON_NEFF_SP].code_kind,
			 NEURON_NEFF_CODE_VENDOR);
	assert_int_equal(neff->subgraphs[0].engines[NEURON_NEFF_SP].code_size, sizeof(code));
	neuron_neff_close(neff);
	fixture_free(&f);
}

/* Instructions that are shorter than a prologue, even if they start like one. */
static void test_short_code(void **state)
{
	struct neuron_isa_inst code[5];
	struct neuron_neff *neff;
	struct fixture f;
	size_t size;
	void *bytes;

	(void)state;
	put_sp_code(code);
	fixture_init(&f);
	for (size_t n = 1; n < sizeof(code[0]); n += 31) {
		set_file(&f, "sg00/SP0.bin", code, n);
		bytes = build(&f, true, &size);
		neff = accepted(bytes, size);
		free(bytes);
		assert_int_equal(neff->subgraphs[0].engines[NEURON_NEFF_SP].code_kind,
				 NEURON_NEFF_CODE_VENDOR);
		neuron_neff_close(neff);
	}
	fixture_free(&f);
}

struct unpacked {
	const struct fixture *f;
	size_t nr;
	char last[64];
};

static void check_unpacked(void *context, const char *name, const void *data, size_t size)
{
	struct unpacked *u = context;
	const struct file *file = get_file((struct fixture *)u->f, name);

	assert_true(strcmp(u->last, name) < 0);
	strcpy(u->last, name);
	assert_int_equal(size, file->size);
	assert_memory_equal(data, file->data, size);
	u->nr++;
}

/* Every member is handed over, whether the first pass could keep it or not. */
static void test_unpack(void **state)
{
	static const size_t big = 3u << 20;
	char *data = malloc(big);
	struct fixture f;

	(void)state;
	assert_non_null(data);
	for (size_t i = 0; i < big; i++)
		data[i] = (char)(i * 31 >> 3);
	fixture_init(&f);
	set_file(&f, "a-first", data, big);
	set_file(&f, "z-last", data + 1, big - 1);
	for (int gzip = 0; gzip < 2; gzip++) {
		struct neuron_neff_error e = { .size = sizeof(e) };
		struct unpacked u = { .f = &f };
		size_t size;
		void *bytes = build(&f, gzip, &size);

		assert_int_equal(neuron_neff_unpack(bytes, size, &e, check_unpacked, &u), 0);
		assert_int_equal(u.nr, f.nr);
		assert_int_equal(neuron_neff_unpack(bytes, 1023, &e, check_unpacked, &u), -EINVAL);
		assert_non_null(strstr(e.text, "header: file has only 1023 bytes"));
		free(bytes);
	}
	free(data);
	fixture_free(&f);
}

static void test_deterministic(void **state)
{
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	void *a, *b, *c = NULL;
	size_t na, nb, nc = 0;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	a = build(&f, true, &na);
	b = build(&f, true, &nb);
	assert_int_equal(na, nb);
	assert_memory_equal(a, b, na);
	/* In another order, in steps. */
	for (size_t i = f.nr; i-- > 0;) {
		assert_int_equal(neuron_neff_writer_add(w, f.file[i].name, f.file[i].data,
							f.file[i].size), 0);
		free(c);
		assert_int_equal(neuron_neff_writer_finish(w, &f.header, true, &c, &nc), 0);
	}
	assert_int_equal(na, nc);
	assert_memory_equal(a, c, na);
	neuron_neff_writer_free(w);
	free(a);
	free(b);
	free(c);
	fixture_free(&f);
}

static void test_writer_refuses(void **state)
{
	static const char *const bad[] = {
		"", "/x", "../x", "a/../../x", "a/..", ".", "./", "a/\xc3\xa9.npy", "a\x80",
	};
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	struct neuron_neff_header h = { .size = sizeof(h), .pkg_version = 3 };
	void *bytes;
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(neuron_neff_writer_add(w, bad[i], "", 0), -EINVAL);
	assert_int_equal(neuron_neff_writer_add(w, "a/b", "x", 1), 0);
	assert_int_equal(neuron_neff_writer_add(w, "a//./b", "x", 1), -EEXIST);
	assert_int_equal(neuron_neff_writer_add(w, "c", NULL, 1), -EINVAL);
	assert_int_equal(neuron_neff_writer_finish(w, &h, true, &bytes, &size), -EINVAL);
	h = (struct neuron_neff_header){ .pkg_version = 2 };
	assert_int_equal(neuron_neff_writer_finish(w, &h, true, &bytes, &size), -EINVAL);
	neuron_neff_writer_free(w);
}

/* ---- header ---- */

static void put64(uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 8; i++, v >>= 8)
		p[i] = (uint8_t)v;
}

static void test_header(void **state)
{
	static const struct {
		size_t off;
		uint64_t value;
		int err;
		const char *what;
	} cases[] = {
		{ 0, 0, -EOPNOTSUPP, "header: pkg_version is 0" },
		{ 0, 3, -EOPNOTSUPP, "header: pkg_version is 3" },
		{ 8, 0, -EINVAL, "header: header_size is 0" },
		{ 8, 1023, -EINVAL, "header: header_size is 1023" },
		{ 8, UINT64_MAX, -EINVAL, "header: header_size is" },
		{ 16, 0, -EINVAL, "header: data_size is 0 but" },
		{ 16, UINT64_MAX, -EINVAL, "header: data_size is 18446744073709551615" },
		{ 16, UINT64_MAX - 1023, -EINVAL, "header: data_size is" },
		{ 24, 3, -EOPNOTSUPP, "supported: 2.x received: 3.0" },
		{ 24, UINT64_MAX, -EOPNOTSUPP, "NEFF version mismatch" },
		{ 552, 3, -EINVAL, "lnc_size is 3" },
		{ 552, UINT32_MAX, -EINVAL, "lnc_size is 4294967295" },
		{ 552, 2, -EINVAL, "1 graphs, lnc_size of the header is 2" },
	};
	struct fixture f;
	uint8_t *bytes, *copy;
	size_t size;

	(void)state;
	fixture_init(&f);
	bytes = build(&f, true, &size);
	copy = malloc(size + 1);
	assert_non_null(copy);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(copy, bytes, size);
		put64(copy + cases[i].off, cases[i].value);
		refused(copy, size, NULL, cases[i].err, cases[i].what);
	}
	/* One byte more than the header says. */
	memcpy(copy, bytes, size);
	copy[size] = 0;
	refused(copy, size + 1, NULL, -EINVAL, "header: data_size");
	free(copy);
	free(bytes);
	fixture_free(&f);
}

static void test_arguments(void **state)
{
	struct neuron_neff_opts o = { .size = 0 };
	struct neuron_neff *neff;
	struct fixture f;
	size_t size;
	void *bytes;

	(void)state;
	assert_int_equal(neuron_neff_open(NULL, 5, NULL, &neff), -EINVAL);
	assert_int_equal(neuron_neff_open("", 0, NULL, NULL), -EINVAL);
	assert_int_equal(neuron_neff_open("", 0, &o, &neff), -EINVAL);
	fixture_init(&f);
	bytes = build(&f, true, &size);
	assert_int_equal(neuron_neff_open(bytes, size, NULL, NULL), -EINVAL);
	free(bytes);
	fixture_free(&f);
	refused(NULL, 0, NULL, -EINVAL, "header: file has 0 bytes");
	refused("NEFF", 4, NULL, -EINVAL, "header: file has 4 bytes");
}

/* The options of a program that knows more, or fewer, of them than this library. */
static void test_opts_of_other_size(void **state)
{
	struct {
		struct neuron_neff_opts o;
		uint8_t more[4096];
	} later = { .o = { .size = sizeof(later), .short_constants = true } };
	struct neuron_neff *neff;
	struct fixture f;
	size_t size;
	void *bytes;

	(void)state;
	memset(later.more, 0xff, sizeof(later.more));
	fixture_init(&f);
	edit(&f, DEF, "\"var_id\": 8, \"size\": 64", "\"var_id\": 8, \"size\": 65");
	bytes = build(&f, true, &size);
	assert_int_equal(neuron_neff_open(bytes, size, &later.o, &neff), 0);
	neuron_neff_close(neff);
	later.o.size = offsetof(struct neuron_neff_opts, short_constants);
	assert_int_equal(neuron_neff_open(bytes, size, &later.o, &neff), -EINVAL);
	free(bytes);
	fixture_free(&f);
}

static void test_hash(void **state)
{
	struct neuron_neff_opts o = { .size = sizeof(o), .verify_hash = true };
	struct neuron_neff *neff = NULL;
	struct fixture f;
	uint8_t *bytes;
	size_t size;

	(void)state;
	fixture_init(&f);
	for (f.header.pkg_version = 1; f.header.pkg_version <= 2; f.header.pkg_version++) {
		bytes = build(&f, true, &size);
		bytes[172] ^= 1;
		refused(bytes, size, &o, -EINVAL, "header: hash does not match");
		/* By default any value is accepted. */
		assert_int_equal(neuron_neff_open(bytes, size, NULL, &neff), 0);
		neuron_neff_close(neff);
		free(bytes);
	}
	fixture_free(&f);
}

/* A name that tries to write its own log line stays one line. */
static void test_text_is_tame(void **state)
{
	struct neuron_neff *neff;
	struct fixture f;
	size_t size;
	void *bytes;

	(void)state;
	fixture_init(&f);
	strcpy(f.header.name, "a\nFORGED \x1b[31m\xff");
	bytes = build(&f, true, &size);
	neff = accepted(bytes, size);
	assert_string_equal(neff->header.name, "a?FORGED ?[31m?");
	neuron_neff_close(neff);
	free(bytes);
	memset(f.header.name, 'n', 256);
	bytes = build(&f, true, &size);
	neff = accepted(bytes, size);
	assert_int_equal(strlen(neff->header.name), 255);
	neuron_neff_close(neff);
	free(bytes);
	edit(&f, "sg00/def.json", "\"type\": \"tmp-buf\"", "\"type\": \"\\n\\u001b[31mx\"");
	refused_fixture(&f, -EOPNOTSUPP, "unknown type '??[31mx'");
	fixture_free(&f);
}

/* ---- archive ---- */

/* A file with any payload behind a header that fits. */
static uint8_t *wrap(const void *payload, size_t n, size_t *size)
{
	uint8_t *bytes = calloc(1, 1024 + n);

	assert_non_null(bytes);
	put64(bytes, 2);
	put64(bytes + 8, 1024);
	put64(bytes + 16, n);
	memcpy(bytes + 1024, payload, n);
	*size = 1024 + n;
	return bytes;
}

static void test_truncated(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	for (int gzip = 0; gzip < 2; gzip++) {
		size_t size, step;
		uint8_t *bytes = build(&f, gzip, &size);

		/* Cut off, the header still telling the old size. */
		for (size_t n = 0; n < size; n += n < 1100 ? 1 : 61)
			refused(bytes, n, NULL, -EINVAL, "header: ");
		/* Cut off, the header telling the new size. */
		step = gzip ? 1 : 97;
		for (size_t n = 1024; n < size; n += step) {
			uint8_t *copy = malloc(n ? n : 1);
			struct neuron_neff *neff;

			assert_non_null(copy);
			memcpy(copy, bytes, n);
			put64(copy + 16, n - 1024);
			if (gzip) {
				refused(copy, n, NULL, -EINVAL, n == 1024 ? "archive: empty" :
					n == 1025 ? "archive: " : "archive: gzip data ends early");
			} else if (!neuron_neff_open(copy, n, NULL, &neff)) {
				/* Only the padding behind the last member may go. */
				check_fixture(neff);
				neuron_neff_close(neff);
			}
			free(copy);
		}
		free(bytes);
	}
	fixture_free(&f);
}

/* A flipped bit anywhere in the compressed data is noticed: gzip has a checksum. */
static void test_corrupt(void **state)
{
	struct neuron_neff *neff;
	unsigned int harmless = 0;
	struct fixture f;
	uint8_t *bytes;
	size_t size;

	(void)state;
	fixture_init(&f);
	bytes = build(&f, true, &size);
	/* Behind the 10 bytes of the gzip header, some of which mean nothing. */
	for (size_t i = 1024 + 10; i < size; i++) {
		bytes[i] ^= (uint8_t)(1 << i % 8);
		if (!neuron_neff_open(bytes, size, NULL, &neff)) {
			/* Spare bits, or another way to say zeros: same contents. */
			check_fixture(neff);
			neuron_neff_close(neff);
			harmless++;
		}
		bytes[i] ^= (uint8_t)(1 << i % 8);
	}
	assert_true(harmless < size / 20);
	free(bytes);
	fixture_free(&f);
}

static void test_not_an_archive(void **state)
{
	static const char text[] = "this is no archive, and it is longer than a tar block? no";
	uint8_t noise[4096], zeros[20480] = { 0 };
	uint32_t x = 1;
	size_t size;
	uint8_t *bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)((x = x * 1103515245 + 12345) >> 16);
	bytes = wrap(text, sizeof(text), &size);
	refused(bytes, size, NULL, -EINVAL, "archive: ");
	free(bytes);
	bytes = wrap(noise, sizeof(noise), &size);
	refused(bytes, size, NULL, -EINVAL, "archive: ");
	free(bytes);
	bytes = wrap(zeros, sizeof(zeros), &size);
	refused(bytes, size, NULL, -EINVAL, "archive: ");
	free(bytes);
	noise[0] = 0x1f;
	noise[1] = 0x8b;
	bytes = wrap(noise, sizeof(noise), &size);
	refused(bytes, size, NULL, -EINVAL, "archive: gzip data is corrupt");
	free(bytes);
}

/* Archives that this project's writer never makes, written by libarchive. */
struct raw {
	struct archive *a;
	uint8_t *buf;
	size_t room, used;
};

static void raw_start(struct raw *r, size_t room, bool gzip)
{
	r->room = room;
	r->buf = malloc(room);
	assert_non_null(r->buf);
	r->a = archive_write_new();
	archive_write_set_format_pax_restricted(r->a);
	if (gzip)
		archive_write_add_filter_gzip(r->a);
	archive_write_set_bytes_in_last_block(r->a, 1);
	assert_int_equal(archive_write_open_memory(r->a, r->buf, room, &r->used), ARCHIVE_OK);
}

static void raw_add(struct raw *r, const char *name, unsigned int type, const char *link,
		    bool hard, const char *data, size_t n)
{
	struct archive_entry *e = archive_entry_new();

	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, type);
	archive_entry_set_perm(e, 0644);
	archive_entry_set_size(e, (int64_t)n);
	if (link && hard)
		archive_entry_set_hardlink(e, link);
	else if (link)
		archive_entry_set_symlink(e, link);
	assert_int_equal(archive_write_header(r->a, e), ARCHIVE_OK);
	if (n)
		assert_int_equal(archive_write_data(r->a, data, n), n);
	archive_entry_free(e);
}

/* So many members, with names of their own. */
static void raw_add_some(struct raw *r, int nr, unsigned int type, const char *data, size_t n)
{
	for (int i = 0; i < nr; i++) {
		char name[16];

		snprintf(name, sizeof(name), "m%d", i);
		raw_add(r, name, type, NULL, false, data, n);
	}
}

static void raw_refused(struct raw *r, struct neuron_neff_opts *o, int err, const char *what)
{
	uint8_t *bytes;
	size_t size;

	assert_int_equal(archive_write_close(r->a), ARCHIVE_OK);
	archive_write_free(r->a);
	bytes = wrap(r->buf, r->used, &size);
	refused(bytes, size, o, err, what);
	free(bytes);
	free(r->buf);
}

static void test_hostile_members(void **state)
{
	static const struct {
		const char *name;
		unsigned int type;
		const char *link;
		bool hard;
		const char *what;
	} cases[] = {
		{ "/etc/passwd", AE_IFREG, NULL, false, "/etc/passwd: absolute path" },
		{ "../x", AE_IFREG, NULL, false, "../x: path leaves the archive" },
		{ "a/../../x", AE_IFREG, NULL, false, "path leaves the archive" },
		{ "a/..", AE_IFREG, NULL, false, "path leaves the archive" },
		{ "..", AE_IFDIR, NULL, false, "path leaves the archive" },
		{ "/dir", AE_IFDIR, NULL, false, "absolute path" },
		{ "link", AE_IFLNK, "/etc/passwd", false, "link: symbolic link" },
		{ "link", AE_IFREG, "kelf-0.json", true, "link: hard link" },
		{ "dir", AE_IFDIR, "kelf-0.json", true, "dir: hard link" },
		{ "fifo", AE_IFIFO, NULL, false, "fifo: special file" },
		{ "tty", AE_IFCHR, NULL, false, "tty: special file" },
		{ "disk", AE_IFBLK, NULL, false, "disk: special file" },
		{ "./kelf-0.json", AE_IFREG, NULL, false, "kelf-0.json: twice in the archive" },
		{ "kelf-0.json", AE_IFREG, NULL, false, "kelf-0.json: twice in the archive" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct raw r;

		raw_start(&r, 1 << 16, i & 1);
		raw_add(&r, "kelf-0.json", AE_IFREG, NULL, false, kelf_json,
			sizeof(kelf_json) - 1);
		raw_add(&r, cases[i].name, cases[i].type, cases[i].link, cases[i].hard, NULL, 0);
		raw_refused(&r, NULL, -EINVAL, cases[i].what);
	}
}

/* Holes at the start, around the data, and between pieces of it. */
static void test_sparse_members(void **state)
{
	static const struct {
		int nr;
		int64_t at[2];
	} rows[] = { { 1, { 8192 - 512 } }, { 1, { 1024 } }, { 2, { 0, 4096 } } };
	static const char data[8192];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct archive_entry *e = archive_entry_new();
		struct raw r;

		archive_entry_set_pathname(e, "holes");
		archive_entry_set_filetype(e, AE_IFREG);
		archive_entry_set_perm(e, 0644);
		archive_entry_set_size(e, sizeof(data));
		for (int k = 0; k < rows[i].nr; k++)
			archive_entry_sparse_add_entry(e, rows[i].at[k], 512);
		raw_start(&r, 1 << 16, true);
		assert_int_equal(archive_write_header(r.a, e), ARCHIVE_OK);
		assert_int_equal(archive_write_data(r.a, data, sizeof(data)), sizeof(data));
		archive_entry_free(e);
		raw_refused(&r, NULL, -EINVAL, "holes: sparse file in the archive");
	}
}

static void test_directories_are_fine(void **state)
{
	struct raw r;

	(void)state;
	raw_start(&r, 1 << 16, true);
	raw_add(&r, "./", AE_IFDIR, NULL, false, NULL, 0);
	raw_add(&r, "./sg00/", AE_IFDIR, NULL, false, NULL, 0);
	raw_refused(&r, NULL, -EINVAL, "archive: no members");
	raw_start(&r, 1 << 16, true);
	raw_add(&r, "./", AE_IFDIR, NULL, false, NULL, 0);
	raw_add(&r, "./other", AE_IFREG, NULL, false, "x", 1);
	raw_refused(&r, NULL, -EINVAL, "kelf-0.json: missing from the archive");
}

static void test_long_name(void **state)
{
	char name[2000];
	struct raw r;

	(void)state;
	memset(name, 'n', sizeof(name));
	name[1500] = '\0';
	raw_start(&r, 1 << 16, true);
	raw_add(&r, name, AE_IFREG, NULL, false, "x", 1);
	raw_refused(&r, NULL, -EINVAL, "name has more than 1024 bytes");
}

static void test_bomb(void **state)
{
	static const size_t size = 64u << 20;
	struct neuron_neff_opts o = { .size = sizeof(o) };
	char *zeros = calloc(1, size);
	struct raw r;

	(void)state;
	assert_non_null(zeros);
	/* One large member, or many small ones. */
	o.max_total = size - 1;
	raw_start(&r, 1 << 20, true);
	raw_add(&r, "kelf-0.json", AE_IFREG, NULL, false, zeros, size);
	raw_refused(&r, &o, -E2BIG, "archive: unpacks to more than the limit of 67108863 bytes");
	raw_start(&r, 1 << 20, true);
	raw_add_some(&r, 64, AE_IFREG, zeros, 1 << 20);
	raw_refused(&r, &o, -E2BIG, "archive: unpacks to more than the limit of 67108863 bytes");
	o.max_total = 5000;
	raw_start(&r, 1 << 20, false);
	raw_add_some(&r, 6, AE_IFREG, zeros, 1000);
	raw_refused(&r, &o, -E2BIG, "unpacks to more than the limit of 5000 bytes");
	o.max_total = 0;
	o.max_members = 5;
	raw_start(&r, 1 << 20, true);
	raw_add_some(&r, 6, AE_IFDIR, NULL, 0);
	raw_refused(&r, &o, -E2BIG, "archive: more than 5 members");
	/* As many as are allowed are. */
	o.max_members = 6;
	raw_start(&r, 1 << 20, true);
	raw_add_some(&r, 6, AE_IFDIR, NULL, 0);
	raw_refused(&r, &o, -EINVAL, "archive: no members");
	o.max_members = 0;
	o.max_json = 10;
	raw_start(&r, 1 << 20, true);
	raw_add(&r, "kelf-0.json", AE_IFREG, NULL, false, kelf_json, sizeof(kelf_json) - 1);
	raw_refused(&r, &o, -E2BIG, "bytes of JSON, the limit is 10");
	/* Before it takes memory. */
	o.max_json = 1 << 20;
	raw_start(&r, 1 << 20, true);
	raw_add(&r, "kelf-0.json", AE_IFREG, NULL, false, zeros, 8 << 20);
	largest = 0;
	raw_refused(&r, &o, -E2BIG, "kelf-0.json: 8388608 bytes of JSON, the limit is 1048576");
	assert_true(largest < 8 << 20);
	o.max_json = 0;
	o.max_values = 4;
	raw_start(&r, 1 << 20, true);
	raw_add(&r, "kelf-0.json", AE_IFREG, NULL, false, kelf_json, sizeof(kelf_json) - 1);
	raw_refused(&r, &o, -E2BIG, "kelf-0.json: more than 4 values");
	/* By default: 30 MiB of empty lists would take more than a GiB. */
	for (size_t i = 0; i < size / 2; i++)
		zeros[i] = "[],"[i % 3];
	zeros[0] = '[';
	raw_start(&r, 1 << 20, true);
	raw_add(&r, "kelf-0.json", AE_IFREG, NULL, false, zeros, size / 2);
	o.max_values = 0;
	raw_refused(&r, &o, -E2BIG, "kelf-0.json: more than 8388608 values");
	free(zeros);
}

/* Each kind of value counts, and as many as are allowed are read. */
static void test_value_limit(void **state)
{
	static const struct {
		const char *text;
		uint32_t values;
	} rows[] = {
		{ "{}", 2 }, { "{\"a\":5}", 3 }, { "{\"a\":5,\"b\":6}", 5 },
		{ "{\"a\":[]}", 4 }, { "{\"a\":[5]}", 4 }, { "{\"a\":[5,6,7]}", 6 },
		{ "{\"a\":{}}", 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct neuron_neff_opts o = { .size = sizeof(o), .max_values = rows[i].values };
		struct raw r;

		print_message("# %s\n", rows[i].text);
		raw_start(&r, 1 << 16, true);
		raw_add(&r, "kelf-0.json", AE_IFREG, NULL, false, rows[i].text,
			strlen(rows[i].text));
		raw_refused(&r, &o, -EINVAL, "graphs: missing");
		o.max_values--;
		raw_start(&r, 1 << 16, true);
		raw_add(&r, "kelf-0.json", AE_IFREG, NULL, false, rows[i].text,
			strlen(rows[i].text));
		raw_refused(&r, &o, -E2BIG, "values");
	}
}

/* A plain tar whose member claims to have @octal bytes. */
static void claim_refused(const char *octal)
{
	uint8_t tar[2048] = { 0 }, *bytes;
	unsigned int sum = 0;
	size_t size;

	strcpy((char *)tar, "kelf-0.json");
	strcpy((char *)tar + 100, "0000644");
	strcpy((char *)tar + 108, "0000000");
	strcpy((char *)tar + 116, "0000000");
	memcpy(tar + 124, octal, 12);
	strcpy((char *)tar + 136, "00000000000");
	tar[156] = '0';
	memcpy(tar + 257, "ustar\00000", 8);
	memset(tar + 148, ' ', 8);
	for (int i = 0; i < 512; i++)
		sum += tar[i];
	snprintf((char *)tar + 148, 8, "%06o", sum);
	bytes = wrap(tar, sizeof(tar), &size);
	refused(bytes, size, NULL, -EINVAL, "kelf-0.json: archive ends inside this member");
	free(bytes);
}

/* Nothing that large is allocated. */
static void test_claimed_size(void **state)
{
	(void)state;
	claim_refused("37777777777");	/* 8 GiB - 1 */
	claim_refused("00004000000");	/* 1 MiB */
}

/* Data that compresses well is not suspicious: weights may be zero. */
static void test_L4_zeros(void **state)
{
	static const size_t zeros = 20u << 20;
	struct neuron_neff_opts o = { .size = sizeof(o) };
	const struct neuron_neff_var *v;
	char *data = calloc(1, zeros);
	struct neuron_neff *neff;
	struct fixture f;
	uint8_t *bytes;
	size_t size;

	(void)state;
	assert_non_null(data);
	fixture_init(&f);
	set_file(&f, "sg00/raw.bin", data, zeros);
	edit(&f, DEF, "\"var_id\": 8, \"size\": 64", "\"var_id\": 8, \"size\": 20971520");
	bytes = build(&f, true, &size);
	neff = accepted(bytes, size);
	v = neuron_neff_find_var(&neff->subgraphs[0], "r");
	assert_int_equal(v->data_size, zeros);
	assert_memory_equal(v->data, data, zeros);
	neuron_neff_close(neff);
	o.max_total = zeros;
	refused(bytes, size, &o, -E2BIG, "archive: unpacks to more than the limit of 20971520");
	free(bytes);
	free(data);
	fixture_free(&f);
}

/* A large member takes memory if something names it, and only then. */
static void test_C5_unnamed(void **state)
{
	static const size_t big = 64u << 20;
	struct neuron_neff_opts o = { .size = sizeof(o), .max_total = 65u << 20 };
	struct neuron_neff *neff = NULL;
	char *data = calloc(1, big);
	struct fixture f;

	(void)state;
	assert_non_null(data);
	fixture_init(&f);
	set_file(&f, "debug_info/x.dbg", data, big);
	for (int gzip = 0; gzip < 2; gzip++) {
		size_t size;
		uint8_t *bytes = build(&f, gzip, &size);

		largest = 0;
		assert_int_equal(neuron_neff_open(bytes, size, &o, &neff), 0);
		assert_in_range(largest, 1, 1 << 20);
		check_fixture(neff);
		neuron_neff_close(neff);
		/* The limit counts it, and holds before anything is taken. */
		largest = 0;
		o.max_total = 63u << 20;
		refused(bytes, size, &o, -E2BIG, "unpacks to more than the limit of 66060288");
		o.max_total = 65u << 20;
		assert_in_range(largest, 1, 1 << 20);
		free(bytes);
	}
	free(data);
	fixture_free(&f);
}

/* A large member that a description before it names is not inflated again. */
static void test_inflated_once(void **state)
{
	static const size_t big = 4u << 20;
	const struct neuron_neff_var *v;
	char *data = malloc(big);
	struct neuron_neff *neff;
	struct fixture f;
	void *bytes;
	size_t size;

	(void)state;
	assert_non_null(data);
	memset(data, 0x5a, big);
	fixture_init(&f);
	/* Before def.json in the order of names. */
	set_file(&f, "sg00/Raw.bin", data, big);
	edit(&f, DEF, "\"raw.bin\"", "\"Raw.bin\"");
	edit(&f, DEF, "\"var_id\": 8, \"size\": 64", "\"var_id\": 8, \"size\": 4194304");
	bytes = build(&f, true, &size);
	inflations = 0;
	neff = accepted(bytes, size);
	assert_int_equal(inflations, 1);
	v = neuron_neff_find_var(&neff->subgraphs[0], "r");
	assert_int_equal(v->data_size, big);
	assert_memory_equal(v->data, data, big);
	neuron_neff_close(neff);
	free(bytes);
	free(data);
	fixture_free(&f);
}

/* Members that come when the first 16 MiB are there are not compared with all before them. */
static void test_many_members(void **state)
{
	enum { NR = 2000 };
	static const size_t big = 1u << 20;
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	struct neuron_neff_header header = { .size = sizeof(header) };
	struct neuron_neff *neff = NULL;
	char *data = calloc(1, big), name[32];
	void *bytes;
	size_t size;

	(void)state;
	assert_non_null(data);
	assert_int_equal(neuron_neff_writer_add(w, "kelf-0.json", kelf_json, strlen(kelf_json)), 0);
	assert_int_equal(neuron_neff_writer_add(w, DEF, "{\"var\": {}}", 11), 0);
	for (unsigned int i = 0; i < NR; i++) {
		sprintf(name, "sg00/%04u.json", i);
		assert_int_equal(neuron_neff_writer_add(w, name, " ", 1), 0);
		sprintf(name, "small%04u", i);
		assert_int_equal(neuron_neff_writer_add(w, name, "x", 1), 0);
	}
	for (unsigned int i = 0; i < 16; i++) {
		sprintf(name, "big%02u", i);
		/* With the descriptions exactly so much. */
		assert_int_equal(neuron_neff_writer_add(w, name, data, i ? big : big -
							strlen(kelf_json) - 11 - NR), 0);
	}
	assert_int_equal(neuron_neff_writer_finish(w, &header, true, &bytes, &size), 0);
	neuron_neff_writer_free(w);
	name_looks = searches = 0;
	assert_int_equal(neuron_neff_open(bytes, size, NULL, &neff), 0);
	assert_in_range(name_looks, 1, 4 * NR);
	/* Of descriptions not more is searched than was unpacked, however short they are. */
	assert_in_range(searches, 1, 16 * big / 64);
	neuron_neff_close(neff);
	free(bytes);
	free(data);
}

/* Of what the node wants it is told by the member behind it, and by none with a known name. */
static void add_late_node(struct raw *r, unsigned int n)
{
	char name[32], text[256];

	for (unsigned int i = 0; i < 6; i++) {
		static const char *const names[] = { "t%u", "v%u.x", "e%u.x", "c%u", "d%u.x" };
		static const char *const texts[] = {
			"table",
			"{\"dve_tables\": [{\"control_table\": \"t%1$u\","
			" \"datapath_table\": \"t%1$u\", \"opcode_table\": \"t%1$u\"}]}",
			"{}", "code",
			"{\"dve\": \"v%1$u.x\", \"sp\": \"e%1$u.x\", \"sp_instr\": \"c%1$u\", \"var\": {}}",
			"{\"graphs\": [{\"definition\": \"d%1$u.x\"}]}",
		};

		snprintf(name, sizeof(name), i < 5 ? names[i] : "kelf-%u.json", n);
		snprintf(text, sizeof(text), texts[i], n);
		raw_add(r, name, AE_IFREG, NULL, false, text, strlen(text));
	}
}

/* However late what they need comes, the archive is not unpacked for each node, nor for ever. */
static void test_late_nodes(void **state)
{
	enum { NR = 8 };
	struct neuron_neff_opts o = { .size = sizeof(o), .keep = true, .max_total = 30u << 20 };
	static const size_t big = 1u << 20;
	char *data = calloc(1, big);
	struct neuron_neff *neff, *node;
	uint8_t *bytes;
	struct raw r;
	size_t size;

	(void)state;
	assert_non_null(data);
	raw_start(&r, 1 << 20, true);
	/* What the first pass takes unasked. */
	raw_add_some(&r, 17, AE_IFREG, data, big);
	for (unsigned int n = 0; n < NR; n++)
		add_late_node(&r, n);
	assert_int_equal(archive_write_close(r.a), ARCHIVE_OK);
	archive_write_free(r.a);
	bytes = wrap(r.buf, r.used, &size);
	inflations = 0;
	assert_int_equal(neuron_neff_open(bytes, size, &o, &neff), 0);
	for (o.node = 1; o.node < NR; o.node++) {
		assert_int_equal(neuron_neff_open_node(neff, &o, &node), 0);
		assert_int_equal(node->subgraphs[0].engines[NEURON_NEFF_DVE].tables[2].size, 5);
		neuron_neff_close(node);
	}
	/* The list, the kelf, its graphs, their engines, tables of these. */
	assert_int_equal(inflations, 5);
	neuron_neff_close(neff);
	/* Five times 17 MiB are more than four times this. */
	o.node = 0;
	o.max_total = 20u << 20;
	refused(bytes, size, &o, -E2BIG,
		"archive: has to be unpacked too often: to more than 4 times the limit of 20971520 bytes");
	free(bytes);
	free(r.buf);
	free(data);
}

static void test_trailing_data(void **state)
{
	struct neuron_neff *neff;
	struct fixture f;
	uint8_t *bytes, *copy;
	size_t size;

	(void)state;
	fixture_init(&f);
	bytes = build(&f, true, &size);
	copy = calloc(1, size + 16);
	memcpy(copy, bytes, size);
	put64(copy + 16, size + 16 - 1024);
	/* Padding is harmless, anything else is not. */
	assert_int_equal(neuron_neff_open(copy, size + 16, NULL, &neff), 0);
	neuron_neff_close(neff);
	copy[size + 15] = 1;
	refused(copy, size + 16, NULL, -EINVAL, "archive: data behind the end");
	free(copy);
	free(bytes);
	fixture_free(&f);
}

static void test_missing_members(void **state)
{
	static const struct {
		const char *name;
		const char *what;
	} cases[] = {
		{ "kelf-0.json", "kelf-0.json: missing from the archive" },
		{ "sg00/def.json",
		  "kelf-0.json: graphs[0].definition: 'sg00/def.json' is not in the archive" },
		{ "sg00/SP0.json", "sg00/def.json: sp: 'sg00/SP0.json' is not in the archive" },
		{ "sg00/SP0.bin", "sg00/def.json: sp_instr: 'sg00/SP0.bin' is not in" },
		{ "sg00/w.npy", "sg00/def.json: var.w.file_name: 'sg00/w.npy' is not in" },
		{ "sg00/d.bin", "dve_tables[0].datapath_table: 'sg00/d.bin' is not in" },
	};
	struct fixture f;

	(void)state;
	fixture_init(&f);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		get_file(&f, cases[i].name)->absent = true;
		refused_fixture(&f, -EINVAL, cases[i].what);
		get_file(&f, cases[i].name)->absent = false;
	}
	fixture_free(&f);
}

/* ---- JSON ---- */


static const struct edit_case {
	const char *file, *from, *to;
	int err;
	const char *what;
} edits[] = {
	/* not JSON, or other types */
	{ "kelf-0.json", "{\"graphs\"", "{\"graphs\":", -EINVAL, "kelf-0.json: line 1" },
	{ "kelf-0.json", "\"graphs\": [{\"definition\": \"sg00/def.json\", \"name\": \"sg00\"}]",
	  "\"graphs\": {}", -EINVAL, "kelf-0.json: graphs: is an object, not a list" },
	{ "kelf-0.json", "{\"definition\": \"sg00/def.json\", \"name\": \"sg00\"}", "",
	  -EINVAL, "graphs: no graphs" },
	{ "kelf-0.json", "{\"definition\": \"sg00/def.json\", \"name\": \"sg00\"}", "1",
	  -EINVAL, "graphs[0]: is an integer" },
	{ "kelf-0.json", "{\"definition\": \"sg00/def.json\", \"name\": \"sg00\"}", "{},{},{}",
	  -EOPNOTSUPP, "3 graphs" },
	{ "kelf-0.json", "\"sg00/def.json\"", "\"../def.json\"", -EINVAL,
	  "graphs[0].definition: '../def.json': path leaves" },
	{ "kelf-0.json", "\"sg00/def.json\"", "\"/sg00/def.json\"", -EINVAL, "absolute path" },
	{ "kelf-0.json", "\"sg00/def.json\"", "7", -EINVAL, "definition: is an integer" },
	{ "kelf-0.json", "\"0.5\"", "0.5", -EINVAL, "version: is a real number" },
	{ DEF, "\"var\": {", "\"var\": 1, \"vars\": {", -EINVAL, "def.json: var: is an integer" },
	{ DEF, "\"var\": {", "\"vars\": {", -EINVAL, "def.json: var: missing" },
	{ DEF, "\"dma_queue\": {", "\"dma_queue\": [], \"q\": {", -EINVAL,
	  "dma_queue: is a list, not an object" },
	{ DEF, "\"sp\": \"SP0.json\"", "\"sp\": null", -EINVAL, "def.json: sp: is null" },
	{ DEF, "\"sp\": \"SP0.json\"", "\"sp\": \"../../SP0.json\"", -EINVAL, "path leaves" },
	{ DEF, "\"sp\": \"SP0.json\"", "\"sp\": \"/SP0.json\"", -EINVAL, "absolute path" },
	{ DEF, "\"name\": \"definition\"", "\"sp\": \"x\"", -EINVAL, "duplicate" },

	/* variables */
	{ DEF, "\"tmp-buf\"", "\"heap\"", -EOPNOTSUPP, "var.t.type: unknown type 'heap'" },
	{ DEF, "\"type\": \"tmp-buf\", ", "", -EINVAL, "var.t.type: missing" },
	{ DEF, "\"var_id\": 4, ", "", -EINVAL, "var.t.var_id: missing" },
	{ DEF, "\"var_id\": 4,", "\"var_id\": \"4\",", -EINVAL, "var_id: is a string" },
	{ DEF, "\"var_id\": 4,", "\"var_id\": -4,", -EINVAL, "var_id: -4 is not in" },
	{ DEF, "\"var_id\": 4,", "\"var_id\": 4294967296,", -EINVAL, "var_id: 4294967296" },
	{ DEF, "\"var_id\": 4,", "\"var_id\": 99999999999999999999,", -EINVAL,
	  "sg00/def.json: var.t.var_id: is more than 9223372036854775807" },
	{ DEF, "\"alignment\": 64", "\"alignment\": -99999999999999999999", -EINVAL,
	  "sg00/def.json: var.y.alignment: is less than -9223372036854775808" },
	{ SP, "\"from_steps\": [1, 32]", "\"from_steps\": [1, 9223372036854775808]", -EINVAL,
	  "sg00/SP0.json: dma[0].desc[0].from_steps[1]: is more than" },
	{ SP, "\"scale\": 0.25", "\"scale\": 1e999", -EINVAL, "real number overflow" },
	{ DEF, "\"var_id\": 4,", "\"var_id\": 5,", -EINVAL, "is also the id of" },
	{ DEF, "\"var_id\": 4, \"size\": 4096", "\"var_id\": 4, \"size\": 4096.0", -EINVAL,
	  "var.t.size: is a real number" },
	{ DEF, "\"var_id\": 4, \"size\": 4096", "\"var_id\": 4, \"size\": -1", -EINVAL,
	  "var.t.size: -1 is not in" },
	{ DEF, "\"var_id\": 4, \"size\": 4096", "\"var_id\": 4, \"size\": 0", -EINVAL,
	  "var.t.size: 0 is not in" },
	{ DEF, "\"alignment\": 64", "\"alignment\": 48", -EINVAL,
	  "sg00/def.json: var.y.alignment: 48 is not a power of two" },
	{ DEF, "\"alignment\": 64", "\"alignment\": []", -EINVAL, "alignment: is a list" },
	{ DEF, "\"alignment\": 64", "\"fabric_path\": \"side\"", -EOPNOTSUPP,
	  "var.y.fabric_path: unknown path 'side'" },
	{ DEF, ", \"file_name\": \"w.npy\"", "", -EINVAL, "var.w.file_name: missing" },
	{ DEF, "\"w.npy\"", "\"../sg00/w.npy\"", -EINVAL, "path leaves" },
	{ DEF, "\"var_id\": 3, \"size\": 64", "\"var_id\": 3, \"size\": 63", -EINVAL,
	  "'w', which has 63 bytes" },
	{ DEF, "\"var_id\": 8, \"size\": 64", "\"var_id\": 8, \"size\": 63", -EINVAL,
	  "has 64 bytes, the variable 63" },
	/* C6 */
	{ DEF, "\"var_id\": 8, \"size\": 64", "\"var_id\": 8, \"size\": 65", -EINVAL,
	  "sg00/def.json: var.r.file_name: 'sg00/raw.bin' has only 64 of the 65 bytes" },
	{ DEF, "\"var_id\": 3, \"size\": 64", "\"var_id\": 3, \"size\": 65", -EINVAL,
	  "sg00/def.json: var.w.file_name: 'sg00/w.npy' has only 64 of the 65 bytes" },
	{ DEF, "\"backing_variable_off\": 512", "\"backing_variable_off\": 9223372036854775807",
	  -EINVAL, "var.v: offset 9223372036854775807 plus size 128" },
	{ DEF, "\"backing_variable_off\": 512, ", "", -EINVAL, "backing_variable_off: missing" },
	{ DEF, "\"var_id\": 0, \"size\": 4096", "\"var_id\": 0, \"size\": 33554433", -EINVAL,
	  "var.sbuf: offset 0 plus size 33554433" },
	{ DEF, "\"var_id\": 0, \"size\": 4096",
	  "\"var_id\": 0, \"size\": 0, \"backing_variable_off\": 33554432", -EINVAL, "var.sbuf" },
	{ DEF, "\"referenced_var_id\": 4", "\"referenced_var_id\": 44", -EINVAL,
	  "var.p.referenced_var_id: no variable has id 44" },
	{ DEF, ", \"referenced_var_id\": 4", "", -EINVAL, "referenced_var_id: missing" },
	{ DEF, "\"var_id\": 6, \"size\": 8", "\"var_id\": 6, \"size\": 7", -EINVAL,
	  "a pointer needs 8 bytes" },
	{ DEF, "\"list\": [4, 5]", "\"list\": [4, 50]", -EINVAL, "var.g.list[1]: no variable" },
	{ DEF, "\"list\": [4, 5]", "\"list\": [4, 5, 6]", -EINVAL, "3 addresses do not fit" },
	{ DEF, "\"list\": [4, 5]", "\"list\": [4, \"x\"]", -EINVAL, "list[1]: is a string" },
	{ DEF, "\"x\": {", "\"\": {", -EINVAL, "variable without a name" },

	/* queue sets */
	{ DEF, "\"num_queues\": 2", "\"num_queues\": 17", -EINVAL,
	  "dma_queue.qIn.num_queues: 17 is not in 1..16" },
	{ DEF, "\"num_queues\": 2", "\"num_queues\": 0", -EINVAL, "0 is not in 1..16" },
	{ DEF, "\"semaphore\": 9}", "\"semaphore\": 256}", -EINVAL, "256 is not in 0..255" },
	{ DEF, "\"semaphore_set\": [1, 2]", "\"semaphore_set\": [1, 256]", -EINVAL,
	  "semaphore_set[1]: 256" },
	{ DEF, "\"queue_instances\": [\"a\", \"b\"]", "\"queue_instances\": [\"a\", 2]", -EINVAL,
	  "queue_instances[1]: is an integer, not a string" },
	{ DEF, "\"pinned\": true", "\"pinned\": 1", -EINVAL, "pinned: is an integer" },
	{ DEF, "\"owner\": \"sp\"", "\"owner\": {}", -EINVAL, "owner: is an object" },

	/* DMA entries */
	{ SP, "{\"dma\": [", "{\"dma\": [5, ", -EINVAL, "dma[0]: is an integer" },
	{ SP, "\"id\": 7, ", "", -EINVAL, "SP0.json: dma[0].id: missing" },
	{ SP, "\"id\": 3, ", "\"id\": -1, ", -EINVAL, "dma[1].id: -1" },
	{ SP, "\"queue\": \"qIn\"", "\"queue\": \"qOut\"", -EINVAL,
	  "dma[0].queue: no queue set is called 'qOut'" },
	{ SP, "\"queue\": \"qIn\", ", "", -EINVAL, "dma[0].queue: missing" },
	{ SP, "\"instance_name\": \"b\"", "\"instance_name\": \"c\"", -EINVAL,
	  "no queue set has an instance 'c'" },
	{ SP, "\"semaphore\": 9", "\"semaphore\": 256", -EINVAL, "dma[0].semaphore: 256" },
	{ SP, "\"event\": 3", "\"event\": -3", -EINVAL, "dma[0].event: -3" },
	{ SP, "\"remote_semaphores\": [4, 5]", "\"remote_semaphores\": [999]", -EINVAL,
	  "remote_semaphores[0]: 999" },
	{ SP, "\"section_start_desc\": true", "\"section_start_desc\": \"yes\"", -EINVAL,
	  "not a boolean" },

	/* transfers */
	{ SP, "\"from\": \"x\"", "\"from\": \"z\"", -EINVAL,
	  "dma[0].desc[0].from: no variable is called 'z'" },
	{ SP, "\"to\": \"sbuf\", ", "", -EINVAL, "dma[0].desc[0].to: missing" },
	{ SP, "\"to_off\": 3968", "\"to_off\": 3969", -EINVAL,
	  "desc[0].to: byte 4096 is outside 'sbuf', which has 4096 bytes" },
	{ SP, "\"from_off\": 0", "\"from_off\": 17", -EINVAL, "byte 256 is outside 'x'" },
	{ SP, "\"from_off\": 0", "\"from_off\": 9223372036854775807", -EINVAL,
	  "is outside 'x'" },
	{ SP, "\"from_off\": 0", "\"from_off\": -1", -EINVAL, "from_off: -1" },
	{ SP, "\"from_steps\": [1, 32]", "\"from_steps\": [1, 9223372036854775807]", -EINVAL,
	  "offset and steps overflow" },
	{ SP, "\"from_steps\": [1, 32]", "\"from_steps\": [1, 4611686018427387904]", -EINVAL,
	  "offset and steps overflow" },
	{ SP, "\"from_steps\": [1, 32]", "\"from_steps\": [1, 2635249153387078802]", -EINVAL,
	  "from" },
	{ SP, "\"from_steps\": [1, 32]", "\"from_steps\": [5, 32]", -EINVAL, "is outside 'x'" },
	{ SP, "\"from_steps\": [1, 32]", "\"from_steps\": [1229782938247303441, 32]", -EINVAL,
	  "overflow" },
	{ SP, "\"to_steps\": [1],   \"to_sizes\": [128]",
	  "\"to_steps\": [0], \"to_sizes\": [128]", -EINVAL,
	  "to_steps[0]: 0 writes the same bytes 128 times" },
	{ SP, "\"from_steps\": [1, 32]", "\"from_steps\": [1]", -EINVAL, "1 steps for 2 sizes" },
	{ SP, "\"from_steps\": [1, 32], ", "", -EINVAL, "only one of from_sizes and from_steps" },
	{ SP, "\"from_steps\": [1, 32]", "\"from_steps\": [1, -32]", -EINVAL, "-32 is not in" },
	{ SP, "\"from_sizes\": [16, 8]", "\"from_sizes\": [16, 0]", -EINVAL,
	  "from_sizes[1]: 0 is not in" },
	{ SP, "\"from_sizes\": [16, 8]", "\"from_sizes\": [4294967296, 4294967296]", -EINVAL,
	  "from_sizes: product overflows" },
	{ SP, "\"from_sizes\": [16, 8]", "\"from_sizes\": [16, 7]", -EINVAL,
	  "112 bytes from 'x' to 128 in 'sbuf'" },
	{ SP, "\"from_steps\": [1, 32],   \"from_sizes\": [16, 8]",
	  "\"from_steps\": [1,1,1,1,1], \"from_sizes\": [1,1,1,1,1]", -EINVAL,
	  "from_sizes: 5 dimensions" },
	{ SP, "\"from_sizes\": [16, 8]", "\"from_sizes\": [\"16\", 8]", -EINVAL,
	  "from_sizes[0]: is a string" },
	{ SP, "\"to_steps\": [1],   \"to_sizes\": [128]",
	  "\"to_steps\": [1, 0], \"to_sizes\": [64, 2]", -EINVAL,
	  "to_steps[1]: 0 writes the same bytes 2 times" },
	{ SP, "\"to\": \"sbuf\"", "\"to\": \"w\"", -EINVAL, "" },
	{ SP, "\"to\": \"t\"", "\"to\": \"g\", \"to_steps\": [1], \"to_sizes\": [16]", -EINVAL, "" },
	{ SP, "\"from_sizes\": [64]", "\"from_sizes\": [62]", -EINVAL,
	  "62 bytes are no multiple of a float32" },
	{ SP, "\"from_sizes\": [16, 8], \"to\": \"sbuf\", \"to_off\": 3968, "
	  "\"to_steps\": [1],   \"to_sizes\": [128]",
	  "\"from_sizes\": [15, 7], \"to\": \"sbuf\", \"to_dtype\": \"uint32\"", -EINVAL,
	  "105 bytes are no multiple of its type" },
	{ SP, "\"to_dtype\": \"bfloat16\"",
	  "\"to_dtype\": \"bfloat16\", \"to_steps\": [1], \"to_sizes\": [34]", -EINVAL,
	  "16 elements from 'w' to 17 in 't'" },
	{ SP, "\"from_steps\": [1], \"from_sizes\": [64], ", "", -EINVAL, "" },
	{ SP, "\"op\": \"add\"", "\"op\": \"copy\"", -EINVAL, "2 sources, the operation takes one" },
	{ SP, "\"from_off\": 64", "\"from_off\": 65", -EINVAL, "byte 128 is outside 'v'" },
	{ SP, "{\"from\": \"t\", \"from_dtype\": \"float32\"},", "3,", -EINVAL,
	  "from_arr[0]: is an integer" },
	{ SP, "\"constant\": 1.5, ", "", -EINVAL, "only one of constant and constant_dtype" },
	{ SP, "\"constant_dtype\": \"float32\"", "\"constant_dtype\": \"int8\"", -EINVAL,
	  "constant_dtype: is not float32" },
	{ SP, "\"scale\": 0.25", "\"scale\": \"big\"", -EINVAL, "scale: is a string" },
	{ SP, "[2, 2, 3, 2]", "[2, 2, 3, 3]", -EINVAL, "72 bytes, the source has 48" },
	{ SP, "[2, 2, 3, 2]", "[2, 2, 3]", -EINVAL, "transpose_shape: 3 dimensions, not 4" },
	{ SP, "[2, 2, 3, 2]", "[4294967296, 4294967296, 1, 1]", -EINVAL, "product overflows" },
	{ SP, "\"transpose_element_size\": 2", "\"transpose_element_size\": 0", -EINVAL,
	  "0 is not in 1..16" },

	/* engines and the list of inputs and outputs */
	{ "sg00/Activation0.json", "\"dma\": []", "\"dma\": {}", -EINVAL, "dma: is an object" },
	{ "sg00/Activation0.json", "\"tanh\"", "5", -EINVAL, "activation_function_sets[1]" },
	{ "sg00/DVE0.json", "\"c.bin\"", "\"../../c\"", -EINVAL, "path leaves" },
	{ "sg00/DVE0.json", "\"control_table\": \"c.bin\", ", "", -EINVAL,
	  "dve_tables[0].control_table: missing" },
	{ "neff.json", "\"inputs\": [", "\"inputs\": [[], ", -EINVAL, "inputs[0]: is a list" },
	{ "neff.json", "\"name\": \"x\"", "\"name\": \"y\"", -EINVAL, "no input is called 'y'" },
	{ "neff.json", "[4, 16]", "[4, 17]", -EINVAL, "272 bytes, variable 'x' has 256" },
	{ "neff.json", "[4, 16]", "[4294967295, 4294967295, 4294967295]", -EINVAL,
	  "inputs[0].shape: product overflows" },
	{ "neff.json", "[4, 16]", "[]", -EINVAL, "0 dimensions" },
	{ "neff.json", "[4, 16]", "[1,1,1,1,1,1,1,1,64]", -EINVAL, "9 dimensions" },
};

static void test_json(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		const struct edit_case *c = &edits[i];
		struct fixture f;

		fixture_init(&f);
		edit(&f, c->file, c->from, c->to);
		print_message("# %s: %s -> %s\n", c->file, c->from, c->to);
		refused_fixture(&f, c->err, c->what);
		fixture_free(&f);
	}
}

/* With leave, the rest of a constant is zero. */
static void test_C6_short_constants(void **state)
{
	struct neuron_neff_opts o = { .size = sizeof(o), .short_constants = true };
	struct neuron_neff *neff;
	struct fixture f;
	size_t size;
	void *bytes;

	(void)state;
	fixture_init(&f);
	edit(&f, DEF, "\"var_id\": 8, \"size\": 64", "\"var_id\": 8, \"size\": 65");
	bytes = build(&f, true, &size);
	assert_int_equal(neuron_neff_open(bytes, size, &o, &neff), 0);
	assert_int_equal(neuron_neff_find_var(&neff->subgraphs[0], "r")->data_size, 64);
	neuron_neff_close(neff);
	free(bytes);
	fixture_free(&f);
}

/* Obstacles to execution are named, and the file is read all the same. */
static void test_L10_obstacles(void **state)
{
	static const struct edit_case cases[] = {
		{ DEF, "\"type\": \"in\"", "\"type\": \"sideways\"", 0,
		  "sg00/def.json: dma_queue.qIn.type: unknown type 'sideways'" },
		{ SP, "\"to\": \"t\"", "\"to\": \"x\"", 0,
		  "sg00/SP0.json: dma[1].desc.to: 'x' is an input and written" },
		{ SP, "\"op\": \"add\"", "\"op\": \"scatter\"", 0,
		  "sg00/SP0.json: dma[2].desc[0].op: unknown operation 'scatter'" },
		{ SP, "\"from_dtype\": \"float32\",   \"from_steps\"",
		  "\"from_dtype\": \"float31\", \"from_steps\"", 0,
		  "sg00/SP0.json: dma[1].desc.from_dtype: unknown type 'float31'" },
		{ SP, "\"to_dtype\": \"bfloat16\"", "\"to_dtype\": \"float4\"", 0,
		  "sg00/SP0.json: dma[1].desc.to_dtype: unknown type 'float4'" },
		{ SP, "\"constant_dtype\": \"float32\"", "\"constant_dtype\": \"float9\"", 0,
		  "constant_dtype: unknown type 'float9'" },
		{ "neff.json", "\"int16\"", "\"int17\"", 0,
		  "neff.json: outputs[0].dtype: unknown type 'int17'" },
	};

	(void)state;
	for (size_t i = 0; i <= sizeof(cases) / sizeof(cases[0]); i++) {
		const struct edit_case *c = &cases[i];
		bool header = i == sizeof(cases) / sizeof(cases[0]);
		const char *what = header ? "header: unknown feature_bits 0x8000000000000001" : c->what;
		struct neuron_neff *neff;
		struct fixture f;
		size_t size;
		void *bytes;

		fixture_init(&f);
		if (header)
			f.header.feature_bits = 1ull << 63 | 1;
		else
			edit(&f, c->file, c->from, c->to);
		bytes = build(&f, true, &size);
		neff = accepted(bytes, size);
		free(bytes);
		assert_false(neff->executable);
		assert_true(neff->nr_obstacles >= 1);
		if (!strstr(neff->obstacles[0], what))
			fail_msg("'%s', not '%s'", neff->obstacles[0], what);
		/* Shapes and types are there all the same. */
		assert_int_equal(neuron_neff_find_var(&neff->subgraphs[0], "x")->dtype,
				 NEURON_NEFF_DT_FLOAT32);
		assert_int_equal(neuron_neff_find_var(&neff->subgraphs[0], "x")->ndim, 2);
		assert_int_equal(neuron_neff_find_var(&neff->subgraphs[0], "y")->shape[0], 128);
		neuron_neff_close(neff);
		fixture_free(&f);
	}
}

static void test_json_shapes(void **state)
{
	static const char *const texts[] = {
		"", "[]", "5", "null", "{", "\"x\"", "{\"a\": \"\\u0000\"}", "{\"a\": \"\xff\"}",
		"{} trailing",
	};
	static const char *const files[] = { "kelf-0.json", DEF, SP, "neff.json" };
	char *deep = malloc(100001);
	struct fixture f;

	(void)state;
	assert_non_null(deep);
	memset(deep, '[', 100000);
	deep[100000] = '\0';
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
			fixture_init(&f);
			set_text(&f, files[i], texts[t]);
			refused_fixture(&f, -EINVAL, files[i]);
			fixture_free(&f);
		}
		fixture_init(&f);
		set_text(&f, files[i], deep);
		refused_fixture(&f, -EINVAL, "maximum parsing depth");
		fixture_free(&f);
	}
	free(deep);
}

static void test_large_counts(void **state)
{
	/* Sources beyond 16 and an input whose name is too long for the runtime. */
	char text[4096], *p = text;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	p += sprintf(p, "\"from_arr\": [");
	for (int i = 0; i < 17; i++)
		p += sprintf(p, "{\"from\": \"t\"}%s", i < 16 ? "," : "],");
	edit(&f, SP, "\"op\": \"max\", \"from\": \"t\",", "\"op\": \"max\", @");
	edit(&f, SP, "@", text);
	refused_fixture(&f, -EINVAL, "from_arr: 17 sources, not 1 to 16");
	fixture_free(&f);

	fixture_init(&f);
	memset(text, 0, sizeof(text));
	text[0] = '"';
	memset(text + 1, 'n', 256);
	strcpy(text + 257, "\": {\"type\": \"output\", \"var_id\": 90, \"size\": 1}, \"x\": {");
	edit(&f, DEF, "\"x\": {", text);
	refused_fixture(&f, -EINVAL, "name has more than 255 bytes");
	fixture_free(&f);
}

/* ---- .npy ---- */

static const struct {
	const char *dict;
	int err;
	const char *what;
} npy_refused[] = {
	{ "", -EINVAL, "sg00/w.npy: bad header" },
	{ "{", -EINVAL, "bad header" },
	{ "{'descr': '<f4', 'fortran_order': False}", -EINVAL, "bad header" },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4)} x", -EINVAL, "bad header" },
	{ "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (16,)}", -EINVAL,
	  "bad header" },
	{ "{'descr': '<f4', 'fortran_order': 0, 'shape': (16,)}", -EINVAL, "bad header" },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (-16,)}", -EINVAL, "bad header" },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (16,), 'x': 1}", -EINVAL,
	  "bad header" },
	{ "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (16,)}", -EINVAL,
	  "bad header" },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
	  -EINVAL, "bad header" },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 5)}", -EINVAL,
	  "64 bytes of elements, its shape says 80" },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
	  -EINVAL, "overflows" },
	{ "{'descr': '<f4', 'fortran_order': True, 'shape': (4, 4)}", -EOPNOTSUPP,
	  "Fortran order" },
	{ "{'descr': '>f4', 'fortran_order': False, 'shape': (4, 4)}", -EOPNOTSUPP,
	  "element type '>f4'" },
	{ "{'descr': '|O8', 'fortran_order': False, 'shape': (8,)}", -EOPNOTSUPP,
	  "element type '|O8'" },
	{ "{'descr': '<f0', 'fortran_order': False, 'shape': (8,)}", -EOPNOTSUPP, "'<f0'" },
	/* The longest text that there is room for, and one more. */
	{ "{'descr': '<f3456789abcdef', 'fortran_order': False, 'shape': (8,)}", -EOPNOTSUPP,
	  "element type '<f3456789abcdef'" },
	{ "{'descr': '<f3456789abcdef0', 'fortran_order': False, 'shape': (8,)}", -EINVAL,
	  "bad header" },
	{ "{'0123456789abcdef': 1, 'descr': '<f4', 'fortran_order': False, 'shape': (16,)}",
	  -EINVAL, "bad header" },
};

static const char *const npy_accepted[] = {
	"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 16)}",
	"{\"shape\": (16L,), \"descr\": \"<i4\", \"fortran_order\": False}",
	"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 4,), }",
	"{'descr': '|V2', 'fortran_order': False, 'shape': (32,), }",
	"{'descr':'|u1','fortran_order':False,'shape':(1,1,1,1,1,1,1,1,1,64)}",
};

static void test_npy(void **state)
{
	char npy[512], data[64] = "elements";
	struct neuron_neff *neff;
	struct fixture f;
	size_t n, size;
	void *bytes;

	(void)state;
	fixture_init(&f);
	for (size_t i = 0; i < sizeof(npy_refused) / sizeof(npy_refused[0]); i++) {
		n = make_npy(npy, npy_refused[i].dict, data, sizeof(data));
		set_file(&f, "sg00/w.npy", npy, n);
		refused_fixture(&f, npy_refused[i].err, npy_refused[i].what);
	}
	for (size_t i = 0; i < sizeof(npy_accepted) / sizeof(npy_accepted[0]); i++) {
		const struct neuron_neff_var *w;

		n = make_npy(npy, npy_accepted[i], data, sizeof(data));
		set_file(&f, "sg00/w.npy", npy, n);
		bytes = build(&f, true, &size);
		neff = accepted(bytes, size);
		free(bytes);
		w = neuron_neff_find_var(&neff->subgraphs[0], "w");
		assert_int_equal(w->data_size, 64);
		assert_memory_equal(w->data, data, 64);
		if (i == 3)
			assert_int_equal(w->dtype, NEURON_NEFF_DT_BFLOAT16);
		neuron_neff_close(neff);
	}
	/* Cut off at every length: the header, then the elements. */
	n = make_npy(npy, npy_accepted[0], data, sizeof(data));
	for (size_t cut = 0; cut < n; cut++) {
		set_file(&f, "sg00/w.npy", npy, cut);
		refused_fixture(&f, -EINVAL, "sg00/w.npy: ");
	}
	npy[6] = 4;
	set_file(&f, "sg00/w.npy", npy, n);
	refused_fixture(&f, -EOPNOTSUPP, ".npy version 4");
	npy[6] = 2;	/* four bytes of length, the upper two from the text */
	set_file(&f, "sg00/w.npy", npy, n);
	refused_fixture(&f, -EINVAL, "ends in its header");
	fixture_free(&f);
}

/* ---- instructions ---- */

static void refused_code(const struct neuron_isa_inst *code, size_t size, int err,
			 const char *what)
{
	struct fixture f;

	fixture_init(&f);
	set_file(&f, "sg00/SP0.bin", code, size);
	refused_fixture(&f, err, what);
	fixture_free(&f);
}

static void test_code(void **state)
{
	struct neuron_isa_inst code[5];

	(void)state;
	put_sp_code(code);
	refused_code(code, sizeof(code) - 1, -EINVAL, "sg00/SP0.bin: 319 bytes are no multiple");
	put_sp_code(code);
	code[0].u.prologue.version = htole16(2);
	refused_code(code, sizeof(code), -EOPNOTSUPP, "instruction set version 2");
	put_sp_code(code);
	code[0].u.prologue.engine = htole16(0);
	refused_code(code, sizeof(code), -EINVAL, "instructions of engine 0, used for engine 4");
	put_sp_code(code);
	code[3].magic = 0;
	refused_code(code, sizeof(code), -EINVAL, "instruction 3 is none: second byte is 0x00");
	put_sp_code(code);
	code[2].u.dma.tx_count = htole32(4);
	refused_code(code, sizeof(code), -EINVAL, "instruction 2: no dma entry has id 4");
	put_sp_code(code);
	code[2].u.dma.queue = htole16(1);
	refused_code(code, sizeof(code), -EINVAL, "instruction 2: DMA trigger is not symbolic");
	put_sp_code(code);
	code[2].u.dma.rx_count = htole32(1);
	refused_code(code, sizeof(code), -EINVAL, "instruction 2: DMA trigger is not symbolic");
}

/* ---- memory ---- */

static void test_out_of_memory(void **state)
{
	struct fixture f;
	uint8_t *bytes;
	size_t size;
	long n;

	(void)state;
	fixture_init(&f);
	bytes = build(&f, true, &size);
	for (n = 0;; n++) {
		struct neuron_neff_error e = { .size = sizeof(e) };
		struct neuron_neff_opts o = { .size = sizeof(o), .error = &e };
		struct neuron_neff *neff = NULL;
		int err;

		did_fail = false;
		fail_at = n;
		err = neuron_neff_open(bytes, size, &o, &neff);
		fail_at = -1;
		if (!did_fail) {
			assert_int_equal(err, 0);
			neuron_neff_close(neff);
			break;
		}
		assert_int_equal(err, -ENOMEM);
		assert_int_equal(e.kind, NEURON_NEFF_RESOURCE);
		assert_non_null(strstr(e.text, ": out of host memory"));
		assert_null(neff);
	}
	assert_true(n > 50);
	free(bytes);

	for (n = 0;; n++) {
		struct neuron_neff_writer *w;
		void *out = NULL;
		int err = 0;

		did_fail = false;
		fail_at = n;
		w = neuron_neff_writer_new();
		for (size_t i = 0; w && !err && i < f.nr; i++)
			err = neuron_neff_writer_add(w, f.file[i].name, f.file[i].data,
						     f.file[i].size);
		if (w && !err)
			err = neuron_neff_writer_finish(w, &f.header, true, &out, &size);
		fail_at = -1;
		neuron_neff_writer_free(w);
		free(out);
		if (!did_fail) {
			assert_int_equal(err, 0);
			break;
		}
		assert_true(!w || err == -ENOMEM);
	}
	fixture_free(&f);
}

static void test_names(void **state)
{
	(void)state;
	for (int i = 1; i <= 0xf; i++) {
		enum neuron_neff_dtype d = (enum neuron_neff_dtype)i;

		assert_int_equal(neuron_neff_dtype_parse(neuron_neff_dtype_name(d)), d);
		assert_true(neuron_neff_dtype_size(d) > 0);
	}
	assert_int_equal(neuron_neff_dtype_parse("nonsense"), NEURON_NEFF_DT_UNKNOWN);
	/* The first number behind the last type. */
	assert_int_equal(neuron_neff_dtype_size((enum neuron_neff_dtype)0x10), 0);
	assert_string_equal(neuron_neff_dtype_name((enum neuron_neff_dtype)0x10), "unknown");
	assert_string_equal(neuron_neff_dtype_name(NEURON_NEFF_DT_UNKNOWN), "unknown");
	assert_int_equal(neuron_neff_dtype_size((enum neuron_neff_dtype)99), 0);
	assert_string_equal(neuron_neff_dtype_name((enum neuron_neff_dtype)99), "unknown");
	assert_string_equal(neuron_neff_var_type_name(NEURON_NEFF_VAR_TMP_BUF), "tmp-buf");
	assert_string_equal(neuron_neff_var_type_name(NEURON_NEFF_NR_VAR_TYPES), "unknown");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_borrow),
		cmocka_unit_test(test_minimal_header),
		cmocka_unit_test(test_header_fields),
		cmocka_unit_test(test_header_of_other_size),
		cmocka_unit_test(test_foreign_neff_json),
		cmocka_unit_test(test_queue_words),
		cmocka_unit_test(test_queue_instances),
		cmocka_unit_test(test_two_graphs),
		cmocka_unit_test(test_L3_root),
		cmocka_unit_test(test_vendor_code),
		cmocka_unit_test(test_short_code),
		cmocka_unit_test(test_unpack),
		cmocka_unit_test(test_deterministic),
		cmocka_unit_test(test_writer_refuses),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_opts_of_other_size),
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_text_is_tame),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_corrupt),
		cmocka_unit_test(test_not_an_archive),
		cmocka_unit_test(test_hostile_members),
		cmocka_unit_test(test_sparse_members),
		cmocka_unit_test(test_directories_are_fine),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_bomb),
		cmocka_unit_test(test_value_limit),
		cmocka_unit_test(test_claimed_size),
		cmocka_unit_test(test_L4_zeros),
		cmocka_unit_test(test_C5_unnamed),
		cmocka_unit_test(test_inflated_once),
		cmocka_unit_test(test_many_members),
		cmocka_unit_test(test_late_nodes),
		cmocka_unit_test(test_trailing_data),
		cmocka_unit_test(test_missing_members),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_C6_short_constants),
		cmocka_unit_test(test_L10_obstacles),
		cmocka_unit_test(test_json_shapes),
		cmocka_unit_test(test_large_counts),
		cmocka_unit_test(test_npy),
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests_name("NEFF reader and writer", tests, NULL, NULL);
}

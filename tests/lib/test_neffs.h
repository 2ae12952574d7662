/* SPDX-License-Identifier: GPL-2.0-only */
/* Small NEFFs for tests of the library.  Include after cmocka.h. */
#ifndef TEST_NEFFS_H
#define TEST_NEFFS_H

#include <string.h>

#include <neuron/neff.h>
#include "neuron_isa.h"

struct neff_file {
	const char *name;
	const void *data;
	size_t size;		/* 0: a text */
};

struct neff_bytes {
	void *data;
	size_t size;
};

/* Not compressed, so that a test can change single bytes. */
static bool neff_plain;

/* Of the header: cores of its node, features. */
static uint8_t neff_cores = 1;
static uint64_t neff_features;

/* Of the model of make_list_neff(). */
static const char *neff_name = "list";

/* Of the transfer of sg01 in make_pair_neff(). */
static const char *neff_pair_op = "copy";

static inline struct neff_bytes make_neff(const char *name, const char *def,
					  const struct neff_file *files, size_t nr)
{
	static const char kelf[] =
		"{\"graphs\": [{\"definition\": \"sg00/def.json\", \"name\": \"sg00\"}],"
		" \"version\": \"0.5\"}";
	struct neuron_neff_header header = {
		.size = sizeof(header), .version_major = 2, .num_tpb = 1, .lnc_size = 1,
		.tpb_per_node = { neff_cores }, .feature_bits = neff_features,
	};
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	struct neff_bytes out;

	assert_non_null(w);
	strcpy(header.name, name);
	assert_int_equal(neuron_neff_writer_add(w, "kelf-0.json", kelf, strlen(kelf)), 0);
	assert_int_equal(neuron_neff_writer_add(w, "sg00/def.json", def, strlen(def)), 0);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(neuron_neff_writer_add(w, files[i].name, files[i].data,
							files[i].size ? files[i].size :
							strlen(files[i].data)), 0);
	assert_int_equal(neuron_neff_writer_finish(w, &header, !neff_plain, &out.data,
						   &out.size), 0);
	neuron_neff_writer_free(w);
	return out;
}

/* No instructions: x + constant rows into a strided scratch area, and out again. */
static inline struct neff_bytes make_list_neff(void)
{
	static const char def[] =
		"{\"name\": \"definition\", \"pe\": \"PE.json\", \"sp\": \"SP.json\","
		" \"dma_queue\": {"
		"  \"qIn\": {\"type\": \"in\"},"
		"  \"qSpill\": {\"type\": \"data\", \"num_queues\": 3},"
		"  \"qOut\": {\"type\": \"out\"}},"
		" \"var\": {"
		"  \"sb\": {\"type\": \"state-buffer\", \"var_id\": 0, \"size\": 65536},"
		"  \"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 1024},"
		"  \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 1024},"
		"  \"k\": {\"type\": \"file\", \"var_id\": 3, \"size\": 256, \"file_name\": \"k.bin\"},"
		"  \"t\": {\"type\": \"tmp-buf\", \"var_id\": 4, \"size\": 8192},"
		"  \"v\": {\"type\": \"virtual\", \"var_id\": 5, \"size\": 4096,"
		"   \"backing_variable_off\": 65536},"
		"  \"p\": {\"type\": \"pointer\", \"var_id\": 6, \"size\": 8, \"referenced_var_id\": 1},"
		"  \"g\": {\"type\": \"dge-table\", \"var_id\": 7, \"size\": 16, \"list\": [4, 3]}}}";
	/* 16 rows of 64 bytes go to rows 128 apart; they come back through sb and v. */
	static const char pe[] =
		"{\"dma\": [{\"id\": 4, \"queue\": \"qIn\", \"event\": 9, \"desc\": ["
		" {\"op\": \"copy\", \"from\": \"x\", \"to\": \"t\","
		"  \"from_sizes\": [64, 16], \"from_steps\": [1, 64],"
		"  \"to_sizes\": [64, 16], \"to_steps\": [1, 128]}]}]}";
	static const char sp[] =
		"{\"dma\": ["
		"{\"id\": 9, \"queue\": \"qSpill\", \"semaphore\": 12, \"desc\": ["
		" {\"op\": \"copy\", \"from\": \"t\", \"to\": \"sb\", \"to_off\": 256,"
		"  \"from_sizes\": [64, 16], \"from_steps\": [1, 128],"
		"  \"to_sizes\": [1024], \"to_steps\": [1]}]},"
		"{\"id\": 2, \"queue\": \"qSpill\", \"desc\": ["
		" {\"op\": \"copy\", \"from\": \"sb\", \"from_off\": 256, \"to\": \"v\","
		"  \"from_sizes\": [1024], \"from_steps\": [1], \"to_sizes\": [1024], \"to_steps\": [1]},"
		" {\"op\": \"copy\", \"from\": \"k\", \"to\": \"v\","
		"  \"from_sizes\": [256], \"from_steps\": [1], \"to_sizes\": [256], \"to_steps\": [1]}]},"
		"{\"id\": 3, \"queue\": \"qOut\", \"desc\": ["
		" {\"op\": \"copy\", \"from\": \"v\", \"to\": \"y\","
		"  \"from_sizes\": [1024], \"from_steps\": [1], \"to_sizes\": [1024], \"to_steps\": [1]}]}]}";
	static char k[256];
	const struct neff_file files[] = {
		{ "sg00/PE.json", pe, 0 },
		{ "sg00/SP.json", sp, 0 },
		{ "sg00/k.bin", k, sizeof(k) },
	};

	for (size_t i = 0; i < sizeof(k); i++)
		k[i] = i < 200 ? (char)(200 - i) : 0;
	return make_neff(neff_name, def, files, 3);
}

/* What make_list_neff() makes of x. */
static inline void list_expected(const uint8_t *x, uint8_t *y)
{
	memcpy(y, x, 1024);
	for (size_t i = 0; i < 256; i++)
		y[i] = i < 200 ? (uint8_t)(200 - i) : 0;
}

/* An SP program that moves x to y; @sp goes in as it is. */
static inline struct neff_bytes make_program_neff(const void *sp, size_t size)
{
	static const char def[] =
		"{\"name\": \"definition\", \"sp\": \"SP.json\", \"sp_instr\": \"SP.bin\","
		" \"dma_queue\": {\"qIO\": {\"type\": \"data\"}},"
		" \"var\": {"
		"  \"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 100000},"
		"  \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 100000}}}";
	static const char json[] =
		"{\"dma\": [{\"id\": 7, \"queue\": \"qIO\", \"semaphore\": 8, \"desc\": ["
		" {\"op\": \"copy\", \"from\": \"x\", \"to\": \"y\","
		"  \"from_sizes\": [70000], \"from_steps\": [1], \"to_sizes\": [70000], \"to_steps\": [1]}]},"
		" {\"id\": 8, \"queue\": \"qIO\", \"semaphore\": 8, \"desc\": ["
		" {\"op\": \"copy\", \"from\": \"x\", \"from_off\": 70000, \"to\": \"y\", \"to_off\": 70000,"
		"  \"from_sizes\": [30000], \"from_steps\": [1], \"to_sizes\": [30000], \"to_steps\": [1]}]}]}";
	const struct neff_file files[] = {
		{ "sg00/SP.json", json, 0 },
		{ "sg00/SP.bin", sp, size },
	};

	return make_neff("program", def, files, 2);
}

static inline struct neuron_isa_inst inst_prologue(unsigned int engine)
{
	struct neuron_isa_inst i = { .opcode = NEURON_ISA_OP_PROLOGUE, .magic = NEURON_ISA_MAGIC };

	i.u.prologue.signature = htole32(NEURON_ISA_SIGNATURE);
	i.u.prologue.version = htole16(NEURON_ISA_VERSION);
	i.u.prologue.engine = htole16((uint16_t)engine);
	return i;
}

static inline struct neuron_isa_inst inst_trigger(uint32_t id)
{
	struct neuron_isa_inst i = { .opcode = NEURON_ISA_OP_DMA_TRIGGER, .magic = NEURON_ISA_MAGIC };

	i.u.dma.engine = i.u.dma.queue = 0xffff;
	i.u.dma.tx_count = htole32(id);
	return i;
}

static inline struct neuron_isa_inst inst_wait(uint32_t index, uint32_t value)
{
	struct neuron_isa_inst i = {
		.opcode = NEURON_ISA_OP_SEM_WAIT,
		.magic = NEURON_ISA_MAGIC,
		.op = NEURON_ISA_WAIT_GE,
		.flags = NEURON_ISA_F_CONSUME,
	};

	i.u.sem.index = htole32(index);
	i.u.sem.value = htole32(value);
	return i;
}

static inline struct neuron_isa_inst inst_notify(uint32_t id)
{
	struct neuron_isa_inst i = { .opcode = NEURON_ISA_OP_NOTIFY, .magic = NEURON_ISA_MAGIC };

	i.u.notify.id = htole32(id);
	return i;
}

/* Prologue, both transfers one after the other, notify. */
static inline size_t good_program(struct neuron_isa_inst *p)
{
	size_t n = 0;

	p[n++] = inst_prologue(NEURON_ISA_ENGINE_SP);
	p[n++] = inst_trigger(7);
	p[n++] = inst_wait(8, 1);
	p[n++] = inst_trigger(8);
	p[n++] = inst_wait(8, 1);
	p[n++] = inst_notify(1);
	return n;
}

/*
 * For logical cores of two: x goes through sg00 to a, through sg01 to b; sg01 waits for a
 * semaphore of sg00.
 */
static inline struct neff_bytes make_pair_neff(const char *y_size)
{
	static const char kelf[] =
		"{\"graphs\": [{\"definition\": \"sg00/def.json\", \"name\": \"sg00\"},"
		"{\"definition\": \"sg01/def.json\", \"name\": \"sg01\"}], \"version\": \"0.5\"}";
	static const char def0[] =
		"{\"name\": \"definition\", \"sp\": \"SP.json\","
		" \"dma_queue\": {\"q\": {\"type\": \"in\", \"num_queues\": 3}},"
		" \"var\": {\"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 1024},"
		" \"v\": {\"type\": \"virtual\", \"var_id\": 4, \"size\": 4096,"
		" \"backing_variable_off\": 0},"
		" \"a\": {\"type\": \"output\", \"var_id\": 2, \"size\": 1024}}}";
	static const char copy[] =
		"{\"dma\": [{\"id\": 1, \"queue\": \"q\"%s, \"desc\": [{\"op\": \"%s\","
		" \"from\": \"x\", \"to\": \"%s\","
		" \"from_sizes\": [1024], \"from_steps\": [1], \"to_sizes\": [1024], \"to_steps\": [1]}]}]}";
	struct neuron_neff_header header = {
		.size = sizeof(header), .version_major = 2, .num_tpb = 2, .lnc_size = 2,
	};
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	struct neff_bytes out;
	char def1[512], sp0[512], sp1[512];

	snprintf(def1, sizeof(def1),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {\"q\": {\"type\": \"in\"}},"
		 " \"var\": {\"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": %s},"
		 " \"t\": {\"type\": \"tmp-buf\", \"var_id\": 7, \"size\": 10000},"
		 " \"b\": {\"type\": \"output\", \"var_id\": 2, \"size\": 1024}}}", y_size);
	snprintf(sp0, sizeof(sp0), copy, ", \"remote_semaphores\": [17]", "copy", "a");
	snprintf(sp1, sizeof(sp1), copy, "", neff_pair_op, "b");
	strcpy(header.name, "pair");
	assert_int_equal(neuron_neff_writer_add(w, "kelf-0.json", kelf, strlen(kelf)), 0);
	assert_int_equal(neuron_neff_writer_add(w, "sg00/def.json", def0, strlen(def0)), 0);
	assert_int_equal(neuron_neff_writer_add(w, "sg01/def.json", def1, strlen(def1)), 0);
	assert_int_equal(neuron_neff_writer_add(w, "sg00/SP.json", sp0, strlen(sp0)), 0);
	assert_int_equal(neuron_neff_writer_add(w, "sg01/SP.json", sp1, strlen(sp1)), 0);
	assert_int_equal(neuron_neff_writer_finish(w, &header, true, &out.data, &out.size), 0);
	neuron_neff_writer_free(w);
	return out;
}

/* For logical cores of two: both subgraphs have the same @nr inputs and as many outputs. */
static inline struct neff_bytes make_wide_neff(unsigned int nr)
{
	static const char kelf[] =
		"{\"graphs\": [{\"definition\": \"sg00/def.json\", \"name\": \"sg00\"},"
		"{\"definition\": \"sg00/def.json\", \"name\": \"sg01\"}], \"version\": \"0.5\"}";
	struct neuron_neff_header header = {
		.size = sizeof(header), .version_major = 2, .num_tpb = 2, .lnc_size = 2,
	};
	struct neuron_neff_writer *w = neuron_neff_writer_new();
	struct neff_bytes out;
	char *def = NULL;
	size_t size;
	FILE *f = open_memstream(&def, &size);

	assert_non_null(f);
	fprintf(f, "{\"var\": {");
	for (unsigned int i = 0; i < 2 * nr; i++)
		fprintf(f, "%s\"t%u\": {\"type\": \"%s\", \"var_id\": %u, \"size\": 16}",
			i ? ", " : "", i, i < nr ? "input" : "output", i);
	fprintf(f, "}}");
	assert_int_equal(fclose(f), 0);
	strcpy(header.name, "wide");
	assert_int_equal(neuron_neff_writer_add(w, "kelf-0.json", kelf, strlen(kelf)), 0);
	assert_int_equal(neuron_neff_writer_add(w, "sg00/def.json", def, size), 0);
	assert_int_equal(neuron_neff_writer_finish(w, &header, true, &out.data, &out.size), 0);
	neuron_neff_writer_free(w);
	free(def);
	return out;
}

/* ---- NEFFs of several nodes ----------------------------------------------------------- */

/* kelf-@n.json moves @from to @to. */
static inline void add_kelf(struct neuron_neff_writer *w, unsigned int n, const char *from,
			    const char *to)
{
	char name[32], text[1024];

	snprintf(name, sizeof(name), "kelf-%u.json", n);
	snprintf(text, sizeof(text),
		 "{\"graphs\": [{\"definition\": \"sg%u0/def.json\", \"name\": \"sg%u0\"}]}", n, n);
	assert_int_equal(neuron_neff_writer_add(w, name, text, strlen(text)), 0);
	snprintf(name, sizeof(name), "sg%u0/def.json", n);
	snprintf(text, sizeof(text),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\","
		 " \"dma_queue\": {\"q\": {\"type\": \"data\"}}, \"var\": {"
		 " \"%s\": {\"type\": \"input\", \"var_id\": 1, \"size\": 1024},"
		 " \"%s\": {\"type\": \"output\", \"var_id\": 2, \"size\": 1024}}}", from, to);
	assert_int_equal(neuron_neff_writer_add(w, name, text, strlen(text)), 0);
	snprintf(name, sizeof(name), "sg%u0/SP.json", n);
	snprintf(text, sizeof(text),
		 "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"from\": \"%s\", \"to\": \"%s\","
		 " \"from_sizes\": [1024], \"from_steps\": [1],"
		 " \"to_sizes\": [1024], \"to_steps\": [1]}]}]}", from, to);
	assert_int_equal(neuron_neff_writer_add(w, name, text, strlen(text)), 0);
}

static inline struct neff_bytes net_finish(struct neuron_neff_writer *w, const char *network)
{
	struct neuron_neff_header header = {
		.size = sizeof(header), .version_major = 2, .num_tpb = 2, .lnc_size = 1,
		.tpb_per_node = { neff_cores, 1 },
	};
	struct neff_bytes out;

	strcpy(header.name, "net");
	assert_int_equal(neuron_neff_writer_add(w, "neff.json", network, strlen(network)), 0);
	assert_int_equal(neuron_neff_writer_finish(w, &header, true, &out.data, &out.size), 0);
	neuron_neff_writer_free(w);
	return out;
}

#define EDGES "\"edges\": [" \
	"{\"name\": \"x\", \"bytes\": 1024, \"use\": \"input\"}," \
	"{\"name\": \"b\", \"bytes\": 1024}, {\"name\": \"c\", \"bytes\": 1024}," \
	"{\"name\": \"y\", \"bytes\": 1024, \"use\": \"output\"}]"
#define NODE_A "{\"name\": \"first\", \"kelf\": 0, \"inputs\": [\"x\"], \"outputs\": [\"b\"]}"
#define NODE_OP "{\"name\": \"middle\", \"op\": \"invert\", \"inputs\": [\"b\"], \"outputs\": [\"c\"]}"
#define NODE_B "{\"name\": \"last\", \"kelf\": 1, \"inputs\": [\"c\"], \"outputs\": [\"y\"]}"
#define NETWORK(edges, nodes) "{\"format\": \"neuron-pack-1\", " edges ", \"nodes\": [" nodes "]}"

static inline struct neff_bytes make_net(const char *network)
{
	struct neuron_neff_writer *w = neuron_neff_writer_new();

	assert_non_null(w);
	add_kelf(w, 0, "x", "b");
	add_kelf(w, 1, "c", "y");
	return net_finish(w, network);
}

static inline struct neff_bytes net_neff(void)
{
	return make_net(NETWORK(EDGES, NODE_A "," NODE_OP "," NODE_B));
}

#endif

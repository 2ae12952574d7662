/* SPDX-License-Identifier: GPL-2.0-only */
/* For guest tests of the library: points, sysfs counters, NEFFs made by hand. */
#ifndef NRT_GUEST_H
#define NRT_GUEST_H

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "neuron_isa.h"
#include "device.h"
#include "point.h"

#define DEVICES "/sys/devices/virtual/neuron_device"

/* ---- every memory counter of every device ------------------------------------------ */

#define MAX_COUNTERS 4096

struct counters {
	size_t nr;
	uint64_t value[MAX_COUNTERS];
};

static struct counters *counters_into;
static char counter_name[MAX_COUNTERS][120];

static int counter_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	size_t len = strlen(path);
	FILE *f;

	(void)st;
	(void)ftw;
	if (type != FTW_F || len < 6 || strcmp(path + len - 6, "/total") ||
	    !strstr(path, "memory_usage"))
		return 0;
	if (counters_into->nr == MAX_COUNTERS)
		return 1;
	f = fopen(path, "r");
	if (!f || fscanf(f, "%" SCNu64, &counters_into->value[counters_into->nr]) != 1)
		return 1;
	fclose(f);
	snprintf(counter_name[counters_into->nr++], sizeof(counter_name[0]), "%s",
		 path + strlen(DEVICES));
	return 0;
}

/* Those below a folder, after those that are there. */
static inline void counters_add(struct counters *c, const char *folder)
{
	counters_into = c;
	if (nftw(folder, counter_file, 16, FTW_PHYS) || !c->nr) {
		printf("not ok - memory counters can be read\n");
		exit(1);
	}
}

/* What processes that are gone had is not counted: a card needs some time for it. */
static inline void counters_take(struct counters *c)
{
	device_settles();
	c->nr = 0;
	counters_add(c, DEVICES);
}

/* Equal; says which are not. */
static inline bool counters_equal(const struct counters *a, const struct counters *b)
{
	bool equal = a->nr == b->nr;

	for (size_t i = 0; i < a->nr && i < b->nr; i++)
		if (a->value[i] != b->value[i]) {
			printf("# %s: %llu, then %llu\n", counter_name[i],
			       (unsigned long long)a->value[i], (unsigned long long)b->value[i]);
			equal = false;
		}
	return equal;
}

/* At once; what a card's queues may reach comes back when their cores are reset. */
static inline bool counters_come_to(const struct counters *want)
{
	static struct counters now;

	for (int i = 0; i < 500 && is_card(); i++) {
		counters_take(&now);
		if (now.nr == want->nr && !memcmp(now.value, want->value, now.nr * sizeof(*now.value)))
			return true;
		usleep(10000);
	}
	counters_take(&now);
	return counters_equal(want, &now);
}

static inline uint64_t counters_sum(const struct counters *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->nr; i++)
		sum += c->value[i];
	return sum;
}

static inline uint64_t counter(const struct counters *c, const char *name)
{
	for (size_t i = 0; i < c->nr; i++)
		if (!strcmp(counter_name[i], name))
			return c->value[i];
	printf("not ok - there is a counter %s\n", name);
	exit(1);
}

/* ---- NEFFs ------------------------------------------------------------------------- */

#ifndef NEFF_ROOM
#define NEFF_ROOM 65536
#endif

struct neff {
	uint8_t data[NEFF_ROOM];
	size_t size;
};

/* A plain tar is allowed as well as a compressed one. */
static inline void neff_add(struct neff *n, const char *name, const void *data, size_t size)
{
	uint8_t *h = n->data + n->size;
	unsigned int sum = 0;

	memset(h, 0, 512);
	strcpy((char *)h, name);
	strcpy((char *)h + 100, "0000644");
	strcpy((char *)h + 108, "0000000");
	strcpy((char *)h + 116, "0000000");
	snprintf((char *)h + 124, 12, "%011o", (unsigned int)size);
	strcpy((char *)h + 136, "00000000000");
	memset(h + 148, ' ', 8);
	h[156] = '0';
	memcpy(h + 257, "ustar\00000", 8);
	for (int i = 0; i < 512; i++)
		sum += h[i];
	snprintf((char *)h + 148, 8, "%06o", sum);
	memset(h + 512, 0, (size + 511) / 512 * 512);
	memcpy(h + 512, data, size);
	n->size += 512 + (size + 511) / 512 * 512;
}

static inline void neff_start(struct neff *n)
{
	static const char kelf[] =
		"{\"graphs\": [{\"definition\": \"sg00/def.json\", \"name\": \"sg00\"}],"
		" \"version\": \"0.5\"}";

	memset(n, 0, sizeof(*n));
	n->size = 1024;
	neff_add(n, "kelf-0.json", kelf, strlen(kelf));
}

static inline void neff_end(struct neff *n, const char *name)
{
	const uint64_t head[4] = { htole64(2), htole64(1024), htole64(n->size), htole64(2) };
	const uint32_t one = htole32(1);

	memset(n->data + n->size, 0, 1024);
	n->size += 1024;
	memcpy(n->data, head, sizeof(head));
	*(uint64_t *)(n->data + 16) = htole64(n->size - 1024);
	memcpy(n->data + 168, &one, 4);		/* num_tpb */
	strcpy((char *)n->data + 220, name);
	memcpy(n->data + 552, &one, 4);		/* lnc_size */
}

static inline void neff_text(struct neff *n, const char *name, const char *text)
{
	neff_add(n, name, text, strlen(text));
}

/*
 * No instructions: 256 rows of 64 bytes of x are spread in a private area,
 * gathered through the state buffer into the shared scratchpad, get a constant
 * in front, and go to y.
 */
static inline void neff_list(struct neff *n)
{
	char k[512];

	memset(k, 'k', sizeof(k));
	neff_start(n);
	neff_text(n, "sg00/def.json",
		  "{\"name\": \"definition\", \"act\": \"Activation.json\", \"sp\": \"SP.json\","
		  " \"dma_queue\": {\"qIn\": {\"type\": \"in\"}, \"qData\": {\"type\": \"data\"},"
		  "  \"qOut\": {\"type\": \"out\"}}, \"var\": {"
		  " \"sb\": {\"type\": \"state-buffer\", \"var_id\": 0, \"size\": 65536},"
		  " \"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 16384},"
		  " \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 16896},"
		  " \"k\": {\"type\": \"file\", \"var_id\": 3, \"size\": 512, \"file_name\": \"k.bin\"},"
		  " \"t\": {\"type\": \"tmp-buf\", \"var_id\": 4, \"size\": 65536, \"alignment\": 16384},"
		  " \"v\": {\"type\": \"virtual\", \"var_id\": 5, \"size\": 65536,"
		  "  \"backing_variable_off\": 1048576}}}");
	neff_text(n, "sg00/Activation.json",
		  "{\"dma\": [{\"id\": 1, \"queue\": \"qIn\", \"event\": 3, \"desc\": ["
		  "{\"from\": \"x\", \"from_sizes\": [64, 256], \"from_steps\": [1, 64],"
		  " \"to\": \"t\", \"to_sizes\": [64, 256], \"to_steps\": [1, 256]}]}]}");
	neff_text(n, "sg00/SP.json",
		  "{\"dma\": [{\"id\": 1, \"queue\": \"qData\", \"semaphore\": 20, \"desc\": ["
		  "{\"from\": \"t\", \"from_sizes\": [64, 256], \"from_steps\": [1, 256],"
		  " \"to\": \"sb\", \"to_off\": 4096, \"to_sizes\": [16384], \"to_steps\": [1]},"
		  "{\"from\": \"k\", \"from_sizes\": [512], \"from_steps\": [1],"
		  " \"to\": \"v\", \"to_sizes\": [512], \"to_steps\": [1]},"
		  "{\"from\": \"sb\", \"from_off\": 4096, \"from_sizes\": [16384], \"from_steps\": [1],"
		  " \"to\": \"v\", \"to_off\": 512, \"to_sizes\": [16384], \"to_steps\": [1]}]},"
		  "{\"id\": 2, \"queue\": \"qOut\", \"desc\": ["
		  "{\"from\": \"v\", \"from_sizes\": [16896], \"from_steps\": [1],"
		  " \"to\": \"y\", \"to_sizes\": [16896], \"to_steps\": [1]}]}]}");
	neff_add(n, "sg00/k.bin", k, sizeof(k));
	neff_end(n, "list");
}

#define LIST_IN 16384
#define LIST_OUT 16896

static inline bool list_right(const uint8_t *x, const uint8_t *y)
{
	for (int i = 0; i < 512; i++)
		if (y[i] != 'k')
			return false;
	return !memcmp(y + 512, x, LIST_IN);
}

/* A program of SP, no variables. */
static inline void neff_program(struct neff *n, const void *code, size_t size)
{
	neff_start(n);
	neff_text(n, "sg00/def.json",
		  "{\"name\": \"definition\", \"sp\": \"SP.json\", \"sp_instr\": \"SP.bin\","
		  " \"dma_queue\": {}, \"var\": {}}");
	neff_text(n, "sg00/SP.json", "{\"dma\": []}");
	neff_add(n, "sg00/SP.bin", code, size);
	neff_end(n, "program");
}

/* Node @k of several, which copies @bytes from @from to @to. */
static inline void neff_node(struct neff *n, unsigned int k, const char *from, const char *to,
			     unsigned int bytes)
{
	char name[32], text[1024];

	snprintf(name, sizeof(name), "kelf-%u.json", k);
	snprintf(text, sizeof(text),
		 "{\"graphs\": [{\"definition\": \"sg%u0/def.json\", \"name\": \"sg%u0\"}]}", k, k);
	neff_text(n, name, text);
	snprintf(name, sizeof(name), "sg%u0/def.json", k);
	snprintf(text, sizeof(text),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\","
		 " \"dma_queue\": {\"q\": {\"type\": \"data\"}}, \"var\": {"
		 " \"%s\": {\"type\": \"input\", \"var_id\": 1, \"size\": %u},"
		 " \"%s\": {\"type\": \"output\", \"var_id\": 2, \"size\": %u}}}", from, bytes, to, bytes);
	neff_text(n, name, text);
	snprintf(name, sizeof(name), "sg%u0/SP.json", k);
	snprintf(text, sizeof(text),
		 "{\"dma\": [{\"id\": 1, \"queue\": \"q\", \"desc\": [{\"from\": \"%s\", \"to\": \"%s\","
		 " \"from_sizes\": [%u], \"from_steps\": [1], \"to_sizes\": [%u], \"to_steps\": [1]}]}]}",
		 from, to, bytes, bytes);
	neff_text(n, name, text);
}

/* A private area and a scratchpad of these sizes, nothing to do. */
static inline void neff_sized(struct neff *n, uint64_t private, uint64_t shared)
{
	char def[512];

	snprintf(def, sizeof(def),
		 "{\"name\": \"definition\", \"sp\": \"SP.json\", \"dma_queue\": {}, \"var\": {"
		 " \"a\": {\"type\": \"tmp-buf\", \"var_id\": 1, \"size\": 4096},"
		 " \"v\": {\"type\": \"virtual\", \"var_id\": 2, \"size\": 4096,"
		 "  \"backing_variable_off\": %llu},"
		 " \"b\": {\"type\": \"tmp-buf\", \"var_id\": 3, \"size\": %llu}}}",
		 (unsigned long long)shared, (unsigned long long)private);
	neff_start(n);
	neff_text(n, "sg00/def.json", def);
	neff_text(n, "sg00/SP.json", "{\"dma\": []}");
	neff_end(n, "sized");
}

static inline struct neuron_isa_inst inst(enum neuron_isa_opcode opcode)
{
	struct neuron_isa_inst i = { .opcode = opcode, .magic = NEURON_ISA_MAGIC };

	if (opcode == NEURON_ISA_OP_PROLOGUE) {
		i.u.prologue.signature = htole32(NEURON_ISA_SIGNATURE);
		i.u.prologue.version = htole16(NEURON_ISA_VERSION);
		i.u.prologue.engine = htole16(NEURON_ISA_ENGINE_SP);
	}
	return i;
}

#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin of QEMU that counts the instructions of a guest by their place, between two
 * instructions of the guest that do nothing: "nopl 0x4e5500 + WORK(%rax)", with WORK 1 to 15,
 * starts, with WORK 0 ends. Only the virtual processor that started it is counted.
 *
 * Counted by their place, too, are jumps that QEMU cannot bind to their target: returns, other
 * indirect ones, and what leads to another page. Each is a search for the code there, which
 * takes as long as dozens of instructions.
 *
 * The distribution brings no header for plugins: what is used of that interface (QEMU's
 * "TCG Plugins", version 1) is declared here.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  void (*cb)(unsigned int, void *),
					  enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*cb)(unsigned int, void *),
					    enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*cb)(qemu_plugin_id_t, void *),
				    void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
void qemu_plugin_outs(const char *text);

PUBLIC int qemu_plugin_version = 1;

#define NR_WORK 32

/* Code that was translated once; the same code can be translated again. */
struct place {
	struct place *next;
	uint64_t addr;
	uint32_t insns;
	bool indirect;		/* its last instruction jumps to what it finds in a register */
	uint64_t times[NR_WORK], jumps[NR_WORK];
};

static struct place *places, *last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int work, vcpu;
static FILE *out;

static void executed(unsigned int cpu, void *data)
{
	struct place *p = data;

	if (!work || cpu != vcpu)
		return;
	p->times[work]++;
	if (last && (last->indirect || (last->addr ^ p->addr) >> 12))
		last->jumps[work]++;
	last = p;
}

static void marked(unsigned int cpu, void *data)
{
	vcpu = cpu;
	work = (uintptr_t)data;
	last = NULL;
}

/* A return, a call or a jump through a register or memory? */
static bool jumps(const struct qemu_plugin_insn *insn)
{
	const uint8_t *code = qemu_plugin_insn_data(insn);
	size_t n = qemu_plugin_insn_size(insn), i;

	/* Behind prefixes of segments, repetition and registers. */
	for (i = 0; i + 1 < n && (code[i] == 0xf3 || code[i] == 0xf2 || code[i] == 0x3e ||
				  (code[i] & 0xf0) == 0x40); i++)
		;
	if (code[i] == 0xc3 || code[i] == 0xc2)
		return true;
	return code[i] == 0xff && i + 1 < n && (code[i + 1] >> 3 & 7) >= 2 &&
	       (code[i + 1] >> 3 & 7) <= 5;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static const uint8_t mark[] = { 0x0f, 0x1f, 0x80 };
	struct place *p = calloc(1, sizeof(*p));

	(void)id;
	if (!p)
		abort();
	p->addr = qemu_plugin_tb_vaddr(tb);
	p->insns = qemu_plugin_tb_n_insns(tb);
	p->indirect = jumps(qemu_plugin_tb_get_insn(tb, p->insns - 1));
	pthread_mutex_lock(&lock);
	p->next = places;
	places = p;
	pthread_mutex_unlock(&lock);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, QEMU_PLUGIN_CB_NO_REGS, p);
	for (size_t i = 0; i < p->insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const uint8_t *data = qemu_plugin_insn_data(insn);
		uint32_t number;

		if (qemu_plugin_insn_size(insn) != 7 || memcmp(data, mark, sizeof(mark)))
			continue;
		memcpy(&number, data + sizeof(mark), sizeof(number));
		if (number >= 0x4e5500 && number < 0x4e5500 + NR_WORK)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, QEMU_PLUGIN_CB_NO_REGS,
							       (void *)(uintptr_t)(number - 0x4e5500));
	}
}

/* A line for each place that was executed: work, address, instructions, jumps. */
static void at_exit(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	for (struct place *p = places; p; p = p->next)
		for (int w = 1; w < NR_WORK; w++)
			if (p->times[w])
				fprintf(out, "%d %" PRIx64 " %" PRIu64 " %" PRIu64 "\n", w,
					p->addr, p->times[w] * p->insns, p->jumps[w]);
	fclose(out);
}

PUBLIC int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
			       char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4))
		return -1;
	out = fopen(argv[0] + 4, "w");
	if (!out)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}

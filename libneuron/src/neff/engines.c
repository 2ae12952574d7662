// SPDX-License-Identifier: LGPL-2.1-or-later
/* What an engine runs: its description, its program, its tables. */
#include <endian.h>
#include <string.h>

#include "../../../uapi/neuron_isa.h"
#include "../../common/util.h"
#include "parse.h"

static const char *const engine_keys[] = { "pe", "act", "pool", "dve", "sp" };
static const char *const code_keys[] = {
	"pe_instr", "act_instr", "pool_instr", "dve_instr", "sp_instr"
};

static int parse_dve_tables(struct neff_reader *r, const struct jpath *at, const json_t *root,
			    const struct neuron_neff_subgraph *sg,
			    struct neuron_neff_engine *eng)
{
	static const char *const keys[] = { "control_table", "datapath_table", "opcode_table" };
	json_t *list = NULL;
	int err = jget(r, at, root, { "dve_tables", .list = &list });

	if (err || !list)
		return err;
	eng->tables = neff_alloc(r->obj, json_array_size(list),
				 ARRAY_SIZE(keys) * sizeof(*eng->tables));
	if (!eng->tables)
		return memory_at(r, at);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const struct jpath *here = AT_INDEX(AT_KEY(at, "dve_tables"), i);

		for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
			struct neuron_neff_blob *blob = &eng->tables[eng->nr_tables];
			struct neff_member *m;
			const char *file = "";

			err = jget(r, here, json_array_get(list, i),
				   { keys[k], .text = &file, .required = true }) ?:
			      neff_find_file(r, AT_KEY(here, keys[k]), sg, file, &m) ?:
			      jcopy_text(r, here, m->name, &blob->name);
			if (err)
				return err;
			m->keep = true;
			eng->nr_tables++;
		}
	}
	return 0;
}

/* The code can be anywhere in the caller's file. */
static struct neuron_isa_inst instruction(const void *code, size_t i)
{
	struct neuron_isa_inst inst;

	memcpy(&inst, (const char *)code + i * NEURON_ISA_INST_SIZE, sizeof(inst));
	return inst;
}

static bool has_prologue(const void *code, size_t size)
{
	struct neuron_isa_inst inst;

	if (size < NEURON_ISA_INST_SIZE)
		return false;
	inst = instruction(code, 0);
	return inst.opcode == NEURON_ISA_OP_PROLOGUE && inst.magic == NEURON_ISA_MAGIC &&
	       le32toh(inst.u.prologue.signature) == NEURON_ISA_SIGNATURE;
}

/* What the loader relies on; the device itself checks every other field. */
static int check_nisa(struct neff_reader *r, const char *where,
		      const struct neuron_neff_engine *eng, unsigned int id)
{
	struct neuron_isa_inst inst = instruction(eng->code, 0);
	uint16_t version = le16toh(inst.u.prologue.version);
	uint16_t engine = le16toh(inst.u.prologue.engine);

	if (eng->code_size % NEURON_ISA_INST_SIZE)
		return neff_fail(r, NEURON_NEFF_INVALID, where,
				 "%zu bytes are no multiple of %u", eng->code_size,
				 NEURON_ISA_INST_SIZE);
	if (version != NEURON_ISA_VERSION)
		return neff_fail(r, NEURON_NEFF_UNSUPPORTED, where,
				 "instruction set version %u, known is %u", version,
				 NEURON_ISA_VERSION);
	if (engine != id)
		return neff_fail(r, NEURON_NEFF_INVALID, where,
				 "instructions of engine %u, used for engine %u", engine, id);
	for (size_t i = 0; i < eng->code_size / NEURON_ISA_INST_SIZE; i++) {
		inst = instruction(eng->code, i);
		if (inst.magic != NEURON_ISA_MAGIC)
			return neff_fail(r, NEURON_NEFF_INVALID, where,
					 "instruction %zu is none: second byte is 0x%02x", i,
					 inst.magic);
		if (inst.opcode != NEURON_ISA_OP_DMA_TRIGGER)
			continue;
		if (inst.u.dma.engine != 0xffff || inst.u.dma.queue != 0xffff ||
		    inst.u.dma.rx_count)
			return neff_fail(r, NEURON_NEFF_INVALID, where,
					 "instruction %zu: DMA trigger is not symbolic", i);
		if (!neuron_neff_find_dma(eng, le32toh(inst.u.dma.tx_count)))
			return neff_fail(r, NEURON_NEFF_INVALID, where,
					 "instruction %zu: no dma entry has id %u", i,
					 le32toh(inst.u.dma.tx_count));
	}
	return 0;
}

static int parse_engine_json(struct neff_reader *r, const char *member,
			     const struct neuron_neff_subgraph *sg,
			     struct neuron_neff_engine *eng)
{
	const struct jpath at = { .member = member };
	json_t *root, *list = NULL;
	int err = jload(r, member, NULL, &root);

	if (err)
		return err;
	err = jget(r, &at, root, { "dma", .list = &list },
		   { "activation_function_sets", .texts = &eng->act_sets,
		     .nr = &eng->nr_act_sets }) ?:
	      parse_dma_list(r, AT_KEY(&at, "dma"), list, sg, eng) ?:
	      parse_dve_tables(r, &at, root, sg, eng);
	json_decref(root);
	return err;
}

int name_engine(struct neff_reader *r, const struct jpath *at, const json_t *def,
		struct neuron_neff_subgraph *sg, unsigned int id)
{
	struct neuron_neff_engine *eng = &sg->engines[id];
	struct neff_member *m;
	int err = jget(r, at, def, { engine_keys[id], .copy = &eng->json_name },
		       { code_keys[id], .copy = &eng->code_name });

	if (!err && eng->json_name)
		err = neff_find_file(r, AT_KEY(at, engine_keys[id]), sg, eng->json_name, &m) ?:
		      neff_want_json(r, m);
	if (!err && eng->code_name) {
		err = neff_find_file(r, AT_KEY(at, code_keys[id]), sg, eng->code_name, &m);
		if (!err)
			m->keep = true;
	}
	return err;
}

int parse_engines(struct neff_reader *r, struct neuron_neff_subgraph *sg)
{
	const struct jpath at = { .member = sg->definition };
	int err = index_queues(r, AT_KEY(&at, "dma_queue"), sg);

	for (unsigned int id = 0; !err && id < NEURON_NEFF_NR_ENGINES; id++) {
		struct neuron_neff_engine *eng = &sg->engines[id];
		struct neff_member *m;

		if (!eng->json_name)
			continue;
		err = neff_find_file(r, AT_KEY(&at, engine_keys[id]), sg, eng->json_name, &m) ?:
		      parse_engine_json(r, m->name, sg, eng);
	}
	return err;
}

int load_code(struct neff_reader *r, const struct neuron_neff_subgraph *sg,
	      struct neuron_neff_engine *eng, unsigned int id)
{
	const struct jpath at = { .member = sg->definition };
	struct neff_member *m;
	int err = neff_find_file(r, AT_KEY(&at, code_keys[id]), sg, eng->code_name, &m);

	if (err)
		return err;
	eng->code = m->data;
	eng->code_size = m->size;
	if (!m->size)
		return 0;
	if (!has_prologue(m->data, m->size)) {
		eng->code_kind = NEURON_NEFF_CODE_VENDOR;
		r->obj->pub.executable = false;
		return 0;
	}
	eng->code_kind = NEURON_NEFF_CODE_NISA;
	return check_nisa(r, m->name, eng, id);
}

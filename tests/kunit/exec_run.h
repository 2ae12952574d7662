/* SPDX-License-Identifier: GPL-2.0-only */
/* A compute instruction at one go, by the code of the software device. After exec.h. */
#ifndef EXEC_RUN_H
#define EXEC_RUN_H

static inline int exec_run(const struct neuron_isa_inst *inst, enum neuron_isa_engine engine,
			   struct emu_sbuf *sb)
{
	struct emu_exec x;
	int err = emu_exec_start(&x, inst, engine, sb);

	if (err)
		return err;
	while (emu_exec_step(&x, U32_MAX) == -EAGAIN)
		;
	return 0;
}

#endif /* EXEC_RUN_H */

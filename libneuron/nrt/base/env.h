/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The environment: reading variables, and those that have a meaning of their own. */
#ifndef NRT_ENV_H
#define NRT_ENV_H

#include <sched.h>
#include <stdbool.h>

#include <neuron/model.h>
#include <nrt/nrt.h>

/* The variables that are not about cores and memory (libnrt(7)). */
struct nrt_env {
	bool keep_cores;		/* open them without a reset */
	bool find_nan;			/* in outputs */
	bool offload;			/* idle models, when others do not fit */
	bool has_pretend;		/* else the devices say */
	enum neuron_pretend pretend;
	NRT_STATUS dump_inputs_on;	/* of this status; NRT_SUCCESS never */
	bool has_cpus;
	cpu_set_t cpus;			/* for threads of queues */
	char *core_dump_dir;		/* "" and */
	char *core_dump_s3;		/* "": none */
};

#define NRT_CORE_DUMP_DIRECTORY "/tmp/neuron-core-dump/dt-%d-cid-%c"

/*
 * *@value stays if the variable is not set, or empty.  false: what it says makes no sense,
 * which is in the log, and nothing changed.
 */
/* 1, true, yes or on, 0, false, no or off, in any case. */
bool nrt_env_flag(const char *name, bool *value);
/* From @min to @max; @what that is, for the log. */
bool nrt_env_value(const char *name, unsigned long min, unsigned long max, const char *what,
		   unsigned long *value);
/* The first of a list of "n" and "a-b" up to @max; *@text: the rest, NULL: that was all. */
bool nrt_env_range(const char **text, unsigned long max, unsigned long *first,
		   unsigned long *last);
/* A copy of @text in the place of *@at, which stays if there is no memory. */
bool nrt_text_replace(char **at, const char *text);
/* NRT_INVALID with a line in the log. */
NRT_STATUS nrt_env_read(struct nrt_env *env);
void nrt_env_free(struct nrt_env *env);
/* In a child: another thread of the parent may be freeing it. */
void nrt_env_forget(struct nrt_env *env);

#endif

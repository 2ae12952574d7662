// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the environment asks for beyond cores and memory (init.c has these). */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../common/env.h"
#include "../../common/pretend.h"
#include "../../common/util.h"
#include "env.h"
#include "log.h"

/* Of the interface, without anything here that they could change: libnrt(7) has the reasons. */
static const char *const ignored[] = {
	"NEURON_RT_ALLOW_LEGACY_NEFF",
	"NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT",
	"NEURON_RT_ASYNC_SENDRECV_EXPERIMENTAL_ENABLED",
	"NEURON_RT_DBG_CC_DMA_PACKET_SIZE",
	"NEURON_RT_DBG_DMA_PACKETIZATION_SIZE",
	"NEURON_RT_DEBUG_STREAM_BUFFER_SIZE",
	"NEURON_RT_ENABLE_DGE_NOTIFICATIONS",
	"NEURON_RT_GPSIMD_STDOUT_QUEUE_SIZE_BYTES",
	"NEURON_RT_INSPECT_PRECACHE_ENABLE",
	"NEURON_RT_MULTI_INSTANCE_SHARED_WEIGHTS",
	"NEURON_RT_ONE_THREAD_PER_CORE",
	"NEURON_RT_RANKS_PER_NETWORK_PROXY",
	"NEURON_RT_STOCHASTIC_ROUNDING_EN",
	"NEURON_RT_STOCHASTIC_ROUNDING_SEED",
	"NEURON_RT_ULTRASERVER_MODE",
	"NEURON_RT_ULTRASERVER_NODE_ID",
	"NEURON_RT_ULTRASERVER_SERVER_ID",
	"NEURON_PROCESS_TAG",
};

static bool refused(const char *name, const char *what)
{
	LOG_AS(NRT, ERROR, "nrt_init", "%s=%s is not %s", name, getenv(name), what);
	return false;
}

bool nrt_env_flag(const char *name, bool *value)
{
	const char *text = env_text(name);
	int truth = text ? env_truth(text) : *value;

	if (truth < 0)
		return refused(name, "1 or 0");
	*value = truth;
	return true;
}

bool nrt_env_value(const char *name, unsigned long min, unsigned long max, const char *what,
		   unsigned long *value)
{
	const char *text = env_text(name);
	unsigned long n;

	if (!text)
		return true;
	if (!env_number(text, max, &n) || n < min)
		return refused(name, what);
	*value = n;
	return true;
}

bool nrt_env_range(const char **text, unsigned long max, unsigned long *first,
		   unsigned long *last)
{
	const char *at = *text;

	if (!env_digits(at, &at, max, first))
		return false;
	*last = *first;
	if (*at == '-' && !env_digits(at + 1, &at, max, last))
		return false;
	*text = *at ? at + 1 : NULL;
	return *last >= *first && (!*at || *at == ',');
}

bool nrt_text_replace(char **at, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return false;
	free(*at);
	*at = copy;
	return true;
}

/* In any order. */
static bool parse_cpus(const char *text, cpu_set_t *cpus)
{
	unsigned long first, last;

	CPU_ZERO(cpus);
	while (text) {
		if (!nrt_env_range(&text, CPU_SETSIZE - 1, &first, &last))
			return false;
		for (; first <= last; first++)
			CPU_SET(first, cpus);
	}
	return true;
}

static bool copy_text(const char *name, const char *otherwise, char **copy)
{
	const char *text = getenv(name);

	return nrt_text_replace(copy, text ? text : otherwise);
}

static bool read_pretend(struct nrt_env *env)
{
	static const char name[] = "NEURON_RT_PRETEND";
	const char *text = env_text(name);

	env->has_pretend = text;
	if (!text)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(pretend_names); i++)
		if (!strcasecmp(text, pretend_names[i])) {
			env->pretend = (enum neuron_pretend)i;
			return true;
		}
	return refused(name, "none, zero, copy or hash");
}

NRT_STATUS nrt_env_read(struct nrt_env *env)
{
	static const char affinity[] = "NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY";
	const char *nan = env_text("NEURON_RT_NUMERICAL_ERRORS_VERBOSITY");
	unsigned long n = 0;
	bool reset = true;

	env->offload = false;
	env->has_cpus = env_text(affinity);
	env->find_nan = nan && !strcasecmp(nan, "critical");
	if (env->has_cpus && !parse_cpus(env_text(affinity), &env->cpus)) {
		refused(affinity, "a list of processors");
		return NRT_INVALID;
	}
	if (!nrt_env_value("NEURON_RT_DBG_DUMP_INPUTS_ON_ERR", 0, INT_MAX, "a status", &n) ||
	    !nrt_env_flag("NEURON_RT_RESET_CORES", &reset) ||
	    !nrt_env_flag("NEURON_FAIL_ON_NAN", &env->find_nan) ||
	    !nrt_env_flag("NEURON_RT_OFFLOAD", &env->offload) || !read_pretend(env))
		return NRT_INVALID;
	env->dump_inputs_on = (NRT_STATUS)n;
	env->keep_cores = !reset;
	if (!copy_text("NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY", NRT_CORE_DUMP_DIRECTORY,
		       &env->core_dump_dir) ||
	    !copy_text("NEURON_RT_S3_CORE_DUMP_PREFIX", "", &env->core_dump_s3))
		return NRT_RESOURCE;
	/* An error, if a harmless one: at the level that is on. */
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (getenv(ignored[i]))
			LOG_AS(NRT, ERROR, "nrt_init", "%s has no effect in this version",
			       ignored[i]);
	return NRT_SUCCESS;
}

void nrt_env_forget(struct nrt_env *env)
{
	*env = (struct nrt_env){ 0 };
}

void nrt_env_free(struct nrt_env *env)
{
	free(env->core_dump_dir);
	free(env->core_dump_s3);
	nrt_env_forget(env);
}

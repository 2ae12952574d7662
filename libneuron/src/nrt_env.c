// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the environment asks for beyond cores and memory (nrt_init.c has these). */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "nrt_internal.h"

/* Of the interface, without anything here that they could change: libnrt(7) has the reasons. */
static const char *const ignored[] = {
	"NEURON_RT_ALLOW_LEGACY_NEFF",
	"NEURON_RT_DBG_CC_DMA_PACKET_SIZE",
	"NEURON_RT_DBG_DMA_PACKETIZATION_SIZE",
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

bool nrt_env_flag(const char *name)
{
	const char *v = getenv(name);

	return v && (!strcmp(v, "1") || !strcmp(v, "true") || !strcmp(v, "TRUE"));
}

bool nrt_env_parse(const char *text, const char **end, unsigned long max, unsigned long *value)
{
	char *e;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoul(text, &e, 10);
	*end = e;
	return !errno && *value <= max;
}

bool nrt_env_number(const char *name, unsigned long max, unsigned long *value)
{
	const char *text = getenv(name), *end;

	return text && nrt_env_parse(text, &end, max, value) && !*end;
}

bool nrt_env_range(const char **text, unsigned long max, unsigned long *first,
		   unsigned long *last)
{
	const char *at = *text;

	if (!nrt_env_parse(at, &at, max, first))
		return false;
	*last = *first;
	if (*at == '-' && !nrt_env_parse(at + 1, &at, max, last))
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

NRT_STATUS nrt_env_read(struct nrt_env *env)
{
	const char *cpus = getenv("NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY");
	const char *reset = getenv("NEURON_RT_RESET_CORES");
	const char *nan = getenv("NEURON_RT_NUMERICAL_ERRORS_VERBOSITY");
	unsigned long n = 0;

	env->has_cpus = cpus && *cpus;
	if (env->has_cpus && !parse_cpus(cpus, &env->cpus)) {
		LOG_AS(NRT, ERROR, "nrt_init",
		       "NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY=%s is not a list of processors", cpus);
		return NRT_INVALID;
	}
	if (getenv("NEURON_RT_DBG_DUMP_INPUTS_ON_ERR") &&
	    !nrt_env_number("NEURON_RT_DBG_DUMP_INPUTS_ON_ERR", INT_MAX, &n)) {
		LOG_AS(NRT, ERROR, "nrt_init",
		       "NEURON_RT_DBG_DUMP_INPUTS_ON_ERR=%s is not a status",
		       getenv("NEURON_RT_DBG_DUMP_INPUTS_ON_ERR"));
		return NRT_INVALID;
	}
	env->dump_inputs_on = (NRT_STATUS)n;
	env->keep_cores = reset && (!strcmp(reset, "0") || !strcasecmp(reset, "false"));
	env->find_nan = (nan && !strcmp(nan, "critical")) || nrt_env_flag("NEURON_FAIL_ON_NAN");
	if (!copy_text("NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY", NRT_CORE_DUMP_DIRECTORY,
		       &env->core_dump_dir) ||
	    !copy_text("NEURON_RT_S3_CORE_DUMP_PREFIX", "", &env->core_dump_s3))
		return NRT_RESOURCE;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (getenv(ignored[i]))
			LOG_AS(NRT, WARN, "nrt_init", "%s has no effect in this version",
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

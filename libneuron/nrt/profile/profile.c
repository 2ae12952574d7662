// SPDX-License-Identifier: LGPL-2.1-or-later
/* Device profiles: of a model, and of the last execution on each core. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nrt/nrt_profile.h>

#include "../../common/lock.h"
#include "../base/log.h"
#include "../base/output.h"
#include "../base/process.h"
#include "../object/model.h"
#include "profile.h"

struct nrt_profile_continuous_options {
	char *dir;
};

static struct {
	pthread_mutex_t lock;
	struct neuron_profile *model;		/* nrt_profile_start() */
	char *filename;
	int error;				/* of recording it, once it is stopped */
	struct neuron_profile **cores;		/* nrt_profile_continuous_start(), by vnc */
	char *dir;
	unsigned int saved;
} profiles = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- of a model ---------------------------------------------------------------------- */

/* Under the lock. */
static void forget_model(void)
{
	neuron_profile_close(profiles.model);
	free(profiles.filename);
	profiles.model = NULL;
	profiles.filename = NULL;
}

/*
 * Whether it can be written is known now, not only after hours of recording; what is in it
 * goes when there is something new.  A FIFO that nobody reads is refused, for nrt_close()
 * would wait for its reader.
 */
static NRT_STATUS try_file(const char *filename)
{
	int fd = open(filename, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);

	if (fd < 0) {
		LOG(NRT, ERROR, "profile %s: %m", filename);
		return NRT_FAILURE;
	}
	close(fd);
	return NRT_SUCCESS;
}

static NRT_STATUS start_model(const struct nrt_model *m, const char *filename)
{
	NRT_STATUS status;

	if (profiles.model) {
		LOG(NRT, ERROR, "a model is being profiled, or its profile is not written yet");
		return NRT_FAILURE;
	}
	profiles.filename = strdup(filename);
	status = profiles.filename ?
		 nrt_core_profile_start(m->vnc, m->model, false, &profiles.model) : NRT_RESOURCE;
	/* A start that is refused makes no file. */
	if (status == NRT_SUCCESS)
		status = try_file(filename);
	if (status != NRT_SUCCESS)
		forget_model();
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_profile_start(nrt_model_t *model, const char *filename)
{
	NRT_ENTER();
	NRT_MODEL(m, model);
	if (!filename || !*filename)
		return NRT_INVALID;
	GUARD(&profiles.lock);
	return start_model(m, filename);
}

NEURON_EXPORT NRT_STATUS nrt_profile_stop(const char *filename)
{
	NRT_STATUS status;
	int ret, fd;

	NRT_ENTER();
	GUARD(&profiles.lock);
	if (!profiles.model)
		return NRT_FAILURE;
	if (!filename)
		filename = profiles.filename;
	ret = neuron_profile_stop(profiles.model);
	if (ret != -EALREADY)
		profiles.error = ret;
	fd = nrt_open_named(filename);
	status = nrt_core_profile_write(profiles.model, fd, filename);
	/* It is kept for another file. Writing one with an error fails even if all went well. */
	if (fd < 0 || (status != NRT_SUCCESS && !profiles.error))
		return NRT_FAILURE;
	if (profiles.error)
		status = nrt_status_of(profiles.error);
	forget_model();
	return status;
}

/* ---- of the last execution on each core ---------------------------------------------- */

NEURON_EXPORT NRT_STATUS
nrt_profile_continuous_options_allocate(nrt_profile_continuous_options_t **options)
{
	if (!options)
		return NRT_INVALID;
	*options = calloc(1, sizeof(**options));
	return *options ? NRT_SUCCESS : NRT_RESOURCE;
}

NEURON_EXPORT NRT_STATUS nrt_profile_continuous_options_free(nrt_profile_continuous_options_t *options)
{
	if (!options)
		return NRT_INVALID;
	free(options->dir);
	free(options);
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS
nrt_profile_continuous_options_set_output_dir(nrt_profile_continuous_options_t *options,
					      const char *output_dir)
{
	if (!options || !output_dir || !*output_dir)
		return NRT_INVALID;
	return nrt_text_replace(&options->dir, output_dir) ? NRT_SUCCESS : NRT_RESOURCE;
}

static const char *dir_of(const nrt_profile_continuous_options_t *options, const char *otherwise)
{
	return options && options->dir ? options->dir : otherwise;
}

/* Under the lock. */
static void forget_cores(void)
{
	for (uint32_t i = 0; profiles.cores && i < nrt_process.nr_vncs; i++)
		neuron_profile_close(profiles.cores[i]);
	free(profiles.cores);
	free(profiles.dir);
	profiles.cores = NULL;
	profiles.dir = NULL;
}

static NRT_STATUS start_cores(const char *dir)
{
	NRT_STATUS status = NRT_SUCCESS;

	if (profiles.cores)
		return NRT_FAILURE;
	profiles.cores = calloc(nrt_process.nr_vncs, sizeof(struct neuron_profile *));
	profiles.dir = strdup(dir);
	if (!profiles.cores || !profiles.dir)
		status = NRT_RESOURCE;
	for (uint32_t i = 0; i < nrt_process.nr_vncs && status == NRT_SUCCESS; i++)
		status = nrt_core_profile_start(&nrt_process.vncs[i], NULL, true,
						&profiles.cores[i]);
	if (status != NRT_SUCCESS)
		forget_cores();
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_profile_continuous_start(nrt_profile_continuous_options_t *options)
{
	NRT_ENTER();
	GUARD(&profiles.lock);
	return start_cores(dir_of(options, NRT_OUTPUT_DIR));
}

static NRT_STATUS save_core(uint32_t vnc, const char *dir)
{
	const struct nrt_vnc *v = &nrt_process.vncs[vnc];
	char path[PATH_MAX];
	int ret = nrt_make_dir(dir);

	if (ret) {
		LOG(NRT, ERROR, "%s: %s", dir, strerror(-ret));
		return NRT_FAILURE;
	}
	if (snprintf(path, sizeof(path), "%s/profile_nd_%u_nc_%u_pid_%d_%u.json", dir,
		     neuron_device_index(v->device), v->index, (int)getpid(), profiles.saved) >=
	    (int)sizeof(path))
		return NRT_INVALID;
	profiles.saved++;
	return nrt_core_profile_write(profiles.cores[vnc], nrt_open_output(AT_FDCWD, path), path);
}

NEURON_EXPORT NRT_STATUS nrt_profile_continuous_save(uint32_t vnc,
						     nrt_profile_continuous_options_t *options)
{
	NRT_ENTER();
	GUARD(&profiles.lock);
	if (vnc >= nrt_process.nr_vncs)
		return NRT_INVALID;
	if (!profiles.cores)
		return NRT_FAILURE;
	return save_core(vnc, dir_of(options, profiles.dir));
}

NEURON_EXPORT NRT_STATUS nrt_profile_continuous_stop(void)
{
	NRT_ENTER();
	GUARD(&profiles.lock);
	if (!profiles.cores)
		return NRT_FAILURE;
	forget_cores();
	return NRT_SUCCESS;
}

/* ---- process ------------------------------------------------------------------------- */

void nrt_profiles_close(void)
{
	GUARD(&profiles.lock);
	forget_model();
	forget_cores();
}

void nrt_profiles_forget(void)
{
	pthread_mutex_init(&profiles.lock, NULL);
	profiles.model = NULL;
	profiles.filename = NULL;
	profiles.cores = NULL;
	profiles.dir = NULL;
}

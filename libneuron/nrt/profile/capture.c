// SPDX-License-Identifier: LGPL-2.1-or-later
/* Device profiles of a core: starting one, and its file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/log.h"
#include "../base/process.h"
#include "../object/report.h"
#include "profile.h"

NRT_STATUS nrt_core_profile_start(struct nrt_vnc *vnc, struct neuron_model *model, bool last_only,
				  struct neuron_profile **profile)
{
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_profile_opts opts = {
		.size = sizeof(opts),
		.model = model,
		.last_only = last_only,
		.failure = &failure,
		.refused = nrt_refused,
		.refused_data = vnc->device,
	};
	const char *variable;
	int ret;

	if (neuron_profile_read(&opts, &variable)) {
		LOG(NRT, ERROR, "%s=%s is not a number from 1 to 1024", variable,
		    getenv(variable));
		return NRT_INVALID;
	}
	ret = neuron_profile_start(vnc->core, &opts, profile);
	if (!ret)
		return NRT_SUCCESS;
	LOG(NRT, ERROR, "no profile of ND %u:NC %u: %s", neuron_device_index(vnc->device),
	    vnc->index, strerror(-ret));
	return nrt_status_of(ret);
}

NRT_STATUS nrt_core_profile_write(struct neuron_profile *profile, int fd, const char *name)
{
	int ret = fd < 0 ? fd : neuron_profile_write(profile, fd);

	if (fd >= 0 && close(fd) && !ret)
		ret = -errno;
	if (ret)
		LOG(NRT, ERROR, "profile %s: %s", name, strerror(-ret));
	return ret ? NRT_FAILURE : NRT_SUCCESS;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ranks of a job, on one host or several, exchange numbers. The launcher says who is who, and
 * where they meet:
 *
 *	cc nrt-job.c -o nrt-job $(pkg-config --cflags --libs nrt)
 *	srun --mpi=pmix -N 2 --gpus-per-node=1 ./nrt-job
 *	mpirun -H node1,node2 ./nrt-job
 *	NEURON_RT_ROOT_COMM_ID=10.0.0.1:5000 RANK=0 WORLD_SIZE=2 ./nrt-job
 */
#include <nrt/nrt.h>
#include <nrt/nrt_experimental.h>

#include "example.h"

static void ok(NRT_STATUS status, const char *what)
{
	if (status != NRT_SUCCESS)
		errx(1, "%s: %s", what, nrt_get_status_as_str(status));
}

/* The first of these variables that is set. */
static uint32_t number(const char *const *names, uint32_t otherwise)
{
	for (; *names; names++)
		if (getenv(*names))
			return (uint32_t)strtoul(getenv(*names), NULL, 10);
	return otherwise;
}

int main(void)
{
	static const char *const ranks[] = { "RANK", "PMIX_RANK", "SLURM_PROCID", NULL };
	static const char *const counts[] = { "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", NULL };
	uint32_t rank = number(ranks, 0), count = number(counts, 1), sum = 0;
	uint64_t own = rank + 1, *all = calloc(count, sizeof(*all));

	if (!all)
		err(1, "memory");
	ok(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), "nrt_init");
	ok(nrt_all_gather(0, rank, count, sizeof(own), &own, all), "nrt_all_gather");
	for (uint32_t i = 0; i < count; i++)
		sum += (uint32_t)all[i];
	printf("rank %u of %u: the sum is %u\n", rank, count, sum);
	nrt_close();
	free(all);
	return sum == count * (count + 1) / 2 ? 0 : 1;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the ranks of a job meet: NEURON_RT_ROOT_COMM_ID, or what the process with rank 0 has
 * told the launcher, if that speaks PMIx (mpirun, srun --mpi=pmix).
 */
#ifndef NRT_JOB_H
#define NRT_JOB_H

#include <stdbool.h>

#include <nrt/nrt.h>

/*
 * "address:port", for ever the same of a launcher.  Waits for the process with rank 0 at most for the
 * timeout of executions.  An error, which has its line in the log: NRT_INVALID nobody has set it.
 */
NRT_STATUS job_root(const char *func, const char **root);
/* The same for a line in the log: asks nobody. */
const char *job_root_text(void);
/* Nobody waits any more; or again. */
void job_closing(bool closing);
/* In a child, which the launcher does not know. */
void job_forget(void);

#endif

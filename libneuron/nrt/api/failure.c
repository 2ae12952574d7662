// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is kept of an execution that failed: its inputs, and what a helper of the site collects. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../common/wait.h"
#include "../base/log.h"
#include "execute.h"

/* uapi/FACTS.md 11 */
#define HELPER "/opt/aws/neuron/bin/neuron-dump"
#define NO_CLUSTER "0000000000000000"
#define HELPER_MS 60000

extern char **environ;

static int write_file(int dir, const char *name, const void *bytes, size_t size)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int ret;

	if (fd < 0)
		return -errno;
	ret = write_bytes(fd, bytes, size);
	if (close(fd) && !ret)
		ret = -errno;
	return ret;
}

static int dump_input(int dir, size_t number, const nrt_tensor_t *t, uint64_t bytes)
{
	char name[32];
	void *copy;
	int ret;

	if (!t || !nrt_tensor_valid(t) || !nrt_tensor_stored(t) || t->size < bytes)
		return -ENODATA;
	copy = malloc(bytes ? bytes : 1);
	if (!copy)
		return -ENOMEM;
	snprintf(name, sizeof(name), "input%zu.bin", number);
	if (nrt_tensor_transfer("nrt_execute", t, copy, 0, bytes, false) != NRT_SUCCESS)
		ret = -EIO;
	else
		ret = write_file(dir, name, copy, bytes);
	free(copy);
	return ret;
}

/* A directory of the working directory that was not there. */
static int new_directory(uint32_t id, char path[64])
{
	uint32_t r;
	int ret;

	do {
		if (getrandom(&r, sizeof(r), 0) != sizeof(r))
			return -EIO;
		snprintf(path, 64, "input_dump_%08x_h_nn_%u", r, id);
		ret = mkdir(path, 0700);
	} while (ret && errno == EEXIST);
	if (ret)
		return -errno;
	ret = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return ret < 0 ? -errno : ret;
}

static void dump_inputs(struct nrt_model *m, const struct nrt_set *in)
{
	const char *model = neuron_model_name(m->model);
	size_t number = 0;
	char path[64] = "";
	int dir = new_directory(m->id, path), ret = dir < 0 ? dir : 0;

	for (size_t i = 0; i < m->nr_io && !ret; i++)
		if (m->info[i].usage == NEURON_TENSOR_INPUT) {
			ret = dump_input(dir, number, nrt_set_find(in, m->info[i].name, number),
					 m->info[i].bytes);
			number++;
		}
	/* Last: who finds it finds all of them. */
	if (!ret)
		ret = write_file(dir, "model_name.txt", model, strlen(model));
	if (dir >= 0)
		close(dir);
	if (ret)
		LOG_AS(NMGR, ERROR, "nrt_execute", "cannot write the inputs of %s to %s: %s", model,
		       path, strerror(-ret));
	else
		LOG_AS(NMGR, ERROR, "nrt_execute", "the inputs of %s are in %s", model, path);
}

/* ---- the helper -------------------------------------------------------------------- */

struct facts {
	char date[32], pid[16], tid[16], log[24], instance[64], code[16];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t log_id;		/* of this process; under @lock */

/* In a child: another thread of the parent may have had the lock. */
void nrt_failure_forget(void)
{
	pthread_mutex_init(&lock, NULL);
	log_id = 0;
}

/* EC2 has the instance there; elsewhere whatever the firmware says. */
static void read_instance(char instance[64])
{
	char text[64];

	read_short("/sys/class/dmi/id/board_asset_tag", text, sizeof(text));
	if (sscanf(text, "%63s", instance) != 1)
		strcpy(instance, "unknown");
}

static void collect(struct facts *f, NRT_STATUS status)
{
	time_t now = time(NULL);
	struct tm tm;

	pthread_mutex_lock(&lock);
	/* Without a random one it is 0: still better than no dump. */
	if (!log_id && getrandom(&log_id, sizeof(log_id), 0) < 0)
		log_id = 0;
	snprintf(f->log, sizeof(f->log), "%016llx", (unsigned long long)log_id);
	pthread_mutex_unlock(&lock);
	localtime_r(&now, &tm);
	strftime(f->date, sizeof(f->date), "%Y-%m-%d-%H-%M", &tm);
	snprintf(f->pid, sizeof(f->pid), "%d", (int)getpid());
	snprintf(f->tid, sizeof(f->tid), "%ld", (long)syscall(SYS_gettid));
	snprintf(f->code, sizeof(f->code), "%d", (int)status);
	read_instance(f->instance);
}

/* NULL: no memory. */
static char *expand(const char *pattern, const struct facts *f)
{
	const char *const values[] = {
		['d'] = f->date, ['c'] = NO_CLUSTER, ['p'] = f->pid, ['t'] = f->tid,
		['l'] = f->log, ['i'] = f->instance,
	};
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (; *pattern; pattern++) {
		size_t which = *pattern == '%' ? (unsigned char)pattern[1] : 0;

		if (which < ARRAY_SIZE(values) && values[which]) {
			fputs(values[which], out);
			pattern++;
		} else {
			/* What is not known stays, and "%%" hides no letter that is known. */
			fputc(*pattern, out);
			if (*pattern == '%' && pattern[1])
				fputc(*++pattern, out);
		}
	}
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

/* It may look at the device, so wait; but an execution must not hang for it. */
static void wait_for(pid_t pid)
{
	const struct timespec nap = { .tv_nsec = 10 * 1000 * 1000 };
	const int64_t end = now_ms() + HELPER_MS;
	int status = 0;
	pid_t got;

	do {
		got = waitpid(pid, &status, WNOHANG);
		if (!got)
			nanosleep(&nap, NULL);
	} while ((!got || (got < 0 && errno == EINTR)) && now_ms() < end);
	if (!got) {
		LOG_AS(NRT, WARN, "nrt_execute", HELPER " is killed after %d s", HELPER_MS / 1000);
		kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	} else if (got == pid && status) {
		LOG_AS(NRT, WARN, "nrt_execute", HELPER " ended with %d",
		       WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
	}
}

static void run_helper(const char *const *argv)
{
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;
	int ret = posix_spawnattr_init(&attr);

	if (ret)
		return;
	/* Threads for queues have all signals blocked. */
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	ret = posix_spawn(&pid, HELPER, NULL, &attr, (char *const *)argv, environ);
	posix_spawnattr_destroy(&attr);
	if (ret)
		LOG_AS(NRT, WARN, "nrt_execute", HELPER ": %s", strerror(ret));
	else
		wait_for(pid);
}

static void core_dump(const struct nrt_model *m, NRT_STATUS status)
{
	const struct nrt_env *env = &nrt_process.env;
	struct facts f = { 0 };
	char *dir;

	if ((!*env->core_dump_dir && !*env->core_dump_s3) || access(HELPER, X_OK))
		return;
	collect(&f, status);
	dir = expand(env->core_dump_dir, &f);
	if (!dir)
		return;
	run_helper((const char *const []){
		HELPER,
		"--neff-name", neuron_model_name(m->model),
		"--neff-uuid", neuron_model_uuid(m->model),
		"--date-time", f.date,
		"--pid", f.pid,
		"--tid", f.tid,
		"--log-id", f.log,
		"--instance-id", f.instance,
		"--cluster-id", NO_CLUSTER,
		"--error-location", "nrt_execute",
		"--error-code", f.code,
		"--local-output-dir", dir,
		*env->core_dump_s3 ? "--s3-output-prefix" : NULL, env->core_dump_s3,
		NULL,
	});
	free(dir);
}

void nrt_execution_failed(struct nrt_model *m, const struct nrt_set *in, NRT_STATUS status)
{
	if (nrt_process.env.dump_inputs_on == status)
		dump_inputs(m, in);
	/* The device completed it, never got it, or the mistake is the caller's. */
	if (status != NRT_EXEC_COMPLETED_WITH_NUM_ERR && status != NRT_INVALID &&
	    status != NRT_RESOURCE && !neuron_model_obstacle(m->model))
		core_dump(m, status);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The root of a job by PMIx.  libpmix is loaded by the first rank that needs it, and stays: a
 * process cannot come to its server twice.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "../../common/env.h"
#include "../base/log.h"
#include "job.h"

static atomic_bool closes;

#ifdef NRT_PMIX

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pmix.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../common/lock.h"
#include "../../common/wait.h"
#include "../base/process.h"
#include "message.h"
#include "world.h"

#define KEY "org.neuron.root"
/* Between looks whether the library is being closed. */
#define TRY_SECONDS 1

static struct {
	pthread_mutex_t lock;		/* everything below */
	bool here;			/* PMIx_Init() has been called */
	bool child;			/* of a process of the job: is none itself */
	char root[INET6_ADDRSTRLEN + 10];	/* "": not known yet */
	int reserved;			/* a socket that has the port, or -1 */
	pmix_proc_t self;
	typeof(PMIx_Init) *init;
	typeof(PMIx_Finalize) *finalize;
	typeof(PMIx_Put) *put;
	typeof(PMIx_Commit) *commit;
	typeof(PMIx_Get) *get;
	typeof(PMIx_Error_string) *error;
} job = { .lock = PTHREAD_MUTEX_INITIALIZER, .reserved = -1 };

/* To a launcher, a process that has come and does not go has crashed. */
static void leave(void)
{
	if (job.here)
		job.finalize(NULL, 0);
	job.here = false;
}

/* What it is linked with stays its own business; NULL or what is missing. */
static const char *find_calls(void)
{
	void *object = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);

	if (object) {
		job.init = dlsym(object, "PMIx_Init");
		job.finalize = dlsym(object, "PMIx_Finalize");
		job.put = dlsym(object, "PMIx_Put");
		job.commit = dlsym(object, "PMIx_Commit");
		job.get = dlsym(object, "PMIx_Get");
		job.error = dlsym(object, "PMIx_Error_string");
	}
	return job.init && job.finalize && job.put && job.commit && job.get && job.error ? NULL :
	       dlerror() ?: "libpmix";
}

static NRT_STATUS come(const char *func)
{
	const char *missing = find_calls();
	pmix_status_t ret;

	if (missing) {
		LOG_AS(ENC, ERROR, func, "NEURON_RT_ROOT_COMM_ID is not set, and the launcher cannot be asked: %s",
		       missing);
		return NRT_FAILURE;
	}
	ret = job.init(&job.self, NULL, 0);
	if (ret != PMIX_SUCCESS) {
		LOG_AS(ENC, ERROR, func, "NEURON_RT_ROOT_COMM_ID is not set, and the launcher does not answer: %s",
		       job.error(ret));
		return NRT_FAILURE;
	}
	job.here = true;
	if (atexit(leave))
		LOG_AS(ENC, WARN, func, "the launcher will not hear of the end of this process");
	return NRT_SUCCESS;
}

/* A number that the launcher has of the whole job, or of this host; 0: it does not say. */
static uint32_t number_of(const char *key)
{
	pmix_proc_t all = job.self;
	pmix_value_t *value;
	uint32_t n;

	all.rank = PMIX_RANK_WILDCARD;
	if (job.get(&all, key, NULL, 0, &value) != PMIX_SUCCESS)
		return 0;
	n = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
	free(value);
	return n;
}

static bool is_named(const struct addrinfo *names, const struct sockaddr *a)
{
	size_t size = a->sa_family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);

	for (; names; names = names->ai_next)
		if (names->ai_family == a->sa_family &&
		    !memcmp(world_address_ip((const void *)names->ai_addr),
			    world_address_ip((const void *)a), size))
			return true;
	return false;
}

/* Of 0 to 4 how good an interface's address is for others: that of the host's name is best, then IPv4. */
static int worth(const struct ifaddrs *i, const struct addrinfo *names)
{
	const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;
	const unsigned int need = IFF_UP | IFF_RUNNING;
	int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;

	if ((i->ifa_flags & (need | IFF_LOOPBACK)) != need ||
	    (family != AF_INET && (family != AF_INET6 || IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))))
		return 0;
	return (family == AF_INET ? 2 : 1) + (is_named(names, i->ifa_addr) ? 2 : 0);
}

/* The first of the best. */
static bool own_address(union world_address *own)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *names = NULL;
	struct ifaddrs *list;
	char host[256];
	int best = 0;

	if (getifaddrs(&list))
		return false;
	if (gethostname(host, sizeof(host)) || getaddrinfo(host, NULL, &hints, &names))
		names = NULL;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		int w = worth(i, names);

		if (w <= best)
			continue;
		best = w;
		memcpy(own, i->ifa_addr, world_address_size((const void *)i->ifa_addr));
	}
	freeifaddrs(list);
	if (names)
		freeaddrinfo(names);
	return best;
}

/* A port that no other job takes: until this process ends, or listens there itself. */
static int reserve(union world_address *own)
{
	socklen_t size = world_address_size(own);
	int fd = socket(own->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		return -errno;
	if (!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
	    !bind(fd, &own->any, size) && !getsockname(fd, &own->any, &size))
		return fd;
	one = -errno;
	close(fd);
	return one;
}

/* As the process with rank 0: choose it, and tell the others. */
static NRT_STATUS tell(const char *func)
{
	union world_address own = { .v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	uint32_t ranks = number_of(PMIX_JOB_SIZE);
	pmix_value_t value = { .type = PMIX_STRING };
	char text[INET6_ADDRSTRLEN], root[sizeof(job.root)];
	pmix_status_t ret;

	if ((!ranks || ranks != number_of(PMIX_LOCAL_SIZE)) && !own_address(&own)) {
		LOG_AS(ENC, ERROR, func, "no interface is up that other hosts can reach: NEURON_RT_ROOT_COMM_ID has to be set");
		return NRT_FAILURE;
	}
	job.reserved = reserve(&own);
	if (job.reserved < 0) {
		LOG_AS(ENC, ERROR, func, "no port to meet at: %s", strerror(-job.reserved));
		return NRT_FAILURE;
	}
	inet_ntop(own.any.sa_family, world_address_ip(&own), text, sizeof(text));
	if (own.any.sa_family == AF_INET6)
		snprintf(root, sizeof(root), "[%s]:%u", text, ntohs(own.v6.sin6_port));
	else
		snprintf(root, sizeof(root), "%s:%u", text, ntohs(own.v4.sin_port));
	value.data.string = root;
	ret = job.put(PMIX_GLOBAL, KEY, &value);
	if (ret == PMIX_SUCCESS)
		ret = job.commit();
	if (ret == PMIX_SUCCESS) {
		memcpy(job.root, root, sizeof(root));
		return NRT_SUCCESS;
	}
	LOG_AS(ENC, ERROR, func, "the launcher does not take the root %s: %s", root, job.error(ret));
	close(job.reserved);
	job.reserved = -1;
	return NRT_FAILURE;
}

/* As another one: hear it. */
static NRT_STATUS hear(const char *func)
{
	struct deadline deadline = deadline_in(nrt_process.timeout_ms);
	pmix_info_t limit = { .key = PMIX_TIMEOUT, .value = { .type = PMIX_INT, .data.integer = TRY_SECONDS } };
	pmix_proc_t first = job.self;
	pmix_value_t *value;
	pmix_status_t ret;
	bool late, fits;

	first.rank = 0;
	for (;;) {
		ret = job.get(&first, KEY, &limit, 1, &value);
		late = ret == PMIX_ERR_TIMEOUT || ret == PMIX_ERR_NOT_FOUND;
		if (!late || !deadline_left(&deadline) || closes)
			break;
		if (ret == PMIX_ERR_NOT_FOUND)
			usleep(20000);
	}
	if (ret != PMIX_SUCCESS) {
		LOG_AS(ENC, ERROR, func, "process 0 of the job has not told the launcher where to meet: %s",
		       job.error(ret));
		return closes ? NRT_CLOSED : late ? NRT_TIMEOUT : NRT_FAILURE;
	}
	fits = value->type == PMIX_STRING && value->data.string &&
	       strlen(value->data.string) < sizeof(job.root);
	if (fits)
		strcpy(job.root, value->data.string);
	else
		LOG_AS(ENC, ERROR, func, "what the launcher says is not a root");
	if (value->type == PMIX_STRING)
		free(value->data.string);
	free(value);
	return fits ? NRT_SUCCESS : NRT_FAILURE;
}

static NRT_STATUS launcher_root(const char *func, const char **root)
{
	NRT_STATUS status = NRT_SUCCESS;

	GUARD(&job.lock);
	if (!job.root[0] && !job.here)
		status = come(func);
	if (!job.root[0] && status == NRT_SUCCESS)
		status = job.self.rank ? hear(func) : tell(func);
	*root = job.root;
	return status;
}

static const char *known_root(void)
{
	GUARD(&job.lock);
	return job.root;
}

static bool has_launcher(void)
{
	return !job.child && getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK");
}

void job_forget(void)
{
	pthread_mutex_init(&job.lock, NULL);
	job.here = false;
	job.child = true;
	comm_close_fds(&job.reserved, 1);
}

#else /* built without PMIx: nobody is asked */

static const char *known_root(void)
{
	return "";
}

static bool has_launcher(void)
{
	return false;
}

static NRT_STATUS launcher_root(const char *func, const char **root)
{
	(void)func;
	(void)root;
	return NRT_INVALID;
}

void job_forget(void)
{
}

#endif

void job_closing(bool closing)
{
	closes = closing;
}

const char *job_root_text(void)
{
	return env_text("NEURON_RT_ROOT_COMM_ID") ?: known_root();
}

NRT_STATUS job_root(const char *func, const char **root)
{
	*root = env_text("NEURON_RT_ROOT_COMM_ID");
	if (*root)
		return NRT_SUCCESS;
	if (has_launcher())
		return launcher_root(func, root);
	LOG_AS(ENC, ERROR, func, "NEURON_RT_ROOT_COMM_ID is not set");
	return NRT_INVALID;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hosts on this machine: each is a process in a network name space of its own, with a
 * device of its own (fake_driver.h), and a cable to a switch in another name space.  Only
 * their addresses are used.  Needs root.
 */
#ifndef FLEET_H
#define FLEET_H

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <nrt/nrt.h>

#include "fake_driver.h"
#include "nrt/cc/fabric.h"

#ifndef FLEET_MUST
#define FLEET_MUST(cond) assert_true(cond)
#endif

#define MAX_HOSTS 4u
#define PORT 19000

static char directory[] = "/tmp/neuron_fleet_XXXXXX";

struct fleet {
	uint32_t hosts, here;	/* ranks of each */
	bool interleaved;	/* neighbours among the ranks are on different hosts */
	int (*main)(const struct fleet *f, uint32_t host);	/* 0, or where it has failed */
	const void *arg;
	/* pids, and what parent and hosts say to each other */
	pid_t net, pid[MAX_HOSTS];
	int to[MAX_HOSTS], from[MAX_HOSTS];
};

static inline uint32_t host_of(const struct fleet *f, uint32_t rank)
{
	return f->interleaved ? rank % f->hosts : rank / f->here;
}

static inline uint32_t rank_of(const struct fleet *f, uint32_t host, uint32_t i)
{
	return f->interleaved ? i * f->hosts + host : host * f->here + i;
}

__attribute__((format(printf, 1, 2)))
static int run(const char *format, ...)
{
	char line[300];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	return system(line);
}

static void say(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(90);
}

static bool hear(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 1;
}

static void host_main(const struct fleet *f, uint32_t host, int in, int out)
{
	char text[300];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET))
		_exit(91);
	say(out);
	if (!hear(in) || run("ip addr add 10.99.0.%u/24 dev eth0 && ip link set eth0 up && ip link set lo up",
			     host + 1))
		_exit(92);
	snprintf(text, sizeof(text), "%s/%u", directory, host);
	mkdir(text, 0700);
	setenv("XDG_RUNTIME_DIR", text, 1);
	fake.nr_devices = 1;
	if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS)
		_exit(93);
	((struct fleet *)(uintptr_t)f)->to[host] = in;
	((struct fleet *)(uintptr_t)f)->from[host] = out;
	int status = f->main(f, host);

	nrt_close();
	_exit(status ? status : fake_used() || fake.mapped ? 94 : 0);
}

/* The switch is there until it is killed, and the cables with it. */
static void net_main(int in, int out, uint32_t hosts)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET))
		_exit(91);
	say(out);
	if (!hear(in) || run("ip link add br0 type bridge && ip link set br0 up"))
		_exit(92);
	for (uint32_t i = 0; i < hosts; i++)
		if (run("ip link set port%u master br0 && ip link set port%u up", i, i))
			_exit(92);
	say(out);
	for (;;)
		pause();
}

static void start(struct fleet *f)
{
	int to[2], from[2], net_in[2], net_out[2];

	FLEET_MUST(!(pipe(net_in) | pipe(net_out)));
	f->net = fork();
	if (!f->net)
		net_main(net_in[0], net_out[1], f->hosts);
	FLEET_MUST(hear(net_out[0]));
	for (uint32_t i = 0; i < f->hosts; i++) {
		FLEET_MUST(!(pipe(to) | pipe(from)));
		f->pid[i] = fork();
		if (!f->pid[i])
			host_main(f, i, to[0], from[1]);
		close(to[0]);
		close(from[1]);
		f->to[i] = to[1];
		f->from[i] = from[0];
		FLEET_MUST(hear(f->from[i]));
		FLEET_MUST(!run("ip link add eth0 netns %d type veth peer name port%u netns %d",
				f->pid[i], i, f->net));
	}
	say(net_in[1]);
	FLEET_MUST(hear(net_out[0]));
	for (uint32_t i = 0; i < f->hosts; i++)
		say(f->to[i]);
	for (int i = 0; i < 2; i++) {
		close(net_in[i]);
		close(net_out[i]);
	}
}

/* Each ends with 0, but one that was killed. */
static void finish(struct fleet *f, uint32_t killed)
{
	for (uint32_t i = 0; i < f->hosts; i++) {
		int status;

		FLEET_MUST(waitpid(f->pid[i], &status, 0) == f->pid[i]);
		close(f->to[i]);
		close(f->from[i]);
		if (status && i != killed)
			fprintf(stderr, "host %u of %u ends with %#x\n", i, f->hosts, status);
		FLEET_MUST(i == killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : !status);
	}
	kill(f->net, SIGKILL);
	waitpid(f->net, NULL, 0);
}

static inline void run_fleet(struct fleet *f)
{
	start(f);
	finish(f, UINT32_MAX);
}

/* What all of them have in common. */
static int fleet_setup(void)
{
	char root[32];

	/* No search for hardware, which takes seconds for each host. */
	setenv("FI_PROVIDER", "tcp,ofi_rxm", 1);
	snprintf(root, sizeof(root), "10.99.0.1:%u", PORT);
	setenv("NEURON_RT_ROOT_COMM_ID", root, 1);
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 0);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_MICROCODE_MB", "0", 1);
	return !mkdtemp(directory);
}

static int fleet_teardown(void)
{
	return run("rm -r %s", directory);
}

/* For a group of tests, with a setup that calls fleet_setup(). */
static inline int fleet_end(void **state)
{
	(void)state;
	return fleet_teardown();
}

/* Can they run here?  Says so if not; with TEST in the environment those of that name. */
static inline bool fleet_tests(void)
{
	if (fabric_missing() || geteuid()) {
		printf("1..0 # skipped: needs root and libfabric\n");
		return false;
	}
	if (getenv("TEST"))
		cmocka_set_test_filter(getenv("TEST"));
	return true;
}

#endif

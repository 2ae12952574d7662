// SPDX-License-Identifier: GPL-2.0-only
/*
 * The first process of a test guest. It runs every file of /tests in order and
 * reports on serial lines of its own, so that nothing the kernel prints, and
 * nothing a test prints, can be taken for a verdict:
 *
 *   ttyS0	kernel console (the host searches it for complaints)
 *   ttyS1	output of the tests, also read by people
 *   ttyS2	the verdict, written by this program alone
 *
 * Verdict lines: "plan N", then for each test "test NAME STATUS OK NOT_OK
 * SECONDS", where STATUS is an exit status, "signal-N" or "timeout", and OK and NOT_OK
 * count the "ok" and "not ok" lines the test printed; then "check NAME pass" or
 * "check NAME fail REASON"; and "done" as the very last thing. The host believes
 * nothing without "done".
 *
 * On the kernel command line: rig.timeout=SECONDS for each test,
 * rig.leaks=0 to leave out the leak scan, rig.off=1 to power off at the end
 * instead of restarting, rig.first=1 to end with the first test that fails,
 * rig.time=SECONDS for a kernel that has read no clock.
 */

#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define TESTS_DIR	"/tests"
#define KMEMLEAK	"/sys/kernel/debug/kmemleak"

/* Seconds before kmemleak looks at an object (mm/kmemleak.c). */
#define KMEMLEAK_AGE	5

/*
 * Taint flags that mean something went wrong (Documentation/admin-guide/
 * tainted-kernels.rst): machine check, bad page, died, warned, soft lockup.
 */
#define BAD_TAINTS	(1UL << 4 | 1UL << 5 | 1UL << 7 | 1UL << 9 | 1UL << 14)

static int verdict_fd = -1;
static int output_fd = -1;
static int test_timeout = 300;
static int scan_leaks = 1;
static int power_off;
static int end_with_first;

static void write_all(int fd, const char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(fd, buf, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return;
		}
		buf += n;
		len -= (size_t)n;
	}
}

__attribute__((format(printf, 2, 3)))
static void put(int fd, const char *format, ...)
{
	char line[512];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (len < 0)
		return;
	if ((size_t)len >= sizeof(line))
		len = sizeof(line) - 1;
	write_all(fd, line, (size_t)len);
}

/* Into the kernel log, so that a trace there can be told to belong to a test. */
static void note(const char *what, const char *name)
{
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	put(fd, "<5>rig: %s %s", what, name);
	close(fd);
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -1 : 0;
}

/* Returns the length, or -1; the buffer is always terminated. */
static ssize_t read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	buf[0] = 0;
	if (fd < 0)
		return -1;
	while (len < size - 1) {
		n = read(fd, buf + len, size - 1 - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	close(fd);
	buf[len] = 0;
	return n < 0 ? -1 : (ssize_t)len;
}

static int open_line(const char *path)
{
	struct termios t;
	int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (!tcgetattr(fd, &t)) {
		cfmakeraw(&t);
		cfsetspeed(&t, B115200);
		tcsetattr(fd, TCSANOW, &t);
	}
	return fd;
}

static void mount_one(const char *type, const char *where)
{
	mkdir(where, 0755);
	mount(type, where, type, 0, NULL);
}

static void prepare(void)
{
	struct timespec now = { 0 };
	char line[4096], *p;

	mount_one("proc", "/proc");
	mount_one("sysfs", "/sys");
	mount_one("devtmpfs", "/dev");
	mount_one("tmpfs", "/tmp");
	mount_one("tmpfs", "/run");
	mkdir("/dev/shm", 0755);
	mount_one("tmpfs", "/dev/shm");
	mount_one("debugfs", "/sys/kernel/debug");
	mount_one("tracefs", "/sys/kernel/tracing");

	/*
	 * Let go of the console: its line shares an interrupt with ttyS2, and
	 * only the kernel is to write there.
	 */
	close(0);
	close(1);
	close(2);
	if (open("/dev/null", O_RDWR) != 0 || dup(0) != 1 || dup(0) != 2)
		_exit(1);

	output_fd = open_line("/dev/ttyS1");
	verdict_fd = open_line("/dev/ttyS2");

	if (read_file("/proc/cmdline", line, sizeof(line)) > 0) {
		p = strstr(line, "rig.timeout=");
		if (p)
			test_timeout = atoi(p + strlen("rig.timeout="));
		p = strstr(line, "rig.leaks=");
		if (p)
			scan_leaks = atoi(p + strlen("rig.leaks="));
		p = strstr(line, "rig.off=");
		if (p)
			power_off = atoi(p + strlen("rig.off="));
		p = strstr(line, "rig.first=");
		if (p)
			end_with_first = atoi(p + strlen("rig.first="));
		p = strstr(line, "rig.time=");
		if (p)
			now.tv_sec = atoll(p + strlen("rig.time="));
		if (time(NULL) < now.tv_sec / 2)
			clock_settime(CLOCK_REALTIME, &now);
	}

	setenv("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", 1);
	setenv("HOME", "/tmp", 1);
	setenv("LANG", "C.UTF-8", 1);
}

struct counts {
	unsigned int ok;
	unsigned int not_ok;
	/* The line being received; longer lines are counted by their start. */
	char line[16];
	size_t len;
	int blank;
};

static void count_line(struct counts *c)
{
	c->line[c->len] = 0;
	if (!strncmp(c->line, "not ok", 6))
		c->not_ok++;
	else if (!strncmp(c->line, "ok", 2) &&
		 (!c->line[2] || isspace((unsigned char)c->line[2])))
		c->ok++;
}

/* Counts results at the start of lines; indented ones are details. */
static void count(struct counts *c, const char *buf, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (buf[i] == '\n') {
			count_line(c);
			c->len = 0;
		} else if (c->len < sizeof(c->line) - 1) {
			c->line[c->len++] = buf[i];
		}
	}
}

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static pid_t start(const char *path, int out)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setsid();
	dup2(out, 1);
	dup2(out, 2);
	if (chdir("/tmp"))
		_exit(126);
	execl(path, path, (char *)NULL);
	dprintf(2, "cannot run %s: %s\n", path, strerror(errno));
	_exit(127);
}

/*
 * A test is over when its process has ended, even if children of it still hold
 * the pipe; what they wrote until then is taken in. Returns 0 if it passed.
 */
static int run_test(const char *name)
{
	struct counts c = { 0 };
	char path[512], buf[4096], result[32];
	int status = 0, timed_out = 0, ended = 0;
	int p[2];
	long began = now(), deadline = began + test_timeout;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/%s", TESTS_DIR, name);
	note("start", name);
	put(output_fd, "# %s\n", name);
	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) ||
	    fcntl(p[1], F_SETFL, 0)) {
		put(verdict_fd, "test %s pipe 0 0 0\n", name);
		return -1;
	}
	pid = start(path, p[1]);
	close(p[1]);

	for (;;) {
		struct pollfd fd = { .fd = p[0], .events = POLLIN };
		ssize_t n;
		pid_t w;

		poll(&fd, 1, ended ? 0 : 100);
		n = read(p[0], buf, sizeof(buf));
		if (n > 0) {
			write_all(output_fd, buf, (size_t)n);
			count(&c, buf, (size_t)n);
			continue;
		}
		if (ended)
			break;
		while ((w = waitpid(-1, &status, WNOHANG)) > 0) {
			if (w == pid) {
				ended = 1;
				break;
			}
		}
		if (!n && !ended)
			usleep(50000);
		if (!ended && !timed_out && now() >= deadline) {
			timed_out = 1;
			note("timeout in", name);
			/* All blocked tasks, then all processors. */
			write_file("/proc/sysrq-trigger", "w");
			write_file("/proc/sysrq-trigger", "l");
			kill(-pid, SIGKILL);
		}
		/* A process that survives SIGKILL is stuck in the kernel. */
		if (timed_out && now() >= deadline + 10)
			break;
	}
	count_line(&c);
	close(p[0]);
	kill(-pid, SIGKILL);

	if (timed_out)
		snprintf(result, sizeof(result), "timeout");
	else if (WIFSIGNALED(status))
		snprintf(result, sizeof(result), "signal-%d", WTERMSIG(status));
	else
		snprintf(result, sizeof(result), "%d", WEXITSTATUS(status));
	note("end", name);
	put(output_fd, "# %s: status %s\n", name, result);
	put(verdict_fd, "test %s %s %u %u %ld\n", name, result, c.ok, c.not_ok, now() - began);
	return timed_out || status || c.not_ok ? -1 : 0;
}

static int visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void check_taint(void)
{
	char buf[64];
	unsigned long taint;

	if (read_file("/proc/sys/kernel/tainted", buf, sizeof(buf)) <= 0) {
		put(verdict_fd, "check taint fail unreadable\n");
		return;
	}
	taint = strtoul(buf, NULL, 10);
	if (taint & BAD_TAINTS)
		put(verdict_fd, "check taint fail %#lx\n", taint);
	else
		put(verdict_fd, "check taint pass\n");
}

/* Lockdep turns itself off after its first complaint. */
static void check_lockdep(void)
{
	char buf[8192], *p;

	if (read_file("/proc/lockdep_stats", buf, sizeof(buf)) <= 0)
		return;
	p = strstr(buf, "debug_locks:");
	if (p && strtol(p + strlen("debug_locks:"), NULL, 10) == 1)
		put(verdict_fd, "check lockdep pass\n");
	else
		put(verdict_fd, "check lockdep fail turned itself off\n");
}

/*
 * Two scans: the first may take a stale value on some stack for a reference.
 * Pointers held by a stopped task are looked at again in the second one.
 */
static void check_leaks(void)
{
	static char buf[65536];
	ssize_t len;
	int fd;

	if (access(KMEMLEAK, F_OK))
		return;
	note("leak", "scan");
	sleep(KMEMLEAK_AGE + 1);
	if (write_file(KMEMLEAK, "scan") || write_file(KMEMLEAK, "scan")) {
		put(verdict_fd, "check kmemleak fail cannot scan\n");
		return;
	}
	len = read_file(KMEMLEAK, buf, sizeof(buf));
	if (!len) {
		put(verdict_fd, "check kmemleak pass\n");
		return;
	}
	put(verdict_fd, "check kmemleak fail unreferenced objects\n");
	fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		char *line, *next;

		for (line = buf; line && *line; line = next) {
			next = strchr(line, '\n');
			if (next)
				*next++ = 0;
			put(fd, "<3>kmemleak: %s", line);
		}
		close(fd);
	}
}

int main(void)
{
	struct dirent **list = NULL;
	int n, i;

	if (getpid() != 1)
		return 1;
	prepare();
	if (verdict_fd < 0 || output_fd < 0) {
		note("cannot open", "serial lines");
		goto off;
	}

	n = scandir(TESTS_DIR, &list, visible, alphasort);
	if (n < 0)
		n = 0;
	put(verdict_fd, "plan %d\n", n);
	for (i = 0; i < n; i++)
		if (run_test(list[i]->d_name) && end_with_first)
			break;

	if (scan_leaks)
		check_leaks();
	check_lockdep();
	check_taint();
	put(verdict_fd, "done\n");
	tcdrain(output_fd);
	tcdrain(verdict_fd);
off:
	sync();
	/* QEMU ends on a restart; User Mode Linux would start again. */
	reboot(power_off ? RB_POWER_OFF : RB_AUTOBOOT);
	for (;;)
		pause();
}

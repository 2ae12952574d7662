// SPDX-License-Identifier: GPL-2.0-only
/*
 * 32-bit programs are not served: layouts contain pointers, and 64-bit members lie elsewhere
 * on i386.  The int 0x80 gate is the one they come through, also in a program of 64 bits.
 */
#include <signal.h>
#include <sys/mman.h>

#include "check.h"

/* Larger than any structure of either door; sizes of i386 are below those of x86-64. */
#define SIZES	600

#ifdef __x86_64__
#define I386_GETPID	20
#define I386_IOCTL	54

/* A system call as a 32-bit program makes it; negative: the errno. */
static int call32(unsigned int nr, unsigned int a, unsigned int b, unsigned int c)
{
	int result;

	asm volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b), "d"(c)
		     : "r8", "r9", "r10", "r11", "memory");
	return result;
}

static void no_gate(int sig)
{
	(void)sig;
	_exit(1);
}

/* Kernels have 32-bit programs or not; User Mode Linux takes the number for another call. */
static int has_gate(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		signal(SIGSEGV, no_gate);
		signal(SIGILL, no_gate);
		_exit(call32(I386_GETPID, 0, 0, 0) != getpid());
	}
	return waitpid(pid, &status, 0) == pid && !status;
}

/* Every number, direction and size: also the layouts that only i386 has. */
static void every_command(int fd, void *low)
{
	unsigned int nr, dir, size, taken = 0, last = 0;

	for (nr = 0; nr < 256; nr++)
		for (dir = 0; dir < 4; dir++)
			for (size = 0; size < SIZES; size++) {
				unsigned int cmd = _IOC(dir, NEURON_IOCTL_BASE, nr, size);

				if (call32(I386_IOCTL, fd, cmd, (uintptr_t)low) == -ENOTTY)
					continue;
				taken++;
				last = cmd;
			}
	CHECK(!taken, "every command is ENOTTY (not so: %u, such as %#x)", taken, last);
}

static void from_32_bits(void)
{
	struct neuron_native_geometry *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
						  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int fd = open_node(O_RDWR);

	CHECK(low != MAP_FAILED, "memory that a 32-bit program can name");
	low->size = sizeof(*low);
	CHECK(!call(fd, NEURON_NATIVE_GET_GEOMETRY, low), "the device answers 64 bits");
	low->size = sizeof(*low);
	CHECK(call32(I386_IOCTL, fd, NEURON_NATIVE_GET_GEOMETRY, (uintptr_t)low) == -ENOTTY,
	      "not the same from 32 bits");
	/* So it is not the gate that refuses. */
	CHECK(!call32(I386_IOCTL, fd, FIONCLEX, 0) && !(fcntl(fd, F_GETFD) & FD_CLOEXEC),
	      "what every file has works from 32 bits");
	every_command(fd, low);
	low->size = sizeof(*low);
	CHECK(!call(fd, NEURON_NATIVE_GET_GEOMETRY, low), "and 64 bits again");
	close(fd);
}
#endif

int main(void)
{
#ifdef __x86_64__
	if (is_uml() || !has_gate()) {
		printf("ok - skipped: this kernel has no 32-bit programs\n");
		return 0;
	}
	from_32_bits();
#else
	printf("ok - skipped: another gate\n");
#endif
	return failed ? 1 : 0;
}

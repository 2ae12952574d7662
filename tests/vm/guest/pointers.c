// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults at pointers into mappings of a device: of memory that was freed, of what a core does not
 * have, of a device that is gone; what the process itself knows of it, and what another one.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <neuron/neuron.h>

#include "emu.h"

#define BYTES	(1u << 20)

static struct neuron_device *dev;
static int number;
static sigjmp_buf jump;
static struct neuron_location fault = { .size = sizeof(fault) };
static int told;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)context;
	told = neuron_pointer_resolve(dev, info->si_addr, &fault);
	siglongjmp(jump, sig);
}

/* The signal that writing there ends in; 0: none. */
static int touch(volatile uint32_t *p)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	int sig;

	fault.text[0] = '\0';
	told = 1;
	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sig = sigsetjmp(jump, 1);
	if (!sig)
		*p = 1;
	signal(SIGBUS, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
	printf("# signal %d: %s\n", sig, fault.text);
	return sig;
}

static int says(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int says(const char *format, ...)
{
	char want[128];
	va_list ap;

	va_start(ap, format);
	vsnprintf(want, sizeof(want), format, ap);
	va_end(ap);
	return strstr(fault.text, want) != NULL;
}

static struct neuron_mem *get(const char *label, uint32_t core, char **va)
{
	struct neuron_mem_opts opts = { .size = sizeof(opts), .nc = core,
					.category = NEURON_MEM_TENSORS };
	struct neuron_mem *mem = NULL;
	void *p = NULL;

	CHECK((!label || !neuron_owner_create(dev, label, &opts.owner)) &&
	      !neuron_mem_alloc(dev, BYTES, &opts, &mem) && !neuron_mem_map(mem, &p), "memory");
	if (!p)
		exit(1);
	*va = p;
	return mem;
}

/* The window of a core's state buffer, which is shorter. */
static char *state_buffer(uint32_t core)
{
	struct neuron_ioctl_resource_mmap_info r = {
		.block = NEURON_DM_BLOCK_TPB, .block_id = core, .resource = NEURON_DM_RESOURCE_SBUF,
	};
	void *p = call(neuron_device_fd(dev), NEURON_IOCTL_RESOURCE_MMAP_INFO, &r) ? MAP_FAILED :
		  mmap(NULL, r.size, PROT_READ | PROT_WRITE, MAP_SHARED, neuron_device_fd(dev),
		       (off_t)r.offset);

	return p == MAP_FAILED ? NULL : p;
}

static void use_after_free(void)
{
	struct neuron_mem *mem;
	uint64_t address;
	char *va;

	mem = get("cache", 0, &va);
	address = neuron_mem_address(mem);
	CHECK(!touch((uint32_t *)(va + 5000)), "mapped");
	neuron_mem_free(mem);
	CHECK(touch((uint32_t *)(va + 5000)) == SIGSEGV && !told && fault.freed &&
	      fault.address == address && fault.bytes == BYTES && fault.freed_ns,
	      "use after free: SIGSEGV");
	CHECK(says("unmapped memory, before: tensors of process %d (cache) + 5000, freed ", getpid()),
	      "whose it was");
	CHECK(neuron_pointer_resolve(dev, &fault, &fault) == -ENOENT, "nothing of this is the stack");
}

static void behind(void)
{
	uint64_t end = neuron_device_geometry(dev)->sbuf_size;
	char *p;

	for (uint32_t core = 0; core < 4; core++) {
		p = state_buffer(core);
		CHECK(p && !touch((uint32_t *)p) && !neuron_pointer_resolve(dev, p + 64, &fault) &&
		      says("state buffer of core %u + 64", core), "state buffer %u", core);
		CHECK(touch((uint32_t *)(p + end)) == SIGBUS && !told &&
		      says("core %u + %" PRIu64 ", behind its state buffer", core, end),
		      "SIGBUS behind its end");
		munmap(p, 1 << 25);
	}
}

static int tell;

static void on_bus(int sig, siginfo_t *info, void *context)
{
	void *at = info->si_addr;

	(void)sig;
	(void)context;
	if (write(tell, &at, sizeof(at)) == sizeof(at))
		pause();
	_exit(1);
}

/* Stops in the handler of a SIGBUS. */
static void victim(void)
{
	struct sigaction sa = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };
	char *va, *p;

	if (neuron_device_open((unsigned int)number, &dev))
		_exit(1);
	get("cache", 5, &va);
	p = state_buffer(5);
	if (!p || write(tell, &va, sizeof(va)) < 0)
		_exit(1);
	va = (char *)&sa;
	if (write(tell, &va, sizeof(va)) < 0)
		_exit(1);
	sigaction(SIGBUS, &sa, NULL);
	*(volatile uint32_t *)(p + neuron_device_geometry(dev)->sbuf_size + 4096) = 1;
	_exit(1);
}

static int tool(pid_t pid, const char *va)
{
	char command[96];
	FILE *f;
	size_t n;

	snprintf(command, sizeof(command), "neuron-mem resolve --pid=%d %p 2>&1", pid, (void *)va);
	f = popen(command, "r");
	n = fread(fault.text, 1, sizeof(fault.text) - 1, f);
	fault.text[n] = 0;
	printf("# %s", fault.text);
	return pclose(f);
}

static void from_outside(void)
{
	uint64_t end = neuron_device_geometry(dev)->sbuf_size;
	char *tensor, *stack, *at;
	int to[2];
	pid_t pid;

	if (pipe(to))
		exit(1);
	fflush(stdout);
	pid = fork();
	tell = to[1];
	if (!pid)
		victim();
	close(to[1]);
	CHECK(read(to[0], &tensor, sizeof(tensor)) == sizeof(tensor) &&
	      read(to[0], &stack, sizeof(stack)) == sizeof(stack) &&
	      read(to[0], &at, sizeof(at)) == sizeof(at), "a process has a SIGBUS");
	CHECK(!tool(pid, at) && says(" of neuron%d\n", number) &&
	      says("core 5 + %" PRIu64 ", behind its state buffer\n", end + 4096), "where");
	CHECK(!tool(pid, tensor + 5000) &&
	      says(": tensors of process %d (cache) + 5000\n", pid), "its memory");
	CHECK(tool(pid, stack) && says("has no Neuron device mapped at") && says("[stack]"),
	      "its stack");
	CHECK(tool(pid, (char *)16) && says("has nothing mapped at 0x10\n"), "NULL");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(tool(pid, at) && says("/proc/%d/maps: No such file", pid), "it is gone");
	close(to[0]);
}

static void gone(void)
{
	struct neuron_mem *mem;
	char *va;

	mem = get(NULL, 0, &va);
	CHECK(!touch((uint32_t *)va) && !emu_set("pointers", "live", "0"), "the device goes");
	CHECK(touch((uint32_t *)(va + 5000)) == SIGBUS && !told && !fault.freed &&
	      fault.address == neuron_mem_address(mem), "SIGBUS");
	CHECK(says("tensors of process %d + 5000; the device is gone", getpid()), "whose it was");
	CHECK(tool(getpid(), va + 5000) &&
	      says(": 0x%" PRIx64 " of neuron%d\n", neuron_mem_address(mem) + 5000, number),
	      "the tool tells the address, and no more");
	neuron_mem_free(mem);
	CHECK(touch((uint32_t *)(va + 5000)) == SIGSEGV && !told && says("unmapped memory, before: "),
	      "when it is freed as well");
}

int main(void)
{
	number = emu_add("pointers");
	CHECK(!neuron_device_open((unsigned int)number, &dev), "open");
	if (failed)
		return 1;
	use_after_free();
	behind();
	from_outside();
	gone();
	neuron_device_close(dev);
	emu_del("pointers");
	return failed != 0;
}

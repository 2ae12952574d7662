// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A child of fork() must not use the devices of its parent, so that every call compares
 * process numbers: a run of a model a dozen times, and getpid() is a system call.  The
 * number is kept in a page that the kernel empties in children.  One that shares memory with its
 * parent, as after vfork(), has the parent's number; it may do no more than exec().
 */
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "process.h"

static _Atomic(_Atomic pid_t *) page;

pid_t process_id(void)
{
	_Atomic pid_t *number = atomic_load_explicit(&page, memory_order_acquire);
	pid_t pid = number ? atomic_load_explicit(number, memory_order_relaxed) : 0;

	return pid ? pid : getpid();
}

void process_remember(void)
{
	_Atomic pid_t *number = atomic_load_explicit(&page, memory_order_acquire), *none = NULL;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *fresh;

	if (!number) {
		fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (fresh == MAP_FAILED)
			return;
		number = fresh;
		/* Another thread may have been faster. */
		if (madvise(fresh, size, MADV_WIPEONFORK) ||
		    !atomic_compare_exchange_strong(&page, &none, number)) {
			munmap(fresh, size);
			return;
		}
	}
	atomic_store_explicit(number, getpid(), memory_order_relaxed);
}
